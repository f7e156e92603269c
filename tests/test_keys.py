"""Keys on the wire: what comes from `OPENAI_*` goes to OpenAI alone, a row's key to its own host alone."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Iterator
from typing import Any, cast, get_args

import httpx
import pytest
import respx
from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelHTTPError, UserError
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ToolCallPart, ToolReturnPart
from pydantic_ai.models import Model, ModelRequestParameters, OpenAIChatCompatibleProvider
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider
from pydantic_ai.settings import ModelSettings

from oaicompat import OpenAICompatibleModel, OpenAICompatibleResponsesModel, Server, infer_model, list_models
from oaicompat.servers import servers
from oaicompat.testing import Reply, ScriptedServer, chunk, completion

# Every secret holds this word, and nothing else does.
SECRET = 'hunter2'
CUSTOM_HEADERS = f"""X-Team: team-{SECRET}
Authorization: Bearer header-{SECRET}
editor-version: editor-{SECRET}
Copilot-Integration-Id: id-{SECRET}
User-Agent: agent-{SECRET}"""
OPENAI = {
    'OPENAI_API_KEY': f'sk-{SECRET}',
    'OPENAI_ADMIN_KEY': f'admin-{SECRET}',
    'OPENAI_ORG_ID': f'org-{SECRET}',
    'OPENAI_PROJECT_ID': f'project-{SECRET}',
    'OPENAI_WEBHOOK_SECRET': f'webhook-{SECRET}',
    'OPENAI_CUSTOM_HEADERS': CUSTOM_HEADERS,
}
OWN = 'own-key'
# What pydantic-ai's own prefixes need to be made, beside the keys of our rows.
UPSTREAM = {
    'AZURE_OPENAI_API_KEY': OWN,
    'AZURE_OPENAI_ENDPOINT': 'https://mine.azure.test',
    'CEREBRAS_API_KEY': OWN,
    'CRUSOE_API_KEY': OWN,
    'FIREWORKS_API_KEY': OWN,
    'GITHUB_API_KEY': OWN,
    'HEROKU_INFERENCE_KEY': OWN,
    'META_API_KEY': OWN,
    'NEBIUS_API_KEY': OWN,
    'OPENAI_API_VERSION': '2026-10-01',  # Azure's, and no secret
    'OVHCLOUD_API_KEY': OWN,
    'PYDANTIC_AI_GATEWAY_API_KEY': OWN,
    'PYDANTIC_AI_GATEWAY_BASE_URL': 'https://gateway.test/proxy',
    'SAMBANOVA_API_KEY': OWN,
    'SNOWFLAKE_ACCOUNT': 'mine',
    'SNOWFLAKE_TOKEN': OWN,
    'VERCEL_AI_GATEWAY_API_KEY': OWN,
}
ROWS = list(servers())
NAMES = [row.prefix for row in ROWS]
THEIRS = sorted({*get_args(OpenAIChatCompatibleProvider.__value__)} - {*NAMES, 'github-copilot'})
GATEWAY = ['gateway/openai', 'gateway/openai-chat', 'gateway/openai-responses']
PREFIXES = [*NAMES, *(f'{name}+responses' for name in NAMES), 'glm', 'lm_studio', *THEIRS, 'azure-responses', *GATEWAY]

RESPONSE: dict[str, Any] = {
    'id': 'resp_1', 'object': 'response', 'created_at': 1, 'model': 'm', 'status': 'completed', 'tools': [],
    'parallel_tool_calls': True, 'tool_choice': 'auto',
    'output': [{
        'type': 'message', 'id': 'msg_1', 'role': 'assistant', 'status': 'completed',
        'content': [{'type': 'output_text', 'text': 'Hi', 'annotations': []}],
    }],
}  # fmt: skip
EVENTS = [
    {'type': 'response.created', 'sequence_number': 0, 'response': {**RESPONSE, 'output': [], 'status': 'in_progress'}},
    {'type': 'response.output_text.delta', 'sequence_number': 1, 'item_id': 'msg_1', 'output_index': 0,
     'content_index': 0, 'delta': 'Hi', 'logprobs': []},
    {'type': 'response.completed', 'sequence_number': 2, 'response': RESPONSE},
]  # fmt: skip

# GitHub Models was retired, and pydantic-ai says so whenever its provider is made.
pytestmark = pytest.mark.filterwarnings('ignore:`GitHubProvider` is deprecated')


def answer(request: httpx.Request) -> httpx.Response:
    if request.method == 'GET':
        return httpx.Response(200, json=['m'])
    streamed = b'"stream":true' in request.content.replace(b' ', b'')
    if request.url.path.endswith('/responses'):
        reply = Reply.sse(*EVENTS) if streamed else Reply.json(RESPONSE)
    else:
        # OpenRouter's class wants to know the provider.
        last = {**chunk('Hi', finish_reason='stop'), 'provider': 'p'}
        reply = Reply.sse(last) if streamed else Reply.json({**completion('Hi'), 'provider': 'p'})
    return httpx.Response(200, headers=dict(reply.headers), content=reply.body)


@pytest.fixture
def wire() -> Iterator[list[httpx.Request]]:
    """Everything that leaves the default clients; each request is answered."""
    sent: list[httpx.Request] = []

    def receive(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return answer(request)

    # pydantic-ai's older providers are on httpx, which stands on httpcore.
    with respx.mock(using='httpcore2', assert_all_called=False) as router:
        router.route().mock(side_effect=receive)
        with respx.mock(using='httpcore', assert_all_called=False) as legacy:
            legacy.route().mock(side_effect=receive)
            yield sent


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of `OPENAI_*`, and a key of its own for every prefix."""
    own = {row.key_vars[0]: OWN for row in ROWS}
    urls = {row.url_vars[0]: 'http://proxy.test:4000' for row in ROWS if row.base_url is None}
    for name, value in {**OPENAI, **UPSTREAM, **own, **urls}.items():
        monkeypatch.setenv(name, value)


