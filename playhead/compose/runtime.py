"""Calls hooks in order, with timeouts and on copies; an error in a hook does not fail the run.

If a hook raises, times out, or returns an invalid value, the failure is recorded and the hook is skipped. A failed `required`
hook ends the run without an output.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import cache
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import anyio

from playhead.compose.contexts import make_context
from playhead.compose.phase_answers import checked_unmet, problem_of, problem_of_recovery, problem_of_switch
from playhead.errors import PlayheadError, ReplayError, RunEndedError, TraceWriteError
from playhead.kernel.chokepoints import Chokepoint, chokepoint, same_json
from playhead.kernel.describe import describe, described, is_failure
from playhead.kernel.hooks import SUPPRESS, HookReply, Recover, Refuse, SwitchTo, Unmet
from playhead.kernel.phases import is_taken_up
from playhead.kernel.session import Hooks
from playhead.kernel.sources import source_info
from playhead.kernel.strategies.base import make_strategy
from playhead.trace.events import EmissionChanged, EmissionSuppressed, HookFailed
from playhead.trace.values import scrub

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from playhead.compose.contexts import HookContext
    from playhead.compose.registration import Policy, Registration
    from playhead.kernel.hooks import PhaseName, Timing
    from playhead.kernel.session import Session, Tool
    from playhead.kernel.state import KernelState
    from playhead.trace.header import HookInfo, SourceInfo

log = logging.getLogger("playhead")

SLOW_S: Final = 1.0
"""Seconds after which a synchronous hook is reported as slow, because it blocks the whole run."""


class _Route(NamedTuple):
    """The hooks for a tag, and how its payloads are handled."""

    transforms: tuple[Registration, ...]
    taps: tuple[Registration, ...]
    point: Chokepoint


class _Place(NamedTuple):
    """Where a hook is called."""

    session: Session
    where: str
    """The tag, or timing and phase."""
    key: str = ""
    """The number or key of the emission of the tag."""


class ComposedHooks(Hooks):
    """The hooks of an agent, in the order in which they are called."""

    def __init__(
        self,
        registrations: tuple[Registration, ...],
        *,
        first: Hooks | None = None,
        live: Hooks | None = None,
    ) -> None:
        """Call these in order, after `first`; `live` are the hooks of a resumed agent itself."""
        self.registrations = registrations
        self.live: Hooks = live or self
        self._first = first
        self._route, self._at = cache(self._find_route), cache(self._find)

    def info(self) -> tuple[HookInfo, ...]:
        """Return the registrations as the header of a trace records them."""
        own = (each.info() for each in self.registrations if each.policy is None)
        return (*own, *(each.info() for each in self._blocks()))

    def sources(self) -> tuple[SourceInfo, ...]:
        """Return the fingerprints of the functions, and of payloads emitted at the start."""
        given = (source_info(*each) for block in self._blocks() for each in block.functions)
        return (*(each.source() for each in self.registrations if each.policy is None), *given)

    def below(self, own: Hooks | None) -> Hooks | None:
        """Return the hooks of a sub-agent: those that it inherits from this agent, then its own."""
        if self._first is not None:  # policies are not inherited
            return self._first.below(own)
        registrations = tuple(each for each in self.registrations if each.inherit)
        if isinstance(own, ComposedHooks):
            return ComposedHooks((*registrations, *own.registrations))
        return ComposedHooks(registrations) if registrations else None

    def parted(self) -> tuple[ComposedHooks | None, ComposedHooks | None]:
        """Return the caller's hooks and those of policies; the latter also run in a replay."""
        own = tuple(each for each in self.registrations if each.policy is None)
        policies = tuple(each for each in self.registrations if each.policy is not None)
        return ComposedHooks(own) if own else None, ComposedHooks(policies) if policies else None

    def seeds(self) -> tuple[tuple[str, Any], ...]:
        """Return the payloads to emit when the agent starts."""
        if self._first is not None:
            return self._first.seeds()
        return tuple(
            (each.matcher.shown, each.payload) for each in self.registrations if each.role == "emit" and each.matcher
        )

    def wants(self, tag: str) -> bool:
        """Return whether any hook is registered for this tag."""
        return (self._first is not None and self._first.wants(tag)) or self._route(tag) is not None

    def may_withhold(self, tag: str) -> bool:
        """Return whether a payload of this tag must pass hooks first: transforms, or required ones."""
        route = self._route(tag)
        return route is not None and bool(route.transforms or any(tap.required for tap in route.taps))

    def requires(self, phase: PhaseName) -> bool:
        """Return whether the run ends without an output when a hook of this phase fails."""
        own = (each for each in self.registrations if each.required and each.policy is None)
        return any(each.matcher is None and each.phase in (None, phase) for each in own)

    async def offer(
        self,
        session: Session,
        tag: str,
        payload: Any,  # noqa: ANN401 - by tag
        key: str,
        details: Mapping[str, Any],
    ) -> Any:  # noqa: ANN401 - as the payload, or SUPPRESS
        """Let the transforms change the payload, one after the other, then let the taps see the result."""
        route = self._route(tag)
        if self._first is not None and self._first.wants(tag):
            payload = await self._first.offer(session, tag, payload, key, details)
        if route is None or payload is SUPPRESS or type(payload) is Refuse:
            return payload
        context, at = make_context(session, tag, details), _Place(session, tag, key)
        if route.transforms:
            payload = await _transformed(route, at, payload, context)
        if route.taps and payload is not SUPPRESS and type(payload) is not Refuse:
            shown = route.point.copied(payload, session.gate.shown)
            for tap in route.taps:
                await _call(tap, at, shown, context)
        return payload

    def callers(self) -> Hooks | None:
        """Return the caller's hooks, without those of policies."""
        return self.parted()[0] if self._first is None else self._first

    def tools(self) -> dict[str, Tool]:
        """Return the tools of strategies that may take over."""
        return {name: tool for block in self._blocks() for name, tool in block.tools.items()}

    def unmet(self, session: Session) -> tuple[Unmet, ...]:
        """Return what blocks still require before they accept an answer."""
        found = [] if self._first is None else [*self._first.unmet(session)]
        for hook in self._at("unmet", "*"):
            context, place = make_context(session, "unmet", {}), _Place(session, "unmet")
            context.__dict__["_hook"] = hook
            try:
                found += [*map(checked_unmet, hook.function(context) or ())]
            except BaseException as error:  # noqa: BLE001 - what is not the hook's own failure is passed on
                _raise_unless_failure(error, hook)
                fail(hook, place, described(error))
        return tuple(found)

    def at_phase(self, phase: PhaseName) -> bool:
        """Return whether any hook is registered for this phase."""
        own = any(self._at(timing, phase) for timing in ("before", "after", "on-error"))
        return own or (self._first is not None and self._first.at_phase(phase))

    async def ask(
        self, session: Session, phase: PhaseName, timing: Timing, state: KernelState, error: Exception | None = None
    ) -> HookReply | None:
        """Return the first answer that steers the run; later hooks do not run."""
        session.reach(state)
        if self._first is not None:
            reply = await self._first.ask(session, phase, timing, state, error)
            if reply is not None:
                return reply
        at = _Place(session, f"{timing} {phase}")
        for hook in self._at(timing, phase):
            context = make_context(session, phase, {"phase": phase, "timing": timing})
            answer = await _call(hook, at, *((context,) if error is None else (error, context)))
            if answer is None:
                continue
            problem = problem_of(answer, phase, timing) if error is None else problem_of_recovery(answer, state)
            if problem is None and isinstance(answer, SwitchTo):
                strategy = make_strategy(cast("str", answer.strategy))
                answer, problem = replace(answer, strategy=strategy), problem_of_switch(strategy.name, state, session)
            if problem is not None:
                fail(hook, at, problem)
                continue
            if isinstance(answer, Recover):
                answer = replace(answer, reason=scrub(answer.reason))
            reply = HookReply(hook.name, answer, hook.policy)
            if not await is_taken_up(reply, phase, timing, session):
                return reply
        return None

    def _blocks(self) -> dict[Policy, None]:
        return dict.fromkeys(each.block for each in self.registrations if each.block is not None)

    def _find_route(self, tag: str) -> _Route | None:
        listening = [each for each in self.registrations if each.matcher is not None and each.role != "emit"]
        matching = [each for each in listening if each.matcher is not None and each.matcher.matches(tag)]
        transforms = [each for each in matching if each.role == "on"]
        # Stable: ties in order of registration. Policies see payloads after the caller's hooks.
        transforms.sort(key=lambda each: (each.policy is not None, each.matcher.breadth if each.matcher else 0))
        taps = tuple(each for each in matching if each.role == "tap")
        return _Route(tuple(transforms), taps, chokepoint(tag)) if matching else None

    def _find(self, timing: str, phase: str) -> tuple[Registration, ...]:
        return tuple(each for each in self.registrations if each.role == timing and each.phase in (None, phase))


