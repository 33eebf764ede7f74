"""Servers that die, hang, shout, lie and cling to life: each is a clear failure, and nothing of them is left behind."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest

from playhead.errors import MissingDependencyError, ToolDefinitionError, ToolServerError, UsageError
from playhead.mcp import mcp_tools
from tests.mcp.serving import RAW, one, raw, told

pytestmark = pytest.mark.slow

TEXT = {"content": [{"type": "text", "text": "fine"}]}


def survivors(mark: str) -> int:
    """Return how many processes have this mark in their command line."""
    return sum(mark in " ".join(process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"]))


def gone(mark: str) -> bool:
    """Wait a moment for what was killed to be no more."""
    until = time.monotonic() + 3
    while survivors(mark) and time.monotonic() < until:
        time.sleep(0.02)
    return not survivors(mark)


@pytest.fixture(autouse=True)
def _in_haste(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give servers that do not want to end less time than users do."""
    monkeypatch.setattr("mcp.client.stdio.PROCESS_TERMINATION_TIMEOUT", 0.05)
    monkeypatch.setattr("mcp.client.stdio.FORCE_KILL_TIMEOUT", 0.05)


@pytest.mark.parametrize(("how", "said"), [("die", "said last: [31mout of memory[0m"), ("crash", "said nothing")])
def test_a_server_that_dies_says_what_it_said_last(how: str, said: str):
    """Its last words are in the message, if there are any, without what would paint a terminal; no restart."""
    with one({"do": how}) as tools:
        for _ in range(2):
            ok, observed = told(tools, "act")
            assert not ok
            assert f"the MCP server raw_server.py is gone: Connection closed; it {said}. Whether the call " in observed
            assert "took effect is not known. It is not started again" in observed


@pytest.mark.parametrize("how", ["hang", "deaf"])
def test_a_server_that_hangs_is_a_timeout(how: str):
    """The call ends at its limit, and leaving the block ends the process although it does not listen."""
    mark = uuid.uuid4().hex
    with one({"do": how}, case={"mark": mark}, timeout_s=0.1) as tools:
        ok, observed = told(tools, "act")
        assert (ok, "did not finish within 0.1 s" in observed) == (False, True)
    assert gone(mark)


def test_noise_on_both_outputs_does_no_harm(capfd: pytest.CaptureFixture[str]):
    """What is no message is skipped, a flood of standard error is read, and neither reaches our terminal."""
    with one({"do": "noise"}, case={"start": ["garbage", "noise"]}) as tools:
        assert told(tools, "act") == (True, "done")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("start", [[], ["child"], ["stubborn", "child"]], ids=str)
def test_no_process_survives_the_block(start: list[str]):
    """Neither a server that ignores its end and SIGTERM, nor what it has started."""
    mark = uuid.uuid4().hex
    with one(TEXT, case={"start": start, "mark": mark}, env={"MARK": mark}) as tools:
        assert survivors(mark) == (2 if "child" in start else 1)
        assert told(tools, "act") == (True, "fine")
    assert gone(mark)


def test_no_process_survives_an_error_or_a_cancellation():
    """However the block is left, the server is ended."""
    marks = [uuid.uuid4().hex for _ in range(4)]
    with pytest.raises(ZeroDivisionError), one(TEXT, case={"mark": marks[0]}):
        _ = 1 / 0

    async def main() -> None:
        with anyio.CancelScope() as scope:
            async with one(TEXT, case={"mark": marks[1]}):
                scope.cancel()
                await anyio.sleep_forever()
        for mark, seconds in zip(marks[2:], (0.02, 0), strict=True):  # while it starts, before that
            with anyio.move_on_after(seconds):
                async with one(TEXT, case={"mark": mark}):
                    await anyio.sleep_forever()

    anyio.run(main)
    assert all(map(gone, marks))


PROGRAM = """
import sys
from tests.mcp.serving import one
server = one({"content": []}, case={"mark": sys.argv[1]})
server.__enter__()
print("open", flush=True)
if sys.argv[2] == "wait":
    import time; time.sleep(60)
"""


@pytest.mark.parametrize("how", ["end", "wait"])
def test_no_server_outlives_its_program(how: str):
    """A program that forgets the block ends it at its exit; one that is killed closes the server's input."""
    mark = uuid.uuid4().hex
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, mark, how], cwd=Path(__file__).parents[2], stdout=subprocess.PIPE
    )
    with program:
        assert program.stdout is not None
        assert program.stdout.readline() == b"open\n"
        if how == "wait":
            program.kill()
        program.wait(10)
    assert gone(mark)


