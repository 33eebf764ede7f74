"""Passes: loops inside an agent's loop, and requests outside the turns, from which strategies are built.

A pass has its own thread, the same session, ports and events, and continues the count of turns: no two turns of an agent have
the same number, so calls and sub-agents have distinct names. An answer ends only the pass; whatever ends the agent (a
killswitch, a hook, its `max_iterations`) ends both.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

from playhead.kernel.hooks import SUPPRESS
from playhead.kernel.loop import collect_spending, run_kernel
from playhead.kernel.progress import Conclusion, Pass
from playhead.kernel.react import REACT
from playhead.kernel.state import KernelState, PlannedCall, Thread, transition
from playhead.trace.events import PhaseCompleted, PhaseEntered
from playhead.trace.types import ImagePart, TextPart

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.kernel.loop import Kernel
    from playhead.kernel.session import Session
    from playhead.trace.events import LlmResponded
    from playhead.trace.types import Content

ANSWER_NOW: Final = "Call no more tools. Answer the task now, with what you know."


async def run_pass(  # noqa: PLR0913 - the parts of a pass
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
    """Run the kernel on a thread until the model answers; return the state, with the thread of the pass, and how it ended.

    Args:
        state: the agent's state; steps, usage and turns continue from it.
        session: the agent's session.
        thread: the thread of the first request; see `fresh_thread`.
        purpose: the purpose of its requests, such as `improve`.
        max_iterations: the maximum number of turns of this pass.
        tools: names of the offered tools; None for all, `()` for none.
        kernel: another loop than ReAct.
        step: the plan step that it carries out.
        must_answer: whether one more turn without tools may give the answer after its turns are used up.

    Raises:
        RunEndedError: the agent itself has ended meanwhile.
        ModelError: the model did not answer.
    """
    inner = Pass(purpose, state.iteration + max_iterations, None if tools is None else frozenset(tools), step)
    begun = transition(state, thread=thread, status="thinking", pending=(), completed=())
    with session.at.inside(inner):
        reached = await run_kernel(kernel, begun, session)
    # Only the pass has ended, not the agent, so the strategy's best answer is kept.
    reached = session.reach(transition(reached, status="thinking"))
    session.require_running()
    conclusion = inner.conclusion
    assert conclusion is not None  # noqa: S101 - otherwise the agent has ended
    if not must_answer or conclusion.reason != "max_iterations":
        return reached, conclusion
    nudged = await session.messages.nudge(reached.thread, "unfinished", ANSWER_NOW)
    reached, last = await run_pass(
        reached, session, nudged, purpose=purpose, max_iterations=1, tools=(), kernel=kernel, step=step
    )
    return reached, last if last.reason != "max_iterations" else conclusion


answer_pass: Final = partial(run_pass, must_answer=True)
"""Run a pass that has to end with an answer: after its turns are used up, one more turn without tools may give it.

Takes, returns and raises the same as `run_pass`. If that turn gives no answer either, the conclusion has none.
"""


@contextmanager
def in_phase(session: Session, phase: str, number: int) -> Iterator[None]:
    """Record the events inside this block as a phase of the strategy; a phase that ends by an error is not completed.

    Args:
        session: the agent's session.
        phase: one of the strategy's declared phases, such as `attempt`.
        number: its number, from 1.
    """
    session.emit(PhaseEntered(phase=phase, number=number))
    yield
    session.emit(PhaseCompleted(phase=phase, number=number))


async def fresh_thread(session: Session, text: str) -> Thread:
    """Return a thread with the agent's system prompt, its examples, and this prompt in place of the task.

    Images of the task are included. The task's text is `text_of(session.task)`.
    """
    images = [part for part in session.task if isinstance(part, ImagePart)]
    content: Content = (TextPart(text=text), *images) if images else text
    return session.at.preamble.add(await session.messages.add_user(content))


async def offered_thread(session: Session, tag: str, text: str) -> Thread | None:
    """Return a fresh thread with this prompt as changed by hooks; None if a hook removed it."""
    offered = await session.offer(tag, text)
    return None if offered is SUPPRESS else await fresh_thread(session, offered)


async def start_with(session: Session, text: str) -> Thread:
    """Return a thread with this text and the task's images as the task; from now on strategies see it as the task."""
    thread = await fresh_thread(session, text)
    if len(thread.messages) > len(session.at.preamble.messages):  # no hook removed it
        session.at.take_task(thread.messages[-1].content)
    return thread


async def ask_model(
    state: KernelState, session: Session, thread: Thread, *, purpose: str
) -> tuple[KernelState, LlmResponded]:
    """Ask the model without tools, outside the turns; return the state with the request's cost, and the answer.

    The answer joins no thread; the strategy passes on what the model needs later. Raises like `session.model.complete`.
    """
    session.reach(state)
    response = await session.model.complete(thread, purpose=purpose)
    return collect_spending(state, session), response


async def ask_once(state: KernelState, session: Session, thread: Thread, *, purpose: str) -> tuple[KernelState, str]:
    """Ask like `ask_model`, and return only the text of the answer."""
    state, response = await ask_model(state, session, thread, purpose=purpose)
    return state, response.text


async def closed_thread(state: KernelState, session: Session) -> Thread:
    """Return the thread with open calls answered, because providers require an answer to each."""
    thread = state.thread
    answered = {message.tool_call_id for message in thread.messages}
    calls = next((message.tool_calls for message in reversed(thread.messages) if message.tool_calls), ())
    for position, call in enumerate(calls):
        if call.id not in answered:
            planned = PlannedCall(call=call, position=position)
            completed = await session.tools.refuse(planned, "not run: the run was about to end")
            thread = thread.add(await session.messages.add_result(planned, completed))
    return thread
