"""Adaptive: the model chooses the strategy, and after a few runs the stored traces say how well each did."""

from __future__ import annotations

import tempfile

from examples.tools import lookup
from playhead import Agent, load_recording
from playhead.kernel.strategies import Adaptive
from playhead.testing import ScriptedModel, Turn, call, text
from playhead.trace.events import StrategySelected

STRATEGY = Adaptive(candidates=["reactive", "direct"], learning=True)
ANSWER = [call("lookup", key="Mount Zed"), text("4,180 feet")]


def run(folder: str, choice: Turn) -> None:
    """Let the model choose, and print what was chosen, by whom, and on what experience."""
    model = ScriptedModel([choice, *ANSWER])
    agent = Agent(model, tools=[lookup], strategy=STRATEGY, trace=folder)
    result = agent.run_sync("How high is Mount Zed?")
    assert result.trace_path is not None
    recording = load_recording(result.trace_path)
    (selected,) = (each.event for each in recording.records if isinstance(each.event, StrategySelected))
    print(f"{result.strategy_used}: {selected.reason}")
    if "succeeded" in str(model.requests[0].messages[-1].content):
        print("  the model was told of earlier runs; identical:", recording.reproduce_sync().identical)


def main() -> None:
    """Run the same kind of task four times; the fourth time three runs of `direct` are known."""
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(3):
            run(folder, text("direct"))
        run(folder, text("I cannot say."))


if __name__ == "__main__":
    main()
