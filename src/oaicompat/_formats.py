"""How families of models write tools, calls and results as text. Data, and one small writer for each form.

A model calls best in the form that it was trained on, so the name of a model chooses a row of `FAMILIES`; each links
the model's own chat template or documentation. Only forms of plain text are here. Kimi, DeepSeek, Mistral, Phi-4,
Granite 3, Gemma 4 and gpt-oss were trained on control tokens, such as `<|tool_calls_section_begin|>`. In the text of a
message, some servers read those as the tokens, which changes where messages begin and end
(https://github.com/huggingface/transformers/pull/47853) or how the answer is read
(https://github.com/ggml-org/llama.cpp/issues/22371); others as mere letters, which the model never saw there
(https://github.com/jundot/omlx/issues/1992). So those models, and all that no row knows, get the form of Hermes, which
many of them have seen. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from oaicompat._patterns import lazy

Function = Mapping[str, Any]


class UnwritableError(Exception):
    """What can't be said in text without losing something."""


class Call(NamedTuple):
    """One call.

    Attributes:
        name: Whom it calls.
        arguments: The JSON text of its arguments, or what stood there instead.
        values: The arguments; `None` where that text is no JSON object.
    """

    name: str
    arguments: str
    values: Mapping[str, Any] | None


@dataclass(frozen=True)
class Format:
    """One form.

    Attributes:
        tools: Writes the functions that there are.
        calls: Writes calls, in their order.
        result: The tag around a result.
        alone: Whether a call stands without any text beside it.
    """

    tools: Callable[[Sequence[Function]], str]
    calls: Callable[[Sequence[Call]], str]
    result: str = 'tool_response'
    alone: bool = False


@dataclass(frozen=True)
class Family:
    """Models that were trained on one form.

    Attributes:
        models: Matches their names, in lower case.
        form: What they write.
        evidence: Their chat template, or documentation.
    """

    models: re.Pattern[str]
    form: Format
    evidence: str


def text_of(value: Any) -> str:
    """`value` as compact JSON.

    Raises:
        UnwritableError: If it is no JSON.
    """
    try:
        return json.dumps(value, ensure_ascii=False, separators=(',', ':'))
    except (TypeError, ValueError, RecursionError) as error:
        raise UnwritableError(str(error)) from error


# Tools


def _each_in_tags(functions: Sequence[Function]) -> str:
    lines = [text_of({'type': 'function', 'function': function}) for function in functions]
    return '\n'.join(['<tools>', *lines, '</tools>'])


def _tags_for_each(functions: Sequence[Function]) -> str:
    return '\n'.join(['<tools>', *(f'<tool>{text_of(function)}</tool>' for function in functions), '</tools>'])


def _array(functions: Sequence[Function]) -> str:
    return '\n'.join(['[', ',\n'.join(map(text_of, functions)), ']'])


# Calls


def _json(call: Call, arguments: str) -> str:
    """One call as a JSON object; its arguments stand as they came, whatever their white space."""
    said = call.arguments if call.values is not None else text_of(call.arguments)
    return f'{{"name": {text_of(call.name)}, "{arguments}": {said}}}'


def _parameters(call: Call, opening: str, between: str, closing: str) -> list[str]:
    """Each argument in tags: a string as it is, any other value as JSON."""
    if call.values is None:
        return [call.arguments]
    return [
        f'{opening.format(key)}{between}{value if isinstance(value, str) else text_of(value)}{between}{closing}'
        for key, value in call.values.items()
    ]


def _hermes(calls: Sequence[Call]) -> str:
    return '\n'.join(f'<tool_call>\n{_json(call, "arguments")}\n</tool_call>' for call in calls)


def _json_lines(calls: Sequence[Call]) -> str:
    return '\n'.join(_json(call, 'parameters') for call in calls)


def _functions(calls: Sequence[Call]) -> str:
    lines: list[str] = []
    for call in calls:
        told = _parameters(call, '<parameter={}>', '\n', '</parameter>')
        lines += ['<tool_call>', f'<function={call.name}>', *told, '</function>', '</tool_call>']
    return '\n'.join(lines)


def _keys_and_values(calls: Sequence[Call]) -> str:
    lines: list[str] = []
    for call in calls:
        told = _parameters(call, '<arg_key>{}</arg_key>\n<arg_value>', '', '</arg_value>')
        lines += [f'<tool_call>{call.name}', *told, '</tool_call>']
    return '\n'.join(lines)


def _invoked(calls: Sequence[Call]) -> str:
    lines: list[str] = []
    for call in calls:
        told = _parameters(call, '<parameter name="{}">', '', '</parameter>')
        lines += [f'<invoke name="{call.name}">', *told, '</invoke>']
    return '\n'.join(['<minimax:tool_call>', *lines, '</minimax:tool_call>'])


# Families

HERMES = Format(_each_in_tags, _hermes)
"""https://github.com/NousResearch/Hermes-Function-Calling; also Qwen 2.5 and 3, Granite 4, SmolLM3 and many more."""
BARE_JSON = Format(_array, _json_lines, alone=True)
QWEN_XML = Format(_each_in_tags, _functions)
GLM = Format(_each_in_tags, _keys_and_values)
MINIMAX = Format(_tags_for_each, _invoked, result='response')

_GITHUB = 'https://github.com/'
_VLLM = f'{_GITHUB}vllm-project/vllm/blob/main/examples/'
_LLAMA_CPP = f'{_GITHUB}ggml-org/llama.cpp/blob/master/models/templates/'

# The first that matches counts.
FAMILIES: tuple[Family, ...] = (
    # Tunes that are named after what they were tuned from, too.
    Family(lazy(r'hermes|distill'), HERMES, f'{_VLLM}tool_chat_template_hermes.jinja'),
    Family(lazy(r'qwen-?3-?coder'), QWEN_XML, f'{_VLLM}tool_chat_template_qwen3coder.jinja'),
    Family(lazy(r'qwen-?3\.[5-9]'), QWEN_XML, f'{_GITHUB}mattn/tensai/pull/175'),
    Family(
        lazy(r'nemotron-?3'),
        QWEN_XML,
        'https://kenrollins.github.io/gemma-forge/journal/gotchas/nemotron-tool-parser/',
    ),
    Family(lazy(r'glm-?(?:4\.[5-9]|[5-9])'), GLM, f'{_LLAMA_CPP}GLM-4.6.jinja'),
    Family(lazy(r'minimax-?m2'), MINIMAX, f'{_LLAMA_CPP}unsloth-MiniMax-M2.jinja'),
    Family(
        lazy(r'llama-?v?3[._p-][1-3](?!\d)'),  # 3.1, or as some hosts write it: v3p1, 3-1, 3_1
        BARE_JSON,
        f'{_VLLM}tool_chat_template_llama3.1_json.jinja',
    ),
    Family(lazy(r'llama-?v?4'), BARE_JSON, f'{_VLLM}tool_chat_template_llama4_json.jinja'),
    Family(
        lazy(r'(?<!function)gemma-?3'),
        BARE_JSON,
        'https://ai.google.dev/gemma/docs/capabilities/function-calling',
    ),
)


def form_of(model: Any) -> Format:
    """The form for a model of this name."""
    name = model.lower() if isinstance(model, str) else ''
    return next((family.form for family in FAMILIES if family.models.search(name)), HERMES)
