"""Fragments of tool calls, and what servers make of them, sorted into calls."""

from __future__ import annotations

import json
from typing import Any

import pytest
import strategies
from hypothesis import example, given
from hypothesis import strategies as st

from oaicompat._keys import WHOLE
from oaicompat._toolcalls import ToolCalls, whole_calls

SCHEMAS: dict[str, dict[str, Any]] = {
    'lookup': {'properties': {'steps': {'type': 'array'}, 'note': {'type': 'string'}}},
    'search': {},
    'get': {},
    'get_weather': {},
    'papa': {},
}
A, B = '{"a": 1}', '{"b": {"a": 1}}'
NO_ID = 'synthetic'

Fragment = dict[str, Any]


def part(index: object = 0, id_: object = None, name: object = None, arguments: object = None) -> Fragment:
    """One fragment; what is `None` is left out."""
    function = {key: value for key, value in (('name', name), ('arguments', arguments)) if value is not None}
    outer = {key: value for key, value in (('index', index), ('id', id_)) if value is not None}
    # The API reference has the type with the name.
    return {**outer, **({} if name is None else {'type': 'function'}), 'function': function}


def folded(fragments: list[Any], schemas: dict[str, dict[str, Any]] | None = None) -> tuple[list[Any], ToolCalls]:
    """The calls that come of `fragments`, one a delta, as `(id, name, arguments)`; and their tracker."""
    tracker = ToolCalls(SCHEMAS if schemas is None else schemas)
    calls: dict[int, list[str]] = {}
    for given_ in fragments:
        for call in tracker.feed(given_ if isinstance(given_, list | dict) and 'index' not in given_ else [given_]):
            assert type(call['index']) is int
            whole = calls.setdefault(call['index'], ['', '', ''])
            if call.get('id'):
                assert whole[0] in ('', call['id'])
                whole[0] = call['id']
            function = call.get('function') or {}
            whole[1] += function.get('name') or ''
            whole[2] += function.get('arguments') or ''
    for call in tracker.finish():
        calls[call['index']][2] = call[WHOLE]
    told = [[NO_ID if id_.startswith('call_') and len(id_) == 29 else id_, *rest] for id_, *rest in calls.values()]
    real = [id_ for id_, *_ in calls.values() if id_]
    assert len(set(real)) == len(real)
    return told, tracker


def pieces(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)] or ['']


@st.composite
def streams(draw: st.DrawFn) -> list[list[Fragment]]:
    """Deltas as OpenAI sends them, for calls side by side or one behind the other."""
    queues: list[list[Fragment]] = []
    for index, value in enumerate(draw(st.lists(strategies.objects, min_size=1, max_size=3))):
        text = json.dumps(value, ensure_ascii=draw(st.booleans()))
        cuts = sorted(draw(st.sets(st.integers(0, len(text)), max_size=6)))
        split = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        head = {'index': index, 'id': f'id{index}', 'type': 'function'}
        name = draw(st.sampled_from([*SCHEMAS, 'made_up']))
        queues.append(
            [{**head, 'function': {'name': name, 'arguments': ''}}]
            + [{'index': index, 'function': {'arguments': some}} for some in split]
        )
    deltas: list[list[Fragment]] = []
    while queues:
        queue = draw(st.sampled_from(queues)) if draw(st.booleans()) else queues[0]
        deltas.append([queue.pop(0)])
        queues = [queue for queue in queues if queue]
    return deltas


@given(streams(), st.sampled_from([{}, SCHEMAS]))
@example([[part(0, 'x', 'search', '{"a":')], [part(0, None, None, '{"a":')], [part(arguments='1}}')]], {})
def test_well_formed_fragments_come_out_as_they_came(deltas: list[list[Fragment]], schemas: dict[str, Any]) -> None:
    tracker = ToolCalls(schemas)
    assert [tracker.feed(delta) for delta in deltas] == deltas
    assert tracker.cut_off() is None
    assert tracker.finish() == []
    assert tracker.repairs == set()


TWO = [['x', 'search', A], ['y', 'lookup', B]]
TWO_NEW = [[NO_ID, 'search', A], [NO_ID, 'lookup', B]]
SAME = [[NO_ID, 'search', A], [NO_ID, 'search', B]]
ONE = [['x', 'search', A]]

