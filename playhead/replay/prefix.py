"""The prefix of a recording that a resumption keeps: everything that has an answer. What was open is asked again.

A run that died leaves questions without answers, and one that was ended from outside leaves answers that are none
("cancelled"). Both are taken out here, and what is left is the prefix of a run that could go on from there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from playhead.diagnose.divergence import is_ending
from playhead.diagnose.lanes import call_of
from playhead.errors import NotReplayableError
from playhead.replay.calls import inside_bodies, scope_of
from playhead.replay.guards import Races
from playhead.trace.events import (
    AgentCompleted,
    AgentStarted,
    BudgetReserved,
    KillswitchFired,
    LlmRequested,
    RunResumed,
    ToolCallCompleted,
)
from playhead.trace.format import ANSWERED
from playhead.trace.line import Record
from playhead.trace.owners import is_within, parent_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.trace.recording import OwnerRecording, RecordedCall, Recording
    from playhead.trace.types import ToolSpec

FROM_OUTSIDE: Final = frozenset({"cancelled", "kill", "kill_file", "timeout_after", "watchdog"})
"""Endings that came at a moment: the run could go on from there."""
AT_A_LIMIT: Final = frozenset({"budget_limit", "llm_error", "max_iterations"})
"""Endings at the model's door, where nothing but the next request was to come: it can be asked again."""
TOLD: Final = -1
"""`seq` of the end of a call that the caller states, and the file does not hold."""
CUT_OFF: Final = frozenset({"cancelled", "parent_ended", "replay_stopped"})
"""How an agent ends that something above it, or a stopped replay, ended."""
WITHOUT_ANSWER: Final = frozenset({
    "emission-changed", "emission-suppressed", "hook-fired", "kernel-state-snapshot", "killswitch-fired", "llm-failed",
    "message-added", "nudge-issued", "tools-defined",
})  # fmt: skip
"""Kinds of events that answer nothing. As the last ones of an agent they come again, or come about otherwise."""


@dataclass(frozen=True)
class Prefix:
    """The part of a recording that is given: another world takes over where it ends."""

    whole: Recording
    """The recording without the end of the run."""
    recording: Recording
    """The same without what was open: what comes again, event by event."""
    inside: frozenset[str]
    """Owners inside calls that are served as a whole: they do not run again."""
    set_aside: tuple[tuple[str, BudgetReserved], ...]
    """What budgets had set aside, by owner, for requests that were sent and not answered."""
    open_calls: dict[tuple[str, str], RecordedCall]
    """Calls of agents that were started and never answered, by owner and id; without those of agents that were entered."""
    lines: dict[int, int]
    """Line in the file by `seq`."""

    def frozen(self, owner: str) -> OwnerRecording | None:
        """Return what is given of an agent; None for one that is new, or that is inside a tool's body."""
        return None if owner in self.inside else self.recording.owners.get(owner)

    def body_of(self, owner: str, call: RecordedCall) -> list[Record]:
        """Return what the body of a call did through the ports."""
        scope = scope_of(owner, call)
        return [each for each in self.whole.records if is_within(each.owner, scope)]

    def spec(self, owner: str, tool: str) -> ToolSpec | None:
        """Return a tool as an agent had it or, of a body, as the agent had it that the body works for."""
        while owner:
            known = self.whole.owners.get(owner)
            if known is not None and known.started is not None:
                return next((each for each in known.own_tools.values() if each.name == tool), None)
            owner = parent_of(owner)
        return None


def prefix_of(recording: Recording) -> Prefix:
    """Return what of a recording is given when its run is resumed: everything that has an answer.

    Raises:
        NotReplayableError: the run has come to an end that nothing comes after, or is no run to go on with.
    """
    _require_resumable(recording)
    lines = {record.seq: number for number, record in enumerate(recording.records, 1)}
    return answered_part(replace(recording, records=tuple(without_end(recording))), lines)


