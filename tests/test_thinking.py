"""Reasoning in the text, split at any character, and all that only looks like it."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from oaicompat._thinking import KNOWN_TAGS, Piece, Tags, ThinkingSplitter, lone_closing_tag, split

CUSTOM: tuple[Tags, ...] = (('<|START|>', '<|END|>'), ('◁think▷', '◁/think▷'))


def text(content: str) -> Piece:
    return Piece('text', content)


def thinking(content: str) -> Piece:
    return Piece('thinking', content)


def joined(pieces: Sequence[Piece]) -> list[Piece]:
    whole: list[Piece] = []
    for piece in pieces:
        if whole and whole[-1].kind == piece.kind:
            whole[-1] = Piece(piece.kind, whole[-1].text + piece.text)
        else:
            whole.append(piece)
    return whole


def fed(
    answer: str, cuts: Sequence[int] = (), tags: Sequence[Tags] = KNOWN_TAGS, *, closing_only: bool = False
) -> list[Piece]:
    splitter = ThinkingSplitter(tags, closing_only)
    ends = [*sorted({cut % (len(answer) + 1) for cut in cuts}), len(answer)]
    pieces = [piece for start, end in zip([0, *ends], ends, strict=False) for piece in splitter.feed(answer[start:end])]
    return [*pieces, *splitter.finish()]


def bytewise(answer: str) -> list[Piece]:
    return joined(fed(answer, range(len(answer))))


@pytest.mark.parametrize(
    ('answer', 'pieces'),
    [
        ('<think>a</think>b', [thinking('a'), text('b')]),
        ('\n <think>\n a b \n</think>\n\n b \n', [thinking('a b'), text('b \n')]),
        ('<think></think>b', [text('b')]),
        ('<think>\n\n</think>\n\nb', [text('b')]),
        ('<think>a</think>', [thinking('a')]),
        ('<think>a</think>\n', [thinking('a')]),
        ('<think>a', [thinking('a')]),
        ('<think>a\n\n</thi', [thinking('a\n\n</thi')]),
        ('<think>', []),
        ('<think> \n', []),
        ('<think>a</think> <think>b</think>c', [thinking('ab'), text('c')]),
        ('<think>a</think>b<think>c</think>', [thinking('a'), text('b<think>c</think>')]),
        ('<think>a</think> <thi', [thinking('a'), text('<thi')]),
        ('<think>a <b> </thinker> < b</think>c', [thinking('a <b> </thinker> < b'), text('c')]),
        ('<think>a</thinking>b</think>c', [thinking('a</thinking>b'), text('c')]),
        ('b <think>a</think>', [text('b <think>a</think>')]),
        ('`<think>a</think>`', [text('`<think>a</think>`')]),
        ('"<think>"', [text('"<think>"')]),
        ('<thinker>', [text('<thinker>')]),
        ('<', [text('<')]),
        (' <thi', [text(' <thi')]),
        (' \n', [text(' \n')]),
        ('< b', [text('< b')]),
        ('[TH]', [text('[TH]')]),
        ('<Think>a', [text('<Think>a')]),
        ('a</think>b', [text('a</think>b')]),
        ('', []),
    ],
)
def test_what_is_reasoning(answer: str, pieces: list[Piece]) -> None:
    assert split(answer) == pieces
    assert bytewise(answer) == pieces


@pytest.mark.parametrize(('opening', 'closing'), [*KNOWN_TAGS, *CUSTOM])
def test_every_pair_of_tags(opening: str, closing: str) -> None:
    answer = f'{opening}\na\n{closing}\nb'
    assert split(answer, [*KNOWN_TAGS, *CUSTOM]) == [thinking('a'), text('b')]
    assert split(f'{opening[:-1]}x', [*KNOWN_TAGS, *CUSTOM]) == [text(f'{opening[:-1]}x')]


@pytest.mark.parametrize('answer', ['<think>a</think>b', ' ', '<', 'x'])
def test_without_tags_all_is_text(answer: str) -> None:
    assert split(answer, ()) == split(answer, (), closing_only=True) == [text(answer)]


@pytest.mark.parametrize(
    ('answer', 'pieces'),
    [
        ('a\n</think>\nb', [thinking('a'), text('b')]),
        (' a </thinking>b', [thinking('a'), text('b')]),
        ('</think>b', [text('b')]),
        ('a', [thinking('a')]),
        ('<think>a</think>b', [thinking('a'), text('b')]),
        ('\n<think>\na\n</think>\nb', [thinking('a'), text('b')]),
        ('<thi', [thinking('<thi')]),
        (' <b>a</think>c', [thinking('<b>a'), text('c')]),
        ('a <think> b</think>c', [thinking('a <think> b'), text('c')]),
        ('a</think>b</think>', [thinking('a'), text('b</think>')]),
    ],
)
def test_where_the_prompt_opens_reasoning(answer: str, pieces: list[Piece]) -> None:
    """A server may send the opening tag all the same; it is no part of the reasoning."""
    assert split(answer, closing_only=True) == pieces
    assert joined(fed(answer, range(len(answer)), closing_only=True)) == pieces


_marks = [tag for pair in (*KNOWN_TAGS, CUSTOM[0]) for tag in pair]
_parts = st.sampled_from(
    [*_marks, '<', '</', '<th', 'ink>', ' ', '\n', '  ', 'a', 'b c', '`', '"', '\x85', '\u3000', '🌦']
)
_answers = st.lists(_parts | st.text(max_size=3), max_size=12).map(''.join) | st.text(max_size=30)
_tags = st.sampled_from([KNOWN_TAGS, KNOWN_TAGS[:1], CUSTOM, (*CUSTOM, *KNOWN_TAGS), ()])


@given(_answers, st.lists(st.integers(0, 80), max_size=15), _tags, st.booleans())
@example('<think>a</think>  <thi', [], KNOWN_TAGS, False)
def test_any_split_gives_the_same(answer: str, cuts: list[int], tags: Sequence[Tags], closing_only: bool) -> None:
    whole = split(answer, tags, closing_only=closing_only)
    assert joined(fed(answer, cuts, tags, closing_only=closing_only)) == whole
    assert joined(fed(answer, range(len(answer)), tags, closing_only=closing_only)) == whole


@given(_answers, _tags, st.booleans())
def test_nothing_is_lost_but_tags_and_white_space(answer: str, tags: Sequence[Tags], closing_only: bool) -> None:
    around = '|'.join([r'\s', *(re.escape(tag) for pair in tags for tag in pair)])
    said = [re.escape(piece.text) for piece in fed(answer, (), tags, closing_only=closing_only)]
    assert re.fullmatch(f'(?:{around})*'.join(['', *said, '']), answer)


@given(st.lists(st.text(max_size=5) | _parts, max_size=10))
def test_an_answer_that_opens_no_tag_comes_out_piece_for_piece(pieces: list[str]) -> None:
    answer = ''.join(pieces)
    if any(answer.lstrip().startswith(opening) for opening, _ in KNOWN_TAGS):
        return
    splitter = ThinkingSplitter()
    out = [piece for fragment in pieces for piece in splitter.feed(fragment)]
    assert [*out, *splitter.finish()] == [text(fragment) for fragment in pieces if fragment]
    assert not splitter.found


@given(_answers, _tags, st.booleans())
def test_no_more_is_held_than_may_be_a_tag_or_white_space(
    answer: str, tags: Sequence[Tags], closing_only: bool
) -> None:
    splitter = ThinkingSplitter(tags, closing_only)
    longest = max((len(tag) for pair in tags for tag in pair), default=0)
    for character in answer:
        splitter.feed(character)
        assert len(''.join(splitter._held).strip()) < max(longest, 1)
    splitter.finish()
    assert splitter.finish() == []


def test_held_text_is_released_when_something_else_comes() -> None:
    splitter = ThinkingSplitter()
    assert splitter.feed(' <thi') == []
    assert splitter.interrupt() == [text(' <thi')]
    assert splitter.feed('<think>a') == [text('<think>a')]


def test_reasoning_goes_on_when_something_else_comes() -> None:
    splitter = ThinkingSplitter()
    assert splitter.feed('<think>a </th') == [thinking('a')]
    assert splitter.interrupt() == []
    assert joined([*splitter.feed('ink>b'), *splitter.finish()]) == [text('b')]


@pytest.mark.parametrize(
    ('answer', 'lone'),
    [
        ('a</think>b', True),
        ('a\n[/THINK]b', True),
        ('</think>b', True),
        ('<think>a</think>b', False),
        ('a `</think>` b', False),
        ('a "</think>" b', False),
        ('```\n</think>\n```', False),
        ('```\ncode\n```\n</think>b', True),
        ('the tag </think> ends it', False),
        ('the tag (</think>) ends it, as does </think>.', False),
        ('<think mode="x">a</think>b', False),
        ('a', False),
        ('', False),
    ],
)
def test_a_closing_tag_alone(answer: str, lone: bool) -> None:
    assert lone_closing_tag(answer) is lone
