"""Servers: one row of data for each OpenAI-compatible server that a prefix names.

A row says where the server is, which variables hold its key, and what is known of it, each with its evidence.
Rows are data: behaviour lives behind the profile keys they set. Users add or replace rows with
`register_server()`, or in YAML under `servers:`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from threading import Lock
from typing import cast

from pydantic_ai.exceptions import UserError
from pydantic_ai.providers import infer_provider_class

from oaicompat import _urls
from oaicompat._rows import ROWS
from oaicompat._server import Server

__all__ = ('Server', 'find_server', 'nearest_prefixes', 'register_server', 'server_at', 'servers')

# Never changed but replaced: other threads go on to read it.
_registry: dict[str, Server] = {}
_ADDING = Lock()
_RESERVED = frozenset({'openai', 'openai-chat', 'openai-responses', 'test'})


def _spelling(prefix: str) -> str:
    return prefix.lower().replace('_', '-')


def register_server(server: Server) -> None:
    """Add a row, or replace the one with the same prefix; its aliases follow.

    Args:
        server: The row. Models that exist already keep the row they were made with.

    Raises:
        UserError: If pydantic-ai has no provider for its `upstream`, or the prefix means OpenAI itself.

    Example:
        ```python
        from oaicompat import Server, infer_model, register_server

        register_server(Server(prefix='acme', base_url='https://llm.acme.test/v1', key_vars=('ACME_API_KEY',)))
        ```
    """
    if not isinstance(cast(object, server), Server):
        raise UserError(f'`server` must be a Server, not {type(server).__name__}')
    reserved = {_spelling(name) for name in (server.prefix, *server.aliases)} & _RESERVED
    if reserved:
        raise UserError(f'`prefix` {min(reserved)!r} has a meaning of its own; choose another for this server')
    if server.upstream is not None:
        try:
            infer_provider_class(server.upstream)
        except ImportError:
            pass  # pydantic-ai knows it, and says what to install when the model is made
        except ValueError:
            raise UserError(
                f'`upstream` of server {server.prefix!r} is {server.upstream!r}; expected the name of a provider of '
                'pydantic-ai, such as ollama, or none'
            ) from None
    _add(server)


def _add(server: Server) -> None:
    global _registry  # noqa: PLW0603
    own = _spelling(server.prefix)
    with _ADDING:
        replaced = _registry.get(own)
        # A row that has this name as its own goes, aliases and all; one that has it as an alias only loses the alias.
        goes = replaced if replaced is not None and _spelling(replaced.prefix) == own else None
        left = {name: row for name, row in _registry.items() if row is not goes}
        _registry = left | dict.fromkeys(map(_spelling, (server.prefix, *server.aliases)), server)


@contextmanager
def registry_restored_on_error() -> Iterator[None]:
    """Take back the rows that were registered inside, should anything fail there."""
    global _registry  # noqa: PLW0603
    before = _registry
    try:
        yield
    except BaseException:
        _registry = before
        raise


def find_server(prefix: str) -> Server | None:
    """The row that `prefix` names; case, and `_` for `-`, make no difference."""
    return _registry.get(_spelling(prefix))


def servers() -> Iterator[Server]:
    """All rows, each once, in the order they were registered."""
    return iter({row.prefix: row for row in _registry.values()}.values())


def server_at(url: str) -> Server | None:
    """The hosted row that `url`'s host belongs to."""
    return next((row for row in servers() if row.kind == 'hosted' and _urls.same_host(url, row.base_url)), None)


def nearest_prefixes(prefix: str, others: Iterable[str] = ()) -> list[str]:
    """The prefixes, of rows and of `others`, that look most like `prefix`, best first."""
    return get_close_matches(_spelling(prefix), {**_registry, **dict.fromkeys(others)}, n=3, cutoff=0.6)


for _row in ROWS:
    _add(_row)
