"""Tool calls: the fragments that servers send, sorted into calls.

One tracker for streams and for whole answers. `feed()` takes the `tool_calls` of a delta as they came and gives them
back with one index for each call, ids that differ, names told once and arguments as text. `finish()` gives what only
the end can tell: arguments that had to be repaired as a whole. A well-formed fragment comes out as it went in.

By explicit index; an id that the slot does not have opens, or returns to, its own slot; without an index by id, else
the newest call.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from oaicompat._halves import has_half, joined_halves
from oaicompat._json import as_object, dumped, ends_inside, extends, goes_on, repair_arguments
from oaicompat._keys import WHOLE
from oaicompat._nested import decode_nested
from oaicompat._patterns import lazy

Call = dict[str, Any]


_MARKER = lazy(r'(?:<[|\uff5c/]|</?tool_call|\[/?TOOL_CALLS).*', re.DOTALL)
_DRESS = lazy(
    r'^(?:\s|["\'`]|<[^<>]{1,80}>|\[TOOL_CALLS\])*(?:to=)?(?:(?:functions|tools|default_api)\.)?'
    r'([\w.-]+?)(?::\d+|\(\))?[\s"\'`]*$'
)
_ALIASES = ('arguments', 'parameters', 'args', 'input')


@dataclass
class _Slot:
    index: int  # the one we send
    given: int  # the one the server sends
    id: str | None = None  # the one we send
    given_id: str | None = None  # the one the server sends
    name: str = ''
    last: str = ''  # the newest fragment, as long as each one repeated the one before
    start: str = ''  # of a fragment that may repeat all before; any may until there was one
    growing: bool = True
    typed: bool = False
    waiting: bool = True  # for its name
    pieces: list[str] = field(default_factory=list)
    whole: str | None = None  # arguments that did not come as text, and so as a whole
    again: bool = False  # its name was repeated behind whole arguments, with nothing more
    announced: str = ''  # the name that was repeated, for the call that follows

    @property
    def arguments(self) -> str:
        """The fragments so far, joined when somebody asks: one by one that would cost the square of their number."""
        if len(self.pieces) > 1:
            self.pieces = [''.join(self.pieces)]
        return self.pieces[0] if self.pieces else ''

    @arguments.setter
    def arguments(self, text: str) -> None:
        self.pieces = [text]

    @property
    def is_whole(self) -> bool:
        end = next((piece.rstrip() for piece in reversed(self.pieces) if not piece.isspace() and piece), '')
        return end.endswith('}') and as_object(self.arguments) is not None


@dataclass
class ToolCalls:
    """Fragments in, sorted fragments out.

    Attributes:
        schemas: The offered tools: parameter schemas by name.
        repairs: Names of the deviations that were repaired.
        apart: Whether each call comes whole: then none goes on with another.
    """

    schemas: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    repairs: set[str] = field(default_factory=set)
    apart: bool = False
    _slots: list[_Slot] = field(default_factory=list)
    _newest: _Slot | None = None
    _at: dict[int, _Slot] = field(default_factory=dict)  # the newest at each of the server's indexes
    _named: dict[tuple[int | None, str], _Slot] = field(default_factory=dict)  # by the server's index and id
    _ids: set[str] = field(default_factory=set)  # that we sent
    _taken: set[int] = field(default_factory=set)  # indexes that we sent
    _free: int = 0  # above all of them

    def feed(self, calls: object) -> list[Call]:
        """The calls of one delta, sorted; what is no call at all is left out."""
        if isinstance(calls, Mapping):
            self.repairs.add('tool_call.not_a_list')
            calls = [calls]
        if not isinstance(calls, list):
            return []
        fed = (dict(call) if self._goes_on(call) else self._sorted(call) for call in calls if isinstance(call, Mapping))
        return [call for call in fed if call is not None]

    def goes_on(self, calls: list[Any]) -> bool:
        """Whether `calls` is nothing but the next fragment of the newest call; if so, it is taken."""
        return len(calls) == 1 and type(calls[0]) is dict and self._goes_on(calls[0])

    def beyond(self, calls: list[Any]) -> list[Call]:
        """What whole calls, in order, say beyond the fragments so far: as fragments, to be fed."""
        given = [call for call in calls if isinstance(call, Mapping)]
        known = [slot for slot in self._slots if slot.given >= 0]
        told = [self._beyond(call, slot) for call, slot in zip(given, known, strict=False)]
        return [*filter(None, told), *({'index': n, **call} for n, call in enumerate(given) if n >= len(known))]

    def _beyond(self, call: Mapping[str, Any], slot: _Slot) -> Call:
        function = call.get('function')
        function = function if isinstance(function, Mapping) else {}
        text, name = self._as_text(function.get('arguments')) or '', function.get('name')
        if text.startswith(slot.arguments):
            text = text[len(slot.arguments) :]
        else:
            # The same in other words, or what was not told right.
            slot.whole = slot.whole if slot.is_whole or as_object(text) is None else text
            text = ''
        news: Call = {**({} if slot.name else {'name': name}), **({'arguments': text} if text else {})}
        id_ = {} if slot.given_id is None else {'id': slot.given_id}
        return {'index': slot.given, **id_, 'function': news} if news else {}

    def add(self, name: str, arguments: str, id_: str | None = None) -> Call:
        """A call that came whole, and not among the others: as one fragment."""
        slot = _Slot(_OWN + len(self._slots), -1, name=name, waiting=False, typed=True)
        slot.arguments, slot.id = arguments, self._distinct(id_) if id_ else synthetic_id()
        self._slots.append(slot)
        self._taken.add(slot.index)
        function = {'name': name, 'arguments': arguments}
        return {'index': slot.index, 'id': slot.id, 'type': 'function', 'function': function}

    def has(self, name: str, arguments: str) -> bool:
        """Whether the server made this call itself; if so, that counts as a repair."""
        wanted = as_object(arguments)
        same = (slot for slot in self._slots if slot.given >= 0 and slot.name == name)
        known = any(as_object(slot.arguments) == wanted for slot in same)
        self.repairs.update({'tool_call.twice'} if known else ())
        return known

    @property
    def begun(self) -> bool:
        """Whether any call has begun."""
        return bool(self._slots)

    @property
    def nameless(self) -> bool:
        """Whether there is a call whose name never came."""
        return any(not slot.name and (slot.arguments or slot.id) for slot in self._slots)

    def finish(self) -> list[Call]:
        """Calls whose arguments are to be replaced as a whole."""
        replaced = []
        for slot in self._slots:
            if not slot.name:
                continue
            arguments = self._repaired(slot)
            if arguments != slot.arguments:
                slot.arguments = arguments
                replaced.append({'index': slot.index, 'id': slot.id, 'function': {'name': slot.name}, WHOLE: arguments})
        return replaced

    def cut_off(self) -> str | None:
        """The name of a call whose arguments end before they are whole, `''` if it has none; `None` if all are."""
        for slot in self._slots:
            if not slot.name and not slot.arguments:
                continue
            if not slot.arguments.strip() or (repair_arguments(slot.arguments) is None and ends_inside(slot.arguments)):
                return slot.name
        return None

    def _goes_on(self, call: Mapping[Any, Any]) -> bool:
        """Take `call` as it is, if it is what most are: the next fragment of the newest call, and no more."""
        function, index = call.get('function'), call.get('index')
        if type(index) is not int or 'id' in call:
            return False
        text = function.get('arguments') if type(function) is dict and len(function) == 1 else None
        return type(text) is str and self.takes(index, text)

    def takes(self, index: int, text: str) -> bool:
        """Take the next fragment of the newest call's arguments, if it is plain."""
        slot = self._newest
        if slot is None or slot.index != index or slot.given != index or text.startswith(slot.start) or not slot.name:
            return False
        slot.growing = False
        slot.pieces.append(text)
        return True

    def _sorted(self, call: Mapping[str, Any]) -> Call | None:
        function = call.get('function')
        if not isinstance(function, Mapping):
            # Some servers leave the envelope out: {"name": ..., "arguments": ...}.
            function = {key: call[key] for key in ('name', *_ALIASES) if key in call}
            if function:
                self.repairs.add('tool_call.function')
        id_, name = _text_or_none(call.get('id')), self._name(function.get('name'))
        given = next((function[key] for key in _ALIASES if function.get(key) is not None), None)
        arguments = self._as_text(given)
        slot = self._slot(_index(call.get('index')), id_, name, arguments)
        told = self._told(slot, name or (slot.announced if not slot.name else ''), arguments)
        if arguments is not given and slot.arguments:
            slot.whole, news = arguments, {'name': told, 'arguments': ''}
        else:
            news = {'name': told, 'arguments': self._fragment(slot, arguments)}
        slot.typed = slot.typed or call.get('type') == 'function'
        if not slot.name:
            return None  # pydantic-ai has no part for a call before its name: what comes before waits for it
        if told == slot.name and slot.waiting:
            news['arguments'] = slot.arguments or news['arguments']
        slot.waiting = False
        changed = {key: value for key, value in news.items() if function.get(key) != value}
        sent: Call = dict(call)
        if changed or function is not call.get('function'):
            sent['function'] = {**function, **changed}
        if call.get('index') != slot.index or type(call['index']) is not int:
            sent['index'] = slot.index
        if told and slot.name == told and not slot.typed:
            self.repairs.add('tool_call.type')
        return self._with_id(sent, slot, id_, starts=told == slot.name)

    def _with_id(self, sent: Call, slot: _Slot, id_: str | None, *, starts: bool) -> Call:
        """`sent` with the id of its call; it is told where the part starts, and fixed from then on."""
        if starts and slot.id is None:
            slot.id = synthetic_id()
            self.repairs.add('tool_call.id')
        if starts or 'id' in sent:
            told = slot.id if starts or id_ else None
            return sent if sent.get('id') == told else {**sent, 'id': told}
        return sent

    def _slot(self, index: int | None, id_: str | None, name: str, arguments: str | None) -> _Slot:
        slot = self._found(index, id_, name)
        if slot is None or self._is_another(slot, id_, name, arguments or ''):
            before, slot = slot, self._opened(index)
            slot.announced = before.name if before and not name else ''
        if index is None or slot.index != index:
            self.repairs.add('tool_call.index')
        if id_ is not None:
            slot.given_id = slot.given_id or id_
            slot.id = slot.id or self._distinct(id_)
            self._named[None, slot.given_id] = self._named[slot.given, slot.given_id] = slot
        self._newest = slot
        return slot

    def _found(self, index: int | None, id_: str | None, name: str) -> _Slot | None:
        # A slot that was opened for a conflicting id takes over the index.
        latest = self._newest if index is None else self._at.get(index)
        same = None if id_ is None else self._named.get((index, id_))
        if same is None and latest is None and id_ is not None and not name and not self.apart:
            # The index counts fragments.
            same = self._named.get((None, id_))
            same = same if same and not same.is_whole else None
        # An id that comes late belongs to a call that has none.
        return same or (latest if latest and (id_ is None or latest.given_id is None) else None)

    def _is_another(self, slot: _Slot, id_: str | None, name: str, text: str) -> bool:
        """Whether a fragment starts another call than the one in its slot, which is whole already."""
        same_id = id_ is not None and id_ == slot.given_id
        if self._names_another(slot, name, same_id=same_id):
            return True
        # Cheapest first: to ask whether it is whole is to parse it.
        if not ((name and slot.name) or slot.again) or text.lstrip()[:1] not in ('{', '"') or not slot.is_whole:
            return False
        return not same_id or not extends(slot.arguments, text)

    def _names_another(self, slot: _Slot, name: str, *, same_id: bool) -> bool:
        known = slot.name
        if name == known or not {name, known} <= self.schemas.keys() or known + name in self.schemas:
            return False
        return slot.is_whole or not (same_id or (name.startswith(known) and not slot.arguments))

    def _opened(self, index: int | None) -> _Slot:
        free = index if index is not None and index not in self._taken else self._free
        slot = _Slot(free, index if index is not None else free)
        self._slots.append(slot)
        self._taken.add(free)
        self._free = max(self._free, free + 1)
        self._at[slot.given] = slot
        return slot

    def _distinct(self, id_: str) -> str:
        if id_ in self._ids:
            self.repairs.add('tool_call.duplicate_id')
            return synthetic_id()
        self._ids.add(id_)
        return id_

    def _name(self, name: object) -> str:
        if not isinstance(name, str):
            return ''
        if has_half(name):
            self.repairs.add('content.split_character')
            name = joined_halves(name)
        clean = name if name in self.schemas else _MARKER.sub('', name)
        if clean not in self.schemas:
            bare = next((found[1] for text in (clean, name) if (found := _DRESS.match(text))), '')
            clean = bare if bare in self.schemas else clean
        if clean != name:
            self.repairs.add('tool_call.name')
        return clean

    def _told(self, slot: _Slot, name: str, text: str | None) -> str | None:
        """What of `name` is news: pydantic-ai joins the names that it is told."""
        known = slot.name
        if not name:
            return None
        slot.name = self._joined(slot, name) if known else name
        if slot.name == known:
            self.repairs.add('tool_call.repeated_name')
            slot.again = not (text or '').strip() and slot.is_whole
            return None
        return slot.name[len(known) :]

    def _joined(self, slot: _Slot, name: str) -> str:
        """The name that `name` makes of the known one: the same, a longer one, or both together."""
        known, joined = slot.name, slot.name + name
        if name == known and known in self.schemas:
            return known
        if any(tool.startswith(joined) for tool in self.schemas):
            return joined
        if known in self.schemas:
            return name if name in self.schemas and name.startswith(known) and not slot.arguments else known
        if name.startswith(known):
            return name
        return known if slot.arguments else joined

    def _as_text(self, arguments: object) -> str | None:
        if arguments is None or isinstance(arguments, str):
            return arguments
        self.repairs.add('tool_call.arguments')
        return dumped(arguments)

    def _fragment(self, slot: _Slot, text: str | None) -> str | None:
        """What of `text` is news: some servers repeat all that came before."""
        if not text:
            return text
        bare = text.lstrip()
        slot.start = slot.start or ('' if not bare else text[: len(text) - len(bare)] + '{')
        if not bare.startswith('{'):
            slot.growing = False
            slot.pieces.append(text)
            return text
        before = slot.arguments.lstrip()
        slot.growing = slot.growing and bare.startswith(slot.last)
        slot.last = bare if slot.growing else ''
        if before.startswith('{') and bare.startswith(before) and not goes_on(before + bare):
            self.repairs.add('tool_call.cumulative')
            slot.pieces.append(bare[len(before) :])
            return bare[len(before) :]
        slot.pieces.append(text)
        return text

    def _repaired(self, slot: _Slot) -> str:
        given = slot.arguments if slot.whole is None else slot.whole
        if has_half(given):
            self.repairs.add('content.split_character')
        text = repair_arguments(given)
        if text is None and slot.growing and as_object(slot.last) is not None:
            # What might have been an object inside of another one was a repetition after all.
            self.repairs.add('tool_call.cumulative')
            text = slot.last
        if text is None:
            self.repairs.add('tool_call.unreadable')
            return joined_halves(given)
        if text != slot.arguments:
            self.repairs.add('tool_call.arguments')
        schema, value = self.schemas.get(slot.name), as_object(text)
        nested = decode_nested(value, schema) if schema and value is not None else None
        decoded = repair_arguments(dumped(nested)) if nested is not None else None
        if decoded is None:
            return text
        self.repairs.add('tool_call.nested_arguments')
        return decoded


