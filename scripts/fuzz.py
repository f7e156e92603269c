"""Fuzz: the property tests, again and again with new seeds, until the time is up.

`python scripts/fuzz.py --minutes 30` prints how many inputs each property was tried with, and stops at the first
finding, whose seed hypothesis prints.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_NAME = re.compile(r'^(tests/\S+::\S+):$')
_TRIED = re.compile(r'- (\d+) passing, (\d+) failing(?: test cases| examples)?, and (\d+) invalid')


def main() -> int:
    """Fuzz, and print the counts."""
    parser = argparse.ArgumentParser(description='Run the property tests with new seeds for a time.')
    parser.add_argument('--minutes', type=float, default=30)
    parser.add_argument('--examples', type=int, default=400, help='inputs for each property in one round')
    options = parser.parse_args()
    end = time.monotonic() + options.minutes * 60
    tried: Counter[str] = Counter()
    rounds = 0
    while time.monotonic() < end:
        rounds += 1
        found, output = _round(options.examples)
        for name, count in _counts(output):
            tried[name] += count
        if found:
            sys.stdout.write(output)
            return 1
        sys.stdout.write(f'round {rounds}: {sum(tried.values()):,} inputs so far, no finding\n')
        sys.stdout.flush()
    for name, count in sorted(tried.items()):
        sys.stdout.write(f'{count:>10,}  {name}\n')
    sys.stdout.write(f'{sum(tried.values()):,} inputs in {rounds} rounds, no finding\n')
    return 0


def _round(examples: int) -> tuple[bool, str]:
    seed = random.SystemRandom().randrange(2**32)
    command = [
        sys.executable,
        '-m',
        'pytest',
        '-q',
        '-m',
        'hypothesis',
        '--hypothesis-show-statistics',
        f'--hypothesis-seed={seed}',
    ]
    environment = {**os.environ, 'OAICOMPAT_FUZZ_EXAMPLES': str(examples)}
    run = subprocess.run(  # noqa: S603  # our own tests
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    return run.returncode != 0, run.stdout + run.stderr


def _counts(output: str) -> list[tuple[str, int]]:
    counts, name = [], ''
    for line in output.splitlines():
        if found := _NAME.match(line.strip()):
            name = found[1]
        elif tried := _TRIED.search(line):
            counts.append((name, int(tried[1])))
    return counts


if __name__ == '__main__':
    sys.exit(main())
