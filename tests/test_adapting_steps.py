"""More than one refusal in one call: what the caller says against a lesson, several lessons, guesses."""

from __future__ import annotations

import json
import logging
from typing import Any, cast

import pytest
from pydantic_ai.exceptions import ModelHTTPError, UserError
from pydantic_ai.messages import ModelRequest, SystemPromptPart, UserPromptPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition
from refusing import (
    LISTS,
    OFFERED,
    REFERRING,
    SEED,
    TOO_LONG,
    Refuses,
    Refusing,
    always,
    ask,
    at_work,
    called,
    failing,
    has_list,
    message,
    notes,
    refusal,
    roles,
)

from oaicompat import OpenAICompatibleModel, Server, register_server
from oaicompat.testing import Reply, ScriptedServer

# What the caller says


@pytest.mark.parametrize('as_function', [False, True])
async def test_what_the_caller_says_wins_over_a_lesson(as_function: bool) -> None:
    own = {'compat_tool_return': 'native'}
    profile = (lambda base: {**base, **own}) if as_function else own
    error, sent = await failing([(has_list, LISTS)], called(['a', 'b']), profile=profile)
    assert len(sent) == 1
    assert notes(error) == [
        (
            "oaicompat: {'compat_tool_return': 'joined'} would answer this refusal, "
            "but this model's own profile says otherwise"
        )
    ]


async def test_a_list_of_the_callers_is_told_with_what_it_lacks() -> None:
    own = {'compat_omit': ['user']}
    error, _ = await failing([(lambda body: 'seed' in body, SEED)], called('a'), {'seed': 1}, profile=own)
    assert notes(error) == [
        (
            "oaicompat: {'compat_omit': ['user', 'seed']} would answer this refusal, "
            "but this model's own profile says otherwise"
        )
    ]


async def test_the_refusal_that_the_caller_forbids_to_answer_is_the_one_told() -> None:
    rules: list[tuple[Refuses, Reply]] = [(lambda body: 'seed' in body, SEED), (has_list, LISTS)]
    error, sent = await failing(rules, called(['a', 'b']), {'seed': 1}, compat_tool_return='native')
    assert (message(error), len(sent), len(notes(error))) == (
        'messages[2].content: Input should be a valid string',
        2,
        1,
    )


async def test_what_was_learned_of_the_caller_s_own_function_is_not_shared() -> None:
    """A function may add to a list of fields; that is this model's alone."""
    rules: list[tuple[Refuses, Reply]] = [(lambda body: 'store' in body, refusal("Unknown parameter: 'store'."))]
    handler = Refusing(rules)

    def more(base: Any) -> Any:
        return {**base, 'compat_omit': (*base.get('compat_omit', ()), 'seed')}

    both: Any = {'openai_store': False, 'seed': 1}
    async with ScriptedServer(handler) as server:
        async with OpenAICompatibleModel('m', base_url=server.base_url, profile=more) as model:
            await ask(model, settings=both)
        async with OpenAICompatibleModel('m', base_url=server.base_url) as model:
            await ask(model, settings=both)
            assert model.learned == {'compat_omit': ('store',)}
    assert [sorted(body.keys() & {'seed', 'store'}) for body in handler.bodies] == [['store'], [], ['seed']]


async def test_a_row_and_a_lesson_both_count(caplog: pytest.LogCaptureFixture) -> None:
    handler = Refusing([(lambda body: 'store' in body, refusal("Unknown parameter: 'store'."))])
    caplog.set_level(logging.WARNING, 'oaicompat')
    both: Any = {'openai_store': False, 'seed': 1}
    async with ScriptedServer(handler) as server:
        register_server(Server(prefix='strict-one', base_url=server.base_url, profile={'compat_omit': ('seed',)}))
        async with OpenAICompatibleModel('m', provider='strict-one') as model:
            await ask(model, settings=both)
            await ask(model, settings=both)
            assert model.learned == {'compat_omit': ('store',)}
    assert [sorted(body.keys() & {'seed', 'store'}) for body in handler.bodies] == [['store'], [], []]
    # What is set in a profile stands in place of the row's, so the whole is told.
    assert "profile={'compat_omit': ['seed', 'store']}" in caplog.text


