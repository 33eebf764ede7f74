"""Is a trace what was written? The chain, the order, the blobs, the end."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from playhead.trace.events import RunCompleted, RunStarted
from playhead.trace.reader import Problem, ProblemKind, scan

if TYPE_CHECKING:
    from playhead.trace.line import Record

Verdict = Literal[
    "ok", "open", "truncated", "lost-events", "missing-blob", "erased", "damaged", "other-run", "other-head"
]


@dataclass(frozen=True, slots=True)
class Check:
    """The outcome of `check_trace`."""

    path: Path
    """The file."""
    run_id: str | None
    """The run that the file says it holds."""
    verdict: Verdict
    """`ok`: closed and unchanged. `open`: sound, but without an end. `other-run`: either of them, but not the run that
    it should be. The others name what is wrong."""
    events: int
    """Events that could be read."""
    head: str | None
    """Hash of the last event of a sound file; None for one that is damaged, cut off or not what it should be. Keep it
    elsewhere: cutting off whole lines, or hashing a changed file anew, shows only against it."""
    lost: int
    """Events that the writer could not write, as the file shows or says."""
    erased: int
    """Lines of which something was erased on request."""
    problems: tuple[Problem, ...]
    """Everything that is wrong, in the order of the file; what stands behind 1,000 problems is not read."""

    @property
    def ok(self) -> bool:
        """Whether the trace is closed, complete and unchanged."""
        return self.verdict == "ok"


def check_trace(path: str | Path, head: str | None = None, expected_run: str | None = None) -> Check:
    """Verify a trace; with `head`, that it ends in this hash; with `expected_run`, that it holds the run of this id.

    Raises:
        TraceNotFoundError, NotATraceError, TraceFormatError: it cannot be read as a trace at all.
    """
    path = Path(path).expanduser()
    problems: list[Problem] = []
    last: Record | None = None
    run_id, events, closed = None, 0, False
    for item in scan(path):
        if isinstance(item, Problem):
            problems.append(item)
            continue
        last, events = item, events + 1
        if isinstance(item.event, RunStarted):
            run_id = item.event.run_id
        closed = closed or isinstance(item.event, RunCompleted)
    found = last.h if last else ""
    kinds = tuple(sorted({problem.kind for problem in problems}))
    verdict = _VERDICTS.get(kinds, "damaged") if kinds else "ok" if closed else "open"
    if verdict in {"ok", "open"} and expected_run not in {None, run_id}:
        verdict = "other-run"
    lost = sum(problem.events for problem in problems if problem.kind == "lost-events")
    erased = sum(problem.kind == "erased" for problem in problems)
    if head is not None and head != found:
        verdict = "other-head"
    return Check(path, run_id, verdict, events, found if verdict in _SOUND else None, lost, erased, tuple(problems))


_SOUND: Final = ("ok", "open", "lost-events")
"""Verdicts on files in which every line is what was written."""
_VERDICTS: Final[dict[tuple[ProblemKind, ...], Verdict]] = {
    ("truncated",): "truncated",
    ("erased",): "erased",
    ("blob",): "missing-blob",
    ("lost-events",): "lost-events",
    ("lost-events", "truncated"): "lost-events",
}
"""Verdicts on files in which no other kind of problem was found."""
