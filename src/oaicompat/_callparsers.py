"""Parsers for calls in JSON, in XML and in Python, the families that most formats belong to.

A parser starts behind its marker and gives what was written, or raises `Disproved`; whether the arguments fit the
tool is for `_textcalls.py` to say. A block of several calls is one thing: all of them are calls, or it is text. A
name that was not offered, or a key that no call has, disproves it where it stands. Values in XML stay as they are
written, entities too: the templates escape nothing, so `&amp;` was meant. Pure.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from oaicompat._json import dumped
from oaicompat._patterns import lazy
from oaicompat._reading import Disproved, Reader, Steps, unquoted


class Raw(NamedTuple):
    """A call as it was written.

    Attributes:
        name: The tool, as written.
        arguments: The JSON object, as written; nothing where there was none.
        texts: Arguments that came as text, to be typed by the tool's schema.
        id: The id, where the format has one.
    """

    name: str
    arguments: str = ''
    texts: Mapping[str, str] = {}
    id: str | None = None


Parser = Callable[[Reader, str], Steps[list[Raw]]]


def several(
    r: Reader,
    openings: tuple[str, ...],
    item: Callable[[Reader], Steps[Raw]],
    closings: tuple[str, ...],
    *,
    opener: str = '',
    inside: bool = False,
    needed: bool = True,
) -> Steps[list[Raw]]:
    """One or more items, each behind an opening, and what closes them; `inside` if the first opening was read."""
    found: list[Raw] = []
    while True:
        start = r.at
        yield from r.space()
        if not inside and not (yield from r.maybe(*openings)):
            if not found:
                raise Disproved
            r.at = start
            yield from r.close(*closings, opener=opener, needed=needed)
            return found
        found.append((yield from item(r)))
        r.items, inside = len(found), False


def listed(r: Reader, item: Callable[[Reader], Steps[Raw]]) -> Steps[list[Raw]]:
    """Items with commas between them, up to a closing bracket, which may be missing at the end of the answer."""
    found: list[Raw] = []
    while True:
        yield from r.space()
        if found and (r.over or (yield from r.maybe(']'))):
            return found
        found.append((yield from item(r)))
        yield from r.space()
        yield from r.maybe(',')


# JSON


def _object(r: Reader, *, inner: bool = False) -> Steps[Raw]:
    yield from r.literal('{')
    found: dict[str, str] = {}
    while True:
        yield from r.space()
        if (yield from r.maybe('}')) or ('arguments' in found and (yield from r.peek()) == '<'):
            break  # a brace too few, in front of the closing marker, is common
        role = _ROLES.get((yield from quoted(r)))
        if role is None:
            raise Disproved
        yield from r.space()
        yield from r.literal(':')
        yield from r.space()
        if role == 'function' and not inner and (yield from r.peek()) == '{':
            call = yield from _object(r, inner=True)
            found |= {'name': call.name, 'arguments': call.arguments or found.get('arguments', '')}
        else:
            found |= yield from _member(r, role)
        yield from r.space()
        yield from r.maybe(',')
    if 'name' not in found:
        raise Disproved
    return Raw(found['name'], found.get('arguments', ''), {}, found.get('id') or None)


def _member(r: Reader, role: str) -> Steps[dict[str, str]]:
    """What a member of a call says, by the role of its key."""
    if role in ('name', 'function'):
        return {'name': (yield from offered(r))}
    text = yield from r.value()
    if role == 'arguments':
        return {role: text}
    plain = unquoted(text)
    if role == 'type' and plain not in _TYPES:
        raise Disproved
    return {role: plain}


def quoted(r: Reader) -> Steps[str]:
    """What a string in quotes says."""
    if (yield from r.peek()) not in ('"', "'"):
        raise Disproved
    return unquoted((yield from r.string()))


def offered(r: Reader) -> Steps[str]:
    """The name of an offered tool, in quotes."""
    written = yield from quoted(r)
    if r.offered(written) is None:
        raise Disproved
    return written


def braced(r: Reader) -> Steps[str]:
    """Arguments as an object."""
    if (yield from r.peek()) != '{':
        raise Disproved
    return (yield from r.balanced())


_ROLES = {
    **dict.fromkeys(('name', 'tool_name', 'function_name'), 'name'),
    **dict.fromkeys(('arguments', 'parameters', 'args', 'input', 'kwargs'), 'arguments'),
    **dict.fromkeys(('id', 'tool_call_id', 'call_id'), 'id'),
    **{key: key for key in ('function', 'type', 'index')},
}
_TYPES = ('function', 'tool_call', 'tool_use', 'function_call')


def objects(r: Reader) -> Steps[list[Raw]]:
    """Calls as objects and lists of objects, one after another."""
    found: list[Raw] = []
    while True:
        yield from r.space()
        if (yield from r.maybe('[')):
            found += yield from listed(r, _object)
        else:
            found.append((yield from _object(r)))
        start = r.at
        yield from r.space()
        separated = yield from r.maybe(',', ';')
        yield from r.space()
        if not separated and (yield from r.peek()) not in ('{', '['):
            r.at = start
            return found


def json_block(*closings: str, needed: bool = True) -> Parser:
    """Calls as JSON, and a closing marker: the opening one with a slash where none is named."""

    def parse(r: Reader, marker: str) -> Steps[list[Raw]]:
        found = yield from objects(r)
        start = r.at
        yield from r.space()
        if not needed or not (yield from r.maybe('}')):  # one brace too many is common
            r.at = start
        yield from r.close(*(closings or (f'</{marker[1:]}',)), opener=marker, needed=needed)
        return found

    return parse


def whole(parse: Callable[[Reader], Steps[list[Raw]]]) -> Parser:
    """Calls that are the whole answer, each with its arguments."""

    def parse_all(r: Reader, _: str) -> Steps[list[Raw]]:
        yield from r.maybe('functools')  # Phi's only mark
        found = yield from parse(r)
        yield from r.space()
        if (yield from r.peek()) or not all(call.arguments for call in found):
            raise Disproved
        return found

    return parse_all


# XML


def _inner(r: Reader, closing: str, *followers: str) -> Steps[str]:
    """A value up to its closing tag: the first one in front of something that can follow it."""
    start = r.at
    while True:
        yield from r.until(closing)
        end = r.at
        yield from r.space()
        followed = yield from r.maybe(*followers)
        cut_off = r.ended and not r.cut and any(follower.startswith(r.text[r.at :]) for follower in followers)
        r.at = end
        if followed or cut_off:
            return r.text[start : end - len(closing)]


def functions(r: Reader, marker: str) -> Steps[list[Raw]]:
    """`<function=NAME>` with `<parameter=KEY>`, in an outer tag or not."""
    if marker != '<function=':
        return (yield from several(r, ('<function=',), _function, (f'</{marker[1:]}',), opener=marker))
    found = yield from _function(r)
    yield from r.close('</tool_call>', needed=False)  # Qwen3-Coder forgets the opening one
    return [found]


def _function(r: Reader) -> Steps[Raw]:
    name = yield from r.name()
    yield from r.literal('>')
    texts: dict[str, str] = {}
    while True:
        yield from r.space()
        if not (yield from r.maybe('<parameter=')):
            yield from r.close('</function>', opener='</tool_call>')
            return Raw(name, '', texts)
        key = yield from r.until('>')
        text = yield from _inner(r, '</parameter>', '<parameter=', '</function>', '</tool_call>')
        texts[key.strip()] = text.removeprefix('\n').removesuffix('\n')  # they belong to the markup


def key_values(r: Reader, marker: str) -> Steps[list[Raw]]:
    """`NAME<arg_key>K</arg_key><arg_value>V</arg_value>`, on lines of their own or not."""
    yield from r.space()
    name, texts = (yield from r.name()), dict[str, str]()
    while True:
        yield from r.space()
        if not (yield from r.maybe('<arg_key>')):
            yield from r.close('</tool_call>', opener=marker)
            return [Raw(name, '', texts)]
        key = yield from r.until('</arg_key>')
        yield from r.space()
        yield from r.literal('<arg_value>')
        texts[key.strip()] = _unwrapped((yield from _inner(r, '</arg_value>', '<arg_key>', '</tool_call>', marker)))


def invokes(r: Reader, marker: str) -> Steps[list[Raw]]:
    """`<invoke name=..>` with `<parameter name=..>`, in an outer tag or not; each tag with DeepSeek's prefix or not."""
    prefix = next((prefix for prefix in _PREFIXES if marker[1:].startswith(prefix)), '')

    def item(r: Reader) -> Steps[Raw]:
        return (yield from _invoke(r, prefix))

    opening, bare = f'<{prefix}invoke', marker.endswith('invoke ')
    closing = f'</{prefix}function_calls>' if bare else f'</{marker[1:]}'
    return (yield from several(r, (opening,), item, (closing,), inside=bare, needed=not bare))


