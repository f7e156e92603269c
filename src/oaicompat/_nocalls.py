"""What stands for calls, and for the search for them, in an answer that has none: their rooms stay closed. Pure."""

from __future__ import annotations

from typing import Any


class NoCalls:
    """Stands for `ToolCalls` until a call begins."""

    begun = nameless = False

    def goes_on(self, _: list[Any]) -> bool:
        """No fragment goes on with a call."""
        return False

    def takes(self, _: int, __: str) -> bool:
        """No fragment goes on with a call."""
        return False

    def cut_off(self) -> None:
        """No call is cut off."""

    def finish(self) -> list[dict[str, Any]]:
        """There is nothing to replace."""
        return []


class NoSearch:
    """Stands for `Recovery` where nothing is offered: what comes goes on as it is."""

    doubts = found = holds = False

    def passes(self, _: str, __: str) -> bool:
        """All text passes."""
        return True

    def plainly(self, _: str, __: str) -> None:
        """Nothing is cut into pieces."""

    def expanded(self, deltas: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The deltas as they are."""
        return deltas

    def finish(self, _: object) -> list[dict[str, Any]]:
        """Nothing was held."""
        return []

    def calls(self, whole: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Nothing was doubted."""
        return whole
