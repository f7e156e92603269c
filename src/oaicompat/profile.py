"""Knobs: what oaicompat does for one server or model, as profile keys beside pydantic-ai's own.

One vocabulary for `profile={...}`, server rows, YAML, and what a refusal teaches. Where pydantic-ai has a key
already, that key is the knob. Precedence: caller's profile, learned, server row, provider's default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal, cast

from pydantic_ai.exceptions import UserError
from pydantic_ai.profiles import ModelProfile, merge_profile
from pydantic_ai.profiles.openai import OpenAIModelProfile

from oaicompat._knobs import FORMS, ToolReturnForm

if TYPE_CHECKING:
    from oaicompat._mapped import Sending

__all__ = ('CompatibleModelProfile', 'ToolReturnForm')

PREFIX = 'compat_'


class CompatibleModelProfile(OpenAIModelProfile, total=False):
    """pydantic-ai's `OpenAIModelProfile` with the knobs of oaicompat; every key is optional."""

    compat_tool_return: ToolReturnForm
    """How a tool return that is a list reaches the model. Default: `'auto'`.

    - `'auto'`: `'native'`, but `'joined'` where lists are known to lose or garble results: on servers whose row says
      so, on llama.cpp when the model's chat template can't show them, and after a server refused one.
    - `'native'`: `content` is a list of text parts, one for each element.
    - `'joined'`: `content` is the texts of the elements, joined by a newline.
    - `'string'`: `content` is one JSON string, as pydantic-ai sends it.

    What servers and templates make of lists: https://github.com/vllm-project/vllm/issues/39614,
    https://github.com/BerriAI/litellm/pull/29471.
    """

    compat_adapt: Literal['on', 'off']
    """Whether a request that was refused for a shape it used is changed and sent again. Default: `'on'`.

    With `'off'` there is never a second request; the refusal is raised as the server said it.
    """

    compat_repair: Literal['on', 'off', 'strict']
    """Whether what a server sends back is repaired where it departs from the API reference. Default: `'on'`.

    Each repair is listed in `ModelResponse.provider_details['oaicompat']`. `'off'` is pydantic-ai alone; `'strict'`
    raises on the first deviation, for people who write servers.
    """

    compat_reasoning_tags: Literal['parent', 'ours', 'off']
    """Who looks for reasoning tags such as `<think>` in the text. Default: `'ours'`; on OpenAI's own host `'parent'`.

    - `'ours'`: a tag opens only at the start of the answer or after reasoning, and may be cut anywhere in a stream. The
      pair in `thinking_tags` counts, and the common ones beside it; `thinking_tags=None` switches all off.
    - `'parent'`: pydantic-ai's search, which also finds a tag that the answer merely mentions.
    - `'off'`: tags are text.
    """

    compat_start_with_reasoning: bool
    """Whether an answer starts inside reasoning, since the chat template opens the tag. Default: `False`, or what
    an answer that came whole showed: a closing tag without an opening one."""

    compat_answer_in_reasoning: bool
    """Whether an answer that stands in the reasoning field alone is shown as text. Default: `False`."""

    compat_stream: Literal['asis', 'always']
    """`'always'` streams also where the caller did not ask for it, for servers that only stream. Default: `'asis'`."""

    compat_tool_call_ids: Literal['asis', 'alnum9']
    """`'alnum9'` sends each id of a tool call, and of its result, as nine letters or digits, for servers that take no
    others. Default: `'asis'`. Source: https://github.com/anomalyco/opencode/issues/1680."""

    compat_search_refusals: bool
    """Whether up to three other shapes are tried after a refusal that names nothing. Default: `True`."""

    compat_omit: tuple[str, ...]
    """Fields of the request body to leave out, such as `('stream_options', 'messages.name')`; a dotted path leads into
    objects and through lists. Default: none."""

    compat_text_calls: Literal['on', 'off']
    """Whether calls that the server left in the text, or in the reasoning, are recovered. Default: `'on'` where tools
    are offered; on OpenAI's own host `'off'`."""

    compat_tools: Literal['native', 'prompted']
    """How a chat request says which tools there are. Default: `'native'`.

    - `'native'`: in the fields of the API.
    - `'prompted'`: in the system message, for servers without tools; calls and results of the history become text, in
      the form that the model was trained on where its name tells. Only functions can be told: with any other tool, all
      stays in the fields.

    Source: https://github.com/ollama/ollama/issues/5793.
    """

    compat_named_tool_choice: bool
    """Whether the server takes a `tool_choice` that names a tool; `False` sends `required` and that tool alone.
    Default: `True`. Source: https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/670."""

    compat_required_tool_choice: bool
    """Whether the server takes `tool_choice: required`; `False` sends `auto` and the allowed tools alone. Default:
    `True`. Source: https://github.com/cloudwego/eino/issues/994."""

    compat_json_object: bool
    """Whether the server takes `response_format: json_object`; `False` sends a schema of any object, or with
    `compat_json_schema=False` says it in the prompt. Default: `True`. Source:
    https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/307."""

    compat_json_schema: bool
    """Whether the server takes `response_format: json_schema`; `False` sends `json_object` and the schema as text.
    Default: `True`. Source: https://github.com/llm-exe/llm-exe/issues/662."""

    compat_schema: tuple[str, ...]
    """Keywords of JSON Schema that the server refuses, and other rewrites of schemas; the page of knobs has all names.
    Default: none. Source: https://github.com/zed-industries/zed/issues/44875."""

    compat_assistant_content: Literal['parent', 'null', 'empty', 'omit']
    """What an assistant message with tool calls and no text has for content: as pydantic-ai sends it, `null`, `''`, or
    no field. Default: `'parent'`. Source: https://github.com/Portkey-AI/gateway/issues/995."""

    compat_text_content: Literal['asis', 'string']
    """`'string'` sends content that is a list of texts as one text. Default: `'asis'`. Source:
    https://github.com/0x676e67/duckai/issues/16."""

    compat_late_system: Literal['asis', 'lift', 'user']
    """Where a system message goes that is not at the beginning: `'lift'` joins it to the one that is, `'user'` makes it
    a user message. Default: `'asis'`. Source: https://github.com/openclaw/openclaw/issues/19386."""

    compat_system: Literal['asis', 'user']
    """`'user'` puts system messages in front of what the next user message says, for models without that role. Default:
    `'asis'`. Source: https://github.com/volcengine/OpenViking/pull/628."""

    compat_roles: Literal['asis', 'alternate']
    """`'alternate'` makes one message of neighbours with one role, and lets a user begin. Default: `'asis'`. Source:
    https://github.com/microsoft/autogen/issues/1037."""

    compat_after_tool: Literal['asis', 'assistant']
    """`'assistant'` puts an answer between a tool's result and a user message. Default: `'asis'`. Source:
    https://github.com/NousResearch/hermes-agent/issues/20154."""

    compat_last_message: Literal['asis', 'user']
    """`'user'` lets a user message follow, where an answer would be the last one. Default: `'asis'`. Source:
    https://github.com/ggml-org/llama.cpp/issues/20861."""

    compat_tool_order: Literal['asis', 'paired']
    """`'paired'` puts each result right behind its call. Default: `'asis'`. Source:
    https://github.com/FoundationAgents/OpenManus/issues/744."""

    compat_item_style: Literal['portable', 'openai']
    """In which form a request to `/responses` says the turns of the model. Default: `'portable'`; on OpenAI's own host
    `'openai'`.

    - `'portable'`: reasoning as one `reasoning_text`, all text of a turn as one whole output message, then the calls.
    - `'openai'`: as pydantic-ai sends it.

    Source: https://github.com/vllm-project/vllm/issues/33089, https://github.com/tidyverse/ellmer/issues/1153.
    """

    compat_echo_reasoning: str
    """How reasoning of earlier turns is sent back: `'auto'` as pydantic-ai does, `'never'`, or in the field of this
    name, such as `'reasoning_content'`. Default: `'auto'`. Source: https://github.com/Kilo-Org/kilocode/issues/10375,
    https://github.com/JohnnyZ93/oai-compatible-copilot/issues/215."""

    compat_connect_timeout: float
    """Seconds to wait for a connection. Default: 30 (pydantic-ai: 5). Not for a client of the caller's own."""

    compat_unary_timeout: float
    """Seconds that an answer may take that comes whole, retries included. Default: 600. Slow local reasoning may need
    more."""

    compat_idle_timeout: float
    """Seconds between two events of a stream; there is no limit on the whole. Default: 600."""

    tool_return_as_list: bool | Literal['true', 'false']
    """Older spelling of `compat_tool_return`: `True` is `'native'`, `False` is `'string'`."""


