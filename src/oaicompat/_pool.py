"""Connections kept for as many requests at once as there are.

httpcore's pool looks at each of its connections twice a request and keeps a hundred of those that are idle. The pool
here takes the connection that was used last, from a stack, and keeps as many as were in use at once until a request
finds them expired; connections, their life and their errors are httpcore's. Nothing here knows what is sent.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from ssl import SSLContext
from time import monotonic
from types import FunctionType
from typing import Any, NamedTuple, cast

import anyio
import httpcore2
from httpcore2 import (
    AsyncConnectionInterface,
    AsyncConnectionPool,
    ConnectError,
    ConnectionNotAvailable,
    Origin,
    PoolTimeout,
    Request,
    Response,
    default_ssl_context,
)
from typing_extensions import override

_THEIRS = str(Path(httpcore2.__file__).parent)
_SCHEMES = (b'http', b'https')


def keep_connections(provider: object, *, own: bool) -> None:
    """Let the HTTP client that `provider` made for itself keep its connections on a stack.

    A pool that was used already, one of another class, with a proxy or with HTTP/2, and a client that the caller made
    stay as they are.

    Args:
        provider: The provider.
        own: Whether it is ours, so that as many connections may be kept as there may be; else its limit holds.
    """
    client = getattr(provider, '_own_http_client', None)
    pool = getattr(getattr(client, '_transport', None), '_pool', None)
    if type(pool) is not AsyncConnectionPool:
        return
    state = vars(pool)
    unused = state.get('_connections') == [] and state.get('_requests') == []
    plain = state.get('_http2') is False and state.get('_proxy', pool) is None
    if unused and plain and state.keys() >= _READ:
        pool.__class__ = ConnectionStack
        if own:
            pool._max_keepalive_connections = pool._max_connections


_READ = {  # of the parent
    *('_connections', '_max_connections', '_max_keepalive_connections', '_keepalive_expiry', '_ssl_context'),
}


class _Idle(NamedTuple):
    connection: AsyncConnectionInterface
    since: float


class _Waiter:
    def __init__(self, origin: Origin) -> None:
        self.origin, self.told = origin, anyio.Event()
        self.connection: AsyncConnectionInterface | None = None


class ConnectionStack(AsyncConnectionPool):
    """A pool whose idle connections lie on a stack for each origin.

    `_connections` holds all of them, as in the parent, whose `aclose()`, `connections` and limit go on to hold.
    """

    @property
    def _stacks(self) -> dict[bytes, deque[_Idle]]:
        stacks: dict[bytes, deque[_Idle]] = self.__dict__.setdefault('_idle', {})
        return stacks

    @property
    def _waiters(self) -> deque[_Waiter]:
        waiters: deque[_Waiter] = self.__dict__.setdefault('_waiting', deque())
        return waiters

    @override
    async def handle_async_request(self, request: Request) -> Response:
        # Recorders of requests stand in the parent's place.
        if not _is_theirs(AsyncConnectionPool.handle_async_request) or request.url.scheme not in _SCHEMES:
            return await super().handle_async_request(request)
        origin = request.url.origin
        while True:
            connection = await self._taken(origin, request)
            try:
                response = await connection.handle_async_request(request)
            except ConnectionNotAvailable:
                continue  # the parent's way gave it to another request
            except BaseException:
                await self.give_back(connection, origin)
                raise
            response.stream = _Body(response.stream, self, connection, origin)
            return response

    @override
    async def aclose(self) -> None:
        self._stacks.clear()
        await super().aclose()

    async def give_back(self, connection: AsyncConnectionInterface, origin: Origin) -> None:
        """Keep a connection that is needed no more, or what is left of it, for another request."""
        usable = _is_left(connection)
        if self._waiters:
            waiter = self._waiters.popleft()
            kept = usable and waiter.origin == origin
            if not kept:
                self._forget(connection)
            waiter.connection = connection if kept else self._opened(waiter.origin)
            waiter.told.set()
        else:
            kept = usable and sum(map(len, self._stacks.values())) < self._max_keepalive_connections
            if kept:
                self._stacks.setdefault(_key(origin), deque()).append(_Idle(connection, monotonic()))
        if not kept:
            await self._drop(connection)

    async def _taken(self, origin: Origin, request: Request) -> AsyncConnectionInterface:
        """A connection to `origin` that is nobody else's: one that was used, a new one, or the next that is free."""
        if self._stacks:
            await self._close_expired()
            stack = self._stacks.get(_key(origin))
            while stack:
                connection = stack.pop().connection
                if not _is_left(connection):
                    continue
                if not connection.has_expired():
                    return connection
                await self._drop(connection)
        if len(self._connections) < self._max_connections or await self._made_room():
            return self._opened(origin)
        return await self._awaited(origin, request.extensions.get('timeout', {}).get('pool'))

    def _opened(self, origin: Origin) -> AsyncConnectionInterface:
        if origin.scheme == b'https' and self._ssl_context is None:
            self._ssl_context = _certificates()
        connection = self.create_connection(origin)
        self._connections.append(connection)
        return connection

    async def _close_expired(self) -> None:
        """Close what has been at the bottom of a stack for too long."""
        if self._keepalive_expiry is None:
            return
        oldest = monotonic() - self._keepalive_expiry
        expired: list[AsyncConnectionInterface] = []
        for stack in self._stacks.values():
            while stack and stack[0].since < oldest:
                expired.append(stack.popleft().connection)
        for connection in filter(_is_left, expired):
            await self._drop(connection)

    async def _made_room(self) -> bool:
        """Whether there is room for one more, without those that nobody needs."""
        self._connections = [connection for connection in self._connections if not connection.is_closed()]
        for stack in [*self._stacks.values()]:
            while len(self._connections) >= self._max_connections and stack:
                if _is_left(connection := stack.popleft().connection):
                    await self._drop(connection)
        return len(self._connections) < self._max_connections

    async def _awaited(self, origin: Origin, seconds: float | None) -> AsyncConnectionInterface:
        waiter = _Waiter(origin)
        self._waiters.append(waiter)
        try:
            with anyio.fail_after(seconds):
                await waiter.told.wait()
        except BaseException as error:
            if waiter.connection is not None:
                await self.give_back(waiter.connection, origin)
            else:
                self._waiters.remove(waiter)
            if isinstance(error, TimeoutError):
                raise PoolTimeout from error
            raise
        return cast(AsyncConnectionInterface, waiter.connection)

    async def _drop(self, connection: AsyncConnectionInterface) -> None:
        self._forget(connection)
        # What can't be closed, since its event loop is gone, is as good as closed.
        with anyio.CancelScope(shield=True), suppress(Exception):
            await connection.aclose()

    def _forget(self, connection: AsyncConnectionInterface) -> None:
        if connection in self._connections:
            self._connections.remove(connection)


