"""The live receiver: what it acknowledges becomes a recording, whatever happens to it meanwhile."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from playhead.errors import UsageError
from playhead.importing.collect import Collector, CollectServer, bodies
from playhead.importing.collect import collector as collector_module
from playhead.importing.collect.spool import FOLDER
from playhead.trace.recording import read_recording
from tests.importing.traces import CAPTURED, TRACE, shop

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PROTOBUF, JSON = "application/x-protobuf", "application/json"
LANGGRAPH = gzip.decompress((CAPTURED / "langgraph.pb.gz").read_bytes())


class Clock:
    """Seconds that pass when they are told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@contextmanager
def collecting(folder: Path, **options: Any) -> Iterator[tuple[Collector, str]]:
    """Run a collector in this process."""
    made = Collector(folder, **options)
    server = CollectServer(made.take, port=0)
    server.start()
    try:
        yield made, server.address
    finally:
        server.stop()
        made.close()


def post(
    address: str, content: bytes, content_type: str = PROTOBUF, path: str = "/v1/traces", **headers: str
) -> tuple[int, bytes]:
    """Send a body, and return status and answer."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(address + path, content, {"Content-Type": content_type, **named}, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def document(*places: int) -> bytes:
    """Return a request with these spans of a run."""
    spans = [shop().spans[place] for place in places or range(4)]
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).encode()


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("content_type", [PROTOBUF, JSON])
def test_takes_both_forms(content_type: str, packed: bool, tmp_path: Path) -> None:
    """Protobuf and JSON, plain and gzip; the answer is of the same form, and empty as OTLP says for success."""
    content = LANGGRAPH if content_type == PROTOBUF else document()
    headers = {"Content_Encoding": "gzip"} if packed else {}
    with collecting(tmp_path, quiet_s=0) as (made, address):
        assert post(address, gzip.compress(content) if packed else content, content_type, **headers) == (
            200,
            b"" if content_type == PROTOBUF else b"{}",
        )
        [collected] = made.record()
    assert (collected.complete, collected.run.outcome, collected.run.replayability) == (True, "imported", "full")
    assert collected.run.source.format == "otlp-http"


REFUSED: dict[str, tuple[int, dict[str, Any], str]] = {
    "no otlp": (400, {"content": b"\xff\xff\xff"}, "no OTLP message"),
    "no json": (400, {"content": b"{", "content_type": JSON}, "no JSON"),
    "deep json": (400, {"content": b"[" * 5000, "content_type": JSON}, "no JSON, or nested too deep"),
    "other json": (400, {"content": b'{"a": 1}', "content_type": JSON}, "an object with resourceSpans is wanted"),
    "no gzip": (400, {"content": b"no", "Content_Encoding": "gzip"}, "the body is no gzip"),
    "torn gzip": (400, {"content": gzip.compress(b"x" * 999)[:-9], "Content_Encoding": "gzip"}, "cut off"),
    "a form": (415, {"content": b"a=1", "content_type": "application/x-www-form-urlencoded"}, "OTLP over HTTP has"),
    "zstd": (415, {"content": b"", "Content_Encoding": "zstd"}, "only gzip"),
    "metrics": (404, {"content": b"", "path": "/v1/metrics"}, "only traces are collected"),
    "a web page": (403, {"content": b"", "Origin": "https://evil.example"}, "from a web page"),
}


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_refuses_what_it_cannot_read(name: str, tmp_path: Path) -> None:
    """With the right status, and a sentence; nothing is kept of it."""
    status, given, why = REFUSED[name]
    with collecting(tmp_path) as (made, address):
        answered, said = post(address, **given)
        assert (answered, why in said.decode()) == (status, True), said
        assert list(made.record(all_of_them=True)) == []
        assert sorted(path.name for path in (tmp_path / FOLDER).iterdir()) == ["lock"]


def test_refuses_what_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the length that is said, before anything is read; and a bomb at the limit of what is unpacked."""
    bomb = gzip.compress(b"\0" * (bodies.MAX_UNPACKED + 1))
    with collecting(tmp_path) as (_, address):
        status, said = post(address, bomb, Content_Encoding="gzip")
        assert (status, b"when it is unpacked" in said) == (413, True)
        monkeypatch.setattr("playhead.importing.collect.server.MAX_BODY", 100)
        status, said = post(address, LANGGRAPH)
        assert (status, b"at most 100 are taken" in said) == (413, True)


