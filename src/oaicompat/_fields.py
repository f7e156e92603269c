"""Fields that a refusal names: what the server does not know or take, and what the request can do without.

By the name, not by the words alone: a name counts only where the body that was sent has it. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from oaicompat._patterns import lazy
from oaicompat._shapes import has_field
from oaicompat._words import BAD, BAD_ABROAD, BAD_BEFORE_FIELD, BAD_BEHIND_FIELD, DONE, FIELD, FIELD_ABROAD, IS_BAD

_LETTERS = r'(?<![A-Za-z0-9_])[A-Za-z_][A-Za-z0-9_.\[\]-]{0,100}'
_NAME = rf'[\\"\'`\u201c\u2018\u300c]*(?P<name>{_LETTERS})[\\"\'`\u201d\u2019\u300d]*'
_OTHER = _NAME.replace('name', 'other')
_CHOICE = _NAME.replace(_LETTERS, 'reasoning_?effort|verbosity')
_PATTERNS = tuple(
    lazy(pattern, re.IGNORECASE)
    for pattern in (
        # pydantic, in JSON or in its text, and other validators: the field in front
        (
            rf'^{_NAME}: (?:extra (?:inputs|fields) (?:are )?not permitted|unexpected keyword|additional propert'
            rf'|must not have additional|should not exist|(?:is )?(?:an? )?{BAD}(?: {FIELD})?\W*$|{BAD_ABROAD}'
            rf'|{BAD_BEFORE_FIELD}\s?{FIELD_ABROAD}|{FIELD_ABROAD}\s?{BAD_BEHIND_FIELD})'
        ),
        (
            rf'(?:unknown|unsupported|unrecogni[sz]ed|unexpected|extra) {FIELD}'
            rf'(?: supplied| name| found| in (?:the )?(?:request|object|body))*[: ]+{_NAME}'
        ),
        rf'invalid (?:field|key|property)(?: name)?[: ]+{_NAME}\W*$',
        rf'(?:extra (?:inputs|fields) (?:are )?not permitted|no such {FIELD}):? {_NAME}',
        rf'(?:can ?not|can.t|do not|must not) use (?:the )?(?:{FIELD} )?{_NAME} with',
        rf'remove (?:the )?{_NAME} {FIELD}',
        (
            rf'(?:not (?:\w+ )?support|unsupported|not allow|not accept)\w*(?: the)?(?: {FIELD})?:? {_NAME}(?!\w)'
            r'(?: (?:parameter|field|argument))?\W*$'
        ),
        rf'not support {FIELD}:? [\[{{]*{_NAME}',
        rf'additional ?propert(?:y|ies) (?:are |is )?not allowed \({_NAME}',
        rf'additional ?propert(?:y|ies):? {_NAME} (?:is |are )?not',
        rf'propert(?:y|ies) {_NAME} {IS_BAD}',
        rf'(?:^|[\s:(\[/]){_NAME}(?: (?:parameter|field|argument|option))? {IS_BAD}',
        rf'{_NAME}(?: `[^`]*`)? is not available',
        rf'{_NAME} does not support .{{1,40}}? with this model',
        rf'invalid {_NAME}: only \S+ is allowed',
        rf'{_CHOICE} must be one of',
        rf'{_OTHER} and {_NAME} cannot (?:both )?be',
        (
            rf'{_NAME} (?:(?:parameter|field|option) )?(?:is only (?:allowed|supported|valid|available)'
            r'|(?:can|may) only be (?:used|set|specified|provided|enabled)) (?:when|if|with|together)'
        ),
        rf'cannot specify both {_OTHER} and {_NAME}',
        # Zhipu: illegal, of no matter which value
        rf'{_NAME}\s?\u53c2\u6570(?:\u975e\u6cd5|\u9519\u8bef)(?![^(\uff08]*\d)',
        rf'\u4e0d\u652f\u6301\s?{_NAME}\s?{FIELD_ABROAD}',
        rf'{BAD_BEFORE_FIELD}\s?{FIELD_ABROAD}\s?[:\uff1a]?\s?{_NAME}',
        rf'{FIELD_ABROAD}\s{BAD_BEHIND_FIELD}\s?[:\uff1a]?\s?{_NAME}',
        rf'{_NAME}\s?{FIELD_ABROAD}?\s?{BAD_ABROAD}',
    )
)
# What a request says: it can't be left out, only said in another way.
_ESSENTIAL = frozenset({
    'model', 'messages', 'input', 'instructions', 'prompt', 'stream', 'tools', 'tool_choice', 'functions',
    'function_call', 'response_format', 'text', 'n', 'max_tokens', 'max_completion_tokens', 'max_output_tokens',
    'modalities', 'audio', 'previous_response_id', 'conversation', 'background', 'moderation', 'web_search_options',
})  # fmt: skip
# The same within messages, tools and formats, by the last step of a path or by any.
_SAID = frozenset({
    'role', 'content', 'type', 'text', 'tool_calls', 'tool_call_id', 'call_id', 'function', 'function_call',
    'arguments', 'output', 'summary', 'refusal', 'image_url', 'input_audio', 'file', 'file_data', 'file_id', 'file_url',
    'filename', 'data', 'format', 'url', 'description',
})  # fmt: skip
_SCHEMAS = frozenset({'parameters', 'input_schema', 'schema', 'json_schema', 'definition', 'grammar'})
_HOLDERS = frozenset({'messages', 'input', 'tools', 'functions', 'response_format', 'text'})
_CAMEL = lazy(r'(?<=[a-z0-9])(?=[A-Z])')
_STEP = lazy(r'[.\[\]]+')
_UNION_STEP = lazy(r'^(?:\d+|assistant|user|system|tool|developer|function-.*|typed-dict|body)$')


# What a value may be is the caller's to know.
_VALUE = lazy(
    r'between|\brange\b|at most|at least|less than|greater than|maximum|minimum|too (?:large|small|long)|[<>]='
    rf'|out of bounds|must not (?!have additional|be {DONE})|valid (?:number|integer|string|boolean|list|dict)'
    r'|(?:must|should|allowed to|supposed to) (?:not )?be (?:an? |in |non|positive|negative|greater|true|false)'
    r'|expected (?:an? )?\w+,? (?:but )?(?:got|received|found)'
    r'|not (?:\w+ )?(?:supported|allowed|accepted) (?:as|to be)\b'
    # Chinese: range, values, greater, less, between, exceeds, most, least
    r'|\u8303\u56f4|\u53d6\u503c|\u5927\u4e8e|\u5c0f\u4e8e|\u533a\u95f4|\u4e4b\u95f4|\u8d85\u8fc7|\u6700\u5927|\u6700\u5c0f',
    re.IGNORECASE,
)


def is_about_value(complaint: str) -> bool:
    """Whether a complaint says what the value of a field may be."""
    return _VALUE.search(complaint) is not None


def omitted(complaint: str, sent: Mapping[str, Any]) -> tuple[str, ...]:
    """The dotted paths of what `complaint` refuses by name, as far as `sent` has it and can do without."""
    found: dict[str, None] = {}
    for name in _named(complaint):
        path = _path(name)
        if path and not _is_essential(path, sent) and has_field(sent, path.split('.')):
            found[path] = None
    return tuple(found)


def refuses(complaint: str, *names: str) -> bool:
    """Whether `complaint` says that one of these fields of the body is not taken."""
    return any(_path(name) in names for name in _named(complaint))


def _is_essential(path: str, sent: Mapping[str, Any]) -> bool:
    if path == 'tool_choice':
        # To let the model choose is what a request without the field says.
        return sent.get(path) != 'auto'
    holder, *inner = path.split('.')
    if not inner or holder not in _HOLDERS:
        return path in _ESSENTIAL
    *above, last = inner
    if last == 'strict':
        return False
    # The name of a speaker can be spared, that of a tool can't.
    return last in _SAID or bool(_SCHEMAS & set(inner)) or (last == 'name' and (bool(above) or holder != 'messages'))


def _named(complaint: str) -> Iterator[str]:
    for line in complaint.split('\n'):
        # Google says with `at` that something inside of a schema is meant.
        if re.search(r"\bat '(?:tools|generation_config)", line) or _VALUE.search(line):
            continue
        for pattern in _PATTERNS:
            for found in pattern.finditer(line):
                if not _is_prose(line, found):
                    yield found['name']
        yield from _listed(line)


# Fields whose names are words: of a user or a shop, too, it is said that they are unknown or not allowed.
_WORDS = frozenset({'user', 'users', 'name', 'store', 'stop', 'text', 'input', 'n', 'plan'})
_BEHIND_WORD = lazy(rf'\W{{0,2}} ?(?:{FIELD}|{FIELD_ABROAD})', re.IGNORECASE)


def _is_prose(line: str, found: re.Match[str]) -> bool:
    """Whether a name is a mere word: not in quotes, beside no word for a field, and with no colon."""
    start, end = found.span('name')
    if found['name'].lower().rstrip('.') not in _WORDS:
        return False
    marked = line[max(0, start - 1) : start] in _MARKS or line[end : end + 1] in _MARKS
    before = re.search(rf'(?:{FIELD}|{FIELD_ABROAD})\W{{0,3}}$', line[max(0, start - 40) : start], re.IGNORECASE)
    return not (marked or before or _BEHIND_WORD.match(line, end))


_MARKS = frozenset('\'"`:\uff1a\u2018\u201c\u300c/[')


# Several at once: LiteLLM says a list of Python's, others a row of names.
_LISTS = (
    lazy(
        r'(?P<names>[`\'"]?\b\w{1,40}[`\'"]?(?:(?:, and |, | and | or )[`\'"]?\w{1,40}[`\'"]?){1,9}) (?:are|is) '
        rf'(?:{BAD}|both {BAD})',
        re.IGNORECASE,
    ),
    lazy(r'not support parameters?: (?P<names>[\[{].*?[\]}])', re.IGNORECASE),
    lazy(
        r'(?:unknown|unsupported|unrecogni[sz]ed|following) (?:request )?(?:argument|parameter|param|field)(?:s|\(s\))'
        r'(?: supplied| (?:are|is) not supported)?: (?P<names>[\w`\'", ]+)',
        re.IGNORECASE,
    ),
)


def _listed(line: str) -> Iterator[str]:
    """The names of a list; in one with quotes, those in quotes."""
    for found in filter(None, (pattern.search(line) for pattern in _LISTS)):
        quoted = re.findall(r'[\'"`](\w+)[\'"`]', found['names'])
        yield from quoted or re.findall(r'\w+', found['names'])


def _path(name: str) -> str:
    """A name as the path of a field in a body: without indexes and without the steps that a validator adds."""
    given = [step for step in _STEP.split(name) if step]
    # `user` is also a field.
    steps = [step for step in given if not _UNION_STEP.match(step)] or given[-1:]
    if name.startswith(('messages', 'tools')) and not steps[1:]:
        return steps[0] if steps else ''
    path = '.'.join(_CAMEL.sub('_', step).lower() if step != steps[0] or '_' not in step else step for step in steps)
    return path.removeprefix('body.')
