"""Well-formed JSON values of the OpenAI chat API, with the smallest set of fields that a strict client accepts.

Each function returns a new dict, so that a test may break one field of it and keep the others valid.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

_CREATED = 1_700_000_000  # fixed, so that two runs send the same bytes
_ID = 'chatcmpl-1'
_USAGE = {'prompt_tokens': 1, 'completion_tokens': 1, 'total_tokens': 2}


def completion(
    content: str | None = None,
    *,
    tool_calls: Iterable[Mapping[str, Any]] = (),
    finish_reason: str | None = None,
    usage: Mapping[str, Any] | None = _USAGE,
    model: str = 'm',
    **message_fields: Any,
) -> dict[str, Any]:
    """A `chat.completion`, the whole answer of a request that does not stream.

    Args:
        content: The message's text.
        tool_calls: The message's calls, see `tool_call`.
        finish_reason: By default `tool_calls` if there are any, else `stop`.
        usage: Token counts; None leaves them out.
        model: The model's name.
        **message_fields: More fields of the message, such as `reasoning_content`.
    """
    calls = [dict(call) for call in tool_calls]
    message = {'role': 'assistant', 'content': content, **({'tool_calls': calls} if calls else {}), **message_fields}
    reason = finish_reason or ('tool_calls' if calls else 'stop')
    return {
        'id': _ID,
        'object': 'chat.completion',
        'created': _CREATED,
        'model': model,
        'choices': [{'index': 0, 'message': message, 'finish_reason': reason}],
        **_optional_usage(usage),
    }


def chunk(
    delta: Mapping[str, Any] | str | None = None,
    *,
    finish_reason: str | None = None,
    usage: Mapping[str, Any] | None = None,
    model: str = 'm',
) -> dict[str, Any]:
    """A `chat.completion.chunk`, one event of a stream.

    Args:
        delta: What the message grows by; text is short for `{'content': text}`. None makes a chunk without choices,
            as servers send for the usage at the end.
        finish_reason: Why the answer ends, in its last chunk.
        usage: Token counts; None leaves them out.
        model: The model's name.
    """
    delta = {'content': delta} if isinstance(delta, str) else delta
    if delta is None and finish_reason is not None:
        delta = {}
    choices = [] if delta is None else [{'index': 0, 'delta': dict(delta), 'finish_reason': finish_reason}]
    return {
        'id': _ID,
        'object': 'chat.completion.chunk',
        'created': _CREATED,
        'model': model,
        'choices': choices,
        **_optional_usage(usage),
    }


def tool_call(
    name: str,
    arguments: Mapping[str, Any] | str,
    id: str = 'call_1',  # noqa: A002 - the field's name on the wire
    *,
    index: int | None = None,
) -> dict[str, Any]:
    """A function call, for `completion`, or with an index for the `tool_calls` of a `chunk`.

    Args:
        name: The function's name.
        arguments: A mapping is dumped to JSON; text is sent as it is, so it may be half of the JSON, or none.
        id: The call's id.
        index: The call's place in the message, which only streams have.
    """
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    call = {'id': id, 'type': 'function', 'function': {'name': name, 'arguments': text}}
    return call if index is None else {'index': index, **call}


def _optional_usage(usage: Mapping[str, Any] | None) -> dict[str, Any]:
    return {} if usage is None else {'usage': dict(usage)}
