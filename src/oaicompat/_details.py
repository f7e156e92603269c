"""Reasoning that comes as `reasoning_details`: a list of objects which the server wants back as they were.

MiniMax (https://platform.minimax.io/docs/api-reference/text-openai-api) and OpenRouter
(https://openrouter.ai/docs/use-cases/reasoning-tokens) send them. In a stream each object comes in fragments, which
MiniMax documents as running totals and sends as what is new (https://github.com/MiniMax-AI/MiniMax-M2/issues/95):
both are read. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

Detail = dict[str, Any]

FIELD = 'reasoning_details'
"""Name of the field, on the wire and in `ThinkingPart.provider_details`."""

_GROWING = ('text', 'summary')
_READ = ('reasoning_content', 'reasoning')  # where pydantic-ai puts the text of reasoning that it sends back


@dataclass
class Details:
    """The details of one stream, put together.

    Attributes:
        whole: What came since it was last taken.
    """

    whole: list[Detail] = field(default_factory=list)

    def feed(self, given: object) -> list[Detail]:
        """What is new in the fragments of one delta."""
        return [self._news(detail, place) for place, detail in enumerate(listed(given))]

    def take(self) -> list[Detail]:
        """What came since the last time."""
        taken, self.whole = self.whole, []
        return taken

    def _news(self, detail: Detail, place: int) -> Detail:
        known = self._known(detail, place)
        if known is None:
            self.whole.append(dict(detail))
            return detail
        news = dict(detail)
        for key, value in detail.items():
            old = known.get(key)
            if key in _GROWING and isinstance(value, str) and isinstance(old, str):
                news[key] = value[len(old) :] if len(value) > len(old) and value.startswith(old) else value
                known[key] = old + news[key]
            elif value is not None:
                known[key] = value
        return news

    def _known(self, detail: Detail, place: int) -> Detail | None:
        """The detail that this fragment goes on with: by its `index`, else by its place in the list."""
        for at, known in enumerate(self.whole):
            if known.get('type') == detail.get('type') and known.get('index', at) == detail.get('index', place):
                return known
        return None


def listed(value: object) -> list[Detail]:
    """The details in a field; what is no object is none."""
    items = value if isinstance(value, list) else [value]
    return [item for item in items if isinstance(item, dict) and item]


def told(parts: Iterable[Any], provider: str) -> list[Detail]:
    """The details of all thinking parts that came from `provider`."""
    return [
        detail
        for part in parts
        if part.part_kind == 'thinking' and part.provider_name == provider
        for detail in listed((part.provider_details or {}).get(FIELD))
    ]


def sent_back(message: Any, parts: Iterable[Any], provider: str) -> Any:
    """An assistant message with the details of its parts in place of the field that holds their text.

    The message as it is where it has no such field: then reasoning is not to be sent.
    """
    held = [key for key in _READ if message is not None and key in message]
    details = told(parts, provider) if held else []
    if not details:
        return message
    return {**{key: value for key, value in message.items() if key not in held}, FIELD: details}


def with_details(parts: list[Any], details: list[Detail], make: Callable[..., Any]) -> list[Any]:
    """Thinking parts with `details` on the first; `make` makes one where there are details alone."""
    if not details:
        return parts
    [first, *rest] = parts or [make(content='', id=_READ[0])]
    return [replace(first, provider_details={**(first.provider_details or {}), FIELD: details}), *rest]
