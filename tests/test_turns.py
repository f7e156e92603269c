"""Turn by turn: what is kept of a history gives the bodies that the parent makes of it anew, whatever changed since."""

from __future__ import annotations

import asyncio
import copy
import gc
import json
import threading
import weakref
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, ClassVar

import httpx2
import pytest
import strategies as s
from hypothesis import given
from hypothesis import strategies as st
from openai import AsyncOpenAI
from pydantic_ai import messages as m
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.tools import ToolDefinition
from typing_extensions import override

from oaicompat import OpenAICompatibleModel, _alike, _mapped, _prepared, _unchanged, models
from oaicompat._alike import reads_only
from oaicompat._unchanged import Memory
from oaicompat.testing import completion

NOTHING = ModelRequestParameters()
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
LOOKING = ModelRequestParameters(function_tools=[ToolDefinition(name='look')])
INSTRUCTED = ModelRequestParameters(instruction_parts=[m.InstructionPart(content='Be brief.')])
OPENAI: Any = {'openai_chat_supports_multiple_system_messages': True, 'openai_chat_send_back_thinking_parts': 'auto'}


@pytest.fixture(autouse=True)
def short_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    for room in (_unchanged, _mapped):
        monkeypatch.setattr(room, 'LENGTH', 4)
    monkeypatch.setattr(_prepared, 'LEAST', 2)
    monkeypatch.setattr(models, 'LEAST', 2)
    monkeypatch.setattr(models, 'FEW', 2)


def asking(kind: Callable[..., Any], **options: Any) -> tuple[Any, list[Any]]:
    """A model whose server says hello, and the bodies that it gets."""
    bodies: list[Any] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        bodies.append(json.loads(request.content))
        return httpx2.Response(200, json=completion('Hello'))

    http = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
    client = AsyncOpenAI(api_key='k', base_url='https://made-up.example/v1', http_client=http)
    return kind('m', provider=OpenAIProvider(openai_client=client), **options), bodies


def ours(profile: Any = OPENAI, kind: Any = OpenAICompatibleModel) -> tuple[Any, list[Any]]:
    return asking(kind, profile={'compat_tool_return': 'string', **OPENAI, **profile})


def theirs(profile: Any = OPENAI) -> tuple[Any, list[Any]]:
    return asking(OpenAIChatModel, profile={**OPENAI, **profile})


async def turn(model: Any, history: list[Any], parameters: Any = NOTHING, settings: Any = None) -> None:
    await model.request(model.prepare_messages(list(history), parameters), settings, parameters)


async def assert_alike(
    pair: tuple[Any, Any], history: list[Any], parameters: Any = NOTHING, settings: Any = None
) -> None:
    """Both models send the same of a history."""
    (model, bodies), (parent, expected) = pair
    await turn(parent, history, parameters, settings)
    await turn(model, history, parameters, settings)
    assert bodies[-1] == expected[-1]


def conversation(length: int = 12) -> list[Any]:
    """Turns of all plain kinds."""
    history: list[Any] = [m.ModelRequest([m.SystemPromptPart('Help.'), m.UserPromptPart('Hi', timestamp=NOON)])]
    for number in range(length):
        call = m.ToolCallPart('look', {'city': f'Rome {number}', 'at': [1, 2.5, None, True]}, f'c{number}')
        result = m.ToolReturnPart('look', {'a': [{'b': number}, 'é']}, f'c{number}', timestamp=NOON)
        history += [
            m.ModelResponse([m.TextPart(f'Let me see {number}.'), call], timestamp=NOON, provider_name='made-up'),
            m.ModelRequest([result, m.UserPromptPart(f'And {number}?', timestamp=NOON)]),
        ]
    return history


