"""Messages that are what they were: each turn of an agent sends its history anew, and works on all of it.

A message is known by its identity, and it is what it was if each field of each part holds the very object that it held,
and if what can change in place, lists and dicts, is written as it was. What can't be told so (files, models, iterators)
is never known. Pure, but for the memory.
"""

from __future__ import annotations

import json
import marshal
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from itertools import chain
from operator import is_
from typing import Any, cast
from weakref import ref

from typing_extensions import override

_LIMIT = 64 * 1024 * 1024
_USES = 8
_FORMAT = 2  # of `marshal`: the newest in which equal values are always written alike
_FROZEN = frozenset((str, bool, type(None), datetime))
_LOCK = threading.RLock()  # one for all, so that a model can be copied


class Snapshot:
    """What a message was.

    Attributes:
        uses: What was made of it, by what it was made with.
        size: Bytes that it holds, about.
    """

    __slots__ = ('fields', 'kinds', 'message', 'mutable', 'parts', 'size', 'uses', 'values')

    def __init__(self, message: Any) -> None:
        """Take it.

        Raises:
            ValueError: If it may change without a trace.
        """
        self.uses: dict[object, Any] = {}
        self.message: Callable[[], Any] = ref(message)
        self.fields = tuple(vars(message).values())
        self.parts = tuple(message.parts)
        self.kinds = tuple(map(type, self.parts))
        self.values = tuple([tuple(vars(part).values()) for part in self.parts])
        self.mutable: list[tuple[Any, bytes]] = []
        if not all(map(_is_theirs, (type(message), *self.kinds))):
            raise ValueError('of another library')
        # What is about the message is not sent, but must not hold it.
        if message.metadata is not None:
            _written(message.metadata)
        for values in self.values:
            if not _FROZEN.issuperset(map(type, values)):
                self.mutable += [(value, _written(value)) for value in values if type(value) not in _FROZEN]
        self.size = sum([len(written) for _, written in self.mutable])

    def holds(self, message: Any) -> bool:
        """Whether `message` is that message, and what it was."""
        if self.message() is not message or not _same(vars(message).values(), self.fields):
            return False
        if not _same(message.parts, self.parts) or tuple(map(type, self.parts)) != self.kinds:
            return False
        if not all(map(_same, (vars(part).values() for part in self.parts), self.values)):
            return False
        return not self.mutable or _are_written(self.mutable)


class Chunk:
    """`LENGTH` messages that follow each other, told together, which takes half the time.

    Attributes:
        snapshots: Of its messages.
        uses: What was made of all of them, by what it was made with.
    """

    __slots__ = ('_counts', '_fields', '_kinds', '_lengths', '_mutable', '_parts', '_values', 'snapshots', 'uses')

    def __init__(self, snapshots: list[Snapshot]) -> None:
        """Take what they hold together."""
        self.snapshots = tuple(snapshots)
        self.uses: dict[object, Any] = {}
        self._fields = [*chain.from_iterable(one.fields for one in snapshots)]
        self._counts = [count for one in snapshots for count in (len(one.fields), len(one.parts))]
        self._parts = [*chain.from_iterable(one.parts for one in snapshots)]
        self._kinds = [*chain.from_iterable(one.kinds for one in snapshots)]
        self._lengths = [len(values) for one in snapshots for values in one.values]
        self._values = [*chain.from_iterable(chain.from_iterable(one.values for one in snapshots))]
        self._mutable = [*chain.from_iterable(one.mutable for one in snapshots)]

    def holds(self, messages: Sequence[Any]) -> bool:
        """Whether `messages` are its messages, and what they were."""
        if not _same(messages, [one.message() for one in self.snapshots]):
            return False
        own = [vars(message) for message in messages]
        parts = [message.parts for message in messages]
        if [count for pair in zip(map(len, own), map(len, parts), strict=True) for count in pair] != self._counts:
            return False
        told = [*chain.from_iterable(parts)]
        if not all(map(is_, chain.from_iterable(map(_VALUES, own)), self._fields)) or not all(
            map(is_, told, self._parts)
        ):
            return False
        fields = [vars(part) for part in told]
        if [*map(type, told)] != self._kinds or [*map(len, fields)] != self._lengths:
            return False
        return all(map(is_, chain.from_iterable(map(_VALUES, fields)), self._values)) and _are_written(self._mutable)


LENGTH = 64
_VALUES = dict[str, Any].values


def _same(values: Collection[Any], others: Collection[Any]) -> bool:
    return len(values) == len(others) and all(map(is_, values, others))


@cache
def _is_theirs(kind: Any) -> bool:
    return bool(kind.__module__ == _THEIRS)


def _written(value: Any) -> bytes:
    """What two values have in common only if they are the same JSON, of the very types that JSON is read to.

    Raises:
        TypeError: If it is no JSON.
        ValueError: If it is none.
    """
    written = marshal.dumps(value, _FORMAT)  # knows no subclasses, but takes bytes of any kind for each other
    _ENCODER.encode(value)  # knows no bytes
    return written


_ENCODER = json.JSONEncoder()


def _are_written(mutable: Iterable[tuple[Any, bytes]]) -> bool:
    """Whether values are still written as they were."""
    dumps, how = marshal.dumps, _FORMAT
    try:
        for value, written in mutable:
            if dumps(value, how) != written:
                return False
    except ValueError:
        return False
    return True


