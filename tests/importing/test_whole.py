"""Whether a trace is one whole run of one agent; where it is not, the report says so and promises less."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from playhead.errors import NotReplayableError
from playhead.replay import replay
from playhead.testing import ScriptedModel, call, text
from tests.importing.test_pairing import TOOLS, called
from tests.importing.traces import START_NS, Trace, calling, imported, shop

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playhead.importing import ImportedRun
    from playhead.trace.recording import Recording


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
        .model(number + 1, number, [prompt], asks, **TOOLS)
        .tool(number + 2, number, "lookup", {"key": asked}, asked.upper(), attributes={"tool.id": f"c{number}"})
        .model(number + 3, number, [prompt, asks, told], ("assistant", f"{asked}: found"), **TOOLS)
    )


def chain() -> Trace:
    """Return a trace that begins with a workflow of no kind."""
    return Trace().add(1, None, "workflow", {"openinference.span.kind": "CHAIN"}, **at(0, 90))


def brought(trace: Trace, folder: Path) -> tuple[ImportedRun, Recording]:
    """Import a trace."""
    return imported(trace.foreign(folder), folder / "runs")


BESIDE: dict[str, Callable[[], Trace]] = {
    "two roots": lambda: ask(ask(Trace(), 16, None, "ann", "a"), 32, None, "bob", "b"),
    "two roots of one name": lambda: ask(ask(Trace(), 16, None, "ann", "a"), 32, None, "ann", "b"),
    "two in a workflow": lambda: ask(ask(chain(), 16, 1, "ann", "a"), 32, 1, "ann", "b"),
    "the first failed": lambda: ask(
        ask(chain(), 16, 1, "ann", "a", status={"code": 2, "message": "busy"}), 32, 1, "bob", "b"
    ),
    "at the same time": lambda: ask(ask(chain(), 16, 1, "ann", "a"), 17 + 16, 1, "bob", "b"),
}


@pytest.mark.parametrize("name", list(BESIDE))
def test_agents_beside_one_another(name: str, tmp_path: Path) -> None:
    """The answer is the last one's, nothing fails that did not, and a replay, which has one agent, promises less."""
    run, recording = brought(BESIDE[name](), tmp_path)
    assert recording.ending is not None
    assert (recording.ending.status, recording.ending.output) == ("done", "b: found")
    assert called(recording) == [("lookup", {"key": key}, key.upper()) for key in "ab"]
    assert run.replayability == "tools-only"
    assert any("the run goes on after an answer" in reason for reason in run.source.reasons)


def test_an_agent_that_is_a_span_for_each_turn_is_one_agent(tmp_path: Path) -> None:
    """A graph's node is a span whenever it is entered: its prompts go on, so it is one agent, and replayed as such."""
    asks, prompt = calling(("c1", "lookup", {"key": "Zed"})), ("user", "Zed?")
    told = {"role": "tool", "content": "4,180", "tool_call_id": "c1"}
    node = {"openinference.span.kind": "AGENT"}
    trace = (
        chain()
        .add(10, 1, "agent", node, **at(10, 12))
        .model(11, 10, [prompt], asks, **TOOLS)
        .tool(13, 1, "lookup", {"key": "Zed"}, "4,180")
        .add(20, 1, "agent", node, **at(20, 23))
        .model(21, 20, [prompt, asks, told], ("assistant", "4,180."), **TOOLS)
    )
    run, recording = brought(trace, tmp_path)
    assert (run.replayability, recording.ending and recording.ending.output) == ("full", "4,180.")


def test_a_conversation_of_several_answers_is_not_what_a_replay_does(tmp_path: Path) -> None:
    """A replay ends at the first answer, so that nothing can be concluded from how it differs from the last."""
    said = [("user", "Zed?"), ("assistant", "4,180."), ("user", "And Quill?")]
    trace = chain().model(2, 1, said[:1], said[1]).model(4, 1, said, ("assistant", "61."))
    run, _ = brought(trace, tmp_path)
    assert run.source.reasons == ("the run goes on after an answer that calls no tool, where a replay ends: 1",)


def _change(place: int | slice, **changes: Any) -> Callable[[], Trace]:
    def change() -> Trace:
        trace = shop()
        for span in trace.spans[place] if isinstance(place, slice) else [trace.spans[place]]:
            span.update(changes)
            for name in [name for name, value in changes.items() if value is None]:
                del span[name]
        return trace

    return change


def _only(*places: int) -> Callable[[], Trace]:
    def some() -> Trace:
        trace = shop()
        trace.spans = [trace.spans[place] for place in places]
        return trace

    return some


LOST = "f" * 16
PARTS: dict[str, tuple[Callable[[], Trace], str]] = {
    "without the root": (_only(1, 2, 3), "spans are below parents that are missing: 3"),
    "a parent that is not there": (_change(3, parentSpanId=LOST), "spans are below parents that are missing: 1"),
    "a parent that is no id": (_change(3, parentSpanId="the chain"), "spans are below parents that are missing: 1"),
    "no ends": (_change(slice(None), endTimeUnixNano=None), "spans had not ended, or do not say when: 4"),
    "the agent had not ended": (_change(0, endTimeUnixNano=None), "spans had not ended, or do not say when: 1"),
    "without the first model call": (_only(0, 2, 3), "first prompt goes on after the user's message"),
    "no times at all": (
        _change(slice(1, None), endTimeUnixNano=None, startTimeUnixNano=None),
        "spans do not say when they began: 3",
    ),
    "dropped attributes": (_change(1, droppedAttributesCount=7), "SDK dropped attributes or events"),
}


