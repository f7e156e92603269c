"""The models: the only file that overrides pydantic-ai.

`_Compatible` holds what Chat Completions and the Responses API share: the constructor, the profile with its layers,
list tool returns, and the repair of what comes back. Each override calls `super()` and works on what it gave;
`tests/test_seams.py` lists them all.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, nullcontext
from functools import cache, partial
from importlib import import_module
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from openai import AsyncOpenAI
from openai.types import chat
from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.messages import (
    FinishReason,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelResponseStreamEvent,
    PartStartEvent,
    ThinkingPart,
    ToolReturnPart,
)
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel, OpenAIStreamedResponse
from pydantic_ai.profiles import ModelProfile, ModelProfileSpec, merge_profile
from pydantic_ai.providers import Provider
from pydantic_ai.settings import ModelSettings
from typing_extensions import override

from oaicompat import _urls
from oaicompat._alike import maps_alike, streams_alike
from oaicompat._client import adapting, headers_of
from oaicompat._endpoint import Endpoint
from oaicompat._finish import FINISH_REASONS
from oaicompat._history import makes_tool_message, result_texts, settled, settled_part, taken
from oaicompat._keys import DETAILS, INLINE, KEPT, WHOLE
from oaicompat._knobs import adapts
from oaicompat._lesson import together
from oaicompat._mapping import (
    FEW,
    LEAST,
    Call,
    Choice,
    Run,
    errors_explained,
    name_repairs,
    parent_profile,
    taken_repairs,
    whole,
    with_repairs,
    without_faults,
)
from oaicompat._sdk import RepairedStream
from oaicompat._short import CALLS
from oaicompat._stepping import Source, Stepped, joined
from oaicompat.errors import misuse_explained
from oaicompat.profile import CompatibleModelProfile, merged_over, pin_of, pinned, shown, split

__all__ = ('OpenAICompatibleModel', 'OpenAICompatibleResponsesModel')

if TYPE_CHECKING:
    from oaicompat._mapped import Sending
    from oaicompat._unchanged import Memory
    from oaicompat.discovery import ListedModel

_Streamed = TypeVar('_Streamed', bound='_ExplainedResponse')
_UNRESOLVED: tuple[int, Mapping[str, Any]] = (-1, {})
_RESOLVING = threading.RLock()


class _Compatible(Model[AsyncOpenAI]):
    """What both models share; always stands in front of one of them."""

    _path = '/chat/completions'

    @misuse_explained()
    def __init__(
        self,
        model_name: str,
        *,
        provider: str | Provider[AsyncOpenAI] | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        profile: CompatibleModelProfile | ModelProfileSpec | None = None,
        settings: ModelSettings | None = None,
        **options: Any,
    ) -> None:
        """Create a model; nothing is sent before the first request.

        Args:
            model_name: The name that the server knows the model by, such as `glm-5`.
            provider: A prefix such as `'deepseek'` or `'vllm'`, any prefix of pydantic-ai, or a `Provider`. Default:
                OpenAI, or where `OPENAI_BASE_URL` points; with `base_url`, the server that is there.
            base_url: Where the server is: `http://localhost:8000/v1`. No `OPENAI_*` variable is read for it.
            api_key: The key to send. Default: that of the prefix's own variables.
            profile: Knobs and profile keys, merged over everything else; see `CompatibleModelProfile`. Or a function
                from the resolved profile to the one to use.
            settings: Settings for every request of this model.
            options: Further arguments of the pydantic-ai class.

        Raises:
            UserError: For arguments that can't work: an empty model name, an unknown prefix, a URL that names no
                server, a missing key, an unknown knob, `base_url` together with a `Provider`.
        """
        # Now, and not in the event loop; nor before there is a model.
        import_module('oaicompat._exchange')
        from oaicompat._providers import check_arguments, check_name, resolve

        check_arguments(model_name, settings, options, type(self))
        if provider is None and base_url is None:
            check_name(model_name)
        resolved = resolve(provider, base_url, api_key)
        theirs, ours = split(profile)
        url = str(resolved.provider.client.base_url).rstrip('/')
        self._server = resolved.server
        prefix = self._server.prefix if self._server else None
        self._endpoint = Endpoint(url, model_name, prefix, resolved.withheld, self._path)
        # Timeouts of a client that the caller made are the caller's.
        self._own_client = not isinstance(provider, Provider)
        self._resolved: tuple[int, Mapping[str, Any]] = _UNRESOLVED
        self._news: Mapping[str, Any] = {}
        # `Any`: the next class is not `Model` but the one this stands in front of, with arguments of its own.
        initialise = cast(Any, super().__init__)
        initialise(model_name, provider=resolved.provider, profile=theirs, settings=settings, **options)
        if ours:
            # Upstream constructors may have put a profile of their own in place of an absent one.
            self._profile = merged_over(self._profile, ours)
            self._resolved = _UNRESOLVED

    @override
    def __repr__(self) -> str:
        return shown(type(self), self.model_name, self._endpoint.shown, self._settings, self._profile)

    @property
    def _repairing(self) -> bool:
        return self.profile.get('compat_repair') != 'off'

    @property
    def learned(self) -> Mapping[str, Any]:
        """The profile keys that this endpoint's answers taught for this model; shared by all instances."""
        return self._endpoint.learned

    def forget(self) -> None:
        """Drop what was learned for this endpoint and model."""
        self._endpoint.forget()

    @property
    @override
    def profile(self) -> CompatibleModelProfile:  # the parent's is cached for good
        """The resolved profile: caller's over learned over server row over provider's."""
        if (pin := pin_of(self)) is not None:
            return cast(CompatibleModelProfile, pin.profile)
        version, cached = self._resolved
        if version != self._endpoint.version:
            cached = self.resolve_profile()
        return cast(CompatibleModelProfile, cached)

    def resolve_profile(self, news: Mapping[str, Any] = MappingProxyType({})) -> Mapping[str, Any]:
        """The profile anew; with `news`, for the request alone that has learned them."""
        # One at a time: the parent caches by name, and would give one thread what another began before a lesson.
        with _RESOLVING:
            while True:
                version, self._news = self._endpoint.version, news
                self.__dict__.pop('profile', None)
                resolved = cast(Mapping[str, Any], super().profile)
                self._news = {}
                if news:
                    self.__dict__.pop('profile', None)
                    return resolved
                self._resolved = (version, resolved)
                if version == self._endpoint.version:
                    return resolved

    @override
    def _instance_profile_defaults(self, profile: ModelProfile) -> ModelProfile:
        # Of 91 published templates with tools, 12 fail on a second system message and 10 drop it silently.
        ours = {} if _urls.is_openai(self._endpoint.url) else {'openai_chat_supports_multiple_system_messages': False}
        row = self._server.profile if self._server else {}
        profile = super()._instance_profile_defaults(profile)
        # Of tuples, what the row says and what was learned both count.
        known = together(together(row, self.learned), self._news)
        return merge_profile(*(cast(ModelProfile, layer) for layer in (ours, profile, known)))

    @override
    def prepare_messages(
        self, messages: list[ModelMessage], model_request_parameters: ModelRequestParameters | None = None
    ) -> list[ModelMessage]:
        def prepare(history: list[ModelMessage]) -> list[ModelMessage]:
            return parents(settled(history, self.profile), model_request_parameters)

        parents = super().prepare_messages
        if len(messages) <= LEAST or (key := self._prepares_alike) is None:
            return prepare(messages)
        from oaicompat._prepared import prepared

        return prepared(messages, self._compat_memory, key, prepare)

    @property
    def _compat_memory(self) -> Memory:
        """What was made of messages and tools before."""
        memory: Memory | None = self.__dict__.get('_compat_kept')
        if memory is None:
            from oaicompat._unchanged import Memory

            memory = self.__dict__.setdefault('_compat_kept', Memory())  # one for all threads
        return memory

    @property
    def _prepares_alike(self) -> object | None:
        """Stands for what messages are prepared by; `None` where nothing may be kept of it."""
        return None

    @property
    def client(self) -> AsyncOpenAI:
        """The client; while a request is made, one that sends what this server takes."""
        client: AsyncOpenAI = cast(Any, super()).client
        pin = pin_of(self)
        if pin is None:
            return client
        if not adapts(pin.profile):
            return adapting(client, None, pin.sending, lambda: self._compat_memory, raw=pin.raw)
        from oaicompat._adapting import made_over

        adapt = partial(made_over, profile=pin.profile, fired=pin.fired)
        return adapting(client, adapt, pin.sending, lambda: self._compat_memory, raw=pin.raw)

    async def list_models(self) -> list[ListedModel]:
        """The models that the server says it has; see `oaicompat.list_models`.

        Raises:
            ModelAPIError: If there is no list in the answer, or no answer.
        """
        from oaicompat.discovery import listed_by

        # As a run of an agent does: one that was left has closed the client, and so would leaving it here.
        refresh = getattr(self, '_refresh_http_client', None)
        if refresh is not None:
            refresh()
        async with self if refresh is None else nullcontext():
            return await listed_by(self.client, self._endpoint, own_client=self._own_client)

    async def _repaired(
        self, create: Any, messages: list[ModelMessage], stream: bool, settings: Any, parameters: Any, **kind: Any
    ) -> Any:
        """What the parent's `create` gets for an answer, repaired; sent again where a refusal taught how."""
        from oaicompat._exchange import Exchange
        from oaicompat._pool import keep_connections

        kind['own_client'] = self._own_client
        keep_connections(getattr(self, '_provider', None), own=self._own_client)
        exchange = Exchange(self, self._endpoint, create, messages, settings, parameters, **kind)
        return await exchange.answer(stream=stream)

    def _recognised(self, response: Any) -> list[str]:
        """The repairs of an answer that came whole; what it shows of its server is remembered."""
        build, timings = getattr(response, 'system_fingerprint', None), getattr(response, 'timings', None)
        self._endpoint.recognise(build=build, timings=timings)
        return taken_repairs(response)


