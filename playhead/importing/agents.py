"""The spans of a trace as a tree, and the agent that each belongs to.

An agent's span becomes a separate agent when a tool call started it, or when the enclosing agent calls models itself. Otherwise
the span only groups others, as the workflows of frameworks do, and its work belongs to the enclosing agent.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from playhead.importing.conventions import ToolReading, read
from playhead.importing.limits import MAX_NESTING
from playhead.importing.values import NOTHING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from playhead.importing.conventions import Kind, Reading
    from playhead.importing.otlp import ForeignSpan

INTERRUPTED: Final = "playhead.interrupted"
"""Marks a span of Playhead's own export that was still open when its recording ended."""


@dataclass
class Tree:
    """The spans of one trace."""

    spans: dict[str, ForeignSpan] = field(default_factory=dict)
    parents: dict[str, str | None] = field(default_factory=dict)
    """The parent of each span, None for roots; parents come before their children, and siblings in the order of their start."""
    conflicting: int = 0
    """Spans that share an id with another one. Of two reports of one span, the ended or more detailed one is used."""

    @property
    def roots(self) -> list[ForeignSpan]:
        """The spans without a parent, or whose parent is missing."""
        return [self.spans[span_id] for span_id, parent in self.parents.items() if parent is None]

    @property
    def in_circles(self) -> int:
        """Spans that are their own ancestors, or below such a span; they are left out."""
        return len(self.spans) - len(self.parents)


@dataclass(eq=False)
class Item:
    """A model call, a tool call, or an agent: one that a call started, or the one that does the work."""

    span: ForeignSpan
    reading: Reading
    inside: Work | None = None
    """The work below a call."""
    depth: int = 0
    """For an agent's span: the number of agents and tools around it."""

    @property
    def name(self) -> str:
        """The tool's name, else the span's."""
        return self.reading.tool.name or self.span.name


@dataclass(eq=False)
class Work:
    """The work of an agent, or of a tool's body."""

    items: list[Item] = field(default_factory=list)
    """Calls of models and tools, in the order in which they began."""
    agents: list[Item] = field(default_factory=list)
    """The agents that did this work: none for a tool's body, several when they took turns."""

    @property
    def models(self) -> list[Item]:
        """The model calls."""
        return [item for item in self.items if item.reading.kind == "model"]

    @property
    def calls(self) -> list[Item]:
        """The tool calls, and the agents that started without one."""
        return [item for item in self.items if item.reading.kind != "model"]

    @property
    def outermost(self) -> list[Item]:
        """The agents that are not inside another one."""
        least = min((each.depth for each in self.agents), default=0)
        return [each for each in self.agents if each.depth == least]

    @property
    def speaker(self) -> Item | None:
        """The agent that gives the outcome: the outermost one with an output or an error; of several, the last to end."""
        stating = [
            each for each in self.agents if each.reading.error is not None or each.reading.agent.output is not NOTHING
        ]
        return max(
            stating or self.agents,
            key=lambda each: (-each.depth, each.span.end_ns or 0, each.span.start_ns),
            default=None,
        )


@dataclass
class Sorted:
    """The work of a trace's outermost agent, with everything below it."""

    root: Work = field(default_factory=Work)
    left_out: int = 0
    """Spans that are not agents, model calls or tool calls."""
    doubled: int = 0
    """Spans of a second instrumentation, nested in spans of the same calls; only the outer ones are used."""
    too_deep: int = 0
    """Spans that are nested too deep."""
    tops: list[tuple[bool, Kind]] = field(default_factory=list)
    """The outermost spans of agents, model calls and tool calls: whether each is below a missing parent, and its kind."""

    @property
    def loose(self) -> int:
        """How many of them are below a missing parent."""
        return sum(is_loose for is_loose, _ in self.tops)

    @property
    def is_whole(self) -> bool:
        """Whether all spans of the run are connected: below spans without a parent, or all below one agent's span."""
        return not self.loose or [kind for _, kind in self.tops] == ["agent"]

    @property
    def has_outermost(self) -> bool:
        """Whether the run's outermost span is present, so that its end is the end of the run."""
        return self.is_whole or self.loose < len(self.tops)


@dataclass(frozen=True, slots=True)
class _Place:
    """The place of a span in the tree."""

    work: Work
    loose: bool = False
    """Whether the outermost span around it is below a missing parent."""
    agent: str | None = None
    """The nearest span of an agent or a tool around it."""
    tool: Item | None = None
    """The tool call whose body it is in."""
    in_model: bool = False
    depth: int = 0
    """Spans of agents and tools around it."""

    @property
    def own_work(self) -> Work:
        """The work of the tool whose body it is in, else of the agent."""
        if self.tool is None:
            return self.work
        if self.tool.inside is None:
            self.tool.inside = Work()
        return self.tool.inside


