"""Server rows: data that can be trusted, and a registry that users extend in one call."""

from __future__ import annotations

import itertools
import re
import sys
import threading
from collections.abc import Callable
from datetime import date
from typing import Any
from urllib.parse import urlsplit

import pytest
from pydantic_ai import messages as m
from pydantic_ai.exceptions import UserError
from pydantic_ai.models import ModelRequestParameters

from oaicompat import CompatibleModelProfile, OpenAICompatibleModel, Server, infer_model, register_server
from oaicompat._dialects import DIALECTS
from oaicompat.servers import find_server, nearest_prefixes, registry_restored_on_error, server_at, servers
from oaicompat.testing import Reply, ScriptedServer, completion

ROWS = list(servers())

each_row = pytest.mark.parametrize('row', ROWS, ids=lambda row: row.prefix)


def spelling(prefix: str) -> str:
    return prefix.lower().replace('_', '-')


@each_row
def test_a_row_has_its_evidence(row: Server) -> None:
    assert urlsplit(row.evidence).scheme == 'https'
    assert date(2026, 11, 1) <= date.fromisoformat(row.read) <= date(2026, 12, 31)
    assert row.title


@each_row
def test_a_claim_that_changes_behaviour_has_a_link(row: Server) -> None:
    if row.profile:
        assert 'https://' in row.known


@each_row
def test_a_row_says_where_it_is_and_which_key_it_takes(row: Server) -> None:
    assert row.base_url is not None or row.url_vars
    assert row.kind == 'hosted' or row.url_vars
    assert row.key_vars
    assert all(re.fullmatch(r'[A-Z][A-Z0-9_]+', name) for name in (*row.key_vars, *row.url_vars))
    assert not any(name.startswith('OPENAI_') for name in (*row.key_vars, *row.url_vars))


@each_row
def test_only_local_servers_are_reached_in_the_clear(row: Server) -> None:
    expected = {'hosted': 'https', 'local': 'http', 'self-hosted': ''}[row.kind]
    assert urlsplit(row.base_url or '').scheme == expected


def test_no_two_rows_share_a_name() -> None:
    names = [spelling(name) for row in ROWS for name in (row.prefix, *row.aliases)]
    assert sorted(names) == sorted(set(names))


def test_no_row_takes_the_name_of_a_native_class() -> None:
    native = {
        'openai',
        'openai-chat',
        'openai-responses',
        'xai',
        'groq',
        'mistral',
        'huggingface',
        'anthropic',
        'google',
    }
    assert native & {spelling(name) for row in ROWS for name in (row.prefix, *row.aliases)} == set()


def test_what_rows_say_of_their_servers() -> None:
    """Of what a server refuses, a row may say so; what it hides behind that is known, with a link."""
    profiles = {row.prefix: dict(row.profile) for row in ROWS if row.profile}
    schemas = {
        prefix: profile.pop('compat_schema') for prefix, profile in profiles.items() if 'compat_schema' in profile
    }
    joined = {'compat_tool_return': 'joined'}
    silent = {'openai_chat_send_back_thinking_parts': False}
    assert profiles == {
        'deepseek': {**joined, 'compat_json_schema': False, 'supports_json_schema_output': True},
        'perplexity': {'compat_roles': 'alternate'},
        'lm-studio': {**joined, 'compat_json_object': False, 'compat_named_tool_choice': False},
        'groq-compat': silent,
        'mistral-compat': {
            **silent,
            'openai_chat_supports_max_completion_tokens': False,
            'compat_tool_call_ids': 'alnum9',
            'compat_omit': ('stream_options',),
        },
        'gemini-compat': {},
        'cerebras': {},
        'zai': joined,
        'moonshotai': {},
        'minimax': {'compat_late_system': 'lift'},
    }
    dialects = {'groq-compat': 'groq', 'mistral-compat': 'mistral', 'gemini-compat': 'gemini', 'cerebras': 'cerebras'}
    dialects['moonshotai'] = 'moonshot'
    assert schemas == {prefix: DIALECTS[dialect].rewrites for prefix, dialect in dialects.items()}
    assert all('https://' in (row.known or '') for row in ROWS if row.profile)


