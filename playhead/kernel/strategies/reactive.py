"""ReAct: think, act, observe, until the model answers (Yao et al. 2022, arXiv:2210.03629).

Native tool calls come first; a model without them may write its calls as JSON into its text.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from playhead.kernel.hooks import SUPPRESS
from playhead.kernel.loop import Kernel, run_kernel
from playhead.kernel.messages import call_details
from playhead.kernel.meta_tools import ends_run, missing_required_tools, visible_tools
from playhead.kernel.prompts import EMPTY_REPLY, missing_tools
from playhead.kernel.reply import read_reply, record_reply
from playhead.kernel.state import KernelState, Step, transition
from playhead.kernel.strategies.info import StrategyInfo
from playhead.trace.values import as_text

if TYPE_CHECKING:
    from playhead.kernel.session import Session
    from playhead.trace.events import ToolCallCompleted

MAX_REQUIRED_NUDGES: Final = 2
# fmt: off
INCOMPLETE: Final = {
    **dict.fromkeys(("length", "max_tokens", "model_context_window_exceeded"), "output_truncated"),
    **dict.fromkeys((
        "blocklist", "content_filter", "content_filtered", "guardrail_intervened", "prohibited_content", "recitation",
        "refusal", "safety", "spii",
    ), "output_filtered"),
}
# fmt: on
"""The words of providers for an answer that is not whole, and how the run ends with it."""
_FINAL_ANSWER: Final = re.compile(
    r"(?P<bold>\*{0,3})\bfinal answer\b\s*(?:(?P=bold)\s*:|:\s*(?P=bold))\s*", re.IGNORECASE
)
"""Also in bold, as models like to write it: `**Final Answer:** 42`."""


async def reactive(state: KernelState, session: Session) -> KernelState:
    """Run the ReAct loop to its end."""
    return await run_kernel(session.kernel, state, session)


async def think(state: KernelState, session: Session) -> KernelState:
    """Ask the model what to do next."""
    offered = visible_tools(session, state)
    purpose = "think" if session.inner is None else session.inner.label
    response = await session.model.complete(state.thread, session.specs(offered), purpose=purpose)
    thread = state.thread.add(await session.messages.add_reply(response))
    reply = await record_reply(read_reply(response, session), response, session)
    if not reply.calls:
        return await _answer(transition(state, thread=thread), reply.thought, response.finish_reason, session)
    thought = Step(type="thought", content=reply.thought, iteration=state.iteration)
    steps = (*state.steps, thought) if reply.thought else state.steps
    return transition(state, thread=thread, status="acting", pending=reply.calls, steps=steps)


async def act(state: KernelState, session: Session) -> KernelState:
    """Run the calls of this turn; those that end the run come after all others, until one of them has.

    What does not run any more is no part of the turn.
    """
    last = [planned for planned in state.pending if ends_run(session, planned.call.name)]
    first = [planned for planned in state.pending if planned not in last]
    completed = await session.tools.call_all(first)
    for planned in last:
        if not session.concluded:
            completed.append(await session.tools.run(planned))
    asked = {planned.call.id: planned for planned in state.pending}
    ran = tuple(session.tools.changed.get(each.call_id, asked[each.call_id]) for each in completed)
    return transition(state, status="observing", pending=ran, completed=tuple(completed))


async def observe(state: KernelState, session: Session) -> KernelState:
    """Let the results join the thread, in the order in which they were asked for."""
    turn = sorted(zip(state.pending, state.completed, strict=True), key=lambda pair: pair[0].position)
    messages = [await session.messages.add_result(planned, completed) for planned, completed in turn]
    steps = [step for _, completed in turn for step in await _steps(completed, state, session)]
    return transition(
        state,
        status="thinking",
        iteration=state.iteration + 1,
        thread=state.thread.add(*messages),
        steps=state.steps + tuple(steps),
        tools_used=state.tools_used | {completed.tool for _, completed in turn if completed.ok},
        pending=(),
        completed=(),
    )


REACT: Final = Kernel("react", {"thinking": think, "acting": act, "observing": observe})
STRATEGY: Final = StrategyInfo(reactive)


async def _answer(state: KernelState, text: str, finish_reason: str | None, session: Session) -> KernelState:
    """End with the model's text, unless there is a reason to ask once more."""
    missing = [] if session.inner else missing_required_tools(session, state)
    nudges = state.meta.get("required_nudges", 0)
    if missing and nudges < MAX_REQUIRED_NUDGES:
        meta = {**state.meta, "required_nudges": nudges + 1}
        again = await _ask_again(transition(state, meta=meta), "required-tools", missing_tools(missing), session)
        if again is not None:
            return again
    if not text and (finish_reason or "").lower() not in INCOMPLETE:
        again = await _ask_again(state, "empty-reply", EMPTY_REPLY, session)
        if again is not None:
            return again
    if incomplete := INCOMPLETE.get((finish_reason or "").lower()):
        session.conclude(incomplete, text or None)
    elif missing:
        session.conclude("required_tools_missing", text)
    elif marker := _FINAL_ANSWER.search(text):
        session.conclude("final_answer", text[marker.end() :].strip())
    else:
        session.conclude("end_turn", text)
    return transition(state, iteration=state.iteration + 1)


async def _ask_again(state: KernelState, nudge: str, text: str, session: Session) -> KernelState | None:
    """Return the state with a word to the model, or None when a hook removed the word: asking again would change nothing."""
    thread = await session.messages.nudge(state.thread, nudge, text)
    return None if thread is state.thread else transition(state, thread=thread, iteration=state.iteration + 1)


async def _steps(completed: ToolCallCompleted, state: KernelState, session: Session) -> list[Step]:
    common: dict[str, Any] = {"iteration": state.iteration, "tool": completed.tool, "call_id": completed.call_id}
    planned = next(each for each in state.pending if each.call.id == completed.call_id)
    arguments = as_text(planned.call.arguments if planned.call.arguments is not None else planned.call.raw_arguments)
    action = Step(type="action", content=arguments, **common)
    observed = Step(type="observation", content=completed.observation(), ok=completed.ok, **common)
    if session.hooks is None:
        return [action, observed]
    passed = await session.offer("observation.tool-result", observed, key=completed.call_id, **call_details(completed))
    return [action] if passed is SUPPRESS else [action, passed]
