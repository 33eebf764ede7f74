"""Record a run, check its file, and reproduce it without calling anything real.

The model is scripted, so that this runs anywhere; put "openai/gpt-4o-mini" or "ollama/qwen3:8b" in its place.
"""

from __future__ import annotations

import tempfile

from examples.tools import calculator, lookup
from playhead import Agent, check_trace, load_recording
from playhead.testing import ScriptedModel, call, calls, text

MODEL = ScriptedModel(
    [
        calls(
            call("lookup", key="Mount Zed"),
            text='<rationale call="1">{"why": "the height is asked for", "confidence": 0.9}</rationale>',
        ),
        call("calculator", expression="4180 * 0.3048"),
        text("Mount Zed is 4,180 feet high, that is 1,274 metres."),
    ]
)


def main() -> None:
    """Print what each step gives."""
    with tempfile.TemporaryDirectory() as folder:
        agent = Agent(MODEL, tools=[lookup, calculator], trace=folder)
        result = agent.run_sync("How high is Mount Zed, in feet and in metres?")
        print(result.output)
        print(f"{result.terminated_by}: {result.iterations} turns, {result.usage.total_tokens} tokens")
        assert result.trace_path is not None
        print("check:", check_trace(result.trace_path).verdict)
        recording = load_recording(result.trace_path)
        for recorded in recording.root.calls.values():
            reason = recorded.started.rationale
            print(f"{recorded.started.tool}: {reason.why if reason else 'no reason stated'}")
        print("identical:", recording.reproduce_sync().identical)


if __name__ == "__main__":
    main()
