"""Answers that are long and broken: the work is linear in their length, and nothing but a typed error is raised."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from oaicompat._completion import fold, repair_completion
from oaicompat._context import Context
from oaicompat._details import Details
from oaicompat._envelope import FailureError, IncompleteError
from oaicompat._json import ends_inside, is_cut_off, repair_arguments
from oaicompat._repair import ChunkRepair
from oaicompat._sse import EventDecoder, read_values
from oaicompat._thinking import HARMONY_TAGS, KNOWN_TAGS, ThinkingSplitter, lone_closing_tag, split
from oaicompat._toolcalls import ToolCalls

SIZE = 100_000
LIMIT = 5  # seconds; what was quadratic took minutes
TAGS = (*KNOWN_TAGS, *HARMONY_TAGS)

UNITS = (
    '<', '{', '[', '"', "'", '\\', '`', ',', ':', '#', '\\\\', '{"a":', '"a" ', "'a' ", '<think', '```', 'data:', ' ',
    '{"a":[', '\n', '1', '\\u005c', '\\"', "\\'", '<a href=\\"x\\">', ', ', '{}', '[]', 'json', "{'a':", '-', '(', 'a',
    '</think>', '<think>a</think>', '<|channel|>analysis<|message|>a<|channel|>final<|message|>', '{}\n', 'data: {\n',
    ' <', 'data: {"a"\n', '}', 'e9', '"\\', '[/A', '1+',
)  # fmt: skip
FRONTS = ('', '{"a":"', "{'a':'", '{', '<think>x')


def timed(work: Callable[[], object]) -> None:
    start = time.monotonic()
    work()
    assert time.monotonic() - start < LIMIT


def long(unit: str, front: str = '') -> str:
    return front + unit * (SIZE // len(unit))


@pytest.mark.parametrize('unit', UNITS)
def test_long_arguments(unit: str) -> None:
    def read() -> None:
        for front in FRONTS:
            for text in (long(unit, front), long(unit, front) + '}'):
                repair_arguments(text)
                is_cut_off(text)
                ends_inside(text)

    timed(read)


@pytest.mark.parametrize('unit', UNITS)
def test_long_text(unit: str) -> None:
    def read() -> None:
        for front in FRONTS:
            split(long(unit, front), TAGS)
            lone_closing_tag(long(unit, front) + '</think>')

    timed(read)


@pytest.mark.parametrize('unit', UNITS)
@pytest.mark.parametrize('front', ['', '<think>x', '<|channel|>analysis<|message|>x'])
def test_text_in_many_pieces(unit: str, front: str) -> None:
    splitter = ThinkingSplitter(TAGS)
    told = [*splitter.feed(front)]

    def read() -> None:
        for _ in range(SIZE // 10):
            told.extend(splitter.feed(unit))
        told.extend(splitter.finish())

    timed(read)


@pytest.mark.parametrize('unit', UNITS)
def test_long_events(unit: str) -> None:
    def read() -> None:
        for front in ('', 'data: ', 'event: '):
            decoder = EventDecoder()
            for event in [*decoder.feed(long(unit, front).encode()), *decoder.finish()]:
                read_values(event, set())

    timed(read)


CALLS: dict[str, Callable[[int], dict[str, Any]]] = {
    'one index': lambda n: {'index': 0, 'id': f'x{n}', 'function': {'name': 'f', 'arguments': '{}'}},
    'one index, no id': lambda _: {'index': 0, 'function': {'name': 'f', 'arguments': '{}'}},
    'no index': lambda _: {'function': {'name': 'f', 'arguments': '{}'}},
    'one id': lambda n: {'index': n, 'id': 'x', 'function': {'name': 'f', 'arguments': '{}'}},
    'one id, no name': lambda n: {'index': n, 'id': 'x', 'function': {'arguments': '{}'}},
    'braces': lambda n: {'index': 0, 'function': {'arguments': '{'} if n else {'name': 'f', 'arguments': '{'}},
}


@pytest.mark.parametrize('make', CALLS.values(), ids=CALLS)
def test_many_calls(make: Callable[[int], dict[str, Any]]) -> None:
    def read() -> None:
        tracker = ToolCalls({'f': {}})
        for number in range(20_000):
            tracker.feed([make(number)])
        tracker.cut_off()
        tracker.finish()

    timed(read)


CHOICES: dict[str, Callable[[int], dict[str, Any]]] = {
    'text': lambda _: {'delta': {'content': 'abcdefgh'}},
    'text and reasoning': lambda _: {'delta': {'content': 'abc', 'reasoning_content': 'x'}},
    'messages': lambda n: {'message': {'content': f'abc{n}'}},
    'details by turns': lambda n: {'delta': {'reasoning_details': [{'text': f'b{n}'}]} if n % 2 else {'content': 'a'}},
}


@pytest.mark.parametrize('make', CHOICES.values(), ids=CHOICES)
def test_many_chunks(make: Callable[[int], dict[str, Any]]) -> None:
    def read() -> None:
        repair = ChunkRepair(Context('m'))
        chunks = [chunk for n in range(20_000) for chunk in repair.feed({'choices': [{'index': 0, **make(n)}]})]
        fold([*chunks, *repair.finish(dropped=False)])

    timed(read)


@pytest.mark.parametrize('key', ['text', 'id', 'data', 'index'])
def test_many_details(key: str) -> None:
    def read() -> None:
        details = Details()
        for number in range(50_000):
            details.feed([{'type': 'reasoning.text', key: f'{number:08}'}])
        details.take()

    timed(read)


@pytest.mark.parametrize('depth', [60, 300, 900])
@pytest.mark.parametrize('unit', [('[', '', ']'), ('{"error":', '1', '}'), ('{"text":', '"a"', '}')])
def test_deep_values(depth: int, unit: tuple[str, str, str]) -> None:
    deep = json.loads(unit[0] * depth + unit[1] + unit[2] * depth)
    for key in ('content', 'reasoning', 'reasoning_details', 'tool_calls', 'refusal', 'function_call'):
        for value in (deep, [deep]):
            repair_or_fail({'choices': [{'message': {key: value}, 'delta': {key: value}}]})
    for key in ('error', 'errors', 'usage', 'data', 'detail'):
        repair_or_fail({'choices': [{'message': {'content': 'x'}}], key: deep})
        repair_or_fail({key: deep})


def repair_or_fail(body: dict[str, Any]) -> None:
    for work in (repair_completion, lambda body, context, _: ChunkRepair(context).feed(body)):
        with suppress(FailureError, IncompleteError):
            work(body, Context('m'), set())
