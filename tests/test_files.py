"""Files of models: YAML and JSON by name, the line of each fault, and the rows under `servers:`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.exceptions import UserError
from pydantic_ai.models.fallback import FallbackModel

from oaicompat import routing
from oaicompat.config import FallbackModelConfig, StringModelConfig, TestModelConfig, load_models
from oaicompat.servers import find_server, servers
from oaicompat.testing import Reply, ScriptedServer, completion

LOCAL = StringModelConfig(identifier='glm-5', base_url='http://localhost:8000/v1', temperature=0.2)
FILE = """\
# The models of the team.
models:
  fast: &fast {identifier: glm-5, base_url: 'http://localhost:8000/v1', temperature: 0.2}
  default: fast
  cool:
    <<: *fast
    temperature: 0
  safe:
    type: fallback
    models:
      - default
      - ollama:qwen2.5:7b
      - {type: test, text: sorry}
"""
OR = 'For a server of your own give the model a `base_url`, or register it'
FORMS = "'auto', 'native', 'joined', 'string'"
SAFE: list[Any] = [LOCAL, StringModelConfig(identifier='ollama:qwen2.5:7b'), TestModelConfig(type='test', text='sorry')]
EXPECTED = {
    'fast': LOCAL,
    'default': LOCAL,
    'cool': LOCAL.model_copy(update={'temperature': 0.0}),
    'safe': FallbackModelConfig(type='fallback', models=SAFE),
}
VALUE = {
    'models': {
        'fast': {'identifier': 'glm-5', 'base_url': 'http://localhost:8000/v1', 'temperature': 0.2},
        'default': 'fast',
        'safe': {
            'type': 'fallback',
            'models': ['default', 'ollama:qwen2.5:7b', {'type': 'test', 'text': 'sorry'}],
        },
    }
}


@pytest.fixture
def without_yaml(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyYAML is not installed."""
    monkeypatch.setitem(sys.modules, 'yaml', None)


def model(fields: str) -> str:
    """A file of one model with these fields, which stand on line 2."""
    return f'models:\n  a: {{identifier: ollama:x, {fields}}}\n'


def error_of(source: str | Path) -> str:
    with pytest.raises(UserError) as caught:
        load_models(source)
    return str(caught.value)


# 3.4: what is read


def test_a_file_is_read_by_path_and_by_text(tmp_path: Path) -> None:
    path = tmp_path / 'models.yaml'
    path.write_text(FILE, encoding='utf-8')
    assert load_models(path) == load_models(str(path)) == load_models(FILE) == EXPECTED


