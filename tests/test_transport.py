"""The HTTP client for a server without TLS: pydantic-ai's, but for certificates that it may never need."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpcore2
import httpx2
import pytest
import trustme
from httpcore2 import AsyncConnectionPool
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers import Provider
from pydantic_ai.providers.openai import OpenAIProvider
from typing_extensions import override

from oaicompat import (
    OpenAICompatibleModel,
    OpenAICompatibleResponsesModel,
    Server,
    _pool,
    _transport,
    infer_model,
    register_server,
)
from oaicompat.testing import RecordedRequest, Reply, ScriptedServer, completion

URL = 'http://127.0.0.1:9/v1'


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.lower().endswith('_proxy')]:
        monkeypatch.delenv(name)


def http_of(model: Any) -> Any:
    return model.client._client


def context_of(model: Any) -> ssl.SSLContext | None:
    context: ssl.SSLContext | None = http_of(model)._transport._pool._ssl_context
    return context


def parents() -> OpenAIChatModel:
    return OpenAIChatModel('m', provider=OpenAIProvider(base_url=URL, api_key='k'))


def told(value: Any) -> Any:
    """What an object says of itself, as far as two of its kind may be compared."""
    return {name: repr(of) for name, of in vars(value).items() if ' at 0x' not in repr(of)}


def test_all_else_is_what_the_parent_makes() -> None:
    ours, theirs = http_of(OpenAICompatibleModel('m', base_url=URL)), http_of(parents())
    assert type(ours) is type(theirs)
    assert told(ours) == told(theirs)
    assert type(ours._transport) is type(theirs._transport)
    assert vars(ours._transport).keys() == vars(theirs._transport).keys()
    [cap], [parents_cap] = ours.event_hooks['request'], theirs.event_hooks['request']
    assert (type(cap), vars(cap)) == (type(parents_cap), vars(parents_cap))
    pool, parents_pool = vars(ours._transport._pool), vars(theirs._transport._pool)
    assert pool.pop('_ssl_context') is None
    assert isinstance(parents_pool.pop('_ssl_context'), ssl.SSLContext)
    own = [
        values.pop(name) for values in (pool, parents_pool) for name in ('_network_backend', '_optional_thread_lock')
    ]
    assert [type(one) for one in own[:2]] == [type(one) for one in own[2:]]
    assert pool == parents_pool


LOCAL = [
    pytest.param(lambda: OpenAICompatibleModel('m', base_url=URL), id='url'),
    pytest.param(lambda: OpenAICompatibleModel('m', base_url='localhost:8000/v1'), id='no scheme'),
    pytest.param(lambda: OpenAICompatibleModel('m', base_url='HTTP://10.0.0.7:8000/v1'), id='another machine'),
    pytest.param(lambda: OpenAICompatibleModel('m', base_url=URL, provider='openai'), id='openai'),
    pytest.param(lambda: OpenAICompatibleModel('m', provider='lm-studio'), id='lm-studio'),
    pytest.param(lambda: OpenAICompatibleModel('m', provider='ollama'), id='ollama'),
    pytest.param(lambda: OpenAICompatibleModel('m', base_url=URL, provider='vllm'), id='vllm'),
    pytest.param(lambda: OpenAICompatibleModel('m', base_url=URL, provider='litellm'), id='litellm'),
    pytest.param(lambda: OpenAICompatibleModel('m', base_url=URL, provider='deepseek'), id='hosted, by another'),
    pytest.param(lambda: OpenAICompatibleResponsesModel('m', base_url=URL), id='responses'),
    pytest.param(lambda: infer_model('lm-studio:m'), id='prefix'),
]


@pytest.mark.parametrize('make', LOCAL)
def test_a_server_without_tls_needs_no_certificates(make: Callable[[], Any]) -> None:
    model = make()
    assert str(model.base_url).startswith('http://')
    assert context_of(model) is None
    assert model._provider._own_http_client is http_of(model)


def test_nor_does_one_that_the_sdks_variable_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('OPENAI_BASE_URL', URL)
    monkeypatch.setenv('OPENAI_API_KEY', 'k')
    assert context_of(OpenAICompatibleModel('m')) is None


@pytest.mark.parametrize(
    'make',
    [
        pytest.param(lambda: OpenAICompatibleModel('m', base_url='https://llm.test/v1'), id='url'),
        pytest.param(lambda: OpenAICompatibleModel('m', provider='deepseek', api_key='k'), id='row'),
        pytest.param(lambda: OpenAICompatibleModel('m', provider='openai', api_key='k'), id='openai'),
        pytest.param(
            lambda: OpenAICompatibleModel('m', provider=OpenAIProvider(base_url=URL, api_key='k')), id='given provider'
        ),
        pytest.param(lambda: OpenAICompatibleModel('m', base_url=URL, provider='copilot'), id='a provider with hooks'),
    ],
)
def test_all_others_have_their_certificates_from_the_start(make: Callable[[], Any]) -> None:
    context = context_of(make())
    assert context is not None
    assert context.verify_mode is ssl.CERT_REQUIRED


def test_a_client_that_the_caller_made_is_the_callers() -> None:
    http = httpx2.AsyncClient()
    model = OpenAICompatibleModel('m', provider=OpenAIProvider(base_url=URL, api_key='k', http_client=http))
    assert http_of(model) is http
    assert model._provider._own_http_client is None


@asynccontextmanager
async def with_tls(ca: trustme.CA) -> AsyncIterator[str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert('localhost').configure_cert(context)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b'\r\n\r\n')
        writer.write(b'HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok')
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, '127.0.0.1', 0, ssl=context)
    try:
        yield f'https://localhost:{server.sockets[0].getsockname()[1]}/'
    finally:
        server.close()


@pytest.mark.parametrize('make', [lambda: OpenAICompatibleModel('m', base_url=URL), parents], ids=['ours', 'parent'])
async def test_tls_is_verified_where_it_is_spoken_all_the_same(
    make: Callable[[], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ca = trustme.CA()
    ca.cert_pem.write_to_path(str(tmp_path / 'ca.pem'))
    async with with_tls(ca) as url:
        async with http_of(make()) as http:
            with pytest.raises(httpx2.ConnectError, match='CERTIFICATE_VERIFY_FAILED'):
                await http.get(url)
        monkeypatch.setenv('SSL_CERT_FILE', str(tmp_path / 'ca.pem'))
        async with http_of(make()) as http:
            assert (await http.get(url)).text == 'ok'
            with pytest.raises(httpx2.ConnectError, match='CERTIFICATE_VERIFY_FAILED'):
                await http.get(url.replace('localhost', '127.0.0.1'))


@pytest.mark.parametrize('variable', ['HTTP_PROXY', 'http_proxy', 'ALL_PROXY'])
async def test_a_proxy_that_the_environment_names_is_asked(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[RecordedRequest] = []

    def answer(request: RecordedRequest) -> Reply:
        asked.append(request)
        return Reply.json(completion('through a proxy'))

    async with ScriptedServer(answer) as proxy:
        monkeypatch.setenv(variable, proxy.base_url.removesuffix('/v1'))
        async with OpenAICompatibleModel('m', base_url='http://llm.test/v1') as model:
            assert (await Agent(model).run('Hi')).output == 'through a proxy'
    [request] = asked
    assert request.headers['host'] == 'llm.test'
    assert http_of(model)._mounts.keys() == http_of(parents())._mounts.keys() != set()


async def test_a_client_is_closed_and_made_again_as_the_parent_does() -> None:
    replies = [Reply.json(completion(text)) for text in ('one', 'two', 'three')]
    async with ScriptedServer(replies) as server:
        model = OpenAICompatibleModel('m', base_url=server.base_url)
        agent, first = Agent(model), http_of(model)
        async with agent:
            assert (await agent.run('Hi')).output == 'one'
            assert http_of(model) is first
        assert first.is_closed
        async with agent:
            assert (await agent.run('Hi')).output == 'two'
        second = http_of(model)
        assert second is not first
        assert second.is_closed
        assert (await agent.run('Hi')).output == 'three'  # a client that is closed is made anew
        assert context_of(model) is None
        await http_of(model).aclose()


class Answers(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers['content-length']))
        body = json.dumps(completion('Hello')).encode()
        self.send_response(200)
        self.send_header('content-length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    @override
    def log_message(self, *_: Any) -> None:
        pass


def test_each_event_loop_has_a_client_of_its_own() -> None:
    with ThreadingHTTPServer(('127.0.0.1', 0), Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        model = OpenAICompatibleModel('m', base_url=f'http://127.0.0.1:{server.server_port}/v1')
        clients = []
        for _ in range(2):
            assert asyncio.run(Agent(model).run('Hi')).output == 'Hello'
            clients.append(http_of(model))
        server.shutdown()
    assert clients[0] is not clients[1]
    assert context_of(model) is None


class Wary(httpx2.AsyncHTTPTransport):
    """One of a httpx to come, that makes a context where it is given none."""

    def __init__(self, verify: Any = True, **options: Any) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        super().__init__(verify=verify or context, **options)


class Strict(httpx2.AsyncHTTPTransport):
    """One that takes nothing for a context but a context."""

    def __init__(self, verify: Any = True, **options: Any) -> None:
        if verify is None:
            raise TypeError('verify')
        super().__init__(verify=verify, **options)


class Other(httpx2.AsyncHTTPTransport):
    """One whose pool is of another class."""

    def __init__(self, verify: Any = True, **options: Any) -> None:
        super().__init__(verify=verify, **options)
        self._pool = type('Pool', (AsyncConnectionPool,), {})(ssl_context=verify)


class Hidden(httpx2.AsyncHTTPTransport):
    """One that keeps its context elsewhere."""

    def __init__(self, verify: Any = True, **options: Any) -> None:
        super().__init__(verify=verify, **options)
        vars(self._pool).pop('_ssl_context')


@pytest.mark.parametrize('transport', [Wary, Strict, Other, Hidden])
def test_where_httpx_wants_certificates_it_gets_them(
    transport: type[httpx2.AsyncHTTPTransport], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_transport, 'AsyncHTTPTransport', transport)
    context = context_of(OpenAICompatibleModel('m', base_url=URL))
    assert context is not None
    assert context.verify_mode is ssl.CERT_REQUIRED


@pytest.mark.parametrize('name', ['_own_http_client', '_http_client_factory'])
@pytest.mark.parametrize('gone', [True, False])
def test_where_providers_keep_their_clients_elsewhere_they_make_them(
    name: str, gone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if gone:
        monkeypatch.delattr(Provider, name)
    else:
        monkeypatch.setattr(Provider, name, object())
    model = OpenAICompatibleModel('m', base_url=URL)
    assert context_of(model) is not None


class Fake(httpx2.AsyncClient):
    """What a recorder puts in the place of a client."""

    def __init__(self, **_: Any) -> None:
        super().__init__(transport=httpx2.MockTransport(lambda _: httpx2.Response(200, json=completion('recorded'))))


def init(client: httpx2.AsyncClient, **options: Any) -> None:
    options['transport'] = options.get('transport') or httpx2.MockTransport(
        lambda _: httpx2.Response(200, json=completion('recorded'))
    )
    httpx2_init(client, **options)


httpx2_init = httpx2.AsyncClient.__init__


class Recorder(httpx2.AsyncHTTPTransport):
    @override
    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, json=completion('recorded'))


@pytest.mark.parametrize(
    ('place', 'stand_in'),
    [
        ('pydantic_ai.providers._openai_compatible.create_async_httpx2_client', Fake),
        ('httpx2.AsyncClient', Fake),
        ('httpx2.AsyncClient.__init__', init),
        ('httpx2._client.AsyncHTTPTransport', Recorder),
    ],
)
async def test_who_stands_in_for_httpx_gets_every_request(
    place: str, stand_in: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, stand_in)
    async with OpenAICompatibleModel('m', base_url=URL) as model:
        assert (await Agent(model).run('Hi')).output == 'recorded'


async def test_certificates_are_loaded_once_for_a_pool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ca, loaded = trustme.CA(), list[ssl.SSLContext]()
    ca.cert_pem.write_to_path(str(tmp_path / 'ca.pem'))
    monkeypatch.setenv('SSL_CERT_FILE', str(tmp_path / 'ca.pem'))

    def load() -> ssl.SSLContext:
        loaded.append(httpcore2.default_ssl_context())
        return loaded[-1]

    monkeypatch.setattr(_pool, 'default_ssl_context', load)
    async with with_tls(ca) as url:
        model = OpenAICompatibleModel('m', base_url=URL)
        _pool.keep_connections(model._provider, own=True)
        async with http_of(model) as http:
            assert [(await http.get(url)).text for _ in range(3)] == ['ok'] * 3
    assert loaded == [context_of(model)]


@pytest.mark.parametrize('content', [None, '', 'no certificate'])
async def test_certificates_that_cant_be_loaded_are_an_error_of_the_connection(
    content: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / 'ca.pem'
    if content is not None:
        file.write_text(content, encoding='utf-8')
    monkeypatch.setenv('SSL_CERT_FILE', str(file))
    async with OpenAICompatibleModel('m', base_url=URL) as model:
        _pool.keep_connections(model._provider, own=True)
        with pytest.raises(httpx2.ConnectError):
            await http_of(model).get('https://127.0.0.1:9/')
        assert http_of(model)._transport._pool.connections == []


def test_rows_that_were_registered_are_found_without_tls() -> None:
    register_server(Server(prefix='acme', base_url='http://llm.acme.test/v1', key_vars=('ACME_API_KEY',)))
    model = OpenAICompatibleModel('m', base_url='http://llm.acme.test/v1', api_key='k')
    assert model._server is not None
    assert model._server.prefix == 'acme'
    assert context_of(model) is None


def test_rows_are_not_read_for_a_url_that_none_of_them_has() -> None:
    code = f"""
import json, sys
from oaicompat import OpenAICompatibleModel
OpenAICompatibleModel('m', base_url={URL!r})
loaded = [name for name in ('servers', '_server', '_rows', '_dialects') if f'oaicompat.{{name}}' in sys.modules]
from oaicompat import Server, register_server
register_server(Server(prefix='acme', base_url={URL!r}))
print(json.dumps([loaded, OpenAICompatibleModel('m', base_url={URL!r})._server.prefix]))
"""
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, encoding='utf-8', check=False)  # noqa: S603  # our own
    assert json.loads(done.stdout or 'null') == [[], 'acme'], done.stderr
