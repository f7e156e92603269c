"""An HTTP client for a server without TLS: certificates are loaded for a connection that needs them.

They take 20 ms and 0.7 MB of each client that httpx makes, also of one that only ever speaks to this machine.
httpcore loads the same ones, for each connection, where it is given none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast
from urllib.request import getproxies

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
    if any(vars(Provider).get(name, Provider) is not None for name in ('_own_http_client', '_http_client_factory')):
        return make(**options)
    client = plain_client()
    provider = make(**options, http_client=client)
    provider._own_http_client, provider._http_client_factory = client, plain_client
    return provider
