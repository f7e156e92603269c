"""One refusal of each kind over the wire: roles, content, turns, reasoning, ids."""

from __future__ import annotations

import pytest
from pydantic_ai.messages import (
    ImageUrl,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from refusing import (
    LOOK,
    Case,
    assistant,
    at_work,
    called,
    chat,
    function,
    refusal,
    result,
    roles,
    run,
    said,
    system,
    texts,
    user,
)

from oaicompat.testing import Reply

IMAGE = {'type': 'image_url', 'image_url': {'url': 'https://example.com/c.png'}}
CALLED = [user('go'), assistant(None, 'call_0'), result('4')]

CASES: dict[str, Case] = {
    '8.7 late system': Case(
        [
            (
                lambda body: 'system' in roles(body)[1:],
                refusal("Value is not callable: raise_exception('System message must be at the beginning.')", 500),
            )
        ],
        [
            chat(system('A\n\nB'), user('go'), assistant('ok'), system('C'), user('on')),
            chat(system('A\n\nB\n\nC'), user('go'), assistant('ok'), user('on')),
        ],
        {'compat_late_system': 'lift'},
        ['request.system'],
        messages=[
            ModelRequest([SystemPromptPart('A'), SystemPromptPart('B'), UserPromptPart('go')]),
            ModelResponse([TextPart('ok')]),
            ModelRequest([SystemPromptPart('C'), UserPromptPart('on')]),
        ],
    ),
    '8.7 late, then system at all': Case(
        [(lambda body: 'system' in roles(body), refusal('System role not supported'))],
        [
            chat(system('A'), user('go'), assistant('ok'), system('C'), user('on')),
            chat(system('A\n\nC'), user('go'), assistant('ok'), user('on')),
            chat(user('A\n\nC\n\ngo'), assistant('ok'), user('on')),
        ],
        {'compat_late_system': 'lift', 'compat_system': 'user'},
        ['request.system'],
        messages=[
            ModelRequest([SystemPromptPart('A'), UserPromptPart('go')]),
            ModelResponse([TextPart('ok')]),
            ModelRequest([SystemPromptPart('C'), UserPromptPart('on')]),
        ],
    ),
    '8.7 system at all': Case(
        [
            (
                lambda body: 'system' in roles(body),
                refusal('Developer instruction is not enabled for models/gemma-3-27b-it'),
            )
        ],
        [chat(system('A'), user([*texts('see'), IMAGE])), chat(user([*texts('A', 'see'), IMAGE]))],
        {'compat_system': 'user'},
        ['request.system'],
        messages=[
            ModelRequest([SystemPromptPart('A'), UserPromptPart(['see', ImageUrl('https://example.com/c.png')])])
        ],
    ),
    '8.8 null': Case(
        [
            (
                lambda body: None in at_work(body, 'assistant'),
                refusal('messages[1].content: Input should be a valid string, got null'),
            )
        ],
        [
            chat(*CALLED, tools=[function('look')], tool_choice='auto'),
            chat(user('go'), assistant('', 'call_0'), result('4'), tools=[function('look')], tool_choice='auto'),
        ],
        {'compat_assistant_content': 'empty'},
        ['request.assistant_content'],
        messages=called('4'),
        parameters={'function_tools': [LOOK]},
    ),
    '8.9 list results': Case(
        [
            (
                lambda body: any(isinstance(content, list) for content in at_work(body, 'tool')),
                refusal(
                    'Failed to deserialize the JSON body into the target type: '
                    'messages[2]: invalid type: sequence, expected a string',
                    422,
                ),
            )
        ],
        [
            chat(user('go'), assistant(None, 'call_0', 'call_1'), result(texts('a', 'b')), result('4', 'call_1')),
            chat(user('go'), assistant(None, 'call_0', 'call_1'), result('a\nb'), result('4', 'call_1')),
        ],
        {'compat_tool_return': 'joined'},
        ['request.tool_return'],
        later=[],
        messages=called(['a', 'b'], '4'),
    ),
    '8.9 lists of users': Case(
        [
            (
                lambda body: isinstance(at_work(body, 'user')[0], list),
                refusal('messages.0.content: Input should be a valid string'),
            )
        ],
        [chat(user(texts('a', 'b'))), chat(user('a\n\nb'))],
        {'compat_text_content': 'string'},
        ['request.content'],
        messages=[ModelRequest([UserPromptPart(['a', 'b'])])],
    ),
    '8.11 last': Case(
        [
            (
                lambda body: roles(body)[-1] == 'assistant',
                refusal(
                    'Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant'
                ),
            )
        ],
        [chat(user('go'), assistant('so')), chat(user('go'), assistant('so'), user('Continue.'))],
        {'compat_last_message': 'user'},
        ['request.roles'],
        messages=said('go', 'so'),
    ),
    '8.11 turns': Case(
        [
            (
                lambda body: roles(body)[:2] == ['user', 'user'],
                refusal('After the (optional) system message(s), user and assistant roles should be alternating.'),
            )
        ],
        [chat(user('a'), user('b')), chat(user('a\n\nb'))],
        {'compat_roles': 'alternate'},
        ['request.roles'],
        messages=[ModelRequest([UserPromptPart('a')]), ModelRequest([UserPromptPart('b')])],
    ),
    '8.11 user after tool': Case(
        [(lambda body: roles(body)[-2:] == ['tool', 'user'], refusal("Unexpected role 'user' after role 'tool'"))],
        [
            chat(*CALLED, user('and?')),
            chat(*CALLED, assistant('Done.'), user('and?')),
        ],
        {'compat_after_tool': 'assistant'},
        ['request.roles'],
        messages=called('4', after=[UserPromptPart('and?')]),
    ),
    '8.11 order': Case(
        [
            (
                lambda body: roles(body)[2:3] == ['user'],
                refusal(
                    "An assistant message with 'tool_calls' must be followed by tool messages "
                    "responding to each 'tool_call_id'. (insufficient tool messages following tool_calls message)"
                ),
            )
        ],
        [
            chat(user('go'), assistant(None, 'call_0'), user('wait'), result('4')),
            chat(*CALLED, user('wait')),
        ],
        {'compat_tool_order': 'paired'},
        ['request.roles'],
        messages=[
            *called()[:1],
            ModelResponse([ToolCallPart('look', {'at': 'home'}, tool_call_id='call_0')]),
            ModelRequest([UserPromptPart('wait'), ToolReturnPart('look', '4', tool_call_id='call_0')]),
        ],
    ),
    '6.6 refused': Case(
        [
            (
                lambda body: 'reasoning_content' in body['messages'][1],
                Reply.json(
                    {
                        'object': 'error',
                        'message': {
                            'detail': [
                                {
                                    'type': 'extra_forbidden',
                                    'loc': ['body', 'messages', 1, 'assistant', 'reasoning_content'],
                                    'msg': 'Extra inputs are not permitted',
                                    'input': 'hm',
                                }
                            ]
                        },
                    },
                    422,
                ),
            )
        ],
        [
            chat(user('go'), assistant(None, 'call_0', reasoning_content='hm'), result('4')),
            chat(*CALLED),
        ],
        {'compat_echo_reasoning': 'never'},
        ['request.reasoning'],
        messages=called('4', before=[ThinkingPart('hm', id='reasoning_content')]),
    ),
    '6.6 demanded': Case(
        [
            (
                lambda body: 'reasoning_content' not in body['messages'][1],
                refusal('The `reasoning_content` in the thinking mode must be passed back to the API.'),
            )
        ],
        [
            chat(user('go'), assistant(None, 'call_0', reasoning='hm'), result('4')),
            chat(user('go'), assistant(None, 'call_0', reasoning_content='hm'), result('4')),
        ],
        {'compat_echo_reasoning': 'reasoning_content'},
        ['request.reasoning'],
        messages=called('4', before=[ThinkingPart('hm', id='reasoning')]),
    ),
    '5.5 ids': Case(
        [
            (
                lambda body: len(body['messages'][2]['tool_call_id']) > 9 or '_' in body['messages'][2]['tool_call_id'],
                refusal('Tool call id was call_0 but must be a-z, A-Z, 0-9, with a length of 9.', code='3280'),
            )
        ],
        [
            chat(user('go'), assistant(None, 'call_0', 'call_1'), result('4'), result('5', 'call_1')),
            chat(
                user('go'),
                assistant(None, 'mupIKT56D', 'RksXkbv4v'),
                result('4', 'mupIKT56D'),
                result('5', 'RksXkbv4v'),
            ),
        ],
        {'compat_tool_call_ids': 'alnum9'},
        ['request.tool_call_ids'],
        later=[],
        messages=called('4', '5'),
    ),
}


@pytest.mark.parametrize('stream', [False, True], ids=['unary', 'streamed'])
@pytest.mark.parametrize('name', CASES)
async def test_refusal(name: str, stream: bool, caplog: pytest.LogCaptureFixture) -> None:
    await run(CASES[name], caplog, stream=stream)
