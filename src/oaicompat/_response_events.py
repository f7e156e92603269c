"""Repair of the events of the Responses API: one item id and index for each output item, nothing left out.

Whatever the server repeats or leaves out, pydantic-ai sees each item open, its deltas, and its end.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oaicompat._envelope import FailureError, Json, failure_in, text_in
from oaicompat._json import is_cut_off
from oaicompat._repair import Context, IncompleteError
from oaicompat._responses import plain_item, plain_part, plain_response, unwrapped_response, with_call_id
from oaicompat._sse import ErrorText, EventDecoder, read_values

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
        self._held: dict[int, str] = {}  # arguments that came whole with a call that opened: deltas may follow
        self._texts: dict[tuple[int, int], str] = {}  # told in deltas, by item and part
        self._calls: dict[int, Json] = {}  # calls as they opened, until they are done
        self._told: dict[int, list[str]] = {}  # arguments that came in deltas
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
        return [one for placed in self._read(event) for one in self._with_arguments(placed)]

    def _read(self, event: Json) -> list[Json]:
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
            return [*self._settled(), *self._unshown(event['response']), *self._fixed(event, 'terminal')]
        if kind == 'response.output_item.done' and isinstance(event.get('item'), dict):
            known = set(self._ids)
            event = self._placed(event, kind)
            index = event['output_index']
            missing = self._untold if index in known else self._streamed
            missed = missing(plain_item(event['item'], self._context, set()), index)
            return [*missed, *self._replaced(event), *self._fixed(event, kind)]
        return self._fixed(event, str(kind))

    def _with_arguments(self, event: Json) -> list[Json]:
        """`event`, where arguments that came whole with a call wait for the deltas that may repeat them."""
        kind, index, item = event.get('type'), event.get('output_index'), event.get('item')
        if kind in _TERMINAL:
            return [*self._released(), event]
        if not isinstance(index, int):
            return [event]
        call = item if isinstance(item, dict) and item.get('type') == 'function_call' else None
        opens = kind == 'response.output_item.added' and index not in self._told
        if opens and call is not None and call.get('arguments'):
            self._held[index] = call['arguments']
            return [{**event, 'item': {**call, 'arguments': ''}}]
        if index in self._held and kind == 'response.function_call_arguments.delta':
            self.repairs.add('tool_call.cumulative')
            del self._held[index]
        elif kind == 'response.function_call_arguments.done' or (kind == 'response.output_item.done' and call):
            if (call or event).get('arguments'):
                self._held.pop(index, None)  # pydantic-ai takes them from there
            return [*self._released(index), event]
        return [event]

    def _released(self, *indexes: int) -> list[Json]:
        """What is held for the items, or for all, as deltas."""
        released = [index for index in indexes or tuple(self._held) if index in self._held]
        kind = 'response.function_call_arguments.delta'
        return [
            {'type': kind, 'output_index': index, 'item_id': self._ids.get(index), 'delta': self._held.pop(index)}
            for index in released
        ]

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

    def _replaced(self, done: Json) -> list[Json]:
        """The call of `done` once more, where its arguments came in deltas and had to be repaired as a whole.

        pydantic-ai puts a call that opens again in the place of the one before.
        """
        index, item = done['output_index'], done['item']
        self._calls.pop(index, None)
        told = ''.join(self._told.get(index, ()))
        if item.get('type') != 'function_call' or not told:
            return []
        item = {**item, 'arguments': item.get('arguments') or told}
        plain = self._item(item, index)
        if plain.get('arguments') == item['arguments']:
            return []
        return [{'type': 'response.output_item.added', 'output_index': index, 'item': plain}]

    def _settled(self) -> list[Json]:
        """Calls that opened and that no event ended."""
        ended = [(index, {**item, 'status': 'completed'}) for index, item in self._calls.items()]
        return [event for index, item in ended for event in self._replaced({'output_index': index, 'item': item})]

    def _unshown(self, response: Json) -> list[Json]:
        """The events of what only the end of the stream shows: items, and ends of texts."""
        output = plain_response(response, self._context, set()).get('output')
        items = [item for item in output if isinstance(item, dict)] if isinstance(output, list) else []
        events: list[Json] = []
        for n, item in enumerate(items):
            known = next((index for index, id_ in self._ids.items() if id_ == item.get('id')), None)
            if known is not None:
                events += self._untold(item, known)
            elif n not in self._ids:
                events += self._streamed(item, n)
        return events

    def _untold(self, item: Json, index: int) -> list[Json]:
        """Deltas of text that no delta told."""
        if item.get('type') != 'message':
            return []
        events: list[Json] = []
        for n, part in enumerate(part for part in item.get('content') or () if isinstance(part, dict)):
            told, text = self._texts.get((index, n), ''), part.get('text')
            if isinstance(text, str) and text != told and text.startswith(told):
                self.repairs.add('responses.unstreamed')
                self._texts[index, n] = text
                events.append(
                    {'type': 'response.output_text.delta', 'output_index': index, 'item_id': self._ids.get(index),
                     'content_index': n, 'delta': text[len(told):]}
                )  # fmt: skip
        return events

    def _streamed(self, item: Json, index: int) -> list[Json]:
        """An item that came whole, as the events that stream it; only what pydantic-ai takes from deltas."""
        item = {**plain_item(item, self._context, self.repairs)}
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
        self._texts |= {(index, n): part['text'] for n, part in enumerate(parts) if isinstance(part.get('text'), str)}
        return events

    def _fixed(self, event: Json, kind: str) -> list[Json]:
        self._terminal = self._terminal or kind == 'terminal'
        fixed = event
        if kind.startswith(_PLACED):
            fixed = self._placed(event, kind)
            if kind == 'response.output_text.delta':
                at = fixed['output_index'], fixed.get('content_index', 0)
                self._texts[at] = self._texts.get(at, '') + fixed['delta']
        if kind == 'response.output_item.added' and fixed['item'].get('type') == 'function_call':
            call = self._calls[fixed['output_index']] = self._opened(fixed['item'], fixed['output_index'])
            return [{**fixed, 'item': call}]
        for key, repair in (('item', self._item), ('part', self._plain), ('response', self._response)):
            value = fixed.get(key)
            if isinstance(value, dict) and (changed := repair(value)) != value:
                fixed = {**fixed, key: changed}
        return [fixed]

    def _opened(self, item: Json, index: int) -> Json:
        """A call that begins: its arguments may be to come."""
        given = item.get('arguments')
        item = with_call_id(item, self._call_ids, index, self.repairs)
        if given is None or given == '':
            self._arguments[index] = ''
            return item if given == '' else {**item, 'arguments': ''}
        return plain_item(item, self._context, self.repairs)

    def finish(self, *, dropped: bool) -> list[Json]:
        """Arguments that came whole with a call, and no deltas after it.

        Raises:
            IncompleteError: If the stream ended inside of a call.
        """
        if not self._seen:
            raise FailureError('the stream has no event of a response', None)
        cut = [text for text in self._arguments.values() if not text or is_cut_off(text)]
        if cut and (dropped or not self._terminal):
            raise IncompleteError('the stream ended inside of the arguments of a call')
        return self._released()

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
            self._told.setdefault(index, []).append(event['delta'])
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

    def _item(self, item: Json, index: int | None = None) -> Json:
        plain = plain_item(item, self._context, self.repairs)
        return with_call_id(plain, self._call_ids, self._newest if index is None else index, self.repairs)

    def _plain(self, part: Json) -> Json:
        return plain_part(part, self.repairs)

    def _response(self, response: Json) -> Json:
        made: set[str] = set()
        plain = plain_response(response, self._context, made)
        # What is told of the items counts where they are told.
        self.repairs |= {name for name in made if not name.startswith('tool_call.')}
        return plain


_INDEXES: Mapping[str, tuple[str, ...]] = {
    'response.content_part': ('content_index',),
    'response.output_text': ('content_index',),
    'response.refusal': ('content_index',),
    'response.reasoning_text': ('content_index',),
    'response.reasoning_summary_text': ('summary_index',),
    'response.reasoning_summary_part': ('summary_index',),
}


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
