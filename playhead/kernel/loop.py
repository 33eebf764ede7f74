"""The loop of all strategies: step until the agent has ended, exactly once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from playhead.errors import RunEndedError
from playhead.kernel.hooks import PHASE_OF
from playhead.kernel.lifecycle.steering import steered
from playhead.kernel.phases import run_phase
from playhead.kernel.state import FINAL, KernelState, transition

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from playhead.kernel.lifecycle.termination import Termination
    from playhead.kernel.session import Session
    from playhead.kernel.state import Status


@dataclass(frozen=True)
class Kernel:
    """The phases of a loop; replace one to get another kernel."""

    name: str
    phases: Mapping[Status, Callable[[KernelState, Session], Awaitable[KernelState]]]
    """The phase of each status that is not final: takes a state and a session, returns the next state."""


async def run_kernel(kernel: Kernel, state: KernelState, session: Session) -> KernelState:
    """Step until the agent has ended or used up its turns; return the last state, marked done or failed.

    Results of the last turn's calls still join the thread.

    Raises:
        GivenUpError: another strategy takes over.
        ModelError: the model did not answer.
        TraceWriteError: an event was lost and `on_trace_error` is `stop`.
    """
    at, hooks, steering = session.at, session.gate.hooks, session.run.steering
    at.enter_loop(state.iteration)
    while (status := state.status) not in FINAL and (status == "observing" or not session.concluded):
        if status == "thinking" and not _has_turns_left(state, session):
            break
        try:
            if steering is not None:
                state = await steered(state, session, str(state.iteration))
                if status == "thinking" and session.concluded:
                    break
                steering.phase_begins(state, session)
            if status == "thinking":
                at.enter_iteration(state.iteration)
            phase, body = PHASE_OF[status], kernel.phases[status]
            at.enter_phase(phase, state)
            if hooks is None or not hooks.at_phase(phase):
                at.count_turn()
                state = await body(state, session)
            else:
                state = await run_phase(phase, body, state, session)
        except RunEndedError as ended:
            if type(ended) is not RunEndedError:  # another strategy takes over
                raise
            break
        if state.usage is not session.spent.usage:
            state = collect_spending(state, session)
    return close_state(state, session)


def _has_turns_left(state: KernelState, session: Session) -> bool:
    """Return whether another turn may begin; end the loop if not."""
    if state.iteration >= session.header.max_iterations:
        session.terminate("max_iterations", state.best)
        return False
    if session.at.inner is not None and state.iteration >= session.at.inner.last:
        session.conclude("max_iterations", state.last_observation)
        return False
    return True


def collect_spending(state: KernelState, session: Session) -> KernelState:
    """Return the state with the tokens and dollars spent so far."""
    if state.usage is session.spent.usage:
        return state
    total = session.spent.total()
    return transition(state, usage=total.usage, cost_usd=total.cost_usd)


def close_state(state: KernelState, session: Session, ended: Termination | None = None) -> KernelState:
    """Return the final state for the agent's termination, or for `ended`; one made for it before keeps its output."""
    state = collect_spending(state, session)
    ended = ended or session.termination
    if ended is None or (state.status in FINAL and session.at.closed_by is ended):
        return state
    session.at.close(ended)
    output = state.best if ended.output is None and not ended.withheld else ended.output
    return transition(state, status="failed" if ended.failed else "done", output=output, error=ended.error, pending=())
