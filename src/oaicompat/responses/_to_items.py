"""pydantic-ai's messages to input items, as OpenAI reads them; each item knows the parts it was made of."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai.messages import (
    AudioUrl,
    BinaryContent,
    DocumentUrl,
    ImageUrl,
    ModelMessage,
    ModelRequest,
    RetryFeedbackPart,
    SpeechPart,
    SystemPromptPart,
    TextContent,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UploadedFile,
    UserPromptPart,
)

from oaicompat._json import as_object
from oaicompat._toolreturns import element_texts
from oaicompat.responses._from_items import REFUSAL, kept_items

Json = dict[str, Any]


@dataclass
class Made:
    """An item, and what it was made of.

    Attributes:
        item: The JSON object.
        parts: The indexes of the message's parts, one for each part of its content; none for an item that was kept.
        lost: What of those parts the item can't say.
    """

    item: Json
    parts: list[int] = field(default_factory=list)
    lost: list[tuple[int, str]] = field(default_factory=list)


def made_of(message: ModelMessage) -> list[Made]:
    """The items of one message, in order; those that were kept beside it among them."""
    kept = kept_items(message)
    made: list[Made] = []
    for at, part in enumerate(message.parts):
        made += [Made(item) for _, item in _taken(kept, at)]
        # What stands between two parts of one id sets them apart.
        news = _of_request(part, at) if isinstance(message, ModelRequest) else _of_response(part, at)
        if made and _go_together(made[-1].item, news.item):
            _join(made[-1], news)
        elif news.item or news.lost:
            made.append(news)
    return [*made, *(Made(item) for _, item in kept)]


def _taken(kept: list[tuple[int, Json]], at: int) -> Iterator[tuple[int, Json]]:
    while kept and kept[0][0] <= at:
        yield kept.pop(0)


def _go_together(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two items are one: parts of one id."""
    same = bool(one.get('id')) and (one.get('type'), one['id']) == (other.get('type'), other.get('id'))
    return same and one.get('type') in ('message', 'reasoning') and one.get('phase') == other.get('phase')


def _join(made: Made, news: Made) -> None:
    key = 'content' if made.item['type'] == 'message' else 'summary'
    made.item = {**made.item, key: [*made.item[key], *news.item[key]]}
    made.parts += news.parts
    made.lost += news.lost
    if key == 'summary' and any(news.item.get(field) for field in ('content', 'encrypted_content')):
        made.lost.append((news.parts[0], 'what else it holds besides a summary'))


def _nothing(at: int, what: str) -> Made:
    return Made({}, [at], [(at, what)])


# Answers


def _of_response(part: Any, at: int) -> Made:
    if isinstance(part, TextPart):
        return Made(_said(part), [at])
    if isinstance(part, ThinkingPart):
        return Made(_thought(part), [at])
    if isinstance(part, ToolCallPart):
        broken = isinstance(part.args, str) and part.args.strip() and as_object(part.args) is None
        return Made(_call(part), [at], [(at, 'arguments that are no JSON object')] if broken else [])
    if spoken := _spoken(part, 'assistant'):
        return Made(spoken, [at])
    return _nothing(at, f'a {part.part_kind} part')


def _said(part: TextPart) -> Json:
    details = part.provider_details or {}
    refusal, phase = details.get('refusal') is REFUSAL['refusal'], details.get('phase')
    phased = {'phase': phase} if phase and isinstance(phase, str) else {}
    if part.id is None and not refusal:
        return {'role': 'assistant', 'content': part.content, **phased}
    content: Json = {'type': 'refusal', 'refusal': part.content} if refusal else output_text(part.content)
    named = {} if part.id is None else {'id': part.id}
    return {'type': 'message', **named, 'role': 'assistant', 'status': 'completed', 'content': [content], **phased}


def output_text(text: str) -> Json:
    """A part of an answer."""
    return {'type': 'output_text', 'text': text, 'annotations': []}


def _thought(part: ThinkingPart) -> Json:
    raw = (part.provider_details or {}).get('raw_content')
    named = {} if part.id is None else {'id': part.id}
    item: Json = {'type': 'reasoning', **named, 'summary': []}
    if part.content:
        item['summary'] = [{'type': 'summary_text', 'text': part.content}]
    if isinstance(raw, list) and raw:
        item['content'] = [{'type': 'reasoning_text', 'text': str(text)} for text in raw]
    if part.signature:
        item['encrypted_content'] = part.signature
    return item if len(item) > len(named) + _BARE or item['summary'] else {}


