"""Answers: what came back for one request, repaired, or the error that it is.

Between the SDK's objects and the pure repairs: `Answer` takes what the parent's request gives and returns what the
parent expects. Timeouts are set here, too. Overrides nothing.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Set
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

from openai import APIConnectionError, APIError, AsyncOpenAI, AsyncStream
from openai.types.chat import ChatCompletion
from openai.types.responses import Response
from opentelemetry import trace
from pydantic_ai import _model_errors
from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelConnectionError,
    ModelHTTPError,
    ModelTimeoutError,
)
from pydantic_ai.models import ModelRequestParameters

from oaicompat._client import (
    as_completion,
    as_response,
    as_stream,
    error_body,
    is_connecting,
    request_timeout,
    typed_completion,
)
from oaicompat._context import Context
from oaicompat._endpoint import Endpoint, Profile
from oaicompat._envelope import STRICT, FailureError, IncompleteError
from oaicompat._keys import CARRIED
from oaicompat._mapping import tags_of
from oaicompat._offer import Offer
from oaicompat._offers import holds_call, offer_of, schemas_of
from oaicompat._plain import is_plain
from oaicompat._repair import ChunkRepair
from oaicompat._sdk import Repair, RepairedStream, is_readable, retry_never
from oaicompat._timing import now, until
from oaicompat.errors import explained, is_hopeless, wrong_url
from oaicompat.profile import Pin, current_pin

logger = logging.getLogger('oaicompat')


@dataclass(frozen=True)
class Answer:
    """One request's answer, to be repaired.

    Attributes:
        endpoint: Where the request went.
        pin: The profile that it was made with, what was adapted, and what came.
        settings: Its settings.
        parameters: Its parameters; the offered tools are among them.
        responses: Whether it went to `/responses`.
        details: Whether `reasoning_details` are ours to read.
        own_client: Whether the client is ours, and not the caller's.
        client: The client that the request was made with.
        began: When the first try of the call began, in the event loop's time.
    """

    endpoint: Endpoint
    pin: Pin
    settings: Mapping[str, Any]
    parameters: ModelRequestParameters
    responses: bool = False
    details: bool = True
    own_client: bool = True
    client: AsyncOpenAI | None = None
    began: float = field(default_factory=now)

    @property
    def profile(self) -> Profile:
        """The profile that the request was made with."""
        return self.pin.profile

    @property
    def adapted(self) -> Set[str]:
        """Names of the adaptations that made the server take it."""
        return self.pin.fired

    @property
    def _limits(self) -> bool:
        """Whether our timeouts hold: the caller's own, and those of a client of the caller's, win."""
        return self.own_client and self.settings.get('timeout') is None

    @asynccontextmanager
    async def deadline(self, *, stream: bool, streamed: bool) -> AsyncIterator[Any]:
        """The settings to send with: with our timeouts, where neither the caller nor the caller's client has any.

        A limit on connecting and on each read, since a stream that is silent for longer has stalled; and one on the
        whole of an answer that does not stream, retries included.

        Raises:
            ModelTimeoutError: If that takes longer.
        """
        if not self._limits:
            yield self.settings
            return
        connect = self.profile.get('compat_connect_timeout', _CONNECT)
        seconds = self.profile.get('compat_unary_timeout', _PATIENCE)
        timed = {**self.settings, 'timeout': request_timeout(connect, self._idle if streamed else seconds)}
        try:
            # All tries of one call together.
            async with nullcontext() if stream else until(self.began + seconds):
                yield timed
        except ModelTimeoutError as error:
            knob, limit = ('connect', connect) if is_connecting(error) else ('idle', self._idle)
            if knob == 'connect' or streamed:
                error.message = f'no {_MISSING[knob]} within {limit:g} s (knob: compat_{knob}_timeout)'
            raise
        except TimeoutError as error:
            message = f'no answer within {seconds:g} s (knob: compat_unary_timeout)'
            raise ModelTimeoutError(self.endpoint.model, message) from error

    @property
    def _idle(self) -> float:
        seconds: float = self.profile.get('compat_idle_timeout', _PATIENCE)
        return seconds

    async def repaired(self, answer: Awaitable[Any], *, stream: bool) -> Any:
        """What the parent goes on with: a stream, a completion, or a response that is finished already.

        Raises:
            ModelAPIError: If the answer is an error, or none at all.
        """
        if self.profile.get('compat_repair') == 'off':
            return await answer
        try:
            came = await answer
        except ModelAPIError as error:
            # The SDK could not read the body as JSON; the decoder's error still has it.
            cause = error.__cause__
            if self.client is not None and self._is_rejected(error):
                body = error_body(cause)
                told = as_stream(body, cause, self.client)
                return await self.repaired(_done(told), stream=True) if stream else self._completion(body)
            bytes_ = cause.object if isinstance(cause, UnicodeDecodeError) else None
            document = getattr(cause, 'doc', None) if bytes_ is None else self._text(bytes_, cause)
            if stream or not isinstance(document, str):
                raise
            return self._completion(document, {'sse.invalid_utf8'} if bytes_ is not None else set())
        if isinstance(came, AsyncStream):
            return await self._streamed(came, stream=stream)
        if came is None or isinstance(came, list | int | float):
            came = json.dumps(came, default=lambda value: value.model_dump(exclude_unset=True, warnings=False))
        return self._completion(came) if isinstance(came, dict | ChatCompletion | Response | str) else came

    async def _streamed(self, came: AsyncStream[Any], *, stream: bool) -> Any:
        if stream and not is_readable(came):
            logger.warning('this openai package streams in a way that oaicompat does not know: nothing is repaired')
            return came
        strict = self._check if self._strict else None
        idle = self._idle if self._limits else None
        repaired = RepairedStream(
            came, self._repair, strict=strict, typed=self.responses, hint=wrong_url(self.endpoint), idle=idle
        )
        if not stream:
            return await self._folded(repaired)
        if (failure := await repaired.begin()) is not None:
            await repaired.close()
            raise self._error(failure, None, in_stream=True)
        repaired.adapted = self.adapted
        repaired.on_end.append(lambda: self._learn(repaired.repairs))
        return repaired

    @property
    def _repair(self) -> Repair:
        if not self.responses:
            return ChunkRepair(self._context)
        from oaicompat._response_events import EventRepair

        return EventRepair(self._context)

    @property
    def _check(self) -> Callable[[Mapping[str, Any]], str | None]:
        from oaicompat._strict import chunk_fault, event_fault

        return event_fault if self.responses else chunk_fault

    @property
    def _whole(self) -> Callable[[dict[str, Any], Context, set[str]], dict[str, Any]]:
        if not self.responses:
            return _repaired
        from oaicompat._responses import repair_response

        return repair_response

    def _is_rejected(self, error: ModelAPIError) -> bool:
        """Whether the error holds what the model wrote, and a call in it."""
        if self._strict or not isinstance(error, ModelHTTPError):
            return False
        from oaicompat._recovery import rejected_text

        return rejected_text(error.body, self._offer) is not None

    def _text(self, body: bytes, error: object) -> str:
        """A body that is no UTF-8: by the charset that the server told, if it fits."""
        charset = getattr(error, 'charset', None) or getattr(self.pin.response, 'charset_encoding', None)
        try:
            return body.decode(charset or 'utf-8')
        except (LookupError, ValueError):
            return body.decode('utf-8', 'replace')

    def _completion(
        self, came: dict[str, Any] | ChatCompletion | Response | str, repairs: set[str] | None = None
    ) -> Any:
        repairs = set() if repairs is None else repairs
        try:
            wire = self._wire(came)
            body, context = self._body(wire, repairs)
            fixed = self._whole(body, context, repairs)
        except FailureError as failure:
            raise self._error(failure, came)  # noqa: B904  # it has its cause
        except IncompleteError as cut:
            raise explained(ModelConnectionError(self.endpoint.model, str(cut)), self.endpoint) from cut
        if self._strict and (fault := self._deviation(wire, body, repairs)) is not None:
            raise explained(ModelAPIError(self.endpoint.model, f'{STRICT}{fault}'), self.endpoint)
        if fixed is body and not repairs and not self.adapted and not isinstance(came, str):
            return typed_completion(came) if isinstance(came, dict) else came
        self._log(repairs)
        made = as_response if self.responses else as_completion
        return made({**fixed, CARRIED: sorted(repairs | self.adapted)})

    def _wire(
        self, came: dict[str, Any] | ChatCompletion | Response | str
    ) -> dict[str, Any] | ChatCompletion | Response | str:
        """`came`, or in strict reading what it was made of, since the SDK makes numbers of texts."""
        seen = self.pin.response if self._strict else None
        if seen is None or not seen.is_closed:
            return came
        try:
            sent = json.loads(seen.text)
        except (ValueError, RecursionError):
            return str(seen.text)
        return sent if isinstance(sent, dict) else came

    def _deviation(self, wire: object, body: Mapping[str, Any], repairs: set[str]) -> str | None:
        from oaicompat._strict import completion_fault, repaired_fault, response_fault

        fault = (response_fault if self.responses else completion_fault)(body)
        return fault or repaired_fault(repairs) or ('the body is no JSON document' if isinstance(wire, str) else None)

    def _learn(self, repairs: Iterable[str]) -> None:
        """Take what a stream taught."""
        self._log(repairs)
        if 'thinking.unclosed' in repairs:
            self.endpoint.drop('thinking.closing_tag')

    def _log(self, repairs: Iterable[str]) -> None:
        """Say what was repaired: a line each, and an event of the span that the request runs in."""
        if not (names := sorted(repairs)):
            return
        from oaicompat.repairs import REPAIRS

        span, registry = trace.get_current_span(), {repair.name: repair for repair in REPAIRS}
        for name in names:
            repair = registry[name]
            facts = (self.endpoint.model, self.endpoint.shown, name, repair.kind, repair.done)
            logger.debug('%s at %s: %s. Seen: %s. Done: %s', *facts)
            span.add_event(f'oaicompat.{name}', {'oaicompat.done': repair.done})

    def _body(
        self, came: dict[str, Any] | ChatCompletion | Response | str, repairs: set[str]
    ) -> tuple[dict[str, Any], Context]:
        """The body of an answer, and the context to repair it by."""
        if isinstance(came, dict):
            return came, self._context
        if not isinstance(came, str):
            # What was not sent is not there; what was sent is as it was, of whatever type.
            return came.model_dump(exclude_unset=True, warnings=False), self._context
        if self.responses:
            from oaicompat._response_events import response_in

            return response_in(came, self._context, repairs), self._context
        from oaicompat._completion import completion_in

        return completion_in(came, self._context, repairs)

    async def _folded(self, stream: RepairedStream) -> Any:
        from oaicompat._completion import fold, repair_completion

        try:
            chunks = await stream.collect()
            searched = replace(self._context, offer=Offer())  # the calls in its texts were found already
            repaired = repair_completion(fold(chunks), searched, stream.repairs)
        except FailureError as failure:
            raise self._error(failure, None)  # noqa: B904  # it has its cause
        except (IncompleteError, APIConnectionError) as error:
            raise explained(ModelConnectionError(self.endpoint.model, str(error)), self.endpoint) from error
        except APIError as error:  # by compat_repair='strict'
            raise explained(ModelAPIError(self.endpoint.model, error.message), self.endpoint) from error
        self._log(stream.repairs)
        return as_completion({**repaired, CARRIED: sorted({*stream.repairs, *self.adapted, 'request.stream'})})

    def _error(self, failure: FailureError, came: object, *, in_stream: bool = False) -> ModelAPIError:
        """The error that the same failure would be with a status of its own."""
        fields = dict(failure.body) if isinstance(failure.body, Mapping) else {'message': failure.message}
        if failure.status is not None:
            fields['code'] = failure.status
        message, retryable = failure.message, None
        if isinstance(came, str) and '<' in came[:200]:
            message, retryable = f'{message}; {wrong_url(self.endpoint)}', False
        error = _model_errors.stream_error(self.endpoint.model, message, fields)
        error.in_stream = in_stream
        error.__cause__ = failure
        failure.request = getattr(self.pin.response, 'request', None)
        headers = self.pin.response.headers if self.pin.response is not None else None
        return explained(error, self.endpoint, retryable=retryable, headers=headers)

    @property
    def _offer(self) -> Offer:
        if self.responses:
            return Offer()
        return offer_of(self.parameters, self.settings, self.profile, self.endpoint.url)

    @property
    def _strict(self) -> bool:
        return self.profile.get('compat_repair') == 'strict'

    @property
    def _context(self) -> Context:
        profile, extra = self.profile, self.settings.get('extra_body')
        several = extra.get('n') if isinstance(extra, Mapping) else None
        return Context(
            model=self.endpoint.model,
            schemas=schemas_of(self.parameters),
            tags=tags_of(profile, self.endpoint),
            closing_only=bool(profile.get('compat_start_with_reasoning')),
            answer_in_reasoning=bool(profile.get('compat_answer_in_reasoning')),
            alternatives=isinstance(several, int) and several > 1,
            cumulative_usage=bool(self.settings.get('openai_continuous_usage_stats')),
            details=self.details,
            offer=self._offer,
        )


async def _done(value: Any) -> Any:
    return value


def _repaired(body: dict[str, Any], context: Context, repairs: set[str]) -> dict[str, Any]:
    """A whole answer, repaired; most need nothing, and are told fast."""
    if is_plain(body, context):
        return body
    from oaicompat._completion import repair_completion

    return repair_completion(body, context, repairs)


async def see(response: Any) -> None:
    """Keep a response to a request of ours, and let nothing be sent again that would fail again."""
    pin = current_pin()
    if pin is None:
        return
    pin.response = response
    if response.status_code >= _SERVER_ERROR:
        body = await response.aread()
        sent, url = response.request.content, str(response.request.url)
        known = is_hopeless(body) or _teaches(pin.profile, response.status_code, sent, body)
        if known or holds_call(pin.profile, url, sent, body):
            retry_never(response)


def _teaches(profile: Profile, status: int, sent: bytes, body: bytes) -> bool:
    """Whether an error says what to change in the request, so that the same request would fail again."""
    from oaicompat._lessons import lessons

    try:
        return bool(lessons(profile, json.loads(sent), status, json.loads(body)))
    except (ValueError, TypeError, RecursionError):
        return False


_SERVER_ERROR = 500
_MISSING = {'connect': 'connection', 'idle': 'event'}
_PATIENCE = 600.0
_CONNECT = 30.0
