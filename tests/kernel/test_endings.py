from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from playhead import Agent, Context, ToolContext, load_recording, tool
from playhead.errors import ModelRequestError, ModelUnavailableError, TraceWriteError
from playhead.replay import reproduce
from playhead.testing import ScriptedModel, call, calls, error, text
from playhead.trace.integrity import check_trace
from playhead.trace.recorder import Recorder
from tests.kernel.runs import data, ended, ending, make_agent, record

if TYPE_CHECKING:
    from pathlib import Path


@tool(read_only=True)
def lookup(key: str) -> str:
    """Look a fact up."""
    return f"{key} is 8848"


FINAL = {"meta_tools": ("final-answer",)}
ENDINGS: dict[str, tuple[list[Any], dict[str, Any], dict[str, Any], bool]] = {
    "end_turn": ([text(" 42 ")], {}, ended("done", "end_turn", "42", 1), True),
    "end_turn after a call": (
        [call("lookup", key="Everest"), text("8848")],
        {},
        ended("done", "end_turn", "8848", 2),
        True,
    ),
    "final_answer": ([text("So.\nFinal Answer: 42\n")], {}, ended("done", "final_answer", "42", 1), True),
    "final_answer_tool": (
        [call("lookup", key="Everest"), call("final-answer", output="8848", format="json", confidence="high")],
        FINAL,
        ended("done", "final_answer_tool", "8848", 2),
        True,
    ),
    "max_iterations": (
        [call("lookup", key="a"), call("lookup", key="b"), text("never said")],
        {"max_iterations": 2},
        ended("done", "max_iterations", "b is 8848", 2),
        False,
    ),
    "max_iterations, the newest call having failed": (
        [call("lookup", key="a"), call("lookup")],
        {"max_iterations": 2},
        ended("done", "max_iterations", "a is 8848", 2),
        False,
    ),
    "max_iterations with nothing": (
        [text(""), text("")],
        {"max_iterations": 2},
        ended("done", "max_iterations", None, 2),
        False,
    ),
    "output_truncated": (
        [text("It is eight thou", finish_reason="length")],
        {},
        ended("done", "output_truncated", "It is eight thou", 1),
        False,
    ),
    "output_filtered": (
        [text("Take two", finish_reason="content_filter")],
        {},
        ended("done", "output_filtered", "Take two", 1),
        False,
    ),
    "output_filtered with nothing said": (
        [call("lookup", key="a"), text("", finish_reason="content_filter")],
        {},
        ended("done", "output_filtered", "a is 8848", 2),
        False,
    ),
}


@pytest.mark.parametrize("name", ENDINGS)
async def test_a_clean_end(tmp_path: Path, name: str):
    """Every way to stop in order: a result and no exception; only an answer of the model itself is a success."""
    turns, options, expected, success = ENDINGS[name]
    run = await record(tmp_path, turns, lookup, **options)
    assert ending(run) == expected
    assert (run.error, run.result.success) == (None, success)
    last = ["final-answer", "kernel-state-snapshot", "run-completed"]
    assert run.kinds()[-len(last) :] == last or not success
    (*_, last) = run.events("kernel-state-snapshot")
    assert (last.status, last.terminated_by, last.termination_rationale) == ("done", expected["terminated_by"], None)
    assert (await reproduce(run.recording)).identical


async def test_a_final_answer_keeps_what_the_model_said_about_it(tmp_path: Path):
    """Format, summary and confidence stand beside the answer."""
    answer = call("final-answer", output="a,b", format="csv", summary="Listed.", confidence="low")
    run = await record(tmp_path, [call("lookup", key="a"), answer], lookup, **FINAL)
    assert [data(event) for event in run.events("final-answer")] == [
        {"output": "a,b", "format": "csv", "summary": "Listed.", "confidence": "low"}
    ]


