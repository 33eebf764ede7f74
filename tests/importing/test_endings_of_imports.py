"""A run that ended otherwise than a replay would is not called whole, and no ending is made up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

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
NOT_SAID: Final = "the run's output is not the model's last answer, which is the output of a replay: 1"


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


def test_another_program_that_stops_on_a_result_is_not_known_to_have_answered(tmp_path: Path) -> None:
    """That the output is what a tool returned makes no final answer of it."""
    run, recording = imported(ends_on("lookup", "4,180 feet").foreign(tmp_path / "s"), tmp_path / "runs")
    assert ended(run, recording) == ((ONCE_MORE,), "not_known")
    assert build_debrief(recording).outcome == "unknown"


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
