"""Fragments of calls before their name, in front of text: pydantic-ai has no part for them."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai import messages as m
from test_completions import HI, answered, ask, call
from test_streams import CALLED, STOP, sse

from oaicompat.testing import chunk

STUBS: list[Any] = [
    [{'': None}],
    [{'index': 0}],
    [{'index': 0, 'function': {'arguments': ''}}],
    [{'index': 0, 'type': 'function', 'function': {'name': '', 'arguments': ''}}],
    {'': None},
]


@pytest.mark.parametrize('stub', STUBS)
async def test_a_stub_that_says_nothing_is_no_call(stub: Any) -> None:
    asked = await ask(sse(chunk({'tool_calls': stub}), chunk({'content': 'Hi'}), STOP), stream=True)
    assert asked.response is not None
    assert asked.response.parts == [HI]


@pytest.mark.parametrize('fields', [{'id': 'x'}, {'function': {'arguments': '{}'}}])
async def test_a_call_whose_name_never_comes_is_an_error(fields: dict[str, Any]) -> None:
    events = chunk({'tool_calls': [{'index': 0, **fields}]}), chunk({'content': 'Hi'}), CALLED
    asked = await ask(sse(*events), stream=True)
    assert asked.response is None
    assert str(asked.error) == 'a tool call without a name'


async def test_what_comes_before_the_name_waits_for_it() -> None:
    function = {'arguments': '{"city":'}
    first = {'index': 0, 'id': 'call_1', 'type': 'function', 'function': function}
    named = {'index': 0, 'function': {'name': 'lookup', 'arguments': '"A"}'}}
    events = chunk({'tool_calls': [first]}), chunk({'content': 'Hi'}), chunk({'tool_calls': [named]}), CALLED
    asked = await ask(sse(*events), stream=True)
    expected: list[m.ModelResponsePart] = [HI, call('{"city":"A"}')]
    assert asked.response == answered(*expected, finish='tool_call', raw='tool_calls', usage=None)
