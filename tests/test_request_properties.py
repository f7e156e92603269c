"""What holds for every body, whatever the profile: nothing is lost, nothing is written to, once is enough."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from itertools import pairwise
from typing import Any

import pytest
import test_messages
import test_requests
from bodies import (
    FORMAT,
    HI,
    IMAGE,
    OBJECT,
    Fields,
    calling,
    result,
    said,
    text,
    tool,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import json_values

from oaicompat._knobs import ADAPTING, adapts
from oaicompat._requests import ADAPTERS, adapted

TOOLS_BY_PROMPT = {'compat_tools': 'prompted'}
ROWS = {
    **test_requests.ROWS,
    **test_messages.ROWS,
    # `test_prompted.py` has the whole prompt, and properties of its own, since calls become text there.
    'tools by prompt': ({'messages': [HI], 'tools': [tool('1')]}, TOOLS_BY_PROMPT, None),
}
DEFAULTS: Fields = {
    'compat_tools': 'native',
    'compat_omit': (),
    'compat_schema': (),
    'compat_echo_reasoning': 'auto',
    'compat_assistant_content': 'parent',
    **dict.fromkeys(['compat_named_tool_choice', 'compat_required_tool_choice'], True),
    **dict.fromkeys(['compat_json_object', 'compat_json_schema'], True),
    **dict.fromkeys(['compat_text_content', 'compat_late_system', 'compat_system', 'compat_roles'], 'asis'),
    **dict.fromkeys(['compat_after_tool', 'compat_last_message', 'compat_tool_order'], 'asis'),
}


@pytest.mark.parametrize('profile', [{}, DEFAULTS, dict.fromkeys(DEFAULTS), {'compat_stream': 'always'}])
def test_defaults_change_nothing(profile: Fields) -> None:
    assert not adapts(profile)
    assert all(adapted(body, profile) is body for body, _, _ in ROWS.values())


def test_every_knob_has_a_default_and_a_row() -> None:
    knobs = {knob for knob, *_ in ADAPTERS}
    assert knobs == set(DEFAULTS) == set(ADAPTING)
    assert knobs == {knob for _, profile, _ in ROWS.values() for knob in profile}


CHANGES: dict[str, list[Any]] = {
    **{knob: [False] for knob, default in DEFAULTS.items() if default is True},
    'compat_omit': [('messages.name',), ('tools.function.strict', 'stream_options.include_usage'), ('tool_choice',)],
    'compat_schema': [('title',), ('title', 'format')],
    'compat_echo_reasoning': ['never', 'reasoning_content', 'reasoning_details', 'thought'],
    'compat_assistant_content': ['null', 'empty', 'omit'],
    'compat_text_content': ['string'],
    'compat_late_system': ['lift', 'user'],
    'compat_system': ['user'],
    'compat_roles': ['alternate'],
    'compat_after_tool': ['assistant'],
    'compat_last_message': ['user'],
    'compat_tool_order': ['paired'],
}
profiles = st.fixed_dictionaries({}, optional={knob: st.sampled_from(values) for knob, values in CHANGES.items()})

# Texts that can be found again, each one once.
marks = st.uuids().map(lambda unique: f'«{unique.hex}»')
texts = marks | st.just('')
parts = st.builds(text, texts) | st.just(IMAGE)
contents = texts | st.none() | st.lists(parts, max_size=3)
ids = st.sampled_from(['1', '2', '3'])
spoken = st.builds(said, st.sampled_from(['system', 'developer', 'user', 'assistant']), contents)
named = st.builds(said, st.just('user'), contents, name=st.sampled_from(['Ada', 'Bob']))
thinking = st.builds(
    said,
    st.just('assistant'),
    contents,
    reasoning=st.none() | marks,
    reasoning_content=st.none() | marks | st.just(' '),
)
callers = st.builds(lambda ids, content: calling(*ids, content=content), st.lists(ids, max_size=2), contents)
results = st.builds(result, ids, contents)
messages = st.lists(spoken | named | thinking | callers | results, max_size=8)
rests = st.fixed_dictionaries(
    {'model': st.just('m'), 'own': json_values},
    optional={
        'tools': st.lists(st.builds(tool, ids, strict=st.booleans()), max_size=3),
        'tool_choice': st.sampled_from(['auto', 'required', {'type': 'function', 'function': {'name': '1'}}]),
        'response_format': st.sampled_from([OBJECT, FORMAT]),
        'max_tokens': st.none() | st.integers(1, 9),
        'max_completion_tokens': st.none() | st.integers(1, 9),
        'stream_options': st.just({'include_usage': True}),
    },
)
bodies = st.builds(lambda said, rest: {'messages': said, **rest}, messages, rests)
every_body = bodies | st.sampled_from(list(ROWS)).map(lambda name: ROWS[name][0])


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path to everything in `value`."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield (*path, key)
        yield from places(child, (*path, key))


odd_places = st.sampled_from([HI, [HI], text('a'), [text('a')], 'user', 'tool', '1'])


@st.composite
def spoilt(draw: st.DrawFn) -> Fields:
    """A body that has any JSON at some of its places."""
    body: Fields = deepcopy(draw(every_body))
    for _ in range(draw(st.integers(1, 3))):
        *path, last = draw(st.sampled_from(sorted(places(body), key=repr)))
        holder: Any = body
        for key in path:
            holder = holder[key]
        holder[last] = deepcopy(draw(json_values | odd_places))
    return body


@settings(max_examples=400)
@given(spoilt() | every_body, profiles)
def test_any_body(body: Fields, profile: Fields) -> None:
    """Nothing raises, nothing is written to, and once is enough."""
    before = deepcopy(body)
    sent = adapted(body, profile)
    assert body == before
    assert adapted(sent, profile) is sent or adapted(sent, profile) == sent
    assert adapts(profile) or sent is body
    assert {key: sent.get(key) for key in ('model', 'own')} == {key: body.get(key) for key in ('model', 'own')}


@settings(max_examples=300)
@given(bodies, profiles)
def test_texts_and_calls_survive(body: Fields, profile: Fields) -> None:
    """Every text of a message is sent once, but reasoning where the server wants none; so is every call, in order."""
    sent = adapted(body, profile)
    if not profile.get('compat_echo_reasoning'):
        assert sorted(re.findall('«.*?»', json.dumps(sent['messages'], ensure_ascii=False))) == sorted(
            re.findall('«.*?»', json.dumps(body['messages'], ensure_ascii=False))
        )
    assert calls_in(sent['messages']) == calls_in(body['messages'])


@given(bodies, profiles)
def test_pairs(body: Fields, profile: Fields) -> None:
    """With the knob for it, results follow their calls, each call has one, and there is no other."""
    waiting: list[str] = []
    answered: set[str] = set()
    for message in adapted(body, {**profile, 'compat_tool_order': 'paired'})['messages']:
        if message['role'] == 'tool':
            assert message['tool_call_id'] in waiting
            answered.add(message['tool_call_id'])
        else:
            assert answered == set(waiting)
            waiting, answered = calls_in([message]), set()
    assert answered == set(waiting)


@given(bodies, profiles)
def test_turns(body: Fields, profile: Fields) -> None:
    """With the knobs for it there is no system role, users and assistants without calls take turns, a user begins."""
    knobs = {'compat_system': 'user', 'compat_roles': 'alternate', 'compat_omit': ('messages.name',)}
    sent = adapted(body, {**profile, **knobs, 'compat_echo_reasoning': 'reasoning_content'})['messages']
    turns = [(message['role'], bool(message.get('tool_calls'))) for message in sent]
    assert not {'system', 'developer'} & {role for role, _ in turns}
    assert turns[:1] not in ([('assistant', False)], [('assistant', True)])
    assert not [turn for turn, following in pairwise(turns) if turn == following and turn in TAKEN_IN_TURN]


TAKEN_IN_TURN = (('user', False), ('assistant', False))


def calls_in(messages: list[Any]) -> list[str]:
    return [call['id'] for message in messages for call in message.get('tool_calls') or ()]
