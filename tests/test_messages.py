"""Messages in the shape that a profile asks for: content, system messages, turns, results, reasoning."""

from __future__ import annotations

import pytest
from bodies import (
    HI,
    IMAGE,
    LOCKED,
    SYSTEM,
    Row,
    call,
    calling,
    chat,
    check,
    responses,
    result,
    said,
    text,
)

STRING = {'compat_text_content': 'string'}
CONTENT: dict[str, Row] = {
    'null': (
        chat(calling('1', content=''), calling('2', content=[]), calling('3', content='hm')),
        {'compat_assistant_content': 'null'},
        chat(calling('1'), calling('2'), calling('3', content='hm')),
    ),
    'empty': (
        chat({'role': 'assistant', 'function_call': {'name': 'look'}}, calling('2'), said('assistant', None)),
        {'compat_assistant_content': 'empty'},
        chat(said('assistant', '', function_call={'name': 'look'}), calling('2', content=''), said('assistant', None)),
    ),
    'omit': (
        chat(calling('1'), calling('2', content=[text('hm')])),
        {'compat_assistant_content': 'omit'},
        chat({'role': 'assistant', 'tool_calls': [call('1')]}, calling('2', content=[text('hm')])),
    ),
    'content that fits': (chat(HI, None, calling('1'), 'x'), {'compat_assistant_content': 'null'}, None),
    'strings': (
        chat(*(said(role, [text('a'), text(''), text('b')]) for role in ('system', 'developer', 'user', 'assistant'))),
        STRING,
        chat(*(said(role, 'a\n\nb') for role in ('system', 'developer', 'user', 'assistant'))),
    ),
    'strings of tools': (chat(result('1', [text('a'), text('b')])), STRING, chat(result('1', 'a\nb'))),
    'an empty list': (chat(said('user', [])), STRING, chat(said('user', ''))),
    'a list with an image': (chat(said('user', [text('a'), IMAGE])), STRING, None),
    'odd parts': (
        chat(said('user', [text('a'), None]), said('user', [{'type': 'text'}]), said('x', [text('a')])),
        STRING,
        None,
    ),
}