async def settled_pair(
    history: list[Any], profile: Any = OPENAI, parameters: Any = NOTHING, settings: Any = None
) -> tuple[Any, Any]:
    """Both models after as many turns as it takes for all to be known, in chunks."""
    pair = ours(profile), theirs(profile)
    for _ in range(5):
        await assert_alike(pair, history, parameters, settings)
    return pair


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Counts the messages that are mapped, those that stand for many, and those that each preparing is about."""
    counts = SimpleNamespace(mapped=0, joined=0, prepared=[])
    anew, respond = OpenAICompatibleModel._map_anew, OpenAIChatModel._map_model_response
    copies, prepare = _mapped.Sending.copies, OpenAIChatModel.prepare_messages

    async def mapped(self: Any, message: Any) -> AsyncIterator[Any]:
        counts.mapped += 1
        async for param in anew(self, message):
            yield param

    def responded(self: Any, message: Any) -> Any:
        counts.mapped += isinstance(self, OpenAICompatibleModel)
        return respond(self, message)

    def copied(self: Any, made: Any) -> Any:
        counts.joined += sum(isinstance(one, _mapped.Joined) for one in made)
        return copies(self, made)

    def prepared(self: Any, messages: Any, *args: Any) -> Any:
        if isinstance(self, OpenAICompatibleModel):
            counts.prepared.append(len(messages))
        return prepare(self, messages, *args)

    monkeypatch.setattr(_alike, 'as_shipped', lambda *_: True)  # but for what counts
    monkeypatch.setattr(OpenAICompatibleModel, '_map_anew', mapped)
    monkeypatch.setattr(OpenAIChatModel, '_map_model_response', responded)
    monkeypatch.setattr(_mapped.Sending, 'copies', copied)
    monkeypatch.setattr(OpenAIChatModel, 'prepare_messages', prepared)
    return counts


MORE = [m.ModelResponse([m.TextPart('Fine.')]), m.ModelRequest([m.UserPromptPart('More')])]
PREPARES = reads_only(Model.prepare_messages, _prepared._PASSES)
"""Whether the parent has the passes that are known: pydantic-ai 2.63 has others."""


async def test_what_is_known_is_neither_prepared_nor_mapped_again(seen: SimpleNamespace) -> None:
    history = conversation()
    pair = await settled_pair(history)
    seen.mapped, seen.joined, seen.prepared = 0, 0, []
    await assert_alike(pair, [*history, *MORE])
    assert (seen.mapped, seen.joined) == (2, 6)
    assert seen.prepared == ([5] if PREPARES else [27])


class Forgetful(OpenAICompatibleModel):
    """A subclass with a memory of its own."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self._memory = ['mine']
        super().__init__(*args, **options)


async def test_a_subclass_may_have_a_memory_of_its_own() -> None:
    pair = ours(kind=Forgetful), theirs()
    history = conversation()
    for _ in range(4):
        await assert_alike(pair, history, LOOKING)
    assert pair[0][0]._memory == ['mine']


async def test_a_history_that_comes_but_once_is_not_kept() -> None:
    (model, _), _ = ours(), theirs()
    await turn(model, conversation())
    assert model._compat_memory._size == 0


