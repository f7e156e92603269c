"""Typed items to pydantic-ai's messages. What no message has a place for is kept beside it, as it came."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pydantic_ai.exceptions import UserError
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

from oaicompat._patterns import lazy
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
    read_item,
)

KEPT = 'oaicompat'
"""Key of a message's `metadata`: items that are no part of it, each with the number of parts in front of it."""

NOTE = 'pydantic_ai'
"""Field of an item in a transcript: what the items of its message don't say."""

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


class Kept(NamedTuple):
    """What no part says of an item.

    Attributes:
        item: The item, or a copy of it with those parts alone that are unknown.
        why: What is unknown of it: its type, or the paths of its parts.
    """

    item: dict[str, Any]
    why: str


@dataclass
class Reader:
    """Items in, messages out.

    Attributes:
        names: The tools that were called, by call id.
        unpaired: The items that are outputs without a call.
        kept: The items that were kept, whole or in part.
    """

    names: dict[str, str] = field(default_factory=dict)
    unpaired: list[FunctionCallOutput] = field(default_factory=list)
    kept: list[tuple[Item, str]] = field(default_factory=list)

    def message(self, items: Sequence[Item], *, answer: bool) -> ModelMessage:
        """The one message that `items` are."""
        parts: list[Any] = []
        beside: list[list[Any]] = []
        for item in items:
            made, kept = self._response_parts(item) if answer else self._request_parts(item)
            parts += made
            if kept is not None:
                beside.append([len(parts), kept.item])
                self.kept.append((item, kept.why))
        metadata = {KEPT: {'items': beside}} if beside else None
        return ModelResponse(parts, metadata=metadata) if answer else ModelRequest(parts, metadata=metadata)

    def _response_parts(self, item: Item) -> tuple[list[ModelResponsePart], Kept | None]:
        if isinstance(item, EasyInputMessage) and isinstance(item.content, str):
            return [TextPart(item.content, provider_details=_phase(item.phase))], None
        if isinstance(item, OutputMessage):
            texts, kept = _known(item, 'content', lambda part: _answer_text(part, item.id, _phase(item.phase)))
            return texts, kept
        if isinstance(item, Reasoning):
            return _thoughts(item)
        if isinstance(item, FunctionCall):
            self.names[item.call_id] = item.name
            details = {'namespace': item.namespace} if item.namespace else None
            return [ToolCallPart(item.name, item.arguments, item.call_id, id=item.id, provider_details=details)], None
        return [], _whole(item)

    def _request_parts(self, item: Item) -> tuple[list[ModelRequestPart], Kept | None]:
        if isinstance(item, FunctionCallOutput):
            name = self.names.get(item.call_id)
            if name is None:
                self.unpaired.append(item)
            return [ToolReturnPart(name or _UNPAIRED, _output(item), item.call_id)], None
        if not isinstance(item, EasyInputMessage):
            return [], _whole(item)
        if isinstance(item.content, str):
            return [UserPromptPart(item.content) if item.role == 'user' else SystemPromptPart(item.content)], None
        if item.role == 'user':
            content, kept = _known(item, 'content', user_content)
            return [UserPromptPart(content)] if content else [], kept
        return _known(item, 'content', lambda part: SystemPromptPart(part.text) if isinstance(part, Text) else None)


_UNPAIRED = 'unknown'


def _whole(item: Item) -> Kept:
    return Kept(item.wire(), f'of type {item.type!r}' if isinstance(item.type, str) else 'a reference')


def _known(item: Item, key: str, make: Callable[[Any], Any]) -> tuple[list[Any], Kept | None]:
    """What `make` makes of the parts of an item, and the item with those alone that it makes nothing of."""
    parts = getattr(item, key) or []
    made = [make(part) for part in parts]
    unknown = [at for at, one in enumerate(made) if one is None]
    if not unknown:
        return made, None
    rest = {**item.wire(), key: [parts[at].wire() for at in unknown]}
    why = ', '.join(f'.{key}[{at}] of type {parts[at].type!r}' for at in unknown)
    return [one for one in made if one is not None], Kept(rest, why)


def _phase(phase: str | None) -> dict[str, Any] | None:
    return {'phase': phase} if phase else None


def _answer_text(part: object, id_: str | None, details: dict[str, Any] | None) -> TextPart | None:
    if isinstance(part, Refusal):
        return TextPart(part.refusal, id=id_, provider_details={**(details or {}), **REFUSAL})
    return TextPart(part.text, id=id_, provider_details=details) if isinstance(part, Text) else None


def _thoughts(item: Reasoning) -> tuple[list[ModelResponsePart], Kept | None]:
    """As pydantic-ai reads reasoning: a part for each summary, the first with what else there is."""
    if not all(isinstance(part, Text) for part in (*(item.summary or ()), *(item.content or ()))):
        return [], Kept(item.wire(), 'of reasoning with a part that is no text')
    raw = [part.text for part in item.content or () if isinstance(part, Text)]
    texts = [part.text for part in item.summary or () if isinstance(part, Text)] or ['']
    details = {'raw_content': raw} if raw else None
    first = ThinkingPart(texts[0], id=item.id, signature=item.encrypted_content, provider_details=details)
    return [first, *(ThinkingPart(text, id=item.id) for text in texts[1:])], None


def _output(item: FunctionCallOutput) -> Any:
    """The content of a tool return: a list stays one, of texts, files, and as they came of what is neither."""
    if item.output is None or isinstance(item.output, str):
        return item.output
    made = [(user_content(part), part) for part in item.output]
    return [part.wire() if one is None else one for one, part in made]


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
    metadata = {'filename': part.filename} if part.filename else None
    if part.file_url:
        return DocumentUrl(part.file_url, vendor_metadata=metadata)
    if part.file_id:
        return UploadedFile(part.file_id, 'openai', vendor_metadata=metadata)
    return _data(part.file_data or '', metadata)


_DATA = lazy(r'data:(?P<media>[^;,]*)(?:;[^,]*)?;base64,', re.IGNORECASE)


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


def kept_items(message: ModelMessage) -> list[tuple[int, dict[str, Any]]]:
    """The items that were kept beside a message, each with the number of parts in front of it."""
    kept = (message.metadata or {}).get(KEPT)
    entries = kept.get('items') if isinstance(kept, dict) else None
    return [found for entry in (entries if isinstance(entries, list) else ()) if (found := _kept_item(entry))]


def _kept_item(entry: Any) -> tuple[int, dict[str, Any]] | None:
    if not (isinstance(entry, list | tuple) and len(entry) == _PAIR and type(entry[0]) is int):
        return None
    try:
        item = read_item(entry[1], 0).wire()
    except UserError:
        return None  # somebody else's
    return entry[0], {key: value for key, value in item.items() if key != NOTE}


_PAIR = 2
