"""The envelope of an answer: where the completion is, whether it is an error, and what its fields mean.

Pure functions on JSON values. `failure_in()` finds the error that some servers send in place of an answer, with
status 200 or in a stream; `unwrapped()` finds a completion in a wrapper; `plain_message()` brings one message, or
one delta, into the form of the API reference.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from oaicompat._halves import has_half, joined_halves
from oaicompat._keys import DETAILS
from oaicompat._patterns import lazy

Json = dict[str, Any]

REASONING_FIELDS = ('reasoning_content', 'reasoning', 'reasoning_text', 'thinking')


STRICT = 'strict: '
"""How an error of `compat_repair='strict'` begins: the server will say the same again."""


class IncompleteError(Exception):
    """The stream ended before the answer did."""


class FailureError(Exception):
    """An error that came in place of an answer.

    Attributes:
        message: The server's words.
        body: The error object as the server sent it.
        status: The HTTP status that this error would have, where the server tells it.
        request: The HTTP request that it answers, where that is known.
    """

    request: Any = None

    def __init__(self, message: str, body: object, status: int | None = None) -> None:
        super().__init__(message)
        self.message, self.body, self.status = message, body, status


def failure_in(value: Mapping[str, Any]) -> FailureError | None:
    """The error that `value` is or holds, or `None`."""
    if error := value.get('error'):
        return _failure(error, value)
    choices = value.get('choices')
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, Mapping) and choice.get('error'):
            return _failure(choice['error'], choice)
    return _failure(value, value) if value.get('object') == 'error' else _other_failure(value)


def _other_failure(value: Mapping[str, Any]) -> FailureError | None:
    """The error that an object without choices is, in other shapes than OpenAI's."""
    if value.get('choices') or 'usage' in value or _wrapped(value):
        return None
    if (inner := next((item for item in _inside(value) if item.get('error')), None)) is not None:
        return _failure(inner['error'], inner)
    for key in ('errors', 'base_resp'):  # several at once; MiniMax
        if (told := value.get(key)) and (key != 'base_resp' or _base_complains(told)):
            return _failure(told[0] if isinstance(told, list) else told, value)
    return _failure(value, value) if 'choices' not in value and _complains(value) else None


def _base_complains(told: object) -> bool:
    return isinstance(told, Mapping) and told.get('status_code') not in (0, None)


def _failure(error: object, around: Mapping[str, Any]) -> FailureError:
    fields = error if isinstance(error, Mapping) else around
    codes = (fields.get(key) for key in ('code', 'status', 'status_code', 'http_status', 'http_code', 'type'))
    status = next((found for code in codes if (found := _status(code)) is not None), None)
    message = _words(error) or _words({key: item for key, item in around.items() if key != 'error'})
    if status is None and _NOT_FOUND.search(message):
        status = 404
    return FailureError(message or 'the server reported an error without a message', error, status)


def _status(code: object) -> int | None:
    if isinstance(code, str) and code in _STATUSES:
        return _STATUSES[code]
    if isinstance(code, str) and code.isdecimal():
        code = int(code)
    known = isinstance(code, int) and not isinstance(code, bool) and code in range(400, 600)
    return code if known and isinstance(code, int) else None


# What Anthropic, Google and vLLM say in words; the words of OpenAI are pydantic-ai's to know.
_STATUSES: Mapping[str, int] = {
    'invalid_request_error': 400, 'BadRequestError': 400, 'INVALID_ARGUMENT': 400,
    'authentication_error': 401, 'AuthenticationError': 401, 'UNAUTHENTICATED': 401, 'invalid_api_key': 401,
    'permission_error': 403, 'PERMISSION_DENIED': 403,
    'not_found_error': 404, 'NotFoundError': 404, 'NOT_FOUND': 404, 'model_not_found': 404,
    'RateLimitError': 429, 'RESOURCE_EXHAUSTED': 429,
    'api_error': 500, 'InternalServerError': 500, 'INTERNAL': 500, 'UNAVAILABLE': 503, 'overloaded_error': 529,
}  # fmt: skip

