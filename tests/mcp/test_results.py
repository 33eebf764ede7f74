"""What a server answers becomes a result without loss, and as plain as it is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from mcp_types import CallToolResult, Tool

from playhead.mcp.choices import Choices
from playhead.mcp.tools import define_all, outcome_of

SERVER: Any = SimpleNamespace(name="srv", secrets={})
(PLAIN,) = define_all(SERVER, [Tool(name="act", input_schema={"type": "object"})], Choices())
(TYPED,) = define_all(
    SERVER, [Tool(name="act", input_schema={"type": "object"}, output_schema={"type": "object"})], Choices()
)


def result_of(answer: dict[str, Any], definition: Any = PLAIN) -> Any:
    """Return what becomes of an answer as it comes over the wire."""
    return outcome_of(CallToolResult.model_validate(answer), definition)


def texts(*each: str) -> list[dict[str, Any]]:
    """Return blocks of text."""
    return [{"type": "text", "text": text} for text in each]


SAME = {
    "one text": ({"content": texts("4180")}, "4180"),
    "structured alone": ({"content": [], "structuredContent": {"a": 1}}, {"a": 1}),
    "structured and its text": (
        {"content": texts('{"a": [1, null]}'), "structuredContent": {"a": [1, None]}},
        {"a": [1, None]},
    ),
    "a wrapped text": ({"content": texts("hi"), "structuredContent": {"result": "hi"}}, "hi"),
    "a wrapped number": ({"content": texts("3"), "structuredContent": {"result": 3}}, 3),
    "a wrapped list": ({"content": texts("a", "b"), "structuredContent": {"result": ["a", "b"]}}, ["a", "b"]),
    "nothing, structured": ({"content": [], "structuredContent": {"result": None}}, None),
}
WHOLE = {
    "several texts": {"content": texts("a", "b")},
    "a text of its own": {"content": texts("see the file"), "structuredContent": {"a": 1}},
    "true is not 1": {"content": texts("1"), "structuredContent": {"result": True}},
    "an image": {"content": [{"type": "image", "data": "AAAA", "mimeType": "image/png"}]},
    "sound beside text": {"content": [*texts("a"), {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}]},
}


@pytest.mark.parametrize(("answer", "expected"), SAME.values(), ids=SAME)
def test_what_is_plain_stays_plain(answer: dict[str, Any], expected: Any):
    """One text, structured content, and both when they say the same, are the value itself."""
    outcome = result_of(answer)
    assert (outcome.ok, outcome.result) == (True, expected)


@pytest.mark.parametrize("answer", WHOLE.values(), ids=WHOLE)
def test_what_is_not_plain_is_kept_whole(answer: dict[str, Any]):
    """Every block, and the structured content beside it."""
    expected = {("structured" if key == "structuredContent" else key): value for key, value in answer.items()}
    assert result_of(answer).result == expected


def test_a_failure_keeps_what_the_server_said():
    """`isError` is a failed call, whatever its content is; also when there is none."""
    assert result_of({"content": texts("no"), "isError": True}).error.message == "no"
    mixed = result_of({"content": texts("a", "b"), "isError": True}).error.message
    assert mixed == '{"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}'
    assert result_of({"content": [], "isError": True}).error.message == "the tool failed and did not say why"
    assert result_of({"content": texts("no"), "isError": True}, TYPED).error.type == "ToolError"
