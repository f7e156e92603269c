"""What is expected of the SDK's internals, broken on purpose: then its own way is gone, with the same result."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from openai import AsyncOpenAI, AsyncStream
from openai.resources.chat import AsyncCompletions
from pydantic_ai import messages as m
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from oaicompat import OpenAICompatibleModel, _sdk
from oaicompat.testing import RecordedRequest, Reply, ScriptedServer, chunk, completion

HISTORY: list[m.ModelMessage] = [m.ModelRequest([m.UserPromptPart('Hi')])]
NOTHING = ModelRequestParameters()
SETTINGS: Any = {'timeout': 5, 'extra_headers': {'x-a': 'b'}, 'extra_body': {'top_k': 5}, 'temperature': 0.5}


def answer(request: RecordedRequest) -> Reply:
    if not request.json.get('stream'):
        return Reply.json(completion('Hello'))
    return Reply.sse(*(chunk({'content': word}) for word in ('Hel', 'lo', '!', '?')), chunk(finish_reason='stop'))


async def asked(kind: Any) -> list[Any]:
    """What comes of a request and of a stream, and what was sent for them."""
    async with (
        ScriptedServer(answer) as server,
        AsyncOpenAI(api_key='k', base_url=server.base_url, default_query={'q': '1'}) as client,
    ):
        model = kind('m', provider=OpenAIProvider(openai_client=client))
        whole = await model.request(HISTORY, SETTINGS, NOTHING)
        async with model.request_stream(HISTORY, SETTINGS, NOTHING) as stream:
            events = [repr(event) async for event in stream]
        told = [(one.method, one.path, one.json, one.headers.get('x-a')) for one in server.requests]
    return [whole.parts, events, stream.get().parts, told]


@pytest.fixture(autouse=True)
def nothing_told() -> Iterator[None]:
    _sdk._POSTINGS.clear()
    yield
    _sdk._POSTINGS.clear()


async def test_a_create_that_posts_in_another_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is given the body, and asked each time."""
    create, ways = AsyncCompletions.create, []

    def changed(change: Any) -> Any:
        async def other(self: Any, **arguments: Any) -> Any:
            post = self._post

            async def posted(path: str, **given: Any) -> Any:
                return await post(*change(path, given))

            self._post = posted if hasattr(post, '__name__') and post.__name__ == 'record' else post
            try:
                return await create(self, **arguments)
            finally:
                self._post = post

        return other

    def without_options(path: str, given: Any) -> Any:
        given.pop('options')
        raise KeyError(path)

    def more_body(path: str, given: Any) -> Any:
        ways.append(path)
        given['body'] = {**given['body'], 'made_up': 1}
        raise ValueError(path)

    expected = await asked(OpenAIChatModel)
    for change in (without_options, more_body):
        _sdk._POSTINGS.clear()
        monkeypatch.setattr(AsyncCompletions, 'create', changed(change))
        monkeypatch.setattr(_sdk, '_is_sdks', lambda _: True)
        assert await asked(OpenAICompatibleModel) == expected
        assert {*_sdk._POSTINGS.values()} == {None}


@pytest.mark.parametrize('told', [None, 'options', 'body'])
async def test_what_is_told_of_a_posting(told: str | None) -> None:
    class Resource:
        _post: Any

        async def create(self, **arguments: Any) -> Any:
            options = {'headers': arguments['extra_headers'], 'params': arguments['extra_query'], 'timeout': 1}
            if told != 'options':
                options['timeout'] = arguments['timeout']
            body: Any = {'model': '', 'messages': [], **({'store': None} if told == 'body' else {})}
            await self._post('/p', body=body, options={**options, 'x': 1}, cast_to=int)

    posting = await _sdk._told_posting(Resource(), stream=False)
    assert posting == (None if told else ('/p', {'x': 1}, {'cast_to': int}))


async def test_a_post_without_content_gets_a_body(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = await asked(OpenAIChatModel)
    monkeypatch.setattr(_sdk, '_takes_content', lambda: False)
    assert await asked(OpenAICompatibleModel) == expected
    assert not _sdk._POSTINGS


async def test_a_stream_that_is_read_in_another_way_is_the_sdks(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    events, expected = AsyncStream._iter_events, await asked(OpenAIChatModel)

    async def other(self: Any) -> AsyncIterator[Any]:
        async for event in events(self):
            yield event

    assert await asked(OpenAICompatibleModel) == expected
    assert not caplog.records
    monkeypatch.setattr(AsyncStream, '_iter_events', other)
    with caplog.at_level(logging.WARNING, 'oaicompat'):
        assert await asked(OpenAICompatibleModel) == expected
    assert [record.message for record in caplog.records] == [
        'this openai package streams in a way that oaicompat does not know: nothing is repaired'
    ]


@pytest.mark.parametrize('name', sorted(_sdk._TAKEN))
async def test_a_stream_that_holds_something_else_is_not_taken_over(name: str) -> None:
    async with ScriptedServer(answer) as server, AsyncOpenAI(api_key='k', base_url=server.base_url) as client:
        stream = await client.chat.completions.create(model='m', messages=[], stream=True)
        assert _sdk.is_readable(stream)
        await stream.close()
        delattr(stream, name)
        assert not _sdk.is_readable(stream)
