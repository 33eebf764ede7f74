"""A disk that fails at any moment costs the events it could not take, never the run and never the other events."""

from __future__ import annotations

import errno
import itertools
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from playhead.errors import NotATraceError
from playhead.trace import writer as writer_module
from playhead.trace.integrity import check_trace
from playhead.trace.line import TORN
from playhead.trace.recorder import Recorder
from playhead.trace.writer import Durability, TraceWriter
from tests.trace.traces import Ticks, ending, header, read, thought

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playhead.trace.events import EventBase

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
    clock = Ticks()
    recorder = Recorder(clock, TraceWriter(path, clock.now_us, durability))
    acknowledged = [event for event in SMALL_RUN if recorder.emit(event, "root")]
    last = ending(recorder.lost)
    if recorder.emit(last, "root"):
        acknowledged.append(last)
    recorder.seal()
    return Outcome(path, recorder, acknowledged, len(SMALL_RUN) + 1 - len(acknowledged))


class Fault:
    """Makes a function of the system fail from its Nth call on: once, or for ever."""

    def __init__(self, name: str, kind: str, first: int, persistent: bool, module: Any = os) -> None:
        self.module, self.name, self.kind, self.first, self.persistent = module, name, kind, first, persistent
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
        due = self.calls >= self.first if self.persistent else self.calls == self.first
        if self.pending:  # after a part of the line was taken
            self.pending = False
            raise OSError(errno.ENOSPC, "No space left on device")
        if not due:
            return self.real(descriptor, *content)
        return getattr(self, self.kind)(descriptor, *content)

    def eio(self, descriptor: int, *content: Any) -> None:
        """Take nothing, or (for a close) do it and then complain."""
        if self.name == "close":
            self.real(descriptor)
        raise OSError(errno.EIO, "Input/output error")

    def nothing(self, descriptor: int, content: Any) -> int:
        """Take nothing and say nothing."""
        return 0

    def short(self, descriptor: int, content: Any) -> int:
        """Take a part: a short write, which is no error."""
        return self.real(descriptor, bytes(content)[: max(1, len(content) // 2)])

    def part(self, descriptor: int, content: Any) -> int:
        """Take a part, and refuse the rest."""
        self.pending = True
        return self.short(descriptor, content)

    def all_but_newline(self, descriptor: int, content: Any) -> int:
        """Take everything but the last byte, and refuse that."""
        self.pending = True
        return self.real(descriptor, bytes(content)[:-1])


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
        monkeypatch.setattr("tests.trace.test_writer_faults.SMALL_RUN", [header(), thought(1), thought(2)])
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


@pytest.mark.parametrize("persistent", [False, True], ids=["transient", "persistent"])
def test_the_nth_close_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, persistent: bool):
    """A failed close, of a blob or of the trace itself, is told; what was acknowledged is in the file."""
    for outcome in outcomes(tmp_path, monkeypatch, "close", "eio", persistent):
        assert (outcome.readable(), outcome.recorder.lost) == (outcome.acknowledged, outcome.refused)


@pytest.mark.parametrize("name", ["fstat", "replace", "mkdir"])
def test_whatever_else_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str):
    """Failures of the rarer calls cost at most the event with the blob, and never a mixed line."""

    def broken(*_args: Any, **_kwargs: Any) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, name, broken)
        patch.setattr(os, "write", Fault("write", "part", 4, persistent=False))
        outcome = run(tmp_path / "run.jsonl")
    assert outcome.readable() == outcome.acknowledged
    assert outcome.recorder.lost == outcome.refused
