"""Repair of whole answers, by the same rules as for streams, and answers that came in another form than asked for."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from typing_extensions import TypeIs

from oaicompat._context import SEARCHED, Context
from oaicompat._details import listed
from oaicompat._envelope import (
    FailureError,
    Json,
    choices_of,
    failure_in,
    no_choices,
    plain_envelope,
    plain_message,
    plain_usage,
    unwrapped,
)
from oaicompat._finish import is_stop
from oaicompat._halves import without_halves
from oaicompat._keys import DETAILS, INLINE, KEPT
from oaicompat._offer import Offer
from oaicompat._recovery import recovered, rejected_text
from oaicompat._repair import ChunkRepair
from oaicompat._sse import DONE, ErrorText, EventDecoder, NoJson, read_values
from oaicompat._thinking import lone_closing_tag, split
from oaicompat._toolcalls import ToolCalls, whole_calls

_OPTIONAL: Mapping[str, type | tuple[type, ...]] = {
    'refusal': str,
    'annotations': list,
    'audio': dict,
    'function_call': dict,
    'logprobs': dict,
}


def repair_completion(body: Json, context: Context, repairs: set[str]) -> Json:
    """A whole answer, repaired; `body` itself where there is nothing to repair.

    Args:
        body: The JSON object that came.
        context: What is known of the request.
        repairs: Names of the repairs that were made are added to it.

    Raises:
        FailureError: If it is an error, or no completion at all.
    """
    if (failure := failure_in(body)) is not None:
        text = rejected_text(failure.body, context.offer)
        if text is None:
            raise failure
        repairs.add('tool_call.rejected')
        choice: Json = {'index': 0, 'message': {'role': 'assistant', 'content': text}, 'finish_reason': 'stop'}
        facts = {key: body.get(key) for key in ('created', 'usage')}
        body = {'id': '', 'object': 'chat.completion', 'model': context.model, 'choices': [choice], **facts}
    inner = unwrapped(body)
    if inner is not body:
        repairs.add('envelope.wrapped')
    choices = choices_of(inner, repairs)
    if not choices:
        raise no_choices(body)
    choice = _choice(_joined(choices, context, repairs), context, repairs)
    fixed = _with_defaults({**inner, 'choices': [choice, *choices[1:]]}, context, repairs)
    return body if fixed == body else fixed


def _joined(choices: Sequence[Mapping[str, Any]], context: Context, repairs: set[str]) -> Json:
    """The first choice, with the call or the text that the server put into another one."""
    first = dict(choices[0])
    message = _message(first, context, repairs)
    for other in () if context.alternatives else choices[1:]:
        repairs.add('choices.merged')
        more = _message(other, context, repairs)
        for key in ('tool_calls', 'content'):
            if more.get(key) and not message.get(key):
                message = {**message, key: more[key]}
                if key == 'tool_calls':
                    first['finish_reason'] = other.get('finish_reason')
    return {**first, 'message': message}


def _message(choice: Mapping[str, Any], context: Context, repairs: set[str]) -> Json:
    message = choice.get('message')
    if not isinstance(message, Mapping):
        repairs.add('envelope.message')
        delta = choice.get('delta')
        message = delta if isinstance(delta, Mapping) else {'content': choice.get('text')}
    if context.details and listed(message.get(DETAILS)):
        repairs.add('reasoning.details')
        if (clean := without_halves(message[DETAILS])) is not message[DETAILS]:
            repairs.add('content.split_character')
            message = {**message, DETAILS: clean}
    return plain_message(message, repairs, details=context.details)


def _choice(choice: Json, context: Context, repairs: set[str]) -> Json:
    message = choice['message']
    tracker = ToolCalls(context.schemas, repairs)
    if (calls := message.get('tool_calls')) is not None:
        fixed = whole_calls(calls, tracker)
        if tracker.nameless:
            raise FailureError('a tool call without a name', calls)
        message = {**message, 'tool_calls': fixed or None} if fixed or calls else message
    content = message.get('content')
    if isinstance(content, str):
        message = _with_thinking(message, content, context, repairs)
    searched = recovered(message, context.offer, tracker, SEARCHED, repairs, reason=choice.get('finish_reason'))
    if searched.get('tool_calls') != message.get('tool_calls') and is_stop(choice.get('finish_reason')):
        choice = {**choice, 'finish_reason': 'tool_calls'}
    message = searched
    if context.answer_in_reasoning and not _said(message) and not message.get('tool_calls'):
        reasoning = next((message[key] for key in ('reasoning_content', 'reasoning') if message.get(key)), None)
        if isinstance(reasoning, str):
            repairs.add('reasoning.answer')
            message = {**message, 'content': reasoning}
    if message.get('role') != 'assistant':
        repairs.add('envelope.role')
        message = {**message, 'role': 'assistant'}
    return {**_typed(choice, repairs), 'message': _typed(message, repairs)}


def _said(message: Json) -> str:
    return str(message.get('content') or '').strip()


def _with_thinking(message: Json, content: str, context: Context, repairs: set[str]) -> Json:
    tags = context.all_tags
    closing_only = context.closing_only or lone_closing_tag(content, context.tags)
    pieces = split(content, tags, closing_only=closing_only and any(close in content for _, close in tags))
    thinking = ''.join(piece.text for piece in pieces if piece.kind == 'thinking')
    if not thinking and ''.join(piece.text for piece in pieces) == content:
        return message
    text = ''.join(piece.text for piece in pieces if piece.kind == 'text')
    fields = {**message, 'content': text or None, **({INLINE: thinking} if thinking else {})}
    if _is_parents(content, thinking, text, context):
        return fields
    harmony = any(content.lstrip().startswith(opening) for opening, _ in tags[len(context.tags) :])
    repairs.add('thinking.closing_tag' if closing_only else 'thinking.harmony' if harmony else 'thinking.tags')
    return fields


def _is_parents(content: str, thinking: str, text: str, context: Context) -> bool:
    """Whether pydantic-ai reads the same of it, by the first pair of tags."""
    opening, closing = context.tags[0] if context.tags else ('', '')
    inside, closed, behind = content.removeprefix(opening).partition(closing or content)
    told = content.startswith(opening) and bool(opening and closed) and opening not in behind
    return told and bool(thinking) and (inside, behind) == (thinking, text)


def _typed(fields: Json, repairs: set[str]) -> Json:
    """`fields` without optional ones that are of another type than the API reference says."""
    wrong = {
        key: None
        for key, kind in _OPTIONAL.items()
        if fields.get(key) is not None and not isinstance(fields[key], kind)
    }
    if wrong:
        repairs.add('envelope.types')
    return {**fields, **wrong} if wrong else fields


def _with_defaults(body: Json, context: Context, repairs: set[str]) -> Json:
    """`body` with what every completion has, where it is missing, null or of another type."""
    defaults: Json = {}
    for key, default in (('id', ''), ('model', context.model)):
        given = body.get(key)
        if not isinstance(given, str):
            defaults[key] = default if given is None else str(given)
    if body.get('object') != 'chat.completion':
        defaults['object'] = 'chat.completion'
    choice = {**body['choices'][0], **_choice_defaults(body['choices'][0])}
    if choice != body['choices'][0]:
        defaults['choices'] = [choice, *body['choices'][1:]]
    if defaults:
        repairs.add('envelope.defaults')
    usage = body.get('usage')
    if usage is not None and (plain := plain_usage(usage, repairs)) != usage:
        repairs.add('usage')
        defaults['usage'] = plain
    fields = plain_envelope({key: item for key, item in body.items() if key not in ('id', 'model')}, repairs)
    return {**body, **fields, **defaults}


def _choice_defaults(choice: Json) -> Json:
    defaults: Json = {} if type(choice.get('index')) is int else {'index': 0}
    reason = choice.get('finish_reason')
    return defaults if reason is None or (isinstance(reason, str) and reason) else {**defaults, 'finish_reason': None}


def pruned(body: Json, faults: Iterable[Sequence[Any]]) -> Json | None:
    """`body` without the optional fields in which pydantic-ai's own check of a completion found `faults`.

    `None` where a fault is in none of them.
    """
    for path in faults:
        at = next((n for n, key in enumerate(path) if key in _PRUNABLE), None)
        inside: Any = body
        for step in path[:at]:
            try:
                inside = inside[step]
            except (KeyError, IndexError, TypeError):
                return None
        if at is None or not isinstance(inside, dict):
            return None
        inside[path[at]] = None
    return body


_PRUNABLE = frozenset((*_OPTIONAL, 'moderation', 'service_tier', 'system_fingerprint', 'usage'))


def fold(chunks: Iterable[Json]) -> Json:
    """The completion that repaired chunks amount to."""
    message: Json = {'role': 'assistant', 'content': None}
    whole: Json = {'index': 0, 'message': message, 'finish_reason': None}
    calls: dict[int, Json] = {}
    body: Json = {}
    usage: Json | None = None
    for chunk in chunks:
        _fold_fields(chunk, body, but=('choices', 'usage', 'object'))
        if isinstance(chunk.get('usage'), dict):
            usage = _added(usage or {}, chunk['usage'])
        for choice in filter(_is_object, _listed(chunk.get('choices'))[:1]):
            whole['finish_reason'] = choice.get('finish_reason') or whole['finish_reason']
            _fold_fields(choice, whole, but=('index', 'delta', 'finish_reason'))
            if not _is_object(delta := choice.get('delta')):
                continue
            for call in filter(_is_object, _listed(delta.get('tool_calls'))):
                _fold_call(call, calls)
            _fold_fields(delta, message, but=('role', 'tool_calls'), joined=True)
    for fields in (message, *(call['function'] for call in calls.values())):
        fields |= {key: ''.join(value) for key, value in fields.items() if isinstance(value, _Pieces)}
    if (kept := message.pop(KEPT, None)) is not None:
        message[DETAILS] = kept[DETAILS]
    if calls:
        message['tool_calls'] = [calls[index] for index in sorted(calls)]
    return {**body, 'object': 'chat.completion', 'choices': [whole], **({'usage': usage} if usage else {})}


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _is_object(value: object) -> TypeIs[Json]:
    return isinstance(value, dict)


def _fold_fields(fields: Mapping[str, Any], into: Json, but: Sequence[str] = (), *, joined: bool = False) -> None:
    """Add lists, and texts where they come `joined`; of anything else the first counts."""
    for key, value in fields.items():
        old = into.get(key)
        if key in but or value is None:
            continue
        if joined and isinstance(value, str) and (old in (None, '') or isinstance(old, _Pieces)):
            into[key] = old if isinstance(old, _Pieces) else _Pieces()
            into[key].append(value)
        elif isinstance(value, list) and isinstance(old, list) and not isinstance(old, _Pieces):
            old.extend(value)
        elif isinstance(value, dict) and isinstance(old, dict):
            into[key] = dict(old)
            _fold_fields(value, into[key])
        elif old is None or old == '' or (isinstance(old, _Pieces) and not any(old)):
            into[key] = _copied(value)


class _Pieces(list[str]):
    """The pieces of a text: joined one by one, they would cost the square of their number."""


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    return [*value] if isinstance(value, list) else value


def _fold_call(call: Mapping[str, Any], calls: dict[int, Json]) -> None:
    index = call.get('index')
    at = index if type(index) is int else max(calls, default=0)
    whole = calls.setdefault(at, {'id': None, 'type': 'function', 'function': {'name': '', 'arguments': ''}})
    _fold_fields(call, whole, but=('index', 'type', 'function'))
    if _is_object(function := call.get('function')):
        _fold_fields(function, whole['function'], joined=True)


def _added(total: Json, usage: Json) -> Json:
    added = dict(total)
    for key, value in usage.items():
        old = added.get(key)
        if isinstance(value, dict):
            added[key] = _added(old if isinstance(old, dict) else {}, value)
        else:
            added[key] = value + old if isinstance(value, int) and isinstance(old, int) else value
    return added


def completion_in(text: str, context: Context, repairs: set[str]) -> tuple[Json, Context]:
    """The completion in a body that is not plain JSON: an event stream, JSON lines, JSON with something behind it.

    And the context to repair it by: in a stream, the calls in its texts were found already.

    Raises:
        FailureError: If there is none.
    """
    decoder, seen = EventDecoder(), set[str]()
    events = [*decoder.feed(text.encode('utf-8', 'replace')), *decoder.finish()]
    values = [value for event in events for value in read_values(event, seen)]
    objects = [value for value in values if isinstance(value, dict)]
    whole = next((value for value in objects if _is_whole(unwrapped(value))), None)
    if whole is not None:
        if text.lstrip()[:1] == '{':
            repairs.update({'sse.glued_values'} if _goes_on(text) else ())
        else:
            repairs.update(
                {'envelope.wrapped'} if text.lstrip()[:1] == '[' else {*seen, *decoder.repairs, 'sse.unasked'}
            )
        return whole, context
    if not objects:
        errors = [value for value in values if isinstance(value, ErrorText)]
        raise FailureError(_no_json(errors[0] if errors and not decoder.ignored else text), None)
    repairs.update(seen, decoder.repairs, {'sse.unasked'})
    chunks = ChunkRepair(context, repairs)
    repaired: list[Json] = []
    for value in values:
        if isinstance(value, dict):
            repaired += chunks.feed(value)
        elif isinstance(value, ErrorText) and not chunks.finished:
            raise FailureError(value.complaint if isinstance(value, NoJson) else str(value), None)
    if decoder.ignored.strip() and DONE not in values and not chunks.finished:
        raise FailureError(' '.join(decoder.ignored.split()), None)
    return fold([*repaired, *chunks.finish(dropped=False)]), replace(context, offer=Offer())


def _goes_on(text: str) -> bool:
    """Whether anything stands behind the first JSON value."""
    try:
        json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return True
    return False


def _is_whole(value: Json) -> bool:
    choices = value.get('choices')
    first = choices[0] if isinstance(choices, list) and choices else None
    return isinstance(first, Mapping) and isinstance(first.get('message'), Mapping) and 'delta' not in first


def _no_json(text: str) -> str:
    start = ' '.join(text.split())[:200]
    if not start:
        return 'expected a JSON completion and got nothing'
    try:
        json.loads(text)
        fault = ''
    except (ValueError, RecursionError) as error:
        fault = f' ({error})' if start[0] in '{[' else ''
    return f'expected a JSON completion and got {start!r}{fault}'
