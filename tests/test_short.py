"""The short path of a stream: everything that comes out is what comes out without it, whatever arrives and how."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator, Sequence
from typing import Any

import httpx2
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from openai import AsyncOpenAI
from pydantic_ai import messages as m
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIStreamedResponse
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.tools import ToolDefinition
from strategies import settled
from typing_extensions import override

from oaicompat import OpenAICompatibleModel, _alike, models
from oaicompat._context import Context
from oaicompat._repair import ChunkRepair
from oaicompat._response_events import EventRepair
from oaicompat._sdk import _slices
from oaicompat._short import Shortener, Shortens, template
from oaicompat.testing import chunk

Json = dict[str, Any]
SCHEMA: Json = {'type': 'object', 'properties': {'city': {'type': 'string'}}}
TOOLS = ModelRequestParameters(function_tools=[ToolDefinition(name='lookup', parameters_json_schema=SCHEMA)])
HISTORY: list[m.ModelMessage] = [m.ModelRequest([m.UserPromptPart('Hi')])]


class Pieces(httpx2.AsyncByteStream):
    """A body that arrives in these pieces, and then breaks or not."""

    def __init__(self, pieces: Sequence[bytes], *, breaks: bool = False) -> None:
        self._pieces, self._breaks = pieces, breaks

    @override
    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece
        if self._breaks:
            raise httpx2.ReadError('broken')


Seen = tuple[list[str], Any, str]


async def seen(
    pieces: Sequence[bytes], kind: Any = OpenAICompatibleModel, *, breaks: bool = False, **options: Any
) -> Seen:
    """The events, the response, and the error, if there was one."""

    def handle(_: Any) -> Any:
        headers = {'content-type': 'text/event-stream'}
        return httpx2.Response(200, headers=headers, stream=Pieces(pieces, breaks=breaks))

    http = httpx2.AsyncClient(transport=httpx2.MockTransport(handle))
    client = AsyncOpenAI(api_key='k', base_url='https://made-up.example/v1', http_client=http, max_retries=0)
    model = kind('m', provider=OpenAIProvider(openai_client=client), **options)
    events: list[str] = []
    response, error = None, ''
    async with http:
        try:
            async with model.request_stream(HISTORY, None, TOOLS) as streamed:
                try:
                    async for event in streamed:
                        events.append(repr(event))  # noqa: PERF401 - what came before an error is kept
                finally:
                    response = settled(streamed.get())
        except Exception as raised:
            error = f'{type(raised).__name__}: {raised}'
    return events, response, error


async def both(pieces: Sequence[bytes], **options: Any) -> tuple[Seen, Seen]:
    """With the short path, and without."""
    short = await seen(pieces, **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(models, 'streams_alike', lambda _: False)
        long = await seen(pieces, **options)
    return short, long


def event(value: Any) -> bytes:
    return b'data: ' + json.dumps(value, ensure_ascii=False).encode('utf-8', 'surrogatepass') + b'\n\n'


def cut(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


def text(value: str, key: str = 'content', **fields: Any) -> Json:
    return chunk({key: value}, **fields)


def fragment(value: str, **fields: Any) -> Json:
    return chunk({'tool_calls': [{'index': 0, 'function': {'arguments': value}, **fields}]})


START = chunk({'role': 'assistant', 'content': ''})
CALL = chunk(
    {'tool_calls': [{'index': 0, 'id': 'c', 'type': 'function', 'function': {'name': 'lookup', 'arguments': ''}}]}
)
STOP = chunk({}, finish_reason='stop')
HERMES = '<tool_call>\n{"name": "lookup", "arguments": {"city": "Rome"}}\n</tool_call>'

odd_texts = st.sampled_from([
    'a', ' b', 'é', '“c”', '"', '\\', '\\"', '\n', '\t', '\x00', '\u2028', '\ud83d', '\ude00', '\U0001f600', '', '<',
    'oaicompat probe', '<think>', '</think>', 'hm', HERMES, '```', '\n\n', '"},"content":"x', '"content":"y"',
])  # fmt: skip
words = odd_texts | st.text(max_size=3)
TOP: list[Json] = [
    {'usage': {'prompt_tokens': 1, 'completion_tokens': 2, 'total_tokens': 3}}, {'service_tier': 'flex'},
    {'obfuscation': 'xyz'}, {'service_tier': None}, {'created': 0}, {'moderation': None}, {'id': 'x'}, {'id': 'y'},
    {'id': None}, {'model': 'n'},
]  # fmt: skip
BESIDE: list[Json] = [
    {'role': 'assistant'}, {'reasoning_content': 'r'}, {'refusal': None}, {'annotations': []}, {'tool_calls': None},
    {'reasoning_content': ''},
]  # fmt: skip
IN_CHOICE: list[Json] = [
    {'logprobs': {'content': []}}, {'finish_reason': None}, {'stop_reason': None}, {'matched_stop': 5},
    {'finish_reason': 'stop'},
]  # fmt: skip


def in_choice(delta: Json, more: Json) -> Json:
    return {**chunk({}), 'choices': [{'index': 0, 'delta': delta, **more}]}


chunks = st.one_of(
    st.builds(text, words, st.sampled_from(['content', 'reasoning_content', 'reasoning'])),
    st.builds(fragment, st.sampled_from(['{"city"', ':"', 'Rome', 'é', '\\"', '"}', '{', ' '])),
    st.just(CALL),
    st.builds(lambda word, more: {**text(word), **more}, words, st.sampled_from(TOP)),
    st.builds(lambda word, more: chunk({'content': word, **more}), words, st.sampled_from(BESIDE)),
    st.builds(lambda word, more: in_choice({'content': word}, more), words, st.sampled_from(IN_CHOICE)),
    st.just(STOP),
)
RAW = [
    b': ping\n\n', b'\n', b'data: [DONE]\n\n', b'event: message\n', b'id: 1\n', b'data: {"content":"x"}\n\n',
    b'data: {"error":{"message":"no"}}\n\n', b'nonsense\n\n', b'data:{"a"\n\n', b'{"choices":[]}\n\n',
]  # fmt: skip
raw = st.one_of(
    chunks.map(event),
    chunks.map(event).map(lambda data: data.replace(b'\n\n', b'\r\n\r\n')),
    st.sampled_from(RAW),
)


@settings(max_examples=250)
@given(st.lists(raw, max_size=12), st.integers(1, 400), st.booleans())
@example([event(text('a'))] * 3 + [event(text('b')).replace(b'b', b'\xff')], 400, False)
@example([event(text('a'))] * 2 + [b'data: {"a"\n\n', event(text('a'))], 400, False)
@example([event(CALL), event(fragment('{"city"')), event(fragment(':"', extra=1)), event(fragment('x"}'))], 400, False)
@example([event(CALL).replace(b'\n\n', b'\r\n\r\n')], 216, True)
async def test_any_stream_says_the_same(events: list[bytes], size: int, breaks: bool) -> None:
    data = event(START) + b''.join(events) + event(STOP) + b'data: [DONE]\n\n'
    short, long = await both(cut(data, size), breaks=breaks)
    assert alike(short) == alike(long)


def alike(found: Seen) -> Any:
    """What was seen, with ids that we made up numbered."""
    ids: dict[str, str] = {}
    told = repr(found)
    for word in sorted(set(_MADE.findall(told)), key=told.index):
        ids[word] = f'id-{len(ids)}'
        told = told.replace(word, ids[word])
    return told


_MADE = re.compile(r'call_[0-9a-f]{24}|pyd_ai_[0-9a-f]{32}')


@pytest.mark.parametrize('size', [1, 50, 5000])
@pytest.mark.parametrize(
    'chunks_',
    [
        [text(word) for word in ('Hello', ' "you"', ' \\ and', '\n', ' é\u2028', '', '.')],
        [text(word, 'reasoning_content') for word in ('Let', ' me', ' see.')] + [text('Hi'), text(' there')],
        [CALL, *(fragment(piece) for piece in ('{"city"', ':"', 'Z\\"', 'ü', '"}'))],
        [
            text('a'),
            {**text('b'), 'id': 'other'},
            {**text('c'), 'id': 'other'},
            {**text('d'), 'id': 'other', 'model': 'n'},
        ],
    ],
    ids=['text', 'reasoning', 'arguments', 'frames'],
)
async def test_a_stream_that_behaves_is_the_parents(chunks_: list[Json], size: int) -> None:
    usage = {**chunk({}), 'choices': [], 'usage': {'prompt_tokens': 3, 'completion_tokens': 5, 'total_tokens': 8}}
    data = b''.join(map(event, [START, *chunks_, STOP, usage])) + b'data: [DONE]\n\n'
    ours, theirs = await seen(cut(data, size)), await seen(cut(data, size), OpenAIChatModel)
    assert ours == theirs
    assert not ours[2]


async def test_lines_are_not_held() -> None:
    """Some servers part events by single newlines."""
    lines = [event(value).removesuffix(b'\n') for value in (START, text('x'), text('y'), text('z'))]
    for count in (2, 3, 4):
        short, long = await both(lines[:count], breaks=True)
        assert short == long
        assert len([told for told in short[0] if told.startswith('Part')]) == count - 2


async def test_events_in_front_of_an_error_come_first() -> None:
    data = b''.join(map(event, [START, text('Hel'), text('lo'), {'error': {'message': 'no', 'code': 500}}, text('x')]))
    events, response, error = await seen([data])
    assert len(events) == 3
    assert "content_delta='lo'" in events[-1]
    assert response.text == 'Hello'
    assert error.startswith('ModelServerError')
    assert await both([data]) == ((events, response, error),) * 2


async def test_events_of_one_chunk_are_told_one_by_one() -> None:
    """A part that ends shows what was told so far."""
    both_ = {'reasoning_content': 'hm', 'tool_calls': [{'index': 0, 'function': {'arguments': ':"x"}'}}]}
    data = b''.join(map(event, [START, CALL, fragment('{"city"'), chunk(both_), STOP])) + b'data: [DONE]\n\n'
    short, long = await both([data])
    assert short == long
    assert short[0] == (await seen([data], OpenAIChatModel))[0]


@pytest.mark.parametrize('words_', [['x', 'y', '<think>', 'hm', '</think>', 'z'], ['x', 'y', 'z', HERMES, 'w']])
async def test_of_several_answers_none_is_searched(words_: list[str]) -> None:
    data = b''.join(map(event, [START, *map(text, words_), STOP])) + b'data: [DONE]\n\n'
    short, long = await both([data], settings={'extra_body': {'n': 2}})
    assert short == long
    assert short[1].text == ''.join(words_)


async def test_what_arrives_at_once_is_not_read_at_once() -> None:
    values = [START, *[text('x')] * 500, STOP]
    items: Any = iter(range(200))
    assert len(next(_slices(items))) == 32
    assert next(items) == 32
    short, long = await both([b''.join(map(event, values)) + b'data: [DONE]\n\n'])
    assert short == long


async def test_an_idle_limit_counts_events_that_are_held() -> None:
    class Slow(Pieces):
        @override
        async def __aiter__(self) -> AsyncIterator[bytes]:
            for piece in self._pieces:
                await asyncio.sleep(0.05)
                yield piece

    values = [START, *(text(word, 'reasoning_content') for word in ('a', ' <', 'tool', '_ca', 'l', 'x')), STOP]

    async def events(_: Any) -> httpx2.Response:
        headers = {'content-type': 'text/event-stream'}
        return httpx2.Response(200, headers=headers, stream=Slow([*map(event, values), b'data: [DONE]\n\n']))

    http = httpx2.AsyncClient(transport=httpx2.MockTransport(events))
    model: Any = OpenAICompatibleModel('m', base_url='http://localhost:1/v1', profile={'compat_idle_timeout': 0.15})
    model.client._client = http
    async with http, model.request_stream(HISTORY, None, TOOLS) as streamed:
        async for _ in streamed:
            pass
    assert streamed.get().state == 'complete'


async def test_a_stream_that_is_left_is_closed() -> None:
    data = [event(START), *(event(text('x')) for _ in range(9))]
    closed: list[bool] = []

    class Closing(Pieces):
        @override
        async def aclose(self) -> None:
            closed.append(True)

    http = httpx2.AsyncClient(transport=httpx2.MockTransport(lambda _: httpx2.Response(
        200, headers={'content-type': 'text/event-stream'}, stream=Closing(data))))  # fmt: skip
    client = AsyncOpenAI(api_key='k', base_url='https://made-up.example/v1', http_client=http)
    model = OpenAICompatibleModel('m', provider=OpenAIProvider(openai_client=client))
    async with http, model.request_stream(HISTORY, None, TOOLS) as streamed:
        async for event_ in streamed:
            assert isinstance(event_, m.PartStartEvent)
            break
    assert closed
    assert streamed.get().state == 'incomplete'


# Which classes have it


def test_our_own_class_has_it_and_those_with_hooks_of_their_own_do_not() -> None:
    def alike(parent: Any) -> bool:
        return _alike.streams_alike(object.__new__(models._in_front(models._RepairedResponse, parent)))

    assert alike(OpenAIStreamedResponse)
    for name in (*_alike._PASSED_BY, *_alike._FED):
        theirs = type('Theirs', (OpenAIStreamedResponse,), {name: lambda self, *_: None})
        assert not alike(theirs), name
    assert alike(type('Same', (OpenAIStreamedResponse,), {}))


def is_short(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is mapped on the short path."""
    mapped: list[Any] = []
    short = models._RepairedResponse._map_short

    def told(self: Any, item: Any) -> Any:
        mapped.append(item)
        return short(self, item)

    monkeypatch.setattr(models._RepairedResponse, '_map_short', told)
    return mapped


