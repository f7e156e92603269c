"""What messages were mapped to, kept from one request to the next.

Nothing that is handed out is kept: pydantic-ai and its subclasses write to what they mapped. Pure, but for the memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from oaicompat._unchanged import LENGTH, Chunk, Memory, Snapshot, copied, is_text, size_of

Param = dict[str, Any]
"""A message as the API reference has it."""


class Wire:
    """One message on the wire, as pydantic-ai mapped it.

    Attributes:
        param: The message; nobody else's.
        is_flat: Whether it holds no lists and dicts.
        json: Its JSON, once it was written.
    """

    __slots__ = ('is_flat', 'json', 'param')

    def __init__(self, param: Param) -> None:
        self.param: Param = copied(param)
        self.is_flat = not any(isinstance(value, list | dict) for value in param.values())
        self.json: bytes | None = None


class Wires(NamedTuple):
    """What one message of pydantic-ai's was mapped to.

    Attributes:
        made: By the mapping of all that it says; `None` while unknown.
        carried: By the mapping of what goes in front of it.
    """

    made: tuple[Wire, ...] | None = None
    carried: tuple[Wire, ...] | None = None


_NOTHING = Wires()


class Sending:
    """What one request sends: copies of what is known, with their JSON."""

    def __init__(self, memory: Memory, profile: Mapping[str, Any], system: object) -> None:
        self._memory = memory
        self._key = memory.key(profile, system)
        self._sent: dict[int, tuple[Param, Wire | Joined]] = {}
        self._once: dict[int, tuple[Any, list[Param]]] = {}
        self.joins = False

    def mapped(self, message: Any, kind: str) -> list[Param] | None:
        """Copies of what `message` is mapped to, if it is what it was when it was last mapped so."""
        snapshot = self._memory.known(message)
        wires: tuple[Wire, ...] | None = getattr(snapshot and snapshot.use(self._key), kind, None)
        return None if wires is None else self.copies(wires)

    def snapshot(self, message: Any) -> Snapshot | None:
        """What `message` is, to be mapped; `None` where that is not worth keeping, or can't be."""
        return self._memory.taken(message) if self._memory.again(message, _MAPPED) else None

    def once(self, message: Any) -> list[Param] | None:
        """What `message` was mapped to for this very request, when many were to stand as one and could not."""
        return [copied(param) for param in self._once[id(message)][1]] if id(message) in self._once else None

    def kept(self, message: Any, snapshot: Snapshot | None, kind: str, params: list[Param]) -> list[Param]:
        """`params`, to which `message` was mapped when it was that; kept where they can be."""
        if self.joins and kind == 'made' and _may_fetch(message):
            self._once[id(message)] = message, [copied(param) for param in params]
        # Only what holds nothing but text is equal to no other JSON.
        if snapshot is None or not all(map(is_text, params)):
            return params
        wires = tuple(map(Wire, params))
        known: Wires = snapshot.use(self._key) or _NOTHING
        carried = known.carried if carries(message) else ()
        use = Wires(known.made, wires) if kind == 'carried' else Wires(wires, carried)
        size = _OVERHEAD * len(params) + 2 * sum(map(size_of, params))
        return self.copies(wires) if self._memory.keep(message, snapshot, self._key, use, size) else params

    def shortened(
        self, messages: Sequence[Any], run: Callable[[list[Wire | Joined], Sequence[Any]], Any]
    ) -> Sequence[Any]:
        """`messages`, where those at the start that are mapped already are one: what `run` makes of them."""
        made: list[Wire | Joined] = []
        count, first = 0, [*self._memory.pieces(messages[:1])]
        for piece in chain(first, self._memory.pieces(messages[1:]) if first else ()):
            wires, length = self._known(piece)
            made.extend(wires)
            count += length
            if not length:
                break
        return [run(made, messages), *messages[count:]] if count > 1 else messages

    def _known(self, piece: Snapshot | Chunk) -> tuple[Sequence[Wire | Joined], int]:
        """What one or many messages are mapped to, and how many of them; none if one is not known."""
        if isinstance(piece, Snapshot):
            single = _wires(piece.use(self._key))
            return ((), 0) if single is None else (single, 1)
        if (joined := self._joined(piece)) is not None:
            return [joined], LENGTH
        many = [_wires(snapshot.use(self._key)) for snapshot in piece.snapshots]
        known = [wires for wires in many if wires is not None]
        return ([*chain.from_iterable(known)], LENGTH) if len(known) == len(many) else ((), 0)

    def _joined(self, chunk: Chunk) -> Joined | None:
        """What a chunk is mapped to, as one, if nothing of it means anything for other messages."""
        joined: Joined | None = chunk.uses.get(self._key)
        if joined is None and self.joins:
            wires: list[Wire] = []
            for snapshot in chunk.snapshots:
                if (known := _wires(snapshot.use(self._key))) is None:
                    return None
                wires.extend(known)
            # Another thread may join them, too.
            written = [json for wire in wires if (json := wire.json) is not None]
            if not wires or len(written) < len(wires) or not all(_is_quiet(wire.param) for wire in wires):
                return None
            joined = Joined(wires, written)
            chunk.uses = {**({} if len(chunk.uses) >= _USES else chunk.uses), self._key: joined}
        return joined if self.joins else None

    def copies(self, made: Iterable[Wire | Joined]) -> list[Param]:
        """What goes out for them."""
        copies, sent = [], self._sent
        for one in made:
            param = dict(one.param) if one.is_flat else copied(one.param)
            sent[id(param)] = param, one
            copies.append(param)
        return copies

    def whole(self, params: Iterable[Param]) -> list[Param]:
        """`params`, with all that stand for others replaced by those."""
        whole: list[Param] = []
        for param in params:
            one = self._sent[id(param)][1] if id(param) in self._sent else None
            whole.extend(copied(wire.param) for wire in one.wires) if isinstance(one, Joined) else whole.append(param)
        return whole

    def told_others(self, params: Iterable[Param]) -> bool:
        """Whether something in `params` means something for those that others stand for, or was done to them."""
        for param in params:
            one = self._sent[id(param)][1] if id(param) in self._sent else None
            if isinstance(one, Joined):
                if one.param != param:
                    return True
            elif not _is_quiet(param) and param['role'] == 'assistant':
                return True
        return False

    def write(self, params: Iterable[Param], write: Callable[[object], bytes]) -> list[bytes]:
        """The JSON of messages, in pieces; made by `write`, where what was handed out is not known or was changed."""
        pieces: list[bytes] = []
        new: list[Param] = []
        for param in params:
            sent = self._sent.get(id(param))
            if sent is None or sent[1].param != param:
                new.append(param)
                continue
            if new:
                pieces.append(write(new)[1:-1])
                new = []
            one = sent[1]
            if (json := one.json) is None:
                one.json = json = write(one.param)
            pieces.append(json)
        return [*pieces, write(new)[1:-1]] if new else pieces


