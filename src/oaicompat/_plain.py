"""Whole answers that are what the API reference says, and say no more than text: told fast, for most are. Pure."""

from __future__ import annotations

from oaicompat._context import Context
from oaicompat._envelope import Json, is_plain_top
from oaicompat._halves import has_half

_BODY = frozenset(
    ('id', 'object', 'created', 'model', 'choices', 'usage', 'service_tier', 'system_fingerprint')
)  # fmt: skip
_CHOICE = frozenset(('index', 'message', 'logprobs', 'finish_reason'))
_MESSAGE = frozenset(('role', 'content', 'refusal', 'annotations'))
_REASONS = frozenset(('stop', 'length', 'content_filter'))
_COUNTS = ('prompt_tokens', 'completion_tokens', 'total_tokens')


def is_plain(body: Json, context: Context) -> bool:
    """Whether there is nothing to repair in a completion, where that is told fast."""
    choices, fingerprint = body.get('choices'), body.get('system_fingerprint')
    if not body.keys() <= _BODY or type(choices) is not list or len(choices) != 1 or context.offer.mode != 'off':
        return False
    if not is_plain_top(body) or not isinstance(fingerprint, str | None) or not _is_counted(body.get('usage')):
        return False
    return body.get('object') == 'chat.completion' and _is_plain_choice(choices[0], context)


def _is_plain_choice(choice: object, context: Context) -> bool:
    if type(choice) is not dict or not choice.keys() <= _CHOICE or type(choice.get('index')) is not int:
        return False
    reason = choice.get('finish_reason')
    if type(reason) is not str or reason not in _REASONS or not isinstance(choice.get('logprobs'), dict | None):
        return False
    return _is_plain_message(choice.get('message'), context)


def _is_plain_message(message: object, context: Context) -> bool:
    if type(message) is not dict or not message.keys() <= _MESSAGE or message.get('role') != 'assistant':
        return False
    if message.get('refusal') is not None or not isinstance(message.get('annotations'), list | None):
        return False
    text = message.get('content')
    if type(text) is not str or not text.strip() or has_half(text):
        return False
    return not any(opening in text or closing in text for opening, closing in context.all_tags)


def _is_counted(usage: object) -> bool:
    if type(usage) is not dict or not all(type(usage.get(key)) is int for key in _COUNTS):
        return False
    return all(_is_told(key, value) for key, value in usage.items())


def _is_told(key: str, value: object) -> bool:
    if key.endswith('_tokens_details'):
        return type(value) is dict and all(map(_is_count, value, value.values()))
    return _is_count(key, value)


def _is_count(key: str, value: object) -> bool:
    return key.endswith('_tokens') and type(value) is int and value >= 0
