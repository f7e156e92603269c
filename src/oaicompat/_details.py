"""Reasoning that comes as `reasoning_details`: a list of objects which the server wants back as they were.

MiniMax (https://platform.minimax.io/docs/api-reference/text-openai-api) and OpenRouter
(https://openrouter.ai/docs/use-cases/reasoning-tokens) send them. In a stream each object comes in fragments, which
MiniMax documents as running totals and sends as what is new (https://github.com/MiniMax-AI/MiniMax-M2/issues/95):
both are read. Which of them a stream sends, its fragments tell: one that repeats all before, and adds to it, makes it
totals; one that does not, increments. A fragment without a word, or that goes on with the word before, may be either
(`1`, `10`, `100`): it counts as an increment until another one tells. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from oaicompat._keys import DETAILS

Detail = dict[str, Any]

_GROWING = ('text', 'summary')
_WHOLE = ('data', 'signature')  # sent in one piece: another one is of another detail
_READ = ('reasoning_content', 'reasoning')  # where pydantic-ai puts the text of reasoning that it sends back
_WORD = 4
_LINE = 16


@dataclass
class _Slot:
    """One detail, put together."""

    detail: Detail
    pieces: dict[str, list[str]] = field(default_factory=dict)
    last: dict[str, str] = field(default_factory=dict)  # the newest text of each growing field
    taken: bool = False
    before: _Slot | None = None  # what was taken of it already

    def told(self, key: str) -> str:
        """All that came of a growing field, also what was taken."""
        pieces: list[str] = []
        slot: _Slot | None = self
        while slot is not None:
            pieces += reversed(slot.pieces.get(key, ()))
            slot = slot.before
        return ''.join(reversed(pieces))

    @property
    def whole(self) -> Detail:
        return {**self.detail, **{key: ''.join(pieces) for key, pieces in self.pieces.items()}}


@dataclass
class Details:
    """The details of one stream, put together.

    Attributes:
        waiting: Whether anything came since it was last taken.
    """

    waiting: bool = False
    _slots: list[_Slot] = field(default_factory=list)  # since it was last taken
    _newest: dict[object, _Slot] = field(default_factory=dict)  # by type and place, and by id, too
    _totals: bool | None = None  # whether the fragments repeat what came before; unknown at first

    def feed(self, given: object, *, total: bool = False) -> list[Any]:
        """What is new in the fragments of one delta, or in the `total` of all that came so far.

        What is no object is handed on: it may be text.
        """
        items = given if isinstance(given, list) else [given]
        news = [self._news(item, n, total=total) if isinstance(item, dict) else item for n, item in enumerate(items)]
        return [item for item in news if item]

    def take(self) -> list[Detail]:
        """What came since the last time."""
        taken, self._slots, self.waiting = self._slots, [], False
        for slot in taken:
            slot.taken = True
        return [slot.whole for slot in taken]

    def _news(self, detail: Detail, place: int, *, total: bool) -> Detail | None:
        if not detail:
            return None
        slot = self._known(detail, place)
        if slot is None or any(_differ(slot.detail.get(key), detail.get(key)) for key in _WHOLE):
            self._open(detail, place)
            return detail
        news = dict(detail)
        for key in _GROWING:
            if isinstance(text := detail.get(key), str) and key in slot.last:
                news[key] = self._grown(slot, key, text, total=total)
        said = any(news.get(key) for key in _GROWING)
        more = (key for key, value in news.items() if key not in _GROWING and value not in (None, slot.detail.get(key)))
        if not said and next(more, None) is None:
            return None
        if slot.taken:
            before, slot = slot, self._open(news, place)
            slot.before, slot.last = before, {**slot.last, **before.last}
        else:
            self._add(slot, news)
            at = _at(detail, place)
            self._newest[at] = self._newest[*at, str(slot.detail.get('id'))] = slot
        slot.last |= {key: detail[key] for key in _GROWING if isinstance(detail.get(key), str) and news[key]}
        return news

    def _add(self, slot: _Slot, news: Detail) -> None:
        for key, value in news.items():
            if key in _GROWING and isinstance(value, str):
                slot.pieces.setdefault(key, []).append(value)
            elif value is not None:
                slot.detail[key] = value

    def _grown(self, slot: _Slot, key: str, text: str, *, total: bool) -> str:
        """What `text` adds to the one before, or to all of them."""
        if total:
            before = slot.told(key)
            return text.removeprefix(before) if not before.startswith(text) else ''
        last = slot.last[key]
        if self._totals is None and text and last:
            self._totals = _tells(last, text, again=slot.taken)
            if self._totals and not slot.taken:
                slot.pieces[key] = [last]
        if not self._totals:
            return text
        return '' if last.startswith(text) else text.removeprefix(last)

    def _known(self, detail: Detail, place: int) -> _Slot | None:
        """The detail that this fragment goes on with: by its id, else by its `index` or place in the list."""
        at = _at(detail, place)
        newest = self._newest.get(at)
        if (id_ := detail.get('id')) is None or newest is None or newest.detail.get('id') is None:
            return newest
        return self._newest.get((*at, str(id_)))

    def _open(self, detail: Detail, place: int) -> _Slot:
        texts = {key: detail[key] for key in _GROWING if isinstance(detail.get(key), str)}
        slot = _Slot(dict(detail), {key: [text] for key, text in texts.items()}, dict(texts))
        at = _at(detail, place)
        self._newest[at] = self._newest[*at, str(detail.get('id'))] = slot
        self._slots.append(slot)
        self.waiting = True
        return slot


def _at(detail: Detail, place: int) -> tuple[str, str]:
    index = detail.get('index')
    return str(detail.get('type')), str(place if index is None else index)


def _differ(old: object, new: object) -> bool:
    if old is None or new is None or old == new:
        return False
    return not (isinstance(old, str) and isinstance(new, str) and new.startswith(old))


def _tells(before: str, text: str, *, again: bool) -> bool | None:
    """Whether `text` is `before` and more, or something else; `None` where it may be either.

    `again`: other text came between them, behind which no reasoning goes on with the same words.
    """
    if not text.startswith(before):
        return False
    if not any(map(str.isalpha, before)):
        return None
    if text == before:
        return True if again or len(text.strip()) >= _LINE else None
    return True if len(before.strip()) >= _WORD or not text[len(before)].isalnum() else None


def listed(value: object) -> list[Detail]:
    """The details in a field; what is no object is none."""
    items = value if isinstance(value, list) else [value]
    return [item for item in items if isinstance(item, dict) and item]


def told(parts: Iterable[Any], provider: str) -> list[Detail]:
    """The details of all thinking parts that came from `provider`."""
    return [
        detail
        for part in parts
        if part.part_kind == 'thinking' and part.provider_name == provider
        for detail in listed((part.provider_details or {}).get(DETAILS))
    ]


def sent_back(message: Any, parts: Iterable[Any], provider: str) -> Any:
    """An assistant message with the details of its parts in place of the field that holds their text.

    The message as it is where it has no such field: then reasoning is not to be sent.
    """
    held = [key for key in _READ if message is not None and key in message]
    details = told(parts, provider) if held else []
    if not details:
        return message
    return {**{key: value for key, value in message.items() if key not in held}, DETAILS: details}


def with_details(parts: list[Any], details: list[Detail], make: Callable[..., Any]) -> list[Any]:
    """Thinking parts with `details` on the first; `make` makes one where there are details alone."""
    if not details:
        return parts
    [first, *rest] = parts or [make(content='', id=_READ[0])]
    return [replace(first, provider_details={**(first.provider_details or {}), DETAILS: details}), *rest]
