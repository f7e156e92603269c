"""What a llama.cpp server's chat template makes of a list: the question, and how to read the answer.

The question is a short made-up conversation whose tool result has two elements. Each holds a quote and a line
break, which most dumps escape: an element that stands unchanged in the prompt, apart from a dumped key, was shown.
"""

from __future__ import annotations

from typing import Any

from oaicompat._patterns import lazy

_FIRST = 'first "element"\nof the made-up result'
_SECOND = 'second "element"\nof the made-up result'
# The key of a text part, in quotes: llama.cpp's own dump of a Python list escapes nothing.
_DUMPED = lazy(r"""['"]text['"]""")


def question(model: str) -> dict[str, Any]:
    """The body for `POST /apply-template`.

    Source: https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md
    """
    call = {'id': 'call000001', 'type': 'function', 'function': {'name': 'lookup', 'arguments': '{}'}}
    parts = [{'type': 'text', 'text': text} for text in (_FIRST, _SECOND)]
    return {
        'model': model,
        'messages': [
            {'role': 'user', 'content': 'look it up'},
            {'role': 'assistant', 'content': '', 'tool_calls': [call]},
            {'role': 'tool', 'tool_call_id': call['id'], 'content': parts},
        ],
    }


def keeps_elements(answer: object) -> bool:
    """Whether both elements stand in the prompt, as they are, in order, and apart from each other."""
    prompt = answer.get('prompt') if isinstance(answer, dict) else None
    if not isinstance(prompt, str) or _FIRST not in prompt:
        return False
    rest = prompt.partition(_FIRST)[2]
    between, found, _ = rest.partition(_SECOND)
    return bool(found and between) and not _DUMPED.search(between)
