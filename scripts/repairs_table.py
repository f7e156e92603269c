"""The page of repairs, written from their registry.

`python scripts/repairs_table.py` rewrites it between its markers.
"""

from __future__ import annotations

import re
from pathlib import Path

from servers_table import updated

from oaicompat.repairs import REPAIRS

PAGE = Path(__file__).resolve().parent.parent / 'docs' / 'reference' / 'repairs.md'
_URL = re.compile(r'https://github\.com/([^\s)]+)')


def sections() -> str:
    """One section for each repair."""
    return '\n\n'.join(
        f'## `{repair.name}`\n\n- Seen: {_linked(repair.seen)}\n- Done: {repair.done}\n- Safe: {repair.safe}'
        for repair in REPAIRS
    )


def _linked(text: str) -> str:
    return _URL.sub(lambda found: f'[{_short(found[1])}]({found[0]})', text)


def _short(path: str) -> str:
    owner, name, _, number = path.split('/')
    return f'{owner}/{name}#{number}'


def main() -> None:
    """Rewrite the page."""
    PAGE.write_text(updated(PAGE.read_text(encoding='utf-8'), 'repairs', sections()), encoding='utf-8')


if __name__ == '__main__':
    main()
