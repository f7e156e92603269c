"""The registry of repairs: for each name, what was seen in the wild, what is done, and why that is safe.

The rows about requests are in `_adaptations.py`. `ModelResponse.provider_details['oaicompat']` lists the names that
fired. The documentation's page is made from here.
"""

from __future__ import annotations

from oaicompat._adaptations import ADAPTATIONS
from oaicompat._entry import GITHUB as _ISSUES
from oaicompat._entry import Repair

__all__ = ('REPAIRS', 'Repair')

_ANSWERS: tuple[Repair, ...] = (
    Repair(
        'choices.merged',
        f'The text in one choice, the call in another ({_ISSUES}BerriAI/litellm/pull/33931).',
        'They become one answer.',
        'Only where the caller did not ask for several choices (`n`), and only what the first one lacks.',
    ),
    Repair(
        'choices.not_a_list',
        f'`choices` as one object ({_ISSUES}pydantic/pydantic-ai/issues/2323).',
        'A list of one.',
        'A list is left alone.',
    ),
    Repair(
        'chunk.delta',
        f'A chunk whose `delta` is null or missing ({_ISSUES}microsoft/agent-framework/pull/5734).',
        'It counts as empty, so that its finish reason and usage are read.',
        'Nothing is added to the answer.',
    ),
    Repair(
        'chunk.message',
        f'A whole `message` where a stream has a `delta` ({_ISSUES}anomalyco/opencode/issues/40454).',
        'What it says beyond the text, the reasoning and the calls so far is read as the delta.',
        'Only where the delta is empty; where deltas told the text, a message that says it in other words adds none.',
    ),
    Repair(
        'content.cumulative',
        'Responses API: each delta of a text repeats all before, as the whole text at its end shows '
        f'({_ISSUES}QwenLM/qwen-code/pull/3896).',
        'Only what is new counts.',
        'Only where the whole text says so: a text may well repeat itself.',
    ),
    Repair(
        'content.not_a_list',
        f'Responses API: the content of a message as one string ({_ISSUES}Oaklight/llm-rosetta/issues/56).',
        'It becomes one `output_text` part.',
        'The text stays as it is.',
    ),
    Repair(
        'content.not_text',
        f'`content` as a list of parts, an object or a number ({_ISSUES}BerriAI/litellm/issues/16272).',
        'The text in it is taken.',
        'Strings are left alone.',
    ),
    Repair(
        'content.split_character',
        'A character as two escapes, one in each of two chunks, or half of one alone '
        f'({_ISSUES}elie222/rakazo/issues/416).',
        'The halves are joined; a half alone becomes U+FFFD. In text, reasoning, details, refusals and calls alike.',
        'Half a character is no text: it could not be sent back.',
    ),
    Repair(
        'content.thinking_parts',
        f'`content` as a list with thinking blocks in it ({_ISSUES}BerriAI/litellm/issues/16272).',
        'Thinking blocks become reasoning, text parts text.',
        'Decided by the type that each part names.',
    ),
    Repair(
        'envelope.defaults',
        f'`id`, `object`, `created`, `model` or `index` missing, null or of another type '
        f'({_ISSUES}pydantic/pydantic-ai/issues/3994).',
        'The value that the API reference would have there, or none.',
        'None of them carries any of the answer.',
    ),
    Repair(
        'envelope.message',
        f'A choice without `message` ({_ISSUES}cline/cline/issues/13348).',
        'Its `delta` or `text` is read instead.',
        'Only where there is no message.',
    ),
    Repair(
        'envelope.role',
        f'A message without a role, or with another one ({_ISSUES}cline/cline/issues/13348).',
        '`assistant`.',
        'An answer has no other role.',
    ),
    Repair(
        'envelope.types',
        f'An optional field of a wrong type ({_ISSUES}pydantic/pydantic-ai/issues/2323).',
        'It is left out.',
        'Only fields that the answer can do without, and only where their type is wrong.',
    ),
    Repair(
        'envelope.wrapped',
        f'The completion inside of another object, such as `data` or `provider` '
        f'({_ISSUES}pydantic/pydantic-ai/issues/3994).',
        'It is taken out.',
        'Only where the outer object has no choices of its own.',
    ),
    Repair(
        'reasoning.answer',
        f'The whole answer in the reasoning field, no content ({_ISSUES}NousResearch/hermes-agent/pull/4467).',
        'It is shown as text.',
        'Only with `compat_answer_in_reasoning`.',
    ),
    Repair(
        'reasoning.details',
        'Reasoning as a list of objects, `reasoning_details`, that the server wants back as it was '
        f'({_ISSUES}lidge-jun/opencodex/pull/3132).',
        'Its text is shown as reasoning; the list is kept in `ThinkingPart.provider_details` and sent back for it. '
        'In a stream, fragments are joined; those that repeat all before, word for word, are running totals.',
        'Sent back only to the provider that it came from, and only where reasoning is sent back at all. Another id, '
        'or other encrypted data, is another detail. What may be either, such as `1`, `10`, is increments.',
    ),
    Repair(
        'reasoning.field',
        f'Reasoning in a field that pydantic-ai does not read, or as a list or object '
        f'({_ISSUES}vllm-project/vllm/issues/27755).',
        'Its text is moved to the field that is read.',
        'Only where that field is empty.',
    ),
    Repair(
        'responses.event',
        f'Responses API: an event without the fields of its kind, or `response.done` for `response.completed` '
        f'({_ISSUES}Oaklight/llm-rosetta/issues/56).',
        'The fields are filled in, the name is replaced; what is no event of any kind is passed over.',
        'Only what pydantic-ai could not read at all.',
    ),
    Repair(
        'responses.null_lists',
        f'Responses API: `output`, `content`, `summary` or `annotations` null '
        f'({_ISSUES}ding113/claude-code-hub/issues/1219).',
        'An empty list.',
        'Null and empty say the same there.',
    ),
    Repair(
        'responses.output',
        f'Responses API: `output` empty or no list, the text in `output_text` alone '
        f'({_ISSUES}vllm-project/vllm/pull/30223).',
        'A message with that text; an object becomes a list of one.',
        'Only where there is no other output.',
    ),
    Repair(
        'responses.placed',
        f'Responses API: events without indexes, or with another item id each time '
        f'({_ISSUES}1jehuang/jcode/issues/1336).',
        'One index and id for each item.',
        'By the index where there is one, else by the id, else the newest item.',
    ),
    Repair(
        'responses.unstreamed',
        f'Responses API: text or a call in the last events alone, and no deltas before '
        f'({_ISSUES}Soju06/codex-lb/pull/504).',
        'The deltas that would have told it.',
        'Only for items of which nothing was told before.',
    ),
    Repair(
        'sse.bare_json',
        f'JSON lines without `data:`, or one JSON document where a stream was asked for '
        f'({_ISSUES}decolua/9router/issues/3492).',
        'Each document is an event.',
        'Only lines that start with a bracket, which no field name does.',
    ),
    Repair(
        'sse.doubled_field',
        f'`data:` inside of the data ({_ISSUES}decolua/9router/issues/3492).',
        'The inner one is read.',
        'No JSON text starts so.',
    ),
    Repair(
        'sse.dropped',
        f'The connection breaks after the finish reason ({_ISSUES}openai/openai-node/issues/2725).',
        'The answer is accepted.',
        'It was whole; without a finish reason it is an error.',
    ),
    Repair(
        'sse.glued_values',
        'Several JSON objects in one event, or something behind a whole answer '
        f'({_ISSUES}openai/openai-python/issues/663).',
        'They are read one after the other; of whole answers the first counts.',
        'An event with one object is read as ever.',
    ),
    Repair(
        'sse.invalid_utf8',
        f'Bytes that are no UTF-8 ({_ISSUES}graniet/llm/pull/90).',
        'Each becomes U+FFFD, as the standard says; a whole answer is read by the charset that the server told.',
        'Bytes that are UTF-8 are decoded as ever, wherever they are cut.',
    ),
    Repair(
        'sse.single_newlines',
        f'Events parted by one newline ({_ISSUES}SamSaffron/term-llm/pull/456).',
        'A line that starts a JSON text begins an event, where the lines before it are whole.',
        'JSON that is spread over several lines stays one event.',
    ),
    Repair(
        'sse.trailing',
        f'An error behind an answer that was finished ({_ISSUES}lucasjinreal/Crane/issues/121).',
        'It is passed over.',
        'The finish reason came before it; without one it is the error.',
    ),
    Repair(
        'sse.unasked',
        f'An event stream where an answer was asked for that comes whole ({_ISSUES}decolua/9router/issues/3492).',
        'It is read and put together.',
        'Only where the body is no JSON document.',
    ),
    Repair(
        'sse.unterminated',
        f'The last event without its blank line ({_ISSUES}openai/openai-node/issues/2725).',
        'It counts.',
        'Half an event is no JSON, and an error.',
    ),
    Repair(
        'sse.wrapped_comment',
        f'A comment sent as data ({_ISSUES}mnfst/llm-gateway/issues/2053).',
        'It is passed over.',
        'No JSON text starts with a colon.',
    ),
    Repair(
        'thinking.closing_tag',
        f'A closing tag alone, since the template opens it in the prompt ({_ISSUES}nbramia/LifeOS/pull/568).',
        'The text before it is reasoning; later streams of this model start so.',
        'Not in quotes or code, and only in an answer that came whole.',
    ),
    Repair(
        'thinking.harmony',
        f'The channels of gpt-oss as plain text ({_ISSUES}Augustas11/macprovider/issues/743).',
        'The analysis is reasoning, the final channel text.',
        'Only for models of that name, and only at the start of an answer.',
    ),
    Repair(
        'thinking.tags',
        f'Reasoning in tags, cut anywhere ({_ISSUES}MihaiBuilds/memory-vault/pull/152).',
        'A `ThinkingPart`, which is sent back in tags.',
        'A tag opens only at the start of the answer or after reasoning. What pydantic-ai reads the same is not named.',
    ),
    Repair(
        'thinking.unclosed',
        f'The prompt should open the reasoning, and no tag closes it ({_ISSUES}rllm-org/rllm/pull/405).',
        'What was streamed as reasoning is the text, too, as a whole answer would have it.',
        'Only where the answer has no other text and was not cut by its length.',
    ),
    Repair(
        'tool_call.arguments',
        'Arguments as an object, missing, encoded twice, in a code fence, with markers behind them, or almost JSON, '
        f'such as with NaN ({_ISSUES}NousResearch/hermes-agent/pull/1440).',
        'The JSON object that they were; a number that JSON does not have is null, as in JavaScript.',
        'A valid object is never touched, nothing is invented, and what stays unreadable stays as it is.',
    ),
    Repair(
        'tool_call.cumulative',
        f'Each fragment repeats all before ({_ISSUES}NousResearch/hermes-agent/pull/35718).',
        'Only what is new counts.',
        'Only where a fragment starts with all before, and both together are no JSON object.',
    ),
    Repair(
        'tool_call.duplicate_id',
        f'Two calls with one id ({_ISSUES}huggingface/smolagents/pull/1958).',
        'The second gets an id of its own.',
        'The same in the result that is sent back.',
    ),
    Repair(
        'tool_call.function',
        f'Name and arguments beside the `id`, without `function` around them '
        f'({_ISSUES}huggingface/smolagents/pull/1958).',
        'They are read from there.',
        'Only where there is no `function`.',
    ),
    Repair(
        'tool_call.id',
        f'A call without an id ({_ISSUES}continuedev/continue/pull/13235).',
        'A random one, fixed once.',
        'The same in deltas, in the final part and in the result.',
    ),
    Repair(
        'tool_call.index',
        f'Fragments without an index, or parallel calls with the same one ({_ISSUES}ollama/ollama/issues/7881).',
        'Sorted by id, else by what is whole already, else to the newest call.',
        'Fragments with an index and an id of their own keep both.',
    ),
    Repair(
        'tool_call.legacy',
        f'`function_call` in place of `tool_calls` ({_ISSUES}vercel/ai/pull/15879).',
        'It becomes a tool call.',
        'Only where there are no tool calls.',
    ),
    Repair(
        'tool_call.name',
        f'Template markers or `functions.` at the name ({_ISSUES}vllm-project/vllm/pull/35906).',
        'They are cut off.',
        'A prefix only where a tool of that name was offered.',
    ),
    Repair(
        'tool_call.nested_arguments',
        f'An array or object inside of the arguments encoded as a string ({_ISSUES}tashfeenahmed/freellmapi/pull/193).',
        'It is decoded.',
        'Only where the schema of the tool wants one and allows no string.',
    ),
    Repair(
        'tool_call.not_a_list',
        f'`tool_calls` as an object ({_ISSUES}vercel/ai/pull/15879).',
        'A list of one.',
        'A list is left alone.',
    ),
    Repair(
        'tool_call.rejected',
        'An error that says the server could not read the call which the model wrote, and holds its text '
        f'({_ISSUES}ggml-org/llama.cpp/issues/23838).',
        'The text is read as the answer.',
        'Only where an offered tool is called in it; otherwise the error is raised.',
    ),
    Repair(
        'tool_call.repeated_name',
        f'The name again in later fragments, or empty ({_ISSUES}xuzhougeng/wisp-science/issues/222).',
        'It is told once.',
        'A name that comes in pieces is put together.',
    ),
    Repair(
        'tool_call.suppressed',
        f'A call in the text, though `tool_choice` was `none` ({_ISSUES}sgl-project/sglang/issues/35736).',
        'Its markup is taken out; no call is made.',
        'Only markup that calls an offered tool; an answer of nothing else is empty, and can be asked for again.',
    ),
    Repair(
        'tool_call.text',
        f'A call in the text or in the reasoning, since the server has no parser for its form '
        f'({_ISSUES}vllm-project/vllm/issues/21571).',
        'It becomes a call.',
        'Only a complete call of an offered tool whose arguments may be meant for it, and none that text quotes.',
    ),
    Repair(
        'tool_call.twice',
        f'A call that the server made stands in the text, too ({_ISSUES}PrimeIntellect-ai/renderers/pull/80).',
        'It is made once.',
        'Only a call of the same tool with equal arguments. Equal calls that all stand in the text are all made.',
    ),
    Repair(
        'tool_call.type',
        f'A call without `type` ({_ISSUES}vllm-project/vllm/issues/16340).',
        '`function`.',
        'No other kind of call was offered.',
    ),
    Repair(
        'tool_call.unreadable',
        f'Arguments that are no JSON object ({_ISSUES}langchain-ai/langchain/pull/36052).',
        'The call keeps its raw text; the model is told why and asked again.',
        'No call runs with arguments that nobody wrote.',
    ),
    Repair(
        'usage',
        f'Counts missing, null or fractional ({_ISSUES}router-for-me/CLIProxyAPI/pull/3221).',
        'Whole numbers, 0 where there is none.',
        'Counts that are whole stay.',
    ),
    Repair(
        'usage.cumulative',
        f'A running total in every chunk ({_ISSUES}cline/cline/pull/11304).',
        'The last one counts.',
        'A total that comes once is counted once; counts without a prompt behind one with it are increments.',
    ),
)

REPAIRS: tuple[Repair, ...] = tuple(sorted((*_ANSWERS, *ADAPTATIONS)))
"""All repairs of answers and adaptations of requests, by name."""
