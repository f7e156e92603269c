"""An HTTP client for a server without TLS: certificates are loaded for a connection that needs them.

They take 20 ms and 0.7 MB of each client that httpx makes, also of one that only ever speaks to this machine.
httpcore loads the same ones where it is given none: for each connection, or once for a pool of ours.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast
from urllib.request import getproxies

import httpx2
from httpcore2 import AsyncConnectionPool
from httpx2 import AsyncClient, AsyncHTTPTransport
from openai import DEFAULT_CONNECTION_LIMITS
from pydantic_ai.models import create_async_httpx2_client
from pydantic_ai.providers import Provider


def plain_transport() -> AsyncHTTPTransport | None:
    """The transport of httpx without certificates of its own; `None` where httpx wants some."""
    try:
        transport = AsyncHTTPTransport(verify=cast(Any, None), limits=DEFAULT_CONNECTION_LIMITS)
    except (TypeError, ValueError, AttributeError):
        return None
    pool = getattr(transport, '_pool', None)
    # A context may be one that trusts everybody; without one, the pool takes httpcore's default, which does not.
    return transport if type(pool) is AsyncConnectionPool and vars(pool).get('_ssl_context', pool) is None else None


def plain_client() -> AsyncClient:
    """The client that pydantic-ai makes for a provider, with a plain transport where that makes no difference."""
    # With a transport that it is given, httpx leaves aside the proxies that the environment asks for.
    return create_async_httpx2_client(transport=None if getproxies() else plain_transport())


def on_plain_client(make: Callable[..., Provider[Any]], **options: Any) -> Provider[Any]:
    """The provider that `make` gives, with a plain client that is as much its own as one that it makes itself."""
    kept = [vars(Provider).get(name, Provider) for name in ('_own_http_client', '_http_client_factory')]
    if kept != [None, None] or not _are_as_shipped():
        return make(**options)
    client = plain_client()
    provider = make(**options, http_client=client)
    provider._own_http_client, provider._http_client_factory = client, plain_client
    return provider


def _are_as_shipped() -> bool:
    """Whether pydantic-ai's function and httpx make clients: recorders of requests stand in the place of either."""
    now = [getattr(sys.modules.get(module), name, None) for module, name in _MAKERS]
    made_by = getattr(AsyncClient.__init__, '__code__', None)
    return now == [*_MAKERS.values()] and made_by is not None and made_by.co_filename.startswith(_HTTPX)


_MAKERS: dict[tuple[str, str], object] = {
    ('pydantic_ai._http', 'create_async_httpx2_client'): create_async_httpx2_client,
    ('pydantic_ai.providers._openai_compatible', 'create_async_httpx2_client'): create_async_httpx2_client,
    ('httpx2', 'AsyncClient'): AsyncClient,
    ('httpx2._client', 'AsyncHTTPTransport'): AsyncHTTPTransport,
}
_HTTPX = str(Path(httpx2.__file__).parent)