def everything(request: httpx.Request) -> str:
    """The request as it went out: URL, header names, header values, body."""
    headers = [f'{name}: {value}' for name, value in request.headers.multi_items()]
    return '\n'.join([str(request.url), *headers, request.content.decode()])


async def ask_every_way(model: Model) -> None:
    """Unary and streamed, and both again with `max_retries`, for which pydantic-ai copies the client."""
    async with Agent(model) as agent:
        for settings in (None, ModelSettings(max_retries=1)):
            assert (await agent.run('?', model_settings=settings)).output == 'Hi'
            async with agent.run_stream('?', model_settings=settings) as result:
                assert await result.get_output() == 'Hi'


@pytest.mark.usefixtures('environment')
@pytest.mark.parametrize('prefix', PREFIXES)
async def test_a_prefix_sends_nothing_of_openais(prefix: str, wire: list[httpx.Request]) -> None:
    await ask_every_way(infer_model(f'{prefix}:a/m'))
    assert len(wire) == 4
    for request in wire:
        assert SECRET not in everything(request)
        assert 'x-team' not in request.headers
        sent = request.headers.get('authorization', request.headers.get('api-key'))
        assert sent in (f'Bearer {OWN}', OWN)


@pytest.mark.usefixtures('environment')
@pytest.mark.parametrize('prefix', [*NAMES, *THEIRS, *GATEWAY])
async def test_a_list_of_models_is_asked_for_with_the_same_keys(prefix: str, wire: list[httpx.Request]) -> None:
    assert [model.id for model in await list_models(prefix)] == ['m']
    [request] = wire
    assert (SECRET in everything(request), OWN in everything(request)) == (False, True)


EXPLICIT: list[dict[str, Any]] = [
    {'base_url': 'http://localhost:8000/v1'},
    {'base_url': 'https://elsewhere.test/v1'},
    {'base_url': 'https://api.openai.com/v1'},
    {'base_url': 'https://api.deepseek.com/beta'},
    *({'base_url': 'https://elsewhere.test/v1', 'provider': name} for name in ('openai', 'openai-chat', *NAMES)),
    *({'base_url': 'https://elsewhere.test/v1', 'provider': name} for name in (*THEIRS, *GATEWAY)),
]  # fmt: skip


