"""What servers list: names and texts are cleaned, and what cannot be offered is refused with its reason."""

from __future__ import annotations

import logging
import re
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import Tool

from playhead import Agent
from playhead.errors import ToolDefinitionError
from playhead.mcp.choices import Choices, server_name
from playhead.mcp.tools import MAX_DESCRIPTION, define_all, tool_name
from playhead.testing import ScriptedModel

SERVER: Any = SimpleNamespace(name="srv", secrets={})


def listed(name: str = "act", schema: dict[str, Any] | None = None, **fields: Any) -> Tool:
    """Return a tool as a server lists it."""
    return Tool(name=name, input_schema={"type": "object"} if schema is None else schema, **fields)


def defined(*tools: Tool, **choices: Any) -> Any:
    """Return what becomes of them."""
    return define_all(SERVER, tools, Choices(**choices))


@given(st.text(max_size=100))
def test_every_name_becomes_one_that_providers_take(name: str):
    """Whatever a server calls its tool, the offered name is valid; a valid one is kept, and long ones stay different."""
    offered = tool_name(name)
    assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]{0,63}", offered)
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]{0,63}", name):
        assert offered == name
    assert len({tool_name(name + "x" * 64 + end) for end in "12"}) == 2


@pytest.mark.parametrize(
    ("name", "offered"),
    [("files/read.all", "files_read_all"), ("2fast", "_2fast"), ("", "tool"), ("größe\x1b[2J", "gr__e__2J")],
)
def test_a_name_that_is_changed_is_said(name: str, offered: str, caplog: pytest.LogCaptureFixture):
    """The change is a warning, in which the name cannot do harm."""
    with caplog.at_level(logging.WARNING, "playhead"):
        assert defined(listed(name))[0].spec.name == offered
    assert len(caplog.messages) == 1
    assert f"is offered as {offered}" in caplog.text
    assert "\x1b" not in caplog.text


def test_names_that_would_be_the_same_are_refused():
    """Two tools of an agent never share a name; the user can choose one."""
    with pytest.raises(ToolDefinitionError, match="two tools are called"):
        Agent(ScriptedModel([]), tools=defined(listed("a.b"), listed("a/b")))
    assert [each.listed_name for each in defined(listed("a.b"), listed("a/b"), names=("a/b",))] == ["a/b"]


@pytest.mark.parametrize("what", ["names", "read_only", "requires_approval"])
def test_an_unknown_name_is_refused_with_the_nearest(what: str):
    """A misspelled name in a choice would silently protect nothing."""
    with pytest.raises(
        ToolDefinitionError, match=rf"{what}: the MCP server srv has no tool 'serch'. Did you mean 'search'"
    ):
        defined(listed("search"), **{what: ("serch",)})


def test_descriptions_lose_what_nobody_sees():
    """Control characters, direction marks and invisible tags do not reach the model; lines stay."""
    hidden = "Reads\x1b[31m a\u202e file.\u200b\nThen\U000e0041 ends."
    schema = {"type": "object", "properties": {"a": {"type": "string", "description": hidden, "const": "\u200b"}}}
    spec = defined(listed(description=hidden, schema=schema))[0].spec
    assert spec.description == "Reads[31m a file.\nThen ends."
    assert spec.parameters["properties"]["a"] == {"type": "string", "description": spec.description, "const": "\u200b"}


def test_a_long_description_is_cut_and_says_so():
    """A manual does not fill the model's window."""
    spec = defined(listed(description="x" * (MAX_DESCRIPTION + 5)))[0].spec
    assert spec.description == "x" * MAX_DESCRIPTION + "… (5 more characters)"


def _deep(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


UNUSABLE = {
    "no object": ({"type": "string"}, "arguments must be an object"),
    "no schema": ({"type": "object", "properties": 5}, '5 is not of type "object"'),
    "too deep": (_deep(80), "nested deeper"),
    "far too deep": (_deep(3000), "cannot be used"),
    "unreadable number": ({"type": "object", "maxProperties": 2**70}, "numbers"),
}


@pytest.mark.parametrize(("schema", "why"), UNUSABLE.values(), ids=UNUSABLE)
def test_a_schema_that_cannot_be_used_is_refused(schema: dict[str, Any], why: str):
    """One bad tool is named, with the way to leave it out."""
    with pytest.raises(ToolDefinitionError, match=r"Leave it out with names=") as raised:
        defined(listed("bad").model_copy(update={"input_schema": schema}))
    assert why in str(raised.value)


def test_results_that_strangers_may_have_written():
    """Are those of the tools that the user names, by the server's own names."""
    tools = listed("read"), listed("add")
    assert [each.spec.untrusted for each in defined(*tools, prefix="x_", untrusted=("read",))] == [True, False]


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["/usr/bin/python3.12", "-S", "servers/weather.py", "stdio"], "weather.py"),
        (["python", "-m", "mcp_server_time", "--local-timezone", "UTC"], "mcp_server_time"),
        (["npx", "-y", "@scope/server-files", "."], "server-files"),
    ],
)
def test_what_a_server_is_called(command: list[str], name: str):
    """An interpreter says nothing of what it runs: messages name the script, the module or the package."""
    assert server_name(command) == name
