"""Which span answers which call: by what they say, whatever the order in which they stand; what cannot be known is said."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.importing.traces import START_NS, Trace, calling, imported

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.trace.recording import Recording

SCHEMA = {"type": "function", "function": {"name": "lookup", "parameters": {"type": "object", "properties": {}}}}
TOOLS = {"llm.tools.0.tool.json_schema": json.dumps(SCHEMA)}
ASK = ("user", "How high are Zed and Quill?")
AT_ONCE = {"startTimeUnixNano": str(START_NS), "endTimeUnixNano": str(START_NS)}
"""What a clock of whole milliseconds says of everything that was done within one."""
SURE = [("lookup", {"key": "Zed"}, "4,180"), ("lookup", {"key": "Quill"}, "61")]
DOUBT = "which span answers which call is not certain: lookup"


def called(recording: Recording) -> list[Any]:
    """Return every call with what came of it."""
    return [
        (call.started.tool, call.started.args, call.completed and call.completed.observation())
        for call in recording.root.calls.values()
    ]


def one_after_the_other(ids: bool, arguments: bool = True, results: bool = True) -> Trace:
    """Return a run of two turns with a call each; its spans say what they are told to."""
    first, second = calling(("c1", "lookup", {"key": "Zed"})), calling(("c2", "lookup", {"key": "Quill"}))
    told = [{"role": "tool", "content": text, "tool_call_id": f"c{n}"} for n, text in ((1, "4,180"), (2, "61"))]
    trace = Trace().agent(1).model(2, 1, [ASK], first, **TOOLS)
    for number, (_, key, result) in ((3, ("c1", "Zed", "4,180")), (5, ("c2", "Quill", "61"))):
        trace.tool(
            number,
            1,
            "lookup",
            {"key": key} if arguments else None,
            result if results else None,
            attributes={"tool.id": f"c{number // 2}"} if ids else {},
        )
        if number == 3:
            trace.model(4, 1, [ASK, first, told[0]], second, **TOOLS)
    return trace.model(6, 1, [ASK, first, told[0], second, told[1]], ("assistant", "4,180 and 61."), **TOOLS)


def test_a_tool_that_began_before_its_model_call_is_not_another_call(tmp_path: Path) -> None:
    """Clocks of two machines: the call's arguments say whose it is."""
    trace = one_after_the_other(ids=False)
    trace.spans[2]["startTimeUnixNano"], trace.spans[4]["startTimeUnixNano"] = str(START_NS - 9), str(START_NS - 5)
    run, recording = imported(trace.foreign(tmp_path), tmp_path / "runs")
    assert (called(recording), run.replayability) == (SURE, "full")


def parallel(*spans: tuple[Any, Any], ids: bool = True) -> Trace:
    """Return a run whose first answer asks for both at once; the spans say what they were given and returned."""
    both = calling(*((f"c{n}" if ids else None, "lookup", {"key": key}) for n, key in ((1, "Zed"), (2, "Quill"))))
    trace = Trace().agent(1).model(2, 1, [ASK], both, **TOOLS)
    for number, (arguments, result) in enumerate(spans, 3):
        trace.tool(number, 1, "lookup", arguments, result)
    told = [{"role": "tool", "content": text, "tool_call_id": f"c{n}"} for n, text in ((1, "4,180"), (2, "61"))]
    return trace.model(9, 1, [ASK, both, *(told if ids else [])], ("assistant", "4,180 and 61."), **TOOLS)


def test_where_order_alone_tells_it_is_said_not_to_be_certain(tmp_path: Path) -> None:
    """Two spans of one name that nothing else puts to their calls may be either way round."""
    run, _ = imported(parallel((None, "61"), (None, "4,180"), ids=False).foreign(tmp_path), tmp_path / "runs")
    assert (run.replayability, DOUBT in run.source.reasons) == ("tools-only", True)


def test_spans_without_content_are_of_their_calls_by_what_the_model_was_told(tmp_path: Path) -> None:
    """Which of them is which makes no difference, so it is no doubt."""
    run, recording = imported(parallel((None, None), (None, None)).foreign(tmp_path), tmp_path / "runs")
    assert (called(recording), run.replayability) == (SURE, "full")