WORDS = [event(value) for value in (START, *(text(word) for word in ('Hel', 'lo', ' ', 'you', '!')), STOP)]


@pytest.mark.parametrize('name', [*_alike._READ_OF_CHUNKS])
async def test_a_parent_that_reads_more_of_a_chunk_gets_all(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mapped = is_short(monkeypatch)
    expected = await seen(WORDS)
    assert mapped
    mapped.clear()
    names = {**_alike._READ_OF_CHUNKS, name: _alike._READ_OF_CHUNKS[name] - {'delta', '_response', 'itertools'}}
    monkeypatch.setattr(_alike, '_READ_OF_CHUNKS', names)
    assert await seen(WORDS) == expected
    assert mapped == []


@pytest.mark.parametrize('name', ['_map_part_delta', '_map_text_delta', '_map_thinking_delta', '_add_usage'])
@pytest.mark.parametrize('of', ['class', 'module'])
async def test_a_method_that_is_patched_late_gets_all(name: str, of: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mapped = is_short(monkeypatch)
    assert await seen(WORDS) == await seen(WORDS, OpenAIChatModel)
    assert mapped
    mapped.clear()
    if of == 'class':
        method, calls = getattr(OpenAIStreamedResponse, name), [0]

        def patched(self: Any, *args: Any, **options: Any) -> Any:
            calls[0] += 1
            return method(self, *args, **options)

        monkeypatch.setattr(OpenAIStreamedResponse, name, patched)
        parents = await seen(WORDS, OpenAIChatModel), calls[0]
        calls[0] = 0
        assert (await seen(WORDS), calls[0]) == parents
    else:
        module = sys.modules[OpenAIStreamedResponse.__module__]
        monkeypatch.setattr(module, 'number_to_datetime', lambda _: None)
        assert await seen(WORDS) == await seen(WORDS, OpenAIChatModel)
    assert mapped == []


async def test_with_everything_unmapped_wanted_there_is_none() -> None:
    data = b''.join(map(event, [START, text('a') | {'made_up': 1}, text('b') | {'made_up': 2}, STOP]))
    options: Any = {'settings': {'openai_include_unmapped_response_data': True}}
    ours, theirs = await seen([data], **options), await seen([data], OpenAIChatModel, **options)
    assert ours == theirs


# Templates

LINE = event(text('Hi'))


def test_a_template_gives_the_text_of_what_is_else_the_same() -> None:
    made = template(LINE, text('Hi'), 'content')
    assert made is not None
    for word in ('', 'a', '"', '\\', '\n', 'é', '\u2028', 'oaicompat probe', '\U0001f600', '"}'):
        assert made.text(event(text(word))) == word
    assert made.frame({'content': 'x'}) == text('x')
    for other in (
        event({**text('a'), 'id': 'y'}), event(text('a', finish_reason='stop')), LINE.replace(b'Hi', b'a"'), LINE[:-1],
        LINE.replace(b'Hi', b'a\x01'), LINE.replace(b'Hi', b'\xff'), LINE.replace(b'Hi', b'a","content":"b'), b'',
        LINE.replace(b'"Hi"', b'5'), made.head + made.tail[1:],
    ):  # fmt: skip
        assert made.text(other) is None, other


@pytest.mark.parametrize(
    ('line', 'value', 'key'),
    [
        (b': x\n\n', text('Hi'), 'content'),
        (LINE.replace(b'data', b'dat'), text('Hi'), 'content'),
        (LINE, text('Hi'), 'reasoning'),
        (LINE, text('Hi') | {'id': 'other'}, 'content'),
        (LINE.replace(b'"Hi"', b'null'), text('Hi'), 'content'),
        (b'data: {"content":"Hi"}\n\n', text('Hi'), 'content'),
        (LINE.replace(b'"Hi"', b'"H', 1), text('Hi'), 'content'),
    ],
)
def test_what_is_no_template(line: bytes, value: Json, key: str) -> None:
    assert template(line, value, key) is None


def test_templates_that_match_nothing_are_given_up() -> None:
    shortener = Shortener(ChunkRepair(Context('m')), on=True, idle=True)
    made = 0
    for number in range(20):
        value = {**text('x'), 'obfuscation': 'y' * number}
        assert shortener.short(event(value)) is None
        shortener.read(event(value), value)
        made += shortener._template is not None
    assert made == 4


def test_the_repair_of_responses_has_no_short_path() -> None:
    assert isinstance(ChunkRepair(Context('m')), Shortens)
    assert not isinstance(EventRepair(Context('m')), Shortens)


# Fairness


class AllThere(httpx2.AsyncByteStream):
    """A body that waits for nothing; it is there once."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._pieces = iter(pieces)

    @override
    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece


@pytest.mark.parametrize('together', [False, True])
async def test_others_may_run_and_cancel_while_all_is_there(together: bool) -> None:
    many = 2000
    data = [event(value) for value in (START, *(text(f'w{number}') for number in range(many)), STOP)]
    pieces = [b''.join(data)] if together else data
    http = httpx2.AsyncClient(transport=httpx2.MockTransport(lambda _: httpx2.Response(
        200, headers={'content-type': 'text/event-stream'}, stream=AllThere(pieces))))  # fmt: skip
    client = AsyncOpenAI(api_key='k', base_url='https://made-up.example/v1', http_client=http)
    model = OpenAICompatibleModel('m', provider=OpenAIProvider(openai_client=client))
    counts, turns = 0, 0

    async def read() -> None:
        nonlocal counts
        async with model.request_stream(HISTORY, None, TOOLS) as streamed:
            async for _ in streamed:
                counts += 1

    async with http:
        task = asyncio.create_task(read())
        while counts < many // 2:
            turns += 1
            await asyncio.sleep(0)
        assert turns >= many // 2 / 40
        before = counts
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert counts <= before + 1


@pytest.mark.parametrize(
    'words',
    [
        ['<think>', 'Hm', ',', ' so', '</think>', 'Hi'],
        ['<think>', 'Hm', '\n', '\n', ' so', '\n', 'then', '</think>', 'Hi', ' there'],
        ['<think>', 'a', ' ', ' ', 'b', '</think>', 'Hi'],
        ['<think>', 'Hm', '</think>', 'a', '<', 'b'],
    ],
)
@pytest.mark.parametrize('together', [False, True])
async def test_tags_that_are_pieces_of_their_own_are_the_parents(words: list[str], together: bool) -> None:
    """Also event for event, and nothing is named for what the parent does, too."""
    data = [event(value) for value in (START, *map(text, words), STOP)]
    pieces = [b''.join(data)] if together else data
    ours, theirs = await seen(pieces), await seen(pieces, OpenAIChatModel)
    assert ours == theirs


@pytest.mark.parametrize(
    'words',
    [
        ['<think>', '\n', 'Hm', '</think>', 'Hi'],
        ['<think>', 'Hm', '\n', '</think>', 'Hi'],
        ['<think>', 'Hm', '</think>', '\n', 'Hi'],
        ['<think>', 'Hm', '</think>', '\n\nHi'],
        ['\n', '<think>', 'Hm', '</think>', 'Hi'],
        ['<thi', 'nk>', 'Hm', '</think>', 'Hi'],
        ['<think>Hm', '</think>', 'Hi'],
        ['<think>', 'Hm</think>', 'Hi'],
        ['<think>', 'Hm', '</think>Hi'],
        ['<thinking>', 'Hm', '</thinking>', 'Hi'],
        ['<think>', 'Hm'],
    ],
)
async def test_what_else_is_done_about_tags_is_named(words: list[str]) -> None:
    _, response, error = await seen([event(value) for value in (START, *map(text, words), STOP)])
    assert error == ''
    assert "'oaicompat': ['thinking.tags']" in repr(response)
