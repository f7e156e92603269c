"""Calls that stand in the text: the model made one, and the server has no parser for its format.

Text goes in, text and calls come out, in order. Three questions are asked where a marker stands. Does it open a call,
or does it quote one (`_quoting.py`)? What does the markup say (`_grammars.py`)? Does it call a tool that was offered,
with arguments that may be meant for it (`fitted()`)? Where one answer is no, the text stays as it came.

Text comes out in the pieces it came in. Held are: what may be the beginning of a marker, with the piece it is in; an
open call, at most `LONGEST`; and white space at the start of the answer or behind a call, at most `_BLANK`, as it goes
with the call that follows. White space between text and a call stays with the text, since it was sent when it came.
JSON or Python without a marker is a call only if the whole answer is nothing else. Pure and incremental; linear, as
each character is read once for each marker in front of it, and `_PATIENCE` bounds what is read in vain.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from oaicompat._callparsers import Raw
from oaicompat._fitting import fitted
from oaicompat._grammars import GRAMMARS, Grammar
from oaicompat._patterns import lazy
from oaicompat._quoting import Place
from oaicompat._reading import Disproved, Reader, Steps

LONGEST = 65_536
"""How many characters of an open call are held; a longer one is text."""

_BLANK = 256
_PATIENCE = 8 * LONGEST


class TextCall(NamedTuple):
    """A call: the offered tool, its arguments as the text of a JSON object, and the id where one was written."""

    name: str
    arguments: str
    id: str | None = None


class Found(NamedTuple):
    """Some of an answer: text to show, or a call."""

    text: str
    call: TextCall | None = None


class _Markup(NamedTuple):
    """A whole block: what was written, where it ends, and whether the text quotes it."""

    grammar: Grammar
    written: list[Raw]
    end: int
    quoted: bool


class _Block:
    """What stands behind a marker, read by the grammars that may be meant.

    Attributes:
        start: Where it starts.
        reached: How far it was read.
        again: Where to go on if it is none: in it, unless a part of it was a call.
    """

    def __init__(self, start: int, marker: str, place: Place, names: Collection[str]) -> None:
        self.start, self.reached, self.again = start, start, start + len(marker[:1])
        self._quoted = bool(marker) and not place.allows(marker)
        self._runs: list[tuple[Grammar, Reader, Steps[tuple[list[Raw], bool]]]] = []
        for grammar in _BY_MARKER[marker]:
            reader = Reader(names, start + len(marker), start + LONGEST)
            self._runs.append((grammar, reader, _read(grammar, marker, reader, place.forbidden(marker))))

    def read(self, text: str, *, ended: bool, cut: bool) -> _Markup | None:
        """What it says; `None` if it takes more text, or no grammar reads on."""
        for run in self._runs[:]:
            grammar, reader, steps = run
            reader.grow(text, ended=ended, cut=cut)
            try:
                next(steps)
            except StopIteration as done:
                self.reached, (written, mentioned) = reader.at, done.value
                return _Markup(grammar, written, reader.at, self._quoted or mentioned)
            except Disproved:
                self._runs.remove(run)
                self.reached = max(self.reached, reader.at)
                self.again = max(self.again, reader.at if reader.items else 0)
        return None

    @property
    def open(self) -> bool:
        """Whether it may yet become a call."""
        return bool(self._runs)


def _read(grammar: Grammar, marker: str, r: Reader, forbidden: re.Pattern[str] | None) -> Steps[tuple[list[Raw], bool]]:
    """The calls, and whether the sentence that mentions them goes on behind them."""
    found = yield from grammar.parse(r, marker)
    if forbidden is None:
        return found, False
    end = r.at
    yield from r.run(_SPACES)
    following = yield from r.peek()
    r.at = end
    return found, forbidden.match(following) is not None


class CallScanner:
    """Text in, text and calls out.

    `schemas` are the offered tools, parameter schemas by name; with `suppress`, calls are taken out and not given. With
    `late`, all that comes from the first call on is held: `finish()` gives it, `disown()` says that it is text.

    Attributes:
        found: Whether there was any call, suppressed ones among them.
        names: The grammars in which there was one.
    """

    def __init__(self, schemas: Mapping[str, Mapping[str, Any]], *, suppress: bool = False, late: bool = False) -> None:
        self.found, self.names = False, set[str]()
        self._schemas, self._suppress, self._late = schemas, suppress, late
        self._place, self._past = Place(), list[str]()  # what was said, and what of it the place wasn't told yet
        self._text, self._cuts = '', list[int]()  # what is held, behind what was said; where its pieces end
        self._said = self._told = self._next = self._keep = 0  # positions in it
        self._block: _Block | None = None
        self._first = self._blank = True  # nothing but white space so far: in the answer, since a call
        self._vain = 0  # characters that were read for calls that were none
        self._ended = self._cut = False
        self._owned = False

    @property
    def passes(self) -> bool:
        """Whether all that comes is text."""
        return not self._schemas or self._vain > _PATIENCE

    @property
    def holds(self) -> bool:
        """Whether anything is held back."""
        return self._said < len(self._text)

    @property
    def calls(self) -> bool:
        """Whether what is held begins with what is a call, or may be, and `late` holds it."""
        return self._late and (self._owned or self._block is not None)

    def passes_over(self, text: str) -> bool:
        """Whether `text` has nothing in it that may be markup, while nothing is held; if so, it is taken as text."""
        if self._text or self._blank or text[:2] in _LETTERS:
            return False
        found = _MAYBE.search(text)
        while found is not None and found.end() - found.start() > 1:  # brackets that stand together open nothing
            found = _MAYBE.search(text, found.end())
        if found is not None:
            return False
        self._past.append(text)
        return True

    def feed(self, text: str) -> list[Found]:
        """What `text` settles."""
        if self.passes_over(text):
            return [Found(text)] if text else []
        if not text or (self.passes and not self._text):
            return [Found(text)] if text else []
        if (skimmed := self.skimmed(text)) is not None:
            return skimmed
        self._text += text
        self._cuts.append(len(self._text))
        if self._owned:
            return self.disown() if len(self._text) - self._keep > LONGEST else []
        return self._settled()

    def disown(self) -> list[Found]:
        """What is held, as the text that it is, where calls are not meant."""
        found: list[Found] = []
        self._owned, self._block, self._first = False, None, False
        if self.holds:
            self._blank = False
            self._next = self._keep = len(self._text)
            self._release(len(self._text), found)
            self._forget()
        return found

    def skimmed(self, text: str) -> list[Found] | None:
        """What `text` settles, where no call opens in it and none is open; otherwise `None`, and it is not taken."""
        if self._block is not None or self._blank or self._first or self._said or self.passes or self._owned:
            return None
        before, self._text = self._text, self._text + text
        while (found := _marker(self._text, self._next)) is not None:
            self._tell(found.start())
            if not self._place.ignores(found[0]):
                break
            self._next = found.start() + 1
        if found is not None and found[0] in _BY_MARKER:
            self._text = before  # it comes again
            return None
        end = len(self._text) if found is None else found.start()
        self._tell(end)
        self._cuts.append(len(self._text))
        return self._passed(end)

    def _passed(self, end: int) -> list[Found]:
        """What stands in front of the piece in which a marker may begin, at `end`."""
        text, start = self._text, self._piece(end)
        self._told = self._next = end - start
        self._keep = 0
        if self._cuts[0] == start:  # as most often: one piece was held, and one is
            self._text, self._cuts = text[start:], [cut - start for cut in self._cuts[1:]]
            return [Found(text[:start])]
        said = bisect_right(self._cuts, start)
        ends = [*self._cuts[:said], start]
        found = [Found(text[a:b]) for a, b in zip([0, *ends], ends, strict=False) if a < b]
        self._text, self._cuts = text[start:], [cut - start for cut in self._cuts[said:]]
        return found

    def _piece(self, position: int) -> int:
        """Where the piece starts that `position` is in: as it came, it goes out; but where one is long."""
        at = bisect_right(self._cuts, position)
        start = self._cuts[at - 1] if at else 0
        return start if position - start <= LONGEST else position

    def finish(self, *, cut: bool = False, more: bool = False) -> list[Found]:
        """What the end of the text settles; white space behind a call is no answer. More may follow, as a new text.

        Where the answer was `cut` off, a call that is not closed is none: arguments may be missing. With `late`, none
        is a call where `more` follows, or would have.
        """
        if more and self.calls:
            return self.disown()
        self._ended, self._cut, self._owned = True, cut, False
        found = self._settled()
        if not self.found:
            self._blank = False
            self._release(len(self._text), found)
        self._text, self._cuts, self._block = '', [], None
        self._said = self._told = self._next = self._keep = 0
        self._ended = self._cut = False
        return found

    def _settled(self) -> list[Found]:
        found: list[Found] = []
        while not self._owned and (self._block is not None or self._opens()):
            block = self._block
            assert block is not None  # noqa: S101 - for the type checker
            read = block.read(self._text, ended=self._ended, cut=self._cut)
            if read is None and block.open and len(self._text) - block.start <= LONGEST:
                break
            self._block, self._next = None, block.again
            if read is None or not self._take(block.start, read, found):
                self._vain += LONGEST if block.open and read is None else block.reached - block.start
        self._release(self._keep if self._block is None else self._block.start, found)
        if self._block is None:
            self._forget()
        return found

    def _take(self, start: int, read: _Markup, found: list[Found]) -> bool:
        """Take what was written as calls, if each is one; those that are quoted stay text as a whole."""
        calls = [call for raw in read.written if (call := self._call(raw)) is not None]
        if len(calls) < len(read.written):
            return False
        self._next = read.end
        if read.quoted:
            return True
        if self._late and not self._ended:
            self._owned, self._next, self._keep = True, start, self._piece(start)
            return True
        self._release(start, found)
        if not self._suppress:
            found += [Found('', call) for call in calls]
        self.found, self._blank = True, True
        self.names.add(read.grammar.name)
        self._said = self._told = self._keep = read.end
        self._past.clear()
        self._place = Place()
        return True

    def _call(self, raw: Raw) -> TextCall | None:
        name = Reader(self._schemas).offered(raw.name)
        arguments = fitted(raw.arguments, raw.texts, self._schemas[name]) if name is not None else None
        return TextCall(name, arguments, raw.id) if name is not None and arguments is not None else None

    def _opens(self) -> bool:
        """Whether a block may start in what was not searched yet; if so, it is to be read."""
        if self._first:
            self._start()
            if self._first or self._block is not None:
                return self._block is not None
        while not self.passes and (found := _marker(self._text, self._next)):
            start, marker = found.start(), found[0]
            self._tell(start)
            partial = marker not in _BY_MARKER
            if self._place.ignores(marker) or (partial and self._ended):
                self._next = start + 1
                continue
            self._next, self._keep = start, self._piece(start)
            if not partial:
                self._block = _Block(start, marker, self._place, self._schemas)
            return not partial
        self._next = self._keep = len(self._text)
        return False

    def _start(self) -> None:
        """Look for the start of the answer, and whether it may be nothing but calls."""
        ink = _INK.search(self._text, self._next)
        self._next = ink.start() if ink else len(self._text)
        self._first = ink is None and self._next <= _BLANK
        if ink is not None and self._next <= _BLANK and ink[0] in '{[f':
            self._block = _Block(self._next, '', self._place, self._schemas)

    def _tell(self, start: int) -> None:
        """Tell the place what stands in front of `start`."""
        text = self._text[self._told : start]
        if self._past:
            text = ''.join([*self._past, text])
            self._past.clear()
        self._place.read(text)
        self._told = start

    def _release(self, end: int, found: list[Found]) -> None:
        """Say what stands in front of `end`, in the pieces it came in."""
        start = self._said
        if self._blank and end - start <= _BLANK and not self._text[start:end].strip():
            return
        self._blank = False
        cuts = self._cuts[bisect_right(self._cuts, start) : bisect_left(self._cuts, end)]
        found += [Found(self._text[a:b]) for a, b in zip([start, *cuts], [*cuts, end], strict=True) if a < b]
        self._said = max(start, end)

    def _forget(self) -> None:
        """Drop what was said."""
        said = self._said
        if self._told < said:
            self._past.append(self._text[self._told : said])
        self._text = self._text[said:]
        self._cuts = [cut - said for cut in self._cuts[bisect_right(self._cuts, said) :]]
        self._told, self._next, self._keep = max(self._told - said, 0), self._next - said, self._keep - said
        self._said = 0


def scan(
    text: str, schemas: Mapping[str, Mapping[str, Any]], *, suppress: bool = False, cut: bool = False
) -> list[Found]:
    """A whole answer, or one that was `cut` off, as text and calls."""
    scanner = CallScanner(schemas, suppress=suppress)
    joined: list[Found] = []
    for piece in (*scanner.feed(text), *scanner.finish(cut=cut)):
        if joined and piece.call is None and joined[-1].call is None:
            joined[-1] = Found(joined[-1].text + piece.text)
        else:
            joined.append(piece)
    return joined


def _by_marker() -> dict[str, list[Grammar]]:
    """The grammars that share a marker; those without one under the empty text."""
    table: dict[str, list[Grammar]] = {'': []}
    for grammar in GRAMMARS:
        for marker in grammar.markers or ('',):
            table.setdefault(marker, []).append(grammar)
    return table


def _marker(text: str, start: int) -> re.Match[str] | None:
    """The first marker behind `start`, or what may be the beginning of one where the text ends."""
    while (found := _START.search(text, start)) is not None and found.lastgroup == 'run':
        start = found.end()
    return found


def _runs(markers: Iterable[str]) -> str:
    """A pattern for characters that open markers, but none where they are repeated."""
    markers = [marker for marker in markers if marker]
    firsts = dict.fromkeys(marker[0] for marker in markers)
    repeated = (re.escape(char) for char in firsts if not any(marker.startswith(char * 2) for marker in markers))
    return '|'.join(f'{char}{char}+' for char in repeated)


def _prefixes(words: Iterable[str]) -> str:
    """A pattern for each of `words`, and for the beginning of one where the text ends."""
    rests: dict[str, list[str]] = {}
    for word in words:
        rests.setdefault(word[0], []).append(word[1:])
    return '|'.join(re.escape(first) + (_rest(rest) if all(rest) else '') for first, rest in rests.items())


def _rest(words: list[str]) -> str:
    seconds = ''.join(re.escape(char) for char in dict.fromkeys(word[0] for word in words))
    # One look decides for most, where each word would be tried.
    look = f'(?=[{seconds}]|\\Z)' if len(seconds) > 1 else ''
    return f'{look}(?:{_prefixes(words)}|\\Z)'


_BY_MARKER = _by_marker()
_START = lazy(f'(?P<run>{_runs(_BY_MARKER)})|{_prefixes(marker for marker in _BY_MARKER if marker)}')
_MAYBE = lazy(r'[<\[`\n.!?:>](?:(?<=<)<*|(?<=\[)\[*|(?<=`)|(?=as|co|[ac]\Z))')
_LETTERS = frozenset(('a', 'as', 'c', 'co'))
_INK = lazy(r'\S')
_SPACES = lazy(r'[^\S\n]+')
