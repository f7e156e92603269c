"""Properties of the repair of the Responses API: one field of a good stream is anything, and an answer comes of it.

Or a typed error; whatever it is, what was told before stays, and the deltas add up to the text.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import test_parity_responses as parity
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic_ai import messages as m
from pydantic_ai.exceptions import ModelAPIError
from test_responses_calls import CALLS
from test_responses_texts import STREAMS
from test_stream_properties import Server, odd_json, providers, server

from oaicompat import OpenAICompatibleResponsesModel
from oaicompat._context import Context
from oaicompat._envelope import FailureError, IncompleteError
from oaicompat._response_events import EventRepair
from oaicompat._response_texts import fold_event, joined_output

__all__ = ('providers', 'server')  # fixtures

PARTED = {'id': 'fc_2', 'call_id': 'call_2', 'name': 'search'}
RAW = {**parity.REASONING, 'content': [{'type': 'reasoning_text', 'text': 'Hm.'}], 'encrypted_content': 'sealed'}
WHOLES = [
    *parity.ANSWERS.values(),
    parity.answer(RAW, parity.message(parity.text('Hi there')), parity.CALL, {**parity.CALL, **PARTED}),
    parity.answer(parity.message(parity.text('H')), status='failed', error={'code': 'server_error', 'message': 'boom'}),
]


def ends_of(whole: dict[str, Any]) -> list[dict[str, Any]]:
    """The events of `whole`, with those that tell each text and argument again as a whole."""
    made: list[dict[str, Any]] = []
    for one in parity.events(whole):
        if one['type'] == 'response.output_item.done' and (item := one['item'])['type'] == 'function_call':
            at = {'item_id': item['id'], 'output_index': one['output_index']}
            made.append({'type': 'response.function_call_arguments.done', 'arguments': item['arguments'], **at})
        if one['type'] == 'response.content_part.done' and 'text' in one['part']:
            rest = {key: value for key, value in one.items() if key != 'part'}
            made.append({**rest, 'type': 'response.output_text.done', 'text': one['part']['text'], 'logprobs': []})
        made.append(one)
    return made


GOOD = [ends_of(whole) for whole in WHOLES]


def paths(value: Any) -> Iterator[tuple[Any, ...]]:
    """The way to each field and element in `value`."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in pairs:
        yield (key,)
        yield from ((key, *rest) for rest in paths(item))


def replaced(value: Any, path: tuple[Any, ...], odd: Any) -> Any:
    made = json.loads(json.dumps(value))  # no object is in it twice
    inside = made
    for step in path[:-1]:
        inside = inside[step]
    inside[path[-1]] = odd
    return made


SITES = [(n, path) for n, events in enumerate(GOOD) for path in paths(events)]
KINDS = sorted({one['type'] for events in GOOD for one in events})
odd_values = st.one_of(
    odd_json,
    st.sampled_from([None, '', 0, 1, -1, 10**12, 1.5, True, [], {}, [[]], [{}], {'a': {}}, 'x', 'a\ud83d', [None]]),
    st.sampled_from(
        [*KINDS, 'message', 'function_call', 'reasoning', 'output_text', 'refusal', 'in_progress', 'error']
    ),
)


def bytes_of(events: list[Any]) -> bytes:
    return b''.join(f'data: {json.dumps(one)}\n\n'.encode() for one in events)


def texts_of(response: m.ModelResponse) -> dict[int, str]:
    parts = enumerate(response.parts)
    return {n: part.content for n, part in parts if isinstance(part, m.TextPart | m.ThinkingPart) and part.content}


def deltas_of(events: list[Any]) -> dict[int, str]:
    """What the deltas add up to, by the index of the part."""
    told: dict[int, str] = {}
    for one in events:
        if isinstance(one, m.PartStartEvent) and isinstance(one.part, m.TextPart | m.ThinkingPart):
            told[one.index] = one.part.content
        elif isinstance(one, m.PartDeltaEvent) and isinstance(one.delta, m.TextPartDelta | m.ThinkingPartDelta):
            told[one.index] += one.delta.content_delta or ''
    return {n: text for n, text in told.items() if text}


@given(st.sampled_from(SITES), odd_values, st.booleans())
@example((3, (5, 'type')), 'response.reasoning_summary_part.added', True)
async def test_any_field_may_be_anything(server: Server, site: Any, odd: Any, stream: bool) -> None:
    n, path = site
    events = replaced(GOOD[n], path, odd)
    seen = await server.seen(bytes_of(events), stream=stream, kind=OpenAICompatibleResponsesModel)
    if 'error' in seen:
        assert issubclass(seen['error'][0], ModelAPIError), seen
    else:
        assert not stream or deltas_of(seen['events']) == texts_of(seen['response'])
        m.ModelMessagesTypeAdapter.dump_json([seen['response']])
    before = [one['delta'] for one in GOOD[n][: path[0]] if one['type'] == 'response.output_text.delta']
    assert not stream or seen['text'].startswith(''.join(before))


@given(st.sampled_from(SITES), odd_values)
async def test_any_field_of_a_whole_answer_may_be_anything(server: Server, site: Any, odd: Any) -> None:
    n, path = site
    whole = GOOD[n][-1]['response']
    path = path[2:] if path[1:2] == ('response',) and path[0] == len(GOOD[n]) - 1 and path[2:] else ('status',)
    body = json.dumps(replaced(whole, path, odd)).encode()
    options: Any = {'stream': False, 'content_type': 'application/json', 'kind': OpenAICompatibleResponsesModel}
    seen = await server.seen(body, **options)
    if 'error' in seen:
        assert issubclass(seen['error'][0], ModelAPIError), seen
    else:
        m.ModelMessagesTypeAdapter.dump_json([seen['response']])


ODD = [[*events] for cases in (CALLS, STREAMS) for events, _, _ in cases.values()]


def repaired(events: list[Any]) -> list[Any]:
    repair = EventRepair(Context(model='m'))
    made: list[Any] = []
    try:
        for one in events:
            made += repair.feed(copy.deepcopy(one))
        made += repair.finish(dropped=False)
    except (FailureError, IncompleteError) as error:
        made.append(str(error))
    return made


def folded(events: list[Any]) -> Any:
    items: dict[int, Any] = {}
    for one in events:
        if isinstance(one, dict):
            fold_event(one, items)
    ends = [one['response'] for one in events if isinstance(one, dict) and 'response' in one]
    output = ends[-1].get('output') if ends else []
    return joined_output(output, items), [one for one in events if isinstance(one, str)]


@given(st.sampled_from(ODD) | st.sampled_from(GOOD))
@example(GOOD[2])
def test_twice_is_once(events: list[Any]) -> None:
    once = repaired(events)
    assert json.dumps(folded(repaired([one for one in once if isinstance(one, dict)]))[0]) == json.dumps(
        folded(once)[0]
    )


@given(st.sampled_from(ODD), st.lists(st.integers(0, 2000), max_size=8))
async def test_any_cut_gives_the_same(server: Server, events: list[Any], cuts: list[int]) -> None:
    body = bytes_of(events)
    kind = OpenAICompatibleResponsesModel
    whole, parted = await server.seen(body, kind=kind), await server.seen(body, cuts, kind=kind)
    assert [str(type(one)) for one in whole['events']] == [str(type(one)) for one in parted['events']]
    assert whole['text'] == parted['text']
