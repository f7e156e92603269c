"""Ids of tool calls, for servers that take them in one form alone."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai import messages as m
from pydantic_ai.models import ModelRequestParameters

from oaicompat import OpenAICompatibleModel
from oaicompat._history import alnum9, with_short_ids
from oaicompat.testing import Reply, ScriptedServer, completion

SHORT = 'aB3dE5gH7'


def history(*ids: str) -> list[m.ModelMessage]:
    return [
        m.ModelRequest(parts=[m.UserPromptPart('hi')]),
        m.ModelResponse(parts=[m.ToolCallPart('look', {}, id_) for id_ in ids]),
        m.ModelRequest(parts=[m.ToolReturnPart('look', 'seen', id_) for id_ in ids]),
    ]


async def sent(messages: list[m.ModelMessage], **profile: Any) -> list[Any]:
    async with ScriptedServer([Reply.json(completion('OK'))] * 2) as server:
        options: Any = {'base_url': server.base_url, 'profile': profile, 'api_key': 'key'}
        async with OpenAICompatibleModel('m', **options) as model:
            await model.request(messages, None, ModelRequestParameters())
            await model.request(messages, None, ModelRequestParameters())
        first, second = (request.json['messages'] for request in server.requests)
    assert first == second
    return list(first)


def ids_in(messages: list[Any]) -> tuple[list[str], list[str]]:
    calls = [call['id'] for message in messages for call in message.get('tool_calls') or ()]
    return calls, [message['tool_call_id'] for message in messages if message['role'] == 'tool']


async def test_a_call_and_its_result_get_one_short_id() -> None:
    given_ = history('call_PTLP8xhu3uwZk4l3', SHORT)
    calls, results = ids_in(await sent(given_, compat_tool_call_ids='alnum9'))
    assert calls == results
    assert all(re.fullmatch('[a-zA-Z0-9]{9}', id_) for id_ in calls)
    assert calls[1] == SHORT
    assert [part.tool_call_id for part in given_[1].parts if isinstance(part, m.ToolCallPart)] == [
        'call_PTLP8xhu3uwZk4l3',
        SHORT,
    ]


async def test_ids_stay_by_default() -> None:
    assert ids_in(await sent(history('call_1', 'call_2'))) == (['call_1', 'call_2'], ['call_1', 'call_2'])


async def test_mistral_gets_short_ids() -> None:
    async with ScriptedServer([Reply.json(completion('OK'))]) as server:
        model = OpenAICompatibleModel('m', provider='mistral-compat', base_url=server.base_url, api_key='key')
        async with model:
            await model.request(history('call_1'), None, ModelRequestParameters())
        calls, results = ids_in(server.requests[0].json['messages'])
    assert calls == results == [alnum9('call_1')]


@given(st.sets(st.text(max_size=30), max_size=20))
def test_ids_stay_apart_and_short_ones_stay(ids: set[str]) -> None:
    short = {alnum9(id_) for id_ in ids}
    assert len(short) == len(ids)
    assert all(re.fullmatch('[a-zA-Z0-9]{9}', id_) and alnum9(id_) == id_ for id_ in short)


@pytest.mark.parametrize('profile', [{}, {'compat_tool_call_ids': 'asis'}])
def test_the_history_itself_where_nothing_changes(profile: dict[str, Any]) -> None:
    messages = history('call_1')
    assert with_short_ids(messages, profile) is messages
    short = history(SHORT)
    assert with_short_ids(short, {'compat_tool_call_ids': 'alnum9'}) is short