# Made of pieces of any size: for each of them the same calls.
CASES: dict[str, tuple[list[Any], list[Any]]] = {
    'no index': ([part(None, 'x', 'search', A), part(None, 'y', 'lookup', B)], TWO),
    'all index 0, with ids': ([part(0, 'x', 'search', A), part(0, 'y', 'lookup', B)], TWO),
    'all index 0, no ids': ([part(0, None, 'search', A), part(0, None, 'lookup', B)], TWO_NEW),
    'all index 0, no ids, same tool': ([part(0, None, 'search', A), part(0, None, 'search', B)], SAME),
    'all index 0, no ids, name first': (
        [part(0, None, 'search', ''), part(0, None, None, A), part(0, None, 'search', ''), part(0, None, None, B)],
        SAME,
    ),
    'neither index nor id': ([part(None, None, 'search', A), part(None, None, 'lookup', B)], TWO_NEW),
    'index null': ([{**part(0, 'x', 'search', A), 'index': None}], ONE),
    'index a string': ([part('0', 'x', 'search', A), part('1', 'y', 'lookup', B)], TWO),
    'index a float': ([part(0.0, 'x', 'search', A), part(1.0, 'y', 'lookup', B)], TWO),
    'index from 1': ([part(1, 'x', 'search', A), part(2, 'y', 'lookup', B)], TWO),
    'no id': ([part(0, None, 'search', A)], [[NO_ID, 'search', A]]),
    'id null': ([{**part(0, None, 'search', A), 'id': None}], [[NO_ID, 'search', A]]),
    'id empty': ([part(0, '', 'search', A)], [[NO_ID, 'search', A]]),
    'id a number': ([part(0, 7, 'search', A)], [['7', 'search', A]]),
    'one id for all': (
        [part(0, 'x', 'search', A), part(1, 'x', 'lookup', B)],
        [['x', 'search', A], [NO_ID, 'lookup', B]],
    ),
    'one id for all, one tool': (
        [part(0, 'x', 'search', A), part(1, 'x', 'search', B)],
        [['x', 'search', A], [NO_ID, 'search', B]],
    ),
    'one id and index for all': (
        [part(0, 'x', 'search', A), part(0, 'x', 'lookup', B)],
        [['x', 'search', A], [NO_ID, 'lookup', B]],
    ),
    'one id, no index': (
        [part(None, 'x', 'search', A), part(None, 'x', 'search', B)],
        [['x', 'search', A], [NO_ID, 'search', B]],
    ),
    'empty object first': ([part(0, 'x', 'search', '{}'), part(0, None, None, A)], ONE),
    'behind the arguments, white space': (
        [part(0, 'x', 'search', A), part(0, None, None, '\n')],
        [['x', 'search', f'{A}\n']],
    ),
}


@pytest.mark.parametrize('size', [1, 3, 1000])
@pytest.mark.parametrize('case', CASES)
@pytest.mark.parametrize('named', ['once', 'null', 'empty', 'repeated'])
def test_calls_stay_apart(case: str, size: int, named: str) -> None:
    """Continuations hold what the server repeats in each fragment, of which the name may be missing or empty."""
    fragments, calls = CASES[case]
    fed: list[Fragment] = []
    for first in fragments:
        function = first['function']
        head, *rest = pieces(function.get('arguments', ''), size)
        fed.append({**first, 'function': {**function, 'arguments': head}})
        repeated: dict[str, Fragment] = {'null': {'name': None}, 'empty': {'name': ''}, 'repeated': function}
        again = repeated.get(named, {})
        fed += [{**first, 'function': {**again, 'arguments': some}} for some in rest]
    assert folded(fed)[0] == calls


@pytest.mark.parametrize('size', [1, 2, 3])
@pytest.mark.parametrize('index', [0, None])
def test_interleaved_calls_are_sorted_by_id(index: int | None, size: int) -> None:
    split = [('x', pieces(A, size)), ('y', pieces(B, size))]
    fed = [part(index, 'x', 'search', ''), part(index, 'y', 'lookup', '')]
    for number in range(len(B)):
        fed += [part(index, id_, None, texts[number]) for id_, texts in split if number < len(texts)]
    assert folded(fed)[0] == TWO


CITY = '{"city": "Oslo"}'


