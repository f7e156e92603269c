"""What one model knows of its endpoint: lessons, the kind of server, and what it can be asked.

`Endpoint` joins the shared memory with one URL and model name. It sends nothing itself but one question to llama.cpp,
and overrides nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import anyio
from anyio.lowlevel import RunVar
from openai import AsyncOpenAI
from pydantic_ai.exceptions import ModelHTTPError

from oaicompat import _urls
from oaicompat._client import body_of, post_json
from oaicompat._lesson import Lesson
from oaicompat._memory import MEMORY
from oaicompat._patterns import lazy
from oaicompat._sdk import sent_body

logger = logging.getLogger('oaicompat')

LLAMA_CPP = 'llama.cpp'
_LLAMA_CPP_BUILD = lazy(r'^b\d+-[0-9a-f]{4,}')
_ASKING: RunVar[dict[tuple[str, str], anyio.Lock]] = RunVar('oaicompat_asking')

Profile = Mapping[str, Any]


@dataclass(frozen=True)
class Endpoint:
    """One model on one server.

    Attributes:
        url: The base URL, without a trailing slash.
        model: The model's name there.
        prefix: The prefix of the server's row, if it has one.
        withheld: Key variables that are set but belong to another host.
        path: What is asked below the URL.
    """

    url: str
    model: str
    prefix: str | None = None
    withheld: tuple[str, ...] = ()
    path: str = '/chat/completions'

    @property
    def shown(self) -> str:
        """The URL as it may stand in a log line or an error."""
        return _urls.without_credentials(self.url)

    @property
    def unversioned(self) -> bool:
        """Whether the URL has no path, where most servers have `/v1`."""
        return not _urls.path(self.url)

    @property
    def _key(self) -> str:
        """What lessons are kept under: one server may refuse on one of its APIs what it takes on the other."""
        return self.url if self.path == '/chat/completions' else f'{self.url}{self.path}'

    @property
    def version(self) -> int:
        """Changes whenever what is known changes."""
        return MEMORY.version(self._key, self.model)

    @property
    def learned(self) -> dict[str, Any]:
        """The profile keys that answers taught."""
        return MEMORY.profile(self._key, self.model)

    @property
    def is_llama_cpp(self) -> bool:
        """Whether llama.cpp answers here, by its row or by its answers."""
        return self.prefix == 'llama-cpp' or MEMORY.kind(self.url) == LLAMA_CPP

    def forget(self) -> None:
        """Drop what was learned."""
        MEMORY.forget(self._key, self.model)
        MEMORY.forget_kind(self.url)

    def recognise(self, *, server: str | None = None, build: object = None, timings: object = None) -> None:
        """Take the endpoint for llama.cpp where an answer says so."""
        if MEMORY.kind(self.url) is not None:
            return
        stamped = isinstance(build, str) and _LLAMA_CPP_BUILD.match(build)
        if stamped or timings is not None or (server or '').startswith(LLAMA_CPP):
            MEMORY.recognise(self.url, LLAMA_CPP)

    def lessons(self, profile: Profile, error: ModelHTTPError) -> tuple[Lesson, ...]:
        """What `error` teaches, if `profile` lets a request be sent again."""
        from oaicompat._lessons import lessons

        return self._read(lessons, profile, error)

    def guesses(self, profile: Profile, error: ModelHTTPError) -> tuple[Lesson, ...]:
        """What to try, one after the other, where `error` names nothing; never what did not help before."""
        from oaicompat._lessons import guesses

        return tuple(
            guess for guess in self._read(guesses, profile, error) if not MEMORY.ruled_out(self.url, self.model, guess)
        )

    def rule_out(self, guess: Lesson) -> None:
        """Keep that a guess did not help."""
        MEMORY.rule_out(self.url, self.model, guess)

    def _read(
        self, read: Callable[[Profile, Any, int, object], tuple[Lesson, ...]], profile: Profile, error: ModelHTTPError
    ) -> tuple[Lesson, ...]:
        sent = sent_body(error)
        if sent is None or profile.get('compat_adapt', 'on') == 'off':
            return ()
        learned = read(profile, sent, error.status_code, body_of(error))
        if profile.get('compat_repair') == 'off':
            # Who puts a stream together repairs, and so does who reads calls in the text.
            learned = tuple(lesson for lesson in learned if not {'compat_stream', 'compat_tools'} & {*lesson.profile})
        for lesson in learned:
            facts = (self.model, self.shown, error.status_code, lesson.because, knobs_of(lesson.profile))
            logger.debug('%s at %s refused a request (HTTP %d, %s): to be answered with %s', *facts)
        return learned

    def remember(self, learned: Lesson, error: ModelHTTPError, profile: Profile) -> None:
        """Keep what `error` taught, now that it has helped in `profile`, and say so once."""
        if MEMORY.learn(self._key, self.model, learned):
            logger.warning(
                '%s at %s refused a request (HTTP %d, %s) and took it with profile=%s. Set that to save the try.',
                self.model,
                self.shown,
                error.status_code,
                learned.because,
                # Of a tuple, the whole, since one that is set stands in place of another.
                knobs_of({key: profile.get(key, value) for key, value in learned.profile.items()}),
            )

    def drop(self, name: str) -> None:
        """Forget one thing that was found out and is not so."""
        MEMORY.unlearn(self._key, self.model, name)

    def note(self, name: str, profile: Profile, because: str) -> None:
        """Remember what was found out without a refusal."""
        if MEMORY.learn(self._key, self.model, Lesson(name, profile, because)):
            logger.debug('%s at %s: %s=%s, by %s', self.model, self.shown, name, dict(profile), because)

    async def form_for_lists(
        self, client: AsyncOpenAI, settings: Mapping[str, Any], effective: Callable[[], Profile]
    ) -> str:
        """What `auto` means for a list tool return here; llama.cpp is asked once."""
        if not self.is_llama_cpp:
            return 'native'
        if effective().get('compat_adapt', 'on') == 'off':
            return 'joined'
        async with self._asking():
            known: str = effective().get('compat_tool_return', 'auto')
            return known if known != 'auto' else await self._ask_template(client, settings)

    async def _ask_template(self, client: AsyncOpenAI, settings: Mapping[str, Any]) -> str:
        from oaicompat import _templates

        url = f'{_urls.server_root(self.url)}/apply-template'
        answer = await post_json(client, url, _templates.question(self.model), settings)
        form = 'native' if _templates.keeps_elements(answer.value) else 'joined'
        # A server that is loading, busy or wants another key says nothing of the template: the next request asks again.
        if answer.final:
            because = 'no answer from' if answer.value is None else 'the prompt that comes from'
            shown = _urls.without_credentials(url)
            self.note('request.tool_return', {'compat_tool_return': form}, f'{because} {shown}')
        return form

    def _asking(self) -> anyio.Lock:
        """One lock for each question and event loop, so that a burst of first calls asks once."""
        if (locks := _ASKING.get(None)) is None:
            _ASKING.set(locks := {})
        return locks.setdefault((self.url, self.model), anyio.Lock())


def knobs_of(profile: Profile) -> str:
    """Profile keys as they are set, in Python and in YAML alike."""
    return repr({key: list(value) if isinstance(value, tuple) else value for key, value in profile.items()})
