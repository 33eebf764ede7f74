"""Agents of Playhead inside a recorded program: each is a sub-agent of the run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playhead.agent.ambient import enclosing
from playhead.agent.running import finished
from playhead.instrument.calls import Body, call
from playhead.instrument.scopes import current_scope, entered, uncounted
from playhead.trace.values import to_json

if TYPE_CHECKING:
    from playhead.agent.agent import Agent
    from playhead.agent.result import RunResult
    from playhead.kernel.session import ToolContext
    from playhead.trace.types import Content


class AgentBody(Body):
    """The body of a call that enters an agent. It has to be awaited, and its result is the agent's output."""

    waits = True

    def result(self) -> Any:  # noqa: ANN401 - any output
        """Return the agent's output."""
        return self.value.output


def run_agent(agent: Agent, task: Content, *, is_async: bool) -> Any:  # noqa: ANN401 - a RunResult, or an awaitable of one
    """Run an agent as a part of the program that calls it."""
    scope: Any = current_scope()  # set together with `enclosing`
    tool = agent.as_tool()

    async def run(context: ToolContext) -> RunResult:
        token = enclosing.set(None)
        try:
            with entered(None, False, uncounted):  # noqa: FBT003 - no port
                session, execution = await tool.enter(task, context)
        finally:
            enclosing.reset(token)
        return agent.typed(finished(context.session.run, session, execution))

    return call(scope, AgentBody(tool.spec, agent.run, run, {"task": to_json(task)}), is_async=is_async)
