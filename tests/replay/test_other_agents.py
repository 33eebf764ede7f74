"""A replay with another strategy or other hooks; calls off script that a function, a model or the tool itself answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from playhead import load_recording
from playhead.compose import Harness, Stop
from playhead.compose.killswitches import tool_limit
from playhead.compose.policies import require_tools
from playhead.kernel.state import transition
from playhead.kernel.strategies import Autonomous, Reflexion
from playhead.replay import reproduce
from playhead.testing import ScriptedModel, call, error, text
from playhead.trace.events import StrategySwitched, Thought
from tests.kernel.runs import make_agent
from tests.own_strategies import register
from tests.replay import small_runs
from tests.replay.small_runs import SCRIPT, lookup

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.replay import Recording


async def recorded(folder: Path, *given: Any, **options: Any) -> Recording:
    """Record a run."""
    return load_recording((await small_runs.recorded(folder, *given, **options)).path)


def offered(model: ScriptedModel) -> list[str]:
    """Return the tools of the first request."""
    return [spec.name for spec in model.requests[0].tools]


async def test_another_strategy_takes_the_task(tmp_path: Path) -> None:
    """It runs from the start with its own kernel tools, is in the header and in the changes, and the replay reproduces."""
    recording, model = (
        await recorded(tmp_path),
        ScriptedModel([*SCRIPT[:2], call("finish", result="done")]),
    )
    result = await recording.replay(model=model, strategy=Autonomous(), trace=tmp_path)
    header = result.recording.header
    assert (header.agent.strategy, result.run.output, dict(result.rungs)) == ("autonomous", "done", {"exact": 2})
    assert (offered(model), header.agent.meta_tools) == (["lookup", "finish"], Autonomous.meta_tools)
    assert header.overrides["strategy"] == {"name": "autonomous", "settings": Autonomous().recorded()}
    assert (await reproduce(result.recording)).identical
    back = await load_recording(result.recording.path).replay(model=ScriptedModel(SCRIPT), strategy="react", trace=None)
    assert (back.run.strategy_used, back.run.output) == ("reactive", "done")
    critic = ScriptedModel([*SCRIPT, text('{"accept": true, "critique": "good"}')])
    improved = await recording.replay(model=critic, strategy=Reflexion(max_retries=1), trace=None)
    assert improved.recording.header.agent.strategy_settings == Reflexion(max_retries=1).recorded()


async def test_a_sub_agent_has_another_strategy(tmp_path: Path) -> None:
    """`agents=` takes a strategy, too."""
    below = make_agent(None, [call("lookup", key="a"), text("value of a")], lookup, name="helper")
    recording = await recorded(tmp_path, [call("helper", task="Look."), text("done")], below)
    model = ScriptedModel([call("helper", task="Look."), call("lookup", key="a"), call("finish", result="a"), text("done")])  # fmt: skip
    changes = {"helper": {"strategy": "autonomous", "model": model}}
    result = await recording.replay(model=model, agents=changes, trace=None)
    started = result.recording.owners["root/helper@0.0"].started
    assert started is not None
    assert (started.agent.strategy, result.run.output, result.stopped) == ("autonomous", "done", None)


def shout(harness: Harness) -> None:
    """Change every result."""
    harness.on("tool.result", lambda done, _: done.model_copy(update={"result": str(done.result).upper()}))


def halt(harness: Harness) -> None:
    """Stop before the third turn."""
    harness.before("think", lambda context: Stop("enough") if context.iteration == 2 else None)


async def test_a_fork_hands_over_to_another_strategy_at_its_turn(tmp_path: Path) -> None:
    """The new one is told what was found, with its own tools, and is in the result."""
    recording = await recorded(tmp_path)
    model = ScriptedModel([call("lookup", key="b"), call("finish", result="both")])
    result = await recording.fork(1, model=model, strategy="autonomous", trace=None)
    switched = [each.event for each in result.recording.records if isinstance(each.event, StrategySwitched)]
    assert [(each.from_strategy, each.to_strategy) for each in switched] == [("reactive", "autonomous")]
    assert (offered(model), result.run.output, dict(result.rungs)) == (["lookup", "finish"], "both", {"exact": 2})
    assert "lookup returned: value of a" in str(model.requests[0].messages[-1].content)
    assert (result.run.strategy_used, result.stopped, result.notes) == ("autonomous", None, ())


async def test_other_hooks_take_the_place_of_the_recorded_ones(tmp_path: Path) -> None:
    """Hooks, killswitches and policies of the override run for real; those of the recording have no effect any more."""
    recording = await recorded(tmp_path, compose=[tool_limit("lookup", 1), require_tools("lookup")])
    results = [each.completed.result for each in recording.root.calls.values() if each.completed]
    assert results == ["value of a", None]
    model = ScriptedModel(SCRIPT)
    result = await recording.replay(model=model, hooks=[shout, halt], on_missing="lenient", trace=tmp_path)
    assert model.requests[1].messages[-1].content == "VALUE OF A"
    assert (result.run.terminated_by, len(model.requests), result.notes) == ("hook_stop", 2, ())
    where = [str(each).rpartition("(")[2] for each in result.recording.header.overrides["hooks"]]
    assert where == ["tool.result)", "think)"]
    assert (await reproduce(result.recording)).identical
    limited = await recording.replay(model=ScriptedModel(SCRIPT), hooks=[tool_limit("lookup", 2)], trace=None)
    assert "tool_limit" not in limited.run.terminated_by


async def test_a_fork_has_other_hooks_from_its_turn_on(tmp_path: Path) -> None:
    """Before the turn the recorded ones had their effects; from it on the given ones run."""
    turns = [*SCRIPT[:2], call("lookup", key="c"), SCRIPT[2]]
    recording, model = await recorded(tmp_path, turns), ScriptedModel(turns[1:])
    result = await recording.fork(1, model=model, hooks=[shout], trace=None)
    assert [request.messages[-1].content for request in model.requests] == ["value of a", "VALUE OF B", "VALUE OF C"]
    assert (result.run.output, result.stopped) == ("done", None)
    limited = await recording.fork(1, model=ScriptedModel(turns[1:]), hooks=[tool_limit("lookup", 2)], trace=None)
    done = [each.completed for each in limited.recording.root.calls.values()]
    assert [each.ok for each in done if each] == [True, True, False]


@pytest.mark.parametrize(("said", "result"), [('{"of": ["c"]}', {"of": ["c"]}), ("no value", "no value")])
async def test_a_model_stands_in_for_a_tool(said: str, result: object, tmp_path: Path) -> None:
    """It reads the tool, recorded results and the call; what it says is the result, simulated, and that is noted."""
    recording, simulator = await recorded(tmp_path), ScriptedModel([text(said)])
    replayed = await recording.replay(
        model=ScriptedModel([call("lookup", key="c"), text("done")]), on_missing={"lookup": simulator}, trace=None
    )
    (done,) = [each.completed for each in replayed.recording.root.calls.values()]
    assert done is not None
    assert (done.result, done.rung) == (result, "simulated")
    asked = str(simulator.requests[0].messages[-1].content).splitlines()
    assert [asked[0], *asked[2:]] == [
        "Tool lookup: Look up.",
        '{"key":"a"} returned "value of a"',
        '{"key":"b"} returned "value of b"',
        'Call: {"key":"c"}',
    ]
    assert replayed.notes == ("scripted/model simulated 1 calls, whose tokens and cost are not counted",)


async def test_a_simulator_that_fails_stops_the_replay(tmp_path: Path) -> None:
    """Its error is in the reason."""
    recording = await recorded(tmp_path)
    failing = ScriptedModel([error("busy")])
    result = await recording.replay(model=ScriptedModel([call("lookup", key="c")]), on_missing=failing, trace=None)
    assert "scripted/model could not simulate it: busy" in str(result.stopped)


async def test_a_strategy_that_cannot_take_over_is_said(tmp_path: Path) -> None:
    """A strategy of the user's own without the kernel's loop has no place to hand over."""

    async def alone(state: Any, session: Any) -> Any:
        session.at.enter_iteration(0)
        session.emit(Thought(request=0, text="Easy."))
        return transition(state, status="done", output="done")

    register("alone", alone)
    recording = await recorded(tmp_path, [text("never")], strategy="alone")
    result = await recording.fork(0, model=ScriptedModel([]), strategy="direct", trace=None)
    assert (result.run.output, result.notes) == (
        "done",
        ("the recorded strategy has no turn from turn 0 on in which another could take over",),
    )
