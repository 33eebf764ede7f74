"""Running an agent on a script, and looking at what was recorded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from playhead import Agent, PlayheadError, Recording, RunError, RunResult, load_recording
from playhead.diagnose.integrity import check_trace
from playhead.testing import ScriptedModel, TickingClock
from playhead.trace.format import ANSWERED
from tests.options import grouped

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.trace.events import EventBase


@dataclass(frozen=True)
class Ran:
    """A run that is over."""

    model: Any
    """What answered: a `ScriptedModel`, mostly."""
    result: RunResult
    """What the run returned, or what its error carried."""
    error: PlayheadError | None
    recording: Recording

    def events(self, *kinds: str, owner: str | None = None) -> list[Any]:
        """Return the events of these kinds (of all kinds for none), in the order of the file."""
        return [
            record.event
            for record in self.recording.records
            if (not kinds or record.kind in kinds) and owner in (None, record.owner)
        ]

    def kinds(self, owner: str | None = None) -> list[str]:
        """Return the kinds of all events, in the order of the file."""
        return [event.kind for event in self.events(owner=owner)]

    def steps(self) -> list[tuple[str, str | None, str]]:
        """Return what the agent did, in short."""
        return [(step.type, step.tool, step.content) for step in self.result.steps]


def make_agent(folder: Path | None, turns: Any, *tools: Any, **options: Any) -> Agent:
    """Return an agent that records into the folder and waits for nothing."""
    tool_format = options.pop("tool_format", "native")
    model = turns if hasattr(turns, "complete") else ScriptedModel(turns, tool_format=tool_format)
    # Repair is on, as it is by default; tests of what is refused turn it off.
    defaults: dict[str, Any] = {
        "clock": TickingClock,
        "retry_delay_s": 0,
        "rationale": False,
        "meta_tools": (),
    }
    return Agent(model, **grouped(tools=tools, trace=folder, **{**defaults, **options}))


async def record(folder: Path, turns: Any, *tools: Any, task: Any = "Do it.", **options: Any) -> Ran:
    """Run an agent on a script and read its trace, which must be whole, however the run ends."""
    return await record_agent(make_agent(folder, turns, *tools, **options), folder, task)


async def record_agent(agent: Agent, folder: Path, task: Any = "Do it.", run_id: str = "run") -> Ran:
    """Run an agent and read its trace."""
    error: RunError | None = None
    try:
        result: Any = await agent.run(task, run_id=run_id)
    except RunError as raised:
        error, result = raised, raised.result
    assert isinstance(result, RunResult)
    assert error is None or error.trace_path == result.trace_path
    recording = load_recording(folder / f"{run_id}.jsonl")
    check = check_trace(recording.path)
    assert check.ok, check.problems
    return Ran(agent.model, result, error, recording)


def data(event: EventBase) -> dict[str, Any]:
    """Return the fields of an event that were set, but for times."""
    fields = event.model_dump(exclude_none=True, exclude_defaults=True)
    return {
        name: value for name, value in fields.items() if name not in ("duration_ms", "latency_ms", "first_token_ms")
    }


def ending(run: Ran) -> dict[str, Any]:
    """Return how a run ended, as its result says; the trace has to say the same."""
    fields = ("status", "terminated_by", "terminated_source", "output", "error", "iterations")
    said = {name: getattr(run.result, name) for name in fields}
    (completed,) = run.events("run-completed")
    assert {name: getattr(completed, name) for name in fields} == said
    assert (completed.usage, completed.cost_usd) == (run.result.usage, run.result.cost_usd)
    assert completed.duration_ms == run.result.duration_ms
    assert run.kinds()[-1] == "run-completed"
    final = [data(event) for event in run.events("final-answer", owner="root")]
    answered = said["terminated_by"] in ANSWERED and said["output"] is not None
    assert [each.get("output") for each in final] == ([said["output"]] if answered else [])
    return said


def ended(status: str, terminated_by: str, output: Any, iterations: int, **more: Any) -> dict[str, Any]:
    """Return an ending with the usual source and no error."""
    return {
        "status": status,
        "terminated_by": terminated_by,
        "terminated_source": "kernel",
        "output": output,
        "error": None,
        "iterations": iterations,
        **more,
    }
