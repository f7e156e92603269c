"""Knobs: what oaicompat does for one server or model, as profile keys beside pydantic-ai's own.

One vocabulary for `profile={...}`, server rows, YAML, and what a refusal teaches. Where pydantic-ai has a key
already, that key is the knob. Precedence: caller's profile, learned, server row, provider's default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, Literal, cast

from pydantic_ai.exceptions import UserError
from pydantic_ai.profiles import ModelProfile
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

    tool_return_as_list: bool | Literal['true', 'false']
    """Older spelling of `compat_tool_return`: `True` is `'native'`, `False` is `'string'`."""


_VALUES: Mapping[str, tuple[str, ...]] = {'compat_tool_return': FORMS, 'compat_adapt': ('on', 'off')}
_OLDER = 'tool_return_as_list'


def knobs(profile: Mapping[str, Any]) -> dict[str, Any]:
    """`profile` with older spellings translated and every knob of oaicompat checked.

    Raises:
        UserError: For an unknown `compat_*` key or a value that is not one of its values.
    """
    checked = dict(profile)
    if _OLDER in checked:
        native = _boolean(_OLDER, checked.pop(_OLDER))
        # The current spelling wins, should somebody's base profile still carry the older one.
        checked.setdefault('compat_tool_return', 'native' if native else 'string')
    for key, value in checked.items():
        if key.startswith(PREFIX):
            _check(key, value)
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


def _checking(profile: Callable[..., Any]) -> Callable[..., Any]:
    return lambda base: knobs(profile(base))


def _check(key: str, value: Any) -> None:
    if key not in _VALUES:
        near = get_close_matches(key, _VALUES, n=1)
        hint = f'; did you mean `{near[0]}`?' if near else f'; known: {", ".join(_VALUES)}'
        raise UserError(f'unknown profile key `{key}`{hint}')
    if value not in _VALUES[key]:
        raise UserError(f'`{key}` is {value!r}; expected one of {", ".join(map(repr, _VALUES[key]))}')


def _boolean(key: str, value: Any) -> bool:
    text = str(value).lower() if isinstance(value, bool | str) else ''
    if text not in ('true', 'false'):
        raise UserError(f'`{key}` is {value!r}; expected true or false')
    return text == 'true'
