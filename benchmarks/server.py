"""A server in another process that gives one answer, over connections that it keeps."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

from typing_extensions import override


class Answering(asyncio.Protocol):
    """One connection."""

    def __init__(self, answer: bytes) -> None:
        self._answer, self._waiting = answer, b''

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    @override
    def data_received(self, data: bytes) -> None:
        self._waiting += data
        while (end := self._waiting.find(b'\r\n\r\n')) >= 0:
            [length] = [
                line for line in self._waiting[:end].lower().split(b'\r\n') if line.startswith(b'content-length')
            ]
            whole = end + 4 + int(length.partition(b':')[2])
            if len(self._waiting) < whole:
                return
            self._waiting = self._waiting[whole:]
            self._transport.write(self._answer)


async def serve(body: bytes) -> None:
    """Tell the port, and answer until the process is ended."""
    head = b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n' % len(body)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Answering(head + body), '127.0.0.1', 0, backlog=2000)
    sys.stdout.write(f'{server.sockets[0].getsockname()[1]}\n')
    sys.stdout.flush()
    await server.serve_forever()


@contextmanager
def serving(body: bytes) -> Iterator[str]:
    """The URL of a server that gives `body` for an answer."""
    command = [sys.executable, __file__, body.decode()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, encoding='utf-8') as process:  # noqa: S603  # our own
        try:
            port = process.stdout.readline().strip() if process.stdout else ''
            yield f'http://127.0.0.1:{port}/v1'
        finally:
            process.terminate()


if __name__ == '__main__':
    asyncio.run(serve(sys.argv[1].encode()))
