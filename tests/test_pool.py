"""Connections: as many are kept as were in use at once, and else the pool is httpcore's."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import httpcore2
import httpx2
import pytest
from httpcore2 import AsyncConnectionPool
from openai import AsyncOpenAI
from pydantic_ai import messages as m
from pydantic_ai.exceptions import ModelAPIError
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers import Provider
from pydantic_ai.providers.openai import OpenAIProvider

from oaicompat import OpenAICompatibleModel, OpenAICompatibleResponsesModel
from oaicompat._pool import ConnectionStack, keep_connections
from oaicompat.testing import completion

HISTORY: list[m.ModelMessage] = [m.ModelRequest([m.UserPromptPart('Hi')])]
NOTHING = ModelRequestParameters()
ANSWER = json.dumps(completion('Hello')).encode()


@dataclass
class Loopback:
    """A server that counts its connections.

    Attributes:
        url: Where it is.
        opened: How many connections were made.
        now: Those that are open.
        answers: Set while it answers.
        closes: Whether it closes a connection behind an answer, without a word before.
        cut: Whether it closes it inside of an answer.
    """

    url: str = ''
    opened: int = 0
    now: set[asyncio.StreamWriter] = field(default_factory=set)
    answers: asyncio.Event = field(default_factory=asyncio.Event)
    closes: bool = False
    cut: bool = False
    asked: int = 0
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    told: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.opened += 1
        self.now.add(writer)
        self.tasks.add(cast(Any, asyncio.current_task()))
        try:
            while head := await reader.readuntil(b'\r\n\r\n'):
                [length] = [line for line in head.lower().split(b'\r\n') if line.startswith(b'content-length:')]
                await reader.readexactly(int(length.partition(b':')[2]))
                self.asked += 1
                await self.tell()
                await self.answers.wait()
                writer.write(
                    b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n' % len(ANSWER)
                )
                writer.write(ANSWER[:10] if self.cut else ANSWER)
                await writer.drain()
                if self.closes or self.cut:
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            self.now.discard(writer)
            writer.close()
            await self.tell()

    async def tell(self) -> None:
        async with self.told:
            self.told.notify_all()

    async def until(self, true: Callable[[], bool]) -> None:
        async with self.told:
            await self.told.wait_for(true)


@asynccontextmanager
async def loopback() -> AsyncIterator[Loopback]:
    told = Loopback()
    told.answers.set()
    server = await asyncio.start_server(told.serve, '127.0.0.1', 0, backlog=2000)
    told.url = f'http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1'
    try:
        yield told
    finally:
        server.close()
        told.answers.set()
        for writer in [*told.now]:
            writer.close()
        await asyncio.gather(*told.tasks)
        await server.wait_closed()


def pool_of(model: Any) -> Any:
    return model.client._client._transport._pool


async def ask(model: Any) -> str:
    response = await model.request(HISTORY, None, NOTHING)
    [part] = response.parts
    text: str = part.content
    return text


@asynccontextmanager
async def asking(url: str, **limits: Any) -> AsyncIterator[OpenAICompatibleModel]:
    model = OpenAICompatibleModel('m', base_url=url, profile={'compat_adapt': 'off'})
    pool = pool_of(model)
    for name, value in limits.items():
        assert hasattr(pool, name)
        setattr(pool, name, value)
    async with model:
        yield model


async def test_a_thousand_calls_at_once_use_their_connections_again() -> None:
    async with loopback() as server, asking(server.url) as model:
        for _ in range(2):
            assert await asyncio.gather(*(ask(model) for _ in range(1000))) == ['Hello'] * 1000
        assert server.opened == len(pool_of(model).connections)
        assert server.opened <= 1000


async def test_the_parents_pool_keeps_a_hundred_and_closes_the_rest() -> None:
    """Why there is a pool of ours; when this fails, it may be dropped."""
    async with loopback() as server:
        model = OpenAIChatModel('m', provider=OpenAIProvider(base_url=server.url, api_key='k'))
        async with model:
            for asked in (200, 400):
                server.answers.clear()
                calls = [asyncio.create_task(ask(model)) for _ in range(200)]
                await server.until(partial(lambda number: server.asked == number, asked))
                server.answers.set()
                await asyncio.gather(*calls)
            assert server.opened == 300


async def test_calls_one_by_one_use_one_connection() -> None:
    async with loopback() as server, asking(server.url) as model:
        assert [await ask(model) for _ in range(5)] == ['Hello'] * 5
        assert server.opened == 1
        assert type(pool_of(model)) is ConnectionStack
        assert [str(one) for one in pool_of(model).connections] == [
            f"<AsyncHTTPConnection ['{server.url.removesuffix('/v1')}', HTTP/1.1, IDLE, Request Count: 5]>"
        ]
    assert pool_of(model).connections == []


async def test_a_connection_that_the_server_closed_is_not_used_again() -> None:
    async with loopback() as server, asking(server.url) as model:
        server.closes = True
        for number in range(3):
            assert await ask(model) == 'Hello'
            await server.until(lambda: not server.now)
            assert server.opened == number + 1
        assert len(pool_of(model).connections) == 1


async def test_connections_that_nobody_used_are_closed() -> None:
    async with loopback() as server, asking(server.url, _keepalive_expiry=0.2) as model:
        await asyncio.gather(*(ask(model) for _ in range(40)))
        most = server.opened
        assert most > 20
        await asyncio.sleep(0.3)
        for _ in range(4):
            await ask(model)
        await asyncio.sleep(0.01)
        assert len(pool_of(model).connections) == len(server.now) == 1
        assert server.opened == most + 1


async def test_without_an_expiry_they_stay() -> None:
    async with loopback() as server, asking(server.url, _keepalive_expiry=None) as model:
        await asyncio.gather(*(ask(model) for _ in range(5)))
        await ask(model)
        assert len(pool_of(model).connections) == server.opened


async def test_calls_over_the_limit_wait_their_turn() -> None:
    async with loopback() as server, asking(server.url, _max_connections=2) as model:
        done: list[int] = []

        async def numbered(number: int) -> None:
            await ask(model)
            done.append(number)

        await asyncio.gather(*(numbered(number) for number in range(20)))
        assert server.opened == 2
        assert done == sorted(done)


async def test_who_waits_gets_a_new_connection_for_one_that_broke() -> None:
    async with loopback() as server, asking(server.url, _max_connections=1) as model:
        server.closes = True
        assert await asyncio.gather(*(ask(model) for _ in range(4))) == ['Hello'] * 4
        assert server.opened == 4


async def test_waiting_too_long_is_httpcores_error() -> None:
    async with loopback() as server, asking(server.url, _max_connections=1) as model:
        server.answers.clear()
        first = asyncio.create_task(ask(model))
        await server.until(lambda: server.asked == 1)
        pool = pool_of(model)
        request = httpcore2.Request('POST', server.url, extensions={'timeout': {'pool': 0.01}})
        with pytest.raises(httpcore2.PoolTimeout):
            await pool.handle_async_request(request)
        assert not pool._waiters
        server.answers.set()
        assert await first == 'Hello'
        assert await ask(model) == 'Hello'
        assert server.opened == 1


@pytest.mark.parametrize('waits', [True, False])
async def test_a_call_that_is_cancelled_holds_nothing(waits: bool) -> None:
    async with loopback() as server, asking(server.url, _max_connections=1) as model:
        server.answers.clear()
        calls = [asyncio.create_task(ask(model)) for _ in range(3)]
        await server.until(lambda: server.asked == 1)
        await asyncio.sleep(0.01)
        calls.pop(1 if waits else 0).cancel()
        await asyncio.sleep(0.01)
        server.answers.set()
        assert await asyncio.gather(*calls) == ['Hello'] * 2
        assert len(pool_of(model).connections) == 1
        assert not pool_of(model)._waiters


async def test_a_waiter_that_is_cancelled_when_it_was_told_hands_its_connection_on() -> None:
    answer = b'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'
    pool: Any = AsyncConnectionPool(max_connections=1, network_backend=httpcore2.AsyncMockBackend([answer] * 3))
    pool.__class__ = ConnectionStack

    def a_request() -> httpcore2.Request:
        return httpcore2.Request('GET', 'http://h/', headers={'host': 'h'})

    async with pool:
        first = await pool.handle_async_request(a_request())
        assert await first.aread() == b'ok'
        waiting = [asyncio.create_task(pool.handle_async_request(a_request())) for _ in range(2)]
        await asyncio.sleep(0)
        [told, _] = pool._waiters
        await first.aclose()
        assert told.connection is pool.connections[0]
        waiting[0].cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting[0]
        last = await waiting[1]
        assert await last.aread() == b'ok'
        await last.aclose()
        assert [one.info() for one in pool.connections] == ["'http://h:80', HTTP/1.1, IDLE, Request Count: 2"]


async def test_an_answer_that_breaks_off_frees_its_place() -> None:
    async with loopback() as server, asking(server.url, _max_connections=1) as model:
        client = pool_of(model)
        keep_connections(model._provider, own=True)
        server.cut = True
        async with httpx2.AsyncClient(transport=model.client._client._transport) as http:
            with pytest.raises(httpx2.RemoteProtocolError):
                await http.post(server.url, json={})
            assert client.connections == []
            server.cut = False
            assert (await http.post(server.url, json={})).json() == json.loads(ANSWER)


async def test_a_server_that_is_not_there_frees_its_place() -> None:
    async with loopback() as server:
        url = server.url
    async with asking(url, _max_connections=1) as model:
        keep_connections(model._provider, own=True)
        for _ in range(3):
            with pytest.raises(httpx2.ConnectError):
                await model.client._client.post(url, json={})
        assert pool_of(model).connections == []


async def test_other_hosts_make_room_for_each_other() -> None:
    async with loopback() as one, loopback() as two, asking(one.url, _max_connections=2) as model:
        assert [*await asyncio.gather(ask(model), ask(model))] == ['Hello'] * 2
        http = model.client._client
        for _ in range(2):
            assert (await http.post(two.url, json={})).status_code == 200
        await asyncio.sleep(0.01)
        assert (len(one.now), len(two.now)) == (1, 1)
        # A waiter for one host gets a connection of its own for one to the other that came free.
        one.answers.clear()
        two.answers.clear()
        calls = [asyncio.create_task(http.post(two.url, json={})) for _ in range(2)]
        await two.until(lambda: two.asked == 4)
        calls.append(asyncio.create_task(http.post(one.url, json={})))
        await asyncio.sleep(0.01)
        one.answers.set()
        two.answers.set()
        assert [answer.status_code for answer in await asyncio.gather(*calls)] == [200] * 3


async def test_a_stream_that_is_left_frees_its_place() -> None:
    async with loopback() as server, asking(server.url, _max_connections=1) as model:
        keep_connections(model._provider, own=True)
        http = model.client._client
        for _ in range(3):
            async with http.stream('POST', server.url, json={}) as response:
                assert response.status_code == 200
        assert len(server.now) <= 1
        assert await ask(model) == 'Hello'


async def test_a_recorder_in_the_place_of_httpcores_pool_sees_every_request(monkeypatch: pytest.MonkeyPatch) -> None:
    async with loopback() as server, asking(server.url) as model:
        await asyncio.gather(ask(model), ask(model))
        theirs, seen = AsyncConnectionPool.handle_async_request, []

        async def recorded(pool: Any, request: Any) -> Any:
            seen.append(request.url.target)
            return await theirs(pool, request)

        monkeypatch.setattr(AsyncConnectionPool, 'handle_async_request', recorded)
        assert [await ask(model), await ask(model)] == ['Hello'] * 2
        assert seen == [b'/v1/chat/completions'] * 2
        monkeypatch.undo()
        assert await asyncio.gather(*(ask(model) for _ in range(4))) == ['Hello'] * 4


async def test_a_mock_in_the_place_of_the_transport_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    async def mocked(_: Any, request: Any) -> Any:
        return httpx2.Response(200, json=completion('mocked'), request=request)

    async with loopback() as server, asking(server.url) as model:
        assert await ask(model) == 'Hello'
        monkeypatch.setattr(httpx2.AsyncHTTPTransport, 'handle_async_request', mocked)
        assert await ask(model) == 'mocked'


async def test_another_scheme_is_httpcores_error() -> None:
    pool: Any = AsyncConnectionPool()
    pool.__class__ = ConnectionStack
    with pytest.raises(httpcore2.UnsupportedProtocol):
        await pool.handle_async_request(httpcore2.Request('GET', 'gopher://h/'))


async def test_what_a_recorder_gave_away_is_not_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    async with loopback() as server, asking(server.url) as model:
        assert await ask(model) == 'Hello'
        theirs = AsyncConnectionPool.handle_async_request

        async def recorded(pool: Any, request: Any) -> Any:
            return await theirs(pool, request)

        monkeypatch.setattr(AsyncConnectionPool, 'handle_async_request', recorded)
        server.answers.clear()
        first = asyncio.create_task(ask(model))  # on the connection that lies on our stack
        await server.until(lambda: server.asked == 2)
        monkeypatch.undo()
        second = asyncio.create_task(ask(model))
        await server.until(lambda: server.asked == 3)
        server.answers.set()
        assert [*await asyncio.gather(first, second)] == ['Hello'] * 2
        assert server.opened == 2


async def test_connections_to_another_host_are_closed_in_time() -> None:
    async with loopback() as one, loopback() as two, asking(one.url, _keepalive_expiry=0.2) as model:
        await asyncio.gather(*(ask(model) for _ in range(40)))
        await asyncio.sleep(0.3)
        assert (await model.client._client.post(two.url, json={})).status_code == 200
        await one.until(lambda: not one.now)
        assert len(pool_of(model).connections) == 1


async def test_expired_connections_that_cant_be_closed_fail_no_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of an event loop that is gone can't: in the parent one request fails for all of them."""
    answer = b'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'
    pool: Any = AsyncConnectionPool(keepalive_expiry=10.0, network_backend=httpcore2.AsyncMockBackend([answer] * 4))
    pool.__class__ = ConnectionStack

    async def gone(_: Any) -> None:
        raise RuntimeError('Event loop is closed')

    async def get() -> bytes:
        response = await pool.handle_async_request(httpcore2.Request('GET', 'http://h/', headers={'host': 'h'}))
        body: bytes = await response.aread()
        await response.aclose()
        return body

    assert [*await asyncio.gather(get(), get(), get())] == [b'ok'] * 3
    count = len(pool.connections)
    monkeypatch.setattr(httpcore2.AsyncMockStream, 'aclose', gone)
    pool._keepalive_expiry = -1.0
    assert count > 0
    assert await get() == b'ok'
    assert len(pool.connections) == 1


