"""Second tries: what a server refused, in the shape that it takes.

`adapted()` sends, learns from a refusal, sends again, and decides which error is told in the end. Overrides nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError

from oaicompat._endpoint import Endpoint, Profile
from oaicompat._lessons import MAX_CORRECTIONS, REFUSED, Lesson
from oaicompat.errors import explained

_Answer = TypeVar('_Answer')


async def adapted(
    endpoint: Endpoint,
    send: Callable[[Profile, frozenset[str]], Awaitable[_Answer]],
    settled: Callable[[], Awaitable[Profile]],
    effective: Callable[[], Profile],
) -> _Answer:
    """Send; where the server refuses a shape that the request used, change that shape and send again.

    Args:
        endpoint: Where to; it remembers.
        send: Makes one request by a profile; told the names of what was learned before it.
        settled: Gives the profile for the next request.
        effective: Gives the profile as it is known without asking anybody.

    Raises:
        ModelAPIError: The first refusal, or another error.
    """
    learned: list[tuple[Lesson, ModelHTTPError]] = []
    while True:
        profile = await settled()
        try:
            answer = await send(profile, frozenset(lesson.name for lesson, _ in learned))
        except ModelHTTPError as error:
            endpoint.recognise(server=(error.headers or {}).get('server'))
            lesson = endpoint.learn(profile, error, effective)
            if lesson is not None and len(learned) < MAX_CORRECTIONS:
                learned.append((lesson, error))
                continue
            raise explained(_told(endpoint, learned, error), endpoint)  # noqa: B904  # it keeps its own cause
        except ModelAPIError as error:
            raise explained(error, endpoint)  # noqa: B904  # it keeps its own cause
        for lesson, refusal in learned:
            endpoint.confirm(lesson, refusal)
        return answer


def _told(endpoint: Endpoint, learned: list[tuple[Lesson, ModelHTTPError]], error: ModelHTTPError) -> ModelHTTPError:
    """The error to raise: another refusal of the same request says less than the first; any other is news."""
    if error.status_code not in REFUSED or not learned:
        return error
    for lesson, _ in learned:
        endpoint.unlearn(lesson)
    return learned[0][1]
