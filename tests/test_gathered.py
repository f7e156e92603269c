"""A text in pieces is what its pieces are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oaicompat import _gathered
from oaicompat._gathered import Gathered


@given(st.lists(st.text(st.characters(codec=None) | st.sampled_from('\r\n\0\ud83d\ude00é'))))  # half characters, too
def test_it_is_its_pieces(pieces: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_gathered, '_AT_ONCE', 3)
        check(pieces)


def check(pieces: list[str]) -> None:
    gathered = Gathered()
    for number, piece in enumerate(pieces):
        assert (str(gathered), len(gathered)) == (''.join(pieces[:number]), number)
        gathered.append(piece)
    assert (str(gathered), len(gathered), bool(gathered)) == (''.join(pieces), len(pieces), bool(pieces))
    gathered.settle()
    assert (str(gathered), len(gathered)) == (''.join(pieces), min(1, len(pieces)))
    gathered.append('more')
    assert str(gathered) == ''.join([*pieces, 'more'])
