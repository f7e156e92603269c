"""Rules: which complaint is about which shape. One row for each shape that servers refuse. Pure data.

`_teachings.py` says what a row teaches, and `_requests.py` changes the shape. Each row links where such a refusal was
seen; `tests/refusals.jsonl` holds what servers said. `CALLERS_FAULT` and `VAGUE` know the refusals that teach nothing,
and those that name nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from oaicompat import _teachings
from oaicompat._patterns import lazy
from oaicompat._teachings import UNKNOWN, Delta, Refusal
from oaicompat._words import BAD_ABROAD, BAD_BEFORE_FIELD, FIELD, IS_BAD

REFUSED = frozenset({400, 422})
"""HTTP statuses of a request that the server will not take as it is."""

_TEMPLATE_STATUSES = REFUSED | {500}  # llama.cpp and what is built on it
_ROUTER_STATUSES = REFUSED | {404, 500, 501}  # OpenRouter; vLLM's Responses API


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


def _any(*words: str) -> re.Pattern[str]:
    return lazy('|'.join(words), re.IGNORECASE | re.DOTALL)


_LIST_REFUSED = _any(
    r'sequence, expected (?:a )?string',  # serde: DeepSeek
    r'can only concatenate str \(not "list"\)',  # a chat template in vLLM
    r'(?:must|should) be (?:a )?string|\u5fc5\u987b(?:\u662f|\u4e3a)\u5b57\u7b26\u4e32',  # Groq, DashScope
    r'should be a valid string|str type expected',  # pydantic: SiliconFlow, Fireworks, gateways
    r'expected (?:a )?string,? (?:but )?(?:got|received|found) (?:an? )?(?:array|list|sequence)',  # OpenAI, zod
    r'(?:array|list|sequence)\b.* (?:where|when) (?:a )?string',
    r'is not of type .?string',  # JSON Schema
    r'cannot unmarshal array into Go .*string',  # Ollama and other Go servers
    r'java\.lang\.String.*(?:START_ARRAY|Array value)',  # Jackson
    r'content(?:\[0\])?\.type type error',  # Z.ai
    r'^invalid message content$',
    r'content must be (?:plain )?(?:text|string)|only supports? (?:plain )?(?:string|text) content',
    r'unhashable type: .?list|(?:list|array|multipart) content (?:is|are) not',
    r'content (?:parts?|lists?|arrays?) (?:is|are) not (?:\w+ )?(?:support|allow)',
)
_NAMED = r'(?:tools|functions|(?:tool|function)[ _-]?(?:use|usage|calls?|calling))'
_TOOLS = rf'[`\'"]?(?<![\w.\]]){_NAMED}(?![\w\[]|\.\w)[`\'"]?'
# German, French, Spanish, Chinese, Japanese, Korean; functions and their calls, too.
_TOOLS_ABROAD = (
    r'(?:tools?|werkzeuge?n?|funktionsaufrufe?|outils|appels (?:de fonctions?|d.outils)|herramientas'
    r'|llamadas a funciones|\u5de5\u5177(?:\u8c03\u7528)?|\u51fd\u6570(?:\u8c03\u7528)?|\u30c4\u30fc\u30eb'
    r'|\u95a2\u6570\u547c\u3073\u51fa\u3057|\ub3c4\uad6c|\ud568\uc218 ?\ud638\ucd9c)'
)
_FIELD = r'(?:request )?(?:argument|parameter|param|field|input)s?(?: supplied| found)?'
_GITHUB = 'https://github.com/'

# The first row that teaches anything counts, so the particular stand in front of the general.
RULES: tuple[Rule, ...] = (
    Rule(
        'request.stream',
        _any(
            r'[\u53ea\u4ec5]\u652f\u6301\u6d41\u5f0f|\u4e0d\u652f\u6301\u975e\u6d41\u5f0f',
            r'only supports? (?:the )?stream|stream\W{0,3} (?:must|has to|should) be.{0,12}true|requires? stream\w*',
            r'non-?stream\w* .{0,40}(?:not|un)\s?supported|not support.{0,20}non-?stream',
        ),
        _teachings.stream,
        f'{_GITHUB}FoundationAgents/OpenManus/issues/330',  # DashScope
    ),
    Rule(
        'request.tool_call_ids',
        _any(
            r'tool call id was\b.*\b(?:must be|length)|tool[ _]call[ _]id must (?:be (?:exactly|at most|an?)|match)',
            (
                r'(?:tool_calls[\[.]\d+\]?\.id|call_id|tool_use\.id)\W.*'
                r'(?:too long|maximum length|pattern|length of|at most \d+ char|alphanumeric)'
            ),
        ),
        _teachings.call_ids,
        f'{_GITHUB}anomalyco/opencode/issues/1680',  # Mistral; OpenAI takes 40 characters, on /responses 64
        _TEMPLATE_STATUSES,
    ),
    Rule(
        'request.reasoning',
        _any(
            r'must be passed back|is missing in assistant|must (?:contain|include|have).*reasoning',
            r'reasoning\w*\W.{0,20}(?:field required|is required|must be provided|\u7f3a\u5931)',
            r'missing (?:required )?(?:field )?\W{0,2}reasoning',
        ),
        _teachings.echo_demanded,
        f'{_GITHUB}JohnnyZ93/oai-compatible-copilot/issues/215',  # DeepSeek, Kimi
    ),
    Rule(
        'request.reasoning',
        _any(rf'(?:reasoning|thinking)\w*\b.*(?:{UNKNOWN})', r'remove \W*(?:the )?\W*reasoning',
             (
                 rf'(?:unknown|unexpected|unsupported|extra) {FIELD}:? '
                 rf'(?:\W{{0,2}}messages?[\w.\[\]]{{0,12}})?\W{{0,3}}(?:reasoning|thinking)'
             ),
            rf'{BAD_BEFORE_FIELD}.{{0,12}}(?:reasoning|thinking)',
             rf'(?:reasoning|thinking)\w*.{{0,20}}{IS_BAD}'),
        _teachings.echo,
        f'{_GITHUB}Kilo-Org/kilocode/issues/10375',  # Cerebras; Groq, Mistral
    ),
    Rule(
        'request.tool_choice',
        _any('tool[ _]?choice'),
        _teachings.tool_choice,
        f'{_GITHUB}lmstudio-ai/lmstudio-bug-tracker/issues/670',
        _ROUTER_STATUSES,
    ),
    Rule(
        'request.tools',
        _any(
            rf'(?:not|n.t) (?:\w+ )?support (?:the use of |using )?{_TOOLS}|no endpoints found that support {_TOOLS}',
            (
                rf'{_TOOLS}:? (?:(?:is|are) )?'
                r'(?:not (?:\w+ )?(?:support|enabled|available|allowed|permit)|un(?:supported|available)|disabled)'
            ),
            r'\bno (?:tools?|functions?)(?:[ _-]?(?:use|calls?|calling))? support',
            r'not have (?:tool|function)\w*.{0,9} support',
            rf'no support for {_TOOLS}|(?:can ?not|can.t|does not|unable to) (?:use|handle|do) {_TOOLS}',
            rf'no {_TOOLS} (?:support|capabilit)|{_TOOLS} (?:is|are|has been|have been) (?:turned|switched) off',
            rf'{_TOOLS_ABROAD} {{0,2}}(?:{BAD_ABROAD}|(?:ne )?sont pas pris(?:es)? en charge)',
            rf'{BAD_BEFORE_FIELD}\s?{_TOOLS_ABROAD}',
            r'^(?:tools|functions): (?:extra|unexpected|additional|unknown|unrecogni[sz]ed)',
            rf'(?:un(?:known|supported|recogni[sz]ed|expected)|extra) {_FIELD}: \W?(?:tools|functions)(?![\w\[]|\.\w)',
            r'\u4e0d\u652f\u6301 ?(?:\u5de5\u5177|\u51fd\u6570|tools\b|function)',  # Chinese: tools, functions
            r'tools param requires',  # llama.cpp
            r'requires --enable-auto-tool-choice|only named tools are supported',  # vLLM
        ),
        _teachings.tools,
        f'{_GITHUB}ollama/ollama/issues/5793',
        _ROUTER_STATUSES,
    ),
    Rule(
        'request.tools',
        _any('tools', 'functions'),
        _teachings.tools_by_name,
        f'{_GITHUB}ollama/ollama/issues/5793',
        _ROUTER_STATUSES,
    ),
    Rule(
        'request.schema',
        _any('.'),
        _teachings.schema,
        f'{_GITHUB}zed-industries/zed/issues/44875',
        _TEMPLATE_STATUSES,
    ),
    Rule(
        'request.output_format',
        _any(r'response[_ ]format', 'json_schema', 'json_object', 'json mode', r'text\.format'),
        _teachings.output_format,
        f'{_GITHUB}lmstudio-ai/lmstudio-bug-tracker/issues/307',
    ),
    Rule(
        'request.strict',
        _any(rf'\bstrict\b.*(?:{UNKNOWN})', 'unknown.*strict', r"invalid value for parameter 'tools'"),
        _teachings.strict,
        f'{_GITHUB}OpenCoworkAI/open-cowork/issues/232',
    ),
    Rule(
        'request.max_tokens',
        _any('max_completion_tokens|max_tokens'),
        _teachings.token_limit,
        f'{_GITHUB}voideditor/void/issues/128',
    ),
    Rule(
        'request.system',
        _any(
            r'(?:developer|system) (?:instruction|role|message)s?\b.{0,30}not (?:enabled|support|allow|avail)',
            r'invalid message role: system|system role|role \W*system\W* (?:is )?(?:not|un)',
            r"role\W* does not support \W*system|not support \W*system\W* (?:message|role|prompt|instruction)",
            r'(?:invalid|unsupported|unknown) (?:role|variant)\W{1,3}system|only supports? user and assistant',
            r'role\W{1,3}(?:unsupported|invalid|unknown) value \W*system',
            r"role\W* input should be 'user' or 'assistant'",
        ),
        _teachings.no_system,
        f'{_GITHUB}BigPizzaV3/CodexPlusPlus/issues/267',  # MiniMax; Gemma
        _TEMPLATE_STATUSES,
    ),
    Rule(
        'request.system',
        _any(r'\bdeveloper\b', r'unexpected message role'),
        _teachings.developer,
        f'{_GITHUB}lobehub/lobehub/issues/5704',
        _TEMPLATE_STATUSES,
    ),
    Rule(
        'request.system',
        _any(
            r'system (?:message|prompt)s?\b.{0,30}(?:at the beginning|first|beginnin|precede|at index 0|at the start)',
            r'only the first message\b.{0,20}system|first message (?:can|may|must|should) be (?:an? )?system',
            r'unexpected role \W*system|invalid chat setting',
            r"role\W* input should be 'user', 'assistant' or 'tool'",
        ),
        _teachings.late_system,
        f'{_GITHUB}openclaw/openclaw/issues/19386',
        _TEMPLATE_STATUSES,
    ),
    Rule(
        'request.roles',
        _any(
            r'role\w*.{0,60}alternat|alternat.{0,30}roles?|alternat\w* between \W{0,2}user',
            r'unexpected role \W*(user|assistant)\W* after role \W*\1',
            r'consecutive .{0,20}(?:same role|user messages|assistant messages)|same role .{0,30}consecutive',
        ),
        _teachings.roles,
        f'{_GITHUB}microsoft/autogen/issues/1037',
        _TEMPLATE_STATUSES,
    ),
    Rule(
        'request.roles',
        _any(r"unexpected role \W*user\W* after role \W*tool"),
        _teachings.after_tool,
        f'{_GITHUB}NousResearch/hermes-agent/issues/20154',
        _TEMPLATE_STATUSES,
    ),
    Rule(
        'request.roles',
        _any(
            r'last (?:message )?role', '\u6700\u540e\u4e00\u6761\u6d88\u606f\u5fc5\u987b',
            r'(?:must |requests )end with an? user', 'prefill', r'assistant messages? at the end',
            r'(?:last|final) message (?:must|should|has to)',
        ),
        _teachings.last_message,
        f'{_GITHUB}ggml-org/llama.cpp/issues/20861',
    ),
    Rule(
        'request.roles',
        _any(r'must be followed by tool messages', r'must be a response to a prece', r'no previous assistant message',
             r'unexpected role \S*tool', r'tool_use.{0,40} without \W*tool_result',
             r'no tool output found for|no matching tool (?:message|result|response)|did not have response messages',
            r'missing tool (?:result|output|response)', r'tool (?:call )?results? does not follow',
             r'not the same number of function calls and responses'),
        _teachings.tool_order,
        f'{_GITHUB}FoundationAgents/OpenManus/issues/744',
        _TEMPLATE_STATUSES,
    ),
    Rule(
        'request.roles',
        _any('function call turn comes immediately after'),
        _teachings.call_order,
        f'{_GITHUB}google-gemini/gemini-cli/issues/11814',
    ),
    Rule(
        'request.assistant_content',
        _any(
            r'content\b.{0,60}(?:null|nil\b|none\b|empty|missing|non-empty|at least one|at least 1)',
            r'missing field \W*content', r"'assistant' must not be empty",
            r'content\b.{0,40}(?:input should be a valid (?:string|list)|field required|is a required property)',
            r'expected (?:one of )?.{0,40}but got null|unmarshal null into .{0,40}content',
            r'content\b.{0,12} is required|missing required (?:field|parameter)\W{1,3}content|must have content',
            r'content\b.{0,4}(?:\u4e0d\u80fd\u4e3a\u7a7a|\u7f3a\u5931)',
            r'\bnone is not of type.{0,30}content|can only concatenate str \(not "NoneType"',
        ),
        _teachings.assistant_content,
        f'{_GITHUB}Portkey-AI/gateway/issues/995',
    ),
    Rule(
        'request.tool_return',
        _LIST_REFUSED,
        _teachings.list_results,
        f'{_GITHUB}lastmile-ai/mcp-agent/issues/25',
        _TEMPLATE_STATUSES,
    ),
    Rule(
        'request.content',
        _LIST_REFUSED,
        _teachings.list_contents,
        f'{_GITHUB}0x676e67/duckai/issues/16',
        _TEMPLATE_STATUSES,
    ),
    Rule(
        'request.omit',
        _any('.'),
        _teachings.omit,
        f'{_GITHUB}dnakov/anon-kode/issues/53',
        _ROUTER_STATUSES,
    ),
)  # fmt: skip

CALLERS_FAULT = _any(
    r'context[ _](?:length|window)\b|maximum (?:context|number of tokens)|(?:prompt|input) is too long',
    r'content (?:management )?polic|inappropriate content|content exists risk|data.?inspection',
    r'safety (?:system|filter)',
    r'\bmodel\b.{0,80}(?:not exist|not found|is not a valid model)|unknown model|invalid model',
    r'api[ _-]?key (?:not|is|invalid)|(?:invalid|incorrect|missing) api[ _-]?key|unauthori[sz]ed',
    r'credit balance|insufficient (?:credit|quota|balance|fund)|exceeded your (?:current )?quota|arrear',
    r'image input|image_url|at most \d+ images?|unsupported image|reserved keyword',
)
"""Complaints that no other shape of the same request answers."""

CALLERS_CODES = _any(
    'apikey|unauthori[sz]ed|unauthenticated|authentication|permission|accessdenied|deactivated|unsupportedcountry',
    'context(?:length|window|size)|quota|billing|insufficient|arrear|ratelimit|toomanyrequests',
    'resourceexhausted|contentfilter|contentpolicy|responsibleai|datainspection|moderationblock|imageparse|invalidimage',
    'model(?:not|doesnot)(?:found|exist|available|open)|(?:unknown|invalid)model',
)
"""The same, in codes; of these, letters alone."""

UNKNOWN_CODES = _any(
    '(?:unsupported|unknown|unrecogni[sz]ed|unexpected|extra)(?:request)?(?:parameter|param|field|argument|keywordargument'
    '|key|property|input)s?(?:error)?',
    'extraforbidden|additionalproperties|whitelistvalidation|(?:parameter|param|field|argument)(?:notsupported|unknown)',
)
"""Codes that say of the field beside them that it is not taken."""

# Chinese (Zhipu, gateways), German, French, Spanish, Korean, Japanese: an invalid request, wrong parameters.
_VAGUE_ABROAD = (
    r'(?:\u8bf7\u6c42)?(?:\u53c2\u6570)?(?:\u9519\u8bef|\u65e0\u6548|\u4e0d\u6b63\u786e)'
    r'|\u65e0\u6548(?:\u7684)?\u8bf7\u6c42|messages ?\u53c2\u6570\u975e\u6cd5|api ?\u8c03\u7528\u53c2\u6570\u6709\u8bef'
    r'|ung(?:\u00fc|ue)ltige anfrage|requ[e\u00ea]te (?:invalide|incorrecte)'
    r'|solicitud (?:incorrecta|no v[a\u00e1]lida)|\uc798\ubabb\ub41c \uc694\uccad(?:\uc785\ub2c8\ub2e4)?'
    r'|\u4e0d\u6b63\u306a\u30ea\u30af\u30a8\u30b9\u30c8(?:\u3067\u3059)?'
)
_STATUS = (
    r'(?:(?:request failed|bad response|error|failed|response) ?(?:with|:)? ?|http[ /]?)?'
    r'(?:status ?)?(?:code)?:? ?(?:400|422)'
)
VAGUE = _any(
    r'^\W*(?:error from provider\b[^:]{0,60}:\s*)?(?:litellm\.\w+: )?(?:'
    r'upstream (?:request|server)? ?(?:failed|error)|provider returned error|openai[ _]error'
    r'|all target providers failed'
    r'|(?:invalid|bad)[ _](?:request|params?|parameters?|arguments?|input)(?:[ _](?:error|body|payload))?'
    r'(?:,? (?:trace_id\b|invalid chat setting).*)?'
    r'|the parameter is invalid|param incorrect|the messages parameter is illegal|unprocessable[ _]entity'
    r'|request failed'
    r'|one or more parameters specified in the request are not valid'
    r'|no endpoints found that can handle the requested parameters'
    r'|validation[ _](?:error|failed)|(?:400|422)\b.{0,20}|error|failed'
    rf'|400 bad request 400 bad request(?: [\w./-]+)?|{_STATUS}|{_VAGUE_ABROAD}'
    r')(?:[.,\s\uff0c\u3002]+(?:please check|request id|to learn more|\u8bf7\u68c0\u67e5).*)?\W*$',
)
"""Complaints that name nothing."""
