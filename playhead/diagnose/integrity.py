"""Verify the integrity of a trace: hash chain, order, blobs and end."""

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
    """The run id in the file."""
    verdict: Verdict
    """`ok`: closed and unchanged. `open`: sound, but without an end. `other-run`: `ok` or `open`, but not the expected
    run. The other values name the problem."""
    events: int
    """The number of readable events."""
    head: str | None
    """The hash of the last event; None if the file is damaged, cut off or of another run. Store it elsewhere: without it,
    removing whole lines from the end or rehashing a changed file cannot be detected."""
    lost: int
    """The number of events that could not be written, according to the file."""
    erased: int
    """The number of lines with content erased on request."""
    unredacted: bool
    """Whether the run was recorded with `redact=None`, so that credentials were written as they are."""
    problems: tuple[Problem, ...]
    """All problems, in file order. Reading stops after 1,000 problems."""

    @property
    def ok(self) -> bool:
        """Whether the trace is closed, complete and unchanged."""
        return self.verdict == "ok"


def check_trace(path: str | Path, head: str | None = None, expected_run: str | None = None) -> Check:
    """Verify a trace. `head` is the expected hash of the last event, `expected_run` the expected run id.

    Raises:
        TraceNotFoundError, NotATraceError, TraceFormatError: the file cannot be read as a trace.
    """
    path = Path(path).expanduser()
    problems: list[Problem] = []
    last: Record | None = None
    run_id, events, closed, unredacted = None, 0, False, False
    for item in scan(path):
        if isinstance(item, Problem):
            problems.append(item)
            continue
        last, events = item, events + 1
        if isinstance(item.event, RunStarted):
            run_id, unredacted = item.event.run_id, item.event.redaction == "off"
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
    sound = found if verdict in _SOUND else None
    return Check(path, run_id, verdict, events, sound, lost, erased, unredacted, tuple(problems))


_SOUND: Final = ("ok", "open", "lost-events")
"""Verdicts on files in which every line is unchanged."""
_VERDICTS: Final[dict[tuple[ProblemKind, ...], Verdict]] = {
    ("truncated",): "truncated",
    ("erased",): "erased",
    ("erased", "lost-events"): "erased",
    ("blob", "erased"): "missing-blob",
    ("blob",): "missing-blob",
    ("lost-events",): "lost-events",
    ("lost-events", "truncated"): "lost-events",
}
"""Verdicts on files without any other kind of problem."""
