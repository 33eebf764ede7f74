"""How an imported run ended: as one of Playhead would have, and where it did not, the report says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from playhead.diagnose.debrief import build_debrief
from playhead.trace.events import LlmRequested
from playhead.trace.recording import Recording, read_recording
from tests.cli.command_line import playhead
from tests.importing.test_round_trip import GOLDEN, exported
from tests.importing.traces import Trace, calling, captured, imported, shop

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.importing import ImportedRun


def ended(trace: Trace, folder: Path) -> tuple[ImportedRun, Recording]:
    """Import a trace."""
    return imported(trace.foreign(folder / "spans"), folder / "runs")


def answering(**more: Any) -> Trace:
    """Return a run of one model call."""
    return (
        Trace().agent(1, None, **{"output.value": "4,1"}).model(2, 1, [("user", "Zed?")], ("assistant", "4,1"), **more)
    )


RAW = '{"choices": [{"finish_reason": "length", "message": {"role": "assistant", "content": "4,1"}}]}'
REASONS: dict[str, tuple[dict[str, Any], str]] = {
    "whole": ({"llm.finish_reason": "stop"}, "end_turn"),
    "length": ({"llm.finish_reason": "length"}, "output_truncated"),
    "MAX_TOKENS": ({"llm.finish_reason": "MAX_TOKENS"}, "output_truncated"),
    "content_filter": ({"llm.finish_reason": "content_filter"}, "output_filtered"),
    "the provider's answer": ({"output.value": RAW, "output.mime_type": "application/json"}, "output_truncated"),
}


@pytest.mark.parametrize("name", list(REASONS))
def test_an_answer_that_was_cut_off_is_no_success(name: str, tmp_path: Path) -> None:
    """The provider says that it is not whole: the run ends as natively, and nothing calls it a success."""
    attributes, expected = REASONS[name]
    _, recording = ended(answering(**attributes), tmp_path)
    assert recording.ending is not None
    assert (recording.ending.terminated_by, recording.ending.output) == (expected, "4,1")
    assert build_debrief(recording).outcome == ("success" if expected == "end_turn" else "partial")


def test_an_answer_that_was_cut_off_by_the_conventions_of_gen_ai(tmp_path: Path) -> None:
    """There it is a list."""
    spans = captured("pydantic-ai-gen-ai")
    for span in spans:
        if "gen_ai.response.finish_reasons" in span.attributes:
            dict.__setitem__(span.attributes, "gen_ai.response.finish_reasons", ["length"])  # type: ignore[index]
    _, recording = imported(spans, tmp_path)
    assert recording.ending is not None
    assert recording.ending.terminated_by == "output_truncated"


def test_a_run_whose_model_never_answered_failed(tmp_path: Path) -> None:
    """Everywhere: in the list, in what is shown, and in the debriefing."""
    trace = Trace().agent(1).model(2, 1, [("user", "Zed?")], None)
    trace.spans[1]["status"] = {"code": 2, "message": "busy"}
    run, recording = ended(trace, tmp_path)
    assert recording.ending is not None
    assert (recording.ending.status, recording.ending.terminated_by) == ("failed", "llm_error")
    assert build_debrief(recording).outcome == "failed"
    assert "failed" in playhead("list", "--trace-dir", run.path.parent).stdout


def test_an_ending_that_is_not_known_is_neither_a_success_nor_a_failure(tmp_path: Path) -> None:
    """The spans hold no answer, and no error: what became of it nobody knows."""
    run, recording = ended(Trace().agent(1).model(2, 1, [("user", "Zed?")], None), tmp_path)
    assert recording.ending is not None
    assert (recording.ending.status, recording.ending.terminated_by) == ("done", "not_known")
    assert build_debrief(recording).outcome == "unknown"
    shown = playhead("debrief", run.path).stdout
    assert "Outcome: unknown" in shown


def test_reasons_of_an_imported_run_are_not_known_to_have_been_asked_for(tmp_path: Path) -> None:
    """Another program asked the model, in words of its own."""
    run, _ = ended(shop(), tmp_path)
    shown = playhead("debrief", run.path).stdout
    assert "whether the model was asked to state reasons is not known" in " ".join(shown.split())


ONCE_MORE: Final = "the run ended on the calls of tools; a replay asks the model once more: 1"
NOT_SAID: Final = "the run's output is not the model's last answer, which is the output of a replay: 1"
REACTIVE: Final = next(path for path in GOLDEN if path.stem == "reactive-tools")


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


def test_another_program_that_stops_on_a_result_is_not_known_to_have_answered(tmp_path: Path) -> None:
    """That the output is what a tool returned makes no final answer of it."""
    run, recording = imported(ends_on("lookup", "4,180 feet").foreign(tmp_path / "s"), tmp_path / "runs")
    assert recording.ending is not None
    assert (of_the_end(run), recording.ending.terminated_by) == ((ONCE_MORE,), "not_known")
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
    records = read_recording(REACTIVE).records
    last = max(place for place, record in enumerate(records) if isinstance(record.event, LlmRequested))
    killed = Recording(REACTIVE, records[: last + 1], ())
    run, recording = imported(exported(killed), tmp_path)
    assert (run.replayability, recording.ending) == ("tools-only", None)
    assert "the run may not be whole: spans had not ended, or do not say when: 2" in run.source.reasons
    assert recording.root.exchanges[-1].outcome is None
    assert build_debrief(recording).outcome == "unknown"
