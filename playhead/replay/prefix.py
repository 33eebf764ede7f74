"""The prefix of a recording that `resume` keeps: everything with an answer. Open requests and calls are made again.

A run that died leaves requests and calls without answers; a run ended from outside leaves invalid answers ("cancelled").
Both are removed here, so that the remaining prefix can be continued. For a call without an answer that may have had a side
effect, the caller states the outcome.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from playhead.diagnose.divergence import call_of
from playhead.diagnose.parts import short
from playhead.errors import NotReplayableError, UnresolvedCallError, UsageError, nearest
from playhead.replay.calls import entering, inside_bodies, scope_of, spec_of, tools_of
from playhead.replay.divergence import is_ending
from playhead.replay.overrides import ResultOverride
from playhead.replay.steered import Races
from playhead.trace import events as e
from playhead.trace.format import ANSWERED
from playhead.trace.line import Record
from playhead.trace.owners import is_within, lineage, parent_of
from playhead.trace.values import JsonValue, scrub, to_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from playhead.diagnose.recording import OwnerRecording, RecordedCall, Recording

FROM_OUTSIDE: Final = frozenset({"cancelled", "kill", "kill_file", "timeout_after", "watchdog"})
"""Endings at an arbitrary moment, from which the run can continue."""
AT_A_LIMIT: Final = frozenset({"budget_limit", "llm_error", "max_iterations"})
"""Endings just before a model request, which can be made again."""
TOLD: Final = -1
"""`seq` of a call's end that the caller states and the file does not contain."""
CUT_OFF: Final = frozenset({"cancelled", "parent_ended", "replay_stopped"})
"""Reason codes of agents that a parent or a stopped replay ended."""
WITHOUT_ANSWER: Final = frozenset({
    "emission-changed", "emission-suppressed", "hook-fired", "kernel-state-snapshot", "killswitch-fired", "llm-failed",
    "message-added", "nudge-issued", "tools-defined",
})  # fmt: skip
"""Kinds of events that answer nothing. As the last ones of an agent they come again, or come about otherwise."""


@dataclass(frozen=True)
class Prefix:
    """The part of a recording that is served. The run is live after it."""

    whole: Recording
    """The recording without the end of the run."""
    recording: Recording
    """The recording without open requests and calls: the events that must recur."""
    races: Races
    """Agents that ended at an arbitrary moment, and the owners inside calls that are served as a whole."""
    set_aside: tuple[tuple[str, e.BudgetReserved], ...]
    """Budget reservations for unanswered requests, by owner."""
    open_calls: dict[tuple[str, str], RecordedCall]
    """Started calls without an answer, by owner and id, except calls of agents that were entered."""
    lines: dict[int, int]
    """The line in the file, by `seq`."""

    def frozen(self, owner: str) -> OwnerRecording | None:
        """Return an agent's part of the prefix; None for a new agent or one inside a tool's body."""
        return None if owner in self.races.inside else self.recording.owners.get(owner)

    def body_of(self, owner: str, call: RecordedCall) -> list[Record]:
        """Return the recorded port events of a call's body."""
        scope = scope_of(owner, call)
        return [each for each in self.whole.records if is_within(each.owner, scope)]


def prefix_of(recording: Recording) -> Prefix:
    """Return the prefix of a recording for `resume`: everything with an answer.

    Raises:
        NotReplayableError: the run is complete, or cannot be resumed.
    """
    _require_resumable(recording)
    lines = {record.seq: number for number, record in enumerate(recording.records, 1)}
    return answered_part(replace(recording, records=tuple(without_end(recording))), lines)


def answered_part(whole: Recording, lines: dict[int, int]) -> Prefix:
    """Return the prefix of a recording that ends where the run becomes live."""
    races = Races(whole)
    asked = ((name, each.requested, each.outcome) for name, owner in whole.owners.items() for each in owner.exchanges)
    answered = {(name, each.request, each.attempt): outcome is not None for name, each, outcome in asked}
    calls = {
        (name, call_id): call
        for name, owner in whole.owners.items()
        if name not in races.inside
        for call_id, call in owner.calls.items()
        if call.completed is None and not _was_entered(whole, name, call)
    }
    kept, set_aside = list[Record](), list[tuple[str, e.BudgetReserved]]()
    for record in whole.records:
        event, call = record.event, calls.get((record.owner, call_of(record.event)))
        if isinstance(event, (e.LlmRequested, e.BudgetReserved)):
            attempt = (record.owner, event.request, event.attempt)
            is_open = not answered.get(attempt, False)
            if is_open and attempt in answered and isinstance(event, e.BudgetReserved):
                set_aside.append((record.owner, event))
        else:
            is_open = call is not None and record.seq >= call.seq
        if not is_open:
            kept.append(record)
    return Prefix(whole, replace(whole, records=tuple(kept)), races, tuple(set_aside), calls, lines)


