"""Lists of models: what servers send, page by page, and whom is asked with which key."""

from __future__ import annotations

from typing import Any

import pytest
from openai import AsyncOpenAI
from pydantic_ai import exceptions as e
from pydantic_ai.providers import Provider
from pydantic_ai.providers.openai import OpenAIProvider
from typing_extensions import override

from oaicompat import ListedModel, OpenAICompatibleModel, Server, list_models, register_server
from oaicompat._listing import following
from oaicompat.discovery import models_in, models_of
from oaicompat.testing import RecordedRequest, Reply, ScriptedServer

KEY = 'made-up-key'
SECRET = 'hunter2'


def listed(name: str, size: int | None = None, owner: str | None = None, /, **raw: Any) -> ListedModel:
    """A model whose raw item has its id under `id`."""
    return ListedModel(name, size, owner, {'id': name, **raw})


OPENAI_ITEM = {'object': 'model', 'created': 1, 'owned_by': 'openai'}
OLLAMA = {'name': 'qwen3:8b', 'model': 'qwen3:8b', 'details': None}
GEMINI = {'name': 'models/gemini-2.5-flash', 'displayName': 'Flash', 'inputTokenLimit': 1048576}
STUDIO = {'type': 'llm', 'key': 'qwen3-8b', 'display_name': 'Qwen3 8B', 'max_context_length': 40960}
LITELLM = {'model_name': 'gpt', 'litellm_params': {'model': 'openai/gpt'}, 'model_info': {'max_input_tokens': 8192}}
NATIVE = {'name': 'm.gguf', 'model': 'm.gguf', 'type': 'model'}

BODIES: dict[str, tuple[Any, list[ListedModel]]] = {
    'OpenAI': (
        {'object': 'list', 'data': [{'id': 'gpt-5', **OPENAI_ITEM}, {'id': 'text-embedding-3', **OPENAI_ITEM}]},
        [listed('gpt-5', None, 'openai', **OPENAI_ITEM), listed('text-embedding-3', None, 'openai', **OPENAI_ITEM)],
    ),
    'Together: an array': ([{'id': 'a/b', 'context_length': 131072}], [listed('a/b', 131072, context_length=131072)]),
    'Spice: an array of names': (
        [{'name': 'llama', 'from': 'hf'}],
        [ListedModel('llama', raw={'name': 'llama', 'from': 'hf'})],
    ),
    'OpenRouter: a display name beside the id': (
        {'data': [{'id': 'x/y', 'name': 'Why', 'context_length': 4096}]},
        [listed('x/y', 4096, name='Why', context_length=4096)],
    ),
    'Ollama': ({'models': [OLLAMA]}, [ListedModel('qwen3:8b', raw=OLLAMA)]),
    'Ollama without models': ({'object': 'list', 'data': None}, []),
    'Gemini': ({'models': [GEMINI]}, [ListedModel('models/gemini-2.5-flash', 1048576, raw=GEMINI)]),
    'LM Studio': ({'models': [STUDIO]}, [ListedModel('qwen3-8b', 40960, raw=STUDIO)]),
    'LiteLLM': ({'data': [LITELLM]}, [ListedModel('gpt', 8192, raw=LITELLM)]),
    'llama.cpp: twice, once with more': (
        {'models': [NATIVE], 'object': 'list', 'data': [{'id': 'm.gguf', 'meta': {'n_ctx_train': 8192}}]},
        [listed('m.gguf', 8192, meta={'n_ctx_train': 8192})],
    ),
    'the empty one of two': ({'data': [], 'models': ['a']}, [listed('a')]),
    'names alone': (['a', 'b'], [listed('a'), listed('b')]),
    'names alone, in an object': ({'data': ['a', '', ' ']}, [listed('a')]),
    'ids as keys': (
        {'data': {'a': {'context_window': 1024}, 'b': {'id': 'B', 'object': 'model'}, 'c': {'name': 'See'}}},
        [
            ListedModel('a', 1024, raw={'context_window': 1024}),
            listed('B', object='model'),
            ListedModel('c', raw={'name': 'See'}),
        ],
    ),
    'ids as keys, without an envelope': ({'a': {'object': 'model'}}, [ListedModel('a', raw={'object': 'model'})]),
    'an envelope in an envelope': ({'code': 0, 'message': 'ok', 'data': {'models': [{'id': 'a'}]}}, [listed('a')]),
    'a word of success': ({'message': 'success', 'status': 'ok', 'data': [{'id': 'a'}]}, [listed('a')]),
    'twice': ([{'id': 'a', 'n': 1}, {'id': 'b'}, {'id': 'a', 'n': 2}], [listed('a', n=1), listed('b')]),
    'no models between models': (
        [None, 5, True, [], {}, {'id': None}, {'id': ''}, {'id': 5}, {'id': 'x', 'object': 'error'}, {'id': 'a'}],
        [listed('a')],
    ),
    'a number beside the name': ([{'id': 7, 'name': 'a'}], [ListedModel('a', raw={'id': 7, 'name': 'a'})]),
    'an owner that is none': ([{'id': 'a', 'owned_by': 5}], [listed('a', owned_by=5)]),
    'nothing': ([], []),
    'nothing, in an object': ({'data': [], 'object': 'list'}, []),
}  # fmt: skip