async def test_llm_error(tmp_path: Path):
    """A model that does not answer is an error that carries what was reached."""
    run = await record(tmp_path, [call("lookup", key="a"), error("no such model")], lookup)
    assert ending(run) == ended("failed", "llm_error", "a is 8848", 2, error="no such model")
    assert (type(run.error), str(run.error)) == (ModelRequestError, "no such model")
    assert [(step.type, step.content) for step in run.result.steps] == [
        ("action", '{"key": "a"}'),
        ("observation", "a is 8848"),
    ]
    assert not run.result.success


async def test_llm_error_after_the_last_retry(tmp_path: Path):
    """A failure that may pass, but does not, ends the run with its own kind of error."""
    run = await record(tmp_path, [error("busy", retryable=True)] * 2, retries=1)
    assert ending(run) == ended("failed", "llm_error", None, 1, error="busy")
    assert type(run.error) is ModelUnavailableError


@pytest.mark.parametrize("where", ["model", "tool"])
async def test_cancelled(tmp_path: Path, where: str):
    """A scope that is cancelled around a run: the trace is closed, says so, and the cancellation goes on its way."""

    @tool
    async def wait() -> str:
        await anyio.sleep_forever()
        return ""

    def slow(_request: Any) -> Any:
        return text("late", delay_s=60)

    agent = make_agent(tmp_path, [slow] if where == "model" else [call("wait")], wait)
    returned = False
    with anyio.move_on_after(0.02) as scope:
        await agent.run("Do it.", run_id="run")
        returned = True
    assert (scope.cancelled_caught, returned) == (True, False)
    recording = load_recording(tmp_path / "run.jsonl")
    assert (recording.status, recording.problems) == ("closed", ())
    assert recording.ending is not None
    assert data(recording.ending) == {
        "status": "failed",
        "terminated_by": "cancelled",
        "terminated_source": "kernel",
        "error": "the run was cancelled from outside",
        "iterations": 1,
        "cost_usd": 0.0,
        **({} if where == "model" else {"usage": {"input_tokens": 2, "output_tokens": 1}}),
    }
    last = [record.event for record in recording.records if record.kind in ("llm-failed", "tool-call-completed")][-1]
    assert last.error.type == {"model": "Cancelled", "tool": "Cancelled"}[where]  # type: ignore[attr-defined]


async def test_trace_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A run that is told to stop at a lost event does so before the tool's body runs, and says why."""
    monkeypatch.setenv("PLAYHEAD_ON_TRACE_ERROR", "stop")
    ran: list[str] = []
    seen: list[Any] = []

    @tool
    def write(key: str) -> str:
        ran.append(key)
        return key

    original = Recorder.write

    def lose(self: Recorder, prepared: Any, iteration: int | None) -> bool:
        return prepared.event.kind != "tool-call-started" and original(self, prepared, iteration)

    monkeypatch.setattr(Recorder, "write", lose)
    agent = make_agent(tmp_path, [call("write", key="a"), text("never")], write)
    agent.subscribe("run-completed", seen.append)
    with pytest.raises(TraceWriteError, match="tool-call-started could not be written to the trace"):
        await agent.run("Do it.")
    assert ran == []
    assert [(record.event.status, record.event.terminated_by) for record in seen] == [("failed", "trace_error")]


async def test_parent_ended(tmp_path: Path):
    """A sub-agent whose parent ends meanwhile ends too, and says that this is why."""

    @tool(read_only=True)
    async def stop_parent(context: ToolContext) -> str:
        assert context.session.parent is not None
        context.session.parent.terminate("killed", "enough", source="switch")
        return "stopped"

    child = Agent(
        ScriptedModel([call("stop_parent"), text("never")]),
        name="child",
        tools=[stop_parent],
        context=Context(rationale=False),
    )
    run = await record(tmp_path, [call("child", task="Stop it."), text("never")], child)
    assert ending(run) == ended("done", "killed", "enough", 1, terminated_source="switch")
    (completed,) = run.events("agent-completed")
    assert data(completed) == {
        "status": "failed",
        "terminated_by": "parent_ended",
        "terminated_source": "kernel",
        "output": "stopped",
        "usage": completed.usage.model_dump(exclude_defaults=True),
        "cost_usd": 0.0,
        "iterations": 1,
    }
    (*_, call_) = run.events("tool-call-completed")
    assert (call_.error.type, call_.error.message) == ("AgentFailed", "child failed: parent_ended")


