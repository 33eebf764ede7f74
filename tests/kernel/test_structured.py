"""Answers of a given form: JSON that is found, repaired or sent back, and verdicts of critics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import pytest
from pydantic import BaseModel, Field

from playhead.kernel.passes import ask_for, form_prompt, fresh_thread, read_form
from playhead.kernel.state import transition
from playhead.replay import reproduce
from playhead.testing import text
from playhead.trace.types import Usage
from tests.kernel.runs import data, record

if TYPE_CHECKING:
    from pathlib import Path


CUT_OFF = "the JSON ends inside a value: it was cut off"
NO_INTEGER = "- count: Input should be a valid integer, unable to parse string as an integer"


class Part(BaseModel):
    """A part."""

    name: str = Field(description="its name")
    size: float | None = None


class Order(BaseModel):
    """An order."""

    count: int
    kind: Literal["small", "large"] = "small"
    parts: list[Part] = Field(default_factory=list)


@pytest.mark.parametrize(
    ("written", "count", "names"),
    [
        ('{"count": 1}', 1, []),
        ('Sure! Here it is:\n```json\n{"count": 2, "parts": [{"name": "a"}]}\n```\nAnything else?', 2, ["a"]),
        ("{'count': 3, 'parts': [{'name': 'it\\'s'}, {'name': \"b\"}]}", 3, ["it's", "b"]),
        ('I think {this} of [it]: {"count": 7}', 7, []),
        ('{"count": "many"} or rather {"count": 8}', 8, []),
        ('{"count": 11, "parts": [{"name": "\\ud800", "size": None}]}', 11, ["\ufffd"]),
    ],
)
def test_json_is_found_and_repaired(written: str, count: int, names: list[str]):
    """JSON within prose or a fence is read, and repaired where it has one reading."""
    read = read_form(written, Order)
    assert not isinstance(read, str), read
    assert (read.count, [part.name for part in read.parts]) == (count, names)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("no idea", "it holds no JSON"),
        ('{"count": 1, "parts": [{"name": "half a na', CUT_OFF),
        ('{"count": 1, "parts": [{"name": ', CUT_OFF),
        ('{"count": 1 kind": 2}', "the JSON is broken at 'kind'"),
        (
            '{"count": "x", "kind": "huge"}',
            f"{NO_INTEGER}\n- kind: Input should be 'small' or 'large'",
        ),
        ("[1, 2]", "- the whole: Input should be a valid dictionary or instance of Order"),
    ],
)
def test_unreadable_answers(written: str, message: str):
    """Missing or truncated values are not made up: the model is told what is wrong."""
    assert read_form(written, Order) == message


async def asking(state: Any, session: Any) -> Any:
    """Ask for an order, and end with it."""
    thread = await fresh_thread(session, form_prompt(Order))
    state, order = await ask_for(
        state, session, thread, Order, purpose="order", check=lambda order: "too many" if order.count > 9 else None
    )
    session.terminate("end_turn", None if order is None else order.count)
    return transition(state)


async def test_the_model_is_told_what_was_wrong(tmp_path: Path, register: Any):
    """Each such answer is an event and is sent back with the problem; all answers are paid for."""
    register("asking", asking)
    used = Usage(input_tokens=2, output_tokens=1)
    turns = [text(each, usage=used) for each in ('{"count": "x"}', '{"count": 10}', '{"count": 3}')]
    run = await record(tmp_path, turns, strategy="asking")
    assert (run.result.output, run.result.usage.total_tokens) == (3, 9)
    failed = [data(each) for each in run.events("structured-output-failed")]
    assert failed == [
        {"expected": "Order", "error": NO_INTEGER, "attempt": 0},
        {"expected": "Order", "error": "too many", "attempt": 1},
    ]
    told = [each.content for each in run.events("message-added") if each.role == "user"][2:]
    assert [each.splitlines()[1] for each in told] == [NO_INTEGER, "too many"]
    assert (await reproduce(tmp_path / "run.jsonl")).identical
