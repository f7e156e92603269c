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
        if learned := self.endpoint.lessons(profile, error):
            self.learned += [(lesson, error) for lesson in learned]
        elif self._is_refusal(error):
            for guess in self._take_back():
                self.endpoint.rule_out(guess)
            if self._guesses is None:
                self._guesses = list(self.endpoint.guesses(profile, error))
            learned = self._guess(error)
        self._corrections += 1
        return bool(learned) and self._corrections <= MAX_CORRECTIONS

    def skip(self, lesson: Lesson, error: ModelHTTPError) -> bool:
        """Whether there is something else to try than `lesson`, which the caller's own profile overrules."""
        return lesson.name == SEARCH and bool(self._take_back()) and bool(self._guess(error))

    def _guess(self, error: ModelHTTPError) -> tuple[Lesson, ...]:
        """The next guess, if there is one."""
        guess = self._guesses.pop(0) if self._guesses else None
        if guess is None:
            return ()
        self.learned.append((guess, error))
        return (guess,)

    def _take_back(self) -> list[Lesson]:
        """Guesses that are not to be made any more."""
        guessed = [lesson for lesson, _ in self.learned if lesson.name == SEARCH]
        self.learned = [pair for pair in self.learned if pair[0].name != SEARCH]
        return guessed

    def _is_refusal(self, error: ModelHTTPError) -> bool:
        refused = error.status_code in REFUSED or error.status_code == (self.first or error).status_code
        return refused and not is_callers_fault(complaints(error.body))

    def told(self, error: ModelHTTPError) -> ModelHTTPError:
        """The error to raise: another refusal of the same request says less than the first; any other is news."""
        return self.first if self.first is not None and self._is_refusal(error) else error


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
            if tries.skip(overruled, tries.first):
                continue
            if overruled.name != SEARCH:
                tries.first.add_note(f'oaicompat: {knobs_of(overruled)} would answer this refusal, but {_OWN}')
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


def _overruled(tries: _Tries, profile: Profile) -> Lesson | None:
    """A lesson that the caller's own profile stands against: it could not help."""
    for lesson, _ in tries.learned:
        if not all(says(profile, key, value) for key, value in lesson.profile.items()):
            return lesson
    return None


_OWN = "this model's own profile says otherwise"