def answered_part(whole: Recording, lines: dict[int, int]) -> Prefix:
    """Return what is given of a recording that goes no further than to where another world takes over."""
    inside = frozenset(Races(whole).inside)
    answered = {
        (name, each.requested.request, each.requested.attempt): each.outcome is not None
        for name, owner in whole.owners.items()
        for each in owner.exchanges
    }
    calls = {
        (name, call_id): call
        for name, owner in whole.owners.items()
        if name not in inside
        for call_id, call in owner.calls.items()
        if call.completed is None and not _was_entered(whole, name, call)
    }
    kept, set_aside = list[Record](), list[tuple[str, BudgetReserved]]()
    for record in whole.records:
        event, call = record.event, calls.get((record.owner, call_of(record.event)))
        if isinstance(event, (LlmRequested, BudgetReserved)):
            attempt = (record.owner, event.request, event.attempt)
            is_open = not answered.get(attempt, False)
            if is_open and attempt in answered and isinstance(event, BudgetReserved):
                set_aside.append((record.owner, event))
        else:
            is_open = call is not None and record.seq >= call.seq
        if not is_open:
            kept.append(record)
    return Prefix(whole, replace(whole, records=tuple(kept)), inside, tuple(set_aside), calls, lines)


def _was_entered(recording: Recording, owner: str, call: RecordedCall) -> bool:
    """Return whether a call is that of an agent, which has begun."""
    child = recording.owners.get(scope_of(owner, call))
    return child is not None and isinstance(child.started, AgentStarted)


def caught_up(recording: Recording) -> bool:
    """Return whether a resumed run had come as far as the run that it continues: from there on it was live."""
    return any(
        isinstance(record.event, RunResumed) and record.event.caught_up_with == recording.header.resumed_from
        for record in recording.records
    )


def _require_resumable(recording: Recording) -> None:
    header, ending = recording.header, recording.ending
    if header.replay_of is not None:
        raise NotReplayableError(
            f"{recording.run_id} is a replay of {header.replay_of}: its tools never ran, so there is nothing to go on with"
        )
    if header.chat is not None:
        raise NotReplayableError(f"{recording.run_id} is a turn of a chat: resume the chat, and send the message again")
    if header.resumed_from is not None and not caught_up(recording):
        raise NotReplayableError(
            f"{recording.run_id} continues {header.resumed_from} and had not caught up with it: nothing of it was live, and "
            f"it does not hold all that was done. Resume {header.resumed_from}"
        )
    if ending is None or ending.terminated_by in FROM_OUTSIDE | AT_A_LIMIT:
        return
    known = ", ".join(sorted(FROM_OUTSIDE | AT_A_LIMIT))
    why = f"it ended by {ending.terminated_by}; a run can be resumed that died, or ended by one of {known}"
    if ending.terminated_by in ANSWERED:
        why = "it has its answer"
    raise NotReplayableError(f"{recording.run_id} is over: {why}. To run it again, use replay, or run the task anew")


def without_end(recording: Recording) -> Iterator[Record]:
    """Yield the records without what agents wrote because the run ended, or between two answers; that comes again.

    Raises:
        NotReplayableError: a killswitch ended the run while something else of it went on: there is no one point to resume from.
    """
    unfinished = _unfinished(recording) - inside_bodies(recording).keys()
    kept = [
        record
        for record in recording.records
        if record.owner not in unfinished
        or not (is_ending(record) or _answers_unfinished(record, recording, unfinished))
    ]
    last = {record.owner: record.seq for record in kept if record.kind not in WITHOUT_ANSWER}
    for record in kept:
        if record.owner in unfinished and record.seq > last.get(record.owner, -1):
            continue
        event = record.event
        ended = isinstance(event, KillswitchFired) and (event.ends or record.owner) in unfinished
        if ended and recording.ending is not None:  # without an end the switch fires again
            raise NotReplayableError(
                f"a killswitch ended {recording.run_id} while something else of it went on, so there is no one point to resume "
                "from"
            )
        yield record


def _unfinished(recording: Recording) -> set[str]:
    """Return the agents that had more to do: the root, and those below that did not end by themselves."""
    found: set[str] = set()
    for name, owner in recording.owners.items():  # those above come first
        completed, above = owner.completed, parent_of(name)
        cut_off = isinstance(completed, AgentCompleted) and completed.terminated_by in CUT_OFF
        if not isinstance(completed, AgentCompleted) or (above in found and cut_off):
            found.add(name)
    return found


def _answers_unfinished(record: Record, recording: Recording, unfinished: set[str]) -> bool:
    """Return whether this is the end of a call of an agent that had more to do."""
    event = record.event
    if not isinstance(event, ToolCallCompleted):
        return False
    call = recording.owners[record.owner].calls.get(event.call_id)
    return (
        call is not None and _was_entered(recording, record.owner, call) and scope_of(record.owner, call) in unfinished
    )
