"""What each style of items, and each server, would lose of a history."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai import messages as m
from pydantic_ai.exceptions import UserError
from test_convert import CALLED, USER, answer, asked, sent, text, think
from test_transcripts import CONVERSATION

from oaicompat.responses import loss_report, parse_input, to_input


def losses(target: str) -> list[str]:
    return [str(loss) for loss in loss_report(CONVERSATION, target)]


NO_ITEM = [
    'messages[3].parts[0]: a builtin-tool-call part, which no item says',
    'messages[3].parts[3]: a file part, which no item says',
]


def test_what_each_target_would_lose() -> None:
    assert losses('transcript') == []
    assert losses('openai') == NO_ITEM
    assert losses('portable') == [
        'messages[1].parts[0]: encrypted reasoning, which not every server takes',
        'messages[1].parts[4]: that it is a text of its own: all of a turn is one',
        'messages[1].parts[1]: that it is a reasoning of its own: all of a turn is one',
        NO_ITEM[0],
        'messages[3].parts[2]: that it is a refusal: it becomes a text',
        NO_ITEM[1],
        'messages[3].parts[2]: that it is a text of its own: all of a turn is one',
    ]
    vllm = [
        'messages[1].parts[0]: encrypted reasoning, which vLLM refuses',
        'messages[1].parts[1]: reasoning behind the first text of it, which vLLM does not read',
        NO_ITEM[0],
        'messages[3].parts[2]: a list without `id` and `status`, which vLLM refuses',
        'messages[3].parts[2]: a refusal, which vLLM drops, or breaks on where it is alone',
        NO_ITEM[1],
    ]
    assert losses('vllm') == losses('vllm-old') == vllm
    assert losses('llama.cpp') == [
        'messages[1].parts[0]: reasoning without `content`, which llama.cpp refuses',
        'messages[1].parts[0]: encrypted reasoning, which llama.cpp does not read',
        'messages[1].parts[1]: reasoning behind the first text of it, which llama.cpp does not read',
        'messages[1].parts[4]: an answer without `type`, which llama.cpp refuses',
        'messages[1].parts[0]: reasoning in front of other reasoning, which llama.cpp forgets',
        NO_ITEM[0],
        'messages[3].parts[1]: an answer without `type`, which llama.cpp refuses',
        'messages[3].parts[2]: a refusal, which llama.cpp refuses',
        NO_ITEM[1],
    ]
    assert {loss.evidence[:8] for target in ('vllm', 'llama.cpp') for loss in loss_report(CONVERSATION, target)} == {
        '', 'https://',
    }  # fmt: skip


def lost(target: str, *parts: Any) -> list[str]:
    return [str(loss).partition(',')[0] for loss in loss_report([answer(*parts)], target)]


PHASE: dict[str, Any] = {'provider_details': {'phase': 'commentary'}}
BOTH = think('Sum', 'Raw')
SEVERAL: list[tuple[str, tuple[Any, ...], list[str]]] = [
    ('portable', (BOTH,), ['messages[0].parts[0]: a summary beside the reasoning itself']),
    ('vllm', (BOTH,), ['messages[0].parts[0]: a summary beside the reasoning itself']),
    ('llama.cpp', (BOTH,), ['messages[0].parts[0]: a summary beside the reasoning itself']),
    ('portable', (CALLED, m.TextPart('x')), ['messages[0].parts[1]: that it stands behind a call']),
    ('portable', (m.TextPart('x'), think('y')), ['messages[0].parts[1]: that it stands behind a text']),
    ('openai', (m.TextPart('x'), think('y'), CALLED), []),
    ('portable', (m.TextPart('x', **PHASE), m.TextPart('y')), []),
    (
        'portable',
        (m.TextPart('no', provider_details={'refusal': True}),),
        ['messages[0].parts[0]: that it is a refusal: it becomes a text'],
    ),
    ('openai', (m.ToolCallPart('f', '{"city":', 'c'),), ['messages[0].parts[0]: arguments that are no JSON object']),
]


@pytest.mark.parametrize(('target', 'parts', 'expected'), SEVERAL)
def test_what_an_answer_would_lose(target: str, parts: tuple[Any, ...], expected: list[str]) -> None:
    assert lost(target, *parts) == expected


FILES = [
    m.DocumentUrl('https://x.test/a.pdf'),
    m.BinaryContent(b'x', media_type='application/pdf'),
    m.BinaryContent(b'x', media_type='audio/wav'),
    m.UploadedFile('f', 'openai', media_type='image/png'),
]


@pytest.mark.parametrize('file', FILES)
def test_files_that_llama_cpp_refuses(file: Any) -> None:
    for part in (m.UserPromptPart([file]), m.ToolReturnPart('look', [file], 'c')):
        [loss] = loss_report([asked(part)], 'llama.cpp')
        assert (
            str(loss) == 'messages[0].parts[0]: a file that is no image at a URL or in place, which llama.cpp refuses'
        )
    assert loss_report([asked(m.UserPromptPart([m.ImageUrl('https://x.test/a.png')]))], 'llama.cpp') == []


def test_what_was_kept_is_named() -> None:
    message = parse_input([{'role': 'user', 'content': [text('a'), {'type': 'input_video'}]}])
    assert [str(loss) for loss in loss_report(message, 'portable')] == [
        "messages[0]: what was kept of an item of type 'message', which not every server knows"
    ]
    other = [asked(m.UserPromptPart(['a', m.UploadedFile('f', 'anthropic'), m.CachePoint()]))]
    assert [loss.what for loss in loss_report(other, 'openai')] == [
        'a uploaded-file in it, which no item says', 'a cache-point in it, which no item says',
    ]  # fmt: skip


def test_strict_refuses_what_would_be_lost() -> None:
    for style in ('openai', 'portable'):
        with pytest.raises(UserError, match=r'messages\[\d\].parts\[0\]: .* such in all'):
            to_input(CONVERSATION, style=style, strict=True)
    assert to_input(CONVERSATION, strict=True) == to_input(CONVERSATION)
    plain: list[m.ModelMessage] = [asked(), answer(m.TextPart('Hello'))]
    assert to_input(plain, style='portable', strict=True) == [USER, *sent('Hello')]


def test_unknown_styles_and_targets_are_refused() -> None:
    with pytest.raises(UserError, match="`style` is 'chat'; expected 'transcript', 'openai' or 'portable'"):
        to_input([], style='chat')  # type: ignore[arg-type]
    with pytest.raises(
        UserError, match="`target` is 'sglang'; expected one of 'transcript', 'openai', 'portable', 'vllm'"
    ):
        loss_report([], 'sglang')
