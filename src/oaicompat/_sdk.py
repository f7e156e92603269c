"""The SDK's seams: the only file that touches internals of the `openai` package.

`isolate()` makes a client forget what the SDK took from `OPENAI_*` variables, for every host but the one those
variables are meant for. `add_defaults()` sets headers and query parameters that providers have no argument for.
`sent_body()` reads the request back from an error, `record_bodies()` shows what goes out, and `RepairedStream` reads
a stream in place of the SDK.
"""

from __future__ import annotations

import json
import os
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Hashable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing, contextmanager
from copy import copy
from functools import cache
from inspect import signature
from itertools import islice
from operator import is_
from pathlib import Path
from time import monotonic
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Protocol, Self, cast

import httpx2
import openai
from anyio.lowlevel import checkpoint
from openai import (
    APIConnectionError,
    APIError,
    APITimeoutError,
    AsyncOpenAI,
    AsyncStream,
    NotGiven,
    Omit,
)
from openai._constants import RAW_RESPONSE_HEADER
from openai._response import AsyncAPIResponse
from openai._streaming_cleanup import drain_response_async
from typing_extensions import override

from oaicompat._envelope import STRICT, FailureError, IncompleteError
from oaicompat._short import Item, Shortener, Shortens
from oaicompat._sse import DONE, ErrorText, Event, EventDecoder, EventTooLargeError, NoJson, read_values

if TYPE_CHECKING:
    from oaicompat._strict import Check

# What AsyncOpenAI fills from the environment where its caller gave none: arguments and attributes by these names.
# https://github.com/openai/openai-python/blob/main/src/openai/_client.py
_AMBIENT = ('organization', 'project', 'admin_api_key', 'webhook_secret')

_QUOTED = 200
_AT_ONCE = 32  # items, before others may run or cancel


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
    request = getattr(error.__cause__, 'request', None)
    try:
        body = json.loads(request.content) if request is not None else None
    except ValueError:
        return None
    return body if isinstance(body, dict) else None


def watch(client: AsyncOpenAI, see: Callable[[Any], Awaitable[None]]) -> None:
    """Let `see` have each response that the HTTP client of `client` gets, before the SDK does.

    Others may use the same HTTP client: `see` has to know whose response it is.
    """
    hooks = client._client.event_hooks
    if see not in hooks['response']:
        client._client.event_hooks = {**hooks, 'response': [*hooks['response'], see]}


def retry_never(response: Any) -> None:
    """Let the SDK send nothing again after `response`, whatever its status."""
    response.headers['x-should-retry'] = 'false'


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


def is_sdks_own(resource: Any) -> bool:
    """Whether all that is between a resource and the wire is the SDK's own, and nobody's who reads what it is given."""
    client, post = getattr(resource, '_client', None), getattr(resource, '_post', None)
    if client is None or type(post) is not MethodType or post.__self__ is not client:
        return False
    own = {*getattr(resource, '__dict__', ()), *getattr(client, '__dict__', ())}
    if 'create' in own or not own.isdisjoint(_READERS):
        return False
    kinds = type(resource), type(client)
    now = [getattr(kinds[0], 'create', None), post.__func__, AsyncAPIResponse.parse]
    now += [vars(base)[name] for base in kinds[1].__mro__ for name in _READERS if name in vars(base)]
    last = _VERIFIED.get(kinds, ())
    if len(last) != len(now) or not all(map(is_, now, last)):
        if not all(map(_is_sdks, now)):
            return False
        _VERIFIED[kinds] = now
    return True


_VERIFIED: dict[tuple[type[Any], type[Any]], list[object]] = {}
_READERS = (
    *('post', 'request', '_prepare_options', '_build_request', '_build_headers'),
    *('_process_response', '_process_response_data'),
)
"""The methods of a client that are given a body, or what answers it."""


def _is_sdks(method: object) -> bool:
    """Whether a function is the SDK's own; proxies pass for what they hold."""
    return type(method) is FunctionType and method.__code__.co_filename.startswith(_SDK)


_SDK = (str(Path(openai.__file__).parent), __file__)  # and its clients as they are isolated


