"""How far a run has come on its way to a destination: what need not be sent again.

`<folder of the trace>/.export/<destination>/<run id>.json`, written whole and readable by its owner only. It says that
every span which closed up to the event `seq` is settled: accepted, or refused for good. A file that is missing, older or
broken costs no span: what it does not say is sent again, under the same ids.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

from playhead.spans.naming import NAMED
from playhead.trace.blobs import run_id_of
from playhead.trace.control_files import is_private, read_object, write_over
from playhead.trace.run_ids import checked_run_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from playhead.spans.destination import Destination

FOLDER: Final = ".export"
"""Beside the traces."""
MAX_REFUSED: Final = 200
"""Refusals that are written down one by one; of the others it is counted how many spans they are about."""
_LARGEST: Final = 1024 * 1024
"""Bytes of a cursor's file."""
NOTHING: Final = -1


@dataclass(frozen=True, slots=True)
class Refused:
    """Spans of a run that the destination does not take."""

    count: int
    """How many."""
    first_seq: int
    """The event that closed the first of those that may be meant."""
    last_seq: int
    """The same of the last."""
    reason: str
    """In the destination's words."""
    spans: tuple[str, ...] = ()
    """Names and ids of the first of those that may be meant."""
    among: int | None = None
    """Of how many spans it is some, when the destination did not say which of them; None: all of those that may be meant."""


def in_words(refusals: Iterable[Refused]) -> list[str]:
    """Return what was refused and why, one line for each reason; where it is not known which spans are meant, it says so."""
    lines, whole = [], dict[str, list[Refused]]()
    for each in refusals:
        if each.among is None:
            whole.setdefault(each.reason, []).append(each)
        else:
            which = f"{each.count:,} of {each.among:,} spans, not saying which of them"
            lines.append(f"{which}: {each.reason} ({_names(each.spans, each.among)})")
    for reason, same in whole.items():
        count = sum(each.count for each in same)
        names = [name for each in same for name in each.spans]
        lines.append(f"{count:,} span{'' if count == 1 else 's'}: {reason} ({_names(names, count)})")
    return lines


def _names(names: Sequence[str], of: int) -> str:
    return ", ".join(names[:NAMED]) + (", …" if of > len(names[:NAMED]) else "")


@dataclass
class Reached:
    """How far a run has come."""

    seq: int = NOTHING
    """Every span that closed up to this event is settled; -1: none."""
    accepted: int = 0
    """Spans that were accepted."""
    complete: bool = False
    """Whether the run has ended and all of its spans are settled."""
    interrupted_at: int | None = None
    """The last event of the run when its open spans were sent as interrupted."""
    refused: list[Refused] = field(default_factory=list)
    """What was refused."""
    more_refused: int = 0
    """Spans that were refused, too, and are not in the list."""

    def refuse(self, refused: Refused) -> None:
        """Note what was refused."""
        if len(self.refused) < MAX_REFUSED:
            self.refused.append(refused)
        else:
            self.more_refused += refused.count


class Cursor:
    """The file that says how far a run has come."""

    def __init__(self, trace_path: Path, destination: Destination) -> None:
        self.path = trace_path.parent / FOLDER / destination.key / f"{checked_run_id(run_id_of(trace_path))}.json"
        self._about = {"destination": destination.name, "account": destination.account, "run": run_id_of(trace_path)}
        self._saved = NOTHING
        self.error: str | None = None
        """Why it could not be written the last time; None when it could."""

    def load(self, first: str) -> Reached:
        """Return what was reached by the trace whose first event has this hash; nothing when none can be believed."""
        try:
            said = read_object(self.path, os.geteuid(), _LARGEST)
            if said.get("first") != first or any(said.get(name) != value for name, value in self._about.items()):
                return Reached()
            reached = _reached_from(said["reached"])
        except (OSError, ValueError, KeyError, TypeError):
            return Reached()
        self._saved = reached.seq
        return reached

    def save(self, first: str, reached: Reached) -> None:
        """Write down what was reached; never less than before, and never raises. A disk that is full may have room later."""
        if reached.seq < self._saved:
            return
        try:
            _make(self.path.parent)
            write_over(self.path, {**self._about, "first": first, "reached": asdict(reached)})
        except OSError as error:
            self.error = error.strerror or type(error).__name__
            return
        self._saved, self.error = reached.seq, None


def _make(folder: Path) -> None:
    """Make the folder for nobody but the user; raises `OSError` when others can write into it."""
    with suppress(FileExistsError):
        folder.parent.mkdir(mode=0o700)
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    if not (is_private(folder.parent, os.geteuid()) and is_private(folder, os.geteuid())):
        raise PermissionError(1, "others can write into it", str(folder))


def _reached_from(said: dict[str, Any]) -> Reached:
    """Return what a file says; raises `ValueError`, `KeyError` or `TypeError` when it says nothing of the kind."""
    numbers = [said["seq"], said["accepted"], said["more_refused"]]
    interrupted_at = said["interrupted_at"]
    if any(type(number) is not int for number in [*numbers, interrupted_at or 0]):
        raise ValueError("no numbers")
    refused = [Refused(**{**each, "spans": tuple(each["spans"])}) for each in said["refused"]]
    complete = said["complete"] is True
    return Reached(said["seq"], said["accepted"], complete, interrupted_at, refused, said["more_refused"])
