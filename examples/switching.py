"""Switching: an agent that calls the same tool again and again is stopped, and another strategy goes on from there."""

from __future__ import annotations

import tempfile

from examples.tools import lookup
from playhead import Agent, load_recording
from playhead.compose.policies import Switching, switch_strategy
from playhead.testing import ScriptedModel, call, text
from playhead.trace.events import StrategySwitched


def main() -> None:
    """Print what was noticed, what was recommended, and what the other strategy was told."""
    model = ScriptedModel(
        [
            *[call("lookup", key="Mount Zed")] * 3,
            text("direct\nThe fact is known already; it only has to be said."),
            text("Mount Zed is 4,180 feet high."),
        ]
    )
    switching = Switching(candidates=["reactive", "direct"])
    with tempfile.TemporaryDirectory() as folder:
        result = Agent(model, tools=[lookup], compose=[switch_strategy(switching)], trace=folder).run_sync(
            "How high is Mount Zed?"
        )
        assert result.trace_path is not None
        recording = load_recording(result.trace_path)
        for record in recording.records:
            event = record.event
            if isinstance(event, StrategySwitched):
                print(f"{event.from_strategy} → {event.to_strategy}: {event.rationale}")
        print(str(model.requests[-1].messages[-1].content).splitlines()[6])
        print(f"{result.strategy_used}: {result.output}")
        print("identical:", recording.reproduce_sync().identical)


if __name__ == "__main__":
    main()
