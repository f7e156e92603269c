"""Run the conformance cases in the folder that `OAICOMPAT_CORPUS` names, and fail where a claimed one fails.

The claims are the case ids in `tests/conformance_claims.txt`. Every case is played whole, and each stream in every cut
that the runner knows.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CLAIMS = ROOT / 'tests' / 'conformance_claims.txt'


def main() -> int:
    """Run, print the runner's table, and tell what is claimed and fails, or passes and is not claimed."""
    corpus = os.environ.get('OAICOMPAT_CORPUS')
    if not corpus:
        sys.stdout.write('conformance: not run; set OAICOMPAT_CORPUS to the folder of the cases\n')
        return 0
    rows = _rows(Path(corpus).resolve())
    claimed = set(CLAIMS.read_text(encoding='utf-8').split())
    failed = {row['id'] for row in rows if row['result'] != 'PASS'}
    passed = {row['id'] for row in rows} - failed
    broken = sorted(claimed - passed)
    sys.stdout.write(f'conformance: {len(passed)} of {len(passed | failed)} cases pass, {len(claimed)} are claimed\n')
    if passed - claimed:
        sys.stdout.write(f'not claimed yet: {" ".join(sorted(passed - claimed))}\n')
    if broken:
        sys.stdout.write(f'claimed, and failing: {" ".join(broken)}\n')
    return 1 if broken else 0


def _rows(corpus: Path) -> list[dict[str, str]]:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / 'rows.json'
        target = ['--target', 'conformance_target:factory', '--variants', '--json', str(out)]
        environment = {**os.environ, 'PYTHONPATH': str(ROOT / 'tests'), 'PYTHONDONTWRITEBYTECODE': '1'}
        # Our own runner, named by our own variable.
        subprocess.run([sys.executable, str(corpus / 'run.py'), *target], check=True, env=environment, cwd=ROOT)  # noqa: S603
        rows: list[dict[str, str]] = json.loads(out.read_text(encoding='utf-8'))
        return rows


if __name__ == '__main__':
    sys.exit(main())
