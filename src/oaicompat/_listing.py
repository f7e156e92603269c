"""What a server's list of models says: models out of any JSON value, the way to the next page, the nearest names.

`models_in()` finds the list, then an id and a context window in each of its items by two tables of keys; what is no
model is skipped. `following()` reads the many ways to say that there is more. `nearest()` compares names. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any
from urllib.parse import parse_qsl, urljoin, urlsplit

from oaicompat import _urls
from oaicompat._envelope import failure_in
from oaicompat._patterns import lazy


@dataclass(frozen=True)
class ListedModel:
    """One model that a server lists.

    Attributes:
        id: The name that the server knows the model by, as it takes it in a request.
        context_window: How many tokens the model can hold; `None` where the list does not say. Where it tells both
            what the model can do and what is loaded, this is what is loaded.
        owned_by: Who the server says made it, or `None`.
        raw: The item as the server sent it; a bare name comes as `{'id': name}`.
    """

    id: str
    context_window: int | None = None
    owned_by: str | None = None
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, hash=False)


# The best first: behind `id`, LM Studio's own list, Ollama's, and those of Gemini and Spice, whose `name` is the id.
# https://github.com/abdulmominsakib/localmind/pull/11 https://github.com/use-agent-os/agent-os/pull/1831
# https://github.com/spiceai/spiceai/pull/4624
_IDS = ('id', 'key', 'model', 'name', 'model_name')

# Where a list is, the best first; llama.cpp sends `data` and `models` with the same models, and only `data` says more.
# https://github.com/can1357/oh-my-pi/issues/3310 https://github.com/simonw/llm-gemini/issues/58
_LISTS = ('data', 'models', 'model_list', 'items', 'results', 'result')
_DEPTH = 3

_WINDOWS: Mapping[tuple[str | int, ...], str] = {
    # What is loaded
    ('loaded_context_length',): 'https://www.lmstudio.ai/docs/api/rest-api',
    ('loaded_instances', 0, 'config', 'context_length'):
        'https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/2139',
    ('meta', 'n_ctx'): 'https://github.com/mostlygeek/llama-swap/pull/984',
    ('n_ctx',): 'https://github.com/mostlygeek/llama-swap/pull/984',
    # What the model is served with
    ('context_length',): 'https://github.com/maximhq/bifrost/issues/6711',  # Together, OpenRouter, Moonshot
    ('context_window',): 'https://github.com/anomalyco/models.dev/pull/1276',  # Groq
    ('max_model_len',): 'https://github.com/modal-labs/modal-examples/issues/843',  # vLLM
    ('max_context_length',): 'https://github.com/simonw/llm-mistral/issues/23',  # Mistral, LM Studio
    ('inputTokenLimit',): 'https://github.com/simonw/llm-gemini/issues/58',
    ('max_input_tokens',): 'https://github.com/ericc-ch/copilot-api/pull/257',  # Anthropic
    ('capabilities', 'limits', 'max_context_window_tokens'): 'https://github.com/anomalyco/models.dev/issues/783',
    ('limits', 'max_context_window_tokens'): 'https://github.com/ericc-ch/copilot-api/pull/257',
    ('limits', 'max_input_tokens'): 'https://docs.github.com/en/rest/models/catalog',
    ('limit', 'context'): 'https://github.com/ThinkInAIXYZ/deepchat/pull/2041',  # models.dev's form
    ('model_info', 'max_input_tokens'): 'https://github.com/arbs-io/github-copilot-llm-gateway/pull/102',  # LiteLLM
    ('details', 'context_length'): 'https://github.com/use-agent-os/agent-os/pull/1831',  # Ollama
    # Of one host among several that serve the model, and often less than the model's own
    ('top_provider', 'context_length'): 'https://github.com/anomalyco/models.dev/issues/2796',
    # What the model was trained with
    ('meta', 'n_ctx_train'): 'https://github.com/kvcache-ai/ktransformers/pull/123',
    ('n_ctx_train',): 'https://github.com/kvcache-ai/ktransformers/pull/123',
}  # fmt: skip
"""Where an item tells its context window, with who says so; the first that holds a number counts."""

_NUMBER = lazy(r'\s*(\d{1,10})(?:\.0*)?\s*', re.ASCII)
_MOST = 10**9  # Some say "no limit" with a number that no model has.


def models_in(value: object) -> list[ListedModel]:
    """The models that a server's answer to `GET /models` lists.

    Args:
        value: The answer as a JSON value: an object with a list, the list itself, or an object whose keys are ids.

    Returns:
        Each model once, in the server's order. Nothing is left out by its kind: embedding models are listed, too.
    """
    found: dict[str, ListedModel] = {}
    for key, item in _items(value, _DEPTH) or ():
        model = _model(key, item)
        if model is not None:
            found.setdefault(model.id, model)
    return list(found.values())


def lists_models(value: object) -> bool:
    """Whether `value` holds a list where models would be, be it an empty one."""
    return _items(value, _DEPTH) is not None


def _items(value: object, depth: int) -> Sequence[tuple[str | None, object]] | None:
    """What may be models, each with the key it stands under where the keys are ids; `None` where there is no list."""
    if isinstance(value, list):
        return [(None, item) for item in value]
    if not isinstance(value, Mapping) or not depth:
        return None
    inside = [[] if value[key] is None else _items(value[key], depth - 1) for key in _LISTS if key in value]
    told = [items for items in inside if items is not None]
    if told:
        return next(filter(None, told), [])
    return list(value.items()) if _keyed_by_id(value) else None


def _keyed_by_id(value: Mapping[str, Any]) -> bool:
    known = {*_IDS, 'object', 'owned_by', *(path[0] for path in _WINDOWS)}
    return (
        bool(value)
        and all(isinstance(item, Mapping) and not known.isdisjoint(item) for item in value.values())
        and failure_in(value) is None
    )


def _model(key: str | None, item: object) -> ListedModel | None:
    if isinstance(item, str):
        return ListedModel(item, raw={'id': item}) if item.strip() else None
    if not isinstance(item, Mapping) or item.get('object') == 'error':
        return None
    names = (item.get(name) for name in _IDS) if key is None else (item.get('id'), key)
    name = next((name for name in names if isinstance(name, str) and name.strip()), None)
    if name is None:
        return None
    owner = item.get('owned_by')
    owned_by = owner if isinstance(owner, str) and owner else None
    return ListedModel(name, _context_window(item), owned_by, item)


def _context_window(item: Mapping[str, Any]) -> int | None:
    return next((size for path in _WINDOWS if (size := _tokens(_at(item, path))) is not None), None)


def _at(value: Any, path: Iterable[str | int]) -> object:
    for step in path:
        if isinstance(step, str) and isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(step, int) and isinstance(value, list) and len(value) > step:
            value = value[step]
        else:
            return None
    return value


def _tokens(value: object) -> int | None:
    """`value` as a number of tokens; `None` where it can't be one."""
    if isinstance(value, str):
        written = _NUMBER.fullmatch(value)
        value = int(written[1]) if written else None
    whole = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= _MOST and value % 1 == 0
    return int(value) if whole and isinstance(value, int | float) else None


