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
from typing import Any

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
        # An escape, a number or a literal that is cut is complained about where it starts.
        rest = text[error.pos :].strip()
        if error.msg.startswith('Invalid \\uXXXX'):
            return len(rest) <= len('\\u000')
        return error.msg.startswith('Unterminated') or not rest or _CUT_TOKEN.fullmatch(rest) is not None
    except (ValueError, RecursionError):
        return False
    return False


def repair_arguments(text: str) -> str | None:
    """`text` as the text of a JSON object: itself if it is one, repaired if it can be, else `None`."""
    if _SURROGATE.search(text):
        # Halves of a character that came in two fragments.
        text = text.encode('utf-16', 'surrogatepass').decode('utf-16', 'replace')
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
    """An object in more than one pair of braces: `{{"a": 1}}`."""
    inner = text.strip()
    for _ in range(3):
        if inner[:1] != '{' or inner[-1:] != '}' or inner[1:].lstrip()[:1] != '{':
            break
        inner = inner[1:-1].strip()
    return inner


def _after_empty(text: str) -> str | None:
    """An object behind an empty one, which some servers send first."""
    found = _EMPTY.match(text)
    return text[found.end() :] if found else None


def _lenient_controls(text: str) -> str | None:
    """Line breaks and tabs that stand unescaped in strings."""
    try:
        value = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None
    return dumped(value) if isinstance(value, dict) else None


def _python_literal(text: str) -> str | None:
    """A Python dict: single quotes, `True`, `None`."""
    if not all(map(str.strip, _STRING.split(text)[2:-1:2])):
        return None  # to Python two strings side by side are one; here a comma is missing
    try:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')  # an escape that Python does not know warns
            value = ast.literal_eval(text.strip())
        return dumped(value, allow_nan=False) if _is_plain(value) else None
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return None


def _loose(text: str) -> str | None:
    """Bare keys, single quotes, Python's literals, and commas in front of a closing bracket."""
    if '{' not in text:
        return None
    pieces = _STRING.split(text)
    # Even pieces stand outside of strings.
    pieces[::2] = [_OUTSIDE.sub(_plain, _BARE_KEY.sub(r'\1"\2":', piece)) for piece in pieces[::2]]
    pieces[1::2] = [piece if piece[0] == '"' else _requoted(piece) for piece in pieces[1::2]]
    plain = ''.join(pieces)
    return plain if as_object(plain) is not None else _lenient_controls(plain)


def _plain(found: re.Match[str]) -> str:
    return _LITERALS.get(found[0], found[1] or '')


def _requoted(text: str) -> str:
    """A single-quoted string in double quotes."""
    inner = _ESCAPE.sub(lambda found: {"\\'": "'", '"': '\\"'}.get(found[0], found[0]), text[1:-1])
    return f'"{inner}"'


_REPAIRS: tuple[Callable[[str], str | None], ...] = (
    _same,
    _decoded,
    _first_object,
    _after_empty,
    _unbraced,
    _lenient_controls,
    _loose,
    _python_literal,
)

_MARKER = r'<[^<>{}"\s][^<>{}"]{0,80}>|\[/?[A-Z_]{3,40}\]'
_JUNK = re.compile(rf'(?:\s|\}}|{_MARKER}|```)*+')
_FRONT = re.compile(rf'(?:\s|{_MARKER}|```\w*|json(?=\s*\{{))*+')
_BACK = re.compile(rf'(?:\s|{_MARKER}|```)*+')
_STRING = re.compile(r"""("(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+')""", re.DOTALL)
_BARE_KEY = re.compile(r'([{,]\s*)([A-Za-z_$][\w$-]*)\s*:')
_OUTSIDE = re.compile(r',(\s*[}\]])|(?<![\w"])(?:True|False|None)(?![\w"])')
_LITERALS = {'True': 'true', 'False': 'false', 'None': 'null'}
_ESCAPE = re.compile(r'\\.|"', re.DOTALL)
_EMPTY = re.compile(r'\s*\{\s*\}\s*(?=\{)')
_CUT_TOKEN = re.compile(r't|tr|tru|f|fa|fal|fals|n|nu|nul|N|Na|-|-?I(?:n(?:f(?:i(?:n(?:i(?:t)?)?)?)?)?)?|\.|[eE][+-]?')
_SURROGATE = re.compile('[\ud800-\udfff]')


def _without_wrapping(text: str) -> str:
    """`text` without code fences and template markers around it."""
    front = _FRONT.match(text)
    start, end = front.end() if front else 0, max(text.rfind('}'), text.rfind('"')) + 1
    return text[start:end] if _BACK.fullmatch(text, end) else text[start:]


def dumped(value: object, *, allow_nan: bool = True) -> str:
    """`value` as JSON; half a character, which no text can hold, stays an escape."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=allow_nan)
    return json.dumps(value) if _SURROGATE.search(text) else text


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
