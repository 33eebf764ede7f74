"""Where killswitches would have stopped a recorded run, and what that would have saved.

The guards of a live run see the recorded requests, calls and answers in their order. What a recording cannot tell makes the
verdict `unknown`: what a model would have answered to another request, or how long a request would have waited.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NoReturn, cast

from pydantic import BaseModel, ConfigDict

from playhead.compose.harness import Harness
from playhead.compose.killswitches.budget import BudgetGuard
from playhead.compose.killswitches.clock import Clocked
from playhead.compose.killswitches.ledger import cost_of
from playhead.compose.killswitches.output_cap import output_cap
from playhead.errors import NotATraceError, UsageError, nearest
from playhead.kernel.guards import Place
from playhead.kernel.hooks import Refuse, Terminate, Wait
from playhead.kernel.hooks import Stop as StopAnswer
from playhead.kernel.lifecycle.threads import run_blocking
from playhead.kernel.session import RunContext, Session, World
from playhead.kernel.state import PlannedCall
from playhead.trace.clock import SystemClock
from playhead.trace.events import (
    AgentStarted,
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
from playhead.trace.spending import Spent
from playhead.trace.types import ToolCall, ToolSpec

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from playhead.compose.killswitches.expressions import SwitchExpression
    from playhead.trace.events import EventBase
    from playhead.trace.line import Record
    from playhead.trace.recording import OwnerRecording, Recording
    from playhead.trace.types import AgentHeader, Prices

ROOT: Final = "root"
BY_GUARD: Final = "Refused"
"""Error type of a call that a guard of the run refused: the call had reached the guards."""

Attempt = tuple[str, int, int]
"""An owner, the number of a request, and which attempt at it."""
Verdict = Literal["untouched", "stopped", "unknown"]
"""`untouched`: no switch fires. `stopped`: one does. `unknown`: the recording does not say enough, or a switch would have
sent the run another way without ending it."""


class Value(BaseModel):
    """A part of the result."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, ser_json_inf_nan="constants")


class Stop(Value):
    """How and where a switch would have ended a run."""

    switch: str
    """The switch."""
    reason: str
    """Why it would have fired."""
    on_trigger: Literal["stop", "terminate"]
    """Whether the run would have counted as done or as failed."""
    at: Place | Literal["phase", "outside"]
    """Before a request, a call or a turn (`phase`), after an answer or a result, or from outside."""
    owner: str
    """The agent or tool body: `root`, `root/researcher@3.0`."""
    turn: int | None = None
    """Turn of that agent's loop, from 0; None outside of it."""
    request: int | None = None
    """The request to the model, if it stops at one."""
    attempt: int | None = None
    """Which attempt at that request."""
    call_id: str | None = None
    """The tool call, if it stops at one."""
    tool: str | None = None
    """Its tool."""
    seq: int
    """`seq` of the event at which it stops: a request that would not have been sent, a call that would not have run, an answer
    or a result after which nothing would have begun, or the first event after a deadline."""
    after_ms: float
    """Milliseconds from the start of the run."""


class Figures(Value):
    """What a run took, or would not have taken."""

    tokens: int | None = 0
    """Tokens of prompts and answers; None if no count is known."""
    usage_unknown: int = 0
    """Answers whose tokens are not, or not all, known: `tokens` is at least that."""
    cost_usd: float | None = 0.0
    """US dollars, as far as prices are known; None if no price is."""
    cost_unknown: bool = False
    """Whether some answers have no known price."""
    requests: int = 0
    """Attempts at requests."""
    calls: int = 0
    """Tool calls that reached their tool."""
    seconds: float = 0.0
    """Seconds."""

    def __add__(self, other: Figures) -> Figures:
        """Return the sum of what is known."""
        unknown = self.usage_unknown + other.usage_unknown
        costs = [each.cost_usd for each in (self, other) if each.cost_usd is not None]
        return Figures(
            tokens=((self.tokens or 0) + (other.tokens or 0)) or (None if unknown else 0),
            usage_unknown=unknown,
            cost_usd=sum(costs) if costs else None,
            cost_unknown=self.cost_unknown or other.cost_unknown,
            requests=self.requests + other.requests,
            calls=self.calls + other.calls,
            seconds=self.seconds + other.seconds,
        )


