"""Calls in the text that stay there, errors that hold what the model wrote, and that all else is as it was without."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from dirty_equals import IsStr
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic_ai import messages as m
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.models import ModelRequestParameters
from test_completions import HISTORY, TOOLS, ask, parent, think
from test_recovery import EXAMPLES, HERMES, ROME, TEXT, pieces
from test_streams import CALLED, STOP, called, said, sse, start

from oaicompat import OpenAICompatibleModel
from oaicompat._completion import repair_completion
from oaicompat._context import Context
from oaicompat._grammars import GRAMMARS
from oaicompat._keys import INLINE
from oaicompat._offer import Offer
from oaicompat._repair import ChunkRepair
from oaicompat.testing import Reply, ScriptedServer, chunk, completion

# Where it is off


@pytest.mark.parametrize('stream', [True, False])
@pytest.mark.parametrize(
    'options',
    [
        {'url': 'https://api.openai.com/v1'},
        {'profile': {'compat_text_calls': 'off'}},
        {'profile': {'compat_repair': 'off'}},
        {'tools': ModelRequestParameters()},
    ],
    ids=['OpenAI', 'by knob', 'no repair', 'no tools'],
)
async def test_off_is_the_parent(options: dict[str, Any], stream: bool) -> None:
    body: Any = sse(*pieces(f'Hm.\n{HERMES}\n', 5), STOP) if stream else completion(f'Hm.\n{HERMES}\n')
    ours = await ask(body, stream=stream, **options)
    theirs = await ask(body, stream=stream, kind=parent, **{**options, 'profile': None})
    assert ours.response is not None
    assert (ours.response, ours.events) == (theirs.response, theirs.events)


async def test_on_openais_host_by_knob() -> None:
    options: Any = {'url': 'https://api.openai.com/v1', 'profile': {'compat_text_calls': 'on'}}
    response = (await ask(completion(HERMES), **options)).response
    assert response is not None
    assert response.parts == [ROME]


@pytest.mark.parametrize('settings', [None, {'tool_choice': 'none'}], ids=['on', 'suppress'])
@pytest.mark.parametrize('write', ['```\n{}\n```', 'Write `{}`.', '> {}', 'You write {} for it.', '"{}"'])
@pytest.mark.parametrize('key', ['content', 'reasoning_content'])
async def test_what_is_quoted_stays(key: str, write: str, settings: Any) -> None:
    """And its pieces do, but where a marker starts within one."""
    for text in (write.format(HERMES), HERMES.replace('lookup', 'look_out'), HERMES.replace('city', 'town')):
        chunks = [*pieces(text, 1, key), *([] if key == 'content' else [chunk('Hi')]), STOP]
        asked = await ask(sse(*chunks), stream=True, settings=settings)
        theirs = await ask(sse(*chunks), stream=True, settings=settings, kind=parent)
        assert (asked.response, asked.events) == (theirs.response, theirs.events)


UNCLOSED = {
    'an object': (HERMES.removesuffix('\n</tool_call>'), 1),
    'parameters': ('<tool_call>\n<function=lookup>\n<parameter=city>\nRome\n</parameter>\n', 1),
    'keys and values': ('<tool_call>lookup<arg_key>city</arg_key><arg_value>Rome</arg_value>', 1),
    'closed': (HERMES, 0),
}


@pytest.mark.parametrize(('reason', 'whole'), [('stop', True), ('length', False), ('content_filter', False)])
@pytest.mark.parametrize(('text', 'missing'), UNCLOSED.values(), ids=UNCLOSED)
async def test_what_broke_off_is_no_call(text: str, missing: bool, reason: str, whole: bool) -> None:
    """Arguments may be missing."""
    body = completion(text)
    body['choices'][0]['finish_reason'] = reason
    streamed = await ask(sse(*pieces(text, 6), chunk({}, finish_reason=reason)), stream=True)
    for asked in (await ask(body), streamed):
        assert asked.response is not None, asked.error
        assert asked.response.parts == ([ROME] if whole or not missing else [m.TextPart(text)])
    ended = (await ask(sse(*pieces(text, 6)), stream=True)).response
    assert ended is not None
    assert ended.parts == ([m.TextPart(text)] if missing else [ROME])


# Errors that hold what the model wrote


def groq(text: str) -> dict[str, Any]:
    """As Groq says it."""
    message = "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details."
    return {'error': {'message': message, 'type': 'invalid_request_error', 'code': 'tool_use_failed',
                      'failed_generation': text}}  # fmt: skip


def llama_cpp(text: str) -> dict[str, Any]:
    """As llama.cpp says it."""
    return {'error': {'code': 500, 'message': f'Failed to parse input at pos 0: {text}', 'type': 'server_error'}}


REJECTED = ('tool_call.rejected', *TEXT)
NO_ID: Any = {'provider_response_id': None}
WRONG = '<function=lookup>{"city": "Rome"}</function>'


@pytest.mark.parametrize('stream', [True, False])
@pytest.mark.parametrize(('status', 'write'), [(400, groq), (500, llama_cpp)], ids=['Groq', 'llama.cpp'])
async def test_a_call_in_a_refusal_is_the_answer(
    write: Callable[[str], Any], status: int, stream: bool
) -> None:  # fmt: skip
    asked = await ask(write(f'So.\n{WRONG}'), stream=stream, status=status, content_type='application/json')
    assert asked.response is not None, asked.error
    assert asked.response.parts == [m.TextPart('So.\n'), ROME]
    assert (asked.response.finish_reason, asked.response.model_name) == ('tool_call', 'm')
    assert (asked.response.provider_details or {})['oaicompat'] == [*REJECTED]
    assert len(asked.sent) == 1


@pytest.mark.parametrize('stream', [True, False])
@pytest.mark.parametrize(('text', 'times'), [(WRONG, 1), ('None.', 3)])
async def test_what_is_answered_is_not_asked_again(text: str, times: int, stream: bool) -> None:
    """The SDK sends again what got a status 500."""
    headers = {'retry-after-ms': '1'}
    async with ScriptedServer(lambda _: Reply.json(llama_cpp(text), 500, headers=headers)) as server:
        async with OpenAICompatibleModel('m', base_url=server.base_url) as model:
            try:
                if stream:
                    async with model.request_stream(HISTORY, None, TOOLS) as answer:
                        assert [event async for event in answer]
                else:
                    assert (await model.request(HISTORY, None, TOOLS)).parts == [ROME]
            except ModelHTTPError:
                assert times > 1
    assert len(server.requests) == times


@pytest.mark.parametrize('stream', [True, False])
async def test_a_call_in_a_refusal_that_is_no_json(stream: bool) -> None:
    text = f'Failed to parse input at pos 12: {WRONG}'
    asked = await ask(text, stream=stream, status=500, content_type='text/plain')
    assert asked.response is not None, asked.error
    assert asked.response.parts == [ROME]


@pytest.mark.parametrize('write', [groq, llama_cpp])
async def test_a_call_in_an_error_of_a_stream_is_the_rest(write: Callable[[str], Any]) -> None:
    """All of what was written, or what comes behind the text that was told."""
    for told in (WRONG, f'So.\n{WRONG}'):
        asked = await ask(sse(chunk('So.'), chunk('\n'), write(told)), stream=True)
        assert asked.response == called(m.TextPart('So.\n'), ROME, repairs=REJECTED), asked.error
        whole = await ask(sse(write(told)), stream=False)
        assert whole.response is not None, whole.error
        assert whole.response.parts[-1] == ROME
    asked = await ask(sse(chunk({'reasoning_content': 'Hm.'}), write(WRONG)), stream=True)
    assert asked.response == called(think('Hm.'), ROME, repairs=REJECTED), asked.error
    only = await ask(sse(write(WRONG)), stream=True)
    assert only.response is not None, only.error
    assert only.response.parts == [ROME]


@pytest.mark.parametrize('write', [groq, llama_cpp])
async def test_usage_that_was_told_stays(write: Callable[[str], Any]) -> None:
    usage = {'prompt_tokens': 9, 'completion_tokens': 2, 'total_tokens': 11}
    asked = await ask(sse({**chunk('So.\n'), 'usage': usage}, write(WRONG)), stream=True)
    assert asked.response == called_with((9, 2), m.TextPart('So.\n'), ROME), asked.error
    response = (await ask({**write(WRONG), 'usage': usage}, status=400)).response
    assert response is not None
    assert (response.usage.input_tokens, response.usage.output_tokens) == (9, 2)


def called_with(usage: tuple[int, int], *parts: m.ModelResponsePart) -> m.ModelResponse:
    return said(*parts, usage=usage, finish='tool_call', raw='tool_calls', repairs=REJECTED)


@pytest.mark.parametrize('stream', [True, False])
@pytest.mark.parametrize(
    ('text', 'options'),
    [
        ('I can not do that.', {}),
        (WRONG.replace('lookup', 'look_out'), {}),
        (f'`{WRONG}`', {}),
        ('', {}),
        (WRONG, {'settings': {'tool_choice': 'none'}}),
        (WRONG, {'profile': {'compat_text_calls': 'off'}}),
        (WRONG, {'profile': {'compat_repair': 'off'}}),
        (WRONG, {'url': 'https://api.openai.com/v1'}),
    ],
)
@pytest.mark.parametrize(('status', 'write'), [(400, groq), (500, llama_cpp)], ids=['Groq', 'llama.cpp'])
async def test_a_refusal_without_a_call_is_a_refusal(
    status: int, write: Callable[[str], Any], text: str, options: dict[str, Any], stream: bool
) -> None:
    asked = await ask(write(text), stream=stream, status=status, content_type='application/json', **options)
    assert isinstance(asked.error, ModelHTTPError), asked
    assert (asked.error.status_code, asked.error.body) == (status, write(text)['error'])


async def test_an_error_behind_native_calls_is_an_error() -> None:
    """Nobody knows whether what the model wrote is the same call."""
    asked = await ask(sse(start('{"ci'), groq(WRONG)), stream=True)
    assert 'failed_generation' in str(asked.api_error)


async def test_an_error_behind_the_answer_changes_nothing() -> None:
    asked = await ask(sse(chunk('Hi'), STOP, groq(WRONG)), stream=True)
    assert asked.response == said(m.TextPart('Hi'), repairs=('sse.trailing',)), asked.error


@pytest.mark.parametrize('stream', [True, False])
async def test_strict_leaves_a_refusal(stream: bool) -> None:
    asked = await ask(
        groq(WRONG), stream=stream, status=400, content_type='application/json', profile={'compat_repair': 'strict'}
    )
    assert isinstance(asked.error, ModelHTTPError)


# What is no call is as it was


SCHEMAS = {tool.name: tool.parameters_json_schema for tool in TOOLS.function_tools}
ON, OFF = (Context('m', SCHEMAS, offer=offer) for offer in (Offer(SCHEMAS, 'on'), Offer()))
MARKUP = sorted({marker for grammar in GRAMMARS for marker in grammar.markers})
scraps = st.sampled_from([
    *MARKUP, *(marker[:-1] for marker in MARKUP), '</tool_call>', '</function>', '{"name": "lookup"', ', "arguments":',
    '{"city": "Rome"}', '}', ']', '[', '"', '`', '```', '\n', ' ', '\n\n', 'lookup', 'look_out', 'Hi', '.', 'a', 'co',
    '<think>', '</think>', '<', HERMES.replace('lookup', 'look_out'), f'`{HERMES}`',
])  # fmt: skip
native = st.builds(lambda text: start(text)['choices'][0]['delta'], st.sampled_from(['{}', '{"city":"A"}']))
deltas = st.one_of(
    st.builds(lambda key, text: {key: text}, st.sampled_from(['content', 'reasoning_content', 'reasoning']), scraps),
    st.builds(lambda *texts: dict(zip(('reasoning_content', 'content'), texts, strict=True)), scraps, scraps),
    native,
    st.builds(lambda call, text: {**call, 'content': text}, native, scraps),
)  # fmt: skip


def told(chunks: list[Any], context: Context) -> tuple[list[Any], set[str]]:
    """What a stream tells, in the order in which pydantic-ai reads it; pieces of one text are one."""
    repair, said_ = ChunkRepair(context), list[Any]()
    made = [one for given_ in chunks for one in repair.feed(given_)] + repair.finish(dropped=False)
    for delta in (choice.get('delta') or {} for one in made for choice in one['choices']):
        for key in ('reasoning_content', 'reasoning', INLINE, 'content', 'tool_calls'):
            news = delta.get(key)
            if news and key != 'tool_calls' and said_ and said_[-1][0] == key:
                said_[-1] = (key, said_[-1][1] + news)
            elif news:
                said_.append((key, news))
    return said_, repair.repairs


@given(st.lists(deltas, max_size=9))
@example([{'reasoning': '\n'}, {'content': 'Hi'}])
@example([{'content': '<tool'}, {'reasoning': 'x'}, {'content': '_call>'}])
def test_a_stream_without_a_call_tells_the_same(given_deltas: list[Any]) -> None:
    """Every text and call in its order: what differs is when, and that a piece is cut where a marker starts in it."""
    chunks = [*map(chunk, given_deltas), CALLED]
    on, names = told(chunks, ON)
    if not names & {'tool_call.text'}:
        off, names_off = told(chunks, OFF)
        assert json.dumps(on) == json.dumps(off) or ids_alike(on) == ids_alike(off)
        assert names == names_off


def ids_alike(value: Any) -> str:
    known: dict[str, str] = {}
    return ''.join(
        part if not part.startswith('call_') else known.setdefault(part, str(len(known)))
        for part in json.dumps(value).split('"')
    )


answers = st.lists(st.sampled_from([*(text for _, text in EXAMPLES.values())]) | scraps, max_size=6).map(''.join)


def shown(body: Any) -> tuple[str, list[Any], list[Any]]:
    message = body['choices'][0]['message']
    calls = [(call['function']['name'], call['function']['arguments']) for call in message.get('tool_calls') or ()]
    return message.get('content') or '', calls, [body['choices'][0]['finish_reason']]


@given(answers, st.integers(1, 40), st.sampled_from(['on', 'suppress']))
def test_any_split_gives_what_the_whole_answer_gives(text: str, size: int, wanted: Any) -> None:
    context = Context('m', SCHEMAS, tags=(), offer=Offer(SCHEMAS, wanted))
    whole = repair_completion(completion(text), context, set())
    repair = ChunkRepair(context)
    made = [one for piece in [*pieces(text, size), STOP] for one in repair.feed(piece)] + repair.finish(dropped=False)
    found = [choice for one in made for choice in one['choices']]
    content = ''.join(choice['delta'].get('content') or '' for choice in found)
    calls = [
        (call['function']['name'], call['function']['arguments'])
        for choice in found
        for call in choice['delta'].get('tool_calls') or ()
    ]
    reasons = [choice['finish_reason'] for choice in found if choice.get('finish_reason')]
    assert (content, calls, reasons) == shown(whole)


@given(answers, st.integers(1, 40))
async def test_text_deltas_add_up_to_the_text(text: str, size: int) -> None:
    asked = await ask(sse(*pieces(text, size), STOP), stream=True)
    assert asked.response is not None, asked.error
    assert asked.text == ''.join(part.content for part in asked.response.parts if isinstance(part, m.TextPart))
    assert all(call.tool_call_id == IsStr(min_length=1) for call in asked.response.tool_calls)
