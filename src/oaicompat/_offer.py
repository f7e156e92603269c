"""What a request offers, and so what may be called in the text of its answer. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

TextCalls = Literal['off', 'on', 'suppress']
"""Whether calls in the text are recovered, or taken out alone, since none was to be made."""


@dataclass(frozen=True)
class Offer:
    """What may be called in the text.

    Attributes:
        schemas: The tools that may be called: parameter schemas by name.
        wanted: What becomes of their calls.
        expected: Whether the request asked for calls as text, and strict reading is not to take them for a deviation.
    """

    schemas: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    wanted: TextCalls = 'off'
    expected: bool = False

    @property
    def mode(self) -> TextCalls:
        """What is done: nothing where there is no tool."""
        return self.wanted if self.schemas else 'off'

    @property
    def suppresses(self) -> bool:
        """Whether calls are taken out and not made."""
        return self.mode == 'suppress'