class RunBacktest(Value):
    """What the switches would have done in one run."""

    kind: Literal["run"] = "run"
    run_id: str
    """The run."""
    path: str
    """Its file."""
    status: str | None
    """`done` or `failed` as recorded; None if the file has no end."""
    ended_by: str | None
    """The reason code of that end."""
    ended_well: bool = False
    """Whether the model gave an answer."""
    verdict: Verdict
    """What the switches would have done."""
    stop: Stop | None = None
    """Where the run would have stopped."""
    why_unknown: str | None = None
    """Why the verdict is `unknown`."""
    lost: bool = False
    """Whether the run ended well, and would have been stopped before."""
    took: Figures = Figures()
    """What the run took."""
    saved: Figures = Figures()
    """What of that began after the stop. What was in flight then does not count."""
    notes: tuple[str, ...] = ()
    """What else a reader must know."""


class Summary(BaseModel):
    """What the switches would have done in all runs added: figures only, however many runs there are."""

    model_config: ClassVar[ConfigDict] = ConfigDict(ser_json_inf_nan="constants")

    kind: Literal["summary"] = "summary"
    switches: tuple[str, ...]
    """The switches, as written."""
    runs: int = 0
    """Runs added."""
    untouched: int = 0
    """Runs in which no switch fires."""
    stopped: int = 0
    """Runs that would have been stopped."""
    unknown: int = 0
    """Runs whose outcome cannot be told."""
    ended_well: int = 0
    """Runs that ended well, among those that could be judged."""
    lost: int = 0
    """Runs of these that would have been stopped before."""
    took: Figures = Figures()
    """What all judged runs took."""
    saved: Figures = Figures()
    """What the stopped ones would have saved."""

    def add(self, run: RunBacktest) -> None:
        """Count a run."""
        self.runs += 1
        setattr(self, run.verdict, getattr(self, run.verdict) + 1)
        if run.verdict != "unknown":
            self.ended_well += run.ended_well
            self.lost += run.lost
            self.took += run.took
            self.saved += run.saved


def backtest(recording: Recording, switches: Sequence[SwitchExpression]) -> RunBacktest:
    """Return what these killswitches, stacked in this order on the root agent, would have done in a recorded run.

    What the run's own switches and hooks did stays as recorded.

    >>> backtest(load_recording("latest"), [parse_switch("budget_limit(max_tokens=20000)")])  # doctest: +SKIP
    """
    ending = recording.ending
    well = ending is not None and ending.status == "done" and ending.terminated_by in ANSWERED
    found: dict[str, Any] = {}
    stop: Stop | None = None
    try:
        course = _Course(recording, switches)
        why = run_blocking(course.run)
        stop = course.stop
        found = {"stop": stop, "notes": tuple(_notes(course)), "took": _figures(course, 0, course.lasted_s)}
        if stop is not None:
            found["saved"] = _figures(course, stop.seq, course.lasted_s - stop.after_ms / 1000)
    except NotATraceError as error:
        why = str(error)
    except (ArithmeticError, ValueError):
        why = "it holds figures that cannot be added up"
    verdict: Verdict = "unknown" if why is not None else "untouched" if stop is None else "stopped"
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
    """The backtest of a run goes no further; its message says why, if the outcome is unknown."""


