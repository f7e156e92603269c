"""The scripted server, seen from raw sockets, from httpx2 and from the OpenAI SDK."""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx2
import openai
import pytest
from openai.types.chat import ChatCompletion

from oaicompat import testing
from oaicompat.testing import RecordedRequest, Reply, ScriptedServer, chunk, completion, tool_call

GET = b'GET / HTTP/1.1\r\n\r\n'
GET_AND_CLOSE = b'GET / HTTP/1.1\r\nConnection: close\r\n\r\n'


@pytest.fixture(autouse=True)
async def no_task_is_left() -> AsyncIterator[None]:
    """Leaving the server's context leaves nothing behind, whatever a test does."""
    before = asyncio.all_tasks()
    yield
    assert asyncio.all_tasks() - before <= {asyncio.current_task()}


@asynccontextmanager
async def connected(server: ScriptedServer) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection('127.0.0.1', server.port)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def sent_for(reply: Reply, request: bytes = GET) -> bytes:
    """All that the server sends for one request, until it closes."""
    async with ScriptedServer([reply]) as server, connected(server) as (reader, writer), asyncio.timeout(5):
        writer.write(request)
        return await reader.read()


async def get_all(script: testing.Script, *paths: str) -> list[httpx2.Response]:
    """The responses to a GET of each path, over one client."""
    async with ScriptedServer(script) as server, httpx2.AsyncClient() as client:
        return [await client.get(server.root_url + path) for path in paths]


async def ask(server: ScriptedServer) -> ChatCompletion:
    async with server, openai.AsyncOpenAI(base_url=server.base_url, api_key='sk-made-up') as client:
        return await client.chat.completions.create(model='m', messages=[{'role': 'user', 'content': 'Hi'}])


@pytest.mark.parametrize(
    ('framing', 'ending', 'after_status'),
    [
        ('chunked', 'clean', b'Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\n\r\n'),
        ('chunked', 'drop', b'Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n1\r\na\r\n2\r\nbc\r\n'),
        ('length', 'clean', b'Content-Length: 3\r\nConnection: close\r\n\r\nabc'),
        ('length', 'drop', b'Content-Length: 4\r\nConnection: close\r\n\r\nabc'),
        ('close', 'clean', b'Connection: close\r\n\r\nabc'),
    ],
)
async def test_exact_bytes(framing: testing.Framing, ending: testing.Ending, after_status: bytes) -> None:
    reply = Reply(headers={'x-Y': '1'}, pieces=(b'a', b'', b'bc'), framing=framing, ending=ending)
    assert await sent_for(reply, GET_AND_CLOSE) == b'HTTP/1.1 200 OK\r\nx-Y: 1\r\n' + after_status


async def test_each_piece_arrives_on_its_own_and_in_time() -> None:
    reply = Reply.raw(b'abc', delay=0.02, pause=0.02, framing='close').cut(1)
    async with ScriptedServer([reply]) as server, connected(server) as (reader, writer):
        start = time.monotonic()
        writer.write(GET)
        await reader.readuntil(b'\r\n\r\n')
        assert [await reader.read(99) for _ in range(4)] == [b'a', b'b', b'c', b'']
        assert time.monotonic() - start >= 0.05


@pytest.mark.parametrize(
    ('reply', 'sent'),
    [
        (Reply.bare(), b''),
        (Reply.bare(b'nonsense'), b'nonsense'),
        (Reply(204), b'HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n'),
        (Reply(304, {'Connection': 'close'}), b'HTTP/1.1 304 Not Modified\r\nConnection: close\r\n\r\n'),
        (
            Reply(599, {'content-length': '9'}, framing='length'),
            b'HTTP/1.1 599 \r\ncontent-length: 9\r\nConnection: close\r\n\r\n',
        ),
    ],
)
async def test_exact_bytes_without_a_body(reply: Reply, sent: bytes) -> None:
    """Given headers win over the server's own, even if they lie."""
    assert await sent_for(reply, GET_AND_CLOSE) == sent