@pytest.mark.usefixtures('environment')
@pytest.mark.parametrize('kind', [OpenAICompatibleModel, OpenAICompatibleResponsesModel])
@pytest.mark.parametrize('arguments', EXPLICIT, ids=lambda arguments: '-'.join(map(str, arguments.values())))
async def test_an_explicit_base_url_gets_nothing_of_openais(
    kind: type[OpenAICompatibleModel | OpenAICompatibleResponsesModel],
    arguments: dict[str, Any],
    wire: list[httpx.Request],
) -> None:
    await ask_every_way(kind('a/m', **arguments))
    assert {request.url.host for request in wire} == {httpx.URL(arguments['base_url']).host}
    for request in wire:
        assert SECRET not in everything(request)
        assert 'x-team' not in request.headers


@pytest.mark.usefixtures('environment')
@pytest.mark.parametrize('prefix', ['openai', 'openai-chat', 'openai-responses'])
@pytest.mark.parametrize('base_url', ['https://api.openai.com/v1', 'https://proxy.test/openai'])
async def test_openai_gets_what_is_openais(
    prefix: str, base_url: str, wire: list[httpx.Request], monkeypatch: pytest.MonkeyPatch
) -> None:
    if 'proxy' in base_url:
        monkeypatch.setenv('OPENAI_BASE_URL', base_url)
    await ask_every_way(infer_model(f'{prefix}:a/m'))
    assert len(wire) == 4
    for request in wire:
        assert str(request.url).startswith(base_url)
        assert request.headers['authorization'] == f'Bearer header-{SECRET}'  # as the SDK has it: headers win
        assert request.headers['openai-organization'] == f'org-{SECRET}'
        assert request.headers['openai-project'] == f'project-{SECRET}'
        assert request.headers['x-team'] == f'team-{SECRET}'


