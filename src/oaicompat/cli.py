"""The command line: `oaicompat demo`, `oaicompat models`, `oaicompat schema`.

Each command imports what it needs when it runs, so that `--help` stays quick. A user's mistake is one line on
standard error and exit status 2, never a traceback; a server's refusal is one line and exit status 1.
"""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Callable, Sequence

TYPE_CHECKING = False  # importing `typing` takes longer than all else here; type checkers take this for true
if TYPE_CHECKING:
    from typing import Any

    from oaicompat.discovery import ListedModel


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        argv: The arguments; default: those of the process.

    Returns:
        The exit status: 0, 1 where a server or the network failed, 2 for a user's mistake, 130 after Ctrl-C.
    """
    options = _parser().parse_args(argv)
    command: Callable[[argparse.Namespace], int] = options.command
    try:
        return command(options)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader of our output has gone, as in `| head`
        sys.stderr.close()
        return 0
    except Exception as error:
        status = _status(error)
        if status is None:
            raise
        text = ' '.join(str(error).split())
        sys.stderr.write(f'oaicompat: {_for_commands(text) if status == _MISTAKE else text}\n')
        return status


def _for_commands(text: str) -> str:
    """`text`, which may speak of a model's arguments, with what they are called here."""
    named = {argument: text.find(f'`{argument}`') for argument in _OPTIONS}
    here = [_OPTIONS[argument] for argument, at in named.items() if at > 0]  # at 0 it is what was given
    return f'{text} (on the command line: {"; ".join(here)})' if here else text


_OPTIONS = {
    'base_url': '--base-url URL, or with `models` the URL in place of the prefix',
    'api_key': '--api-key-env VAR',
}


_MISTAKE = 2


def _status(error: Exception) -> int | None:
    """The exit status for an error that is the user's or the server's, and none of our own."""
    from pydantic_ai.exceptions import AgentRunError, UserError

    if isinstance(error, UserError | ImportError):
        return _MISTAKE
    return 1 if isinstance(error, AgentRunError) else None


def _demo(options: argparse.Namespace) -> int:
    from oaicompat._demo import run

    _tolerate_terminal()
    return run(model=options.model, base_url=options.base_url, api_key_env=options.api_key_env)


def _models(options: argparse.Namespace) -> int:
    import asyncio
    import json

    from oaicompat._environment import key_in
    from oaicompat.discovery import list_models

    key = key_in(options.api_key_env, '--api-key-env')
    listed = asyncio.run(list_models(options.server, api_key=key))
    listed.sort(key=lambda model: (model.id.lower(), model.id))
    if options.json:
        told = ('id', 'context_window', 'owned_by')
        sys.stdout.write(
            json.dumps([{name: getattr(model, name) for name in told} for model in listed], indent=2) + '\n'
        )
        return 0
    _tolerate_terminal()
    sys.stdout.write(_table(listed) if listed else 'the server lists no models\n')
    return 0


def _table(listed: Sequence[ListedModel]) -> str:
    """Ids to the left, numbers of tokens to the right; nothing that a server names can steer the terminal."""
    cells = [(_printable(model.id), str(model.context_window or '-')) for model in listed]
    cells.insert(0, ('model', 'context window'))
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return ''.join(f'{name:<{widths[0]}}  {size:>{widths[1]}}\n' for name, size in cells)


def _printable(text: str) -> str:
    return ''.join(character if character.isprintable() else '?' for character in text)


def _tolerate_terminal() -> None:
    """What a terminal can't show, such as a frame or a word of the model, is no reason to stop."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors='replace')


def _schema(_: argparse.Namespace) -> int:
    import json

    from oaicompat.config import json_schema

    sys.stdout.write(json.dumps(json_schema(), indent=2) + '\n')
    return 0


class _Version(argparse.Action):
    """argparse's own, but for when the version is looked up."""

    def __call__(  # type: ignore[explicit-override]  # `typing_extensions` takes longer than all else here
        self, parser: argparse.ArgumentParser, *_: Any, **__: Any
    ) -> None:
        from importlib.metadata import version

        print(f'oaicompat {version("oaicompat")}')  # noqa: T201  # nowhere, if there is no standard output
        parser.exit()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog='oaicompat', description='OpenAI-compatible servers in pydantic-ai.')
    parser.add_argument('--version', action=_Version, nargs=0, help="show program's version number and exit")
    commands = parser.add_subparsers(title='commands', required=True, metavar='COMMAND')

    demo = commands.add_parser(
        'demo',
        help='show what a list tool result becomes, with pydantic-ai alone and with oaicompat',
        description='Run one agent twice, with the stock model and with oaicompat, and show both requests and prompts. '
        'Without options: on a tiny model in a llama.cpp server that the command starts itself (extra: demo).',
    )
    demo.add_argument('--model', metavar='NAME', help='PREFIX:NAME, or with --base-url the name alone')
    demo.add_argument('--base-url', metavar='URL', help='your own server, such as http://localhost:8000/v1')
    demo.add_argument('--api-key-env', metavar='VAR', help='the variable that holds the key for --base-url')
    demo.set_defaults(command=_demo)

    models = commands.add_parser(
        'models',
        help='list the models that a server has, with their context windows',
        description='List the models that a server has, with their context windows in tokens where it tells them.',
    )
    models.add_argument('server', metavar='PREFIX|URL', help='such as lm-studio or http://localhost:8000/v1')
    models.add_argument('--api-key-env', metavar='VAR', help='the variable that holds the key to send')
    models.add_argument('--json', action='store_true', help='print JSON')
    models.set_defaults(command=_models)

    schema = commands.add_parser('schema', help='print the JSON schema of a models file, for editors')
    schema.set_defaults(command=_schema)
    return parser