@pytest.mark.parametrize(
    ('fragments', 'calls'),
    [
        (
            [part(0, 'x', None, '{"city":'), part(0, None, 'get_weather'), part(0, None, None, ' "Oslo"}')],
            [['x', 'get_weather', CITY]],
        ),
        ([part(0, 'x', '', '{"city"'), part(0, None, 'get_weather', ': "Oslo"}')], [['x', 'get_weather', CITY]]),
        (
            [part(None, 'x', None, ''), part(None, None, None, CITY), part(None, None, 'get_weather')],
            [['x', 'get_weather', CITY]],
        ),
        ([part(0, 'x', 'get_'), part(0, None, 'weather'), part(0, None, None, CITY)], [['x', 'get_weather', CITY]]),
        ([part(0, 'x', 'get'), part(0, None, '_weather', CITY)], [['x', 'get_weather', CITY]]),
        ([part(0, 'x', 'pa'), part(0, None, 'pa', CITY)], [['x', 'papa', CITY]]),
        (
            [part(0, 'x', 'get_'), part(0, 'x', 'get_wea'), part(0, 'x', 'get_weather', CITY)],
            [['x', 'get_weather', CITY]],
        ),
        ([part(0, 'x', 'get', A), part(0, 'x', 'get'), part(0, 'x', '')], [['x', 'get', A]]),
        ([part(0, None, 'search', '{"a"'), part(0, 'x', None, ': 1}')], [[NO_ID, 'search', A]]),
        ([part(None, None, 'search', '{"a"'), part(None, 'x', None, ': 1}')], [[NO_ID, 'search', A]]),
        ([part(0, 'x', 'search', '{"a"'), part(1, 'x', None, ': '), part(2, 'x', None, '1}')], ONE),
        ([part(0, 'x', 'search', '{"a"'), part(None, None, None, ': 1}')], ONE),
        (
            [part(0, None, 'search', '{}'), part(0, None, 'lookup', '')],
            [[NO_ID, 'search', '{}'], [NO_ID, 'lookup', '{}']],
        ),
        ([part(0, None, 'search', ''), part(0, None, 'lookup')], [[NO_ID, 'search', '{}'], [NO_ID, 'lookup', '{}']]),
        ([[part(0, None, 'search', A), part(0, None, 'lookup', B)]], TWO_NEW),
        ([{'function': {'name': 'search', 'arguments': A}, 'id': 'x'}], ONE),
        ([{'id': 'x', 'name': 'search', 'arguments': {'a': 1}, 'index': 0}], ONE),
        ([{'id': 'x', 'function': {'name': 'search', 'parameters': {'a': 1}}, 'index': 0}], ONE),
    ],
)
def test_names_ids_and_envelopes_that_come_late_in_pieces_or_not_at_all(fragments: list[Any], calls: list[Any]) -> None:
    assert folded(fragments)[0] == calls


@pytest.mark.parametrize(
    'name',
    [
        'search<|channel|>commentary',
        'search<|message|>',
        '<|tool_call_begin|>search',
        'search</tool_call>',
        ' search\n',
        'search<\uff5ctool\u2581sep\uff5c>',
        'functions.search',
        'functions.search:0',
        'search:1',
        '"search"',
        'search()',
        '[TOOL_CALLS]search',
        '<tool_call>search',
        'to=functions.search<|constrain|>json',
    ],
)
def test_markers_in_a_name(name: str) -> None:
    calls, tracker = folded([part(0, 'x', name, A)])
    assert (calls, tracker.repairs) == (ONE, {'tool_call.name'})
    assert folded([part(0, 'x', 'made.up:1', A)])[0] == [['x', 'made.up:1', A]]


def test_a_marker_that_comes_as_a_name_of_its_own() -> None:
    for rest in (['<|channel|>commentary'], ['<|channel|>', 'commentary'], ['<|channel|>']):
        assert folded([part(0, 'x', 'search', ''), *[part(name=some) for some in rest], part(arguments=A)])[0] == ONE


@pytest.mark.parametrize(
    ('arguments', 'whole'),
    [
        ({'a': 1}, A),
        ({}, '{}'),
        (None, '{}'),
        ('', '{}'),
        ('null', '{}'),
        (json.dumps(A), A),
        (f'{A}<|im_end|>', A),
        (f'```json\n{A}\n```', A),
        (f'{A}}}', A),
        ("{'a': 1}", A),
        ('{a: 1}', '{"a": 1}'),
        ([1, 2], '[1, 2]'),
        (5, '5'),
        ('{"a" 1}', '{"a" 1}'),
        ('[1]', '[1]'),
        ({'a': 'Zürich'}, '{"a": "Zürich"}'),
        ({'a': '\ud83c'}, '{"a": "\\ud83c"}'),
    ],
)
@pytest.mark.parametrize('size', [1, 4, 1000])
def test_arguments(arguments: object, whole: str, size: int) -> None:
    text = isinstance(arguments, str)
    parts: list[Any] = pieces(str(arguments), size) if text else [arguments]
    fed = [part(0, 'x', 'search', parts[0]), *[part(arguments=some) for some in parts[1:]]]
    assert folded(fed)[0] == [['x', 'search', whole]]
    call = {'id': 'x', 'type': 'function', 'function': {'name': 'search', 'arguments': arguments}}
    assert whole_calls([call], ToolCalls(SCHEMAS)) == [{**call, 'function': {'name': 'search', 'arguments': whole}}]


