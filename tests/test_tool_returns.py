"""List tool returns: what reaches the wire, for every kind of content, form and outcome."""

from __future__ import annotations

import datetime
from array import array
from collections import UserList, deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
from pydantic import BaseModel, Field, RootModel, computed_field
from pydantic_ai import Agent
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider
from pydantic_core import PydanticSerializationError

from oaicompat import OpenAICompatibleModel, OpenAICompatibleResponsesModel
from oaicompat._toolreturns import element_texts, listed, settle
from oaicompat.testing import Reply, ScriptedServer, chunk, completion, tool_call

URL = 'http://localhost:1/v1'


class Point(NamedTuple):
    x: int
    y: int


class Row(BaseModel):
    name: str


class Rows(RootModel[list[str]]):
    pass


@dataclass
class Pair:
    left: str

    def __iter__(self) -> Iterator[str]:
        return iter('ab')


class Secretive(BaseModel):
    password: str = Field(default='made-up', exclude=True)

    @computed_field  # type: ignore[prop-decorator]  # as pydantic documents it
    @property
    def ratio(self) -> float:
        return 1 / 0


class Foreign:
    """Iterable, and unknown to the parent's serialiser."""

    def __iter__(self) -> Iterator[str]:
        return iter(['a', 'b'])


def generated() -> Iterator[str]:
    yield 'a'
    yield 'b'


def history(*parts: Any) -> list[ModelMessage]:
    calls = [ToolCallPart('look', {}, tool_call_id=f'call_{index}') for index, _ in enumerate(parts)]
    return [ModelRequest([UserPromptPart('go')]), ModelResponse(calls), ModelRequest(list(parts))]


def returned(content: Any, **options: Any) -> ToolReturnPart[Any]:
    return ToolReturnPart('look', content, tool_call_id='call_0', **options)


def model(form: str | None = None) -> OpenAICompatibleModel:
    profile: Any = {'compat_tool_return': form} if form else None
    return OpenAICompatibleModel('m', base_url=URL, profile=profile)


async def tool_messages(under_test: OpenAIChatModel, messages: list[ModelMessage]) -> list[Any]:
    """The messages behind the assistant's, as mapped for the wire after the agent's preparation."""
    prepared = under_test.prepare_messages(messages)
    mapped = await under_test._map_messages(prepared, ModelRequestParameters())
    return list(mapped[2:])


async def content(under_test: OpenAIChatModel, value: Any, **options: Any) -> Any:
    [message] = await tool_messages(under_test, history(returned(value, **options)))
    assert (message['role'], message['tool_call_id']) == ('tool', 'call_0')
    return message['content']


async def stock_content(value: Any, **options: Any) -> Any:
    provider = OpenAICompatibleProvider('server', base_url=URL)
    return await content(OpenAIChatModel('m', provider=provider), value, **options)


def texts(*values: str) -> list[dict[str, str]]:
    return [{'type': 'text', 'text': value} for value in values]


AB = texts('a', 'b')

LISTS: dict[str, tuple[Any, list[dict[str, str]]]] = {
    'strings': (['a', 'b'], AB),
    'one element': (['a'], texts('a')),
    'empty strings left out': (['a', '', 'b'], AB),
    'white space is a text': ([' ', '\n'], texts(' ', '\n')),
    'other elements': (
        [1, 1.5, True, None, {'a': 'ü'}, ['x', 1], Row(name='r'), Pair('l'), datetime.date(2026, 1, 2)],
        texts('1', '1.5', 'true', 'null', '{"a":"ü"}', '["x",1]', '{"name":"r"}', '{"left":"l"}', '2026-01-02'),
    ),
    'nested empty list': ([[], {}], texts('[]', '{}')),
    'tuple': (('a', 'b'), AB),
    'set': ({'a'}, texts('a')),
    'frozenset': (frozenset({'a'}), texts('a')),
    'deque': (deque(['a', 'b']), AB),
    'named tuple': (Point(1, 2), texts('1', '2')),
    'root model': (Rows(['a', 'b']), AB),
    'user list': (UserList(['a', 'b']), AB),
    'range': (range(2), texts('0', '1')),
    'dict keys': ({'a': 1, 'b': 2}.keys(), AB),
    'dict values': ({'a': 1, 'b': 2}.values(), texts('1', '2')),
    'dict items': ({'a': 1}.items(), texts('["a",1]')),
    'array': (array('i', [1, 2]), texts('1', '2')),
    'map': (map(str, [1, 2]), texts('1', '2')),
    'nested range': ([range(2), {'r': range(1)}], texts('[0,1]', '{"r":[0]}')),
}


