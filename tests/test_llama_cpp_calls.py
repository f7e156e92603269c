"""The real llama.cpp server where it does not read calls: the tiny model's call comes as text, and an agent goes on.

The tiny model was trained on one template alone, so with another one its last answer is babble.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterator
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, ToolCallPart
from test_llama_cpp import needs_llama_cpp

from oaicompat import OpenAICompatibleModel
from oaicompat._demo import _server
from oaicompat._demo._server import tiny_server
from oaicompat._sdk import record_bodies

pytestmark = needs_llama_cpp
QUESTION = 'What is the weather in Rome?'

# Neither tools nor calls are in this template, so the server finds no format to read calls in.
WITHOUT_TOOLS = r"""
{%- for message in messages -%}
    {%- if message.role == 'tool' -%}
        {{- '<|im_start|>user\n<tool_response>\n' + message.content + '\n</tool_response><|im_end|>\n' -}}
    {%- else -%}
        {{- '<|im_start|>' + message.role + '\n' + (message.content or '') + '<|im_end|>\n' -}}
    {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\n' -}}{%- endif -%}
"""


@pytest.fixture(scope='module')
def without_tools() -> Iterator[str]:
    with tiny_server(WITHOUT_TOOLS) as url:
        yield url


@pytest.fixture(scope='module')
def without_jinja() -> Iterator[str]:
    """As with `--no-jinja`: then the server refuses tools."""
    parameters = _server._parameters

    def changed(*arguments: Any) -> Any:
        made = parameters(*arguments)
        made.use_jinja = False
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_server, '_parameters', changed)
        with tiny_server('chatml') as url:
            yield url


async def run(model: OpenAICompatibleModel, stream: bool) -> tuple[str, list[Any], list[dict[str, Any]]]:
    """The output, the repairs of each answer, and the bodies that were sent."""
    agent = Agent(model, model_settings={'temperature': 0, 'max_tokens': 60})

    @agent.tool_plain
    def get_weather(city: str) -> str:
        """The weather in a city."""
        return f'{city}: sunny'

    async def read(_: Any, events: AsyncIterable[Any]) -> None:
        async for _event in events:
            pass

    bodies: list[dict[str, Any]] = []
    async with agent:
        with record_bodies(model.client, bodies):
            result = await agent.run(QUESTION, event_stream_handler=read if stream else None)
    answers = [message for message in result.all_messages() if isinstance(message, ModelResponse)]
    [part] = answers[0].parts
    assert isinstance(part, ToolCallPart)
    assert (part.tool_name, part.args_as_dict()) == ('get_weather', {'city': 'Rome'})
    assert answers[0].finish_reason == 'tool_call'
    return result.output, [(answer.provider_details or {}).get('oaicompat') for answer in answers], bodies


@pytest.mark.parametrize('stream', [False, True], ids=['unary', 'stream'])
async def test_a_template_that_knows_no_tools(without_tools: str, stream: bool) -> None:
    output, repairs, bodies = await run(OpenAICompatibleModel('tiny', base_url=without_tools), stream)
    assert output
    assert repairs == [['tool_call.text'], None]
    assert 'tools' in bodies[0]
    assert bodies[-1]['messages'][-1]['content'] == 'Rome: sunny'


@pytest.mark.parametrize('stream', [False, True], ids=['unary', 'stream'])
async def test_tools_by_prompt(without_tools: str, stream: bool) -> None:
    model = OpenAICompatibleModel('tiny', base_url=without_tools, profile={'compat_tools': 'prompted'})
    output, repairs, bodies = await run(model, stream)
    assert output
    assert repairs == [['request.tools', 'tool_call.text'], ['request.tools']]
    assert not any('tools' in body for body in bodies)
    assert bodies[-1]['messages'][-1]['content'] == '<tool_response>\nget_weather:\nRome: sunny\n</tool_response>'


@pytest.mark.parametrize('stream', [False, True], ids=['unary', 'stream'])
async def test_a_server_that_refuses_tools_gets_them_by_prompt(without_jinja: str, stream: bool) -> None:
    model = OpenAICompatibleModel('tiny', base_url=without_jinja)
    output, repairs, bodies = await run(model, stream)
    assert output
    assert repairs == [['request.tools', 'tool_call.text'], ['request.tools']]
    # The SDK sends again what got a status 500, unless it is known to fail again.
    assert ['tools' in body for body in bodies] == [True, False, False]
    assert model.learned == {'compat_tools': 'prompted'}
