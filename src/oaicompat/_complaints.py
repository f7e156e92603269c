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
from typing import Any, cast

_TEXT_KEYS = (
    'message', 'msg', 'detail', 'error', 'errors', 'error_description', 'description', 'reason', 'title', 'details',
)  # fmt: skip
_DEEPEST = 20
_LONGEST = 20_000
"""Characters of a message that are looked at; some servers echo the whole request."""


def complaints(body: object) -> Iterator[str]:
    """The texts of an error body, each with the field it names in front where the body names one."""
    yield from _texts(body, 0)


_TOKEN = re.compile(r'(?i:bearer) (?=[^\s\d]{0,200}\d)[\w.~+/=-]{8,}|(?<![\w-])(?:sk|gsk|xai|hf|nvapi)[-_][\w-]{8,}')


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
    for key in _TEXT_KEYS:
        if told and key == 'message':
            continue
        for text in _texts(body.get(key), depth):
            yield f'{place}: {text}' if place and place not in text else text


def _place(body: Mapping[Any, Any]) -> str:
    """The field an error object names: OpenAI's `param`, pydantic's `loc`, a validator's `path`."""
    for key in ('loc', 'param', 'path'):
        value = body.get(key)
        if isinstance(value, list | tuple):
            return '.'.join(str(step) for step in value if step != 'body')
        if isinstance(value, str):
            return value
    return ''


# pydantic's text for people: the field on a line of its own, indented what is wrong with it.
_PYDANTIC = re.compile(r'^(?P<place>[\w.\[\]-]+)\n[ \t]+(?P<said>[^\n]+?) \[type=(?P<type>\w+)', re.MULTILINE)


# The same, with each fault as Python writes it: "1 validation error:" and a line for each.
_LITERALS = re.compile(r'^\d+ validation errors?\b[^\n]*\n((?:\s*\{.*\}\s*(?:\n|$))+)', re.DOTALL)


def _of_text(text: str) -> Iterator[str]:
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
