"""How an imported run ended: as one of Playhead's own would have; where it did not, the report says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from playhead.diagnose.debrief import build_debrief
from playhead.diagnose.recording import Recording, read_recording
from playhead.trace.events import LlmRequested
from tests.cli.command_line import playhead
from tests.importing.test_levels import FAILED, only
from tests.importing.test_round_trip import GOLDEN, exported
from tests.importing.traces import Trace, brought, imported, shop

if TYPE_CHECKING:
    from pathlib import Path

REACTIVE: Final = next(path for path in GOLDEN if path.stem == "reactive-tools")
RAW: Final = '{"choices": [{"finish_reason": "length", "message": {"role": "assistant", "content": "4,1"}}]}'


def answering(said: str | None = "4,1", output: str | None = "4,1", **attributes: Any) -> Trace:
    """Return a run of one model call: what it said, what the agent's span states as the output, and the call's attributes."""
    given = {} if output is None else {"output.value": output, "output.mime_type": "application/json"}
    answer = None if said is None else ("assistant", said)
    return Trace().agent(1, None, **given).model(2, 1, [("user", "Zed?")], answer, **attributes)


def failing() -> Trace:
    """Return a run whose model call failed."""
    trace = answering(None, None)
    trace.spans[1]["status"] = FAILED
    return trace


ENDINGS: dict[str, tuple[Trace, tuple[str, str, str]]] = {
    "whole": (answering(**{"llm.finish_reason": "stop"}), ("done", "end_turn", "success")),
    "length": (answering(**{"llm.finish_reason": "length"}), ("done", "output_truncated", "partial")),
    "filtered": (answering(**{"llm.finish_reason": "content_filter"}), ("done", "output_filtered", "partial")),
    "the provider's answer": (
        answering(**{"output.value": RAW, "output.mime_type": "application/json"}),
        ("done", "output_truncated", "partial"),
    ),
    "the model failed": (failing(), ("failed", "llm_error", "failed")),
    "neither an answer nor an error": (answering(None, None), ("done", "not_known", "unknown")),
    "on a tool's result": (only(0, 1, 2), ("done", "not_known", "unknown")),
}


@pytest.mark.parametrize(("trace", "expected"), ENDINGS.values(), ids=ENDINGS)
def test_ends_as_a_run_of_ours_would(trace: Trace, expected: tuple[str, str, str], tmp_path: Path) -> None:
    """Status, reason and outcome: what was cut off is no success, and what nobody knows is neither success nor failure."""
    run, recording = brought(trace, tmp_path)
    assert recording.ending is not None
    outcome = build_debrief(recording).outcome
    assert (recording.ending.status, recording.ending.terminated_by, outcome) == expected
    assert ("failed" in playhead("list", "--trace-dir", run.path.parent).stdout) == (outcome == "failed")


def test_reasons_of_an_imported_run_are_not_known_to_have_been_asked_for(tmp_path: Path) -> None:
    """Another program asked the model, in words of its own."""
    shown = playhead("debrief", brought(shop(), tmp_path)[0].path).stdout
    assert "whether the model was asked to state reasons is not known" in " ".join(shown.split())


NOT_SAID: Final = "the run's output is not the model's last answer, which is the output of a replay: 1"
OUTPUTS: dict[str, tuple[Trace, tuple[str, ...]]] = {
    "the answer": (answering(), ()),
    "blanks around": (answering("4,1\n", " 4,1"), ()),
    "the same JSON": (answering('{"feet": 4}', '{ "feet":4 }'), ()),
    "none stated": (answering("4,1", None), ()),
    "without the thinking": (answering("<thinking>Hm.</thinking>4,1", "4,1"), (NOT_SAID,)),
    "with other words": (answering("4,1", "Answer: 4,1"), (NOT_SAID,)),
    "on a tool's result": (
        only(0, 1, 2),
        ("the run ended with calls of tools; a replay asks the model once more: 1",),
    ),
}


@pytest.mark.parametrize(("trace", "expected"), OUTPUTS.values(), ids=OUTPUTS)
def test_an_output_that_the_model_did_not_say_is_a_reason(
    trace: Trace, expected: tuple[str, ...], tmp_path: Path
) -> None:
    """A replay gives what the model says; blanks and the spacing of JSON make no difference."""
    run, _ = brought(trace, tmp_path)
    reasons = tuple(each for each in run.source.reasons if each.startswith(("the run ended", "the run's output")))
    assert (reasons, not reasons or run.replayability == "tools-only") == (expected, True)


def test_a_killed_run_has_no_end(tmp_path: Path) -> None:
    """Its spans end where its recording breaks off, which is not how it ended: nobody says that the model failed."""
    records = read_recording(REACTIVE).records
    last = max(place for place, record in enumerate(records) if isinstance(record.event, LlmRequested))
    killed = Recording(REACTIVE, records[: last + 1], ())
    run, recording = imported(exported(killed), tmp_path)
    assert (run.replayability, recording.ending) == ("tools-only", None)
    assert "the run may be incomplete: spans have no end time: 2" in run.source.reasons
    assert recording.root.exchanges[-1].outcome is None
    assert build_debrief(recording).outcome == "unknown"
