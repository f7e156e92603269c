"""llama.cpp: told by its answers, asked once what its template makes of a list."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from test_learning import NATIVE, ask, history, results

from oaicompat import OpenAICompatibleModel
from oaicompat._memory import MEMORY
from oaicompat._templates import keeps_elements, question
from oaicompat.testing import RecordedRequest, Reply, ScriptedServer, chunk, completion

Render = Callable[[list[str]], Reply]

JOINED, KEPT = ['a\nb'], [NATIVE]


def prompt(text: str) -> Reply:
    return Reply.json({'prompt': text})


TEMPLATES: dict[str, tuple[Render, list[Any]]] = {
    'a block each': (lambda parts: prompt(''.join(f'<r>{part}</r>' for part in parts)), KEPT),
    'a line each': (lambda parts: prompt('\n'.join(parts)), KEPT),
    'glued': (lambda parts: prompt(''.join(parts)), JOINED),
    'dropped': (lambda _: prompt('<r></r>'), JOINED),
    'only the first': (lambda parts: prompt(parts[0]), JOINED),
    'only the last': (lambda parts: prompt(parts[-1]), JOINED),
    'another order': (lambda parts: prompt('\n'.join(reversed(parts))), JOINED),
    'a Python dump': (lambda parts: prompt(str([{'type': 'text', 'text': part} for part in parts])), JOINED),
    'a JSON dump': (lambda parts: Reply.json({'prompt': Reply.json(parts).body.decode()}), JOINED),
    'no such endpoint': (lambda _: Reply.json({'error': {'message': 'File Not Found'}}, 404), JOINED),
    'a template error': (lambda _: Reply.json({'error': {'message': 'jinja'}}, 500), JOINED),
    'no JSON': (lambda _: Reply.text('<html>', 'text/html'), JOINED),
    'no prompt': (lambda _: Reply.json({'prompt': None}), JOINED),
    'no object': (lambda _: Reply.json(['prompt']), JOINED),
}


def llama_cpp(render: Render, **answer: Any) -> Callable[[RecordedRequest], Reply]:
    def handler(request: RecordedRequest) -> Reply:
        if request.route == 'POST /apply-template':
            assert request.json == question('m')
            return render([part['text'] for part in request.json['messages'][-1]['content']])
        if request.json.get('stream'):
            first = {**chunk('done'), **answer.get('fields', {})}
            return Reply.sse(first, chunk(finish_reason='stop'), headers=answer.get('headers', {}))
        return Reply.json({**completion('done'), **answer.get('fields', {})}, headers=answer.get('headers', {}))

    return handler


def asked(server: ScriptedServer) -> int:
    return [request.route for request in server.requests].count('POST /apply-template')


def sent(server: ScriptedServer) -> list[list[Any]]:
    return [results(request) for request in server.requests if request.route != 'POST /apply-template']


def known(server: ScriptedServer) -> OpenAICompatibleModel:
    return OpenAICompatibleModel('m', provider='llama-cpp', base_url=server.base_url)


@pytest.mark.parametrize(('render', 'expected'), TEMPLATES.values(), ids=TEMPLATES)
async def test_auto_keeps_every_element(render: Render, expected: list[Any]) -> None:
    async with ScriptedServer(llama_cpp(render)) as server, known(server) as model:
        await ask(model)
        await ask(model)
    assert sent(server) == [expected, expected]
    assert asked(server) == 1


async def test_a_burst_asks_once() -> None:
    async with (
        ScriptedServer(llama_cpp(TEMPLATES['glued'][0])) as server,
        known(server) as model,
        known(server) as other,
    ):
        await asyncio.gather(*[ask(each) for each in (model, other) * 20])
    assert sent(server) == [JOINED] * 40
    assert asked(server) == 1


async def test_nothing_is_asked_without_a_list() -> None:
    async with ScriptedServer(llama_cpp(TEMPLATES['glued'][0])) as server, known(server) as model:
        await ask(model, history('text', {'a': [1]}))
        await ask(model, history(['', '']))
    assert asked(server) == 0


@pytest.mark.parametrize('form', ['native', 'joined', 'string'])
async def test_nothing_is_asked_where_the_caller_chose(form: Any) -> None:
    async with ScriptedServer(llama_cpp(TEMPLATES['glued'][0])) as server:
        profile: Any = {'compat_tool_return': form}
        async with OpenAICompatibleModel('m', provider='llama-cpp', base_url=server.base_url, profile=profile) as model:
            await ask(model)
    assert asked(server) == 0


async def test_nothing_is_asked_with_adaptation_off() -> None:
    async with ScriptedServer(llama_cpp(TEMPLATES['a block each'][0])) as server:
        profile: Any = {'compat_adapt': 'off'}
        async with OpenAICompatibleModel('m', provider='llama-cpp', base_url=server.base_url, profile=profile) as model:
            await ask(model)
    assert (asked(server), sent(server)) == (0, [JOINED])


async def test_a_dropped_question_is_asked_again() -> None:
    def flaky(request: RecordedRequest) -> Reply:
        if request.route == 'POST /apply-template' and asked(server) == 1:
            return Reply.bare()
        return llama_cpp(TEMPLATES['a block each'][0])(request)

    async with ScriptedServer(flaky) as server, known(server) as model:
        await ask(model)
        await ask(model)
    assert sent(server) == [JOINED, KEPT]
    assert asked(server) == 2


SIGNS: dict[str, dict[str, Any]] = {
    'fingerprint': {'fields': {'system_fingerprint': 'b7531-8a9e2d1f0'}},
    'timings': {'fields': {'timings': {'prompt_n': 1}}},
    'header': {'headers': {'Server': 'llama.cpp'}},
}
VISIBLE = {(sign, stream) for sign in SIGNS for stream in (False, True)} - {
    ('header', False),  # the SDK gives no headers with a unary answer; the two others always come there
    ('timings', True),  # only in the last chunk; the two others come before it
}


@pytest.mark.parametrize(('sign', 'stream'), sorted(VISIBLE))
async def test_an_endpoint_is_told_by_its_answers(sign: str, stream: bool) -> None:
    """Native goes to an endpoint that nobody knows yet; from its first answer on it is llama.cpp."""
    async with ScriptedServer(llama_cpp(TEMPLATES['dropped'][0], **SIGNS[sign])) as server:
        async with OpenAICompatibleModel('m', base_url=server.base_url) as model:
            await ask(model, stream=stream)
            assert MEMORY.kind(server.base_url) == 'llama.cpp'
            await ask(model, stream=stream)
    assert sent(server) == [KEPT, JOINED]
    assert asked(server) == 1


async def test_an_error_tells_it_by_its_header() -> None:
    async with ScriptedServer([Reply.json({'error': 'x'}, 400, headers={'Server': 'llama.cpp'})]) as server:
        async with OpenAICompatibleModel('m', base_url=server.base_url) as model:
            with pytest.raises(Exception, match='status_code: 400'):
                await ask(model)
            assert MEMORY.kind(server.base_url) == 'llama.cpp'


@pytest.mark.parametrize('fingerprint', ['fp_44709d6fcb', 'b', 'build-1', '', None, 7])
async def test_others_are_not_taken_for_it(fingerprint: Any) -> None:
    fields = {'system_fingerprint': fingerprint}
    async with ScriptedServer(llama_cpp(TEMPLATES['dropped'][0], fields=fields)) as server:
        async with OpenAICompatibleModel('m', base_url=server.base_url) as model:
            await ask(model, stream=True)
            await ask(model, stream=True)
    assert sent(server) == [KEPT, KEPT]


@pytest.mark.parametrize('answer', [None, 'prompt', [], {}, {'prompt': 7}, {'prompt': ''}])
def test_an_odd_answer_keeps_nothing(answer: object) -> None:
    assert not keeps_elements(answer)
