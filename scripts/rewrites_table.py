"""The table of what `compat_schema` can do, written from the rewrites themselves.

`python scripts/rewrites_table.py` rewrites the page of knobs between its markers.
"""

from __future__ import annotations

from pathlib import Path

from servers_table import updated

from oaicompat._rewrites import REWRITES

PAGE = Path(__file__).resolve().parent.parent / 'docs' / 'reference' / 'knobs.md'


def table() -> str:
    """One line for each thing that is done; names that share it stand together."""
    names: dict[str, list[str]] = {}
    for name, rewrite in REWRITES.items():
        names.setdefault(rewrite.does, []).append(f'`{name}`')
    lines = ('| name | becomes |', '|---|---|', *(f'| {", ".join(same)} | {does} |' for does, same in names.items()))
    return '\n'.join(lines)


def main() -> None:
    """Rewrite the page."""
    PAGE.write_text(updated(PAGE.read_text(encoding='utf-8'), 'rewrites', table()), encoding='utf-8')


if __name__ == '__main__':
    main()
