"""trio: whatever runs there in the parent runs here."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import trio
from pydantic_ai import messages as m
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from oaicompat import OpenAICompatibleModel
from oaicompat.testing import RecordedRequest, Reply, ScriptedServer, chunk, completion

# Iterators that a stream leaves behind are left to the event loop, in the parent, too.
pytestmark = pytest.mark.filterwarnings('ignore::pytest.PytestUnraisableExceptionWarning')
HISTORY: list[m.ModelMessage] = [m.ModelRequest([m.UserPromptPart('Hi')])]
NOTHING = ModelRequestParameters()


def answer(request: RecordedRequest) -> Reply:
    if request.path.endswith('/apply-template'):
        return Reply.json({'prompt': 'x'})
    if 'top_k' in request.json:
        return Reply.json({'error': {'message': 'Unsupported parameter: top_k'}}, status=400)
    if not request.json.get('stream'):
        return Reply.json(completion('Hello'))
    return Reply.sse(chunk({'content': 'Hel'}), chunk({'content': 'lo'}), chunk(finish_reason='stop'))


@pytest.fixture
def url() -> Iterator[str]:
    """Where a server is, in an event loop of asyncio's own."""
    told: list[str] = []
    ready, loop, leave = threading.Event(), asyncio.new_event_loop(), asyncio.Event()

    async def serve() -> None:
        async with ScriptedServer(answer) as server:
            told.append(server.base_url)
            ready.set()
            await leave.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=[serve()])
    thread.start()
    ready.wait()
    yield told[0]
    loop.call_soon_threadsafe(leave.set)
    thread.join()
    loop.close()


def test_answers_streams_refusals_and_a_burst(url: str) -> None:
    async def asked(model: Any) -> list[Any]:
        async with model:
            whole = await model.request(HISTORY, None, NOTHING)
            async with model.request_stream(HISTORY, None, NOTHING) as stream:
                events = [event async for event in stream]
            texts: list[str] = []

            async def one() -> None:
                texts.append((await model.request(HISTORY, None, NOTHING)).parts[0].content)

            async with trio.open_nursery() as nursery:
                for _ in range(20):
                    nursery.start_soon(one)
        return [whole.parts, events, texts]

    ours = trio.run(asked, OpenAICompatibleModel('m', base_url=url))
    assert ours == trio.run(asked, OpenAIChatModel('m', provider=OpenAIProvider(base_url=url, api_key='k')))
    assert ours[2] == ['Hello'] * 20


def test_a_field_that_is_refused_and_a_template_that_is_asked(url: str) -> None:
    result = m.ToolReturnPart('look', ['a', 'b'], 'c')
    history = [*HISTORY, m.ModelResponse([m.ToolCallPart('look', {}, 'c')]), m.ModelRequest([result])]

    async def asked() -> Any:
        async with OpenAICompatibleModel('m', provider='llama-cpp', base_url=url) as model:
            return (await model.request(history, {'extra_body': {'top_k': 5}}, NOTHING)).parts

    assert trio.run(asked) == [m.TextPart('Hello')]


def test_too_slow_is_a_typed_error(url: str) -> None:
    async def asked() -> Any:
        profile: Any = {'compat_unary_timeout': 0.0}
        async with OpenAICompatibleModel('m', base_url=url, profile=profile) as model:
            await model.request(HISTORY, None, NOTHING)

    with pytest.raises(Exception, match='compat_unary_timeout'):
        trio.run(asked)
