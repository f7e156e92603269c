"""Routing: a string such as `deepseek:deepseek-chat` to a model.

`infer_model()` has pydantic-ai's signature. `build()` is the one way from a row to a model; YAML goes through it,
too. Prefixes of native classes, and those that only pydantic-ai knows, stay pydantic-ai's; a plain
`OpenAIChatModel` that comes back is rebuilt as ours with its own provider.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Literal, NamedTuple, cast

from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model
from pydantic_ai.models import infer_model as pydantic_infer_model
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers import Provider, infer_provider
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

from oaicompat._providers import OPENAI_PREFIXES, isolated_provider, keyed_provider, unknown_prefix
from oaicompat._sdk import add_defaults
from oaicompat._secrets import unkeyed
from oaicompat._urls import without_credentials
from oaicompat.models import OpenAICompatibleModel, OpenAICompatibleResponsesModel
from oaicompat.servers import Server, find_server

__all__ = ('build', 'infer_model')

ProviderFactory = Callable[[str], Provider[Any]]

_RESPONSES = '+responses'


class Target(NamedTuple):
    """What an identifier means: whose server, which model there, over which API."""

    prefix: str | None
    name: str
    responses: bool = False


def infer_model(model: Model | str, provider_factory: ProviderFactory = infer_provider) -> Model:
    """The model that a string names; a drop-in for `pydantic_ai.models.infer_model`.

    Args:
        model: `PREFIX:NAME`, as in `deepseek:deepseek-chat` or `ollama:qwen2.5:7b`; `PREFIX+responses:NAME` for the
            Responses API; several, separated by commas, for a `FallbackModel`; `test` or `test:TEXT` for a
            `TestModel`. A `Model` is returned as it is.
        provider_factory: Makes the provider for a prefix, as in pydantic-ai. Default: the prefix's own.

    Raises:
        UserError: For an empty or unknown prefix, an empty name, or a missing key; it names the nearest prefixes or
            the variables that were looked up.

    Example:
        ```python
        from oaicompat import infer_model

        model = infer_model('lm-studio:qwen3-8b, ollama:qwen3:8b')
        ```
    """
    if isinstance(model, Model):
        return model
    if not isinstance(cast(object, model), str):
        raise UserError(f'`model` must be a string or a Model, not {type(model).__name__}')
    if ',' in model and not is_test(model):
        return FallbackModel(*[infer_model(identifier, provider_factory) for identifier in _several(model)])
    return _infer_one(model.strip(), provider_factory)


def _several(identifiers: str) -> list[str]:
    names = [identifier.strip() for identifier in identifiers.split(',')]
    if not all(names):
        raise UserError(f'`model` is {unkeyed(identifiers)!r}; expected names between the commas')
    return names


def parse(identifier: str, *, base_url_given: bool = False) -> Target:
    """Split `identifier` at the colon that ends its prefix.

    With `base_url_given`, only a known prefix is one: `qwen2.5:7b` is a model's whole name.

    Raises:
        UserError: For an empty prefix or name.
    """
    head, colon, name = identifier.strip().partition(':')
    bare = head.removesuffix(_RESPONSES)
    known = bare in OPENAI_PREFIXES or find_server(bare) is not None
    if base_url_given and not (colon and (known or head.endswith(_RESPONSES))):
        head, colon, name, bare = '', '', identifier.strip(), ''
    if not name.strip() and (colon or base_url_given):
        shown = unkeyed(identifier)
        raise UserError(f'{shown!r} names no model; expected a name behind the colon, as in openai-chat:glm-5')
    if not colon:
        return Target(None, name or head)
    if not bare:
        raise UserError(f'{unkeyed(identifier)!r} has no prefix before the colon, as in openai-chat:glm-5')
    responses = head != bare or bare == 'openai-responses'
    return Target(bare, name.strip(), responses)


def build(target: Target, **arguments: Any) -> OpenAICompatibleModel | OpenAICompatibleResponsesModel:
    """The model for `target`, made by its row; `arguments` are those of `OpenAICompatibleModel`."""
    if target.responses:
        return OpenAICompatibleResponsesModel(target.name, provider=target.prefix, **arguments)
    row = find_server(target.prefix) if target.prefix else None
    return _class_of(row, target.prefix)(target.name, provider=target.prefix, **arguments)


def build_string(
    identifier: str,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    api: Literal['chat', 'responses'] | None = None,
    headers: Mapping[str, str] | None = None,
    query: Mapping[str, str] | None = None,
    **options: Any,
) -> Model:
    """The model that `identifier` names, with what a config says about it; `options` are `profile` and `settings`.

    Raises:
        UserError: As `infer_model()`; and for headers or query parameters where the model is not one of ours.
    """
    if ',' in identifier and not is_test(identifier):
        same = {'base_url': base_url, 'api_key': api_key, 'api': api, 'headers': headers, 'query': query, **options}
        return FallbackModel(*[build_string(one, **same) for one in _several(identifier)])
    given = {name: value for name, value in options.items() if value is not None}
    if base_url is not None or not is_test(identifier):
        target = parse(identifier, base_url_given=base_url is not None)
        if base_url is not None or api is not None or _is_ours(target):
            chosen = target._replace(responses=target.responses if api is None else api == 'responses')
            return _with_defaults(build(chosen, base_url=base_url, api_key=api_key, **given), headers, query)
    model = infer_model(identifier, infer_provider if api_key is None else keyed_provider(api_key))
    return _with_defaults(_remade(model, given) if given else model, headers, query)


def _remade(model: Model, given: Mapping[str, Any]) -> Model:
    """`model` made anew with `given`, which its own constructor takes."""
    from pydantic_ai.models.test import TestModel  # few need it, and it imports much

    if isinstance(model, TestModel):
        return TestModel(custom_output_text=model.custom_output_text, **given)
    make: Callable[..., Model] = type(model)
    return make(model.model_name, provider=model.provider, **given)


def _with_defaults(model: Model, headers: Mapping[str, str] | None, query: Mapping[str, str] | None) -> Model:
    if not headers and not query:
        return model
    if not isinstance(model, OpenAICompatibleModel | OpenAICompatibleResponsesModel):
        raise UserError(f'`headers` and `query` need an OpenAI-compatible model, not {type(model).__name__}')
    add_defaults(model.client, headers or {}, query or {})
    return model


def _infer_one(identifier: str, provider_factory: ProviderFactory) -> Model:
    if is_test(identifier):
        from pydantic_ai.models.test import TestModel

        return TestModel(custom_output_text=identifier.partition(':')[2] or None)
    if identifier.startswith(('http://', 'https://')):
        url = without_credentials(unkeyed(identifier))
        raise UserError(f'`model` is the URL {url!r}; give OpenAICompatibleModel the name of a model and `base_url`')
    target = parse(identifier)
    if target.prefix is None:
        raise UserError(f'`model` is {unkeyed(identifier)!r}, without a prefix; expected {_example(identifier)}')
    row = find_server(target.prefix)
    ours = target.responses or row is not None or target.prefix == 'openai-chat'
    if not ours:
        return _from_pydantic(target, provider_factory)
    if provider_factory is infer_provider:
        return build(target)
    row = find_server(target.prefix)
    provider = provider_factory((row.upstream or row.prefix) if row else target.prefix)
    model_class = OpenAICompatibleResponsesModel if target.responses else _class_of(row)
    return model_class(target.name, provider=provider)


def _example(identifier: str) -> str:
    """What a string without a colon may have meant."""
    head, _, rest = identifier.partition('/')
    if find_server(head) is not None or head in OPENAI_PREFIXES:
        return f'{head}:{unkeyed(rest) or "NAME"}, with the name of a model'
    return f'one such as openai-chat:{unkeyed(identifier) or "glm-5"}'


def _from_pydantic(target: Target, provider_factory: ProviderFactory) -> Model:
    factory = isolated_provider if provider_factory is infer_provider else provider_factory
    try:
        model = pydantic_infer_model(f'{target.prefix}:{target.name}', provider_factory=factory)
    except ValueError as error:
        if not str(error).startswith('Unknown provider'):
            raise
        raise UserError(unknown_prefix(target.prefix or '')) from None
    if not isinstance(model, OpenAIChatModel):
        return model
    return mixed(type(model))(model.model_name, provider=cast(Provider[Any], model.provider))


def _is_ours(target: Target) -> bool:
    """Whether the prefix gives one of our classes, rather than what pydantic-ai makes of it."""
    prefix = target.prefix
    return prefix is not None and (target.responses or prefix == 'openai-chat' or find_server(prefix) is not None)


def is_test(identifier: str) -> bool:
    """Whether `identifier` means pydantic-ai's `TestModel`: `test` or `test:TEXT`."""
    identifier = identifier.strip()
    return identifier == 'test' or identifier.startswith('test:')


