"""`identical` is never said of a run that was not: every way in which it could be, tried."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from playhead import Agent, Context, Execution, load_recording, tool
from playhead.errors import ModelUnavailableError
from playhead.kernel.state import transition
from playhead.kernel.tool_port import ToolDoor
from playhead.replay import reproduce
from playhead.testing import ScriptedModel, Turn, call, calls, text
from playhead.trace.events import UnknownEvent
from tests.options import grouped
from tests.own_strategies import register

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.replay import Reproduction
    from playhead.trace.recording import Recording


class Cancelled(Exception):  # noqa: N818 - a real library calls its error so
    """An exception of the user's with the kernel's word."""


@tool
def write(key: str) -> str:
    """Write."""
    return f"wrote {key}"


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

    async def backwards(self: ToolDoor, planned: Any) -> Any:
        done = [await self.run(each) for each in reversed(planned)]
        return done[::-1]

    async def together(self: ToolDoor, planned: Any) -> Any:
        async with anyio.create_task_group() as group:
            for each in planned:
                group.start_soon(self.run, each)
        return [self.ended[each.call.id] for each in planned]

    for wrong in (backwards, together):
        monkeypatch.setattr(ToolDoor, "call_all", wrong)
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
