"""Processes whose runs are exported, and that end in every way that there is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from playhead.spans.cursor import FOLDER
from tests.cli.command_line import objects, playhead
from tests.proving import bound, sample
from tests.spans.collector import Collector, Received, Reply
from tests.spans.spans import ids_of, record_run

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

DEAD = "http://127.0.0.1:9"


def start(what: str, folder: Path, endpoint: str) -> subprocess.Popen[str]:
    """Start a program whose runs are exported there."""
    environment = {**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint}
    command = [sys.executable, "-m", "tests.spans.child", what, str(folder)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Return what a program has written until its end."""
    return process.communicate(timeout=30)


def resumed(path: Path, collector: Collector) -> dict[str, object]:
    """Return what `playhead export --resume` says of a run."""
    result = playhead("export", path, "--resume", "--to", collector.address, "--json")
    assert result.exit_code == 0, result.output
    return objects(result)[0]


def left_to(process: int, collector: Collector) -> str:
    """Return what `playhead export` says of the run when another process sends it."""
    return f"run: process {process} is sending it to {collector.address}/v1/traces, so it is left to that\n"


@pytest.mark.parametrize("arrived", [False, True], ids=["before anything arrived", "when some had arrived"])
def test_after_sigkill_what_is_missing_is_sent(tmp_path: Path, collector: Collector, arrived: bool) -> None:
    """Every span of every durable event, what was open as interrupted, and nothing that was acknowledged again.

    While the process lives, the run is left to it.
    """
    process = start("wait", tmp_path, collector.address if arrived else DEAD)
    assert process.stdout is not None
    assert process.stdout.readline() == "waiting\n"
    late_at = time.monotonic() + 10
    while arrived and not any('"accepted":7' in each.read_text() for each in (tmp_path / FOLDER).rglob("run.json")):
        assert time.monotonic() < late_at
        time.sleep(0.01)
    path = tmp_path / "run.jsonl"
    if arrived:
        result = playhead("export", path, "--resume", "--to", collector.address)
        assert (result.exit_code, result.stderr) == (0, left_to(process.pid, collector))
    process.kill()
    ended(process)
    said = resumed(path, collector)
    assert collector.counts == Counter(ids_of(path))
    assert (said["sent"], said["skipped"], said["interrupted"]) == ((2, 7, 2) if arrived else (9, 0, 2))
    assert resumed(path, collector)["sent"] == 0


def test_sigterm_sends_what_is_left_before_the_process_ends(tmp_path: Path, collector: Collector) -> None:
    """The run ends in order, so every span arrives, and nothing is left to resume."""
    process = start("wait", tmp_path, collector.address)
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    ended(process)
    assert process.returncode == -signal.SIGTERM
    assert collector.counts == Counter(ids_of(tmp_path / "run.jsonl"))
    assert resumed(tmp_path / "run.jsonl", collector)["sent"] == 0


def test_sigterm_without_a_collector_ends_in_time_and_says_what_is_missing(
    tmp_path: Path, collector: Collector
) -> None:
    """And `playhead export --resume` sends all of it."""
    process = start("wait", tmp_path, DEAD)
    assert process.stdout is not None
    process.stdout.readline()
    started = time.monotonic()
    process.send_signal(signal.SIGTERM)
    _, said = ended(process)
    assert time.monotonic() - started < bound(4)
    path = tmp_path / "run.jsonl"
    assert (
        f"{len(ids_of(path))} spans of run run could not be delivered to {DEAD}/v1/traces (connection refused)" in said
    )
    assert resumed(path, collector)["sent"] == len(ids_of(path))
    assert collector.counts == Counter(ids_of(path))


