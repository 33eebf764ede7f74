"""Autonomous: work with the tools until the model itself says that it is done, by calling `finish` with the result.

A reply without a call does not end the run: the model is asked to continue or to finish. Other calls of a reply run before
`finish`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pydantic import Field

from playhead.kernel import Arguments, Kernel, KernelState, MetaTool, Session, Strategy, run_kernel, transition
from playhead.kernel.outcome import Outcome
from playhead.kernel.react import act, ask_again, observe, take_answer, think
from playhead.trace.format import incomplete

if TYPE_CHECKING:
    from playhead.kernel.session import Tool
    from playhead.trace.values import JsonValue

NAME: Final = "autonomous"
INSTRUCTION: Final = (
    "When the whole task is done, and only then, call the tool `{name}` with the result. Nobody reads what you write beside "
    "your calls."
)
GO_ON: Final = (
    "You called no tool, and text alone reaches nobody. If the task is done, call `{name}` now with the whole answer as its "
    "result; if not, call the tool for the next step."
)
_NUDGES: Final = "autonomous_nudges"


class Autonomous(Strategy):
    """Run until the model finishes."""

    name = NAME
    known_for = "works on by itself until it says that it has finished"
    max_iterations = 50
    meta_tools = ()
    prompt = "You work on the user's task by yourself, with the tools, one step at a time."
    goes_on = True

    finish_tool_name: str = Field(default="finish", pattern=r"^[A-Za-z_][A-Za-z0-9_-]{0,63}$")
    """The name of the tool with which the model ends the run."""
    max_nudges: int = Field(default=2, ge=0, le=100)
    """The number of consecutive replies without a call that are sent back; the next one is the answer."""

    async def run(self, state: KernelState, session: Session) -> KernelState:
        """Run the loop to its end."""
        kernel = Kernel(NAME, {"thinking": self._think, "acting": self._act, "observing": observe})
        return await run_kernel(kernel, state, session)

    def added_prompt(self) -> str:
        """Return the instruction about the finish tool."""
        return INSTRUCTION.format(name=self.finish_tool_name)

    def tools(self) -> list[Tool]:
        """Return the tool with which the model ends the run."""
        description = "Say that the whole task is done, and give its result."
        return [FinishTool(self.finish_tool_name, description, FinishArguments, _finish, ends_run=True)]

    async def _think(self, state: KernelState, session: Session) -> KernelState:
        return await think(state, session, self._on_text)

    async def _act(self, state: KernelState, session: Session) -> KernelState:
        if state.meta.get(_NUDGES):
            state = transition(state, output=None, meta={**state.meta, _NUDGES: 0})
        return await act(state, session)

    async def _on_text(self, state: KernelState, text: str, finish_reason: str | None, session: Session) -> KernelState:
        """Ask the model to continue or to finish; after `max_nudges` such replies, the next one is the answer."""
        nudges: Any = state.meta.get(_NUDGES, 0)
        can_finish = self.finish_tool_name in session.offered_specs() and incomplete(finish_reason) is None
        if can_finish and nudges < self.max_nudges:
            # Without any result, the model's text is the best output.
            counted = transition(state, output=text or None, meta={**state.meta, _NUDGES: nudges + 1})
            if again := await ask_again(counted, "unfinished", GO_ON.format(name=self.finish_tool_name), session):
                return again
        return await take_answer(state, text, finish_reason, session)


class FinishArguments(Arguments):
    """The arguments of the finish tool."""

    result: str = Field(description="The result of the task, in full.")


class FinishTool(MetaTool):
    """Ends the run. It is offered from the first turn on: nothing else ends it."""

    def unmet(self, session: Session, state: KernelState) -> list[str]:  # noqa: ARG002
        """Return the requirements that are not met yet."""
        return [f"{each.what} first" for each in session.unmet]


def _finish(session: Session, arguments: FinishArguments) -> JsonValue | Outcome:
    if not arguments.result:
        return Outcome.failure("InvalidArguments", "result: is missing")
    session.conclude("final_answer_tool", arguments.result)
    return "accepted"
