"""`OpenAICompatibleResponsesModel` equals `OpenAIResponsesModel`, body for body and result for result.

As in `test_parity`: everything is equal with list tool returns as strings; then the one difference by itself.
"""

from __future__ import annotations

from typing import Any

import pytest
import strategies as s
import test_parity as chat
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai import messages as m
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.openai import OpenAIResponsesModel
from pydantic_ai.native_tools import WebSearchTool
from pydantic_core import to_json
from strategies import Call, Wire, outcome

from oaicompat import OpenAICompatibleResponsesModel

wire, providers = chat.wire, chat.providers


def pair(name: str, host: str, wire: Wire) -> tuple[OpenAIResponsesModel, OpenAICompatibleResponsesModel]:
    provider = wire.providers[host]
    child = OpenAICompatibleResponsesModel(
        name, provider=provider, profile={'compat_tool_return': 'string', 'compat_item_style': 'openai'}
    )
    return OpenAIResponsesModel(name, provider=provider), child


def answer(*output: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A `response` with these items."""
    envelope = {'id': 'resp_1', 'object': 'response', 'created_at': 1_700_000_000, 'model': 'served'}
    options = {'parallel_tool_calls': True, 'tool_choice': 'auto', 'tools': [], 'error': None, 'instructions': None}
    return {**envelope, **options, 'status': 'completed', 'output': list(output), **fields}


def message(*content: dict[str, Any]) -> dict[str, Any]:
    return {'type': 'message', 'id': 'msg_1', 'role': 'assistant', 'status': 'completed', 'content': list(content)}


def text(value: str) -> dict[str, Any]:
    return {'type': 'output_text', 'text': value, 'annotations': []}


REASONING = {'type': 'reasoning', 'id': 'rs_1', 'summary': [{'type': 'summary_text', 'text': 'Let me see.'}]}
CALL = {
    'type': 'function_call',
    'id': 'fc_1',
    'call_id': 'call_1',
    'name': 'lookup',
    'arguments': '{"city":"Z"}',
    'status': 'completed',
}
USAGE = {
    'input_tokens': 3,
    'input_tokens_details': {'cached_tokens': 1, 'cache_write_tokens': 0},
    'output_tokens': 2,
    'output_tokens_details': {'reasoning_tokens': 1},
    'total_tokens': 5,
}
ANSWERS = {
    'text': answer(message(text('Hi')), usage=USAGE),
    'several texts': answer(message(text('Hi'), text('there'))),
    'reasoning and calls': answer(REASONING, CALL, {**CALL, 'id': 'fc_2', 'call_id': 'call_2'}, usage=USAGE),
    'refusal': answer(message({'type': 'refusal', 'refusal': 'No.'})),
    'cut': answer(message(text('H')), status='incomplete', incomplete_details={'reason': 'max_output_tokens'}),
    'unknown fields': answer(message({**text('Hi'), 'made_up': 1}), made_up={'a': [1]}),
}


def events(whole: dict[str, Any]) -> list[dict[str, Any]]:
    """`whole` as a stream, each text and each argument in two pieces."""
    made: list[dict[str, Any]] = [{'type': 'response.created', 'response': {**whole, 'output': [], 'usage': None}}]
    for at, item in enumerate(whole['output']):
        opened = {**item, **{key: empty for key, empty in _EMPTY.items() if key in item}}
        made.append({'type': 'response.output_item.added', 'output_index': at, 'item': opened})
        made += _pieces(item, {'item_id': item['id'], 'output_index': at})
        made.append({'type': 'response.output_item.done', 'output_index': at, 'item': item})
    made.append({'type': f'response.{whole["status"]}', 'response': whole})
    return [{**event, 'sequence_number': number} for number, event in enumerate(made)]


_EMPTY: dict[str, Any] = {'content': [], 'summary': [], 'arguments': ''}


def _pieces(item: dict[str, Any], place: dict[str, Any]) -> list[dict[str, Any]]:
    if item['type'] == 'function_call':
        return _halves('response.function_call_arguments', item['arguments'], place)
    kind = 'summary' if item['type'] == 'reasoning' else 'content'
    made: list[dict[str, Any]] = []
    for at, part in enumerate(item[kind]):
        here = {**place, f'{kind}_index': at}
        prefix = 'reasoning_summary' if kind == 'summary' else 'content'
        names = {'output_text': 'output_text', 'refusal': 'refusal', 'summary_text': 'reasoning_summary_text'}
        made.append({'type': f'response.{prefix}_part.added', 'part': {**part, 'text': ''}, **here})
        made += _halves(f'response.{names[part["type"]]}', part.get('text') or part['refusal'], here)
        made.append({'type': f'response.{prefix}_part.done', 'part': part, **here})
    return made


def _halves(kind: str, value: str, place: dict[str, Any]) -> list[dict[str, Any]]:
    return [{'type': f'{kind}.delta', 'delta': piece, **place} for piece in (value[:1], value[1:]) if piece]


models = st.sampled_from(s.MODELS)
hosts = st.sampled_from(['openai', 'made-up'])


@given(
    models,
    hosts,
    st.builds(
        Call,
        s.histories(*s.unprepared_request_parts),
        s.parameters(),
        s.model_settings,
        stream=st.booleans(),
        prepared=st.booleans(),
    ),
)
async def test_requests_and_errors_are_equal(wire: Wire, name: str, host: str, call: Call) -> None:
    wire.answers = [events(ANSWERS['text']) if call.stream else ANSWERS['text']]
    await chat.assert_equal(pair(name, host, wire), call, wire)


@given(models, hosts, st.builds(Call, s.histories(), s.parameters(), stream=st.booleans()))
async def test_what_can_be_sent_is_sent_equal(wire: Wire, name: str, host: str, call: Call) -> None:
    wire.answers = [events(ANSWERS['text']) if call.stream else ANSWERS['text']]
    await chat.assert_equal(pair(name, host, wire), call, wire)


@pytest.mark.parametrize('stream', [False, True])
@pytest.mark.parametrize('content', chat.UNHOLDABLE.values(), ids=chat.UNHOLDABLE.keys())
async def test_tool_returns_that_json_cant_hold_fail_equal(wire: Wire, content: Any, stream: bool) -> None:
    history: list[m.ModelMessage] = [m.ModelRequest([m.ToolReturnPart('lookup', content, 'call_1')])]
    wire.answers = [events(ANSWERS['text']) if stream else ANSWERS['text']]
    for prepared in (True, False):
        call = Call(history, stream=stream, prepared=prepared)
        await chat.assert_equal(pair('made-up', 'made-up', wire), call, wire)


async def test_native_tools_are_sent_equal(wire: Wire) -> None:
    wire.answers = [ANSWERS['text']]
    parameters = ModelRequestParameters(native_tools=[WebSearchTool()])
    call = Call([m.ModelRequest([m.UserPromptPart('Hi')])], parameters)
    seen = await chat.assert_equal(pair('gpt-5', 'openai', wire), call, wire)
    assert [body['tools'][0]['type'] for _, _, body in seen['posted']] == ['web_search']


@pytest.mark.parametrize('name', s.MODELS)
@pytest.mark.parametrize('stream', [False, True])
@pytest.mark.parametrize('whole', ANSWERS.values(), ids=ANSWERS.keys())
async def test_responses_are_equal(wire: Wire, whole: dict[str, Any], stream: bool, name: str) -> None:
    """Unary the same response; streamed the same events, and the same response at the end."""
    wire.answers = [events(whole) if stream else whole]
    call = Call([m.ModelRequest([m.UserPromptPart('Hi')])], stream=stream)
    seen = await chat.assert_equal(pair(name, 'made-up', wire), call, wire)
    assert 'response' in seen


@pytest.mark.parametrize('output_type', [str, s.Point], ids=['text', 'tool'])
@pytest.mark.parametrize('stream', [False, True])
async def test_agents_run_equal(wire: Wire, stream: bool, output_type: Any) -> None:
    """A retried call, a call whose result holds a list and a file, and the answer."""
    final = {**CALL, 'id': 'fc_3', 'call_id': 'call_3', 'name': 'final_result', 'arguments': '{"x":1}'}
    steps = [
        answer(REASONING, {**CALL, 'id': 'fc_0', 'call_id': 'call_0', 'arguments': '{"town":"Z"}'}),
        answer(CALL),
        answer(message(text('Sunny.')) if output_type is str else final),
    ]
    wire.answers = [events(step) for step in steps] if stream else steps
    parent, child = pair('gpt-5', 'openai', wire)
    expected = await chat.agent_run(parent, output_type, stream, wire)
    assert await chat.agent_run(child, output_type, stream, wire) == expected
    assert len(expected['posted']) == 3


# The one difference beside the style of items, which `test_item_styles.py` has


@pytest.mark.parametrize('host', ['openai', 'made-up'])
@pytest.mark.parametrize('stream', [False, True])
async def test_a_list_tool_return_is_this_body(wire: Wire, host: str, stream: bool) -> None:
    history: list[m.ModelMessage] = [m.ModelRequest([m.ToolReturnPart('lookup', ['a', {'b': 1}, ''], 'call_1')])]
    wire.answers = [events(ANSWERS['text']) if stream else ANSWERS['text']]
    child = OpenAICompatibleResponsesModel('gpt-4o', provider=wire.providers[host])
    await outcome(child, Call(history, stream=stream), wire)
    output = [{'type': 'input_text', 'text': 'a'}, {'type': 'input_text', 'text': '{"b":1}'}]
    items = [{'type': 'function_call_output', 'call_id': 'call_1', 'output': output}]
    assert [body for _, _, body in wire.posted] == [{'model': 'gpt-4o', 'input': items, 'stream': stream}]


def native(part: m.ToolReturnPart[Any], output: str) -> Any:
    if not isinstance(part.content, list) or part.outcome in {'failed', 'retried'}:
        return output
    texts = [item if isinstance(item, str) else to_json(item).decode() for item in part.content]
    return [{'type': 'input_text', 'text': text} for text in texts if text] or output


@given(
    models,
    hosts,
    st.builds(
        Call,
        s.histories(content=s.json_values | st.lists(s.json_values)),
        s.parameters(),
        s.model_settings,
        prepared=st.just(False),  # so that the order of the results is that of the history
    ),
)
async def test_nothing_else_differs(wire: Wire, name: str, host: str, call: Call) -> None:
    """The child's request, with all other defaults, is the parent's with lists made native."""
    wire.answers = [ANSWERS['text']]
    expected = await outcome(OpenAIResponsesModel(name, provider=wire.providers[host]), call, wire)
    parts = [part for message in call.history for part in message.parts if isinstance(part, m.ToolReturnPart)]
    for _, headers, body in expected['posted']:
        results = iter(parts)
        for item in body['input']:
            if item.get('type') == 'function_call_output':
                item['output'] = native(next(results), item['output'])
        headers.pop('content-length')
    style: Any = {'compat_item_style': 'openai'}
    child = OpenAICompatibleResponsesModel(name, provider=wire.providers[host], profile=style)
    seen = await outcome(child, call, wire)
    for _, headers, _ in seen['posted']:
        headers.pop('content-length')
    assert seen == expected