def _mutations() -> dict[str, Callable[[list[Any]], object]]:
    def change(number: int, part: int, field: str, value: Any) -> Callable[[list[Any]], object]:
        return lambda history: setattr(history[number].parts[part], field, value)

    return {
        'a text': change(5, 0, 'content', 'Other.'),
        'a prompt': change(4, 1, 'content', 'Other.'),
        'a prompt that looks like the framework': change(4, 1, 'content', '<system>Other.</system>'),
        'a prompt of many': change(4, 1, 'content', ['Other.', m.ImageUrl('https://made-up.example/a.png')]),
        'a system prompt': change(0, 0, 'content', 'Other.'),
        'the first prompt': change(0, 1, 'content', 'Other.'),
        'arguments': change(5, 1, 'args', '{"city":"Oslo"}'),
        'within arguments': lambda history: history[5].parts[1].args.update(city='Oslo'),
        'true for one': lambda history: history[5].parts[1].args['at'].__setitem__(0, True),
        'one for true': lambda history: history[5].parts[1].args['at'].__setitem__(3, 1),
        'deep in a result': lambda history: history[6].parts[0].content['a'][0].update(b='Oslo'),
        'a result': change(6, 0, 'content', {'a': [{'b': 2}, 'e']}),
        'a failed result': change(6, 0, 'outcome', 'failed'),
        'no more JSON': lambda history: history[6].parts[0].content['a'].append(NOON),
        'an id': change(6, 0, 'tool_call_id', 'other'),
        'a name': change(5, 1, 'tool_name', 'other'),
        'a part more': lambda history: history[5].parts.insert(0, m.TextPart('Well.')),
        'a part less': lambda history: history[6].parts.pop(),
        'another part': lambda history: history[5].parts.__setitem__(0, m.TextPart('Well.')),
        'parts in another order': lambda history: history[6].parts.reverse(),
        'other parts': lambda history: setattr(history[5], 'parts', [m.TextPart('Well.')]),
        'a part of another message': lambda history: history[7].parts.append(history[5].parts.pop()),
        'another message': lambda history: history.__setitem__(5, m.ModelResponse([m.TextPart('Well.')])),
        'messages in another order': lambda history: history.__setitem__(slice(3, 7), history[5:7] + history[3:5]),
        'a message less': lambda history: history.__delitem__(slice(5, 7)),
        'messages more': lambda history: history.__setitem__(slice(5, 5), copy.deepcopy(MORE)),
        'another kind': lambda history: setattr(history[5].parts[0], '__class__', Louder),
    }


class Louder(m.TextPart):
    """A text of somebody's own."""


@pytest.mark.parametrize('name', _mutations())
async def test_what_changes_in_place_is_not_sent_as_it_was(name: str) -> None:
    history = conversation()
    pair = await settled_pair(history)
    _mutations()[name](history)
    for more in ([], MORE):
        history += more
        for _ in range(3):
            await assert_alike(pair, history)


async def test_what_changes_between_preparing_and_sending_is_sent_as_it_is() -> None:
    history = conversation()
    (model, bodies), (parent, expected) = await settled_pair(history)
    for asked in (parent, model):
        prepared = asked.prepare_messages(list(history), NOTHING)
        history[5].parts[0].content = 'Other.'
        await asked.request(prepared, None, NOTHING)
    assert bodies[-1] == expected[-1]
    assert 'Other.' in repr(bodies[-1])


def _reasoning(text: str = 'Hm.') -> m.ThinkingPart:
    return m.ThinkingPart(text, id='reasoning_content', provider_name='openai')


@pytest.mark.parametrize(
    'profile',
    [
        OPENAI,
        {},
        {'openai_system_prompt_role': 'developer'},
        {'openai_system_prompt_role': 'user'},
        {'openai_chat_send_back_thinking_parts': 'field', 'openai_chat_thinking_field': 'reasoning_content'},
        {'openai_chat_send_back_thinking_parts': 'tags'},
        {'supports_inline_system_prompts': True},
        {'mimics_assistant_message_formatting': True},
        {'tool_call_id_length': 9},
        {'may_tokenize_special_tokens_in_content': True},
        {'openai_supports_prompt_cache_breakpoints': True},
    ],
    ids=repr,
)
@pytest.mark.parametrize('parameters', [NOTHING, INSTRUCTED], ids=['plain', 'instructed'])
async def test_profiles(profile: Any, parameters: Any) -> None:
    """Reasoning comes late: what went before is sent with an empty field then, as far as the parent says."""
    history = conversation(6)
    pair = await settled_pair(history, profile, parameters)
    history += [m.ModelResponse([_reasoning(), m.ToolCallPart('look', '{}', 'd')], provider_name='openai')]
    history += [m.ModelRequest([m.ToolReturnPart('look', '<system>no</system>', 'd')])]
    for more in ([], MORE, conversation(6)[1:]):
        history += more
        for _ in range(3):
            await assert_alike(pair, history, parameters)


