"""Reading markup that is still arriving: the steps from which a grammar's parser is made.

A parser is a generator. It reads from `Reader.text`, which grows while it runs, and yields when it needs more than
there is; it raises `Disproved` as soon as what it reads can't be a call. So it is written as if all were there, and
yet reads each character once. What a step takes does not depend on how the text was cut. Pure.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Collection, Generator
from typing import Any, TypeVar

from oaicompat._patterns import lazy

T = TypeVar('T')
Steps = Generator[None, None, T]


class Disproved(Exception):  # noqa: N818 - it is no error: most text that starts like a call is none
    """What was read is no call."""


class Reader:
    """A text that grows, and how far one parser has read in it.

    Attributes:
        text: What there is so far.
        size: How far it may be read.
        at: The position that is read next.
        ended: Whether no more will come.
        cut: Whether that is since the answer broke off; then nothing that is missing is forgiven.
        names: The tools that were offered.
        items: How many calls of a block were read.
    """

    __slots__ = ('_limit', 'at', 'cut', 'ended', 'items', 'names', 'size', 'text')

    def __init__(self, names: Collection[str], at: int = 0, limit: int = sys.maxsize) -> None:
        self.text, self.names, self.at, self.items, self._limit = '', names, at, 0, limit
        self.size, self.ended, self.cut = 0, False, False

    def grow(self, text: str, *, ended: bool, cut: bool = False) -> None:
        """Go on with all the text there is, as far as the limit allows."""
        self.cut = cut
        self.text, self.size = text, min(len(text), self._limit)
        self.ended = ended and len(text) <= self._limit

    @property
    def over(self) -> bool:
        """Whether all was read, and no more will come."""
        return self.ended and self.at >= self.size

    def more(self) -> Steps[None]:
        """Wait for more text."""
        if self.ended:
            raise Disproved
        yield

    def peek(self) -> Steps[str]:
        """The next character, not taken; none at the end."""
        while self.at >= self.size:
            if self.ended:
                return ''
            yield
        return self.text[self.at]

    def run(self, pattern: re.Pattern[str]) -> Steps[str]:
        """All characters from here that `pattern`, a repeated set of characters, takes."""
        start = self.at
        while True:
            found = pattern.match(self.text, self.at, self.size)
            self.at = found.end() if found else self.at
            if self.at < self.size or self.ended:
                return self.text[start : self.at]
            yield

    def space(self) -> Steps[str]:
        """Skip white space."""
        return (yield from self.run(_SPACE))

    def maybe(self, *options: str) -> Steps[str]:
        """Take the option that comes next, if any does; none may be the beginning of another."""
        longest = max(map(len, options))
        while True:
            for option in options:
                if self.text.startswith(option, self.at, self.size):
                    self.at += len(option)
                    return option
            rest = self.text[self.at : min(self.at + longest, self.size)]
            if self.ended or not any(option.startswith(rest) for option in options):
                return ''
            yield

    def literal(self, *options: str) -> Steps[str]:
        """Take the option that must come next."""
        found = yield from self.maybe(*options)
        if not found:
            raise Disproved
        return found

    def until(self, mark: str) -> Steps[str]:
        """All in front of `mark`, which is taken too."""
        start = searched = self.at
        while (end := self.text.find(mark, searched, self.size)) < 0:
            searched = max(start, self.size - len(mark) + 1)
            yield from self.more()
        self.at = end + len(mark)
        return self.text[start:end]

    def find(self, pattern: re.Pattern[str]) -> Steps[str]:
        """The next character that `pattern`, a set of characters, takes."""
        searched = self.at
        while (found := pattern.search(self.text, searched, self.size)) is None:
            searched = self.size
            yield from self.more()
        self.at = found.end()
        return found[0]

    def name(self, prefix: str = '') -> Steps[str]:
        """A name as it is written, `functions.get_weather:0`; it must be one that was offered."""
        written = prefix + (yield from self.run(_NAME))
        if self.offered(written) is None:
            raise Disproved
        return written

    def offered(self, written: str) -> str | None:
        """The offered tool that `written` means."""
        bare = _NUMBER.sub('', _NAMESPACE.sub('', written.strip()))
        return next((name for name in (written, written.strip(), bare) if name in self.names), None)

    def string(self) -> Steps[str]:
        """A quoted string, with its quotes."""
        start = self.at
        whole = _STRING.match(self.text, start, self.size)
        if whole:
            self.at = whole.end()
            return whole[0]
        quote = self.text[start]
        self.at += 1
        while (yield from self.find(_ENDS[quote])) != quote:
            while self.at >= self.size:
                yield from self.more()
            self.at += 1
        return self.text[start : self.at]

    def balanced(self) -> Steps[str]:
        """All up to the bracket that closes the one that comes next; brackets and markup in strings don't count."""
        start, opened = self.at, []
        while True:
            char = yield from self.find(_STRUCTURE)
            if char in _PAIRS:
                opened.append(_PAIRS[char])
            elif char == '"' or (char == "'" and self._starts_value()):
                self.at -= 1
                yield from self.string()
            elif char != "'" and (not opened or char != opened.pop()):
                raise Disproved
            if not opened:
                return self.text[start : self.at]

    def _starts_value(self) -> bool:
        return self.text[max(0, self.at - 40) : self.at - 1].rstrip()[-1:] in _BEFORE_VALUE

    def value(self) -> Steps[str]:
        """A value as JSON or Python writes it, as text."""
        first = yield from self.peek()
        if first and first in '{[':
            return (yield from self.balanced())
        if first and first in '"\'':
            return (yield from self.string())
        word = yield from self.run(_WORD)
        if not word:
            raise Disproved
        return word

    def close(self, *closings: str, opener: str = '', needed: bool = True) -> Steps[None]:
        """Take a closing marker, which may be missing or cut at the end of a whole answer, or in front of `opener`."""
        start = self.at
        yield from self.space()
        if (yield from self.maybe(*closings)):
            return
        if self.ended and not self.cut and any(closing.startswith(self.text[self.at :]) for closing in closings):
            self.at = self.size
            return
        if needed and not (opener and (yield from self.maybe(opener))):
            raise Disproved
        self.at = start


def unquoted(text: str) -> str:
    """What a quoted string holds, or '' where it is none."""
    try:
        value: Any = json.loads(text if text[:1] == '"' else f'"{text[1:-1]}"', strict=False)
    except ValueError:
        return ''
    return value if isinstance(value, str) else ''


_SPACE = lazy(r'\s+')
_NAME = lazy(r'[\w.:/-]+')
_WORD = lazy(r'[\w.+-]+')
_NAMESPACE = lazy(r'^(?:functions|tools|default_api)\.')
_NUMBER = lazy(r':\d+$')
_STRUCTURE = lazy(r'["\'{}\[\]()<]')
_STRING = lazy(r"""(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"|'[^'\\]*+(?:\\.[^'\\]*+)*+')""", re.DOTALL)
_ENDS = {quote: lazy(rf'[{quote}\\]') for quote in '"\''}
_PAIRS = {'{': '}', '[': ']', '(': ')'}
_BEFORE_VALUE = tuple('{[(,:=')
