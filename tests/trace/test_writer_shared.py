"""One file among many threads, many files in one process, and what forks and signals do to them."""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from typing import TYPE_CHECKING, Any

import pytest

from playhead.trace.integrity import check_trace
from playhead.trace.recorder import Recorder
from playhead.trace.writer import TraceWriter
from tests.proving import sample
from tests.trace.traces import Ticks, append, ending, events_of, header, read, record, thought

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.trace.events import EventBase


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where the trace of the test is."""
    return tmp_path / "run.jsonl"


# ── one file, many threads; many files ───────────────────────────────────────────────────────────────────────────────


def test_one_trace_from_eight_threads(path: Path):
    """Threads share a file without a gap, a mixed line or a broken chain, and time goes forwards."""
    clock = Ticks()
    recorder = Recorder(clock, TraceWriter(path, clock.now_us))
    recorder.emit(header(), "root")
    start = threading.Barrier(8)

    def work(owner: int) -> None:
        start.wait()
        for number in range(250):
            recorder.emit(thought(number, size=owner * 40), f"root/{owner}")

    run_all([threading.Thread(target=work, args=(owner,)) for owner in range(8)])
    recorder.emit(ending(), "root")
    recorder.seal()
    records, problems = read(path)
    assert (problems, [each.seq for each in records]) == ([], list(range(2002)))
    for owner in range(8):
        mine = [each.event for each in records if each.owner == f"root/{owner}"]
        assert mine == [thought(number, size=owner * 40) for number in range(250)]
    assert [each.ts for each in records] == sorted(each.ts for each in records)


def run_all(threads: list[threading.Thread]) -> None:
    """Run threads and wait for them."""
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_many_traces_from_threads(tmp_path: Path):
    """Many runs at once (a thousand under `make prove`), each in its thread: every file holds its own events alone."""
    count = sample(250, 50)

    def run_of(number: int) -> list[EventBase]:
        return [header(str(number)), thought(number), thought(number + 1), ending()]

    def work(number: int) -> None:
        record(tmp_path / f"{number}.jsonl", run_of(number))

    for first in range(0, 4 * count, count):
        run_all([threading.Thread(target=work, args=(number,)) for number in range(first, first + count)])
    for number in range(4 * count):
        assert events_of(tmp_path / f"{number}.jsonl") == run_of(number)


# ── fork ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def in_child(action: Any) -> int:
    """Run a function in a fork's child, and return its exit code; 99 when it hangs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # forking beside threads is what this is about
        pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = 0 if action() else 2
        finally:
            os._exit(code)
    for _ in range(500):
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return 99


def test_the_child_of_a_fork_writes_nothing(path: Path):
    """After a fork the file belongs to the parent alone: the child neither writes, nor counts, nor closes."""
    clock = Ticks()
    writer = TraceWriter(path, clock.now_us)
    recorder = Recorder(clock, writer)
    recorder.emit(header(), "root")
    before = path.read_bytes()

    def child() -> bool:
        refused = not recorder.emit(thought(1, size=300_000), "root")
        recorder.seal()
        return refused and path.read_bytes() == before and writer.lost == 0

    assert in_child(child) == 0
    assert path.read_bytes() == before
    recorder.emit(ending(), "root")
    recorder.seal()
    assert events_of(path) == [header(), ending()]


@pytest.mark.parametrize("lock", ["_lock", "_sync_lock"])
def test_a_fork_while_another_thread_writes(path: Path, lock: str):
    """A lock that another thread held at the fork is held in the child for ever; the child must not wait for it."""
    writer = TraceWriter(path, Ticks().now_us)
    append(writer, header())
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with getattr(writer, lock):
            held.set()
            release.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()

    def child() -> bool:
        writer.close()
        return not append(writer, thought(1)).ok

    code = in_child(child)
    release.set()
    holder.join()
    assert code == 0
    append(writer, ending())
    writer.close()
    assert events_of(path) == [header(), ending()]


# ── signals ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class Interrupt(BaseException):
    """What a signal handler raises, as for Ctrl-C."""


@pytest.mark.parametrize("when", ["before the write", "after the write", "after half of it"])
@pytest.mark.parametrize("then", ["append", "close"])
def test_a_signal_handler_that_raises(path: Path, monkeypatch: pytest.MonkeyPatch, when: str, then: str):
    """An exception out of a signal handler, at any point of a write, leaves a sound file and a right count."""
    writer = TraceWriter(path, Ticks().now_us)
    append(writer, header())
    real = os.write

    def interrupted(descriptor: int, content: bytes) -> int:
        if when != "before the write":
            real(descriptor, content if when == "after the write" else bytes(content)[:20])
        raise Interrupt

    monkeypatch.setattr(os, "write", interrupted)
    with pytest.raises(Interrupt):
        append(writer, thought(1))
    monkeypatch.setattr(os, "write", real)
    if then == "append":
        append(writer, ending())
    writer.close()
    check = check_trace(path)
    lost = when != "after the write"
    assert writer.lost == lost
    assert check.lost == (lost and then == "append")
    sound = {"append": "ok", "close": "open"}[then]
    if when == "after half of it":
        assert check.verdict == {"append": "lost-events", "close": "truncated"}[then]
    else:
        assert check.verdict == ("lost-events" if check.lost else sound)
