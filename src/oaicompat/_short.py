"""The short path of a stream: an event that repeats the one before it in all but one text is not parsed again. Pure.

Most events of a stream hold one piece of text, and else the same bytes as the last one. A `Template` is such an event
with a hole where the text stands. It is proven when it is made: with another text in the hole, the JSON is the same
value with that other text. So what matches it says nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from oaicompat._envelope import Json

Short = tuple[str, str, int]
"""What is new in a chunk that is else like the one before: the field of its delta, the text, the index of a call."""

Item = Json | Short
"""A chunk, or what is new in one."""

CALLS = 'tool_calls'
_PROBE = 'oaicompat probe'
_PATIENCE = 4
"""How many templates in a row may match nothing before none is made any more."""

_LONGEST = 65_536
"""Bytes of an unfinished event that are held; more go on to the decoder, which knows its own limit."""


@runtime_checkable
class Shortens(Protocol):
    """A repair that can take a text alone."""

    plain: str

    def feed(self, chunk: Json, /) -> list[Json]:
        """What a chunk becomes; `plain` is the field of its delta, where it has a text or arguments alone."""

    def feed_text(self, key: str, text: str, /) -> list[Json] | None:
        """What a plain chunk with that text becomes: deltas; `None` where the whole chunk has to be fed."""

    def feed_arguments(self, index: int, text: str, /) -> bool:
        """Whether a plain chunk with that fragment of arguments comes out as it is."""


@dataclass(slots=True)
class Template:
    """An event without its text.

    Attributes:
        key: The field of the delta that the text is in.
        index: That of the call, for arguments.
        head: The bytes in front of the text.
        tail: Those behind it.
        frame: The chunk with another delta.
        known: Texts that came before: most are short, and the same ones come again and again.
        again: How many came again: where few do, few are kept.
    """

    key: str
    index: int
    head: bytes
    tail: bytes
    frame: Callable[[Json], Json]
    known: dict[bytes, str] = field(default_factory=dict)
    again: int = 0

    def text(self, event: bytes) -> str | None:
        """The text in the hole, where `event` is the same in all else; else `None`."""
        head, tail = self.head, self.tail
        if not (event.startswith(head) and event.endswith(tail)) or len(event) < len(head) + len(tail):
            return None
        raw = event[len(head) : len(event) - len(tail)]
        if (text := self.known.get(raw)) is not None:
            self.again += 1
            return text
        text, kept = _text_of(raw), len(self.known)
        if text is not None and len(raw) <= _SHORT and kept < _MOST and kept <= _TRIED + self.again:
            self.known[raw] = text
        return text


_SHORT, _TRIED, _MOST = 24, 32, 512  # bytes of a text that is kept; how many are to begin with, and how many at most


def _text_of(raw: bytes) -> str | None:
    """The string that `raw` is the inside of."""
    try:
        text = raw.decode()
        if b'\\' not in raw and b'"' not in raw and text.isprintable():
            return text
        text = json.loads(f'"{text}"')
    except ValueError:
        return None  # no UTF-8, control characters, or a string that ends before the hole does
    return text if type(text) is str else None


def template(event: bytes, chunk: Json, key: str) -> Template | None:
    """The template that `event` makes, whose JSON is `chunk`, with text or arguments in the field `key` of its delta.

    `None` where the hole can't be found, or more than that would change with it.
    """
    marker = b'"arguments":' if key == CALLS else b'"%b":' % key.encode()
    at = event.rfind(marker)
    start = event.find(b'"', at + len(marker)) + 1
    if at < 0 or start <= 0 or event[at + len(marker) : start - 1].strip() or not event.startswith(b'data:'):
        return None
    end = _string_end(event, start)
    if end is None:
        return None
    head, tail = event[:start], event[end:]
    try:
        probed = json.loads((head + _PROBE.encode() + tail)[len(b'data:') :])
    except ValueError:
        return None
    [choice] = chunk['choices']
    delta: Json = choice['delta']

    def frame(other: Json) -> Json:
        return {**chunk, 'choices': [{**choice, 'delta': other}]}

    index = delta[key][0]['index'] if key == CALLS else 0
    same = probed == frame({**delta, key: _with_arguments(delta[key], _PROBE) if key == CALLS else _PROBE})
    return Template(key, index, head, tail, frame) if same else None


def _with_arguments(calls: list[Json], text: str) -> list[Json]:
    [call] = calls
    return [{**call, 'function': {'arguments': text}}]


def _string_end(event: bytes, start: int) -> int | None:
    """Where the string that starts there has its closing quote."""
    at = event.find(b'"', start)
    while at > 0:
        slashes = at
        while event[slashes - 1 : slashes] == b'\\':
            slashes -= 1
        if (at - slashes) % 2 == 0:
            return at
        at = event.find(b'"', at + 1)
    return None


@dataclass
class Shortener:
    """Bytes to events, and events to what is new in them.

    Attributes:
        repair: Takes the texts.
        on: Whether anything may be short.
        idle: Whether the decoder stands between two events.
    """

    repair: Shortens
    on: bool = False
    idle: bool = False
    _rest: bytes = b''  # of an event that is not whole
    _frame: tuple[Any, ...] | None = None  # of the last chunk that was given whole
    _template: Template | None = None
    _vain: int = 0  # templates in a row that matched nothing
    _used: bool = False

    def events(self, data: bytes) -> Iterator[bytes]:
        """Whole events in what arrived; `data` is empty at the end. Where nothing may be short, it stays as it is."""
        ends = not data
        if self._rest:
            data, self._rest = self._rest + data, b''
        if not self.on or b'\r' in data:
            if data:
                yield data
            return
        start, end = 0, data.find(b'\n\n')
        while end >= 0:
            yield data[start : end + 2]
            start = end + 2
            end = data.find(b'\n\n', start)
        if start < len(data):
            rest = data[start:]
            # What the decoder can do with lines that are whole it does at once.
            if ends or not self.idle or len(rest) > _LONGEST or b'\n' in rest:
                yield rest
            else:
                self._rest = rest

    def short(self, event: bytes) -> list[Item] | None:
        """What `event` says, where it is like the one before; nothing is taken where it is not."""
        template = self._template
        if template is None or not self.idle or (text := template.text(event)) is None:
            return None
        self._used = True
        key = template.key
        if key == CALLS:
            return [(key, text, template.index)] if self.repair.feed_arguments(template.index, text) else None
        deltas = self.repair.feed_text(key, text)
        if deltas is None:
            return None
        return [_shortened(delta) or template.frame(delta) for delta in deltas]

    def read(self, event: bytes, value: Json) -> list[Item]:
        """What `event` says, whose JSON is `value`, as short as it may be; the next events may be like it."""
        chunks = self.repair.feed(value)
        if not self.on:
            return [*chunks]
        key, frame = self.repair.plain, (*map(value.get, _FRAME), bool(value.get('created')))
        if not key or frame != self._frame or not _is_bare(value['choices'][0]):
            if frame != self._frame:
                self._frame, self._template = frame, None
            return [*chunks]
        delta = value['choices'][0]['delta']
        if key == CALLS and not _is_fragment(delta[CALLS][0]):
            return [*chunks]
        self._learn(event, value, key)
        return [_short(chunk) or chunk for chunk in chunks]

    def _learn(self, event: bytes, chunk: Json, key: str) -> None:
        self._vain = 0 if self._used else self._vain + (self._template is not None)
        self._used = False
        self._template = template(event, chunk, key) if self._vain < _PATIENCE else None


_FRAME = ('id', 'model', 'service_tier')
_OF_CALL = {'index', 'function', 'type'}


def _is_bare(choice: Json) -> bool:
    """Whether a choice says nothing but its delta."""
    return not any(value for key, value in choice.items() if key not in ('index', 'delta'))


def _is_fragment(call: Json) -> bool:
    """Whether a call says nothing but more of its arguments."""
    return call.keys() <= _OF_CALL and call['function'].keys() == {'arguments'}


def _short(chunk: Json) -> Short | None:
    """What is new in a chunk that holds nothing but a text or a fragment of a call."""
    choices = chunk['choices']
    if len(choices) != 1 or not _is_bare(choices[0]):
        return None
    calls = choices[0]['delta'].get(CALLS)
    if not calls:
        return _shortened({key: value for key, value in choices[0]['delta'].items() if value and key != 'role'})
    return (CALLS, calls[0]['function']['arguments'], calls[0]['index']) if _is_fragment(calls[0]) else None


def _shortened(delta: Json) -> Short | None:
    """A delta that holds one text, short."""
    if len(delta) != 1:
        return None
    [(key, text)] = delta.items()
    return (key, text, 0) if type(text) is str else None
