"""Settings, an instruction, tools and default limits of a user's strategy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from playhead import Strategy, register_strategy
from playhead.kernel import (
    Arguments,
    MetaTool,
    run_kernel,
)
from playhead.kernel.react import REACT
from playhead.testing import call, text
from tests.kernel.runs import ended, ending
from tests.kernel.strategies.looking import lookup, run

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


async def test_a_strategy_with_its_own_tool(tmp_path: Path):
    """The tool is offered, runs, is recorded, and is there again when the file alone is reproduced."""
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
