"""Killswitches and policies, made again from what the header of a trace holds of them.

Of killswitches those that decide about calls: the others are about the model, time, money or files, of which a replay has
other ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from playhead.compose.harness import Harness
from playhead.compose.killswitches.approval import require_approval_for
from playhead.compose.killswitches.breaker import circuit_breaker
from playhead.compose.killswitches.tool_calls import tool_limit
from playhead.compose.policies import answers, calls, loops, searching, switching
from playhead.errors import NotReplayableError, UsageError
from playhead.kernel.hooks import SUPPRESS, Refuse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from playhead.compose.harness import Block
    from playhead.compose.runtime import ComposedHooks
    from playhead.kernel.hooks import PhaseName, Recovery, Said, Timing, Unmet
    from playhead.kernel.session import Hooks, Session, Tool
    from playhead.kernel.state import KernelState
    from playhead.trace.types import HookInfo

_AGAIN: Final[dict[tuple[str, str], Callable[[dict[str, Any]], Block]]] = {
    ("guard", "tool_limit"): lambda given: tool_limit(
        given.get("limits"), total=given.get("total"), on_trigger=given["on_trigger"]
    ),
    ("guard", "circuit_breaker"): lambda given: circuit_breaker(
        given["failures"], tools=given["only"], provider=False, on_trigger=given["on_trigger"]
    ),
    ("guard", "require_approval_for"): lambda given: require_approval_for(
        given["only"], on_trigger=given["on_trigger"]
    ),
    ("policy", "require_tools"): lambda given: calls.require_tools(**given),
    ("policy", "tool_budgets"): lambda given: calls.tool_budgets(**given),
    ("policy", "output_type"): lambda given: answers.of_form(**given),
    ("policy", "output_retries"): lambda given: answers.output_retries(**given),
    ("policy", "validate"): lambda given: answers.validate_by(**given),
    ("policy", "done_when"): lambda given: answers.done_by(**given),
    ("policy", "verify"): lambda given: answers.verify(**given),
    ("policy", "min_iterations"): lambda given: answers.min_iterations(**given),
    ("policy", "detect_loops"): loops.detect_loops,
    ("policy", "switch_strategy"): lambda given: switching.switch_strategy(**given),
    ("policy", "novelty"): lambda given: searching.novelty(**given),
}


WITH_CODE: Final = frozenset({"output_type", "validate", "done_when"})
"""Policies that hold code of the caller's: made again they only know what it said when it was recorded."""


def is_made_again(info: HookInfo) -> bool:
    """Return whether this is a killswitch or policy that `made_again` makes."""
    return (info.role, info.name) in _AGAIN and info.settings is not None


def made_again(hooks: Iterable[HookInfo]) -> Harness:
    """Return what an agent was composed with, as far as it is data; of the caller's functions in it answers are served.

    Raises:
        NotReplayableError: somebody else wrote the header, or another version: its settings are not understood.
    """
    harness = Harness()
    for info in filter(is_made_again, hooks):
        harness.use(block_again(info))
    return harness


def block_again(info: HookInfo) -> Block:
    """Return the killswitch or policy that a header tells of; raises as `made_again`."""
    try:
        return _AGAIN[info.role, info.name](dict(info.settings or {}))
    except (UsageError, KeyError, TypeError) as error:
        raise NotReplayableError(f"{info.name} of the recorded agent cannot be made again: {error}") from None


def joined(first: Hooks | None, policies: ComposedHooks | None, live: Hooks | None = None) -> Hooks | None:
    """Return the hooks that stand for the caller's, and after them the policies; `live` are the agent's own."""
    if first is None or policies is None:
        return first or policies
    return JoinedHooks(first, policies, live)


class JoinedHooks:
    """Asks what stands for the caller's hooks first, and then policies."""

    def __init__(self, first: Hooks, policies: ComposedHooks, live: Hooks | None) -> None:
        self.live = live
        self._first = first
        self._policies = policies

    def info(self) -> tuple[HookInfo, ...]:
        """Return what is registered."""
        return (*self._first.info(), *self._policies.info())

    def below(self, own: Hooks | None) -> Hooks | None:
        """Return the hooks of an agent below: policies are for one agent."""
        return self._first.below(own)

    def seeds(self) -> tuple[tuple[str, Any], ...]:
        """Return what is to be emitted when the agent starts."""
        return self._first.seeds()

    def wants(self, tag: str) -> bool:
        """Return whether anybody listens to this tag."""
        return self._first.wants(tag) or self._policies.wants(tag)

    async def offer(
        self,
        session: Session,
        tag: str,
        payload: Any,  # noqa: ANN401 - by tag
        key: str,
        details: Mapping[str, Any],
    ) -> Any:  # noqa: ANN401 - as the payload, SUPPRESS or a refusal
        """Return what all make of a payload."""
        if self._first.wants(tag):
            payload = await self._first.offer(session, tag, payload, key, details)
        if payload is SUPPRESS or type(payload) is Refuse or not self._policies.wants(tag):
            return payload
        return await self._policies.offer(session, tag, payload, key, details)

    def tools(self) -> dict[str, Tool]:
        """Return the tools of strategies that may take over."""
        return self._policies.tools()

    def unmet(self, session: Session) -> tuple[Unmet, ...]:
        """Return what blocks still require."""
        return (*self._first.unmet(session), *self._policies.unmet(session))

    def at_phase(self, phase: PhaseName) -> bool:
        """Return whether anything is to be asked at this phase."""
        return self._first.at_phase(phase) or self._policies.at_phase(phase)

    async def ask(self, session: Session, phase: PhaseName, timing: Timing, state: KernelState) -> Said | None:
        """Return what the first hook that wants to steer says."""
        said = await self._first.ask(session, phase, timing, state)
        return said or await self._policies.ask(session, phase, timing, session.state or state)

    async def ask_after_error(
        self, session: Session, phase: PhaseName, state: KernelState, error: Exception
    ) -> Recovery | None:
        """Return how to go on after an error, or None."""
        return await self._first.ask_after_error(session, phase, state, error)
