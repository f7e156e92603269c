"""Agents against servers that refuse: output types, tools, and a conversation that changes its provider."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput, PromptedOutput, RunContext, ToolOutput
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessage, ModelResponse, SystemPromptPart, ThinkingPart, ToolCallPart
from pydantic_ai.models.fallback import FallbackModel
from refusing import Fields, Refuses, Refusing, at_work, refusal, roles, system, unknown, user

from oaicompat import OpenAICompatibleModel
from oaicompat._history import alnum9
from oaicompat.testing import RecordedRequest, Reply, ScriptedServer, chunk, completion, tool_call


class City(BaseModel):
    """A place."""

    city: str


PARIS = '{"city": "Paris"}'
AS_TOOL = {'content': None, 'tool_calls': [tool_call('final_result', PARIS)]}


def form(body: Fields) -> str | None:
    return (body.get('response_format') or {}).get('type')


OUTPUTS: dict[str, tuple[Any, Any, Sequence[tuple[Refuses, Reply]], Fields]] = {
    'tool': (
        ToolOutput(City),
        AS_TOOL,
        [(lambda body: body.get('tool_choice') == 'required', refusal('Tool choice must be auto'))],
        {'compat_required_tool_choice': False},
    ),
    'native': (
        NativeOutput(City),
        PARIS,
        [(lambda body: form(body) == 'json_schema', refusal('This response_format type is unavailable now'))],
        {'compat_json_schema': False},
    ),
    'native, prompt alone': (
        NativeOutput(City),
        PARIS,
        [(lambda body: form(body) is not None, refusal('This response_format type is unavailable now'))],
        {'compat_json_schema': False, 'compat_json_object': False},
    ),
    'prompted': (
        PromptedOutput(City),
        PARIS,
        [(lambda body: form(body) == 'json_object', refusal("'response_format.type' must be 'json_schema' or 'text'"))],
        {'compat_json_object': False},
    ),
}


async def streaming(_: RunContext[Any], events: Any) -> None:
    async for _event in events:
        pass


@pytest.mark.parametrize('stream', [False, True])
@pytest.mark.parametrize('name', OUTPUTS)
async def test_an_output_type_gets_its_object(name: str, stream: bool) -> None:
    output, answer, rules, learned = OUTPUTS[name]
    handler = Refusing(rules, answer)
    async with ScriptedServer(handler) as server, OpenAICompatibleModel('m', base_url=server.base_url) as model:
        agent: Any = Agent(model, output_type=output, instructions='Be brief.')
        for _ in range(2):
            result = await agent.run('Where?', event_stream_handler=streaming if stream else None)
            assert result.output == City(city='Paris')
        assert model.learned == learned
    assert len(handler.bodies) == len(learned) + 2
    assert all('Be brief.' in body['messages'][0]['content'] for body in handler.bodies)
    asked = json.dumps(handler.bodies[-1])
    assert 'city' in asked


async def test_a_late_system_prompt_of_an_agent_is_moved_up() -> None:
    """A dynamic prompt in a later turn stands behind the conversation; Qwen's template wants it first."""
    words = "Value is not callable: raise_exception('System message must be at the beginning.')"
    handler = Refusing([(lambda body: 'system' in roles(body)[1:], refusal(words, 500))])
    async with ScriptedServer(handler) as server, OpenAICompatibleModel('m', base_url=server.base_url) as model:
        agent = Agent(model, system_prompt=('A', 'B'), instructions='I')
        first = await agent.run('one')
        history: list[ModelMessage] = first.all_messages()
        second = await agent.run('two', message_history=[*history[:-1], history[-1]])
        late = second.all_messages()
        late[2].parts = [SystemPromptPart('C'), *late[2].parts]
        third = await agent.run('three', message_history=late)
        assert third.output == 'done'
        assert model.learned == {'compat_late_system': 'lift'}
    done = {'role': 'assistant', 'content': 'done'}
    turns = [user('one'), done, user('two'), done, user('three')]
    assert handler.bodies[-2]['messages'] == [system('A\n\nB\n\nI'), *turns[:2], system('C'), *turns[2:]]
    assert handler.bodies[-1]['messages'] == [system('A\n\nB\n\nI\n\nC'), *turns]


# From one provider to another

LONG_ID = 'call_00_abcdefghijklmnopqrstuvwxyz'


def thinking(calls: list[int]) -> Any:
    """A server like DeepSeek's: reasoning, long ids, arguments that were cut; then it is down."""

    def handler(request: RecordedRequest) -> Reply:
        calls.append(len(request.json['messages']))
        if len(calls) > 2:
            return Reply.json({'error': {'message': 'overloaded'}}, 503, headers={'x-should-retry': 'false'})
        broken = '{"at": "home' if len(calls) == 1 else {'at': 'home'}
        calling = tool_call('look', broken, f'{LONG_ID}{len(calls)}')
        if not request.json.get('stream'):
            return Reply.json(completion(None, tool_calls=[calling], reasoning_content='hm'))
        delta = {'role': 'assistant', 'tool_calls': [{'index': 0, **calling}]}
        return Reply.sse(chunk({'reasoning_content': 'hm'}), chunk(delta), chunk(finish_reason='tool_calls'))

    return handler