LIFT = {'compat_late_system': 'lift'}
LATE_USER = {'compat_late_system': 'user'}
NO_SYSTEM = {'compat_system': 'user'}
SYSTEMS: dict[str, Row] = {
    'lift': (
        chat(SYSTEM, HI, said('system', 'A'), said('assistant', 'yes'), said('developer', [text('B'), text('C')])),
        LIFT,
        chat(said('system', 'Be kind.\n\nA\n\nB\n\nC'), HI, said('assistant', 'yes')),
    ),
    'lift to a list': (
        chat(said('system', [text('A')]), HI, said('system', 'B')),
        LIFT,
        chat(said('system', [text('A'), text('B')]), HI),
    ),
    'lift to the last leading one': (
        chat(SYSTEM, said('developer', 'A'), HI, said('system', 'B')),
        LIFT,
        chat(SYSTEM, said('developer', 'A\n\nB'), HI),
    ),
    'lift, none leads': (
        chat(HI, said('system', 'A', name='x'), HI, said('system', 'B')),
        LIFT,
        chat(said('system', 'A\n\nB', name='x'), HI, HI),
    ),
    'lift, odd content': (
        chat(said('system', 5), HI, said('system', {'x': 1}), said('system', 'A'), {'role': 'system'}),
        LIFT,
        chat(said('system', 5), said('system', 'A'), HI, said('system', {'x': 1})),
    ),
    'lift, one object again and again': (
        chat(SYSTEM, HI, SYSTEM, SYSTEM),
        LIFT,
        chat(said('system', 'Be kind.\n\nBe kind.\n\nBe kind.'), HI),
    ),
    'lift, one object, none leads': (chat(HI, SYSTEM, SYSTEM), LIFT, chat(said('system', 'Be kind.\n\nBe kind.'), HI)),
    'lift, none late': (chat(SYSTEM, SYSTEM, HI), LIFT, None),
    'late as user': (
        chat(SYSTEM, HI, said('system', [text('A')], name='x'), None, said('developer', 'B')),
        LATE_USER,
        chat(SYSTEM, HI, said('user', [text('A')], name='x'), None, said('user', 'B')),
    ),
    'none late': (chat(SYSTEM, HI), LATE_USER, None),
    'fold': (
        chat(SYSTEM, said('system', [text('A'), text('B')]), HI),
        NO_SYSTEM,
        chat(said('user', 'Be kind.\n\nA\n\nB\n\nhi')),
    ),
    'fold into a list': (
        chat(SYSTEM, said('user', [IMAGE], name='Ada')),
        NO_SYSTEM,
        chat(said('user', [text('Be kind.'), IMAGE], name='Ada')),
    ),
    'fold late ones': (
        chat(HI, said('assistant', 'yes'), said('system', 'A'), calling('1'), result('1'), HI),
        NO_SYSTEM,
        chat(HI, said('assistant', 'yes'), calling('1'), result('1'), said('user', 'A\n\nhi')),
    ),
    'no user behind': (
        chat(HI, said('system', 'A'), said('assistant', 'yes'), said('system', 'B')),
        NO_SYSTEM,
        chat(HI, said('assistant', 'yes'), said('user', 'A\n\nB')),
    ),
    'system alone': (chat(SYSTEM), NO_SYSTEM, chat(said('user', 'Be kind.'))),
    'fold, odd content': (
        chat(said('system', {'x': 1}), said('user', 5), SYSTEM, HI),
        NO_SYSTEM,
        chat(said('user', {'x': 1}), said('user', 5), said('user', 'Be kind.\n\nhi')),
    ),
    'no system': (chat(HI, None), NO_SYSTEM, None),
    'lift, then fold': (
        chat(SYSTEM, HI, said('system', 'A')),
        {**LIFT, **NO_SYSTEM},
        chat(said('user', 'Be kind.\n\nA\n\nhi')),
    ),
}

TURNS = {'compat_roles': 'alternate'}
AFTER_TOOL = {'compat_after_tool': 'assistant'}
USER_LAST = {'compat_last_message': 'user'}
ROLES: dict[str, Row] = {
    'users': (
        chat(SYSTEM, SYSTEM, HI, said('user', 'ho'), said('user', [IMAGE])),
        TURNS,
        chat(SYSTEM, SYSTEM, said('user', [text('hi\n\nho'), IMAGE])),
    ),
    'assistants': (
        chat(HI, said('assistant', 'a', reasoning='x'), said('assistant', None), calling('1', reasoning='y')),
        TURNS,
        chat(HI, calling('1', content='a', reasoning='x\n\ny')),
    ),
    'calls stay last': (chat(HI, calling('1'), said('assistant', 'a'), HI), TURNS, None),
    'a blank reasoning is none': (
        chat(HI, said('assistant', 'a', reasoning='x'), calling('1', reasoning=' ')),
        TURNS,
        chat(HI, calling('1', content='a', reasoning='x')),
    ),
    'details': (
        chat(HI, said('assistant', '', reasoning_details=LOCKED), said('assistant', 'b', reasoning_details=[{}])),
        TURNS,
        chat(HI, said('assistant', 'b', reasoning_details=[*LOCKED, {}])),
    ),
    'two speakers': (chat({**HI, 'name': 'Ada'}, {**HI, 'name': 'Bob'}, HI), TURNS, None),
    'one speaker': (
        chat({**HI, 'name': 'Ada'}, {**HI, 'name': 'Ada'}),
        TURNS,
        chat(said('user', 'hi\n\nhi', name='Ada')),
    ),
    'fields that clash': (chat(said('user', 'a', x=1), said('user', 'b', x=2)), TURNS, None),
    'odd content apart': (chat(HI, said('user', 5), None, HI), TURNS, None),
    'no content': (chat(HI, {'role': 'assistant'}, {'role': 'assistant'}), TURNS, chat(HI, {'role': 'assistant'})),
    'assistant first': (
        chat(SYSTEM, said('assistant', 'a'), HI),
        TURNS,
        chat(SYSTEM, said('user', '...'), said('assistant', 'a'), HI),
    ),
    'as they should be': (chat(SYSTEM, HI, calling('1'), result('1'), said('assistant', 'a')), TURNS, None),
    'after tool': (
        chat(HI, calling('1', '2'), result('1'), result('2'), HI),
        AFTER_TOOL,
        chat(HI, calling('1', '2'), result('1'), result('2'), said('assistant', 'Done.'), HI),
    ),
    'assistant after tool': (chat(HI, calling('1'), result('1'), said('assistant', 'a'), HI), AFTER_TOOL, None),
    'user last': (
        chat(HI, said('assistant', 'a')),
        USER_LAST,
        chat(HI, said('assistant', 'a'), said('user', 'Continue.')),
    ),
    'call last': (chat(HI, calling('1')), USER_LAST, None),
    'no messages': (chat(), {**USER_LAST, **TURNS, **AFTER_TOOL}, None),
    'a late system message between tool and user': (
        chat(SYSTEM, HI, calling('1'), said('system', 'A'), result('1'), HI),
        {'compat_tool_order': 'paired', **LATE_USER, **TURNS, **AFTER_TOOL},
        chat(SYSTEM, HI, calling('1'), result('1'), said('assistant', 'Done.'), said('user', 'A\n\nhi')),
    ),
}

