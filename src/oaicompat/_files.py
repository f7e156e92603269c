"""Files: YAML or JSON text to values, and the line that each value stands on.

`read()` gives a `Document`; `Document.where()` turns the path of a value into `FILE:LINE: a.b.c` for an error. YAML is
read with PyYAML's safe constructor, so that no tag runs code. Without PyYAML, JSON still works, without lines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import shorten
from typing import Any, cast

from pydantic_ai.exceptions import UserError

from oaicompat._secrets import unkeyed

Step = str | int
_Lines = dict[tuple[Step, ...], int]


@dataclass(frozen=True)
class Document:
    """The value of a file, and where its parts stand.

    Attributes:
        value: What the text says: mappings, lists, strings, numbers, booleans, `None`.
        name: The file's name, or `<text>`.
        lines: The line of each key and item, counted from 1, by path.
    """

    value: Any
    name: str
    lines: _Lines = field(default_factory=dict)

    def where(self, path: Sequence[Step]) -> str:
        """`FILE:LINE: a.b.c` for `path`; steps that the file does not have are passed over."""
        found: tuple[Step, ...] = ()
        value: Any = self.value
        for step in path:
            if isinstance(value, dict):
                inside = step in value
            else:
                inside = isinstance(value, list) and isinstance(step, int) and step < len(value)
            if inside:
                value, found = value[step], (*found, step)
        line = f':{self.lines[found]}' if found in self.lines else ''
        shown = '.'.join(str(step) for step in found)
        return f'{self.name}{line}: {shown}' if shown else f'{self.name}{line}'


def read(source: str | Path) -> Document:
    """Read a file, or the text itself.

    Args:
        source: A path, or a string; one with a line break or a brace is text, any other a path.

    Raises:
        UserError: If the file can't be read or is neither YAML nor JSON.
    """
    if not isinstance(cast(object, source), str | Path):
        raise UserError(f'expected a path or a text, not {type(source).__name__}')
    if isinstance(source, str) and any(mark in source for mark in '\n{'):
        return _parse(source, '<text>')
    return _parse(_text_of(Path(source)), str(source))


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding='utf-8')
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else 'not UTF-8 text'
        raise UserError(
            f"{shorten(str(path), 100)} can't be read: {reason}; expected a YAML or JSON file with `models:`"
        ) from None


def _parse(text: str, name: str) -> Document:
    try:
        import yaml
    except ImportError:
        return _parse_json(text, name)
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        lines: _Lines = {}
        if node is not None:
            _note_lines(node, (), lines, name, {})
        return Document(yaml.safe_load(text), name, lines)
    except yaml.YAMLError as error:
        if text.lstrip().startswith('{'):  # JSON that YAML does not take, such as with tabs
            return _parse_json(text, name)
        mark = getattr(error, 'problem_mark', None)
        line = f':{mark.line + 1}' if mark else ''
        raise UserError(f'{name}{line}: not YAML: {_problem(error)}') from None
    except (ValueError, RecursionError) as error:  # an impossible date, an alias that holds itself
        raise UserError(f'{name}: not YAML: {error}') from None


def _problem(error: Any) -> str:
    """What PyYAML complains about, without the name of an alias or tag: it may be a value that lacks its quotes."""
    text = getattr(error, 'problem', None) or getattr(error, 'reason', None) or str(error)
    return re.sub(
        r"(alias|tag) '(?!tag:yaml)[^']*'", r'\1; put a value that begins with *, & or ! in quotes', str(text)
    )


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    unique: dict[str, Any] = {}
    for name, value in pairs:
        if name in unique:
            raise UserError(f'`{name}` stands twice')
        unique[name] = value
    return unique


def _parse_json(text: str, name: str) -> Document:
    try:
        return Document(json.loads(text, object_pairs_hook=_unique), name)
    except json.JSONDecodeError as error:
        raise UserError(
            f'{name}:{error.lineno}: not JSON: {error.msg}; for YAML install the extra: pip install "oaicompat[yaml]"'
        ) from None


def _note_lines(node: Any, path: tuple[Step, ...], lines: _Lines, name: str, seen: dict[int, bool]) -> None:
    import yaml

    if len(path) > _DEEPEST:
        raise UserError(f'{name}:{node.start_mark.line + 1}: nested too deeply')
    lines.setdefault(path, node.start_mark.line + 1)
    if seen.get(id(node)):
        raise UserError(f'{name}:{node.start_mark.line + 1}: nested too deeply')
    if id(node) in seen:  # an alias: what it names was noted where it stands
        return
    seen[id(node)] = True
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            step = (*path, key.value if isinstance(key.value, str) else '?')
            line = key.start_mark.line + 1
            if step in lines:
                raise UserError(f'{name}:{line}: `{key.value}` stands twice, first on line {lines[step]}')
            lines[step] = line
            _note_lines(value, step, lines, name, seen)
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            _note_lines(item, (*path, index), lines, name, seen)
    seen[id(node)] = False


_DEEPEST = 20


def referenced(models: Mapping[str, Any], document: Document) -> dict[str, Any]:
    """`models` with every reference replaced by what it names.

    A string in place of a config, or in a fallback's `models`, is a reference where it is the name of a model.

    Raises:
        UserError: For a cycle, a string that is neither a name nor an identifier with a prefix, or models that refer to
            each other too often or too deeply.
    """
    for name in models:
        if not isinstance(cast(object, name), str):
            raise UserError(f'{document.where(("models", name))}: the name {name!r} is no string; put it in quotes')
    references = _References(models, document)
    return {name: references.followed(config, (name,), ('models', name)) for name, config in models.items()}


@dataclass
class _References:
    models: Mapping[str, Any]
    document: Document
    made: int = 0

    def followed(self, config: Any, seen: tuple[str, ...], path: tuple[Step, ...]) -> Any:
        self.made += 1
        if self.made > _MOST_MODELS or len(seen) > _DEEPEST:
            raise UserError(f'{self.document.where(path)}: models refer to each other too often or too deeply')
        if isinstance(config, str):
            if config not in self.models:
                _check_name(config, path, self.models, self.document)
                return config
            if config in seen:
                circle = ' → '.join((*seen, config))
                raise UserError(f'{self.document.where(path)}: models refer to each other in a circle: {circle}')
            return self.followed(self.models[config], (*seen, config), path)
        if isinstance(config, Mapping) and isinstance(children := config.get('models'), list):
            steps = (*path, 'models')
            return {**config, 'models': [self.followed(c, seen, (*steps, i)) for i, c in enumerate(children)]}
        return config


_MOST_MODELS = 1000


def _check_name(name: str, path: tuple[Step, ...], models: Mapping[str, Any], at: Document) -> None:
    from difflib import get_close_matches

    if ':' in name or name in ('', 'test'):
        return
    near = get_close_matches(name, map(str, models), n=2)
    hint = f'did you mean {" or ".join(near)}?' if near else f'names here: {", ".join(map(str, models))}'
    raise UserError(f'{at.where(path)}: {unkeyed(name)!r} is neither the name of a model nor PREFIX:NAME; {hint}')
