"""Input items of the Responses API: which is which, what a bad one says, and that every one comes out as it came."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai.exceptions import UserError
from strategies import json_values

from oaicompat.responses.items import (
    EasyInputMessage,
    FunctionCall,
    FunctionCallOutput,
    Item,
    ItemReference,
    OutputMessage,
    Reasoning,
    UnknownItem,
    read_item,
)

TEXT = {'type': 'output_text', 'text': 'Hi'}
ITEMS: list[tuple[dict[str, Any], type[Item]]] = [
    ({'role': 'user', 'content': 'Hi'}, EasyInputMessage),
    ({'type': 'message', 'role': 'user', 'content': 'Hi'}, EasyInputMessage),
    ({'role': 'assistant', 'content': 'Hi'}, EasyInputMessage),
    ({'type': 'message', 'role': 'assistant', 'content': 'Hi', 'phase': 'commentary'}, EasyInputMessage),
    ({'role': 'developer', 'content': [{'type': 'input_text', 'text': 'Hi'}]}, EasyInputMessage),
    ({'role': 'user', 'content': None}, EasyInputMessage),
    ({'role': 'assistant', 'content': [TEXT]}, OutputMessage),
    ({'type': 'message', 'role': 'assistant', 'content': []}, OutputMessage),
    ({'type': 'message', 'role': 'assistant', 'content': None, 'id': None, 'status': None}, OutputMessage),
    (
        {
            'type': 'message',
            'id': 'msg_1',
            'status': 'completed',
            'role': 'assistant',
            'content': [{**TEXT, 'annotations': [{'made': 'up'}]}, {'type': 'refusal', 'refusal': 'No'}],
        },
        OutputMessage,
    ),
    ({'type': 'reasoning', 'summary': []}, Reasoning),
    ({'summary': [{'type': 'summary_text', 'text': 'Hm.'}]}, Reasoning),
    ({'type': 'reasoning', 'id': 'r', 'summary': None, 'content': None, 'encrypted_content': 'x'}, Reasoning),
    ({'type': 'function_call', 'call_id': 'c', 'name': 'f', 'arguments': '{}'}, FunctionCall),
    ({'call_id': 'c', 'name': 'f', 'arguments': '{}', 'status': None, 'id': None}, FunctionCall),
    ({'type': 'function_call_output', 'call_id': 'c', 'output': 'x'}, FunctionCallOutput),
    ({'call_id': 'c', 'output': [{'type': 'input_image', 'image_url': 'https://x.test/a.png'}]}, FunctionCallOutput),
    ({'type': 'item_reference', 'id': 'msg_1'}, ItemReference),
    ({'id': 'msg_1'}, ItemReference),
    ({'type': 'web_search_call', 'id': 'w', 'action': {'query': 'x'}}, UnknownItem),
    ({'type': 'made_up'}, UnknownItem),
]  # fmt: skip


@pytest.mark.parametrize(('value', 'kind'), ITEMS)
def test_an_item_is_known_by_its_type_or_shape_and_stays_as_it_is(value: dict[str, Any], kind: type[Item]) -> None:
    item = read_item(value, 0)
    assert type(item) is kind
    assert item.wire() == value
    more = {**value, 'made_up': {'a': [None]}}
    assert read_item(more, 0).wire() == more


@pytest.mark.parametrize(
    ('value', 'complaint'),
    [
        ('Hi', "input[3]: expected an object, got 'Hi'"),
        (None, 'input[3]: expected an object, got None'),
        ({'type': 5}, 'input[3].type: expected a string, got 5'),
        ({}, "input[3]: has neither `type` nor `role`, and its fields ('') tell no type"),
        ({'name': 'f'}, "input[3]: has neither `type` nor `role`, and its fields ('name') tell no type"),
        ({'type': 'message'}, 'input[3].role: is missing'),
        (
            {'role': 'tool', 'content': 'x'},
            "input[3].role: expected 'user', 'assistant', 'system' or 'developer', got 'tool'",
        ),
        ({'role': 'user'}, 'input[3].content: is missing'),
        ({'role': 'user', 'content': 5}, 'input[3].content: expected a string or a list, got 5'),
        ({'role': 'user', 'content': ['x']}, "input[3].content[0]: expected an object, got 'x'"),
        (
            {'role': 'user', 'content': [TEXT, {'type': 'input_text', 'text': 5}]},
            'input[3].content[1].text: expected a string, got 5',
        ),
        ({'role': 'assistant', 'content': [{'type': 'output_text'}]}, 'input[3].content[0].text: is missing'),
        ({'type': 'reasoning', 'summary': 'Hm.'}, "input[3].summary: expected a list, got 'Hm.'"),
        ({'type': 'function_call', 'call_id': 'c', 'arguments': '{}'}, 'input[3].name: is missing'),
        (
            {'type': 'function_call', 'call_id': 'c', 'name': 'f', 'arguments': {'x': 'y' * 99}},
            "input[3].arguments: expected a string, got {'x': '" + 'y' * 73 + '...',
        ),
        ({'type': 'function_call_output', 'output': 'x'}, 'input[3].call_id: is missing'),
        (
            {'type': 'function_call_output', 'call_id': 'c', 'output': {'a': 1}},
            "input[3].output: expected a string or a list, got {'a': 1}",
        ),
        ({'type': 'item_reference'}, 'input[3].id: is missing'),
        (
            {'role': 'user', 'content': [{'type': 'input_audio', 'input_audio': {'data': 5}}]},
            'input[3].content[0].input_audio.data: expected a string, got 5',
        ),
    ],
)  # fmt: skip
def test_a_bad_item_says_where_and_what_is_expected(value: Any, complaint: str) -> None:
    with pytest.raises(UserError) as raised:
        read_item(value, 3)
    assert str(raised.value) == complaint


keys = st.sampled_from(['type', 'role', 'content', 'summary', 'id', 'output'])


@given(json_values | st.dictionaries(keys, json_values))
def test_any_value_is_an_item_or_one_short_error(value: Any) -> None:
    error, wire = '', None
    try:
        wire = read_item(value, 0).wire()
    except UserError as raised:
        error = str(raised)
    if error:
        assert error.startswith('input[0]')
        assert len(error) < 300
    else:
        assert wire == value
