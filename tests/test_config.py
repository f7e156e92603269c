"""Configs: what each type and setting becomes, up to the request on the wire; nothing of a key in what is shown."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError
from pydantic_ai import Agent
from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.test import TestModel

from oaicompat import OpenAICompatibleModel, OpenAICompatibleResponsesModel
from oaicompat.config import FallbackModelConfig, ModelConfig, StringModelConfig, TestModelConfig
from oaicompat.testing import RecordedRequest, Reply, ScriptedServer, completion

CHAT, RESPONSES = OpenAICompatibleModel, OpenAICompatibleResponsesModel
CONFIG: TypeAdapter[Any] = TypeAdapter(ModelConfig)
TEST = TestModelConfig(type='test')
LOCAL = {'identifier': 'glm-5', 'base_url': 'http://localhost:8000/v1'}

# Every setting of requirement 3.2, with a value that shows up in the request.
SETTINGS: dict[str, Any] = {
    'max_tokens': 99,
    'temperature': 0.5,
    'top_p': 0.25,
    'timeout': 30.0,
    'parallel_tool_calls': True,
    'seed': 7,
    'presence_penalty': -1.5,
    'frequency_penalty': 1.5,
    'logit_bias': {'42': -100},
    'stop_sequences': ['END'],
    'extra_headers': {'X-Team': 'blue'},
    'extra_body': {'top_k': 3},
    'thinking': 'high',
}
NO_PARAMETERS = {'type': 'object', 'properties': {}, 'additionalProperties': False}
NOW = {'type': 'function', 'function': {'name': 'now', 'description': 'The time.', 'parameters': NO_PARAMETERS}}


def config(**fields: Any) -> StringModelConfig:
    return StringModelConfig(**{**LOCAL, **fields})


async def sent_by(server: ScriptedServer, **fields: Any) -> RecordedRequest:
    """The one request that an agent on this config makes."""
    async with server:
        await run(config(**{'base_url': server.base_url, **fields}).get_model())
    [request] = server.requests
    return request


async def run(model: Model) -> str:
    async with Agent(model) as agent:

        @agent.tool_plain
        def now() -> str:
            """The time."""
            return 'noon'

        return (await agent.run('Hi')).output


def answering() -> ScriptedServer:
    return ScriptedServer([Reply.json(completion('Hello'))])


@pytest.mark.parametrize(
    ('given', 'expected'),
    [
        ('ollama:qwen2.5:7b', StringModelConfig(identifier='ollama:qwen2.5:7b')),
        ({'identifier': 'ollama:x', 'seed': 1}, StringModelConfig(identifier='ollama:x', seed=1)),
        ({'type': 'string', 'identifier': 'ollama:x'}, StringModelConfig(identifier='ollama:x')),
        ({'type': 'test', 'text': 'ok'}, TestModelConfig(type='test', text='ok')),
        (
            {'type': 'fallback', 'models': ['vllm:x', {'type': 'test'}]},
            FallbackModelConfig(type='fallback', models=[StringModelConfig(identifier='vllm:x'), TEST]),
        ),
        (StringModelConfig(identifier='ollama:x'), StringModelConfig(identifier='ollama:x')),
    ],
)
def test_type_tells_the_config_and_its_absence_means_string(given: object, expected: object) -> None:
    assert CONFIG.validate_python(given) == expected


@pytest.mark.parametrize(
    'given', [{'type': 'import', 'identifier': 'os.system'}, {'type': None}, 5, None, ['ollama:x']]
)
def test_there_is_no_other_type(given: object) -> None:
    with pytest.raises(ValidationError):
        CONFIG.validate_python(given)


def test_test_config_gives_a_test_model_without_settings() -> None:
    made = TestModelConfig(type='test', text='ok')
    model = made.get_model()
    assert isinstance(model, TestModel)
    assert (model.custom_output_text, made.get_model_settings()) == ('ok', {})


def test_a_fallback_nests_and_each_child_keeps_its_own_settings() -> None:
    made = FallbackModelConfig(
        type='fallback',
        models=[
            config(temperature=0.1),
            FallbackModelConfig(type='fallback', models=[config(seed=2), config()]),
            TEST,
        ],
    )
    model = made.get_model()
    assert isinstance(model, FallbackModel)
    first, inner, last = model.models
    assert isinstance(inner, FallbackModel)
    assert [child.settings for child in (first, *inner.models, last)] == [{'temperature': 0.1}, {'seed': 2}, None, None]
    assert made.get_model_settings() == {}


def test_an_identifier_of_several_models_is_a_fallback_with_the_settings_on_each() -> None:
    model = StringModelConfig(identifier='ollama:x, vllm:y', seed=3).get_model()
    assert isinstance(model, FallbackModel)
    assert [(child.model_name, child.settings) for child in model.models] == [('x', {'seed': 3}), ('y', {'seed': 3})]


@pytest.mark.parametrize(('identifier', 'text'), [('test', None), ('test:Hello', 'Hello'), ('test:Hi, you', 'Hi, you')])
def test_the_test_identifier_takes_text_and_settings(identifier: str, text: str | None) -> None:
    model = StringModelConfig(identifier=identifier, seed=1).get_model()
    assert isinstance(model, TestModel)
    assert (model.custom_output_text, model.settings) == (text, {'seed': 1})


def test_a_prefix_that_only_begins_with_test_is_unknown() -> None:
    with pytest.raises(ValidationError, match='unknown prefix `testing:`'):
        StringModelConfig(identifier='testing:x')


# 3.2 and 3.3: settings


def test_all_settings_are_given_and_are_on_the_model() -> None:
    made = config(**SETTINGS)
    assert made.get_model_settings() == SETTINGS
    assert made.get_model().settings == SETTINGS


@pytest.mark.parametrize('given', [{}, {'temperature': 0.0}, {'parallel_tool_calls': False}, {'thinking': False}])
def test_only_what_is_given_is_a_setting_falsy_or_not(given: dict[str, Any]) -> None:
    made = config(**given)
    assert (made.get_model_settings(), made.get_model().settings or {}) == (given, given)


@pytest.mark.parametrize(
    ('field', 'good', 'bad'),
    [
        ('max_tokens', [1, 10**9], [0, -1, 1.5, 'many']),
        ('temperature', [0, 2.5], [-0.01, float('nan'), float('inf'), 'hot']),
        ('top_p', [0, 1], [-0.01, 1.01, float('nan')]),
        ('timeout', [0, 0.5, 3600], [-1, float('nan'), float('inf')]),
        ('presence_penalty', [-2, 2], [-2.01, 2.01]),
        ('frequency_penalty', [-2, 2], [-2.01, 2.01]),
        ('context_length', [1, 10**6], [0, -1]),
        ('seed', [-1, 0, 2**40], [1.5, 'x']),
        ('parallel_tool_calls', [True, False], ['maybe', 2]),
        ('logit_bias', [{'1': 100}], [{'1': 'x'}, [1]]),
        ('stop_sequences', [[], ['a']], ['END', [1]]),
        ('extra_headers', [{'a': 'b'}], [{'a': 1}, 'a: b']),
        ('extra_body', [{'a': [1, None]}], ['a', [1]]),
        ('thinking', [True, False, 'minimal', 'low', 'medium', 'high', 'xhigh'], ['deeply', 3]),
        ('api', ['chat', 'responses'], ['completions', '']),
    ],
)
def test_bounds(field: str, good: list[Any], bad: list[Any]) -> None:
    for value in good:
        config(**{field: value})
    for value in bad:
        with pytest.raises(ValidationError, match=field):
            config(**{field: value})


async def test_every_setting_reaches_the_body() -> None:
    request = await sent_by(answering(), capabilities=['thinking'], **SETTINGS)
    assert request.route == 'POST /v1/chat/completions'
    assert request.headers['x-team'] == 'blue'
    assert request.json == {
        'model': 'glm-5', 'stream': False, 'messages': [{'role': 'user', 'content': 'Hi'}],
        'tools': [NOW], 'tool_choice': 'auto', 'parallel_tool_calls': True,
        'max_completion_tokens': 99, 'temperature': 0.5, 'top_p': 0.25, 'seed': 7, 'stop': ['END'],
        'presence_penalty': -1.5, 'frequency_penalty': 1.5, 'logit_bias': {'42': -100},
        'reasoning_effort': 'high', 'top_k': 3,
    }  # fmt: skip


async def test_the_settings_of_fallback_children_reach_their_bodies() -> None:
    refused = Reply.json({'error': {'message': 'down'}}, 503, headers={'x-should-retry': 'false'})
    async with ScriptedServer([refused, Reply.json(completion('Hello'))]) as server:
        first, second = (config(base_url=server.base_url, temperature=value) for value in (0.1, 0.9))
        await run(FallbackModelConfig(type='fallback', models=[first, second]).get_model())
        assert [request.json['temperature'] for request in server.requests] == [0.1, 0.9]


# 3.2: where it goes, and with what


@pytest.mark.parametrize(
    ('written', 'sent'),
    [
        ('sk-plain', 'sk-plain'),
        ('${MY_KEY}', 'sk-mine'),
        ('${MY_KEY:-sk-default}', 'sk-mine'),
        ('${ABSENT:-sk-default}', 'sk-default'),
        ('${EMPTY:-sk-default}', 'sk-default'),
        ('sk-${MY_PART}-${ABSENT:-z}', 'sk-part-z'),
        ('$MY_KEY', '$MY_KEY'),
        ('${NESTED}', '${MY_KEY}'),
    ],
)
async def test_the_key_is_expanded_with_and_without_base_url(
    written: str, sent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A value from the environment is taken as it is: what looks like a variable in it is none."""
    variables = {'MY_KEY': 'sk-mine', 'MY_PART': 'part', 'EMPTY': '', 'NESTED': '${MY_KEY}', 'OPENAI_API_KEY': 'sk-o'}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    request = await sent_by(answering(), api_key=written)
    assert request.headers['authorization'] == f'Bearer {sent}'
    for identifier in ('deepseek:deepseek-chat', 'openai-chat:gpt-5', 'vllm+responses:qwen3'):
        model = StringModelConfig.model_validate({'identifier': identifier, 'api_key': written}).get_model()
        assert isinstance(model, OpenAICompatibleModel | OpenAICompatibleResponsesModel)
        assert model.client.api_key == sent


