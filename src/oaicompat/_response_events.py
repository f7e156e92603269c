"""Repair of the events of the Responses API: one item id and index for each output item, nothing left out.

Whatever the server repeats or leaves out, pydantic-ai sees each item open, its deltas, and its end. An event is first
brought into its form (`plain_event()`), then placed (`_placed()`), then read by its kind (`_READERS`).
`_response_texts.py` and `_response_calls.py` know what was told of each text and call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from typing_extensions import override

from oaicompat._context import Context
from oaicompat._envelope import FailureError, IncompleteError, Json, failure_in, text_in
from oaicompat._response_calls import Calls
from oaicompat._response_texts import STREAMED, Texts, fold_event, joined_output
from oaicompat._responses import (
    ARGUMENTS,
    ENDS,
    LIFE,
    PARTS,
    WHOLES,
    end_of,
    is_call,
    part_type,
    plain_event,
    plain_item,
    plain_items,
    plain_part,
    plain_response,
    raise_odd_error,
    unwrapped_response,
)
from oaicompat._sse import ErrorText, EventDecoder, read_values

_PLACED = ('response.output_item.', 'response.content_part.', 'response.output_text.', 'response.refusal.',
           'response.reasoning', 'response.function_call_arguments.')  # fmt: skip


class _Then(list[Json]):
    """Events, and behind them the error that ends the stream: what came before it is not lost."""

    def __init__(self, events: list[Json], error: Exception) -> None:
        super().__init__(events)
        self._error = error

    @override
    def __iter__(self) -> Iterator[Json]:
        yield from super().__iter__()
        raise self._error


class EventRepair:
    """The events of one stream, repaired; one for each stream.

    Attributes:
        repairs: Names of the repairs that were made.
    """

    def __init__(self, context: Context, repairs: set[str] | None = None) -> None:
        self.repairs = set() if repairs is None else repairs
        self._ids: dict[int, str] = {}
        self._newest = 0
        self._given: dict[int, int] = {}  # the server's index to ours, where it uses one for several items
        self._shared = False  # whether the server gives one id to several items
        self._texts = Texts(self.repairs)
        self._calls = Calls(context, self.repairs)
        self._types: dict[int, str] = {}
        self._places: dict[tuple[int, str], int] = {}  # the newest part of an item
        self._opened: set[int] = set()
        self._terminal = False
        self._seen = False

    @property
    def finished(self) -> bool:
        """Whether the server said how the response ends."""
        return self._terminal

    def feed(self, event: Json) -> list[Json]:
        """The repaired events that one becomes: most often itself.

        Raises:
            FailureError: If it is an error.
        """
        try:
            return self._read(event)
        except FailureError as failure:
            if before := self._texts.release():
                return _Then(before, failure)
            raise

    def _read(self, event: Json) -> list[Json]:
        kind = event.get('type')
        if kind in ('error', 'response.error') or (event.get('error') and not str(kind).startswith('response.')):
            if self._terminal:
                self.repairs.add('sse.trailing')
                return []
            raise failure_in(event if event.get('error') else {'error': event}) or FailureError('error', event)
        if kind is None and 'output' in (response := unwrapped_response(event)):
            self.repairs.add('sse.unasked')
            opened = {'type': 'response.created', 'response': {**response, 'output': []}}
            return [*self._read(opened), *self._read({'type': end_of(response), 'response': response})]
        plain = plain_event(event, self.repairs)
        if plain is None:
            self.repairs.add('responses.event')
            return []
        kind = str(plain['type'])
        self._seen = self._seen or kind.startswith('response.')
        if kind.startswith(_PLACED):
            plain = self._placed(plain, kind)
        read = _READERS.get(kind)
        return read(self, plain) if read else [*self._texts.release(), plain]

    def finish(self, *, dropped: bool) -> list[Json]:
        """What is still held when the stream ends.

        Raises:
            FailureError: If there was nothing of a response in it.
            IncompleteError: If the stream ended inside of a call.
        """
        if not self._seen:
            raise FailureError('the stream has no event of a response', None)
        if self._terminal:
            return []
        before = self._texts.finish()
        try:
            if self._calls.cut:
                raise IncompleteError('the stream ended inside of the arguments of a call')
            return [*before, *self._calls.finish({})]
        except (FailureError, IncompleteError) as error:
            if before:
                return _Then(before, error)
            raise

    # What events say

    def _begun(self, event: Json) -> list[Json]:
        """An event on how the response is going on."""
        response = event['response']
        output = response.get('output')
        plain = plain_response({**response, 'output': []}, self.repairs)
        items = output if isinstance(output, list) and all(isinstance(item, dict) for item in output) else []
        if items is not output and output is not None:
            self.repairs.add('responses.event')
        return [*self._texts.release(), {**event, 'response': {**plain, 'output': items}}]

    def _ended(self, event: Json) -> list[Json]:
        """The end of the response, and before it what only it tells."""
        if self._terminal:
            self.repairs.add('responses.event')
            return []
        response = event['response']
        kind = event['type'].partition('.')[2]
        if kind == 'failed':
            raise_odd_error(response)
        plain = plain_response(response, self.repairs)
        if 'output' in plain and not isinstance(plain['output'], list):
            self.repairs.add('responses.output')
            plain = {**plain, 'output': plain_items([plain['output']], self.repairs)}
        elif 'output' not in plain:
            self.repairs.add('responses.null_lists')
            plain = {**plain, 'output': []}
        if response.get('status') is not None and plain.get('status') is None:
            plain = {**plain, 'status': kind}
        events = self._unshown(plain)
        self._terminal = True
        return [*events, {**event, 'response': plain}]

    def _unshown(self, response: Json) -> list[Json]:
        """The events of what only the end of the stream shows: items, ends of texts, arguments."""
        items, text = response['output'], response.get('output_text')
        if not items and isinstance(text, str) and text and not self._ids:
            items = [{**item, 'id': 'item_0'} for item in plain_items([text], self.repairs)]
        events: list[Json] = []
        given: dict[int, object] = {}
        taken: set[int] = set()
        for n, item in enumerate(items):
            index = self._match(n, item, taken)
            taken.add(index)
            if is_call(item) and index in self._calls and self._calls[index].named:
                given[index] = item.get('arguments')
            elif index in self._ids and not is_call(item):
                events += self._texts.end_item(index, {**item, 'id': self._ids[index]})
            elif item.get('type') in STREAMED:
                if item.get('encrypted_content'):
                    self.repairs.add('responses.unstreamed')
                done = {'type': 'response.output_item.done', 'output_index': index, 'item': item}
                events += self._done(self._placed(done, done['type']))
        return [*events, *self._texts.finish(), *self._calls.finish(given)]

    def _added(self, event: Json) -> list[Json]:
        before = self._texts.release()
        if is_call(event['item']):
            return [*before, *self._calls.open(event)]
        plain = plain_item(event['item'], self.repairs)
        self._opened.add(event['output_index'])
        return [*before, event if plain == event['item'] else {**event, 'item': plain}]

    def _done(self, event: Json) -> list[Json]:
        index, item = event['output_index'], plain_item(event['item'], self.repairs)
        event = event if item == event['item'] else {**event, 'item': item}
        if is_call(item):
            return [*self._texts.release(), *self._calls.end(event)]
        events = self._texts.end_item(index, item)
        if events and index not in self._opened and item.get('type') == 'message':
            events = [{**event, 'type': 'response.output_item.added'}, *events]  # it may say the phase
        return [*events, *self._texts.release(), event]

    def _part(self, event: Json) -> list[Json]:
        """A part that opens or ends; what its text adds."""
        kind = event['type']
        type_ = event['part'].get('type')
        odd = not isinstance(type_, str) or ('summary' in kind and type_ == 'refusal')
        part = {**event['part'], 'type': part_type(kind)} if odd else event['part']
        if 'summary' in kind and not isinstance(part.get('text'), str):
            part = {**part, 'text': text_in(part.get('refusal'))}
        part = plain_part(part, self.repairs)
        told, key = PARTS.get(str(part.get('type')), ('', ''))
        text = part.get(key)
        if not told or not isinstance(text, str):
            return [*self._texts.release(), {**event, 'part': part}]
        if kind.endswith('done'):
            events = self._texts.end(event, told, text)
            return [*events, *self._texts.release(), {**event, 'part': part}]
        self._texts.announce(event, told, text)
        return [*self._texts.release(), {**event, 'part': {**part, key: ''} if text else part}]

    def _told(self, event: Json) -> list[Json]:
        """A piece of a text."""
        return self._texts.feed(event, _TEXTS[event['type'].rpartition('.')[0]])

    def _whole_text(self, event: Json) -> list[Json]:
        """A text as a whole."""
        told = _TEXTS[event['type'].rpartition('.')[0]]
        events = self._texts.end(event, told, event[WHOLES[event['type']]])
        return [*events, *self._texts.release(), event]

    def _argued(self, event: Json) -> list[Json]:
        return [*self._texts.release(), *self._calls.feed(event)]

    def _all_argued(self, event: Json) -> list[Json]:
        return [*self._texts.release(), *self._calls.end(event)]

    # Where an event belongs

    def _placed(self, event: Json, kind: str) -> Json:
        """`event` with the index and the id of its item, the same in each of them."""
        item = event['item'] if kind.startswith('response.output_item.') else None
        given = item.get('id') if isinstance(item, dict) else event.get('item_id')
        index, opens = event.get('output_index'), kind == 'response.output_item.added'
        if isinstance(index, int) and not isinstance(index, bool):
            index = self._own(index, given, opens=opens)
        else:
            index = self._index_of(given, opens=opens)
        type_ = _type_of(kind, event.get('part'))
        if item is None and type_:
            index = self._fitting(index, type_)
        self._newest = index
        if index not in self._ids:
            self._ids[index] = self._own_id(given, index)
        if item is None:
            self._types.setdefault(index, type_ or 'message')
        elif isinstance(item.get('type'), str):
            self._types[index] = item['type']
        id_ = self._ids[index]
        news: Json = {'output_index': index}
        if isinstance(item, dict):
            news['item'] = item if item.get('id') == id_ else {**item, 'id': id_}
        else:
            news['item_id'] = id_
            for key in _INDEXES.get(kind.rpartition('.')[0], ()):
                at = event.get(key)
                if isinstance(at, bool) or not isinstance(at, int) or not 0 <= at < _MOST_PARTS:
                    news[key] = self._places.get((index, key), 0)
                else:
                    self._places[index, key] = at
        if all(event.get(key) == value for key, value in news.items()):
            return event
        self.repairs.add('responses.placed')
        return {**event, **news}

    def _own(self, index: int, given: object, *, opens: bool) -> int:
        """Our index for the server's: another one for an item that opens where there is one already."""
        known = self._ids.get(index)
        theirs = self._known(given)
        if not opens and theirs is not None and not self._shared:
            return theirs
        if opens and known is not None and isinstance(given, str) and given and given != known:
            self._given[index] = max(self._ids) + 1
        own = self._given.get(index, index)
        if own != index and not opens and theirs is not None:
            return theirs
        return own

    def _fitting(self, index: int, type_: str) -> int:
        """`index`, or that of an item that such an event can be of: pydantic-ai adds no reasoning to a call."""
        known = self._types.get(index, type_)
        if known == type_ or known not in STREAMED:
            return index
        alike = [at for at, other in self._types.items() if other == type_]
        return alike[-1] if alike else max(self._ids) + 1

    def _known(self, given: object) -> int | None:
        return next((index for index, id_ in self._ids.items() if id_ == given), None) if given else None

    def _own_id(self, given: object, index: int) -> str:
        """The id of an item that is new: the server's, where no other item has it."""
        if not isinstance(given, str) or not given:
            return f'item_{index}'
        if self._known(given) is None:
            return given
        self._shared = True
        return f'{given}_{index}'

    def _index_of(self, given: object, *, opens: bool) -> int:
        if (known := self._known(given)) is not None:
            return known
        return max(self._ids, default=-1) + 1 if opens else self._newest

    def _match(self, n: int, item: Json, taken: set[int]) -> int:
        """The index of an item of the whole response: by its id, else by its type, else a new one."""
        if (known := self._known(item.get('id'))) is not None and not self._shared:
            return known
        alike = [at for at, type_ in self._types.items() if type_ == item.get('type') and at not in taken]
        if alike:
            return n if n in alike else alike[0]
        return n if n not in self._ids else max(self._ids) + 1


