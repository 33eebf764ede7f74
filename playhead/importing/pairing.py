"""The turns of an agent: each model call with the calls that it asked for, and the tool spans that answer them.

A span answers the call whose id it has; without an id, the only one of its name and arguments, if the clock tells it from
others. Anything else is a doubt.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from playhead.importing.values import NOTHING, digest
from playhead.trace.values import to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from playhead.importing.agents import Item, Work
    from playhead.importing.findings import Findings
    from playhead.importing.messages import ForeignCall, ForeignMessage

    Key = Callable[["str | None", str, "dict[str, Any] | None"], Hashable | None]

_NOT_CERTAIN: Final = "which span answers which call is not certain"
_BY_ID: Final[tuple[Key, ...]] = (
    lambda call_id, name, given: None if call_id is None or given is None else (call_id, name, digest(given)),
    lambda call_id, _, __: call_id,
)
"""What a span and a call that have ids are put together by, the most telling first; None: by nothing."""
_WITHOUT_ID: Final[tuple[Key, ...]] = (
    lambda _, name, given: None if given is None else (name, digest(given)),
    lambda _, name, __: name,
)


@dataclass(eq=False)
class Asked:
    """A call that a model asked for."""

    call: ForeignCall
    told: ForeignMessage | None = None
    """The result, as a later prompt shows it."""
    item: Item | None = None
    """The span that answers it."""


@dataclass(eq=False)
class Turn:
    """A model call, and what came of it; without a model call, what came before the first."""

    model: Item | None
    asked: list[Asked] = field(default_factory=list)
    by_program: list[Item] = field(default_factory=list)
    """Calls that no model asked for."""


def turns_of(work: Work, findings: Findings, otherwise: Findings) -> list[Turn]:
    """Return the turns of an agent, with every tool span at its call; `otherwise` takes what a plain loop has not."""
    turns = _turns(work)
    asked = [each for turn in turns for each in turn.asked]
    known = {each.call.id for each in asked} - {None}
    items = work.calls
    named = [item for item in items if item.said.tool.call_id in known]
    nameless = [item for item in items if item.said.tool.call_id is None]
    for key in _BY_ID:
        named = _joined(key, asked, named, findings)
    findings.doubt("several spans answer one call, of which one is taken", times=len(named))
    moments = Counter(item.span.start_ns for item in work.items)
    at_once = sum(moments[item.span.start_ns] > 1 for item in nameless)
    findings.doubt("tool spans that do not name their call began at the same moment as others", times=at_once)
    for key in _WITHOUT_ID:
        nameless = _joined(key, asked, nameless, findings)
    names = {plain_name(each.call.name) for each in asked}
    begun = [item.span.start_ns for item in work.models]
    others = [item for item in items if item.said.tool.call_id is not None and item.said.tool.call_id not in known]
    for item in sorted((*nameless, *others), key=lambda item: item.span.start_ns):
        turns[bisect_right(begun, item.span.start_ns)].by_program.append(item)
        if item.said.tool.call_id is not None:
            otherwise.doubt("tool spans name calls that no span of a model call asked for", item.name)
        elif plain_name(item.name) in names:
            findings.doubt(_NOT_CERTAIN, item.name)
        else:
            findings.note("calls that no model asked for", item.name)
    return turns


def plain_name(name: str) -> str:
    """Return a name without what frameworks add to it or change in it."""
    return "".join(letter for letter in name.lower() if letter.isalnum())


def _turns(work: Work) -> list[Turn]:
    """Return the calls that models asked for, each with the result that prompts have: of the n-th call of an id the n-th."""
    found: dict[str, list[ForeignMessage]] = defaultdict(list)
    for item in work.models:
        seen: Counter[str] = Counter()
        for message in item.said.model.messages or ():
            if message.role == "tool" and message.call_id and message.known:
                found[message.call_id] += [message] if seen[message.call_id] == len(found[message.call_id]) else []
                seen[message.call_id] += 1
    results = {call_id: iter(told) for call_id, told in found.items()}
    turns = [Turn(None)]
    for item in work.models:
        answer = item.said.model.answer
        calls = answer.calls if answer is not None else ()
        turns.append(Turn(item, [Asked(call, next(results.get(call.id or "", iter(())), None)) for call in calls]))
    return turns


def _joined(key_of: Key, asked: Sequence[Asked], items: list[Item], findings: Findings) -> list[Item]:
    """Put spans to calls of the same key, in order; return the spans that are left."""
    calls: dict[Hashable, list[Asked]] = defaultdict(list)
    for each in asked:
        if each.item is None:
            calls[key_of(each.call.id, plain_name(each.call.name), each.call.arguments)].append(each)
    spans: dict[Hashable, list[Item]] = defaultdict(list)
    for item in items:
        spans[key_of(item.said.tool.call_id, plain_name(item.name), item.said.tool.arguments)].append(item)
    left = spans.pop(None, [])
    for key, group in spans.items():
        mine = calls.get(key, [])
        left += group[len(mine) :]
        if mine and (len(mine) != len(group) or len({_outcome(item) for item in group}) > 1):
            findings.doubt(_NOT_CERTAIN, group[0].name)
        for each, item in zip(mine, group, strict=False):
            each.item = item
    return left


def _outcome(item: Item) -> Hashable:
    """Return what a span says of a call; what was done inside one is not compared with another."""
    said = item.said.tool
    result = None if said.result is NOTHING else digest(to_json(said.result))
    given = None if said.arguments is None else digest(said.arguments)
    return given, result, None if item.said.error is None else repr(item.said.error), id(item) if item.inside else None
