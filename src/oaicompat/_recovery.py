"""Calls that the server left in the text or in the reasoning, recovered: pieces of an answer in, deltas out. Pure.

`_textcalls.py` finds them. Text, reasoning that stood in it, and reasoning in a field of its own are searched apart;
each keeps its order, and the calls stand where they were written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from oaicompat._envelope import Json
from oaicompat._textcalls import CallScanner, Found, scan
from oaicompat._toolcalls import ToolCalls

TextCalls = Literal['off', 'on', 'suppress']
"""Whether calls in the text are recovered, or taken out alone, since none was to be made."""

RECOVERED, SUPPRESSED, REJECTED = 'tool_call.text', 'tool_call.suppressed', 'tool_call.rejected'
_PARSER = re.compile(
    r'failed to parse (?:input|output|the generated \w+)(?: at pos \d+)?: ?(?P<text>.+)', re.DOTALL | re.IGNORECASE
)


class Recovery:
    """The searches in one answer.

    Attributes:
        found: Whether any call was recovered.
    """

    def __init__(self, mode: TextCalls, calls: ToolCalls, keys: Sequence[str], repairs: set[str]) -> None:
        """Search the fields `keys`, in that order."""
        self._mode, self._calls, self._keys, self._repairs = mode, calls, keys, repairs
        self._scanners: dict[str, CallScanner] = {}
        self.active = mode != 'off' and bool(calls.schemas)
        self.found = False

    def passes(self, key: str, text: str) -> bool:
        """Whether `text` comes out as it is, and alone; if so, it is taken."""
        return not self.active or self._scanner(key).passes_over(text)

    def expanded(self, deltas: list[Json]) -> list[Json]:
        """`deltas`, with each call in a delta of its own; the list itself where there is nothing to do."""
        if not self.active:
            return deltas
        return [one for delta in deltas for one in self._expanded(delta)]

    def _expanded(self, delta: Json) -> list[Json]:
        texts = {key: text for key in self._keys if isinstance(text := delta.get(key), str) and text}
        told = [(key, one) for key, text in texts.items() for one in self._told(key, self._scanner(key).feed(text))]
        if all(one == {key: texts[key]} for key, one in told) and len(told) == len(texts):
            return [delta]
        rest = {key: value for key, value in delta.items() if key not in texts}
        calls = rest.pop('tool_calls', None)
        made = [one for _, one in told] or [{}]
        # What belongs to the delta as a whole stays with its first piece, calls of its own with the last.
        made[0] = {**rest, **made[0]}
        return [*made, {'tool_calls': calls}] if calls else made

    def finish(self) -> list[Json]:
        """What is still held."""
        return [delta for key, scanner in self._scanners.items() for delta in self._told(key, scanner.finish())]

    @property
    def holds(self) -> bool:
        """Whether anything is held."""
        return any(scanner.holds for scanner in self._scanners.values())

    def _scanner(self, key: str) -> CallScanner:
        if key not in self._scanners:
            self._scanners[key] = CallScanner(self._calls.schemas, suppress=self._mode == 'suppress')
        return self._scanners[key]

    def _told(self, key: str, found: Iterable[Found]) -> list[Json]:
        deltas: list[Json] = []
        for one in found:
            if one.call is None:
                deltas.append({key: one.text})
            else:
                self.found = True
                deltas.append({'tool_calls': [self._calls.add(*one.call)]})
        if self._scanners[key].found:
            self._repairs.add(SUPPRESSED if self._mode == 'suppress' else RECOVERED)
        return deltas


def recovered(message: Json, mode: TextCalls, calls: ToolCalls, keys: Iterable[str], repairs: set[str]) -> Json:
    """A whole message with the calls that stand in its texts, which are in the fields `keys`, in that order."""
    if mode == 'off' or not calls.schemas:
        return message
    made: list[Mapping[str, Any]] = []
    changed: Json = {}
    for key in keys:
        if not isinstance(text := message.get(key), str) or not text:
            continue
        found = scan(text, calls.schemas, suppress=mode == 'suppress')
        rest = ''.join(one.text for one in found)
        if rest != text:
            repairs.add(SUPPRESSED if mode == 'suppress' else RECOVERED)
            changed[key] = rest or None
        made += [calls.add(*one.call) for one in found if one.call is not None]
    if made:
        numbered = [{key: value for key, value in call.items() if key != 'index'} for call in made]
        changed['tool_calls'] = [*(message.get('tool_calls') or ()), *numbered]
    return {**message, **changed} if changed else message


def rejected_text(error: object, mode: TextCalls, schemas: Mapping[str, Mapping[str, Any]]) -> str | None:
    """What the model wrote, where an error says that the server could not read it, and a call stands in it.

    Groq tells it in a field (https://github.com/tashfeenahmed/freellmapi/pull/291), llama.cpp in its message
    (https://github.com/ggml-org/llama.cpp/issues/23838).
    """
    if mode != 'on' or not schemas:
        return None
    text = _generation(error)
    found = scan(text, schemas) if text else []
    return text if any(one.call is not None for one in found) else None


def _generation(error: object, depth: int = 0) -> str | None:
    if depth > _DEEPEST:
        return None
    if isinstance(error, str):
        told = _PARSER.search(error)
        return told['text'] if told else None
    if isinstance(error, list | tuple):
        items: Iterable[object] = error
    elif isinstance(error, Mapping):
        given = error.get('failed_generation')
        if isinstance(given, str) and given:
            return given
        items = error.values()
    else:
        return None
    return next((text for item in items if (text := _generation(item, depth + 1)) is not None), None)


_DEEPEST = 10
