"""What is known of a request when its answer is repaired, and the names that the repairs share. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from oaicompat._envelope import REASONING_FIELDS
from oaicompat._keys import INLINE
from oaicompat._offer import Offer
from oaicompat._thinking import HARMONY_TAGS, KNOWN_TAGS, Tags

SEARCHED = (*REASONING_FIELDS[:2], INLINE, 'content')
"""Where calls may stand that the server did not parse."""


@dataclass(frozen=True)
class Context:
    """What is known of the request whose answer is repaired.

    Attributes:
        model: The model's name.
        schemas: The offered tools: parameter schemas by name.
        tags: The pairs of tags that may stand around reasoning in the text; none: they are text.
        closing_only: Whether the answer starts inside reasoning that the prompt opened.
        answer_in_reasoning: Whether an answer that stands in the reasoning field alone is shown as text.
        alternatives: Whether several choices were asked for, so that they are no parts of one answer.
        cumulative_usage: Whether the caller asked for running totals and pydantic-ai reads them so.
        details: Whether `reasoning_details` are ours to read: some of pydantic-ai's classes do it themselves.
        offer: What calls that stand in the text may call, and whether they are recovered.
    """

    model: str = ''
    schemas: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    tags: Sequence[Tags] = KNOWN_TAGS
    closing_only: bool = False
    answer_in_reasoning: bool = False
    alternatives: bool = False
    cumulative_usage: bool = False
    details: bool = True
    offer: Offer = field(default_factory=Offer)

    @property
    def all_tags(self) -> Sequence[Tags]:
        """`tags`, and behind them those of the model itself."""
        return (*self.tags, *HARMONY_TAGS) if self.tags and 'gpt-oss' in self.model.lower() else self.tags
