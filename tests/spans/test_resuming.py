"""What has arrived is known whatever dies, and when: at every event boundary, each span arrives, and none is forgotten."""

from __future__ import annotations

import errno
import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from playhead.spans import SpanBuilder, cursor
from playhead.spans.cursor import Cursor, Reached
from playhead.spans.delivery import Answer, Delivered, Pump, Sink
from playhead.spans.destination import named
from playhead.spans.run_export import RunExport
from tests.spans.spans import built, id_of, ids_of, record_run
from tests.trace.traces import read

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opentelemetry.sdk.trace import ReadableSpan

HERE = named("http://here:4318")


class Backend(Sink):
    """Takes so many spans, and then none."""

    def __init__(self, room: int = 10_000, refuses: Callable[[str], bool] = lambda _: False) -> None:
        self.room = room
        self.taken: list[str] = []
        self.refuses = refuses

    def deliver(self, spans: Sequence[ReadableSpan], *, timeout_s: float | None = None) -> Delivered:
        ids = [id_of(each) for each in spans[: self.room]]
        self.room -= len(ids)
        self.taken += [each for each in ids if not self.refuses(each)]
        refused = {place: "no" for place, each in enumerate(ids) if self.refuses(each)}
        stopped = None if len(ids) == len(spans) else Answer("unavailable", "full")
        return Delivered(len(ids), refused, stopped=stopped)


def export(path: Path, backend: Backend, *, resume: bool = True, over: bool = True) -> RunExport:
    """Export a run; when it is not over, as its own process would."""
    run = RunExport(path, SpanBuilder, HERE, lambda: over, resume=resume)
    pump = Pump(backend)
    pump.runs.append(run)
    while pump.step() == "sent":
        pass
    pump.finished()
    assert run.failure is None
    return run


def opened_in(path: Path) -> list[str]:
    """Return the ids of the spans that a run has left open."""
    closed = built(read(path)[0])[1]
    return ids_of(path)[len(closed) :]


@pytest.fixture
def lines(tmp_path: Path) -> list[bytes]:
    """The lines of a run."""
    return record_run(tmp_path / "whole").read_bytes().splitlines(keepends=True)


@pytest.mark.slow
def test_a_process_that_is_killed_at_any_event_loses_no_span(tmp_path: Path, lines: list[bytes]) -> None:
    """Live export had reached any earlier event, and its file is torn: what is missing is sent, exactly once."""
    for end in range(1, len(lines) + 1):
        for reached in {1, end // 2, end - 1, end} - {0}:
            path = tmp_path / f"{end}-{reached}" / "run.jsonl"
            path.parent.mkdir()
            backend = Backend()
            path.write_bytes(b"".join(lines[:reached]))
            export(path, backend, resume=False, over=False)  # as its own process does, until it is killed
            torn = lines[end][:20] if end < len(lines) else b""
            path.write_bytes(b"".join(lines[:end]) + torn)
            run = export(path, backend)
            assert Counter(backend.taken) == Counter(ids_of(path))
            assert run.interrupted == len(opened_in(path))
            assert export(path, backend).accepted == 0  # it is known to be there, too


@pytest.mark.slow
def test_a_run_that_goes_on_after_all_sends_its_spans_when_they_close(tmp_path: Path, lines: list[bytes]) -> None:
    """They were sent as interrupted before, under the same ids; the others are not sent again."""
    for end in range(1, len(lines)):
        path = tmp_path / str(end) / "run.jsonl"
        path.parent.mkdir()
        backend = Backend()
        path.write_bytes(b"".join(lines[:end]))
        export(path, backend, resume=False)
        interrupted = opened_in(path)
        path.write_bytes(b"".join(lines))
        export(path, backend)
        assert Counter(backend.taken) == Counter(ids_of(path)) + Counter(interrupted)


@pytest.mark.parametrize("room", range(9))
def test_a_collector_that_dies_at_any_span_gets_the_rest_later(tmp_path: Path, room: int) -> None:
    """However few it has taken: afterwards each span has arrived, and those it had acknowledged only once."""
    path = record_run(tmp_path)
    backend = Backend(room)
    export(path, backend, resume=False)
    assert len(backend.taken) == min(room, len(ids_of(path)))
    backend.room = 10_000
    run = export(path, backend)
    counts = Counter(backend.taken)
    assert counts.keys() == set(ids_of(path))
    assert sum(counts.values()) - len(counts) <= 1  # two spans that one event closed share a place in the cursor
    assert run.skipped == len(ids_of(path)) - run.accepted


def test_a_run_that_is_known_to_be_there_is_not_even_read(tmp_path: Path) -> None:
    """Its first line is enough, so a folder of old runs costs next to nothing."""
    path = record_run(tmp_path)
    export(path, Backend())
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b"".join(line[:-5] + b"\n" for line in lines[1:]))
    run = export(path, Backend())
    assert (run.accepted, run.skipped, run.done) == (0, 8, True)


def test_without_resume_everything_is_sent_again_and_the_cursor_stays(tmp_path: Path) -> None:
    """A second look at the same run does not forget what has arrived, even when it is cut short."""
    path = record_run(tmp_path)
    export(path, Backend())
    kept = Cursor(path, HERE).path.read_bytes()
    again = Backend(room=3)
    export(path, again, resume=False)
    assert (len(again.taken), Cursor(path, HERE).path.read_bytes()) == (3, kept)
    assert export(path, Backend()).accepted == 0


