"""Adaptive: the model chooses the strategy; where it names none, the first one runs."""

from __future__ import annotations

import tempfile

from examples.tools import lookup
from playhead import Agent, load_recording
from playhead.kernel.strategies import Adaptive
from playhead.testing import ScriptedModel, Turn, call, text
from playhead.trace.events import StrategySelected

STRATEGY = Adaptive(candidates=["direct", "reactive"])
ANSWER = [call("lookup", key="Mount Zed"), text("4,180 feet")]


def run(folder: str, choice: Turn) -> None:
    """Let the model choose, and print what was chosen, and by whom."""
    agent = Agent(ScriptedModel([choice, *ANSWER]), tools=[lookup], strategy=STRATEGY, trace=folder)
    result = agent.run_sync("How high is Mount Zed?")
    assert result.trace_path is not None
    recording = load_recording(result.trace_path)
    (selected,) = (each.event for each in recording.records if isinstance(each.event, StrategySelected))
    print(f"{result.strategy_used}: {selected.reason}; identical:", recording.reproduce_sync().identical)


def main() -> None:
    """Run the same task with a model that chooses, and with one that does not."""
    with tempfile.TemporaryDirectory() as folder:
        run(folder, text("reactive"))
        run(folder, text("I cannot say."))


if __name__ == "__main__":
    main()
