"""Where killswitches would have stopped a recorded run, and what that would have saved.

The guards of a live run see the recorded requests, calls and answers in their order. What a recording cannot tell makes the
verdict `unknown`: what a model would have answered to another request, or how long a request would have waited.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal, cast

from pydantic import BaseModel

from playhead.compose.harness import Harness
from playhead.compose.killswitches.budget import BudgetGuard
from playhead.compose.killswitches.clock import Clocked
from playhead.compose.killswitches.ledger import cost_of
from playhead.compose.killswitches.output_cap import output_cap
from playhead.diagnose.spending import Spent
from playhead.errors import NotATraceError, nearest
from playhead.kernel.guards import ask_all, stopped, tell
from playhead.kernel.lifecycle.threads import run_blocking
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
from playhead.trace.format import ANSWERED
from playhead.trace.owners import parent_of
from playhead.trace.parameters import unrecorded
from playhead.trace.recorder import Recorder
from playhead.trace.types import ToolCall, ToolSpec

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from playhead.compose.killswitches.expressions import SwitchExpression
    from playhead.trace.events import EventBase
    from playhead.trace.line import Record
    from playhead.trace.recording import Recording


Attempt = tuple[str, int, int]
"""An owner, the number of a request, and which attempt at it."""
Verdict = Literal["untouched", "stopped", "unknown"]
"""`untouched`: no switch fires. `stopped`: one does. `unknown`: the recording does not say enough, or a switch would have
sent the run another way without ending it."""


class Stop(KillswitchFired):
    """What the live run would have recorded of the switch, and where."""

    owner: str
    """The agent or tool body: `root`, `root/researcher@3.0`."""
    turn: int | None
    """Turn of that agent's loop, from 0; None outside of it."""
    seq: int
    """`seq` of the event at which it stops: a request that would not have been sent, a call that would not have run, an answer
    or a result after which nothing would have begun, or the first event after a deadline."""
    after_ms: float
    """Milliseconds from the start of the run."""


class Figures(BaseModel, frozen=True):
    """What a run took, or would not have taken."""

    tokens: int | None = 0
    """Tokens of prompts and answers; None if no count is known."""
    usage_unknown: int = 0
    """Answers whose tokens are not, or not all, known: `tokens` is at least that."""
    cost_usd: float | None = 0.0
    """US dollars, as far as prices are known; None if no price is."""
    cost_unknown: int = 0
    """Answers whose price is not known: `cost_usd` is at least that."""
    requests: int = 0
    """Attempts at requests."""
    calls: int = 0
    """Tool calls that reached their tool."""
    seconds: float = 0.0
    """Seconds."""

    @classmethod
    def of(cls, **sums: Any) -> Figures:  # noqa: ANN401 - the fields
        """Return these figures; a sum of which nothing is known is None."""
        for name, unknown in (("tokens", "usage_unknown"), ("cost_usd", "cost_unknown")):
            if sums[unknown] and not sums[name]:
                sums[name] = None
        return cls(**sums)

    def __add__(self, other: Figures) -> Figures:
        """Return the sum of what is known."""
        mine, others = self.model_dump(), other.model_dump()
        return Figures.of(**{name: (mine[name] or 0) + (others[name] or 0) for name in mine})


class RunBacktest(BaseModel, frozen=True):
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
    why = None if ending else "the file has no end, and no switch fires in what it holds"
    try:
        course = _Course(recording, switches)
        found = {"notes": tuple(_notes(course)), "took": _figures(course)}
        stop = run_blocking(course.run)
        if stop is not None:
            why = None
            found |= {"stop": stop, "saved": _figures(course, stop.seq, stop.after_ms / 1000)}
    except (_UnknownError, NotATraceError) as unknown:
        why = str(unknown)
    except (ArithmeticError, LookupError, ValueError):
        why = "its events do not fit together, or hold figures that cannot be added up"
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


class _FiredError(Exception):
    """A switch fired, and would have ended the run: the session where it did, and what it says."""


