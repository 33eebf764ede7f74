"""The model port: records each request before it is sent, and its answer."""

from __future__ import annotations

from asyncio import CancelledError
from contextlib import aclosing
from copy import deepcopy
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from playhead.errors import (
    ModelError,
    ModelRequestError,
    ModelUnavailableError,
    PlayheadError,
    RateLimitError,
    ReplayError,
    UsageError,
)
from playhead.kernel.checks import checked_parameters
from playhead.kernel.describe import describe, described, is_failure, redact_error, stack_of
from playhead.kernel.guards import admit, in_time, tell, withdraw
from playhead.kernel.hooks import SUPPRESS, Suppressed
from playhead.kernel.models.base import StreamsText, believed
from playhead.kernel.state import Thread
from playhead.trace.base import made
from playhead.trace.events import ErrorInfo, LlmFailed, LlmRequested, LlmResponded, LlmRetried, ProviderFallback
from playhead.trace.types import Completion, Request, ToolCall, ToolSpec, Usage, dollars
from playhead.trace.values import JsonValue, from_json, is_plain, scrub, to_json

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from playhead.kernel.models.base import Model
    from playhead.kernel.prompts import ToolsInText
    from playhead.kernel.session import Session
    from playhead.trace.types import FallbackInfo, Prices, Range

_CANCELLED: Final = ErrorInfo(type="Cancelled", message="the run was cancelled while the model was asked")
MAX_RETRY_DELAY_S: Final = 60.0
"""The longest pause between two attempts, in seconds."""
Spent = tuple[Usage | None, float | None]
"""The usage of an attempt and its cost in US dollars; None if unknown."""
TEXT_CALL: Final = "text_"
"""The prefix of the ids of calls read from text; no other call gets it."""


