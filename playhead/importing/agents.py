"""Which agent each span of a trace belongs to.

An agent's span is an agent of its own when a tool call entered it, or when the agent around it asks models itself. Else it
only stands around or beside others, as the workflows of frameworks do, and what is in it belongs to the agent above.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from playhead.importing.conventions import read
from playhead.importing.limits import MAX_NESTING
from playhead.importing.readings import AgentReading, ModelReading, ToolReading, merged
from playhead.importing.values import NOTHING

if TYPE_CHECKING:
    from playhead.importing.readings import Kind, OwnAgent, Reading
    from playhead.importing.spans import ForeignSpan
    from playhead.importing.tree import Tree
    from playhead.trace.events import ErrorInfo


@dataclass(eq=False)
class ModelItem:
    """A model call of an agent."""

    span: ForeignSpan
    reading: ModelReading
    error: ErrorInfo | None


@dataclass(eq=False)
class ToolItem:
    """A tool call of an agent, or an agent that it entered."""

    span: ForeignSpan
    reading: ToolReading
    error: ErrorInfo | None
    inside: Work | None = None
    """What happened below it."""
    is_agent_span: bool = False
    """Whether an agent's span stands for a call that has no span of its own."""


@dataclass(frozen=True, slots=True)
class AgentSpan:
    """The span of an agent, or the outermost one of a program."""

    span: ForeignSpan
    reading: AgentReading
    error: ErrorInfo | None
    asks: bool
    """Whether model calls are right below it: else it only stands around other agents."""
    depth: int = 0
    """Spans of agents that it is in, and the outermost one."""


@dataclass(eq=False)
class Work:
    """What an agent did, or a tool's body."""

    items: list[ModelItem | ToolItem] = field(default_factory=list)
    """In the order in which they began."""
    agents: list[AgentSpan] = field(default_factory=list)
    """The agents whose spans these are: none for a tool's body, more than one where they took turns."""

    @property
    def models(self) -> list[ModelItem]:
        """The model calls."""
        return [item for item in self.items if isinstance(item, ModelItem)]

    @property
    def own(self) -> OwnAgent | None:
        """What Playhead's own export said of the agent, when it is one agent's work."""
        said = [each.reading.own for each in self.agents]
        return said[0] if len(said) == 1 else None

    @property
    def outermost(self) -> list[AgentSpan]:
        """The agents' spans that none of the others is around."""
        least = min((each.depth for each in self.agents), default=0)
        return [each for each in self.agents if each.depth == least]

    @property
    def speaker(self) -> AgentSpan | None:
        """The agent's span that says what came of the work: the outermost that says anything, of several the last to end."""
        said = [each for each in self.agents if each.error is not None or each.reading.output is not NOTHING]
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
    """Spans that two instrumentations made of one call."""
    too_deep: int = 0
    """Spans inside too many others."""
    tops: list[tuple[ForeignSpan, Kind]] = field(default_factory=list)
    """The spans of agents, model calls and tool calls that are inside no other such span: the root above each, and its kind."""

    @property
    def is_whole(self) -> bool:
        """Whether every span of the run hangs together: below spans without a parent, or all below one agent's."""
        loose = any(root.parent_id is not None for root, _ in self.tops)
        return not loose or [kind for _, kind in self.tops] == ["agent"]

    @property
    def has_outermost(self) -> bool:
        """Whether the run's outermost span is there, so that its end is the run's."""
        return self.is_whole or any(root.parent_id is None for root, _ in self.tops)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a span stands."""

    work: Work
    agent: str | None = None
    """The nearest agent's span."""
    model: ModelItem | None = None
    """The model call that it is inside of."""
    tool: ToolItem | None = None
    """The tool call whose body it is in."""
    depth: int = 0
    around: int = 0
    """Spans of agents that it is in."""
    outermost: bool = False
    """Whether nothing is around it."""
    root: ForeignSpan | None = None
    """The outermost span."""
    inner: bool = False
    """Whether it is inside an agent, a model call or a tool call."""


def sort_out(tree: Tree) -> Sorted:
    """Return what every agent of a trace did."""
    readings = {span_id: read(span) for span_id, span in tree.spans.items()}
    asking = _agents_that_ask(tree, readings)
    found = Sorted()
    waiting = [(root, _Place(found.root, outermost=True, root=root)) for root in reversed(tree.roots)]
    while waiting:
        span, place = waiting.pop()
        reading = readings[span.span_id]
        if reading.convention is not None and reading.kind != "other":
            found.conventions.add(reading.convention)
        below = _placed(span, reading, place, found, asking)
        if reading.kind != "other" and not place.inner and place.root is not None:
            found.tops.append((place.root, reading.kind))
        below = replace(below, root=place.root, inner=place.inner or reading.kind != "other")
        waiting += [(child, below) for child in reversed(tree.below(span))]
    _name_root(tree, readings, found)
    places = {span_id: place for place, span_id in enumerate(tree.spans)}
    for work in works(found.root):
        work.items.sort(key=lambda item: _order(item, places))
    return found


