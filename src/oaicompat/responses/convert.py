"""Transcripts: input items of the Responses API to pydantic-ai's messages and back, without loss.

`to_input()` writes beside each message, in the field `pydantic_ai` of its first item, what items don't say: times,
usage, whose answer it was, parts that no item has. `parse_input()` reads it, so that `parse_input(to_input(m)) == m`
wherever pydantic-ai's own JSON of `m` can be read back. Servers get the items without that field, in the style
`'openai'` or `'portable'`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from hashlib import sha256
from itertools import groupby
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, TypeAdapter, ValidationError
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse

from oaicompat._portable import portable
from oaicompat.responses._from_items import NOTE, Reader, is_answer
from oaicompat.responses._to_items import made_of
from oaicompat.responses.items import Item, ItemReference, UnknownItem, Wire, read_item, validated
from oaicompat.responses.losses import loss_report

__all__ = ('Style', 'parse_input', 'to_input')

logger = logging.getLogger('oaicompat')

Style = Literal['transcript', 'openai', 'portable']
"""Which items: with all that messages say, as OpenAI reads them, or as every server does."""

Json = dict[str, Any]
_MESSAGE: TypeAdapter[ModelMessage] = TypeAdapter(ModelMessage)


class _Note(Wire):
    """What stands beside the items of one message: how many there are, which, and how the message differs from them."""

    kind: Literal['request', 'response']
    items: Annotated[int, Field(ge=1)]
    digest: str
    differs: list[list[Any]] = Field(default_factory=list)


# Items to messages


def parse_input(
    input: str | Iterable[Any],  # noqa: A002 - its name in the API
    instructions: str | None = None,
    *,
    strict: bool = False,
    transcript: bool = True,
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
        transcript: Whether the field `pydantic_ai` of an item, as `to_input()` writes it, is read. It can say anything
            that messages can: a server that reads the input of its clients passes `False`, and the field says nothing.

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
    for group in _groups(items, transcript=transcript):
        if group.note is None:
            messages.append(reader.message(group.items, answer=group.answer))
        else:
            # All is in the note, whatever stands in front of it.
            noted = Reader()
            message = noted.message([] if group.items == [_PLACEHOLDER] else group.items, answer=group.answer)
            messages.append(_differing(message, group.note.differs, at))
            reader.names |= noted.names
        at += len(group.items)
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


def _groups(items: Sequence[Item], *, transcript: bool) -> Iterator[_Group]:
    start = at = 0
    while at < len(items):
        note = _note(items[at], at) if transcript else None
        if note is None:
            at += 1
            continue
        yield from _unnoted(items[start:at])
        yield _Group(_noted(items, at, note), note.kind == 'response', note)
        start = at = at + note.items
    yield from _unnoted(items[start:])


def _note(item: Item, index: int) -> _Note | None:
    given = (item.model_extra or {}).get(NOTE)
    return None if given is None else validated(_Note, given, f'input[{index}].{NOTE}')


def _noted(items: Sequence[Item], at: int, note: _Note) -> list[Item]:
    """The items that a note is about, without it."""
    first, *rest = items[at : at + note.items]
    plain = {key: value for key, value in first.wire().items() if key != NOTE}
    if len(rest) + 1 < note.items or note.digest != _digest([plain, *(item.wire() for item in rest)]):
        raise UserError(
            f'input[{at}].{NOTE}: is not about the items that are there; '
            f'take `{NOTE}` out of a message whose items were changed'
        )
    return [type(first).model_validate(plain), *rest]


def _digest(items: Iterable[Json]) -> str:
    """What tells whether items were changed."""
    text = json.dumps(list(items), sort_keys=True, default=str)
    return sha256(text.encode()).hexdigest()[:_DIGITS]


_DIGITS = 16


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


def _differing(message: ModelMessage, differs: Iterable[Sequence[Any]], index: int) -> ModelMessage:
    dump: Any = _MESSAGE.dump_python(message, mode='json')
    try:
        for path, value in differs:
            dump = _put(dump, path, value)
        return _MESSAGE.validate_python(dump)
    except (ValidationError, LookupError, TypeError, ValueError) as error:
        reason = error.errors()[0]['msg'] if isinstance(error, ValidationError) else 'a path leads nowhere'
        raise UserError(f'input[{index}].{NOTE}.differs: does not fit the items ({reason})') from error


def _put(value: Any, path: Sequence[Any], new: Any) -> Any:
    """`value`, which is changed, with `new` at `path`."""
    if not path:
        return new
    *above, last = path
    holder = reduce(lambda held, step: held[step], above, value)
    holder[last] = new
    return value


def _report(items: Sequence[Item], reader: Reader, *, strict: bool) -> None:
    places = {id(item): at for at, item in enumerate(items)}
    whole = {id(item) for item in items if isinstance(item, UnknownItem | ItemReference)}  # all of it is kept
    unread = ((at, path) for at, item in enumerate(items) if id(item) not in whole for path in item.unread)
    found = [
        *((places.get(id(item)), f'{why} is no part of a message') for item, why in reader.kept),
        *((places.get(id(item)), f'has no call before it with the id {item.call_id!r}') for item in reader.unpaired),
        *((at, f'{path} is not read') for at, path in unread if path != f'.{NOTE}'),
    ]
    told = [f'input[{at}]{"" if what.startswith(".") else " "}{what}' for at, what in found if at is not None]
    if not told:
        return
    if strict:
        raise UserError(f'{told[0]} ({len(told)} such in all); `strict=False` takes it')
    logger.warning('input for messages: %s', '; '.join(told))


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
    given: Any = messages
    if not isinstance(given, list | tuple):
        raise UserError(f'`messages` is a {type(given).__name__}; expected a list of messages')
    for at, message in enumerate(given):
        if not isinstance(message, ModelRequest | ModelResponse):
            raise UserError(f'messages[{at}] is a {type(message).__name__}; expected a list of messages')
    if style == 'transcript':
        return [item for at, message in enumerate(messages) for item in _transcribed(message, at)]
    if strict and (lost := loss_report(messages, style)):
        raise UserError(f"{lost[0]} ({len(lost)} such in all); style='transcript' or `strict=False` takes it")
    items = [item for at, message in enumerate(messages) for item in _items(message, at)]
    return portable(items) if style == 'portable' else items


_EMPTY: Json = {'type': 'message', 'role': 'user', 'content': []}
_PLACEHOLDER = read_item(_EMPTY, 0)


def _items(message: ModelMessage, index: int) -> list[Json]:
    with _named(index):
        return [made.item for made in made_of(message) if made.item]


@contextmanager
def _named(index: int) -> Iterator[None]:
    try:
        yield
    except (ValueError, RecursionError) as error:
        raise UserError(f'messages[{index}]: has no JSON: {error}') from error


def _transcribed(message: ModelMessage, index: int) -> list[Json]:
    items = _items(message, index)
    answer = isinstance(message, ModelResponse)
    with _named(index):
        wanted = _MESSAGE.dump_python(message, mode='json')
    plain = _MESSAGE.dump_python(_read_back(items, answer=answer), mode='json')
    first, *rest = json.loads(json.dumps(items or [_EMPTY]))
    note = _Note(
        kind=wanted['kind'],
        items=len(rest) + 1,
        digest=_digest([first, *rest]),
        differs=list(_differences(wanted, plain)),
    )
    return [{**first, NOTE: note.model_dump(exclude_defaults=True)}, *rest]


def _read_back(items: Iterable[Any], *, answer: bool) -> ModelMessage:
    return Reader().message([read_item(item, at) for at, item in enumerate(items)], answer=answer)


def _differences(wanted: Any, plain: Any, path: tuple[str | int, ...] = ()) -> Iterator[list[Any]]:
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
        yield [[*path], wanted]