async def test_the_limits_of_a_given_provider_hold() -> None:
    async with loopback() as server:
        provider = OpenAIProvider(base_url=server.url, api_key='k')
        async with OpenAICompatibleModel('m', provider=provider) as model:
            pool = pool_of(model)
            pool._max_keepalive_connections = 3
            await asyncio.gather(*(ask(model) for _ in range(10)))
            assert type(pool) is ConnectionStack
            assert len(pool.connections) == 3


async def test_the_responses_api_and_given_providers_have_it_too() -> None:
    async with loopback() as server:
        provider = OpenAIProvider(base_url=server.url, api_key='k')
        async with OpenAICompatibleModel('m', provider=provider) as model:
            assert await ask(model) == 'Hello'
            assert type(pool_of(model)) is ConnectionStack
        async with OpenAICompatibleResponsesModel('m', base_url=server.url) as other:
            with pytest.raises(ModelAPIError):
                await ask(other)
            assert type(pool_of(other)) is ConnectionStack


def a_provider(change: Callable[[Any], None] = lambda _: None) -> Any:
    provider = OpenAIProvider(base_url='http://h/v1', api_key='k')
    change(provider._own_http_client._transport._pool)  # type: ignore[union-attr]
    return provider


class Own(AsyncConnectionPool):
    pass


