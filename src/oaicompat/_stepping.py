"""An async generator that is given what it reads, piece by piece, and run up to where it wants the next one.

So what stands around a parent's loop can handle most of a stream itself, and hand the rest to that loop, in order.
"""

from __future__ import annotations

import types
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterable
from contextlib import aclosing
from typing import Any, Generic, NamedTuple, Self, TypeVar, cast

from typing_extensions import override

_Item = TypeVar('_Item')
_Made = TypeVar('_Made')
_WANTS = object()


class _Wanting:
    """Awaited where there is nothing to read yet."""

    def __await__(self) -> Generator[Any, Any, None]:
        yield _WANTS


class Source(AsyncIterator[_Item]):
    """What the generator reads."""

    def __init__(self) -> None:
        self._items: deque[_Item] = deque()
        self._ended = False

    def put(self, item: _Item) -> None:
        """Add an item."""
        self._items.append(item)

    def end(self) -> None:
        """Let it end behind the items that are there."""
        self._ended = True

    @override
    def __aiter__(self) -> Self:
        return self

    @override
    async def __anext__(self) -> _Item:
        while not self._items:
            if self._ended:
                raise StopAsyncIteration
            await _Wanting()
        return self._items.popleft()


class Stepped(Generic[_Item, _Made]):
    """Runs `read`, an async generator over what is put in.

    Attributes:
        fault: What it raised, behind what it yielded before.
    """

    def __init__(self, source: Source[_Item], read: Callable[[], AsyncIterator[_Made]]) -> None:
        self.fault: BaseException | None = None
        self._source = source
        self._generator = cast('AsyncGenerator[_Made]', read())
        self._step: Any = None  # the item under way
        self._over = False

    async def feed(self, item: _Item) -> list[_Made]:
        """What it yields of one item."""
        self._source.put(item)
        return await self._run()

    async def end(self) -> list[_Made]:
        """What it yields when there is nothing more to read."""
        self._source.end()
        return await self._run()

    async def fail(self, error: BaseException) -> list[_Made]:
        """What it yields when reading fails with `error`; what it raises then is its `fault`."""
        return await self._run(error)

    def check(self) -> None:
        """Raise its fault, if there is one."""
        if self.fault is not None:
            raise self.fault

    async def close(self) -> None:
        """Leave it where it is."""
        if self._step is not None:
            await self._run(GeneratorExit())
        await self._generator.aclose()

    @types.coroutine
    def _run(self, error: BaseException | None = None) -> Generator[Any, Any, list[_Made]]:
        made: list[_Made] = []
        while not self._over:
            if self._step is None:
                self._step = self._generator.__anext__()
            try:
                wanted = self._step.send(None) if error is None else self._step.throw(error)
                error = None
                while wanted is not _WANTS:  # it waits for something else
                    try:
                        sent = yield wanted
                    except BaseException as raised:
                        wanted = self._step.throw(raised)
                    else:
                        wanted = self._step.send(sent)
            except StopIteration as told:
                error, self._step = None, None
                made.append(told.value)
            except BaseException as raised:
                self._over, self._step = True, None
                if not isinstance(raised, StopAsyncIteration | GeneratorExit):
                    self.fault = raised
            else:
                break
        return made


class _Failure(NamedTuple):
    """That reading failed, in the place where it did."""

    error: Exception


async def joined(
    parents: Stepped[Any, _Made],
    first: object,
    batches: AsyncGenerator[list[Any]],
    short: Callable[[Any], Iterable[_Made]],
    whole: Callable[[Any], Any],
) -> AsyncGenerator[_Made]:
    """What a stream yields: `short` makes it of items that are tuples, `parents` of all others.

    Args:
        parents: What handles whole items; it is closed in the end.
        first: The first item, whole.
        batches: The other items, as they are read. An error of reading goes to `parents`, which may raise another.
        short: Makes events of a short item.
        whole: Makes of any other item what `parents` reads.
    """
    try:
        async with aclosing(_made(parents, first, batches, short, whole)) as told:
            async for made in told:
                for event in made:
                    yield event
    finally:
        await parents.close()


async def _made(
    parents: Stepped[Any, _Made],
    first: object,
    batches: AsyncGenerator[list[Any]],
    short: Callable[[Any], Iterable[_Made]],
    whole: Callable[[Any], Any],
) -> AsyncGenerator[Iterable[_Made]]:
    yield await parents.feed(first)
    parents.check()
    async with aclosing(_with_failure(batches)) as read:
        async for items in read:
            for item in items:
                if type(item) is tuple:
                    yield short(item)
                    continue
                yield await (parents.fail(item.error) if type(item) is _Failure else parents.feed(whole(item)))
                parents.check()
    yield await parents.end()
    parents.check()


async def _with_failure(batches: AsyncGenerator[list[Any]]) -> AsyncGenerator[list[Any]]:
    async with aclosing(batches):
        try:
            async for items in batches:
                yield items
        except Exception as error:
            yield [_Failure(error)]
