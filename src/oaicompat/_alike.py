"""Whether pydantic-ai does with messages and streams what it did when this was written.

What is kept from one turn to the next rests on that, and the short path of a stream. A class of somebody's own, in
front of or behind ours, a method that somebody put in its place, on an object, a class or a module, and a pydantic-ai
that does something else are asked for all messages and chunks, each time.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable
from functools import cache
from operator import is_
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, cast

import pydantic_ai
from pydantic_ai import messages
from pydantic_ai.models import Model
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIStreamedResponse

_PARENT = str(Path(pydantic_ai.__file__).parent)
_OURS = 'oaicompat.models'
_MAPPING = ('_finalize', '_map', '_Map', '_auto', '_carries', '_get_instruction', '_inline', 'accepts')
_READ = ('profile', 'system')

Told = tuple[str, ...] | frozenset[str]
"""Names, or how they begin."""


def maps_alike(model: object) -> bool:
    """Whether `model` maps messages as `OpenAIChatModel` does, but for what we override."""
    return _is_alike(model, OpenAIChatModel, _MAPPING)


def prepares_alike(model: object, passes: frozenset[str]) -> bool:
    """Whether `model` prepares messages as `Model` does, by `passes` and no others, but for what we override."""
    return reads_only(Model.prepare_messages, passes) and _is_alike(model, Model, passes | _PREPARING)


_PREPARING = frozenset(('prepare_messages',))


def streams_alike(response: object) -> bool:
    """Whether a streamed response does with a chunk what `OpenAIStreamedResponse` did, but for what we override.

    Its loop may be fed, and texts given to its methods for them, since they read nothing of a chunk but what was read.
    """
    kind, parent = cast(Any, type(response)), OpenAIStreamedResponse
    theirs = all(getattr(kind, name, None) is getattr(parent, name, None) for name in _PASSED_BY)
    return (
        theirs
        and _is_fed(kind)
        and vars(response).keys().isdisjoint((*_PASSED_BY, *_FED))
        and all(reads_only(getattr(parent, name), names) for name, names in _READ_OF_CHUNKS.items())
        and as_shipped(parent, frozenset((*_PASSED_BY, *_FED)))
    )


# What the short path passes by, or calls: where an upstream class has its own, there is none.
_PASSED_BY = (
    '_map_part_delta', '_map_text_delta', '_map_provider_details', '_map_chunk_provider_details',
    '_record_unmapped_chunk_data', '_map_usage', '_advance_part_boundary', '_add_usage',
)  # fmt: skip
_FED = ('_get_event_iterator', '_validate_response', '_map_thinking_delta', '_map_tool_call_delta')


@cache
def _is_fed(kind: Any) -> bool:
    """Whether a class of ours stands in front of the parent itself, or of one that leaves these methods alone."""
    others = [base for base in kind.__mro__ if base.__module__ != _OURS]
    first = {name: next((base for base in others if name in vars(base)), None) for name in _FED}
    return all(base is OpenAIStreamedResponse for base in first.values())


def _is_alike(model: object, parent: type[Any], told: Told) -> bool:
    # What is read, the parent keeps there.
    patched = any(_is_told(name, told) and name not in _READ for name in vars(model))
    return not patched and not _is_own(cast(Hashable, type(model)), told) and as_shipped(parent, told)


def _is_told(name: str, told: Told) -> bool:
    return name in told if isinstance(told, frozenset) else name.startswith(told) or name in _READ


@cache
def _is_own(kind: Any, told: Told) -> bool:
    """Whether a class other than ours has something of its own in front of pydantic-ai's, wherever it stands."""
    front = kind.__mro__[: kind.__mro__.index(OpenAIChatModel)]
    return any(_is_told(name, told) for base in front if base.__module__ != _OURS for name in vars(base))


@cache
def reads_only(function: Any, names: frozenset[str]) -> bool:
    """Whether a function is pydantic-ai's own and names nothing but `names`: then it does what it did."""
    return _is_shipped(function) and type(function) is FunctionType and _names(function.__code__) <= names


