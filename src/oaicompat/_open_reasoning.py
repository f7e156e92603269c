"""Reasoning in a history, made ready for pydantic-ai's mapping, which would send most of it as text in tags."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pydantic_ai.messages import ModelMessage, ModelResponse, ModelResponsePart, ThinkingPart

from oaicompat._portable import GAP


def told_openly(messages: Sequence[ModelMessage], provider: str, *, encrypted: bool) -> list[ModelMessage]:
    """`messages` with reasoning that becomes items with `reasoning_text`, from whichever API it came.

    Args:
        messages: A history.
        provider: The name of the provider that they are sent to: it gets raw reasoning only from itself.
        encrypted: Whether it takes encrypted reasoning: its own stays as it is.
    """

    def of(message: ModelMessage) -> ModelMessage:
        if not isinstance(message, ModelResponse) or not any(isinstance(part, ThinkingPart) for part in message.parts):
            return message
        return replace(message, parts=list(_opened(message.parts, provider, encrypted=encrypted)))

    return [of(message) for message in messages]


def _opened(parts: Sequence[ModelResponsePart], provider: str, *, encrypted: bool) -> Iterator[ModelResponsePart]:
    sealed = {
        part.id
        for part in parts
        if isinstance(part, ThinkingPart) and encrypted and part.signature and part.provider_name == provider
    }
    whole, ids = set[str](), set[str]()  # of what was told whole, what follows is a summary; the parent joins equal ids
    for at, part in enumerate(parts):
        if not isinstance(part, ThinkingPart) or (sealed and part.id in sealed and part.provider_name == provider):
            yield part
            continue
        raw = (part.provider_details or {}).get('raw_content')
        text = GAP.join(filter(None, map(str, raw))) if isinstance(raw, list) else ''
        if not text and (part.id in whole or not part.content):
            continue
        whole |= {part.id} if text and part.id else set()
        id_ = part.id if part.id and part.id not in ids else f'rs_{at}'
        ids.add(id_)
        yield ThinkingPart('', id=id_, provider_name=provider, provider_details={'raw_content': [text or part.content]})
