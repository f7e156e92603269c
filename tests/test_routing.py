"""The router: a string to a model of the right class, at the right server, with the right key."""

from __future__ import annotations

import importlib.util
import socket
from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn, cast

import httpx
import pytest
import respx
from dirty_equals import IsStr
from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model
from pydantic_ai.models.cerebras import CerebrasModel
from pydantic_ai.models.crusoe import CrusoeModel
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.github_copilot import GitHubCopilotModel
from pydantic_ai.models.ollama import OllamaModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.models.openrouter import OpenRouterModel
from pydantic_ai.models.snowflake import SnowflakeModel
from pydantic_ai.models.test import TestModel as StubModel
from pydantic_ai.models.zai import ZaiModel
from pydantic_ai.providers import Provider
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider
from respx.models import CallList

from oaicompat import OpenAICompatibleModel, OpenAICompatibleResponsesModel, Server, infer_model, register_server
from oaicompat.servers import servers
from oaicompat.testing import completion


class Row(NamedTuple):
    url: str
    keys: tuple[str, ...]
    model: type[OpenAIChatModel] = OpenAIChatModel
    provider: str = 'OpenAICompatibleProvider'
    name: str | None = None  # pydantic-ai's, where it isn't the prefix


COPILOT_KEYS = ('GITHUB_COPILOT_API_KEY', 'GITHUB_COPILOT_API_TOKEN', 'COPILOT_GITHUB_TOKEN')
MOONSHOT_KEYS = ('MOONSHOT_API_KEY', 'MOONSHOTAI_API_KEY')
LITELLM_KEYS = ('LITELLM_PROXY_API_KEY', 'LITELLM_API_KEY')
COPILOT_URL = 'https://api.githubcopilot.com'
ALIBABA_URL = 'https://dashscope-intl.aliyuncs.com/compatible-mode/v1'
GEMINI_URL = 'https://generativelanguage.googleapis.com/v1beta/openai'

HOSTED = {
    'deepseek': Row('https://api.deepseek.com', ('DEEPSEEK_API_KEY',), provider='DeepSeekProvider'),
    'grok': Row('https://api.x.ai/v1', ('XAI_API_KEY', 'X_AI_API_KEY', 'GROK_API_KEY')),
    'openrouter': Row('https://openrouter.ai/api/v1', ('OPENROUTER_API_KEY',), OpenRouterModel, 'OpenRouterProvider'),
    'perplexity': Row('https://api.perplexity.ai', ('PERPLEXITY_API_KEY',)),
    'zen': Row('https://opencode.ai/zen/v1', ('OPENCODE_API_KEY', 'OPENCODE_ZEN_API_KEY')),
    'copilot': Row(COPILOT_URL, COPILOT_KEYS, GitHubCopilotModel, 'GitHubCopilotProvider', 'github-copilot'),
    'groq-compat': Row('https://api.groq.com/openai/v1', ('GROQ_API_KEY',)),
    'mistral-compat': Row('https://api.mistral.ai/v1', ('MISTRAL_API_KEY',)),
    'anthropic-compat': Row('https://api.anthropic.com/v1', ('ANTHROPIC_API_KEY',)),
    'gemini-compat': Row(GEMINI_URL, ('GEMINI_API_KEY', 'GOOGLE_API_KEY')),
    'cerebras': Row('https://api.cerebras.ai/v1', ('CEREBRAS_API_KEY',), CerebrasModel, 'CerebrasProvider'),
    'together': Row('https://api.together.xyz/v1', ('TOGETHER_API_KEY',), provider='TogetherProvider'),
    'zai': Row('https://api.z.ai/api/paas/v4', ('ZAI_API_KEY',), ZaiModel, 'ZaiProvider'),
    'moonshotai': Row('https://api.moonshot.ai/v1', MOONSHOT_KEYS, provider='MoonshotAIProvider'),
    'alibaba': Row(ALIBABA_URL, ('DASHSCOPE_API_KEY', 'ALIBABA_API_KEY'), provider='AlibabaProvider'),
    'siliconflow': Row('https://api.siliconflow.com/v1', ('SILICONFLOW_API_KEY',)),
    'minimax': Row('https://api.minimax.io/v1', ('MINIMAX_API_KEY',)),
    'nvidia': Row('https://integrate.api.nvidia.com/v1', ('NVIDIA_API_KEY',)),
}
LOCAL = {
    'lm-studio': Row('http://localhost:1234/v1', ('LM_API_TOKEN', 'LM_STUDIO_API_KEY')),
    'ollama': Row('http://localhost:11434/v1', ('OLLAMA_API_KEY',), OllamaModel, 'OllamaProvider'),
    'llama-cpp': Row('http://localhost:8080/v1', ('LLAMA_API_KEY',)),
    'vllm': Row('http://localhost:8000/v1', ('VLLM_API_KEY',), provider='VLLMProvider'),
    'sglang': Row('http://localhost:30000/v1', ('SGLANG_API_KEY',)),
}
OWN = {**LOCAL, 'litellm': Row('http://proxy.test:4000', LITELLM_KEYS, provider='LiteLLMProvider')}
ROWS = {**HOSTED, **OWN}
COPILOT_HEADERS = {
    **dict.fromkeys(('editor-plugin-version', 'openai-intent', 'x-github-api-version'), IsStr(min_length=1)),
    'editor-version': IsStr(regex=r'vscode/[\d.]+'),
    'copilot-integration-id': 'vscode-chat',
}
CEREBRAS = {'x-cerebras-3rd-party-integration': 'pydantic-ai'}
HEADERS: dict[str, Any] = {'copilot': COPILOT_HEADERS, 'cerebras': CEREBRAS}
EVERYWHERE = {'host', 'accept', 'accept-encoding', 'connection', 'content-length', 'content-type', 'user-agent'}

