"""What is settled of a run's spans: what its cursor said, and what this export has added."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from playhead.spans.cursor import NOTHING, Reached, Refused

if TYPE_CHECKING:
    from collections.abc import Iterable

    from playhead.spans.cursor import Cursor


class Start(NamedTuple):
    """From where on spans are to be delivered."""

    seq: int = NOTHING
    """Those that closed up to this event are settled."""
    interrupted_at: int | None = None
    """The last event of the run when its open spans were sent."""


class Settled:
    """How far a run has come, and what became of its spans."""

    def __init__(self, cursor: Cursor | None, *, resume: bool) -> None:
        """Begin with nothing.

        Args:
            cursor: where it is written down; None when nobody will ask.
            resume: whether what the cursor says is settled is left out.
        """
        self.cursor = cursor
        self.reached = Reached()
        """What is settled by now."""
        self.accepted = self.refused = 0
        """What became of the spans of this export."""
        self.skipped = 0
        """Spans that were settled before."""
        self.refused_before = 0
        """Of these, the ones that were refused: nobody has them."""
        self.smaller: list[str] = []
        """Names and ids of spans that were accepted only without their content, for they were too large."""
        self._resume = resume
        self._start = Start()
        self._known = 0  # refusals that were written down before
        self._first = ""

    @property
    def refused_now(self) -> list[Refused]:
        """What was refused by this export, as far as it is written down."""
        return self.reached.refused[self._known :]

    def start_from(self, reached: Reached) -> None:
        """Deliver what another export of the same run has left."""
        self._start = Start(reached.seq, reached.interrupted_at)

    def begin(self, first: str) -> bool:
        """Find out how far the run came whose first line has this hash; return whether anything is left."""
        self._first = first
        found = None if self.cursor is None else self.cursor.load(first)
        if found is not None and self._resume:
            self.reached, self._known = found, len(found.refused)
            self.start_from(found)
            self.refused_before = sum(each.count for each in found.refused) + found.more_refused
            if found.complete:
                self.skipped = found.accepted + self.refused_before
        return not self.reached.complete

    def skip(self, seq: int, spans: int, *, at_end: bool) -> bool:
        """Return whether these spans are settled, and count them if so.

        Args:
            seq: the event that closed them.
            spans: how many.
            at_end: whether they are open, and the run is over.
        """
        settled = self._start.seq == self._start.interrupted_at == seq - 1 if at_end else seq <= self._start.seq
        self.skipped += spans if settled else 0
        return settled

    def add(self, count: int, refused: Iterable[Refused], smaller: Iterable[str]) -> None:
        """Note what became of so many spans."""
        refusals = 0
        for each in refused:
            self.reached.refuse(each)
            refusals += each.count
        self.reached.accepted += count - refusals
        self.accepted, self.refused = self.accepted + count - refusals, self.refused + refusals
        self.smaller += smaller

    def reach(self, seq: int) -> None:
        """Note that all is settled that closed up to this event; more spans follow, or may."""
        self._write(max(seq, self._start.seq), complete=False, interrupted_at=self.reached.interrupted_at)

    def finish(self, at: int, *, ended: bool, interrupted: bool) -> None:
        """Note that nothing is left.

        Args:
            at: the last event.
            ended: whether it is the run's own end.
            interrupted: whether spans were still open.
        """
        self._write(max(at, self._start.seq), complete=ended, interrupted_at=at if interrupted else None)

    def close(self) -> None:
        """Write down what could not be written before."""
        if self.cursor is not None and self.cursor.error is not None:
            self.cursor.save(self._first, self.reached)

    def _write(self, seq: int, *, complete: bool, interrupted_at: int | None) -> None:
        reached = self.reached
        before = reached.seq, reached.complete, reached.interrupted_at
        if reached.complete or before == (seq, complete, interrupted_at):
            return
        reached.seq, reached.complete, reached.interrupted_at = seq, complete, interrupted_at
        if self.cursor is not None:
            self.cursor.save(self._first, reached)
