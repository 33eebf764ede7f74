"""The command as a process: exit codes, pipes, terminals, signals, and what it costs to start."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from playhead.diagnose.integrity import check_trace
from playhead.diagnose.recording import read_recording
from tests.cli.command_line import process
from tests.cli.recorded import record_run
from tests.cli.terminals import written_to_a_terminal

if TYPE_CHECKING:
    from pathlib import Path

PLAYHEAD = [sys.executable, "-m", "playhead"]
pytestmark = pytest.mark.slow


def test_a_terminal_gets_colour_unless_it_is_not_wanted(store: Path) -> None:
    """Colour on a terminal; with NO_COLOR nothing but text, not even bold."""
    assert b"\x1b[" in written_to_a_terminal([*PLAYHEAD, "check", "good"])
    assert b"\x1b" not in written_to_a_terminal([*PLAYHEAD, "check", "good"], NO_COLOR="1")


def test_a_terminal_gets_a_pager(store: Path) -> None:
    """PAGER names the one that shows the events of a run; one that is closed early is no error, and nothing is said of the rest."""
    paged = written_to_a_terminal([*PLAYHEAD, "show", "good", "--all"], PAGER="sed s/^/paged:/").splitlines()
    shown = [line for line in paged if line.startswith(b"paged:") and line != b"paged:"]
    assert len(shown) == len(process("show", "good", "--all").stdout.splitlines())
    long = store / "long.jsonl"
    header, *lines = (store / "good.jsonl").read_bytes().splitlines(keepends=True)
    long.write_bytes(header + b"".join(lines) * 400)
    assert len(written_to_a_terminal([*PLAYHEAD, "show", str(long)], PAGER="head -n 2").splitlines()) == 2


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_who_has_had_enough(home: Path, unbuffered: str) -> None:
    """`| head` ends the command at once and in silence, with the code that a shell gives for it."""
    path = record_run(home, "long", answer="word " * 1_000)
    header, *lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(header + b"".join(lines) * 200)
    command = subprocess.Popen(
        [*PLAYHEAD, "show", "long.jsonl"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
    )  # fmt: skip
    assert command.stdout is not None
    os.read(command.stdout.fileno(), 10)
    command.stdout.close()
    assert command.stderr is not None
    assert (command.stderr.read(), command.wait(timeout=30)) == (b"", 141)
    command.stderr.close()


def test_outputs_that_cannot_take_what_is_written(store: Path) -> None:
    """A full disk is said in one line; without a stdout only the code is wanted; ASCII gets escapes, a pipe no colour."""
    with open("/dev/full", "wb") as full:  # noqa: PTH123 - a device
        done = subprocess.run([*PLAYHEAD, "check", "good"], stdout=full, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (70, b"playhead: the system says: No space left on device\n")
    closed = subprocess.run(["/bin/sh", "-c", '"$0" -m playhead check good >&- 2>&-', sys.executable], check=False)
    assert closed.returncode == 0
    ascii_only = process("show", "good", PYTHONIOENCODING="ascii", TERM="xterm-256color")
    assert (ascii_only.returncode, ascii_only.stdout.isascii(), b"\x1b" in ascii_only.stdout) == (0, True, False)


def test_a_bug_is_one_line_and_says_how_to_see_it(store: Path) -> None:
    """The traceback is there when it is asked for."""
    code = "import playhead.trace.store as s; del s.TraceStore.resolve; from playhead.cli.main import main; main(['show', 'x'])"
    debug = {**os.environ, "PLAYHEAD_DEBUG": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=debug)
    assert (done.returncode, done.stderr.partition("\n")[0]) == (70, "Traceback (most recent call last):")
    assert done.stderr.splitlines()[-1].startswith("playhead: this is a bug in Playhead (AttributeError: ")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["SIGTERM", "SIGINT"])
def test_a_signal_ends_a_run_in_order(home: Path, number: int, code: int) -> None:
    """It cancels what is awaited, closes the trace, and says where it is."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        run = ["run", "task", "--model", "ollama/m", "--api-base", address, "--run-id", "ended"]
        command = subprocess.Popen([*PLAYHEAD, *run], stderr=subprocess.PIPE)
        silent.settimeout(30)
        with silent.accept()[0]:  # the request is under way
            command.send_signal(number)
            assert command.stderr is not None
            said = command.stderr.read().decode()
        assert command.wait(timeout=30) == code
        command.stderr.close()
    path = home / ".playhead/traces/ended.jsonl"
    assert f"the trace is {path}\n" in said
    assert check_trace(path).ok
    ending = read_recording(path).ending
    assert ending is not None
    assert (ending.status, ending.terminated_by) == ("failed", "cancelled")


def modules_of(*command: str) -> set[str]:
    """Return the modules that a command loads."""
    code = (
        "import sys; from playhead.cli.main import commands\n"
        "try: commands.main(sys.argv[1:])\n"
        "finally: print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code, *command], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def test_a_command_loads_nothing_that_it_does_not_need(store: Path) -> None:
    """`--help` and `list` are quick; what only reads needs neither the kernel nor a model's package."""
    kernel = {"playhead.kernel", "playhead.agent.agent", "litellm", "anyio"}
    heavy = {"pydantic_core", "rich", "jsonlines", "playhead.trace.events", "playhead.cli.look"}
    assert (kernel | heavy) & modules_of("--help") == set()
    assert (kernel | {"playhead.trace.events"}) & modules_of("list") == set()
    assert kernel & modules_of("diff", "good", "good") == set()
