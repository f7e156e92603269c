"""Repair of answers of the Responses API that come whole; `_response_events.py` does it for streams of events.

From the top: the response, its fields, its items, their parts, its calls, and the form of one event. What servers send
as null or in another form is brought into the form of the API reference; what is well-formed comes out as it went in.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from oaicompat._context import Context
from oaicompat._envelope import FailureError, Json, failure_in, plain_counts, text_in
from oaicompat._halves import has_half, joined_halves
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
    if 'output' not in inner:
        raise failure_in(inner) or FailureError(f'the answer has no output: {json.dumps(inner)[:200]}', inner)
    raise_odd_error(inner)
    fixed = plain_response(_with_output(without_halves(inner, repairs), repairs), repairs)
    ids: dict[int, str] = {}
    output = [
        with_call_id(whole_call(item, context, repairs), ids, index, repairs) if is_call(item) else item
        for index, item in enumerate(fixed['output'])
    ]
    fixed = {**fixed, 'output': output}
    return body if fixed == body else fixed


def raise_odd_error(response: Json) -> None:
    """Raise the error of a response, where it has a form that pydantic-ai can't read.

    Raises:
        FailureError: It.
    """
    error = response.get('error')
    plain = isinstance(error, dict) and isinstance(error.get('message'), str)
    if error and not (plain and isinstance(error.get('code'), str | None)):
        raise failure_in(response) or FailureError(str(error), error)


def unwrapped_response(body: Json) -> Json:
    """The response in `body`, where some gateway wrapped it; else `body`."""
    inner = (body.get(key) for key in ('response', 'data', 'result'))
    return body if 'output' in body else next((i for i in inner if isinstance(i, dict) and 'output' in i), body)


def without_halves(value: Any, repairs: set[str], depth: int = 0) -> Any:
    """`value` with no half of a character in any text of it; the same object where there is none."""
    if isinstance(value, str):
        if not has_half(value):
            return value
        repairs.add('content.split_character')
        return joined_halves(value)
    if depth > _DEEPEST:
        return value
    if isinstance(value, dict):
        changed = {key: without_halves(item, repairs, depth + 1) for key, item in value.items()}
        return changed if any(changed[key] is not item for key, item in value.items()) else value
    if isinstance(value, list):
        items = [without_halves(item, repairs, depth + 1) for item in value]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    return value


def _with_output(body: Json, repairs: set[str]) -> Json:
    output, text = body['output'], body.get('output_text')
    told = text if isinstance(text, str) and not output else output if isinstance(output, str) else ''
    if isinstance(output, list) and not told:
        return body
    repairs.add('responses.null_lists' if output is None and not told else 'responses.output')
    if told:
        return {**body, 'output': [_message(told)]}
    return {**body, 'output': [output] if isinstance(output, dict) and output.get('type') else []}


def _message(text: str) -> Json:
    return {'type': 'message', 'role': 'assistant', 'content': [_text_part(text, 'output_text')]}


def _text_part(text: str, kind: str) -> Json:
    return {'type': kind, 'text': text, **({'annotations': []} if kind == 'output_text' else {})}


# The fields of a response


def plain_response(response: Json, repairs: set[str]) -> Json:
    """`response` with fields of the types that the API reference says; its calls are left to `whole_call()`."""
    plain = _typed(_without_nulls(response, repairs), _FIELDS, repairs)
    named: Json = {key: str(plain[key]) for key in ('id', 'model') if not isinstance(plain.get(key), str | None)}
    created, usage = plain.get('created_at'), plain.get('usage')
    if created is not None and not _is_time(created):
        named['created_at'] = None
    if named:
        repairs.add('envelope.defaults')
        plain = {**plain, **named}
    for key, needed in (('incomplete_details', 'reason'), ('conversation', 'id')):
        if plain.get(key) is not None and not isinstance(plain[key].get(needed), str):
            repairs.add('envelope.types')
            plain = {**plain, key: None}
    if usage is not None and (counted := _plain_usage(usage)) != usage:
        repairs.add('usage')
        plain = {**plain, 'usage': counted}
    output = plain.get('output')
    if isinstance(output, list) and (items := plain_items(output, repairs)) != output:
        plain = {**plain, 'output': items}
    return plain


_FIELDS: Mapping[str, type] = {
    'status': str, 'error': dict, 'incomplete_details': dict, 'conversation': dict, 'moderation': dict,
    'prompt_cache_diagnostics': dict, 'service_tier': str, 'background': bool, 'store': bool,
}  # fmt: skip


def _typed(value: Json, types: Mapping[str, type], repairs: set[str]) -> Json:
    """`value` with null where a field is of another type."""
    odd = {key: None for key, kind in types.items() if not isinstance(value.get(key), kind | None)}
    odd |= {'error': None} if value.get('error') == {} else {}  # pydantic-ai would raise it
    if not odd:
        return value
    repairs.add('envelope.types')
    return {**value, **odd}


def _is_time(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _LATEST


_LATEST, _DEEPEST = 10**14, 50  # seconds; lists and objects in each other
_CHAT = (('input_tokens', 'prompt_tokens'), ('output_tokens', 'completion_tokens'))


def _plain_usage(usage: object) -> Json | None:
    if not isinstance(usage, Mapping):
        return None
    given = {ours: usage.get(ours, usage.get(theirs)) for ours, theirs in _CHAT}
    return plain_counts({**usage, **given, 'total_tokens': usage.get('total_tokens')}, (*given, 'total_tokens'))


# Items


def plain_items(output: list[Any], repairs: set[str]) -> list[Json]:
    """The items of an output; text that stands in their place becomes a message."""
    items = [plain_item(item, repairs) if isinstance(item, dict) else item for item in output]
    if all(isinstance(item, dict) for item in items):
        return items
    repairs.add('responses.output')
    texts = [_message(item) if isinstance(item, str) and item else item for item in items]
    return [item for item in texts if isinstance(item, dict)]


def plain_item(item: Json, repairs: set[str]) -> Json:
    """An item with the fields of its type; what it says of a call is left to `whole_call()`."""
    if not isinstance(item.get('type'), str) and (kind := _kind_of(item)):
        repairs.add('responses.output')
        item = {**item, 'type': kind}
    item = _without_nulls(item, repairs)
    if not isinstance(item.get('id'), str | None):
        repairs.add('envelope.defaults')
        item = {**item, 'id': str(item['id'])}
    read = _ITEMS.get(str(item.get('type')))
    return read(item, repairs) if read else item


def _kind_of(item: Json) -> str | None:
    """What an item is that does not say it."""
    told = (('arguments', 'function_call'), ('summary', 'reasoning'), ('content', 'message'))
    return next((kind for key, kind in told if key in item), None)


def _plain_message(item: Json, repairs: set[str]) -> Json:
    item = _typed(item, {'phase': str}, repairs)
    content = item.get('content') or item.get('text') or item.get('content')
    if isinstance(content, list):
        parts = [plain_part(part, repairs) for part in content]
        parts = [part for part in parts if part]
        return item if parts == content else {**item, 'content': parts}
    text = text_in(content)
    repairs.add('content.not_a_list' if text else 'responses.null_lists')
    return {**item, 'content': [_text_part(text, 'output_text')] if text else []}


def _plain_reasoning(item: Json, repairs: set[str]) -> Json:
    item = _typed(item, {'encrypted_content': str}, repairs)
    changed: Json = {}
    for key, kind in (('summary', 'summary_text'), ('content', 'reasoning_text')):
        given = item.get(key)
        if given is None and (key == 'content' or not item.get('text')):
            continue
        parts = _reasoning_parts(given if given is not None else item['text'], kind)
        if parts != given:
            changed[key] = parts
    if changed:
        repairs.add('reasoning.field')
    if 'summary' not in item and 'summary' not in changed:
        repairs.add('responses.null_lists')
        changed['summary'] = []
    return {**item, **changed} if changed else item


def _reasoning_parts(value: object, kind: str) -> list[Json]:
    """Parts of reasoning, those with text in them; the objects themselves where they are well-formed."""
    parts = []
    for given in value if isinstance(value, list) else [value]:
        if isinstance(given, dict) and isinstance(given.get('text'), str):
            parts.append(given if given.get('type') == kind else {**given, 'type': kind})
        elif text := text_in(given):
            parts.append(_text_part(text, kind))
    return parts


def _plain_call(item: Json, repairs: set[str]) -> Json:
    return _typed(item, {'namespace': str}, repairs)


_ITEMS = {'message': _plain_message, 'reasoning': _plain_reasoning, 'function_call': _plain_call}


def plain_part(part: object, repairs: set[str]) -> Json:
    """A part of a message; nothing where it holds no text at all."""
    if not isinstance(part, dict):
        repairs.add('content.not_text')
        text = text_in(part)
        return _text_part(text, 'output_text') if text else {}
    key = 'refusal' if part.get('type') == 'refusal' else 'text'
    changed: Json = {}
    if key in part and not isinstance(part[key], str | None):
        repairs.add('content.not_text')
        changed[key] = text_in(part[key])
    if part.get('type') == 'text' or (not isinstance(part.get('type'), str) and 'text' in part):
        repairs.add('content.not_text')
        changed['type'] = 'output_text'
    if changed.get('type', part.get('type')) == 'output_text':
        changed |= _plain_notes(part, repairs)
    return {**part, **changed} if changed else part


def _plain_notes(part: Json, repairs: set[str]) -> Json:
    """What is to be changed of the annotations and log probabilities of a text."""
    changed: Json = {}
    notes = part.get('annotations')
    if not isinstance(notes, list):
        repairs.add('responses.null_lists' if notes is None else 'envelope.types')
        changed['annotations'] = []
    elif not all(isinstance(note, dict) for note in notes):
        repairs.add('envelope.types')
        changed['annotations'] = [note for note in notes if isinstance(note, dict)]
    if not are_logprobs(part.get('logprobs')):
        repairs.add('envelope.types')
        changed['logprobs'] = None
    return changed


def are_logprobs(value: object) -> bool:
    """Whether `value` is a list of log probabilities, or none."""
    if value is None:
        return True
    return isinstance(value, list) and all(isinstance(one, dict) and _tops(one.get('top_logprobs')) for one in value)


def _tops(value: object) -> bool:
    return value is None or (isinstance(value, list) and all(isinstance(one, dict) for one in value))


def _without_nulls(value: Json, repairs: set[str]) -> Json:
    """`value` with an empty list where a list is null; reasoning may be without content."""
    nulls = [key for key in _LISTS if key in value and value[key] is None]
    if value.get('type') == 'reasoning':
        nulls = [key for key in nulls if key != 'content']
    if not nulls:
        return value
    repairs.add('responses.null_lists')
    return {**value, **{key: [] for key in nulls}}


# Calls


def is_call(item: object) -> bool:
    """Whether an item is a call of one of our tools."""
    return isinstance(item, Mapping) and item.get('type') == 'function_call'


def whole_call(item: Json, context: Context, repairs: set[str]) -> Json:
    """A call with its name and arguments by the same rules as in Chat Completions.

    Raises:
        FailureError: If it has no name.
    """
    function = {'name': item.get('name'), 'arguments': item.get('arguments')}
    call = {'id': 'call', 'type': 'function', 'function': function}
    made = whole_calls([call], ToolCalls(context.schemas, repairs))
    if not made:
        raise FailureError('a tool call without a name', item)
    fixed = made[0]['function']
    changed = {key: fixed[key] for key in function if fixed[key] != item.get(key)}
    return {**item, **changed} if changed else item


def with_call_id(item: Json, ids: dict[int, str], index: int, repairs: set[str]) -> Json:
    """A call with an id that no other call has; the same each time that it is shown."""
    given = item.get('call_id')
    if index not in ids:
        fine = isinstance(given, str) and given and given not in ids.values()
        if not fine:
            repairs.add('tool_call.duplicate_id' if given else 'tool_call.id')
        ids[index] = given if fine and isinstance(given, str) else synthetic_id()
    return item if given == ids[index] else {**item, 'call_id': ids[index]}


# Events

ENDS = frozenset({'response.completed', 'response.failed', 'response.incomplete'})
"""The kinds of events that end a response."""

LIFE = frozenset({*ENDS, 'response.created', 'response.in_progress', 'response.queued'})
"""The kinds of events that show the response."""

ARGUMENTS = 'response.function_call_arguments'
"""How events on the arguments of a call begin."""

PARTS: Mapping[str, tuple[str, str]] = {
    'output_text': ('output_text', 'text'),
    'refusal': ('refusal', 'refusal'),
    'reasoning_text': ('reasoning_text', 'text'),
    'summary_text': ('reasoning_summary_text', 'text'),
}
"""By the type of a part: the kind of its events, and the field that its text stands in."""

WHOLES: Mapping[str, str] = {f'response.{kind}.done': key for kind, key in PARTS.values()}
"""The kinds of events that tell a text as a whole, and the field that it stands in."""


def plain_event(event: Json, repairs: set[str]) -> Json | None:
    """`event` with the fields that its kind must have, of the type that they must be of; `None` if it is none."""
    kind = event.get('type')
    if not isinstance(kind, str) or (
        kind.startswith('response.output_item.') and not isinstance(event.get('item'), dict)
    ):
        return None
    if kind == f'{ARGUMENTS}.delta' and event.get('delta') is None:
        return None
    changed = _changed(event, kind)
    if changed:
        repairs.add('responses.event')
        event = {**event, **changed}
    if not kind.endswith('.delta'):
        plain: Json = without_halves(event, repairs)
        return plain
    # The halves of a character may come in two deltas: those are joined where they are told.
    rest = {key: value for key, value in event.items() if key != 'delta'}
    plain = without_halves(rest, repairs)
    return event if plain is rest else {**plain, 'delta': event['delta']}


def _changed(event: Json, kind: str) -> Json:
    """What is to be changed of an event of this kind."""
    changed: Json = {}
    if kind == 'response.done':
        kind = changed['type'] = end_of(event.get('response'))
    if kind in LIFE and not isinstance(event.get('response'), dict):
        changed['response'] = {'status': kind.partition('.')[2], 'output': []}
    elif kind.endswith(('_part.added', '_part.done')) and not isinstance(event.get('part'), dict):
        changed['part'] = {'type': part_type(kind), 'text': text_in(event.get('part'))}
    elif kind.endswith('.delta') and kind != f'{ARGUMENTS}.delta' and not isinstance(event.get('delta'), str):
        changed['delta'] = text_in(event.get('delta'))
    elif (key := WHOLES.get(kind)) is not None:
        if not isinstance(event.get(key), str):
            changed[key] = text_in(event.get(key))
        if not are_logprobs(event.get('logprobs')):
            changed['logprobs'] = []
    return changed


def end_of(response: object) -> str:
    """The kind of event that a response ends with."""
    kind = f'response.{response.get("status")}' if isinstance(response, dict) else ''
    return kind if kind in ENDS else 'response.completed'


def part_type(kind: str) -> str:
    """The type of the part that an event of this kind shows, where it does not say."""
    return 'summary_text' if 'summary' in kind else 'output_text'
