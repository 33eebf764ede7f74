"""What of a trace is one agent's, and which span answers which call: by what the spans say, in whatever order they come."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.importing.test_levels import FAILED, changed
from tests.importing.traces import (
    ASKED,
    LOOKUP,
    QUESTION,
    START_NS,
    SYSTEM,
    TOLD,
    Trace,
    brought,
    called,
    calling,
    chat,
    shop,
)

if TYPE_CHECKING:
    from pathlib import Path

ASK = ("user", "How high are Zed and Quill?")


def at(first: int, last: int) -> dict[str, str]:
    """Return when a span began and ended, in milliseconds."""
    return {"startTimeUnixNano": str(START_NS + first * 10**6), "endTimeUnixNano": str(START_NS + last * 10**6)}


def ask(trace: Trace, number: int, parent: int | None, name: str, asked: str, **more: Any) -> Trace:
    """Add an agent that looks one thing up, and answers."""
    named = {"openinference.span.kind": "AGENT", "agent.name": name, "output.value": f"{asked}: found"}
    asks, prompt = calling((f"c{number}", "lookup", {"key": asked})), ("user", asked)
    told = {"role": "tool", "content": asked.upper(), "tool_call_id": f"c{number}"}
    return (
        trace.add(number, parent, name, named, **{**at(number, number + 9), **more})
        .model(number + 1, number, [prompt], asks, **LOOKUP)
        .tool(number + 2, number, "lookup", {"key": asked}, asked.upper(), attributes={"tool.id": f"c{number}"})
        .model(number + 3, number, [prompt, asks, told], ("assistant", f"{asked}: found"), **LOOKUP)
    )


def chain() -> Trace:
    """Return a trace that begins with a workflow of no kind."""
    return Trace().add(1, None, "workflow", {"openinference.span.kind": "CHAIN"}, **at(0, 90))


BESIDE: dict[str, Trace] = {
    "two roots": ask(ask(Trace(), 16, None, "ann", "a"), 32, None, "bob", "b"),
    "two roots of one name": ask(ask(Trace(), 16, None, "ann", "a"), 32, None, "ann", "b"),
    "two in a workflow": ask(ask(chain(), 16, 1, "ann", "a"), 32, 1, "ann", "b"),
    "the first failed": ask(ask(chain(), 16, 1, "ann", "a", status=FAILED), 32, 1, "bob", "b"),
    "at the same time": ask(ask(chain(), 16, 1, "ann", "a"), 17 + 16, 1, "bob", "b"),
}


@pytest.mark.parametrize("trace", BESIDE.values(), ids=BESIDE)
def test_agents_beside_one_another(trace: Trace, tmp_path: Path) -> None:
    """The answer is the last one's, only what failed has failed, and a replay, which has one agent, promises less."""
    run, recording = brought(trace, tmp_path)
    assert recording.ending is not None
    assert (recording.ending.status, recording.ending.output) == ("done", "b: found")
    assert called(recording) == [("lookup", {"key": key}, key.upper()) for key in "ab"]
    assert run.replayability == "tools-only"
    assert any("the run continues after an answer" in reason for reason in run.source.reasons)


def test_an_agent_that_is_a_span_for_each_turn_is_one_agent(tmp_path: Path) -> None:
    """A graph's node is a span whenever it is entered: its prompts go on, so it is one agent, and replayed as such."""
    node, prompt = {"openinference.span.kind": "AGENT"}, ("user", "Zed?")
    trace = (
        chain()
        .add(10, 1, "agent", node, **at(10, 12))
        .model(11, 10, [prompt], ASKED, **LOOKUP)
        .tool(13, 1, "lookup", {"key": "Zed"}, "4,180 feet")
        .add(20, 1, "agent", node, **at(20, 23))
        .model(21, 20, [prompt, ASKED, TOLD], ("assistant", "4,180."), **LOOKUP)
    )
    run, recording = brought(trace, tmp_path)
    assert (run.replayability, recording.ending and recording.ending.output) == ("full", "4,180.")


def test_an_agent_below_somebody_elses_span_is_whole(tmp_path: Path) -> None:
    """A web server's span that went to another backend is no part of the run: all of the agent is there, and it is said."""
    run, _ = brought(changed(0, parentSpanId="f" * 16), tmp_path)
    assert any(note.startswith("the outermost agent is below a parent that is missing") for note in run.source.notes)


