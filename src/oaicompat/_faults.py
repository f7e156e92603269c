"""Faults: pydantic's validation errors to one clear error with file, line, field, value and cure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_ai.exceptions import UserError

from oaicompat._files import Document
from oaicompat._secrets import unkeyed

Value = TypeVar('Value')

_SECRET = frozenset({'api_key', 'headers', 'extra_headers', 'query'})


def validated(
    adapter: TypeAdapter[Value], value: object, document: Document, at: tuple[str, ...], *, keys: Sequence[str]
) -> Value:
    """`value` as the adapter's type.

    Args:
        adapter: What `value` is to be.
        value: The value, with references replaced by what they name.
        document: The file that it stands in.
        at: Its path there.
        keys: All keys that are known anywhere, for a hint where one is unknown.

    Raises:
        UserError: If it is not; one line for each fault.
    """
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        # A model that others refer to is checked with each of them: tell each fault once, where it stands.
        faults = error.errors(include_url=False)
        here = [fault for fault in faults if not _by_reference((*at, *fault['loc']), document.value)]
        told = dict.fromkeys(_explained(fault, document, at, keys) for fault in here or faults)
        raise UserError(unkeyed('\n'.join(told))) from None


def _by_reference(path: Sequence[Any], value: Any) -> bool:
    """Whether the fault is in a model that the file only names where the fault is."""
    models = value.get('models', {})
    for number, step in enumerate(path):
        inside = (isinstance(value, dict) and step in value) or (isinstance(value, list) and isinstance(step, int))
        if not inside:
            continue
        in_list = isinstance(value, list)
        value = value[step]
        if isinstance(value, str) and value in models and (in_list or number == 1):
            return True
    return False


def _explained(fault: Mapping[str, Any], document: Document, at: Sequence[str], keys: Sequence[str]) -> str:
    path = (*at, *fault['loc'])
    last = str(path[-1]) if path else ''
    where, value = document.where(path), fault.get('input')
    match fault['type']:
        case 'missing':
            return f'{where}: `{last}` is missing'
        case 'config_type':
            kind = value.get('type') if isinstance(value, Mapping) else value
            return f'{where}: `type` is {kind!r}; expected string, fallback or test'
        case 'extra_forbidden':
            near = get_close_matches(last, [key for key in keys if key != last], n=1)
            return f'{where}: unknown key `{last}`' + (f'; did you mean `{near[0]}`?' if near else '')
        case 'value_error':
            return f'{where}: {str(fault["msg"]).removeprefix("Value error, ")}'
    plain = isinstance(value, str | int | float) and not _SECRET.intersection(map(str, path))
    return f'{where}: {fault["msg"]}' + (f', got {value!r}' if plain else '')
