"""Rewrites of JSON Schemas, by the keyword that a server refused; pure, and the input is never changed.

`REWRITES` is the table: each row is a function from one subschema to the subschema instead of it. `rewritten()` goes
through the tree from the leaves up, all rows in order, until nothing changes; references are inlined before.

A rewrite may widen what a schema accepts, never narrow it (`closed` is a demand, so it may). So a `oneOf` with a
changed branch becomes `anyOf`, and a `not` or `if` that would have to change is left out. What is left out is told in
the description. Taken for granted: the root is an object, and keywords for one type mean that type.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial, reduce
from types import MappingProxyType
from typing import Any, NamedTuple, cast

from oaicompat._dialects import LEFT_OUT
from oaicompat._subschemas import (
    ABOUT,
    ANNOTATIONS,
    Schema,
    as_type,
    both,
    check,
    either,
    inlined,
    kind,
    mapped,
    needs,
    nodes,
    noted,
    points_inside,
    text,
    types_of,
    unique,
    wide,
    without,
)

_Names = Collection[str]
_ROUNDS = 12
_ANY = ('string', 'number', 'boolean', 'object', 'array', 'null')
_UNIONS = ('anyOf', 'oneOf')
_CHOICES = ('allOf', 'anyOf', 'oneOf')
_PARTS = ('allOf', 'if', 'then', 'else', 'not', 'dependentSchemas')
_STAYING = ANNOTATIONS | {'$defs', 'definitions'}


class Rewrite(NamedTuple):
    """What a rewrite does in words, and its function: a schema and all names asked for, to the schema instead."""

    does: str
    change: Callable[[Schema, _Names], Schema]


def rewritten(schema: Mapping[str, Any], rewrites: _Names) -> Schema:
    """`schema` after the named rewrites; the schema itself where they change nothing.

    Args:
        schema: A JSON Schema, as a tool's parameters or structured output have it.
        rewrites: Names from `REWRITES`.

    Raises:
        ValueError: If a name is unknown, a reference names nothing, or the schema is too large or too deep, as it is
            or once its references are inlined.
    """
    if unknown := sorted(set(rewrites) - REWRITES.keys()):
        raise ValueError(f'{unknown[0]!r} is no rewrite of a schema; there are: {", ".join(REWRITES)}')
    check(schema)
    given = cast(Schema, schema)
    names = frozenset(rewrites)
    new = _settled(given, names - {'$ref'})
    # A merge has to see what a reference stands for, and a pointer into the schema dangles once its target moved.
    if '$ref' in names or (new is not given and (names & _MERGING or points_inside(given))):
        new = _settled(inlined(given), names)
    if new is not given:
        check(new)
    return new


def keywords_in(schema: Mapping[str, Any]) -> set[str]:
    """The keywords in `schema` and below it; names of properties are none."""
    return {key for node in nodes(schema) for key in node}


def _settled(schema: Schema, names: frozenset[str]) -> Schema:
    for _ in range(_ROUNDS):
        before = schema
        schema = _walked(_root(schema, names), names)
        if schema is before:
            return schema
        check(schema)
    return schema


def _walked(node: Schema, names: frozenset[str]) -> Schema:
    def below(key: str, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        # One part of a conjunction can't be closed: another part may declare more properties.
        part = key in _PARTS or (key in _UNIONS and 'properties' in node)
        # Items of any type would be, among others, arrays, whose items would be of any type: there is no end to it.
        endless = key == 'items' and not value and names >= {'type', 'items'}
        unmet = ({'closed'} if part else set()) | ({'typed'} if endless else set())
        return _walked(cast(Schema, value), names - unmet if unmet else names)

    new = mapped(node, below)
    if new is not node:
        # A wider schema in one of these would make the whole narrower.
        for key in ('not', 'if', 'contains'):
            if key in new and new[key] is not node[key]:
                new = without(key, {**new, key: node[key]})
        if 'oneOf' in new and new['oneOf'] is not node['oneOf']:
            new = _any_of(new, ())
    for name, rewrite in REWRITES.items():
        if name in names:
            new = rewrite.change(new, names)
    return new


# Left out


def _left_out(keyword: str, node: Schema, _: _Names) -> Schema:
    return without(keyword, node)


def _inclusive(keyword: str, to: str, node: Schema, names: _Names) -> Schema:
    bound = node.get(keyword)
    new = without(keyword, node)
    if isinstance(bound, int | float) and not isinstance(bound, bool) and to not in node and to not in names:
        return {**new, to: bound}
    return new


# Values


def _boolean(node: Schema, _: _Names) -> Schema:
    def schema(key: str, value: Any) -> Any:
        plain = key in ('properties', 'items', 'prefixItems', *_CHOICES)
        return {} if plain and isinstance(value, bool) else value

    return mapped(node, schema)


def _const(node: Schema, _: _Names) -> Schema:
    if 'const' not in node:
        return node
    new = {key: value for key, value in node.items() if key != 'const'}
    return {'type': kind(node['const']), **new, 'enum': [node['const']]}


def _enum(node: Schema, names: _Names) -> Schema:
    values = node.get('enum')
    if not isinstance(values, list) or all(isinstance(value, str) and value for value in values):
        return node
    found = as_type(map(kind, values)) if values else node.get('type')
    strings = [value for value in values if isinstance(value, str)]
    new = {key: value for key, value in node.items() if key != 'enum'}
    alone = {'anyOf', *_CHOICES}.isdisjoint(node) and 'anyOf' not in names
    if alone and strings and [*strings, None] == sorted(values, key=lambda value: value is None) and '' not in strings:
        stays = {key: value for key, value in new.items() if key in _STAYING}
        return {**stays, 'anyOf': [{'type': 'string', 'enum': strings}, {'type': 'null'}]}
    return noted({'type': found, **new}, f'one of: {", ".join(map(text, values))}')


def _nullable(node: Schema, _: _Names) -> Schema:
    if 'nullable' not in node:
        return node
    new = {key: value for key, value in node.items() if key != 'nullable'}
    if node['nullable'] is True and isinstance(node.get('type'), str | list):
        new['type'] = as_type(types_of(node) or ())
        if isinstance(new.get('enum'), list):
            new['enum'] = unique((*new['enum'], None))
    return new


def _type(node: Schema, names: _Names) -> Schema:
    types = node.get('type')
    if not isinstance(types, list) or not types:
        return node
    types = list(dict.fromkeys(types))
    others = [name for name in types if name != 'null']
    if len(types) == 1:
        return {**node, 'type': types[0]}
    if 'anyOf' in names:
        if len(others) == 1 and 'null' in types and 'nullable' not in names:
            # `nullable` is no word of JSON Schema's, and `type` would refuse a null that `enum` lists.
            listed = None in node.get('enum', ())
            rest = {key: value for key, value in node.items() if key != 'type'}
            return rest if listed else {**node, 'type': others[0], 'nullable': True}
        new = {key: value for key, value in node.items() if key != 'type'}
        return noted(new, f'type: {" or ".join(map(str, types))}')
    if 'anyOf' in node:
        return _siblings({**node, 'type': types}, names)
    stays = _STAYING | {'oneOf', 'allOf', 'not', 'if', 'then', 'else', '$ref', 'const'}
    new = {key: value for key, value in node.items() if key in stays}
    return {**new, 'anyOf': [_only(node, name) for name in types if _only(node, name).get('enum') != []]}


def _only(node: Schema, name: str) -> Schema:
    """The part of `node` that is about values of one type."""
    [about] = wide([name])
    new = {'type': name, **{key: value for key, value in node.items() if ABOUT.get(key) == about}}
    if 'enum' in node and name != 'null':
        names = (name, 'integer') if name == 'number' else (name,)
        new['enum'] = [value for value in node['enum'] if kind(value) in names]
    rest = {key: value for key, value in node.items() if key not in {*ABOUT, *_STAYING, 'type', 'enum', *_KEPT_ABOVE}}
    return new if name == 'null' else {**new, **rest}


_KEPT_ABOVE = ('oneOf', 'anyOf', 'allOf', 'not', 'if', 'then', 'else', '$ref', 'const', 'nullable')


# Arrays


def _tuple(node: Schema, _: _Names) -> Schema:
    listed = 'prefixItems' if isinstance(node.get('prefixItems'), list) else 'items'
    places = node.get(listed)
    if not isinstance(places, list):
        return node
    new = {key: value for key, value in node.items() if key not in _PLACES}
    rest = node.get('items' if listed == 'prefixItems' else 'additionalItems', True)
    longest = node.get('maxItems')
    ends = rest is False or (isinstance(longest, int) and longest <= len(places))
    kinds = unique([*places, *(() if ends else (rest,))])
    if len(kinds) > 1:
        new = noted(new, f'items in order: {", ".join(map(_brief, places))}')
    if any(not isinstance(each, Mapping) or not each for each in kinds) or not kinds:
        return new
    return {**new, 'items': kinds[0] if len(kinds) == 1 else {'anyOf': kinds}}


_PLACES = ('prefixItems', 'items', 'additionalItems', 'unevaluatedItems')


def _brief(schema: Any) -> str:
    said = [schema[key] for key in ('title', 'type') if key in schema] if isinstance(schema, Mapping) else []
    return text(said[0]) if said else 'any'


def _items(node: Schema, names: _Names) -> Schema:
    types = node.get('type')
    arrays = types == 'array' or (isinstance(types, list) and 'array' in types)
    endless = 'typed' in names and isinstance(types, list) and len(types) >= len(_ANY)  # its items would be the same
    return (
        {**node, 'items': {}} if arrays and 'items' not in node and 'prefixItems' not in node and not endless else node
    )


# Choices


def _all_of(node: Schema, _: _Names) -> Schema:
    parts = node.get('allOf')
    if not isinstance(parts, list):
        return node
    rest = {key: value for key, value in node.items() if key != 'allOf'}
    return reduce(both, (part for part in parts if isinstance(part, Mapping)), rest)


def _any_of(node: Schema, _: _Names) -> Schema:
    """`oneOf` as `anyOf`."""
    if 'oneOf' not in node:
        return node
    new = {key: value for key, value in node.items() if key != 'oneOf'}
    union = {'anyOf': node['oneOf']}
    return {**new, 'allOf': [*new.get('allOf', ()), union]} if 'anyOf' in new else {**new, **union}


def _joined(keyword: str, node: Schema, _: _Names) -> Schema:
    branches = node.get(keyword)
    if not isinstance(branches, list):
        return node
    rest = {key: value for key, value in node.items() if key != keyword}
    known = unique(branch for branch in branches if isinstance(branch, Mapping))
    if True in branches or {} in known or not known:
        return rest
    one = reduce(either, (dict(branch) for branch in known))
    lost = [{key: value for key, value in branch.items() if _lost(key, value, one)} for branch in known]
    new = both(rest, one)
    # A branch that lost nothing takes all that the new schema does.
    return noted(new, f'either {" or ".join(map(text, lost))}') if len(known) > 1 and all(lost) else new


def _lost(key: str, value: Any, one: Schema) -> bool:
    if key == 'required':
        return bool(value != needs(one))
    return key not in (*one, 'const', 'type', *ANNOTATIONS) and value is not False and value not in ({}, [])


def _siblings(node: Schema, _: _Names) -> Schema:
    rest = {key: value for key, value in node.items() if key not in _STAYING and key != 'anyOf'}
    branches = node.get('anyOf')
    if not isinstance(branches, list) or not rest:
        return node
    new = [
        both(dict(branch), rest) if isinstance(branch, Mapping) else rest for branch in branches if branch is not False
    ]
    return {**{key: value for key, value in node.items() if key in _STAYING}, 'anyOf': new}


# Demands


def _typed(node: Schema, names: _Names) -> Schema:
    if not {'type', '$ref', *_CHOICES}.isdisjoint(node) or {'type', 'anyOf'} <= {*names}:
        return node
    types = types_of(node) or unique(ABOUT[key] for key in node if key in ABOUT) or _ANY
    return {'type': as_type(types), **node}


def _properties(node: Schema, _: _Names) -> Schema:
    if 'properties' in node or (node.get('type') != 'object' and 'required' not in node):
        return node
    return {**node, 'properties': {name: {} for name in needs(node) if isinstance(name, str)}}


def _closed(node: Schema, _: _Names) -> Schema:
    opened = node.get('additionalProperties', True) in (True, {})
    parts = {'$ref', 'if', 'patternProperties', 'dependentSchemas', *_CHOICES} & {*node}
    return {**node, 'additionalProperties': False} if node.get('properties') and opened and not parts else node


def _root(node: Schema, names: _Names) -> Schema:
    if 'typed' in names and {'type', '$ref', *_CHOICES}.isdisjoint(node):
        return {'type': 'object', **node}
    return _flat(node, names) if 'root' in names else node


def _flat(node: Schema, names: _Names) -> Schema:
    """`node` as one object without choices, for the root."""
    for key in ('allOf', 'oneOf', 'anyOf'):
        if isinstance(node.get(key), list):
            node = {**node, key: [_flat(cast(Schema, each), ()) for each in node[key] if isinstance(each, Mapping)]}
            node = _all_of(node, ()) if key == 'allOf' else _joined(key, node, ())
    for key in ('enum', 'const', 'not', 'if') if names else ():
        node = without(key, node)
    if not names or (node.get('type') == 'object' and 'properties' in node):
        return node
    return {**node, 'type': 'object', 'properties': node.get('properties', {})}


def _whole(node: Schema, _: _Names) -> Schema:
    return node  # done for the whole schema, in `rewritten()` or `_root()`


_MERGING = frozenset({'anyOf', 'allOf', 'anyOf.siblings', 'root'})
_DOES = 'left out, and told in the description where it tells something'

REWRITES: Mapping[str, Rewrite] = MappingProxyType(
    {
        '$ref': Rewrite('inlined, with `$defs`; a recursive type once, then as any value of its type', _whole),
        'boolean': Rewrite('`true` and `false` in place of a schema become `{}`', _boolean),
        'const': Rewrite('an `enum` of one', _const),
        'nullable': Rewrite('`null` as one of its types', _nullable),
        'allOf': Rewrite('merged into its schema', _all_of),
        'oneOf': Rewrite('`anyOf`', _any_of),
        'prefixItems': Rewrite('also a list of `items`: one schema for all places', _tuple),
        'enum': Rewrite('values other than strings left out, and told in the description', _enum),
        'type': Rewrite('a list of types becomes `anyOf`', _type),
        'anyOf': Rewrite('joined to one schema that accepts what any branch does', partial(_joined, 'anyOf')),
        'anyOf.siblings': Rewrite('`type` and what else is beside `anyOf` moves into its branches', _siblings),
        'exclusiveMinimum': Rewrite('`minimum`', partial(_inclusive, 'exclusiveMinimum', 'minimum')),
        'exclusiveMaximum': Rewrite('`maximum`', partial(_inclusive, 'exclusiveMaximum', 'maximum')),
        **{keyword: Rewrite(_DOES, partial(_left_out, keyword)) for keyword in LEFT_OUT},
        'typed': Rewrite('a schema without `type` gets the types that it accepts', _typed),
        'closed': Rewrite('objects with properties get `additionalProperties: false`', _closed),
        'properties': Rewrite('objects without `properties` get them', _properties),
        'items': Rewrite('arrays without `items` get `{}`', _items),
        'root': Rewrite('the root becomes one object, without choices between schemas', _whole),
    }
)
"""Every rewrite by the keyword that it answers to, or by what a server demands, in the order they are done."""