_NOT_FOUND = lazy(r'^not found\W*$|^model\b.{0,200}\bnot found\b', re.IGNORECASE)  # FastAPI; Ollama

_WORDS = ('message', 'msg', 'detail', 'error_msg', 'error_message', 'status_msg', 'error')


def _words(error: object, depth: int = 0) -> str:
    if isinstance(error, str):
        return error
    if depth > _DEEPEST:
        return ''
    if isinstance(error, list):
        return '; '.join(filter(None, (_words(item, depth + 1) for item in error)))
    if not isinstance(error, Mapping):
        return ''
    return next((words for key in _WORDS if (words := _words(error.get(key), depth + 1))), '')


def _complains(value: Mapping[str, Any]) -> bool:
    if value.get('detail') or value.get('error_msg') or value.get('error_message'):
        return True
    fine = value.get('success') is True or value.get('code') in (0, 200, '0', '200')
    return not fine and (
        any(isinstance(value.get(key), str) and value[key] for key in ('message', 'msg'))
        and any(key in value for key in ('code', 'status', 'success'))
    )


def unwrapped(value: Json) -> Json:
    """The completion in `value`, where some gateway wrapped it in an object of its own; else `value`."""
    return value if value.get('choices') else _wrapped(value) or value


def _wrapped(value: Mapping[str, Any]) -> Json | None:
    return next((item for item in _inside(value) if item.get('choices')), None)


def _inside(value: Mapping[str, Any]) -> list[Json]:
    inner = (value.get(key) for key in ('data', 'result', 'response', 'provider', 'output', 'body'))
    return [item for item in inner if isinstance(item, dict)]


def plain_message(message: Mapping[str, Any], repairs: set[str], *, whole: bool = True, details: bool = True) -> Json:
    """A message or delta with text as a string and reasoning as a string in a field that pydantic-ai reads.

    The object itself where it is so already. `details` says whether `reasoning_details` are to be read, too.
    """
    changed: Json = {}
    content = message.get('content')
    if isinstance(content, list):
        text, thinking = _text_of(content), _text_of(content, thinking=True)
        if thinking:
            repairs.add('content.thinking_parts')
            beside = next((message[key] for key in REASONING_FIELDS if isinstance(message.get(key), str)), '')
            # Some servers say the same twice.
            changed = {
                'content': text or None,
                'reasoning_content': thinking if beside == thinking else beside + thinking,
            }
        elif text or not content:
            repairs.add('content.not_text')
            changed['content'] = text or None
    elif content is not None and not isinstance(content, str):
        repairs.add('content.not_text')
        changed['content'] = _text_of([content]) or (json.dumps(content, ensure_ascii=False) if content else None)
    changed |= _plain_reasoning({**message, **changed}, repairs, (*REASONING_FIELDS, *([DETAILS] if details else [])))
    for key in TEXTS:
        said = changed.get(key, message.get(key))
        if whole and isinstance(said, str) and has_half(said):
            repairs.add('content.split_character')
            changed[key] = joined_halves(said)
    if message.get('refusal') and not isinstance(message['refusal'], str):
        repairs.add('envelope.types')
        changed['refusal'] = None
    legacy = message.get('function_call')
    if isinstance(legacy, Mapping):
        changed['function_call'] = None
        if legacy and not message.get('tool_calls'):
            repairs.add('tool_call.legacy')
            changed['tool_calls'] = [{'index': 0, 'type': 'function', 'function': dict(legacy)}]
    return {**message, **changed} if changed else dict(message)


TEXTS = ('content', *REASONING_FIELDS[:2], 'refusal')


def _plain_reasoning(message: Mapping[str, Any], repairs: set[str], fields: Iterable[str]) -> Json:
    """Reasoning that pydantic-ai would not read, in the field where it does."""
    odd = {key: None for key in REASONING_FIELDS[:2] if message.get(key) and not isinstance(message[key], str)}
    if odd:
        repairs.add('reasoning.field')
    if any(isinstance(message.get(key), str) and message[key] for key in REASONING_FIELDS[:2]):
        return odd
    for key in fields:
        text = _text_of(message.get(key), thinking=True, loose=True)
        if text:
            repairs.add('reasoning.details' if key == DETAILS else 'reasoning.field')
            field = key if key in REASONING_FIELDS[:2] else 'reasoning_content'
            return {**odd, field: text}
    return odd


