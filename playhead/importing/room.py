"""What one import may hold in memory: all its spans, until their traces are written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from playhead.errors import NotImportableError
from playhead.importing.limits import MAX_MEMORY, MAX_SPANS
from playhead.importing.weight import Weight, parsed_weight_of

if TYPE_CHECKING:
    from playhead.importing.spans import ForeignSpan

SMALLER: Final = "split the export by traces, or by time, and import its parts one after the other"


class Room:
    """Takes spans in until there is no room. Half a trace would look like a whole one, so nothing is imported then."""

    def __init__(self, spans: int | None = None, memory: int | None = None) -> None:
        self._most = MAX_SPANS if spans is None else spans
        self._most_memory = MAX_MEMORY if memory is None else memory
        self._weight = Weight()
        self._spans = 0
        self._memory = 0

    def take(self, span: ForeignSpan) -> None:
        """Account for one more span.

        Raises:
            NotImportableError: there is no room for it.
        """
        self._spans += 1
        self._memory += self._weight.of(span) + parsed_weight_of(span)
        if self._spans > self._most:
            raise NotImportableError(f"more than {self._most:,} spans, which is what one import takes: {SMALLER}")
        if self._memory > self._most_memory:
            raise NotImportableError(
                f"its spans would take more than {self._most_memory:,} bytes of memory, which is what one import may: {SMALLER}"
            )
