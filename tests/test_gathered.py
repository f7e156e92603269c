"""A text in pieces is what its pieces are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oaicompat import _gathered
from oaicompat._gathered import Gathered

PIECES = st.lists(st.text(st.characters(codec=None) | st.sampled_from('\r\n\0\ud83d\ude00é')))  # half characters, too


@given(PIECES)
def test_it_is_its_pieces(pieces: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_gathered, '_AT_ONCE', 3)
        check(pieces)


def check(pieces: list[str]) -> None:
    gathered = Gathered()
    for number, piece in enumerate(pieces):
        assert str(gathered) == ''.join(pieces[:number])
        gathered.append(piece)
    assert str(gathered) == ''.join(pieces)
    gathered.append('more')
    assert str(gathered) == ''.join([*pieces, 'more'])


@given(PIECES, PIECES, PIECES, st.booleans())
def test_condensed_it_says_the_same_of_another_text(
    before: list[str], behind: list[str], more: list[str], same: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_gathered, '_AT_ONCE', 3)
        whole, condensed = Gathered(), Gathered()
        for piece in before:
            whole.append(piece)
            condensed.append(piece)
        condensed.condense()
        for piece in behind:
            whole.append(piece)
            condensed.append(piece)
        told = [*before, *behind] if same else before[1:]
        text = ''.join([*told, *more])
        assert condensed.beyond(text, settled=True) == whole.beyond(text, settled=True)
        shorter = ''.join(told)[:-1]
        assert condensed.beyond(shorter, settled=True) == whole.beyond(shorter, settled=True)


def test_what_is_condensed_is_not_kept() -> None:
    gathered = Gathered()
    gathered.append('Hello')
    gathered.condense()
    gathered.condense()
    with pytest.raises(ValueError, match='not kept'):
        str(gathered)
    with pytest.raises(ValueError, match='is settled'):
        gathered.beyond('Hello', settled=False)
