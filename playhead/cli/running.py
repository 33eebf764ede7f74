"""What `run` and `replay` share: an agent at work, told while it works, and a failure that says where its trace is."""

from __future__ import annotations

import warnings
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVar

from playhead.cli import exits, options
from playhead.cli.output import note, text_console, write_json
from playhead.cli.progress import Progress
from playhead.cli.result import result_as_json
from playhead.errors import PlayheadError, TraceError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playhead.agent.result import RunResult

Reached = TypeVar("Reached")
LOG_WIDTH: Final = 160
"""Cells of a line of progress that goes to no terminal."""


def run_told(start: Callable[[Progress], Reached], trace_dir: Path | None, *, as_json: bool) -> Reached:
    """Return what `start` reaches, which hands every event of its run to the progress it is given.

    A failure, Ctrl-C and SIGTERM say where the trace is, and as JSON what was reached; then they go on.
    """
    # A run that is interrupted at its start leaves litellm's request behind, not awaited: that is nobody's mistake.
    warnings.filterwarnings("ignore", r"coroutine '[\w.]*completion' was never awaited", RuntimeWarning)
    progress = Progress(text_console(stderr=True, pipe_width=LOG_WIDTH))
    try:
        with progress, exits.sigterm_interrupts():
            return start(progress)
    except (PlayheadError, KeyboardInterrupt) as error:
        _report_failure(error, progress, trace_dir, as_json=as_json)
        raise


def _report_failure(error: BaseException, progress: Progress, trace_dir: Path | None, *, as_json: bool) -> None:
    """Say where the trace is; the error itself is said by whoever catches it."""
    result: RunResult | None = getattr(error, "result", None)
    if as_json and result is not None:
        write_json([result_as_json(result)])
    if progress.run_id is not None:
        with suppress(TraceError):
            note(f"the trace is {options.open_store(trace_dir).resolve(progress.run_id)}")
