"""What is told twice or in totals counts once, and what is told once is never lost; streams and whole answers alike."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic_ai import messages as m
from test_completions import HI, Asked, ask, call, parent, think
from test_streams import CALLED, STOP, called, fragment, said, sse, start

from oaicompat._details import Details
from oaicompat.testing import chunk, completion, tool_call

H = chunk('Hi')


def escaped(*chunks: Any) -> bytes:
    """A stream in which half a character is an escape."""
    return b''.join(f'data: {json.dumps(one)}\n\n'.encode() for one in chunks) + b'data: [DONE]\n\n'


def message(_finish: str | None = None, **fields: Any) -> dict[str, Any]:
    """A chunk with a whole message in place of the delta."""
    one = chunk({}, finish_reason=_finish)
    one['choices'] = [{'index': 0, 'message': {'role': 'assistant', **fields}, 'finish_reason': _finish}]
    return one


def details(*given: Any, **beside: Any) -> dict[str, Any]:
    return chunk({'reasoning_details': list(given), **beside})


def text(value: str, **fields: Any) -> dict[str, Any]:
    return {'type': 'reasoning.text', 'text': value, 'index': 0, **fields}


def secret(data: str, **fields: Any) -> dict[str, Any]:
    return {'type': 'reasoning.encrypted', 'data': data, **fields}


def repairs_of(asked: Asked) -> list[str]:
    assert asked.response is not None, asked.error
    return list((asked.response.provider_details or {}).get('oaicompat', []))


def kept_of(asked: Asked) -> list[Any]:
    assert asked.response is not None, asked.error
    parts = [part for part in asked.response.parts if isinstance(part, m.ThinkingPart)]
    return [one for part in parts for one in (part.provider_details or {}).get('reasoning_details', [])]


# Messages in a stream

ARGS = '{"city":"A"}'
WHOLE_CALL = {**tool_call('lookup', ARGS), 'id': 'call_1'}
HALF_CALL = {**tool_call('lookup', '{"ci'), 'id': 'call_1'}
MESSAGES: dict[str, tuple[list[Any], m.ModelResponse]] = {
    'behind its deltas': ([chunk('H'), chunk('i'), message('stop', content='Hi')], said(HI)),
    'trimmed': ([chunk(' Hi \n'), message('stop', content='Hi')], said(m.TextPart(' Hi \n'))),
    'with more': ([chunk('H'), message('stop', content='Hi')], said(HI)),
    'totals': ([message(content='H'), message('stop', content='Hi')], said(HI)),
    'the same twice': ([message(content='Hi'), message('stop', content='Hi')], said(HI)),
    'increments': ([message(content='H'), message('stop', content='i')], said(HI)),
    'reasoning': (
        [chunk({'reasoning_content': 'Hm'}), H, message('stop', content='Hi', reasoning_content='Hm')],
        said(think('Hm'), HI),
    ),
    'reasoning in totals': (
        [message(reasoning_content='H'), message('stop', reasoning_content='Hm', content='Hi')],
        said(think('Hm'), HI),
    ),
    'in other words, with reasoning under two names': (
        [message(content='H', reasoning='Hm', reasoning_content='Hm'), chunk('i'), message('stop', content='Hello')],
        said(think('Hm', 'reasoning'), HI),
    ),
    'calls': ([start(ARGS), message('tool_calls', tool_calls=[WHOLE_CALL])], called(call(ARGS))),
    'calls in other words': ([start(ARGS), message('tool_calls', tool_calls=[{**WHOLE_CALL, 'function': {
        'name': 'lookup', 'arguments': '{"city": "A"}'}}])], called(call(ARGS))),
    'calls in totals': (
        [message(tool_calls=[HALF_CALL]), message('tool_calls', tool_calls=[WHOLE_CALL])],
        called(call(ARGS)),
    ),
    'one more call': (
        [start(ARGS), message('tool_calls', tool_calls=[WHOLE_CALL, {**tool_call('search', '{}'), 'id': 'call_2'}])],
        called(call(ARGS), call('{}', 'search', 'call_2')),
    ),
}  # fmt: skip


@pytest.mark.parametrize(('chunks', 'expected'), MESSAGES.values(), ids=MESSAGES)
async def test_a_message_adds_only_what_is_new(chunks: list[Any], expected: m.ModelResponse) -> None:
    finish = chunks[-1]['choices'][0]['finish_reason']
    asked = await ask(sse(*chunks), stream=True)
    assert repairs_of(asked) == ['chunk.message']
    assert asked.response is not None
    assert asked.response.parts == expected.parts
    assert asked.response.finish_reason == {'stop': 'stop', 'tool_calls': 'tool_call'}[finish]
    assert asked.text == (asked.response.text or '')


async def test_reasoning_in_tags_and_in_the_message() -> None:
    asked = await ask(
        sse(chunk('<think>Hm</think>Hi'), message('stop', content='Hi', reasoning_content='Hm')), stream=True
    )
    assert asked.response is not None
    assert asked.response.parts == [think('Hm', 'content'), HI]


@pytest.mark.parametrize(('beside', 'named'), [('', True), ('Hi', False)])
async def test_a_message_beside_a_delta_counts_where_the_delta_is_empty(beside: str, named: bool) -> None:
    one = message(content='Hi')
    one['choices'][0]['delta'] = {'content': beside} if beside else {}
    asked = await ask(sse(one, STOP), stream=True)
    assert asked.response == said(HI, repairs=('chunk.message',) if named else ())


# Details

SECRETS = {
    'by id': [secret('A', id='rs_1', index=0), secret('B', id='rs_2', index=0)],
    'by id, no index': [secret('A', id='rs_1'), secret('B', id='rs_2')],
    'by data': [secret('AAA', index=0), secret('BBB', index=0)],
    'by data, one id': [secret('AAA', id='x'), secret('BBB', id='x')],
    'by signature': [text('Hm', signature='A'), text('', signature='B')],
    'summaries': [{'type': 'reasoning.summary', 'summary': word, 'index': 0, 'id': word} for word in ('Hm', 'Hmm')],
}


@pytest.mark.parametrize('stream', [True, False])
@pytest.mark.parametrize('given', SECRETS.values(), ids=SECRETS)
async def test_no_detail_replaces_another(given: list[Any], stream: bool) -> None:
    """An id, encrypted data or a signature of its own makes a detail another one."""
    body = sse(*map(details, given), H, STOP) if stream else completion('Hi', reasoning_details=given)
    assert kept_of(await ask(body, stream=stream)) == given


def test_what_continues_a_detail() -> None:
    made = Details()
    for one in (text('a', id='1'), text('b', id='2'), text('c', id='1'), text('d'), secret('A'), secret('A')):
        made.feed([one])
    made.feed([secret('AB')])
    assert made.take() == [text('acd', id='1'), text('b', id='2'), secret('AB')]
    assert not made.waiting


TOTALS: dict[str, tuple[list[str], str]] = {
    'grown': (['Let me', 'Let me look.'], 'Let me look.'),
    'word by word': (['I', 'I need', 'I need to'], 'I need to'),
    'repeated': (['Let me', 'Let me look.', 'Let me look.'], 'Let me look.'),
    'whole at once': (['Let me look at it.', 'Let me look at it.'], 'Let me look at it.'),
    'shorter again': (['Let me', 'Let me look.', 'Let me'], 'Let me look.'),
    'another begins': (['Let me', 'Let me look.', 'So', 'So it is.'], 'Let me look.So it is.'),
    'increments': (['Let', ' me', ' me'], 'Let me me'),
    'increments that come to start alike': (['ha', '!', 'ha! ha!'], 'ha!ha! ha!'),
    'digits': (['1', '10', '100'], '110100'),
    'white space': (['\n', '\n\n'], '\n\n\n'),
    'a syllable': (['ha', 'ha'], 'haha'),
    'a rule': (['----', '--------'], '------------'),
}


@pytest.mark.parametrize(('texts', 'whole'), TOTALS.values(), ids=TOTALS)
async def test_totals_and_increments(texts: list[str], whole: str) -> None:
    asked = await ask(sse(*(details(text(one)) for one in texts), H, STOP), stream=True)
    assert asked.response is not None
    assert (asked.response.thinking, kept_of(asked)) == (whole, [text(whole)])


@pytest.mark.parametrize('shown', [['Let me', 'Let me look.'], ['Let me look at it.'], []])
async def test_totals_beside_the_text_say_nothing(shown: list[str]) -> None:
    last = text(shown[-1] if shown else 'Hm.')
    chunks = [*(details(text(one)) for one in shown), details(last, content='H'), details(last, content='i')]
    asked = await ask(sse(*chunks, STOP), stream=True)
    assert asked.response is not None
    assert [part.part_kind for part in asked.response.parts] == ['thinking', 'text']
    assert (asked.response.thinking, asked.text, kept_of(asked)) == (last['text'], 'Hi', [last])
    asked = await ask(sse(*chunks, message('stop', content='Hi', reasoning_details=[last])), stream=True)
    assert kept_of(asked) == [last]


@pytest.mark.parametrize('given', ['Hm', ['H', 'm'], [['Hm']], text('Hm'), [text('Hm')], [secret('x')], {}, '', [1]])
async def test_odd_details_are_read_alike_in_streams(given: Any) -> None:
    streamed = await ask(sse(chunk({'reasoning_details': given}), H, STOP), stream=True)
    whole = await ask(completion('Hi', usage=None, reasoning_details=given))
    assert streamed.response == whole.response


@pytest.mark.parametrize('given', [{'reasoning_content': 'Side'}, {'reasoning_details': [text('Side')]}])
async def test_the_side_channel_comes_first(given: dict[str, Any]) -> None:
    given = {**given, 'content': '<think>Hm</think>Hi'}
    streamed = await ask(sse(chunk(given), STOP), stream=True)
    whole = await ask(completion(usage=None, **given))
    assert streamed.response is not None
    assert whole.response is not None
    assert streamed.response.parts == whole.response.parts  # pydantic-ai reads such tags in a whole answer, too
    assert [getattr(part, 'content', '') for part in streamed.response.parts] == ['Side', 'Hm', 'Hi']


# Half characters

BAD = '{"city": \ud83d'
HALVES: dict[str, list[Any]] = {
    'details': [details(text('x\ud83d')), details(text('\ude00\ud83d', more={'a\ud83d': ['\ud83d']})), H, STOP],
    'unreadable arguments': [start(BAD), CALLED],
    'name and id': [start('{}', name='lookup\ud83d', id='x\ud83d'), CALLED],
    'refusal': [chunk({'refusal': 'No\ud83d'}), chunk({'refusal': '\ude00'}), STOP],
    'message': [message('stop', content='Hi\ud83d')],
}


@pytest.mark.parametrize('chunks', HALVES.values(), ids=HALVES)
async def test_nothing_that_is_sent_back_has_half_a_character(chunks: list[Any]) -> None:
    asked = await ask(escaped(*chunks), stream=True)
    assert 'content.split_character' in repairs_of(asked)
    await can_be_sent_back(asked)


@pytest.mark.parametrize(
    'fields',
    [
        {'content': 'Hi', 'reasoning_details': [text('x\ud83d', more={'a\ud83d': ['\ud83d']})]},
        {'content': None, 'refusal': 'No\ud83d'},
        {'tool_calls': [{'id': 'x\ud83d', 'type': 'function', 'function': {'name': 'l\ud83d', 'arguments': BAD}}]},
    ],
)
async def test_nor_has_a_whole_answer(fields: dict[str, Any]) -> None:
    body = completion('x')
    body['choices'][0]['message'] = {'role': 'assistant', 'content': None, **fields}
    asked = await ask(body)
    assert 'content.split_character' in repairs_of(asked)
    await can_be_sent_back(asked)


async def can_be_sent_back(asked: Asked) -> None:
    assert asked.response is not None
    m.ModelMessagesTypeAdapter.dump_json([asked.response])
    question = m.ModelRequest([m.UserPromptPart('hi')])
    again = await ask(completion('OK'), history=[question, asked.response, question])
    assert again.response is not None, again.error


# Calls


@pytest.mark.parametrize(
    'arguments',
    ["{'city':'R", '```json\n{"city": ', '``', '<tool_call>{"city":', '<tool_c', '{city: 1', '"{\\"city\\":1"', '{"a'],
)
async def test_a_cut_call_is_incomplete_in_any_form(arguments: str) -> None:
    asked = await ask(sse(H, start(arguments)), stream=True)
    assert 'ended inside of the call' in str(asked.api_error)
    assert asked.text == 'Hi'


@pytest.mark.parametrize('arguments', ['[1]', 'text', "{'city': 'it's'}", '{"city": A}'])
async def test_an_unreadable_call_that_is_whole_is_asked_again(arguments: str) -> None:
    asked = await ask(sse(start(arguments)), stream=True)
    assert repairs_of(asked) == ['tool_call.unreadable']


@pytest.mark.parametrize('stream', [True, False])
@pytest.mark.parametrize('number', ['NaN', 'Infinity', '-Infinity', '1e999', '-1e999', '9' * 400 + '.0'])
async def test_a_number_that_json_lacks_is_null(number: str, stream: bool) -> None:
    """It could not be sent back; what has none of them, stays as it is."""
    given = f'{{"city": [{number}, "NaN"]}}'
    body = sse(start(given), CALLED) if stream else completion(tool_calls=[tool_call('lookup', given)])
    asked = await ask(body, stream=stream)
    assert asked.response is not None
    assert [part.args for part in asked.response.tool_calls] == ['{"city": [null, "NaN"]}']
    assert repairs_of(asked) == ['tool_call.arguments']


@pytest.mark.parametrize(
    'chunks',
    [
        [start(' {"ci'), fragment(' {"city":"A"}', index=0)],
        [start(), fragment('\n{"ci', index=0), fragment('\n{"city":"A"', index=0), fragment('\n{"city":"A"}', index=0)],
        [start(), fragment(' ', index=0), fragment('{"ci', index=0), fragment('{"city":"A"}', index=0)],
    ],
)
async def test_totals_of_arguments_behind_white_space(chunks: list[Any]) -> None:
    asked = await ask(sse(*chunks, CALLED), stream=True)
    assert asked.response is not None
    [part] = asked.response.tool_calls
    assert part.args_as_dict() == {'city': 'A'}
    assert repairs_of(asked) == ['tool_call.cumulative']


async def test_a_name_without_arguments_starts_a_call_as_in_the_parent() -> None:
    body = sse(start(None), fragment('{}', index=0), CALLED)
    ours, theirs = await ask(body, stream=True), await ask(body, stream=True, kind=parent)
    assert (ours.events, ours.response) == (theirs.events, theirs.response)


# The rest


@pytest.mark.parametrize('usages', [[(10, 1), (0, 1), (0, 1)], [(10, 1), (0, 2), (10, 3)]])
async def test_usage_in_increments(usages: list[tuple[int, int]]) -> None:
    counts = [{'prompt_tokens': a, 'completion_tokens': b, 'total_tokens': a + b} for a, b in usages]
    chunks = [{**one, 'usage': usage} for one, usage in zip([chunk('H'), chunk('i'), STOP], counts, strict=True)]
    asked = await ask(sse(*chunks), stream=True)
    assert asked.response is not None
    assert (asked.response.usage.input_tokens, asked.response.usage.output_tokens) == (10, 3)
    assert repairs_of(asked) == (['usage.cumulative'] if usages[-1][0] else [])


GOOD_TOKEN = {'token': 'Hi', 'logprob': -1, 'bytes': [72], 'top_logprobs': []}


@pytest.mark.parametrize(
    ('content', 'named'),
    [
        ([GOOD_TOKEN], False),
        (None, False),
        ([1], True),
        ('x', True),
        ([{'token': 'Hi'}], True),
        ([{**GOOD_TOKEN, 'top_logprobs': [None]}], True),
    ],
)
async def test_odd_token_probabilities_are_left_out(content: Any, named: bool) -> None:
    one = chunk('Hi')
    one['choices'][0]['logprobs'] = {'content': content}
    asked = await ask(sse(one, STOP), stream=True)
    assert asked.text == 'Hi'
    assert repairs_of(asked) == (['envelope.types'] if named else [])


@pytest.mark.parametrize('behind', ['garbage', '\nmore', '\n\nx', json.dumps(completion('Ho')), ' \n'])
async def test_what_stands_behind_an_answer_is_named(behind: str) -> None:
    asked = await ask(json.dumps(completion('Hi')) + behind)
    assert asked.response is not None
    assert asked.response.text == 'Hi'
    assert repairs_of(asked) == (['sse.glued_values'] if behind.strip() else [])


@pytest.mark.parametrize('data', ['{}', '{ }', '{"type":"ping"}', '{"type": "heartbeat"}'])
async def test_empty_objects_keep_the_stream_alive(data: str) -> None:
    asked = await ask(f'data: {data}\n\n'.encode() + sse(H, STOP), stream=True)
    assert asked.response == said(HI)
