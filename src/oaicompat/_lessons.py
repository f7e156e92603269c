"""Lessons: what a refusal teaches about an endpoint. Pure; `_rules.py` is the table, `_memory.py` keeps them.

A rule fires only if the body that was sent used the refused shape and the profile does not say otherwise already, so
a lesson can't repeat itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from oaicompat import _shapes
from oaicompat._complaints import codes, complaints, is_silent
from oaicompat._fields import is_about_value
from oaicompat._lesson import MAX_CORRECTIONS, SEARCH, Lesson, joined, says, together
from oaicompat._requests import ADAPTERS, adapted
from oaicompat._rules import CALLERS_CODES, CALLERS_FAULT, REFUSED, RULES, UNKNOWN_CODES, VAGUE
from oaicompat._schemas import keywords_in
from oaicompat._teachings import Refusal, told

_NOBODY = 404


def lessons(profile: Mapping[str, Any], sent: _shapes.Body, status: int, body: object) -> tuple[Lesson, ...]:
    """What a refusal teaches; nothing where the profile says it already, or where the caller is at fault.

    Args:
        profile: The profile that the refused request was made with.
        sent: The JSON body of that request.
        status: HTTP status of the refusal.
        body: Its body as the SDK gives it: an object, a string, a list, or `None`.
    """
    texts = list(dict.fromkeys(complaints(body)))
    if is_callers_fault(body):
        return ()
    found: dict[str, Lesson] = {}
    for text in texts:
        for learned in _of_complaint(Refusal(told(text), sent, profile), status):
            known = found.get(learned.name)
            found[learned.name] = learned if known is None else joined(known, learned)
    return tuple(found.values()) or _of_codes(profile, sent, status, body, texts)


def is_callers_fault(body: object) -> bool:
    """Whether an error body complains, in words or by a code, of what no other shape of the request answers."""
    told_of = any(CALLERS_FAULT.search(text) for text in complaints(body) if text.strip())
    return told_of or any(CALLERS_CODES.search(code.name) for code in codes(body))


def _of_codes(
    profile: Mapping[str, Any], sent: _shapes.Body, status: int, body: object, texts: Iterable[str]
) -> tuple[Lesson, ...]:
    """What a code teaches together with the field that stands beside it, where the words teach nothing."""
    of_value = any(is_about_value(text) for text in texts)
    named = [
        place
        for code in codes(body)
        for place in code.places
        if UNKNOWN_CODES.fullmatch(code.name) or (code.name == 'unsupportedvalue' and not of_value)
    ]
    found: dict[str, Lesson] = {}
    for place in dict.fromkeys(named):
        for learned in _of_complaint(Refusal(f'Unsupported parameter: {place}', sent, profile), status):
            if learned.name not in _SAID_IN_WORDS:
                known = found.get(learned.name)
                found[learned.name] = learned if known is None else joined(known, learned)
    return tuple(found.values())


_SAID_IN_WORDS = frozenset({'request.tools', 'request.schema'})
"""What no code says well enough."""


def _of_complaint(refusal: Refusal, status: int) -> tuple[Lesson, ...]:
    for rule in RULES:
        if status in rule.statuses and rule.complaint.search(refusal.complaint):
            news = _news(rule.teaches(refusal) or {}, refusal.profile)
            if news and _helps(news, refusal.sent, refusal.profile):
                return (Lesson(rule.name, news, refusal.complaint[:200]),)
    return ()


def _news(delta: Mapping[str, Any], profile: Mapping[str, Any]) -> dict[str, Any]:
    """What of `delta` the profile does not say yet; of tuples, what is new in them."""
    return {key: _new(profile.get(key), value) for key, value in delta.items() if not says(profile, key, value)}


def _new(known: object, value: object) -> object:
    if isinstance(value, tuple) and isinstance(known, tuple | list):
        return tuple(item for item in value if item not in known)
    return value


def _helps(news: Mapping[str, Any], sent: _shapes.Body, profile: Mapping[str, Any]) -> bool:
    """Whether the next request would be another one."""
    if not news.keys() <= _BODY_KNOBS:
        return True  # pydantic-ai's mapping reads it
    try:
        return adapted(sent, together(profile, news)) is not sent
    except ValueError:
        return True  # a schema that can't be written otherwise: who tries says so


_BODY_KNOBS = {knob for knob, *_ in ADAPTERS}


def guesses(profile: Mapping[str, Any], sent: _shapes.Body, status: int, body: object) -> tuple[Lesson, ...]:
    """What to try, in this order, after a refusal that names nothing; never what the caller asked for by name.

    The likeliest shapes one by one, then the others together, so that no call needs more than `MAX_CORRECTIONS`.
    """
    texts = [text for text in dict.fromkeys(complaints(body)) if text.strip()]
    # A router that finds nobody for a request says 404.
    searched = status in REFUSED or (status == _NOBODY and texts)
    vague = searched and all(VAGUE.search(text) for text in texts) and (texts or is_silent(body))
    vague = vague and not any(code.places and UNKNOWN_CODES.fullmatch(code.name) for code in codes(body))
    if not vague or is_callers_fault(body) or profile.get('compat_search_refusals') is False:
        return ()
    because = (texts or ['a refusal that says nothing'])[0][:200]
    candidates = (_news(delta, profile) for delta in _candidates(sent))
    steps = [news for news in candidates if news and _helps(news, sent, profile)]
    last = MAX_CORRECTIONS - 1
    if len(steps) > MAX_CORRECTIONS:
        rest = {key: value for step in steps[last:] for key, value in step.items()}
        steps = [*steps[:last], rest]
    return tuple(Lesson(SEARCH, step, because) for step in steps)


def _candidates(sent: _shapes.Body) -> Iterable[Mapping[str, Any]]:
    """The shapes of `sent` that servers refuse most often, with what to do about each."""
    used = {keyword for schema in _shapes.schemas(sent) for keyword in keywords_in(schema)}
    lists, empty = _shapes.list_roles(sent), _shapes.empty_contents(sent)
    if '$ref' in used:
        yield {'compat_schema': ('$ref',)}
    if 'tool' in lists:
        yield {'compat_tool_return': 'joined'}
    if _shapes.late_system(sent):
        yield {'compat_late_system': 'lift'}
    if empty & {'null', 'omit'}:
        yield {'compat_assistant_content': 'empty'}
    if _shapes.reasoning_fields(sent):
        yield {'compat_echo_reasoning': 'never'}
    if lists - {'tool'}:
        yield {'compat_text_content': 'string'}
    if 'stream_options' in sent:
        yield {'compat_omit': ('stream_options',)}
    if _shapes.is_strict(sent):
        yield {'openai_supports_strict_tool_definition': False}
    if _shapes.has_role(sent, 'developer'):
        yield {'openai_system_prompt_role': 'system'}
