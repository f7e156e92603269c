"""Any field of an answer may hold a value of any type: what comes out is an answer or a typed error, nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import pytest

from oaicompat._completion import fold, repair_completion
from oaicompat._context import Context
from oaicompat._envelope import FailureError, IncompleteError
from oaicompat._offer import Offer
from oaicompat._repair import ChunkRepair
from oaicompat._response_events import EventRepair
from oaicompat._responses import repair_response
from oaicompat._thinking import KNOWN_TAGS

SCHEMAS: dict[str, Any] = {'look': {'type': 'object', 'properties': {'city': {'type': 'string'}}}}
TEXT_CALL = '<tool_call>{"name": "look", "arguments": {"city": "Rome"}}</tool_call>'
CONTEXTS = [
    Context('m', SCHEMAS, offer=Offer(SCHEMAS, 'on')),
    Context('m', SCHEMAS, offer=Offer(SCHEMAS, 'suppress'), answer_in_reasoning=True, closing_only=True),
    Context('gpt-oss', {}, tags=KNOWN_TAGS, alternatives=True, cumulative_usage=True, details=False),
]
ODD: list[Any] = [None, True, 0, -1, 2.5, '', 'x', [], {}, [None], ['x'], [[]], [{}], {'x': None}, {'type': 'x'}]

USAGE = {'prompt_tokens': 1, 'completion_tokens': 2, 'total_tokens': 3, 'prompt_tokens_details': {'cached_tokens': 0}}
CALL = {'index': 0, 'id': 'c', 'type': 'function', 'function': {'name': 'look', 'arguments': '{"city": "Rome"}'}}
DETAIL = {'type': 'reasoning.text', 'text': 'hm', 'id': 'd', 'index': 0, 'format': 'x', 'signature': 's'}
HEAD = {'id': 'i', 'created': 1, 'model': 'm', 'service_tier': 'default', 'system_fingerprint': 'b1-x'}
MESSAGE = {
    'role': 'assistant',
    'content': f'<think>hm</think>Hello {TEXT_CALL}',
    'reasoning_content': 'hm',
    'reasoning_details': [DETAIL],
    'refusal': None,
    'annotations': [{'type': 'url_citation', 'url_citation': {'url': 'https://example.com'}}],
    'tool_calls': [CALL],
}
LOGPROBS = {'content': [{'token': 'a', 'logprob': -0.5, 'bytes': [97], 'top_logprobs': []}], 'refusal': None}
COMPLETION = {
    **HEAD,
    'object': 'chat.completion',
    'choices': [{'index': 0, 'message': MESSAGE, 'logprobs': LOGPROBS, 'finish_reason': 'stop'}],
    'usage': USAGE,
}


def chunk(delta: Any, finish: Any = None, **fields: Any) -> dict[str, Any]:
    choice = {'index': 0, 'delta': delta, 'logprobs': None, 'finish_reason': finish}
    return {**HEAD, 'object': 'chat.completion.chunk', 'choices': [choice], **fields}


CHUNKS: list[Any] = [
    chunk({'role': 'assistant', 'content': ''}),
    chunk({'reasoning_content': 'hm', 'reasoning_details': [DETAIL]}),
    chunk({'content': f'Hello {TEXT_CALL}'}),
    chunk({'tool_calls': [CALL]}),
    chunk({'tool_calls': [{'index': 0, 'function': {'arguments': ' '}}]}),
    chunk({}, 'stop', usage=USAGE),
    {**chunk({}), 'choices': [{'index': 0, 'message': MESSAGE, 'finish_reason': 'tool_calls'}]},
]
PART = {'type': 'output_text', 'text': 'Hello', 'annotations': [], 'logprobs': []}
ITEMS: list[Any] = [
    {'type': 'reasoning', 'id': 'r', 'summary': [{'type': 'summary_text', 'text': 'hm'}], 'content': None},
    {'type': 'message', 'id': 'o', 'role': 'assistant', 'status': 'completed', 'content': [PART]},
    {'type': 'function_call', 'id': 'f', 'call_id': 'c', 'name': 'look', 'arguments': '{"city": "Rome"}'},
]
RESPONSE: dict[str, Any] = {
    'id': 'i',
    'object': 'response',
    'created_at': 1,
    'model': 'm',
    'status': 'completed',
    'error': None,
    'incomplete_details': None,
    'output': ITEMS,
    'tools': [],
    'usage': {'input_tokens': 1, 'output_tokens': 2, 'total_tokens': 3, 'output_tokens_details': {}},
}
AT = {'item_id': 'o', 'output_index': 0, 'content_index': 0, 'sequence_number': 1}
EVENTS: list[Any] = [
    {'type': 'response.created', 'response': {**RESPONSE, 'status': 'in_progress', 'output': []}},
    {'type': 'response.output_item.added', 'output_index': 0, 'item': {**ITEMS[1], 'content': []}},
    {'type': 'response.content_part.added', **AT, 'part': {**PART, 'text': ''}},
    {'type': 'response.output_text.delta', **AT, 'delta': 'Hello', 'logprobs': []},
    {'type': 'response.output_text.done', **AT, 'text': 'Hello', 'logprobs': []},
    {'type': 'response.content_part.done', **AT, 'part': PART},
    {'type': 'response.output_item.done', 'output_index': 0, 'item': ITEMS[1]},
    {'type': 'response.output_item.added', 'output_index': 1, 'item': {**ITEMS[2], 'arguments': ''}},
    {'type': 'response.function_call_arguments.delta', 'item_id': 'f', 'output_index': 1, 'delta': '{"city": "Rome"}'},
    {'type': 'response.function_call_arguments.done', 'item_id': 'f', 'output_index': 1, 'arguments': '{}'},
    {'type': 'response.output_item.done', 'output_index': 1, 'item': ITEMS[2]},
    {'type': 'response.reasoning_summary_text.delta', 'item_id': 'r', 'output_index': 2, 'summary_index': 0},
    {'type': 'response.completed', 'response': RESPONSE},
]


def odd_ones(value: Any, odd: Any) -> Iterator[Any]:
    """`value` with each of its fields and items, one after the other, `odd` or not there."""
    for key in [*value] if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield {**value, key: odd} if isinstance(value, dict) else [*value[:key], odd, *value[key + 1 :]]
        if isinstance(value, dict):
            yield {name: one for name, one in value.items() if name != key}
        for inner in odd_ones(value[key], odd):
            yield {**value, key: inner} if isinstance(value, dict) else [*value[:key], inner, *value[key + 1 :]]


def whole(value: Any, context: Context) -> None:
    repair_completion(deepcopy(value), context, set())


def whole_response(value: Any, context: Context) -> None:
    repair_response(deepcopy(value), context, set())


def streamed(values: Any, context: Context) -> None:
    repair = ChunkRepair(context)
    made = [made for value in deepcopy(values) if isinstance(value, dict) for made in repair.feed(value)]
    whole(fold([*made, *repair.finish(dropped=False)]), context)


def told(values: Any, context: Context) -> None:
    repair = EventRepair(context)
    for value in deepcopy(values):
        if isinstance(value, dict):
            repair.feed(value)
    repair.finish(dropped=False)


@pytest.mark.parametrize('odd', ODD, ids=repr)
@pytest.mark.parametrize(
    ('read', 'value'),
    [
        pytest.param(whole, COMPLETION, id='completion'),
        pytest.param(streamed, CHUNKS, id='chunks'),
        pytest.param(whole_response, RESPONSE, id='response'),
        pytest.param(told, EVENTS, id='events'),
    ],
)
def test_a_field_of_any_type(read: Callable[[Any, Context], None], value: Any, odd: Any) -> None:
    for context in CONTEXTS:
        read(value, context)
        for changed in odd_ones(value, odd):
            try:
                read(changed, context)
            except (FailureError, IncompleteError):
                continue
            except Exception as error:
                error.add_note(f'of {json.dumps(changed)}')
                raise
