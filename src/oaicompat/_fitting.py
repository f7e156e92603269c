"""Arguments as the tool's schema wants them: text to values, and whether they may be meant for the tool. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from oaicompat._json import as_object, dumped, repair_arguments
from oaicompat._nested import _property, _resolved, _types

Schema = Mapping[str, Any]


def fitted(arguments: str, texts: Mapping[str, str], schema: object) -> str | None:
    """The arguments as a JSON object that may be meant for the tool, or `None` if they can't be."""
    text = repair_arguments(arguments)
    values = as_object(text) if text is not None else None
    if text is None or values is None:
        return None
    root = _resolved(schema, schema) if isinstance(schema, Mapping) else {}
    values |= {name: typed(written, _property(root, name), root) for name, written in texts.items()}
    if not _fits(values, root):
        return None
    return dumped(values) if texts else text


def _fits(values: Mapping[str, Any], schema: Schema) -> bool:
    """Whether the tool knows any of the arguments, or could do without knowing them."""
    properties, required = schema.get('properties'), schema.get('required')
    known = properties.keys() if isinstance(properties, Mapping) else set[str]()
    if known & values.keys():
        return True
    needed = required if isinstance(required, list) else []
    missing = any(name not in values for name in needed if isinstance(name, str))
    return not missing and not (values and schema.get('additionalProperties') is False)


def typed(text: str, schema: object, root: Schema) -> Any:
    """What `text` means where `schema` is wanted; itself where that is a string, or where it means nothing else.

    Without a type, text that is JSON is decoded.
    """
    wanted = _types(schema, root)
    options = _resolved(schema, root).get('enum') if isinstance(schema, Mapping) else None
    if isinstance(options, list) and (text in options or text.strip() in options):
        return text if text in options else text.strip()
    if 'string' in wanted and not ('null' in wanted and text.strip() in ('null', 'None')):
        return text
    value = _decoded(text.strip(), strict=not wanted)
    if isinstance(value, float) and value.is_integer() and 'integer' in wanted and 'number' not in wanted:
        value = int(value)
    kinds = _kinds(value)
    return value if (kinds & wanted if wanted else kinds) else text


def _decoded(text: str, *, strict: bool) -> Any:
    """The value that `text` is, as JSON, or as Python if need be; the text itself if it is none."""
    wrapped = f'{{"value": {_WORDS.get(text, text)}}}'
    value = as_object(wrapped if strict else repair_arguments(wrapped) or '')
    return value['value'] if value is not None and value.keys() == {'value'} else text


_WORDS = {'true': 'true', 'True': 'true', 'TRUE': 'true', 'False': 'false', 'FALSE': 'false', 'None': 'null'}


def _kinds(value: object) -> set[str]:
    """The schema types that `value` has; none for strings, and for numbers that JSON does not know."""
    if isinstance(value, float) and not math.isfinite(value):
        return set()
    return _KINDS.get(type(value), set())


_KINDS = {
    bool: {'boolean'},
    int: {'integer', 'number'},
    float: {'number'},
    dict: {'object'},
    list: {'array'},
    type(None): {'null'},
}
