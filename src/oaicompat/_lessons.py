"""Lessons: what a refusal teaches about an endpoint, and the memory of it.

A rule is data: the statuses it reads, a pattern on the complaint, a predicate on the body that was sent, and the
profile keys to set. `lesson()` is pure. `Memory` keeps what was learned for each endpoint and model, for every
model instance of the process; its version tells a model when its cached profile is out of date.

A rule fires only if the sent body used the refused shape and the profile did not say otherwise already, so a
lesson can't repeat itself.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, cast

Body = Mapping[str, Any]
MAX_CORRECTIONS = 3
"""Corrections a single call may need; then the first refusal is raised."""

REFUSED = frozenset({400, 422})
"""HTTP statuses of a request that the server will not take as it is."""


@dataclass(frozen=True)
class Lesson:
    """What one refusal taught.

    Attributes:
        name: Stable name of the adaptation, such as `request.tool_return`.
        profile: Profile keys to set, and their values.
        because: The server's complaint, shortened, or what else was seen.
    """

    name: str
    profile: Mapping[str, Any]
    because: str


@dataclass(frozen=True)
class Rule:
    """One row of the table: when a refusal reads like this, set these profile keys.

    Attributes:
        name: Stable name of the adaptation.
        statuses: HTTP statuses that the refusal comes with.
        complaint: Matches one complaint of the error body.
        used: Whether the body that was sent has the shape that this complaint is about.
        profile: Profile keys to set.
        evidence: Where such a refusal was seen.
    """

    name: str
    statuses: frozenset[int]
    complaint: re.Pattern[str]
    used: Callable[[Body, str], bool]
    profile: Mapping[str, Any]
    evidence: str


_MESSAGE_INDEX = re.compile(r'\b(?:messages|input)(?:\.|\[)(\d+)')
# A complaint about the content of a message, or one that names no field at all; any other is about something else.
_ABOUT_CONTENT = re.compile(
    r'\bcontent\b|\bmessages?(?:\[|\.)\d|\binput(?:\[|\.)\d|role:tool|\btool (?:message|result|output)',
    re.IGNORECASE,
)
_NAMES_NOTHING = re.compile(
    r'^\W*(?:input should be|invalid type\b|str type|expected (?:a )?str|failed to deserialize|json: cannot unmarshal'
    r'|cannot deserialize|got an? (?:list|array)\b|\[)',
    re.IGNORECASE,
)
_OTHER_FIELD = re.compile(r'tool_calls|arguments|tool_call_id|\bname\b|response_format|parameters', re.IGNORECASE)


def _sent_list_results(sent: Body, complaint: str) -> bool:
    """Whether a list tool result was sent, in the message that the complaint names where it names one."""
    messages = sent.get('messages', sent.get('input'))
    about = _ABOUT_CONTENT.search(complaint) or _NAMES_NOTHING.search(complaint)
    if not isinstance(messages, list) or not about or _OTHER_FIELD.search(complaint):
        return False
    if found := _MESSAGE_INDEX.search(complaint):
        messages = messages[int(found[1]) :][:1]
    return any(_is_list_result(message) for message in messages)


def _is_list_result(message: Any) -> bool:
    if not isinstance(message, Mapping):
        return False
    if message.get('type') == 'function_call_output':
        return isinstance(message.get('output'), list)
    return message.get('role') == 'tool' and isinstance(message.get('content'), list)


def _did_not_stream(sent: Body, _: str) -> bool:
    return 'messages' in sent and sent.get('stream') is not True


RULES: tuple[Rule, ...] = (
    Rule(
        name='request.tool_return',
        statuses=REFUSED,
        complaint=re.compile(
            r'sequence, expected (?:a )?string'  # serde: DeepSeek
            r'|must be (?:a )?string'  # Groq, DashScope
            r'|should be a valid string|str type expected'  # pydantic: SiliconFlow, Fireworks, gateways
            r'|expected (?:a )?string,? (?:but )?(?:got|received|found) (?:an? )?(?:array|list|sequence)'  # OpenAI, zod
            r'|(?:array|list|sequence)\b.* (?:where|when) (?:a )?string'
            r'|is not of type .?string'  # JSON Schema
            r'|cannot unmarshal array into Go .*string'  # Ollama and other Go servers
            r'|java\.lang\.String.*(?:START_ARRAY|Array value)'  # Jackson
            r'|content(?:\[0\])?\.type type error',  # Z.ai
            re.IGNORECASE | re.DOTALL,
        ),
        used=_sent_list_results,
        profile=MappingProxyType({'compat_tool_return': 'joined'}),
        evidence='https://github.com/lastmile-ai/mcp-agent/issues/25',
    ),
    Rule(
        name='request.stream',
        statuses=REFUSED,
        complaint=re.compile(
            r'only supports? (?:the )?stream|stream\W{0,3} (?:must|has to|should) be.{0,12}true|requires? stream\w*'
            r'|non-?stream\w* .{0,40}(?:not|un)\s?supported|not support.{0,20}non-?stream',
            re.IGNORECASE,
        ),
        used=_did_not_stream,
        profile=MappingProxyType({'compat_stream': 'always'}),
        evidence='https://github.com/FoundationAgents/OpenManus/issues/330',  # DashScope
    ),
)


def lesson(profile: Mapping[str, Any], sent: Body, status: int, body: object) -> Lesson | None:
    """What a refusal teaches, or `None` where it teaches nothing that the profile does not say already.

    Args:
        profile: The profile that the refused request was made with.
        sent: The JSON body of that request.
        status: HTTP status of the refusal.
        body: Its body as the SDK gives it: an object, a string, a list, or `None`.
    """
    for complaint in complaints(body):
        for rule in RULES:
            news = any(profile.get(key) != value for key, value in rule.profile.items())
            if news and status in rule.statuses and rule.complaint.search(complaint) and rule.used(sent, complaint):
                return Lesson(rule.name, rule.profile, complaint[:200])
    return None


def complaints(body: object) -> Iterator[str]:
    """The texts of an error body, each with the field it names in front where the body names one.

    Objects, lists, strings, and JSON in strings are read alike; what only echoes the request is left out.
    """
    match body:
        case str():
            nested = _json(body)
            if nested is None:
                yield body
            else:
                yield from complaints(nested)
        case Mapping():
            yield from _of_mapping(body)
        case list() | tuple():
            for item in body:
                yield from complaints(item)


_TEXT_KEYS = ('message', 'msg', 'detail', 'error', 'errors', 'error_description', 'reason', 'title')


def _of_mapping(body: Mapping[Any, Any]) -> Iterator[str]:
    place = _place(body)
    for key in _TEXT_KEYS:
        for text in complaints(body.get(key)):
            yield f'{place}: {text}' if place and place not in text else text


def _place(body: Mapping[Any, Any]) -> str:
    """The field an error object names: OpenAI's `param`, pydantic's `loc`, a validator's `path`."""
    for key in ('loc', 'param', 'path'):
        value = body.get(key)
        if isinstance(value, list | tuple):
            return '.'.join(str(step) for step in value if step != 'body')
        if isinstance(value, str):
            return value
    return ''


