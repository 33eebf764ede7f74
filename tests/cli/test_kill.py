"""`playhead kill`: it ends the run that was meant, says how, and never touches another process."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from playhead.diagnose.integrity import check_trace
from playhead.trace.control import FOLDER, Control
from tests.cli.command_line import playhead
from tests.cli.other_processes import begin, end, running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow


def test_a_run_that_ends_itself(folder: Path):
    """It is asked, closes its trace with the reason, and its process lives on."""
    with running("obeys", folder / "mine.jsonl") as process:
        result = playhead("kill", "mi", "--why", "wrong table", "--grace", "20")
        assert process.stdout is not None
        assert process.stdout.readline() == b"ended\n"
        assert process.poll() is None
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("ended: mine, 0.")
    how = " s after it was asked: closed by itself, terminated_by kill; its process was left alone\n"
    assert result.stdout.endswith(how)
    assert check_trace(folder / "mine.jsonl").ok
    assert '"wrong table"' in (folder / "mine.jsonl").read_text()
    assert not (folder / FOLDER).exists()
    again = playhead("kill", "mine")
    assert (again.exit_code, again.stdout) == (1, "")
    assert again.stderr == "playhead: run mine has ended by kill; nothing to kill\n"


def test_a_run_that_does_not(folder: Path):
    """With --process, after the grace: SIGKILL, once what ends with it has been named; other processes live on."""
    paths = [folder / f"{name}.jsonl" for name in ("mine", "beside", "other_folder/elsewhere")]
    with running("ignores", *paths) as process, running("ignores", folder / "other.jsonl") as other:
        result = playhead("kill", "mine", "--grace", "0.1", "--process")
        assert process.wait(10) == -9
        assert other.poll() is None
        assert [each.run_id for each in Control.all_in(folder)] == ["other"]
    assert (result.exit_code, result.stderr) == (
        0, f"killing its process {process.pid}, and with it the other runs in it: beside, elsewhere\n",
    )  # fmt: skip
    ended, also = result.stdout.splitlines()
    assert ended.startswith("ended: mine, 0.")
    assert ended.endswith(
        f": its process {process.pid} was killed (SIGKILL), and `playhead check` says how its trace ends"
    )
    assert also == "also ended: beside, elsewhere"
    assert check_trace(folder / "mine.jsonl").verdict == "open"


def test_no_process_is_killed_unasked(folder: Path):
    """Without --process a run that does not stop is left alone: exit 1, with the way out and what that would cost."""
    with running("ignores", folder / "mine.jsonl", folder / "beside.jsonl") as process:
        result = playhead("kill", "mine", "--grace", "0.05")
        assert process.poll() is None
    assert (result.exit_code, result.stderr) == (1, "")
    said, beside = result.stdout.splitlines()
    assert said.startswith("still running: mine, 0.")
    assert said.endswith(f"it has not stopped; --process kills its whole process {process.pid} (SIGKILL)")
    assert beside == "it runs these too, and they would end with it: beside"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["gone"], 1, "is gone, and the trace has no end; nothing to kill"),
        (["nosuch"], 3, "no run 'nosuch'"),
        (["open", "--grace", "-1"], 2, "--grace"),
        (["open"], 1, "run open cannot be reached: it has no end, but no control folder of yours"),
        (["over"], 1, "run over has ended by kill; nothing to kill"),
        (["broken"], 3, "run broken cannot be reached: broken.jsonl is no trace that can be read"),
    ],
)
def test_what_cannot_be_killed(folder: Path, arguments: list[str], code: int, said: str):
    """Each in one line, and nothing else; of a process that is gone, another run's least of all."""
    with running("ends", folder / "gone.jsonl"):
        pass
    begin(folder / "open.jsonl").seal()
    end(begin(folder / "over.jsonl"), "")
    (folder / "broken.jsonl").write_text("{")
    result = playhead("kill", *arguments)
    assert (result.exit_code, result.stdout) == (code, "")
    assert result.stderr.count("\n") == 1
    assert said in result.stderr


def rewrite(folder: Path, **changes: Any) -> None:
    """Change what the control folder of `mine` says of its process; its lock stays."""
    path = folder / FOLDER / "mine" / "process.json"
    said = json.loads(path.read_text())
    path.write_text(json.dumps({**said, **changes}))


@contextmanager
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    """Run a process that has nothing to do with any run, and which has to live on."""
    process = subprocess.Popen(["sleep", "60"])  # noqa: S607 - the one in the path
    try:
        yield process
        assert process.poll() is None
    finally:
        process.kill()
        process.wait(10)


def test_another_process_is_never_killed(folder: Path):
    """A process id that is used again, or was forged: asked, and then left alone, which is said."""
    said: list[str] = []
    with stranger() as other, running("ignores", folder / "mine.jsonl") as process:
        for changes in (
            {"pid": other.pid, "created_us": time.time_ns() // 1000},
            {"pid": other.pid, "created_us": 1},
            {"pid": 1},
            {"pid": 2**22 + 5},
        ):
            rewrite(folder, **changes)
            result = playhead("kill", "mine", "--grace", "0", "--process")
            assert result.exit_code == 1
            said.append(result.stderr)
        assert process.poll() is None
    asked = "playhead: run mine was asked to end and has not within 0 s; its process is not killed: "
    assert said == [
        f"{asked}the process {other.pid} may be another: it does not hold the run's control folder\n",
        f"{asked}the process {other.pid} is another: it began after the run\n",
        f"{asked}its process is 1, which is never killed from here\n",
        f"{asked}the process {2**22 + 5} is gone\n",
    ]


HUNG = """
import re, sys, time
from pathlib import Path
from playhead import Agent, tool, Context
from playhead.testing import ScriptedModel, call, text

@tool
def sleeps() -> str:
    "Hang."
    print("ready", flush=True)
    time.sleep(60)

@tool
def holds() -> str:
    "Hold the interpreter for ever."
    print("ready", flush=True)
    re.match("(a+)+$", "a" * 64 + "b")

def model(request):
    print("ready", flush=True)
    return text("Too late.", delay_s=60)

agent = Agent(
    ScriptedModel([model if sys.argv[2] == "model" else call(sys.argv[2])]), tools=[sleeps, holds], trace=Path(sys.argv[1]),
    context=Context(rationale=False),
)
print(agent.run_sync("go", run_id="mine").terminated_by, flush=True)
"""


@pytest.mark.parametrize(
    ("hung", "how"),
    [
        ("model", "closed by itself, terminated_by kill; its process was left alone"),
        ("sleeps", "closed by itself, terminated_by kill; its process was left alone"),
        ("holds", "was killed (SIGKILL), and `playhead check` says how its trace ends"),
    ],
)
def test_a_real_run_that_hangs(folder: Path, hung: str, how: str):
    """A request, and hung code that lets go of the interpreter, end in order; what never does is killed with its process."""
    command = [sys.executable, "-c", HUNG, str(folder), hung]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            result = playhead("kill", "mine", "--grace", "0.4" if hung == "holds" else "20", "--process")
            said = process.stdout.read()
        finally:
            process.kill()
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.endswith(f"{how}\n")
    assert (said, process.returncode) == ((b"", -9) if hung == "holds" else (b"kill\n", 0))
    assert check_trace(folder / "mine.jsonl").verdict == ("open" if hung == "holds" else "ok")
    assert not (folder / FOLDER).exists()
