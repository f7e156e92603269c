"""Complaints: what the body of a refusal says, whatever its form. Pure.

Bodies come as JSON objects, bare strings, JSON or Python literals in strings, lists of pydantic errors with `loc`, or
pydantic's own text. `complaints()` gives each thing that one of them says as one text, with the field that it is
about in front. What only echoes the request is left out.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, cast

from oaicompat._patterns import lazy

# Keys without their `_` and `-`, and in lower case; what stands under the first ones is likelier to be the words.
_TEXT_KEYS = (
    'message', 'msg', 'detail', 'error', 'errors', 'errordescription', 'description', 'reason', 'title', 'details',
    'errormessage', 'errormsg', 'errmsg', 'statusmsg', 'baseresp', 'fault', 'faultstring', 'innererror', 'issues',
    'violations', 'fieldviolations', 'fielderrors', 'invalidparams', 'constraints', 'result', 'data',
)  # fmt: skip
_OBJECTS_ALONE = ('result', 'data', 'fault', 'baseresp')
_BY_FIELD = ('errors', 'fielderrors', 'constraints')
"""Under these, a key may be the name of a field, and its value what is wrong with it."""
_ABOUT_ITSELF = frozenset({
    'code', 'type', 'param', 'status', 'statuscode', 'requestid', 'id', 'object', 'trace', 'traceid', 'timestamp',
    'path', 'instance', 'success', 'httpcode', 'errorcode', 'errortype', 'providername', 'name', 'target', 'url',
    'documentationurl', 'help', 'model', 'provider', 'loc', 'input', 'ctx', 'logid', 'created', 'metadata', 'stack',
    'ok', 'value', 'location', 'field', 'keyword', 'params', 'keys', 'source', 'instancepath', 'schemapath', '@type',
})  # fmt: skip
"""Keys that are no words about the request, and no field's name."""
_DEEPEST = 20
_LONGEST = 20_000
"""Characters of a message that are looked at; some servers echo the whole request."""


def complaints(body: object) -> Iterator[str]:
    """The texts of an error body, each with the field it names in front where the body names one."""
    yield from _texts(body, 0)


_TOKEN = lazy(r'(?i:bearer) (?=[^\s\d]{0,200}\d)[\w.~+/=-]{8,}|(?<![\w-])(?:sk|gsk|xai|hf|nvapi)[-_][\w-]{8,}')


def masked(text: str, secrets: Iterable[str] = ()) -> str:
    """`text` without the secrets that a server echoes, and without what looks like one."""
    for secret in secrets:
        text = text.replace(secret, '***')
    return _TOKEN.sub('***', text)


def _texts(body: object, depth: int) -> Iterator[str]:
    if depth > _DEEPEST:
        return
    match body:
        case str():
            nested = _literal(body)
            if nested is None:
                yield from _of_text(body[:_LONGEST])
            else:
                yield from _texts(nested, depth + 1)
        case Mapping():
            yield from _of_mapping(body, depth + 1)
        case list() | tuple():
            for item in body:
                yield from _texts(item, depth + 1)


def _of_mapping(body: Mapping[Any, Any], depth: int) -> Iterator[str]:
    # A router puts the words of the server behind it here, and has none of its own
    # (https://openrouter.ai/docs/api-reference/errors).
    metadata = body.get('metadata')
    raw = metadata.get('raw') if isinstance(metadata, Mapping) else None
    told = list(_texts(raw, depth))
    yield from told
    place = _place(body)
    telling = _telling(body)
    for key, value in telling:
        if told and key == 'message':
            continue
        for text in _under(key, value, depth):
            yield f'{place}: {text}' if place and place not in text else text
    if not telling:
        yield from _by_field(body)


def _telling(body: Mapping[Any, Any]) -> list[tuple[str, Any]]:
    """The values that may hold words, likelier ones first, each with its plain key."""
    held = [(_squashed(given), value) for given, value in body.items() if isinstance(given, str)]
    return sorted((one for one in held if one[0] in _TEXT_KEYS), key=lambda one: _TEXT_KEYS.index(one[0]))


def _squashed(key: str) -> str:
    return re.sub('[_-]', '', key).lower()


def _under(key: str, value: object, depth: int) -> Iterator[str]:
    if key in _OBJECTS_ALONE and not isinstance(value, Mapping):
        return
    yield from _texts(value, depth)
    if key in _BY_FIELD and isinstance(value, Mapping):
        for name, said in value.items():
            if isinstance(said, str) and isinstance(name, str) and not _is_known(name):
                yield f'{name}: {said[:_LONGEST]}'


def _by_field(body: Mapping[Any, Any]) -> Iterator[str]:
    """What stands under the names of fields, in lists, where there are no other words."""
    for name, said in body.items():
        if isinstance(name, str) and not _is_known(name) and isinstance(said, list | tuple):
            for text in said if all(isinstance(one, str) for one in said) else ():
                yield f'{name}: {text[:_LONGEST]}'