@pytest.mark.parametrize(
    'provider',
    [
        pytest.param(lambda: a_provider(lambda pool: setattr(pool, '_http2', True)), id='HTTP/2'),
        pytest.param(lambda: a_provider(lambda pool: setattr(pool, '_proxy', object())), id='a proxy'),
        pytest.param(lambda: a_provider(lambda pool: pool._connections.append(object())), id='connections'),
        pytest.param(lambda: a_provider(lambda pool: pool._requests.append(object())), id='requests'),
        pytest.param(lambda: a_provider(lambda pool: setattr(pool, '__class__', Own)), id='another class'),
        pytest.param(lambda: a_provider(lambda pool: delattr(pool, '_keepalive_expiry')), id='no expiry'),
        pytest.param(lambda: a_provider(lambda pool: delattr(pool, '_max_connections')), id='no limit'),
        pytest.param(lambda: a_provider(lambda pool: delattr(pool, '_connections')), id='no list'),
        pytest.param(lambda: a_provider(lambda pool: delattr(pool, '_max_keepalive_connections')), id='no idle limit'),
        pytest.param(lambda: a_provider(lambda pool: delattr(pool, '_proxy')), id='no proxy known'),
        pytest.param(lambda: OpenAIProvider(api_key='k', http_client=httpx2.AsyncClient()), id='a given HTTP client'),
        pytest.param(lambda: OpenAIProvider(openai_client=AsyncOpenAI(api_key='k')), id='a given client'),
    ],
)
async def test_any_other_pool_stays_as_it_is(provider: Callable[[], Provider[AsyncOpenAI]]) -> None:
    made = provider()
    pool = cast(Any, made.client)._client._transport._pool
    kind, state = type(pool), dict(vars(pool))
    keep_connections(made, own=True)
    assert type(pool) is kind
    assert vars(pool) == state


