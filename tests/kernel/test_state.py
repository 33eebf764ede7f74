"""The state of an agent, its thread, and facts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, get_type_hints

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead.kernel.state import (
    KernelState,
    PlannedCall,
    Status,
    Step,
    Thread,
    transition,
)
from playhead.replay import reproduce
from playhead.trace.events import ToolCallCompleted
from playhead.trace.types import Message, Usage
from tests.kernel.runs import data, record
from tests.trace.strategies import json_values, models, of, texts

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.kernel.session import Session


STATE = KernelState(task_id="run", strategy="reactive")


def built(kind: type) -> st.SearchStrategy[Any]:
    """Return the strategy of a data class with every field filled in."""
    return st.builds(kind, **{name: of(hint) for name, hint in get_type_hints(kind).items()})


threads = st.lists(models(Message), max_size=4).map(lambda messages: Thread().add(*messages))
fields: dict[str, st.SearchStrategy[Any]] = {
    "status": of(Status),
    "iteration": st.integers(0, 99),
    "thread": threads,
    "steps": st.lists(built(Step), max_size=3).map(tuple),
    "tools_used": st.frozensets(texts, max_size=4),
    "decision_log": st.lists(texts, max_size=3).map(tuple),
    "usage": models(Usage),
    "cost_usd": st.none() | st.floats(0, 9),
    "pending": st.lists(built(PlannedCall), max_size=2).map(tuple),
    "completed": st.lists(models(ToolCallCompleted), max_size=2).map(tuple),
    "output": json_values,
    "error": st.none() | texts,
    "meta": st.dictionaries(texts, json_values, max_size=3),
}
states = st.fixed_dictionaries({"task_id": texts, "strategy": texts}, optional=fields).map(KernelState.model_validate)


@pytest.mark.slow
@settings(max_examples=30)
@given(states)
def test_a_state_comes_back_from_json(state: KernelState):
    """Any state round-trips through JSON."""
    text = json.dumps(state.model_dump(mode="json"), allow_nan=True)
    assert KernelState.model_validate(json.loads(text)) == state


@pytest.mark.slow
@settings(max_examples=30)
@given(states, st.fixed_dictionaries({}, optional=fields))
def test_a_transition_changes_nothing_in_place(state: KernelState, changes: dict[str, Any]):
    """A transition returns a new state with exactly the given changes."""
    before = state.model_dump(mode="json")
    after = transition(state, **changes)
    assert state.model_dump(mode="json") == before
    assert after is not state
    assert dict(after) == {**dict(state), **changes}


def test_a_transition_refuses_unknown_fields():
    """A misspelt field is an error that names it."""
    with pytest.raises(TypeError, match=r"^KernelState has no outputs, stats$"):
        transition(STATE, stats="done", outputs="42", iteration=1)


@pytest.mark.slow
@given(st.lists(st.integers(0, 12), max_size=12), st.integers(0, 12))
def test_a_thread_names_its_messages_by_ranges(ids: list[int], cut: int):
    """The ranges spell out the ids of the messages in order."""
    messages = [Message(id=number, role="user") for number in ids]
    thread = Thread().add(*messages[:cut]).add(*messages[cut:])
    spelt = [number for first, last in thread.ranges for number in range(first, last + 1)]
    assert (spelt, thread.messages) == (ids, tuple(messages))
    assert all(first[1] + 1 != second[0] for first, second in zip(thread.ranges, thread.ranges[1:], strict=False))


async def test_facts(tmp_path: Path, register: Any):
    """A fact is asked once, recorded as JSON, and served in a replay."""
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
