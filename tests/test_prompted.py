"""Tools by prompt: whole bodies before and after, in the form of each family of models, and what they teach it by."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import json_values

from oaicompat._formats import BARE_JSON, FAMILIES, GLM, HERMES, MINIMAX, QWEN_XML, Format, form_of
from oaicompat._knobs import adapts
from oaicompat._lessons import lessons
from oaicompat._prompted import FIELDS, prompted
from oaicompat._requests import adapted

Fields = dict[str, Any]

ON = {'compat_tools': 'prompted'}
LOOK: Fields = {
    'name': 'look',
    'description': 'Looks at the sky für now.',
    'parameters': {'type': 'object', 'properties': {'city': {'type': 'string'}, 'days': {'type': 'integer'}}},
}
LOOK_JSON = (
    '{"name":"look","description":"Looks at the sky für now.",'
    '"parameters":{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}}}}'
)
NAP_JSON = '{"name":"nap"}'
IMAGE = {'type': 'image_url', 'image_url': {'url': 'https://example.com/cat.png'}}
AUTO = 'Call a function where it helps; else answer as usual, without a call.'
SEVERAL = 'An answer may make several calls, one after the other.'
ONE = 'Make no more than one call in an answer.'
LAST = 'Calls come last in an answer: write nothing behind them.'
ALONE = 'An answer with calls has nothing else in it: no text, no code fence.'
RESULTS = 'Never make up a result: after your calls, the next message brings the results, in the order of the calls.'


def said(role: str, content: Any, **fields: Any) -> Fields:
    return {'role': role, 'content': content, **fields}


def text(value: str) -> Fields:
    return {'type': 'text', 'text': value}


def tool(name: str, **fields: Any) -> Fields:
    return {'type': 'function', 'function': {'name': name, **fields}}


def call(call_id: str, arguments: Any = '{}', name: str = 'look') -> Fields:
    return {'id': call_id, 'type': 'function', 'function': {'name': name, 'arguments': arguments}}


def calling(*calls: Fields, content: Any = None, **fields: Any) -> Fields:
    return said('assistant', content, tool_calls=list(calls), **fields)


def result(call_id: str, content: Any = 'seen', **fields: Any) -> Fields:
    return said('tool', content, tool_call_id=call_id, **fields)


def chat(*messages: Any, **fields: Any) -> Fields:
    return {'model': 'm', 'messages': list(messages), **fields}


def told(tools: str, sample: str, *rules: str) -> str:
    return (
        '# Tools\n\nYou can call functions, which are run for you. Each is described here, with a JSON schema of its '
        f'arguments:\n\n{tools}\n\nA call is written like this, with the name of the function and its arguments:\n\n'
        f'{sample}\n\n' + '\n'.join(f'- {rule}' for rule in rules)
    )


HI = said('user', 'hi')
LISTED = f'<tools>\n{{"type":"function","function":{LOOK_JSON}}}\n{{"type":"function","function":{NAP_JSON}}}\n</tools>'
ASKING = {'tools': [tool(**LOOK, strict=True), tool('nap')], 'tool_choice': 'auto', 'parallel_tool_calls': True}
SAMPLE = '<tool_call>\n{"name": "function_name", "arguments": {"argument_name": "value"}}\n</tool_call>'
HERMES_TOLD = told(LISTED, SAMPLE, AUTO, SEVERAL, LAST, RESULTS)
NAP = '<tool_call>\n{"name": "nap", "arguments": {}}\n</tool_call>'
LOOKED = '<tool_call>\n{"name": "look", "arguments": {}}\n</tool_call>'


def answered(*blocks: str, tag: str = 'tool_response') -> Fields:
    return said('user', '\n'.join(f'<{tag}>\n{block}\n</{tag}>' for block in blocks))


# Families

ULM = '{"city": "Ulm für \\"<b>\\"", "days": 2, "exact": true, "at": {"x": [1.50, null]}}'
FORMS: dict[str, tuple[str, str, str, str, str, str]] = {
    'qwen3:8b': (
        LISTED,
        SAMPLE,
        LAST,
        f'<tool_call>\n{{"name": "look", "arguments": {ULM}}}\n</tool_call>',
        NAP,
        'tool_response',
    ),
    'Qwen/Qwen3-Coder-30B-A3B-Instruct': (
        LISTED,
        '<tool_call>\n<function=function_name>\n<parameter=argument_name>\nvalue\n</parameter>\n</function>\n</tool_call>',
        LAST,
        (
            '<tool_call>\n<function=look>\n<parameter=city>\nUlm für "<b>"\n</parameter>\n'
            '<parameter=days>\n2\n</parameter>\n<parameter=exact>\ntrue\n</parameter>\n'
            '<parameter=at>\n{"x":[1.5,null]}\n</parameter>\n</function>\n</tool_call>'
        ),
        '<tool_call>\n<function=nap>\n</function>\n</tool_call>',
        'tool_response',
    ),
    'zai-org/GLM-4.6': (
        LISTED,
        '<tool_call>function_name\n<arg_key>argument_name</arg_key>\n<arg_value>value</arg_value>\n</tool_call>',
        LAST,
        (
            '<tool_call>look\n<arg_key>city</arg_key>\n<arg_value>Ulm für "<b>"</arg_value>\n<arg_key>days</arg_key>\n'
            '<arg_value>2</arg_value>\n<arg_key>exact</arg_key>\n<arg_value>true</arg_value>\n<arg_key>at</arg_key>\n'
            '<arg_value>{"x":[1.5,null]}</arg_value>\n</tool_call>'
        ),
        '<tool_call>nap\n</tool_call>',
        'tool_response',
    ),
    'llama3.1:8b': (
        f'[\n{LOOK_JSON},\n{NAP_JSON}\n]',
        '{"name": "function_name", "parameters": {"argument_name": "value"}}',
        ALONE,
        f'{{"name": "look", "parameters": {ULM}}}',
        '{"name": "nap", "parameters": {}}',
        'tool_response',
    ),
    'MiniMaxAI/MiniMax-M2': (
        f'<tools>\n<tool>{LOOK_JSON}</tool>\n<tool>{NAP_JSON}</tool>\n</tools>',
        (
            '<minimax:tool_call>\n<invoke name="function_name">\n<parameter name="argument_name">value</parameter>\n'
            '</invoke>\n</minimax:tool_call>'
        ),
        LAST,
        (
            '<minimax:tool_call>\n<invoke name="look">\n<parameter name="city">Ulm für "<b>"</parameter>\n'
            '<parameter name="days">2</parameter>\n<parameter name="exact">true</parameter>\n'
            '<parameter name="at">{"x":[1.5,null]}</parameter>\n</invoke>'
        ),
        '<invoke name="nap">\n</invoke>\n</minimax:tool_call>',
        'response',
    ),
}


@pytest.mark.parametrize(('model', 'form'), FORMS.items(), ids=FORMS)
def test_a_conversation_in_each_form(model: str, form: tuple[str, ...]) -> None:
    tools, sample, place, looked, napped, tag = form
    body = chat(
        said('system', 'Be kind.'),
        HI,
        calling(call('1', ULM), call('2', '', 'nap'), content='I look.', reasoning_content='Hm.'),
        result('1', [text('rain'), text('then\nsun')]),
        result('2', ''),
        said('user', [text('And now?'), IMAGE]),
        temperature=0.5,
        **ASKING,
    )
    body['model'] = model
    sent = prompted(body, ON)
    assert sent == {
        'model': model,
        'messages': [
            said('system', 'Be kind.\n\n' + told(tools, sample, AUTO, SEVERAL, place, RESULTS)),
            HI,
            said('assistant', f'I look.\n{looked}\n{napped}', reasoning_content='Hm.'),
            said('user', f'<{tag}>\nlook:\nrain\nthen\nsun\n</{tag}>\n<{tag}>\nnap:\n</{tag}>'),
            said('user', [text('And now?'), IMAGE]),
        ],
        'temperature': 0.5,
    }


NAMES: dict[str, Format] = {
    'm': HERMES,
    'qwen2.5:7b': HERMES,
    'Qwen/Qwen3-Next-80B-A3B-Instruct': HERMES,
    'NousResearch/Hermes-3-Llama-3.1-8B': HERMES,
    'deepseek-ai/DeepSeek-R1-Distill-Llama-8B': HERMES,
    'registry.ollama.ai/library/deepseek-r1:1.5b': HERMES,
    'qwen3-coder:30b': QWEN_XML,
    'Qwen/Qwen3-Coder-Next': QWEN_XML,
    'Qwen/Qwen3.5-35B-A3B': QWEN_XML,
    'nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16': QWEN_XML,
    'z-ai/glm-4.5-air:free': GLM,
    'glm-4.7': GLM,
    'accounts/x/models/glm-5': GLM,
    'glm-4-9b-chat': HERMES,
    'MiniMax-M2.1': MINIMAX,
    'MiniMax-M1-80k': HERMES,
    'meta-llama/Meta-Llama-3.1-8B-Instruct': BARE_JSON,
    'llama-3.3-70b-versatile': BARE_JSON,
    'accounts/fireworks/models/llama-v3p1-8b-instruct': BARE_JSON,
    'meta.llama3-2-3b-instruct-v1:0': BARE_JSON,
    'llama3': HERMES,
    'llama3-70b-8192': HERMES,
    'meta-llama/llama-4-scout': BARE_JSON,
    'registry.ollama.ai/library/gemma3:4b': BARE_JSON,
    'models/gemma-3-12b-it': BARE_JSON,
    'gemma-3n-e4b-it': BARE_JSON,
    'gemma2:9b': HERMES,
    'gemma4:26b': HERMES,
    'functiongemma:270m': HERMES,
    'mistral-small-latest': HERMES,
    'moonshotai/Kimi-K2-Instruct': HERMES,
    'deepseek-ai/DeepSeek-V3.1': HERMES,
    'microsoft/Phi-4-mini-instruct': HERMES,
    'ibm-granite/granite-4.0-h-small': HERMES,
    'openai/gpt-oss-20b': HERMES,
}


@pytest.mark.parametrize(('model', 'form'), NAMES.items(), ids=NAMES)
def test_the_name_of_a_model_chooses_its_form(model: str, form: Format) -> None:
    assert form_of(model) is form


def test_every_family_has_evidence() -> None:
    assert all(family.evidence.startswith('https://') for family in FAMILIES)
    assert form_of(None) is HERMES


# Bodies before and after; `None` where that is the very same object.

SHORT = told(
    '<tools>\n{"type":"function","function":{"name":"nap"}}\n</tools>', SAMPLE, *[AUTO, SEVERAL, LAST, RESULTS]
)
NAMED = {'type': 'function', 'function': {'name': 'nap'}}


def choosing(choice: Any, **fields: Any) -> Fields:
    return chat(HI, **{**ASKING, 'tool_choice': choice, **fields})


def asked(tools: str, *rules: str) -> Fields:
    return chat(said('system', told(tools, SAMPLE, *rules, LAST, RESULTS)), HI)


ONLY_NAP = '<tools>\n{"type":"function","function":{"name":"nap"}}\n</tools>'
ONLY_LOOK = f'<tools>\n{{"type":"function","function":{LOOK_JSON}}}\n</tools>'
MUST_NAP = 'Your next answer must call `nap`.'
MUST = 'Your next answer must call one of these functions.'


def allowing(mode: Any, *names: str) -> Fields:
    return {'type': 'allowed_tools', 'allowed_tools': {'mode': mode, 'tools': [tool(name) for name in names]}}


CHOICES: dict[str, tuple[Fields, Fields | None]] = {
    'auto': (choosing('auto'), asked(LISTED, AUTO, SEVERAL)),
    'nothing said': (choosing(None), asked(LISTED, AUTO, SEVERAL)),
    'one at a time': (choosing('auto', parallel_tool_calls=False), asked(LISTED, AUTO, ONE)),
    'required': (choosing('required'), asked(LISTED, MUST, SEVERAL)),
    'any': (choosing('any', parallel_tool_calls=False), asked(LISTED, MUST, ONE)),
    'required, of one': (chat(HI, tools=[tool('nap')], tool_choice='required'), asked(ONLY_NAP, MUST_NAP, SEVERAL)),
    'named': (choosing(NAMED), asked(ONLY_NAP, MUST_NAP, SEVERAL)),
    'named, not there': (choosing(tool('fly')), asked(LISTED, MUST, SEVERAL)),
    'allowed': (choosing(allowing('auto', 'look')), asked(ONLY_LOOK, AUTO, SEVERAL)),
    'allowed, required': (choosing(allowing('required', 'look', 'nap')), asked(LISTED, MUST, SEVERAL)),
    'none': (choosing('none'), chat(HI)),
    'functions': (chat(HI, functions=[LOOK], function_call='auto'), asked(ONLY_LOOK, AUTO, SEVERAL)),
    'a function by name': (
        chat(HI, functions=[LOOK, {'name': 'nap'}], function_call={'name': 'nap'}),
        asked(ONLY_NAP, MUST_NAP, SEVERAL),
    ),
    'no tools': (chat(HI, tools=[], tool_choice='auto', parallel_tool_calls=False), chat(HI)),
    'null': (chat(HI, tools=None, tool_choice=None), chat(HI)),
    'no tools, but a call asked for': (chat(HI, tools=[], tool_choice='required'), None),
    'a choice of another kind': (choosing({'type': 'custom', 'custom': {'name': 'nap'}}), None),
    'a choice that is none': (choosing(5), None),
    'allowed, odd': (choosing(allowing(1, 'nap')), None),
    'a tool of the server': (choosing('auto', tools=[tool('nap'), {'type': 'web_search'}]), None),
    'a tool that is no object': (choosing('auto', tools=['nap']), None),
    'a tool without a name': (choosing('auto', tools=[tool('')]), None),
    'tools that are no list': (choosing('auto', tools={'nap': {}}), None),
    'what is no JSON': (choosing('auto', tools=[tool('nap', parameters={'enum': {1, 2}})]), None),
    'Responses': ({'model': 'm', 'input': 'hi', 'tools': [{'type': 'function', 'name': 'nap'}]}, None),
    'nothing to do': (chat(HI, said('assistant', 'ho'), temperature=1), None),
}

HISTORY: dict[str, tuple[Fields, Fields | None]] = {
    'no system message': (chat(HI, tools=[tool('nap')]), chat(said('system', SHORT), HI)),
    'a list of system texts': (
        chat(said('system', [text('a'), text('b')]), HI, tools=[tool('nap')]),
        chat(said('system', [text('a'), text('b'), text(SHORT)]), HI),
    ),
    'no messages': (chat(tools=[tool('nap')]), chat(said('system', SHORT))),
    'a history without tools': (
        chat(HI, calling(call('1')), result('1')),
        chat(HI, said('assistant', LOOKED), answered('look:\nseen')),
    ),
    'forms of no text': (
        chat(calling(call('1'), content=''), {'role': 'assistant', 'tool_calls': [call('1')]}),
        chat(said('assistant', LOOKED), said('assistant', LOOKED)),
    ),
    'text in parts': (
        chat(calling(call('1'), content=[text('a'), text('b')])),
        chat(said('assistant', [text('a'), text('b'), text(LOOKED)])),
    ),
    'arguments that are no object': (
        chat(calling(call('1', '{"a": '), call('2', '[1]'), call('3', {'a': 1}), call('4', None))),
        chat(
            said(
                'assistant',
                '\n'.join(
                    f'<tool_call>\n{{"name": "look", "arguments": {each}}}\n</tool_call>'
                    for each in ('"{\\"a\\":"', '"[1]"', '{"a":1}', '{}')
                ),
            )
        ),
    ),
    'results in another order': (
        chat(calling(call('1'), call('2')), result('2', 'b'), result('1', 'a')),
        chat(said('assistant', f'{LOOKED}\n{LOOKED}'), answered('look (call 2):\nb', 'look (call 1):\na')),
    ),
    'a result missing': (
        chat(calling(call('1'), call('2')), result('2', 'b')),
        chat(said('assistant', f'{LOOKED}\n{LOOKED}'), answered('look (call 2):\nb')),
    ),
    'a result that comes late': (
        chat(calling(call('1')), HI, result('1', 'a')),
        chat(said('assistant', LOOKED), HI, answered('look (call 1):\na')),
    ),
    'ids counted anew': (
        chat(calling(call('1')), result('1', 'a'), calling(call('1', name='nap')), result('1', 'b')),
        chat(said('assistant', LOOKED), answered('look:\na'), said('assistant', NAP), answered('nap:\nb')),
    ),
    'results of no call': (
        chat(HI, result('9', 'a', name='peek'), result('8', 'b'), said('tool', 'c')),
        chat(HI, answered('peek:\na', '8:\nb', 'unknown:\nc')),
    ),
    'an image in a result': (
        chat(calling(call('1'), call('2')), result('1', [text('a'), IMAGE, text('b'), 'c']), result('2', None)),
        chat(
            said('assistant', f'{LOOKED}\n{LOOKED}'),
            said(
                'user',
                [
                    text('<tool_response>\nlook:\na'),
                    IMAGE,
                    text('b\nc\n</tool_response>\n<tool_response>\nlook:\n</tool_response>'),
                ],
            ),
        ),
    ),
    'the days of functions': (
        chat(
            said('assistant', None, function_call={'name': 'nap', 'arguments': '{}'}),
            said('function', 'zz', name='nap'),
        ),
        chat(said('assistant', NAP), answered('nap:\nzz')),
    ),
    'calls of none': (chat(said('assistant', 'a', tool_calls=[]), said('assistant', 'b', tool_calls=None)), None),
    'a call of another kind': (chat(calling({'id': '1', 'type': 'custom', 'custom': {}}), tools=[tool('nap')]), None),
    'a call without a name': (chat(calling(call('1', name=''))), None),
    'calls that are no list': (chat(said('assistant', 'a', tool_calls={'id': '1'})), None),
    'odd content beside a call': (chat(calling(call('1'), content=5)), None),
    'an odd result': (chat(calling(call('1')), result('1', 5)), None),
    'an odd part': (chat(calling(call('1')), result('1', [5])), None),
    'odd messages': (chat(None, 5, 'tool', {'role': ['tool']}), None),
    'messages that are no list': ({'model': 'm', 'messages': 'hi', 'tools': [tool('nap')]}, None),
}
BODIES = {**{f'choice: {name}': row for name, row in CHOICES.items()}, **HISTORY}


@pytest.mark.parametrize(('body', 'expected'), BODIES.values(), ids=BODIES)
def test_row(body: Fields, expected: Fields | None) -> None:
    before = deepcopy(body)
    sent = prompted(body, ON)
    assert body == before
    assert sent == (body if expected is None else expected)
    assert (sent is body) == (expected is None)
    assert prompted(sent, ON) is sent


@pytest.mark.parametrize('profile', [{}, {'compat_tools': 'native'}, {'compat_tools': None}])
def test_without_the_knob_nothing_changes(profile: Fields) -> None:
    assert not adapts(profile)
    assert all(prompted(body, profile) is body and adapted(body, profile) is body for body, _ in BODIES.values())


def test_other_knobs_see_what_it_left() -> None:
    """Results become users, whom `compat_roles` joins; the prompt is a system message, which `compat_system` folds."""
    fired: set[str] = set()
    profile = {**ON, 'compat_roles': 'alternate', 'compat_system': 'user', 'compat_required_tool_choice': False}
    body = chat(HI, calling(call('1')), result('1'), said('user', 'so?'), tools=[tool('nap')], tool_choice=NAMED)
    sent = adapted(body, profile, fired)
    assert sent == chat(
        said('user', told(ONLY_NAP, SAMPLE, MUST_NAP, SEVERAL, LAST, RESULTS) + '\n\nhi'),
        said('assistant', LOOKED),
        said('user', '<tool_response>\nlook:\nseen\n</tool_response>\n\nso?'),
    )
    assert fired == {'request.tools', 'request.system', 'request.roles'}


SCHEMA = {'type': 'json_schema', 'json_schema': {'name': 'City', 'schema': {'type': 'object'}}}
WANTED = (
    'Answer with JSON (application/json) and nothing else. It must fit this JSON schema, named City:\n{"type":"object"}'
)


def test_a_format_is_told_with_the_tools() -> None:
    """A server that holds the answer to a schema would leave the model no way to call."""
    sent = adapted(chat(HI, tools=[tool('nap')], response_format=SCHEMA), ON)
    assert sent == chat(said('system', f'{SHORT}\n\n{WANTED}'), HI)
    assert adapted(sent, ON) is sent
    unasked: list[Fields] = [{'tools': []}, {'tools': [tool('nap')], 'tool_choice': 'none'}]
    for fields in unasked:
        assert adapted(chat(HI, response_format=SCHEMA, **fields), ON) == chat(HI, response_format=SCHEMA)


# Lessons

REFUSALS = (
    'llama3 does not support tools',
    "This model doesn't support tool use.",
    'This model does not support Function Calling',
    'tool calling is not supported by this model',
    '`tools` is not supported with this model',
    'tools are not currently supported',
    'Function calling is disabled for this model.',
    "Unknown parameter: 'tools'.",
    'Unsupported param: tools',
    'Unrecognized request argument supplied: functions',
    'tools param requires --jinja flag',
    '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
    'No endpoints found that support tool use.',
)
NO_REFUSALS = (
    'Tool use with function calling is unsupported',
    'No endpoints found that support image input',
    'When using `tool_choice`, `tools` must be set.',
    'This model does not support tool_choice.',
    'Parallel tool calls are not supported.',
    'This model does not support parallel tool calls',
    'custom tools are not supported',
    'Built-in tools are not supported',
    "'strict' in tools is not supported",
    'This model does not support more than 128 tools',
    'messages.3.tool_calls is not allowed',
    'tools.0.function.strict: Extra inputs are not permitted',
    "Unknown parameter: 'tools[0].function.strict'.",
    "Unknown parameter: 'functions_only'.",
    'tools and response_format together: json mode with tool calling is not supported',
    'The tools you need are in the toolbox',
)


def taught(complaint: str, body: Fields, status: int = 400) -> Fields:
    found = lessons({}, body, status, {'error': {'message': complaint}})
    return {key: value for lesson in found for key, value in lesson.profile.items()}


@pytest.mark.parametrize('complaint', REFUSALS)
def test_a_refusal_of_tools_teaches(complaint: str) -> None:
    for body in (chat(HI, tools=[tool('nap')], tool_choice='auto'), chat(HI, functions=[{'name': 'nap'}])):
        assert taught(complaint, body) == ON
    assert {lesson.name for lesson in lessons({}, body, 400, complaint)} == {'request.tools'}


@pytest.mark.parametrize('complaint', NO_REFUSALS)
def test_a_complaint_about_something_else_does_not(complaint: str) -> None:
    assert 'compat_tools' not in taught(complaint, chat(HI, tools=[tool('nap', strict=True)], tool_choice='auto'))


@pytest.mark.parametrize('body', [chat(HI), chat(HI, tools=[]), BODIES['choice: a tool of the server'][0]])
def test_it_teaches_nothing_where_a_prompt_can_not_help(body: Fields) -> None:
    assert taught('m does not support tools', body) == {}
    assert taught('m does not support tools', {'model': 'm', 'input': 'hi', 'tools': [{**LOOK, 'type': 'x'}]}) == {}


def test_where_only_the_choice_is_refused_the_choice_changes() -> None:
    body = chat(HI, tools=[tool('nap')], tool_choice='required')
    complaint = "No endpoints found that support the provided 'tool_choice' value."
    assert taught(complaint, body, 404) == {'compat_required_tool_choice': False}


# Properties

# Texts that can be found again, each one once.
marks = st.uuids().map(lambda unique: f'«{unique.hex}»')
contents = marks | st.none() | st.lists(st.builds(text, marks) | st.just(IMAGE), max_size=3)
ids = st.sampled_from(['1', '2', '3'])
argument_texts = st.one_of(
    st.just(''),
    marks,
    st.dictionaries(marks, marks | st.integers(0, 9) | st.lists(marks, max_size=2), max_size=2).map(
        lambda value: json.dumps(value, ensure_ascii=False)
    ),
)
calls = st.builds(call, ids, argument_texts, marks)
spoken = st.builds(said, st.sampled_from(['system', 'user', 'assistant']), contents)
callers = st.builds(
    lambda calls, content: calling(*calls, content=content), st.lists(calls, min_size=1, max_size=3), contents
)
results = st.builds(result, ids, contents)
tools = st.builds(
    lambda name, description, keys: tool(
        name, description=description, parameters={'type': 'object', 'properties': {key: {} for key in keys}}
    ),
    marks,
    marks,
    st.lists(marks, max_size=2),
)
bodies = st.fixed_dictionaries(
    {
        'model': st.sampled_from([*FORMS, 'm']),
        'messages': st.lists(spoken | callers | results, max_size=7),
        'own': json_values,
    },
    optional={
        'tools': st.lists(tools, min_size=1, max_size=3),
        'tool_choice': st.sampled_from(['auto', None, {'type': 'allowed_tools'}]),
        'parallel_tool_calls': st.booleans(),
    },
)


def found(value: Any) -> list[str]:
    return re.findall('«.*?»', json.dumps(value, ensure_ascii=False))


@settings(max_examples=300)
@given(bodies)
def test_all_texts_survive_in_their_order(body: Fields) -> None:
    before = deepcopy(body)
    sent = prompted(body, ON)
    assert body == before
    assert prompted(sent, ON) is sent
    if sent is body:
        return
    assert not set(FIELDS) & {*sent}
    assert [
        message['role'] for message in sent['messages'] if message['role'] == 'tool' or 'tool_calls' in message
    ] == []
    # The tools stand behind the first system message, or in front of all.
    leading = body['messages'][:1] if (body['messages'] or [HI])[0]['role'] == 'system' else []
    names = [
        [
            *found(message.get('content')),
            *(mark for each in message.get('tool_calls', ()) for mark in found(each['function'])),
        ]
        for message in body['messages']
    ]
    flat = [mark for each in names[len(leading) :] for mark in each]
    told_first = [*(mark for each in names[: len(leading)] for mark in each), *found(body.get('tools'))]
    heads = re.compile(r'(?<=response>\\n)«[^»]*»(?: \(call \d\))?(?=:)')
    left = re.findall('«.*?»', heads.sub('', json.dumps(sent['messages'], ensure_ascii=False)))
    assert left == [*told_first, *flat]


odd = st.sampled_from([HI, [HI], text('a'), 'tool', tool('nap'), [tool('nap')]])


@settings(max_examples=300)
@given(bodies, st.data())
def test_any_body(body: Fields, data: st.DataObject) -> None:
    """Nothing raises, nothing is written to, and once is enough."""
    body = deepcopy(body)
    for _ in range(data.draw(st.integers(1, 3))):
        holder: Any = body
        while True:
            keys = [*holder] if isinstance(holder, dict) else [*range(len(holder))]
            key = data.draw(st.sampled_from(keys))
            inner = holder[key]
            if not isinstance(inner, dict | list) or not inner or data.draw(st.booleans()):
                holder[key] = deepcopy(data.draw(json_values | odd))
                break
            holder = inner
    before = deepcopy(body)
    sent = prompted(body, ON)
    assert body == before
    assert prompted(sent, ON) is sent
    assert sent is body or not set(FIELDS) & {*sent}
