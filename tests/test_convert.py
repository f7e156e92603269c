"""Items to messages and back: a table of shapes, transcripts that say all, and what each target would lose."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any

import pytest
import strategies as s
from hypothesis import given, settings
from pydantic import TypeAdapter
from pydantic_ai import messages as m
from pydantic_ai.exceptions import UserError
from pydantic_ai.usage import RequestUsage

from oaicompat.responses import loss_report, parse_input, to_input
from oaicompat.responses.convert import NOTE

Json = dict[str, Any]
MESSAGES: TypeAdapter[list[m.ModelMessage]] = TypeAdapter(list[m.ModelMessage])
TIMES = {'timestamp'}


def timeless(messages: list[m.ModelMessage]) -> Any:
    """Messages as JSON without times, which items don't have."""

    def of(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: of(item) for key, item in value.items() if key not in TIMES}
        return [of(item) for item in value] if isinstance(value, list) else value

    return of(MESSAGES.dump_python(messages, mode='json'))


def text(value: str, kind: str = 'output_text', **fields: Any) -> Json:
    return {'type': kind, 'text': value, **fields}


def answer(*parts: m.ModelResponsePart, **fields: Any) -> m.ModelResponse:
    return m.ModelResponse(list(parts), **fields)


def asked(*parts: m.ModelRequestPart, **fields: Any) -> m.ModelRequest:
    return m.ModelRequest(list(parts) or [m.UserPromptPart('Hi')], **fields)


USER = {'role': 'user', 'content': 'Hi'}
WHOLE = {'type': 'message', 'id': 'msg_7', 'role': 'assistant', 'status': 'completed'}
EASY: Json = {'type': 'message', 'role': 'assistant'}
REFUSAL: Json = {'type': 'refusal', 'refusal': 'No.'}
REFUSED: dict[str, Any] = {'provider_details': {'refusal': True}}
NOTED: Json = {'annotations': []}


def sent(*texts: str, id_: str = 'msg_1') -> list[Json]:
    content = [{'type': 'output_text', 'text': '\n\n'.join(texts), 'annotations': []}]
    return [{'type': 'message', 'id': id_, 'role': 'assistant', 'status': 'completed', 'content': content}]


# Content of an assistant: each with and without `type`, `id`, `status` and `annotations`.
CONTENTS: dict[str, tuple[Any, list[tuple[str, bool]]]] = {
    'a string': ('Hello', [('Hello', False)]),
    'null': (None, []),
    'an empty list': ([], []),
    'one text': ([text('One.')], [('One.', False)]),
    'two texts': ([text('One.', **NOTED), text('Two.')], [('One.', False), ('Two.', False)]),
    'a refusal': ([REFUSAL], [('No.', True)]),
    'a text and a refusal': ([text('One.'), REFUSAL], [('One.', False), ('No.', True)]),
    'input_text': ([text('One.', 'input_text')], [('One.', False)]),
}
FRAMES: dict[str, Json] = {'bare': {'role': 'assistant'}, 'typed': EASY, 'whole': WHOLE, 'nulls': {**EASY, 'id': None}}


@pytest.mark.parametrize('frame', FRAMES.values(), ids=FRAMES)
@pytest.mark.parametrize(('content', 'said'), CONTENTS.values(), ids=CONTENTS)
def test_an_answer(content: Any, said: list[tuple[str, bool]], frame: Json) -> None:
    messages = parse_input([USER, {**frame, 'content': content}])
    id_ = frame.get('id') if not isinstance(content, str) else None
    parts = [m.TextPart(value, id=id_, **(REFUSED if refusal else {})) for value, refusal in said]
    assert timeless(messages) == timeless([asked(), answer(*parts)])
    back = to_input(messages, style='portable')
    texts = [value for value, _ in said]
    assert back == [USER, *(sent(*texts, id_=id_ or 'msg_1') if texts else [])]
    assert timeless(parse_input(to_input(messages))) == timeless(messages)


CALL: Json = {'type': 'function_call', 'call_id': 'c', 'name': 'look', 'arguments': '{"city":"Rome"}'}
CALLED = m.ToolCallPart('look', '{"city":"Rome"}', 'c')
OUTPUT: Json = {'type': 'function_call_output', 'call_id': 'c', 'output': 'sunny'}
RETURNED = m.ToolReturnPart('look', 'sunny', 'c')
HELLO: Json = {'role': 'assistant', 'content': 'Hello'}


def summary(*texts: str) -> list[Json]:
    return [text(value, 'summary_text') for value in texts]


