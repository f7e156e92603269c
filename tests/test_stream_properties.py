"""Properties of the repair: any cut gives the same, a good answer stays, twice is once, nothing else is raised."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from itertools import pairwise
from typing import Any

import httpx
import pytest
import respx
import strategies as s
import test_parity as parity
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic_ai import messages as m
from pydantic_ai.exceptions import AgentRunError
from pydantic_ai.models.openai import OpenAIChatModel
from strategies import Wire
from test_completions import HISTORY, TOOLS, text_of
from test_responses_repair import STREAMS
from test_streams import CALLS, FRAMING, sse
from typing_extensions import override

from oaicompat import OpenAICompatibleModel, OpenAICompatibleResponsesModel
from oaicompat._completion import repair_completion
from oaicompat._context import Context
from oaicompat._envelope import FailureError, IncompleteError
from oaicompat._keys import INLINE, KEPT, WHOLE
from oaicompat._repair import ChunkRepair
from oaicompat.testing import chunk, completion

providers = parity.providers
CONTEXT = Context(model='m', schemas={tool.name: tool.parameters_json_schema for tool in TOOLS.function_tools})


class Pieces(httpx.AsyncByteStream):
    """A body that arrives in pieces."""

    def __init__(self, pieces: list[bytes]) -> None:
        self.pieces = pieces

    @override
    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            yield piece


class Server:
    """Answers every request with the same pieces."""

    def __init__(self, wire: Wire) -> None:
        self.providers = wire.providers
        self.pieces: list[bytes] = []
        self.content_type = 'text/event-stream'

    def __call__(self, request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, stream=Pieces(self.pieces), headers={'content-type': self.content_type})

    async def seen(self, body: bytes, cuts: list[int] | None = None, **options: Any) -> dict[str, Any]:
        """What a caller sees of `body`: events, text, and the response or the error; ids that are new are alike."""
        self.content_type = options.get('content_type', 'text/event-stream')
        edges = [0, *sorted({cut % (len(body) + 1) for cut in cuts or ()}), len(body)]
        self.pieces = [body[start:end] for start, end in pairwise(edges)]
        kind = options.get('kind', OpenAICompatibleModel)
        model: Any = kind('m', provider=self.providers['made-up'])
        events: list[Any] = []
        seen: dict[str, Any] = {'events': events}
        try:
            async with asyncio.timeout(20):
                if options.get('stream', True):
                    async with model.request_stream(HISTORY, None, TOOLS) as streamed:
                        async for event in streamed:
                            events.append(event)  # noqa: PERF401  # what came before an error counts
                    response = streamed.get()
                else:
                    response = await model.request(HISTORY, None, TOOLS)
            seen['response'] = s.settled(response)
        except AgentRunError as error:
            seen['error'] = (type(error), str(error))
        seen['text'] = ''.join(map(text_of, events))
        return seen


@pytest.fixture
def server(providers: Any) -> Iterator[Server]:
    made = Server(Wire(providers))
    for provider in providers.values():
        provider.client.max_retries = 0
    with respx.mock(using='httpcore2', assert_all_called=False) as router:
        router.route().mock(side_effect=made)
        yield made


def alike(value: Any) -> str:
    """`value` as text, with random ids made equal."""
    text = repr(value)
    for number, id_ in enumerate(dict.fromkeys(re.findall(r'call_[0-9a-f]{24}', text))):
        text = text.replace(id_, f'<id {number}>')
    return text


# What comes

odd_scalars: st.SearchStrategy[Any] = st.one_of(
    s.scalars, st.sampled_from(['', '0', 'stop', 'x' * 40, float('nan'), float('inf'), -1, 10**30, [], {}])
)
odd_json = st.recursive(
    odd_scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(s.texts, inner, max_size=3), max_leaves=5
)
KEYS = (
    'id', 'object', 'created', 'model', 'choices', 'usage', 'error', 'errors', 'detail', 'message', 'code', 'data',
    'service_tier', 'moderation', 'system_fingerprint', 'base_resp', 'status', 'success',
)  # fmt: skip
DELTA = (
    'role', 'content', 'tool_calls', 'function_call', 'reasoning', 'reasoning_content', 'reasoning_details', 'refusal',
    'annotations', 'audio', 'thinking', 'index', 'id', 'type', 'function', 'name', 'arguments', 'text',
)  # fmt: skip


def _objects(keys: tuple[str, ...], inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.sampled_from(keys), inner, max_size=5)


odd_calls = st.lists(_objects(DELTA, odd_json | _objects(DELTA, odd_json)), max_size=3)
odd_deltas = _objects(DELTA, odd_json | odd_calls)
odd_choices = st.fixed_dictionaries(
    {}, optional={'index': odd_scalars, 'delta': odd_deltas | odd_json, 'message': odd_deltas | odd_json,
                  'finish_reason': odd_scalars, 'error': odd_json, 'text': odd_scalars, 'logprobs': odd_json}
)  # fmt: skip
odd_bodies = st.one_of(
    odd_json,
    _objects(KEYS, odd_json),
    st.builds(
        lambda base, odd, choices: {**base, **odd, **({'choices': choices} if choices is not None else {})},
        st.sampled_from([chunk('Hi'), completion('Hi'), {}]),
        _objects(KEYS, odd_json),
        st.none() | st.lists(odd_choices | odd_json, max_size=3),
    ),
)
scraps = st.sampled_from([
    b'data: ', b'data:', b'\n', b'\n\n', b'\r\n', b'\r', b'event: error\n', b'event: x\n', b': ping\n', b'[DONE]',
    b'error: ', b'{', b'}', b'"', b'\\', b'\xff', b'\xef\xbb\xbf', 'Zürich 🌦'.encode(), b'<think>', b'</think>',
    b'null', b'id: 1\n', b'<html>',
    json.dumps(chunk('Hi')).encode(), json.dumps(chunk({}, finish_reason='stop')).encode(),
])  # fmt: skip
odd_bytes = st.lists(scraps | st.binary(max_size=9), max_size=14).map(b''.join)
recorded = st.sampled_from(
    [
        *(sse(*row[0]) for row in CALLS.values()),
        *(b if isinstance(b, bytes) else b.encode() for b, _ in FRAMING.values()),
    ]
)
tagged = st.text(st.sampled_from('<thinker/>[THINK] `\nab'), max_size=30).map(lambda text: '<think>' + text)


@st.composite
def good_streams(draw: st.DrawFn) -> bytes:
    return sse(*s.chunks(draw(s.answers()), draw(st.integers(1, 9))))


@st.composite
def tagged_streams(draw: st.DrawFn) -> bytes:
    text, size = draw(tagged), draw(st.integers(1, 9))
    return sse(*(chunk(text[at : at + size]) for at in range(0, len(text), size)), chunk({}, finish_reason='stop'))


odd_streams = st.lists(odd_bodies, max_size=4).map(lambda bodies: sse(*(f'data: {json.dumps(b)}\n\n' for b in bodies)))
streams = st.one_of(good_streams(), tagged_streams(), recorded, odd_streams, odd_bytes)


# Properties


@given(streams, st.lists(st.integers(0, 10**4), max_size=12))
async def test_any_cut_of_any_stream_gives_the_same(server: Server, body: bytes, cuts: list[int]) -> None:
    whole = await server.seen(body)
    assert alike(await server.seen(body, cuts)) == alike(whole)
    if len(body) < 1500:
        assert alike(await server.seen(body, list(range(len(body))))) == alike(whole)


@given(good_streams(), st.lists(st.integers(0, 10**4), max_size=5))
async def test_a_well_formed_stream_equals_the_parents(server: Server, body: bytes, cuts: list[int]) -> None:
    expected = await server.seen(body, kind=OpenAIChatModel)
    assert await server.seen(body, cuts) == expected
    assert 'oaicompat' not in (expected['response'].provider_details or {})


@given(s.answers())
async def test_a_well_formed_answer_equals_the_parents(server: Server, answer: Any) -> None:
    options: Any = {'stream': False, 'content_type': 'application/json'}
    body = json.dumps(answer).encode()
    assert await server.seen(body, **options) == await server.seen(body, kind=OpenAIChatModel, **options)
    names: set[str] = set()
    assert repair_completion(answer, CONTEXT, names) is answer
    assert names == set()


@given(streams | odd_bytes, st.booleans())
async def test_text_deltas_add_up_to_the_text(server: Server, body: bytes, responses: bool) -> None:
    kind = OpenAICompatibleResponsesModel if responses else OpenAICompatibleModel
    seen = await server.seen(body, kind=kind)
    if 'response' in seen:
        assert seen['text'] == ''.join(part.content for part in seen['response'].parts if isinstance(part, m.TextPart))


@pytest.mark.filterwarnings('ignore')  # pydantic-ai's and pydantic's about values that are odd, not wrong
@given(odd_bodies | odd_bytes | odd_streams, st.booleans(), st.sampled_from(['application/json', 'text/event-stream']))
async def test_arbitrary_answers_raise_nothing_but_declared_errors(
    server: Server, body: Any, stream: bool, content_type: str
) -> None:
    """`seen()` lets every other exception through, and gives up after a while."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    await server.seen(raw, stream=stream, content_type=content_type)
    await server.seen(raw, stream=stream, content_type=content_type, kind=OpenAICompatibleResponsesModel)


