"""The real llama.cpp server: what `auto` picks for five chat templates, and that every element reaches the prompt."""

from __future__ import annotations

import asyncio
import json
import platform
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ToolCallPart, ToolReturnPart, UserPromptPart

from oaicompat import OpenAICompatibleModel
from oaicompat._client import post_json
from oaicompat._demo._server import tiny_server
from oaicompat._sdk import record_bodies
from oaicompat._templates import question

# The platforms that xllamacpp has wheels for: there a missing one is a failure, no reason to skip.
BUILT_FOR = {
    ('linux', 'x86_64'),
    ('linux', 'aarch64'),
    ('darwin', 'arm64'),
    ('darwin', 'x86_64'),
    ('win32', 'AMD64'),
}
needs_llama_cpp = pytest.mark.skipif(
    find_spec('xllamacpp') is None and (sys.platform, platform.machine()) not in BUILT_FOR,
    reason='the wheel xllamacpp is not built for this platform',
)
pytestmark = needs_llama_cpp

# ChatML as the tiny model knows it. What it does with a tool result that is a list stands in place of LISTS.
FRAME = r"""
{%- macro text(content) -%}
    {%- if content is string -%}
        {{- content -}}
    {%- elif content is iterable -%}
        {%- for part in content -%}{{- part.text -}}{%- endfor -%}
    {%- endif -%}
{%- endmacro -%}
{%- if tools -%}
    {{- '<|im_start|>system\nFunctions:\n' -}}
    {%- for tool in tools -%}{{- tool | tojson + '\n' -}}{%- endfor -%}
    {{- 'To call one, write its name and arguments as JSON between <tool_call> and </tool_call>.<|im_end|>\n' -}}
{%- endif -%}
{%- for message in messages -%}
    {%- if message.role == 'tool' -%}
        {{- '<|im_start|>user\n<tool_response>\n' -}}
        {%- if message.content is string -%}{{- message.content -}}{%- else -%}LISTS{%- endif -%}
        {{- '\n</tool_response><|im_end|>\n' -}}
    {%- else -%}
        {{- '<|im_start|>' + message.role + '\n' + text(message.content) -}}
        {%- for call in message.tool_calls or [] -%}
            {{- '<tool_call>\n{"name": "' + call.function.name + '", "arguments": ' -}}
            {{- call.function.arguments if call.function.arguments is string else call.function.arguments | tojson -}}
            {{- '}\n</tool_call>' -}}
        {%- endfor -%}
        {{- '<|im_end|>\n' -}}
    {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\n' -}}{%- endif -%}
"""
OWN = 'the tiny model’s own'  # noqa: RUF001
LOSING = {
    'drops': FRAME.replace('LISTS', ''),
    'glues': FRAME.replace('LISTS', '{%- for part in message.content -%}{{- part.text -}}{%- endfor -%}'),
    'dumps as JSON': FRAME.replace('LISTS', '{{- message.content | tojson -}}'),
    'dumps as Python': FRAME.replace('LISTS', "{{- message.content ~ '' -}}"),
}
FIRST, SECOND = 'Rome: "sunny", 24 °C', 'wind: light,\nfrom the sea'
NATIVE = [{'type': 'text', 'text': FIRST}, {'type': 'text', 'text': SECOND}]
JOINED = f'{FIRST}\n{SECOND}'
PYTHON = "{{'type': 'text', 'text': '{}'}}"  # as llama.cpp writes it: nothing is escaped
BLOCKS = f'<tool_response>\n{FIRST}\n</tool_response>\n<tool_response>\n{SECOND}\n</tool_response><|im_end|>\n'
ONE_BLOCK = f'<tool_response>\n{JOINED}\n</tool_response><|im_end|>\n'

HISTORY: list[ModelMessage] = [
    ModelRequest([UserPromptPart('What is the weather in Rome?')]),
    ModelResponse([ToolCallPart('get_weather', {'city': 'Rome'}, 'call00001')]),
    ModelRequest([ToolReturnPart('get_weather', [FIRST, SECOND], 'call00001')]),
]

# An idle connection holds one of the server's few threads for five seconds.
CLOSE = {'Connection': 'close'}

Bodies = list[dict[str, Any]]


