"""The Responses API: text, reasoning, ends and fields of answers as servers send them, and what they become."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic_ai import messages as m
from pydantic_ai.exceptions import ModelAPIError, ModelConnectionError
from test_parity_responses import REASONING, answer, message, text
from test_responses_repair import (
    CREATED,
    HI,
    A,
    added,
    argued,
    bare,
    call,
    done,
    ended,
    event,
    names,
    respond,
    said,
    sse,
)

HERE: dict[str, Any] = {'output_index': 0, 'item_id': 'msg_1', 'content_index': 0}
OPEN = added(message(), output_index=0)
DONE = done(HI, output_index=0)
THOUGHT: dict[str, Any] = {'output_index': 0, 'item_id': 'rs_1', 'summary_index': 0}
BARE_REASONING = {**REASONING, 'summary': []}
RAW = {**REASONING, 'summary': [], 'content': [{'type': 'reasoning_text', 'text': 'Hm.'}]}
BOTH = {**REASONING, 'content': [{'type': 'reasoning_text', 'text': 'Raw.'}], 'encrypted_content': 'sealed'}


def told(*deltas: Any) -> list[dict[str, Any]]:
    return [said(delta, **HERE) for delta in deltas]


def refused(*deltas: str) -> list[dict[str, Any]]:
    return [event('refusal.delta', delta=delta, **HERE) for delta in deltas]


def thought(*deltas: str) -> list[dict[str, Any]]:
    return [event('reasoning_summary_text.delta', delta=delta, **THOUGHT) for delta in deltas]


def part(end: str, value: Any, **fields: Any) -> dict[str, Any]:
    return event(f'content_part.{end}', part=value, **{**HERE, **fields})


SPLIT, UNSTREAMED, TOTALS = ['content.split_character'], ['responses.unstreamed'], ['content.cumulative']
THERE = message(text('Hi there'))
STREAMS: dict[str, tuple[list[dict[str, Any]], list[Any], list[str]]] = {
    # a part of reasoning, as OpenAI opens one
    'parts of reasoning': (
        [
            added(BARE_REASONING, output_index=0),
            part('added', {'type': 'reasoning_text', 'text': ''}, item_id='rs_1'),
            event('reasoning_text.delta', delta='Hm.', output_index=0, item_id='rs_1', content_index=0),
            part('done', {'type': 'reasoning_text', 'text': 'Hm.'}, item_id='rs_1'),
            done(RAW, output_index=0),
            added(message(), output_index=1),
            said('Hi', output_index=1, item_id='msg_1', content_index=0),
            done(message(text('Hi')), output_index=1),
            ended(RAW, message(text('Hi'))),
        ],
        ['', 'Hi'], [],
    ),
    # half characters
    'halves': ([OPEN, *told('a\ud83d', '\ude00b'), ended()], ['a\U0001f600b'], SPLIT),
    'halves, all ends': (
        [OPEN, *told('\ud83d', '\ude00'), done(message(text('\U0001f600')), output_index=0), ended()],
        ['\U0001f600'], SPLIT,
    ),
    'half at the end': ([OPEN, *told('a\ud83d'), ended()], ['a\ufffd'], SPLIT),
    'half, then its end': (
        [OPEN, *told('a\ud83d'), event('output_text.done', text='a\ud83d', **HERE), ended()], ['a\ufffd'], SPLIT,
    ),
    'half of reasoning': (
        [added(BARE_REASONING, output_index=0), *thought('\ud83d', '\ude00'), ended()], ['\U0001f600'], SPLIT,
    ),
    'half in the end alone': ([OPEN, done(message(text('a\ud83d')), output_index=0), ended()], ['a\ufffd'],
                              [*SPLIT, *UNSTREAMED]),
    # text that only ends tell
    'text done alone': ([OPEN, event('output_text.done', text='Hi', **HERE), ended()], ['Hi'], UNSTREAMED),
    'part done alone': ([OPEN, part('done', text('Hi')), ended()], ['Hi'], UNSTREAMED),
    'part opens with it': ([OPEN, part('added', text('Hi')), ended()], ['Hi'], UNSTREAMED),
    'part opens with it, deltas repeat it': (
        [OPEN, part('added', text('Hi')), *told('H', 'i'), part('done', text('Hi')), DONE, ended(HI)], ['Hi'], [],
    ),
    'output_text alone': (
        [event('completed', response=answer() | {'output_text': 'Hi'})], ['Hi'], ['responses.output', *UNSTREAMED],
    ),
    'every end, no delta': (
        [OPEN, event('output_text.done', text='Hi', **HERE), part('done', text('Hi')), DONE, ended(HI)],
        ['Hi'], UNSTREAMED,
    ),
    'parts counted from one': (
        [OPEN, *[said(one, **{**HERE, 'content_index': 1}) for one in ('H', 'i')], DONE, ended(HI)], ['Hi'], [],
    ),
    'other ids in the response': (
        [OPEN, *told('Hi'), ended({**HI, 'id': 'other'})], ['Hi'], [],
    ),
    'other ids, another item more': (
        [OPEN, *told('Hi'), ended({**HI, 'id': 'other'}, call())], ['Hi', A], UNSTREAMED,
    ),
    # running totals
    'totals': ([OPEN, *told('Hi', 'Hi there'), event('output_text.done', text='Hi there', **HERE), ended()],
               ['Hi there'], TOTALS),
    'totals, item done': (
        [OPEN, *told('H', 'Hi', 'Hi th', 'Hi there'), done(THERE, output_index=0), ended(THERE)], ['Hi there'], TOTALS,
    ),
    'totals, only the response': ([OPEN, *told('H', 'Hi', 'Hi there'), ended(THERE)], ['Hi there'], TOTALS),
    'totals, the last lost': ([OPEN, *told('H', 'Hi'), ended(THERE)], ['Hi there'], [*TOTALS, *UNSTREAMED]),
    'totals of reasoning': (
        [added(BARE_REASONING, output_index=0), *thought('Let', 'Let me see.'), done(REASONING, output_index=0),
         ended()], ['Let me see.'], TOTALS,
    ),
    'a text that repeats itself': (
        [OPEN, *told('ha', 'haha', '!'), done(message(text('hahaha!')), output_index=0), ended()], ['hahaha!'], [],
    ),
    'repeats itself, no end': ([OPEN, *told('ha', 'haha'), ended()], ['hahaha'], []),
    'repeats itself to its end': (
        [OPEN, *told('ha', 'haha'), done(message(text('hahaha')), output_index=0), ended()], ['hahaha'], [],
    ),
    # reasoning
    'reasoning done alone': (
        [added(BARE_REASONING, output_index=0), done(REASONING, output_index=0), ended()], ['Let me see.'], UNSTREAMED,
    ),
    'reasoning in the response alone': ([ended(REASONING, HI)], ['Let me see.', 'Hi'], UNSTREAMED),
    'raw reasoning done alone': (
        [done(RAW, output_index=0), done(HI, output_index=1), ended()], ['', 'Hi'], UNSTREAMED,
    ),
    'reasoning as text': ([done({**REASONING, 'summary': 'Hm.'}, output_index=0), ended()], ['Hm.'],
                          ['reasoning.field', *UNSTREAMED]),
    'summary part opens with it': (
        [added(BARE_REASONING, output_index=0),
         event('reasoning_summary_part.added', part={'type': 'summary_text', 'text': 'Hm.'}, **THOUGHT),
         *thought('Hm', '.'), done({**REASONING, 'summary': ['Hm.']}, output_index=0), ended()],
        ['Hm.'], ['reasoning.field'],
    ),
    'summary part done alone': (
        [event('reasoning_summary_part.added', part={'type': 'summary_text', 'text': None}, **THOUGHT),
         event('reasoning_summary_part.done', part={'type': 'summary_text', 'text': 'Hm.'}, **THOUGHT), ended()],
        ['Hm.'], UNSTREAMED,
    ),
    # ends
    'no output': (
        [OPEN, *told('Hi'), event('completed', response={'id': 'r', 'model': 'm', 'status': 'completed'})],
        ['Hi'], ['responses.null_lists'],
    ),
    'done of a whole': ([OPEN, *told('Hi'), event('done', response=answer(HI))], ['Hi'], ['responses.event']),
    'the end twice': ([OPEN, *told('Hi'), ended(HI), ended(HI)], ['Hi'], ['responses.event']),
    'an error behind the end': (
        [OPEN, *told('Hi'), ended(HI), {'type': 'error', 'message': 'late'}], ['Hi'], ['sse.trailing'],
    ),
    'another error behind the end': (
        [OPEN, *told('Hi'), ended(HI), {'type': 'x', 'error': 'late'}], ['Hi'], ['sse.trailing'],
    ),
    'no type at all': ([OPEN, *told('Hi'), {'type': 5}, ended()], ['Hi'], ['responses.event']),
}  # fmt: skip


@pytest.mark.parametrize(('events', 'expected', 'repairs'), STREAMS.values(), ids=STREAMS)
async def test_a_streamed_text_is_read(events: list[dict[str, Any]], expected: list[Any], repairs: list[str]) -> None:
    asked = await respond(stream_of(events), stream=True)
    assert bare(asked.response) == expected, asked.error
    assert names(asked.response) == repairs
    assert asked.response is not None
    assert asked.response.finish_reason == 'stop'
    assert asked.text == ''.join(p.content for p in asked.response.parts if isinstance(p, m.TextPart))
    json.dumps(m.ModelMessagesTypeAdapter.dump_python([asked.response], mode='json')).encode()


@pytest.mark.parametrize('case', STREAMS)
async def test_a_stream_that_nobody_asked_for_is_read_alike(case: str) -> None:
    events, expected, _ = STREAMS[case]
    asked = await respond(stream_of(events))
    assert bare(asked.response) == expected, asked.error


def stream_of(events: list[dict[str, Any]]) -> bytes:
    return b''.join(f'data: {json.dumps(one)}\n\n'.encode() for one in (CREATED, *events))


async def test_reasoning_that_came_whole_is_that_of_a_whole_answer() -> None:
    whole = (await respond(answer(BOTH, HI))).response
    for events in ([ended(BOTH, HI)], [done(BOTH, output_index=0), ended(BOTH, HI)]):
        streamed = (await respond(sse(CREATED, *events), stream=True)).response
        assert whole is not None
        assert streamed is not None
        assert streamed.parts == whole.parts


REFUSED: dict[str, list[dict[str, Any]]] = {
    'halves': refused('No\ud83d', '\ude00'),
    'part done alone': [part('done', {'type': 'refusal', 'refusal': 'No\U0001f600'})],
    'done alone': [event('refusal.done', refusal='No\U0001f600', **HERE)],
    'totals': [*refused('No', 'No\U0001f600'), event('refusal.done', refusal='No\U0001f600', **HERE)],
    'item done alone': [done(message({'type': 'refusal', 'refusal': 'No\U0001f600'}), output_index=0)],
    'the response alone': [ended(message({'type': 'refusal', 'refusal': 'No\U0001f600'}))],
    'not text': [event('refusal.done', refusal=['No\U0001f600'], **HERE)],
}


@pytest.mark.parametrize('events', REFUSED.values(), ids=REFUSED)
async def test_a_refusal_is_read(events: list[dict[str, Any]]) -> None:
    for stream in (True, False):
        asked = await respond(sse(CREATED, *events, ended()), stream=stream)
        assert asked.response is not None, asked.error
        assert asked.response.finish_reason == 'content_filter'
        assert (asked.response.provider_details or {})['refusal'] == 'No\U0001f600'
        assert asked.response.provider_details


WHOLE: dict[str, tuple[Any, list[Any], list[str]]] = {
    'half a character': (answer(message(text('a\ud83d'))), ['a\ufffd'], SPLIT),
    'halves': (answer(message(text('\ud83d\ude00'))), ['\U0001f600'], []),
    'content strings': (answer({**HI, 'content': ['Hi']}), ['Hi'], ['content.not_text']),
    'content an object': (answer({**HI, 'content': text('Hi')}), ['Hi'], ['content.not_a_list']),
    'content missing': (answer({k: v for k, v in HI.items() if k != 'content'}), [], ['responses.null_lists']),
    'content null, text beside it': (
        answer({**HI, 'content': None, 'text': 'Hi'}), ['Hi'], ['content.not_a_list', 'responses.null_lists'],
    ),
    'content a number': (answer({**HI, 'content': 5}), [], ['responses.null_lists']),
    'part null': (answer(message(None, text('Hi'))), ['Hi'], ['content.not_text']),  # type: ignore[arg-type]
    'summary strings': (answer({**REASONING, 'summary': ['Hm.']}, HI), ['Hm.', 'Hi'], ['reasoning.field']),
    'summary text null': (
        answer({**REASONING, 'summary': [{'type': 'summary_text', 'text': None}]}, HI), ['Hi'], ['reasoning.field'],
    ),
    'summary missing': (
        answer({'type': 'reasoning', 'id': 'rs_1'}, HI), ['Hi'], ['responses.null_lists'],
    ),
    'output strings': (answer('Hi'), ['Hi'], ['responses.output']),  # type: ignore[arg-type]
    'output text': (answer() | {'output': 'Hi'}, ['Hi'], ['responses.output']),
    'output with null in it': (answer(None, HI), ['Hi'], ['responses.output']),  # type: ignore[arg-type]
    'model a number': (answer(HI, model=5), ['Hi'], ['envelope.defaults']),
    'id an object': (answer(HI, id={}), ['Hi'], ['envelope.defaults']),
    'item id a list': (answer({**HI, 'id': []}), ['Hi'], ['envelope.defaults']),
    'no type of an item': (answer({k: v for k, v in HI.items() if k != 'type'}), ['Hi'], ['responses.output']),
    'status a list': (answer(HI, status=[]), ['Hi'], ['envelope.types']),
    'details text': (answer(HI, incomplete_details='x'), ['Hi'], ['envelope.types']),
    'reason a list': (answer(HI, incomplete_details={'reason': []}), ['Hi'], ['envelope.types']),
    'moderation text': (answer(HI, moderation='x'), ['Hi'], ['envelope.types']),
    'conversation text': (answer(HI, conversation='x'), ['Hi'], ['envelope.types']),
    'created far away': (answer(HI, created_at=1e300), ['Hi'], ['envelope.defaults']),
    'logprobs text': (answer(message({**text('Hi'), 'logprobs': 'x'})), ['Hi'], ['envelope.types']),
    'annotations odd': (answer(message({**text('Hi'), 'annotations': ['x']})), ['Hi'], ['envelope.types']),
}  # fmt: skip


@pytest.mark.parametrize(('body', 'expected', 'repairs'), WHOLE.values(), ids=WHOLE)
async def test_a_whole_text_is_read(body: Any, expected: list[Any], repairs: list[str]) -> None:
    asked = await respond(body)
    assert bare(asked.response) == expected, asked.error
    assert names(asked.response) == repairs
    m.ModelMessagesTypeAdapter.dump_json([asked.response])  # type: ignore[list-item]


@pytest.mark.parametrize('error', ['boom', ['boom'], {'message': 'boom', 'code': 5}, {'detail': 'boom'}])
async def test_a_failure_keeps_the_words_of_the_server(error: Any) -> None:
    failed = event('failed', response=answer(status='failed', error=error))
    for body, stream in (
        (sse(CREATED, *told('ha', 'haha'), failed), True),
        (sse(CREATED, *told('Hi'), failed), False),
        (json.dumps(failed['response']).encode(), False),
    ):
        asked = await respond(body, stream=stream)
        assert 'boom' in str(asked.error)
        assert isinstance(asked.error, ModelAPIError)
        assert asked.text == ('hahaha' if stream else '')


async def test_what_waited_is_told_before_the_error_of_a_cut_call() -> None:
    opened = added(call('', id='fc_2'), output_index=1)
    body = sse(CREATED, opened, argued('{"ci', output_index=1, item_id='fc_2'), *told('ha', 'haha'))
    asked = await respond(body, stream=True)
    assert isinstance(asked.error, ModelConnectionError)
    assert asked.text == 'hahaha'
