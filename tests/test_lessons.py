"""The rules: which refusal of which request teaches what."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oaicompat._complaints import complaints
from oaicompat._lesson import Lesson
from oaicompat._lessons import lessons
from oaicompat._memory import Memory
from oaicompat._rules import RULES

TOOL = {'role': 'tool', 'tool_call_id': 'c', 'content': [{'type': 'text', 'text': 'a'}]}
SENT: dict[str, Any] = {'messages': [{'role': 'user', 'content': 'hi'}, {'role': 'assistant', 'content': None}, TOOL]}
JOINED = {'compat_tool_return': 'joined'}


def lesson(profile: dict[str, Any], sent: dict[str, Any], status: int, body: object) -> Lesson | None:
    """The one lesson of a refusal, if there is any."""
    return next(iter(lessons(profile, sent, status, body)), None)


def openai_error(message: str, **fields: Any) -> dict[str, Any]:
    return {'message': message, 'type': 'invalid_request_error', 'param': None, 'code': None, **fields}


SERDE = (
    'Failed to deserialize the JSON body into the target type: messages[2]: invalid type: sequence, expected a string'
)

REFUSALS: dict[str, tuple[int, Any]] = {
    'DeepSeek 422': (422, f'{SERDE} at line 35 column 3'),
    'DeepSeek 400': (400, openai_error(f'{SERDE} at line 1 column 45446', code='invalid_request_error')),
    'DeepSeek in an envelope': (400, {'error': openai_error(SERDE)}),
    'Groq': (
        400,
        openai_error(
            "'messages.2' : for 'role:tool' the following must be satisfied"
            "[('messages.2.content' : value must be a string)]"
        ),
    ),
    'Groq, older': (400, openai_error('message[4].content must be a string')),
    'SiliconFlow': (400, {'code': 20015, 'message': 'Input should be a valid string', 'data': None}),
    'DashScope': (400, openai_error('tool_call.content must be string')),
    'FastAPI': (
        422,
        {
            'detail': [
                {
                    'type': 'string_type',
                    'loc': ['body', 'messages', 2, 'content'],
                    'msg': 'Input should be a valid string',
                    'input': ['arguments'],
                }
            ]
        },
    ),
    'pydantic errors in a string': (
        400,
        {
            'object': 'error',
            'message': json.dumps([{'loc': ['body', 'messages', 2, 'content'], 'msg': 'str type expected'}]),
        },
    ),
    'OpenAI': (
        400,
        openai_error(
            "Invalid type for 'messages[2].content': expected a string, but got an array instead.",
            param='messages[2].content',
        ),
    ),
    'zod': (400, {'error': 'messages.2.content: Expected string, received array'}),
    'Go': (400, openai_error('json: cannot unmarshal array into Go struct field Message.content of type string')),
    'Jackson': (400, {'message': 'Cannot deserialize value of type `java.lang.String` from Array value (START_ARRAY)'}),
    'JSON Schema': (400, [{'message': "[{'type': 'text'}] is not of type 'string'", 'path': 'messages.2.content'}]),
    'Z.ai': (400, openai_error('messages[2].content[0].type type error', code='1214')),
    'plain words': (400, {'msg': 'got a list where a string is expected'}),
}


@pytest.mark.parametrize(('status', 'body'), REFUSALS.values(), ids=REFUSALS)
def test_a_refused_list_teaches_joined(status: int, body: Any) -> None:
    learned = lesson({'compat_tool_return': 'native'}, SENT, status, body)
    assert learned is not None
    assert (learned.name, dict(learned.profile)) == ('request.tool_return', JOINED)
    assert lesson({'compat_tool_return': 'native'}, SENT, status, json.dumps(body)) == learned


@pytest.mark.parametrize(('status', 'body'), REFUSALS.values(), ids=REFUSALS)
def test_it_teaches_nothing_twice_and_nothing_that_was_not_sent(status: int, body: Any) -> None:
    assert lesson(JOINED, SENT, status, body) is None
    without = {'messages': [SENT['messages'][0], {**TOOL, 'content': 'a'}]}
    assert lesson({}, without, status, body) is None


OTHERS: dict[str, tuple[int, Any]] = {
    'another status': (401, SERDE),
    'an overloaded server': (503, SERDE),
    'another message': (400, openai_error('messages[0]: invalid type: sequence, expected a string')),
    'another field': (400, openai_error('messages.2.tool_calls.0.function.arguments: Input should be a valid string')),
    'its id': (
        422,
        {'detail': [{'loc': ['body', 'messages', 2, 'tool_call_id'], 'msg': 'Input should be a valid string'}]},
    ),
    'another request field': (
        422,
        {'detail': [{'loc': ['body', 'response_format', 'type'], 'msg': 'Input should be a valid string'}]},
    ),
    'the reverse': (400, openai_error('messages[2].content: expected an array, got a string')),
    'an echo': (422, {'detail': [{'loc': ['body', 'seed'], 'msg': 'must be an integer', 'input': SERDE}]}),
    'context length': (400, openai_error("This model's maximum context length is 8192 tokens.")),
    'nothing': (400, None),
    'a number': (400, 7),
    'empty': (400, {}),
}


@pytest.mark.parametrize(('status', 'body'), OTHERS.values(), ids=OTHERS)
def test_other_refusals_teach_nothing(status: int, body: Any) -> None:
    assert lesson({'compat_tool_return': 'native'}, SENT, status, body) is None


@pytest.mark.parametrize(
    'message',
    [
        'This model only support stream mode, please enable the stream parameter to access the model. ',
        'stream must be true',
        '`stream` should be set to true',
        'Non-streaming requests are not supported by this endpoint',
    ],
)
def test_a_server_that_only_streams(message: str) -> None:
    learned = lesson({}, {'messages': []}, 400, openai_error(message))
    assert learned is not None
    assert (learned.name, dict(learned.profile)) == ('request.stream', {'compat_stream': 'always'})
    assert lesson({}, {'messages': [], 'stream': True}, 400, openai_error(message)) is None


def test_responses_input_is_read_alike() -> None:
    output = {'type': 'function_call_output', 'call_id': 'c', 'output': [{'type': 'input_text', 'text': 'a'}]}
    body = openai_error("Invalid type for 'input[0].output': expected a string, but got an array instead.")
    learned = lesson({}, {'input': [output]}, 400, body)
    assert learned is not None
    assert learned.profile == JOINED
    assert lesson({}, {'input': [{**output, 'output': 'a'}]}, 400, body) is None


def test_every_rule_links_its_evidence() -> None:
    assert all(rule.evidence.startswith('https://') for rule in RULES)


def test_the_reason_is_kept_short() -> None:
    learned = lesson({}, SENT, 400, SERDE + 'x' * 5000)
    assert learned is not None
    assert len(learned.because) == 200


keys = st.text() | st.sampled_from(['loc', 'msg', 'error', 'param', 'detail'])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)


@given(
    body=json_values, sent=st.dictionaries(st.sampled_from(['messages', 'input']), json_values), status=st.integers()
)
def test_any_body_is_read_without_a_crash(body: Any, sent: dict[str, Any], status: int) -> None:
    assert all(isinstance(text, str) for text in complaints(body))
    assert lesson({}, sent, status, body) is None or status in (400, 422)


def test_memory_is_per_endpoint_and_model() -> None:
    memory = Memory()
    learned = Lesson('request.tool_return', JOINED, 'said so')
    before = memory.version('e', 'm')
    assert memory.learn('e', 'm', learned)
    assert not memory.learn('e', 'm', Lesson('request.tool_return', JOINED, 'said so again'))
    assert memory.profile('e', 'm') == JOINED
    assert memory.lessons('e', 'm') == (learned,)
    assert memory.version('e', 'm') != before
    assert memory.profile('e', 'other') == memory.profile('other', 'm') == {}


def test_memory_forgets_and_its_version_never_comes_back() -> None:
    memory = Memory()
    versions = [memory.version('e', 'm')]
    for _ in range(2):
        memory.learn('e', 'm', Lesson('n', JOINED, ''))
        versions.append(memory.version('e', 'm'))
        memory.recognise('e', 'llama.cpp')
        memory.forget('e', 'm')
        memory.forget_kind('e')
        versions.append(memory.version('e', 'm'))
        assert (memory.profile('e', 'm'), memory.kind('e')) == ({}, None)
    assert len(set(versions)) == len(versions)


def test_a_later_lesson_of_the_same_name_replaces_the_first() -> None:
    memory = Memory()
    memory.learn('e', 'm', Lesson('n', JOINED, ''))
    assert memory.learn('e', 'm', Lesson('n', {'compat_tool_return': 'string'}, ''))
    assert memory.profile('e', 'm') == {'compat_tool_return': 'string'}
