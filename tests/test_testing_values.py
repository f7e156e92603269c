"""What the scripted server sends, and what it refuses: values alone, without a connection."""

import re
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from oaicompat import testing
from oaicompat.testing import Reply, ScriptedServer, chunk, completion, tool_call


def test_sse_takes_values_and_raw_lines() -> None:
    reply = Reply.sse({'a': 'é'}, ': ping\n\n', b'\xff', done=False, status=202, headers={'content-type': 'text/x'})
    assert reply.pieces == (b'data: {"a": "\xc3\xa9"}\n\n', b': ping\n\n', b'\xff')
    assert (reply.status, reply.headers, reply.framing) == (202, {'content-type': 'text/x'}, 'chunked')


@given(st.binary(), st.data())
def test_cut_moves_boundaries_and_keeps_bytes(body: bytes, data: st.DataObject) -> None:
    offsets = data.draw(st.lists(st.integers(0, len(body))).map(sorted))
    reply = Reply(pieces=(body,)).cut(offsets)
    assert reply.body == body
    assert [len(piece) for piece in reply.pieces] == [end - start for start, end in pairwise([0, *offsets, len(body)])]


def test_cut_by_size() -> None:
    reply = Reply(pieces=(b'ab', b'cde'), status=400, delay=1)
    assert reply.cut(2) == Reply(pieces=(b'ab', b'cd', b'e'), status=400, delay=1)


@pytest.mark.parametrize('size', [0, -1, [-1], [6], [3, 2]])
def test_cut_refuses_impossible_places(size: int | list[int]) -> None:
    with pytest.raises(ValueError, match=r'^(a piece has at least one byte|offsets must rise from 0 to 5), not '):
        Reply(pieces=(b'abcde',)).cut(size)


@pytest.mark.parametrize(
    ('fields', 'message'),
    [
        ({'status': '404'}, "`status` is '404'; expected a number from 100 to 999"),
        ({'status': 99}, '`status` is 99; expected a number from 100 to 999'),
        ({'status': True}, '`status` is True; expected a number from 100 to 999'),
        ({'framing': 'chunk'}, "`framing` is 'chunk'; expected one of 'chunked', 'length', 'close', 'bare'"),
        ({'ending': 'cut'}, "`ending` is 'cut'; expected one of 'clean', 'drop', 'reset', 'stall', 'half-close'"),
    ],
)
def test_reply_refuses_what_there_is_not(fields: dict[str, Any], message: str) -> None:
    for make in (Reply, partial(Reply.json, {}), Reply.sse):
        with pytest.raises(ValueError, match=f'^{re.escape(message)}$'):
            make(**fields)


@pytest.mark.parametrize(
    ('script', 'message'),
    [
        (5, '`script` is of type int; expected a list of replies or a function'),
        ('[]', '`script` is of type str; expected a list of replies or a function'),
        (completion('Hi'), '`script` is of type dict; expected a list of replies or a function'),
        (Reply(), '`script` is of type Reply; put it in a list'),
        ([completion('Hi')], '`script[0]` is of type dict; expected a Reply; wrap it in Reply.json()'),
        ([Reply(), 'Hi'], '`script[1]` is of type str; expected a Reply; wrap it in Reply.json()'),
    ],
)
def test_server_refuses_what_is_no_script(script: Any, message: str) -> None:
    with pytest.raises(TypeError, match=f'^{re.escape(message)}$'):
        ScriptedServer(script)


def test_values_are_what_the_sdk_declares() -> None:
    """Validated strictly, where the SDK's own reading of an answer lets everything pass."""
    calls = [tool_call('f', '{"a"'), tool_call('g', {}, id='call_2')]
    ChatCompletion.model_validate(completion('Hi', model='x'))
    ChatCompletion.model_validate(completion(tool_calls=calls, usage=None, reasoning_content='so'))
    ChatCompletionChunk.model_validate(chunk({'role': 'assistant', 'tool_calls': [tool_call('f', '', index=0)]}))
    ChatCompletionChunk.model_validate(chunk(finish_reason='length'))


def test_values_have_the_fields_that_were_asked_for() -> None:
    [choice] = completion('Hi', finish_reason='length', reasoning_content='so')['choices']
    message = {'role': 'assistant', 'content': 'Hi', 'reasoning_content': 'so'}
    assert choice == {'index': 0, 'message': message, 'finish_reason': 'length'}
    assert 'usage' not in completion(usage=None)
    assert chunk(usage={'total_tokens': 1})['choices'] == []
    assert chunk('a')['choices'] == [{'index': 0, 'delta': {'content': 'a'}, 'finish_reason': None}]
    function = {'name': 'f', 'arguments': '{"a": "é"}'}
    assert tool_call('f', {'a': 'é'}, index=1) == {'index': 1, 'id': 'call_1', 'type': 'function', 'function': function}


def test_exports_are_sorted_and_there() -> None:
    assert testing.__all__ == sorted(name for name in testing.__all__ if hasattr(testing, name))
