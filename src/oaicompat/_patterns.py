"""Regular expressions that are compiled when they are first used: most never are, and compiling takes a while."""

from __future__ import annotations

import re
from typing import Any, cast

from typing_extensions import override


class _Lazy:
    """Stands for a pattern; each of its attributes is the pattern's own from the second time on."""

    def __init__(self, source: str, flags: int) -> None:
        self._given = source, flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith('__'):  # who copies asks, before there is anything to compile
            raise AttributeError(name)
        value = getattr(re.compile(*self._given), name)
        self.__dict__[name] = value
        return value

    @override
    def __repr__(self) -> str:
        return repr(re.compile(*self._given))


def lazy(source: str, flags: int = 0) -> re.Pattern[str]:
    """`re.compile(source, flags)`, but not before it is used; for its methods, not for the functions of `re`.

    Raises:
        re.error: When it is used, if it is no pattern.
    """
    return cast('re.Pattern[str]', _Lazy(source, flags))
