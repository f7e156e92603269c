"""Repair of answers of the Responses API that come whole; `_response_events.py` does it for their events.

What servers send as null or in another form is brought into the form of the API reference. Pure functions on JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from oaicompat._envelope import FailureError, Json, failure_in, plain_counts, text_in
from oaicompat._json import is_cut_off
from oaicompat._repair import Context
from oaicompat._toolcalls import ToolCalls, synthetic_id, whole_calls

_LISTS = ('output', 'content', 'summary', 'annotations')


def repair_response(body: Json, context: Context, repairs: set[str]) -> Json:
    """A whole response, repaired; `body` itself where there is nothing to repair.

    Raises:
        FailureError: If it is an error, or no response at all.
    """
    if body.get('error') and 'output' not in body and (failure := failure_in(body)) is not None:
        raise failure
    inner = unwrapped_response(body)
    if inner is not body:
        repairs.add('envelope.wrapped')
        body = inner
    if 'output' not in body:
        raise failure_in(body) or FailureError(f'the answer has no output: {json.dumps(body)[:200]}', body)
    body = _with_output(body, repairs)
    fixed = plain_response(body, context, repairs)
    ids: dict[int, str] = {}
    for index, item in enumerate(fixed['output']):
        if isinstance(item, dict) and item.get('type') == 'function_call':
            call = _whole_call(item, ids, index, repairs)
            fixed = {**fixed, 'output': [*fixed['output'][:index], call, *fixed['output'][index + 1 :]]}
    return body if fixed == body else fixed


def _whole_call(item: Json, ids: dict[int, str], index: int, repairs: set[str]) -> Json:
    if not item.get('name'):
        raise FailureError('a tool call without a name', item)
    call = with_call_id(item, ids, index, repairs)
    if isinstance(arguments := call.get('arguments'), str) and arguments and is_cut_off(arguments):
        repairs.add('tool_call.unreadable')
    if call.get('arguments') != '':
        return call
    repairs.add('tool_call.arguments')
    return {**call, 'arguments': '{}'}


def unwrapped_response(body: Json) -> Json:
    """The response in `body`, where some gateway wrapped it; else `body`."""
    inner = (body.get(key) for key in ('response', 'data', 'result'))
    return body if 'output' in body else next((i for i in inner if isinstance(i, dict) and 'output' in i), body)


def _with_output(body: Json, repairs: set[str]) -> Json:
    output, text = body['output'], body.get('output_text')
    if isinstance(output, list) and (output or not isinstance(text, str) or not text):
        return body
    told = isinstance(text, str) and text and not output
    repairs.add('responses.null_lists' if output is None and not told else 'responses.output')
    if told:
        content: list[Json] = [{'type': 'output_text', 'text': text, 'annotations': []}]
        output = [{'type': 'message', 'role': 'assistant', 'content': content}]
    elif isinstance(output, dict) and output.get('type'):
        output = [output]
    return {**body, 'output': output if isinstance(output, list) else []}


def with_call_id(item: Json, ids: dict[int, str], index: int, repairs: set[str]) -> Json:
    """A call with an id that no other call has; the same each time that it is shown."""
    if item.get('type') != 'function_call':
        return item
    given = item.get('call_id')
    if index not in ids:
        fine = isinstance(given, str) and given and given not in ids.values()
        if not fine:
            repairs.add('tool_call.duplicate_id' if given else 'tool_call.id')
        ids[index] = given if fine and isinstance(given, str) else synthetic_id()
    return item if given == ids[index] else {**item, 'call_id': ids[index]}


def plain_response(response: Json, context: Context, repairs: set[str]) -> Json:
    plain = _without_nulls(response, repairs)
    created, usage = plain.get('created_at'), plain.get('usage')
    if created is not None and (isinstance(created, bool) or not isinstance(created, int | float)):
        repairs.add('envelope.defaults')
        plain = {**plain, 'created_at': None}
    if usage is not None and (counted := _plain_usage(usage)) != usage:
        repairs.add('usage')
        plain = {**plain, 'usage': counted}
    output = plain.get('output')
    if isinstance(output, list):
        items = [plain_item(item, context, repairs) if isinstance(item, dict) else item for item in output]
        plain = {**plain, 'output': items}
    return plain


_CHAT = (('input_tokens', 'prompt_tokens'), ('output_tokens', 'completion_tokens'))


def _plain_usage(usage: object) -> Json | None:
    if not isinstance(usage, Mapping):
        return None
    given = {ours: usage.get(ours, usage.get(theirs)) for ours, theirs in _CHAT}
    return plain_counts({**usage, **given, 'total_tokens': usage.get('total_tokens')}, (*given, 'total_tokens'))


def plain_item(item: Json, context: Context, repairs: set[str]) -> Json:
    item = _without_nulls(item, repairs)
    if item.get('type') == 'function_call' and item.get('status') != 'in_progress':
        item = _plain_call(item, context, repairs)
    if item.get('type') == 'reasoning':
        return _plain_reasoning(item, repairs)
    content = item.get('content')
    if isinstance(content, str) and item.get('type') == 'message':
        repairs.add('content.not_a_list')
        return {**item, 'content': [{'type': 'output_text', 'text': content, 'annotations': []}]}
    if isinstance(content, list):
        parts = [plain_part(part, repairs) if isinstance(part, dict) else part for part in content]
        return {**item, 'content': parts}
    return item


def _plain_reasoning(item: Json, repairs: set[str]) -> Json:
    changed: Json = {}
    for key, kind in (('summary', 'summary_text'), ('content', 'reasoning_text')):
        if isinstance(item.get(key), str):
            changed[key] = [{'type': kind, 'text': item[key]}] if item[key] else []
    if changed:
        repairs.add('reasoning.field')
    return {**item, **changed} if changed else item


def plain_part(part: Json, repairs: set[str]) -> Json:
    changed: Json = {}
    if not isinstance(part.get('text'), str | None):
        repairs.add('content.not_text')
        part = {**part, 'text': text_in(part['text'])}
    if part.get('type') in ('text', None) and 'text' in part:
        repairs.add('content.not_text')
        changed['type'] = 'output_text'
    if part.get('type') in ('output_text', 'text', None) and 'text' in part and part.get('annotations') is None:
        if 'annotations' not in part:
            repairs.add('responses.null_lists')
        changed['annotations'] = []
    part = _without_nulls(part, repairs)
    return {**part, **changed} if changed else part


def _plain_call(item: Json, context: Context, repairs: set[str]) -> Json:
    """A call with its name and arguments by the same rules as in Chat Completions; a part of one stays."""
    arguments = item.get('arguments')
    if arguments == '' or (isinstance(arguments, str) and is_cut_off(arguments)):
        return item
    call = {'id': 'call', 'type': 'function', 'function': {'name': item.get('name'), 'arguments': arguments}}
    if not isinstance(item.get('name'), str) or not item['name']:
        return item
    [fixed] = whole_calls([call], ToolCalls(context.schemas, repairs))
    function = fixed['function']
    return {**item, 'name': function['name'] or item.get('name'), 'arguments': _as_text(function['arguments'])}


def _as_text(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def _without_nulls(value: Json, repairs: set[str]) -> Json:
    """`value` with an empty list where a list is null; reasoning may be without content."""
    nulls = [key for key in _LISTS if key in value and value[key] is None]
    if value.get('type') == 'reasoning':
        nulls = [key for key in nulls if key != 'content']
    if not nulls:
        return value
    repairs.add('responses.null_lists')
    return {**value, **{key: [] for key in nulls}}
