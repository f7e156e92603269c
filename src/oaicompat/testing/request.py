"""What a scripted server receives: one HTTP/1.1 request read from a stream, whole.

`read_request` reads the head, then the body by the reader that its headers ask for: a length, or chunks.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

_SECRET_WORDS = ('auth', 'cookie', 'key', 'secret', 'token')


class BadRequestError(ValueError):
    """What came in is no HTTP/1.1 request."""


@dataclass(frozen=True, repr=False)
class RecordedRequest:
    """One request as it came over the wire."""

    method: str
    """The method, such as `POST`."""

    path: str
    """The target, with its query."""

    headers: Mapping[str, str]
    """Headers by lower-case name; a repeated one is joined with commas."""

    body: bytes
    """The body, without chunk framing."""

    @property
    def route(self) -> str:
        """Method and path, such as `GET /v1/models`, without the query."""
        return f'{self.method} {self.path.partition("?")[0]}'

    @property
    def json(self) -> Any:
        """The parsed body.

        Raises:
            ValueError: If the body is not JSON.
        """
        try:
            return json.loads(self.body)
        except ValueError as error:
            raise ValueError(f'the body of {self.route} is not JSON: {error}') from error

    @property
    def keeps_alive(self) -> bool:
        """Whether the client may send another request on this connection."""
        return 'close' not in self.headers.get('connection', '').lower()

    # `typing.override` is new in Python 3.12.
    def __repr__(self) -> str:  # type: ignore[explicit-override]
        """All but the query, the body's text and the values of headers that may hold a key."""
        headers = {name: '***' if _is_secret(name) else value for name, value in self.headers.items()}
        return f'<RecordedRequest {self.route}, headers={headers}, {len(self.body)} bytes>'


async def read_request(reader: asyncio.StreamReader, go_on: Callable[[], Awaitable[None]]) -> RecordedRequest | None:
    """Read one request.

    Args:
        reader: Where the request comes in.
        go_on: Called before the body is read, if the client waits to be told so (`Expect: 100-continue`).

    Returns:
        The request, or None if the client left before it was complete.

    Raises:
        BadRequestError: If it is malformed.
    """
    try:
        method, path, headers = _parse_head(await reader.readuntil(b'\r\n\r\n'))
        if headers.get('expect', '').lower() == '100-continue':
            await go_on()
        body = await _read_body(reader, headers)
    except asyncio.IncompleteReadError:
        return None
    except asyncio.LimitOverrunError as error:
        raise BadRequestError('a line or the head is too long') from error
    return RecordedRequest(method, path, headers, body)


def _parse_head(head: bytes) -> tuple[str, str, dict[str, str]]:
    request_line, *lines = head.decode('latin-1').removesuffix('\r\n\r\n').split('\r\n')
    match request_line.split(' '):
        case [method, path, 'HTTP/1.1']:
            return method, path, _parse_headers(lines)
    raise BadRequestError('the request line is not "METHOD TARGET HTTP/1.1"')


def _parse_headers(lines: list[str]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(':')
        if not colon:
            raise BadRequestError('a header line has no colon')
        name, value = name.lower(), value.strip(' \t')
        headers[name] = f'{headers[name]}, {value}' if name in headers else value
    return headers


async def _read_body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    # RFC 9112, 6.3: Transfer-Encoding overrides Content-Length; a request with neither has no body.
    if 'chunked' in headers.get('transfer-encoding', '').lower():
        return await _read_chunks(reader)
    return await reader.readexactly(_number(headers.get('content-length', '0'), base=10))


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    chunks = []
    while size := _number((await reader.readuntil(b'\r\n')).partition(b';')[0].decode('latin-1'), base=16):
        chunks.append(await reader.readexactly(size))
        if await reader.readexactly(2) != b'\r\n':
            raise BadRequestError('a chunk is longer than its size')
    while await reader.readuntil(b'\r\n') != b'\r\n':
        pass  # trailers carry nothing that a test would ask for
    return b''.join(chunks)


def _number(text: str, *, base: int) -> int:
    try:
        number = int(text, base)
    except ValueError:
        number = -1
    if number < 0:
        raise BadRequestError('a body size is no number')
    return number


def _is_secret(header: str) -> bool:
    return any(word in header for word in _SECRET_WORDS)
