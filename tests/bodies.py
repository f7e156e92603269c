"""What the tests of adapted bodies are made of: messages, tools, formats, and the check of one row of a table."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from oaicompat._knobs import adapts
from oaicompat._requests import ADAPTERS, adapted

Fields = dict[str, Any]
Row = tuple[Fields, Fields, Fields | None]
"""Body, profile, and the body that is sent; `None` where that is the very same object."""

NAMES = {knob: name for knob, name, _ in ADAPTERS}


def check(row: Row, names: set[str] | None = None) -> None:
    """Check that `row` holds, that nothing is written to, that once is enough, and that what was done is named.

    Args:
        row: One row of a table.
        names: The adaptations that work on it, where those are not all of its profile's.
    """
    body, profile, expected = row
    before = deepcopy(body)
    fired = {'request.stream'}
    sent = adapted(body, profile, fired)
    assert adapts(profile)
    assert body == before
    assert sent == (body if expected is None else expected)
    assert (sent is body) == (expected is None)
    all_names = {NAMES[knob] for knob in profile} if expected is not None else set()
    assert fired == {'request.stream', *(all_names if names is None else names)}
    again: set[str] = set()
    assert adapted(sent, profile, again) is sent
    assert again == set()


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
