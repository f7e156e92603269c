"""Input items of the Responses API, typed: each chosen by its `type` and shape, so that a bad one gives one error.

Fields that are missing stay missing, and unknown ones stay: `wire()` gives the item as it came. The shapes are those of
https://platform.openai.com/docs/api-reference/responses/create#responses-create-input, and what servers and clients
make of them: `type`, `id`, `status` and `annotations` may be missing, and content may be null.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Discriminator, Tag, ValidationError
from pydantic_ai.exceptions import UserError

__all__ = (
    'Audio',
    'EasyInputMessage',
    'File',
    'FunctionCall',
    'FunctionCallOutput',
    'Image',
    'Item',
    'ItemReference',
    'OutputMessage',
    'Reasoning',
    'Refusal',
    'Text',
    'UnknownItem',
    'UnknownPart',
    'read_item',
)

Json = dict[str, Any]
_Model = TypeVar('_Model', bound='Wire')


class Wire(BaseModel):
    """A JSON object with known fields, and others."""

    model_config = ConfigDict(extra='allow', frozen=True, strict=True)

    def wire(self) -> Json:
        """The JSON object that this was read from."""
        return self.model_dump(exclude_unset=True)


# Parts of a content


class Text(Wire):
    """A text: `input_text`, `output_text`, `summary_text` or `reasoning_text`; as `text` in either direction."""

    type: str
    text: str


class Refusal(Wire):
    """What a model said instead of an answer."""

    type: Literal['refusal']
    refusal: str


class Image(Wire):
    """An image, by URL or by the id of an uploaded file."""

    type: Literal['input_image']
    image_url: str | None = None
    file_id: str | None = None
    detail: str | None = None


class File(Wire):
    """A file: its data in Base64 or as a data URI, its URL, or the id of an uploaded one."""

    type: Literal['input_file']
    file_data: str | None = None
    file_url: str | None = None
    file_id: str | None = None
    filename: str | None = None


class AudioData(Wire):
    """Audio in Base64."""

    data: str
    format: str


class Audio(Wire):
    """Audio that a user said."""

    type: Literal['input_audio']
    input_audio: AudioData


class UnknownPart(Wire):
    """A part of another type, as it came."""

    type: str


_TEXTS = ('input_text', 'output_text', 'text', 'summary_text', 'reasoning_text')
_PARTS = {'refusal': 'refusal', 'input_image': 'image', 'input_file': 'file', 'input_audio': 'audio'}


def _part_of(value: object) -> str:
    kind = value.get('type') if isinstance(value, Mapping) else getattr(value, 'type', None)
    return 'text' if kind in _TEXTS else _PARTS.get(str(kind), 'unknown')


Part = Annotated[
    Annotated[Text, Tag('#text')]
    | Annotated[Refusal, Tag('#refusal')]
    | Annotated[Image, Tag('#image')]
    | Annotated[File, Tag('#file')]
    | Annotated[Audio, Tag('#audio')]
    | Annotated[UnknownPart, Tag('#unknown')],
    Discriminator(lambda value: f'#{_part_of(value)}'),
]
Content = Annotated[
    Annotated[str, Tag('#string')] | Annotated[list[Part], Tag('#list')] | Annotated[None, Tag('#null')],
    Discriminator(lambda value: '#string' if isinstance(value, str) else '#null' if value is None else '#list'),
]

# Items


class Item(Wire):
    """An input item."""

    type: str | None = None

    @property
    def unread(self) -> list[str]:
        """The paths of what it says beyond the fields that are known, as far as that says anything."""
        cut = ['.status'] if getattr(self, 'status', None) == 'incomplete' else []
        return [*cut, *(path for path, value in _beyond(self, '') if value not in (None, '', [], {}))]


def _beyond(wire: Wire, path: str) -> Iterator[tuple[str, Any]]:
    for key, value in (wire.model_extra or {}).items():
        yield f'{path}.{key}', value
    for key in type(wire).model_fields:
        value = getattr(wire, key)
        for at, part in enumerate(value if isinstance(value, list) else ()):
            if isinstance(part, Wire) and not isinstance(part, UnknownPart):
                yield from _beyond(part, f'{path}.{key}[{at}]')


class EasyInputMessage(Item):
    """A message of any role, with a string or a list for content; of an assistant, with a string."""

    type: Literal['message'] | None = None
    role: Literal['user', 'assistant', 'system', 'developer']
    content: Content
    id: str | None = None
    status: str | None = None
    phase: str | None = None


class OutputMessage(Item):
    """An answer of the model, in parts."""

    type: Literal['message'] | None = None
    role: Literal['assistant']
    content: Content
    id: str | None = None
    status: str | None = None
    phase: str | None = None


class Reasoning(Item):
    """What the model thought: a summary, or all of it, or neither in a form that only the server reads."""

    type: Literal['reasoning'] | None = None
    id: str | None = None
    summary: list[Part] | None = None
    content: list[Part] | None = None
    encrypted_content: str | None = None
    status: str | None = None


class FunctionCall(Item):
    """A call of a function; `arguments` is the text of a JSON object."""

    type: Literal['function_call'] | None = None
    call_id: str
    name: str
    arguments: str
    id: str | None = None
    status: str | None = None
    namespace: str | None = None


class FunctionCallOutput(Item):
    """What a function returned."""

    type: Literal['function_call_output'] | None = None
    call_id: str
    output: Content
    id: str | None = None
    status: str | None = None


class ItemReference(Item):
    """An item that the server keeps, by its id."""

    type: Literal['item_reference'] | None = None
    id: str


class UnknownItem(Item):
    """An item of another type, as it came."""

    type: str


_KINDS: Mapping[str, type[Item]] = {
    'reasoning': Reasoning,
    'function_call': FunctionCall,
    'function_call_output': FunctionCallOutput,
    'item_reference': ItemReference,
}


def read_item(value: object, index: int) -> Item:
    """The item that `value` is.

    Args:
        value: A JSON value, or an object of the SDK.
        index: Its place in `input`, for errors.

    Raises:
        UserError: If it is none; it names the index, the field, and what was expected there.
    """
    if isinstance(value, BaseModel):
        value = value.model_dump(mode='json', exclude_unset=True)
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise UserError(f'input[{index}]: expected an object, got {_brief(value)}')
    kind = value.get('type')
    if kind is not None and not isinstance(kind, str):
        raise UserError(f'input[{index}].type: expected a string, got {_brief(kind)}')
    return validated(_class_of(value, kind, index), value, f'input[{index}]')


def _class_of(value: Mapping[str, Any], kind: str | None, index: int) -> type[Item]:
    if kind == 'message' or (kind is None and 'role' in value):
        parts = value.get('role') == 'assistant' and not isinstance(value.get('content'), str)
        return OutputMessage if parts else EasyInputMessage
    if kind is not None:
        return _KINDS.get(kind, UnknownItem)
    for shape, found in _SHAPES.items():
        if set(shape) <= value.keys():
            return found
    fields = _brief(', '.join(map(str, value)))
    raise UserError(f'input[{index}]: has neither `type` nor `role`, and its fields ({fields}) tell no type')


_SHAPES: Mapping[tuple[str, ...], type[Item]] = {
    ('call_id', 'arguments'): FunctionCall,
    ('call_id', 'output'): FunctionCallOutput,
    ('summary',): Reasoning,
    ('encrypted_content',): Reasoning,
    ('id',): ItemReference,
}


def validated(model: type[_Model], value: object, path: str) -> _Model:
    """`value` as one of ours.

    Raises:
        UserError: For its first fault, with the path to it.
    """
    try:
        return model.model_validate(value)
    except RecursionError:
        raise UserError(f'{path}: is nested too deep') from None
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        steps = [step for step in fault['loc'] if not str(step).startswith('#')]
        where = path + ''.join(f'[{step}]' if isinstance(step, int) else f'.{step}' for step in steps)
        if fault['type'] == 'missing':
            raise UserError(f'{where}: is missing') from None
        content = '#list' in fault['loc'][-1:]
        expected = (
            'a string or a list'
            if content
            else _EXPECTED.get(fault['type']) or fault['msg'].removeprefix('Input should be ')
        )
        raise UserError(f'{where}: expected {expected}, got {_brief(fault["input"])}') from None


def _brief(value: object) -> str:
    try:
        text = repr(cast(Any, value))
    except RecursionError:
        text = f'a {type(value).__name__} that is nested too deep'
    return text if len(text) <= _LONGEST else f'{text[:_LONGEST]}...'


_LONGEST = 80
_EXPECTED = {'model_type': 'an object', 'list_type': 'a list', 'string_type': 'a string', 'int_type': 'a whole number'}
