"""Which rewrites of a JSON Schema a server asks for: read from its refusal; pure.

`rewrites_for()` looks for phrases first, which say what is demanded. Else it looks for keywords: as the last part of
a path, in quotes, or in a list of refused ones. A keyword that is also a word counts only so, never in mere prose,
and paths that lead to the place are no mention. What changes nothing in the schema is never asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from oaicompat._patterns import lazy
from oaicompat._rewrites import REWRITES, keywords_in, rewritten

__all__ = ('BLIND', 'REWRITES', 'keywords_in', 'rewrites_for', 'rewritten')


_READ = 20_000  # letters; Gemini repeats its complaint for each place
_UNENFORCED = ('multipleOf', 'uniqueItems', 'contains', 'patternProperties', 'propertyNames', 'pattern', 'format')
_OLD_DRAFTS = ('prefixItems', 'exclusiveMinimum', 'exclusiveMaximum')

# What a phrase demands; the first that matches counts, and nothing else in the complaint.
_PHRASES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        r'additionalProperties\W{0,3}(?: ?(?:is )?required|:? ?false must| must be (?:set to |explicitly )?.?false)',
        ('closed',),
    ),
    (
        (
            r'type should be defined in anyOf|conflicting keywords found in anyOf|same level as anyOf'
            r'|other fields alongside any_?of'
        ),
        ('anyOf.siblings',),
    ),
    (r'\bany_?of\b.{0,20}not supported', ('anyOf',)),
    (r'union types? (?:is|are) not|not support union', ('anyOf', 'type')),
    (r'recursive (?:schema|definition|reference)s? (?:is|are) not|not support recursi', ('$ref',)),
    (r'\bformat\W{1,3}only\b.{0,80}supported', ('format',)),
    (r'using \$ref, type should|\$ref cannot have keywords|same level as \$ref|\$ref\b.{0,60}set alongside', ('$ref',)),
    (
        r'references? must start with|reference to undefined schema|can.t resolve reference|not found for reference',
        ('$ref',),
    ),
    (
        r'top.?level|at the root|JSON Schema of .type: "?object|json\.type must be one of the following: object',
        ('root',),
    ),
    (
        r'must have a .?type.? key|type (?:is not|need to be) defined|Unrecognized schema|not understand the instance',
        ('typed',),
    ),
    (r'schema missing properties|.properties. (?:keyword )?is missing', ('properties',)),
    (r'schema missing items|\bitems: missing field', ('items',)),
    (r'cannot start list|predicate failed: \$type|into Go struct field \S*type of type string', ('type',)),
    (r"Input should be 'TYPE_UNSPECIFIED'|in combination with multiple types", ('type',)),
    (r'not supported by xgrammar', _UNENFORCED),
    (r'must match JSON Schema draft 2020-12', _OLD_DRAFTS),
    (r'\bitems must be an object', ('prefixItems',)),
    (r'Pattern must start with', ('pattern',)),
    (r'is not a valid format|unknown format', ('format',)),
)
_ALIASES = {
    **dict.fromkeys(('$defs', 'definitions', '$anchor'), '$ref'),
    **dict.fromkeys(('then', 'else'), 'if'),
    **dict.fromkeys(('minContains', 'maxContains'), 'contains'),
    'additionalItems': 'prefixItems',
}
_PATH = lazy(
    r'context=\([^)]*\)'
    r'|(?:#|(?<![\w.$-])[\w.-]+)?(?:/[\w$~%.-]+){2,}'
    r'|(?<![\w.$-])[\w$]+(?:\[[^\]]*\])*(?:\.[\w$*{}-]+(?:\[[^\]]*\])*)+'
)
_QUOTE = '[\'"`\u2018-\u201f\u00ab\u00bb\u300c-\u300f\u3010\u3011]'
_QUOTED = lazy(
    rf'(?<![Mm]odel )(?<![Tt]ool )(?<![Ff]unction )(?<![Rr]ole )(?<!model: ){_QUOTE}([\w$]+){_QUOTE}(?!\s*:)'
)
_REFUSED = lazy(
    r'(?<![\w$])((?:[\w$]+(?:,\s*(?:and |or )?| (?:and|or) )){0,30}[\w$]+)'
    r' (?:is|are) (?:not (?:yet )?(?:supported|permit|allowed)|unsupported)'
    r'|(?:keyword|field|propert(?:y|ie)|attribute)s?\s?:\s*((?:[\w$]+,\s*){0,30}[\w$]+)'
)
_UNMISTAKABLE = lazy(r"(?<![\w$'\"`])(\$[a-z]\w+|[a-z]+[A-Z]\w+)(?![\w'\"`])")
_WORD = lazy(r'[\w$]+')
_SEGMENTS = lazy(r'[./]')


def rewrites_for(complaint: str, schema: Mapping[str, Any]) -> tuple[str, ...]:
    """The rewrites that a refusal asks for, only such as change `schema`; empty where it names none."""
    said = complaint[:_READ].replace('\\"', '"').replace("\\'", "'")
    asked = next((names for phrase, names in _PHRASES if re.search(phrase, said, re.IGNORECASE)), None)
    asked = tuple(dict.fromkeys(_mentioned(said))) if asked is None else asked
    return tuple(name for name in REWRITES if name in asked and _changes(name, schema))


def _mentioned(said: str) -> Iterator[str]:
    # Gemini names the keyword itself, and the path only leads to its schema.
    ends = () if 'Unknown name' in said else (['', *_SEGMENTS.split(path)][-2:] for path in _PATH.findall(said))
    found = [name for parent, key in ends if parent not in _HOLDERS for name in _asked(key)]
    if not found:
        said = _PATH.sub(' ', said)
        found = [name for pattern in (_QUOTED, _UNMISTAKABLE) for key in pattern.findall(said) for name in _asked(key)]
        listed = (_WORD.findall(' '.join(groups)) for groups in _REFUSED.findall(said))
        found += [name for keys in listed for key in keys for name in _asked(key)]
    yield from found


def _asked(keyword: str) -> tuple[str, ...]:
    name = _ALIASES.get(keyword, keyword)
    return (name,) if name in REWRITES and name not in _DEMANDS else ()


_HOLDERS = frozenset({'properties', '$defs', 'definitions', 'patternProperties'})
_DEMANDS = frozenset({'type', 'items', 'properties', 'typed', 'closed', 'root', 'boolean', 'anyOf.siblings'})


def _changes(name: str, schema: Mapping[str, Any]) -> bool:
    try:
        return rewritten(schema, (name,)) is not schema
    except ValueError:
        return name in keywords_in(schema)  # so that `rewritten()` says what is wrong


BLIND: tuple[tuple[str, ...], ...] = (
    ('$ref',),
    ('$ref', 'const', 'oneOf', 'allOf', 'prefixItems', 'type', 'additionalProperties', 'format', 'pattern', '$schema'),
    tuple(name for name in REWRITES if name not in ('closed', 'anyOf.siblings')),
)
"""What to try together, in this order, where a refusal names nothing."""
