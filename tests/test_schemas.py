"""Schemas that a server refused: what they become, what a refusal asks for, and that nothing the tool takes is lost."""

# ruff: noqa: E501, ISC004, RUF001 - refusals stand on as few lines, and in the letters, that they were sent in

from __future__ import annotations

import copy
import json
from collections.abc import Collection, Mapping
from datetime import date, datetime
from enum import Enum, IntEnum
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel, Field

from oaicompat._dialects import DIALECTS, REWRITE_NAMES
from oaicompat._schemas import BLIND, REWRITES, keywords_in, rewrites_for, rewritten
from oaicompat._subschemas import MAX_DEPTH

Schema = dict[str, Any]
ANY = ['string', 'number', 'boolean', 'object', 'array', 'null']
TREE: Schema = {
    'type': 'object',
    'properties': {'root': {'$ref': '#/$defs/Node', 'description': 'The top.'}},
    'required': ['root'],
    '$defs': {
        'Node': {
            'type': 'object',
            'description': 'A node.',
            'properties': {
                'value': {'type': 'integer'},
                'children': {'type': 'array', 'items': {'$ref': '#/$defs/Node'}},
            },
            'required': ['value'],
        }
    },
}
EITHER_NAME: Schema = {
    'type': 'object',
    'properties': {'a': {'type': 'string'}, 'b': {'type': 'string'}},
    'anyOf': [{'required': ['a']}, {'required': ['b']}],
}
TABLE: list[tuple[str, Schema, tuple[str, ...], Schema]] = [
    (
        'a recursive type stands there once, then as any value of its type',
        TREE,
        ('$ref',),
        {
            'type': 'object',
            'properties': {
                'root': {
                    'type': 'object',
                    'description': 'The top.',
                    'properties': {
                        'value': {'type': 'integer'},
                        'children': {
                            'type': 'array',
                            'items': {'type': 'object', 'description': 'A node. (again: Node)'},
                        },
                    },
                    'required': ['value'],
                }
            },
            'required': ['root'],
        },
    ),
    (
        'the root refers to itself',
        {'type': 'object', 'properties': {'next': {'$ref': '#'}}},
        ('$ref',),
        {'type': 'object', 'properties': {'next': {'type': 'object', 'description': '(again: #)'}}},
    ),
    (
        'the root is a reference',
        {'$ref': '#/definitions/A', 'definitions': {'A': {'type': 'object', 'properties': {'x': {'type': 'string'}}}}},
        ('$ref',),
        {'type': 'object', 'properties': {'x': {'type': 'string'}}},
    ),
    (
        'escapes, chains, anchors and places inside',
        {
            'properties': {
                'a': {'$ref': '#/$defs/x~1y~0z%20w'},
                'b': {'$ref': '#/properties/a'},
                'c': {'$ref': '#here'},
                'd': {'$ref': '#/properties/e/prefixItems/1'},
                'e': {'prefixItems': [{'type': 'null'}, {'type': 'boolean'}]},
            },
            '$defs': {
                'x/y~z w': {'$ref': '#/$defs/s'},
                's': {'type': 'string'},
                't': {'$anchor': 'here', 'minimum': 1},
            },
        },
        ('$ref', '$anchor'),
        {
            'properties': {
                'a': {'type': 'string'},
                'b': {'type': 'string'},
                'c': {'minimum': 1},
                'd': {'type': 'boolean'},
                'e': {'prefixItems': [{'type': 'null'}, {'type': 'boolean'}]},
            },
        },
    ),
    (
        'what is beside a reference holds, too',
        {
            'properties': {'a': {'$ref': '#/$defs/A', 'title': 'Mine', 'maxLength': 5, 'minLength': 2}},
            '$defs': {'A': {'type': 'string', 'title': 'A', 'minLength': 1, 'maxLength': 9}},
        },
        ('$ref',),
        {'properties': {'a': {'type': 'string', 'title': 'Mine', 'minLength': 2, 'maxLength': 5}}},
    ),
    (
        'a reference that only leads to itself',
        {'$ref': '#/$defs/A', '$defs': {'A': {'$ref': '#/$defs/A'}}},
        ('$ref',),
        {'description': '(again: A)'},
    ),
    (
        'a definition with an id of its own is a document of its own',
        {
            '$id': 'https://x.test/s',
            'properties': {'a': {'$ref': 'https://x.test/s#/$defs/A'}, 'b': {'$ref': 'tree'}},
            '$defs': {
                'A': {'type': 'string'},
                'T': {'$id': 'tree', '$ref': '#/$defs/A', '$defs': {'A': {'type': 'integer'}}},
            },
        },
        ('$ref', '$id'),
        {'properties': {'a': {'type': 'string'}, 'b': {'type': 'integer'}}},
    ),
    (
        'properties with the names of keywords are none',
        {'properties': {'$ref': {'type': 'string'}, 'format': {'type': 'string'}, 'anyOf': {'type': 'array'}}},
        ('$ref', 'format', 'anyOf', 'additionalProperties', 'default'),
        {'properties': {'$ref': {'type': 'string'}, 'format': {'type': 'string'}, 'anyOf': {'type': 'array'}}},
    ),
    (
        'values that look like schemas are none',
        {'const': {'format': 'x'}, 'default': {'$ref': '#/no'}, 'examples': [{'format': 'x'}]},
        ('format', '$ref'),
        {'const': {'format': 'x'}, 'default': {'$ref': '#/no'}, 'examples': [{'format': 'x'}]},
    ),
    (
        'what is left out is told',
        {
            'type': 'string',
            'description': 'When.',
            'format': 'date-time',
            'minLength': 3,
            'default': 'now',
            'title': 'T',
        },
        ('format', 'minLength', 'default', 'title'),
        {'type': 'string', 'description': 'When. (format: date-time) (minLength: 3) (default: now)'},
    ),
    (
        'zero, one and false are told, what says nothing is not',
        {'type': 'integer', 'minimum': 1, 'maximum': 0, 'default': False, 'uniqueItems': False, '$comment': 'c'},
        ('minimum', 'maximum', 'default', 'uniqueItems', '$comment'),
        {'type': 'integer', 'description': '(minimum: 1) (maximum: 0) (default: false)'},
    ),
    (
        'additional properties',
        {
            'additionalProperties': False,
            'properties': {'m': {'type': 'object', 'additionalProperties': {'type': 'integer'}}},
        },
        ('additionalProperties',),
        {'properties': {'m': {'type': 'object', 'description': '(additionalProperties: {"type": "integer"})'}}},
    ),
    (
        'what depends on what is left out goes with it',
        {'patternProperties': {'^x': {'type': 'string'}}, 'additionalProperties': False},
        ('patternProperties',),
        {'description': '(patternProperties: {"^x": {"type": "string"}})'},
    ),
    (
        'a condition',
        {'if': {'required': ['a']}, 'then': {'required': ['b']}, 'else': False},
        ('if',),
        {'description': '(if: {"required": ["a"]}, then: {"required": ["b"]})'},
    ),
    (
        'a wider condition or negation would be a narrower schema',
        {
            'type': 'string',
            'not': {'format': 'email'},
            'if': {'pattern': '^a', 'format': 'email'},
            'then': {'maxLength': 3},
        },
        ('format',),
        {
            'type': 'string',
            'description': '(not: {"format": "email"}) (if: {"pattern": "^a", "format": "email"}, then: {"maxLength": 3})',
        },
    ),
    (
        'branches that are no longer apart',
        {'oneOf': [{'type': 'string', 'pattern': '^a'}, {'type': 'string', 'pattern': '^b'}]},
        ('pattern',),
        {
            'anyOf': [
                {'type': 'string', 'description': '(pattern: ^a)'},
                {'type': 'string', 'description': '(pattern: ^b)'},
            ]
        },
    ),
    (
        'one of',
        {'oneOf': [{'type': 'string'}, {'type': 'null'}]},
        ('oneOf',),
        {'anyOf': [{'type': 'string'}, {'type': 'null'}]},
    ),
    (
        'both unions',
        {'oneOf': [{'minimum': 1}], 'anyOf': [{'type': 'integer'}, {'type': 'null'}]},
        ('oneOf', 'allOf'),
        {'anyOf': [{'type': 'integer', 'minimum': 1}, {'type': 'null', 'minimum': 1}]},
    ),
    (
        'both unions, one of which takes anything',
        {'oneOf': [{'minimum': 1}, True], 'anyOf': [{'type': 'integer'}]},
        ('oneOf', 'allOf'),
        {'anyOf': [{'type': 'integer', 'minimum': 1}, {'type': 'integer'}]},
    ),
    (
        'optional text',
        {'anyOf': [{'type': 'string', 'format': 'date-time'}, {'type': 'null'}], 'default': None, 'title': 'When'},
        ('anyOf',),
        {'type': ['string', 'null'], 'format': 'date-time', 'default': None, 'title': 'When'},
    ),
    (
        'optional text, where no list of types is taken',
        {'anyOf': [{'type': 'string', 'minLength': 1}, {'type': 'null'}]},
        ('anyOf', 'type'),
        {'type': 'string', 'minLength': 1, 'nullable': True},
    ),
    (
        'where nothing is taken that says so, it is told',
        {'anyOf': [{'type': 'string'}, {'type': 'integer'}]},
        ('anyOf', 'type', 'nullable'),
        {'description': '(type: string or integer)'},
    ),
    (
        'optional choice',
        {'anyOf': [{'enum': ['a', 'b'], 'type': 'string'}, {'type': 'null'}]},
        ('anyOf',),
        {'type': ['string', 'null'], 'enum': ['a', 'b', None]},
    ),
    (
        'types that are apart keep their keywords',
        {'anyOf': [{'type': 'string', 'minLength': 1}, {'type': 'array', 'items': {'type': 'integer'}, 'maxItems': 3}]},
        ('anyOf',),
        {'type': ['string', 'array'], 'minLength': 1, 'items': {'type': 'integer'}, 'maxItems': 3},
    ),
    (
        'objects are joined',
        {
            'oneOf': [
                {
                    'type': 'object',
                    'properties': {'kind': {'const': 'cat', 'type': 'string'}, 'lives': {'type': 'integer'}},
                    'required': ['kind', 'lives'],
                },
                {
                    'type': 'object',
                    'properties': {'kind': {'const': 'dog', 'type': 'string'}, 'lives': {'type': 'null'}},
                    'required': ['kind'],
                },
            ],
            'discriminator': {'propertyName': 'kind'},
        },
        ('oneOf', 'anyOf', 'discriminator'),
        {
            'type': 'object',
            'properties': {'kind': {'type': 'string', 'enum': ['cat', 'dog']}, 'lives': {'type': ['integer', 'null']}},
            'required': ['kind'],
        },
    ),
    (
        'a union with anything is anything',
        {'anyOf': [{'type': 'string'}, True], 'description': 'D'},
        ('anyOf',),
        {'description': 'D'},
    ),
    (
        'what is beside a union moves into it',
        EITHER_NAME,
        ('anyOf.siblings',),
        {
            'anyOf': [
                {'type': 'object', 'properties': EITHER_NAME['properties'], 'required': ['a']},
                {'type': 'object', 'properties': EITHER_NAME['properties'], 'required': ['b']},
            ]
        },
    ),
    (
        'a root without choices',
        EITHER_NAME,
        ('root',),
        {
            'type': 'object',
            'properties': EITHER_NAME['properties'],
            'description': '(either {"required": ["a"]} or {"required": ["b"]})',
        },
    ),
    ('an empty root', {}, ('root',), {'type': 'object', 'properties': {}}),
    (
        'all of',
        {
            'allOf': [
                {'type': 'object', 'properties': {'a': {'type': 'number', 'minimum': 1}}, 'required': ['a']},
                {'properties': {'a': {'type': 'integer', 'minimum': 2}, 'b': {'type': 'string'}}, 'required': ['b']},
            ],
            'description': 'D',
        },
        ('allOf',),
        {
            'type': 'object',
            'description': 'D',
            'properties': {'a': {'type': 'integer', 'minimum': 2}, 'b': {'type': 'string'}},
            'required': ['a', 'b'],
        },
    ),
    ('const', {'const': 'a'}, ('const',), {'type': 'string', 'enum': ['a']}),
    ('const true is no integer', {'const': True}, ('const',), {'type': 'boolean', 'enum': [True]}),
    ('an enum of text stays', {'enum': ['a', 'b']}, ('enum',), {'enum': ['a', 'b']}),
    (
        'an enum of numbers',
        {'type': 'integer', 'enum': [1, 2], 'description': 'N.'},
        ('enum',),
        {'type': 'integer', 'description': 'N. (one of: 1, 2)'},
    ),
    (
        'an enum of many types',
        {'enum': [1, 'a', True]},
        ('enum',),
        {'type': ['integer', 'string', 'boolean'], 'description': '(one of: 1, a, true)'},
    ),
    (
        'an enum of text and null',
        {'enum': ['a', None], 'title': 'T'},
        ('enum',),
        {'title': 'T', 'anyOf': [{'type': 'string', 'enum': ['a']}, {'type': 'null'}]},
    ),
    (
        'nullable',
        {'type': 'string', 'nullable': True, 'enum': ['a']},
        ('nullable',),
        {'type': ['string', 'null'], 'enum': ['a', None]},
    ),
    (
        'a list of types',
        {'type': ['array', 'null'], 'items': {'type': 'string'}, 'description': 'D', 'minItems': 1},
        ('type',),
        {
            'description': 'D',
            'anyOf': [{'type': 'array', 'items': {'type': 'string'}, 'minItems': 1}, {'type': 'null'}],
        },
    ),
    (
        'a list of types and an enum',
        {'type': ['string', 'integer', 'null'], 'enum': ['a', 1, None]},
        ('type',),
        {'anyOf': [{'type': 'string', 'enum': ['a']}, {'type': 'integer', 'enum': [1]}, {'type': 'null'}]},
    ),
    ('a list of one type', {'type': ['string']}, ('type',), {'type': 'string'}),
    (
        'a tuple',
        {'type': 'array', 'prefixItems': [{'type': 'string'}, {'type': 'integer'}], 'minItems': 2, 'maxItems': 2},
        ('prefixItems',),
        {
            'type': 'array',
            'items': {'anyOf': [{'type': 'string'}, {'type': 'integer'}]},
            'minItems': 2,
            'maxItems': 2,
            'description': '(items in order: string, integer)',
        },
    ),
    (
        'a tuple of an older draft, with more after it',
        {'items': [{'type': 'string'}], 'additionalItems': {'type': 'null'}},
        ('prefixItems',),
        {'items': {'anyOf': [{'type': 'string'}, {'type': 'null'}]}, 'description': '(items in order: string)'},
    ),
    (
        'a tuple with anything after it',
        {'prefixItems': [{'type': 'string'}]},
        ('prefixItems',),
        {'description': '(items in order: string)'},
    ),
    (
        'an exclusive bound',
        {'type': 'integer', 'exclusiveMinimum': 0},
        ('exclusiveMinimum',),
        {'type': 'integer', 'minimum': 0, 'description': '(exclusiveMinimum: 0)'},
    ),
    ('an exclusive bound of draft 4', {'minimum': 0, 'exclusiveMinimum': True}, ('exclusiveMinimum',), {'minimum': 0}),
    ('no bounds', {'exclusiveMaximum': 5}, ('exclusiveMaximum', 'maximum'), {'description': '(exclusiveMaximum: 5)'}),
    (
        'any value has six types',
        {'properties': {'a': {}}, 'type': 'object'},
        ('typed',),
        {'properties': {'a': {'type': ANY}}, 'type': 'object'},
    ),
    (
        'types of values',
        {'type': 'object', 'properties': {'a': {'enum': ['x', 1]}}},
        ('typed',),
        {'type': 'object', 'properties': {'a': {'enum': ['x', 1], 'type': ['string', 'integer']}}},
    ),
    ('types of keywords', {'required': ['a']}, ('typed',), {'type': 'object', 'required': ['a']}),
    ('a root without a type', {'description': 'D'}, ('typed',), {'type': 'object', 'description': 'D'}),
    (
        'an object without properties',
        {'type': 'object', 'required': ['a']},
        ('properties',),
        {'type': 'object', 'required': ['a'], 'properties': {'a': {}}},
    ),
    ('an array without items', {'type': ['array', 'null']}, ('items',), {'type': ['array', 'null'], 'items': {}}),
    (
        'types, and items, for what may be anything: arrays in it have items of any type, said once',
        {'properties': {'x': {'title': 'X'}}},
        ('items', 'type', 'typed'),
        {
            'type': 'object',
            'properties': {
                'x': {
                    'title': 'X',
                    'anyOf': [
                        {'type': 'string'},
                        {'type': 'number'},
                        {'type': 'boolean'},
                        {'type': 'object'},
                        {'type': 'array', 'items': {}},
                        {'type': 'null'},
                    ],
                }
            },
        },
    ),
    (
        'schemas that are booleans',
        {'properties': {'a': True}, 'items': True, 'additionalProperties': True},
        ('boolean',),
        {'properties': {'a': {}}, 'items': {}, 'additionalProperties': True},
    ),
    (
        'closed objects; open ones and parts of a whole stay',
        {
            'properties': {
                'a': {'type': 'object', 'properties': {'x': {}}, 'required': ['x']},
                'free': {'type': 'object', 'additionalProperties': {'type': 'string'}},
                'parts': {'allOf': [{'properties': {'x': {}}}, {'properties': {'y': {}}}]},
                'union': {'anyOf': [{'properties': {'x': {}}}, {'type': 'null'}]},
            }
        },
        ('closed',),
        {
            'properties': {
                'a': {'type': 'object', 'properties': {'x': {}}, 'required': ['x'], 'additionalProperties': False},
                'free': {'type': 'object', 'additionalProperties': {'type': 'string'}},
                'parts': {'allOf': [{'properties': {'x': {}}}, {'properties': {'y': {}}}]},
                'union': {'anyOf': [{'properties': {'x': {}}, 'additionalProperties': False}, {'type': 'null'}]},
            },
            'additionalProperties': False,
        },
    ),
    (
        'a merge inlines what it has to see',
        {
            'properties': {'a': {'anyOf': [{'$ref': '#/$defs/A'}, {'type': 'null'}]}},
            '$defs': {'A': {'type': 'object', 'properties': {'x': {'type': 'string'}}}},
        },
        ('anyOf',),
        {'properties': {'a': {'type': ['object', 'null'], 'properties': {'x': {'type': 'string'}}}}},
    ),
    (
        'a reference to a definition stays',
        {'properties': {'a': {'$ref': '#/$defs/A'}}, '$defs': {'A': {'type': 'string', 'format': 'uri'}}},
        ('format',),
        {
            'properties': {'a': {'$ref': '#/$defs/A'}},
            '$defs': {'A': {'type': 'string', 'description': '(format: uri)'}},
        },
    ),
]


