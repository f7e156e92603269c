"""Repair: what is known of one repair of an answer, or of one adaptation of a request, as data."""

from __future__ import annotations

from typing import NamedTuple

GITHUB = 'https://github.com/'


class Repair(NamedTuple):
    """One repair of an answer, or one adaptation of a request.

    Attributes:
        name: Its stable name.
        seen: What servers send or refuse, and a link to where that was reported.
        done: What is made of it.
        safe: Why nothing right can be spoiled.
    """

    name: str
    seen: str
    done: str
    safe: str

    @property
    def kind(self) -> str:
        """What is sent, without the link."""
        return self.seen.partition(f' ({GITHUB}')[0]
