"""Which tools a task requires, by the model's own judgement: asked once, before the first turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pydantic import BaseModel, Field

from playhead.trace.events import DecisionEvaluated
from playhead.trace.types import text_of

if TYPE_CHECKING:
    from playhead.kernel.session import Session
    from playhead.kernel.state import KernelState

PURPOSE: Final = "required-tools"
"""What the request is for."""
MAX_CALLS: Final = 10
"""Calls of one tool that the model may find necessary."""
MAX_DESCRIPTION: Final = 300
"""Characters of a tool's description that it is shown."""
PROMPT: Final = (
    "Which of these tools must be called to solve the task, and how often at least? Name only tools without which it "
    "cannot be solved; name none if it can.\n\nTask:\n{task}\n\nTools:\n{tools}\n\n{form}"
)


class RequiredTool(BaseModel):
    """A tool without which the task cannot be solved."""

    tool: str
    """The tool's name."""
    calls: int = Field(default=1, ge=1, le=MAX_CALLS)
    """Calls that are necessary at least."""


class RequiredTools(BaseModel):
    """The tools that a task requires."""

    reason: str
    """Why these, in a sentence."""
    tools: list[RequiredTool] = Field(max_length=30)
    """The tools; empty when none is required."""


async def infer_required(state: KernelState, session: Session) -> KernelState:
    """Let the model say which tools the task requires, beside those that are required already; names of no tool are left out.

    What it says is recorded as a decision. An answer that cannot be read requires nothing, and is recorded, too.

    Raises:
        ModelError: the model did not answer.
        RunEndedError: the run has ended.
    """
    from playhead.kernel.passes import fresh_thread  # noqa: PLC0415 - which runs loops of a session
    from playhead.kernel.structured import ask_for, form_prompt  # noqa: PLC0415 - the same

    specs = [tool.spec for name, tool in session.toolset.items() if tool.spec.kind != "meta" and session.offers(name)]
    if not specs:
        return state
    tools = "\n".join(f"- {spec.name}: {spec.description[:MAX_DESCRIPTION]}" for spec in specs)
    prompt = PROMPT.format(task=text_of(session.task), tools=tools, form=form_prompt(RequiredTools))
    state, said = await ask_for(state, session, await fresh_thread(session, prompt), RequiredTools, purpose=PURPOSE)
    names = {spec.name for spec in specs}
    calls = {} if said is None else {each.tool: each.calls for each in said.tools if each.tool in names}
    session.tools.tally.require(calls, with_budgets=session.header.max_parallel > 1)
    found = ", ".join(f"{name} ({count})" for name, count in calls.items()) or "none"
    reason = "the answer could not be read" if said is None else said.reason
    session.emit(DecisionEvaluated(decision=f"required tools: {found}", rationale=reason or None))
    return state
