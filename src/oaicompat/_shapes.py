"""Shapes: what a request body uses that some servers refuse. Pure; any body is read, whatever a caller put into it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, Literal

Body = Mapping[str, Any]

SYSTEM = ('system', 'developer')
REASONING = ('reasoning_content', 'reasoning', 'reasoning_text', 'reasoning_details', 'thinking')
"""Fields of an assistant message that hold reasoning."""


def objects(value: object) -> list[Mapping[str, Any]]:
    """The objects in a list."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list | tuple) else []


def messages(body: Body) -> list[Mapping[str, Any]]:
    """The messages of a Chat Completions request, or the items of one of the Responses API."""
    return objects(body.get('messages', body.get('input')))


def role(message: Mapping[str, Any]) -> str:
    """The role of a message; `''` for an item that has none."""
    return str(message.get('role') or '')


def calls(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The tool calls of a message."""
    return objects(message.get('tool_calls'))


def tool_choice(body: Body) -> Literal['named', 'required', 'auto', 'none'] | None:
    """What kind of tool choice was sent."""
    choice = body.get('tool_choice')
    if isinstance(choice, Mapping):
        return 'named'
    if choice in ('required', 'any'):
        return 'required'
    return choice if choice in ('auto', 'none') else None


def output_format(body: Body) -> Mapping[str, Any]:
    """The format that was asked for, by whichever of the two APIs; empty where none was."""
    text = body.get('text')
    form = body.get('response_format') or (text.get('format') if isinstance(text, Mapping) else None)
    return form if isinstance(form, Mapping) else {}


def schemas(body: Body) -> Iterator[Mapping[str, Any]]:
    """The JSON schemas of the tools and of the output."""
    for tool in objects(body.get('tools')):
        function = tool.get('function', tool)
        parameters = function.get('parameters') if isinstance(function, Mapping) else None
        if isinstance(parameters, Mapping):
            yield parameters
    form = output_format(body)
    inner = form.get('json_schema', form)
    schema = inner.get('schema') if isinstance(inner, Mapping) else None
    if isinstance(schema, Mapping):
        yield schema


def is_strict(body: Body) -> bool:
    """Whether strict schemas were asked for."""
    form = output_format(body)
    held = [tool.get('function', tool) for tool in objects(body.get('tools'))] + [form.get('json_schema', form)]
    return any(isinstance(one, Mapping) and one.get('strict') is not None for one in held)


def has_role(body: Body, *roles: str) -> bool:
    """Whether any message has one of the roles."""
    return any(role(message) in roles for message in messages(body))


def late_system(body: Body) -> bool:
    """Whether a system message stands behind another one."""
    roles = [role(message) for message in messages(body)]
    return any(later in SYSTEM and before not in SYSTEM for before, later in pairwise(roles))


def empty_contents(body: Body) -> set[str]:
    """How assistant messages that hold calls alone say that there is no text: `null`, `empty`, `omit`."""
    return {form for message in messages(body) if calls(message) and (form := _emptiness(message)) is not None}


def _emptiness(message: Mapping[str, Any]) -> str | None:
    if 'content' not in message:
        return 'omit'
    content = message['content']
    if content is None:
        return 'null'
    return 'empty' if content in ('', []) else None


def list_roles(body: Body) -> set[str]:
    """The roles of messages whose content is a list of texts alone; `tool` for list results of either API."""
    found = set()
    for message in messages(body):
        if message.get('type') == 'function_call_output':
            if isinstance(message.get('output'), list):
                found.add('tool')
        elif _texts_alone(message.get('content')):
            found.add(role(message))
    return found


def _texts_alone(content: object) -> bool:
    parts = objects(content)
    return bool(parts) and all(part.get('type') in ('text', 'input_text', 'output_text') for part in parts)


def reasoning_fields(body: Body) -> set[str]:
    """The fields that hold reasoning in the history; `reasoning` for items of that type."""
    held = (message for message in messages(body) if role(message) == 'assistant')
    found = {field for message in held for field in REASONING if field in message}
    return found | {'reasoning' for message in messages(body) if message.get('type') == 'reasoning'}


def ends_with_assistant(body: Body) -> bool:
    """Whether the last message is an answer."""
    held = messages(body)
    return bool(held) and role(held[-1]) == 'assistant' and not calls(held[-1])


def repeats_roles(body: Body) -> bool:
    """Whether two user or two assistant messages adjoin, or an assistant message comes first."""
    roles = [role(message) for message in messages(body) if role(message) not in SYSTEM]
    first = bool(roles) and roles[0] == 'assistant'
    return first or any(a == b and a in ('user', 'assistant') for a, b in pairwise(roles))


def user_after_tool(body: Body) -> bool:
    """Whether a user message follows a result."""
    return any(role(a) == 'tool' and role(b) == 'user' for a, b in pairwise(messages(body)))


def unpaired(body: Body) -> bool:
    """Whether a result is not right behind its call, or a call has none."""
    waiting: list[object] = []
    for message in messages(body):
        if role(message) == 'tool':
            if message.get('tool_call_id') not in waiting:
                return True
            waiting.remove(message.get('tool_call_id'))
        elif waiting:
            return True
        waiting += [call.get('id') for call in calls(message)]
    return bool(waiting)


def has_field(body: object, path: Iterable[str]) -> bool:
    """Whether a dotted path leads to anything; lists on the way are gone through."""
    steps = list(path)
    if not steps:
        return True
    if isinstance(body, list | tuple):
        return any(has_field(item, steps) for item in body)
    return isinstance(body, Mapping) and steps[0] in body and has_field(body[steps[0]], steps[1:])