async def test_head_request_gets_the_head_only() -> None:
    head = b'HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\n'
    assert await sent_for(Reply(pieces=(b'abc',), framing='length'), GET_AND_CLOSE.replace(b'GET', b'HEAD')) == head


async def test_reset_arrives_as_a_reset_after_the_bytes() -> None:
    reply = Reply.raw(b'abc', ending='reset')
    async with ScriptedServer([reply]) as server, connected(server) as (reader, writer):
        writer.write(GET)
        assert (await reader.readuntil(b'\r\n\r\n')).endswith(b'Content-Length: 4\r\n\r\n')
        with pytest.raises(ConnectionResetError):
            await reader.read()


@pytest.mark.parametrize(('ending', 'at_end'), [('stall', False), ('half-close', True)])
async def test_connection_stays_until_the_client_leaves(ending: testing.Ending, at_end: bool) -> None:
    async with ScriptedServer([Reply.raw(b'abc', ending=ending)]) as server, asyncio.timeout(5):
        async with connected(server) as (reader, writer):
            writer.write(GET)
            await reader.readuntil(b'Content-Length: 4\r\n\r\nabc')
            await asyncio.sleep(0.02)
            assert (reader.at_eof(), server.open_connections) == (at_end, 1)
        await server.wait_disconnected()
        assert server.open_connections == 0


@pytest.mark.parametrize('ending', ['drop', 'reset', 'half-close'])
@pytest.mark.parametrize('framing', ['chunked', 'length', 'bare'])
async def test_clients_notice_an_unfinished_body(framing: testing.Framing, ending: testing.Ending) -> None:
    reply = Reply(pieces=(b'HTTP/1.1 200',), framing=framing, ending=ending)
    async with ScriptedServer([reply]) as server, httpx2.AsyncClient() as client:
        with pytest.raises((httpx2.RemoteProtocolError, httpx2.ReadError)):
            await client.get(server.root_url)


async def test_requests_share_a_connection_for_chunked_and_length() -> None:
    server = ScriptedServer(
        [Reply.text('one'), Reply.sse('two'), Reply.text('three', framing='close'), Reply.text('4')]
    )
    async with server, httpx2.AsyncClient() as client:
        texts = [(await client.get(server.root_url)).text for _ in range(4)]
    assert texts == ['one', 'twodata: [DONE]\n\n', 'three', '4']
    assert server.connections == 2


@pytest.mark.parametrize('reply', [Reply(delay=60), Reply(pieces=(b'a', b'b'), pause=60), Reply(ending='stall')])
async def test_client_that_leaves_ends_what_is_played(reply: Reply) -> None:
    async with ScriptedServer([reply]) as server:
        async with httpx2.AsyncClient(timeout=0.03) as client:
            with pytest.raises(httpx2.ReadTimeout):
                await client.get(server.root_url)
        async with asyncio.timeout(5):
            await server.wait_disconnected()


async def test_client_that_never_reads_does_not_hold_up_closing() -> None:
    async with ScriptedServer([Reply.raw(b'x' * 2**25)]) as server, connected(server) as (_, writer):
        writer.transport.pause_reading()  # type: ignore[attr-defined]  # typeshed says WriteTransport
        writer.write(GET)
        await asyncio.sleep(0.02)
        assert server.open_connections == 1


async def test_closing_with_connections_in_every_state() -> None:
    """Idle, in mid-head, in mid-body, in the handler, and not yet accepted."""

    async def forever(request: RecordedRequest) -> Reply:
        await asyncio.Event().wait()
        raise AssertionError(request)

    async with AsyncExitStack() as clients, asyncio.timeout(5):
        async with ScriptedServer(forever) as server:
            for sent in (b'', b'POST / HT', b'POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n123', GET):
                _, writer = await clients.enter_async_context(connected(server))
                writer.write(sent)
            await asyncio.sleep(0.02)
            assert server.open_connections == 4
            await clients.enter_async_context(connected(server))
        assert server.open_connections == 0
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection('127.0.0.1', server.port)