class OpenAICompatibleModel(_Compatible, OpenAIChatModel):
    """`OpenAIChatModel` for every server that speaks the Chat Completions API, kept to the letter or not.

    Where a server behaves, the request and the result equal the parent's but for the documented defaults.

    Example:
        ```python
        from oaicompat import OpenAICompatibleModel

        model = OpenAICompatibleModel('glm-5', base_url='http://localhost:8000/v1')
        ```
    """

    @override
    async def _completions_create(  # the parent's overloads, as one
        self, messages: list[ModelMessage], stream: bool, model_settings: Any, model_request_parameters: Any
    ) -> Any:
        create = super()._completions_create
        kind = {'details': self._reads_details}
        return await self._repaired(create, messages, stream, model_settings, model_request_parameters, **kind)

    @property
    @override
    def _prepares_alike(self) -> object | None:
        from oaicompat._prepared import key_of

        return key_of(self, self._compat_memory)

    @property
    def _sending(self) -> Sending | None:
        """What was mapped for earlier requests, for the one under way; none where a subclass maps."""
        pin = pin_of(self)
        if pin is None:
            return None
        if pin.maps is None:
            pin.maps = maps_alike(self)
            told = [getattr(self, name, None) for name in ('system', 'canonical_system', 'compatible_systems')]
            if pin.maps:
                from oaicompat._mapped import Sending

                pin.sending = Sending(self._compat_memory, pin.profile, told)
        return pin.sending

    @override
    async def _map_messages(self, messages: Sequence[ModelMessage], *args: Any, **options: Any) -> Any:
        parents, pin = super()._map_messages, pin_of(self)
        if pin is not None and len(messages) < FEW:
            pin.maps = False  # nothing of so few is worth keeping
        if (sending := self._sending) is None:
            return await parents(messages, *args, **options)
        from oaicompat._joining import may_join, may_run

        if not may_run(self.profile, options.get('model_settings')):
            return await parents(messages, *args, **options)
        sending.joins = may_join(self.profile)
        made = await parents(sending.shortened(messages, Run), *args, **options)
        if sending.joins and sending.told_others(cast(Any, made)):
            sending.joins = False
            made = await parents(sending.shortened(messages, Run), *args, **options)
        return made

    @override
    def _get_instruction_parts(self, messages: Sequence[ModelMessage], *args: Any, **options: Any) -> Any:
        return super()._get_instruction_parts(whole(messages), *args, **options)

    @override
    async def _map_user_message(self, message: ModelRequest) -> AsyncIterable[chat.ChatCompletionMessageParam]:
        sending = self._sending
        if sending is None:
            params: Any = None
        elif type(message) is Run:
            params = sending.copies(message.wires)
        else:
            params = sending.mapped(message, 'made')
        if params is None:
            snapshot = sending.snapshot(message) if sending is not None else None
            params = sending.once(message) if sending is not None else None
            if params is None:
                params = [param async for param in self._map_anew(message)]
            if sending is not None:
                params = sending.kept(message, snapshot, 'made', params)
        for param in params:
            yield param

    async def _map_anew(self, message: ModelRequest) -> AsyncIterable[chat.ChatCompletionMessageParam]:
        form = self.profile.get('compat_tool_return', 'auto')
        [message] = cast(list[ModelRequest], settled([message], self.profile))
        if form == 'string':
            async for param in super()._map_user_message(message):
                yield param
            return
        # The parent yields one tool message for each tool return, in part order (a legacy retry counts as one).
        results = [part for part in message.parts if makes_tool_message(part)]
        async for param in super()._map_user_message(message):
            if param['role'] == 'tool' and (texts := result_texts(taken(results, param['tool_call_id']))) is not None:
                param['content'] = (
                    '\n'.join(texts) if form == 'joined' else [{'type': 'text', 'text': text} for text in texts]
                )
            yield param

    @override
    def _process_response(self, response: chat.ChatCompletion | str, **options: Any) -> ModelResponse:
        repairs = self._recognised(response)
        if 'thinking.closing_tag' in repairs:
            self._endpoint.note('thinking.closing_tag', {'compat_start_with_reasoning': True}, 'a lone closing tag')
        with pinned(self, parent_profile(self.profile, self._endpoint)):
            try:
                made = super()._process_response(response, **options)
            except UnexpectedModelBehavior as error:
                if self.profile.get('compat_repair', 'on') != 'on':
                    raise
                made = super()._process_response(without_faults(response, error, self._endpoint, repairs), **options)
        return with_repairs(made, repairs)

    @override
    def _process_thinking(self, message: chat.ChatCompletionMessage) -> list[ThinkingPart] | None:
        parts, make = super()._process_thinking(message) or [], partial(ThinkingPart, provider_name=self.system)
        if (given := getattr(message, DETAILS, None)) and self._reads_details and self._repairing:
            from oaicompat._details import listed, with_details

            parts = with_details(parts, listed(given), make)
        inline = getattr(message, INLINE, None)
        # The id that pydantic-ai gives to reasoning from tags, so that it is sent back in tags.
        return [*parts, make(inline, id='content')] if inline else parts or None

    @property
    def _reads_details(self) -> bool:  # some of pydantic-ai's classes do it themselves
        return DETAILS not in self._MapModelResponseContext.__dataclass_fields__

    @override
    def _map_model_response(self, message: ModelResponse) -> chat.ChatCompletionMessageParam | None:
        made: chat.ChatCompletionMessageParam | None = self._mapped_once('made', message, self._map_response_anew)
        return made

    def _map_response_anew(self, message: ModelResponse) -> chat.ChatCompletionMessageParam | None:
        param = super()._map_model_response(message)
        if not self._reads_details:
            return param
        from oaicompat._details import sent_back

        made: chat.ChatCompletionMessageParam | None = sent_back(param, message.parts, self.system)
        return made

    @override
    def _map_carried_thinking(self, message: ModelResponse) -> chat.ChatCompletionUserMessageParam | None:
        parents = super()._map_carried_thinking
        if self._sending is None:
            return parents(message)
        from oaicompat._mapped import carries

        made: chat.ChatCompletionUserMessageParam | None
        made = self._mapped_once('carried', message, parents) if carries(message) else parents(message)
        return made

    def _mapped_once(self, kind: str, message: ModelResponse, anew: Callable[[ModelResponse], Any]) -> Any:
        if (sending := self._sending) is None:
            return anew(message)
        if (params := sending.mapped(message, kind)) is None:
            snapshot, param = sending.snapshot(message), anew(message)
            params = sending.kept(message, snapshot, kind, [] if param is None else [param])
        return params[0] if params else None

    @override
    def _map_finish_reason(self, key: Any) -> FinishReason | None:
        known = super()._map_finish_reason(key)
        return FINISH_REASONS.get(key) if known is None and self._repairing else known

    @override
    async def _process_streamed_response(self, response: Any, *args: Any, **options: Any) -> Any:
        with errors_explained(self._endpoint, repairing=self._repairing, headers=headers_of(response)):
            streamed: Any = await super()._process_streamed_response(response, *args, **options)
        if isinstance(streamed, _RepairedResponse):
            streamed._model_profile = parent_profile(self.profile, self._endpoint)
        streamed._endpoint, streamed._repairing = self._endpoint, self._repairing
        first = await streamed._response.peek()
        self._endpoint.recognise(
            server=response.response.headers.get('server'), build=getattr(first, 'system_fingerprint', None)
        )
        return streamed

    @property
    @override
    def _streamed_response_cls(self) -> type[OpenAIStreamedResponse]:
        parent = super()._streamed_response_cls
        return _in_front(_RepairedResponse if self._repairing else _ExplainedResponse, parent)