_THINKING_TYPES = ('thinking', 'reasoning', 'reasoning.text', 'reasoning.summary', 'reasoning_text', 'summary_text')


def _text_of(value: object, *, thinking: bool = False, loose: bool = False, depth: int = 0) -> str:
    """The text in a string, part or list of parts; `thinking` chooses reasoning parts, `loose` takes any text."""
    if isinstance(value, str):
        return '' if thinking and not loose else value
    if depth > _DEEPEST:
        return ''
    if isinstance(value, Iterable) and not isinstance(value, Mapping):
        return ''.join(_text_of(item, thinking=thinking, loose=loose, depth=depth + 1) for item in value)
    if not isinstance(value, Mapping):
        return ''
    reasons = value.get('type') in _THINKING_TYPES
    if not loose and reasons is not thinking:
        return ''
    inner = (value.get(key) for key in ('text', 'thinking', 'reasoning', 'content', 'summary', 'value'))
    texts = (_text_of(item, thinking=thinking, loose=loose or reasons, depth=depth + 1) for item in inner)
    return next(filter(None, texts), '')


def plain_choice(choice: Json, repairs: set[str]) -> Json:
    """A choice of a chunk, without a reason or token probabilities that pydantic-ai could not read."""
    odd: Json = {}
    if not isinstance(choice.get('finish_reason'), str | None):
        repairs.add('envelope.defaults')
        odd['finish_reason'] = None
    if choice.get('logprobs') is not None and not _is_logprobs(choice['logprobs']):
        repairs.add('envelope.types')
        odd['logprobs'] = None
    return {**choice, **odd} if odd else choice


def _is_logprobs(value: object) -> bool:
    return isinstance(value, Mapping) and all(
        _each(value.get(key), lambda item: _is_token(item) and _each(item.get('top_logprobs'), _is_token))
        for key in ('content', 'refusal')
    )


def _each(items: object, test: Callable[[Any], bool]) -> bool:
    return items is None or (isinstance(items, list) and all(map(test, items)))


def _is_token(item: object) -> bool:
    if not isinstance(item, Mapping) or not isinstance(item.get('bytes'), list | None):
        return False
    probability = item.get('logprob')
    return isinstance(item.get('token'), str) and isinstance(probability, int | float)


def plain_envelope(body: Json, repairs: set[str]) -> Json:
    """`body` without top-level fields that are of another type than the API reference says; itself where none is."""
    odd: Json = {key: None for key, kind in _TOP_LEVEL.items() if not isinstance(body.get(key), kind | None)}
    created = body.get('created')
    if created is not None and (type(created) is not int or not 0 <= created < _LATEST):
        odd['created'] = _created(created)
    for key in ('id', 'model'):
        if key in odd:
            odd[key] = str(body[key])
    if not odd:
        return body
    repairs.update('envelope.defaults' if key in ('id', 'model', 'created') else 'envelope.types' for key in odd)
    return {**body, **odd}


def is_plain_top(chunk: Json) -> bool:
    """Whether `plain_envelope()` has nothing to do, where that is told fast, and nothing is said of an error."""
    id_, created, model = chunk.get('id'), chunk.get('created'), chunk.get('model')
    if type(id_) is not str or type(created) is not int or type(model) is not str or not 0 <= created < _LATEST:
        return False
    return 'error' not in chunk and 'moderation' not in chunk and isinstance(chunk.get('service_tier'), str | None)


_TOP_LEVEL: Mapping[str, type] = {
    'id': str, 'model': str, 'system_fingerprint': str, 'service_tier': str, 'moderation': dict,
}  # fmt: skip
_LATEST = 10**14
_DEEPEST = 50  # lists and objects in each other


def _created(value: object) -> int | None:
    return int(float(str(value))) if re.fullmatch(r'\d{1,12}(\.\d+)?', str(value)) else None


