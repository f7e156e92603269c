"""The real llama.cpp server over `/v1/responses`: an agent with tools, retries and reasoning; what it reads."""

from __future__ import annotations

import json
from collections.abc import AsyncIterable, Iterator
from typing import Any

import httpx2
import pytest
from emulated import Json, LlamaCpp, RefusedError
from pydantic_ai import Agent, ModelRetry
from pydantic_ai import messages as m
from pydantic_ai.exceptions import ModelAPIError
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.openai import OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider
from test_item_styles import HISTORIES, called, output, said, thought, user
from test_llama_cpp import CLOSE, needs_llama_cpp

from oaicompat import OpenAICompatibleResponsesModel
from oaicompat._demo._server import tiny_server

pytestmark = needs_llama_cpp

# It fails with the messages that it was given.
TELLING = r"""
{%- if 'TELL' in (messages[0].content ~ '') -%}{{ raise_exception('TOLD' ~ (messages | tojson)) }}{%- endif -%}
{%- for message in messages -%}
    {{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' -}}
{%- endfor -%}
"""


@pytest.fixture(scope='module')
def url() -> Iterator[str]:
    with tiny_server() as base:
        yield base


@pytest.fixture(scope='module')
def telling() -> Iterator[str]:
    with tiny_server(TELLING) as base:
        yield base


async def converse(model: OpenAIResponsesModel, *, stream: bool) -> list[m.ModelMessage]:
    """Three runs, each on the history of the one before; the first has a tool that asks for another try."""
    agent = Agent(model, model_settings={'temperature': 0, 'max_tokens': 60}, retries=2)
    tries: list[str] = []

    @agent.tool_plain
    def get_weather(city: str) -> str:
        tries.append(city)
        if len(tries) == 1:
            raise ModelRetry('The station is busy; call again.')
        return f'{city}: sunny, 24 °C'

    async def read(_: Any, events: AsyncIterable[Any]) -> None:
        async for _event in events:
            pass

    history: list[m.ModelMessage] = []
    async with agent:
        for question in ('What is the weather in Rome?', 'Think about Rome.', 'Hello'):
            result = await agent.run(question, message_history=history, event_stream_handler=read if stream else None)
            history = result.all_messages()
            assert result.output
    return history


@pytest.mark.parametrize('stream', [False, True])
async def test_an_agent_with_tools_retries_and_reasoning(url: str, stream: bool) -> None:
    model = OpenAICompatibleResponsesModel('tiny', base_url=url, settings={'extra_headers': CLOSE})
    history = await converse(model, stream=stream)
    parts = [part for message in history for part in message.parts]
    calls = [part for part in parts if isinstance(part, m.ToolCallPart)]
    assert [(part.tool_name, part.args_as_dict()) for part in calls][:1] == [('get_weather', {'city': 'Rome'})]
    returns = [part for part in parts if isinstance(part, m.ToolReturnPart)]
    assert returns[0].outcome == 'retried'
    [reasoning] = [part for part in parts if isinstance(part, m.ThinkingPart)]
    assert (reasoning.provider_details or {})['raw_content'] == ['The user asks about Rome.\n']
    assert isinstance(parts[-1], m.TextPart)
    assert parts[-1].content == 'Hello! How can I help you today?'


async def test_the_parent_fails_on_streamed_reasoning(url: str) -> None:
    """Its events have no `content_index`."""
    model = OpenAIResponsesModel('tiny', provider=OpenAIProvider(base_url=url, api_key='k'))
    asked: list[m.ModelMessage] = [m.ModelRequest([m.UserPromptPart('Think about Rome.')])]
    settings: Any = {'temperature': 0, 'max_tokens': 60}

    async def read() -> None:
        async with model.request_stream(asked, settings, ModelRequestParameters()) as streamed:
            async for _ in streamed:
                pass

    with pytest.raises(TypeError, match='NoneType'):
        await read()


