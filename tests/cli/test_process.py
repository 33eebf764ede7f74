"""The command as a process: exit codes, pipes, terminals, signals, and what it costs to start."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from playhead.trace.integrity import check_trace
from playhead.trace.recording import read_recording
from tests.cli.command_line import playhead, process
from tests.cli.recorded import record_run
from tests.cli.terminals import written_to_a_terminal

if TYPE_CHECKING:
    from pathlib import Path

PLAYHEAD = [sys.executable, "-m", "playhead"]


def terminal(*arguments: str, **environment: str) -> bytes:
    """Return what a command writes to a terminal."""
    return written_to_a_terminal([*PLAYHEAD, *arguments], **environment)


def test_exit_codes(store: Path) -> None:
    """1 a check failed, 3 unreadable, 4 inconclusive: of the process itself."""
    lines = (store / "good.jsonl").read_bytes().splitlines(keepends=True)
    (store / "half.jsonl").write_bytes(b"".join(lines[:-3]))
    codes = {
        arguments: process(*arguments.split()).returncode
        for arguments in ("check half", "check nosuch", "reproduce half")
    }
    assert codes == {"check half": 1, "check nosuch": 3, "reproduce half": 4}


def test_a_terminal_gets_colour_unless_it_is_not_wanted(store: Path) -> None:
    """Colour on a terminal; with NO_COLOR nothing but text, not even bold."""
    assert b"\x1b[" in terminal("show", "good")
    assert b"\x1b" not in terminal("show", "good", NO_COLOR="1")


@pytest.mark.parametrize(("form", "unbuffered"), [([], ""), (["--json"], "1")])
def test_a_reader_who_has_had_enough(home: Path, form: list[str], unbuffered: str) -> None:
    """`| head` ends the command at once and in silence, with the code that a shell gives for it."""
    path = record_run(home, "long", answer="word " * 1_000)
    header, *lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(header + b"".join(lines) * 200)
    command = subprocess.Popen(
        [*PLAYHEAD, "show", "long.jsonl", *form], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
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


def test_a_signal_ends_a_run_in_order(home: Path) -> None:
    """SIGTERM, as Ctrl-C a replay, cancels what is awaited, closes the trace, and says where it is."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        run = ["run", "task", "--model", "ollama/m", "--api-base", address, "--run-id", "ended"]
        command = subprocess.Popen([*PLAYHEAD, *run], stderr=subprocess.PIPE)
        silent.settimeout(30)
        with silent.accept()[0]:  # the request is under way
            command.send_signal(signal.SIGTERM)
            assert command.stderr is not None
            said = command.stderr.read().decode()
        assert command.wait(timeout=30) == 143
        command.stderr.close()
    path = home / ".playhead/traces/ended.jsonl"
    assert f"the trace is {path}\n" in said
    assert check_trace(path).ok
    ending = read_recording(path).ending
    assert ending is not None
    assert (ending.status, ending.terminated_by) == ("failed", "cancelled")


def test_a_missing_key_through_the_real_adapter(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Litellm's own error becomes one line that names the variable: usage, and no traceback."""
    for name in [name for name in os.environ if name.endswith(("_API_KEY", "_API_BASE", "_BASE_URL"))]:
        monkeypatch.delenv(name)
    done = playhead("run", "task", "--model", "openai/gpt-4o-mini")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1].startswith("playhead: ")
    assert "OPENAI_API_KEY" in done.stderr.splitlines()[-1]


def test_demo_in_an_empty_home(home: Path) -> None:
    """No key, no network, no file, and a clean environment: it works, and leaves two traces."""
    environment = {"HOME": str(home), "PATH": os.environ["PATH"]}
    done = subprocess.run([*PLAYHEAD, "demo"], env=environment, capture_output=True, text=True, check=False, cwd="/")
    assert (done.returncode, done.stderr) == (0, f"Playhead records runs in {home}/.playhead/traces\n")
    assert len(list((home / ".playhead/traces").rglob("*.jsonl"))) == 2


def modules_of(*arguments: str) -> set[str]:
    """Return the modules that a command loads."""
    code = (
        "import sys; from playhead.cli.main import commands\n"
        "try: commands.main(sys.argv[1:])\n"
        "finally: print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def test_help_loads_nothing_that_it_does_not_need(home: Path) -> None:
    """`--help` stays quick: no pydantic, no rich, no kernel, no command."""
    heavy = {
        "pydantic_core",
        "rich",
        "jsonlines",
        "anyio",
        "playhead.kernel",
        "playhead.trace.events",
        "playhead.cli.look",
    }
    assert heavy & modules_of("--help") == set()


def test_reading_loads_no_kernel(store: Path) -> None:
    """What only reads needs neither the kernel nor a model's package; `list` not even the events."""
    kernel = {"playhead.kernel", "playhead.agent.agent", "litellm", "anyio"}
    assert kernel & modules_of("diff", "good", "good") == set()
    assert (kernel | {"playhead.trace.events"}) & modules_of("list") == set()
