"""Input items in the one form that vLLM before and after its fix, and llama.cpp, accept and read without loss. Pure.

Each turn of the model is its reasoning as one `reasoning_text`, one whole output message with one `output_text` that
holds all of its text, then its calls. vLLM reads only the first part of a list, only the first text of reasoning,
breaks on strings and on refusals alone, and takes no encrypted reasoning
(https://github.com/vllm-project/vllm/issues/33089); llama.cpp takes no item without `type`, no refusals, and no
reasoning without `content`
(https://github.com/ggml-org/llama.cpp/blob/master/tools/server/server-common.cpp).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Json = dict[str, Any]

GAP = '\n\n'
"""What stands between texts that become one: as pydantic-ai does in Chat Completions."""


def portable(items: Iterable[Any], *, encrypted: bool = False) -> list[Any]:
    """`items` in portable form; what is no turn of the model stays as it is.

    Args:
        items: Input items, as JSON values.
        encrypted: Whether the server takes encrypted reasoning: such items stay as they are, in front of the rest.
    """
    made: list[Any] = []
    turn: list[Json] = []
    number = 0
    for item in items:
        if is_turn(item):
            turn.append(item)
            continue
        number += bool(turn)
        made += [*_turned(turn, number, encrypted=encrypted), item]
        turn = []
    return [*made, *_turned(turn, number + 1, encrypted=encrypted)]


def is_turn(item: object) -> bool:
    """Whether an item is of a turn of the model."""
    if not isinstance(item, Mapping):
        return False
    kind = item.get('type')
    return kind in ('reasoning', 'function_call') or (kind in ('message', None) and item.get('role') == 'assistant')


def _turned(turn: list[Json], number: int, *, encrypted: bool) -> list[Json]:
    thoughts = [item for item in turn if item.get('type') == 'reasoning']
    sealed = [_without_nulls(item) for item in thoughts if encrypted and item.get('encrypted_content')]
    open_ = [item for item in thoughts if not (encrypted and item.get('encrypted_content'))]
    calls = [_without_nulls(item, 'id', 'namespace') for item in turn if item.get('type') == 'function_call']
    messages = [item for item in turn if item.get('type') in ('message', None)]
    made = [*sealed, *_thought(open_, number)]
    text = GAP.join(filter(None, (said for item in messages for said in texts_of(item.get('content')))))
    if text or (messages and not made and not calls):
        made.append(_said(messages, text, number))
    return [*made, *calls]


def _thought(thoughts: list[Json], number: int) -> list[Json]:
    texts = [text for item in thoughts if (text := thought_in(item))]
    if not texts:
        return []
    id_ = _id(thoughts, f'rs_{number}')
    content = [{'type': 'reasoning_text', 'text': GAP.join(texts)}]
    return [{'type': 'reasoning', 'id': id_, 'summary': [], 'content': content}]


def _said(messages: list[Json], text: str, number: int) -> Json:
    phase = next((item['phase'] for item in messages if item.get('phase')), None)
    return {
        'type': 'message',
        'id': _id(messages, f'msg_{number}'),
        'role': 'assistant',
        'status': 'completed',
        'content': [{'type': 'output_text', 'text': text, 'annotations': []}],
        **({'phase': phase} if phase else {}),
    }


def _id(items: list[Json], other: str) -> str:
    return next((item['id'] for item in items if isinstance(item.get('id'), str) and item['id']), other)


def texts_of(content: object) -> list[str]:
    """The texts in a content, refusals among them."""
    if isinstance(content, str):
        return [content]
    parts = [part for part in content if isinstance(part, Mapping)] if isinstance(content, list) else []
    found = (part.get('text', part.get('refusal')) for part in parts)
    return [text for text in found if isinstance(text, str)]


def thought_in(item: Mapping[str, Any]) -> str:
    """The text of reasoning: all of it where the server told it, else its summary."""
    return GAP.join(filter(None, texts_of(item.get('content')) or texts_of(item.get('summary'))))


def _without_nulls(item: Json, *keys: str) -> Json:
    """`item` without those of the keys, by default all, that are null: https://github.com/vllm-project/vllm/issues/54224."""
    return {key: value for key, value in item.items() if value is not None or (keys and key not in keys)}
