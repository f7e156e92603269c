"""What oaicompat costs beside pydantic-ai's own model: ratios of CPU time, measured in one process, turn by turn.

    python benchmarks/bench.py                 # all rows
    python benchmarks/bench.py stream turn     # the rows whose names begin like that
    python benchmarks/bench.py --rounds 9
    python benchmarks/bench.py --write docs/explanation/performance.md

Both models get the same bytes from a transport in the same process, so that nothing but the client's work counts; where
connections count, from a server in another process. A row is run for each of them in turn, `--rounds` times; the ratio
of a round is ours to the parent's. Printed are the median of these ratios, the least and the greatest, and the parent's
median in microseconds for each unit. What a whole process takes is measured by `processes.py`.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import re
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, cast

import httpx2
from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai import messages as m
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.tools import ToolDefinition
from typing_extensions import override

from oaicompat import OpenAICompatibleModel

from processes import ROWS as PROCESSES  # isort: skip
from server import serving  # isort: skip

WORDS = (' the', ' of', ' stream', 'ing', ' token', ',', ' and', ' a', '.', ' über', ' "quoted"', '\n')
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
SCHEMA = {'type': 'object', 'properties': {'doc': {'type': 'string'}}, 'required': ['doc']}
SAVE = ModelRequestParameters(function_tools=[ToolDefinition(name='save', parameters_json_schema=SCHEMA)])
NOTHING = ModelRequestParameters()
ASKED: list[m.ModelMessage] = [m.ModelRequest([m.UserPromptPart('Hi')])]
USAGE = {'prompt_tokens': 3, 'completion_tokens': 5, 'total_tokens': 8}


class Row(NamedTuple):
    """What is measured.

    Attributes:
        name: Its name.
        units: How many units one run has: chunks, messages, requests.
        body: What the server answers.
        run: One run with a model.
        served: Whether it is a server that answers, over connections.
        apart: Seconds between two events of a stream, each in a read of its own.
    """

    name: str
    units: int
    body: Sequence[bytes] | bytes
    run: Callable[[Any], Awaitable[object]]
    served: bool = False
    apart: float = 0


def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {'index': 0, 'delta': delta, 'logprobs': None, 'finish_reason': finish}
    fields = {'id': 'chatcmpl-0123456789', 'object': 'chat.completion.chunk', 'created': 1_700_000_000, 'model': 'm'}
    return b'data: ' + json.dumps({**fields, 'choices': [choice], 'usage': None}).encode() + b'\n\n'


def stream(*deltas: dict[str, Any], finish: str = 'stop') -> list[bytes]:
    """One read for each event."""
    opened = chunk({'role': 'assistant', 'content': ''})
    return [opened, *map(chunk, deltas), chunk({}, finish), b'data: [DONE]\n\n']


def words(count: int, key: str = 'content') -> list[dict[str, Any]]:
    return [{key: WORDS[n * 7 % len(WORDS)]} for n in range(count)]


def arguments(count: int) -> list[bytes]:
    opened = {'index': 0, 'id': 'call_1', 'type': 'function', 'function': {'name': 'save', 'arguments': ''}}
    pieces = ['{"doc":"', *(['lorem ipsum dolor sit amet'] * count), '"}']
    told = [{'tool_calls': [{'index': 0, 'function': {'arguments': piece}}]} for piece in pieces]
    return stream({'tool_calls': [opened]}, *told, finish='tool_calls')


def history(count: int) -> list[m.ModelMessage]:
    """Turns with a call and its result, and with text."""
    made: list[m.ModelMessage] = [m.ModelRequest([m.UserPromptPart('lorem ipsum ' * 40, timestamp=NOON)])]
    for n in range(count // 2):
        result: Any = {'results': [{'title': 'x' * 40, 'score': n / 7}] * 3} if n % 2 else 'lorem ipsum ' * 60
        made.append(m.ModelResponse([m.ToolCallPart('save', '{"doc":"x"}', f'call_{n}')], timestamp=NOON))
        made.append(m.ModelRequest([m.ToolReturnPart('save', result, f'call_{n}', timestamp=NOON)]))
    return made


def completion(text: str) -> bytes:
    choice = {'index': 0, 'message': {'role': 'assistant', 'content': text, 'refusal': None}, 'finish_reason': 'stop'}
    fields = {'id': 'chatcmpl-1', 'object': 'chat.completion', 'created': 1_700_000_000, 'model': 'm'}
    return json.dumps({**fields, 'choices': [choice], 'usage': USAGE}).encode()


async def read(model: Any, parameters: ModelRequestParameters = NOTHING) -> None:
    async with model.request_stream(ASKED, None, parameters) as streamed:
        async for _ in streamed:
            pass
    assert streamed.get().parts


async def iterated(model: Any) -> None:
    async with Agent(model).iter('Hi') as run:
        async for node in run:
            if Agent.is_model_request_node(node):
                async with node.stream(run.ctx) as events:
                    async for _ in events:
                        pass


async def repeated(model: Any, times: int) -> None:
    for _ in range(times):
        await read(model)


LOGPROBS = {'content': [{'token': 'a', 'logprob': -0.5, 'bytes': [97], 'top_logprobs': []}], 'refusal': None}
ENDED = stream()[1:]


def chunk_with(fields: dict[str, Any], delta: dict[str, Any]) -> bytes:
    value = json.loads(chunk(delta).removeprefix(b'data: '))
    value['choices'][0] |= fields
    return b'data: ' + json.dumps(value).encode() + b'\n\n'


def with_usage(delta: dict[str, Any]) -> bytes:
    return chunk(delta).replace(b'"usage": null', b'"usage": ' + json.dumps(USAGE).encode())


async def together(model: Any) -> None:
    await asyncio.gather(*(read(model) for _ in range(32)))


def turn(count: int) -> Row:
    messages = history(count)

    async def run(model: Any) -> None:
        await model.request(model.prepare_messages(list(messages), SAVE), None, SAVE)

    return Row(f'turn {count}', 1, completion('Hi.'), run)


async def asked(model: Any) -> None:
    for _ in range(100):
        await model.request(ASKED, None, NOTHING)


def at_once(count: int) -> Row:
    total = max(400, 4 * count)

    async def run(model: Any) -> None:
        left = iter(range(total))

        async def some() -> None:
            for _ in left:
                await model.request(ASKED, None, NOTHING)

        await asyncio.gather(*(some() for _ in range(count)))

    return Row(f'unary, {count} at once', total, completion('The capital of France is Paris. ' * 8), run, served=True)


def making(url: str) -> Callable[[Any], Awaitable[None]]:
    async def run(model: Any) -> None:
        for _ in range(20):
            served_model_of(type(model), url)

    return run


THINK = stream({'content': '<think>'}, *words(1600), {'content': '</think>'}, *words(400))
ROWS = (
    Row('stream text', 2000, stream(*words(2000)), read),
    Row('stream arguments', 2000, arguments(2000), lambda model: read(model, SAVE)),
    Row('stream reasoning', 2000, stream(*words(1600, 'reasoning_content'), *words(400)), read),
    Row('stream think tags', 2000, THINK, read),
    Row('stream agent.iter', 1000, stream(*words(1000)), iterated),
    Row('stream 32 at once', 3200, stream(*words(100)), together),
    Row('stream paced', 1000, stream(*words(1000)), read, apart=0.001),
    Row('stream 32 paced', 3200, stream(*words(100)), together, apart=0.001),
    Row('stream short', 1000, stream(*words(10)), lambda model: repeated(model, 100)),
    Row('stream logprobs', 1000, [chunk_with({'logprobs': LOGPROBS}, word) for word in words(1000)] + ENDED, read),
    Row('stream usage each chunk', 1000, [with_usage(word) for word in words(1000)] + ENDED, read),
    turn(10),
    turn(1000),
    turn(5000),
    Row('unary, no HTTP', 100, completion('The capital of France is Paris. ' * 8), asked),
    Row('making, http', 20, b'', making('http://localhost:8000/v1')),
    Row('making, https', 20, b'', making('https://llm.example/v1')),
    at_once(1),
    at_once(16),
    at_once(128),
)


class Body(httpx2.AsyncByteStream):
    """An answer, a piece at a time; between two pieces others may run."""

    def __init__(self, pieces: Sequence[bytes], apart: float) -> None:
        self._pieces, self._apart = pieces, apart

    @override
    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            await asyncio.sleep(self._apart)
            yield piece


def served_model_of(kind: type[OpenAIChatModel], url: str) -> Any:
    if kind is OpenAICompatibleModel:
        return OpenAICompatibleModel('m', base_url=url)
    return kind('m', provider=OpenAIProvider(base_url=url, api_key='k'))


def model_of(kind: type[OpenAIChatModel], body: Sequence[bytes] | bytes, apart: float = 0) -> Any:
    def answer(_: Any) -> httpx2.Response:
        if isinstance(body, bytes):
            return httpx2.Response(200, headers={'content-type': 'application/json'}, content=body)
        return httpx2.Response(200, headers={'content-type': 'text/event-stream'}, stream=Body(body, apart))

    http = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
    client = AsyncOpenAI(api_key='k', base_url='https://made-up.example/v1', http_client=http)
    return kind('m', provider=OpenAIProvider(openai_client=client))


async def measured(row: Row, rounds: int) -> tuple[list[float], float]:
    """The ratios, and the parent's median in microseconds for each unit."""
    kinds = (OpenAIChatModel, OpenAICompatibleModel)
    if not row.served:
        return await compared(row, rounds, [model_of(kind, row.body, row.apart) for kind in kinds])
    with serving(cast(bytes, row.body)) as url:
        return await compared(row, rounds, [served_model_of(kind, url) for kind in kinds])


