"""What commands that import say of each run."""

from __future__ import annotations

import errno
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from playhead.diagnose.terminal import Line
from playhead.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playhead.importing import ImportedRun

STYLES: Final = {"full": "bold green", "tools-only": "bold yellow", "not": "bold red"}
MEANING: Final = {
    "full": "it can be replayed",
    "tools-only": "its tools can be replayed, nothing can be concluded",
    "not": "it cannot be replayed",
}
OUTCOMES: Final = {
    "imported": "imported",
    "replaced": "imported anew",
    "already-imported": "already imported",
    "no-run": "not imported: no span is an agent, a model call or a tool call",
    "differs": "not imported: a run of this id was recorded from other spans",
}

UNCHANGED: Final = ("differs", "no-run")
"""Outcomes after which there is no recording of these spans."""
_NOT_THERE: Final = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST)
"""Errors of a folder in which nobody can write, or that is none."""


@contextmanager
def writing_in(folder: Path) -> Iterator[None]:
    """Say of a folder in which no recording can be written that it is one, and what to do."""
    try:
        yield
    except OSError as error:
        if error.errno not in _NOT_THERE:
            raise
        raise UsageError(
            f"no recordings can be written in {folder} ({error.strerror}): --trace-dir names another folder"
        ) from None


def run_lines(run: ImportedRun) -> Iterator[Line]:
    """Yield what became of a run, and what a replay can do with it."""
    source, level = run.source, run.replayability
    spans = f"{source.spans:,} spans" + (f" of {source.service}" if source.service else "")
    yield Line(
        (f"{run.run_id}: ", "bold"), OUTCOMES[run.outcome], f" ({spans})" if run.outcome not in UNCHANGED else ""
    )
    if run.kept is not None:
        yield Line("   kept     ", f"the recording before, which holds what these spans do not: {run.kept}")
    if run.outcome in UNCHANGED:
        return
    yield Line("   replay   ", (level, STYLES[level]), f": {MEANING[level]}")
    for reason in source.reasons:
        yield Line(("   because  ", "yellow"), reason)
    for note in source.notes:
        yield Line(("   note     ", "dim"), note)


def run_as_json(run: ImportedRun) -> dict[str, Any]:
    """Return the same as JSON."""
    return {
        "run_id": run.run_id,
        "path": str(run.path),
        "outcome": run.outcome,
        "imported": run.source.model_dump(mode="json"),
    }
