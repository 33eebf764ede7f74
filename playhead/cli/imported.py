"""What commands that import say of each run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from playhead.diagnose.terminal import Line

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    "already-imported": "already imported, and the same",
    "no-run": "not imported: no span is an agent, a model call or a tool call",
    "differs": "not imported: a run of this id was recorded from other spans; --replace imports it anew",
}


def run_lines(run: ImportedRun) -> Iterator[Line]:
    """Yield what became of a run, and what a replay can do with it."""
    source, level = run.source, run.replayability
    spans = f"{source.spans:,} spans" + (f" of {source.service}" if source.service else "")
    yield Line((f"{run.run_id}: ", "bold"), OUTCOMES[run.outcome], f" ({spans})" if run.outcome != "differs" else "")
    if run.outcome in ("differs", "no-run"):
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
