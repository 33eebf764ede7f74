from __future__ import annotations

import json
from typing import Any, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.kernel.state import (
    KernelState,
    PlannedCall,
    Status,
    Step,
    Thread,
    transition,
)
from playhead.trace.events import ToolCallCompleted
from playhead.trace.spending import Spent
from playhead.trace.types import Message, Usage
from tests.trace.strategies import json_values, models, of, texts

STATE = KernelState(task_id="run", strategy="reactive")


def built(kind: type) -> st.SearchStrategy[Any]:
    """Return the strategy of a data class with every field filled in."""
    return st.builds(kind, **{name: of(hint) for name, hint in get_type_hints(kind).items()})


threads = st.lists(models(Message), max_size=4).map(lambda messages: Thread().add(*messages))
fields: dict[str, st.SearchStrategy[Any]] = {
    "owner": texts,
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


@given(states)
def test_a_state_comes_back_from_json(state: KernelState):
    """Any state is the same after a trip through JSON text."""
    text = json.dumps(state.model_dump(mode="json"), allow_nan=True)
    assert KernelState.model_validate(json.loads(text)) == state


@given(states, st.fixed_dictionaries({}, optional=fields))
def test_a_transition_changes_nothing_in_place(state: KernelState, changes: dict[str, Any]):
    """A transition returns a new state with exactly these changes, and leaves the old one as it was."""
    before = state.model_dump(mode="json")
    after = transition(state, **changes)
    assert state.model_dump(mode="json") == before
    assert after is not state
    assert dict(after) == {**dict(state), **changes}


def test_a_transition_refuses_unknown_fields():
    """A misspelt field is an error that names it, not a note that nobody reads."""
    with pytest.raises(TypeError, match=r"^KernelState has no outputs, stats$"):
        transition(STATE, stats="done", outputs="42", iteration=1)


@given(st.lists(st.integers(0, 12), max_size=12), st.integers(0, 12))
def test_a_thread_names_its_messages_by_ranges(ids: list[int], cut: int):
    """The ranges always spell out exactly the ids of the messages, in order, however they were added."""
    messages = [Message(id=number, role="user") for number in ids]
    thread = Thread().add(*messages[:cut]).add(*messages[cut:])
    spelt = [number for first, last in thread.ranges for number in range(first, last + 1)]
    assert (spelt, thread.messages) == (ids, tuple(messages))
    assert all(first[1] + 1 != second[0] for first, second in zip(thread.ranges, thread.ranges[1:], strict=False))


def _observed(content: str, ok: bool) -> Step:
    return Step(type="observation", content=content, iteration=0, tool="t", ok=ok)


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([], None),
        ([_observed("a", ok=True), _observed("b", ok=True)], "b"),
        ([_observed("a", ok=True), _observed("error: b", ok=False)], "a"),
        ([_observed("error: b", ok=False)], None),
        ([_observed("a", ok=True), Step(type="thought", content="c", iteration=1)], "a"),
    ],
)
def test_the_best_there_is(steps: list[Step], expected: str | None):
    """Without an answer the newest successful result is the best there is; a failure is no result."""
    assert transition(STATE, steps=tuple(steps)).last_observation == expected


class _Spender:
    """As much of a session as the bookkeeping asks for."""

    def __init__(self, *spent: tuple[int, float | None], termination: Any = None) -> None:
        self.spent = Spent()
        for tokens, usd in spent:
            self.spent.add(Usage(input_tokens=tokens), usd)
        self.termination = termination
