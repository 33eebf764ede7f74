"""Steers a run from outside between two steps of its loop: a pause, and a stop that still gives an answer.

A pause only takes time, so a replay has none. A stop is a fact, recorded with the turn that it prevented.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from playhead.errors import ModelError
from playhead.kernel.describe import describe
from playhead.kernel.rationale import strip_rationales
from playhead.kernel.state import transition
from playhead.trace.types import text_of

if TYPE_CHECKING:
    from playhead.kernel.session import Session
    from playhead.kernel.state import KernelState

STOP: Final = "stop"
"""Name of the fact that says why an agent was stopped; its key is the turn, or `request n`, that did not begin."""
STOPPED: Final = "stopped"
"""The reason code of a stopped agent."""
CALLER: Final = "caller"
"""Who ended it."""
SYNTHESIS: Final = "synthesis"
"""The purpose of the request for a stopped agent's answer."""
PROMPT: Final = (
    "Stop here. Give the best answer to the task that you can give from what is known so far, in plain text. "
    "Call no tool. Say what is still unknown."
)
FOUND: Final = 20
"""The number of newest results to tell a model that does not have them in its thread."""
LONGEST: Final = 500
"""Characters of each."""


async def steered(state: KernelState, session: Session, key: str) -> KernelState:
    """Wait while the run is paused; return the state, a final one if the agent was stopped.

    `key` names the turn, or the request that a strategy makes outside the turns (a search may make many before its first turn).

    Raises:
        RunEndedError: a killswitch ended the agent instead.
    """
    steering = session.run.steering
    if steering is None:
        return state
    session.reach(state)
    await steering.wait_while_paused(session)
    # The calls of a turn run before an agent stops: its thread is in order then.
    if state.status == "thinking" and (reason := steering.stop_reason(session, key)) is not None:
        return await _stopped(state, session, key, reason)
    return state


async def _stopped(state: KernelState, session: Session, key: str, reason: str) -> KernelState:
    """Ask for the best answer from what is known, and end with it; without an answer, keep the best output so far."""
    because = str(await session.facts.ask(STOP, lambda: reason, key=key))
    thread = await session.messages.nudge(state.thread, SYNTHESIS, _prompt(state, session))
    answer = ""
    if thread is not state.thread:  # no hook has removed the question
        try:
            response = await session.model.complete(thread, purpose=SYNTHESIS)
        except ModelError as error:
            because = f"{because} (no answer could be made: {describe(error)})"
        else:
            thread = thread.add(await session.messages.add_reply(response))
            answer = strip_rationales(response.text)
            because += "" if answer else " (the model gave no answer)"
    session.terminate(STOPPED, answer or state.best, source=CALLER, because=because)
    return transition(state, thread=thread)


def _prompt(state: KernelState, session: Session) -> str:
    """Return the question; inside a pass, whose thread covers a part of the task, add the task and the results."""
    if session.at.inner is None:
        return PROMPT
    found = [step.content[:LONGEST] for step in state.steps if step.type == "observation" and step.ok][-FOUND:]
    known = "".join(f"\n- {each}" for each in found) or " nothing"
    return f"{PROMPT}\n\nThe task: {text_of(session.task)}\n\nKnown so far:{known}"
