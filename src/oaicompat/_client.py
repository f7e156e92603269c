"""The client: questions beside pydantic-ai's own requests, bodies made over on their way out, its values and errors.

By the SDK's public methods alone; `_sdk.py` knows its internals.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from openai import (
    APIStatusError,
    APITimeoutError,
    AsyncOpenAI,
    AsyncStream,
    NotGiven,
    Omit,
    OpenAIError,
    Timeout,
)
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response
from pydantic import ValidationError
from typing_extensions import override

from oaicompat._sdk import is_sdks_own, post_content, sends_content

if TYPE_CHECKING:
    from oaicompat._mapped import Sending
    from oaicompat._unchanged import Memory

_ASKING_TIMEOUT = 10.0
"""Seconds to wait for an answer that takes no inference."""


Adapt = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Makes of the JSON body of a request the one to send; the body itself where nothing changes."""

Remembers = Callable[[], 'Memory']
"""Gives the memory of a model; most requests do without."""

_OPTIONS = ('extra_headers', 'extra_query', 'timeout')  # of the SDK's `create` methods; in no body
# What makes up most of a body goes as `extra_body`: the SDK walks through all else, which is most of the work on a
# request with a long history, and leaves these as they are.
_READ = ('model', 'stream')  # by the SDK itself
_LONG = ('messages', 'input', 'tools')
_ASKED = {'messages'}  # of these, what its method asks for


class _Adapted:
    """`inner`, of which each `create` sends the body that `adapt` makes; everything else is `inner`'s own.

    Stands for a client, and for the resources that lead from there to `create`.
    """

    def __init__(self, inner: Any, adapt: Adapt | None, sending: Sending | None, memory: Remembers, raw: bool) -> None:
        self._inner, self._adapt, self._sending, self._memory, self._raw = inner, adapt, sending, memory, raw

    @property  # type: ignore[misc]
    @override
    def __class__(self) -> type[Any]:  # pydantic-ai asks whether it is Azure's
        kind: type[Any] = type(self._inner)
        return kind

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        return self._around(value) if name in ('chat', 'completions', 'responses') else value

    def with_options(self, **options: Any) -> Any:
        return self._around(self._inner.with_options(**options))

    def _around(self, inner: Any) -> _Adapted:
        return _Adapted(inner, self._adapt, self._sending, self._memory, self._raw)

    async def create(self, **arguments: Any) -> Any:
        create, walks = self._inner.create, is_sdks_own(self._inner)
        options = {key: arguments.pop(key) for key in _OPTIONS if key in arguments}
        named = {key: arguments[key] for key in _READ if key in arguments}
        extra = arguments.pop('extra_body', None) or {}
        body = {key: value for key, value in arguments.items() if not isinstance(value, Omit | NotGiven)} | extra
        adapted = self._adapt(body) if self._adapt is not None else body
        if walks and (content := self._content(adapted, options.get('extra_headers'))) is not None:
            return await post_content(self._inner, content, self._raw, {**named, **options})
        if self._sending is not None and adapted is body:
            given = arguments['messages']
            arguments = {**arguments, 'messages': self._sending.whole(given)}
            if body['messages'] is given:  # and not of the `extra_body`
                body = {**body, 'messages': arguments['messages']}
            adapted = body
        if adapted is body and not walks:
            return await create(**arguments, **options, extra_body=extra or None)
        kept = arguments if adapted is body else named
        named = {key: value for key, value in kept.items() if key not in _LONG}
        rest = {key: value for key, value in adapted.items() if key not in named or value is not named[key]}
        asked = {key: Omit() if walks else rest.pop(key) for key in _ASKED if key in rest}
        return await create(**named, **asked, **options, extra_body=rest)

    def _content(self, body: Mapping[str, Any], headers: object) -> bytes | None:
        """The JSON of a body, where it can be sent as such and holds nothing that the SDK has to make JSON of."""
        messages = body.get('messages')
        if type(messages) is not list or not sends_content(self._inner, headers):
            return None
        try:
            pieces = self._sending.write(messages, _written) if self._sending else [_written(messages)[1:-1]]
            others = {key: value for key, value in body.items() if key != 'messages'}
            rest = self._memory().written(others, _written) if 'tools' in others else _written(others)
        except (TypeError, ValueError, RecursionError):
            return None  # the SDK says what is wrong with it
        if not pieces or not pieces[0] or len(rest) <= _EMPTY:
            return None
        pieces[0] = b'{"messages":[' + pieces[0]
        return b','.join([*pieces[:-1], pieces[-1] + b'],' + rest[1:]])


def _written(value: object) -> bytes:
    return _ENCODER.encode(value).encode()


# As the SDK writes bodies.
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(',', ':'), allow_nan=False)
_EMPTY = len('{}')


