"""Where adapting ends: which requests are made, which error is told, and that nothing wrong is remembered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import test_adapting
import test_adapting_messages
from hypothesis import given, settings
from hypothesis import strategies as st
from openai import APIStatusError
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import (
    ImageUrl,
    ModelMessage,
    ModelRequest,
    UserPromptPart,
)
from refusing import (
    EVERYTHING,
    GO,
    OFFERED,
    SETTINGS,
    Fields,
    Refuses,
    Refusing,
    always,
    ask,
    called,
    failing,
    message,
    refusal,
    said,
)
from strategies import json_values

from oaicompat import OpenAICompatibleModel, OpenAICompatibleResponsesModel
from oaicompat._lessons import is_callers_fault
from oaicompat._memory import MEMORY
from oaicompat.testing import RecordedRequest, Reply, ScriptedServer

REFUSALS: list[Fields] = [
    json.loads(line) for line in (Path(__file__).parent / 'refusals.jsonl').read_text('utf-8').splitlines()
]
TEXTS: list[str] = [json.dumps(row['body']) for row in REFUSALS]
bodies = (
    st.sampled_from([row['body'] for row in REFUSALS])
    | json_values
    | st.builds(lambda one, other: f'{one[:200]}{other[-200:]}', st.sampled_from(TEXTS), st.sampled_from(TEXTS))
)
refusals = st.lists(st.tuples(st.sampled_from([400, 422]), bodies), min_size=6, max_size=6)


@settings(max_examples=60)
@given(refusals, st.booleans(), st.booleans())
async def test_a_server_that_refuses_everything_ends_with_its_first_error(
    replies: list[tuple[int, Any]], responses: bool, stream: bool
) -> None:
    MEMORY.clear()
    script = [Reply.json(body, status, headers={'x-at': str(at)}) for at, (status, body) in enumerate(replies)]
    kind = OpenAICompatibleResponsesModel if responses else OpenAICompatibleModel
    came: list[RecordedRequest] = []

    def handler(request: RecordedRequest) -> Reply:
        if request.method == 'GET':
            return Reply.json({'data': []})
        came.append(request)
        return script[len(came) - 1]

    async with ScriptedServer(handler) as server, kind('m', base_url=server.base_url) as model:
        with pytest.raises(ModelHTTPError) as raised:
            await ask(model, EVERYTHING, SETTINGS, OFFERED, stream=stream)
        # Fields that are refused one by one are kept, since each of them was taken.
        assert set(model.learned) <= {'compat_omit'}
    assert len(came) <= 4
    cause = raised.value.__cause__
    assert isinstance(cause, APIStatusError)
    at = int(cause.response.headers['x-at'])
    # The caller's own fault, such as a context that is too long, is told whenever it comes.
    assert at == 0 or (at == len(came) - 1 and is_callers_fault(raised.value.body))


RULES = [
    rule
    for case in (*test_adapting.CASES.values(), *test_adapting_messages.CASES.values())
    if not case.responses
    for rule in case.refuses
]


def tolerantly(refuses: Refuses) -> Refuses:
    """A rule of one case, for conversations of another."""

    def checked(body: Fields) -> bool:
        try:
            return bool(refuses(body))
        except (LookupError, TypeError):
            return False

    return checked


@settings(max_examples=60)
@given(st.lists(st.sampled_from(RULES), max_size=4, unique_by=id), st.booleans())
async def test_a_server_that_is_picky_in_several_ways(rules: list[tuple[Refuses, Reply]], stream: bool) -> None:
    """Either it gets what it takes, and at once the next time; or nothing is learned. Never more than four requests."""
    MEMORY.clear()
    handler = Refusing([(tolerantly(refuses), reply) for refuses, reply in rules])
    async with ScriptedServer(handler) as server, OpenAICompatibleModel('m', base_url=server.base_url) as model:
        try:
            await ask(model, EVERYTHING, SETTINGS, OFFERED, stream=stream)
        except ModelHTTPError:
            assert dict(model.learned) == {}
            assert len(handler.bodies) <= 4
        else:
            sent = len(handler.bodies)
            assert sent <= 4
            assert bool(model.learned) == (sent > 1)
            await ask(model, EVERYTHING, SETTINGS, OFFERED, stream=stream)
            assert len(handler.bodies) == sent + 1
    for body in handler.bodies:
        said = json.dumps(body['messages'])
        assert all(text in said for text in ('see', 'https://example.com/c.png', 'tool_call_id'))
        assert [one['function']['name'] for one in body['tools']] == ['look', 'refer']


NEVER = [row for row in REFUSALS if row['kind'] == 'never' and not row['teaches']]


@pytest.mark.parametrize('row', NEVER, ids=[f'{row["server"]} {at}' for at, row in enumerate(NEVER)])
async def test_what_teaches_nothing_is_told_as_it_came(row: Fields) -> None:
    came: list[str] = []

    def handler(request: RecordedRequest) -> Reply:
        came.append(request.method)
        if request.method == 'GET':
            return Reply.json({'data': []})
        # The SDK sends a 429 again by itself.
        return Reply.json(row['body'], row['status'], headers={'x-should-retry': 'false'})

    async with ScriptedServer(handler) as server, OpenAICompatibleModel('m', base_url=server.base_url) as model:
        with pytest.raises(ModelHTTPError) as raised:
            await ask(model, EVERYTHING, SETTINGS, OFFERED)
        assert dict(model.learned) == {}
    assert raised.value.status_code == row['status']
    assert raised.value.body == (
        row['body'].get('error', row['body']) if isinstance(row['body'], dict) else row['body']
    )
    assert [method for method in came if method == 'POST'] == ['POST']
    assert came.count('GET') <= 1


ESSENTIAL = [
    'messages', 'response_format', 'n', 'max_completion_tokens', 'model', 'messages[0].content',
    'messages[1].tool_calls', 'messages[1].tool_calls[0].function.arguments', 'messages.2.tool_call_id',
    'tools[0].function.description', 'tools[0].function.name', 'tools.0.function.parameters',
    'tools[0].function.parameters.properties.at', 'response_format.json_schema.schema',
]  # fmt: skip


@pytest.mark.parametrize('field', ESSENTIAL)
async def test_what_a_request_says_is_never_left_out(field: str) -> None:
    options: Any = {**SETTINGS, 'extra_body': {'n': 2}}
    rules: list[tuple[Refuses, Reply]] = [(always, refusal(f"Unknown parameter: '{field}'.", param=field))]
    error, sent = await failing(rules, called('4'), options, OFFERED)
    assert message(error) == f"Unknown parameter: '{field}'."
    for body in sent[1:]:
        tools = {'tools', 'tool_choice', 'parallel_tool_calls'} if field == 'tools' else set()
        assert set(sent[0]) - set(body) <= {'max_completion_tokens', 'response_format', *tools}
        assert 'max_completion_tokens' in body or body['max_tokens'] == 9
        assert 'go' in [one['content'] for one in body['messages'] if one['role'] == 'user']
        # A server that knows no tools is told of them in the prompt.
        told = body['tools'] if 'tools' in body else body['messages'][0]['content']
        assert all(f'"{name}"' in json.dumps(told).replace('\\', '') for name in ('look', 'refer'))


@pytest.mark.parametrize('field', ['content', 'role', 'type', 'call_id', 'output', 'arguments', 'name'])
async def test_what_an_item_says_is_never_left_out(field: str) -> None:
    handler = Refusing([(always, refusal(f"Unknown parameter: 'input[1].{field}'."))])
    async with ScriptedServer(handler) as server:
        async with OpenAICompatibleResponsesModel('m', base_url=server.base_url) as model:
            with pytest.raises(ModelHTTPError):
                await ask(model, [*called('4'), *said('so', 'on')])
    assert len(handler.bodies) == 1


async def test_a_list_with_an_image_can_not_become_a_string() -> None:
    picture: list[ModelMessage] = [ModelRequest([UserPromptPart(['see', ImageUrl('https://example.com/c.png')])])]
    error, sent = await failing([(always, refusal('messages[0].content: Input should be a valid string'))], picture)
    assert (message(error), len(sent)) == ('messages[0].content: Input should be a valid string', 1)


VALUES = [
    'Invalid parameter: seed must be a positive integer',
    "invalid parameter 'temperature': 5 is out of bounds",
    'seed is not supported as a string',
    "Invalid input: 'temperature' expected float, received string",
    "Invalid 'user': string too long. Expected a string with maximum length 64, but got 99",
    'temperature must be between 0 and 2',
    'temperature: Input should be less than or equal to 1',
    'top_p should be in (0, 1]',
    'Tool call arguments: unexpected parameter for look',
    'The model tried to use the tool with an unsupported parameter',
    'the value of max_completion_tokens is too large',
]


@pytest.mark.parametrize('words', VALUES)
async def test_a_value_that_is_refused_is_the_caller_s_to_mend(words: str) -> None:
    error, sent = await failing([(always, refusal(words))], GO, {**SETTINGS, 'tool_choice': 'auto'}, OFFERED)
    assert (message(error), len(sent)) == (words, 1)