def _invoke(r: Reader, prefix: str) -> Steps[Raw]:
    parameter, closing = f'<{prefix}parameter', f'</{prefix}invoke>'
    yield from r.space()
    yield from r.literal('name=')
    name = yield from offered(r)
    yield from r.literal('>')
    texts, strings = dict[str, str](), list[str]()
    while True:
        yield from r.space()
        if not (yield from r.maybe(parameter)):
            yield from r.close(closing)
            return Raw(name, f'{{{", ".join(strings)}}}', texts)
        key = yield from _attribute(r, 'name=')
        kind = yield from _attribute(r, 'string=')
        yield from r.literal('>')
        text = yield from _inner(r, f'</{prefix}parameter>', parameter, closing)
        if kind == 'true':
            strings.append(f'{dumped(key)}: {dumped(text)}')
        else:
            texts[key] = _unwrapped(text)


def _unwrapped(text: str) -> str:
    """`text`, of lines of its own; where the format has it between the tags, a line break on one side is meant."""
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '\n' else text


def _attribute(r: Reader, name: str) -> Steps[str]:
    yield from r.space()
    return (yield from quoted(r)) if (yield from r.maybe(name)) else ''


_PREFIXES = ('\uff5cDSML\uff5c', '|DSML|')


def function_json(r: Reader, _: str) -> Steps[list[Raw]]:
    """`<function=NAME>{..}</function>`, and what Llama on Groq makes of it."""
    name = yield from r.name()
    yield from r.maybe('>', '=', '(', ')', ',', '[]')
    yield from r.space()
    arguments = yield from braced(r)
    yield from r.maybe(')')
    yield from r.maybe('>')
    yield from r.close('</function>', needed=False)
    return [Raw(name, arguments)]