@pytest.mark.parametrize(
    ("usual", "why"),
    sample(
        [(None, "connection refused"), (Reply(delay_s=20.0), "it did not answer in time")],
        [(None, "connection refused")],
    ),
)
def test_the_end_of_a_process_is_delayed_by_two_seconds_at_most(
    tmp_path: Path, collector: Collector, usual: Reply | None, why: str
) -> None:
    """What could not be delivered is said once; the command that is named delivers it."""
    endpoint = DEAD if usual is None else Collector(usual=usual).address
    process = start("run", tmp_path, endpoint)
    output, said = ended(process)
    assert float(output) < bound(2.3)  # seconds from the end of the program to that of what is done at the exit
    path = tmp_path / "run.jsonl"
    assert process.returncode == 0
    (line,) = said.strip().splitlines()
    assert f"{len(ids_of(path))} spans of run run could not be delivered" in line
    assert why in line
    command = line.partition("playhead ")[2].split()
    assert playhead(*command, "--to", collector.address).exit_code == 0
    assert collector.counts == Counter(ids_of(path))


def test_a_forked_child_sends_its_own_runs_and_none_of_its_parents(tmp_path: Path, collector: Collector) -> None:
    """Each span of both runs arrives once, from a worker of `multiprocessing` that is forked after a run."""
    process = start("worker", tmp_path, collector.address)
    _, said = ended(process)
    assert process.returncode == 0
    for late in said.splitlines():  # a busy machine may not even import the libraries in two seconds
        assert playhead(*late.partition("playhead ")[2].split(), "--to", collector.address).exit_code == 0
    paths = [tmp_path / "run.jsonl", tmp_path / "child.jsonl"]
    assert collector.counts == Counter(span for path in paths for span in ids_of(path))
    assert len(list((tmp_path / FOLDER).rglob("*.json"))) == 2


def test_two_commands_at_once_send_a_run_once(tmp_path: Path, collector: Collector) -> None:
    """The second says which process sends it, and leaves it; that is no failure."""
    path = record_run(tmp_path)
    has_begun, may_go_on = threading.Event(), threading.Event()

    def hold(_: Received) -> Reply:
        has_begun.set()
        may_go_on.wait(10)
        return Reply()

    collector.rule = hold
    command = [sys.executable, "-m", "playhead", "export", str(path), "--to", collector.address]
    first = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert has_begun.wait(10)
    second = playhead("export", path, "--to", collector.address, "--json")
    may_go_on.set()
    assert ended(first) == (f"run  8 spans sent\nto  {collector.address}/v1/traces\n", "")
    assert (second.exit_code, second.stderr) == (0, left_to(first.pid, collector))
    assert (objects(second)[0]["sender"], objects(second)[0]["sent"]) == (first.pid, 0)
    assert collector.counts == Counter(ids_of(path))
    assert resumed(path, collector)["skipped"] == 8


def test_a_forked_child_does_not_hold_what_its_parent_was_sending(tmp_path: Path, collector: Collector) -> None:
    """It has its files open for as long as it likes; when the parent is dead, any process may send the run."""
    process = start("fork", tmp_path, collector.address)
    assert process.stdout is not None
    child = int(process.stdout.readline())
    collector.wait_for(7)
    process.kill()
    process.wait()
    said = resumed(tmp_path / "run.jsonl", collector)
    os.kill(child, signal.SIGKILL)
    ended(process)
    assert said["sender"] is None
    assert set(collector.counts) >= set(ids_of(tmp_path / "run.jsonl")[:7])


@pytest.mark.parametrize(("pool", "sent"), [("pool", 4), ("futures", 0)])
def test_after_a_pool_the_rest_is_sent_and_its_number_said(
    tmp_path: Path, collector: Collector, pool: str, sent: int
) -> None:
    """`multiprocessing.Pool` as a context manager kills its workers before they can deliver; an executor waits for them."""
    if pool == "pool":
        collector.usual = Reply(503, {"Retry-After": "60"})  # or some may have arrived
    process = start(pool, tmp_path, collector.address)
    ended(process)
    assert process.returncode == 0
    collector.usual = Reply()
    result = playhead("export", "--since", "1h", "--resume", "--trace-dir", tmp_path, "--to", collector.address)
    rest = f"{sent} spans sent" + (", 4 there already" if not sent else "")
    assert result.stdout.splitlines() == [f"run-0  {rest}", f"run-1  {rest}", f"to  {collector.address}/v1/traces"]
    assert collector.counts == Counter(span for number in range(2) for span in ids_of(tmp_path / f"run-{number}.jsonl"))
