"""Phases as hook points: hooks before, after and at an error of a phase.

A phase with nothing to do costs nothing and writes nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

from playhead.errors import ReplayError, RunEndedError, TraceWriteError
from playhead.kernel.guards import termination_of
from playhead.kernel.hooks import PHASE_OF, Answer, Nudge, Resume, Skip, Stop, SwitchTo, Terminate
from playhead.kernel.state import KernelState, Thread, transition
from playhead.trace.events import HookFailed, HookFired, KillswitchFired
from playhead.trace.values import repair_json

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from playhead.kernel.hooks import HookReply, PhaseName, Recover, Timing
    from playhead.kernel.session import Session

RECOVERABLE: Final = ("thread", "output", "decision_log", "meta")
"""The fields of a state that an error hook may set."""


class GivenUpError(RunEndedError):
    """Another strategy takes over. To a strategy it looks like the end of the run; it must not catch it."""

    def __init__(self, state: KernelState, answer: SwitchTo) -> None:
        super().__init__(f"the strategy is given up: {answer.why}")
        self.state = state
        self.answer = answer


async def run_phase(
    phase: PhaseName,
    body: Callable[[KernelState, Session], Awaitable[KernelState]],
    state: KernelState,
    session: Session,
) -> KernelState:
    """Run a phase of the loop with its hooks: before it, after it, and at an error in it.

    Raises:
        RunEndedError: a hook ended the agent.
        GivenUpError: a hook wants another strategy to take over.
    """
    reply = await steer(phase, "before", state, session)
    state = cast("KernelState", session.state)
    if reply is not None and isinstance(reply.answer, SwitchTo):
        raise GivenUpError(state, reply.answer)
    if reply is not None:
        session.at.count_turn()
        return await _skip(phase, state, session, cast("Skip", reply.answer).reason)
    if phase != "observe":  # results join the thread, even if the agent has ended meanwhile
        session.require_running()
    session.at.count_turn()
    try:
        reached = await body(state, session)
    except Exception as error:
        recovered = await recover(phase, state, session, error)
        if recovered is None:
            raise
        return await _close_turn(state, recovered, session, f"the turn failed: {type(error).__name__}")
    reply = await steer(phase, "after", reached, session)
    if reply is not None and reached.status in ("acting", "observing"):
        skipped = PHASE_OF[reached.status]
        session.at.enter_phase(skipped)
        return await _skip(skipped, reached, session, cast("Skip", reply.answer).reason)
    return reached


async def visit(phase: PhaseName, state: KernelState, session: Session) -> None:
    """Call the hooks of a phase without work of the kernel."""
    if await steer(phase, "before", state, session) is None:
        await steer(phase, "after", cast("KernelState", session.state), session)


async def steer(phase: PhaseName, timing: Timing, state: KernelState, session: Session) -> HookReply | None:
    """Call the hooks of a phase; end the run if they require it, and return an answer that is for the caller.

    `session.state` is the state after them.
    """
    session.reach(state)
    hooks = session.gate.hooks
    if hooks is None or not hooks.at_phase(phase):
        return None
    session.at.enter_phase(phase)
    reply = await hooks.ask(session, phase, timing, state)
    if reply is None:
        return None
    if isinstance(reply.answer, (Stop, Terminate)):
        end_by_hook(reply, phase, timing, cast("KernelState", session.state), session)
        return None
    if not isinstance(reply.answer, (Resume, Nudge)):  # the caller knows whether the model can be told
        record_steering(reply, phase, timing, session)
    return reply


async def is_taken_up(reply: HookReply, phase: PhaseName, timing: Timing, session: Session) -> bool:
    """Apply an answer after which the next hook still runs: a nudge before `think`, another output."""
    answer, state = reply.answer, cast("KernelState", session.state)
    if isinstance(answer, Nudge) and phase == "think":
        record_steering(reply, phase, timing, session)
        thread = await session.messages.nudge(state.thread, answer.name, answer.text, severity=answer.severity)
        session.reach(transition(state, thread=thread))
        return True
    if not isinstance(answer, Answer):
        return False
    ended, output = session.termination, repair_json(answer.value)
    if ended is None or not session.ending.overrule(replace(ended, output=output)):
        came_late(reply, phase, timing, session)
    elif output != ended.output:
        record_steering(reply, phase, timing, session)
        session.reach(transition(state, output=output))
    return True


def end_by_hook(reply: HookReply, phase: PhaseName, timing: Timing, state: KernelState, session: Session) -> None:
    """End the agent for a phase hook, unless it has ended; this replaces the model's answer."""
    answer, before = cast("Stop | Terminate", reply.answer), session.termination
    # Without an answer the output is the newest result; those of this turn may not be in the thread yet.
    output = state.output if before is None or before.output is None else before.output
    role = "killswitch" if answer.switch else "policy" if reply.policy else "hook"
    termination = termination_of(answer.switch or reply.hook, answer, repair_json(output), role)
    if session.ending.end(termination, overrule=True):
        record_steering(reply, phase, timing, session)


