"""The export of one run: its undelivered spans, its progress, and reports of problems."""

from __future__ import annotations

import io
import os
import shlex
import threading
import time
from collections import deque
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from playhead.errors import PlayheadError, TraceNotFoundError
from playhead.spans.cursor import NOTHING, Cursor, Reached
from playhead.spans.destination import plain, reason_of
from playhead.trace.blobs import run_id_of
from playhead.trace.events import RunCompleted
from playhead.trace.reader import Following, Problem, open_trace
from playhead.trace.store import began_us, is_alive

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from opentelemetry.sdk.trace import ReadableSpan

    from playhead.spans.builder import SpanBuilder
    from playhead.spans.destination import Destination
    from playhead.trace.line import Record

_RUNS: Final = 3
"""Largest number of runs that a command names; more runs are selected by time."""
_PROBLEMS: Final = 3
"""Largest number of a file's problems to show."""
_REASONS: Final = 10
"""Largest number of reasons for refusals to show."""
_SPANS: Final = 5
"""Largest number of refused spans to name."""


# --- the run --------------------------------------------------------------------------------------------------------


class Closed(NamedTuple):
    """A span to deliver."""

    run: RunExport
    seq: int
    """The event that closed it; for a span that the run left open, one more than the last event."""
    span: ReadableSpan


