"""Compares a resumed run with its recorded prefix, and knows when all of the prefix has come again."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Final

import anyio

from playhead.diagnose.divergence import Comparison
from playhead.diagnose.lanes import call_of
from playhead.errors import DivergedError
from playhead.kernel.lifecycle.threads import running_loop
from playhead.replay.guards import Races
from playhead.replay.prefix import TOLD
from playhead.trace.events import AgentStarted, LlmRequested, RunStarted, ToolCallCompleted
from playhead.trace.parameters import without_fingerprints
from playhead.trace.types import AgentHeader

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.diagnose.divergence import Divergence
    from playhead.kernel.session import Session
    from playhead.replay.prefix import Prefix
    from playhead.trace.events import EventBase
    from playhead.trace.line import Record

LIMITS: Final = frozenset({
    "address", "fallbacks", "hooks", "max_iterations", "max_parallel", "max_retries", "prices", "retry_delay_s", "sources",
})  # fmt: skip
"""Fields of an agent that may be others when it goes on: none of them is in a request."""
PATIENCE_S: Final = 30.0
"""Seconds without any event after which the rest of the prefix counts as missing."""
SHOWN: Final = 300
"""Characters of a value in a message."""


class Follower:
    """Compares every event of a run that begins with a recorded prefix with the recorded event at its place."""

    def __init__(self, prefix: Prefix) -> None:
        self._prefix = prefix
        self._until = Races(prefix.recording).until
        given = [_compared(record) for record in prefix.recording.records if self._is_given(record)]
        records = [record for record in given if record.seq != TOLD]
        self._told = {(record.owner, call_of(record.event)) for record in given if record.seq == TOLD}
        self._comparison = Comparison(records, open_ended=True, open_owners=self._until)
        self.left = Counter(record.owner for record in records if self._comparison.is_comparable(record))
        """Events of each agent that have not come again yet."""
        self.left.update(owner for owner, _ in self._told)
        self._waiting: list[Callable[[], object]] = []
        self.error: Exception | None = None
        """What went wrong with the comparison itself."""

    def __call__(self, record: Record) -> None:
        """Compare the next event, and wake the waiting tasks."""
        try:
            self._hear(record)
        except Exception as error:  # noqa: BLE001 - a recorder only logs what a subscriber raises
            self.error = self.error or error
        waiting, self._waiting = self._waiting, []
        for wake in waiting:
            wake()

    async def all_come(self, session: Session | None) -> None:
        """Wait until everything that is given has come again; what waits for that while its agent ends does not begin.

        Raises:
            RunEndedError: the agent has ended meanwhile.
            DivergedError: the code does something else than was recorded.
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
        """Raise for the first event that is another than the recorded one; with `complete` also for one that did not come.

        Raises:
            DivergedError: there is one.
        """
        if self.error is not None:
            raise self.error
        found = self._comparison.first
        if found is None and complete:
            found = next(iter(self._comparison.divergences(cut_short=True)), None)
        if found is not None:
            raise DivergedError(_explained(self._prefix, found))

    def _is_given(self, record: Record) -> bool:
        """Return whether the event has to come again: not what timing decided, nor what bodies of tools did."""
        if self._prefix.frozen(record.owner) is None:
            return False
        return record.owner not in self._until or record.seq <= self._until[record.owner]

    def _hear(self, record: Record) -> None:
        event = record.event
        if self._prefix.frozen(record.owner) is None:
            return
        is_told = isinstance(event, ToolCallCompleted) and (record.owner, event.call_id) in self._told
        if self._comparison.add(_compared(record)) or is_told:
            self.left[record.owner] -= 1


def different_fields(then: AgentHeader, now: AgentHeader) -> list[str]:
    """Return the fields in which an agent is another than the recorded one, and which may not be."""
    old, new = _without_limits(then), _without_limits(now)
    return [name for name in AgentHeader.model_fields if getattr(old, name) != getattr(new, name)]


def _without_limits(header: AgentHeader) -> AgentHeader:
    limits = {name: AgentHeader.model_fields[name].get_default(call_default_factory=True) for name in LIMITS}
    return header.model_copy(update={**limits, "parameters": without_fingerprints(header.parameters)})


def _compared(record: Record) -> Record:
    """Return what of a record has to come again: limits may be others, and a token that is sent may be a new one."""
    event: EventBase = record.event
    if isinstance(event, LlmRequested):
        event = event.model_copy(update={"parameters": without_fingerprints(event.parameters)})
    elif isinstance(event, (RunStarted, AgentStarted)):
        event = event.model_copy(update={"agent": _without_limits(event.agent)})
    return record if event is record.event else record._replace(event=event)


def _explained(prefix: Prefix, found: Divergence) -> str:
    """Return why a run cannot go on from where the recorded one stopped."""
    line = "" if found.seq is None else f" (line {prefix.lines.get(found.seq, found.seq + 1)} of the trace)"
    texts = (repr(each) for each in (found.expected, found.actual))
    recorded, now = (text if len(text) <= SHOWN else f"{text[:SHOWN]}…" for text in texts)
    return (
        f"{prefix.recording.run_id} cannot be resumed with this code, which does something else than was recorded: "
        f"{found.owner}, {found.where}{line}: {found.what}; recorded {recorded}, now {now}. "
        "Nothing was run. Resume with the agent, prompts, tools and settings of then"
    )
