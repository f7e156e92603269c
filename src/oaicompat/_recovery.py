"""Calls that the server left in the text or in the reasoning, recovered: pieces of an answer in, deltas out. Pure.

`_textcalls.py` finds them. Text, reasoning that stood in it, and reasoning in a field of its own are searched apart;
each keeps its order, and the calls stand where they were written. What is held in one of them ends where another
begins, or a call that the server told itself: so the order of all is kept, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from oaicompat._envelope import Json
from oaicompat._finish import STOPS
from oaicompat._json import as_object
from oaicompat._keys import WHOLE
from oaicompat._offer import Offer
from oaicompat._patterns import lazy
from oaicompat._textcalls import CallScanner, Found, TextCall, scan
from oaicompat._toolcalls import ToolCalls

_WHOLE = STOPS | {'tool_calls', 'function_call', 'tool_use', 'tool_call', 'TOOL_CALL'}
_PARSER = lazy(
    r'failed to parse (?:input|output|the generated \w+)(?: at pos \d+)?: ?(?P<text>.+)', re.DOTALL | re.IGNORECASE
)


class Recovery:
    """The searches in one answer.

    A call in the reasoning is meant where the answer is nothing else; where text or another call follows, the model
    only thought of it (https://github.com/PrimeIntellect-ai/renderers/pull/80).

    Attributes:
        found: Whether any call was recovered.
    """

    def __init__(self, offer: Offer, calls: ToolCalls, keys: Sequence[str], repairs: set[str]) -> None:
        """Search the fields `keys`, in that order, for calls of what is offered."""
        self._offer, self._calls, self._keys, self._repairs = offer, calls, keys, repairs
        self._scanners: dict[str, CallScanner] = {}
        self._current = ''  # the field that came last: no other one holds anything
        self._made: list[TextCall] = []
        self._blank: list[Json] = []  # white space that came behind a call in the reasoning
        self._doubted: dict[int, list[Json]] = {}  # calls that the server told behind one of the same name, by index
        self.found = False

    def passes(self, key: str, text: str) -> bool:
        """Whether `text` comes out as it is, and alone; if so, it is taken."""
        return key == self._current and self._scanners[key].passes_over(text)

    def plainly(self, key: str, text: str) -> list[Json] | None:
        """The pieces of `text`, where none of them can be a call yet; otherwise `None`, and nothing is taken."""
        if key != self._current:
            return None
        fed = self._scanners[key].skimmed(text)
        return None if fed is None else [{key: one.text} for one in fed]

    def expanded(self, deltas: list[Json]) -> list[Json]:
        """`deltas`, with each call in a delta of its own."""
        return [one for delta in deltas for one in self._expanded(delta)]

    def _expanded(self, delta: Json) -> list[Json]:
        texts = {key: text for key in self._keys if isinstance(text := delta.get(key), str) and text}
        given = calls = delta.get('tool_calls')
        made = [one for key, text in texts.items() for one in self._fed(key, text)]
        if calls:
            made += self._interrupted()
            calls = self._undoubted(calls)
        if calls == given and made == [{key: text} for key, text in texts.items()]:
            return [delta]
        rest = {key: value for key, value in delta.items() if key not in texts and (key != 'tool_calls' or not given)}
        made = made or [{}]
        # What belongs to the delta as a whole stays with its first piece, calls of its own with the last.
        made[0] = {**rest, **made[0]}
        return [*made, {'tool_calls': calls}] if calls else made

    def _undoubted(self, calls: list[Json]) -> list[Json]:
        """Those of the fragments that can't be of a call which was recovered."""
        if not self._made:
            return calls
        names = {call.name for call in self._made}
        clear: list[Json] = []
        for call in calls:
            doubted = call['index'] in self._doubted or call.get('function', {}).get('name') in names
            (self._doubted.setdefault(call['index'], []) if doubted else clear).append(call)
        return clear

    def finish(self, reason: object) -> list[Json]:
        """What is still held when the answer ends for that reason."""
        return self._ended(cut=not (isinstance(reason, str) and reason in _WHOLE), more=_breaks_off(reason))

    def calls(self, whole: list[Json]) -> list[Json]:
        """The calls to tell at the end: those that were doubted, but for those that were recovered, and `whole` ones.

        `whole` are arguments in place of all that came in fragments.
        """
        known = [(call.name, as_object(call.arguments)) for call in self._made]
        repaired = {call['index']: call[WHOLE] for call in whole}
        told: list[Json] = []
        for index, fragments in self._doubted.items():
            text = repaired.get(index, ''.join(one['function'].get('arguments') or '' for one in fragments))
            name = fragments[0]['function']['name']
            if (name, as_object(text)) in known:
                known.remove((name, as_object(text)))  # a second one of the server's own is a call of its own
                self._repairs.add('tool_call.twice')
            else:
                told.append({**fragments[0], 'function': {'name': name, 'arguments': text}})
        return [*told, *(call for call in whole if call['index'] not in self._doubted)]

    @property
    def doubts(self) -> bool:
        """Whether calls of the server's own are held."""
        return bool(self._doubted)

    @property
    def holds(self) -> bool:
        """Whether anything is held."""
        return bool(self._current) and self._scanners[self._current].holds

    def _fed(self, key: str, text: str) -> list[Json]:
        if key == CONTENT and text.isspace() and self._current and self._scanners[self._current].calls:
            self._blank.append({key: text})  # the answer may still be nothing else
            return []
        ended = self._interrupted() if key != self._current or self._blank else []
        if key not in self._scanners:
            suppress = self._offer.suppresses
            late = key != CONTENT and not suppress
            self._scanners[key] = CallScanner(self._offer.schemas, suppress=suppress, late=late)
        self._current = key
        return [*ended, *self._told(key, self._scanners[key].feed(text))]

    def _interrupted(self) -> list[Json]:
        """What is held where something else follows: what is open was not written to its end."""
        return self._ended(cut=True, more=True)

    def _ended(self, *, cut: bool, more: bool) -> list[Json]:
        key, blank, self._blank = self._current, self._blank, []
        return [*self._told(key, self._scanners[key].finish(cut=cut, more=more)), *blank] if key else []

    def _told(self, key: str, found: Iterable[Found]) -> list[Json]:
        deltas: list[Json] = []
        for one in found:
            if one.call is None:
                deltas.append({key: one.text})
            elif not self._calls.has(one.call.name, one.call.arguments):
                self.found = True
                self._made.append(one.call)
                deltas.append({'tool_calls': [self._calls.add(*one.call)]})
        if self._scanners[key].found and not self._offer.expected:
            self._repairs.add('tool_call.suppressed' if self._offer.suppresses else 'tool_call.text')
        return deltas


CONTENT = 'content'


def _breaks_off(reason: object) -> bool:
    """Whether an answer that ends for that reason, if one is said, would have gone on."""
    return isinstance(reason, str) and bool(reason) and reason not in _WHOLE


def recovered(
    message: Json, offer: Offer, calls: ToolCalls, keys: Iterable[str], repairs: set[str], *, reason: object
) -> Json:
    """A whole message with the calls that stand in its texts, which are in the fields `keys`, in that order.

    `reason` says why it ends.
    """
    if offer.mode == 'off':
        return message
    cut = _breaks_off(reason) or bool(message.get('tool_calls'))
    made: list[Mapping[str, Any]] = []
    changed: Json = {}
    said = isinstance(text := message.get(CONTENT), str) and bool(text.strip())
    thought = not offer.suppresses and (cut or said)
    for key in keys:
        if not isinstance(text := message.get(key), str) or not text or (thought and key != CONTENT):
            continue
        found = scan(text, offer.schemas, suppress=offer.suppresses, cut=cut)
        rest = ''.join(one.text for one in found)
        if rest != text:
            if not offer.expected:
                repairs.add('tool_call.suppressed' if offer.suppresses else 'tool_call.text')
            changed[key] = rest or None
        calling = [one.call for one in found if one.call is not None]
        made += [calls.add(*call) for call in calling if not calls.has(call.name, call.arguments)]
    if made:
        numbered = [{key: value for key, value in call.items() if key != 'index'} for call in made]
        changed['tool_calls'] = [*(message.get('tool_calls') or ()), *numbered]
    return {**message, **changed} if changed else message


def rejected_text(error: object, offer: Offer, before: str = '') -> str | None:
    """What the model wrote behind `before`, where an error says that the server could not read it, and a call in it.

    Groq tells it in a field (https://github.com/tashfeenahmed/freellmapi/pull/291), llama.cpp in its message
    (https://github.com/ggml-org/llama.cpp/issues/23838).
    """
    text = _generation(error) if offer.mode == 'on' else None
    if not text:
        return None
    # Some tell all of it, others what they could not read.
    text = text.removeprefix(before)
    return text if _calls_in(before + text, offer) > (_calls_in(before, offer) if before else 0) else None


def _calls_in(text: str, offer: Offer) -> int:
    return sum(one.call is not None for one in scan(text, offer.schemas))


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