@pytest.mark.filterwarnings('ignore')
@given(st.sampled_from(sorted(STREAMS)), st.lists(st.tuples(s.texts, odd_json), max_size=3), st.integers(0, 9))
async def test_odd_events_of_the_responses_api_raise_nothing_else(
    server: Server, case: str, odd: list[tuple[str, Any]], at: int
) -> None:
    events = STREAMS[case][0].split(b'\n\n')[:-1]
    kind, _, data = events[at % len(events)].partition(b'data: ')
    changed = {**json.loads(data), **dict(odd)}
    keys = sorted(changed)
    for number, (_, value) in enumerate(odd):
        changed[keys[(at + number) % len(keys)]] = value
    events[at % len(events)] = kind + b'data: ' + json.dumps(changed).encode()
    await server.seen(b'\n\n'.join(events) + b'\n\n', kind=OpenAICompatibleResponsesModel)


@given(odd_streams | odd_bytes)
@settings(max_examples=40)
async def test_what_came_before_stays(server: Server, rest: bytes) -> None:
    """Whatever follows, the text that came is told, and is in the answer if there is one."""
    seen = await server.seen(sse(chunk('Before. '), chunk('And more.'), done=False) + b'\n' + rest)
    assert seen['text'].startswith('Before. And more.')


def repaired(chunks: list[Any]) -> list[Any] | None:
    repair = ChunkRepair(CONTEXT)
    try:
        made = [one for given_ in chunks for one in repair.feed(given_)]
        return [*made, *repair.finish(dropped=False)]
    except (FailureError, IncompleteError):
        return None


