"""`OpenAICompatibleModel` equals `OpenAIChatModel`, body for body and result for result.

Both send through one provider and its default client to a mock transport. First with the documented differences
switched off: everything is equal. Then each difference by itself: the body that it makes, and nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from importlib import import_module
from typing import Any, NamedTuple, cast

import pytest
import respx
import strategies as s
from hypothesis import example, given, settings
from hypothesis import strategies as st
from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai import messages as m
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.native_tools import WebSearchTool
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.providers import Provider, infer_provider_class
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider
from pydantic_core import to_json
from strategies import Call, Wire, outcome

from oaicompat import OpenAICompatibleModel
from oaicompat.routing import mixed
from oaicompat.testing import completion, tool_call

# Sending


@pytest.fixture(scope='module')
def providers() -> Iterator[dict[str, Provider[AsyncOpenAI]]]:
    """Two hosts, for all tests of a module: a client takes longer to make than all examples of a test."""
    made: dict[str, Provider[AsyncOpenAI]] = {
        'openai': OpenAIProvider(api_key='key'),
        'made-up': OpenAICompatibleProvider('made-up', base_url='https://made-up.example/v1', api_key='key'),
    }
    yield made
    for provider in made.values():
        asyncio.run(provider.client.close())


@pytest.fixture
def wire(providers: dict[str, Provider[AsyncOpenAI]]) -> Iterator[Wire]:
    made = Wire(providers)
    with respx.mock(using='httpcore2', assert_all_called=False) as router:
        router.route().mock(side_effect=made)
        yield made


def chat_pair(
    name: str, provider: Provider[AsyncOpenAI], base: type[OpenAIChatModel] = OpenAIChatModel
) -> tuple[OpenAIChatModel, OpenAICompatibleModel]:
    """Parent and child with the documented differences switched off."""
    parent = base(name, provider=provider)
    several = parent.profile.get('openai_chat_supports_multiple_system_messages', True)
    same = ModelProfile(openai_chat_supports_multiple_system_messages=several)  # type: ignore[typeddict-unknown-key]
    if base is not OpenAIChatModel:  # some upstream constructors ask whether there is a profile
        parent = base(name, provider=provider, profile=same)
    return parent, mixed(base)(name, provider=provider, profile=cast(Any, {'compat_tool_return': 'string', **same}))


async def assert_equal(pair: tuple[Model[Any], Model[Any]], call: Call, wire: Wire) -> dict[str, Any]:
    parent, child = pair
    expected = await outcome(parent, call, wire)
    assert await outcome(child, call, wire) == expected
    return expected


# What is sent is equal

hosts = st.sampled_from(['openai', 'made-up'])
models = st.sampled_from(s.MODELS)
calls = st.builds(
    Call,
    s.histories(*s.unprepared_request_parts),
    s.parameters(),
    s.model_settings,
    stream=st.booleans(),
    prepared=st.booleans(),
)


@given(models, hosts, calls)
async def test_requests_and_errors_are_equal(wire: Wire, name: str, host: str, call: Call) -> None:
    await assert_equal(chat_pair(name, wire.providers[host]), call, wire)


@given(models, hosts, st.builds(Call, s.histories(), s.parameters(), stream=st.booleans()))
async def test_what_can_be_sent_is_sent_equal(wire: Wire, name: str, host: str, call: Call) -> None:
    """Only part kinds that every history may hold, so that most examples reach the wire."""
    await assert_equal(chat_pair(name, wire.providers[host]), call, wire)


# Addresses, so that nothing is looked up before it is downloaded.
downloads: st.SearchStrategy[Any] = st.sampled_from(
    [
        m.AudioUrl('https://93.184.216.34/a.wav'),
        m.DocumentUrl('https://93.184.216.34/a.pdf'),
        m.DocumentUrl('https://93.184.216.34/a.txt'),
        m.ImageUrl('https://93.184.216.34/a.png', force_download=True),
    ]
)
refused_files: st.SearchStrategy[Any] = st.one_of(
    st.just(m.VideoUrl('https://example.com/film.mp4')),
    st.just(m.BinaryContent(b'film', media_type='video/mp4')),
    st.just(m.BinaryContent(b'song', media_type='audio/ogg')),
    st.just(m.BinaryContent(b'\xff\xfe', media_type='text/plain')),
    st.just(m.UploadedFile(file_id='file-1', provider_name='anthropic')),
)


@settings(max_examples=10)
@given(st.lists(downloads, min_size=1, max_size=3), st.booleans())
async def test_downloaded_files_are_sent_equal(wire: Wire, content: list[Any], stream: bool) -> None:
    history: list[m.ModelMessage] = [m.ModelRequest([m.UserPromptPart(content)])]
    seen = await assert_equal(chat_pair('gpt-4o', wire.providers['openai']), Call(history, stream=stream), wire)
    assert len(seen['posted']) == 1


class _Odd:
    """Nothing that JSON, or the parent, knows."""


_circular: list[Any] = ['a']
_circular.append(_circular)
UNHOLDABLE: dict[str, Any] = {
    'object': _Odd(),
    'object in a list': ['a', _Odd()],
    'object in a dict': {'a': _Odd()},
    'class': _Odd,
    'complex number': 1j,
    'bytes that are no text': b'\xff\xfe',
    'lone surrogate': '\ud800',
    'lone surrogate in a list': ['\ud800'],
    'tuple as key': {(1, 2): 'a'},
    'number as key': {1: 'a'},
    'not a number': float('nan'),
    'infinity in a list': [float('inf')],
    'list that holds itself': _circular,
    'video': m.VideoUrl('https://example.com/film.mp4'),
    'exception': [ValueError('no')],
}


@pytest.mark.parametrize('stream', [False, True])
@pytest.mark.parametrize('content', UNHOLDABLE.values(), ids=UNHOLDABLE.keys())
async def test_tool_returns_that_json_cant_hold_fail_equal(wire: Wire, content: Any, stream: bool) -> None:
    history: list[m.ModelMessage] = [m.ModelRequest([m.ToolReturnPart('lookup', content, 'call_1')])]
    for prepared in (True, False):
        call = Call(history, stream=stream, prepared=prepared)
        await assert_equal(chat_pair('made-up', wire.providers['made-up']), call, wire)


@given(refused_files, st.booleans(), st.booleans())
async def test_files_that_the_parent_refuses_are_refused_equal(
    wire: Wire, content: Any, stream: bool, returned: bool
) -> None:
    part = m.ToolReturnPart('lookup', ['a', content], 'call_1') if returned else m.UserPromptPart(['a', content])
    call = Call([m.ModelRequest([part])], stream=stream, prepared=False)
    seen = await assert_equal(chat_pair('gpt-4o', wire.providers['made-up']), call, wire)
    assert 'error' in seen


@pytest.mark.parametrize(
    'parameters',
    [
        ModelRequestParameters(native_tools=[WebSearchTool()]),
        ModelRequestParameters(output_mode='native', output_object=None),
        ModelRequestParameters(function_tools=s._tools, output_mode='image', allow_image_output=True),
    ],
    ids=['web search', 'native output without an object', 'image output'],
)
async def test_parameters_that_the_parent_refuses_are_refused_equal(
    wire: Wire, parameters: ModelRequestParameters
) -> None:
    call = Call([m.ModelRequest([m.UserPromptPart('Hi')])], parameters)
    seen = await assert_equal(chat_pair('made-up', wire.providers['made-up']), call, wire)
    assert seen['posted'] == []


class Upstream(NamedTuple):
    """One of pydantic-ai's own subclasses, and what to make it with."""

    base: type[OpenAIChatModel]
    name: str
    provider: Provider[AsyncOpenAI]


