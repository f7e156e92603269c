"""Strict reading: the first place where an answer departs from the API reference.

The reference is the SDK's own types, which are made from OpenAI's specification
(https://github.com/openai/openai-openapi). Fields that they don't have are no deviation, nor are events of a type that
they don't know: both may be newer than the SDK.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Set
from functools import cache
from typing import Any, get_args

from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import BaseModel, ValidationError

from oaicompat.repairs import REPAIRS

Check = Callable[[Mapping[str, Any]], str | None]
"""Says where one JSON object departs from the reference; `None` where it does not."""

_SHOWN = 80
_LONGEST = 500


def chunk_fault(value: Mapping[str, Any]) -> str | None:
    """Where one chunk of a Chat Completions stream departs from the reference."""
    return _fault(ChatCompletionChunk, value)


def completion_fault(value: Mapping[str, Any]) -> str | None:
    """Where a whole completion departs from the reference."""
    return _fault(ChatCompletion, value)


def response_fault(value: Mapping[str, Any]) -> str | None:
    """Where a whole response of the Responses API departs from the reference."""
    return _fault(Response, value)


def event_fault(value: Mapping[str, Any]) -> str | None:
    """Where one event of the Responses API departs from the reference."""
    kind = value.get('type')
    if not isinstance(kind, str):
        return '`type` is missing; expected the type of the event'
    known = _events().get(kind)
    return None if known is None else _fault(known, value)


def repaired_fault(repairs: Set[str]) -> str | None:
    """What would have been repaired; `None` where nothing would."""
    known = {repair.name: repair.kind for repair in REPAIRS if repair.name not in _THE_MODELS}
    return '; '.join(f'{name}: {_lowered(known[name])}' for name in sorted(known.keys() & repairs)) or None


# What the model wrote is no fault of the server that passes it on.
_THE_MODELS = frozenset({'tool_call.unreadable', 'tool_call.nested_arguments'})


@cache
def _events() -> Mapping[str, type[BaseModel]]:
    [union, *_] = get_args(ResponseStreamEvent)
    return {kind: event for event in get_args(union) for kind in get_args(event.model_fields['type'].annotation)}


def _fault(reference: type[BaseModel], value: Mapping[str, Any]) -> str | None:
    try:
        # As JSON: what is an object or a list there is none but that.
        reference.model_validate_json(json.dumps(value), strict=True)
    except ValidationError as error:
        [first, *_] = error.errors(include_url=False)
        place = _path(first['loc'])
        if first['type'] == 'missing':
            return f'{place} is missing'
        return f'{place} is {_shown(first["input"])}; {_lowered(first["msg"])}'[:_LONGEST]
    return None


def _path(steps: tuple[int | str, ...]) -> str:
    # Names of types say which kind of a union was tried; they are in no answer.
    named = [f'[{step}]' if isinstance(step, int) else f'.{step}' for step in steps if not str(step)[:1].isupper()]
    return f'`{"".join(named).lstrip(".")}`' if named else 'the answer'


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN else f'{text[:_SHOWN]}...'


def _lowered(message: str) -> str:
    return message[:1].lower() + message[1:]
