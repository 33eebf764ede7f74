"""What a strategy may bring along: settings, an instruction, tools of its own, usual values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from playhead import Strategy, ToolContext, register_strategy, tool
from playhead.kernel import (
    Arguments,
    MetaTool,
    answer_pass,
    ask_once,
    fresh_thread,
    run_kernel,
    transition,
)
from playhead.kernel.react import REACT
from playhead.testing import call, text
from tests.kernel.runs import ended, ending
from tests.kernel.strategies.looking import broken, lookup, purposes, run
from tests.own_strategies import register

if TYPE_CHECKING:
    from pathlib import Path


class Counted(Arguments):
    """What the tool of the strategy below takes."""

    upto: int


class Counting(Strategy):
    """Run the loop, with a tool that counts."""

    name = "counting"
    max_iterations = 7
    rationale = False

    tool_name: str = "count"
    """What its tool is called."""

    async def run(self, state: Any, session: Any) -> Any:
        """Run the loop."""
        assert self.tool_name in session.toolset
        return await run_kernel(REACT, state, session)

    def added_prompt(self) -> str:
        """Return what the model is told."""
        return f"Count with `{self.tool_name}`."

    def tools(self) -> list[MetaTool]:
        """Return a tool that it brings along."""
        body = lambda session, arguments: list(range(arguments.upto))  # noqa: E731
        return [MetaTool(self.tool_name, "Count.", Counted, body)]


@pytest.fixture(autouse=True)
def strategies() -> None:
    """Register it for one test."""
    register_strategy(Counting)


async def test_all_of_them(tmp_path: Path):
    """The tool is offered, runs, is in the trace, and is there again in a reproduction from the file alone."""
    turns = [call("tally", upto=3), call("tally"), call("lookup", key="a"), text("3")]
    settings = {"strategy_settings": {"tool_name": "tally"}, "rationale": None, "meta_tools": None}
    ran = await run(tmp_path, turns, lookup, strategy="counting", **settings)
    assert ending(ran) == ended("done", "end_turn", "3", 4)
    assert [tool.name for tool in ran.events("tools-defined")[0].tools] == ["lookup", "final-answer", "tally"]
    told = [each.observation() for each in ran.events("tool-call-completed")]
    assert (told[0], "upto: is missing; it has to be integer" in told[1], told[2]) == ("[0, 1, 2]", True, "found a")
    assert str(ran.model.requests[0].messages[0].content).endswith("\n\nCount with `tally`.")
    header = ran.recording.header.agent
    assert (header.max_iterations, header.rationale, header.meta_tools) == (7, False, ("final-answer",))


async def test_a_tool_s_body_does_not_get_them(tmp_path: Path):
    """They are the agent's; what a tool of the user's calls are the user's tools."""
    seen: list[list[str]] = []

    @tool(read_only=True)
    async def look_inside(context: ToolContext) -> str:
        """Look at what this body may call."""
        seen.append(sorted(context.scope.toolset))
        return "seen"

    await run(tmp_path, [call("look_inside"), text("done")], look_inside, lookup, strategy="counting")
    assert seen == [["lookup"]]


async def test_an_answer_pass(tmp_path: Path):
    """It gives one more turn, without tools; when that calls all the same, there is no answer, and this is said."""
    concluded = []

    async def once(state: Any, session: Any) -> Any:
        state, said = await answer_pass(state, session, state.thread, purpose="once", max_iterations=1)
        concluded.append((said.reason, said.output))
        state, judged = await ask_once(state, session, await fresh_thread(session, "Good?"), purpose="judge")
        return transition(state, output=f"{said.text}, {judged}")

    register("once", once)
    answered = await run(tmp_path / "a", [call("lookup", key="a"), text("42"), text("yes")], lookup, strategy="once")
    assert ending(answered) == ended("done", "end_turn", "42, yes", 2, terminated_source="strategy:once")
    assert purposes(answered) == ["once", "once", "judge"]
    stubborn = await run(
        tmp_path / "b", [call("lookup", key="a"), call("broken"), text("no")], lookup, broken, strategy="once"
    )
    assert [each.error.type for each in stubborn.events("tool-call-completed") if each.error] == ["ToolNotOffered"]
    # Each run is made twice: once live, once reproduced.
    assert concluded == [("end_turn", "42")] * 2 + [("max_iterations", "found a")] * 2