def sends_content(resource: Any, headers: object) -> bool:
    """Whether a resource sends a body as it is given, and reads nothing of it: Azure's clients look for the model.

    Args:
        resource: One that `is_sdks_own()`.
        headers: Those of the request; some ask for another form of the body or of its answer.
    """
    client = resource._client
    plain = type(client) is AsyncOpenAI or type(client) is _isolated(cast(Hashable, AsyncOpenAI))
    return plain and _takes_content() and _are_plain(client._custom_headers) and _are_plain(headers or {})


def _are_plain(headers: object) -> bool:
    return isinstance(headers, Mapping) and not any(str(name).lower() in _TELLING for name in headers)


_TELLING = ('content-type', RAW_RESPONSE_HEADER.lower())


@cache
def _takes_content() -> bool:
    return 'content' in signature(AsyncOpenAI.post).parameters


async def post_content(resource: Any, content: bytes, raw: bool, arguments: Mapping[str, Any]) -> Any:
    """What `resource.create()` would give for `arguments`, with `content` for a body; if it `sends_content`.

    Args:
        resource: A resource whose `create()` posts.
        content: The JSON of the body.
        raw: Whether an answer that is no stream may be its JSON value.
        arguments: Those of `create()` that are not in the body, and `model` and `stream`.
    """
    how = await _posting(resource, stream=bool(arguments.get('stream')))
    if how is None:
        post, sender = resource._post, copy(resource)

        async def send(path: str, *, body: object, **options: Any) -> Any:
            return await post(path, content=content, **options)

        sender._post = send
        return await sender.create(**arguments, messages=Omit())
    options = dict(how.options)
    for name, option in _EXTRA.items():
        given = arguments.get(name)
        if (given is not None and not isinstance(given, NotGiven)) or (name == 'timeout' and name in arguments):
            options[option] = given
    raw = raw and not arguments.get('stream') and not resource._client._strict_response_validation
    given = {**how.arguments, 'cast_to': httpx2.Response} if raw else how.arguments
    answer = await resource._post(how.path, content=content, options=options, **given)
    return _value_of(answer) if raw else answer


_EXTRA = {'extra_headers': 'headers', 'extra_query': 'params', 'timeout': 'timeout'}


class _Posting(NamedTuple):
    path: str
    options: Mapping[str, Any]
    arguments: Mapping[str, Any]


_POSTINGS: dict[tuple[Any, bool], _Posting | None] = {}


async def _posting(resource: Any, *, stream: bool) -> _Posting | None:
    """How `create()` posts, by what it posts of made-up arguments; `None` if that is not to be told."""
    key = resource.create.__func__, stream
    if key not in _POSTINGS:
        _POSTINGS[key] = await _told_posting(resource, stream)
    return _POSTINGS[key]


async def _told_posting(resource: Any, stream: bool) -> _Posting | None:
    told: list[Any] = []

    async def record(path: str, **given: Any) -> None:
        told.append((path, given))

    sender, marks = copy(resource), {name: {name: name} for name in _EXTRA}
    sender._post = record
    try:
        await sender.create(model='', messages=[], stream=stream, **marks)
        [(path, given)] = told
        options, body = given.pop('options'), given.pop('body')
        passed = {name: options.pop(option) for name, option in _EXTRA.items()}
    except Exception:  # whatever it is, it is not what was expected
        return None
    return (
        _Posting(path, options, given) if passed == marks and body.keys() <= {'model', 'messages', 'stream'} else None
    )


def _value_of(response: Any) -> Any:
    """The JSON value of an answer, or its text, as the SDK reads it for its models."""
    kind = response.headers.get('content-type', '*').split(';')[0]
    if kind.endswith('json'):
        try:
            return response.json()
        except UnicodeDecodeError as error:
            cast(Any, error).charset = response.charset_encoding
            raise
    try:
        return response.json()
    except ValueError:
        return response.text


class Repair(Protocol):
    """What repairs the values of one stream; `ChunkRepair` and `EventRepair` do."""

    repairs: set[str]

    @property
    def finished(self) -> bool:
        """Whether the answer is whole."""

    def feed(self, value: dict[str, Any], /) -> list[dict[str, Any]]:
        """The values that one becomes."""

    def finish(self, *, dropped: bool) -> list[dict[str, Any]]:
        """What is still held."""


def is_readable(stream: AsyncStream[Any]) -> bool:
    """Whether a stream of the SDK's is what `RepairedStream` takes over: else it stays the SDK's, unrepaired."""
    events = AsyncStream._iter_events
    return _is_sdks(events) and set(events.__code__.co_names) == _EVENTS and vars(stream).keys() >= _TAKEN


