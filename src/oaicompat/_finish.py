"""Finish reasons outside of the API reference, as servers use them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic_ai.messages import FinishReason

FINISH_REASONS: Mapping[object, FinishReason] = {
    # Documented by Z.ai, https://docs.z.ai/api-reference/llm/chat-completion; the others seen from gateways.
    'network_error': 'error',
    'sensitive': 'content_filter',
    'model_context_window_exceeded': 'length',
    'error': 'error',
    'abort': 'error',
    'aborted': 'error',
    'cancelled': 'error',
    'failed': 'error',
    'safety': 'content_filter',
    'SAFETY': 'content_filter',
    'blocked': 'content_filter',
    'refusal': 'content_filter',
    'guardrail_intervened': 'content_filter',
    'max_tokens': 'length',
    'MAX_TOKENS': 'length',
    'model_length': 'length',
    'end_turn': 'stop',
    'eos': 'stop',
    'eos_token': 'stop',
    'stop_sequence': 'stop',
    'STOP': 'stop',
    'complete': 'stop',
    'COMPLETE': 'stop',
    'tool_use': 'tool_call',
    'tool_call': 'tool_call',
    'TOOL_CALL': 'tool_call',
}
"""What finish reasons outside of the API reference mean."""

STOPS = frozenset({'stop', *(reason for reason, means in FINISH_REASONS.items() if means == 'stop')})
"""The finish reasons that say no more than that the answer is whole; with a call in it, it ends with that."""


def is_stop(reason: object) -> bool:
    """Whether a finish reason, which may be of any type, is one of `STOPS`."""
    return isinstance(reason, str) and reason in STOPS
