"""Reasoning that stands in the text: `<think>...</think>answer` to pieces of reasoning and of text.

A tag opens only at the start of the answer, or after reasoning; anywhere else it is text that mentions a tag. What
may yet become a tag is held back and released, as the pieces it came in, as soon as it is disproven, so that an
answer without tags comes out as it came in. White space around reasoning is dropped. Pure and incremental.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, NamedTuple

from oaicompat._patterns import lazy

Tags = tuple[str, str]

KNOWN_TAGS: tuple[Tags, ...] = (
    ('<think>', '</think>'),  # DeepSeek-R1, Qwen3, GLM, MiniMax and most others
    ('<thinking>', '</thinking>'),
    ('<reasoning>', '</reasoning>'),
    ('[THINK]', '[/THINK]'),  # Magistral
)


_FINAL = '<|channel|>final<|message|>'
HARMONY_TAGS: tuple[Tags, ...] = (
    # https://cookbook.openai.com/articles/openai-harmony; a server that knows its tokens as special drops them.
    *(
        (opening, f'{before}{_FINAL}')
        for opening in ('<|channel|>analysis<|message|>', 'analysis<|message|>')
        for before in ('<|end|><|start|>assistant', '<|start|>assistant', 'assistant', '')
    ),
    ('analysis', 'assistantfinal'),
)
"""The channels of gpt-oss. `analysis` alone opens one only where a letter follows, which it does in no sentence."""


class Piece(NamedTuple):
    """Some of an answer."""

    kind: Literal['text', 'thinking']
    text: str


@dataclass
class ThinkingSplitter:
    """Text in, pieces out.

    Attributes:
        tags: The pairs of tags that count; none means that all is text.
        closing_only: Whether the answer starts inside reasoning that the prompt opened.
        found: Whether any reasoning was found.
        opening: The tag that opened it.
        asis: Whether it is what pydantic-ai reads, too: between the first pair of tags, each in a piece of its own, and
            without white space that goes.
    """

    tags: Sequence[Tags] = KNOWN_TAGS
    closing_only: bool = False
    found: bool = False
    opening: str = ''
    asis: bool = True
    _close: Sequence[str] = ()  # non-empty inside reasoning: the tags that end it
    _held: list[str] = field(default_factory=list)
    _white: bool = False  # all that is held is white space, so more of it changes nothing
    _started: bool = False  # text was released: no tag opens any more
    _prompted: bool = False  # nothing but white space was read since the prompt opened reasoning
    _blank: bool = True  # nothing but white space was read since a tag

    def __post_init__(self) -> None:
        """Start inside reasoning where the prompt opened it."""
        if self.closing_only:
            self._close = [close for _, close in self.tags]
            self._prompted, self.asis = True, False

    @property
    def assumed(self) -> bool:
        """Whether all that was read counts as reasoning, though no tag said so."""
        return self.closing_only and bool(self.tags) and not self.found

    def feed(self, text: str) -> list[Piece]:
        """The pieces that `text` settles."""
        if self._started or not self.tags or not text:
            return [Piece('text', text)] if text else []
        if self._close and not self._held and not self._blank and not self._may_close(text):
            return [Piece('thinking', text)]
        if self._white and self._close and not self._blank and not self._may_close(text):
            # White space that is not the last goes out as it came.
            white, self._held, self._white = self._held, [], False
            return [Piece('thinking', piece) for piece in (*white, text)]
        self._held.append(text)
        if self._white and text.isspace():
            return []
        pieces: list[Piece] = []
        held = ''.join(self._held)
        at: int | None = 0
        while at is not None:
            at = self._inside(held, at, pieces) if self._close else self._outside(held, at, pieces)
        self._white = bool(self._held) and all(map(str.isspace, self._held))
        return pieces

    def finish(self) -> list[Piece]:
        """What is still held: reasoning that was never closed, or text that never became a tag."""
        held, self._held = self._held, []
        self.asis = self.asis and not self._close
        if self._close:
            text = ''.join(held).rstrip()
            text = text.lstrip() if self._blank else text
            return [Piece('thinking', text)] if text else []
        if self.found:
            # White space behind reasoning is no answer.
            held = [text] if (text := ''.join(held).lstrip()) else []
        return [Piece('text', piece) for piece in held]

    def interrupt(self) -> list[Piece]:
        """What is held when something else than text comes: reasoning in a field of its own, or a call."""
        if self._close:
            return []
        pieces = self.finish()
        self._started = self._started or any(piece.text.strip() for piece in pieces)
        return pieces

    @property
    def passes(self) -> bool:
        """Whether all that comes from now on is text."""
        return self._started or not self.tags

    @property
    def holds(self) -> bool:
        """Whether anything is held back."""
        return bool(self._held)

    def _may_close(self, text: str) -> bool:
        """Whether `text` needs a closer look: it may hold some of a closing tag, or ends in white space."""
        return text[-1].isspace() or any(tag[0] in text for tag in self._close)

    def _outside(self, held: str, at: int, pieces: list[Piece]) -> int | None:
        """Read on at `at`, where no reasoning is open; gives the place behind a tag that opens some."""
        start = _start(held, at)
        opened = self._opened(held, start)
        if opened:
            self._seen(held, start, opened)
            return opened
        if opened is None:
            self._hold(held, at)
            return None
        self._started = True
        self.asis = self.asis and start == 0
        # Behind reasoning the white space goes; otherwise the pieces stay as they came.
        released = [held[start:]] if self.found else self._held
        pieces.extend(Piece('text', piece) for piece in released)
        self._held = []
        return None

    def _opened(self, held: str, start: int) -> int | bool | None:
        """The place behind a tag that stands at `start`; `None` while one may yet, else `False`."""
        for opening, _ in self.tags:
            behind = start + len(opening)
            if held.startswith(opening, start) and (not opening.isalpha() or held[behind : behind + 1].isalpha()):
                self._close = [close for tag, close in self.tags if tag == opening]
                self.opening, self.found, self._blank = opening, True, True
                return behind
        rest = len(held) - start
        may = any(rest <= len(opening) and opening.startswith(held[start:]) for opening, _ in self.tags)
        return None if not rest or may else False

    def _inside(self, held: str, at: int, pieces: list[Piece]) -> int | None:
        """Read on at `at`, inside of reasoning; gives the place behind the tag that closes it."""
        if self._prompted:
            # Some servers send the tag that the prompt opened all the same.
            opened = self._opened(held, _start(held, at))
            self._prompted = opened is None
            if opened:
                return opened
            if opened is None:
                self._hold(held, at)
                return None
        if self._blank:
            before, at = at, _start(held, at)
            self.asis = self.asis and before == at
        closed = _any_of(tuple(self._close)).search(held, at)
        if closed is not None:
            self._seen(held, closed.start(), closed.end())
            self._add(pieces, held[at : closed.start()].rstrip())
            self._close, self.found = (), True
            return closed.end()
        keep = _kept(held[at:], self._close)
        self._add(pieces, held[at : len(held) - keep])
        self._hold(held, len(held) - keep)
        return None

    def _seen(self, held: str, start: int, end: int) -> None:
        """Note whether a tag came alone, and is one of the first pair."""
        alone = start == 0 and end == len(held) and len(self._held) == 1
        self.asis = self.asis and alone and held in self.tags[0]

    def _hold(self, held: str, at: int) -> None:
        """Hold what stands behind `at`; in the pieces that it came in, where that is all."""
        if at:
            self._held = [held[at:]] if at < len(held) else []

    def _add(self, pieces: list[Piece], text: str) -> None:
        if text:
            self._blank = False
            pieces.append(Piece('thinking', text))


def _start(text: str, at: int) -> int:
    """Where `text` goes on behind white space at `at`."""
    found = _NO_SPACE.search(text, at)
    return found.start() if found else len(text)


@lru_cache(maxsize=32)
def _any_of(tags: tuple[str, ...]) -> re.Pattern[str]:
    # The shorter one first, where one is the start of another.
    return re.compile('|'.join(map(re.escape, sorted(tags))))


def _kept(text: str, tags: Iterable[str]) -> int:
    """How many characters at the end may be the start of a tag, or white space in front of one."""
    longest = 0
    for tag in tags:
        for size in range(min(len(tag) - 1, len(text)), 0, -1):
            if text.endswith(tag[:size]):
                longest = max(longest, size)
                break
    body = text[: len(text) - longest]
    return longest + len(body) - len(body.rstrip())


def split(text: str, tags: Sequence[Tags] = KNOWN_TAGS, *, closing_only: bool = False) -> list[Piece]:
    """A whole answer as pieces, each kind joined where it adjoins."""
    splitter = ThinkingSplitter(tags, closing_only)
    joined: list[Piece] = []
    for piece in (*splitter.feed(text), *splitter.finish()):
        if joined and joined[-1].kind == piece.kind:
            joined[-1] = Piece(piece.kind, joined[-1].text + piece.text)
        else:
            joined.append(piece)
    return joined


def lone_closing_tag(text: str, tags: Sequence[Tags] = KNOWN_TAGS) -> bool:
    """Whether `text` has a closing tag without an opening one, outside of code and quotes.

    That is what a chat template that opens the tag in the prompt leaves of it.
    """
    for opening, closing in tags:
        at = text.find(closing)
        if at >= 0:
            before, after = text[:at], text[at + len(closing) :]
            quoted = before[-1:] in _QUOTES or after[:1] in _QUOTES
            # A sentence that speaks of the tag has it between words; reasoning ends in a word or a line of its own.
            spoken = before[-1:] in _BLANKS and after[:1] in _BEHIND
            return opening[:-1] not in text and not (quoted or spoken) and len(_FENCE.findall(before)) % 2 == 0
    return False


_QUOTES = frozenset('`\'"')
_BLANKS = frozenset((' ', '(', '['))
_BEHIND = frozenset(' .,;:!?)]')
_FENCE = lazy(r'^[^\S\n]*```', re.MULTILINE)
_NO_SPACE = lazy(r'\S')
