"""Each format in which models write calls, whole and cut anywhere, and the same format where it only quotes a call."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from oaicompat._grammars import GRAMMARS, Grammar
from oaicompat._textcalls import CallScanner, Found, TextCall, scan

SCHEMAS: dict[str, dict[str, Any]] = {
    'get_weather': {'type': 'object', 'properties': {'city': {'type': 'string'}}, 'required': ['city']},
    'pwd': {'type': 'object', 'properties': {}},
    'edit': {
        'type': 'object',
        'properties': {
            'path': {'type': 'string'},
            'text': {'type': 'string'},
            'line': {'type': 'integer'},
            'ratio': {'type': 'number'},
            'dry': {'type': 'boolean'},
            'tags': {'type': 'array', 'items': {'type': 'string'}},
            'options': {'$ref': '#/$defs/Options'},
            'mode': {'enum': ['fast', 3, None]},
            'limit': {'anyOf': [{'type': 'integer'}, {'type': 'null'}]},
            'note': {'type': ['string', 'null']},
            'any': {},
        },
        '$defs': {'Options': {'type': 'object', 'properties': {'deep': {'type': 'boolean'}}}},
    },
}
EXAMPLES = [(grammar, example) for grammar in GRAMMARS for example in grammar.examples]
IDS = [f'{grammar.name}{n}' for n, (grammar, _) in enumerate(EXAMPLES)]
each_example = pytest.mark.parametrize(('grammar', 'example'), EXAMPLES, ids=IDS)


def calls(text: str) -> list[tuple[str, Any]]:
    """The calls of a text that is nothing else."""
    found = scan(text, SCHEMAS)
    assert not ''.join(piece.text for piece in found), found
    return [(piece.call.name, json.loads(piece.call.arguments)) for piece in found if piece.call]


def edit(**arguments: Any) -> list[tuple[str, Any]]:
    return [('edit', arguments)]


ROME, OSLO = ('get_weather', {'city': 'Rome'}), ('get_weather', {'city': 'Oslo'})


def fed(*pieces: str) -> tuple[list[Found], set[str]]:
    scanner = CallScanner(SCHEMAS)
    found = [found for piece in pieces for found in scanner.feed(piece)]
    return [*found, *scanner.finish()], scanner.names


@each_example
def test_an_example_is_one_call_however_it_is_cut(grammar: Grammar, example: str) -> None:
    whole, names = fed(example)
    assert names == {grammar.name}
    assert [(piece.text, piece.call and json.loads(piece.call.arguments)) for piece in whole] == [
        ('', {'city': 'Rome'})
    ]
    for cut in range(1, len(example)):
        assert fed(example[:cut], example[cut:]) == (whole, names)
    assert fed(*example) == (whole, names)


def alone(grammar: Grammar) -> bool:
    """Whether its calls are calls only where they are the whole answer."""
    return not grammar.markers


@each_example
def test_a_call_may_stand_between_text(grammar: Grammar, example: str) -> None:
    before, after = 'Let me look.\n\n', '\n\nThat was it.'
    found = scan(before + example + after, SCHEMAS)
    assert [piece.text for piece in found] == ([before + example + after] if alone(grammar) else [before, '', after])


@pytest.mark.parametrize(
    ('before', 'after'),
    [
        ('```\n', '\n```'),
        ('Like this:\n```json\n', '\n```\nThat is all.'),
        ('~~~~xml\n', '\n~~~~'),
        ('1. So:\n   ````\n', '\n   ````'),
        ('````\n```\n', '\n```\n````'),
        ('Write `', '` to call it.'),
        ('``', '``'),
        ('> ', ''),
        ('"', '"'),
        ('It said: "', '"'),
        ('It said: “', '”'),
        ("The marker is '", "'."),
        ('For example: ', ' is how to call it.'),
        ('You write ', ' to call it.'),
    ],
)
@each_example
def test_a_call_that_is_quoted_is_text(grammar: Grammar, example: str, before: str, after: str) -> None:
    text = before + example + after
    assert scan(text, SCHEMAS) == [Found(text)]
    pieces, _ = fed(*text)
    assert pieces == [Found(char) for char in text]


@each_example
def test_a_tool_that_was_not_offered_is_text(grammar: Grammar, example: str) -> None:
    text = example.replace('get_weather', 'get_whether')
    assert scan(text, SCHEMAS) == [Found(text)]
    assert scan(example, {}) == [Found(example)]


@each_example
def test_arguments_of_another_tool_are_text(grammar: Grammar, example: str) -> None:
    text = example.replace('city', 'town')
    assert scan(text, SCHEMAS) == [Found(text)]


@each_example
def test_suppressed_calls_leave_nothing(grammar: Grammar, example: str) -> None:
    scanner = CallScanner(SCHEMAS, suppress=True)
    assert [*scanner.feed(example), *scanner.finish()] == []
    assert (scanner.found, scanner.names) == (True, {grammar.name})


@each_example
def test_a_call_that_is_cut_off_is_text_or_whole(grammar: Grammar, example: str) -> None:
    """A call without its closing marker is taken, one without its last arguments is not."""
    for end in range(1, len(example)):
        found = scan(example[:end], SCHEMAS)
        if found != [Found(example[:end])]:
            assert [piece.call and json.loads(piece.call.arguments) for piece in found] == [{'city': 'Rome'}]


def test_the_table() -> None:
    markers = sorted({marker for grammar in GRAMMARS for marker in grammar.markers})
    assert not [(a, b) for a, b in pairwise(markers) if b.startswith(a)]
    assert len({grammar.name for grammar in GRAMMARS}) == len(GRAMMARS)
    assert all(grammar.evidence.startswith('https://') and grammar.examples for grammar in GRAMMARS)


HERMES = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "%s"}}\n</tool_call>'
KIMI = '<|tool_call_begin|>functions.%s:%d<|tool_call_argument_begin|>{"city": "%s"}<|tool_call_end|>'
V31 = '<｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city": "%s"}<｜tool▁call▁end｜>'  # noqa: RUF001
GLM = 'get_weather\n<arg_key>city</arg_key>\n<arg_value>%s</arg_value>\n'
XML = '<function=get_weather>\n<parameter=city>\n%s\n</parameter>\n</function>\n'
INVOKE = '<invoke name="get_weather"><parameter name="city">%s</parameter></invoke>\n'
OBJECT = '{"name": "get_weather", "arguments": {"city": "%s"}}'
TWO = ('Rome', 'Oslo')


@pytest.mark.parametrize(
    'text',
    [
        f'{HERMES}\n{HERMES}' % TWO,
        f'{HERMES}{HERMES}' % TWO,
        f'<tool_call>{OBJECT}\n{OBJECT}</tool_call>' % TWO,
        f'<tool_call>[{OBJECT}, {OBJECT}]</tool_call>' % TWO,
        f'<tool_call>{OBJECT}\n<tool_call>{OBJECT}' % TWO,
        f'<tool_call>\n{XML}{XML}</tool_call>' % TWO,
        f'{XML}</tool_call>\n{XML}</tool_call>' % TWO,
        f'<minimax:tool_call>\n{INVOKE}{INVOKE}</minimax:tool_call>' % TWO,
        f'<function_calls>{INVOKE}{INVOKE}</function_calls>' % TWO,
        '<function_calls>get_weather(city="Rome")\nget_weather(city="Oslo")</function_calls>',
        '```tool_code\nget_weather(city="Rome")\nprint(get_weather(city="Oslo"))\n```',
        '[get_weather(city="Rome"), get_weather(city=\'Oslo\')]',
        '[get_weather(city="Rome"), get_weather(city="Oslo",)',
        f'[TOOL_CALLS][{OBJECT}, {OBJECT}]' % TWO,
        '[TOOL_CALLS]get_weather{"city": "Rome"}[TOOL_CALLS]get_weather[ARGS]{"city": "Oslo"}',
        f'<｜tool▁calls▁begin｜>{V31}\n{V31}<｜tool▁calls▁end｜>' % TWO,  # noqa: RUF001
        f'{V31}{V31}' % TWO,
        f'<|python_tag|>{OBJECT}; {OBJECT}' % TWO,
        f'{OBJECT}\n{OBJECT}' % TWO,
        f'[{OBJECT}, {OBJECT},]' % TWO,
        f'<|tool_call|>[{OBJECT}, {OBJECT}]' % TWO,
        f'<tool_call>{GLM}<tool_call>{GLM}</tool_call>' % TWO,
    ],
)
def test_several_calls(text: str) -> None:
    assert calls(text) == [ROME, OSLO]


def test_ids_come_as_they_were_written() -> None:
    text = f'<|tool_calls_section_begin|>{KIMI}{KIMI}<|tool_calls_section_end|>'
    assert scan(text % ('get_weather', 0, 'Rome', 'get_weather', 1, 'Oslo'), SCHEMAS) == [
        Found('', TextCall('get_weather', '{"city": "Rome"}', 'functions.get_weather:0')),
        Found('', TextCall('get_weather', '{"city": "Oslo"}', 'functions.get_weather:1')),
    ]
    command = '<|START_ACTION|>[{"tool_call_id": "7", "tool_name": "pwd", "parameters": {}}]<|END_ACTION|>'
    assert scan(command, SCHEMAS) == [Found('', TextCall('pwd', '{}', '7'))]
    mistral = '[TOOL_CALLS]pwd[CALL_ID]a1B2c3D4e[ARGS]{}'
    assert scan(mistral, SCHEMAS) == [Found('', TextCall('pwd', '{}', 'a1B2c3D4e'))]


def test_a_block_is_one_thing() -> None:
    """One call that is none makes text of all."""
    text = f'<|tool_calls_section_begin|>{KIMI}{KIMI}<|tool_calls_section_end|>'
    text %= ('get_weather', 0, 'Rome', 'other', 1, 'Oslo')
    assert scan(text, SCHEMAS) == [Found(text)]


@pytest.mark.parametrize(
    ('text', 'expected'),
    [
        ('<tool_call>{"name": "pwd"}</tool_call>', [('pwd', {})]),
        ('<tool_call>{"name": "pwd", "arguments": null}</tool_call>', [('pwd', {})]),
        ('<tool_call>pwd</tool_call>', [('pwd', {})]),
        ('<tool_call>\n<function=pwd>\n</function>\n</tool_call>', [('pwd', {})]),
        ('<|tool_call>call:pwd{}<tool_call|>', [('pwd', {})]),
        ('<function=pwd>{}</function>', [('pwd', {})]),
        ('[pwd()]', [('pwd', {})]),
        ('<|channel|>commentary to=pwd<|message|>{}', [('pwd', {})]),
        ('<tool_call>{"arguments": {"path": "a",}, "name": "edit",}</tool_call>', edit(path='a')),
        ('<tool_call>{"name": "edit", "arguments": {"line": 1}}</tool_call', edit(line=1)),
        ("<tool_call>{'name': 'edit', 'arguments': {'dry': True, 'limit': None}}</tool_call>",
         edit(dry=True, limit=None)),
        ('<tool_call>{"name": "edit", "arguments": "{\\"line\\": 3}"}</tool_call>', edit(line=3)),
        ('<tool_call>{"name": "edit", "arguments": {"text": "a\nb\tc"}}</tool_call>', edit(text='a\nb\tc')),
        ('<tool_call>{"name": "edit", "arguments": {"text": "</tool_call>"}}</tool_call>', edit(text='</tool_call>')),
        ('<tool_call>{"name": "edit", "arguments": {"text": "}]\\""}}</tool_call>', edit(text='}]"')),
        ('<tool_call>{"name": "edit", "arguments": {"line": 1}}}</tool_call>', edit(line=1)),
        ('<tool_call>{"name": "edit", "arguments": {"line": 1}\n</tool_call>', edit(line=1)),
        ('<tool_call>{"name": "functions.edit", "arguments": {"line": 1}}</tool_call>', edit(line=1)),
        ('<|tool_call>call:edit{text:<|"|>a}"<b><|"|>,line:20000,tags:[<|"|>x<|"|>],options:{deep:true}}<tool_call|>',
         edit(text='a}"<b>', line=20000, tags=['x'], options={'deep': True})),
        ('[edit(path="(a", tags=["x", \'it"s\'], options={"deep": true}, line=-1, note=None, ratio=1e3)]',
         edit(path='(a', tags=['x', 'it"s'], options={'deep': True}, line=-1, note=None, ratio=1000.0)),
        ('<|python_tag|>edit.call(text="a\\nb", dry=False)', edit(text='a\nb', dry=False)),
        ('<tool_call><function=edit><parameter=text>a</parameter></tool_call>', edit(text='a')),
        ('<function=edit>\n<parameter=text>\n<parameter=x></parameter>y\n</parameter>\n</function>',
         edit(text='<parameter=x></parameter>y')),
        ('<function=edit><parameter=text>\n  indented\n\n</parameter></function>', edit(text='  indented\n')),
        ('<function=edit><parameter=text>a &amp;&lt; b</parameter></function>', edit(text='a &amp;&lt; b')),
        ('<function=edit><parameter=text>42</parameter><parameter=line>42</parameter></function>',
         edit(text='42', line=42)),
    ],
)  # fmt: skip
def test_what_models_make_of_their_formats(text: str, expected: list[tuple[str, Any]]) -> None:
    assert calls(text) == expected
    found, _ = fed(*text)
    assert found == scan(text, SCHEMAS)


@pytest.mark.parametrize(
    'text',
    [
        '<tool_call>{"name": "edit", "arguments": [1]}</tool_call>',
        '<tool_call>{"name": "edit", "arguments": "no"}</tool_call>',
        '<tool_call>{"name": "get_weather", "arguments": {}}</tool_call>',
        '<tool_call>{"name": "edit", "arguments": {"line": 1}} and so on',
        '<tool_call>{"name": "edit", "arguments": {"line": 1}',
        '<tool_call>{"arguments": {"line": 1}}</tool_call>',
        '<tool_call>{"na\\me": "edit", "arguments": {"line": 1}}</tool_call>',
        '<tool_call>{name: "edit"}</tool_call>',
        '{"name": "edit"}',
        '{"name": "edit", "description": "Edits."}',
        '{"type": "object", "name": "edit", "arguments": {}}',
        '{"name": "edit", "arguments": {"line": 1}} is the call.',
        'Call: {"name": "edit", "arguments": {"line": 1}}',
        '[edit(1)]',
        '[edit(line=1), edit]',
        '[edit(line=1)(line=2)]',
        '[edit(line=1, line=2)]',
        '[edit(**{"line": 1})]',
        '[edit(line=1 2)]',
        '[edit(line=other())]',
        '[edit](https://example.com)',
        '<|start|>assistant<|channel|>final<|message|>Done.',
        '<|channel|>commentary<|message|>I will look.',
    ],
)
def test_what_is_no_call(text: str) -> None:
    assert scan(text, SCHEMAS) == [Found(text)]
    assert ''.join(piece.text for piece in fed(*text)[0]) == text


@pytest.mark.parametrize(
    ('name', 'text', 'value'),
    [
        ('path', '007', '007'),
        ('path', 'null', 'null'),
        ('line', ' 7 ', 7),
        ('line', '7.0', 7),
        ('line', '7.5', '7.5'),
        ('line', 'seven', 'seven'),
        ('line', 'true', 'true'),
        ('line', '1, "x": 2', '1, "x": 2'),
        ('ratio', '7', 7),
        ('ratio', '-.5', -0.5),
        ('ratio', '1e400', '1e400'),
        ('dry', 'True', True),
        ('dry', 'yes', 'yes'),
        ('tags', '["a", "b",]', ['a', 'b']),
        ('tags', "['a']", ['a']),
        ('tags', 'a, b', 'a, b'),
        ('options', '{"deep": false}', {'deep': False}),
        ('mode', 'fast', 'fast'),
        ('mode', '3', 3),
        ('limit', 'null', None),
        ('limit', '5', 5),
        ('note', 'None', None),
        ('note', '5', '5'),
        ('any', '5', 5),
        ('any', '{"a": [1]}', {'a': [1]}),
        ('any', '007', '007'),
        ('any', 'text', 'text'),
    ],
)
def test_text_is_typed_by_the_schema(name: str, text: str, value: Any) -> None:
    assert calls(f'<function=edit><parameter={name}>\n{text}\n</parameter></function>') == edit(**{name: value})
    assert calls(f'<tool_call>edit<arg_key>{name}</arg_key><arg_value>{text}</arg_value></tool_call>') == edit(
        **{name: value}
    )


def test_dsml_says_what_is_a_string() -> None:
    parameter = '<|DSML|parameter name="{}" string="{}">5</|DSML|parameter>'
    text = f'<|DSML|tool_calls><|DSML|invoke name="edit">{parameter.format("any", "true")}'
    text += f'{parameter.format("line", "false")}</|DSML|invoke></|DSML|tool_calls>'
    assert calls(text) == edit(any='5', line=5)