each_prefix = pytest.mark.parametrize('prefix', sorted({row.prefix for row in servers()}))


@pytest.fixture(autouse=True)
def proxy_url(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('LITELLM_PROXY_API_BASE', 'http://proxy.test:4000')


@pytest.fixture
def all_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for row in ROWS.values():
        monkeypatch.setenv(row.keys[0], 'k-1')
    keys = ('OPENAI', 'META', 'FIREWORKS', 'NEBIUS', 'SAMBANOVA', 'CRUSOE', 'PYDANTIC_AI_GATEWAY')
    for name in (*(f'{key}_API_KEY' for key in keys), 'HEROKU_INFERENCE_KEY', 'SNOWFLAKE_TOKEN', 'SNOWFLAKE_ACCOUNT'):
        monkeypatch.setenv(name, 'k-1')
    monkeypatch.setenv('HF_TOKEN', 'k-1')
    monkeypatch.setenv('PYDANTIC_AI_GATEWAY_BASE_URL', 'https://gateway.test/proxy')


@pytest.fixture
def sent() -> Iterator[CallList]:
    """What leaves the default client; each request is answered."""
    with respx.mock(using='httpcore2', assert_all_called=False) as router:
        # OpenRouter's class wants to know the provider.
        yield router.route().respond(json={**completion('Hi'), 'provider': 'p'}).calls


def url_of(model: Model) -> str:
    return str(client_of(model).base_url).rstrip('/')


def client_of(model: Model) -> AsyncOpenAI:
    assert isinstance(model, OpenAIChatModel | OpenAIResponsesModel)
    return model.client


def own_headers(request: httpx.Request) -> dict[str, str]:
    headers = {name.lower(): value for name, value in request.headers.items()}
    return {name: value for name, value in headers.items() if name not in EVERYWHERE and 'stainless' not in name}


@pytest.mark.usefixtures('all_keys')
@each_prefix
def test_a_row_gives_ours_in_front_of_upstreams(prefix: str) -> None:
    row = ROWS[prefix]
    model = infer_model(f'{prefix}:a/m')
    assert isinstance(model, OpenAICompatibleModel)
    assert isinstance(model, row.model)
    assert type(model).__mro__.index(OpenAICompatibleModel) <= type(model).__mro__.index(row.model)
    assert type(model.provider).__name__ == row.provider
    assert (model.system, model.model_name, url_of(model)) == (row.name or prefix, 'a/m', row.url)


@each_prefix
def test_the_key_is_taken_from_each_variable_in_order(prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in reversed(ROWS[prefix].keys):
        monkeypatch.setenv(name, f'value-of-{name}')
        assert client_of(infer_model(f'{prefix}:a/m')).api_key == f'value-of-{name}'
    assert client_of(OpenAICompatibleModel('a/m', provider=prefix, api_key='mine')).api_key == 'mine'


@each_prefix
async def test_what_a_row_sends(prefix: str, monkeypatch: pytest.MonkeyPatch, sent: CallList) -> None:
    monkeypatch.setenv(ROWS[prefix].keys[-1], 'k-1')
    async with Agent(infer_model(f'{prefix}:a/m')) as agent:
        await agent.run('Hi')
    [request] = [call.request for call in sent]
    assert (request.method, str(request.url)) == ('POST', f'{ROWS[prefix].url}/chat/completions')
    assert own_headers(request) == {'authorization': 'Bearer k-1', **HEADERS.get(prefix, {})}


@pytest.mark.parametrize('prefix', HOSTED)
@pytest.mark.parametrize('suffix', ['', '+responses'])
def test_a_missing_key_names_every_variable(prefix: str, suffix: str) -> None:
    variables = ' or '.join(HOSTED[prefix].keys)
    with pytest.raises(UserError) as caught:
        infer_model(f'{prefix}{suffix}:a/m')
    assert str(caught.value) == f'no key for `{prefix}:`: set {variables}, or pass `api_key` to the model'


@pytest.mark.parametrize('prefix', OWN)
async def test_a_server_of_ones_own_needs_no_key(prefix: str, sent: CallList) -> None:
    async with Agent(infer_model(f'{prefix}:a/m')) as agent:
        await agent.run('Hi')
    assert own_headers(sent[0].request)['authorization'] in ('Bearer api-key-not-set', 'Bearer litellm-placeholder')


def test_litellm_needs_a_base_url(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv('LITELLM_PROXY_API_BASE')
    monkeypatch.setenv('OPENAI_BASE_URL', 'http://elsewhere.test/v1')
    with pytest.raises(UserError) as caught:
        infer_model('litellm:m')
    assert 'set LITELLM_PROXY_API_BASE or LITELLM_BASE_URL, or pass `base_url`' in str(caught.value)
    assert url_of(OpenAICompatibleModel('m', provider='litellm', base_url='http://p.test')) == 'http://p.test'


@pytest.mark.parametrize('row', [row for row in servers() if row.url_vars], ids=lambda row: row.prefix)
@pytest.mark.parametrize('written', ['https://proxy.test/v1', 'https://proxy.test/v1/', ' https://proxy.test/v1'])
def test_a_base_url_variable_moves_the_row_with_its_key(
    row: Server, written: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever sets a row's own variable means its key to go there; a trailing slash changes nothing."""
    monkeypatch.delenv('LITELLM_PROXY_API_BASE')
    monkeypatch.setenv(row.url_vars[-1], written)
    monkeypatch.setenv(row.key_vars[0], 'k-1')
    model = infer_model(f'{row.prefix}:m')
    assert (url_of(model), client_of(model).api_key) == ('https://proxy.test/v1', 'k-1')


@pytest.mark.parametrize('prefix', LOCAL)
def test_a_local_runtime_gets_the_scheme_and_v1(prefix: str) -> None:
    assert url_of(OpenAICompatibleModel('m', provider=prefix, base_url='localhost:9')) == 'http://localhost:9/v1'


def test_a_bad_base_url_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('VLLM_BASE_URL', 'nonsense')
    with pytest.raises(UserError, match=r'VLLM_BASE_URL.*nonsense'):
        infer_model('vllm:m')


@pytest.mark.usefixtures('all_keys')
@pytest.mark.parametrize(
    ('identifier', 'form'),
    [
        ('deepseek:deepseek-chat', 'joined'), ('zai:glm-5', 'joined'), ('glm:glm-5', 'joined'),
        ('lm_studio:qwen3', 'joined'), ('vllm:qwen3', 'auto'), ('openrouter:a/b', 'auto'), ('llama-cpp:m', 'auto'),
    ],
)  # fmt: skip
def test_a_row_sets_its_knobs(identifier: str, form: str) -> None:
    assert infer_model(identifier).profile.get('compat_tool_return', 'auto') == form


@pytest.mark.usefixtures('all_keys')
def test_upstreams_profile_is_kept() -> None:
    ours, theirs = infer_model('zai:glm-5').profile, ZaiModel('glm-5').profile
    changed = {key: value for key, value in ours.items() if theirs.get(key) != value}
    assert changed == {'compat_tool_return': 'joined', 'openai_chat_supports_multiple_system_messages': False}
    assert theirs.keys() <= ours.keys()


@pytest.mark.usefixtures('all_keys')
def test_a_vendors_family_profile_holds_for_names_without_the_vendor() -> None:
    elsewhere = OpenAICompatibleModel('grok-4', base_url='https://elsewhere.test/v1')
    models = infer_model('grok:grok-4'), infer_model('grok:x-ai/grok-4'), elsewhere
    grok, vendor, other = [{**model.profile, 'context_window': None} for model in models]
    assert grok == vendor != other


@pytest.mark.usefixtures('all_keys')
@pytest.mark.parametrize(
    ('written', 'name', 'url'),
    [
        ('glm', 'zai', 'https://api.z.ai/api/paas/v4'), ('kimi', 'moonshotai', 'https://api.moonshot.ai/v1'),
        ('DashScope', 'alibaba', ALIBABA_URL), ('xai-compat', 'grok', 'https://api.x.ai/v1'),
        ('LM_Studio', 'lm-studio', 'http://localhost:1234/v1'), ('github-copilot', 'github-copilot', COPILOT_URL),
    ],
)  # fmt: skip
def test_aliases_and_spellings(written: str, name: str, url: str) -> None:
    model = infer_model(f'{written}:m')
    assert isinstance(model, OpenAICompatibleModel)
    assert (model.system, url_of(model)) == (name, url)


async def test_a_users_row_is_one_call_away(monkeypatch: pytest.MonkeyPatch, sent: CallList) -> None:
    row = Server(prefix='acme', base_url='https://a.test', key_vars=('ACME_API_KEY',), headers={'X-Team': 'blue'})
    register_server(row)
    monkeypatch.setenv('ACME_API_KEY', 'k-1')
    async with Agent(infer_model('acme:m')) as agent:
        await agent.run('Hi')
    assert str(sent[0].request.url) == 'https://a.test/chat/completions'
    assert own_headers(sent[0].request) == {'authorization': 'Bearer k-1', 'x-team': 'blue'}


@pytest.mark.usefixtures('all_keys')
@pytest.mark.parametrize(
    ('identifier', 'kind', 'url'),
    [
        ('openai-chat:glm-5', OpenAICompatibleModel, 'https://api.openai.com/v1'),
        ('openai:gpt-5', OpenAIResponsesModel, 'https://api.openai.com/v1'),
        ('openai-responses:gpt-5', OpenAICompatibleResponsesModel, 'https://api.openai.com/v1'),
        ('vllm+responses:qwen3', OpenAICompatibleResponsesModel, 'http://localhost:8000/v1'),
        ('LM_Studio+responses:qwen3:8b', OpenAICompatibleResponsesModel, 'http://localhost:1234/v1'),
        ('fireworks+responses:m', OpenAICompatibleResponsesModel, 'https://api.fireworks.ai/inference/v1'),
        ('meta:m', OpenAIResponsesModel, 'https://api.meta.ai/v1'),
    ],
)
def test_which_api_a_prefix_means(identifier: str, kind: type[Model], url: str) -> None:
    model = infer_model(identifier)
    assert type(model) is kind
    assert (model.model_name, url_of(model)) == (identifier.partition(':')[2], url)


@pytest.mark.usefixtures('all_keys')
@pytest.mark.parametrize(
    ('prefix', 'sdk', 'name'),
    [
        ('xai', 'xai_sdk', 'XaiModel'), ('groq', 'groq', 'GroqModel'), ('mistral', 'mistralai', 'MistralModel'),
        ('huggingface', 'huggingface_hub', 'HuggingFaceModel'), ('anthropic', 'anthropic', 'AnthropicModel'),
        ('google', 'google', 'GoogleModel'),
    ],
)  # fmt: skip
def test_native_classes_stay_upstreams(prefix: str, sdk: str, name: str) -> None:
    if importlib.util.find_spec(sdk) is None:
        with pytest.raises(ImportError, match=r'pydantic-ai-slim\['):
            infer_model(f'{prefix}:a/m')
    else:
        assert type(infer_model(f'{prefix}:a/m')).__name__ == name


@pytest.mark.usefixtures('all_keys')
@pytest.mark.parametrize(
    ('identifier', 'kind', 'provider'),
    [
        ('fireworks:m', OpenAIChatModel, 'FireworksProvider'), ('heroku:m', OpenAIChatModel, 'HerokuProvider'),
        ('nebius:m', OpenAIChatModel, 'NebiusProvider'), ('sambanova:m', OpenAIChatModel, 'SambaNovaProvider'),
        ('cerebras:m', CerebrasModel, 'CerebrasProvider'), ('crusoe:m', CrusoeModel, 'CrusoeProvider'),
        ('snowflake:m', SnowflakeModel, 'SnowflakeProvider'),
        ('gateway/openai-chat:m', OpenAIChatModel, 'OpenAIProvider'),
    ],
)  # fmt: skip
def test_what_only_pydantic_ai_knows_is_rebuilt_as_ours(
    identifier: str, kind: type[OpenAIChatModel], provider: str
) -> None:
    model = infer_model(identifier)
    assert isinstance(model, OpenAICompatibleModel)
    assert isinstance(model, kind)
    assert (type(model.provider).__name__, model.model_name) == (provider, 'm')
    assert client_of(model).api_key == 'k-1'


def test_commas_make_a_fallback() -> None:
    model = infer_model('ollama:qwen2.5:7b, vllm:a, test')
    assert isinstance(model, FallbackModel)
    assert [child.model_name for child in model.models] == ['qwen2.5:7b', 'a', 'test']
    assert [type(child).__mro__[1] for child in model.models[:1]] == [OpenAICompatibleModel]


@pytest.mark.parametrize(('text', 'answer'), [('test:Hi', 'Hi'), ('test:a, b: c', 'a, b: c'), (' test:a, b ', 'a, b')])
async def test_the_test_model_says_its_text(text: str, answer: str) -> None:
    assert (await Agent(infer_model(text)).run('?')).output == answer


def test_a_model_passes_through() -> None:
    model = infer_model('test')
    assert isinstance(model, StubModel)
    assert infer_model(model) is model


@pytest.mark.parametrize('name', ['qwen2.5:7b', 'hf.co/org/model:Q4_K_M', 'a:b:c', 'openai-chat:x'])
def test_only_the_first_colon_splits(name: str) -> None:
    assert infer_model(f'ollama:{name}').model_name == name
    assert OpenAICompatibleModel(name, base_url='http://h/v1').model_name == name


@pytest.mark.parametrize(
    ('identifier', 'error'),
    [
        ('', "`model` is '', without a prefix; expected one such as openai-chat:glm-5"),
        ('lm-studio', "`model` is 'lm-studio', without a prefix; expected lm-studio:NAME, with the name of a model"),
        ('vllm/qwen', "`model` is 'vllm/qwen', without a prefix; expected vllm:qwen, with the name of a model"),
        ('openai', "`model` is 'openai', without a prefix; expected openai:NAME, with the name of a model"),
        ('http://u:pw@gpu:8000/v1', "`model` is the URL 'http://gpu:8000/v1'; give OpenAICompatibleModel the name"),
        ('glm-5', "`model` is 'glm-5', without a prefix; expected one such as openai-chat:glm-5"),
        (':glm-5', "':glm-5' has no prefix before the colon, as in openai-chat:glm-5"),
        ('+responses:m', "'+responses:m' has no prefix before the colon, as in openai-chat:glm-5"),
        ('vllm:', "'vllm:' names no model; expected a name behind the colon, as in openai-chat:glm-5"),
        ('fireworks: ', "'fireworks:' names no model; expected a name behind the colon, as in openai-chat:glm-5"),
        ('vllm:a,,vllm:b', "`model` is 'vllm:a,,vllm:b'; expected names between the commas"),
        ('vllm:a,', "`model` is 'vllm:a,'; expected names between the commas"),
        ('deepsek:m', r'did you mean `deepseek:`'), ('openai-caht:m', r'did you mean `openai-chat:`'),
        ('firworks:m', r'`fireworks:`'), ('deepsek+responses:m', r'did you mean `deepseek:`'), ('qqqqq:m', r'known: `'),
    ],
)  # fmt: skip
def test_a_bad_identifier_is_one_clear_error(identifier: str, error: str) -> None:
    with pytest.raises(UserError) as caught:
        infer_model(identifier)
    assert error in str(caught.value)
    assert '\n' not in str(caught.value)


def test_a_value_of_another_type_is_told_by_its_type() -> None:
    with pytest.raises(UserError, match='`model` must be a string or a Model, not int'):
        infer_model(cast(str, 5))


@pytest.mark.parametrize(
    ('identifier', 'asked'),
    [
        ('vllm:m', 'vllm'), ('glm:m', 'zai'), ('copilot:m', 'github-copilot'), ('grok:m', 'grok'),
        ('fireworks:m', 'fireworks'), ('vllm+responses:m', 'vllm'), ('openai:m', 'openai'),
        ('openai-chat:m', 'openai-chat'), ('openai-responses:m', 'openai-responses'),
    ],
)  # fmt: skip
def test_a_provider_factory_is_asked_and_its_provider_used(identifier: str, asked: str) -> None:
    names: list[str] = []
    made = OpenAICompatibleProvider('mine', base_url='http://mine.test/v1')

    def factory(name: str) -> Provider[Any]:
        names.append(name)
        return made

    model = infer_model(identifier, provider_factory=factory)
    assert names == [asked]
    assert (client_of(model), model.system) == (made.client, 'mine')


@each_prefix
def test_construction_does_no_io(prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> NoReturn:
        pytest.fail('a socket was made')

    monkeypatch.setattr(socket, 'socket', refuse)
    monkeypatch.setattr(socket, 'getaddrinfo', refuse)
    monkeypatch.setenv(ROWS[prefix].keys[0], 'k-1')
    assert infer_model(f'{prefix}:a/m').model_name == infer_model(f'{prefix}+responses:a/m').model_name == 'a/m'


class Named(OpenAICompatibleModel):
    """Takes options of its own, one where it is made and one where it is initialised."""

    title: str

    def __new__(cls, *_: Any, title: str = '', **__: Any) -> Named:
        made = super().__new__(cls)
        made.title = title
        return made

    def __init__(self, *args: Any, caption: str = '', **options: Any) -> None:
        options.pop('title', None)
        super().__init__(*args, **options)
        self.caption = caption


@pytest.mark.parametrize(
    ('kind', 'name', 'hint'),
    [
        (OpenAICompatibleModel, 'bas_url', '; did you mean `base_url`?'),
        (OpenAICompatibleModel, 'temperature', ''),
        (OpenAICompatibleResponsesModel, 'history_digest_kei', '; did you mean `history_digest_key`?'),
        (Named, 'captoin', '; did you mean `caption`?'),
        (Named, 'titel', '; did you mean `title`?'),
    ],
)
def test_an_unknown_argument_is_named_with_the_nearest(kind: Any, name: str, hint: str) -> None:
    with pytest.raises(UserError) as raised:
        kind('m', base_url='http://localhost:1/v1', **{name: 'x'})
    assert str(raised.value) == f'unknown argument `{name}`{hint}'


def test_arguments_of_a_subclass() -> None:
    made = Named('m', base_url='http://localhost:1/v1', title='A', caption='B')
    assert (made.title, made.caption) == ('A', 'B')