_UPSTREAM: list[tuple[str, str, dict[str, str]]] = [
    ('ollama.OllamaModel', 'qwen3:8b', {'base_url': 'http://localhost:11434/v1'}),
    ('openrouter.OpenRouterModel', 'anthropic/claude-sonnet-4-5', {'api_key': 'key'}),
    ('zai.ZaiModel', 'glm-5', {'api_key': 'key'}),
    ('cerebras.CerebrasModel', 'gpt-oss-120b', {'api_key': 'key'}),
    ('crusoe.CrusoeModel', 'zai/GLM-5.2', {'api_key': 'key'}),
    ('snowflake.SnowflakeModel', 'claude-sonnet-4-5', {'account': 'org-account', 'token': 'token'}),
    ('github_copilot.GitHubCopilotModel', 'gpt-4o', {'api_key': 'key'}),
]


@pytest.fixture(params=_UPSTREAM, ids=[row[0] for row in _UPSTREAM])
async def upstream(request: pytest.FixtureRequest, wire: Wire) -> AsyncIterator[Upstream]:
    path, name, arguments = request.param
    module, _, class_name = path.partition('.')
    base = getattr(import_module(f'pydantic_ai.models.{module}'), class_name)
    provider = infer_provider_class(module.replace('_', '-'))(**arguments)
    yield Upstream(base, name, provider)
    await provider.client.close()