def test_parts_without_their_content_are_not_empty_texts(tmp_path: Path) -> None:
    """Instrumentations that hide content write that there is a text, a call, a result: none of them is an empty one."""
    asked = {"role": "user", "parts": [{"type": "text"}]}
    calls = {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "lookup", "arguments": {}}]}
    told = {"role": "user", "parts": [{"type": "tool_call_response", "id": "c1", "name": "lookup"}]}
    answer = {"role": "assistant", "parts": [{"type": "text"}]}
    trace = chat(Trace(), 1, None, {"agent.name": "clerk"}, "invoke_agent")
    for number, (prompt, said) in ((2, ([asked], calls)), (4, ([asked, calls, told], answer))):
        chat(trace, number, 1, {"input.messages": prompt, "output.messages": [said]})
    chat(trace, 3, 1, {"tool.name": "lookup", "tool.call.id": "c1"}, "execute_tool")
    run, recording = brought(trace, tmp_path)
    assert called(recording) == [("lookup", {}, None)]
    assert recording.ending is not None
    assert recording.ending.output is None
    assert {
        "calls have no tool result: lookup",
        "messages of prompts are in the spans without their content: 3",
        "answers of the model are not in the spans: 1",
    } <= set(run.source.reasons)


def test_two_instrumentors_of_one_call_are_one_call(tmp_path: Path) -> None:
    """A framework's span around that of its client: the outer one counts, so that nothing is counted twice."""
    trace = shop()
    trace.model(9, 2, [SYSTEM, QUESTION], None, **{"llm.token_count.prompt": 5, "llm.cost.total": 0.5})
    run, recording = brought(trace, tmp_path)
    assert len(recording.root.exchanges) == 2
    assert any("second instrumentation" in note for note in run.source.notes)


def test_numbers_that_are_none_are_said(tmp_path: Path) -> None:
    """A count in words, below zero or broken, and a cost in a text: not known, and counted so; digits in a text are a number."""
    first = {"llm.token_count.prompt": "12", "llm.token_count.completion": "many", "llm.cost.total": "0.1"}
    second = {"llm.token_count.prompt": -12, "llm.token_count.completion": 1.5}
    trace = shop(first=LOOKUP | first, second=LOOKUP | second)
    run, recording = brought(trace, tmp_path)
    assert recording.ending is not None
    assert recording.ending.usage.input_tokens == 12
    assert (recording.ending.usage.unknown, recording.ending.cost_usd) == (2, None)
    assert "model calls whose tokens the spans do not hold: 1" in run.source.notes


# --- which span answers which call ------------------------------------------------------------------------------------


ZED, QUILL = ("lookup", {"key": "Zed"}), ("lookup", {"key": "Quill"})
RESULTS = [{"role": "tool", "content": said, "tool_call_id": f"c{n}"} for n, said in ((1, "4,180"), (2, "61"))]
DOUBT = "which span answers which call is not certain: "


def in_turn(*, ids: bool = True) -> Trace:
    """Return a run of two turns with a call each; `ids`: whether the spans of the tools have the ids of their calls."""
    first, second = calling(("c1", *ZED)), calling(("c2", *QUILL))
    given: list[dict[str, Any]] = [{"attributes": {"tool.id": each} if ids else {}} for each in ("c1", "c2")]
    return (
        Trace()
        .agent(1)
        .model(2, 1, [ASK], first, **LOOKUP)
        .tool(3, 1, *ZED, "4,180", **given[0])
        .model(4, 1, [ASK, first, RESULTS[0]], second, **LOOKUP)
        .tool(5, 1, *QUILL, "61", **given[1])
        .model(6, 1, [ASK, first, RESULTS[0], second, RESULTS[1]], ("assistant", "4,180 and 61."), **LOOKUP)
    )


def at_once(asked: Any, told: list[Any], *spans: tuple[Any, Any]) -> Trace:
    """Return a run whose first answer asks for two calls; the spans of the tool state these arguments and results."""
    trace = Trace().agent(1).model(2, 1, [ASK], asked, **LOOKUP)
    for number, (arguments, result) in enumerate(spans, 3):
        trace.tool(number, 1, "lookup", arguments, result)
    return trace.model(9, 1, [ASK, asked, *told], ("assistant", "4,180 and 61."), **LOOKUP)


