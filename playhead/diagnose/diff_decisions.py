"""The first place where the model of a run decided, or answered, something else."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from playhead.diagnose.diff_types import DecidedCall, Decision, DecisionChange, FirstDecision
from playhead.diagnose.diff_values import same
from playhead.trace.events import LlmFailed, LlmResponded
from playhead.trace.owners import agent_path
from playhead.trace.values import json_hash, repair_json, scrub

if TYPE_CHECKING:
    from playhead.diagnose.diff_calls import Alignment, RunCalls
    from playhead.trace.line import Record

_WHAT: Final = {
    "order": "the same calls in another order",
    "words": "the same calls, other words beside them",
    "missing": "only the original asked the model here",
    "extra": "only the replay asked the model here",
}


class _Place(NamedTuple):
    """Where one owner's decisions part."""

    rank: tuple[bool, float]
    decision: FirstDecision


def first_decision(alignment: Alignment) -> FirstDecision | None:
    """Return the first decision that differs, in the original's order.

    The same calls with other words beside them are told only when nothing else differs: what was decided is the same.
    """
    one, other = _decisions(alignment.original), _decisions(alignment.replay)
    places: list[_Place] = []
    for replay_owner, owner in alignment.owners.items():
        left, right = one.get(owner, []), other.get(replay_owner, [])
        places += _owner_places(left, right)
        if len(left) != len(right) and not _may_go_on(alignment, in_replay=len(left) > len(right)):
            places.append(_last_place(left, right))
    first = min(places, key=lambda each: each.rank, default=None)
    return first.decision if first else None


def _owner_places(left: list[Decision], right: list[Decision]) -> list[_Place]:
    """Return the first decision of an owner that differs, and the first words beside equal calls before it."""
    places: list[_Place] = []
    for a, b in zip(left, right, strict=False):
        change = _change(a, b)
        if change is None or (change == "words" and places):
            continue
        places.append(_Place((change == "words", a.seq), _first(change, a, b)))
        if change != "words":
            return places
    return places


def _may_go_on(alignment: Alignment, *, in_replay: bool) -> bool:
    """Return whether a run has no recorded end, so that nobody knows what it decided after that."""
    run = alignment.replay if in_replay else alignment.original
    return run.recording.ending is None


def _last_place(left: list[Decision], right: list[Decision]) -> _Place:
    """Return where one owner decided on and the other did not."""
    if len(left) > len(right):
        more = left[len(right)]
        return _Place((False, more.seq), _first("missing", more, None))
    after = left[-1].seq + 0.5 if left else float("inf")
    return _Place((False, after), _first("extra", None, right[len(left)]))


def _first(change: DecisionChange, a: Decision | None, b: Decision | None) -> FirstDecision:
    one = a or b
    assert one is not None  # noqa: S101 - there is a decision on one side at least
    return FirstDecision(
        change=change,
        what=_what(change, a, b),
        agent=agent_path(one.owner),
        original=a,
        replay=b,
    )


def _change(a: Decision, b: Decision) -> DecisionChange | None:
    if a.error is not None or b.error is not None:
        return None if a.error == b.error else "failure"
    one, other = _asked_for(a), _asked_for(b)
    if one != other:
        return _other_calls(one, other)
    if a.text == b.text:
        return None
    return "words" if one else "answer"


def _asked_for(decision: Decision) -> list[tuple[str, str]]:
    return [(call.tool, json_hash(call.args)) for call in decision.calls]


def _other_calls(one: list[tuple[str, str]], other: list[tuple[str, str]]) -> DecisionChange:
    if Counter(one) == Counter(other):
        return "order"
    return "arguments" if [tool for tool, _ in one] == [tool for tool, _ in other] else "calls"


def _what(change: DecisionChange, a: Decision | None, b: Decision | None) -> str:
    if change == "calls" and a and b:
        one, other = _names(a), _names(b)
        return f"the original {'called ' + one if one else 'answered'}, the other run {_did(other, called=bool(one))}"
    if change == "arguments" and a and b:
        changed = [one.tool for one, two in zip(a.calls, b.calls, strict=True) if not same(one.args, two.args)]
        return f"{' and '.join(dict.fromkeys(changed))}: called with other arguments"
    if change == "failure" and b:
        return f"the request failed in the {'original' if b.error is None else 'other run'}"
    return _WHAT.get(change, "another answer")


def _did(names: str, *, called: bool) -> str:
    if not names:
        return "answered"
    return names if called else f"called {names}"


def _names(decision: Decision) -> str:
    names = list(dict.fromkeys(call.tool for call in decision.calls))
    return ", ".join(names) if len(names) <= 3 else f"{', '.join(names[:3])} and {len(names) - 3} more"  # noqa: PLR2004


def _decisions(run: RunCalls) -> dict[str, list[Decision]]:
    """Return what each owner's model decided, in order."""
    found: dict[str, list[Decision]] = defaultdict(list)
    asked = _asked(run)
    for record in run.recording.records:
        event = record.event
        if isinstance(event, LlmResponded):
            found[record.owner].append(_decision(record, event, asked[record.owner, event.request]))
        elif isinstance(event, LlmFailed):
            error = scrub(f"{event.error.type}: {event.error.message}")
            found[record.owner].append(
                Decision(seq=record.seq, owner=record.owner, iteration=record.iteration, error=error)
            )
    return found


def _asked(run: RunCalls) -> dict[tuple[str, int | None], list[DecidedCall]]:
    """Return the calls that started, by the request that asked for them."""
    asked: dict[tuple[str, int | None], list[DecidedCall]] = defaultdict(list)
    for owner, calls in run.by_owner.items():
        for call in calls:
            why = call.event.rationale.why if call.event.rationale else None
            made = DecidedCall(tool=call.event.tool, args=repair_json(call.event.args), why=why and scrub(why))
            asked[owner, call.event.request].append(made)
    return asked


def _decision(record: Record, event: LlmResponded, started: list[DecidedCall]) -> Decision:
    """Return a decision: the calls as the model asked for them, or as they were read from its text."""
    calls = started
    if event.tool_calls:
        reasons = [call.why for call in started] + [None] * len(event.tool_calls)
        calls = [
            DecidedCall(tool=call.name, args=repair_json(call.raw_arguments if call.arguments is None else call.arguments), why=why)
            for call, why in zip(event.tool_calls, reasons, strict=False)
        ]  # fmt: skip
    return Decision(
        seq=record.seq, owner=record.owner, iteration=record.iteration, text=scrub(event.text), calls=tuple(calls)
    )