PAIRED = {'compat_tool_order': 'paired'}
ORDER: dict[str, Row] = {
    'moved': (
        chat(HI, calling('1', '2'), SYSTEM, result('2', 'b'), HI, result('1', 'a')),
        PAIRED,
        chat(HI, calling('1', '2'), result('1', 'a'), result('2', 'b'), SYSTEM, HI),
    ),
    'no call': (
        chat(result('1'), HI, calling('1'), result('1', 'b'), {**result('2', [text('a'), text('b')]), 'name': 'look'}),
        PAIRED,
        chat(
            said('user', 'Result of the tool 1: seen'),
            HI,
            calling('1'),
            result('1', 'b'),
            said('user', 'Result of the tool look: a\nb'),
        ),
    ),
    'no call, image': (
        chat(result('1', [IMAGE])),
        PAIRED,
        chat(said('user', [text('Result of the tool 1:'), IMAGE])),
    ),
    'no call, odd content': (chat(result('1', {'x': 1})), PAIRED, None),
    'no result': (
        chat(calling('1', '2'), result('2'), HI),
        PAIRED,
        chat(calling('1', '2'), result('1', 'No result.'), result('2'), HI),
    ),
    'ids counted anew': (
        chat(HI, calling('1'), result('1', 'a'), HI, calling('1'), HI, result('1', 'b')),
        PAIRED,
        chat(HI, calling('1'), result('1', 'a'), HI, calling('1'), result('1', 'b'), HI),
    ),
    'one id twice': (
        chat(calling('1', '1'), HI, result('1', 'a'), result('1', 'b')),
        PAIRED,
        chat(calling('1', '1'), result('1', 'a'), result('1', 'b'), HI),
    ),
    'two results': (
        chat(calling('1', '2'), result('1', 'a'), result('2'), result('1', 'b')),
        PAIRED,
        chat(calling('1', '2'), result('1', 'a'), result('1', 'b'), result('2')),
    ),
    'no ids': (
        chat(said('assistant', None, tool_calls=[{'function': {}}, 5]), HI, said('tool', 'a'), result('', 'b')),
        PAIRED,
        None,
    ),
    'odd': (chat(None, 5, said('assistant', 'a', tool_calls=5), {'role': [], 'tool_call_id': '1'}), PAIRED, None),
    'in order': (chat(HI, calling('1', '2'), result('1'), result('2'), said('assistant', 'a')), PAIRED, None),
}