class _UnknownError(Exception):
    """The outcome is not known; the message says why."""


def _notes(course: _Course) -> Iterator[str]:
    header, ending = course.recording.header, course.recording.ending
    if ending is not None and ending.terminated_by not in ANSWERED:
        yield f"the run ended by {ending.terminated_by}; what would have come after that is not known"
    if header.replay_of is not None:
        yield f"a replay of {header.replay_of}: recorded results take no time, so its times are not those of that run"
    if course.budgets and (header.redacted or any(unrecorded(header.agent.parameters)) or header.agent.address):
        yield "prompts are counted as recorded, or estimated; redaction, unrecorded parameters or a server may count otherwise"
    if course.recording.status == "truncated" or (ending is not None and ending.lost_events):
        yield "the file does not hold all events of the run; the missing ones do not count"
    known = {name for tools in course.tools.values() for name in tools}
    for name in dict.fromkeys(name for maker in course.makers for name in maker.tools if name not in known):
        yield f"no agent that ran had a tool {name!r}.{nearest(name, known)}"


class _Course:
    """A recorded run that passes the guards of killswitches."""

    def __init__(self, recording: Recording, switches: Sequence[SwitchExpression]) -> None:
        if recording.status == "damaged":
            raise _UnknownError("the file is damaged")
        harness = Harness()
        for each in switches:
            harness.use(each.block)
        self.recording = recording
        self.makers = harness.guards()
        self.tools: dict[str, dict[str, ToolSpec]] = {}
        """The tools of each owner, by name."""
        self._hooks = harness.hooks()
        run = RunContext(recording.run_id, Recorder(SystemClock()), World())
        self._sessions: dict[str, _Session] = {}
        for name, owner in recording.owners.items():
            own = {spec.name: spec for spec in owner.own_tools.values()}
            if owner.started is not None:
                header = owner.started.agent
            else:  # a tool's body has the model and tools of its agent
                header, own = self._sessions[parent_of(name)].header, {**self.tools[parent_of(name)], **own}
            session = _Session(run, header, name, for_tool=lambda caller, _: caller)
            self._sessions[name], self.tools[name] = session, own
        self._guards = tuple(maker.make(self._sessions["root"]) for maker in self.makers)
        for session in self._sessions.values():
            session.gate.post(self._guards)
        self.budgets = [guard for guard in self._guards if isinstance(guard, BudgetGuard)]
        """The switches that look at prompts."""
        self._start_us = recording.records[0].ts
        self.lasted_s = (max(record.ts for record in recording.records) - self._start_us) / 1e6
        """Seconds from the first event to the last."""
        self._now_s = 0.0
        self._turn = -1
        self._caps: dict[Attempt, int] = {}

    async def run(self) -> Stop | None:
        """Follow the recording up to where a switch would have ended the run, and return that place.

        Raises:
            _UnknownError, NotATraceError: what the switches would have done is not known.
        """
        for session in self._sessions.values():
            if any(guard.prices_of(session) is None for guard in self.budgets):
                raise _UnknownError(f"the price of {session.header.model} is not known: give prices= to the budget")
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
        """Return an answer with its US dollars: as recorded, or else by the prices that a switch was given."""
        prices = [each for guard in self.budgets if (each := guard.prices.get(self._sessions[owner].header.model))]
        if answer.cost_usd is not None or answer.usage.of_answer().unknown or not prices:
            return answer
        return answer.model_copy(update={"cost_usd": cost_of(answer.usage, prices[0]) / 1e15})

    async def _see(self, record: Record) -> None:
        session, event = self._sessions[record.owner], record.event
        session.at.enter_iteration(record.iteration)
        if record.owner == "root" and record.iteration is not None and record.iteration > self._turn:
            self._turn = record.iteration
            said = await self._hooks.ask(session, "think", "before", cast("Any", None)) if self._hooks else None
            if said is not None:
                record_steering(said, "think", "before", session)
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
        # A request names the whole thread, and only budgets look at it.
        seen = event if self.budgets else event.model_copy(update={"messages": (), "tools": ()})
        request = self.recording.owners[session.owner].request(seen)
        for guard in self._guards:
            await guard.measure(session, request)
        admitted, waiting = ask_all(session, request)
        if waiting is not None:
            waiting.undo()
            raise _UnknownError(
                f"request {event.request} of {session.owner} would have waited for others beside it, and live their "
                "order may differ"
            )
        for guard in self._guards:
            guard.admitted(session, admitted)
        cap = output_cap(admitted.parameters)
        if cap is not None and cap != output_cap(request.parameters):
            self._caps[session.owner, event.request, event.attempt] = cap

    def _require_same(self, session: Session, event: LlmResponded) -> None:
        """Refuse an answer that the switches would have changed, or of which a budget cannot know the length."""
        cap = self._caps.get((session.owner, event.request, event.attempt))
        where, length = f"request {event.request} of {session.owner}", event.usage.output_tokens
        if cap is not None and length > cap:
            raise _UnknownError(
                f"the answer to {where} would have been cut at {cap:,} tokens; it has {length:,}, and what "
                "would have come of that cannot be told"
            )
        # Where the provider counts nothing, a live budget counts what it had reserved; an import does not say that.
        imported = self.recording.header.imported is not None
        if self.budgets and event.usage.of_answer().unknown and (imported or (cap and length <= 0)):
            raise _UnknownError(
                f"the tokens of the answer to {where} are not recorded, so what a budget would have done cannot be told"
            )

    def _call(self, session: Session, event: ToolCallStarted) -> None:
        done = self.recording.owners[session.owner].calls[event.call_id].completed
        spec = self.tools[session.owner].get(event.tool, ToolSpec(name=event.tool))
        if spec.kind == "meta" or (done is not None and done.ended == "refused"):
            return
        arguments: Any = event.args if isinstance(event.args, dict) else None
        asked = ToolCall(id=event.call_id, name=event.tool, arguments=arguments)
        planned = PlannedCall(asked, event.position, event.source, event.request, event.rationale)
        refused = stopped(session, planned, spec)
        if refused is not None and refused.error is not None:
            raise _UnknownError(
                f"at call {event.call_id} of the tool {event.tool} by {session.owner}: {refused.error.message}; "
                "what would have come of that cannot be told"
            )


