"""Repair of answers of the Responses API: events of a stream, and answers that come whole.

`EventRepair` places each event (one item id and index for each output item, whatever the server repeats or leaves
out); both fill in what servers send as null. Pure functions on JSON values.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from oaicompat._envelope import FailureError, Json, failure_in, plain_counts, text_in
from oaicompat._json import is_cut_off
from oaicompat._repair import Context, IncompleteError
from oaicompat._sse import ErrorText, EventDecoder, read_values
from oaicompat._toolcalls import ToolCalls, synthetic_id, whole_calls

_LISTS = ('output', 'content', 'summary', 'annotations')
_TERMINAL = frozenset({'response.completed', 'response.failed', 'response.incomplete'})
_LIFE = frozenset({*_TERMINAL, 'response.created', 'response.in_progress', 'response.queued'})
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
        self._call_ids: dict[int, str] = {}
        self._given: dict[int, int] = {}  # the server's index to ours, where it uses one for several items
        self._arguments: dict[int, str] = {}
        self._shown: set[int] = set()  # items of which something was streamed
        self._terminal = False
        self._seen = False

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
        if kind is not None and not isinstance(kind, str):
            self.repairs.add('responses.event')
            event, kind = {**event, 'type': 'response.unreadable'}, 'response.unreadable'
        if kind in ('error', 'response.error') or (event.get('error') and not str(kind).startswith('response.')):
            raise failure_in(event if event.get('error') else {'error': event}) or FailureError('error', event)
        if kind is None and 'output' in (response := unwrapped_response(event)):
            self.repairs.add('sse.unasked')
            self._seen = True
            event = {'type': 'response.completed', 'response': response}
            created = {'type': 'response.created', 'response': {**response, 'output': []}}
            return [*self._fixed(created, ''), *self._unshown(response), *self._fixed(event, 'terminal')]
        self._seen = self._seen or str(kind).startswith('response.')
        event = self._plain_event(event)
        kind = event.get('type')
        if event.get('type') in _TERMINAL:
            return [*self._unshown(event['response']), *self._fixed(event, 'terminal')]
        if kind == 'response.output_item.done' and isinstance(event.get('item'), dict):
            event = self._placed(event, kind)
            if event['output_index'] not in self._shown:
                return [*self._streamed(event['item'], event['output_index']), *self._fixed(event, kind)]
        return self._fixed(event, str(kind))

    def _plain_event(self, event: Json) -> Json:
        """`event` with the fields that its kind must have, of the type that they must be of."""
        kind = str(event.get('type'))
        fixed = event
        if kind == 'response.done':
            fixed = {**event, 'type': 'response.completed'}
        if kind.startswith('response.output_item.') and not isinstance(event.get('item'), dict):
            fixed = {'type': 'response.unreadable'}
        if kind.endswith('.delta') and not isinstance(event.get('delta'), str):
            fixed = {**event, 'delta': text_in(event.get('delta'))}
        if fixed.get('type') in _LIFE and not isinstance(event.get('response'), dict):
            fixed = {**fixed, 'response': {'status': str(fixed['type']).partition('.')[2], 'output': []}}
        if fixed is not event:
            self.repairs.add('responses.event')
        return fixed

    def _unshown(self, response: Json) -> list[Json]:
        """The events of items that only the end of the stream shows."""
        output = _plain_response(response, self._context, self.repairs).get('output')
        if self._shown or self._ids or not isinstance(output, list):
            return []
        return [event for n, item in enumerate(output) if isinstance(item, dict) for event in self._streamed(item, n)]

    def _streamed(self, item: Json, index: int) -> list[Json]:
        """An item that came whole, as the events that stream it; only what pydantic-ai takes from deltas."""
        item = {**_plain_item(item, self._context, self.repairs)}
        item['id'] = self._ids.setdefault(index, item.get('id') or f'item_{index}')
        at = {'output_index': index, 'item_id': item['id']}
        added = {'type': 'response.output_item.added', 'output_index': index, 'item': item}
        parts = [part for part in item.get('content') or () if isinstance(part, dict)]
        if item.get('type') == 'function_call':
            events = [added]
        elif item.get('type') == 'message':
            events = [added]
            for n, part in enumerate(parts):
                key = 'refusal' if part.get('type') == 'refusal' else 'text'
                kind = 'refusal' if key == 'refusal' else 'output_text'
                events += [{'type': f'response.{kind}.{end}', 'delta': part.get(key), key: part.get(key),
                            'content_index': n, **at} for end in ('delta', 'done')]  # fmt: skip
        else:
            return []
        self.repairs.add('responses.unstreamed')
        self._shown.add(index)
        return events

    def _fixed(self, event: Json, kind: str) -> list[Json]:
        self._terminal = self._terminal or kind == 'terminal'
        fixed = event
        if kind.startswith(_PLACED):
            fixed = self._placed(event, kind)
            if kind.endswith('.delta') or (fixed.get('item') or {}).get('type') != 'message':
                self._shown.add(fixed['output_index'])
        if kind == 'response.output_item.added' and fixed['item'].get('type') == 'function_call':
            return [{**fixed, 'item': self._opened(fixed['item'], fixed['output_index'])}]
        for key, repair in (('item', self._item), ('part', self._plain), ('response', self._response)):
            value = fixed.get(key)
            if isinstance(value, dict) and (changed := repair(value)) != value:
                fixed = {**fixed, key: changed}
        return [fixed]

    def _opened(self, item: Json, index: int) -> Json:
        """A call that begins: its arguments may be to come."""
        given = item.get('arguments')
        item = _with_call_id(item, self._call_ids, index, self.repairs)
        if given is None or given == '':
            self._arguments[index] = ''
            return item if given == '' else {**item, 'arguments': ''}
        return _plain_item(item, self._context, self.repairs)

    def finish(self, *, announced: bool) -> list[Json]:
        """Nothing is held.

        Raises:
            IncompleteError: If the stream ended inside of a call.
        """
        if not self._seen:
            raise FailureError('the stream has no event of a response', None)
        cut = [text for text in self._arguments.values() if not text or is_cut_off(text)]
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
        else:
            index = self._own(index, given, opens=kind == 'response.output_item.added')
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

    def _own(self, index: int, given: object, *, opens: bool) -> int:
        """Our index for the server's: another one for an item that opens where there is one already."""
        known = self._ids.get(index)
        if opens and known is not None and isinstance(given, str) and given and given != known:
            self._given[index] = max(self._ids) + 1
        own = self._given.get(index, index)
        if own != index and not opens and isinstance(given, str):
            return next((ours for ours, id_ in self._ids.items() if id_ == given), own)
        return own

    def _index_of(self, given: object, *, opens: bool) -> int:
        known = next((index for index, id_ in self._ids.items() if id_ == given), None)
        if known is not None:
            return known
        return max(self._ids, default=-1) + 1 if opens else self._newest

    def _item(self, item: Json) -> Json:
        return _with_call_id(_plain_item(item, self._context, self.repairs), self._call_ids, self._newest, self.repairs)

    def _plain(self, part: Json) -> Json:
        return _plain_part(part, self.repairs)

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
    inner = unwrapped_response(body)
    if inner is not body:
        repairs.add('envelope.wrapped')
        body = inner
    if 'output' not in body:
        raise failure_in(body) or FailureError(f'the answer has no output: {json.dumps(body)[:200]}', body)
    body = _with_output(body, repairs)
    fixed = _plain_response(body, context, repairs)
    ids: dict[int, str] = {}
    for index, item in enumerate(fixed['output']):
        if isinstance(item, dict) and item.get('type') == 'function_call':
            call = _whole_call(item, ids, index, repairs)
            fixed = {**fixed, 'output': [*fixed['output'][:index], call, *fixed['output'][index + 1 :]]}
    return body if fixed == body else fixed


