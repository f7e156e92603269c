"""Server: what is known of one OpenAI-compatible server, as data."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, cast, get_args

from pydantic_ai.exceptions import UserError

from oaicompat import _urls
from oaicompat._patterns import lazy
from oaicompat._secrets import unkeyed
from oaicompat.profile import CompatibleModelProfile, knobs

Kind = Literal['hosted', 'local', 'self-hosted']
_WORD = lazy(r'[^\s:,/+]+')


@dataclass(frozen=True, kw_only=True)
class Server:
    """One OpenAI-compatible server.

    Attributes:
        prefix: The name in front of the colon, as in `deepseek:deepseek-chat`.
        title: The name people use for it.
        base_url: Where it is served, `/v1` included where it has one; `None` where only the user can say.
        evidence: The page that says so.
        key_vars: Environment variables that hold its key, in the order they are looked up.
        url_vars: Environment variables that hold its base URL, in the order they are looked up.
        aliases: Other prefixes for the same row.
        kind: `hosted` needs a key, which goes to `base_url`'s host alone. `local` and `self-hosted` belong to the
            user: the key is optional and goes where the user points; a `local` one serves its API under `/v1`.
        upstream: pydantic-ai's name for it, whose provider, profile and model class are kept.
        family: Vendor whose model family profile pydantic-ai applies, as in `vendor/model`, for unprefixed names.
        headers: Headers sent with every request.
        profile: Profile keys that hold for every model of this server.
        known: What is known about it, with links; shown in the documentation.
        read: The day the evidence was read, as `YYYY-MM-DD`.
        unchecked: What of this row could not be confirmed by the provider's own pages.
    """

    prefix: str
    title: str = ''
    base_url: str | None = None
    evidence: str = ''
    key_vars: tuple[str, ...] = ()
    url_vars: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    kind: Kind = 'hosted'
    upstream: str | None = None
    family: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    profile: CompatibleModelProfile = field(default_factory=CompatibleModelProfile)
    known: str = ''
    read: str = ''
    unchecked: str = ''

    def __post_init__(self) -> None:
        """Check what a user may get wrong.

        Raises:
            UserError: For a prefix with a colon or space, a URL that is none, or an unknown knob.
        """
        for name in ('aliases', 'key_vars', 'url_vars'):
            value: object = getattr(self, name)
            if not isinstance(value, tuple | list) or not all(isinstance(item, str) and item for item in value):
                raise UserError(
                    f'`{name}` of server {self.prefix!r} is {unkeyed(repr(value))}; expected a tuple of strings'
                )
        if not all(isinstance(item, str) for pair in dict(self.headers).items() for item in pair):
            raise UserError(f'`headers` of server {self.prefix!r}: expected strings')
        if self.kind not in get_args(Kind):
            kinds = ', '.join(map(repr, get_args(Kind)))
            raise UserError(f'`kind` of server {self.prefix!r} is {self.kind!r}; expected one of {kinds}')
        for name, prefix in (('prefix', self.prefix), *(('aliases', alias) for alias in self.aliases)):
            if not isinstance(cast(object, prefix), str) or not _WORD.fullmatch(prefix):
                shown = unkeyed(repr(prefix))
                raise UserError(f'`{name}` is {shown}; expected a word without spaces, colons, commas, slashes or +')
        if self.base_url is not None:
            try:
                _urls.normalize(self.base_url)
            except ValueError as error:
                raise UserError(f'`base_url` of server {self.prefix!r}: {error}') from None
        object.__setattr__(self, 'profile', knobs(self.profile))

    @property
    def needs_key(self) -> bool:
        """Whether a request without a key can't succeed."""
        return self.kind == 'hosted' and bool(self.key_vars)

    @property
    def url_variable(self) -> str | None:
        """The variable that names the base URL: the first one that is set."""
        return next((name for name in self.url_vars if os.environ.get(name)), None)

    def url(self) -> str | None:
        """The base URL: from the environment where a variable of the row is set, else the row's own."""
        return os.environ[self.url_variable] if self.url_variable else self.base_url

    def key(self) -> str | None:
        """The key from the environment, if there is one."""
        return next((os.environ[name] for name in self.key_vars if os.environ.get(name)), None)

    def owns(self, url: str) -> bool:
        """Whether a key of this server may be sent to `url`: its own host, or wherever the user runs it."""
        return self.kind != 'hosted' or any(_urls.same_host(url, own) for own in (self.base_url, self.url()))
