from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from playhead import ToolContext, tool
from playhead.errors import ToolDefinitionError
from tests.kernel import isolated_tools
from tests.kernel.test_isolation import gone, pids, until
from tests.proving import bound

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


def test_a_module_that_only_this_process_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A function of a module that another process cannot import is a failed call that says so."""
    from tests.kernel.runs import make_agent  # here, so that the programs above start quickly

    module = ModuleType("made_up")
    monkeypatch.setitem(sys.modules, "made_up", module)
    exec(  # noqa: S102 - that is how such a module is made
        "from playhead import tool\n@tool(isolate=True)\ndef ping() -> str:\n    'Answer.'\n    return 'pong'\n",
        module.__dict__,
    )
    from playhead.testing import call, text

    result = make_agent(None, [call("ping"), text("done")], module.ping).run_sync("Do it.")
    assert result.steps[-1].content == (
        "error: the module of the tool cannot be loaded in its process: ModuleNotFoundError: No module named 'made_up'"
    )


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


def test_what_another_process_finds():
    """A function in a class is found by its name, too."""
    from playhead.testing import call, text
    from tests.kernel.runs import make_agent

    static = tool(isolate=True)(Box.static)
    assert make_agent(None, [call("static"), text("done")], static).run_sync("Do it.").steps[-1].content == "found"


def test_a_function_that_was_typed_in():
    """Without a file there is nothing to load the function from."""
    done = python(
        "-c",
        "from playhead import tool\n@tool(isolate=True)\ndef f() -> None:\n    'Do.'",
        cwd=Path.cwd(),
    )
    assert done.stderr.endswith(
        f"ToolDefinitionError: f: isolate=True runs it in a process of its own, which {NOT_FOUND}\n"
    )


@pytest.mark.parametrize(("name", "value", "why"), [("os.name", "nt", "POSIX"), ("sys.frozen", True, "interpreter")])
def test_systems_without(monkeypatch: pytest.MonkeyPatch, name: str, value: Any, why: str):
    """Where no process can be started and killed as it has to be, the definition says so."""
    place, attribute = name.split(".")
    monkeypatch.setattr({"os": os, "sys": sys}[place], attribute, value, raising=False)
    with pytest.raises(ToolDefinitionError, match=why):
        tool(isolate=True)(isolated_tools.fail)
