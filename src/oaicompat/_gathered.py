"""A text that arrives in pieces, kept as one: a list of the pieces would take several times its size. Pure."""

from __future__ import annotations

import hashlib

from typing_extensions import override

_AT_ONCE = 256


class Gathered:
    """The pieces of a text."""

    def __init__(self) -> None:
        self._pieces, self._text = list[str](), bytearray()
        self._digest: hashlib.blake2b | None = None
        self._size = 0  # bytes of what is condensed

    def append(self, piece: str) -> None:
        """Add a piece."""
        self._pieces.append(piece)
        if len(self._pieces) >= _AT_ONCE:
            self._flush()

    def condense(self) -> None:
        """Keep no text from now on, but what tells whether another one begins with it."""
        if self._digest is None:
            self._flush()
            self._digest, self._size = hashlib.blake2b(self._text), len(self._text)
            self._text.clear()

    def beyond(self, text: str, *, settled: bool) -> str:
        """What a whole `text` says beyond this one; if that is `settled`, one that differs says nothing.

        Raises:
            ValueError: If it was condensed, and is not settled.
        """
        if self._digest is None:
            told = str(self)
            if text.startswith(told):
                return text[len(told) :]
            return '' if settled or told.startswith(text) else text
        if not settled:
            raise ValueError('a condensed text is settled')
        self._flush()
        whole = text.encode('utf-8', 'surrogatepass')
        same = hashlib.blake2b(whole[: self._size]).digest() == self._digest.digest()
        return whole[self._size :].decode('utf-8', 'surrogatepass') if same and len(whole) >= self._size else ''

    def _flush(self) -> None:
        more = ''.join(self._pieces).encode('utf-8', 'surrogatepass')
        self._pieces.clear()
        if self._digest is None:
            self._text += more
        else:
            self._digest.update(more)
            self._size += len(more)

    @override
    def __str__(self) -> str:
        """The text.

        Raises:
            ValueError: If it was condensed.
        """
        if self._digest is not None:
            raise ValueError('a condensed text is not kept')
        return self._text.decode('utf-8', 'surrogatepass') + ''.join(self._pieces)
