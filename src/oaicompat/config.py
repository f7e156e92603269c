"""Config: YAML or JSON to typed config to model.

`StringModelConfig`, `FallbackModelConfig` and `TestModelConfig` are pydantic models; `load_models()` reads a file of
them by name (`_files.py` reads the bytes and knows the lines). A config becomes a model in `routing.build()`, the
same way as a string does. No type runs code from the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    GetJsonSchemaHandler,
    PrivateAttr,
    SecretStr,
    Tag,
    TypeAdapter,
    field_validator,
    model_validator,
)
from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.settings import ModelSettings, ThinkingLevel
from pydantic_core import CoreSchema
from typing_extensions import override

from oaicompat import _files
from oaicompat._capabilities import STRICT, Capabilities
from oaicompat._environment import expand, expanded
from oaicompat._faults import validated
from oaicompat._providers import check_prefix, checked_url
from oaicompat._secrets import unkeyed
from oaicompat._server import Kind
from oaicompat.profile import knobs
from oaicompat.routing import build_string, is_test, parse
from oaicompat.servers import Server, register_server, registry_restored_on_error

__all__ = (
    'Capabilities',
    'FallbackModelConfig',
    'ModelConfig',
    'ModelsFile',
    'ServerConfig',
    'StringModelConfig',
    'TestModelConfig',
    'json_schema',
    'load_models',
)

_NOT_SETTINGS = frozenset({
    'type', 'identifier', 'base_url', 'api_key', 'api', 'profile', 'headers', 'query', 'context_length', 'capabilities',
})  # fmt: skip


class _Config(BaseModel):
    model_config = STRICT

    _origin: str = PrivateAttr(default='')  # where in a file it stands

    @override
    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]  # holds dicts


def _requires_type(schema: dict[str, Any]) -> None:
    """In a file, the type says which config it is."""
    schema['required'] = ['type', *schema.get('required', ())]


def _placed(get_model: Callable[[Any], Model]) -> Callable[[Any], Model]:
    """Put the place in a file in front of what goes wrong when a model is made."""

    @wraps(get_model)
    def placed(self: _Config) -> Model:
        try:
            return get_model(self)
        except UserError as error:
            raise UserError(f'{self._origin}: {error.message}') if self._origin else error from None
        except ImportError as error:  # it says what to install
            raise ImportError(f'{self._origin}: {error}') if self._origin else error from error.__cause__

    return placed


class StringModelConfig(_Config):
    """One model, named by a string.

    Example:
        ```python
        from oaicompat.config import StringModelConfig

        model = StringModelConfig(identifier='glm-5', base_url='http://localhost:8000/v1').get_model()
        ```
    """

    type: Literal['string'] = 'string'
    identifier: str = Field(description='`PREFIX:NAME`; with `base_url` the name alone will do.')
    base_url: str | None = Field(
        default=None, description='Where the server is. `${VAR}` and `${VAR:-default}` are expanded.'
    )
    api_key: SecretStr | None = Field(
        default=None, description='The key to send. `${VAR}` and `${VAR:-default}` are expanded.'
    )
    api: Literal['chat', 'responses'] | None = Field(
        default=None, description='Default: chat, but for `+responses` prefixes.'
    )
    profile: dict[str, Any] = Field(default_factory=dict, description="Knobs, and keys of pydantic-ai's profile.")
    headers: dict[str, SecretStr] = Field(default_factory=dict, description='Sent with every request; expanded.')
    query: dict[str, SecretStr] = Field(
        default_factory=dict, description='Query parameters of every request; expanded.'
    )
    context_length: int | None = Field(default=None, ge=1, description='Tokens that the model takes in all.')
    capabilities: Capabilities | None = Field(default=None, description='What the model can do; a list or a mapping.')

    max_tokens: int | None = Field(default=None, ge=1, description='Tokens to generate at most.')
    temperature: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    top_p: float | None = Field(default=None, ge=0, le=1)
    timeout: float | None = Field(default=None, ge=0, allow_inf_nan=False, description='Seconds.')
    parallel_tool_calls: bool | None = None
    seed: int | None = None
    presence_penalty: float | None = Field(default=None, ge=-2, le=2)
    frequency_penalty: float | None = Field(default=None, ge=-2, le=2)
    logit_bias: dict[str, int] | None = None
    stop_sequences: list[str] | None = None
    extra_headers: dict[str, SecretStr] | None = Field(default=None, description='Headers of every request; expanded.')
    extra_body: dict[str, Any] | None = None
    thinking: ThinkingLevel | None = None

    @field_validator('profile')
    @classmethod
    def _check_profile(cls, value: dict[str, Any]) -> dict[str, Any]:
        with _as_value_error():
            return knobs(value)

    @model_validator(mode='after')
    def _check_identifier(self) -> StringModelConfig:
        with _as_value_error():
            for identifier in [self.identifier] if is_test(self.identifier) else self.identifier.split(','):
                if is_test(identifier.strip()):
                    continue
                target = parse(identifier, base_url_given=self.base_url is not None)
                if self.base_url is None:
                    check_prefix(identifier, target.prefix)
            if self.base_url is not None and '${' not in self.base_url:
                checked_url(self.base_url)
        return self

    def get_model_settings(self) -> ModelSettings:
        """The settings that are set, as pydantic-ai takes them.

        Raises:
            UserError: If a variable in `extra_headers` is not set.
        """
        given = self.model_dump(exclude=set(_NOT_SETTINGS), exclude_none=True)
        if self.extra_headers is not None:
            given['extra_headers'] = expanded(self.extra_headers, 'extra_headers')
        return cast(ModelSettings, given)

    def _url(self) -> str | None:
        url = expand(self.base_url, 'base_url')
        if url is None or url == self.base_url:
            return url
        try:
            return checked_url(url)
        except UserError:
            # The variable may hold something else than a URL, such as a key.
            raise UserError(
                f'`base_url`: {unkeyed(str(self.base_url))} is not a URL such as http://localhost:8000/v1'
            ) from None

    @_placed
    def get_model(self) -> Model:
        """The model, with its settings on it.

        Raises:
            UserError: If a variable is not set, a key is missing, or the model can't take what is asked of it.
        """
        key = self.api_key.get_secret_value() if self.api_key else None
        profile: dict[str, Any] = {**self.profile, **(self.capabilities.profile() if self.capabilities else {})}
        if self.context_length is not None:
            profile['context_window'] = self.context_length
        return build_string(
            self.identifier,
            base_url=self._url(),
            api_key=expand(key, 'api_key'),
            api=self.api,
            headers=expanded(self.headers, 'headers'),
            query=expanded(self.query, 'query'),
            profile=profile or None,
            settings=self.get_model_settings() or None,
        )


class TestModelConfig(_Config):
    """pydantic-ai's `TestModel`, which needs no server."""

    __test__ = False  # not a test, whatever its name says to pytest

    model_config = ConfigDict(json_schema_extra=_requires_type)

    type: Literal['test'] = 'test'
    text: str | None = Field(default=None, description='What it answers; default: a summary of the tool results.')

    def get_model_settings(self) -> ModelSettings:
        """No settings."""
        return ModelSettings()

    def get_model(self) -> Model:
        """The model."""
        return TestModel(custom_output_text=self.text)