class RecordingModelPort:
    """Asks the model. Retries happen here, so that each attempt is an event."""

    def __init__(self, session: Session, adapter: Model, fallbacks: list[tuple[FallbackInfo, Model]]) -> None:
        self._session = session
        self.adapter = adapter
        """The current model."""
        self.fallbacks = fallbacks
        """The remaining fallback models, in order."""
        self._sent = session.header.request_parameters
        self._next_request = 0
        self._call_ids: set[str] = set()

    def answer_with(self, adapter: Model, fallbacks: list[tuple[FallbackInfo, Model]]) -> None:
        """Replace the model and its fallbacks."""
        self.adapter, self.fallbacks = adapter, fallbacks

    @property
    def requests(self) -> int:
        """The number of requests so far."""
        return self._next_request

    async def complete(
        self,
        thread: Thread,
        tools: tuple[ToolSpec, ...] = (),
        *,
        parameters: dict[str, JsonValue] | None = None,
        purpose: str | None = None,
    ) -> LlmResponded:
        """Return the model's answer to the thread, as recorded. The default purpose is that of the pass, or `think`.

        Raises:
            ModelError: it did not answer, and trying again did not or would not help.
            RunEndedError: the run has ended.
        """
        session, header, hooks = self._session, self._session.header, self._session.gate.hooks
        sent = {**self._sent, **checked_parameters(parameters)} if parameters else self._sent.copy()
        number, self._next_request = self._next_request, self._next_request + 1
        if hooks is not None:
            tools = await self._offered_tools(tools, number)
        in_text: tuple[Range, ...] = ()
        if header.tool_format == "text" and tools:
            in_text = session.messages.tool_ranges(tools)
            thread, tools = self._tools_in_text.thread(thread, tools, in_text), ()
        request = Request(header.model, thread.messages, tools, sent, number, 0, header.record_parameters)
        if hooks is not None:
            request, thread = await self._offered(request, thread)
        recorded = header.parameters
        if parameters or hooks is not None:
            session.run.recorder.redactor.add_parameters(request.parameters, header.record_parameters)
            recorded = request.recorded_parameters
        event = self._requested(request, thread, purpose, parameters=recorded, tools_in_text=in_text)
        if hooks is None:
            return await self._attempts(request, event)
        try:
            return await self._passed(await self._attempts(request, event))
        except ModelError as error:
            await session.fail("llm-failure", describe(error), attempt=header.max_retries + 1 if error.retryable else 1)
            raise

    def _requested(self, request: Request, thread: Thread, purpose: str | None, **fields: Any) -> LlmRequested:  # noqa: ANN401
        """Return the event of a request; `fields` are further fields of it."""
        inner = self._session.at.inner
        return made(
            LlmRequested,
            request=request.number,
            model=request.model,
            messages=thread.ranges,
            tools=self._session.messages.tool_ranges(request.tools),
            purpose=purpose or ("think" if inner is None else inner.purpose),
            step=None if inner is None else inner.step,
            **fields,
        )

    async def _attempts(self, request: Request, requested: LlmRequested) -> LlmResponded:
        """Ask the model, with retries, then each fallback, until one answers."""
        attempt = failures = 0
        while True:
            try:
                return await self._attempt(request, requested, attempt)
            except ModelError as failed:
                error, attempt, failures = failed, attempt + 1, failures + 1
            if error.retryable and failures < self._tries():
                await self._wait(requested.request, attempt, error.retry_after_s)
            elif self._fall_back(error, attempt):
                failures, model = 0, self._session.header.model
                request, requested = replace(request, model=model), requested.model_copy(update={"model": model})
            else:
                raise error

    @cached_property
    def _tools_in_text(self) -> ToolsInText:
        from playhead.kernel.prompts import ToolsInText  # noqa: PLC0415 - few agents call in text

        return ToolsInText(self._session.messages)

    async def _offered_tools(self, tools: tuple[ToolSpec, ...], number: int) -> tuple[ToolSpec, ...]:
        """Return the tools of a request as the hooks changed them."""
        self._session.require_running()
        offered = await self._session.offer("prompt.tools", tools, key=str(number)) if tools else ()
        return () if offered is SUPPRESS else offered

    async def _offered(self, request: Request, thread: Thread) -> tuple[Request, Thread]:
        """Return the request as the hooks changed it, with the thread that it sends."""
        session = self._session
        offered = await session.offer("llm.request", request, key=str(request.number))
        if offered is SUPPRESS:
            session.terminate("hook_stop", source="hook:llm.request", because="a hook removed the request to the model")
            session.require_running()
        thread = session.messages.sent(thread, offered)
        if thread.messages is not offered.messages:  # messages from hooks have ids now
            offered = replace(offered, messages=thread.messages)
        return offered, thread

    async def _passed(self, response: LlmResponded) -> LlmResponded:
        """Return the answer as the hooks changed it, after the recording of the original."""
        passed: LlmResponded | Suppressed = await self._session.offer(
            "llm.response", response, key=str(response.request)
        )
        if passed is response:
            return response
        self._session.gate.rewritten.add(response.request)
        if isinstance(passed, Suppressed):
            return response.model_copy(update={"text": "", "thinking": None, "tool_calls": ()})
        own = {call.id for call in response.tool_calls}
        calls = []
        for position, call in enumerate(passed.tool_calls):
            calls.append(call if call.id in own else self._normalised_call(call, response.request, position))
            own.discard(call.id)  # a call that a hook put there twice is two calls
        return passed.model_copy(update={"tool_calls": tuple(calls)})

    async def ask(self, prompt: str, /, **parameters: JsonValue) -> LlmResponded:
        """Return the model's answer to one prompt, outside any thread; raises like `complete`."""
        message = self._session.messages.add("user", scrub(prompt))
        return await self.complete(Thread().add(message), parameters=parameters, purpose="tool")

    async def _admitted(self, request: Request, requested: LlmRequested) -> tuple[Request, LlmRequested]:
        """Return an attempt as the killswitches admit it, and its event."""
        self._session.require_running()
        sent = await admit(self._session, request) if self._session.gate.guards else request
        update: dict[str, Any] = {"attempt": sent.attempt} if sent.attempt else {}
        if sent.parameters is not request.parameters:
            update["parameters"] = sent.recorded_parameters
        return sent, requested.model_copy(update=update) if update else requested

    async def _attempt(self, request: Request, requested: LlmRequested, attempt: int) -> LlmResponded:
        """Send the request once; record it before it is sent, and its end, even if it fails or is cancelled."""
        session, clock = self._session, self._session.run.recorder.clock
        if attempt or session.gate.guards:
            request, requested = await self._admitted(replace(request, attempt=attempt), requested)
        number, name = requested.request, f"{requested.request}.{attempt}"
        heard: list[int] = []
        completion: Completion | None = None
        started = clock.now_us()

        def left() -> None:
            event = self._failed(requested, CancelledError(), started, _spent(None, completion, session.header.prices))
            session.emit_left(event)
            tell(session, event, "response", request=number, attempt=attempt)

        self._begin(request, requested, name, left)
        started = clock.now_us()
        event: LlmResponded | LlmFailed
        try:
            with session.run.current("request", session.owner, name):
                completion = await self._answer(request, requested, heard)
            if session.gate.guards:
                await in_time(session)
            event = response = self.as_recorded(completion, number, attempt, [started, *heard, clock.now_us()])
        except BaseException as error:
            failure = within_limits(_as_model_error(error))
            redact_error(failure, session.run.recorder.redactor, of_provider=True)
            is_free = not heard and _is_refusal(error)
            spent = (Usage(), 0.0) if is_free else _spent(failure, completion, session.header.prices)
            event = self._failed(requested, failure, started, spent, stack_of(error))
            if failure is error:
                raise
            raise failure from error
        finally:
            if session.emit_end("request", name, (event, session.at.iteration)) and session.gate.guards:
                tell(session, event, "response", request=number, attempt=attempt)
        return response

    def _begin(self, request: Request, requested: LlmRequested, name: str, left: Callable[[], None]) -> None:
        """Record the start of an attempt; if that fails, the request is not sent."""
        session = self._session
        try:
            session.emit_start((requested, session.at.iteration), "request", name, left)
        except BaseException:
            with session.run.in_flight.lock:
                session.run.in_flight.open.pop((session.owner, "request", name), None)
            withdraw(session, request)
            raise

    def _failed(
        self, requested: LlmRequested, failure: BaseException, started_us: int, spent: Spent, stack: str | None = None
    ) -> LlmFailed:
        """Return the event of an attempt that failed or was cancelled."""
        recorder, is_error = self._session.run.recorder, isinstance(failure, Exception)
        return LlmFailed(
            request=requested.request,
            attempt=requested.attempt,
            error=ErrorInfo(type=type(failure).__name__, message=describe(failure)) if is_error else _CANCELLED,
            retryable=getattr(failure, "retryable", False),
            cancelled=None if is_error else True,
            latency_ms=(recorder.clock.now_us() - started_us) / 1000,
            retry_after_s=getattr(failure, "retry_after_s", None),
            usage=spent[0],
            cost_usd=spent[1],
            stack=recorder.redactor.redact_error(stack) if is_error and stack else None,
        )

    def _answer(self, request: Request, requested: LlmRequested, heard: list[int]) -> Awaitable[Completion]:
        """Ask the adapter, for a stream if the run has a listener; `heard` gets the time of the first piece."""
        if requested.attempt or requested.parameters:  # the adapter gets a copy of what is recorded
            request = replace(request, parameters=deepcopy(request.parameters) if requested.parameters else {})
        listener = self._session.run.listener
        show = None if listener is None else listener(self._session, requested)
        if show is None:
            return self.adapter.complete(request)

        def hear(text: str) -> None:
            heard[:] = heard or [self._session.run.recorder.clock.now_us()]
            show(text)

        return streamed(self.adapter, request, hear)

    async def _wait(self, number: int, attempt: int, retry_after_s: float | None) -> None:
        delay_s = min(self._session.header.retry_delay_s * 2 ** min(attempt - 1, 16), MAX_RETRY_DELAY_S)
        delay_s = max(delay_s, retry_after_s or 0.0)
        self._session.emit(LlmRetried(request=number, attempt=attempt, delay_s=delay_s))
        await self._session.facts.sleep(delay_s)

    def _tries(self) -> int:
        """Return the number of attempts with the current model."""
        header = self._session.header
        every = header.max_retries + 1
        return every if header.fallback_after is None or not self.fallbacks else min(every, header.fallback_after)

    def _fall_back(self, error: ModelError, failures: int) -> bool:
        """Switch to the next fallback for the rest of the run, with its own prices; return False if there is none."""
        if not self.fallbacks:
            return False
        session, before = self._session, self._session.header.model
        info, self.adapter = self.fallbacks.pop(0)
        session.emit(ProviderFallback(from_model=before, to_model=info.model, reason=describe(error), attempt=failures))
        session.declare(model=info.model, address=info.address, prices=info.prices)
        return True

    def as_recorded(self, completion: Completion, number: int, attempt: int, at_us: list[int]) -> LlmResponded:
        """Return the answer in a form that can be recorded; the run uses the same form.

        Args:
            completion: the adapter's answer.
            number: the request.
            attempt: its attempt.
            at_us: when it was sent, when the first piece of a stream came, if one came, and when the answer was whole.
        """
        calls = enumerate(completion.tool_calls)
        usage, cost_usd = believed(completion.usage, completion.cost_usd)
        return made(
            LlmResponded,
            request=number,
            attempt=attempt,
            text=_text(completion.text) or "",
            thinking=_text(completion.thinking),
            tool_calls=tuple([self._normalised_call(call, number, position) for position, call in calls]),
            finish_reason=_text(completion.finish_reason),
            usage=usage.of_answer(),
            cost_usd=cost_usd,
            latency_ms=(at_us[-1] - at_us[0]) / 1000,
            first_token_ms=(at_us[1] - at_us[0]) / 1000 if len(at_us) > 2 else None,  # noqa: PLR2004 - see above
            model=_text(completion.model),
        )

    def _normalised_call(self, call: ToolCall, number: int, position: int) -> ToolCall:
        # Some servers give no ids, or always the same one, but results are matched by id.
        call_id = scrub(call.id)
        if not call_id or call_id in self._call_ids or call_id.startswith(TEXT_CALL):
            call_id = f"call_{number}_{position}"
        while call_id in self._call_ids:
            call_id += "_"
        self._call_ids.add(call_id)
        return made(
            ToolCall,
            id=call_id,
            name=_text(call.name),
            arguments=None if call.arguments is None else {**_as_json(call.arguments)},
            raw_arguments=_text(call.raw_arguments),
        )