def _class_of(row: Server | None, prefix: str | None = None) -> type[OpenAICompatibleModel]:
    if row is None and prefix is not None and prefix not in OPENAI_PREFIXES:
        return mixed(_upstream_class(prefix))
    return mixed(_upstream_class(row.upstream)) if row and row.upstream else OpenAICompatibleModel


@cache
def _upstream_class(upstream: str) -> type[OpenAIChatModel]:
    """The class that pydantic-ai uses for its own prefix, asked with a stand-in provider."""
    stand_in = OpenAICompatibleProvider(upstream, base_url='http://localhost', api_key='unused')
    model = pydantic_infer_model(f'{upstream}:unused', provider_factory=lambda _: stand_in)
    return type(model) if isinstance(model, OpenAIChatModel) else OpenAIChatModel


@cache
def mixed(base: type[OpenAIChatModel]) -> type[OpenAICompatibleModel]:
    """`OpenAICompatibleModel` in front of an upstream subclass, whose own knowledge is kept."""
    if issubclass(base, OpenAICompatibleModel):
        return base
    if base is OpenAIChatModel:
        return OpenAICompatibleModel
    name = f'OpenAICompatible{base.__name__}'
    doc = f'`{base.__name__}` with `OpenAICompatibleModel` in front of it.'
    made = type(name, (OpenAICompatibleModel, base), {'__doc__': doc, '__module__': __name__})
    return cast(type[OpenAICompatibleModel], made)
