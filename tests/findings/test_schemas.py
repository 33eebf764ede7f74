"""No schema of a tool, a server or a recording costs more than a bounded number of steps."""

from __future__ import annotations

import json
from typing import Any

import pytest

from playhead.errors import ToolServerError
from playhead.testing import call, text
from tests.findings.adapter import agent, mcp_server, observations, run

DONE = {"content": [{"type": "text", "text": "done"}]}


def bomb(word: str = "allOf", width: int = 10, levels: int = 12) -> dict[str, Any]:
    """Return a schema of a few lines that asks for `width` to the power of `levels` checks."""
    parts: dict[str, Any] = {f"d{k}": {word: [{"$ref": f"#/$defs/d{k + 1}"}] * width} for k in range(levels)}
    parts[f"d{levels}"] = {"type": "string"}
    return {"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": parts}


BOMBS = {
    "items": {
        "type": "object",
        "properties": {"a": bomb("prefixItems", 4, 15)["$defs"]["d0"]},
        **bomb("prefixItems", 4, 15),
    },
    "definitions": json.loads(json.dumps(bomb()).replace("$defs", "definitions")),
}


@pytest.mark.slow
def test_a_servers_bomb_is_never_applied():
    """A call of a tool whose schema multiplies is refused in one sentence; it runs where the value does not ask for that."""
    listed = [{"name": name, "inputSchema": schema} for name, schema in BOMBS.items()]
    with mcp_server(*listed, answers=dict.fromkeys(BOMBS, DONE)) as tools:
        told = observations(run(agent([*(call(name, a="x") for name in BOMBS), text("f")], tools)))
    for name, answer in zip(BOMBS, told, strict=True):
        assert answer == "done" if name == "items" else "it takes more than 200000 steps" in answer, name


@pytest.mark.slow
@pytest.mark.parametrize(
    ("many", "case"),
    [(1_001, {}), (600, {"pages": True})],
    ids=["1001", "pages"],
)
def test_too_many_tools_are_refused(many: int, case: dict[str, Any]):
    """1,000 tools are all that a server may list, on one page or on many."""
    with pytest.raises(ToolServerError, match="lists more than 1000 tools"), mcp_server(case={"many": many, **case}):
        raise AssertionError
