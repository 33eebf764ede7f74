"""What a recorded run spent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.trace.events import LlmFailed, LlmRequested, LlmResponded
from playhead.trace.spending import Spent

if TYPE_CHECKING:
    from collections.abc import Iterable

    from playhead.trace.line import Record
    from playhead.trace.spending import Total


class SpendingFold:
    """The sum of a run's events, taken in the order of the file."""

    def __init__(self) -> None:
        self._spent = Spent()
        self._waiting: set[tuple[str, int, int]] = set()

    def add(self, record: Record) -> None:
        """Take the next event."""
        event = record.event
        if isinstance(event, LlmRequested):
            self._waiting.add((record.owner, event.request, event.attempt))
        elif isinstance(event, (LlmResponded, LlmFailed)):
            self._waiting.discard((record.owner, event.request, event.attempt))
            self._spent.take(event)

    def total(self) -> Total:
        """Return the sum; a request without a recorded end counts as unknown."""
        found = Spent()
        found.join(self._spent)
        for _ in self._waiting:
            found.fail()
        return found.total()


def spent_by(records: Iterable[Record]) -> Total:
    """Return what a recorded run spent."""
    fold = SpendingFold()
    for record in records:
        fold.add(record)
    return fold.total()
