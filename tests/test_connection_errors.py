"""No connection: the error says why, as the system does, and whether to try again."""

from __future__ import annotations

import errno
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import trustme
from pydantic_ai import exceptions as e
from pydantic_ai.direct import model_request
from pydantic_ai.messages import ModelRequest
from pydantic_ai.models import Model
from test_transport import with_tls

from oaicompat import OpenAICompatibleModel, is_retryable, list_models
from oaicompat.testing import Reply, ScriptedServer, completion

ASKED = [ModelRequest.user_text_prompt('Hi')]


async def asked(url: str) -> Any:
    async with OpenAICompatibleModel('m', base_url=url, provider='openai', settings={'timeout': 5}) as model:
        return await model_request(model, [*ASKED])


async def listed(url: str) -> Any:
    return await list_models(base_url=url)


WAYS = pytest.mark.parametrize('way', [asked, listed])


@WAYS
async def test_nobody_is_there(way: Callable[[str], Awaitable[Any]], unused_tcp_port: int) -> None:
    url = f'http://127.0.0.1:{unused_tcp_port}/v1'
    with pytest.raises(e.ModelConnectionError) as caught:
        await way(url)
    refused = f"[Errno {errno.ECONNREFUSED}] Connect call failed ('127.0.0.1', {unused_tcp_port})"
    assert str(caught.value) == f'Connection error ({url}): {refused}'
    assert is_retryable(caught.value)


@WAYS
async def test_a_certificate_that_is_not_trusted(way: Callable[[str], Awaitable[Any]]) -> None:
    async with with_tls(trustme.CA()) as url:
        with pytest.raises(e.ModelConnectionError) as caught:
            await way(f'{url}v1')
    assert str(caught.value).startswith(f'Connection error ({url}v1): [SSL: CERTIFICATE_VERIFY_FAILED]')
    assert not is_retryable(caught.value)


@WAYS
async def test_what_was_handled_before_is_no_cause(
    way: Callable[[str], Awaitable[Any]], unused_tcp_port: int, tmp_path: Path
) -> None:
    try:
        (tmp_path / 'private').read_text(encoding='utf-8')
    except FileNotFoundError:
        with pytest.raises(e.ModelConnectionError) as caught:
            await way(f'http://127.0.0.1:{unused_tcp_port}/v1')
    assert 'private' not in str(caught.value)


@pytest.mark.parametrize('error', [ssl.SSLCertVerificationError('x'), OSError('x')])
def test_a_cause_counts_wherever_it_stands(error: OSError) -> None:
    outer = e.ModelConnectionError('m', 'x')
    outer.__cause__ = ValueError()
    outer.__cause__.__cause__ = error
    assert is_retryable(outer) is (type(error) is OSError)


async def test_where_the_parent_refreshes_no_client_it_is_entered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(Model, '_refresh_http_client')
    async with ScriptedServer(lambda _: Reply.json({'data': [{'id': 'm'}]})) as server:
        model = OpenAICompatibleModel('m', base_url=server.base_url)
        for _ in range(2):
            assert [one.id for one in await model.list_models()] == ['m']
            assert model.client._client.is_closed


def test_causes_in_a_circle() -> None:
    one, two = e.ModelConnectionError('m', 'x'), OSError('x')
    one.__cause__, two.__cause__ = two, one
    assert is_retryable(one)


async def test_a_list_leaves_the_connections_of_its_model_open() -> None:
    def answer(request: Any) -> Reply:
        return Reply.json({'data': [{'id': 'm'}]} if request.path == '/v1/models' else completion('Hello'))

    async with ScriptedServer(answer) as server:
        model = OpenAICompatibleModel('m', base_url=server.base_url)
        for _ in range(2):
            assert [one.id for one in await model.list_models()] == ['m']
            assert (await model_request(model, [*ASKED])).parts[0].content == 'Hello'  # type: ignore[union-attr]
        async with model:
            assert [one.id for one in await model.list_models()] == ['m']
        assert [one.id for one in await model.list_models()] == ['m']  # after somebody closed it
        async with model:
            pass
