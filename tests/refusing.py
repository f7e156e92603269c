"""Servers that refuse shapes, conversations that use them, and one run of a model against such a server."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import (
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.tools import ToolDefinition

from oaicompat import OpenAICompatibleModel, OpenAICompatibleResponsesModel
from oaicompat.testing import RecordedRequest, Reply, ScriptedServer, chunk, completion

Fields = dict[str, Any]
Refuses = Callable[[Fields], Any]
"""Whether a server refuses a body."""

LIMIT = 10
"""Requests after which a server of these tests takes a client for one that loops."""


@dataclass
class Refusing:
    """A server's handler that answers `refusal` to whatever `refuses`, and `done` to all else.

    Attributes:
        rules: Which body is refused, and the answer to it; the first that refuses counts.
        answer: The message of the answer: its text, or its fields.
        bodies: The bodies that came, without `stream` and its options.
    """

    rules: Sequence[tuple[Refuses, Reply]]
    answer: str | Mapping[str, Any] = 'done'
    bodies: list[Fields] = field(default_factory=list)

    def __call__(self, request: RecordedRequest) -> Reply:
        body = request.json
        self.bodies.append({key: value for key, value in body.items() if key not in ('stream', 'stream_options')})
        assert len(self.bodies) <= LIMIT, 'it loops'
        refused = next((reply for refuses, reply in self.rules if refuses(body)), None)
        if refused is not None:
            return refused
        if request.path.endswith('/responses'):
            return responses_reply(self.answer, stream=body.get('stream'))
        if not body.get('stream'):
            return Reply.json(completion(self.answer) if isinstance(self.answer, str) else completion(**self.answer))
        fields = {'content': self.answer} if isinstance(self.answer, str) else dict(self.answer)
        calls = [{'index': at, **call} for at, call in enumerate(fields.pop('tool_calls', ()))]
        delta = {'role': 'assistant', **fields, **({'tool_calls': calls} if calls else {})}
        return Reply.sse(chunk(delta), chunk(finish_reason='tool_calls' if calls else 'stop'))


def refusal(message: str, status: int = 400, **fields: Any) -> Reply:
    """A refusal in OpenAI's words."""
    return Reply.json({'error': {'message': message, 'type': 'invalid_request_error', **fields}}, status)


def unknown(*places: Sequence[Any]) -> Reply:
    """What FastAPI says to fields that it does not know."""
    words = {'type': 'extra_forbidden', 'msg': 'Extra inputs are not permitted', 'input': 'x'}
    return Reply.json({'detail': [{**words, 'loc': ['body', *place]} for place in places]}, 422)


def responses_reply(text: Any, *, stream: bool | None) -> Reply:
    part = {'type': 'output_text', 'text': text, 'annotations': []}
    item = {'id': 'i', 'type': 'message', 'role': 'assistant', 'status': 'completed', 'content': [part]}
    fields = {'id': 'r', 'object': 'response', 'created_at': 1, 'model': 'm', 'parallel_tool_calls': True}
    whole = {**fields, 'tool_choice': 'auto', 'tools': [], 'status': 'completed', 'output': [item]}
    if not stream:
        return Reply.json(whole)
    at = {'item_id': 'i', 'output_index': 0}
    events: list[Fields] = [
        {'type': 'response.created', 'response': {**whole, 'status': 'in_progress', 'output': []}},
        {'type': 'response.output_item.added', 'output_index': 0, 'item': {**item, 'content': []}},
        {'type': 'response.content_part.added', **at, 'content_index': 0, 'part': {**part, 'text': ''}},
        {'type': 'response.output_text.delta', **at, 'content_index': 0, 'delta': text, 'logprobs': []},
        {'type': 'response.output_text.done', **at, 'content_index': 0, 'text': text, 'logprobs': []},
        {'type': 'response.output_item.done', 'output_index': 0, 'item': item},
        {'type': 'response.completed', 'response': whole},
    ]
    return Reply.sse(*({**event, 'sequence_number': at} for at, event in enumerate(events)), done=False)


# Conversations

PARAMETERS: Fields = {'type': 'object', 'properties': {'at': {'type': 'string'}}, 'required': ['at']}
LOOK = ToolDefinition(name='look', description='Look.', parameters_json_schema=PARAMETERS, strict=False)
FIND = ToolDefinition(name='find', description='Find.', parameters_json_schema=PARAMETERS, strict=False)
CITY: Fields = {
    'type': 'object',
    'properties': {'city': {'type': 'string'}},
    'required': ['city'],
    'additionalProperties': False,
}
AS_CITY = OutputObjectDefinition(json_schema=CITY, name='City', strict=True)
GO: list[ModelMessage] = [ModelRequest([UserPromptPart('go')])]


