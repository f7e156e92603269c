"""What a stream of the Responses API tells of its items: the text of each part, the arguments of each call.

`Texts` and `Calls` take the events of one stream, placed already, and give those that pydantic-ai is to see. Both know
what it has been told, so that the end of a part, of an item or of the whole response adds what is missing, and no more.
A well-formed event comes out as it went in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from oaicompat._envelope import FailureError, Json, has_half, joined_halves
from oaicompat._json import as_object, dumped, is_cut_off, repair_arguments
from oaicompat._repair import Context
from oaicompat._responses import is_call, whole_call, with_call_id
from oaicompat._toolcalls import WHOLE, ToolCalls

Key = tuple[int, str, int]
"""A part: the index of its item, the kind of its events, its own index."""

PARTS: Mapping[str, tuple[str, str]] = {
    'output_text': ('output_text', 'text'),
    'refusal': ('refusal', 'refusal'),
    'reasoning_text': ('reasoning_text', 'text'),
    'summary_text': ('reasoning_summary_text', 'text'),
}
"""By the type of a part: the kind of its events, and the field that its text stands in."""

_LISTS: Mapping[str, tuple[str, ...]] = {'message': ('content',), 'reasoning': ('summary', 'content')}


class Halves:
    """Characters that came in two halves, one in each of two deltas, made whole."""

    def __init__(self, repairs: set[str]) -> None:
        self._repairs = repairs
        self._waiting: dict[object, str] = {}

    def feed(self, key: object, text: str) -> str:
        """`text` with what waited for it; a half at its end waits for the next."""
        if key not in self._waiting and not has_half(text):
            return text
        self._repairs.add('content.split_character')
        text = self._waiting.pop(key, '') + text
        if '\ud800' <= text[-1:] <= '\udbff':
            self._waiting[key], text = text[-1], text[:-1]
        return joined_halves(text)

    def take(self, key: object) -> str:
        """What still waits, as the character that stands for none."""
        return joined_halves(self._waiting.pop(key, ''))

    @property
    def keys(self) -> list[Any]:
        """Where something waits."""
        return list(self._waiting)


@dataclass
class _Text:
    pieces: list[str] = field(default_factory=list)
    size: int = 0

    def add(self, text: str) -> None:
        self.pieces.append(text)
        self.size += len(text)

    def __str__(self) -> str:
        if len(self.pieces) > 1:
            self.pieces = [''.join(self.pieces)]
        return ''.join(self.pieces)


class Texts:
    """The texts of one stream: answer, refusal and reasoning.

    A delta that repeats all before it may be a running total, or go on with the same words. It waits: what follows it,
    or the whole text at the end, tells which.
    """

    def __init__(self, repairs: set[str]) -> None:
        self._repairs = repairs
        self._told: dict[Key, _Text] = {}
        self._announced: dict[Key, str] = {}  # by an event that opened the part
        self._held: list[Json] = []
        self._key: Key = (0, '', 0)  # of what is held
        self._halves = Halves(repairs)

    def feed(self, event: Json, kind: str) -> list[Json]:
        """The deltas that one becomes."""
        key = _key(event, kind)
        text = self._halves.feed(key, event['delta'])
        event = event if text == event['delta'] else {**event, 'delta': text}
        if self._held and key == self._key and text.startswith(self._held[-1]['delta']):
            self._held.append(event)
            return []
        before, told = self.release(), self._told.setdefault(key, _Text())
        if 0 < told.size < len(text) and text.startswith(str(told)):
            self._held, self._key = [event], key
            return before
        told.add(text)
        return [*before, event]

    def release(self) -> list[Json]:
        """What waits, as it came: no running total."""
        held, self._held = self._held, []
        for event in held:
            self._told[self._key].add(event['delta'])
        return held

    def announce(self, event: Json, kind: str, text: str) -> None:
        """Take the text of an event that opens a part: it counts where nothing else tells it."""
        if text:
            self._announced[_key(event, kind)] = text

    def end(self, event: Json, kind: str, text: str) -> list[Json]:
        """What `text`, a part as a whole, adds to what was told of it."""
        return self._end(_key(event, kind), event['item_id'], text)

    def end_item(self, index: int, item: Json) -> list[Json]:
        """What an item as a whole adds to what was told of its parts."""
        told = [(key, text) for key, text in _texts_of(index, item) if text]
        events: list[Json] = []
        for kind in dict.fromkeys(key[1] for key, _ in told):
            # Some servers count the parts from one, or all of them as the first.
            known = ''.join(str(text) for key, text in sorted(self._told.items()) if key[:2] == (index, kind))
            ours = [(key, text) for key, text in told if key[1] == kind]
            if known and not self._held and known == ''.join(text for _, text in ours):
                continue
            for key, text in ours:
                events += self._end(key, item['id'], text)
        return [*events, *self._announced_of(item['id'], index)]

    def finish(self) -> list[Json]:
        """What is left when the stream ends."""
        events = self.release()
        for key in self._halves.keys:
            events.append(_delta(key, None, self._halves.take(key)))
        return events

    def _announced_of(self, id_: str, index: int) -> list[Json]:
        keys = [key for key in self._announced if key[0] == index]
        return [event for key in keys for event in self._end(key, id_, self._announced[key], only_news=True)]

    def _end(self, key: Key, id_: str | None, text: str, *, only_news: bool = False) -> list[Json]:
        rest = self._halves.take(key)
        announced = self._announced.pop(key, '')
        told = self._told.setdefault(key, _Text())
        if self._held and self._key == key and self._is_total(text, str(told)):
            self._repairs.add('content.cumulative')
            self._held = []
            events: list[Json] = []
        else:
            events = self.release()
        before = str(told)
        text = text or announced
        if only_news and before:
            return events
        missing = text[len(before) :] if text.startswith(before) else rest
        if not missing:
            return events
        if missing != rest or not before:
            self._repairs.add('responses.unstreamed')
        told.add(missing)
        return [*events, _delta(key, id_, missing)]

    def _is_total(self, text: str, told: str) -> bool:
        """Whether `text` says that what waits are running totals."""
        last, joined = self._held[-1]['delta'], told + ''.join(event['delta'] for event in self._held)
        return bool(text) and text.startswith(last) and not text.startswith(joined)


def _key(event: Json, kind: str) -> Key:
    place = event.get('summary_index' if 'summary' in kind else 'content_index')
    return event['output_index'], kind, place if isinstance(place, int) else 0


def _delta(key: Key, id_: str | None, text: str) -> Json:
    index, kind, place = key
    at = 'summary_index' if 'summary' in kind else 'content_index'
    return {'type': f'response.{kind}.delta', 'output_index': index, 'item_id': id_, at: place, 'delta': text}


def _texts_of(index: int, item: Json) -> Iterable[tuple[Key, str]]:
    for name in _LISTS.get(str(item.get('type')), ()):
        for place, part in enumerate(item.get(name) or ()):
            kind, key = PARTS.get(str(part.get('type')), ('', ''))
            if kind and isinstance(part.get(key), str):
                yield (index, kind, place), part[key]


class Call:
    """One call of a stream.

    pydantic-ai puts a call that opens again in the place of the one before: so arguments are replaced.
    """

    def __init__(self, context: Context, repairs: set[str], index: int) -> None:
        self._context, self._repairs, self._index = context, repairs, index
        self._tracker = ToolCalls(context.schemas, repairs)
        self._item: Json = {}
        self._name = ''
        self._told = _Text()
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
        return self._named(item.get('name'))

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
        best = self._best(self._given)
        events = [*opened, *(self._tell(best) if best is not None else [])]
        told = str(self._told)
        if self._given and best is not None and self._given not in (told, best):
            self._repairs.add('tool_call.arguments')
        self._settled, self._final = self._settled or best is not None, self._final or bool(told)
        if item is None:
            if not told:
                return events
            return [*events, event if event['arguments'] == told else {**event, 'arguments': told}]
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
        self._told = _Text([arguments], len(arguments))
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


# What the events of a stream amount to


def fold_event(event: Json, items: dict[int, Json]) -> None:
    """Keep what a repaired event says of an item."""
    index, item, kind = event.get('output_index'), event.get('item'), str(event.get('type'))
    if not isinstance(index, int):
        return
    if isinstance(item, dict):
        known = items.get(index, {})
        begins = kind.endswith('.added') and not is_call(item)
        lists = {key: [] if begins else known[key] for key in _FOLDED if key in (item if begins else known)}
        items[index] = {**item, **lists} if begins or _words(known) != _words(item) else item
    elif kind == 'response.function_call_arguments.delta' and index in items:
        items[index] = {**items[index], 'arguments': (items[index].get('arguments') or '') + event['delta']}
    elif kind in _DELTAS:
        type_, key = _DELTAS[kind]
        part = {'type': type_, key: '', **({'annotations': []} if type_ == 'output_text' else {})}
        name = 'summary' if type_ == 'summary_text' else 'content'
        fresh = {'type': 'reasoning' if key == 'text' and type_ != 'output_text' else 'message', 'summary': []}
        item = items.setdefault(index, {**fresh, 'id': event.get('item_id')})
        parts = item[name] = [dict(one) for one in item.get(name) or ()]
        place = _key(event, kind)[2]
        parts += [dict(part) for _ in range(place + 1 - len(parts))]
        parts[place] = {**part, **parts[place], key: str(parts[place].get(key) or '') + event['delta']}


def joined_output(output: Iterable[Json], items: Mapping[int, Json]) -> list[Json]:
    """The items that the events amount to; the last event may say more of a text, and of items of other types."""
    left = {item.get('id'): item for item in output}
    made = []
    for _, item in sorted(items.items()):
        whole = left.pop(item.get('id'), None)
        made.append(whole if whole and not is_call(item) and _words(whole) == _words(item) else item)
    return [*made, *(item for item in left.values() if item.get('type') not in STREAMED)]


def _words(item: Json) -> list[str]:
    parts = (part for name in _FOLDED for part in item.get(name) or () if isinstance(part, dict))
    return [str(part.get('text') or part.get('refusal') or '') for part in parts]


STREAMED = frozenset({'message', 'reasoning', 'function_call'})
"""The types of items that are streamed in pieces."""

_FOLDED = ('summary', 'content')
_DELTAS = {f'response.{kind}.delta': (type_, key) for type_, (kind, key) in PARTS.items()}
