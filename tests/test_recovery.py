"""Calls that a server left in the text or in the reasoning: bytes in, the whole `ModelResponse` out.

Each through the real default client, streamed in pieces and whole. `test_grammars.py` and `test_textcalls.py` have the
search itself, `test_recovery_limits.py` where there is none, and errors that hold what the model wrote.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterable, Callable
from dataclasses import replace
from typing import Any

import pytest
from dirty_equals import IsStr
from pydantic_ai import Agent
from pydantic_ai import messages as m
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition
from test_completions import NEW_ID, TOOLS, Asked, ask, call, think
from test_streams import CALLED, STOP, called, said, sse, start

from oaicompat import OpenAICompatibleModel
from oaicompat._finish import STOPS
from oaicompat._grammars import GRAMMARS
from oaicompat.testing import Reply, ScriptedServer, chunk, completion, tool_call

# `lookup` and `search` are the tools that `ask()` offers.
EXAMPLES = {
    f'{grammar.name}{n}': (bool(grammar.markers), example.replace('get_weather', 'lookup'))
    for grammar in GRAMMARS
    for n, example in enumerate(grammar.examples)
}
HERMES = EXAMPLES['hermes0'][1]
SEARCH = HERMES.replace('lookup', 'search').replace('Rome', 'Oslo')
KIMI = EXAMPLES['kimi1'][1]
ROME = call('{"city": "Rome"}', id_=IsStr(min_length=1))
OSLO = call('{"city": "Oslo"}', 'search', NEW_ID)
TEXT = ('tool_call.text',)
each_example = pytest.mark.parametrize(('marked', 'example'), EXAMPLES.values(), ids=EXAMPLES)
sizes = pytest.mark.parametrize('size', [1, 7, 1000])


def pieces(text: str, size: int, key: str = 'content') -> list[Any]:
    return [chunk({key: text[at : at + size]}) for at in range(0, len(text), size)]


def a_call(example: str) -> m.ToolCallPart:
    """The call of an example; Gemma writes no space."""
    return replace(ROME, args='{"city":"Rome"}') if 'call:' in example else ROME


def ids(response: m.ModelResponse | None) -> list[str]:
    assert response is not None
    return [part.tool_call_id for part in response.tool_calls]


@sizes
@each_example
async def test_a_call_in_the_text_is_a_call(marked: bool, example: str, size: int) -> None:
    rome = a_call(example)
    before = 'Let me look.\n' if marked else ''
    text = m.TextPart(before)
    asked = await ask(sse(*pieces(before + example, size), STOP), stream=True)
    expected = called(*([text] if before else []), rome, repairs=TEXT)
    assert asked.response == expected, asked.error
    assert asked.text == before
    assert (await ask(completion(before + example, usage=None))).response == expected


@pytest.mark.parametrize('key', ['reasoning_content', 'reasoning', 'thinking', 'reasoning_text'])
@each_example
async def test_a_call_in_the_reasoning_is_a_call(marked: bool, example: str, key: str) -> None:
    before = 'Hm.\n' if marked else ''
    field = key if key.startswith('reasoning') and key != 'reasoning_text' else 'reasoning_content'
    moved = () if field == key else ('reasoning.field',)
    expected = called(*([think(before, field)] if before else []), a_call(example), repairs=(*moved, *TEXT))
    asked = await ask(sse(*pieces(before + example, 5, key), STOP), stream=True)
    assert asked.response == expected, asked.error
    fields: Any = {key: before + example, 'usage': None}
    whole = completion(None, **fields, finish_reason='stop')
    assert (await ask(whole)).response == expected


@sizes
@each_example
async def test_a_call_in_think_tags_is_a_call(marked: bool, example: str, size: int) -> None:
    before = 'Hm.\n' if marked else ''
    told = f'<think>\n{before}{example}\n</think>\n\n'
    expected = called(
        *([think('Hm.\n', 'content')] if before else []), a_call(example), repairs=('thinking.tags', *TEXT)
    )
    asked = await ask(sse(*pieces(told, size), STOP), stream=True)
    assert asked.response == expected, asked.error
    assert (await ask(completion(told, usage=None))).response == expected


@sizes
async def test_text_and_calls_keep_their_order(size: int) -> None:
    """In a whole answer there is one place for text, and it comes before the calls."""
    told = f'Let me look.\n{HERMES}\nAnd there:\n{SEARCH}{HERMES}\n\nThat was it.'
    expected = called(
        m.TextPart('Let me look.\n'), ROME, m.TextPart('\nAnd there:\n'), OSLO, ROME, m.TextPart('\n\nThat was it.'),
        repairs=TEXT,
    )  # fmt: skip
    asked = await ask(sse(*pieces(told, size), STOP), stream=True)
    assert asked.response == expected, asked.error
    whole = (await ask(completion(told, usage=None))).response
    text = m.TextPart('Let me look.\n\nAnd there:\n\n\nThat was it.')
    assert whole == called(text, ROME, OSLO, ROME, repairs=TEXT)
    for response in (asked.response, whole):
        assert len({*ids(response)}) == 3


@sizes
async def test_a_stream_that_is_put_together_tells_the_same(size: int) -> None:
    body = sse(*pieces(f'Let me look.\n{HERMES}\n{SEARCH}', size), STOP)
    asked = await ask(body, content_type='text/event-stream', profile={'compat_stream': 'always'})
    expected = called(m.TextPart('Let me look.\n'), ROME, OSLO, repairs=('request.stream', *TEXT))
    assert asked.response == expected, asked.error


async def test_reasoning_text_and_native_calls_stand_where_they_came() -> None:
    native = start('{"city":"A"}', id='call_1')
    chunks = [*pieces('Hm.\n', 2, 'reasoning_content'), *pieces(f'So <\n{HERMES}', 4), native, CALLED]
    asked = await ask(sse(*chunks), stream=True)
    expected = called(think('Hm.\n'), m.TextPart('So <\n'), ROME, call('{"city":"A"}'), repairs=TEXT)
    assert asked.response == expected, asked.error
    whole = completion(f'So <\n{HERMES}', tool_calls=[tool_call('lookup', '{"city":"A"}')], usage=None)
    response = (await ask({**whole, 'choices': [{**whole['choices'][0], 'finish_reason': 'tool_calls'}]})).response
    assert response is not None
    assert [type(part) for part in response.parts] == [m.TextPart, m.ToolCallPart, m.ToolCallPart]
    assert [part.args for part in response.tool_calls] == ['{"city":"A"}', '{"city": "Rome"}']
    assert len({*ids(response)}) == 2


@pytest.mark.parametrize('held', ['\n\n', 'a <', '<tool_call>\n{"name": "loo', 'Like co'])
async def test_what_is_held_comes_in_front_of_what_follows(held: str) -> None:
    """A native call, or another field, ends what may have become a call."""
    native = start('{"city":"A"}', id='call_1')
    asked = await ask(sse(chunk(held), native, CALLED), stream=True)
    assert asked.response == called(m.TextPart(held), call('{"city":"A"}'))
    asked = await ask(sse(chunk({'reasoning': held}), chunk('Hi'), chunk(' <'), STOP), stream=True)
    assert asked.response == said(think(held, 'reasoning'), m.TextPart('Hi <'))
    both = chunk({'content': held, **native['choices'][0]['delta']})
    assert (await ask(sse(both, CALLED), stream=True)).response == called(m.TextPart(held), call('{"city":"A"}'))


@pytest.mark.parametrize('stream', [True, False])
async def test_ids_that_were_written_are_kept_and_never_twice(stream: bool) -> None:
    told = f'{KIMI}\n{KIMI}'
    asked = await ask(sse(chunk(told), STOP) if stream else completion(told, usage=None), stream=stream)
    given = call('{"city": "Rome"}', id_='functions.lookup:0')
    expected = called(given, call('{"city": "Rome"}', id_=NEW_ID), repairs=('tool_call.duplicate_id', *TEXT))
    assert asked.response == expected, asked.error


TYPED = ModelRequestParameters(
    function_tools=[
        ToolDefinition(
            name='edit',
            parameters_json_schema={
                'type': 'object',
                'properties': {
                    'path': {'type': 'string'},
                    'line': {'type': 'integer'},
                    'dry': {'type': 'boolean'},
                    'tags': {'type': 'array', 'items': {'type': 'string'}},
                },
            },
        )
    ]
)


@pytest.mark.parametrize('stream', [True, False])
@pytest.mark.parametrize(
    'write',
    [
        lambda items: ''.join(f'<parameter={key}>\n{text}\n</parameter>\n' for key, text in items).join(
            ['<tool_call>\n<function=edit>\n', '</function>\n</tool_call>']
        ),
        lambda items: ''.join(f'<arg_key>{key}</arg_key><arg_value>{text}</arg_value>' for key, text in items).join(
            ['<tool_call>edit', '</tool_call>']
        ),
        lambda items: ''.join(f'<parameter name="{key}">{text}</parameter>' for key, text in items).join(
            ['<minimax:tool_call><invoke name="edit">', '</invoke></minimax:tool_call>']
        ),
    ],
)
async def test_arguments_are_what_the_schema_says(write: Callable[[Any], str], stream: bool) -> None:
    told = write([('path', '10'), ('line', '10'), ('dry', 'True'), ('tags', '["a", "b"]')])
    body: Any = sse(*pieces(told, 3), STOP) if stream else completion(told, usage=None)
    asked = await ask(body, stream=stream, tools=TYPED)
    assert asked.response is not None, asked.error
    [part] = asked.response.parts
    assert isinstance(part, m.ToolCallPart)
    assert json.loads(str(part.args)) == {'path': '10', 'line': 10, 'dry': True, 'tags': ['a', 'b']}


def test_the_words_for_a_whole_answer_are_known() -> None:
    whole = {'stop', 'end_turn', 'eos', 'eos_token', 'stop_sequence', 'STOP', 'complete', 'COMPLETE'}
    assert whole == STOPS


@pytest.mark.parametrize(
    ('reason', 'finish', 'raw'),
    [
        ('stop', 'tool_call', 'tool_calls'),
        ('eos', 'tool_call', 'tool_calls'),
        ('tool_calls', 'tool_call', 'tool_calls'),
        ('length', 'length', 'length'),
        ('content_filter', 'content_filter', 'content_filter'),
    ],
)
async def test_an_answer_with_a_call_ends_with_it(reason: str, finish: str, raw: str) -> None:
    fields: Any = {'finish': finish, 'raw': raw, 'repairs': TEXT}
    end = chunk({}, finish_reason=reason)
    assert (await ask(sse(*pieces(HERMES, 9), end), stream=True)).response == said(ROME, **fields)
    whole = completion(HERMES, usage=None)
    whole['choices'][0]['finish_reason'] = reason
    assert (await ask(whole)).response == said(ROME, **fields)


@pytest.mark.parametrize('stream', [True, False])
async def test_usage_and_details_stay(stream: bool) -> None:
    usage = {'prompt_tokens': 9, 'completion_tokens': 2, 'total_tokens': 11}
    body: Any = completion(HERMES, usage=usage)
    if stream:
        body = sse(*pieces(HERMES, 9), {**STOP, 'usage': usage})
    assert (await ask(body, stream=stream)).response == said(
        ROME, usage=(9, 2), finish='tool_call', raw='tool_calls', repairs=TEXT
    )


# Where none may be called


NONE: Any = {'settings': {'tool_choice': 'none'}}
SUPPRESSED = ('tool_call.suppressed',)


@sizes
@each_example
async def test_where_none_was_wanted_the_markup_goes(marked: bool, example: str, size: int) -> None:
    """And what is nothing else is visibly empty: no part at all."""
    before = 'Sunny.\n' if marked else ''
    for told in (before + example, example):
        text = told.removesuffix(example)
        expected = said(*([m.TextPart(text)] if text else []), repairs=SUPPRESSED)
        asked = await ask(sse(*pieces(told, size), STOP), stream=True, **NONE)
        assert (asked.response, asked.text) == (expected, text), asked.error
        assert (await ask(completion(told, usage=None), **NONE)).response == expected


async def test_none_in_the_body_is_none() -> None:
    settings = {'extra_body': {'tool_choice': 'none'}}
    assert (await ask(completion(HERMES, usage=None), settings=settings)).response == said(repairs=SUPPRESSED)


OUTPUTS = replace(
    TOOLS, output_mode='tool', output_tools=[replace(TOOLS.function_tools[1], kind='output')],
    function_tools=TOOLS.function_tools[:1], allow_text_output=False,
)  # fmt: skip


@pytest.mark.parametrize('choice', ['none', []])
async def test_none_leaves_output_tools(choice: Any) -> None:
    """As pydantic-ai reads it: function tools can't be called then, and a call of one is text."""
    told = f'{HERMES}\n{SEARCH}'
    asked = await ask(completion(told, usage=None), settings={'tool_choice': choice}, tools=OUTPUTS)
    assert asked.response == called(m.TextPart(f'{HERMES}\n'), OSLO, repairs=TEXT), asked.error


