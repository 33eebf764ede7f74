"""What a backtest says: of each run where switches would have stopped it, and of all what that would have meant."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict

from playhead.kernel.guards import Place

Verdict = Literal["untouched", "stopped", "unknown"]
"""`untouched`: no switch fires. `stopped`: one does. `unknown`: the recording does not say enough, or a switch would not have
ended the run but sent it another way."""


class Value(BaseModel):
    """A part of the answer."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, ser_json_inf_nan="constants")


class Stop(Value):
    """How and where a switch would have ended a run."""

    switch: str
    """The switch."""
    reason: str
    """What it would have found."""
    on_trigger: Literal["stop", "terminate"]
    """Whether the run would have counted as done or as failed."""
    at: Place | Literal["phase", "outside"]
    """Before a request, a call or a turn (`phase`), at a denied approval, after an answer or a result, or from outside."""
    owner: str
    """The agent, or what a tool's body did: `root`, `root/researcher@3.0`."""
    turn: int | None = None
    """Turn of that agent's loop, from 0; None outside of it."""
    request: int | None = None
    """The request to the model, when it is at one."""
    attempt: int | None = None
    """Which attempt at that request."""
    call_id: str | None = None
    """The tool call, when it is at one."""
    tool: str | None = None
    """Its tool."""
    seq: int
    """`seq` of the event at which it is: a request that would not have been sent, a call that would not have run, an answer or
    a result after which nothing would have begun, or the first event after a time was over."""
    after_ms: float
    """Milliseconds from the start of the run."""
    recorded: bool = False
    """Whether the run had this very switch, and it fired there."""


class Figures(Value):
    """What a run took, or would not have taken."""

    tokens: int | None = 0
    """Tokens of answers, prompts and answers together; None when nothing is known of them."""
    usage_unknown: int = 0
    """Answers whose tokens nobody counted, or not those of the prompt: `tokens` is at least that."""
    cost_usd: float | None = 0.0
    """US dollars, as far as prices are known; None when none is."""
    cost_unknown: bool = False
    """Whether there are answers without a known price beside those."""
    requests: int = 0
    """Attempts at requests."""
    calls: int = 0
    """Tool calls that reached their tool."""
    seconds: float = 0.0
    """Seconds."""

    def __add__(self, other: Figures) -> Figures:
        """Return the sum; tokens and costs that are not known add nothing but that."""
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
    """`done` or `failed` as it was recorded; None when the file has no end."""
    ended_by: str | None
    """The reason code of that."""
    ended_well: bool = False
    """Whether the model itself said what the answer is."""
    verdict: Verdict
    """What the switches would have done."""
    stop: Stop | None = None
    """Where it would have stopped, when it would have."""
    why_unknown: str | None = None
    """Why nothing can be said, when that is so."""
    lost: bool = False
    """Whether it ended well, and would have been stopped before."""
    took: Figures = Figures()
    """What the recording says that the run took."""
    saved: Figures = Figures()
    """What of that comes after the stop. What was in flight then is not counted as saved."""
    notes: tuple[str, ...] = ()
    """What else has to be known."""


class Summary(BaseModel):
    """What the switches would have done in all of the runs that were added: figures only, however many there are."""

    model_config: ClassVar[ConfigDict] = ConfigDict(ser_json_inf_nan="constants")

    kind: Literal["summary"] = "summary"
    switches: tuple[str, ...]
    """The switches, as they were written."""
    runs: int = 0
    """Runs that were looked at."""
    untouched: int = 0
    """Runs in which no switch fires."""
    stopped: int = 0
    """Runs that would have been stopped."""
    unknown: int = 0
    """Runs of which nothing can be said."""
    ended_well: int = 0
    """Runs, of those that could be judged, that ended well."""
    lost: int = 0
    """Runs of these that would have been stopped before."""
    took: Figures = Figures()
    """What all judged runs took."""
    saved: Figures = Figures()
    """What would have been saved, by the stopped ones."""

    def add(self, run: RunBacktest) -> None:
        """Count a run."""
        self.runs += 1
        setattr(self, run.verdict, getattr(self, run.verdict) + 1)
        if run.verdict != "unknown":
            self.ended_well += run.ended_well
            self.lost += run.lost
            self.took += run.took
            self.saved += run.saved