FEET = {"type": "object", "properties": {"feet": {"type": "integer"}}, "required": ["feet"]}
GIVEN = {"n": 2**60, "none": None, "text": "Ünïcode 🏔", "deep": [{"a": [None, True, 1.5]}]}
ANSWERS: dict[str, tuple[dict[str, Any], dict[str, Any], tuple[bool, str]]] = {
    "fine": (TEXT, {}, (True, "fine")),
    "echo": ({"echo": 1}, GIVEN, (True, json.dumps(GIVEN))),  # large integers, nulls, text beyond ASCII
    "no_json": ({"echo": 1}, {"n": float("nan")}, (False, "JSON cannot hold")),
    "refuse": ({"refuse": "not \x1b[2J today"}, {}, (False, "answered: not [2J today")),
    "no_result": ({"content": "not a list"}, {}, (False, "answered with what is not a result")),
    "broken": (
        {"content": [], "structuredContent": {"feet": "many"}},
        {},
        (False, 'feet: "many" is not of type "integer"); it was: {"feet": "many"}'),
    ),
}


def test_an_answer_is_a_result_or_a_clear_failure():
    """Arguments arrive as the model wrote them, and whatever a server answers, the connection serves the next call."""
    listed = [{"name": name, **({"outputSchema": FEET} if name == "broken" else {})} for name in ANSWERS]
    with raw(*listed, answers={name: answer for name, (answer, *_) in ANSWERS.items()}) as tools:
        for name, (_, arguments, (ok, said)) in ANSWERS.items():
            worked, observed = told(tools, name, **arguments)
            assert (worked, said in observed) == (ok, True), observed
        assert told(tools, "fine") == (True, "fine")


STARTS = {
    "no such program": (["no-such-program-at-all"], "no-such-program-at-all: not found"),
    "no server": ([sys.executable, "-c", "print('hi')"], "Connection closed; it said nothing"),
    "dies": ([*RAW, '{"tools": [], "start": ["die"]}'], "Connection closed; it said last: [31mout of memory[0m"),
    "hangs": ([*RAW, '{"tools": [], "start": ["hang"]}'], "did not answer as an MCP server within 0.1 s"),
    "no pages end": ([*RAW, '{"tools": [], "pages": true}'], "pages of tools without end"),
}


@pytest.mark.parametrize(("command", "why"), STARTS.values(), ids=STARTS)
def test_a_server_that_cannot_be_used_is_one_clear_error(command: list[str], why: str):
    """What cannot be started, ends, hangs or is no server says so when the block is entered, sync or async."""
    server = mcp_tools(command=command, start_timeout_s=0.1 if "hang" in command[-1] else 20)

    async def main() -> None:
        async with server:
            pass

    with pytest.raises((ToolServerError, ToolDefinitionError)) as raised:
        server.__enter__()
    assert why in str(raised.value)
    with pytest.raises(type(raised.value), match=re.escape(why)):  # whether its process has ended by then is a race
        anyio.run(main)


MISUSE: dict[str, tuple[dict[str, Any], str]] = {
    "nothing": ({}, "needs a command="),
    "both": ({"command": ["a"], "url": "http://a"}, "give one of the two"),
    "no url": ({"url": "ftp://a"}, "http(s) address"),
    "env for a url": ({"url": "http://a", "env": {}}, "env= and cwd= are for a command="),
    "headers for a command": ({"command": "a", "headers": {}}, "headers= are for a server at a url="),
    "no quotes": ({"command": "a 'b"}, "is not a command line"),
}


@pytest.mark.parametrize(("choices", "why"), MISUSE.values(), ids=MISUSE)
def test_misuse_is_said_before_anything_is_started(choices: dict[str, Any], why: str):
    """Each argument is looked at when it is given."""
    with pytest.raises(UsageError, match=re.escape(why)):
        mcp_tools(**choices)


def test_without_the_package_the_error_names_the_fix(monkeypatch: pytest.MonkeyPatch):
    """Who has not installed the extra is told how."""
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'playhead\[mcp\]'"):
        mcp_tools(command="a")


def test_tools_after_the_block_say_that_it_is_over():
    """A tool whose connection is closed fails, and says what to do; a block is entered once at a time."""
    server = one(TEXT)
    with server as tools, pytest.raises(UsageError, match="open already"):
        server.__enter__()
    assert "runs have to be inside the `with` of mcp_tools" in told(tools, "act")[1]
    with server as tools:
        assert told(tools, "act") == (True, "fine")


def test_in_the_child_of_a_fork_a_call_fails():
    """The connection's thread is the parent's: the child hears that, instead of waiting for ever."""
    with one(TEXT) as tools:
        child = os.fork()
        if child == 0:
            try:
                os._exit(0 if "there is no connection" in told(tools, "act")[1] else 1)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert told(tools, "act") == (True, "fine")
