"""Rules: what a refusal teaches, as data. One row for each shape that servers refuse. Pure.

A row reads the complaint, asks the body that was sent whether it uses the refused shape, and gives the profile keys
that change it; each links where such a refusal was seen. `_requests.py` changes the shapes. `CALLERS_FAULT` and
`VAGUE` know the refusals that teach nothing, and those that name nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from oaicompat import _shapes
from oaicompat._fields import omitted
from oaicompat._schemas import rewrites_for

Delta = Mapping[str, Any]

REFUSED = frozenset({400, 422})
"""HTTP statuses of a request that the server will not take as it is."""

_TEMPLATE_STATUSES = REFUSED | {500}  # llama.cpp and what is built on it
_ROUTER_STATUSES = REFUSED | {404, 500, 501}  # OpenRouter; vLLM's Responses API


class Refusal(NamedTuple):
    """One complaint about one request.

    Attributes:
        complaint: The server's words, with the field they are about in front where it is named.
        sent: The body that was sent.
        profile: The profile that it was made with.
    """

    complaint: str
    sent: _shapes.Body
    profile: Mapping[str, Any]

    def has(self, *words: str) -> bool:
        """Whether the complaint matches any of the patterns; upper and lower case are the same."""
        return any(re.search(word, self.complaint, re.IGNORECASE) for word in words)

    @property
    def message(self) -> Mapping[str, Any] | None:
        """The message that the complaint names by its index, if it names one."""
        found = _MESSAGE_INDEX.search(self.complaint)
        messages = _shapes.messages(self.sent)
        return messages[int(found[1])] if found and int(found[1]) < len(messages) else None

    @property
    def about(self) -> _shapes.Body:
        """The request with that message alone, or as it was sent."""
        return self.sent if self.message is None else {**self.sent, 'messages': [self.message]}


@dataclass(frozen=True)
class Rule:
    """One row of the table.

    Attributes:
        name: Stable name of the adaptation.
        complaint: Matches one complaint of the error body.
        teaches: The profile keys to set, or `None` where the body does not use the refused shape.
        evidence: Where such a refusal was seen.
        statuses: HTTP statuses that it comes with.
    """

    name: str
    complaint: re.Pattern[str]
    teaches: Callable[[Refusal], Delta | None]
    evidence: str
    statuses: frozenset[int] = REFUSED


_MESSAGE_INDEX = re.compile(r'\b(?:messages?|input)(?:\.|\[|\.\[)\W?(\d{1,6})')
_UNSUPPORTED = (
    r'unsupported|not (?:\w+ )?(?:support|allow|permit|accept|available|enabled|valid)|doesn.t support|incompatible|invalid'
    r'|unavailable|unknown|unrecognized|extra|forbidden|must be|only|may not|no endpoints'
)
_NOT_A_REFUSAL = r'must be set|only allowed when|are specified|but got|is required'


def _any(*words: str) -> re.Pattern[str]:
    return re.compile('|'.join(words), re.IGNORECASE | re.DOTALL)


def _tool_choice(refusal: Refusal) -> Delta | None:
    kind = _shapes.tool_choice(refusal.sent)
    if kind not in ('named', 'required') or not refusal.has(_UNSUPPORTED) or refusal.has(_NOT_A_REFUSAL):
        return None
    # Most of those that refuse one form refuse both, and some say so.
    both = refusal.has('thinking', 'reasoning', r'must be \W*auto', r"only \W*auto", 'required or object', 'no endpoints')
    named = {'compat_named_tool_choice': False} if kind == 'named' else {}
    return {**named, **({'compat_required_tool_choice': False} if both or kind == 'required' else {})}


def _output_format(refusal: Refusal) -> Delta | None:
    kind = _shapes.output_format(refusal.sent).get('type')
    if kind not in ('json_object', 'json_schema') or refusal.has(r"word \W*json", r'must be an object', 'expected type'):
        return None
    strict = _shapes.is_strict(refusal.sent) and refusal.profile.get('openai_supports_strict_tool_definition', True)
    if kind == 'json_schema' and strict and refusal.has('strict') and not refusal.has('json_schema. is not'):
        return {'openai_supports_strict_tool_definition': False}
    if kind == 'json_object':
        return {'compat_json_object': False}
    # What was an object once is refused as a schema, too: then the prompt has to do.
    return {'compat_json_schema': False}


def _strict(refusal: Refusal) -> Delta | None:
    return {'openai_supports_strict_tool_definition': False} if _shapes.is_strict(refusal.sent) else None


def _token_limit(refusal: Refusal) -> Delta | None:
    if refusal.has('too large', 'maximum', 'range', 'at most', 'above', 'less than', 'greater than', 'exceed', 'integer'):
        return None
    sent = [key for key in ('max_tokens', 'max_completion_tokens') if key in refusal.sent]
    named = refusal.complaint.partition('instead')[0]
    first = next(iter(re.findall('max_completion_tokens|max_tokens', named)), None)
    if len(sent) != 1 or first != sent[0]:
        return None
    return {'openai_chat_supports_max_completion_tokens': sent[0] == 'max_tokens'}


def _developer(refusal: Refusal) -> Delta | None:
    return {'openai_system_prompt_role': 'system'} if _shapes.has_role(refusal.sent, 'developer') else None


def _no_system(refusal: Refusal) -> Delta | None:
    if not _shapes.has_role(refusal.sent, *_shapes.SYSTEM):
        return None
    if _shapes.late_system(refusal.sent) and refusal.profile.get('compat_late_system', 'asis') == 'asis':
        return {'compat_late_system': 'lift'}
    return {'openai_system_prompt_role': 'user', 'compat_roles': 'alternate'}


def _late_system(refusal: Refusal) -> Delta | None:
    several = {'openai_chat_supports_multiple_system_messages': False}
    late = {'compat_late_system': 'lift'} if _shapes.late_system(refusal.sent) else {}
    heads = [_shapes.role(message) in _shapes.SYSTEM for message in _shapes.messages(refusal.sent)[:2]]
    return {**late, **(several if heads == [True, True] else {})} or None


_EMPTY_FORMS = ('empty', 'null', 'omit')


def _assistant_content(refusal: Refusal) -> Delta | None:
    sent = _shapes.empty_contents(refusal.about)
    if not sent:
        return None
    # Each form is tried once: the next after the one that the profile says already.
    tried = refusal.profile.get('compat_assistant_content', 'parent')
    left = _EMPTY_FORMS[_EMPTY_FORMS.index(tried) + 1 :] if tried in _EMPTY_FORMS else _EMPTY_FORMS
    following = next((form for form in left if form not in sent), None)
    return None if following is None else {'compat_assistant_content': following}


def _lists(refusal: Refusal) -> Delta | None:
    """List content: of the message that is named, else of all that have one."""
    if refusal.has(*_OTHER_FIELDS) or not (refusal.has(*_ABOUT_CONTENT) or refusal.has(*_NAMES_NOTHING)):
        return None
    roles = _shapes.list_roles(refusal.about)
    tools = {'compat_tool_return': 'joined'} if 'tool' in roles else {}
    return {**tools, **({'compat_text_content': 'string'} if roles - {'tool'} else {})} or None


# A complaint about the content of a message, or one that names no field at all; any other is about something else.
_ABOUT_CONTENT = (r'\bcontent\b', r'\bmessages?(?:\[|\.)\d', r'\binput(?:\[|\.)\d', 'role:tool', r'\btool (?:message|result|output)')
_NAMES_NOTHING = (
    r'^\W*(?:input should be|invalid type\b|str type|expected (?:a )?str|failed to deserialize|json: cannot unmarshal'
    r'|cannot deserialize|got an? (?:list|array)\b|\[)',
)  # fmt: skip
_OTHER_FIELDS = ('tool_calls', 'arguments', 'tool_call_id', r'\bname\b', 'response_format', 'parameters')


def _call_ids(refusal: Refusal) -> Delta | None:
    held = any(_shapes.calls(message) or 'call_id' in message for message in _shapes.messages(refusal.sent))
    return {'compat_tool_call_ids': 'alnum9'} if held else None


def _echo(refusal: Refusal) -> Delta | None:
    held = _shapes.reasoning_fields(refusal.sent)
    named = [field for field in _shapes.REASONING if re.search(rf'(?<![\w]){field}(?![\w])', refusal.complaint)]
    return {'compat_echo_reasoning': 'never'} if held & set(named) else None


def _echo_demanded(refusal: Refusal) -> Delta | None:
    found = re.search(r'reasoning_content|reasoning_details|(?<![\w])reasoning(?![\w])', refusal.complaint)
    answers = [message for message in _shapes.messages(refusal.sent) if _shapes.role(message) == 'assistant']
    return {'compat_echo_reasoning': found[0]} if found and any(found[0] not in one for one in answers) else None


def _roles(refusal: Refusal) -> Delta | None:
    late = {'compat_late_system': 'lift'} if _shapes.late_system(refusal.sent) else {}
    again = {'compat_roles': 'alternate'} if _shapes.repeats_roles(refusal.sent) else {}
    return {**late, **again} or None


def _last_message(refusal: Refusal) -> Delta | None:
    return {'compat_last_message': 'user'} if _shapes.ends_with_assistant(refusal.sent) else None


def _after_tool(refusal: Refusal) -> Delta | None:
    return {'compat_after_tool': 'assistant'} if _shapes.user_after_tool(refusal.sent) else None


def _tool_order(refusal: Refusal) -> Delta | None:
    return {'compat_tool_order': 'paired'} if _shapes.unpaired(refusal.sent) else None


def _stream(refusal: Refusal) -> Delta | None:
    off = 'messages' in refusal.sent and refusal.sent.get('stream') is not True
    return {'compat_stream': 'always'} if off else None


def _schema(refusal: Refusal) -> Delta | None:
    found: tuple[str, ...] = ()
    for schema in _shapes.schemas(refusal.sent):
        found = (*found, *(name for name in rewrites_for(refusal.complaint, schema) if name not in found))
    return {'compat_schema': found} if found else None


def _omit(refusal: Refusal) -> Delta | None:
    fields = omitted(refusal.complaint, refusal.sent)
    return {'compat_omit': fields} if fields else None


_GITHUB = 'https://github.com/'

# The first row that teaches anything counts, so the particular stand in front of the general.
RULES: tuple[Rule, ...] = (
    Rule(
        'request.stream',
        _any(
            r'only supports? (?:the )?stream|stream\W{0,3} (?:must|has to|should) be.{0,12}true|requires? stream\w*',
            r'non-?stream\w* .{0,40}(?:not|un)\s?supported|not support.{0,20}non-?stream',
        ),
        _stream,
        f'{_GITHUB}FoundationAgents/OpenManus/issues/330',  # DashScope
    ),
    Rule(
        'request.tool_call_ids',
        _any(r'tool call id was', r'(?:tool_calls\[\d+\]\.id|call_id)\W.*(?:too long|maximum length|pattern|length of)'),
        _call_ids,
        f'{_GITHUB}anomalyco/opencode/issues/1680',  # Mistral; OpenAI takes 40 characters, on /responses 64
        _TEMPLATE_STATUSES,
    ),
    Rule(
        'request.reasoning',
        _any(r'(?:must be passed back|is missing in assistant|must (?:contain|include|have).*reasoning)'),
        _echo_demanded,
        f'{_GITHUB}JohnnyZ93/oai-compatible-copilot/issues/215',  # DeepSeek, Kimi
    ),
    Rule(
        'request.reasoning',
        _any(r'(?:reasoning|thinking)\w*\b.*(?:unsupported|not support|not permitted|not allowed|unknown|unrecognized|extra)'),
        _echo,
        f'{_GITHUB}Kilo-Org/kilocode/issues/10375',  # Cerebras; Groq, Mistral
    ),
    Rule(
        'request.tool_choice',
        _any('tool[ _]?choice'),
        _tool_choice,
        f'{_GITHUB}lmstudio-ai/lmstudio-bug-tracker/issues/670',
        _ROUTER_STATUSES,
    ),
    Rule(
        'request.schema',
        _any('.'),
        _schema,
        f'{_GITHUB}zed-industries/zed/issues/44875',
        _TEMPLATE_STATUSES,
    ),
    Rule(
        'request.output_format',
        _any(r'response[_ ]format', 'json_schema', 'json_object', 'json mode', r'text\.format'),
        _output_format,
        f'{_GITHUB}lmstudio-ai/lmstudio-bug-tracker/issues/307',
    ),
    Rule(
        'request.strict',
        _any(r'\bstrict\b.*(?:unsupported|not support|not permitted|not allowed|unknown|unrecognized|extra)', 'unknown.*strict'),
        _strict,
        f'{_GITHUB}pydantic/pydantic-ai/issues/1561',
    ),
    Rule(
        'request.max_tokens',
        _any('max_completion_tokens|max_tokens'),
        _token_limit,
        f'{_GITHUB}voideditor/void/issues/128',
    ),
    Rule(
        'request.system',
        _any(
            r'(?:developer|system) (?:instruction|role|message)s?\b.{0,30}not (?:enabled|support|allow|avail)',
            r'invalid message role: system|system role|role \W*system\W* (?:is )?(?:not|un)',
        ),
        _no_system,
        f'{_GITHUB}BigPizzaV3/CodexPlusPlus/issues/267',  # MiniMax; Gemma
        _TEMPLATE_STATUSES,
    ),
    Rule(
        'request.system',
        _any(r'\bdeveloper\b', r'unexpected message role'),
        _developer,
        f'{_GITHUB}lobehub/lobehub/issues/5704',
        _TEMPLATE_STATUSES,
    ),
    Rule(
        'request.system',
        _any(r'system message.{0,30}(?:at the beginning|first|beginnin)', r"unexpected role \W*system", 'invalid chat setting'),
        _late_system,
        f'{_GITHUB}openclaw/openclaw/issues/19386',
        _TEMPLATE_STATUSES,
    ),
    Rule(
        'request.roles',
        _any(r'role\w*.{0,60}alternat', r'alternat.{0,30}roles?'),
        _roles,
        f'{_GITHUB}microsoft/autogen/issues/1037',
        _TEMPLATE_STATUSES,
    ),
    Rule(
        'request.roles',
        _any(r"unexpected role \W*user\W* after role \W*tool"),
        _after_tool,
        f'{_GITHUB}NousResearch/hermes-agent/issues/20154',
        _TEMPLATE_STATUSES,
    ),
    Rule(
        'request.roles',
        _any(r'last role', r'must end with a user', 'prefill', r'assistant messages? at the end', r'last message must'),
        _last_message,
        f'{_GITHUB}ggml-org/llama.cpp/issues/20861',
    ),
    Rule(
        'request.roles',
        _any(r'must be followed by tool messages', r'must be a response to a prece', r'no previous assistant message',
             r'unexpected role \S*tool'),
        _tool_order,
        f'{_GITHUB}FoundationAgents/OpenManus/issues/744',
        _TEMPLATE_STATUSES,
    ),
    Rule(
        'request.assistant_content',
        _any(
            r'content\b.{0,60}(?:null|nil\b|none\b|empty|missing|non-empty|at least one|at least 1)',
            r'missing field \W*content', r"'assistant' must not be empty",
            r'content\b.{0,40}(?:input should be a valid (?:string|list)|field required)',
        ),
        _assistant_content,
        f'{_GITHUB}Portkey-AI/gateway/issues/995',
    ),
    Rule(
        'request.content',
        _any(
            r'sequence, expected (?:a )?string',  # serde: DeepSeek
            r'must be (?:a )?string',  # Groq, DashScope
            r'should be a valid string|str type expected',  # pydantic: SiliconFlow, Fireworks, gateways
            r'expected (?:a )?string,? (?:but )?(?:got|received|found) (?:an? )?(?:array|list|sequence)',  # OpenAI, zod
            r'(?:array|list|sequence)\b.* (?:where|when) (?:a )?string',
            r'is not of type .?string',  # JSON Schema
            r'cannot unmarshal array into Go .*string',  # Ollama and other Go servers
            r'java\.lang\.String.*(?:START_ARRAY|Array value)',  # Jackson
            r'content(?:\[0\])?\.type type error',  # Z.ai
            r'^invalid message content$',
        ),
        _lists,
        f'{_GITHUB}lastmile-ai/mcp-agent/issues/25',
    ),
    Rule(
        'request.omit',
        _any('.'),
        _omit,
        f'{_GITHUB}dnakov/anon-kode/issues/53',
        _ROUTER_STATUSES,
    ),
)  # fmt: skip

CALLERS_FAULT = _any(
    r'context[ _](?:length|window)\b|maximum (?:context|number of tokens)|(?:prompt|input) is too long',
    r'content (?:management )?polic|inappropriate content|content exists risk|data.?inspection|safety (?:system|filter)',
    r'\bmodel\b.{0,80}(?:not exist|not found|is not a valid model)|unknown model|invalid model',
    r'api[ _-]?key (?:not|is|invalid)|(?:invalid|incorrect|missing) api[ _-]?key|unauthori[sz]ed',
    r'credit balance|insufficient (?:credit|quota|balance|fund)|exceeded your (?:current )?quota|arrear',
    r'image input|image_url|at most \d+ images?|unsupported image|reserved keyword',
)
"""Complaints that no other shape of the same request answers."""

VAGUE = _any(
    r'^\W*(?:error from provider\b.{0,60}?:\s*)?(?:litellm\.\w+: )?(?:'
    r'upstream (?:request|server)? ?(?:failed|error)|provider returned error|all target providers failed'
    r'|bad request|invalid (?:request|params?|parameters?|arguments?)(?: error)?(?: trace_id\b.*)?'
    r'|the parameter is invalid|param incorrect|one or more parameters|no endpoints found that can handle the requested'
    r'|invalid params, invalid chat setting|messages ?\S*\u53c2\u6570|api ?\u8c03\u7528\u53c2\u6570'
    r'|the messages parameter is illegal|unprocessable entity|request failed|validation (?:error|failed)'
    r'|(?:400|422)\b.{0,20}|error|failed)\W*(?:please check.*|request id.*)?$',
)
"""Complaints that name nothing."""
