"""Compares a reproduced program with its recording: what is equal, what differs, and what cannot be known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from playhead.diagnose.diff_values import differences
from playhead.errors import RecordingEndedError
from playhead.instrument.exchanges import asked_of_model
from playhead.instrument.worlds import CANCELLED, UNFINISHED
from playhead.replay.divergence import Divergence
from playhead.trace.events import AgentCompleted, FactRecorded, LlmRequested, RunCompleted, ToolCallStarted
from playhead.trace.values import to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from playhead.diagnose.recording import Recording
    from playhead.errors import ReplayError
    from playhead.instrument.worlds import Act
    from playhead.replay.strands import Entry, Found, Strands
    from playhead.trace.line import Record
    from playhead.trace.values import JsonValue

_ENDING: Final = ("error", "status", "terminated_by", "output")
"""The fields of an ending that have to come again, the most telling first."""
_RACE: Final = "how far a task comes that is cancelled, or at work when its function ends, may vary"


class Judged(NamedTuple):
    """What a reproduction concludes."""

    divergences: tuple[Divergence, ...]
    ambiguous: tuple[str, ...]
    """Why nothing is concluded."""
    notes: tuple[str, ...]
    """What tasks that were cut off did less, or more, than in the recording."""


class ProgramComparison:
    """Compares what a program does with its recording, act by act and ending by ending."""

    def __init__(self, recording: Recording, strands: Mapping[str, Strands], shown: Callable[[Any], Any]) -> None:
        """Make a comparison; `shown` redacts a value of the program."""
        self.events = 0
        """The number of acts and endings that came out as recorded."""
        self._recording, self._strands, self._shown = recording, strands, shown
        self.ambiguous: list[str] = []
        """Why nothing can be concluded."""
        self.further: list[Act] = []
        """What cancelled or unfinished tasks did beyond their recording."""
        self._found: list[Divergence] = []
        self._endings: list[Divergence] = []
        self._tails: list[Divergence] = []
        """Different endings of functions that were cut off."""
        # Whether tasks were cut off, then or now: how far they came may have changed everything else.
        self._is_racing = self._was_racing = any(each.cut or each.at_work for each in strands.values())

    def take(self, act: Act, found: Found) -> None:
        """Note an act with its recorded counterpart."""
        self.events += 1
        entry, name = found.entry, named(act.kind, act.name)
        if found.rival is not None:
            self.ambiguous.append(
                f"{name} of {entry.owner}: events {entry.seq} and {found.rival.seq} are of equal strands "
                "that were answered differently"
            )
        if entry.key != act.key:
            self.ambiguous.append(f"redaction hides whether {name} is that of event {entry.seq}")

    def take_other(self, act: Act) -> Divergence:
        """Note an act that has no counterpart, and return what differs."""
        self._found.append(self._difference(act))
        return self._found[-1]

    def take_event(self, record: Record) -> None:
        """Compare how the program, or a recorded function in it, ended; take no notice of other events."""
        event, recorded = record.event, self._recording.owners.get(record.owner)
        self._is_racing |= isinstance(event, FactRecorded) and event.name in (UNFINISHED, CANCELLED)
        if not isinstance(event, (RunCompleted, AgentCompleted)) or recorded is None or recorded.completed is None:
            return
        then, now = ({name: getattr(each, name) for name in _ENDING} for each in (recorded.completed, event))
        first = next(iter(differences(to_json(then), to_json(now))), None)
        if first is None:
            self.events += 1
            return
        what, seq = f"{first.path} of {event.kind} differs", recorded.records[-1].seq
        has_ended_early = "parent_ended" in (recorded.completed.terminated_by, event.terminated_by)
        ending = Divergence(recorded.owner, event.kind, what, first.original, first.replay, seq)
        (self._tails if has_ended_early or self._is_cut(record.owner, 0) else self._endings).append(ending)

    def judge(
        self, owners: Iterable[str], inside: Iterable[Divergence], stopped: ReplayError | None, *, is_lost: bool
    ) -> Judged:
        """Return the differences, the first one first, or why they are not known.

        Args:
            owners: the owners that the program entered again.
            inside: the differences of the agents in it.
            stopped: why it was stopped; None if it came to its end.
            is_lost: whether it lost the recorded order of answers.
        """
        found = [*self._found, *inside]
        if stopped is not None:
            owners = ()  # it did not come to the rest of the recording, so nothing there counts as missing
            if not found and not isinstance(stopped, RecordingEndedError):
                found.append(Divergence("root", "outside of the program", str(stopped), None, None, None))
        left, further = [*self._left(owners)], [self._difference(each) for each in self.further]
        less = [self._missing(each) for each in left if not self._is_cut(each.owner, each.strand)]
        is_new = bool(further) and not self._was_racing  # the recording cut nothing off: the program may have changed
        if not (found or less or self._endings or is_new):  # only tasks that were cut off differ
            cut = [self._missing(each) for each in left]
            tails = [f"{_RACE}: {each.what}" for each in (*cut, *further, *self._tails)]
            return Judged((), tuple(self.ambiguous), tuple(tails))
        acts = sorted((*found, *further, *less), key=lambda each: (each.seq is None, each.seq or 0))
        every = (*acts, *self._endings)
        if self._is_racing and (is_lost or not found):
            doubts = [f"{_RACE}: {each.what}" for each in every]
            return Judged((), (*self.ambiguous, *doubts), ())
        return Judged(every, tuple(self.ambiguous), ())

    def _is_cut(self, owner: str, strand: int) -> bool:
        return owner in self._strands and strand in self._strands[owner].cut

    def _left(self, owners: Iterable[str]) -> Iterator[Entry]:
        """Yield the first act of each strand that has an answer and has not come again."""
        for owner in owners:
            seen = set[int]()
            for entry in self._strands[owner].left() if owner in self._strands else ():
                if entry.strand not in seen and entry.is_known:
                    seen.add(entry.strand)
                    yield entry

    def _missing(self, entry: Entry) -> Divergence:
        what = f"only the recording has {named(entry.kind, entry.name)} here"
        return Divergence(entry.owner, _where(entry), what, self._content_of(entry), None, entry.seq)

    def _difference(self, act: Act) -> Divergence:
        """Return what an act differs in from what was recorded there."""
        due = self._strands[act.owner].expected(act.strand) if act.owner in self._strands else None
        owner, now, name = act.owner, self._shown(act.content()), named(act.kind, act.name)
        if due is None:
            return Divergence(owner, name, f"only the program now has {name} here", None, now, None)
        then = self._content_of(due)
        if (due.kind, due.name) != (act.kind, act.name):
            return Divergence(owner, _where(due), f"{name} instead of {named(due.kind, due.name)}", then, now, due.seq)
        first = next(iter(differences(then, now)), None)
        what = f"{first.path if first and first.path else 'the content'} of {name} differs"
        one, other = (then, now) if first is None else (first.original, first.replay)
        return Divergence(owner, _where(due), what, one, other, due.seq)

    def _content_of(self, entry: Entry) -> JsonValue:
        """Return what an entry asked, in the form of `Act.content`."""
        if isinstance(entry.asked, LlmRequested):
            return asked_of_model(self._recording.owners[entry.owner].request(entry.asked), entry.asked.parameters)
        return entry.asked.args if isinstance(entry.asked, ToolCallStarted) else entry.name


def named(kind: str, name: str) -> str:
    """Return what a program does at a port, as a part of a sentence."""
    return {"request": "the request to the model", "call": f"the call of {name}", "fact": f"the fact {name}"}[kind]


def _where(entry: Entry) -> str:
    asked = entry.asked
    if isinstance(asked, LlmRequested):
        return f"request {asked.request}"
    return f"call {asked.call_id}" if isinstance(asked, ToolCallStarted) else f"fact {entry.name}"