def raw(*texts: str) -> list[Json]:
    return [text(value, 'reasoning_text') for value in texts]


def think(value: str = '', *told: str, **fields: Any) -> m.ThinkingPart:
    details: dict[str, Any] = {'provider_details': {'raw_content': [*told]}} if told else {}
    return m.ThinkingPart(value, id='r', **details, **fields)


# Reasoning, the parts that it is, and the text that is sent back of it.
REASONING: dict[str, tuple[Json, list[m.ThinkingPart], str]] = {
    'a summary': ({'summary': summary('A.')}, [think('A.')], 'A.'),
    'summaries': ({'summary': summary('A.', 'B.')}, [think('A.'), think('B.')], 'A.\n\nB.'),
    'content': ({'summary': [], 'content': raw('C.')}, [think('', 'C.')], 'C.'),
    'contents': ({'content': raw('C.', 'D.')}, [think('', 'C.', 'D.')], 'C.\n\nD.'),
    'both': ({'summary': summary('A.', 'B.'), 'content': raw('C.')}, [think('A.', 'C.'), think('B.')], 'C.'),
    'encrypted': ({'summary': [], 'encrypted_content': 'x'}, [think(signature='x')], ''),
    'all': (
        {'summary': summary('A.'), 'content': raw('C.'), 'encrypted_content': 'x', 'status': None},
        [think('A.', 'C.', signature='x')],
        'C.',
    ),
    'nothing': ({'summary': None, 'content': None}, [think()], ''),
}
BEHIND: dict[str, tuple[list[Json], list[Any], list[Any], list[Json]]] = {
    'an easy message': ([HELLO], [m.TextPart('Hello')], [], sent('Hello')),
    'a call': ([CALL], [CALLED], [], [CALL]),
    'a call and its output': ([CALL, OUTPUT], [CALLED], [RETURNED], [CALL, OUTPUT]),
    'an answer and a call': (
        [HELLO, CALL, OUTPUT], [m.TextPart('Hello'), CALLED], [RETURNED], [*sent('Hello'), CALL, OUTPUT],
    ),
}  # fmt: skip


@pytest.mark.parametrize('followed', BEHIND.values(), ids=BEHIND)
@pytest.mark.parametrize(('reasoning', 'thoughts', 'told'), REASONING.values(), ids=REASONING)
def test_reasoning(reasoning: Json, thoughts: list[m.ThinkingPart], told: str, followed: Any) -> None:
    behind, parts, returned, items = followed
    given = {'type': 'reasoning', 'id': 'r', **reasoning}
    messages = parse_input([USER, given, *behind])
    expected: list[m.ModelMessage] = [asked(), answer(*thoughts, *parts)]
    expected += [m.ModelRequest(returned)] if returned else []
    assert timeless(messages) == timeless(expected)
    opened = [{'type': 'reasoning', 'id': 'r', 'summary': [], 'content': raw(told)}] if told else []
    assert to_input(messages, style='portable') == [USER, *opened, *items]
    own = to_input(messages, style='openai')[1]
    known = {key: value for key, value in own.items() if value} | {'summary': own['summary']}
    assert known == {'summary': [], **{key: value for key, value in given.items() if value}}


