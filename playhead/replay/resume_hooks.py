"""Hooks of a resumed run: what they did then is done again, and from the point of death on they are asked.

What hooks keep in memory they do not have any more. What they saw before the run died they are not shown a second time: a
hook may have written it somewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playhead.kernel.session import Hooks

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from playhead.kernel.hooks import PhaseName, Recovery, Said, Timing, Unmet
    from playhead.kernel.session import Session
    from playhead.kernel.state import KernelState
    from playhead.replay.hooks import RecordedHooks
    from playhead.trace.types import HookInfo


class ResumedHooks(Hooks):
    """The recorded hooks of an agent as long as its recording goes, and its own from there on."""

    def __init__(
        self,
        recorded: RecordedHooks | None,
        live: Hooks | None,
        is_over: Callable[[], bool],
        go_live: Callable[[], Awaitable[None]],
    ) -> None:
        """Join them.

        Args:
            recorded: what the hooks of then did; None when they did nothing.
            live: the agent's own; None when it has none.
            is_over: whether everything that is recorded of the agent has come again.
            go_live: waits until the whole run has come so far.
        """
        self._recorded = recorded
        self.live = live
        self._is_over = is_over
        self._go_live = go_live

    def info(self) -> tuple[HookInfo, ...]:
        """Return what is registered now."""
        return () if self.live is None else self.live.info()

    def below(self, own: Hooks | None) -> Hooks | None:
        """Return the hooks of an agent that is called by this one."""
        return own if self.live is None else self.live.below(own)

    def seeds(self) -> tuple[tuple[str, Any], ...]:
        """Return what is to be emitted at the start, as the code says it; what was recorded of it is served."""
        if self.live is not None:
            return self.live.seeds()
        return () if self._recorded is None else self._recorded.seeds()

    def wants(self, tag: str) -> bool:
        """Return whether anybody listens, or did."""
        return any(each is not None and each.wants(tag) for each in (self._recorded, self.live))

    async def offer(
        self,
        session: Session,
        tag: str,
        payload: Any,  # noqa: ANN401 - by tag
        key: str,
        details: Mapping[str, Any],
    ) -> Any:  # noqa: ANN401 - as the payload, or SUPPRESS
        """Return what was made of the payload, or what is made of it now."""
        hooks = await self._asked()
        if hooks is None or not hooks.wants(tag):
            return payload
        return await hooks.offer(session, tag, payload, key, details)

    def unmet(self, session: Session) -> tuple[Unmet, ...]:
        """Return what blocks require now; what they required then is not recorded."""
        return () if self.live is None else self.live.unmet(session)

    def at_phase(self, phase: PhaseName) -> bool:
        """Return whether anything is, or was, asked at this phase."""
        return any(each is not None and each.at_phase(phase) for each in (self._recorded, self.live))

    async def ask(self, session: Session, phase: PhaseName, timing: Timing, state: KernelState) -> Said | None:
        """Return what was said here, or what is said now."""
        hooks = await self._asked()
        return None if hooks is None else await hooks.ask(session, phase, timing, state)

    async def ask_after_error(
        self, session: Session, phase: PhaseName, state: KernelState, error: Exception
    ) -> Recovery | None:
        """Return how the run went on here, or how it is to go on."""
        hooks = await self._asked()
        return None if hooks is None else await hooks.ask_after_error(session, phase, state, error)

    async def _asked(self) -> Hooks | None:
        if not self._is_over():
            return self._recorded
        if self.live is not None:
            await self._go_live()
        return self.live
