"""Whole answers: JSON in, the whole `ModelResponse` out, through the real default client.

`ask()`, `answered()` and the values here also serve the tests of streams, errors and properties.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
import respx
from dirty_equals import IsStr
from pydantic_ai import messages as m
from pydantic_ai.exceptions import ModelAPIError
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.usage import RequestUsage
from strategies import settled

from oaicompat import OpenAICompatibleModel
from oaicompat.testing import completion, tool_call

URL = 'https://made-up.example/v1'
SCHEMA = {
    'type': 'object',
    'properties': {'city': {'type': 'string'}, 'days': {'type': 'array'}, 'where': {'type': 'object'}},
}
TOOLS = ModelRequestParameters(
    function_tools=[ToolDefinition(name=name, parameters_json_schema=SCHEMA) for name in ('lookup', 'search')]
)
HISTORY: list[m.ModelMessage] = [m.ModelRequest([m.UserPromptPart('Hi')])]
# Not in every pydantic-ai that is supported.
_unmeasured: Any = {'unmeasured_requests': 1} if hasattr(RequestUsage(), 'unmeasured_requests') else {}
UNMEASURED = RequestUsage(**_unmeasured)
NEW_ID = IsStr(regex=r'call_[0-9a-f]{24}')


@dataclass
class Asked:
    """What came of one request."""

    response: m.ModelResponse | None = None
    error: Exception | None = None
    events: list[Any] = field(default_factory=list)
    sent: list[httpx.Request] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The text deltas, joined."""
        return ''.join(map(text_of, self.events))

    @property
    def api_error(self) -> ModelAPIError:
        """The error, which is one that pydantic-ai's models raise."""
        assert isinstance(self.error, ModelAPIError), self
        return self.error


def text_of(event: Any) -> str:
    """What text an event adds."""
    if isinstance(event, m.PartStartEvent) and isinstance(event.part, m.TextPart):
        return event.part.content
    if isinstance(event, m.PartDeltaEvent) and isinstance(event.delta, m.TextPartDelta):
        return event.delta.content_delta
    return ''


async def ask(
    body: Any,
    *,
    stream: bool = False,
    kind: Any = OpenAICompatibleModel,
    name: str = 'm',
    url: str = URL,
    content_type: str | None = None,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    settings: Any = None,
    history: list[m.ModelMessage] | None = None,
    tools: ModelRequestParameters = TOOLS,
    **options: Any,
) -> Asked:
    """Ask a model of its own client, which gets `body` as the answer: bytes, text, or a JSON value."""
    raw = body if isinstance(body, bytes) else (body if isinstance(body, str) else json.dumps(body)).encode()
    content_type = content_type or ('text/event-stream' if stream else 'application/json')
    model: Any = kind(name, base_url=url, **{'api_key': 'key', **options})
    model.client.max_retries = 0
    asked = Asked()
    with respx.mock(using='httpcore2') as router:
        reply = httpx.Response(status, content=raw, headers={'content-type': content_type, **(headers or {})})
        router.route().mock(return_value=reply)
        async with model.client:
            try:
                if stream:
                    async with model.request_stream(history or HISTORY, settings, tools) as streamed:
                        async for event in streamed:
                            asked.events.append(event)
                    asked.response = settled(streamed.get())
                else:
                    asked.response = settled(await model.request(history or HISTORY, settings, tools))
            except Exception as error:
                asked.error = error
        asked.sent = [call.request for call in router.calls]
    return asked


def kept(text: str) -> m.ThinkingPart:
    """Reasoning that came as one detail, and keeps it."""
    return replace(think(text), provider_details={'reasoning_details': [{'type': 'reasoning.text', 'text': text}]})


def answered(
    *parts: m.ModelResponsePart,
    repairs: tuple[str, ...] = (),
    finish: str | None = 'stop',
    raw: object = 'stop',
    usage: tuple[int, int] | None = (1, 1),
    **fields: Any,
) -> m.ModelResponse:
    """The whole response that `completion()` makes, with these differences."""
    details: dict[str, Any] = {'timestamp': datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)}
    if raw is not None:
        details['finish_reason'] = raw
    if repairs:
        details['oaicompat'] = sorted(repairs)
    standard: dict[str, Any] = {
        'usage': RequestUsage(input_tokens=usage[0], output_tokens=usage[1]) if usage else UNMEASURED,
        'model_name': 'm',
        'provider_name': 'made-up.example',
        'provider_url': f'{URL}/',
        'provider_details': details | fields.pop('details', {}),
        'provider_response_id': 'chatcmpl-1',
        'finish_reason': finish,
    }
    return settled(m.ModelResponse(list(parts), **{**standard, **fields}))


