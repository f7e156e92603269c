"""One exchange: a request, sent again where a refusal taught how, and its answer, repaired.

Between a model and what it overrides: `Exchange` knows the model only by what it needs of it. Overrides nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from openai import AsyncOpenAI
from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models import ModelRequestParameters

from oaicompat import _history
from oaicompat._answers import Answer, see
from oaicompat._endpoint import Endpoint, Profile
from oaicompat._sdk import watch
from oaicompat._timing import now
from oaicompat.errors import explained
from oaicompat.profile import pinned


class Asking(Protocol):
    """What an exchange needs of its model."""

    @property
    def client(self) -> AsyncOpenAI:
        """The client to send with."""

    @property
    def profile(self) -> Any:
        """The resolved profile."""

    def resolve_profile(self, news: Profile) -> Profile:
        """The profile with what one request has learned."""


@dataclass
class Exchange:
    """One request and its answer.

    Attributes:
        model: Who asks.
        endpoint: Where to.
        create: The parent's method that sends.
        messages: What is sent.
        settings: With which settings.
        parameters: With which parameters.
        own_client: Whether the client is ours, and not the caller's.
        responses: Whether it goes to `/responses`.
        details: Whether `reasoning_details` are ours to read.
    """

    model: Asking
    endpoint: Endpoint
    create: Callable[..., Awaitable[Any]]
    messages: list[ModelMessage]
    settings: Mapping[str, Any]
    parameters: ModelRequestParameters
    own_client: bool
    responses: bool = False
    details: bool = True

    async def answer(self, *, stream: bool) -> Any:
        """What the parent goes on with.

        Raises:
            ModelAPIError: If the server refuses, or what came is an error or no answer.
        """
        if self.own_client:
            watch(self.model.client, see)
        began = now()
        try:
            return await self._adapted(partial(self._send, stream, began))
        except ModelHTTPError as error:
            if self.model.profile.get('compat_adapt', 'on') != 'off':
                from oaicompat.discovery import with_nearest

                await with_nearest(error, self.model.client, self.endpoint)
            raise

    async def _adapted(self, send: Callable[[Profile, frozenset[str]], Awaitable[Any]]) -> Any:
        """Send; where the server refuses a shape that the request used, change that shape and send again."""
        profile = await self._profile({})
        try:
            return await send(profile, frozenset())
        except ModelHTTPError as error:
            refusal = error
        except ModelAPIError as error:
            raise explained(error, self.endpoint)  # noqa: B904  # it keeps its own cause
        from oaicompat._adapting import again

        return await again(self.endpoint, send, self._profile, profile, refusal)

    async def _send(self, stream: bool, began: float, profile: Profile, names: frozenset[str]) -> Any:
        always = profile.get('compat_stream') == 'always' and profile.get('compat_repair') != 'off'
        streamed = stream or (always and not self.responses)
        with pinned(self.model, profile, names) as pin:
            pin.raw = not streamed and not self.responses and profile.get('compat_repair', 'on') == 'on'
            answer = Answer(
                self.endpoint,
                pin,
                self.settings,
                self.parameters,
                self.responses,
                details=self.details,
                own_client=self.own_client,
                client=self.model.client,
                began=began,
            )
            async with answer.deadline(stream=stream, streamed=streamed) as timed:
                messages = _history.with_short_ids(self.messages, profile)
                return await answer.repaired(self.create(messages, streamed, timed, self.parameters), stream=stream)

    async def _profile(self, news: Profile) -> Profile:
        """The profile for one request, with what it has learned and with `compat_tool_return` decided."""
        ask = partial(self.endpoint.form_for_lists, self.model.client, self.settings, lambda: self.model.profile)
        profile: Profile = self.model.resolve_profile(news) if news else self.model.profile
        return await _history.settled_profile(profile, self.messages, ask)
