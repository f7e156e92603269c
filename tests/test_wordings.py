"""Wordings of refusals: what each teaches of a request that uses the shape, and its neighbours, which teach nothing.

All are made up, in the manner of validators and servers; what servers really said is in `refusals.jsonl`.
"""

from __future__ import annotations

import time
from typing import Any

import pytest

from oaicompat._complaints import complaints, masked
from oaicompat._lessons import guesses, lessons
from oaicompat._schemas import rewrites_for, rewritten

CALL = {'id': 'c1', 'type': 'function', 'function': {'name': 't', 'arguments': '{}'}}
TEXT = [{'type': 'text', 'text': 't'}]
TOOL = {'type': 'function', 'function': {'name': 'look', 'parameters': {'type': 'object', 'properties': {}}}}


def said(role: str, content: Any = 'x', **fields: Any) -> dict[str, Any]:
    return {'role': role, 'content': content, **fields}


def chat(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {'model': 'm', 'messages': list(messages) or [said('user')], 'stream': True, **fields}


CALLING, RESULT = said('assistant', None, tool_calls=[CALL]), said('tool', '4', tool_call_id='c1')
SEED = chat(seed=1, service_tier='auto', temperature=1, max_completion_tokens=9, user='u', tools=[TOOL])
NAMED = chat(tools=[TOOL], tool_choice={'type': 'function', 'function': {'name': 'look'}})
REQUIRED = chat(tools=[TOOL], tool_choice='required')
LATE = chat(said('user'), said('system'), said('user'))
SYSTEM = chat(said('system'), said('user'))
NULL = chat(said('user'), CALLING, RESULT)
LIST = chat(said('user'), said('assistant', '', tool_calls=[CALL]), said('tool', TEXT, tool_call_id='c1'))
TWICE = chat(said('user'), said('user'))
LAST = chat(said('user'), said('assistant', 'so'))
UNPAIRED = chat(said('user'), said('assistant', '', tool_calls=[CALL]), said('user'))
REASONED = chat(said('user'), said('assistant', 'a', reasoning_content='r'), said('user'))
UNREASONED = chat(said('user'), said('assistant', 'a', reasoning='r'), said('user'))

OMIT = {'compat_omit': ('seed',)}
LIFT = {'compat_late_system': 'lift'}
USER = {'compat_system': 'user'}
NO_NAME = {'compat_named_tool_choice': False}
NO_FORCE = {'compat_required_tool_choice': False}
EMPTY = {'compat_assistant_content': 'empty'}
JOINED = {'compat_tool_return': 'joined'}
TURNS = {'compat_roles': 'alternate'}
ENDS = {'compat_last_message': 'user'}
PAIRED = {'compat_tool_order': 'paired'}
NEVER = {'compat_echo_reasoning': 'never'}
ECHO = {'compat_echo_reasoning': 'reasoning_content'}
IDS = {'compat_tool_call_ids': 'alnum9'}
MAX = {'openai_chat_supports_max_completion_tokens': False}


def taught(sent: dict[str, Any], body: object, status: int = 400) -> dict[str, Any]:
    return {key: value for lesson in lessons({}, sent, status, body) for key, value in lesson.profile.items()}


FIELDS = [
    '{} is not a valid parameter', 'Invalid field name: {}', 'The field {} is not part of the schema',
    '{} not supported', '{} not allowed', '{} not recognized',
    'No such parameter: {}', 'parameter {} does not exist', "'{}' was unexpected", 'extra fields not permitted: {}',
    '{} is no longer supported', 'does not currently support the `{}` parameter', 'Cannot use {} with this model',
    'Remove the {} parameter', '\u4e0d\u652f\u6301 {} \u53c2\u6570', '{} can only be used when stream is true',
    "This model doesn't support {}.", 'This model doesn\u2019t support {}', "`{}` isn't supported", '{}: not supported',
    "Unrecognized key(s) in object: '{}'", "got an unexpected keyword argument '{}'", 'property {} should not exist',
    'body/{} must NOT have additional properties', "additionalProperties: '{}' not allowed", '{}: unknown field',
    "Parameter '{}' cannot be used with this model", "Parameter '{}' can't be used with this model",
    "The parameter '{}' has been removed", '{} is not implemented', '{} must not be set', "{} can't be specified",
    'unknown field "{}"', "Additional properties are not allowed ('{}' was unexpected)", 'invalid field: {}',
    '\u4e0d\u652f\u6301\u7684\u53c2\u6570: {}', '\u4e0d\u652f\u6301\u53c2\u6570 {}', '\u672a\u77e5\u53c2\u6570\uff1a{}',
    '\u53c2\u6570 {} \u4e0d\u652f\u6301', '{}\u53c2\u6570\u4e0d\u652f\u6301',
    '{}: \u4e0d\u652f\u6301\u7684\u5b57\u6bb5',
    'Unbekannter Parameter: {}', 'Nicht unterst\u00fctztes Feld: {}', 'Der Parameter {} wird nicht unterst\u00fctzt',
    'Param\u00e8tre inconnu : {}', "Le param\u00e8tre {} n'est pas pris en charge", 'Champ non support\u00e9 : {}',
    'Par\u00e1metro desconocido: {}', "El par\u00e1metro '{}' no es compatible con este modelo", '{} no se admite',
    '\u30b5\u30dd\u30fc\u30c8\u3055\u308c\u3066\u3044\u306a\u3044\u30d1\u30e9\u30e1\u30fc\u30bf\u30fc: {}',
    '{}\u306f\u30b5\u30dd\u30fc\u30c8\u3055\u308c\u3066\u3044\u307e\u305b\u3093',
    '\u4e0d\u660e\u306a\u30d1\u30e9\u30e1\u30fc\u30bf: {}',
    '\uc54c \uc218 \uc5c6\ub294 \ub9e4\uac1c\ubcc0\uc218: {}',
    '{}\uc740(\ub294) \uc9c0\uc6d0\ub418\uc9c0 \uc54a\uc2b5\ub2c8\ub2e4',
]  # fmt: skip


@pytest.mark.parametrize('wording', FIELDS)
def test_a_field_that_is_named_is_left_out(wording: str) -> None:
    assert taught(SEED, wording.format('seed')) == OMIT
    assert taught(SEED, {'error': {'message': wording.format('seed'), 'type': 'invalid_request_error'}}) == OMIT
    # Neither what was not sent, nor what a request can't do without.
    for other in ('top_k', 'messages', 'model'):
        assert taught(SEED, wording.format(other)) == {}


SHAPES: list[tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    ("tool_choice: Input should be 'auto', 'none' or 'required'", NAMED, NO_NAME, REQUIRED),
    ('json: cannot unmarshal object into Go struct field R.tool_choice of type string', NAMED, NO_NAME, SEED),
    ("'required' is not one of ['auto','none'] - 'tool_choice'", REQUIRED, NO_FORCE, SEED),
    ('tool_choice\u53c2\u6570\u53ea\u652f\u6301auto', NAMED, NO_NAME | NO_FORCE, SEED),
    ('max_completion_tokens \u53c2\u6570\u4e0d\u652f\u6301', SEED, MAX, chat(max_tokens=9)),
    ('Only the first message can be a system message', LATE, LIFT, SYSTEM),
    ('System messages must precede all other messages', LATE, LIFT, SYSTEM),
    ('system messages are only allowed at index 0', LATE, LIFT, SYSTEM),
    ("messages.1.role: Input should be 'user', 'assistant' or 'tool'", LATE, LIFT, TWICE),
    ("This model doesn't support system messages", SYSTEM, USER, TWICE),
    ('Invalid role: system', SYSTEM, USER, TWICE),
    ('unknown variant `system`, expected `user`', SYSTEM, USER, TWICE),
    ("messages[0].role: Input should be 'user' or 'assistant'", SYSTEM, USER, TWICE),
    ('expected one of a string or array of objects, but got null instead', NULL, EMPTY, LAST),
    ('json: cannot unmarshal null into Go struct field Message.content of type string', NULL, EMPTY, LAST),
    ("None is not of type 'string' - 'messages.1.content'", NULL, EMPTY, LAST),
    ("'content' is a required property", NULL, EMPTY, LAST),
    ('can only concatenate str (not "NoneType") to str', NULL, EMPTY, LAST),
    ('tool message content must be text', LIST, JOINED, LAST),
    ("unhashable type: 'list'", LIST, JOINED, LAST),
    ('This model only supports string content', LIST, JOINED, LAST),
    ("Unexpected role 'user' after role 'user'", TWICE, TURNS, SYSTEM),
    ('Consecutive messages with the same role are not allowed', TWICE, TURNS, SYSTEM),
    ('messages must alternate between user and assistant', TWICE, TURNS, SYSTEM),
    ('Final message must be a user message', LAST, ENDS, TWICE),
    ('Please ensure that multiturn requests end with a user role', LAST, ENDS, TWICE),
    ('`tool_use` ids were found without `tool_result` blocks immediately after: c1', UNPAIRED, PAIRED, NULL),
    ('No tool output found for function call c1.', UNPAIRED, PAIRED, NULL),
    ('tool call result does not follow tool call', UNPAIRED, PAIRED, NULL),
    ('Not the same number of function calls and responses', UNPAIRED, PAIRED, NULL),
    ('messages[1]: unknown field `reasoning_content`', REASONED, NEVER, UNREASONED),
    ('Unsupported field: messages[1].reasoning_content', REASONED, NEVER, UNREASONED),
    ('\u4e0d\u652f\u6301\u7684\u5b57\u6bb5: reasoning_content', REASONED, NEVER, UNREASONED),
    ('reasoning_content must be provided', UNREASONED, ECHO, REASONED),
    ('content should be a string', LIST, JOINED, LAST),
    ('content \u5fc5\u987b\u662f\u5b57\u7b26\u4e32', LIST, JOINED, LAST),
    ('List content is not supported', LIST, JOINED, LAST),
    ('Missing required field: content', NULL, EMPTY, LAST),
    ('content \u4e0d\u80fd\u4e3a\u7a7a', NULL, EMPTY, LAST),
    ('last message role must be user', LAST, ENDS, TWICE),
    ('\u6700\u540e\u4e00\u6761\u6d88\u606f\u5fc5\u987b\u662f\u7528\u6237\u6d88\u606f', LAST, ENDS, TWICE),
    ('Missing tool result for tool call c1', UNPAIRED, PAIRED, NULL),
    (
        '\u8be5\u6a21\u578b\u4e0d\u652f\u6301\u5de5\u5177\u8c03\u7528',
        chat(tools=[TOOL]),
        {'compat_tools': 'prompted'},
        chat(),
    ),
    ('system prompt only allowed at the start', LATE, LIFT, SYSTEM),
    ("messages[0].role: unsupported value 'system'", SYSTEM, USER, TWICE),
    ('json: unknown field "reasoning_content"', REASONED, NEVER, UNREASONED),
    ('The reasoning_content field must not be included', REASONED, NEVER, UNREASONED),
    ('reasoning_content is required when thinking is enabled', UNREASONED, ECHO, REASONED),
    ('Missing `reasoning_content` field in the assistant message', UNREASONED, ECHO, REASONED),
    ('messages.1: reasoning_content: Field required', UNREASONED, ECHO, REASONED),
    ('Tool call id must be exactly 9 alphanumeric characters', NULL, IDS, LAST),
    ('tool_call_id must match ^[a-zA-Z0-9]{9}$', NULL, IDS, LAST),
    ('messages.1.content.0.tool_use.id: String should match pattern', NULL, IDS, LAST),
]


@pytest.mark.parametrize(('wording', 'sent', 'lesson', 'other'), SHAPES, ids=[row[0] for row in SHAPES])
def test_a_shape_that_is_refused_is_changed(
    wording: str, sent: dict[str, Any], lesson: dict[str, Any], other: dict[str, Any]
) -> None:
    assert taught(sent, {'message': wording}) == lesson
    assert taught(other, {'message': wording}) == {}


TOOLS = [
    'tools not supported', 'Tools not supported.', 'tool calling not supported', 'Function calling is unavailable',
    'model has no tool support', 'This model does not have tool support', 'No support for function calling',
    'tools unsupported', 'Unsupported: tools', 'not supported: tools', 'tools: not supported', "'tools' not allowed",
    'this model cannot use tools', 'This model has no function calling capability', 'Tool use is turned off here',
    'Werkzeuge werden nicht unterst\u00fctzt', 'Les outils ne sont pas pris en charge',
    'Las herramientas no se admiten', '\u5de5\u5177\u8c03\u7528\u4e0d\u652f\u6301',
    '\u30c4\u30fc\u30eb\u306f\u30b5\u30dd\u30fc\u30c8\u3055\u308c\u3066\u3044\u307e\u305b\u3093',
    'the tools parameter is not supported', 'Extra inputs are not permitted: tools', "Unrecognized key(s): 'tools'",
]  # fmt: skip
NOT_TOOLS = [
    'tool_choice not supported', 'parallel tool calls not supported', 'strict mode for tools not supported',
    'tools with images not supported', 'tools and response_format not supported together',
    'web search tools not allowed',
    'streaming with tools is not supported', 'tool results not supported', 'tools.0.function.name: not supported',
    'tools[0].type: not supported', 'unsupported tool type', 'json mode with tools not supported', 'Too many tools',
]  # fmt: skip


@pytest.mark.parametrize('wording', TOOLS)
def test_tools_that_are_refused_are_told_in_the_prompt(wording: str) -> None:
    sent = chat(tools=[TOOL])
    for body in (wording, {'error': wording}, {'detail': wording}, {'error': {'message': wording, 'code': 400}}):
        assert taught(sent, body) == {'compat_tools': 'prompted'}
        assert taught(chat(), body) == {}
    assert taught(sent, {'message': 'not supported', 'param': 'tools'}) == {'compat_tools': 'prompted'}


@pytest.mark.parametrize('wording', NOT_TOOLS)
def test_what_is_refused_beside_tools_leaves_them(wording: str) -> None:
    assert 'compat_tools' not in taught(chat(tools=[TOOL], tool_choice='auto'), wording)


def test_other_messages_and_forms_teach_nothing() -> None:
    assert taught(NULL, 'content is empty for user message') == {}
    assert taught(REQUIRED, 'tool_choice must be an object') == {}
    assert taught(REASONED, 'The reasoning_content is too long') == {}


def test_the_place_counts_with_the_words() -> None:
    body = {'message': 'String should have at most 9 characters', 'param': 'messages[1].tool_calls[0].id'}
    assert taught(NULL, body) == IDS
    assert taught(NULL, {**body, 'param': 'messages[0].name'}) == {}


CALLERS: list[Any] = [
    'user is not allowed to access this model', 'The user is unknown', 'project user is forbidden', 'User not allowed',
    'Tool calls are not supported for user messages', 'unknown user: u',
    'Requests from this user are not allowed', 'Access for user is not enabled',
    'invalid param: temperature', 'Invalid parameter: temperature', 'service_tier must be one of auto, default',
    'temperature \u53c2\u6570\u975e\u6cd5\uff0c\u53d6\u503c\u8303\u56f4 (0, 1)', 'value 9 is not allowed',
    'unsupported value for max_completion_tokens: 9', "tool 'look' not found in tools", 'seed must not be negative',
    'temperature\u53c2\u6570\u975e\u6cd5: 0 < temperature < 1', "seed: 'x' is not a valid integer",
    {'message': 'seed: out of range', 'code': 'invalid_value', 'param': 'seed'},
    {'message': 'temperature must be between 0 and 1', 'code': 'unsupported_value', 'param': 'temperature'},
    *(
        {'message': 'Unknown parameter: seed', 'code': code, 'param': 'seed'}
        for code in ('invalid_api_key', 'context_length_exceeded', 'insufficient_quota', 'content_filter')
    ),
    {'message': 'Bad Request', 'code': 'model_not_found'}, {'message': 'Bad Request', 'type': 'rate_limit_exceeded'},
    {'message': 'Bad Request', 'innererror': {'code': 'ResponsibleAIPolicyViolation'}},
    {'error': {'message': '', 'type': 'billing_error'}}, {'code': 'billing_hard_limit_reached'},
    {'words': 'of a server that nobody knows'},
]  # fmt: skip


@pytest.mark.parametrize('body', CALLERS, ids=str)
def test_what_is_the_callers_to_change_teaches_nothing(body: object) -> None:
    everything = {**SEED, **LIST, 'stream_options': {}}
    assert taught(everything, body) == {}
    assert guesses({}, everything, 400, body) == ()


def test_of_several_fields_each_is_left_out() -> None:
    for wording in ('`seed` and `user` are not supported', 'seed, top_k and user are not supported with this model'):
        assert set(taught(SEED, wording)['compat_omit']) == {'seed', 'user'}


def test_a_field_whose_name_is_a_word_is_marked_as_one() -> None:
    for wording in (
        "'user' is not allowed",
        'user: not supported',
        'The user parameter is unknown',
        'Unknown field: user',
    ):
        assert taught(SEED, wording) == {'compat_omit': ('user',)}


def test_a_range_that_knows_one_value_is_of_the_model() -> None:
    for wording in (
        'invalid temperature: only 1 is allowed for this model',
        'temperature\u53c2\u6570\u975e\u6cd5\u3002',
    ):
        assert taught(SEED, wording) == {'compat_omit': ('temperature',)}


CODES: list[Any] = [
    {'code': 'unsupported_parameter', 'param': 'seed'},
    {'error': {'code': 'unsupported_parameter', 'param': 'seed', 'message': ''}},
    {'code': 'unknown_parameter', 'param': 'seed', 'message': 'Nein.'},
    {'code': 'unsupported_value', 'param': 'seed', 'message': 'Non.'},
    {'detail': [{'type': 'extra_forbidden', 'loc': ['body', 'seed'], 'msg': 'Zus\u00e4tzliche Eingaben'}]},
    {'issues': [{'code': 'unrecognized_keys', 'keys': ['seed'], 'path': [], 'message': 'Cl\u00e9s'}]},
]
STRUCTURES: list[Any] = [
    {'errors': {'seed': ['Extra inputs are not permitted']}}, {'seed': ['unknown field']},
    {'title': 'One or more validation errors occurred.', 'errors': {'seed': 'not supported'}},
    {'invalid-params': [{'name': 'seed', 'reason': 'unknown field'}]},
    {'error': {'details': [{'fieldViolations': [{'field': 'seed', 'description': 'not supported'}]}]}},
    {'issues': [{'code': 'unrecognized_keys', 'keys': ['seed'], 'message': "Unrecognized key(s) in object: 'seed'"}]},
    [{'instancePath': '', 'params': {'additionalProperty': 'seed'}, 'message': 'must NOT have additional properties'}],
    {'errors': [{'msg': 'unknown field', 'param': 'seed', 'location': 'body'}]},
    {'errors': [{'source': {'pointer': '/data/attributes/seed'}, 'detail': 'unknown field'}]},
    {'errors': [{'source': {'pointer': '#/seed'}, 'detail': 'is not supported'}]},
    {'message': [{'property': 'seed', 'constraints': {'whitelistValidation': 'property seed should not exist'}}]},
    *(
        {key: 'Unknown parameter: seed'}
        for key in ('errorMessage', 'error_msg', 'Message', 'err_msg', 'error_description')
    ),
    {'Error': {'Message': 'Unknown parameter: seed'}}, {'fault': {'faultstring': 'Unknown parameter: seed'}},
    {'result': {'error': 'Unknown parameter: seed'}}, {'data': {'message': 'Unknown parameter: seed'}},
    {'base_resp': {'status_code': 2013, 'status_msg': 'Unknown parameter: seed'}},
    {'error': {'message': 'Bad', 'innererror': {'message': 'Unknown parameter: seed'}}},
]  # fmt: skip


@pytest.mark.parametrize('body', [*CODES, *STRUCTURES], ids=str)
def test_codes_and_structures_name_a_field(body: Any) -> None:
    assert taught(SEED, body) == OMIT
    assert taught(chat(), body) == {}
    assert guesses({}, LIST, 400, body) == ()


VAGUE = [
    'Invalid request body', 'Request failed with status code 400', 'bad response status code 400', 'openai_error',
    'invalid_request_error', 'HTTP 422', '\u53c2\u6570\u9519\u8bef',
    '\u8bf7\u6c42\u53c2\u6570\u9519\u8bef', 'Bad Request',
    'Ung\u00fcltige Anfrage', 'Requ\u00eate invalide', 'Solicitud incorrecta',
    '\uc798\ubabb\ub41c \uc694\uccad\uc785\ub2c8\ub2e4',
    (
        '<html>\r\n<head><title>400 Bad Request</title></head>\r\n<body>\r\n<center><h1>400 Bad Request</h1></center>'
        '<hr><center>nginx/1.25</center>\r\n</body>\r\n</html>'
    ),
]  # fmt: skip


@pytest.mark.parametrize('wording', VAGUE)
def test_what_names_nothing_is_searched(wording: str) -> None:
    assert guesses({}, LIST, 400, {'error': {'message': wording}}) != ()
    assert guesses({}, LIST, 400, wording) != ()
    assert guesses({}, LIST, 400, f'{wording} of the field city') == ()
    assert taught(SEED, wording) == {}


KEYWORDS: list[tuple[str, tuple[str, ...]]] = [
    ("format: only 'enum' and 'date-time' are supported for STRING type", ('format',)),
    ('array schema missing items', ('items',)),
    ('union types are not supported', ('type', 'anyOf')),
    ('recursive schemas are not supported', ('$ref',)),
    ("Tool 'default' not found", ()),
    ('unknown model "default"', ()),
]
SCHEMA = {
    'type': 'object',
    '$defs': {'P': {'type': 'string', 'enum': ['a']}},
    'properties': {
        'a': {'$ref': '#/$defs/P'},
        'b': {'type': 'string', 'format': 'uri', 'default': 'x', 'enum': ['', 'x']},
        'c': {'type': 'array'},
        'd': {'type': ['string', 'integer']},
        'e': {'anyOf': [{'type': 'string'}, {'type': 'integer'}]},
    },
}


@pytest.mark.parametrize(('wording', 'asked'), KEYWORDS)
def test_keywords_of_schemas(wording: str, asked: tuple[str, ...]) -> None:
    assert set(rewrites_for(wording, SCHEMA)) == set(asked)


def test_an_optional_enum_still_accepts_null() -> None:
    schema = {'anyOf': [{'type': 'integer', 'enum': [1, 2]}, {'type': 'null'}]}
    whole = {'type': 'object', 'properties': {'a': {'type': 'array', 'items': schema}}}
    made = rewritten(whole, ('type', 'anyOf'))
    assert made['properties']['a']['items'] == {'enum': [1, 2, None]}


@pytest.mark.parametrize(
    'part',
    [
        'seed ',
        'tool call id must match ',
        'reasoning: ',
        '<html><',
        'a, ',
        'a',
        '`a` and ',
        'not ',
        'role ',
        'Bearer a',
        '{',
    ],
)
def test_long_bodies_are_read_in_no_time(part: str) -> None:
    body = {'message': part * (20_000 // len(part)), 'code': 'unsupported_value'}
    began = time.perf_counter()
    for sent in (SEED, REASONED, LIST):
        lessons({}, sent, 400, body)
        guesses({}, sent, 400, body)
    assert masked(str(body))
    assert list(complaints(body))
    assert time.perf_counter() - began < 3