def _text(given: object) -> str | None:
    """Return a text of an adapter's answer in a form that can be recorded."""
    if given is None:
        return None
    if not isinstance(given, str):
        raise TypeError(f"it answered with {type(given).__name__} instead of text")
    return given if given.isascii() else scrub(given)


def _is_refusal(error: BaseException) -> bool:
    """Return whether the failure cost nothing: the provider refused the request, or it was not sent."""
    if hasattr(error, "usage"):  # set by an adapter, or by a recording
        return False
    return isinstance(error, (RateLimitError, ModelRequestError, UsageError, ReplayError))


def _spent(failure: BaseException | None, answer: Completion | None, prices: Prices | None) -> Spent:
    """Return what a failed attempt has spent, by an answer that came too late or by its error."""
    source = failure if answer is None else answer
    free = prices is not None and not (prices.input_usd or prices.output_usd)
    usage, cost_usd = getattr(source, "usage", None), getattr(source, "cost_usd", 0.0 if free else None)
    return (None, dollars(cost_usd)) if usage is None else believed(usage, cost_usd)


def _as_json(arguments: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Return arguments as strict JSON; a replay's arguments are already, tags included."""
    if is_plain(arguments):
        return arguments
    whole: dict[str, JsonValue] = _without_surrogates(arguments)
    tagged: dict[str, JsonValue] = to_json(whole)
    return whole if to_json(from_json(whole)) == whole else tagged


def _without_surrogates(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Return a value without lone surrogates, which JSON can escape and UTF-8 cannot hold."""
    if isinstance(value, dict):
        return {_without_surrogates(name): _without_surrogates(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    return scrub(value) if isinstance(value, str) else value


def _as_model_error(error: BaseException) -> BaseException:
    """Return an adapter's exception as a `ModelRequestError`; our own errors and cancellations stay as they are."""
    if isinstance(error, (PlayheadError, SystemExit)) or not is_failure(error):
        return error
    return ModelRequestError(f"the model adapter raised {described(error)}")


def within_limits(error: BaseException) -> BaseException:
    """Return the failure, not retryable if its provider asks for a longer pause than the maximum."""
    pause_s = getattr(error, "retry_after_s", None)
    if not isinstance(error, ModelError) or not error.retryable or (pause_s or 0) <= MAX_RETRY_DELAY_S:
        return error
    why = f"It asks for a pause of {pause_s:g} s, longer than the {MAX_RETRY_DELAY_S:g} s that are waited at most"
    error.args = (f"{describe(error)}. {why}: not asked again",)
    vars(error)["retryable"] = False  # of this instance, not of its class
    return error


async def streamed(model: Model, request: Request, hear: Callable[[str], object]) -> Completion:
    """Return the model's answer, and pass its pieces to `hear` if the model can stream.

    Raises:
        ModelError: as `complete`; pieces that were heard before are part of no answer then.
    """
    if not isinstance(model, StreamsText):
        return await model.complete(request)
    async with aclosing(model.stream(request)) as pieces:
        async for piece in pieces:
            if isinstance(piece, Completion):
                return piece
            if piece.text:
                hear(scrub(piece.text))
    raise ModelUnavailableError(f"the stream of {request.model} ended before the answer did")
