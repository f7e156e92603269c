"""What a form of items can't say, and what a server doesn't read of it. What servers do is data, with its evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import Any, NamedTuple

from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelMessage
from typing_extensions import override

from oaicompat._portable import is_turn, texts_of
from oaicompat.responses._to_items import Made, made_of

__all__ = ('SERVERS', 'Loss', 'loss_report')


class Loss(NamedTuple):
    """Something that the model would not read, or not in the same form.

    Attributes:
        message: The index of the message.
        part: The index of the part in it; `None` for an item that was kept beside the parts.
        what: What is lost, and why.
        evidence: A link to where that was seen; empty for a form.
    """

    message: int
    part: int | None
    what: str
    evidence: str = ''

    @override
    def __str__(self) -> str:
        where = f'messages[{self.message}]' + ('' if self.part is None else f'.parts[{self.part}]')
        return f'{where}: {self.what}'


class Reads(NamedTuple):
    """How a server reads one thing.

    Attributes:
        lost: The indexes in an item's content of what is lost there, if anything is: all of it, where it is none.
        what: What is lost, and why.
        evidence: Where that was seen.
    """

    lost: Callable[[Mapping[str, Any]], Sequence[int]]
    what: str
    evidence: str


def loss_report(messages: Sequence[ModelMessage], target: str) -> list[Loss]:
    """What of `messages` a target would lose.

    Times, usage, ids and whose answer it was are no matter: a server reads none of them.

    Args:
        messages: A history.
        target: A style of `to_input()`: `'transcript'` (nothing), `'openai'`, `'portable'`. Or a server that is sent
            items as OpenAI reads them: `'vllm'`, `'vllm-old'` (before it took strings of assistants), `'llama.cpp'`.

    Raises:
        UserError: For an unknown target.
    """
    if target not in (*_STYLES, *SERVERS):
        known = ', '.join(map(repr, (*_STYLES, *SERVERS)))
        raise UserError(f'`target` is {target!r}; expected one of {known}')
    found = (loss for at, message in enumerate(messages) for loss in _of_message(message, at, target))
    return [] if target == 'transcript' else list(found)


_STYLES = ('transcript', 'openai', 'portable')


def _of_message(message: ModelMessage, at: int, target: str) -> Iterator[Loss]:
    made = made_of(message)
    for one in made:
        for part, what in one.lost:
            yield Loss(at, part, f'{what}, which no item says')
        if target == 'portable':
            yield from _unportable(one, at)
        for reads in SERVERS.get(target, ()):
            for index in reads.lost(one.item) if one.item else ():
                yield Loss(at, one.parts[index] if index < len(one.parts) else _first(one), reads.what, reads.evidence)
    if target == 'portable':
        yield from _joined(made, at)
    if target == 'llama.cpp':
        thoughts = [one for one in made if one.item.get('type') == 'reasoning']
        for one in thoughts[:-1]:
            yield Loss(at, _first(one), 'reasoning in front of other reasoning, which llama.cpp forgets', _LLAMA_CPP)


def _first(made: Made) -> int | None:
    return made.parts[0] if made.parts else None


def _unportable(made: Made, at: int) -> Iterator[Loss]:
    item = made.item
    if item.get('encrypted_content'):
        yield Loss(at, _first(made), 'encrypted reasoning, which not every server takes')
    if item.get('type') == 'reasoning' and item.get('content') and item.get('summary'):
        yield Loss(at, _first(made), 'a summary beside the reasoning itself')
    refused = [at for at, part in enumerate(_parts_in(item)) if part.get('type') == 'refusal']
    for index in refused:
        yield Loss(at, made.parts[index] if made.parts else None, 'that it is a refusal: it becomes a text')
    if item and not made.parts:
        yield Loss(
            at,
            None,
            f'what was kept of an item of type {item.get("type") or "message"!r}, which not every server knows',
        )


def _joined(made: Sequence[Made], at: int) -> Iterator[Loss]:
    """Parts behind the first of their kind, which becomes one with them; and those that come to stand elsewhere."""
    said = [one for one in made if is_turn(one.item) and one.item.get('role')]
    texts = [part for one in said for part in one.parts]
    phases = [
        [part for one in same for part in one.parts] for _, same in groupby(said, lambda one: one.item.get('phase'))
    ]
    thoughts = [part for one in made if one.item.get('type') == 'reasoning' for part in one.parts]
    calls = [part for one in made if one.item.get('type') == 'function_call' for part in one.parts]
    for kind, parts in (*(('text', parts) for parts in phases), ('reasoning', thoughts)):
        for part in parts[1:]:
            yield Loss(at, part, f'that it is a {kind} of its own: all of a turn is one')
    moved = {part: 'a call' for part in texts[:1] + thoughts[:1] if any(call < part for call in calls)}
    moved = {**{part: 'a text' for part in thoughts[:1] if any(text < part for text in texts)}, **moved}
    for part, what in moved.items():
        yield Loss(at, part, f'that it stands behind {what}')


# What servers read of items as OpenAI has them.


def _is_answer(item: Mapping[str, Any]) -> bool:
    return item.get('role') == 'assistant'


def _behind_first(key: str, item: Mapping[str, Any]) -> Sequence[int]:
    content = item.get(key)
    return range(1, len(content)) if isinstance(content, list) else ()


def _second_texts(item: Mapping[str, Any]) -> Sequence[int]:
    return _behind_first('content', item) if _is_answer(item) else ()


def _second_thoughts(item: Mapping[str, Any]) -> Sequence[int]:
    if item.get('type') != 'reasoning':
        return ()
    return _behind_first('content' if item.get('content') else 'summary', item)


def _refusals(item: Mapping[str, Any]) -> Sequence[int]:
    content = item.get('content')
    parts = content if _is_answer(item) and isinstance(content, list) else []
    return [at for at, part in enumerate(parts) if part.get('type') == 'refusal']


def _typeless(item: Mapping[str, Any]) -> Sequence[int]:
    return [0] if _is_answer(item) and not item.get('type') else ()


def _typed_strings(item: Mapping[str, Any]) -> Sequence[int]:
    return [0] if _is_answer(item) and item.get('type') and isinstance(item.get('content'), str) else ()


def _idless(item: Mapping[str, Any]) -> Sequence[int]:
    lists = _is_answer(item) and not isinstance(item.get('content'), str)
    return [0] if lists and not (item.get('id') and item.get('status')) else ()


def _sealed(item: Mapping[str, Any]) -> Sequence[int]:
    return [0] if item.get('encrypted_content') else ()


def _summaries(item: Mapping[str, Any]) -> Sequence[int]:
    alone = item.get('type') == 'reasoning' and not item.get('content')
    return range(len(texts_of(item.get('summary')))) or [0] if alone else ()


def _beside(item: Mapping[str, Any]) -> Sequence[int]:
    """Summaries where there is the reasoning itself."""
    both = item.get('type') == 'reasoning' and item.get('content') and item.get('summary')
    return range(len(texts_of(item['summary']))) if both else ()


def _parts_in(item: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for key in ('content', 'output'):
        content = item.get(key)
        yield from (part for part in content if isinstance(part, dict)) if isinstance(content, list) else ()


def _files(item: Mapping[str, Any]) -> Sequence[int]:
    kinds = {'input_file', 'input_audio', 'input_video'}
    by_id = any(part.get('type') == 'input_image' and not part.get('image_url') for part in _parts_in(item))
    return [0] if by_id or any(part.get('type') in kinds for part in _parts_in(item)) else ()


def _unknown(item: Mapping[str, Any]) -> Sequence[int]:
    known = (None, 'message', 'reasoning', 'function_call', 'function_call_output')
    return [0] if item.get('type') not in known else ()


_VLLM_33089 = 'https://github.com/vllm-project/vllm/issues/33089'
_LLAMA_CPP = 'https://github.com/ggml-org/llama.cpp/blob/master/tools/server/server-common.cpp'
_VLLM = (
    Reads(_idless, 'a list without `id` and `status`, which vLLM refuses', _VLLM_33089),
    Reads(_second_texts, 'a text behind the first of a message, which vLLM does not read', _VLLM_33089),
    Reads(_refusals, 'a refusal, which vLLM drops, or breaks on where it is alone', _VLLM_33089),
    Reads(_second_thoughts, 'reasoning behind the first text of it, which vLLM does not read', _VLLM_33089),
    Reads(_beside, 'a summary beside the reasoning itself, which vLLM does not read', _VLLM_33089),
    Reads(_sealed, 'encrypted reasoning, which vLLM refuses', _VLLM_33089),
    Reads(_unknown, 'an item of a type that vLLM refuses', _VLLM_33089),
)
SERVERS: Mapping[str, tuple[Reads, ...]] = MappingProxyType(
    {
        'vllm': _VLLM,
        'vllm-old': (
            Reads(_typed_strings, 'a string in a message with `type`, which vLLM read by its letters', _VLLM_33089),
            *_VLLM,
        ),
        'llama.cpp': (
            Reads(_typeless, 'an answer without `type`, which llama.cpp refuses', _LLAMA_CPP),
            Reads(_refusals, 'a refusal, which llama.cpp refuses', _LLAMA_CPP),
            Reads(_summaries, 'reasoning without `content`, which llama.cpp refuses', _LLAMA_CPP),
            Reads(_second_thoughts, 'reasoning behind the first text of it, which llama.cpp does not read', _LLAMA_CPP),
            Reads(_beside, 'a summary beside the reasoning itself, which llama.cpp does not read', _LLAMA_CPP),
            Reads(_sealed, 'encrypted reasoning, which llama.cpp does not read', _LLAMA_CPP),
            Reads(_files, 'a file that is no image at a URL or in place, which llama.cpp refuses', _LLAMA_CPP),
            Reads(_unknown, 'an item of a type that llama.cpp refuses', _LLAMA_CPP),
        ),
    }
)
"""What servers don't read, or refuse, of items as OpenAI has them."""
