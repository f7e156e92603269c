"""Turn by turn, where somebody does what few do: what is kept is given up, and the parent's bodies are sent."""

from __future__ import annotations

import gc
import sys
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
import test_turns
from pydantic_ai import messages as m
from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.models.openrouter import OpenRouterModel
from pydantic_ai.providers.openrouter import OpenRouterProvider
from pydantic_ai.tools import ToolDefinition
from test_turns import NOON, OPENAI, asking, assert_alike, conversation, ours, settled_pair, turn
from typing_extensions import override

from oaicompat import OpenAICompatibleModel, _alike, _client, _mapped, _unchanged
from oaicompat._unchanged import Memory
from oaicompat.routing import mixed

short_chunks = test_turns.short_chunks  # a fixture
MODULE = sys.modules[OpenAIChatModel.__module__]


def answered(*ids: str, back: bool = False) -> list[Any]:
    """Calls and their results, in that order or turned round."""
    calls = [m.ToolCallPart('look', {'city': name}, name) for name in ids]
    results = [m.ToolReturnPart('look', f'of {name}', name, timestamp=NOON) for name in ids]
    return [m.ModelResponse([*calls], timestamp=NOON), m.ModelRequest([*(reversed(results) if back else results)])]


async def test_results_go_behind_other_calls() -> None:
    one, two = answered('c1', 'c2'), answered('c2', 'c1')
    history = [*conversation(6), *one, *two]
    pair = await settled_pair(history)
    other = [*conversation(6), *two[:1], *one[1:], *one[:1], *two[1:]]
    for _ in range(4):
        await assert_alike(pair, other)
        await assert_alike(pair, history)


async def test_calls_that_are_turned_round_in_place() -> None:
    history = [*conversation(3), *answered('c1', 'c2', 'c3'), *conversation(3)[1:]]
    pair = await settled_pair(history)
    calls = history[7]
    for _ in range(4):
        calls.parts.reverse()
        for _ in range(4):
            await assert_alike(pair, history)


async def test_a_cut_between_calls_and_results_whose_ids_are_used_again() -> None:
    turns = [answered('call_0', 'call_1', back=bool(number % 2)) for number in range(8)]
    history = [m.ModelRequest([m.UserPromptPart('Hi', timestamp=NOON)]), *(one for pair in turns for one in pair)]
    pair = await settled_pair(history)
    for at in (1, 3, 5):
        cut = [history[0], history[at], *history[at + 3 :]]
        for _ in range(4):
            await assert_alike(pair, cut)


async def test_a_prompt_in_front_of_results_that_come_behind_a_call_later() -> None:
    result = m.ToolReturnPart('look', 'of c', 'c', timestamp=NOON)
    early = m.ModelRequest([m.UserPromptPart('Now', timestamp=NOON), result])
    first = m.ModelRequest([m.UserPromptPart('Hi', timestamp=NOON)])
    rest = conversation(6)[1:]
    pair = await settled_pair([first, early, *rest])
    for _ in range(4):
        await assert_alike(pair, [first, m.ModelResponse([m.ToolCallPart('look', {}, 'c')]), early, *rest])


def shifted(parts: list[Any]) -> None:
    """Names of a part's fields exchanged, with the values where they are."""
    [part] = [part for part in parts if isinstance(part, m.ToolReturnPart)]
    fields = dict(vars(part))
    fields['tool_name'], fields['tool_call_id'] = fields['tool_call_id'], fields['tool_name']
    part.__dict__.clear()
    part.__dict__.update(fields)


@pytest.mark.parametrize(
    'change',
    [
        pytest.param(lambda message: shifted(message.parts), id='names'),
        pytest.param(
            lambda message: message.parts.append(m.UserPromptPart('More', timestamp=NOON)), id='one more part'
        ),
        pytest.param(lambda message: setattr(message, 'parts', [*message.parts]), id='another list'),
        pytest.param(lambda message: setattr(message.parts[-1], 'content', ['a', 'b']), id='a list'),
        pytest.param(lambda message: setattr(message.parts[0], 'content', {'a': True}), id='other JSON'),
        pytest.param(lambda message: message.parts[0].content.update(a=1.0), id='a number'),
        pytest.param(lambda message: message.parts[0].content.update(a=NOON), id='no JSON'),
    ],
)
async def test_other_fields(change: Callable[[Any], None]) -> None:
    history = conversation(6)
    history[6].parts[0].content = {'a': 1}
    pair = await settled_pair(history)
    change(history[6])
    for _ in range(4):
        await assert_alike(pair, history)


async def test_a_message_of_another_class_fails_as_in_the_parent() -> None:
    history = conversation(6)
    pair = await settled_pair(history)
    history[5].__class__ = m.ModelRequest
    errors = []
    for model, _ in pair:
        with pytest.raises(Exception) as raised:  # noqa: PT011 - whatever it is
            await turn(model, history)
        errors.append(type(raised.value))
    assert errors[0] is errors[1]