class FallbackModelConfig(_Config):
    """Several models, each tried when the one before it failed; each keeps its own settings."""

    model_config = ConfigDict(json_schema_extra=_requires_type)

    type: Literal['fallback'] = 'fallback'
    models: list[ModelConfig] = Field(min_length=1, description='Configs, identifiers, or names of the same file.')

    def get_model_settings(self) -> ModelSettings:
        """No settings: they are on the children."""
        return ModelSettings()

    @_placed
    def get_model(self) -> Model:
        """The model.

        Raises:
            UserError: If a child can't be made.
        """
        first, *rest = [child.get_model() for child in self.models]
        return FallbackModel(first, *rest)


def _kind(value: object) -> str:
    kind = value.get('type', 'string') if isinstance(value, Mapping) else getattr(value, 'type', 'string')
    return str(kind)


def _from_string(value: object) -> object:
    if isinstance(value, str):
        return {'identifier': value}
    if isinstance(value, Mapping) and 'models' in value and not {'type', 'identifier'} & value.keys():
        raise ValueError('a mapping with `models` needs `type: fallback`')
    if not isinstance(value, Mapping | _Config):
        raise ValueError(f'expected PREFIX:NAME or a mapping with `identifier`, not {type(value).__name__}')
    return value


class _OrString:
    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {'anyOf': [{'type': 'string'}, handler(schema)]}


