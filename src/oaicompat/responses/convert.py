"""Transcripts: input items of the Responses API to pydantic-ai's messages and back, without loss.

`to_input()` writes beside each message, in the field `pydantic_ai` of its first item, what items don't say: times,
usage, whose answer it was, parts that no item has. `parse_input()` reads it, so that `parse_input(to_input(m)) == m`
wherever pydantic-ai's own JSON of `m` can be read back. Servers get the items without that field, in the style
`'openai'` or `'portable'`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, Literal, NamedTuple, cast

from pydantic import Field, TypeAdapter, ValidationError
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse

from oaicompat._portable import portable
from oaicompat.responses._from_items import Reader, is_answer
from oaicompat.responses._to_items import made_of
from oaicompat.responses.items import Item, ItemReference, UnknownItem, Wire, read_item, validated
from oaicompat.responses.losses import loss_report

__all__ = ('Style', 'parse_input', 'to_input')

logger = logging.getLogger('oaicompat')

Style = Literal['transcript', 'openai', 'portable']
"""Which items: with all that messages say, as OpenAI reads them, or as every server does."""

Json = dict[str, Any]
NOTE = 'pydantic_ai'

_MESSAGE: TypeAdapter[ModelMessage] = TypeAdapter(ModelMessage)


class _Note(Wire):
    """What stands beside the items of one message: how many there are, and how the message differs from them."""

    kind: Literal['request', 'response']
    items: int
    differs: list[tuple[list[str | int], Any]] = Field(default_factory=list)


# Items to messages


def parse_input(
    input: str | Iterable[Any],  # noqa: A002 - its name in the API
    instructions: str | None = None,
    *,
    strict: bool = False,
) -> list[ModelMessage]:
    """The messages that the `input` of a request to the Responses API says.

    A message of an assistant, its reasoning in front of it and its calls are one `ModelResponse`; what stands between
    two of those is one `ModelRequest`. Outputs get the name of the tool that was called with their `call_id`. An item
    that no message has a place for is kept in the `metadata` of the message that it stands in, which is logged as a
    warning, and comes back with `to_input()`.

    Args:
        input: A text, or the items as JSON values.
        instructions: Those of the request: they go to the last `ModelRequest`, where pydantic-ai looks for them.
        strict: Refuse what no message has a place for, and outputs without a call.

    Raises:
        UserError: For an item that is none; it names its index, the field, and what was expected there.

    Example:
        ```python
        from oaicompat.responses import parse_input

        [request] = parse_input([{'role': 'user', 'content': 'Hi'}])
        print(request.parts[0].content)
        #> Hi
        ```
    """
    values = [{'role': 'user', 'content': input}] if isinstance(input, str) else _listed(input)
    items = [read_item(value, index) for index, value in enumerate(values)]
    reader = Reader()
    messages: list[ModelMessage] = []
    at = 0
    for group in _groups(items):
        if group.note is None:
            messages.append(reader.message(group.items, answer=group.answer))
        else:
            # Its names and all else are in the note, whatever stands in front of it.
            message = Reader(reader.names).message(group.items, answer=group.answer)
            messages.append(_differing(message, group.note.differs, at))
        at += len(group.items) or 1
    _report(items, reader, strict=strict)
    return messages if instructions is None else _instructed(messages, instructions)


def _listed(given: object) -> list[Any]:
    if isinstance(given, Mapping | bytes) or not isinstance(given, Iterable):
        raise UserError(f'`input` is {given!r:.80}; expected a text or a list of items')
    return list(given)


class _Group(NamedTuple):
    """The items of one message."""

    items: list[Item]
    answer: bool
    note: _Note | None = None


def _groups(items: Sequence[Item]) -> Iterator[_Group]:
    start = at = 0
    while at < len(items):
        note = _note(items[at], at)
        if note is None:
            at += 1
            continue
        yield from _unnoted(items[start:at])
        taken = list(items[at : at + note.items])
        if len(taken) < note.items or any(NOTE in (item.model_extra or {}) for item in taken[1:]):
            raise UserError(
                f'input[{at}].{NOTE}.items: is {note.items}, but fewer items are there; '
                f'leave `{NOTE}` out of a message whose items were changed'
            )
        taken[0] = type(taken[0]).model_validate({k: v for k, v in taken[0].wire().items() if k != NOTE})
        placeholder = taken[0].wire() == _EMPTY
        yield _Group([] if placeholder else taken, note.kind == 'response', note)
        start = at = at + note.items
    yield from _unnoted(items[start:])


def _note(item: Item, index: int) -> _Note | None:
    given = (item.model_extra or {}).get(NOTE)
    return None if given is None else validated(_Note, given, f'input[{index}].{NOTE}')


def _unnoted(items: Sequence[Item]) -> Iterator[_Group]:
    """By whose side they are on; what is on neither is on that of the item in front of it."""
    side = False

    def sided(item: Item) -> bool:
        nonlocal side
        found = is_answer(item)
        side = side if found is None else found
        return side

    for answer, group in groupby(items, sided):
        yield _Group(list(group), answer)


def _differing(message: ModelMessage, differs: Iterable[tuple[list[str | int], Any]], index: int) -> ModelMessage:
    dump: Any = _MESSAGE.dump_python(message, mode='json')
    try:
        for path, value in differs:
            dump = _with(dump, path, value)
        return _MESSAGE.validate_python(dump)
    except (ValidationError, LookupError, TypeError) as error:
        reason = error.errors()[0]['msg'] if isinstance(error, ValidationError) else 'a path leads nowhere'
        raise UserError(
            f'input[{index}].{NOTE}.differs: does not fit the items ({reason}); '
            f'leave `{NOTE}` out of a message whose items were changed'
        ) from error


def _with(value: Any, path: Sequence[str | int], new: Any) -> Any:
    """`value` with `new` at `path`."""
    if not path:
        return new
    step: Any = path[0]
    changed = value.copy()
    changed[step] = _with(value[step], path[1:], new)
    return changed


def _report(items: Sequence[Item], reader: Reader, *, strict: bool) -> None:
    unknown = [
        f'input[{at}] of type {item.type or "item_reference"!r} is no part of a message'
        for at, item in enumerate(items)
        if isinstance(item, UnknownItem | ItemReference)
    ]
    unpaired = [f'the output of {id_!r} has no call, so the name of its tool is unknown' for id_ in reader.unpaired]
    if not (found := [*unknown, *unpaired]):
        return
    if strict:
        raise UserError(f'{found[0]} ({len(found)} such in all); `strict=False` keeps it')
    logger.warning('kept as it came: %s', '; '.join(found))


def _instructed(messages: list[ModelMessage], instructions: str) -> list[ModelMessage]:
    for at in range(len(messages) - 1, -1, -1):
        message = messages[at]
        if isinstance(message, ModelRequest):
            return [*messages[:at], replace(message, instructions=instructions), *messages[at + 1 :]]
    return [*messages, ModelRequest([], instructions=instructions)]


# Messages to items


def to_input(messages: Sequence[ModelMessage], *, style: Style = 'transcript', strict: bool = False) -> list[Json]:
    """The input items that say `messages`.

    Args:
        messages: A history; `instructions` in it are no items.
        style: `'transcript'` says all: `parse_input()` gives `messages` again. For servers, which refuse fields that
            they don't know: `'openai'` as pydantic-ai's own model writes items, `'portable'` as all servers read them.
        strict: Refuse what `loss_report()` would name, so that nothing is left out silently.

    Raises:
        UserError: With `strict`, where something would be lost: it names the first loss.
    """
    if style not in ('transcript', 'openai', 'portable'):
        raise UserError(f"`style` is {style!r}; expected 'transcript', 'openai' or 'portable'")
    if style == 'transcript':
        return [item for message in messages for item in _transcribed(message)]
    if strict and (lost := loss_report(messages, style)):
        raise UserError(f"{lost[0]} ({len(lost)} such in all); style='transcript' or `strict=False` takes it")
    items = [made.item for message in messages for made in made_of(message) if made.item]
    return portable(items) if style == 'portable' else items


_EMPTY: Json = {'type': 'message', 'role': 'user', 'content': []}


def _transcribed(message: ModelMessage) -> list[Json]:
    items = [made.item for made in made_of(message) if made.item]
    answer = isinstance(message, ModelResponse)
    wanted = _MESSAGE.dump_python(message, mode='json')
    plain = _MESSAGE.dump_python(_read_back(items, answer=answer), mode='json')
    note = _Note(kind=wanted['kind'], items=len(items) or 1, differs=list(_differences(wanted, plain)))
    first, *rest = items or [_EMPTY]
    return [{**first, NOTE: note.model_dump(exclude_defaults=True)}, *rest]


def _read_back(items: Iterable[Any], *, answer: bool) -> ModelMessage:
    return Reader().message([read_item(item, at) for at, item in enumerate(items)], answer=answer)


def _differences(wanted: Any, plain: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[list[str | int], Any]]:
    """Where `plain` has to be changed to be `wanted`: paths, and what belongs there."""
    if type(wanted) is type(plain) and wanted == plain and repr(wanted) == repr(plain):
        return
    if isinstance(wanted, dict) and isinstance(plain, dict) and wanted.keys() == plain.keys():
        for key, value in wanted.items():
            yield from _differences(value, plain[key], (*path, key))
    elif isinstance(wanted, list) and isinstance(plain, list) and len(wanted) == len(plain):
        for at, (one, other) in enumerate(zip(wanted, plain, strict=True)):
            yield from _differences(one, other, (*path, at))
    else:
        yield [*path], cast(Any, wanted)