def test_the_same_call_twice_with_other_results_is_a_doubt(tmp_path: Path) -> None:
    """Without ids nobody knows which of two equal calls returned what; with equal results nobody has to."""
    twice = calling((None, "lookup", {"key": "Zed"}), (None, "lookup", {"key": "Zed"}))
    for results, expected in ((("1", "2"), "tools-only"), (("1", "1"), "full")):
        trace = Trace().agent(1).model(2, 1, [ASK], twice, **TOOLS)
        for number, result in enumerate(results, 3):
            trace.tool(number, 1, "lookup", {"key": "Zed"}, result)
        told: list[Any] = [{"role": "tool", "content": each} for each in results]
        trace.model(9, 1, [ASK, twice, *told], ("assistant", "So."), **TOOLS)
        run, _ = imported(trace.foreign(tmp_path), tmp_path / "-".join(results))
        assert (run.replayability, DOUBT in run.source.reasons) == (expected, expected != "full")


def test_ids_that_come_again_are_a_doubt(tmp_path: Path) -> None:
    """Where two calls have one id, which result is whose is not known, with spans of the tools or without."""
    for with_spans in (True, False):
        trace = one_after_the_other(ids=True)
        text = json.dumps(trace.spans).replace('"c2"', '"c1"')
        trace.spans = [span for span in json.loads(text) if with_spans or span["name"] != "lookup"]
        run, _ = imported(trace.foreign(tmp_path), tmp_path / str(with_spans))
        assert run.replayability == "tools-only"
        assert "calls of a model have the id of another one: 1" in run.source.reasons


def test_a_retry_of_a_call_is_not_a_second_call(tmp_path: Path) -> None:
    """Two spans name the same call: the first counts, and that there is another is said."""
    trace = one_after_the_other(ids=True)
    trace.tool(
        7, 1, "lookup", {"key": "Zed"}, None, attributes={"tool.id": "c1"}, status={"code": 2, "message": "busy"}
    )
    run, recording = imported(trace.foreign(tmp_path), tmp_path / "runs")
    assert called(recording) == SURE
    assert run.replayability == "tools-only"
    assert "several spans answer one call, of which one is taken: lookup" in run.source.reasons


def test_a_call_of_a_model_that_is_not_there_is_said(tmp_path: Path) -> None:
    """A span with a call's id was asked for by a model, whose span is missing: the run is not whole."""
    trace = one_after_the_other(ids=True)
    del trace.spans[3]  # the model call between the two
    run, _ = imported(trace.foreign(tmp_path), tmp_path / "runs")
    assert run.replayability == "tools-only"
    assert "tool spans name calls that no model call asked for: lookup" in run.source.reasons
    assert any(each.startswith("prompts go on with something else") for each in run.source.reasons)


def test_a_call_of_the_program_is_one(tmp_path: Path) -> None:
    """What was called before a model was asked is no model's call, and no doubt."""
    trace = one_after_the_other(ids=True).tool(0, 1, "warm_up", {}, "ok")
    trace.spans[-1]["spanId"] = "0" * 15 + "9"
    run, recording = imported(trace.foreign(tmp_path), tmp_path / "runs")
    assert called(recording) == [("warm_up", {}, "ok"), *SURE]
    assert (run.replayability, "calls that no model asked for: warm_up" in run.source.notes) == ("full", True)


def test_equal_calls_that_did_other_things_inside_are_a_doubt(tmp_path: Path) -> None:
    """Two sub-agents with the same task and the same answer, of which one got there otherwise: which is which is not known."""
    twice = calling((None, "helper", {"task": "Zed?"}), (None, "helper", {"task": "Zed?"}))
    trace = Trace().agent(1).model(2, 1, [ASK], twice, **TOOLS)
    for number, words in ((3, "Up."), (5, "High up.")):
        trace.tool(number, 1, "helper", {"task": "Zed?"}, "4,180")
        trace.model(number + 1, number, [("user", "Zed?")], ("assistant", words))
    trace.model(9, 1, [ASK, twice], ("assistant", "So."), **TOOLS)
    run, _ = imported(trace.foreign(tmp_path), tmp_path / "runs")
    assert "which span answers which call is not certain: helper" in run.source.reasons
