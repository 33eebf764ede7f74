"""Guards: killswitches at the ports. They see each request and call before it happens, and may prevent it.

A guard belongs to one run of one agent, and to all agents below that one: whatever passes their ports passes it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from playhead.errors import RunEndedError, UsageError, nearest
from playhead.kernel.hooks import Refuse, Stop, Terminate, Wait
from playhead.kernel.lifecycle.termination import Termination
from playhead.kernel.outcome import Outcome
from playhead.trace.events import KillswitchFired
from playhead.trace.header import HookInfo

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from playhead.kernel.models.base import Model
    from playhead.kernel.session import Guard, Hooks, Session
    from playhead.kernel.state import PlannedCall
    from playhead.trace.events import EventBase
    from playhead.trace.header import SourceInfo
    from playhead.trace.types import Request, ToolSpec
    from playhead.trace.values import JsonValue


def hook_info(role: str, name: str, settings: dict[str, Any]) -> HookInfo:
    """Return the header's record of a block with these settings."""
    return HookInfo(
        role=role, at=", ".join(f"{key}={value!r}" for key, value in settings.items()), name=name, settings=settings
    )


class GuardMaker(NamedTuple):
    """A registered killswitch: makes the guard of each run."""

    name: str
    """The killswitch's name."""
    make: Callable[[Session], Guard]
    """Returns the guard of an agent's run."""
    settings: dict[str, Any]
    """Its arguments as JSON, for the header of the trace."""
    check: Callable[[Model], Awaitable[object]] | None = None
    """Called with every model of the agent and of those below it, before the run; raises `UsageError`."""
    tools: tuple[str, ...] = ()
    """Names of the tools that it guards, `*` for all; an unknown name is an error."""
    approver: Callable[..., Any] | None = None
    """The caller's function that approves calls of its tools."""

    def info(self) -> HookInfo:
        """Return the killswitch, for the header of the trace."""
        return hook_info("guard", self.name, self.settings)

    def source(self) -> SourceInfo:
        """Return the fingerprint of its approver."""
        from playhead.kernel.sources import source_info  # noqa: PLC0415 - only for agents

        return source_info("killswitch", self.name, *([] if self.approver is None else [self.approver]))


class Composition(NamedTuple):
    """The hooks, guards and fallbacks of an agent: what its header cannot hold."""

    hooks: Hooks | None = None
    """The hooks at the chokepoints."""
    guards: Sequence[Callable[[Session], Guard]] = ()
    """Make the guards at the ports."""
    fallbacks: Sequence[Model] = ()
    """The fallback models."""


LOOK_S: Final = 0.1
"""Seconds after which a waiting request checks whether its run has ended."""
Place = Literal["request", "response", "call", "approval", "result"]
"""The point at which a guard ends an agent: before a request or call, or after an event that it received."""


def fire(guard: Guard, session: Session, answer: Stop | Terminate, at: Place, **where: Any) -> bool:  # noqa: ANN401
    """End the guard's agent, and record it where it happened; return False if the agent had ended."""
    termination = termination_of(guard.name, answer)
    fired = _fired(guard.session, guard.name, termination, at=at, **where)
    return session.emit_ending(fired, lambda record: guard.session.ending.end(termination, record))


def interrupt(session: Session, switch: str, answer: Stop | Terminate) -> bool:
    """End an agent for a killswitch outside its loop, from any thread; return False if the agent had ended."""
    termination = termination_of(switch, answer)
    return session.interrupt(termination, _fired(session, switch, termination, at="outside"))


def _fired(ends: Session, switch: str, termination: Termination, **where: Any) -> KillswitchFired:  # noqa: ANN401
    return KillswitchFired(
        switch=switch,
        reason=termination.because or "",
        on_trigger="terminate" if termination.failed else "stop",
        terminated_by=termination.reason,
        ends=ends.owner,
        **where,
    )


def termination_of(
    name: str, answer: Stop | Terminate, output: JsonValue = None, role: str = "killswitch"
) -> Termination:
    """Return the termination for the answer of a killswitch, a policy or a hook."""
    failed = isinstance(answer, Terminate)
    error = (answer.reason or name) if failed else None
    return Termination(
        answer.terminated_by,
        output,
        source=f"{role}:{name}",
        failed=failed,
        error=error,
        because=answer.reason or None,
    )


def own_guards(session: Session) -> list[Guard]:
    """Return the guards of this agent itself, without those of the agents above it."""
    return [guard for guard in session.gate.guards if guard.session is session]


