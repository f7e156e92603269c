"""Messages of a chat request, in another shape that says the same: roles, order, content, reasoning.

Each function takes the list of messages and gives a list: the one that went in where nothing changes, else a new one
that shares what did not change. Nothing is ever written to. What can't be said in the other shape stays as it is, so
that the server's own refusal comes out; a message may be anything, since callers can send what they like. Pure.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

Messages = list[Any]

OPENING = '...'
"""What a user says in front of an assistant that speaks first, for templates that let the user begin."""
DONE = 'Done.'
"""What an assistant says between a tool's result and a user."""
CONTINUE = 'Continue.'
"""What a user says behind an assistant that spoke last."""
NO_RESULT = 'No result.'
"""The result of a call that has none."""

DETAILS = 'reasoning_details'
REASONING = ('reasoning_content', 'reasoning', 'reasoning_text', 'thinking', DETAILS)
"""Fields of an assistant message that hold reasoning; where several do, the first of them is read."""

_SYSTEM = ('system', 'developer')
_SPOKEN = (*_SYSTEM, 'user', 'assistant')
_THOUGHTS = ('thinking', 'redacted_thinking', 'reasoning')
_BLANK_LINE = '\n\n'


# What is in a message


def _role(message: Any) -> Any:
    return message.get('role') if isinstance(message, dict) else None


def _is_system(message: Any) -> bool:
    return _role(message) in _SYSTEM


def _calls(message: dict[str, Any]) -> bool:
    return bool(message.get('tool_calls') or message.get('function_call'))


def _content_is_known(message: dict[str, Any]) -> bool:
    content = message.get('content')
    return content is None or isinstance(content, str | list)