_BARE = 2  # the fields of reasoning that says nothing


def _call(part: ToolCallPart) -> Json:
    named = {} if part.id is None else {'id': part.id}
    given = (part.provider_details or {}).get('namespace')
    namespace = given if isinstance(given, str) else None
    return {
        'type': 'function_call',
        **named,
        'call_id': part.tool_call_id,
        'name': part.tool_name,
        'arguments': part.args_as_json_str(),
        **({'namespace': namespace} if namespace else {}),
    }


# Requests


def _of_request(part: Any, at: int) -> Made:
    if isinstance(part, SystemPromptPart):
        return Made({'role': 'system', 'content': part.content}, [at])
    if isinstance(part, UserPromptPart):
        return _asked(part, at)
    if isinstance(part, ToolReturnPart):
        return _returned(part, at)
    item = _spoken(part, 'user') or _retry(part)
    return Made(item, [at]) if item else _nothing(at, f'a {part.part_kind} part')


def _retry(part: Any) -> Json | None:
    if isinstance(part, RetryFeedbackPart):
        return {'role': 'system' if part.retry.cause == 'no_output' else 'user', 'content': part.model_response()}
    if part.part_kind != 'retry-prompt':  # deprecated, but in histories
        return None
    if part.tool_name is None:
        return {'role': 'user', 'content': part.model_response()}
    return {'type': 'function_call_output', 'call_id': part.tool_call_id, 'output': part.model_response()}


def _spoken(part: Any, role: str) -> Json | None:
    spoken = isinstance(part, SpeechPart) and part.transcript
    return {'role': role, 'content': part.transcript} if spoken else None


def _asked(part: UserPromptPart, at: int) -> Made:
    if isinstance(part.content, str):
        return Made({'role': 'user', 'content': part.content}, [at])
    content, lost = _contents(part.content)
    return Made({'role': 'user', 'content': content}, [at], [(at, what) for what in lost])


def _returned(part: ToolReturnPart[Any], at: int) -> Made:
    item: Json = {'type': 'function_call_output', 'call_id': part.tool_call_id}
    if part.files:
        content, lost = _contents(part.content_items(mode='str'))
        return Made({**item, 'output': content}, [at], [(at, what) for what in lost])
    texts = element_texts(part)
    output: Any = (
        part.model_response_str() if texts is None else [{'type': 'input_text', 'text': text} for text in texts]
    )
    return Made({**item, 'output': output}, [at])


def _contents(content: Any) -> tuple[list[Json], list[str]]:
    made, lost = [], []
    for one in content:
        param = _content(one)
        if param is None:
            lost.append(f'a {getattr(one, "kind", type(one).__name__)} in it')
        else:
            made.append(param)
    return made, lost


def _content(one: Any) -> Json | None:
    if isinstance(one, str | TextContent):
        return {'type': 'input_text', 'text': one if isinstance(one, str) else one.content}
    if isinstance(one, ImageUrl):
        return {'type': 'input_image', 'image_url': one.url, 'detail': _detail(one)}
    if isinstance(one, DocumentUrl | AudioUrl):
        return {'type': 'input_file', 'file_url': one.url, **_filename(one)}
    if isinstance(one, UploadedFile):
        return _uploaded(one)
    return _data(one) if isinstance(one, BinaryContent) else None


def _uploaded(one: UploadedFile) -> Json | None:
    if one.provider_name != 'openai':
        return None
    if one.media_type.startswith('image/'):
        return {'type': 'input_image', 'file_id': one.file_id, 'detail': _detail(one)}
    return {'type': 'input_file', 'file_id': one.file_id, **_filename(one)}


def _filename(one: Any, other: str | None = None) -> Json:
    name = (one.vendor_metadata or {}).get('filename') or other
    return {'filename': str(name)} if name else {}


def _detail(one: Any) -> str:
    return str((one.vendor_metadata or {}).get('detail', 'auto'))


def _data(one: BinaryContent) -> Json:
    if one.is_image:
        return {'type': 'input_image', 'image_url': one.data_uri, 'detail': _detail(one)}
    if one.is_audio:
        return {
            'type': 'input_audio',
            'input_audio': {'data': base64.b64encode(one.data).decode(), 'format': one.media_type.partition('/')[2]},
        }
    try:
        ending = one.format
    except ValueError:
        ending = one.media_type.partition('/')[2]
    return {'type': 'input_file', 'file_data': one.data_uri, **_filename(one, f'filename.{ending}')}
