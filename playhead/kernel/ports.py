"""The three doors between a strategy and the world. Each records what is asked before it asks, and what comes back."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import anyio

from playhead.errors import (
    ModelError,
    ModelRequestError,
    PlayheadError,
    RunEndedError,
    ToolCallError,
    UsageError,
    nearest,
)
from playhead.kernel.describe import describe, is_failure
from playhead.kernel.state import PlannedCall, Thread
from playhead.kernel.tool_context import ToolContext
from playhead.kernel.tools import Outcome
from playhead.trace.events import (
    ApprovalDecided,
    ApprovalRequested,
    ErrorInfo,
    FactRecorded,
    LlmFailed,
    LlmRequested,
    LlmResponded,
    LlmRetried,
    ToolCallCompleted,
    ToolCallStarted,
)
from playhead.trace.types import Request, ToolCall, ToolSpec
from playhead.trace.values import JsonValue, from_json, scrub, to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from playhead.kernel.session import Session
    from playhead.trace.types import Completion

TEXT_CALL: Final = "text_"
"""How the ids begin that the kernel gives to calls which stand in text; no other call gets such a one."""


MAX_RETRY_DELAY_S: Final = 60.0


class ModelPort:
    """Asks the model. A failure that may pass is tried again here, so that each attempt is an event."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._next_request = 0
        self._call_ids: set[str] = set()

    async def complete(
        self,
        thread: Thread,
        tools: tuple[ToolSpec, ...] = (),
        *,
        parameters: dict[str, JsonValue] | None = None,
        purpose: str = "think",
    ) -> LlmResponded:
        """Return the model's answer to the thread, as it is recorded.

        Raises:
            ModelError: it did not answer, and trying again did not or would not help.
            RunEndedError: the run has ended.
        """
        session, header = self._session, self._session.header
        merged = {**header.parameters, **to_json(parameters or {})}
        number, self._next_request = self._next_request, self._next_request + 1
        request = Request(header.model, thread.messages, tools, merged, number)
        asked = LlmRequested(
            request=number,
            model=header.model,
            messages=thread.ranges,
            tools=session.tool_ranges(tools),
            parameters=merged,
            purpose=purpose,
        )
        for attempt in range(header.max_retries + 1):
            session.require_running()
            session.emit(asked if attempt == 0 else asked.model_copy(update={"attempt": attempt}))
            try:
                return await self._attempt(request, number, attempt)
            except ModelError as error:
                if not error.retryable or attempt == header.max_retries:
                    raise
            await self._wait(number, attempt)
        raise AssertionError("unreachable")  # the last attempt returns or raises

    async def ask(self, prompt: str, /, **parameters: JsonValue) -> LlmResponded:
        """Return the model's answer to one prompt, outside any thread; raises like `complete`."""
        message = self._session.add_message("user", scrub(prompt))
        return await self.complete(Thread().add(message), parameters=parameters, purpose="tool")

    async def _attempt(self, request: Request, number: int, attempt: int) -> LlmResponded:
        clock = self._session.run.recorder.clock
        started = clock.now_us()
        try:
            # A copy for each attempt: what is recorded is what is handed over, whatever an adapter does to it.
            given = replace(request, parameters=deepcopy(request.parameters), attempt=attempt)
            completion = await self._session.adapter.complete(given)
            response = self._as_recorded(completion, number, attempt, (clock.now_us() - started) / 1000)
        except BaseException as error:
            failure = _as_model_error(error)
            self._session.emit(
                LlmFailed(
                    request=number,
                    attempt=attempt,
                    error=_error_info(failure),
                    retryable=getattr(failure, "retryable", False),
                    cancelled=None if isinstance(failure, Exception) else True,
                    latency_ms=(clock.now_us() - started) / 1000,
                )
            )
            if failure is error:
                raise
            raise failure from error
        self._session.emit(response)
        self._session.bill(response.usage, response.cost_usd)
        return response

    async def _wait(self, number: int, attempt: int) -> None:
        delay_s = min(self._session.header.retry_delay_s * 2 ** min(attempt, 16), MAX_RETRY_DELAY_S)
        self._session.emit(LlmRetried(request=number, attempt=attempt + 1, delay_s=delay_s))
        await self._session.facts.sleep(delay_s)

    def _as_recorded(self, completion: Completion, number: int, attempt: int, latency_ms: float) -> LlmResponded:
        """Return the answer as it can be recorded and sent back: what runs is what is written."""
        calls = enumerate(completion.tool_calls)
        return LlmResponded(
            request=number,
            attempt=attempt,
            text=scrub(completion.text),
            thinking=None if completion.thinking is None else scrub(completion.thinking),
            tool_calls=tuple(self._normalised_call(call, number, position) for position, call in calls),
            finish_reason=completion.finish_reason,
            usage=completion.usage,
            cost_usd=completion.cost_usd,
            latency_ms=latency_ms,
            model=completion.model,
        )

    def _normalised_call(self, call: ToolCall, number: int, position: int) -> ToolCall:
        # Some servers give no ids, or the same one every time; results are told apart by them.
        call_id = scrub(call.id)
        if not call_id or call_id in self._call_ids or call_id.startswith(TEXT_CALL):
            call_id = f"call_{number}_{position}"
        while call_id in self._call_ids:
            call_id += "_"
        self._call_ids.add(call_id)
        return ToolCall(
            id=call_id,
            name=scrub(call.name),
            arguments=None if call.arguments is None else _as_json(call.arguments),
            raw_arguments=None if call.raw_arguments is None else scrub(call.raw_arguments),
        )


