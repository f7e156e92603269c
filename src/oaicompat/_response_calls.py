"""What a stream of the Responses API tells of its calls: name, id and arguments, in pieces and as a whole.

`Calls` takes the events of one stream, placed already, and gives those that pydantic-ai is to see. Of all that told the
arguments (the event that opened the call, its deltas, both of its ends, the whole response) the first that can be read
counts. The rules for pieces are those of Chat Completions, and its tracker's. A well-formed event comes out as it went
in.
"""

from __future__ import annotations

from collections.abc import Mapping

from oaicompat._context import Context
from oaicompat._envelope import FailureError, Json
from oaicompat._json import as_object, dumped, is_cut_off, repair_arguments
from oaicompat._keys import WHOLE
from oaicompat._response_texts import Halves, Told
from oaicompat._responses import whole_call, with_call_id
from oaicompat._toolcalls import ToolCalls


class Call:
    """One call of a stream.

    pydantic-ai puts a call that opens again in the place of the one before: so arguments are replaced.
    """

    def __init__(self, context: Context, repairs: set[str], index: int) -> None:
        self._context, self._repairs, self._index = context, repairs, index
        self._tracker = ToolCalls(context.schemas, repairs)
        self._item: Json = {}
        self._name = ''
        self._told = Told()
        self._first = ''  # arguments that came with the call as it opened: deltas may repeat them
        self._given = ''  # arguments that an end told, and that could not be read
        self._ended = self._settled = False
        self._final = False  # whether pydantic-ai was told an end of the arguments: it takes no more deltas

    @property
    def cut(self) -> bool:
        """Whether nothing ended the call, and its arguments are not whole."""
        text = str(self._told) or self._first
        cut = not text.strip() or (is_cut_off(text) and repair_arguments(text) is None)
        return cut and not self._ended

    @property
    def named(self) -> bool:
        """Whether its name is known."""
        return bool(self._name)

    @property
    def id(self) -> object:
        """The id of its item."""
        return self._item.get('id')

    def open(self, event: Json) -> list[Json]:
        """The event that opens the call; nothing as long as it has no name."""
        item = event['item']
        first = self._text(item.get('arguments'))
        self._first = self._first or first
        if self._name:
            return []  # once more: what pydantic-ai has stays
        self._item = {**self._item, **item}
        made = self._named(item.get('name'))
        return [event] if made and made[0]['item'] == item else made

    def _named(self, name: object) -> list[Json]:
        """The call with `name`, and all that was told of it before."""
        function = {'name': name, 'arguments': None}
        made = self._tracker.feed([{'index': 0, 'id': 'call', 'type': 'function', 'function': function}])
        if not made:
            return []
        self._name = made[0]['function']['name']
        news = made[0]['function']['arguments'] or ''
        self._told.add(news)
        return [self._opened(news)]

    def _opened(self, arguments: str) -> Json:
        self._item = {**self._item, 'name': self._name, 'arguments': arguments}
        return {'type': 'response.output_item.added', 'output_index': self._index, 'item': self._item}

    def feed(self, event: Json) -> list[Json]:
        """The delta that one becomes: what of it is news."""
        if self._final:
            return []
        fed = self._tracker.feed([{'index': 0, 'function': {'arguments': event['delta']}}])
        news = fed[0]['function'].get('arguments') if fed else None
        if not news:
            return []
        self._told.add(news)
        return [event if news == event['delta'] else {**event, 'delta': news}]

    def end(self, event: Json) -> list[Json]:
        """The event that ends the arguments, or the call, and before it what was missing.

        Raises:
            FailureError: If the call has no name.
        """
        item = event.get('item')
        self._given = self._text((event if item is None else item).get('arguments')) or self._given
        opened = self._renamed(item) if isinstance(item, dict) else []
        self._ended = True
        if not self._name:
            return []
        best, before = self._best(self._given), str(self._told)
        events = [*opened, *(self._tell(best) if best is not None else [])]
        told = str(self._told)
        if self._given and best is not None and self._given not in (before, best):
            self._repairs.add('tool_call.arguments')
        self._settled, self._final = self._settled or best is not None, self._final or bool(told)
        if item is None:
            if not told:
                return events
            return [*events, event if event.get('arguments') == told else {**event, 'arguments': told}]
        news = {'name': self._name, 'arguments': told, 'call_id': self._item.get('call_id')}
        changed = any(item.get(key) != value for key, value in news.items())
        return [*events, {**event, 'item': {**item, **news}} if changed else event]

    def _renamed(self, item: Json) -> list[Json]:
        """The call as it opens late, or again under the name that its end tells."""
        if not self._name:
            self._item = {**item, **self._item, 'arguments': ''}
            if opened := self._named(item.get('name')):
                return opened
            raise FailureError('a tool call without a name', item)
        schemas, told = self._context.schemas, item.get('name')
        if told != self._name and self._name not in schemas and isinstance(told, str) and told in schemas:
            self._repairs.add('tool_call.name')
            self._name = told
            return [self._opened(str(self._told))]
        return []

    def finish(self, given: object = None) -> list[Json]:
        """What only the end of the stream can tell; `given` are the arguments that the whole response has.

        Raises:
            FailureError: If the call has no name.
        """
        if not self._name:
            raise FailureError('a tool call without a name', self._item or None)
        given = self._text(given) or self._given
        best = self._best(given)
        if best is None:
            told = str(self._told)
            raw = given if given.startswith(told) else told
            raw = raw or self._first
            fixed = whole_call({'name': self._name, 'arguments': raw}, self._context, self._repairs)
            best = str(fixed['arguments'])  # as it came, or `{}` where nothing did
        return self._tell(best)

    def _best(self, given: str) -> str | None:
        """The arguments: the first that can be read of those told, those given and those that the call opened with."""
        told = str(self._told)
        if self._settled and told != '{}' and given in ('', told):
            return told
        own, seen = self._fixed_told(told), self._repaired(given)
        sure = [own] if as_object(told) is not None else []
        if own[0] == seen[0] and own[0] is not None:
            sure = [own]
        more = self._repaired(self._first + told) if told else (None, set())
        options = [*sure, seen, own, more, self._repaired(self._first)]
        read = [(text, names) for text, names in options if text is not None and as_object(text) is not None]
        if not read:
            return None
        # An empty object may stand for arguments that are to come.
        text, names = next((one for one in read if as_object(one[0])), read[0])
        self._repairs |= names
        if told and text != told and not names and not text.startswith(told):
            self._repairs.add('tool_call.arguments')
        if told and text == self._first and not self._settled:
            self._repairs.add('tool_call.cumulative')
        return text

    def _fixed_told(self, told: str) -> tuple[str | None, set[str]]:
        """What was told in deltas, repaired as a whole, and the names of the repairs."""
        if not told.strip():
            return None, set()
        if self._settled:
            return told, set()
        made: set[str] = set()
        self._tracker.repairs = made
        fixed = next((str(call[WHOLE]) for call in self._tracker.finish()), told)
        self._tracker.repairs = self._repairs
        return (None, set()) if 'tool_call.unreadable' in made else (fixed, made)

    def _repaired(self, text: str) -> tuple[str | None, set[str]]:
        made: set[str] = set()
        if not text.strip():
            return None, made
        fixed = whole_call({'name': self._name, 'arguments': text}, self._context, made)['arguments']
        return (None, set()) if 'tool_call.unreadable' in made else (str(fixed), made)

    def _tell(self, arguments: str) -> list[Json]:
        """The events that bring pydantic-ai's call to these arguments."""
        told = str(self._told)
        if arguments == told:
            return []
        self._told = Told([arguments], len(arguments))
        if self._final or not arguments.startswith(told):
            return [self._opened(arguments)]
        at = {'output_index': self._index, 'item_id': self._item['id']}
        return [{'type': 'response.function_call_arguments.delta', **at, 'delta': arguments[len(told) :]}]

    def _text(self, arguments: object) -> str:
        if arguments is None or isinstance(arguments, str):
            return arguments or ''
        self._repairs.add('tool_call.arguments')
        return dumped(arguments)