def test_a_length_is_needed(tmp_path: Path) -> None:
    """A chunked body, or one without a length, is refused at once."""
    with collecting(tmp_path) as (_, address):
        host, port = address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=10) as connection:
            connection.sendall(
                f"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: {PROTOBUF}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
            )
            assert b" 411 " in connection.recv(1000)


def test_spans_that_are_none_are_told(tmp_path: Path) -> None:
    """The others are taken; OTLP calls it a partial success."""
    bad = shop().spans[0] | {"spanId": "nope"}
    content = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [bad, *shop().spans]}]}]}).encode()
    with collecting(tmp_path, quiet_s=0) as (made, address):
        status, said = post(address, content, JSON)
        assert (status, json.loads(said)["partialSuccess"]["rejectedSpans"]) == (200, "1")
        assert made.problems == {"spans without a valid trace id and span id": 1}
        assert len(list(made.record())) == 1
    from playhead.importing.collect.server import _partial_success

    read = ExportTraceServiceResponse.FromString(_partial_success(300, b"why"))
    assert (read.partial_success.rejected_spans, read.partial_success.error_message) == (300, "why")


def test_a_trace_is_recorded_when_its_root_has_ended_and_it_is_quiet(tmp_path: Path) -> None:
    """Its parts may come in any order; spans that come later make it anew."""
    clock = Clock()
    with collecting(tmp_path, quiet_s=3, idle_s=60, now_s=clock) as (made, address):
        post(address, document(1, 2), JSON)
        clock.now = 10
        assert list(made.record()) == []  # the root is missing
        post(address, document(0), JSON)
        assert list(made.record()) == []  # not quiet yet
        clock.now = 13
        [first] = made.record()
        assert (first.complete, first.run.source.spans, first.run.outcome) == (True, 3, "imported")
        post(address, document(3), JSON)
        clock.now = 16
        [second] = made.record()
        assert (second.run.source.spans, second.run.outcome) == (4, "replaced")
        assert len(list((tmp_path / FOLDER).glob("*.json"))) == 3
        clock.now = 100
        assert list(made.record()) == []
        assert list((tmp_path / FOLDER).glob("*.json")) == []  # nothing needs them any more


def test_what_is_sent_again_is_taken_once(tmp_path: Path) -> None:
    """An exporter that got no answer in time sends the same batch: nothing is made anew for it."""
    with collecting(tmp_path, quiet_s=0) as (made, address):
        post(address, document(), JSON)
        assert [collected.run.outcome for collected in made.record()] == ["imported"]
        post(address, document(), JSON)
        assert list(made.record(all_of_them=True)) == []
        assert sorted(path.name for path in (tmp_path / FOLDER).iterdir()) == ["lock"]


def test_a_trace_without_its_root_is_recorded_in_the_end(tmp_path: Path) -> None:
    """After a while, or when the collector stops; it is said that it is incomplete."""
    clock = Clock()
    with collecting(tmp_path, idle_s=60, now_s=clock) as (made, address):
        post(address, document(1, 2), JSON)
        clock.now = 59
        assert list(made.record()) == []
        [collected] = made.record(all_of_them=True)
        assert (collected.complete, read_recording(collected.run.path).status) == (False, "open")


def test_what_was_acknowledged_is_taken_in_again(tmp_path: Path) -> None:
    """A collector that died before it had recorded anything: the next one has everything, and half a file is none."""
    with collecting(tmp_path) as (_, address):
        post(address, document(0, 1), JSON)
        post(address, document(2, 3), JSON)
    (tmp_path / FOLDER / "1.json.part").write_bytes(b"{")
    with collecting(tmp_path, quiet_s=0) as (made, _):
        assert made.taken_again == 2
        [collected] = made.record()
        assert (collected.run.source.spans, collected.run.replayability) == (4, "full")
        list(made.record(all_of_them=True))
        assert sorted(path.name for path in (tmp_path / FOLDER).iterdir()) == ["lock"]


def test_a_file_that_cannot_be_read_any_more_is_named(tmp_path: Path) -> None:
    """Somebody changed it: it is left where it is, and told."""
    with collecting(tmp_path) as (_, address):
        post(address, document(), JSON)
    [file] = (tmp_path / FOLDER).glob("*.json")
    file.write_bytes(b"changed")
    with collecting(tmp_path) as (made, _):
        assert (made.unread, made.taken_again, file.exists()) == ((file,), 0, True)


