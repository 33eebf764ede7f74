"""What looks at an answer before it stands: its form, the caller's validators, a check by the model.

An answer that is refused goes back to the model with the reason, and the loop goes on. What code of the caller's says of
an answer is a fact: recorded, and served back in a replay, which needs none of that code.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel

from playhead.kernel.describe import describe
from playhead.kernel.passes import closed_thread, fresh_thread
from playhead.kernel.state import KernelState, transition
from playhead.trace.events import VerifierVerdict
from playhead.trace.events.run import ANSWERED
from playhead.trace.types import text_of
from playhead.trace.values import as_text, to_json

if TYPE_CHECKING:
    from playhead.kernel.lifecycle.termination import Termination
    from playhead.kernel.session import Session
    from playhead.trace.types import ReviewInfo
    from playhead.trace.values import JsonValue

FACT: Final = "review"
"""Name of the facts that hold what code said of an answer; the key is the review and a hash of the answer."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a validator says of an answer."""

    valid: bool
    """Whether it may stand."""
    feedback: str = ""
    """What the model is told, when it may not."""


Validator = Callable[[Any], "bool | Verdict | Awaitable[bool | Verdict]"]
"""Takes the output; True or `Verdict(True)` lets it stand."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What became of an answer at one review."""

    valid: bool
    feedback: str = ""
    output: JsonValue = None
    """The answer as it leaves this review, when it is valid."""
    broke: str | None = None
    """What went wrong in the review itself, so that asking the model again would not help."""


Judge = Callable[[Any], Awaitable[Judged]]
"""A review by code: takes the output."""


class Verification(BaseModel):
    """Whether an answer does what the task asks for."""

    reason: str
    """What is right or wrong with it, in one or two sentences."""
    verified: bool
    """Whether it solves the task."""


async def reviewed(state: KernelState, session: Session, refused: dict[str, int]) -> KernelState:
    """Look at the answer that the strategy ended with; returns the state after that, with what it cost.

    Where the answer does not stand, the agent has not ended, and this is the state from which to go on.
    `refused` counts how often each review has refused an answer.

    Raises:
        RunEndedError: something else ended the agent meanwhile.
    """
    answer = session.termination
    if answer is None or answer.reason not in ANSWERED or not session.ending.overrule(None):
        return state
    state = session.reach(transition(state, status="thinking", output=answer.output, error=None))
    output = answer.output
    for info in session.header.reviews:
        state, judged = await _judged(info, output, state, session)
        if not judged.valid:
            return await _refused(info, judged, replace(answer, output=output), state, session, refused)
        output = judged.output
    _end(session, replace(answer, output=output))
    return state


def _end(session: Session, answer: Termination) -> None:
    session.terminate(answer.reason, answer.output, source=answer.source, answer=answer.answer)


async def _judged(
    info: ReviewInfo, output: JsonValue, state: KernelState, session: Session
) -> tuple[KernelState, Judged]:
    if info.kind == "min-iterations":
        return state, _late_enough(info, output, session)
    if info.kind == "verification":
        return await _verified(info, output, state, session)
    judge = session.gate.judges.get(info.name)

    async def ask() -> JsonValue:
        judged = Judged(valid=False, broke=f"{info.name} is not at hand") if judge is None else await judge(output)
        return {name: to_json(getattr(judged, name)) for name in ("valid", "feedback", "output", "broke")}

    return state, Judged(**await session.facts.ask(FACT, ask, key=review_key(info, output)))


def review_key(info: ReviewInfo, output: JsonValue) -> str:
    """Return the key of the fact that holds what a review by code said of an output."""
    return f"{info.name}:{hashlib.sha256(as_text(output).encode()).hexdigest()[:16]}"


def _late_enough(info: ReviewInfo, output: JsonValue, session: Session) -> Judged:
    left = (info.least or 0) - session.at.turns
    if left <= 0:
        return Judged(valid=True, output=output)
    return Judged(valid=False, feedback=f"It is too early to answer: work on the task for {left} more turns.")


async def _verified(
    info: ReviewInfo, output: JsonValue, state: KernelState, session: Session
) -> tuple[KernelState, Judged]:
    """Ask the model itself; in mode `reflect` what it says is recorded, and changes nothing."""
    from playhead.kernel.structured import ask_for, form_prompt  # noqa: PLC0415 - for runs that verify

    prompt = (
        f"Check an answer.\n\nTask:\n{text_of(session.task)}\n\nAnswer:\n{as_text(output)}\n\n"
        f"Does the answer solve the whole task? {form_prompt(Verification)}"
    )
    state, said = await ask_for(state, session, await fresh_thread(session, prompt), Verification, purpose="verify")
    if said is None:
        session.at.verified = False
        session.emit(VerifierVerdict(verified=False, summary="no verdict of the model could be read"))
        return state, Judged(valid=True, output=output)
    session.at.verified = said.verified
    session.emit(VerifierVerdict(verified=said.verified, summary=said.reason))
    if said.verified or info.mode == "reflect":
        return state, Judged(valid=True, output=output)
    return state, Judged(valid=False, feedback=f"A check found that the answer does not solve the task: {said.reason}")


async def _refused(  # noqa: PLR0913, PLR0917 - all that decides what comes next
    info: ReviewInfo, judged: Judged, answer: Termination, state: KernelState, session: Session, refused: dict[str, int]
) -> KernelState:
    count = refused[info.name] = refused.get(info.name, 0) + 1
    why = judged.broke or judged.feedback or "no reason given"
    if judged.broke is None and count <= info.max_retries:
        text = f"Your answer was not accepted: {why} Answer again."
        closed = await closed_thread(state, session)
        thread = await session.messages.nudge(closed, "output-rejected", text, severity="warn")
        if thread is not closed:  # no hook has removed the reason
            return transition(state, thread=thread)
    error = f"{info.name}: {why}"
    session.terminate("output_rejected", answer.output, failed=True, error=error, because=error)
    return state


async def judge_by(
    function: Validator, restored: Callable[[JsonValue], Any], output: JsonValue, feedback: str
) -> Judged:
    """Return what a function of the caller's says of an output, which it gets as `restored` has it.

    Whatever is no clear yes is a no.
    """
    try:
        said = function(restored(output))
        said = await said if isinstance(said, Awaitable) else said
    except Exception as error:  # noqa: BLE001 - the caller's code
        return Judged(valid=False, broke=f"it raised {type(error).__name__}: {describe(error)}")
    if type(said) is bool:
        said = Verdict(said, "" if said else feedback)
    if type(said) is not Verdict or type(said.valid) is not bool or type(said.feedback) is not str:
        # The types themselves: `isinstance` would ask the answer what it is.
        return Judged(valid=False, broke=f"it returned {type(said).__name__}; return True, False or a Verdict")
    return Judged(said.valid, said.feedback, output)
