"""The demo: one agent, run with pydantic-ai's model and with ours, on a real server.

`run()` finds or starts the server, runs both agents and hands what they sent to `_view`. Needs the extra `demo`.
"""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.exceptions import AgentRunError, UserError
from pydantic_ai.models.openai import OpenAIChatModel

from oaicompat import _urls
from oaicompat._client import post_json
from oaicompat._environment import key_in
from oaicompat._sdk import record_bodies
from oaicompat.models import OpenAICompatibleModel
from oaicompat.routing import build_string

QUESTION = 'What is the weather in Rome?'


def run(*, model: str | None = None, base_url: str | None = None, api_key_env: str | None = None) -> int:
    """Run the demo, on the bundled server where neither `model` nor `base_url` is given.

    Args:
        model: `PREFIX:NAME`, or with `base_url` the name alone.
        base_url: The user's own server.
        api_key_env: The variable that holds the key for it.

    Returns:
        The exit status.

    Raises:
        UserError: For options that don't go together, or a variable that is not set.
        ImportError: If the extra is not installed.
    """
    if model is None and (base_url is not None or api_key_env is not None):
        raise UserError('--base-url and --api-key-env need --model NAME')
    try:
        from oaicompat._demo import _view
    except ImportError as error:
        raise ImportError(f'the demo needs {error.name}; install the extra: pip install "oaicompat[demo]"') from None

    if model is not None:
        return asyncio.run(_closing(_model(model, base_url, api_key_env), _view))
    from oaicompat._demo._server import tiny_server

    with tiny_server() as url:
        tiny = OpenAICompatibleModel('tiny', base_url=url, profile={'compat_tool_return': 'native'})
        return asyncio.run(_closing(tiny, _view))


def _model(name: str, base_url: str | None, api_key_env: str | None) -> OpenAICompatibleModel:
    made = build_string(name, base_url=base_url, api_key=key_in(api_key_env, '--api-key-env'))
    if not isinstance(made, OpenAICompatibleModel):
        raise UserError(f'{name!r} gives {type(made).__name__}, which is not a Chat Completions model of oaicompat')
    return made


async def _closing(ours: OpenAICompatibleModel, view: Any) -> int:
    async with ours:
        return await _compare(ours, view)


async def _compare(ours: OpenAICompatibleModel, view: Any) -> int:
    stock = OpenAIChatModel(ours.model_name, provider=ours._provider)
    view.headline(ours.model_name, _urls.host(ours.base_url), QUESTION)
    shown = []
    for title, model in (('pydantic-ai', stock), ('oaicompat', ours)):
        bodies: list[dict[str, Any]] = []
        try:
            with record_bodies(model.client, bodies):
                await _ask(model, title, view)
        except AgentRunError as error:
            if model is ours:
                raise AgentRunError(f'{ours.base_url}: {error.message}') from error
            view.failed(title, error.message)
        sent = next((body for body in reversed(bodies) if _tool_message(body)), None)
        shown.append((title, _tool_message(sent), await _prompt(model, sent)))
    view.side_by_side(shown)
    return 0 if shown[-1][1] else 1


async def _ask(model: OpenAIChatModel, title: str, view: Any) -> None:
    agent = Agent(model, model_settings={'temperature': 0})

    @agent.tool_plain
    def get_weather(city: str) -> list[str]:
        """The weather in a city, one observation an element."""
        return [f'{city}: "sunny", 24 °C', 'wind: light, from the sea']

    with view.answering(title) as say:
        async with agent.run_stream(QUESTION) as answer:
            async for text in answer.stream_text(delta=True):
                say(text)


def _tool_message(body: dict[str, Any] | None) -> dict[str, Any] | None:
    messages = body.get('messages', []) if body else []
    return next((message for message in messages if message['role'] == 'tool'), None)


async def _prompt(model: OpenAIChatModel, body: dict[str, Any] | None) -> str | None:
    """The prompt that a llama.cpp server makes of `body`; `None` where the server can't be asked."""
    if body is None:
        return None
    asked = {key: value for key, value in body.items() if key in ('model', 'messages', 'tools')}
    answer = await post_json(model.client, f'{_urls.server_root(model.base_url)}/apply-template', asked)
    prompt = answer.value.get('prompt') if isinstance(answer.value, dict) else None
    return prompt if isinstance(prompt, str) else None
