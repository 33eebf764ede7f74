"""Find where killswitches would have stopped a recorded run, and what that would have saved.

The killswitches' guards process the recorded requests, calls and answers in order. The verdict is `unknown` if it depends
on something that the recording cannot show, such as a model's answer to a different request or a request's waiting time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel

from playhead.compose.killswitches.guarded_recording import Attempt, GuardedRecording, Stop, UnknownOutcomeError
from playhead.diagnose.spending import Spent
from playhead.errors import NotATraceError, nearest
from playhead.kernel.lifecycle.threads import run_blocking
from playhead.trace.events import LlmRequested, LlmResponded, ToolCallStarted
from playhead.trace.format import ANSWERED
from playhead.trace.parameters import unrecorded

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from playhead.compose.killswitches.expressions import SwitchExpression
    from playhead.diagnose.recording import Recording


Verdict = Literal["untouched", "stopped", "unknown"]
"""`untouched`: no switch fires. `stopped`: a switch fires. `unknown`: the recording lacks information, or a switch would
have changed the run without ending it."""


class Figures(BaseModel, frozen=True):
    """The resources that a run used or would have saved."""

    tokens: int | None = 0
    """Tokens of prompts and answers; None if no count is known."""
    usage_unknown: int = 0
    """The number of answers with unknown tokens. If it is not 0, `tokens` is a lower bound."""
    cost_usd: float | None = 0.0
    """The known cost in US dollars; None if no price is known."""
    cost_unknown: int = 0
    """The number of answers with an unknown price. If it is not 0, `cost_usd` is a lower bound."""
    requests: int = 0
    """Attempts at requests."""
    calls: int = 0
    """Tool calls that reached the tool."""
    seconds: float = 0.0
    """Seconds."""

    def __add__(self, other: Figures) -> Figures:
        """Return the sum of the known figures; None where nothing is known."""
        sums = {name: (figure or 0) + (getattr(other, name) or 0) for name, figure in self}
        for name, unknown in (("tokens", "usage_unknown"), ("cost_usd", "cost_unknown")):
            sums[name] = sums[name] or (None if sums[unknown] else 0)
        return Figures(**sums)


class RunBacktest(BaseModel, frozen=True):
    """The effect that the switches would have had on one run."""

    kind: Literal["run"] = "run"
    run_id: str
    """The run."""
    path: str
    """Its file."""
    status: str | None = None
    """The recorded status, `done` or `failed`; None if the file has no end."""
    ended_by: str | None = None
    """The recorded reason code of the end."""
    ended_well: bool = False
    """Whether the run ended with the model's answer."""
    verdict: Verdict = "untouched"
    """The effect of the switches."""
    stop: Stop | None = None
    """The point at which the run would have stopped."""
    why_unknown: str | None = None
    """The reason for an `unknown` verdict."""
    lost: bool = False
    """Whether the run ended well but would have been stopped."""
    took: Figures = Figures()
    """What the run took."""
    saved: Figures = Figures()
    """The part of `took` that began after the stop. Work in flight at the stop does not count."""
    notes: tuple[str, ...] = ()
    """Further notes on the result."""


class Summary(BaseModel):
    """The total effect of the switches on all added runs. It stores only figures, so its size is constant."""

    kind: Literal["summary"] = "summary"
    switches: tuple[str, ...]
    """The switches, as written."""
    runs: int = 0
    """Runs added."""
    untouched: int = 0
    """The number of runs in which no switch fires."""
    stopped: int = 0
    """The number of runs that would have been stopped."""
    unknown: int = 0
    """The number of runs with an unknown outcome."""
    ended_well: int = 0
    """The number of judged runs that ended well."""
    lost: int = 0
    """The number of those that would have been stopped."""
    took: Figures = Figures()
    """The resources that all judged runs used."""
    saved: Figures = Figures()
    """The resources that the stopped runs would have saved."""

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
    """Compute the effect of these killswitches, stacked in this order on the root agent, on a recorded run.

    The effects of the run's own switches and hooks stay as recorded.

    >>> backtest(load_recording("latest"), [parse_switch("budget_limit(max_tokens=20000)")])  # doctest: +SKIP
    """
    ending, found = recording.ending, dict[str, Any]()
    why = None if ending else "the file has no end, and no switch fires in what it holds"
    if ending is not None:
        well = ending.status == "done" and ending.terminated_by in ANSWERED
        found = {"status": ending.status, "ended_by": ending.terminated_by, "ended_well": well}
    try:
        guarded = GuardedRecording(recording, [each.block for each in switches])
        found |= {"notes": tuple(_notes(guarded)), "took": _figures(guarded)}
        stop = run_blocking(guarded.run)
        if stop is not None:
            saved, why = _figures(guarded, stop.seq, stop.after_ms / 1000), None
            found |= {"verdict": "stopped", "stop": stop, "saved": saved, "lost": found.get("ended_well", False)}
    except (UnknownOutcomeError, NotATraceError) as unknown:
        why = str(unknown)
    except (ArithmeticError, LookupError, ValueError):
        why = "its events do not fit together, or hold figures that cannot be added up"
    if why is not None:
        found |= {"verdict": "unknown", "why_unknown": why}
    return RunBacktest(run_id=recording.run_id, path=str(recording.path), **found)


def _notes(guarded: GuardedRecording) -> Iterator[str]:
    header, ending = guarded.recording.header, guarded.recording.ending
    if ending is not None and ending.terminated_by not in ANSWERED:
        yield f"the run ended by {ending.terminated_by}; what would have come after that is not known"
    if header.replay_of is not None:
        yield f"a replay of {header.replay_of}: recorded results take no time, so its times are not those of that run"
    if guarded.budgets and (header.redacted or any(unrecorded(header.agent.parameters)) or header.agent.address):
        yield "prompts are counted as recorded, or estimated; redaction, unrecorded parameters or a server may count otherwise"
    if guarded.recording.status == "truncated" or (ending is not None and ending.lost_events):
        yield "the file does not hold all events of the run; the missing ones do not count"
    known = {name for tools in guarded.tools.values() for name in tools}
    for name in dict.fromkeys(name for maker in guarded.makers for name in maker.tools if name not in known):
        yield f"no agent that ran had a tool {name!r}.{nearest(name, known)}"


def _figures(guarded: GuardedRecording, seq: int = 0, after_s: float = 0.0) -> Figures:
    """Return the figures for everything that began at or after an event, at this time after the start."""
    spent, requests, calls = Spent(), set[Attempt](), 0
    for record in guarded.recording.records[seq:]:
        owner, event = record.owner, record.event
        match event:
            case LlmRequested():
                requests.add((owner, event.request, event.attempt))
            case LlmResponded() if (owner, event.request, event.attempt) in requests:
                spent.take(guarded.price(owner, event))
            case ToolCallStarted():
                spec = guarded.tools[owner].get(event.tool)
                done = guarded.recording.owners[owner].calls[event.call_id].completed
                calls += (spec is None or spec.kind != "meta") and (done is None or done.end.body_ran)
    return Figures(
        tokens=spent.usage.known(spent.usage.total_tokens),
        usage_unknown=spent.usage.unknown or 0,
        cost_usd=spent.total().cost_usd,
        cost_unknown=spent.unpriced,
        requests=len(requests),
        calls=calls,
        seconds=max(0.0, guarded.lasted_s - after_s),
    )
