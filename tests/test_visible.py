"""Nothing is repaired secretly: each repair is listed in the answer, logged, and told to the span."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.trace import INVALID_SPAN_CONTEXT, NonRecordingSpan
from pydantic_ai import messages as m
from pydantic_ai.models import ModelRequestParameters
from typing_extensions import override

from oaicompat import OpenAICompatibleModel
from oaicompat.repairs import REPAIRS
from oaicompat.testing import RecordedRequest, Reply, ScriptedServer, chunk, completion

DONE_BY_NAME = {repair.name: repair.done for repair in REPAIRS}
KINDS = {repair.name: repair.kind for repair in REPAIRS}
ODD = chunk({'content': 'Hi', 'reasoning_text': 'So.'}, usage={'prompt_tokens': 1.0, 'completion_tokens': None})
STOP = chunk({}, finish_reason='stop')
NAMES = ['reasoning.field', 'usage']


class Span(NonRecordingSpan):
    """A span that keeps the names of its events."""

    def __init__(self) -> None:
        super().__init__(INVALID_SPAN_CONTEXT)
        self.events: list[tuple[str, Any]] = []

    @override
    def add_event(self, name: str, attributes: Any = None, timestamp: int | None = None) -> None:
        self.events.append((name, attributes))


async def ask(server: ScriptedServer, *, stream: bool, list_result: bool = False) -> m.ModelResponse:
    messages: list[m.ModelMessage] = [m.ModelRequest(parts=[m.UserPromptPart('Hi')])]
    if list_result:
        messages += [
            m.ModelResponse(parts=[m.ToolCallPart('look', {}, 'call_1')]),
            m.ModelRequest(parts=[m.ToolReturnPart('look', ['a', 'b'], 'call_1')]),
        ]
    async with OpenAICompatibleModel('m', base_url=server.base_url) as model:
        if not stream:
            return await model.request(messages, None, ModelRequestParameters())
        async with model.request_stream(messages, None, ModelRequestParameters()) as response:
            async for _ in response:
                pass
            return response.get()


def odd_answer() -> Reply:
    body = completion('Hi', usage={'prompt_tokens': 1.0, 'completion_tokens': None})
    body['choices'][0]['message']['reasoning_text'] = 'So.'
    return Reply.json(body)


@pytest.mark.parametrize('stream', [False, True])
async def test_each_repair_is_listed_logged_and_told_to_the_span(
    stream: bool, caplog: pytest.LogCaptureFixture
) -> None:
    reply = Reply.sse(ODD, STOP) if stream else odd_answer()
    span = Span()
    with caplog.at_level(logging.DEBUG, 'oaicompat'), trace.use_span(span):
        async with ScriptedServer([reply]) as server:
            answer = await ask(server, stream=stream)
    assert answer.provider_details is not None
    assert answer.provider_details['oaicompat'] == NAMES
    assert [record.getMessage() for record in caplog.records if record.name == 'oaicompat'] == [
        f'm at {server.base_url}: {name}. Seen: {KINDS[name]}. Done: {DONE_BY_NAME[name]}' for name in NAMES
    ]
    assert span.events == [(f'oaicompat.{name}', {'oaicompat.done': DONE_BY_NAME[name]}) for name in NAMES]


@pytest.mark.parametrize('stream', [False, True])
async def test_an_answer_without_repairs_says_nothing(stream: bool, caplog: pytest.LogCaptureFixture) -> None:
    reply = Reply.sse(chunk({'content': 'Hi'}), STOP) if stream else Reply.json(completion('Hi'))
    span = Span()
    with caplog.at_level(logging.DEBUG, 'oaicompat'), trace.use_span(span):
        async with ScriptedServer([reply]) as server:
            answer = await ask(server, stream=stream)
    assert 'oaicompat' not in (answer.provider_details or {})
    assert [record for record in caplog.records if record.name == 'oaicompat'] == []
    assert span.events == []


async def test_a_stream_that_breaks_says_what_was_repaired_before(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, 'oaicompat'):
        async with ScriptedServer([Reply.sse(ODD, {'error': {'message': 'boom'}})]) as server:
            with pytest.raises(Exception, match='boom'):
                await ask(server, stream=True)
    logged = [record.getMessage() for record in caplog.records if record.name == 'oaicompat']
    assert logged == [
        f'm at {server.base_url}: {name}. Seen: {KINDS[name]}. Done: {DONE_BY_NAME[name]}' for name in NAMES
    ]


@pytest.mark.parametrize('stream', [False, True])
async def test_an_adaptation_is_listed_in_the_answer_that_it_made_possible(stream: bool) -> None:
    def strict(request: RecordedRequest) -> Reply:
        if isinstance(request.json['messages'][-1]['content'], list):
            return Reply.json({'error': {'message': 'content: must be a string'}}, 400)
        return Reply.sse(chunk({'content': 'Hi'}), STOP) if stream else Reply.json(completion('Hi'))

    async with ScriptedServer(strict) as server:
        first = await ask(server, stream=stream, list_result=True)
        later = await ask(server, stream=stream, list_result=True)
    assert first.provider_details is not None
    assert first.provider_details['oaicompat'] == ['request.tool_return']
    assert 'oaicompat' not in (later.provider_details or {})
