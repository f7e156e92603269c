"""The table of formats in which models write calls, written from the grammars themselves.

`python scripts/grammars_table.py` rewrites the page on calls as text between its markers.
"""

from __future__ import annotations

from pathlib import Path

from servers_table import updated

from oaicompat._grammars import GRAMMARS

PAGE = Path(__file__).resolve().parent.parent / 'docs' / 'explanation' / 'text-calls.md'


def table() -> str:
    """One line for each format, with its first example."""
    lines = (
        f'| {grammar.name} | {_cell(grammar.examples[0])} | [source]({grammar.evidence}) |' for grammar in GRAMMARS
    )
    return '\n'.join(('| format | how a call looks | |', '|---|---|---|', *lines))


def _cell(example: str) -> str:
    text = ' '.join(example.split())
    if not {'|', '`'} & {*text}:
        return f'`{text}`'
    # A bar would end the cell.
    for char in '&<*_`|':
        text = text.replace(char, f'&#{ord(char)};')
    return f'<code>{text}</code>'


def main() -> None:
    """Rewrite the page."""
    PAGE.write_text(updated(PAGE.read_text(encoding='utf-8'), 'grammars', table()), encoding='utf-8')


if __name__ == '__main__':
    main()