def _json(text: str) -> object:
    if text.lstrip()[:1] not in ('{', '[', '"'):
        return None
    try:
        return cast(object, json.loads(text))
    except (ValueError, RecursionError):
        return None


@dataclass
class _Entry:
    lessons: dict[str, Lesson] = field(default_factory=dict)
    confirmed: set[str] = field(default_factory=set)
    version: int = 0


class Memory:
    """What was learned for each endpoint and model. Thread safe; never blocks on I/O."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: dict[tuple[str, str], _Entry] = {}
        self._kinds: dict[str, str] = {}
        # One counter for all entries, so that a version never comes back after `forget`.
        self._version = 0

    def version(self, endpoint: str, model: str) -> int:
        """Changes whenever what is known for `endpoint` and `model` changes."""
        entry = self._entries.get((endpoint, model))
        return entry.version if entry else 0

    def profile(self, endpoint: str, model: str) -> dict[str, Any]:
        """The profile keys learned for `endpoint` and `model`."""
        with self._lock:
            entry = self._entries.get((endpoint, model))
            lessons = list(entry.lessons.values()) if entry else []
        return {key: value for learned in lessons for key, value in learned.profile.items()}

    def lessons(self, endpoint: str, model: str) -> tuple[Lesson, ...]:
        """The lessons learned for `endpoint` and `model`, oldest first."""
        with self._lock:
            entry = self._entries.get((endpoint, model))
            return tuple(entry.lessons.values()) if entry else ()

    def learn(self, endpoint: str, model: str, learned: Lesson) -> bool:
        """Keep `learned`; returns whether it was news."""
        with self._lock:
            entry = self._entries.setdefault((endpoint, model), _Entry())
            known = entry.lessons.get(learned.name)
            if known is not None and known.profile == learned.profile:
                return False
            self._version += 1
            entry.lessons[learned.name] = learned
            entry.version = self._version
            return True

    def confirm(self, endpoint: str, model: str, name: str) -> bool:
        """Keep that the lesson of that name has helped; returns whether that is news."""
        with self._lock:
            entry = self._entries.get((endpoint, model))
            if entry is None or name not in entry.lessons or name in entry.confirmed:
                return False
            entry.confirmed.add(name)
            return True

    def confirmed(self, endpoint: str, model: str, name: str) -> bool:
        """Whether the lesson of that name has helped."""
        entry = self._entries.get((endpoint, model))
        return entry is not None and name in entry.confirmed

    def unlearn(self, endpoint: str, model: str, name: str) -> None:
        """Drop the lesson of that name again: it did not help."""
        with self._lock:
            entry = self._entries.get((endpoint, model))
            if entry is not None and entry.lessons.pop(name, None) is not None:
                self._version += 1
                entry.version = self._version

    def forget(self, endpoint: str, model: str) -> None:
        """Drop what was learned for `endpoint` and `model`, and what kind of server the endpoint was taken for."""
        with self._lock:
            self._kinds.pop(endpoint, None)
            if (endpoint, model) in self._entries:
                self._version += 1
                self._entries[endpoint, model] = _Entry(version=self._version)

    def clear(self) -> None:
        """Drop everything, for all endpoints."""
        with self._lock:
            self._kinds.clear()
            self._version += 1
            for key in self._entries:
                self._entries[key] = _Entry(version=self._version)

    def kind(self, endpoint: str) -> str | None:
        """The kind of server that answers at `endpoint`, where its answers gave it away."""
        return self._kinds.get(endpoint)

    def recognise(self, endpoint: str, kind: str) -> None:
        """Keep that `endpoint` is a server of `kind`, such as `llama.cpp`."""
        self._kinds[endpoint] = kind


MEMORY = Memory()
"""The memory that all models of the process share."""
