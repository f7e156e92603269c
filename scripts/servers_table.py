"""The table of servers, written from the rows: into README.md, and with each row's evidence into the docs.

`python scripts/servers_table.py` rewrites both files between their markers; `--print` only prints the table.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from oaicompat.servers import Server, servers

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / 'README.md'
REFERENCE = ROOT / 'docs' / 'reference' / 'servers.md'

_HEADER = ('Prefix', 'Aliases', 'Server', 'Base URL', 'Key variables', 'List tool results')
_URL = re.compile(r'https?://[^\s),]+')


def table() -> str:
    """One line for each row."""
    lines = [_HEADER, ('---',) * len(_HEADER), *(_cells(row) for row in servers())]
    return '\n'.join(f'| {" | ".join(line)} |' for line in lines)


def details() -> str:
    """One section for each row: what is known, who says so, when it was read, and what is unchecked."""
    return '\n\n'.join(_section(row) for row in servers())


def between(text: str, name: str) -> str:
    """What stands between the markers `name:start` and `name:end` of `text`."""
    before, after = _around(text, name)
    return text[len(before) : len(text) - len(after)].strip()


def updated(text: str, name: str, content: str) -> str:
    """`text` with `content` between the markers `name:start` and `name:end`."""
    before, after = _around(text, name)
    return f'{before}\n\n{content}\n\n{after}'


def main() -> None:
    """Rewrite both files, or print the table."""
    parser = argparse.ArgumentParser(description='Write the table of servers into README.md and the docs.')
    parser.add_argument('--print', action='store_true', dest='only_print', help='print the table, write nothing')
    if parser.parse_args().only_print:
        sys.stdout.write(f'{table()}\n')
        return
    readme = README.read_text(encoding='utf-8')
    README.write_text(updated(readme, 'servers', table()), encoding='utf-8')
    reference = updated(REFERENCE.read_text(encoding='utf-8'), 'servers', table())
    REFERENCE.write_text(updated(reference, 'details', details()), encoding='utf-8')


def _around(text: str, name: str) -> tuple[str, str]:
    start, end = f'<!-- {name}:start -->', f'<!-- {name}:end -->'
    before, found, rest = text.partition(start)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise ValueError(f'expected the markers {start} and {end}')
    return before + start, end + after


def _cells(row: Server) -> tuple[str, ...]:
    where = row.base_url or ' or '.join(row.url_vars)
    return f'`{row.prefix}`', _code(row.aliases), row.title, f'`{where}`', _code(row.key_vars), _lists(row)


def _lists(row: Server) -> str:
    """What `compat_tool_return='auto'` means for the row."""
    if row.prefix == 'llama-cpp':
        return 'asks the server'
    form = row.profile.get('compat_tool_return', 'auto')
    return 'native' if form == 'auto' else form


def _section(row: Server) -> str:
    facts = {
        'Known': _linked(row.known),
        'Profile': _keys(row),
        'From pydantic-ai': _from_pydantic(row),
        'Base URL variables': _code(row.url_vars),
        'Key': 'optional' if not row.needs_key else '',
        'Evidence': f'{_linked(row.evidence)}, read {row.read}',
        'Unchecked': _linked(row.unchecked),
    }
    lines = [f'- **{name}:** {text}{"" if text.endswith(".") else "."}' for name, text in facts.items() if text]
    return '\n'.join([f'### {row.title} {{ #{row.prefix} }}', '', *lines])


def _keys(row: Server) -> str:
    """The profile keys of a row, but for the form of lists, which the table has."""
    keys = {key: value for key, value in row.profile.items() if key != 'compat_tool_return'}
    return '; '.join(f'`{key}`: {_value(value)}' for key, value in sorted(keys.items()))


def _value(value: object) -> str:
    return _code(tuple(map(str, value))) if isinstance(value, tuple) else f'`{value!r}`'


def _from_pydantic(row: Server) -> str:
    if row.upstream:
        return f'provider, profile and model class of `{row.upstream}:`'
    return f'profiles of `{row.family}/` models' if row.family else ''


def _code(names: tuple[str, ...]) -> str:
    return ', '.join(f'`{name}`' for name in names)


def _linked(text: str) -> str:
    return _URL.sub(lambda found: f'<{found[0]}>', text)


if __name__ == '__main__':
    main()
