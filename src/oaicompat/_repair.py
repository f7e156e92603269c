"""Repair of streams: the chunks that a server sent to chunks that pydantic-ai reads right.

One `ChunkRepair` for each stream. What needs no repair comes out as the object that went in. Reasoning that stood in
the text travels in the field `INLINE`, a call's arguments as a whole in `WHOLE`. `_completion.py` does the same for
answers that come whole, by the same rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from oaicompat._context import SEARCHED, Context
from oaicompat._envelope import (
    REASONING_FIELDS,
    TEXTS,
    FailureError,
    IncompleteError,
    Json,
    choices_of,
    failure_in,
    is_plain_top,
    no_choices,
    plain_choice,
    plain_envelope,
    plain_message,
    plain_usage,
    unwrapped,
    usage_news,
    usage_total,
)
from oaicompat._finish import is_stop
from oaicompat._gathered import Gathered
from oaicompat._halves import has_half, joined_halves, without_halves
from oaicompat._keys import DETAILS, INLINE, KEPT
from oaicompat._nocalls import NoCalls, NoSearch
from oaicompat._pieces import as_delta, in_front, merged
from oaicompat._thinking import HARMONY_TAGS, Piece, ThinkingSplitter

if TYPE_CHECKING:
    from oaicompat._details import Details
    from oaicompat._recovery import Recovery
    from oaicompat._toolcalls import ToolCalls


class ChunkRepair:
    """The chunks of one stream, repaired; one for each stream.

    Attributes:
        repairs: Names of the repairs that were made.
        plain: The field that the last chunk has some text or arguments in, where it holds nothing else.
    """

    def __init__(self, context: Context, repairs: set[str] | None = None) -> None:
        self.repairs = set() if repairs is None else repairs
        self._context = context
        self._calls: ToolCalls | NoCalls = NoCalls()
        self._recovery: Recovery | NoSearch = NoSearch()
        if context.offer.mode != 'off':
            from oaicompat._recovery import Recovery

            self._recovery = Recovery(context.offer, self._tracker(), SEARCHED, self.repairs)
        self._thinking = ThinkingSplitter(context.all_tags, context.closing_only)
        self._usage: Json = {}
        self._envelope: Json = {}
        self._finished = False
        self._answered = False
        self._texts, self._reasoning = Gathered(), Gathered()
        self._whole = False  # the chunk is a whole `message`
        self._settled = False  # some text came in a delta, or in a message that only repeats
        # Once some came in a delta, nobody asks for the text again, unless a call or the answer may stand in it.
        self._forgets = context.offer.mode == 'off' and not context.answer_in_reasoning
        self._inline: list[str] = []
        self._halves: dict[str, str] = {}  # half characters, whose other half is to come
        self._chosen = False
        self._cut: list[Json] | None = None
        self.plain = ''
        self._details: Details | None = None
        self._field = REASONING_FIELDS[0]  # where the text of the reasoning stands
        self._reason: object = None

    def _tracker(self) -> ToolCalls:
        """What sorts calls; most answers have none, and do without."""
        if isinstance(self._calls, NoCalls):
            from oaicompat._toolcalls import ToolCalls

            self._calls = ToolCalls(self._context.schemas, self.repairs)
        return self._calls

    @property
    def finished(self) -> bool:
        """Whether the server said why the answer ends."""
        return self._finished

    def feed(self, chunk: Json) -> list[Json]:
        """The repaired chunks that `chunk` becomes: most often itself.

        Raises:
            FailureError: If it is an error.
        """
        self.plain = ''
        if self._is_plain(chunk):
            return [chunk] if self._cut is None else self._in_pieces(chunk)
        if (failure := failure_in(chunk)) is not None:
            chunk = self._rejected(failure)
        inner = unwrapped(chunk)
        if inner is not chunk:
            self.repairs.add('envelope.wrapped')
        chunk = self._with_usage(plain_envelope(inner, self.repairs))
        self._envelope = chunk
        choices = choices_of(chunk, self.repairs)
        if choices is None:
            return [chunk if chunk.get('choices') is None else {**chunk, 'choices': []}]
        if choices != chunk['choices']:
            chunk = {**chunk, 'choices': choices}
        self._chosen = self._chosen or bool(choices)
        if self._context.alternatives or not choices:
            return [chunk]
        if len(choices) > 1:
            self.repairs.add('choices.merged')
        repaired = [one for choice in choices for one in self._of_choice(chunk, choice)]
        return repaired or [{**chunk, 'choices': []}]

    def _rejected(self, failure: FailureError) -> Json:
        """What the model wrote and the server could not read, as a chunk; if there is none, the error is raised."""
        ready = not (self._context.alternatives or self._calls.begun or self._finished)
        if not ready or isinstance(self._recovery, NoSearch):
            raise failure
        from oaicompat._recovery import rejected_text

        if (text := rejected_text(failure.body, self._context.offer, str(self._texts))) is None:
            raise failure
        self.repairs.add('tool_call.rejected')
        return self._chunk({'index': 0, 'delta': {'content': text}, 'finish_reason': 'stop'})

    def feed_text(self, key: str, text: str) -> list[Json] | None:
        """What a chunk becomes that is plain but for its text: deltas; `None` where the whole chunk has to be fed.

        `key` is the field that `text` is in; it was plain in the chunk before, too.
        """
        waits = self._details is not None and self._details.waiting
        if waits or self._halves or has_half(text) or not text or self._context.alternatives:
            return None
        if self._takes(key, text):
            if self._cut is None:
                return [{key: text}]
            cut, self._cut = self._cut, None
            return cut
        if key != 'content' or self._thinking.passes:
            return None
        return self._recovery.expanded(self._split({'content': text}))

    def feed_arguments(self, index: int, text: str) -> bool:
        """Whether a chunk can be taken that is plain but for a fragment of the newest call's arguments."""
        waits = self._details is not None and self._details.waiting
        return not (waits or self._holds) and self._calls.takes(index, text)

    def _is_plain(self, chunk: Json) -> bool:
        """Whether `chunk` is what most are, some text, reasoning or arguments alone, and is taken as it is."""
        choices = chunk.get('choices')
        if type(choices) is not list or len(choices) != 1 or chunk.get('usage') is not None or not is_plain_top(chunk):
            return False
        choice = choices[0]
        delta = choice.get('delta') if type(choice) is dict else None
        if type(delta) is not dict or choice.get('finish_reason') or choice.get('logprobs') or 'error' in choice:
            return False
        given = [pair for pair in delta.items() if pair[1] and (pair[0] != 'role' or type(pair[1]) is not str)]
        if len(given) != 1 or (self._details and self._details.waiting):
            return False
        [(key, value)] = given
        self.plain = key if type(value) is str and key in SEARCHED and not self._context.alternatives else ''
        if type(value) is not str:
            if key != 'tool_calls' or type(value) is not list or self._holds or not self._calls.goes_on(value):
                return False
            self.plain = '' if self._context.alternatives else key
        elif self._halves or has_half(value) or not self._takes(key, value, chunk):
            return False
        elif self._forgets:
            self._texts.condense()
            self._reasoning.condense()
        self._envelope, self._chosen = chunk, True
        return True

    @property
    def _holds(self) -> bool:
        return self._thinking.holds or self._recovery.holds or self._recovery.doubts

    def _takes(self, key: str, text: str, chunk: Json | None = None) -> bool:
        """Take `text`, where it comes out as text alone."""
        self._cut = None
        if key == 'content':
            if not (self._thinking.passes and self._passes(key, text, chunk)):
                return False
            self._answered = self._answered or not text.isspace()
            self._settled = True
            self._texts.append(text)
            return True
        if key not in REASONING_FIELDS[:2] or self._thinking.holds or self._context.answer_in_reasoning:
            return False
        if not self._passes(key, text, chunk):
            return False
        self._settled = True
        self._reasoning.append(text)
        return True

    def _passes(self, key: str, text: str, chunk: Json | None) -> bool:
        """Whether `text` comes out as text alone; where that is in other pieces, they are kept for the chunk."""
        if self._recovery.passes(key, text):
            return True
        if chunk is not None and not (chunk.keys() <= _REPEATED and chunk['choices'][0].keys() <= _OF_CHOICE):
            return False  # what else it says is told once
        self._cut = self._recovery.plainly(key, text)
        return self._cut is not None

    def _in_pieces(self, chunk: Json) -> list[Json]:
        """A chunk of text alone, with what was held before it, and without what is held now."""
        cut, self._cut = self._cut or [], None
        [choice] = chunk['choices']
        return [{**chunk, 'choices': [{**choice, 'delta': delta}]} for delta in cut] or [{**chunk, 'choices': []}]

    def finish(self, *, dropped: bool) -> list[Json]:
        """What is still held when the stream ends; `dropped` says whether the connection broke.

        Raises:
            FailureError: If there never was an answer in it.
            IncompleteError: If it ended inside of a call.
        """
        if not self._chosen:
            raise no_choices(self._envelope)
        cut = self._calls.cut_off() if dropped or not self._finished else None
        if cut is not None:
            raise IncompleteError(f'the stream ended inside of the call of {cut or "a tool"}')
        found = self._recovery.found
        deltas = self._with_kept(self._ending(), ends=True)
        late = self._recovery.found and not found and is_stop(self._reason)
        reasons = [None] * (len(deltas) - 1) + ['tool_calls' if late else None]
        choices = zip(deltas, reasons, strict=False)
        return [self._chunk({'index': 0, 'delta': delta, 'finish_reason': reason}) for delta, reason in choices]

    def _of_choice(self, chunk: Json, choice: Json) -> list[Json]:
        plain = plain_choice(choice, self.repairs)
        if plain is not choice:
            choice = plain
            chunk = {**chunk, 'choices': [choice]} if len(chunk['choices']) == 1 else chunk
        delta = self._delta(choice)
        reason = choice.get('finish_reason')
        deltas = self._recovery.expanded(self._with_kept(self._split(delta), ends=bool(reason)))
        if reason and not self._finished:
            # More may follow: some servers say the reason with every chunk.
            self._finished, self._reason = True, reason
            told = any(delta.get(key) for key in SEARCHED)  # then a call that is open may go on
            deltas = merged(deltas, [*self._released(), *(() if told else self._recovery.finish(reason))])
        if self._recovery.found and is_stop(reason):
            choice = {**choice, 'finish_reason': 'tool_calls'}
        elif deltas == [choice.get('delta')] and len(chunk['choices']) == 1:
            return [chunk]
        # What belongs to the choice as a whole stays with its last piece, usage with the last chunk.
        bare = {key: value for key, value in choice.items() if key not in ('delta', 'message', 'text')}
        early = {key: None for key in bare if key != 'index'}
        # What is unknown at the top is told once, too.
        first, last = {key: chunk[key] for key in _TOP if key in chunk}, chunk
        pieces = deltas or [{}]
        return [
            *[{**first, 'choices': [{**bare, **early, 'delta': piece}]} for piece in pieces[:-1]],
            {**last, 'choices': [{**bare, 'delta': pieces[-1]}]},
        ]

    def _delta(self, choice: Mapping[str, Any]) -> Json:
        delta, message = choice.get('delta'), choice.get('message')
        told = isinstance(delta, Mapping) and any(value for key, value in delta.items() if key != 'role')
        self._whole = isinstance(message, Mapping) and not told
        if isinstance(message, Mapping) and self._whole:
            news = self._beyond(message)
            if not isinstance(delta, Mapping) or any(value for key, value in news.items() if key != 'role'):
                self.repairs.add('chunk.message')
            return self._with_halves(news)
        if isinstance(delta, Mapping):
            return self._with_halves(self._plain(delta))
        self.repairs.add('chunk.delta')
        return {'content': choice['text']} if isinstance(choice.get('text'), str) else {}

    def _beyond(self, message: Mapping[str, Any]) -> Json:
        """What a whole message says beyond what was told so far: some servers send it behind its deltas."""
        news = self._plain(message, total=True)
        # What stood there was moved to a field that is read, and counts there.
        news = {key: value for key, value in news.items() if key not in REASONING_FIELDS[2:]}
        if self._context.details and news.get(DETAILS):
            from oaicompat._details import listed

            news[DETAILS] = listed(news[DETAILS])
        # What deltas told differs from the message only in how it is told.
        for key in TEXTS[:3]:
            texts = self._texts if key == 'content' else self._reasoning
            if isinstance(news.get(key), str) and news[key]:
                in_tags = self._settled and key != 'content' and self._thinking.found
                news[key] = '' if in_tags else texts.beyond(news[key], settled=self._settled)
        if isinstance(calls := news.get('tool_calls'), list):
            news['tool_calls'] = self._tracker().beyond(calls) or None
        return news

    def _plain(self, delta: Mapping[str, Any], *, total: bool = False) -> Json:
        ours = self._context.details
        if ours and (given := delta.get(DETAILS)):
            from oaicompat._details import Details, listed

            self._details = self._details or Details()
            news = self._details.feed(given, total=total)
            if listed(given):
                self.repairs.add('reasoning.details')
            delta = {**delta, DETAILS: news}
        return plain_message(delta, self.repairs, whole=False, details=ours)

    def _with_kept(self, deltas: list[Json], *, ends: bool) -> list[Json]:
        """`deltas` with the details of the reasoning that they end."""
        if self._details is None or not self._details.waiting:
            return deltas
        ending = (n for n, delta in enumerate(deltas) if any(map(delta.get, ('content', 'tool_calls', INLINE))))
        at = next(ending, 0 if ends else None)
        if at is None:
            return deltas
        details = self._details.take()
        if (clean := without_halves(details)) is not details:
            self.repairs.add('content.split_character')
        kept = {KEPT: {'field': self._field, DETAILS: clean}}
        return [*deltas[:at], {**(deltas[at] if deltas else {}), **kept}, *deltas[at + 1 :]]

    def _with_halves(self, delta: Json) -> Json:
        """`delta` with characters whole that came in two halves; the first half waits for the second."""
        for key in TEXTS:
            text = delta.get(key)
            if not isinstance(text, str) or not (key in self._halves or has_half(text)):
                continue
            self.repairs.add('content.split_character')
            text = self._halves.pop(key, '') + text
            if '\ud800' <= text[-1:] <= '\udbff':
                self._halves[key], text = text[-1], text[:-1]
            delta = {**delta, key: joined_halves(text)}
        return delta

    def _split(self, delta: Json) -> list[Json]:
        """`delta` as deltas that each hold one piece: reasoning or text, and calls with the last."""
        content, calls = delta.get('content'), delta.get('tool_calls')
        field = next((key for key in REASONING_FIELDS[:2] if delta.get(key)), self._field)
        self._field, reasoning = field, delta.get(field)
        if isinstance(reasoning, str) and reasoning:
            self._settled = self._settled or not self._whole
            self._reasoning.append(reasoning)
        pieces = self._thinking.interrupt() if (reasoning or calls) and not content else []
        if isinstance(content, str):
            self._settled = self._settled or not (self._whole and content)
            self._texts.append(content)
            pieces += self._thinking.feed(content)
            if calls:
                pieces += self._thinking.interrupt()
        fixed = self._tracker().feed(calls) if calls else None
        self._inline += [piece.text for piece in pieces if piece.kind == 'thinking'] if self._thinking.assumed else []
        self._answered = self._answered or bool(fixed) or any(p.kind == 'text' and p.text.strip() for p in pieces)
        if fixed is not None and fixed != calls:
            delta = {**delta, 'tool_calls': fixed}
        elif calls is not None and not isinstance(calls, list):
            delta = {**delta, 'tool_calls': fixed or None}
        if not isinstance(content, str) or not content:
            return in_front(pieces, delta)
        if pieces == [Piece('text', content)]:
            return [delta]
        if self._thinking.found or any(piece.kind == 'thinking' for piece in pieces):
            self._name_tags()
        rest = {key: value for key, value in delta.items() if key != 'content'}
        if not reasoning:
            return in_front(pieces, rest)
        # The side channel comes first.
        beside = {key: rest.pop(key) for key in ('role', *REASONING_FIELDS, DETAILS) if key in rest}
        return [beside, *(in_front(pieces, rest) if pieces or any(rest.values()) else ())]

    def _released(self) -> list[Json]:
        """Text and reasoning that were held back."""
        pieces = self._thinking.finish()
        self._inline += [piece.text for piece in pieces if piece.kind == 'thinking']
        if self._thinking.found or any(piece.kind == 'thinking' for piece in pieces):
            self._name_tags()
        deltas = [as_delta(piece) for piece in pieces]
        deltas += [{key: joined_halves(half)} for key, half in self._halves.items()]
        self._halves.clear()
        self._answered = self._answered or any(piece.kind == 'text' and piece.text.strip() for piece in pieces)
        return self._recovery.expanded(deltas)

    def _ending(self) -> list[Json]:
        """What the end of the answer releases."""
        if self._calls.nameless:
            raise FailureError('a tool call without a name', None)
        deltas = [*self._released(), *self._recovery.finish(self._reason)]
        self._answered = self._answered or self._recovery.found
        if self._thinking.assumed and self._reason != 'length' and not self._answered and self._inline:
            # The prompt was said to open the tag, but none was closed: a whole answer would be text.
            self.repairs.add('thinking.unclosed')
            self._answered = True
            deltas.append({'content': ''.join(self._inline)})
        if self._context.answer_in_reasoning and not self._answered and str(self._reasoning):
            self.repairs.add('reasoning.answer')
            deltas.append({'content': str(self._reasoning)})
        if calls := self._recovery.calls(self._calls.finish()):
            deltas.append({'tool_calls': calls})
        return deltas

    def _name_tags(self) -> None:
        if self._thinking.asis:
            return
        harmony = any(opening == self._thinking.opening for opening, _ in HARMONY_TAGS)
        self.repairs.add('thinking.harmony' if harmony else 'thinking.tags')

    def _with_usage(self, chunk: Json) -> Json:
        usage = chunk.get('usage')
        if usage is None or self._context.cumulative_usage:
            return chunk
        plain = plain_usage(usage, self.repairs)
        if plain is None:
            self.repairs.add('usage')
            return {**chunk, 'usage': None}
        news = plain
        if self._usage:
            news = usage_news(usage, plain, self._usage, self.repairs)
        self._usage = usage_total(news, self._usage)
        return chunk if news == usage else {**chunk, 'usage': news}

    def _chunk(self, choice: Json) -> Json:
        return {**{key: self._envelope[key] for key in _TOP if key in self._envelope}, 'choices': [choice]}


_TOP = ('id', 'object', 'created', 'model', 'system_fingerprint', 'service_tier')
_REPEATED = {*_TOP, 'choices', 'usage'}
_OF_CHOICE = {'index', 'delta', 'finish_reason', 'logprobs'}
