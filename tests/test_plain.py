"""What is told fast to be as it should be is what the repairs leave as it is."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from test_odd_types import CONTEXTS, ODD, odd_ones

from oaicompat._completion import repair_completion
from oaicompat._context import Context
from oaicompat._plain import is_plain

USAGE = {'prompt_tokens': 1, 'completion_tokens': 2, 'total_tokens': 3, 'prompt_tokens_details': {'cached_tokens': 0}}
MESSAGE: dict[str, Any] = {'role': 'assistant', 'content': 'Hello', 'refusal': None, 'annotations': []}
PLAIN: dict[str, Any] = {
    'id': 'i',
    'object': 'chat.completion',
    'created': 1,
    'model': 'm',
    'service_tier': 'default',
    'system_fingerprint': None,
    'choices': [{'index': 0, 'message': MESSAGE, 'logprobs': None, 'finish_reason': 'stop'}],
    'usage': USAGE,
}
MORE: list[Any] = [
    10**20,
    1e300,
    'error',
    'tool_calls',
    '<think>hm</think>Hi',
    'hm</think>Hi',
    '\ud83d',
    '  ',
    '3',
    '3.0',
]
MORE += [{'total_tokens': 1}, [{'message': MESSAGE}], {'cached_tokens': 2.0}, {'text_tokens': '4'}, {'price': 0.5}]
ANY = [Context('m'), Context('gpt-oss'), Context('m', alternatives=True), Context('m', closing_only=True), *CONTEXTS]


def whole(body: Any, context: Context) -> tuple[Any, set[str]]:
    """What all repairs make of it, and their names."""
    repairs: set[str] = set()
    return repair_completion(body, context, repairs), repairs


def test_most_are() -> None:
    assert is_plain(PLAIN, Context('m'))
    assert is_plain({**PLAIN, 'usage': {**USAGE, 'completion_tokens_details': {}}}, Context('m', closing_only=True))


@pytest.mark.parametrize('odd', [*ODD, *MORE], ids=repr)
def test_what_is_plain_has_nothing_to_repair(odd: Any) -> None:
    bodies = [PLAIN, *odd_ones(PLAIN, odd), *({**PLAIN, key: odd} for key in ('error', 'moderation', 'data', 'status'))]
    bodies += [{**PLAIN, 'choices': [{**PLAIN['choices'][0], key: odd}]} for key in ('delta', 'text', 'error')]
    for key in ('reasoning_content', 'reasoning_details', 'tool_calls', 'function_call', 'audio', 'thinking'):
        bodies.append({**PLAIN, 'choices': [{**PLAIN['choices'][0], 'message': {**MESSAGE, key: odd}}]})
    bodies += [{**PLAIN, 'usage': {**USAGE, key: odd}} for key in ('input_tokens', 'cost', 'x_tokens', 'x_details')]
    for context in ANY:
        for body in bodies:
            if is_plain(body, context):
                told = deepcopy(body)
                assert whole(told, context) == (body, set())
                assert repair_completion(body, context, set()) is body
