"""Direct: send, run calls, repeat."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from playhead.testing import call, calls, text
from tests.kernel.runs import ended, ending
from tests.kernel.strategies.looking import lookup, purposes, run

if TYPE_CHECKING:
    from pathlib import Path

DIRECT = {"strategy": "direct", "meta_tools": None}


async def test_without_tools_it_is_one_request(tmp_path: Path):
    """The task goes to the model, its text comes back, whatever it is."""
    for said in ("42", "", "Final answer: 42", '{"name": "lookup", "arguments": {}}'):
        ran = await run(tmp_path / str(len(said)), [text(said)], **DIRECT)
        assert ending(ran) == ended("done", "end_turn", said, 1)
        (request,) = ran.model.requests
        assert [(each.role, each.content) for each in request.messages] == [
            ("system", "You solve the user's task."),
            ("user", "Do it."),
        ]
        assert request.tools == ()


async def test_calls_run_until_there_are_none(tmp_path: Path):
    """Results join the thread, all tools are offered from the first turn on, and no tool of the kernel is."""
    turns = [calls(call("lookup", key="a"), call("lookup", key="b")), call("lookup", key="c"), text("abc")]
    ran = await run(tmp_path, turns, lookup, **DIRECT)
    assert ending(ran) == ended("done", "end_turn", "abc", 3)
    assert [[tool.name for tool in request.tools] for request in ran.model.requests] == [["lookup"]] * 3
    assert [step.content for step in ran.result.steps if step.type == "observation"] == [
        "found a",
        "found b",
        "found c",
    ]
    assert purposes(ran) == ["think"] * 3


@pytest.mark.parametrize(
    ("turns", "options", "expected"),
    [
        ([text("It is", finish_reason="length")], {}, ended("done", "output_truncated", "It is", 1)),
        ([text("", finish_reason="safety")], {}, ended("done", "output_filtered", None, 1)),
        (
            [text("42")],
            {"required_tools": ["lookup"], "required_retries": 0},
            {**ended("done", "required_tools_missing", "42", 1), "terminated_source": "policy:require_tools"},
        ),
        ([call("lookup", key="a")] * 3, {"max_iterations": 2}, ended("done", "max_iterations", "found a", 2)),
    ],
    ids=["cut", "filtered", "required", "turns"],
)
async def test_what_is_no_answer_is_told(tmp_path: Path, turns, options, expected):
    """Nothing is said to the model about it; the reason code says that the output is no answer."""
    ran = await run(tmp_path, turns, lookup, **DIRECT, **options)
    assert ending(ran) == expected
    assert (ran.result.success, ran.events("nudge-issued")) == (False, [])
