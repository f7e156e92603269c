"""Data: the names of rewrites of JSON Schema, and what providers are known to take of it, with its evidence."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class Dialect(NamedTuple):
    """The rewrites that a provider is known to need, and the pages that say so."""

    rewrites: tuple[str, ...]
    evidence: tuple[str, ...]


LEFT_OUT = (
    *('format', 'pattern', 'minimum', 'maximum', 'multipleOf', 'minLength', 'maxLength', 'minItems', 'maxItems'),
    *('uniqueItems', 'minProperties', 'maxProperties', 'default', 'examples', 'example', 'title', '$schema', '$id'),
    *('$comment', '$anchor', 'deprecated', 'readOnly', 'writeOnly', 'discriminator', 'propertyNames', 'not', 'if'),
    *('patternProperties', 'additionalProperties', 'dependentRequired', 'dependentSchemas', 'dependencies', 'contains'),
    *('unevaluatedProperties', 'unevaluatedItems', 'contentEncoding', 'contentMediaType', 'contentSchema'),
)
"""Keywords that a rewrite of the same name leaves out."""

REWRITE_NAMES = (
    *('$ref', 'boolean', 'const', 'nullable', 'allOf', 'oneOf', 'prefixItems', 'enum', 'type', 'anyOf'),
    *('anyOf.siblings', 'exclusiveMinimum', 'exclusiveMaximum', *LEFT_OUT, 'typed', 'closed', 'properties', 'items'),
    'root',
)
"""The names in `_rewrites.REWRITES`: a profile is checked without the rooms that rewrite."""


_GEMINI_UNKNOWN = (
    *(
        'additionalProperties',
        'exclusiveMinimum',
        'exclusiveMaximum',
        'const',
        'oneOf',
        'allOf',
        'prefixItems',
        'not',
        'if',
    ),
    *(
        'multipleOf',
        'uniqueItems',
        'contains',
        'patternProperties',
        'propertyNames',
        'examples',
        '$schema',
        '$id',
        '$comment',
    ),
)
_SIZES = ('minItems', 'maxItems', 'minLength', 'maxLength', 'minProperties', 'maxProperties')
DIALECTS: Mapping[str, Dialect] = MappingProxyType(
    {
        'moonshot': Dialect(
            (
                *(
                    '$ref',
                    'boolean',
                    'const',
                    'oneOf',
                    'allOf',
                    'prefixItems',
                    'enum',
                    'anyOf.siblings',
                    'exclusiveMinimum',
                ),
                *(
                    'exclusiveMaximum',
                    'format',
                    'pattern',
                    'multipleOf',
                    'uniqueItems',
                    'minProperties',
                    'maxProperties',
                ),
                *(
                    'examples',
                    '$schema',
                    '$comment',
                    '$anchor',
                    'deprecated',
                    'readOnly',
                    'writeOnly',
                    'propertyNames',
                    'not',
                ),
                *(
                    'if',
                    'patternProperties',
                    'dependentRequired',
                    'dependentSchemas',
                    'contains',
                    'unevaluatedProperties',
                ),
                *('unevaluatedItems', 'contentEncoding', 'contentMediaType', 'contentSchema', 'typed'),
            ),
            (
                'https://github.com/MoonshotAI/walle/blob/main/docs/mfjs-walle-vs-draft-2020-12.md',
                'https://github.com/MoonshotAI/kimi-cli/issues/1595',
            ),
        ),
        'gemini': Dialect(
            ('$ref', 'enum', 'type', 'items', *_GEMINI_UNKNOWN),
            (
                'https://docs.cloud.google.com/gemini-enterprise-agent-platform/reference/rest/v1/Schema.md.txt',
                'https://github.com/openswarm-ai/openswarm/issues/24',
                'https://github.com/TokenRhythm/opensquilla/issues/1263',
                'https://github.com/anomalyco/opencode/issues/12295',
            ),
        ),
        'cerebras': Dialect(
            ('boolean', 'type', 'pattern', 'format', 'closed', *_SIZES),
            (
                'https://inference-docs.cerebras.ai/capabilities/structured-outputs',
                'https://github.com/elizaOS/eliza/pull/11156',
                'https://github.com/agno-agi/agno/pull/6014',
            ),
        ),
        'mistral': Dialect(
            ('$id', '$schema', 'minLength', 'maxLength', 'pattern', 'format'),
            (
                'https://github.com/BerriAI/litellm/pull/13389',
                'https://github.com/browser-use/browser-use/pull/3679',
            ),
        ),
        'groq': Dialect(
            ('minItems', 'maxItems', 'closed', 'properties'),
            (
                'https://console.groq.com/docs/structured-outputs',
                'https://github.com/i-am-bee/beeai-framework/issues/1215',
                'https://github.com/usestrix/strix/issues/1088',
                'https://github.com/eigent-ai/eigent/pull/1786',
            ),
        ),
    }
)
"""Rewrites for providers, as documented by them or as reported of their refusals."""
