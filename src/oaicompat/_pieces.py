"""Pieces of an answer, text or reasoning that stood in it, as deltas. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from oaicompat._envelope import Json
from oaicompat._keys import INLINE
from oaicompat._thinking import Piece


def as_delta(piece: Piece) -> Json:
    """The delta that says it."""
    return {INLINE: piece.text} if piece.kind == 'thinking' else {'content': piece.text}


def in_front(pieces: Iterable[Piece], delta: Json) -> list[Json]:
    """The pieces, then what else the delta holds; nothing at all where it holds nothing."""
    deltas = [as_delta(piece) for piece in pieces]
    rest = {key: value for key, value in delta.items() if key not in ('content', 'role') and value is not None}
    if not deltas or rest:
        return [*deltas, delta]
    if 'role' in delta:
        deltas[0] = {'role': delta['role'], **deltas[0]}
    return deltas


def merged(deltas: list[Json], ending: list[Json]) -> list[Json]:
    """`deltas` with the `ending` behind them; where there is one, without those that say nothing."""
    if not ending:
        return deltas
    return [*(delta for delta in deltas if delta), *ending]