def _error_info(error: BaseException) -> ErrorInfo:
    if isinstance(error, Exception):
        return ErrorInfo(type=type(error).__name__, message=describe(error))
    return ErrorInfo(type="Cancelled", message="the run was cancelled while the model was asked")


def _as_json(arguments: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Return arguments as strict JSON; those that a replay serves are that already, tags included."""
    tagged: dict[str, JsonValue] = to_json(arguments)
    if tagged == arguments or to_json(from_json(arguments)) == arguments:
        return arguments
    return tagged


def _as_model_error(error: BaseException) -> BaseException:
    """Return our own errors and what is no failure as they are, anything else as the adapter's failure."""
    if isinstance(error, (PlayheadError, SystemExit)) or not is_failure(error):
        return error
    return ModelRequestError(f"the model adapter raised {type(error).__name__}: {describe(error)}")


class ToolPort:
    """Runs tool calls: one `tool-call-started` and exactly one `tool-call-completed` each, whatever happens."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._tools = session.toolset
        self._ids: set[str] = set()

    async def call_all(self, calls: Sequence[PlannedCall]) -> list[ToolCallCompleted]:
        """Run the calls of a turn and return how they ended, in the order they were asked for.

        Read-only tools that stand next to each other run at once, at most `max_parallel`; all others run alone.
        """
        completed: list[ToolCallCompleted] = []
        for batch in self._batches(calls):
            if completed and self._session.ended:
                break  # what has run still joins the thread
            completed += [await self.run(batch[0])] if len(batch) == 1 else await self._run_together(batch)
        return completed

    async def call(self, name: str, /, **arguments: Any) -> JsonValue:  # noqa: ANN401 - the tool's own
        """Call a tool from another tool's body and return its result.

        Raises:
            ToolCallError: it failed.
            RunEndedError: the run has ended.
        """
        position = self._session.take_position()
        call = ToolCall(id=f"call_{position}", name=name, arguments=to_json(arguments))
        completed = await self.run(PlannedCall(call=call, position=position, source="tool"))
        if not completed.ok:
            raise ToolCallError(f"{name}: {completed.error.message if completed.error else 'failed'}")
        return from_json(completed.result)

    async def run(self, planned: PlannedCall) -> ToolCallCompleted:
        """Check, approve and run one call. Nothing changes its arguments after they are hashed."""
        session, call = self._session, planned.call
        session.require_running()
        recorder = session.run.recorder
        arguments = call.arguments if call.arguments is not None else call.raw_arguments
        args_hash = recorder.hash_of(arguments)
        started = ToolCallStarted(
            call_id=call.id,
            tool=call.name,
            position=planned.position,
            args=arguments,
            args_hash=args_hash,
            rationale=planned.rationale,
            source=planned.source,
            request=planned.request,
        )
        self._take_id(call.id)
        started_us = recorder.clock.now_us()
        outcome = Outcome(
            ok=False,
            error=ErrorInfo(type="Cancelled", message="the run ended before the call returned"),
            ended="cancelled",
        )
        try:
            session.emit(started)
            started_us = recorder.clock.now_us()
            outcome = await self._outcome(planned, args_hash, started_us)
        finally:
            completed = ToolCallCompleted(
                call_id=call.id,
                tool=call.name,
                position=planned.position,
                ok=outcome.ok,
                result=outcome.result,
                error=outcome.error,
                duration_ms=(recorder.clock.now_us() - started_us) / 1000,
                cached=outcome.cached,
                ended=outcome.ended,
                abandoned=outcome.abandoned or call.id in session.abandoned,
                rung=outcome.rung,
            )
            session.emit(completed)
        return completed

    async def _outcome(self, planned: PlannedCall, args_hash: str, started_us: int) -> Outcome:
        call, tool = planned.call, self._tools.get(planned.call.name)
        if tool is None:
            return Outcome.failure("UnknownTool", f"there is no tool {call.name!r}.{nearest(call.name, self._tools)}")
        if call.arguments is None:
            return Outcome.failure("InvalidArguments", f"the arguments of {call.name} are no JSON object")
        context = ToolContext(
            session=self._session,
            call_id=call.id,
            tool=call.name,
            iteration=self._session.iteration,
            position=planned.position,
            args_hash=args_hash,
            started_us=started_us,
            timeout_s=tool.spec.timeout_s,
        )
        problem = tool.check(call.arguments, context)
        if isinstance(problem, Outcome):
            return problem
        if problem is not None:
            return Outcome(ok=False, error=problem, ended="refused")
        if tool.spec.requires_approval:
            refusal = await self._refusal(tool.spec, planned, args_hash)
            if refusal is not None:
                return refusal
        self._session.require_running()
        outcome = await tool.run(call.arguments, context)
        if not isinstance(outcome, Outcome):
            return Outcome.failure("NoOutcome", f"{call.name} returned {type(outcome).__name__} instead of an Outcome")
        return outcome

    def _take_id(self, call_id: str) -> None:
        """Make sure that one id means one call: results are told apart by it."""
        if call_id in self._ids:
            raise UsageError(f"the call id {call_id!r} of {self._session.owner} has been used already")
        self._ids.add(call_id)

    async def _refusal(self, spec: ToolSpec, planned: PlannedCall, args_hash: str) -> Outcome | None:
        from playhead.kernel.approval import decide  # noqa: PLC0415 - only for tools that need it

        session, call_id = self._session, planned.call.id
        session.emit(ApprovalRequested(call_id=call_id, tool=spec.name, args_hash=args_hash))
        answer = await session.facts.ask("approval", lambda: decide(session, spec, planned), key=call_id)
        decided = ApprovalDecided(call_id=call_id, **answer)
        session.emit(decided)
        if decided.approved:
            return None
        return Outcome.failure("ApprovalDenied", f"{spec.name} was not approved: {decided.why or 'no reason given'}")

    def _batches(self, calls: Sequence[PlannedCall]) -> list[list[PlannedCall]]:
        batches: list[list[PlannedCall]] = []
        joinable = False
        for planned in calls:
            tool = self._tools.get(planned.call.name)
            beside = tool is not None and tool.spec.read_only
            if beside and joinable:
                batches[-1].append(planned)
            else:
                batches.append([planned])
            joinable = beside
        return batches

    async def _run_together(self, batch: list[PlannedCall]) -> list[ToolCallCompleted]:
        results: list[ToolCallCompleted | None] = [None] * len(batch)
        errors: list[PlayheadError] = []
        limit = anyio.Semaphore(self._session.header.max_parallel)

        async def run_one(place: int, planned: PlannedCall) -> None:
            async with limit:
                try:
                    results[place] = await self.run(planned)
                except PlayheadError as error:  # one call's error must not cancel the others in mid-flight
                    errors.append(error)

        async with anyio.create_task_group() as group:
            for place, planned in enumerate(batch):
                group.start_soon(run_one, place, planned)
        fatal = [error for error in errors if not isinstance(error, RunEndedError)]
        if fatal or (errors and not any(results)):
            raise (fatal or errors)[0]
        return [result for result in results if result is not None]


class FactPort:
    """Asks for whatever steers the run and is neither model nor tool; replays serve the recorded answer."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._world = session.run.world

    async def ask(self, name: str, answer: Callable[[], Any], key: str = "") -> Any:  # noqa: ANN401 - any JSON value
        """Return the answer of `answer()`, sync or async, and record it under `name`.

        `key` tells apart questions of one name that are open at the same time.
        """
        self._session.require_running()
        value = await self._world.fact(self._session.owner, name, key, answer)
        self._session.emit(FactRecorded(name=name, key=key, value=value))
        return value

    async def sleep(self, seconds: float) -> None:
        """Let time pass; in a replay it has passed already."""
        await self._world.sleep(seconds)
