"""Discovery: which models a server has, and which of them a wrong name may have meant.

`list_models()` asks `GET /models` of the server that a prefix, a URL or a `Provider` names; `models_of()` asks with a
client that is there already. Both read whatever comes by `models_in()`, page by page, and raise pydantic-ai's errors.
`with_nearest()` adds what the server knows to an error about the model's name.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import anyio
from openai import APIConnectionError, APIStatusError, APITimeoutError, AsyncOpenAI
from pydantic_ai import _model_errors
from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError, ModelTimeoutError, UserError
from pydantic_ai.providers import Provider

from oaicompat import _urls
from oaicompat._client import body_of, request_timeout
from oaicompat._complaints import complaints
from oaicompat._endpoint import Endpoint
from oaicompat._envelope import FailureError, failure_in
from oaicompat._listing import ListedModel, following, lists_models, models_in, nearest, says_unknown_model
from oaicompat._providers import OPENAI_PREFIXES, resolve
from oaicompat.errors import add_hint, explained, wrong_url
from oaicompat.servers import find_server

__all__ = ('ListedModel', 'list_models', 'models_in', 'models_of', 'nearest', 'with_nearest')

logger = logging.getLogger('oaicompat')

_ALL = '*'  # In place of a model's name, where an error wants one
_MOST_PAGES = 50
_CONNECT, _PATIENCE = 30.0, 600.0  # As for an answer that comes whole
_SHORT = 5.0  # Where an error waits to be told
_REFUSALS = frozenset({400, 404, 405, 422})


async def list_models(
    provider: str | Provider[AsyncOpenAI] | None = None, *, base_url: str | None = None, api_key: str | None = None
) -> list[ListedModel]:
    """The models that a server says it has.

    Args:
        provider: A prefix such as `'lm-studio'`, any prefix of pydantic-ai that is OpenAI-compatible, a base URL, or a
            `Provider`. Default: OpenAI, or where `OPENAI_BASE_URL` points; with `base_url`, the server that is there.
        base_url: Where the server is: `http://localhost:1234/v1`. No `OPENAI_*` variable is read for it.
        api_key: The key to send. Default: that of the prefix's own variables.

    Returns:
        Each model once, in the server's order, of all kinds: embedding models, too. No model is an empty list.

    Raises:
        UserError: For arguments that can't work, as `OpenAICompatibleModel` does.
        ModelHTTPError: If the server refuses, with its status and words, whatever status they came with.
        ModelAPIError: If there is no list in the answer, or no answer: 30 seconds to connect and 600 in all, as for a
            model. The timeouts of a `Provider` that you made are yours.

    Example:
        ```python
        from oaicompat import list_models


        async def names() -> list[str]:
            return [model.id for model in await list_models('lm-studio')]
        ```

    What servers answer: https://github.com/openai/openai-openapi, and the links in `oaicompat/_listing.py`.
    """
    if isinstance(provider, str) and base_url is None:
        provider, base_url = _prefix_or_url(provider)
    resolved = resolve(provider, base_url, api_key)
    client = resolved.provider.client
    if not isinstance(client, AsyncOpenAI):
        raise UserError(_no_client(resolved.provider.name))
    prefix = resolved.server.prefix if resolved.server else None
    endpoint = Endpoint(str(client.base_url).rstrip('/'), _ALL, prefix, resolved.withheld)
    own = not isinstance(provider, Provider)
    async with resolved.provider if own else nullcontext():
        return await listed_by(client, endpoint, own_client=own)


async def listed_by(client: AsyncOpenAI, endpoint: Endpoint, *, own_client: bool) -> list[ListedModel]:
    """What `models_of()` gives, with our timeouts where the client is not the caller's own."""
    settings = {'timeout': request_timeout(_CONNECT, _PATIENCE)} if own_client else {}
    try:
        with anyio.fail_after(_PATIENCE if own_client else None):
            return await models_of(client, endpoint, settings)
    except TimeoutError as error:
        told = ModelTimeoutError(endpoint.model, f'no list of models within {_PATIENCE:g} s')
        raise explained(told, endpoint) from error


def _prefix_or_url(name: str) -> tuple[str | None, str | None]:
    """The prefix or the base URL that `name` is, or begins with, as in `ollama:qwen3`."""
    head = name.strip().partition(':')[0]
    if head in OPENAI_PREFIXES or find_server(head) is not None:
        return head, None
    is_url = head == 'localhost' or any(mark in name for mark in (':', '.'))
    return (None, name) if is_url else (name, None)


def _no_client(name: str) -> str:
    compatible = find_server(f'{name}-compat')
    hint = f'; did you mean `{compatible.prefix}`?' if compatible else ''
    return f'the provider `{name}` in pydantic-ai is not OpenAI-compatible{hint}'