def _names(code: CodeType) -> set[str]:
    nested = (_names(constant) for constant in code.co_consts if isinstance(constant, CodeType))
    return set(code.co_names).union(*nested)


def as_shipped(kind: type[Any], told: Told) -> bool:
    """Whether nobody put a method of a class, or a function beside it, in another's place."""
    now = [*vars(kind).values()]
    last = _VERIFIED.get((kind, told), ())
    if len(now) != len(last) or not all(map(is_, now, last)):
        if not all(_is_shipped(value) for name, value in vars(kind).items() if _is_told(name, told)):
            return False
        _VERIFIED[kind, told] = now
    return all(map(_is_as_it_was, _KNOWN))


_VERIFIED: dict[tuple[type[Any], Told], list[object]] = {}


def _is_shipped(value: object) -> bool:
    """Whether a function, if it is one, is pydantic-ai's own."""
    if isinstance(value, property):
        value = value.fget
    value = getattr(value, '__func__', value)
    return type(value) is not FunctionType or value.__code__.co_filename.startswith(_PARENT)


def _is_as_it_was(place: Any) -> bool:
    now = vars(place)
    if not all(map(is_, map(now.get, _KNOWN[place]), _KNOWN[place].values())):
        return False
    if len(now) != _COUNTS[place] and isinstance(place, type):  # then there may be a method more
        if any(name not in _KNOWN[place] for name in _methods(place)):
            return False
        _COUNTS[place] = len(now)
    return True


def _methods(place: Any) -> dict[str, object]:
    return {name: value for name, value in vars(place).items() if isinstance(value, FunctionType | property)}


# fmt: off
_LOOP = frozenset("""
    MapStreamDecodeErrors ModelAPIError _add_usage _flush_pending_chat_annotations _has_finish_reason _has_refusal
    _logprobs _map_api_errors _map_chunk_provider_details _map_finish_reason _map_part_delta _map_provider_details
    _map_usage _missing_finish_reason _model_id_namespace _model_name _model_profile _model_settings
    _provider_timestamp _publish_unmapped_chunks _record_unmapped_chunk_data _refusal_text _validate_response bool
    cancelled choices created delta finish_reason get id map_api_errors model model_dump model_name moderation
    number_to_datetime pop provider_details provider_response_id refusal service_tier usage
""".split())  # noqa: SIM905
_DELTAS = frozenset("""
    DEFAULT_THINKING_TAGS PartStartEvent TextPart ThinkingPart UserWarning __name__ _advance_part_boundary
    _awaiting_text_after_reasoning _content_generation _held_text_whitespace _map_text_delta _map_thinking_delta
    _map_tool_call_delta _map_tool_call_provider_details _model_profile _parts_manager _pending_raw_annotations
    _raw_text_content _reasoning_generation arguments cast chain content delta extend function get getattr
    handle_text_delta handle_thinking_delta handle_tool_call_delta handle_tool_call_delta_events id index isinstance
    isspace itertools list map_tool_call_provider_details name object part provider_name split_content_parts str
    tool_calls type warn warnings
""".split())  # noqa: SIM905
_READ_OF_CHUNKS = {
    '_get_event_iterator': _LOOP, '_validate_response': frozenset(('_response',)), '_map_part_delta': _DELTAS,
    '_map_text_delta': _DELTAS, '_map_thinking_delta': _DELTAS, '_map_tool_call_delta': _DELTAS,
}
"""What these methods of pydantic-ai 2.63 to 2.68 name."""
# fmt: on

_KINDS = (Model, OpenAIChatModel, OpenAIStreamedResponse)
_PLACES = (
    *(sys.modules[name] for name in dict.fromkeys(kind.__module__ for kind in _KINDS)),
    *(kind for kind in vars(messages).values() if isinstance(kind, type) and kind.__name__.endswith('Part')),
    *(messages.ModelRequest, messages.ModelResponse),
)
# Modules, and the classes of messages and parts, which say themselves what they are as text.
_KNOWN: dict[Any, dict[str, object]] = {place: _methods(place) for place in _PLACES}
_COUNTS: dict[Any, int] = {place: len(vars(place)) for place in _PLACES}
