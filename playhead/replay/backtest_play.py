"""A recording, played before the guards of killswitches."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Final, Literal

from playhead.compose.harness import Harness
from playhead.compose.killswitches.budget import BudgetGuard, cost_of
from playhead.compose.killswitches.clock import Clocked
from playhead.errors import RunEndedError
from playhead.kernel.guards import ask_all, asking, fire, interrupt, stopped, tell
from playhead.kernel.hooks import Stop as StopAnswer
from playhead.kernel.hooks import Terminate
from playhead.kernel.output_cap import output_cap
from playhead.replay.backtest_model import Asked, Change, Step, Stop
from playhead.replay.backtest_session import RecordedSession, recorded_sessions
from playhead.trace.events import (
    ApprovalDecided,
    HookFailed,
    HookFired,
    KillswitchFired,
    LlmFailed,
    LlmRequested,
    LlmResponded,
    ToolCallCompleted,
    ToolCallStarted,
)
from playhead.trace.recording import RecordedCall

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from playhead.compose.harness import Block
    from playhead.kernel.approval import ApprovalRequest
    from playhead.kernel.hooks import Said
    from playhead.kernel.state import PlannedCall
    from playhead.trace.line import Record
    from playhead.trace.recording import Recording
    from playhead.trace.types import Request, ToolSpec

ROOT: Final = "root"
NOBODY: Final = "nobody was there to ask"
"""What a run says of an approval for which it had no approver."""
AS_IF_DENIED: Final = "a backtest asks nobody, and takes it as denied"


@dataclass(slots=True, eq=False)
class _Asking:
    """An attempt at a request, from when it would have been sent until it may be."""

    session: RecordedSession
    record: Record
    event: LlmRequested
    request: Request
    answer: LlmResponded | LlmFailed | None = None
    """What the recording has for it, when that comes before it may be sent."""

    @property
    def key(self) -> tuple[str, int, int]:
        return self.session.owner, self.event.request, self.event.attempt


class Play:
    """Asks the guards about what a recording says was asked, in its order, until one of them ends the run.

    A request that has to wait, because others may still give something back, is asked about again whenever one of them
    is settled; its answer is heard after that. Where nothing runs beside anything else nothing waits, and all is as live.
    """

    def __init__(self, recording: Recording, blocks: Sequence[Block]) -> None:
        """Make the guards.

        Raises:
            NotATraceError: the recording does not say which agents ran.
        """
        harness = Harness()
        for block in blocks:
            harness.use(block)
        self.recording = recording
        self.sessions = recorded_sessions(recording, self._on_fired)
        self.makers = harness.guards()
        self.stop: Stop | None = None
        self.change: Change | None = None
        self.own_end: str | None = None
        """What of the run's own ended it before any switch fired."""
        self.asked: Asked | None = None
        self.sent: set[tuple[str, int, int]] = set()
        """Attempts that would have been sent: owner, request, attempt."""
        self.ran: set[tuple[str, str]] = set()
        """Calls that would have run: owner and call."""
        self.waited = 0
        """Requests that would have waited."""
        self._hooks = harness.hooks()
        self._root = self.sessions[ROOT]
        self._guards = tuple(maker.make(self._root.as_session()) for maker in self.makers)
        for session in self.sessions.values():
            session.gate.guards = self._guards
        self._clocks = [guard for guard in self._guards if isinstance(guard, Clocked)]
        self._start_us = recording.records[0].ts
        self._now_s = 0.0
        self._record = recording.records[0]
        self._asking: _Asking | None = None
        self._waiting: list[_Asking] = []
        self._caps: dict[tuple[str, int, int], int] = {}
        self.uncounted: list[Step] = []
        """Answers that a budget counts, and of which the recording does not say enough to count them as live."""
        self._in_flight: dict[tuple[str, object], str] = {}
        self._last_asked: int | None = None
        self._decided = {
            (record.owner, record.event.call_id): record.event
            for record in recording.records
            if isinstance(record.event, ApprovalDecided) and record.event.switch is None
        }

    @property
    def lasted_s(self) -> float:
        """Seconds from the first event to the last."""
        return max(0, max(record.ts for record in self.recording.records) - self._start_us) / 1e6

    @property
    def counts_prompts(self) -> bool:
        """Whether a switch looks at how long prompts are."""
        return any(isinstance(guard, BudgetGuard) for guard in self._guards)

    def cost_of(self, owner: str, answer: LlmResponded) -> float | None:
        """Return what an answer cost, in US dollars: as recorded, or by the prices that are known or given."""
        if answer.cost_usd is not None:
            return answer.cost_usd if isfinite(answer.cost_usd) else None
        if answer.usage.of_answer().unknown:
            return None
        session = self.sessions[owner]
        budgets = (
            each for each in self._guards if isinstance(each, BudgetGuard) and each.budget.max_cost_usd is not None
        )
        given = next(budgets, None)
        prices = session.header.prices if given is None else given.prices_of(session.as_session())
        return None if prices is None else cost_of(answer.usage, prices) / 1e15

    def tools_without_a_guard(self, known: set[str]) -> Iterator[str]:
        """Yield the tools that the switches name and that are not known."""
        yield from dict.fromkeys(name for maker in self.makers for name in maker.tools if name not in known)

    async def run(self) -> None:
        """Play the recording, up to where a switch would have ended the run or sent it another way.

        Raises:
            NotATraceError: something that a switch has to look at is not in the recording.
        """
        for clock in self._clocks:
            clock.now = lambda: self._now_s
            clock.begin()
        for record in self.recording.records:
            self._record = record
            self._pass_time(max(self._now_s, (record.ts - self._start_us) / 1e6))
            if not self._over:
                await self._see(record)
            if self._over:
                return

    @property
    def _over(self) -> bool:
        return self.stop is not None or self.change is not None or self.own_end is not None

    def _pass_time(self, now_s: float) -> None:
        """Let the time go on to an event; a deadline that lies before it comes first."""
        first = min(self._clocks, key=lambda clock: clock.due, default=None)
        if first is None or first.due > now_s:
            self._now_s = now_s
            return
        self._now_s = first.due
        answer = first.late()
        if answer is not None:
            interrupt(self._root.as_session(), first.name, answer)

    async def _see(self, record: Record) -> None:
        session, event = self.sessions[record.owner], record.event
        await self._begin_turn(session, record.iteration)
        if self._over:
            return
        match event:
            case LlmRequested():
                await self._request(session, record, event)
            case LlmResponded() | LlmFailed():
                self._answer(session, event)
            case ToolCallStarted():
                self._in_flight[record.owner, event.call_id] = f"call {event.call_id} of {event.tool} by {record.owner}"
                self._call(session, record, event)
            case ToolCallCompleted():
                self._in_flight.pop((record.owner, event.call_id), None)
                tell(session.as_session(), event, "result", call_id=event.call_id)
            case KillswitchFired() | HookFired() | HookFailed():
                self._end_itself(record)

    # --- turns --------------------------------------------------------------------------------------------------------

    async def _begin_turn(self, session: RecordedSession, turn: int | None) -> None:
        """Ask what is asked before a turn of the root agent, at the first event of that turn."""
        before, session.at.iteration = session.iteration, turn
        if turn is None:
            session.at.iteration = before if session is self._root else None
            return
        if session is not self._root or self._hooks is None or (before is not None and turn <= before):
            return
        said = await self._hooks.ask(session.as_session(), "think", "before", None)  # type: ignore[arg-type]
        if said is not None:
            self._steer(session, said)

    def _steer(self, session: RecordedSession, said: Said) -> None:
        answer = said.answer
        if isinstance(answer, (StopAnswer, Terminate)) and answer.switch is not None:
            trigger: Literal["stop", "terminate"] = "terminate" if isinstance(answer, Terminate) else "stop"
            session.emit(KillswitchFired(switch=answer.switch, reason=answer.reason, on_trigger=trigger))

    # --- requests -----------------------------------------------------------------------------------------------------

    async def _request(self, session: RecordedSession, record: Record, event: LlmRequested) -> None:
        asked = _Asking(session, record, event, session.request(event))
        self._in_flight[asked.key[0], asked.key[1:]] = f"request {event.request} of {record.owner}"
        for guard in self._guards:
            await guard.measure(session.as_session(), asked.request)
        if not self._admit(asked) and not self._over:
            self.waited += 1
            self._waiting.append(asked)

    def _admit(self, asked: _Asking) -> bool:
        """Return whether the attempt would have been sent."""
        self._asking = asked
        try:
            admitted, waiting = ask_all(asked.session.as_session(), asked.request)
        except RunEndedError:
            return False
        finally:
            self._asking = None
        if waiting is not None:
            waiting.undo()
            return False
        self.sent.add(asked.key)
        cap = output_cap(admitted.parameters)
        if cap is not None and cap != output_cap(asked.request.parameters):
            self._caps[asked.key] = cap
        return True

    def _answer(self, session: RecordedSession, event: LlmResponded | LlmFailed) -> None:
        key = (session.owner, event.request, event.attempt)
        self._in_flight.pop((key[0], key[1:]), None)
        waiting = next((asked for asked in self._waiting if asked.key == key), None)
        if waiting is not None:
            waiting.answer = event
            return
        cap = self._caps.get(key)
        if cap is not None and isinstance(event, LlmResponded) and event.usage.output_tokens > cap:
            where = self._step(session, request=event.request, attempt=event.attempt)
            what = f"the answer would have been cut at {cap:,} tokens; it has {event.usage.output_tokens:,}"
            self.change = Change(what=what, step=where)
            return
        if isinstance(event, LlmResponded) and self._is_uncounted(event, cap):
            self.uncounted.append(self._step(session, request=event.request, attempt=event.attempt))
        tell(session.as_session(), event, "response", request=event.request, attempt=event.attempt)
        self._wake()

    def _is_uncounted(self, event: LlmResponded, cap: int | None) -> bool:
        """Return whether a budget would have counted another number live, or the cap cut an answer, and nobody can tell.

        An answer of which the provider itself told nothing counts live, as here, with what was set aside for it.
        """
        if not self.counts_prompts or not event.usage.of_answer().unknown:
            return False
        return self.recording.header.imported is not None or (cap is not None and event.usage.output_tokens <= 0)

    def _wake(self) -> None:
        """Ask again about what waits."""
        for asked in list(self._waiting):
            if self._over:
                return
            if asked in self._waiting and self._admit(asked):
                self._waiting.remove(asked)
                if asked.answer is not None:
                    self._answer(asked.session, asked.answer)

    # --- calls --------------------------------------------------------------------------------------------------------

    def _call(self, session: RecordedSession, record: Record, event: ToolCallStarted) -> None:
        call = session.recorded.calls[event.call_id]
        if call.started is not event:  # an id that means two calls: only a damaged file has one
            call = RecordedCall(event, record.iteration, record.seq)
        spec, planned, live = session.guarded_spec(call), session.planned(call), session.as_session()
        if spec is None:
            return
        if spec.kind != "meta":
            outcome = stopped(live, planned, spec)
            if outcome is not None:
                if not self._over:
                    why = outcome.error.message if outcome.error else "the call would have been refused"
                    self.change = Change(what=why, step=self._step(session, call_id=event.call_id, tool=event.tool))
                return
        if self._approved(session, planned, spec):
            self.ran.add((session.owner, event.call_id))

    def _approved(self, session: RecordedSession, planned: PlannedCall, spec: ToolSpec) -> bool:
        """Return whether the call would have run, as far as guards and the approver of that time decide."""
        call_id = planned.call.id
        decided = self._decided.get((session.owner, call_id))
        session.gate.approver = None if decided is not None and decided.why == NOBODY else _recorded_answer
        for guard in asking(session.as_session(), planned, spec):
            if guard is None:
                if decided is not None and not decided.approved:
                    return False
                continue
            self._note_asked(self._step(session, call_id=call_id, tool=spec.name))
            why = f"{spec.name} was not approved: {AS_IF_DENIED}"
            ends = guard.denied(session.as_session(), planned, why)
            if ends is not None:
                fire(guard, session.as_session(), ends, "approval", call_id=call_id)
                return False
        return True

    def _note_asked(self, step: Step) -> None:
        first = step if self.asked is None else self.asked.first
        if step.seq != self._last_asked:  # two switches that want one call approved
            self.asked = Asked(calls=1 if self.asked is None else self.asked.calls + 1, first=first)
        self._last_asked = step.seq

    # --- ends ---------------------------------------------------------------------------------------------------------

    def _end_itself(self, record: Record) -> None:
        """Note that the run's own switch or hook ended it here; one that is tested and was in the run has fired."""
        event = record.event
        match event:
            case KillswitchFired() if (event.ends or record.owner) == ROOT:
                self._end_by_own_switch(record, event)
            case HookFired(action="stop" | "terminate", switch=None) if record.owner == ROOT:
                self.own_end = f"the hook {event.hook}"
            case HookFailed() if ROOT in event.ends:
                self.own_end = f"the failure of the hook {event.hook}"

    def _end_by_own_switch(self, record: Record, event: KillswitchFired) -> None:
        if not any(maker.name == event.switch and maker.info() in self._root.header.hooks for maker in self.makers):
            self.own_end = f"the switch {event.switch}"
            return
        session = self.sessions[record.owner]
        where = self._step(session, request=event.request, attempt=event.attempt, call_id=event.call_id or None)
        self._end(event, where.model_copy(update={"turn": record.iteration}), recorded=True)

    def _on_fired(self, session: RecordedSession, event: KillswitchFired) -> None:
        """Note where a guard ends the run."""
        asked = self._asking
        where = self._step(
            session, request=event.request, attempt=event.attempt, call_id=event.call_id or None, tool=self._tool(event)
        )
        if asked is not None:
            where = where.model_copy(update={"seq": asked.record.seq, "turn": asked.record.iteration})
        self._end(event, where)

    def _end(self, event: KillswitchFired, where: Step, *, recorded: bool = False) -> None:
        self.stop = Stop(
            switch=event.switch,
            reason=event.reason,
            on_trigger=event.on_trigger,
            at=event.at,
            step=where,
            in_flight=tuple(said for key, said in self._in_flight.items() if key not in _itself(where)),
            recorded=recorded,
        )

    def _tool(self, event: KillswitchFired) -> str | None:
        now = self._record.event
        return now.tool if event.call_id and isinstance(now, (ToolCallStarted, ToolCallCompleted)) else None

    def _step(self, session: RecordedSession, **where: str | int | None) -> Step:
        return Step(
            owner=session.owner,
            turn=session.iteration,
            seq=self._record.seq,
            after_ms=self._now_s * 1000,
            **where,  # type: ignore[arg-type]
        )


def _itself(where: Step) -> tuple[tuple[str, object], ...]:
    return (where.owner, where.call_id), (where.owner, (where.request, where.attempt))


def _recorded_answer(_: ApprovalRequest) -> bool:
    """Stand for the approver of the run: what it said is read from the recording, and nobody is asked."""
    raise AssertionError("a backtest asks nobody")