def test_the_key_is_used_for_prefixes_that_only_pydantic_ai_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    """`cerebras:` is no row of ours; the config's key is enough, and no variable is asked for."""
    monkeypatch.delenv('CEREBRAS_API_KEY', raising=False)
    model = StringModelConfig.model_validate({'identifier': 'cerebras:x', 'api_key': 'sk-mine'}).get_model()
    assert isinstance(model, OpenAICompatibleModel)
    assert model.client.api_key == 'sk-mine'


def test_api_chat_keeps_the_class_of_pydantic_ai(monkeypatch: pytest.MonkeyPatch) -> None:
    from pydantic_ai.models.cerebras import CerebrasModel

    monkeypatch.setenv('CEREBRAS_API_KEY', 'sk-mine')
    for fields in ({}, {'api': 'chat'}, {'api': 'chat', 'seed': 1}):
        model = StringModelConfig.model_validate({'identifier': 'cerebras:x', **fields}).get_model()
        assert isinstance(model, CerebrasModel), fields
        assert isinstance(model, OpenAICompatibleModel), fields


@pytest.mark.parametrize(
    ('field', 'value', 'named'),
    [
        ('api_key', 'sk-s3cret-${ABSENT}', 'api_key'),
        ('base_url', 'http://${ABSENT}/v1', 'base_url'),
        ('headers', {'X-A': 's3cret-${ABSENT}'}, 'headers.X-A'),
        ('query', {'v': '${ABSENT}'}, 'query.v'),
        ('extra_headers', {'X-A': '${ABSENT}'}, 'extra_headers.X-A'),
    ],
)
def test_a_missing_variable_is_named_with_its_field_when_the_model_is_made(field: str, value: Any, named: str) -> None:
    made = config(**{field: value})
    with pytest.raises(UserError) as caught:
        made.get_model()
    assert str(caught.value) == f'`{named}` needs the variable ABSENT, which is not set; or write ${{ABSENT:-default}}'


