from __future__ import annotations

import json
import math
from dataclasses import FrozenInstanceError
from typing import Any, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from playhead.kernel.loop import close_state, collect_spending
from playhead.kernel.state import (
    FINAL,
    KernelState,
    PlannedCall,
    Status,
    Step,
    Thread,
    transition,
)
from playhead.trace.events import ToolCallCompleted
from playhead.trace.spending import Spent
from playhead.trace.types import Message
from playhead.trace.usage import Usage
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


def test_the_initial_state():
    """A state starts thinking, in turn 0, with nothing done, spent or said."""
    assert STATE.model_dump(mode="json") == {
        "task_id": "run",
        "owner": "root",
        "strategy": "reactive",
        "status": "thinking",
        "iteration": 0,
        "thread": {"messages": [], "ranges": []},
        "steps": [],
        "tools_used": [],
        "decision_log": [],
        "usage": Usage().model_dump(),
        "cost_usd": 0.0,
        "pending": [],
        "completed": [],
        "output": None,
        "error": None,
        "meta": {},
    }


def test_the_final_statuses():
    """Two of the five statuses are final."""
    assert sorted(FINAL) == ["done", "failed"]


@given(states)
def test_a_state_comes_back_from_json(state: KernelState):
    """Any state is the same after a trip through JSON text."""
    text = json.dumps(state.model_dump(mode="json"), allow_nan=True)
    assert KernelState.model_validate(json.loads(text)) == state


@given(st.frozensets(texts, max_size=6))
def test_sets_are_written_sorted(names: frozenset[str]):
    """Equal states are equal text, whatever order a set iterates in."""
    assert transition(STATE, tools_used=names).model_dump(mode="json")["tools_used"] == sorted(names)


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


@pytest.mark.parametrize(
    ("value", "name"),
    [(STATE, "iteration"), (STATE.thread, "messages"), (Step(type="thought", content="", iteration=0), "content")],
    ids=["state", "thread", "step"],
)
def test_a_state_cannot_be_changed(value: Any, name: str):
    """Assignment to a state or to a part of it is refused."""
    with pytest.raises((ValidationError, FrozenInstanceError)):
        setattr(value, name, 5)


def test_unknown_fields_of_a_serialised_state_are_refused():
    """A state of another version is not read as if it were one of this version."""
    with pytest.raises(ValidationError, match="mood"):
        KernelState.model_validate({**STATE.model_dump(mode="json"), "mood": "good"})


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


def test_spending_is_added_once():
    """What was spent meanwhile joins the state once; no sum depends on the order of its parts."""
    spender: Any = _Spender((3, 0.1), (1, 0.2), (2, 0.3))
    other: Any = _Spender((2, 0.3), (3, 0.1), (1, 0.2))
    state = collect_spending(STATE, spender)
    assert (state.usage, state.cost_usd) == (Usage(input_tokens=6), math.fsum([0.1, 0.2, 0.3]))
    assert collect_spending(STATE, other) == state
    assert collect_spending(state, spender) is state


def test_an_unknown_price_makes_the_cost_unknown():
    """A sum with an unknown part is not known, and stays so."""
    unknown: Any = _Spender((1, None))
    state = collect_spending(STATE, unknown)
    assert (state.usage, state.cost_usd) == (Usage(input_tokens=1), None)
    unknown.spent.add(Usage(), 0.5)
    assert collect_spending(state, unknown).cost_usd is None


def test_a_state_that_has_not_ended_is_left_alone():
    """Closing a state before the end only adds what was spent."""
    running: Any = _Spender()
    assert close_state(STATE, running) == STATE
