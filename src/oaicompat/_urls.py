"""Base URLs: one spelling in, one spelling out, and what their host says.

`normalize()` repairs what people paste (a missing scheme for localhost, a trailing slash, a whole endpoint),
`name_of()`, `same_host()` and `is_openai()` answer whose server a URL names. Pure functions; what can't be read
raises `ValueError` whose text names the value and the cure, never a credential.
"""

from __future__ import annotations

import re
from textwrap import shorten
from urllib.parse import SplitResult, urlsplit, urlunsplit

from oaicompat._patterns import lazy
from oaicompat._secrets import unkeyed

_LOOPBACK = lazy(r'^(localhost|127(\.\d{1,3}){3}|0\.0\.0\.0|\[::1?\])(:\d+)?(/|$)', re.IGNORECASE)
_HOST = lazy(r'^(\[[0-9a-fA-F:.]+\]|[\w.-]*\w)$')
# What the SDK appends to the base URL itself, longest first.
_ENDPOINTS = ('/chat/completions', '/completions', '/responses', '/models', '/embeddings')


def normalize(url: str, *, versioned: bool = False) -> str:
    """The base URL that `url` means, without a trailing slash.

    Args:
        url: What the user wrote: `http://localhost:8000/v1`, `localhost:8000`, `https://host/v1/chat/completions`.
        versioned: Whether the server is known to serve its API under `/v1`, so that a bare host gets it.

    Returns:
        Scheme, host, port and path; `/v1` only added where `versioned` is true and there is no path.

    Raises:
        ValueError: If no server can be told from `url`; the text names the value and the cure.
    """
    if not isinstance(url, str):
        raise ValueError(f'expected a URL such as http://localhost:8000/v1, got {type(url).__name__}')
    text = url.strip()
    if '@' in text:
        # Before anything else: whatever is wrong with such a URL, no part of it may stand in an error.
        raise ValueError('credentials in a URL would show up in logs; pass them as `api_key` or as a header')
    if _LOOPBACK.match(text):
        text = f'http://{text}'
    parts = _split(text)
    path = _without_endpoint(parts.path)
    if versioned and not path:
        path = '/v1'
    return urlunsplit((parts.scheme.lower(), parts.netloc.lower(), path, '', ''))


def host(url: str) -> str:
    """The host that `url` names, in lower case, with its port where one is written."""
    return urlsplit(url).netloc.rpartition('@')[2].lower()


def path(url: str) -> str:
    """The path of `url`, without slashes at its end."""
    return urlsplit(url).path.rstrip('/')


def name_of(url: str) -> str:
    """A provider name for the server at `url`: its host, and its port where one is written, without a colon."""
    return re.sub(r'[^\w.-]+', '-', host(url)).strip('-')


def same_host(url: str, other: str | None) -> bool:
    """Whether both URLs name one host and port, default ports counted."""
    return other is not None and _origin(urlsplit(url)) == _origin(urlsplit(other))


def is_openai(url: str) -> bool:
    """Whether the host is OpenAI's own, which keeps its own contract (`api.openai.com`, `eu.api.openai.com`)."""
    name = urlsplit(url).hostname or ''
    return name == 'openai.com' or name.endswith('.openai.com')


def server_root(url: str) -> str:
    """`url` without its version segment: where a server keeps what isn't part of the OpenAI API."""
    return url.rstrip('/').removesuffix('/v1')


def _split(text: str) -> SplitResult:
    shown = _shown(text)
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise ValueError(f'{shown} is not a URL; expected one such as http://localhost:8000/v1') from None
    if parts.scheme.lower() not in ('http', 'https'):
        bare = unkeyed(_bare(text))
        named = re.match(r'^[\w.-]+\.\w+(:\d+)?(/|$)', bare)
        scheme = 'http' if named and named[1] not in (None, ':443') else 'https'
        guess = f'; did you mean {scheme}://{bare}?' if named else ''
        raise ValueError(f'{shown} is not an http or https URL such as http://localhost:8000/v1{guess}')
    if not _HOST.match(parts.netloc.removesuffix(f':{port}')) or re.search(r'\s', text):
        raise ValueError(f'{shown} names no host; expected a URL such as http://localhost:8000/v1')
    if parts.query or parts.fragment:
        raise ValueError(f'{shown} comes with a query or fragment; query parameters belong in the `query` of a config')
    return parts


def _without_endpoint(path: str) -> str:
    path = re.sub(r'/{2,}', '/', path).rstrip('/')
    while (endpoint := next((end for end in _ENDPOINTS if path.endswith(end)), None)) is not None:
        path = path.removesuffix(endpoint).rstrip('/')
    return path


def _origin(parts: SplitResult) -> tuple[str, str | None, int | None]:
    default = {'http': 80, 'https': 443}.get(parts.scheme)
    return parts.scheme, parts.hostname, parts.port or default


def _bare(text: str) -> str:
    """`text` without its query and fragment, which may hold a secret."""
    return text.partition('?')[0].partition('#')[0]


def _shown(text: str) -> str:
    return repr(shorten(unkeyed(_bare(text)), 120, placeholder='...'))


def without_credentials(url: str) -> str:
    """`url` as it may stand in a log line or an error."""
    return re.sub(r'(?<=://)[^/]*@', '', _bare(url))