async def test_request_of_a_client_that_left_at_once_is_recorded() -> None:
    recorded = asyncio.Semaphore(0)

    def handler(request: RecordedRequest) -> Reply:
        recorded.release()
        return Reply.text(request.path)

    async with ScriptedServer(handler) as server, asyncio.timeout(5):
        for _ in range(20):
            async with connected(server) as (_, writer):
                writer.write(GET)
                writer.close()
                await writer.wait_closed()
            await recorded.acquire()


async def test_server_is_started_once_by_its_context() -> None:
    server = ScriptedServer([])
    with pytest.raises(RuntimeError, match='started by `async with`'):
        _ = server.base_url
    async with server:
        assert server.base_url == f'http://127.0.0.1:{server.port}/v1'
    with pytest.raises(RuntimeError, match='used once'):
        await server.__aenter__()


async def test_request_is_recorded_whole() -> None:
    async with ScriptedServer([Reply.json({})]) as server, httpx2.AsyncClient() as client:
        await client.post(f'{server.base_url}/chat/completions?a=b', json={'model': 'é'}, headers={'X-Test': '1'})
    [request] = server.requests
    assert (request.method, request.path, request.json) == ('POST', '/v1/chat/completions?a=b', {'model': 'é'})
    assert request.route == 'POST /v1/chat/completions'
    assert request.headers['x-test'] == '1'


async def test_expect_continue_is_answered_before_the_body() -> None:
    head = b'POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 3\r\nConnection: close\r\n\r\n'
    async with ScriptedServer([Reply.text('done')]) as server, connected(server) as (reader, writer):
        writer.write(head)
        assert await reader.readuntil(b'\r\n\r\n') == b'HTTP/1.1 100 Continue\r\n\r\n'
        writer.write(b'abc')
        assert (await reader.read()).endswith(b'done')
    assert server.requests[0].body == b'abc'


async def test_request_may_arrive_byte_by_byte() -> None:
    head = b'POST / HTTP/1.1\r\nA: 1\r\na:2\r\nTransfer-Encoding: chunked\r\n\r\n'
    async with ScriptedServer([Reply.text('done')]) as server, connected(server) as (reader, writer):
        for byte in head + b'3;x=y\r\nabc\r\n0\r\nTrailer: x\r\n\r\n':
            writer.write(bytes([byte]))
            await asyncio.sleep(0)
        await reader.readuntil(b'done')
    assert (server.requests[0].body, server.requests[0].headers['a']) == (b'abc', '1, 2')


def test_request_shows_no_secret() -> None:
    headers = {'authorization': 'Bearer sk-1', 'api-key': 'sk-2', 'cookie': 'sk-3', 'host': 'x'}
    request = RecordedRequest('GET', '/v1/models?key=sk-4', headers, b'sk-5')
    shown = "'authorization': '***', 'api-key': '***', 'cookie': '***', 'host': 'x'"
    assert repr(request) == f'<RecordedRequest GET /v1/models, headers={{{shown}}}, 4 bytes>'
    with pytest.raises(ValueError, match=r'^the body of GET /v1/models is not JSON: Expecting value: line 1'):
        _ = request.json


@pytest.mark.parametrize(
    ('request_bytes', 'message'),
    [
        (b'GET /\r\n\r\n', 'the request line is not "METHOD TARGET HTTP/1.1"'),
        (b'GET / HTTP/1.1\r\nsk-secret\r\n\r\n', 'a header line has no colon'),
        (b'GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n', 'a body size is no number'),
        (b'GET / HTTP/1.1\r\nContent-Length: sk-secret\r\n\r\n', 'a body size is no number'),
        (b'GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc', 'a chunk is longer than its size'),
        (b'x' * (2**20 + 4), 'a line or the head is too long'),
    ],
)
async def test_malformed_request_is_refused_and_raised(request_bytes: bytes, message: str) -> None:
    async def send() -> None:
        async with ScriptedServer([]) as server, connected(server) as (reader, writer):
            writer.write(request_bytes)
            answer = await reader.read()
            assert answer.startswith(b'HTTP/1.1 400 Bad Request\r\n')
            assert json.loads(answer.partition(b'\r\n\r\n')[2])['error']['message'] == message
            assert server.requests == []

    with pytest.raises(testing.BadRequestError, match=re.escape(message)):
        await send()


