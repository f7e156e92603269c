"""Bodies reach the wire without the SDK's walk through them; a `create()` of somebody's own gets what it always got."""

from __future__ import annotations

import inspect
import json
from typing import Any

import pytest
from openai import AsyncOpenAI
from openai._response import AsyncAPIResponse
from openai._utils import _transform
from openai.resources.chat import AsyncCompletions
from openai.resources.responses import AsyncResponses
from openai.types.chat import ChatCompletion
from pydantic_ai import messages as m
from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

from oaicompat import OpenAICompatibleModel, OpenAICompatibleResponsesModel
from oaicompat.testing import Reply, ScriptedServer, completion

HISTORY: list[m.ModelMessage] = [
    m.ModelRequest([m.UserPromptPart('Hi')]),
    m.ModelResponse([m.ToolCallPart('look', {'city': 'Rome'}, 'c')]),
    m.ModelRequest([m.ToolReturnPart('look', {'a': [1, None, 'é']}, 'c')]),
]
NOTHING = ModelRequestParameters()
SETTINGS: Any = {'temperature': 0.5, 'extra_body': {'top_k': 5, 'temperature': 0.7}, 'seed': 1, 'stop_sequences': ['x']}


async def sent(kind: Any, settings: Any = SETTINGS, **options: Any) -> dict[str, Any]:
    async with ScriptedServer(lambda _: Reply.json(completion('Hello'))) as server:
        client = AsyncOpenAI(api_key='k', base_url=server.base_url)
        async with client:
            await kind('m', provider=OpenAIProvider(openai_client=client), **options).request(
                HISTORY, settings, NOTHING
            )
    body: dict[str, Any] = server.requests[-1].json
    return body


