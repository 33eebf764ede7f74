"""`export`: spans to a collector or into a file; what became of them is said, and what went wrong is an exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from playhead.trace.control import Control
from tests.cli.command_line import objects, playhead
from tests.cli.recorded import EVIL, record_hostile_run, record_run
from tests.spans.collector import OK, Collector, Reply, rejecting
from tests.spans.spans import ids_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECRET = "hunter22-hunter22"


@pytest.fixture(autouse=True)
def no_telemetry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the caller's says where spans go."""
    for name in list(os.environ):
        if name.startswith(("OTEL_", "OPENINFERENCE_", "PHOENIX_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def collector() -> Iterator[Collector]:
    """A collector that takes everything."""
    made = Collector()
    yield made
    made.close()


def test_a_run_is_sent_and_it_is_said(store: Path, collector: Collector) -> None:
    """How many spans, and where to; `--resume` sends nothing twice, and without it everything is sent again."""
    ids = ids_of(store / "good.jsonl")
    result = playhead("export", "good", "--to", collector.address)
    where = f"{collector.address}/v1/traces"
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines() == [f"good  {len(ids)} spans sent", f"to  {where}"]
    assert collector.counts == Counter(ids)
    result = playhead("export", "good", "--to", collector.address, "--resume", "--json")
    assert objects(result) == [
        {
            "run": "good",
            "path": str(store / "good.jsonl"),
            "to": where,
            "sent": 0,
            "refused": 0,
            "skipped": len(ids),
            "refused_before": 0,
            "undelivered": 0,
            "all_counted": True,
            "interrupted": 0,
            "running": False,
            "perhaps_on": None,
            "error": None,
        }
    ]
    assert playhead("export", "good", "--to", collector.address).exit_code == 0
    assert set(collector.counts.values()) == {2}


def test_the_collector_may_be_named_by_the_standard_variables(
    store: Path, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the headers of the command line before those of the variables; a key may stay in the environment."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.address)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=a,x-other=b")
    monkeypatch.setenv("MY_KEY", SECRET)
    result = playhead("export", "good", "--header", "X-Key=env:MY_KEY")
    assert result.exit_code == 0
    headers = collector.requests[0].headers
    assert (headers["x-key"], headers["x-other"]) == (SECRET, "b")
    assert SECRET not in result.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["good"],
            "there is nowhere to export to: name a collector with --to http://localhost:4318 or in OTEL_EXPORTER",
        ),
        ([], "there is nowhere to export to"),
        (["--to", "http://h"], "name runs, or choose them with --since"),
        (["good", "--since", "1h", "--to", "http://h"], "name runs, or choose them with --since, not both"),
        (["good", "--to", "localhost"], "--to is no URL of a collector"),
        (["good", "-o", "x"], "-o needs --format"),
        (["good", "--format", "otlp-json", "--resume"], "--to, --header and --resume are for sending it"),
        (
            ["good", "--to", "http://h", "--header", SECRET],
            "write NAME=VALUE, such as temperature=0, or NAME=env:VARIABLE",
        ),
        (
            ["good", "--to", "http://h", "--header", f"x=env:{SECRET}"],
            "the environment has no variable of the name that is given",
        ),
        (["good", "--to", "http://h", "--header", f"x={SECRET}\n"], "holds characters that no header can hold"),
        (
            ["good", "--to", "http://h", "--retry-for", "soon"],
            "'--retry-for': it is a length of time: seconds, text such as '500ms'",
        ),
        (
            ["good", "--to", "http://h", "--retry-for", "0s"],
            "it is a length of time that is more than 0; it is '0s'",
        ),
        (["good", "--to", "http://h", "--retry-for", "5 minutes"], "it is '5 minutes'"),
        (
            ["--since", "yore", "--to", "http://h"],
            "'--since': 'yore': write a time ago, such as 30m or 1d12h, or a moment, such as 2026-11-22T09:00",
        ),
        (["--since", "2 hours ago", "--to", "http://h"], "'2 hours ago': write"),
        (["--since", "y" * 500, "--to", "http://h"], f"{'y' * 80}…': write"),
        (["good", "--format", "otlp-json", "-o", "{store}/good.jsonl"], "File exists"),
    ],
)
def test_a_command_line_that_cannot_be_is_refused(store: Path, arguments: list[str], said: str) -> None:
    """With what would be right, and without any key."""
    result = playhead("export", *(each.replace("{store}", str(store)) for each in arguments))
    assert result.exit_code == 2, result.output
    assert said in result.stderr
    assert SECRET not in result.stderr