@pytest.fixture(scope='module')
def url_of() -> Iterator[Callable[[str], str]]:
    """The base URL of a server with a template, by the template's name; each is started once."""
    urls: dict[str, str] = {}
    with ExitStack() as running:

        def url(name: str) -> str:
            if name not in urls:
                urls[name] = running.enter_context(tiny_server(LOSING.get(name)))
            return urls[name]

        yield url


def tiny(url: str, prefix: str | None = None) -> OpenAICompatibleModel:
    return OpenAICompatibleModel('tiny', base_url=url, provider=prefix)


def agent_on(model: OpenAICompatibleModel, extra_headers: dict[str, str] | None = None) -> Agent[None, str]:
    agent = Agent(model, model_settings={'temperature': 0, 'max_tokens': 60, 'extra_headers': extra_headers or {}})

    @agent.tool_plain
    def get_weather(city: str) -> list[str]:
        """The weather in a city."""
        return [FIRST, SECOND]

    return agent


async def ask(agent: Agent[None, str], *, stream: bool = False, **options: Any) -> str:
    prompt = None if options else 'What is the weather in Rome?'
    if not stream:
        return str((await agent.run(prompt, **options)).output)
    async with agent.run_stream(prompt, **options) as answer:
        return str(await answer.get_output())


def tool_messages(bodies: Bodies) -> Bodies:
    return [message for message in bodies[-1]['messages'] if message['role'] == 'tool']


async def rendered(model: OpenAICompatibleModel, body: dict[str, Any]) -> str:
    """The prompt that the server makes of a request, from the first tool result on."""
    asked: dict[str, Any] = {key: body[key] for key in ('model', 'messages', 'tools') if key in body}
    answer = (await post_json(model.client, f'{model.base_url.removesuffix("/v1/")}/apply-template', asked)).value
    assert isinstance(answer, dict)
    _, tag, rest = answer['prompt'].rpartition('<|im_start|>user\n')
    assert tag
    return str(rest).removesuffix('<|im_start|>assistant\n')


@pytest.mark.parametrize(
    ('template', 'shown'),
    [
        (OWN, f'<tool_response>\n{FIRST}\n</tool_response>\n<tool_response>\n{SECOND}\n</tool_response>'),
        ('drops', '<tool_response>\n\n</tool_response>'),
        ('glues', f'<tool_response>\n{FIRST}{SECOND}\n</tool_response>'),
        (
            'dumps as JSON',
            f'<tool_response>\n{json.dumps(NATIVE, ensure_ascii=False)}\n</tool_response>',
        ),
        (
            'dumps as Python',
            f"<tool_response>\n[{PYTHON.format(FIRST)}, {PYTHON.format(SECOND)}]\n</tool_response>",
        ),
    ],
)  # fmt: skip
async def test_what_each_template_makes_of_a_native_list(
    template: str, shown: str, url_of: Callable[[str], str]
) -> None:
    """The templates under test do lose or garble a list; llama.cpp does not join it for them first."""
    call = {'id': 'call00001', 'type': 'function', 'function': {'name': 'get_weather', 'arguments': '{}'}}
    messages = [
        {'role': 'user', 'content': 'Hi'},
        {'role': 'assistant', 'content': '', 'tool_calls': [call]},
        {'role': 'tool', 'tool_call_id': 'call00001', 'content': NATIVE},
    ]
    model = tiny(url_of(template))
    async with model:
        assert await rendered(model, {'model': 'tiny', 'messages': messages}) == f'{shown}<|im_end|>\n'


@pytest.mark.parametrize('prefix', [None, 'llama-cpp'], ids=['bare URL', 'llama-cpp'])
@pytest.mark.parametrize('stream', [False, True], ids=['unary', 'stream'])
@pytest.mark.parametrize('template', [OWN, *LOSING])
async def test_auto_picks_what_keeps_every_element(
    template: str, stream: bool, prefix: str | None, url_of: Callable[[str], str]
) -> None:
    """With a bare URL the server is recognised from its first answer; the tool's result is in the second request."""
    form, content, prompt = ('native', NATIVE, BLOCKS) if template == OWN else ('joined', JOINED, ONE_BLOCK)
    model, bodies = tiny(url_of(template), prefix), Bodies()
    async with agent_on(model) as agent:
        with record_bodies(model.client, bodies):
            assert 'Rome' in await ask(agent, stream=stream)
        assert [body == question('tiny') for body in bodies] == [False, True, False]
        call = bodies[-1]['messages'][1]['tool_calls'][0]
        assert call['function']['name'] == 'get_weather'
        assert tool_messages(bodies) == [{'role': 'tool', 'tool_call_id': call['id'], 'content': content}]
        assert await rendered(model, bodies[-1]) == prompt
    assert model.learned == {'compat_tool_return': form}


