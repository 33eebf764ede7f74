"""The phases of ReAct, from which strategies build their loops: think, act, observe, until the model answers (Yao et al. 2022, arXiv:2210.03629).

This module also reads replies: the thought, the calls, and the reasons for them. Native tool calls come first; a model without
them may write its calls as JSON in its text.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from playhead.kernel.hooks import SUPPRESS
from playhead.kernel.loop import Kernel
from playhead.kernel.messages import call_details
from playhead.kernel.meta_tools import ends_run, is_meta, visible_tools
from playhead.kernel.model_port import TEXT_CALL
from playhead.kernel.rationale import read_rationales, strip_rationales
from playhead.kernel.repair.lenient_json import read_call
from playhead.kernel.repair.repair import NUDGE
from playhead.kernel.state import KernelState, PlannedCall, Step, transition
from playhead.trace.events import RationaleMissing, Thought
from playhead.trace.format import incomplete
from playhead.trace.values import as_text, to_json

if TYPE_CHECKING:
    from playhead.kernel.repair.text_calls import TextCall
    from playhead.kernel.session import Session
    from playhead.trace.events import LlmResponded, ToolCallCompleted
    from playhead.trace.types import ToolCall


CUT_OFF: Final = frozenset({"length", "max_tokens", "model_context_window_exceeded"})
"""The finish reasons of providers for a reply that was cut off."""
_THINKING: Final = re.compile(r"\s*<(think|thinking)>.*?</\1>", re.DOTALL)
"""A model's thinking before its reply, if its server leaves it in the text."""
EMPTY_REPLY: Final = "Your last reply was empty. Call a tool, or reply with the answer."
FAILED_CALLS: Final = "failed_calls_in_text"
MAX_FAILED_CALLS: Final = 2
"""The number of replies in a run that resemble a call, cannot run, and are sent back; the next one is the answer."""
_FINAL_ANSWER: Final = re.compile(
    r"(?P<bold>\*{0,3})\bfinal answer\b\s*(?:(?P=bold)\s*:|:\s*(?P=bold))\s*", re.IGNORECASE
)
"""Also in bold, as models like to write it: `**Final Answer:** 42`."""


Answered = Callable[[KernelState, str, str | None, "Session"], Awaitable[KernelState]]
"""Handles a reply without a call: takes the state, the text and the finish reason."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, read."""

    thought: str
    """The text without rationale blocks and without calls."""
    calls: tuple[PlannedCall, ...]
    """The requested calls, each with its place in the turn and its stated reason."""
    problem: str | None = None
    """The nudge for a text that resembles a call but cannot run."""
    thinking: str = ""
    """Thinking that a strategy split off, together with the provider's; recorded as a separate step."""


def read_reply(response: LlmResponded, session: Session) -> Reply:
    """Read an answer: native calls, or if there are none, the calls in its text."""
    text = strip_rationales(response.text)
    reasons = read_rationales(response.text, response.thinking)
    cut_off = (response.finish_reason or "").lower() in CUT_OFF
    if response.tool_calls or not session.toolset:
        native = []
        for number, call in enumerate(response.tool_calls, 1):
            position, reason = session.at.take_position(), reasons.get(number)
            native.append(PlannedCall(call, position, request=response.request, rationale=reason, cut_off=cut_off))
        return Reply(text, tuple(native))
    from playhead.kernel.repair.text_calls import read_text  # noqa: PLC0415 - only for replies without native calls

    readable = strip_rationales(response.text, readable=True)
    thinking = _THINKING.match(readable)
    thought, readable = (readable[: thinking.end()], readable[thinking.end() :]) if thinking else ("", readable)
    in_text = session.header.tool_format == "text"
    found = read_text(readable, session.offered_specs(), in_text=in_text, strict=cut_off or not session.header.repair)
    calls = tuple(
        PlannedCall(
            call=_tool_call(f"{TEXT_CALL}{response.request}_{number}", call),
            position=session.at.take_position(),
            source="text",
            request=response.request,
            rationale=call.rationale or reasons.get(number),
            written=call.broken,
        )
        for number, call in enumerate(found.calls, 1)
    )
    return Reply(f"{thought}\n{found.rest}".strip() if calls else text, calls, None if cut_off else found.problem)


def _tool_call(call_id: str, call: TextCall) -> ToolCall:
    made = read_call(call_id, call.name, call.arguments)
    return made if made.arguments is None else made.model_copy(update={"arguments": to_json(made.arguments)})


async def record_reply(reply: Reply, response: LlmResponded, session: Session) -> Reply:
    """Record the model's thoughts, and missing reasons; return the reply as changed by hooks."""
    request = response.request
    stated = {planned.call.id for planned in reply.calls if planned.rationale is not None}
    if stated and session.gate.hooks is not None and session.gate.hooks.wants("decision.rationale"):
        reply = replace(reply, calls=tuple([await with_offered_rationale(each, session) for each in reply.calls]))
    if reply.calls and reply.thought:
        is_recorded = reply.thought == response.text and request not in session.gate.rewritten
        session.emit(Thought(request=request, text=None if is_recorded else reply.thought))
    for planned in reply.calls:
        if session.header.rationale and planned.call.id not in stated and not is_meta(session, planned.call.name):
            path: Literal["native", "text"] = "text" if planned.source == "text" else "native"
            session.emit(RationaleMissing(path=path, call_id=planned.call.id, tool=planned.call.name))
    return reply


