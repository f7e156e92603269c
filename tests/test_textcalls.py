"""Calls in the text, and all that only looks like them: what is shown, what is held, and how long."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oaicompat._grammars import GRAMMARS
from oaicompat._textcalls import LONGEST, CallScanner, Found, TextCall, scan

SCHEMAS: dict[str, dict[str, Any]] = {
    'get_weather': {'type': 'object', 'properties': {'city': {'type': 'string'}}, 'required': ['city']},
    'pwd': {},
}
BLOCK = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Rome"}}\n</tool_call>'
EXAMPLES = [example for grammar in GRAMMARS for example in grammar.examples]
MARKERS = [marker for grammar in GRAMMARS for marker in grammar.markers]
CALL = Found('', TextCall('get_weather', '{"city": "Rome"}'))
PWD = Found('', TextCall('pwd', '{}'))


def text(content: str) -> Found:
    return Found(content)


def cut(answer: str, cuts: Sequence[int]) -> list[str]:
    ends = [*sorted({at % (len(answer) + 1) for at in cuts}), len(answer)]
    return [answer[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def fed(pieces: Sequence[str], schemas: dict[str, Any] = SCHEMAS, *, suppress: bool = False) -> list[Found]:
    scanner = CallScanner(schemas, suppress=suppress)
    return [*(found for piece in pieces for found in scanner.feed(piece)), *scanner.finish()]


def joined(found: Sequence[Found]) -> list[Found]:
    whole: list[Found] = []
    for piece in found:
        if whole and piece.call is None and whole[-1].call is None:
            whole[-1] = Found(whole[-1].text + piece.text)
        else:
            whole.append(piece)
    return whole


@pytest.mark.parametrize(
    ('answer', 'found'),
    [
        ('', []),
        (' \n', [text(' \n')]),
        (BLOCK, [CALL]),
        (f'\n\n{BLOCK}\n', [CALL]),
        (f'{BLOCK}\n \n{BLOCK}\n', [CALL, CALL]),
        (f'Let me see.\n\n{BLOCK}', [text('Let me see.\n\n'), CALL]),
        (f'Let me see.{BLOCK}', [text('Let me see.'), CALL]),
        (f'Let me see: {BLOCK}', [text('Let me see: '), CALL]),
        (f'**Looking!** {BLOCK}', [text('**Looking!** '), CALL]),
        (f'Sure \U0001f44d {BLOCK}', [text('Sure \U0001f44d '), CALL]),
        (f'我来查一下。{BLOCK}', [text('我来查一下。'), CALL]),
        (f'</think>{BLOCK}', [text('</think>'), CALL]),
        (f'{BLOCK}\n\nDone.', [CALL, text('\n\nDone.')]),
        (f'{BLOCK}done', [CALL, text('done')]),
        (f'a.\n{BLOCK}\nb.\n{BLOCK}\nc', [text('a.\n'), CALL, text('\nb.\n'), CALL, text('\nc')]),
        (f'{BLOCK}\n```\n{BLOCK}\n```\n{BLOCK}', [CALL, text(f'\n```\n{BLOCK}\n```\n'), CALL]),
        (f'`x` and ``y`z``.\n{BLOCK}', [text('`x` and ``y`z``.\n'), CALL]),
        (f'```\ncode\n```\n{BLOCK}', [text('```\ncode\n```\n'), CALL]),
        (f'```` ``` ````\n{BLOCK}', [text('```` ``` ````\n'), CALL]),
        (f'I use `<tool_call>`.\n{BLOCK}', [text('I use `<tool_call>`.\n'), CALL]),
        (f'<tool_call>{{"name": "get_w\n{BLOCK}', [text('<tool_call>{"name": "get_w\n'), CALL]),
        (f'<tool_call>\n{BLOCK}', [text('<tool_call>\n'), CALL]),
        (f'hello {BLOCK}', [text(f'hello {BLOCK}')]),
        (f'hello{BLOCK}', [text('hello'), CALL]),
        (f'hello{BLOCK}{BLOCK}\nbye', [text('hello'), CALL, CALL, text('\nbye')]),
        (f'hello{BLOCK} and so', [text(f'hello{BLOCK} and so')]),
        (f'hello ({BLOCK})', [text(f'hello ({BLOCK})')]),
        (f'- {BLOCK}', [text(f'- {BLOCK}')]),
        ('hello[TOOL_CALLS]pwd{}', [text('hello'), PWD]),
        ('hello[TOOL_CALLS]pwd{}bye', [text('hello'), PWD, text('bye')]),
        ('hello [TOOL_CALLS]pwd{}', [text('hello '), PWD]),
        ('hello [TOOL_CALLS]pwd{}\nbye', [text('hello '), PWD, text('\nbye')]),
        ('write [TOOL_CALLS]pwd{} for it', [text('write [TOOL_CALLS]pwd{} for it')]),
        ('hello<｜DSML｜tool_calls><｜DSML｜invoke name="pwd"></｜DSML｜invoke></｜DSML｜tool_calls>',  # noqa: RUF001
         [text('hello'), PWD]),
        ('We look.commentary to=functions.pwd json{}', [text('We look.'), PWD]),
        ('We look at commentary to=functions.pwd json{}', [text('We look at commentary to=functions.pwd json{}')]),
        (f'So:\n\n    {BLOCK}\n\n\t{BLOCK}\n{BLOCK}', [text(f'So:\n\n    {BLOCK}\n\n\t{BLOCK}\n'), CALL]),
        (f'So:\n    {BLOCK}', [text('So:\n    '), CALL]),
        (f'\n\n    {BLOCK}', [CALL]),
        (f'<{BLOCK}', [text(f'<{BLOCK}')]),
        (f'1 <<{BLOCK}\n<<{BLOCK}\n{BLOCK}', [text(f'1 <<{BLOCK}\n<<{BLOCK}\n'), CALL]),
        ('[[TOOL_CALLS]pwd{}]', [text('[[TOOL_CALLS]pwd{}]')]),
        ('[[[1]]]. [TOOL_CALLS]pwd{}', [text('[[[1]]]. '), PWD]),
        ('````tool_code\npwd()\n````', [text('````tool_code\npwd()\n````')]),
        ('a < b[0] <b>c</b> <|x|> `d` ~e~ {"f": 1}', [text('a < b[0] <b>c</b> <|x|> `d` ~e~ {"f": 1}')]),
        ('{"city": "Rome"}', [text('{"city": "Rome"}')]),
        ('[1, 2]', [text('[1, 2]')]),
    ],
)  # fmt: skip
def test_an_answer(answer: str, found: list[Found]) -> None:
    assert scan(answer, SCHEMAS) == found
    for pieces in (list(answer), cut(answer, range(0, len(answer), 7))):
        assert joined(fed(pieces)) == found


def test_text_comes_out_as_it_came_in() -> None:
    pieces = ['\n', ' ', 'A', 'n answer', ' with\n', '\n\n', 'co', 'lour.', ' As', 'k', '?', '', 'a', ' b.', 'c', 'x']
    scanner = CallScanner(SCHEMAS)
    assert [scanner.feed(piece) for piece in pieces[:3]] == [[], [], [text('\n'), text(' '), text('A')]]
    assert scanner.feed('n answer') == [text('n answer')]
    assert fed(pieces) == [text(piece) for piece in pieces if piece]


def test_what_is_held_is_released_at_once_when_it_is_disproved() -> None:
    scanner = CallScanner(SCHEMAS)
    assert scanner.feed('x <') == []
    assert scanner.holds
    assert scanner.feed('tool_') == []
    assert scanner.feed('x') == [text('x <'), text('tool_'), text('x')]
    assert not scanner.holds
    assert scanner.feed('\n<tool_call>') == [text('\n')]
    assert scanner.feed('{"name": "get') == []
    assert scanner.feed('_whether"') == [text('<tool_call>'), text('{"name": "get'), text('_whether"')]
    assert not scanner.holds
    assert scanner.finish() == []


def test_a_json_answer_is_released_with_its_first_key() -> None:
    scanner = CallScanner(SCHEMAS)
    assert scanner.feed('{"na') == []
    assert scanner.feed('mes": 1') == [text('{"na'), text('mes": 1')]
    assert scanner.feed('{"name": "pwd", "arguments": {}}') == [text('{"name": "pwd", "arguments": {}}')]


def test_a_call_is_given_with_its_last_character() -> None:
    scanner = CallScanner(SCHEMAS)
    assert scanner.feed(BLOCK) == [CALL]
    assert (scanner.found, scanner.names, scanner.holds) == (True, {'hermes'}, False)
    assert scanner.feed('\n') == []
    assert scanner.holds
    assert scanner.finish() == []


def test_suppressed_markup_is_removed() -> None:
    assert joined(fed(list(f'a.\n{BLOCK}\nb'), suppress=True)) == [text('a.\n\nb')]
    assert fed([f'`{BLOCK}`'], suppress=True) == [text(f'`{BLOCK}`')]
    assert fed([BLOCK.replace('city', 'town')], suppress=True) == [text(BLOCK.replace('city', 'town'))]


def test_without_tools_all_passes() -> None:
    scanner = CallScanner({})
    assert scanner.passes
    assert scanner.feed(BLOCK) == [text(BLOCK)]
    assert not scanner.found


def test_a_call_that_is_too_long_is_text() -> None:
    long = BLOCK.replace('Rome', 'x' * LONGEST)
    assert scan(long, SCHEMAS) == [text(long)]
    pieces = cut(long, range(0, len(long), 1000))
    scanner = CallScanner(SCHEMAS)
    assert [len(scanner.feed(piece)) for piece in pieces if piece].index(66) == 65
    assert joined(fed(pieces)) == [text(long)]
    shorter = BLOCK.replace('Rome', 'x' * (LONGEST - 100))
    assert [found.call is None for found in fed(cut(shorter, range(0, len(long), 1000)))] == [False]


def test_white_space_in_front_of_an_answer_is_held_a_little() -> None:
    assert scan(' ' * 256 + BLOCK, SCHEMAS) == [CALL]
    assert scan(' ' * 257 + BLOCK, SCHEMAS) == joined(fed(list(' ' * 257 + BLOCK))) == [text(' ' * 257), CALL]


# Properties

prose = st.sampled_from(
    ['Let me see.', 'so', ' ', '\n', '\n\n', 'a', 'c', '"', '.', '“', '> ', 'It is ', '{', '[', '<', '|']
)
code = st.sampled_from(['`', '``', '```', '````', '~~~', '\n```\n', '\n```json\n', '```tool_code\n'])
looks = st.one_of(
    st.sampled_from(MARKERS), st.sampled_from(EXAMPLES).flatmap(lambda e: st.integers(1, len(e)).map(lambda n: e[:n]))
)
foreign = st.sampled_from(EXAMPLES).map(lambda example: example.replace('get_weather', 'get_whether'))
examples = st.sampled_from([*EXAMPLES, BLOCK])
answers = st.lists(st.one_of(prose, code, looks, foreign, examples), max_size=12).map(''.join)
cuts = st.lists(st.integers(0, 4000), max_size=30)
schemas = st.dictionaries(
    st.sampled_from(['get_weather', 'pwd', '', 'functions.x']),
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.sampled_from(['string', 'object', '#', '#/properties/city', 'city']),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ['type', 'properties', 'city', 'required', 'enum', 'anyOf', '$ref', 'additionalProperties']
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    ),
    max_size=3,
)


@given(answers, cuts)
def test_any_cut_gives_the_same(answer: str, at: list[int]) -> None:
    whole = scan(answer, SCHEMAS)
    assert joined(fed(cut(answer, at))) == whole
    assert joined(fed(list(answer))) == whole


@given(answers, cuts)
def test_any_cut_gives_the_same_where_bounds_are_met(answer: str, at: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (('LONGEST', 120), ('_PATIENCE', 400), ('_BLANK', 5)):
            patch.setattr(f'oaicompat._textcalls.{name}', value)
        whole = scan(answer, SCHEMAS)
        assert joined(fed(cut(answer, at))) == whole
        assert joined(fed(list(answer))) == whole


@given(answers, cuts)
def test_text_without_a_call_is_what_it_was(answer: str, at: list[int]) -> None:
    """It comes out in the pieces it came in, cut further only where something was held."""
    answer, pieces = answer.replace('get_weather', 'get_whether'), cut(answer.replace('get_weather', 'get_whether'), at)
    found = fed(pieces)
    assert all(piece.call is None and piece.text for piece in found)
    assert ''.join(piece.text for piece in found) == answer
    ends = set(accumulate(len(piece.text) for piece in found))
    assert {end for end in accumulate(map(len, pieces)) if end} <= ends


@given(answers, cuts)
def test_nothing_is_lost_but_markup(answer: str, at: list[int]) -> None:
    """What is shown stands in the answer, in order; with suppression it is the same text."""
    found, rest = fed(cut(answer, at)), answer
    for piece in found:
        assert piece.text in rest
        rest = rest[rest.index(piece.text) + len(piece.text) :]
    texts = [piece.text for piece in found if piece.call is None]
    assert [piece.text for piece in fed(cut(answer, at), suppress=True)] == texts


@given(st.text() | answers, schemas, st.booleans())
def test_nothing_raises(answer: str, offered: dict[str, Any], suppress: bool) -> None:
    fed(list(answer), offered, suppress=suppress)
    scan(answer, offered, suppress=suppress)


@given(st.lists(st.tuples(st.sampled_from(['\n', '\n\n', ' ']), examples.filter(lambda e: e[0] == '<')), max_size=4))
def test_blocks_follow_each_other(blocks: list[tuple[str, str]]) -> None:
    found = scan('Now.' + ''.join(f'{gap}{block}' for gap, block in blocks) + '\nThen.', SCHEMAS)
    assert [piece.call is not None for piece in found if piece.text.strip() or piece.call] == (
        [False, *[True for _ in blocks], False] if blocks else [False]
    )


def test_text_around_fences_and_calls() -> None:
    """Calls, fences that hold the same calls, and text, in any order."""

    @given(
        st.lists(st.sampled_from(['call', 'fence', 'text']), max_size=6), st.sampled_from([BLOCK, *EXAMPLES[:8]]), cuts
    )
    def check(kinds: list[str], block: str, at: list[int]) -> None:
        parts = {'call': f'{block}\n', 'fence': f'\n```xml\n{block}\n```\n', 'text': '\nSome text.\n'}
        found = joined(fed(cut(''.join(parts[kind] for kind in kinds), at)))
        assert sum(piece.call is not None for piece in found) == kinds.count('call')
        shown = ''.join(piece.text for piece in found)
        assert shown.count(block) == kinds.count('fence')
        assert shown.count('Some text.') == kinds.count('text')

    check()


def steps(answer: str, size: int) -> int:
    """How many lines of Python it takes."""
    count = 0

    def trace(frame: Any, event: str, _: Any) -> Any:
        nonlocal count
        count += event == 'line'
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        found = fed(cut(answer, range(0, len(answer), size)))
    finally:
        sys.settrace(before)
    assert ''.join(piece.text for piece in found) == answer
    return count


UNITS = [
    *('<', '[', '{', '`', '~', '\n', 'a', '.c', '<|', '\n<tool_call>', '[TOOL_CALLS]', '{"name":', '{"arguments":['),
    *('\n<tool_call>{"', '\n<tool_call>{"name":', '[TOOL_CALLS][', '<tool_call>{"arguments":{"a":', '[pwd(a=['),
    *('\n<function=pwd><parameter=a>', '\n<function=pwd><parameter=a>x</parameter>y', '<|start|>assistant'),
    *('<|python_tag|>pwd(a=(', '<|tool_call>call:pwd{a:<|"|>', '\n```tool_code\npwd('),
    '\n<tool_call>pwd<arg_key>a</arg_key><arg_value>',
]


@pytest.mark.parametrize('unit', UNITS)
@pytest.mark.parametrize('size', [4, 100_000])
def test_it_is_linear(unit: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four times the text takes about four times the steps, with the bounds as far below both as they are in use."""
    monkeypatch.setattr('oaicompat._textcalls.LONGEST', 200)
    monkeypatch.setattr('oaicompat._textcalls._PATIENCE', 1600)
    short, long = (steps(unit * (length // len(unit)), size) for length in (3_000, 12_000))
    assert long < 5 * short + 3_000


def test_runs_of_one_character_are_read_once() -> None:
    """What the steps of Python don't show: it took half a minute when each piece was read together with all before."""
    for char in '`~<[ ':
        pieces = cut('x' + char * 100_000, range(0, 100_001, 4))
        assert joined(fed(pieces)) == [text(''.join(pieces))]


@pytest.mark.parametrize('size', [1, 2, 4, 20, 1000])
@pytest.mark.parametrize('char', ['<', '[', '`', '\n', '<|', '[T', 'a<', '<t'])
def test_pieces_that_begin_like_a_marker_come_out_as_they_were(char: str, size: int) -> None:
    written = 'x' + char * 2000 + 'y'
    pieces = [written[at : at + size] for at in range(0, len(written), size)]
    scanner = CallScanner(SCHEMAS)
    assert [*(one for piece in pieces for one in scanner.feed(piece)), *scanner.finish()] == [*map(text, pieces)]
    assert joined(fed([char * 2000 + BLOCK])) == joined(fed([char * 2000, BLOCK]))


@pytest.mark.parametrize('value', ['a\n', '\na', 'a', '\n', ' a '])
@pytest.mark.parametrize(
    'form',
    [
        '<tool_call>write<arg_key>text</arg_key><arg_value>{}</arg_value></tool_call>',
        '<invoke name="write"><parameter name="text">{}</parameter></invoke>',
        '<tool_call>\n<function=write>\n<parameter=text>\n{}\n</parameter>\n</function>\n</tool_call>',
        '<tool_call>write\n<arg_key>text</arg_key>\n<arg_value>\n{}\n</arg_value>\n</tool_call>',
    ],
)
def test_line_breaks_of_an_argument_stay(form: str, value: str) -> None:
    schema = {'write': {'type': 'object', 'properties': {'text': {'type': 'string'}}}}
    [found] = scan(form.format(value), schema)
    assert found.call is not None
    assert json.loads(found.call.arguments) == {'text': value}