def think(text: str, field: str = 'reasoning_content') -> m.ThinkingPart:
    return m.ThinkingPart(text, id=field, provider_name='made-up.example')


def call(args: str, name: str = 'lookup', id_: Any = 'call_1') -> m.ToolCallPart:
    return m.ToolCallPart(name, args, tool_call_id=id_)


HI = m.TextPart('Hi')
INLINE = think('Hm.', 'content')


def choice(**fields: Any) -> dict[str, Any]:
    """A completion whose choice has these fields."""
    body = completion('Hi')
    body['choices'][0] |= fields
    return body


def without(body: dict[str, Any], *path: Any) -> dict[str, Any]:
    *above, last = path
    inside: Any = body
    for step in above:
        inside = inside[step]
    del inside[last]
    return body


# The envelope

_defaults = ('envelope.defaults',)
ENVELOPES: dict[str, tuple[Any, m.ModelResponse]] = {
    'id missing': (without(completion('Hi'), 'id'), answered(HI, repairs=_defaults, provider_response_id=None)),
    'id null': (completion('Hi') | {'id': None}, answered(HI, repairs=_defaults, provider_response_id=None)),
    'id a number': (completion('Hi') | {'id': 7}, answered(HI, repairs=_defaults, provider_response_id='7')),
    'object missing': (without(completion('Hi'), 'object'), answered(HI, repairs=_defaults)),
    'object of a chunk': (completion('Hi') | {'object': 'chat.completion.chunk'}, answered(HI, repairs=_defaults)),
    'created a float': (completion('Hi') | {'created': 1_700_000_000.9}, answered(HI, repairs=_defaults)),
    'model null': (completion('Hi') | {'model': None}, answered(HI, repairs=_defaults)),
    'index null': (choice(index=None), answered(HI, repairs=_defaults)),
    'finish reason a number': (choice(finish_reason=5), answered(HI, repairs=_defaults, raw=None)),
    'role null': (completion('Hi', role=None), answered(HI, repairs=('envelope.role',))),
    'role of a template': (completion('Hi', role='model'), answered(HI, repairs=('envelope.role',))),
    'refusal false': (completion('Hi', refusal=False), answered(HI, repairs=('envelope.types',))),
    'annotations an object': (completion('Hi', annotations={}), answered(HI, repairs=('envelope.types',))),
    'fingerprint a number': (completion('Hi') | {'system_fingerprint': 5}, answered(HI, repairs=('envelope.types',))),
    'no message, but a delta': (
        without(choice(delta={'role': 'assistant', 'content': 'Hi'}), 'choices', 0, 'message'),
        answered(HI, repairs=('envelope.message',)),
    ),
    'no message, but a text': (
        without(choice(text='Hi'), 'choices', 0, 'message'),
        answered(HI, repairs=('envelope.message', 'envelope.role')),
    ),
    'wrapped in data': (
        {'code': 0, 'message': 'ok', 'data': completion('Hi')},
        answered(HI, repairs=('envelope.wrapped',)),
    ),
    'wrapped in result': ({'result': completion('Hi'), 'choices': None}, answered(HI, repairs=('envelope.wrapped',))),
    'the call in another choice': (
        completion('Hi')
        | {
            'choices': [
                *completion('Hi')['choices'],
                *completion(tool_calls=[tool_call('lookup', '{"city":"Z"}')])['choices'],
            ]
        },
        answered(HI, call('{"city":"Z"}'), finish='tool_call', raw='tool_calls', repairs=('choices.merged',)),
    ),
    'in a list': ([completion('Hi')], answered(HI, repairs=('envelope.wrapped',))),
}


@pytest.mark.parametrize(('body', 'expected'), ENVELOPES.values(), ids=ENVELOPES.keys())
async def test_an_odd_envelope_is_read(body: Any, expected: m.ModelResponse) -> None:
    assert (await ask(body)).response == expected


