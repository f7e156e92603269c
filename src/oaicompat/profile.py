"""Knobs: what oaicompat does for one server or model, as profile keys beside pydantic-ai's own.

One vocabulary for `profile={...}`, server rows, YAML, and what a refusal teaches. Where pydantic-ai has a key
already, that key is the knob. Precedence: caller's profile, learned, server row, provider's default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from typing import Any, Literal, cast

from pydantic_ai.exceptions import UserError
from pydantic_ai.profiles import ModelProfile, merge_profile
from pydantic_ai.profiles.openai import OpenAIModelProfile

from oaicompat._toolreturns import FORMS, ToolReturnForm

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
    'compat_connect_timeout': float,
    'compat_unary_timeout': float,
    'compat_idle_timeout': float,
}
_OLDER = 'tool_return_as_list'


def knobs(profile: Mapping[str, Any]) -> dict[str, Any]:
    """`profile` with older spellings translated and every knob of oaicompat checked.

    Raises:
        UserError: For what is no mapping, an unknown `compat_*` key, or a value that is not one of its values.
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
    elif values is bool:
        if not isinstance(value, bool):
            raise UserError(f'`{key}` is {value!r}; expected true or false')
    elif isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float('inf'):
        raise UserError(f'`{key}` is {value!r}; expected a number of seconds above 0')
    return value


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


# The profile that the request under way was begun with, so that a lesson learned meanwhile can't split it in two.
_PINNED: ContextVar[tuple[object, Mapping[str, Any]] | None] = ContextVar('oaicompat_pinned_profile', default=None)


@contextmanager
def pinned(model: object, profile: Mapping[str, Any]) -> Iterator[None]:
    """Hold `model` to `profile` meanwhile."""
    token = _PINNED.set((model, profile))
    try:
        yield
    finally:
        _PINNED.reset(token)


def pinned_profile(model: object) -> Mapping[str, Any] | None:
    """The profile that `model` is held to, if it is."""
    held = _PINNED.get()
    return held[1] if held is not None and held[0] is model else None
