"""`compat_repair='strict'`: the first deviation is an error that names it; a good answer is the parent's."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from pydantic_ai import messages as m
from test_completions import Asked, ask, parent
from test_parity_responses import answer, message, text
from test_responses_repair import parent as responses_parent
from test_responses_repair import respond
from test_streams import sse

from oaicompat import is_retryable
from oaicompat.testing import Reply, chunk, completion, tool_call

STRICT: Any = {'profile': {'compat_repair': 'strict'}}
STOP = chunk({}, finish_reason='stop')
HI = chunk({'role': 'assistant', 'content': 'Hi'})
CALL = {'index': 0, 'id': 'call_1', 'type': 'function', 'function': {'name': 'lookup', 'arguments': '{}'}}
USAGE = {'prompt_tokens': 1, 'completion_tokens': 1, 'total_tokens': 2}


def without(value: dict[str, Any], *path: Any) -> Any:
    return changed(value, path, lambda inside, key: inside.pop(key))


def put(value: dict[str, Any], to: Any, *path: Any) -> Any:
    return changed(value, path, lambda inside, key: inside.__setitem__(key, to))


def changed(value: Any, path: tuple[Any, ...], change: Callable[[Any, Any], object]) -> Any:
    [step, *rest] = path
    copy = dict(value) if isinstance(value, dict) else list(value)
    if rest:
        copy[step] = changed(copy[step], tuple(rest), change)
    else:
        change(copy, step)
    return copy


CHUNKS: dict[str, tuple[bytes, str]] = {
    'no id': (sse(without(HI, 'id'), STOP), '`id` is missing'),
    'null id': (sse(put(HI, None, 'id'), STOP), '`id` is null; input should be a valid string'),
    'no object': (sse(without(HI, 'object'), STOP), '`object` is missing'),
    'object': (
        sse(put(HI, 'chat.completion', 'object'), STOP),
        '`object` is "chat.completion"; input should be \'chat.completion.chunk\'',
    ),
    'no created': (sse(without(HI, 'created'), STOP), '`created` is missing'),
    'created': (sse(put(HI, 1.5, 'created'), STOP), '`created` is 1.5; input should be a valid integer'),
    'no model': (sse(without(HI, 'model'), STOP), '`model` is missing'),
    'null choices': (sse(put(HI, None, 'choices'), HI, STOP), '`choices` is null; input should be a valid array'),
    'no choices': (sse(without(HI, 'choices'), HI, STOP), '`choices` is missing'),
    'no index': (sse(without(HI, 'choices', 0, 'index'), STOP), '`choices[0].index` is missing'),
    'no delta': (sse(without(HI, 'choices', 0, 'delta'), STOP), '`choices[0].delta` is missing'),
    'null delta': (sse(put(HI, None, 'choices', 0, 'delta'), HI, STOP), '`choices[0].delta` is null'),
    'role': (sse(chunk({'role': 'bot', 'content': 'Hi'}), STOP), '`choices[0].delta.role` is "bot"'),
    'content': (sse(chunk({'content': [{'type': 'text', 'text': 'Hi'}]}), STOP), '`choices[0].delta.content` is ['),
    'call without index': (
        sse(chunk({'tool_calls': [without(CALL, 'index')]}), STOP),
        '`choices[0].delta.tool_calls[0].index` is missing',
    ),
    'arguments': (
        sse(chunk({'tool_calls': [put(CALL, {}, 'function', 'arguments')]}), STOP),
        '`choices[0].delta.tool_calls[0].function.arguments` is {}',
    ),
    'no id of a call': (sse(chunk({'tool_calls': [without(CALL, 'id')]}), STOP), 'tool_call.id'),
    'finish reason': (sse(HI, chunk({}, finish_reason='eos')), '`choices[0].finish_reason` is "eos"'),
    'usage': (sse(HI, STOP, chunk(usage={'prompt_tokens': 1})), '`usage.completion_tokens` is missing'),
    'tags': (sse(chunk('<think>Hm</think>Hi'), STOP), 'thinking.tags'),
    'no finish reason': (sse(HI), 'the stream ended without a finish reason'),
    'no [DONE]': (sse(HI, STOP, done=False), 'the stream ended without `[DONE]`'),
    'no blank line': (sse(HI, STOP, done=False) + b'data: [DONE]', 'sse.unterminated'),
    'single newlines': (sse(HI, STOP).replace(b'\n\n', b'\n'), 'sse.single_newlines'),
}


@pytest.mark.parametrize(('body', 'fault'), CHUNKS.values(), ids=CHUNKS)
async def test_chunk(body: bytes, fault: str) -> None:
    asked = await ask(body, stream=True, **STRICT)
    assert str(asked.api_error).startswith('strict: ')
    assert fault in str(asked.api_error)
    assert not is_retryable(asked.api_error)
    assert (await ask(body, stream=True)).error is None


async def test_what_came_before_the_deviation_stays_readable() -> None:
    asked = await ask(sse(HI, put(HI, None, 'id'), HI, STOP), stream=True, **STRICT)
    assert asked.text == 'Hi'
    assert '`id` is null' in str(asked.api_error)


async def test_content_type_of_a_stream() -> None:
    asked = await ask(sse(HI, STOP), stream=True, content_type='application/json', **STRICT)
    assert str(asked.api_error) == "strict: the content type is 'application/json'; expected `text/event-stream`"


ANSWER = completion('Hi')
MESSAGE = ('choices', 0, 'message')
COMPLETIONS: dict[str, tuple[Any, str]] = {
    'no id': (without(ANSWER, 'id'), '`id` is missing'),
    'no object': (without(ANSWER, 'object'), '`object` is missing'),
    'no created': (without(ANSWER, 'created'), '`created` is missing'),
    'no model': (without(ANSWER, 'model'), '`model` is missing'),
    'no index': (without(ANSWER, 'choices', 0, 'index'), '`choices[0].index` is missing'),
    'no role': (without(ANSWER, *MESSAGE, 'role'), '`choices[0].message.role` is missing'),
    'null finish reason': (put(ANSWER, None, 'choices', 0, 'finish_reason'), '`choices[0].finish_reason` is null'),
    'finish reason': (put(ANSWER, 'eos', 'choices', 0, 'finish_reason'), '`choices[0].finish_reason` is "eos"'),
    'usage': (put(ANSWER, {}, 'usage'), '`usage.completion_tokens` is missing'),
    'calls as an object': (put(ANSWER, {}, *MESSAGE, 'tool_calls'), '`choices[0].message.tool_calls` is {}'),
    'arguments': (
        completion(tool_calls=[put(tool_call('lookup', {}), {}, 'function', 'arguments')]),
        '`choices[0].message.tool_calls[0].function.arguments` is {}',
    ),
    'no id of a call': (
        completion(tool_calls=[without(tool_call('lookup', {}), 'id')]),
        '`choices[0].message.tool_calls[0].id` is missing',
    ),
    'half a character': (put(ANSWER, '\ud83d', *MESSAGE, 'content'), 'the answer is'),
    'wrapped': ({'data': ANSWER}, '`id` is missing'),
    'a stream': (sse(HI, STOP), 'sse.unasked'),
}


@pytest.mark.parametrize(('body', 'fault'), COMPLETIONS.values(), ids=COMPLETIONS)
async def test_completion(body: Any, fault: str) -> None:
    asked = await ask(body, **STRICT)
    assert str(asked.api_error).startswith('strict: ')
    assert fault in str(asked.api_error)
    assert not is_retryable(asked.api_error)


GOOD: dict[str, list[dict[str, Any]]] = {
    'text': [chunk({'role': 'assistant', 'content': ''}), HI, STOP, chunk(usage=USAGE)],
    'a call': [
        chunk({'role': 'assistant', 'content': None, 'tool_calls': [CALL]}),
        chunk({}, finish_reason='tool_calls'),
    ],
    'unknown fields': [{**chunk({'content': 'Hi', 'reasoning_content': None, 'x': 1}), 'provider': 'P'}, STOP],
    'reasoning': [chunk({'role': 'assistant', 'reasoning_content': 'Hm'}), HI, STOP],
    'a refusal': [chunk({'role': 'assistant', 'refusal': 'No'}), STOP],
    'null fields': [put(put(HI, None, 'usage'), None, 'choices', 0, 'logprobs'), STOP],
}


@pytest.mark.parametrize('chunks', GOOD.values(), ids=GOOD)
async def test_a_good_stream_is_the_parents(chunks: list[dict[str, Any]]) -> None:
    ours = await ask(sse(*chunks), stream=True, **STRICT)
    theirs = await ask(sse(*chunks), stream=True, kind=parent)
    assert (ours.response, ours.events) == (theirs.response, theirs.events)


@pytest.mark.parametrize('body', [ANSWER, completion(tool_calls=[tool_call('lookup', {'a': 1})])])
async def test_a_good_answer_is_the_parents(body: dict[str, Any]) -> None:
    assert (await ask(body, **STRICT)).response == (await ask(body, kind=parent)).response


async def test_an_error_is_the_servers_and_no_deviation() -> None:
    error = {'error': {'message': 'slow down', 'code': 429}}
    for stream, body in ((False, error), (True, Reply.sse(HI, error).body)):
        asked: Asked = await ask(body, stream=stream, **STRICT)
        assert getattr(asked.api_error, 'status_code', None) == 429


HELLO = answer(message({**text('Hi'), 'logprobs': []}))
AT = {'item_id': 'msg_1', 'output_index': 0, 'content_index': 0}
DELTA = {'type': 'response.output_text.delta', 'delta': 'Hi', 'logprobs': [], 'sequence_number': 3, **AT}
EVENTS = [
    {'type': 'response.created', 'sequence_number': 0, 'response': {**HELLO, 'status': 'in_progress', 'output': []}},
    {
        'type': 'response.output_item.added',
        'sequence_number': 1,
        'output_index': 0,
        'item': {**message(), 'status': 'in_progress'},
    },
    {'type': 'response.content_part.added', 'sequence_number': 2, **AT, 'part': text('')},
    DELTA,
    {'type': 'response.newer_than_the_sdk', 'sequence_number': 4},
    {'type': 'response.completed', 'sequence_number': 5, 'response': HELLO},
]


async def test_a_good_response_is_the_parents() -> None:
    assert (await respond(HELLO, **STRICT)).response == (await ask(HELLO, kind=responses_parent)).response
    ours = await respond(sse(*EVENTS, done=False), stream=True, **STRICT)
    theirs = await ask(sse(*EVENTS, done=False), stream=True, kind=responses_parent)
    assert ours.error is None
    assert ours.events == theirs.events
    assert isinstance(ours.response, m.ModelResponse)


RESPONSES: dict[str, tuple[Any, str]] = {
    'null output': (put(HELLO, None, 'output'), '`output` is null'),
    'no annotations': (without(HELLO, 'output', 0, 'content', 0, 'annotations'), 'annotations` is missing'),
    'no sequence number': (
        sse(EVENTS[0], without(DELTA, 'sequence_number'), done=False),
        '`sequence_number` is missing',
    ),
    'no index': (sse(EVENTS[0], without(DELTA, 'content_index'), done=False), '`content_index` is missing'),
    'no type': (sse(EVENTS[0], without(DELTA, 'type'), done=False), '`type` is missing'),
    'no last event': (sse(*EVENTS[:-1], done=False), 'the stream ended without a last event'),
}


@pytest.mark.parametrize(('body', 'fault'), RESPONSES.values(), ids=RESPONSES)
async def test_response(body: Any, fault: str) -> None:
    asked = await respond(body, stream=isinstance(body, bytes), **STRICT)
    assert str(asked.api_error).startswith('strict: ')
    assert fault in str(asked.api_error)


async def test_an_error_says_which_event_and_what_stood_there() -> None:
    asked = await ask(sse(HI, without(HI, 'id'), STOP), stream=True, **STRICT)
    assert str(asked.api_error).startswith('strict: event 2: `id` is missing, in {"object": "chat.completion.chunk", ')
    asked = await ask(sse(chunk({'tool_calls': [without(CALL, 'id')]}), STOP), stream=True, **STRICT)
    assert str(asked.api_error).startswith('strict: event 1: tool_call.id: a call without an id, in {"id": ')
    asked = await ask(sse(HI, STOP, done=False) + b'data: [DONE]', stream=True, **STRICT)
    assert (
        str(asked.api_error)
        == 'strict: at the end of the stream: sse.unterminated: the last event without its blank line'
    )


NUMBERS = {
    'text': ('prompt_tokens', '1', '`usage.prompt_tokens` is "1"'),
    'boolean': ('prompt_tokens', True, '`usage.prompt_tokens` is true'),
    'fraction': ('total_tokens', 13.5, '`usage.total_tokens` is 13.5'),
}


@pytest.mark.parametrize(('key', 'value', 'fault'), NUMBERS.values(), ids=NUMBERS)
async def test_what_the_sdk_would_convert_is_read_as_it_was_sent(key: str, value: Any, fault: str) -> None:
    asked = await ask(put(ANSWER, value, 'usage', key), **STRICT)
    assert fault in str(asked.api_error)
    asked = await ask(json.dumps(ANSWER) + 'behind', **STRICT)
    assert str(asked.api_error).startswith('strict: ')


JUNK = {
    'a word': (b'data: ping\n\n', "expected a JSON object in each event and got 'ping'"),
    'null': (b'data: null\n\n', "expected a JSON object in each event and got 'null'"),
    'behind the end': (b'data: [DONE] bye\n\n', "expected nothing behind `[DONE]` and got 'bye'"),
}


@pytest.mark.parametrize(('junk', 'fault'), JUNK.values(), ids=JUNK)
async def test_events_that_say_nothing_deviate(junk: bytes, fault: str) -> None:
    asked = await ask(sse(HI, done=False) + junk + sse(STOP), stream=True, **STRICT)
    assert str(asked.api_error) == f'strict: {fault}'


async def test_what_the_model_wrote_is_no_deviation() -> None:
    body = completion(tool_calls=[tool_call('lookup', '{"a": 1, "b": }')])
    asked = await ask(body, **STRICT)
    assert asked.error is None
