"""Bytes to events to JSON values, against a reference decoder and against all that servers get wrong."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import strategies
from hypothesis import example, given
from hypothesis import strategies as st

from oaicompat import _sse
from oaicompat._sse import DONE, ErrorText, Event, EventDecoder, EventTooLargeError, read_values

A, B = {'a': 1}, {'b': [2, {'c': '}{'}]}


def decoded(data: bytes, cuts: tuple[int, ...] = ()) -> tuple[list[Event], set[str]]:
    """The events and repairs of `data`, fed in pieces that end at `cuts`."""
    decoder = EventDecoder()
    ends = [*sorted({cut % (len(data) + 1) for cut in cuts}), len(data)]
    starts = [0, *ends[:-1]]
    events = [event for start, end in zip(starts, ends, strict=True) for event in decoder.feed(data[start:end])]
    return [*events, *decoder.finish()], decoder.repairs


def values_in(data: bytes) -> tuple[list[Any], set[str]]:
    events, repairs = decoded(data)
    return [value for event in events for value in read_values(event, repairs)], repairs


def reference(text: str) -> list[Event]:
    """What https://html.spec.whatwg.org/multipage/server-sent-events.html makes of a stream that ends properly."""
    events, kind, data = [], '', ''
    for line in re.split(r'\r\n|\n|\r', text.removeprefix('\ufeff'))[:-1]:
        name, _, value = line.partition(':')
        value = value.removeprefix(' ')
        if not line:
            if data:
                events.append(Event(kind, data.removesuffix('\n')))
            kind, data = '', ''
        elif name == 'event':
            kind = value
        elif name == 'data':
            data += f'{value}\n'
    return events


@pytest.mark.parametrize(
    ('data', 'events'),
    [
        (b'data: {"a": 1}\n\n', [Event('', '{"a": 1}')]),
        (b'data:x\n\ndata:  x\n\n', [Event('', 'x'), Event('', ' x')]),
        (b'data: 1\r\rdata: 2\r\n\r\n', [Event('', '1'), Event('', '2')]),
        (b'\xef\xbb\xbfdata: x\n\n', [Event('', 'x')]),
        (b': hello\n\nid: 1\nretry: 5\nunknown: x\ndata: x\n\n', [Event('', 'x')]),
        (b'event: a\ndata: x\n\ndata: y\n\n', [Event('a', 'x'), Event('', 'y')]),
        (b'data: x\nevent: a\n\n', [Event('a', 'x')]),
        (b'event: a\n\ndata: y\n\n', [Event('', 'y')]),
        (b'data: YHOO\ndata: +2\ndata: 10\n\n', [Event('', 'YHOO\n+2\n10')]),
        (b'data\n\ndata\ndata\n\n', [Event('', ''), Event('', '\n')]),
        (b'data: Z\xc3\xbcrich\n\n', [Event('', 'Zürich')]),
        (b'', []),
        (b'\n\n\r\n\r', []),
    ],
)
def test_a_stream_that_follows_the_rules(data: bytes, events: list[Event]) -> None:
    assert decoded(data) == (events, set())


def test_bytes_that_are_no_utf8_are_replaced() -> None:
    assert decoded(b'data: a\xff\xc3\n\n') == ([Event('', 'a\ufffd\ufffd')], {'sse.invalid_utf8'})


_words = st.text(st.characters(exclude_characters='\r\n{}[]', codec='utf-8'), max_size=8)
_lines = st.one_of(
    st.builds('data:{}'.format, _words),
    st.builds('data: {}'.format, _words),
    st.builds(': {}'.format, _words),
    st.builds('{}: {}'.format, st.sampled_from(['id', 'retry', 'made-up']), _words),
    st.builds('event: {}'.format, st.sampled_from(['message', 'error', 'a.b'])),
    st.sampled_from(['data', 'data:', ':', 'id', 'retry', '', '']),
)


@given(st.lists(st.tuples(_lines, st.sampled_from(['\n', '\r', '\r\n'])), max_size=20), st.booleans())
def test_the_rules_hold_for_any_well_formed_stream(lines: list[tuple[str, str]], bom: bool) -> None:
    # "\r" in front of "\n" would be one end of line, not two.
    text = ''.join(line + end for line, end in lines).replace('\r\n', '\n') + '\n\n'
    text = '\ufeff' + text if bom else text
    assert decoded(text.encode()) == (reference(text), set())


_ends = st.sampled_from([b'\n', b'\r', b'\r\n', b'\n\n', b'\r\n\r\n', b''])
_fragments = st.one_of(
    st.binary(max_size=6),
    st.sampled_from([b'data:', b'data: ', b'event: a', b'error: ', b': ', b'{"a":1}', b'[DONE]', b'{', b'}', b'"']),
    st.sampled_from(['ü'.encode(), b'\xef\xbb\xbf', b'\xff', b'\\', b'\x1e', b'ping']),
    _ends,
)
_streams = st.lists(_fragments, max_size=25).map(b''.join)