@pytest.mark.parametrize("name", list(PARTS))
def test_a_part_of_a_run_is_said_to_be_one(name: str, tmp_path: Path) -> None:
    """Its parts can be read, but nothing can be concluded from a replay; without the end of its outermost span it has no end."""
    made, why = PARTS[name]
    run, recording = brought(made(), tmp_path)
    assert (run.replayability, why in "; ".join(run.source.reasons)) == ("tools-only", True), run.source
    has_end = name not in {"without the root", "no ends", "the agent had not ended"}
    assert (recording.status, recording.ending is not None) == (("closed", True) if has_end else ("open", False))


def test_two_spans_of_one_id_are_said(tmp_path: Path) -> None:
    """Only one of them can be taken in."""
    trace = shop()
    trace.spans.append({**trace.spans[2], "name": "another"})
    run, _ = brought(trace, tmp_path)
    assert run.source.reasons == ("the run may not be whole: spans have the id of another one: 1",)


def test_an_agent_below_somebody_elses_span_is_whole(tmp_path: Path) -> None:
    """A web server's span that went to another backend is no part of the run: all of the agent is there, and it is said."""
    run, recording = brought(_change(0, parentSpanId=LOST)(), tmp_path)
    assert (run.replayability, recording.status) == ("full", "closed")
    assert any(note.startswith("the outermost agent is below a parent that is missing") for note in run.source.notes)


def without_content(trace: Trace) -> Trace:
    """Return a trace whose program captured no content."""
    for span in trace.spans:
        span["attributes"] = [
            each
            for each in span["attributes"]
            if not each["key"].startswith(("input.", "output.", "llm.input_messages", "llm.output_messages"))
        ]
    return trace


async def test_a_tool_without_content_has_not_failed(tmp_path: Path) -> None:
    """Where nothing says what a tool returned nothing is made up: no failure, no empty result; the report says why not."""
    run, recording = brought(without_content(shop()), tmp_path)
    assert called(recording) == [("lookup", {}, None)]
    assert (run.replayability, run.source.reasons[0]) == ("not", "calls have no tool result: lookup")
    assert not any(record.kind == "tool-call-completed" for record in recording.records)
    with pytest.raises(NotReplayableError, match="calls have no tool result"):
        await replay(recording, {"model": ScriptedModel([call("lookup"), text("x")])}, trace=None)


def gen_ai(trace: Trace, number: int, parent: int | None, operation: str, more: dict[str, Any], **times: str) -> Trace:
    """Add a span of the GenAI conventions."""
    told = {f"gen_ai.{name}": each if isinstance(each, str) else json.dumps(each) for name, each in more.items()}
    return trace.add(number, parent, operation, {"gen_ai.operation.name": operation, **told}, **times)


def test_parts_without_their_content_are_not_empty_texts(tmp_path: Path) -> None:
    """Instrumentations that hide content write that there is a text, a call, a result: none of them is an empty one."""
    asked = {"role": "user", "parts": [{"type": "text"}]}
    calls = {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "lookup", "arguments": {}}]}
    told = {"role": "user", "parts": [{"type": "tool_call_response", "id": "c1", "name": "lookup"}]}
    answer = {"role": "assistant", "parts": [{"type": "text"}]}
    trace = gen_ai(Trace(), 1, None, "invoke_agent", {"agent.name": "clerk"}, **at(1, 90))
    for number, (prompt, said) in ((2, ([asked], calls)), (4, ([asked, calls, told], answer))):
        gen_ai(trace, number, 1, "chat", {"request.model": "m", "input.messages": prompt, "output.messages": [said]})
    gen_ai(trace, 3, 1, "execute_tool", {"tool.name": "lookup", "tool.call.id": "c1"})
    run, recording = brought(trace, tmp_path)
    assert called(recording) == [("lookup", {}, None)]
    assert recording.ending is not None
    assert recording.ending.output is None
    assert {
        "calls have no tool result: lookup",
        "messages of prompts are in the spans without their content: 3",
        "answers of the model are not in the spans: 1",
    } <= set(run.source.reasons)


def test_numbers_that_are_none_are_said(tmp_path: Path) -> None:
    """A count in words, below zero or broken, and a cost in a text: not known, and counted so; digits in a text are a number."""
    trace = shop()
    given: list[tuple[int, str, Any]] = [
        (1, "llm.token_count.prompt", "12"),
        (1, "llm.token_count.completion", "many"),
        (1, "llm.cost.total", "0.1"),
        (3, "llm.token_count.prompt", -12),
        (3, "llm.token_count.completion", 1.5),
    ]
    for place, name, value in given:
        kind = {str: "stringValue", int: "intValue", float: "doubleValue"}[type(value)]
        trace.spans[place]["attributes"].append({"key": name, "value": {kind: value}})
    run, recording = brought(trace, tmp_path)
    assert recording.ending is not None
    assert recording.ending.usage.input_tokens == 12
    assert (recording.ending.usage.unknown, recording.ending.cost_usd) == (2, None)
    assert "model calls whose tokens the spans do not hold: 1" in run.source.notes


def test_two_instrumentations_side_by_side_are_a_doubt(tmp_path: Path) -> None:
    """Whether spans of one parent that say the same are one call or two nobody knows: nothing is concluded."""
    trace = shop(attributes={"tool.id": "c1"})
    for span in [dict(each) for each in trace.spans[1:]]:
        trace.spans.append({**span, "spanId": "e" + span["spanId"][1:]})
    run, _ = brought(trace, tmp_path)
    assert run.replayability == "tools-only"
