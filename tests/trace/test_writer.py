"""The file of a run."""

from __future__ import annotations

import os
import stat
import threading
import time
from typing import TYPE_CHECKING

import pytest

from playhead.errors import TraceExistsError
from playhead.trace import writer as writer_module
from playhead.trace.clock import SystemClock
from playhead.trace.events import ToolCallCompleted
from playhead.trace.integrity import check_trace
from playhead.trace.writer import Durability, TraceWriter, Written
from tests.proving import sample
from tests.trace.traces import Ticks, append, ending, events_of, header, read, record, thought, thoughts

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where the trace of the test is."""
    return tmp_path / "run.jsonl"


# ── the ordinary life of a file ──────────────────────────────────────────────────────────────────────────────────────


def test_an_event_is_in_the_file_when_append_returns(path: Path):
    """Nothing waits in a buffer: what is acknowledged can be read by another process."""
    writer = TraceWriter(path, Ticks().now_us)
    for number, event in enumerate(thoughts(5)):
        written = append(writer, event)
        assert written == Written(number, written.ts, read(path)[0][-1].h, ok=True)
        assert read(path)[0][-1].event == event
    writer.close()


def test_one_writer_of_one_id(path: Path):
    """There is no file before an event; of two writers, the one whose first event comes second is refused, as are later ones."""
    first, second = TraceWriter(path, Ticks().now_us), TraceWriter(path, Ticks().now_us)
    assert not path.exists()
    append(first, header())
    assert (stat.S_IMODE(path.stat().st_mode), [path]) == (0o600, list(path.parent.iterdir()))
    with pytest.raises(TraceExistsError, match="exists"):
        append(second, header())
    assert append(second, thought(1)).seq == -1
    second.close()
    with pytest.raises(TraceExistsError):
        TraceWriter(path, Ticks().now_us)
    append(first, ending())
    first.close()
    assert events_of(path) == [header(), ending()]


@pytest.mark.parametrize("closed", [False, True])
def test_what_comes_too_late(path: Path, closed: bool):
    """After `run-completed` or `close` events get no number; closing again does nothing."""
    writer = TraceWriter(path, Ticks().now_us)
    append(writer, header())
    if closed:
        writer.close()
    else:
        append(writer, ending())
    content = path.read_bytes()
    late = append(writer, thought(1))
    assert late == Written(-1, late.ts, "", ok=False)
    writer.close()
    assert (path.read_bytes(), writer.lost, writer.error) == (content, 0, None)


def test_a_file_that_cannot_be_made(path: Path):
    """Every event of a trace that cannot be made is lost and counted, and none begins a file in the middle."""
    folder = path.parent / "gone"
    folder.mkdir()
    writer = TraceWriter(folder / "run.jsonl", Ticks().now_us)
    folder.rmdir()
    assert [append(writer, event).ok for event in (header(), thought(1))] == [False, False]
    folder.mkdir()
    assert [append(writer, thought(2)).seq, writer.lost, writer.is_created] == [2, 3, False]
    writer.close()
    assert list(folder.iterdir()) == []
    path.write_text("")
    with pytest.raises(NotADirectoryError):
        TraceWriter(path / "run.jsonl", Ticks().now_us)


@pytest.mark.parametrize("target", ["elsewhere", "nothing"])
def test_a_link_in_the_place_of_the_file(path: Path, target: str):
    """A trace is never written through a link, not even a dangling one."""
    (path.parent / "elsewhere").write_text("mine")
    path.symlink_to(path.parent / target)
    with pytest.raises(TraceExistsError):
        TraceWriter(path, Ticks().now_us)


def test_time_never_goes_backwards(path: Path, monkeypatch: pytest.MonkeyPatch):
    """Whatever the clock does, `ts` does not decrease; and the clock of runs says the same when the wall clock is set back."""
    times = iter([5, 9, 3, 3, 10])
    writer = TraceWriter(path, lambda: next(times))
    for event in thoughts(5):
        append(writer, event)
    writer.close()
    assert [each.ts for each in read(path)[0]] == [5, 9, 9, 9, 10]
    clock, before = SystemClock(), time.time_ns() // 1000
    assert before - 1_000_000 < clock.now_us() < before + 1_000_000_000
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    assert clock.now_us() >= before


def test_an_event_that_can_be_no_line_is_lost(path: Path):
    """`append` never raises; an impossible kind costs the event alone, and the trace says so."""
    writer = TraceWriter(path, Ticks().now_us)
    append(writer, header())
    assert writer.append("No Kind", "root", None, b"{}").ok is False
    assert writer.append("thought", "root", None, b"[" * 300_000).ok is False
    append(writer, ending())
    writer.close()
    assert (writer.lost, writer.error is None) == (2, False)
    assert check_trace(path).lost == 2


# ── durability ───────────────────────────────────────────────────────────────────────────────────────────────────────


class Syncs:
    """Counts what is synced, and passes it on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.data: list[int] = []
        self.all: list[int] = []
        self.happened = threading.Event()
        self._fdatasync, self._fsync = writer_module._fdatasync, os.fsync
        monkeypatch.setattr(writer_module, "_fdatasync", self.fdatasync)
        monkeypatch.setattr(os, "fsync", self.fsync)

    def fdatasync(self, descriptor: int) -> None:
        self.data.append(descriptor)
        self.happened.set()
        self._fdatasync(descriptor)

    def fsync(self, descriptor: int) -> None:
        self.all.append(descriptor)
        self._fsync(descriptor)