Page = tuple[str, dict[str, str]]
"""A URL without a query, and the query."""

# A token, and the name of the parameter that it goes back in.
# https://github.com/Canopus-Labs/PrepPilot/pull/1643
_TOKENS = {'nextPageToken': 'pageToken', 'next_page_token': 'page_token', 'next_cursor': 'cursor'}
_LINKS = (('next',), ('next_url',), ('links', 'next'), ('_links', 'next'), ('_links', 'next', 'href'))


def following(value: object, url: str) -> Page | None:
    """Where the next page of a list is; `None` where this was the last.

    Args:
        value: The page at hand.
        url: Where the list is, without a query. A link that leads to another host is none.
    """
    if not isinstance(value, Mapping):
        return None
    for key, parameter in _TOKENS.items():
        if (token := value.get(key)) and isinstance(token, str):
            return url, {parameter: token}
    for path in _LINKS:
        if (page := _linked(_at(value, path), url)) is not None:
            return page
    if value.get('has_more') is not True:
        return None
    last = value.get('last_id')
    listed = models_in(value)
    if not isinstance(last, str) or not last:
        last = listed[-1].id if listed else ''
    # OpenAI's own lists go on with `after`, Anthropic's with `after_id`, and `first_id` stands in both.
    # https://github.com/newo-ether/Agora/issues/41 https://docs.anthropic.com/en/api/models-list
    return (url, {'after': last, 'after_id': last}) if last else None


def _linked(link: object, url: str) -> Page | None:
    if not isinstance(link, str) or not link.startswith(('http://', 'https://', '/', '?')):
        return None
    try:
        parts = urlsplit(urljoin(url, link))
        there = parts._replace(query='', fragment='').geturl()
        same = '@' not in parts.netloc and _urls.same_host(there, url)
    except ValueError:
        return None
    return (there, dict(parse_qsl(parts.query, keep_blank_values=True))) if same else None


_CLOSE = 0.6


def nearest(name: str, served: Iterable[str], n: int = 3) -> list[str]:
    """The names among `served` that `name` may have meant, the best first.

    Names are compared as they are, and again without vendor, case and separators: `qwen3:8b` is near
    `Qwen/Qwen3-8B-Instruct`, and nearer to it than to `Qwen/Qwen3-32B`.

    Args:
        name: What was asked for.
        served: What there is.
        n: How many to name at most.
    """
    scored = [(_likeness(name, other), other) for other in dict.fromkeys(served)]
    scored.sort(key=lambda pair: -pair[0])
    return [other for score, other in scored[:n] if score >= _CLOSE]


def _likeness(name: str, other: str) -> float:
    asked, there = _words(name), _words(other)
    kept = sum(word in there for word in asked) / len(asked) if asked else 0.0
    return max(_ratio(name.lower(), other.lower()), (_ratio(''.join(asked), ''.join(there)) + kept) / 2)


def _words(name: str) -> list[str]:
    """The parts of a name without its vendor: `qwen`, `3` and `8b` of `Qwen/Qwen3-8B`."""
    return re.findall(r'\d+[^\W\d_]*|[^\W\d_]+', name.rpartition('/')[2].lower())


def _ratio(one: str, other: str) -> float:
    return SequenceMatcher(None, one, other, autojunk=False).ratio()


def says_unknown_model(texts: Iterable[str], *, status: int, model: str) -> bool:
    """Whether an error's words say that the server does not know `model`.

    A 404 that speaks of a model does; a 400 only where it says so, since most of them speak of what a model can't do.
    """
    said: Iterator[str] = (text.lower() for text in texts)
    if status == _NOT_FOUND:
        name = re.compile(rf'(?<!\w){re.escape(model.lower())}(?!\w)')
        return any('model' in text or name.search(text) for text in said)
    return status == _BAD_REQUEST and any(_UNKNOWN.search(text) for text in said)


_NOT_FOUND, _BAD_REQUEST = 404, 400
_UNKNOWN = lazy(
    r'(?:unknown|invalid|no such|unsupported) model\b|not a (?:valid|known) model'
    r"|\bmodel\b.{0,120}?(?:(?:\bnot|n't) (?:be )?(?:found|exist|available|served|loaded|valid)\b|\bunknown\b)",
    re.DOTALL,
)
