"""What `OpenAICompatibleResponsesModel` sends of a history: whole bodies, and what three servers read of them."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
import strategies as s
from emulated import SERVERS, Json, RefusedError
from hypothesis import given
from pydantic_ai import messages as m
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.openai import OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.tools import ToolDefinition

from oaicompat import OpenAICompatibleResponsesModel
from oaicompat._open_reasoning import told_openly
from oaicompat._portable import portable
from oaicompat.responses import to_input
from oaicompat.testing import Reply, ScriptedServer

OK = {
    'id': 'resp_1',
    'object': 'response',
    'created_at': 1,
    'model': 'm',
    'status': 'completed',
    'output': [
        {
            'type': 'message',
            'id': 'msg_1',
            'role': 'assistant',
            'status': 'completed',
            'content': [{'type': 'output_text', 'text': 'OK', 'annotations': []}],
        }
    ],
}
NO_TOOLS = ModelRequestParameters()


def asked(text: str = 'Hi') -> m.ModelRequest:
    return m.ModelRequest([m.UserPromptPart(text)])


def returned(*ids: str, content: Any = 'sunny') -> m.ModelRequest:
    return m.ModelRequest([m.ToolReturnPart('look', content, id_) for id_ in ids])


def call(id_: str = 'call_1') -> m.ToolCallPart:
    return m.ToolCallPart('look', '{"city":"Rome"}', id_)


def user(text: str = 'Hi') -> Json:
    return {'role': 'user', 'content': text}


def said(text: str, id_: str = 'msg_1') -> Json:
    content = [{'type': 'output_text', 'text': text, 'annotations': []}]
    return {'type': 'message', 'id': id_, 'role': 'assistant', 'status': 'completed', 'content': content}


def thought(text: str, id_: str = 'rs_1') -> Json:
    content = [{'type': 'reasoning_text', 'text': text}]
    return {'type': 'reasoning', 'id': id_, 'summary': [], 'content': content}


def called(id_: str = 'call_1') -> Json:
    return {'type': 'function_call', 'call_id': id_, 'name': 'look', 'arguments': '{"city":"Rome"}'}


def output(value: Any = 'sunny', id_: str = 'call_1') -> Json:
    return {'type': 'function_call_output', 'call_id': id_, 'output': value}


def think(text: str, **fields: Any) -> m.ThinkingPart:
    return m.ThinkingPart(text, **fields)


RAW: dict[str, Any] = {'provider_details': {'raw_content': ['All ', 'of it.']}}
# A history, the items that are sent of it, and the turns that a server is to read: text, reasoning, number of calls.
Turn = tuple[str, str, int]
HISTORIES: dict[str, tuple[list[m.ModelMessage], list[Json], list[Turn]]] = {
    'a text': (
        [asked(), m.ModelResponse([m.TextPart('Hello')]), asked()],
        [user(), said('Hello'), user()],
        [('Hello', '', 0)],
    ),
    'texts': (
        [asked(), m.ModelResponse([m.TextPart('One.'), m.TextPart('Two.')]), asked()],
        [user(), said('One.\n\nTwo.'), user()],
        [('One.\n\nTwo.', '', 0)],
    ),
    'no text': ([asked(), m.ModelResponse([m.TextPart('')]), asked()], [user(), said(''), user()], [('', '', 0)]),
    'reasoning': (
        [asked(), m.ModelResponse([think('Hm.', id='rs_9', provider_name='x'), m.TextPart('Hello')]), asked()],
        [user(), thought('Hm.', 'rs_9'), said('Hello'), user()],
        [('Hello', 'Hm.', 0)],
    ),
    'reasoning from chat': (
        [asked(), m.ModelResponse([think('Hm.', id='reasoning_content'), m.TextPart('Hello')]), asked()],
        [user(), thought('Hm.', 'reasoning_content'), said('Hello'), user()],
        [('Hello', 'Hm.', 0)],
    ),
    'reasoning without an id': (
        [asked(), m.ModelResponse([think('Hm.'), m.TextPart('Hello')]), asked()],
        [user(), thought('Hm.', 'rs_0'), said('Hello'), user()],
        [('Hello', 'Hm.', 0)],
    ),
    'all of the reasoning': (
        [asked(), m.ModelResponse([think('', id='r', **RAW), m.TextPart('Hello')]), asked()],
        [user(), thought('All \n\nof it.', 'r'), said('Hello'), user()],
        [('Hello', 'All \n\nof it.', 0)],
    ),
    'all of it and summaries': (
        [asked(), m.ModelResponse([think('Sum', id='r', **RAW), think('mary', id='r'), m.TextPart('Hello')]), asked()],
        [user(), thought('All \n\nof it.', 'r'), said('Hello'), user()],
        [('Hello', 'All \n\nof it.', 0)],
    ),
    'summaries': (
        [asked(), m.ModelResponse([think('One.', id='r'), think('Two.', id='r'), m.TextPart('Hello')]), asked()],
        [user(), thought('One.\n\nTwo.', 'r'), said('Hello'), user()],
        [('Hello', 'One.\n\nTwo.', 0)],
    ),
    'encrypted reasoning': (
        [asked(), m.ModelResponse([think('Hm.', id='r', signature='x'), m.TextPart('Hello')]), asked()],
        [user(), thought('Hm.', 'r'), said('Hello'), user()],
        [('Hello', 'Hm.', 0)],
    ),
    'encrypted alone': (
        [asked(), m.ModelResponse([think('', id='r', signature='x'), m.TextPart('Hello')]), asked()],
        [user(), said('Hello'), user()],
        [('Hello', '', 0)],
    ),
    'a call': ([asked(), m.ModelResponse([call()]), returned('call_1')], [user(), called(), output()], [('', '', 1)]),
    'all at once': (
        [
            asked(),
            m.ModelResponse([think('Hm.', id='r'), m.TextPart('I look.'), call(), m.TextPart('And.'), call('call_2')]),
            returned('call_1', 'call_2'),
            m.ModelResponse([think('So.', id='q'), m.TextPart('Sunny.')]),
            asked(),
        ],
        [
            *(user(), thought('Hm.', 'r'), said('I look.\n\nAnd.'), called(), called('call_2'), output()),
            *(output(id_='call_2'), thought('So.', 'q'), said('Sunny.', 'msg_2'), user()),
        ],
        [('I look.\n\nAnd.', 'Hm.', 2), ('Sunny.', 'So.', 0)],
    ),
    'a list': (
        [asked(), m.ModelResponse([call()]), returned('call_1', content=['a', 'b'])],
        [user(), called(), output([{'type': 'input_text', 'text': 'a'}, {'type': 'input_text', 'text': 'b'}])],
        [('', '', 1)],
    ),
}  # fmt: skip
histories = pytest.mark.parametrize(('history', 'items', 'turns'), HISTORIES.values(), ids=HISTORIES)


async def sent(history: list[m.ModelMessage], parameters: ModelRequestParameters = NO_TOOLS, **knobs: Any) -> Any:
    async with ScriptedServer(lambda _: Reply.json(OK)) as server:
        profile: Any = knobs
        async with OpenAICompatibleResponsesModel('m', base_url=server.base_url, profile=profile) as model:
            answer = await model.request(history, None, parameters)
    assert answer.text == 'OK'
    assert 'oaicompat' not in (answer.provider_details or {})
    return server.requests[-1].json


@histories
async def test_the_turns_of_the_model_are_sent_whole(
    history: list[m.ModelMessage], items: list[Json], turns: list[Turn]
) -> None:
    before = deepcopy(history)
    assert (await sent(history))['input'] == items
    assert history == before


@histories
@pytest.mark.parametrize('server', SERVERS)
def test_three_servers_read_all_of_it(
    server: str, history: list[m.ModelMessage], items: list[Json], turns: list[Turn]
) -> None:
    answers = [message for message in SERVERS[server].read(items) if message['role'] == 'assistant']
    read = [
        (
            message['content'],
            message.get('reasoning_content') or message.get('reasoning') or '',
            len(message.get('tool_calls', ())),
        )
        for message in answers
    ]
    assert read == turns


@pytest.mark.parametrize(
    ('server', 'history', 'complaint'),
    [
        ('llama.cpp', 'a text', 'Cannot determine type'),
        ('llama.cpp', 'reasoning', "item['content'] is not an array"),
        ('vllm', 'encrypted reasoning', 'Encrypted content'),
    ],
)
def test_they_refuse_the_items_as_openai_has_them(server: str, history: str, complaint: str) -> None:
    with pytest.raises(RefusedError, match=complaint.replace('[', r'\[')):
        SERVERS[server].read(to_input(HISTORIES[history][0], style='openai'))


@histories
def test_what_is_portable_stays_as_it_is(history: list[m.ModelMessage], items: list[Json], turns: list[Turn]) -> None:
    assert portable(items) == items


async def test_the_parents_style() -> None:
    history = HISTORIES['all at once'][0]
    async with ScriptedServer(lambda _: Reply.json(OK)) as server:
        provider = OpenAIProvider(base_url=server.base_url, api_key='k')
        async with OpenAIResponsesModel('m', provider=provider) as parent:
            await parent.request(history, None, NO_TOOLS)
    assert (await sent(history, compat_item_style='openai'))['input'] == server.requests[-1].json['input']


async def test_openais_own_host_gets_the_parents_style() -> None:
    model = OpenAICompatibleResponsesModel('gpt-5', provider=OpenAIProvider(api_key='k'))
    assert not model._is_portable
    assert OpenAICompatibleResponsesModel('gpt-5', base_url='http://localhost:8000/v1')._is_portable


async def test_encrypted_reasoning_goes_back_to_who_takes_it() -> None:
    def part(provider: str, **fields: Any) -> m.ThinkingPart:
        return think('Hm.', id='r', signature='x', provider_name=provider, **fields)

    async with ScriptedServer(lambda _: Reply.json(OK)) as server:
        profile: Any = {'openai_supports_encrypted_reasoning_content': True}
        async with OpenAICompatibleResponsesModel('m', base_url=server.base_url, profile=profile) as model:
            for provider in (model.system, 'other'):
                answer = m.ModelResponse([part(provider), m.TextPart('Hello')], provider_name=provider)
                await model.request([asked(), answer, asked()], None, NO_TOOLS)
    own, foreign = (request.json['input'][1] for request in server.requests)
    summary = [{'type': 'summary_text', 'text': 'Hm.'}]
    assert own == {'type': 'reasoning', 'id': 'r', 'summary': summary, 'encrypted_content': 'x'}
    assert foreign == thought('Hm.', 'r')


async def test_a_tool_without_a_description_has_none() -> None:
    """llama.cpp answers `null` with status 500."""
    schema: Json = {'type': 'object', 'properties': {}, 'additionalProperties': False}
    look = ToolDefinition(name='look', parameters_json_schema=schema)
    parameters = ModelRequestParameters(function_tools=[look])
    [tool] = (await sent([asked()], parameters))['tools']
    assert tool == {'type': 'function', 'name': 'look', 'parameters': schema, 'strict': False}
    [tool] = (await sent([asked()], parameters, compat_item_style='openai'))['tools']
    assert tool['description'] is None


ODD: list[list[Any]] = [
    [],
    ['text', 5, None],
    [{'type': 'web_search_call', 'id': 'w'}, {'type': 'item_reference', 'id': 'x'}],
    [{'role': 'assistant', 'content': None}],
    [{'role': 'assistant', 'content': [5, {'type': 'output_text', 'text': 5}]}],
]


@pytest.mark.parametrize('items', ODD)
def test_odd_items_do_not_break_it(items: list[Any]) -> None:
    before = deepcopy(items)
    once = portable(items)
    assert items == before
    assert portable(once) == once
    assert [item for item in once if not isinstance(item, dict) or 'role' not in item] == [
        item for item in items if not isinstance(item, dict) or 'role' not in item
    ]


def test_a_refusal_and_a_phase_are_kept() -> None:
    content = [{'type': 'output_text', 'text': 'No: '}, {'type': 'refusal', 'refusal': 'I may not.'}]
    item = {'type': 'message', 'role': 'assistant', 'content': content, 'phase': 'final_answer'}
    assert portable([item]) == [{**said('No: \n\nI may not.'), 'phase': 'final_answer'}]


@given(s.histories())
def test_reasoning_is_opened_without_loss(history: list[m.ModelMessage]) -> None:
    """Every text of the reasoning is in the raw content, in order; nothing else is changed."""
    opened = told_openly(history, 'p', encrypted=False)
    for old, new in zip(history, opened, strict=True):
        thoughts = [part for part in old.parts if isinstance(part, m.ThinkingPart)]
        others = [part for part in old.parts if not isinstance(part, m.ThinkingPart)]
        assert [part for part in new.parts if not isinstance(part, m.ThinkingPart)] == others
        told = [part for part in new.parts if isinstance(part, m.ThinkingPart)]
        if not any((part.provider_details or {}).get('raw_content') for part in thoughts):
            raw = [(part.provider_details or {})['raw_content'] for part in told]
            assert raw == [[part.content] for part in thoughts if part.content]


SEALED: Json = {
    'type': 'reasoning',
    'id': 'r',
    'summary': [{'type': 'summary_text', 'text': 'One'}],
    'encrypted_content': 'x',
}


async def test_encrypted_reasoning_keeps_its_parts_and_its_place() -> None:
    async with ScriptedServer(lambda _: Reply.json(OK)) as server:
        profile: Any = {'openai_supports_encrypted_reasoning_content': True}
        async with OpenAICompatibleResponsesModel('m', base_url=server.base_url, profile=profile) as model:
            own: Any = {'provider_name': model.system}
            parts: list[Any] = [think('One', id='r', signature='x', **own, **RAW), think('Two', id='r', **own), call()]
            parts += [think('So', id='q', signature='y', **own), call('call_2'), m.TextPart('Hm.')]
            answer = m.ModelResponse(parts, **own)
            await model.request([asked(), answer, returned('call_1', 'call_2')], None, NO_TOOLS)
    summary = [{'type': 'summary_text', 'text': text} for text in ('One', 'Two')]
    content = [{'type': 'reasoning_text', 'text': text} for text in ('All ', 'of it.')]
    assert server.requests[-1].json['input'] == [
        user(),
        {**SEALED, 'summary': summary, 'content': content},
        called(),
        {**SEALED, 'id': 'q', 'summary': [{'type': 'summary_text', 'text': 'So'}], 'encrypted_content': 'y'},
        called('call_2'),
        said('Hm.'),
        output(),
        output(id_='call_2'),
    ]


def test_ids_are_those_of_one_item_each() -> None:
    turns = [
        [thought('A', 'r'), said('x')],
        [thought('B', 'r'), said('y')],
        [said('z', 'msg_4')],
        [{**said(''), 'id': ''}],
    ]
    made = portable([item for turn in turns for item in (*turn, user())])
    assert [item['id'] for item in made if 'id' in item] == ['r', 'msg_1', 'rs_2', 'msg_2', 'msg_4', 'msg_4_1']


def test_phases_stay_apart() -> None:
    items = [{**said('I look.'), 'phase': 'commentary'}, called(), {**said('4.', 'b'), 'phase': 'final_answer'}]
    assert portable(items) == [items[0], items[2], items[1]]
