"""The formats in which models write calls: a table, and the parsers of those that are like no other.

Grammars that share a marker differ in the very next character, so at most one of them reads on. No marker is the
beginning of another. Pure.
"""

from __future__ import annotations

from typing import NamedTuple

from oaicompat._callparsers import (
    Parser,
    Raw,
    braced,
    function_json,
    functions,
    invokes,
    json_block,
    key_values,
    objects,
    python_block,
    python_list,
    python_tag,
    several,
    whole,
)
from oaicompat._json import dumped
from oaicompat._patterns import lazy
from oaicompat._reading import Disproved, Reader, Steps


class Grammar(NamedTuple):
    """One format.

    Attributes:
        name: What we call it.
        markers: How a block starts; none where the calls are the whole answer.
        parse: Reads what follows the marker.
        examples: `get_weather` in Rome, as models write it.
        evidence: The model's template, or the page that shows the format.
    """

    name: str
    markers: tuple[str, ...]
    parse: Parser
    examples: tuple[str, ...]
    evidence: str


def _mistral(r: Reader, _: str) -> Steps[list[Raw]]:
    yield from r.space()
    if (yield from r.peek()) in ('{', '['):
        found = yield from objects(r)
    else:
        name = yield from r.name()
        given = (yield from r.run(_ID)) if (yield from r.maybe('[CALL_ID]')) else None
        yield from r.maybe('[ARGS]')
        yield from r.space()
        found = [Raw(name, (yield from braced(r)), {}, given)]
    yield from r.close('[/TOOL_CALLS]', needed=False)
    return found


_ID = lazy(r'[\w.-]+')


def _kimi(r: Reader, marker: str) -> Steps[list[Raw]]:
    alone = marker == _KIMI_CALL
    ends = ('<|tool_calls_section_end|>', '<|tool_call_section_end|>')
    return (yield from several(r, (_KIMI_CALL,), _kimi_call, ends, inside=alone, needed=not alone))


def _kimi_call(r: Reader) -> Steps[Raw]:
    yield from r.space()
    written = yield from r.name()
    yield from r.space()
    yield from r.literal('<|tool_call_argument_begin|>')
    yield from r.space()
    arguments = yield from braced(r)
    yield from r.close('<|tool_call_end|>')
    return Raw(written, arguments, {}, written)


_KIMI_CALL = '<|tool_call_begin|>'


def _deepseek(r: Reader, marker: str) -> Steps[list[Raw]]:
    alone = marker in _DS_CALL
    return (yield from several(r, _DS_CALL, _deepseek_call, _DS_ENDS, inside=alone, needed=not alone))


def _deepseek_call(r: Reader) -> Steps[Raw]:
    """`NAME<sep>{..}` of V3.1, or `function<sep>NAME` and a fence of V3 and R1."""
    yield from r.space()
    name = yield from r.run(_ID)
    yield from r.literal(*_DS_SEP)
    yield from r.space()
    fenced = (yield from r.peek()) != '{'
    if fenced:
        name = yield from r.name()
        yield from r.space()
        yield from r.literal('```')
        yield from r.maybe('json')
        yield from r.space()
    elif r.offered(name) is None:
        raise Disproved
    arguments = yield from braced(r)
    if fenced:
        yield from r.close('```')
    yield from r.close(*_DS_END)
    return Raw(name, arguments)


def _bars(word: str) -> tuple[str, ...]:
    return tuple(f'<{bar}{word}{bar}>' for bar in '\uff5c|')


_DS_BEGIN, _DS_ENDS = _bars('tool▁calls▁begin'), _bars('tool▁calls▁end')
_DS_CALL, _DS_END, _DS_SEP = _bars('tool▁call▁begin'), _bars('tool▁call▁end'), _bars('tool▁sep')


def _harmony(r: Reader, marker: str) -> Steps[list[Raw]]:
    """The header of a message to a function, any of its tokens missing, then the arguments."""
    name = (yield from r.name()) if marker.endswith('to=functions.') else ''
    for tokens in _HEADER:
        yield from r.space()
        if (yield from r.maybe(*tokens)) == 'to=':
            yield from r.maybe('functions.')
            name = yield from r.name()
    yield from r.space()
    if not name:
        raise Disproved
    arguments = yield from braced(r)
    yield from r.close('<|call|>', '<|end|>', needed=False)
    return [Raw(name, arguments)]