def is_broken(body: Fields) -> bool:
    arguments = [call['function']['arguments'] for one in body['messages'] for call in one.get('tool_calls', ())]
    for text in arguments:
        try:
            if not isinstance(json.loads(text), dict):
                return True
        except ValueError:
            return True
    return False


STRICT: list[tuple[Refuses, Reply]] = [
    (is_broken, refusal('Function call arguments must be a JSON object')),
    (
        lambda body: any('reasoning_content' in one for one in body['messages']),
        unknown(['messages', 1, 'assistant', 'reasoning_content']),
    ),
    (
        lambda body: any(len(one.get('tool_call_id', '123456789')) != 9 for one in body['messages']),
        refusal(f'Tool call id was {LONG_ID} but must be a-z, A-Z, 0-9, with a length of 9.', code='3280'),
    ),
    (
        lambda body: any(isinstance(content, list) for content in at_work(body, 'tool')),
        refusal('messages.4.content: Input should be a valid string'),
    ),
]


@pytest.mark.parametrize('stream', [False, True])
async def test_a_conversation_goes_on_at_a_stricter_server(stream: bool) -> None:
    """What a first provider left in the history is refused by the second, thing by thing, and then taken."""
    strict = Refusing(STRICT)
    calls: list[int] = []
    async with ScriptedServer(thinking(calls)) as one, ScriptedServer(strict) as two:
        first = OpenAICompatibleModel('deep', base_url=one.base_url)
        second = OpenAICompatibleModel('strict', base_url=two.base_url)
        async with first, second:
            agent = Agent(FallbackModel(first, second), retries=3)

            @agent.tool_plain
            def look(at: str) -> list[str]:
                return [at, 'sweet home']

            result = await agent.run('go', event_stream_handler=streaming if stream else None)
            again = await agent.run('and?', message_history=result.all_messages())
            assert (result.output, again.output) == ('done', 'done')
            assert second.learned == {'compat_tool_call_ids': 'alnum9', 'compat_tool_return': 'joined'}
            assert dict(first.learned) == {}
    assert not any(map(is_broken, strict.bodies))
    ids = [alnum9(f'{LONG_ID}{at}') for at in (1, 2)]
    last = strict.bodies[2]['messages']
    assert [call['id'] for message in last for call in message.get('tool_calls', ())] == ids
    assert [message['tool_call_id'] for message in last if message['role'] == 'tool'] == ids
    assert last[-1]['content'] == 'home\nsweet home'
    assert len(strict.bodies) == 4


async def test_reasoning_of_the_same_provider_is_left_out_where_it_is_refused() -> None:
    """Also when the model behind a router changes: the reasoning has the router's name."""
    handler = Refusing(STRICT)
    async with ScriptedServer(handler) as server, OpenAICompatibleModel('m', base_url=server.base_url) as model:
        agent = Agent(model)
        answer = await agent.run('go')
        history = answer.all_messages()
        history[-1] = ModelResponse(
            [ThinkingPart('hm', id='reasoning_content', provider_name=model.system), *history[-1].parts]
        )
        assert (await agent.run('on', message_history=history)).output == 'done'
        assert model.learned == {'compat_echo_reasoning': 'never'}
    assert handler.bodies[-1]['messages'] == [user('go'), {'role': 'assistant', 'content': 'done'}, user('on')]


BROKEN = ['{"at": "ho', '', 'null', '[1]', '"x"', '{"at": 1}}', '{at: home}', '\x00', 'x' * 50, '{"a": NaN}']


@pytest.mark.parametrize('arguments', BROKEN)
async def test_arguments_that_are_no_object_never_poison_what_follows(arguments: str) -> None:
    """What is sent is a JSON object, always; no refusal is needed for it."""
    handler = Refusing([(is_broken, refusal('Function call arguments must be a JSON object'))])
    async with ScriptedServer(handler) as server, OpenAICompatibleModel('m', base_url=server.base_url) as model:
        agent = Agent(model)
        call = ModelResponse([ToolCallPart('look', arguments, tool_call_id='c1')])
        start = (await agent.run('go')).all_messages()
        from pydantic_ai.messages import ModelRequest, ToolReturnPart

        history = [
            *start,
            ModelRequest.user_text_prompt('look'),
            call,
            ModelRequest([ToolReturnPart('look', 'x', tool_call_id='c1')]),
        ]
        assert (await agent.run('on', message_history=history)).output == 'done'
    assert len(handler.bodies) == 2


async def test_a_refusal_that_nothing_answers_lets_the_next_model_try() -> None:
    hopeless = Refusing([(lambda _: True, refusal('Content Exists Risk'))])
    fine = Refusing([])
    async with ScriptedServer(hopeless) as one, ScriptedServer(fine) as two:
        models = OpenAICompatibleModel('a', base_url=one.base_url), OpenAICompatibleModel('b', base_url=two.base_url)
        async with models[0], models[1]:
            assert (await Agent(FallbackModel(*models)).run('go')).output == 'done'
            with pytest.raises(ModelHTTPError):
                await Agent(models[0]).run('go')
    assert (len(hopeless.bodies), len(fine.bodies)) == (2, 1)
