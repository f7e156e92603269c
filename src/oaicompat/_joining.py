"""Whether messages may be given to pydantic-ai, or go through it, many as one; for histories that are worth it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic_ai.models.openai import OpenAIChatModel

from oaicompat._alike import reads_only
from oaicompat._endpoint import Profile
from oaicompat._knobs import adapts


def may_run(profile: Profile, settings: Mapping[str, Any] | None) -> bool:
    """Whether the parent looks at messages one by one: some settings make it look at what went before."""
    fills = profile.get('openai_chat_send_back_thinking_parts') == 'field'
    caches = bool(settings and settings.get('openai_cache_instructions'))
    return not fills and not caches and reads_only(OpenAIChatModel._map_messages, _MAPS)


def may_join(profile: Profile) -> bool:
    """Whether many messages may stand as one on their way to the wire, which nobody looks at but the parent."""
    opens = profile.get('openai_system_prompt_role') == 'user'  # then a user message may be an instruction
    return not opens and not adapts(profile) and reads_only(OpenAIChatModel._completions_create, _SENDS)


# fmt: off
_MAPS = frozenset("""
    ChatCompletionContentPartTextParam ChatCompletionDeveloperMessageParam ChatCompletionSystemMessageParam
    ChatCompletionUserMessageParam ModelRequest ModelResponse ThinkingPart _add_openai_prompt_cache_breakpoint
    _cacheable_instruction_count _get_instruction_parts _has_dynamic_system_prompt _leading_system_message_count
    _map_carried_thinking _map_model_response _map_user_message _merge_leading_system_messages
    _move_leading_cache_breakpoints _request_thinks add_openai_prompt_cache_breakpoint any append assert_never
    bool cacheable_instruction_count cast chat content enumerate get has_dynamic_system_prompt isinstance
    leading_system_message_count len list max merge_leading_system_messages move_leading_cache_breakpoints parts
    profile str
""".split())  # noqa: SIM905
"""What `OpenAIChatModel._map_messages` of pydantic-ai 2.63 to 2.68 names."""

_SENDS = frozenset("""
    APIStatusError Any NOT_GIVEN OMIT OpenAIChatModelSettings _check_azure_content_filter
    _drop_sampling_params_for_reasoning _drop_unsupported_params _finalize_cache_breakpoints _get_stream_options
    _get_tool_choice _get_web_search_options _keep_implicit_cache_without_breakpoints _map_api_errors
    _map_json_schema _map_messages _provider _resolve_openai_service_tier _thinking_false_extra_body
    _translate_thinking _with_default_user_agent cast chat check_azure_content_filter client completions create
    dict drop_sampling_params_for_reasoning drop_unsupported_params get get_user_agent
    keep_implicit_cache_without_breakpoints map_api_errors map_decode_errors model_id_namespace model_name
    output_mode output_object profile resolve_openai_service_tier setdefault system to_httpx2_timeout
    with_max_retries
""".split())  # noqa: SIM905
"""What `OpenAIChatModel._completions_create` of pydantic-ai 2.63 to 2.68 names."""
# fmt: on