async def test_openai_gets_its_key(wire: list[httpx.Request], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('OPENAI_API_KEY', 'sk-1')
    await ask_every_way(infer_model('openai-chat:m'))
    await ask_every_way(infer_model('openai:m'))
    assert {request.headers['authorization'] for request in wire} == {'Bearer sk-1'}


async def test_openai_base_url_moves_openai_alone(wire: list[httpx.Request], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('OPENAI_BASE_URL', 'https://proxy.test/v1')
    await ask_every_way(infer_model('vllm:m'))
    await ask_every_way(OpenAICompatibleModel('m', base_url='http://gpu.lan/v1'))
    assert {request.url.host for request in wire} == {'localhost', 'gpu.lan'}


HOSTED = pytest.mark.parametrize('row', [row for row in ROWS if row.kind == 'hosted'], ids=lambda row: row.prefix)


@HOSTED
@pytest.mark.parametrize(
    'host', ['https://elsewhere.test', 'http://{host}', 'https://{host}:8443', 'https://{host}.test']
)
async def test_a_hosted_rows_key_stays_at_its_host(
    row: Server, host: str, wire: list[httpx.Request], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in row.key_vars:
        monkeypatch.setenv(name, f'sk-{SECRET}')
    url = host.format(host=httpx.URL(row.base_url or '').host)
    await ask_every_way(OpenAICompatibleModel('a/m', provider=row.prefix, base_url=f'{url}/v1'))
    await ask_every_way(OpenAICompatibleModel('a/m', base_url=f'{url}/v1'))
    assert len(wire) == 8
    for request in wire:
        assert str(request.url).startswith(f'{url}/v1')
        assert SECRET not in everything(request)


@HOSTED
async def test_a_hosted_rows_key_goes_to_its_host(
    row: Server, wire: list[httpx.Request], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(row.key_vars[0], OWN)
    await ask_every_way(OpenAICompatibleModel('a/m', base_url=f'{row.base_url}/'))
    assert {request.headers['authorization'] for request in wire} == {f'Bearer {OWN}'}


@pytest.mark.usefixtures('environment')
@pytest.mark.parametrize('prefix', [*NAMES, *(name for name in THEIRS if name != 'azure'), *GATEWAY])
async def test_a_key_that_is_passed_goes_where_the_prefix_points(prefix: str, wire: list[httpx.Request]) -> None:
    host = httpx.URL(str(cast(Any, infer_model(f'{prefix}:a/m')).client.base_url)).host
    await ask_every_way(OpenAICompatibleModel('a/m', provider=prefix, api_key='passed'))
    assert {request.url.host for request in wire} == {host}
    assert {request.headers['authorization'] for request in wire} == {'Bearer passed'}
    assert SECRET not in everything(wire[0])


def refuse(status: int, message: str = 'no') -> Reply:
    return Reply.json({'error': {'message': message, 'type': 'invalid_request_error'}}, status)


async def failure(model: Model) -> ModelHTTPError:
    async with Agent(model) as agent:
        with pytest.raises(ModelHTTPError) as caught:
            await agent.run('?')
        with pytest.raises(ModelHTTPError) as streamed:
            async with agent.run_stream('?'):
                pass
    assert str(streamed.value) == str(caught.value)
    return caught.value


@pytest.mark.parametrize('kind', [OpenAICompatibleModel, OpenAICompatibleResponsesModel])
async def test_a_401_without_a_key_says_what_was_withheld(
    kind: type[OpenAICompatibleModel | OpenAICompatibleResponsesModel],
    scripted_server: type[ScriptedServer],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A key that was set, and found once, must not seem to be ignored by mistake."""
    monkeypatch.setenv('OPENAI_API_KEY', f'sk-{SECRET}')
    async with scripted_server(lambda _: refuse(401)) as server:
        stock = await failure(OpenAIChatModel('m', provider=OpenAICompatibleProvider('x', base_url=server.base_url)))
        error = await failure(kind('m', base_url=server.base_url))
    hint = (
        f'OPENAI_API_KEY was not sent: a key goes only to the host that it is for, and not to {server.base_url}. '
        'Pass a key for this server as `api_key`'
    )
    assert str(error) == f'{stock}. {hint}'
    assert error.hint == hint
    assert (type(error), error.status_code, error.body) == (type(stock), 401, stock.body)


async def test_a_401_names_the_rows_key_that_was_withheld(
    scripted_server: type[ScriptedServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('DEEPSEEK_API_KEY', f'sk-{SECRET}')
    async with scripted_server(lambda _: refuse(401)) as server:
        error = await failure(OpenAICompatibleModel('m', provider='deepseek', base_url=server.base_url))
    assert 'DEEPSEEK_API_KEY was not sent' in str(error)
    assert SECRET not in str(error)


@pytest.mark.parametrize(('status', 'key'), [(401, 'passed'), (403, None), (401, None)])
async def test_where_nothing_was_withheld_the_error_is_the_parents(
    status: int, key: str | None, scripted_server: type[ScriptedServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    if (status, key) != (401, None):
        monkeypatch.setenv('OPENAI_API_KEY', f'sk-{SECRET}')
    async with scripted_server(lambda _: refuse(status)) as server:
        error = await failure(OpenAICompatibleModel('m', base_url=server.base_url, api_key=key))
        stock = await failure(OpenAIChatModel('m', provider=OpenAICompatibleProvider('x', base_url=server.base_url)))
    assert (str(error), error.hint) == (str(stock), stock.hint)


@pytest.mark.parametrize('given', [{'base_url': 'http://h/v1'}, {'api_key': SECRET}])
def test_a_provider_takes_no_second_url_or_key(given: dict[str, Any]) -> None:
    provider = OpenAICompatibleProvider('mine', base_url='http://mine.test')
    (name,) = given
    with pytest.raises(UserError) as caught:
        OpenAICompatibleModel('m', provider=provider, **given)
    assert str(caught.value) == f'`{name}` and a `Provider` say the same thing twice; give {name} to the Provider'


BAD_KEYS = [
    f'https://h/{SECRET}', f'http://{SECRET}', f'sk {SECRET}', f'sk\n{SECRET}', f'sk-é{SECRET}', f'sk\t{SECRET}',
    f'Bearer {SECRET}', f'sk\x00{SECRET}', f'sk\u200b{SECRET}',
]  # fmt: skip


@pytest.mark.parametrize('key', BAD_KEYS)
@pytest.mark.parametrize('where', [{'base_url': 'http://h/v1'}, {'provider': 'deepseek'}, {'provider': 'cerebras'}, {}])
def test_what_cannot_be_a_key_is_an_error_without_its_value(key: str, where: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=r'^`api_key` holds a ') as caught:
        OpenAICompatibleModel('m', api_key=key, **where)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize('key', BAD_KEYS[:-2])
def test_a_variable_that_cannot_hold_a_key_is_named(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('DEEPSEEK_API_KEY', key)
    with pytest.raises(UserError, match=r'^`DEEPSEEK_API_KEY` holds a ') as caught:
        infer_model('deepseek:m')
    assert SECRET not in str(caught.value)


async def test_white_space_around_a_key_is_no_part_of_it(wire: list[httpx.Request]) -> None:
    await ask_every_way(OpenAICompatibleModel('m', base_url='http://h/v1', api_key=' passed\n'))
    assert {request.headers['authorization'] for request in wire} == {'Bearer passed'}


HISTORY: list[ModelMessage] = [
    ModelRequest.user_text_prompt('?'),
    ModelResponse(parts=[ToolCallPart('look', {}, 'c1')]),
    ModelRequest(parts=[ToolReturnPart('look', ['a', 'b'], 'c1')]),
]


async def lessons_and_errors(model: Model, caplog: pytest.LogCaptureFixture) -> str:
    """All that is to be read of a model that learns from one refusal and fails at the next."""
    caplog.set_level(logging.DEBUG, 'oaicompat')
    async with model:
        with pytest.raises(ModelHTTPError) as caught:
            await model.request(HISTORY, None, ModelRequestParameters())
    error = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - our own bytes
    assert (type(error), str(error), error.status_code) == (type(caught.value), str(caught.value), 400)
    assert 'to be answered with' in caplog.text
    shown = [repr(model), repr(cast(Any, model).provider), str(error), repr(error), repr(vars(error))]
    return '\n'.join([*shown, caplog.text, repr(pickle.dumps(caught.value))])


@pytest.mark.parametrize('kind', [OpenAICompatibleModel, OpenAICompatibleResponsesModel])
async def test_a_key_is_nowhere_to_be_read(
    kind: type[OpenAICompatibleModel | OpenAICompatibleResponsesModel],
    scripted_server: type[ScriptedServer],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv('OPENAI_API_KEY', f'sk-{SECRET}')
    monkeypatch.setenv('DEEPSEEK_API_KEY', f'sk-{SECRET}')
    async with scripted_server([refuse(400, 'content should be a valid string'), refuse(400)]) as server:
        model = kind('m', base_url=server.base_url, api_key=f'sk-{SECRET}')
        shown = await lessons_and_errors(model, caplog)
    assert [request.headers['authorization'] for request in server.requests] == [f'Bearer sk-{SECRET}'] * 2
    assert SECRET not in shown


async def test_credentials_in_a_providers_url_are_nowhere_to_be_read(
    scripted_server: type[ScriptedServer], caplog: pytest.LogCaptureFixture
) -> None:
    """A `Provider` may be given such a URL; what we write must not hold it."""
    async with scripted_server([refuse(400, 'content should be a valid string'), refuse(400)]) as server:
        url = server.base_url.replace('http://', f'http://user:{SECRET}@')
        model = OpenAICompatibleModel('m', provider=OpenAICompatibleProvider('mine', base_url=url))
        shown = await lessons_and_errors(model, caplog)
    assert SECRET not in shown.replace(repr(model.provider), '')  # which is pydantic-ai's
