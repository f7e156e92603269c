"""Arguments of tool calls: text that a model or a server spoiled, back to the JSON object it was.

Conservative: a valid object is never touched, nothing is invented, and what stays unreadable stays as it is, for the
model to be asked again. Each repair is one small function from text to text or `None`; `repair_arguments()` tries
them in order. `decode_nested()` uses the tool's schema.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Callable, Mapping
from typing import Any, cast

Object = dict[str, Any]


def as_object(text: str) -> Object | None:
    """`text` as a JSON object, or `None` if it is none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def is_cut_off(text: str) -> bool:
    """Whether `text` is the beginning of a JSON text, rather than a text with a fault in it."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        # An escape or a literal that is cut is complained about where it starts.
        return error.msg.startswith('Unterminated') or error.pos >= len(text.rstrip()) - len('\\u000')
    except (ValueError, RecursionError):
        return False
    return False


def repair_arguments(text: str) -> str | None:
    """`text` as the text of a JSON object: itself if it is one, repaired if it can be, else `None`."""
    if as_object(text) is not None:
        return text
    if text.strip() in ('', 'null', 'None', '""', "''"):
        return '{}'
    for candidate in (text, _without_wrapping(text)):
        for repair in _REPAIRS:
            repaired = repair(candidate)
            if repaired is not None and as_object(repaired) is not None:
                return repaired
    return None


def _same(text: str) -> str | None:
    return text


def _decoded(text: str) -> str | None:
    """A JSON string that holds the object; some servers encode twice, or three times."""
    for _ in range(3):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return None
        if not isinstance(value, str):
            return text
        text = value
    return text


def _first_object(text: str) -> str | None:
    """The object in front of markers, braces and white space that a parser left behind it."""
    start = len(text) - len(text.lstrip())
    try:
        value, end = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or not _JUNK.fullmatch(text, end):
        return None
    return text[start:end]


def _unbraced(text: str) -> str | None:
    """An object in a second pair of braces: `{{"a": 1}}`."""
    inner = text.strip()
    return inner[1:-1] if inner.startswith('{{') and inner.endswith('}}') else None


def _lenient_controls(text: str) -> str | None:
    """Line breaks and tabs that stand unescaped in strings."""
    try:
        value = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else None


def _python_literal(text: str) -> str | None:
    """A Python dict: single quotes, `True`, `None`."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')  # an escape that Python does not know warns
            value = ast.literal_eval(text.strip())
        return json.dumps(value, ensure_ascii=False, allow_nan=False) if _is_plain(value) else None
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return None


def _quoted_keys(text: str) -> str | None:
    """Bare keys, and commas in front of a closing bracket."""
    pieces = _STRING.split(text)
    if len(pieces) == 1 and '{' not in text:
        return None
    # Even pieces stand outside of strings.
    pieces[::2] = [_TRAILING_COMMA.sub(r'\1', _BARE_KEY.sub(r'\1"\2":', piece)) for piece in pieces[::2]]
    return _comma_before_bracket(''.join(pieces))


def _comma_before_bracket(text: str) -> str:
    pieces = _STRING.split(text)
    pieces[::2] = [_TRAILING_COMMA.sub(r'\1', piece) for piece in pieces[::2]]
    return ''.join(pieces)


_REPAIRS: tuple[Callable[[str], str | None], ...] = (
    _same,
    _decoded,
    _first_object,
    _unbraced,
    _lenient_controls,
    _quoted_keys,
    _python_literal,
)

_MARKER = r'<\|[^|<>]{0,60}\|>|<[\uff5c|][^<>]{0,60}[\uff5c|]>|</?tool_call>|</?function[^<>]{0,60}>|\[/?TOOL_CALLS\]'
_JUNK = re.compile(rf'(?:\s|\}}|{_MARKER}|```)*')
_WRAPPING = re.compile(rf'^(?:\s|{_MARKER}|```(?:json)?|json(?=\s*\{{))*(.*?)(?:\s|{_MARKER}|```)*$', re.DOTALL)
_STRING = re.compile(r'("(?:[^"\\]|\\.)*+")', re.DOTALL)
_BARE_KEY = re.compile(r'([{,]\s*)([A-Za-z_]\w*)\s*:')
_TRAILING_COMMA = re.compile(r',(\s*[}\]])')


def _without_wrapping(text: str) -> str:
    """`text` without code fences and template markers around it."""
    found = _WRAPPING.match(text)
    return found[1] if found else text


def _is_plain(value: object) -> bool:
    match value:
        case dict():
            return all(isinstance(key, str) and _is_plain(item) for key, item in value.items())
        case list() | tuple():
            return all(map(_is_plain, value))
        case str() | bool() | int() | float() | None:
            return True
    return False


def decode_nested(arguments: Object, schema: Mapping[str, Any]) -> Object | None:
    """`arguments` with strings decoded where the schema wants an object or array and no string.

    Returns:
        The changed arguments, or `None` where there is nothing to decode.
    """
    changed: Object = {}
    properties = _resolved(schema, schema).get('properties')
    for name, subschema in properties.items() if isinstance(properties, Mapping) else ():
        value = arguments.get(name)
        if isinstance(value, str) and (wanted := _types(subschema, schema)) and 'string' not in wanted:
            decoded = _decoded_as(value, wanted)
            if decoded is not None:
                changed[name] = decoded
    return {**arguments, **changed} if changed else None


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
    named = schema.get('type', ())
    found = {named} if isinstance(named, str) else set(named)
    for key in ('anyOf', 'oneOf'):
        options = schema.get(key)
        for option in options if isinstance(options, list) else ():
            types = _types(option, root, depth + 1)
            if not types:
                return set()
            found |= types
    return found


_DEEPEST = 8


def _resolved(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    reference = schema.get('$ref')
    if not isinstance(reference, str) or not reference.startswith('#/'):
        return schema
    target: Any = root
    for step in reference[2:].split('/'):
        target = target.get(step) if isinstance(target, Mapping) else None
    return cast(Mapping[str, Any], target) if isinstance(target, Mapping) else schema