async def test_only_chosen_tools_can_be_called() -> None:
    told = f'{HERMES}\n{SEARCH}'
    asked = await ask(completion(told, usage=None), settings={'tool_choice': ['search']})
    assert asked.response == called(m.TextPart(f'{HERMES}\n'), OSLO, repairs=TEXT), asked.error


# Agents


def script(stream: bool, *texts: str) -> list[Reply]:
    return [
        Reply.sse(*pieces(text, 5), STOP) if stream else Reply.json(completion(text)) for text in texts
    ]  # fmt: skip


async def run(model: OpenAICompatibleModel, stream: bool, **options: Any) -> str:
    agent = Agent(model)

    @agent.tool_plain
    def lookup(city: str) -> str:
        """Look a city up."""
        return f'{city}: sunny'

    async def read(_: Any, events: AsyncIterable[Any]) -> None:
        async for _event in events:
            pass

    async with agent:
        return str((await agent.run('Weather?', event_stream_handler=read if stream else None, **options)).output)


@pytest.mark.parametrize('stream', [True, False])
async def test_an_agent_runs_the_tool_and_goes_on(stream: bool) -> None:
    async with ScriptedServer(script(stream, f'Let me look.\n{HERMES}', 'Sunny.')) as server:
        assert await run(OpenAICompatibleModel('m', base_url=server.base_url), stream) == 'Sunny.'
    said_, result = server.requests[1].json['messages'][1:]
    [told] = said_['tool_calls']
    assert said_['content'] == 'Let me look.\n'
    assert told['function'] == {'name': 'lookup', 'arguments': '{"city":"Rome"}'}
    assert (result['tool_call_id'], result['content']) == (told['id'], 'Rome: sunny')


