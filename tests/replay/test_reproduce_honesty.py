"""`identical` is never said of a run that was not: every way in which it could be, tried."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from playhead import Agent, Context, Execution, load_recording, tool
from playhead.errors import ModelUnavailableError, ReplayError
from playhead.kernel.state import transition
from playhead.kernel.tool_port import RecordingToolPort
from playhead.replay import replay, reproduce
from playhead.testing import ScriptedModel, Turn, call, calls, text
from playhead.trace.events import UnknownEvent
from tests.kernel.runs import record as record_run
from tests.options import grouped
from tests.own_strategies import register
from tests.replay.small_runs import lookup, write

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.diagnose.recording import Recording
    from playhead.replay import MissedCall, ReplayResult, Reproduction


class Cancelled(Exception):  # noqa: N818 - a real library calls its error so
    """An exception of the user's with the kernel's word."""


@tool(read_only=True)
def fail(key: str) -> str:
    """Fail with an exception of a misleading name."""
    raise Cancelled(key)


async def record(folder: Path, turns: list[Any], *tools: Any, **options: Any) -> Recording:
    """Record a run."""
    result = await Agent(ScriptedModel(turns), **grouped(tools=tools, trace=folder, **options)).run("go")
    return load_recording(result.trace_path or "")


def verdict(outcome: Reproduction) -> tuple[bool, int, bool]:
    """Return the parts that must agree."""
    return outcome.identical, outcome.events, outcome.cut_short


async def test_an_exception_named_like_the_kernels_word_is_served(tmp_path: Path) -> None:
    """A body's own `Cancelled` is a result like any other: nothing after it goes uncompared."""
    recording = await record(tmp_path, [call("fail", key="a"), text("done")], fail)
    assert verdict(await reproduce(recording)) == (True, len(recording.records), False)


async def test_a_model_call_that_a_strategy_gave_up_is_not_passed_over(tmp_path: Path) -> None:
    """When a strategy stops waiting by itself, a replay cannot know when: it says that events are missing."""

    async def impatient(state: Any, session: Any) -> Any:
        with anyio.move_on_after(0.01):
            await session.model.complete(state.thread)
        session.terminate("end_turn", await session.facts.ask("luck", lambda: "7"))
        return state

    register("impatient", impatient)
    recording = await record(tmp_path, [Turn(text="late", delay_s=5)], strategy="impatient")
    outcome = await reproduce(recording)
    assert not outcome.identical
    assert outcome.divergences[0].what == "the replay has no fact-recorded here"


@pytest.mark.parametrize("kept", [None, -1])
async def test_changed_code_shows_on_a_whole_and_on_a_cut_file(tmp_path: Path, kept: int | None) -> None:
    """That a recording has no end excuses only what would come after it."""

    async def first(state: Any, session: Any) -> Any:
        await session.facts.ask("luck", lambda: 7)
        session.terminate("end_turn", "done")
        return transition(state, output="done")

    async def second(state: Any, session: Any) -> Any:
        await session.facts.ask("weather", lambda: "fine")
        return await first(state, session)

    register("changing", first)
    recording = await record(tmp_path, [], strategy="changing")
    recording.path.write_bytes(b"".join(recording.path.read_bytes().splitlines(keepends=True)[:kept]))
    recording = load_recording(recording.path)
    assert (await reproduce(recording)).identical
    register("changing", second)
    outcome = await reproduce(recording)
    assert [(each.owner, each.expected["name"]) for each in outcome.divergences if each.expected] == [("root", "luck")]
    assert not outcome.identical