async def admit(session: Session, request: Request) -> Request:
    """Return the request as all guards admit it; wait while one of them requires it.

    All or nothing: a waiting request holds no reservation that another one waits for.

    Raises:
        RunEndedError: a guard ended an agent instead.
    """
    await in_time(session)
    try:
        for guard in session.gate.guards:
            await guard.measure(session, request)
        admitted = await _let_pass(session, request)
        for guard in session.gate.guards:
            for event in guard.admitted(session, admitted):
                session.emit(event)
    except BaseException:  # it is not sent
        withdraw(session, request)
        raise
    return admitted


async def _let_pass(session: Session, request: Request) -> Request:
    """Return the request once all guards admit it."""
    import anyio  # noqa: PLC0415 - only for runs

    while True:
        session.require_running()
        admitted, waiting = ask_all(session, request)
        if waiting is None:
            return admitted
        try:
            with anyio.move_on_after(LOOK_S):  # its run may end meanwhile
                await waiting.until.wait()
        finally:
            waiting.undo()


def withdraw(session: Session, request: Request) -> None:
    """Undo the admission of a request: it is not sent."""
    for guard in session.gate.guards:
        guard.withdraw_request(session, request)


def ask_all(session: Session, request: Request) -> tuple[Request, Wait | None]:
    """Ask all guards once: return the request as they admit it, or the request as it is and what one of them waits for."""
    passed: list[Guard] = []
    for guard in session.gate.guards:
        answer: Request | Stop | Terminate | Wait | None = None
        try:
            answer = guard.admit_request(session, request)
        finally:
            if answer is None or isinstance(answer, (Stop, Terminate, Wait)):
                for each in passed:
                    each.withdraw_request(session, request)
        if not isinstance(answer, (Stop, Terminate, Wait)):
            request = answer
            passed.append(guard)
            continue
        if isinstance(answer, Wait):
            return request, answer
        fire(guard, session, answer, "request", request=request.number, attempt=request.attempt)
        raise RunEndedError(f"{guard.name} did not let the request pass")
    return request, None


async def before_call(session: Session, planned: PlannedCall) -> None:
    """Delay a call as long as its guards require."""
    await in_time(session)
    for guard in session.gate.guards:
        await guard.before_call(session, planned)


async def in_time(session: Session) -> None:
    """Return unless the agent's time is up; else it is ended, and cancelled here."""
    for guard in session.gate.guards:
        guard.look()
    if session.gate.guards and session.cut_off:
        import anyio  # noqa: PLC0415 - only for runs

        await anyio.sleep_forever()


def stopped(session: Session, planned: PlannedCall, spec: ToolSpec) -> Outcome | None:
    """Return the outcome of a call that a guard refuses, or None; the guard may have ended an agent."""
    for guard in session.gate.guards:
        answer = guard.admit_call(session, planned, spec)
        if isinstance(answer, Refuse):
            return Outcome.refusal("Refused", answer.why)
        if answer is not None:
            fire(guard, session, answer, "call", call_id=planned.call.id)
            why = f"{guard.name} ended the run: {answer.reason}"
            return replace(Outcome.failure("Stopped", why), ended="stopped")
    return None


def asking(session: Session, planned: PlannedCall, spec: ToolSpec) -> list[Guard | None]:
    """Return what requires approval of a call: guards, each with its own approver, and None for the tool itself.

    Without an approver of the agent, a guard's approver decides for the tool, too.
    """
    guards = [guard for guard in session.gate.guards if guard.wants_approval(session, planned, spec)]
    alone = spec.requires_approval and (session.gate.approver is not None or not guards)
    return [*([None] if alone else ()), *guards]


def tell(session: Session, event: EventBase, at: Place, **where: Any) -> None:  # noqa: ANN401 - fields of the event
    """Tell the guards how a request or a call ended."""
    for guard in session.gate.guards:
        answer = guard.heard(session, event)
        if answer is not None:
            fire(guard, session, answer, at, **where)


async def check_guards(makers: Iterable[GuardMaker], models: Iterable[Model], tools: Iterable[str]) -> None:
    """Check, before a run, every killswitch with every model, and the names of the tools that it guards.

    Raises:
        UsageError: a switch would guard nothing, or cannot guard.
    """
    models, known = list(models), set(tools)
    for maker in makers:
        for name in maker.tools:
            if name not in known and name != "*":
                raise UsageError(f"{maker.name}: there is no tool {name!r}.{nearest(name, known)}")
        for model in models if maker.check is not None else ():
            await maker.check(model)  # type: ignore[misc]
