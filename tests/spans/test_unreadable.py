"""A trace that cannot be read for a moment is read later: no span is given up because the system was short of something."""

from __future__ import annotations

import errno
import os
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from playhead import Agent, tool
from playhead.spans import SpanBuilder, cursor, reading
from playhead.spans.cursor import Cursor
from playhead.spans.pump import Pump
from playhead.spans.run_export import RunExport
from playhead.spans.sources import TraceSource
from playhead.testing import ScriptedModel, call, text
from playhead.trace import control_files, reader
from playhead.trace.blobs import BlobFolder
from tests.spans.spans import ids_of, record_run
from tests.spans.test_resuming import HERE, Backend
from tests.trace.traces import read

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def failing(function: Callable[..., Any], code: int, calls: set[int]) -> Callable[..., Any]:
    """Return a function that fails at these calls, counted from 0."""
    count = iter(range(10**9))

    def fail(*arguments: Any) -> Any:
        if next(count) in calls:
            raise OSError(code, os.strerror(code))
        return function(*arguments)

    return fail


def pumped(path: Path, unreadable_s: float = 60.0) -> tuple[RunExport, Backend, list[str]]:
    """Export a run; return what its steps came to."""
    run = RunExport("run", path, lambda: TraceSource(path), SpanBuilder, Cursor(path, HERE))
    backend = Backend()
    pump = Pump(backend, unreadable_s=unreadable_s)
    pump.runs.append(run)
    steps: list[str] = []
    while not run.done and len(steps) < 50:
        steps.append(pump.step())
    pump.finished()
    return run, backend, steps


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try again without a pause."""
    monkeypatch.setattr(reading, "_AGAIN_S", 0.0)
    monkeypatch.setattr(reading, "_LONGEST_S", 0.0)


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENOSPC, errno.ENOMEM], ids=errno.errorcode.__getitem__)
def test_a_file_that_cannot_be_opened_now_is_opened_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """The others go on meanwhile, for the step says that there is something left."""
    path = record_run(tmp_path)
    monkeypatch.setattr(reader, "_open", failing(reader._open, code, {0, 1}))
    run, backend, steps = pumped(path)
    assert steps == ["stuck", "stuck", "sent"]
    assert (backend.taken, run.failure, run.reading.shortage.reason) == (ids_of(path), None, None)


def test_one_that_stays_unreadable_is_given_up_after_some_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the reason; live export never gives up."""
    path = record_run(tmp_path)
    monkeypatch.setattr(reader, "_open", failing(reader._open, errno.EMFILE, set(range(99))))
    run, backend, _ = pumped(path, unreadable_s=0.0)
    assert (backend.taken, run.failure) == ([], f"{path} cannot be read: Too many open files")
    assert not pumped(path, unreadable_s=float("inf"))[0].done


@pytest.mark.parametrize("calls", [{0}, {1}, {2}, {0, 1, 4}], ids=str)
def test_a_value_that_cannot_be_read_now_is_no_lost_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calls: set[int]
) -> None:
    """Wherever in the file it happens: what was made of it before is not sent twice, and nothing is left out."""

    @tool(read_only=True)
    def look(key: int) -> str:
        """Return more than a line holds."""
        return str(key) * 100_000

    model = ScriptedModel([call("look", key=1), call("look", key=2), text("done")])
    Agent(model, tools=[look], trace=tmp_path).run_sync("go", run_id="run")
    path = tmp_path / "run.jsonl"
    expected = Counter(ids_of(path))
    monkeypatch.setattr(BlobFolder, "_read", failing(BlobFolder._read, errno.EMFILE, calls))
    run, backend, _ = pumped(path)
    assert Counter(backend.taken) == expected
    assert (run.settled.accepted, run.settled.skipped, run.failure) == (len(expected), 0, None)
    assert run.settled.reached.complete


def test_a_cursor_that_cannot_be_written_now_is_written_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the end at the latest."""
    path = record_run(tmp_path)
    monkeypatch.setattr(cursor, "write_over", failing(control_files.write_over, errno.ENOSPC, {0, 1}))
    run, _, _ = pumped(path)
    assert run.settled.cursor is not None
    assert run.settled.cursor.error is None
    assert run.settled.cursor.load(read(path)[0][0].h).complete
