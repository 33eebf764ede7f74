"""Which changes of what agents were given a replay was told to make, agent by agent; and lines of long texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from playhead import Agent, tool
from playhead.diagnose.diff import diff_recordings
from playhead.diagnose.diff_values import line_diff
from playhead.replay import replay
from playhead.testing import ScriptedModel, call, text
from tests.diagnose.recordings import made
from tests.kernel.runs import make_agent, record
from tests.options import grouped

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.diagnose.diff_types import RunDiff
    from playhead.trace.recording import Recording

SCRIPT = [call("child", task="t"), text("done")]


@tool(read_only=True)
def lookup(key: str) -> str:
    """Look a fact up."""
    return f"{key} is known"


def child(prompt: str, **options: Any) -> Agent:
    """Return a sub-agent."""
    bare: dict[str, Any] = {"tools": [lookup], "rationale": False, "meta_tools": ()}
    return Agent(
        ScriptedModel([text("c")], name="scripted/c"), **grouped(name="child", system_prompt=prompt, **bare, **options)
    )


@pytest.fixture
async def recording(tmp_path: Path) -> Recording:
    """A run with a sub-agent."""
    return (await record(tmp_path, SCRIPT, child("P", parameters={"top_p": 1}), system_prompt="R")).recording


def overridden(diff: RunDiff) -> dict[str, bool]:
    """Return which of the changes the replay was told to make."""
    return {f"{each.agent} {each.name}": each.overridden for each in diff.inputs}


async def test_overrides_of_an_agent_below_are_its_own(recording: Recording) -> None:
    """What was told for the child is marked there: its prompt, its model, and each parameter by its name."""
    changes = {
        "model": ScriptedModel([text("c")], name="scripted/d"),
        "system_prompt": "Q",
        "parameters": {"seed": 3},
        "temperature": 0.5,
    }
    overrides = {"model": ScriptedModel(SCRIPT, name="scripted/model"), "agents": {"child": changes}}
    done = await replay(recording, overrides, trace=None)
    assert overridden(done.diff) == {
        "root/child system_prompt": True,
        "root/child model": True,
        "root/child parameters.temperature": True,
        "root/child parameters.seed": True,
    }


async def test_an_override_of_the_root_is_not_what_code_changed_below(recording: Recording) -> None:
    """A root override of a prompt, of turns and of a parameter marks the root's, and nothing of the child's own code."""
    code = child("CODE", parameters={"top_p": 0}, max_iterations=3)
    agent = make_agent(None, ScriptedModel(SCRIPT), code, system_prompt="R")
    told = {"system_prompt": "new", "max_iterations": 4, "parameters": {"top_p": 0}}
    done = await replay(recording, told, agent=agent, trace=None)
    assert overridden(done.diff) == {
        "root system_prompt": True,
        "root max_iterations": True,
        "root parameters.top_p": True,
        "root/child system_prompt": False,
        "root/child max_iterations": False,
        "root/child parameters.top_p": False,
    }


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("scripted/new", {"root model": True, "root/child model": False}),
        ({"scripted/c": "scripted/new"}, {"root model": False, "root/child model": True}),
        ({"scripted/c": "x", "scripted/model": "x"}, {"root model": True, "root/child model": True}),
        ([1], {"root model": True, "root/child model": False}),
    ],
)
def test_an_override_of_the_model_holds_for_every_agent_that_was_on_it(model: Any, expected: dict[str, bool]) -> None:
    """A name stands for the root's model, and a mapping says which for which; see `replay.cast`."""
    assert (
        overridden(diff_recordings(family("scripted/model", "scripted/c"), family("x", "x", model=model))) == expected
    )
    same_model = diff_recordings(family("m", "m"), family("x", "x", model="x"))
    assert overridden(same_model) == {"root model": True, "root/child model": True}


@pytest.mark.parametrize("agents", [None, [1], {"child": None}, {"child": "x"}, {"other": {"model": "x"}}])
def test_overrides_of_an_odd_form_mark_nothing_below(agents: Any) -> None:
    """A file may hold anything there."""
    diff = diff_recordings(family("m", "c"), family("m", "x", agents=agents))
    assert overridden(diff) == {"root/child model": False}


def family(root: str, below: str, **overrides: Any) -> Recording:
    """Return a recording of a root agent and its child on these models; with overrides it is a replay."""
    from playhead.trace.events import AgentStarted, ToolCallStarted
    from playhead.trace.types import AgentHeader

    started = AgentStarted(agent=AgentHeader(name="child", model=below), task="t", parent="root", call_id="1")
    header: dict[str, Any] = {"agent": AgentHeader(name="agent", model=root)}
    if overrides:
        header |= {"replay_of": "made", "overrides": overrides}
    asked = ToolCallStarted(call_id="1", tool="child", position=0, args_hash="")
    return made(asked, ("root/child@0.0", started), header=header)


def test_a_change_after_many_lines_is_shown() -> None:
    """What is the same before and after it does not count against the lines that are compared."""
    lines = [f"line {number}" for number in range(20_000)]
    changed = [*lines[:15_000], "other", *lines[15_001:]]
    found = line_diff("\n".join(lines), "\n".join(changed))
    assert found == ("@@", " line 14999", "-line 15000", "+other", " line 15001")


def test_the_lines_of_two_unlike_texts_are_bounded_and_the_last_one_says_so() -> None:
    """A prompt of a megabyte that is another one altogether is told in some hundred lines."""
    found = line_diff("\n".join(f"a {n}" for n in range(30_000)), "\n".join(f"b {n}" for n in range(30_000)))
    assert (len(found), found[-1]) == (401, "… more lines may differ")