def _changed(hook: Registration, at: _Place, payload: Any, given: object) -> Any:  # noqa: ANN401 - by tag
    """Return the payload as a transform changed it, and record the change; an invalid change is ignored."""
    session, tag, key = at
    point = chokepoint(tag)
    try:
        accepted = point.accept(payload, point.restored(given, session.gate.copies))
    except ValueError as error:
        fail(hook, at, describe(error))
        return payload
    except Exception as error:  # noqa: BLE001 - what a hook returns may raise anything when it is looked at
        fail(hook, at, f"it returned a {type(given).__name__} that cannot be read: {described(error)}")
        return payload
    before, after = point.written(payload, accepted)
    if accepted == payload and same_json(before, after):
        return payload
    session.emit(EmissionChanged(tag=tag, key=key, hook=hook.name, before=before, after=after, policy=hook.policy))
    return accepted


async def _transformed(route: _Route, at: _Place, payload: Any, context: HookContext) -> Any:  # noqa: ANN401 - by tag
    """Return the payload after all transforms, or SUPPRESS."""
    session, tag, key = at
    for hook in route.transforms:
        given = await _call(hook, at, route.point.copied(payload, session.gate.copies), context)
        refuses = tag == "tool.call" and type(given) is Refuse and isinstance(given.why, str)
        if given is SUPPRESS or refuses:
            before, _ = route.point.written(payload, payload)
            why: dict[str, Any] = {"why": scrub(given.why)} if refuses else {}
            session.emit(EmissionSuppressed(tag=tag, key=key, hook=hook.name, before=before, **why, policy=hook.policy))
            return given
        if given is not None:
            payload = _changed(hook, at, payload, given)
    return payload


