"""What three servers make of the `input` of `/responses`: chat messages, or a refusal. Written from reports, see links.

`test_llama_cpp_responses.py` holds the last one against the real server.
"""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


class RefusedError(Exception):
    """The server answers with an error."""


def _message(role: str, content: str, **fields: Any) -> Json:
    return {'role': role, 'content': content, **fields}


def _call(item: Json) -> Json:
    function = {'name': item['name'], 'arguments': item['arguments']}
    return {'id': item['call_id'], 'type': 'function', 'function': function}


def _texts(content: Any) -> str:
    return content if isinstance(content, str) else '\n'.join(part['text'] for part in content)


def _image_or_text(part: Json) -> str:
    """As llama.cpp reads a part of a request, with an image as its URL."""
    if part['type'] == 'input_text':
        return str(part['text'])
    if part['type'] == 'input_image':
        if not part.get('image_url'):
            raise RefusedError("'image_url' is required")
        return str(part['image_url'])
    if part['type'] == 'input_file':
        raise RefusedError("'input_file' is not supported by llamacpp")
    raise RefusedError("'type' must be one of")


class Vllm:
    """vLLM: https://github.com/vllm-project/vllm/issues/33089, https://github.com/vllm-project/vllm/issues/54224."""

    strings = True  # of an assistant, in a message with `type`

    def read(self, items: list[Json]) -> list[Json]:
        """The messages that the chat template sees."""
        messages: list[Json] = []
        for item in items:
            if 'id' in item and item['id'] is None:
                raise RefusedError('Input should be a valid string')
            self._read(item, messages)
        return messages

    def _read(self, item: Json, messages: list[Json]) -> None:
        kind = item.get('type')
        if kind == 'reasoning':
            if item.get('encrypted_content') is not None:
                raise RefusedError('Encrypted content is not supported')
            texts = item.get('content') or item['summary']
            messages.append(_message('assistant', '', reasoning=texts[0]['text']))
        elif kind == 'function_call':
            if not (messages and messages[-1]['role'] == 'assistant'):
                messages.append(_message('assistant', ''))
            messages[-1].setdefault('tool_calls', []).append(_call(item))
        elif kind == 'function_call_output':
            messages.append(_message('tool', _texts(item['output']), tool_call_id=item['call_id']))
        elif item['role'] == 'assistant':
            text = self._answer(item)
            if messages and messages[-1]['role'] == 'assistant' and not messages[-1]['content']:
                messages[-1]['content'] = text
            else:
                messages.append(_message('assistant', text))
        elif kind in (None, 'message'):
            messages.append(_message(item['role'], _texts(item['content'])))
        else:
            raise RefusedError(f'unknown item type {kind}')

    def _answer(self, item: Json) -> str:
        content = item['content']
        if isinstance(content, str):
            if item.get('type') and not self.strings:
                raise RefusedError(f'{2 * len(content)} validation errors')
            return content
        if not (item.get('type') and item.get('id') and item.get('status')):
            raise RefusedError('validation errors')
        first: str = content[0]['text']  # of a refusal it has none: status 500
        return first


class OldVllm(Vllm):
    """vLLM before it took strings of assistants: each letter of one failed twice."""

    strings = False


class LlamaCpp:
    """llama.cpp, as its server answers; https://github.com/tidyverse/ellmer/issues/1153."""

    def read(self, items: list[Json]) -> list[Json]:
        """The messages that the chat template sees."""
        messages: list[Json] = []
        for item in items:
            self._read(item, messages)
        return messages

    def _read(self, item: Json, messages: list[Json]) -> None:
        kind = item.get('type')
        if kind == 'reasoning':
            if not isinstance(item.get('content'), list):
                raise RefusedError("item['content'] is not an array")
            self._turn(messages)['reasoning_content'] = item['content'][0]['text']
        elif kind == 'function_call':
            self._turn(messages).setdefault('tool_calls', []).append(_call(item))
        elif kind == 'function_call_output':
            if any(
                part['type'] not in ('input_text', 'input_image') for part in item['output'] if isinstance(part, dict)
            ):
                raise RefusedError('Output of tool call should be')
            messages.append(_message('tool', _texts(item['output']), tool_call_id=item['call_id']))
        elif item.get('role') == 'assistant' and kind == 'message':
            parts = [] if isinstance(item['content'], str) else item['content'] or []
            if any(part['type'] not in ('output_text', 'input_text') for part in parts):
                raise RefusedError('unsupported content[].type')
            turn, text = self._turn(messages), _texts(item['content'] or '')
            turn['content'] = f'{turn["content"]}\n{text}' if turn['content'] else text
        elif item.get('role') in ('user', 'system', 'developer'):
            content = item['content']
            texts = content if isinstance(content, str) else '\n'.join(map(_image_or_text, content))
            messages.append(_message(item['role'], texts))
        else:
            raise RefusedError("Cannot determine type of 'item'")

    def _turn(self, messages: list[Json]) -> Json:
        if not (messages and messages[-1]['role'] == 'assistant'):
            messages.append(_message('assistant', ''))
        return messages[-1]


SERVERS: dict[str, Vllm | LlamaCpp] = {'vllm-old': OldVllm(), 'vllm': Vllm(), 'llama.cpp': LlamaCpp()}