async def test_a_class_mixed_into_an_upstream_one_sends_equal(wire: Wire, upstream: Upstream) -> None:
    """The knob alone is given, so that constructors which ask for a profile find none, as in the parent."""
    base, name, provider = upstream
    look: list[Any] = ['look', m.ImageUrl(s.PICTURE_URL), m.CachePoint()]
    history: list[m.ModelMessage] = [
        m.ModelRequest([m.SystemPromptPart('S'), m.UserPromptPart(look)]),
        m.ModelResponse([m.ThinkingPart('hm'), m.TextPart('yes'), m.ToolCallPart('lookup', {'city': 'Z'}, 'call_1')]),
        m.ModelRequest([m.ToolReturnPart('lookup', ['a', {'b': 1}], 'call_1')]),
    ]
    pair = base(name, provider=provider), mixed(base)(name, provider=provider, profile={'compat_tool_return': 'string'})
    for stream in (False, True):
        call = Call(history, ModelRequestParameters(function_tools=s._tools), {'max_tokens': 9}, stream, prepared=False)
        seen = await assert_equal(pair, call, wire)
        assert len(seen['posted']) == 1


@given(calls)
async def test_a_mixed_class_sends_every_history_equal(wire: Wire, upstream: Upstream, call: Call) -> None:
    await assert_equal(chat_pair(upstream.name, upstream.provider, upstream.base), call, wire)


# What comes back is equal


@given(st.tuples(models, hosts), s.answers(), st.booleans())
async def test_responses_are_equal(wire: Wire, site: tuple[str, str], answer: Any, raw: bool) -> None:
    wire.answers = [answer]
    everything: Any = {'openai_include_unmapped_response_data': raw, 'openai_include_raw_annotations': raw}
    call = Call([m.ModelRequest([m.UserPromptPart('Hi')])], settings=everything)
    seen = await assert_equal(chat_pair(site[0], wire.providers[site[1]]), call, wire)
    assert 'response' in seen


SPACE_FIRST: dict[str, Any] = {**completion('\r0'), 'made_up': None}


@given(st.tuples(models, hosts), s.answers(), st.integers(1, 9), st.booleans())
@example(('gpt-5', 'made-up'), SPACE_FIRST, 1, True)
async def test_streams_are_equal(wire: Wire, site: tuple[str, str], answer: Any, size: int, raw: bool) -> None:
    """The same events in the same order, and the same response at the end."""
    wire.answers = [s.chunks(answer, size)]
    everything: Any = {'openai_include_unmapped_response_data': raw, 'openai_include_raw_annotations': raw}
    call = Call([m.ModelRequest([m.UserPromptPart('Hi')])], settings=everything, stream=True)
    seen = await assert_equal(chat_pair(site[0], wire.providers[site[1]]), call, wire)
    assert 'response' in seen


@given(s.answers(), st.booleans())
async def test_a_mixed_class_gives_equal_responses(wire: Wire, upstream: Upstream, answer: Any, stream: bool) -> None:
    wire.answers = [s.chunks(answer, 5) if stream else answer]
    call = Call([m.ModelRequest([m.UserPromptPart('Hi')])], stream=stream)
    await assert_equal(chat_pair(upstream.name, upstream.provider, upstream.base), call, wire)


# Whole runs are equal


def without_accidents(value: Any) -> Any:
    """Messages without what differs from run to run."""
    if isinstance(value, list):
        return [without_accidents(item) for item in value]
    if isinstance(value, dict):
        accidental = {'timestamp', 'run_id', 'conversation_id'}
        return {key: without_accidents(item) for key, item in value.items() if key not in accidental}
    return value


async def agent_run(model: Model[Any], output_type: Any, stream: bool, wire: Wire) -> dict[str, Any]:
    agent = Agent(model, instructions='Be brief.', system_prompt=('One.', 'Two.'), output_type=output_type)

    @agent.tool_plain
    def lookup(city: str) -> list[Any]:
        return [city, {'sunny': True}, m.BinaryContent(b'picture', media_type='image/png', identifier='p')]

    wire.posted.clear()
    if stream:
        async with agent.run_stream('Hi') as streamed:
            seen = [output async for output in streamed.stream_output(debounce_by=None)]
            messages = streamed.all_messages()
    else:
        result = await agent.run('Hi')
        seen, messages = [result.output], result.all_messages()
    dumped = m.ModelMessagesTypeAdapter.dump_python(messages, mode='json')
    return {'output': seen, 'messages': without_accidents(dumped), 'posted': list(wire.posted)}


