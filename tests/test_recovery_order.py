"""Calls in the text beside what else there is in the answer: other fields, the server's own calls, errors, odd ends."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai import messages as m
from test_completions import ask, call, think
from test_recovery import HERMES, OSLO, ROME, SEARCH, TEXT, pieces
from test_recovery_limits import groq, llama_cpp
from test_streams import CALLED, STOP, called, said, sse

from oaicompat.testing import chunk, completion, tool_call

XML = '<tool_call>\n<function=lookup>\n<parameter=city>\nRome\n</parameter>\n'
NATIVE = tool_call('lookup', {'city': 'Rome'}, 'call_1')
ITS_OWN = call('{"city": "Rome"}', id_='call_1')
TWICE = ('tool_call.text', 'tool_call.twice')


def native(given: dict[str, Any]) -> list[Any]:
    """A call of the server's own, its arguments in two pieces."""
    function = given['function']
    opened = {**given, 'index': 0, 'function': {**function, 'arguments': function['arguments'][:4]}}
    rest = {'index': 0, 'function': {'arguments': function['arguments'][4:]}}
    return [chunk({'tool_calls': [opened]}), chunk({'tool_calls': [rest]})]


# In the reasoning


THOUGHTS = [f'Maybe:\n{HERMES}\nNo.', HERMES, f'\n{HERMES}\n{SEARCH}', f'Hm. {HERMES}', f'Hm{HERMES}', HERMES[:-5]]


@pytest.mark.parametrize('key', ['reasoning_content', 'reasoning'])
@pytest.mark.parametrize('thought', THOUGHTS)
@pytest.mark.parametrize('size', [1, 9, 1000])
async def test_a_call_that_text_follows_was_only_thought_of(key: str, thought: str, size: int) -> None:
    for text in ('I must ask first.', '\nI must ask first.'):
        expected = said(think(thought, key), m.TextPart(text))
        asked = await ask(sse(*pieces(thought, size, key), *pieces(text, 1), STOP), stream=True)
        assert asked.response == expected, asked.error
        body = completion(text, usage=None)
        body['choices'][0]['message'][key] = thought
        assert (await ask(body)).response == expected


@pytest.mark.parametrize('other', [NATIVE, tool_call('search', {'city': 'Oslo'}, 'call_1')], ids=['same', 'other'])
async def test_a_call_that_a_call_follows_was_only_thought_of(other: dict[str, Any]) -> None:
    made = call(other['function']['arguments'], other['function']['name'], 'call_1')
    expected = called(think(HERMES), made)
    asked = await ask(sse(*pieces(HERMES, 9, 'reasoning_content'), *native(other), CALLED), stream=True)
    assert asked.response == expected, asked.error
    body = completion(None, tool_calls=[other], usage=None)
    body['choices'][0]['message']['reasoning_content'] = HERMES
    assert (await ask(body)).response == expected


@pytest.mark.parametrize('stream', [False, True])
async def test_a_call_in_reasoning_that_was_cut_off_is_none(stream: bool) -> None:
    chunks = [*pieces(HERMES, 9, 'reasoning_content'), chunk({}, finish_reason='length')]
    body = completion(None, usage=None)
    body['choices'][0] |= {'finish_reason': 'length'}
    body['choices'][0]['message']['reasoning_content'] = HERMES
    asked = await ask(sse(*chunks) if stream else body, stream=stream)
    assert asked.response is not None, asked.error
    assert asked.response.parts == [think(HERMES)]


async def test_white_space_behind_the_reasoning_is_no_answer() -> None:
    chunks = [*pieces(f'So.\n{HERMES}', 9, 'reasoning_content'), chunk({'content': '\n\n'}), STOP]
    asked = await ask(sse(*chunks), stream=True)
    assert asked.response is not None, asked.error
    assert [part for part in asked.response.parts if not isinstance(part, m.TextPart)] == [think('So.\n'), ROME]


async def test_in_tags_too() -> None:
    thought = f'<think>Maybe:\n{HERMES}\nNo.</think>I ask.'
    for asked in (await ask(sse(*pieces(thought, 5), STOP), stream=True), await ask(completion(thought, usage=None))):
        assert asked.response is not None, asked.error
        assert [type(part) for part in asked.response.parts] == [m.ThinkingPart, m.TextPart]
        assert asked.response.parts[0] == think(f'Maybe:\n{HERMES}\nNo.', 'content')


# A call of the server's own