@pytest.mark.parametrize('provider', [None, object(), 'openai'])
def test_what_is_no_provider_is_nothing_to_keep(provider: object) -> None:
    keep_connections(provider, own=True)


@pytest.mark.parametrize('first', [True, False])
def test_a_recorder_that_was_there_before_the_first_request_sees_all(first: bool) -> None:
    """In a process of its own: who is there first must not count as httpcore's own."""
    code = """
import asyncio, json, httpcore2
from oaicompat import OpenAICompatibleModel
from oaicompat.testing import completion
from pydantic_ai import messages as m
from pydantic_ai.models import ModelRequestParameters
theirs, seen = httpcore2.AsyncConnectionPool.handle_async_request, []
async def recorded(pool, request):
    seen.append(request.url.target)
    body = json.dumps(completion('from a cassette')).encode()
    return httpcore2.Response(200, headers={'content-type': 'application/json'}, content=body)
def record():
    httpcore2.AsyncConnectionPool.handle_async_request = recorded
async def ask():
    model = OpenAICompatibleModel('m', base_url='http://127.0.0.1:9/v1')
    answer = await model.request([m.ModelRequest([m.UserPromptPart('Hi')])], None, ModelRequestParameters())
    print(answer.parts[0].content)
"""
    code += 'record()\nasyncio.run(ask())\n' if first else 'import oaicompat.models\nrecord()\nasyncio.run(ask())\n'
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, encoding='utf-8', check=False)  # noqa: S603  # our own
    assert done.stdout == 'from a cassette\n', done.stderr


async def test_a_connection_whose_answer_has_nothing_to_close(monkeypatch: pytest.MonkeyPatch) -> None:
    async def answered(_: Any, request: Any) -> Any:
        return httpcore2.Response(200, headers={'content-type': 'application/json'}, content=ANSWER)

    async with loopback() as server, asking(server.url) as model:
        monkeypatch.setattr(httpcore2.AsyncHTTPConnection, 'handle_async_request', answered)
        assert await ask(model) == 'Hello'