async def test_a_setting_refused_by_name_is_dropped_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    handler = Refusing([(lambda body: 'user' in body, refusal("Unknown parameter: 'user'."))])
    caplog.set_level(logging.WARNING, 'oaicompat')
    async with ScriptedServer(handler) as server, OpenAICompatibleModel('m', base_url=server.base_url) as model:
        answers = [await ask(model, settings={'openai_user': 'Ada'}) for _ in range(3)]
        plain = await ask(model)
    assert ['user' in body for body in handler.bodies] == [True, False, False, False, False]
    assert [answer.provider_details['oaicompat'] for answer in answers if answer.provider_details] == [
        ['request.omit']
    ] * 3
    assert 'oaicompat' not in (plain.provider_details or {})
    [record] = caplog.records
    assert "profile={'compat_omit': ['user']}" in record.getMessage()


# Several refusals in one call


async def test_two_lessons_of_one_refusal_need_one_more_request() -> None:
    both = Reply.json(
        {'detail': [
            {'loc': ['body', 'messages', 2, 'content'], 'msg': 'Input should be a valid string'},
            {'loc': ['body', 'seed'], 'msg': 'Extra inputs are not permitted'},
        ]},
        422,
    )  # fmt: skip
    handler = Refusing([(lambda body: 'seed' in body or has_list(body), both)])
    async with ScriptedServer(handler) as server, OpenAICompatibleModel('m', base_url=server.base_url) as model:
        answer = await ask(model, called(['a', 'b']), {'seed': 1})
        assert model.learned == {'compat_tool_return': 'joined', 'compat_omit': ('seed',)}
    assert len(handler.bodies) == 2
    assert (answer.provider_details or {})['oaicompat'] == ['request.omit', 'request.tool_return']


FOUR: Any = {'seed': 1, 'openai_store': False, 'temperature': 0.5, 'top_p': 0.5}


def having(name: str) -> Refuses:
    return lambda body: name in body


@pytest.mark.parametrize('count', [3, 4])
async def test_three_corrections_are_the_most(count: int) -> None:
    names = ['seed', 'store', 'temperature', 'top_p'][:count]
    rules = [(having(name), refusal(f"Unknown parameter: '{name}'.")) for name in names]
    handler = Refusing(rules)
    async with ScriptedServer(handler) as server, OpenAICompatibleModel('m', base_url=server.base_url) as model:
        if count == 3:
            await ask(model, settings=FOUR)
            assert model.learned == {'compat_omit': ('seed', 'store', 'temperature')}
        else:
            with pytest.raises(ModelHTTPError) as raised:
                await ask(model, settings=FOUR)
            assert message(raised.value) == "Unknown parameter: 'seed'."
            assert notes(raised.value) == [
                (
                    "oaicompat: sent again with {'compat_omit': ['seed']}, then {'compat_omit': ['seed', 'store']}, "
                    "then {'compat_omit': ['seed', 'store', 'temperature']}, it was refused again: "
                    "Unknown parameter: 'top_p'."
                )
            ]
            # Each step was taken, so the next call goes on from there.
            assert model.learned == {'compat_omit': ('seed', 'store', 'temperature')}
            assert (await ask(model, settings=FOUR)).text == 'done'
            assert len(handler.bodies) == 6
            return
    assert len(handler.bodies) == 4


@pytest.mark.parametrize(
    'second', [TOO_LONG, refusal('Invalid API key', 401), refusal('no such page', 404), refusal('no rights', 403)]
)
async def test_another_error_after_a_correction_is_the_one_told(second: Reply) -> None:
    """It is news; the lesson did not help to an answer, so the next call finds out again."""
    error, sent = await failing([(lambda body: 'seed' in body, SEED), (always, second)], options={'seed': 1})
    assert error.status_code == second.status
    assert message(error) == json.loads(second.body)['error']['message']
    assert len(sent) == 2


async def test_a_schema_that_can_not_be_sent_otherwise_is_named() -> None:
    dangling = {'type': 'object', 'properties': {'at': {'$ref': '#/$defs/Nowhere'}}}
    tools = ModelRequestParameters(function_tools=[ToolDefinition(name='lost', parameters_json_schema=dangling)])
    words = 'Unknown name "$ref" at \'tools[0].function_declarations[0].parameters\': Cannot find field.'
    error, sent = await failing([(always, refusal(words))], parameters=tools)
    assert (message(error), len(sent)) == (words, 1)
    [note] = notes(error)
    assert note.startswith(
        "oaicompat: the schema of 'lost' can't be sent in another form: the reference '#/$defs/Nowhere'"
    )
    async with ScriptedServer(Refusing([])) as server:
        model = OpenAICompatibleModel('m', base_url=server.base_url, profile={'compat_schema': ('$ref',)})
        with pytest.raises(UserError, match="the schema of 'lost'"):
            await ask(model, parameters=tools)
        assert server.requests == []


