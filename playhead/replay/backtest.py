"""What killswitches would have done in a recorded run.

The guards of the live run are asked themselves, about what the recording says was asked, in its order. What a recording
cannot know is said, and never taken as nothing: what a model would have answered otherwise, or how long another request
would have waited.
"""

from __future__ import annotations

from math import fsum, isfinite
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

from playhead.compose.harness import Harness
from playhead.compose.killswitches.budget import BudgetGuard, cost_of
from playhead.compose.killswitches.clock import Clocked
from playhead.compose.killswitches.output_cap import output_cap
from playhead.errors import NotATraceError, UsageError, nearest
from playhead.kernel.guards import asking
from playhead.kernel.hooks import Refuse, Terminate, Wait
from playhead.kernel.hooks import Stop as StopAnswer
from playhead.kernel.lifecycle.threads import run_blocking
from playhead.kernel.session import RunContext, Session, World
from playhead.kernel.state import PlannedCall
from playhead.replay.backtest_model import Figures, RunBacktest, Stop
from playhead.trace.clock import SystemClock
from playhead.trace.events import (
    AgentStarted,
    ApprovalDecided,
    BudgetReserved,
    HookFailed,
    HookFired,
    KillswitchFired,
    LlmFailed,
    LlmRequested,
    LlmResponded,
    RunStarted,
    ToolCallCompleted,
    ToolCallStarted,
)
from playhead.trace.format import ANSWERED
from playhead.trace.owners import parent_of
from playhead.trace.parameters import unrecorded
from playhead.trace.recorder import Recorder
from playhead.trace.types import ToolCall, ToolSpec, Usage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from playhead.compose.killswitches.expressions import SwitchExpression
    from playhead.kernel.guards import Place
    from playhead.trace.events import EventBase
    from playhead.trace.line import Record
    from playhead.trace.recording import OwnerRecording, Recording
    from playhead.trace.types import AgentHeader, Prices, Request

ROOT: Final = "root"
NOBODY: Final = "nobody was there to ask"
"""What a run says of an approval for which it had no approver."""
BY_GUARD: Final = "Refused"
"""Type of the error of a call that a guard of the run refused: it had come as far as the guards."""
AS_IF_DENIED: Final = "a backtest asks nobody, and takes it as denied"
ANOTHER_WAY: Final = "what would have come of that cannot be told"

Attempt = tuple[str, int, int]
"""An owner, the number of a request, and which attempt at it."""


def backtest(recording: Recording, switches: Sequence[SwitchExpression]) -> RunBacktest:
    """Return what these killswitches, stacked in this order on the root agent, would have done in a recorded run.

    What the run's own switches and hooks did stands: the ones given are beside them.

    >>> backtest(load_recording("latest"), [parse_switch("budget_limit(max_tokens=20000)")])  # doctest: +SKIP
    """
    ending = recording.ending
    well = ending is not None and ending.status == "done" and ending.terminated_by in ANSWERED
    verdict: Any = "untouched"
    found: dict[str, Any] = {}
    try:
        play = _Play(recording, switches)
        why = run_blocking(play.run)
        found = {"stop": play.stop, "notes": tuple(_notes(play)), "took": _figures(play, 0, play.lasted_s)}
        if play.stop is not None:
            found["saved"] = _figures(play, play.stop.seq, play.lasted_s - play.stop.after_ms / 1000)
    except NotATraceError as error:
        why = str(error)
    except (ArithmeticError, ValueError):
        why = "it holds figures that nobody can count with"
    if why is not None:
        verdict = "unknown"
    elif found["stop"] is not None:
        verdict = "stopped"
    return RunBacktest(
        run_id=recording.run_id,
        path=str(recording.path),
        status=None if ending is None else ending.status,
        ended_by=None if ending is None else ending.terminated_by,
        ended_well=well,
        lost=well and verdict == "stopped",
        verdict=verdict,
        why_unknown=why,
        **found,
    )


class _OverError(Exception):
    """The run goes no further in a backtest; says why not, where that is not known."""


def _notes(play: _Play) -> Iterator[str]:
    header, ending = play.recording.header, play.recording.ending
    if play.own_end is not None:
        yield f"the run was ended by {play.own_end}, which it had itself; what would have come after that is not known"
    if play.asked:
        times = "1 call" if play.asked == 1 else f"{play.asked:,} calls"
        yield f"somebody would have been asked about {times}, first at {play.asked_first}"
    if header.replay_of is not None:
        yield f"a replay of {header.replay_of}: recorded results take no time, so its times are not those of that run"
    if header.redacted and play.counts_prompts:
        yield "its texts were redacted: prompts are counted as they stand there"
    if any(unrecorded(header.agent.parameters)) and play.counts_prompts:
        yield "some of its request parameters are not recorded: prompts are counted without them"
    if header.agent.address is not None and play.counts_prompts:
        yield "prompts are estimated, or as they were counted for a budget of the run; live, a server may count others"
    if play.recording.status == "truncated":
        yield "the file is cut off: what came after is not known"
    if ending is not None and ending.lost_events:
        yield f"{ending.lost_events:,} events could not be written: what they say is not counted"
    known = {name for tools in play.tools.values() for name in tools}
    for name in dict.fromkeys(name for maker in play.makers for name in maker.tools if name not in known):
        yield f"no agent that ran had a tool {name!r}.{nearest(name, known)}"