async def test_calls_with_side_effects_have_an_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that ran them the other way round, or beside each other, would not be the one that was recorded."""
    turn = calls(call("write", key="a"), call("write", key="b"), call("write", key="c"))
    recording = await record(tmp_path, [turn, text("done")], write)
    assert (await reproduce(recording)).identical

    async def backwards(self: RecordingToolPort, planned: Any) -> Any:
        done = [await self.run(each) for each in reversed(planned)]
        return done[::-1]

    async def together(self: RecordingToolPort, planned: Any) -> Any:
        async with anyio.create_task_group() as group:
            for each in planned:
                group.start_soon(self.run, each)
        return [self.ended[each.call.id] for each in planned]

    for wrong in (backwards, together):
        monkeypatch.setattr(RecordingToolPort, "call_all", wrong)
        assert not (await reproduce(recording)).identical


async def test_what_this_version_does_not_know_is_named(tmp_path: Path) -> None:
    """Kinds and fields of a newer version cannot be compared, and the outcome says which."""
    recording = await record(tmp_path, [text("done")])
    records = list(recording.records)
    at = next(index for index, each in enumerate(records) if each.kind == "llm-responded")
    newer = type(records[at].event).model_validate({**records[at].event.model_dump(), "moderation": "fine"})
    records[at] = records[at]._replace(event=newer)
    records.insert(at, records[at]._replace(event=UnknownEvent(kind="weather-changed")))
    outcome = await reproduce(replace(recording, records=tuple(records)))
    assert outcome.not_compared == ("llm-responded.moderation", "weather-changed")


async def test_an_adapters_own_error_and_a_strange_cost_come_out_the_same(tmp_path: Path) -> None:
    """An error class that Playhead does not know keeps its name and may pass; not-a-number equals itself."""

    class OverloadedError(ModelUnavailableError):
        """A provider's own."""

    class Odd(ScriptedModel):
        async def complete(self, request: Any) -> Any:
            if request.attempt == 0:
                raise OverloadedError("try later")
            return replace(await super().complete(request), cost_usd=float("nan"))

    result = await Agent(Odd([text("done")]), execution=Execution(retry_delay_s=0.001), trace=tmp_path).run("go")
    recording = load_recording(result.trace_path or "")
    assert verdict(await reproduce(recording)) == (True, len(recording.records), False)


async def test_an_agent_that_has_lost_its_tools_is_not_given_the_recorded_ones(tmp_path: Path) -> None:
    """With `agent=` the code says which tools there are, also when it says none, at the root and below."""
    turns = [call("write", key="a"), text("done")]
    recording = await record(tmp_path, turns, write, meta_tools=())
    assert (
        await reproduce(recording, agent=Agent(ScriptedModel([]), tools=[write], context=Context(meta_tools=())))
    ).identical
    outcome = await reproduce(recording, agent=Agent(ScriptedModel([]), context=Context(meta_tools=())))
    assert not outcome.identical

    def parent(*tools: Any) -> Agent:
        child = Agent(ScriptedModel(turns), name="child", tools=tools, context=Context(meta_tools=()))
        return Agent(ScriptedModel([call("child", task="go"), text("done")]), tools=[child], trace=tmp_path)

    result = await parent(write).run("go")
    recording = load_recording(result.trace_path or "")
    assert (await reproduce(recording, agent=parent(write))).identical
    assert not (await reproduce(recording, agent=parent())).identical


# --- a replay that was stopped ----------------------------------------------------------------------------------------


QUIET: dict[str, Any] = {"rationale": False, "meta_tools": ()}


@tool(requires_approval=True)
def launch(key: str) -> str:
    """Launch."""
    return f"launched {key}"


async def stopped(result: ReplayResult, why: str) -> None:
    """Reproduce a replay that was stopped, and say that it is the same."""
    assert result.run.terminated_by == "replay_stopped"
    assert why in str(result.stopped)
    again = await reproduce(result.recording)
    assert (again.divergences, again.status, again.cut_short) == ((), "closed", True)


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
    recording = (await record_run(tmp_path, first, lookup, write, launch, child, **options)).recording
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

    recording = (await record_run(tmp_path, looking_up("a", "b"), lookup, write)).recording
    for tools in (["lookup"] * 4, ["lookup", "write", "lookup", "write"]):
        turns = [calls(*[call(name, key=key) for name, key in zip(tools, ["a", "new", "no", "b"], strict=True)])]
        result = await replay(recording, {"model": ScriptedModel(turns)}, on_missing=simulate, trace=None)
        await stopped(result, "I know nothing of no")
