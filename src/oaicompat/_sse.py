"""Server-sent events: bytes to events to JSON values, sans I/O.

Two stages, each with one kind of state. `EventDecoder` holds the unfinished line and the event under way, and follows
the WHATWG rules (https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream), then
is lenient where servers are wrong: events parted by single newlines, bare JSON lines, an end without a blank line.
`read_values()` turns one event into what it says: JSON objects, an error, the end of the stream, or nothing.

Whatever the boundaries of the bytes, the events are the same, and the work is linear in the input. Each deviation is
noted by name in `repairs`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from oaicompat._patterns import lazy

MAX_EVENT = 64 * 2**20
"""Bytes of one event; a longer one is an error, not memory growth."""

_SHOWN = 500
_FIELDS = frozenset({'event', 'data', 'error', 'id', 'retry'})


class Event(NamedTuple):
    """One event: its type, `''` if none was named, and its data."""

    type: str
    data: str


class EventTooLargeError(ValueError):
    """One event is larger than `MAX_EVENT`."""


class _Depth:
    """How deep in brackets a JSON text is, read line by line; each line is looked at once."""

    _MARK = lazy(r'[{}\[\]"]')
    _STRING_END = lazy(r'(?:[^"\\]|\\.)*+("|\\?$)')

    def __init__(self) -> None:
        self.lines = self.depth = 0
        self.opened = self.in_string = False

    @property
    def whole(self) -> bool:
        return self.opened and self.depth <= 0 and not self.in_string

    def read(self, line: str) -> None:
        self.lines += 1
        at = 0
        while True:
            if self.in_string:
                found = self._STRING_END.match(line, at)
                if found is None or found[1] != '"':
                    return
                self.in_string, at = False, found.end()
            mark = self._MARK.search(line, at)
            if mark is None:
                return
            at = mark.end()
            if mark[0] == '"':
                self.in_string = True
            else:
                self.opened = True
                self.depth += 1 if mark[0] in '{[' else -1


@dataclass
class EventDecoder:
    """Bytes in, events out.

    Attributes:
        repairs: Names of the deviations that were read over.
        ignored: The start of what was no event stream at all, for an error message.
    """

    repairs: set[str] = field(default_factory=set)
    ignored: str = ''
    _pieces: list[bytes] = field(default_factory=list)  # the line under way
    _partial: int = 0  # bytes in `_pieces`
    _size: int = 0  # bytes of the event under way
    _line: int = 0  # bytes of the line that is read
    _failed: EventTooLargeError | None = None
    _after_cr: bool = False
    _first_line: bool = True
    _type: str = ''
    _earlier: str | None = None  # the type before one that was named behind the data
    _data: list[str] = field(default_factory=list)
    _bare: list[str] = field(default_factory=list)  # JSON that stands without a field name
    _depth: _Depth = field(default_factory=_Depth)

    def feed(self, data: bytes) -> list[Event]:
        """The events that `data` completes.

        Raises:
            EventTooLargeError: If an event grows beyond `MAX_EVENT`.
        """
        return self._events(self._lines(data))

    def finish(self) -> list[Event]:
        """The events that the end of the stream completes; an unfinished last line counts."""
        rest = b''.join(self._pieces)
        self._pieces.clear()
        events = self._events([rest] if rest else [])
        if self._data:
            self.repairs.add('sse.unterminated')
        self._flush_bare(events)
        self._dispatch(events)
        return events

    @property
    def idle(self) -> bool:
        """Whether it stands between two events."""
        return not (self._pieces or self._data or self._bare or self._type or self._after_cr or self._first_line)

    def _events(self, lines: Iterable[bytes]) -> list[Event]:
        """The events in `lines`; those in front of one that is too large come out before the error."""
        events: list[Event] = []
        if self._failed is not None:
            raise self._failed
        try:
            for line in lines:
                self._read(line, events)
        except EventTooLargeError as error:
            self._failed = error
            if not events:
                raise
        return events

    def _lines(self, data: bytes) -> Iterator[bytes]:
        """The lines that end in `data`: at CRLF, LF or CR, none of which occurs inside a UTF-8 character."""
        if self._after_cr and data:
            self._after_cr = False
            data = data.removeprefix(b'\n')
        if b'\r' in data:
            self._after_cr = data.endswith(b'\r')
            data = data.replace(b'\r\n', b'\n').replace(b'\r', b'\n')
        start, end = 0, data.find(b'\n')
        while end >= 0:
            line = data[start:end]
            if self._pieces:
                line = b''.join((*self._pieces, line))
                self._pieces.clear()
                self._partial = 0
            self._check(len(line))
            yield line
            start = end + 1
            end = data.find(b'\n', start)
        if start < len(data):
            self._pieces.append(data[start:] if start else data)
            self._partial += len(data) - start
            self._check(self._partial)

    def _check(self, line: int) -> None:
        if self._size + line > MAX_EVENT:
            raise EventTooLargeError(f'an event of more than {MAX_EVENT} bytes')

    def _read(self, raw: bytes, events: list[Event]) -> None:
        try:
            line = raw.decode('utf-8')
        except UnicodeDecodeError:
            self.repairs.add('sse.invalid_utf8')
            line = raw.decode('utf-8', 'replace')
        self._line = len(raw) + 1
        if self._first_line:
            self._first_line = False
            line = line.removeprefix('\ufeff')
        is_data = line.startswith('data:')
        if self._bare and not is_data:
            self._add_bare(line, events)
        elif not line:
            self._dispatch(events)
        elif is_data:
            self._flush_bare(events)  # no JSON goes on like that
            self._add_data(line[6:] if line.startswith(' ', 5) else line[5:], events)
        elif not line.startswith(':'):
            self._read_other(line, events)

    def _read_other(self, line: str, events: list[Event]) -> None:
        """Any line but a `data` line or a comment."""
        name, colon, value = line.partition(':')
        name, value = name.strip().lower() if colon else name, value.removeprefix(' ')
        if name not in _FIELDS and self._is_open():
            # Only the first line of the JSON text got the field's name.
            self.repairs.add('sse.bare_json')
            self._append(line)
            return
        if line.lstrip()[:1] in ('{', '['):
            self.repairs.add('sse.bare_json')
            if self._data:
                self._dispatch(events)
            self._add_bare(line, events)
            return
        match name:
            case 'event':
                if self._data and self._earlier is None:
                    self._earlier = self._type
                self._type = value.strip()
            case 'data':
                self._add_data(value, events)
            case 'error':
                self._dispatch(events)
                events.append(Event('error', value))
            case 'id' | 'retry':
                pass
            case _:
                self.ignored = f'{self.ignored}{line}\n'[:_SHOWN]

    def _add_data(self, value: str, events: list[Event]) -> None:
        """Another `data` line: of the same event, or where the first ones are whole by themselves, of the next."""
        if self._data and value.lstrip()[:1] in ('{', '[') and self._is_whole():
            self.repairs.add('sse.single_newlines')
            # A type that was named behind the first event's data belongs to the next event.
            later = '' if self._earlier is None else self._type
            self._type = self._type if self._earlier is None else self._earlier
            self._dispatch(events)
            self._type = later
        self._append(value)

    def _append(self, value: str) -> None:
        self._data.append(value)
        self._size += self._line

    def _is_whole(self) -> bool:
        for line in self._data[self._depth.lines :]:
            self._depth.read(line)
        return self._depth.whole or self._data == ['[DONE]']

    def _is_open(self) -> bool:
        """Whether the data is JSON that goes on."""
        return bool(self._data) and self._data[0].lstrip()[:1] in ('{', '[') and not self._is_whole()

    def _add_bare(self, line: str, events: list[Event]) -> None:
        self._bare.append(line)
        self._size += self._line
        self._depth.read(line)
        if self._depth.whole:
            self._flush_bare(events)

    def _flush_bare(self, events: list[Event]) -> None:
        if not self._bare:
            return
        events.append(Event(self._type, '\n'.join(self._bare)))
        self._bare.clear()
        if not self._data:
            self._reset()

    def _dispatch(self, events: list[Event]) -> None:
        if self._data:
            events.append(Event(self._type, self._data[0] if len(self._data) == 1 else '\n'.join(self._data)))
            self._data.clear()
        self._reset()

    def _reset(self) -> None:
        self._type, self._earlier = '', None
        self._size = 0
        if self._depth.lines:
            self._depth = _Depth()


class Done:
    """The end of the stream was announced: `[DONE]`."""


class ErrorText(str):
    """An error that came as text, where JSON was due."""

    __slots__ = ()


class NoJson(ErrorText):
    """Text that is no JSON, and that nothing calls an error."""

    __slots__ = ()

    @property
    def complaint(self) -> str:
        """What to say of it."""
        return f'expected JSON in the stream and got: {" ".join(self.split())[:_SHOWN]}'


DONE = Done()
_DECODER = json.JSONDecoder(strict=False)
_SPACE = lazy(r'[\s,\x1e]*')  # \x1e: JSON text sequences


def read_values(event: Event, repairs: set[str]) -> list[Any]:
    """What one event says: JSON values, `DONE`, an `ErrorText`; nothing for a keep-alive.

    Args:
        event: The event.
        repairs: Names of deviations are added to it.
    """
    text, kind = event.data.strip(), event.type.lower()
    if kind in _KEEP_ALIVES:
        return []
    if kind == 'error':
        return [_as_error(text)]
    if text[:1] == '{':
        try:
            value = json.loads(text)
            return [value] if len(value) > 1 or not _keeps_alive(value) else []
        except (ValueError, RecursionError):
            pass  # several values, or none
    values: list[Any] = []
    at = 0
    while at < len(text):
        if values:
            repairs.add('sse.glued_values')
        found, at = _next(text, at, repairs)
        values += found
        space = _SPACE.match(text, at)
        at = space.end() if space else at
    return values


def _next(text: str, at: int, repairs: set[str]) -> tuple[list[Any], int]:
    """What stands at `at`, and where it ends."""
    if text.startswith('[DONE]', at):
        return [DONE], len(text)
    if text[at] in '{[':
        try:
            value, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            return [NoJson(text[at:])], len(text)
        return [] if _keeps_alive(value) else _listed(value, repairs), end
    if text.startswith('data:', at):
        repairs.add('sse.doubled_field')
        return [], at + len('data:')
    end = text.find('\n', at)
    end = len(text) if end < 0 else end
    line = text[at:end].strip()
    if line[:1] == ':':  # a comment that some proxy wrapped as data
        repairs.add('sse.wrapped_comment')
    elif line.lower() not in _KEEP_ALIVES:
        rest = text[at:]
        return [_as_error(rest[6:].strip()) if rest[:6].lower() == 'error:' else NoJson(rest)], len(text)
    return [], end


def _listed(value: Any, repairs: set[str]) -> list[Any]:
    """`value`, or the objects that it lists."""
    if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        repairs.add('sse.glued_values')
        return value
    return [value]


_KEEP_ALIVES = frozenset({'ping', 'null', 'keep-alive', 'keep_alive', 'keepalive', 'heartbeat', '""'})


def _keeps_alive(value: Any) -> bool:
    return value in _SILENT


_SILENT = [{}, {'type': 'ping'}, {'type': 'keepalive'}, {'type': 'heartbeat'}]


def _as_error(text: str) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return ErrorText(text or 'an error event without data')
    if isinstance(value, dict):
        return value if value.get('error') else {'error': value}
    return ErrorText(text if not isinstance(value, str) else value)
