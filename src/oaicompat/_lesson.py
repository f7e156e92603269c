"""What a lesson is, and several as one. Pure; `_lessons.py` finds them, `_memory.py` keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MAX_CORRECTIONS = 3
"""Corrections a single call may need; then the first refusal is raised."""

SEARCH = 'request.search'
"""Name of the adaptation that was found by trying."""


@dataclass(frozen=True)
class Lesson:
    """What one refusal taught.

    Attributes:
        name: Stable name of the adaptation, such as `request.tool_return`.
        profile: Profile keys to set, and their values.
        because: The server's complaint, shortened, or what else was seen.
    """

    name: str
    profile: Mapping[str, Any]
    because: str


def says(profile: Mapping[str, Any], key: str, value: object) -> bool:
    """Whether `profile` has `key` with `value`, or with a tuple that holds all of it."""
    known = profile.get(key)
    if isinstance(value, tuple) and isinstance(known, tuple | list):
        return set(value) <= set(known)
    return bool(known == value)


def merged(known: object, value: object) -> object:
    """`value`, or where both are tuples, both."""
    if isinstance(value, tuple) and isinstance(known, tuple | list):
        return tuple(dict.fromkeys((*known, *value)))
    return value


def together(known: Mapping[str, Any], news: Mapping[str, Any]) -> dict[str, Any]:
    """Two sets of profile keys as one; of tuples, both count."""
    return {**known, **{key: merged(known.get(key), value) for key, value in news.items()}}


def joined(known: Lesson, learned: Lesson) -> Lesson:
    """Two lessons of one name as one."""
    return Lesson(known.name, together(known.profile, learned.profile), learned.because)
