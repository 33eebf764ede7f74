from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest

from playhead import register_strategy
from playhead.errors import UnknownStrategyError
from playhead.kernel.loop import run_kernel
from playhead.kernel.react import REACT
from playhead.kernel.session import Kernel
from playhead.kernel.state import KernelState, transition
from playhead.kernel.strategies.reactive import Reactive
from playhead.kernel.strategies.registry import list_strategies, strategy_class
from playhead.replay import reproduce
from playhead.testing import text
from tests.kernel.runs import data, record
from tests.own_strategies import strategy_of

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.kernel.session import Session


async def nothing(state: KernelState, session: Session) -> KernelState:
    """Do nothing."""
    return state


def test_names_and_aliases():
    """A strategy is found under its name and its short name; `replace=True` puts another one in its place."""
    assert strategy_class("reactive") is strategy_class("react") is Reactive
    mine, other = strategy_of("mine", nothing), strategy_of("reactive", nothing)
    register_strategy(mine)
    assert strategy_class("mine") is mine
    assert {"mine", "reactive", "reflexion"} < set(list_strategies())
    register_strategy(other, replace=True)
    assert strategy_class("react") is other


def test_an_unknown_strategy():
    """The error names the nearest and all there are."""
    with pytest.raises(
        UnknownStrategyError, match=r"^there is no strategy 'reactve'. Did you mean 'reactive'\? Known: "
    ):
        strategy_class("reactve")


async def test_another_kernel(tmp_path: Path, register: Any):
    """A phase can be exchanged for another one; limits, ending and recording stay the loop's."""

    async def think(state: KernelState, session: Session) -> KernelState:
        answer = await session.model.complete(state.thread, purpose="critique")
        thread = state.thread.add(await session.messages.add_reply(answer))
        return transition(state, thread=thread, iteration=state.iteration + 1, meta={"said": answer.text})

    async def mine(state: KernelState, session: Session) -> KernelState:
        return await run_kernel(Kernel("mine", {**REACT.phases, "thinking": think}), state, session)

    register("mine", mine)
    run = await record(tmp_path, [text("a"), text("b"), text("c")], strategy="mine", max_iterations=3)
    assert (run.result.terminated_by, run.result.iterations) == ("max_iterations", 3)
    assert [event.purpose for event in run.events("llm-requested")] == ["critique"] * 3
    assert [record.iteration for record in run.recording.records if record.kind == "llm-requested"] == [0, 1, 2]
    assert run.result.usage.total_tokens == (2 + 3 + 4) + 3 * 2
    assert (await reproduce(run.recording)).identical


async def test_facts(tmp_path: Path, register: Any):
    """What steers a run and is neither model nor tool is asked once, recorded as JSON, and served back in a replay."""
    asked: list[str] = []

    def now() -> float:
        asked.append("clock")
        return 12.5

    async def draw() -> set[int]:
        await anyio.lowlevel.checkpoint()
        asked.append("random")
        return {3, 1}

    async def curious(state: KernelState, session: Session) -> KernelState:
        answers = [await session.facts.ask("clock", now), await session.facts.ask("random", draw, key="dice")]
        return transition(state, output=answers)

    register("curious", curious)
    run = await record(tmp_path, [], strategy="curious")
    assert run.result.output == [12.5, {"$type": "set", "items": [1, 3]}]
    assert [data(event) for event in run.events("fact-recorded")] == [
        {"name": "clock", "value": 12.5},
        {"name": "random", "key": "dice", "value": {"$type": "set", "items": [1, 3]}},
    ]
    assert asked == ["clock", "random"]
    assert (await reproduce(run.recording)).identical
    assert asked == ["clock", "random"]


async def test_a_fact_that_cannot_be_had(tmp_path: Path, register: Any):
    """A question whose answer raises is the strategy's to deal with; nothing is recorded as an answer."""

    def gone() -> None:
        raise OSError("gone")

    async def curious(state: KernelState, session: Session) -> KernelState:
        with pytest.raises(OSError, match="gone"):
            await session.facts.ask("file", gone)
        return transition(state, output="without it")

    register("curious", curious)
    run = await record(tmp_path, [], strategy="curious")
    assert (run.result.output, run.events("fact-recorded")) == ("without it", [])
