"""One refusal of each kind over the wire: tool choice, output format, schemas, fields."""

from __future__ import annotations

import json

import pytest
from refusing import (
    AS_CITY,
    CITY,
    FIND,
    LOOK,
    Case,
    Fields,
    chat,
    function,
    kind,
    named,
    refusal,
    run,
    system,
    user,
)

from oaicompat.testing import Reply

TOOLS = {'tools': [function('look'), function('find')]}
FORMAT = {'type': 'json_schema', 'json_schema': {'name': 'City', 'schema': CITY, 'strict': True}}
ASK_OBJECT = 'Answer with one JSON object (application/json) and nothing else.'
IN_PROMPT = (
    'Answer with JSON (application/json) and nothing else. It must fit this JSON schema, named City:\n'
    f'{json.dumps(CITY, separators=(",", ":"))}'
)
NATIVE = {'output_mode': 'native', 'output_object': AS_CITY}
PROMPTED = {'output_mode': 'prompted', 'output_object': AS_CITY, 'prompted_output_template': 'As JSON: {schema}'}
AS_JSON = f'As JSON: {json.dumps({**CITY, "title": "City"})}'
PERMISSIVE = {'name': 'json_object', 'schema': {'type': 'object'}, 'strict': False}
BOTH_TOOLS = {'function_tools': [LOOK, FIND]}
WITH_REFS: Fields = {
    'type': 'object',
    'properties': {'at': {'$ref': '#/$defs/Place'}},
    'required': ['at'],
    'additionalProperties': False,
    '$defs': {'Place': {'type': 'string', 'format': 'uri'}},
}
INLINED: Fields = {**WITH_REFS, 'properties': {'at': {'type': 'string', 'format': 'uri'}}}
del INLINED['$defs']
CASES: dict[str, Case] = {
    '8.1 named': Case(
        [
            (
                named,
                Reply.json(
                    {'error': "Invalid tool_choice type: 'object'. Supported string values: none, auto, required"}, 400
                ),
            )
        ],
        [
            chat(user('go'), **TOOLS, tool_choice={'type': 'function', 'function': {'name': 'look'}}),
            chat(user('go'), tools=[function('look')], tool_choice='required'),
        ],
        {'compat_named_tool_choice': False},
        ['request.tool_choice'],
        settings={'tool_choice': ['look']},
        parameters=BOTH_TOOLS,
    ),
    '8.1 any force': Case(
        [
            (
                lambda body: body.get('tool_choice') not in (None, 'auto', 'none'),
                refusal('Error from provider (DeepSeek): Thinking mode does not support this tool_choice'),
            )
        ],
        [
            chat(user('go'), **TOOLS, tool_choice={'type': 'function', 'function': {'name': 'look'}}),
            chat(user('go'), tools=[function('look')], tool_choice='auto'),
        ],
        {'compat_named_tool_choice': False, 'compat_required_tool_choice': False},
        ['request.tool_choice'],
        settings={'tool_choice': ['look']},
        parameters=BOTH_TOOLS,
    ),
    '8.1 named, then required': Case(
        [
            (named, refusal("tool_choice 'specified' is not supported")),
            (lambda body: body.get('tool_choice') == 'required', refusal("tool_choice 'required' is not supported")),
        ],
        [
            chat(user('go'), **TOOLS, tool_choice={'type': 'function', 'function': {'name': 'look'}}),
            chat(user('go'), tools=[function('look')], tool_choice='required'),
            chat(user('go'), tools=[function('look')], tool_choice='auto'),
        ],
        {'compat_named_tool_choice': False, 'compat_required_tool_choice': False},
        ['request.tool_choice'],
        settings={'tool_choice': ['look']},
        parameters=BOTH_TOOLS,
    ),
    '8.2 required': Case(
        [(lambda body: body.get('tool_choice') == 'required', refusal('Tool choice must be auto', code=400))],
        [chat(user('go'), **TOOLS, tool_choice='required'), chat(user('go'), **TOOLS, tool_choice='auto')],
        {'compat_required_tool_choice': False},
        ['request.tool_choice'],
        settings={'tool_choice': 'required'},
        parameters=BOTH_TOOLS,
    ),
    '8.3 json_object': Case(
        [
            (
                lambda body: kind(body) == 'json_object',
                Reply.json({'error': "'response_format.type' must be 'json_schema' or 'text'"}, 400),
            )
        ],
        [
            chat(system(AS_JSON), user('go'), response_format={'type': 'json_object'}),
            chat(system(AS_JSON), user('go'), response_format={'type': 'json_schema', 'json_schema': PERMISSIVE}),
        ],
        {'compat_json_object': False},
        ['request.output_format'],
        parameters=PROMPTED,
    ),
    '8.3 then the prompt': Case(
        [
            (lambda body: kind(body) == 'json_object', refusal('Json mode is not supported for this model.')),
            (lambda body: kind(body) == 'json_schema', refusal('This response_format type is unavailable now')),
        ],
        [
            chat(system(AS_JSON), user('go'), response_format={'type': 'json_object'}),
            chat(system(AS_JSON), user('go'), response_format={'type': 'json_schema', 'json_schema': PERMISSIVE}),
            chat(system(f'{AS_JSON}\n\n{ASK_OBJECT}'), user('go')),
        ],
        {'compat_json_object': False, 'compat_json_schema': False},
        ['request.output_format'],
        parameters=PROMPTED,
    ),
    '8.4 json_schema': Case(
        [(lambda body: kind(body) == 'json_schema', refusal('This response_format type is unavailable now'))],
        [
            chat(user('go'), response_format=FORMAT),
            chat(system(IN_PROMPT), user('go'), response_format={'type': 'json_object'}),
        ],
        {'compat_json_schema': False},
        ['request.output_format'],
        parameters=NATIVE,
    ),
    '8.4 strict, schema, object': Case(
        [
            (
                lambda body: 'strict' in (body.get('response_format') or {}).get('json_schema', {}),
                refusal('response_format.json_schema.strict: Extra inputs are not permitted'),
            ),
            (
                lambda body: kind(body) == 'json_schema',
                refusal("'response_format' of type 'json_schema' is not supported"),
            ),
            (
                lambda body: kind(body) == 'json_object',
                refusal("'response_format' of type 'json_object' is not supported"),
            ),
        ],
        [
            chat(user('go'), response_format=FORMAT),
            chat(user('go'), response_format={'type': 'json_schema', 'json_schema': {'name': 'City', 'schema': CITY}}),
            chat(system(IN_PROMPT), user('go'), response_format={'type': 'json_object'}),
            chat(system(IN_PROMPT), user('go')),
        ],
        {
            'openai_supports_strict_tool_definition': False,
            'compat_json_schema': False,
            'compat_json_object': False,
        },
        ['request.output_format'],
        parameters=NATIVE,
    ),
    '8.4 Responses': Case(
        [
            (
                lambda body: kind(body) == 'json_schema',
                refusal("text.format of type 'json_schema' is not supported", param='text.format'),
            )
        ],
        [
            {
                'input': [user('go')],
                'text': {'format': {'type': 'json_schema', 'name': 'City', 'schema': CITY, 'strict': True}},
            },
            {'input': [user('go')], 'text': {'format': {'type': 'json_object'}}, 'instructions': IN_PROMPT},
        ],
        {'compat_json_schema': False},
        ['request.output_format'],
        parameters=NATIVE,
        responses=True,
    ),
    '8.5 max_completion_tokens': Case(
        [
            (
                lambda body: 'max_completion_tokens' in body,
                Reply.json(
                    {
                        'detail': [
                            {
                                'type': 'extra_forbidden',
                                'loc': ['body', 'max_completion_tokens'],
                                'msg': 'Extra inputs are not permitted',
                                'input': 9,
                            }
                        ]
                    },
                    422,
                ),
            )
        ],
        [chat(user('go'), max_completion_tokens=9), chat(user('go'), max_tokens=9)],
        {'openai_chat_supports_max_completion_tokens': False},
        ['request.max_tokens'],
        later=[],
        settings={'max_tokens': 9},
    ),
    '8.6 by name': Case(
        [
            (
                lambda body: 'seed' in body or 'store' in body,
                Reply.json(
                    {
                        'detail': [
                            {'loc': ['body', 'seed'], 'msg': 'Extra inputs are not permitted'},
                            {'loc': ['body', 'store'], 'msg': 'Extra inputs are not permitted'},
                        ]
                    },
                    422,
                ),
            ),
            (
                lambda body: 'temperature' in body,
                refusal("Unsupported parameter: 'temperature' is not supported with this model."),
            ),
        ],
        [
            chat(user('go'), seed=1, store=False, temperature=0.5, top_p=0.5),
            chat(user('go'), temperature=0.5, top_p=0.5),
            chat(user('go'), top_p=0.5),
        ],
        {'compat_omit': ('seed', 'store', 'temperature')},
        ['request.omit'],
        settings={'seed': 1, 'openai_store': False, 'temperature': 0.5, 'top_p': 0.5},
    ),
    '8.6 Responses': Case(
        [(lambda body: 'service_tier' in body, refusal("Unknown parameter: 'service_tier'."))],
        [{'input': [user('go')], 'service_tier': 'auto'}, {'input': [user('go')]}],
        {'compat_omit': ('service_tier',)},
        ['request.omit'],
        settings={'openai_service_tier': 'auto'},
        responses=True,
    ),
    '8.10 $ref': Case(
        [
            (
                lambda body: '$ref' in json.dumps(body),
                refusal(
                    'Invalid JSON payload received. Unknown name "$ref" at \'tools[0].function_declarations[0]'
                    ".parameters.properties[0].value': Cannot find field."
                ),
            )
        ],
        [
            chat(user('go'), tools=[function('look', WITH_REFS)], tool_choice='auto'),
            chat(user('go'), tools=[function('look', INLINED)], tool_choice='auto'),
        ],
        {'compat_schema': ('$ref',)},
        ['request.schema'],
        parameters={'function_tools': [type(LOOK)(name='look', description='Look.', parameters_json_schema=WITH_REFS)]},
    ),
}


@pytest.mark.parametrize('stream', [False, True], ids=['unary', 'streamed'])
@pytest.mark.parametrize('name', CASES)
async def test_refusal(name: str, stream: bool, caplog: pytest.LogCaptureFixture) -> None:
    await run(CASES[name], caplog, stream=stream)