@pytest.mark.parametrize('host', ['openai', 'made-up'])
@pytest.mark.parametrize('stream', [False, True])
@pytest.mark.parametrize(
    ('output_type', 'last'),
    [
        (str, completion('Sunny.', reasoning_content='Let me see.')),
        (s.Point, completion(tool_calls=[tool_call('final_result', {'x': 1}, 'call_2')])),
    ],
    ids=['text', 'tool'],
)
async def test_agents_run_equal(wire: Wire, host: str, stream: bool, output_type: Any, last: Any) -> None:
    """A retried call, a call whose result holds a list and a file, and the answer."""
    steps = [
        completion(tool_calls=[tool_call('lookup', {'town': 'Z'}, 'call_0')]),
        completion(tool_calls=[tool_call('lookup', {'city': 'Z'})]),
        last,
    ]
    wire.answers = [s.chunks(step, 4) for step in steps] if stream else steps
    parent, child = chat_pair('gpt-4o', wire.providers[host])
    expected = await agent_run(parent, output_type, stream, wire)
    assert await agent_run(child, output_type, stream, wire) == expected
    assert len(expected['posted']) == 3


# Different: each documented difference, and nothing else

_leading = m.ModelRequest([m.SystemPromptPart('One.'), m.SystemPromptPart('Two.'), m.UserPromptPart('Hi')])
_result = m.ModelRequest([m.ToolReturnPart('lookup', ['a', {'b': 1}, ''], 'call_1')])
_native = [{'type': 'text', 'text': 'a'}, {'type': 'text', 'text': '{"b":1}'}]
_apart = [{'role': 'system', 'content': 'One.'}, {'role': 'system', 'content': 'Two.'}]
_hi = {'role': 'user', 'content': 'Hi'}


@pytest.mark.parametrize('stream', [False, True])
@pytest.mark.parametrize(
    ('host', 'request_', 'messages'),
    [
        ('openai', _leading, [*_apart, _hi]),
        ('made-up', _leading, [{'role': 'system', 'content': 'One.\n\nTwo.'}, _hi]),
        ('openai', _result, [{'role': 'tool', 'tool_call_id': 'call_1', 'content': _native}]),
        ('made-up', _result, [{'role': 'tool', 'tool_call_id': 'call_1', 'content': _native}]),
    ],
)
async def test_a_documented_difference_is_this_body(
    wire: Wire, host: str, request_: m.ModelRequest, messages: list[Any], stream: bool
) -> None:
    child = OpenAICompatibleModel('gpt-4o', provider=wire.providers[host])
    await outcome(child, Call([request_], stream=stream), wire)
    options = {'stream_options': {'include_usage': True}} if stream else {}
    expected = {'model': 'gpt-4o', 'messages': messages, 'stream': stream, **options}
    assert [body for _, _, body in wire.posted] == [expected]


def merged(messages: list[Any]) -> list[Any]:
    roles = [message['role'] for message in messages]
    count = next((at for at, role in enumerate(roles) if role not in {'system', 'developer'}), len(roles))
    if count < 2:
        return messages
    content = '\n\n'.join(message['content'] for message in messages[:count])
    return [{**messages[0], 'content': content}, *messages[count:]]


def native(part: m.ToolReturnPart[Any], content: str) -> Any:
    if not isinstance(part.content, list) or part.outcome in {'failed', 'retried'}:
        return content
    texts = [item if isinstance(item, str) else to_json(item).decode() for item in part.content]
    return [{'type': 'text', 'text': text} for text in texts if text] or content


@given(
    models,
    hosts,
    st.builds(
        Call,
        s.histories(content=s.json_values | st.lists(s.json_values)),
        s.parameters(),
        s.model_settings,
        stream=st.booleans(),
        prepared=st.just(False),  # so that the order of the results is that of the history
    ),
)
async def test_nothing_else_differs(wire: Wire, name: str, host: str, call: Call) -> None:
    """The child's request, with all defaults, is the parent's with lists made native and system messages merged."""
    expected = await outcome(OpenAIChatModel(name, provider=wire.providers[host]), call, wire)
    parts = [part for message in call.history for part in message.parts if isinstance(part, m.ToolReturnPart)]
    for _, headers, body in expected['posted']:
        results = iter(parts)
        for message in body['messages']:
            if message['role'] == 'tool':
                message['content'] = native(next(results), message['content'])
        body['messages'] = body['messages'] if host == 'openai' else merged(body['messages'])
        headers.pop('content-length')
    seen = await outcome(OpenAICompatibleModel(name, provider=wire.providers[host]), call, wire)
    for _, headers, _ in seen['posted']:
        headers.pop('content-length')
    assert seen == expected
