"""No schema of a tool, a server or a recording costs more than a bounded number of steps."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel, Field

from playhead import tool
from playhead.errors import ToolServerError
from playhead.kernel.outcome import Outcome
from playhead.testing import Turn, call, text
from playhead.trace.types import ToolCall, ToolSpec
from tests.findings.adapter import agent, mcp_server, observations, reproduce, run

if TYPE_CHECKING:
    from pathlib import Path


DONE = {"content": [{"type": "text", "text": "done"}]}


class Left(BaseModel):
    """One of two types that hold each other."""

    inside: Left | Right | None = Field(None, alias="in")
    x: int


class Right(BaseModel):
    """The other one."""

    inside: Left | Right | None = Field(None, alias="in")
    y: int


def bomb(word: str = "allOf", width: int = 10, levels: int = 12) -> dict[str, Any]:
    """Return a schema of a few lines that asks for `width` to the power of `levels` checks."""
    parts: dict[str, Any] = {f"d{k}": {word: [{"$ref": f"#/$defs/d{k + 1}"}] * width} for k in range(levels)}
    parts[f"d{levels}"] = {"type": "string"}
    return {"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": parts}


BOMBS = {
    "allOf": bomb(),
    "anyOf": bomb("anyOf"),
    "oneOf": bomb("oneOf", 3, 20),
    "items": {
        "type": "object",
        "properties": {"a": bomb("prefixItems", 4, 15)["$defs"]["d0"]},
        **bomb("prefixItems", 4, 15),
    },
    "definitions": json.loads(json.dumps(bomb()).replace("$defs", "definitions")),
    "chain": bomb(width=1, levels=300),
}


@pytest.mark.parametrize("schema", BOMBS.values(), ids=BOMBS)
def test_a_servers_bomb_is_never_applied(schema: dict[str, Any]):
    """A call of a tool whose schema multiplies is refused in one sentence; it runs where the value does not ask for that."""
    with mcp_server({"name": "t", "inputSchema": schema}, answers={"t": DONE}) as tools:
        (told,) = observations(run(agent([call("t", a="x"), text("f")], tools)))
    assert told == "done" if schema is BOMBS["items"] else "it takes more than 200000 steps" in told


class Given:
    """A tool of the user's own, with a schema of its own."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self.spec = ToolSpec(name="t", parameters=schema, read_only=True)

    def check(self, arguments: Any, context: Any) -> None:
        """Take everything."""

    async def run(self, arguments: Any, context: Any) -> Outcome:
        """Return a constant."""
        return Outcome(ok=True, result="ok")


@pytest.mark.parametrize("schema", BOMBS.values(), ids=BOMBS)
def test_a_users_bomb_is_left_to_its_tool(schema: dict[str, Any], tmp_path: Path):
    """A call of any other tool is what its own check makes of it, and its recording, which may be somebody else's, is reproduced."""
    result = run(agent([call("t", a="x"), text("f")], [Given(schema)], trace=tmp_path))
    assert observations(result) == ["ok"]
    assert reproduce(result.trace_path).identical


@pytest.mark.parametrize(
    "schema", [{"$ref": "#/nowhere"}, {"properties": {"a": {"$ref": "#/nowhere"}}}, {"properties": 5}], ids=str
)
def test_a_schema_that_is_none_is_left_to_its_tool(schema: dict[str, Any], tmp_path: Path):
    """A call runs as it was written; one whose arguments are no object is refused, and the run goes on."""
    broken = Turn(calls=(ToolCall(id="", name="t", raw_arguments="[1]"),))
    result = run(agent([call("t", a="x"), broken, text("f")], [Given(schema)], trace=tmp_path))
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


@pytest.mark.parametrize("repairs", [True, False])
def test_a_schema_that_doubles_with_every_level_of_the_arguments(tmp_path: Path, repairs: bool):
    """Arguments for which a schema takes too many steps are a failed call, which says so; the recording reproduces."""
    with mcp_server({"name": "t", "inputSchema": TWICE}) as tools:
        result = run(agent([call("t", a=deep(60)), text("f")], tools, repair=repairs, trace=tmp_path))
    assert observations(result)[0].startswith("error: ")
    assert reproduce(result.trace_path).identical


def test_a_pattern_of_a_server_takes_no_time():
    """An expression that could backtrack for ever is applied in bounded time."""
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}
    turns = [call("t", a="a" * 5000), call("t", a="a" * 5000 + "!"), text("f")]
    with mcp_server({"name": "t", "inputSchema": schema}, answers={"t": DONE}) as tools:
        told = observations(run(agent(turns, tools)))
    assert (told[0], "pattern ^(a+)+$" in told[1]) == ("done", True)


def test_trees_are_still_arguments():
    """A schema that refers to itself is one that can be used, and its arguments are checked to their leaves."""
    tree = {
        "type": "object",
        "properties": {"in": {"$ref": "#"}, "leaf": {"type": "integer"}},
        "additionalProperties": False,
    }
    turns = [call("t", **{"in": {"in": {"leaf": 1}}}), call("t", **{"in": {"leaf": "one"}}), text("f")]
    with mcp_server({"name": "t", "inputSchema": tree}, answers={"t": DONE}) as tools:
        told = observations(run(agent(turns, tools, repair=False)))
    assert told[0] == "done"
    assert 'in.leaf: "one" is not of type "integer"' in told[1]


@pytest.mark.parametrize(
    ("many", "case"),
    [(1_001, {}), (5_000, {}), (20_000, {}), (600, {"pages": True})],
    ids=["1001", "5000", "20000", "pages"],
)
def test_too_many_tools_are_refused(many: int, case: dict[str, Any]):
    """1,000 tools are all that a server may list, on one page or on many."""
    with pytest.raises(ToolServerError, match="lists more than 1000 tools"), mcp_server(case={"many": many, **case}):
        raise AssertionError


def test_own_types_are_bounded_too():
    """A tool's own type that refers to itself twice is not tried 2^60 times on what a model nests."""
    ran = []

    @tool
    def act(a: Left | Right) -> str:
        """Act."""
        ran.append(a)
        return "done"

    told = observations(run(agent([call("act", a=deep(60)), text("f")], [act])))
    assert told[0].startswith("error: ")
    assert ran == []
