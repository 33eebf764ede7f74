"""Load recordings for replay, and refuse those that cannot be replayed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from playhead.compose.contexts import HOOK
from playhead.diagnose.recording import Recording, read_recording
from playhead.errors import NotReplayableError, UsageError, nearest
from playhead.kernel.strategies.base import strategy_of
from playhead.settings import load_settings
from playhead.trace.store import TraceStore

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from playhead.trace.events import EventBase
    from playhead.trace.line import Record


def read_reference(reference: str | Path, trace_dir: str | Path | None = None) -> Recording:
    """Load a recording by reference; see `playhead.load_recording`."""
    folder = Path(trace_dir) if trace_dir is not None else load_settings().trace_dir
    return read_recording(TraceStore(folder.expanduser()).resolve(reference))


def require_known(names: Iterable[object], known: Collection[str], what: str) -> None:
    """Refuse a name that is not known; `what` begins the message, such as `the recording has no tool`.

    Raises:
        UsageError: a name is unknown; the message names the nearest.
    """
    for name in names:
        if name not in list(known):
            raise UsageError(f"{what} {name!r}.{nearest(str(name), known)}")


def first_of_turn(recording: Recording, at: int, option: str, kind: type[EventBase]) -> Record:
    """Return the first event of the root in a turn, of this kind.

    Raises:
        UsageError: there is none; the message names the turns that have one.
    """
    first: dict[int, Record] = {}
    for record in recording.root.records:
        if record.seq and record.iteration is not None and isinstance(record.event, kind):
            first.setdefault(record.iteration, record)
    if type(at) is not int or at not in first:
        there = ", ".join(map(str, first)) or "none"
        raise UsageError(f"at ({option}): {recording.run_id} cannot begin at turn {at!r}; it can at: {there}")
    return first[at]


def require_sound(recording: Recording) -> None:
    """Refuse a file that was changed after it was written.

    Raises:
        NotReplayableError: the file is damaged.
    """
    header, name = recording.header, recording.path.name
    if recording.status in ("damaged", "erased"):
        first = next(problem for problem in recording.problems if problem.kind != "truncated")
        raise NotReplayableError(f"{name} is not what was written ({first}). See: playhead check {recording.path}")
    if header.replay_mode == "fork":
        at, origin = header.overrides.get("at"), header.replay_of
        raise NotReplayableError(f"{recording.run_id} is a fork of {origin} at turn {at}: fork {origin} again")


def require_repeatable(recording: Recording, what: str) -> None:
    """Refuse a run whose events cannot all be reproduced; `what` names what an import cannot do.

    Raises:
        NotReplayableError: the file is damaged, or the run is a program's, was imported, or a user's hook asked the model,
            which only its code can do again.
        UnknownStrategyError: the recording's strategy is not registered.
    """
    require_sound(recording)
    require_no_program(recording)
    for owner in recording.owners.values():
        if any(each.requested.purpose == HOOK for each in owner.exchanges):
            why = f"a hook of {owner.owner} asked the model when {recording.run_id} was recorded, and only its code could again"
            raise NotReplayableError(f"{why}. {REPLAY} and agent= for the hook: playhead replay")
    if recording.header.imported is not None:
        why = f"{recording.run_id} was imported from {recording.header.imported.format}: another program ran it, so {what}"
        raise NotReplayableError(f"{why}. {REPLAY}: playhead replay")
    strategy_of(recording.header.agent)


REPLAY: Final = "Its model can be asked again, with its tools frozen"


def require_no_program(recording: Recording) -> None:
    """Refuse a run of a recorded function, which only the function itself can do again.

    Raises:
        NotReplayableError: it is one.
    """
    header = recording.header.agent
    if header.strategy == "program":
        name = header.strategy_settings.get("function")
        raise NotReplayableError(f"{recording.run_id} is a run of the program {name}: pass program= (--program {name})")


def require_replayable(recording: Recording) -> None:
    """Refuse an imported run that lacks the data to replay it.

    Raises:
        NotReplayableError: the import report says that the run cannot be replayed.
    """
    imported = recording.header.imported
    if imported is not None and imported.replayability == "not":
        why = "; ".join(imported.reasons) or "its header does not say that it can be"
        what = f"{recording.run_id}, imported from {imported.format},"
        raise NotReplayableError(f"{what} cannot be replayed: {why}. Export it again with its content")
