"""The tokens and US dollars that a run spent; the run and every reader of its recording compute the same sum.

An attempt at a model call counts once its end is recorded. A price may not be known, and a failed or abandoned attempt may
have cost tokens that the provider never reported: the sum is then a lower bound, and `Usage.unknown` and `cost_unknown` count
such attempts.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Final, NamedTuple

from playhead.trace.events import LlmFailed, LlmRequested, LlmResponded
from playhead.trace.types import LARGEST_COUNT, Usage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from playhead.trace.events import EventBase
    from playhead.trace.line import Record

_NOT_COUNTED: Final = Usage(unknown=1)
"""The usage of an attempt for which it is unknown."""


class Total(NamedTuple):
    """What a run spent."""

    usage: Usage
    """Tokens."""
    cost_usd: float | None
    """US dollars, as far as prices are known; None when nothing is known of them, which is not the same as 0."""
    cost_unknown: int | None
    """Attempts with unknown cost, which make `cost_usd` a lower bound; None when there are none."""


class Spent:
    """A sum that grows; exact in any order."""

    def __init__(self) -> None:
        self.usage = Usage()
        """Tokens so far."""
        self.unpriced = 0
        """Attempts whose cost is unknown."""
        self._usd: Fraction | int = 0  # a fraction takes longer than all the rest

    def total(self) -> Total:
        """Return the sum; an empty one costs nothing."""
        known = min(float(self._usd), float(LARGEST_COUNT))
        return Total(self.usage, None if self.unpriced and not known else known, self.unpriced or None)

    def take(self, event: EventBase) -> None:
        """Add the usage and cost that an event reports; most events report none."""
        if isinstance(event, LlmResponded):
            self._add(event.usage.of_answer(), event.cost_usd)
        elif isinstance(event, LlmFailed):
            self.fail(event.usage, event.cost_usd)

    def fail(self, usage: Usage | None = None, cost_usd: float | None = None) -> None:
        """Add an attempt without an answer; None is unknown."""
        self._add(_NOT_COUNTED if usage is None else usage, cost_usd)

    def join(self, other: Spent) -> None:
        """Add another sum."""
        self.usage += other.usage
        self.unpriced += other.unpriced
        self._usd += other._usd

    def _add(self, usage: Usage, cost_usd: float | None) -> None:
        self.usage += usage
        self.unpriced += cost_usd is None
        if cost_usd:
            self._usd += Fraction(cost_usd)


def spent_by(records: Iterable[Record]) -> Total:
    """Return what a recorded run spent; a request without a recorded end counts as unknown."""
    spent, waiting = Spent(), set[tuple[str, int, int]]()
    for record in records:
        event = record.event
        if isinstance(event, LlmRequested):
            waiting.add((record.owner, event.request, event.attempt))
        elif isinstance(event, (LlmResponded, LlmFailed)):
            waiting.discard((record.owner, event.request, event.attempt))
            spent.take(event)
    for _ in waiting:
        spent.fail()
    return spent.total()