def called(
    *results: Any, args: Any = None, before: Sequence[Any] = (), after: Sequence[Any] = ()
) -> list[ModelMessage]:
    """A conversation with a call of `look` for each of `results`."""
    ids = [f'call_{at}' for at, _ in enumerate(results)]
    arguments = {'at': 'home'} if args is None else args
    return [
        ModelRequest([UserPromptPart('go')]),
        ModelResponse([*before, *(ToolCallPart('look', arguments, tool_call_id=id_) for id_ in ids)]),
        ModelRequest(
            [
                *(ToolReturnPart('look', result, tool_call_id=id_) for id_, result in zip(ids, results, strict=True)),
                *after,
            ]
        ),
    ]


def said(*texts: str) -> list[ModelMessage]:
    """A conversation in which user and assistant take turns."""
    return [
        ModelResponse([TextPart(text)]) if at % 2 else ModelRequest([UserPromptPart(text)])
        for at, text in enumerate(texts)
    ]


async def ask(
    model: Model,
    messages: list[ModelMessage] | None = None,
    settings: Any = None,
    parameters: ModelRequestParameters | None = None,
    *,
    stream: bool = False,
) -> ModelResponse:
    """One request by `model`, unary or streamed."""
    arguments = (GO if messages is None else messages, settings, parameters or ModelRequestParameters())
    if not stream:
        return await model.request(*arguments)
    async with model.request_stream(*arguments) as streamed:
        async for _ in streamed:
            pass
        return streamed.get()


# A request that uses everything

EVERYTHING: list[ModelMessage] = [
    ModelRequest([SystemPromptPart('A'), UserPromptPart(['see', ImageUrl('https://example.com/c.png')])]),
    ModelResponse([ThinkingPart('hm', id='reasoning_content'), ToolCallPart('look', '{"at', tool_call_id='call_0_x')]),
    ModelRequest([ToolReturnPart('look', ['a', 'b'], tool_call_id='call_0_x'), SystemPromptPart('B')]),
    ModelRequest([UserPromptPart(['x', 'y'])]),
]
REFERRING: Fields = {
    'type': 'object',
    'properties': {'at': {'$ref': '#/$defs/P'}},
    '$defs': {'P': {'type': 'string', 'format': 'uri'}},
}
SETTINGS: Any = {
    'max_tokens': 9, 'seed': 1, 'temperature': 0.5, 'top_p': 0.5, 'presence_penalty': 0.1, 'parallel_tool_calls': True,
    'tool_choice': 'required', 'openai_store': False, 'openai_user': 'u', 'openai_service_tier': 'auto',
}  # fmt: skip
OFFERED = ModelRequestParameters(
    function_tools=[LOOK, ToolDefinition(name='refer', parameters_json_schema=REFERRING, strict=True)],
    output_mode='native',
    output_object=AS_CITY,
)


# Wire


def function(name: str, parameters: Any = None, **fields: Any) -> Fields:
    """A tool on the wire."""
    spec = {'name': name, 'description': f'{name.title()}.', 'parameters': parameters or PARAMETERS, **fields}
    return {'type': 'function', 'function': spec}


def user(content: Any) -> Fields:
    return {'role': 'user', 'content': content}


def system(content: Any) -> Fields:
    return {'role': 'system', 'content': content}


def assistant(content: Any, *ids: str, args: str = '{"at":"home"}', **fields: Any) -> Fields:
    calls = [{'id': id_, 'type': 'function', 'function': {'name': 'look', 'arguments': args}} for id_ in ids]
    return {'role': 'assistant', 'content': content, **({'tool_calls': calls} if calls else {}), **fields}


def result(content: Any, id_: str = 'call_0') -> Fields:
    return {'role': 'tool', 'tool_call_id': id_, 'content': content}


def texts(*texts: str, kind: str = 'text') -> list[Fields]:
    return [{'type': kind, 'text': text} for text in texts]


def chat(*messages: Fields, **fields: Any) -> Fields:
    return {'messages': list(messages), **fields}


# What a body uses


def roles(body: Fields) -> list[str]:
    return [message['role'] for message in body['messages']]


