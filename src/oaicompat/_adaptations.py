"""The part of the registry of repairs that is about requests: what servers refuse, and what is sent instead.

`repairs.py` puts it together with the repairs of answers. Pure data.
"""

from __future__ import annotations

from oaicompat._entry import GITHUB as _ISSUES
from oaicompat._entry import Repair

ADAPTATIONS: tuple[Repair, ...] = (
    Repair(
        'request.assistant_content',
        'A server that refuses `null`, an empty text or no `content` at all in an assistant message that only calls '
        f'tools ({_ISSUES}Portkey-AI/gateway/issues/995).',
        'Another of the three is sent.',
        'Only in messages with tool calls and no text, and the three say the same.',
    ),
    Repair(
        'request.content',
        f'A server that refuses a list as the content of a message ({_ISSUES}0x676e67/duckai/issues/16).',
        'The texts of the list become one, with an empty line between them; in a tool message with a newline.',
        'Only lists of nothing but texts; a list with an image in it stays.',
    ),
    Repair(
        'request.max_tokens',
        f'A server that knows one of `max_tokens` and `max_completion_tokens` ({_ISSUES}voideditor/void/issues/128).',
        'The other one is sent, with the same number.',
        'Only after a refusal of the name; where the number was refused, nothing is changed.',
    ),
    Repair(
        'request.omit',
        'A server that refuses a field by its name, such as `stream_options` or `parallel_tool_calls` '
        f'({_ISSUES}dnakov/anon-kode/issues/53).',
        'The field is left out.',
        'Never one that carries the question: messages, tools, format, limits. What you set yourself is left out only '
        'where the server named it, and with a warning.',
    ),
    Repair(
        'request.output_format',
        'A server that takes only one of `json_object` and `json_schema`, or neither '
        f'({_ISSUES}lmstudio-ai/lmstudio-bug-tracker/issues/307).',
        'The other one is sent, and a schema that has no place left goes into the prompt.',
        'The answer is checked against the same schema as before.',
    ),
    Repair(
        'request.reasoning',
        'A server that refuses reasoning in the history, or wants it there under a certain name '
        f'({_ISSUES}Kilo-Org/kilocode/issues/10375).',
        'Reasoning of earlier turns is left out, or sent under that name; a blank one goes with calls that had none, '
        'where the server insists.',
        'What the model answered stays. Your own history is not changed.',
    ),
    Repair(
        'request.roles',
        'A server or chat template that wants messages in a certain order: turns that alternate, a user last, results '
        f'behind their calls ({_ISSUES}microsoft/autogen/issues/1037).',
        'Messages are joined, moved, or parted by a short one such as `Continue.`.',
        'No text is lost. Two messages that would lose anything by becoming one stay two.',
    ),
    Repair(
        'request.schema',
        f'A server that refuses keywords of JSON Schema ({_ISSUES}zed-industries/zed/issues/44875).',
        'They are rewritten, or left out and told in the description: see `compat_schema`.',
        'What the schema accepted is accepted still, and arguments are checked by the schema that you wrote.',
    ),
    Repair(
        'request.search',
        f'A refusal that names nothing ({_ISSUES}RooCodeInc/Roo-Code/issues/504).',
        'The shapes that servers refuse most often are changed, one after the other, in at most three more requests.',
        'Only shapes that the request used, and no setting of yours; kept only if it helped.',
    ),
    Repair(
        'request.stream',
        f'A server that only streams ({_ISSUES}FoundationAgents/OpenManus/issues/330).',
        'The answer is streamed and put together.',
        'Only with `compat_stream`, or after a refusal that said so.',
    ),
    Repair(
        'request.strict',
        f'A server that does not know `strict` schemas ({_ISSUES}OpenCoworkAI/open-cowork/issues/232).',
        '`strict` is left out.',
        'The schema is sent all the same, and arguments are checked by it.',
    ),
    Repair(
        'request.system',
        'A server or chat template that refuses the role `developer`, a second or a late system message, or any '
        f'({_ISSUES}openclaw/openclaw/issues/19386).',
        'Sent as `system`, merged, moved to the front, or told by the next user message, as the refusal asks.',
        'Every word is sent.',
    ),
    Repair(
        'request.tool_call_ids',
        'A server that takes only certain ids of tool calls, such as nine letters or digits '
        f'({_ISSUES}anomalyco/opencode/issues/1680).',
        'Nine letters or digits stand for each other id.',
        'The same in the call, in its result and in every request.',
    ),
    Repair(
        'request.tool_choice',
        'A server that refuses a `tool_choice` that names a tool, or `required` '
        f'({_ISSUES}lmstudio-ai/lmstudio-bug-tracker/issues/670).',
        '`required` and only the named tool; or `auto` and only the tools that were allowed.',
        'The model can call no tool that it could not call before. Where it answers in text instead, pydantic-ai asks '
        'it again.',
    ),
    Repair(
        'request.tool_return',
        f'A server that refuses a list as the content of a tool message ({_ISSUES}vllm-project/vllm/issues/39614).',
        'The texts of the list are joined, and the request is sent again.',
        'Only after a refusal that named that shape; remembered for this model.',
    ),
    Repair(
        'request.tools',
        f'A server that takes no tools, for this model or at all ({_ISSUES}ollama/ollama/issues/5793).',
        'The system message says which there are and how to call them; calls and results are told as text, and the '
        'calls of the answer are read from its text.',
        'Only with `compat_tools`, or after a refusal that said so; and only where a prompt can say all that the '
        'request said. Arguments are checked by the same schema as before.',
    ),
)
"""All adaptations, by name."""