@pytest.mark.parametrize('cuts', [(2, 6), (1, 2, 3), (5, 8), (3, 100), (4,), (1, 100, 100)])
@pytest.mark.parametrize('text', [CITY, B, '{"q":{"q":[1,"{"]}}', '{"a":"a","n":2}'])
@pytest.mark.parametrize('name', [None, 'search'])
def test_arguments_that_are_repeated_from_the_start(name: str | None, text: str, cuts: tuple[int, ...]) -> None:
    head, *rest = [text[:cut] for cut in (*cuts, 1000)]
    assert folded([part(0, 'x', 'search', head), *[part(0, 'x', name, some) for some in rest]])[0] == [
        ['x', 'search', text]
    ]


def test_objects_that_grow() -> None:
    fed = [part(0, 'x', 'search', {'a': 1}), part(0, 'x', 'search', {'a': 1, 'b': 2})]
    assert folded(fed)[0] == [['x', 'search', '{"a": 1, "b": 2}']]


def test_nested_arguments_are_decoded_by_the_schema() -> None:
    text = '{"steps": "[{\\"step\\": \\"a\\"}]", "note": "[1]"}'
    for size in (1, 5, 1000):
        head, *rest = pieces(text, size)
        calls, tracker = folded([part(0, 'x', 'lookup', head), *[part(arguments=some) for some in rest]])
        assert calls == [['x', 'lookup', '{"steps": [{"step": "a"}], "note": "[1]"}']]
        assert tracker.repairs == {'tool_call.nested_arguments'}


@pytest.mark.parametrize(
    ('arguments', 'cut'),
    [
        ('', 'search'),
        (' \n', 'search'),
        ('{"path": "/tmp/a', 'search'),
        ('"{', 'search'),
        (A, None),
        (f'{A}}}', None),
        ('[1]', None),
    ],
)
def test_a_call_that_is_cut_off(arguments: str, cut: str | None) -> None:
    tracker = ToolCalls(SCHEMAS)
    tracker.feed([part(0, 'y', 'get', A), part(1, 'x', 'search', arguments)])
    assert tracker.cut_off() == cut


_any_call = st.fixed_dictionaries(
    {},
    optional={
        'index': st.sampled_from([0, 1, '0', None, 1.0, True, -1, '9' * 5000, 10**30, float('inf')]),
        'id': st.sampled_from(['x', 'y', '', None, 7, []]),
        'type': st.just('function'),
        'name': strategies.json_values,
        'arguments': strategies.json_values,
        'function': strategies.json_values
        | st.fixed_dictionaries(
            {},
            optional={
                'name': st.sampled_from([*SCHEMAS, '', None, 5, '<|x|>']),
                'arguments': strategies.json_values
                | st.sampled_from(['{', '}', A, B, '{"a":', '"', ' ', json.dumps(A)]),
            },
        ),
    },
)
_any_calls = st.lists(_any_call | strategies.json_values, max_size=4) | strategies.json_values


@given(st.lists(_any_calls, max_size=5))
@example([[{'id': 'y', 'function': {'name': 'lookup'}}, {'id': 'y', 'arguments': []}]])
def test_arbitrary_calls_do_no_harm_and_repair_is_final(deltas: list[Any]) -> None:
    tracker = ToolCalls(SCHEMAS)
    for delta in deltas:
        calls = tracker.feed(delta)
        assert all(type(call['index']) is int for call in calls)
    assert tracker.cut_off() is None or isinstance(tracker.cut_off(), str)
    tracker.finish()
    assert tracker.finish() == []
    for delta in deltas:
        once = whole_calls(delta, ToolCalls(SCHEMAS))
        again = ToolCalls(SCHEMAS)
        if all(call['function'].get('name') for call in once):  # without a name it is no call, and gets no id
            assert whole_calls(once, again) == once
            assert again.repairs <= {'tool_call.unreadable'}


def test_whole_calls() -> None:
    proper = {
        'id': 'x',
        'type': 'function',
        'function': {'name': 'search', 'arguments': A},
        'extra': {'signature': 'c2ln'},
    }
    tracker = ToolCalls(SCHEMAS)
    assert whole_calls([proper, {**proper, 'id': 'y'}], tracker) == [proper, {**proper, 'id': 'y'}]
    assert whole_calls(proper, ToolCalls()) == [proper]
    assert whole_calls(None, tracker) == whole_calls([], tracker) == whole_calls('text', tracker) == []
    assert tracker.repairs == set()
    first, second = whole_calls([proper, {'id': 'x', 'name': 'lookup', 'arguments': {}}], tracker := ToolCalls(SCHEMAS))
    assert first == proper
    assert (second['type'], second['function']) == ('function', {'name': 'lookup', 'arguments': '{}'})
    assert second['id'].startswith('call_')
    assert tracker.repairs == {
        'tool_call.arguments',
        'tool_call.duplicate_id',
        'tool_call.function',
        'tool_call.type',
    }
