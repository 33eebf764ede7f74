"""Resolve the models and tools that are passed to an agent."""

from __future__ import annotations

import logging
import warnings
from typing import TYPE_CHECKING, Any, Final

from playhead.errors import ToolDefinitionError, UsageError
from playhead.kernel.agent_tool import AgentTool
from playhead.kernel.meta_tools import MetaTool, make_meta_tools
from playhead.kernel.models import resolve_model
from playhead.kernel.models.base import Model
from playhead.kernel.session import Tool
from playhead.kernel.tool_decorator import tool
from playhead.trace.values import scrub

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from playhead.kernel.approval import Approver


log = logging.getLogger("playhead")

MANY_TOOLS: Final = 30
"""The number of tools above which an agent logs a warning."""


def address_of(model: Model) -> str | None:
    """Return the address of a model's provider, if its adapter has one."""
    address = getattr(model, "address", None)
    return scrub(address) if isinstance(address, str) else None


def make_model(model: str | Model) -> Model:
    """Return a model from a model object or a name.

    Raises:
        UsageError: the argument is neither.
    """
    if isinstance(model, str):
        return resolve_model(model)
    if not isinstance(model, Model):
        raise UsageError(f"{model!r} is not a model: give 'provider/model', or an object with the methods of a Model")
    return model


def make_fallback(fallback: str | Model, primary: Model) -> Model:
    """Return a fallback model. A name of the primary's provider gets the primary's address and key.

    Raises:
        UsageError: the argument is neither a model nor a model name.
    """
    if not isinstance(fallback, str):
        return make_model(fallback)
    provider = primary.name.partition("/")[0]
    beside = getattr(primary, "beside", None)  # the same provider, address and key
    if fallback.startswith(f"{provider}/") and callable(beside):
        return beside(fallback)  # type: ignore[no-any-return]
    made = make_model(fallback)
    if address_of(primary) is not None and address_of(made) is None:
        log.warning(
            "the fallback %s is asked at its provider's usual address, not at %s like %s: prompts leave that server",
            fallback,
            address_of(primary),
            primary.name,
        )
    return made


def make_toolset(
    tools: Sequence[Any],
    meta_tools: tuple[str, ...],
    of_strategy: Mapping[str, Tool],
) -> dict[str, Tool]:
    """Return an agent's tools by name: its own, then the built-in ones.

    Raises:
        ToolDefinitionError: something is not a tool, or two tools have the same name.
    """
    own = make_meta_tools(meta_tools)
    found: dict[str, Tool] = {}
    for name in own:
        if _folded(name) in map(_folded, of_strategy):
            raise ToolDefinitionError(f"{name!r} is a tool of the strategy; leave it out of meta_tools")
    for made in map(_as_tool, tools):
        name = made.spec.name
        if _folded(name) in map(_folded, (*own, *of_strategy)):
            raise ToolDefinitionError(f"{name!r} is a tool of the kernel; rename yours or leave it out of meta_tools")
        if _folded(name) in found:
            raise ToolDefinitionError(f"two tools are called {name!r}, or nearly so; a model needs distinct names")
        found[_folded(name)] = made
    if len(found) > MANY_TOOLS:
        warnings.warn(
            f"the agent has {len(found)} tools, and each is sent with every request: more than {MANY_TOOLS} cost many tokens and "
            "make the model's choice hard; give it fewer",
            UserWarning,
            stacklevel=3,
        )
    return {each.spec.name: each for each in (*found.values(), *own.values())}


def _as_tool(each: Any) -> Tool:  # noqa: ANN401 - checked here
    if callable(as_tool := getattr(each, "as_tool", None)):  # an agent
        return as_tool()  # type: ignore[no-any-return]
    if isinstance(each, Tool):
        return _checked_kind(each)
    if not callable(each):
        raise ToolDefinitionError(f"{each!r} is not a tool: give a function, an agent, or the result of @tool")
    return tool(each)


def _checked_kind(given: Tool) -> Tool:
    """Reject a tool with a false kind: replays enter `agent` tools and really run `meta` tools."""
    expected = {"agent": AgentTool, "meta": MetaTool}.get(given.spec.kind)
    if expected is not None and not isinstance(given, expected):
        name, kind = given.spec.name, given.spec.kind
        raise ToolDefinitionError(
            f"{name}: the kind {kind!r} is for Playhead's own tools; yours has the kind 'function'"
        )
    return given


def checked_approver(
    approver: Approver | None, tools: Mapping[str, Tool], asked_by_switches: Callable[[str], bool]
) -> Approver | None:
    """Return the approver; it is required if a tool needs approval and no killswitch has an approver for it."""
    needing = [name for name, tool in tools.items() if tool.spec.requires_approval and not asked_by_switches(name)]
    if needing and approver is None:
        raise UsageError(
            f"approval is required before {', '.join(needing)} may run; pass approver=, a function that decides on each call"
        )
    if approver is not None and not callable(approver):
        raise UsageError(f"approver is a function that decides on each call; it is {approver!r}")
    return approver


def agents_below(tools: Mapping[str, Tool]) -> Iterator[AgentTool]:
    """Yield the agents among the tools, and their sub-agents."""
    for each in tools.values():
        if isinstance(each, AgentTool):
            yield each
            yield from agents_below(each.tools)


def _folded(name: str) -> str:
    """Return the normalized name, which must be unique because models confuse similar names."""
    return name.strip().replace("_", "-").lower()
