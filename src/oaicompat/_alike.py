"""Whether pydantic-ai does with a model's messages what it did when this was written.

What is kept from one turn to the next rests on that. A class of somebody's own, in front of or behind ours, a method
that somebody put in its place, on a model, a class or a module, and a pydantic-ai that does something else are asked
for all messages, each time.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import cache
from operator import is_
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, cast

import pydantic_ai
from pydantic_ai import models
from pydantic_ai.models import Model
from pydantic_ai.models.openai import OpenAIChatModel, _chat_model

_PARENT = str(Path(pydantic_ai.__file__).parent)
_OURS = 'oaicompat.models'
_MAPPING = ('_finalize', '_map', '_Map', '_auto', '_carries', '_get_instruction', '_inline', 'accepts')
_READ = ('profile', 'system')

Told = tuple[str, ...] | frozenset[str]
"""Names, or how they begin."""


def maps_alike(model: object) -> bool:
    """Whether `model` maps messages as `OpenAIChatModel` does, but for what we override."""
    return _is_alike(model, OpenAIChatModel, _MAPPING)


def prepares_alike(model: object, passes: frozenset[str]) -> bool:
    """Whether `model` prepares messages as `Model` does, by `passes` and no others, but for what we override."""
    return reads_only(Model.prepare_messages, passes) and _is_alike(model, Model, passes | _PREPARING)


_PREPARING = frozenset(('prepare_messages',))


def _is_alike(model: object, parent: type[Any], told: Told) -> bool:
    # What is read, the parent keeps there.
    patched = any(_is_told(name, told) and name not in _READ for name in vars(model))
    return not patched and not _is_own(cast(Hashable, type(model)), told) and as_shipped(parent, told)


def _is_told(name: str, told: Told) -> bool:
    return name in told if isinstance(told, frozenset) else name.startswith(told) or name in _READ


@cache
def _is_own(kind: Any, told: Told) -> bool:
    """Whether a class other than ours has something of its own in front of pydantic-ai's, wherever it stands."""
    front = kind.__mro__[: kind.__mro__.index(OpenAIChatModel)]
    return any(_is_told(name, told) for base in front if base.__module__ != _OURS for name in vars(base))


@cache
def reads_only(function: Any, names: frozenset[str]) -> bool:
    """Whether a function is pydantic-ai's own and names nothing but `names`: then it does what it did."""
    return _is_shipped(function) and type(function) is FunctionType and _names(function.__code__) <= names


def _names(code: CodeType) -> set[str]:
    nested = (_names(constant) for constant in code.co_consts if isinstance(constant, CodeType))
    return set(code.co_names).union(*nested)


def as_shipped(kind: type[Any], told: Told) -> bool:
    """Whether nobody put a method of a class, or a function beside it, in another's place."""
    now = [*vars(kind).values()]
    last = _VERIFIED.get((kind, told), ())
    if len(now) != len(last) or not all(map(is_, now, last)):
        if not all(_is_shipped(value) for name, value in vars(kind).items() if _is_told(name, told)):
            return False
        _VERIFIED[kind, told] = now
    return all(map(_is_as_it_was, _MODULES))


_VERIFIED: dict[tuple[type[Any], Told], list[object]] = {}


def _is_shipped(value: object) -> bool:
    """Whether a function, if it is one, is pydantic-ai's own."""
    if isinstance(value, property):
        value = value.fget
    value = getattr(value, '__func__', value)
    return type(value) is not FunctionType or value.__code__.co_filename.startswith(_PARENT)


def _is_as_it_was(module: ModuleType) -> bool:
    return all(map(is_, map(vars(module).get, _KNOWN[module]), _KNOWN[module].values()))


_MODULES = (models, _chat_model)
_KNOWN: dict[ModuleType, dict[str, object]] = {
    module: {name: value for name, value in vars(module).items() if type(value) is FunctionType} for module in _MODULES
}