_VALUES: Mapping[str, tuple[str, ...] | type] = {
    'compat_tool_return': FORMS,
    'compat_adapt': ('on', 'off'),
    'compat_repair': ('on', 'off', 'strict'),
    'compat_reasoning_tags': ('parent', 'ours', 'off'),
    'compat_start_with_reasoning': bool,
    'compat_answer_in_reasoning': bool,
    'compat_stream': ('asis', 'always'),
    'compat_tool_call_ids': ('asis', 'alnum9'),
    'compat_search_refusals': bool,
    'compat_omit': tuple,
    'compat_text_calls': ('on', 'off'),
    'compat_tools': ('native', 'prompted'),
    'compat_named_tool_choice': bool,
    'compat_required_tool_choice': bool,
    'compat_json_object': bool,
    'compat_json_schema': bool,
    'compat_schema': tuple,
    'compat_assistant_content': ('parent', 'null', 'empty', 'omit'),
    'compat_text_content': ('asis', 'string'),
    'compat_late_system': ('asis', 'lift', 'user'),
    'compat_system': ('asis', 'user'),
    'compat_roles': ('asis', 'alternate'),
    'compat_after_tool': ('asis', 'assistant'),
    'compat_last_message': ('asis', 'user'),
    'compat_tool_order': ('asis', 'paired'),
    'compat_item_style': ('portable', 'openai'),
    'compat_echo_reasoning': str,
    'compat_connect_timeout': float,
    'compat_unary_timeout': float,
    'compat_idle_timeout': float,
}
_OLDER = 'tool_return_as_list'