def _text(content: Any, between: str = _BLANK_LINE) -> str | None:
    """`content` as one string; `None` where it holds anything but text."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return None
    texts = [part.get('text') if isinstance(part, dict) and part.get('type') == 'text' else None for part in content]
    known = [text for text in texts if isinstance(text, str)]
    return between.join(filter(None, known)) if len(known) == len(texts) else None


def _joined(first: Any, second: Any) -> Any:
    """Two contents as one: strings with a blank line between, else a list of parts."""
    if not first or not second:
        return first or second or (second if first is None else first)
    if isinstance(first, str) and isinstance(second, str):
        return f'{first}{_BLANK_LINE}{second}'
    return [*_parts(first), *_parts(second)]


def _parts(content: Any) -> list[Any]:
    return [{'type': 'text', 'text': content}] if isinstance(content, str) else content


def _plain(content: Any) -> Any:
    text = _text(content)
    return content if text is None else text


def _same(old: Messages, new: Messages) -> Messages:
    return old if len(old) == len(new) and all(map(operator.is_, old, new)) else new


def _each(messages: Messages, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Messages:
    return _same(messages, [change(message) if isinstance(message, dict) else message for message in messages])


def _leading(messages: Messages) -> int:
    """How many system messages stand in front."""
    return next((at for at, message in enumerate(messages) if not _is_system(message)), len(messages))


# System messages


def instructed(messages: Messages, text: str) -> Messages:
    """`text` behind what the first message says if it is a system message, else in a new one."""
    first = messages[0] if messages else None
    if isinstance(first, dict) and _is_system(first) and _content_is_known(first):
        return [{**first, 'content': _joined(first.get('content'), text)}, *messages[1:]]
    return [{'role': 'system', 'content': text}, *messages]


def lifted(messages: Messages) -> Messages:
    """Late system messages in the last leading one; the first of them leads where there is none.

    Templates that raise on late ones (https://github.com/ggml-org/llama.cpp/issues/27367) mostly raise on a second
    leading one, too.
    """
    count = _leading(messages)
    late = [message for message in messages[count:] if _is_system(message) and _content_is_known(message)]
    if not late:
        return messages
    moved = set(map(id, late))
    rest = [message for message in messages[count:] if id(message) not in moved]
    at = count - 1 if count and _content_is_known(messages[count - 1]) else count
    lead = messages[at] if at < count else late.pop(0)
    for message in late:
        lead = {**lead, 'content': _joined(lead.get('content'), _plain(message.get('content')))}
    return [*messages[:at], lead, *rest]


def late_as_user(messages: Messages) -> Messages:
    """Late system messages as user messages, where they stand."""
    count = _leading(messages)
    late = [{**message, 'role': 'user'} if _is_system(message) else message for message in messages[count:]]
    return _same(messages, [*messages[:count], *late])


def folded(messages: Messages) -> Messages:
    """No system messages: each goes in front of what the next user message says, else becomes one."""
    result: Messages = []  # from the last to the first
    user: int | None = None
    for message in reversed(messages):
        if not _is_system(message):
            result.append(message)
        elif user is not None and _content_is_known(message) and _content_is_known(result[user]):
            said = result[user]
            result[user] = {**said, 'content': _joined(_plain(message.get('content')), said.get('content'))}
            continue
        else:
            result.append({**message, 'role': 'user'})
        if _role(result[-1]) == 'user':
            user = len(result) - 1
    return _same(messages, result[::-1])


# Whose turn it is


def alternating(messages: Messages) -> Messages:
    """Neighbours of one role as one message; a user in front of an assistant that speaks first.

    The templates of Mistral, Gemma and Llama 2 want user and assistant to take turns, and the user to begin:
    https://github.com/withcatai/node-llama-cpp/issues/263. A history that was cut may begin with an assistant.
    """
    result: Messages = []
    for message in messages:
        both = _merged(result[-1], message) if result else None
        if both is None:
            result.append(message)
        else:
            result[-1] = both
    count = _leading(result)
    if count < len(result) and _role(result[count]) == 'assistant':
        result.insert(count, {'role': 'user', 'content': OPENING})
    return _same(messages, result)


def _merged(first: Any, second: Any) -> dict[str, Any] | None:
    """Two messages as one; `None` where they are not of one role, or that would lose anything."""
    # Calls must stay last in their message: what a model says behind them it says without their results.
    if _role(first) not in ('user', 'assistant') or _role(first) != _role(second) or _calls(first):
        return None
    if not _content_is_known(first) or not _content_is_known(second):
        return None
    merged = {**first, **second}
    for key in merged.keys() - {'role', 'content'}:
        both = _both(key, first.get(key), second.get(key))
        if both is _CLASH:
            return None
        merged[key] = both
    if 'content' in merged:
        merged['content'] = _joined(first.get('content'), second.get('content'))
    return merged


_CLASH = object()


def _both(key: str, first: Any, second: Any) -> Any:
    """A field of two messages that become one, or `_CLASH`."""
    if first == second:
        return second
    if key == 'name':  # two speakers, or one who is named and one who is not
        return _CLASH
    if first is None or second is None:
        return second if first is None else first
    if isinstance(first, list) and isinstance(second, list):
        return first + second
    if isinstance(first, str) and isinstance(second, str) and key in (*REASONING, 'refusal'):
        # A blank one only stands in for reasoning that is missing.
        return _joined(first, second) if first.strip() and second.strip() else max(first, second, key=str.strip)
    return _CLASH


def spoken_after_tool(messages: Messages) -> Messages:
    """An assistant between a tool's result and a user.

    Mistral refuses `user` after `tool`: https://github.com/NousResearch/hermes-agent/issues/20154.
    """
    result: Messages = []
    for message in messages:
        if result and _role(result[-1]) == 'tool' and _role(message) == 'user':
            result.append({'role': 'assistant', 'content': DONE})
        result.append(message)
    return _same(messages, result)


def user_last(messages: Messages) -> Messages:
    """A user behind an assistant that spoke last and called nothing.

    Perplexity, and Claude behind gateways: https://github.com/karakeep-app/karakeep/issues/262,
    https://github.com/aj47/SpeakMCP/pull/1037.
    """
    if not messages or _role(messages[-1]) != 'assistant' or _calls(messages[-1]):
        return messages
    return [*messages, {'role': 'user', 'content': CONTINUE}]


# Calls and results


def paired(messages: Messages) -> Messages:
    """Each result right behind the message that called, in the order of its calls.

    DeepSeek wants it so: https://github.com/gptme/gptme/issues/3421. A result belongs to the nearest call before it
    with its id, since some servers count their ids anew in each turn; without such a call it is retold as a user
    message. A call without any result gets one that says so. Calls and results without an id stay where they are.
    """
    nearest: dict[str, int] = {}
    results: dict[tuple[int, str], Messages] = {}
    told: dict[int, Messages] = {}  # what stands at the place of a result instead
    for at, message in enumerate(messages):
        nearest.update(dict.fromkeys(_call_ids(message), at))
        call = message.get('tool_call_id') if _role(message) == 'tool' else None
        if not isinstance(call, str) or not call:
            continue
        if call in nearest:
            results.setdefault((nearest[call], call), []).append(message)
            told[at] = []
        else:
            told[at] = [_retold(message)]
    ordered: Messages = []
    for at, message in enumerate(messages):
        ordered += told.get(at, [message])
        calls = _call_ids(message)
        for place, call in enumerate(calls):
            mine = results.get((at, call), [])
            count = 1 if call in calls[place + 1 :] else len(mine)
            ordered += mine[:count] or [{'role': 'tool', 'tool_call_id': call, 'content': NO_RESULT}]
            del mine[:count]
    return _same(messages, ordered)


def _call_ids(message: Any) -> list[str]:
    calls = message.get('tool_calls') if _role(message) == 'assistant' else None
    ids = [call.get('id') for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    return [call for call in ids if isinstance(call, str) and call]


def _retold(message: dict[str, Any]) -> dict[str, Any]:
    """A result as a user message."""
    content = message.get('content')
    head = f'Result of the tool {message.get("name") or message.get("tool_call_id")}:'
    text = _text('' if content is None else content, '\n')
    if text is not None:
        return {'role': 'user', 'content': f'{head} {text}'}
    if isinstance(content, list):
        return {'role': 'user', 'content': [*_parts(head), *content]}
    return message


# Content


def stringed(messages: Messages) -> Messages:
    """Content that is a list of text parts as one string; a list with anything else stays."""

    def change(message: dict[str, Any]) -> dict[str, Any]:
        is_tool = message.get('role') == 'tool'
        if not isinstance(message.get('content'), list) or not (is_tool or message.get('role') in _SPOKEN):
            return message
        text = _text(message['content'], '\n' if is_tool else _BLANK_LINE)
        return message if text is None else {**message, 'content': text}

    return _each(messages, change)


def contentless(**content: Any) -> Callable[[Messages], Messages]:
    """A function that gives assistant messages with calls and no text that `content`, or none at all."""

    def change(message: dict[str, Any]) -> dict[str, Any]:
        own = message.get('content')
        if message.get('role') != 'assistant' or not _calls(message) or own not in (None, '', []):
            return message
        held = {'content': own} if 'content' in message else {}
        return message if held == content else {**_without(message, 'content'), **content}

    return lambda messages: _each(messages, change)


def _without(message: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in message.items() if key not in keys}


# Reasoning


def unreasoned(messages: Messages) -> Messages:
    """Assistant messages without reasoning, be it in fields or in parts; tags in the text stay."""
    return _each(messages, _unreasoned)


def _unreasoned(message: dict[str, Any]) -> dict[str, Any]:
    if message.get('role') != 'assistant':
        return message
    content = message.get('content')
    if isinstance(content, list):
        parts = [part for part in content if not isinstance(part, dict) or part.get('type') not in _THOUGHTS]
        if len(parts) < len(content):
            # A list without parts is refused by most.
            message = {**message, 'content': parts or (None if _calls(message) else '')}
    return _without(message, *REASONING) if any(key in message for key in REASONING) else message


def reasoned(messages: Messages, field: str) -> Messages:
    """Assistant messages with their reasoning in `field`; a blank one beside calls that came without any.

    Kimi wants it beside calls, and takes an empty one for a missing one:
    https://github.com/anomalyco/opencode/issues/10996.
    """
    return _each(messages, lambda message: _reasoned(message, field))


def _reasoned(message: dict[str, Any], field: str) -> dict[str, Any]:
    if message.get('role') != 'assistant':
        return message
    own = message.get(field)
    texts = {key: _BLANK_LINE.join(_thoughts(message[key])) for key in (field, *REASONING) if key in message}
    text = next(filter(None, texts.values()), ' ' if _calls(message) else '')
    told = [key for key, said in texts.items() if key != field and (said or not message[key])]
    # What has no text, such as encrypted details, is for the server to read.
    stays = own and (not texts[field] or isinstance(own, list if field == DETAILS else str))
    new = own if stays or not text else [{'type': 'reasoning.text', 'text': text}] if field == DETAILS else text
    if new is own:
        return _without(message, *told) if told else message
    return {**_without(message, *told), field: new}


def _thoughts(value: Any) -> Iterator[str]:
    """The texts in a field that holds reasoning: a string, an object, or a list of either."""
    for item in value if isinstance(value, list) else [value]:
        texts = [item.get(key) for key in ('text', 'summary', 'content')] if isinstance(item, dict) else [item]
        yield from [text for text in texts if isinstance(text, str) and text][:1]
