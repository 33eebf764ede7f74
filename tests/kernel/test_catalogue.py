from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from playhead import Agent, UsageError, tool
from playhead.kernel.catalogue import MANY_TOOLS
from playhead.testing import ScriptedModel

if TYPE_CHECKING:
    from playhead.trace.types import ToolSpec


def named(name: str, description: str = "Do it.", *, read_only: bool = False) -> Any:
    """Return a tool of this name."""

    def body() -> str:
        return name

    return tool(name=name, description=description, read_only=read_only)(body)


TOOLS = [
    named("web-search", "Find pages."),
    named("read_file", "Read a FILE.", read_only=True),
    named("mail", "Send mail."),
]


def kept(keep: Any, **options: Any) -> list[str]:
    """Return the names of the tools that an agent has."""
    return list(Agent(ScriptedModel([]), tools=TOOLS, tool_filter=keep, trace=None, meta_tools=(), **options).tools)


@pytest.mark.parametrize(
    ("keep", "expected"),
    [
        (None, ["web-search", "read_file", "mail"]),
        ("", ["web-search", "read_file", "mail"]),
        ("  ", ["web-search", "read_file", "mail"]),
        ("SEARCH", ["web-search"]),
        ("file send", ["read_file", "mail"]),
        (lambda spec: spec.read_only, ["read_file"]),
        (lambda spec: "mail" not in spec.name, ["web-search", "read_file"]),
    ],
    ids=["none", "empty", "blank", "any case", "any word", "by what it says", "by its name"],
)
def test_which_tools_stay(keep: Any, expected: list[str]):
    """One of the words stands in the name or the description, or a function says yes."""
    assert kept(keep) == expected


def test_the_kernels_own_tools_stay():
    """They are chosen by name, in `meta_tools`."""
    agent = Agent(ScriptedModel([]), tools=TOOLS, tool_filter="mail", trace=None, meta_tools=("final-answer",))
    assert list(agent.tools) == ["mail", "final-answer"]


@pytest.mark.parametrize("keep", ["nothing", lambda _: False], ids=["words", "function"])
def test_a_filter_that_keeps_nothing(keep: Any):
    """An agent without the tools it was given would make its answers up; the error says which tools there are."""
    with pytest.raises(UsageError, match=r"^tool_filter.* keeps none of the 3 tools: mail, read_file, web-search$"):
        kept(keep)
    assert list(Agent(ScriptedModel([]), tool_filter=keep, trace=None, meta_tools=()).tools) == []


def test_what_is_required_has_to_stay():
    """A filter that takes a required tool away is an error."""
    with pytest.raises(UsageError, match="required_tools names 'mail', which is no tool of this agent: web-search"):
        kept("search", required_tools=["mail"])


def _raises(spec: ToolSpec) -> bool:
    raise KeyError(spec.name)


@pytest.mark.parametrize(
    ("keep", "message"),
    [
        (3, "tool_filter is text with keywords, or a function of a ToolSpec; it is 3"),
        (_raises, "tool_filter raised KeyError for the tool web-search"),
    ],
)
def test_what_is_no_filter(keep: Any, message: str):
    """It says so when the agent is made."""
    with pytest.raises(UsageError, match=message):
        kept(keep)


def test_many_tools():
    """Over thirty are said to be many, unless somebody chose."""
    many = [named(f"tool_{number}") for number in range(MANY_TOOLS + 1)]
    with pytest.warns(UserWarning, match="the agent has 31 tools, and each is sent with every request"):
        Agent(ScriptedModel([]), tools=many, trace=None)
    Agent(ScriptedModel([]), tools=many, tool_filter="tool", trace=None)
    Agent(ScriptedModel([]), tools=many[:-1], trace=None)
