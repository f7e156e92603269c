"""Errors: pydantic-ai's own classes, with what else the server said about them.

`is_retryable()` tells whether the same request may succeed later; errors that come out of our models carry the answer
as `.retryable`, and `.retry_after` in seconds also where only the body tells it. `explained()` adds both, and a hint
where the cause is a wrong base URL or a key that was withheld.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

from openai import APIConnectionError, APIStatusError
from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelQuotaExceededError,
    UserError,
)

from oaicompat._client import body_of
from oaicompat._endpoint import Endpoint
from oaicompat._envelope import STRICT, FailureError
from oaicompat._patterns import lazy

__all__ = ('is_retryable',)

_RETRYABLE_STATUSES = frozenset({408, 409, 425, 429})
_CONTEXT_LENGTH = lazy(
    r'context[ _](?:length|window|size)|maximum (?:context|number of tokens)|too many (?:input )?tokens(?! per|, pl)'
    r'|(?:prompt|input) is too long|exceeds? (?:the )?(?:available )?context|exceeds the maximum allowed tokens',
    re.IGNORECASE,
)
_TEMPLATE = lazy(r'chat[ _]template|jinja|roles must alternate|template error|system message must be', re.IGNORECASE)


def is_retryable(error: BaseException) -> bool:
    """Whether the request that `error` answers may succeed when it is sent again as it is.

    Timeouts, faults of the connection, streams that broke off and the statuses 408, 409, 425, 429 and 5xx are; a
    request that the server will not take as it is (other 4xx), an exhausted quota, a context that is too long and an
    error of the chat template, whatever status they come with, and a certificate that is not trusted, are not.

    Args:
        error: An error of pydantic-ai, of the SDK, or any other; of a group, all must be retryable.
    """
    told = getattr(error, 'retryable', None)
    if isinstance(told, bool):
        return told
    if isinstance(error, BaseExceptionGroup):
        return all(map(is_retryable, error.exceptions))
    strict = isinstance(error, ModelAPIError) and str(error.message).startswith(STRICT)
    final = ModelContextWindowExceededError | ModelQuotaExceededError | UserError
    if strict or isinstance(error, final) or _are_final(_faults(error)):
        return False
    if isinstance(error, ModelHTTPError | APIStatusError):
        return _status_is_retryable(error.status_code, body_of(error))
    if isinstance(error, ModelAPIError):
        # An error in a stream, or a body that could not be read: the server's fault, unless it is a web page.
        return error.provider_error_type != 'page'
    return isinstance(error, APIConnectionError | TimeoutError | ConnectionError)


def _status_is_retryable(status: int, body: object) -> bool:
    texts = list(_complaints(body))
    if any(pattern.search(text) for text in texts for pattern in (_CONTEXT_LENGTH, _TEMPLATE)):
        return False
    return status in _RETRYABLE_STATUSES or status >= _SERVER_ERROR


def is_hopeless(body: bytes) -> bool:
    """Whether the body of a 5xx says that the same request would fail again."""
    try:
        told = json.loads(body)
    except (ValueError, RecursionError):
        told = body.decode('utf-8', 'replace')
    return not _status_is_retryable(_SERVER_ERROR, told)


@contextmanager
def misuse_explained() -> Iterator[None]:
    """Misuse that is raised inside carries `.retryable`, as the errors of requests do."""
    try:
        yield
    except UserError as error:
        facts: Any = error
        facts.retryable = False
        raise


_SERVER_ERROR = 500

_Error = TypeVar('_Error', bound=ModelAPIError)


def explained(
    error: _Error, endpoint: Endpoint, *, retryable: bool | None = None, headers: Mapping[str, str] | None = None
) -> _Error:
    """`error` with `.retryable`, `.retry_after` and, where the cause is at the caller's end, a hint.

    Args:
        error: The error.
        endpoint: Where the request went.
        retryable: Whether it is, where that is known.
        headers: The headers of an answer that was no error itself.
    """
    facts: Any = error
    # Before it is raised from its cause, that is what is handled.
    behind = error.__cause__ or sys.exception() if isinstance(error, ModelConnectionError) else None
    faults = [*_faults(behind)]
    facts.retryable = is_retryable(error) and not _are_final(faults) if retryable is None else retryable
    if not math.isfinite(getattr(error, 'retry_after', None) or math.inf):
        facts.retry_after = retry_after(error, headers)
    if (code := _code_behind(error)) is not None:
        error.provider_error_code = code
    if isinstance(error, ModelConnectionError) and endpoint.shown not in error.message:
        told = [str(fault) for fault in faults if str(fault)]
        why = f': {told[-1]}' if told else ''
        error.message = f'{error.message.rstrip(".")} ({endpoint.shown}){why}'
        error.args = (error.message,)
    if isinstance(error, ModelHTTPError) and (lost := _lost(error)):
        add_hint(error, lost)
    if isinstance(error, ModelHTTPError) and (hint := _hint(error, endpoint)) and hint not in str(error):
        add_hint(error, hint)
    return error


def _faults(error: BaseException | None) -> Iterator[OSError]:
    """What the system said behind an error of the connection, the last one closest to it."""
    return (cause for cause in _causes(error) if isinstance(cause, OSError))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error and what it was raised from, each once."""
    seen = set[int]()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        # httpcore's pool raises its errors from none; what was handled outside of the request is no cause of anybody's.
        theirs = type(error).__module__.partition('.')[0] in ('httpcore2', 'httpx2')
        error = error.__cause__ or (error.__context__ if theirs else None)


