"""The live receiver: what it acknowledges becomes a recording, whatever happens to it meanwhile."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from playhead.cli import exits, moving
from playhead.diagnose.recording import read_recording
from playhead.errors import UsageError
from playhead.importing.collect import collector as collector_module
from playhead.importing.collect.collector import FOLDER, Collector, RefusedError
from playhead.importing.collect.server import CollectServer
from tests.cli.command_line import playhead
from tests.importing.collecting import JSON, LANGGRAPH, PROTOBUF, document, head, post, raw, recorded, take
from tests.importing.traces import CAPTURED, TRACE, Trace, imported, shop

if TYPE_CHECKING:
    from pathlib import Path


class Clock:
    """Seconds that pass when they are told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("content_type", [PROTOBUF, JSON])
def test_takes_both_forms(content_type: str, packed: bool, tmp_path: Path, collecting: Any) -> None:
    """Protobuf and JSON, plain and gzip; the answer is of the same form, and empty as OTLP says for success."""
    content = LANGGRAPH if content_type == PROTOBUF else document()
    headers = {"Content_Encoding": "gzip"} if packed else {}
    with collecting(tmp_path, quiet_s=0) as (made, address):
        assert post(address, gzip.compress(content) if packed else content, content_type, **headers) == (
            200,
            b"" if content_type == PROTOBUF else b"{}",
        )
        [collected] = recorded(made)
    assert (collected.complete, collected.run.outcome, collected.run.replayability) == (True, "imported", "full")
    assert collected.run.source.format == "otlp-http"


def test_spans_that_are_none_are_told(tmp_path: Path, collecting: Any) -> None:
    """The others are taken; OTLP calls it a partial success."""
    bad = shop().spans[0] | {"spanId": "nope"}
    content = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [bad, *shop().spans]}]}]}).encode()
    with collecting(tmp_path, quiet_s=0) as (made, address):
        status, said = post(address, content, JSON)
        assert (status, json.loads(said)["partialSuccess"]["rejectedSpans"]) == (200, "1")
        assert made.problems == {"spans without a valid trace id and span id": 1}
        assert len(recorded(made)) == 1


def spooled(folder: Path) -> list[str]:
    """Return the names of the files that wait in a trace folder."""
    return sorted(path.name for path in (folder / FOLDER).iterdir())


def test_a_trace_is_recorded_when_its_root_has_ended_and_it_is_quiet(tmp_path: Path) -> None:
    """Its parts may come in any order; afterwards nothing of it is kept."""
    clock = Clock()
    with closing(Collector(tmp_path, quiet_s=3, idle_s=60, now_s=clock)) as made:
        take(made, document(1, 2, 3), JSON)
        clock.now = 10
        assert recorded(made) == []  # the root is missing
        take(made, document(0), JSON)
        assert recorded(made) == []  # not quiet yet
        clock.now = 13
        [first] = recorded(made)
        assert (first.complete, first.run.source.spans, first.run.outcome) == (True, 4, "imported")
        assert spooled(tmp_path) == ["lock"]


def test_a_trace_without_its_root_is_recorded_in_the_end(tmp_path: Path) -> None:
    """After a while, or when the collector stops; it counts as incomplete."""
    clock = Clock()
    with closing(Collector(tmp_path, idle_s=60, now_s=clock)) as made:
        take(made, document(1, 2), JSON)
        clock.now = 59
        assert recorded(made) == []
        [collected] = recorded(made, all_of_them=True)
        assert (collected.complete, read_recording(collected.run.path).status) == (False, "open")


def test_a_bug_leaves_the_spans_with_their_sender(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, collecting: Any
) -> None:
    """Any error is answered, and never with what looks like success."""
    with collecting(tmp_path) as (_, address):
        monkeypatch.setattr(collector_module, "_store", lambda *_: 1 / 0)
        status, said = post(address, document(), JSON)
        assert (status, b"a bug in Playhead (ZeroDivisionError)" in said) == (500, True)


def test_a_package_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the extra that has it, in a sentence."""
    for name in ("starlette.applications", "uvicorn"):
        monkeypatch.delitem(sys.modules, "playhead.importing.collect.server", raising=False)
        monkeypatch.setitem(sys.modules, name, None)
        result = playhead("collect", "--port", "0", "--trace-dir", tmp_path)
        assert (result.exit_code, "pip install 'playhead[collect]'" in result.stderr) == (exits.USAGE, True)


def test_one_collector_at_a_time(tmp_path: Path, collecting: Any) -> None:
    """A second one of the same folder, and one at the same port, are refused in a sentence."""
    with collecting(tmp_path) as (made, address):
        with pytest.raises(UsageError, match="another `playhead collect` writes into"):
            Collector(tmp_path)
        with pytest.raises(UsageError, match=r"cannot listen at \'127\.0\.0\.1\'"):
            CollectServer(made.take, port=int(address.rpartition(":")[2]))


def test_more_than_fits_is_told_to_come_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """503: exporters send again, and nothing that was acknowledged is dropped."""
    monkeypatch.setattr(collector_module, "MAX_HELD", 30_000)
    with closing(Collector(tmp_path)) as made:
        take(made, document(), JSON)
        with pytest.raises(RefusedError) as refused:
            take(made, document(), JSON)
        assert refused.value.status == 503
        recorded(made, all_of_them=True)
        take(made, document(), JSON)


def test_a_full_disk_is_not_acknowledged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, collecting: Any) -> None:
    """503 with Retry-After: the spans are the sender's still, and nothing of them stays; when there is room, they are taken."""
    with collecting(tmp_path) as (made, address):
        with monkeypatch.context() as full:
            full.setattr(os, "fsync", _full)
            answer = raw(address, head(f"Content-Length: {len(LANGGRAPH)}") + LANGGRAPH)
        assert answer.startswith(b"HTTP/1.1 503")
        assert b"No space left" in answer
        assert b"retry-after: 5" in answer.lower()
        assert spooled(tmp_path) == ["lock"]
        assert post(address, LANGGRAPH)[0] == 200
        assert len(recorded(made, all_of_them=True)) == 1


