"""Tools by prompt, for servers that take none: described in the system message, calls and results told as text.

`prompted()` takes `tools` and what belongs to them out of a body of `/chat/completions`. The functions go into the
system message, with how to call them; calls of the history go behind what the assistant said, in that form; results
become user messages. `_formats.py` knows the form for a model. The answer's calls are read back from its text
elsewhere.

What has no place in a prompt, such as a web search of the server, or a choice or a message that can't be understood,
leaves the whole body as it is, so that nothing is lost silently and the server's refusal comes out. What is dropped:
`strict`, which promises what nobody keeps here, and the ids of calls, since results stand in the order of the calls,
or say which call they are of. Neighbours that then have one role stay two messages: `compat_roles` knows about those.
A body of `/responses` is left alone. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from oaicompat._formats import Call, Format, Function, UnwritableError, form_of, text_of
from oaicompat._messages import instructed

Body = Mapping[str, Any]

FIELDS = ('tools', 'tool_choice', 'parallel_tool_calls', 'functions', 'function_call')
"""What a server without tools does not take."""

_RESULTS = ('tool', 'function')  # the latter is of the days of `functions`


def prompted(body: Body, profile: Mapping[str, Any]) -> Body:
    """`body` without tools and with a prompt that says the same; the same object where there is nothing to do.

    Args:
        body: The body of `POST /chat/completions`; one of `/responses` is given back.
        profile: A profile; it does nothing unless `compat_tools` is `'prompted'` there.
    """
    messages = body.get('messages')
    if profile.get('compat_tools') != 'prompted' or not isinstance(messages, list):
        return body
    form = form_of(body.get('model'))
    try:
        told = _replayed(messages, form)
        description = _description(body, form)
    except UnwritableError:
        return body
    if told is messages and not any(field in body for field in FIELDS):
        return body
    rest = {key: value for key, value in body.items() if key not in FIELDS}
    return {**rest, 'messages': instructed(told, description) if description else told}


# What there is to call


def _description(body: Body, form: Format) -> str | None:
    """What the model is told about its tools; `None` where it shall call none."""
    functions, forced = _chosen(body, [*_functions(body)])
    if not functions:
        return None
    sample = form.calls([Call('function_name', '{"argument_name": "value"}', {'argument_name': 'value'})])
    rules = _rules(functions, forced, body.get('parallel_tool_calls') is False, form)
    return _TOLD.format(tools=form.tools(functions), sample=sample, rules='\n'.join(f'- {rule}' for rule in rules))


_TOLD = """\
# Tools

You can call functions, which are run for you. Each is described here, with a JSON schema of its arguments:

{tools}

A call is written like this, with the name of the function and its arguments:

{sample}

