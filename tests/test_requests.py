"""Bodies in the shape that a profile asks for: tool choice, output format, schemas, fields."""

from __future__ import annotations

import pytest
from bodies import (
    ALLOWED,
    ANY_OBJECT,
    ASK_CITY,
    ASK_OBJECT,
    CITY,
    CUSTOM,
    FLAT,
    FORMAT,
    HI,
    MCP,
    NAMED,
    OBJECT,
    SEARCH,
    SYSTEM,
    TOOLS,
    Row,
    calling,
    chat,
    check,
    flat,
    responses,
    said,
    text,
    tool,
)

from oaicompat._requests import adapted

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
NO_TITLES = {'compat_schema': ('title',)}
UNTITLED = {**CITY, 'schema': {'type': 'object', 'properties': {'city': {'type': 'string'}}}}
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
    'schemas': (
        chat(tools=[tool('a', parameters={'type': 'object', 'title': 'A'}), tool('b'), 1], response_format=FORMAT),
        NO_TITLES,
        chat(tools=[tool('a'), tool('b'), 1], response_format={'type': 'json_schema', 'json_schema': UNTITLED}),
    ),
    'schemas, Responses': (
        responses(tools=[flat('a', parameters={'title': 'A'}), SEARCH], text={'format': FLAT}),
        NO_TITLES,
        responses(tools=[flat('a', parameters={}), SEARCH], text={'format': {'type': 'json_schema', **UNTITLED}}),
    ),
    'schemas that stay': (chat(tools=[*TOOLS, tool('d', parameters=None)]), NO_TITLES, None),
    'a schema in the prompt stays whole': (
        chat(HI, response_format=FORMAT),
        {**NO_SCHEMA, **NO_TITLES},
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
    'what another knob brings back': (
        chat(said('system', 'A'), HI, said('system', 'B', cache=True)),
        {'compat_omit': ('messages.cache',), 'compat_late_system': 'user'},
        chat(said('system', 'A'), HI, said('user', 'B')),
    ),
}

# `test_prompted` has the others.
BY_PROMPT: dict[str, Row] = {
    'no tools': (chat(HI, tools=[], tool_choice='auto'), {'compat_tools': 'prompted'}, chat(HI)),
}
TABLES = {'tools': BY_PROMPT, 'choice': CHOICES, 'format': FORMATS, 'omit': OMITS}
ROWS = {f'{table}: {name}': row for table, rows in TABLES.items() for name, row in rows.items()}
# Where a knob of the row finds nothing to do, another one having done it.
PARTLY = {
    'format: a schema in the prompt stays whole': {'request.output_format'},
}


@pytest.mark.parametrize('name', ROWS)
def test_row(name: str) -> None:
    check(ROWS[name], PARTLY.get(name))


def test_what_did_not_change_is_shared() -> None:
    body = chat(SYSTEM, HI, calling('1', content=''), tools=TOOLS)
    sent = adapted(body, {'compat_assistant_content': 'null'})
    assert sent['tools'] is TOOLS
    assert [one is other for one, other in zip(sent['messages'], body['messages'], strict=True)] == [True, True, False]
