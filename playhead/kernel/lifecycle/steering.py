"""What steers a run from outside between two steps of its loop: a pause, and a stop that still gives an answer.

A pause is time and nothing else, so a replay has none. A stop is a fact, at the turn before which it came.
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
"""How an agent ends then."""
CALLER: Final = "caller"
"""Who ended it."""
SYNTHESIS: Final = "synthesis"
"""What the request is for that asks for an answer then."""
PROMPT: Final = (
    "Stop here. Give the best answer to the task that you can give from what is known so far, in plain text. "
    "Call no tool. Say what is still unknown."
)
FOUND: Final = 20
"""Results that a model is told which does not see them in its thread, the newest ones."""
LONGEST: Final = 500
"""Characters of each."""


async def steered(state: KernelState, session: Session, key: str) -> KernelState:
    """Wait as long as the run is paused; returns the state, a final one when the agent was stopped instead.

    `key` says before what: a turn, or a request that a strategy makes outside the turns (a search may make many before its first turn).

    Raises:
        RunEndedError: a killswitch ended the agent instead.
    """
    steering = session.run.steering
    if steering is None:
        return state
    session.reach(state)
    await steering.reached(session)
    # The calls of a turn run before an agent stops: its thread is in order then.
    if state.status == "thinking" and (reason := steering.stops(session, key)) is not None:
        return await _stopped(state, session, key, reason)
    return state


async def _stopped(state: KernelState, session: Session, key: str, reason: str) -> KernelState:
    """Ask for the best answer from what is known, and end with it; without one the best there was is kept."""
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
    """Return the question; inside a pass, whose thread is about a part of the task, with the task and what was found."""
    if session.at.inner is None:
        return PROMPT
    found = [step.content[:LONGEST] for step in state.steps if step.type == "observation" and step.ok][-FOUND:]
    known = "".join(f"\n- {each}" for each in found) or " nothing"
    return f"{PROMPT}\n\nThe task: {text_of(session.task)}\n\nKnown so far:{known}"
