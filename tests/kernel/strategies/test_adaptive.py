"""Adaptive: the model chooses a strategy, which runs as if the user had named it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from playhead import Strategy, register_strategy
from playhead.kernel.state import transition
from playhead.kernel.strategies.base import strategy_class
from playhead.replay import reproduce
from playhead.testing import text
from tests.kernel.runs import data, ending, make_agent
from tests.kernel.runs import ended as ended_as

if TYPE_CHECKING:
    from pathlib import Path

CANDIDATES = ["reactive", "careful"]


class Careful(Strategy):
    """Ask as often as the settings say."""

    name = "careful"

    times: int = 2
    """How often it asks."""

    async def run(self, state: Any, session: Any) -> Any:
        """Ask."""
        said = ""
        for _ in range(self.times):
            said = (await session.model.complete(state.thread, purpose="careful")).text
        session.terminate("end_turn", said)
        return transition(state, output=said)


@pytest.fixture(autouse=True)
def strategies() -> None:
    """Two strategies of the user's to choose from."""
    register_strategy(Careful)


async def adapt(
    folder: Path, turns: Any, *tools: Any, run_id: str = "run", task: str = "How high is it?", **settings: Any
):
    """Run it on a script, and reproduce the recording from the file alone."""
    given = {"candidates": CANDIDATES, **settings}
    agent = make_agent(folder, turns, *tools, strategy="adaptive", strategy_settings=given)
    from tests.kernel.runs import record_agent

    ran = await record_agent(agent, folder, task, run_id)
    reproduced = await reproduce(folder / f"{run_id}.jsonl")
    assert reproduced.identical, reproduced.divergences
    return ran


def selected(ran: Any) -> dict[str, Any]:
    """Return what the trace says about the choice."""
    (event,) = ran.events("strategy-selected")
    assert event.declares == strategy_class(event.strategy).declared()
    return {name: value for name, value in data(event).items() if name != "declares"}


async def test_the_model_chooses_and_the_chosen_one_runs(tmp_path: Path):
    """The trace holds the choice, its reason and the strategy behind the output; the header says `adaptive`."""
    ran = await adapt(tmp_path, [text("careful"), text("no"), text("42")])
    assert ending(ran) == ended_as("done", "end_turn", "42", 0)
    assert selected(ran) == {
        "strategy": "careful",
        "reason": "the model's choice",
    }
    assert ran.result.strategy_used == "careful"
    assert ran.events("run-completed")[0].strategy_used == "careful"
    assert ran.recording.header.agent.strategy == "adaptive"
    assert [event.purpose for event in ran.events("llm-requested")] == ["select", "careful", "careful"]
    asked = str(ran.model.requests[0].messages[-1].content)
    assert "- careful: Ask as often as the settings say.\n" in asked
    assert "Turns at most: 20\nPreferred: reactive\nTask:\nHow high" in asked
