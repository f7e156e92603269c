"""The envelope of an answer: where the completion is, whether it is an error, and what its fields mean.

Pure functions on JSON values. `failure_in()` finds the error that some servers send in place of an answer, with
status 200 or in a stream; `unwrapped()` finds a completion in a wrapper; `plain_message()` brings one message, or
one delta, into the form of the API reference.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

Json = dict[str, Any]

REASONING_FIELDS = ('reasoning_content', 'reasoning', 'reasoning_text', 'thinking')


class FailureError(Exception):
    """An error that came in place of an answer.

    Attributes:
        message: The server's words.
        body: The error object as the server sent it.
        status: The HTTP status that this error would have, where the server tells it.
    """

    def __init__(self, message: str, body: object, status: int | None = None) -> None:
        super().__init__(message)
        self.message, self.body, self.status = message, body, status


def failure_in(value: Mapping[str, Any]) -> FailureError | None:
    """The error that `value` is or holds, or `None`."""
    if error := value.get('error'):
        return _failure(error, value)
    choices = value.get('choices')
    first = choices[0] if isinstance(choices, list) and choices else None
    if isinstance(first, Mapping) and first.get('error'):
        return _failure(first['error'], first)
    if value.get('object') == 'error' or (not _is_answer(value) and not _wrapped(value) and _complains(value)):
        return _failure(value, value)
    return None


def _failure(error: object, around: Mapping[str, Any]) -> FailureError:
    fields = error if isinstance(error, Mapping) else around
    codes = (fields.get(key) for key in ('code', 'status', 'status_code', 'http_status', 'http_code'))
    status = next((found for code in codes if (found := _status(code)) is not None), None)
    message = error if isinstance(error, str) else _words(error)
    return FailureError(message or 'the server reported an error without a message', error, status)


def _status(code: object) -> int | None:
    if isinstance(code, str) and code.isdecimal():
        code = int(code)
    known = isinstance(code, int) and not isinstance(code, bool) and code in range(400, 600)
    return code if known and isinstance(code, int) else None


_WORDS = ('message', 'msg', 'detail', 'error_msg', 'error_message', 'error')


def _words(error: object) -> str:
    if isinstance(error, str):
        return error
    if isinstance(error, list):
        return '; '.join(filter(None, map(_words, error)))
    if not isinstance(error, Mapping):
        return ''
    return next((words for key in _WORDS if (words := _words(error.get(key)))), '')


def _is_answer(value: Mapping[str, Any]) -> bool:
    return bool(value.get('choices')) or value.get('usage') is not None or 'choices' in value


def _complains(value: Mapping[str, Any]) -> bool:
    return bool(value.get('detail')) or (
        any(value.get(key) for key in ('message', 'msg')) and any(key in value for key in ('code', 'status', 'success'))
    )


def unwrapped(value: Json) -> Json:
    """The completion in `value`, where some gateway wrapped it in an object of its own; else `value`."""
    return value if value.get('choices') else _wrapped(value) or value


def _wrapped(value: Mapping[str, Any]) -> Json | None:
    inner = (value.get(key) for key in ('data', 'result', 'response', 'provider', 'output', 'body'))
    return next((item for item in inner if isinstance(item, dict) and item.get('choices')), None)


def plain_message(message: Mapping[str, Any], repairs: set[str]) -> Json:
    """A message or delta with text as a string and reasoning as a string in a field that pydantic-ai reads.

    The object itself where it is so already.
    """
    changed: Json = {}
    content = message.get('content')
    if isinstance(content, list):
        text, thinking = _text_of(content), _text_of(content, thinking=True)
        if thinking:
            repairs.add('content.thinking_parts')
            changed = {'content': text or None, 'reasoning_content': thinking}
    elif content is not None and not isinstance(content, str):
        repairs.add('content.not_text')
        changed['content'] = _text_of([content])
    changed |= _plain_reasoning({**message, **changed}, repairs)
    if 'function_call' in message and not message.get('tool_calls') and isinstance(message['function_call'], Mapping):
        repairs.add('tool_call.legacy')
        changed['tool_calls'] = [{'index': 0, 'type': 'function', 'function': dict(message['function_call'])}]
    return {**message, **changed} if changed else dict(message)


def _plain_reasoning(message: Mapping[str, Any], repairs: set[str]) -> Json:
    """Reasoning that pydantic-ai would not read, in the field where it does."""
    if any(isinstance(message.get(key), str) and message[key] for key in REASONING_FIELDS[:2]):
        return {}
    for key in (*REASONING_FIELDS, 'reasoning_details'):
        text = _text_of(message.get(key), thinking=True, loose=True)
        if text:
            repairs.add('reasoning.field')
            field = key if key in REASONING_FIELDS[:2] else 'reasoning_content'
            return {field: text}
    return {}


_THINKING_TYPES = ('thinking', 'reasoning', 'reasoning.text', 'reasoning.summary', 'reasoning_text', 'summary_text')


def _text_of(value: object, *, thinking: bool = False, loose: bool = False) -> str:
    """The text in a string, part or list of parts; `thinking` chooses reasoning parts, `loose` takes any text."""
    if isinstance(value, str):
        return '' if thinking and not loose else value
    if isinstance(value, Iterable) and not isinstance(value, Mapping):
        return ''.join(_text_of(item, thinking=thinking, loose=loose) for item in value)
    if not isinstance(value, Mapping):
        return ''
    reasons = value.get('type') in _THINKING_TYPES
    if not loose and reasons is not thinking:
        return ''
    inner = (value.get(key) for key in ('text', 'thinking', 'reasoning', 'content', 'summary'))
    return next((text for item in inner if (text := _text_of(item, thinking=thinking, loose=loose or reasons))), '')


def plain_usage(usage: object, repairs: set[str]) -> Json | None:
    """Token counts as whole numbers, nothing else; `None` where there are none."""
    if not isinstance(usage, Mapping):
        return None
    plain = {key: _counted(value) for key, value in usage.items()}
    if 'total_tokens' not in plain and {'prompt_tokens', 'completion_tokens'} <= plain.keys():
        plain['total_tokens'] = (plain['prompt_tokens'] or 0) + (plain['completion_tokens'] or 0)
    for key in ('prompt_tokens', 'completion_tokens', 'total_tokens'):
        if plain.get(key) is None:
            plain[key] = 0
    if plain != usage:
        repairs.add('usage')
    return plain


def _counted(value: object) -> Any:
    if isinstance(value, float) and math.isfinite(value):
        return int(value)
    if isinstance(value, str) and re.fullmatch(r'\d+(\.\d+)?', value):
        return int(float(value))
    return {key: _counted(item) for key, item in value.items()} if isinstance(value, Mapping) else value


def usage_difference(usage: Json, before: Json) -> Json:
    """What `usage` counts beyond `before`: pydantic-ai adds up what each chunk reports."""
    news: Json = {}
    for key, value in usage.items():
        old = before.get(key)
        if isinstance(value, dict):
            news[key] = usage_difference(value, old if isinstance(old, dict) else {})
        elif isinstance(value, int) and not isinstance(value, bool):
            news[key] = value - old if isinstance(old, int) else value
        else:
            news[key] = value
    return news
