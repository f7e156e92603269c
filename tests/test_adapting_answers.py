"""Refusals that come as answers with status 200, and the time that all tries of one call have together."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai.exceptions import ModelHTTPError, ModelTimeoutError
from test_completions import HISTORY, TOOLS, text_of

from oaicompat import OpenAICompatibleModel
from oaicompat.testing import Reply, ScriptedServer, chunk, completion

REFUSED = {'error': {'message': "Unknown parameter: 'store'.", 'code': 400}}
STOP = chunk({}, finish_reason='stop')


async def asked(
    script: list[Reply], *, stream: bool, **profile: Any
) -> tuple[str, list[dict[str, Any]], dict[str, Any]]:
    """The text, the bodies that were sent, and what was learned."""
    async with ScriptedServer(script) as server:
        model = OpenAICompatibleModel('m', base_url=server.base_url, api_key='key', profile=profile or None)  # type: ignore[arg-type]
        model.client.max_retries = 0
        settings: Any = {'openai_store': False}
        async with model:
            if stream:
                async with model.request_stream(HISTORY, settings, TOOLS) as answer:
                    text = ''.join([text_of(event) async for event in answer])
            else:
                text = (await model.request(HISTORY, settings, TOOLS)).text or ''
        return text, [request.json for request in server.requests], dict(model.learned)


@pytest.mark.parametrize('stream', [True, False])
@pytest.mark.parametrize('as_event', [True, False])
async def test_a_refusal_with_status_200_is_adapted(stream: bool, as_event: bool) -> None:
    refusal = Reply.sse(REFUSED) if as_event else Reply.json(REFUSED)
    good = Reply.sse(chunk('Hi'), STOP) if stream else Reply.json(completion('Hi'))
    text, [first, second], learned = await asked([refusal, good], stream=stream)
    assert (text, learned) == ('Hi', {'compat_omit': ('store',)})
    assert second == {key: value for key, value in first.items() if key != 'store'}


async def test_one_inside_of_a_stream_is_raised() -> None:
    with pytest.raises(ModelHTTPError, match='Unknown parameter'):
        await asked([Reply.sse(chunk('Hi'), REFUSED)], stream=True)


async def test_all_tries_together_have_the_time_of_one_call() -> None:
    refusals = [
        Reply.json({'error': {'message': f"Unknown parameter: '{name}'."}}, 400, delay=0.15)
        for name in ('store', 'tools.function.strict', 'stream')
    ]
    with pytest.raises(ModelTimeoutError, match='compat_unary_timeout'):
        await asked([*refusals, Reply.json(completion('Hi'), delay=0.15)], stream=False, compat_unary_timeout=0.2)
