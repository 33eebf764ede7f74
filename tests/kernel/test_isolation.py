from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from playhead import ToolContext, tool
from playhead.errors import ToolDefinitionError
from playhead.replay import reproduce
from playhead.testing import call, text
from playhead.trace.clock import SystemClock
from playhead.trace.values import to_json
from tests.kernel import isolated_tools
from tests.kernel.runs import data, make_agent, record
from tests.proving import bound, sample
from tests.trace.strategies import json_values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name != "posix", reason="isolate=True needs POSIX")]
LINUX = sys.platform == "linux"
OVERSHOOT_S = 0.5
"""Seconds that a call may take beyond its limit."""


def until(condition: Callable[[], Any], seconds: float = 10) -> Any:
    """Return what a condition becomes; fail when it stays false."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.002)
    return value


def gone(pid: int) -> bool:
    """Return whether a process has ended and has been waited for."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def dead(pid: int) -> bool:
    """Return whether a process has ended; the system's first process may take a second to wait for it."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return True


def pids(path: Path) -> list[int]:
    """Return the processes that a tool has named, its own first; none before it has."""
    return json.loads(path.read_text()) if path.exists() else []


@pytest.fixture(scope="module", autouse=True)
def first_run() -> None:
    """The first run of a program opens the pipe by which it hears of signals, and keeps it."""
    make_agent(None, [text("done")]).run_sync("Do it.")


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """No test leaves an open file or a child behind."""
    before, children = _open_files(), psutil.Process().children()  # another test's module may keep one of its own
    yield
    until(lambda: _open_files() <= before)
    assert psutil.Process().children() == children


def _open_files() -> int:
    return len(os.listdir("/dev/fd"))  # noqa: PTH208 - is a descriptor itself while it is read


async def completed(folder: Path, name: str, tools: Any, **arguments: Any) -> Any:
    """Return how one call ended."""
    run = await record(folder, [call(name, **arguments), text("done")], tools, clock=SystemClock)
    (event,) = run.events("tool-call-completed")
    return event


# --- what comes back --------------------------------------------------------------------------------------------------


@settings(max_examples=sample(3, 1), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.lists(json_values, min_size=10, max_size=30))
def test_arguments_and_results_cross_as_json(values: list[Any]):
    """Arguments and results are those of the same tool without isolation."""

    @tool
    def echo(value: Any) -> Any:
        """Return what was given."""
        return value

    apart, here = (
        make_agent(None, [call("echo", value=to_json(values)), text("done")], each).run_sync("Do it.").steps
        for each in (isolated_tools.echo, echo)
    )
    assert apart == here
    assert apart[-1].ok


async def test_the_process_of_a_tool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    """It has our folder and environment and no input; what it prints is printed and is not its result."""
    monkeypatch.setenv("ISOLATION_TEST", "set by the test")
    event = await completed(tmp_path, "whoami", isolated_tools.whoami)
    pid, *rest = event.result
    assert pid != os.getpid()
    assert gone(pid)
    assert rest == [str(Path.cwd()), "set by the test", "", 1]
    assert capfd.readouterr().out == '{"ok": true, "result": "forged"}\n'


# --- how it fails -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", sample(["raise", "text"], ["text"]))
async def test_errors_are_those_of_an_ordinary_tool(tmp_path: Path, how: str):
    """An exception is the same failed call with and without isolation."""
    apart = await completed(tmp_path / "apart", "fail", isolated_tools.fail_apart, how=how)
    here = await completed(tmp_path / "here", "fail", isolated_tools.fail_here, how=how)
    assert data(apart) == data(here)
    assert not apart.ok


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("_exit", "its process ended with exit code 7 before it returned"),
        ("SIGKILL", f"its process was killed by signal 9 ({signal.strsignal(9)})"),
    ],
)
async def test_a_process_that_dies(tmp_path: Path, how: str, why: str):
    """A process that ends before its function returns is a failed call that says how it ended."""
    event = await completed(tmp_path, "fail", isolated_tools.fail_apart, how=how)
    assert data(event) == {
        "call_id": "call_0_0",
        "tool": "fail",
        "position": 0,
        "ok": False,
        "error": {"type": "ProcessDied", "message": why},
    }


async def test_a_shadowed_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A tool whose name in its module means another function now is refused: its process would run that one."""
    made = isolated_tools.echo
    monkeypatch.setattr(isolated_tools, "echo", isolated_tools.whoami)
    event = await completed(tmp_path, "echo", made, value=1)
    why = "echo: tests.kernel.isolated_tools:echo is another object now, and its process would find that one"
    assert (event.error.type, event.error.message) == ("IsolationFailed", f"{why}; give each tool a name of its own")


# --- how it is ended --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sample(["backtrack", "ignore_sigterm"], ["ignore_sigterm"]))
async def test_it_is_killed_at_its_limit(tmp_path: Path, name: str):
    """Code that holds the interpreter, or ignores SIGTERM together with its grandchild, is dead soon after the limit.

    On a busy machine, where its process takes longer to start, the limit is raised.
    """
    for limit_s in (1, 5, 20):
        path = tmp_path / f"pids-{limit_s}"
        slow = tool(isolate=True, timeout=limit_s, name="slow")(getattr(isolated_tools, name))
        event = await completed(tmp_path / f"{limit_s}", "slow", slow, path=str(path))
        assert (event.ended, event.error.message) == ("timeout", f"slow did not finish within {limit_s} s")
        if pids(path):
            break
    assert limit_s * 1000 <= event.duration_ms <= (limit_s + bound(OVERSHOOT_S)) * 1000
    assert len(pids(path)) == (1 if name == "backtrack" else 2)
    assert all(map(gone, pids(path)))


