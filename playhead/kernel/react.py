"""The phases of ReAct, of which strategies make their loops: think, act, observe, until the model answers (Yao et al. 2022, arXiv:2210.03629).

Native tool calls come first; a model without them may write its calls as JSON into its text.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from playhead.kernel.hooks import SUPPRESS
from playhead.kernel.messages import call_details
from playhead.kernel.meta_tools import ends_run, visible_tools
from playhead.kernel.repair.repairer import NUDGE
from playhead.kernel.reply import read_reply, record_reply
from playhead.kernel.session import Kernel
from playhead.kernel.state import KernelState, Step, transition
from playhead.trace.finish_reasons import incomplete
from playhead.trace.values import as_text

if TYPE_CHECKING:
    from playhead.kernel.reply import Reply
    from playhead.kernel.session import Session
    from playhead.kernel.state import PlannedCall
    from playhead.trace.events import ToolCallCompleted

EMPTY_REPLY: Final = "Your last reply was empty. Call a tool, or reply with the answer."
FAILED_CALLS: Final = "failed_calls_in_text"
MAX_FAILED_CALLS: Final = 2
"""Replies of a run that look like a call that does not run, and are sent back; the next one is the answer."""
_FINAL_ANSWER: Final = re.compile(
    r"(?P<bold>\*{0,3})\bfinal answer\b\s*(?:(?P=bold)\s*:|:\s*(?P=bold))\s*", re.IGNORECASE
)
"""Also in bold, as models like to write it: `**Final Answer:** 42`."""


Answered = Callable[[KernelState, str, str | None, "Session"], Awaitable[KernelState]]
"""What is done with a reply that asks for no call: takes the state, the text and the finish reason."""


async def think(state: KernelState, session: Session) -> KernelState:
    """Ask the model what to do next."""
    return await think_until(state, session, take_answer)


async def think_until(state: KernelState, session: Session, answered: Answered) -> KernelState:
    """Ask the model what to do next; `answered` takes over when it asks for no call."""
    offered = visible_tools(session, state)
    response = await session.model.complete(state.thread, session.specs(offered))
    thread = state.thread.add(await session.messages.add_reply(response))
    reply = await record_reply(read_reply(response, session), response, session)
    if not reply.calls:
        state = transition(state, thread=thread)
        again = await call_again(state, reply, session)
        return again or await answered(state, reply.thought, response.finish_reason, session)
    thought = Step(type="thought", content=reply.thought, iteration=state.iteration)
    steps = (*state.steps, thought) if reply.thought else state.steps
    return transition(state, thread=thread, status="acting", pending=reply.calls, steps=steps)


async def act(state: KernelState, session: Session) -> KernelState:
    """Run the calls of this turn; those that end the run come after all others, until one of them has.

    What does not run any more is no part of the turn.
    """
    last = [planned for planned in state.pending if ends_run(session, session.tools.meant(planned.call.name))]
    first = [planned for planned in state.pending if planned not in last]
    completed = await session.tools.call_all(first)
    for planned in last:
        if session.concluded:
            break
        completed.append(await session.tools.run(planned))
    asked = {planned.call.id: planned for planned in state.pending}
    ran = tuple(session.tools.changed.get(each.call_id, asked[each.call_id]) for each in completed)
    return transition(state, status="observing", pending=ran, completed=tuple(completed))


async def act_but(refused: Sequence[PlannedCall], why: str, state: KernelState, session: Session) -> KernelState:
    """Run the calls of this turn but these, which are answered with why; they are no part of a turn that ended the run."""
    if not refused:
        return await act(state, session)
    others = tuple(planned for planned in state.pending if planned not in refused)
    reached = await act(transition(state, pending=others), session)
    if session.concluded:
        return reached
    told = [await session.tools.refuse(planned, why) for planned in refused]
    return transition(reached, pending=(*reached.pending, *refused), completed=(*reached.completed, *told))


async def observe(state: KernelState, session: Session) -> KernelState:
    """Let the results join the thread, in the order in which they were asked for."""
    return await observe_as({}, state, session)


async def observe_as(told: dict[str, tuple[str, bool]], state: KernelState, session: Session) -> KernelState:
    """Do the same; `told` has, by call id, the words that take the place of a result, and whether they tell of a success."""
    turn = sorted(zip(state.pending, state.completed, strict=True), key=lambda pair: pair[0].position)
    messages = [
        await session.messages.add_result(planned, completed, told.get(completed.call_id, (None,))[0])
        for planned, completed in turn
    ]
    steps = [step for pair in turn for step in await steps_of(*pair, state, session, told.get(pair[1].call_id))]
    observed = transition(
        state,
        status="thinking",
        iteration=state.iteration + 1,
        thread=state.thread.add(*messages),
        steps=state.steps + tuple(steps),
        tools_used=state.tools_used | {completed.tool for _, completed in turn if completed.ok},
        pending=(),
        completed=(),
    )
    return observed if session.curator is None else await session.curator.after_turn(observed, turn)


REACT: Final = Kernel("react", {"thinking": think, "acting": act, "observing": observe})


async def take_answer(state: KernelState, text: str, finish_reason: str | None, session: Session) -> KernelState:
    """End with the model's text, unless there is a reason to ask once more."""
    reason = incomplete(finish_reason)
    if not text and reason is None:
        again = await ask_again(state, "empty-reply", EMPTY_REPLY, session)
        if again is not None:
            return again
    marker = _FINAL_ANSWER.search(text)
    if reason is not None:
        session.conclude(reason, text or None)
    elif marker is not None:
        session.conclude("final_answer", text[marker.end() :].strip())
    else:
        session.conclude("end_turn", text)
    return transition(state, iteration=state.iteration + 1)


async def call_again(state: KernelState, reply: Reply, session: Session) -> KernelState | None:
    """Return the state with a word to the model whose text looks like a call that does not run, else None."""
    nudges = state.meta.get(FAILED_CALLS, 0)
    if reply.problem is None or nudges >= MAX_FAILED_CALLS:
        return None
    counted = transition(state, meta={**state.meta, FAILED_CALLS: nudges + 1})
    return await ask_again(counted, NUDGE, reply.problem, session, severity="warn")


async def ask_again(
    state: KernelState, nudge: str, text: str, session: Session, *, severity: str = "info"
) -> KernelState | None:
    """Return the state with a word to the model, or None when a hook removed the word: asking again would change nothing."""
    thread = await session.messages.nudge(state.thread, nudge, text, severity=severity)
    return None if thread is state.thread else transition(state, thread=thread, iteration=state.iteration + 1)


async def steps_of(
    planned: PlannedCall,
    completed: ToolCallCompleted,
    state: KernelState,
    session: Session,
    told: tuple[str, bool] | None = None,
) -> list[Step]:
    """Return a call and what came of it as steps, as the hooks let them pass; `told` in place of what it says, and whether it is ok."""
    common: dict[str, Any] = {"iteration": state.iteration, "tool": completed.tool, "call_id": completed.call_id}
    arguments = as_text(planned.call.arguments if planned.call.arguments is not None else planned.call.raw_arguments)
    action = Step(type="action", content=arguments, **common)
    content, is_ok = told or (completed.observation(), completed.ok)
    observed = Step(type="observation", content=content, ok=is_ok, **common)
    if session.gate.hooks is None:
        return [action, observed]
    passed = await session.offer("observation.tool-result", observed, key=completed.call_id, **call_details(completed))
    return [action] if passed is SUPPRESS else [action, passed]
