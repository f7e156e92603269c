"""The body of a request, in another shape that asks the same, as the profile says.

`adapted()` runs the functions of one ordered table, one for each knob that is set; each gives the body that went in
where nothing changes, else a new one that shares what did not change. It never writes to what it was given. Bodies of
`/chat/completions` (`messages`) and of `/responses` (`input`) are told apart by `messages`; knobs about messages hold
for the former. What can't be said in the other shape stays as it is: the server's refusal then comes out. A caller can
put anything into a body, so nothing is taken for granted. Pure; `_messages` holds what is done to messages.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from oaicompat import _messages
from oaicompat._knobs import is_set

Body = Mapping[str, Any]
Profile = Mapping[str, Any]
Adapter = Callable[[Body, Profile], Body]


def adapted(body: Body, profile: Profile, fired: set[str] | None = None) -> Body:
    """`body` in the shape that `profile` asks for; the same object where nothing changes.

    Neither `body` nor anything in it is written to; what did not change is shared. Adapting twice is adapting once.

    Args:
        body: The JSON body of `POST /chat/completions` (https://platform.openai.com/docs/api-reference/chat/create)
            or of `POST /responses` (https://platform.openai.com/docs/api-reference/responses/create).
        profile: A checked profile with `compat_*` keys; other keys are ignored.
        fired: The names of the adaptations that changed anything are added to it.

    Raises:
        ValueError: If a schema can't be rewritten: a reference names nothing, or it is too large or too deep.
    """
    for knob, name, adapt in ADAPTERS:
        if is_set(profile.get(knob)):
            before, body = body, adapt(body, profile)
            if fired is not None and body is not before:
                fired.add(name)
    return body


def _without(fields: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name != key}


# Which tool


def unnamed_choice(body: Body, _: Profile) -> Body:
    """A choice of certain tools becomes `required`, or the mode it came with, and only those tools stay.

    LM Studio takes strings only: https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/670. Tools stay where none
    of them is one of the chosen.
    """
    chosen = _chosen(body.get('tool_choice'))
    if chosen is None:
        return body
    mode, labels = chosen
    tools = body.get('tools')
    kept = [tool for tool in tools if _label(tool) in labels] if isinstance(tools, list) else []
    return {**body, 'tool_choice': mode, **({'tools': kept} if kept else {})}


def unforced_choice(body: Body, profile: Profile) -> Body:
    """`required` becomes `auto`, also where certain tools were chosen; only those stay."""
    body = unnamed_choice(body, profile)
    return {**body, 'tool_choice': 'auto'} if body.get('tool_choice') in ('required', 'any') else body


def _chosen(choice: Any) -> tuple[str, list[Any]] | None:
    """The mode and the labels of the tools that a choice names; `None` where it names none."""
    if not isinstance(choice, dict):
        return None
    if choice.get('type') == 'allowed_tools':
        nested = choice.get('allowed_tools')  # on /chat/completions
        allowed = nested if isinstance(nested, dict) else choice
        mode, tools = allowed.get('mode'), allowed.get('tools')
        if mode not in ('auto', 'required') or not isinstance(tools, list):
            return None
        return mode, [label for label in map(_label, tools) if label]
    label = _label(choice)
    named = label is not None and label[0] in ('function', 'custom') and isinstance(label[1], str)
    return ('required', [label]) if named else None


def _label(tool: Any) -> tuple[Any, ...] | None:
    """What tells a tool from others, in `tools` and in choices alike: its type and name, or whose server it is on."""
    kind = tool.get('type') if isinstance(tool, dict) else None
    if not isinstance(kind, str):
        return None
    nested = tool.get(kind)  # on /chat/completions
    return kind, (nested if isinstance(nested, dict) else tool).get('name'), tool.get('server_label')


# Tools by prompt


def by_prompt(body: Body, profile: Profile) -> Body:
    """Tools in the prompt, and with them the format: a server that holds an answer to it leaves no place for a call."""
    from oaicompat._prompted import prompted

    new = prompted(body, profile)
    offered = body.get('tools') or body.get('functions')
    if new is body or not offered or 'none' in (body.get('tool_choice'), body.get('function_call')):
        return new
    return no_json_object(no_json_schema(new, _NO_FORMATS), _NO_FORMATS)


_NO_FORMATS = {'compat_json_object': False, 'compat_json_schema': False}


# Which format

_ONE_OBJECT = 'Answer with one JSON object (application/json) and nothing else.'
_FITTING = 'Answer with JSON (application/json) and nothing else. It must fit this JSON schema'


def no_json_object(body: Body, profile: Profile) -> Body:
    """`json_object` becomes a schema that any object fits; without schemas, the prompt asks for an object.

    LM Studio: https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/189.
    """
    if _format(body).get('type') != 'json_object':
        return body
    if profile.get('compat_json_schema') is False:
        prompted = _prompted(body, _ONE_OBJECT)
        return body if prompted is None else _with_format(prompted, None)
    schema = {'name': 'json_object', 'schema': {'type': 'object'}, 'strict': False}
    nested = {'json_schema': schema} if 'messages' in body else schema
    return _with_format(body, {'type': 'json_schema', **nested})


def no_json_schema(body: Body, profile: Profile) -> Body:
    """A schema goes into the prompt, and `json_object` stays of the format where the server takes that.

    OpenAI and others want to read "json" in the messages then, so it stands in both cases there.
    """
    form = _format(body)
    text = _told(_spec(form)) if form.get('type') == 'json_schema' else None
    prompted = None if text is None else _prompted(body, text)
    if prompted is None:
        return body
    return _with_format(prompted, None if profile.get('compat_json_object') is False else {'type': 'json_object'})


def _format(body: Body) -> Mapping[str, Any]:
    text = body.get('text')
    nested = text.get('format') if isinstance(text, dict) else None
    form = body.get('response_format') if 'messages' in body else nested
    return form if isinstance(form, dict) else {}


def _with_format(body: Body, form: Mapping[str, Any] | None) -> Body:
    if 'messages' in body:
        return _without(body, 'response_format') if form is None else {**body, 'response_format': form}
    if form is not None:
        return {**body, 'text': {**body['text'], 'format': form}}
    text = _without(body['text'], 'format')
    return {**body, 'text': text} if text else _without(body, 'text')


def _spec(form: Mapping[str, Any]) -> Mapping[str, Any]:
    """The object with name, schema and `strict`: nested on /chat/completions, the format itself on /responses."""
    nested = form.get('json_schema')
    return nested if isinstance(nested, dict) else form


def _told(spec: Mapping[str, Any]) -> str | None:
    """The words that ask for what `spec` describes; `None` where it has no schema that can be written down."""
    if not isinstance(spec.get('schema'), dict):
        return None
    try:
        schema = json.dumps(spec['schema'], ensure_ascii=False, separators=(',', ':'))
    except (TypeError, ValueError, RecursionError):
        return None
    name, description = spec.get('name'), spec.get('description')
    named = f', named {name}' if name and isinstance(name, str) else ''
    described = f' ({description})' if description and isinstance(description, str) else ''
    return f'{_FITTING}{named}{described}:\n{schema}'


def _prompted(body: Body, text: str) -> Body | None:
    """`body` with `text` in its instructions; `None` where there is no place for it."""
    if 'messages' in body:
        messages = body['messages']
        return {**body, 'messages': _messages.instructed(messages, text)} if isinstance(messages, list) else None
    own = body.get('instructions')
    if 'input' not in body or not (own is None or isinstance(own, str)):
        return None
    return {**body, 'instructions': f'{own}\n\n{text}' if own else text}


# Schemas


def reschemed(body: Body, profile: Profile) -> Body:
    """The schemas of tools and of the format, rewritten."""
    # Only who sets this knob pays for the import.
    from oaicompat._schemas import rewritten

    def change(spec: Mapping[str, Any], key: str) -> Mapping[str, Any]:
        schema = spec.get(key)
        if not isinstance(schema, dict):
            return spec
        try:
            new = rewritten(schema, profile['compat_schema'])
        except ValueError as error:
            raise ValueError(f"the schema of {spec.get('name')!r} can't be sent in another form: {error}") from error
        return spec if new is schema else {**spec, key: new}

    return _each_spec(body, change)


def _each_spec(body: Body, change: Callable[[Mapping[str, Any], str], Mapping[str, Any]]) -> Body:
    """Change the object that holds name, schema and `strict`, of each tool and of the format.

    `change` gets the object and the key its schema is under; it gives that object back where nothing changes.
    """
    tools = body.get('tools')
    if isinstance(tools, list):
        new = [_with_spec(tool, 'function', change, 'parameters') for tool in tools]
        if any(one is not other for one, other in zip(new, tools, strict=True)):
            body = {**body, 'tools': new}
    form = _format(body)
    changed = _with_spec(form, 'json_schema', change, 'schema') if form.get('type') == 'json_schema' else form
    return body if changed is form else _with_format(body, changed)


def _with_spec(holder: Any, nest: str, change: Callable[[Mapping[str, Any], str], Mapping[str, Any]], key: str) -> Any:
    if not isinstance(holder, dict):
        return holder
    spec = holder.get(nest)
    if not isinstance(spec, dict):
        return change(holder, key)
    new = change(spec, key)
    return holder if new is spec else {**holder, nest: new}


# Fields


def omitted(body: Body, profile: Profile) -> Body:
    """The body without the fields that the server refuses; `tools.function.strict` is that field of each tool."""
    for path in profile['compat_omit']:
        body = _pruned(body, path.split('.'))
    return body


def _pruned(value: Any, steps: list[str]) -> Any:
    if isinstance(value, list):
        items = [_pruned(item, steps) for item in value]
        return items if any(one is not other for one, other in zip(items, value, strict=True)) else value
    step, *rest = steps
    if not isinstance(value, Mapping) or step not in value:
        return value
    inner = _pruned(value[step], rest) if rest else None
    if rest and inner is value[step]:
        return value
    # What had no other field says nothing any more, as `stream_options` without `include_usage`.
    return {**value, step: inner} if inner else _without(value, step)


# Messages


def echoed(body: Body, profile: Profile) -> Body:
    """Reasoning of earlier turns left out, or sent under the one name that the server reads.

    On /responses it is items of a type of its own, which are left out or stay.
    """
    field = profile['compat_echo_reasoning']
    items = body.get('input')
    if field == 'never' and 'messages' not in body and isinstance(items, list):
        kept = [item for item in items if not isinstance(item, dict) or item.get('type') != 'reasoning']
        return body if len(kept) == len(items) else {**body, 'input': kept}
    return _with_messages(body, _messages.unreasoned if field == 'never' else lambda m: _messages.reasoned(m, field))


def _with_messages(body: Body, change: Callable[[list[Any]], list[Any]]) -> Body:
    messages = body.get('messages')
    new = change(messages) if isinstance(messages, list) else messages
    return body if new is messages else {**body, 'messages': new}


def _row(knob: str, name: str, **changes: Callable[[list[Any]], list[Any]]) -> tuple[str, str, Adapter]:
    """A row of the table for a knob that changes messages: what each of its values does."""

    def adapt(body: Body, profile: Profile) -> Body:
        value = profile[knob]
        change = changes.get(value) if isinstance(value, str) else None
        return body if change is None else _with_messages(body, change)

    return knob, name, adapt


ADAPTERS: tuple[tuple[str, str, Adapter], ...] = (
    # It leaves no tools for the others, and messages that they must see; it knows all forms of a choice.
    ('compat_tools', 'request.tools', by_prompt),
    ('compat_named_tool_choice', 'request.tool_choice', unnamed_choice),
    ('compat_required_tool_choice', 'request.tool_choice', unforced_choice),
    # They may write a system message, which the knobs about those must see.
    ('compat_json_object', 'request.output_format', no_json_object),
    ('compat_json_schema', 'request.output_format', no_json_schema),
    ('compat_schema', 'request.schema', reschemed),
    # A field that won't be sent, such as `messages.name`, must not keep two messages apart.
    ('compat_omit', 'request.omit', omitted),
    # Parts first, since what is left may be text alone; then which messages there are, and whose turn it is.
    ('compat_echo_reasoning', 'request.reasoning', echoed),
    _row('compat_text_content', 'request.content', string=_messages.stringed),
    _row('compat_tool_order', 'request.roles', paired=_messages.paired),
    _row('compat_late_system', 'request.system', lift=_messages.lifted, user=_messages.late_as_user),
    _row('compat_system', 'request.system', user=_messages.folded),
    _row('compat_roles', 'request.roles', alternate=_messages.alternating),
    _row('compat_after_tool', 'request.roles', assistant=_messages.spoken_after_tool),
    _row('compat_last_message', 'request.roles', user=_messages.user_last),
    _row(
        'compat_assistant_content',
        'request.assistant_content',
        null=_messages.contentless(content=None),
        empty=_messages.contentless(content=''),
        omit=_messages.contentless(),
    ),
    # Last, too: nothing above may bring a field back.
    ('compat_omit', 'request.omit', omitted),
)
"""The knobs, the name of what each does, and its function, in the order in which they work on a body."""