def test_no_key_is_an_error_that_names_the_variables() -> None:
    with pytest.raises(UserError, match='no key for `deepseek:`: set DEEPSEEK_API_KEY'):
        StringModelConfig(identifier='deepseek:deepseek-chat').get_model()


async def test_base_url_is_expanded_and_a_name_with_colon_stays_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    async with answering() as server:
        monkeypatch.setenv('MY_SERVER', server.root_url)
        await run(config(identifier='qwen2.5:7b', base_url='${MY_SERVER}/v1').get_model())
    [request] = server.requests
    assert (request.json['model'], request.path) == ('qwen2.5:7b', '/v1/chat/completions')


async def test_headers_and_query_reach_the_wire(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('TENANT', 'acme')
    request = await sent_by(
        answering(), headers={'X-Tenant': '${TENANT}', 'X-B': 'b'}, query={'api-version': '${VERSION:-2}', 'x': 'y z'}
    )
    assert request.path == '/v1/chat/completions?api-version=2&x=y+z'
    assert (request.headers['x-tenant'], request.headers['x-b']) == ('acme', 'b')


@pytest.mark.parametrize(
    ('identifier', 'api', 'expected'),
    [
        ('openai-chat:glm-5', None, CHAT), ('openai-chat:glm-5', 'responses', RESPONSES),
        ('openai-responses:glm-5', None, RESPONSES), ('openai-responses:glm-5', 'chat', CHAT),
        ('vllm+responses:glm-5', None, RESPONSES), ('vllm+responses:glm-5', 'chat', CHAT),
        ('glm-5', None, CHAT), ('glm-5', 'responses', RESPONSES),
    ],
)  # fmt: skip
def test_api_chooses_the_class(identifier: str, api: str | None, expected: type[Model]) -> None:
    model = config(identifier=identifier, api=api).get_model()
    assert isinstance(model, expected)
    assert (model.model_name, model.base_url) == ('glm-5', 'http://localhost:8000/v1/')


# 3.2: knobs, context window, capabilities


@pytest.mark.parametrize(
    ('given', 'form'),
    [
        ({'compat_tool_return': 'joined'}, 'joined'),
        ({'tool_return_as_list': True}, 'native'),
        ({'tool_return_as_list': 'true'}, 'native'),
        ({'tool_return_as_list': False}, 'string'),
        ({'tool_return_as_list': 'false'}, 'string'),
        ({'tool_return_as_list': True, 'compat_tool_return': 'joined'}, 'joined'),
    ],
)
def test_knobs_and_the_older_spelling(given: dict[str, Any], form: str) -> None:
    model = config(profile=given).get_model()
    assert model.profile.get('compat_tool_return') == form
    assert 'tool_return_as_list' not in model.profile


@pytest.mark.parametrize(
    ('given', 'complaint'),
    [
        (
            {'compat_tool_return': 'nativ'},
            "`compat_tool_return` is 'nativ'; expected one of 'auto', 'native', 'joined'",
        ),
        ({'compat_tool_return': ['native']}, r"`compat_tool_return` is \['native'\]; expected one of 'auto'"),
        (
            {'compat_tool_retrun': 'native'},
            'unknown profile key `compat_tool_retrun`; did you mean `compat_tool_return`',
        ),
        ({'tool_return_as_list': 'yes'}, "`tool_return_as_list` is 'yes'; expected true or false"),
        ({'tool_return_as_list': 1}, '`tool_return_as_list` is 1; expected true or false'),
        (
            {'compat_tools': 'prompted', 'compat_repair': 'off'},
            "`compat_tools` is 'prompted' and `compat_repair` is 'off': then nobody reads the calls",
        ),
    ],
)
def test_a_bad_knob_is_named_with_its_values(given: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint):
        config(profile=given)


def test_context_length_and_capabilities_are_in_the_profile() -> None:
    named = dict.fromkeys(['tools', 'vision', 'audio', 'documents', 'json_schema', 'json_object', 'thinking'], False)
    keys = {
        'supports_tools', 'supports_image_input', 'supports_audio_file_input', 'supports_document_input',
        'supports_json_schema_output', 'supports_json_object_output', 'supports_thinking',
    }  # fmt: skip
    for capabilities, value in ((named, False), (list(named), True)):
        profile = config(context_length=4096, capabilities=capabilities).get_model().profile
        assert {key: found for key, found in profile.items() if key in keys} == dict.fromkeys(keys, value)
        assert profile['context_window'] == 4096


def test_a_capability_is_no_mapping_in_a_list() -> None:
    for bad in (['toools'], [{'tools': True}], [1], 'tools'):
        with pytest.raises(ValidationError, match='capabilities'):
            config(capabilities=bad)


@pytest.mark.parametrize('fields', [{'headers': {'a': 'b'}}, {'query': {'a': 'b'}}])
def test_what_a_test_model_cannot_use_is_an_error(fields: dict[str, Any]) -> None:
    with pytest.raises(UserError, match='need an OpenAI-compatible model, not TestModel'):
        StringModelConfig(identifier='test', **fields).get_model()


def test_nothing_that_shows_a_config_shows_a_secret() -> None:
    made = config(
        api_key='sk-s3cret', headers={'X-A': 's3cret-a'}, extra_headers={'X-B': 's3cret-b'}, query={'key': 's3cret-q'}
    )
    fallback = FallbackModelConfig(type='fallback', models=[made])
    for shown in (made, fallback):
        for text in (repr(shown), str(shown), str(shown.model_dump()), shown.model_dump_json()):
            assert 's3cret' not in text


@pytest.mark.parametrize(
    'fields',
    [
        {'api_key': ['sk-s3cret']},
        {'api_key': 'sk-s3cret', 'temperature': -1},
        {'api_key': 'sk-s3cret', 'identifer': 'x'},
        {'headers': 'Authorization: s3cret'},
        {'headers': {'Authorization': ['s3cret']}},
        {'base_url': 'http://me:s3cret@localhost/v1'},
        {'base_url': 'http://localhost/v1?key=s3cret'},
    ],
)
def test_no_validation_error_shows_a_secret(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as caught:
        config(**fields)
    assert 's3cret' not in f'{caught.value} {caught.value!r}'
