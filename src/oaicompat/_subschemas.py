"""JSON Schemas as trees: where their subschemas are, what references name, and two schemas merged to one.

`nodes()` and `mapped()` know which keywords hold schemas, so a property called `$ref` is no reference. `inlined()`
puts what references name in their place; a type can't be inlined into itself, so there the recursion ends in a schema
that takes any such value. `both()` and `either()` accept at least what the two schemas accept together, or each.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import reduce
from itertools import product
from typing import Any, cast
from urllib.parse import unquote

Schema = dict[str, Any]
MAX_PARTS, MAX_DEPTH = 20_000, 128
"""The dicts, lists and values that a schema may have, and its levels of JSON."""

_WORDS, _PAIRS = 300, 64  # letters that a left-out keyword adds to a description; branches of two merged unions
_STRING = ('minLength', 'maxLength', 'pattern', 'contentEncoding', 'contentMediaType')
_NUMBER = ('minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf')
_ARRAY = (
    *('items', 'prefixItems', 'additionalItems', 'unevaluatedItems', 'contains', 'minContains', 'maxContains'),
    *('minItems', 'maxItems', 'uniqueItems'),
)
_OBJECT = (
    *('properties', 'required', 'additionalProperties', 'patternProperties', 'propertyNames', 'minProperties'),
    *('maxProperties', 'dependentRequired', 'dependentSchemas', 'dependencies', 'unevaluatedProperties'),
)
ABOUT = {
    **dict.fromkeys(_STRING, 'string'),
    **dict.fromkeys(_NUMBER, 'number'),
    **dict.fromkeys(_ARRAY, 'array'),
    **dict.fromkeys(_OBJECT, 'object'),
}
"""The one type that a keyword constrains."""
SILENT = frozenset({'title', '$schema', '$id', '$comment', '$anchor', 'discriminator'})
"""Keywords that tell a model nothing."""
ANNOTATIONS = SILENT | {'description', 'default', 'examples', 'example', 'deprecated', 'readOnly', 'writeOnly'}
"""Keywords that no value is refused for."""

# What depends on a keyword, and would mean something else without it.
_WITH = {
    'if': ('then', 'else', 'unevaluatedProperties', 'unevaluatedItems'),
    'contains': ('minContains', 'maxContains', 'unevaluatedItems'),
    'patternProperties': ('additionalProperties', 'unevaluatedProperties'),
    'additionalProperties': ('unevaluatedProperties',),
    'dependentSchemas': ('unevaluatedProperties', 'unevaluatedItems'),
    'dependencies': ('unevaluatedProperties', 'unevaluatedItems'),
}
_NAMED = frozenset({'properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas', 'dependencies'})
_LISTED = frozenset({'anyOf', 'oneOf', 'allOf', 'prefixItems', 'items'})
_SINGLE = frozenset({'items', 'additionalItems', 'unevaluatedItems', 'contains', 'additionalProperties', 'not'}) | {
    *('propertyNames', 'unevaluatedProperties', 'if', 'then', 'else', 'contentSchema')
}


# The tree


def nodes(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """`schema` and every schema below it."""
    todo: list[Any] = [schema]
    for _ in range(MAX_PARTS):
        if not todo:
            return
        if not isinstance(node := todo.pop(), Mapping):
            continue
        yield node
        for key, value in node.items():
            if key in _NAMED and isinstance(value, Mapping):
                todo.extend(value.values())
            elif key in _LISTED and isinstance(value, list):
                todo.extend(value)
            elif key in _SINGLE:
                todo.append(value)
    raise ValueError(f'the schema is too large to rewrite: it has more than {MAX_PARTS} parts')


def mapped(node: Schema, change: Callable[[str, Any], Any]) -> Schema:
    """`node` with `change` done to each schema right below it; the node itself where nothing changes."""

    def changed(key: str, value: Any) -> Any:
        if key in _NAMED and isinstance(value, Mapping):
            named = {name: change(key, each) for name, each in value.items()}
            return named if any(named[name] is not value[name] for name in named) else value
        if key in _LISTED and isinstance(value, list):
            listed = [change(key, each) for each in value]
            return listed if any(a is not b for a, b in zip(listed, value, strict=True)) else value
        return change(key, value) if key in _SINGLE else value

    new = {key: changed(key, value) for key, value in node.items()}
    return new if any(new[key] is not node[key] for key in node) else node


def check(schema: object) -> None:
    """Raise `ValueError` where `schema` is too large or too deep, as one that holds itself is."""
    todo = [(schema, 1)]
    for _ in range(MAX_PARTS):
        if not todo:
            return
        value, depth = todo.pop()
        if depth > MAX_DEPTH:
            raise ValueError(f'the schema is too deep to rewrite: it has more than {MAX_DEPTH} levels')
        if isinstance(value, Mapping | list):
            todo.extend((each, depth + 1) for each in (value.values() if isinstance(value, Mapping) else value))
    raise ValueError(f'the schema is too large to rewrite: it has, or would get, more than {MAX_PARTS} parts')


def noted(node: Schema, words: str) -> Schema:
    """`node` with `words` at the end of its description."""
    words = f'({words if len(words) <= _WORDS else words[:_WORDS] + "..."})'
    said = node.get('description')
    return {**node, 'description': f'{said} {words}' if isinstance(said, str) and said else words}


def text(value: object) -> str:
    """`value` as it stands in a description."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def without(keyword: str, node: Schema) -> Schema:
    """`node` without `keyword` and what depends on it, and with what that said at the end of its description."""
    if keyword not in node:
        return node
    gone = {key: node[key] for key in (keyword, *_WITH.get(keyword, ())) if key in node}
    told = ', '.join(f'{key}: {text(value)}' for key, value in gone.items() if _telling(key, value))
    new = {key: value for key, value in node.items() if key not in gone}
    return noted(new, told) if told else new