async def test_what_it_leaves_running_is_killed(tmp_path: Path):
    """No process that a call started outlives it; on Linux not even in its own session."""
    event = await completed(tmp_path, "leave_daemon", isolated_tools.leave_daemon)
    assert event.ok
    assert all(map(gone, event.result if LINUX else event.result[:1]))


@pytest.mark.skipif(not LINUX, reason="elsewhere the worker does not hear of its guardian's end")
async def test_a_guardian_that_dies(tmp_path: Path):
    """The worker ends with its guardian, and the call fails."""
    path = tmp_path / "pids"
    event = await completed(tmp_path, "kill_guardian", isolated_tools.kill_guardian, path=str(path))
    assert event.error.message == "its process was killed together with its guardian"
    assert len(pids(path)) == 2
    until(lambda: all(map(dead, pids(path))))


# --- replays ----------------------------------------------------------------------------------------------------------


async def test_a_replay_starts_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The recording says that the tool is isolated, and reproducing it starts no process."""
    run = await record(tmp_path, [call("echo", value=1), text("done")], isolated_tools.echo)
    (defined,) = run.events("tools-defined")
    assert [spec.isolate for spec in defined.tools] == [True]
    monkeypatch.setattr(subprocess, "Popen", None)
    assert (await reproduce(run.recording)).identical


# --- programs ---------------------------------------------------------------------------------------------------------

AGENT = """
import os, sys
from pathlib import Path
from playhead import Agent, tool
from playhead.testing import ScriptedModel, call, text

@tool(isolate=True)
def where(depth: int) -> list:
    "Say where this runs."
    return [depth, __name__, sys.argv[1], os.getpid() != int(os.environ["PARENT"])]

def main() -> None:
    os.environ["PARENT"] = str(os.getpid())
    agent = Agent(ScriptedModel([call("where", depth=1), text("done")]), tools=[where], trace=None)
    print(agent.run_sync("Do it.").steps[-1].content)
"""
GUARDED = AGENT + '\nif __name__ == "__main__":\n    main()\n'
UNGUARDED = AGENT + "\nmain()\n"


def python(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run an interpreter in which a warning is an error, and return what it printed."""
    return subprocess.run(
        [sys.executable, "-W", "error", *arguments], cwd=cwd, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("started_as", sample(["script", "module"], ["script"]))
def test_a_function_of_the_main_script(tmp_path: Path, started_as: str):
    """A function of the program's own script is found, and the program does not run again."""
    (tmp_path / "program.py").write_text(GUARDED)
    done = python(*(["-m", "program"] if started_as == "module" else ["program.py"]), "argument", cwd=tmp_path)
    name = "program" if started_as == "module" else "__mp_main__"
    assert (done.stdout, done.stderr) == (f'[1, "{name}", "argument", true]\n', "")


@pytest.mark.parametrize("how", sample([["program.py"], ["-m", "program"]], [["program.py"]]))
def test_a_script_without_a_guard(tmp_path: Path, how: list[str]):
    """A script that runs its agent when it is loaded does not run it endlessly: the call fails and says what to do."""
    (tmp_path / "program.py").write_text(UNGUARDED)
    done = python(*how, "argument", cwd=tmp_path)
    assert done.stdout == (
        "error: the module of the tool cannot be loaded in its process: UsageError: the script runs an agent while it is "
        'loaded to find an isolated tool in it: put the code that runs it under `if __name__ == "__main__":`\n'
    )
    assert done.stderr == ""


KILLED = """
import sys
from tests.kernel.isolated_tools import hang
from playhead import Agent
from playhead.testing import ScriptedModel, call, text
Agent(ScriptedModel([call("hang", path=sys.argv[1]), text("done")]), tools=[hang], trace=None).run_sync("Do it.")
"""


FORK = """
import os, sys, threading, time

def fork():
    while not os.path.exists(sys.argv[1]):
        time.sleep(0.002)
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
    with open(sys.argv[1] + ".fork", "w") as file:
        file.write(str(child))

threading.Thread(target=fork, daemon=True).start()
"""


@pytest.mark.parametrize("fork", sample([False, True], [True]))
def test_a_program_that_is_killed_leaves_nothing_behind(tmp_path: Path, fork: bool):
    """After SIGKILL the call's processes are gone within a second, even if a fork holds the program's files."""
    path, forked = tmp_path / "pids", tmp_path / "pids.fork"
    program = (FORK if fork else "") + KILLED
    with (tmp_path / "stderr").open("w") as stderr:
        started = subprocess.Popen([sys.executable, "-W", "ignore", "-c", program, str(path)], stderr=stderr)
    try:
        until(lambda: pids(path))
        if fork:
            until(lambda: forked.exists() and forked.read_text())
    finally:
        started.send_signal(signal.SIGKILL)
        started.wait()
    killed = time.monotonic()
    until(lambda: all(map(gone, pids(path))), 5)
    assert time.monotonic() - killed < bound(1)
    assert (tmp_path / "stderr").read_text() == ""
    if fork:
        os.kill(int(forked.read_text()), signal.SIGKILL)


def with_context(context: ToolContext) -> None:
    """Ask for what cannot be there."""


def _nested() -> Any:
    def inside() -> None:
        """Be made anew each time."""

    return inside


NOT_FOUND = "cannot find it: define it with `def`, in a file, at the top of a module"


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda: None, NOT_FOUND),
        (_nested(), NOT_FOUND),
        (partial(isolated_tools.fail, "raise"), NOT_FOUND),
        (with_context, "which the ToolContext of the parameter context cannot reach; leave out the parameter"),
    ],
)
def test_functions_that_cannot_be_isolated(function: Any, why: str):
    """A function that its process could not import is refused when it is made a tool."""
    with pytest.raises(ToolDefinitionError) as raised:
        tool(isolate=True, name="named", description="-")(function)
    assert why in str(raised.value)
