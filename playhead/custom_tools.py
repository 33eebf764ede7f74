"""Tools that come and go between the runs of an agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playhead.errors import UsageError, nearest
from playhead.kernel import checks
from playhead.kernel.context.settings import with_recall
from playhead.kernel.strategies import tools_of
from playhead.toolset import make_toolset

if TYPE_CHECKING:
    from playhead.compose.harness import Harness
    from playhead.kernel.approval import Approver
    from playhead.kernel.tools import Tool
    from playhead.trace.types import AgentHeader


class CustomTools:
    """The part of an agent that gives it tools, and takes them away; the kernel's own stay as `meta_tools` says."""

    header: AgentHeader
    tools: dict[str, Tool]
    approver: Approver | None
    _harness: Harness

    def add_tool(self, tool: Any) -> None:  # noqa: ANN401 - as in `tools`
        """Give the agent one more tool, for the runs that begin from now on; those that go on keep what they have.

        An agent that has this one as its tool is not changed. `tool_filter` is not asked: this one was chosen.

        Raises:
            ToolDefinitionError: it is no tool, or there is one of this name.
            UsageError: nobody could approve its calls.
        """
        self._set_tools([*self._own(), tool])

    def remove_tool(self, name: str) -> None:
        """Take a tool from the agent, for the runs that begin from now on; those that go on keep it.

        Raises:
            UsageError: there is no such tool, it is one of the kernel's, or the agent's settings name it.
        """
        own = {each.spec.name: each for each in self._own()}
        if name not in own:
            kernels = f"{name!r} is a tool of the kernel; leave it out of meta_tools" if name in self.tools else ""
            raise UsageError(kernels or f"the agent has no tool {name!r}.{nearest(str(name), own)}")
        for setting in ("required_tools", "tool_budgets"):
            if name in getattr(self.header, setting):
                raise UsageError(f"{setting} names {name!r}, so the agent cannot be without it; make another agent")
        self._set_tools([each for each in own.values() if each.spec.name != name])

    def _own(self) -> list[Tool]:
        return [each for each in self.tools.values() if each.spec.kind != "meta"]

    def _set_tools(self, own: list[Any]) -> None:
        meta = with_recall(self.header.meta_tools, self.header.compression, has_tools=bool(own))
        tools = make_toolset(own, meta, tools_of(self.header)[0], None, self.header.strategy_settings)
        self.approver = checks.checked_approver(self.approver, tools, self._harness.approves)
        self.tools, self.header = tools, self.header.model_copy(update={"meta_tools": meta})
