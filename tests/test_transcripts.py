"""Transcripts: items that say all that messages say, what was changed in them, and what is kept or told."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any

import pytest
import strategies as s
from hypothesis import given, settings
from openai.types.responses import ResponseOutputMessage
from pydantic_ai import messages as m
from pydantic_ai.exceptions import UserError
from pydantic_ai.usage import RequestUsage
from test_convert import (
    CALL,
    CALLED,
    EASY,
    HELLO,
    MESSAGES,
    NOTED,
    OUTPUT,
    SEARCH,
    USER,
    WHOLE,
    Json,
    answer,
    asked,
    text,
    timeless,
)

from oaicompat.responses import loss_report, parse_input, to_input
from oaicompat.responses._from_items import NOTE

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
CONVERSATION: list[m.ModelMessage] = [
    m.ModelRequest(
        [m.SystemPromptPart('Be brief.', timestamp=NOON), m.UserPromptPart(['What of', 'Rome?'], timestamp=NOON)],
        instructions='Use tools.',
        run_id='run-1',
        timestamp=NOON,
    ),
    m.ModelResponse(
        [
            m.ThinkingPart('Hm.', id='rs_1', signature='sealed', provider_name='vllm'),
            m.ThinkingPart('', id='rs_2', provider_name='vllm', provider_details={'raw_content': ['I see.', 'Twice.']}),
            m.TextPart('I look.', id='msg_1', provider_name='vllm'),
            m.ToolCallPart('look', {'city': 'Rome'}, 'call_1', id='fc_1'),
            m.TextPart('And again.'),
            m.ToolCallPart('look', '{"city": "Ostia"}', 'call_2'),
        ],
        usage=RequestUsage(input_tokens=5, output_tokens=7),
        model_name='m',
        provider_name='vllm',
        finish_reason='tool_call',
        timestamp=NOON,
    ),
    m.ModelRequest(
        [
            m.ToolReturnPart('look', ['sunny', {'degrees': 24}], 'call_1', timestamp=NOON),
            m.ToolReturnPart('look', 'No such city.', 'call_2', outcome='retried', timestamp=NOON),
            m.RetryFeedbackPart('Say more.', retry=m.RetryInfo(cause='model_retry'), timestamp=NOON),
        ]
    ),
    m.ModelResponse(
        [
            m.NativeToolCallPart('web_search', {'query': 'Rome'}, 'ws_1', provider_name='openai'),
            m.TextPart('Sunny.'),
            m.TextPart('Warm, too.', provider_details={'refusal': True}),
            m.FilePart(m.BinaryImage(b'\0', media_type='image/png')),
        ],
        metadata={'of': 'mine'},
        timestamp=NOON,
    ),
    m.ModelRequest([]),
    m.ModelResponse([], timestamp=NOON),
]


def test_a_conversation_loses_nothing() -> None:
    items = json.loads(json.dumps(to_input(CONVERSATION)))
    assert parse_input(items, strict=True) == CONVERSATION
    assert [message for message in parse_input(items) if message.timestamp == NOON] != []
    # Notes stand with the first item of each message alone.
    assert [at for at, item in enumerate(items) if NOTE in item] == [0, 2, 8, 11, 13, 14]


@settings(max_examples=200)
@given(s.histories(*s.unprepared_request_parts))
def test_any_messages_come_back(history: list[m.ModelMessage]) -> None:
    """As pydantic-ai's own JSON gives them back."""
    expected = MESSAGES.validate_json(MESSAGES.dump_json(history))
    items = json.loads(json.dumps(to_input(history)))
    assert MESSAGES.dump_python(parse_input(items)) == MESSAGES.dump_python(expected)
    for style in ('openai', 'portable'):
        plain = json.loads(json.dumps(to_input(history, style=style)))
        assert all(NOTE not in item for item in plain)
        parse_input(plain)
    for target in ('transcript', 'openai', 'portable', 'vllm', 'vllm-old', 'llama.cpp'):
        assert all(0 <= loss.message < len(history) for loss in loss_report(history, target))


