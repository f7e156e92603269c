"""Repair of answers of the Responses API: events of a stream, and answers that come whole.

`EventRepair` places each event (one item id and index for each output item, whatever the server repeats or leaves
out); both fill in what servers send as null. Pure functions on JSON values.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from oaicompat._envelope import FailureError, Json, failure_in
from oaicompat._json import is_cut_off
from oaicompat._repair import Context, IncompleteError
from oaicompat._sse import EventDecoder, read_values
from oaicompat._toolcalls import ToolCalls, whole_calls

_LISTS = ('output', 'content', 'summary', 'annotations')
_TERMINAL = frozenset({'response.completed', 'response.failed', 'response.incomplete'})
_PLACED = ('response.output_item.', 'response.content_part.', 'response.output_text.', 'response.refusal.',
           'response.reasoning', 'response.function_call_arguments.')  # fmt: skip


class EventRepair:
    """The events of one stream, repaired; one for each stream.

    Attributes:
        repairs: Names of the repairs that were made.
    """

    def __init__(self, context: Context, repairs: set[str] | None = None) -> None:
        self.repairs = set() if repairs is None else repairs
        self._context = context
        self._ids: dict[int, str] = {}
        self._newest = 0
        self._arguments: dict[int, str] = {}
        self._terminal = False

    @property
    def finished(self) -> bool:
        """Whether the server said how the response ends."""
        return self._terminal

    def feed(self, event: Json) -> list[Json]:
        """The repaired event: most often itself.

        Raises:
            FailureError: If it is an error.
        """
        kind = event.get('type')
        if kind == 'error' or (event.get('error') and not str(kind).startswith('response.')):
            raise failure_in(event if event.get('error') else {'error': event}) or FailureError('error', event)
        self._terminal = self._terminal or kind in _TERMINAL
        fixed = event
        if isinstance(kind, str) and kind.startswith(_PLACED):
            fixed = self._placed(event, kind)
        for key, repair in (('item', self._item), ('part', self._plain), ('response', self._response)):
            value = fixed.get(key)
            if isinstance(value, dict) and (changed := repair(value)) != value:
                fixed = {**fixed, key: changed}
        return [fixed]

    def finish(self, *, announced: bool) -> list[Json]:
        """Nothing is held.

        Raises:
            IncompleteError: If the stream ended inside of a call.
        """
        cut = [text for text in self._arguments.values() if is_cut_off(text)]
        if not self._terminal and not announced and cut:
            raise IncompleteError('the stream ended inside of the arguments of a call')
        return []

    def _placed(self, event: Json, kind: str) -> Json:
        """`event` with the index and the id of its item, the same in each of them."""
        item = event.get('item')
        given = item.get('id') if isinstance(item, dict) else event.get('item_id')
        index = event.get('output_index')
        if not isinstance(index, int) or isinstance(index, bool):
            index = self._index_of(given, opens=kind == 'response.output_item.added')
        self._newest = index
        id_ = self._ids.setdefault(index, given if isinstance(given, str) and given else f'item_{index}')
        news: Json = {'output_index': index}
        if isinstance(item, dict):
            news['item'] = item if item.get('id') == id_ else {**item, 'id': id_}
        else:
            news['item_id'] = id_
            for key in ('content_index', 'summary_index'):
                if key in _INDEXES.get(kind.rpartition('.')[0], ()) and not isinstance(event.get(key), int):
                    news[key] = 0
        if kind == 'response.function_call_arguments.delta' and isinstance(event.get('delta'), str):
            self._arguments[index] = self._arguments.get(index, '') + event['delta']
        elif kind in ('response.function_call_arguments.done', 'response.output_item.done'):
            self._arguments.pop(index, None)
        if all(event.get(key) == value for key, value in news.items()):
            return event
        self.repairs.add('responses.placed')
        return {**event, **news}

    def _index_of(self, given: object, *, opens: bool) -> int:
        known = next((index for index, id_ in self._ids.items() if id_ == given), None)
        if known is not None:
            return known
        return max(self._ids, default=-1) + 1 if opens else self._newest

    def _item(self, item: Json) -> Json:
        return _plain_item(item, self._context, self.repairs)

    def _plain(self, part: Json) -> Json:
        return _without_nulls(part, self.repairs)

    def _response(self, response: Json) -> Json:
        return _plain_response(response, self._context, self.repairs)


_INDEXES: Mapping[str, tuple[str, ...]] = {
    'response.content_part': ('content_index',),
    'response.output_text': ('content_index',),
    'response.refusal': ('content_index',),
    'response.reasoning_text': ('content_index',),
    'response.reasoning_summary_text': ('summary_index',),
    'response.reasoning_summary_part': ('summary_index',),
}


def repair_response(body: Json, context: Context, repairs: set[str]) -> Json:
    """A whole response, repaired; `body` itself where there is nothing to repair.

    Raises:
        FailureError: If it is an error, or no response at all.
    """
    if body.get('error') and 'output' not in body and (failure := failure_in(body)) is not None:
        raise failure
    for key in ('response', 'data', 'result'):
        if 'output' not in body and isinstance(body.get(key), dict) and 'output' in body[key]:
            repairs.add('envelope.wrapped')
            body = body[key]
    if 'output' not in body:
        raise failure_in(body) or FailureError('the answer has no output', body)
    fixed = _plain_response(body, context, repairs)
    return body if fixed == body else fixed


def response_in(text: str, repairs: set[str]) -> Json:
    """The response in a body that is not plain JSON.

    Raises:
        FailureError: If there is none.
    """
    decoder = EventDecoder(repairs)
    values = [v for event in (*decoder.feed(text.encode()), *decoder.finish()) for v in read_values(event, repairs)]
    objects = [value for value in values if isinstance(value, dict)]
    for value in reversed(objects):
        inner = value.get('response', value)
        if isinstance(inner, dict) and 'output' in inner:
            repairs.add('sse.unasked')
            return inner
    start = ' '.join(text.split())[:200]
    raise FailureError(f'expected a JSON response and got {start!r}', objects[-1] if objects else None)


def _plain_response(response: Json, context: Context, repairs: set[str]) -> Json:
    plain = _without_nulls(response, repairs)
    output = plain.get('output')
    if isinstance(output, list):
        items = [_plain_item(item, context, repairs) if isinstance(item, dict) else item for item in output]
        plain = {**plain, 'output': items}
    return plain


def _plain_item(item: Json, context: Context, repairs: set[str]) -> Json:
    item = _without_nulls(item, repairs)
    if item.get('type') == 'function_call' and item.get('status') != 'in_progress':
        item = _plain_call(item, context, repairs)
    content = item.get('content')
    if isinstance(content, str) and item.get('type') == 'message':
        repairs.add('content.not_a_list')
        return {**item, 'content': [{'type': 'output_text', 'text': content, 'annotations': []}]}
    if isinstance(content, list):
        parts = [_without_nulls(part, repairs) if isinstance(part, dict) else part for part in content]
        return {**item, 'content': parts}
    return item


def _plain_call(item: Json, context: Context, repairs: set[str]) -> Json:
    """A call with its name and arguments by the same rules as in Chat Completions; a part of one stays."""
    arguments = item.get('arguments')
    if arguments == '' or (isinstance(arguments, str) and is_cut_off(arguments)):
        return item
    call = {'id': 'call', 'type': 'function', 'function': {'name': item.get('name'), 'arguments': arguments}}
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
