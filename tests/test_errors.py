"""Errors: the class, the status, whether to try again and when, and the hints; before and inside of a stream."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import httpx
import pytest
from openai import APIConnectionError, APIStatusError
from pydantic_ai import exceptions as e
from test_completions import ask
from test_streams import H, I, sse

from oaicompat import OpenAICompatibleModel, OpenAICompatibleResponsesModel, is_retryable

BOOM = {'error': {'message': 'boom'}}
STATUSES = {
    400: False, 401: False, 402: False, 403: False, 404: False, 405: False, 408: True, 409: True, 413: False,
    422: False, 425: True, 429: True, 499: False, 500: True, 502: True, 503: True, 504: True, 520: True, 529: True,
}  # fmt: skip


@pytest.mark.parametrize(('status', 'retryable'), STATUSES.items())
@pytest.mark.parametrize('stream', [True, False])
async def test_a_status_says_whether_to_try_again(status: int, retryable: bool, stream: bool) -> None:
    error: Any = (await ask(BOOM, status=status, stream=stream, content_type='application/json')).api_error
    assert (error.status_code, error.retryable, error.retry_after) == (status, retryable, None)
    assert is_retryable(error) is retryable


OVERFLOWS = [
    "This model's maximum context length is 8192 tokens.",
    'the request exceeds the available context size, try increasing it',
    'prompt is too long: 300 tokens > 200 maximum',
    'The input token count (9) exceeds the maximum number of tokens allowed (5).',
    'Input length 9000 exceeds the maximum allowed tokens of 8192',
    'Input is too long for requested model.',
    'The model is loaded with context length of only 4096 tokens',
]
TEMPLATES = [
    'Failed to apply chat template',
    'Value is not callable: null at row 1 (jinja)',
    'After the optional system message, conversation roles must alternate user/assistant',
    'System message must be at the beginning.',
]


@pytest.mark.parametrize('status', [400, 413, 422, 429, 500, 503])
@pytest.mark.parametrize('message', [*OVERFLOWS, *TEMPLATES])
async def test_what_the_request_is_at_fault_for_is_not_tried_again(message: str, status: int) -> None:
    """Whatever status it comes with, before a stream and inside of one."""
    body = {'error': {'message': message, 'code': status}}
    for asked in (await ask(body, status=status), await ask(body), await ask(sse(H, body), stream=True)):
        error: Any = asked.api_error
        assert (error.status_code, error.retryable) == (status, False)


@pytest.mark.parametrize(
    'message',
    ['Rate limit: too many tokens per minute', 'Too many tokens, please wait before trying again.', 'boom'],
)
async def test_a_rate_limit_on_tokens_is_no_overflow(message: str) -> None:
    error: Any = (await ask({'error': {'message': message}}, status=429)).api_error
    assert error.retryable is True


async def test_an_exhausted_quota_is_not_tried_again() -> None:
    body = {'error': {'message': 'boom', 'code': 'insufficient_quota'}}
    for asked in (await ask(body, status=429), await ask(body), await ask(sse(H, body), stream=True)):
        error: Any = asked.api_error
        assert e.ModelQuotaExceededError in type(error).__mro__
        assert (error.status_code, error.retryable) == (429, False)


HEADERS: list[tuple[dict[str, str], float | None]] = [
    ({'retry-after': '7'}, 7),
    ({'Retry-After': '1.5'}, 1.5),
    ({'retry-after-ms': '250'}, 0.25),
    ({'retry-after-ms': '250', 'retry-after': '7'}, 0.25),
    ({'retry-after': '0'}, 0),
    ({'retry-after': '-3'}, 0),
    ({'retry-after': 'soon'}, None),
    ({'retry-after': 'nan'}, None),
    ({'retry-after': 'inf'}, None),
]


@pytest.mark.parametrize(('headers', 'seconds'), HEADERS)
async def test_the_wait_from_a_header(headers: dict[str, str], seconds: float | None) -> None:
    error: Any = (await ask(BOOM, status=429, headers=headers)).api_error
    assert error.retry_after == seconds


async def test_the_wait_from_a_date() -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
    error: Any = (await ask(BOOM, status=503, headers={'retry-after': date})).api_error
    assert 50 < error.retry_after <= 60


WAITS: list[tuple[Any, float | None]] = [
    ({'error': {'message': 'Please try again in 5.289s.'}}, 5.289),
    ({'error': {'message': 'Try again in 350ms'}}, 0.35),
    ({'error': {'message': 'Please try again in 1m30.5s. Visit us.'}}, 90.5),
    ({'error': {'message': 'Please try again in 6m0s.'}}, 360),
    ({'error': {'message': 'Rate limited, retry after 20 seconds'}}, 20),
    ({'error': {'message': 'Try again later'}}, None),
    ({'error': {'message': 'boom', 'retry_after': 4}}, 4),
    ({'error': {'message': 'boom', 'retry_after': '4.5'}}, 4.5),
    ({'error': {'message': 'boom', 'retry_after': -4}}, None),
    ({'error': {'message': 'boom', 'retry_after': 'soon'}}, None),
    ({'error': {'message': 'boom', 'metadata': {'retry_after_seconds': 3}}}, 3),
    ([{'error': {'message': 'boom', 'code': 429, 'details': [{'@type': 'RetryInfo', 'retryDelay': '39s'}]}}], 39),
    ({'error': {'message': 'boom', 'code': 429, 'details': [{'@type': 'RetryInfo', 'retryDelay': '1.5s'}]}}, 1.5),
]


@pytest.mark.parametrize(('body', 'seconds'), WAITS)
async def test_the_wait_from_the_body(body: Any, seconds: float | None) -> None:
    """Also where a 200 or a stream holds it."""
    for asked in (await ask(body, status=429), await ask(body), await ask(sse(H, body), stream=True)):
        error: Any = asked.api_error
        assert error.retry_after == seconds


# In place of an answer, with status 200

AS_STATUS: list[tuple[int, Any]] = [
    (429, {'error': {'message': 'boom', 'code': 429}}),
    (429, {'error': {'message': 'boom', 'code': '429'}}),
    (429, {'error': {'message': 'boom', 'type': 'requests', 'code': 'rate_limit_exceeded'}}),
    (503, {'object': 'error', 'message': 'boom', 'code': 503}),
    (502, {'error': 'boom', 'status': 502}),
    (500, {'error': True, 'message': 'boom', 'code': 500}),
    (400, {'error': {'message': 'boom', 'status_code': 400}}),
    (401, {'error': {'message': 'boom', 'type': 'authentication_error'}}),
    (404, {'error': {'message': 'boom', 'code': 'model_not_found'}}),
    (529, {'type': 'error', 'error': {'message': 'boom', 'type': 'overloaded_error'}}),
    (503, {'error': {'message': 'boom', 'status': 'UNAVAILABLE'}}),
    (429, [{'error': {'message': 'boom', 'code': 429, 'status': 'RESOURCE_EXHAUSTED'}}]),
    (502, {'choices': [{'index': 0, 'delta': {}, 'error': {'message': 'boom', 'code': 502}}]}),
    (502, {'choices': [], 'error': {'message': 'boom', 'code': 502}}),
    (429, {'id': None, 'choices': None, 'error': {'message': 'boom', 'code': 429}}),
    (429, {'data': {'error': {'message': 'boom', 'code': 429}}}),
    (429, {'errors': [{'message': 'boom', 'code': 429}]}),
    (422, {'detail': [{'msg': 'boom'}], 'status': 422}),
]


@pytest.mark.parametrize(('status', 'body'), AS_STATUS)
async def test_an_error_in_a_200_is_the_error_of_its_status(status: int, body: Any) -> None:
    expected: Any = (await ask(BOOM, status=status)).api_error
    streamed = await ask(sse(H, I, body), stream=True)
    assert streamed.text == 'Hi'
    for asked in (await ask(body), await ask(body, stream=True), await ask(sse(body), stream=True), streamed):
        error: Any = asked.api_error
        assert type(error) is type(expected)
        assert (error.status_code, error.retryable) == (status, expected.retryable)
        assert 'boom' in str(error)


@pytest.mark.parametrize(
    'body',
    [
        {'error': 'boom'},
        {'error': ['boom']},
        {'detail': 'boom'},
        {'code': 1302, 'msg': 'boom', 'success': False},
        {'error_code': 17, 'error_msg': 'boom'},
        {'base_resp': {'status_code': 1002, 'status_msg': 'boom'}, 'choices': None},
    ],
)
async def test_an_error_without_a_status_is_an_error_too(body: Any) -> None:
    for asked in (await ask(body), await ask(sse(H, body), stream=True), await ask(sse(body), stream=True)):
        error: Any = asked.api_error
        assert 'boom' in str(error)
        assert error.retryable is True


@pytest.mark.parametrize('body', ['', 'null', '5', '[]', '"Hi"', 'Not here'])
@pytest.mark.parametrize('stream', [True, False])
async def test_what_is_no_answer_at_all_is_an_error(body: str, stream: bool) -> None:
    error: Any = (await ask(body, stream=stream)).api_error
    assert body.strip('"[]') in str(error)
    assert error.retryable is True


# Hints

PAGE = '<!DOCTYPE html><html><title>Sign in</title></html>'


@pytest.mark.parametrize('stream', [True, False])
@pytest.mark.parametrize('content_type', ['text/html', 'application/json', 'text/event-stream'])
async def test_a_page_in_place_of_an_answer_names_the_url(stream: bool, content_type: str) -> None:
    asked = await ask(PAGE, stream=stream, content_type=content_type, url='https://made-up.example')
    error: Any = asked.api_error
    assert error.retryable is False
    for words in ('Sign in', 'https://made-up.example', '/chat/completions', '/v1'):
        assert words in str(error)
    assert 'lack /v1' not in str((await ask(PAGE, stream=stream, content_type=content_type)).api_error)


@pytest.mark.parametrize(('status', 'body'), [(404, PAGE), (404, {'detail': 'Not Found'}), (405, {'detail': 'No'})])
async def test_a_wrong_path_names_the_url(status: int, body: Any) -> None:
    error = (await ask(body, status=status, url='https://made-up.example')).api_error
    assert 'does it lack /v1?' in str(error)
    assert '/v1' not in str((await ask(body, status=status)).api_error).replace('made-up.example/v1', '')
    model = {'error': {'message': 'The model `m` does not exist'}}
    assert 'lack /v1' not in str((await ask(model, status=404, url='https://made-up.example')).api_error)


@pytest.mark.parametrize('stream', [True, False])
async def test_a_key_that_was_withheld_is_named_and_not_shown(stream: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('OPENAI_API_KEY', 'secret')
    asked = await ask(BOOM, status=401, stream=stream, api_key=None, content_type='application/json')
    assert 'OPENAI_API_KEY was not sent' in str(asked.error)
    assert 'secret' not in repr(asked.error) + str(asked.error) + repr(vars(asked.error))
    assert 'secret' not in str(asked.sent[0].headers.raw)


# Any error

REQUEST = httpx.Request('POST', 'https://made-up.example')


@pytest.mark.parametrize(
    ('error', 'retryable'),
    [
        (e.ModelConnectionError('m', 'x'), True),
        (e.ModelTimeoutError('m', 'x'), True),
        (e.ModelAPIError('m', 'x'), True),
        (e.ModelHTTPError(503, 'm'), True),
        (e.ModelHTTPError(404, 'm'), False),
        (e.ModelHTTPError(500, 'm', body={'error': {'message': 'jinja'}}), False),
        (e.ModelQuotaExceededError('m', 'x'), False),
        (e.ModelContextWindowExceededError('m', 'x'), False),
        (e.UserError('x'), False),
        (e.UnexpectedModelBehavior('x'), False),
        (APIConnectionError(request=REQUEST), True),  # type: ignore[arg-type]
        (APIStatusError('x', response=httpx.Response(429, request=REQUEST), body=None), True),  # type: ignore[arg-type]
        (APIStatusError('x', response=httpx.Response(400, request=REQUEST), body=None), False),  # type: ignore[arg-type]
        (TimeoutError(), True),
        (ConnectionResetError(), True),
        (ValueError(), False),
        (KeyboardInterrupt(), False),
        (e.FallbackExceptionGroup('x', [e.ModelHTTPError(503, 'm'), TimeoutError()]), True),
        (e.FallbackExceptionGroup('x', [e.ModelHTTPError(503, 'm'), e.ModelHTTPError(404, 'm')]), False),
        (BaseExceptionGroup('x', [BaseExceptionGroup('y', [TimeoutError()])]), True),
    ],
)
def test_is_retryable_answers_for_any_error(error: BaseException, retryable: bool) -> None:
    assert is_retryable(error) is retryable


async def test_errors_of_the_responses_api_carry_the_same() -> None:
    created = {'type': 'response.created', 'response': {'id': 'r', 'status': 'in_progress', 'output': []}}
    inside = {'type': 'error', 'code': 'rate_limit_exceeded', 'message': 'boom, try again in 5s'}
    for body, stream in ((sse(created, inside), True), ({'error': {'code': 429, 'message': 'try again in 5s'}}, False)):
        error: Any = (await ask(body, stream=stream, kind=OpenAICompatibleResponsesModel)).api_error
        assert (error.status_code, error.retryable, error.retry_after) == (429, True, 5)


@pytest.mark.parametrize('events', [[], [H]])
async def test_a_code_in_words_and_the_header_survive_in_a_stream(events: list[Any]) -> None:
    inside = {'error': {'message': 'slow down', 'code': 'rate_limit_exceeded'}}
    asked = await ask(sse(*events, inside), stream=True, headers={'retry-after': '7'})
    error: Any = asked.api_error
    assert (error.status_code, error.retry_after, error.provider_error_code) == (429, 7, 'rate_limit_exceeded')


async def test_a_code_in_words_survives_in_a_whole_answer() -> None:
    error: Any = (await ask({'error': {'message': 'who are you?', 'code': 'invalid_api_key'}})).api_error
    assert (error.status_code, error.retryable, error.provider_error_code) == (401, False, 'invalid_api_key')


@pytest.mark.parametrize(
    'options', [{'base_url': 'nonsense url'}, {'provider': 'nobody'}, {'profile': {'compat_x': 1}}]
)
def test_misuse_says_that_it_is_not_to_be_tried_again(options: dict[str, Any]) -> None:
    with pytest.raises(e.UserError) as caught:
        OpenAICompatibleModel('m', **options)
    assert getattr(caught.value, 'retryable', None) is False
