"""Agents of Playhead inside recorded programs: sub-agents of the run, recorded, reproduced and replayed with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import playhead
from playhead import Agent, recorded, tool
from playhead.errors import ModelError, UsageError
from playhead.testing import ScriptedModel, call, error, text
from tests.instrument.chatting import Chat, says

if TYPE_CHECKING:
    from pathlib import Path

RAN: list[str] = []
ECHO = Chat(lambda body: says(f"echo {body['messages'][-1]['content']}"))


@tool(read_only=True)
def lookup(key: str) -> str:
    """Look a fact up."""
    RAN.append(key)
    return f"{key} is 42"


def researcher(*more: Any) -> Agent:
    """Return an agent that looks one fact up."""
    turns = more or (call("lookup", key="a"), text("a is 42, I found"))
    return Agent(ScriptedModel(list(turns) * 20), name="researcher", tools=[lookup])


AGENT = researcher()


def ask(prompt: str) -> str:
    """Ask the program's own client."""
    return str(ECHO.create([{"role": "user", "content": prompt}]).choices[0].message.content)


@recorded
def plain(task: str) -> str:
    """Ask an agent from a plain function."""
    found = AGENT.run_sync(task)
    return ask(str(found.output)) + lookup("b")


@recorded
async def waiting(task: str) -> str:
    """Ask an agent from a coroutine."""
    found = await AGENT.run(task)
    return ask(str(found.output))


@pytest.fixture(autouse=True)
def traces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Record into a folder of the test."""
    monkeypatch.setenv("PLAYHEAD_TRACE_DIR", str(tmp_path))
    RAN.clear()


def test_an_agent_inside_a_plain_function_is_a_sub_agent() -> None:
    """One run, one file: the agent's events have an owner below the call that entered it."""
    assert plain("x") == "echo a is 42, I foundb is 42"
    recording = playhead.load_recording("latest")
    assert list(recording.owners) == ["root", "root/researcher@-.0"]
    inner = recording.owners["root/researcher@-.0"]
    assert inner.completed is not None
    assert (inner.completed.output, len(inner.exchanges), len(inner.calls)) == ("a is 42, I found", 2, 1)
    assert len(list(recording.path.parent.glob("*.jsonl"))) == 1


@pytest.mark.parametrize("program", [plain, waiting])
async def test_it_is_reproduced_and_replayed(program: Any) -> None:
    """Its model and its tools are frozen too; in a replay its model is live and its tools answer from the recording."""
    outcome = program("x")
    if program is waiting:
        await outcome
    recording, ran, asked = playhead.load_recording("latest"), len(RAN), len(ECHO.asked)
    reproduction = await recording.reproduce(program=program)
    assert (reproduction.divergences, reproduction.identical) == ((), True)
    assert (len(RAN), len(ECHO.asked)) == (ran, asked)
    replay = await recording.replay(program=program)
    assert (replay.verdict, replay.grounded, len(RAN)) == ("same", 1.0, ran)


def test_a_change_of_the_agent_is_noticed() -> None:
    """Its events are compared like those of any agent."""

    @recorded
    def asking(task: str) -> str:
        return str(agent.run_sync(task).output)

    agent = researcher()
    asking("x")
    recording = playhead.load_recording("latest")
    agent = Agent(ScriptedModel([]), name="researcher", tools=[lookup], system_prompt="Another prompt.")
    outcome = recording.reproduce_sync(program=asking)
    assert not outcome.identical
    assert outcome.divergences[0].owner == "root/researcher@-.0"
    assert "content" in outcome.divergences[0].what


def test_an_agent_that_fails_raises_as_it_does_outside() -> None:
    """The error carries the partial result."""

    @recorded
    def failing() -> str:
        try:
            return str(agent.run_sync("x").output)
        except ModelError as failed:
            return f"failed: {failed}, {failed.result is not None}"

    agent = researcher(error("no"))
    assert failing() == "failed: no, True"
    assert playhead.load_recording("latest").reproduce_sync(program=failing).identical


async def test_handles_and_chats_are_refused_inside() -> None:
    """They would be runs of their own, which nothing of the program's recording would hold."""

    @recorded
    async def starting() -> None:
        await AGENT.start("x")

    with pytest.raises(UsageError, match="run or run_sync"):
        await starting()