def _telling(key: str, value: Any) -> bool:
    if key in SILENT or value is None or (value is False and key != 'default'):
        return False
    return (value is not True and value != {}) or key in (
        'uniqueItems',
        'deprecated',
        'readOnly',
        'writeOnly',
        'default',
    )


# References


def points_inside(schema: Schema) -> bool:
    """Whether a reference names a place that a rewrite may move, rather than a definition or the root."""
    refs = [node['$ref'] for node in nodes(schema) if isinstance(node.get('$ref'), str)]
    return not all(re.fullmatch(r'#(/(\$defs|definitions)/[^/]+)?', ref) for ref in refs)


def inlined(schema: Schema) -> Schema:
    """`schema` with what each reference names in its place, and without definitions."""
    if not any(key in node for node in nodes(schema) for key in ('$ref', '$defs', 'definitions')):
        return schema
    left = iter(range(MAX_PARTS))

    def walked(node: Any, root: Schema, seen: tuple[int, ...], depth: int) -> Any:
        if not isinstance(node, Mapping):
            return node
        if next(left, None) is None or depth > MAX_DEPTH // 2:
            raise ValueError(
                f'the schema is too large or too deep once inlined: over {MAX_PARTS} parts or {depth} levels'
            )
        root = cast(Schema, node) if isinstance(node.get('$id'), str) else root
        rest = {key: value for key, value in node.items() if key not in ('$ref', '$defs', 'definitions')}
        new = mapped(rest, lambda _, value: walked(value, root, seen, depth + 1))
        if not isinstance(ref := node.get('$ref'), str):
            return new
        target = _resolved(root, ref)
        if id(target) in seen:
            outline = {key: target[key] for key in ('type', 'description') if isinstance(target.get(key), str)}
            return both(new, noted(outline, f'again: {ref.rpartition("/")[2]}'))
        found = walked(target, root, (*seen, id(target)), depth + 1)
        return both(new, found if isinstance(found, Mapping) else {} if found else {'not': {}})

    return cast(Schema, walked(schema, schema, (id(schema),), 0))


