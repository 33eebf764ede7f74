"""The tokens and US dollars that a run spent; the run and every reader of its recording compute the same sum.

An attempt at a model call counts once its end is recorded. A failed or abandoned attempt may have cost tokens that the
provider never reported: the sum is then a lower bound, and `Usage.unknown` and `cost_unknown` count such attempts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from playhead.trace.events import LlmFailed, LlmRequested, LlmResponded, RunCompleted
from playhead.trace.types import LARGEST_COUNT, Usage, made

if TYPE_CHECKING:
    from collections.abc import Iterable

    from playhead.trace.events import EventBase
    from playhead.trace.line import Record

_UNITS: Final = 1 << 1074
"""Units in a dollar: every float is a whole number of them, so that no sum depends on the order of its parts."""
NOT_COUNTED: Final = made(Usage, unknown=1)
"""The usage of an attempt for which it is unknown."""


class Total(NamedTuple):
    """What a run spent."""

    usage: Usage
    """Tokens."""
    cost_usd: float | None
    """US dollars; None when a price is not known."""
    cost_unknown: int | None
    """Attempts with unknown cost, which make `cost_usd` a lower bound; None when there are none."""


class Spent:
    """A sum that grows; exact in any order."""

    def __init__(self) -> None:
        self.usage = Usage()
        """Tokens so far."""
        self.priced = 0
        """Attempts whose cost is known."""
        self.unpriced = 0
        """Answers whose cost is unknown."""
        self.untold = 0
        """Attempts without an answer whose cost is unknown."""
        self._units = 0

    @property
    def priced_usd(self) -> float | None:
        """US dollars of the attempts with known cost; None when there are none."""
        return min(self._units / _UNITS, float(LARGEST_COUNT)) if self.priced else None

    def total(self) -> Total:
        """Return the sum; an empty one costs nothing."""
        cost_usd = (self.priced_usd or 0.0) if self._units else 0.0
        return Total(self.usage, None if self.unpriced else cost_usd, self.untold or None)

    def add(self, usage: Usage, cost_usd: float | None) -> None:
        """Add an answer; None is an unknown cost."""
        self.usage += usage
        self.unpriced += cost_usd is None
        self._pay(cost_usd)

    def fail(self, usage: Usage | None = None, cost_usd: float | None = None) -> None:
        """Add an attempt without an answer; None is unknown."""
        self.usage += NOT_COUNTED if usage is None else usage
        self.untold += cost_usd is None
        self._pay(cost_usd)

    def take(self, event: EventBase) -> None:
        """Add the usage and cost that an event reports; most events report none."""
        if isinstance(event, LlmResponded):
            self.add(event.usage.of_answer(), event.cost_usd)
        elif isinstance(event, LlmFailed):
            self.fail(event.usage, event.cost_usd)

    def join(self, other: Spent) -> None:
        """Add another sum."""
        self.usage += other.usage
        self.priced += other.priced
        self.unpriced += other.unpriced
        self.untold += other.untold
        self._units += other._units

    def _pay(self, cost_usd: float | None) -> None:
        if cost_usd is None:
            return
        self.priced += 1
        if cost_usd:
            numerator, denominator = cost_usd.as_integer_ratio()
            self._units += numerator * (_UNITS // denominator)


def spent_by(records: Iterable[Record]) -> Total:
    """Return what a recorded run spent."""
    spending = Spending()
    for record in records:
        spending.add(record)
    return spending.total()


class Spending:
    """What a recorded run spent: the totals of its end, or else the sum of its events."""

    def __init__(self) -> None:
        self._spent = Spent()
        self._waiting: set[tuple[str, int, int]] = set()
        self._ending: RunCompleted | None = None

    def add(self, record: Record) -> None:
        """Take the next event, in the order of the file."""
        event = record.event
        if isinstance(event, LlmRequested):
            self._waiting.add((record.owner, event.request, event.attempt))
        elif isinstance(event, (LlmResponded, LlmFailed)):
            self._waiting.discard((record.owner, event.request, event.attempt))
            self._spent.take(event)
        elif isinstance(event, RunCompleted) and record.owner == "root":
            self._ending = event

    def spent(self) -> Spent:
        """Return the sum; a request without a recorded end counts as unknown."""
        found, end = Spent(), self._ending
        if end is None:
            found.join(self._spent)
            for _ in self._waiting:
                found.fail()
        elif end.cost_usd is None:
            found.join(self._spent)
            found.usage = end.usage
            found.unpriced, found.untold = self._spent.unpriced or int(not end.cost_unknown), end.cost_unknown or 0
        else:
            found.add(end.usage, end.cost_usd)
            found.untold = end.cost_unknown or 0
        return found

    def total(self) -> Total:
        """Return the sum as figures."""
        return self.spent().total()
