"""Capabilities: what a config says that a model can do."""

from __future__ import annotations

from typing import Any, cast

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler, model_validator
from pydantic_core import CoreSchema
from typing_extensions import override

STRICT = ConfigDict(extra='forbid', frozen=True, hide_input_in_errors=True)
"""How configs are read: no unknown keys, no changes, no values in errors of pydantic's own."""


class Capabilities(BaseModel):
    """What a model can do, where its name does not tell; each sets a key of pydantic-ai's profile."""

    model_config = STRICT

    tools: bool | None = Field(default=None, description='Function tools.')
    vision: bool | None = Field(default=None, description='Images in user messages.')
    audio: bool | None = Field(default=None, description='Audio in user messages.')
    documents: bool | None = Field(default=None, description='Documents in user messages.')
    json_schema: bool | None = Field(default=None, description='`response_format` with a JSON schema.')
    json_object: bool | None = Field(default=None, description='`response_format` `json_object`.')
    thinking: bool | None = Field(default=None, description='Reasoning that can be asked for.')

    @model_validator(mode='before')
    @classmethod
    def _from_list(cls, value: object) -> object:
        names = isinstance(value, list) and all(isinstance(name, str) for name in value)
        return dict.fromkeys(cast(list[str], value), True) if names else value

    @classmethod
    @override
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {'anyOf': [{'type': 'array', 'items': {'enum': list(cls.model_fields)}}, handler(core_schema)]}

    def profile(self) -> dict[str, bool]:
        """The profile keys that are set."""
        keys = {
            'tools': 'supports_tools',
            'vision': 'supports_image_input',
            'audio': 'supports_audio_file_input',
            'documents': 'supports_document_input',
            'json_schema': 'supports_json_schema_output',
            'json_object': 'supports_json_object_output',
            'thinking': 'supports_thinking',
        }
        return {keys[name]: value for name, value in self.model_dump(exclude_none=True).items()}
