"""Bodies in the shape that a profile asks for: for each knob what goes in and the whole that comes out."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from copy import deepcopy
from itertools import pairwise
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import json_values

from oaicompat._requests import ADAPTERS, adapted, adapts

Fields = dict[str, Any]


@pytest.fixture(autouse=True, scope='module')
def schemas() -> Iterator[None]:
    """A stand-in for the rewriting of schemas, which has tests of its own: it drops the keywords it is told."""

    def rewritten(schema: Fields, rewrites: tuple[str, ...]) -> Fields:
        kept = {key: value for key, value in schema.items() if key not in rewrites}
        return schema if kept == schema else kept

    module = ModuleType('oaicompat._schemas')
    module.__dict__['rewritten'] = rewritten
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, 'oaicompat._schemas', module)
        yield


# What bodies are made of


def said(role: str, content: Any, **fields: Any) -> Fields:
    return {'role': role, 'content': content, **fields}


def text(value: str) -> Fields:
    return {'type': 'text', 'text': value}


def call(call_id: str, name: str = 'look') -> Fields:
    return {'id': call_id, 'type': 'function', 'function': {'name': name, 'arguments': '{}'}}


def calling(*ids: str, content: Any = None, **fields: Any) -> Fields:
    return said('assistant', content, tool_calls=[call(call_id) for call_id in ids], **fields)


def result(call_id: str, content: Any = 'seen') -> Fields:
    return said('tool', content, tool_call_id=call_id)


def tool(name: str, **fields: Any) -> Fields:
    return {'type': 'function', 'function': {'name': name, 'parameters': {'type': 'object'}, **fields}}


def flat(name: str, **fields: Any) -> Fields:
    return {'type': 'function', 'name': name, 'parameters': {'type': 'object'}, **fields}


def chat(*messages: Any, **fields: Any) -> Fields:
    return {'model': 'm', 'messages': list(messages), **fields}


def responses(**fields: Any) -> Fields:
    return {'model': 'm', 'input': 'hi', **fields}


HI = said('user', 'hi')
SYSTEM = said('system', 'Be kind.')
IMAGE = {'type': 'image_url', 'image_url': {'url': 'https://example.com/cat.png'}}
SCHEMA = {'type': 'object', 'properties': {'city': {'type': 'string', 'title': 'Ort für'}}}
CITY = {'name': 'City', 'description': 'a place', 'schema': SCHEMA, 'strict': True}
FORMAT = {'type': 'json_schema', 'json_schema': CITY}
FLAT = {'type': 'json_schema', **CITY}
OBJECT = {'type': 'json_object'}
ANY_OBJECT = {'name': 'json_object', 'schema': {'type': 'object'}, 'strict': False}
ASK_OBJECT = 'Answer with one JSON object (application/json) and nothing else.'
ASK_CITY = (
    'Answer with JSON (application/json) and nothing else. It must fit this JSON schema, named City (a place):\n'
    '{"type":"object","properties":{"city":{"type":"string","title":"Ort für"}}}'
)
NAMED = {'type': 'function', 'function': {'name': 'b'}}
A_AND_C = [{'type': 'function', 'function': {'name': name}} for name in 'ac']
ALLOWED = {'type': 'allowed_tools', 'allowed_tools': {'mode': 'auto', 'tools': A_AND_C}}
TOOLS = [tool('a'), tool('b'), tool('c')]
CUSTOM = {'type': 'custom', 'custom': {'name': 'a'}}
LOCKED = [{'type': 'reasoning.encrypted', 'data': 'c2VjcmV0'}]
SEARCH = {'type': 'web_search', 'filters': None}
MCP = {'type': 'mcp', 'server_label': 'wiki', 'server_url': 'https://example.com'}

# Body, profile, and the body that is sent; `None` where that is the very same object.
Row = tuple[Fields, Fields, Fields | None]

NO_NAMES = {'compat_named_tool_choice': False}
NO_FORCE = {'compat_required_tool_choice': False}
CHOICES: dict[str, Row] = {
    'named': (
        chat(HI, tools=TOOLS, tool_choice=NAMED),
        NO_NAMES,
        chat(HI, tools=[tool('b')], tool_choice='required'),
    ),
    'named, absent': (
        chat(HI, tools=[tool('a')], tool_choice=NAMED),
        NO_NAMES,
        chat(HI, tools=[tool('a')], tool_choice='required'),
    ),
    'named, no tools': (chat(HI, tool_choice=NAMED), NO_NAMES, chat(HI, tool_choice='required')),
    'named, Responses': (
        responses(tools=[flat('a'), flat('b'), SEARCH], tool_choice={'type': 'function', 'name': 'b'}),
        NO_NAMES,
        responses(tools=[flat('b')], tool_choice='required'),
    ),
    'custom': (
        chat(tools=[tool('a'), CUSTOM], tool_choice=CUSTOM),
        NO_NAMES,
        chat(tools=[CUSTOM], tool_choice='required'),
    ),
    'allowed': (
        chat(HI, tools=TOOLS, tool_choice=ALLOWED),
        NO_NAMES,
        chat(HI, tools=[tool('a'), tool('c')], tool_choice='auto'),
    ),
    'allowed, Responses': (
        responses(
            tools=[flat('a'), flat('b'), SEARCH, MCP],
            tool_choice={
                'type': 'allowed_tools',
                'mode': 'required',
                'tools': [{'type': 'function', 'name': 'b'}, {'type': 'web_search'}, {**MCP, 'server_url': None}],
            },
        ),
        NO_NAMES,
        responses(tools=[flat('b'), SEARCH, MCP], tool_choice='required'),
    ),
    'allowed, odd': (chat(tool_choice={'type': 'allowed_tools', 'mode': 1, 'tools': None}), NO_NAMES, None),
    'name that is none': (chat(tools=TOOLS, tool_choice={**NAMED, 'function': {'name': [1]}}), NO_NAMES, None),
    'hosted tool': (responses(tools=[SEARCH], tool_choice={'type': 'web_search'}), NO_NAMES, None),
    'required stays': (chat(HI, tools=TOOLS, tool_choice='required'), NO_NAMES, None),
    'required': (chat(tools=TOOLS, tool_choice='required'), NO_FORCE, chat(tools=TOOLS, tool_choice='auto')),
    'any': (responses(tool_choice='any'), NO_FORCE, responses(tool_choice='auto')),
    'named, unforced': (chat(tools=TOOLS, tool_choice=NAMED), NO_FORCE, chat(tools=[tool('b')], tool_choice='auto')),
    'none stays': (chat(tools=TOOLS, tool_choice='none'), NO_FORCE, None),
    'odd choice': (chat(tools=TOOLS, tool_choice=[{}]), {**NO_NAMES, **NO_FORCE}, None),
    'odd tools': (
        chat(tools=[None, 'b', {'type': ['function']}, tool('b')], tool_choice=NAMED),
        NO_NAMES,
        chat(tools=[tool('b')], tool_choice='required'),
    ),
}

NO_OBJECT = {'compat_json_object': False}
NO_SCHEMA = {'compat_json_schema': False}
NEITHER = {**NO_OBJECT, **NO_SCHEMA}
NOT_STRICT = {'compat_strict': False}
FORMATS: dict[str, Row] = {
    'object': (
        chat(HI, response_format=OBJECT),
        NO_OBJECT,
        chat(HI, response_format={'type': 'json_schema', 'json_schema': ANY_OBJECT}),
    ),
    'object, Responses': (
        responses(text={'format': OBJECT, 'verbosity': 'low'}),
        NO_OBJECT,
        responses(text={'format': {'type': 'json_schema', **ANY_OBJECT}, 'verbosity': 'low'}),
    ),
    'object, neither': (
        chat(SYSTEM, HI, response_format=OBJECT),
        NEITHER,
        chat(said('system', f'Be kind.\n\n{ASK_OBJECT}'), HI),
    ),
    'object, not strict': (
        chat(HI, response_format=OBJECT),
        {**NO_OBJECT, **NOT_STRICT},
        chat(
            HI,
            response_format={
                'type': 'json_schema',
                'json_schema': {'name': 'json_object', 'schema': {'type': 'object'}},
            },
        ),
    ),
    'schema': (
        chat(HI, response_format=FORMAT),
        NO_SCHEMA,
        chat(said('system', ASK_CITY), HI, response_format=OBJECT),
    ),
    'schema, neither, list of parts': (
        chat(said('developer', [text('Be kind.')]), HI, response_format=FORMAT),
        NEITHER,
        chat(said('developer', [text('Be kind.'), text(ASK_CITY)]), HI),
    ),
    'schema, Responses': (
        responses(text={'format': FLAT}, instructions='Be kind.'),
        NO_SCHEMA,
        responses(text={'format': OBJECT}, instructions=f'Be kind.\n\n{ASK_CITY}'),
    ),
    'schema, neither, Responses': (responses(text={'format': FLAT}), NEITHER, responses(instructions=ASK_CITY)),
    'schema, neither, Responses with more': (
        responses(text={'format': FLAT, 'verbosity': 'low'}),
        NEITHER,
        responses(instructions=ASK_CITY, text={'verbosity': 'low'}),
    ),
    'schema without name': (
        chat(response_format={'type': 'json_schema', 'json_schema': {'schema': {}}}),
        NEITHER,
        chat(said('system', 'Answer with JSON (application/json) and nothing else. It must fit this JSON schema:\n{}')),
    ),
    'no schema': (chat(response_format={'type': 'json_schema', 'json_schema': {'name': 'x'}}), NEITHER, None),
    'schema that is no JSON': (
        chat(response_format={'type': 'json_schema', 'json_schema': {'schema': {'const': object}}}),
        NEITHER,
        None,
    ),
    'no place for a prompt': ({'messages': 'hi', 'response_format': FORMAT}, NEITHER, None),
    'odd instructions': (responses(text={'format': FLAT}, instructions=['x']), NEITHER, None),
    'odd first message': (
        chat(said('system', {'x': 1}), HI, response_format=OBJECT),
        NEITHER,
        chat(said('system', ASK_OBJECT), said('system', {'x': 1}), HI),
    ),
    'other formats': (chat(HI, response_format={'type': 'text'}), NEITHER, None),
    'odd format': (chat(HI, response_format='json_object'), NEITHER, None),
    'odd text': (responses(text='x'), NEITHER, None),
    'strict': (
        chat(tools=[tool('a', strict=True), tool('b'), None], response_format=FORMAT),
        NOT_STRICT,
        chat(
            tools=[tool('a'), tool('b'), None],
            response_format={'type': 'json_schema', 'json_schema': {**CITY} | {'strict': ...}},
        ),
    ),
    'strict, Responses': (
        responses(tools=[flat('a', strict=False), SEARCH], text={'format': FLAT}),
        NOT_STRICT,
        responses(tools=[flat('a'), SEARCH], text={'format': {**FLAT} | {'strict': ...}}),
    ),
    'nothing strict': (chat(HI, tools=TOOLS), NOT_STRICT, None),
    'schemas': (
        chat(tools=[tool('a', parameters={'type': 'object', '$defs': {}}), tool('b'), 1], response_format=FORMAT),
        {'compat_schema': ('$defs', 'properties')},
        chat(
            tools=[tool('a'), tool('b'), 1],
            response_format={'type': 'json_schema', 'json_schema': {**CITY, 'schema': {'type': 'object'}}},
        ),
    ),
    'schemas, Responses': (
        responses(tools=[flat('a', parameters={'$defs': {}}), SEARCH], text={'format': FLAT}),
        {'compat_schema': ('$defs', 'properties')},
        responses(tools=[flat('a', parameters={}), SEARCH], text={'format': {**FLAT, 'schema': {'type': 'object'}}}),
    ),
    'schemas that stay': (chat(tools=[*TOOLS, tool('d', parameters=None)]), {'compat_schema': ('$defs',)}, None),
    'a schema in the prompt stays whole': (
        chat(HI, response_format=FORMAT),
        {**NO_SCHEMA, 'compat_schema': ('properties',)},
        chat(said('system', ASK_CITY), HI, response_format=OBJECT),
    ),
    'a prompt without a system role': (
        chat(HI, response_format=FORMAT),
        {**NEITHER, 'compat_system': 'user'},
        chat(said('user', f'{ASK_CITY}\n\nhi')),
    ),
}

OMITS: dict[str, Row] = {
    'field': (chat(HI, store=True, seed=None), {'compat_omit': ('store', 'seed', 'n')}, chat(HI)),
    'in messages': (chat({**HI, 'name': 'Ada'}, 7), {'compat_omit': ('messages.name',)}, chat(HI, 7)),
    'in tools': (
        chat(tools=[tool('a', strict=True), tool('b')]),
        {'compat_omit': ['tools.function.strict']},
        chat(tools=[tool('a'), tool('b')]),
    ),
    'emptied': (
        chat(HI, stream_options={'include_usage': True}),
        {'compat_omit': ('stream_options.include_usage',)},
        chat(HI),
    ),
    'not emptied': (
        chat(HI, stream_options={'include_usage': True, 'x': 0}),
        {'compat_omit': ('stream_options.include_usage',)},
        chat(HI, stream_options={'x': 0}),
    ),
    'empty before': (chat(HI, stream_options={}), {'compat_omit': ('stream_options.include_usage',)}, None),
    'not there': (chat(HI, user=None), {'compat_omit': ('store', 'user.name', 'messages.name.first')}, None),
    'names no longer part': (
        chat({**HI, 'name': 'Ada'}, {**HI, 'name': 'Bob'}),
        {'compat_omit': ('messages.name',), 'compat_roles': 'alternate'},
        chat(said('user', 'hi\n\nhi')),
    ),
    'last': (
        chat(max_tokens=9),
        {'compat_omit': ('max_completion_tokens',), 'compat_token_limit': 'max_completion_tokens'},
        chat(),
    ),
    'limit': (chat(max_completion_tokens=9), {'compat_token_limit': 'max_tokens'}, chat(max_tokens=9)),
    'limit, the other way': (
        chat(max_tokens=9),
        {'compat_token_limit': 'max_completion_tokens'},
        chat(max_completion_tokens=9),
    ),
    'both limits': (
        chat(max_completion_tokens=9, max_tokens=5),
        {'compat_token_limit': 'max_completion_tokens'},
        chat(max_completion_tokens=9),
    ),
    'both limits, one null': (
        chat(max_completion_tokens=9, max_tokens=None),
        {'compat_token_limit': 'max_tokens'},
        chat(max_tokens=9),
    ),
    'limit as it should be': (chat(max_tokens=9), {'compat_token_limit': 'max_tokens'}, None),
    'limit, unknown name': (chat(max_tokens=9), {'compat_token_limit': 'limit'}, None),
    'limit, Responses': (responses(max_output_tokens=9), {'compat_token_limit': 'max_tokens'}, None),
}

STRING = {'compat_text_content': 'string'}
CONTENT: dict[str, Row] = {
    'null': (
        chat(calling('1', content=''), calling('2', content=[]), calling('3', content='hm')),
        {'compat_assistant_content': 'null'},
        chat(calling('1'), calling('2'), calling('3', content='hm')),
    ),
    'empty': (
        chat({'role': 'assistant', 'function_call': {'name': 'look'}}, calling('2'), said('assistant', None)),
        {'compat_assistant_content': 'empty'},
        chat(said('assistant', '', function_call={'name': 'look'}), calling('2', content=''), said('assistant', None)),
    ),
    'omit': (
        chat(calling('1'), calling('2', content=[text('hm')])),
        {'compat_assistant_content': 'omit'},
        chat({'role': 'assistant', 'tool_calls': [call('1')]}, calling('2', content=[text('hm')])),
    ),
    'content that fits': (chat(HI, None, calling('1'), 'x'), {'compat_assistant_content': 'null'}, None),
    'strings': (
        chat(*(said(role, [text('a'), text(''), text('b')]) for role in ('system', 'developer', 'user', 'assistant'))),
        STRING,
        chat(*(said(role, 'a\n\nb') for role in ('system', 'developer', 'user', 'assistant'))),
    ),
    'strings of tools': (chat(result('1', [text('a'), text('b')])), STRING, chat(result('1', 'a\nb'))),
    'an empty list': (chat(said('user', [])), STRING, chat(said('user', ''))),
    'a list with an image': (chat(said('user', [text('a'), IMAGE])), STRING, None),
    'odd parts': (
        chat(said('user', [text('a'), None]), said('user', [{'type': 'text'}]), said('x', [text('a')])),
        STRING,
        None,
    ),
}

LIFT = {'compat_late_system': 'lift'}
LATE_USER = {'compat_late_system': 'user'}
NO_SYSTEM = {'compat_system': 'user'}
SYSTEMS: dict[str, Row] = {
    'lift': (
        chat(SYSTEM, HI, said('system', 'A'), said('assistant', 'yes'), said('developer', [text('B'), text('C')])),
        LIFT,
        chat(said('system', 'Be kind.\n\nA\n\nB\n\nC'), HI, said('assistant', 'yes')),
    ),
    'lift to a list': (
        chat(said('system', [text('A')]), HI, said('system', 'B')),
        LIFT,
        chat(said('system', [text('A'), text('B')]), HI),
    ),
    'lift to the last leading one': (
        chat(SYSTEM, said('developer', 'A'), HI, said('system', 'B')),
        LIFT,
        chat(SYSTEM, said('developer', 'A\n\nB'), HI),
    ),
    'lift, none leads': (
        chat(HI, said('system', 'A', name='x'), HI, said('system', 'B')),
        LIFT,
        chat(said('system', 'A\n\nB', name='x'), HI, HI),
    ),
    'lift, odd content': (
        chat(said('system', 5), HI, said('system', {'x': 1}), said('system', 'A'), {'role': 'system'}),
        LIFT,
        chat(said('system', 5), said('system', 'A'), HI, said('system', {'x': 1})),
    ),
    'lift, one object again and again': (
        chat(SYSTEM, HI, SYSTEM, SYSTEM),
        LIFT,
        chat(said('system', 'Be kind.\n\nBe kind.\n\nBe kind.'), HI),
    ),
    'lift, one object, none leads': (chat(HI, SYSTEM, SYSTEM), LIFT, chat(said('system', 'Be kind.\n\nBe kind.'), HI)),
    'lift, none late': (chat(SYSTEM, SYSTEM, HI), LIFT, None),
    'late as user': (
        chat(SYSTEM, HI, said('system', [text('A')], name='x'), None, said('developer', 'B')),
        LATE_USER,
        chat(SYSTEM, HI, said('user', [text('A')], name='x'), None, said('user', 'B')),
    ),
    'none late': (chat(SYSTEM, HI), LATE_USER, None),
    'fold': (
        chat(SYSTEM, said('system', [text('A'), text('B')]), HI),
        NO_SYSTEM,
        chat(said('user', 'Be kind.\n\nA\n\nB\n\nhi')),
    ),
    'fold into a list': (
        chat(SYSTEM, said('user', [IMAGE], name='Ada')),
        NO_SYSTEM,
        chat(said('user', [text('Be kind.'), IMAGE], name='Ada')),
    ),
    'fold late ones': (
        chat(HI, said('assistant', 'yes'), said('system', 'A'), calling('1'), result('1'), HI),
        NO_SYSTEM,
        chat(HI, said('assistant', 'yes'), calling('1'), result('1'), said('user', 'A\n\nhi')),
    ),
    'no user behind': (
        chat(HI, said('system', 'A'), said('assistant', 'yes'), said('system', 'B')),
        NO_SYSTEM,
        chat(HI, said('assistant', 'yes'), said('user', 'A\n\nB')),
    ),
    'system alone': (chat(SYSTEM), NO_SYSTEM, chat(said('user', 'Be kind.'))),
    'fold, odd content': (
        chat(said('system', {'x': 1}), said('user', 5), SYSTEM, HI),
        NO_SYSTEM,
        chat(said('user', {'x': 1}), said('user', 5), said('user', 'Be kind.\n\nhi')),
    ),
    'no system': (chat(HI, None), NO_SYSTEM, None),
    'lift, then fold': (
        chat(SYSTEM, HI, said('system', 'A')),
        {**LIFT, **NO_SYSTEM},
        chat(said('user', 'Be kind.\n\nA\n\nhi')),
    ),
}

TURNS = {'compat_roles': 'alternate'}
AFTER_TOOL = {'compat_after_tool': 'assistant'}
USER_LAST = {'compat_last_message': 'user'}
ROLES: dict[str, Row] = {
    'users': (
        chat(SYSTEM, SYSTEM, HI, said('user', 'ho'), said('user', [IMAGE])),
        TURNS,
        chat(SYSTEM, SYSTEM, said('user', [text('hi\n\nho'), IMAGE])),
    ),
    'assistants': (
        chat(HI, said('assistant', 'a', reasoning='x'), said('assistant', None), calling('1', reasoning='y')),
        TURNS,
        chat(HI, calling('1', content='a', reasoning='x\n\ny')),
    ),
    'calls stay last': (chat(HI, calling('1'), said('assistant', 'a'), HI), TURNS, None),
    'a blank reasoning is none': (
        chat(HI, said('assistant', 'a', reasoning='x'), calling('1', reasoning=' ')),
        TURNS,
        chat(HI, calling('1', content='a', reasoning='x')),
    ),
    'details': (
        chat(HI, said('assistant', '', reasoning_details=LOCKED), said('assistant', 'b', reasoning_details=[{}])),
        TURNS,
        chat(HI, said('assistant', 'b', reasoning_details=[*LOCKED, {}])),
    ),
    'two speakers': (chat({**HI, 'name': 'Ada'}, {**HI, 'name': 'Bob'}, HI), TURNS, None),
    'one speaker': (
        chat({**HI, 'name': 'Ada'}, {**HI, 'name': 'Ada'}),
        TURNS,
        chat(said('user', 'hi\n\nhi', name='Ada')),
    ),
    'fields that clash': (chat(said('user', 'a', x=1), said('user', 'b', x=2)), TURNS, None),
    'odd content apart': (chat(HI, said('user', 5), None, HI), TURNS, None),
    'no content': (chat(HI, {'role': 'assistant'}, {'role': 'assistant'}), TURNS, chat(HI, {'role': 'assistant'})),
    'assistant first': (
        chat(SYSTEM, said('assistant', 'a'), HI),
        TURNS,
        chat(SYSTEM, said('user', '...'), said('assistant', 'a'), HI),
    ),
    'as they should be': (chat(SYSTEM, HI, calling('1'), result('1'), said('assistant', 'a')), TURNS, None),
    'after tool': (
        chat(HI, calling('1', '2'), result('1'), result('2'), HI),
        AFTER_TOOL,
        chat(HI, calling('1', '2'), result('1'), result('2'), said('assistant', 'Done.'), HI),
    ),
    'assistant after tool': (chat(HI, calling('1'), result('1'), said('assistant', 'a'), HI), AFTER_TOOL, None),
    'user last': (
        chat(HI, said('assistant', 'a')),
        USER_LAST,
        chat(HI, said('assistant', 'a'), said('user', 'Continue.')),
    ),
    'call last': (chat(HI, calling('1')), USER_LAST, None),
    'no messages': (chat(), {**USER_LAST, **TURNS, **AFTER_TOOL}, None),
    'a late system message between tool and user': (
        chat(SYSTEM, HI, calling('1'), said('system', 'A'), result('1'), HI),
        {'compat_tool_order': 'paired', **LATE_USER, **TURNS, **AFTER_TOOL},
        chat(SYSTEM, HI, calling('1'), result('1'), said('assistant', 'Done.'), said('user', 'A\n\nhi')),
    ),
}

PAIRED = {'compat_tool_order': 'paired'}
ORDER: dict[str, Row] = {
    'moved': (
        chat(HI, calling('1', '2'), SYSTEM, result('2', 'b'), HI, result('1', 'a')),
        PAIRED,
        chat(HI, calling('1', '2'), result('1', 'a'), result('2', 'b'), SYSTEM, HI),
    ),
    'no call': (
        chat(result('1'), HI, calling('1'), result('1', 'b'), {**result('2', [text('a'), text('b')]), 'name': 'look'}),
        PAIRED,
        chat(
            said('user', 'Result of the tool 1: seen'),
            HI,
            calling('1'),
            result('1', 'b'),
            said('user', 'Result of the tool look: a\nb'),
        ),
    ),
    'no call, image': (
        chat(result('1', [IMAGE])),
        PAIRED,
        chat(said('user', [text('Result of the tool 1:'), IMAGE])),
    ),
    'no call, odd content': (chat(result('1', {'x': 1})), PAIRED, None),
    'no result': (
        chat(calling('1', '2'), result('2'), HI),
        PAIRED,
        chat(calling('1', '2'), result('1', 'No result.'), result('2'), HI),
    ),
    'ids counted anew': (
        chat(HI, calling('1'), result('1', 'a'), HI, calling('1'), HI, result('1', 'b')),
        PAIRED,
        chat(HI, calling('1'), result('1', 'a'), HI, calling('1'), result('1', 'b'), HI),
    ),
    'one id twice': (
        chat(calling('1', '1'), HI, result('1', 'a'), result('1', 'b')),
        PAIRED,
        chat(calling('1', '1'), result('1', 'a'), result('1', 'b'), HI),
    ),
    'two results': (
        chat(calling('1', '2'), result('1', 'a'), result('2'), result('1', 'b')),
        PAIRED,
        chat(calling('1', '2'), result('1', 'a'), result('1', 'b'), result('2')),
    ),
    'no ids': (
        chat(said('assistant', None, tool_calls=[{'function': {}}, 5]), HI, said('tool', 'a'), result('', 'b')),
        PAIRED,
        None,
    ),
    'odd': (chat(None, 5, said('assistant', 'a', tool_calls=5), {'role': [], 'tool_call_id': '1'}), PAIRED, None),
    'in order': (chat(HI, calling('1', '2'), result('1'), result('2'), said('assistant', 'a')), PAIRED, None),
}

NEVER = {'compat_echo_reasoning': 'never'}
FIELD = {'compat_echo_reasoning': 'reasoning_content'}
IN_DETAILS = {'compat_echo_reasoning': 'reasoning_details'}
THOUGHT = {'type': 'thinking', 'thinking': [text('hm')]}
REASONING: dict[str, Row] = {
    'never': (
        chat(
            {**HI, 'reasoning': 'mine'},
            said('assistant', '<think>a</think>b', reasoning_content='x', reasoning='', thinking=1),
            calling('1', reasoning_text='x', reasoning_details=LOCKED),
        ),
        NEVER,
        chat({**HI, 'reasoning': 'mine'}, said('assistant', '<think>a</think>b'), calling('1')),
    ),
    'never, in parts': (
        chat(
            said('assistant', [THOUGHT, text('a'), None]), said('assistant', [THOUGHT]), calling('1', content=[THOUGHT])
        ),
        NEVER,
        chat(said('assistant', [text('a'), None]), said('assistant', ''), calling('1')),
    ),
    'never, parts to a string': (
        chat(said('assistant', [THOUGHT, text('a')])),
        {**NEVER, **STRING},
        chat(said('assistant', 'a')),
    ),
    'never, Responses': (
        responses(input=[HI, {'type': 'reasoning', 'id': 'r', 'summary': []}, 5]),
        NEVER,
        responses(input=[HI, 5]),
    ),
    'never, none there': (chat(HI, said('assistant', 'a')), NEVER, None),
    'never, none there, Responses': (responses(input=[HI]), NEVER, None),
    'one field': (
        chat(
            HI,
            said('assistant', 'a', reasoning='x'),
            said('assistant', 'a', thinking='x', reasoning_content='y'),
            said('assistant', 'a', reasoning_details=[{'text': 'x'}, {'summary': 'y'}, 'z', {'data': 'w'}]),
            said('assistant', 'a', reasoning_text={'content': 'x'}, reasoning=''),
        ),
        FIELD,
        chat(
            HI,
            said('assistant', 'a', reasoning_content='x'),
            said('assistant', 'a', reasoning_content='y'),
            said('assistant', 'a', reasoning_content='x\n\ny\n\nz'),
            said('assistant', 'a', reasoning_content='x'),
        ),
    ),
    'calls without reasoning': (
        chat(HI, calling('1'), result('1'), calling('2', reasoning_content=''), said('assistant', 'a')),
        FIELD,
        chat(
            HI,
            calling('1', reasoning_content=' '),
            result('1'),
            calling('2', reasoning_content=' '),
            said('assistant', 'a'),
        ),
    ),
    'what only the server can read': (
        chat(calling('1', reasoning_details=LOCKED), calling('2', reasoning_content=5)),
        FIELD,
        chat(calling('1', reasoning_details=LOCKED, reasoning_content=' '), calling('2', reasoning_content=5)),
    ),
    'details': (
        chat(said('assistant', 'a', reasoning='x'), calling('1', reasoning_details=LOCKED), calling('2')),
        IN_DETAILS,
        chat(
            said('assistant', 'a', reasoning_details=[{'type': 'reasoning.text', 'text': 'x'}]),
            calling('1', reasoning_details=LOCKED),
            calling('2', reasoning_details=[{'type': 'reasoning.text', 'text': ' '}]),
        ),
    ),
    'as it should be': (chat(HI, calling('1', reasoning_content='x'), None), FIELD, None),
    'one field, Responses': (responses(input=[{'type': 'reasoning'}]), FIELD, None),
    'reasoning of messages that become one': (
        chat(HI, said('assistant', 'a', reasoning='x'), calling('1', reasoning_content='y')),
        {**FIELD, **TURNS},
        chat(HI, calling('1', content='a', reasoning_content='x\n\ny')),
    ),
}

# `test_prompted` has the others.
BY_PROMPT: dict[str, Row] = {
    'no tools': (chat(HI, tools=[], tool_choice='auto'), {'compat_tools': 'prompted'}, chat(HI)),
}

TABLES = {
    'tools': BY_PROMPT,
    'choice': CHOICES,
    'format': FORMATS,
    'omit': OMITS,
    'content': CONTENT,
    'system': SYSTEMS,
    'roles': ROLES,
    'order': ORDER,
    'reasoning': REASONING,
}
ROWS = {f'{table}: {name}': row for table, rows in TABLES.items() for name, row in rows.items()}


def tidy(value: Any) -> Any:
    """`value` without the keys that a row of a table strikes out with `...`."""
    if isinstance(value, dict):
        return {key: tidy(item) for key, item in value.items() if item is not ...}
    return [tidy(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize(('body', 'profile', 'expected'), ROWS.values(), ids=ROWS)
def test_row(body: Fields, profile: Fields, expected: Fields | None) -> None:
    before = deepcopy(body)
    sent = adapted(body, profile)
    assert adapts(profile)
    assert body == before
    assert sent == (body if expected is None else tidy(expected))
    assert (sent is body) == (expected is None)
    assert adapted(sent, profile) is sent


def test_what_did_not_change_is_shared() -> None:
    body = chat(SYSTEM, HI, calling('1', content=''), tools=TOOLS)
    sent = adapted(body, {'compat_assistant_content': 'null'})
    assert sent['tools'] is TOOLS
    assert [one is other for one, other in zip(sent['messages'], body['messages'], strict=True)] == [True, True, False]


DEFAULTS: Fields = {
    'compat_tools': 'native',
    'compat_omit': (),
    'compat_schema': (),
    'compat_echo_reasoning': 'auto',
    'compat_assistant_content': 'parent',
    **dict.fromkeys(['compat_named_tool_choice', 'compat_required_tool_choice', 'compat_json_object'], True),
    **dict.fromkeys(['compat_json_schema', 'compat_strict'], True),
    **dict.fromkeys(['compat_text_content', 'compat_late_system', 'compat_system', 'compat_roles'], 'asis'),
    **dict.fromkeys(['compat_after_tool', 'compat_last_message', 'compat_tool_order', 'compat_token_limit'], 'asis'),
}


@pytest.mark.parametrize('profile', [{}, DEFAULTS, dict.fromkeys(DEFAULTS), {'compat_stream': 'always'}])
def test_defaults_change_nothing(profile: Fields) -> None:
    assert not adapts(profile)
    assert all(adapted(body, profile) is body for body, _, _ in ROWS.values())


def test_every_knob_has_a_default_and_a_row() -> None:
    knobs = {knob for knob, _ in ADAPTERS}
    assert knobs == set(DEFAULTS)
    assert knobs == {knob for _, profile, _ in ROWS.values() for knob in profile}


# Properties

CHANGES: dict[str, list[Any]] = {
    **{knob: [False] for knob, default in DEFAULTS.items() if default is True},
    'compat_omit': [('messages.name',), ('tools.function.strict', 'stream_options.include_usage'), ('tool_choice',)],
    'compat_schema': [('$defs',), ('type', '')],
    'compat_echo_reasoning': ['never', 'reasoning_content', 'reasoning_details', 'thought'],
    'compat_assistant_content': ['null', 'empty', 'omit'],
    'compat_text_content': ['string'],
    'compat_late_system': ['lift', 'user'],
    'compat_system': ['user'],
    'compat_roles': ['alternate'],
    'compat_after_tool': ['assistant'],
    'compat_last_message': ['user'],
    'compat_tool_order': ['paired'],
    'compat_token_limit': ['max_tokens', 'max_completion_tokens'],
}
profiles = st.fixed_dictionaries({}, optional={knob: st.sampled_from(values) for knob, values in CHANGES.items()})

# Texts that can be found again, each one once.
marks = st.uuids().map(lambda unique: f'«{unique.hex}»')
texts = marks | st.just('')
parts = st.builds(text, texts) | st.just(IMAGE)
contents = texts | st.none() | st.lists(parts, max_size=3)
ids = st.sampled_from(['1', '2', '3'])
spoken = st.builds(said, st.sampled_from(['system', 'developer', 'user', 'assistant']), contents)
named = st.builds(said, st.just('user'), contents, name=st.sampled_from(['Ada', 'Bob']))
thinking = st.builds(
    said,
    st.just('assistant'),
    contents,
    reasoning=st.none() | marks,
    reasoning_content=st.none() | marks | st.just(' '),
)
callers = st.builds(lambda ids, content: calling(*ids, content=content), st.lists(ids, max_size=2), contents)
results = st.builds(result, ids, contents)
messages = st.lists(spoken | named | thinking | callers | results, max_size=8)
rests = st.fixed_dictionaries(
    {'model': st.just('m'), 'own': json_values},
    optional={
        'tools': st.lists(st.builds(tool, ids, strict=st.booleans()), max_size=3),
        'tool_choice': st.sampled_from(['auto', 'required', {'type': 'function', 'function': {'name': '1'}}]),
        'response_format': st.sampled_from([OBJECT, FORMAT]),
        'max_tokens': st.none() | st.integers(1, 9),
        'max_completion_tokens': st.none() | st.integers(1, 9),
        'stream_options': st.just({'include_usage': True}),
    },
)
bodies = st.builds(lambda said, rest: {'messages': said, **rest}, messages, rests)
every_body = bodies | st.sampled_from(list(ROWS)).map(lambda name: ROWS[name][0])


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path to everything in `value`."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield (*path, key)
        yield from places(child, (*path, key))


odd_places = st.sampled_from([HI, [HI], text('a'), [text('a')], 'user', 'tool', '1'])


@st.composite
def spoilt(draw: st.DrawFn) -> Fields:
    """A body that has any JSON at some of its places."""
    body: Fields = deepcopy(draw(every_body))
    for _ in range(draw(st.integers(1, 3))):
        *path, last = draw(st.sampled_from(sorted(places(body), key=repr)))
        holder: Any = body
        for key in path:
            holder = holder[key]
        holder[last] = deepcopy(draw(json_values | odd_places))
    return body


@settings(max_examples=400)
@given(spoilt() | every_body, profiles)
def test_any_body(body: Fields, profile: Fields) -> None:
    """Nothing raises, nothing is written to, and once is enough."""
    before = deepcopy(body)
    sent = adapted(body, profile)
    assert body == before
    assert adapted(sent, profile) is sent or adapted(sent, profile) == sent
    assert adapts(profile) or sent is body
    assert {key: sent.get(key) for key in ('model', 'own')} == {key: body.get(key) for key in ('model', 'own')}


@settings(max_examples=300)
@given(bodies, profiles)
def test_texts_and_calls_survive(body: Fields, profile: Fields) -> None:
    """Every text of a message is sent once, but reasoning where the server wants none; so is every call, in order."""
    sent = adapted(body, profile)
    if not profile.get('compat_echo_reasoning'):
        assert sorted(re.findall('«.*?»', json.dumps(sent['messages'], ensure_ascii=False))) == sorted(
            re.findall('«.*?»', json.dumps(body['messages'], ensure_ascii=False))
        )
    assert calls_in(sent['messages']) == calls_in(body['messages'])


@given(bodies, profiles)
def test_pairs(body: Fields, profile: Fields) -> None:
    """With the knob for it, results follow their calls, each call has one, and there is no other."""
    waiting: list[str] = []
    answered: set[str] = set()
    for message in adapted(body, {**profile, 'compat_tool_order': 'paired'})['messages']:
        if message['role'] == 'tool':
            assert message['tool_call_id'] in waiting
            answered.add(message['tool_call_id'])
        else:
            assert answered == set(waiting)
            waiting, answered = calls_in([message]), set()
    assert answered == set(waiting)


@given(bodies, profiles)
def test_turns(body: Fields, profile: Fields) -> None:
    """With the knobs for it there is no system role, users and assistants without calls take turns, a user begins."""
    knobs = {'compat_system': 'user', 'compat_roles': 'alternate', 'compat_omit': ('messages.name',)}
    sent = adapted(body, {**profile, **knobs, 'compat_echo_reasoning': 'reasoning_content'})['messages']
    turns = [(message['role'], bool(message.get('tool_calls'))) for message in sent]
    assert not {'system', 'developer'} & {role for role, _ in turns}
    assert turns[:1] not in ([('assistant', False)], [('assistant', True)])
    assert not [turn for turn, following in pairwise(turns) if turn == following and turn in TAKEN_IN_TURN]


TAKEN_IN_TURN = (('user', False), ('assistant', False))


def calls_in(messages: list[Any]) -> list[str]:
    return [call['id'] for message in messages for call in message.get('tool_calls') or ()]
