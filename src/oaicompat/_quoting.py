"""Whether markup stands where a call may stand, or where text quotes one. Pure.

It quotes in code fences, inline and indented code, in quotes and in quoted lines. It quotes in a sentence, too. A call
may stand at the start of a line, or behind the end of a sentence if no sentence goes on behind it. In the middle of a
sentence, words set off what they mention with a space, and models don't: a marker right behind a word may open a call,
if it has the looks of a token, or if nothing follows on the line. Markers that look like tokens may follow a space,
too, if nothing follows on the line. Words open a call at the start of a line, or right behind a sentence. Behind a
bracket of its own kind, as in `<<` or `[[`, no marker opens anything.
"""

from __future__ import annotations

import re

from oaicompat._patterns import lazy


class Place:
    """What stands in front of a marker: the state that the text so far leaves."""

    __slots__ = ('_apart', '_code', '_curly', '_fence', '_head', '_quotes', '_said', '_tail', '_ticks')

    def __init__(self) -> None:
        self._fence = ''  # the fence that is open
        self._code = 0  # the backticks that opened code in this line
        self._ticks = 0  # the backticks that end the line so far
        self._quotes = self._curly = 0  # the quotes in this line; those that are open
        self._said = self._apart = False  # any line so far; in this line, that an empty one sets it apart from those
        self._head = self._tail = ''  # how the line starts and how it ends so far

    def read(self, text: str) -> None:
        """Go on behind `text`."""
        *lines, rest = text.split('\n') if '\n' in text else (text,)
        for line in lines:
            self._in_line(line)
            self._end_line()
        self._in_line(rest)

    def _in_line(self, text: str) -> None:
        if not text:
            return
        if len(self._head) < _HEAD:
            self._head += text[: _HEAD - len(self._head)]
        self._tail = (self._tail + text[-_TAIL:])[-_TAIL:]
        self._quotes += text.count('"')
        self._curly += text.count('\u201c') - text.count('\u201d')
        if self._ticks or '`' in text:
            self._in_code(text)

    def _in_code(self, text: str) -> None:
        """Go on with a line that has backticks; a run of them may have been cut."""
        rest = text.lstrip('`')
        self._ticks += len(text) - len(rest)
        if rest:
            said = rest.rstrip('`')
            for size in (self._ticks, *map(len, _TICKS.findall(said))):
                self._close_code(size)
            self._ticks = len(rest) - len(said)

    def _close_code(self, size: int) -> None:
        """A run of `size` backticks: it closes code that as many opened, or opens some."""
        self._code = 0 if self._code == size else self._code or size

    def _end_line(self) -> None:
        self._close_code(self._ticks)
        fence = _FENCE.match(self._head)
        if self._fence:
            closes = fence is not None and fence[1].startswith(self._fence) and not self._head[fence.end() :].strip()
            self._fence = '' if closes else self._fence
        elif fence is not None and (fence[1][0] == '~' or self._code == len(fence[1])):
            self._fence = fence[1]
        self._code = self._ticks = self._quotes = self._curly = 0
        blank = not self._head.strip()
        self._said, self._apart = self._said or not blank, self._said and (blank or self._indented)
        self._head = self._tail = ''

    @property
    def _indented(self) -> bool:
        """Whether the line is code: https://spec.commonmark.org/0.31.2/#indented-code-blocks."""
        return self._apart and self._head.startswith(('    ', '\t'))

    @property
    def _quoting(self) -> bool:
        quoted = self._quotes % 2 > 0 or self._curly > 0 or self._tail.endswith(_QUOTES)
        return bool(self._fence or self._code) or quoted or self._indented or self._head.lstrip()[:1] == '>'

    @property
    def _finished(self) -> bool:
        """Whether no sentence goes on here."""
        said = self._tail.rstrip()
        return not said or _FINISHED.search(said) is not None

    def allows(self, marker: str) -> bool:
        """Whether `marker`, or what starts like it, may open a call here."""
        if self._quoting:
            return False
        if marker[0] == '`':
            return not self._head.strip()
        if marker[0].isalpha():
            return self._tail[-1:] in _EDGES
        return self._finished or marker in _SHORT or marker.startswith(_TOKENS) or self._tail[-1:].isalnum()

    def ignores(self, marker: str) -> bool:
        """Whether nothing that `marker` opens here needs to be read: not even to know where it ends."""
        if marker[0] in '<[':
            return bool(self._fence) or self._tail.endswith(marker[0])
        return bool(self._fence) or not self.allows(marker)

    def forbidden(self, marker: str) -> re.Pattern[str] | None:
        """What must not follow on the line behind a call that `marker` opens here; `None` if anything may."""
        if not self._head.strip():
            return None
        if self._finished:
            return _GOES_ON
        return None if marker.startswith(_TOKENS) and not self._tail[-1:].isspace() else _ANY_TEXT


_HEAD, _TAIL = 200, 60
_TICKS = lazy('`+')
_FENCE = lazy(r'(?:\s|[-*+>]\s|\d+[.)]\s)*(`{3,}|~{3,})')
_QUOTES = ('"', "'", '`', '\u2018', '\u201a', '\u201c', '\u201e', '\xab', '\u2039', '「', '『')
_TOKENS = ('<|', '<\uff5c', '[T')
_EDGES = ('', *'.!?:>')
_SHORT = ('<', '[')
_FINISHED = lazy(
    r'(?:[^\w\s,/\\|(\[{<>&+=$@#%\u2010-\u2019\u201c-\u201e\'"`)\]}*_~-]|[|\uff5c]>|</[\w:.-]+>)[)\]}*_~"\'\u2019\u201d»]*$'
)
_GOES_ON = lazy(r'[a-z,]')
_ANY_TEXT = lazy(r'[^\n<\[]')
