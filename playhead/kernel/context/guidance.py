"""What a model is told at certain places of a run, by the tier that its profile says: data, recorded in the header."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from playhead.kernel.tally import OVER_BUDGET
from playhead.trace.events.run import ANSWERED
from playhead.trace.guidance import Guidance

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from playhead.kernel.session import Session
    from playhead.kernel.state import KernelState, Thread
    from playhead.trace.events import ToolCallCompleted

BY_TIER: Final[Mapping[str, Guidance]] = {
    "local": Guidance(
        tool_guidance="Give a tool exactly the arguments that it names. Do not make up what a tool would return.",
        task_framing="Do this task and nothing else.",
        continuation_hint="The task is not done. Call next:",
        error_recovery="The call failed. Read the error, and call again with other arguments, or use another tool.",
        synthesis_prompt="All the tools that the task needs have been called. Answer now, from their results alone.",
    )
}
"""The texts of each tier, none of them measured; able models have none. The system prompt's wording is `rules`."""
QUALITY_CHECK: Final = "quality-check"


class Guide:
    """Says, after a turn, what there is to say."""

    def __init__(self, guidance: Guidance) -> None:
        self._guidance = guidance
        self._told_done = False

    def after_turn(
        self, turn: Sequence[ToolCallCompleted], session: Session, state: KernelState
    ) -> tuple[str, str] | None:
        """Return a nudge and its text: what is wrong before what is missing, and that before what is done."""
        guidance, tally = self._guidance, session.tools.tally
        missing = tally.missing(state.tools_used)
        failed = any(not each.ok and (each.error is None or each.error.type != OVER_BUDGET) for each in turn)
        if failed and guidance.error_recovery:
            return "error-recovery", guidance.error_recovery
        if missing and guidance.continuation_hint:
            return "continuation", f"{guidance.continuation_hint} {', '.join(map(tally.label, missing))}"
        if tally.required and not missing and guidance.synthesis_prompt and not self._told_done:
            self._told_done = True
            return "produce", guidance.synthesis_prompt
        return None


async def framed(thread: Thread, session: Session) -> Thread:
    """Return the first messages with the word about the task after it."""
    profile = session.header.profile
    if profile is None or not profile.guidance.task_framing:
        return thread
    return await session.messages.nudge(thread, "task-framing", profile.guidance.task_framing)


async def checked_once(state: KernelState, session: Session, refused: dict[str, int]) -> KernelState:
    """Return the state from which the model looks at its first answer once more; the same one when it need not.

    `refused` counts how often each review has sent an answer back, this one among them. An answer that comes in the last
    turn stands.
    """
    from playhead.kernel.passes import closed_thread  # noqa: PLC0415 - which runs loops of a session
    from playhead.kernel.state import transition  # noqa: PLC0415 - beside it

    profile, answer = session.header.profile, session.termination
    text = "" if profile is None else profile.guidance.quality_check
    if not text or QUALITY_CHECK in refused or session.turns >= session.header.max_iterations:
        return state
    if answer is None or answer.reason not in ANSWERED or not session.ending.overrule(None):
        return state
    refused[QUALITY_CHECK] = 1
    closed = await closed_thread(state, session)
    thread = await session.messages.nudge(closed, QUALITY_CHECK, text)
    if thread is closed:
        session.terminate(answer.reason, answer.output, source=answer.source, answer=answer.answer)
        return state
    state = session.state = transition(state, status="thinking", thread=thread, output=answer.output, error=None)
    return state
