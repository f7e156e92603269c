"""Time and its limits, in the event loop of whoever asks: asyncio's own in asyncio, which takes half as long."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio


def now() -> float:
    """The event loop's time in seconds."""
    try:
        return asyncio.get_running_loop().time()
    except RuntimeError:  # trio's
        return anyio.current_time()


def until(deadline: float) -> AbstractAsyncContextManager[Any]:
    """Limits what is done inside.

    Args:
        deadline: In the event loop's time, in seconds.

    Raises:
        TimeoutError: When it has passed.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _anyios(deadline)
    return asyncio.timeout_at(deadline)


@asynccontextmanager
async def _anyios(deadline: float) -> AsyncIterator[None]:
    with anyio.fail_after(deadline - anyio.current_time()):
        yield
