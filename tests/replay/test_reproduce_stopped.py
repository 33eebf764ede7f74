"""A replay that was stopped is a recording like any other: it reproduces up to there, and no further."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from anyio.lowlevel import checkpoint

from playhead import Agent, tool
from playhead.errors import ReplayError
from playhead.replay import ResultOverride, replay, reproduce
from playhead.testing import ScriptedModel, call, calls, text
from tests.kernel.runs import record
from tests.options import grouped

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playhead.compose import Harness
    from playhead.replay import MissedCall, ReplayResult, Reproduction
    from playhead.trace.recording import Recording

QUIET: dict[str, Any] = {"rationale": False, "meta_tools": ()}
TAGS = [
    "prompt.system",
    "prompt.tools",
    "llm.request",
    "llm.response",
    "message.user",
    "message.assistant",
    "message.tool-result",
    "tool.call",
    "tool.result",
    "observation.tool-result",
    "answer.final",
]


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


def guarding(tag: str) -> Callable[[Harness], None]:
    """Return a block with a required hook that looks at everything of a tag."""

    def block(harness: Harness) -> None:
        harness.on(tag, lambda payload, _: None, required=True, name="guard")

    return block


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
        [calls(call("lookup", key="a"), call("child", task="t"), call("lookup", key="new"))],
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


async def test_an_answer_of_another_state(tmp_path: Path) -> None:
    """Beside a call that is answered."""
    turns = [call("write", key="a"), *looking_up("a", "b")]
    recording = (await record(tmp_path, turns, lookup, write)).recording
    result = await replay(recording, {"model": ScriptedModel(looking_up("a", "b"))}, trace=None)
    await stopped(result, "in another state of the world")


async def test_two_answers_that_may_be_meant(tmp_path: Path) -> None:
    """Agents of one name were answered differently, and the replay's has a task that neither had."""
    answers = iter("12")

    @tool(read_only=True)
    def count() -> str:
        """Count."""
        return next(answers)

    model = ScriptedModel([call("count"), text("x"), call("count"), text("x")])
    child = Agent(model, **grouped(name="child", tools=[count], **QUIET))
    turns = [call("child", task="a"), call("child", task="b"), text("done")]
    recording = (await record(tmp_path, turns, child)).recording
    changed = ScriptedModel([call("child", task="c"), call("count"), text("x"), text("done")])
    await stopped(await replay(recording, {"model": changed}, trace=None), "nothing says which answer is right")


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


@pytest.mark.parametrize("tag", TAGS)
@pytest.mark.parametrize("inside", [False, True])
async def test_something_new_that_a_required_hook_had_to_look_at(tag: str, inside: bool, tmp_path: Path) -> None:
    """Wherever the replay was stopped for it, in the root or in an agent, the reproduction goes no further."""
    turns = looking_up("a", "b")
    again = [calls(call("lookup", key="b"), call("lookup", key="a"), call("lookup", key="c")), text("other")]
    change: dict[str, Any] = {"tool_results": [ResultOverride("lookup", {"key": "c"}, result="new")]}
    if inside:
        child = Agent(ScriptedModel(turns), **grouped(name="child", tools=[lookup], compose=[guarding(tag)], **QUIET))
        parent = [calls(call("child", task="t"), call("lookup", key="a")), text("done")]
        recording = (await record(tmp_path, parent, child, lookup)).recording
        changed: dict[str, Any] = {"model": ScriptedModel(again), "system_prompt": "New."}
        change |= {"model": ScriptedModel(parent), "agents": {"child": changed}}
    else:
        recording = (await record(tmp_path, turns, lookup, compose=[guarding(tag)])).recording
        change |= {"model": ScriptedModel(again), "system_prompt": "New.", "task": "New."}
    result = await replay(recording, change, on_missing="lenient", trace=None)
    if result.run.terminated_by == "replay_stopped":
        await stopped(result, f"the required hook guard has to look at a {tag}")
    else:
        assert (await reproduce(result.recording)).identical
        assert tag in {"prompt.system", "prompt.tools", "message.user", "llm.request"} or inside


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