@pytest.fixture
def syncs(monkeypatch: pytest.MonkeyPatch) -> Syncs:
    """Return what counts the syncs of this test."""
    return Syncs(monkeypatch)


@pytest.mark.parametrize(("durability", "each"), [("write", 0), ("fsync", 1)])
def test_what_is_synced_when(path: Path, syncs: Syncs, durability: Durability, each: int):
    """By default only the close waits for the disk; under `fsync` every event, and the first one for the file's name too."""
    writer = TraceWriter(path, Ticks().now_us, durability)
    for number, event in enumerate(thoughts(10), 1):
        append(writer, event)
        assert (len(syncs.data), len(syncs.all)) == (number * each, each)
    writer.close()
    assert len(syncs.data) == 10 * each + 1


def test_group_durability_syncs_soon_after(path: Path, syncs: Syncs):
    """Under `group` many events share a sync, which comes by itself, and again for later ones; the close ends its thread."""
    writer = TraceWriter(path, Ticks().now_us, "group")
    for event in thoughts(100)[:-1]:
        append(writer, event)
    assert syncs.happened.wait(10)
    first = len(syncs.data)
    assert first < 99
    syncs.happened.clear()
    append(writer, thought(1))
    assert syncs.happened.wait(10)
    writer.close()
    assert len(syncs.data) > first + 1
    assert [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)] == []


@pytest.mark.parametrize(("durability", "before"), [("fsync", 3), ("group", None), ("write", 0)])
def test_blobs_are_synced_as_the_file_is(path: Path, syncs: Syncs, durability: Durability, before: int | None):
    """A blob is as durable as the line that names it: content, name, and the folder's own name at the end."""
    writer = TraceWriter(path, Ticks().now_us, durability)
    append(writer, header(task="x" * 300_000))
    if before is not None:
        assert len(syncs.all) == before  # the trace's folder, the blob, the blob's folder
    writer.close()
    assert len(syncs.all) == (2 if durability == "write" else 3)


# ── size ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_result_of_any_size(path: Path):
    """A result is never clipped, however large; its line stays short."""
    result = "0123456789" * sample(10_000_000, 300_000)
    event = ToolCallCompleted(call_id="c", tool="t", position=0, ok=True, result=result)
    record(path, [header(), event, ending()])
    assert path.stat().st_size < 10_000
    assert events_of(path) == [header(), event, ending()]