def _notes(course: _Course) -> Iterator[str]:
    header, ending = course.recording.header, course.recording.ending
    if ending is not None and ending.terminated_by not in ANSWERED:
        yield f"the run ended by {ending.terminated_by}; what would have come after that is not known"
    if header.replay_of is not None:
        yield f"a replay of {header.replay_of}: recorded results take no time, so its times are not those of that run"
    if course.counts_prompts and (header.redacted or any(unrecorded(header.agent.parameters)) or header.agent.address):
        yield "prompts are counted as recorded, or estimated; redaction, unrecorded parameters or a server may count otherwise"
    if course.recording.status == "truncated":
        yield "the file is cut off: what came after is not known"
    if ending is not None and ending.lost_events:
        yield f"{ending.lost_events:,} events could not be written, and do not count"
    known = {name for tools in course.tools.values() for name in tools}
    for name in dict.fromkeys(name for maker in course.makers for name in maker.tools if name not in known):
        yield f"no agent that ran had a tool {name!r}.{nearest(name, known)}"


class _Course:
    """A recorded run that passes the guards of killswitches."""

    def __init__(self, recording: Recording, switches: Sequence[SwitchExpression]) -> None:
        if recording.status == "damaged":
            raise NotATraceError("the file is damaged")
        harness = Harness()
        for each in switches:
            harness.use(each.block)
        self.recording = recording
        self.makers = harness.guards()
        self.stop: Stop | None = None
        self.tools: dict[str, dict[str, ToolSpec]] = {}
        """The tools of each owner, by name."""
        self._hooks = harness.hooks()
        self._run = RunContext(recording.run_id, Recorder(SystemClock()), World())
        self._sessions: dict[str, Session] = {}
        for owner in recording.owners.values():
            self._sessions[owner.owner] = self._session(owner)
        self._guards = tuple(maker.make(self._sessions[ROOT]) for maker in self.makers)
        for session in self._sessions.values():
            session.gate.post(self._guards)
        self.counts_prompts = any(isinstance(guard, BudgetGuard) for guard in self._guards)
        """Whether a switch depends on the length of prompts."""
        self._start_us = recording.records[0].ts
        self._now_s = 0.0
        self._record = recording.records[0]
        self._caps: dict[Attempt, int] = {}

    @property
    def lasted_s(self) -> float:
        """Seconds from the first event to the last."""
        return max(0, max(record.ts for record in self.recording.records) - self._start_us) / 1e6

    async def run(self) -> str | None:
        """Follow the recording up to where a switch would have ended the run; return why the outcome is unknown, if it is."""
        try:
            for maker in self.makers:
                for session in self._sessions.values():
                    if maker.check is not None:
                        await maker.check(session.model.adapter)
            await self._see_all()
        except (_OverError, UsageError) as over:  # a live run does not start with a switch that raises
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
        """Return the tool of a call that reached the guards, or None if the kernel refused the call before."""
        spec = self.tools[owner].get(call.tool)
        if spec is None and completed is not None and completed.ok:
            return ToolSpec(name=call.tool)  # it ran, so there was one
        if spec is None or not isinstance(call.args, dict):
            return None
        if completed is not None and completed.ended == "refused":
            return spec if completed.error is not None and completed.error.type == BY_GUARD else None
        return spec

    def cost_of(self, owner: str, answer: LlmResponded) -> float | None:
        """Return the US dollars of an answer: as recorded, or by known or given prices."""
        if answer.cost_usd is not None:
            return answer.cost_usd
        if answer.usage.of_answer().unknown:
            return None
        session, prices = self._sessions[owner], self._sessions[owner].header.prices
        for guard in self._guards:
            if isinstance(guard, BudgetGuard) and guard.budget.max_cost_usd is not None:
                prices = guard.prices_of(session)
        return None if prices is None else cost_of(answer.usage, prices) / 1e15

    def _session(self, owner: OwnerRecording) -> Session:
        """Return the session that guards see: its agent, model and place.

        Raises:
            NotATraceError: the recording does not say which agent it is.
        """
        name, above = owner.owner, owner.owner
        while above and above not in self._sessions:
            above = parent_of(above)
        own = {spec.name: spec for spec in owner.own_tools.values()}
        if isinstance(owner.started, (RunStarted, AgentStarted)):
            header = owner.started.agent
        elif above:  # a tool's body has the model and tools of its agent
            header, own = self._sessions[above].header, {**self.tools[above], **own}
        else:
            raise NotATraceError(f"the recording does not say which agent {name} is")
        self.tools[name] = own
        return _Session(self._run, header, name)

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

    async def _begin_turn(self, session: Session, turn: int | None) -> None:
        """Call the hooks before a turn of the root agent, at the first event of that turn."""
        before, is_root = session.at.iteration, session.owner == ROOT
        session.at.enter_iteration(before if turn is None and is_root else turn)
        if turn is None or not is_root or self._hooks is None or (before is not None and turn <= before):
            return
        said = await self._hooks.ask(session, "think", "before", cast("Any", None))
        if said is not None and isinstance(said.answer, (StopAnswer, Terminate)) and said.answer.switch is not None:
            self._end(session, said.answer.switch, said.answer, "phase")

    async def _request(self, session: Session, event: LlmRequested) -> None:
        recorded = self.recording.owners[session.owner]
        # A request names the whole thread, and only budgets look at it.
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
                    f"request {event.request} of {session.owner} would have waited for others beside it, and live their "
                    "order may differ"
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
                    f"the answer to {where} would have been cut at {cap:,} tokens; it has {length:,}, and what "
                    "would have come of that cannot be told"
                )
            # Where the provider counts nothing, a live budget counts what it had reserved; an import does not say that.
            imported = self.recording.header.imported is not None
            if self.counts_prompts and event.usage.of_answer().unknown and (imported or (cap and length <= 0)):
                raise _OverError(
                    f"the tokens of the answer to {where} are not recorded, so what a budget would have done cannot be told"
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
                raise _OverError(
                    f"at call {event.call_id} of the tool {event.tool} by {session.owner}: {answer.why}; "
                    "what would have come of that cannot be told"
                )
            if answer is not None:
                self._end(session, guard.name, answer, "call", **where)

    def _end(self, session: Session, switch: str, answer: StopAnswer | Terminate, at: Any, **where: Any) -> NoReturn:  # noqa: ANN401
        """End the backtest where a switch would have ended the run."""
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


class _Session(Session):
    """An agent of the recording, as guards see it: behind its one port nobody answers."""

    def __init__(self, run: RunContext, header: AgentHeader, owner: str) -> None:
        super().__init__(run, header, owner, for_tool=lambda caller, _: caller)
        self.model = cast("Any", SimpleNamespace(adapter=_Model(header)))


class _Model:
    """What the recording knows of a model: it counts no tokens, so prompts are estimated."""

    def __init__(self, header: AgentHeader) -> None:
        self.name = header.model
        self._prices = header.prices

    async def prices(self) -> Prices | None:
        """Return the recorded prices."""
        return self._prices


def _figures(course: _Course, since: int, seconds: float) -> Figures:
    """Return the figures of what began at or after an event."""
    spent, requests, calls = Spent(), set[Attempt](), 0
    for record in course.recording.records[since:]:
        owner, event = record.owner, record.event
        match event:
            case LlmRequested():
                requests.add((owner, event.request, event.attempt))
            case LlmResponded() if (owner, event.request, event.attempt) in requests:
                spent.take(event.model_copy(update={"cost_usd": course.cost_of(owner, event)}))
            case ToolCallStarted():
                completed = course.recording.owners[owner].calls[event.call_id].completed
                spec = course.spec_of(owner, event, completed)
                calls += spec is not None and spec.kind != "meta" and (completed is None or completed.end.body_ran)
    return Figures(
        tokens=spent.usage.known(spent.usage.total_tokens),
        usage_unknown=spent.usage.unknown or 0,
        cost_usd=spent.priced_usd if spent.unpriced else spent.priced_usd or 0.0,
        cost_unknown=spent.unpriced > 0,
        requests=len(requests),
        calls=calls,
        seconds=max(0.0, seconds),
    )