class Calls:
    """The calls of one stream, by the index of their items."""

    def __init__(self, context: Context, repairs: set[str]) -> None:
        self._context, self._repairs = context, repairs
        self._ids: dict[int, str] = {}
        self._halves = Halves(repairs)
        self._calls: dict[int, Call] = {}

    def __getitem__(self, index: int) -> Call:
        """The call, new where there is none yet."""
        return self._calls.setdefault(index, Call(self._context, self._repairs, index))

    def __contains__(self, index: int) -> bool:
        """Whether anything was told of it."""
        return index in self._calls

    @property
    def cut(self) -> bool:
        """Whether the stream ended inside of one."""
        return any(call.cut for call in self._calls.values())

    def open(self, event: Json) -> list[Json]:
        """The event that opens a call."""
        item = with_call_id(event['item'], self._ids, event['output_index'], self._repairs)
        return self[event['output_index']].open({**event, 'item': item})

    def feed(self, event: Json) -> list[Json]:
        """The delta of arguments that one becomes."""
        delta, index = event['delta'], event['output_index']
        if isinstance(delta, str) and (text := self._halves.feed(index, delta)) != delta:
            event = {**event, 'delta': text}
        return self[index].feed(event)

    def end(self, event: Json) -> list[Json]:
        """The event that ends arguments, or the call."""
        index, item = event['output_index'], event.get('item')
        before = self._last_half(index)
        if isinstance(item, dict):
            if index not in self:
                self._repairs.add('responses.unstreamed')
            item = with_call_id(item, self._ids, index, self._repairs)
            event = {**event, 'item': item}
        return [*before, *self[index].end(event)]

    def finish(self, given: Mapping[int, object]) -> list[Json]:
        """What the end of the stream tells; `given` are the arguments in the whole response."""
        events: list[Json] = []
        for index, call in self._calls.items():
            events += [*self._last_half(index), *call.finish(given.get(index))]
        return events

    def _last_half(self, index: int) -> list[Json]:
        rest = self._halves.take(index)
        at = {'type': 'response.function_call_arguments.delta', 'output_index': index, 'delta': rest}
        return self[index].feed({**at, 'item_id': self[index].id}) if rest else []