def _was_entered(recording: Recording, owner: str, call: RecordedCall) -> bool:
    """Return whether a call entered an agent that has begun."""
    child = recording.owners.get(scope_of(owner, call))
    return child is not None and isinstance(child.started, e.AgentStarted)


def caught_up(recording: Recording) -> bool:
    """Return whether a resumed run had reproduced the run that it continues, so that it was live."""
    marks = (each.event for each in recording.records if isinstance(each.event, e.RunResumed))
    return any(mark.caught_up_with == recording.header.resumed_from for mark in marks)


def _require_resumable(recording: Recording) -> None:
    header, ending = recording.header, recording.ending
    if header.replay_of is not None:
        raise NotReplayableError(f"{recording.run_id} is a replay of {header.replay_of}, whose tools never ran")
    if header.chat is not None:
        raise NotReplayableError(f"{recording.run_id} is a turn of a chat: resume the chat, and send the message again")
    if header.resumed_from is not None and not caught_up(recording):
        raise NotReplayableError(f"{recording.run_id} had not caught up with {header.resumed_from}. Resume that one")
    if ending is not None and ending.terminated_by not in FROM_OUTSIDE | AT_A_LIMIT:
        known = ", ".join(sorted(FROM_OUTSIDE | AT_A_LIMIT))
        why = f"it ended by {ending.terminated_by}; a run can be resumed that died, or ended by one of {known}"
        why = "it has its answer" if ending.terminated_by in ANSWERED else why
        raise NotReplayableError(f"{recording.run_id} is over: {why}. Replay it, or run the task anew")


def without_end(recording: Recording) -> Iterator[Record]:
    """Yield the records without those that agents wrote because the run ended or between two answers, which recur.

    Raises:
        NotReplayableError: a killswitch ended the run while other parts of it continued, so there is no single point to
            resume from.
    """
    unfinished = _unfinished(recording) - inside_bodies(recording).keys()
    entered = ((parent_of(name), entering(recording, name)) for name in unfinished)
    cut_off = {(name, call.started.call_id) for name, call in entered if call is not None}
    ends = {each.seq for each in recording.records if is_ending(each) or _ended_call(each) in cut_off}
    kept = [each for each in recording.records if each.owner not in unfinished or each.seq not in ends]
    last = {record.owner: record.seq for record in kept if record.kind not in WITHOUT_ANSWER}
    for record in kept:
        if record.owner in unfinished and record.seq > last.get(record.owner, -1):
            continue
        event = record.event
        ended = isinstance(event, e.KillswitchFired) and (event.ends or record.owner) in unfinished
        if ended and recording.ending is not None:  # the switch fires again because its ending was removed
            raise NotReplayableError(f"a killswitch ended {recording.run_id} while others of its agents went on")
        yield record


def _unfinished(recording: Recording) -> set[str]:
    """Return the unfinished agents: the root, and sub-agents that did not end by themselves."""
    found: set[str] = set()
    for name, owner in recording.owners.items():  # those above come first
        completed, above = owner.completed, parent_of(name)
        cut_off = isinstance(completed, e.AgentCompleted) and completed.terminated_by in CUT_OFF
        if not isinstance(completed, e.AgentCompleted) or (above in found and cut_off):
            found.add(name)
    return found


def _ended_call(record: Record) -> tuple[str, str] | None:
    return (record.owner, record.event.call_id) if isinstance(record.event, e.ToolCallCompleted) else None


class NotHappened(Enum):
    """The type of `DID_NOT_HAPPEN`."""

    DID_NOT_HAPPEN = "did not happen"


DID_NOT_HAPPEN: Final = NotHappened.DID_NOT_HAPPEN
"""States that a call had no effect. It runs again."""


