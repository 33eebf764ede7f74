"""Code as action: what a program can do, what it cannot reach, and that the rules of calls hold for its calls."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from playhead import tool
from playhead.compose.killswitches import tool_limit
from playhead.replay import replay, reproduce
from playhead.testing import text
from tests.kernel.runs import make_agent, record
from tests.kernel.strategies.looking import program

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def nothing_is_left():
    """No process outlives the test that started it."""
    RAN.clear()
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    yield
    left = [child for child in psutil.Process().children(recursive=True) if child.pid not in before]
    assert not psutil.wait_procs(left, timeout=2)[1]


pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("def f(n):\n    return 1 if n < 2 else n * f(n - 1)\nf(5)", {"value": 120}),
        ("{1, 2} and object", {"value": "<class 'object'>"}),
        ("import sys\nprint('x', file=sys.stderr)", {"output": "x\n"}),
    ],
)
async def test_programs(tmp_path: Path, code: str, expected: Any):
    """Functions, imports and a last expression work; a value that is not JSON is its text."""
    assert await outcome(tmp_path, code) == {**expected, "calls": []}


async def test_what_succeeded_is_not_done_twice(tmp_path: Path):
    """After an error the model writes a new program, whose repeated calls return what they returned before."""
    first = "pay(3)\npay(3)\nbooks = lookup('a')\nbooks.no_such_method()"
    second = "one, two, three = pay(3), pay(3), pay(4)\nreturn [one, lookup('a'), three]"
    ran = await act(tmp_path, [program(first), program(second), text("42")], pay, lookup)
    assert RAN == [(3, "Ann"), (3, "Ann"), "a", (4, "Ann")]
    assert result(ran)["error"] == (
        "line 4, `books.no_such_method()`: AttributeError: 'str' object has no attribute 'no_such_method'"
    )
    told = str(ran.model.requests[1].messages[-1].content)
    assert told.startswith("It failed: line 4, ")
    assert "Calls that succeeded are not made again" in told
    assert [each.get("repeated", False) for each in result(ran, 1)["calls"]] == [True, True, False, True]
    assert [step.ok for step in ran.result.steps if step.type == "observation"] == [False, True]


async def test_attempts_are_bounded(tmp_path: Path):
    """After the last attempt no program runs, and the model is told to answer."""
    turns = [*[program("1/0")] * 3, text("I could not.")]
    ran = await act(tmp_path, turns, settings={"max_programs": 2})
    assert (ran.result.output, ran.result.iterations) == ("I could not.", 4)
    third = ran.events("tool-call-completed", owner="root")[2]
    assert (third.ok, third.error.message) == (
        False,
        "not run: 2 programs are all that may run. Answer with what is known, in plain text",
    )


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("def broken(:", "line 1, `def broken(:`: SyntaxError: "),
        ("raise KeyboardInterrupt", "line 1, `raise KeyboardInterrupt`: KeyboardInterrupt: "),
        ("'x' * 10**10", "MemoryError"),
        ("class E(Exception):\n    def __str__(): return 1/0\nraise E", "line 3, `raise E`: E"),
    ],
    ids=["syntax", "interrupt", "memory", "str"],
)
async def test_programs_that_fail(tmp_path: Path, code: str, error: str):
    """Any error of a program is reported with its line, and the run continues."""
    assert error in (await outcome(tmp_path, code, lookup))["error"]


async def test_approvals(tmp_path: Path):
    """A tool that requires approval does not run without it."""
    ran = await act(tmp_path, [program("guarded()"), text("42")], guarded, approver=lambda _: False)
    assert "ToolError: guarded was not approved" in result(ran)["error"]
    assert (RAN, len(ran.events("approval-decided"))) == ([], 1)


async def test_killswitches(tmp_path: Path):
    """A limit on a tool ends the run in the middle of a program."""
    ran = await act(tmp_path, [program("while True: lookup('a')")], lookup, compose=[tool_limit("lookup", 2)])
    assert (ran.result.terminated_by, RAN) == ("tool_limit", ["a", "a"])


async def test_the_same_program_gets_the_recorded_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """No body runs and no process starts."""
    await act(tmp_path, [program("lookup('a')"), text("42")], lookup)
    monkeypatch.setattr(subprocess, "Popen", None)
    agent = make_agent(None, [program("lookup('a')"), text("43")], lookup, strategy="code-action")
    replayed = await replay(tmp_path / "run.jsonl", agent=agent, trace=None)
    assert (replayed.run.output, replayed.stopped, RAN) == ("43", None, ["a"])


FORGE = """
door = next(cell.cell_contents for cell in lookup.__closure__ if hasattr(cell.cell_contents, "send"))
door.lines.write(MESSAGE)
door.lines.flush()
while True: pass
"""

OS = "import sys\nos = sys.modules['__main__'].os\n"


async def test_no_environment_and_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A program sees none of our environment variables and modules."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    code = f"{OS}return [dict(os.environ), 'playhead' in sys.modules, 'pydantic' in sys.modules]"
    assert (await outcome(tmp_path, code))["value"] == [{}, False, False]


async def test_no_files_of_ours_are_open(tmp_path: Path):
    """A program has its three standard streams and its connection to us, and no file of ours."""
    code = f"""
{OS}
found = []
for descriptor in range(4096):
    try:
        found.append(os.fstat(descriptor).st_ino)
    except OSError:
        pass
