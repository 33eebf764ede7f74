from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from playhead import load_recording, tool
from playhead.replay import reproduce
from playhead.testing import ScriptedModel, call, calls, text
from playhead.trace.integrity import check_trace
from tests.kernel.runs import data, ended, make_agent, record

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


async def test_a_final_answer_keeps_what_the_model_said_about_it(tmp_path: Path):
    """Format, summary and confidence stand beside the answer."""
    answer = call("final-answer", output="a,b", format="csv", summary="Listed.", confidence="low")
    run = await record(tmp_path, [call("lookup", key="a"), answer], lookup, **FINAL)
    assert [data(event) for event in run.events("final-answer")] == [
        {"output": "a,b", "format": "csv", "summary": "Listed.", "confidence": "low"}
    ]


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
