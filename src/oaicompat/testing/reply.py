"""What a scripted server sends: a value that knows its bytes and its cuts, and does no I/O.

`Reply` holds the pieces, their timing, how the body is framed and how it ends. Its constructors write common bodies,
`cut` moves the boundaries between the pieces, and `head`, `framed` and `tail` are the three kinds of bytes on the wire.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from itertools import pairwise
from typing import Any, Literal, Self, TypedDict, Unpack, cast, get_args

Framing = Literal['chunked', 'length', 'close', 'bare']
"""How a client learns where the body ends; see `Reply.framing`."""

Ending = Literal['clean', 'drop', 'reset', 'stall', 'half-close']
"""What happens after the last piece; see `Reply.ending`."""

_STATUSES = range(100, 1000)  # three digits (RFC 9112, 4)


class ReplyOptions(TypedDict, total=False):
    """The fields of `Reply` that every constructor takes by keyword."""

    headers: Mapping[str, str]
    pause: float
    delay: float
    framing: Framing
    ending: Ending


@dataclass(frozen=True)
class Reply:
    """One answer, down to the single write.

    The head is the status line, `headers` in their order, and a line for the framing; `Connection: close` if it is so.
    Nothing else is added, no date and no server name. A `Content-Length` or `Transfer-Encoding` in `headers` replaces
    the line for the framing, though not the framing, and may so lie about the body.

    Raises:
        ValueError: For a status, framing or ending that there is not.
    """

    status: int = 200
    """The HTTP status code."""

    headers: Mapping[str, str] = field(default_factory=dict)
    """Header lines, sent as they are written here."""

    pieces: tuple[bytes, ...] = ()
    """The body. Each piece is a write of its own and, in a chunked body, a chunk of its own; empty ones are skipped."""

    pause: float = 0
    """Seconds between two pieces."""

    delay: float = 0
    """Seconds before the first byte."""

    framing: Framing = 'chunked'
    """`chunked`: by chunks. `length`: by `Content-Length`. `close`: by the end of the connection.

    `bare` sends the pieces and nothing else, so that they are the whole answer, status line and all.
    """

    ending: Ending = 'clean'
    """`clean` finishes the body. With all others it stays unfinished: chunks without the last one, or a
    `Content-Length` of one byte more than is sent (a body framed by `close` has no end that could be missing).

    `drop` then closes the connection, `reset` resets it (RST), `half-close` closes the server's sending side only, and
    `stall` sends nothing more; the last two keep the connection until the client leaves or the server closes.
    """

    def __post_init__(self) -> None:
        """Check the fields that a typing mistake would turn into other bytes."""
        if not isinstance(cast(object, self.status), int) or self.status not in _STATUSES:
            raise ValueError(f'`status` is {self.status!r}; expected a number from 100 to 999')
        for name, value, kind in (('framing', self.framing, Framing), ('ending', self.ending, Ending)):
            if value not in get_args(kind):
                raise ValueError(f'`{name}` is {value!r}; expected one of {", ".join(map(repr, get_args(kind)))}')

    @classmethod
    def json(cls, value: Any, status: int = 200, **options: Unpack[ReplyOptions]) -> Self:
        """A JSON body.

        Args:
            value: Anything that `json.dumps` takes. Characters outside ASCII are sent as UTF-8, not escaped.
            status: The HTTP status code.
            **options: Other fields of the reply; `framing` is `length` if not given.
        """
        return cls.raw(_dump(value), status, 'application/json', **options)

    @classmethod
    def text(
        cls, text: str, content_type: str = 'text/plain', status: int = 200, **options: Unpack[ReplyOptions]
    ) -> Self:
        """A body of text, sent as UTF-8.

        Args:
            text: The body.
            content_type: The `Content-Type` header.
            status: The HTTP status code.
            **options: Other fields of the reply; `framing` is `length` if not given.
        """
        return cls.raw(text.encode(), status, content_type, **options)

    @classmethod
    def sse(
        cls,
        *events: Mapping[str, Any] | str | bytes,
        done: bool = True,
        status: int = 200,
        **options: Unpack[ReplyOptions],
    ) -> Self:
        """A stream of server-sent events, each in a piece of its own.

        Args:
            *events: A mapping becomes `data: <its JSON>` and an empty line; text and bytes are sent as they are.
            done: Whether `data: [DONE]` follows.
            status: The HTTP status code.
            **options: Other fields of the reply; `framing` is `chunked` if not given.
        """
        pieces = [*map(_event, events), *([b'data: [DONE]\n\n'] if done else [])]
        return cls(status=status, pieces=tuple(pieces), **_with_type('text/event-stream', options))

    @classmethod
    def raw(
        cls,
        data: bytes,
        status: int = 200,
        content_type: str = 'application/octet-stream',
        **options: Unpack[ReplyOptions],
    ) -> Self:
        """A body of any bytes, in one piece.

        Args:
            data: The body.
            status: The HTTP status code.
            content_type: The `Content-Type` header.
            **options: Other fields of the reply; `framing` is `length` if not given.
        """
        options = {'framing': 'length', **options}
        return cls(status=status, pieces=(data,), **_with_type(content_type, options))

    @classmethod
    def bare(cls, data: bytes = b'', *, ending: Ending = 'clean', delay: float = 0) -> Self:
        r"""An answer without any HTTP but what `data` holds; afterwards the connection closes.

        `Reply.bare()` hangs up without an answer, and `Reply.bare(b'HTTP/1.1 200 OK\r\nContent-')` in mid-head.

        Args:
            data: All bytes of the answer.
            ending: What follows them.
            delay: Seconds before the first byte.
        """
        return cls(pieces=(data,), framing='bare', ending=ending, delay=delay)

    @property
    def body(self) -> bytes:
        """All pieces in one."""
        return b''.join(self.pieces)

    @property
    def keeps_alive(self) -> bool:
        """Whether the connection can take another request after this reply."""
        return self.ending == 'clean' and self.framing in {'chunked', 'length'} and not _closes(self.headers)

    def cut(self, size: int | Sequence[int]) -> Self:
        """The same reply with the same bytes, cut elsewhere.

        Args:
            size: The number of bytes in a piece (the last may be shorter), or the offsets at which to cut.

        Raises:
            ValueError: If the size is not positive, or the offsets don't rise from 0 to the body's length.
        """
        body = self.body
        if isinstance(size, int):
            if size < 1:
                raise ValueError(f'a piece has at least one byte, not {size}')
            size = range(size, len(body), size)
        edges = [0, *size, len(body)]
        if any(start > end for start, end in pairwise(edges)):
            raise ValueError(f'offsets must rise from 0 to {len(body)}, not {list(size)}')
        return replace(self, pieces=tuple(body[start:end] for start, end in pairwise(edges)))

    def head(self, *, close: bool = False) -> bytes:
        """The bytes before the body.

        Args:
            close: Whether to announce that the connection closes afterwards.
        """
        if self.framing == 'bare':
            return b''
        lines = [f'HTTP/1.1 {self.status} {_phrase(self.status)}']
        lines += [f'{name}: {value}' for name, value in self.headers.items()]
        lines += self._framing_lines()
        if (close or self.framing == 'close') and not _has(self.headers, 'connection'):
            lines.append('Connection: close')
        return '\r\n'.join([*lines, '', '']).encode('latin-1')

    def framed(self) -> Iterator[bytes]:
        """The pieces as they are written, one write each."""
        for piece in filter(None, self.pieces):
            yield b'%x\r\n%b\r\n' % (len(piece), piece) if self.framing == 'chunked' else piece

    def tail(self) -> bytes:
        """The bytes that finish the body, if it is to be finished."""
        return b'0\r\n\r\n' if self.framing == 'chunked' and self.ending == 'clean' else b''

    def _framing_lines(self) -> list[str]:
        # RFC 9112, 6.3: a response with status 1xx, 204 or 304 has no body, whatever its headers say.
        if self.framing == 'close' or not has_body(self.status):
            return []
        if _has(self.headers, 'content-length') or _has(self.headers, 'transfer-encoding'):
            return []
        if self.framing == 'chunked':
            return ['Transfer-Encoding: chunked']
        missing = self.ending != 'clean'
        return [f'Content-Length: {len(self.body) + missing}']


def has_body(status: int) -> bool:
    """Whether a response with this status code carries a body."""
    return status >= HTTPStatus.OK and status not in {HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED}


def _dump(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def _event(event: Mapping[str, Any] | str | bytes) -> bytes:
    if isinstance(event, str):
        return event.encode()
    return event if isinstance(event, bytes) else b'data: %b\n\n' % _dump(event)


def _has(headers: Mapping[str, str], name: str) -> bool:
    return any(header.lower() == name for header in headers)


def _closes(headers: Mapping[str, str]) -> bool:
    return any(name.lower() == 'connection' and value.lower() == 'close' for name, value in headers.items())


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:  # a made-up status is still sent; its phrase may be empty (RFC 9112, 4)
        return ''


def _with_type(content_type: str, options: ReplyOptions) -> ReplyOptions:
    headers = options.get('headers') or {}
    own = {} if _has(headers, 'content-type') else {'Content-Type': content_type}
    return {**options, 'headers': {**own, **headers}}
