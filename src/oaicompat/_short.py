"""The short path of a stream: an event that repeats the one before it in all but one text is not parsed again. Pure.

Most events of a stream hold one piece of text, and else the same bytes as the last one. A `Template` is such an event
with a hole where the text stands. It is proven when it is made: with another text in the hole, the JSON is the same
value with that other text. So what matches it says nothing else.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from oaicompat._envelope import Json

_PROBE = 'oaicompat probe'
_PATIENCE = 4
"""How many templates in a row may match nothing before none is made any more."""


@dataclass(frozen=True)
class Template:
    """An event without its text.

    Attributes:
        key: The field of the delta that the text is in.
        head: The bytes in front of the text.
        tail: Those behind it.
        chunk: The chunk that it was made of.
    """

    key: str
    head: bytes
    tail: bytes
    chunk: Json

    def text(self, event: bytes) -> str | None:
        """The text in the hole, where `event` is the same in all else; else `None`."""
        head, tail = self.head, self.tail
        if not (event.startswith(head) and event.endswith(tail)) or len(event) < len(head) + len(tail):
            return None
        raw = event[len(head) : len(event) - len(tail)]
        if b'\\' not in raw and b'"' not in raw and min(raw, default=_BLANK) >= _BLANK:
            try:
                return raw.decode()
            except UnicodeDecodeError:
                return None
        try:
            text = json.loads(b'"%b"' % raw)
        except ValueError:
            return None  # control characters, or a string that ends before the hole does
        return text if type(text) is str else None

    def with_delta(self, delta: Json) -> Json:
        """The chunk with another delta."""
        [choice] = self.chunk['choices']
        return {**self.chunk, 'choices': [{**choice, 'delta': delta}]}


_BLANK = 0x20


def template(event: bytes, chunk: Json, key: str, text: str) -> Template | None:
    """The template that `event` makes, whose JSON is `chunk`, with `text` in the field `key` of its delta.

    `None` where the hole can't be found, or more than that would change with it.
    """
    marker = b'"%b":' % key.encode()
    at = event.rfind(marker)
    start = event.find(b'"', at + len(marker)) + 1
    if at < 0 or start <= 0 or event[at + len(marker) : start - 1].strip():
        return None
    end = _string_end(event, start)
    if end is None:
        return None
    head, tail = event[:start], event[end:]
    try:
        probed = json.loads((head + _PROBE.encode() + tail).removeprefix(b'data:'))
    except ValueError:
        return None
    made = Template(key, head, tail, chunk)
    [choice] = chunk['choices']
    delta: dict[str, Any] = choice['delta']
    return made if probed == made.with_delta({**delta, key: _PROBE}) and delta.get(key) == text else None


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
class Templates:
    """The template of a stream, as long as it is worth having one."""

    current: Template | None = None
    _vain: int = 0  # templates in a row that matched nothing
    _used: bool = False

    def text(self, event: bytes) -> str | None:
        """The text of `event`, where it matches."""
        if self.current is None:
            return None
        text = self.current.text(event)
        self._used = self._used or text is not None
        return text

    def learn(self, event: bytes, chunk: Json, key: str, text: str) -> None:
        """Take `event` for the template."""
        self._vain = 0 if self._used else self._vain + (self.current is not None)
        self._used = False
        self.current = template(event, chunk, key, text) if self._vain < _PATIENCE else None

    def drop(self) -> None:
        """Forget it: what comes now stands in another frame."""
        self.current = None