@given(_streams, st.lists(st.integers(0, 300), max_size=20))
@example(b'data: a\r\n\r\ndata: b\r\n\r\n', [8, 9, 10])
def test_any_split_gives_the_same(data: bytes, cuts: list[int]) -> None:
    assert decoded(data, tuple(cuts)) == decoded(data)
    assert decoded(data, tuple(range(len(data)))) == decoded(data)


@given(st.binary(max_size=200) | _streams)
def test_arbitrary_bytes_do_no_harm(data: bytes) -> None:
    for value in values_in(data)[0]:
        assert value is DONE or isinstance(value, ErrorText | dict | list)


@pytest.mark.parametrize(
    'text', ['data:' * 5000 + '{}', '{}data:' * 5000, '{"a":' * 100_000, '[' * 100_000, '9' * 5000]
)
@pytest.mark.parametrize('kind', ['', 'error'])
def test_depth_is_no_way_to_break_it(kind: str, text: str) -> None:
    assert all(isinstance(value, ErrorText | dict) for value in read_values(Event(kind, text), set()))


@pytest.mark.parametrize(
    ('data', 'values', 'repairs'),
    [
        (b'data: {"a":1}\n\ndata: [DONE]\n\n', [A, DONE], set()),
        (b'data: {"a":1}\n\n: ping\n\nid: 2\ndata: {"a":1}\n\n', [A, A], set()),
        (b'data: {"a":\ndata: 1}\n\n', [A], set()),
        (b'data: {"a":1}', [A], {'sse.unterminated'}),
        (b'data: {"a":1}\n', [A], {'sse.unterminated'}),
        (b'data: [DONE]  \n\n', [DONE], set()),
        (b'data: [DONE] and junk\n\n', [DONE], set()),
        (b'data: {"a":1}\ndata: {"a":1}\ndata: [DONE]\n\n', [A, A, DONE], {'sse.single_newlines'}),
        (b'data: {"a":1}\n: hello\ndata: {"a":1}\n\n', [A, A], {'sse.single_newlines'}),
        (b'{"a":1}\n{"a":1}\n', [A, A], {'sse.bare_json'}),
        (b'{\n  "a":\n  1\n}\n', [A], {'sse.bare_json'}),
        (b'{"a":1}data: [DONE]\n\n', [A, DONE], {'sse.bare_json', 'sse.doubled_field', 'sse.glued_values'}),
        (b'{"a":1}\ndata: [DONE]\n\n', [A, DONE], {'sse.bare_json'}),
        (b'data: {\n  "a": 1\n}\n\n', [A], {'sse.bare_json'}),
        (b'\x1e{"a":1}\n\x1e{"a":1}\n', [A, A], {'sse.bare_json'}),
        (b'data: {"a":1}{"a":1}\n\n', [A, A], {'sse.glued_values'}),
        (b'data: {"a":1}, {"a":1}\n\n', [A, A], {'sse.glued_values'}),
        (b'data: {"a":1}[DONE]\n\n', [A, DONE], {'sse.glued_values'}),
        (b'data: [{"a":1},{"a":1}]\n\n', [A, A], {'sse.glued_values'}),
        (b'data: data: {"a":1}\n\n', [A], {'sse.doubled_field'}),
        (b'data: : OPENROUTER PROCESSING\n\n', [], {'sse.wrapped_comment'}),
        (b'data: : PROCESSING\ndata: {"a":1}\n\n', [A], {'sse.wrapped_comment'}),
        (b'data: {"a":1}\ndata: ping\ndata: {"a":1}\n\n', [A, A], {'sse.single_newlines', 'sse.glued_values'}),
        (b'data: ping\ndata: {"a":1}\n\n', [A], set()),
        (b'event: ping\ndata: 2026-01-01\n\ndata: {"a":1}\n\n', [A], set()),
        (b'data: null\n\ndata:\n\ndata: keep-alive\n\n', [], set()),
        (b'{"a\ndata: {"a":1}\n\n', [ErrorText('{"a'), A], {'sse.bare_json'}),
    ],
)
def test_what_servers_get_wrong(data: bytes, values: list[Any], repairs: set[str]) -> None:
    assert values_in(data) == (values, repairs)


@pytest.mark.parametrize(
    ('data', 'error'),
    [
        (b'event: error\ndata: {"message": "m"}\n\n', {'error': {'message': 'm'}}),
        (b'event: error\ndata: {"error": {"message": "m"}}\n\n', {'error': {'message': 'm'}}),
        (b'event: error\ndata: "m"\n\n', ErrorText('m')),
        (b'event: error\ndata: m\n\n', ErrorText('m')),
        (b'event: error\ndata:\n\n', ErrorText('an error event without data')),
        (b'event: error\n{"message": "m"}\n', {'error': {'message': 'm'}}),
        (b'error: {"message": "m"}\n\n', {'error': {'message': 'm'}}),
        (b'error: m\n', ErrorText('m')),
        (b'data: error: m\n\n', ErrorText('m')),
        (b'data: Error: {"message": "m"}\n\n', {'error': {'message': 'm'}}),
        (b'data: upstream failed\n\n', ErrorText('upstream failed')),
        (b'data: {"a":\n\n', ErrorText('{"a":')),
    ],
)
def test_errors(data: bytes, error: object) -> None:
    assert values_in(data)[0] == [error]
    assert values_in(b'data: {"a":1}\n\n' + data)[0] == [A, error]


