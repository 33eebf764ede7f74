"""A replay may remove tools and describe them in other words; what the others answer stays as recorded."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest

from playhead import load_recording
from playhead.instrument.formats import read_request
from playhead.replay.wire_changes import changed
from playhead.testing import ScriptedModel, call, text
from tests.replay import small_runs
from tests.replay.small_runs import lookup, write

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.replay import Recording

TURNS = [call("lookup", key="a"), call("write", key="b"), text("done")]
CHANGES: Final[dict[str, Any]] = {"write": None, "lookup": {"description": "Find a value."}}


async def recorded(folder: Path) -> Recording:
    """Record a run of two tools."""
    return load_recording((await small_runs.recorded(folder, TURNS, lookup, write)).path)


def offered(model: ScriptedModel) -> list[list[tuple[str, str]]]:
    """Return the tools of each request, with what they are said to do."""
    return [[(spec.name, spec.description) for spec in request.tools] for request in model.requests]


async def test_the_model_is_offered_the_changed_tools(tmp_path: Path) -> None:
    """A removed tool is unknown to the model and to the kernel; one that is described otherwise answers as recorded."""
    recording, model = await recorded(tmp_path), ScriptedModel(TURNS)
    result = await recording.replay(model=model, tools=CHANGES, trace=None)
    assert offered(model) == [[("lookup", "Find a value.")]] * 3
    done = [each.completed for each in result.recording.root.calls.values()]
    assert [(each.tool, each.ok, each.rung) for each in done if each] == [
        ("lookup", True, "exact"),
        ("write", False, None),
    ]
    assert result.stopped is None
    assert result.recording.header.overrides["tools"] == {
        "write": "removed",
        "lookup": {"description": "Find a value."},
    }


async def test_a_fork_changes_them_from_its_turn_on(tmp_path: Path) -> None:
    """Before the turn the tools are as recorded; from it on, the changed ones are offered, and a removed one is refused."""
    recording, model = await recorded(tmp_path), ScriptedModel(TURNS[1:])
    result = await recording.fork(1, model=model, tools=CHANGES, trace=None)
    assert offered(model) == [[("lookup", "Find a value.")]] * 2
    tools = [recording.root.request(each.requested).tools for each in result.recording.root.exchanges[:1]]
    assert [[spec.name for spec in each] for each in tools] == [["lookup", "write"]]
    done = [each.completed for each in result.recording.root.calls.values()]
    assert [(each.tool, each.ok) for each in done if each] == [("lookup", True), ("write", False)]
    assert result.stopped is None


@pytest.mark.parametrize(
    ("fault", "told"),
    [("error", "error: the call failed"), ("timeout", "error: the call ran into its time limit"), ("empty", "")],
)
async def test_calls_fail_as_asked(fault: str, told: str, tmp_path: Path) -> None:
    """A fault answers every call that it fits, under its own rung, and leaves the verdict to the others; a fork has it, too."""
    recording, model = await recorded(tmp_path), ScriptedModel(TURNS)
    result = await recording.replay(model=model, tool_faults={"lookup": fault}, trace=None)
    done = [each.completed for each in result.recording.root.calls.values()]
    assert [(each.ok, each.rung) for each in done if each] == [(fault == "empty", "fault"), (True, "exact")]
    assert model.requests[1].messages[-1].content == told
    assert (result.stopped, dict(result.rungs), result.notes) == (None, {"fault": 1, "exact": 1}, ())
    assert result.recording.header.overrides["tool_faults"] == [{"tool": "lookup", "fault": fault}]
    forked = await recording.fork(
        1, model=ScriptedModel(TURNS[1:]), tool_faults=[{"tool": "write", "fault": fault}], trace=None
    )
    assert dict(forked.rungs) == {"exact": 1, "fault": 1}


async def test_a_fault_that_fits_no_call_is_said(tmp_path: Path) -> None:
    """Arguments and number choose the calls; a fault that fits none is a note."""
    recording = await recorded(tmp_path)
    faults = [{"tool": "lookup", "arguments": {"key": "z"}, "fault": "empty"}]
    result = await recording.replay(model=ScriptedModel(TURNS), tool_faults=faults, trace=None)
    assert (dict(result.rungs), result.notes) == (
        {"exact": 2},
        ("the override of lookup was not used: it fitted 0 calls of the replay",),
    )


def named(name: str, **more: Any) -> dict[str, Any]:
    """Return a tool of a wire format."""
    return {"name": name, "description": "old", **more}


WIRE: Final[dict[str, tuple[str, Any, Any]]] = {
    "openai-chat": (
        "/v1/chat/completions",
        [{"type": "function", "function": named("lookup")}, {"type": "function", "function": named("write")}],
        [{"type": "function", "function": named("lookup") | {"description": "new"}}],
    ),
    "openai-responses": (
        "/v1/responses",
        [named("lookup", type="function"), named("write", type="function"), {"type": "web_search"}],
        [named("lookup", type="function") | {"description": "new"}, {"type": "web_search"}],
    ),
    "anthropic": (
        "/v1/messages",
        [named("lookup", input_schema={}), named("write", input_schema={})],
        [named("lookup", input_schema={}) | {"description": "new"}],
    ),
    "genai": (
        "/v1beta/models/gemini:generateContent",
        [{"functionDeclarations": [named("lookup"), named("write")]}],
        [{"functionDeclarations": [named("lookup") | {"description": "new"}]}],
    ),
}


@pytest.mark.parametrize("name", WIRE)
def test_tools_on_the_wire(name: str) -> None:
    """In each wire format a tool is removed or described otherwise; without any left, no field of tools is sent."""
    path, before, after = WIRE[name]
    body = {
        "model": "m",
        "messages": [],
        "input": [],
        "contents": [],
        "max_tokens": 9,
        "tools": before,
        "tool_choice": "auto",
    }
    wire = read_request("POST", f"http://127.0.0.1{path}", json.dumps(body).encode())
    assert wire is not None
    assert wire.format.name == name
    told = changed(wire, tools={"lookup": {"description": "new"}, "write": None})
    assert json.loads(told.raw) == body | {"tools": after}
    none = json.loads(changed(wire, tools={"lookup": None, "write": None}).raw)
    assert ("tools" in none, "tool_choice" in none) == ((name == "openai-responses"),) * 2
