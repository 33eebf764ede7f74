"""The tool port: each call has one start and exactly one end, whatever happens."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

import anyio

from playhead.errors import PlayheadError, RunEndedError, ToolCallError, UsageError, nearest
from playhead.kernel.guards import asking, before_call, fire, in_time, stopped, tell
from playhead.kernel.hooks import SUPPRESS, Refuse
from playhead.kernel.messages import call_details
from playhead.kernel.outcome import Outcome
from playhead.kernel.repair.repair import Repairer
from playhead.kernel.session import ToolContext
from playhead.kernel.state import PlannedCall
from playhead.trace.base import made
from playhead.trace.events import ApprovalDecided, ApprovalRequested, ErrorInfo, ToolCallCompleted, ToolCallStarted
from playhead.trace.types import ToolCall, ToolSpec
from playhead.trace.values import JsonValue, from_json, json_hash, to_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from playhead.kernel.session import Guard, Session


_CUT_OFF: Final = replace(Outcome.failure("Cancelled", "the run ended before the call returned"), ended="cancelled")


def _arguments(call: ToolCall) -> JsonValue:
    """Return the arguments of a call; the model's text for them if they are not a JSON object."""
    return call.raw_arguments if call.arguments is None else call.arguments


class RecordingToolPort:
    """Runs tool calls: one `tool-call-started` and exactly one `tool-call-completed` each, whatever happens."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._tools = session.toolset
        self._ids: set[str] = set()
        self.ended: dict[str, ToolCallCompleted] = {}
        """Results of this turn's calls so far, for a turn that is cut short."""
        self.refused: set[str] = set()
        """Calls that were refused: their body did not run."""
        self.changed: dict[str, PlannedCall] = {}
        """Calls that a hook or a repair changed, in their final form."""
        self._repairer = Repairer(session) if session.header.repair else None

    async def call_all(self, calls: Sequence[PlannedCall]) -> list[ToolCallCompleted]:
        """Run the calls of a turn and return their results, in the order of the calls.

        Adjacent calls of read-only tools run in parallel, at most `max_parallel`; all others run alone.
        """
        completed: list[ToolCallCompleted] = []
        self.ended.clear()
        for batch in self._batches(calls):
            if completed and self._session.ended:
                break  # what has run still joins the thread
            completed += [await self.run(batch[0])] if len(batch) == 1 else await self._run_together(batch)
        return completed

    def _batches(self, calls: Sequence[PlannedCall]) -> Iterable[list[PlannedCall]]:
        if len(calls) == 1:
            return [[*calls]]
        found: list[list[PlannedCall]] = []
        for beside, group in groupby(calls, self._runs_beside):
            batch = [*group]
            found += [batch] if beside else [[planned] for planned in batch]
        return found

    async def call(self, name: str, /, **arguments: Any) -> JsonValue:  # noqa: ANN401 - the tool's own
        """Call a tool from another tool's body and return its result.

        Raises:
            ToolCallError: it failed.
            RunEndedError: the run has ended.
        """
        position = self._session.at.take_position()
        call = ToolCall(id=f"call_{position}", name=name, arguments=to_json(arguments))
        completed = await self.run(PlannedCall(call=call, position=position, source="tool"))
        if not completed.ok:
            raise ToolCallError(f"{name}: {completed.error.message if completed.error else 'failed'}")
        return from_json(completed.result)

    async def run(self, planned: PlannedCall) -> ToolCallCompleted:
        """Check, approve and run one call, and return its result as the hooks changed it.

        Hooks see the call before its arguments are hashed; nothing changes them after that.
        """
        self._session.require_running()
        planned = self._repaired(planned)
        if self._session.gate.hooks is None:
            return await self._recorded(planned, None)
        return await self._passed(await self._recorded(*await self._offered(planned)))

    def meant(self, name: str) -> str:
        """Return the name of the tool that a misspelt name means, or the name itself."""
        return name if self._repairer is None else self._repairer.meant(name)

    def _repaired(self, planned: PlannedCall) -> PlannedCall:
        """Return the call, repaired if the model broke it; calls from tools are not repaired."""
        if self._repairer is None or planned.source == "tool":
            return planned
        repaired = self._repairer.repair(planned)
        if repaired is not planned:
            self.changed[planned.call.id] = repaired
        return repaired

    async def _offered(self, planned: PlannedCall) -> tuple[PlannedCall, Outcome | None]:
        """Return the call as the hooks changed it, and its outcome if they refuse it."""
        before = planned.call
        call = await self._session.offer("tool.call", before, key=before.id, tool=before.name, call_id=before.id)
        if call is SUPPRESS:
            return planned, Outcome.refusal("Suppressed", f"a hook removed the call of {before.name}")
        if isinstance(call, Refuse):
            return planned, Outcome.refusal("Refused", call.why)
        if call is not before:
            planned = self.changed[before.id] = replace(planned, call=call)
        return planned, None

    async def refuse(self, planned: PlannedCall, why: str) -> ToolCallCompleted:
        """Record a call that does not run, and return its result for the model."""
        return await self._recorded(planned, Outcome.refusal("Skipped", why))

    async def _passed(self, completed: ToolCallCompleted) -> ToolCallCompleted:
        """Return the result as the hooks changed it, after the recording of the original."""
        session, call_id = self._session, completed.call_id
        passed = await session.offer("tool.result", completed, key=call_id, **call_details(completed))
        if passed is SUPPRESS:
            error = ErrorInfo(type="Suppressed", message="a hook removed the result")
            passed = completed.model_copy(update={"ok": False, "result": None, "error": error})
        if passed is not completed:
            session.gate.rewritten.add(call_id)
            self.ended[call_id] = passed
        if passed.ok:
            session.gate.note_success()
        elif completed.ended != "cancelled":
            await session.fail("tool-error", passed.observation(), key=call_id)
        return passed  # type: ignore[no-any-return]

    async def _recorded(self, planned: PlannedCall, skipped: Outcome | None) -> ToolCallCompleted:
        """Run a call, and record its start and end; with `skipped`, end it with that outcome without a run."""
        session, call = self._session, planned.call
        if session.gate.guards:
            await before_call(session, planned)
        args_hash, fingerprint = session.run.recorder.identity_of(_arguments(call))
        raw_hash = args_hash if fingerprint is None else json_hash(_arguments(call))
        if call.id in self._ids:  # results are matched by id
            raise UsageError(f"the call id {call.id!r} of {session.owner} has been used already")
        self._ids.add(call.id)
        started = self._started(planned, args_hash, fingerprint)
        clock, outcome = session.run.recorder.clock, _CUT_OFF
        started_us = clock.now_us()

        def left() -> None:
            session.emit_left(self._completed(planned, outcome, clock.now_us() - started_us, is_left=True))

        try:
            session.emit_start((started, self._turn(planned)), "call", call.id, left)
            started_us = clock.now_us()
            reached = skipped or await self._outcome(planned, args_hash, raw_hash, started_us)
            if skipped is None and session.gate.guards:
                await in_time(session)
            outcome = reached
        finally:
            event = self.ended[call.id] = self._completed(planned, outcome, clock.now_us() - started_us)
            if event.ended == "refused":
                self.refused.add(call.id)
            if session.emit_end("call", call.id, (event, self._turn(planned))) and session.gate.guards:
                tell(session, event, "result", call_id=call.id)
        return event

    def _started(self, planned: PlannedCall, args_hash: str, fingerprint: str | None) -> ToolCallStarted:
        inner = self._session.at.inner
        return made(
            ToolCallStarted,
            call_id=planned.call.id,
            tool=planned.call.name,
            position=planned.position,
            args=_arguments(planned.call),
            args_hash=args_hash,
            args_fingerprint=fingerprint,
            rationale=planned.rationale,
            source=planned.source,
            request=planned.request,
            step=planned.step or (inner.step if inner else None),
            strand=planned.strand,
        )

    def _completed(
        self, planned: PlannedCall, outcome: Outcome, took_us: int, *, is_left: bool = False
    ) -> ToolCallCompleted:
        """Return the event of a call's end; `is_left` if the code that waits for the call was abandoned."""
        call = planned.call
        return made(
            ToolCallCompleted,
            call_id=call.id,
            tool=call.name,
            position=planned.position,
            ok=outcome.ok,
            result=outcome.result,
            error=outcome.error,
            duration_ms=took_us / 1000,
            cached=outcome.cached,
            ended=outcome.ended,
            abandoned=is_left or outcome.abandoned or call.id in self._tools.abandoned,
            rung=outcome.rung,
            stack=outcome.stack,
            understood=None if self._repairer is None else self._repairer.understood(call),
        )

    def _turn(self, planned: PlannedCall) -> int | None:
        return self._session.at.iteration if planned.strand is None else planned.turn

    async def _outcome(self, planned: PlannedCall, args_hash: str, raw_hash: str, started_us: int) -> Outcome:
        """Return the outcome of a call; `raw_hash` is the hash of its arguments before redaction."""
        session, call, tool = self._session, planned.call, self._tools.get(planned.call.name)
        if tool is None or not (planned.source in ("tool", "program") or session.offers(call.name)):
            return await self._explained(call, self._unknown(call.name))
        if call.arguments is None:
            why = f"the arguments of {call.name} are no JSON object"
            return await self._explained(call, Outcome.refusal("InvalidArguments", why))
        spec, position = tool.spec, planned.position
        turn, limit_s = self._turn(planned), spec.timeout_s
        context = ToolContext(session, call.id, call.name, turn, position, args_hash, started_us, limit_s)
        checked = self._checked(call, tool.check(call.arguments, context), spec)
        if checked is not None:
            return await self._explained(call, checked)
        if spec.requires_approval or session.gate.guards:
            refused = await self._refused(planned, spec, args_hash, raw_hash)
            if refused is not None:
                return refused
        session.require_running()
        try:
            with session.run.current("call", session.owner, call.id):
                outcome = await tool.run(call.arguments, context)
        finally:
            context.end()
        if type(outcome) is not Outcome or type(outcome.ok) is not bool:
            return Outcome.failure("NoOutcome", f"{call.name} returned {type(outcome).__name__} instead of an Outcome")
        return outcome

    def _checked(self, call: ToolCall, problem: ErrorInfo | Outcome | None, spec: ToolSpec) -> Outcome | None:
        """Return the outcome of a call that its tool or the repair refuses, or that its tool answers without a run."""
        lenient = spec.kind == "meta"  # the kernel's own tools read whatever they can write as text
        if problem is None and not lenient and self._repairer is not None and self._repairer.is_refused(call):
            return Outcome.refusal("InvalidArguments", f"the arguments do not fit {call.name}")
        return Outcome(ok=False, error=problem, ended="refused") if isinstance(problem, ErrorInfo) else problem

    async def _explained(self, call: ToolCall, outcome: Outcome) -> Outcome:
        return outcome if self._repairer is None else await self._repairer.explained(call, outcome)

    def _unknown(self, name: str) -> Outcome:
        if name in self._tools:
            return Outcome.refusal("ToolNotOffered", f"{name} is not offered for this part of the task")
        return Outcome.refusal("UnknownTool", f"there is no tool {name!r}.{nearest(name, self._tools)}")

    async def _refused(self, planned: PlannedCall, spec: ToolSpec, args_hash: str, raw_hash: str) -> Outcome | None:
        """Return the outcome of a call that a killswitch or an approver refuses, or None."""
        outcome = None if spec.kind == "meta" else stopped(self._session, planned, spec)
        guards = asking(self._session, planned, spec) if outcome is None else []
        for guard in guards:
            outcome = await self._ask_approval(guard, spec, planned, args_hash)
            if outcome is not None:
                return outcome
        if guards and json_hash(planned.call.arguments) != raw_hash:
            why = "are not those that were approved: something (a subscriber, a hook) has written into them since"
            return Outcome.refusal("ArgumentsChanged", f"the arguments of {planned.call.name} {why}")
        return outcome

    async def _ask_approval(
        self, guard: Guard | None, spec: ToolSpec, planned: PlannedCall, args_hash: str
    ) -> Outcome | None:
        """Ask for approval; return the outcome of a denied call, or None."""
        from playhead.kernel.approval import ApprovalRequest, decide  # noqa: PLC0415 - only for tools that need it

        session, call_id = self._session, planned.call.id
        switch = None if guard is None else guard.name
        approver = (None if guard is None else guard.approver) or session.gate.approver
        timeout_s = None if guard is None else guard.approval_timeout_s
        session.emit(ApprovalRequested(call_id=call_id, tool=spec.name, args_hash=args_hash, switch=switch))
        request = ApprovalRequest(
            spec.name,
            from_json(planned.call.arguments),  # a copy: what is shown can be written into, what runs cannot
            spec.risk,
            session.run.run_id,
            session.owner,
            planned.rationale,
            call_id=call_id,
            args_hash=args_hash,
            control=session.run.control,
            redact=session.run.recorder.redactor.redact,
        )
        answer = await session.facts.ask("approval", lambda: decide(request, approver, timeout_s), key=call_id)
        decided = ApprovalDecided(call_id=call_id, **{**answer, "switch": switch})
        session.emit(decided)
        if decided.approved:
            return None
        why = f"{spec.name} was not approved: {decided.why or 'no reason given'}"
        ends = None if guard is None else guard.denied(session, planned, why)
        if guard is not None and ends is not None:
            fire(guard, session, ends, "approval", call_id=call_id)
        return replace(Outcome.failure("ApprovalDenied", why), ended="denied")

    def _runs_beside(self, planned: PlannedCall) -> bool:
        """Return whether the call may run in parallel with others."""
        tool = self._tools.get(planned.call.name)
        return tool is not None and tool.spec.read_only

    async def _run_together(self, batch: list[PlannedCall]) -> list[ToolCallCompleted]:
        """Run calls in parallel. The order of hooks does not depend on which call is faster.

        Hooks see each call before any runs, and the results after all have ended, in the order of the calls. If a hook makes a
        call one with side effects, all run alone.
        """
        batch = [self._repaired(planned) for planned in batch]
        if self._session.gate.hooks is None:
            return await self._run_beside([(planned, None) for planned in batch])
        offered = [await self._offered(planned) for planned in batch]
        if all(skipped is not None or self._runs_beside(planned) for planned, skipped in offered):
            return [await self._passed(each) for each in await self._run_beside(offered)]
        completed: list[ToolCallCompleted] = []
        for each in offered:
            if completed and self._session.ended:
                break
            completed.append(await self._passed(await self._recorded(*each)))
        return completed

    async def _run_beside(self, batch: list[tuple[PlannedCall, Outcome | None]]) -> list[ToolCallCompleted]:
        results: list[ToolCallCompleted | None] = [None] * len(batch)
        errors: list[PlayheadError] = []
        limit = anyio.Semaphore(self._session.header.max_parallel)

        async def run_one(place: int) -> None:
            async with limit:
                try:
                    results[place] = await self._recorded(*batch[place])
                except PlayheadError as error:  # one call's error must not cancel the others in mid-flight
                    errors.append(error)

        async with anyio.create_task_group() as group:
            for place in range(len(batch)):
                group.start_soon(run_one, place)
        fatal = [error for error in errors if not isinstance(error, RunEndedError)]
        if fatal or (errors and not any(results)):
            raise (fatal or errors)[0]
        return [result for result in results if result is not None]
