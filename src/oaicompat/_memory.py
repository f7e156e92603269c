"""Memory: what was learned for each endpoint and model, for every model instance of the process.

Its version tells a model when its cached profile is out of date. Thread safe; never blocks on I/O.
"""

from __future__ import annotations

import threading
from typing import Any

from oaicompat._lesson import Lesson, joined, says, together


class _Entry:
    def __init__(self, version: int = 0) -> None:
        self.lessons: dict[str, Lesson] = {}
        self.version = version
        self.ruled_out: set[str] = set()  # guesses that did not help


class Memory:
    """What was learned for each endpoint and model. Thread safe; never blocks on I/O."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: dict[tuple[str, str], _Entry] = {}
        self._kinds: dict[str, str] = {}
        # One counter for all entries, so that a version never comes back after `forget`.
        self._version = 0

    def version(self, endpoint: str, model: str) -> int:
        """Changes whenever what is known for `endpoint` and `model` changes."""
        entry = self._entries.get((endpoint, model))
        return entry.version if entry else 0

    def profile(self, endpoint: str, model: str) -> dict[str, Any]:
        """The profile keys learned for `endpoint` and `model`."""
        with self._lock:
            entry = self._entries.get((endpoint, model))
            lessons = list(entry.lessons.values()) if entry else []
        known: dict[str, Any] = {}
        for learned in lessons:
            known = together(known, learned.profile)
        return known

    def lessons(self, endpoint: str, model: str) -> tuple[Lesson, ...]:
        """The lessons learned for `endpoint` and `model`, oldest first."""
        with self._lock:
            entry = self._entries.get((endpoint, model))
            return tuple(entry.lessons.values()) if entry else ()

    def learn(self, endpoint: str, model: str, learned: Lesson) -> bool:
        """Keep `learned`, with what was learned under the same name; returns whether it was news."""
        with self._lock:
            entry = self._entries.setdefault((endpoint, model), _Entry())
            known = entry.lessons.get(learned.name)
            if known is not None and all(says(known.profile, *pair) for pair in learned.profile.items()):
                return False
            self._version += 1
            entry.lessons[learned.name] = learned if known is None else joined(known, learned)
            entry.version = self._version
            return True

    def unlearn(self, endpoint: str, model: str, name: str) -> None:
        """Drop what was learned under that name again: it is not so."""
        with self._lock:
            entry = self._entries.get((endpoint, model))
            if entry is not None and entry.lessons.pop(name, None) is not None:
                self._version += 1
                entry.version = self._version

    def rule_out(self, endpoint: str, model: str, guess: Lesson) -> None:
        """Keep that `guess` did not help."""
        with self._lock:
            self._entries.setdefault((endpoint, model), _Entry()).ruled_out.add(repr(guess.profile))

    def ruled_out(self, endpoint: str, model: str, guess: Lesson) -> bool:
        """Whether `guess` did not help before."""
        entry = self._entries.get((endpoint, model))
        return entry is not None and repr(guess.profile) in entry.ruled_out

    def forget(self, endpoint: str, model: str) -> None:
        """Drop what was learned for `endpoint` and `model`."""
        with self._lock:
            if (endpoint, model) in self._entries:
                self._version += 1
                self._entries[endpoint, model] = _Entry(version=self._version)

    def clear(self) -> None:
        """Drop everything, for all endpoints."""
        with self._lock:
            self._kinds.clear()
            self._version += 1
            for key in self._entries:
                self._entries[key] = _Entry(version=self._version)

    def kind(self, endpoint: str) -> str | None:
        """The kind of server that answers at `endpoint`, where its answers gave it away."""
        return self._kinds.get(endpoint)

    def forget_kind(self, endpoint: str) -> None:
        """Drop what kind of server `endpoint` was taken for."""
        self._kinds.pop(endpoint, None)

    def recognise(self, endpoint: str, kind: str) -> None:
        """Keep that `endpoint` is a server of `kind`, such as `llama.cpp`."""
        self._kinds[endpoint] = kind


MEMORY = Memory()
"""The memory that all models of the process share."""