async def test_the_other_calls_of_the_last_turn_are_in_the_result(tmp_path: Path):
    """What ran in the turn that ended the run is in its steps like what ran before."""
    run = await record(
        tmp_path,
        [call("lookup", key="a"), calls(call("lookup", key="b"), call("final-answer", output="42"))],
        lookup,
        **FINAL,
    )
    assert run.steps() == [
        ("action", "lookup", '{"key": "a"}'),
        ("observation", "lookup", "a is 8848"),
        ("action", "lookup", '{"key": "b"}'),
        ("observation", "lookup", "b is 8848"),
        ("action", "final-answer", '{"output": "42"}'),
        ("observation", "final-answer", "accepted"),
    ]


@pytest.mark.parametrize(
    ("finish_reason", "terminated_by"),
    [
        (None, "end_turn"),
        ("stop", "end_turn"),
        ("no such reason", "end_turn"),
        ("max_tokens", "output_truncated"),
        ("MAX_TOKENS", "output_truncated"),
        ("SAFETY", "output_filtered"),
        ("refusal", "output_filtered"),
    ],
)
async def test_a_reason_to_stop(tmp_path: Path, finish_reason: str | None, terminated_by: str):
    """An answer that the provider says it cut or kept back is no success, in whatever words it says so."""
    run = await record(tmp_path, [text("42", finish_reason=finish_reason)])
    assert (run.result.terminated_by, run.result.output) == (terminated_by, "42")
    assert run.result.success == (terminated_by == "end_turn")


CALLS_OF_AN_END: list[tuple[list[Any], list[str], str]] = [
    ([call("lookup", key="b"), *[call("final-answer", output=each) for each in "12"]], ["lookup", "final-answer"], "1"),
    ([call("final-answer", output="1"), call("lookup", key="b")], ["lookup", "final-answer"], "1"),
    (
        [
            call("final-answer", answer="1", text="1"),
            call("final-answer", output="2"),
            call("final-answer", output="3"),
        ],
        ["final-answer", "final-answer"],
        "2",
    ),
]


@pytest.mark.parametrize(("turn", "ran", "output"), CALLS_OF_AN_END)
async def test_calls_after_the_end(tmp_path: Path, turn: list[Any], ran: list[str], output: str):
    """Calls that would end an ended run do not run; what the others returned is in the steps and in the thread."""
    run = await record(tmp_path, [call("lookup", key="a"), calls(*turn)], lookup, **FINAL)
    assert (run.result.output, run.result.terminated_by) == (output, "final_answer_tool")
    started = [event for event in run.events("tool-call-started") if event.request == 1]
    assert sorted(event.tool for event in started) == sorted(ran)
    observed = [step.call_id for step in run.result.steps if step.type == "observation"]
    assert observed[1:] == [event.call_id for event in sorted(started, key=lambda event: event.position)]
    results = [event.ref.call for event in run.events("message-added") if event.ref and event.ref.call]
    assert results == observed
    assert (await reproduce(run.recording)).identical


def test_a_run_that_is_thrown_away(tmp_path: Path):
    """A run whose coroutine is destroyed, with no loop left, closes its trace all the same."""
    loop = asyncio.new_event_loop()
    asked = asyncio.Event()

    class Model(ScriptedModel):
        async def complete(self, request: Any) -> Any:
            asked.set()
            await asyncio.Event().wait()

    running = make_agent(tmp_path, Model([])).run("Do it.", run_id="run")
    task = loop.create_task(running)
    loop.run_until_complete(asked.wait())
    loop.close()
    running.close()
    task._log_destroy_pending = False  # type: ignore[attr-defined]  # as it is meant to be
    recording = load_recording(tmp_path / "run.jsonl")
    assert (recording.status, check_trace(recording.path).verdict) == ("closed", "ok")
    assert recording.ending is not None
    assert (recording.ending.status, recording.ending.terminated_by) == ("failed", "cancelled")