# Guesses

VAGUE = [Reply.raw(b'', 422), Reply.json({'error': {'message': 'Provider returned error', 'code': 400}}, 400)]
SEARCHED = [*called(['a', 'b']), ModelRequest([SystemPromptPart('late'), UserPromptPart('on')])]


@pytest.mark.parametrize('vague', VAGUE)
async def test_a_refusal_that_names_nothing_is_searched(vague: Reply) -> None:
    handler = Refusing([(lambda body: any(one['role'] == 'system' for one in body['messages'][1:]), vague)])
    async with ScriptedServer(handler) as server, OpenAICompatibleModel('m', base_url=server.base_url) as model:
        answers = [await ask(model, SEARCHED) for _ in range(2)]
        assert model.learned == {'compat_late_system': 'lift'}
    assert [has_list(body) for body in handler.bodies] == [True, False, True, True]
    assert [(answer.provider_details or {})['oaicompat'] for answer in answers] == [
        ['request.search', 'request.system'],
        ['request.system'],
    ]


@pytest.mark.parametrize('vague', VAGUE)
async def test_a_search_has_three_tries_and_keeps_nothing(vague: Reply) -> None:
    error, sent = await failing([(always, vague)], SEARCHED, {}, OFFERED)
    assert error.status_code == vague.status
    assert len(sent) == 4
    error, sent = await failing([(always, vague)], SEARCHED, {}, OFFERED, compat_search_refusals=False)
    assert len(sent) == 1


async def test_what_the_caller_says_is_not_searched() -> None:
    error, sent = await failing([(always, VAGUE[0])], called(['a', 'b']), compat_tool_return='native')
    assert [has_list(body) for body in sent] == [True, True]
    assert sent[1]['messages'][1]['content'] == ''
    tried = "{'compat_assistant_content': 'empty'}"
    assert notes(error) == [f'oaicompat: sent again with {tried}, it was refused again: it said nothing']


async def test_of_what_is_tried_together_the_rest_is_tried() -> None:
    picky = ModelRequestParameters(
        function_tools=[ToolDefinition(name='refer', description='', parameters_json_schema=REFERRING)]
    )
    handler = Refusing([(lambda body: None in at_work(body, 'assistant'), VAGUE[0])])
    own: Any = {'compat_late_system': 'asis'}
    async with ScriptedServer(handler) as server:
        async with OpenAICompatibleModel('m', base_url=server.base_url, profile=own) as model:
            await ask(model, SEARCHED, None, picky)
            assert model.learned == {'compat_assistant_content': 'empty'}
    tried = [(json.dumps(body).count('$ref'), has_list(body), 'system' in roles(body)) for body in handler.bodies]
    assert tried == [(1, True, True), (0, True, True), (1, False, True), (1, True, True)]


# Off


async def test_no_second_request_but_knobs_set_by_hand_still_act() -> None:
    off = {'compat_adapt': 'off', 'compat_omit': ('seed',)}
    handler = Refusing([(lambda body: 'store' in body, refusal("Unknown parameter: 'store'."))])
    async with ScriptedServer(handler) as server:
        async with OpenAICompatibleModel('m', base_url=server.base_url, profile=cast(Any, off)) as model:
            await ask(model, settings={'seed': 1})
            with pytest.raises(ModelHTTPError):
                await ask(model, settings=cast(Any, {'seed': 1, 'openai_store': False}))
            assert dict(model.learned) == {}
    assert [sorted(body) for body in handler.bodies] == [['messages', 'model'], ['messages', 'model', 'store']]


# An answer that comes as an error


async def test_a_refusal_with_another_shape_in_its_words_alone_teaches_nothing() -> None:
    """A server that echoes the request: what is quoted there is no complaint."""
    echo = Reply.json(
        {
            'detail': [
                {
                    'loc': ['body', 'top_p'],
                    'msg': 'Input should be a valid number',
                    'input': "Unknown parameter: 'seed'",
                }
            ]
        },
        422,
    )
    error, sent = await failing([(always, echo)], options=FOUR)
    assert (error.status_code, len(sent)) == (422, 1)
