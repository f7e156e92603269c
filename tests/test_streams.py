"""Streams: bytes in, the whole `ModelResponse` out, through the real default client; with each, what it would be unary.

Each row is a server's habit, with the names of the repairs that must be listed for it.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic_ai import messages as m
from pydantic_ai.exceptions import ModelAPIError
from test_completions import HARMONY, HI, INLINE, NEW_ID, Asked, answered, ask, call, kept, parent, think

from oaicompat.testing import Reply, chunk, completion

DONE = 'data: [DONE]\n\n'
STOP = chunk({}, finish_reason='stop')
CALLED = chunk({}, finish_reason='tool_calls')


def sse(*events: Any, done: bool = True) -> bytes:
    return Reply.sse(*events, done=done).body


def fragment(arguments: Any = None, **fields: Any) -> dict[str, Any]:
    """A chunk with one fragment of a call; `None` leaves a field out."""
    function = {'name': fields.pop('name', None), 'arguments': arguments}
    entry = {'function': {key: value for key, value in function.items() if value is not None}, **fields}
    return chunk({'tool_calls': [entry]})


def start(arguments: Any = '', **fields: Any) -> dict[str, Any]:
    """A chunk that starts a call as the API reference has it, but for `fields`."""
    standard = {'index': 0, 'id': 'call_1', 'type': 'function', 'name': 'lookup'}
    return fragment(arguments, **{key: value for key, value in {**standard, **fields}.items() if value != 'LEFT OUT'})


def called(*parts: m.ModelResponsePart, repairs: tuple[str, ...] = ()) -> m.ModelResponse:
    return answered(*parts, finish='tool_call', raw='tool_calls', usage=None, repairs=repairs)


def said(*parts: m.ModelResponsePart, repairs: tuple[str, ...] = (), **fields: Any) -> m.ModelResponse:
    return answered(*parts, repairs=repairs, **{'usage': None, **fields})


A, B = call('{"city":"A"}'), call('{"city":"B"}', 'search', 'call_2')

FLAT = {'name': 'lookup', 'arguments': '{}'}
CALLS: dict[str, tuple[list[Any], m.ModelResponse]] = {
    'well-formed': ([start(), fragment('{"city":', index=0), fragment('"A"}', index=0)], called(A)),
    'no index': (
        [start('{"city":', index='LEFT OUT'), fragment('"A"}')],
        called(A, repairs=('tool_call.index',)),
    ),
    'index as text': ([start('{"city":', index='0'), fragment('"A"}', index='0')], called(A)),
    'all at index 0, interleaved': (
        [
            start('{"city":'),
            start('{"city":', id='call_2', name='search'),
            fragment('"A"}', index=0, id='call_1'),
            fragment('"B"}', index=0, id='call_2'),
        ],
        called(A, B, repairs=('tool_call.index',)),
    ),
    'all at index 0, whole, no ids': (
        [start('{"city":"A"}', id='LEFT OUT'), start('{"city":"B"}', id=None, name='search')],
        called(
            call('{"city":"A"}', id_=NEW_ID),
            call('{"city":"B"}', 'search', NEW_ID),
            repairs=('tool_call.id', 'tool_call.index'),
        ),
    ),
    'ids repeated': (
        [start('{"city":"A"}'), start('{"city":"B"}', index=1, name='search')],
        called(A, call('{"city":"B"}', 'search', NEW_ID), repairs=('tool_call.duplicate_id',)),
    ),
    'name repeated': (
        [start('{"city":'), start('"A"}')],
        called(A, repairs=('tool_call.repeated_name',)),
    ),
    'name emptied': ([start('{"city":'), fragment('"A"}', index=0, id='call_1', name='')], called(A)),
    'name late': ([start('{"city":', name=None), fragment('"A"}', index=0, name='lookup')], called(A)),
    'name in pieces': ([start(name='look'), fragment('{"city":"A"}', index=0, name='up')], called(A)),
    'name with a marker': ([start('{"city":"A"}', name='lookup<|call|>')], called(A, repairs=('tool_call.name',))),
    'name with a namespace': ([start('{"city":"A"}', name='functions.lookup')], called(A, repairs=('tool_call.name',))),
    'name with a number': ([start('{"city":"A"}', name='functions.lookup:0')], called(A, repairs=('tool_call.name',))),
    'type missing': ([start('{"city":"A"}', type='LEFT OUT')], called(A, repairs=('tool_call.type',))),
    'calls not in a list': (
        [chunk({'tool_calls': start('{"city":"A"}')['choices'][0]['delta']['tool_calls'][0]})],
        called(A, repairs=('tool_call.not_a_list',)),
    ),
    'no envelope': (
        [chunk({'tool_calls': [{'index': 0, 'id': 'call_1', 'type': 'function', **FLAT}]})],
        called(call('{}'), repairs=('tool_call.function',)),
    ),
    'legacy': (
        [chunk({'function_call': {'name': 'lookup'}}), chunk({'function_call': {'arguments': '{"city":"A"}'}})],
        called(call('{"city":"A"}', id_=NEW_ID), repairs=('tool_call.id', 'tool_call.legacy')),
    ),
    'arguments an object': ([start({'city': 'A'})], called(call('{"city": "A"}'), repairs=('tool_call.arguments',))),
    'arguments null': ([start(None)], called(call('{}'), repairs=('tool_call.arguments',))),
    'arguments cumulative': (
        [start('{"city"'), start('{"city":"A"', name=None), start('{"city":"A"}', name=None)],
        called(A, repairs=('tool_call.cumulative',)),
    ),
    'arguments fenced': (
        [start('```json\n{"city":'), fragment('"A"}\n```', index=0)],
        called(A, repairs=('tool_call.arguments',)),
    ),
    'arguments encoded twice': (
        [start(json.dumps('{"city":"A"}'))],
        called(A, repairs=('tool_call.arguments',)),
    ),
    'arguments nested': (
        [start('{"city":"[1]","days":"[1]"}')],
        called(call('{"city": "[1]", "days": [1]}'), repairs=('tool_call.nested_arguments',)),
    ),
    'arguments unreadable': (
        [start('{"city": A and more')],
        called(call('{"city": A and more'), repairs=('tool_call.unreadable',)),
    ),
    'arguments a list': ([start('[1]')], called(call('[1]'), repairs=('tool_call.unreadable',))),
}  # fmt: skip


@pytest.mark.parametrize(('chunks', 'expected'), CALLS.values(), ids=CALLS.keys())
async def test_odd_calls_are_read(chunks: list[Any], expected: m.ModelResponse) -> None:
    asked = await ask(sse(*chunks, CALLED), stream=True)
    assert asked.response == expected, asked.error
    assert asked.response is not None
    ids = [part.tool_call_id for part in asked.response.tool_calls]
    assert len({*ids}) == len(ids)
    started = [event.part for event in asked.events if isinstance(event, m.PartStartEvent)]
    assert {part.tool_call_id for part in started if isinstance(part, m.ToolCallPart)} == {*ids}


UNARY = {
    'no envelope', 'legacy', 'type missing', 'calls not in a list', 'ids repeated', 'name with a marker',
    'arguments an object', 'arguments null', 'arguments nested', 'arguments encoded twice', 'arguments unreadable',
}  # fmt: skip


@pytest.mark.parametrize('case', sorted(UNARY))
async def test_odd_calls_are_read_alike_when_they_come_whole(case: str) -> None:
    deltas = [one['choices'][0]['delta'] for one in CALLS[case][0]]
    message: dict[str, Any] = {'role': 'assistant', 'content': None}
    for delta in deltas:
        for key, value in delta.items():
            joined = message.get(key)
            message[key] = (
                value if joined is None else joined + value if isinstance(value, list) else {**joined, **value}
            )
    body = completion(usage=None)
    body['choices'] = [{'index': 0, 'message': message, 'finish_reason': 'tool_calls'}]
    asked = await ask(body)
    assert asked.response == CALLS[case][1], asked.error


@pytest.mark.parametrize('stream', [True, False])
@pytest.mark.parametrize('name', ['LEFT OUT', '', None, 5])
async def test_a_call_without_a_name_is_an_error(name: object, stream: bool) -> None:
    delta = start('{"city":"A"}', name='LEFT OUT')['choices'][0]['delta']
    if name != 'LEFT OUT':
        delta['tool_calls'][0]['function']['name'] = name
    whole = completion('x')
    whole['choices'][0]['message'] = {'role': 'assistant', 'content': None, **delta}
    asked = await ask(sse(chunk(delta), CALLED) if stream else whole, stream=stream)
    assert 'without a name' in str(asked.api_error)


H, I = chunk({'role': 'assistant', 'content': 'H'}), chunk('i')  # noqa: E741
J = json.dumps

FRAMING: dict[str, tuple[str | bytes, tuple[str, ...]]] = {
    'unterminated': (sse(H, I, STOP, done=False).rstrip(), ('sse.unterminated',)),
    'single newlines': (sse(H, I, STOP).replace(b'\n\n', b'\n'), ('sse.single_newlines', 'sse.unterminated')),
    'JSON lines': (f'{J(H)}\n{J(I)}\n{J(STOP)}\n', ('sse.bare_json',)),
    'a JSON list': (J([H, I, STOP]), ('sse.bare_json', 'sse.glued_values')),
    'glued': (f'data: {J(H)}{J(I)}\n\ndata: {J(STOP)}[DONE]\n\n', ('sse.glued_values',)),
    'doubled field': (sse(H, I, STOP).replace(b'data: ', b'data: data: '), ('sse.doubled_field',)),
    'wrapped comment': (b'data: : wait\n\n' + sse(H, I, STOP), ('sse.wrapped_comment',)),
    'text behind the answer': (sse(H, I, STOP, done=False) + b'data: done\n\n', ('sse.trailing',)),
    'CRLF, no space': (sse(H, I, STOP).replace(b'data: ', b'data:').replace(b'\n', b'\r\n'), ()),
    'CR': (sse(H, I, STOP).replace(b'\n', b'\r'), ()),
    'byte order mark': (b'\xef\xbb\xbf' + sse(H, I, STOP), ()),
    'events without data': (b'event: ping\n\nid: 1\n\nretry: 5\n\ndata:\n\n' + sse(H, I, STOP), ()),
    'no [DONE]': (sse(H, I, STOP, done=False), ()),
    '[DONE] and more': (sse(H, I, STOP, done=False) + b'data:  [DONE] \n\ndata: {"x"\n\n', ()),
    'role alone, nulls, none': (
        sse(chunk({'role': 'assistant'}), H, {**H, 'choices': None}, {**H, 'choices': []}, I, STOP),
        (),
    ),
    'delta null': (
        sse(H, I, {**STOP, 'choices': [{'index': 0, 'delta': None, 'finish_reason': 'stop'}]}),
        ('chunk.delta',),
    ),
    'message in place of a delta': (
        sse({**H, 'choices': [{'index': 0, 'message': {'role': 'assistant', 'content': 'Hi'}}]}, STOP),
        ('chunk.message',),
    ),
    'wrapped': (sse({'data': H}, {'data': I}, {'data': STOP}), ('envelope.wrapped',)),
    'created a float': (sse(*({**one, 'created': 1_700_000_000.5} for one in (H, I, STOP))), ('envelope.defaults',)),
    'refusal false': (sse(H, chunk({'content': 'i', 'refusal': True}), STOP), ('envelope.types',)),
    'moderation a number': (sse(H, {**I, 'moderation': 5}, STOP), ('envelope.types',)),
    'content parts': (sse(H, chunk({'content': [{'type': 'output_text', 'text': 'i'}]}), STOP), ('content.not_text',)),
}  # fmt: skip


@pytest.mark.parametrize(('body', 'repairs'), FRAMING.values(), ids=FRAMING.keys())
async def test_odd_framing_is_read(body: bytes | str, repairs: tuple[str, ...]) -> None:
    asked = await ask(body, stream=True)
    assert asked.response == said(HI, repairs=repairs), asked.error
    assert asked.text == 'Hi'


@pytest.mark.parametrize('body', [FRAMING[name][0] for name in ('CRLF, no space', 'JSON lines', 'unterminated')])
@pytest.mark.parametrize('content_type', ['application/json', 'text/event-stream', 'text/plain'])
async def test_a_stream_in_place_of_a_whole_answer_is_read(body: bytes, content_type: str) -> None:
    response = (await ask(body, content_type=content_type)).response
    assert response is not None
    assert response.parts == [HI]
    assert 'sse.unasked' in (response.provider_details or {})['oaicompat']


@pytest.mark.parametrize('content_type', ['application/json', 'text/event-stream'])
async def test_a_whole_answer_in_place_of_a_stream_is_read(content_type: str) -> None:
    asked = await ask(J(completion('Hi', reasoning_content='Hm.'), indent=1), stream=True, content_type=content_type)
    assert asked.response == answered(think('Hm.'), HI, repairs=('chunk.message', 'sse.bare_json'))


@pytest.mark.parametrize('extra', ['error: full', 'data: error: full\n\n', 'event: error\ndata: full\n\n', 'full'])
@pytest.mark.parametrize('stream', [True, False])
async def test_an_error_as_text_in_a_stream_is_an_error(extra: str, stream: bool) -> None:
    asked = await ask(sse(H, I, done=False) + extra.encode(), stream=stream)
    assert 'full' in str(asked.api_error)
    assert asked.text == ('Hi' if stream else '')


@pytest.mark.parametrize('size', [1, 2, 3, 7, 99])
@pytest.mark.parametrize(
    ('text', 'repaired'),
    [
        ('<think>\nHm.\n</think>\n\nHi', True),
        ('<thinking>Hm.</thinking>Hi', True),
        ('[THINK]Hm.[/THINK] Hi', True),
        (' \n<think>Hm.</think>Hi', True),
        ('<think>Hm.', True),
        ('<', False),
        ('<thinker>', False),
        ('Hi <think>x</think>', False),
    ],
)
async def test_tags_are_read_alike_in_streams(text: str, repaired: bool, size: int) -> None:
    pieces = [chunk(text[at : at + size]) for at in range(0, len(text), size)]
    streamed = await ask(sse(*pieces, STOP), stream=True)
    whole = (await ask(completion(text, usage=None))).response
    assert streamed.response == whole
    assert ((whole.provider_details or {}).get('oaicompat') if whole else None) == (
        ['thinking.tags'] if repaired else None
    )


@pytest.mark.parametrize('learned', [True, False])
async def test_a_template_that_opens_the_tag(learned: bool) -> None:
    """By knob, or learned from an answer that came whole; an answer without reasoning must stay text."""
    options: dict[str, Any] = {'profile': None if learned else {'compat_start_with_reasoning': True}}
    if learned:
        await ask(completion('Hm.</think>Hi'))
    for pieces in (['Hm.</th', 'ink>Hi'], ['<think>Hm.', '</think>Hi']):
        asked = await ask(sse(*map(chunk, pieces), STOP), stream=True, **options)
        assert asked.response == said(INLINE, HI, repairs=('thinking.tags',))
    plain = (await ask(sse(H, I, STOP), stream=True, **options)).response
    assert plain is not None
    assert plain.text == 'Hi'


async def test_a_stream_before_anything_was_learned_keeps_the_text() -> None:
    assert (await ask(sse(chunk('Hm.</think>Hi'), STOP), stream=True)).response == said(m.TextPart('Hm.</think>Hi'))


async def test_merged_choices_and_reasoning_fields() -> None:
    two = {**H, 'choices': [*H['choices'], {'index': 1, 'delta': start('{"city":"A"}')['choices'][0]['delta']}]}
    assert (await ask(sse(two, CALLED), stream=True)).response == called(
        m.TextPart('H'), A, repairs=('choices.merged',)
    )
    details = chunk({'reasoning_details': [{'type': 'reasoning.text', 'text': 'Hm.'}]})
    expected = said(kept('Hm.'), HI, repairs=('reasoning.details',))
    assert (await ask(sse(details, H, I, STOP), stream=True)).response == expected
    parts = chunk({'content': [{'type': 'thinking', 'thinking': 'Hm.'}]})
    expected = said(think('Hm.'), HI, repairs=('content.thinking_parts',))
    assert (await ask(sse(parts, H, I, STOP), stream=True)).response == expected


@pytest.mark.parametrize('leaked', HARMONY)
@pytest.mark.parametrize('size', [1, 3, 1000])
async def test_harmony_channels_are_read_in_any_pieces(leaked: str, size: int) -> None:
    texts = [leaked[at : at + size] for at in range(0, len(leaked), size)]
    asked = await ask(sse(*[chunk({'content': text}) for text in texts], STOP), stream=True, name='gpt-oss-20b')
    assert asked.response == said(INLINE, HI, repairs=('thinking.harmony',))


@pytest.mark.parametrize('key', ['content', 'reasoning_content'])
async def test_a_character_in_two_halves_is_one(key: str) -> None:
    texts = ['Hi \ud83d', '\ude00 and ', '\ud83d']
    events = [*(chunk({key: text}) for text in texts), chunk({'content': '.'}), STOP]
    asked = await ask(''.join(f'data: {json.dumps(event)}\n\n' for event in events) + DONE, stream=True)
    response = asked.response
    assert response is not None
    shown = ''.join(part.content for part in response.parts if isinstance(part, m.TextPart | m.ThinkingPart))
    assert sorted(shown) == sorted('Hi \U0001f600 and \ufffd.')
    assert (response.provider_details or {})['oaicompat'] == ['content.split_character']


USAGE = {'prompt_tokens': 9, 'completion_tokens': 2, 'total_tokens': 11}


@pytest.mark.parametrize(
    ('usages', 'repairs'),
    [
        ([None, None, USAGE], ()),
        ([{**USAGE, 'completion_tokens': 1, 'total_tokens': 10}, USAGE, None], ('usage.cumulative',)),
        ([USAGE, USAGE, USAGE], ('usage.cumulative',)),
        ([None, USAGE, dict.fromkeys(USAGE, 0)], ('usage.cumulative',)),
        (
            [USAGE, dict.fromkeys(USAGE, 0), {**USAGE, 'completion_tokens': 1, 'total_tokens': 10}],
            ('usage.cumulative',),
        ),
        ([None, {'prompt_tokens': 9.0, 'completion_tokens': '2'}, None], ('usage',)),
        (['?', None, USAGE], ('usage',)),
    ],
)
async def test_usage_counts_once(usages: list[Any], repairs: tuple[str, ...]) -> None:
    chunks = [{**one, 'usage': usage} for one, usage in zip([H, I, STOP], usages, strict=True)]
    asked = await ask(sse(*chunks), stream=True)
    assert asked.response == said(HI, usage=(9, 2), repairs=repairs)


async def test_an_answer_in_the_reasoning_is_shown_where_that_is_wanted() -> None:
    body = sse(chunk({'reasoning': '42'}), chunk({'reasoning': '.'}), STOP)
    asked = await ask(body, stream=True, profile={'compat_answer_in_reasoning': True})
    assert asked.response == said(think('42.', 'reasoning'), m.TextPart('42.'), repairs=('reasoning.answer',))


@pytest.mark.parametrize('body', [{'id': 'x', 'choices': []}, {'id': 'x', 'choices': None}, {'message': 'no'}])
@pytest.mark.parametrize('stream', [True, False])
async def test_an_answer_without_choices_is_an_error_that_quotes_it(body: dict[str, Any], stream: bool) -> None:
    asked = await ask(sse(body) if stream else body, stream=stream)
    assert isinstance(asked.error, ModelAPIError)
    assert json.dumps(body)[1:-1] in str(asked.error)


@pytest.mark.parametrize('stream', [True, False])
@pytest.mark.parametrize('off', [True, False])
async def test_off_is_the_parent(stream: bool, off: bool) -> None:
    """Event for event, also for an answer that would have been repaired; on, a well-formed one."""
    text = '<think>Hm.</think>Hi' if off else 'Hi'
    body: Any = sse(chunk(text), STOP) if stream else completion(text)
    ours = await ask(body, stream=stream, profile={'compat_repair': 'off'} if off else None)
    theirs = await ask(body, stream=stream, kind=parent)
    assert (ours.response, ours.events) == (theirs.response, theirs.events)


@pytest.mark.parametrize('stream', [True, False])
async def test_strict_raises_on_the_first_deviation_alone(stream: bool) -> None:
    strict: Any = {'profile': {'compat_repair': 'strict'}, 'stream': stream}
    good: Asked = await ask(sse(H, I, STOP) if stream else completion('Hi', usage=None), **strict)
    assert good.response == said(HI)
    bad = await ask(sse(H, {**I, 'usage': {}}, STOP) if stream else completion('Hi', usage={}), **strict)
    assert 'strict' in str(bad.api_error)
    assert 'usage' in str(bad.api_error)
    assert bad.text == ('H' if stream else '')