@pytest.mark.parametrize(('schema', 'rewrites', 'expected'), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_a_schema_becomes(schema: Schema, rewrites: tuple[str, ...], expected: Schema) -> None:
    before = copy.deepcopy(schema)
    result = rewritten(schema, rewrites)
    assert result == expected
    assert (result is schema) == (expected == before)
    assert schema == before
    assert rewritten(result, rewrites) is result


def test_every_rewrite_is_described_and_every_dialect_has_evidence() -> None:
    assert all(row.does for row in REWRITES.values())
    assert tuple(REWRITES) == REWRITE_NAMES
    for dialect in DIALECTS.values():
        assert set(dialect.rewrites) <= REWRITES.keys()
        assert dialect.evidence
        assert all(link.startswith('https://') for link in dialect.evidence)


@pytest.mark.parametrize(
    ('schema', 'rewrites', 'error'),
    [
        ({}, ('nonsense',), "'nonsense' is no rewrite of a schema; there are: $ref, "),
        ({'$ref': '#/$defs/A'}, ('$ref',), "the reference '#/$defs/A' names no part of the schema; put what it means"),
        ({'$ref': 'https://x.test/s.json'}, ('$ref',), "the reference 'https://x.test/s.json' names no part"),
        ({'$ref': '#/required/0', 'required': ['a']}, ('$ref',), "the reference '#/required/0' names no part"),
        ({'enum': list(range(20_000))}, ('format',), 'the schema is too large to rewrite'),
    ],
)
def test_what_cannot_be_rewritten_is_an_error(schema: Schema, rewrites: tuple[str, ...], error: str) -> None:
    with pytest.raises(ValueError, match='^' + error.replace('$', r'\$').replace('.', r'\.')):
        rewritten(schema, rewrites)


@pytest.mark.parametrize('rewrites', [*((name,) for name in REWRITES), *BLIND])
@pytest.mark.parametrize('key', ['properties', 'items', 'anyOf', 'not', 'default'])
def test_depth_is_bounded(key: str, rewrites: tuple[str, ...]) -> None:
    schema: Schema = {}
    for _ in range(5_000):
        below = {'x': schema} if key == 'properties' else [schema] if key == 'anyOf' else schema
        schema = {key: below, 'title': 'T'}
    with pytest.raises(ValueError, match=f'too deep to rewrite: it has more than {MAX_DEPTH} levels'):
        rewritten(schema, rewrites)


def test_as_deep_as_allowed_works_deep_in_a_stack() -> None:
    schema: Schema = {'type': ['string', 'null'], 'format': 'x'}
    for _ in range(MAX_DEPTH // 2 - 6):
        schema = {'type': 'object', 'properties': {'x': schema}}

    def deeper(levels: int) -> Schema:
        return deeper(levels - 1) if levels else rewritten(schema, BLIND[-1])

    assert 'format' not in keywords_in(deeper(150))


def test_a_schema_that_holds_itself_is_an_error() -> None:
    schema: Schema = {'type': 'object', 'title': 'T'}
    schema['properties'] = {'again': schema}
    with pytest.raises(ValueError, match=r'too (deep|large) to rewrite'):
        rewritten(schema, ('title',))


def test_references_that_double_at_each_step_do_not_blow_up() -> None:
    defs = {
        f'D{n}': {'properties': {'a': {'$ref': f'#/$defs/D{n + 1}'}, 'b': {'$ref': f'#/$defs/D{n + 1}'}}}
        for n in range(30)
    }
    schema = {'$ref': '#/$defs/D0', '$defs': {**defs, 'D30': {'type': 'string'}}}
    with pytest.raises(ValueError, match='too large or too deep once inlined'):
        rewritten(schema, ('$ref',))
    assert rewrites_for('$ref is not supported', schema) == ('$ref',)


def test_a_long_chain_of_references_is_an_error_or_works() -> None:
    chain = {f'D{n}': {'$ref': f'#/$defs/D{n + 1}'} for n in range(500)}
    with pytest.raises(ValueError, match='too large or too deep once inlined'):
        rewritten({'$ref': '#/$defs/D0', '$defs': {**chain, 'D500': {}}}, ('$ref',))
    assert rewritten({'$ref': '#/$defs/D490', '$defs': {**chain, 'D500': {'type': 'string'}}}, ('$ref',)) == {
        'type': 'string'
    }


def test_unions_of_unions_do_not_blow_up() -> None:
    many = [{'anyOf': [{'type': 'object', 'properties': {f'{n}_{m}': {}}} for m in range(9)]} for n in range(12)]
    rewritten({'allOf': many}, ('allOf',))
    nested: Schema = {'type': 'string'}
    for n in range(20):
        nested = {'type': 'object', 'properties': {'x': nested}, 'anyOf': [{'required': ['x']}, {'minProperties': n}]}
    with pytest.raises(ValueError, match='too large'):
        rewritten(nested, ('anyOf.siblings',))


def test_keywords_are_no_property_names() -> None:
    schema = {
        'properties': {'format': {'enum': [{'const': 1}]}, '$ref': True},
        'dependencies': {'if': ['not']},
        'items': [{'type': 'null'}],
    }
    assert keywords_in(schema) == {'properties', 'dependencies', 'items', 'enum', 'type'}


# What a refusal asks for. Each text stands in the page that is linked; names of tools are shortened.

EVERYTHING: Schema = {
    '$schema': 'https://json-schema.org/draft/2020-12/schema',
    '$id': 'x',
    'type': 'object',
    'properties': {
        'when': {'type': 'string', 'format': 'date-time', 'minLength': 1, 'maxLength': 9, 'examples': ['a']},
        'count': {'type': 'integer', 'minimum': 1, 'maximum': 9, 'exclusiveMinimum': 0, 'multipleOf': 2, 'default': 2},
        'list': {'type': 'array', 'minItems': 1, 'maxItems': 2, 'uniqueItems': True, 'contains': {'type': 'null'}},
        'pair': {'type': 'array', 'prefixItems': [{'type': 'string'}], 'title': 'Pair'},
        'maybe': {'type': ['string', 'null']},
        'either': {'anyOf': [{'const': 'a'}, {'$ref': '#/$defs/A'}]},
        'one': {'oneOf': [{'enum': [1, 2]}, {'type': 'null'}]},
        'all': {'allOf': [{'type': 'string', 'pattern': 'x'}]},
        'map': {'type': 'object', 'additionalProperties': {'type': 'string'}, 'propertyNames': {'pattern': 'x'}},
        'known': {'type': 'string', 'not': {'const': ''}, 'nullable': True},
        'beside': {'type': 'object', 'anyOf': [{'required': ['a']}, {'type': 'null'}]},
        'any': {'description': 'Anything.'},
    },
    'additionalProperties': False,
    '$defs': {'A': {'type': 'object', 'properties': {'x': {'type': 'string'}}}},
}
GEMINI = 'Invalid JSON payload received. Unknown name "{}" at \'tools[0].function_declarations[5].parameters.properties[8].value\': Cannot find field.'
REFUSALS: list[tuple[str, str, tuple[str, ...]]] = [
    *(
        (link, GEMINI.format(name), (name,))
        for name, link in {
            'additionalProperties': 'https://github.com/Laisky/one-api/issues/60',
            'exclusiveMinimum': 'https://github.com/ahmadrosid/nakama/issues/292',
            'propertyNames': 'https://github.com/router-for-me/CLIProxyAPI/issues/4393',
            'multipleOf': 'https://github.com/can1357/oh-my-pi/pull/1405',
            'uniqueItems': 'https://github.com/decolua/9router/pull/3018',
            'const': 'https://github.com/zed-industries/zed/issues/44875',
            'examples': 'https://github.com/AstrBotDevs/AstrBot/issues/7572',
            '$schema': 'https://github.com/windmill-labs/windmill/issues/7759',
        }.items()
    ),
    (
        'https://github.com/prism-php/prism/issues/974',
        'Unknown name "additionalProperties" at \'generation_config.response_schema.properties[0].value.items\': Cannot find field.',
        ('additionalProperties',),
    ),
    (
        'https://github.com/openswarm-ai/openswarm/issues/24',
        'API Error: 400 {"error":{"message":"[400]: Invalid JSON payload received. Unknown name \\"$schema\\" at '
        "'tools[0].function_declarations[0].parameters': Cannot find field.\\nInvalid JSON payload received. Unknown name "
        '\\"additionalProperties\\" at \'tools[0].function_declarations[0].parameters\': Cannot find field.',
        ('$schema', 'additionalProperties'),
    ),
    (
        'https://github.com/genkit-ai/genkit/issues/1393',
        'Unknown name "type" at \'generation_config.response_schema.properties[2].value.items.properties[1].value\': Proto '
        'field is not repeating, cannot start list.',
        ('type',),
    ),
    (
        'https://github.com/anomalyco/opencode/issues/12295',
        "$ref 'QuestionOption' was set alongside unsupported fields. \nIf a schema node has $ref set, then only description "
        'and default can be set alongside it',
        ('$ref',),
    ),
    (
        'https://github.com/google-gemini/gemini-cli/issues/13326',
        'reference to undefined schema at properties.target_object.anyOf.1',
        ('$ref',),
    ),
    (
        'https://github.com/TokenRhythm/opensquilla/issues/1263',
        'GenerateContentRequest.tools[0].function_declarations[0].parameters.properties[rows].items.items: missing field.',
        ('items',),
    ),
    (
        'https://github.com/anomalyco/opencode/issues/48073',
        '* GenerateContentRequest.tools[0].function_declarations[9].parameters.properties[languages].items: field predicate '
        'failed: $type == Type.ARRAY',
        ('type',),
    ),
    (
        'https://github.com/anomalyco/opencode/pull/28412',
        'GenerateContentRequest.tools[0].function_declarations[1].parameters.properties[x].enum: only allowed for STRING type',
        ('enum',),
    ),
    (
        'https://github.com/enechange/collmbo/pull/195',
        "tools[0].function_declarations[1].parameters.properties[x].format: only 'enum' and 'date-time' are supported for "
        'STRING type',
        ('format',),
    ),
    (
        'https://github.com/Hmbown/Codewhale/issues/2438',
        '{"error":{"message":"tools.function.parameters is not a valid moonshot flavored json schema, details: <At path root: '
        'when using anyOf, type should be defined in anyOf items instead of the parent schema>","type":"invalid_request_error"}}',
        ('anyOf.siblings',),
    ),
    (
        'https://github.com/lidge-jun/opencodex/pull/2677',
        "details: <At path '$defs.__schema20': when using $ref, type should be defined in the referenced schema instead of the "
        'parent schema>',
        ('$ref',),
    ),
    (
        'https://github.com/CommandCodeAI/command-code/issues/594',
        "details: <At path 'properties.filters.properties.hiddenPageDuration.$ref':\n  references must start with #/$de...",
        ('$ref',),
    ),
    (
        'https://github.com/CommandCodeAI/command-code/issues/566',
        "details: <At path 'properties.external.$ref': $defs not found for reference: #/$defs/IdentifySessionExternalParams>",
        ('$ref',),
    ),
    (
        'https://github.com/duolahypercho/codex-router/issues/641',
        "details: <At path 'properties.details.properties.icon.anyOf.properties.color': type is not defined>",
        ('typed',),
    ),
    (
        'https://github.com/camel-ai/camel/issues/3001',
        "Invalid schema for function 'f': In context=('properties', 'x'), $ref cannot have keywords {'description'}.",
        ('$ref',),
    ),
    (
        'https://github.com/makenotion/notion-mcp-server/issues/102',
        "Invalid schema for function 'u': In context=('properties', 'data'), 'allOf' is not permitted.",
        ('allOf',),
    ),
    (
        'https://github.com/BuilderIO/agent-native/pull/3085',
        "Invalid schema for function 'p': In context=('properties','url','type','0'), 'uri' is not a valid format",
        ('format',),
    ),
    (
        'https://github.com/lastmile-ai/openai-agents-mcp/issues/2',
        "{'error': {'message': \"Invalid schema for function 'f': In context=('properties', 'permissions'), 'additionalProperties' "
        "is required to be supplied and to be false.\", 'type': 'invalid_request_error', 'param': 'tools[22].parameters'}}",
        ('closed',),
    ),
    (
        'https://github.com/moltis-org/moltis/issues/694',
        "Invalid schema for function 'm':\nIn context=('properties', 'query', 'anyOf', '0', 'anyOf', '0', 'not'),\nschema must "
        "have a 'type' key.",
        ('typed',),
    ),
    (
        'https://github.com/karakeep-app/karakeep/issues/1696',
        "Invalid schema for function 'k': In context=(), object schema missing properties.",
        ('properties',),
    ),
    (
        'https://github.com/sigoden/aichat/pull/1049',
        "Invalid schema for function 'f': In context=('properties', 'paths'), array schema missing items.",
        ('items',),
    ),
    (
        'https://github.com/nspady/google-calendar-mcp/issues/39',
        "Invalid schema for function 'e': schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at "
        'the top level.',
        (),
    ),
    (
        'https://github.com/jina-ai/node-DeepResearch/issues/79',
        'Invalid schema for response_format ... maxLength is not permitterd',
        ('maxLength',),
    ),
    (
        'https://github.com/agno-agi/agno/pull/6014',
        "{'message': \"'additionalProperties' is required to be supplied and set to false.\", 'type': 'invalid_request_error'}",
        ('closed',),
    ),
    (
        'https://github.com/musistudio/claude-code-router/issues/708',
        '{\\"message\\":\\"Unsupported JSON schema fields: {\'minItems\', \'items\'}\\",\\"type\\":\\"invalid_request_error\\"}',
        ('minItems',),
    ),
    (
        'https://github.com/browseros-ai/BrowserOS/issues/255',
        'JSON schema conversion failed:\nUnrecognized schema: {"description":"Arguments for the tool (JSON object)"}',
        ('typed',),
    ),
    (
        'https://github.com/containers/kubernetes-mcp-server/issues/758',
        "JSON schema conversion failed:\nPattern must start with '^' and end with '$'",
        ('pattern',),
    ),
    (
        'https://github.com/i-am-bee/beeai-framework/issues/1215',
        'invalid schema for response format: response_format/json_schema/next_step: minItems is not supported',
        ('minItems',),
    ),
    (
        'https://github.com/usestrix/strix/issues/1088',
        "invalid JSON schema for tool v, tools[24].function.parameters: 'required' present but 'properties' is missing",
        ('properties',),
    ),
    (
        'https://github.com/eigent-ai/eigent/pull/1786',
        'invalid JSON schema for tool browser_type, tools[2].function.parameters: /properties/inputs/anyOf/0/items: '
        'additionalProperties:false must be set on every object',
        ('closed',),
    ),
    (
        'https://github.com/SylphxAI/pdf-reader-mcp/issues/63',
        "Invalid tool schema: {'type': 'object', 'properties': {'path': {'type': 'string', 'minLength': 1}, 'pages': {'anyOf': "
        "[{'type': 'array', 'items': {'type': 'integer', 'exclusiveMinimum': True, 'minimum': 0}, 'minItems': 1}]}}} is not valid "
        'under any of the given schemas',
        (),
    ),
    (
        'https://github.com/agentjido/req_llm/issues/302',
        "output_format.schema: For 'integer' type, property 'minimum' is not supported",
        ('minimum',),
    ),
    (
        'https://github.com/sherifkozman/the-llm-council/pull/55',
        "output_config.format.schema: For 'number' type, properties maximum, minimum are not supported",
        ('minimum', 'maximum'),
    ),
    (
        'https://github.com/anthropics/claude-code/issues/40075',
        'tools.9.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level',
        (),
    ),
    (
        'https://github.com/liuw1535/antigravity2api-nodejs/issues/71',
        'tools.26.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12',
        ('prefixItems', 'exclusiveMinimum'),
    ),
    (
        'https://github.com/earendil-works/pi/issues/5352',
        "JSON Schema not supported: could not understand the instance `{'required': ['criteria']}`.",
        ('typed',),
    ),
    (
        'https://github.com/vllm-project/vllm/issues/26421',
        'The provided JSON schema contains features not supported by xgrammar.',
        ('multipleOf', 'uniqueItems', 'contains', 'patternProperties', 'propertyNames', 'pattern', 'format'),
    ),
    (
        'https://github.com/ollama/ollama/issues/10328',
        'json: cannot unmarshal array into Go struct field .tools.function.parameters.properties.type of type string',
        ('type',),
    ),
    (
        'https://github.com/openai/codex/issues/36441',
        "Invalid schema for function 'f': schema must be a JSON Schema of 'type: \"object\"', got 'type: null'.",
        (),
    ),
    (
        'https://github.com/aaif-goose/goose/pull/5064',
        'The value at toolConfig.tools.3.toolSpec.inputSchema.json.type must be one of the following: object.',
        (),
    ),
]


@pytest.mark.parametrize(('link', 'complaint', 'asked'), REFUSALS)
def test_a_refusal_asks_for(link: str, complaint: str, asked: tuple[str, ...]) -> None:
    used = {name for name in asked if rewritten(EVERYTHING, (name,)) is not EVERYTHING}
    assert set(rewrites_for(complaint, EVERYTHING)) == used
    assert rewrites_for(
        complaint, {'type': 'object', 'properties': {name: {'type': 'string'} for name in REWRITES}}
    ) == (('closed',) if asked == ('closed',) else ())


@pytest.mark.parametrize(
    'complaint',
    [
        'Invalid schema: schema must have type "object" and not have "oneOf"/"anyOf"/"allOf" at the top level.',
        'tools.9.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level',
    ],
)
def test_a_refused_root_asks_for_the_root(complaint: str) -> None:
    schema = {'oneOf': [{'type': 'object', 'properties': {'a': {'anyOf': [{'type': 'null'}, {'type': 'string'}]}}}]}
    assert rewrites_for(complaint, schema) == ('root',)
    assert rewritten(schema, ('root',)) == {'type': 'object', **schema['oneOf'][0]}


@pytest.mark.parametrize(
    ('complaint', 'asked'),
    [
        ('参数格式错误：不支持 format 字段', ()),
        ('不支持关键字「format」', ('format',)),
        ('Nicht unterstützt: anyOf', ('anyOf',)),
        ('Le mot-clé «pattern» est refusé', ('pattern',)),
        ("Unsupported JSON schema fields: ['format', 'minItems']", ('format', 'minItems')),
        ('unsupported keywords: format, title', ('title', 'format')),
        ("'$defs' is not permitted", ('$ref',)),
        ('the keywords if and then are not supported', ()),
        ('the response format is not valid, use the default title or pattern of items', ()),
        ('Invalid value: response_format is not supported', ()),
        ("{'type': 'error', 'format': 'json'}", ()),
        ("At path 'properties.format': something is wrong", ()),
        ('', ()),
        ('upstream request failed', ()),
        ('x' * 1_000_000, ()),
        ('a, ' * 200_000, ()),
        ('a.' * 200_000, ()),
        ('/a' * 200_000, ()),
    ],
)
def test_only_a_named_keyword_counts(complaint: str, asked: tuple[str, ...]) -> None:
    assert set(rewrites_for(complaint, EVERYTHING)) == set(asked)


@given(
    st.text(max_size=200) | st.sampled_from([text for _, text, _ in REFUSALS]), st.integers(0, 300), st.integers(0, 300)
)
def test_any_text_can_be_read(text: str, start: int, end: int) -> None:
    for name in rewrites_for(text[start:end], EVERYTHING):
        assert rewritten(EVERYTHING, (name,)) is not EVERYTHING


# What pydantic says of models, and values of them


class Colour(Enum):
    RED = 'red'
    BLUE = 'blue'


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Cat(BaseModel):
    """A cat."""

    kind: Literal['cat'] = 'cat'
    lives: Annotated[int, Field(ge=1, le=9, description='How many.')]


class Dog(BaseModel):
    kind: Literal['dog']
    name: Annotated[str, Field(min_length=1, max_length=10, pattern='^[a-z]+$')]
    friend: Dog | None = None


class Node(BaseModel):
    value: int | str | None
    children: list[Node] = []
    named: dict[str, Node] = {}


class Plain(BaseModel):
    colour: Colour
    level: Level = Level.LOW
    when: datetime | None = None
    day: date
    ident: UUID | None = Field(default=None, description='Which.')
    tags: Annotated[list[Annotated[str, Field(max_length=5)]], Field(min_length=1, max_length=3)]
    pair: tuple[int, str]
    more: tuple[float, ...] = ()
    size: Annotated[float, Field(gt=0, lt=10)] = 1.5
    free: dict[str, Any] = {}
    anything: Any = None
    unique: set[int] = set()
    flag: Literal[True, 'auto', 3, None] = None


class Strict(BaseModel, extra='forbid'):
    format: str = Field(alias='$ref')
    anyOf: Cat  # noqa: N815 - a property with the name of a keyword
    not_: Plain | None = Field(alias='not', default=None)


class Union(BaseModel):
    pet: Annotated[Cat | Dog, Field(discriminator='kind')]
    pets: list[Cat | Dog] = []
    either: Cat | list[int] | str | None = None
    tree: Node
    colours: dict[str, Colour] | None = None


MODELS: list[type[BaseModel]] = [Cat, Dog, Node, Plain, Strict, Union]
names = st.sets(st.sampled_from([name for name in REWRITES if name != 'closed']), max_size=6).map(frozenset)
bundles = st.sampled_from([*BLIND, *(dialect.rewrites for dialect in DIALECTS.values()), tuple(REWRITES)])
model_names = st.sampled_from(MODELS)
REFUSED_BY: Mapping[str, Collection[str]] = {'$ref': ('$ref', '$defs', 'definitions'), 'if': ('if', 'then', 'else')}
STILL_USED = {'enum', 'type', 'items', 'properties', 'nullable', 'prefixItems', 'additionalProperties', 'anyOf'}


@settings(max_examples=150)
@given(model_names, names | bundles)
def test_what_a_model_accepts_stays_accepted(model: type[BaseModel], rewrites: Collection[str]) -> None:
    """Properties, types and `required` survive; refused keywords are gone; twice changes nothing; the input stays."""
    schema = model.model_json_schema()
    before = copy.deepcopy(schema)
    result = rewritten(schema, rewrites)
    assert schema == before
    assert rewritten(result, rewrites) == result
    json.dumps(result)
    Draft202012Validator.check_schema(result)
    for name in set(rewrites) - STILL_USED:
        assert keywords_in(result).isdisjoint(REFUSED_BY.get(name, (name,)))
    if 'anyOf' in rewrites and 'type' not in rewrites:
        assert 'anyOf' not in keywords_in(result)
    top = result if '$ref' not in result else result['$defs'][model.__name__]
    declared = schema if '$ref' not in schema else schema['$defs'][model.__name__]
    if 'anyOf' not in top:
        assert top['properties'].keys() == declared['properties'].keys()
        assert top.get('required') == declared.get('required')
        assert top['type'] == 'object'
        if 'type' not in rewrites or 'anyOf' not in rewrites:
            for name, said in declared['properties'].items():
                assert 'type' not in said or top['properties'][name].get('type', said['type']) == said['type']


VALUES = {
    Cat: st.builds(lambda n: {'kind': 'cat', 'lives': n}, st.integers(1, 9)),
    Dog: st.recursive(
        st.just({'kind': 'dog', 'name': 'rex'}),
        lambda dogs: dogs.map(lambda dog: {'kind': 'dog', 'name': 'a', 'friend': dog}),
        max_leaves=4,
    ),
    Node: st.recursive(
        st.sampled_from([{'value': 1}, {'value': 'x'}, {'value': None}]),
        lambda nodes: st.fixed_dictionaries(
            {
                'value': st.integers(),
                'children': st.lists(nodes, max_size=2),
                'named': st.dictionaries(st.text(max_size=2), nodes, max_size=2),
            }
        ),
        max_leaves=6,
    ),
    Plain: st.fixed_dictionaries(
        {
            'colour': st.sampled_from(['red', 'blue']),
            'day': st.just('2026-01-02'),
            'tags': st.lists(st.text(max_size=5), min_size=1, max_size=3),
            'pair': st.tuples(st.integers(), st.text(max_size=3)).map(list),
        },
        optional={
            'level': st.sampled_from([1, 2]),
            'when': st.sampled_from([None, '2026-01-02T03:04:05Z']),
            'ident': st.sampled_from([None, '3fa85f64-5717-4562-b3fc-2c963f66afa6']),
            'more': st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=2),
            'size': st.sampled_from([0.5, 9]),
            'free': st.dictionaries(st.text(max_size=2), st.integers() | st.none()),
            'anything': st.none() | st.lists(st.integers() | st.text(max_size=2)),
            'unique': st.lists(st.integers(), unique=True),
            'flag': st.sampled_from([True, 'auto', 3, None]),
            'unknown': st.integers(),
        },
    ),
}
VALUES[Strict] = st.fixed_dictionaries(
    {'$ref': st.text(max_size=3), 'anyOf': VALUES[Cat]}, optional={'not': VALUES[Plain] | st.none()}
)
VALUES[Union] = st.fixed_dictionaries(
    {'pet': VALUES[Cat] | VALUES[Dog], 'tree': VALUES[Node]},
    optional={
        'pets': st.lists(VALUES[Cat] | VALUES[Dog], max_size=2),
        'either': VALUES[Cat] | st.lists(st.integers()) | st.text(max_size=3) | st.none(),
        'colours': st.none() | st.dictionaries(st.text(max_size=2), st.sampled_from(['red', 'blue'])),
    },
)


@settings(max_examples=300)
@given(st.data(), model_names, names | bundles)
def test_no_value_that_the_tool_takes_is_refused(
    data: st.DataObject, model: type[BaseModel], rewrites: Collection[str]
) -> None:
    schema = model.model_json_schema()
    value = data.draw(VALUES[model])
    assert Draft202012Validator(schema).is_valid(value)
    result = _as_json_schema(rewritten(schema, [name for name in rewrites if name != 'closed']))
    assert list(Draft202012Validator(result).iter_errors(value)) == []


def _as_json_schema(schema: Any) -> Any:
    """`nullable` as JSON Schema says it."""
    if isinstance(schema, list):
        return [_as_json_schema(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    new = {key: _as_json_schema(value) for key, value in schema.items()}
    return {**new, 'type': [new['type'], 'null']} if new.get('nullable') is True else new


scalars = st.sampled_from(
    [
        {'type': 'string'},
        {'type': 'string', 'format': 'date', 'description': 'D'},
        {'type': 'string', 'minLength': 2},
        {'type': 'integer', 'minimum': 2, 'maximum': 5},
        {'type': 'number', 'exclusiveMinimum': 1},
        {'type': ['string', 'null'], 'pattern': '^a'},
        {'type': ['integer', 'array'], 'items': {'type': 'string'}},
        {'type': 'null'},
        {'const': 'a'},
        {'const': 1},
        {'enum': ['a', 1, None]},
        {'enum': ['a', 'ab', '']},
        {'type': 'boolean', 'enum': [True]},
        {'$ref': '#/$defs/A'},
        {'$ref': '#/$defs/R', 'title': 'R'},
        {},
        True,
        {'not': {'type': 'string', 'format': 'x', 'minLength': 2}},
        {'if': {'type': 'string', 'minLength': 2}, 'then': {'pattern': '^a'}, 'else': {'type': 'integer'}},
    ]
)


def _composed(below: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    some = st.lists(below, min_size=1, max_size=3)
    named = st.dictionaries(st.sampled_from('xyz'), below, max_size=2)
    required = st.lists(st.sampled_from('xyz'), unique=True, max_size=2)
    closed = st.sampled_from([True, False, {'type': 'string'}, {}])
    thing = st.fixed_dictionaries(
        {'properties': named},
        optional={
            'type': st.just('object'),
            'required': required,
            'additionalProperties': closed,
            'patternProperties': st.dictionaries(st.sampled_from(['^x', 'q']), below, max_size=1),
        },
    )
    many = st.fixed_dictionaries(
        {'type': st.just('array')},
        optional={
            'items': below,
            'prefixItems': some,
            'maxItems': st.integers(0, 3),
            'contains': below,
            'uniqueItems': st.booleans(),
        },
    )
    old = st.fixed_dictionaries(
        {'anyOf': some},
        optional={
            'type': st.sampled_from(['object', 'string', ['string', 'null']]),
            'oneOf': some,
            'minLength': st.just(1),
            'required': required,
        },
    )
    return (
        thing
        | many
        | old
        | st.fixed_dictionaries({'oneOf': some})
        | st.fixed_dictionaries({'allOf': some})
        | st.fixed_dictionaries({'not': below})
    )


composed = st.recursive(scalars, _composed, max_leaves=6).filter(lambda schema: isinstance(schema, dict))
LEAVES: list[Any] = ['', 'a', 'ab', 'abc', 'b', 1, 2, 3.5, 7, True, None]
PAIRS = [(one, other) for one in ('a', 'abc', 1, 7, None) for other in ('', 'ab', 2, True)]
POOL: list[Any] = [
    *(*LEAVES, [], {}, [[]], [{}]),
    *([leaf] for leaf in LEAVES),
    *({name: leaf} for name in 'xq' for leaf in LEAVES),
    *(list(pair) for pair in PAIRS),
    *({'x': one, 'y': other} for one, other in PAIRS),
    *({'x': {'x': leaf}, 'z': [leaf]} for leaf in LEAVES),
]
# These take for granted what JSON Schema does not: an object at the root, types of keywords, properties of branches.
exact = [name for name in REWRITES if name not in ('closed', 'root', 'typed', 'anyOf')]


@settings(max_examples=200)
@given(st.data(), composed)
def test_rewriting_only_widens(data: st.DataObject, schema: Schema) -> None:
    used = [name for name in exact if name in keywords_in(schema)] or exact
    rewrites = data.draw(st.sets(st.sampled_from(used), min_size=1, max_size=3) | st.just(set(exact)))
    recursive = {'properties': {'x': {'$ref': '#/$defs/R'}, 'y': {'type': 'integer'}}}
    schema = {**schema, '$defs': {'A': {'type': 'string', 'maxLength': 2}, 'R': recursive}}
    result = rewritten(schema, rewrites)
    assert rewritten(result, rewrites) == result
    before, after = Draft202012Validator(schema), Draft202012Validator(_as_json_schema(result))
    assert [value for value in POOL if before.is_valid(value) and not after.is_valid(value)] == []
