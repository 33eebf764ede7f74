"""What must recur of a recorded prefix: each event is compared, and the live world waits until all of them have recurred."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Final

import anyio

from playhead.diagnose.divergence import call_of
from playhead.errors import DivergedError
from playhead.kernel.lifecycle.threads import running_loop
from playhead.replay.divergence import divergence_of, divergences_of
from playhead.replay.prefix import TOLD
from playhead.replay.reproduction import Follower
from playhead.trace import events as e
from playhead.trace.parameters import without_fingerprints
from playhead.trace.types import AgentHeader

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.kernel.session import Session
    from playhead.replay.divergence import Divergence
    from playhead.replay.prefix import Prefix
    from playhead.trace.line import Record


LIMITS: Final = frozenset({
    "address", "fallbacks", "hooks", "max_iterations", "max_parallel", "max_retries", "prices", "retry_delay_s", "sources",
})  # fmt: skip
"""Fields of an agent that may differ on resuming, because they are not part of requests."""
PATIENCE_S: Final = 30.0
"""Seconds without an event after which the rest of the prefix counts as missing."""
SHOWN: Final = 300
"""The maximum number of characters of a value in a message."""


class PrefixFollower(Follower):
    """Compares a run with its recorded prefix, until the prefix ends."""

    def __init__(self, prefix: Prefix) -> None:
        super().__init__(prefix.recording, prefix.races, open_ended=True)
        self._prefix = prefix
        records = prefix.recording.records
        self._told = {(record.owner, call_of(record.event)) for record in records if record.seq == TOLD}
        given = (record for record in records if self.is_given(record) and self.comparison.is_comparable(record))
        self.left = Counter([*(record.owner for record in given), *(owner for owner, _ in self._told)])
        """The number of each agent's events that have not recurred yet."""
        self._waiting: list[Callable[[], object]] = []

    def __call__(self, record: Record) -> None:
        """Compare the next event, and wake the waiting tasks."""
        super().__call__(record)
        waiting, self._waiting = self._waiting, []
        for wake in waiting:
            wake()

    async def all_come(self, session: Session | None) -> None:
        """Wait until the whole prefix has recurred. If the agent ends meanwhile, the waiting work does not begin.

        Raises:
            RunEndedError: the agent has ended meanwhile.
            DivergedError: the code behaves differently from the recording.
        """
        while True:
            self.require_same()
            if session is not None:
                session.require_running()
            left = ", ".join(f"{count} of {owner}" for owner, count in self.left.items() if count)
            if not left:
                return
            next_event = anyio.Event()
            self._waiting.append(partial(running_loop().call_soon_threadsafe, next_event.set))
            with anyio.move_on_after(PATIENCE_S) as silence:
                await next_event.wait()
            if silence.cancelled_caught:
                raise DivergedError(f"the recorded events do not all come again with this code: {left} are missing")

    def require_same(self, *, complete: bool = False) -> None:
        """Raise for the first event that differs from the recording; with `complete`, also for a missing event.

        Raises:
            DivergedError: an event differs or is missing.
        """
        if self.error is not None:
            raise self.error
        parting = self.comparison.first
        found = None if parting is None else divergence_of(parting)
        if found is None and complete:
            found = next(iter(divergences_of(self.comparison, cut_short=True)), None)
        if found is not None:
            raise DivergedError(_explained(self._prefix, found))

    def is_given(self, record: Record) -> bool:
        """Return whether a recorded event must recur. A call's end that the caller stated is only awaited."""
        return record.seq != TOLD and super().is_given(record)

    def compared(self, record: Record) -> Record:
        """Return a record without limits, which may differ, and the values of parameters, such as a new token."""
        event: e.EventBase = record.event
        if isinstance(event, e.LlmRequested):
            event = event.model_copy(update={"parameters": without_fingerprints(event.parameters)})
        elif isinstance(event, (e.RunStarted, e.AgentStarted)):
            event = event.model_copy(update={"agent": _without_limits(event.agent)})
        return record if event is record.event else record._replace(event=event)

    def hear(self, record: Record) -> None:
        """Compare the next event, and count it."""
        event = record.event
        is_told = isinstance(event, e.ToolCallCompleted) and (record.owner, event.call_id) in self._told
        if self.comparison.add(self.compared(record)) or is_told:
            self.left[record.owner] -= 1


def different_fields(then: AgentHeader, now: AgentHeader) -> list[str]:
    """Return the fields in which an agent differs from the recorded one but must not."""
    old, new = _without_limits(then), _without_limits(now)
    return [name for name in AgentHeader.model_fields if getattr(old, name) != getattr(new, name)]


def _without_limits(header: AgentHeader) -> AgentHeader:
    limits = {name: AgentHeader.model_fields[name].get_default(call_default_factory=True) for name in LIMITS}
    return header.model_copy(update={**limits, "parameters": without_fingerprints(header.parameters)})


def _explained(prefix: Prefix, found: Divergence) -> str:
    """Return the reason why a run cannot continue from where the recorded one stopped."""
    line = "" if found.seq is None else f" (line {prefix.lines.get(found.seq, found.seq + 1)} of the trace)"
    texts = (repr(each) for each in (found.expected, found.actual))
    recorded, now = (text if len(text) <= SHOWN else f"{text[:SHOWN]}…" for text in texts)
    return (
        f"{prefix.recording.run_id} cannot be resumed with this code, which does something else than was recorded: "
        f"{found.owner}, {found.where}{line}: {found.what}; recorded {recorded}, now {now}. "
        "Nothing was run. Resume with the agent, prompts, tools and settings of then"
    )
