"""Environment: `${VAR}` and `${VAR:-default}` in a config, and values that become headers."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from pydantic import SecretStr
from pydantic_ai.exceptions import UserError

from oaicompat._patterns import lazy

_LIKE_A_VARIABLE = lazy(r'(?=.{3,40}\Z)[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+')
_VARIABLE = lazy(r'\$\{(?P<name>\w+)(?::-(?P<default>[^}]*))?\}')


def expanded(values: Mapping[str, SecretStr], what: str) -> dict[str, str]:
    expanded = {name: expand(value.get_secret_value(), f'{what}.{name}') or '' for name, value in values.items()}
    if what == 'query':
        return expanded
    return {name: _header(value, f'{what}.{name}') for name, value in expanded.items()}


def key_in(variable: str | None, option: str) -> str | None:
    """The key in the variable that an option of the command line names.

    Raises:
        UserError: If it is not set. What does not look like the name of a variable may be the key, and is not shown.
    """
    key = os.environ.get(variable) if variable is not None else None
    if variable is not None and not key:
        if _LIKE_A_VARIABLE.fullmatch(variable):
            raise UserError(f'{option} names {variable}, which is not set')
        raise UserError(f'{option} takes the name of the variable that holds the key, not the key; no such one is set')
    return key


def expand(text: str | None, what: str) -> str | None:
    """`text` with `${VAR}` and `${VAR:-default}` replaced by what the environment says."""

    def replaced(found: re.Match[str]) -> str:
        value = os.environ.get(found['name']) or found['default']
        if value is None:
            raise UserError(
                f'`{what}` needs the variable {found["name"]}, which is not set; or write ${{{found["name"]}:-default}}'
            )
        return value

    if text is None:
        return None
    if '${' in _VARIABLE.sub('', text):
        raise UserError(f'`{what}` holds a ${{...}} that is none; write ${{VAR}} or ${{VAR:-default}}')
    return _VARIABLE.sub(replaced, text)


def _header(value: str, what: str) -> str:
    """A header's value; one that no header can carry would show up in the error of the HTTP library."""
    value = value.strip()
    if not value.isascii() or not value.isprintable():
        raise UserError(f'`{what}` holds a line break or a non-ASCII character, which no HTTP header can carry')
    return value
