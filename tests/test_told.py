"""What a server says beside `error`, which alone the SDK keeps; and keys that it echoes."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from pydantic_ai.exceptions import ModelHTTPError
from refusing import Refusing, ask

from oaicompat import OpenAICompatibleModel, is_retryable
from oaicompat.testing import Reply, ScriptedServer

ENVELOPES: dict[str, Any] = {
    'Fastify, NestJS': lambda words: {'statusCode': 400, 'error': 'Bad Request', 'message': words},
    'a flag': lambda words: {'error': True, 'message': words},
    'a slug': lambda words: {'error': 'invalid_request_error', 'message': words},
    'OAuth': lambda words: {'error': 'bad_request', 'error_description': words},
}
KEY = 'of-the-caller-1234567890'


def model(url: str) -> OpenAICompatibleModel:
    return OpenAICompatibleModel('m', base_url=url, api_key=KEY)


@pytest.mark.parametrize('envelope', ENVELOPES.values(), ids=ENVELOPES)
async def test_what_stands_beside_the_error_is_read(envelope: Any) -> None:
    refused = Reply.json(envelope('Unknown parameter: seed'), 400)
    server = Refusing([(lambda body: 'seed' in body, refused)])
    async with ScriptedServer(server) as running, model(running.base_url) as asked:
        await ask(asked, settings={'seed': 1})
    assert ['seed' in body for body in server.bodies] == [True, False]


@pytest.mark.parametrize('envelope', ENVELOPES.values(), ids=ENVELOPES)
async def test_a_fault_of_the_caller_is_told_and_not_searched(envelope: Any) -> None:
    words = "This model's maximum context length is 10 tokens. Please try again in 7s."
    server = Refusing([(lambda body: True, Reply.json(envelope(words), 500))])
    async with ScriptedServer(server) as running, model(running.base_url) as asked:
        with pytest.raises(ModelHTTPError) as raised:
            await ask(asked)
    assert len(server.bodies) == 1
    assert raised.value.status_code == 500
    assert words in str(raised.value)
    assert not is_retryable(raised.value)
    assert raised.value.retry_after == 7


@pytest.mark.parametrize('echoed', [KEY, f'Bearer {KEY}', 'sk-abcdefghijklmnop'])
async def test_an_echoed_key_is_not_told(echoed: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, 'oaicompat')
    words = f'Unknown parameter: seed (key {echoed})'
    refused = Reply.json({'error': {'message': words}}, 400)
    server = Refusing([(lambda body: 'seed' in body, refused)])
    async with ScriptedServer(server) as running, model(running.base_url) as asked:
        await ask(asked, settings={'seed': 1})
    told = '\n'.join(
        [*(record.getMessage() for record in caplog.records if record.name == 'oaicompat'), repr(asked.learned)]
    )
    assert 'Unknown parameter: seed (key ' in told
    assert '***)' in told
    assert echoed.removeprefix('Bearer ') not in told


async def test_an_echoed_key_is_not_in_notes() -> None:
    refused = Reply.json(
        {'statusCode': 400, 'error': 'Bad Request', 'message': f'Unknown parameter: seed ({KEY})'}, 400
    )
    async with ScriptedServer(Refusing([(lambda body: True, refused)])) as running, model(running.base_url) as asked:
        with pytest.raises(ModelHTTPError) as raised:
            await ask(asked, settings={'seed': 1})
    assert KEY not in ''.join([str(raised.value), *raised.value.__notes__])