_TO = ('to=',)
_KIND = ('json', 'code')
_HEADER = (_TO, ('<|channel|>',), ('commentary', 'analysis'), _TO, ('<|constrain|>',), _KIND, ('<|message|>',))


def _gemma(quote: str, closing: str) -> Parser:
    """`call:NAME{key:value}`, strings in quotes of their own."""

    def parse(r: Reader, _: str) -> Steps[list[Raw]]:
        yield from r.space()
        yield from r.literal('call:')
        name = yield from r.name()
        arguments = yield from _gemma_object(r, quote)
        yield from r.close(closing)
        return [Raw(name, arguments)]

    return parse


def _gemma_object(r: Reader, quote: str) -> Steps[str]:
    """An object with bare keys, its strings in JSON's quotes."""
    if (yield from r.peek()) != '{':
        raise Disproved
    parts, depth, start = list[str](), 0, r.at
    while True:
        char = yield from r.find(_GEMMA)
        if char in '"<':
            r.at -= 1
            parts.append(r.text[start : r.at])
            parts.append((yield from r.string()) if char == '"' else (yield from _gemma_string(r, quote)))
            start = r.at
            continue
        depth += 1 if char in '{[' else -1
        if not depth:
            return ''.join([*parts, r.text[start : r.at]])


def _gemma_string(r: Reader, quote: str) -> Steps[str]:
    yield from r.literal(quote)
    return dumped((yield from r.until(quote)))


_GEMMA = lazy(r'[{}\[\]<"]')


_CALL = '{"name": "get_weather", "arguments": {"city": "Rome"}}'
_LLAMA = '{"name": "get_weather", "parameters": {"city": "Rome"}}'
_ARGS = '{"city": "Rome"}'
_PYTHON = 'get_weather(city="Rome")'
_XML = '<function=get_weather>\n<parameter=city>\nRome\n</parameter>\n</function>'
_INVOKE = '<invoke name="get_weather">\n<parameter name="city">Rome</parameter>\n</invoke>'
_DSML = (
    '<{0}DSML{0}%s>\n<{0}DSML{0}invoke name="get_weather">\n<{0}DSML{0}parameter name="city" string="true">Rome'
    '</{0}DSML{0}parameter>\n</{0}DSML{0}invoke>\n</{0}DSML{0}%s>'
)
_GLM = 'get_weather{0}<arg_key>city</arg_key>{0}<arg_value>Rome</arg_value>{0}'
_BEGIN, _END, _BEGINS, _ENDS, _SEP = (tags[0] for tags in (_DS_CALL, _DS_END, _DS_BEGIN, _DS_ENDS, _DS_SEP))
_V3 = f'{_BEGINS}{_BEGIN}function{_SEP}get_weather\n```json\n{_ARGS}\n```{_END}{_ENDS}'
_V31 = f'{_BEGINS}{_BEGIN}get_weather{_SEP}{_ARGS}{_END}{_ENDS}'
_TO_IT = ' to=functions.get_weather'
_KIMI = f'{_KIMI_CALL}functions.get_weather:0<|tool_call_argument_begin|>{_ARGS}<|tool_call_end|>'
_VLLM = 'https://github.com/vllm-project/vllm/blob/main/examples/tool_chat_template_'
_GGML = 'https://github.com/ggml-org/llama.cpp/blob/master/models/templates/'
_DSML_TAGS = tuple(
    f'<{bar}DSML{bar}{tag}' for bar in '\uff5c|' for tag in ('function_calls>', 'tool_calls>', 'invoke ')
)

