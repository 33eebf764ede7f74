"""A loop inside an agent's loop: strategies let the kernel think and act for a part of the task, and go on from there.

A pass has a thread of its own, the same session, ports and events, and it counts turns on: no two turns of an agent have
the same number, so calls and agents below are told apart. What would end an agent that runs the kernel alone (an answer)
ends the pass; what ends the agent (a killswitch, a hook, its `max_iterations`) ends both.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

from playhead.kernel.hooks import SUPPRESS
from playhead.kernel.loop import collect_spending, run_kernel
from playhead.kernel.place import Conclusion, Pass
from playhead.kernel.react import REACT
from playhead.kernel.state import PlannedCall, Thread, transition
from playhead.trace.events import PhaseCompleted, PhaseEntered
from playhead.trace.types import ImagePart, TextPart

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.kernel.session import Kernel, Session
    from playhead.kernel.state import KernelState
    from playhead.trace.events import LlmResponded
    from playhead.trace.types import Content
    from playhead.trace.values import JsonValue

ANSWER_NOW: Final = "Call no more tools. Answer the task now, with what you know."


async def run_pass(  # noqa: PLR0913 - what a pass is made of
    state: KernelState,
    session: Session,
    thread: Thread,
    *,
    purpose: str,
    max_iterations: int,
    tools: tuple[str, ...] | None = None,
    kernel: Kernel = REACT,
    step: str | None = None,
    must_answer: bool = False,
) -> tuple[KernelState, Conclusion]:
    """Run the kernel on a thread until it answers; returns the state after it, with the thread of the pass, and how it ended.

    Args:
        state: where the agent stands; steps, usage and turns count on from here.
        session: the agent's session.
        thread: what the first request of the pass sends; see `fresh_thread`.
        purpose: what its requests are for, such as `improve`.
        max_iterations: turns of this pass at most.
        tools: names of the tools that are offered; None for all, `()` for none.
        kernel: another loop than ReAct.
        step: the step of a plan that it carries out.
        must_answer: whether one more turn without tools may give the answer when its turns are used up.

    Raises:
        RunEndedError: the agent itself has ended meanwhile.
        ModelError: the model did not answer.
    """
    inner = Pass(purpose, state.iteration + max_iterations, None if tools is None else frozenset(tools), step)
    begun = transition(state, thread=thread, status="thinking", pending=(), completed=())
    with session.at.inside(inner):
        reached = await run_kernel(kernel, begun, session)
    # Not at its end, whatever ended the pass: the best answer that the strategy holds is kept.
    reached = session.reach(transition(reached, status="thinking"))
    session.require_running()
    conclusion = inner.conclusion
    assert conclusion is not None  # noqa: S101 - else the agent has ended
    if not must_answer or conclusion.reason != "max_iterations":
        return reached, conclusion
    told = await session.messages.nudge(reached.thread, "unfinished", ANSWER_NOW)
    reached, last = await run_pass(
        reached, session, told, purpose=purpose, max_iterations=1, tools=(), kernel=kernel, step=step
    )
    return reached, last if last.reason != "max_iterations" else conclusion


answer_pass: Final = partial(run_pass, must_answer=True)
"""Run a pass that has to end with an answer: when its turns are used up, one more turn without tools may give it.

Takes and returns what `run_pass` does, and raises like it. The conclusion is not an answer when that turn gave none either.
"""


@contextmanager
def in_phase(session: Session, phase: str, number: int) -> Iterator[None]:
    """Let what happens inside belong to a phase of the strategy; one that an error leaves is not said to be completed.

    Args:
        session: the agent's session.
        phase: one of those that the strategy declares, such as `attempt`.
        number: which one it is, from 1.
    """
    session.emit(PhaseEntered(phase=phase, number=number))
    yield
    session.emit(PhaseCompleted(phase=phase, number=number))


async def fresh_thread(session: Session, text: str) -> Thread:
    """Return a thread of the agent's system prompt, its examples, and this prompt of the kernel's in place of the task.

    Images of the task come along. For the task's text see `text_of(session.task)`.
    """
    images = [part for part in session.task if isinstance(part, ImagePart)]
    content: Content = (TextPart(text=text), *images) if images else text
    return session.at.preamble.add(await session.messages.add_user(content))


async def offered_thread(session: Session, tag: str, text: str) -> Thread | None:
    """Return a fresh thread with this prompt as the hooks let it pass; None when one removed it."""
    offered = await session.offer(tag, text)
    return None if offered is SUPPRESS else await fresh_thread(session, offered)


async def ask_model(
    state: KernelState,
    session: Session,
    thread: Thread,
    *,
    purpose: str,
    parameters: dict[str, JsonValue] | None = None,
) -> tuple[KernelState, LlmResponded]:
    """Ask the model without tools, outside the turns; returns the state with what that cost, and the answer.

    The answer joins no thread: what of it the model is to see later, the strategy tells it. Raises as `session.model.complete`.
    """
    session.reach(state)
    response = await session.model.complete(thread, parameters=parameters, purpose=purpose)
    return collect_spending(state, session), response


async def ask_once(
    state: KernelState, session: Session, thread: Thread, *, purpose: str, **parameters: JsonValue
) -> tuple[KernelState, str]:
    """Ask as `ask_model` does, and return the text of the answer in place of the whole of it."""
    state, response = await ask_model(state, session, thread, purpose=purpose, parameters=parameters)
    return state, response.text


async def closed_thread(state: KernelState, session: Session) -> Thread:
    """Return the thread, in which calls that the answer came before are answered: a provider wants that for each."""
    thread = state.thread
    answered = {message.tool_call_id for message in thread.messages}
    asked = next((message.tool_calls for message in reversed(thread.messages) if message.tool_calls), ())
    for position, call in enumerate(asked):
        if call.id not in answered:
            planned = PlannedCall(call=call, position=position)
            completed = await session.tools.refuse(planned, "not run: the run was about to end")
            thread = thread.add(await session.messages.add_result(planned, completed))
    return thread
