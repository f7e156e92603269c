"""What servers really answered (`refusals.jsonl`, each with its thread), and what each refusal teaches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from oaicompat._lessons import guesses, lessons
from oaicompat.profile import knobs

ROWS: list[dict[str, Any]] = [
    json.loads(line) for line in (Path(__file__).parent / 'refusals.jsonl').read_text('utf-8').splitlines()
]
IDS = [f'{row["kind"]} {row["server"]} {row["shape"] or ""}' for row in ROWS]

CALL = {'id': 'c1', 'type': 'function', 'function': {'name': 't', 'arguments': '{}'}}
PARAMETERS = {
    'type': 'object',
    'properties': {'p': {'$ref': '#/$defs/P'}, 'u': {'type': 'string', 'format': 'uri'}, 'c': {'const': 1}},
    '$defs': {'P': {'type': 'object', 'propertyNames': {'pattern': 'x'}}},
    '$schema': 'x',
    'additionalProperties': False,
}
TOOL = {'type': 'function', 'function': {'name': 't', 'parameters': PARAMETERS, 'strict': True}}
NAMED = {'type': 'function', 'function': {'name': 't'}}
SCHEMA = {'type': 'json_schema', 'json_schema': {'name': 'x', 'schema': {'type': 'object'}, 'strict': True}}
OPTIONAL = (
    'parallel_tool_calls', 'store', 'metadata', 'user', 'seed', 'logprobs', 'top_logprobs', 'reasoning_effort',
    'service_tier', 'presence_penalty', 'frequency_penalty', 'temperature', 'top_p', 'stop', 'logit_bias', 'verbosity',
    'prompt_cache_key', 'prompt_cache_retention', 'include_reasoning', 'reasoning', 'thinking', 'google', 'top_k',
    'extra_body', 'safe_prompt', 'max_tokens',
)  # fmt: skip


def message(role: str, content: Any, **fields: Any) -> dict[str, Any]:
    return {'role': role, 'content': content, **fields}


def history(shape: str) -> list[dict[str, Any]]:
    """A conversation with a call, its result and reasoning, and with what `shape` names."""
    role = 'developer' if shape == 'developer' else 'system'
    calling = message(
        'assistant', '' if shape == 'empty' else [] if shape == '[] with calls' else None, tool_calls=[CALL]
    )
    if 'missing' in shape:
        del calling['content']
    said = message('assistant', 'a', reasoning='r', **({} if 'demanded' in shape else {'reasoning_content': 'r'}))
    result = message('tool', '4', tool_call_id='c1')
    late = [message('system', 'late')] if 'late' in shape else []
    made = [
        message(role, 's'),
        *([message('system', 's2')] if 'several' in shape else []),
        message('user', 'x'),
        *late,
        *([] if 'without call' in shape else [calling]),
        *([] if 'unanswered' in shape or 'order' in shape else [result]),
        *([message('user', 'p')] if 'after tool' in shape else []),
        said,
        message('user', 'y'),
        *([message('assistant', 'p')] if 'last' in shape else []),
        *([message('user', 'p')] if 'alternation' in shape else []),
    ]
    return [{**one, 'content': [{'type': 'text', 'text': 't'}]} if one['role'] == shape else one for one in made]


def sent(kind: str, shape: str) -> dict[str, Any]:
    """The body of a request that uses the refused shape."""
    body: dict[str, Any] = {'model': 'm', 'messages': [message('user', 'x')], 'stream': True}
    limit = 'max_completion_tokens' if 'completion' in shape else 'max_tokens'
    everything = {
        **dict.fromkeys(OPTIONAL, 1),
        'messages': [*body['messages'], message('assistant', None, tool_calls=[CALL], reasoning_content='r')],
        'stream_options': {'include_usage': True},
        'tools': [TOOL],
        'tool_choice': 'required',
        'response_format': {'type': 'json_object'},
    }
    parts: dict[str, dict[str, Any]] = {
        '8.1': {'tools': [TOOL], 'tool_choice': NAMED},
        '8.2': {'tools': [TOOL], 'tool_choice': 'required'},
        '8.3': {'response_format': {'type': 'json_object'}},
        '8.4': {'response_format': SCHEMA},
        '8.5': {limit: 5},
        '8.6': everything,
        'never': everything,
    }
    return {**body, **parts.get(kind, {'messages': history(shape), 'tools': [TOOL]})}


def taught(row: dict[str, Any], profile: dict[str, Any]) -> dict[str, Any]:
    found = lessons(profile, sent(row['kind'], row['shape'] or ''), row['status'], row['body'])
    return {key: value for lesson in found for key, value in lesson.profile.items()}


@pytest.mark.parametrize('row', ROWS, ids=IDS)
def test_a_refusal_teaches(row: dict[str, Any]) -> None:
    news = taught(row, {})
    assert json.loads(json.dumps(news)) == row['teaches']
    assert knobs(news) == news
    # The same again teaches nothing: a lesson can't repeat itself.
    assert {key: value for key, value in taught(row, news).items() if news.get(key) == value} == {}


@pytest.mark.parametrize('row', ROWS, ids=IDS)
def test_the_body_as_text_teaches_the_same(row: dict[str, Any]) -> None:
    assert taught({**row, 'body': json.dumps(row['body'])}, {}) == taught(row, {})


@pytest.mark.parametrize('row', ROWS, ids=IDS)
def test_what_was_not_sent_is_not_changed(row: dict[str, Any]) -> None:
    bare = {'model': 'm', 'messages': [message('user', 'x')], 'stream': True}
    assert lessons({}, bare, row['status'], row['body']) == ()
    assert guesses({}, bare, row['status'], row['body']) == ()


@pytest.mark.parametrize('row', ROWS, ids=IDS)
def test_what_names_nothing_is_searched(row: dict[str, Any]) -> None:
    steps = guesses({}, sent(row['kind'], row['shape'] or ''), row['status'], row['body'])
    assert bool(steps) is row['searches']
    assert len(steps) <= 3
    assert guesses({'compat_search_refusals': False}, sent(row['kind'], ''), row['status'], row['body']) == ()


def test_every_row_links_its_thread() -> None:
    assert all(row['url'].startswith('https://github.com/') for row in ROWS)
