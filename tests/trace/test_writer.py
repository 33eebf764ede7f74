"""The file of a run."""

from __future__ import annotations

import errno
import itertools
import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
import warnings
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from playhead.diagnose.integrity import check_trace
from playhead.errors import NotATraceError, TraceExistsError
from playhead.trace import writer as writer_module
from playhead.trace.clock import SystemClock
from playhead.trace.line import TORN
from playhead.trace.writer import Durability, TraceWriter, Written
from tests.proving import sample
from tests.trace.traces import (
    append,
    ending,
    events_of,
    header,
    read,
    recorder_of,
    thought,
    thoughts,
    writer_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playhead.trace.events import EventBase
    from playhead.trace.recorder import Recorder


def test_one_writer_of_one_id(path: Path):
    """There is no file before an event; of two writers, the one whose first event comes second is refused, as are later ones."""
    first, second = writer_of(path), writer_of(path)
    assert not path.exists()
    append(first, header())
    assert (stat.S_IMODE(path.stat().st_mode), [path]) == (0o600, list(path.parent.iterdir()))
    with pytest.raises(TraceExistsError, match="exists"):
        append(second, header())
    assert append(second, thought(1)).seq == -1
    second.close()
    with pytest.raises(TraceExistsError):
        writer_of(path)
    append(first, ending())
    first.close()
    assert events_of(path) == [header(), ending()]


@pytest.mark.parametrize("closed", [False, True])
def test_what_comes_too_late(path: Path, closed: bool):
    """After `run-completed` or `close` events get no number; closing again does nothing."""
    writer = writer_of(path)
    append(writer, header())
    if closed:
        writer.close()
    else:
        append(writer, ending())
    content = path.read_bytes()
    late = append(writer, thought(1))
    assert late == Written(-1, late.ts, "", ok=False)
    writer.close()
    assert (path.read_bytes(), writer.tail.lost, writer.error) == (content, 0, None)


def test_a_file_that_cannot_be_made(path: Path):
    """Every event of a trace that cannot be made is lost and counted, and none begins a file in the middle."""
    folder = path.parent / "gone"
    folder.mkdir()
    writer = writer_of(folder / "run.jsonl")
    folder.rmdir()
    assert [append(writer, event).ok for event in (header(), thought(1))] == [False, False]
    folder.mkdir()
    assert [append(writer, thought(2)).seq, writer.tail.lost, writer.tail.size] == [2, 3, 0]
    writer.close()
    assert list(folder.iterdir()) == []
    path.write_text("")
    with pytest.raises(NotADirectoryError):
        writer_of(path / "run.jsonl")


@pytest.mark.parametrize("target", ["elsewhere", "nothing"])
def test_a_link_in_the_place_of_the_file(path: Path, target: str):
    """A trace is never written through a link, not even a dangling one."""
    (path.parent / "elsewhere").write_text("mine")
    path.symlink_to(path.parent / target)
    with pytest.raises(TraceExistsError):
        writer_of(path)


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
    writer = writer_of(path)
    append(writer, header())
    assert writer.append("No Kind", "root", None, b"{}").ok is False
    assert writer.append("thought", "root", None, b"[" * 300_000).ok is False
    append(writer, ending())
    writer.close()
    assert (writer.tail.lost, writer.error is None) == (2, False)
    assert check_trace(path).lost == 2


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


@pytest.mark.parametrize("durability", ["write", "fsync"])
def test_what_is_synced_when(path: Path, syncs: Syncs, durability: Durability):
    """By default only the close waits for the disk; under `fsync` every event, and the first one for the file's name too.

    A blob is as durable as the line that names it: content, name, and the folder's own name at the end.
    """
    writer, each = writer_of(path, durability), int(durability == "fsync")
    for number, event in enumerate(thoughts(10)[:-1], 1):
        append(writer, event)
        assert (len(syncs.data), len(syncs.all)) == (number * each, each)
    append(writer, thought(10, 300_000))
    assert len(syncs.all) == 3 * each  # the trace's folder, the blob, the blob's folder
    writer.close()
    assert (len(syncs.data), len(syncs.all)) == (10 * each + 1, 2 + each)


def test_group_durability_syncs_soon_after(path: Path, syncs: Syncs):
    """Under `group` many events share a sync, which comes by itself, and again for later ones; the close ends its thread."""
    writer = writer_of(path, "group")
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


def test_one_trace_from_eight_threads(path: Path):
    """Threads share a file without a gap, a mixed line or a broken chain, and time goes forwards."""
    recorder, start = recorder_of(path), threading.Barrier(8)
    recorder.emit(header(), "root")

    def work(owner: int) -> None:
        start.wait()
        for number in range(250):
            recorder.emit(thought(number, size=owner * 40), f"root/{owner}")

    threads = [threading.Thread(target=work, args=(owner,)) for owner in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    recorder.emit(ending(), "root")
    recorder.seal()
    records, problems = read(path)
    assert (problems, [each.seq for each in records]) == ([], list(range(2002)))
    for owner in range(8):
        mine = [each.event for each in records if each.owner == f"root/{owner}"]
        assert mine == [thought(number, size=owner * 40) for number in range(250)]
    assert [each.ts for each in records] == sorted(each.ts for each in records)


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


@pytest.mark.parametrize("lock", [None, "_lock", "_sync_lock"])
def test_the_child_of_a_fork_writes_nothing(path: Path, lock: str | None):
    """After a fork the file belongs to the parent alone: the child neither writes, nor counts, nor closes.

    A lock that another thread held at the fork is held in the child for ever; the child does not wait for it.
    """
    recorder = recorder_of(path)
    writer = recorder.writer
    assert writer is not None
    recorder.emit(header(), "root")
    before, held, release = path.read_bytes(), threading.Event(), threading.Event()

    def hold() -> None:
        with getattr(writer, lock) if lock else nullcontext():
            held.set()
            release.wait()

    def child() -> bool:
        refused = not recorder.emit(thought(1, size=300_000), "root")
        recorder.seal()
        return refused and path.read_bytes() == before and writer.tail.lost == 0

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    code = in_child(child)
    release.set()
    holder.join()
    assert (code, path.read_bytes()) == (0, before)
    recorder.emit(ending(), "root")
    recorder.seal()
    assert events_of(path) == [header(), ending()]


class Interrupt(BaseException):
    """What a signal handler raises, as for Ctrl-C."""


@pytest.mark.parametrize("when", ["before the write", "after the write", "after half of it"])
@pytest.mark.parametrize("then", ["append", "close"])
def test_a_signal_handler_that_raises(path: Path, monkeypatch: pytest.MonkeyPatch, when: str, then: str):
    """An exception out of a signal handler, at any point of a write, leaves a sound file and a right count."""
    writer = writer_of(path)
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
    assert writer.tail.lost == lost
    assert check.lost == (lost and then == "append")
    sound = {"append": "ok", "close": "open"}[then]
    if when == "after half of it":
        assert check.verdict == {"append": "lost-events", "close": "truncated"}[then]
    else:
        assert check.verdict == ("lost-events" if check.lost else sound)


SMALL_RUN = [header(), thought(1), thought(2, size=300_000), thought(3), thought(4)]
"""Five events, one of them with a blob; the end comes after them."""


@dataclass
class Outcome:
    """What became of a run on a bad disk."""

    path: Path
    recorder: Recorder
    acknowledged: list[EventBase]
    refused: int

    def readable(self) -> list[EventBase]:
        """Return the events in the file; fail when two are glued together or anything else is wrong with it."""
        if not self.path.exists():  # nothing of its first line could be written
            return []
        lines = self.path.read_bytes().split(b"\n")
        assert max(line.count(b'{"seq":') for line in lines) <= 1
        try:
            records, problems = read(self.path)
        except NotATraceError:
            return []
        assert {problem.kind for problem in problems} <= {"lost-events", "truncated"}
        return [record.event for record in records]


def run(path: Path, durability: Durability = "write") -> Outcome:
    """Record the small run; nothing may raise."""
    recorder = recorder_of(path, durability=durability)
    acknowledged = [event for event in SMALL_RUN if recorder.emit(event, "root")]
    last = ending(recorder.lost)
    if recorder.emit(last, "root"):
        acknowledged.append(last)
    recorder.seal()
    return Outcome(path, recorder, acknowledged, len(SMALL_RUN) + 1 - len(acknowledged))


TAKEN: dict[str, Callable[[int], int]] = {
    "nothing": lambda size: 0,
    "short": lambda size: max(1, size // 2),
    "part": lambda size: max(1, size // 2),
    "all_but_newline": lambda size: size - 1,
}
"""Bytes that a failing write takes; after the last two kinds it refuses the rest. `eio` refuses at once."""


class Fault:
    """Makes a function of the system fail from its Nth call on: once, or for ever."""

    def __init__(self, name: str, kind: str, first: int, persistent: bool, module: Any = os) -> None:
        self.name, self.kind, self.first, self.persistent = name, kind, first, persistent
        self.real = getattr(module, name)
        self.calls = 0
        self.pending = False

    @property
    def hit(self) -> bool:
        """Return whether the fault came about at all."""
        return self.calls >= self.first

    def __call__(self, descriptor: int, *content: Any) -> Any:
        """Stand in for the function."""
        self.calls += 1
        is_due = self.hit if self.persistent else self.calls == self.first
        if not is_due and not self.pending:
            return self.real(descriptor, *content)
        if self.pending or self.kind == "eio":
            self.pending = False
            if self.name == "close":  # does it, and then complains
                self.real(descriptor)
            raise OSError(errno.EIO, "Input/output error")
        size = TAKEN[self.kind](len(content[0]))
        self.pending = self.kind in {"part", "all_but_newline"}
        return self.real(descriptor, bytes(content[0])[:size]) if size else 0


def outcomes(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, kind: str, persistent: bool, durability: Durability = "write",
    module: Any = os,
) -> Iterator[Outcome]:  # fmt: skip
    """Yield the outcome of the small run with the fault at its first call, its second, … until there is none."""
    for number in itertools.count(1):
        fault = Fault(name, kind, number, persistent, module)
        with monkeypatch.context() as patch:
            patch.setattr(module, name, fault)
            outcome = run(folder / f"{number}.jsonl", durability)
        yield outcome
        if not fault.hit:
            assert number > 1
            return


WRITE_FAULTS = ["eio", "nothing", "part", "all_but_newline"]


@pytest.mark.parametrize("persistent", [False, True], ids=["transient", "persistent"])
@pytest.mark.parametrize("kind", WRITE_FAULTS)
def test_the_nth_write_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, persistent: bool):
    """Exactly the events that were not acknowledged are missing; they are counted, and the file says so.

    One failure is one event: what comes after it stands on its own line. Without its first line there is no trace.
    """
    refused = []
    for outcome in outcomes(tmp_path, monkeypatch, "write", kind, persistent):
        refused.append(outcome.refused)
        assert outcome.readable() == outcome.acknowledged
        assert outcome.recorder.lost == outcome.refused
        assert outcome.recorder.complete == (outcome.refused == 0)
        if outcome.acknowledged:
            assert_said(outcome)
        if kind in {"eio", "nothing"} and outcome.path.exists():
            assert TORN not in outcome.path.read_bytes(), "nothing was begun, so there is nothing to mark"
    assert persistent or refused == [len(SMALL_RUN) + 1, *[1] * (len(refused) - 2), 0]
    assert [path.suffix for path in tmp_path.glob("*.blobs/*")] == [""] * len(list(tmp_path.glob("*.blobs/*")))


def assert_said(outcome: Outcome) -> None:
    """Check that the file shows each lost event that an event follows, and never looks complete when it is not."""
    check = check_trace(outcome.path)
    events = [*SMALL_RUN, outcome.acknowledged[-1]]
    closed = outcome.acknowledged[-1].kind == "run-completed"
    lost = events.index(outcome.acknowledged[-1]) + 1 - len(outcome.acknowledged)
    assert check.lost == lost
    expected = {"ok"} if not outcome.refused else {"lost-events"} if lost else {"open", "truncated", "lost-events"}
    assert check.verdict in expected
    assert closed or check.verdict != "ok"


@pytest.mark.parametrize("persistent", [False, True], ids=["transient", "persistent"])
def test_a_short_write_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, persistent: bool):
    """The system may take a line in pieces, even all of them."""
    if persistent:  # every write is short for ever: lines go out in ever smaller halves, down to the last byte
        monkeypatch.setattr("tests.trace.test_writer.SMALL_RUN", [header(), thought(1), thought(2)])
    for outcome in outcomes(tmp_path, monkeypatch, "write", "short", persistent):
        assert (outcome.refused, outcome.recorder.complete) == (0, True)
        assert outcome.readable() == outcome.acknowledged
        assert check_trace(outcome.path).verdict == "ok"


@pytest.mark.parametrize("durability", ["write", "fsync"])
@pytest.mark.parametrize("persistent", [False, True], ids=["transient", "persistent"])
def test_the_nth_sync_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durability: Durability, persistent: bool):
    """A failed sync loses nothing from the file, but the run is told that its trace is not as safe as it asked for."""
    failed = []
    for outcome in outcomes(tmp_path, monkeypatch, "_fdatasync", "eio", persistent, durability, writer_module):
        check = check_trace(outcome.path)
        assert (check.verdict, check.events, outcome.recorder.lost) == ("ok", len(SMALL_RUN) + 1, 0)
        failed.append((outcome.refused, outcome.recorder.complete))
    events = len(SMALL_RUN) + 1
    if durability == "write":
        assert failed == [(0, False), (0, True)]
    elif persistent:
        assert failed == [(refused, False) for refused in range(events, -1, -1)] + [(0, True)]
    else:
        assert failed == [(1, False)] * events + [(0, False), (0, True)]


@pytest.mark.parametrize("name", ["close", "fstat", "replace", "mkdir"])
def test_whatever_else_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str):
    """Failures of the rarer calls cost at most the event with the blob, and never a mixed line."""

    def broken(*_args: Any, **_kwargs: Any) -> None:
        raise OSError(errno.EIO, "Input/output error")

    faults = outcomes(tmp_path, monkeypatch, "close", "eio", persistent=False)
    if name != "close":
        with monkeypatch.context() as patch:
            patch.setattr(os, name, broken)
            patch.setattr(os, "write", Fault("write", "part", 4, persistent=False))
            faults = iter([run(tmp_path / "run.jsonl")])
    for outcome in faults:
        assert (outcome.readable(), outcome.recorder.lost) == (outcome.acknowledged, outcome.refused)


pytestmark = pytest.mark.slow

KILLS = sample(1000, 100)


def test_every_kill(tmp_path: Path):
    """Writers killed at random moments (a thousand under `make prove`) lose no acknowledged event, and every file loads."""
    program = [sys.executable, "-m", "tests.trace.killed_writers", str(tmp_path), str(KILLS)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=110, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    result = json.loads(done.stdout)
    assert sum(result["endings"].values()) == KILLS
    assert set(result["endings"]) <= {"open", "truncated", "unborn"}
    assert result["endings"]["open"] > KILLS / 2, "most have to live long enough to write something"
    assert result["acknowledged"] > 10 * KILLS
