"""Whether the loop gets on: looked at before each turn, when the agent's header asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.errors import RunEndedError
from playhead.kernel.loop_detector import Loop, LoopDetection, find_loop
from playhead.trace.events import DecisionEvaluated

if TYPE_CHECKING:
    from playhead.kernel.session import Session
    from playhead.kernel.state import KernelState
    from playhead.trace.types import AgentHeader


class GivenUpError(RunEndedError):
    """A strategy is given up for another one. For strategies it is as if the run had ended; none may catch it."""

    def __init__(self, state: KernelState, loop: Loop, to_strategy: str, rationale: str) -> None:
        super().__init__(f"the strategy is given up for {to_strategy}: {loop.what}")
        self.state = state
        self.loop = loop
        self.to_strategy = to_strategy
        self.rationale = rationale


def _why(loop: Loop, session: Session) -> str:
    """Return what was noticed, and what the user may do about it."""
    switch = "" if session.header.switching else "Agent(switching=Switching()) lets another strategy take over; "
    return f"{loop.what}. Fix: {switch}LoopDetection({loop.setting}=…) sets the limit"


class Progress:
    """What is known of how an agent's loop gets on."""

    def __init__(self, header: AgentHeader) -> None:
        given = header.loop_detection
        self._detection = None if given is None else LoopDetection.model_validate(given, strict=False)
        self._failures_allowed = header.max_required_failures
        self._since = 0
        """The first step that the detector looks at."""
        self._began = 0
        """The first turn that it looks at."""
        self._seen = 0
        """Steps whose results are counted."""
        self._failures: dict[str, tuple[str, int]] = {}
        """By required tool its newest error, and how often it came in a row."""
        self.switches = 0
        """How often the strategy was switched."""
        self.cap_said = False
        """Whether it was said that it will not be switched any more."""

    def begin(self, state: KernelState) -> None:
        """Begin anew: what repeats between two loops, such as two steps of a plan, is no circle."""
        self._since, self._began = len(state.steps), state.iteration

    async def look(self, state: KernelState, session: Session) -> KernelState:
        """Return the state with a word to the model, if it goes round in circles.

        Raises:
            GivenUpError: another strategy is to take over.
            RunEndedError: a required tool has failed for good, so the run has ended.
        """
        self._require_hope(state, session)
        if self._detection is None:
            return state
        loop = find_loop(state.steps, state.iteration, self._detection, since=self._since, began=self._began)
        if loop is None:
            return state
        self.begin(state)
        session.emit(DecisionEvaluated(decision=f"loop-detected: {loop.pattern}", rationale=_why(loop, session)))
        if session.header.switching is not None:
            from playhead.kernel.switching import consider_switch  # noqa: PLC0415 - few agents switch

            state = await consider_switch(state, session, loop)
        text = f"{loop.what[0].upper()}{loop.what[1:]}. {loop.advice}"
        thread = await session.messages.nudge(state.thread, "loop-detected", text, severity="warn")
        return state.model_copy(update={"thread": thread})

    def _require_hope(self, state: KernelState, session: Session) -> None:
        """End the run when a tool that it cannot do without fails in the same way again and again."""
        if self._failures_allowed is None:
            return
        for step in state.steps[self._seen :]:
            if step.type == "observation" and step.tool is not None:
                error, count = self._failures.get(step.tool, ("", 0))
                again = step.ok is False and step.content == error
                self._failures[step.tool] = (step.content, count + 1 if again else 1) if step.ok is False else ("", 0)
        self._seen = len(state.steps)
        for tool in session.tools.tally.missing(state.tools_used):
            error, count = self._failures.get(tool, ("", 0))
            if count >= self._failures_allowed:
                fix = "Fix: mend the tool, leave it out of require_tools, or raise its max_failures="
                why = f"{tool}, which is required, failed {count} times in a row with: {error[:500]}. {fix}"
                session.terminate("required_tools_missing", state.best, because=why)
                session.require_running()