def _order(item: ModelItem | ToolItem, places: dict[str, int]) -> tuple[int, int, int, bool, int]:
    """Return when an item began; of one moment, the shorter prompt first, what failed before its retry, else as exported."""
    said = item.reading.messages or () if isinstance(item, ModelItem) else ()
    answered = isinstance(item, ModelItem) and item.reading.answer is not None
    span = item.span
    return span.start_ns, max(span.start_ns, span.end_ns or 0), len(said), answered, places[span.span_id]


def works(root: Work) -> list[Work]:
    """Return all work, the outermost first."""
    found = [root]
    for work in found:
        found += [item.inside for item in work.items if isinstance(item, ToolItem) and item.inside is not None]
    return found


def played(root: Work) -> list[Work]:
    """Return the work of agents, the outermost first: what is in a tool's body no replay runs."""
    found = [root]
    for work in found:
        inside = (item.inside for item in work.items if isinstance(item, ToolItem))
        found += [each for each in inside if each is not None and each.agents]
    return found


def _agents_that_ask(tree: Tree, readings: dict[str, Reading]) -> set[str | None]:
    """Return the agents' spans that are the nearest one above a model call; None among them when one has none above."""
    found: set[str | None] = set()
    waiting: list[tuple[ForeignSpan, str | None]] = [(root, None) for root in tree.roots]
    while waiting:
        span, agent = waiting.pop()
        kind = readings[span.span_id].kind
        if kind == "model":
            found.add(agent)
        # what is inside a tool is not asked by the agent that called it
        nearest = span.span_id if kind in ("agent", "tool") else agent
        waiting += [(child, nearest) for child in tree.below(span)]
    return found


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
    return replace(place, outermost=False)


def _model(span: ForeignSpan, reading: Reading, place: _Place, found: Sorted) -> _Place:
    said = reading.model or ModelReading()
    if place.model is not None:
        place.model.reading = merged(place.model.reading, said) or said
        found.doubled += 1
        return place
    item = ModelItem(span, said, reading.error)
    _work_of(place).items.append(item)
    return replace(place, model=item, outermost=False)


def _tool(span: ForeignSpan, reading: Reading, place: _Place, found: Sorted) -> _Place:
    said = reading.tool or ToolReading()
    if place.tool is not None and place.tool.reading.name == said.name and place.tool.inside is None:
        place.tool.reading = merged(place.tool.reading, said) or said
        found.doubled += 1
        return place
    item = ToolItem(span, said, reading.error)
    _work_of(place).items.append(item)
    return _Place(_work_of(place), span.span_id, None, item, place.depth + 1, place.around)


def _work_of(place: _Place) -> Work:
    """Return whose work what happens here is: the tool's whose body it is in, or the agent's."""
    if place.tool is None:
        return place.work
    if place.tool.inside is None:
        place.tool.inside = Work()
    return place.tool.inside


def _agent(span: ForeignSpan, reading: Reading, place: _Place, asking: set[str | None]) -> _Place:
    said = reading.agent or AgentReading()
    if place.tool is not None:
        work = _work_of(place)
    elif place.agent in asking and not place.outermost:
        work = Work()
        place.work.items.append(ToolItem(span, _call_of_agent(said), reading.error, work, is_agent_span=True))
    else:
        work = place.work
    around = place.around + (not place.outermost)
    work.agents.append(AgentSpan(span, said, reading.error, span.span_id in asking, around))
    return _Place(work, span.span_id, depth=place.depth + (work is not place.work), around=around)


def _call_of_agent(said: AgentReading) -> ToolReading:
    arguments = None if said.task is None else {"task": said.task}
    return ToolReading(name=said.name, arguments=arguments, result=said.output)


def _name_root(tree: Tree, readings: dict[str, Reading], found: Sorted) -> None:
    """Let the outermost span speak for the run where no agent's span does."""
    outermost = [root for root in tree.roots if root.parent_id is None] or tree.roots
    if not outermost:
        return
    root, reading = outermost[0], readings[outermost[0].span_id]
    if reading.kind == "other":
        # what goes wrong in a program around an agent is not the agent's error
        error = reading.error if reading.convention is not None or not found.root.agents else None
        found.root.agents.insert(0, AgentSpan(root, reading.agent or AgentReading(), error, asks=False))