def test_runs_may_be_chosen_by_their_time(store: Path, collector: Collector) -> None:
    """Since a moment, or some time ago; when there are none, that is said."""
    (store / "good.jsonl").unlink()  # its clock starts in 2026
    first = record_run(store, "a")
    started = json.loads(first.read_bytes().splitlines()[0])["ts"] / 1e6
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started - 1))
    result = playhead("export", "--since", moment, "--to", collector.address, "--json")
    assert [run["run"] for run in objects(result)] == ["a"]
    result = playhead(
        "export", "--since", time.strftime("%Y-%m-%d", time.gmtime(started + 200_000)), "--to", "http://h"
    )
    assert (result.exit_code, "no run in" in result.stderr) == (3, True)


@pytest.mark.parametrize("form", ["otlp-json", "openinference-jsonl"])
@pytest.mark.parametrize("to_file", [False, True], ids=["stdout", "file"])
def test_spans_may_be_written_as_text(store: Path, form: str, to_file: bool) -> None:
    """One object a line; to a file that only its owner can read, or to stdout, where nothing else is then."""
    output = store / "spans.out"
    result = playhead("export", "good", "--format", form, *(["-o", str(output)] if to_file else []))
    assert result.exit_code == 0
    lines = (output.read_text() if to_file else result.stdout).splitlines()
    ids = ids_of(store / "good.jsonl")
    if form == "otlp-json":
        (said,) = map(json.loads, lines)
        assert [span["spanId"] for span in said["resourceSpans"][0]["scopeSpans"][0]["spans"]] == ids
    else:
        assert [json.loads(line)["context"]["span_id"] for line in lines] == [f"0x{each}" for each in ids]
    if to_file:
        assert output.stat().st_mode & 0o777 == 0o600
        assert result.stdout.splitlines() == [f"good  {len(ids)} spans written", f"to  {output}"]
    else:
        assert result.stderr == f"good: {len(ids)} spans written\n"


def test_refused_spans_are_an_error_that_names_them(store: Path) -> None:
    """The rest is sent; `--resume` does not send them again, says that nobody has them, and that all is not well."""
    rejected = rejecting(1, "too old")
    collector = Collector(rule=lambda sent: rejected if any(s.name.startswith("tool:") for s in sent.spans) else OK)
    result = playhead("export", "good", "--to", collector.address)
    assert result.exit_code == 1
    assert "1 refused" in result.stdout
    assert "refused 1 span: too old (tool:" in result.stderr
    before = len(collector.requests)
    again = playhead("export", "good", "--to", collector.address, "--resume")
    assert (again.exit_code, len(collector.requests)) == (1, before)
    assert "there already, 1 refused before" in again.stdout
    assert "sent again by the same command without --resume" in again.stderr
    collector.close()


@pytest.mark.parametrize(
    ("usual", "said"),
    [(Reply(401), "401 Unauthorized"), (Reply(503), "503 Service Unavailable"), (None, "connection refused")],
    ids=["unauthorized", "unavailable", "dead"],
)
def test_a_collector_that_takes_nothing_is_an_error(store: Path, usual: Reply | None, said: str) -> None:
    """After the time that is given: what is missing is counted, and `--resume` sends it."""
    collector = Collector(usual=usual or Reply())
    if usual is None:
        collector.close()
    result = playhead("export", "good", "--to", collector.address, "--retry-for", "300ms")
    assert result.exit_code == 1
    assert f"{len(ids_of(store / 'good.jsonl'))} not delivered" in result.stdout
    assert f"takes nothing: {said}" in result.stderr
    again = Collector()
    assert "0 spans sent" not in playhead("export", "good", "--to", again.address, "--resume").stdout
    collector.close() if usual else None
    again.close()


