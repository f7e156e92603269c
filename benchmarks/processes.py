"""What a whole process takes, beside the parent's: imports, the command line, memory. In turn, each in a new process.

The ratio of an import is that of the parent's with ours behind it to the parent's alone, in one process; that of
`--help`, to an interpreter that does the same with argparse. Code is compiled before.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

# CPU time in microseconds; memory in KiB, as the peak of a stream beyond what was there before it. The last line on
# standard error is the ratio and the parent's figure, or the figure alone.
_IMPORTED = """
import sys, time
began = time.process_time()
import pydantic_ai.models.openai
between = time.process_time()
{code}
took, parents = time.process_time() - began, between - began
sys.stderr.write(f'\\n{{took / parents}} {{parents * 1e6}}')
"""
_TIMED = """
import time; began = time.process_time()
{code}
took = time.process_time() - began
import sys; sys.stderr.write('\\n' + str(took * 1e6))
"""
_HELP = "sys.argv = ['x', '--help']\ntry:\n    main()\nexcept SystemExit:\n    pass"
_BARE = """
import sys, argparse
def main():
    parser = argparse.ArgumentParser(prog='x')
    parser.add_argument('a', help='something')
    parser.parse_args()
"""
_STREAM = """
import asyncio, sys, tracemalloc
sys.path.insert(0, {folder!r})
from bench import *
async def run():
    model = model_of({kind}, stream(*[{{'content': f' {{n % {distinct}}}'}} for n in range(20_000)]))
    await read(model_of({kind}, stream(*words(20))))
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    await read(model)
    _, peak = tracemalloc.get_traced_memory()
    sys.stderr.write('\\n' + str((peak - before) / 1024))
asyncio.run(run())
"""


def _told(code: str) -> list[float]:
    environment = {key: value for key, value in os.environ.items() if key != 'PYTHONDONTWRITEBYTECODE'}
    environment['PYTHONPYCACHEPREFIX'] = _CACHE.name
    command = [sys.executable, '-c', code]
    done = subprocess.run(command, capture_output=True, encoding='utf-8', check=True, env=environment)  # noqa: S603  # our own
    return [float(figure) for figure in done.stderr.rpartition('\n')[2].split()]


_CACHE = TemporaryDirectory()

Compare = Callable[[int], tuple[list[float], float]]
"""From a number of rounds to the ratios, and the median of the parent's figure. The first round does not count."""


def _compared(ours: str, parents: str) -> Compare:
    def compare(rounds: int) -> tuple[list[float], float]:
        told = [(*_told(ours), *_told(parents)) for _ in range(rounds + 1)][1:]
        return [mine / theirs for mine, theirs in told], statistics.median(theirs for _, theirs in told)

    return compare


def _imported(code: str) -> Compare:
    def compare(rounds: int) -> tuple[list[float], float]:
        told = [_told(_IMPORTED.format(code=code)) for _ in range(rounds + 1)][1:]
        return [ratio for ratio, _ in told], statistics.median(parents for _, parents in told)

    return compare


def _streamed(kind: str, distinct: int) -> str:
    return _STREAM.format(kind=kind, distinct=distinct, folder=str(Path(__file__).parent))


def _timed(code: str) -> str:
    return _TIMED.format(code=code)


ROWS = {
    'import oaicompat': _imported('import oaicompat'),
    'import the class': _imported('import oaicompat.models'),
    'command --help': _compared(
        _timed(f'import sys; from oaicompat.cli import main\n{_HELP}'), _timed(f'{_BARE}\n{_HELP}')
    ),
    'memory': _compared(_streamed('OpenAICompatibleModel', 300), _streamed('OpenAIChatModel', 300)),
    'memory, all texts new': _compared(
        _streamed('OpenAICompatibleModel', 20_000), _streamed('OpenAIChatModel', 20_000)
    ),
}
"""By name: what gives the ratios of so many rounds."""
