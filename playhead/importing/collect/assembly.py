"""The spans of traces that go on, and when one has ended: its root has, and for a while nothing came."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from playhead.importing.spans import ForeignSpan

QUIET_S: Final = 3.0
"""Seconds without a span after which a trace whose root has ended is whole."""
IDLE_S: Final = 120.0
"""Seconds without a span after which a trace is recorded as it is, without its root."""
LATE_S: Final = 60.0
"""Seconds for which the spans of a recorded trace are kept, for what may still come of it."""


@dataclass(eq=False)
class Gathered:
    """What came of one trace."""

    trace_id: str
    spans: list[ForeignSpan] = field(default_factory=list)
    seen: set[tuple[str, int | None, int]] = field(default_factory=set)
    """Id, end and number of attributes of the spans."""
    files: set[Path] = field(default_factory=set)
    """Where the spool has it."""
    heard_s: float = 0.0
    """When a span came last, on the clock of the assembly."""
    recorded: int = 0
    """Spans that its recording was made of; 0 when it is not recorded."""
    is_ours: bool = False
    """Whether the recording was made of these spans: else it holds others, which are not here and must not be replaced."""

    @property
    def has_root(self) -> bool:
        """Whether the outermost span has ended."""
        return any(span.parent_id is None and span.end_ns is not None for span in self.spans)


class Assembly:
    """Traces that go on. Not for more than one thread at once."""

    def __init__(self, now_s: Callable[[], float], quiet_s: float = QUIET_S, idle_s: float = IDLE_S) -> None:
        self._now_s = now_s
        self._quiet_s = quiet_s
        self._idle_s = idle_s
        self._traces: dict[str, Gathered] = {}
        self._memory: dict[Path, int] = {}
        self._kept: set[Path] = set()
        self.spans = 0
        """Spans that are held."""

    @property
    def memory(self) -> int:
        """Bytes of memory that the spans take, about."""
        return sum(self._memory.values())

    def add(self, spans: Iterable[ForeignSpan], file: Path, memory: int) -> None:
        """Take the spans of a body, which take so many bytes of memory."""
        self._memory[file] = memory
        for span in spans:
            trace = self._traces.setdefault(span.trace_id, Gathered(span.trace_id))
            trace.files.add(file)
            trace.heard_s = self._now_s()
            seen = (span.span_id, span.end_ns, len(span.attributes))
            if seen not in trace.seen:  # an exporter that got no answer sends again
                trace.seen.add(seen)
                trace.spans.append(span)
                self.spans += 1

    def due(self, *, all_of_them: bool = False) -> list[Gathered]:
        """Return the traces that are to be recorded now: those that are whole, or that nothing comes of any more."""
        now = self._now_s()
        return [
            trace
            for trace in self._traces.values()
            if len(trace.spans) > trace.recorded
            and (all_of_them or now - trace.heard_s >= (self._quiet_s if trace.has_root else self._idle_s))
        ]

    def keep(self, trace: Gathered) -> None:
        """Never give up the files of a trace that could not be recorded, whoever else has spans in them."""
        self._kept |= trace.files

    def forget(self, *, all_of_them: bool = False) -> Iterator[Path]:
        """Forget traces that were recorded a while ago; yield the files that no other trace needs."""
        old = [
            trace
            for trace in self._traces.values()
            if len(trace.spans) <= trace.recorded and (all_of_them or self._now_s() - trace.heard_s >= LATE_S)
        ]
        for trace in old:
            del self._traces[trace.trace_id]
            self.spans -= len(trace.spans)
        if old:
            needed = {file for trace in self._traces.values() for file in trace.files}
            for file in {file for trace in old for file in trace.files} - needed:
                self._memory.pop(file, None)
                if file not in self._kept:
                    yield file
