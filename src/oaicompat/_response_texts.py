"""What a stream of the Responses API tells of its texts: answer, refusal and reasoning.

`Texts` takes the events of one stream, placed already, and gives those that pydantic-ai is to see. It knows what was
told, so that the end of a part, of an item or of the whole response adds what is missing, and no more. `fold_event()`
puts repaired events together, where nobody asked for a stream. A well-formed event comes out as it went in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from typing_extensions import override

from oaicompat._envelope import Json
from oaicompat._halves import has_half, joined_halves
from oaicompat._responses import PARTS, is_call

Key = tuple[int, str, int]
"""A part: the index of its item, the kind of its events, its own index."""

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
class Told:
    """What was told in pieces, joined when somebody asks."""

    pieces: list[str] = field(default_factory=list)
    size: int = 0

    def add(self, text: str) -> None:
        """Take one piece more."""
        self.pieces.append(text)
        self.size += len(text)

    @override
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
        self._told: dict[Key, Told] = {}
        self._announced: dict[Key, str] = {}  # by an event that opened the part
        self._ids: dict[int, str] = {}  # of the items
        self._held: list[Json] = []
        self._key: Key = (0, '', 0)  # of what is held
        self._halves = Halves(repairs)

    def feed(self, event: Json, kind: str) -> list[Json]:
        """The deltas that one becomes."""
        key = self._keyed(event, kind)
        text = self._halves.feed(key, event['delta'])
        event = event if text == event['delta'] else {**event, 'delta': text}
        if self._held and key == self._key and text.startswith(self._held[-1]['delta']):
            self._held.append(event)
            return []
        before, told = self.release(), self._told.setdefault(key, Told())
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
            self._announced[self._keyed(event, kind)] = text

    def end(self, event: Json, kind: str, text: str) -> list[Json]:
        """What `text`, a part as a whole, adds to what was told of it."""
        return self._end(self._keyed(event, kind), text)

    def end_item(self, index: int, item: Json) -> list[Json]:
        """What an item as a whole adds to what was told of its parts."""
        self._ids[index] = item['id']
        told = [(key, text) for key, text in _texts_of(index, item) if text]
        events: list[Json] = []
        for kind in dict.fromkeys(key[1] for key, _ in told):
            # Some servers count the parts from one, or all of them as the first.
            known = ''.join(str(text) for key, text in sorted(self._told.items()) if key[:2] == (index, kind))
            ours = [(key, text) for key, text in told if key[1] == kind]
            if known and not self._held and known == ''.join(text for _, text in ours):
                continue
            for key, text in ours:
                events += self._end(key, text)
        return [*events, *self._announced_of(index)]

    def finish(self) -> list[Json]:
        """What is left when the stream ends."""
        events = self.release()
        for index in {key[0] for key in self._announced}:
            events += self._announced_of(index)
        return [*events, *(self._delta(key, self._halves.take(key)) for key in self._halves.keys)]

    def _keyed(self, event: Json, kind: str) -> Key:
        self._ids[event['output_index']] = event['item_id']
        return _key(event, kind)

    def _announced_of(self, index: int) -> list[Json]:
        keys = [key for key in self._announced if key[0] == index]
        return [event for key in keys for event in self._end(key, self._announced[key], only_news=True)]

    def _end(self, key: Key, text: str, *, only_news: bool = False) -> list[Json]:
        rest, announced = self._halves.take(key), self._announced.pop(key, '')
        told = self._told.setdefault(key, Told())
        before = str(told)
        if self._held and self._key == key and self._is_total(text, before):
            self._repairs.add('content.cumulative')
            known, events = self._held[-1]['delta'], list[Json]()
            self._held = []
        else:
            events = self.release()
            known = before = str(told)
        text = text or announced
        if only_news and before:
            return events
        missing = text[len(before) :] if text.startswith(before) else rest
        if not missing:
            return events
        if len(text) > len(known + rest):
            self._repairs.add('responses.unstreamed')
        told.add(missing)
        return [*events, self._delta(key, missing)]

    def _is_total(self, text: str, told: str) -> bool:
        """Whether `text` says that what waits are running totals."""
        last, joined = self._held[-1]['delta'], told + ''.join(event['delta'] for event in self._held)
        return bool(text) and text.startswith(last) and not text.startswith(joined)

    def _delta(self, key: Key, text: str) -> Json:
        index, kind, place = key
        at = {'output_index': index, 'item_id': self._ids.get(index)}
        where = 'summary_index' if 'summary' in kind else 'content_index'
        return {'type': f'response.{kind}.delta', **at, where: place, 'delta': text}


def _key(event: Json, kind: str) -> Key:
    place = event.get('summary_index' if 'summary' in kind else 'content_index')
    return event['output_index'], kind, place if isinstance(place, int) else 0


def _texts_of(index: int, item: Json) -> Iterable[tuple[Key, str]]:
    for name in _LISTS.get(str(item.get('type')), ()):
        for place, part in enumerate(item.get(name) or ()):
            kind, key = PARTS.get(str(part.get('type')), ('', ''))
            if kind and isinstance(part.get(key), str):
                yield (index, kind, place), part[key]


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
        fresh: Json = {'type': 'reasoning' if key == 'text' and type_ != 'output_text' else 'message', 'summary': []}
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
