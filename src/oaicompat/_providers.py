"""Row to provider: whom a request goes to, and with which key.

`resolve()` turns what a caller wrote (a prefix, a base URL, a key, a `Provider`) into a pydantic-ai provider.
Key hygiene lives here: what comes from `OPENAI_*` variables goes only where `openai:` points, and a key from
another variable only to the host that it is for. Nothing here does I/O.
"""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from types import BuiltinFunctionType, WrapperDescriptorType
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from openai import AsyncOpenAI
from pydantic_ai.exceptions import UserError
from pydantic_ai.models import OpenAIChatCompatibleProvider
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.providers import Provider, infer_provider, infer_provider_class

from oaicompat import _urls
from oaicompat._sdk import add_defaults, isolate
from oaicompat._secrets import unkeyed

if TYPE_CHECKING:
    from oaicompat.servers import Server

AnyProvider = Provider[AsyncOpenAI]

OPENAI_PREFIXES = frozenset({'openai', 'openai-chat', 'openai-responses'})
"""Prefixes that mean OpenAI itself, or where `OPENAI_BASE_URL` points."""

# The SDK wants a key; pydantic-ai sends this one to servers that need none.
_NO_KEY = 'api-key-not-set'
_GATEWAY = 'gateway/'
# Where `OPENAI_*` variables belong: the prefixes above, and one that only pydantic-ai has.
_OPENAIS_OWN = OPENAI_PREFIXES | {'openai-decisions'}


class Resolved(NamedTuple):
    """A provider, the row it came from, and the key variables that are set but were not used."""

    provider: AnyProvider
    server: Server | None = None
    withheld: tuple[str, ...] = ()


class _Endpoint(NamedTuple):
    url: str
    key: str | None


def resolve(provider: str | AnyProvider | None, base_url: str | None, api_key: str | None) -> Resolved:
    """The provider that a model's arguments mean.

    Args:
        provider: A prefix of a row or of pydantic-ai, a provider, or `None` for the default.
        base_url: Where the server is, if not where the prefix says.
        api_key: The key to send, if not the one of the prefix's variables.

    Raises:
        UserError: For arguments that contradict each other, an unknown prefix, a URL that names no server, a
            missing key or one that can't be one.
    """
    key = _checked_key(api_key)
    if provider is not None and not isinstance(provider, str):
        return _given(provider, base_url, api_key)
    if base_url is None:
        return _by_prefix('openai-chat' if provider is None else provider, key)
    return _at(base_url, provider, key)


def check_arguments(model_name: object, settings: object, options: Mapping[str, Any], model: type) -> None:
    """Check what a model's constructor can't leave to the parent.

    Raises:
        UserError: For an empty model name, settings that are none, or an argument that the class does not have.
    """
    if not isinstance(model_name, str) or not model_name.strip():
        raise UserError(f'`model_name` is {model_name!r}; expected the name that the server knows the model by')
    if settings is not None and not isinstance(settings, Mapping):
        raise UserError(f'`settings` must be a mapping, not {type(settings).__name__}')
    known = _known_arguments(model) if options else set()
    for name in options:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f'; did you mean `{near[0]}`?' if near else ''
            raise UserError(f'unknown argument `{name}`{hint}')


def _known_arguments(model: type) -> set[str]:
    # By what makes it: to ask for the signature of a class that has none in Python costs 40 KB each time.
    known: set[str] = set()
    for maker in (vars(cls).get(name) for cls in model.__mro__ for name in ('__init__', '__new__')):
        made_by = getattr(maker, '__func__', maker)
        if callable(made_by) and not isinstance(made_by, WrapperDescriptorType | BuiltinFunctionType):
            known |= inspect.signature(made_by).parameters.keys()
    return known - {'self', 'cls', 'options'}


def check_name(model_name: str) -> None:
    """Check that a model for OpenAI is not named by another server's prefix.

    Raises:
        UserError: If it is.
    """
    prefix, colon, name = model_name.partition(':')
    if colon and _row(prefix) is not None and not os.environ.get('OPENAI_BASE_URL'):
        raise UserError(
            f'`model_name` is {model_name!r}: for that server use infer_model({model_name!r}), '
            f'or pass provider={prefix!r} and the name {name!r}'
        )


def _row(prefix: str) -> Server | None:
    from oaicompat.servers import find_server

    return find_server(prefix)


def _row_at(url: str) -> Server | None:
    # Our own hosted rows are of `https`; there are others only where somebody had `servers` register one.
    if url.startswith('http:') and 'oaicompat.servers' not in sys.modules:
        return None
    from oaicompat.servers import server_at

    return server_at(url)


