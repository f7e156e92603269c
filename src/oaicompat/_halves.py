"""Halves of characters: JSON can escape one alone, and UTF-8 can't encode it. Pure."""

from __future__ import annotations

from typing import Any

from oaicompat._patterns import lazy

_HALF = lazy('[\ud800-\udfff]')
_DEEPEST_SENT = 200  # deeper than that nothing is written, and much deeper Python can't follow


def has_half(text: str) -> bool:
    """Whether `text` has half a character in it, which JSON can escape and UTF-8 can't encode."""
    return not text.isascii() and _HALF.search(text) is not None


def joined_halves(text: str) -> str:
    """`text` with halves that adjoin as one character; a half alone is replaced."""
    return text.encode('utf-16-le', 'surrogatepass').decode('utf-16-le', 'replace') if has_half(text) else text


def without_halves(value: Any, depth: int = 0) -> Any:
    """`value` with no half of a character in any of its strings; the same object where there is none."""
    if isinstance(value, str):
        return joined_halves(value)
    if depth > _DEEPEST_SENT:
        return None
    if isinstance(value, dict):
        cleaned = {joined_halves(key): without_halves(item, depth + 1) for key, item in value.items()}
        same = all(a is b for a, b in zip(value, cleaned, strict=False)) and len(value) == len(cleaned)
        return value if same and all(value[key] is cleaned[key] for key in value) else cleaned
    if isinstance(value, list):
        items = [without_halves(item, depth + 1) for item in value]
        return value if all(a is b for a, b in zip(value, items, strict=True)) else items
    return value
