"""`reasoning_details`: shown as reasoning, kept as they came, and sent back so; whole and streamed alike."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic_ai import messages as m
from test_completions import Asked, ask

from oaicompat import infer_model
from oaicompat._details import Details
from oaicompat.testing import Reply, chunk, completion, tool_call

FORMAT = {'type': 'reasoning.text', 'id': 'reasoning-text-1', 'format': 'MiniMax-response-v1', 'index': 0}
LOCKED = {'type': 'reasoning.encrypted', 'data': 'c2VjcmV0', 'index': 1}
CALL = {'index': 0, **tool_call('lookup', {'city': 'Rome'})}
CALLED = chunk({}, finish_reason='tool_calls')


def detail(text: str, **fields: Any) -> dict[str, Any]:
    return {**FORMAT, 'text': text, **fields}


def told(*details: dict[str, Any], **beside: Any) -> dict[str, Any]:
    return chunk({'reasoning_details': list(details), **beside})


WHOLE = [detail('Let me look.')]
ROWS: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]], str]] = {
    'what is new': ([told(detail('Let me')), told(detail(' look.'))], WHOLE, 'Let me look.'),
    'running totals': ([told(detail('Let me')), told(detail('Let me look.'))], WHOLE, 'Let me look.'),
    'empty text beside': (
        [told(detail('Let me'), content=''), told(detail(' look.'), content='')],
        WHOLE,
        'Let me look.',
    ),
    'text in both fields': (
        [told(detail('Let me'), reasoning_content='Let me'), told(detail(' look.'), reasoning_content=' look.')],
        WHOLE,
        'Let me look.',
    ),
    'two kinds': ([told(detail('Let me look.')), told(LOCKED)], [*WHOLE, LOCKED], 'Let me look.'),
    'two places': (
        [told(detail('Let me')), told(detail(' look.')), told(detail('Now.', index=1))],
        [*WHOLE, detail('Now.', index=1)],
        'Let me look.Now.',
    ),
    'no index': ([told({'text': 'a'}), told({'text': 'b'})], [{'text': 'ab'}], 'ab'),
    'locked alone': ([told(LOCKED)], [LOCKED], ''),
    'with the call': ([told(detail('Let me look.'), tool_calls=[CALL])], WHOLE, 'Let me look.'),
}  # fmt: skip


def thinking(asked: Asked) -> m.ThinkingPart:
    assert asked.response is not None, asked
    [part] = [part for part in asked.response.parts if isinstance(part, m.ThinkingPart)]
    return part


@pytest.mark.parametrize(('chunks', 'kept', 'text'), ROWS.values(), ids=ROWS)
async def test_stream(chunks: list[dict[str, Any]], kept: list[dict[str, Any]], text: str) -> None:
    calls = [] if 'tool_calls' in chunks[-1]['choices'][0]['delta'] else [chunk({'tool_calls': [CALL]})]
    asked = await ask(Reply.sse(*chunks, *calls, CALLED).body, stream=True)
    part = thinking(asked)
    assert (part.content, part.provider_details) == (text, {'reasoning_details': kept})
    assert asked.response is not None
    assert (asked.response.provider_details or {})['oaicompat'] == ['reasoning.details']
    started = [event for event in asked.events if isinstance(event, m.PartStartEvent)]
    assert [event.part.part_kind for event in started] == ['thinking', 'tool-call']


async def test_each_reasoning_keeps_its_own() -> None:
    more = told(detail('And.'))
    asked = await ask(
        Reply.sse(told(*WHOLE), chunk('Hi'), more, chunk('ho'), chunk({}, finish_reason='stop')).body, stream=True
    )
    assert asked.response is not None
    parts = [part for part in asked.response.parts if isinstance(part, m.ThinkingPart)]
    assert [part.provider_details for part in parts] == [
        {'reasoning_details': WHOLE},
        {'reasoning_details': [detail('And.')]},
    ]


async def test_reasoning_alone_keeps_them() -> None:
    asked = await ask(Reply.sse(told(*WHOLE), chunk({}, finish_reason='length')).body, stream=True)
    assert thinking(asked).provider_details == {'reasoning_details': WHOLE}
    asked = await ask(Reply.sse(told(*WHOLE)).body, stream=True)
    assert thinking(asked).provider_details == {'reasoning_details': WHOLE}


@pytest.mark.parametrize('beside', [{}, {'reasoning_content': 'Let me look.'}])
async def test_whole(beside: dict[str, Any]) -> None:
    asked = await ask(completion('Hi', reasoning_details=[*WHOLE, LOCKED], **beside))
    part = thinking(asked)
    assert (part.content, part.provider_details) == ('Let me look.', {'reasoning_details': [*WHOLE, LOCKED]})


async def replayed(response: m.ModelResponse, **options: Any) -> dict[str, Any]:
    """The assistant message that goes out for `response`."""
    history: list[m.ModelMessage] = [
        m.ModelRequest([m.UserPromptPart('hi')]),
        response,
        m.ModelRequest([m.ToolReturnPart('lookup', 'sunny', 'call_1')]),
    ]
    asked = await ask(completion('OK'), history=history, **options)
    [sent] = [message for message in json.loads(asked.sent[0].content)['messages'] if message['role'] == 'assistant']
    return dict(sent)


WITH_CALL = [{'id': 'call_1', 'type': 'function', 'function': {'name': 'lookup', 'arguments': '{"city":"Rome"}'}}]


@pytest.mark.parametrize('stream', [True, False])
async def test_sent_back_as_they_came(stream: bool) -> None:
    chunks = told(*WHOLE), told(LOCKED), chunk({'tool_calls': [CALL]}), CALLED
    whole = completion(tool_calls=[tool_call('lookup', {'city': 'Rome'})], reasoning_details=[*WHOLE, LOCKED])
    asked = await ask(Reply.sse(*chunks).body if stream else whole, stream=stream)
    assert asked.response is not None
    sent = await replayed(asked.response)
    calls = sent.pop('tool_calls')
    assert sent == {'role': 'assistant', 'content': None, 'reasoning_details': [*WHOLE, LOCKED]}
    assert [json.loads(call['function']['arguments']) for call in calls] == [{'city': 'Rome'}]


async def test_not_sent_where_reasoning_is_not() -> None:
    asked = await ask(completion(tool_calls=[tool_call('lookup', {})], reasoning_details=WHOLE))
    assert asked.response is not None
    sent = await replayed(asked.response, profile={'openai_chat_send_back_thinking_parts': False})
    assert set(sent) == {'role', 'content', 'tool_calls'}


async def test_not_sent_to_another_provider() -> None:
    asked = await ask(completion(tool_calls=[tool_call('lookup', {})], reasoning_details=WHOLE))
    assert asked.response is not None
    sent = await replayed(asked.response, url='https://another.example/v1')
    assert 'reasoning_details' not in sent


@pytest.mark.parametrize('stream', [True, False])
async def test_a_class_that_reads_them_itself_does(stream: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('OPENROUTER_API_KEY', 'key')
    first = {'provider': 'P', **told(detail('Hm.'), reasoning='Hm.', role='assistant')}
    body = Reply.sse(first, {'provider': 'P', **chunk('Hi', finish_reason='stop')}).body
    whole = {'provider': 'P', **completion('Hi', reasoning='Hm.', reasoning_details=[detail('Hm.')])}
    whole['choices'][0]['native_finish_reason'] = 'stop'
    asked = await ask(body if stream else whole, stream=stream, kind=lambda *_, **__: infer_model('openrouter:x/y'))
    part = thinking(asked)
    assert part.content == 'Hm.'
    assert 'reasoning_details' not in (part.provider_details or {})
    assert asked.response is not None
    assert 'oaicompat' not in (asked.response.provider_details or {})


@pytest.mark.parametrize('odd', [None, 1, 'text', [], [1, None], [{}], {}, [[]]])
async def test_odd_details_are_passed_over(odd: Any) -> None:
    for stream in (True, False):
        body = Reply.sse(chunk({'reasoning_details': odd}), chunk('Hi'), chunk({}, finish_reason='stop')).body
        asked = await ask(body if stream else completion('Hi', reasoning_details=odd), stream=stream)
        assert asked.text == 'Hi' or asked.response is not None
        assert asked.error is None


def test_taking_leaves_nothing() -> None:
    details = Details()
    assert details.feed([detail('a')]) == [detail('a')]
    assert details.feed([detail('a b')]) == [detail(' b')]
    assert details.take() == [detail('a b')]
    assert details.take() == []
    assert details.feed([detail('c')]) == [detail('c')]
