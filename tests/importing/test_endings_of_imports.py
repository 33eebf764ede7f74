"""A run that ended otherwise than a replay would is not called whole, and no ending is made up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest
from openinference.instrumentation import TraceConfig

from playhead.diagnose.debrief import build_debrief
from playhead.trace.events import LlmRequested
from playhead.trace.recording import Recording, read_recording
from tests.importing.test_round_trip import GOLDEN, exported
from tests.importing.traces import Trace, calling, captured, imported

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.importing import ImportedRun

BY_NAME: Final = {path.stem: path for path in GOLDEN}
ONCE_MORE: Final = "the run ended on the calls of tools; a replay asks the model once more: 1"
NOT_SAID: Final = "the run's output is not what the model said last, which is what a replay gives: 1"


def ended(run: ImportedRun, recording: Recording) -> tuple[Any, ...]:
    """Return the reasons that have to do with the end, and how the run ended."""
    assert recording.ending is not None
    return of_the_end(run), recording.ending.terminated_by


def of_the_end(run: ImportedRun) -> tuple[str, ...]:
    """Return the reasons that have to do with the end; with any, a run is not whole."""
    reasons = tuple(each for each in run.source.reasons if each.startswith(("the run ended", "the run's output")))
    assert not reasons or run.replayability == "tools-only"
    return reasons


def ends_on(tool: str, output: str) -> Trace:
    """Return a run whose last span is that of a tool."""
    prompt = [("system", "Use the tools."), ("user", "How high is Zed?")]
    schema = f'{{"type": "function", "function": {{"name": "{tool}", "parameters": {{"type": "object"}}}}}}'
    return (
        Trace()
        .agent(1, None, **{"output.value": output})
        .model(2, 1, prompt, calling(("c1", tool, {"key": "Zed"})), **{"llm.tools.0.tool.json_schema": schema})
        .tool(3, 1, tool, {"key": "Zed"}, "4,180 feet")
    )


OURS: Final = {
    "direct-turns-used-up": "max_iterations",
    "reactive-final-answer": "final_answer_tool",
    "autonomous-another-name": "final_answer_tool",
    "autonomous-finish": "final_answer_tool",
    "chain-of-thought-tools": "end_turn",
    "direct-required-tool-missing": "required_tools_missing",
    "reactive-sub-agents": "end_turn",
    "reactive-model-error": "llm_error",
    "reactive-tools": "end_turn",
}


@pytest.mark.parametrize("name", list(OURS))
def test_a_run_of_ours_ends_as_it_did(name: str, tmp_path: Path) -> None:
    """Its spans state how it ended, and a replay by the same loop ends so."""
    native = read_recording(BY_NAME[name])
    run, recording = imported(exported(native, max_messages=None), tmp_path)
    by = OURS[name]
    assert native.ending is not None
    assert (native.ending.terminated_by, native.ending.status) == (by, recording.ending and recording.ending.status)
    assert ended(run, recording) == ((), by)


@pytest.mark.parametrize("name", list(BY_NAME))
def test_every_ending_of_ours_comes_back(name: str, tmp_path: Path) -> None:
    """Whatever the strategy, the reason code is that of the recording, and so is what the debriefing makes of it."""
    native = read_recording(BY_NAME[name])
    _, recording = imported(exported(native, max_messages=None), tmp_path)
    assert native.ending is not None
    assert recording.ending is not None
    assert recording.ending.terminated_by == native.ending.terminated_by
    assert build_debrief(recording).outcome == build_debrief(native).outcome
    inner = {name: owner.completed.terminated_by for name, owner in recording.owners.items() if owner.completed}
    assert inner == {name: owner.completed.terminated_by for name, owner in native.owners.items() if owner.completed}


def test_a_run_whose_turns_are_used_up_is_no_success(tmp_path: Path) -> None:
    """Its output is the result of its last call, which is no answer; all content hidden, it says so, too."""
    native = read_recording(BY_NAME["direct-turns-used-up"])
    assert build_debrief(imported(exported(native), tmp_path / "a")[1]).outcome == "partial"
    hidden = exported(native, masking=TraceConfig(hide_inputs=True, hide_outputs=True))
    _, recording = imported(hidden, tmp_path / "b")
    assert recording.ending is not None
    assert recording.ending.terminated_by == "max_iterations"


def test_another_program_that_stops_on_a_result_is_not_known_to_have_answered(tmp_path: Path) -> None:
    """That the output is what a tool returned makes no final answer of it."""
    run, recording = imported(ends_on("lookup", "4,180 feet").foreign(tmp_path / "s"), tmp_path / "runs")
    assert ended(run, recording) == ((ONCE_MORE,), "not_known")
    assert build_debrief(recording).outcome == "unknown"


def test_another_programs_reason_code_is_not_taken_for_ours(tmp_path: Path) -> None:
    """Only a span with metadata of ours states an ending."""
    trace = ends_on("lookup", "4,180 feet")
    trace.spans[0]["attributes"].append({"key": "agent.terminated_by", "value": {"stringValue": "end_turn"}})
    _, recording = imported(trace.foreign(tmp_path / "s"), tmp_path / "runs")
    assert recording.ending is not None
    assert recording.ending.terminated_by == "not_known"


@pytest.mark.parametrize(
    ("said", "output", "is_whole"),
    [
        ("4,1", "4,1", True),
        ("4,1\n", " 4,1", True),
        ('{"feet": 4}', '{ "feet":4 }', True),
        ("<thinking>Hm.</thinking>4,1", "4,1", False),
        ("4,1", "Answer: 4,1", False),
        ("4,1", None, True),
    ],
)
def test_an_output_that_the_model_did_not_say(said: str, output: str | None, is_whole: bool, tmp_path: Path) -> None:
    """A replay gives what the model says; blanks and the spacing of JSON are no difference."""
    given = {} if output is None else {"output.value": output, "output.mime_type": "application/json"}
    trace = Trace().agent(1, None, **given).model(2, 1, [("user", "Zed?")], ("assistant", said))
    run, _ = imported(trace.foreign(tmp_path / "s"), tmp_path / "runs")
    assert of_the_end(run) == (() if is_whole else (NOT_SAID,))


def test_a_killed_run_has_no_end(tmp_path: Path) -> None:
    """Its spans end where its recording breaks off, which is not how it ended: nobody says that the model failed."""
    records = read_recording(BY_NAME["reactive-tools"]).records
    last = max(place for place, record in enumerate(records) if isinstance(record.event, LlmRequested))
    killed = Recording(BY_NAME["reactive-tools"], records[: last + 1], ())
    run, recording = imported(exported(killed), tmp_path)
    assert (run.replayability, recording.ending) == ("tools-only", None)
    assert "the run may not be whole: spans had not ended, or do not say when: 2" in run.source.reasons
    assert recording.root.exchanges[-1].outcome is None
    assert build_debrief(recording).outcome == "unknown"


@pytest.mark.parametrize(
    "name", ["langgraph", "openai-agents", "openai-agents-nested", "pydantic-ai", "pydantic-ai-gen-ai"]
)
def test_runs_that_end_on_an_answer_end_so_in_a_replay(name: str, tmp_path: Path) -> None:
    """Of each framework that was captured."""
    assert ended(*imported(captured(name), tmp_path)) == ((), "end_turn")