def knobs(profile: Mapping[str, Any]) -> dict[str, Any]:
    """`profile` with older spellings translated and every knob of oaicompat checked.

    Raises:
        UserError: For what is no mapping, an unknown `compat_*` key, a value that is not one of its values, or two that
            exclude each other.
    """
    if not isinstance(cast(object, profile), Mapping):
        raise UserError(f'`profile` must be a mapping, not {type(profile).__name__}')
    checked = dict(profile)
    if _OLDER in checked:
        native = _boolean(_OLDER, checked.pop(_OLDER))
        # The current spelling wins, should somebody's base profile still carry the older one.
        checked.setdefault('compat_tool_return', 'native' if native else 'string')
    for key, value in checked.items():
        if not isinstance(cast(object, key), str):
            raise UserError(f'`profile` has the key {key!r}; expected a string')
        if key.startswith(PREFIX):
            checked[key] = _check(key, value)
        else:
            _check_known(key)
    if (checked.get('compat_tools'), checked.get('compat_repair')) == ('prompted', 'off'):
        raise UserError(
            "`compat_tools` is 'prompted' and `compat_repair` is 'off': then nobody reads the calls; set one of them"
        )
    if checked.get('compat_tool_return') == 'auto':
        # The default, written down: what was learned and what the row says still hold.
        del checked['compat_tool_return']
    return checked


def split(
    profile: ModelProfile | Mapping[str, Any] | Callable[..., Any] | None,
) -> tuple[ModelProfile | Callable[..., Any] | None, dict[str, Any]]:
    """What of a caller's `profile` goes to the parent's constructor, and the knobs, which must not.

    Upstream constructors ask whether a profile was given at all; a knob of ours is no answer to that.
    """
    if profile is None:
        return None, {}
    if callable(profile):
        return _checking(profile), {}
    if not isinstance(profile, Mapping):
        raise UserError(f'`profile` must be a mapping or a function, not {type(profile).__name__}')
    checked = knobs(profile)
    ours = {key: value for key, value in checked.items() if key.startswith(PREFIX)}
    theirs = {key: value for key, value in checked.items() if not key.startswith(PREFIX)}
    return cast(ModelProfile, theirs) or None, ours


def merged_over(profile: Any, ours: Mapping[str, Any]) -> Any:
    """A model's own `profile`, a mapping or a function or neither, with knobs of ours over it."""
    own = cast(ModelProfile, ours)
    if callable(profile):
        return lambda default: merge_profile(profile(default), own)
    return merge_profile(profile, own)


def shown(
    kind: type[object], model_name: str, base_url: str, settings: Mapping[str, Any] | None, profile: object
) -> str:
    """The `repr` of a model; headers and bodies of the caller's own, which may hold keys, are not in it."""
    plain = {key: '...' if key.startswith('extra_') else value for key, value in (settings or {}).items()}
    fields = {'model_name': model_name, 'base_url': base_url, 'settings': plain, 'profile': profile}
    return f'{kind.__qualname__}({", ".join(f"{key}={value!r}" for key, value in fields.items() if value)})'


