"""Killswitches at the ports of recorded programs: they hold for threads, tasks, streams, and code that catches everything."""

from __future__ import annotations

import asyncio
import contextvars
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import playhead
from playhead import recorded, tool
from playhead.compose.killswitches import budget_limit, require_approval_for, timeout_after, tool_limit
from playhead.errors import RunEndedError, ToolCallError
from tests.instrument.chatting import Chat, calls, says
from tests.proving import bound

if TYPE_CHECKING:
    from playhead import Recording

RAN: list[str] = []
ECHO = Chat(lambda body: says(f"echo {body['messages'][-1]['content']}"))


@tool
def send(text: str) -> str:
    """Send a text."""
    RAN.append(text)
    return f"sent {text}"


@tool
async def send_later(text: str) -> str:
    """Send a text."""
    RAN.append(text)
    return f"sent {text}"


def ask(prompt: str) -> str:
    """Ask the model."""
    return str(ECHO.create([{"role": "user", "content": prompt}]).choices[0].message.content)


async def ask_later(prompt: str) -> str:
    """Ask the model."""
    return str((await ECHO.acreate([{"role": "user", "content": prompt}])).choices[0].message.content)


@pytest.fixture(autouse=True)
def traces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Record into a folder of the test."""
    monkeypatch.setenv("PLAYHEAD_TRACE_DIR", str(tmp_path))
    RAN.clear()
    ECHO.asked.clear()
    return tmp_path


def latest() -> Recording:
    """Return the newest recording, which has to be whole."""
    recording = playhead.load_recording("latest")
    assert (recording.status, recording.problems) == ("closed", ())
    return recording


def ended_by(recording: Recording) -> str:
    """Return what ended a run."""
    assert recording.ending is not None
    return recording.ending.terminated_by


@pytest.mark.slow
def test_a_timeout_ends_a_plain_function_at_its_next_request() -> None:
    """The trace is closed on time; the function is unwound when it next uses a port, and nothing is sent."""

    @recorded(compose=[timeout_after(0.2)])
    def slow() -> str:
        ask("first")
        threading.Event().wait(0.7)
        return ask("second")

    with pytest.raises(RunEndedError, match="timeout"):
        slow()
    assert len(ECHO.asked) == 1
    recording = latest()
    assert ended_by(recording) == "timeout_after"
    assert recording.ending is not None
    assert recording.ending.duration_ms < bound(0.45) * 1000


@pytest.mark.slow
async def test_a_timeout_cancels_a_coroutine() -> None:
    """The caller has its error within the limit, and is not itself cancelled."""

    @recorded(compose=[timeout_after(0.2)])
    async def slow() -> None:
        await ask_later("first")
        await asyncio.sleep(30)

    started = time.monotonic()
    with pytest.raises(RunEndedError, match="timeout"):
        await slow()
    assert time.monotonic() - started < bound(0.45)
    await asyncio.sleep(0)
    assert ended_by(latest()) == "timeout_after"


@pytest.mark.parametrize("answer", [True, False])
def test_an_approval_is_asked_for_a_direct_call(answer: bool) -> None:
    """A denied body does not run; the program gets an error that it can catch, and a replay asks nobody."""
    asked: list[str] = []

    def approver(request: Any) -> bool:
        asked.append(request.tool)
        return answer

    @recorded(compose=[require_approval_for(["send"], approver)])
    def sending() -> str:
        try:
            return send(text="x")
        except ToolCallError as error:
            return str(error)

    said = sending()
    assert (RAN, asked) == ((["x"], ["send"]) if answer else ([], ["send"]))
    assert said == "sent x" if answer else "not approved" in said
    outcome = latest().reproduce_sync(program=sending)
    assert (outcome.divergences, len(asked), len(RAN)) == ((), 1, int(answer))
    replay = playhead.load_recording("latest").replay_sync(program=sending)
    assert (replay.run.output, len(asked), len(RAN)) == (said, 1, int(answer))


async def test_an_approval_is_asked_for_an_async_call() -> None:
    """The approver may be a coroutine."""

    async def approver(request: Any) -> bool:
        await asyncio.sleep(0)
        return request.tool == "send_later"

    @recorded(compose=[require_approval_for(["send_later"], approver)])
    async def sending() -> str:
        return await send_later(text="x")

    assert await sending() == "sent x"


def test_a_budget_is_shared_by_threads_and_is_not_overshot() -> None:
    """Requests wait for each other's reservations; the one that does not fit ends the run."""

    @recorded(compose=[budget_limit(max_tokens=1200, prompt_bound="bytes")])
    def spread() -> list[str]:
        with ThreadPoolExecutor(4) as pool:
            found = [pool.submit(contextvars.copy_context().run, ask, f"{number}") for number in range(200)]
            return [each.result() for each in found]

    with pytest.raises(RunEndedError, match="budget"):
        spread()
    recording = latest()
    assert ended_by(recording) == "budget_limit"
    assert recording.ending is not None
    used = recording.ending.usage
    assert 0 < used.input_tokens + used.output_tokens <= 1200
    assert 0 < len(ECHO.asked) < 200