def _is_known(key: str) -> bool:
    return (plain := _squashed(key)) in _TEXT_KEYS or plain in _ABOUT_ITSELF


def is_silent(body: object) -> bool:
    """Whether a body says nothing, not even under keys that are not known."""
    if isinstance(body, Mapping):
        return all(is_silent(value) if _is_known(str(key)) else not value for key, value in body.items())
    return True


def _place(body: Mapping[Any, Any]) -> str:
    """The field an error object names: OpenAI's `param`, pydantic's `loc`, a validator's `path` or pointer."""
    source, params = body.get('source'), body.get('params')
    added = params.get('additionalProperty') if isinstance(params, Mapping) else None
    places = [body.get(key) for key in ('loc', 'param', 'path', 'field', 'property', 'instancePath')]
    places += [source.get(key) for key in ('pointer', 'parameter')] if isinstance(source, Mapping) else []
    places += [body['name']] if 'reason' in body and 'name' in body else []
    if isinstance(added, str):
        return '.'.join(filter(None, (_steps(body.get('instancePath')), added)))
    return next((place for place in map(_steps, places) if place is not None), '')


def _steps(value: object) -> str | None:
    """A place as a path with dots; `None` where it is none."""
    if isinstance(value, list | tuple):
        return '.'.join(str(step) for step in value if step != 'body')
    if isinstance(value, str) and _POINTER.match(value):
        return value.lstrip('#/').replace('/', '.').removeprefix('data.attributes.').removeprefix('body.')
    return value if isinstance(value, str) else None


_POINTER = lazy(r'#?/(?!chat|v1|responses|api)')


class Code(NamedTuple):
    """One code of an error body.

    Attributes:
        name: Its letters alone, small.
        places: The fields that it is about.
    """

    name: str
    places: tuple[str, ...]


def codes(body: object, depth: int = 0) -> Iterator[Code]:
    """What an error body says in codes and types, with the fields that they are about."""
    if depth > _DEEPEST:
        return
    if isinstance(body, str):
        nested = _literal(body)
        yield from codes(nested, depth + 1) if nested is not None else ()
    elif isinstance(body, list | tuple):
        for item in body:
            yield from codes(item, depth + 1)
    elif isinstance(body, Mapping):
        keys = body.get('keys')
        listed = tuple(one for one in keys if isinstance(one, str)) if isinstance(keys, list) else ()
        places = listed or tuple(filter(None, (_place(body),)))
        for key in ('code', 'type', 'error_code', 'error_type', 'errorCode', 'status', 'error', 'keyword'):
            if isinstance(value := body.get(key), str) and _CODE.fullmatch(value):
                yield Code(re.sub(r'[\W\d_]', '', value).lower(), places)
        metadata = body.get('metadata')
        raw = metadata.get('raw') if isinstance(metadata, Mapping) else None
        for value in (raw, *(value for _, value in _telling(body))):
            yield from codes(value, depth + 1)


_CODE = lazy(r'[\w.:-]{1,80}')


# pydantic's text for people: the field on a line of its own, indented what is wrong with it.
_PYDANTIC = lazy(r'^(?P<place>[\w.\[\]-]+)\n[ \t]+(?P<said>[^\n]+?) \[type=(?P<type>\w+)', re.MULTILINE)


# The same, with each fault as Python writes it: "1 validation error:" and a line for each.
_LITERALS = lazy(r'^\d+ validation errors?\b[^\n]*\n((?:\s*\{.*\}\s*(?:\n|$))+)', re.DOTALL)


_PAGE = lazy(r'\s*<(?:!doctype|html|head|body|\?xml|h1|center)\b', re.IGNORECASE)
_TAGS = lazy(r'<!--|-->|<[^<>]{0,300}>|\s+')


def _of_text(text: str) -> Iterator[str]:
    if _PAGE.match(text):
        text = ' '.join(_TAGS.sub(' ', text).split())
    if (dumped := _LITERALS.match(text)) is not None:
        for line in dumped[1].splitlines():
            yield from _texts(_literal(line.strip()), _DEEPEST - 2)
        return
    faults = list(_PYDANTIC.finditer(text))
    if not faults:
        yield text
    for fault in faults:
        yield f'{fault["place"]}: {fault["said"]} ({fault["type"]})'


def _literal(text: str) -> object:
    """The JSON value, or the Python literal, that `text` is; `None` where it is neither."""
    start = text.lstrip()[:1]
    if start not in ('{', '[', '"') or len(text) > _LONGEST:
        return None
    for read in (json.loads, ast.literal_eval):
        try:
            value = cast(object, read(text.strip()))
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        return value if value != text else None
    return None
