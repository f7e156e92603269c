"""History: the tool returns in pydantic-ai's messages, made ready for the parent and read for the wire."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelRequest, ToolReturnPart

from oaicompat._patterns import lazy

Return = ToolReturnPart[Any]


def tool_returns(messages: Iterable[ModelMessage]) -> Iterator[Return]:
    """All tool returns, in order."""
    for message in messages:
        if isinstance(message, ModelRequest):
            yield from (part for part in message.parts if isinstance(part, ToolReturnPart))


def makes_tool_message(part: Any) -> bool:
    """Whether the parent maps `part` to one tool message: a tool return, or a legacy retry of a tool's call."""
    return isinstance(part, ToolReturnPart) or (part.part_kind == 'retry-prompt' and part.tool_name is not None)


def taken(parts: list[Any], tool_call_id: str) -> Any:
    """The first of `parts` with that id, taken out; `None` for a message that none of them made."""
    for index, part in enumerate(parts):
        if part.tool_call_id == tool_call_id:
            return parts.pop(index)
    return None


def result_texts(part: Any) -> list[str] | None:
    """The texts that a list return consists of; `None` where the parent's message stands."""
    if not isinstance(part, ToolReturnPart):
        return None
    from oaicompat._toolreturns import element_texts

    return element_texts(part)


def settled(messages: list[ModelMessage], profile: Mapping[str, Any]) -> list[ModelMessage]:
    """`messages` with each tool return as `settled_part()` gives it; the list itself where nothing changed."""
    files_in_lists = profile.get('compat_tool_return') != 'string'

    def of(message: ModelMessage) -> ModelMessage:
        if not isinstance(message, ModelRequest):
            return message
        parts = [
            settled_part(part, files_in_lists=files_in_lists) if isinstance(part, ToolReturnPart) else part
            for part in message.parts
        ]
        return message if _same(parts, message.parts) else replace(message, parts=parts)

    changed = [of(message) for message in messages]
    return messages if _same(changed, messages) else changed


async def settled_profile(
    profile: Mapping[str, Any], messages: list[ModelMessage], ask: Callable[[], Awaitable[str]]
) -> Mapping[str, Any]:
    """`profile` for one request, with `compat_tool_return` decided; `ask` says what `auto` means."""
    if profile.get('compat_tool_return', 'auto') != 'auto':
        return profile
    returns = tool_returns(messages)
    if (first := next(returns, None)) is None:
        return profile
    from oaicompat._toolreturns import is_list_return

    if not any(map(is_list_return, chain([first], returns))):
        return profile
    return {**profile, 'compat_tool_return': await ask()}


def settled_part(part: Return, *, files_in_lists: bool) -> Return:
    """`part` with content that can be read again, and where asked, files in a list, where the parent finds them.

    What can be read only once is settled in place: the history that the caller keeps must replay it. A tuple or the
    like that holds files becomes a list in a copy.
    """
    from oaicompat._toolreturns import listed, settle_part

    settle_part(part)
    if not files_in_lists or isinstance(part.content, str | dict | list):
        return part
    as_list = listed(part)
    return as_list if as_list.files else part


def with_short_ids(messages: list[ModelMessage], profile: Mapping[str, Any]) -> list[ModelMessage]:
    """`messages` with ids of tool calls in the form that `profile` asks for; the list itself where nothing changed.

    A call and its result keep one id, in every request: it depends on nothing but the id that was there.
    """
    if profile.get('compat_tool_call_ids', 'asis') == 'asis':
        return messages

    def of(message: Any) -> ModelMessage:
        parts = [
            replace(part, tool_call_id=alnum9(part.tool_call_id))
            if part.part_kind in _CALLS and part.tool_call_id != alnum9(part.tool_call_id)
            else part
            for part in message.parts
        ]
        changed: ModelMessage = message if _same(parts, message.parts) else replace(message, parts=parts)
        return changed

    changed = [of(message) for message in messages]
    return messages if _same(changed, messages) else changed


def alnum9(id_: str) -> str:
    """`id_` if it is nine letters or digits, else nine that stand for it: all that Mistral takes."""
    if _ALNUM9.fullmatch(id_):
        return id_
    number, digits = int.from_bytes(hashlib.sha256(id_.encode('utf-8', 'replace')).digest()), ''
    while len(digits) < _LENGTH:
        number, digit = divmod(number, len(_DIGITS))
        digits += _DIGITS[digit]
    return digits


_CALLS = ('tool-call', 'tool-return', 'retry-prompt')
_LENGTH = 9
_ALNUM9 = lazy(r'[a-zA-Z0-9]{9}')
_DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'


def _same(new: Iterable[Any], old: Iterable[Any]) -> bool:
    return all(a is b for a, b in zip(new, old, strict=True))