class _Play:
    """A recording, played before the guards of killswitches."""

    def __init__(self, recording: Recording, switches: Sequence[SwitchExpression]) -> None:
        if recording.status == "damaged":
            raise NotATraceError("the file is damaged")
        harness = Harness()
        for each in switches:
            harness.use(each.block)
        self.recording = recording
        self.makers = harness.guards()
        self.stop: Stop | None = None
        self.own_end: str | None = None
        """What of the run's own ended it before any switch fired."""
        self.tools: dict[str, dict[str, ToolSpec]] = {}
        """The tools of each owner, by name."""
        self.asked, self.asked_first = 0, ""
        """How many calls somebody would have been asked about, and the first of them."""
        self._hooks = harness.hooks()
        self._run = RunContext(recording.run_id, Recorder(SystemClock()), World())
        self._sessions: dict[str, Session] = {}
        for owner in recording.owners.values():
            self._sessions[owner.owner] = self._session(owner)
        self._guards = tuple(maker.make(self._sessions[ROOT]) for maker in self.makers)
        for session in self._sessions.values():
            session.gate.guards = self._guards
        self.counts_prompts = any(isinstance(guard, BudgetGuard) for guard in self._guards)
        """Whether a switch looks at how long prompts are."""
        self._start_us = recording.records[0].ts
        self._now_s = 0.0
        self._record = recording.records[0]
        self._caps: dict[Attempt, int] = {}
        self._decided = {
            (record.owner, record.event.call_id): record.event
            for record in recording.records
            if isinstance(record.event, ApprovalDecided) and record.event.switch is None
        }

    @property
    def lasted_s(self) -> float:
        """Seconds from the first event to the last."""
        return max(0, max(record.ts for record in self.recording.records) - self._start_us) / 1e6

    async def run(self) -> str | None:
        """Play the recording, up to where a switch would have ended the run; return why it cannot be told, if so.

        Raises:
            NotATraceError: something that a switch has to look at is not in the recording.
        """
        try:
            for maker in self.makers:
                for session in self._sessions.values():
                    if maker.check is not None:
                        await maker.check(session.model.adapter)
            await self._see_all()
        except (_OverError, UsageError) as over:  # a live run would not have begun with a switch that raises
            return str(over) or None
        return None if self.recording.ending else "the file has no end, and no switch fires in what it holds"

    async def _see_all(self) -> None:
        clocks = [guard for guard in self._guards if isinstance(guard, Clocked)]
        for clock in clocks:
            clock.now = lambda: self._now_s
            clock.begin()
        for record in self.recording.records:
            self._record, now_s = record, max(self._now_s, (record.ts - self._start_us) / 1e6)
            for clock in sorted(clocks, key=lambda clock: clock.due)[:1]:
                self._now_s = min(now_s, clock.due)
                late = clock.late()
                if late is not None:
                    self._end(self._sessions[ROOT], clock.name, late, "outside")
            self._now_s = now_s
            await self._see(record)

    def spec_of(self, owner: str, call: ToolCallStarted, completed: ToolCallCompleted | None) -> ToolSpec | None:
        """Return the tool of a call that came as far as the guards, or None for one that was refused before that."""
        spec = self.tools[owner].get(call.tool)
        if spec is None and completed is not None and completed.ok:
            return ToolSpec(name=call.tool)  # it ran, so there was one
        if spec is None or not isinstance(call.args, dict):
            return None
        if completed is not None and completed.ended == "refused":
            return spec if completed.error is not None and completed.error.type == BY_GUARD else None
        return spec

    def cost_of(self, owner: str, answer: LlmResponded) -> float | None:
        """Return what an answer cost, in US dollars: as recorded, or by the prices that are known or given."""
        if answer.cost_usd is not None:
            return answer.cost_usd if isfinite(answer.cost_usd) else None
        if answer.usage.of_answer().unknown:
            return None
        session, prices = self._sessions[owner], self._sessions[owner].header.prices
        for guard in self._guards:
            if isinstance(guard, BudgetGuard) and guard.budget.max_cost_usd is not None:
                prices = guard.prices_of(session)
        return None if prices is None else cost_of(answer.usage, prices) / 1e15

    def _session(self, owner: OwnerRecording) -> Session:
        """Return what guards see of a session: its agent, its model and where it stands.

        Raises:
            NotATraceError: nothing says which agent it is.
        """
        name, above = owner.owner, owner.owner
        while above and above not in self._sessions:
            above = parent_of(above)
        own = {spec.name: spec for spec in owner.own_tools.values()}
        if isinstance(owner.started, (RunStarted, AgentStarted)):
            header = owner.started.agent
        elif above:  # inside the body of a tool: the agent's model and tools
            header, own = self._sessions[above].header, {**self.tools[above], **own}
        else:
            raise NotATraceError(f"nothing says which agent {name} is")
        session = Session(self._run, header, name, for_tool=lambda caller, _: caller)
        session.model = cast("Any", SimpleNamespace(adapter=_Model(header, owner)))
        self.tools[name] = own
        return session

    async def _see(self, record: Record) -> None:
        session, event = self._sessions[record.owner], record.event
        await self._begin_turn(session, record.iteration)
        match event:
            case LlmRequested():
                await self._request(session, event)
            case LlmResponded() | LlmFailed():
                self._answer(session, event)
            case ToolCallStarted():
                self._call(session, event)
            case ToolCallCompleted():
                self._tell(session, event, "result", call_id=event.call_id, tool=event.tool)
            case KillswitchFired() | HookFired() | HookFailed():
                self._end_itself(record)

    async def _begin_turn(self, session: Session, turn: int | None) -> None:
        """Ask what is asked before a turn of the root agent, at the first event of that turn."""
        before, is_root = session.at.iteration, session.owner == ROOT
        session.at.iteration = before if turn is None and is_root else turn
        if turn is None or not is_root or self._hooks is None or (before is not None and turn <= before):
            return
        said = await self._hooks.ask(session, "think", "before", cast("Any", None))
        if said is not None and isinstance(said.answer, (StopAnswer, Terminate)) and said.answer.switch is not None:
            self._end(session, said.answer.switch, said.answer, "phase")

    async def _request(self, session: Session, event: LlmRequested) -> None:
        recorded = self.recording.owners[session.owner]
        # A request names the whole thread: only what counts prompts has to see it.
        seen = event if self.counts_prompts else event.model_copy(update={"messages": (), "tools": ()})
        request, where = recorded.request(seen), {"request": event.request, "attempt": event.attempt}
        wanted = output_cap(request.parameters)
        for guard in self._guards:
            await guard.measure(session, request)
        for guard in self._guards:
            answer = guard.admit_request(session, request)
            if isinstance(answer, Wait):
                answer.undo()
                raise _OverError(
                    f"request {event.request} of {session.owner} would have waited for others beside it, and live the order of "
                    "both may be another one"
                )
            if isinstance(answer, (StopAnswer, Terminate)):
                self._end(session, guard.name, answer, "request", **where)
            request = answer
        for guard in self._guards:
            guard.admitted(session, request)
        cap = output_cap(request.parameters)
        if cap is not None and cap != wanted:
            self._caps[session.owner, event.request, event.attempt] = cap

    def _answer(self, session: Session, event: LlmResponded | LlmFailed) -> None:
        cap = self._caps.get((session.owner, event.request, event.attempt))
        if isinstance(event, LlmResponded):
            where, length = f"request {event.request} of {session.owner}", event.usage.output_tokens
            if cap is not None and length > cap:
                raise _OverError(
                    f"the answer to {where} would have been cut at {cap:,} tokens; it has {length:,}, and {ANOTHER_WAY}"
                )
            # An answer of which the provider itself said nothing counts live, as here, with what was set aside for it.
            imported = self.recording.header.imported is not None
            if self.counts_prompts and event.usage.of_answer().unknown and (imported or (cap and length <= 0)):
                raise _OverError(
                    f"the tokens of the answer to {where} are not recorded: what a budget would have counted there, and done, "
                    "cannot be told"
                )
        self._tell(session, event, "response", request=event.request, attempt=event.attempt)

    def _tell(self, session: Session, event: EventBase, at: Place, **where: Any) -> None:  # noqa: ANN401 - of `Stop`
        for guard in self._guards:
            answer = guard.heard(session, event)
            if answer is not None:
                self._end(session, guard.name, answer, at, **where)

    def _call(self, session: Session, event: ToolCallStarted) -> None:
        call = self.recording.owners[session.owner].calls[event.call_id]
        spec = self.spec_of(session.owner, event, call.completed if call.started is event else None)
        if spec is None:
            return
        arguments: Any = event.args if isinstance(event.args, dict) else None
        asked = ToolCall(id=event.call_id, name=event.tool, arguments=arguments)
        planned = PlannedCall(asked, event.position, event.source, event.request, event.rationale)
        where = {"call_id": event.call_id, "tool": event.tool}
        for guard in self._guards if spec.kind != "meta" else ():
            answer = guard.admit_call(session, planned, spec)
            if isinstance(answer, Refuse):
                raise _OverError(f"at {_named(where, session)}: {answer.why}; {ANOTHER_WAY}")
            if answer is not None:
                self._end(session, guard.name, answer, "call", **where)
        decided = self._decided.get((session.owner, event.call_id))
        session.gate.approver = None if decided is not None and decided.why == NOBODY else _recorded_answer
        wanting = asking(session, planned, spec)
        if None in wanting and decided is not None and not decided.approved:
            return
        guards = [guard for guard in wanting if guard is not None]
        if guards:
            self.asked, self.asked_first = self.asked + 1, self.asked_first or _named(where, session)
        for guard in guards:
            answer = guard.denied(session, planned, f"{spec.name} was not approved: {AS_IF_DENIED}")
            if answer is not None:
                self._end(session, guard.name, answer, "approval", **where)

    def _end_itself(self, record: Record) -> None:
        """End where the run's own switch or hook ended it; one that is tested and was in the run has fired."""
        event, root = record.event, self._sessions[ROOT]
        match event:
            case KillswitchFired() if (event.ends or record.owner) == ROOT:
                if any(maker.name == event.switch and maker.info() in root.header.hooks for maker in self.makers):
                    session = self._sessions[record.owner]
                    session.at.iteration = record.iteration
                    answer = (Terminate if event.on_trigger == "terminate" else StopAnswer)(event.reason, event.switch)
                    where = {"request": event.request, "attempt": event.attempt, "call_id": event.call_id or None}
                    self._end(session, event.switch, answer, event.at, recorded=True, **where)
                self.own_end = f"the switch {event.switch}"
            case HookFired(action="stop" | "terminate", switch=None) if record.owner == ROOT:
                self.own_end = f"the hook {event.hook}"
            case HookFailed() if ROOT in event.ends:
                self.own_end = f"the failure of the hook {event.hook}"
        if self.own_end is not None:
            raise _OverError

    def _end(self, session: Session, switch: str, answer: StopAnswer | Terminate, at: Any, **where: Any) -> NoReturn:  # noqa: ANN401
        """End the run, because a switch would have."""
        self.stop = Stop(
            switch=switch,
            reason=answer.reason,
            on_trigger="terminate" if isinstance(answer, Terminate) else "stop",
            at=at,
            owner=session.owner,
            turn=session.at.iteration,
            seq=self._record.seq,
            after_ms=self._now_s * 1000,
            **where,
        )
        raise _OverError