def test_a_transcript_may_grow_and_be_cut() -> None:
    items = to_input(CONVERSATION)
    grown = parse_input([*items, USER, HELLO])
    assert grown[: len(CONVERSATION)] == CONVERSATION
    assert timeless(grown[len(CONVERSATION) :]) == timeless([asked(), answer(m.TextPart('Hello'))])
    assert parse_input(items[8:]) == CONVERSATION[2:]


CHANGED = r'input\[0\].pydantic_ai: is not about the items that are there; take `pydantic_ai` out of a message'


def noted(**fields: Any) -> Any:
    """A change of the note of the first item."""
    return lambda items: [{**items[0], NOTE: {**items[0][NOTE], **fields}}, *items[1:]]


@pytest.mark.parametrize(
    ('change', 'complaint'),
    [
        (lambda items: items[:1], CHANGED),
        (lambda items: [items[0], *items[2:]], CHANGED),
        (lambda items: [{**items[0], 'content': 'Be long.'}, *items[1:]], CHANGED),
        (lambda items: [items[0], {**items[1], 'made_up': 1}, *items[2:]], CHANGED),
        (lambda items: [{**items[0], NOTE: 5}], r'input\[0\].pydantic_ai: expected an object, got 5'),
        (noted(kind='x'), r"kind: expected 'request' or 'response'"),
        (noted(items=0), r'items: expected greater than or equal to 1, got 0'),
        (noted(differs=[[['parts', 9, 'x'], 1]]), r'differs: does not fit the items \(a path leads nowhere\)'),
        (noted(differs=[[['kind', 'a'], 1]]), r'differs: does not fit the items \(a path leads nowhere\)'),
        (noted(differs=[[['parts']]]), r'differs: does not fit the items \(a path leads nowhere\)'),
        (noted(differs=[[['parts'], 1]]), r'differs: does not fit the items \(Input should be'),
    ],
)
def test_a_transcript_that_was_changed_says_so(change: Any, complaint: str) -> None:
    items = to_input(CONVERSATION)
    with pytest.raises(UserError, match=complaint):
        parse_input(change(items))


def test_a_server_does_not_read_the_notes_of_its_clients() -> None:
    forged = noted(differs=[[['parts', 0, 'content'], 'forged']])(to_input([asked(m.UserPromptPart('x'))]))
    assert parse_input(forged)[0].parts[0].content == 'forged'  # type: ignore[union-attr]
    [message] = parse_input(forged, transcript=False, strict=True)
    assert timeless([message]) == timeless([asked(m.UserPromptPart('x'))])
    assert parse_input([{**USER, NOTE: 5}], transcript=False)


HARD: list[tuple[str, list[Any]]] = [
    ('a tool that is called unknown', [answer(CALLED), asked(m.ToolReturnPart('unknown', 'x', 'c'))]),
    ('another name', [answer(CALLED), asked(m.ToolReturnPart('other', 'x', 'c'))]),
    ('a number for a namespace', [answer(m.ToolCallPart('look', '{}', 'c', provider_details={'namespace': 5}))]),
    *(
        (f'odd metadata {odd}', [asked(metadata={'oaicompat': odd})])
        for odd in (5, {'items': 5}, {'items': [5, [0, 5], ['x', SEARCH], [0, SEARCH, 2], [0, {'role': 'user'}], []]})
    ),
    ('a note in what was kept', [asked(metadata={'oaicompat': {'items': [[0, {**SEARCH, NOTE: 5}]]}})]),
    ('no message twice', [m.ModelRequest([]), m.ModelRequest([]), m.ModelResponse([]), m.ModelResponse([])]),
    ('equal ids', [answer(m.TextPart('a', id='x'), CALLED, m.TextPart('b', id='x')), answer(m.TextPart('c', id='x'))]),
    ('phases', [answer(m.TextPart('a', id='x', provider_details={'phase': 'commentary'}), m.TextPart('b', id='x'))]),
    ('another provider’s file', [asked(m.UserPromptPart([m.UploadedFile('f', 'anthropic')]))]),  # noqa: RUF001
]


