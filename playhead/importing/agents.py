"""The spans of a trace as a tree, whatever they say of their parents, and which agent each belongs to.

An agent's span is an agent of its own when a tool call entered it, or when the agent around it asks models itself. Else it
only stands around or beside others, as the workflows of frameworks do, and what is in it belongs to the agent above.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from playhead.importing.conventions import ToolReading, read
from playhead.importing.limits import MAX_NESTING
from playhead.importing.values import NOTHING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from playhead.importing.conventions import Kind, OwnAgent, Reading
    from playhead.importing.spans import ForeignSpan

INTERRUPTED: Final = "playhead.interrupted"
"""What marks a span of ours whose end is only that of its recording."""


@dataclass
class Tree:
    """The spans of one trace, in time linear in their number."""

    spans: dict[str, ForeignSpan] = field(default_factory=dict)
    parents: dict[str, str | None] = field(default_factory=dict)
    """The parent of each span, None for roots; parents stand before their children, and these in the order of their beginning."""
    repeated: int = 0
    """Spans that came again with the same id: the one that had ended, or says more, counts."""
    conflicting: int = 0
    """Those among them that are other spans, of the same id."""
    orphans: int = 0
    """Spans whose parent is not there; they count as roots."""
    cycles: int = 0
    """Spans that are their own ancestors; they count as roots."""

    @property
    def roots(self) -> list[ForeignSpan]:
        """The spans without a parent, or without one that is there."""
        return [self.spans[span_id] for span_id, parent in self.parents.items() if parent is None]


@dataclass(eq=False)
class Item:
    """A model call, a tool call, or an agent: one that a call entered, or the one whose work it is."""

    span: ForeignSpan
    said: Reading
    inside: Work | None = None
    """What happened below a call."""
    asks: bool = False
    """Whether model calls are right below an agent's span: else it only stands around other agents."""
    depth: int = 0
    """Spans of agents that an agent's span is in, and the outermost one."""

    @property
    def name(self) -> str:
        """The tool's name, else the span's."""
        return self.said.tool.name or self.span.name


@dataclass(eq=False)
class Work:
    """What an agent did, or a tool's body."""

    items: list[Item] = field(default_factory=list)
    """Calls of models and tools, in the order in which they began."""
    agents: list[Item] = field(default_factory=list)
    """The agents whose spans these are: none for a tool's body, more than one where they took turns."""

    @property
    def models(self) -> list[Item]:
        """The model calls."""
        return [item for item in self.items if item.said.kind == "model"]

    @property
    def calls(self) -> list[Item]:
        """The tool calls, and the agents that were entered without one."""
        return [item for item in self.items if item.said.kind != "model"]

    @property
    def own(self) -> OwnAgent | None:
        """What Playhead's own export said of the agent, when it is one agent's work."""
        return self.agents[0].said.agent.own if len(self.agents) == 1 else None

    @property
    def outermost(self) -> list[Item]:
        """The agents' spans that none of the others is around."""
        least = min((each.depth for each in self.agents), default=0)
        return [each for each in self.agents if each.depth == least]

    @property
    def speaker(self) -> Item | None:
        """The agent's span that says what came of the work: the outermost that says anything, of several the last to end."""
        said = [each for each in self.agents if each.said.error is not None or each.said.agent.output is not NOTHING]
        return max(
            said or self.agents, key=lambda each: (-each.depth, each.span.end_ns or 0, each.span.start_ns), default=None
        )