@pytest.mark.parametrize(
    ('written', 'prefix'),
    [
        ('lm-studio', 'lm-studio'), ('lmstudio', 'lm-studio'), ('lm_studio', 'lm-studio'), ('LM-Studio', 'lm-studio'),
        ('llama-cpp', 'llama-cpp'), ('llamacpp', 'llama-cpp'), ('llama_cpp', 'llama-cpp'),
        ('grok', 'grok'), ('xai-compat', 'grok'), ('xai_compat', 'grok'),
        ('zai', 'zai'), ('glm', 'zai'), ('z-ai', 'zai'), ('GLM', 'zai'),
        ('moonshotai', 'moonshotai'), ('moonshot', 'moonshotai'), ('kimi', 'moonshotai'),
        ('alibaba', 'alibaba'), ('dashscope', 'alibaba'), ('qwen', 'alibaba'),
        ('copilot', 'copilot'), ('github-copilot', 'copilot'), ('github_copilot', 'copilot'),
    ],
)  # fmt: skip
def test_spellings_are_one_row(written: str, prefix: str) -> None:
    row = find_server(written)
    assert row is not None
    assert row.prefix == prefix


def test_an_unknown_name_is_no_row() -> None:
    assert find_server('nobody') is None
    assert find_server('') is None


@pytest.mark.parametrize(
    ('url', 'prefix'),
    [
        ('https://api.x.ai/v1', 'grok'),
        ('https://api.deepseek.com/beta', 'deepseek'),
        ('https://API.DeepSeek.com', 'deepseek'),
        ('http://api.deepseek.com', None),
        ('http://localhost:11434/v1', None),  # anything may listen there
        ('https://api.openai.com/v1', None),
    ],
)
def test_a_hosted_row_is_told_by_its_host(url: str, prefix: str | None) -> None:
    row = server_at(url)
    assert (row and row.prefix) == prefix


def test_nearest_prefixes_come_best_first() -> None:
    assert nearest_prefixes('deepsek')[0] == 'deepseek'
    assert nearest_prefixes('Open_Ruter')[0] == 'openrouter'
    assert nearest_prefixes('zzzzzzzz') == []


def test_one_call_adds_a_row() -> None:
    row = Server(prefix='acme', base_url='https://llm.acme.test/v1', aliases=('acme_llm',), key_vars=('ACME_API_KEY',))
    register_server(row)
    assert find_server('acme') is find_server('ACME-LLM') is row
    assert list(servers()) == [*ROWS, row]


def test_one_call_replaces_a_row_and_its_aliases() -> None:
    row = Server(prefix='zai', base_url='https://open.bigmodel.cn/api/paas/v4', aliases=('zhipu',))
    register_server(row)
    assert find_server('zai') is find_server('zhipu') is row
    assert find_server('glm') is None
    assert [known.prefix for known in servers() if known.prefix == 'zai'] == ['zai']


def test_a_row_named_by_another_rows_alias_takes_that_alias_alone() -> None:
    """`qwen` is an alias of `alibaba`: who serves Qwen elsewhere must not lose Alibaba."""
    row = Server(prefix='qwen', base_url='http://gpu.lan:8000/v1', kind='local')
    register_server(row)
    assert find_server('qwen') is row
    alibaba = find_server('alibaba')
    assert alibaba is not None
    assert find_server('dashscope') is alibaba


def test_an_alias_takes_another_rows_name() -> None:
    row = Server(prefix='gpu', base_url='http://gpu.lan:8000/v1', kind='local', aliases=('kimi',))
    register_server(row)
    assert find_server('kimi') is row
    moonshot = find_server('moonshot')
    assert moonshot is not None
    assert moonshot.prefix == 'moonshotai'


def test_models_that_exist_keep_their_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('DEEPSEEK_API_KEY', 'k-1')
    before = infer_model('deepseek:deepseek-chat')
    register_server(Server(prefix='deepseek', base_url='https://other.test/v1', key_vars=('DEEPSEEK_API_KEY',)))
    assert before.profile.get('compat_tool_return') == 'joined'
    assert infer_model('deepseek:deepseek-chat').profile.get('compat_tool_return', 'auto') == 'auto'


def test_rows_registered_in_a_block_that_fails_are_taken_back() -> None:
    def fail_half_way() -> None:
        with registry_restored_on_error():
            register_server(Server(prefix='acme', base_url='https://llm.acme.test'))
            register_server(Server(prefix='zai', base_url='https://other.test'))
            raise RuntimeError('half way')

    with pytest.raises(RuntimeError, match='half way'):
        fail_half_way()
    assert list(servers()) == ROWS
    assert find_server('glm') is find_server('zai')


def test_rows_registered_in_a_block_that_succeeds_stay() -> None:
    with registry_restored_on_error():
        register_server(Server(prefix='acme', base_url='https://llm.acme.test'))
    assert find_server('acme') is not None


