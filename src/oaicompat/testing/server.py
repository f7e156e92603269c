"""A loopback HTTP/1.1 server that answers from a script.

Each connection is two coroutines in one task group. `_pump` moves what comes in to an inbox and so notices at once
when the client leaves; `_talk` reads requests from the inbox, asks the script, and plays the reply. Whichever ends
first ends the other. What goes wrong in the script is kept, and raised when the server's context is left.
"""

import asyncio
import socket
import struct
import sys
import traceback
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Self, cast

from .reply import Reply, has_body
from .request import BadRequestError, RecordedRequest, read_request

Handler = Callable[[RecordedRequest], Reply | Awaitable[Reply]]
"""Answers each request, in the manner of a mock transport."""

Script = Sequence[Reply] | Handler
"""Replies in the order of the requests, or a handler."""

_HEAD_LIMIT = 2**20  # bytes; far more than any client sends
_TURNS_TO_ACCEPT = 5  # asyncio needs up to four turns of its loop from accepting a socket to telling us
_NO_LINGER = struct.pack('hh' if sys.platform == 'win32' else 'ii', 1, 0)


class ScriptUsedUpError(AssertionError):
    """A request came after the script's last reply."""


class ScriptedServer:
    """Answers requests on 127.0.0.1 from a script, and records them.

    Use it as an asynchronous context manager, once. A request for which there is no reply, a handler that raises and a
    request that is not HTTP are answered with an error status, and raised again when the context is left; if another
    exception is already on its way, they become notes on it.

    A client counts as gone as soon as it closes its side of the connection; what is being played to it then stops.

    Args:
        script: Replies in the order of the requests, or a function from a request to a reply, which may be async.

    Raises:
        TypeError: If the script is neither.
    """

    requests: list[RecordedRequest]
    """Every complete request, in the order of arrival, over all connections."""

    connections: int
    """How many connections were accepted."""

    def __init__(self, script: Script) -> None:
        self.requests = []
        self.connections = 0
        self._port = 0
        self._handler: Handler = script if callable(script) else _Replies(script)
        self._failures: list[BaseException] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._listener: asyncio.Server | None = None

    @property
    def port(self) -> int:
        """The TCP port, chosen by the system.

        Raises:
            RuntimeError: If the server was never started.
        """
        if self._listener is None:
            raise RuntimeError('the server is started by `async with`')
        return self._port

    @property
    def root_url(self) -> str:
        """The address without a path, such as `http://127.0.0.1:4711`."""
        return f'http://127.0.0.1:{self.port}'

    @property
    def base_url(self) -> str:
        """The address that an OpenAI client takes, such as `http://127.0.0.1:4711/v1`."""
        return f'{self.root_url}/v1'

    @property
    def open_connections(self) -> int:
        """How many connections are open now; a client that has just left may still be counted."""
        return len(self._tasks)

    async def wait_disconnected(self) -> None:
        """Wait until no connection is open; bound it with `asyncio.timeout`."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def __aenter__(self) -> Self:
        """Start to listen.

        Raises:
            RuntimeError: If the server was started before.
        """
        if self._listener is not None:
            raise RuntimeError('a scripted server is used once')
        self._listener = await asyncio.start_server(self._accepted, '127.0.0.1', 0)
        self._port = self._listener.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close every connection, then report what went wrong in the script.

        Raises:
            ScriptUsedUpError: If there were more requests than replies.
            BadRequestError: If something came in that is not HTTP.
            BaseException: What the handler raised.
        """
        await self._close()
        if not self._failures:
            return
        carrier, *others = [error, *self._failures] if error is not None else self._failures
        for failure in others:
            carrier.add_note(_note(failure))
        if error is None:
            raise carrier

    async def _close(self) -> None:
        assert self._listener is not None  # noqa: S101 - only called from __aexit__
        self._listener.close()
        for _ in range(_TURNS_TO_ACCEPT):
            await asyncio.sleep(0)
        for task in self._tasks:
            task.cancel()
        await self.wait_disconnected()
        await self._listener.wait_closed()

    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A plain function, because asyncio would keep the task of a coroutine function to itself.
        self.connections += 1
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._served)

    def _served(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._keep(error)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inbox = asyncio.StreamReader(limit=_HEAD_LIMIT)
        writer.transport.set_write_buffer_limits(high=0)  # so that a drained write is one the system has taken
        try:
            async with asyncio.TaskGroup() as tasks:
                talk = tasks.create_task(self._talk(inbox, writer))
                await _pump(reader, inbox)
                await asyncio.sleep(0)  # a request that came together with the end is still recorded
                talk.cancel()
        finally:
            writer.transport.abort()
            with suppress(OSError):
                await writer.wait_closed()

    async def _talk(self, inbox: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(OSError):  # the client has left while we wrote: that is its own affair
                while await self._exchange(inbox, writer):
                    pass
        finally:
            writer.transport.abort()  # which also ends the pump

    async def _exchange(self, inbox: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request, and tell whether the connection can take another."""
        try:
            request = await read_request(inbox, partial(_write, writer, b'HTTP/1.1 100 Continue\r\n\r\n'))
        except BadRequestError as error:
            await _play(_error_reply(self._keep(error), status=400), writer, close=True)
            return False
        if request is None:
            return False
        self.requests.append(request)
        reply = await self._answer(request)
        head_only = request.method == 'HEAD' and reply.framing != 'bare'
        await _play(reply, writer, close=not request.keeps_alive, head_only=head_only)
        return request.keeps_alive and reply.keeps_alive

    async def _answer(self, request: RecordedRequest) -> Reply:
        try:
            answer = self._handler(request)
            reply = answer if isinstance(answer, Reply) else await answer
            if not isinstance(reply, Reply):
                raise TypeError(f'the handler returned {type(reply).__name__}, not Reply')
        except (asyncio.CancelledError, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # `pytest.fail` in a handler raises no `Exception`
            return _error_reply(self._keep(error), status=500)
        return reply

    def _keep(self, error: BaseException) -> BaseException:
        self._failures.append(error)
        return error


class _Replies:
    """A handler that gives one reply after the other."""

    def __init__(self, replies: Sequence[Reply]) -> None:
        if not isinstance(cast(object, replies), Sequence) or isinstance(replies, str | bytes):
            cure = 'put it in a list' if isinstance(replies, Reply) else 'expected a list of replies or a function'
            raise TypeError(f'`script` is of type {type(replies).__name__}; {cure}')
        for number, reply in enumerate(replies):
            if not isinstance(reply, Reply):
                kind = type(reply).__name__
                raise TypeError(f'`script[{number}]` is of type {kind}; expected a Reply; wrap it in Reply.json()')
        self._length = len(replies)
        self._rest = iter(tuple(replies))

    def __call__(self, request: RecordedRequest) -> Reply:
        for reply in self._rest:
            return reply
        raise ScriptUsedUpError(f'the script (replies: {self._length}) is used up, and {request.route} came')


def _error_reply(error: BaseException, *, status: int) -> Reply:
    # The header is the OpenAI SDK's own: without it a broken test would wait for the SDK's retries.
    body = {'error': {'message': _public(error), 'type': 'scripted_server_error'}}
    return Reply.json(body, status, headers={'x-should-retry': 'false'})


def _public(error: BaseException) -> str:
    # Only our own messages are known to hold no key.
    ours = isinstance(error, ScriptUsedUpError | BadRequestError)
    return str(error) if ours else f'{type(error).__name__} was raised'


def _note(error: BaseException) -> str:
    return 'ScriptedServer: ' + ''.join(traceback.format_exception(error, limit=-1)).rstrip()


async def _pump(reader: asyncio.StreamReader, inbox: asyncio.StreamReader) -> None:
    with suppress(OSError):
        while data := await reader.read(2**16):
            inbox.feed_data(data)
    inbox.feed_eof()


async def _play(reply: Reply, writer: asyncio.StreamWriter, *, close: bool, head_only: bool = False) -> None:
    await asyncio.sleep(reply.delay)
    await _write(writer, reply.head(close=close))
    if not head_only and has_body(reply.status):
        for number, piece in enumerate(reply.framed()):
            await asyncio.sleep(reply.pause if number else 0)
            await _write(writer, piece)
        await _write(writer, reply.tail())
    if reply.ending == 'reset':
        # A socket that may not linger discards what is unsent and resets when it is closed.
        writer.get_extra_info('socket').setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
    elif reply.ending == 'half-close':
        writer.write_eof()
    if reply.ending in {'stall', 'half-close'}:
        await asyncio.get_running_loop().create_future()  # until the client leaves or the server closes


async def _write(writer: asyncio.StreamWriter, data: bytes) -> None:
    """Write, and let a client in the same event loop read just this before anything else is written."""
    if not data:
        return
    writer.write(data)
    await writer.drain()
    # The first turn finds the client's socket readable, the second one lets it read.
    await asyncio.sleep(0)
    await asyncio.sleep(0)