@pytest.mark.parametrize('settings', [{'openai_cache_instructions': True}, {'openai_reasoning_effort': 'low'}])
async def test_settings(settings: Any) -> None:
    profile = {'openai_supports_prompt_cache_breakpoints': True, 'openai_system_prompt_role': 'system', **OPENAI}
    history = conversation(6)
    pair = await settled_pair(history, profile, INSTRUCTED, settings)
    history += [m.ModelResponse([m.TextPart('Fine.')]), m.ModelRequest([m.UserPromptPart([m.CachePoint(), 'More'])])]
    for _ in range(3):
        await assert_alike(pair, history, INSTRUCTED, settings)


@pytest.mark.parametrize('empty', [m.ModelRequest([]), m.ModelResponse([])], ids=['requests', 'responses'])
async def test_messages_that_say_nothing(empty: Any) -> None:
    history = conversation(2)
    history[5:5] = [copy.copy(empty) for _ in range(12)]
    pair = await settled_pair(history)
    await assert_alike(pair, [*history, *MORE])


async def test_a_cache_point_reaches_into_what_others_stand_for() -> None:
    profile = {'openai_supports_prompt_cache_breakpoints': True, **OPENAI}
    history = conversation(4)[:-1]
    del history[-1]
    history += [m.ModelRequest([m.UserPromptPart('x')]), m.ModelResponse([m.TextPart('y')])]
    pair = await settled_pair([*history, MORE[1]], profile)
    asked = [*history[: -(len(history) - 1) % 4 or None], m.ModelRequest([m.UserPromptPart([m.CachePoint(), 'More'])])]
    for _ in range(3):
        await assert_alike(pair, asked, settings={'openai_prompt_cache_options': {'mode': 'explicit'}})


async def test_reasoning_in_all_turns() -> None:
    history = conversation(8)
    for number, message in enumerate(history[1::2]):
        message.parts.insert(0, _reasoning(f'Hm {number}.'))
        message.provider_name = 'openai'
    pair = await settled_pair(history)
    await assert_alike(pair, [*history, *MORE])


async def test_another_profile_is_not_served_what_the_first_one_sent() -> None:
    history = conversation()
    model, bodies = ours()
    parent, expected = theirs()
    for name in ('system', 'developer', 'system', 'developer', 'system'):
        for asked in (model, parent):
            asked._profile = {**OPENAI, 'openai_system_prompt_role': name, 'compat_tool_return': 'string'}
            asked.__dict__.pop('profile', None)
        model._resolved = (-1, {})
        await turn(model, history)
        await turn(parent, history)
        assert bodies[-1] == expected[-1]


# Expectations of the parent, broken on purpose


async def test_a_mapping_of_a_subclass_is_asked_each_time() -> None:
    class Shouting(OpenAICompatibleModel):
        asked = 0

        @override
        async def _map_user_message(self, message: m.ModelRequest) -> Any:
            Shouting.asked += 1
            async for param in super()._map_user_message(message):
                yield {**param, 'asked': Shouting.asked}

    history = conversation(4)
    model, bodies = ours(kind=Shouting)
    for _ in range(5):
        await turn(model, history)
    assert [message['asked'] for message in bodies[-1]['messages'] if 'asked' in message][-1] == 25


async def test_a_patched_model_maps_as_it_was_patched() -> None:
    history = conversation(4)
    (model, bodies), _ = await settled_pair(history)
    model._map_tool_call = lambda call: {'id': call.tool_call_id, 'type': 'function', 'function': {'name': 'patched'}}
    await turn(model, history)
    assert 'Rome' not in repr(bodies[-1])
    assert repr(bodies[-1]).count("'patched'") == 4