def _type_of(kind: str, part: object) -> str:
    """The type of the item that an event of this kind is of; none where a part may be of either."""
    if kind.startswith(ARGUMENTS):
        return 'function_call'
    if kind.startswith('response.content_part.'):
        type_ = part.get('type') if isinstance(part, dict) else None
        return {'reasoning_text': 'reasoning', 'output_text': 'message', 'refusal': 'message'}.get(str(type_), '')
    return 'reasoning' if kind.startswith('response.reasoning') else 'message'


_MOST_PARTS = 10_000
_TEXTS: Mapping[str, str] = {f'response.{kind}': kind for kind, _ in PARTS.values()}
_INDEXES: Mapping[str, tuple[str, ...]] = {
    'response.content_part': ('content_index',),
    'response.output_text': ('content_index',),
    'response.output_text.annotation': ('content_index',),
    'response.refusal': ('content_index',),
    'response.reasoning_text': ('content_index',),
    'response.reasoning_summary_text': ('summary_index',),
    'response.reasoning_summary_part': ('summary_index',),
}
_READERS: Mapping[str, Callable[[EventRepair, Json], list[Json]]] = {
    **dict.fromkeys(LIFE - ENDS, EventRepair._begun),
    **dict.fromkeys(ENDS, EventRepair._ended),
    **dict.fromkeys((f'{kind}.delta' for kind in _TEXTS), EventRepair._told),
    **dict.fromkeys((f'{kind}.done' for kind in _TEXTS), EventRepair._whole_text),
    'response.output_item.added': EventRepair._added,
    'response.output_item.done': EventRepair._done,
    'response.content_part.added': EventRepair._part,
    'response.content_part.done': EventRepair._part,
    'response.reasoning_summary_part.added': EventRepair._part,
    'response.reasoning_summary_part.done': EventRepair._part,
    f'{ARGUMENTS}.delta': EventRepair._argued,
    f'{ARGUMENTS}.done': EventRepair._all_argued,
}


# Streams in place of whole answers


def response_in(text: str, context: Context, repairs: set[str]) -> Json:
    """The response in a body that is not plain JSON.

    Raises:
        FailureError: If there is none.
        IncompleteError: If it ends before it is whole.
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
        if isinstance(value, ErrorText) and response and not repair.finished:
            raise FailureError(str(value), None)
        for event in repair.feed(value) if isinstance(value, dict) else ():
            response = event.get('response', response)
            fold_event(event, items)
    start = ' '.join(text.split())[:200]
    if not response and not items:
        raise FailureError(f'expected a JSON response and got {start!r}', None)
    if text.lstrip()[:1] != '{':
        repairs.add('sse.unasked')
    if not repair.finished and text.lstrip()[:1] != '{':
        raise IncompleteError('the stream ended before the response did')
    for event in repair.finish(dropped=False):
        fold_event(event, items)
    return {**response, 'output': joined_output(response.get('output') or [], items)}
