"""What the demo prints: the answers as they stream, then both requests and both prompts side by side."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

_console = Console(highlight=False)
_COLOURS = ('red', 'green')

Shown = tuple[str, dict[str, Any] | None, str | None]


def headline(model: str, host: str, question: str) -> None:
    """Say what runs where."""
    _console.rule(f'[bold]{model}[/bold] at {host}')
    _console.print(f'One agent, one tool that returns a list of two strings. The question: [bold]{question}[/bold]\n')


@contextmanager
def answering(title: str) -> Iterator[Callable[[str], None]]:
    """Print an answer as it streams; its line ends even where the answer breaks off."""
    _console.print(f'[bold]{title}[/bold] answers: ', end='')
    try:
        yield lambda text: _console.print(Text(text), end='', soft_wrap=True)
    finally:
        _console.print()


def failed(title: str, message: str) -> None:
    """Say what became of one of the two."""
    _console.print(Text(f'{title} fails: {message}'), soft_wrap=True)


def side_by_side(shown: Sequence[Shown]) -> None:
    """Print the tool message of each request, and the prompt that the server renders from it."""
    _console.print()
    _row('The tool message in the request', [(title, _as_json(message)) for title, message, _ in shown])
    if any(prompt for *_, prompt in shown):
        _row('The prompt that the server renders from it', [(title, _from_call(prompt)) for title, _, prompt in shown])
    else:
        _console.print("This server has no /apply-template, so the prompt it renders can't be shown.")


def _row(caption: str, cells: Sequence[tuple[str, Any]]) -> None:
    table = Table.grid(expand=True, padding=(0, 1))
    for _ in cells:
        table.add_column(ratio=1)
    panels = [
        Panel(body, title=f'[bold]{title}[/bold]', border_style=colour)
        for (title, body), colour in zip(cells, _COLOURS, strict=True)
    ]
    table.add_row(*panels)
    _console.print(f'[bold]{caption}[/bold]')
    _console.print(table)


def _as_json(message: dict[str, Any] | None) -> Any:
    if message is None:
        return Text('the model did not call the tool', style='dim')
    content = {'role': message['role'], 'content': message['content']}
    text = json.dumps(content, indent=2, ensure_ascii=False)
    return Syntax(text, 'json', word_wrap=True, background_color='default')


def _from_call(prompt: str | None) -> Text:
    """The end of the prompt, from the model's call on: what comes before is the same in both."""
    if prompt is None:
        return Text('not known', style='dim')
    at = max(prompt.rfind('<tool_call>'), 0)
    text = Text(prompt[at:].strip())
    text.highlight_regex(r'</?tool_\w+>', 'cyan')
    text.highlight_regex(r'\\"|\\u\w{4}|[\[\]]', 'bold red')
    return text
