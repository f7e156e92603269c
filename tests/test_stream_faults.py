"""Faults of the connection, played by a real server: what the agent is told, and that nothing is left behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
import respx
from openai import AsyncOpenAI
from pydantic_ai import messages as m
from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelConnectionError,
    ModelHTTPError,
    ModelTimeoutError,
)
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.providers.openai import OpenAIProvider
from test_completions import HISTORY, TOOLS, text_of
from test_streams import CALLED, STOP, H, I, fragment, start

from oaicompat import OpenAICompatibleModel
from oaicompat.testing import Reply, ScriptedServer, completion

BOOM = {'error': {'message': 'boom'}}


@asynccontextmanager
async def model_at(server: ScriptedServer, retries: int = 0, **profile: Any) -> AsyncIterator[OpenAICompatibleModel]:
    """A model of its own client, and a look afterwards at what it left behind."""
    model = OpenAICompatibleModel('m', base_url=server.base_url, api_key='key', profile=profile or None)  # type: ignore[arg-type]
    model.client.max_retries = retries
    before = asyncio.all_tasks()
    async with model.client:
        yield model
    async with asyncio.timeout(5):
        await server.wait_disconnected()
        # A generator that was left behind is closed by a task of the event loop's own, in its next turns.
        while own := {task for task in asyncio.all_tasks() - before if 'ScriptedServer' not in repr(task)}:
            await asyncio.wait(own)


class Read:
    """What was read of a stream, and how it ended."""

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.response: m.ModelResponse | None = None
        self.error: Any = None

    @property
    def text(self) -> str:
        return ''.join(map(text_of, self.events))


async def read(model: OpenAICompatibleModel, settings: Any = None) -> Read:
    seen = Read()
    try:
        async with model.request_stream(HISTORY, settings, TOOLS) as streamed:
            async for event in streamed:
                seen.events.append(event)
        seen.response = streamed.get()
    except ModelAPIError as error:
        seen.error = error
    return seen


async def streamed(reply: Reply, **profile: Any) -> Read:
    async with ScriptedServer([reply]) as server, model_at(server, **profile) as model:
        async with asyncio.timeout(5):
            return await read(model)


async def first_of(model: OpenAICompatibleModel, *, stream: bool) -> None:
    """Ask, and read no further than to where an answer begins."""
    if not stream:
        await model.request(HISTORY, None, TOOLS)
        return
    async with model.request_stream(HISTORY, None, TOOLS):
        pass


# The connection breaks

BROKEN: list[Any] = ['drop', 'reset', 'half-close']


@pytest.mark.parametrize('ending', BROKEN)
async def test_a_connection_that_breaks_is_an_error_and_the_text_stays(ending: Any) -> None:
    seen = await streamed(Reply.sse(H, I, done=False, ending=ending), compat_idle_timeout=0.3)
    assert seen.text == 'Hi'
    assert isinstance(seen.error, ModelConnectionError)
    assert getattr(seen.error, 'retryable', None) is True


@pytest.mark.parametrize('ending', BROKEN)
@pytest.mark.parametrize('last', [STOP, CALLED])
async def test_a_connection_that_breaks_behind_the_answer_is_accepted(ending: Any, last: Any) -> None:
    events = [H, I] if last is STOP else [H, I, start('{"city":"A"}')]
    seen = await streamed(Reply.sse(*events, last, done=False, ending=ending), compat_idle_timeout=0.3)
    assert seen.error is None
    assert seen.response is not None
    assert seen.response.text == 'Hi'
    assert seen.response.finish_reason == ('stop' if last is STOP else 'tool_call')
    assert (seen.response.provider_details or {})['oaicompat'] == ['sse.dropped']


@pytest.mark.parametrize('ending', ['clean', *BROKEN])
@pytest.mark.parametrize('arguments', ['', '{"city":"A', '{"city":"A"'])
async def test_a_call_that_is_cut_is_an_error(ending: Any, arguments: str) -> None:
    """Never a call that could run."""
    reply = Reply.sse(H, start(), fragment(arguments, index=0), done=False, ending=ending)
    seen = await streamed(reply, compat_idle_timeout=0.3)
    assert isinstance(seen.error, ModelConnectionError)
    assert seen.text == 'H'


@pytest.mark.parametrize('arguments', ['', '{"city":"A'])
async def test_a_call_that_was_announced_as_finished_and_cut_is_an_error(arguments: str) -> None:
    reason = {**start(arguments), 'choices': [{**start(arguments)['choices'][0], 'finish_reason': 'tool_calls'}]}
    for reply in (
        Reply.sse(H, reason, done=False, ending='drop'),
        Reply.sse(H, start(arguments)),  # [DONE] alone
    ):
        seen = await streamed(reply)
        assert isinstance(seen.error, ModelConnectionError)
        assert seen.text == 'H'


async def test_a_reason_with_every_chunk_ends_nothing() -> None:
    chunks = [H, start(), fragment('{"city":', index=0), fragment('"A"}', index=0)]
    said = [{**one, 'choices': [{**one['choices'][0], 'finish_reason': 'tool_calls'}]} for one in chunks]
    seen = await streamed(Reply.sse(*said))
    assert seen.error is None
    assert seen.response is not None
    [_, call] = seen.response.parts
    assert isinstance(call, m.ToolCallPart)
    assert call.args == '{"city":"A"}'
    assert 'oaicompat' not in (seen.response.provider_details or {})


@pytest.mark.parametrize('ending', [{'done': False, 'ending': 'drop'}, {}])
async def test_errors_say_whether_to_try_again_without_repairs_too(ending: Any) -> None:
    failure = [] if ending else [{'error': {'message': 'boom', 'code': 503}}]
    seen = await streamed(Reply.sse(H, *failure, **ending), compat_repair='off')
    assert isinstance(seen.error, ModelAPIError)
    assert getattr(seen.error, 'retryable', None) is True


async def test_an_error_behind_a_whole_answer_is_passed_over() -> None:
    seen = await streamed(Reply.sse(H, I, STOP, {'error': {'message': 'boom', 'code': 500}}))
    assert seen.response is not None
    assert seen.response.text == 'Hi'
    assert (seen.response.provider_details or {})['oaicompat'] == ['sse.trailing']


async def test_an_event_that_is_cut_is_a_broken_stream() -> None:
    whole = Reply.sse(H, done=False)
    seen = await streamed(
        Reply.raw(b''.join(whole.pieces) + b'data: {"id": "chatcmpl-1", "ob', content_type='text/event-stream')
    )
    assert isinstance(seen.error, ModelConnectionError)
    assert seen.text == 'H'


async def test_a_clean_end_without_a_finish_reason_is_accepted() -> None:
    for last, reason in ((I, 'stop'), (start('{"city":"A"}'), 'stop')):
        seen = await streamed(Reply.sse(H, last, done=False))
        assert seen.error is None
        assert seen.response is not None
        assert seen.response.finish_reason == reason


@pytest.mark.parametrize('reply', [Reply.bare(), Reply.bare(b'HTTP/1.1 200 OK\r\nContent-')])
async def test_no_answer_at_all_is_a_connection_error(reply: Reply) -> None:
    assert isinstance((await streamed(reply)).error, ModelConnectionError)


async def test_a_stream_that_comes_byte_by_byte_is_the_same() -> None:
    reply = Reply.sse(H, I, start(), fragment('{"city":"Zürich"}', index=0), CALLED)
    whole, trickled = await streamed(reply), await streamed(reply.cut(1))
    assert whole.error is trickled.error is None
    assert whole.events == trickled.events
    assert whole.response is not None
    assert trickled.response is not None
    assert whole.response.parts == trickled.response.parts


# It stalls


async def test_a_stream_that_stalls_is_given_up() -> None:
    seen = await streamed(Reply.sse(H, I, done=False, ending='stall'), compat_idle_timeout=0.1)
    assert seen.text == 'Hi'
    assert isinstance(seen.error, ModelTimeoutError)
    assert 'no event within 0.1 s (knob: compat_idle_timeout)' in str(seen.error)
    assert getattr(seen.error, 'retryable', None) is True


async def test_a_stream_that_does_not_begin_is_given_up() -> None:
    seen = await streamed(Reply.sse(H, I, STOP, delay=5), compat_idle_timeout=0.1)
    assert isinstance(seen.error, ModelTimeoutError)
    assert 'no event within 0.1 s (knob: compat_idle_timeout)' in str(seen.error)


async def test_comments_are_no_events() -> None:
    comments = [b': still here\n\n'] * 40
    seen = await streamed(Reply.sse(H, *comments, I, STOP, pause=0.02), compat_idle_timeout=0.2)
    assert seen.text == 'H'
    assert isinstance(seen.error, ModelTimeoutError)
    assert 'no event within 0.2 s (knob: compat_idle_timeout)' in str(seen.error)


async def test_events_between_comments_keep_a_stream_alive() -> None:
    comments = [b': still here\n\n'] * 5
    events: list[Any] = [*comments, I] * 4
    seen = await streamed(Reply.sse(H, *events, STOP, pause=0.02), compat_idle_timeout=0.4)
    assert seen.text == 'Hiiii'


async def test_the_callers_own_timeout_counts_each_read() -> None:
    comments = [b': still here\n\n'] * 20
    async with ScriptedServer([Reply.sse(H, *comments, I, STOP, pause=0.02)]) as server:
        async with model_at(server, compat_idle_timeout=0.1) as model:
            async with model.request_stream(HISTORY, {'timeout': 5}, TOOLS) as stream:
                assert ''.join([text_of(event) async for event in stream]) == 'Hi'


@pytest.mark.parametrize('stream', [True, False])
async def test_a_connection_that_is_not_made_names_the_knob(stream: bool) -> None:
    model = OpenAICompatibleModel('m', base_url='https://made-up.example/v1', api_key='key')
    model.client.max_retries = 0
    with respx.mock(using='httpcore2') as router:
        router.route().mock(side_effect=httpx.ConnectTimeout)
        with pytest.raises(ModelTimeoutError, match=r'no connection within 30 s \(knob: compat_connect_timeout\)'):
            await first_of(model, stream=stream)
    await model.client.close()


async def test_a_stream_has_no_limit_on_the_whole() -> None:
    reply = Reply.sse(H, *[I] * 9, STOP, pause=0.03)
    seen = await streamed(reply, compat_idle_timeout=0.2, compat_unary_timeout=0.1)
    assert seen.text == 'H' + 'i' * 9


async def test_an_answer_that_takes_too_long_is_given_up() -> None:
    """Also when it never stops to send: a limit on each read would not do."""
    slow = Reply.json(completion('Hi'), pause=0.02).cut(1)
    for reply in (Reply.json(completion('Hi'), delay=5), slow):
        async with ScriptedServer([reply]) as server, model_at(server, compat_unary_timeout=0.15) as model:
            with pytest.raises(ModelTimeoutError, match='compat_unary_timeout') as caught:
                await model.request(HISTORY, None, TOOLS)
    assert getattr(caught.value, 'retryable', None) is True


async def test_the_caller_s_own_timeout_wins() -> None:
    async with ScriptedServer([Reply.json(completion('Hi'), delay=0.2)]) as server:
        async with model_at(server, compat_unary_timeout=0.1) as model:
            response = await model.request(HISTORY, {'timeout': 5}, TOOLS)
    assert response.text == 'Hi'


@pytest.mark.parametrize('stream', [True, False])
@pytest.mark.parametrize(
    ('profile', 'settings', 'expected'),
    [
        (None, None, {'connect': 30.0, 'read': 600.0, 'write': 600.0, 'pool': 600.0}),
        (
            {'compat_connect_timeout': 3.0, 'compat_unary_timeout': 7.0, 'compat_idle_timeout': 7.0},
            None,
            {'connect': 3.0, 'read': 7.0, 'write': 7.0, 'pool': 7.0},
        ),
        (None, {'timeout': 5.0}, dict.fromkeys(('connect', 'read', 'write', 'pool'), 5.0)),
    ],
)
async def test_timeouts_on_the_wire(profile: Any, settings: Any, expected: dict[str, float], stream: bool) -> None:
    model = OpenAICompatibleModel('m', base_url='https://made-up.example/v1', api_key='key', profile=profile)
    assert await timeouts_sent(model, settings, stream) == expected


@pytest.mark.parametrize('stream', [True, False])
async def test_a_client_of_the_caller_s_keeps_its_timeouts(stream: bool) -> None:
    client = AsyncOpenAI(base_url='https://made-up.example/v1', api_key='key', timeout=11.0)
    model = OpenAICompatibleModel('m', provider=OpenAIProvider(openai_client=client))
    assert await timeouts_sent(model, None, stream) == dict.fromkeys(('connect', 'read', 'write', 'pool'), 11.0)


async def timeouts_sent(model: OpenAICompatibleModel, settings: Any, stream: bool) -> Any:
    reply = Reply.sse(H, I, STOP) if stream else Reply.json(completion('Hi'))
    with respx.mock(using='httpcore2') as router:
        router.route().mock(return_value=httpx.Response(200, content=reply.body, headers=dict(reply.headers)))
        async with model.client:
            if stream:
                assert (await read(model, settings)).text == 'Hi'
            else:
                await model.request(HISTORY, settings, TOOLS)
        return router.calls.last.request.extensions['timeout']


# It is cancelled


async def test_a_stream_that_is_cancelled_closes_its_connection() -> None:
    async with ScriptedServer([Reply.sse(H, I, done=False, ending='stall')]) as server, model_at(server) as model:
        arrived = asyncio.Event()

        async def follow() -> None:
            async with model.request_stream(HISTORY, None, TOOLS) as streamed:
                async for _ in streamed:
                    arrived.set()

        task = asyncio.create_task(follow())
        async with asyncio.timeout(5):
            await arrived.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await server.wait_disconnected()


async def test_a_stream_that_is_left_closes_its_connection() -> None:
    async with ScriptedServer([Reply.sse(H, I, done=False, ending='stall')]) as server, model_at(server) as model:
        async with asyncio.timeout(5):
            async with model.request_stream(HISTORY, None, TOOLS) as streamed:
                async for _ in streamed:
                    break
            await server.wait_disconnected()


async def test_an_answer_that_is_cancelled_closes_its_connection() -> None:
    arrived = asyncio.Event()

    def answer(_: object) -> Reply:
        arrived.set()
        return Reply.json(completion('Hi'), delay=30)

    async with ScriptedServer(answer) as server, model_at(server) as model:
        task = asyncio.create_task(model.request(HISTORY, None, TOOLS))
        async with asyncio.timeout(5):
            await arrived.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await server.wait_disconnected()


async def test_a_connection_is_used_again() -> None:
    """After a stream that was read to its end, and after an answer."""
    replies = [Reply.sse(H, I, STOP), Reply.json(completion('Hi')), Reply.sse(H, I, STOP)]
    async with ScriptedServer(replies) as server, model_at(server) as model:
        assert (await read(model)).text == 'Hi'
        assert (await model.request(HISTORY, None, TOOLS)).text == 'Hi'
        assert (await read(model)).text == 'Hi'
        assert server.connections == 1


# It is tried again

QUICK = {'retry-after-ms': '1'}


@pytest.mark.parametrize('stream', [True, False])
@pytest.mark.parametrize('status', [408, 409, 429, 500, 503])
async def test_the_sdk_tries_again(status: int, stream: bool) -> None:
    good = Reply.sse(H, I, STOP) if stream else Reply.json(completion('Hi'))
    async with ScriptedServer([Reply.json(BOOM, status, headers=QUICK), good]) as server:
        async with model_at(server, retries=2) as model:
            text = (await read(model)).text if stream else (await model.request(HISTORY, None, TOOLS)).text
        assert (text, len(server.requests)) == ('Hi', 2)


@pytest.mark.parametrize('stream', [True, False])
@pytest.mark.parametrize('status', [400, 401, 403, 404, 413, 422])
async def test_what_is_refused_is_not_sent_again(status: int, stream: bool) -> None:
    async with ScriptedServer([Reply.json(BOOM, status)]) as server:
        async with model_at(server, retries=2) as model:
            if stream:
                assert isinstance((await read(model)).error, ModelHTTPError)
            else:
                with pytest.raises(ModelHTTPError):
                    await model.request(HISTORY, None, TOOLS)
        assert len(server.requests) == 1


@pytest.mark.parametrize('end', [{'done': False, 'ending': 'drop'}, {'done': False, 'ending': 'reset'}])
async def test_a_stream_is_never_sent_again(end: Any) -> None:
    async with ScriptedServer([Reply.sse(H, **end)]) as server:
        async with model_at(server, retries=2) as model:
            seen = await read(model)
        assert (seen.text, len(server.requests)) == ('H', 1)
        assert isinstance(seen.error, ModelConnectionError)


FAILURES = {
    'refused': Reply.json(BOOM, 400),
    'server error': Reply.json(BOOM, 500),
    'error in a 200': Reply.json({'error': {'message': 'boom', 'code': 429}}),
    'page': Reply.text('<html></html>', 'text/html'),
    'no choices': Reply.json(completion() | {'choices': []}),
    'a number': Reply.json(5),
    'nothing': Reply.bare(),
    'unreadable': Reply.json({**completion('Hi'), 'choices': [{'message': {'tool_calls': [{'id': 'x'}]}}]}),
}


@pytest.mark.parametrize('stream', [True, False])
@pytest.mark.parametrize('failure', FAILURES.values(), ids=FAILURES.keys())
async def test_a_fallback_takes_over(failure: Reply, stream: bool) -> None:
    async with ScriptedServer([failure]) as server, model_at(server) as model:
        fallback = FallbackModel(model, TestModel(custom_output_text='Other', call_tools=[]))
        if stream:
            async with fallback.request_stream(HISTORY, None, TOOLS) as streamed:
                events = [event async for event in streamed]
            assert ''.join(map(text_of, events)).strip() == 'Other'
        else:
            assert (await fallback.request(HISTORY, None, TOOLS)).text == 'Other'


@pytest.mark.parametrize('reply', [Reply.sse(H, I, STOP), Reply.json(completion('Hi'))], ids=['sse', 'json'])
async def test_always_to_stream_is_to_fold(reply: Reply) -> None:
    async with ScriptedServer([reply]) as server, model_at(server, compat_stream='always') as model:
        response = await model.request(HISTORY, None, TOOLS)
        assert server.requests[0].json['stream'] is True
    assert response.text == 'Hi'
    assert 'request.stream' in (response.provider_details or {})['oaicompat']


async def test_always_to_stream_keeps_the_errors() -> None:
    cut = [H, start('{"city":"A')]
    rows: list[tuple[list[Any], Any, type[ModelAPIError]]] = [
        (cut, {'done': False}, ModelConnectionError),
        ([H], {'done': False, 'ending': 'drop'}, ModelConnectionError),
        ([H, {'error': {'message': 'boom', 'code': 503}}], {}, ModelHTTPError),
    ]
    for events, options, kind in rows:
        reply = Reply.sse(*events, **options)
        async with ScriptedServer([reply]) as server, model_at(server, compat_stream='always') as model:
            with pytest.raises(kind) as caught:
                await model.request(HISTORY, None, TOOLS)
        assert getattr(caught.value, 'retryable', None) is True
