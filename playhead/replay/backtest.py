"""What killswitches would have done in a recorded run.

The guards of the live run are asked themselves, about what the recording says was asked, in its order. What a recording
cannot know is said, and never taken as nothing: what a model would have answered otherwise, or a person allowed.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from playhead.errors import NotATraceError, UsageError, nearest
from playhead.kernel.lifecycle.threads import run_blocking
from playhead.replay.backtest_figures import figures_of
from playhead.replay.backtest_model import RunBacktest, Summary
from playhead.replay.backtest_play import Play
from playhead.replay.backtest_session import may_be_counted
from playhead.trace.events.run import ANSWERED
from playhead.trace.parameters import unrecorded

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from playhead.compose.killswitches.expressions import SwitchExpression
    from playhead.trace.recording import Recording

_NO_END = "the file has no end, and no switch fires in what it holds"


def backtest(recording: Recording, switches: Sequence[SwitchExpression]) -> RunBacktest:
    """Return what these killswitches, stacked in this order on the root agent, would have done in a recorded run.

    What the run's own switches and hooks did stands: the ones given are beside them.

    >>> backtest(read_reference("latest"), [parse_switch("budget_limit(max_tokens=20000)")])  # doctest: +SKIP
    """
    ending = recording.ending
    well = ending is not None and ending.status == "done" and ending.terminated_by in ANSWERED
    common: dict[str, Any] = {
        "run_id": recording.run_id,
        "path": str(recording.path),
        "status": None if ending is None else ending.status,
        "ended_by": None if ending is None else ending.terminated_by,
        "ended_well": well,
    }
    if recording.status == "damaged":
        return RunBacktest(**common, verdict="unknown", why_unknown="the file is damaged")
    return RunBacktest(**common, **_judged(recording, switches, ended_well=well))


def _judged(recording: Recording, switches: Sequence[SwitchExpression], *, ended_well: bool) -> dict[str, Any]:
    try:
        play = Play(recording, [each.block for each in switches])
        why_not = run_blocking(lambda: _why_not(play))
        if why_not is None:
            run_blocking(play.run)
            return _outcome(play, ended_well=ended_well)
    except NotATraceError as error:
        why_not = str(error)
    except (ArithmeticError, ValueError):
        why_not = "it holds figures that nobody can count with"
    return {"verdict": "unknown", "why_unknown": why_not}


def _outcome(play: Play, *, ended_well: bool) -> dict[str, Any]:
    took, saved = figures_of(play)
    found: dict[str, Any] = {"took": took, "asked": play.asked, "notes": tuple(_notes(play))}
    if play.uncounted and not (play.stop is not None and play.stop.recorded):
        return {**found, "verdict": "unknown", "why_unknown": _uncounted(play)}
    if play.stop is not None:
        return {**found, "verdict": "stopped", "stop": play.stop, "saved": saved, "lost": ended_well}
    if play.change is not None:
        return {**found, "verdict": "changed", "change": play.change}
    if play.recording.ending is None:
        return {**found, "verdict": "unknown", "why_unknown": _NO_END}
    return {**found, "verdict": "untouched"}


def _uncounted(play: Play) -> str:
    first, count = play.uncounted[0], len(play.uncounted)
    answers = "1 answer" if count == 1 else f"{count:,} answers"
    return (
        f"the tokens of {answers} are not recorded, first of request {first.request} of {first.owner}: "
        "what a budget would have counted there, and done, cannot be told"
    )


async def _why_not(play: Play) -> str | None:
    """Return why a live run would not have begun with these switches; whoever cannot guard then, cannot tell now."""
    for session in play.sessions.values():
        for maker in play.makers:
            if maker.check is None:
                continue
            try:
                await maker.check(session.model.adapter)
            except UsageError as error:
                return str(error)
    return None


def _notes(play: Play) -> Iterator[str]:
    recording = play.recording
    header, ending = recording.header, recording.ending
    if play.own_end is not None:
        yield f"the run was ended by {play.own_end}, which it had itself; what would have come after that is not known"
    if header.replay_of is not None:
        yield f"a replay of {header.replay_of}: recorded results take no time, so its times are not those of that run"
    if header.redacted and play.counts_prompts:
        yield "its texts were redacted: prompts are counted as they stand there"
    if any(unrecorded(header.agent.parameters)) and play.counts_prompts:
        yield "some of its request parameters are not recorded: prompts are counted without them"
    if any(session.used_counts and may_be_counted(session.header) for session in play.sessions.values()):
        yield "prompts are taken to be as long as the server of one's own counted them; live, one that cannot count in advance is estimated"
    if recording.status == "truncated":
        yield "the file is cut off: what came after is not known"
    if ending is not None and ending.lost_events:
        yield f"{ending.lost_events:,} events could not be written: what they say is not counted"
    if play.waited:
        times = f"{play.waited} requests" if play.waited > 1 else "1 request"
        yield f"{times} would have waited for others to be settled; live, their order may differ"
    known = {name for session in play.sessions.values() for name in session.tools}
    for name in play.tools_without_a_guard(known):
        yield f"no agent that ran had a tool {name!r}.{nearest(name, known)}"


class BacktestFold:
    """Takes the backtests of runs one by one, and keeps figures only."""

    def __init__(self, switches: Sequence[SwitchExpression]) -> None:
        self._switches = tuple(each.text for each in switches)
        self._counts: dict[str, int] = defaultdict(int)
        self._took = Summary(switches=()).took
        self._saved = self._took

    def add(self, run: RunBacktest) -> None:
        """Count a run."""
        counts = self._counts
        counts["runs"] += 1
        counts[run.verdict] += 1
        if run.verdict == "unknown":
            return
        counts["ended_well"] += run.ended_well
        counts["lost"] += run.lost
        counts["changed_well"] += run.verdict == "changed" and run.ended_well
        self._took += run.took
        self._saved += run.saved

    @property
    def judged(self) -> int:
        """Runs of which something could be said."""
        return self._counts["runs"] - self._counts["unknown"]

    def summary(self) -> Summary:
        """Return what came of all of them."""
        figures = {"took": self._took, "saved": self._saved}
        return Summary.model_validate({"switches": self._switches, **self._counts, **figures})


def summarise_backtests(runs: Iterable[RunBacktest], switches: Sequence[SwitchExpression]) -> Summary:
    """Return what the backtests of several runs come to."""
    fold = BacktestFold(switches)
    for run in runs:
        fold.add(run)
    return fold.summary()