def _resolved(root: Schema, ref: str) -> Any:
    base, _, fragment = ref.partition('#')
    fragment = unquote(fragment)
    found: Any = next((n for n in nodes(root) if str(n.get('$id')).rstrip('#') == base), None) if base else root
    if fragment and not fragment.startswith('/'):
        found = next((n for n in nodes(root) if fragment == n.get('$anchor') or f'#{fragment}' == n.get('$id')), None)
    for part in fragment.split('/')[1:]:
        name = part.replace('~1', '/').replace('~0', '~')
        if isinstance(found, list):
            found = found[int(name)] if re.fullmatch(r'[0-9]{1,6}', name) and int(name) < len(found) else None
        else:
            found = found.get(name) if isinstance(found, Mapping) else None
    if not isinstance(found, Mapping | bool):
        raise ValueError(f'the reference {ref[:200]!r} names no part of the schema; put what it means under $defs')
    return found


# Types and values


def types_of(node: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The types that `node` accepts; `None` for any."""
    given = node.get('type')
    if given is None and (values := values_of(node)) is not None:
        return tuple(dict.fromkeys(map(kind, values)))
    types = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, list) else None
    return (*types, 'null') if types and node.get('nullable') is True and 'null' not in types else types


def values_of(node: Mapping[str, Any]) -> list[Any] | None:
    """The only values that `node` accepts, where it says so."""
    if 'const' in node:
        return [node['const']]
    return node['enum'] if isinstance(node.get('enum'), list) else [None] if node.get('type') == 'null' else None


def kind(value: object) -> str:
    """The JSON Schema type of `value`."""
    names = {bool: 'boolean', int: 'integer', float: 'number', str: 'string', type(None): 'null', list: 'array'}
    return names.get(type(value), 'object')


def wide(types: Iterable[str]) -> set[str]:
    """`types`, each as the word that `ABOUT` has for it."""
    return {'number' if name == 'integer' else name for name in types}


def as_type(types: Iterable[str]) -> Any:
    """`types` as the value of `type`."""
    names = list(dict.fromkeys(types))
    names = [name for name in names if name != 'integer' or 'number' not in names]
    return names[0] if len(names) == 1 else names


def unique(values: Iterable[Any]) -> list[Any]:
    """`values` without repetitions, as JSON counts them: 1 is not true."""
    return list({json.dumps(value, sort_keys=True, default=str): value for value in values}.values())


# Two to one


def both(a: Schema, b: Mapping[str, Any]) -> Schema:
    """A schema for what `a` and `b` both accept; what can't be merged is taken from `a`, which widens."""
    new = {**b, **a}
    for key in a.keys() & b.keys() & _BOTH.keys():
        new[key] = _BOTH[key](a[key], b[key])
    # These say something together, so never half of each.
    for first, *others in (('if', 'then', 'else'), ('contains', 'minContains', 'maxContains')):
        if first in a and first in b:
            new = {key: value for key, value in new.items() if key not in others or key in a}
    return new


def either(a: Schema, b: Schema) -> Schema:
    """A schema for what `a` or `b` accept; a property that one of them declares keeps its schema."""
    new: Schema = {}
    for key in {**a, **b}:
        if key in a and key in b:
            if a[key] == b[key]:
                new[key] = a[key]
            elif key in _EITHER and type(a[key]) is type(b[key]):
                new[key] = _EITHER[key](a[key], b[key])
        elif key in ('description', 'default') or _says_nothing(b if key in a else a, a if key in a else b, key):
            new[key] = a[key] if key in a else b[key]
    new = {key: value for key, value in new.items() if key not in _JOINED}
    if names := {**_named(a), **_named(b)}:
        new['properties'] = {name: _either_named(name, a, b) for name in names}
    types, others = types_of(a), types_of(b)
    if types and others:
        new['type'] = as_type((*types, *others))
    values, more = values_of(a), values_of(b)
    if values is not None and more is not None and new.get('type') != 'null':
        new['enum'] = unique((*values, *more))
    objects = [node for node in (a, b) if 'object' in (types_of(node) or ('object',))]
    if (
        needed := [name for name in needs(objects[0]) if all(name in needs(node) for node in objects)]
        if objects
        else ()
    ):
        new['required'] = needed
    return new


def needs(node: Schema) -> list[Any]:
    """The names that `node` requires."""
    return node['required'] if isinstance(node.get('required'), list) else []


def _says_nothing(other: Schema, own: Schema, key: str) -> bool:
    """Whether `key`, which only `own` has, constrains no value that `other` accepts."""
    types, mine = types_of(other), types_of(own)
    if types is None:
        return False
    return ABOUT[key] not in wide(types) if key in ABOUT else key == 'format' and not wide(types) & wide(mine or types)


def _named(node: Schema) -> dict[str, Any]:
    return node['properties'] if isinstance(node.get('properties'), dict) else {}


def _either_named(name: str, a: Schema, b: Schema) -> Any:
    declared = [_named(node)[name] for node in (a, b) if name in _named(node)]
    others = [node.get('additionalProperties') for node in (a, b) if name not in _named(node)]
    if True in declared:
        return {}
    found = [*declared, *(each for each in others if each)]
    known = [each for each in found if isinstance(each, dict)]
    return reduce(either, known) if known else True


def _names_both(a: Any, b: Any) -> Any:
    if not isinstance(a, Mapping) or not isinstance(b, Mapping):
        return a
    shared = {
        name: both(a[name], b[name]) for name in a if isinstance(a[name], dict) and isinstance(b.get(name), Mapping)
    }
    return {**b, **a, **shared}


def _types_both(a: Any, b: Any) -> Any:
    first, second = types_of({'type': a}) or (), types_of({'type': b}) or ()
    narrow = [x for x in first if x in second or (x == 'integer' and 'number' in second)]
    narrow += [x for x in second if x == 'integer' and 'number' in first and x not in first]
    return as_type(narrow) if narrow else a


def _pairs_both(a: Any, b: Any) -> Any:
    if not isinstance(a, list) or not isinstance(b, list) or len(a) * len(b) > _PAIRS:
        return a
    sides = ([{} if each is True else each for each in side if each is not False] for side in (a, b))
    return [both(x, y) for x, y in product(*sides)] or a


def _of(pick: Callable[..., Any], *types: type) -> Callable[[Any, Any], Any]:
    return lambda a, b: pick(a, b) if isinstance(a, types) and isinstance(b, types) else a


_LOW = ('minimum', 'exclusiveMinimum', 'minLength', 'minItems', 'minProperties')
_HIGH = ('maximum', 'exclusiveMaximum', 'maxLength', 'maxItems', 'maxProperties')
_BOTH: dict[str, Callable[[Any, Any], Any]] = {
    **dict.fromkeys(_LOW, _of(max, int, float)),
    **dict.fromkeys(_HIGH, _of(min, int, float)),
    **dict.fromkeys(('properties', 'patternProperties'), _names_both),
    'type': _types_both,
    'anyOf': _pairs_both,
    'required': _of(lambda a, b: unique((*a, *b)), list),
    'allOf': _of(lambda a, b: [*a, *b], list),
    'enum': _of(lambda a, b: [value for value in a if value in b] or a, list),
}
_EITHER: dict[str, Callable[[Any, Any], Any]] = {
    **dict.fromkeys(_LOW, min),
    **dict.fromkeys(_HIGH, max),
    'items': lambda a, b: either(a, b) if isinstance(a, dict) else True,
    'description': lambda a, b: f'{a}; or: {b}',
}
_JOINED = ('type', 'const', 'enum', 'nullable', 'required', 'properties')