async def test_requests_after_the_script_fail_the_context() -> None:
    with pytest.raises(
        testing.ScriptUsedUpError, match=r'^the script \(replies: 1\) is used up, and GET /a came\b'
    ) as caught:
        await get_all([Reply.text('one')], '/', '/a?key=sk-1', '/b?key=sk-2')
    [note] = caught.value.__notes__
    assert note.endswith('is used up, and GET /b came')


async def test_used_up_script_is_a_note_on_the_error_on_its_way() -> None:
    """The SDK asks once only, though it would retry another status 500."""
    server = ScriptedServer([])
    with pytest.raises(openai.InternalServerError, match='is used up') as caught:
        await ask(server)
    assert len(server.requests) == 1
    [note] = caught.value.__notes__
    assert note.startswith('ScriptedServer: Traceback')
    assert note.endswith('the script (replies: 0) is used up, and POST /v1/chat/completions came')


async def test_handler_is_a_function_of_the_request() -> None:
    async def handler(request: RecordedRequest) -> Reply:
        await asyncio.sleep(0)
        return Reply.text(request.route, 'text/x', 201)

    [response] = await get_all(handler, '/x')
    assert (response.status_code, response.text, response.headers['content-type']) == (201, 'GET /x', 'text/x')


@pytest.mark.parametrize(
    ('handler', 'kind'),
    [
        (lambda _: 1 / 0, ZeroDivisionError),
        (lambda _: pytest.fail('no'), pytest.fail.Exception),
        (lambda _: 'no reply', TypeError),
        (lambda _: asyncio.sleep(0, 'no reply'), TypeError),
    ],
)
async def test_error_in_the_handler_is_raised_at_the_end(
    handler: Callable[[RecordedRequest], Any], kind: type[BaseException]
) -> None:
    """The client gets the error's type only, as its text may hold anything."""
    with pytest.raises(openai.InternalServerError, match=f'{kind.__name__} was raised'):
        await ask(ScriptedServer(handler))
    with pytest.raises(kind):
        await get_all(handler, '/')


async def test_reply_that_cannot_be_sent_is_raised_at_the_end() -> None:
    with pytest.raises(ExceptionGroup) as caught:
        await sent_for(Reply(headers={'x': '日'}))
    assert caught.group_contains(UnicodeEncodeError)


async def test_fixture_makes_servers(scripted_server: type[ScriptedServer]) -> None:
    async with scripted_server([Reply.json({'data': []})]) as server, httpx2.AsyncClient() as client:
        assert (await client.get(f'{server.base_url}/models')).json() == {'data': []}


async def test_json_reply_to_the_sdk() -> None:
    call = tool_call('add', {'a': 'é'}, 'call_7')
    answer = await ask(ScriptedServer([Reply.json(completion('Hi', tool_calls=[call]))]))
    assert answer.choices[0].finish_reason == 'tool_calls'
    assert [each.model_dump(exclude_none=True) for each in answer.choices[0].message.tool_calls or ()] == [call]


async def test_stream_is_the_same_at_every_cut() -> None:
    reply = Reply.sse(chunk('é'), chunk('日本'), chunk(finish_reason='stop'), chunk(usage={'total_tokens': 1}))
    cuts = [reply, *map(reply.cut, [1, 2, 3, 7, 10**6])]
    async with ScriptedServer(cuts) as server, openai.AsyncOpenAI(base_url=server.base_url, api_key='k') as client:
        for _ in cuts:
            chunks = await client.chat.completions.create(model='m', messages=[], stream=True)
            texts = [choice.delta.content async for each in chunks for choice in each.choices]
            assert texts == ['é', '日本', None]
