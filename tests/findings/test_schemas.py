"""No schema of a tool, a server or a recording costs more than a bounded number of steps."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from playhead.errors import ToolServerError
from playhead.kernel.outcome import Outcome
from playhead.testing import Turn, call, text
from playhead.trace.types import ToolCall, ToolSpec
from tests.findings.adapter import agent, mcp_server, observations, reproduce, run

if TYPE_CHECKING:
    from pathlib import Path


DONE = {"content": [{"type": "text", "text": "done"}]}


def bomb(word: str = "allOf", width: int = 10, levels: int = 12) -> dict[str, Any]:
    """Return a schema of a few lines that asks for `width` to the power of `levels` checks."""
    parts: dict[str, Any] = {f"d{k}": {word: [{"$ref": f"#/$defs/d{k + 1}"}] * width} for k in range(levels)}
    parts[f"d{levels}"] = {"type": "string"}
    return {"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": parts}


BOMBS = {
    "anyOf": bomb("anyOf"),
    "items": {
        "type": "object",
        "properties": {"a": bomb("prefixItems", 4, 15)["$defs"]["d0"]},
        **bomb("prefixItems", 4, 15),
    },
    "definitions": json.loads(json.dumps(bomb()).replace("$defs", "definitions")),
    "chain": bomb(width=1, levels=300),
}


def test_a_servers_bomb_is_never_applied():
    """A call of a tool whose schema multiplies is refused in one sentence; it runs where the value does not ask for that."""
    listed = [{"name": name, "inputSchema": schema} for name, schema in BOMBS.items()]
    with mcp_server(*listed, answers=dict.fromkeys(BOMBS, DONE)) as tools:
        told = observations(run(agent([*(call(name, a="x") for name in BOMBS), text("f")], tools)))
    for name, answer in zip(BOMBS, told, strict=True):
        assert answer == "done" if name == "items" else "it takes more than 200000 steps" in answer, name


class Given:
    """A tool of the user's own, with a schema of its own."""

    def __init__(self, name: str, schema: dict[str, Any]) -> None:
        self.spec = ToolSpec(name=name, parameters=schema, read_only=True)

    def check(self, arguments: Any, context: Any) -> None:
        """Take everything."""

    async def run(self, arguments: Any, context: Any) -> Outcome:
        """Return a constant."""
        return Outcome(ok=True, result="ok")


def test_a_users_bomb_is_left_to_its_tool(tmp_path: Path):
    """The tool's own check decides, and the recording, which may be somebody else's, is reproduced."""
    tools = [Given(name, schema) for name, schema in BOMBS.items()]
    result = run(agent([*(call(name, a="x") for name in BOMBS), text("f")], tools, trace=tmp_path))
    assert observations(result) == ["ok"] * len(BOMBS)
    assert reproduce(result.trace_path).identical


@pytest.mark.parametrize(
    "schema", [{"$ref": "#/nowhere"}, {"properties": {"a": {"$ref": "#/nowhere"}}}, {"properties": 5}], ids=str
)
def test_a_schema_that_is_none_is_left_to_its_tool(schema: dict[str, Any], tmp_path: Path):
    """A call runs as it was written; one whose arguments are no object is refused, and the run goes on."""
    broken = Turn(calls=(ToolCall(id="", name="t", raw_arguments="[1]"),))
    result = run(agent([call("t", a="x"), broken, text("f")], [Given("t", schema)], trace=tmp_path))
    told = observations(result)
    assert (told[0], "its schema cannot be used" in told[1]) == ("ok", True)
    assert reproduce(result.trace_path).identical


def deep(levels: int) -> Any:
    """Return objects inside each other."""
    return {"in": deep(levels - 1)} if levels else {}


TWICE = {
    "type": "object",
    "properties": {"a": {"$ref": "#/$defs/n"}},
    "$defs": {"n": {"anyOf": [{"properties": {"in": {"$ref": "#/$defs/n"}}, "required": [name]} for name in "xy"]}},
}


def test_a_schema_that_doubles_with_every_level_of_the_arguments(tmp_path: Path):
    """Arguments for which a schema takes too many steps are a failed call, which says so; the recording reproduces."""
    with mcp_server({"name": "t", "inputSchema": TWICE}) as tools:
        result = run(agent([call("t", a=deep(40)), text("f")], tools, trace=tmp_path))
    assert observations(result)[0].startswith("error: ")
    assert reproduce(result.trace_path).identical


def test_a_pattern_of_a_server_takes_no_time():
    """An expression that could backtrack for ever is applied in bounded time."""
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}
    turns = [call("t", a="a" * 5000), call("t", a="a" * 5000 + "!"), text("f")]
    with mcp_server({"name": "t", "inputSchema": schema}, answers={"t": DONE}) as tools:
        told = observations(run(agent(turns, tools)))
    assert (told[0], "pattern ^(a+)+$" in told[1]) == ("done", True)


@pytest.mark.parametrize(
    ("many", "case"),
    [(1_001, {}), (600, {"pages": True})],
    ids=["1001", "pages"],
)
def test_too_many_tools_are_refused(many: int, case: dict[str, Any]):
    """1,000 tools are all that a server may list, on one page or on many."""
    with pytest.raises(ToolServerError, match="lists more than 1000 tools"), mcp_server(case={"many": many, **case}):
        raise AssertionError
