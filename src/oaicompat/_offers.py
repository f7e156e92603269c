"""Which tools a request offers, and so which calls in the text of its answer may be meant."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic_ai.models import ModelRequestParameters

from oaicompat import _urls
from oaicompat._offer import Offer

Schemas = dict[str, Mapping[str, Any]]


def schemas_of(parameters: ModelRequestParameters) -> Schemas:
    """The parameter schemas of all tools, by name."""
    return {name: tool.parameters_json_schema for name, tool in parameters.tool_defs.items()}


def offer_of(
    parameters: ModelRequestParameters, settings: Mapping[str, Any], profile: Mapping[str, Any], url: str
) -> Offer:
    """What may be called, as pydantic-ai reads `tool_choice`: `none` forbids all tools but output tools."""
    if _is_off(profile, url):
        return Offer()
    choice, extra, schemas = settings.get('tool_choice'), settings.get('extra_body'), schemas_of(parameters)
    outputs = {tool.name for tool in parameters.output_tools}
    in_body = extra.get('tool_choice') if isinstance(extra, Mapping) else None
    if in_body == 'none' or (choice in ('none', []) and not outputs):
        return Offer(schemas, 'suppress')
    names = [] if choice == 'none' else getattr(choice, 'function_tools', choice)
    if isinstance(names, list):
        chosen = {*names} if isinstance(choice, list) and choice else {*names} | outputs
        schemas = {name: schema for name, schema in schemas.items() if name in chosen}
    return Offer(schemas, 'on', expected=_is_prompted(profile) and profile.get('compat_repair') == 'strict')


def _is_prompted(profile: Mapping[str, Any]) -> bool:
    return profile.get('compat_tools') == 'prompted'


def _is_off(profile: Mapping[str, Any], url: str) -> bool:
    if _is_prompted(profile) and profile.get('compat_repair') != 'off':
        return False  # where calls as text were asked for, they are read
    default = 'off' if _urls.is_openai(url) else 'on'
    return profile.get('compat_repair') == 'off' or profile.get('compat_text_calls', default) == 'off'


def holds_call(profile: Mapping[str, Any], url: str, sent: bytes, body: bytes) -> bool:
    """Whether an error says what the model wrote, and it calls a tool that was sent: there is no need to ask again."""
    if _is_off(profile, url) or profile.get('compat_repair') == 'strict':
        return False
    try:
        request, told = json.loads(sent), body.decode('utf-8', 'replace')
        functions = [tool['function'] for tool in request['tools']]
        schemas = {function['name']: function.get('parameters') or {} for function in functions}
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return False
    from oaicompat._recovery import rejected_text

    offer = Offer(schemas, 'off' if request.get('tool_choice') == 'none' else 'on')
    try:
        return rejected_text(json.loads(told), offer) is not None
    except (ValueError, RecursionError):
        return rejected_text(told, offer) is not None