SEARCH: Json = {'type': 'web_search_call', 'id': 'w'}
OTHERS: dict[str, tuple[list[Json], list[m.ModelMessage], list[Json] | None]] = {
    'a list of texts': (
        [{'role': 'user', 'content': [text('a', 'input_text'), text('b', 'input_text')]}],
        [asked(m.UserPromptPart(['a', 'b']))],
        None,
    ),
    'system and developer': (
        [{'role': 'system', 'content': 'S'}, {'role': 'developer', 'content': [text('D', 'input_text')]}, USER],
        [asked(m.SystemPromptPart('S'), m.SystemPromptPart('D'), m.UserPromptPart('Hi'))],
        [{'role': 'system', 'content': 'S'}, {'role': 'system', 'content': 'D'}, USER],
    ),
    'a user says nothing': ([{'role': 'user', 'content': None}], [m.ModelRequest([])], []),
    'images and files': (
        [
            {
                'role': 'user',
                'content': [
                    {'type': 'input_image', 'image_url': 'https://x.test/a.png', 'detail': 'low'},
                    {'type': 'input_image', 'image_url': 'data:image/png;base64,AAEC', 'detail': 'auto'},
                    {'type': 'input_file', 'file_url': 'https://x.test/a.pdf'},
                    {'type': 'input_file', 'file_data': 'data:application/pdf;base64,AAEC', 'filename': 'file.pdf'},
                    {'type': 'input_audio', 'input_audio': {'data': 'AAEC', 'format': 'wav'}},
                    {'type': 'input_file', 'file_id': 'file-1'},
                ],
            }
        ],
        [
            asked(
                m.UserPromptPart(
                    [
                        m.ImageUrl('https://x.test/a.png', vendor_metadata={'detail': 'low'}),
                        m.BinaryImage(b'\0\1\2', media_type='image/png'),
                        m.DocumentUrl('https://x.test/a.pdf'),
                        m.BinaryContent(b'\0\1\2', media_type='application/pdf'),
                        m.BinaryContent(b'\0\1\2', media_type='audio/wav'),
                        m.UploadedFile('file-1', 'openai'),
                    ]
                )
            )
        ],
        None,
    ),
    'a list output': (
        [CALL, {**OUTPUT, 'output': [text('a', 'input_text'), text('b', 'input_text')]}],
        [answer(CALLED), asked(m.ToolReturnPart('look', ['a', 'b'], 'c'))],
        None,
    ),
    'calls with ids and nulls': (
        [{**CALL, 'id': 'fc_1', 'status': None, 'namespace': 'n'}, {**OUTPUT, 'id': None}],
        [answer(m.ToolCallPart('look', '{"city":"Rome"}', 'c', id='fc_1', provider_details={'namespace': 'n'})),
         asked(RETURNED)],
        [{**CALL, 'id': 'fc_1', 'namespace': 'n'}, OUTPUT],
    ),
    'outputs in another order': (
        [CALL, {**CALL, 'call_id': 'd', 'name': 'seek'}, {**OUTPUT, 'call_id': 'd'}, OUTPUT],
        [answer(CALLED, m.ToolCallPart('seek', '{"city":"Rome"}', 'd')),
         asked(m.ToolReturnPart('seek', 'sunny', 'd'), RETURNED)],
        None,
    ),
    'an output without a call': ([OUTPUT], [asked(m.ToolReturnPart('unknown', 'sunny', 'c'))], None),
    'unknown items': (
        [USER, SEARCH, HELLO, {'type': 'x_output', 'id': 'x'}, {'type': 'item_reference', 'id': 'y'}],
        [
            asked(),
            answer(m.TextPart('Hello'), metadata={'oaicompat': {'items': [[0, SEARCH]]}}),
            m.ModelRequest([], metadata={'oaicompat': {'items': [[0, {'type': 'x_output', 'id': 'x'}],
                                                                 [0, {'type': 'item_reference', 'id': 'y'}]]}}),
        ],
        None,
    ),
    'an unknown part': (
        [{'role': 'user', 'content': [text('a', 'input_text'), {'type': 'input_video', 'url': 'x'}]}],
        [m.ModelRequest([], metadata={'oaicompat': {'items': [
            [0, {'role': 'user', 'content': [text('a', 'input_text'), {'type': 'input_video', 'url': 'x'}]}]]}})],
        None,
    ),
}  # fmt: skip


@pytest.mark.parametrize(('items', 'messages', 'back'), OTHERS.values(), ids=OTHERS)
def test_other_items(items: list[Json], messages: list[m.ModelMessage], back: list[Json] | None) -> None:
    read = parse_input(items)
    assert timeless(read) == timeless(messages)
    assert to_input(read, style='openai') == (items if back is None else back)
    assert parse_input(json.loads(json.dumps(to_input(read)))) == read


def test_a_text_is_what_a_user_says() -> None:
    assert timeless(parse_input('Hi')) == timeless([asked()])


@pytest.mark.parametrize('input_', [None, 5, {'role': 'user', 'content': 'Hi'}, b'Hi'])
def test_what_is_no_input_is_refused(input_: Any) -> None:
    with pytest.raises(UserError, match='expected a text or a list of items'):
        parse_input(input_)


def test_instructions_go_where_pydantic_ai_looks_for_them() -> None:
    assert [message.instructions for message in parse_input([USER, HELLO, USER], 'Be brief.')
            if isinstance(message, m.ModelRequest)] == [None, 'Be brief.']  # fmt: skip
    [_, last] = parse_input([HELLO], 'Be brief.')
    assert last == m.ModelRequest([], instructions='Be brief.')


def test_what_is_kept_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, 'oaicompat'):
        parse_input([{'type': 'web_search_call'}, OUTPUT])
    [told] = caplog.messages
    search, output = told.split('; ')
    assert search == "kept as it came: input[0] of type 'web_search_call' is no part of a message"
    assert output == "the output of 'c' has no call, so the name of its tool is unknown"
    with pytest.raises(UserError, match=r"input\[0\] of type 'web_search_call' .* \(2 such in all\)"):
        parse_input([{'type': 'web_search_call'}, OUTPUT], strict=True)
    assert parse_input([CALL, OUTPUT], strict=True)


