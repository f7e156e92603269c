"""The public API's types: checked by mypy, never run."""

from __future__ import annotations

from pathlib import Path
from typing import Any, assert_type

from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.models import Model
from pydantic_ai.models import infer_model as pydantic_infer_model
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers import Provider, infer_provider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.settings import ModelSettings

import oaicompat
from oaicompat import (
    CompatibleModelProfile,
    ListedModel,
    OpenAICompatibleModel,
    OpenAICompatibleResponsesModel,
    Server,
    infer_model,
    list_models,
    register_server,
)
from oaicompat.config import FallbackModelConfig, StringModelConfig, load_models

# Constructors: the parent's arguments, and ours

OpenAICompatibleModel('glm-5')
OpenAICompatibleModel('glm-5', base_url='http://localhost:8000/v1', api_key=None)
OpenAICompatibleModel('deepseek-chat', provider='deepseek')
OpenAICompatibleModel('gpt-5', provider=OpenAIProvider(api_key='key'), settings=ModelSettings(temperature=0.5))
OpenAICompatibleModel('glm-5', profile={'compat_tool_return': 'joined', 'compat_adapt': 'off'})
OpenAICompatibleModel('glm-5', profile=OpenAIModelProfile(openai_system_prompt_role='user'))
OpenAICompatibleModel('glm-5', profile=ModelProfile(supports_tools=False))
OpenAICompatibleModel('glm-5', provider=5)  # type: ignore[arg-type]
OpenAICompatibleModel('glm-5', profile={'compat_tool_return': 'made-up'})  # type: ignore[arg-type]
OpenAICompatibleResponsesModel('gpt-5', base_url='http://localhost:8000/v1', profile={'compat_tool_return': 'native'})


def without_tools(profile: ModelProfile) -> ModelProfile:
    return {**profile, 'supports_tools': False}


model = OpenAICompatibleModel('glm-5', profile=without_tools)

# Instances are the parent's, and go where those go

chat: OpenAIChatModel = model
responses: OpenAIResponsesModel = OpenAICompatibleResponsesModel('gpt-5')
Agent(model)
Agent(responses)
assert_type(model.client, AsyncOpenAI)
assert_type(model.profile, CompatibleModelProfile)
assert_type(model.model_name, str)
model.learned['compat_tool_return']
model.learned['compat_tool_return'] = 'native'  # type: ignore[index]
model.forget()

# Knobs

knobs: CompatibleModelProfile = {'compat_tool_return': 'auto', 'compat_adapt': 'on', 'supports_tools': True}
openai_knobs: OpenAIModelProfile = knobs
CompatibleModelProfile(tool_return_as_list='true')
CompatibleModelProfile(tool_return_as_list=True, openai_chat_supports_multiple_system_messages=False)
CompatibleModelProfile(compat_tool_return=True)  # type: ignore[typeddict-item]
CompatibleModelProfile(compat_made_up='on')  # type: ignore[typeddict-unknown-key]

# Router


def own_provider(name: str) -> Provider[Any]:
    return infer_provider(name)


assert_type(infer_model('lm-studio:qwen3-8b'), Model)
assert_type(infer_model('deepseek:a, ollama:b:7b', own_provider), Model)
assert_type(infer_model(model, provider_factory=infer_provider), Model)
infer_model(5)  # type: ignore[arg-type]
drop_in = pydantic_infer_model
drop_in = infer_model

register_server(Server(prefix='acme', base_url='https://llm.acme.test/v1', key_vars=('ACME_API_KEY',)))
register_server(Server(prefix='acme', kind='local', profile=knobs, headers={'x-made-up': 'yes'}))
Server('acme')  # type: ignore[call-arg]
Server(prefix='acme', kind='made-up')  # type: ignore[arg-type]

# Discovery


async def discover() -> None:
    assert_type(await list_models(), list[ListedModel])
    assert_type(await list_models('lm-studio'), list[ListedModel])
    await list_models(base_url='http://localhost:1234/v1', api_key=None)
    await list_models(provider=OpenAIProvider(api_key='key'))
    await list_models(5)  # type: ignore[arg-type]
    [listed] = await list_models('vllm', base_url='http://gpu-box.lan:8000')
    assert_type(listed.id, str)
    assert_type(listed.context_window, int | None)
    assert_type(listed.owned_by, str | None)
    listed.id = 'made-up'  # type: ignore[misc]


# Config

config = StringModelConfig(identifier='glm-5', base_url='http://localhost:8000/v1')
assert_type(config.get_model(), Model)
assert_type(config.get_model_settings(), ModelSettings)
FallbackModelConfig(type='fallback', models=[config]).get_model()
for name, loaded in load_models(Path('models.yaml')).items():
    assert_type(name, str)
    assert_type(loaded.get_model(), Model)
load_models('models: {}')


def no_such_name() -> None:
    """A name that the package does not have is an error."""
    oaicompat.no_such_name  # type: ignore[attr-defined]  # noqa: B018
