"""Rows: what is known of each server, as data with its evidence. `servers.py` finds and adds them."""

from __future__ import annotations

from oaicompat._dialects import DIALECTS
from oaicompat._server import Server
from oaicompat.profile import CompatibleModelProfile


def _schema(dialect: str) -> CompatibleModelProfile:
    return CompatibleModelProfile(compat_schema=DIALECTS[dialect].rewrites)


_JOINED = CompatibleModelProfile(compat_tool_return='joined')
# The schema goes into the prompt, so that pydantic-ai's native output works there, too.
_DEEPSEEK = CompatibleModelProfile(
    compat_tool_return='joined', compat_json_schema=False, supports_json_schema_output=True
)
_LM_STUDIO = CompatibleModelProfile(
    compat_tool_return='joined', compat_json_object=False, compat_named_tool_choice=False
)
_GROQ = CompatibleModelProfile(openai_chat_send_back_thinking_parts=False, **_schema('groq'))
_MISTRAL = CompatibleModelProfile(
    openai_chat_send_back_thinking_parts=False,
    openai_chat_supports_max_completion_tokens=False,
    compat_tool_call_ids='alnum9',
    compat_omit=('stream_options',),
    **_schema('mistral'),
)

ROWS = (
    Server(
        prefix='deepseek',
        title='DeepSeek',
        base_url='https://api.deepseek.com',
        key_vars=('DEEPSEEK_API_KEY',),
        upstream='deepseek',
        evidence='https://api-docs.deepseek.com/',
        profile=_DEEPSEEK,
        known='A list in a tool message was refused (https://github.com/Gitlawb/openclaude/issues/774) and silently '
        'mangled (https://github.com/gptme/gptme/pull/3472).'
        ' Takes `json_object` but no `json_schema` (https://github.com/llm-exe/llm-exe/issues/662).',
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
        profile=CompatibleModelProfile(compat_roles='alternate'),
        known='Wants user and assistant to take turns (https://github.com/perplexityai/api-discussion/issues/265).',
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
        profile=_LM_STUDIO,
        known="Whether a list survives depends on the chat template, and the server can't be asked "
        '(https://github.com/NousResearch/hermes-agent/pull/95229).'
        ' Takes `json_schema` but no `json_object` (https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/307), '
        'and no `tool_choice` that is an object (https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/670).',
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
        profile=_GROQ,
        known='Refused a list in a tool message with 400 (https://github.com/CherryHQ/cherry-studio/issues/3307), and '
        'refuses `reasoning` in the history for some models (https://github.com/vercel/ai/pull/8057).'
        ' Structured output takes no bounds on lists (https://console.groq.com/docs/structured-outputs).',
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
        'and ids of tool calls that are not nine letters or digits (https://github.com/anomalyco/opencode/issues/1680).'
        ' Takes `max_tokens` alone (https://github.com/editor-code-assistant/eca/issues/231) and no `stream_options` '
        '(https://github.com/dnakov/anon-kode/issues/53); `strict` schemas without patterns and lengths '
        '(https://github.com/BerriAI/litellm/pull/13389).',
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
        profile=_schema('gemini'),
        known='Refuses keywords of JSON Schema by name (https://github.com/openswarm-ai/openswarm/issues/24).',
        read='2026-11-30',
    ),
    Server(
        prefix='cerebras',
        title='Cerebras',
        base_url='https://api.cerebras.ai/v1',
        key_vars=('CEREBRAS_API_KEY',),
        upstream='cerebras',
        evidence='https://inference-docs.cerebras.ai/resources/openai',
        profile=_schema('cerebras'),
        known='Refuses schemas with patterns, formats or bounds, and wants `additionalProperties: false` '
        '(https://github.com/elizaOS/eliza/pull/11156).',
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
        profile=_schema('moonshot'),
        known='Takes a dialect of JSON Schema of its own (https://github.com/MoonshotAI/kimi-cli/issues/1595).',
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
        profile=CompatibleModelProfile(compat_late_system='lift'),
        known='Refuses a system message anywhere but at the beginning (https://github.com/BigPizzaV3/CodexPlusPlus/issues/267).',
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
"""The rows that come with the package."""
