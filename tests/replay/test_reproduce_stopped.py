"""A replay that was stopped is a recording like any other: it reproduces up to there, and no further."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from anyio.lowlevel import checkpoint

from playhead import Agent, tool
from playhead.errors import ReplayError
from playhead.replay import replay, reproduce
from playhead.testing import ScriptedModel, call, calls, text
from tests.kernel.runs import record
from tests.options import grouped

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.replay import MissedCall, ReplayResult, Reproduction
    from playhead.trace.recording import Recording

QUIET: dict[str, Any] = {"rationale": False, "meta_tools": ()}


@tool(read_only=True)
def lookup(key: str) -> str:
    """Look up."""
    return f"value of {key}"


@tool
def write(key: str) -> str:
    """Write."""
    return f"wrote {key}"


@tool(requires_approval=True)
def launch(key: str) -> str:
    """Launch."""
    return f"launched {key}"


async def stopped(result: ReplayResult, why: str) -> Reproduction:
    """Reproduce a replay that was stopped, and say that it is the same."""
    assert result.run.terminated_by == "replay_stopped"
    assert why in str(result.stopped)
    again = await reproduce(result.recording)
    assert (again.divergences, again.status, again.cut_short) == ((), "closed", True)
    return again


def looking_up(*keys: str) -> list[Any]:
    """Return turns that look these up at once, and end."""
    return [calls(*[call("lookup", key=key) for key in keys]), text("done")]


@pytest.mark.parametrize(
    "turns",
    [
        [call("lookup", key="new")],
        looking_up("a", "new", "b"),
        [calls(call("lookup", key="a"), call("write", key="new"), call("lookup", key="b"))],
        [call("lookup", key="a"), call("launch", key="new")],
        [calls(call("child", task="t"), call("lookup", key="a"))],
        [calls(call("child", task="new"), call("child", task="t"), call("lookup", key="a"))],
    ],
)
async def test_a_call_that_was_not_recorded(turns: list[Any], tmp_path: Path) -> None:
    """Alone, beside others, before an approval, in an agent."""
    child = Agent(
        ScriptedModel([call("lookup", key="a"), text("found")]), **grouped(name="child", tools=[lookup], **QUIET)
    )
    first = [calls(call("lookup", key="a"), call("child", task="t")), text("done")]
    options: dict[str, Any] = {"approver": lambda _: True}
    recording = (await record(tmp_path, first, lookup, write, launch, child, **options)).recording
    of_child = ScriptedModel([lambda request: text("x") if request.number else call("lookup", key="new")] * 4)
    overrides = {"model": ScriptedModel([*turns, text("x")]), "agents": {"child": {"model": of_child}}}
    # Of agents beside each other either may ask first; one that is not recorded has no nearest call.
    await stopped(await replay(recording, overrides, trace=tmp_path), "record")


async def test_a_function_that_gives_up(tmp_path: Path) -> None:
    """What simulates a call may stop the replay, while others run beside it."""

    async def simulate(missed: MissedCall) -> str:
        await checkpoint()
        if missed.arguments["key"] == "no":
            raise ReplayError("I know nothing of no")
        return "simulated"

    recording = (await record(tmp_path, looking_up("a", "b"), lookup, write)).recording
    for tools in (["lookup"] * 4, ["lookup", "write", "lookup", "write"]):
        turns = [calls(*[call(name, key=key) for name, key in zip(tools, ["a", "new", "no", "b"], strict=True)])]
        result = await replay(recording, {"model": ScriptedModel(turns)}, on_missing=simulate, trace=None)
        await stopped(result, "I know nothing of no")


async def test_what_came_before_the_stop_is_compared(tmp_path: Path) -> None:
    """Another message, another answer, a call that is missing: each shows."""
    recording = (await record(tmp_path, looking_up("a", "b"), lookup)).recording
    turns = [*looking_up("a")[:1], call("lookup", key="new")]
    result = await replay(recording, {"model": ScriptedModel(turns)}, trace=None)
    await stopped(result, "")
    for kind, change in (
        ("message-added", {"content": "Something else."}),
        ("tool-call-started", {"position": 3}),
        ("llm-requested", {"parameters": {"seed": 1}}),
    ):
        again = await reproduce(changed_at(result.recording, kind, change))
        assert not again.identical
        assert again.divergences[0].where.endswith(kind)


def changed_at(recording: Recording, kind: str, change: dict[str, Any]) -> Recording:
    """Return the recording with its last event of a kind changed."""
    place = max(number for number, each in enumerate(recording.records) if each.kind == kind)
    found = recording.records[place]
    changed = found._replace(event=found.event.model_copy(update=change))
    return replace(recording, records=(*recording.records[:place], changed, *recording.records[place + 1 :]))