def telling(chunks: list[Any] | None) -> list[Any]:
    """Without chunks that say nothing: text that is held back leaves one in its place, each time."""
    empty = ('delta', 'finish_reason')
    return [
        one
        for one in chunks or []
        if not one['choices'] or any(choice.get(key) for choice in one['choices'] for key in empty) or one.get('usage')
    ]


def unmarked(chunks: Any) -> bool:
    return not any(mark in repr(chunks) for mark in (INLINE, KEPT, WHOLE))


@given(st.lists(st.builds(lambda choice: {**chunk('Hi'), 'choices': [choice]}, odd_choices), max_size=4))
@example([{**chunk('Hi'), 'choices': [{'text': ' '}]}])
@example([{**chunk('Hi'), 'choices': [{'delta': {'role': [], 'reasoning_details': {'': None}}}]}])
@example(
    [
        {**chunk('Hi'), 'choices': [{'delta': {'reasoning': ['0']}}]},
        {**chunk('Hi'), 'choices': [{'message': {'thinking': '0'}}]},
    ]
)
@example(
    [
        {**chunk('Hi'), 'choices': [{'delta': {'reasoning': ['0']}}]},
        {**chunk('Hi'), 'choices': [{'message': {'reasoning_details': '0'}}]},
    ]
)
def test_to_repair_chunks_twice_is_to_repair_them_once(chunks: list[Any]) -> None:
    """Where nothing was moved into fields that only pydantic-ai's mapping reads."""
    once = repaired(chunks)
    if once is not None and unmarked(once):
        assert json.dumps(telling(repaired(once))) == json.dumps(telling(once))


@given(odd_bodies.filter(lambda body: isinstance(body, dict)))
def test_to_repair_an_answer_twice_is_to_repair_it_once(body: Any) -> None:
    try:
        once = repair_completion(body, CONTEXT, set())
    except FailureError:
        return
    names: set[str] = set()
    assert json.dumps(repair_completion(once, CONTEXT, names)) == json.dumps(once)