_TAKEN = {'response', '_cast_to', '_client', '_options'}
_EVENTS = {
    *('APIConnectionError', 'APITimeoutError', '_decoder', 'aiter_bytes', 'request', 'request_exceptions', 'response'),
    'timeout_exceptions',
}


class RepairedStream(AsyncStream[Any]):
    """The chunks or events of a stream, read and repaired by us, over the SDK's response.

    Attributes:
        repairs: Names of the repairs made so far.
        adapted: Names of the adaptations that made the server take the request.
        on_end: Called when the stream ends, whole or not.
    """

    def __init__(
        self,
        stream: AsyncStream[Any],
        repair: Repair,
        *,
        strict: Check | None = None,
        typed: bool = False,
        hint: str = '',
        idle: float | None = None,
    ) -> None:
        """Take over `stream`.

        Args:
            stream: The SDK's stream, nothing read of it yet.
            repair: What repairs its values.
            strict: Says where a value deviates; then nothing is repaired, and the first deviation is an error.
            typed: Whether an event's type stands in for a type of its data's own.
            hint: What it may mean when there is a web page in place of a stream.
            idle: Seconds that may pass without an event; a comment is none.
        """
        self._hint, self._idle = hint, idle
        self.on_end: list[Callable[[], None]] = []
        self.adapted: Collection[str] = ()
        self._typed = typed
        # Not the parent's: it would make a second iterator over the same response.
        self.response = stream.response
        self._cast_to = stream._cast_to
        self._client = stream._client
        self._options = stream._options
        self.repairs = repair.repairs
        self._make = stream._client._process_response_data
        self._repair = repair
        self._strict = strict
        self._seen = self._announced = self._ended = False
        self._heard = False  # an event, in what was read last
        self._count = 0  # of the values that were checked
        self._events = EventDecoder(repair.repairs)
        may_be = strict is None and isinstance(repair, Shortens) and not stream._client._strict_response_validation
        self._shortener = Shortener(cast(Shortens, repair)) if may_be else None
        self._decoder = cast(Any, self)
        self._ahead: list[Item] = []
        self._fault: Exception | None = None
        self._reader = self._read()
        self._iterator = self.__stream__()

    @property
    def all_repairs(self) -> set[str]:
        """What was repaired and what was adapted."""
        return {*self.repairs, *self.adapted}

    def aiter_bytes(self, source: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """`source` itself: `_iter_events()` asks its decoder for events, and gets the bytes to read."""
        return source

    async def collect(self) -> list[dict[str, Any]]:
        """All chunks at once, as JSON objects.

        Raises:
            FailureError: If one of them is an error, or there are none.
            IncompleteError: If the stream ended inside of a call.
            APIConnectionError: If the connection broke.
        """
        try:
            return [cast(dict[str, Any], chunk) async for chunks in self._read() for chunk in chunks]
        finally:
            await self.response.aclose()

    async def begin(self) -> FailureError | None:
        """Read up to the first chunk; gives the error that stands in its place, if one does."""
        try:
            self._ahead = await anext(self._reader)
        except StopAsyncIteration:
            pass
        except FailureError as failure:
            self._fault = failure
            return failure
        except Exception as error:
            self._fault = error  # for who reads on
        return None

    @override
    async def __stream__(self) -> AsyncIterator[Any]:
        async for chunk in self._each():
            yield self.made(chunk)

    async def _each(self) -> AsyncIterator[Item]:
        try:
            with self._errors():
                if self._fault is not None:
                    raise self._fault
                # What was read and not yielded stays for `rest()`.
                items: list[Item] | None = self._ahead
                while items is not None:
                    self._ahead = items
                    while self._ahead:
                        yield self._ahead.pop(0)
                    items = await anext(self._reader, None)
        finally:
            await self._leave()

    async def rest(self) -> AsyncGenerator[list[Item]]:
        """What is left, as much at a time as was read, in place of this iterator.

        An item is a chunk as a JSON object, whose model `made()` makes, or what is new in one that is else like the one
        before.
        """
        if self._shortener is not None:
            self._shortener.on = True
        try:
            ahead, self._ahead = self._ahead, []
            if ahead:
                yield ahead
            with self._errors():
                async for items in self._reader:
                    yield items
        finally:
            await self._leave()

    def made(self, chunk: Any) -> Any:
        """The model of a chunk; a model is one already."""
        if not isinstance(chunk, dict):
            return chunk
        return self._make(data=chunk, cast_to=self._cast_to, response=self.response)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """The SDK's errors for ours."""
        try:
            yield
        except FailureError as failure:
            raise self._api_error(failure.message, failure.body, failure.status) from failure
        except IncompleteError as error:
            raise APIConnectionError(message=str(error), request=self.response.request) from error
        except EventTooLargeError as error:
            raise self._api_error(str(error), None, None) from error

    async def _leave(self) -> None:
        if not self._ended:
            self._ended = True
            for call in self.on_end:
                call()
        await self.response.aclose()

    async def _read(self) -> AsyncIterator[list[Item]]:
        """Bytes to events to values to repaired chunks, as they are read."""
        heard, unshared = monotonic(), 0
        try:
            async with aclosing(self._bytes()) as source:
                async for data in source:
                    self._heard = False
                    for items in _slices(self._items(data)):
                        yield items
                        unshared += len(items)
                        if unshared >= _AT_ONCE:  # what is there already is read without waiting for anything
                            unshared = 0
                            await checkpoint()
                    heard = self._check_idle(heard, event=self._heard)
                    if self._announced:
                        await self._drain()
                        break
        except APIConnectionError as error:
            self._explain(error)
            # The answer was whole already: what is lost is the end of the transport alone.
            if not self._repair.finished:
                raise
            self.repairs.add('sse.dropped')
        for items in self._last():
            yield items
        if self._strict is not None:
            self._check_end()

    def _last(self) -> Iterator[list[Item]]:
        """What the end of the stream releases."""
        if not self._seen:
            raise self._nothing()
        self._check_ignored(self._announced)
        return _slices(iter(self._repair.finish(dropped='sse.dropped' in self.repairs)))

    def _items(self, data: bytes) -> Iterator[Item]:
        """What arrived: chunks, and where it may be short, short; nothing stands for the end."""
        shortener = self._shortener
        if shortener is None:
            yield from self._chunks(self._events.feed(data) if data else self._events.finish(), ending=not data)
            return
        for event in shortener.events(data):
            if (short := shortener.short(event)) is not None:
                self._heard = True
                yield from short
                continue
            yield from self._chunks(self._events.feed(event), ending=False, raw=event)
            shortener.idle = self._events.idle
            if self._announced:
                return
        if not data:
            yield from self._chunks(self._events.finish(), ending=True)

    def _chunks(self, events: list[Event], *, ending: bool, raw: bytes = b'') -> Iterator[Item]:
        """The repaired chunks in some events, whose bytes are `raw`."""
        read = self._shortener.read if self._shortener is not None else self._whole
        for number, event in enumerate(events):
            values = read_values(event, self.repairs)
            if self._strict is not None:
                self._check_event(event, values, last=number + 1 == len(events))
            for value in values:
                self._seen = self._heard = True
                if value is DONE:
                    self._announced = True
                    return
                if type(value) is not dict or self._typed:
                    fed = self._fed(value, event, ending=ending)
                elif 'error' in value and self._repair.finished:
                    self.repairs.add('sse.trailing')
                    continue
                else:
                    fed = read(raw, value)
                if self._strict is not None:
                    self._check(value)
                yield from fed

    async def _bytes(self) -> AsyncGenerator[bytes]:
        """What arrives, then nothing once, as a sign of the end; what httpx raises becomes the SDK's errors."""
        async with aclosing(cast(AsyncGenerator[Any], self._iter_events())) as events:
            async for data in events:
                yield data
        yield b''

    def _whole(self, _: bytes, value: dict[str, Any]) -> list[Item]:
        return [*self._repair.feed(value)]

    def _fed(self, value: object, event: Event, *, ending: bool) -> Sequence[Item]:
        if isinstance(value, ErrorText):
            if self._repair.finished:
                self.repairs.add('sse.trailing')
                return []
            if ending and value.lstrip()[:1] in ('{', '['):
                raise IncompleteError('the stream ended inside of an event')
        return self._repair.feed(self._as_object(value, event))

    def _check_ignored(self, announced: bool) -> None:
        """Text that is no event is harmless where the answer is whole; where it is not, it may say why."""
        text = ' '.join(self._events.ignored.split())[:200]
        if text and not announced and not self._repair.finished:
            raise FailureError(f'the stream ended with {text!r}', None)

    def _check_idle(self, heard: float, *, event: bool) -> float:
        """When the last event came; too long ago is an error, whatever else keeps the connection busy."""
        now = monotonic()
        if event or self._idle is None:
            return now
        if now - heard > self._idle:
            raise APITimeoutError(request=self.response.request)
        return heard

    def _explain(self, error: APIConnectionError) -> None:
        if not isinstance(error, APITimeoutError):
            error.message = 'the connection broke before the answer was whole'
        elif self._idle is not None:
            error.message = f'no event within {self._idle:g} s (knob: compat_idle_timeout)'

    async def _drain(self) -> None:
        # HTTP/1.1 uses a connection again only when its body was read to the end.
        if self.response.http_version == 'HTTP/1.1':
            await drain_response_async(self.response)

    def _as_object(self, value: object, event: Event) -> dict[str, Any]:
        if isinstance(value, ErrorText):
            told = value.complaint if isinstance(value, NoJson) else str(value)
            raise FailureError(told, {'message': told})
        if not isinstance(value, dict):
            raise FailureError(f'expected a JSON object in the stream, got {json.dumps(value)[:200]}', None)
        return {'type': event.type, **value} if self._typed and event.type and 'type' not in value else value

    def _check(self, value: object) -> None:
        """Raise where `value` deviates, by itself or by what had to be repaired."""
        from oaicompat._strict import repaired_fault

        self._count += 1
        kind = self.response.headers.get('content-type', '')
        if not kind.lower().startswith('text/event-stream'):
            self._deviate(f'the content type is {kind!r}; expected `text/event-stream`')
        fault = self._strict(value) if self._strict is not None and isinstance(value, dict) else None
        if (fault := fault or repaired_fault(self.repairs)) is not None:
            self._deviate(f'event {self._count}: {fault}, in {json.dumps(value, ensure_ascii=False)[:_QUOTED]}')

    def _check_event(self, event: Event, values: list[Any], *, last: bool) -> None:
        said = event.data.strip()
        if DONE in values and (said != '[DONE]' or not last):
            self._deviate(f'expected nothing behind `[DONE]` and got {said[len("[DONE]") :].strip()[:_QUOTED]!r}')
        if not values:
            self._deviate(f'expected a JSON object in each event and got {said[:_QUOTED]!r}')

    def _check_end(self) -> None:
        from oaicompat._strict import repaired_fault

        if not self._repair.finished:
            self._deviate('the stream ended without ' + ('a last event' if self._typed else 'a finish reason'))
        if not self._announced and not self._typed:
            self._deviate('the stream ended without `[DONE]`')
        if (fault := repaired_fault(self.repairs)) is not None:
            self._deviate(f'at the end of the stream: {fault}')

    def _deviate(self, fault: str) -> NoReturn:
        raise self._api_error(f'{STRICT}{fault}', None, None)

    def _api_error(self, message: str, body: object, status: int | None) -> APIError:
        fields = dict(body) if isinstance(body, Mapping) else {'message': message}
        if status is not None:
            fields['code'] = status
        return APIError(message, self.response.request, body=fields)

    def _nothing(self) -> FailureError:
        kind = self.response.headers.get('content-type', 'no content type')
        start = ' '.join(self._events.ignored.split())[:200]
        message = f'expected an event stream and got none ({kind}): {start!r}'
        if not start.startswith('<'):
            return FailureError(message, None)
        return FailureError(f'{message}; {self._hint}', {'message': message, 'type': 'page'})


def _slices(items: Iterator[Item]) -> Iterator[list[Item]]:
    """Items, some at a time, since many may arrive at once; what is in front of an error comes before it."""
    more = True
    while more:
        taken: list[Item] = []
        try:
            taken.extend(islice(items, _AT_ONCE))
        finally:
            more = len(taken) == _AT_ONCE
            if taken:
                yield taken


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

        def _prepare_url(self, url: str) -> Any:
            # The same few paths, each time; a URL can't be changed.
            prepared = self.__dict__.setdefault('_prepared', {})
            base, known = prepared.get(url, (None, None))
            if known is None or base is not self._base_url:
                base, known = prepared[url] = self._base_url, super()._prepare_url(url)
            return known

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