def make_tree(spans: Iterable[ForeignSpan]) -> Tree:
    """Return the tree of the spans of one trace, in time linear in their number."""
    tree = Tree()
    for span in map(_as_it_ended, spans):
        known = tree.spans.setdefault(span.span_id, span)
        if known is not span:
            tree.conflicting += (span.start_ns, span.name, span.parent_id) != (
                known.start_ns,
                known.name,
                known.parent_id,
            )
            tree.spans[span.span_id] = max(
                known, span, key=lambda each: (each.end_ns is not None, len(each.attributes))
            )
    children: dict[str | None, list[ForeignSpan]] = {}
    ordered = sorted(tree.spans.values(), key=lambda span: (span.start_ns, -(span.end_ns or 0), span.span_id))
    for span in reversed(ordered):  # a stack returns the last one first
        children.setdefault(span.parent_id if span.parent_id in tree.spans else None, []).append(span)
    pending: list[tuple[ForeignSpan, str | None]] = [(root, None) for root in children.get(None, [])]
    while pending:
        span, parent = pending.pop()
        tree.parents[span.span_id] = parent
        pending += [(child, span.span_id) for child in children.get(span.span_id, [])]
    return tree


def _as_it_ended(span: ForeignSpan) -> ForeignSpan:
    """Return the span; without an end if it was open when its recording broke off."""
    is_interrupted = span.attributes.get(INTERRUPTED) in (True, "true")
    return replace(span, end_ns=None, status="unset", message="") if is_interrupted else span


def sort_out(tree: Tree) -> Sorted:
    """Return the work of every agent of a trace."""
    readings = {span_id: read(tree.spans[span_id]) for span_id in tree.parents}
    asking = _asking_agents(tree, readings)
    found = Sorted()
    places: dict[str, _Place] = {}
    for span_id, parent in tree.parents.items():
        span, reading = tree.spans[span_id], readings[span_id]
        place = _Place(found.root, loose=span.parent_id is not None) if parent is None else places[parent]
        if reading.kind != "other":
            found.tops += [] if place.agent or place.in_model else [(place.loose, reading.kind)]
        places[span_id] = _placed(span, reading, place, found, asking)
    if tree.parents:
        _name_root(tree.roots, readings, found)
    order = {span_id: number for number, span_id in enumerate(tree.spans)}
    for work in works(found.root):
        work.items.sort(key=lambda item: (item.span.start_ns, item.span.end_ns or 0, order[item.span.span_id]))
    return found


def works(root: Work, *, replayed: bool = False) -> list[Work]:
    """Return all work, the outermost first; `replayed`: without the bodies of tools, which no replay runs."""
    found = [root]
    for work in found:
        inside = (item.inside for item in work.items)
        found += [each for each in inside if each is not None and (each.agents or not replayed)]
    return found


def _asking_agents(tree: Tree, readings: dict[str, Reading]) -> set[str | None]:
    """Return the agents' spans that are the nearest above a model call; a model call inside a tool is not the agent's."""
    nearest: dict[str | None, str | None] = {None: None}
    for span_id, parent in tree.parents.items():
        nearest[span_id] = span_id if readings[span_id].kind in ("agent", "tool") else nearest[parent]
    return {nearest[span_id] for span_id in tree.parents if readings[span_id].kind == "model"} - {None}


def _placed(span: ForeignSpan, reading: Reading, place: _Place, found: Sorted, asking: set[str | None]) -> _Place:
    """Add a span to its work, and return the place of the spans below it."""
    if reading.kind == "other":
        found.left_out += 1
    elif place.depth > MAX_NESTING:
        found.too_deep += 1
    elif reading.kind == "agent":
        return _agent(span, reading, place, asking)
    elif (reading.kind == "model" and place.in_model) or _is_same_tool(reading, place.tool):
        found.doubled += 1
    else:
        item = Item(span, reading)
        place.own_work.items.append(item)
        if reading.kind == "model":
            return replace(place, in_model=True)
        return _Place(place.own_work, place.loose, span.span_id, item, depth=place.depth + 1)
    return place


def _is_same_tool(reading: Reading, tool: Item | None) -> bool:
    is_tool = tool is not None and reading.kind == "tool"
    return is_tool and tool.reading.tool.name == reading.tool.name and tool.inside is None  # type: ignore[union-attr]


def _agent(span: ForeignSpan, reading: Reading, place: _Place, asking: set[str | None]) -> _Place:
    agent, work = reading.agent, place.own_work
    if place.tool is None and place.agent in asking:
        work = Work()
        call = ToolReading(
            agent.name, arguments=None if agent.task is None else {"task": agent.task}, result=agent.output
        )
        place.work.items.append(Item(span, replace(reading, tool=call), work))
    depth = place.depth + 1
    work.agents.append(Item(span, reading, depth=depth))
    return _Place(work, place.loose, span.span_id, depth=depth)


def _name_root(roots: list[ForeignSpan], readings: dict[str, Reading], found: Sorted) -> None:
    """Take the run's outcome from the outermost span if it is not an agent's."""
    root = next((root for root in roots if root.parent_id is None), roots[0])
    reading = readings[root.span_id]
    if reading.kind == "other":
        # an error in a program around an agent is not the agent's
        error = None if found.root.agents else reading.error
        found.root.agents.insert(0, Item(root, replace(reading, error=error)))