@pytest.mark.parametrize(('body', 'expected'), BODIES.values(), ids=BODIES)
async def test_whatever_servers_send_is_read(body: Any, expected: list[ListedModel]) -> None:
    async with ScriptedServer([Reply.json(body)]) as server:
        assert await list_models(base_url=server.base_url, api_key=KEY) == expected
    assert models_in(body) == expected
    [request] = server.requests
    assert (request.method, request.path, request.body) == ('GET', '/v1/models', b'')
    assert request.headers['authorization'] == f'Bearer {KEY}'


WINDOWS: list[tuple[dict[str, Any], int | None]] = [
    ({'context_length': 4096}, 4096),
    ({'context_window': 4096}, 4096),
    ({'max_model_len': 4096}, 4096),
    ({'max_context_length': 4096}, 4096),
    ({'max_context_length': 131072, 'loaded_context_length': 4096}, 4096),
    ({'max_context_length': 131072, 'loaded_instances': [{'config': {'context_length': 4096}}]}, 4096),
    ({'max_context_length': 4096, 'loaded_instances': []}, 4096),
    ({'inputTokenLimit': 4096}, 4096),
    ({'max_input_tokens': 4096, 'max_tokens': 512}, 4096),
    ({'meta': {'n_ctx_train': 131072}}, 131072),
    ({'meta': {'n_ctx_train': 131072, 'n_ctx': 4096}}, 4096),
    ({'n_ctx': 4096}, 4096),
    ({'limits': {'max_input_tokens': 4096, 'max_output_tokens': 512}}, 4096),
    ({'limits': {'max_context_window_tokens': 4096}}, 4096),
    ({'limit': {'context': 4096, 'output': 512}}, 4096),
    ({'context_length': 1048576, 'top_provider': {'context_length': 32000}}, 1048576),
    ({'context_length': None, 'top_provider': {'context_length': 32000}}, 32000),
    ({'capabilities': {'limits': {'max_context_window_tokens': 4096, 'max_prompt_tokens': 512}}}, 4096),
    ({'capabilities': ['streaming'], 'limits': {'max_input_tokens': 4096}}, 4096),
    ({'model_info': {'max_input_tokens': 4096}}, 4096),
    ({'details': {'context_length': 4096}}, 4096),
    ({'context_length': '4096'}, 4096),
    ({'context_length': ' 4096.0 '}, 4096),
    ({'context_length': 4096.0}, 4096),
    ({'context_length': 0, 'context_window': 4096}, 4096),
    *[({'context_length': odd}, None) for odd in (
        None, True, 0, -1, 0.5, 4096.5, 1e30, 10**12, '', '4k', '4096.5', '-1', '1e3', '٤', '9' * 5000, [4096],
    )],
    ({'max_tokens': 4096, 'max_output_tokens': 4096}, None),
]  # fmt: skip


@pytest.mark.parametrize(('fields', 'size'), WINDOWS)
def test_the_context_window_where_it_is_told(fields: dict[str, Any], size: int | None) -> None:
    assert models_in({'data': [{'id': 'a', **fields}]}) == [listed('a', size, **fields)]


