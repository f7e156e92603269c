"""Bodies that are no UTF-8: read by the charset that the server told, else with U+FFFD, and never secretly."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from pydantic_ai import messages as m
from pydantic_ai.exceptions import ModelAPIError
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from oaicompat import OpenAICompatibleModel
from oaicompat._patterns import lazy
from oaicompat.testing import Reply, ScriptedServer, completion

HISTORY: list[m.ModelMessage] = [m.ModelRequest([m.UserPromptPart('Hi')])]
BODY = json.dumps(completion('café'), ensure_ascii=False)
NAMED = {'oaicompat': ['sse.invalid_utf8']}


@pytest.mark.parametrize(
    ('encoding', 'told', 'text', 'details'),
    [
        ('latin-1', 'application/json; charset=iso-8859-1', 'café', NAMED),
        ('cp1252', 'application/json; charset="windows-1252"', 'café', NAMED),
        ('latin-1', 'application/json', 'caf\ufffd', NAMED),
        ('latin-1', 'application/json; charset=utf-8', 'caf\ufffd', NAMED),
        ('latin-1', 'application/json; charset=no-such', 'caf\ufffd', NAMED),
        ('utf-8', 'application/json; charset=iso-8859-1', 'café', {}),
    ],
)
async def test_a_whole_answer(encoding: str, told: str, text: str, details: dict[str, Any]) -> None:
    reply = Reply.raw(BODY.encode(encoding), headers={'content-type': told})

    async def asked(model: Model) -> m.ModelResponse:
        async with model:
            return await model.request(HISTORY, None, ModelRequestParameters())

    async with ScriptedServer([reply] * 4) as server:
        answer = await asked(OpenAICompatibleModel('m', base_url=server.base_url))
        parent = OpenAIChatModel('m', provider=OpenAIProvider(base_url=server.base_url, api_key='k'))
        provider = OpenAIProvider(base_url=server.base_url, api_key='k')
        assert (await asked(OpenAICompatibleModel('m', provider=provider))).parts == answer.parts
        strict = OpenAICompatibleModel('m', base_url=server.base_url, profile={'compat_repair': 'strict'})
        if details:
            with pytest.raises(ModelAPIError):
                await asked(parent)
            with pytest.raises(ModelAPIError, match=r'sse\.invalid_utf8'):
                await asked(strict)
        else:
            assert (await asked(parent)).parts == (await asked(strict)).parts == answer.parts
    assert answer.parts == [m.TextPart(text)]
    assert answer.provider_details is not None
    assert {key: value for key, value in answer.provider_details.items() if key == 'oaicompat'} == details


def test_a_pattern_that_was_not_used_can_be_copied() -> None:
    pattern: Any = lazy('a+')
    assert copy.deepcopy(pattern).fullmatch('aa') is not None
    assert copy.copy(pattern).fullmatch('aa') is not None
