"""Refusals on the wire: what is sent again, what is remembered, and when it stops."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, cast

import pytest
from pydantic import BaseModel, model_serializer
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition

from oaicompat import OpenAICompatibleModel, OpenAICompatibleResponsesModel
from oaicompat._lesson import Lesson
from oaicompat._memory import MEMORY
from oaicompat.testing import RecordedRequest, Reply, ScriptedServer, chunk, completion

REFUSAL = {'error': {'message': 'messages[2]: invalid type: sequence, expected a string', 'type': 'invalid_request'}}
NATIVE = [{'type': 'text', 'text': 'a'}, {'type': 'text', 'text': 'b'}]


def history(*contents: Any) -> list[ModelMessage]:
    contents = contents or (['a', 'b'],)
    ids = [f'call_{index}' for index, _ in enumerate(contents)]
    return [
        ModelRequest([UserPromptPart('go')]),
        ModelResponse([ToolCallPart('look', {}, tool_call_id=id_) for id_ in ids]),
        ModelRequest([ToolReturnPart('look', c, tool_call_id=id_) for c, id_ in zip(contents, ids, strict=True)]),
    ]


def results(request: RecordedRequest) -> list[Any]:
    return [message['content'] for message in request.json['messages'] if message['role'] == 'tool']


def strict(request: RecordedRequest) -> Reply:
    """Takes strings alone, as DeepSeek's API does."""
    if any(isinstance(content, list) for content in results(request)):
        return Reply.json(REFUSAL, 400)
    if request.json.get('stream'):
        return Reply.sse(chunk('done'), chunk(finish_reason='stop'))
    return Reply.json(completion('done'))


def compatible(server: ScriptedServer, name: str = 'm', **profile: Any) -> OpenAICompatibleModel:
    return OpenAICompatibleModel(name, base_url=server.base_url, profile=profile or None)  # type: ignore[arg-type]


async def ask(model: Any, messages: list[ModelMessage] | None = None, *, stream: bool = False) -> str:
    arguments = (messages or history(), None, ModelRequestParameters())
    if not stream:
        response = await model.request(*arguments)
    else:
        async with model.request_stream(*arguments) as streamed:
            async for _ in streamed:
                pass
            response = streamed.get()
    [part] = response.parts
    assert isinstance(part, TextPart)
    return part.content


@pytest.mark.parametrize('stream', [False, True])
async def test_a_refused_list_is_sent_again_joined_and_remembered(stream: bool) -> None:
    async with ScriptedServer(strict) as server, compatible(server) as model:
        assert await ask(model, stream=stream) == 'done'
        assert await ask(model, stream=stream) == 'done'
        assert model.learned == {'compat_tool_return': 'joined'}
    assert [results(request) for request in server.requests] == [[NATIVE], ['a\nb'], ['a\nb']]
    first, second, _ = (request.json for request in server.requests)
    assert {**first, 'messages': None} == {**second, 'messages': None}
    assert first['messages'][:2] == second['messages'][:2]


async def test_the_lesson_reaches_models_that_exist_already() -> None:
    async with ScriptedServer(strict) as server, compatible(server) as model, compatible(server) as other:
        assert other.profile.get('compat_tool_return', 'auto') == 'auto'
        await ask(model)
        assert other.profile.get('compat_tool_return') == 'joined'
        await ask(other)
        other.forget()
        assert (dict(model.learned), model.profile.get('compat_tool_return', 'auto')) == ({}, 'auto')
    assert len(server.requests) == 3


async def test_another_model_and_another_endpoint_learn_for_themselves() -> None:
    async with ScriptedServer(strict) as server, compatible(server) as model, compatible(server, 'other') as other:
        await ask(model)
        assert dict(other.learned) == {}
        await ask(other)
    assert [request.json['model'] for request in server.requests] == ['m', 'm', 'other', 'other']


async def test_a_burst_of_first_calls_learns_once_and_all_succeed(caplog: pytest.LogCaptureFixture) -> None:
    async with ScriptedServer(strict) as server, compatible(server) as model, asyncio.timeout(30):
        with caplog.at_level(logging.WARNING, 'oaicompat'):
            assert await asyncio.gather(*[ask(model) for _ in range(100)]) == ['done'] * 100
        assert await ask(model) == 'done'
    [record] = caplog.records
    assert "profile={'compat_tool_return': 'joined'}" in record.getMessage()
    assert len(server.requests) <= 201


@pytest.mark.parametrize('profile', [{'compat_adapt': 'off'}, {'compat_tool_return': 'native'}])
async def test_no_second_request_where_the_caller_said_so(profile: dict[str, str]) -> None:
    async with ScriptedServer(strict) as server, compatible(server, **profile) as model:
        with pytest.raises(ModelHTTPError) as raised:
            await ask(model)
    assert (raised.value.status_code, raised.value.body) == (400, REFUSAL['error'])
    assert len(server.requests) == 1
    notes = getattr(raised.value, '__notes__', [])
    assert any('profile' in note for note in notes) == ('compat_tool_return' in profile)


async def test_a_callable_profile_pins_like_a_mapping() -> None:
    async with ScriptedServer(strict) as server:
        native: Any = {'compat_tool_return': 'native'}
        pinned = OpenAICompatibleModel(
            'm', base_url=server.base_url, profile=lambda base: cast(Any, {**base, **native})
        )
        async with pinned:
            with pytest.raises(ModelHTTPError):
                await ask(pinned)
    assert len(server.requests) == 1


async def test_a_server_that_refuses_everything_ends_with_its_first_error() -> None:
    refusals = iter(range(10))

    def never(_: RecordedRequest) -> Reply:
        return Reply.json({'error': {'message': f'no {next(refusals)}: content must be a string'}}, 400)

    async with ScriptedServer(never) as server, compatible(server) as model:
        with pytest.raises(ModelHTTPError) as raised:
            await ask(model)
    assert raised.value.body == {'message': 'no 0: content must be a string'}
    assert [results(request) for request in server.requests] == [[NATIVE], ['a\nb']]


