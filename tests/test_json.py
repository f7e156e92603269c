"""Arguments back to the objects they were, without inventing anything."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import strategies
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel

from oaicompat._json import as_object, is_cut_off, repair_arguments
from oaicompat._nested import decode_nested

_object_texts = st.builds(
    json.dumps, strategies.objects, indent=st.sampled_from([None, 1]), ensure_ascii=st.booleans()
)  # fmt: skip


@pytest.mark.parametrize(
    ('text', 'repaired'),
    [
        ('', '{}'),
        (' \n', '{}'),
        ('null', '{}'),
        ('None', '{}'),
        ('""', '{}'),
        (r'"{\"a\": 1}"', '{"a": 1}'),
        (json.dumps(json.dumps('{"a": 1}')), '{"a": 1}'),
        ('{"a": 1}}', '{"a": 1}'),
        ('{"a": 1}}}', '{"a": 1}'),
        ('{{"a": 1}}', '{"a": 1}'),
        ('{ {"a": 1} }', '{"a": 1}'),
        ('{{{"a": 1}}}', '{"a": 1}'),
        ('{}{"a": 1}', '{"a": 1}'),
        ('{"a": 1}<|im_end|>', '{"a": 1}'),
        ('{"a": 1}<|call|>\n', '{"a": 1}'),
        ('{"a": 1}</tool_call>', '{"a": 1}'),
        ('{"a": 1}</s>', '{"a": 1}'),
        ('{"a": 1}<tool_call|>', '{"a": 1}'),
        ('{"a": 1}<\uff5ctool\u2581call\u2581end\uff5c>', '{"a": 1}'),
        ('<|tool_call_argument_begin|>{"a": 1}<|tool_call_end|>', '{"a": 1}'),
        ('[TOOL_CALLS]{"a": 1}', '{"a": 1}'),
        ('<function=f>{"a": 1}</function>', '{"a": 1}'),
        (r'<tool_call>"{\"a\": 1}"</tool_call>', '{"a": 1}'),
        ('```json\n{"a": 1}\n```', '{"a": 1}'),
        ('```\n{"a": 1}\n```\n', '{"a": 1}'),
        ('```JSON\n{"a": 1}```', '{"a": 1}'),
        ('json\n{"a": 1}', '{"a": 1}'),
        ("```python\n{'a': True}\n```", '{"a": true}'),
        ("{'a': 'b'}", '{"a": "b"}'),
        ("{'a': True, 'b': None}", '{"a": true, "b": null}'),
        ("{'a': true, 'b': null}", '{"a": true, "b": null}'),
        ('{"a": True, "b": null}', '{"a": true, "b": null}'),
        (r"""{'a': 'it\'s "q"'}""", '{"a": "it\'s \\"q\\""}'),
        ("{'a': 'see, note: True, }'}", '{"a": "see, note: True, }"}'),
        ("{'a': (1, 2)}", '{"a": [1, 2]}'),
        ('{a: 1, b_c: "x, y: 1"}', '{"a": 1, "b_c": "x, y: 1"}'),
        ("{a: 'x', b: [{c: 1}]}", '{"a": "x", "b": [{"c": 1}]}'),
        ('{"a": [1, 2,], }', '{"a": [1, 2] }'),
        ('{"a": "one\ntwo\tthree"}', '{"a": "one\\ntwo\\tthree"}'),
    ],
)
def test_an_object_that_was_spoiled_is_read(text: str, repaired: str) -> None:
    assert repair_arguments(text) == repaired


@pytest.mark.parametrize(
    'text',
    [
        '[1, 2, 3]',
        '[{"a": 1}]',
        '5',
        'true',
        '"text"',
        'text',
        '{city: Oslo}',
        '{"a": 1} and {"b": 2}',
        '{"a": 1}{"b": 2}',
        'Sure: {"a": 1}',
        '{"a" 1}',
        '{"a": }',
        "{'a': 'it's'}",
        "{'a': {1, 2}}",
        '{"a": ["b" "c"]}',
        "{'a': 'b' 'c'}",
        "{'a': print()}",
        '{1: 2}',
        '{"a": "b',
        '{"a": [1, 2}',
        '{' * 10_000,
        '{"a":' * 10_000 + '1' + '}' * 10_000,
        '{"a": ' + '9' * 5000 + '}',
    ],
)
def test_what_would_have_to_be_guessed_stays_unreadable(text: str) -> None:
    assert repair_arguments(text) is None


@pytest.mark.parametrize('text', ['{"a": "' + '\n' * 30_000, '{"a": 1}' + ' ' * 30_000 + 'x', '{a:' + ', ' * 30_000])
def test_endless_white_space_is_read_in_linear_time(text: str) -> None:
    """Models that lose their way write white space until they are stopped."""
    assert repair_arguments(text) is None


@given(_object_texts, st.sampled_from(['', ' ', '\n', '\r\n\t']))
def test_a_valid_object_is_never_touched(text: str, space: str) -> None:
    assert repair_arguments(f'{space}{text}{space}') == f'{space}{text}{space}'
    assert not is_cut_off(text)


def _leaves(value: object) -> list[Any]:
    match value:
        case dict():
            return [leaf for key, item in value.items() for leaf in (key, *_leaves(item))]
        case list():
            return [leaf for item in value for leaf in _leaves(item)]
        case str() | int() | float():
            return [value]
    return []


_pieces = st.sampled_from(
    [*'{}[]:,\'" \n\\', 'a', 'true', 'True', 'None', '12', '-1.5', '"b"', "'c'", '```', '<|x|>', '</s>', '{}', '"a":']
)
_spoiled = st.lists(_pieces, max_size=14).map(''.join) | st.builds(
    lambda text, at, junk: text[:at] + junk + text[at:], _object_texts, st.integers(0, 40), _pieces
)


@given(_spoiled)
@example("{'a': 1, }")
@example(r'{"\ud800\{": 1}')
def test_nothing_is_invented_and_a_repair_is_final(text: str) -> None:
    repaired = repair_arguments(text)
    if repaired is None or not text.strip():
        return
    value = as_object(repaired)
    assert value is not None
    assert repair_arguments(repaired) == repaired
    for leaf in _leaves(value):
        if isinstance(leaf, str):
            # Escapes aside, which the strings here may hold.
            assert set(leaf) <= set(text) or '\\' in text
            assert '\\' in text or leaf in text
        elif not isinstance(leaf, bool):
            assert leaf in [json.loads(number) for number in _NUMBER.findall(text)]


_NUMBER = re.compile(r'-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?')


@given(st.text(max_size=40))
def test_any_text_is_repaired_or_left(text: str) -> None:
    repaired = repair_arguments(text)
    assert repaired is None or as_object(repaired) is not None
    assert is_cut_off(text) in (True, False)


@given(_object_texts, st.data())
@example(r'{"a": "\ud83c\udf26"}', None)
@example('{"a": [-1.5e-7, true, false, null, -0, 1E+2]}', None)
def test_half_an_object_is_never_made_whole(text: str, data: st.DataObject | None) -> None:
    ends = range(1, len(text)) if data is None else [data.draw(st.integers(1, max(len(text) - 1, 1)))]
    for end in ends:
        if end < len(text):
            assert repair_arguments(text[:end]) is None, text[:end]
            assert is_cut_off(text[:end]), text[:end]


@pytest.mark.parametrize(
    'text', ['{"a": 1]', '{"a": foo}', '{"a" 1}', '{a: 1', '{"a": 1}}', '{"a": 1} x', '{"a": tru}']
)
def test_a_fault_is_no_cut(text: str) -> None:
    assert not is_cut_off(text)


@pytest.mark.parametrize(
    'text', ['', '{', '{"a": -Infinit', '{"a": "\\', '{"a": "\\u12', '{"a": 1.', '{"a": 1e+', '  {']
)
def test_a_cut_is_seen(text: str) -> None:
    assert is_cut_off(text)


def test_half_a_character() -> None:
    """Servers in JavaScript cut strings between the halves of a character; they belong together again."""
    assert repair_arguments('{"a": "\ud83c' + '\udf26"}') == '{"a": "🌦"}'


class Step(BaseModel):
    step: str
    parts: list[int] = []


class Node(BaseModel):
    name: str
    children: list[Node] = []


class Plan(BaseModel):
    steps: list[Step]
    first: Step
    note: str = ''
    maybe: Step | None = None
    numbers: list[int] | None = None
    either: str | list[str] = ''
    table: dict[str, list[int]] = {}
    pair: tuple[Step, int] | None = None
    tree: Node | None = None
    anything: Any = None


PLAN = Plan.model_json_schema()


@pytest.mark.parametrize(
    ('given_value', 'decoded'),
    [
        ({'steps': '[{"step": "a"}]'}, {'steps': [{'step': 'a'}]}),
        ({'first': '{"step": "a"}', 'note': '{"a": 1}'}, {'first': {'step': 'a'}, 'note': '{"a": 1}'}),
        ({'maybe': '{"step": "[1]"}'}, {'maybe': {'step': '[1]'}}),
        ({'numbers': '[1, 2]'}, {'numbers': [1, 2]}),
        ({'first': {'step': 'a', 'parts': '[1]'}}, {'first': {'step': 'a', 'parts': [1]}}),
        ({'first': '{"step": "a", "parts": "[1]"}'}, {'first': {'step': 'a', 'parts': [1]}}),
        ({'steps': ['{"step": "a"}', {'step': 'b'}]}, {'steps': [{'step': 'a'}, {'step': 'b'}]}),
        ({'table': {'x': '[1]'}}, {'table': {'x': [1]}}),
        ({'pair': ['{"step": "a"}', 1]}, {'pair': [{'step': 'a'}, 1]}),
        ({'tree': {'name': '[]', 'children': ['{"name": "b", "children": "[]"}']}},
         {'tree': {'name': '[]', 'children': [{'name': 'b', 'children': []}]}}),
    ],
)  # fmt: skip
def test_what_the_schema_wants_as_an_object_or_array_is_decoded(
    given_value: dict[str, Any], decoded: dict[str, Any]
) -> None:
    assert decode_nested(given_value, PLAN) == decoded
    assert decode_nested(decoded, PLAN) is None


@pytest.mark.parametrize(
    'arguments',
    [
        {'note': '[1]', 'either': '["a"]', 'anything': '{"a": 1}', 'unknown': '[1]'},
        {'steps': 'text', 'first': '[1]', 'numbers': '{"a": 1}', 'maybe': 'null', 'table': '5'},
        {'steps': [{'step': '{"a": 1}'}], 'first': {'step': '[1]', 'parts': [1]}},
        {},
    ],
)
def test_what_may_be_text_stays_text(arguments: dict[str, Any]) -> None:
    assert decode_nested(arguments, PLAN) is None


@pytest.mark.parametrize(
    'schema',
    [
        {'type': 'array'},
        {'type': ['array', 'null']},
        {'type': 'array', 'nullable': True},
        {'anyOf': [{'type': 'array'}, {'type': 'null'}]},
        {'oneOf': [{'type': 'array'}, {'type': 'object'}]},
        {'allOf': [{'$ref': '#/$defs/A'}], 'default': None},
        {'$ref': '#/$defs/B'},
        {'$ref': '#/$defs/a~1b'},
    ],
)
def test_ways_to_say_array(schema: dict[str, Any]) -> None:
    defs = {'A': {'type': 'array'}, 'B': {'$ref': '#/$defs/A'}, 'a/b': {'type': 'array'}}
    assert decode_nested({'a': '[1]'}, {'$defs': defs, 'properties': {'a': schema}}) == {'a': [1]}


def test_a_schema_that_is_a_reference() -> None:
    assert decode_nested({'name': 'a', 'children': '[]'}, Node.model_json_schema()) == {'name': 'a', 'children': []}


_schemas: st.SearchStrategy[Any] = st.dictionaries(
    st.sampled_from(['type', 'properties', 'items', 'anyOf', '$ref', 'allOf', 'prefixItems', 'additionalProperties']),
    st.sampled_from(['array', '#/properties', '#', '#/items', None, 5, True, ['array', 1], {}])
    | strategies.json_values
    | st.deferred(lambda: st.dictionaries(st.just('a'), _schemas) | st.lists(_schemas, max_size=2)),
    max_size=3,
)


@given(st.dictionaries(st.just('a'), strategies.json_values | st.just('[1]')), _schemas)
@example({'a': '[1]'}, {'$ref': '#'})
@example({'a': '[1]'}, {'anyOf': [{'$ref': '#'}]})
def test_no_schema_breaks_it(arguments: dict[str, Any], schema: dict[str, Any]) -> None:
    decoded = decode_nested(arguments, schema)
    assert decoded is None or decoded != arguments