class RunExport:
    """The export of one run. Spans close in the order of the events, so one number is its progress."""

    def __init__(  # noqa: PLR0913 - what an export is made of
        self,
        path: Path,
        make_builder: Callable[[], SpanBuilder],
        destination: Destination | None = None,
        has_ended: Callable[[], bool] | None = None,
        *,
        resume: bool = False,
        next_seq: Callable[[], int] = lambda: 0,
    ) -> None:
        """Export a run; nothing is opened before the first span is taken.

        Args:
            path: its trace.
            make_builder: creates the builder of its spans.
            destination: where its progress is stored for; None: it is not stored.
            has_ended: returns whether the run has ended, for a trace without `run-completed`; None: use the run's lock.
            resume: whether to skip the spans that are settled by the cursor.
            next_seq: returns the number of the event that the run records next; for runs of this process.
        """
        self.run_id, self.path, self.next_seq = run_id_of(path), path, next_seq
        self.reached = Reached()
        """The progress so far."""
        self.accepted = 0
        """Spans that this export delivered."""
        self.refused: dict[str, list[str]] = {}
        """Names and ids of the spans that the destination refused in this export, by the reason."""
        self.skipped = self.refused_before = 0
        """Spans that were settled before this export, and how many of them were refused."""
        self.interrupted = 0
        """Spans that were still open when the run was over."""
        self.left_out = 0
        """Events that are part of no span."""
        self.remarks: Sequence[str] = ()
        """What is to be known about sending its spans again."""
        self.problems: list[Problem] = []
        """The problems of the file; at most 1,000."""
        self.sender: int | None = None
        """The process that sends it to the destination already, so that this export leaves it (0: not known which); None: no other."""
        self.failure: str | None = None
        """Why the trace cannot be read; None if it can."""
        self._cursor = None if destination is None else Cursor(path, destination)
        self._has_ended = has_ended or partial(is_over, path)
        self._make_builder, self._resume = make_builder, resume
        self._builder: SpanBuilder | None = None
        self._lock = threading.Lock()  # of the reading: the end of a process reads on, to count
        self._reading = self._closings()
        self._unsettled: deque[Closed] = deque()
        """The spans that were taken and are not settled."""
        self._from = Reached()
        self._at = NOTHING
        self._ended = self._drained = self._all_settled = self._counted = False

    @property
    def done(self) -> bool:
        """Whether nothing is left to deliver, now or later."""
        return self.failure is not None or self._all_settled

    def has_settled(self, seq: int) -> bool:
        """Return whether every span that closed up to this event is settled."""
        return self.done or self.reached.seq >= seq

    def take(self) -> Closed | None:
        """Return the next span to deliver; None when there is none now."""
        with self._lock:
            closed = None if self._counted else self._read_on()
            if closed is None:
                self.note_settled()
            else:
                self._unsettled.append(closed)
            return closed

    def settle(self, span: ReadableSpan, refused: str | None) -> None:
        """Settle the first taken span: accepted, or refused for a reason."""
        self._unsettled.popleft()
        if refused is None:
            self.accepted += 1
            self.reached.accepted += 1
        else:
            number = span.context.span_id if span.context else 0
            self.refused.setdefault(refused, []).append(f"{plain(span.name)} {number:016x}")
            self.reached.refused += 1

    def count_rest(self, late_at: float) -> int | None:
        """Return the number of unsettled spans, including open ones; the run's delivery stops.

        None when its events cannot be read, or when reading them takes past `late_at`, in monotonic seconds.
        """
        with self._lock:
            self._counted, number = True, len(self._unsettled)
            while self._read_on() is not None:
                number += 1
                if time.monotonic() > late_at:
                    return None
            still_open = self._builder.interrupted() if self._builder and not self._drained else ()
            return None if self.failure is not None else number + len(still_open)

    def close(self) -> None:
        """Drop the builder and the claim; unsettled spans are left to another export."""
        self.release()
        self._builder, self._reading = None, iter(())

    def release(self) -> None:
        """Let another process send the run."""
        if self._cursor is not None:
            self._cursor.release()

    # --- reading ------------------------------------------------------------------------------------------------------

    def _read_on(self) -> Closed | None:
        """Return the next span; None when there is none now. Why a trace cannot be read is kept as the run's failure."""
        try:
            return next(self._reading)
        except StopIteration:
            self._drained = True
        except Exception as error:  # noqa: BLE001 - one unreadable run must not delay the others
            self.failure = reason_of(error)
        return None

    def _closings(self) -> Iterator[Closed | None]:
        """Yield each span that the events close, and at the end the open spans; yield None while there are no new events."""
        builder = self._builder = self._make_builder()
        for record in self._records():
            if record is None:
                yield None
                continue
            spans = builder.feed(record)
            self.left_out, self.remarks = builder.left_out, builder.remarks
            if self._at == NOTHING and not self._begin(record.h):
                return
            self._ended = self._ended or (isinstance(record.event, RunCompleted) and record.owner == "root")
            yield from self._left_of(spans, record.seq, is_settled=record.seq <= self._from.seq)
            self._at = record.seq
        still_open = builder.interrupted()
        self.interrupted = len(still_open)
        is_settled = self._from.seq == self._from.interrupted_at == self._at
        yield from self._left_of(still_open, self._at + 1, is_settled=is_settled)

    def _records(self) -> Iterator[Record | None]:
        """Yield the events of the trace until the run has ended, and None while there are no new ones; raises like `scan`."""
        file = GrowingFile(self.path)
        lines, is_last = Following(self.path, file), False
        while not is_last:
            is_last = self._has_ended()  # before reading, so that all lines written until then are read
            yield from self._sound(lines.new())
            if file.failure is not None:
                raise file.failure
            is_last = is_last or self._ended
            if not is_last:
                yield None
        yield from self._sound(lines.ending())

    def _sound(self, items: Iterator[Record | Problem]) -> Iterator[Record]:
        for item in items:
            if isinstance(item, Problem):
                self.problems.append(item)
            else:
                yield item

    def _begin(self, first: str) -> bool:
        """Claim the run, and load the progress of the one whose first event has this hash; return whether anything is left to do."""
        if self._cursor is None:
            return True
        self.sender = self._cursor.claim()
        if self.sender is not None:
            return False
        loaded = self._cursor.load(first)
        if self._resume:
            self.reached, self._from = loaded, loaded.model_copy()
            self.refused_before = loaded.refused
            self.skipped = loaded.accepted + loaded.refused if loaded.complete else 0
        else:
            self.reached = Reached(first=first, destination=loaded.destination)
        if self.reached.complete:
            self.release()
        return not self.reached.complete

    def _left_of(self, spans: Sequence[ReadableSpan], seq: int, *, is_settled: bool) -> Iterator[Closed]:
        """Yield the spans that an event closed and that are not settled yet."""
        if is_settled:
            self.skipped += len(spans)
        else:
            yield from (Closed(self, seq, span) for span in spans)

    # --- what is settled ----------------------------------------------------------------------------------------------

    def note_settled(self) -> None:
        """Save the progress: every span that closed before the first unsettled one."""
        interrupted_at, complete = self.reached.interrupted_at, False
        if self._counted and not self._unsettled:
            return
        if self._drained and not self._unsettled:
            interrupted_at, complete = self._at if self.interrupted else None, self._ended
            self._all_settled = True
        seq = self._unsettled[0].seq - 1 if self._unsettled else self._at
        known = {"seq": max(seq, self._from.seq), "complete": complete, "interrupted_at": interrupted_at}
        newer = self.reached.model_copy(update=known)
        if self.reached.complete or self.reached == newer:
            return
        if self._cursor is not None:
            self._cursor.save(newer)
        self.reached = newer  # a flush waits for this


