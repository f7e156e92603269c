"""README.md and the docs: their code runs, their tables are current, their links lead somewhere."""

from __future__ import annotations

import ast
import json
import re
import runpy
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pytest_examples import CodeExample, EvalExample, find_examples

import oaicompat
from oaicompat import CompatibleModelProfile, OpenAICompatibleModel, config, repairs, servers, testing
from oaicompat._capabilities import Capabilities
from oaicompat._lesson import SEARCH
from oaicompat._requests import ADAPTERS
from oaicompat._rules import RULES
from oaicompat.testing import Reply, ScriptedServer, completion, tool_call

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / 'README.md'
DOCS = ROOT / 'docs'
PAGES = [README, *sorted(DOCS.rglob('*.md'))]
LINKED = [*PAGES, ROOT / 'AGENTS.md']

_LINK = re.compile(r'\[[^\]]*\]\((?![a-z]+:|#)([^)#\s]+)')
_YAML = re.compile(r'^```yaml\n(.+?)^```', re.MULTILINE | re.DOTALL)
_MODELS = re.compile(r'^models:', re.MULTILINE)
_JSON = re.compile(r'^```json\n(.+?)^```', re.MULTILINE | re.DOTALL)


def script(name: str) -> dict[str, Any]:
    """What a script of `scripts/` defines; one may import another."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / 'scripts'))
        return runpy.run_path(str(ROOT / 'scripts' / name))


_servers, _repairs, _rewrites, _grammars = (
    script(f'{name}_table.py') for name in ('servers', 'repairs', 'rewrites', 'grammars')
)
table = cast(Callable[[], str], _servers['table'])
details = cast(Callable[[], str], _servers['details'])
between = cast(Callable[[str, str], str], _servers['between'])
repair_sections = cast(Callable[[], str], _repairs['sections'])
rewrites_table = cast(Callable[[], str], _rewrites['table'])
grammars_table = cast(Callable[[], str], _grammars['table'])


def named(value: Path | CodeExample) -> str:
    path = value if isinstance(value, Path) else value.path
    line = '' if isinstance(value, Path) else f':{value.start_line}'
    return f'{path.relative_to(ROOT)}{line}'


def examples() -> list[CodeExample]:
    found = find_examples(*PAGES, ROOT / 'src' / 'oaicompat')
    return [example for example in found if example.prefix_settings().get('test') != 'skip']


def models_files(page: Path) -> list[str]:
    """The YAML blocks of a page that show a models file."""
    return [block for block in _YAML.findall(page.read_text(encoding='utf-8')) if _MODELS.search(block)]


@pytest.fixture
def _made_up_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in {'OPENAI_API_KEY', *(name for row in servers.servers() for name in row.key_vars), 'ACME_API_KEY'}:
        monkeypatch.setenv(name, 'made-up-key')


@pytest.fixture
def _loopback_only(monkeypatch: pytest.MonkeyPatch) -> None:
    connect = socket.socket.connect

    def checked(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in ('127.0.0.1', '::1'):
            raise AssertionError(f'an example connects to {address[0]}')
        connect(self, address)

    monkeypatch.setattr(socket.socket, 'connect', checked)


@pytest.mark.usefixtures('_made_up_keys', '_loopback_only')
@pytest.mark.parametrize('example', examples(), ids=named)
def test_code_runs(
    example: CodeExample, eval_example: EvalExample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each block by itself, without a network; what it prints is what the page says."""
    monkeypatch.chdir(tmp_path)
    if example.path.suffix == '.md' and (blocks := models_files(example.path)):
        (tmp_path / 'models.yaml').write_text(blocks[0], encoding='utf-8')
    eval_example.set_config(line_length=120)
    eval_example.run_print_check(example)


@pytest.mark.usefixtures('_made_up_keys')
@pytest.mark.parametrize('page', [page for page in PAGES if models_files(page)], ids=named)
def test_models_files_load(page: Path) -> None:
    for block in models_files(page):
        for model in config.load_models(block).values():
            model.get_model()


async def test_readme_shows_the_tool_messages_that_are_sent() -> None:
    def get_weather() -> list[str]:
        return ['Rome: "sunny", 24 °C', 'wind: light']

    script = [Reply.json(completion(tool_calls=[tool_call('get_weather', {})])), Reply.json(completion('Sunny.'))]
    sent = []
    for form in ('string', 'auto'):
        async with ScriptedServer(script) as server:
            model = OpenAICompatibleModel('m', base_url=server.base_url, profile={'compat_tool_return': form})
            async with Agent(model, tools=[get_weather]) as agent:
                await agent.run('What is the weather in Rome?')
        sent.append(server.requests[-1].json['messages'][-1])
    assert [json.loads(block) for block in _JSON.findall(README.read_text(encoding='utf-8'))] == sent


@pytest.mark.parametrize('page', [README, DOCS / 'reference' / 'servers.md'], ids=named)
def test_table_of_servers_is_current(page: Path) -> None:
    """`python scripts/servers_table.py` brings it up to date."""
    assert between(page.read_text(encoding='utf-8'), 'servers') == table()