@pytest.mark.parametrize('size', [1, 9, 1000])
async def test_a_call_in_the_text_that_the_server_makes_as_well_is_made_once(size: int) -> None:
    asked = await ask(sse(*pieces(HERMES, size), *native(NATIVE), CALLED), stream=True)
    assert asked.response == called(ROME, repairs=TWICE), asked.error
    asked = await ask(sse(*native(NATIVE), *pieces(HERMES, size), CALLED), stream=True)
    assert asked.response == called(ITS_OWN, repairs=TWICE), asked.error
    body = completion(HERMES, tool_calls=[NATIVE], usage=None)
    assert (await ask(body)).response == called(ITS_OWN, repairs=TWICE)


async def test_a_second_call_of_the_servers_own_is_made() -> None:
    again = {**NATIVE, 'id': 'call_2'}
    second = [chunk({'tool_calls': [{**again, 'index': 1}]})]
    for calls in ([*native(NATIVE), *second], [chunk({'tool_calls': [{**NATIVE, 'index': 0}, {**again, 'index': 1}]})]):
        asked = await ask(sse(*pieces(HERMES, 9), *calls, CALLED), stream=True)
        assert asked.response is not None, asked.error
        assert [part.args for part in asked.response.tool_calls] == [ROME.args] * 2
    whole = (await ask(completion(f'{HERMES}\n{HERMES}', tool_calls=[NATIVE, again], usage=None))).response
    assert whole is not None
    assert [part.tool_call_id for part in whole.tool_calls] == ['call_1', 'call_2']


async def test_a_call_without_its_end_in_front_of_another_is_none() -> None:
    body = completion(XML, tool_calls=[tool_call('search', {'city': 'Oslo'}, 'call_1')], usage=None)
    asked = await ask(body)
    assert asked.response is not None
    assert [part.tool_name for part in asked.response.tool_calls] == ['search']
    assert asked.response.text == XML


async def test_other_calls_are_made_all() -> None:
    paris = tool_call('lookup', {'city': 'Paris'}, 'call_1')
    made = call('{"city": "Paris"}', id_='call_1')
    asked = await ask(sse(*pieces(HERMES, 9), *native(paris), CALLED), stream=True)
    assert asked.response == called(ROME, made, repairs=TEXT), asked.error
    twice = await ask(sse(*pieces(f'{HERMES}\n{HERMES}', 9), STOP), stream=True)
    assert twice.response is not None
    assert [part.args for part in twice.response.tool_calls] == [ROME.args] * 2


# Broken off


@pytest.mark.parametrize('between', [chunk({'reasoning_content': 'Hm.'}), chunk({'reasoning_content': ' '})])
async def test_a_call_that_other_reasoning_breaks_off_is_none(between: Any) -> None:
    asked = await ask(sse(*pieces(XML, 9), between, chunk('</function>\n</tool_call>'), STOP), stream=True)
    assert asked.response is not None, asked.error
    assert asked.response.tool_calls == []
    texts = [part.content for part in asked.response.parts if isinstance(part, m.TextPart)]
    assert ''.join(texts) == f'{XML}</function>\n</tool_call>'


async def test_a_call_goes_on_behind_a_finish_reason() -> None:
    """Some servers say it with every chunk."""
    whole = f'{XML}</function>\n</tool_call>'
    for text in (whole, HERMES):
        chunks = [chunk({'content': text[at : at + 11]}, finish_reason='stop') for at in range(0, len(text), 11)]
        asked = await ask(sse(*chunks), stream=True)
        assert asked.response == called(ROME, repairs=TEXT), asked.error


# Errors, and answers that come another way


@pytest.mark.parametrize('write', [groq, llama_cpp])
@pytest.mark.parametrize('before', ['Let me check ', 'Example:\n```\n', 'So: `'])
async def test_what_would_be_no_call_behind_the_text_is_an_error(before: str, write: Any) -> None:
    asked = await ask(sse(chunk(before), write(HERMES)), stream=True)
    assert asked.response is None
    assert asked.error is not None


async def test_what_is_text_in_a_stream_is_text_where_it_is_put_together() -> None:
    text = f'{HERMES}\n{{"name": "search", "arguments": {{"city": "Oslo"}}}}'
    always: Any = {'compat_stream': 'always'}
    streamed = (await ask(sse(*pieces(text, 9), STOP), stream=True)).response
    put_together = (await ask(sse(*pieces(text, 9), STOP), profile=always)).response
    assert streamed is not None
    assert put_together is not None
    assert [part.args for part in put_together.tool_calls] == [part.args for part in streamed.tool_calls] == [ROME.args]
    assert put_together.text == streamed.text
    assert OSLO not in put_together.parts
