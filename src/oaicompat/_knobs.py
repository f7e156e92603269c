"""Knobs that change what is sent: whether any is set, told without the rooms that do it (`_requests.py`). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

ToolReturnForm = Literal['auto', 'native', 'joined', 'string']
"""How a list tool return is sent; see `CompatibleModelProfile.compat_tool_return`."""

FORMS: tuple[ToolReturnForm, ...] = ('auto', 'native', 'joined', 'string')

ADAPTING = (
    'compat_tools',
    'compat_named_tool_choice',
    'compat_required_tool_choice',
    'compat_json_object',
    'compat_json_schema',
    'compat_schema',
    'compat_omit',
    'compat_echo_reasoning',
    'compat_text_content',
    'compat_tool_order',
    'compat_late_system',
    'compat_system',
    'compat_roles',
    'compat_after_tool',
    'compat_last_message',
    'compat_assistant_content',
)
"""Each of them has its function in `_requests.ADAPTERS`."""

_DEFAULTS = ('asis', 'auto', 'native', 'parent')


def adapts(profile: Mapping[str, Any]) -> bool:
    """Whether any knob is set off its default, so that `_requests.adapted()` might do something.

    Args:
        profile: A profile with `compat_*` keys; other keys are ignored.
    """
    return any(is_set(profile.get(knob)) for knob in ADAPTING)


def is_set(value: Any) -> bool:
    """Whether the value of such a knob is off its default."""
    return value is False or (bool(value) and value is not True and value not in _DEFAULTS)