@pytest.mark.parametrize('status', [401, 403, 404])
async def test_the_callers_own_fault_is_not_adapted(status: int) -> None:
    async with ScriptedServer([Reply.json(REFUSAL, status)]) as server, compatible(server) as model:
        with pytest.raises(ModelHTTPError) as raised:
            await ask(model)
    assert raised.value.status_code == status
    assert dict(model.learned) == {}


class Meddling(BaseModel):
    """Teaches the endpoint something while the request is mapped, as a concurrent call might."""

    endpoint: str

    @model_serializer
    def learn(self) -> str:
        MEMORY.learn(self.endpoint, 'm', Lesson('request.tool_return', {'compat_tool_return': 'joined'}, 'meanwhile'))
        return 'x'


async def test_one_request_works_with_one_snapshot() -> None:
    async with ScriptedServer([Reply.json(completion('done'))]) as server, compatible(server) as model:
        await ask(model, history([Meddling(endpoint=server.base_url), 'a'], ['b', 'c']))
        assert model.profile.get('compat_tool_return') == 'joined'
    assert [[part['text'] for part in content] for content in results(server.requests[0])] == [['x', 'a'], ['b', 'c']]


async def test_a_server_that_only_streams_is_streamed_and_remembered() -> None:
    def streams(request: RecordedRequest) -> Reply:
        if not request.json.get('stream'):
            return Reply.json({'error': {'message': 'This model only support stream mode.'}}, 400)
        return Reply.sse(chunk('do'), chunk('ne'), chunk(finish_reason='stop', usage={'prompt_tokens': 3}))

    async with ScriptedServer(streams) as server, compatible(server) as model:
        for _ in range(2):
            response = await model.request(history('a'), None, ModelRequestParameters())
            assert (response.text, response.finish_reason, response.usage.input_tokens) == ('done', 'stop', 3)
            assert response.provider_details is not None
            assert response.provider_details['oaicompat'] == ['request.stream', 'usage']
    assert [request.json.get('stream') for request in server.requests] == [False, True, True]


async def test_the_responses_api_learns_alike() -> None:
    def outputs(request: RecordedRequest) -> list[Any]:
        return [item['output'] for item in request.json['input'] if item.get('type') == 'function_call_output']

    def strict_responses(request: RecordedRequest) -> Reply:
        if isinstance(outputs(request)[0], list):
            return Reply.json({'error': {'message': 'input[2].output: Input should be a valid string'}}, 400)
        message = {'type': 'output_text', 'text': 'done', 'annotations': []}
        output = {'id': 'i', 'type': 'message', 'role': 'assistant', 'status': 'completed', 'content': [message]}
        return Reply.json(
            {'id': 'r', 'object': 'response', 'created_at': 1, 'model': 'm', 'status': 'completed', 'output': [output],
             'parallel_tool_calls': True, 'tool_choice': 'auto', 'tools': []}
        )  # fmt: skip

    async with ScriptedServer(strict_responses) as server:
        async with OpenAICompatibleResponsesModel('m', base_url=server.base_url) as model:
            assert await ask(model) == 'done'
            assert model.learned == {'compat_tool_return': 'joined'}
    assert [outputs(request) for request in server.requests] == [
        [[{'type': 'input_text', 'text': 'a'}, {'type': 'input_text', 'text': 'b'}]],
        ['a\nb'],
    ]


def toolless(request: RecordedRequest) -> Reply:
    """Takes no tools, as Ollama does for some models."""
    if request.json.get('tools'):
        return Reply.json({'error': {'message': 'm does not support tools', 'type': 'api_error'}}, 400)
    if request.json.get('stream'):
        return Reply.sse(chunk('done'), chunk(finish_reason='stop'))
    return Reply.json(completion('done'))


@pytest.mark.parametrize('stream', [False, True])
async def test_where_tools_are_refused_the_prompt_has_them(stream: bool) -> None:
    tools = ModelRequestParameters(
        function_tools=[ToolDefinition(name='look', parameters_json_schema={'type': 'object', 'properties': {}})]
    )
    async with ScriptedServer(toolless) as server, compatible(server) as model:
        for _ in range(2):
            if stream:
                async with model.request_stream(history('sun'), None, tools) as streamed:
                    async for _event in streamed:
                        pass
                    response = streamed.get()
            else:
                response = await model.request(history('sun'), None, tools)
            assert response.parts == [TextPart('done')]
        assert model.learned == {'compat_tools': 'prompted'}
    refused, second, third = (request.json for request in server.requests)
    assert second == third
    assert {*refused} - {*second} == {'tools', 'tool_choice'}
    system, *messages = second['messages']
    assert (system['role'], '"name":"look"' in system['content']) == ('system', True)
    assert messages == [
        {'role': 'user', 'content': 'go'},
        {'role': 'assistant', 'content': '<tool_call>\n{"name": "look", "arguments": {}}\n</tool_call>'},
        {'role': 'user', 'content': '<tool_response>\nlook:\nsun\n</tool_response>'},
    ]


async def test_where_nothing_is_read_tools_are_not_prompted() -> None:
    """A call in the text would be the answer."""
    tools = ModelRequestParameters(
        function_tools=[ToolDefinition(name='look', parameters_json_schema={'type': 'object', 'properties': {}})]
    )
    async with ScriptedServer(toolless) as server, compatible(server, compat_repair='off') as model:
        with pytest.raises(ModelHTTPError):
            await model.request(history('sun'), None, tools)
        assert model.learned == {}
    assert len(server.requests) == 1