# Transcripts

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


@pytest.mark.parametrize(
    ('change', 'complaint'),
    [
        (lambda items: items[:1], r'input\[0\].pydantic_ai.items: is 2, but fewer items are there'),
        (lambda items: [items[0], *items[2:]], r'input\[0\].pydantic_ai.items: is 2, but fewer items are there'),
        (lambda items: [{**items[0], NOTE: 5}], r'input\[0\].pydantic_ai: expected an object, got 5'),
        (lambda items: [{**items[0], NOTE: {'kind': 'x', 'items': 1}}], r"kind: expected 'request' or 'response'"),
        (
            lambda items: [{**items[0], NOTE: {'kind': 'request', 'items': 1, 'differs': [[['parts', 9, 'x'], 1]]}}],
            r'input\[0\].pydantic_ai.differs: does not fit the items \(a path leads nowhere\)',
        ),
        (
            lambda items: [{**items[0], NOTE: {'kind': 'request', 'items': 1, 'differs': [[['parts'], 1]]}}],
            r'input\[0\].pydantic_ai.differs: does not fit the items \(Input should be',
        ),
    ],
)  # fmt: skip
def test_a_transcript_that_was_changed_says_so(change: Any, complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        parse_input(change(to_input(CONVERSATION)))


# Losses


def losses(target: str) -> list[str]:
    return [str(loss) for loss in loss_report(CONVERSATION, target)]


NO_ITEM = [
    'messages[3].parts[0]: a builtin-tool-call part, which no item says',
    'messages[3].parts[3]: a file part, which no item says',
]


def test_what_each_target_would_lose() -> None:
    assert losses('transcript') == []
    assert losses('openai') == NO_ITEM
    assert losses('portable') == [
        'messages[1].parts[0]: encrypted reasoning, which not every server takes',
        'messages[1].parts[4]: that it is a text of its own: all of a turn is one',
        'messages[1].parts[1]: that it is a reasoning of its own: all of a turn is one',
        *NO_ITEM,
        'messages[3].parts[2]: that it is a text of its own: all of a turn is one',
    ]
    vllm = [
        'messages[1].parts[0]: encrypted reasoning, which vLLM refuses',
        'messages[1].parts[1]: reasoning behind the first text of it, which vLLM does not read',
        NO_ITEM[0],
        'messages[3].parts[2]: a list without `id` and `status`, which vLLM refuses',
        'messages[3].parts[2]: a refusal, which vLLM drops, or breaks on where it is alone',
        NO_ITEM[1],
    ]
    assert losses('vllm') == losses('vllm-old') == vllm
    assert losses('llama.cpp') == [
        'messages[1].parts[0]: reasoning without `content`, which llama.cpp refuses',
        'messages[1].parts[0]: encrypted reasoning, which llama.cpp does not read',
        'messages[1].parts[1]: reasoning behind the first text of it, which llama.cpp does not read',
        'messages[1].parts[4]: an answer without `type`, which llama.cpp refuses',
        NO_ITEM[0],
        'messages[3].parts[1]: an answer without `type`, which llama.cpp refuses',
        'messages[3].parts[2]: a refusal, which llama.cpp refuses',
        NO_ITEM[1],
    ]
    assert {loss.evidence[:8] for target in ('vllm', 'llama.cpp') for loss in loss_report(CONVERSATION, target)} == {
        '', 'https://',
    }  # fmt: skip


def test_strict_refuses_what_would_be_lost() -> None:
    for style in ('openai', 'portable'):
        with pytest.raises(UserError, match=r'messages\[\d\].parts\[0\]: .* such in all'):
            to_input(CONVERSATION, style=style, strict=True)
    assert to_input(CONVERSATION, strict=True) == to_input(CONVERSATION)
    plain: list[m.ModelMessage] = [asked(), answer(m.TextPart('Hello'))]
    assert to_input(plain, style='portable', strict=True) == [USER, *sent('Hello')]


def test_unknown_styles_and_targets_are_refused() -> None:
    with pytest.raises(UserError, match="`style` is 'chat'; expected 'transcript', 'openai' or 'portable'"):
        to_input([], style='chat')  # type: ignore[arg-type]
    with pytest.raises(
        UserError, match="`target` is 'sglang'; expected one of 'transcript', 'openai', 'portable', 'vllm'"
    ):
        loss_report([], 'sglang')