def test_details_of_servers_are_current() -> None:
    page = DOCS / 'reference' / 'servers.md'
    assert between(page.read_text(encoding='utf-8'), 'details') == details()


def test_page_of_repairs_is_current() -> None:
    """`python scripts/repairs_table.py` brings it up to date."""
    page = DOCS / 'reference' / 'repairs.md'
    assert between(page.read_text(encoding='utf-8'), 'repairs') == repair_sections()


def repairs_made() -> set[str]:
    """The names that the source adds to a set called `repairs`, and those of what is changed in requests."""
    names = {SEARCH, *(rule.name for rule in RULES), *(name for _, name, _ in ADAPTERS)}
    for path in (ROOT / 'src' / 'oaicompat').glob('*.py'):
        for call in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
            if isinstance(call, ast.Call) and re.search(r'repairs\.add$', ast.unparse(call.func)):
                constants = (node.value for node in ast.walk(call.args[0]) if isinstance(node, ast.Constant))
                names |= {value for value in constants if isinstance(value, str)}
    return names


def test_every_repair_is_registered_and_made() -> None:
    registered = [repair.name for repair in repairs.REPAIRS]
    assert registered == sorted(set(registered))
    assert set(registered) == repairs_made()


def test_table_of_rewrites_is_current() -> None:
    """`python scripts/rewrites_table.py` brings it up to date."""
    page = DOCS / 'reference' / 'knobs.md'
    assert between(page.read_text(encoding='utf-8'), 'rewrites') == rewrites_table()


def test_table_of_grammars_is_current() -> None:
    """`python scripts/grammars_table.py` brings it up to date."""
    page = DOCS / 'explanation' / 'text-calls.md'
    assert between(page.read_text(encoding='utf-8'), 'grammars') == grammars_table()


def taught() -> dict[str, tuple[set[int], set[str]]]:
    """What the page on learning says of each lesson from a refusal: its statuses, and the keys that it sets."""
    text = (DOCS / 'explanation' / 'learning.md').read_text(encoding='utf-8')
    rows = re.findall(r'^\| `(request\.\w+)` \| [^|]+ \| ([\d, ]+) \| ([^|]+) \|$', text, re.MULTILINE)
    return {
        name: (set(map(int, statuses.split(', '))), set(re.findall(r'`(\w+)', keys))) for name, statuses, keys in rows
    }


def test_the_page_on_learning_knows_every_rule() -> None:
    statuses: dict[str, set[int]] = {SEARCH: {400, 404, 422}}
    for rule in RULES:
        statuses[rule.name] = statuses.get(rule.name, set()) | rule.statuses
    assert {name: codes for name, (codes, _) in taught().items()} == statuses


def test_the_page_on_learning_knows_every_key_that_a_refusal_sets() -> None:
    source = (ROOT / 'src' / 'oaicompat' / '_teachings.py').read_text(encoding='utf-8')
    dicts = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Dict)]
    names = {key.value for node in dicts for key in node.keys if isinstance(key, ast.Constant)}
    assert {key for _, keys in taught().values() for key in keys} == names - {'messages'}


def test_every_knob_has_a_section() -> None:
    knobs = set(CompatibleModelProfile.__annotations__) - set(OpenAIModelProfile.__annotations__)
    text = (DOCS / 'reference' / 'knobs.md').read_text(encoding='utf-8')
    headings = ' '.join(re.findall(r'^### (`.+`)$', text, re.MULTILINE))
    assert set(re.findall(r'`(\w+)`', headings)) == knobs


@pytest.mark.parametrize('module', [oaicompat, config, testing], ids=lambda module: module.__name__)
def test_every_public_name_is_in_the_reference(module: Any) -> None:
    text = (DOCS / 'reference' / 'api.md').read_text(encoding='utf-8')
    listed = re.findall(r'^::: (\S+)$', text, re.MULTILINE)
    assert {f'{module.__name__}.{name}' for name in module.__all__} <= set(listed)


@pytest.mark.parametrize(
    'fields',
    [
        config.ModelsFile,
        config.StringModelConfig,
        Capabilities,
        config.FallbackModelConfig,
        config.TestModelConfig,
        config.ServerConfig,
    ],
)
def test_every_field_is_in_the_reference(fields: type[BaseModel]) -> None:
    text = (DOCS / 'reference' / 'config.md').read_text(encoding='utf-8')
    documented = re.findall(r'^\| `(\w+)`', text, re.MULTILINE)
    assert set(fields.model_fields) <= set(documented)


@pytest.mark.parametrize('page', LINKED, ids=named)
def test_relative_links_lead_to_files(page: Path) -> None:
    targets = _LINK.findall(page.read_text(encoding='utf-8'))
    assert [target for target in targets if not (page.parent / target).is_file()] == []


@pytest.mark.parametrize('page', PAGES[1:], ids=named)
def test_every_page_is_in_the_navigation(page: Path) -> None:
    assert f': {page.relative_to(DOCS).as_posix()}\n' in (ROOT / 'mkdocs.yml').read_text(encoding='utf-8')