# Python


def python_call(r: Reader) -> Steps[Raw]:
    """`get_weather(city="Rome")`; arguments by name only."""
    name = (yield from r.run(_DOTTED)).removesuffix('.call')
    if r.offered(name) is None or (yield from r.peek()) != '(':
        raise Disproved
    return Raw(name, _keywords((yield from r.balanced())))


def _keywords(text: str) -> str:
    """The arguments of a call, `(city="Rome")`, as JSON."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')  # an escape that Python does not know warns
            call = ast.parse(f'f{text}', mode='eval').body
        match call:
            case ast.Call(args=[], keywords=words):
                values = {word.arg: _literal(word.value) for word in words if word.arg}
                if len(values) == len(words):
                    return dumped(values, allow_nan=False)
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        pass
    raise Disproved


def _literal(node: ast.expr) -> Any:
    """What a literal means, JSON's constants among them."""
    match node:
        case ast.Name(id=name) if name in _CONSTANTS:
            return _CONSTANTS[name]
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_literal(item) for item in items]
        case ast.Dict(keys=keys, values=values):
            names = [ast.literal_eval(key) if key else None for key in keys]
            if all(isinstance(name, str) for name in names):
                return {name: _literal(value) for name, value in zip(names, values, strict=True)}
    return ast.literal_eval(node)


_CONSTANTS = {'true': True, 'false': False, 'null': None}
_DOTTED = lazy(r'[\w.]+')


def python_list(r: Reader) -> Steps[list[Raw]]:
    """Calls in a list."""
    yield from r.literal('[')
    return (yield from listed(r, python_call))


def python_block(closing: str) -> Parser:
    """Calls in a list, or on lines of their own."""

    def parse(r: Reader, marker: str) -> Steps[list[Raw]]:
        found: list[Raw] = []
        while True:
            yield from r.space()
            first = yield from r.peek()
            if found and first in ('', closing[0]):
                yield from r.close(closing)
                return found
            found += (yield from python_list(r)) if first == '[' else [(yield from _printed(r))]

    return parse


def _printed(r: Reader) -> Steps[Raw]:
    """A call, in `print(..)` or not."""
    printed = yield from r.maybe('print(')
    yield from r.space()
    call = yield from python_call(r)
    yield from r.space()
    if printed:
        yield from r.literal(')')
    return call


def python_tag(r: Reader, _: str) -> Steps[list[Raw]]:
    """`{..}`, or `get_weather.call(city="Rome")`."""
    yield from r.space()
    if (yield from r.peek()) in ('{', '['):
        return (yield from objects(r))
    return [(yield from python_call(r))]