def _full(*_: Any, **__: Any) -> Any:
    raise OSError(28, "No space left on device")


def test_a_name_is_durable_before_it_is_acknowledged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder is synced once the file has its name in it: without that a crash of the machine may lose the file."""
    synced: list[list[str]] = []
    with closing(Collector(tmp_path)) as made:
        monkeypatch.setattr(
            collector_module, "sync_folder", lambda folder: synced.append([path.suffix for path in folder.iterdir()])
        )
        take(made, document(), JSON)
    assert [sorted(each) for each in synced] == [["", ".json"]]


def test_a_recording_that_cannot_be_written_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk was full for a while: the spans stay where they are, and the others are recorded."""
    with closing(Collector(tmp_path, quiet_s=0)) as made:
        take(made, document(), JSON)
        take(made, LANGGRAPH)
        with monkeypatch.context() as full:
            full.setattr(collector_module, "import_spans", _full)
            with pytest.raises(OSError, match="No space"):
                next(made.record())
        assert [collected.run.outcome for collected in recorded(made)] == ["imported"] * 2


def test_a_trace_that_breaks_the_import_stops_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its spans are kept for good, and it is not tried again without end."""
    with closing(Collector(tmp_path, quiet_s=0)) as made:
        take(made, document(), JSON)
        monkeypatch.setattr(collector_module, "import_spans", lambda *_, **__: 1 / 0)
        [failed] = made.record()
        assert failed.run is None
        assert (failed.trace_id, failed.why) == (TRACE, "ZeroDivisionError: division by zero")
        assert recorded(made, all_of_them=True) == []
        assert [path.exists() for path in failed.kept_in] == [True]


class Process:
    """`playhead collect` in a process of its own."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "playhead", "collect", "--port=0", f"--trace-dir={folder}", "--json"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if found := re.search(r"OTEL_EXPORTER_OTLP_ENDPOINT=(\S+)", line):
                self.address = found[1]
                break

    def end(self, number: int) -> tuple[int, str, str]:
        """Send a signal, and return exit code and output."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=30)
        return self.process.returncode, out, err


@pytest.mark.slow
def test_stops_cleanly_and_says_what_it_left_out(tmp_path: Path) -> None:
    """What was acknowledged is recorded before it ends; what is no run, comes again or comes late is named once, and counted."""
    imported(shop().foreign(tmp_path / "spans"), tmp_path / "runs")
    again = Trace(shop().spans, "a" * 32)
    again.spans = [{**span, "traceId": again.trace_id} for span in again.spans]
    imported(again.foreign(tmp_path / "spans"), tmp_path / "runs")
    late = Trace().tool(7, 1, "log", {"m": "x"}, "ok")
    web = [Trace(trace_id=f"{number + 1:032x}").add(1, None, "GET", {}) for number in range(3)]
    running = Process(tmp_path / "runs")
    for trace in (late, again, *web):
        assert post(running.address, json.dumps(trace.document).encode(), JSON)[0] == 200
    assert post(running.address, LANGGRAPH)[0] == 200
    code, out, err = running.end(signal.SIGTERM)
    first, second = (json.loads(line) for line in out.splitlines())
    assert (code, first["outcome"]) == (0, "differs")
    assert (second["complete"], second["imported"]["replayability"]) == (True, "full")
    assert "spans that came after it was recorded are in" in err
    assert err.count("playhead: left out: traces in which no span") == 1
    assert "left out: 3 traces in which no span is an agent" in err
    assert "left out: 1 recorded traces that came again, with nothing new\n" in err


@pytest.mark.slow
def test_survives_being_killed(tmp_path: Path) -> None:
    """SIGKILL right after the acknowledgement: the next start records it."""
    running = Process(tmp_path)
    assert post(running.address, LANGGRAPH)[0] == 200
    assert running.end(signal.SIGKILL)[0] == -signal.SIGKILL
    code, out, err = Process(tmp_path).end(signal.SIGTERM)
    assert (code, len(out.splitlines()), err) == (0, 1, "")


def test_a_folder_in_which_nothing_can_be_written(tmp_path: Path) -> None:
    """It is said what the system says of the folder."""
    (tmp_path / "file").write_text("")
    for command in (["collect", "--port", "0"], ["import", str(CAPTURED / "langgraph.pb.gz")]):
        result = playhead(*command, "--trace-dir", tmp_path / "file" / "runs")
        assert result.exit_code == exits.BUG
        assert f"playhead: the system says: Not a directory: {tmp_path / 'file' / 'runs'}" in result.stderr


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, exits.INTERRUPTED), (signal.SIGTERM, exits.TERMINATED)],
    ids=["SIGINT", "SIGTERM"],
)
def test_the_second_signal_ends_it_at_once(number: int, code: int) -> None:
    """The first one asks it to record what it has; who cannot wait for that sends another, as with any command."""

    def stopped_twice() -> None:
        with moving.stopping() as stop:
            signal.raise_signal(number)
            assert stop.is_set()
            signal.raise_signal(number)

    assert exits.exit_code(stopped_twice) == code