ModelConfig = Annotated[
    Annotated[StringModelConfig, Tag('string')]
    | Annotated[FallbackModelConfig, Tag('fallback')]
    | Annotated[TestModelConfig, Tag('test')],
    Discriminator(
        _kind, custom_error_type='config_type', custom_error_message='`type` must be string, fallback or test'
    ),
    BeforeValidator(_from_string),
    _OrString(),
]
"""A config of any type; a bare string is a `StringModelConfig`, and so is a mapping without `type`."""

FallbackModelConfig.model_rebuild()


class ServerConfig(_Config):
    """A row of the user's own, as in `oaicompat.Server`; it replaces a row of the same name."""

    base_url: str | None = None
    key_vars: list[str] = Field(default_factory=list)
    url_vars: list[str] = Field(default_factory=list)
    aliases: list[str] = Field(default_factory=list)
    kind: Kind = 'hosted'
    title: str = ''
    upstream: str | None = None
    family: str | None = None
    headers: dict[str, SecretStr] = Field(default_factory=dict)
    profile: dict[str, Any] = Field(default_factory=dict)

    def server(self, prefix: str) -> Server:
        """The row."""
        given: dict[str, Any] = self.model_dump()
        given['headers'] = expanded(self.headers, 'headers')
        given['base_url'] = expand(self.base_url, 'base_url')
        given |= {name: tuple(given[name]) for name in ('key_vars', 'url_vars', 'aliases')}
        return Server(prefix=prefix, **given)


class ModelsFile(_Config):
    """What `load_models()` reads."""

    models: dict[str, ModelConfig]
    servers: dict[str, ServerConfig] = Field(default_factory=dict)

    @model_validator(mode='after')
    def _check_servers(self) -> ModelsFile:
        with _as_value_error():
            for prefix, config in self.servers.items():
                config.server(prefix)
        return self


def load_models(source: str | Path) -> dict[str, StringModelConfig | FallbackModelConfig | TestModelConfig]:
    """Read models by name from YAML or JSON.

    A file has `models: {name: config}`, and may have `servers: {prefix: row}`, which are registered. In a fallback,
    and in place of a config, the name of another model of the file stands for it.

    Args:
        source: A path, or the text itself: a string with a line break or a brace is text.

    Returns:
        The configs by name, references replaced by what they name; `get_model()` makes the model.

    Raises:
        UserError: For a file that can't be read, broken YAML, an unknown key, a bad value, an unknown name or prefix,
            or a cycle; it names the line and the field.

    Example:
        ```python
        from oaicompat.config import load_models

        models = load_models('''
        models:
          fast: {identifier: glm-5, base_url: 'http://localhost:8000/v1', temperature: 0.2}
          safe: {type: fallback, models: [fast, ollama:qwen2.5:7b]}
        ''')
        model = models['safe'].get_model()
        ```
    """
    document = _files.read(source)
    value = document.value
    if not isinstance(value, dict) or not isinstance(value.get('models'), dict):
        raise UserError(f'{document.where(())}: expected a mapping with `models: {{name: config}}`')
    with registry_restored_on_error():
        rows = validated(_SERVERS, value.get('servers') or {}, document, ('servers',), keys=_KEYS)
        for prefix, row in rows.items():
            try:
                register_server(row.server(prefix))
            except UserError as error:
                raise UserError(f'{document.where(("servers", prefix))}: {error.message}') from None
        models = _files.referenced(value['models'], document)
        made = validated(TypeAdapter(ModelsFile), {**value, 'models': models}, document, (), keys=_KEYS).models
    for name, config in made.items():
        config._origin = document.where(('models', name))
    return made


_SERVERS = TypeAdapter(dict[str, ServerConfig])
_KEYS = sorted(
    {
        *StringModelConfig.model_fields,
        *FallbackModelConfig.model_fields,
        *TestModelConfig.model_fields,
        *ServerConfig.model_fields,
        *ModelsFile.model_fields,
        *Capabilities.model_fields,
    }
)


def json_schema() -> dict[str, Any]:
    """The JSON schema of a models file, for editors; `python -m oaicompat schema` prints it."""
    schema = ModelsFile.model_json_schema()
    schema['$schema'] = 'https://json-schema.org/draft/2020-12/schema'
    schema['title'] = 'oaicompat models'
    return schema


@contextmanager
def _as_value_error() -> Iterator[None]:
    """Pydantic gathers `ValueError`s; our errors for misuse are pydantic-ai's."""
    try:
        yield
    except UserError as error:
        raise ValueError(error.message) from None