def _whole_call(item: Json, ids: dict[int, str], index: int, repairs: set[str]) -> Json:
    if not item.get('name'):
        raise FailureError('a tool call without a name', item)
    call = _with_call_id(item, ids, index, repairs)
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
    repairs.add('responses.null_lists' if output is None else 'responses.output')
    if isinstance(text, str) and text and not output:
        output = [{'type': 'message', 'role': 'assistant', 'content': text}]
    return {**body, 'output': output if isinstance(output, list) else [output] if isinstance(output, dict) else []}


def _with_call_id(item: Json, ids: dict[int, str], index: int, repairs: set[str]) -> Json:
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


def response_in(text: str, context: Context, repairs: set[str]) -> Json:
    """The response in a body that is not plain JSON.

    Raises:
        FailureError: If there is none.
    """
    decoder = EventDecoder(repairs)
    events = [*decoder.feed(text.encode('utf-8', 'replace')), *decoder.finish()]
    values: list[Any] = []
    for sse in events:
        named = {'type': sse.type} if sse.type else {}
        read = read_values(sse, repairs)
        values += [{**named, **value} if isinstance(value, dict) else value for value in read]
    response: Json = {}
    items: dict[int, Json] = {}
    repair = EventRepair(context, repairs)
    for value in values:
        if isinstance(value, ErrorText) and response:
            raise FailureError(str(value), None)
        for event in repair.feed(value) if isinstance(value, dict) else ():
            if isinstance(whole := event.get('response'), dict):
                response = {**whole, 'output': whole.get('output') or response.get('output') or []}
            _fold_event(event, items)
    start = ' '.join(text.split())[:200]
    if not response and not items:
        raise FailureError(f'expected a JSON response and got {start!r}', None)
    if text.lstrip()[:1] != '{':
        repairs.add('sse.unasked')
    if not repair.finished and text.lstrip()[:1] != '{':
        raise IncompleteError('the stream ended before the response did')
    return {**response, 'output': response.get('output') or [items[n] for n in sorted(items)]}