async def test_the_body_is_the_parents_and_was_not_walked_through(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = await sent(OpenAIChatModel)
    walked: list[Any] = []
    walk = _transform._async_transform_recursive

    async def seen(data: Any, **options: Any) -> Any:
        walked.append(data)
        return await walk(data, **options)

    monkeypatch.setattr(_transform, '_async_transform_recursive', seen)
    assert await sent(OpenAIChatModel) == theirs
    assert 'Hi' in repr(walked)
    walked.clear()
    assert await sent(OpenAICompatibleModel) == theirs
    assert 'Hi' not in repr(walked)
    assert 'Rome' not in repr(walked)


@pytest.mark.parametrize(
    ('kind', 'parent', 'resource', 'field'),
    [
        (OpenAICompatibleModel, OpenAIChatModel, AsyncCompletions, 'messages'),
        (OpenAICompatibleResponsesModel, OpenAIResponsesModel, AsyncResponses, 'input'),
    ],
)
async def test_another_create_gets_its_arguments(
    kind: Any, parent: Any, resource: Any, field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[dict[str, Any]] = []

    class StopError(Exception):
        pass

    async def create(_: Any, **arguments: Any) -> Any:
        given.append({key: value for key, value in arguments.items() if key != 'timeout'})
        raise StopError

    monkeypatch.setattr(resource, 'create', create)
    provider = OpenAIProvider(openai_client=AsyncOpenAI(api_key='k', base_url='https://made-up.example/v1'))
    options: Any = {} if kind is OpenAICompatibleModel else {'profile': {'compat_item_style': 'openai'}}
    history: list[m.ModelMessage] = [m.ModelRequest([m.UserPromptPart('Hi')])]
    for model in (parent('m', provider=provider), kind('m', provider=provider, **options)):
        with pytest.raises(StopError):
            await model.request(history, {'extra_body': {'top_k': 5}, 'temperature': 0.5}, NOTHING)
    theirs, ours = given
    assert ours[field] == theirs[field]
    assert ours['extra_body'] == theirs['extra_body']
    assert {key: value for key, value in ours.items() if value} == {
        key: value for key, value in theirs.items() if value and type(value).__name__ not in ('Omit', 'NotGiven')
    }


async def test_who_wraps_requests_sees_the_whole_body() -> None:
    """As tracing does."""
    seen: list[Any] = []
    for kind in (OpenAIChatModel, OpenAICompatibleModel):
        async with ScriptedServer(lambda _: Reply.json(completion('Hello'))) as server:
            client = AsyncOpenAI(api_key='k', base_url=server.base_url)
            request = client.request

            async def wrapped(cast_to: Any, options: Any, request: Any = request, **more: Any) -> Any:
                seen.append(options.json_data)
                return await request(cast_to, options, **more)

            client.request = wrapped  # type: ignore[method-assign]
            async with client:
                await kind('m', provider=OpenAIProvider(openai_client=client)).request(HISTORY, None, NOTHING)
    assert seen[0] == seen[1]
    assert 'messages' in seen[0]


@pytest.mark.parametrize('settings', [{'extra_body': {'model': 'other'}}, {'extra_body': {'messages': []}}])
async def test_an_extra_body_stands_over_what_is_there(settings: Any) -> None:
    assert await sent(OpenAICompatibleModel, settings) == await sent(OpenAIChatModel, settings)


async def test_what_json_cant_hold_fails_as_in_the_parent() -> None:
    errors = []
    for kind in (OpenAIChatModel, OpenAICompatibleModel):
        with pytest.raises(Exception) as raised:  # noqa: PT011 - whatever it is
            await sent(kind, {'extra_body': {'odd': object()}})
        errors.append((type(raised.value), str(raised.value)))
    assert errors[0] == errors[1]


HOOKS = ['post', 'request', '_prepare_options', '_build_request', '_build_headers']
"""What a client's methods are given a body by."""


def redacting(method: Any, seen: list[Any]) -> Any:
    """`method`, which takes a request's options as its one or its second argument, behind one that changes them."""

    def redact(options: Any) -> None:
        body = getattr(options, 'json_data', options)
        seen.append(json.loads(json.dumps(body, default=str)))
        for message in body['messages']:
            message['content'] = '[REDACTED]'

    if inspect.iscoroutinefunction(method):

        async def wrapped(*given: Any, **named: Any) -> Any:
            redact(named.get('body') or next(one for one in given if hasattr(one, 'json_data')))
            return await method(*given, **named)

        return wrapped

    def called(*given: Any, **named: Any) -> Any:
        redact(named.get('options') or next(one for one in given if hasattr(one, 'json_data')))
        return method(*given, **named)

    return called


@pytest.mark.parametrize('where', ['class', 'base', 'subclass', 'instance'])
@pytest.mark.parametrize('hook', HOOKS)
async def test_a_hook_gets_what_it_got(hook: str, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    method = getattr(AsyncOpenAI, hook)
    if where == 'class':
        monkeypatch.setattr(AsyncOpenAI, hook, redacting(method, seen))
    if where == 'base':
        base = next(one for one in reversed(AsyncOpenAI.__mro__) if hook in vars(one))
        monkeypatch.setattr(base, hook, redacting(vars(base)[hook], seen))
    kind = type('Own', (AsyncOpenAI,), {hook: redacting(method, seen)}) if where == 'subclass' else AsyncOpenAI
    bodies: list[Any] = []
    for model in (OpenAIChatModel, OpenAICompatibleModel):
        async with ScriptedServer(lambda _: Reply.json(completion('Hello'))) as server:
            async with kind(api_key='k', base_url=server.base_url) as client:
                if where == 'instance':
                    setattr(client, hook, redacting(getattr(client, hook), seen))
                asked: list[m.ModelMessage] = [m.ModelRequest([m.UserPromptPart('Hi')])]
                await model('m', provider=OpenAIProvider(openai_client=client)).request(asked, None, NOTHING)
        bodies.append(server.requests[-1].json)
    assert bodies == [{'messages': [{'role': 'user', 'content': '[REDACTED]'}], 'model': 'm', 'stream': False}] * 2
    assert seen[: len(seen) // 2] == seen[len(seen) // 2 :]


@pytest.mark.parametrize('hook', ['_process_response_data', '_process_response'])
async def test_a_hook_for_answers_gets_what_it_got(hook: str, monkeypatch: pytest.MonkeyPatch) -> None:
    method, seen = getattr(AsyncOpenAI, hook), list[Any]()

    def processed(*given: Any, **named: Any) -> Any:
        seen.append(named['cast_to'])
        return method(*given, **named)

    monkeypatch.setattr(AsyncOpenAI, hook, processed)
    await sent(OpenAIChatModel)
    await sent(OpenAICompatibleModel)
    assert seen == [ChatCompletion] * 2


async def test_a_parse_of_somebodys_own_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    parse, seen = AsyncAPIResponse.parse, list[Any]()

    async def parsed(response: Any, **options: Any) -> Any:
        seen.append(await parse(response, **options))
        return seen[-1]

    monkeypatch.setattr(AsyncAPIResponse, 'parse', parsed)
    await sent(OpenAIChatModel)
    await sent(OpenAICompatibleModel)
    assert seen[0] == seen[1]


@pytest.mark.parametrize(
    'headers',
    [
        {'Content-Type': 'multipart/form-data'},
        {'content-type': 'text/plain'},
        {'X-Stainless-Raw-Response': 'true'},
        {'x-stainless-raw-response': 'stream'},
        {'X-Other': 'a'},
    ],
)
@pytest.mark.parametrize('of_client', [True, False])
async def test_headers_that_ask_for_another_form_of_body_or_answer(headers: dict[str, str], of_client: bool) -> None:
    told = []
    for kind in (OpenAIChatModel, OpenAICompatibleModel):
        async with ScriptedServer(lambda _: Reply.json(completion('Hello'))) as server:
            client = AsyncOpenAI(api_key='k', base_url=server.base_url, default_headers=headers if of_client else {})
            async with client:
                model = kind('m', provider=OpenAIProvider(openai_client=client))
                settings: Any = {} if of_client else {'extra_headers': headers}
                try:
                    answer: Any = (await model.request(HISTORY, settings, NOTHING)).parts
                except UnexpectedModelBehavior as error:
                    answer = str(error)
        request = server.requests[-1]
        kind_of_body, _, boundary = str(request.headers.get('content-type')).partition('boundary=')
        body = sorted(request.body.split(boundary.encode())) if boundary else json.loads(request.body)
        told.append((answer, body, kind_of_body))
    assert told[0] == told[1]