class Joined:
    """Many messages on the wire, as one that stands for them.

    Attributes:
        param: What stands for them.
        is_flat: As a wire's.
        json: Their JSON, with commas between.
        wires: Them.
    """

    __slots__ = ('json', 'param', 'wires')
    is_flat = True

    def __init__(self, wires: Sequence[Wire], written: Sequence[bytes]) -> None:
        self.param: Param = {'role': 'tool', 'tool_call_id': 'joined', 'content': 'joined'}
        self.json: bytes | None = b','.join(written)
        self.wires = wires
        for wire in wires:
            wire.json = None


def _wires(use: Any) -> tuple[Wire, ...] | None:
    """All that a message is mapped to, where that is known."""
    if use is None or use.made is None:
        return None
    made: tuple[Wire, ...] = use.made
    return made if not use.carried else (*use.carried, *made)


def _may_fetch(message: Any) -> bool:
    """Whether to map a message again may be to fetch a file again."""
    return message.kind == 'request' and any(
        part.part_kind in _WITH_FILES and type(part.content) is not str for part in message.parts
    )


def _is_quiet(param: Param) -> bool:
    """Whether a message means nothing for others: instructions and reasoning are looked for by pydantic-ai."""
    return param.get('role') in _QUIET_ROLES and param.keys() <= _QUIET


_MAPPED = 1
_WITH_FILES = ('user-prompt', 'tool-return')
_OVERHEAD = 600  # bytes of a wire, beside its texts
_QUIET_ROLES = frozenset(('user', 'assistant', 'tool'))
_QUIET = frozenset(('role', 'content', 'tool_calls', 'tool_call_id'))
_USES = 4


def carries(message: Any) -> bool:
    """Whether there may be something to say in front of a turn of the model: reasoning."""
    return any(part.part_kind == 'thinking' for part in message.parts)
