"""How far a task is, and what a model is told there by its profile: data, recorded in the header."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

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
"""The texts of each tier, none of them measured; able models have none."""
TaskPhase = Literal["gather", "produce", "synthesize", "verify"]


def task_phase(session: Session, state: KernelState) -> TaskPhase:
    """Return how far the task is, by what was called.

    `gather`: a required tool that reads has not been called enough; `produce`: only ones with side effects are missing;
    `synthesize`: nothing is missing; `verify`: there is an output.
    """
    if state.output is not None:
        return "verify"
    missing = [each.tool or "" for each in session.unmet]
    if not missing:
        return "synthesize"
    reads = (name for name in missing if name in session.toolset and session.toolset[name].spec.read_only)
    return "gather" if any(reads) else "produce"


async def framed(thread: Thread, session: Session) -> Thread:
    """Return the first messages with the word about the task after it."""
    profile = session.header.profile
    if profile is None or not profile.guidance.task_framing:
        return thread
    return await session.messages.nudge(thread, "task-framing", profile.guidance.task_framing)


class Guide:
    """Says, after a turn, what there is to say."""

    def __init__(self, guidance: Guidance) -> None:
        self._guidance = guidance
        self._told_done = self._was_unmet = False

    def after_turn(self, turn: Sequence[ToolCallCompleted], session: Session) -> tuple[str, str] | None:
        """Return a nudge and its text: what is wrong before what is missing, and that before what is done."""
        guidance, unmet = self._guidance, session.unmet
        failed = any(not each.ok and (each.error is None or each.error.type != "Refused") for each in turn)
        self._was_unmet |= bool(unmet)
        if failed and guidance.error_recovery:
            return "error-recovery", guidance.error_recovery
        if unmet and guidance.continuation_hint:
            return "continuation", f"{guidance.continuation_hint} {', '.join(each.tool or each.what for each in unmet)}"
        if self._was_unmet and not unmet and guidance.synthesis_prompt and not self._told_done:
            self._told_done = True
            return "produce", guidance.synthesis_prompt
        return None
