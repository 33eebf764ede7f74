"""What differs between the requests of a run, or between a call and how it ran, is a reason: a replay does neither."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.importing.traces import Trace, calling, imported, offering

if TYPE_CHECKING:
    from pathlib import Path

SYSTEM, TASK = ("system", "Use the tools."), ("user", "How high is Zed?")
TOLD = {"role": "tool", "content": "4,180 feet", "tool_call_id": "c1"}
LOOKUP = offering("lookup")


def run_of(
    first: dict[str, Any] = LOOKUP,
    second: dict[str, Any] = LOOKUP,
    *,
    name: str = "lookup",
    gave: Any = None,
    ran: Any = None,
) -> Trace:
    """Return a run of one call, with what its two requests say beside their prompts."""
    asked = calling(("c1", name, {"key": "Zed"} if gave is None else gave))
    return (
        Trace()
        .agent(1, None, **{"output.value": "4,180 feet."})
        .model(2, 1, [SYSTEM, TASK], asked, **first)
        .tool(3, 1, "lookup", ran or {"key": "Zed"}, "4,180 feet")
        .model(4, 1, [SYSTEM, TASK, asked, TOLD], ("assistant", "4,180 feet."), **second)
    )


OTHER_TOOLS = "requests of an agent have other tools than its first: 1"
OTHER_PARAMETERS = "requests of an agent have other parameters than its first: 1"
OTHER_ARGUMENTS = "calls ran with other arguments than the model gave: lookup"
DIFFERENT: dict[str, tuple[Trace, str]] = {
    "another tool later": (run_of(second=offering("lookup", "send_mail")), OTHER_TOOLS),
    "a tool less later": (run_of(first=offering("lookup", "send_mail")), OTHER_TOOLS),
    "another description": (run_of(second=offering("lookup", words="Look up.")), OTHER_TOOLS),
    "tools on one span alone": (run_of(second={}), OTHER_TOOLS),
    "another parameter": (
        run_of(offering("lookup", temperature=0), offering("lookup", temperature=0.9)),
        OTHER_PARAMETERS,
    ),
    "parameters later": (run_of(second=offering("lookup", temperature=0.9)), OTHER_PARAMETERS),
    "another model": (
        run_of(second={**LOOKUP, "llm.model_name": "m-2"}),
        "requests of an agent have other models than its first: 1",
    ),
    "another name": (run_of(name="Look_Up"), "calls of tools that no request offered: Look_Up"),
    "a number for a text": (run_of(gave={"key": "2.5"}, ran={"key": 2.5}), OTHER_ARGUMENTS),
    "other letters": (run_of(gave={"Key": "Zed"}), OTHER_ARGUMENTS),
    "true for 1": (run_of(gave={"key": 1}, ran={"key": True}), OTHER_ARGUMENTS),
    "arguments that the program added": (run_of(ran={"key": "Zed", "state": 1}), OTHER_ARGUMENTS),
    "a malformed call": (run_of(gave='{"key": "Zed",'), OTHER_ARGUMENTS),
}


@pytest.mark.parametrize("name", list(DIFFERENT))
def test_what_a_replay_sends_otherwise_is_a_reason(name: str, tmp_path: Path) -> None:
    """None of these is full: a replay cannot send what the run sent, or make the call that it ran."""
    trace, why = DIFFERENT[name]
    run, _ = imported(trace.foreign(tmp_path), tmp_path / "runs")
    assert (run.replayability, why in run.source.reasons) == ("tools-only", True), run.source.reasons


def test_what_is_the_same_is_none(tmp_path: Path) -> None:
    """Requests that say the same, and a call that ran as it was asked for."""
    run, _ = imported(run_of().foreign(tmp_path), tmp_path / "runs")
    assert (run.replayability, run.source.reasons) == ("full", ())