FINISH_REASONS = {
    'network_error': 'error',
    'sensitive': 'content_filter',
    'abort': 'error',
    'error': 'error',
    'MAX_TOKENS': 'length',
    'model_length': 'length',
    'end_turn': 'stop',
    'eos_token': 'stop',
    'tool_use': 'tool_call',
    'made_up': None,
}


@pytest.mark.parametrize(('raw', 'finish'), FINISH_REASONS.items())
async def test_a_finish_reason_outside_of_the_reference_is_mapped_or_told(raw: str, finish: str | None) -> None:
    assert (await ask(choice(finish_reason=raw))).response == answered(HI, finish=finish, raw=raw)


@pytest.mark.parametrize(
    ('given', 'expected'),
    [
        ({'prompt_tokens': 3}, (3, 0)),
        ({'completion_tokens': 2}, (0, 2)),
        ({'prompt_tokens': 3.7, 'completion_tokens': '2'}, (3, 2)),
        ({'prompt_tokens': None, 'completion_tokens': None, 'total_tokens': None}, (0, 0)),
        ({'prompt_tokens': 3, 'completion_tokens': 2}, (3, 2)),
        ({'prompt_tokens': 3, 'completion_tokens': 2, 'total_tokens': 5, 'prompt_tokens_details': []}, (3, 2)),
        ({'prompt_tokens': 3, 'completion_tokens': 2, 'total_tokens': 5, 'completion_tokens_details': 'x'}, (3, 2)),
        ({'prompt_tokens': 'many', 'completion_tokens': {}, 'total_tokens': []}, (0, 0)),
        ({'prompt_tokens': -1, 'completion_tokens': 2, 'total_tokens': 1}, (0, 2)),
        ({'prompt_tokens': float('inf'), 'completion_tokens': 2, 'total_tokens': 2}, (0, 2)),
    ],
)
async def test_odd_usage_is_read(given: dict[str, Any], expected: tuple[int, int]) -> None:
    """Also without pydantic's warnings, which are errors here."""
    asked = await ask(completion('Hi', usage=given))
    assert asked.response == answered(HI, usage=expected, repairs=('usage',))


async def test_usage_beside_the_counts_is_left_alone() -> None:
    """Costs and seconds are fractions, and are no deviation."""
    usage = {'prompt_tokens': 3, 'completion_tokens': 2, 'total_tokens': 5, 'cost': 0.0012, 'queue_time': 0.5}
    body = completion('Hi', usage=usage)
    settings = {'openai_include_unmapped_response_data': True}
    asked = await ask(body, settings=settings)
    assert asked.response == (await ask(body, settings=settings, kind=parent)).response


def parent(name: str, base_url: str, api_key: str, **options: Any) -> OpenAIChatModel:
    """The parent, made with our arguments."""
    provider = OpenAICompatibleModel(name, base_url=base_url, api_key=api_key)._provider
    return OpenAIChatModel(name, provider=provider, **options)


# Content and reasoning