def _are_final(faults: Iterable[OSError]) -> bool:
    return any(type(fault).__name__ == 'SSLCertVerificationError' for fault in faults)


def _lost(error: ModelHTTPError) -> str:
    """What the server said beside the `error` of its body, which alone the SDK keeps."""
    told = body_of(error)
    if not isinstance(told, Mapping) or 'error' not in told:
        return ''
    kept = set(_complaints(told['error']))
    lost = [text for text in dict.fromkeys(_complaints(told)) if text.strip() and text not in kept]
    return '; '.join(text[:_QUOTED] for text in lost if text[:_QUOTED] not in str(error))


_QUOTED = 500


def add_hint(error: ModelHTTPError, hint: str) -> None:
    """Put `hint` behind the error's words."""
    error.hint = f'{error.hint}. {hint}' if error.hint else hint
    error.message = f'{error.message}. {hint}'
    error.args = (error.message,)


def _code_behind(error: BaseException) -> str | None:
    """The code in words of an error that came with status 200: its status takes the code's place in the body."""
    cause = next((cause for cause in _causes(error) if isinstance(cause, FailureError)), None)
    body = cause.body if cause is not None else None
    code = body.get('code') if isinstance(body, Mapping) else None
    return code if isinstance(code, str) else None


def retry_after(error: ModelAPIError, headers: Mapping[str, str] | None = None) -> float | None:
    """Seconds that the server asked to wait: from its header, or from the words of its body."""
    headers = getattr(error, 'headers', None) or headers or {}
    for name, unit in (('retry-after-ms', 1000), ('retry-after', 1)):
        if (seconds := _seconds(headers.get(name))) is not None:
            return seconds / unit
    for text in _all_texts(body_of(error)):
        if found := _WAIT.search(text):
            return round(sum(float(number) * _UNITS[unit.lower()] for number, unit in _PART.findall(found[1])), 6)
    return None


_AMOUNT = r'\d+(?:\.\d+)?\s*(?:milliseconds?|ms|hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s)(?![a-z])'
_WAIT = lazy(
    r'(?:(?:retry|try)[\w ]{0,30}?(?:after|in)|wait)\W{0,3}(?:for |at least |about )?'
    rf'((?:{_AMOUNT}[\s,]*(?:and )?)+)',
    re.IGNORECASE,
)
_PART = lazy(r'(\d+(?:\.\d+)?)\s*(milli|ms|[hms])', re.IGNORECASE)
_UNITS = {'milli': 0.001, 'ms': 0.001, 's': 1, 'm': 60, 'h': 3600}
_DELAY = lazy(r'\d+(?:\.\d+)?')


def _all_texts(body: object) -> list[str]:
    """The words of an error body; a delay that stands in a field of its own is put into words."""
    texts = list(_complaints(body))
    stack = [body]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            for key, item in value.items():
                if key in ('retryDelay', 'retry_after', 'retry_delay', 'retry_after_seconds') and item is not None:
                    number = str(item).removesuffix('s')
                    texts += [f'retry in {number}s'] if _DELAY.fullmatch(number) else []
                else:
                    stack.append(item)
        elif isinstance(value, list):
            stack.extend(value)
    return texts


def _seconds(value: object) -> float | None:
    """A header's value as seconds: a number, or a date."""
    if not isinstance(value, str) or not value.strip():
        return None
    try:
        return max(float(value), 0.0) if math.isfinite(float(value)) else None
    except ValueError:
        pass
    try:
        when = parsedate_to_datetime(value)
    except (ValueError, TypeError, IndexError):
        return None
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return max((when - datetime.now(UTC)).total_seconds(), 0.0)


def _hint(error: ModelHTTPError, endpoint: Endpoint) -> str | None:
    match error.status_code:
        case 401 if endpoint.withheld:
            names = ' and '.join(endpoint.withheld)
            sent = 'were not sent' if len(endpoint.withheld) > 1 else 'was not sent'
            return (
                f'{names} {sent}: a key goes only to the host that it is for, and not to {endpoint.shown}. '
                'Pass a key for this server as `api_key`'
            )
        case 404 | 405 if not _names_model(error):
            return wrong_url(endpoint)
    return None


def _names_model(error: ModelHTTPError) -> bool:
    return any('model' in text.lower() for text in _complaints(body_of(error)))


def wrong_url(endpoint: Endpoint) -> str:
    """What to look at where something else than the API answered."""
    cure = '; does it lack /v1?' if endpoint.unversioned else ''
    return f'`base_url` is {endpoint.shown}, and its {endpoint.path} was asked{cure}'


def _complaints(body: object) -> Iterator[str]:
    from oaicompat._complaints import complaints  # which no program needs that meets no error

    return complaints(body)