return found
"""
    with (tmp_path / "ours").open("w") as ours:
        os.set_inheritable(ours.fileno(), True)
        found = (await outcome(tmp_path, code))["value"]
        assert (len(found) in (4, 5), os.fstat(ours.fileno()).st_ino in found) == (True, False)  # libffi, too


async def test_one_that_catches_everything(tmp_path: Path):
    """A program that catches every exception is ended."""
    code = "while True:\n    try:\n        while True: lookup('a')\n    except BaseException:\n        pass"
    found = await outcome(tmp_path, code, lookup, time_s=1, max_calls=5)
    assert found["error"] == "it ran for more than 1 s and was ended"
    assert len(found["calls"]) == len(RAN) == 5


async def test_one_that_prints_too_much(tmp_path: Path):
    """Output beyond the limit is counted and dropped."""
    found = await outcome(tmp_path, "for _ in range(10):\n    print('x' * 999_999)")
    assert (found["output"], found["dropped_chars"]) == (("x" * 999_999 + "\n")[:1_000_000], 9_000_000)


async def test_forged_calls_are_calls(tmp_path: Path):
    """A message that a program writes itself is a call: checked and recorded."""
    forged = """b'{"call": "pay", "arguments": {"amount": "many"}}\\n{"call": "run-program", "arguments": {}}\\n'"""
    found = await outcome(tmp_path, FORGE.replace("MESSAGE", forged), pay, lookup, time_s=0.5)
    assert RAN == []
    assert [(each["tool"], each["ok"]) for each in found["calls"]] == [("pay", False), ("run-program", False)]


@pytest.mark.parametrize(
    "code",
    [
        "'x' * 10_000_000",
        *(FORGE.replace("MESSAGE", each) for each in ("b'junk\\n'", "b'[' * 100000 + b'\\n'", "b'x' * 9_000_000")),
    ],
    ids=["value", "junk", "nested", "long"],
)
async def test_invalid_messages(tmp_path: Path, code: str):
    """A value that is too large, and a forged message that is no call, ends the process."""
    why = "it did not get to its end: it sent something that is no message of at most 8,388,608 bytes"
    assert (await outcome(tmp_path, code, lookup))["error"] == why


RAN: list[Any] = []
"""What bodies of tools were run with."""


@tool(read_only=True)
async def lookup(key: str) -> str:
    """Look a fact up."""
    RAN.append(key)
    return f"found {key}"


@tool
async def pay(amount: int, to: str = "Ann") -> dict[str, Any]:
    """Pay somebody."""
    RAN.append((amount, to))
    return {"paid": amount, "to": to}


@tool(requires_approval=True)
async def guarded() -> str:
    """Ask first."""
    RAN.append("guarded")
    return "ran"


async def act(folder: Path, turns: Any, *tools: Any, settings: Any = None, **options: Any) -> Any:
    """Run on a script, and reproduce the recording from the file alone: no body runs again, and no process starts."""
    run = await record(folder, turns, *tools, strategy="code-action", strategy_settings=settings or {}, **options)
    ran = list(RAN)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(subprocess, "Popen", None)
        same = await reproduce(folder / "run.jsonl")
    assert same.identical, same.divergences
    assert ran == RAN
    return run


def result(ran: Any, number: int = 0) -> dict[str, Any]:
    """Return what came of a program."""
    events = [event for event in ran.events("tool-call-completed", owner="root") if event.tool == "run-program"]
    found = events[number].result
    assert isinstance(found, dict)
    return found


async def outcome(folder: Path, code: str, *tools: Any, **settings: Any) -> dict[str, Any]:
    """Return what comes of one program."""
    return result(await act(folder, [program(code), text("done")], *tools, settings=settings))
