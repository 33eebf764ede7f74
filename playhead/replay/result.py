"""What a replay came to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.agent.result import RunResult
    from playhead.diagnose.diff_types import RunDiff
    from playhead.trace.recording import Recording

Verdict = Literal["same", "changed", "inconclusive"]


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """A run that was replayed with something changed, and what became of it."""

    run: RunResult
    """The replay's own run, also when it failed or was stopped."""
    recording: Recording
    """The replay's own events; in its trace too, unless it was not traced."""
    diff: RunDiff
    """The recorded run beside the replay."""
    verdict: Verdict
    """`same` or `changed`: output, calls, turns and switches of strategy; `inconclusive` when the replay cannot tell.

    `changed` does not say that the override is the cause: a live model may answer otherwise the next time.
    """
    grounded: float | None
    """Share of the calls that got an answer which was recorded for them in the same state of the world, 0 to 1; None
    when the replay made no call."""
    rungs: Mapping[str, int]
    """How many calls got their answer in which way; see `playhead.trace.events.tools.Rung`."""
    stopped: str | None
    """Why the replay ended before its agent did, or None."""
    notes: tuple[str, ...]
    """What a careful reader has to know besides, a sentence each."""