def branching() -> dict[str, Any]:
    """A tree whose branches know their parents."""
    root: dict[str, Any] = {}
    root['branches'] = [{'parent': root}, {'parent': root}, {'parent': root}]
    return root


@pytest.mark.parametrize('field', ['metadata', 'content'])
async def test_what_holds_itself_takes_no_time(field: str) -> None:
    history = conversation(6)
    started = time.monotonic()
    if field == 'content':
        history[6].parts[0].content = {'a': 1}
        pair = await settled_pair(history)
        history[6].parts[0].content.update(branching())
        for model, _ in pair:
            with pytest.raises((RecursionError, ValueError)):  # as the parent says it
                await turn(model, history)
    else:
        history[6].parts[0].metadata = branching()
        history[7].metadata = branching()
        await settled_pair(history)
    assert time.monotonic() - started < 10


async def test_much_that_is_never_sent_is_never_looked_at() -> None:
    history = conversation(6)
    shared = dict.fromkeys(map(str, range(1000)), 'x')
    history[6].parts[0].metadata = history[8].metadata = history[7].provider_details = {'rows': [shared] * 1000}
    pair = await settled_pair(history)
    memory = pair[0][0]._compat_memory
    assert memory._size < 200_000
    assert memory.known(history[6]) is not None


@pytest.mark.parametrize(
    'refer',
    [
        pytest.param(lambda history: setattr(history[5], 'provider_details', {'h': history}), id='provider details'),
        pytest.param(lambda history: setattr(history[6], 'conversation', history), id='an attribute'),
        pytest.param(lambda history: setattr(history[6].parts[0], 'metadata', {'r': history[6]}), id='metadata'),
        pytest.param(lambda history: setattr(history[6].parts[0], 'own', history), id="a part's attribute"),
    ],
)
async def test_what_refers_to_the_history_does_not_keep_it(refer: Callable[[Any], None]) -> None:
    history = conversation(6)
    pair = await settled_pair(history)
    refer(history)
    for _ in range(4):
        await assert_alike(pair, history)
    left = [weakref.ref(message) for message in history]
    del history
    gc.collect()
    assert [one() for one in left] == [None] * len(left)


async def test_a_message_that_is_left_keeps_no_others() -> None:
    history = conversation(8)
    pair = await settled_pair(history)
    memory, first = pair[0][0]._compat_memory, history[1]
    texts = [weakref.ref(message) for message in history[2:]]
    del history
    gc.collect()
    assert [one() for one in texts] == [None] * len(texts)
    assert memory._seen[id(first)].chunk is None
    assert len(memory._seen) == 1


async def test_what_was_made_with_old_profiles_is_not_counted() -> None:
    history = conversation(4)
    model, _ = ours()
    for number in range(_unchanged._USES * 3):
        model._profile = {**model._profile, 'compat_text_content': 'asis', 'x': number}
        model._resolved = (-1, {})
        for _ in range(3):
            await turn(model, history)
    known = [seen.snapshot for seen in model._compat_memory._seen.values() if seen.snapshot is not None]
    assert known
    assert {len(one.uses) for one in known} == {_unchanged._USES}
    sizes = [sum(size for _, size in one.uses.values()) for one in known]
    assert all(0 < one.size - size < 2 * _unchanged._OVERHEAD for one, size in zip(known, sizes, strict=True))


async def test_what_can_not_be_kept_is_tried_less_and_less(monkeypatch: pytest.MonkeyPatch) -> None:
    history = conversation(4)
    history[2].parts[0].content = {'when': NOON}
    tried: list[Any] = []
    snapshot = _unchanged.Snapshot

    def taken(message: Any) -> Any:
        tried.append(message)
        return snapshot(message)

    monkeypatch.setattr(_unchanged, 'Snapshot', taken)
    model, _ = ours()
    for _ in range(40):
        await turn(model, history)
    assert 2 <= sum(message is history[2] for message in tried) <= 12


class Mine(OpenAIChatModel):
    """A mapping of somebody's own."""

    count = 0

    @override
    async def _map_user_message(self, message: Any) -> Any:
        Mine.count += 1
        async for param in super()._map_user_message(message):
            yield {**param, 'name': f'n{Mine.count}'}


class Both(OpenAICompatibleModel, Mine):
    """Ours in front of it."""


@pytest.mark.parametrize('kind', [Both, mixed(Mine)])
async def test_a_class_behind_ours_is_asked_each_time(kind: Any) -> None:
    history = conversation(6)
    model, bodies = ours(kind=kind)
    parent, expected = asking(Mine, profile=OPENAI)
    for _ in range(6):
        Mine.count = 0
        await turn(parent, history)
        Mine.count = 0
        await turn(model, history)
        assert bodies[-1] == expected[-1]


