"""Direct: send, run calls, repeat."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from playhead.testing import call, text
from tests.kernel.runs import ended, ending
from tests.kernel.strategies.looking import lookup, run

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