def choices_of(body: Json, repairs: set[str]) -> list[Json] | None:
    """The choices of `body` that are objects; `None` where it has none."""
    choices = body.get('choices')
    if isinstance(choices, Mapping):
        repairs.add('choices.not_a_list')
        choices = [choices]
    return [choice for choice in choices if isinstance(choice, dict)] if isinstance(choices, list) else None


def no_choices(body: object) -> FailureError:
    """The error that an answer without choices is."""
    return FailureError(f'the answer has no choices: {json.dumps(body)[:200]}', body)


def text_in(value: object) -> str:
    """All text in a value, in parts or not."""
    return _text_of(value, thinking=True, loose=True)


def plain_usage(usage: object, repairs: set[str]) -> Json | None:
    """Token counts as whole numbers, nothing else; `None` where there are none."""
    if not isinstance(usage, Mapping):
        return None
    plain = plain_counts(usage)
    for key, other in (('prompt_tokens', 'input_tokens'), ('completion_tokens', 'output_tokens')):
        if key not in plain and other in plain:
            plain[key] = plain[other]
    if 'total_tokens' not in plain and {'prompt_tokens', 'completion_tokens'} <= plain.keys():
        plain['total_tokens'] = (plain['prompt_tokens'] or 0) + (plain['completion_tokens'] or 0)
    plain = plain_counts(plain, ('prompt_tokens', 'completion_tokens', 'total_tokens'))
    if plain != usage:
        repairs.add('usage')
    return plain


def plain_counts(usage: Mapping[str, Any], needed: Iterable[str] = ()) -> Json:
    """`usage` with its counts as whole numbers; those `needed` are there."""
    plain = {key: _plain_count(key, value) for key, value in usage.items()}
    return {**plain, **{key: plain.get(key) or 0 for key in needed}}


def _plain_count(key: str, value: object) -> Any:
    """A count as a whole number, details as an object; what is neither, such as a price, stays as it is."""
    if key.endswith('_tokens'):
        return _counted(value)
    if key.endswith('_tokens_details'):
        return {k: _plain_count(k, v) for k, v in value.items()} if isinstance(value, Mapping) else None
    return value


def _counted(value: object) -> int | None:
    if type(value) is int and value >= 0:
        return value
    if isinstance(value, str) and re.fullmatch(r'\d{1,18}(\.\d+)?', value):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        return None
    return int(value)


def usage_news(given: Mapping[str, Any], usage: Json, before: Json, repairs: set[str]) -> Json:
    """What the `given` usage, made plain as `usage`, adds to `before`."""
    if before.get('prompt_tokens') and usage['completion_tokens'] and _ZERO & {*map(str, _prompts(given))}:
        return usage  # a running total does not forget the prompt: this one counts what is new
    repairs.add('usage.cumulative')
    return usage_difference(usage, before)


_ZERO = {'0', '0.0'}


def _prompts(usage: Mapping[str, Any]) -> list[Any]:
    return [usage.get('prompt_tokens'), usage.get('input_tokens')]


def usage_difference(usage: Json, before: Json) -> Json:
    """What `usage` counts beyond `before`: pydantic-ai adds up what each chunk reports."""
    news: Json = {}
    for key, value in usage.items():
        old = before.get(key)
        if isinstance(value, dict):
            news[key] = usage_difference(value, old if isinstance(old, dict) else {})
        elif isinstance(value, int) and not isinstance(value, bool):
            # A running total that falls is none: some servers end with zeros.
            news[key] = max(value - old, 0) if isinstance(old, int) else value
        else:
            news[key] = value
    return news


def usage_total(news: Json, before: Json) -> Json:
    """What is counted so far: `before` and `news`."""
    total = dict(before)
    for key, value in news.items():
        old = total.get(key)
        if isinstance(value, dict):
            total[key] = usage_total(value, old if isinstance(old, dict) else {})
        elif isinstance(value, int) and isinstance(old, int) and not isinstance(value, bool):
            total[key] = value + old
        elif value is not None:
            total[key] = value
    return total