async def compared(row: Row, rounds: int, models: Sequence[Any]) -> tuple[list[float], float]:
    """The ratios of these two models, and the first one's median in microseconds for each unit."""
    for model in models:
        await row.run(model)
    ratios, parents = [], []
    for _ in range(rounds):
        took = []
        for model in models:
            gc.collect()
            began = time.process_time()
            await row.run(model)
            took.append(time.process_time() - began)
        ratios.append(took[1] / took[0])
        parents.append(took[0] / row.units * 1e6)
    return ratios, statistics.median(parents)


HEAD = '| | median | least | greatest | the other alone |\n|---|---|---|---|---|\n'
PLACE = re.compile(r'(?<=<!-- bench:start -->\n\n).*?(?=\n<!-- bench:end -->)', re.DOTALL)


def shown(name: str, ratios: Sequence[float], parent: float) -> str:
    """A line of the table, printed, too."""
    alone = f'{parent:,.0f} {"KiB" if name.startswith("memory") else "µs"}'
    line = f'| {name} | {statistics.median(ratios):.3f} | {min(ratios):.3f} | {max(ratios):.3f} | {alone} |\n'
    sys.stdout.write(line)
    sys.stdout.flush()
    return line


async def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description='CPU time beside that of pydantic-ai, as ratios.')
    parser.add_argument('names', nargs='*', help='rows: all whose name begins like that')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--write', type=Path, help='a page that gets the table between its two marks')
    options = parser.parse_args()
    known = [row.name for row in ROWS] + [*PROCESSES]
    if unknown := [name for name in options.names if not any(row.startswith(name) for row in known)]:
        parser.error(f'no row begins with {unknown[0]!r}; the rows: {", ".join(known)}')
    table = HEAD
    sys.stdout.write(HEAD)
    for row in ROWS:
        if options.names and not row.name.startswith(tuple(options.names)):
            continue
        table += shown(row.name, *await measured(row, options.rounds))
    for name, compare in PROCESSES.items():
        if not options.names or name.startswith(tuple(options.names)):
            table += shown(name, *compare(options.rounds))
    if options.write:
        page = options.write.read_text(encoding='utf-8')
        options.write.write_text(PLACE.sub(lambda _: table, page), encoding='utf-8')


if __name__ == '__main__':
    asyncio.run(main())