def _checking(profile: Callable[..., Any]) -> Callable[..., Any]:
    return lambda base: knobs(profile(base))


def _check(key: str, value: Any) -> Any:
    """`value`, if it is one of `key`; YAML reads `on` and `off` as booleans."""
    if key not in _VALUES:
        near = get_close_matches(key, _VALUES, n=1)
        hint = f'; did you mean `{near[0]}`?' if near else f'; known: {", ".join(_VALUES)}'
        raise UserError(f'unknown profile key `{key}`{hint}')
    values = _VALUES[key]
    if isinstance(values, tuple):
        if isinstance(value, bool) and 'off' in values:
            value = 'on' if value else 'off'
        if value not in values:
            raise UserError(f'`{key}` is {value!r}; expected one of {", ".join(map(repr, values))}')
        return value
    if values is tuple:
        return _names(key, value)
    wanted, fine = _KINDS[values]
    if not fine(value):
        raise UserError(f'`{key}` is {value!r}; expected {wanted}')
    return value


_KINDS: Mapping[type, tuple[str, Callable[[Any], bool]]] = {
    bool: ('true or false', lambda value: isinstance(value, bool)),
    str: ('a name', lambda value: isinstance(value, str) and value.isidentifier()),
    float: (
        'a number of seconds above 0',
        lambda value: isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < float('inf'),
    ),
}


def _names(key: str, value: Any) -> tuple[str, ...]:
    """The names that a knob lists; YAML gives a list."""
    if isinstance(value, str) or not isinstance(value, list | tuple | set | frozenset):
        raise UserError(f'`{key}` is {value!r}; expected a list of names')
    names = tuple(value)
    known: tuple[str, ...] | None = None
    if key == 'compat_schema':
        from oaicompat._dialects import REWRITE_NAMES as known  # noqa: N811
    for name in names:
        if not isinstance(name, str) or not name:
            raise UserError(f'`{key}` has {name!r}; expected a name')
        if known is not None and name not in known:
            raise UserError(f'`{key}` has {name!r}; expected some of {", ".join(known)}')
    return names


def _check_known(key: str) -> None:
    """A key that is almost one of pydantic-ai's is a mistake; others may be those of a class that we don't know."""
    if key not in OpenAIModelProfile.__annotations__ and key not in ModelProfile.__annotations__:
        near = get_close_matches(key, {**ModelProfile.__annotations__, **OpenAIModelProfile.__annotations__}, 1, 0.93)
        if near:
            raise UserError(f'unknown profile key `{key}`; did you mean `{near[0]}`?')


def _boolean(key: str, value: Any) -> bool:
    text = str(value).lower() if isinstance(value, bool | str) else ''
    if text not in ('true', 'false'):
        raise UserError(f'`{key}` is {value!r}; expected true or false')
    return text == 'true'


@dataclass
class Pin:
    """What the request under way was begun with, so that a lesson learned meanwhile can't split it in two.

    Attributes:
        model: The model that makes it.
        profile: The profile that it is made with.
        fired: Names of the adaptations that changed it.
        response: The newest HTTP response to it, if the client lets us see it.
        raw: Whether its answer may come as a JSON value.
        maps: Whether the model maps its messages as we do, once that is known.
        sending: What they were mapped to before, if it does.
    """

    model: object
    profile: Mapping[str, Any]
    fired: set[str] = field(default_factory=set)
    response: Any = None
    raw: bool = False
    maps: bool | None = None
    sending: Sending | None = None


_PINNED: ContextVar[Pin | None] = ContextVar('oaicompat_pinned', default=None)


@contextmanager
def pinned(model: object, profile: Mapping[str, Any], fired: Iterable[str] = ()) -> Iterator[Pin]:
    """Hold `model` to `profile` meanwhile."""
    pin = Pin(model, profile, set(fired))
    token = _PINNED.set(pin)
    try:
        yield pin
    finally:
        _PINNED.reset(token)


def pin_of(model: object) -> Pin | None:
    """What `model` is held to, if it is."""
    pin = _PINNED.get()
    return pin if pin is not None and pin.model is model else None


def current_pin() -> Pin | None:
    """What the request under way is held to, if it is one of ours."""
    return _PINNED.get()