class _Seen(ref[Any]):  # its referent may be gone
    """A message that was here, and what is known of it."""

    __slots__ = ('chunk', 'marks', 'number', 'snapshot')

    number: int
    marks: int
    snapshot: Snapshot | None
    chunk: Chunk | None


class Memory:
    """Snapshots, each as long as its message lives; of one model, for any number of threads. A copy is empty.

    There are never more than 64 MiB of what they hold.
    """

    def __init__(self) -> None:
        self._seen: dict[int, _Seen] = {}
        self._freed: deque[int] = deque()
        self._forget = _forgetting(self._seen, self._freed)
        self._size = 0
        self._keys: list[tuple[Mapping[str, Any], object, object]] = []

    @override
    def __reduce__(self) -> tuple[type[Memory], tuple[()]]:
        return type(self), ()

    def key(self, profile: Mapping[str, Any], other: object) -> object:
        """Stands for a profile and what else something is made with, as long as equal ones are asked for."""
        with _LOCK:
            for known, beside, key in self._keys:
                if beside == other and known == profile:
                    return key
            key = object()
            self._keys = [(dict(profile), other, key), *self._keys[: _USES - 1]]
            return key

    def again(self, message: Any, mark: int) -> bool:
        """Whether `message` was here before, by the same mark: what comes but once is not worth keeping.

        Args:
            message: The message.
            mark: One bit.
        """
        seen = self._seen.get(id(message))
        if seen is None or seen() is not message:
            seen = _Seen(message, cast(Any, self._forget))
            seen.number, seen.marks, seen.snapshot, seen.chunk = id(message), 0, None, None
            self._seen[id(message)] = seen
        marks, seen.marks = seen.marks, seen.marks | mark
        return bool(marks & mark)

    def known(self, message: Any) -> Snapshot | None:
        """The snapshot of `message`, if it is what it was."""
        seen = self._seen.get(id(message))
        snapshot = seen.snapshot if seen is not None else None
        return snapshot if snapshot is not None and snapshot.holds(message) else None

    def taken(self, message: Any) -> Snapshot | None:
        """The one that is known, or a new one; `None` for what may change without a trace."""
        if (known := self.known(message)) is not None:
            return known
        try:
            return Snapshot(message)
        except (TypeError, ValueError, RecursionError):
            return None

    def pieces(self, messages: Sequence[Any]) -> Iterator[Snapshot | Chunk]:
        """What is known of `messages`, up to the first that is not: chunks, as they come to be, and single ones."""
        number, single = 0, list[Snapshot]()
        while number < len(messages):
            seen = self._seen.get(id(messages[number]))
            if seen is None:
                return
            chunk, snapshot = seen.chunk, seen.snapshot
            if chunk is not None and not single and chunk.holds(messages[number : number + LENGTH]):
                number += LENGTH
                yield chunk
                continue
            if snapshot is None or not snapshot.holds(messages[number]):
                return
            single.append(snapshot)
            number += 1
            if len(single) == LENGTH:
                first = self._seen.get(id(messages[number - LENGTH]))
                if first is not None:
                    first.chunk = Chunk(single)
                single = []
            yield snapshot

    def keep(self, message: Any, snapshot: Snapshot, key: object, use: Any, size: int) -> bool:
        """Keep what was made of a message that was here; `False` where there is no room.

        Args:
            message: The message.
            snapshot: What it was when that was made.
            key: What it was made with.
            use: What was made.
            size: Of that, in bytes.
        """
        with _LOCK:
            while self._freed:
                self._size -= self._freed.popleft()
            seen = self._seen.get(id(message))
            if seen is None or seen() is not message:
                return False
            if seen.snapshot is not snapshot:
                size += snapshot.size
                self._size -= seen.snapshot.size if seen.snapshot is not None else 0
                seen.snapshot = seen.chunk = None
            if self._size + size > _LIMIT:
                return False
            if seen.snapshot is None:
                seen.snapshot, snapshot.size = snapshot, 0
            snapshot.size += size
            self._size += size
            if key not in snapshot.uses and len(snapshot.uses) >= _USES:
                del snapshot.uses[next(iter(snapshot.uses))]
            snapshot.uses[key] = use
            return True


def _forgetting(seen: dict[int, _Seen], freed: deque[int]) -> Callable[[_Seen], None]:
    """What drops a message that is gone. It may run at any time, also while something else is written here."""

    def forget(gone: _Seen) -> None:
        if seen.get(gone.number) is gone:
            del seen[gone.number]
            if gone.snapshot is not None:
                freed.append(gone.snapshot.size)

    return forget


_THEIRS = 'pydantic_ai.messages'


def copied(value: Any) -> Any:
    """`value` with lists and dicts of its own."""
    kind = type(value)
    if kind is dict:
        return {key: item if type(item) is str else copied(item) for key, item in value.items()}
    return [copied(item) for item in value] if kind is list else value


def size_of(value: Any) -> int:
    """How much text there is in JSON, about."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping):
        return sum(map(size_of, value.values()))
    return sum(map(size_of, value)) if isinstance(value, Iterable) else 0


def is_text(value: Any) -> bool:
    """Whether `value` is text in lists and dicts, so that it equals nothing that is other JSON."""
    kind = type(value)
    if kind is dict:
        return all(map(is_text, value)) and all(map(is_text, value.values()))
    return value is None or kind is str or (kind is list and all(map(is_text, value)))
