"""Phases as hook points: what a hook before, after or at an error of a phase makes of the run.

A phase with nothing to do costs nothing and writes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, cast

from playhead.errors import ReplayError, RunEndedError, TraceWriteError
from playhead.kernel.hooks import PHASE_OF, Resume, Skip, Stop, Terminate
from playhead.kernel.lifecycle.termination import Termination
from playhead.kernel.state import KernelState, Thread, transition
from playhead.trace.events import ErrorInfo, HookFailed, HookFired, KillswitchFired
from playhead.trace.values import JsonValue, repair_json

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from playhead.kernel.hooks import PhaseAnswer, PhaseName, Recovery, Said, Timing
    from playhead.kernel.session import Hooks, Session

RECOVERABLE: Final = ("thread", "output", "decision_log", "meta")
"""The fields of a state that an error hook may set."""


async def run_phase(
    phase: PhaseName,
    body: Callable[[KernelState, Session], Awaitable[KernelState]],
    state: KernelState,
    session: Session,
) -> KernelState:
    """Run a phase of the loop at which hooks are asked, with what they say before and after it, and at an error in it.

    Raises:
        RunEndedError: a hook ended the agent.
    """
    turns, session.at.turns = session.at.turns, state.iteration if phase == "think" else session.at.turns
    answer = await steer(phase, "before", state, session)
    if isinstance(answer, Skip):
        session.at.turns = turns
        return await _skip(phase, state, session, answer.reason)
    if phase != "observe":  # what came back joins the thread, whatever ended the agent meanwhile
        session.require_running()
    session.at.turns = turns
    try:
        reached = await body(state, session)
    except Exception as error:
        recovered = await recover(phase, state, session, error)
        if recovered is None:
            raise
        return await _close_turn(state, recovered, session, f"the turn failed: {type(error).__name__}")
    answer = await steer(phase, "after", reached, session)
    if isinstance(answer, Skip) and reached.status in ("acting", "observing"):
        session.at.phase = PHASE_OF[reached.status]
        return await _skip(session.at.phase, reached, session, answer.reason)
    return reached


async def visit(phase: PhaseName, state: KernelState | None, session: Session) -> None:
    """Ask the hooks of a phase in which the kernel itself has nothing to do."""
    if session.gate.hooks is None or not session.gate.hooks.at_phase(phase) or state is None:
        return
    session.at.phase = phase
    if not isinstance(await steer(phase, "before", state, session), Skip):
        await steer(phase, "after", state, session)


async def steer(phase: PhaseName, timing: Timing, state: KernelState, session: Session) -> PhaseAnswer | None:
    """Ask the hooks of a phase and do what they say to the end of the run; the answer, if that is for the caller."""
    hooks = cast("Hooks", session.gate.hooks)
    said = await hooks.ask(session, phase, timing, state)
    if said is None:
        return None
    if isinstance(said.answer, (Stop, Terminate)):
        before = session.termination
        # Without one it is the newest result; those of this turn may not have been read yet.
        output = state.output if before is None or before.output is None else before.output
        if _end_by_hook(session, said, output):
            _record_steering(session, said, phase, timing)
        return None
    if isinstance(said.answer, Resume) and not session.ending.overrule(None):
        ended = session.termination
        late = (
            f"it returned Resume, but the run has ended by {ended.reason if ended else 'something else'}, which stands"
        )
        session.emit_last(HookFailed(hook=said.hook, where=f"{timing} {phase}", error=late))
        return None
    _record_steering(session, said, phase, timing)
    return said.answer


async def recover(phase: PhaseName, state: KernelState, session: Session, error: Exception) -> KernelState | None:
    """Return the state from which an error hook wants to go on, or None.

    The end of the run, an event that cannot be written and a replay that left its recording are nobody's to ignore.
    """
    hooks = session.gate.hooks
    if hooks is None or isinstance(error, (RunEndedError, TraceWriteError, ReplayError)) or not hooks.at_phase(phase):
        return None
    recovery = await hooks.ask_after_error(session, phase, state, error)
    if recovery is None or session.ended:
        return None
    changes = state_changes(state, recovery)
    session.emit(
        HookFired(
            hook=recovery.hook,
            phase=phase,
            timing="on-error",
            action="recover",
            reason=recovery.reason or None,
            changes=changes,
        )
    )
    return apply_changes(state, changes)


def state_changes(state: KernelState, recovery: Recovery) -> dict[str, Any]:
    """Return, as JSON, what of a state an error hook set; messages by their ids."""
    given = recovery.state
    found: dict[str, Any] = {}
    if given.thread.ranges != state.thread.ranges:
        known = {message.id for message in state.thread.messages}
        found["thread"] = [message.id for message in given.thread.messages if message.id in known]
    for name in RECOVERABLE[1:]:
        value = repair_json(_plain(getattr(given, name)))
        if value != repair_json(_plain(getattr(state, name))):
            found[name] = value
    return found


def apply_changes(state: KernelState, changes: dict[str, Any]) -> KernelState:
    """Return the state with what `state_changes` found."""
    fields = dict(changes)
    if "thread" in fields:
        known = {message.id: message for message in state.thread.messages}
        fields["thread"] = Thread().add(*(known[number] for number in fields["thread"] if number in known))
    if "decision_log" in fields:
        fields["decision_log"] = tuple(map(str, fields["decision_log"]))
    return transition(state, **fields)


async def _skip(phase: PhaseName, state: KernelState, session: Session, reason: str) -> KernelState:
    """Leave the rest of the turn out. The thread stays in order: every call in it gets an answer."""
    why = f"skipped{f': {reason}' if reason else ''}"
    if phase == "act":
        return await _close_turn(state, state, session, why)
    if phase == "observe":
        error = ErrorInfo(type="Skipped", message=why)
        told = [each.model_copy(update={"ok": False, "result": None, "error": error}) for each in state.completed]
        session.gate.rewritten.update(each.call_id for each in told)
        for planned, completed in sorted(zip(state.pending, told, strict=True), key=lambda pair: pair[0].position):
            state = transition(state, thread=state.thread.add(await session.messages.add_result(planned, completed)))
    return transition(
        state, status="thinking", iteration=max(state.iteration, session.iteration or 0) + 1, pending=(), completed=()
    )


async def _close_turn(before: KernelState, state: KernelState, session: Session, why: str) -> KernelState:
    """Return the state at the next turn; calls that are open in the thread are answered with `why`."""
    open_calls = before.pending if before.status in ("acting", "observing") else ()
    done = {each.call_id: each for each in before.completed}
    thread = state.thread
    asked = {call.id for message in thread.messages for call in message.tool_calls}
    for planned in open_calls:
        completed = done.get(planned.call.id) or session.tools.ended.get(planned.call.id)
        if completed is None:
            completed = await session.tools.refuse(planned, why)
        if planned.source == "native" and planned.call.id not in asked:
            continue  # an error hook took the question out of the thread
        thread = thread.add(await session.messages.add_result(planned, completed))
    return transition(
        state, status="thinking", iteration=before.iteration + 1, thread=thread, pending=(), completed=(), error=None
    )


def _plain(value: Any) -> Any:  # noqa: ANN401 - a field of the state
    return list(value) if isinstance(value, tuple) else value


def _end_by_hook(session: Session, said: Said, output: JsonValue) -> bool:
    """End the agent because a phase hook says so, unless it has ended already; an answer of the model is overruled."""
    answer = said.answer
    assert isinstance(answer, (Stop, Terminate))  # noqa: S101 - asked by the caller
    failed = isinstance(answer, Terminate)
    termination = Termination(
        answer.terminated_by,
        repair_json(output),
        source=f"killswitch:{answer.switch}" if answer.switch else f"hook:{said.hook}",
        failed=failed,
        error=(answer.reason or said.hook) if failed else None,
        because=answer.reason or None,
    )
    return session.ending.end(termination) or session.ending.overrule(termination)


def _record_steering(session: Session, said: Said, phase: PhaseName, timing: Timing) -> None:
    """Record that a phase hook steers the run."""
    answer = said.answer
    ends: dict[str, Any] = {}
    if isinstance(answer, (Stop, Terminate)):
        ends = {"switch": answer.switch, "terminated_by": answer.terminated_by}
    action = type(answer).__name__.lower()
    reason = answer.reason or None
    session.emit(HookFired(hook=said.hook, phase=phase, timing=timing, action=action, reason=reason, **ends))
    if ends.get("switch"):
        trigger: Literal["stop", "terminate"] = "stop" if isinstance(answer, Stop) else "terminate"
        session.emit(KillswitchFired(switch=ends["switch"], reason=answer.reason, on_trigger=trigger))
