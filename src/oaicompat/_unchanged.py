"""Messages that are what they were: each turn of an agent sends its history anew, and works on all of it.

A message is known by its identity, and it is what it was if each field of each part holds the very object that it held,
and if what can change in place, lists and dicts, is written as it was. What can't be told so (files, models, iterators)
is never known; what no server is told (metadata, usage) is not looked into, nor held. Pure, but for the memory.
"""

from __future__ import annotations

import dataclasses
import json
import marshal
import pickle
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from datetime import datetime
from functools import cache
from itertools import chain
from operator import is_, itemgetter
from typing import Any, cast
from weakref import ref

from typing_extensions import override

_LIMIT = 64 * 1024 * 1024
_USES = 8
_PATIENCE = 6
_LONGEST = 1024 * 1024
_FORMAT = 2  # of `marshal`
_PROTOCOL = 5  # of `pickle`
_OVERHEAD = 3_000  # bytes of what is kept of a message, beside its texts
_FROZEN = frozenset((str, bool, type(None), datetime))
_LOCK = threading.RLock()  # one for all, so that a model can be copied


class Snapshot:
    """What a message was.

    Attributes:
        uses: What was made of it, and the bytes of that, by what it was made with.
        size: Bytes that it holds, about.
    """

    __slots__ = ('__weakref__', 'held', 'kinds', 'lengths', 'message', 'mutable', 'size', 'uses')

    def __init__(self, message: Any) -> None:
        """Take it.

        Raises:
            ValueError: If it may change without a trace.
        """
        self.uses: dict[object, tuple[Any, int]] = {}
        self.message: Callable[[], Any] = ref(message)
        told = (message, *message.parts)
        self.kinds = tuple(map(type, told))
        if not all(map(_is_theirs, self.kinds)) or any(map(_is_hung_over, told)):
            raise ValueError('of another library')
        self.lengths = [len(one.__dict__) for one in told]
        self.held = _sent(told, self.kinds)
        values = _sent(told[1:], self.kinds[1:])
        self.mutable = [(value, _written(value)) for value in values if type(value) not in _FROZEN]
        self.size = _OVERHEAD + sum([len(written) for _, written in self.mutable])

    def use(self, key: object) -> Any:
        """What was made of it with `key`, or `None`."""
        use = self.uses.get(key)
        return None if use is None else use[0]

    def holds(self, message: Any) -> bool:
        """Whether `message` is that message, and what it was."""
        told = (message, *message.parts)
        return self.message() is message and _are_as_they_were(told, self)


class Chunk:
    """`LENGTH` messages that follow each other, told together, which takes half the time.

    Attributes:
        snapshots: Of its messages.
        uses: What was made of all of them, by what it was made with.
    """

    __slots__ = ('held', 'kinds', 'lengths', 'mutable', 'snapshots', 'uses')

    def __init__(self, snapshots: list[Snapshot]) -> None:
        """Take what they hold together."""
        self.snapshots = tuple(snapshots)
        self.uses: dict[object, Any] = {}
        self.kinds = (*chain.from_iterable(one.kinds for one in snapshots),)
        self.lengths = [*chain.from_iterable(one.lengths for one in snapshots)]
        self.held = [*chain.from_iterable(one.held for one in snapshots)]
        self.mutable = [*chain.from_iterable(one.mutable for one in snapshots)]

    def holds(self, messages: Sequence[Any]) -> bool:
        """Whether `messages` are its messages, and what they were."""
        if not _same(messages, [one.message() for one in self.snapshots]):
            return False
        told = [one for message in messages for one in (message, *message.parts)]
        return _are_as_they_were(told, self)


LENGTH = 64


def _same(values: Collection[Any], others: Collection[Any]) -> bool:
    return len(values) == len(others) and all(map(is_, values, others))


@cache
def _is_theirs(kind: Any) -> bool:
    return bool(kind.__module__ == _THEIRS)


