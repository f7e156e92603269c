"""An async generator that is given what it reads, piece by piece, and run up to where it wants the next one.

So what stands around a parent's loop can handle most of a stream itself, and hand the rest to that loop, in order.
"""

from __future__ import annotations

import types
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterable
from contextlib import aclosing, suppress
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
    """What the generator reads: of each thing that is put in what `make` makes of it, when it is read."""

    def __init__(self, make: Callable[[Any], _Item]) -> None:
        self._make = make
        self._items: deque[Any] = deque()
        self._ended = False

    def put(self, item: Any) -> None:
        """Add something."""
        self._items.append(item)

    def end(self) -> None:
        """Let it end behind what is there."""
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
        return self._make(self._items.popleft())


class Stepped(Generic[_Made]):
    """Runs `read`, an async generator over what is put into `source`."""

    def __init__(self, source: Source[Any], read: Callable[[], AsyncIterator[_Made]]) -> None:
        self.source = source
        self._generator = cast('AsyncGenerator[_Made]', read())
        self._step: Any = None  # the item under way
        self._over = False

    async def told(self, error: BaseException | None = None) -> AsyncGenerator[_Made]:
        """What it yields until it wants to read more; `error` is what it gets in place of that.

        Raises:
            BaseException: What it raises.
        """
        while not self._over:
            made, wants = await self._run(error)
            if wants:
                return
            yield cast(_Made, made)
            error = None

    async def close(self) -> None:
        """Leave it where it is."""
        if self._step is not None and not self._over:
            with suppress(GeneratorExit):
                await self._run(GeneratorExit())
        await self._generator.aclose()

    @types.coroutine
    def _run(self, error: BaseException | None = None) -> Generator[Any, Any, tuple[_Made | None, bool]]:
        """The next item, or that it wants to read more, or has ended."""
        if self._step is None:
            self._step = self._generator.__anext__()
        try:
            wanted = self._step.send(None) if error is None else self._step.throw(error)
            while wanted is not _WANTS:  # it waits for something else
                try:
                    sent = yield wanted
                except BaseException as raised:
                    wanted = self._step.throw(raised)
                else:
                    wanted = self._step.send(sent)
        except StopIteration as told:
            self._step = None
            return told.value, False
        except StopAsyncIteration:
            self._over = True
        except BaseException:
            self._over = True
            raise
        return None, True


class _Failure(NamedTuple):
    """That reading failed, in the place where it did."""

    error: Exception


async def joined(
    parents: Stepped[_Made],
    first: object,
    batches: AsyncGenerator[list[Any]],
    short: Callable[[Any], Iterable[_Made]],
) -> AsyncGenerator[_Made]:
    """What a stream yields: `short` makes it of items that are tuples, `parents` of all others.

    Args:
        parents: What handles other items; it is closed in the end.
        first: The first item.
        batches: The other items, as they are read. An error of reading goes to `parents`, which may raise another.
        short: Makes events of a short item.
    """
    try:
        parents.source.put(first)
        async for event in parents.told():
            yield event
        async with aclosing(_with_failure(batches)) as read:
            async for items in read:
                for item in items:
                    if type(item) is tuple:
                        for event in short(item):
                            yield event
                        continue
                    failed = item.error if type(item) is _Failure else None
                    if failed is None:
                        parents.source.put(item)
                    async for event in parents.told(failed):
                        yield event
        parents.source.end()
        async for event in parents.told():
            yield event
    finally:
        await parents.close()


async def _with_failure(batches: AsyncGenerator[list[Any]]) -> AsyncGenerator[list[Any]]:
    async with aclosing(batches):
        try:
            async for items in batches:
                yield items
        except Exception as error:
            yield [_Failure(error)]
