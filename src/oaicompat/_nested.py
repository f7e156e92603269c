"""Strings in arguments back to the arrays and objects that the tool's schema wants there.

Some models and servers encode twice what lies inside of the arguments. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

Object = dict[str, Any]


def decode_nested(arguments: Object, schema: Mapping[str, Any]) -> Object | None:
    """`arguments` with strings decoded, at any depth, where the schema wants an object or array and no string.

    Returns:
        The changed arguments, or `None` where there is nothing to decode.
    """
    fitted = _fitted(arguments, schema, schema)
    return fitted if fitted is not arguments else None


def _fitted(value: Any, schema: object, root: Mapping[str, Any], depth: int = 0) -> Any:
    """`value` as `schema` wants it; the same object where there is nothing to decode."""
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return value
    if isinstance(value, str):
        wanted = _types(schema, root)
        decoded = _decoded_as(value, wanted) if wanted and 'string' not in wanted else None
        return value if decoded is None else _fitted(decoded, schema, root, depth + 1)
    if isinstance(value, dict):
        schema = _option(schema, 'object', root)
        changed = {}
        for name, item in value.items():
            fitted = _fitted(item, _property(schema, name), root, depth + 1)
            if fitted is not item:
                changed[name] = fitted
        return {**value, **changed} if changed else value
    if isinstance(value, list):
        schema = _option(schema, 'array', root)
        items = [_fitted(item, _item(schema, n), root, depth + 1) for n, item in enumerate(value)]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    return value


def _property(schema: Mapping[str, Any], name: str) -> object:
    properties = schema.get('properties')
    if isinstance(properties, Mapping) and name in properties:
        return properties[name]
    return schema.get('additionalProperties')


def _item(schema: Mapping[str, Any], number: int) -> object:
    first = schema.get('prefixItems')
    return first[number] if isinstance(first, list) and number < len(first) else schema.get('items')


def _option(schema: Mapping[str, Any], kind: str, root: Mapping[str, Any], depth: int = 0) -> Mapping[str, Any]:
    """What `schema` says of values of the type `kind`, as far as it says one thing."""
    schema = _resolved(schema, root)
    options = [option for key in _COMBINED for option in _listed(schema, key) if kind in _types(option, root)]
    if len(options) != 1 or depth > _DEEPEST:
        return schema if not options else {}
    return _option(options[0], kind, root, depth + 1)


def _decoded_as(text: str, wanted: set[str]) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    fits = ('array' in wanted and isinstance(value, list)) or ('object' in wanted and isinstance(value, dict))
    return value if fits else None


def _types(schema: object, root: Mapping[str, Any], depth: int = 0) -> set[str]:
    """The types that `schema` allows by name; empty where it does not say."""
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return set()
    schema = _resolved(schema, root)
    named = schema.get('type')
    found = {named} if isinstance(named, str) else {name for name in _listed(schema, 'type') if isinstance(name, str)}
    for key in _COMBINED:
        for option in _listed(schema, key):
            types = _types(option, root, depth + 1)
            if not types:
                return set()
            found |= types
    return found


_DEEPEST = 8
_COMBINED = ('anyOf', 'oneOf', 'allOf')


def _listed(schema: Mapping[str, Any], key: str) -> list[Any]:
    value = schema.get(key)
    return value if isinstance(value, list) else []


def _resolved(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    for _ in range(_DEEPEST):
        reference = schema.get('$ref')
        if not isinstance(reference, str) or not reference.startswith('#'):
            break
        target: Any = root
        for step in reference[1:].split('/')[1:]:
            name = step.replace('~1', '/').replace('~0', '~')
            target = target.get(name) if isinstance(target, Mapping) else None
        if not isinstance(target, Mapping):
            break
        schema = target
    return schema
