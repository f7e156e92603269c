"""Second tries: what a server refused, in the shape that it takes.

`again()` learns from a refusal, sends again, and decides which error is told in the end. What was learned is
kept only once it has helped. Overrides nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError, UserError

from oaicompat._client import body_of
from oaicompat._endpoint import Endpoint, Profile, knobs_of
from oaicompat._lesson import MAX_CORRECTIONS, SEARCH, Lesson, merged, says, together
from oaicompat.errors import explained

_Answer = TypeVar('_Answer')
_BY_NAME = 'request.omit'


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
    _tried: list[str] = field(default_factory=list)

    @property
    def delta(self) -> dict[str, Any]:
        """The profile keys of all lessons."""
        known: dict[str, Any] = {}
        for lesson, _ in self.learned:
            known = together(known, lesson.profile)
        return known

    @property
    def names(self) -> frozenset[str]:
        """The names of the adaptations."""
        return frozenset(lesson.name for lesson, _ in self.learned)

    def correct(self, profile: Profile, error: ModelHTTPError) -> bool:
        """Whether `error` says what to change, or leaves something to try."""
        self.first = self.first or error
        learned = self.endpoint.lessons(profile, error)
        if not learned and self._is_refusal(error):
            for guess in (lesson for lesson, _ in self.learned if lesson.name == SEARCH):
                self.endpoint.rule_out(guess)
        if self._corrections == MAX_CORRECTIONS:
            if learned and all(lesson.name == _BY_NAME for lesson in (*learned, *(one for one, _ in self.learned))):
                # Each field that was left out was taken, and the next one named: the next call goes on from here.
                self.remember(profile)
            return False
        self._corrections += 1
        for lesson in learned:
            self._supersede(lesson)
            self.learned.append((lesson, error))
        if learned:
            return True
        if self._guesses is None:
            self._guesses = list(self.endpoint.guesses(profile, error))
        return self.guess(error)

    def _supersede(self, news: Lesson) -> None:
        """Take from what was learned before what `news` says otherwise: that did not help."""
        over = {key for key, value in news.profile.items() if not isinstance(value, tuple)}
        left = [
            (replace(lesson, profile={key: value for key, value in lesson.profile.items() if key not in over}), error)
            for lesson, error in self.learned
        ]
        self.learned = [pair for pair in left if pair[0].profile]

    def guess(self, error: ModelHTTPError) -> bool:
        """Whether there is another thing to try; one that did not help is taken back."""
        self.learned = [pair for pair in self.learned if pair[0].name != SEARCH]
        if not self._guesses:
            return False
        self.learned.append((self._guesses.pop(0), error))
        return True

    def remember(self, profile: Profile) -> None:
        """Keep what was learned."""
        for lesson, refusal in self.learned:
            self.endpoint.remember(lesson, refusal, profile)

    def sent(self) -> None:
        """Keep what the next request is sent with."""
        if self.delta:
            self._tried.append(knobs_of(self.delta))

    def _is_refusal(self, error: ModelHTTPError) -> bool:
        from oaicompat._lessons import is_callers_fault
        from oaicompat._rules import REFUSED

        refused = error.status_code in REFUSED or error.status_code == (self.first or error).status_code
        return refused and not is_callers_fault(body_of(error))

    def overruled(self, profile: Profile) -> tuple[Lesson, ModelHTTPError] | None:
        """The lesson that the caller's own profile stands against, and what taught it: then it can't help.

        Of several things that are tried at once, those that the caller leaves are tried.
        """
        for at, (lesson, error) in enumerate(self.learned):
            held = {key: value for key, value in lesson.profile.items() if says(profile, key, value)}
            if len(held) == len(lesson.profile):
                continue
            if lesson.name != SEARCH or not held:
                return lesson, error
            self.learned[at] = replace(lesson, profile=held), error
        return None

    def told(self, error: ModelHTTPError) -> ModelHTTPError:
        """The error to raise: another refusal of the same request says less than the first; any other is news."""
        if self.first is None or not self._is_refusal(error):
            return error
        if self._tried:
            from oaicompat._complaints import complaints

            # The first may be answered by now; then this is what is left to mend.
            last = next((text for text in complaints(body_of(error)) if text.strip()), 'it said nothing')[:200]
            tried = ', then '.join(self._tried)
            self.first.add_note(f'oaicompat: sent again with {tried}, it was refused again: {last}')
        return self.first


async def again(
    endpoint: Endpoint,
    send: Callable[[Profile, frozenset[str]], Awaitable[_Answer]],
    settled: Callable[[Mapping[str, Any]], Awaitable[Profile]],
    profile: Profile,
    error: ModelHTTPError,
) -> _Answer:
    """What the server refused with `error`, sent again in another shape, as long as a refusal says in which.

    Args:
        endpoint: Where to; it remembers.
        send: Makes one request by a profile; told the names of what was learned before it.
        settled: Gives the profile for the next request, with what this call has learned in it.
        profile: The profile that the refused request was made by.
        error: The refusal.

    Raises:
        ModelAPIError: The first refusal, or another error.
    """
    tries = _Tries(endpoint)
    while True:
        endpoint.recognise(server=(error.headers or {}).get('server'))
        if not tries.correct(profile, error):
            raise explained(tries.told(error), endpoint)
        profile = await _agreed(tries, settled)
        tries.sent()
        try:
            answer = await send(profile, tries.names)
        except UserError as misuse:
            # What would answer the refusal can't be done.
            first = tries.first or error
            first.add_note(f'oaicompat: {misuse}')
            raise explained(first, endpoint) from misuse
        except ModelHTTPError as refusal:
            error = refusal
        except ModelAPIError as other:
            raise explained(other, endpoint)  # noqa: B904  # it keeps its own cause
        else:
            tries.remember(profile)
            return answer


async def _agreed(tries: _Tries, settled: Callable[[Mapping[str, Any]], Awaitable[Profile]]) -> Profile:
    """The profile for the next request, which the caller's own does not stand against.

    Raises:
        ModelAPIError: The refusal, if the caller's does, and nothing else is left to try.
    """
    while True:
        profile = await settled(tries.delta)
        if (overruled := tries.overruled(profile)) is None:
            return profile
        lesson, refusal = overruled
        if lesson.name != SEARCH:
            raise explained(_overruled(lesson, refusal, profile), tries.endpoint)
        if not tries.guess(refusal):
            raise explained(tries.first or refusal, tries.endpoint)


def made_over(body: Mapping[str, Any], profile: Profile, fired: set[str]) -> Mapping[str, Any]:
    """`body` in the shape that `profile` asks for; what was done is added to `fired`.

    Raises:
        UserError: If the shape can't be had.
    """
    from oaicompat import _requests

    try:
        return _requests.adapted(body, profile, fired)
    except ValueError as error:
        misuse: Any = UserError(str(error))
        misuse.retryable = False
        raise misuse from error


def _overruled(lesson: Lesson, refusal: ModelHTTPError, profile: Profile) -> ModelHTTPError:
    """`refusal`, which says how the caller's own profile stands against its lesson."""
    # A list that the caller gave stands in place of what is learned, so it has to hold both.
    knobs = knobs_of({key: merged(profile.get(key), value) for key, value in lesson.profile.items()})
    refusal.add_note(f"oaicompat: {knobs} would answer this refusal, but this model's own profile says otherwise")
    return refusal