@dataclass
class Sorted:
    """The work of a trace's outermost agent, with all below it."""

    root: Work = field(default_factory=Work)
    conventions: set[str] = field(default_factory=set)
    left_out: int = 0
    """Spans of none of these kinds."""
    doubled: int = 0
    """Spans of a second instrumentation, inside those of the same calls: the outer ones count."""
    too_deep: int = 0
    """Spans inside too many others."""
    tops: list[tuple[bool, Kind]] = field(default_factory=list)
    """The spans of agents, model calls and tool calls that are inside no other such span: whether the root above each is below
    a parent that is not there, and its kind."""

    @property
    def loose(self) -> int:
        """How many of them are below a parent that is not there."""
        return sum(is_loose for is_loose, _ in self.tops)

    @property
    def is_whole(self) -> bool:
        """Whether every span of the run hangs together: below spans without a parent, or all below one agent's."""
        return not self.loose or [kind for _, kind in self.tops] == ["agent"]

    @property
    def has_outermost(self) -> bool:
        """Whether the run's outermost span is there, so that its end is the run's."""
        return self.is_whole or self.loose < len(self.tops)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a span stands."""

    work: Work
    agent: str | None = None
    """The nearest agent's span, or tool's."""
    in_model: bool = False
    """Whether it is inside a model call."""
    tool: Item | None = None
    """The tool call whose body it is in."""
    depth: int = 0
    around: int = 0
    """Spans of agents that it is in."""
    outermost: bool = False
    """Whether nothing is around it."""
    loose: bool = False
    """Whether the outermost span around it is below a parent that is not there."""
    inner: bool = False
    """Whether it is inside an agent, a model call or a tool call."""


def make_tree(spans: Iterable[ForeignSpan]) -> Tree:
    """Return the tree of the spans of one trace."""
    tree = Tree()
    for span in map(_as_it_ended, spans):
        known = tree.spans.get(span.span_id)
        if known is not None:
            tree.repeated += 1
            said, other = ((each.start_ns, each.name, each.parent_id) for each in (span, known))
            tree.conflicting += said != other
        if known is None or _says_more(span, known):
            tree.spans[span.span_id] = span
    in_circles = _in_circles(tree.spans)
    children: dict[str | None, list[ForeignSpan]] = {}
    ordered = sorted(tree.spans.values(), key=lambda span: (span.start_ns, -(span.end_ns or 0), span.span_id))
    for span in reversed(ordered):  # for a stack gives the last of them first
        tree.cycles += span.span_id in in_circles
        tree.orphans += span.parent_id is not None and span.parent_id not in tree.spans
        is_below = span.parent_id in tree.spans and span.span_id not in in_circles
        children.setdefault(span.parent_id if is_below else None, []).append(span)
    waiting: list[tuple[ForeignSpan, str | None]] = [(root, None) for root in children.get(None, [])]
    while waiting:
        span, parent = waiting.pop()
        tree.parents[span.span_id] = parent
        waiting += [(child, span.span_id) for child in children.get(span.span_id, [])]
    return tree


def _as_it_ended(span: ForeignSpan) -> ForeignSpan:
    """Return the span; without an end and an error when it was still under way as its recording broke off."""
    is_interrupted = span.attributes.get(INTERRUPTED) in (True, "true")
    return replace(span, end_ns=None, status="unset", message="") if is_interrupted else span


def _says_more(span: ForeignSpan, known: ForeignSpan) -> bool:
    return (span.end_ns is not None, len(span.attributes)) > (known.end_ns is not None, len(known.attributes))


def _in_circles(spans: dict[str, ForeignSpan]) -> set[str]:
    """Return one span of each circle of parents: cut there, the others hang below it."""
    cut: set[str] = set()
    seen: dict[str, str] = {}
    for start in spans:
        at: str | None = start
        while at is not None and at in spans and at not in seen:
            seen[at] = start
            at = spans[at].parent_id
        if at is not None and seen.get(at) == start:
            cut.add(at)
    return cut


def sort_out(tree: Tree) -> Sorted:
    """Return what every agent of a trace did."""
    readings = {span_id: read(tree.spans[span_id]) for span_id in tree.parents}
    asking = _agents_that_ask(tree, readings)
    found = Sorted()
    places: dict[str, _Place] = {}
    for span_id, parent in tree.parents.items():
        span, reading = tree.spans[span_id], readings[span_id]
        is_loose = parent is None and span.parent_id is not None
        place = places[parent] if parent is not None else _Place(found.root, outermost=True, loose=is_loose)
        if reading.kind != "other":
            found.conventions |= {reading.convention} if reading.convention else set()
            found.tops += [] if place.inner else [(place.loose, reading.kind)]
        below = _placed(span, reading, place, found, asking)
        is_inner = place.inner or reading.kind != "other"
        places[span_id] = replace(below, outermost=False, loose=place.loose, inner=is_inner)
    _name_root(tree, readings, found)
    order = {span_id: place for place, span_id in enumerate(tree.spans)}
    for work in works(found.root):
        work.items.sort(key=lambda item: _order(item, order))
    return found


def works(root: Work, *, played: bool = False) -> list[Work]:
    """Return all work, the outermost first; `played`: of agents alone, for what is in a tool's body no replay runs."""
    found = [root]
    for work in found:
        inside = (item.inside for item in work.items)
        found += [each for each in inside if each is not None and (each.agents or not played)]
    return found


