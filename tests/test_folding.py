"""Chunks put together to a completion, for servers that only stream."""

from __future__ import annotations

from oaicompat._completion import fold
from oaicompat.testing import chunk


def test_a_stream_that_nobody_asked_for_keeps_every_field() -> None:
    """What does not stream in pieces is as it would be in an answer that came whole."""
    cited = {'type': 'url_citation', 'url_citation': {'url': 'u', 'title': 't', 'start_index': 0, 'end_index': 1}}
    first = {**chunk({'content': 'H', 'annotations': [cited]}), 'service_tier': 'flex', 'provider': 'made-up'}
    call_ = {'index': 0, 'id': 'call_1', 'type': 'function', 'function': {'name': 'lookup', 'arguments': '{'}}
    second = chunk({'content': 'i', 'tool_calls': [{**call_, 'extra_content': {'google': {'thought_signature': 's'}}}]})
    third = chunk({'tool_calls': [{'index': 0, 'function': {'arguments': '}'}}]}, finish_reason='tool_calls')
    folded = fold([first, second, third])
    assert {key: folded[key] for key in ('service_tier', 'provider', 'object')} == {
        'service_tier': 'flex',
        'provider': 'made-up',
        'object': 'chat.completion',
    }
    assert folded['choices'] == [
        {
            'index': 0,
            'finish_reason': 'tool_calls',
            'message': {
                'role': 'assistant',
                'content': 'Hi',
                'annotations': [cited],
                'tool_calls': [
                    {
                        'id': 'call_1',
                        'type': 'function',
                        'function': {'name': 'lookup', 'arguments': '{}'},
                        'extra_content': {'google': {'thought_signature': 's'}},
                    }
                ],
            },
        }
    ]