class _Session(Session):
    """An agent of the recording, as guards see it: a switch that fires ends the backtest."""

    model = cast("Any", SimpleNamespace(adapter=None))
    """It counts no tokens: prompts are estimated."""

    def emit(self, event: EventBase) -> None:
        """Record nothing; end the backtest where a switch fires before a turn."""
        if isinstance(event, KillswitchFired):
            raise _FiredError(self, event)

    def emit_ending(self, event: EventBase, end: object) -> bool:  # noqa: ARG002
        """End the backtest where a switch fires."""
        self.emit(event)
        return True


def _figures(course: _Course, seq: int = 0, after_s: float = 0.0) -> Figures:
    """Return the figures of what began at or after an event, at this time after the start."""
    spent, requests, calls = Spent(), set[Attempt](), 0
    for record in course.recording.records[seq:]:
        owner, event = record.owner, record.event
        match event:
            case LlmRequested():
                requests.add((owner, event.request, event.attempt))
            case LlmResponded() if (owner, event.request, event.attempt) in requests:
                spent.take(course.price(owner, event))
            case ToolCallStarted():
                spec = course.tools[owner].get(event.tool)
                done = course.recording.owners[owner].calls[event.call_id].completed
                calls += (spec is None or spec.kind != "meta") and (done is None or done.end.body_ran)
    return Figures.of(
        tokens=spent.usage.total_tokens,
        usage_unknown=spent.usage.unknown or 0,
        cost_usd=spent.priced_usd or 0.0,
        cost_unknown=spent.unpriced,
        requests=len(requests),
        calls=calls,
        seconds=max(0.0, course.lasted_s - after_s),
    )