MESSAGES: dict[str, tuple[dict[str, Any], m.ModelResponse]] = {
    'content a list of texts': (
        {'content': [{'type': 'text', 'text': 'H'}, {'type': 'text', 'text': 'i'}]},
        answered(HI, repairs=('content.not_text',)),
    ),
    'content a list of output texts': (
        {'content': [{'type': 'output_text', 'text': 'H'}, {'text': 'i'}]},
        answered(HI, repairs=('content.not_text',)),
    ),
    'content a part': ({'content': {'type': 'text', 'text': 'Hi'}}, answered(HI, repairs=('content.not_text',))),
    'content a JSON object': (
        {'content': {'sunny': True}},
        answered(m.TextPart('{"sunny": true}'), repairs=('content.not_text',)),
    ),
    'content a number': ({'content': 42}, answered(m.TextPart('42'), repairs=('content.not_text',))),
    'thinking parts': (
        {'content': [{'type': 'thinking', 'thinking': [{'type': 'text', 'text': 'Hm.'}]}, 'Hi']},
        answered(think('Hm.'), HI, repairs=('content.thinking_parts',)),
    ),
    'reasoning in thinking': (
        {'content': 'Hi', 'thinking': 'Hm.'},
        answered(think('Hm.'), HI, repairs=('reasoning.field',)),
    ),
    'reasoning details': (
        {'content': 'Hi', 'reasoning_details': [{'type': 'reasoning.text', 'text': 'Hm.'}]},
        answered(kept('Hm.'), HI, repairs=('reasoning.details',)),
    ),
    'reasoning a list': (
        {'content': 'Hi', 'reasoning': [{'type': 'text', 'text': 'Hm.'}]},
        answered(think('Hm.', 'reasoning'), HI, repairs=('reasoning.field',)),
    ),
    'reasoning a number': ({'content': 'Hi', 'reasoning_content': 5}, answered(HI, repairs=('reasoning.field',))),
    'both channels': (
        {'content': '<think>More.</think>Hi', 'reasoning_content': 'Hm.'},
        answered(think('Hm.'), think('More.', 'content'), HI),  # as the parent reads it
    ),
    'tags': ({'content': '<think>\nHm.\n</think>\n\nHi'}, answered(INLINE, HI, repairs=('thinking.tags',))),
    'other tags': ({'content': '[THINK]Hm.[/THINK]Hi'}, answered(INLINE, HI, repairs=('thinking.tags',))),
    'never closed': ({'content': '<think>Hm.'}, answered(INLINE, repairs=('thinking.tags',))),
    'closing tag in a sentence': (
        {'content': 'The tag </think> ends it.'},
        answered(m.TextPart('The tag </think> ends it.')),
    ),
    'closing tag only': ({'content': 'Hm.\n</think>\n\nHi'}, answered(INLINE, HI, repairs=('thinking.closing_tag',))),
    'a tag in code': ({'content': 'Use `</think>`.'}, answered(m.TextPart('Use `</think>`.'))),
    'a tag in the middle': ({'content': 'Hi <think>x</think>'}, answered(m.TextPart('Hi <think>x</think>'))),
    'refusal': (
        {'content': None, 'refusal': 'No.'},
        answered(finish='content_filter', raw=None, details={'refusal': 'No.'}),
    ),
    'annotations of another kind': (
        {'content': 'Hi', 'annotations': [{'type': 'file', 'file': {'hash': 'x'}}]},
        answered(HI, repairs=('envelope.types',)),
    ),
}


@pytest.mark.parametrize(('message', 'expected'), MESSAGES.values(), ids=MESSAGES.keys())
async def test_an_odd_message_is_read(message: dict[str, Any], expected: m.ModelResponse) -> None:
    assert (await ask(choice(message={'role': 'assistant', **message}))).response == expected


@pytest.mark.parametrize(('beside', 'said'), [('R', 'RT'), ('T', 'T')])
async def test_reasoning_in_parts_and_beside_them(beside: str, said: str) -> None:
    parts = [{'type': 'thinking', 'thinking': 'T'}, {'type': 'text', 'text': 'Hi'}]
    asked = await ask(choice(message={'role': 'assistant', 'content': parts, 'reasoning_content': beside}))
    assert asked.response is not None
    assert asked.response.thinking == said
    assert asked.response.text == 'Hi'


HARMONY = [
    'analysisHm.assistantfinalHi',
    'analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Hi',
    '<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Hi',
    '<|channel|>analysis<|message|>Hm.<|channel|>final<|message|>Hi',
]


@pytest.mark.parametrize('leaked', HARMONY)
async def test_harmony_channels_are_read_for_gpt_oss_alone(leaked: str) -> None:
    """gpt-oss's markers, also stripped of their brackets by a server that knows them only as special tokens."""
    asked = await ask(completion(leaked), name='gpt-oss-20b')
    assert asked.response == answered(INLINE, HI, repairs=('thinking.harmony',))
    assert (await ask(completion(leaked))).response == answered(m.TextPart(leaked))


@pytest.mark.parametrize('text', ['analysis of the data', 'analysis', 'Hi, assistantfinal', 'the analysisHm.'])
async def test_words_of_harmony_in_a_sentence_are_text(text: str) -> None:
    assert (await ask(completion(text), name='gpt-oss-20b')).response == answered(m.TextPart(text))


@pytest.mark.parametrize('content', [None, '', ' \n'])
async def test_an_answer_in_the_reasoning_is_shown_where_that_is_wanted(content: str | None) -> None:
    body = completion(content, reasoning_content='42.')
    asked = await ask(body, profile={'compat_answer_in_reasoning': True})
    assert asked.response is not None
    assert asked.response.text == '42.'
    assert (asked.response.provider_details or {})['oaicompat'] == ['reasoning.answer']
    plain = (await ask(body)).response
    assert plain is not None
    assert not (plain.text or '').strip()