def synthetic_id() -> str:
    """An id for a call that came without one, or with one that another call has."""
    return f'call_{secrets.token_hex(12)}'


def whole_calls(calls: object, tracker: ToolCalls) -> list[Call]:
    """The calls of an answer that came whole, by the same rules; each is a call of its own.

    A call that needs no repair is the object that came.
    """
    if isinstance(calls, Mapping):
        tracker.repairs.add('tool_call.not_a_list')
    items = [calls] if isinstance(calls, Mapping) else calls
    tracker.apart = True
    given = [call for call in items if isinstance(call, Mapping)] if isinstance(items, list) else []
    fed = [(call, tracker.feed([{**call, 'index': number}])) for number, call in enumerate(given)]
    whole = {call['index']: call[WHOLE] for call in tracker.finish()}
    return [_as_call(old, new, whole) for old, news in fed for new in news]


def _as_call(given: Mapping[str, Any], sent: Call, whole: Mapping[int, str]) -> Call:
    """A call as the API reference has it; `given` itself where it is one."""
    function = {**sent.get('function', {})}
    if sent['index'] in whole:
        function['arguments'] = whole[sent['index']]
    call = {**sent, 'type': 'function', 'function': function}
    if 'index' in given:
        call['index'] = given['index']
    else:
        del call['index']
    return dict(given) if call == given else call


def _index(given: object) -> int | None:
    if isinstance(given, str) and len(given) < _LONGEST and given.strip().isdecimal():
        return int(given)
    if isinstance(given, float) and given.is_integer():
        given = int(given)
    return given if isinstance(given, int) and not isinstance(given, bool) and given >= 0 else None


def _text_or_none(value: object) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        value = repr(value) if abs(value) < _HIGHEST else None
    return joined_halves(value) if isinstance(value, str) and value else None


_OWN = 1_000_000  # from here on, indexes are those of calls that were not among the others
_LONGEST = 10
_HIGHEST = 10**18