def twice(*results: str) -> Trace:
    """Return a run that makes the same call twice, without ids."""
    told = [{"role": "tool", "content": each} for each in results]
    return at_once(calling((None, *ZED), (None, *ZED)), told, *((ZED[1], each) for each in results))


def other_clock() -> Trace:
    """Return a run whose tools began before the model calls that asked for them, by the clock of another machine."""
    trace = in_turn(ids=False)
    trace.spans[2]["startTimeUnixNano"], trace.spans[4]["startTimeUnixNano"] = str(START_NS - 9), str(START_NS - 5)
    return trace


SURE: dict[str, Trace] = {
    "by arguments, whatever the clock": other_clock(),
    "no content, so that it makes no difference": at_once(
        calling(("c1", *ZED), ("c2", *QUILL)), RESULTS, (None, None), (None, None)
    ),
}


@pytest.mark.parametrize("trace", SURE.values(), ids=SURE)
def test_each_call_has_its_own_result(trace: Trace, tmp_path: Path) -> None:
    """Where the spans or the prompts tell which span is whose, there is no doubt."""
    run, recording = brought(trace, tmp_path)
    assert (called(recording), run.replayability) == ([(*ZED, "4,180"), (*QUILL, "61")], "full")


def same_ids(*, with_spans: bool) -> Trace:
    """Return a run of two calls with one id."""
    trace = in_turn()
    text = json.dumps(trace.spans).replace('"c2"', '"c1"')
    trace.spans = [span for span in json.loads(text) if with_spans or span["name"] != "lookup"]
    return trace


def without_the_second_model_call() -> Trace:
    """Return a run whose second call nobody asked for."""
    trace = in_turn()
    del trace.spans[3]
    return trace


def sub_agents() -> Trace:
    """Return two sub-agents with the same task and the same answer, of which one got there otherwise."""
    both = calling((None, "helper", {"task": "Zed?"}), (None, "helper", {"task": "Zed?"}))
    trace = Trace().agent(1).model(2, 1, [ASK], both, **LOOKUP)
    for number, words in ((3, "Up."), (5, "High up.")):
        trace.tool(number, 1, "helper", {"task": "Zed?"}, "4,180")
        trace.model(number + 1, number, [("user", "Zed?")], ("assistant", words))
    return trace.model(9, 1, [ASK, both], ("assistant", "So."), **LOOKUP)


NOT_SURE: dict[str, tuple[Trace, str]] = {
    "order alone": (
        at_once(calling((None, *ZED), (None, *QUILL)), [], (None, "61"), (None, "4,180")),
        f"{DOUBT}lookup",
    ),
    "the same call twice with other results": (twice("1", "2"), f"{DOUBT}lookup"),
    "equal calls that did other things inside": (sub_agents(), f"{DOUBT}helper"),
    "one id twice": (same_ids(with_spans=True), "calls of a model have the id of another one: 1"),
    "one id twice, without spans": (same_ids(with_spans=False), "calls of a model have the id of another one: 1"),
    "a retry": (
        in_turn().tool(7, 1, *ZED, None, attributes={"tool.id": "c1"}, status=FAILED),
        "several spans answer one call, of which one is taken: lookup",
    ),
    "a call of a model that is not there": (
        without_the_second_model_call(),
        "tool spans name calls that no model call asked for: lookup",
    ),
}


@pytest.mark.parametrize(("trace", "why"), NOT_SURE.values(), ids=NOT_SURE)
def test_what_cannot_be_known_is_a_reason(trace: Trace, why: str, tmp_path: Path) -> None:
    """Which span answers which call is never guessed."""
    run, _ = brought(trace, tmp_path)
    assert (run.replayability, why in run.source.reasons) == ("tools-only", True)


def test_the_same_call_twice_with_the_same_result_is_whole(tmp_path: Path) -> None:
    """Nobody has to know which of them is which."""
    assert brought(twice("1", "1"), tmp_path)[0].replayability == "full"


def test_a_call_of_the_program_is_one(tmp_path: Path) -> None:
    """What was called before a model was asked is no model's call, and no doubt."""
    trace = in_turn().tool(0, 1, "warm_up", {}, "ok")
    trace.spans[-1]["spanId"] = "0" * 15 + "9"
    run, recording = brought(trace, tmp_path)
    assert called(recording) == [("warm_up", {}, "ok"), (*ZED, "4,180"), (*QUILL, "61")]
    assert (run.replayability, "calls that no model asked for: warm_up" in run.source.notes) == ("full", True)
