"""The Responses API: events and whole answers as servers send them, and the whole `ModelResponse` that they become."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import test_parity_responses as parity
from pydantic_ai import messages as m
from pydantic_ai.exceptions import ModelAPIError, ModelConnectionError, ModelRateLimitError
from pydantic_ai.models.openai import OpenAIResponsesModel
from test_completions import NEW_ID, Asked, ask
from test_parity_responses import answer, message, text

from oaicompat import OpenAICompatibleModel, OpenAICompatibleResponsesModel


async def respond(body: Any, **options: Any) -> Asked:
    return await ask(body, kind=OpenAICompatibleResponsesModel, **options)


def parent(name: str, base_url: str, api_key: str) -> OpenAIResponsesModel:
    """The parent, made with our arguments."""
    provider = OpenAICompatibleModel(name, base_url=base_url, api_key=api_key)._provider
    return OpenAIResponsesModel(name, provider=provider)


def names(response: m.ModelResponse | None) -> list[str]:
    assert response is not None
    return list((response.provider_details or {}).get('oaicompat', []))


def bare(response: m.ModelResponse | None) -> list[Any]:
    """Text, reasoning, and the name, arguments and id of calls: what the agent goes on with."""
    assert response is not None
    made: list[Any] = []
    for part in response.parts:
        if isinstance(part, m.ToolCallPart):
            made.append((part.tool_name, part.args_as_dict(), part.tool_call_id))
        elif isinstance(part, m.TextPart | m.ThinkingPart):
            made.append(part.content)
    return made


def call(arguments: Any = '{"city":"A"}', **fields: Any) -> dict[str, Any]:
    return {**parity.CALL, 'arguments': arguments, **fields}


def bare_call(*keys: str, **fields: Any) -> dict[str, Any]:
    return {key: value for key, value in call(**fields).items() if key not in keys}


SECOND = {'id': 'fc_2', 'call_id': 'call_2', 'name': 'search'}
A, B = ('lookup', {'city': 'A'}, 'call_1'), ('search', {'city': 'B'}, 'call_2')
HI = message(text('Hi'))

WHOLE: dict[str, tuple[Any, list[Any], list[str]]] = {
    'wrapped': ({'code': 0, 'data': answer(HI)}, ['Hi'], ['envelope.wrapped']),
    'text in place of parts': (answer({**HI, 'content': 'Hi'}), ['Hi'], ['content.not_a_list']),
    'lists null': (
        answer({**parity.REASONING, 'summary': None}, message({**text('Hi'), 'annotations': None})),
        ['Hi'],
        ['responses.null_lists'],
    ),
    'no annotations': (answer(message({'type': 'output_text', 'text': 'Hi'})), ['Hi'], ['responses.null_lists']),
    'output null': (
        answer() | {'output': None, 'output_text': 'Hi'},
        ['Hi'],
        ['responses.output'],
    ),
    'part of another type': (
        answer(message({'type': 'text', 'text': 'Hi', 'annotations': []})),
        ['Hi'],
        ['content.not_text'],
    ),
    'reasoning as text': (answer({**parity.REASONING, 'summary': 'Hm.'}, HI), ['Hm.', 'Hi'], ['reasoning.field']),
    'arguments an object': (answer(call({'city': 'A'})), [A], ['tool_call.arguments']),
    'arguments null': (answer(call(None)), [('lookup', {}, 'call_1')], ['tool_call.arguments']),
    'arguments empty': (answer(call('')), [('lookup', {}, 'call_1')], ['tool_call.arguments']),
    'arguments fenced': (answer(call('```json\n{"city":"A"}\n```')), [A], ['tool_call.arguments']),
    'name with a marker': (answer(call(name='lookup<|call|>')), [A], ['tool_call.name']),
    'no call id': (answer(bare_call('call_id')), [('lookup', {'city': 'A'}, NEW_ID)], ['tool_call.id']),
    'call ids repeated': (
        answer(call(), call('{"city":"B"}', id='fc_2', name='search')),
        [A, ('search', {'city': 'B'}, NEW_ID)],
        ['tool_call.duplicate_id'],
    ),
    'created as text': (answer(HI, created_at='now'), ['Hi'], ['envelope.defaults']),
    'usage in part': (answer(HI, usage={'input_tokens': 3}), ['Hi'], ['usage']),
    'usage of the other API': (answer(HI, usage={'prompt_tokens': 3.5, 'completion_tokens': 2}), ['Hi'], ['usage']),
    'bare': (
        {'output': [{'type': 'message', 'content': [{'type': 'output_text', 'text': 'Hi'}]}]},
        ['Hi'],
        ['responses.null_lists'],
    ),
}  # fmt: skip


@pytest.mark.parametrize(('body', 'expected', 'repairs'), WHOLE.values(), ids=WHOLE.keys())
async def test_an_odd_answer_is_read(body: Any, expected: list[Any], repairs: list[str]) -> None:
    asked = await respond(body)
    assert bare(asked.response) == expected, asked.error
    assert names(asked.response) == repairs


@pytest.mark.parametrize(('usage', 'counts'), [({'input_tokens': 3}, (3, 0)), ({'prompt_tokens': 3.5}, (3, 0))])
async def test_odd_usage_is_counted(usage: Any, counts: tuple[int, int]) -> None:
    response = (await respond(answer(HI, usage=usage))).response
    assert response is not None
    assert (response.usage.input_tokens, response.usage.output_tokens) == counts


# Streams

CREATED = {'type': 'response.created', 'response': answer(status='in_progress')}


def event(kind: str, **fields: Any) -> dict[str, Any]:
    return {'type': f'response.{kind}', **fields}


def ended(*output: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return event('completed', response=answer(*output, **fields))


def added(item: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return event('output_item.added', item={**item, 'status': 'in_progress'}, **fields)


def said(delta: Any, **fields: Any) -> dict[str, Any]:
    return event('output_text.delta', delta=delta, **fields)


def argued(delta: Any, **fields: Any) -> dict[str, Any]:
    return event('function_call_arguments.delta', delta=delta, **fields)


def sse(*events: dict[str, Any], done: bool = False) -> bytes:
    lines = [f'event: {one["type"]}\ndata: {json.dumps(one)}\n\n' for one in events]
    return (''.join(lines) + ('data: [DONE]\n\n' if done else '')).encode()


def done(item: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return event('output_item.done', item=item, **fields)


AT: dict[str, Any] = {'output_index': 0, 'item_id': 'fc_1'}
FIRST, OTHER = call(''), call('', **SECOND)
STREAMS: dict[str, tuple[bytes, list[Any], list[str]]] = {
    'no indexes, interleaved': (
        sse(CREATED, added(FIRST), added(OTHER), argued('{"city":', item_id='fc_1'), argued('{"city":', item_id='fc_2'),
            argued('"A"}', item_id='fc_1'), argued('"B"}', item_id='fc_2'), ended()),
        [A, B], ['responses.placed'],
    ),
    'all at index 0': (
        sse(CREATED, added(FIRST, output_index=0), argued('{"city":"A"}', output_index=0, item_id='fc_1'),
            done(call(), output_index=0), added(OTHER, output_index=0),
            argued('{"city":"B"}', output_index=0, item_id='fc_2'),
            done(call('{"city":"B"}', **SECOND), output_index=0), ended()),
        [A, B], ['responses.placed'],
    ),
    'another item id in each event': (
        sse(CREATED, added(call('', id='x1'), output_index=0), argued('{"city":', output_index=0, item_id='x2'),
            argued('"A"}', output_index=0, item_id='x3'), done(call(id='x4'), output_index=0), ended()),
        [A], ['responses.placed'],
    ),
    'no ids': (
        sse(CREATED, added(bare_call('id', arguments='')), argued('{"city":"A"}'), done(bare_call('id')),
            added({**OTHER, 'id': None}), argued('{"city":"B"}'), ended()),
        [A, B], ['responses.placed'],
    ),
    'index as text': (
        sse(CREATED, added(FIRST, output_index='0'), argued('{"city":"A"}', output_index='0', item_id='fc_1'), ended()),
        [A], ['responses.placed'],
    ),
    'text in the ends alone': (
        sse(CREATED, added(message(), output_index=0), event('content_part.added', part=text(''), output_index=0,
            item_id='msg_1', content_index=0), done(HI, output_index=0), ended(HI)),
        ['Hi'], ['responses.unstreamed'],
    ),
    'a delta lost': (
        sse(CREATED, added(message(), output_index=0), said('H', output_index=0, item_id='msg_1', content_index=0),
            done(HI, output_index=0), ended(HI)),
        ['Hi'], ['responses.unstreamed'],
    ),
    'an item in the last event alone': (
        sse(CREATED, added(message(), output_index=0), said('Hi', output_index=0, item_id='msg_1', content_index=0),
            done(HI, output_index=0), ended(HI, call())),
        ['Hi', A], ['responses.unstreamed'],
    ),
    'nothing but text deltas': (sse(CREATED, said('H'), said('i'), ended()), ['Hi'], ['responses.placed']),
    'arguments in done alone': (
        sse(CREATED, added(FIRST, output_index=0), done(call(), output_index=0), ended(call())), [A], [],
    ),
    'arguments at first, then again in deltas': (
        sse(CREATED, added(call(), output_index=0), argued('{"city":', output_index=0, item_id='fc_1'),
            argued('"A"}', output_index=0, item_id='fc_1'), ended()),
        [A], ['tool_call.cumulative'],
    ),
    'arguments at first alone': (sse(CREATED, added(call(), output_index=0), ended()), [A], []),
    'arguments null at first': (
        sse(CREATED, event('output_item.added', item=bare_call('status', arguments=None), output_index=0),
            argued('{"city":"A"}', output_index=0, item_id='fc_1'), ended()),
        [A], [],
    ),
    'arguments an object': (
        sse(CREATED, added(FIRST, output_index=0), done(call({'city': 'A'}), output_index=0), ended()),
        [('lookup', {'city': 'A'}, 'call_1')], ['tool_call.arguments'],
    ),
    'items in done alone': (
        sse(CREATED, done(HI, output_index=0), done(call(), output_index=1), ended()),
        ['Hi', A], ['responses.unstreamed'],
    ),
    'all in the last event': (sse(CREATED, ended(HI, call())), ['Hi', A], ['responses.unstreamed']),
    'a delta without text': (
        sse(CREATED, said(None), said({'text': 'Hi'}), ended()), ['Hi'], ['responses.event', 'responses.placed'],
    ),
    'output null at the end': (
        sse(CREATED, said('Hi', output_index=0, content_index=0, item_id='msg_1'),
            event('completed', response=answer() | {'output': None})),
        ['Hi'], ['responses.null_lists'],
    ),
    'no response at the end': (
        sse(CREATED, said('Hi', output_index=0, content_index=0, item_id='msg_1'), event('completed')),
        ['Hi'], ['responses.event'],
    ),
    'no types in the values': (
        sse(CREATED) + b'event: response.output_text.delta\ndata: {"delta":"Hi"}\n\n' + sse(ended()),
        ['Hi'], ['responses.placed'],
    ),
    'an item that is none': (
        sse(CREATED, event('output_item.added', output_index=0),
            said('Hi', output_index=1, content_index=0, item_id='msg_1'), ended()),
        ['Hi'], ['responses.event'],
    ),
}  # fmt: skip


@pytest.mark.parametrize(('body', 'expected', 'repairs'), STREAMS.values(), ids=STREAMS.keys())
async def test_an_odd_stream_is_read(body: bytes, expected: list[Any], repairs: list[str]) -> None:
    asked = await respond(body, stream=True)
    assert bare(asked.response) == expected, asked.error
    assert names(asked.response) == repairs
    assert asked.response is not None
    assert asked.response.finish_reason == 'stop'
    assert asked.text == ''.join(part for part in expected if isinstance(part, str))


@pytest.mark.parametrize('case', STREAMS)
async def test_a_stream_in_place_of_a_whole_answer_is_read_alike(case: str) -> None:
    body, expected, _ = STREAMS[case]
    asked = await respond(body)
    assert bare(asked.response) == expected, asked.error
    assert 'sse.unasked' in names(asked.response)


ODD_ARGUMENTS = {
    'fence': '```json\n{"city":"A"}\n```',
    'marker': '{"city":"A"}<|im_end|>',
    'encoded twice': '"{\\"city\\":\\"A\\"}"',
    'single quotes': "{'city': 'A'}",
    'bare key': '{city: "A"}',
}
ENDS: dict[str, Callable[[str], list[dict[str, Any]]]] = {
    'all events': lambda raw: [
        event('function_call_arguments.done', arguments=raw, **AT),
        done(call(raw), output_index=0),
    ],
    'arguments alone': lambda raw: [event('function_call_arguments.done', arguments=raw, **AT)],
    'the item alone': lambda raw: [done(call(raw), output_index=0)],
    'the item without them': lambda _: [done(call(''), output_index=0)],
    'none': lambda _: [],
}


@pytest.mark.parametrize('end', ENDS)
@pytest.mark.parametrize('raw', ODD_ARGUMENTS.values(), ids=ODD_ARGUMENTS)
async def test_arguments_of_deltas_are_repaired_as_a_whole(raw: str, end: str) -> None:
    deltas = [argued(piece, **AT) for piece in (raw[:5], raw[5:9], raw[9:])]
    asked = await respond(sse(CREATED, added(FIRST, output_index=0), *deltas, *ENDS[end](raw), ended()), stream=True)
    assert bare(asked.response) == [A]
    assert names(asked.response) == ['tool_call.arguments']
    started = [event.part for event in asked.events if isinstance(event, m.PartStartEvent)]
    assert [(part.part_kind, part.tool_call_id) for part in started if isinstance(part, m.ToolCallPart)] == [
        ('tool-call', 'call_1'),
        ('tool-call', 'call_1'),
    ]


async def test_each_of_two_calls_gets_its_own_arguments() -> None:
    quoted = "{'city': 'A'}", "{'city': 'B'}"
    deltas = [argued(raw, output_index=at, item_id=f'fc_{at + 1}') for at, raw in enumerate(quoted)]
    ends = [done(call(quoted[1], **SECOND), output_index=1), done(call(quoted[0]), output_index=0)]
    opened = added(FIRST, output_index=0), added(OTHER, output_index=1)
    for last in (ends, []):
        asked = await respond(sse(CREATED, *opened, *deltas, *last, ended()), stream=True)
        assert bare(asked.response) == [A, B]
        assert names(asked.response) == ['tool_call.arguments']


async def test_a_whole_answer_in_place_of_a_stream_is_read() -> None:
    for body in (answer(HI, call()), {'data': answer(HI, call())}):
        asked = await respond(json.dumps(body), stream=True)
        assert bare(asked.response) == ['Hi', A]
        assert asked.text == 'Hi'
        assert asked.response is not None
        assert (asked.response.state, asked.response.finish_reason) == ('complete', 'stop')


@pytest.mark.parametrize('done', [True, False])
@pytest.mark.parametrize('whole', parity.ANSWERS.values(), ids=parity.ANSWERS.keys())
async def test_a_well_formed_stream_equals_the_parents(whole: dict[str, Any], done: bool) -> None:
    body = sse(*parity.events(whole), done=done)
    ours, theirs = await respond(body, stream=True), await ask(body, stream=True, kind=parent)
    assert (ours.response, ours.events) == (theirs.response, theirs.events)
    assert names(ours.response) == []


ERRORS = {
    'error event': {'type': 'error', 'code': 'rate_limit_exceeded', 'message': 'boom', 'param': None},
    'nested error event': {'type': 'error', 'error': {'code': '429', 'message': 'boom'}},
    'error of a response': {'type': 'response.error', 'error': {'code': 429, 'message': 'boom'}},
    'failed': {
        'type': 'response.failed',
        'response': answer(status='failed', error={'code': 'rate_limit_exceeded', 'message': 'boom'}),
    },
}


@pytest.mark.parametrize('failure', ERRORS.values(), ids=ERRORS.keys())
async def test_an_error_in_a_stream_is_the_error_of_its_status(failure: dict[str, Any]) -> None:
    """Inside of a stream what came before stays readable; in place of a whole answer it is no empty success."""
    asked = await respond(sse(CREATED, said('Hi'), failure), stream=True)
    unary = await respond(sse(CREATED, said('Hi'), failure))
    assert asked.text == 'Hi'
    for error in (asked.error, unary.error):
        assert isinstance(error, ModelRateLimitError)
        assert 'boom' in str(error)
        assert getattr(error, 'retryable', None) is True


@pytest.mark.parametrize(
    'events',
    [
        [added(FIRST, output_index=0), argued('{"city":"A', output_index=0, item_id='fc_1')],
        [added(FIRST, output_index=0)],
    ],
    ids=['inside', 'before'],
)
@pytest.mark.parametrize('stream', [True, False])
async def test_arguments_that_are_cut_make_no_call(events: list[Any], stream: bool) -> None:
    asked = await respond(sse(CREATED, said('Hi'), *events), stream=stream)
    assert isinstance(asked.error, ModelConnectionError)
    assert getattr(asked.error, 'retryable', None) is True


@pytest.mark.parametrize('stream', [True, False])
@pytest.mark.parametrize('body', ['', '5', 'null', '[]', '<html>', 'Not here', '{"choices": []}'])
async def test_what_is_no_response_at_all_is_an_error(body: str, stream: bool) -> None:
    asked = await respond(body, stream=stream)
    assert isinstance(asked.error, ModelAPIError), asked.response


async def test_a_call_without_a_name_is_an_error() -> None:
    asked = await respond(answer(call(name=None)))
    assert isinstance(asked.error, ModelAPIError)
    assert 'without a name' in str(asked.error)