def _given(provider: AnyProvider, base_url: str | None, api_key: str | None) -> Resolved:
    if not isinstance(provider, Provider):
        raise UserError(f'`provider` must be a prefix or a Provider, not {type(provider).__name__}')
    given = [name for name, value in (('base_url', base_url), ('api_key', api_key)) if value is not None]
    if given:
        raise UserError(f'`{given[0]}` and a `Provider` say the same thing twice; give {given[0]} to the Provider')
    return Resolved(provider, _row_at(str(provider.base_url)) or _row(provider.name))


def _by_prefix(prefix: str, key: str | None) -> Resolved:
    if prefix in OPENAI_PREFIXES:
        return Resolved(_openai(key))
    if (row := _row(prefix)) is not None:
        return _of_row(row, None, key)
    return _isolated(_with_key(prefix, key) if key else _infer(prefix))


def _openai(key: str | None) -> AnyProvider:
    from pydantic_ai.providers.openai import OpenAIProvider

    try:
        return _made(OpenAIProvider, os.environ.get('OPENAI_BASE_URL', ''), api_key=key)
    except UserError as error:
        raise UserError(f'{error.message} For another server pass `base_url`, or `provider`') from None


def _at(base_url: str, prefix: str | None, key: str | None) -> Resolved:
    """The provider for an explicit base URL; no `OPENAI_*` variable is read for it."""
    row = _row(prefix) if prefix and prefix not in OPENAI_PREFIXES else None
    url = checked_url(base_url, versioned=row is not None and row.kind == 'local')
    row = row or (_row_at(url) if prefix is None else None)
    if row is not None:
        return _of_row(row, url, key)
    made: AnyProvider
    if prefix in OPENAI_PREFIXES or (prefix is None and _urls.is_openai(url)):
        from pydantic_ai.providers.openai import OpenAIProvider

        made = _made(OpenAIProvider, url, base_url=url, api_key=key or _NO_KEY)
    elif prefix is None:
        made = _compatible(_urls.name_of(url), base_url=url, api_key=key)
    else:
        made = _build(prefix, _upstream(prefix), _Endpoint(url, key))
    return _isolated(made, withheld=() if key else _set('OPENAI_API_KEY'))


def _of_row(row: Server, url: str | None, key: str | None) -> Resolved:
    explicit = url is not None
    if url is None:
        url = row.url()
        if url is None:
            variables = f'set {" or ".join(row.url_vars)}, or ' if row.url_vars else ''
            raise UserError(f'`{row.prefix}:` needs a base URL: {variables}pass `base_url`')
        url = checked_url(url, versioned=row.kind == 'local', name=row.url_variable or 'base_url')
    # Where the row itself points, its key belongs; elsewhere only to the same host.
    owned = not explicit or row.owns(url)
    if key is None and owned:
        key = _checked_key(row.key(), ' or '.join(row.key_vars))
    if key is None and row.needs_key and owned:
        raise UserError(f'no key for `{row.prefix}:`: set {" or ".join(row.key_vars)}, or pass `api_key` to the model')
    endpoint = _Endpoint(url, key)
    if row.upstream is not None:
        made = _build(row.upstream, _upstream(row.upstream), endpoint, users_own=row.kind != 'hosted')
    else:
        made = _compatible(row.prefix, base_url=url, api_key=key, profile=_family(row))
    withheld = () if key else _set(*row.key_vars) or _set('OPENAI_API_KEY')
    resolved = _isolated(made, row, withheld)
    add_defaults(made.client, row.headers, {})
    return resolved


def _build(name: str, upstream: type[AnyProvider], endpoint: _Endpoint, *, users_own: bool = False) -> AnyProvider:
    """pydantic-ai's provider for `endpoint`; one that knows its own URL only gives its name and profile.

    Those for servers of the user's own make their clients as the generic one does.
    """
    arguments: dict[str, Any] = {_argument(upstream, 'token', 'api_key'): endpoint.key or _NO_KEY}
    url_argument = _argument(upstream, 'base_url', 'api_base', 'azure_endpoint', '')
    if url_argument:
        arguments[url_argument] = endpoint.url
        plain = users_own and _argument(upstream, 'http_client', '')
        return _made(upstream, endpoint.url, **arguments) if plain else upstream(**arguments)
    made = upstream(**arguments)
    if _urls.same_host(made.base_url, endpoint.url) and made.base_url.rstrip('/') == endpoint.url:
        return made
    return _compatible(name, base_url=endpoint.url, api_key=endpoint.key, profile=upstream.model_profile)


def _compatible(name: str, **options: Any) -> AnyProvider:
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    return _made(OpenAICompatibleProvider, options['base_url'], name=name, **options)


def _made(make: Callable[..., AnyProvider], url: str, **options: Any) -> AnyProvider:
    if not url.startswith('http:'):
        return make(**options)
    from oaicompat._transport import on_plain_client

    return on_plain_client(make, **options)