def _fold_event(event: Json, items: dict[int, Json]) -> None:
    """Keep what an event says of an item."""
    index, item = event.get('output_index'), event.get('item')
    if not isinstance(index, int):
        return
    if isinstance(item, dict):
        # What the deltas repeat counts once.
        begins = event.get('type') == 'response.output_item.added' and item.get('type') == 'message'
        items[index] = {**item, **({'content': []} if begins else {})}
    elif event.get('type') == 'response.output_text.delta':
        message = items.setdefault(index, {'type': 'message', 'role': 'assistant', 'id': event.get('item_id')})
        [part] = message['content'] = message.get('content') or [{'type': 'output_text', 'text': '', 'annotations': []}]
        part['text'] += event['delta']
    elif event.get('type') == 'response.function_call_arguments.delta' and index in items:
        items[index]['arguments'] = (items[index].get('arguments') or '') + event['delta']


def _plain_response(response: Json, context: Context, repairs: set[str]) -> Json:
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
        items = [_plain_item(item, context, repairs) if isinstance(item, dict) else item for item in output]
        plain = {**plain, 'output': items}
    return plain


_CHAT = (('input_tokens', 'prompt_tokens'), ('output_tokens', 'completion_tokens'))


def _plain_usage(usage: object) -> Json | None:
    if not isinstance(usage, Mapping):
        return None
    given = {ours: usage.get(ours, usage.get(theirs)) for ours, theirs in _CHAT}
    return plain_counts({**usage, **given, 'total_tokens': usage.get('total_tokens')}, (*given, 'total_tokens'))


def _plain_item(item: Json, context: Context, repairs: set[str]) -> Json:
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
        parts = [_plain_part(part, repairs) if isinstance(part, dict) else part for part in content]
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


def _plain_part(part: Json, repairs: set[str]) -> Json:
    changed: Json = {}
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
    if not isinstance(item.get('name'), str):
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