NEVER = {'compat_echo_reasoning': 'never'}
FIELD = {'compat_echo_reasoning': 'reasoning_content'}
IN_DETAILS = {'compat_echo_reasoning': 'reasoning_details'}
THOUGHT = {'type': 'thinking', 'thinking': [text('hm')]}
REASONING: dict[str, Row] = {
    'never': (
        chat(
            {**HI, 'reasoning': 'mine'},
            said('assistant', '<think>a</think>b', reasoning_content='x', reasoning='', thinking=1),
            calling('1', reasoning_text='x', reasoning_details=LOCKED),
        ),
        NEVER,
        chat({**HI, 'reasoning': 'mine'}, said('assistant', '<think>a</think>b'), calling('1')),
    ),
    'never, in parts': (
        chat(
            said('assistant', [THOUGHT, text('a'), None]), said('assistant', [THOUGHT]), calling('1', content=[THOUGHT])
        ),
        NEVER,
        chat(said('assistant', [text('a'), None]), said('assistant', ''), calling('1')),
    ),
    'never, parts to a string': (
        chat(said('assistant', [THOUGHT, text('a')])),
        {**NEVER, **STRING},
        chat(said('assistant', 'a')),
    ),
    'never, Responses': (
        responses(input=[HI, {'type': 'reasoning', 'id': 'r', 'summary': []}, 5]),
        NEVER,
        responses(input=[HI, 5]),
    ),
    'never, none there': (chat(HI, said('assistant', 'a')), NEVER, None),
    'never, none there, Responses': (responses(input=[HI]), NEVER, None),
    'one field': (
        chat(
            HI,
            said('assistant', 'a', reasoning='x'),
            said('assistant', 'a', thinking='x', reasoning_content='y'),
            said('assistant', 'a', reasoning_details=[{'text': 'x'}, {'summary': 'y'}, 'z', {'data': 'w'}]),
            said('assistant', 'a', reasoning_text={'content': 'x'}, reasoning=''),
        ),
        FIELD,
        chat(
            HI,
            said('assistant', 'a', reasoning_content='x'),
            said('assistant', 'a', reasoning_content='y'),
            said('assistant', 'a', reasoning_content='x\n\ny\n\nz'),
            said('assistant', 'a', reasoning_content='x'),
        ),
    ),
    'calls without reasoning': (
        chat(HI, calling('1'), result('1'), calling('2', reasoning_content=''), said('assistant', 'a')),
        FIELD,
        chat(
            HI,
            calling('1', reasoning_content=' '),
            result('1'),
            calling('2', reasoning_content=' '),
            said('assistant', 'a'),
        ),
    ),
    'what only the server can read': (
        chat(calling('1', reasoning_details=LOCKED), calling('2', reasoning_content=5)),
        FIELD,
        chat(calling('1', reasoning_details=LOCKED, reasoning_content=' '), calling('2', reasoning_content=5)),
    ),
    'details': (
        chat(said('assistant', 'a', reasoning='x'), calling('1', reasoning_details=LOCKED), calling('2')),
        IN_DETAILS,
        chat(
            said('assistant', 'a', reasoning_details=[{'type': 'reasoning.text', 'text': 'x'}]),
            calling('1', reasoning_details=LOCKED),
            calling('2', reasoning_details=[{'type': 'reasoning.text', 'text': ' '}]),
        ),
    ),
    'as it should be': (chat(HI, calling('1', reasoning_content='x'), None), FIELD, None),
    'one field, Responses': (responses(input=[{'type': 'reasoning'}]), FIELD, None),
    'reasoning of messages that become one': (
        chat(HI, said('assistant', 'a', reasoning='x'), calling('1', reasoning_content='y')),
        {**FIELD, **TURNS},
        chat(HI, calling('1', content='a', reasoning_content='x\n\ny')),
    ),
}

ROWS = {
    f'{table}: {name}': row
    for table, rows in {
        'content': CONTENT,
        'system': SYSTEMS,
        'roles': ROLES,
        'order': ORDER,
        'reasoning': REASONING,
    }.items()
    for name, row in rows.items()
}


@pytest.mark.parametrize('name', ROWS)
def test_row(name: str) -> None:
    check(ROWS[name])