def test_a_type_belongs_to_the_data_behind_it_where_single_newlines_part_events() -> None:
    data = b'event: a\ndata: {"a":1}\nevent: error\ndata: {"b":1}\nevent: c\ndata: {"c":1}\n\n'
    assert decoded(data)[0] == [Event('a', '{"a":1}'), Event('error', '{"b":1}'), Event('c', '{"c":1}')]


def test_what_is_no_event_stream_is_shown() -> None:
    decoder = EventDecoder()
    assert decoder.feed(b'<html>\n<body>' + b'x' * 1000 + b'\n') == []
    assert decoder.ignored == '<html>\n<body>' + 'x' * 487


def _framed(draw: st.DrawFn, text: str, pretty: str, style: str) -> str:
    comment = draw(st.sampled_from(['', '', ': ping\n', ': {"not": "this"}\n']))
    several = ''.join(f'data: {line}\n' for line in pretty.split('\n'))
    return (
        comment
        + {
            'proper': f'data: {text}\n\n',
            'single': f'data: {text}\n',
            'doubled': f'data: data: {text}\n\n',
            'several': f'{several}\n',
            'pretty': f'{pretty}\n',
            'lines': f'{text}\n',
            'sequence': f'\x1e{text}\n',
            'glued': f'data: {text}{text}\n\n',
            'named': f'event: message\ndata: {text}\n\n',
            'continued': f'data: {pretty}\n\n',
        }[style]
    )


_styles = ['proper', 'single', 'doubled', 'several', 'pretty', 'lines', 'sequence', 'glued', 'named', 'continued']


@st.composite
def framings(draw: st.DrawFn) -> tuple[bytes, list[Any]]:
    """Objects in lenient framings, mixed in one stream, and the objects that must come out."""
    text, values = '', []
    for value in draw(st.lists(strategies.objects, max_size=6)):
        style = draw(st.sampled_from(_styles))
        # Between the lines of an event under way a bare line starts the next one.
        text += _framed(draw, json.dumps(value), json.dumps(value, indent=2), style)
        values += [value] * (2 if style == 'glued' else 1)
    text = text.replace('\n', draw(st.sampled_from(['\n', '\r\n', '\r'])))
    return (text.rstrip() if draw(st.booleans()) else text).encode(), values


@given(framings(), st.lists(st.integers(0, 2000), max_size=10))
def test_every_object_comes_out_once_and_in_order(framing: tuple[bytes, list[Any]], cuts: list[int]) -> None:
    data, told = framing
    values = [value for value in told if value != {}]  # which keeps the stream alive
    assert values_in(data)[0] == values
    assert decoded(data, tuple(cuts)) == decoded(data)


@pytest.mark.parametrize('size', [1, 7, 1000])
@pytest.mark.parametrize(
    ('data', 'fits'),
    [
        (b'data: ' + b'x' * 90 + b'\n\n', True),
        ((b'data: ' + b'x' * 90 + b'\n\n') * 5, True),
        ((b': ' + b'x' * 90 + b'\n') * 5, True),
        (b'data: ' + b'x' * 100 + b'\n\n', False),
        (b'data: ' + b'x' * 100, False),
        (b': ' + b'x' * 100, False),
        (b'data: xxxxxxxx\n' * 10, False),
        (b' data: xxxxxxx\n' * 10, False),
        (b'{"a":\n' + b'1234567,\n' * 20, False),
        (b'data:\n' * 60, False),
    ],
)
def test_an_event_is_bounded(monkeypatch: pytest.MonkeyPatch, data: bytes, fits: bool, size: int) -> None:
    """The limit counts the bytes of one event, however they are split, and what came before comes out first."""
    monkeypatch.setattr(_sse, 'MAX_EVENT', 100)
    decoder, events = EventDecoder(), []
    pieces = [b'data: 1\n\n'] if size == 1 else []
    data = data if pieces else b'data: 1\n\n' + data
    pieces += [data[at : at + size] for at in range(0, len(data), size)]

    def read() -> None:
        for piece in pieces:
            events.extend(decoder.feed(piece))
        events.extend(decoder.finish())

    if fits:
        read()
    else:
        with pytest.raises(EventTooLargeError):
            read()
    assert events[0] == Event('', '1')


def test_small_reads_of_a_large_event() -> None:
    data = b'data: {"a": "' + b'x' * 300_000 + b'"}\n\n'
    assert decoded(data, tuple(range(len(data)))) == decoded(data)