def test_a_bug_leaves_the_spans_with_their_sender(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever goes wrong is answered, and with nothing that looks like success; so is a package that is missing."""
    with collecting(tmp_path) as (made, address):
        monkeypatch.setattr(made._spool, "put", lambda _: 1 / 0)
        status, said = post(address, document(), JSON)
        assert (status, b"a bug in Playhead (ZeroDivisionError)" in said) == (500, True)
        monkeypatch.setitem(sys.modules, "opentelemetry.proto.collector.trace.v1.trace_service_pb2", None)
        status, said = post(address, LANGGRAPH)
        assert (status, b"pip install" in said) == (415, True)


def test_late_spans_of_a_recorded_trace_are_kept(tmp_path: Path) -> None:
    """What came when nobody remembered the others cannot join them: it is kept, and where is said."""
    with collecting(tmp_path, quiet_s=0) as (made, address):
        post(address, document(0, 1, 2), JSON)
        list(made.record(all_of_them=True))
    with collecting(tmp_path, quiet_s=0) as (made, address):
        post(address, document(3), JSON)
        [collected] = made.record(all_of_them=True)
        assert collected.run.outcome == "differs"
        [kept] = collected.kept_in
        assert kept.exists()
        assert len(read_recording(tmp_path / f"import-{TRACE}.jsonl").root.exchanges) == 1


def test_one_collector_at_a_time(tmp_path: Path) -> None:
    """A second one of the same folder, and one at the same port, are refused in a sentence."""
    with collecting(tmp_path) as (made, address):
        with pytest.raises(UsageError, match="another `playhead collect` writes into"):
            Collector(tmp_path)
        with pytest.raises(UsageError, match=r"cannot listen at 127\.0\.0\.1"):
            CollectServer(made.take, port=int(address.rpartition(":")[2]))


def test_more_than_fits_is_told_to_come_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """503 with Retry-After: exporters send again, and nothing that was acknowledged is dropped."""
    monkeypatch.setattr(collector_module, "MAX_SPANS", 5)
    with collecting(tmp_path, quiet_s=0) as (made, address):
        assert post(address, document(), JSON)[0] == 200
        assert post(address, document(), JSON)[0] == 503
        list(made.record(all_of_them=True))
        assert post(address, document(), JSON)[0] == 200


def test_a_full_disk_is_not_acknowledged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be stored is the sender's still."""
    with collecting(tmp_path) as (made, address):
        monkeypatch.setattr(made._spool, "put", _full)
        status, said = post(address, document(), JSON)
        assert (status, b"No space left" in said) == (503, True)


def _full(_: Any) -> None:
    raise OSError(28, "No space left on device")


class Process:
    """`playhead collect` in a process of its own."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        command = [
            sys.executable,
            "-m",
            "playhead",
            "collect",
            "--port",
            "0",
            "--trace-dir",
            str(folder),
            "--json",
            *arguments,
        ]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ}
        )
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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_stops_cleanly_and_loses_nothing(number: int, tmp_path: Path) -> None:
    """What was acknowledged a moment before is recorded before it ends."""
    running = Process(tmp_path)
    assert post(running.address, LANGGRAPH)[0] == 200
    code, out, err = running.end(number)
    assert (code, err) == (0, "")
    [run] = [json.loads(line) for line in out.splitlines()]
    assert (run["complete"], run["imported"]["replayability"]) == (True, "full")


def test_survives_being_killed(tmp_path: Path) -> None:
    """SIGKILL right after the acknowledgement: the next start records it."""
    running = Process(tmp_path)
    assert post(running.address, LANGGRAPH)[0] == 200
    assert running.end(signal.SIGKILL)[0] == -signal.SIGKILL
    again = Process(tmp_path, "--quiet", "0")
    for _ in range(200):
        if list(tmp_path.glob("import-*.jsonl")):
            break
        time.sleep(0.05)
    code, out, _ = again.end(signal.SIGTERM)
    assert (code, len(out.splitlines())) == (0, 1)


def test_an_open_address_is_warned_of(tmp_path: Path) -> None:
    """Others could write recordings then."""
    running = Process(tmp_path, "--host", "0.0.0.0")  # noqa: S104 - what is warned of
    assert post(f"http://127.0.0.1:{running.address.rpartition(':')[2]}", document(), JSON)[0] == 200
    assert running.end(signal.SIGTERM)[0] == 0
