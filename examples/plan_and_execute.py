"""Plan first, then carry the plan out: calls whose arguments are results of earlier steps, without asking the model in between.

The model is scripted, so that this runs anywhere; put "openai/gpt-4o-mini" or "ollama/qwen3:8b" in its place.
"""

from __future__ import annotations

import json
import tempfile

from examples.tools import calculator, lookup
from playhead import load_recording, plan_and_execute, tool
from playhead.testing import ScriptedModel, text

PLAN = {
    "steps": [
        {
            "type": "tool_call",
            "tool_name": "lookup",
            "tool_args": {"key": "foot"},
            "rationale": {"why": "the height is in feet", "confidence": 0.9},
        },
        {
            "type": "tool_call",
            "tool_name": "calculator",
            "tool_args": {"expression": "4180 * 0.3048"},
            "rationale": {"why": "the height in metres is asked for", "confidence": 0.9},
        },
        {
            "type": "tool_call",
            "tool_name": "note",
            "tool_args": {"text": "Mount Zed: {{from_step:s2}} metres"},
            "rationale": {"why": "the task says so", "confidence": 1.0},
        },
    ]
}
MODEL = ScriptedModel(
    [
        text(json.dumps(PLAN)),
        text('{"reason": "The height is calculated and noted.", "satisfied": true}'),
        text("Mount Zed is 1,274 metres high; I have noted that."),
    ]
)


@tool
async def note(text: str) -> str:
    """Keep a note."""
    return f"noted: {text}"


def main() -> None:
    """Print the plan, what became of its steps, and the answer."""
    with tempfile.TemporaryDirectory() as folder:
        task = "Mount Zed is 4180 feet high. Note its height in metres."
        result = plan_and_execute.sync(
            task, MODEL, tools=[lookup, calculator, note], max_iterations=8, max_tokens=50_000, trace=folder
        )
        print(f"{result.terminated_by}: {result.output}")
        assert result.trace_path is not None
        recording = load_recording(result.trace_path)
        for record in recording.records:
            if record.kind == "plan-step-changed":
                print(f"{record.event.step_id}: {record.event.status}")  # type: ignore[attr-defined]
        for step in result.steps:
            if step.type == "observation":
                print(f"{step.tool} returned {step.content}")
        print("identical:", recording.reproduce_sync().identical)


if __name__ == "__main__":
    main()
