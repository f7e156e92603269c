"""What goes wrong with a list of models: pydantic-ai's errors, whole, and without a secret."""

from __future__ import annotations

import asyncio
import errno
import socket
from typing import Any

import pytest
from pydantic_ai import exceptions as e

import oaicompat.discovery
from oaicompat import is_retryable, list_models
from oaicompat.testing import Reply, ScriptedServer

SECRET = 'hunter2'


async def failed(reply: Reply, **arguments: Any) -> tuple[Any, str]:
    """The error that comes of `reply`, and its words with a made-up host."""
    async with ScriptedServer(lambda _: reply) as server:
        with pytest.raises(e.ModelAPIError) as caught:
            await list_models(base_url=f'{server.root_url}{arguments.get("path", "/v1")}', api_key=SECRET)
        words = str(caught.value).replace(server.root_url, 'http://host')
    assert SECRET not in words
    return caught.value, words


NO_RETRY = {'x-should-retry': 'false'}
ASKED = '`base_url` is http://host/v1, and its /models was asked'


@pytest.mark.parametrize(
    ('reply', 'kind', 'words'),
    [
        (
            Reply.json({'error': {'message': 'bad key', 'code': 'invalid_api_key'}}, 401),
            e.ModelAuthenticationError,
            "status_code: 401, model_name: *, body: {'message': 'bad key', 'code': 'invalid_api_key'}",
        ),
        (
            Reply.json({'detail': 'Not Found'}, 404),
            e.ModelNotFoundError,
            f"status_code: 404, model_name: *, body: {{'detail': 'Not Found'}}. {ASKED}",
        ),
        (
            Reply.json({'error': {'message': 'slow down'}}, 429, headers={'retry-after': '7', **NO_RETRY}),
            e.ModelRateLimitError,
            "status_code: 429, model_name: *, body: {'message': 'slow down'}",
        ),
        (
            Reply.json({'error': {'message': 'bad key', 'code': 401}}),
            e.ModelAuthenticationError,
            "status_code: 401, model_name: *, body: {'message': 'bad key', 'code': 401}",
        ),
        (Reply.json({'error': 'boom'}), e.ModelAPIError, 'boom'),
        (Reply.json([{'error': {'message': 'boom', 'code': 503}}]), e.ModelUnavailableError,
         "status_code: 503, model_name: *, body: {'message': 'boom', 'code': 503}"),
        (Reply.json({'data': None, 'error': {'message': 'boom'}}), e.ModelAPIError, 'boom'),
        (
            Reply.text('<html>\n<h1>Log in</h1>', 'text/html'),
            e.ModelAPIError,
            f"expected a list of models and got '<html> <h1>Log in</h1>'; {ASKED}",
        ),
        (Reply.text('Ollama is running'), e.ModelAPIError,
         f"expected a list of models and got 'Ollama is running'; {ASKED}"),
        (Reply.json({'status': 'ok'}), e.ModelAPIError,
         f"expected a list of models and got '{{\"status\": \"ok\"}}'; {ASKED}"),
        (Reply.json({'data': 'a'}), e.ModelAPIError,
         f"expected a list of models and got '{{\"data\": \"a\"}}'; {ASKED}"),
        (Reply.json(None), e.ModelAPIError, f"expected a list of models and got 'null'; {ASKED}"),
        (Reply.raw(b''), e.ModelAPIError, f"expected a list of models and got ''; {ASKED}"),
    ],
)  # fmt: skip
async def test_errors(reply: Reply, kind: type[Exception], words: str) -> None:
    error, said = await failed(reply)
    assert kind in type(error).__mro__
    assert (said, error.in_stream) == (words, False)
    assert is_retryable(error) is (error.retry_after == 7 or 'boom' in said)


async def test_a_json_value_that_is_too_deep() -> None:
    _, said = await failed(Reply.raw(b'[' * 100_000 + b']' * 100_000))
    assert said.startswith("expected a list of models and got '[[[")
    assert len(said) < 400


async def test_a_url_without_v1() -> None:
    _, said = await failed(Reply.text('404 page not found', status=404), path='')
    assert said.endswith('. `base_url` is http://host, and its /models was asked; does it lack /v1?')


async def test_a_key_that_was_withheld(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('OPENAI_API_KEY', SECRET)
    async with ScriptedServer([Reply.json({'error': {'message': 'who are you'}}, 401)]) as server:
        with pytest.raises(e.ModelHTTPError) as caught:
            await list_models(base_url=server.base_url)
    assert caught.value.hint == (
        f'OPENAI_API_KEY was not sent: a key goes only to the host that it is for, and not to {server.base_url}. '
        'Pass a key for this server as `api_key`'
    )
    assert SECRET not in str(caught.value)


async def test_nobody_answers() -> None:
    with socket.socket() as bound:
        bound.bind(('127.0.0.1', 0))
        bound_to = bound.getsockname()
        url = f'http://127.0.0.1:{bound_to[1]}/v1'
        with pytest.raises(e.ModelConnectionError) as caught:
            await list_models(base_url=url)
    told = f'Connection error ({url}): [Errno {errno.ECONNREFUSED}] Connect call failed {bound_to!r}'
    assert (str(caught.value), is_retryable(caught.value)) == (told, True)


async def test_an_answer_that_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oaicompat.discovery, '_PATIENCE', 0.05)
    async with ScriptedServer([Reply.json(['a'], ending='stall')]) as server:
        with pytest.raises(e.ModelTimeoutError):
            await list_models(base_url=server.base_url)


async def test_a_cancelled_request_stays_cancelled() -> None:
    async with ScriptedServer([Reply.json(['a'], ending='stall')]) as server:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await list_models(base_url=server.base_url)
