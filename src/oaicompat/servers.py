"""Servers: one row of data for each OpenAI-compatible server that a prefix names.

A row says where the server is, which variables hold its key, and what is known of it, each with its evidence.
Rows are data: behaviour lives behind the profile keys they set. Users add or replace rows with
`register_server()`, or in YAML under `servers:`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import cast

from pydantic_ai.exceptions import UserError
from pydantic_ai.providers import infer_provider_class

from oaicompat import _urls
from oaicompat._server import Server
from oaicompat.profile import CompatibleModelProfile

__all__ = ('Server', 'find_server', 'nearest_prefixes', 'register_server', 'server_at', 'servers')

_JOINED = CompatibleModelProfile(compat_tool_return='joined')
_NO_REASONING = CompatibleModelProfile(openai_chat_send_back_thinking_parts=False)
_MISTRAL = CompatibleModelProfile(openai_chat_send_back_thinking_parts=False, compat_tool_call_ids='alnum9')

_ROWS = (
    Server(
        prefix='deepseek',
        title='DeepSeek',
        base_url='https://api.deepseek.com',
        key_vars=('DEEPSEEK_API_KEY',),
        upstream='deepseek',
        evidence='https://api-docs.deepseek.com/',
        profile=_JOINED,
        known='A list in a tool message was refused (https://github.com/Gitlawb/openclaude/issues/774) and silently '
        'mangled (https://github.com/gptme/gptme/pull/3472).',
        read='2026-11-30',
    ),
    Server(
        prefix='grok',
        aliases=('xai-compat',),
        title='xAI',
        base_url='https://api.x.ai/v1',
        key_vars=('XAI_API_KEY', 'X_AI_API_KEY', 'GROK_API_KEY'),
        family='x-ai',
        evidence='https://docs.x.ai/developers/quickstart.md',
        read='2026-11-30',
        unchecked="X_AI_API_KEY and GROK_API_KEY are names that users have, not xAI's",
    ),
    Server(
        prefix='openrouter',
        title='OpenRouter',
        base_url='https://openrouter.ai/api/v1',
        key_vars=('OPENROUTER_API_KEY',),
        upstream='openrouter',
        evidence='https://openrouter.ai/docs/quickstart',
        read='2026-11-30',
    ),
    Server(
        prefix='perplexity',
        title='Perplexity',
        base_url='https://api.perplexity.ai',
        key_vars=('PERPLEXITY_API_KEY',),
        evidence='https://docs.perplexity.ai/docs/sonar/openai-compatibility.md',
        read='2026-11-30',
        unchecked='clients report that its chat completions ended on 2026-09-27 '
        '(https://github.com/vercel/ai/releases/tag/@ai-sdk%2Fperplexity@3.1.0)',
    ),
    Server(
        prefix='lm-studio',
        aliases=('lmstudio',),
        title='LM Studio',
        base_url='http://localhost:1234/v1',
        key_vars=('LM_API_TOKEN', 'LM_STUDIO_API_KEY'),
        url_vars=('LM_STUDIO_BASE_URL',),
        kind='local',
        evidence='https://lmstudio.ai/docs/api/openai-api',
        profile=_JOINED,
        known="Whether a list survives depends on the chat template, and the server can't be asked "
        '(https://github.com/NousResearch/hermes-agent/pull/95229).',
        read='2026-11-30',
        unchecked='LM_STUDIO_API_KEY and LM_STUDIO_BASE_URL are names that clients use',
    ),
    Server(
        prefix='zen',
        title='OpenCode Zen',
        base_url='https://opencode.ai/zen/v1',
        key_vars=('OPENCODE_API_KEY', 'OPENCODE_ZEN_API_KEY'),
        evidence='https://opencode.ai/docs/zen',
        known='Only part of its catalogue answers on `/chat/completions`; its GPT models are on `/responses`.',
        read='2026-11-30',
        unchecked="the documentation names no variable; OPENCODE_API_KEY is models.dev's",
    ),
    Server(
        prefix='copilot',
        aliases=('github-copilot',),
        title='GitHub Copilot',
        base_url='https://api.githubcopilot.com',
        key_vars=('GITHUB_COPILOT_API_KEY', 'GITHUB_COPILOT_API_TOKEN', 'COPILOT_GITHUB_TOKEN'),
        url_vars=('GITHUB_COPILOT_BASE_URL', 'COPILOT_API_URL', 'GITHUB_COPILOT_API_BASE'),
        upstream='github-copilot',
        evidence='https://github.com/BerriAI/litellm/issues/13256',
        known="Wants the headers `editor-version` and `Copilot-Integration-Id`, which pydantic-ai's provider sends.",
        read='2026-11-30',
        unchecked='GitHub publishes no contract for this API',
    ),
    Server(
        prefix='groq-compat',
        title='Groq',
        base_url='https://api.groq.com/openai/v1',
        key_vars=('GROQ_API_KEY',),
        family='groq',
        evidence='https://console.groq.com/docs/openai',
        profile=_NO_REASONING,
        known='Refused a list in a tool message with 400 (https://github.com/CherryHQ/cherry-studio/issues/3307), and '
        'refuses `reasoning` in the history for some models (https://github.com/vercel/ai/pull/8057).',
        read='2026-11-30',
    ),
    Server(
        prefix='mistral-compat',
        title='Mistral',
        base_url='https://api.mistral.ai/v1',
        key_vars=('MISTRAL_API_KEY',),
        family='mistralai',
        evidence='https://docs.mistral.ai/developers/quickstarts/first-api-request',
        profile=_MISTRAL,
        known='Refuses `reasoning_content` in the history with 422 (https://github.com/BerriAI/litellm/issues/30835), '
        'and ids of tool calls that are not nine letters or digits (https://github.com/anomalyco/opencode/issues/1680).',
        read='2026-11-30',
        unchecked='the URL is from clients',
    ),
    Server(
        prefix='anthropic-compat',
        title='Anthropic',
        base_url='https://api.anthropic.com/v1',
        key_vars=('ANTHROPIC_API_KEY',),
        family='anthropic',
        evidence='https://platform.claude.com/docs/en/cli-sdks-libraries/libraries/openai-sdk',
        known='Anthropic offers this layer for testing, not for production.',
        read='2026-11-30',
    ),
    Server(
        prefix='gemini-compat',
        title='Gemini',
        base_url='https://generativelanguage.googleapis.com/v1beta/openai',
        key_vars=('GEMINI_API_KEY', 'GOOGLE_API_KEY'),
        family='google',
        evidence='https://ai.google.dev/gemini-api/docs/openai',
        read='2026-11-30',
    ),
    Server(
        prefix='together',
        title='Together AI',
        base_url='https://api.together.xyz/v1',
        key_vars=('TOGETHER_API_KEY',),
        url_vars=('TOGETHER_BASE_URL',),
        upstream='together',
        evidence='https://docs.together.ai/docs/inference/openai-compatibility',
        read='2026-11-30',
        unchecked='the documentation says api.together.ai, its Python SDK and pydantic-ai api.together.xyz',
    ),
    Server(
        prefix='ollama',
        title='Ollama',
        base_url='http://localhost:11434/v1',
        key_vars=('OLLAMA_API_KEY',),
        url_vars=('OLLAMA_BASE_URL',),
        kind='local',
        upstream='ollama',
        evidence='https://github.com/ollama/ollama/blob/main/docs/api/openai-compatibility.mdx',
        read='2026-11-30',
    ),
    Server(
        prefix='llama-cpp',
        aliases=('llamacpp',),
        title='llama.cpp',
        base_url='http://localhost:8080/v1',
        key_vars=('LLAMA_API_KEY',),
        url_vars=('LLAMA_CPP_BASE_URL',),
        kind='local',
        evidence='https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md',
        known="Its `/apply-template` is asked whether the model's template shows each element of a list. Builds after "
        '2026-08 listen on port 9931 (https://github.com/ggml-org/llama.cpp/pull/26508): set LLAMA_CPP_BASE_URL there.',
        read='2026-11-30',
        unchecked="LLAMA_CPP_BASE_URL is this project's name",
    ),
    Server(
        prefix='vllm',
        title='vLLM',
        base_url='http://localhost:8000/v1',
        key_vars=('VLLM_API_KEY',),
        url_vars=('VLLM_BASE_URL',),
        kind='local',
        upstream='vllm',
        evidence='https://docs.vllm.ai/en/stable/serving/openai_compatible_server.html',
        known='Joins the texts of a list by a newline before any template sees it.',
        read='2026-11-30',
        unchecked="VLLM_BASE_URL is pydantic-ai's name",
    ),
    Server(
        prefix='sglang',
        title='SGLang',
        base_url='http://localhost:30000/v1',
        key_vars=('SGLANG_API_KEY',),
        url_vars=('SGLANG_BASE_URL',),
        kind='local',
        evidence='https://github.com/sgl-project/sglang/blob/main/docs/advanced_features/server_arguments.md',
        read='2026-11-30',
        unchecked='SGLang names no variables',
    ),
    Server(
        prefix='zai',
        aliases=('glm', 'z-ai'),
        title='Z.ai',
        base_url='https://api.z.ai/api/paas/v4',
        key_vars=('ZAI_API_KEY',),
        url_vars=('ZAI_BASE_URL',),
        upstream='zai',
        evidence='https://docs.z.ai/api-reference/introduction.md',
        profile=_JOINED,
        known='Refuses a list for glm-4.7 and glm-5.1 with 400, code 1214, and silently empties it for glm-4.5-air '
        '(https://github.com/BerriAI/litellm/pull/29471, https://github.com/BerriAI/litellm/issues/25868).',
        read='2026-11-30',
    ),
    Server(
        prefix='moonshotai',
        aliases=('moonshot', 'kimi'),
        title='Moonshot AI',
        base_url='https://api.moonshot.ai/v1',
        key_vars=('MOONSHOT_API_KEY', 'MOONSHOTAI_API_KEY'),
        url_vars=('MOONSHOTAI_BASE_URL',),
        upstream='moonshotai',
        evidence='https://platform.kimi.com/docs/api/overview',
        read='2026-11-30',
        unchecked="MOONSHOTAI_API_KEY and MOONSHOTAI_BASE_URL are pydantic-ai's names",
    ),
    Server(
        prefix='alibaba',
        aliases=('dashscope', 'qwen'),
        title='Alibaba Cloud Model Studio',
        base_url='https://dashscope-intl.aliyuncs.com/compatible-mode/v1',
        key_vars=('DASHSCOPE_API_KEY', 'ALIBABA_API_KEY'),
        url_vars=('DASHSCOPE_BASE_URL',),
        upstream='alibaba',
        evidence='https://www.alibabacloud.com/help/model-studio/base-url',
        known='Keys belong to a region; a key of another region gets 401.',
        read='2026-11-30',
        unchecked="ALIBABA_API_KEY is pydantic-ai's name, DASHSCOPE_BASE_URL this project's",
    ),
    Server(
        prefix='siliconflow',
        title='SiliconFlow',
        base_url='https://api.siliconflow.com/v1',
        key_vars=('SILICONFLOW_API_KEY',),
        url_vars=('SILICONFLOW_BASE_URL',),
        evidence='https://www.siliconflow.com/blog/openai-sdk-siliconflow-compatibility-checks',
        known='Refused a list in a tool message with 400, code 20015 '
        '(https://github.com/CherryHQ/cherry-studio/pull/3474).',
        read='2026-11-30',
        unchecked="the variables are models.dev's and this project's; accounts of the .cn site need its own base URL",
    ),
    Server(
        prefix='minimax',
        title='MiniMax',
        base_url='https://api.minimax.io/v1',
        key_vars=('MINIMAX_API_KEY',),
        url_vars=('MINIMAX_BASE_URL',),
        evidence='https://platform.minimaxi.com/docs/api-reference/text-openai-api',
        read='2026-11-30',
        unchecked="the page names OPENAI_API_KEY for its key; MINIMAX_API_KEY is models.dev's",
    ),
    Server(
        prefix='nvidia',
        title='NVIDIA NIM',
        base_url='https://integrate.api.nvidia.com/v1',
        key_vars=('NVIDIA_API_KEY',),
        evidence='https://docs.nvidia.com/nim/large-language-models/latest/api-reference.html',
        read='2026-11-30',
        unchecked="the page itself was not read; the URL and the variable are from NVIDIA's packages",
    ),
    Server(
        prefix='litellm',
        title='LiteLLM proxy',
        key_vars=('LITELLM_PROXY_API_KEY', 'LITELLM_API_KEY'),
        url_vars=('LITELLM_PROXY_API_BASE', 'LITELLM_BASE_URL'),
        kind='self-hosted',
        upstream='litellm',
        evidence='https://docs.litellm.ai/docs/providers/litellm_proxy',
        read='2026-11-30',
        unchecked='LITELLM_API_KEY and LITELLM_BASE_URL are names that clients use',
    ),
)

_registry: dict[str, Server] = {}
_RESERVED = frozenset({'openai', 'openai-chat', 'openai-responses', 'test'})


def _spelling(prefix: str) -> str:
    return prefix.lower().replace('_', '-')


def register_server(server: Server) -> None:
    """Add a row, or replace the one with the same prefix; its aliases follow.

    Args:
        server: The row. Models that exist already keep the row they were made with.

    Raises:
        UserError: If pydantic-ai has no provider for its `upstream`, or the prefix means OpenAI itself.

    Example:
        ```python
        from oaicompat import Server, infer_model, register_server

        register_server(Server(prefix='acme', base_url='https://llm.acme.test/v1', key_vars=('ACME_API_KEY',)))
        ```
    """
    if not isinstance(cast(object, server), Server):
        raise UserError(f'`server` must be a Server, not {type(server).__name__}')
    reserved = {_spelling(name) for name in (server.prefix, *server.aliases)} & _RESERVED
    if reserved:
        raise UserError(f'`prefix` {min(reserved)!r} has a meaning of its own; choose another for this server')
    if server.upstream is not None:
        try:
            infer_provider_class(server.upstream)
        except ImportError:
            pass  # pydantic-ai knows it, and says what to install when the model is made
        except ValueError:
            raise UserError(
                f'`upstream` of server {server.prefix!r} is {server.upstream!r}; expected the name of a provider of '
                'pydantic-ai, such as ollama, or none'
            ) from None
    _add(server)


def _add(server: Server) -> None:
    own = _spelling(server.prefix)
    replaced = _registry.get(own)
    # A row that has this name as its own goes, aliases and all; one that has it as an alias only loses the alias.
    if replaced is not None and _spelling(replaced.prefix) == own:
        for name in [name for name, row in _registry.items() if row is replaced]:
            del _registry[name]
    for name in (server.prefix, *server.aliases):
        _registry[_spelling(name)] = server


@contextmanager
def registry_restored_on_error() -> Iterator[None]:
    """Take back the rows that were registered inside, should anything fail there."""
    before = dict(_registry)
    try:
        yield
    except BaseException:
        _registry.clear()
        _registry.update(before)
        raise


def find_server(prefix: str) -> Server | None:
    """The row that `prefix` names; case, and `_` for `-`, make no difference."""
    return _registry.get(_spelling(prefix))


def servers() -> Iterator[Server]:
    """All rows, each once, in the order they were registered."""
    return iter({row.prefix: row for row in _registry.values()}.values())


def server_at(url: str) -> Server | None:
    """The hosted row that `url`'s host belongs to."""
    return next((row for row in servers() if row.kind == 'hosted' and _urls.same_host(url, row.base_url)), None)


def nearest_prefixes(prefix: str, others: Iterable[str] = ()) -> list[str]:
    """The prefixes, of rows and of `others`, that look most like `prefix`, best first."""
    return get_close_matches(_spelling(prefix), {**_registry, **dict.fromkeys(others)}, n=3, cutoff=0.6)


for _row in _ROWS:
    _add(_row)
