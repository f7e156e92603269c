"""The demo: on a scripted server in every shape, and the real one as a user runs it."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from io import StringIO
from typing import Any

import pytest
from rich.console import Console
from test_llama_cpp import needs_llama_cpp

from oaicompat._demo import _view, run
from oaicompat.testing import RecordedRequest, Reply, ScriptedServer, chunk, tool_call

CHAT, APPLY = 'POST /v1/chat/completions', 'POST /apply-template'
TEXTS = ['Rome: "sunny", 24 °C', 'wind: light, from the sea']
AS_STRING = json.dumps(TEXTS, ensure_ascii=False, separators=(',', ':'))
AS_PARTS = [{'type': 'text', 'text': text} for text in TEXTS]
CALL = tool_call('get_weather', {'city': 'Rome'}, 'call_1')


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Console:
    """A wide screen without colours, in place of standard output."""
    console = Console(highlight=False, width=200, file=StringIO())
    monkeypatch.setattr(_view, '_console', console)
    return console


def shown(console: Console) -> str:
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def answer(request: RecordedRequest) -> Reply:
    """The call of the tool, then a text; `/apply-template` shows the tool's content, or its texts, between tags."""
    messages = request.json['messages']
    if request.route == APPLY:
        content = messages[-1]['content']
        texts = [content] if isinstance(content, str) else [part['text'] for part in content]
        prompt = ''.join(f'<tool_response>{text}</tool_response>\n' for text in texts)
        return Reply.json({'prompt': f'<s>before\n<tool_call>it</tool_call>\n{prompt}'})
    if messages[-1]['role'] == 'tool':
        return Reply.sse(
            chunk({'role': 'assistant', 'content': 'It is '}), chunk('sunny.'), chunk(finish_reason='stop')
        )
    call = {'role': 'assistant', 'tool_calls': [{'index': 0, **CALL}]}
    return Reply.sse(chunk(call), chunk(finish_reason='tool_calls'))


def answer_without_templates(request: RecordedRequest) -> Reply:
    return Reply.json({'error': {'message': 'File Not Found'}}, 404) if request.route == APPLY else answer(request)


def answer_without_tools(request: RecordedRequest) -> Reply:
    return Reply.sse(chunk({'role': 'assistant', 'content': 'No idea.'}), chunk(finish_reason='stop'))


async def play(script: Callable[[RecordedRequest], Reply], **options: Any) -> tuple[int, list[RecordedRequest]]:
    """The exit status of the demo on a server that plays this script, and what it asked."""
    async with ScriptedServer(script) as server:
        status = await asyncio.to_thread(run, model='m', base_url=server.base_url, **options)
        gc.collect()  # what was left open is this test's fault, and of no later one
    return status, server.requests


def tool_messages(requests: list[RecordedRequest]) -> list[Any]:
    last = [request.json['messages'][-1] for request in requests if request.route == CHAT]
    return [message for message in last if message['role'] == 'tool']


async def test_both_requests_and_both_prompts_are_shown(screen: Console) -> None:
    status, requests = await play(answer)
    assert status == 0
    assert [request.route for request in requests] == [CHAT, CHAT, APPLY, CHAT, CHAT, APPLY]
    assert tool_messages(requests) == [
        {'role': 'tool', 'tool_call_id': 'call_1', 'content': AS_STRING},
        {'role': 'tool', 'tool_call_id': 'call_1', 'content': AS_PARTS},
    ]
    text = shown(screen)
    assert text.count('answers: It is sunny.\n') == 2
    head, message, prompt = re.split('The tool message in the request|The prompt that the server renders from it', text)
    assert 'pydantic-ai answers' in head
    assert json.dumps(AS_STRING, ensure_ascii=False) in message
    assert all(json.dumps(text, ensure_ascii=False) in message for text in TEXTS)
    assert f'<tool_response>{AS_STRING}</tool_response>' in prompt
    assert all(f'<tool_response>{text}</tool_response>' in prompt for text in TEXTS)
    assert 'before' not in prompt  # what is the same in both prompts is left out


async def test_the_template_is_asked_with_what_was_sent(screen: Console) -> None:
    """The prompt shown is that of the request, tools and all, and of no other."""
    _, requests = await play(answer)
    for chat, apply in ((requests[1], requests[2]), (requests[4], requests[5])):
        assert apply.json == {key: chat.json[key] for key in ('model', 'messages', 'tools')}