@pytest.mark.parametrize('size', ['NaN', 'Infinity', '-Infinity'])
async def test_a_context_window_that_is_no_number(size: str) -> None:
    async with ScriptedServer([Reply.raw(f'[{{"id": "a", "context_length": {size}}}]'.encode())]) as server:
        [model] = await list_models(base_url=server.base_url)
    assert (model.id, model.context_window) == ('a', None)


async def test_the_content_type_makes_no_difference() -> None:
    for kind in ('text/plain', 'text/html; charset=utf-8', 'application/octet-stream'):
        async with ScriptedServer([Reply.raw(b'\xef\xbb\xbf{"data": [{"id": "\xc3\xa4"}]}', 200, kind)]) as server:
            assert await list_models(base_url=server.base_url) == [listed('ä')]


def test_raw_items_stay_out_of_reprs_and_hashes() -> None:
    model = listed('a', 1, None, api_key=SECRET)
    assert repr(model) == "ListedModel(id='a', context_window=1, owned_by=None)"
    assert len({model, model}) == 1


# Pages


PAGED: dict[str, tuple[list[Any], list[str], list[str]]] = {
    'has_more': (
        [{'data': ['a', 'b'], 'has_more': True, 'last_id': 'b'}, {'data': ['c'], 'has_more': False, 'last_id': 'c'}],
        ['/v1/models', '/v1/models?after=b&after_id=b'],
        ['a', 'b', 'c'],
    ),
    'has_more without a last id': (
        [{'data': ['a', 'b'], 'has_more': True}, {'data': ['c']}],
        ['/v1/models', '/v1/models?after=b&after_id=b'],
        ['a', 'b', 'c'],
    ),
    'tokens': (
        [{'models': ['a'], 'nextPageToken': 't 1'}, {'models': ['b'], 'nextPageToken': ''}],
        ['/v1/models', '/v1/models?pageToken=t+1'],
        ['a', 'b'],
    ),
    'tokens in snake case': (
        [{'data': ['a'], 'next_page_token': 't'}, {'data': ['b'], 'next_page_token': None}],
        ['/v1/models', '/v1/models?page_token=t'],
        ['a', 'b'],
    ),
    'a cursor': (
        [{'data': ['a'], 'next_cursor': 't'}, {'data': ['b']}],
        ['/v1/models', '/v1/models?cursor=t'],
        ['a', 'b'],
    ),
    'a link': (
        [{'data': ['a'], 'next': '/v1/models?page=2'}, {'data': ['b'], 'links': {'next': '?page=3&n='}}, ['c']],
        ['/v1/models', '/v1/models?page=2', '/v1/models?page=3&n='],
        ['a', 'b', 'c'],
    ),
    'the same page for ever': (
        [{'data': ['a'], 'has_more': True, 'last_id': 'a'}] * 2,
        ['/v1/models', '/v1/models?after=a&after_id=a'],
        ['a'],
    ),
    'an empty page': (
        [{'data': ['a'], 'has_more': True, 'last_id': 'a'}, {'data': None, 'has_more': True}],
        ['/v1/models', '/v1/models?after=a&after_id=a'],
        ['a'],
    ),
    'models of two pages once': (
        [{'data': ['a', 'b'], 'has_more': True, 'last_id': 'b'}, {'data': ['b', 'c']}],
        ['/v1/models', '/v1/models?after=b&after_id=b'],
        ['a', 'b', 'c'],
    ),
    'more of nothing': ([{'data': [], 'has_more': True}], ['/v1/models'], []),
}  # fmt: skip


@pytest.mark.parametrize(('answers', 'asked', 'ids'), PAGED.values(), ids=PAGED)
async def test_pages(answers: list[Any], asked: list[str], ids: list[str]) -> None:
    async with ScriptedServer([Reply.json(answer) for answer in answers]) as server:
        found = await list_models(base_url=server.base_url, api_key=KEY)
    assert [model.id for model in found] == ids
    assert [request.path for request in server.requests] == asked
    assert {request.headers['authorization'] for request in server.requests} == {f'Bearer {KEY}'}