async def _call(hook: Registration, at: _Place, *arguments: object) -> Any:  # noqa: ANN401 - anything
    """Return a hook's value, waiting for an asynchronous one within its timeout; None if it failed."""
    gate, started, scope = at.session.gate, perf_counter(), None
    arguments[-1].__dict__["_hook"] = hook
    gate.note_asking((hook.name, at.where))
    try:
        answer = hook.function(*arguments)
        if hasattr(type(answer), "__await__"):
            with anyio.move_on_after(hook.timeout_s) as scope:
                answer = await answer
    except BaseException as error:  # noqa: BLE001 - what is not the hook's own failure is passed on
        _raise_unless_failure(error, hook)
        fail(hook, at, described(error))
        return None
    finally:
        gate.note_asking(None)
    if scope is not None and scope.cancel_called:
        fail(hook, at, f"it did not finish within {hook.timeout_s:g} s")
        return None
    if scope is None and hook.policy is None and (took_s := perf_counter() - started) > SLOW_S:
        fail(
            hook, at, f"it blocked the run for {took_s:.1f} s; an `async def` hook is bounded by its timeout", slow=True
        )
    return answer


def fail(hook: Registration, at: _Place, problem: str, *, slow: bool = False) -> None:
    """Record, once for each place, that a hook failed or was slow; the failure of a required one ends the run.

    Raises:
        RunEndedError: the hook is required.
    """
    session, where, key = at
    failures, place = session.agent.gate.hook_failures, (hook.name, f"{where} (slow)" if slow else where)
    is_first, problem = place not in failures, scrub(problem)
    failures.add(place)
    relying = list(_relying_on(hook, session)) if hook.required and not slow else []
    if is_first or relying:
        log.warning("hook %s failed at %s of run %s: %s (reported once)", hook.name, where, session.run.run_id, problem)
        ends = tuple(each.owner for each in relying)
        session.emit(HookFailed(hook=hook.name, where=where, key=key, error=problem, ends=ends, policy=hook.policy))
    if relying:
        for each in relying:
            each.withhold(f"hook:{hook.name}", f"the required hook {hook.name} failed at {where}: {problem}")
        raise RunEndedError(f"the required hook {hook.name} failed at {where}")


def _relying_on(hook: Registration, session: Session) -> Iterator[Session]:
    """Yield the session and those above it that have the hook too, because they rely on it."""
    yield session
    while session.parent is not None:
        session = session.parent
        hooks = getattr(session.gate.hooks, "live", session.gate.hooks)  # in a resumed run, the agent's own hooks
        if isinstance(hooks, ComposedHooks) and hook in hooks.registrations:
            yield session


def _raise_unless_failure(error: BaseException, hook: Registration) -> None:
    """Re-raise exceptions that are not the hook's failure: a cancellation, an interrupt, the end of the run, a stopped replay."""
    ends = PlayheadError if hook.policy else (ReplayError, TraceWriteError)
    if not (isinstance(error, Exception) or is_failure(error)) or isinstance(error, ends):
        raise error
