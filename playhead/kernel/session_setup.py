"""Sets up sessions: for an agent, and for the body of a tool."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.kernel.guards import Composition
from playhead.kernel.messages import ThreadRecord
from playhead.kernel.model_port import RecordingModelPort
from playhead.kernel.session import FactPort, Session, Toolset
from playhead.kernel.strategies.base import tools_of
from playhead.kernel.tool_port import RecordingToolPort

if TYPE_CHECKING:
    from playhead.kernel.approval import Approver
    from playhead.kernel.models.base import Model
    from playhead.kernel.session import RunContext, Tool, ToolContext
    from playhead.trace.header import AgentHeader


def open_session(  # noqa: PLR0913 - the parts of an agent
    run: RunContext,
    header: AgentHeader,
    model: Model,
    tools: dict[str, Tool],
    *,
    owner: str = "root",
    parent: Session | None = None,
    approver: Approver | None = None,
    composed: Composition | None = None,
) -> Session:
    """Return the session of an agent in a run, with the run's world behind its ports."""
    session = Session(run, header, owner, parent=parent, for_tool=_for_tool)
    session.gate.approver = approver or session.gate.approver
    composed = composed or Composition()
    hooks = session.gate.hooks = run.world.hooks_for(session, composed.hooks)
    own, others = tools_of(header), {} if hooks is None else hooks.tools()
    of_strategies = {**others, **own}
    session.toolset = Toolset(
        run.world.tools_for(owner, {**tools, **of_strategies}), of_strategies=frozenset(of_strategies)
    )
    session.toolset.hide_all_but(own)
    _add_ports(session, model, composed)
    return session


def _for_tool(caller: Session, context: ToolContext) -> Session:
    """Return the session of a tool's body, for its own requests and calls; the calling agent is charged."""
    run, owner = caller.run, context.child_owner
    session = Session(run, caller.header, owner, parent=caller, payer=caller.agent, for_tool=_for_tool)
    others = {name: tool for name, tool in caller.toolset.items() if name != context.tool and tool.spec.kind != "meta"}
    session.toolset = Toolset(run.world.tools_for(owner, others))
    session.gate.hooks = run.world.hooks_for(session, caller.gate.hooks)
    _add_ports(session, caller.model.adapter, Composition())
    return session


def _add_ports(session: Session, model: Model, composed: Composition) -> None:
    world, owner = session.run.world, session.owner
    session.gate.guards = world.guards_for(session, composed.guards)
    session.messages = ThreadRecord(session)
    session.model = RecordingModelPort(
        session, world.model_for(owner, model), world.fallbacks_for(owner, session.header.fallbacks, composed.fallbacks)
    )
    session.tools = RecordingToolPort(session)
    session.facts = FactPort(session)