class _ExplainedResponse(StreamedResponse):
    """A stream whose errors carry what else the server said."""

    _endpoint: Endpoint
    _repairing: bool

    @override
    async def _get_event_iterator(self) -> AsyncIterator[ModelResponseStreamEvent]:
        headers = headers_of(cast(Any, self)._response)
        with errors_explained(self._endpoint, repairing=self._repairing, headers=headers):
            async for event in self._parents_events():
                yield event

    def _parents_events(self) -> AsyncIterator[ModelResponseStreamEvent]:
        return super()._get_event_iterator()


class _RepairedResponse(_ExplainedResponse, OpenAIStreamedResponse):
    """What a repaired stream says beyond the API reference, mapped as the parent maps its like.

    Chunks that hold one text, and else what the one before did, go straight to the parent's mapping of that text; all
    others go through its loop.
    """

    _pushed: Source[Any] | None = None
    _inline: object = None  # which reasoning in tags began

    @override
    async def _get_event_iterator(self) -> AsyncIterator[ModelResponseStreamEvent]:
        if not self._may_be_short():
            async for event in super()._get_event_iterator():
                yield event
            return
        source = cast(RepairedStream, self._response.source)
        self._pushed = Source(source.made)
        parents = Stepped(self._pushed, self._parents_events)
        with errors_explained(self._endpoint, repairing=self._repairing, headers=headers_of(source)):
            first = await self._response.peek()
            async with aclosing(joined(parents, first, source.rest(), self._map_short)) as events:
                async for event in events:
                    yield event

    def _may_be_short(self) -> bool:
        settings = self._model_settings or {}
        own = isinstance(self._response.source, RepairedStream) and streams_alike(self)
        return own and not settings.get('openai_include_unmapped_response_data')

    @override
    def _validate_response(self) -> Any:
        return super()._validate_response() if self._pushed is None else self._pushed

    def _map_short(self, item: Any) -> Iterable[ModelResponseStreamEvent]:
        key, text, index = item
        if key == 'content':
            return super()._map_text_delta(cast(Any, Choice(content=text)))
        if key == INLINE:
            return self._map_inline(text)
        if key == CALLS:
            return super()._map_tool_call_delta(cast(Any, Choice(tool_calls=[Call(index, text)])))
        return super()._map_thinking_delta(cast(Any, Choice(**{key: text})))

    # Both are asked for every chunk, so they hand on to the parent where there is nothing of ours.
    @override
    def _map_thinking_delta(self, choice: Any) -> Iterable[ModelResponseStreamEvent]:
        parents = super()._map_thinking_delta(choice)
        extra = choice.delta.model_extra
        return chain(parents, self._map_ours(extra)) if extra and (KEPT in extra or INLINE in extra) else parents

    def _map_ours(self, extra: Mapping[str, Any]) -> Iterable[ModelResponseStreamEvent]:
        if (kept := extra.get(KEPT)) is not None:
            details = {DETAILS: kept[DETAILS]}
            yield from self._map_thinking('reasoning', kept['field'], kept['field'], provider_details=details)
        if (inline := extra.get(INLINE)) is not None:
            yield from self._map_inline(inline)

    def _map_inline(self, text: str) -> Iterable[ModelResponseStreamEvent]:
        part = ('content', 'thinking')
        if self._inline != self._reasoning_generation:
            # The parent's part begins with its tag.
            self._inline = self._reasoning_generation
            yield from self._map_thinking(*part, 'content', content='')
        yield from self._map_thinking(*part, 'content', content=text)

    def _map_thinking(self, channel: str, key: str, id_: str, **news: Any) -> Iterable[ModelResponseStreamEvent]:
        part = (channel, key, self._reasoning_generation)
        for event in self._parts_manager.handle_thinking_delta(
            vendor_part_id=part, id=id_, provider_name=self.provider_name, **news
        ):
            if isinstance(event, PartStartEvent):
                self._advance_part_boundary('reasoning')
            yield event

    @override
    def _map_tool_call_delta(self, choice: Any) -> Iterable[ModelResponseStreamEvent]:
        calls = choice.delta.tool_calls or ()
        for call in calls:
            if call.model_extra and WHOLE in call.model_extra:
                return self._map_whole_calls(calls)
        return super()._map_tool_call_delta(choice)

    def _map_whole_calls(self, calls: Iterable[Any]) -> Iterable[ModelResponseStreamEvent]:
        for call in calls:
            yield self._parts_manager.handle_tool_call_part(
                vendor_part_id=call.index,
                tool_name=call.function.name,
                args=call.model_extra[WHOLE],
                tool_call_id=call.id,
            )

    @override
    def _map_finish_reason(self, key: Any) -> FinishReason | None:
        return super()._map_finish_reason(key) or FINISH_REASONS.get(key)

    @override
    def get(self) -> ModelResponse:
        return with_repairs(super().get(), getattr(self._response.source, 'all_repairs', ()))


