"""Each name of pydantic-ai and of the SDK that oaicompat overrides or calls beyond the documented API.

A new upstream version that moves one of them fails here, with the name, and not somewhere in a request.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator
from dataclasses import fields
from functools import cached_property
from typing import Any

import httpx2
import pytest
import strategies as s
import test_parity as chat
from hypothesis import given
from hypothesis import strategies as st
from openai import APIStatusError, AsyncOpenAI, AsyncStream, _streaming_cleanup
from openai._types import RequestOptions
from pydantic_ai import _model_errors, _utils
from pydantic_ai import messages as m
from pydantic_ai._parts_manager import ModelResponsePartsManager
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.models import Model
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel, OpenAIStreamedResponse
from pydantic_ai.profiles import merge_profile
from pydantic_ai.providers import Provider, infer_provider, infer_provider_class
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider
from strategies import Wire

from oaicompat import models
from oaicompat._sdk import isolate

_create = ['self', 'messages', 'stream', 'model_settings', 'model_request_parameters']
OVERRIDDEN: dict[type, dict[str, list[str]]] = {
    OpenAIChatModel: {
        '_completions_create': _create,
        '_instance_profile_defaults': ['self', 'profile'],
        '_map_finish_reason': ['self', 'key'],
        '_map_user_message': ['self', 'message'],
        '_process_response': ['self', 'response'],
        '_process_streamed_response': ['self', 'response', 'model_request_parameters'],
        '_process_thinking': ['self', 'message'],
        '_map_model_response': ['self', 'message'],
        '_map_messages': ['self', 'messages', 'model_request_parameters'],
        '_get_instruction_parts': ['self', 'messages', 'model_request_parameters'],
        '_map_carried_thinking': ['self', 'message'],
        'prepare_messages': ['self', 'messages', 'model_request_parameters'],
    },
    OpenAIStreamedResponse: {
        '_get_event_iterator': ['self'],
        '_validate_response': ['self'],
        '_map_finish_reason': ['self', 'key'],
        '_map_thinking_delta': ['self', 'choice'],
        '_map_tool_call_delta': ['self', 'choice'],
        'get': ['self'],
    },
    OpenAIResponsesModel: {
        '_instance_profile_defaults': ['self', 'profile'],
        '_map_messages': ['self', 'messages', 'model_settings', 'model_request_parameters'],
        '_map_tool_definition': ['self', 'f'],
        '_map_tool_return_output': ['self', 'part'],
        '_process_response': ['self', 'response'],
        '_process_streamed_response': ['self', 'response'],
        '_responses_create': _create,
        'prepare_messages': ['self', 'messages', 'model_request_parameters'],
    },
}
CALLED: list[tuple[Any, str, list[str]]] = [
    (OpenAIChatModel, '__init__', ['self', 'model_name', 'provider', 'profile', 'settings']),
    (OpenAIResponsesModel, '__init__', ['self', 'model_name', 'provider', 'profile', 'settings']),
    (_utils.PeekableAsyncStream, 'peek', ['self']),
    (m.ToolReturnPart, 'content_items', ['self', 'mode']),
    (OpenAIProvider, '__init__', ['self', 'base_url', 'api_key']),
    (OpenAICompatibleProvider, '__init__', ['self', 'name', 'base_url', 'api_key', 'profile']),
    (OpenAICompatibleProvider, 'model_profile', ['model_name']),
    (AsyncOpenAI, 'copy', ['self']),
    (AsyncOpenAI, '_process_response_data', ['self', 'data', 'cast_to', 'response']),
    (AsyncStream, '_iter_events', ['self']),
    (AsyncStream, '__stream__', ['self']),
    (OpenAIStreamedResponse, '_advance_part_boundary', ['self', 'source']),
    (OpenAIStreamedResponse, '_map_text_delta', ['self', 'choice']),
    (ModelResponsePartsManager, 'handle_thinking_delta', ['self', 'vendor_part_id', 'content', 'id', 'provider_name']),
    (
        ModelResponsePartsManager,
        'handle_tool_call_part',
        ['self', 'vendor_part_id', 'tool_name', 'args', 'tool_call_id'],
    ),
    (_model_errors, 'stream_error', ['model_name', 'message', 'body']),
    (_streaming_cleanup, 'drain_response_async', ['response']),
    (AsyncOpenAI, 'with_options', ['self']),
    (AsyncOpenAI, 'post', ['self', 'path', 'cast_to', 'body', 'content']),
]


def parameters_of(owner: Any, name: str) -> list[str]:
    function = getattr(owner, name, None)
    assert function is not None, f'`{owner.__name__}` has no `{name}` any more'
    return list(inspect.signature(function).parameters)


@pytest.mark.parametrize(
    ('owner', 'name', 'parameters'),
    [(owner, name, first) for owner, methods in OVERRIDDEN.items() for name, first in methods.items()],
)
def test_overridden_methods_take_what_they_took(owner: type, name: str, parameters: list[str]) -> None:
    """One more at the end is no drift: ours hand on what they don't name."""
    if isinstance(inspect.getattr_static(owner, name), staticmethod):  # as `_get_instruction_parts` was in 2.63
        parameters = parameters[1:]
    first = parameters_of(owner, name)[: len(parameters)]
    assert first == parameters, f'`{owner.__name__}.{name}` changed its leading parameters'