@pytest.mark.parametrize('stream', [True, False])
async def test_an_agent_asks_again_where_nothing_is_left(stream: bool) -> None:
    async with ScriptedServer(script(stream, HERMES, 'Sunny.')) as server:
        model = OpenAICompatibleModel('m', base_url=server.base_url)
        assert await run(model, stream, model_settings={'tool_choice': 'none'}) == 'Sunny.'
    assert len(server.requests) == 2


@pytest.mark.parametrize('more', [{}, {'compat_text_calls': 'off'}, {'compat_repair': 'strict'}], ids=str)
@pytest.mark.parametrize('stream', [True, False])
async def test_an_agent_with_prompted_tools(stream: bool, more: Any) -> None:
    """The prompt says which tools there are, the call comes as text, its result goes back as text."""
    profile: Any = {'compat_tools': 'prompted', **more}
    async with ScriptedServer(script(stream, HERMES, 'Sunny.')) as server:
        model = OpenAICompatibleModel('m', base_url=server.base_url, profile=profile)
        assert await run(model, stream) == 'Sunny.'
    first, second = (request.json for request in server.requests)
    assert not {'tools', 'tool_choice'} & {*first, *second}
    assert '"name":"lookup"' in first['messages'][0]['content']
    assert second['messages'][2:] == [
        {'role': 'assistant', 'content': HERMES.replace(': "Rome"', ':"Rome"')},
        {'role': 'user', 'content': '<tool_response>\nlookup:\nRome: sunny\n</tool_response>'},
    ]


async def test_strict_names_it() -> None:
    for body, stream in ((sse(*pieces(HERMES, 9), STOP), True), (completion(HERMES, usage=None), False)):
        asked: Asked = await ask(body, stream=stream, profile={'compat_repair': 'strict'})
        assert 'tool_call.text' in str(asked.api_error)