@pytest.mark.parametrize(('value', 'expected'), LISTS.values(), ids=LISTS)
async def test_lists_are_native_parts(value: Any, expected: list[dict[str, str]]) -> None:
    assert await content(model(), value) == expected


@pytest.mark.parametrize('value', [['a', 'b'], ('a', 'b')], ids=['list', 'tuple'])
@pytest.mark.parametrize(
    ('form', 'expected'),
    [('auto', AB), ('native', AB), ('joined', 'a\nb'), ('string', '["a","b"]')],
)
async def test_forms(form: str, expected: Any, value: Any) -> None:
    assert await content(model(form), value) == expected


UNTOUCHED: dict[str, Any] = {
    'string': 'a',
    'string that looks like a list': '["a"]',
    'empty string': '',
    'dict': {'a': [1, 2]},
    'number': 1.5,
    'boolean': True,
    'nothing': None,
    'bytes': b'ab',
    'model': Row(name='r'),
    'dataclass that iterates': Pair('l'),
    'empty list': [],
    'empty tuple': (),
    'only empty strings': ['', ''],
}


@pytest.mark.parametrize('form', ['auto', 'native', 'joined', 'string'])
@pytest.mark.parametrize('value', UNTOUCHED.values(), ids=UNTOUCHED)
async def test_all_else_is_the_parents(value: Any, form: str) -> None:
    assert await content(model(form), value) == await stock_content(value)


@pytest.mark.parametrize(
    ('outcome', 'native'),
    [('success', True), ('denied', True), ('interrupted', True), ('failed', False), ('retried', False)],
)
async def test_errors_stay_the_parents(outcome: str, native: bool) -> None:
    """A validation retry is a return whose content is a list of errors: an error, not a result."""
    value = [{'type': 'missing', 'loc': ['city'], 'msg': 'Field required'}]
    sent = await content(model(), value, outcome=outcome)
    stock = await stock_content(value, outcome=outcome)
    assert sent == (texts('{"type":"missing","loc":["city"],"msg":"Field required"}') if native else stock)


@pytest.mark.parametrize('outcome', ['failed', 'retried'])
async def test_a_generator_in_an_error_is_still_read_once(outcome: str) -> None:
    expected = await stock_content(['a', 'b'], outcome=outcome)
    part = returned(generated(), outcome=outcome)
    for _ in range(2):
        [message] = await tool_messages(model(), history(part))
        assert message['content'] == expected


IMAGE = BinaryContent(b'png', media_type='image/png', identifier='pic')


@pytest.mark.parametrize('value', [['a', IMAGE], [IMAGE], IMAGE, ['a', 'b', IMAGE]])
async def test_files_follow_as_the_parents_user_message(value: Any) -> None:
    ours = await tool_messages(model(), history(returned(value)))
    stock = OpenAIChatModel('m', provider=OpenAICompatibleProvider('server', base_url=URL))
    assert ours == await tool_messages(stock, history(returned(value)))
    assert [message['role'] for message in ours if message['role'] != 'system'] == ['tool', 'user']


async def test_files_in_a_tuple_are_extracted_as_from_a_list() -> None:
    ours = await tool_messages(model(), history(returned(('a', IMAGE))))
    assert ours == await tool_messages(model(), history(returned(['a', IMAGE])))


async def test_results_keep_their_order_with_equal_ids() -> None:
    parts = [returned(['a', 'b']), returned('plain'), returned(['c'])]
    sent = await tool_messages(model(), history(*parts))
    assert [message['content'] for message in sent] == [AB, 'plain', texts('c')]


async def test_a_generator_replays_in_every_later_turn() -> None:
    part = returned(generated())
    messages = history(part)
    for _ in range(2):
        [message] = await tool_messages(model(), messages)
        assert message['content'] == AB
    assert part.content == ['a', 'b']