def _sent(told: Iterable[Any], kinds: Iterable[Any]) -> list[Any]:
    """What messages and parts hold that says something to a server, or to who prepares what is sent.

    All else is not held, since it may hold the message.
    """
    return [*chain.from_iterable([get(one.__dict__) for get, one in zip(map(_getter, kinds), told, strict=True)])]


@cache
def _getter(kind: Any) -> Callable[[dict[str, Any]], tuple[Any, ...]]:
    fields = [field.name for field in dataclasses.fields(kind)]
    # The list of parts holds them, and all that they hold.
    unsent = _UNSENT if 'part_kind' in fields else (*_UNSENT, 'provider_details', 'parts')
    return itemgetter(*(name for name in fields if name not in unsent))


_UNSENT = ('metadata', 'usage')


def _are_as_they_were(told: Sequence[Any], known: Snapshot | Chunk) -> bool:
    try:
        return (
            (*map(type, told),) == known.kinds
            and [len(one.__dict__) for one in told] == known.lengths
            and all(map(is_, _sent(told, known.kinds), known.held))
            and _are_written(known.mutable)
        )
    except KeyError:  # a field was taken away
        return False


def _is_hung_over(one: Any) -> bool:
    """Whether something that somebody hung on a message or a part stands in front of a method."""
    more = one.__dict__.keys() - _names(cast(Any, type(one)))
    return any(callable(getattr(type(one), name, None)) for name in more)


@cache
def _names(kind: Any) -> frozenset[str]:
    return frozenset(field.name for field in dataclasses.fields(kind))


def _written(value: Any) -> bytes:
    """What two values have in common only if they are the same JSON, of the very types that JSON is read to.

    Raises:
        TypeError: If it is no JSON.
        ValueError: If it is none.
    """
    _ENCODER.encode(value)  # knows no bytes, and sees what holds itself
    marshal.dumps(value, _FORMAT)  # knows no subclasses, but takes bytes of any kind for each other
    return pickle.dumps(value, _PROTOCOL)  # writes what is there twice but once


_ENCODER = json.JSONEncoder()


def _are_written(mutable: Iterable[tuple[Any, bytes]]) -> bool:
    """Whether values are still written as they were."""
    dumps, how = pickle.dumps, _PROTOCOL
    try:
        for value, written in mutable:
            if dumps(value, how) != written:
                return False
    except Exception:  # of whatever was put there
        return False
    return True


class _Seen(ref[Any]):  # its referent may be gone
    """A message that was here, and what is known of it."""

    __slots__ = ('chunk', 'marks', 'number', 'owner', 'snapshot', 'vain', 'wait')

    number: int
    marks: int
    snapshot: Snapshot | None
    chunk: Chunk | None  # that begins here
    owner: _Seen | None  # of the chunk that it is in
    vain: int  # how often it could not be kept
    wait: int  # turns, before that is tried again