@pytest.mark.parametrize('template', [OWN, 'drops', 'glues'])
async def test_with_its_prefix_even_the_first_request_is_right(template: str, url_of: Callable[[str], str]) -> None:
    model, bodies = tiny(url_of(template), 'llama-cpp'), Bodies()
    async with agent_on(model) as agent:
        with record_bodies(model.client, bodies):
            await ask(agent, message_history=HISTORY)
        assert bodies[0] == question('tiny')
        content, prompt = (NATIVE, BLOCKS) if template == OWN else (JOINED, ONE_BLOCK)
        assert tool_messages(bodies[:2]) == [{'role': 'tool', 'tool_call_id': 'call00001', 'content': content}]
        assert await rendered(model, bodies[1]) == prompt


@pytest.mark.parametrize('stream', [False, True], ids=['unary', 'stream'])
async def test_with_a_bare_url_the_first_answer_tells(stream: bool, url_of: Callable[[str], str]) -> None:
    """A list that goes before any answer came is native; from the first answer on, the template is asked."""
    model, bodies = tiny(url_of('drops')), Bodies()
    async with agent_on(model) as agent:
        with record_bodies(model.client, bodies):
            await ask(agent, stream=stream, message_history=HISTORY)
            assert tool_messages(bodies[:1])[0]['content'] == NATIVE
            bodies.clear()
            await ask(agent, stream=stream, message_history=HISTORY)
    assert bodies[0] == question('tiny')
    assert tool_messages(bodies[:2])[0]['content'] == JOINED


@pytest.mark.parametrize('prefix', [None, 'llama-cpp'], ids=['bare URL', 'llama-cpp'])
@pytest.mark.parametrize('stream', [False, True], ids=['unary', 'stream'])
async def test_a_burst_of_runs_asks_once(stream: bool, prefix: str | None, url_of: Callable[[str], str]) -> None:
    model, bodies = tiny(url_of('glues'), prefix), Bodies()
    async with agent_on(model, extra_headers=CLOSE) as agent:
        with record_bodies(model.client, bodies):
            outputs = await asyncio.gather(*[ask(agent, stream=stream) for _ in range(20)])
    assert len(outputs) == 20
    assert bodies.count(question('tiny')) == 1
    sent = [message for body in bodies for message in body['messages'] if message['role'] == 'tool']
    results = [message['content'] for message in sent if message['tool_call_id'] != 'call000001']  # the question's own
    assert results == [JOINED] * len(results)
    assert len(results) >= 20


async def test_the_answer_is_shared_by_instances_until_it_is_forgotten(url_of: Callable[[str], str]) -> None:
    asked = []
    models = [tiny(url_of(OWN), 'llama-cpp'), tiny(url_of(OWN)), tiny(url_of(OWN), 'llama-cpp')]
    for number, model in enumerate(models):
        if number == 2:
            model.forget()
        bodies = Bodies()
        async with agent_on(model) as agent:
            with record_bodies(model.client, bodies):
                await ask(agent, message_history=HISTORY)
        asked.append(bodies.count(question('tiny')))
    assert asked == [1, 0, 1]


async def test_a_knob_spares_the_question(url_of: Callable[[str], str]) -> None:
    model = OpenAICompatibleModel(
        'tiny', base_url=url_of('drops'), provider='llama-cpp', profile={'compat_tool_return': 'joined'}
    )
    bodies = Bodies()
    async with agent_on(model) as agent:
        with record_bodies(model.client, bodies):
            await ask(agent, message_history=HISTORY)
    assert question('tiny') not in bodies
    assert tool_messages(bodies[:1])[0]['content'] == JOINED
