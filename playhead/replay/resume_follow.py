"""Whether a resumed run does again what the dead one did, and how far it has come with that."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from playhead.diagnose.divergence import Comparison, Divergence
from playhead.errors import DivergedError
from playhead.replay.interrupts import raced
from playhead.trace.events import AgentStarted, LlmRequested, RunStarted
from playhead.trace.parameters import without_fingerprints

if TYPE_CHECKING:
    from playhead.replay.resume_part import Settled
    from playhead.trace.line import Record
    from playhead.trace.types import AgentHeader
    from playhead.trace.values import JsonValue

LIMITS: Final = frozenset({
    "address", "fallbacks", "hooks", "max_iterations", "max_parallel", "max_retries", "prices", "retry_delay_s", "sources",
})  # fmt: skip
"""Fields of an agent that may be others when it goes on: none of them is in a request."""
HEADERS: Final = frozenset({"run-started", "agent-started"})


class Follower:
    """Hears every event of a resumed run and compares it with the recorded one at its place."""

    def __init__(self, settled: Settled) -> None:
        self._settled = settled
        self._beside = raced(settled.recording)
        records = [_without_values(record) for record in settled.recording.records if self._is_given(record)]
        self._comparison = Comparison(records, open_ended=True, open_owners=self._beside)
        self.left: Counter[str] = Counter()
        """Events of each agent that have not come again yet."""
        for record in records:
            if self._comparison.is_comparable(record):
                self.left[record.owner] += 1
        self._different: Divergence | None = None
        self.heard = 0
        """Events so far."""
        self.error: Exception | None = None
        """What went wrong with the comparison itself."""

    @property
    def caught_up(self) -> bool:
        """Whether everything that is given has come again."""
        return not any(self.left.values())

    def __call__(self, record: Record) -> None:
        """Compare the next event."""
        self.heard += 1
        try:
            self._hear(record)
        except Exception as error:  # noqa: BLE001 - a recorder only logs what a subscriber raises
            self.error = self.error or error

    def require_same(self) -> None:
        """Raise for the first event that is another than the recorded one.

        Raises:
            DivergedError: there is one.
        """
        if self.error is not None:
            raise self.error
        found = self.divergence()
        if found is not None:
            raise diverged(self._settled, found)

    def divergence(self, *, complete: bool = False) -> Divergence | None:
        """Return the first difference so far; with `complete` events that did not come again are one."""
        if self._different is not None:
            return self._different
        if complete:
            return next(iter(self._comparison.divergences(cut_short=True)), None)
        return self._comparison.first

    def _is_given(self, record: Record) -> bool:
        """Return whether the event has to come again: not what timing decided, nor what bodies of tools did."""
        if record.kind in HEADERS or record.owner in self._settled.inside:
            return False
        return record.owner not in self._beside or record.seq <= self._beside[record.owner]

    def _hear(self, record: Record) -> None:
        event = record.event
        if isinstance(event, (RunStarted, AgentStarted)):
            self._compare_header(record, event)
            return
        if self._settled.frozen(record.owner) is None:
            return
        if isinstance(event, LlmRequested):
            self._compare_in_flight(record, event)
        if self._comparison.add(_without_values(record)):
            self.left[record.owner] -= 1

    def _compare_header(self, record: Record, event: RunStarted | AgentStarted) -> None:
        then = self._settled.frozen(record.owner)
        if then is None or then.started is None:
            return
        name = next(iter(different_fields(then.started.agent, event.agent)), None)
        if name is not None:
            old, new = (each.model_dump(mode="json").get(name) for each in (then.started.agent, event.agent))
            self._different = self._different or Divergence(
                record.owner, "the agent", f"its {name} differs", old, new, then.records[0].seq
            )
        elif then.started.task != event.task:
            self._different = self._different or Divergence(
                record.owner, "the agent", "its task differs", str(then.started.task), str(event.task), None
            )

    def _compare_in_flight(self, record: Record, event: LlmRequested) -> None:
        """Compare a request that was sent and not answered: it is asked again, and has to be the same."""
        at = (record.owner, event.request, event.attempt)
        then = self._settled.in_flight.get(at)
        if then is None:
            return
        ignored = {"parameters"} if at in self._settled.set_aside else set()  # a budget puts a cap there
        both = (each.model_copy(update=_known_parameters(each)) for each in (then, event))
        old, new = (each.model_dump(mode="json", exclude=ignored) for each in both)
        if old != new:
            name = next(name for name in {**old, **new} if old.get(name) != new.get(name))
            self._different = self._different or Divergence(
                record.owner,
                f"request {event.request}, attempt {event.attempt}",
                f"its {name} differ",
                old.get(name),
                new.get(name),
                None,
            )


def different_fields(then: AgentHeader, now: AgentHeader) -> list[str]:
    """Return the fields in which an agent is another than the recorded one, and which may not be."""
    then, now = (each.model_copy(update=_known_parameters(each)) for each in (then, now))
    return [name for name in type(now).model_fields if name not in LIMITS and getattr(then, name) != getattr(now, name)]


def _without_values(record: Record) -> Record:
    """Return the record of a request without fingerprints: a token that is sent may be a new one when a run goes on."""
    event = record.event
    return (
        record._replace(event=event.model_copy(update=_known_parameters(event)))
        if isinstance(event, LlmRequested)
        else record
    )


def _known_parameters(event: LlmRequested | AgentHeader) -> dict[str, dict[str, JsonValue]]:
    return {"parameters": without_fingerprints(event.parameters)}


def diverged(settled: Settled, found: Divergence) -> DivergedError:
    """Return the error for a run that would not go on from where the recorded one stopped."""
    line = "" if found.seq is None else f" (line {settled.lines.get(found.seq, found.seq + 1)} of the trace)"
    return DivergedError(
        f"{settled.recording.run_id} cannot be resumed with this code, which does something else than was recorded: "
        f"{found.owner}, {found.where}{line}: {found.what}; recorded {_shown(found.expected)}, now {_shown(found.actual)}. "
        "Nothing was run. Resume with the agent, prompts, tools and settings of then"
    )


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


SHOWN: Final = 300
"""Characters of a value in a message."""