def test_open_spans_of_a_dead_run_are_sent_as_interrupted_and_of_a_live_one_not(
    store: Path, collector: Collector
) -> None:
    """Whether it is dead, its control folder says: as long as a process holds that, the run goes on."""
    path = store / "open.jsonl"
    path.write_bytes(b"".join((store / "good.jsonl").read_bytes().splitlines(keepends=True)[:-2]))
    control = Control.create(path)
    said = objects(playhead("export", "open", "--to", collector.address, "--resume", "--json"))[0]
    assert (said["running"], said["interrupted"], said["sent"]) == (True, 0, len(ids_of(path)) - 1)
    control.close()
    said = objects(playhead("export", "open", "--to", collector.address, "--resume", "--json"))[0]
    assert (said["running"], said["interrupted"], said["sent"]) == (False, 1, 1)
    assert collector.counts == Counter(ids_of(path))


def test_follow_reads_a_run_while_it_is_written(store: Path, collector: Collector) -> None:
    """A torn last line is waited for, and the run's end ends it."""
    lines = (store / "good.jsonl").read_bytes().splitlines(keepends=True)
    path = store / "slow.jsonl"
    path.write_bytes(b"".join(lines[:-1]) + lines[-1][:10])
    control = Control.create(path)

    def write() -> None:
        collector.wait_for(1)
        with path.open("ab") as file:
            file.write(lines[-1][10:])

    thread = threading.Thread(target=write)
    thread.start()
    result = playhead("export", path, "--to", collector.address, "--follow", "--json")
    thread.join()
    control.close()
    assert (result.exit_code, result.stderr) == (0, "")
    assert collector.counts == Counter(ids_of(store / "good.jsonl"))


def test_what_is_no_trace_does_not_keep_the_others_back(store: Path, collector: Collector) -> None:
    """It is said, and the exit code is that of what cannot be read."""
    (store / "junk.jsonl").write_bytes(b"junk\n")
    result = playhead("export", "junk", "good", "--to", collector.address)
    assert result.exit_code == 3
    assert "junk: its spans cannot be sent: junk.jsonl is not a Playhead trace" in result.stderr
    assert collector.counts == Counter(ids_of(store / "good.jsonl"))
    assert playhead("export", "nosuch", "--to", collector.address).exit_code == 3


def test_nothing_of_a_trace_or_a_collector_steers_the_terminal(store: Path) -> None:
    """Names of spans and words of collectors are shown as escapes."""
    path = record_hostile_run(store)
    collector = Collector(usual=Reply(400, body=EVIL.encode()))
    result = playhead("export", path, "--to", collector.address)
    assert result.exit_code == 1
    assert not any(each in result.output for each in "\x1b\x07\x9b\u202e\u2066\u200b\x7f")
    for form in ("otlp-json", "openinference-jsonl"):
        written = playhead("export", path, "--format", form)
        assert written.stdout.isascii()
        assert not any(each in written.stdout for each in "\x1b\x07\x7f")
    collector.close()


def test_a_run_of_the_command_line_is_exported_live(store: Path, collector: Collector) -> None:
    """`playhead run` too: the end of the process waits for the spans."""
    code = (
        "from playhead import Agent\nfrom playhead.testing import ScriptedModel, text\n"
        "Agent(ScriptedModel([text('hi')])).run_sync('x', run_id='live')\n"
    )
    environment: dict[str, Any] = {**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": collector.address}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert collector.counts == Counter(ids_of(store / "live.jsonl"))
    said = objects(playhead("export", "live", "--to", collector.address, "--resume", "--json"))[0]
    assert (said["sent"], said["skipped"]) == (0, 2)