@cache
def _is_theirs(method: Any) -> bool:
    """Whether a method is httpcore's own, whoever was there first."""
    return type(method) is FunctionType and method.__code__.co_filename.startswith(_THEIRS)


def _is_left(connection: AsyncConnectionInterface) -> bool:
    """Whether nobody has a connection that was left on a stack: the parent's own way may have given it away."""
    return connection.is_idle() and not connection.is_closed()


def _certificates() -> SSLContext:
    """What httpcore loads for each connection of a pool that was given none."""
    try:
        return default_ssl_context()
    except OSError as error:  # of a file that the environment names
        raise ConnectError(str(error)) from error


def _key(origin: Origin) -> bytes:
    return b'%b://%b:%d' % (origin.scheme, origin.host, origin.port)


class _Body:
    """The body of a response, whose connection is free when it is closed."""

    def __init__(
        self, stream: Any, pool: ConnectionStack, connection: AsyncConnectionInterface, origin: Origin
    ) -> None:
        self._stream, self._pool, self._connection, self._origin = stream, pool, connection, origin
        self._closed = False

    def __aiter__(self) -> AsyncIterator[bytes]:
        chunks: AsyncIterator[bytes] = self._stream.__aiter__()
        return chunks

    async def aclose(self) -> None:
        if self._closed:
            return
        self._closed = True
        try:
            with anyio.CancelScope(shield=True):
                if hasattr(self._stream, 'aclose'):
                    await self._stream.aclose()
        finally:
            await self._pool.give_back(self._connection, self._origin)
