"""`export`: spans to a collector or into a file; what became of them is said, and what went wrong is an exit code."""

from __future__ import annotations

import json
import os
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from playhead.kernel.lifecycle.own_control import OwnControl
from tests.cli.command_line import objects, playhead
from tests.cli.recorded import EVIL, record_hostile_run
from tests.spans.collector import OK, Collector, Reply, rejecting
from tests.spans.spans import ids_of, record_run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECRET = "hunter22-hunter22"


@pytest.fixture(autouse=True)
def no_telemetry(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy of the caller's; the variables of collectors are gone in all tests."""
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
    where = f"{collector.address}/v1/traces"
    result = playhead("export", "good", "--to", collector.address)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines() == [f"good  {len(ids)} spans sent", f"to  {where}"]
    assert collector.counts == Counter(ids)
    (said,) = objects(playhead("export", "good", "--to", collector.address, "--resume", "--json"))
    counts = {"sent": 0, "refused": 0, "skipped": len(ids), "refused_before": 0, "undelivered": 0, "interrupted": 0}
    state = {"all_counted": True, "sender": None, "running": False, "error": None}
    assert said == {"run": "good", "path": str(store / "good.jsonl"), "to": where, **counts, **state}
    assert playhead("export", "good", "--to", collector.address).exit_code == 0
    assert set(collector.counts.values()) == {2}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("good", "there is nowhere to export to: name a collector with --to http://localhost:4318 or in OTEL_EXPORTER"),
        ("--to http://h", "name runs, or choose them with --last, --since"),
        ("good --to localhost", "--to is not the URL of a collector"),
        ("good -o x", "-o needs --format"),
        ("good --format otlp-json --resume", "--to, --header and --resume are for sending it"),
        (f"good --to http://h --header {SECRET}", "write NAME=VALUE, such as temperature=0, or NAME=env:VARIABLE"),
        (f"good --to http://h --header x=env:{SECRET}", "the environment has no variable of the name that is given"),
        ("good --to http://h --retry-for 0s", "it is a length of time that is more than 0; it is '0s'"),
        ("--since yore --to http://h", "'yore': write a time ago, such as 30m or 1d12h, or a moment, such as"),
        ("good --format otlp-json -o {store}/good.jsonl", "File exists"),
    ],
)
def test_a_command_line_that_cannot_be_is_refused(store: Path, arguments: str, said: str) -> None:
    """With what would be right, and without any key."""
    result = playhead("export", *arguments.replace("{store}", str(store)).split())
    assert result.exit_code == 2, result.output
    assert said in result.stderr
    assert SECRET not in result.stderr


def test_runs_may_be_chosen_by_their_time(store: Path, collector: Collector) -> None:
    """A file that cannot be read counts by when it was written, and is named; when there is no run, that is said."""
    started = json.loads((store / "good.jsonl").read_bytes().splitlines()[0])["ts"] / 1e6
    for name in ("bad", "old"):
        (store / f"{name}.jsonl").write_text("no trace\n")
    os.utime(store / "old.jsonl", (0, 0))
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started - 1))
    result = playhead("export", "--since", moment, "--to", collector.address, "--json")
    assert (result.exit_code, {run["run"]: run["sent"] for run in objects(result)}) == (3, {"good": 4, "bad": 0})
    assert "bad: its spans cannot be sent: bad.jsonl is not a Playhead trace" in result.stderr
    result = playhead("export", "--since", "2999-01-01", "--to", "http://h")
    assert (result.exit_code, "no run in" in result.stderr) == (3, True)


@pytest.mark.parametrize(("form", "to_file"), [("otlp-json", True), ("openinference-jsonl", False)])
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


