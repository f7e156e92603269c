"""Input items in the one form that vLLM before and after its fix, and llama.cpp, accept and read without loss. Pure.

Each turn of the model is its reasoning as one `reasoning_text`, one whole output message with one `output_text` that
holds all of its text, then its calls. vLLM reads only the first part of a list, only the first text of reasoning,
breaks on strings and on refusals alone, and takes no encrypted reasoning
(https://github.com/vllm-project/vllm/issues/33089); llama.cpp takes no item without `type`, no refusals, and no
reasoning without `content`
(https://github.com/ggml-org/llama.cpp/blob/master/tools/server/server-common.cpp).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, count, groupby
from typing import Any

Json = dict[str, Any]

GAP = '\n\n'
"""What stands between texts that become one: as pydantic-ai does in Chat Completions."""


def portable(items: Iterable[Any], *, encrypted: bool = False) -> list[Any]:
    """`items` in portable form; what is no turn of the model stays as it is.

    Args:
        items: Input items, as JSON values.
        encrypted: Whether the server takes encrypted reasoning. A turn with such an item keeps the order of its items,
            since the server may ask for that.
    """
    made: list[Any] = []
    turn: list[Json] = []
    ids = _Ids()
    for item in items:
        if is_turn(item):
            turn.append(item)
            continue
        made += [*_turned(turn, ids, encrypted=encrypted), item]
        turn = []
    return [*made, *_turned(turn, ids, encrypted=encrypted)]


def is_turn(item: object) -> bool:
    """Whether an item is of a turn of the model."""
    if not isinstance(item, Mapping):
        return False
    kind = item.get('type')
    return kind in ('reasoning', 'function_call') or (kind in ('message', None) and item.get('role') == 'assistant')


@dataclass
class _Ids:
    """Ids that no two items share, the same for the same history."""

    _used: set[str] = field(default_factory=set)
    _turn: int = 0

    def begin(self) -> None:
        """Go on to the next turn."""
        self._turn += 1

    def of(self, items: list[Json], prefix: str) -> str:
        """That of one of the items, or a new one."""
        given: Iterator[str] = (item['id'] for item in items if isinstance(item.get('id'), str) and item['id'])
        made = (f'{prefix}_{self._turn}{"" if n == 0 else f"_{n}"}' for n in count())
        found = next(id_ for id_ in chain(given, made) if id_ not in self._used)
        self._used.add(found)
        return found


def _turned(turn: list[Json], ids: _Ids, *, encrypted: bool) -> list[Json]:
    if turn:
        ids.begin()
    if encrypted and any(_is_sealed(item) for item in turn):
        return [made for item in turn for made in ([_without_nulls(item)] if _is_sealed(item) else _parts([item], ids))]
    return _parts(turn, ids)


def _is_sealed(item: Json) -> bool:
    return item.get('type') == 'reasoning' and bool(item.get('encrypted_content'))


def _parts(turn: list[Json], ids: _Ids) -> list[Json]:
    """The reasoning, the messages and the calls of a turn."""
    calls = [_without_nulls(item, 'id', 'namespace') for item in turn if item.get('type') == 'function_call']
    made = _thought([item for item in turn if item.get('type') == 'reasoning'], ids)
    messages = [item for item in turn if item.get('type') in ('message', None)]
    # What a model said on its way, and its answer, stay apart where the server asked for that.
    for phase, phased in groupby(messages, lambda item: item.get('phase') or None):
        made += _said(list(phased), phase, ids, alone=not made and not calls)
    return [*made, *calls]


def _thought(thoughts: list[Json], ids: _Ids) -> list[Json]:
    texts = [text for item in thoughts if (text := thought_in(item))]
    if not texts:
        return []
    content = [{'type': 'reasoning_text', 'text': GAP.join(texts)}]
    return [{'type': 'reasoning', 'id': ids.of(thoughts, 'rs'), 'summary': [], 'content': content}]


def _said(messages: list[Json], phase: object, ids: _Ids, *, alone: bool) -> list[Json]:
    text = GAP.join(filter(None, (said for item in messages for said in texts_of(item.get('content')))))
    if not text and not alone:
        return []
    return [
        {
            'type': 'message',
            'id': ids.of(messages, 'msg'),
            'role': 'assistant',
            'status': 'completed',
            'content': [{'type': 'output_text', 'text': text, 'annotations': []}],
            **({'phase': phase} if phase else {}),
        }
    ]


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