async def test_a_link_to_the_server_itself() -> None:
    def handler(request: RecordedRequest) -> Reply:
        if request.path == '/v1/models':
            return Reply.json({'data': ['a'], 'next': f'http://{request.headers["host"]}/v1/models?page=2'})
        return Reply.json({'data': ['b']})

    async with ScriptedServer(handler) as server:
        assert [model.id for model in await list_models(base_url=server.base_url)] == ['a', 'b']


URL = 'https://llm.test/v1/models'


@pytest.mark.parametrize(
    'link',
    [
        'https://other.test/v1/models?page=2', 'http://llm.test/v1/models?page=2', 'https://llm.test:8443/v1/models',
        'https://me:pw@llm.test/v1/models', '//other.test/v1/models', 'https://[', 'https://llm.test:x/', 'page-2',
        5, None, True, ['/v1/models'], {'url': '/v1/models'},
    ],
)  # fmt: skip
def test_a_link_to_elsewhere_is_none(link: Any) -> None:
    """A key goes only to its own host."""
    assert following({'data': ['a'], 'next': link}, URL) is None


def test_a_link_may_have_a_query() -> None:
    assert following({'next': '?a=1&b=&a=2#x'}, URL) == (URL, {'a': '2', 'b': ''})
    assert following({'_links': {'next': {'href': '/v2/models'}}}, URL) == ('https://llm.test/v2/models', {})
    assert following(['a'], URL) is None


async def test_there_is_an_end_to_pages() -> None:
    def handler(request: RecordedRequest) -> Reply:
        number = int(request.path.rpartition('=')[2]) + 1 if '=' in request.path else 0
        return Reply.json({'data': [str(number)], 'has_more': True, 'last_id': str(number)})

    async with ScriptedServer(handler) as server:
        assert len(await list_models(base_url=server.base_url)) == 50


async def test_a_server_that_refuses_its_own_pages(caplog: pytest.LogCaptureFixture) -> None:
    first = Reply.json({'data': ['a'], 'has_more': True, 'last_id': 'a'})
    refusal = Reply.json({'error': {'message': 'unknown query parameter'}}, 422)
    async with ScriptedServer([first, refusal]) as server:
        assert await list_models(base_url=server.base_url) == [listed('a')]
    [record] = caplog.records
    assert (record.levelname, 'refuses the next page' in record.message) == ('WARNING', True)


async def test_another_fault_in_a_later_page_is_an_error() -> None:
    """Half of a list looks like the whole of it."""
    first = Reply.json({'data': ['a'], 'has_more': True, 'last_id': 'a'})
    async with ScriptedServer([first, Reply.json({'error': {'message': 'who are you'}}, 401)]) as server:
        with pytest.raises(e.ModelHTTPError) as caught:
            await list_models(base_url=server.base_url)
    assert caught.value.status_code == 401


# Whom is asked, and with which key


async def test_a_prefix_names_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    async with ScriptedServer(lambda _: Reply.json(['a'])) as server:
        monkeypatch.setenv('LM_STUDIO_BASE_URL', server.root_url)
        monkeypatch.setenv('LM_API_TOKEN', KEY)
        for name in ('lm-studio', 'lm_studio', 'lm-studio:qwen3'):
            assert await list_models(name) == [listed('a')]
    assert {request.path for request in server.requests} == {'/v1/models'}
    assert {request.headers['authorization'] for request in server.requests} == {f'Bearer {KEY}'}


async def test_a_prefix_elsewhere() -> None:
    async with ScriptedServer([Reply.json(['a'])]) as server:
        assert await list_models('vllm', base_url=server.root_url, api_key=KEY) == [listed('a')]
    assert server.requests[0].path == '/v1/models'


