"""What is imported when: by itself next to nothing, with a model's class what every model needs."""

from __future__ import annotations

import subprocess
import sys

import pytest

LATER = ['_adapting', '_answers', '_complaints', '_completion', '_exchange', '_lessons', '_listing', '_prompted']
LATER += ['_recovery', '_repair', '_response_events', '_responses', '_rules', '_strict', '_textcalls', '_teachings']
LATER += ['config', 'discovery', 'repairs', 'routing', 'testing', '_demo']
RARE = ['_complaints', '_lessons', '_listing', '_prompted', '_response_events', '_responses', '_rules', '_strict']
RARE += ['_teachings', '_templates', '_open_reasoning', '_portable', 'discovery', 'repairs', 'testing', '_demo']
RARE += ['_adapting', '_callparsers', '_completion', '_details', '_grammars', '_json', '_mapped', '_messages']
RARE += [
    '_joining',
    '_toolreturns',
    '_prepared',
    '_recovery',
    '_requests',
    '_rewrites',
    '_schemas',
    '_textcalls',
    '_toolcalls',
    '_unchanged',
]
MADE = "from oaicompat import OpenAICompatibleModel; OpenAICompatibleModel('m', base_url='http://localhost:1/v1')"
STREAMED = f"""
import asyncio
from oaicompat._context import Context
from oaicompat._repair import ChunkRepair
{MADE}
repair = ChunkRepair(Context('m'))
for delta, reason in (({{'content': 'Hi'}}, None), ({{'reasoning': 'Hm'}}, None), ({{}}, 'stop')):
    choice = {{'index': 0, 'delta': delta, 'finish_reason': reason}}
    assert repair.feed({{'id': 'x', 'created': 1, 'model': 'm', 'choices': [choice]}})
assert not repair.finish(dropped=False)
"""
HELP = """
import sys
from oaicompat.cli import main
sys.argv = ['oaicompat', '--help']
try:
    main()
except SystemExit:
    pass
"""
HEAVY = ['pydantic_ai', 'pydantic', 'openai', 'importlib.metadata', 'asyncio']
TOLD = "import sys; sys.stdout.write('\\n' + ' '.join(sys.modules))"


@pytest.mark.parametrize(
    ('code', 'not_yet'),
    [
        pytest.param('import oaicompat', HEAVY, id='package'),
        pytest.param(HELP, HEAVY, id='help'),
        pytest.param('import oaicompat.models', [f'oaicompat.{name}' for name in LATER], id='class'),
        pytest.param(MADE, [f'oaicompat.{name}' for name in RARE], id='model'),
        pytest.param(STREAMED, [f'oaicompat.{name}' for name in RARE], id='text'),
    ],
)
def test_what_is_not_imported_yet(code: str, not_yet: list[str]) -> None:
    command = [sys.executable, '-c', f'{code}\n{TOLD}']
    done = subprocess.run(command, capture_output=True, encoding='utf-8', check=True)  # noqa: S603  # our own
    loaded = set(done.stdout.rpartition('\n')[2].split())
    assert 'oaicompat' in loaded
    assert loaded.isdisjoint(not_yet)


def run(code: str) -> str:
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, encoding='utf-8', check=False)  # noqa: S603  # our own
    assert not done.returncode, done.stderr
    return done.stdout


def test_two_names_that_two_threads_use_first() -> None:
    code = """
import sys, threading, oaicompat
sys.setswitchinterval(1e-5)
names, failed = ['OpenAICompatibleModel', 'infer_model', 'list_models', 'register_server'], []
def use(name):
    try:
        getattr(oaicompat, name)
    except BaseException as error:
        failed.append(error)
threads = [threading.Thread(target=use, args=[name]) for name in names]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(failed)
"""
    assert run(code) == '[]\n'


@pytest.mark.parametrize(
    ('module', 'name'),
    [
        *(('servers', 'register_server'), ('models', 'OpenAICompatibleModel'), ('routing', 'infer_model')),
        *(('discovery', 'list_models'), ('errors', 'is_retryable'), ('profile', 'CompatibleModelProfile')),
    ],
)
def test_a_thread_that_imports_a_module_and_one_that_uses_its_name(module: str, name: str) -> None:
    code = f"""
import faulthandler, threading, oaicompat
faulthandler.dump_traceback_later(60, exit=True)
uses = [lambda: __import__('oaicompat.{module}'), lambda: oaicompat.{name}]
threads = [threading.Thread(target=use) for use in uses]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(oaicompat.{name}.__name__)
"""
    assert run(code) == f'{name}\n'


def test_a_stand_in_is_not_kept() -> None:
    code = """
from unittest.mock import patch
import oaicompat
with patch('oaicompat.models.OpenAICompatibleModel', object()), patch('oaicompat.routing.infer_model'):
    fakes = oaicompat.OpenAICompatibleModel, oaicompat.infer_model
import oaicompat.models, oaicompat.routing
print(oaicompat.OpenAICompatibleModel is oaicompat.models.OpenAICompatibleModel)
print(oaicompat.infer_model is oaicompat.routing.infer_model)
"""
    assert run(code) == 'True\nTrue\n'


def test_the_version_without_a_place_to_print_it() -> None:
    code = "import sys; sys.stdout = None; sys.argv = ['x', '--version']; from oaicompat.cli import main; main()"
    assert run(code) == ''
