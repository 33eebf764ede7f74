"""What hooks made of a payload is compared whole: only ids of calls are named anew, where they stand as such."""

from __future__ import annotations

from typing import Any

import pytest

from playhead.diagnose.diff import diff_recordings
from playhead.trace.events import EmissionChanged, LlmResponded
from playhead.trace.types import ToolCall
from tests.diagnose.recordings import made

NAMES = ("usage", "cost_usd", "id", "call_id", "key", "tool_call_id")


def differs(tag: str, one: Any, other: Any, ids: tuple[str, str] = ("c1", "c1")) -> bool:
    """Return whether two runs differ in which a hook made one, and the other, of a payload."""
    first, second = (
        made(
            LlmResponded(request=0, tool_calls=(ToolCall(id=each, name="t", arguments={}),)),
            EmissionChanged(tag=tag, key="", hook="h", before=None, after=after),
        )
        for each, after in zip(ids, (one, other), strict=True)
    )
    return diff_recordings(first, second).first_divergence is not None


@pytest.mark.parametrize("tag", ["my.tag", "llm.request", "llm.response", "tool.call"])
def test_a_users_field_is_compared_whatever_its_name_is(tag: str) -> None:
    """At the top of an answer, in the schema of a tool, in a message and in arguments."""
    for name in NAMES:
        for wrap in (
            lambda value, name=name: {name: value},
            lambda value, name=name: {"tools": [{"name": "t", "parameters": {"properties": {name: {"type": value}}}}]},
            lambda value, name=name: {"messages": [{"id": 7, "role": "user", "content": {name: value}}]},
            lambda value, name=name: {"tool_calls": [{"id": "c1", "arguments": {name: value}}]},
        ):
            assert differs(tag, wrap("a"), wrap("b"))
            assert not differs(tag, wrap("a"), wrap("a"))


def test_ids_of_calls_are_no_difference_where_they_name_calls() -> None:
    """Providers make them anew; in a user's own data the same text is a value like any other."""

    def payload(call: str) -> Any:
        return {"tool_calls": [{"id": call, "name": "t"}]}

    def request(call: str) -> Any:
        return {"messages": [[0, 3], {"id": 4, "role": "tool", "tool_call_id": call, "content": "x"}, payload(call)]}

    assert not differs("llm.response", payload("c1"), payload("d1"), ("c1", "d1"))
    assert not differs("llm.request", request("c1"), request("d1"), ("c1", "d1"))
    assert differs("llm.response", payload("c1"), payload("other"), ("c1", "d1"))
    for tag in ("my.tag", "answer.final"):
        assert differs(tag, payload("c1"), payload("d1"), ("c1", "d1"))
        assert differs(tag, {"id": "c1"}, {"id": "d1"}, ("c1", "d1"))