async def with_offered_rationale(planned: PlannedCall, session: Session) -> PlannedCall:
    """Return a call with its reason as changed by hooks."""
    if planned.rationale is None:
        return planned
    call = planned.call
    offered = await session.offer("decision.rationale", planned.rationale, key=call.id, tool=call.name, call_id=call.id)
    return replace(planned, rationale=None if offered is SUPPRESS else offered)


async def think(
    state: KernelState,
    session: Session,
    answered: Answered | None = None,
    *,
    read: Callable[[LlmResponded, Session], Reply] = read_reply,
    purpose: str | None = None,
) -> KernelState:
    """Ask the model what to do next; a request with a purpose of its own offers no tools.

    `read` interprets its answer; `answered` handles an answer without a call, by default `take_answer`.
    """
    tools = visible_tools(session, state) if purpose is None else ()
    response = await session.model.complete(state.thread, tools, purpose=purpose)
    thread = state.thread.add(await session.messages.add_reply(response))
    reply = await record_reply(read(response, session), response, session)
    steps = state.steps
    if reply.thinking:
        steps += (Step(type="thought", content=reply.thinking, iteration=state.iteration),)
    if not reply.calls:
        state = transition(state, thread=thread, steps=steps)
        again = await call_again(state, reply, session)
        return again or await (answered or take_answer)(state, reply.thought, response.finish_reason, session)
    if reply.thought:
        steps += (Step(type="thought", content=reply.thought, iteration=state.iteration),)
    return transition(state, thread=thread, status="acting", pending=reply.calls, steps=steps)


async def act(state: KernelState, session: Session) -> KernelState:
    """Run the calls of this turn; those that end the run come last, until one of them succeeds.

    Calls that no longer run are not part of the turn.
    """
    tools = session.tools
    first: list[PlannedCall] = []
    last: list[PlannedCall] = []
    for planned in state.pending:
        (last if ends_run(session, tools.meant(planned.call.name)) else first).append(planned)
    completed = await tools.call_all(first)
    for planned in last:
        if session.concluded:
            break
        completed.append(await tools.run(planned))
    ran = state.pending
    if last or tools.changed or len(completed) < len(ran):
        by_id = {planned.call.id: planned for planned in ran}
        ran = tuple([tools.changed.get(each.call_id) or by_id[each.call_id] for each in completed])
    return transition(state, status="observing", pending=ran, completed=tuple(completed))


async def observe(
    state: KernelState, session: Session, replaced: Mapping[str, tuple[str, bool]] | None = None
) -> KernelState:
    """Add the results to the thread, in the order of their calls.

    `replaced` has, by call id, the text that replaces a result, and whether it is a success.
    """
    replaced = replaced or {}
    turn, messages, steps = list(zip(state.pending, state.completed, strict=True)), [], []
    if len(turn) > 1:
        turn.sort(key=lambda pair: pair[0].position)
    for planned, completed in turn:
        words = replaced.get(completed.call_id)
        messages.append(await session.messages.add_result(planned, completed, words and words[0]))
    for planned, completed in turn:
        action, observed = _steps_of(planned, completed, state, replaced.get(completed.call_id))
        if session.gate.hooks is not None:
            details = call_details(completed)
            observed = await session.offer("observation.tool-result", observed, key=completed.call_id, **details)
        steps += [action] if observed is SUPPRESS else [action, observed]
    seen = transition(
        state,
        status="thinking",
        iteration=state.iteration + 1,
        thread=state.thread.add(*messages),
        steps=state.steps + tuple(steps),
        tools_used=state.tools_used.union([completed.tool for _, completed in turn if completed.ok]),
        pending=(),
        completed=(),
    )
    curator = session.messages.curator
    return seen if curator is None else await curator.after_turn(seen)


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
    """Return the state with a nudge if the text resembles a call that cannot run, otherwise None."""
    nudges = state.meta.get(FAILED_CALLS, 0)
    if reply.problem is None or nudges >= MAX_FAILED_CALLS:
        return None
    counted = transition(state, meta={**state.meta, FAILED_CALLS: nudges + 1})
    return await ask_again(counted, NUDGE, reply.problem, session, severity="warn")


async def ask_again(
    state: KernelState, nudge: str, text: str, session: Session, *, severity: str = "info"
) -> KernelState | None:
    """Return the state with a nudge, or None if a hook removed it, because asking again would change nothing."""
    thread = await session.messages.nudge(state.thread, nudge, text, severity=severity)
    return None if thread is state.thread else transition(state, thread=thread, iteration=state.iteration + 1)


def _steps_of(
    planned: PlannedCall, completed: ToolCallCompleted, state: KernelState, replaced: tuple[str, bool] | None
) -> tuple[Step, Any]:
    """Return a call and its result as steps; `replaced` replaces the text of the result and whether it is ok."""
    tool, call_id, call = completed.tool, completed.call_id, planned.call
    arguments = as_text(call.arguments if call.arguments is not None else call.raw_arguments)
    content, is_ok = replaced or (completed.observation(), completed.ok)
    action = Step("action", arguments, state.iteration, tool, call_id)
    return action, Step("observation", content, state.iteration, tool, call_id, is_ok)
