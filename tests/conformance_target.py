"""How the conformance runner reaches the library: plain constructor calls with default knobs.

The SDK's blind retries are off, since every reply of the runner's server is fixed. Each case has a server of its own:
what the one before taught is forgotten, for the system may give its port again.
"""

from __future__ import annotations

from pydantic_ai.models import Model

import oaicompat
from oaicompat import ListedModel, OpenAICompatibleModel, OpenAICompatibleResponsesModel
from oaicompat._memory import MEMORY


def factory(base_url: str, model_name: str, api_key: str | None) -> Model:
    MEMORY.clear()
    model = OpenAICompatibleModel(model_name, base_url=base_url, api_key=api_key)
    model.client.max_retries = 0
    return model


def responses_model(base_url: str, model_name: str, api_key: str | None) -> Model:
    MEMORY.clear()
    model = OpenAICompatibleResponsesModel(model_name, base_url=base_url, api_key=api_key)
    model.client.max_retries = 0
    return model


async def list_models(base_url: str, api_key: str | None) -> list[ListedModel]:
    return await oaicompat.list_models(base_url=base_url, api_key=api_key)
