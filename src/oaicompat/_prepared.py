"""What `prepare_messages` of pydantic-ai leaves alone, left out of the history that it is given.

Each of its passes looks at every message, though nearly all of them say nothing but text, calls and results. Such a
message, once it came out as it went in, can neither be changed by another nor change one, but that results are put in
the order of the calls in front of them: so the next time it is not asked about, if those are still there. This holds
for the passes that there were when this was written, and for no others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from weakref import ref

from pydantic_ai.messages import TextPart, ThinkingPart, ToolCallPart, ToolReturnPart, UserPromptPart

from oaicompat._alike import prepares_alike
from oaicompat._mapping import LEAST
from oaicompat._unchanged import Chunk, Memory, Snapshot

try:
    from pydantic_ai._framing import in_second_model_prompt
except ImportError:  # there was no such prompt before, nor these passes
    in_second_model_prompt = bool

# fmt: off
_PASSES = frozenset("""
    ModelRequest ModelRequestParameters SUPPORTED_NATIVE_TOOLS ToolAvailabilityDeltaPart ToolSearchTool
    _announce_in_standing_prompt _announce_tool_availability_delta_messages _convert_speech_parts
    _drop_capability_load_deltas _drop_request_scoped_prompts_no_user_message_clears
    _drop_superseded_request_scoped_prompts _fit_tool_call_ids _framing_announcement _has_instruction_state
    _has_mid_conversation_system_prompt _hides_deferred_schemas _move_request_scoped_prompts_to_tail
    _note_lookalike_frames _order_tool_results_by_call _project_instruction_state _project_model_settings_deltas
    _render_system_prompt_contexts _renders_effort_deltas _renders_retry_feedback
    _replace_unsupported_tool_return_files _seals_system_blocks _standing_system_prompt_count
    _synthesize_tool_availability_delta_messages _tagged_append_parts _tool_results_first _tool_search
    _tools_resolved_for_messages _translate_legacy_tool_reveals _translate_retry_parts
    _wrap_non_leading_system_prompts accepts_stateless_artifacts any bool break_special_tokens_in_messages
    defer_loading function_tools get instruction_parts introduced_tool_names isinstance name next parts profile
    synthesize_local_tool_search_messages tool_addition_mode
""".split())  # noqa: SIM905
"""What `Model.prepare_messages` of pydantic-ai 2.68 names."""
# fmt: on

# The fields that may hold anything; in all others, messages say more than text, calls and results.
_SAID = frozenset(('content', 'timestamp', 'id', 'provider_name', 'provider_details', 'part_kind'))
_PLAIN: Mapping[type[Any], frozenset[str]] = {
    UserPromptPart: _SAID,
    TextPart: _SAID,
    ThinkingPart: _SAID | {'signature'},
    ToolCallPart: _SAID | {'tool_name', 'args', 'tool_call_id'},
    ToolReturnPart: _SAID | {'tool_name', 'tool_call_id'},
}
_USUAL = ((), None, 'success')
_PREPARED = 2
_USES = 8

Messages = list[Any]


def key_of(model: Any, memory: Memory) -> object | None:
    """What is left alone is left alone under this key; `None` where nothing may be left out.

    Args:
        model: Whose messages are prepared.
        memory: Its memory.
    """
    profile: Mapping[str, Any] = model.profile
    if not prepares_alike(model, _PASSES) or model.tool_addition_mode is not None:
        return None
    # Ids are fitted by all that went before, and reasoning in a user turn is a frame.
    if profile.get('tool_call_id_length') is not None or profile.get('mimics_assistant_message_formatting'):
        return None
    return memory.key(profile, (key_of, in_second_model_prompt()))


def prepared(messages: Messages, memory: Memory, key: object, prepare: Callable[[Messages], Messages]) -> Messages:
    """What `prepare` makes of `messages`; the list itself where nothing changes.

    Args:
        messages: The history.
        memory: What was left alone before.
        key: Under which key.
        prepare: The parent's method, for this request.
    """
    end = _end_of_run(messages, memory, key)
    if end:
        short = [messages[0], *messages[end:]]
        made = prepare(short)
        if made is short:
            _remember(messages, end, messages, memory, key)
            return messages
        if len(made) > 1 and made[0] is messages[0] and made[1] is messages[end]:
            made = [*messages[:end], *made[1:]]
            _remember(messages, end, made, memory, key)
            return made
    made = prepare(messages)
    _remember(messages, 1, made, memory, key)
    return made


def _end_of_run(messages: Messages, memory: Memory, key: object) -> int:
    """The first message behind those that may be left out: it is one of them itself, and opens a turn of the model."""
    end, number = 0, 1
    if not messages or messages[0].kind != 'request':
        return 0
    before: Snapshot | None = None
    for piece in memory.pieces(messages[1:]):
        snapshots = piece.snapshots if isinstance(piece, Chunk) else (piece,)
        if not _follows(_first_use(piece, key), before):
            break
        number, before = number + len(snapshots), snapshots[-1]
        opens = (at for at in range(number - 1, number - len(snapshots) - 1, -1) if _opens(messages, at))
        end = next(opens, end)
    return end if end > LEAST else 0


def _first_use(piece: Snapshot | Chunk, key: object) -> Any:
    """What has to stand in front of a message, or of many that follow each other; `None` where one is not known."""
    if isinstance(piece, Snapshot):
        return piece.use(key)
    if key not in piece.uses:
        uses = [one.use(key) for one in piece.snapshots]
        if not all(map(_follows, uses[1:], piece.snapshots)):
            return None
        piece.uses = {**({} if len(piece.uses) >= _USES else piece.uses), key: uses[0]}
    return piece.uses[key]


def _follows(use: Any, before: Snapshot | None) -> bool:
    """Whether what was made of a message is so behind `before`."""
    return use is ALONE or (use is not None and before is not None and use() is before)


ALONE = 'alone'


def _opens(messages: Messages, at: int) -> bool:
    return bool(messages[at].kind == 'response' and messages[at - 1].kind == 'request')


def _remember(messages: Messages, begin: int, made: Messages, memory: Memory, key: object) -> None:
    before: Snapshot | None = None
    if begin > 1 and messages[begin - 1].kind == 'response':
        before = memory.known(messages[begin - 1])
    for message, same in zip(messages[begin:], made[begin:], strict=False):
        if message is not same:
            return
        if not memory.again(message, _PREPARED):
            before = None
            continue
        snapshot = memory.taken(message)
        if snapshot is None:
            return
        use = _use_of(message, before)
        if use is None:
            return
        if snapshot.use(key) != use and not memory.keep(message, snapshot, key, use, 0):
            return
        before = snapshot if message.kind == 'response' else None


def _use_of(message: Any, before: Snapshot | None) -> Any:
    """What has to stand in front of a message, so that it comes out as it went in; `None` where more may change it."""
    if not _is_plain(message):
        return None
    if message.kind == 'response' or not any(type(part) is ToolReturnPart for part in message.parts):
        return ALONE
    return None if before is None else ref(before)


def _is_plain(message: Any) -> bool:
    return (
        message.metadata is None
        and message.state == 'complete'
        and all(
            (said := _PLAIN.get(type(part))) is not None
            and all(name in said or value in _USUAL for name, value in vars(part).items())
            and (type(part) is not UserPromptPart or type(part.content) is str)
            for part in message.parts
        )
    )