@dataclass(frozen=True, slots=True)
class UnresolvedCall:
    """A call that may or may not have had its side effect."""

    owner: str
    """Who called."""
    call_id: str
    """The call's id, unique within its owner."""
    tool: str
    """The tool."""
    arguments: JsonValue
    """The arguments."""
    line: int
    """The line of the trace on which it starts, from 1."""
    key: str
    """The key for `unresolved=`: the id, or owner and id if two calls have the same id."""

    def __str__(self) -> str:
        """Return the information needed to find out what happened."""
        text = json.dumps(self.arguments, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        return f"{self.tool}({short(text)}), call {self.key!r} of {self.owner}, line {self.line} of the trace"


def resolve(prefix: Prefix, given: Mapping[str, Any] | None) -> Prefix:
    """Return the prefix with the outcomes that the caller states for unanswered calls with side effects.

    Raises:
        UnresolvedCallError: the outcome of such a call is missing.
        UsageError: an outcome is stated for another call, or is not valid.
    """
    calls, answers = {call.key: call for call in unresolved_calls(prefix)}, list[Record]()
    given = {str(key).removeprefix("root "): answer for key, answer in dict(given or {}).items()}
    for key, answer in given.items():
        if key not in calls:
            raise UsageError(f"unresolved: no call {key!r} waits for a word of yours.{nearest(key, calls)}")
        answers += _answer(prefix, calls[key], answer)
    left = tuple(call for key, call in calls.items() if key not in given)
    if left:
        raise UnresolvedCallError(_message(prefix, left), left)
    return answered_part(replace(prefix.whole, records=(*prefix.whole.records, *answers)), prefix.lines)


def unresolved_calls(prefix: Prefix) -> list[UnresolvedCall]:
    """Return the calls that may have had their side effect, which only the caller can find out."""
    found = list[UnresolvedCall]()
    for (name, call_id), call in sorted(prefix.open_calls.items(), key=lambda each: each[1].seq):
        if _may_have_acted(prefix, name, call):
            started, key = call.started, call_id if name == "root" else f"{name} {call_id}"
            found.append(UnresolvedCall(name, call_id, started.tool, started.args, prefix.lines[call.seq], key))
    return found


def _may_have_acted(prefix: Prefix, owner: str, call: RecordedCall) -> bool:
    """Return whether a call may have had a side effect. One of a read-only tool may if its body called tools.

    A body has not begun while its approval was pending, and not after a denial.
    """
    spec = spec_of(tools_of(prefix.whole), lineage(owner), call.started.tool)
    if spec is None or spec.kind in ("agent", "meta"):  # no such tool; entered again, to its own calls; nothing outside
        return False
    if spec.read_only:
        return any(isinstance(each.event, e.ToolCallStarted) for each in prefix.body_of(owner, call))
    events = (each.event for each in prefix.whole.owners[owner].records)
    last = [event for event in events if call_of(event) == call.started.call_id][-1]
    if isinstance(last, e.ApprovalDecided):
        return last.approved
    return not isinstance(last, (e.ApprovalRequested, e.FactRecorded))


def _answer(prefix: Prefix, call: UnresolvedCall, answer: object) -> Iterator[Record]:
    """Yield the end of a call as the caller states it; nothing for a call that did not happen and runs again."""
    if type(answer) is NotHappened:
        return
    if type(answer) is not ResultOverride or (answer.tool, answer.arguments, answer.nth) != (call.tool, None, None):
        takes = f"ResultOverride({call.tool!r}, result=…), ResultOverride({call.tool!r}, error=…) or DID_NOT_HAPPEN"
        raise UsageError(f"unresolved: {call.key!r} takes {takes}; it is {answer!r}")
    opened = prefix.open_calls[call.owner, call.call_id]
    started = next(each for each in prefix.whole.records if each.seq == opened.seq)
    completed = e.ToolCallCompleted(
        call_id=call.call_id,
        tool=call.tool,
        position=opened.started.position,
        ok=answer.error is None,
        result=to_json(answer.result),
        error=None if answer.error is None else e.ErrorInfo(type="ToolError", message=scrub(answer.error)),
        rung="override",
    )
    yield started._replace(seq=TOLD, event=completed)


def _message(prefix: Prefix, left: tuple[UnresolvedCall, ...]) -> str:
    key, tool, listed = left[0].key, left[0].tool, "".join(f"\n  {call}" for call in left)
    return (
        f"unresolved-call: when {prefix.recording.run_id} died, it had started and not ended what may have had its effect:"
        f"{listed}\nFind out, and say so: unresolved={{{key!r}: ResultOverride({tool!r}, result=…)}} for what it returned, "
        "error='…' for how it failed, or DID_NOT_HAPPEN, and its body runs again, with all calls that it makes "
        f"(--answer {key!r}=JSON, --failed, --did-not-happen)"
    )