def _order(item: Item, places: dict[str, int]) -> tuple[int, int, int, bool, int]:
    """Return when an item began; of one moment, the shorter prompt first, what failed before its retry, else as exported."""
    said, span = item.said.model, item.span
    end_ns = max(span.start_ns, span.end_ns or 0)
    return span.start_ns, end_ns, len(said.messages or ()), said.answer is not None, places[span.span_id]


def _agents_that_ask(tree: Tree, readings: dict[str, Reading]) -> set[str | None]:
    """Return the agents' spans that are the nearest one above a model call; None among them when one has none above.

    What is inside a tool is not asked by the agent that called it.
    """
    nearest: dict[str | None, str | None] = {None: None}
    for span_id, parent in tree.parents.items():
        nearest[span_id] = span_id if readings[span_id].kind in ("agent", "tool") else nearest[parent]
    return {nearest[span_id] for span_id in tree.parents if readings[span_id].kind == "model"}


def _placed(span: ForeignSpan, reading: Reading, place: _Place, found: Sorted, asking: set[str | None]) -> _Place:
    """Take a span in, and return where those below it stand."""
    if place.depth > MAX_NESTING:
        found.too_deep += 1
        return place
    if reading.kind == "model":
        return _model(span, reading, place, found)
    if reading.kind == "tool":
        return _tool(span, reading, place, found)
    if reading.kind == "agent":
        return _agent(span, reading, place, asking)
    found.left_out += 1
    return place


def _model(span: ForeignSpan, reading: Reading, place: _Place, found: Sorted) -> _Place:
    if place.in_model:
        found.doubled += 1
        return place
    _work_of(place).items.append(Item(span, reading))
    return replace(place, in_model=True)


def _tool(span: ForeignSpan, reading: Reading, place: _Place, found: Sorted) -> _Place:
    if place.tool is not None and place.tool.said.tool.name == reading.tool.name and place.tool.inside is None:
        found.doubled += 1
        return place
    item = Item(span, reading)
    _work_of(place).items.append(item)
    return _Place(_work_of(place), span.span_id, tool=item, depth=place.depth + 1, around=place.around)


def _work_of(place: _Place) -> Work:
    """Return whose work what happens here is: the tool's whose body it is in, or the agent's."""
    if place.tool is None:
        return place.work
    if place.tool.inside is None:
        place.tool.inside = Work()
    return place.tool.inside


def _agent(span: ForeignSpan, reading: Reading, place: _Place, asking: set[str | None]) -> _Place:
    said, work = reading.agent, _work_of(place)
    if place.tool is None and place.agent in asking and not place.outermost:
        work = Work()
        call = ToolReading(said.name, arguments=None if said.task is None else {"task": said.task}, result=said.output)
        place.work.items.append(Item(span, replace(reading, tool=call), work))
    around = place.around + (not place.outermost)
    work.agents.append(Item(span, reading, asks=span.span_id in asking, depth=around))
    return _Place(work, span.span_id, depth=place.depth + (work is not place.work), around=around)


def _name_root(tree: Tree, readings: dict[str, Reading], found: Sorted) -> None:
    """Let the outermost span speak for the run where no agent's span does."""
    roots = tree.roots
    root = next((root for root in roots if root.parent_id is None), roots[0])
    reading = readings[root.span_id]
    if reading.kind == "other":
        # what goes wrong in a program around an agent is not the agent's error
        error = reading.error if reading.convention is not None or not found.root.agents else None
        found.root.agents.insert(0, Item(root, replace(reading, error=error)))
