"""What is remembered, by whom and for whom: bursts, threads, other models and APIs; and what the SDK sends again."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import pytest
from openai import AsyncOpenAI
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelRequest, SystemPromptPart, TextPart, UserPromptPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.providers.openai import OpenAIProvider
from refusing import GO, LOOK, Fields, Refusing, always, ask, called, has_list, refusal, system, user
from typing_extensions import override

from oaicompat import OpenAICompatibleModel, OpenAICompatibleResponsesModel
from oaicompat.testing import RecordedRequest, Reply, ScriptedServer, completion

SEED = refusal("Unknown parameter: 'seed'.")
STORE = refusal("Unknown parameter: 'store'.")
BOTH: Any = {'seed': 1, 'openai_store': False}


def has_seed(body: Fields) -> bool:
    return 'seed' in body


def has_store(body: Fields) -> bool:
    return 'store' in body


class Unbounded(Refusing):
    """A server that expects many calls."""

    @override
    def __call__(self, request: RecordedRequest) -> Reply:
        seen, self.bodies = self.bodies, []
        reply = super().__call__(request)
        self.bodies = [*seen, *self.bodies]
        return reply


@pytest.mark.parametrize('stream', [False, True])
async def test_a_burst_of_first_calls_learns_once(stream: bool, caplog: pytest.LogCaptureFixture) -> None:
    handler = Unbounded([(has_seed, SEED), (has_store, STORE)])
    caplog.set_level(logging.WARNING, 'oaicompat')
    async with ScriptedServer(handler) as server, asyncio.timeout(60):
        async with OpenAICompatibleModel('m', base_url=server.base_url) as model:
            calls = [ask(model, settings=BOTH, stream=stream) for _ in range(100)]
            assert {answer.text for answer in await asyncio.gather(*calls)} == {'done'}
            sent = len(handler.bodies)
            await ask(model, settings=BOTH, stream=stream)
            assert set(model.learned['compat_omit']) == {'seed', 'store'}
    assert len(handler.bodies) == sent + 1
    assert sent <= 300
    assert len(caplog.records) <= 2
    assert ['seed' in body or 'store' in body for body in handler.bodies].count(False) == 101


async def test_a_burst_over_different_refusals_keeps_them_all() -> None:
    handler = Unbounded([(has_seed, SEED), (has_list, refusal('messages[2].content: Input should be a valid string'))])
    async with ScriptedServer(handler) as server, asyncio.timeout(60):
        async with OpenAICompatibleModel('m', base_url=server.base_url) as model:
            calls = [ask(model, called(['a', 'b']) if at % 2 else GO, BOTH if at % 3 else None) for at in range(60)]
            assert {answer.text for answer in await asyncio.gather(*calls)} == {'done'}
            assert model.learned == {'compat_omit': ('seed',), 'compat_tool_return': 'joined'}


def test_threads_with_loops_of_their_own_learn_together() -> None:
    """Each thread has a model of its own; all share one memory, and none gets half of a profile."""
    handler = Unbounded([(has_seed, SEED), (has_store, STORE)])
    failures: list[BaseException] = []
    ready, done = threading.Event(), threading.Event()
    url: list[str] = []

    def serve() -> None:
        async def main() -> None:
            async with ScriptedServer(handler) as server:
                url.append(server.base_url)
                ready.set()
                await asyncio.to_thread(done.wait, 60)

        asyncio.run(main())

    async def work(at: int) -> None:
        async with OpenAICompatibleModel('m', base_url=url[0], profile={'compat_idle_timeout': 60 + at}) as model:
            for _ in range(5):
                answers = await asyncio.gather(*[ask(model, settings=BOTH, stream=at % 2 == 0) for _ in range(3)])
                assert {answer.text for answer in answers} == {'done'}
                assert model.profile.get('compat_idle_timeout') == 60 + at
            assert set(model.learned['compat_omit']) == {'seed', 'store'}

    def run(at: int) -> None:
        try:
            asyncio.run(work(at))
        except BaseException as error:
            failures.append(error)

    server = threading.Thread(target=serve)
    server.start()
    assert ready.wait(10)
    threads = [threading.Thread(target=run, args=(at,)) for at in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    done.set()
    server.join(10)
    assert failures == []


def test_one_model_in_many_threads_sees_each_lesson() -> None:
    """A model that exists is resolved anew while other threads teach and forget."""
    model = OpenAICompatibleModel('m', base_url='http://localhost:1/v1', profile=lambda base: {**base, 'x': 1})  # type: ignore[arg-type]
    stop, wrong = threading.Event(), []

    def read() -> None:
        while not stop.is_set():
            profile: Any = model.profile
            if profile.get('x') != 1 or profile.get('compat_omit', ('a',)) not in {('a',), ('a', 'b')}:
                wrong.append(dict(profile))

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    for _ in range(200):
        model._endpoint.note('request.omit', {'compat_omit': ('a',)}, '')
        model._endpoint.note('request.omit', {'compat_omit': ('b',)}, '')
        model.forget()
    stop.set()
    for reader in readers:
        reader.join(10)
    assert wrong == []


async def test_another_model_another_server_another_api_learn_for_themselves() -> None:
    handler = Refusing([(lambda body: 'user' in body, refusal("Unknown parameter: 'user'."))])
    tolerant = Refusing([])
    options: Any = {'openai_user': 'Ada'}
    async with ScriptedServer(handler) as server, ScriptedServer(tolerant) as other:
        async with OpenAICompatibleModel('m', base_url=server.base_url) as model:
            await ask(model, settings=options)
        others: list[OpenAICompatibleModel | OpenAICompatibleResponsesModel] = [
            OpenAICompatibleModel('n', base_url=server.base_url),
            OpenAICompatibleModel('m', base_url=other.base_url),
            OpenAICompatibleResponsesModel('m', base_url=server.base_url),
        ]
        for one in others:
            assert dict(one.learned) == {}
            async with one:
                await ask(one, settings=options)
        assert OpenAICompatibleResponsesModel('m', base_url=server.base_url).learned == {'compat_omit': ('user',)}
        assert OpenAICompatibleModel('m', base_url=f'{server.base_url}/').learned == {'compat_omit': ('user',)}
    assert ['user' in body for body in handler.bodies] == [True, False] * 3
    assert ['user' in body for body in tolerant.bodies] == [True]


async def test_a_lesson_about_the_responses_api_leaves_chat_alone() -> None:
    """VLLM refuses to force a tool for gpt-oss on /responses, and does it on /chat/completions."""
    words = "Only 'auto' or 'none' tool_choice is supported in response API with Harmony"
    refuses = refusal(words, 501, code=501)
    handler = Refusing([(lambda body: 'input' in body and body.get('tool_choice') == 'required', refuses)])
    parameters = ModelRequestParameters(function_tools=[LOOK])
    forced: Any = {'tool_choice': 'required'}
    async with ScriptedServer(handler) as server:
        for kind in (OpenAICompatibleResponsesModel, OpenAICompatibleModel):
            async with kind('m', base_url=server.base_url) as model:
                await ask(model, None, forced, parameters)
    assert [body['tool_choice'] for body in handler.bodies] == ['required', 'auto', 'required']


async def test_nothing_of_one_request_is_left_in_the_next() -> None:
    """A lesson that did not help is in no later profile."""
    handler = Refusing([(has_seed, SEED), (has_store, refusal('This request is not to my taste'))])
    async with ScriptedServer(handler) as server, OpenAICompatibleModel('m', base_url=server.base_url) as model:
        before = dict(model.profile)
        with pytest.raises(ModelHTTPError):
            await ask(model, settings=BOTH)
        assert (dict(model.profile), dict(model.learned)) == (before, {})


async def test_a_cancelled_correction_leaves_nothing() -> None:
    slow = Reply.json(completion('done'), delay=30)
    async with ScriptedServer([SEED, slow, Reply.json(completion('done'))]) as server:
        async with OpenAICompatibleModel('m', base_url=server.base_url) as model:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(ask(model, settings={'seed': 1}), 1)
            assert dict(model.learned) == {}
            assert (await ask(model)).parts == [TextPart('done')]


# What the SDK sends again

TEMPLATE = refusal("raise_exception('Only user and assistant roles are supported!') Error: Jinja Exception", 500)
BUSY = Reply.json({'error': {'message': 'overloaded'}}, 500, headers={'retry-after-ms': '1'})
LIMITED = Reply.json({'error': {'message': 'slow down'}}, 429, headers={'retry-after-ms': '1'})


@pytest.mark.parametrize(('reply', 'sent'), [(TEMPLATE, 1), (BUSY, 3)])
async def test_a_template_that_fails_is_not_sent_again(reply: Reply, sent: int) -> None:
    handler = Refusing([(always, reply)])
    async with ScriptedServer(handler) as server, OpenAICompatibleModel('m', base_url=server.base_url) as model:
        assert model.client.max_retries == 2
        with pytest.raises(ModelHTTPError) as raised:
            await ask(model)
    assert raised.value.status_code == 500
    assert len(handler.bodies) == sent


async def test_on_a_client_of_the_caller_s_the_sdk_does_as_it_does() -> None:
    handler = Refusing(
        [(always, Reply.json({'error': {'message': 'Jinja Exception'}}, 500, headers={'retry-after-ms': '1'}))]
    )
    async with ScriptedServer(handler) as server, AsyncOpenAI(base_url=server.base_url, api_key='k') as client:
        model = OpenAICompatibleModel('m', provider=OpenAIProvider(openai_client=client))
        with pytest.raises(ModelHTTPError):
            await ask(model)
        assert client._client.event_hooks == {'request': [], 'response': []}
    assert len(handler.bodies) == 3


async def test_a_client_of_the_caller_s_adapts_alike() -> None:
    handler = Refusing(
        [(lambda body: any(one['role'] == 'system' for one in body['messages']), refusal('System role not supported'))]
    )
    async with ScriptedServer(handler) as server, AsyncOpenAI(base_url=server.base_url, api_key='k') as client:
        model = OpenAICompatibleModel('m', provider=OpenAIProvider(openai_client=client))
        await ask(model, [ModelRequest([SystemPromptPart('A'), UserPromptPart('go')])])
    assert [body['messages'] for body in handler.bodies] == [[system('A'), user('go')], [user('A\n\ngo')]]


async def test_what_the_sdk_sends_again_is_no_correction() -> None:
    answers = iter([LIMITED, LIMITED, SEED, LIMITED, LIMITED, STORE, LIMITED, None])
    bodies: list[Fields] = []

    def handler(request: RecordedRequest) -> Reply:
        bodies.append(request.json)
        return next(answers) or Reply.json(completion('done'))

    async with ScriptedServer(handler) as server, OpenAICompatibleModel('m', base_url=server.base_url) as model:
        assert (await ask(model, settings=BOTH)).text == 'done'
        assert set(model.learned['compat_omit']) == {'seed', 'store'}
    assert [sorted(body.keys() & {'seed', 'store'}) for body in bodies] == [
        *[['seed', 'store']] * 3,
        *[['store']] * 3,
        *[[]] * 2,
    ]


@pytest.mark.parametrize('adapt', ['on', 'off'])
async def test_a_model_that_is_unknown_names_near_ones_once(adapt: Any) -> None:
    def handler(request: RecordedRequest) -> Reply:
        if request.method == 'GET':
            return Reply.json({'object': 'list', 'data': [{'id': 'glm-5'}, {'id': 'glm-5-air'}, {'id': 'other'}]})
        return refusal('The model `glm5` does not exist', 404, code='model_not_found')

    async with ScriptedServer(handler) as server:
        async with OpenAICompatibleModel('glm5', base_url=server.base_url, profile={'compat_adapt': adapt}) as model:
            with pytest.raises(ModelHTTPError) as raised:
                await ask(model)
    asked = [request.route for request in server.requests]
    assert asked == ['POST /v1/chat/completions', *(['GET /v1/models'] if adapt == 'on' else [])]
    assert ('glm-5' in str(raised.value.message if hasattr(raised.value, 'message') else raised.value)) == (
        adapt == 'on'
    )
