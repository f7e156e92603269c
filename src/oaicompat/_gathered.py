"""A text that arrives in pieces, kept as one: a list of the pieces would take several times its size. Pure."""

from __future__ import annotations

from typing_extensions import override

_AT_ONCE = 256


class Gathered:
    """The pieces of a text; its length is their number."""

    def __init__(self) -> None:
        self._count, self._pieces, self._text = 0, list[str](), bytearray()

    def append(self, piece: str) -> None:
        """Add a piece."""
        self._count += 1
        self._pieces.append(piece)
        if len(self._pieces) >= _AT_ONCE:
            self._text += ''.join(self._pieces).encode('utf-8', 'surrogatepass')
            self._pieces.clear()

    def settle(self) -> None:
        """Count what there is as one piece."""
        self._count = min(self._count, 1)

    def __len__(self) -> int:
        return self._count

    @override
    def __str__(self) -> str:
        return self._text.decode('utf-8', 'surrogatepass') + ''.join(self._pieces)
