"""The turns of an agent: each model call with the calls that it asked for, and the tool spans that answer them."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from playhead.importing.agents import ModelItem, ToolItem
from playhead.importing.pairing import Asked, Pairing, pair, plain_name
from playhead.importing.tool_calls import LaterResults

if TYPE_CHECKING:
    from playhead.importing.agents import Work


@dataclass(eq=False)
class Turn:
    """A model call, and what came of it; without a model call, what came before the first."""

    model: ModelItem | None
    asked: list[Asked] = field(default_factory=list)
    by_program: list[ToolItem] = field(default_factory=list)
    """Calls that no model asked for."""


@dataclass
class Matched:
    """The turns of an agent."""

    turns: list[Turn]
    pairing: Pairing
    results: LaterResults
    without_call: list[str] = field(default_factory=list)
    """Tools whose spans name a call of a model that no model span asked for."""


def match(work: Work, *, is_agent: bool = True) -> Matched:
    """Return the turns of an agent, with every tool span at its call.

    In a tool's body, which may ask a model without running the calls that it asks for, ids have to agree where there are any.
    """
    results = LaterResults(work)
    turns = [Turn(None), *(_turn(item, results) for item in work.models)]
    items = [item for item in work.items if isinstance(item, ToolItem)]
    pairing = pair([each for turn in turns for each in turn.asked], items, strict=not is_agent)
    matched = Matched(turns, pairing, results)
    begun = [item.span.start_ns for item in work.models]
    for item in pairing.left:
        _place(item, turns[bisect_right(begun, item.span.start_ns)], matched)
    return matched


def _turn(item: ModelItem, results: LaterResults) -> Turn:
    calls = item.reading.answer.calls if item.reading.answer is not None else ()
    return Turn(item, [Asked(call, place, item, results.next_of(call.id)) for place, call in enumerate(calls)])


def _place(item: ToolItem, turn: Turn, matched: Matched) -> None:
    """Let a call that no model asked for stand in the turn that it began in."""
    turn.by_program.append(item)
    matched.pairing.how["nothing"] += 1
    name = item.reading.name or item.span.name
    if item.reading.call_id is not None:
        matched.without_call.append(name)
    elif any(each.item is None or plain_name(each.call.name) == plain_name(name) for each in turn.asked):
        matched.pairing.doubtful.append(name)
