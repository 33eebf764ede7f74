"""A recorded run under killswitches, whose guards see its requests, calls and answers in the recorded order.

`UnknownOutcomeError` reports what a recording cannot show, such as the model's answer to a different request, or how long
a request would have waited.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from playhead.compose.harness import Harness
from playhead.compose.killswitches.budget import BudgetGuard
from playhead.compose.killswitches.clock import Clocked
from playhead.compose.killswitches.ledger import cost_of
from playhead.compose.killswitches.output_cap import output_cap
from playhead.kernel.guards import ask_all, stopped, tell
from playhead.kernel.phases import record_steering
from playhead.kernel.session import RunContext, Session, World
from playhead.kernel.state import PlannedCall
from playhead.trace.clock import SystemClock
from playhead.trace.events import (
    KillswitchFired,
    LlmFailed,
    LlmRequested,
    LlmResponded,
    ToolCallCompleted,
    ToolCallStarted,
)
from playhead.trace.owners import parent_of
from playhead.trace.recorder import Recorder
from playhead.trace.types import ToolCall, ToolSpec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from playhead.compose.harness import Block
    from playhead.diagnose.recording import Recording
    from playhead.trace.events import EventBase
    from playhead.trace.line import Record

Attempt = tuple[str, int, int]
"""An owner, the number of a request, and the number of the attempt."""


class Stop(KillswitchFired):
    """Where a switch would have fired, and what the live run would have recorded."""

    owner: str
    """The agent or tool body: `root`, `root/researcher@3.0`."""
    turn: int | None
    """Turn of that agent's loop, from 0; None outside it."""
    seq: int
    """`seq` of the event at which the run would have stopped: a request that would not have been sent, a call that would not
    have run, an answer or a result after which nothing would have started, or the first event after a deadline."""
    after_ms: float
    """Milliseconds from the start of the run."""


class _FiredError(Exception):
    """A switch fired and would have ended the run; holds the session and the termination."""


class UnknownOutcomeError(Exception):
    """The outcome is not known, for the reason in the message."""