@pytest.mark.parametrize('indent', [None, 2, '\t'])
@pytest.mark.parametrize('installed', [True, False], ids=['with PyYAML', 'without'])
def test_json_is_read_with_and_without_pyyaml(
    indent: int | str | None, installed: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if not installed:
        monkeypatch.setitem(sys.modules, 'yaml', None)
    path = tmp_path / 'models.json'
    path.write_text(json.dumps(VALUE, indent=indent), encoding='utf-8')
    expected = {name: EXPECTED[name] for name in ('fast', 'default', 'safe')}
    assert load_models(path) == load_models(path.read_text()) == expected


def test_a_file_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    """Windows editors write one."""
    path = tmp_path / 'models.yaml'
    path.write_text(FILE, encoding='utf-8-sig')
    assert load_models(path) == EXPECTED


@pytest.mark.usefixtures('without_yaml')
def test_without_pyyaml_yaml_is_an_error_that_names_the_extra(tmp_path: Path) -> None:
    path = tmp_path / 'models.yaml'
    path.write_text(FILE, encoding='utf-8')
    assert error_of(path) == (
        f'{path}:1: not JSON: Expecting value; for YAML install the extra: pip install "oaicompat[yaml]"'
    )


@pytest.mark.usefixtures('without_yaml')
def test_without_pyyaml_a_fault_is_told_without_its_line() -> None:
    assert error_of('{"models": {"a": {"identifier": "ollama:x", "seed": "s"}}}').startswith('<text>')
    assert "got 's'" in error_of('{"models": {"a": {"identifier": "ollama:x", "seed": "s"}}}')


@pytest.mark.parametrize('installed', [True, False], ids=['with PyYAML', 'without'])
def test_a_name_that_stands_twice_is_an_error(installed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not installed:
        monkeypatch.setitem(sys.modules, 'yaml', None)
    assert '`a` stands twice' in error_of('{"models": {"a": "ollama:x",\n "a": "ollama:y"}}')


def test_the_models_of_a_file_are_made() -> None:
    made = load_models(FILE)['safe'].get_model()
    assert isinstance(made, FallbackModel)
    assert [(child.model_name, child.settings) for child in made.models] == [
        ('glm-5', {'temperature': 0.2}),
        ('qwen2.5:7b', None),
        ('test', None),
    ]


def test_a_file_of_no_models_is_empty() -> None:
    assert load_models('models: {}\n') == {}


# 3.4: faults, each once, with its line


@pytest.mark.parametrize(
    ('text', 'expected'),
    [
        # values
        (model('temperature: -1'), '2: models.a.temperature: Input should be greater than or equal to 0, got -1'),
        (model('max_tokens: 0'), '2: models.a.max_tokens: Input should be greater than or equal to 1, got 0'),
        (model('api: soap'), "2: models.a.api: Input should be 'chat' or 'responses', got 'soap'"),
        (
            model('profile: {compat_tool_return: nativ}'),
            f"2: models.a.profile: `compat_tool_return` is 'nativ'; expected one of {FORMS}",
        ),
        (
            model('base_url: ftp://localhost'),
            "2: models.a: `base_url`: 'ftp://localhost' is not an http or https URL such as http://localhost:8000/v1",
        ),
        (
            'models:\n  a: deepseak:x\n',
            f'2: models.a: unknown prefix `deepseak:`; did you mean `deepseek:`? {OR}',
        ),
        # keys
        (
            'models:\n  a:\n    identifier: ollama:x\n    temprature: 1\n',
            '4: models.a.temprature: unknown key `temprature`; did you mean `temperature`?',
        ),
        (model('zzz: 1'), '2: models.a.zzz: unknown key `zzz`'),
        ('models: {}\nserver: {}\n', '2: server: unknown key `server`; did you mean `servers`?'),
        (
            'models:\n  a:\n    type: fallback\n    models:\n    - ollama:x\n    - {identifier: vllm:x, sead: 1}\n',
            '6: models.a.models.1.sead: unknown key `sead`; did you mean `seed`?',
        ),
        ('models:\n  a: ollama:x\n  b: ollama:x\n  a: vllm:y\n', '4: `a` stands twice, first on line 2'),
        ('models:\n  a:\n    seed: 1\n    seed: 2\n', '4: `seed` stands twice, first on line 3'),
        # names
        (
            'models:\n  fast: ollama:x\n  b: fst\n',
            "3: models.b: 'fst' is neither the name of a model nor PREFIX:NAME; did you mean fast?",
        ),
        (
            'models:\n  fast: ollama:x\n  b:\n    type: fallback\n    models: [fast, slow]\n',
            "5: models.b.models.1: 'slow' is neither the name of a model nor PREFIX:NAME; names here: fast, b",
        ),
        ('models:\n  a: b\n  b: a\n', '2: models.a: models refer to each other in a circle: a → b → a'),
        ('models:\n  a: a\n', '2: models.a: models refer to each other in a circle: a → a'),
        (
            'models:\n  a:\n    type: fallback\n    models: [ollama:x, b]\n  b:\n    type: fallback\n    models: [a]\n',
            '4: models.a.models.1: models refer to each other in a circle: a → b → a',
        ),
        # YAML
        ('models:\n  a: [ollama:x\nb: 1\n', "3: not YAML: expected ',' or ']', but got ':'"),
        ('models:\n  a: ollama:x\n---\nmodels: {}\n', '3: not YAML: but found another document'),
        ('models:\n  a: {\n', "3: not YAML: expected the node content, but found '<stream end>'"),
        ('models: &all\n  a: *all\n', '1: nested too deeply'),
        # shapes
        ('\n', ': expected a mapping with `models: {name: config}`'),
        ('- a\n', '1: expected a mapping with `models: {name: config}`'),
        ('just\ntext\n', '1: expected a mapping with `models: {name: config}`'),
        ('models: ollama:x\n', '1: expected a mapping with `models: {name: config}`'),
        ('models:\n- ollama:x\n', '1: expected a mapping with `models: {name: config}`'),
        ('modles: {}\n', '1: expected a mapping with `models: {name: config}`'),
    ],
)  # fmt: skip
def test_a_fault_is_told_with_line_field_value_and_cure(text: str, expected: str, tmp_path: Path) -> None:
    path = tmp_path / 'models.yaml'
    path.write_text(text, encoding='utf-8')
    colon = '' if expected.startswith(':') else ':'
    assert error_of(path) == f'{path}{colon}{expected}'
    assert error_of(text) == f'<text>{colon}{expected}'


def test_several_faults_are_one_error_with_a_line_each() -> None:
    assert error_of(model('max_tokens: 0, top_p: 1.5')) == (
        '<text>:2: models.a.max_tokens: Input should be greater than or equal to 1, got 0\n'
        '<text>:2: models.a.top_p: Input should be less than or equal to 1, got 1.5'
    )


def test_a_fault_is_told_once_where_it_stands_and_not_where_it_is_referred_to() -> None:
    text = 'models:\n  fast: {identifier: ollama:x, seed: s}\n  safe: {type: fallback, models: [fast]}\n  same: fast\n'
    complaint = 'Input should be a valid integer, unable to parse string as an integer'
    assert error_of(text) == f"<text>:2: models.fast.seed: {complaint}, got 's'"


def test_an_unknown_type_is_told_with_the_known_ones() -> None:
    text = error_of('models:\n  a: {type: strng, identifier: ollama:x}\n')
    assert text.startswith('<text>:2: models.a')
    assert all(word in text for word in ('strng', 'string', 'fallback', 'test'))
    assert '_kind' not in text  # a function of ours says nothing to the user


def test_a_missing_identifier_is_named() -> None:
    text = error_of('models:\n  a: {seed: 1}\n')
    assert text.startswith('<text>:2: models.a')
    assert 'identifier' in text


@pytest.mark.parametrize(
    ('text', 'key'),
    [
        ('models:\n  a: {type: fallback, models: [ollama:x], temperature: 1}\n', 'temperature'),
        ('models:\n  a: {models: [ollama:x]}\n', 'models'),
    ],
)
def test_a_key_of_another_type_is_not_suggested_in_place_of_itself(text: str, key: str) -> None:
    assert f'did you mean `{key}`' not in error_of(text)


@pytest.mark.parametrize('name', ['1', 'null', '2026-11-30', 'true'])
def test_a_name_that_is_no_string_is_an_error_with_its_line(name: str) -> None:
    for config in ('ollama:x', 'slow', '{identifier: ollama:x}'):
        text = error_of(f'models:\n  fast: ollama:x\n  {name}: {config}\n')
        assert text.startswith('<text>:')
        assert 'string' in text


def test_a_config_that_is_neither_text_nor_mapping_is_an_error() -> None:
    for config in ('', '5', '[ollama:x]', 'true', '2026-11-30'):
        assert error_of(f'models:\n  a: {config}\n').startswith('<text>:2: models.a: ')


def test_a_capability_that_is_a_mapping_is_an_error() -> None:
    assert error_of(model('capabilities: [{tools: true}]')).startswith('<text>:2: models.a.capabilities')


@pytest.mark.parametrize(
    'fields',
    [
        'api_key: [sk-s3cret]',
        'api_key: 73570',
        'api_key: sk-s3cret, seed: s',
        'headers: s3cret',
        'headers: {Authorization: 73570}',
        'extra_headers: {Authorization: [s3cret]}',
        'query: {key: 73570}',
        'base_url: "https://me:s3cret@localhost/v1"',
        'api_key: *s3cret',
        'api_key: !s3cret x',
    ],
)
def test_no_fault_shows_a_secret(fields: str) -> None:
    text = error_of(model(fields))
    assert text.startswith('<text>:2: ')
    assert 's3cret' not in text
    assert '73570' not in text


@pytest.mark.parametrize('tag', ['object/apply:os.mkdir', 'object/new:os.mkdir', 'name:os.mkdir', 'module:os'])
def test_no_tag_runs_code(tag: str, tmp_path: Path) -> None:
    made = tmp_path / 'made'
    text = f'models:\n  a: !!python/{tag} ["{made}"]\n'
    assert error_of(text) == (
        f"<text>:2: not YAML: could not determine a constructor for the tag 'tag:yaml.org,2002:python/{tag}'"
    )
    assert not made.exists()


# Files that can't be read


def test_a_file_that_is_not_there_or_a_directory_is_an_error(tmp_path: Path) -> None:
    for path, reason in ((tmp_path / 'no.yaml', 'No such file or directory'), (tmp_path, 'Is a directory')):
        assert error_of(path) == f"{path} can't be read: {reason}; expected a YAML or JSON file with `models:`"


@pytest.mark.parametrize('data', [b'\xff\xfe\x00models', b'models:\n  a: caf\xe9\n', b'GGUF\x03\x00\x00\x00', b''])
def test_a_binary_or_empty_file_is_an_error(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / 'models.yaml'
    path.write_bytes(data)
    text = error_of(path)
    assert text.startswith(str(path))
    assert '\n' not in text


def test_a_source_that_is_neither_path_nor_text_is_an_error() -> None:
    with pytest.raises(UserError, match='expected a path or a text, not bytes'):
        load_models(b'models: {}\n')  # type: ignore[arg-type]  # the mistake under test


# 2.7: rows under `servers:`


async def test_a_row_of_the_file_is_used_by_its_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('ACME_KEY', 'sk-acme')
    async with ScriptedServer([Reply.json(completion('Hello'))]) as server:
        text = (
            f'servers:\n  acme: {{base_url: "{server.base_url}", key_vars: [ACME_KEY], headers: {{X-A: b}}, '
            'aliases: [acme-inc], profile: {compat_tool_return: joined}}\nmodels:\n  a: acme-inc:glm-5\n'
        )
        made = load_models(text)['a'].get_model()
        async with Agent(made) as agent:
            await agent.run('Hi')
    [request] = server.requests
    assert (request.headers['authorization'], request.headers['x-a']) == ('Bearer sk-acme', 'b')
    assert made.profile.get('compat_tool_return') == 'joined'


@pytest.mark.parametrize(
    'rest',
    [
        'models:\n  a: acme:x\n  b: {identifier: acme:y, seed: s}\n',
        'models:\n  a: nobody:x\n',
        'models:\n  a: b\n  b: a\n',
        '  other: {base_url: nonsense}\nmodels:\n  a: acme:x\n',
        '  "o ther": {base_url: "http://localhost/v1"}\nmodels:\n  a: acme:x\n',
        'models:\n  a: acme:x\nunknown: 1\n',
    ],
)
def test_rows_are_taken_back_when_the_file_has_an_error(rest: str) -> None:
    before = list(servers())
    error_of(f'servers:\n  acme: {{base_url: "http://a.test/v1"}}\n  zai: {{base_url: "http://b.test/v1"}}\n{rest}')
    assert list(servers()) == before
    assert find_server('acme') is None


@pytest.mark.parametrize(
    ('row', 'path', 'words'),
    [
        ('a b: {base_url: "http://a.test/v1"}', 'servers.a b', ['expected a word without spaces']),
        ('ab: {base_url: ftp://a}', 'servers.ab', ['base_url', "'ftp://a'", 'http://localhost:8000/v1']),
        ('ab: {profile: {compat_tool_retrn: x}}', 'servers.ab', ['compat_tool_retrn', 'did you mean']),
        ('ab: {kind: cloud}', 'servers.ab.kind', ["'hosted', 'local' or 'self-hosted'", "'cloud'"]),
        ('ab: {key_var: [A]}', 'servers.ab.key_var', ['unknown key `key_var`; did you mean `key_vars`?']),
        ('ab: 5', 'servers.ab', []),
    ],
)
def test_a_fault_in_a_row_is_told_with_its_line(row: str, path: str, words: list[str]) -> None:
    text = error_of(f'models: {{}}\nservers:\n  {row}\n')
    assert text.startswith(f'<text>:3: {path}')
    assert '\n' not in text
    assert [word for word in words if word not in text] == []


def test_a_package_that_is_missing_is_told_with_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: Any, **__: Any) -> Any:
        raise ImportError('Please install `made-up`')

    monkeypatch.setattr(routing, 'pydantic_infer_model', missing)
    file = tmp_path / 'models.yaml'
    file.write_text('models:\n  fast:\n    identifier: groq:x\n', encoding='utf-8')
    model = load_models(file)['fast']
    with pytest.raises(ImportError) as caught:
        model.get_model()
    assert str(caught.value) == f'{file}:2: models.fast: Please install `made-up`'
