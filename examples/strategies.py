"""One task, four strategies: what each asks of the model, and how its run ends. See docs/guides/strategies.md."""

from __future__ import annotations

import tempfile
from typing import Any

from examples.tools import lookup
from playhead import Agent, RunResult, load_recording
from playhead.testing import ScriptedModel, call, text

TASK = "How high is Mount Zed?"
ANSWER = "Mount Zed is 4,180 feet high."


def direct(**options: Any) -> RunResult:  # noqa: ANN401 - of Agent
    """Send, run the calls, send again: no reasons are asked for, nothing is added."""
    model = ScriptedModel([call("lookup", key="Mount Zed"), text(ANSWER)])
    return Agent(model, tools=[lookup], strategy="direct", **options).run_sync(TASK, run_id="direct")


def chain_of_thought(**options: Any) -> RunResult:  # noqa: ANN401 - of Agent
    """Think between tags before the answer; the thinking does not leave."""
    model = ScriptedModel(
        [
            call("lookup", key="Mount Zed"),
            text(f"<thinking>The table says 4,180 feet.</thinking>\n{ANSWER}"),
        ]
    )
    return Agent(model, tools=[lookup], strategy="chain-of-thought", **options).run_sync(TASK, run_id="thought")


def autonomous(**options: Any) -> RunResult:  # noqa: ANN401 - of Agent
    """Work on until the model calls `finish`; what it says beside its calls ends nothing."""
    model = ScriptedModel([text("I will look it up."), call("lookup", key="Mount Zed"), call("finish", result=ANSWER)])
    return Agent(model, tools=[lookup], strategy="autonomous", **options).run_sync(TASK, run_id="autonomous")


def reflexion(**options: Any) -> RunResult:  # noqa: ANN401 - of Agent
    """Answer, let a critic judge the answer, improve it."""
    model = ScriptedModel(
        [
            call("lookup", key="Mount Zed"),
            text("4,180."),
            text('{"issues": ["The unit is missing."], "score": 4, "satisfied": false}'),
            text(ANSWER),
            text('{"issues": [], "score": 10, "satisfied": true}'),
        ]
    )
    return Agent(model, tools=[lookup], strategy="reflexion", **options).run_sync(TASK, run_id="reflexion")


def main() -> None:
    """Run each, say how it ended and what it is made of, and reproduce its recording."""
    with tempfile.TemporaryDirectory() as folder:
        for run in (direct, chain_of_thought, autonomous, reflexion):
            result = run(trace=folder)
            assert result.trace_path is not None
            recording = load_recording(result.trace_path)
            counts = recording.counts()
            made_of = [
                f"{counts[kind]} {kind}"
                for kind in ("llm-requested", "thought", "nudge-issued", "critique")
                if kind in counts
            ]
            print(f"{result.strategy_used}: {result.terminated_by}, {result.output}")
            print(f"  {', '.join(made_of)}; identical: {recording.reproduce_sync().identical}")


if __name__ == "__main__":
    main()
