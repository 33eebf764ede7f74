"""A replay sends the same tools and parameters each time, and the calls as the model gave them; runs that did not say so."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from playhead import Agent, load_recording, tool
from playhead.importing.wording import same_json
from playhead.replay import replay
from playhead.testing import ScriptedModel, call, text
from tests.importing.test_round_trip import exported
from tests.importing.traces import Trace, calling, imported

if TYPE_CHECKING:
    from pathlib import Path

SYSTEM, TASK = ("system", "Use the tools."), ("user", "How high is Zed?")
TOLD = {"role": "tool", "content": "4,180 feet", "tool_call_id": "c1"}


def offering(*names: str, words: str = "A tool.", **parameters: Any) -> dict[str, Any]:
    """Return the attributes of a request that offers tools, and has parameters."""
    schema = {"type": "object", "properties": {}}
    tools = [
        {"type": "function", "function": {"name": each, "description": words, "parameters": schema}} for each in names
    ]
    said = {f"llm.tools.{place}.tool.json_schema": json.dumps(each) for place, each in enumerate(tools)}
    return said | ({"llm.invocation_parameters": json.dumps(parameters)} if parameters else {})


LOOKUP = offering("lookup")


def run_of(
    first: dict[str, Any] = LOOKUP,
    second: dict[str, Any] = LOOKUP,
    *,
    name: str = "lookup",
    gave: Any = None,
    ran: Any = None,
    then: list[Any] | None = None,
) -> Trace:
    """Return a run of one call, with what its two requests say beside their prompts."""
    asked = calling(("c1", name, {"key": "Zed"} if gave is None else gave))
    return (
        Trace()
        .agent(1, None, **{"output.value": "4,180 feet."})
        .model(2, 1, [SYSTEM, TASK], asked, **first)
        .tool(3, 1, "lookup", ran or {"key": "Zed"}, "4,180 feet")
        .model(4, 1, [SYSTEM, TASK, *([asked, TOLD] if then is None else then)], ("assistant", "4,180 feet."), **second)
    )


IN_WORDS = [("assistant", "Calling tools: lookup {'key': 'Zed'}"), ("user", "Observation: 4,180 feet")]
DIFFERENT: dict[str, tuple[Trace, str]] = {
    "another tool later": (
        run_of(second=offering("lookup", "send_mail")),
        "the model was offered other tools in some requests: send_mail",
    ),
    "a tool less later": (
        run_of(first=offering("lookup", "send_mail")),
        "the model was offered other tools in some requests: send_mail",
    ),
    "another description": (
        run_of(second=offering("lookup", words="Look up.")),
        "the model was told of tools in other words in some requests: lookup",
    ),
    "another parameter": (
        run_of(offering("lookup", temperature=0), offering("lookup", temperature=0.9)),
        "some requests had other parameters than the first: temperature",
    ),
    "parameters later": (
        run_of(second=offering("lookup", temperature=0.9)),
        "some requests had other parameters than the first: temperature",
    ),
    "another model": (
        run_of(second={**LOOKUP, "llm.model_name": "m-2"}),
        "the requests of an agent went to several models: m-1, m-2",
    ),
    "another name": (run_of(name="Look_Up"), "calls ran under other names than the model gave: Look_Up as lookup"),
    "a number for a text": (
        run_of(gave={"key": "2.5"}, ran={"key": 2.5}),
        "calls ran with other arguments than the model gave: lookup",
    ),
    "other letters": (
        run_of(gave={"Key": "Zed"}),
        "calls ran with other arguments than the model gave: lookup",
    ),
    "true for 1": (
        run_of(gave={"key": 1}, ran={"key": True}),
        "calls ran with other arguments than the model gave: lookup",
    ),
    "a malformed call": (
        run_of(gave='{"key": "Zed",'),
        "calls ran with other arguments than the model gave: lookup",
    ),
    "calls in words": (
        run_of(then=IN_WORDS),
        "prompts tell of calls or their results in words, where a replay has messages of their own: 1",
    ),
}


@pytest.mark.parametrize("name", list(DIFFERENT))
def test_what_a_replay_sends_otherwise_is_a_reason(name: str, tmp_path: Path) -> None:
    """None of these is full: a replay cannot send what the run sent, or make the call that it ran."""
    trace, why = DIFFERENT[name]
    run, _ = imported(trace.foreign(tmp_path), tmp_path / "runs")
    assert (run.replayability, why in run.source.reasons) == ("tools-only", True), run.source.reasons


@pytest.mark.parametrize(
    ("trace", "silent"),
    [
        pytest.param(run_of(), 0, id="the same"),
        pytest.param(run_of(gave={"key": 2}, ran={"key": 2.0}), 0, id="a number of the same value"),
        pytest.param(run_of(second={}), 1, id="tools on one span alone"),
        pytest.param(run_of(first=offering("lookup", temperature=0)), 1, id="parameters on the first span alone"),
    ],
)
def test_what_is_the_same_or_not_said_is_none(trace: Trace, silent: int, tmp_path: Path) -> None:
    """A request that says nothing of its tools is a note, where the others agree."""
    run, _ = imported(trace.foreign(tmp_path), tmp_path / "runs")
    note = f"requests that do not say which tools or parameters they had, where others do: {silent}"
    assert (run.replayability, run.source.reasons, note in run.source.notes) == ("full", (), bool(silent))


@tool
def pay(order: str, amount: float) -> str:
    """Pay."""
    return f"{order}: {amount}"


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(call("pay", order="7", amount="2.5"), id="repaired arguments"),
        pytest.param(call("Pay", order="7", amount=2.5), id="repaired name"),
        pytest.param(call("nosuch", key="a"), id="no such tool"),
    ],
)
async def test_our_own_runs_are_replayed_by_our_own_loop(made: Any, tmp_path: Path) -> None:
    """A call that Playhead put right, or refused, is put right or refused again in a replay of the exported run."""
    agent = Agent(ScriptedModel([made, text("done")]), tools=[pay], trace=tmp_path / "own")
    ran = await agent.run("Pay 7.")
    assert ran.trace_path is not None
    run, recording = imported(exported(load_recording(ran.trace_path), max_messages=None), tmp_path / "back")
    assert (run.replayability, run.source.reasons) == ("full", ())
    outcome = await replay(recording, {"model": ScriptedModel([made, text("done")])}, trace=None)
    assert outcome.verdict == "same"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"a": [1, {"b": None}]}, {"a": [1.0, {"b": None}]}, True),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ([1], [True], False),
        ([0], [None], False),
        ({"a": "2.5"}, {"a": 2.5}, False),
        ([1, 2], [2, 1], False),
        ([1], [1, 1], False),
        ({"a": 1}, [1], False),
    ],
    ids=str,
)
def test_json_values_are_compared_strictly(one: Any, other: Any, same: bool) -> None:
    """Numbers count by value, names in any order, and a truth value is no number."""
    assert (same_json(one, other), same_json(other, one)) == (same, same)