@pytest.mark.parametrize(
    ('field', 'bad'),
    [
        ('prefix', {'prefix': ''}),
        ('prefix', {'prefix': 'a:b'}),
        ('prefix', {'prefix': 'a b'}),
        ('prefix', {'prefix': 'a,b'}),
        ('prefix', {'prefix': 'a/b'}),
        ('prefix', {'prefix': 'a+responses'}),
        ('prefix', {'prefix': None}),
        ('aliases', {'aliases': ('fine', 'not fine')}),
        ('aliases', {'aliases': 'acme-llm'}),
        ('key_vars', {'key_vars': 'ACME_API_KEY'}),
        ('url_vars', {'url_vars': 'ACME_BASE_URL'}),
        ('base_url', {'base_url': 'nonsense'}),
        ('base_url', {'base_url': ''}),
        ('base_url', {'base_url': 'https://user:hunter2@acme.test'}),
        ('kind', {'kind': 'remote'}),
        ('profile', {'profile': {'compat_tool_retrun': 'joined'}}),
        ('compat_tool_return', {'profile': {'compat_tool_return': 'yes'}}),
    ],
    ids=str,
)
def test_a_bad_row_is_one_clear_error_that_names_the_field(field: str, bad: dict[str, Any]) -> None:
    make: Callable[..., Server] = Server
    with pytest.raises(UserError) as caught:
        make(**{'prefix': 'acme', 'base_url': 'https://llm.acme.test', **bad})
    assert field in str(caught.value)
    assert '\n' not in str(caught.value)
    assert 'hunter2' not in str(caught.value)


def test_the_older_spelling_of_a_knob_is_translated() -> None:
    row = Server(
        prefix='acme', base_url='https://llm.acme.test', profile=CompatibleModelProfile(tool_return_as_list=False)
    )
    assert row.profile == {'compat_tool_return': 'string'}


@each_row
def test_a_key_goes_to_its_own_host_alone_or_where_the_user_runs_the_server(row: Server) -> None:
    assert row.owns('https://elsewhere.test/v1') is (row.kind != 'hosted')
    assert row.base_url is None or row.owns(row.base_url)


@each_row
def test_variables_are_looked_up_in_order(row: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (row.key(), row.url()) == (None, row.base_url)
    for name in reversed(row.key_vars):
        monkeypatch.setenv(name, f'value of {name}')
        assert row.key() == f'value of {name}'
    for name in reversed(row.url_vars):
        monkeypatch.setenv(name, f'https://{name}.test')
        assert row.url() == f'https://{name}.test'
    for name in row.key_vars:
        monkeypatch.setenv(name, '')  # as in `VARIABLE= command`: not set
    assert row.key() is None


@pytest.mark.parametrize('prefix', ['mistral-compat', 'groq-compat'])
async def test_reasoning_is_not_sent_back_where_it_is_refused(prefix: str) -> None:
    thought = m.ThinkingPart('Hm.', id='reasoning_content', provider_name=prefix)
    history: list[m.ModelMessage] = [
        m.ModelRequest(parts=[m.UserPromptPart('hi')]),
        m.ModelResponse(parts=[thought, m.TextPart('Hi')]),
        m.ModelRequest(parts=[m.UserPromptPart('more')]),
    ]
    async with ScriptedServer([Reply.json(completion('OK'))]) as server:
        async with OpenAICompatibleModel('m', provider=prefix, base_url=server.base_url, api_key='key') as model:
            await model.request(history, None, ModelRequestParameters())
        [request] = server.requests
    assert request.json['messages'] == [
        {'role': 'user', 'content': 'hi'},
        {'role': 'assistant', 'content': 'Hi'},
        {'role': 'user', 'content': 'more'},
    ]


def test_rows_that_another_thread_registers_meanwhile() -> None:
    stop, failed = threading.Event(), []

    def register() -> None:
        for number in itertools.count():
            if stop.is_set():
                return
            register_server(Server(prefix=f'acme-{number % 50}', aliases=(f'a-{number % 70}',)))

    def read() -> None:
        try:
            for _ in range(2000):
                assert find_server('vllm') in [*servers()]
                nearest_prefixes('acme')
        except BaseException as error:
            failed.append(error)
            raise

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=use) for use in (register, register, read)]
        for thread in threads:
            thread.start()
        threads[-1].join()
    finally:
        stop.set()
        sys.setswitchinterval(before)
        for thread in threads:
            thread.join()
    assert not failed