# --- the trace of a run that may still be running ---------------------------------------------------------------------


class GrowingFile(io.BufferedIOBase):
    """A growing trace. It is closed between reads, because an agent needs the descriptors; an error is kept in `failure`."""

    def __init__(self, path: Path) -> None:
        self._path, self._offset = path, 0
        self._identity: tuple[int, int] | None = None
        self.failure: PlayheadError | None = None

    def read1(self, size: int = -1, /) -> bytes:
        """Return the next bytes."""
        try:
            with open_trace(self._path) as file:
                status = os.fstat(file.fileno())
                identity = status.st_dev, status.st_ino
                if self._identity not in (None, identity):
                    raise TraceNotFoundError(f"{self._path} is another file now than the one that was read")
                self._identity = identity
                file.seek(self._offset)
                content = file.read(size)
        except PlayheadError as error:
            self.failure, content = error, b""
        self._offset += len(content)
        return content


def is_over(path: Path, *, assume_dead: bool = False) -> bool:
    """Return whether a run has ended; `assume_dead`: the result when this machine cannot tell."""
    alive = is_alive(path)
    return alive is False or (alive is None and assume_dead)


# --- what is reported -----------------------------------------------------------------------------------------------


def notices(run: RunExport, destination: str) -> Iterator[str]:
    """Yield the problems of a finished export: of the run's file, and of refused or omitted spans."""
    if run.sender is not None:
        yield f"{f'process {run.sender}' if run.sender else 'another process'} is sending it to {destination}, so it is left to that"
    yield from map(str, run.problems[:_PROBLEMS])
    if len(run.problems) > _PROBLEMS:
        yield f"and {len(run.problems) - _PROBLEMS:,} more problems; `playhead check` says where"
    if run.left_out:
        yield f"events that are part of no span, as what they belong to never began: {run.left_out:,}"
    if run.failure is not None:
        yield f"its spans cannot be sent: {run.failure}"
    for reason, spans in islice(run.refused.items(), _REASONS):
        names = ", ".join(spans[:_SPANS]) + (", …" if len(spans) > _SPANS else "")
        yield f"{destination} refused {_count(len(spans))}: {reason} ({names})"
    if len(run.refused) > _REASONS:
        yield f"{destination} refused more, for {len(run.refused) - _REASONS:,} more reasons"


def _count(spans: int) -> str:
    return f"{spans:,} span{'' if spans == 1 else 's'}"


def resend_command(paths: Sequence[Path], options: str, *, and_later: bool = False) -> str:
    """Return the `playhead export` commands that send these traces, one for each folder; the earliest trace comes first.

    A few traces are named one by one. More traces, or these `and_later` ones, are selected by the start of the first.
    """
    folders: dict[Path, list[Path]] = {}
    for path in paths:
        folders.setdefault(path.parent, []).append(path)
    commands = []
    for folder, those in folders.items():
        if len(those) <= _RUNS and not and_later:
            commands.append(f"playhead export {' '.join(shlex.quote(str(path)) for path in those)} {options}")
            continue
        first_us = min(filter(None, map(began_us, those)), default=0)
        since = datetime.fromtimestamp(first_us // 1_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        commands.append(f"playhead export --since {since} {options} --trace-dir {shlex.quote(str(folder))}")
    return f"to send them: {'; '.join(commands)}"


def message(left: Sequence[tuple[RunExport, int | None]], destination: str, reason: str | None, options: str) -> str:
    """Return the warning about runs with undelivered spans and their number (None: not known), with the command that sends them."""
    runs, counts = [run for run, _ in left], [count for _, count in left]
    number = sum(filter(None, counts))
    spans = f"{'at least ' if None in counts else ''}{_count(number)}" if number else "spans"
    whose = f"run {runs[0].run_id}" if len(runs) == 1 else f"{len(runs):,} runs"
    why = f" ({reason})" if reason else ""
    sends = resend_command([run.path for run in runs], options)
    return f"{spans} of {whose} could not be delivered to {destination}{why}. The trace keeps them; {sends}"
