"""Teachings: one function for each shape, from a refusal to the profile keys that change the shape. Pure.

Each reads the complaint, asks the body that was sent whether it uses the refused shape, and gives `None` where it does
not. `_rules.py` says which complaint goes to which.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from oaicompat import _shapes
from oaicompat._fields import omitted, refuses
from oaicompat._patterns import lazy
from oaicompat._prompted import prompted
from oaicompat._schemas import rewrites_for
from oaicompat._words import ABROAD, plain

Delta = Mapping[str, Any]


_LOOKED_AT = 2000
"""Characters of one complaint that are looked at."""


def told(complaint: str) -> str:
    """A complaint without the names of what would be right."""
    return _ALTERNATIVES.sub('', plain(complaint[:_LOOKED_AT]))


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


_MESSAGE_INDEX = lazy(r'\b(?:messages?|input)(?:\.|\[|\.\[)\W?(\d{1,6})')
# What a validator would have taken in place of what was sent.
_ALTERNATIVES = lazy(r',? expected (?:one of|`).*', re.IGNORECASE | re.DOTALL)
_UNSUPPORTED = (
    r'unsupported|not (?:\w+ )?(?:support|allow|permit|accept|available|enabled|valid)|doesn.t support'
    r'|incompatible|invalid|unavailable|unknown|unrecognized|extra|forbidden|must be|only|may not|no endpoints'
    rf'|supports only|not one of|cannot unmarshal|input should be|\u53ea\u652f\u6301|\u4ec5\u652f\u6301|{ABROAD}'
)
UNKNOWN = (
    r'unsupported|not (?:\w+ )?(?:support|allow|permit|accept)|unknown|unrecogni[sz]ed|unexpected|extra|forbidden'
    rf'|additional propert|{ABROAD}'
)
_NOT_A_REFUSAL = r'must be set|only allowed when|are specified|but got|is required'


def tool_choice(refusal: Refusal) -> Delta | None:
    kind = _shapes.tool_choice(refusal.sent)
    if kind not in ('named', 'required') or not refusal.has(_UNSUPPORTED) or refusal.has(_NOT_A_REFUSAL):
        return None
    if kind == 'required' and refusal.has(
        r'(?:should|must) be\b.*\b(?:required|object)\b', r'supported \w* ?values.*\brequired\b'
    ):
        return None  # the word that was sent stands among those that may be
    # Most of those that refuse one form refuse both, and some say so.
    both = refusal.has(
        'thinking',
        'reasoning',
        r'must be \W*auto',
        r'only \W*auto',
        '[\u53ea\u4ec5]\u652f\u6301\\W*auto',
        'required or object',
        'no endpoints',
    )
    named = {'compat_named_tool_choice': False} if kind == 'named' else {}
    return {**named, **({'compat_required_tool_choice': False} if both or kind == 'required' else {})}


def tools(refusal: Refusal) -> Delta | None:
    """Only where functions were sent, and where a prompt can say all that is said about them."""
    sent = refusal.sent
    if not (sent.get('tools') or sent.get('functions')) or refusal.has(*_NO_MATTER_OF_TOOLS):
        return None
    return None if prompted(sent, _BY_PROMPT) is sent else _BY_PROMPT


def tools_by_name(refusal: Refusal) -> Delta | None:
    """The same, where the field that they are sent in is refused as any other is."""
    return tools(refusal) if refuses(refusal.complaint, 'tools', 'functions') else None


_BY_PROMPT = {'compat_tools': 'prompted'}
# What some servers refuse of tools, beside them, or together with them, while they take tools.
_NO_MATTER_OF_TOOLS = (
    r'parallel|\bstrict\b|must be set|more than|at most|too many|maximum|together|combin|at the same time',
    r'streaming with|custom|built-?in|hosted|server.?side|\bmcp\b|web.?search|with function calling|of type',
    r'(?:for|in|of) (?:user|system|assistant) messages',
    r'tool.?(?:results?|messages?|returns?|outputs?|ids?)\b|response.?(?:format|mime)|json.?(?:mode|schema|object)',
)


def output_format(refusal: Refusal) -> Delta | None:
    kind = _shapes.output_format(refusal.sent).get('type')
    if kind not in ('json_object', 'json_schema') or refusal.has(*_NO_MATTER_OF_FORMAT, rf'supported values.*{kind}'):
        return None
    strict = _shapes.is_strict(refusal.sent) and refusal.profile.get('openai_supports_strict_tool_definition', True)
    if kind == 'json_schema' and strict and refusal.has('strict') and not refusal.has('json_schema. is not'):
        return {'openai_supports_strict_tool_definition': False}
    if kind == 'json_object':
        return {'compat_json_object': False}
    # What was an object once is refused as a schema, too: then the prompt has to do.
    return {'compat_json_schema': False}


_NO_MATTER_OF_FORMAT = (r'word \W*json', 'must be an object', 'expected type', 'has moved', r'json_schema\.name')


def strict(refusal: Refusal) -> Delta | None:
    return {'openai_supports_strict_tool_definition': False} if _shapes.is_strict(refusal.sent) else None


def token_limit(refusal: Refusal) -> Delta | None:
    if refusal.has(
        'too large',
        r'\bvalue (?:for|of)',
        'maximum',
        'range',
        'at most',
        'above',
        'less than',
        'greater than',
        'exceed',
        'integer',
    ):
        return None
    sent = [key for key in ('max_tokens', 'max_completion_tokens') if key in refusal.sent]
    named = refusal.complaint.partition('instead')[0]
    first = next(iter(re.findall('max_completion_tokens|max_tokens', named)), None)
    if len(sent) != 1 or first != sent[0] or not refusal.has(UNKNOWN, 'instead', 'same time'):
        return None
    return {'openai_chat_supports_max_completion_tokens': sent[0] == 'max_tokens'}


def developer(refusal: Refusal) -> Delta | None:
    return {'openai_system_prompt_role': 'system'} if _shapes.has_role(refusal.sent, 'developer') else None


def no_system(refusal: Refusal) -> Delta | None:
    if not _shapes.has_role(refusal.sent, *_shapes.SYSTEM):
        return None
    if _shapes.late_system(refusal.sent) and refusal.profile.get('compat_late_system', 'asis') == 'asis':
        return {'compat_late_system': 'lift'}
    return {'compat_system': 'user'}


def late_system(refusal: Refusal) -> Delta | None:
    several = {'openai_chat_supports_multiple_system_messages': False}
    late = {'compat_late_system': 'lift'} if _shapes.late_system(refusal.sent) else {}
    heads = [_shapes.role(message) in _shapes.SYSTEM for message in _shapes.messages(refusal.sent)[:2]]
    return {**late, **(several if heads == [True, True] else {})} or None


_EMPTY_FORMS = ('empty', 'null', 'omit')


def assistant_content(refusal: Refusal) -> Delta | None:
    sent = _shapes.empty_contents(refusal.about)
    others = refusal.has(r'\b(?:user|system) (?:message|prompt)') and not refusal.has('assistant')
    if not sent or others:
        return None
    # Each form is tried once: the next after the one that the profile says already.
    tried = refusal.profile.get('compat_assistant_content', 'parent')
    left = _EMPTY_FORMS[_EMPTY_FORMS.index(tried) + 1 :] if tried in _EMPTY_FORMS else _EMPTY_FORMS
    following = next((form for form in left if form not in sent), None)
    return None if following is None else {'compat_assistant_content': following}


def _list_roles(refusal: Refusal) -> set[str]:
    """The roles of the list contents that a complaint may be about: of the message that it names, else of all."""
    if refusal.has(*_OTHER_FIELDS) or not (refusal.has(*_ABOUT_CONTENT) or refusal.has(*_NAMES_NOTHING)):
        return set()
    return _shapes.list_roles(refusal.about)


def list_results(refusal: Refusal) -> Delta | None:
    roles = _list_roles(refusal)
    if 'tool' not in roles:
        return None
    return {'compat_tool_return': 'joined', **({'compat_text_content': 'string'} if roles - {'tool'} else {})}


def list_contents(refusal: Refusal) -> Delta | None:
    return {'compat_text_content': 'string'} if _list_roles(refusal) - {'tool'} else None


# A complaint about the content of a message, or one that names no field at all; any other is about something else.
_ABOUT_CONTENT = (
    r'\bcontent\b',
    r'\bmessages?(?:\[|\.)\d',
    r'\binput(?:\[|\.)\d',
    'role:tool',
    r'\btool (?:message|result|output)',
)
_NAMES_NOTHING = (
    r'^\W*(?:input should be|invalid type\b|str type|expected (?:a )?str|failed to deserialize|cannot deserialize)',
    r'^\W*(?:json: cannot unmarshal|unhashable type|got an? (?:list|array)\b|\[|can only concatenate)',
)
_OTHER_FIELDS = ('tool_calls', 'arguments', 'tool_call_id', r'\bname\b', 'response_format', 'parameters')


def call_ids(refusal: Refusal) -> Delta | None:
    held = any(_shapes.calls(message) or 'call_id' in message for message in _shapes.messages(refusal.sent))
    return {'compat_tool_call_ids': 'alnum9'} if held else None


def echo(refusal: Refusal) -> Delta | None:
    held = _shapes.reasoning_fields(refusal.sent)
    named = [field for field in _shapes.REASONING if re.search(rf'(?<![\w]){field}(?![\w])', refusal.complaint)]
    return {'compat_echo_reasoning': 'never'} if held & set(named) else None


def echo_demanded(refusal: Refusal) -> Delta | None:
    found = re.search(r'reasoning_content|reasoning_details|(?<![\w])reasoning(?![\w])', refusal.complaint)
    answers = [message for message in _shapes.messages(refusal.sent) if _shapes.role(message) == 'assistant']
    return {'compat_echo_reasoning': found[0]} if found and any(found[0] not in one for one in answers) else None


def roles(refusal: Refusal) -> Delta | None:
    late = {'compat_late_system': 'lift'} if _shapes.late_system(refusal.sent) else {}
    again = {'compat_roles': 'alternate'} if _shapes.repeats_roles(refusal.sent) else {}
    return {**late, **again} or None


def last_message(refusal: Refusal) -> Delta | None:
    return {'compat_last_message': 'user'} if _shapes.ends_with_assistant(refusal.sent) else None


def after_tool(refusal: Refusal) -> Delta | None:
    return {'compat_after_tool': 'assistant'} if _shapes.user_after_tool(refusal.sent) else None


def tool_order(refusal: Refusal) -> Delta | None:
    return {'compat_tool_order': 'paired'} if _shapes.unpaired(refusal.sent) else None


def call_order(refusal: Refusal) -> Delta | None:
    return tool_order(refusal) or roles(refusal)


def stream(refusal: Refusal) -> Delta | None:
    off = 'messages' in refusal.sent and refusal.sent.get('stream') is not True
    return {'compat_stream': 'always'} if off else None


def schema(refusal: Refusal) -> Delta | None:
    found: tuple[str, ...] = ()
    if refusal.has(r'text\.format'):
        return None
    for schema in _shapes.schemas(refusal.sent):
        found = (*found, *(name for name in rewrites_for(refusal.complaint, schema) if name not in found))
    return {'compat_schema': found} if found else None


def omit(refusal: Refusal) -> Delta | None:
    fields = omitted(refusal.complaint, refusal.sent)
    return {'compat_omit': fields} if fields else None