class Memory:
    """Snapshots, each as long as its message lives; of one model, for any number of threads. A copy is empty.

    There are about 64 MiB at most of what they hold.
    """

    def __init__(self) -> None:
        self._seen: dict[int, _Seen] = {}
        self._freed: deque[int] = deque()
        self._forget = _forgetting(self._seen, self._freed)
        self._size = 0
        self._written: tuple[tuple[bytes, bytes], ...] = ()
        self._keys: list[tuple[Mapping[str, Any], object, object]] = []

    @override
    def __reduce__(self) -> tuple[type[Memory], tuple[()]]:
        return type(self), ()

    def key(self, profile: Mapping[str, Any], other: object) -> object:
        """Stands for a profile and what else something is made with, as long as equal ones are asked for."""
        with _LOCK:
            for known, beside, key in self._keys:
                with suppress(Exception):  # of whatever is in there
                    if beside == other and known == profile:
                        return key
            key = object()
            self._keys = [(_deep(profile), other, key), *self._keys[: _USES - 1]]
            return key

    def written(self, value: Any, write: Callable[[object], bytes]) -> bytes:
        """What `write` makes of JSON, or what it made of the same a few requests ago: tools rarely change."""
        try:
            told = marshal.dumps(value)  # which knows no subclasses, and asks nobody's code
        except ValueError:
            return write(value)
        for known, made in self._written:
            if known == told:
                return made
        made = write(value)
        if len(told) <= _LONGEST:
            self._written = ((told, made), *self._written[: _USES - 1])
        return made

    def again(self, message: Any, mark: int) -> bool:
        """Whether `message` was here before, by the same mark: what comes but once is not worth keeping.

        Args:
            message: The message.
            mark: One bit.
        """
        seen = self._seen.get(id(message))
        if seen is None or seen() is not message:
            seen = _Seen(message, cast(Any, self._forget))
            seen.number, seen.marks, seen.vain, seen.wait = id(message), 0, 0, 0
            seen.snapshot = seen.chunk = seen.owner = None
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
        seen = self._seen.get(id(message))
        if seen is not None and seen.wait:
            seen.wait -= 1
            return None
        try:
            return Snapshot(message)
        except (LookupError, TypeError, ValueError, RecursionError):
            self._wait(seen)
            return None

    @staticmethod
    def _wait(seen: _Seen | None) -> None:
        """Try less and less often what was in vain: to look at much that can't be kept takes its time."""
        if seen is not None:
            seen.vain = min(seen.vain + 1, _PATIENCE)
            seen.wait = 2**seen.vain

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
                self._join(messages[number - LENGTH : number], single)
                single = []
            yield snapshot

    def _join(self, messages: Sequence[Any], snapshots: list[Snapshot]) -> None:
        with _LOCK:
            members = [seen for message in messages if (seen := self._seen.get(id(message))) is not None]
            if len(members) == LENGTH:
                for seen in members:
                    if seen.owner is not members[0]:
                        _leave(seen)
                        seen.owner = members[0]
                members[0].chunk = Chunk(snapshots)

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
                _leave(seen)
                self._size -= seen.snapshot.size if seen.snapshot is not None else 0
                seen.snapshot = None
            old = snapshot.uses.pop(key, None)
            if old is None and len(snapshot.uses) >= _USES:
                old = snapshot.uses.pop(next(iter(snapshot.uses)))
            more = size + (snapshot.size if seen.snapshot is None else 0) - (old[1] if old is not None else 0)
            if self._size + more > _LIMIT:
                if seen.snapshot is not None and old is not None:
                    snapshot.size -= old[1]
                    self._size -= old[1]
                self._wait(seen)
                return False
            snapshot.size += size - (old[1] if old is not None else 0)
            seen.snapshot = snapshot
            self._size += more
            snapshot.uses[key] = use, size
            return True


def _leave(seen: _Seen) -> None:
    """Drop the chunk that a message is in: it would keep the others."""
    owner, seen.owner = seen.owner, None
    if owner is not None:
        owner.chunk = None


def _deep(profile: Mapping[str, Any]) -> dict[str, Any]:
    """`profile`, with what may be changed in place of its own."""
    own = dict(profile)
    for name, value in profile.items():
        with suppress(Exception):  # what can't be copied is compared by its identity
            own[name] = deepcopy(value)
    return own


def _forgetting(seen: dict[int, _Seen], freed: deque[int]) -> Callable[[_Seen], None]:
    """What drops a message that is gone. It may run at any time, also while something else is written here."""

    def forget(gone: _Seen) -> None:
        if seen.get(gone.number) is gone:
            del seen[gone.number]
            _leave(gone)
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
    """Bytes of the text that there is in JSON, about."""
    if isinstance(value, str):
        return value.__sizeof__()
    if isinstance(value, Mapping):
        return sum(map(size_of, value.values()))
    return sum(map(size_of, value)) if isinstance(value, Iterable) else 0


def is_text(value: Any) -> bool:
    """Whether `value` is text in lists and dicts, so that it equals nothing that is other JSON."""
    kind = type(value)
    if kind is dict:
        return all(map(is_text, value)) and all(map(is_text, value.values()))
    return value is None or kind is str or (kind is list and all(map(is_text, value)))
