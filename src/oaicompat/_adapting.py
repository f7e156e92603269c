"""Second tries: what a server refused, in the shape that it takes.

`adapted()` sends, learns from a refusal, sends again, and decides which error is told in the end. What was learned is
kept only once it has helped. Overrides nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError

from oaicompat._complaints import complaints
from oaicompat._endpoint import Endpoint, Profile, knobs_of
from oaicompat._lessons import MAX_CORRECTIONS, SEARCH, Lesson, is_callers_fault, says
from oaicompat._rules import REFUSED
from oaicompat.errors import explained

_Answer = TypeVar('_Answer')


@dataclass
class _Tries:
    """What one call has learned so far.

    Attributes:
        learned: The lessons that the next request is made by, each with the refusal that taught it.
        first: The first refusal.
    """

    endpoint: Endpoint
    learned: list[tuple[Lesson, ModelHTTPError]] = field(default_factory=list)
    first: ModelHTTPError | None = None
    _corrections: int = 0
    _guesses: list[Lesson] | None = None

    @property
    def delta(self) -> dict[str, Any]:
        """The profile keys of all lessons."""
        return {key: value for lesson, _ in self.learned for key, value in lesson.profile.items()}

    @property
    def names(self) -> frozenset[str]:
        """The names of the adaptations."""
        return frozenset(lesson.name for lesson, _ in self.learned)

    def correct(self, profile: Profile, error: ModelHTTPError) -> bool:
        """Whether `error` says what to change, or leaves something to try."""
        self.first = self.first or error
        if self._corrections == MAX_CORRECTIONS:
            return False
        self._corrections += 1
        if learned := self.endpoint.lessons(profile, error):
            self.learned += [(lesson, error) for lesson in learned]
            return True
        if self._guesses is None:
            self._guesses = list(self.endpoint.guesses(profile, error))
        if not self._guesses:
            return False
        # A guess that did not help is taken back.
        kept = [pair for pair in self.learned if pair[0].name != SEARCH]
        self.learned = [*kept, (self._guesses.pop(0), error)]
        return True

    def told(self, error: ModelHTTPError) -> ModelHTTPError:
        """The error to raise: another refusal of the same request says less than the first; any other is news."""
        if self.first is None or error.status_code not in REFUSED | {self.first.status_code}:
            return error
        return error if is_callers_fault(complaints(error.body)) else self.first


async def adapted(
    endpoint: Endpoint,
    send: Callable[[Profile, frozenset[str]], Awaitable[_Answer]],
    settled: Callable[[Mapping[str, Any]], Awaitable[Profile]],
) -> _Answer:
    """Send; where the server refuses a shape that the request used, change that shape and send again.

    Args:
        endpoint: Where to; it remembers.
        send: Makes one request by a profile; told the names of what was learned before it.
        settled: Gives the profile for the next request, with what this call has learned in it.

    Raises:
        ModelAPIError: The first refusal, or another error.
    """
    tries = _Tries(endpoint)
    while True:
        profile = await settled(tries.delta)
        if tries.first is not None and (overruled := _overruled(tries, profile)) is not None:
            tries.first.add_note(overruled)
            raise explained(tries.first, endpoint)
        try:
            answer = await send(profile, tries.names)
        except ModelHTTPError as error:
            endpoint.recognise(server=(error.headers or {}).get('server'))
            if tries.correct(profile, error):
                continue
            raise explained(tries.told(error), endpoint)  # noqa: B904  # it keeps its own cause
        except ModelAPIError as error:
            raise explained(error, endpoint)  # noqa: B904  # it keeps its own cause
        for lesson, refusal in tries.learned:
            endpoint.remember(lesson, refusal)
        return answer


def _overruled(tries: _Tries, profile: Profile) -> str | None:
    """What to say where the caller's own profile stands against a lesson: then it could not help."""
    for lesson, _ in tries.learned:
        if not all(says(profile, key, value) for key, value in lesson.profile.items()):
            knobs = knobs_of(lesson)
            return f"oaicompat: {knobs} would answer this refusal, but this model's own profile says otherwise"
    return None
