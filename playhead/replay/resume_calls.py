"""Calls that a dead run had started and never finished: which may run again, and what the caller states about the others."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from playhead.diagnose.lanes import call_of
from playhead.errors import UnresolvedCallError, UsageError, nearest
from playhead.replay.overrides import ResultOverride
from playhead.replay.prefix import TOLD, answered_part
from playhead.trace.events import (
    ApprovalDecided,
    ApprovalRequested,
    ErrorInfo,
    FactRecorded,
    ToolCallCompleted,
    ToolCallStarted,
)
from playhead.trace.values import scrub, to_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from playhead.replay.prefix import Prefix
    from playhead.trace.line import Record
    from playhead.trace.recording import OwnerRecording, RecordedCall
    from playhead.trace.values import JsonValue


class NotHappened(Enum):
    """The type of `DID_NOT_HAPPEN`."""

    DID_NOT_HAPPEN = "did not happen"


DID_NOT_HAPPEN: Final = NotHappened.DID_NOT_HAPPEN
"""States that a call did nothing: it runs now."""
SHOWN: Final = 300
"""Characters of the arguments in a message."""


@dataclass(frozen=True, slots=True)
class UnresolvedCall:
    """A call that may or may not have done what it does."""

    owner: str
    """Who called."""
    call_id: str
    """Its id; unique within its owner."""
    tool: str
    """The tool."""
    arguments: JsonValue
    """What it was called with."""
    line: int
    """Line of the trace on which it starts, from 1."""
    key: str
    """How to name it in `unresolved=`: the id, or owner and id where two have the same."""
    inside: tuple[str, ...] = ()
    """What its body had called that may have a side effect, and how that ended: when it runs, it does that again."""

    def __str__(self) -> str:
        """Return what a person needs to know to find out what happened."""
        shown = (
            f"{self.tool}({_shown(self.arguments)}), call {self.key!r} of {self.owner}, line {self.line} of the trace"
        )
        return shown + "".join(f"\n    its body had called {each}" for each in self.inside)


def resolve(prefix: Prefix, given: Mapping[str, Any] | None) -> Prefix:
    """Return what is given with what the caller says of calls that may have had a side effect and have no answer.

    Raises:
        UnresolvedCallError: nothing is said of one of them.
        UsageError: something is said of a call that is none of them, or it is nothing that can be said.
    """
    left = {call.key: call for call in unresolved_calls(prefix)}
    known = {**left, **{f"{call.owner} {call.call_id}": call for call in left.values()}}
    answers: list[Record] = []
    for key, answer in dict(given or {}).items():
        call = known.get(key)
        if call is None:
            raise UsageError(f"unresolved: no call {key!r} waits for a word of yours.{nearest(str(key), known)}")
        answers += _answer(prefix, call, answer)
        left.pop(call.key, None)
    if left:
        calls = tuple(left.values())
        raise UnresolvedCallError(_message(prefix, calls), calls)
    return answered_part(replace(prefix.whole, records=(*prefix.whole.records, *answers)), prefix.lines)


def unresolved_calls(prefix: Prefix) -> list[UnresolvedCall]:
    """Return the calls that may have had their effect; only the caller can find out."""
    opened = sorted(prefix.open_calls.items(), key=lambda each: each[1].seq)
    found = [(prefix.whole.owners[name], call) for (name, _), call in opened]
    found = [(owner, call) for owner, call in found if _may_have_acted(prefix, owner, call)]
    ids = [call.started.call_id for _, call in found]
    return [
        UnresolvedCall(
            owner.owner,
            call.started.call_id,
            call.started.tool,
            call.started.args,
            prefix.lines[call.seq],
            call.started.call_id if ids.count(call.started.call_id) == 1 else f"{owner.owner} {call.started.call_id}",
            _inside(prefix, owner, call),
        )
        for owner, call in found
    ]


def _inside(prefix: Prefix, owner: OwnerRecording, call: RecordedCall) -> tuple[str, ...]:
    """Return the calls with side effects that the body of a call had made."""
    started = [(each.owner, each.event) for each in prefix.body_of(owner.owner, call)]
    return tuple(
        f"{event.tool}({_shown(event.args)}), which {_ended(prefix, name, event.call_id)}"
        for name, event in started
        if isinstance(event, ToolCallStarted)
        and (spec := prefix.spec(name, event.tool)) is not None
        and spec.kind == "function"
        and not spec.read_only
    )


def _ended(prefix: Prefix, owner: str, call_id: str) -> str:
    completed = prefix.whole.owners[owner].calls[call_id].completed
    if completed is None or completed.ended == "cancelled":
        return "was not answered"
    return "returned" if completed.ok else "failed"


def _shown(arguments: JsonValue) -> str:
    text = json.dumps(arguments, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def _may_have_acted(prefix: Prefix, owner: OwnerRecording, call: RecordedCall) -> bool:
    """Return whether a call may have had a side effect. What is not declared read-only may always have had one."""
    spec = prefix.spec(owner.owner, call.started.tool)
    if spec is None or spec.kind in ("agent", "meta"):  # no such tool; entered again, to its own calls; nothing outside
        return False
    if spec.read_only:
        return bool(_inside(prefix, owner, call))
    return _had_begun(owner, call.started.call_id)


def _had_begun(owner: OwnerRecording, call_id: str) -> bool:
    """Return whether the body may have begun: not while somebody was asked about it, and not after a no."""
    last = [each.event for each in owner.records if call_of(each.event) == call_id][-1]
    if isinstance(last, ApprovalDecided):
        return last.approved
    return not isinstance(last, (ApprovalRequested, FactRecorded))


def _answer(prefix: Prefix, call: UnresolvedCall, answer: object) -> Iterator[Record]:
    """Yield the end of a call as the caller states it; nothing for a call that did not happen, and runs."""
    if type(answer) is NotHappened:
        return
    if type(answer) is not ResultOverride or (answer.tool, answer.arguments, answer.nth) != (call.tool, None, None):
        raise UsageError(
            f"unresolved: {call.key!r} takes ResultOverride({call.tool!r}, result=…), ResultOverride({call.tool!r}, error=…) or "
            f"DID_NOT_HAPPEN; it is {answer!r}"
        )
    started = next(each for each in prefix.whole.records if each.seq == prefix.open_calls[call.owner, call.call_id].seq)
    completed = ToolCallCompleted(
        call_id=call.call_id,
        tool=call.tool,
        position=prefix.open_calls[call.owner, call.call_id].started.position,
        ok=answer.error is None,
        result=to_json(answer.result),
        error=None if answer.error is None else ErrorInfo(type="ToolError", message=scrub(answer.error)),
        rung="override",
    )
    yield started._replace(seq=TOLD, event=completed)


def _message(prefix: Prefix, left: tuple[UnresolvedCall, ...]) -> str:
    one = len(left) == 1
    first = left[0]
    listed = "".join(f"\n  {call}" for call in left)
    return (
        f"unresolved-call: when {prefix.recording.run_id} died, {'this call' if one else 'these calls'} had been started "
        f"and not answered, and may have had {'its' if one else 'their'} effect:{listed}\n"
        f"Find out, and say so: unresolved={{{first.key!r}: ResultOverride({first.tool!r}, result=…)}} for what it returned, "
        f"ResultOverride({first.tool!r}, error='…') for how it failed, or DID_NOT_HAPPEN, and it runs (both of playhead.replay). "
        f"(On the command line: --answer {first.key!r}=JSON, --failed, --did-not-happen)"
    )