async def test_pydantic_ais_own_classes_behind_ours() -> None:
    """What such a class makes of a history as a whole, it makes in each turn."""
    point = m.UserPromptPart([m.CachePoint(), 'Now'], timestamp=NOON)
    history = [*conversation(6), m.ModelResponse([m.TextPart('Yes')]), m.ModelRequest([point])]
    profile: Any = {**OPENAI, 'compat_tool_return': 'string'}
    kind = mixed(OpenRouterModel)
    made, bodies = asking(lambda _, **options: kind('anthropic/claude-sonnet-4.5', **options), profile=profile)
    made._provider = OpenRouterProvider(openai_client=made.client)
    for _ in range(6):
        with suppress(UnexpectedModelBehavior):  # the answer names no provider
            await turn(made, history, settings={'openrouter_cache_messages': True})
    assert 'cache_control' in repr(bodies[0])
    assert bodies == [bodies[0]] * 6


@pytest.mark.parametrize('name', ['_map_tool_call', '_map_user_prompt', '_map_model_response'])
async def test_a_class_that_is_patched_late(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    history = conversation(6)
    pair = await settled_pair(history)
    method, calls = getattr(OpenAIChatModel, name), [0]

    def patched(*args: Any, **options: Any) -> Any:
        calls[0] += 1
        return method(*args, **options)

    told = staticmethod(patched) if isinstance(vars(OpenAIChatModel)[name], staticmethod) else patched
    monkeypatch.setattr(OpenAIChatModel, name, told)
    await turn(pair[1][0], history)
    expected, calls[0] = calls[0], 0
    await turn(pair[0][0], history)
    assert calls[0] == expected > 0


async def test_a_function_that_is_patched_late(monkeypatch: pytest.MonkeyPatch) -> None:
    history = conversation(6)
    pair = await settled_pair(history)
    name = next(name for name in vars(MODULE) if name.endswith('map_tool_call_provider_details'))
    monkeypatch.setattr(MODULE, name, lambda *_: None)
    before = len(pair[0][0]._compat_memory._keys)
    await assert_alike(pair, history)
    assert pair[0][0]._sending is None
    assert len(pair[0][0]._compat_memory._keys) == before


@pytest.mark.skipif(not test_turns.PREPARES, reason='pydantic-ai 2.63 has other passes, of which none is left out')
async def test_a_pass_that_is_patched_on_a_model_sees_all() -> None:
    history = conversation(6)
    pair = await settled_pair(history)
    model, lengths = pair[0][0], list[int]()
    notes = model._note_lookalike_frames

    def patched(authored: Any, messages: Any, **options: Any) -> Any:
        lengths.append(len(messages))
        return notes(authored, messages, **options)

    model._note_lookalike_frames = patched
    await turn(model, history)
    assert {*lengths} == {len(history)}


async def test_a_profile_that_is_changed_in_place() -> None:
    tags = ['<a>', '</a>']
    profile: Any = {'thinking_tags': tags, 'openai_chat_send_back_thinking_parts': 'tags'}
    history = conversation(4)
    history[3].parts.insert(0, m.ThinkingPart('hm'))
    pair = await settled_pair(history, profile=profile)
    tags[0] = '<b>'
    for _ in range(4):
        await assert_alike(pair, history)
    assert '<b>' in repr(pair[0][1][-1])


async def test_systems_that_are_trusted_later() -> None:
    class Trusting(OpenAICompatibleModel):
        trusted: frozenset[str] = frozenset()

        @property
        @override
        def compatible_systems(self) -> frozenset[str]:
            return self.trusted

    class Trusted(OpenAIChatModel):
        compatible_systems = frozenset({'made-up'})

    history = conversation(4)
    details = {'extra_content': {'a': 'b'}}
    call = m.ToolCallPart('look', {}, 'x', provider_name='made-up', provider_details=details)
    history[3:3] = [
        m.ModelResponse([call], provider_name='made-up'),
        m.ModelRequest([m.ToolReturnPart('look', '', 'x')]),
    ]
    model, bodies = ours(kind=Trusting)
    for _ in range(5):
        await turn(model, history)
    Trusting.trusted = frozenset({'made-up'})
    parent, expected = asking(Trusted, profile=OPENAI)
    await turn(parent, history)
    await turn(model, history)
    assert bodies[-1] == expected[-1]


async def test_a_file_is_fetched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    fetched: list[str] = []

    async def download(item: Any, *_: Any, **__: Any) -> Any:
        fetched.append(item.url)
        return {'data': 'data:image/png;base64,AA==', 'data_type': 'image/png'}

    monkeypatch.setattr(MODULE, 'download_item', download)
    monkeypatch.setattr(_alike, 'as_shipped', lambda *_: True)
    image = m.UserPromptPart([m.ImageUrl('https://example.com/a.png', force_download=True)], timestamp=NOON)
    thought = m.ModelResponse([m.ThinkingPart('hm', id='reasoning_content', provider_name='openai'), m.TextPart('Yes')])
    history = conversation(6)
    pair = await settled_pair(history)
    fetched.clear()
    await turn(pair[0][0], [*history, thought, m.ModelRequest([image])])
    assert fetched == ['https://example.com/a.png']


def test_threads_that_join_the_same_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """One takes the JSON of single messages away while another looks at it."""
    initialise, started = _mapped.Joined.__init__, threading.Barrier(4)

    def slow(self: Any, *args: Any) -> None:
        time.sleep(0.002)
        initialise(self, *args)

    monkeypatch.setattr(_mapped.Joined, '__init__', slow)
    history = conversation(30)
    model, _ = ours()
    wrong: list[Any] = []

    async def few() -> None:
        for _ in range(6):
            await turn(model, history)

    def run() -> None:
        import asyncio

        started.wait()
        try:
            asyncio.run(few())
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize('length', [1, 6])
async def test_tools_are_written_once_and_never_as_they_were(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Any] = []
    write = _client._written

    def seen(value: Any) -> bytes:
        written.append(value)
        return write(value)

    monkeypatch.setattr(_client, '_written', seen)
    schema: dict[str, Any] = {'type': 'object', 'properties': {'city': {'type': 'string', 'maxLength': 9}}}
    parameters = ModelRequestParameters(function_tools=[ToolDefinition(name='look', parameters_json_schema=schema)])
    history = conversation(length)
    pair = await settled_pair(history, parameters=parameters)
    written.clear()
    await assert_alike(pair, history, parameters)
    assert not any('tools' in value for value in written if isinstance(value, dict))
    city = schema['properties']['city']
    for value in (10, 9, 9.0, True, 1, 'é', ['a'], ('a',), {'a': 1}, {'a': True}, -0.0, 0.0, 0, None):
        city['maxLength'] = value
        for _ in range(3):
            await assert_alike(pair, history, parameters)
    for model, _ in pair:
        city['maxLength'] = object()
        with pytest.raises(TypeError, match='not JSON serializable'):
            await turn(model, history, parameters)
    for settings in ({'temperature': 1.0}, {'temperature': 1}, {'temperature': True}, {'extra_body': {'a': NOON}}):
        city['maxLength'] = 9
        await assert_alike(pair, history, parameters, settings)


def test_what_was_written_is_bounded() -> None:
    memory, count = Memory(), 3 * _unchanged._USES
    made = [memory.written({'a': number}, lambda value: repr(value).encode()) for number in range(count)]
    assert made == [repr({'a': number}).encode() for number in range(count)]
    assert len(memory._written) == _unchanged._USES
    assert memory.written({'a': 'x' * _unchanged._LONGEST}, lambda _: b'long') == b'long'
    assert memory.written(lambda: None, lambda _: b'no JSON') == b'no JSON'
    assert [json for _, json in memory._written] == made[: -_unchanged._USES - 1 : -1]


@pytest.mark.parametrize('of', ['class', 'part'])
async def test_a_method_of_a_part_that_is_patched_between_turns(of: str, monkeypatch: pytest.MonkeyPatch) -> None:
    history = conversation(6)
    pair = await settled_pair(history)
    with monkeypatch.context() as patch:
        part = history[6].parts[0]
        if of == 'class':
            patch.setattr(m.ToolReturnPart, 'model_response_str', lambda *_, **__: 'REDACTED')
        else:
            part.model_response_str = lambda *_, **__: 'REDACTED'
        for _ in range(4):
            await assert_alike(pair, history)
        assert 'REDACTED' in repr(pair[0][1][-1])
        part.__dict__.pop('model_response_str', None)
    for _ in range(4):
        await assert_alike(pair, history)
    assert 'REDACTED' not in repr(pair[0][1][-1])


async def test_a_body_whose_pickle_says_less_than_its_json() -> None:
    class Lossy(dict[str, Any]):
        @override
        def __reduce__(self) -> Any:
            raise AssertionError('nobody asked')

    parameters = ModelRequestParameters(function_tools=[ToolDefinition(name='look', parameters_json_schema={})])
    pair = await settled_pair(conversation(6), parameters=parameters)
    for number in (0, 1, True):
        settings = {'extra_body': {'odd': Lossy(id=number)}}
        await assert_alike(pair, conversation(6), parameters, settings)


async def test_profiles_that_cant_be_compared() -> None:
    class Odd:
        @override
        def __eq__(self, other: object) -> Any:
            raise ValueError('neither true nor false')

        __hash__ = None  # type: ignore[assignment]

    await settled_pair(conversation(6), profile={'made_up': Odd()})
