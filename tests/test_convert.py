"""Items to messages and back: a table of shapes, transcripts that say all, and what each target would lose."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from pydantic import TypeAdapter
from pydantic_ai import messages as m
from pydantic_ai.exceptions import UserError

from oaicompat.responses import parse_input, to_input

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
    said = {key: value for key, value in given.items() if value}
    own = [item for item in to_input(messages, style='openai') if item.get('type') == 'reasoning']
    assert own == ([{'summary': [], **said}] if len(said) > len(('type', 'id')) else [])


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
                    {'type': 'input_file', 'file_data': 'data:application/pdf;base64,AAEC', 'filename': 'a.pdf'},
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
                        m.BinaryContent(b'\0\1\2', media_type='application/pdf', vendor_metadata={'filename': 'a.pdf'}),
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
        [m.ModelRequest([m.UserPromptPart(['a'])], metadata={'oaicompat': {'items': [
            [1, {'role': 'user', 'content': [{'type': 'input_video', 'url': 'x'}]}]]}})],
        [{'role': 'user', 'content': [text('a', 'input_text')]},
         {'role': 'user', 'content': [{'type': 'input_video', 'url': 'x'}]}],
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
    assert search == "input for messages: input[0] of type 'web_search_call' is no part of a message"
    assert output == "input[1] has no call before it with the id 'c'"
    with pytest.raises(UserError, match=r"input\[0\] of type 'web_search_call' .* \(2 such in all\)"):
        parse_input([{'type': 'web_search_call'}, OUTPUT], strict=True)
    assert parse_input([CALL, OUTPUT], strict=True)
