"""Reading a run: its records, folded into spans as they come, and read anew when something was short for a moment."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple

from playhead.errors import TraceError
from playhead.spans.cursor import NOTHING
from playhead.spans.sources import is_for_now
from playhead.trace.events import RunCompleted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from opentelemetry.sdk.trace import ReadableSpan

    from playhead.spans.builder import SpanBuilder
    from playhead.spans.sources import Source
    from playhead.trace.line import Record
    from playhead.trace.reader import Problem

_AGAIN_S: Final = 1.0
"""Seconds until a trace that cannot be read now is read again; more, the longer that lasts."""
_LONGEST_S: Final = 60.0


class Step(NamedTuple):
    """What a record has closed, or what is still open at the end."""

    seq: int
    """The record; at the end, one more than the last."""
    spans: Sequence[ReadableSpan]
    at_end: bool = False


class Missing(NamedTuple):
    """What of a run is in no span."""

    lost: int = 0
    """Events that were never folded."""
    left_out: int = 0
    """Events that belong to nothing that began."""
    problems: Sequence[Problem] = ()
    """What is wrong with the file."""


class Shortage:
    """What keeps a trace from being read for now."""

    def __init__(self) -> None:
        self.reason: str | None = None
        """None when it can be read."""
        self.since = 0.0
        """Monotonic seconds."""
        self._again_at = 0.0

    @property
    def waits(self) -> bool:
        """Whether it is too early to try again."""
        return time.monotonic() < self._again_at

    def note(self, error: Exception) -> None:
        """Note that it could not be read."""
        now = time.monotonic()
        self.reason, self.since = str(error), self.since or now
        self._again_at = now + max(_AGAIN_S, min(now - self.since, _LONGEST_S))

    def end(self) -> None:
        """Note that it was read on."""
        self.reason, self.since = None, 0.0


class Reading:
    """One pass over a run that may still go on. Two threads may not use it at once."""

    def __init__(
        self, opened: Callable[[], Source], make_builder: Callable[[], SpanBuilder], wanted: Callable[[str], bool]
    ) -> None:
        """Prepare; nothing is opened before the first step.

        Args:
            opened: opens where the records come from.
            make_builder: makes what folds them.
            wanted: told the hash of the first line, says whether there is anything to read.
        """
        self.at = NOTHING
        """The last event that was read."""
        self.drained = False
        """Whether nothing more comes."""
        self.ended = False
        """Whether the run's own end was read."""
        self.interrupted = 0
        """Spans that were still open when the run was over."""
        self.shortage = Shortage()
        self._opened, self._make_builder, self._wanted = opened, make_builder, wanted
        self._source: Source | None = None
        self._builder: SpanBuilder | None = None
        self._records: Iterator[Record] | None = None
        self._folded = NOTHING  # the last event whose spans were made before it was all read anew
        self._missing = Missing()

    @property
    def missing(self) -> Missing:
        """What is known by now to be in no span."""
        source, builder = self._source, self._builder
        return self._missing if source is None or builder is None else _missing(source, builder)

    def next(self) -> Step | None:
        """Return what the next records close, or what is open at the end; None when there is nothing now, or never.

        Raises like `playhead.trace.reader.scan`; but what keeps it from being read for now is its `shortage`.
        """
        if self.drained or self.shortage.waits:
            return None
        try:
            return self._read_on()
        except (TraceError, OSError) as error:
            if not is_for_now(error):
                raise
            self._start_anew(error)
            return None

    def open_now(self) -> int:
        """Return how many spans are open."""
        return 0 if self.drained or self._builder is None else len(self._builder.interrupted())

    def close(self) -> None:
        """Let go of the file and of what was folded."""
        self._missing = self.missing
        source, self._source = self._source, None
        if source is not None:
            source.close()
        self._builder, self._records = None, None

    def _read_on(self) -> Step | None:
        if self._source is None or self._builder is None:
            self._source, self._builder = self._opened(), self._make_builder()
        self._records = self._records or self._source.new()
        for record in self._records:
            spans = self._fold(record, self._builder)
            if spans:
                return Step(record.seq, spans)
            if self.drained:
                return None
        self._records = None
        self.shortage.end()
        return self._end(self._source, self._builder) if self._source.over else None

    def _fold(self, record: Record, builder: SpanBuilder) -> Sequence[ReadableSpan]:
        """Return the spans that a record closes, unless they were made before."""
        spans = builder.feed(record)
        if record.seq <= self._folded:
            return ()
        if self.at == NOTHING:
            self.drained = self.ended = not self._wanted(record.h)
        if self.shortage.reason is not None:
            self.shortage.end()
        self.at = record.seq
        if isinstance(record.event, RunCompleted) and record.owner == "root":
            self.ended = True
        return spans

    def _end(self, source: Source, builder: SpanBuilder) -> Step:
        """Take what is still open as interrupted; of a run some of whose events are lost, nothing is."""
        left = [] if source.lost else builder.interrupted()
        self.interrupted = len(left)
        self.drained = True
        return Step(self.at + 1, left, at_end=True)

    def _start_anew(self, error: Exception) -> None:
        """Read it all again later, but for the spans that were made by now."""
        self.close()
        self._folded = self.at
        self.shortage.note(error)


def _missing(source: Source, builder: SpanBuilder) -> Missing:
    return Missing(source.lost, builder.left_out, source.problems)