def came_late(reply: HookReply, phase: PhaseName, timing: Timing, session: Session) -> None:
    """Record that a hook wanted to change the answer of a run that has ended in another way."""
    ended = session.termination
    why = f"the run has ended by {ended.reason if ended else 'something else'}, which stands"
    error = f"it returned {type(reply.answer).__name__}, but {why}"
    session.emit(HookFailed(hook=reply.hook, where=f"{timing} {phase}", error=error, policy=reply.policy))


def record_steering(
    reply: HookReply, phase: PhaseName, timing: Timing, session: Session, changes: dict[str, Any] | None = None
) -> None:
    """Record that a phase hook steers the run; `changes` are an error hook's changes to the state."""
    answer, hook = reply.answer, reply.hook
    fields: dict[str, Any] = {"policy": reply.policy, "changes": changes}
    reason, action = getattr(answer, "reason", ""), type(answer).__name__.lower()
    match answer:
        case Stop() | Terminate():
            fields |= {"switch": answer.switch, "terminated_by": answer.terminated_by}
        case Nudge(otherwise=ends):
            reason = answer.text
            fields["changes"] = {"name": answer.name, "severity": answer.severity}
            if ends is not None:
                kind = type(ends).__name__.lower()
                fields["changes"]["otherwise"] = [kind, ends.reason, ends.terminated_by]
        case Answer():
            fields["changes"] = {"output": repair_json(answer.value)}
        case SwitchTo():
            strategy: Any = answer.strategy
            reason, action = answer.why, "switch-to"
            fields["changes"] = {"strategy": strategy.name, "settings": strategy.recorded()}
    session.emit(HookFired(hook=hook, phase=phase, timing=timing, action=action, reason=reason or None, **fields))
    if fields.get("switch"):
        trigger: Any = "stop" if isinstance(answer, Stop) else "terminate"
        session.emit(KillswitchFired(switch=fields["switch"], reason=reason, on_trigger=trigger))


async def recover(phase: PhaseName, state: KernelState, session: Session, error: Exception) -> KernelState | None:
    """Return the state in which an error hook continues, or None.

    A hook cannot ignore the end of the run, an event that cannot be written, or a diverged replay.
    """
    hooks = session.gate.hooks
    if hooks is None or isinstance(error, (RunEndedError, TraceWriteError, ReplayError)) or not hooks.at_phase(phase):
        return None
    reply = await hooks.ask(session, phase, "on-error", state, error)
    if reply is None or session.ended:
        return None
    changes = state_changes(state, cast("Recover", reply.answer).state)
    record_steering(reply, phase, "on-error", session, changes)
    return apply_changes(state, changes)


def state_changes(state: KernelState, given: KernelState) -> dict[str, Any]:
    """Return an error hook's changes to a state, as JSON; messages by their ids."""
    found: dict[str, Any] = {}
    if given.thread.ranges != state.thread.ranges:
        known = {message.id for message in state.thread.messages}
        found["thread"] = [message.id for message in given.thread.messages if message.id in known]
    for name in RECOVERABLE[1:]:
        value = repair_json(getattr(given, name))
        if value != repair_json(getattr(state, name)):
            found[name] = value
    return found


def apply_changes(state: KernelState, changes: dict[str, Any]) -> KernelState:
    """Return the state with the changes of `state_changes`."""
    fields = dict(changes)
    if "thread" in fields:
        known = {message.id: message for message in state.thread.messages}
        fields["thread"] = Thread().add(*(known[number] for number in fields["thread"] if number in known))
    if "decision_log" in fields:
        fields["decision_log"] = tuple(map(str, fields["decision_log"]))
    return transition(state, **fields)


async def _skip(phase: PhaseName, state: KernelState, session: Session, reason: str) -> KernelState:
    """Skip the rest of the turn. Every call in the thread still gets an answer."""
    why = f"skipped{f': {reason}' if reason else ''}"
    if phase == "act":
        return await _close_turn(state, state, session, why)
    if phase == "observe":
        for planned, completed in sorted(
            zip(state.pending, state.completed, strict=True), key=lambda pair: pair[0].position
        ):
            message = await session.messages.add_result(planned, completed, f"error: {why}")
            state = transition(state, thread=state.thread.add(message))
    return transition(
        state, status="thinking", iteration=max(state.iteration, session.iteration or 0) + 1, pending=(), completed=()
    )


async def _close_turn(before: KernelState, state: KernelState, session: Session, why: str) -> KernelState:
    """Return the state at the next turn; open calls in the thread are answered with `why`."""
    open_calls = before.pending if before.status in ("acting", "observing") else ()
    done = {each.call_id: each for each in before.completed}
    thread = state.thread
    requested = {call.id for message in thread.messages for call in message.tool_calls}
    for planned in open_calls:
        completed = done.get(planned.call.id) or session.tools.ended.get(planned.call.id)
        if completed is None:
            completed = await session.tools.refuse(planned, why)
        if planned.source == "native" and planned.call.id not in requested:
            continue  # an error hook took the question out of the thread
        thread = thread.add(await session.messages.add_result(planned, completed))
    return transition(
        state, status="thinking", iteration=before.iteration + 1, thread=thread, pending=(), completed=(), error=None
    )