def adapting(
    client: AsyncOpenAI, adapt: Adapt | None, sending: Sending | None, memory: Remembers, *, raw: bool
) -> AsyncOpenAI:
    """`client`, with every body that its `create` methods send made over by `adapt`, if there is one.

    Args:
        client: The client.
        adapt: Makes bodies over.
        sending: What the messages of the request under way were mapped to before.
        memory: Gives what was written before.
        raw: Whether an answer may be given as its JSON value.
    """
    return cast(AsyncOpenAI, _Adapted(client, adapt, sending, memory, raw))


class Asked(NamedTuple):
    """What a server answered to a question beside the API.

    Attributes:
        value: The JSON value, or `None` where there was none.
        final: Whether asking again would give the same.
    """

    value: object
    final: bool


_SETTLED = frozenset({400, 404, 405, 410, 500, 501})  # 500: the template itself failed


async def post_json(
    client: AsyncOpenAI, url: str, body: Mapping[str, Any], settings: Mapping[str, Any] | None = None
) -> Asked:
    """What `url` answers to `body`; no retries, no exceptions.

    Args:
        client: Whose credentials and connections to use.
        url: An absolute URL on the client's own server.
        body: Sent as JSON.
        settings: The model settings of the request at hand: its headers go along, its timeout holds.
    """
    settings = settings or {}
    given = settings.get('timeout')
    seconds = min(_ASKING_TIMEOUT, given) if isinstance(given, int | float) else _ASKING_TIMEOUT
    options: Any = {'max_retries': 0, 'timeout': seconds, 'headers': settings.get('extra_headers') or {}}
    try:
        return Asked(await client.post(url, cast_to=object, body=body, options=options), final=True)
    except APITimeoutError:
        return Asked(None, final=True)  # a template takes no time: nobody is going to answer
    except APIStatusError as error:
        return Asked(None, final=error.status_code in _SETTLED)
    except (OpenAIError, ValueError) as error:
        return Asked(None, final=isinstance(error, ValueError))


def error_body(error: BaseException | None) -> dict[str, Any]:
    """The body of an error, which may be no JSON."""
    response = cast(APIStatusError, error).response
    try:
        body = response.json()
    except ValueError:
        body = response.text
    return body if isinstance(body, dict) else {'error': {'message': body}}


def as_stream(body: Mapping[str, Any], error: BaseException | None, client: AsyncOpenAI) -> AsyncStream[Any]:
    """`body`, which came with `error`, as the one event of a stream."""
    refused, data = cast(APIStatusError, error).response, f'data: {json.dumps(body)}\n\n'
    headers = {'content-type': 'text/event-stream'}
    response = type(refused)(200, headers=headers, content=data.encode(), request=refused.request)
    return AsyncStream(cast_to=ChatCompletionChunk, response=response, client=client)


def as_completion(body: Mapping[str, Any]) -> ChatCompletion:
    """`body` as the SDK makes a completion of a response, without validation."""
    return ChatCompletion.construct(**body)


def typed_completion(body: Mapping[str, Any]) -> ChatCompletion:
    """`body` as a completion, by validation where it passes, which is faster and makes the same of it."""
    try:
        return ChatCompletion.model_validate(body)
    except ValidationError:
        return as_completion(body)


def as_response(body: Mapping[str, Any]) -> Response:
    """`body` as the SDK makes a response of the Responses API, without validation."""
    return Response.construct(**body)


_LEAST = 6  # letters of a key; what local servers are given in place of one may be a word


def body_of(error: BaseException) -> object:
    """The whole body that `error` came with, as JSON or as text, without the key that a server may echo.

    The SDK keeps of an object no more than what is under `error`, and there some have but a title, a flag or a code.
    """
    from oaicompat._complaints import masked

    cause = error if hasattr(error, 'response') else error.__cause__
    headers: Mapping[str, str] = getattr(getattr(cause, 'request', None), 'headers', {})
    given = (headers.get(name, '').split(' ')[-1] for name in ('authorization', 'api-key', 'x-api-key'))
    secrets = [one for one in given if len(one) >= _LEAST]
    try:
        text = masked(cast(Any, cause).response.text, secrets)
    except (AttributeError, RuntimeError):  # no answer, or one that was not read
        return _masked(getattr(error, 'body', None), secrets)
    try:
        return cast(object, json.loads(text))
    except (ValueError, RecursionError):
        return text


def _masked(body: object, secrets: Collection[str]) -> object:
    from oaicompat._complaints import masked

    try:
        return cast(object, json.loads(masked(json.dumps(body), secrets)))
    except (ValueError, TypeError, RecursionError):
        return body


def headers_of(stream: object) -> Mapping[str, str]:
    """The headers of the answer that a stream is read from, or of one that is wrapped."""
    response = getattr(getattr(stream, 'source', stream), 'response', None)
    headers: Mapping[str, str] = getattr(response, 'headers', {})
    return headers


def is_connecting(error: BaseException) -> bool:
    """Whether `error` is that no connection was made in time."""
    cause = error.__cause__
    return isinstance(cause, APITimeoutError) and type(cause.__cause__).__name__ == 'ConnectTimeout'


def request_timeout(connect: float, read: float) -> Timeout:
    """Limits in seconds: for a connection, and for each read or write."""
    return Timeout(read, connect=connect)