async def test_a_server_without_templates_is_told(screen: Console) -> None:
    status, _ = await play(answer_without_templates)
    assert status == 0
    assert 'This server has no /apply-template, so the prompt it renders' in shown(screen)
    assert 'The prompt that the server renders from it' not in shown(screen)


async def test_a_model_that_never_calls_the_tool_is_told_with_exit_status_1(screen: Console) -> None:
    status, requests = await play(answer_without_tools)
    assert status == 1
    assert [request.route for request in requests] == [CHAT, CHAT]
    assert shown(screen).count('the model did not call the tool') == 2


async def test_the_key_of_the_variable_is_sent_and_never_shown(
    screen: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('MY_KEY', 'sk-s3cret')
    monkeypatch.setenv('OPENAI_API_KEY', 'sk-openai')
    status, requests = await play(answer, api_key_env='MY_KEY')
    assert status == 0
    assert {request.headers['authorization'] for request in requests} == {'Bearer sk-s3cret'}
    assert 's3cret' not in shown(screen)


async def test_a_terminal_of_ascii_shows_what_it_can() -> None:
    """A frame, an answer and a tool result that it can't show are no reason to stop."""
    async with ScriptedServer(answer) as server:
        arguments = ('--model', 'm', '--base-url', server.base_url)
        done = await asyncio.to_thread(demo, '-W', 'default', options=arguments, encoding='ascii')
    assert (done.returncode, done.stderr) == (0, '')
    assert 'answers: It is sunny.\n' in done.stdout
    assert '24 ?C' in done.stdout


def demo(
    *python_options: str, options: tuple[str, ...] = (), encoding: str = 'utf-8'
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, 'COLUMNS': '200', 'PYTHONIOENCODING': encoding, 'NO_COLOR': '1'}
    command = [sys.executable, *python_options, '-m', 'oaicompat', 'demo', *options]
    return subprocess.run(  # noqa: S603  # our own command
        command, env=environment, capture_output=True, encoding='utf-8', timeout=120, check=False
    )


@pytest.fixture(scope='module')
def real_demo() -> subprocess.CompletedProcess[str]:
    """`oaicompat demo` without options, on the real server, as a user runs it."""
    return demo('-W', 'default')


def columns(text: str) -> tuple[list[str], list[str]]:
    """The lines of the left and of the right panels."""
    rows = [line.split('│') for line in text.splitlines() if line.count('│') >= 2]
    left = [row[1].strip() for row in rows if row[0] == '']
    right = [row[-2].strip() for row in rows]
    return left, right


@needs_llama_cpp
def test_the_real_demo_ends_with_both_prompts(real_demo: subprocess.CompletedProcess[str]) -> None:
    assert real_demo.returncode == 0
    _, found, last = real_demo.stdout.partition('The prompt that the server renders from it')
    assert found
    left, right = columns(last)
    call = ['<tool_call>', '{"name": "get_weather", "arguments": {"city": "Rome"}}', '</tool_call><|im_end|>']
    end = ['</tool_response><|im_end|>', '<|im_start|>assistant']
    before = [*call, '<|im_start|>user', '<tool_response>']
    assert [line for line in left if line] == [*before, AS_STRING, *end]
    assert right == [*before, TEXTS[0], '</tool_response>', '<tool_response>', TEXTS[1], *end]


@needs_llama_cpp
def test_the_real_demo_shows_both_answers_and_both_requests(real_demo: subprocess.CompletedProcess[str]) -> None:
    head, _, rest = real_demo.stdout.partition('The tool message in the request')
    left, right = columns(rest.partition('The prompt that')[0])
    assert re.findall(r'^(.+) answers: .*Rome.*$', head, re.MULTILINE) == ['pydantic-ai', 'oaicompat']
    assert json.loads(''.join(left)) == {'role': 'tool', 'content': AS_STRING}
    assert json.loads(''.join(right)) == {'role': 'tool', 'content': AS_PARTS}


@needs_llama_cpp
def test_the_real_demo_keeps_standard_error_empty(real_demo: subprocess.CompletedProcess[str]) -> None:
    """Neither the server's log nor a warning about what was left open (`-W default` shows those)."""
    assert real_demo.stderr == ''
