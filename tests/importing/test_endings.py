"""How an imported run ended: as one of ours would have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from playhead.diagnose.debrief import build_debrief
from playhead.spans import SpanOptions, spans_of
from playhead.spans.encoding import encode  # noqa: F401 - what is exported is what is sent
from tests.cli.command_line import playhead
from tests.importing.traces import Trace, captured, imported, shop

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.importing import ImportedRun
    from playhead.trace.recording import Recording


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


def test_tokens_that_no_span_holds_are_not_stated(tmp_path: Path) -> None:
    """They are not known, which is not the same as 0."""
    run, recording = ended(shop(), tmp_path)
    exported = [dict(span.attributes or {}) for span in spans_of(recording.records, SpanOptions(gen_ai=True))]
    assert not [name for each in exported for name in each if "token" in name or ".usage." in name]
    assert "tokens not known" in playhead("debrief", run.path).stdout


def test_reasons_of_an_imported_run_are_not_known_to_have_been_asked_for(tmp_path: Path) -> None:
    """Another program asked the model, in words of its own."""
    run, _ = ended(shop(), tmp_path)
    shown = playhead("debrief", run.path).stdout
    assert "whether the model was asked to state reasons is not known" in " ".join(shown.split())
