"""A model that the server does not know: the error says which ones it knows, and stays the error that it was."""

from __future__ import annotations

import pytest
from openai import AsyncOpenAI
from pydantic_ai import exceptions as e

import oaicompat.discovery
from oaicompat._endpoint import Endpoint
from oaicompat.discovery import nearest, with_nearest
from oaicompat.testing import RecordedRequest, Reply, ScriptedServer

KEY = 'made-up-key'

NAMES: list[tuple[str, list[str], list[str]]] = [
    ('qwen3:8b', ['Qwen/Qwen3-32B', 'Qwen/Qwen3-8B-Instruct', 'meta/llama'],
     ['Qwen/Qwen3-8B-Instruct', 'Qwen/Qwen3-32B']),
    ('Qwen/Qwen3-8B', ['qwen3:8b', 'qwen3:0.6b', 'gemma3:4b'], ['qwen3:8b', 'qwen3:0.6b']),
    ('deepsek-chat', ['deepseek-reasoner', 'deepseek-chat'], ['deepseek-chat', 'deepseek-reasoner']),
    ('claude-sonnet-4', ['anthropic/claude-sonnet-4', 'anthropic/claude-opus-4', 'openai/gpt'],
     ['anthropic/claude-sonnet-4', 'anthropic/claude-opus-4']),
    ('openai/gpt-4o', ['gpt-4o', 'whisper'], ['gpt-4o']),
    ('gemini-2.5-flash', ['models/gemini-2.5-flash', 'models/embedding-gecko'], ['models/gemini-2.5-flash']),
    ('llama3.1', ['meta-llama/Llama-3.1-8B-Instruct', 'mistral'], ['meta-llama/Llama-3.1-8B-Instruct']),
    ('GLM-5', ['glm-5', 'glm-5', 'zai'], ['glm-5']),
    ('glm-5', ['glm-5', 'glm-4', 'glm-3', 'glm-2'], ['glm-5', 'glm-4', 'glm-3']),
    ('通义', ['通义-千问', 'x'], ['通义-千问']),
    ('whisper', ['llama', 'qwen'], []),
    ('', ['llama'], []),
    ('x', [], []),
    ('///', ['---'], []),
]  # fmt: skip


@pytest.mark.parametrize(('name', 'served', 'expected'), NAMES)
def test_the_nearest_names(name: str, served: list[str], expected: list[str]) -> None:
    assert nearest(name, served) == expected


def test_the_nearest_one() -> None:
    assert nearest('qwen3', ['qwen2', 'qwen3-8b', 'qwen3'], n=1) == ['qwen3']


def refusal(message: str, status: int = 404, model: str = 'qwen3:8b') -> e.ModelHTTPError:
    return e.ModelHTTPError(status, model, {'message': message})


async def asked(error: e.ModelHTTPError, reply: Reply, times: int = 1) -> list[RecordedRequest]:
    """What a server that lists its models with `reply` is asked because of `error`."""
    async with ScriptedServer(lambda _: reply) as server:
        async with AsyncOpenAI(base_url=server.base_url, api_key=KEY) as client:
            for _ in range(times):
                assert await with_nearest(error, client, Endpoint(server.base_url, error.model_name)) is error
    return server.requests


SERVED = Reply.json({'data': ['gemma3', 'Qwen/Qwen3-8B', 'whisper', 'bge-m3']})
UNKNOWN = [
    (404, 'model "qwen3:8b" not found, try pulling it first'),
    (404, 'The model `qwen3:8b` does not exist.'),
    (404, 'no endpoints found for qwen3:8b'),
    (400, 'qwen3:8b is not a valid model ID'),
    (400, 'Model Not Exist'),
    (400, "model qwen3:8b doesn't exist"),
    (400, 'Unknown model'),
    (400, 'Invalid model: qwen3:8b'),
    (400, "model 'qwen3:8b' not found"),
    (400, 'Model qwen3:8b is not available'),
]


@pytest.mark.parametrize(('status', 'message'), UNKNOWN)
async def test_an_unknown_model_is_told_what_there_is(status: int, message: str) -> None:
    error = refusal(message, status)
    before = str(error)
    [request] = await asked(error, SERVED, times=2)
    assert (request.path, request.headers['authorization']) == ('/v1/models', f'Bearer {KEY}')
    hint = 'The server knows: Qwen/Qwen3-8B, and 3 more'
    assert (str(error), error.hint, error.args) == (f'{before}. {hint}', hint, (f'{before}. {hint}',))


@pytest.mark.parametrize(
    ('status', 'message'),
    [
        (404, 'Not Found'),
        (400, 'model does not support tools'),
        (400, "This model's maximum context length is 8192 tokens"),
        (400, 'tool_choice is not supported by this model'),
        (401, 'model qwen3:8b not found'),
        (500, 'model qwen3:8b not found'),
    ],
)
async def test_another_error_is_left_as_it_is(status: int, message: str) -> None:
    error = refusal(message, status)
    before = str(error)
    assert (await asked(error, SERVED), str(error), error.hint) == ([], before, None)


@pytest.mark.parametrize(
    ('names', 'hint'),
    [
        (['a', 'b'], 'The server knows: a, b'),
        (['a', 'b', 'c', 'd', 'e'], 'The server knows: a, b, c, and 2 more'),
        (['x\n\ny' * 100], f'The server knows: {("x y" * 100)[:100]}'),
        (['qwen3:8b', 'qwen3:4b'], None),
        ([], None),
    ],
)
async def test_what_there_is(names: list[str], hint: str | None) -> None:
    """Where nothing is near, the first names; nothing where the name is listed, or nothing is."""
    error = refusal('model not found')
    assert len(await asked(error, Reply.json(names))) == 1
    assert error.hint == hint


@pytest.mark.parametrize(
    'reply',
    [
        Reply.json({'error': {'message': 'boom'}}, 500),
        Reply.json({'error': {'message': 'not found'}}, 404),
        Reply.text('<html>'),
        Reply.json(['a'], ending='drop'),
        Reply.json(['a'], ending='stall'),
    ],
)
async def test_a_server_without_a_list_changes_nothing(reply: Reply, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked once, without retries, and not for long."""
    monkeypatch.setattr(oaicompat.discovery, '_SHORT', 0.2)
    error = refusal('model not found')
    before = str(error)
    assert len(await asked(error, reply, times=2)) == 1
    assert (str(error), error.hint) == (before, None)


async def test_openai_is_not_asked() -> None:
    error = refusal('The model `gpt-55` does not exist', model='gpt-55')
    async with AsyncOpenAI(base_url='https://api.openai.com/v1', api_key=KEY) as client:
        assert await with_nearest(error, client, Endpoint('https://api.openai.com/v1', 'gpt-55')) is error
    assert error.hint is None


async def test_a_hint_that_is_there_already_stays() -> None:
    error = e.ModelHTTPError(404, 'm', {'message': 'model not found'}, hint='Ask your administrator')
    await asked(error, Reply.json(['a']))
    assert error.hint == 'Ask your administrator. The server knows: a'
