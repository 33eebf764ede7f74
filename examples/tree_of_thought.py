"""Tree of thought: two approaches, each scored; the better one is followed with the tools."""

from __future__ import annotations

import tempfile

from examples.tools import calculator, lookup
from playhead import Agent, load_recording
from playhead.kernel.strategies import TreeOfThought
from playhead.testing import ScriptedModel, call, text
from playhead.trace.events import Critique, Thought


def main() -> None:
    """Print what was thought, how it scored, and what came of the best path."""
    model = ScriptedModel(
        [
            text('{"thoughts": ["Look the height up and convert it.", "Guess it from the name."]}'),
            text('{"score": 9}'),
            text('{"score": 2}'),
            call("lookup", key="Mount Zed"),
            call("calculator", expression="4180 * 0.3048"),
            text("Mount Zed is 1,274 metres high."),
        ]
    )
    with tempfile.TemporaryDirectory() as folder:
        strategy = TreeOfThought(breadth=2, depth=2)
        agent = Agent(model, tools=[lookup, calculator], strategy=strategy, trace=folder)
        result = agent.run_sync("How high is Mount Zed in metres?")
        assert result.trace_path is not None
        recording = load_recording(result.trace_path)
        for record in recording.records:
            event = record.event
            if isinstance(event, Thought):
                print(f"{event.name}: {event.text}")
            elif isinstance(event, Critique):
                print(f"  {event.score}: {'follow' if event.satisfied else 'prune'}")
        print(result.output)
        print("identical:", recording.reproduce_sync().identical)


if __name__ == "__main__":
    main()