def test_a_prompt_is_cut_as_the_option_or_the_variable_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--max-messages` overrides the variable, 0 with all; the newest turn is shown with its whole conversation."""
    long = record_run(tmp_path)

    def most(*arguments: str) -> int:
        text = playhead("export", str(long), "--format", "openinference-jsonl", *arguments).stdout
        spans = [json.loads(line)["attributes"] for line in text.splitlines()]
        return max(len(json.loads(span["input.value"])["messages"]) for span in spans if "llm.model_name" in span)

    whole = most()
    assert most("--max-messages", "1") < whole
    monkeypatch.setenv("PLAYHEAD_SPAN_MESSAGES", "1")
    assert most() < whole
    assert most("--max-messages", "0") == most("--max-messages", "30") == whole


def test_another_project_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run goes to the project it was recorded for; a variable sends it to another one, and the command says so."""
    with monkeypatch.context() as patch:
        patch.setenv("PHOENIX_PROJECT_NAME", "alps")
        path = str(record_run(tmp_path))

    def project() -> tuple[str, str]:
        result = playhead("export", path, "--format", "otlp-json")
        attributes = json.loads(result.stdout.splitlines()[0])["resourceSpans"][0]["resource"]["attributes"]
        named = {each["key"]: each["value"]["stringValue"] for each in attributes}
        return named["openinference.project.name"], result.stderr

    assert project() == ("alps", "run: 8 spans written\n")
    monkeypatch.setenv("PHOENIX_PROJECT_NAME", "rockies")
    name, said = project()
    assert name == "rockies"
    assert "run: it was recorded for openinference.project.name 'alps'; its spans go to 'rockies', as the" in said


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


def test_a_collector_that_takes_nothing_is_an_error(store: Path, collector: Collector) -> None:
    """After the time that is given: what is missing is counted, and `--resume` sends it."""
    collector.usual = Reply(503)
    result = playhead("export", "good", "--to", collector.address, "--retry-for", "100ms")
    assert result.exit_code == 1
    assert f"{len(ids_of(store / 'good.jsonl'))} not delivered" in result.stdout
    assert "takes nothing: 503 Service Unavailable" in result.stderr
    collector.usual = OK
    assert "0 spans sent" not in playhead("export", "good", "--to", collector.address, "--resume").stdout


def test_open_spans_of_a_dead_run_are_sent_as_interrupted_and_of_a_live_one_not(
    store: Path, collector: Collector
) -> None:
    """Its control folder says which: as long as a process holds it, the run goes on, whatever is assumed."""
    path = store / "open.jsonl"
    path.write_bytes(b"".join((store / "good.jsonl").read_bytes().splitlines(keepends=True)[:-2]))
    control = OwnControl.create(path)
    said = objects(playhead("export", "open", "--to", collector.address, "--resume", "--assume-dead", "--json"))[0]
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
    control = OwnControl.create(path)

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


def test_nothing_of_a_trace_or_a_collector_steers_the_terminal(store: Path) -> None:
    """Names of spans and words of collectors are shown as escapes."""
    path = record_hostile_run(store)
    collector = Collector(usual=Reply(400, body=EVIL.encode()))
    result = playhead("export", path, "--to", collector.address)
    assert result.exit_code == 1
    assert not any(each in result.output for each in "\x1b\x07\x9b\u202e\u2066\u200b\x7f")
    assert playhead("export", path, "--format", "otlp-json").stdout.isascii()
    collector.close()


# --- runs of machines that cannot be seen: containers, shared disks -----------------------------------------------------


@pytest.fixture
def elsewhere(store: Path) -> Path:
    """The trace of a run of another machine, which was killed before its last two events."""
    path = store / "open.jsonl"
    path.write_bytes(b"".join((store / "good.jsonl").read_bytes().splitlines(keepends=True)[:-2]))
    control = OwnControl.create(path)
    said = json.loads(control.process_file.read_bytes())
    control.process_file.write_text(json.dumps({**said, "host": "container-a1b2"}))
    assert control._lock is not None
    os.close(control._lock)  # as its death does
    return path


def test_open_spans_wait_as_long_as_it_may_go_on(elsewhere: Path, collector: Collector) -> None:
    """It names the way out, and is no success; then the way is gone, and all spans are there."""
    result = playhead("export", elsewhere, "--to", collector.address, "--resume")
    assert (result.exit_code, result.stderr) == (1, "")
    assert "it may still go on elsewhere: --assume-dead sends its open spans" in result.stdout
    result = playhead("export", elsewhere, "--to", collector.address, "--resume", "--assume-dead", "--json")
    said = objects(result)[0]
    assert (result.exit_code, result.stderr) == (0, "")
    assert (said["sent"], said["interrupted"], said["running"]) == (1, 1, False)
    assert collector.counts == Counter(ids_of(elsewhere))
