"""The command line: exit statuses, one line for a mistake and never a traceback, and the JSON schema."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic_ai.exceptions import UserError

from oaicompat import __version__, cli
from oaicompat.cli import main
from oaicompat.config import json_schema, load_models
from oaicompat.testing import Reply, ScriptedServer, chunk

OWN = (
    'For a server of your own give the model a `base_url`, or register it '
    '(on the command line: --base-url URL, or with `models` the URL in place of the prefix)'
)
KEY = '(on the command line: --api-key-env VAR)'
NO_KEY = f'no key for `deepseek:`: set DEEPSEEK_API_KEY, or pass `api_key` to the model {KEY}'
NOT_CHAT = 'which is not a Chat Completions model of oaicompat'
URL = ('--base-url', 'http://localhost:8000/v1')


@pytest.fixture
def deaf_port() -> Iterator[int]:
    """A port that nobody else can take and that refuses every connection."""
    with socket.socket() as bound:
        bound.bind(('127.0.0.1', 0))
        yield bound.getsockname()[1]


def oaicompat(*arguments: str, code: str = 'from oaicompat.cli import main; import sys; sys.exit(main())') -> Any:
    """The command in a process of its own: exit status, standard output, standard error."""
    command = [sys.executable, '-c', code, *arguments] if code else [sys.executable, '-m', 'oaicompat', *arguments]
    done = subprocess.run(command, capture_output=True, encoding='utf-8', check=False)  # noqa: S603  # our own
    return done.returncode, done.stdout, done.stderr


def one_line(text: str) -> str:
    """`text`, which is exactly one line of ours."""
    assert text.startswith('oaicompat: ')
    assert text.endswith('\n')
    line = text.removesuffix('\n')
    assert '\n' not in line
    return line


def test_the_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(['schema']) == 0
    out, err = capsys.readouterr()
    assert (json.loads(out), err) == (json_schema(), '')


def test_the_module_and_the_script_run_the_same_command() -> None:
    expected = (0, json.dumps(json_schema(), indent=2) + '\n', '')
    assert oaicompat('schema', code='') == oaicompat('schema') == expected


@pytest.mark.parametrize('arguments', [['--help'], ['demo', '--help'], ['models', '--help'], ['schema', '--help']])
def test_help(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    out, err = capsys.readouterr()
    assert (caught.value.code, err) == (0, '')
    assert out.startswith('usage: oaicompat')


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(['--version'])
    assert (caught.value.code, *capsys.readouterr()) == (0, f'oaicompat {__version__}\n', '')


def test_help_names_every_command_and_option(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, words in (
        (['--help'], ['demo', 'models', 'schema', '--version']),
        (['demo', '--help'], ['--model', '--base-url', '--api-key-env']),
        (['models', '--help'], ['PREFIX|URL', '--api-key-env', '--json']),
    ):
        with pytest.raises(SystemExit):
            main(arguments)
        out = capsys.readouterr().out
        assert [word for word in words if word not in out] == []


@pytest.mark.parametrize(
    'arguments',
    [
        [],
        ['models'],
        ['models', 'ollama', 'x'],
        ['dmeo'],
        ['demo', '--modle', 'x'],
        ['demo', '--model'],
        ['schema', 'x'],
    ],
)
def test_a_mistyped_command_is_exit_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    out, err = capsys.readouterr()
    assert (caught.value.code, out) == (2, '')
    assert err.splitlines()[-1].startswith('oaicompat')


@pytest.mark.parametrize(
    ('options', 'expected'),
    [
        (URL, '--base-url and --api-key-env need --model NAME'),
        (('--api-key-env', 'HOME'), '--base-url and --api-key-env need --model NAME'),
        (('--model', 'glm-5', *URL, '--api-key-env', 'NO_KEY'), '--api-key-env names NO_KEY, which is not set'),
        (('--model', 'deepseek:x'), NO_KEY),
        (('--model', 'deepseak:x'), f'unknown prefix `deepseak:`; did you mean `deepseek:`? {OWN}'),
        (('--model', 'glm-5'), "`model` is 'glm-5', without a prefix; expected one such as openai-chat:glm-5"),
        (('--model', ''), "`model` is '', without a prefix; expected one such as openai-chat:glm-5"),
        (('--model', 'ollama:'), "'ollama:' names no model; expected a name behind the colon, as in openai-chat:glm-5"),
        (
            ('--model', 'x', '--base-url', 'ftp://localhost'),
            "`base_url`: 'ftp://localhost' is not an http or https URL such as http://localhost:8000/v1",
        ),
        (
            ('--model', 'x', '--base-url', 'http://me:s3cret@localhost'),
            f'`base_url`: credentials in a URL would show up in logs; pass them as `api_key` or as a header {KEY}',
        ),
        (('--model', 'test'), f"'test' gives TestModel, {NOT_CHAT}"),
        (('--model', 'vllm+responses:x'), f"'vllm+responses:x' gives OpenAICompatibleResponsesModel, {NOT_CHAT}"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_and_exit_status_2(
    options: tuple[str, ...], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(['demo', *options]) == 2
    out, err = capsys.readouterr()
    assert (out, err) == ('', f'oaicompat: {expected}\n')


def test_a_key_that_no_header_can_carry_is_not_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv('MY_KEY', 's3cret\nvalue')
    assert main(['demo', '--model', 'x', *URL, '--api-key-env', 'MY_KEY']) == 2
    assert 's3cret' not in one_line(capsys.readouterr().err)


@pytest.mark.parametrize('option', ['--api-key', '--api-key-env'])
@pytest.mark.parametrize('key', ['sk-s3cret', 'gsk_s3cret', 'S3CRET', 'A_' + 40 * 'S3CRET'])
@pytest.mark.parametrize('command', [['models', 'ollama'], ['demo', '--model', 'x', *URL]])
def test_a_key_in_place_of_its_variable_is_not_shown(
    command: list[str], key: str, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, option, key]) == 2
    told = '--api-key-env takes the name of the variable that holds the key, not the key; no such one is set'
    assert capsys.readouterr() == ('', f'oaicompat: {told}\n')


def test_a_missing_extra_is_one_line_that_says_what_to_install() -> None:
    for module in ('rich', 'xllamacpp'):
        code = f'import sys; sys.modules[{module!r}] = None; from oaicompat.cli import main; sys.exit(main())'
        status, out, err = oaicompat('demo', code=code)
        assert (status, out) == (2, '')
        assert one_line(err).endswith('install the extra: pip install "oaicompat[demo]"')
        assert f'the demo needs {module}' in err


@pytest.mark.parametrize(
    ('reply', 'words'),
    [
        (Reply.json({'error': {'message': 'no such model'}}, 404), ['404', 'no such model']),
        (Reply.json({'error': {'message': 'who are you'}}, 401), ['401', 'who are you']),
        (Reply.text('<html>\n<h1>Bad gateway</h1>\n</html>', 'text/html', 404), ['404', 'Bad gateway']),
        (Reply.text('<html>\n<h1>Log in</h1>\n</html>', 'text/html'), []),
        (Reply.json({'error': {'message': 'two\nlines'}}, 400), ['400', 'two', 'lines']),
    ],
)
async def test_a_refusal_is_one_line_and_exit_status_1(
    reply: Reply, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    async with ScriptedServer(lambda _: reply) as server:
        arguments = ['demo', '--model', 'm', '--base-url', server.base_url]
        status = await asyncio.to_thread(main, arguments)
        gc.collect()  # what was left open is this test's fault, and of no later one
        assert status == 1
        line = one_line(capsys.readouterr().err)
        assert [word for word in words if word not in line] == []


async def test_an_answer_that_breaks_off_ends_its_line_before_the_error(capsys: pytest.CaptureFixture[str]) -> None:
    reply = Reply.sse(chunk('It is '), ': ping\n\n', done=False, ending='drop', pause=0.5)
    async with ScriptedServer(lambda _: reply) as server:
        status = await asyncio.to_thread(main, ['demo', '--model', 'm', '--base-url', server.base_url])
        gc.collect()  # what was left open is this test's fault, and of no later one
    out, err = capsys.readouterr()
    assert status == 1
    assert out.endswith('answers: It is \n')
    one_line(err)


def test_an_unreachable_server_is_one_line_and_exit_status_1(
    deaf_port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(['demo', '--model', 'm', '--base-url', f'http://127.0.0.1:{deaf_port}/v1']) == 1
    assert f'http://127.0.0.1:{deaf_port}/v1' in one_line(capsys.readouterr().err)


def test_ctrl_c_is_exit_status_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, '_schema', interrupted)
    assert main(['schema']) == 130
    assert capsys.readouterr() == ('', '')


def test_a_fault_of_our_own_is_not_taken_for_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: object) -> int:
        raise ZeroDivisionError

    monkeypatch.setattr(cli, '_schema', broken)
    with pytest.raises(ZeroDivisionError):
        main(['schema'])


@pytest.mark.parametrize('arguments', [['schema'], ['--help']])
@pytest.mark.skipif(os.name == 'nt', reason='no broken pipes there')
def test_a_broken_pipe_is_silent(arguments: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, '-m', 'oaicompat', *arguments]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False)  # noqa: S603  # our own
    os.close(writer)
    assert done.stderr == b''
    assert done.returncode in (0, 120)  # 120 is Python's own, where its last flush found the pipe broken


# The models of a server


async def models(reply: Reply, *options: str) -> tuple[int, ScriptedServer]:
    async with ScriptedServer(lambda _: reply) as server:
        return await asyncio.to_thread(main, ['models', server.base_url, *options]), server


LISTED = Reply.raw(
    rb'[{"id": "qwen3:8b", "context_length": 40960, "owned_by": "lib"}, {"id": "Bge-M3"}, {"id": "a\u001b[2J\ud800"}]'
)


async def test_models_are_printed_as_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    status, server = await models(LISTED)
    out, err = capsys.readouterr()
    assert (status, err) == (0, '')
    assert out == (
        'model     context window\n'
        'a?[2J?                 -\n'
        'Bge-M3                 -\n'
        'qwen3:8b           40960\n'
    )  # fmt: skip
    assert [request.route for request in server.requests] == ['GET /v1/models']


async def test_models_are_printed_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    status, _ = await models(LISTED, '--json')
    out, err = capsys.readouterr()
    assert (status, err) == (0, '')
    assert json.loads(out) == [
        {'id': 'a\x1b[2J\ud800', 'context_window': None, 'owned_by': None},
        {'id': 'Bge-M3', 'context_window': None, 'owned_by': None},
        {'id': 'qwen3:8b', 'context_window': 40960, 'owned_by': 'lib'},
    ]


async def test_a_server_without_models(capsys: pytest.CaptureFixture[str]) -> None:
    for options, expected in (((), 'the server lists no models\n'), (('--json',), '[]\n')):
        status, _ = await models(Reply.json({'data': None}), *options)
        assert (status, *capsys.readouterr()) == (0, expected, '')


async def test_a_key_for_the_list_is_sent_and_never_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv('MY_KEY', 's3cret')
    for reply, expected in ((LISTED, 0), (Reply.json({'error': {'message': 'who are you'}}, 401), 1)):
        status, server = await models(reply, '--api-key-env', 'MY_KEY')
        assert status == expected
        assert server.requests[0].headers['authorization'] == 'Bearer s3cret'
        assert 's3cret' not in ''.join(capsys.readouterr())


@pytest.mark.parametrize(
    ('arguments', 'expected'),
    [
        (['deepseek'], NO_KEY),
        (['deepseak'], f'unknown prefix `deepseak:`; did you mean `deepseek:`? {OWN}'),
        (['ollama', '--api-key-env', 'NO_KEY'], '--api-key-env names NO_KEY, which is not set'),
        (['ftp://host'], "`base_url`: 'ftp://host' is not an http or https URL such as http://localhost:8000/v1"),
        (
            ['http://me:s3cret@localhost'],
            f'`base_url`: credentials in a URL would show up in logs; pass them as `api_key` or as a header {KEY}',
        ),
    ],
)
def test_a_mistake_about_models_is_one_line(
    arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(['models', *arguments]) == 2
    assert capsys.readouterr() == ('', f'oaicompat: {expected}\n')


async def test_what_is_no_list_is_one_line_and_exit_status_1(capsys: pytest.CaptureFixture[str]) -> None:
    status, server = await models(Reply.text('<html>\n<h1>Log in</h1>\n</html>', 'text/html'))
    expected = f"expected a list of models and got '<html> <h1>Log in</h1> </html>'; `base_url` is {server.base_url}"
    assert (status, *capsys.readouterr()) == (1, '', f'oaicompat: {expected}, and its /models was asked\n')


# What the schema says


@pytest.mark.parametrize(
    'models',
    [
        {},
        {'a': 'ollama:x'},
        {'a': {'identifier': 'ollama:x', 'temperature': 0.5, 'capabilities': ['tools']}},
        {'a': {'type': 'string', 'identifier': 'ollama:x', 'capabilities': {'vision': True}}},
        {'a': {'identifier': 'ollama:x', 'api_key': '${KEY}', 'thinking': 'high', 'headers': {'a': 'b'}}},
        {'a': {'identifier': 'x', 'base_url': 'http://localhost/v1', 'profile': {'tool_return_as_list': True}}},
        {'a': {'type': 'test', 'text': 'ok'}},
        {'a': 'ollama:x', 'b': {'type': 'fallback', 'models': ['a', 'vllm:y', {'identifier': 'ollama:z'}]}},
    ],
)
def test_the_schema_accepts_what_is_read(models: dict[str, Any]) -> None:
    value = {'models': models, 'servers': {'acme': {'base_url': 'http://a.test/v1', 'kind': 'local'}}}
    Draft202012Validator.check_schema(json_schema())
    load_models(json.dumps(value))
    assert list(Draft202012Validator(json_schema()).iter_errors(value)) == []


@pytest.mark.parametrize(
    'value',
    [
        {},
        {'models': []},
        {'models': {'a': 5}},
        {'models': {}, 'server': {}},
        {'models': {}, 'servers': {'acme': {'kind': 'cloud'}}},
        {'models': {'a': {}}},
        {'models': {'a': {'identifier': 'ollama:x', 'temprature': 1}}},
        {'models': {'a': {'identifier': 'ollama:x', 'temperature': -1}}},
        {'models': {'a': {'identifier': 'ollama:x', 'top_p': 1.5}}},
        {'models': {'a': {'identifier': 'ollama:x', 'api': 'soap'}}},
        {'models': {'a': {'identifier': 'ollama:x', 'capabilities': ['toools']}}},
        {'models': {'a': {'type': 'strng', 'identifier': 'ollama:x'}}},
        {'models': {'a': {'type': 'fallback', 'models': []}}},
        {'models': {'a': {'type': 'fallback', 'models': [{'identifier': 'ollama:x', 'sead': 1}]}}},
    ],
)
def test_the_schema_refuses_what_is_refused(value: Any) -> None:
    with pytest.raises(UserError):
        load_models(json.dumps(value))
    assert not Draft202012Validator(json_schema()).is_valid(value)