{rules}"""


def _rules(functions: Sequence[Function], forced: bool, single: bool, form: Format) -> Iterator[str]:
    if not forced:
        yield 'Call a function where it helps; else answer as usual, without a call.'
    elif len(functions) == 1:
        yield f'Your next answer must call `{functions[0]["name"]}`.'
    else:
        yield 'Your next answer must call one of these functions.'
    if single:
        yield 'Make no more than one call in an answer.'
    else:
        yield 'An answer may make several calls, one after the other.'
    if form.alone:
        yield 'An answer with calls has nothing else in it: no text, no code fence.'
    else:
        yield 'Calls come last in an answer: write nothing behind them.'
    yield 'Never make up a result: after your calls, the next message brings the results, in the order of the calls.'


def _functions(body: Body) -> Iterator[Function]:
    for tool in _listed(body.get('tools')):
        kind = tool.get('type', 'function') if isinstance(tool, Mapping) else None
        if kind != 'function':
            raise UnwritableError(f'a tool of type {kind!r}')
        yield _function(tool.get('function'))
    for function in _listed(body.get('functions')):
        yield _function(function)


def _listed(value: Any) -> Iterable[Any]:
    if value is None:
        return ()
    if not isinstance(value, list | tuple):
        raise UnwritableError('tools that are no list')
    return value


def _function(value: Any) -> Function:
    if not isinstance(value, Mapping):
        raise UnwritableError('a function that is no object')
    _name_of(value)
    return {key: item for key, item in value.items() if key != 'strict'}


def _name_of(value: Any) -> str:
    name = value.get('name') if isinstance(value, Mapping) else None
    if not isinstance(name, str) or not name:
        raise UnwritableError('no name')
    return name


def _chosen(body: Body, functions: list[Function]) -> tuple[list[Function], bool]:
    """Which of the functions may be called, and whether one must be."""
    choice = next((body[key] for key in ('tool_choice', 'function_call') if body.get(key) is not None), 'auto')
    if choice == 'none':
        return [], False
    if choice == 'auto':
        return functions, False
    if not functions:
        raise UnwritableError('a call is asked for, of nothing')
    if choice in ('required', 'any'):
        return functions, True
    names, forced = _named(choice)
    # As where a server takes no names: one that is not there leaves them all.
    return [function for function in functions if function['name'] in names] or functions, forced


def _named(choice: Any) -> tuple[list[str], bool]:
    """The names in a choice of certain functions, and whether one of them must be called."""
    if not isinstance(choice, Mapping):
        raise UnwritableError('a choice of another kind')
    kind = choice.get('type', 'function')
    if kind == 'function':
        return [_name_of(choice.get('function', choice))], True
    allowed = choice.get('allowed_tools')
    mode = allowed.get('mode') if isinstance(allowed, Mapping) else None
    if kind != 'allowed_tools' or not isinstance(allowed, Mapping) or mode not in ('auto', 'required'):
        raise UnwritableError(f'a choice of type {kind!r}')
    tools = [tool for tool in _listed(allowed.get('tools')) if isinstance(tool, Mapping)]
    return [_name_of(tool.get('function', tool)) for tool in tools], mode == 'required'


# What was called


def _replayed(messages: list[Any], form: Format) -> list[Any]:
    """The messages with calls and results as text; the list itself where there are none."""
    told: list[Any] = []
    calls: list[_Made] = []  # of the message before
    made: dict[str, str] = {}  # by the id of an earlier call, what its result is headed
    for are_results, group in groupby(messages, lambda message: _role(message) in _RESULTS):
        if are_results:
            told.append(_answered([*group], calls, made, form))
            continue
        for message in group:
            calls = [*_made(message)] if _role(message) == 'assistant' else []
            made.update({call_id: f'{call.name} (call {at})' for at, (call_id, call) in enumerate(calls, 1) if call_id})
            told.append(_spoken(message, [call for _, call in calls], form) if calls else message)
    changed = len(told) != len(messages) or any(new is not old for new, old in zip(told, messages, strict=True))
    return told if changed else messages


def _role(message: Any) -> Any:
    return message.get('role') if isinstance(message, Mapping) else None


_Made = tuple[str | None, Call]
"""The id of a call, and the call."""


def _made(message: Mapping[str, Any]) -> Iterator[_Made]:
    for call in _listed(message.get('tool_calls')):
        if not isinstance(call, Mapping) or call.get('type', 'function') != 'function':
            raise UnwritableError('a call of another kind')
        yield _id(call.get('id')), _call(call.get('function'))
    if message.get('function_call') is not None:
        yield None, _call(message['function_call'])


def _id(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _call(function: Any) -> Call:
    name = _name_of(function)
    arguments = function.get('arguments')
    if not isinstance(arguments, str):
        arguments = text_of({} if arguments is None else arguments)
    arguments = arguments.strip() or '{}'
    try:
        values = json.loads(arguments)
    except (ValueError, RecursionError):
        values = None
    return Call(name, arguments, values if isinstance(values, dict) else None)


def _spoken(message: Mapping[str, Any], calls: Sequence[Call], form: Format) -> dict[str, Any]:
    """An assistant message with its calls behind its text."""
    text, content = form.calls(calls), message.get('content')
    if isinstance(content, list) and content:
        content = [*content, {'type': 'text', 'text': text}]
    elif isinstance(content, str) or not content:
        content = f'{content}\n{text}' if content else text
    else:
        raise UnwritableError('content of another kind')
    rest = {key: value for key, value in message.items() if key not in ('tool_calls', 'function_call')}
    return {**rest, 'content': content}


def _answered(
    results: Sequence[Mapping[str, Any]], calls: Sequence[_Made], made: Mapping[str, str], form: Format
) -> dict[str, Any]:
    """Results that follow each other, as one user message."""
    ids = [_id(result.get('tool_call_id')) for result in results]
    in_order = len(calls) >= len(ids) and ids == [call_id for call_id, _ in calls[: len(ids)]]
    parts: list[Any] = []
    for at, (result, call_id) in enumerate(zip(results, ids, strict=True)):
        named = _id(result.get('name'))
        known = calls[at][1].name if in_order else made.get(call_id or '')
        head = (named or known if in_order else known or named) or call_id or 'unknown'
        parts += [f'<{form.result}>', f'{head}:', *_parts(result.get('content')), f'</{form.result}>']
    return {'role': 'user', 'content': _joined(parts)}


def _parts(content: Any) -> Iterator[Any]:
    """What is in a result: texts as strings, any other part as it is."""
    if content is None or isinstance(content, str):
        yield from [content] if content else []
        return
    if not isinstance(content, list):
        raise UnwritableError('a result of another kind')
    for part in content:
        if not isinstance(part, str | Mapping):
            raise UnwritableError('a part of another kind')
        text = part.get('text') if isinstance(part, Mapping) and part.get('type') == 'text' else None
        yield text if isinstance(text, str) else part


def _joined(parts: Sequence[Any]) -> Any:
    """Texts as one text; where there is anything else, a list of parts."""
    merged: list[Any] = []
    for is_text, group in groupby(parts, lambda part: isinstance(part, str)):
        run = [*group]
        merged += [{'type': 'text', 'text': '\n'.join(run)}] if is_text else run
    return merged[0]['text'] if len(merged) == 1 else merged