@pytest.mark.parametrize(('owner', 'name', 'parameters'), CALLED)
def test_called_functions_take_what_they_took(owner: Any, name: str, parameters: list[str]) -> None:
    """Those that are used are there, in this order; most go by keyword."""
    used = [parameter for parameter in parameters_of(owner, name) if parameter in parameters]
    assert used == parameters, f'`{owner.__name__}.{name}` lost a parameter'


@pytest.mark.parametrize(
    ('ours', 'parent'),
    [
        (models.OpenAICompatibleModel, OpenAIChatModel),
        (models.OpenAICompatibleResponsesModel, OpenAIResponsesModel),
        (models._RepairedResponse, OpenAIStreamedResponse),
    ],
)
def test_every_override_is_listed_here(ours: type, parent: type) -> None:
    bases = (models._Compatible, models._ExplainedResponse)
    own = {name: value for base in bases if issubclass(ours, base) for name, value in vars(base).items()} | vars(ours)
    marked = {name for name, value in own.items() if getattr(value, '__override__', False)}
    assert marked - {'__repr__'} == set(OVERRIDDEN[parent])
    inherited = {name for name in own if hasattr(parent, name) and not name.startswith('__')}
    # The marker of a property sits on its getter; the last one is abc's own.
    assert inherited - {'_abc_impl', 'client', 'profile', '_streamed_response_cls'} == marked - {'__repr__'}


@pytest.mark.parametrize('parent', [Model, OpenAIChatModel, OpenAIResponsesModel])
def test_the_profile_is_cached_under_its_own_name(parent: type) -> None:
    """`_Compatible.profile` drops that entry when something was learned."""
    assert isinstance(inspect.getattr_static(parent, 'profile'), cached_property)


@pytest.mark.parametrize('parent', [OpenAIChatModel, OpenAIResponsesModel])
def test_a_model_keeps_what_is_read_from_it(parent: type[OpenAIChatModel]) -> None:
    given_profile: Any = {'supports_tools': False}
    provider = OpenAIProvider(api_key='key')
    model = parent('made-up', provider=provider, profile=given_profile)
    assert (model._profile, model._provider, model.client) == (given_profile, provider, provider.client)
    assert model.profile.get('supports_tools') is False
    assert parent('made-up', provider=provider)._profile is None


def test_profiles_merge_over_nothing_and_over_one_another() -> None:
    one: Any = {'supports_tools': False, 'compat_made_up': 1}
    assert merge_profile(None, one, {'supports_tools': True}) == {'supports_tools': True, 'compat_made_up': 1}


def test_values_have_the_fields_that_are_read() -> None:
    assert {'content', 'outcome', 'tool_name', 'tool_call_id'} <= {field.name for field in fields(m.ToolReturnPart)}
    assert {'parts'} <= {field.name for field in fields(m.ModelRequest)}
    streamed = {field.name for field in fields(OpenAIStreamedResponse)}
    assert {'_response', '_model_profile', '_reasoning_generation', 'provider_details'} <= streamed
    assert isinstance(inspect.getattr_static(m.ToolReturnPart, 'files'), property)
    assert {'max_retries', 'timeout'} <= set(RequestOptions.__annotations__)
    for name in ('name', 'base_url', 'client', 'model_profile'):
        assert hasattr(Provider, name), f'`Provider.{name}` is gone'


def test_providers_are_found_by_name() -> None:
    assert infer_provider_class('openai') is OpenAIProvider
    assert list(inspect.signature(infer_provider).parameters) == ['provider']
    with pytest.raises(ValueError, match='Unknown provider'):
        infer_provider_class('made-up')


