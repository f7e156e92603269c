"""Typed items to pydantic-ai's messages. What no message has a place for is kept beside it, as it came."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai.messages import (
    BinaryContent,
    DocumentUrl,
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UploadedFile,
    UserContent,
    UserPromptPart,
)

from oaicompat.responses.items import (
    Audio,
    EasyInputMessage,
    File,
    FunctionCall,
    FunctionCallOutput,
    Image,
    Item,
    OutputMessage,
    Reasoning,
    Refusal,
    Text,
)

KEPT = 'oaicompat'
"""Key of a message's `metadata`: items that are no part of it, each with the number of parts in front of it."""

REFUSAL = {'refusal': True}
"""`TextPart.provider_details` of what a model said instead of an answer."""


def is_answer(item: Item) -> bool | None:
    """Whether an item is of a response, of a request, or (`None`) of whichever it stands in."""
    if isinstance(item, OutputMessage | Reasoning | FunctionCall):
        return True
    if isinstance(item, EasyInputMessage):
        return item.role == 'assistant'
    if isinstance(item, FunctionCallOutput):
        return False
    if (item.type or '').endswith('_output'):
        return False
    return True if (item.type or '').endswith('_call') else None


@dataclass
class Reader:
    """Items in, messages out.

    Attributes:
        names: The tools that were called, by call id.
        unpaired: The ids of outputs without a call.
    """

    names: dict[str, str] = field(default_factory=dict)
    unpaired: list[str] = field(default_factory=list)

    def message(self, items: Sequence[Item], *, answer: bool) -> ModelMessage:
        """The one message that `items` are."""
        parts: list[Any] = []
        kept: list[list[Any]] = []
        for item in items:
            made = self._response_parts(item) if answer else self._request_parts(item)
            if made is None:
                kept.append([len(parts), item.wire()])
            else:
                parts += made
        metadata = {KEPT: {'items': kept}} if kept else None
        return ModelResponse(parts, metadata=metadata) if answer else ModelRequest(parts, metadata=metadata)

    def _response_parts(self, item: Item) -> list[ModelResponsePart] | None:
        if isinstance(item, EasyInputMessage) and isinstance(item.content, str):
            return [TextPart(item.content)]
        if isinstance(item, OutputMessage):
            content = [] if item.content is None or isinstance(item.content, str) else item.content
            texts = [_answer_text(part, item.id) for part in content]
            return None if None in texts else [text for text in texts if text is not None]
        if isinstance(item, Reasoning):
            return _thoughts(item)
        if isinstance(item, FunctionCall):
            self.names[item.call_id] = item.name
            details = {'namespace': item.namespace} if item.namespace else None
            return [ToolCallPart(item.name, item.arguments, item.call_id, id=item.id, provider_details=details)]
        return None

    def _request_parts(self, item: Item) -> list[ModelRequestPart] | None:
        if isinstance(item, FunctionCallOutput):
            name = self.names.get(item.call_id)
            if name is None:
                self.unpaired.append(item.call_id)
            content = _output(item)
            return None if content is _NO_CONTENT else [ToolReturnPart(name or _UNPAIRED, content, item.call_id)]
        if not isinstance(item, EasyInputMessage):
            return None
        content = item.content
        if item.role == 'user':
            return _prompt(content)
        if content is None or isinstance(content, str):
            return [SystemPromptPart(content or '')] if content is not None else []
        texts = [part.text for part in content if isinstance(part, Text)]
        return [SystemPromptPart(text) for text in texts] if len(texts) == len(content) else None


_UNPAIRED = 'unknown'
_NO_CONTENT: Any = object()


def _answer_text(part: object, id_: str | None) -> TextPart | None:
    if isinstance(part, Refusal):
        return TextPart(part.refusal, id=id_, provider_details=dict(REFUSAL))
    return TextPart(part.text, id=id_) if isinstance(part, Text) else None


def _thoughts(item: Reasoning) -> list[ModelResponsePart] | None:
    """As pydantic-ai reads reasoning: a part for each summary, the first with what else there is."""
    summary, content = item.summary or [], item.content or []
    if not all(isinstance(part, Text) for part in (*summary, *content)):
        return None
    raw = [part.text for part in content if isinstance(part, Text)]
    texts = [part.text for part in summary if isinstance(part, Text)] or ['']
    details = {'raw_content': raw} if raw else None
    first = ThinkingPart(texts[0], id=item.id, signature=item.encrypted_content, provider_details=details)
    return [first, *(ThinkingPart(text, id=item.id) for text in texts[1:])]


def _prompt(content: str | list[Any] | None) -> list[ModelRequestPart] | None:
    if content is None:
        return []
    if isinstance(content, str):
        return [UserPromptPart(content)]
    made = [user_content(part) for part in content]
    return None if None in made else [UserPromptPart([part for part in made if part is not None])] if made else []


def _output(item: FunctionCallOutput) -> Any:
    """The content of a tool return: a list stays one, of texts and files."""
    if item.output is None or isinstance(item.output, str):
        return item.output
    made = [user_content(part) for part in item.output]
    return _NO_CONTENT if None in made else made


def user_content(part: object) -> UserContent | None:
    """A part as pydantic-ai has it; `None` where it has none."""
    if isinstance(part, Text):
        return part.text
    if isinstance(part, Audio):
        return _data(f'data:audio/{part.input_audio.format};base64,{part.input_audio.data}')
    if isinstance(part, Image):
        return _image(part)
    return _file(part) if isinstance(part, File) else None


def _image(part: Image) -> UserContent | None:
    metadata = {'detail': part.detail} if part.detail not in (None, 'auto') else None
    if bool(part.image_url) is bool(part.file_id):
        return None
    if part.file_id:
        return UploadedFile(part.file_id, 'openai', media_type='image/*', vendor_metadata=metadata)
    url = part.image_url or ''
    return _data(url, metadata) or ImageUrl(url, vendor_metadata=metadata)


def _file(part: File) -> UserContent | None:
    if sum(map(bool, (part.file_data, part.file_url, part.file_id))) != 1:
        return None
    if part.file_url:
        return DocumentUrl(part.file_url)
    return UploadedFile(part.file_id, 'openai') if part.file_id else _data(part.file_data or '')


_DATA = re.compile(r'data:(?P<media>[^;,]*)(?:;[^,]*)?;base64,', re.IGNORECASE)


def _data(url: str, metadata: dict[str, Any] | None = None) -> BinaryContent | None:
    """What is in a data URI."""
    head = _DATA.match(url)
    if head is None:
        return None
    try:
        data = base64.b64decode(url[head.end() :], validate=True)
    except (binascii.Error, ValueError):
        return None
    media_type = head['media'] or 'application/octet-stream'
    return BinaryContent.narrow_type(BinaryContent(data, media_type=media_type, vendor_metadata=metadata))


def kept_items(message: ModelMessage) -> Iterable[tuple[int, dict[str, Any]]]:
    """The items that were kept beside a message, each with the number of parts in front of it."""
    kept = (message.metadata or {}).get(KEPT)
    items = kept.get('items') if isinstance(kept, dict) else None
    for entry in items if isinstance(items, list) else ():
        at, item = entry
        yield at, item