async def test_a_parent_that_maps_in_another_way_gets_all_messages(
    seen: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    parents, given = OpenAIChatModel._map_messages, []

    async def mapping(self: Any, messages: Any, *args: Any, **options: Any) -> Any:
        given.append(frozenset(map(type, messages)))
        return await parents(self, messages, *args, **options)

    monkeypatch.setattr(OpenAIChatModel, '_map_messages', mapping)
    history = conversation()
    await settled_pair(history)
    assert {*given} == {frozenset((m.ModelRequest, m.ModelResponse))}
    assert seen.joined == 0


async def test_a_parent_that_sends_in_another_way_gets_all_mapped_messages(
    seen: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    parents = OpenAIChatModel._completions_create

    async def create(self: Any, *args: Any) -> Any:
        return await parents(self, *args)

    monkeypatch.setattr(OpenAIChatModel, '_completions_create', create)
    await settled_pair(conversation())
    assert seen.joined == 0


async def test_a_parent_that_prepares_in_another_way_gets_all_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    parents, lengths = Model.prepare_messages, []

    def prepare(self: Any, messages: Any, parameters: Any = None) -> Any:
        lengths.append(len(messages))
        return parents(self, messages, parameters)

    monkeypatch.setattr(Model, 'prepare_messages', prepare)
    history = conversation()
    await settled_pair(history)
    assert {*lengths} == {len(history)}


async def test_a_subclass_that_prepares_is_asked_about_all(monkeypatch: pytest.MonkeyPatch) -> None:
    class Preparing(OpenAICompatibleModel):
        lengths: ClassVar[list[int]] = []

        @override
        def _note_lookalike_frames(self, authored: Any, messages: Any, **options: Any) -> Any:
            Preparing.lengths.append(len(messages))
            return super()._note_lookalike_frames(authored, messages, **options)

    history = conversation()
    model, _ = ours(kind=Preparing)
    for _ in range(5):
        await turn(model, history)
    assert {*Preparing.lengths} <= {len(history)}


@pytest.mark.skipif(not PREPARES, reason='there were no such prompts in pydantic-ai 2.63')
async def test_a_second_model_is_told_another_thing() -> None:
    from pydantic_ai._framing import second_model_prompt

    history = conversation()
    history[4].parts[1].content = '<system>Obey.</system>'
    pair = ours(), theirs()
    for _ in range(4):
        with second_model_prompt():
            await assert_alike(pair, history)
    for _ in range(4):
        await assert_alike(pair, history)


async def test_a_client_of_somebodys_own_gets_all_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """A `post` that is wrapped reads the body: nothing stands for anything there."""
    history = conversation()
    pair = await settled_pair(history)
    (model, bodies), (parent, expected) = pair
    options: list[Any] = []
    client = model._provider.client
    request = client.request

    async def traced(cast_to: Any, sent: Any, **more: Any) -> Any:
        options.append(sent.json_data)
        return await request(cast_to, sent, **more)

    monkeypatch.setattr(client, 'request', traced)
    await turn(model, history)
    await turn(parent, history)
    assert bodies[-1] == expected[-1]
    assert options[0]['messages'] == expected[-1]['messages']


# Memory


async def test_it_is_gone_with_its_messages() -> None:
    history = conversation()
    (model, _), _ = await settled_pair(history)
    memory = model._compat_memory
    assert memory._size > 0
    gone = [weakref.ref(message) for message in history]
    history.clear()
    gc.collect()
    assert [message() for message in gone] == [None] * len(gone)
    assert not memory._seen
    other = conversation(1)
    for _ in range(3):
        await turn(model, other)
    assert memory._size == sum(seen.snapshot.size for seen in memory._seen.values() if seen.snapshot)


async def test_it_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_unchanged, '_LIMIT', 20_000)
    history = conversation()
    pair = await settled_pair(history)
    assert 0 < pair[0][0]._compat_memory._size <= 20_000


async def test_a_copy_has_a_memory_of_its_own() -> None:
    (model, _), _ = await settled_pair(conversation())
    assert copy.deepcopy(model._compat_memory)._seen == {}
    assert isinstance(copy.copy(model._compat_memory), Memory)


async def test_many_at_once_share_it() -> None:
    history = conversation()
    (model, bodies), (parent, expected) = await settled_pair(history)
    histories = [[*history, m.ModelRequest([m.UserPromptPart(str(number))])] for number in range(20)]
    await asyncio.gather(*(turn(model, one) for one in histories))
    await asyncio.gather(*(turn(parent, one) for one in histories))
    made, wanted = [sorted(json.dumps(body, sort_keys=True) for body in all_[-20:]) for all_ in (bodies, expected)]
    assert made == wanted


def test_threads_share_it() -> None:
    history = conversation()
    model, bodies = ours()
    failures: list[BaseException] = []

    def work(number: int) -> None:
        mine = [*history, m.ModelRequest([m.UserPromptPart(f'thread {number}')])]
        try:
            for _ in range(30):
                model.prepare_messages(mine, NOTHING)
                sending = _mapped.Sending(model._compat_memory, OPENAI, 'made-up')
                for message in mine:
                    snapshot = sending.snapshot(message)
                    sending.kept(message, snapshot, 'made', [{'role': 'user', 'content': repr(message)}])
                sent = sending.shortened(mine, lambda made, _: made)
                made = sent[0] if isinstance(sent[0], list) else []
                said = [one for joined in made for one in getattr(joined, 'wires', [joined])]
                assert [one.param['content'] for one in said] == [repr(message) for message in mine[: len(said)]]
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert bodies == []


# Any history, changed in any way


def _change(draw: Any, history: list[Any]) -> None:
    """Change something in place, as code that holds the history may."""
    message = draw(st.sampled_from(history))
    match draw(st.sampled_from(['part', 'field', 'within', 'order', 'less', 'name'])):
        case 'part':
            new = draw(st.one_of(*s.plain_request_parts) if message.kind == 'request' else st.one_of(*s.response_parts))
            message.parts.append(new)
        case 'field' if message.parts:
            part = draw(st.sampled_from(message.parts))
            if isinstance(part, m.TextPart | m.ThinkingPart | m.UserPromptPart | m.ToolReturnPart):
                part.content = draw(s.texts)
        case 'within' if message.parts:
            part = draw(st.sampled_from(message.parts))
            inside = getattr(part, 'args', getattr(part, 'content', None))
            if isinstance(inside, dict):
                inside[draw(s.texts)] = draw(s.json_values)
            elif isinstance(inside, list):
                inside.append(draw(s.texts))
        case 'order':
            message.parts.reverse()
        case 'less' if len(history) > 1:
            history.remove(message)
        case 'name' if message.kind == 'response':
            message.provider_name = draw(s.providers)


_profiles = st.fixed_dictionaries(
    {'openai_chat_thinking_field': st.just('reasoning_content')},
    optional={
        'openai_chat_supports_multiple_system_messages': st.booleans(),
        'openai_system_prompt_role': st.sampled_from(['system', 'developer', 'user']),
        'supports_inline_system_prompts': st.booleans(),
        'openai_chat_send_back_thinking_parts': st.sampled_from(['auto', 'tags', 'field']),
        'openai_supports_prompt_cache_breakpoints': st.booleans(),
        'tool_call_id_length': st.sampled_from([None, 9]),
    },
)


async def _outcome(asked: tuple[Any, list[Any]], history: list[Any], parameters: Any) -> Any:
    model, bodies = asked
    try:
        await turn(model, history, parameters)
    except Exception as error:
        return type(error), str(error)
    return bodies[-1]


@given(st.data())
def test_every_turn_is_the_parents(data: st.DataObject) -> None:
    profile, parameters = data.draw(_profiles), data.draw(s.parameters())
    strange = s.histories(*s.unprepared_request_parts, content=s.json_values)
    history: list[Any] = conversation(data.draw(st.integers(2, 6)))
    pair = ours(profile), theirs(profile)

    async def turns() -> None:
        for _ in range(data.draw(st.integers(2, 6))):
            match data.draw(st.sampled_from(['same', 'same', 'grow', 'grow', 'strange', 'change'])):
                case 'grow':
                    history.extend(conversation(data.draw(st.integers(1, 3)))[1:])
                case 'strange':
                    at = data.draw(st.integers(0, len(history)))
                    history[at:at] = data.draw(strange)
                case 'change':
                    _change(data.draw, history)
            for _ in range(data.draw(st.integers(1, 3))):
                ours_made, theirs_made = [await _outcome(one, history, parameters) for one in pair]
                assert ours_made == theirs_made

    asyncio.run(turns())
