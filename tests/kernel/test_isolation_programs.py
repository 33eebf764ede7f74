from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from playhead import ToolContext, tool
from playhead.errors import ToolDefinitionError
from tests.kernel import isolated_tools
from tests.kernel.test_isolation import gone, pids, until
from tests.proving import bound

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(os.name != "posix", reason="isolate=True needs POSIX")

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


@pytest.mark.parametrize("started_as", ["script", "module"])
def test_a_function_of_the_main_script(tmp_path: Path, started_as: str):
    """A function of the program's own script is found, without the program being run again."""
    (tmp_path / "program.py").write_text(GUARDED)
    done = python(*(["-m", "program"] if started_as == "module" else ["program.py"]), "argument", cwd=tmp_path)
    name = "program" if started_as == "module" else "__mp_main__"
    assert (done.stdout, done.stderr) == (f'[1, "{name}", "argument", true]\n', "")


@pytest.mark.parametrize("how", [["program.py"], ["-m", "program"]])
def test_a_script_without_a_guard(tmp_path: Path, how: list[str]):
    """A script that runs its agent whenever it is loaded does not run it again and again: the call says what to do."""
    (tmp_path / "program.py").write_text(UNGUARDED)
    done = python(*how, "argument", cwd=tmp_path)
    assert done.stdout == (
        "error: the module of the tool cannot be loaded in its process: UsageError: the script runs an agent while it is "
        'loaded to find an isolated tool in it: put what it does under `if __name__ == "__main__":`\n'
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


@pytest.mark.parametrize("fork", [False, True])
def test_a_program_that_is_killed_leaves_nothing_behind(tmp_path: Path, fork: bool):
    """After SIGKILL the call's processes are gone within a second, even if a fork holds what the program had open."""
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


# --- what cannot be isolated is refused when it is defined -----------------------------------------------------------


class Box:
    def method(self) -> None:
        """Be a method."""

    def __call__(self) -> None:
        """Be called."""

    @staticmethod
    def static() -> str:
        """Be found by its name."""
        return "found"


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
        (Box().method, NOT_FOUND),
        (Box(), NOT_FOUND),
        (partial(isolated_tools.fail, "raise"), NOT_FOUND),
        (with_context, "which the ToolContext of the parameter context cannot reach; leave out the parameter"),
    ],
)
def test_what_another_process_would_not_find(function: Any, why: str):
    """A function that cannot be found by its name, or needs what cannot cross, is refused when it is made a tool."""
    with pytest.raises(ToolDefinitionError) as raised:
        tool(isolate=True, name="named", description="-")(function)
    assert why in str(raised.value)
