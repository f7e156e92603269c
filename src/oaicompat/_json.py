"""Arguments of tool calls: text that a model or a server spoiled, back to the JSON object it was.

Conservative: a valid object is never touched, nothing is invented, and what stays unreadable stays as it is, for the
model to be asked again. Each repair is one small function from text to text or `None`; `repair_arguments()` tries
them in order.
"""

from __future__ import annotations

import ast
import json
import math
import re
import warnings
from collections.abc import Callable
from typing import Any

from oaicompat._halves import has_half, joined_halves
from oaicompat._patterns import lazy

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


def ends_inside(text: str) -> bool:
    """Whether `text` is the beginning of an object, in any of the forms that are repaired."""
    if is_cut_off(text) or is_cut_off(bare := _without_wrapping(text)):
        return True
    if '{' not in bare:
        return _CUT_MARKER.fullmatch(bare) is not None
    if (inner := _inner(bare)) is not None:
        return is_cut_off(inner)
    pieces = _STRING.split(bare)
    if _is_open(pieces):
        # An apostrophe in a single-quoted string looks like its end, and so the end like a string.
        return not bare.rstrip().endswith('}')
    return sum(piece.count('{') + piece.count('[') - piece.count('}') - piece.count(']') for piece in pieces[::2]) > 0


def goes_on(text: str) -> bool:
    """Whether `text` is a JSON object or the beginning of one."""
    return as_object(text) is not None or is_cut_off(text)


def extends(before: str, text: str) -> bool:
    """Whether `text` repeats the object `before`, and may add to it."""
    old, new = as_object(before), as_object(text)
    if not old or new is None:
        return not old or text.startswith(before)
    return all(key in new and new[key] == value for key, value in old.items())


def repair_arguments(text: str) -> str | None:
    """`text` as the text of a JSON object: itself if it is one, repaired if it can be, else `None`."""
    repaired = _repaired(text)
    return repaired if repaired is None or not _may_be_infinite(repaired) else _finite_text(repaired)


def _may_be_infinite(text: str) -> bool:
    return 'NaN' in text or 'Infinity' in text or _HUGE.search(text) is not None


def _repaired(text: str) -> str | None:
    text = joined_halves(text)  # of a character that came in two fragments
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


def _finite_text(text: str) -> str | None:
    """`text` with null for numbers that JSON does not have, as in JavaScript: they could not be sent back."""
    value = as_object(text)
    try:
        finite = _finite(value)
    except RecursionError:
        return None
    return text if finite == value else dumped(finite)


def _finite(value: Any) -> Any:
    match value:
        case dict():
            return {key: _finite(item) for key, item in value.items()}
        case list():
            return [_finite(item) for item in value]
        case float() if not math.isfinite(value):
            return None
    return value


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


def _inner(text: str) -> str | None:
    """What the JSON string `text` holds."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, str) else None


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
    pieces = _STRING.split(text)
    if text.lstrip()[:1] != '{' or _is_open(pieces) or not all(map(str.strip, pieces[2:-1:2])):
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
    if _is_open(pieces):
        return None
    # Even pieces stand outside of strings.
    pieces[::2] = [_OUTSIDE.sub(_plain, _BARE_KEY.sub(r'\1"\2":', piece)) for piece in pieces[::2]]
    pieces[1::2] = [piece if piece[0] == '"' else _requoted(piece) for piece in pieces[1::2]]
    plain = ''.join(pieces)
    return plain if as_object(plain) is not None else _lenient_controls(plain)


def _is_open(pieces: list[str]) -> bool:
    """Whether the last string in what `_STRING` split never ends."""
    return len(pieces) > 1 and not pieces[-1] and _OPEN.fullmatch(pieces[-2]) is not None


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
_JUNK = lazy(rf'(?:\s|\}}|{_MARKER}|```)*+')
_FRONT = lazy(rf'(?:\s|{_MARKER}|```\w*|json(?=\s*\{{))*+')
_BACK = lazy(rf'(?:\s|{_MARKER}|```)*+')
# The last string may lack its end: were it none, each quote in it would be tried as the start of one.
_STRING = lazy(r"""("(?:[^"\\]|\\.)*+(?:"|\\?\Z)|'(?:[^'\\]|\\.)*+(?:'|\\?\Z))""", re.DOTALL)
_OPEN = lazy(r""""(?:[^"\\]|\\.)*+\\?|'(?:[^'\\]|\\.)*+\\?""", re.DOTALL)
_BARE_KEY = lazy(r'([{,]\s*)([A-Za-z_$][\w$-]*)\s*:')
_OUTSIDE = lazy(r',(\s*[}\]])|(?<![\w"])(?:True|False|None)(?![\w"])')
_LITERALS = {'True': 'true', 'False': 'false', 'None': 'null'}
_ESCAPE = lazy(r'\\.|"', re.DOTALL)
_HUGE = lazy(r'\d(?<!\d\d)(?:\d{308}|\d*+[eE]\+?\d{3})')  # a digit first: that is found fast
_CUT_MARKER = lazy(r'`{0,2}|<[^<>{}"]*|\[/?[A-Z_]*')
_EMPTY = lazy(r'\s*\{\s*\}\s*(?=\{)')
_CUT_TOKEN = lazy(r't|tr|tru|f|fa|fal|fals|n|nu|nul|N|Na|-|-?I(?:n(?:f(?:i(?:n(?:i(?:t)?)?)?)?)?)?|\.|[eE][+-]?')


def _without_wrapping(text: str) -> str:
    """`text` without code fences and template markers around it."""
    front = _FRONT.match(text)
    start, end = front.end() if front else 0, max(text.rfind('}'), text.rfind('"')) + 1
    return text[start:end] if _BACK.fullmatch(text, end) else text[start:]


def dumped(value: object, *, allow_nan: bool = True) -> str:
    """`value` as JSON; half a character, which no text can hold, stays an escape."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=allow_nan)
    return json.dumps(value) if has_half(text) else text


def _is_plain(value: object) -> bool:
    match value:
        case dict():
            return all(isinstance(key, str) and _is_plain(item) for key, item in value.items())
        case list() | tuple():
            return all(map(_is_plain, value))
        case str() | bool() | int() | float() | None:
            return True
    return False