async def test_a_generator_without_preparation() -> None:
    """`Model.request()` is public and prepares nothing."""
    part = returned(generated())
    mapped = await model()._map_messages(history(part), ModelRequestParameters())
    assert mapped[2]['content'] == AB
    assert part.content == ['a', 'b']


@pytest.mark.parametrize('form', ['native', 'string'])
async def test_nested_generators_replay(form: str) -> None:
    part = returned({'rows': generated(), 'more': [generated()]})
    first = await tool_messages(model(form), history(part))
    assert await tool_messages(model(form), history(part)) == first
    assert first[0]['content'] == '{"rows":["a","b"],"more":[["a","b"]]}'


async def test_what_the_parent_cant_serialise_is_its_error() -> None:
    """Iterating what is no list would lose or leak: a table gives its column names, a model its secret fields."""
    for value in (Foreign(), [Foreign()], Secretive()):
        messages = history(returned(value))
        with pytest.raises((PydanticSerializationError, ZeroDivisionError)):
            await tool_messages(model(), messages)


async def test_a_generator_that_fails_fails_again() -> None:
    def failing() -> Iterator[str]:
        yield 'a'
        raise LookupError('half')

    messages = history(returned(failing()))
    for _ in range(2):
        with pytest.raises(LookupError, match='half'):
            await tool_messages(model(), messages)


def test_settle_returns_the_object_itself_where_nothing_changes() -> None:
    values: list[Any] = ['a', 1, None, ['a', {'b': (1, 2)}], {'a': []}, (1,), {1, 2}, Row(name='r'), Foreign()]
    for value in values:
        assert settle(value) is value


def test_listed_returns_the_part_itself_where_it_is_no_iterable() -> None:
    for value in ('a', 1, None, ['a'], {'a': 1}, Row(name='r'), Pair('l')):
        part = returned(value)
        assert listed(part) is part


def test_element_texts_leave_the_part_alone() -> None:
    part = returned(('a', 'b'))
    assert element_texts(part) == ['a', 'b']
    assert part.content == ('a', 'b')


@pytest.mark.parametrize(
    ('spelling', 'expected'),
    [(True, AB), ('true', AB), ('True', AB), (False, '["a","b"]'), ('false', '["a","b"]')],
)
async def test_the_older_spelling(spelling: Any, expected: Any) -> None:
    older = OpenAICompatibleModel('m', base_url=URL, profile={'tool_return_as_list': spelling})
    assert await content(older, ['a', 'b']) == expected


@pytest.mark.parametrize('stream', [False, True])
async def test_an_agent_run_sends_parts(stream: bool) -> None:
    call = tool_call('look', {})
    if stream:
        script = [
            Reply.sse(chunk({'tool_calls': [{'index': 0, **call}]}), chunk(finish_reason='tool_calls')),
            Reply.sse(chunk('done'), chunk(finish_reason='stop')),
        ]
    else:
        script = [Reply.json(completion(tool_calls=[call])), Reply.json(completion('done'))]
    async with ScriptedServer(script) as server:
        agent = Agent(OpenAICompatibleModel('m', base_url=server.base_url))

        @agent.tool_plain
        def look() -> Any:
            return generated()

        async with agent:
            if stream:
                async with agent.run_stream('go') as result:
                    assert await result.get_output() == 'done'
            else:
                assert (await agent.run('go')).output == 'done'
    assert server.requests[1].json['messages'] == [
        {'role': 'user', 'content': 'go'},
        {'role': 'assistant', 'content': None, 'tool_calls': [{**call}]},
        {'role': 'tool', 'tool_call_id': 'call_1', 'content': AB},
    ]


@pytest.mark.parametrize(
    ('form', 'expected'),
    [
        ('native', [{'type': 'input_text', 'text': 'a'}, {'type': 'input_text', 'text': '1'}]),
        ('joined', 'a\n1'),
        ('string', '["a",1]'),
    ],
)
@pytest.mark.parametrize('value', [['a', 1], ('a', 1)], ids=['list', 'tuple'])
async def test_responses_api(form: Any, expected: Any, value: Any) -> None:
    responses = OpenAICompatibleResponsesModel('m', base_url=URL, profile={'compat_tool_return': form})
    assert await responses._map_tool_return_output(returned(value)) == expected
