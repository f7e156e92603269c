"""Tool returns: which ones are lists, and the text of each element.

Two steps. `settle()` runs before pydantic-ai sees the history: what can be read only once (generators) or not at
all by its serialiser (`range`, dict views) becomes a list, in place, so that the next turn replays the same
result. `element_texts()` then says what a list return consists of, or `None` where the parent's message stands.
"""

from __future__ import annotations

from array import array
from collections import UserList
from collections.abc import Iterable, Iterator, MappingView, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Protocol, TypeVar, cast

from typing_extensions import override


class ToolReturn(Protocol):
    """What is used of pydantic-ai's `ToolReturnPart`."""

    __dataclass_fields__: ClassVar[dict[str, Any]]
    content: Any
    outcome: Any

    @property
    def files(self) -> Sequence[Any]:
        """The files in the content, which travel in a user message of their own."""

    @property
    def content_items(self) -> Any:
        """A method that gives the elements as the parent would write them: as texts, or as JSON values."""


_Part = TypeVar('_Part', bound=ToolReturn)

# A failed or retried return is an error for the model, not a result: the parent wraps it in {"error": ...}.
_RESULTS = frozenset({'success', 'denied', 'interrupted'})
_SCALARS = (str, bytes, bytearray, memoryview, int, float, complex, type(None))
_COMMON = (list, dict, *_SCALARS)
_PLAIN = frozenset((str, int, float, bool, type(None)))


class _Broken(Iterator[Any]):
    """What is left of an iterator that raised: it raises the same again, rather than pass for an empty result."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    @override
    def __next__(self) -> Any:
        raise self._error


def settle(content: Any) -> Any:
    """`content` with everything that can be read only once, or not be serialised, turned into lists.

    Returns the object itself when there is nothing to do, so identity tells whether anything changed.
    """
    if isinstance(content, _SCALARS) or _is_plain(content):
        return content
    if isinstance(content, Iterator | MappingView | range | UserList | array):
        return [settle(item) for item in cast(Iterable[Any], content)]
    if type(content) in (list, tuple):
        items = [settle(item) for item in content]
        return type(content)(items) if _changed(items, content) else content
    if type(content) is dict:
        values = {key: settle(value) for key, value in content.items()}
        return values if _changed(values.values(), content.values()) else content
    return content


def _is_plain(content: Any) -> bool:
    """Whether there is nothing to do, where that is told fast: lists and dicts of scalars and their like."""
    kind = type(content)
    if kind in _PLAIN:
        return True
    if kind is dict:
        return all(type(value) in _PLAIN or _is_plain(value) for value in content.values())
    return kind is list and all(type(item) in _PLAIN or _is_plain(item) for item in content)


def settle_part(part: ToolReturn) -> None:
    """Settle the content of `part` in place.

    Raises:
        Exception: What an iterator in it raises, now and whenever the part is sent again.
    """
    try:
        content = settle(part.content)
    except RecursionError:  # holds itself: the parent says so when it writes it
        return
    except Exception as error:
        part.content = _Broken(error)
        raise
    if content is not part.content:
        part.content = content


def listed(part: _Part) -> _Part:
    """`part` with a tuple, set, deque or other list-like content as a list; the part itself otherwise."""
    if isinstance(part.content, _COMMON):
        return part
    items = _as_list(part, part.content)
    return part if items is None else replace(part, content=items)


def element_texts(part: ToolReturn) -> list[str] | None:
    """The text of each element of a list return, or `None` where the parent's message must stand.

    Strings go as they are; any other element as the text the parent would use for it. Empty ones are left out.
    `None` for anything but a list, for lists with files, for errors, and where no text is left.
    """
    if part.outcome not in _RESULTS:
        return None
    part = listed(part)
    if not isinstance(part.content, list) or part.files:
        return None
    return [text for text in part.content_items(mode='str') if text] or None


def is_list_return(part: ToolReturn) -> bool:
    """Whether `element_texts` has anything to say about `part`; cheaper than asking it for common content."""
    return (isinstance(part.content, list) or not isinstance(part.content, _COMMON)) and element_texts(part) is not None


def _as_list(part: ToolReturn, content: Any) -> list[Any] | None:
    """`content` as the list that the parent would write it as, if it would."""
    try:
        [value] = replace(part, content=[content], outcome='success').content_items(mode='jsonable')
    except Exception:
        return None  # the parent raises it when it writes the part
    if not isinstance(value, list):
        return None
    # Keep the elements themselves where iterating gives them: a root model gives (field, value) pairs instead.
    items = list(content) if isinstance(content, Iterable) and not hasattr(content, 'model_dump') else value
    return items if len(items) == len(value) else value


def _changed(new: Iterable[Any], old: Iterable[Any]) -> bool:
    return any(a is not b for a, b in zip(new, old, strict=True))
