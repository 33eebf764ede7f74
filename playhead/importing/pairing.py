"""The turns of an agent: each model call with the calls that it asked for, and the tool spans that answer them.

A span answers the call with the same id. A span without an id answers the call with the same name and arguments. Any other
pairing is uncertain, and is reported.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from playhead.importing.values import NOTHING, digest
from playhead.trace.values import to_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.importing.agents import Item, Work
    from playhead.importing.findings import Findings
    from playhead.importing.messages import ForeignCall, ForeignMessage

_NOT_CERTAIN: Final = "which span answers which call is not certain"


@dataclass(eq=False)
class AskedCall:
    """A call that a model asked for."""

    call: ForeignCall
    shown: ForeignMessage | None = None
    """The result in a later prompt."""
    item: Item | None = None
    """The span that answers it."""


@dataclass(eq=False)
class Turn:
    """A model call and its tool calls; without a model call, the calls before the first model call."""

    model: Item | None
    asked: list[AskedCall] = field(default_factory=list)
    by_program: list[Item] = field(default_factory=list)
    """Calls that no model asked for."""


def turns_of(work: Work, findings: Findings) -> list[Turn]:
    """Return the turns of an agent, with every tool span paired with its call."""
    turns = _turns(work)
    asked = [each for turn in turns for each in turn.asked]
    by_id: dict[str | None, AskedCall] = {each.call.id: each for each in reversed(asked) if each.call.id is not None}
    findings.doubt(
        "calls of a model have the id of another one",
        times=sum(by_id.get(each.call.id, each) is not each for each in asked),
    )
    nameless, unasked = [], []
    for item in work.calls:
        call = by_id.get(item.reading.tool.call_id)
        if item.reading.tool.call_id is None:
            nameless.append(item)
        elif call is None:
            findings.doubt("tool spans name calls that no model call asked for", item.name)
            unasked.append(item)
        elif call.item is not None:
            findings.doubt("several spans answer one call, of which one is taken", item.name)
        else:
            call.item = item
    names = {each.call.name for each in asked}
    for item in _pair([each for each in asked if each.item is None], nameless, findings):
        if item.name in names:
            findings.doubt(_NOT_CERTAIN, item.name)
        else:
            findings.note("calls that no model asked for", item.name)
        unasked.append(item)
    begun = [item.span.start_ns for item in work.models]
    for item in sorted(unasked, key=lambda item: item.span.start_ns):
        turns[bisect_right(begun, item.span.start_ns)].by_program.append(item)
    return turns


def _turns(work: Work) -> list[Turn]:
    """Return the calls that models asked for, each with the result that the first later prompt shows."""
    shown: dict[str, ForeignMessage] = {}
    for item in work.models:
        for message in item.reading.model.messages or ():
            if message.role == "tool" and message.call_id and message.known:
                shown.setdefault(message.call_id, message)
    turns = [Turn(None)]
    for item in work.models:
        answer = item.reading.model.answer
        calls = answer.calls if answer is not None else ()
        turns.append(Turn(item, [AskedCall(call, shown.get(call.id or "")) for call in calls]))
    return turns


def _pair(asked: Sequence[AskedCall], spans: Sequence[Item], findings: Findings) -> Sequence[Item]:
    """Pair spans without an id with calls, in order; return the spans that are left.

    Name and arguments distinguish most calls; the name alone is used when a span hides its arguments or is an agent's.
    """
    for with_arguments in (True, False):
        calls: dict[str, list[AskedCall]] = defaultdict(list)
        for each in asked:
            if each.item is None:
                calls[digest([each.call.name, each.call.arguments if with_arguments else None])].append(each)
        groups: dict[str, list[Item]] = defaultdict(list)
        for item in spans:
            groups[digest([item.name, item.reading.tool.arguments if with_arguments else None])].append(item)
        left: list[Item] = []
        for key, group in groups.items():
            same = calls[key]
            left += group[len(same) :]
            if same and (len(same) != len(group) or len({_outcome(item) for item in group}) > 1):
                findings.doubt(_NOT_CERTAIN, group[0].name)
            for each, item in zip(same, group, strict=False):
                each.item = item
        spans = left
    return spans


def _outcome(item: Item) -> tuple[str | None, str, int | None]:
    """Return a key for how a span says its call ended, to compare spans; no two calls with work inside are equal."""
    said = item.reading.tool
    result = None if said.result is NOTHING else digest(to_json(said.result))
    return result, repr(item.reading.error), id(item) if item.inside else None
