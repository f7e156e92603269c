"""Around pydantic-ai's mapping of an answer: what it is mapped with, the names of repairs, errors that say more.

Overrides nothing; `models.py` calls it in front of and behind what it overrides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError
from pydantic_ai.exceptions import ModelAPIError, UnexpectedModelBehavior
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse
from pydantic_ai.models import StreamedResponse

from oaicompat import _urls
from oaicompat._client import as_completion
from oaicompat._endpoint import Endpoint, Profile
from oaicompat._keys import CARRIED
from oaicompat.errors import explained

if TYPE_CHECKING:
    from oaicompat._mapped import Joined, Wire
    from oaicompat._thinking import Tags

REPAIRS = 'oaicompat'
"""Key of `ModelResponse.provider_details`: the names of the repairs that were made."""


def _whose_tags(profile: Profile, endpoint: Endpoint) -> str:
    default = 'parent' if _urls.is_openai(endpoint.url) else 'ours'
    return 'parent' if profile.get('compat_repair') == 'off' else profile.get('compat_reasoning_tags', default)


def tags_of(profile: Profile, endpoint: Endpoint) -> tuple[Tags, ...]:
    """The pairs of tags that count, where ours do."""
    from oaicompat._thinking import KNOWN_TAGS

    own = profile.get('thinking_tags', KNOWN_TAGS[0])
    if own is None or _whose_tags(profile, endpoint) != 'ours':
        return ()
    return tuple(dict.fromkeys([(own[0], own[1]), *KNOWN_TAGS]))


def parent_profile(profile: Profile, endpoint: Endpoint) -> Any:
    """`profile` as the parent maps an answer with: without its own search for tags where that is not wanted."""
    return profile if _whose_tags(profile, endpoint) == 'parent' else {**profile, 'thinking_tags': _NO_TAGS}


# A pair that no text has: the parent's mapping of whole answers needs one.
_NO_TAGS = ('\x00oaicompat', '\x00/oaicompat')


def without_faults(response: Any, error: UnexpectedModelBehavior, endpoint: Endpoint, repairs: list[str]) -> Any:
    """The completion without the optional fields that pydantic-ai could not read.

    Raises:
        ModelAPIError: If it could not read what an answer needs.
        UnexpectedModelBehavior: `error` itself, if nothing was repaired: a subclass of pydantic-ai's asks for more.
    """
    from oaicompat._completion import pruned

    cause = error.__cause__
    faults = [fault['loc'] for fault in cause.errors()] if isinstance(cause, ValidationError) else [()]
    body = pruned(response.model_dump(exclude_unset=True, warnings=False), faults) if cause is not None else None
    if body is not None:
        repairs.append('envelope.types')
        return as_completion(body)
    if not repairs:
        raise error
    raise explained(ModelAPIError(endpoint.model, str(error)), endpoint) from error


def taken_repairs(response: object) -> list[str]:
    """The names that `Answer` put on a completion, taken off it."""
    extra = getattr(response, 'model_extra', None)
    return list(extra.pop(CARRIED, ())) if isinstance(extra, dict) else []


def with_repairs(response: ModelResponse, repairs: Iterable[str]) -> ModelResponse:
    """`response` with the names of the repairs that were made, if there are any."""
    name_repairs(response, repairs)
    return response


def name_repairs(answer: ModelResponse | StreamedResponse, repairs: Iterable[str]) -> None:
    """List the repairs that were made in the answer's provider details, if there are any."""
    if names := sorted(repairs):
        answer.provider_details = {**(answer.provider_details or {}), REPAIRS: names}


FEW = 16
"""Histories with fewer messages are mapped anew each time."""


LEAST = 8
"""Histories with no more messages are prepared anew each time."""


class Run(ModelRequest):
    """Messages at the start of a history that are mapped already, as one: the parent maps each by itself."""

    def __init__(self, wires: Sequence[Wire | Joined], messages: Sequence[ModelMessage]) -> None:
        """Stand for the messages that `wires` were made of, the first of `messages`."""
        super().__init__(parts=[])
        self.wires, self.messages = wires, messages


def whole(messages: Sequence[ModelMessage]) -> Sequence[ModelMessage]:
    """`messages` with those that a run stands for."""
    return messages[0].messages if messages and isinstance(messages[0], Run) else messages


class Call:
    """A fragment of a call, as pydantic-ai's mapping reads the SDK's."""

    __slots__ = ('arguments', 'id', 'index', 'model_extra', 'name')

    def __init__(self, index: int, arguments: str) -> None:
        self.index, self.id, self.name, self.arguments, self.model_extra = index, None, None, arguments, None

    @property
    def function(self) -> Call:  # and no attribute: who holds itself is left to the garbage collector
        """Itself."""
        return self


class Choice:
    """A choice and its delta in one, as pydantic-ai's mapping reads the SDK's: one text, or one fragment of a call."""

    __slots__ = ('annotations', 'content', 'model_extra', 'reasoning', 'reasoning_content', 'tool_calls')

    def __init__(
        self, content: str | None = None, reasoning: str | None = None, reasoning_content: str | None = None,
        tool_calls: list[Call] | None = None,
    ) -> None:  # fmt: skip
        self.content, self.reasoning, self.reasoning_content = content, reasoning, reasoning_content
        self.tool_calls, self.annotations, self.model_extra = tool_calls, None, None

    @property
    def delta(self) -> Choice:
        """Itself."""
        return self


@contextmanager
def errors_explained(
    endpoint: Endpoint, *, repairing: bool = True, headers: Mapping[str, str] | None = None
) -> Iterator[None]:
    """What is raised inside carries what else the server said; if `repairing`, what could not be read is typed.

    `headers` are those of the answer that is read.
    """
    try:
        yield
    except ModelAPIError as error:
        raise explained(error, endpoint, headers=headers)  # noqa: B904  # it keeps its own cause
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        if not repairing:
            raise
        # Something in the answer that neither our repairs nor pydantic-ai know.
        raise explained(ModelAPIError(endpoint.model, f'the answer could not be read: {error}'), endpoint) from error