@pytest.mark.parametrize('path', ['/v1', '/v1/', '/v1/models', '/v1/chat/completions'])
async def test_a_url_in_place_of_a_prefix(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('OPENAI_API_KEY', SECRET)
    monkeypatch.setenv('OPENAI_ORG_ID', SECRET)
    async with ScriptedServer(lambda _: Reply.json(['a'])) as server:
        for url in (f'{server.root_url}{path}', f'127.0.0.1:{server.port}{path}'):
            assert await list_models(url) == [listed('a')]
    for request in server.requests:
        assert (request.path, [value for value in request.headers.values() if SECRET in value]) == ('/v1/models', [])


async def test_the_default_is_where_openai_points(monkeypatch: pytest.MonkeyPatch) -> None:
    async with ScriptedServer(lambda _: Reply.json(['a'])) as server:
        monkeypatch.setenv('OPENAI_BASE_URL', server.base_url)
        monkeypatch.setenv('OPENAI_API_KEY', KEY)
        for provider in (None, 'openai', 'openai-chat'):
            assert await list_models(provider) == [listed('a')]
    assert {request.headers['authorization'] for request in server.requests} == {f'Bearer {KEY}'}


async def test_a_provider_of_ones_own_stays_open() -> None:
    async with ScriptedServer(lambda _: Reply.json(['a'])) as server:
        client = AsyncOpenAI(
            base_url=server.base_url, api_key=KEY, default_headers={'x-team': 't'}, default_query={'api-version': '1'}
        )
        async with client:
            for _ in range(2):
                assert await list_models(OpenAIProvider(openai_client=client)) == [listed('a')]
    assert [(request.path, request.headers['x-team']) for request in server.requests] == [
        ('/v1/models?api-version=1', 't')
    ] * 2
    assert server.connections == 1


async def test_headers_of_a_row_go_along() -> None:
    async with ScriptedServer([Reply.json(['a'])]) as server:
        register_server(Server(prefix='acme', base_url=server.base_url, kind='local', headers={'x-team': 't'}))
        assert await list_models('acme') == [listed('a')]
    assert server.requests[0].headers['x-team'] == 't'


class Native(Provider[Any]):
    """A provider with a client of its own kind."""

    base_url, client = 'https://api.groq.com', object()

    def __init__(self, name: str) -> None:
        self._named = name

    @property
    @override
    def name(self) -> str:
        return self._named


NATIVE_ONLY = 'the provider `{}` in pydantic-ai is not OpenAI-compatible'


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        ({'provider': Native('groq')}, f'{NATIVE_ONLY.format("groq")}; did you mean `groq-compat`?'),
        ({'provider': Native('cohere')}, NATIVE_ONLY.format('cohere')),
        ({'provider': 'deepseek'}, 'no key for `deepseek:`: set DEEPSEEK_API_KEY, or pass `api_key` to the model'),
        ({'provider': 'deepseak', 'api_key': SECRET}, 'unknown prefix `deepseak:`; did you mean `deepseek:`?'),
        ({'provider': 'ftp://host'}, "`base_url`: 'ftp://host' is not an http or https URL"),
        ({'base_url': f'http://me:{SECRET}@host'}, '`base_url`: credentials in a URL would show up in logs'),
        ({'provider': f'http://me:{SECRET}@host'}, '`base_url`: credentials in a URL would show up in logs'),
        ({'base_url': 'http://host', 'api_key': f'{SECRET}\n{SECRET}'}, '`api_key` holds a space, a line break'),
        ({'provider': OpenAIProvider(api_key=SECRET), 'api_key': SECRET}, '`api_key` and a `Provider` say the same'),
        ({'provider': 5}, '`provider` must be a prefix or a Provider, not int'),
    ],
)
async def test_a_mistake_is_an_error_of_its_own(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(e.UserError) as caught:
        await list_models(**arguments)
    assert str(caught.value).startswith(message)
    assert SECRET not in str(caught.value)


async def test_with_the_client_and_settings_of_a_model() -> None:
    async with ScriptedServer([Reply.json(['a'])]) as server:
        async with OpenAICompatibleModel('m', base_url=server.base_url, api_key=KEY) as model:
            settings = {'extra_headers': {'x-team': 't'}, 'timeout': 7}
            assert await models_of(model.client, model._endpoint, settings) == [listed('a')]
    [request] = server.requests
    assert (request.headers['x-team'], request.headers['x-stainless-read-timeout']) == ('t', '7')


async def test_timeouts_are_those_of_a_model() -> None:
    """The SDK reports them with every request."""
    async with ScriptedServer([Reply.json(['a'])]) as server:
        await list_models(base_url=server.base_url)
    assert server.requests[0].headers['x-stainless-read-timeout'] == '600.0'