def named(body: Fields) -> bool:
    return isinstance(body.get('tool_choice'), dict)


def kind(body: Fields) -> str | None:
    form = body.get('response_format') or body.get('text', {}).get('format') or {}
    return form.get('type')


def at_work(body: Fields, role: str) -> list[Any]:
    return [message.get('content') for message in body['messages'] if message['role'] == role]


# One case


@dataclass(frozen=True)
class Case:
    """What one server refuses, and what comes of it.

    Attributes:
        refuses: The rules of the server.
        bodies: The bodies of the first call's requests, without model, stream and stream options.
        learned: The profile keys that are remembered.
        names: The adaptations that the answers list.
        later: Those that an answer lists when nothing was refused, if they are others: what pydantic-ai does by a key
            of its own is not listed again, nor is what is done while messages are mapped.
    """

    refuses: Sequence[tuple[Refuses, Reply]]
    bodies: Sequence[Fields]
    learned: Fields
    names: Sequence[str]
    messages: list[ModelMessage] = field(default_factory=lambda: GO)
    settings: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    responses: bool = False
    later: Sequence[str] | None = None


def own(messages: list[ModelMessage], model: Model) -> list[ModelMessage]:
    """`messages`, with reasoning that came from `model` itself."""
    return [
        replace(
            message,
            parts=[
                replace(part, provider_name=model.system) if isinstance(part, ThinkingPart) else part
                for part in message.parts
            ],
        )
        if isinstance(message, ModelResponse)
        else message
        for message in messages
    ]


async def run(case: Case, caplog: pytest.LogCaptureFixture, *, stream: bool) -> None:
    """Check that `case` holds: refused and changed, changed at once the next time, forgotten, refused and changed."""
    server_side = Refusing(case.refuses)
    kind = OpenAICompatibleResponsesModel if case.responses else OpenAICompatibleModel
    caplog.set_level(logging.WARNING, 'oaicompat')
    async with ScriptedServer(server_side) as server, kind('m', base_url=server.base_url) as model:
        arguments = (own(case.messages, model), case.settings, ModelRequestParameters(**case.parameters))
        answers = [await ask(model, *arguments, stream=stream) for _ in range(2)]
        assert model.learned == case.learned
        model.forget()
        assert dict(model.learned) == {}
        answers.append(await ask(model, *arguments, stream=stream))
    first = [{'model': 'm', **body} for body in case.bodies]
    assert server_side.bodies == [*first, first[-1], *first]
    assert [answer.text for answer in answers] == ['done'] * 3
    first_names, later = list(case.names), list(case.names if case.later is None else case.later) or None
    assert [(answer.provider_details or {}).get('oaicompat') for answer in answers] == [first_names, later, first_names]
    told = [record.getMessage() for record in caplog.records]
    assert told == [*told[: len(told) // 2]] * 2
    # As it may be set in Python and in YAML.
    said = {key: list(value) if isinstance(value, tuple) else value for key, value in case.learned.items()}
    assert all(f'{key!r}: {value!r}' in '\n'.join(told) for key, value in said.items())


# What fails

LISTS = refusal('messages[2].content: Input should be a valid string')
SEED = refusal("Unknown parameter: 'seed'.")
TOO_LONG = refusal("This model's maximum context length is 8192 tokens.", code='context_length_exceeded')


def has_list(body: Fields) -> bool:
    return any(isinstance(message.get('content'), list) for message in body['messages'] if message['role'] == 'tool')


def always(_: Fields) -> bool:
    return True


async def failing(
    rules: list[tuple[Refuses, Reply]],
    messages: Any = None,
    options: Any = None,
    parameters: Any = None,
    **profile: Any,
) -> tuple[ModelHTTPError, list[Fields]]:
    """The error that comes of it, and what was sent; nothing is learned."""
    handler = Refusing(rules)
    given: Any = profile.pop('profile', profile or None)
    async with ScriptedServer(handler) as server:
        async with OpenAICompatibleModel('m', base_url=server.base_url, profile=given) as model:
            with pytest.raises(ModelHTTPError) as raised:
                await ask(model, messages, options, parameters)
            assert dict(model.learned) == {}
    return raised.value, handler.bodies


def message(error: ModelHTTPError) -> str:
    return str(cast(Fields, error.body)['message'])


def notes(error: BaseException) -> list[str]:
    return getattr(error, '__notes__', [])