@cache
def _in_front(ours: type[_Streamed], parent: type[Any]) -> type[_Streamed]:
    """`ours` in front of the class that an upstream model streams with."""
    return type(f'OpenAICompatible{parent.__name__}', (ours, parent), {'__module__': __name__})


class OpenAICompatibleResponsesModel(_Compatible, OpenAIResponsesModel):
    """`OpenAIResponsesModel` for every server that offers `/responses`.

    Takes the same arguments as `OpenAICompatibleModel`, sends list tool returns as `input_text` parts, and the turns of
    the model in the form that every server reads.
    """

    _path = '/responses'

    @override
    async def _responses_create(  # the parent's overloads, as one
        self, messages: list[ModelMessage], stream: bool, model_settings: Any, model_request_parameters: Any
    ) -> Any:
        create = super()._responses_create
        return await self._repaired(create, messages, stream, model_settings, model_request_parameters, responses=True)

    @property
    def _is_portable(self) -> bool:
        ours = 'openai' if _urls.is_openai(self._endpoint.url) else 'portable'
        return self.profile.get('compat_item_style', ours) == 'portable'

    @override
    def _map_tool_definition(self, *args: Any, **options: Any) -> Any:
        tool = super()._map_tool_definition(*args, **options)
        # llama.cpp answers a null with status 500.
        return {key: value for key, value in tool.items() if value is not None} if self._is_portable else tool

    @override
    async def _map_messages(self, messages: list[ModelMessage], *args: Any, **options: Any) -> Any:
        if not self._is_portable:
            return await super()._map_messages(messages, *args, **options)
        encrypted = bool(self.profile.get('openai_supports_encrypted_reasoning_content'))
        from oaicompat._open_reasoning import told_openly
        from oaicompat._portable import portable

        messages = told_openly(messages, self.system, encrypted=encrypted)
        instructions, items = await super()._map_messages(messages, *args, **options)
        return instructions, portable(items, encrypted=encrypted)

    @override
    def _process_response(self, response: Any, *args: Any, **options: Any) -> ModelResponse:
        repairs = self._recognised(response)
        with errors_explained(self._endpoint, repairing=self._repairing):
            return with_repairs(super()._process_response(response, *args, **options), repairs)

    @override
    async def _process_streamed_response(self, response: Any, *args: Any, **options: Any) -> Any:
        with errors_explained(self._endpoint, repairing=self._repairing, headers=headers_of(response)):
            streamed = await super()._process_streamed_response(response, *args, **options)
        streamed.__class__ = _in_front(_ExplainedResponse, type(streamed))
        told = cast(_ExplainedResponse, streamed)
        told._endpoint, told._repairing = self._endpoint, self._repairing
        if isinstance(response, RepairedStream):
            self._endpoint.recognise(server=response.response.headers.get('server'))
            response.on_end.append(lambda: name_repairs(streamed, response.all_repairs))
        return streamed

    @override
    async def _map_tool_return_output(self, part: ToolReturnPart) -> Any:
        form = self.profile.get('compat_tool_return', 'auto')
        part = settled_part(part, files_in_lists=form != 'string')
        texts = result_texts(part) if form != 'string' else None
        if texts is None:
            return await super()._map_tool_return_output(part)
        return '\n'.join(texts) if form == 'joined' else [{'type': 'input_text', 'text': text} for text in texts]