class _Model:
    """What is known of a model that was asked then."""

    def __init__(self, header: AgentHeader, owner: OwnerRecording) -> None:
        self.name = header.model
        self._prices = header.prices
        self._counted = {
            (record.event.request, record.event.attempt): record.event.prompt_tokens
            for record in owner.records
            if isinstance(record.event, BudgetReserved) and record.event.prompt_bound == "counted"
        }

    async def prices(self) -> Prices | None:
        """Return what it cost then."""
        return self._prices

    async def count_tokens(self, request: Request) -> int | None:
        """Return what was counted for this prompt, if it was."""
        return self._counted.get((request.number, request.attempt))


def _recorded_answer(_: object) -> bool:
    """Stand for the approver of the run: what it said is read from the recording, and nobody is asked."""
    raise AssertionError("a backtest asks nobody")


def _named(where: Mapping[str, str], session: Session) -> str:
    return f"call {where['call_id']} of the tool {where['tool']} by {session.owner}"


def _figures(play: _Play, since: int, seconds: float) -> Figures:
    """Return what began at or after an event."""
    answers: list[tuple[str, LlmResponded]] = []
    requests: set[Attempt] = set()
    calls = 0
    for record in play.recording.records[since:]:
        owner, event = record.owner, record.event
        match event:
            case LlmRequested():
                requests.add((owner, event.request, event.attempt))
            case LlmResponded() if (owner, event.request, event.attempt) in requests:
                answers.append((owner, event))
            case ToolCallStarted():
                completed = play.recording.owners[owner].calls[event.call_id].completed
                spec = play.spec_of(owner, event, completed)
                calls += spec is not None and spec.kind != "meta" and (completed is None or completed.end.body_ran)
    costs = [play.cost_of(owner, answer) for owner, answer in answers]
    known = [each for each in costs if each is not None]
    usage = sum((answer.usage.of_answer() for _, answer in answers), start=Usage())
    return Figures(
        tokens=usage.known(usage.total_tokens),
        usage_unknown=usage.unknown or 0,
        cost_usd=fsum(known) if known or not costs else None,
        cost_unknown=len(known) < len(costs),
        requests=len(requests),
        calls=calls,
        seconds=max(0.0, seconds),
    )