async def test_a_client_has_what_isolation_touches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of these is set by the SDK from the environment, and read again when a request is made."""
    names = {'OPENAI_ORG_ID': 'organization', 'OPENAI_PROJECT_ID': 'project', 'OPENAI_ADMIN_KEY': 'admin_api_key'}
    for variable in [*names, 'OPENAI_WEBHOOK_SECRET']:
        monkeypatch.setenv(variable, 'ambient')
    monkeypatch.setenv('OPENAI_CUSTOM_HEADERS', 'x-made-up: ambient')
    async with AsyncOpenAI(api_key='key', default_headers={'x-own': '1'}, default_query={'q': 'own'}) as client:
        read = {name: getattr(client, name) for name in (*names.values(), 'webhook_secret')}
        assert read == dict.fromkeys(read, 'ambient')
        assert (client._custom_headers, client._custom_query) == ({'x-own': '1', 'x-made-up': 'ambient'}, {'q': 'own'})
        assert isinstance(client._ambient_authorizations, frozenset)
        assert set(client._client.event_hooks) == {'request', 'response'}
        isolate(client)
        for one in (client, client.copy(), client.with_options(max_retries=0)):
            assert {name: getattr(one, name) for name in read} == dict.fromkeys(read)
            assert one._custom_headers == {'x-own': '1'}


def test_an_error_leads_back_to_the_request() -> None:
    request = httpx2.Request('POST', 'https://made-up.example/v1', content=b'{"a": 1}')
    cause = APIStatusError('no', response=httpx2.Response(400, request=request), body={'message': 'no'})
    assert cause.request.content == b'{"a": 1}'
    error = ModelHTTPError(400, 'made-up', {'message': 'no'}, headers={'server': 'x'})
    assert (error.status_code, error.body, error.headers) == (400, {'message': 'no'}, {'server': 'x'})
    assert error.hint is None
    assert error.message in str(error)


async def test_peeking_takes_nothing_from_the_stream() -> None:
    async def numbers() -> AsyncIterator[int]:
        for number in (1, 2):
            yield number

    stream: Any = _utils.PeekableAsyncStream(numbers())
    assert [await stream.peek(), await stream.peek()] == [1, 1]
    assert [number async for number in stream] == [1, 2]


# What the zip in `_map_user_message` rests on


async def tool_messages(model: OpenAIChatModel, request: m.ModelMessage) -> list[tuple[str, Any]]:
    assert isinstance(request, m.ModelRequest)
    messages: list[Any] = [message async for message in model._map_user_message(request)]
    return [(message['tool_call_id'], message['content']) for message in messages if message['role'] == 'tool']


def results(request: m.ModelMessage) -> list[tuple[str, str]]:
    """What each part that answers a call says, by the parent's own account."""
    parts: list[Any] = [part for part in request.parts if makes_tool_message(part)]
    said: list[Any] = [p if isinstance(p, m.ToolReturnPart) else m._translate_legacy_retry_part(p) for p in parts]
    return [(part.tool_call_id, part.model_response_str_and_user_content()[0]) for part in said]


def makes_tool_message(part: Any) -> bool:
    return isinstance(part, m.ToolReturnPart) or (part.part_kind == 'retry-prompt' and part.tool_name is not None)


wire, providers = chat.wire, chat.providers
requests = st.lists(st.one_of(*s.plain_request_parts, s.tool_returns(), s.legacy_retries), max_size=6).map(
    m.ModelRequest
)


@given(requests)
async def test_each_tool_return_gives_one_tool_message_in_part_order(wire: Wire, asked: m.ModelRequest) -> None:
    """Also with ids that repeat, files, errors, and a legacy retry, which counts if it names a tool."""
    model = OpenAIChatModel('made-up', provider=wire.providers['openai'])
    assert await tool_messages(model, asked) == results(asked)


@given(requests)
async def test_preparing_keeps_one_tool_message_for_each_result(wire: Wire, asked: m.ModelRequest) -> None:
    model = OpenAIChatModel('made-up', provider=wire.providers['openai'])
    [prepared] = model.prepare_messages([asked])
    assert len(results(prepared)) == len(results(asked))
    assert await tool_messages(model, prepared) == results(prepared)


async def test_ids_that_repeat_and_a_legacy_retry(wire: Wire) -> None:
    with pytest.warns(UserWarning, match='RetryPromptPart'):
        retry = m.RetryPromptPart('again', tool_name='lookup', tool_call_id='call_1')
    asked = m.ModelRequest(
        [
            m.ToolReturnPart('lookup', ['a'], 'call_1'),
            m.UserPromptPart('between'),
            retry,
            m.ToolReturnPart(
                'search', ['b', m.BinaryContent(b'picture', media_type='image/png', identifier='p')], 'call_1'
            ),
        ]
    )
    model = OpenAIChatModel('made-up', provider=wire.providers['openai'])
    expected = [('call_1', '["a"]'), ('call_1', '{"error":"again"}'), ('call_1', '["b","See file p."]')]
    assert await tool_messages(model, asked) == expected
