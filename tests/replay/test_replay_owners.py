"""Agents below the root are found again by their task, and never get what was recorded for another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest

from playhead import Agent, Context, ToolContext, load_recording, tool
from playhead.replay import replay, reproduce
from playhead.testing import ScriptedModel, Turn, call, calls, text
from tests.kernel.runs import make_agent
from tests.replay.stores import root_rungs

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.diagnose.recording import Recording
    from playhead.replay import ReplayResult


def researcher(delays: dict[str, float] | None = None) -> Agent:
    """Return an agent whose one tool answers by the task of who asks."""

    @tool(read_only=True)
    async def lookup(key: str, context: ToolContext) -> str:
        """Look up, for one task otherwise than for the next."""
        state = context.session.state
        task = next(each.content for each in state.thread.messages if each.role == "user") if state else ""
        await anyio.sleep((delays or {}).get(str(task), 0))
        return f"{key} for {task}"

    return Agent(_Researching(), name="researcher", tools=[lookup], context=Context(meta_tools=(), rationale=False))


class _Researching(ScriptedModel):
    """Looks one thing up, and says what it was told."""

    def __init__(self) -> None:
        super().__init__([])

    async def complete(self, request: Any) -> Any:
        self._queue = [call("lookup", key="x") if request.number == 0 else text(str(request.messages[-1].content))]
        self._next = 0
        return await super().complete(request)


class _Leading(_Researching):
    """The root's turns for the root, and the researcher's for those below."""

    def __init__(self, turns: list[Turn]) -> None:
        super().__init__()
        self._own = turns

    async def complete(self, request: Any) -> Any:
        task = next(each.content for each in request.messages if each.role == "user")
        if task != "Do it.":
            return await super().complete(request)
        self._queue, self._next = [self._own[request.number]], 0
        return await ScriptedModel.complete(self, request)


def tasks(*names: str) -> Turn:
    """Return a turn that calls the researcher with each of these tasks."""
    return calls(*(call("researcher", task=name) for name in names))


def children(result: ReplayResult) -> list[tuple[str, str | None, Any]]:
    """Return what each researcher was told, in the order of the calls."""
    below = {owner: each for owner, each in result.recording.owners.items() if owner != "root"}
    done = {owner: next(iter(each.calls.values())).completed for owner, each in sorted(below.items()) if each.calls}
    return [
        (owner, each.rung, each.result if each.ok else each.error and each.error.type)
        for owner, each in done.items()
        if each
    ]


async def record_tasks(folder: Path, *turns: Turn) -> Recording:
    """Record a run whose researchers were slower the earlier they were asked."""
    agent = make_agent(folder, _Leading([*turns, text("done")]), researcher({"north": 0.02, "south": 0.01}))
    result = await agent.run("Do it.")
    assert result.trace_path is not None
    return load_recording(result.trace_path)


@pytest.mark.parametrize("order", [("north", "south", "east"), ("south", "east", "north"), ("east", "north", "south")])
async def test_agents_beside_each_other_get_their_own_results(order: tuple[str, ...], tmp_path: Path) -> None:
    """Same agent, same call, three tasks: in whatever order they are asked for, each has what was recorded for its task."""
    recording = await record_tasks(tmp_path, tasks("north", "south", "east"))
    result = await replay(recording, {"model": _Leading([tasks(*order), text("done")])}, trace=None)
    assert children(result) == [
        (f"root/researcher@0.{place}", "exact", f"x for {task}") for place, task in enumerate(order)
    ]
    assert result.grounded == 1.0


async def test_an_agent_is_found_again_in_another_turn(tmp_path: Path) -> None:
    """Its name says where it was called; its results follow its task, the second of equal tasks the second ones."""
    recording = await record_tasks(tmp_path, tasks("north"), tasks("south"), tasks("north"))
    turns = [tasks("south"), tasks("north", "north"), text("done")]
    result = await replay(recording, {"model": _Leading(turns)}, trace=None)
    assert children(result) == [
        ("root/researcher@0.0", "exact", "x for south"),
        ("root/researcher@1.0", "exact", "x for north"),
        ("root/researcher@1.1", "exact", "x for north"),
    ]


async def test_a_new_task_is_entered_and_never_given_a_choice(tmp_path: Path) -> None:
    """With one recorded agent of its name it gets that one's results; with two that differ, the replay stops."""
    one = await record_tasks(tmp_path, tasks("north"))
    result = await replay(one, {"model": _Leading([tasks("west"), text("done")])}, trace=None)
    assert children(result) == [("root/researcher@0.0", "reordered", "x for north")]
    two = await record_tasks(tmp_path, tasks("north", "south"))
    for policy in ("strict", "lenient", lambda _: "made up"):
        result = await replay(two, {"model": _Leading([tasks("west"), text("done")])}, on_missing=policy, trace=None)
        assert result.stopped is not None
        assert "root/researcher@0.0 (event" in result.stopped
        assert "answered differently. Give it with tool_results=" in result.stopped
        assert (result.verdict, result.grounded) == ("inconclusive", 0.0)
    overrides = {"model": _Leading([tasks("west"), text("done")]), "tool_results": {"lookup": "x for west"}}
    assert children(await replay(two, overrides, trace=None)) == [("root/researcher@0.0", "override", "x for west")]


async def test_an_agent_that_was_never_recorded_is_a_miss(tmp_path: Path) -> None:
    """There is no header to build it from: strict stops, lenient tells the model, a function may answer for it."""
    turns = [tasks("north"), text("done")]
    agent = make_agent(tmp_path, _Leading([text("done")]), researcher())
    await agent.run("Do it.", run_id="none")
    path = tmp_path / "none.jsonl"
    strict = await replay(path, {"model": _Leading(turns)}, trace=None)
    assert strict.stopped is not None
    assert "the recording holds no run of this agent there" in strict.stopped
    lenient = await replay(path, {"model": _Leading(turns)}, on_missing="lenient", trace=tmp_path)
    assert root_rungs(lenient) == [("researcher", "synthetic-error", "NoRecording")]
    made = await replay(path, {"model": _Leading(turns)}, on_missing=lambda _: "made up", trace=tmp_path)
    assert root_rungs(made) == [("researcher", "simulated", "made up")]
    for each in (lenient, made):
        assert (await reproduce(each.recording)).identical
    code = await replay(path, {"model": _Leading(turns)}, agent=agent, on_missing="lenient", trace=None)
    assert children(code) == [("root/researcher@0.0", "synthetic-error", "NoRecording")]