def test_refused_spans_are_written_down_and_not_sent_again(tmp_path: Path) -> None:
    """Their names and the reason are told, their number is written down."""
    path = record_run(tmp_path)
    second = ids_of(path)[1]
    backend = Backend(refuses=lambda each: each == second)
    run = export(path, backend)
    assert (run.accepted, run.refused) == (7, {"no": [f"tool:lookup {second}"]})
    said = json.loads(Cursor(path, HERE).path.read_text())
    assert (said["accepted"], said["refused"], said["complete"]) == (7, 1, True)
    again = Backend()
    run = export(path, again)
    assert (again.taken, run.skipped, run.refused_before) == ([], 8, 1)


def test_each_destination_has_a_cursor_of_its_own(tmp_path: Path) -> None:
    """Readable by its owner only, beside the traces, and with the address that it is about."""
    path = record_run(tmp_path)
    export(path, Backend())
    kept = Cursor(path, HERE)
    assert kept.path == tmp_path / ".export" / HERE.key / "run.json"
    assert kept.path.stat().st_mode & 0o777 == 0o600
    assert kept.path.parent.stat().st_mode & 0o777 == kept.path.parent.parent.stat().st_mode & 0o777 == 0o700
    assert json.loads(kept.path.read_text())["destination"] == "http://here:4318/v1/traces"
    first = read(path)[0][0].h
    assert kept.load(first).complete
    for other in (named("http://there:4318"), named("http://here:4318", {"key": "other"})):
        assert Cursor(path, other).load(first) == Reached(first=first, destination=other.name)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{",
        "{}",
        '{"first": "h", "destination": "http://here:4318/v1/traces", "complete": true}',
        '{"first": 1}',
    ],
)
def test_a_cursor_that_cannot_be_believed_is_none(tmp_path: Path, content: str) -> None:
    """Then everything is sent: nothing is taken for sent because of what somebody wrote into a file."""
    path = record_run(tmp_path)
    export(path, Backend())
    kept = Cursor(path, HERE)
    kept.path.write_text(content)
    first = read(path)[0][0].h
    assert kept.load(first) == Reached(first=first, destination=HERE.name)
    assert export(path, Backend()).accepted == 8


def test_a_cursor_of_another_trace_of_the_same_id_is_none(tmp_path: Path) -> None:
    """Such as of a run that was recorded again after the first was removed."""
    path = record_run(tmp_path)
    export(path, Backend())
    path.unlink()
    record_run(tmp_path, steps=2)
    assert export(path, Backend()).accepted == len(ids_of(path))


def test_a_folder_that_others_can_write_into_is_not_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Somebody could make us believe that spans had arrived; that it is not used is said."""
    path = record_run(tmp_path)
    (tmp_path / ".export").mkdir()
    (tmp_path / ".export").chmod(0o777)
    assert export(path, Backend()).accepted == 8
    folder = Cursor(path, HERE).path.parent
    assert caplog.messages == [f"what was sent cannot be written down: others can write into it: {folder}"]


def pump_of(backend: Backend, *paths: Path) -> Pump:
    """Return a pump for these traces."""
    pump = Pump(backend)
    for path in paths:
        pump.runs.append(RunExport(path, SpanBuilder))
    return pump


def test_several_runs_take_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is long does not keep the others waiting until it is through."""
    monkeypatch.setattr("playhead.spans.delivery.MAX_SPANS", 3)
    one, other = (record_run(tmp_path, name) for name in ("a", "b"))
    pump = pump_of(backend := Backend(), one, other)
    assert [pump.step(), pump.step()] == ["sent", "sent"]
    assert backend.taken == [*ids_of(one)[:3], *ids_of(other)[:3]]
    while pump.step() == "sent":
        pass
    assert Counter(backend.taken) == Counter([*ids_of(one), *ids_of(other)])


def test_a_run_that_cannot_be_read_does_not_hold_up_the_others(tmp_path: Path) -> None:
    """Why it cannot be is kept with it."""
    gone, path = tmp_path / "gone.jsonl", record_run(tmp_path)
    pump = pump_of(Backend(), gone, path)
    assert pump.step() == "sent"
    assert sorted((run.run_id, run.failure, run.accepted) for run in pump.finished()) == [
        ("gone", f"{gone}: no such file", 0),
        ("run", None, 8),
    ]


def test_what_cannot_be_written_down_is_said_once_and_sent_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A full disk costs no span, and no run."""
    paths = [record_run(tmp_path, name) for name in "ab"]
    with monkeypatch.context() as patch:
        patch.setattr(cursor, "create_file", full)
        for path in paths:
            assert export(path, Backend()).accepted == 8
    folder = Cursor(paths[0], HERE).path.parent
    assert caplog.messages == [f"what was sent cannot be written down: No space left on device: {folder}"]
    assert export(paths[0], Backend()).accepted == 8
    assert export(paths[0], Backend()).accepted == 0


def full(*_: object, **__: object) -> None:
    """Write nothing."""
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(("replaced", "why"), [(False, "no such file"), (True, "another file now")])
def test_a_trace_that_is_gone_when_it_is_opened_again_is_an_error(tmp_path: Path, replaced: bool, why: str) -> None:
    """No file is open between two reads; a file that is gone is no run that has ended, and another one is not read on."""
    path = record_run(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:4]))
    open_before = sorted(Path("/proc/self/fd").iterdir())
    run = RunExport(path, SpanBuilder, has_ended=lambda: False)
    while run.take() is not None:
        pass
    assert (sorted(Path("/proc/self/fd").iterdir()), run.failure) == (open_before, None)
    path.rename(tmp_path / "kept.jsonl")
    if replaced:
        path.write_bytes(b"".join(lines))
    assert (run.take(), run.done) == (None, True)
    assert why in str(run.failure)