GRAMMARS: tuple[Grammar, ...] = (
    Grammar(
        'hermes',
        ('<tool_call>', '<function_call>', '<tools>'),  # Granite 20B's; a slip of Qwen2.5's
        json_block(),
        (f'<tool_call>\n{_CALL}\n</tool_call>', f'<function_call>{_CALL}</function_call>', f'<tools>{_CALL}</tools>'),
        f'{_VLLM}hermes.jinja',
    ),
    Grammar(
        'qwen3_coder',
        ('<tool_call>', '<function=', '<seed:tool_call>'),
        functions,
        (f'<tool_call>\n{_XML}\n</tool_call>', _XML, f'<seed:tool_call>\n{_XML}\n</seed:tool_call>'),
        f'{_VLLM}qwen3coder.jinja',  # and ByteDance-Seed-OSS.jinja of llama.cpp
    ),
    Grammar(
        'glm',
        ('<tool_call>',),
        key_values,
        tuple(f'<tool_call>{_GLM.format(gap)}</tool_call>' for gap in ('\n', '')),
        f'{_GGML}GLM-4.6.jinja',
    ),
    Grammar(
        'function',
        ('<function=', '<function('),
        function_json,
        tuple(f'<function{text}' for text in (
            f'=get_weather>{_ARGS}</function>',
            f'=get_weather={_ARGS}</function>',
            f'=get_weather({_ARGS})</function>',
            f'=get_weather{_ARGS}</function>',
            f'(get_weather){_ARGS}>',
        )),
        f'{_VLLM}llama3.1_usr_def_tool_call.jinja',
    ),
    Grammar(
        'llama',
        ('<|python_tag|>',),
        python_tag,
        (f'<|python_tag|>{_LLAMA}', '<|python_tag|>get_weather.call(city="Rome")'),
        f'{_VLLM}llama3.1_json.jinja',
    ),
    Grammar(
        'mistral',
        ('[TOOL_CALLS]',),
        _mistral,
        tuple(f'[TOOL_CALLS]{text}' for text in (
            f'[{_CALL}]',
            f'get_weather[ARGS]{_ARGS}',
            f'get_weather{_ARGS}',
            f'get_weather[CALL_ID]abc123DEF[ARGS]{_ARGS}',
        )),
        f'{_GGML}mistralai-Mistral-Small-3.1-24B-Instruct-2503.jinja',
    ),
    Grammar(
        'kimi',
        ('<|tool_calls_section_begin|>', '<|tool_call_section_begin|>', _KIMI_CALL),
        _kimi,
        (f'<|tool_calls_section_begin|>{_KIMI}<|tool_calls_section_end|>', _KIMI),
        'https://github.com/MoonshotAI/Kimi-K2/blob/main/docs/tool_call_guidance.md',
    ),
    Grammar(
        'deepseek',
        (*_DS_BEGIN, *_DS_CALL),
        _deepseek,
        (_V31, _V3),
        f'{_VLLM}deepseekv31.jinja',  # and deepseekr1.jinja
    ),
    Grammar(
        'dsml',
        _DSML_TAGS,
        invokes,
        tuple(_DSML.format(bar) % (tag, tag) for bar in '\uff5c|' for tag in ('function_calls', 'tool_calls')),
        f'{_GGML}DeepSeek-V3.2.jinja',
    ),
    Grammar(
        'minimax',
        ('<minimax:tool_call>',),
        invokes,
        (f'<minimax:tool_call>\n{_INVOKE}\n</minimax:tool_call>',),
        'https://github.com/MiniMax-AI/MiniMax-M2/blob/main/docs/tool_calling_guide.md',
    ),
    Grammar(
        'invoke',
        ('<function_calls>', '<invoke '),
        invokes,
        (f'<function_calls>\n{_INVOKE}\n</function_calls>', _INVOKE),
        f'{_GGML}unsloth-MiniMax-M2.jinja',
    ),
    Grammar(
        'olmo',
        ('<function_calls>',),
        python_block('</function_calls>'),
        (f'<function_calls>\n{_PYTHON}\n</function_calls>',),
        f'{_VLLM}olmo3.jinja',
    ),
    Grammar(
        'harmony',
        (
            '<|start|>assistant',
            '<|end|><|start|>assistant',
            '<|channel|>commentary',
            '<|channel|>analysis',
            'commentary to=functions.',
            'assistantcommentary to=functions.',
            'assistantanalysis to=functions.',
        ),
        _harmony,
        (
            f'<|start|>assistant<|channel|>commentary{_TO_IT} <|constrain|>json<|message|>{_ARGS}<|call|>',
            f'<|start|>assistant{_TO_IT}<|channel|>commentary json<|message|>{_ARGS}<|call|>',
            f'<|channel|>commentary{_TO_IT} <|constrain|>json<|message|>{_ARGS}',
            f'<|channel|>analysis{_TO_IT} code<|message|>{_ARGS}<|call|>',
            f'assistantcommentary{_TO_IT} json{_ARGS}',
            f'assistantanalysis{_TO_IT} code{_ARGS}',
            f'commentary{_TO_IT} json{_ARGS}',
        ),
        'https://cookbook.openai.com/articles/openai-harmony',
    ),
    Grammar(
        'gemma',
        ('<|tool_call>',),
        _gemma('<|"|>', '<tool_call|>'),
        ('<|tool_call>call:get_weather{city:<|"|>Rome<|"|>}<tool_call|>',),
        f'{_GGML}gemma4.jinja',
    ),
    Grammar(
        'functiongemma',
        ('<start_function_call>',),
        _gemma('<escape>', '<end_function_call>'),
        ('<start_function_call>call:get_weather{city:<escape>Rome<escape>}<end_function_call>',),
        'https://ai.google.dev/gemma/docs/functiongemma/formatting-and-best-practices',
    ),
    Grammar(
        'tool_code',
        ('```tool_code',),
        python_block('```'),
        (f'```tool_code\n{_PYTHON}\n```', f'```tool_code\nprint({_PYTHON})\n```'),
        'https://www.philschmid.de/gemma-function-calling',
    ),
    Grammar(
        'tool_call_token',
        ('<|tool_call|>',),
        json_block('<|/tool_call|>', needed=False),
        (f'<|tool_call|>[{_CALL}]', f'<|tool_call|>[{_CALL}]<|/tool_call|>'),
        'https://github.com/vllm-project/vllm/blob/main/vllm/tool_parsers/granite_tool_parser.py',  # Phi closes it
    ),
    Grammar(
        'tool_calls',
        ('<tool_calls>', '<TOOLCALL>'),
        json_block(),
        (f'<tool_calls>[{_CALL}]</tool_calls>', f'<TOOLCALL>[{_CALL}]</TOOLCALL>'),
        f'{_VLLM}hunyuan_a13b.jinja',  # and nemotron_nano_v2.jinja
    ),
    Grammar(
        'command',
        ('<|START_ACTION|>',),
        json_block('<|END_ACTION|>'),
        ('<|START_ACTION|>[\n    {"tool_name": "get_weather", "parameters": {"city": "Rome"}}\n]<|END_ACTION|>',),
        f'{_GGML}CohereForAI-c4ai-command-r7b-12-2024-tool_use.jinja',
    ),
    Grammar(
        'internlm',
        ('<|action_start|><|plugin|>',),
        json_block('<|action_end|>'),
        (f'<|action_start|><|plugin|>\n{_LLAMA}<|action_end|>',),
        f'{_VLLM}internlm2_tool.jinja',
    ),
    Grammar(
        'lfm',
        ('<|tool_call_start|>',),
        python_block('<|tool_call_end|>'),
        (f'<|tool_call_start|>[{_PYTHON}]<|tool_call_end|>',),
        f'{_GGML}llama-cpp-lfm2.jinja',
    ),
    Grammar(
        'json',
        (),
        whole(objects),
        (_LLAMA, _CALL, f'[{_CALL}]', f'functools[{_CALL}]', f'{{"type": "function", "function": {_LLAMA}}}',
         '{"type": "function", "function": "get_weather", "parameters": {"city": "Rome"}}'),
        f'{_VLLM}llama3.2_json.jinja',  # and xlam_llama.jinja; phi4_mini.jinja says `functools`
    ),
    Grammar('python', (), whole(python_list), (f'[{_PYTHON}]',), f'{_VLLM}llama4_pythonic.jinja'),
)  # fmt: skip
