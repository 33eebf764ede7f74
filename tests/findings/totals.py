"""What a run spent, as everybody tells it, and a model that keeps its own books."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from playhead import load_recording
from playhead.diagnose.debrief import build_debrief
from playhead.diagnose.diff import diff_recordings
from playhead.diagnose.statistics import run_statistics
from playhead.errors import ModelError
from playhead.testing import ScriptedModel
from playhead.trace.store import summarise
from playhead.trace.types import Usage

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.agent.result import RunResult
    from playhead.trace.types import Completion, Prices, Request


class Told(NamedTuple):
    """Tokens in and out, of how many attempts they are not known, US dollars, and of how many attempts those are not."""

    tokens_in: int
    tokens_out: int
    unknown: int
    cost_usd: float | None
    cost_unknown: int


def told_by_all(path: Path | None, result: RunResult | None = None) -> dict[str, Told]:
    """Return what each of those who tell a run's totals says; a number that is not known at all counts as 0."""
    assert path is not None
    recording = load_recording(path)
    figures, metrics = run_statistics([recording]), build_debrief(recording).metrics
    side, listed = diff_recordings(recording, recording).original, summarise(path)
    told = {
        "answers": _of_answers(recording),
        "stats": Told(
            figures.tokens_in or 0, figures.tokens_out or 0, figures.usage_unknown, figures.cost_usd or 0.0, figures.cost_unknown
        ),
        "debrief": Told(
            metrics.tokens_in or 0, metrics.tokens_out or 0, metrics.usage_unknown, metrics.cost_usd, metrics.cost_unknown
        ),
        "diff": Told(
            side.tokens_in or 0, side.tokens_out or 0, side.usage_unknown, side.cost_usd, side.cost_unknown
        ),
    }  # fmt: skip
    for name, ended in (("file", recording.ending), ("result", result)):
        if ended is not None:
            usage = ended.usage
            told[name] = Told(
                usage.input_tokens, usage.output_tokens, usage.unknown or 0, ended.cost_usd, ended.cost_unknown or 0
            )
    total = told["stats"]
    assert (listed.total_tokens or 0, listed.usage_unknown) == (total.tokens_in + total.tokens_out, total.unknown)
    told["list"] = total._replace(cost_usd=listed.cost_usd, cost_unknown=listed.cost_unknown)
    return told


def total_of(path: Path | None, result: RunResult | None = None) -> Told:
    """Return the total of a run, on which everybody who tells it agrees."""
    told = told_by_all(path, result)
    assert set(told.values()) == {told["answers"]}, told
    return told["answers"]


def _of_answers(recording: Any) -> Told:
    """Add up the file's attempts by hand."""
    tokens_in = tokens_out = unknown = cost_unknown = 0
    cost = 0.0
    for owner in recording.owners.values():
        for exchange in owner.exchanges:
            outcome = exchange.outcome
            usage = None if outcome is None else outcome.usage
            unknown += 1 if usage is None else usage.unknown or 0
            tokens_in += 0 if usage is None else usage.input_tokens
            tokens_out += 0 if usage is None else usage.output_tokens
            cost += 0.0 if outcome is None else outcome.cost_usd or 0.0
            cost_unknown += outcome is None or outcome.cost_usd is None
    return Told(tokens_in, tokens_out, unknown, cost, cost_unknown)


@dataclass
class Billed(ScriptedModel):
    """A scripted model that costs a quarter of a dollar a time, and notes what it was paid for, as a provider does."""

    paid_in: int = 0
    paid_out: int = 0
    sent: list[int] = field(default_factory=list)

    async def complete(self, request: Request) -> Completion:
        """Answer, and note it."""
        self.sent.append(request.number)
        try:
            answer = await super().complete(request)
        except ModelError as failure:
            self._pay(getattr(failure, "usage", Usage()))
            raise
        self._pay(answer.usage)
        return replace(answer, cost_usd=0.25)

    async def prices(self) -> Prices | None:
        """Return that what an attempt without an answer costs is not known."""
        return None

    def _pay(self, usage: Usage) -> None:
        counts = [count if type(count) is int else 0 for count in (usage.input_tokens, usage.output_tokens)]
        self.paid_in += counts[0]
        self.paid_out += counts[1]