class GuardedRecording:
    """A recorded run, checked by the guards of killswitches."""

    def __init__(self, recording: Recording, switches: Iterable[Block]) -> None:
        if recording.status == "damaged":
            raise UnknownOutcomeError("the file is damaged")
        harness = Harness()
        for each in switches:
            harness.use(each)
        self.recording = recording
        self.makers = harness.guards()
        self.tools: dict[str, dict[str, ToolSpec]] = {}
        """The tools of each owner, by name."""
        self._hooks = harness.hooks()
        self._sessions: dict[str, _Session] = {}
        self._add_sessions()
        self._guards = tuple(maker.make(self._sessions["root"]) for maker in self.makers)
        for session in self._sessions.values():
            session.gate.post(self._guards)
        self.budgets = [guard for guard in self._guards if isinstance(guard, BudgetGuard)]
        """The switches that check prompts."""
        self._start_us = recording.records[0].ts
        self.lasted_s = (max(record.ts for record in recording.records) - self._start_us) / 1e6
        """Seconds from the first event to the last."""
        self._now_s = 0.0
        self._turn = -1
        self._caps: dict[Attempt, int] = {}

    def _add_sessions(self) -> None:
        """Add a session, and the tools, of each owner; a tool's body uses its agent's model and tools."""
        run = RunContext(self.recording.run_id, Recorder(SystemClock()), World())
        for name, owner in self.recording.owners.items():
            own = {spec.name: spec for spec in owner.own_tools.values()}
            if owner.started is not None:
                header = owner.started.agent
            else:
                header, own = self._sessions[parent_of(name)].header, {**self.tools[parent_of(name)], **own}
            self._sessions[name] = _Session(run, header, name, for_tool=lambda caller, _: caller)
            self.tools[name] = own

    async def run(self) -> Stop | None:
        """Follow the recording up to where a switch would have ended the run, and return that place.

        Raises:
            UnknownOutcomeError, NotATraceError: what the switches would have done is not known.
        """
        for session in self._sessions.values():
            if any(guard.prices_of(session) is None for guard in self.budgets):
                raise UnknownOutcomeError(
                    f"the price of {session.header.model} is not known: give prices= to the budget"
                )
        clocks = [guard for guard in self._guards if isinstance(guard, Clocked)]
        for clock in clocks:
            clock.now = lambda: self._now_s
            clock.begin()
        for record in self.recording.records:
            now_s = max(self._now_s, (record.ts - self._start_us) / 1e6)
            try:
                if clocks:
                    first = min(clocks, key=lambda clock: clock.due)
                    self._now_s = min(now_s, first.due)
                    first.look()
                self._now_s = now_s
                await self._see(record)
            except _FiredError as ended:
                session, fired = ended.args
                place = {"owner": session.owner, "turn": session.iteration, "seq": record.seq}
                return Stop(**dict(fired), **place, after_ms=self._now_s * 1000)
        return None

    def price(self, owner: str, answer: LlmResponded) -> LlmResponded:
        """Return an answer with its cost in US dollars: as recorded, otherwise by the prices given to a switch."""
        prices = [each for guard in self.budgets if (each := guard.prices.get(self._sessions[owner].header.model))]
        if answer.cost_usd is not None or answer.usage.of_answer().unknown or not prices:
            return answer
        return answer.model_copy(update={"cost_usd": cost_of(answer.usage, prices[0]) / 1e15})

    async def _see(self, record: Record) -> None:
        session, event = self._sessions[record.owner], record.event
        session.at.enter_iteration(record.iteration)
        if record.owner == "root" and record.iteration is not None and record.iteration > self._turn:
            self._turn = record.iteration
            reply = await self._hooks.ask(session, "think", "before", cast("Any", None)) if self._hooks else None
            if reply is not None:
                record_steering(reply, "think", "before", session)
        match event:
            case LlmRequested():
                await self._request(session, event)
            case LlmResponded() | LlmFailed():
                if isinstance(event, LlmResponded):
                    self._require_same(session, event)
                tell(session, event, "response", request=event.request, attempt=event.attempt)
            case ToolCallStarted():
                self._call(session, event)
            case ToolCallCompleted():
                tell(session, event, "result", call_id=event.call_id)

    async def _request(self, session: Session, event: LlmRequested) -> None:
        # A request refers to the whole thread, and only budgets read it.
        seen = event if self.budgets else event.model_copy(update={"messages": (), "tools": ()})
        request = self.recording.owners[session.owner].request(seen)
        for guard in self._guards:
            await guard.measure(session, request)
        admitted, waiting = ask_all(session, request)
        if waiting is not None:
            waiting.undo()
            raise UnknownOutcomeError(
                f"request {event.request} of {session.owner} would have waited for concurrent requests, whose order may "
                "differ in a live run"
            )
        for guard in self._guards:
            guard.admitted(session, admitted)
        cap = output_cap(admitted.parameters)
        if cap is not None and cap != output_cap(request.parameters):
            self._caps[session.owner, event.request, event.attempt] = cap

    def _require_same(self, session: Session, event: LlmResponded) -> None:
        """Refuse an answer that the switches would have changed, or whose length a budget cannot know."""
        cap = self._caps.get((session.owner, event.request, event.attempt))
        where, length = f"request {event.request} of {session.owner}", event.usage.output_tokens
        if cap is not None and length > cap:
            raise UnknownOutcomeError(
                f"the answer to {where} would have been cut at {cap:,} tokens; it has {length:,}, so what the run would "
                "have done is not known"
            )
        # Without usage from the provider, a live budget counts its reservation; an imported trace does not show it.
        imported = self.recording.header.imported is not None
        if self.budgets and event.usage.of_answer().unknown and (imported or (cap and length <= 0)):
            raise UnknownOutcomeError(
                f"the tokens of the answer to {where} are not recorded, so what a budget would have done is not known"
            )

    def _call(self, session: Session, event: ToolCallStarted) -> None:
        done = self.recording.owners[session.owner].calls[event.call_id].completed
        spec = self.tools[session.owner].get(event.tool, ToolSpec(name=event.tool))
        if spec.kind == "meta" or (done is not None and done.ended == "refused"):
            return
        arguments: Any = event.args if isinstance(event.args, dict) else None
        call = ToolCall(id=event.call_id, name=event.tool, arguments=arguments)
        planned = PlannedCall(call, event.position, event.source, event.request, event.rationale)
        refused = stopped(session, planned, spec)
        if refused is not None and refused.error is not None:
            raise UnknownOutcomeError(
                f"at call {event.call_id} of the tool {event.tool} by {session.owner}: {refused.error.message}; what the "
                "run would have done then is not known"
            )


class _Session(Session):
    """An agent of the recording, as guards see it; a switch that fires ends the backtest."""

    model = cast("Any", SimpleNamespace(adapter=None))
    """The model counts no tokens, so prompts are estimated."""

    def emit(self, event: EventBase) -> None:
        """Record nothing; end the backtest if a switch fires before a turn."""
        if isinstance(event, KillswitchFired):
            raise _FiredError(self, event)

    def emit_ending(self, event: EventBase, end: object) -> bool:  # noqa: ARG002
        """End the backtest if a switch fires."""
        self.emit(event)
        return True