@pytest.mark.parametrize('stream', [False, True])
async def test_the_parent_fails(url: str, stream: bool) -> None:
    """On its first request, since a tool has no description; without that, on a second one with an answer in it."""
    provider = OpenAIProvider(base_url=url, api_key='k')
    with pytest.raises(ModelAPIError, match='type must be string, but is null'):
        await converse(OpenAIResponsesModel('tiny', provider=provider), stream=stream)
    agent = Agent(OpenAIResponsesModel('tiny', provider=provider), model_settings={'max_tokens': 20})
    async with agent:
        history = (await agent.run('Hello')).all_messages()
        with pytest.raises(ModelAPIError, match="Cannot determine type of 'item'"):
            await agent.run('Hello', message_history=history)


ITEMS: dict[str, list[Json]] = {
    **{name: items for name, (_, items, _) in HISTORIES.items()},
    'an answer without a type': [user(), {'role': 'assistant', 'content': 'Hello'}, user()],
    'a list without a type': [user(), {**said('Hello'), 'type': None}, user()],
    'a string': [user(), {'type': 'message', 'role': 'assistant', 'content': 'Hello'}, user()],
    'two texts': [user(), {**said('One.'), 'content': said('One.')['content'] + said('Two.')['content']}, user()],
    'two answers': [user(), said('One.'), said('Two.'), user()],
    'a refusal': [user(), {**said(''), 'content': [{'type': 'refusal', 'refusal': 'No.'}]}, user()],
    'a summary': [
        user(), {'type': 'reasoning', 'summary': [{'type': 'summary_text', 'text': 'Hm.'}]}, said('Hi'), user(),
    ],
    'two texts of reasoning': [
        user(), {**thought('A.'), 'content': thought('A.')['content'] + thought('B.')['content']}, said('Hi'), user(),
    ],
    'encrypted reasoning': [user(), {**thought('A.'), 'encrypted_content': 'x'}, said('Hi'), user()],
    'an unpaired output': [user(), output()],
    'a call behind an answer': [user(), said('I look.'), called(), output()],
    'a reference': [user(), {'type': 'item_reference', 'id': 'msg_1'}],
    'a file': [user(), {'role': 'user', 'content': [{'type': 'input_file', 'file_url': 'https://x.test/a.pdf'}]}],
    'audio': [
        user(),
        {'role': 'user', 'content': [{'type': 'input_audio', 'input_audio': {'data': 'AAAA', 'format': 'wav'}}]},
    ],
    'an image by id': [user(), {'role': 'user', 'content': [{'type': 'input_image', 'file_id': 'f'}]}],
    'a file in an output': [user(), called(), output([{'type': 'input_file', 'file_url': 'https://x.test/a.pdf'}])],
    'reasoning twice': [user(), thought('A.'), thought('B.', 'rs_2'), said('Hi'), user()],
    'an unknown item': [user(), {'type': 'web_search_call', 'id': 'w'}],
}  # fmt: skip


@pytest.mark.parametrize('items', ITEMS.values(), ids=ITEMS)
def test_the_emulation_reads_as_the_server_does(telling: str, items: list[Json]) -> None:
    items = [{**items[0], 'content': 'TELL'}, *items[1:]]
    body = {'model': 'tiny', 'input': items, 'max_output_tokens': 1}
    error = httpx2.post(f'{telling}/responses', json=body, headers=CLOSE, timeout=60).json()['error']['message']
    refusal, expected = emulated([_plain(item) for item in items])
    if refusal:
        assert refusal in error
    else:
        assert [_plain(message) for message in json.loads(error.rpartition('TOLD')[2])] == expected


def emulated(items: list[Json]) -> tuple[str, list[Json]]:
    try:
        return '', LlamaCpp().read(items)
    except RefusedError as refusal:
        return str(refusal), []


def _plain(message: Json) -> Json:
    return {key: value for key, value in message.items() if value is not None}
