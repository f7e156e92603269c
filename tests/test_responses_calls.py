"""The Responses API: arguments, names and ids of calls as servers send them, and the calls that they become."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic_ai import messages as m
from pydantic_ai.exceptions import ModelAPIError
from test_completions import NEW_ID
from test_parity_responses import answer
from test_responses_repair import (
    AT,
    CREATED,
    FIRST,
    OTHER,
    SECOND,
    A,
    B,
    added,
    argued,
    bare,
    bare_call,
    call,
    done,
    ended,
    event,
    names,
    respond,
    sse,
)

OPEN = added(FIRST, output_index=0)
FENCED = '```json\n{"city":"A"}\n```'
EMPTY: tuple[str, dict[str, Any], str] = ('lookup', {}, 'call_1')


def said(*deltas: Any) -> list[dict[str, Any]]:
    return [argued(delta, **AT) for delta in deltas]


def all_said(arguments: Any) -> dict[str, Any]:
    return event('function_call_arguments.done', arguments=arguments, **AT)


def closed(arguments: Any = '{"city":"A"}', **fields: Any) -> dict[str, Any]:
    return done(call(arguments, **fields), output_index=0)


NAMED = ['tool_call.arguments']
TOTALS = ['tool_call.arguments', 'tool_call.cumulative']  # replaced as a whole
CALLS: dict[str, tuple[list[dict[str, Any]], list[Any], list[str]]] = {
    # an object in place of text
    'delta an object': ([OPEN, *said({'city': 'A'}), ended()], [A], NAMED),
    'delta an object, then the whole': ([OPEN, *said({'city': 'A'}), closed(), ended()], [A], NAMED),
    'delta a list': ([OPEN, *said(['A']), closed(), ended()], [A], NAMED),
    'text, then an object': ([OPEN, *said('{"ci', {'city': 'A'}), ended()], [A], NAMED),
    'done with an object': ([OPEN, all_said({'city': 'A'}), ended()], [A], NAMED),
    'deltas, done with an object': ([OPEN, *said('{"city":', '"A"}'), all_said({'city': 'A'}), ended()], [A], NAMED),
    'opens with an object': ([added(call({'city': 'A'}), output_index=0), ended()], [A], NAMED),
    'opens with an empty object, then deltas': (
        [added(call({}), output_index=0), *said('{"city":"A"}'), ended()], [A], NAMED,
    ),
    'opens with an empty object, then done': ([added(call({}), output_index=0), closed(), ended()], [A], NAMED),
    'opens with half, then the whole in deltas': (
        [added(call('{"ci'), output_index=0), *said('{"ci', 'ty":"A"}'), ended()], [A], [],
    ),
    'opens with half, and goes on': ([added(call('{"ci'), output_index=0), *said('ty":"A"}'), ended()], [A], NAMED),
    # the last word is good
    'quoted, done well': ([OPEN, *said("{'city':'A'}"), closed(), ended()], [A], NAMED),
    'unreadable, done well': ([OPEN, *said('{"city"="A"}'), closed(), ended()], [A], NAMED),
    'fenced, all ends good': ([OPEN, *said(FENCED), all_said('{"city":"A"}'), closed(), ended()], [A], NAMED),
    'fenced, only the response good': ([OPEN, *said('{"city"="A"}'), ended(call())], [A], NAMED),
    'cut, done well': ([OPEN, *said('{"city":'), closed(), ended()], [A], []),
    'cut, the response good': ([OPEN, *said('{"city":'), ended(call())], [A], []),
    'an empty object, done well': ([OPEN, *said('{}'), closed(), ended()], [A], NAMED),
    'good, done bad': ([OPEN, *said('{"city":"A"}'), closed('{"city"="A"}'), ended()], [A], NAMED),
    'good, done otherwise': ([OPEN, *said('{"city":"A"}'), closed('{"city": "A"}'), ended()], [A], NAMED),
    'bad, arguments bad, item good': (
        [OPEN, *said('{"city"="A"}'), all_said('{"city"="A"}'), closed(), ended()], [A], NAMED,
    ),
    'opens well, deltas cut': (
        [added(call(), output_index=0), *said('{"ci'), ended()], [A], ['tool_call.cumulative'],
    ),
    # running totals
    'totals, done well': (
        [OPEN, *said('{"ci', '{"city":', '{"city":"A"}'), closed(), ended()], [A], TOTALS,
    ),
    'totals alone': ([OPEN, *said('{"ci', '{"city":', '{"city":"A"}'), ended()], [A], TOTALS),
    'totals twice': (
        [OPEN, *said('{"city":"A"}', '{"city":"A"}'), closed(), ended()], [A], ['tool_call.cumulative'],
    ),
    'totals of a value': (
        [OPEN, *said('{"city":{', '{"city":{"a":1}', '{"city":{"a":1}}'), ended()],
        [('lookup', {'city': {'a': 1}}, 'call_1')], ['tool_call.cumulative'],
    ),
    # nothing
    'empty, item done': ([OPEN, closed(''), ended()], [EMPTY], NAMED),
    'empty, nothing done': ([OPEN, ended()], [EMPTY], NAMED),
    'empty, all done': ([OPEN, all_said(''), closed(None), ended(call(''))], [EMPTY], NAMED),
    'empty, the response good': ([OPEN, closed(''), ended(call())], [A], []),
    'delta null': ([OPEN, *said(None, '{"city":"A"}'), closed(), ended()], [A], ['responses.event']),
    # nested
    'nested, in deltas': (
        [OPEN, *said('{"days":"[1]"}'), closed('{"days":"[1]"}'), ended()],
        [('lookup', {'days': [1]}, 'call_1')], ['tool_call.nested_arguments'],
    ),
    # names
    'name late': (
        [added(call('', name=''), output_index=0), *said('{"city":', '"A"}'), closed(), ended()], [A], [],
    ),
    'name late, missing first': (
        [added(bare_call('name', arguments=''), output_index=0), *said('{"city":"A"}'), closed(), ended()], [A], [],
    ),
    'name late, no deltas': ([added(call('', name=None), output_index=0), closed(), ended()], [A], []),
    'name in the response alone': (
        [added(call('', name=None), output_index=0), *said('{"city":"A"}'), ended(call())], [A], [],
    ),
    'name with a marker': (
        [added(call('', name='lookup<|channel|>x'), output_index=0), *said('{"city":"A"}'),
         closed(name='lookup<|channel|>x'), ended()], [A], ['tool_call.name'],
    ),
    'name in full late': ([added(call('', name='look'), output_index=0), closed(), ended()], [A], ['tool_call.name']),
    # ids
    'one item id for two calls': (
        [OPEN, *said('{"city":"A"}'), closed(), added(call('', call_id='call_2', name='search'), output_index=1),
         argued('{"city":"B"}', output_index=1, item_id='fc_1'),
         done(call('{"city":"B"}', call_id='call_2', name='search'), output_index=1), ended()],
        [A, B], ['responses.placed'],
    ),
    'no call id': (
        [added(bare_call('call_id', arguments=''), output_index=0), closed(), ended()],
        [('lookup', {'city': 'A'}, NEW_ID)], ['tool_call.id'],
    ),
    'opens twice': ([OPEN, *said('{"city":'), OPEN, *said('"A"}'), closed(), ended()], [A], []),
    'deltas before it opens': ([*said('{"city":"A"}'), closed(), ended()], [A], []),
    'a delta behind the end': ([OPEN, *said('{"city":"A"}'), closed(), *said('}'), ended()], [A], []),
    'half characters': (
        [OPEN, *said('{"city":"\ud83d', '\ude00"}'), closed('{"city":"\U0001f600"}'), ended()],
        [('lookup', {'city': '\U0001f600'}, 'call_1')], ['content.split_character'],
    ),
    'half a character': (
        [OPEN, *said('{"city":"\ud83d"}'), closed('{"city":"\ud83d"}'), ended()],
        [('lookup', {'city': '\ufffd'}, 'call_1')], ['content.split_character'],
    ),
}  # fmt: skip


@pytest.mark.parametrize(('events', 'expected', 'repairs'), CALLS.values(), ids=CALLS)
async def test_a_streamed_call_is_read(events: list[dict[str, Any]], expected: list[Any], repairs: list[str]) -> None:
    asked = await respond(sse(CREATED, *events), stream=True)
    assert bare(asked.response) == expected, asked.error
    assert names(asked.response) == repairs
    assert asked.response is not None
    assert all(isinstance(part, m.ToolCallPart) and isinstance(part.args, str) for part in asked.response.parts)


@pytest.mark.parametrize('case', CALLS)
async def test_a_call_in_a_stream_that_nobody_asked_for_is_read_alike(case: str) -> None:
    events, expected, _ = CALLS[case]
    asked = await respond(sse(CREATED, *events))
    assert bare(asked.response) == expected, asked.error


@pytest.mark.parametrize(
    'events',
    [
        [OPEN, *said('{"city"="A"}'), ended()],
        [OPEN, *said('{"city":"A'), ended()],
        [OPEN, *said('{"city":"A'), closed('{"city":"A'), ended()],
        [OPEN, *said('{"city":"A'), event('incomplete', response=answer(status='incomplete'))],
        [OPEN, all_said('{"city":"A'), closed('{"city":"A'), ended(call('{"city":"A'))],
    ],
)
async def test_what_stays_unreadable_is_named_and_kept(events: list[dict[str, Any]]) -> None:
    for stream in (True, False):
        asked = await respond(sse(CREATED, *events), stream=stream)
        assert asked.response is not None, asked.error
        [part] = asked.response.parts
        assert isinstance(part, m.ToolCallPart)
        assert part.args in ('{"city":"A', '{"city"="A"}')
        assert 'tool_call.unreadable' in names(asked.response)


NAMELESS: dict[str, Callable[[Any], list[dict[str, Any]]]] = {
    'to the end': lambda name: [added(call('', name=name), output_index=0), *said('{}'), closed('{}', name=name)],
    'and cut from its end': lambda name: [added(call('', name=name), output_index=0), *said('{"city":"A"}')],
    'at its end alone': lambda name: [closed(name=name)],
}


@pytest.mark.parametrize('name', [None, '', 5, {}])
@pytest.mark.parametrize('case', NAMELESS)
async def test_a_call_without_a_name_is_an_error(case: str, name: Any) -> None:
    for stream in (True, False):
        asked = await respond(sse(CREATED, *NAMELESS[case](name), ended()), stream=stream)
        assert isinstance(asked.error, ModelAPIError), asked.response
        assert 'a tool call without a name' in str(asked.error)


WHOLE: dict[str, tuple[Any, list[Any], list[str]]] = {
    'in progress, fenced': (call(FENCED, status='in_progress'), [A], NAMED),
    'in progress, an object': (call({'city': 'A'}, status='in_progress'), [A], NAMED),
    'in progress, empty': (call('', status='in_progress'), [EMPTY], NAMED),
    'cut, name with a marker': (
        call('{"city":"A', name='lookup<|x|>'), [], ['tool_call.name', 'tool_call.unreadable'],
    ),
    'id a number': (call(id=5), [A], ['envelope.defaults']),
    'call id a number': (call(call_id=5), [('lookup', {'city': 'A'}, NEW_ID)], ['tool_call.duplicate_id']),
    'no type': (bare_call('type'), [A], ['responses.output']),
    'half a character': (
        call('{"city":"\ud83d"}'), [('lookup', {'city': '\ufffd'}, 'call_1')], ['content.split_character'],
    ),
}  # fmt: skip


@pytest.mark.parametrize(('item', 'expected', 'repairs'), WHOLE.values(), ids=WHOLE)
async def test_a_whole_call_is_read(item: Any, expected: list[Any], repairs: list[str]) -> None:
    asked = await respond(answer(item))
    assert names(asked.response) == repairs, asked.error
    if expected:
        assert bare(asked.response) == expected


async def test_calls_of_two_items_do_not_mix() -> None:
    opened = [OPEN, added(OTHER, output_index=1)]
    deltas = [*said('{"ci'), argued({'city': 'B'}, output_index=1, item_id='fc_2'), *said('ty":"A"}')]
    for ends in ([], [done(call('{"city":"B"}', **SECOND), output_index=1), closed()]):
        asked = await respond(sse(CREATED, *opened, *deltas, *ends, ended()), stream=True)
        assert bare(asked.response) == [A, B]
        assert names(asked.response) == NAMED