def _family(row: Server) -> Callable[[str], ModelProfile | None] | None:
    if row.family is None:
        return None
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    family = row.family
    return lambda name: OpenAICompatibleProvider.model_profile(name if '/' in name else f'{family}/{name}')


def _isolated(provider: AnyProvider, server: Server | None = None, withheld: tuple[str, ...] = ()) -> Resolved:
    if isinstance(provider.client, AsyncOpenAI):
        isolate(provider.client)
    return Resolved(provider, server, withheld)


def isolated_provider(name: str) -> Provider[Any]:
    """pydantic-ai's provider for `name`, without what the SDK took from `OPENAI_*` variables; a `provider_factory`."""
    provider = infer_provider(name)
    if name not in _OPENAIS_OWN:
        _isolated(provider)
    return provider


def keyed_provider(key: str) -> Callable[[str], Provider[Any]]:
    """A `provider_factory` that gives every provider the same key."""
    checked = _checked_key(key)

    def factory(name: str) -> Provider[Any]:
        if checked is None:
            return isolated_provider(name)
        provider = _with_key(name, checked)
        if name not in _OPENAIS_OWN:
            _isolated(provider)
        return provider

    return factory


def _infer(prefix: str) -> AnyProvider:
    _upstream(prefix)
    return infer_provider(prefix)


def _with_key(prefix: str, key: str) -> AnyProvider:
    if prefix.startswith(_GATEWAY):
        from pydantic_ai.providers.gateway import gateway_provider

        return gateway_provider(prefix.removeprefix(_GATEWAY), api_key=key)
    upstream = _upstream(prefix)
    made: Callable[..., AnyProvider] = upstream
    return made(**{_argument(upstream, 'token', 'api_key'): key})


def _argument(upstream: Callable[..., Any], *names: str) -> str:
    """The first of `names` that `upstream` has an argument for, else the last; they mean the same."""
    accepted = inspect.signature(upstream).parameters
    return next((name for name in names if name in accepted), names[-1])


def _upstream(prefix: str) -> type[AnyProvider]:
    try:
        return infer_provider_class(prefix)
    except ValueError:
        raise UserError(unknown_prefix(prefix)) from None


def check_prefix(identifier: str, prefix: str | None) -> None:
    """Check that somebody knows `prefix`, as far as that can be told without a key.

    Raises:
        UserError: If there is none, or nobody knows it.
    """
    if prefix is None:
        shown = unkeyed(identifier)
        raise UserError(f'{shown!r} has no prefix, as in openai-chat:{shown}; or give its `base_url`')
    if prefix in OPENAI_PREFIXES or _row(prefix) is not None or prefix.startswith(_GATEWAY):
        return
    try:
        _upstream(prefix)
    except ImportError:
        return  # pydantic-ai knows it, and says what to install when the model is made


def unknown_prefix(prefix: str) -> str:
    """The text of the error for a prefix that nobody knows, with the nearest ones."""
    from oaicompat.servers import nearest_prefixes, servers

    pydantic_ais = (*OPENAI_PREFIXES, *get_args(OpenAIChatCompatibleProvider.__value__), *_NATIVE)
    near = nearest_prefixes(prefix, pydantic_ais)
    known = near or [server.prefix for server in servers()]
    hint = f'{"did you mean" if near else "known:"} {", ".join(f"`{name}:`" for name in known)}'
    end = '?' if near else '.'
    cure = 'For a server of your own give the model a `base_url`, or register it'
    return f'unknown prefix `{unkeyed(prefix)}:`; {hint}{end} {cure}'


_NATIVE = ('anthropic', 'bedrock', 'cohere', 'google', 'groq', 'huggingface', 'mistral', 'xai')


def checked_url(url: str, *, versioned: bool = False, name: str = 'base_url') -> str:
    """`url` normalised; `name` is the argument or variable that it came from.

    Raises:
        UserError: If it names no server.
    """
    try:
        return _urls.normalize(url, versioned=versioned)
    except ValueError as error:
        raise UserError(f'`{name}`: {error}') from None


def _checked_key(key: str | None, name: str = 'api_key') -> str | None:
    """`key` without surrounding white space; its value never stands in an error."""
    if key is None:
        return None
    if not isinstance(key, str):
        raise UserError(f'`{name}` must be a string, not {type(key).__name__}')
    key = key.strip()
    if re.match(r'https?://', key):
        raise UserError(f'`{name}` holds a URL; pass the URL as `base_url` and the key of that server as `api_key`')
    if not key.isascii() or not key.isprintable() or ' ' in key:
        raise UserError(
            f'`{name}` holds a space, a line break or a non-ASCII character, which no HTTP header can carry'
        )
    return key or None


def _set(*names: str) -> tuple[str, ...]:
    return tuple(name for name in names if os.environ.get(name))
