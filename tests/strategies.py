"""What the parity tests draw (histories with every kind of part, tools, settings, output modes, answers) and send.

A part kind that the installed pydantic-ai does not have yet is left out by a feature test. Values are small, since
what matters is their combination. Text in answers holds no bracket, so no reasoning tag and no call written as text.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from collections import deque, namedtuple
from dataclasses import dataclass, field, make_dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any, cast
from uuid import UUID

import httpx
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from openai import AsyncOpenAI
from pydantic import BaseModel
from pydantic_ai import messages as m
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.providers import Provider
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from oaicompat.testing import completion

# The one function-scoped fixture of the properties is a client, and each example empties what it recorded.
_checks = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
settings.register_profile('local', deadline=None, max_examples=80, suppress_health_check=_checks)
settings.register_profile('ci', settings.get_profile('local'), derandomize=True, print_blob=True)
settings.load_profile('ci' if os.environ.get('CI') and not os.environ.get('OAICOMPAT_FUZZ_EXAMPLES') else 'local')

MODELS = ('gpt-5', 'gpt-4o', 'o3-mini', 'deepseek-reasoner', 'glm-5', 'made-up')
"""Names whose profiles differ: reasoning, developer role, strict tools, nothing known."""


# Values


class Point(BaseModel):
    """A tool result, and an output type."""

    x: int
    label: str | None = None


Row = make_dataclass('Row', [('name', str), ('tags', tuple[str, ...])])
Colour = Enum('Colour', {'RED': 'red'})
Pair = namedtuple('Pair', ['left', 'right'])

texts = st.text(max_size=12)
words = st.sampled_from(['sunny', 'Zürich', 'a "quoted" word', 'two\nlines', '<think>hm</think>', '🌦'])
scalars = st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.floats(-1e6, 1e6) | texts | words
json_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(texts, json_values, max_size=3)
rich_scalars: SearchStrategy[Any] = st.one_of(
    st.builds(Point, x=st.integers(0, 9), label=st.none() | texts),
    st.builds(Row, name=texts, tags=st.tuples(texts)),
    st.just(Colour.RED),
    st.sampled_from([datetime(2026, 1, 2, 3, 4, tzinfo=UTC), date(2026, 1, 2), Decimal('1.50'), UUID(int=7), b'bytes']),
)
iterables: SearchStrategy[Any] = st.one_of(
    st.tuples(scalars, rich_scalars),
    st.sets(texts, max_size=2),
    st.frozensets(st.integers(0, 9), max_size=2),
    st.builds(deque, st.lists(json_values, max_size=2)),
    st.builds(Pair, left=texts, right=st.integers(0, 9)),
    st.lists(st.lists(scalars, max_size=2) | st.tuples(texts) | rich_scalars, max_size=3),
)


# Files

PICTURE_URL = 'https://example.com/picture.png'
details = st.sampled_from([None, {'detail': 'low'}, {'other': 1}])
files: SearchStrategy[Any] = st.one_of(
    st.builds(m.ImageUrl, url=st.just(PICTURE_URL), vendor_metadata=details),
    st.builds(m.BinaryContent, data=st.binary(max_size=4), media_type=st.just('image/png'), vendor_metadata=details),
    st.builds(m.BinaryContent, data=st.binary(max_size=4), media_type=st.sampled_from(['audio/wav', 'audio/mpeg'])),
    st.builds(m.BinaryContent, data=st.binary(max_size=4), media_type=st.just('application/pdf')),
    st.builds(
        m.BinaryContent,
        data=texts.map(str.encode),
        media_type=st.sampled_from(['text/plain', 'text/csv', 'application/json']),
    ),
    st.builds(m.UploadedFile, file_id=st.just('file-1'), provider_name=st.just('openai')),
)
user_content: SearchStrategy[Any] = st.one_of(
    texts,
    files,
    st.builds(m.TextContent, content=texts, metadata=st.just({'kept': 'here'})),
    st.builds(m.StructuredContent, value=objects, tag=st.none()),
    st.just(m.CachePoint()),
)


# Parts

TOOLS = ('lookup', 'search')
OUTCOMES = ('success', 'denied', 'interrupted', 'failed', 'retried')
names = st.sampled_from(TOOLS)
ids = st.sampled_from(['call_1', 'call_2', 'call_3'])  # few, so that calls and returns meet, and ids repeat
providers = st.sampled_from([None, 'openai', 'made-up', 'anthropic'])
tool_content: SearchStrategy[Any] = st.one_of(
    texts, words, json_values, objects, st.lists(json_values, max_size=3), rich_scalars, iterables, files,
    st.lists(texts | objects | files, max_size=3),
)  # fmt: skip
error_details = st.just([{'type': 'missing', 'loc': ('city',), 'msg': 'Field required', 'input': {}}])


def tool_returns(content: SearchStrategy[Any] = tool_content) -> SearchStrategy[m.ToolReturnPart[Any]]:
    """Tool returns with every outcome, or content of one sort."""
    outcomes = cast(Any, st.sampled_from(OUTCOMES))
    return st.builds(m.ToolReturnPart, tool_name=names, content=content, tool_call_id=ids, outcome=outcomes)


def _legacy_retry(**fields: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        return m.RetryPromptPart(**fields)


legacy_retries: SearchStrategy[Any] = st.builds(
    _legacy_retry, content=texts | error_details, tool_name=st.none() | names, tool_call_id=ids
)
feedback: SearchStrategy[Any] = st.builds(
    m.RetryFeedbackPart,
    content=texts | error_details | st.just('Please return text.'),
    retry=cast(Any, st.sampled_from(['validation_error', 'model_retry', 'no_output'])).map(
        lambda cause: m.RetryInfo(cause=cause)
    ),
)


_load_part: Any = getattr(m, 'CapabilityLoadDeltaPart', None)  # not in 2.63
plain_request_parts: list[SearchStrategy[Any]] = [
    st.builds(m.SystemPromptPart, content=texts),
    st.builds(m.UserPromptPart, content=texts | st.lists(user_content, max_size=3)),
]
unprepared_request_parts: list[SearchStrategy[Any]] = [
    legacy_retries,
    feedback,
    st.builds(m.CompactionPart, content=texts),
    st.builds(m.SpeechPart, speaker=st.just('user'), transcript=texts),
    st.builds(m.ToolAvailabilityDeltaPart, tools_added=st.lists(names, max_size=1)),
    st.builds(m.ModelSettingsDeltaPart, settings=st.just({'thinking': 'high'})),
    st.builds(m.InstructionBaselinePart, instructions=st.lists(st.builds(m.InstructionPart, texts), max_size=1)),
    *([st.builds(_load_part, loaded=st.just([]))] if _load_part else []),
]
response_parts: list[SearchStrategy[Any]] = [
    st.builds(m.TextPart, content=texts, id=st.none(), provider_name=providers),
    st.builds(
        m.ThinkingPart,
        content=texts,
        id=st.sampled_from([None, 'content', 'reasoning', 'reasoning_content', 'rs_1']),
        signature=st.none() | st.just('signed'),
        provider_name=providers,
    ),
    st.builds(
        m.ToolCallPart,
        tool_name=names,
        args=st.none() | st.sampled_from(['', '{}', '{"city": "Zürich"}', '{"city":']) | objects,
        tool_call_id=ids,
        provider_name=providers,
        provider_details=st.none() | st.just({'extra_content': {'google': {'thought_signature': 'abc'}}}),
    ),
    st.builds(m.FilePart, content=st.just(m.BinaryContent(b'picture', media_type='image/png'))),
    st.builds(m.CompactionPart, content=st.none() | texts, provider_name=providers),
    st.builds(m.NativeToolCallPart, tool_name=st.just('web_search'), args=objects, tool_call_id=ids),
    st.builds(m.NativeToolReturnPart, tool_name=st.just('web_search'), content=json_values, tool_call_id=ids),
]


def histories(
    *extra_parts: SearchStrategy[Any], content: SearchStrategy[Any] = tool_content
) -> SearchStrategy[list[m.ModelMessage]]:
    """Conversations in any order; `extra_parts` are request parts beside prompts and tool returns."""
    parts: SearchStrategy[Any] = st.one_of(*plain_request_parts, tool_returns(content), *extra_parts)
    request = st.builds(
        m.ModelRequest, parts=st.lists(parts, max_size=4), instructions=st.none() | st.just('Be brief.')
    )
    response = st.builds(
        m.ModelResponse, parts=st.lists(st.one_of(*response_parts), max_size=3), provider_name=providers
    )
    return st.lists(request | response, min_size=1, max_size=4)


# Parameters and settings

SCHEMA = {'type': 'object', 'properties': {'city': {'type': 'string'}}, 'required': ['city']}
_tools = [
    ToolDefinition(name='lookup', description='Look it up', parameters_json_schema=SCHEMA),
    ToolDefinition(name='search', parameters_json_schema=SCHEMA, strict=True),
]
_output_tool = ToolDefinition(name='final_result', parameters_json_schema=SCHEMA, kind='output')
_output_object = OutputObjectDefinition(json_schema=SCHEMA, name='city', description='A city', strict=True)
_modes: list[dict[str, Any]] = [
    {},
    {'output_mode': 'tool', 'output_tools': [_output_tool], 'allow_text_output': False},
    {'output_mode': 'native', 'output_object': _output_object},
    {'output_mode': 'prompted', 'output_object': _output_object},
]


@st.composite
def parameters(draw: st.DrawFn) -> ModelRequestParameters:
    """Tools, an output mode, and instructions."""
    tools = draw(st.sampled_from([[], _tools[:1], _tools]))
    instructions = draw(st.sampled_from([None, [m.InstructionPart('One.'), m.InstructionPart('Two.', dynamic=True)]]))
    mode = draw(st.sampled_from(_modes))
    return ModelRequestParameters(function_tools=list(tools), instruction_parts=instructions, **mode)


_settings: dict[str, SearchStrategy[Any]] = {
    'max_tokens': st.integers(1, 9),
    'temperature': st.sampled_from([0.0, 0.7]),
    'top_p': st.just(0.5),
    'timeout': st.just(30.0),
    'parallel_tool_calls': st.booleans(),
    'extra_headers': st.just({'x-made-up': 'yes'}),
    'extra_body': st.just({'made_up': [1]}),
    'thinking': st.sampled_from([True, False, 'low', 'high']),
    'tool_choice': st.sampled_from(['auto', 'none', 'required', ['lookup'], ['lookup', 'search']]),
    'openai_user': st.just('somebody'),
    'openai_store': st.booleans(),
    'openai_service_tier': st.just('flex'),
    'openai_text_verbosity': st.just('low'),
    'openai_prompt_cache_key': st.just('key'),
    'seed': st.just(7),
    'stop_sequences': st.just(['END']),
    'presence_penalty': st.just(0.1),
    'frequency_penalty': st.just(-0.1),
    'logit_bias': st.just({'42': 1}),
    'openai_reasoning_effort': st.just('low'),
    'openai_logprobs': st.just(True),
    'openai_top_logprobs': st.just(2),
    'openai_prediction': st.just({'type': 'content', 'content': 'x'}),
    'openai_continuous_usage_stats': st.booleans(),
}
model_settings = st.none() | cast(SearchStrategy[ModelSettings], st.fixed_dictionaries({}, optional=_settings))


# Answers

_quiet = st.text(st.characters(codec='utf-8', exclude_characters='<>[]{}`|'), min_size=1, max_size=20)
_counts = st.integers(0, 10**4)
_usage = st.fixed_dictionaries(
    {'prompt_tokens': _counts, 'completion_tokens': _counts, 'total_tokens': _counts},
    optional={
        'prompt_tokens_details': st.fixed_dictionaries({'cached_tokens': _counts}),
        'completion_tokens_details': st.fixed_dictionaries({'reasoning_tokens': _counts}),
    },
)
_logprobs = st.just({'content': [{'token': 'a', 'logprob': -0.5, 'bytes': [97], 'top_logprobs': []}], 'refusal': None})
_citation = {'start_index': 0, 'end_index': 1, 'title': 'A page', 'url': 'https://example.com'}
_annotations = st.just([{'type': 'url_citation', 'url_citation': _citation}])


@st.composite
def answers(draw: st.DrawFn) -> dict[str, Any]:
    """A well-formed `chat.completion`."""
    arguments = draw(st.lists(objects, max_size=3))
    calls = [
        {'id': f'call_{n}', 'type': 'function', 'function': {'name': draw(names), 'arguments': json.dumps(value)}}
        for n, value in enumerate(arguments)
    ]
    fields = st.fixed_dictionaries(
        {'role': st.just('assistant'), 'content': _quiet if not calls else st.none() | _quiet},
        optional={
            'reasoning_content': _quiet,
            'reasoning': _quiet,
            'annotations': _annotations,
            'made_up': json_values,
            **({} if calls else {'refusal': st.none() | _quiet}),
        },
    )
    reason = 'tool_calls' if calls else draw(st.sampled_from(['stop', 'length', 'content_filter']))
    choice = {'index': 0, 'message': {**draw(fields), **({'tool_calls': calls} if calls else {})}}
    envelope = st.fixed_dictionaries(
        {'id': st.just('chatcmpl-1'), 'created': st.just(1_700_000_000), 'model': st.just('served')},
        optional={
            'usage': _usage,
            'system_fingerprint': st.sampled_from(['fp_1', 'b9999-abcdef']),
            'service_tier': st.sampled_from(['default', 'made-up']),
            'made_up': json_values,
        },
    )
    choice |= {'finish_reason': reason} | draw(st.fixed_dictionaries({}, optional={'logprobs': _logprobs}))
    return {'object': 'chat.completion', **draw(envelope), 'choices': [choice]}


def chunks(answer: dict[str, Any], size: int) -> list[dict[str, Any]]:
    """`answer` as a stream whose texts come `size` characters at a time."""
    envelope = {**answer, 'object': 'chat.completion.chunk'}
    usage = envelope.pop('usage', None)
    [choice] = answer['choices']
    message = dict(choice['message'])
    calls = message.pop('tool_calls', [])
    deltas: list[dict[str, Any]] = [{'role': message.pop('role'), 'content': ''}]
    for name in ('reasoning_content', 'reasoning', 'content', 'refusal'):
        text = message.pop(name, None) or ''
        deltas += [{name: text[at : at + size]} for at in range(0, len(text), size)]
    for index, call in enumerate(calls):
        text = call['function']['arguments']
        deltas.append({'tool_calls': [{**call, 'index': index, 'function': {**call['function'], 'arguments': ''}}]})
        deltas += [
            {'tool_calls': [{'index': index, 'function': {'arguments': text[at : at + size]}}]}
            for at in range(0, len(text), size)
        ]
    choices = [{'index': 0, 'delta': delta, 'finish_reason': None} for delta in [*deltas, message]]
    last = {**{k: v for k, v in choice.items() if k != 'message'}, 'delta': {}}
    ended = [{**envelope, 'choices': []} | {'usage': usage}] if usage is not None else []
    return [*({**envelope, 'choices': [one]} for one in [*choices, last]), *ended]


# Sending

_FILES = {'.wav': 'audio/wav', '.pdf': 'application/pdf', '.txt': 'text/plain', '.png': 'image/png'}
_EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Wire:
    """Answers every request, and keeps what was posted."""

    providers: dict[str, Provider[AsyncOpenAI]]
    answers: list[Any] = field(default_factory=list)  # to the first post, the second ..., then `Hi`
    posted: list[tuple[str, dict[str, str], Any]] = field(default_factory=list)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        """Answer one request, as respx wants it."""
        if request.method == 'GET':
            kind = next(kind for suffix, kind in _FILES.items() if request.url.path.endswith(suffix))
            return httpx.Response(200, content=b'file', headers={'content-type': kind})
        body = json.loads(request.content)
        # Timeouts are a documented difference, and the SDK tells the server about them.
        headers = {name: value for name, value in request.headers.items() if name != 'x-stainless-read-timeout'}
        answer = next(iter(self.answers[len(self.posted) :]), None)
        self.posted.append((str(request.url), headers, body))
        if not body.get('stream'):
            return httpx.Response(200, json=answer or completion('Hi'))
        text = ''.join(f'data: {json.dumps(event)}\n\n' for event in answer or chunks(completion('Hi'), 9))
        return httpx.Response(200, text=f'{text}data: [DONE]\n\n', headers={'content-type': 'text/event-stream'})


@dataclass
class Call:
    """What a model is asked."""

    history: list[m.ModelMessage]
    parameters: ModelRequestParameters = field(default_factory=ModelRequestParameters)
    settings: ModelSettings | None = None
    stream: bool = False
    prepared: bool = True  # as an agent does; the direct API only does it where it must


def settled(response: m.ModelResponse) -> m.ModelResponse:
    """`response` without what differs from call to call."""
    return replace(response, timestamp=_EPOCH)


async def outcome(model: Model[Any], call: Call, wire: Wire) -> dict[str, Any]:
    """All that can be seen of a call: what was posted, the events, and the response or the error."""
    wire.posted.clear()
    events: list[Any] = []
    seen: dict[str, Any] = {'events': events}
    try:
        history = model.prepare_messages(call.history, call.parameters) if call.prepared else call.history
        if call.stream:
            async with model.request_stream(history, call.settings, call.parameters) as streamed:
                events += [event async for event in streamed]
            response = streamed.get()
        else:
            response = await model.request(history, call.settings, call.parameters)
        seen['response'] = settled(response)
    except Exception as error:
        # Some texts name the model's class, or the one whose code it is; how deep Python was, and at which byte of a
        # body, is no one's promise.
        text = '' if isinstance(error, RecursionError) else re.sub(r'position \d+', 'position N', str(error))
        seen['error'] = (
            type(error),
            text.replace(type(model).__name__, '<class>').replace('OpenAIChatModel', '<class>'),
        )
    seen['posted'] = list(wire.posted)
    return seen