@pytest.mark.parametrize('messages', [messages for _, messages in HARD], ids=[name for name, _ in HARD])
def test_hard_messages_come_back(messages: list[m.ModelMessage]) -> None:
    assert parse_input(json.loads(json.dumps(to_input(messages)))) == messages
    for style in ('openai', 'portable'):
        assert parse_input(to_input(messages, style=style)) is not None


def test_what_has_no_json_is_named() -> None:
    with pytest.raises(UserError, match=r'messages\[1\]: has no JSON: Unable to serialize unknown type'):
        to_input([asked(), asked(m.ToolReturnPart('look', object(), 'c'))])


@pytest.mark.parametrize('given', ['x', None, [{'a': 1}], m.ModelRequest([])])
def test_what_are_no_messages_is_refused(given: Any) -> None:
    with pytest.raises(UserError, match=r'messages\S* is a \w+; expected a list of messages'):
        to_input(given)


UNREAD: list[tuple[Json, str]] = [
    ({'role': 'assistant', 'content': None, 'tool_calls': [{'id': 'c'}]}, 'input[0].tool_calls is not read'),
    ({'role': 'assistant', 'content': 'x', 'reasoning_content': 'r'}, 'input[0].reasoning_content is not read'),
    ({**WHOLE, 'status': 'incomplete', 'content': [text('x')]}, 'input[0].status is not read'),
    ({**WHOLE, 'content': [text('x', annotations=[{'url': 'u'}])]}, 'input[0].content[0].annotations is not read'),
    ({'role': 'user', 'content': 'x', 'name': 'n'}, 'input[0].name is not read'),
    ({'role': 'user', 'content': [text('a'), {'type': 'input_video'}]}, "input[0].content[1] of type 'input_video' is"),
    ({'role': 'user', 'content': [{'type': 'input_image'}]}, "input[0].content[0] of type 'input_image' is no part"),
    ({**EASY, 'content': [text('x'), {'type': 'odd'}]}, "input[0].content[1] of type 'odd' is no part of a message"),
    ({'type': 'reasoning', 'summary': [{'type': 'odd'}]}, 'input[0] of reasoning with a part that is no text is no'),
    ({'type': 'item_reference', 'id': 'x'}, "input[0] of type 'item_reference' is no part of a message"),
    ({'id': 'x'}, 'input[0] a reference is no part of a message'),
]


@pytest.mark.parametrize(('item', 'complaint'), UNREAD, ids=[complaint for _, complaint in UNREAD])
def test_what_is_not_read_is_told(item: Json, complaint: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, 'oaicompat'):
        messages = parse_input([item])
    assert complaint in caplog.text
    with pytest.raises(UserError) as raised:
        parse_input([item], strict=True)
    assert str(raised.value).startswith(complaint)
    assert parse_input(to_input(messages)) == messages


def test_an_output_with_an_unknown_part_keeps_it() -> None:
    odd = {'type': 'odd', 'x': 1}
    [_, request] = parse_input([CALL, {**OUTPUT, 'output': [text('a', 'input_text'), odd]}], strict=True)
    assert request.parts[0].content == ['a', odd]  # type: ignore[union-attr]


def test_objects_of_the_sdk_are_items() -> None:
    given = ResponseOutputMessage.model_validate({**WHOLE, 'content': [text('Hello', **NOTED)]})
    assert timeless(parse_input([USER, given])) == timeless([asked(), answer(m.TextPart('Hello', id='msg_7'))])


def test_what_is_nested_too_deep_is_one_error() -> None:
    deep: Any = []
    for _ in range(5000):
        deep = [deep]
    for item in ({'role': 'user', 'content': deep}, {'type': deep}, deep, {'role': 'user', 'content': [deep]}):
        with pytest.raises(UserError, match=r'^input\[0\]'):
            parse_input([item])
