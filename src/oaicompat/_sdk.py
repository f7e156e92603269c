"""The SDK's seams: the only file that touches internals of the `openai` package.

`isolate()` makes a client forget what the SDK took from `OPENAI_*` variables, for every host but the one those
variables are meant for. `add_defaults()` sets headers and query parameters that providers have no argument for.
`sent_body()` reads the request back from an error, `record_bodies()` shows what goes out.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Hashable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any, Self, cast

from openai import APIConnectionError, APIStatusError, AsyncOpenAI, OpenAIError
from openai._types import RequestOptions

# What AsyncOpenAI fills from the environment where its caller gave none: arguments and attributes by these names.
# https://github.com/openai/openai-python/blob/main/src/openai/_client.py
_AMBIENT = ('organization', 'project', 'admin_api_key', 'webhook_secret')

_ASKING_TIMEOUT = 10.0
"""Seconds to wait for an answer that takes no inference."""


def isolate(client: AsyncOpenAI) -> None:
    """Make `client`, and every copy made of it, forget what came from `OPENAI_*` variables."""
    ambient = _environment_headers()
    explicit = {name for name, value in client._custom_headers.items() if ambient.get(name) != value}
    _forget_environment(client, explicit, given={})
    client.__class__ = _isolated(cast(Hashable, type(client)))


def add_defaults(client: AsyncOpenAI, headers: Mapping[str, str], query: Mapping[str, object]) -> None:
    """Send `headers` and `query` with every request of `client`."""
    client._custom_headers = {**client._custom_headers, **headers}
    client._custom_query = {**client._custom_query, **query}


def sent_body(error: BaseException) -> dict[str, Any] | None:
    """The JSON body of the request that `error` answers, read from the SDK's error that it was raised from."""
    cause = error.__cause__
    if not isinstance(cause, APIStatusError):
        return None
    try:
        body = json.loads(cause.request.content)
    except ValueError:
        return None
    return body if isinstance(body, dict) else None


@contextmanager
def record_bodies(client: AsyncOpenAI, bodies: list[dict[str, Any]]) -> Iterator[None]:
    """Append the JSON body of each request that `client` sends meanwhile to `bodies`."""

    async def record(request: Any) -> None:
        bodies.append(json.loads(request.content))

    hooks = client._client.event_hooks
    client._client.event_hooks = {**hooks, 'request': [*hooks['request'], record]}
    try:
        yield
    finally:
        client._client.event_hooks = hooks


async def post_json(client: AsyncOpenAI, url: str, body: Mapping[str, Any]) -> object:
    """What `url` answers to `body`, or `None` where it can't be asked; no retries.

    Args:
        client: Whose credentials and connections to use.
        url: An absolute URL on the client's own server.
        body: Sent as JSON.

    Raises:
        APIConnectionError: If the server can't be reached, which says nothing about `url`.
    """
    try:
        options: RequestOptions = {'max_retries': 0, 'timeout': _ASKING_TIMEOUT}
        return await client.post(url, cast_to=object, body=body, options=options)
    except APIConnectionError:
        raise
    except (OpenAIError, ValueError):  # refused, or answered with something that is no JSON
        return None


@cache
def _isolated(base: type[AsyncOpenAI]) -> type[AsyncOpenAI]:
    """`base`, with copies that stay isolated: the SDK reads the environment anew for each copy it makes."""

    class Isolated(base):  # type: ignore[misc, valid-type]  # the client's class: plain or Azure
        def copy(self, **options: Any) -> Self:
            replaced = options.get('set_default_headers')
            explicit = {
                **(self._custom_headers if replaced is None else replaced),
                **(options.get('default_headers') or {}),
            }
            client: Self = super().copy(**options)
            _forget_environment(client, explicit, given=options)
            return client

        with_options = copy

    Isolated.__name__, Isolated.__qualname__, Isolated.__module__ = base.__name__, base.__qualname__, base.__module__
    return Isolated


def _forget_environment(client: AsyncOpenAI, explicit: Collection[str], given: Mapping[str, Any]) -> None:
    for name in _AMBIENT:
        if given.get(name) is None:
            setattr(client, name, None)
    client._custom_headers = {name: value for name, value in client._custom_headers.items() if name in explicit}
    client._ambient_authorizations = frozenset()


def _environment_headers() -> dict[str, str]:
    """`OPENAI_CUSTOM_HEADERS`, one `name: value` a line, read as the SDK reads it."""
    lines = os.environ.get('OPENAI_CUSTOM_HEADERS', '').split('\n')
    pairs = (line.split(':', 1) for line in lines if ':' in line)
    return {name.strip(): value.strip() for name, value in pairs}
