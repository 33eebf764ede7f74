"""The first request at which the model's decision or answer differs between two runs."""

from __future__ import annotations

from collections import defaultdict
from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from playhead.diagnose.diff_types import DecidedCall, Decision, DecisionChange, FirstDecision
from playhead.diagnose.parts import at
from playhead.trace.events import LlmFailed, LlmResponded
from playhead.trace.owners import agent_path
from playhead.trace.values import json_hash

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.diagnose.diff_calls import Alignment, RunCalls

_WHAT: Final[dict[DecisionChange, str]] = {
    "calls": "other calls",
    "answer": "another answer",
    "failure": "the request failed in one of the runs, or with another error",
    "missing": "only the original asked the model here",
    "extra": "only the replay asked the model here",
}


def first_decision(alignment: Alignment) -> FirstDecision | None:
    """Return the first decision that differs, in the original's order. Requested calls are compared, or else answers."""
    ended = [run.recording.ending is not None for run in (alignment.original, alignment.replay)]
    found: list[tuple[float, FirstDecision]] = []
    for replay_owner, owner in alignment.owners.items():
        place = float("inf")
        for a, b in zip_longest(_decisions(alignment.original, owner), _decisions(alignment.replay, replay_owner)):
            if not (a or ended[0]) or not (b or ended[1]):
                break  # what a run without an end decided after that is unknown
            place = a.seq if a else place + 0.5
            if (change := _change(a, b)) is not None:
                agent = agent_path(owner)
                decision = FirstDecision(change=change, what=_WHAT[change], agent=agent, original=a, replay=b)
                found.append((place, decision))
                break
    return min(found, key=lambda each: each[0])[1] if found else None


def _change(a: Decision | None, b: Decision | None) -> DecisionChange | None:
    if a is None or b is None:
        return "missing" if a else "extra"
    if a.error is not None or b.error is not None:
        return None if a.error == b.error else "failure"
    if _asked_for(a) != _asked_for(b):
        return "calls"
    return None if a.calls or a.text == b.text else "answer"


def _asked_for(decision: Decision) -> list[tuple[str, str]]:
    return [(call.tool, json_hash(call.args)) for call in decision.calls]


def _decisions(run: RunCalls, owner: str) -> Iterator[Decision]:
    """Yield the decisions of an owner's model, in order."""
    started: dict[int | None, list[DecidedCall]] = defaultdict(list)
    for call in run.by_owner.get(owner, ()):
        made = DecidedCall(tool=call.use.tool, args=call.made.started.args, why=call.reason)
        started[call.made.started.request].append(made)
    for record in run.recording.owners[owner].records:
        event = record.event
        if isinstance(event, LlmResponded):
            yield Decision(**at(record), text=event.text, calls=tuple(_requested(event, started[event.request])))
        elif isinstance(event, LlmFailed):
            yield Decision(**at(record), error=f"{event.error.type}: {event.error.message}")


def _requested(event: LlmResponded, started: list[DecidedCall]) -> list[DecidedCall]:
    """Return the calls as the model requested them or, if it requested none, as they were parsed from its text."""
    reasons = [call.why for call in started] + [None] * len(event.tool_calls)
    return [
        DecidedCall(tool=call.name, args=call.raw_arguments if call.arguments is None else call.arguments, why=why)
        for call, why in zip(event.tool_calls, reasons, strict=False)
    ] or started