async def test_a_budget_is_shared_by_tasks_and_nested_programs() -> None:
    """The same with tasks, one of which is a recorded function of its own."""

    @recorded
    async def part(number: int) -> str:
        return await ask_later(str(number))

    @recorded(compose=[budget_limit(max_tokens=1200, prompt_bound="bytes")])
    async def spread() -> Any:
        return await asyncio.gather(*map(part, range(200)), return_exceptions=True)

    with pytest.raises(RunEndedError, match="budget"):
        await spread()
    recording = latest()
    assert recording.ending is not None
    used = recording.ending.usage
    assert 0 < used.input_tokens + used.output_tokens <= 1200


def test_a_limit_that_refuses_lets_the_program_go_on() -> None:
    """`refuse` is an error of the call that the program can catch."""

    @recorded(compose=[tool_limit("send", 1, on_trigger="refuse")])
    def sending() -> list[str]:
        said = [send(text="a")]
        try:
            said.append(send(text="b"))
        except ToolCallError as error:
            said.append(f"refused: {error}")
        return said

    said = sending()
    assert (said[0], said[1].startswith("refused: send: "), RAN) == ("sent a", True, ["a"])
    outcome = latest().reproduce_sync(program=sending)
    assert outcome.identical


def test_a_nested_function_with_a_switch_of_its_own_ends_alone() -> None:
    """The caller gets an exception, and goes on."""

    @recorded(compose=[tool_limit("send", 1)])
    def part() -> None:
        while True:
            send(text="x")

    @recorded
    def whole() -> str:
        try:
            part()
        except RunEndedError as error:
            return f"{ask('go on')}, {error}"
        return "unreached"

    assert whole().startswith("echo go on, killswitch:tool_limit ended part")
    recording = latest()
    assert (ended_by(recording), RAN) == ("end_turn", ["x"])
    inner = recording.owners["root/part@-.0"].completed
    assert inner is not None
    assert inner.terminated_by == "tool_limit"
    assert recording.reproduce_sync(program=whole).divergences == ()


PROGRAM = """
import os, signal, sys, threading
import playhead
from tests.instrument.chatting import Chat, calls, says

chat = Chat(lambda body: says("yes"))

@playhead.tool
def wait(how: str) -> None:
    print("waiting", flush=True)
    threading.Event().wait(30)

@playhead.recorded
def program(how: str) -> None:
    for _ in range(5):
        chat.create([{"role": "user", "content": "?"}])
    wait(how)

if __name__ == "__main__":
    program(sys.argv[1])
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_killed_program_loses_no_acknowledged_event(number: signal.Signals, traces: Path) -> None:
    """After SIGKILL the file is open and whole; SIGTERM and Ctrl-C close it, and the process ends as it would have."""
    file = traces / "program.py"
    file.write_text(textwrap.dedent(PROGRAM))
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd()), "PLAYHEAD_TRACE_DIR": str(traces)}
    process = subprocess.Popen(
        [sys.executable, str(file), "x"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"waiting\n"
    process.send_signal(number)
    process.communicate(timeout=20)
    assert process.returncode == -number
    recording = playhead.load_recording("latest")
    assert len(recording.root.responses) == 5
    assert [call.started.tool for call in recording.root.calls.values()] == ["wait"]
    assert recording.status == ("open" if number == signal.SIGKILL else "closed")
    assert (recording.problems, recording.header.agent.strategy_settings["function"]) == ((), "program:program")


def test_a_killswitch_that_guards_nothing_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """The tools of a program are known at its end: a misspelt name is a warning, and what it did without Playhead is one."""
    chat = Chat(lambda _: calls(("pay", {"text": "x"}), ("send", {"text": "x"})))

    @recorded(
        compose=[tool_limit(name, 9) for name in ("sned", "send", "pay")]
        + [require_approval_for("*", approver=lambda _: True)]
    )
    def twice(task: str) -> str:
        offered = [{"type": "function", "function": {"name": "pay", "parameters": {}}}]
        chat.create([{"role": "user", "content": task}], tools=offered)
        return send(task) + send(task)

    twice("x")
    twice("x")
    told = [each.getMessage() for each in caplog.records if "killswitch names" in each.getMessage()]
    assert told == [
        "A killswitch names pay, a tool that the program does without Playhead, or by another name: nothing guards it",
        "A killswitch names sned, a tool that the run neither called nor offered. Did you mean 'send'? Known: pay, send.",
    ]