async def models_of(
    client: AsyncOpenAI, endpoint: Endpoint, settings: Mapping[str, Any] | None = None, **options: Any
) -> list[ListedModel]:
    """The models that `client`'s server lists, all pages of them.

    Args:
        client: Whose credentials and connections to use.
        endpoint: The server; its model's name stands in errors.
        settings: Model settings: `timeout` in seconds or as the SDK has it, and `extra_headers`.
        options: Further options of the SDK's request, such as `max_retries`.

    Raises:
        ModelAPIError: If there is no list in the first answer, or a later page fails for another reason than that
            the server does not know the parameter that asks for it.
    """
    endpoint = replace(endpoint, path='/models')
    url, query = f'{endpoint.url}/models', dict[str, str]()
    found: dict[str, ListedModel] = {}
    for _ in range(_MOST_PAGES):
        try:
            with _errors_mapped(endpoint):
                page = _read(await _asked(client, url, query, settings or {}, options))
        except ModelHTTPError as error:
            if not found or error.status_code not in _REFUSALS:
                raise
            logger.warning('%s says that there are more models, and refuses the next page: %s', endpoint.shown, error)
            break
        known = len(found)
        for model in models_in(page):
            found.setdefault(model.id, model)
        more = following(page, url)
        # A server that does not know the parameter sends the first page for ever.
        if more is None or len(found) == known:
            break
        url, query = more
    return list(found.values())


async def _asked(
    client: AsyncOpenAI, url: str, query: dict[str, str], settings: Mapping[str, Any], options: dict[str, Any]
) -> str:
    """The body of the answer as text: the SDK's own list of models takes no other shape than OpenAI's."""
    timeout = {'timeout': settings['timeout']} if settings.get('timeout') is not None else {}
    sent: Any = {**options, **timeout, 'headers': settings.get('extra_headers') or {}, 'params': query}
    return await client.get(url, cast_to=str, options=sent)


def _read(text: str) -> object:
    """The JSON value with a list of models that `text` is.

    Raises:
        FailureError: If it is an error, or no such list.
    """
    try:
        value: object = json.loads(text.removeprefix('\ufeff'))
    except (ValueError, RecursionError):
        raise _no_list(text) from None
    if models_in(value):
        return value
    told = value[0] if isinstance(value, list) and value else value
    failure = failure_in(told) if isinstance(told, Mapping) else None
    if failure is not None:
        raise failure
    if not lists_models(value):
        raise _no_list(text)
    return value


def _no_list(text: str) -> FailureError:
    message = f'expected a list of models and got {" ".join(text.split())[:200]!r}'
    return FailureError(message, {'message': message, 'type': 'page'})


@contextmanager
def _errors_mapped(endpoint: Endpoint) -> Iterator[None]:
    """The SDK's errors, and ours, as pydantic-ai's models raise them."""
    try:
        yield
    except APIStatusError as error:
        raise explained(_status_error(error, endpoint.model), endpoint) from error
    except APIConnectionError as error:
        late = isinstance(error, APITimeoutError)
        failed = _model_errors.connection_error(endpoint.model, error.message, error, timeout=late)
        raise explained(failed, endpoint) from error
    except FailureError as failure:
        raise explained(_failure_error(failure, endpoint), endpoint) from failure


def _status_error(error: APIStatusError, model: str) -> ModelHTTPError:
    return ModelHTTPError.for_category(
        _model_errors.openai_compatible_category(error.status_code, error.code, error.type, error.message),
        status_code=error.status_code,
        model_name=model,
        body=error.body,
        headers=dict(error.response.headers),
        provider_error_code=error.code,
        provider_error_type=error.type,
    )


def _failure_error(failure: FailureError, endpoint: Endpoint) -> ModelAPIError:
    """The error that came with a status of success, as it would be with a status of its own."""
    fields = dict(failure.body) if isinstance(failure.body, Mapping) else {'message': failure.message}
    if failure.status is not None:
        fields['code'] = failure.status
    hint = f'; {wrong_url(endpoint)}' if fields.get('type') == 'page' else ''
    error = _model_errors.stream_error(endpoint.model, f'{failure.message}{hint}', fields)
    error.in_stream, error.__cause__ = False, failure
    return error


async def with_nearest(error: ModelHTTPError, client: AsyncOpenAI, endpoint: Endpoint) -> ModelHTTPError:
    """`error`, with the names that the server knows where it says that it does not know the model's.

    Asks the server once for each error, for 5 seconds at most and without retries. Whatever comes of that, `error`
    is the one that is told. OpenAI's own hosts are not asked: there pydantic-ai suggests a name that it knows.

    Args:
        error: What came in place of an answer.
        client: Whose credentials and connections to use.
        endpoint: The model that was asked for, and its server.
    """
    facts: Any = error
    if hasattr(error, 'served') or _urls.is_openai(endpoint.url):
        return error
    if not says_unknown_model(complaints(body_of(error)), status=error.status_code, model=endpoint.model):
        return error
    facts.served = ()
    try:
        with anyio.fail_after(_SHORT):
            listed = await models_of(client, endpoint, {'timeout': _SHORT}, max_retries=0)
    except Exception:
        logger.debug('%s does not list its models', endpoint.shown, exc_info=True)
        return error
    facts.served = tuple(model.id for model in listed)
    if facts.served and endpoint.model not in facts.served:
        add_hint(error, _knows(endpoint.model, facts.served))
    return error


def _knows(name: str, served: tuple[str, ...]) -> str:
    shown = nearest(name, served) or served[:3]
    names, rest = ', '.join(' '.join(one.split())[:100] for one in shown), len(served) - len(shown)
    return f'The server knows: {names}{f", and {rest} more" if rest else ""}'
