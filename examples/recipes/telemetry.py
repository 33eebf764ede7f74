"""Make spans of a run's phases, `agent.think`, `agent.act` …, for OpenTelemetry or anything of its shape.

A span has iteration and strategy, and an event for each tag that passed. A phase begins here with the first thing that
passes in it, and ends with the first thing of the next one.

Limits: a phase in which nothing passes has no span, and the times are those of the emissions, not of the phase. A run
that is cancelled does not say that it has ended, so its last span stays open. The spans of a run stand beside each
other, each with the run's id; the trace itself holds more than they do.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from examples.tools import lookup
from playhead import Agent
from playhead.testing import ScriptedModel, call, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.compose import Block, Harness, HookContext

AttributeValue = str | int


class Span(Protocol):
    """What is asked of a span; OpenTelemetry's are such."""

    def add_event(self, name: str) -> None:
        """Note that something passed."""

    def end(self) -> None:
        """Say that it is over."""


class Tracer(Protocol):
    """What is asked of a tracer; OpenTelemetry's are such."""

    def start_span(self, name: str, *, attributes: Mapping[str, AttributeValue]) -> Span:
        """Begin a span."""
        ...


@dataclass
class CollectedSpan:
    """A span in memory."""

    name: str
    attributes: Mapping[str, AttributeValue]
    events: list[str] = field(default_factory=list)
    ended: bool = False

    def add_event(self, name: str) -> None:
        """Note that something passed."""
        self.events.append(name)

    def end(self) -> None:
        """Say that it is over."""
        self.ended = True


@dataclass
class Collector:
    """A tracer that keeps its spans, for tests and for looking at."""

    spans: list[CollectedSpan] = field(default_factory=list)

    def start_span(self, name: str, *, attributes: Mapping[str, AttributeValue]) -> CollectedSpan:
        """Begin a span."""
        self.spans.append(CollectedSpan(name, attributes))
        return self.spans[-1]


class Phases:
    """The open span of every agent that runs."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._open: dict[tuple[str, str], tuple[tuple[int | None, str | None], Span]] = {}

    def see(self, _: Any, context: HookContext) -> None:  # noqa: ANN401 - a payload of any tag
        """Note what passed in the span of its phase."""
        agent, place = (context.run_id, context.owner), (context.iteration, context.phase)
        if agent not in self._open or self._open[agent][0] != place:
            self._end(agent)
            span = self._tracer.start_span(f"agent.{context.phase or 'run'}", attributes=_attributes(context))
            self._open[agent] = place, span
        self._open[agent][1].add_event(context.tag)
        if context.tag == "lifecycle.completed":
            self._end_all(*agent)

    def _end_all(self, run_id: str, owner: str) -> None:
        """End the spans of an agent, and of the tools' bodies that used the model or other tools."""
        for agent in [each for each in self._open if each[0] == run_id and f"{each[1]}/".startswith(f"{owner}/")]:
            self._end(agent)

    def _end(self, agent: tuple[str, str]) -> None:
        if agent in self._open:
            self._open.pop(agent)[1].end()


def telemetry(tracer: Tracer | None = None) -> Block:
    """Return a block that makes spans, with OpenTelemetry's tracer unless another one is given.

    Raises:
        ImportError: no tracer is given, and OpenTelemetry is not installed.
    """
    phases = Phases(tracer or open_telemetry())

    def block(harness: Harness) -> None:
        harness.tap("**", phases.see, name="telemetry")

    return block


def open_telemetry() -> Tracer:
    """Return OpenTelemetry's tracer; where its spans go is set up there, and without that they go nowhere."""
    tracer: Tracer = import_module("opentelemetry.trace").get_tracer("playhead")
    return tracer


def _attributes(context: HookContext) -> dict[str, AttributeValue]:
    fields = {
        "agent.run_id": context.run_id,
        "agent.owner": context.owner,
        "agent.strategy": context.strategy,
        "agent.iteration": context.iteration,
    }
    return {name: value for name, value in fields.items() if value is not None}


def main() -> None:
    """Print the spans of a run with one call."""
    collector = Collector()
    model = ScriptedModel([call("lookup", key="Mount Zed"), text("4,180 feet.")])
    Agent(model, tools=[lookup], compose=[telemetry(collector)], trace=None).run_sync("How high is Mount Zed?")
    for span in collector.spans:
        place = (
            f"turn {span.attributes['agent.iteration']}" if "agent.iteration" in span.attributes else "before the loop"
        )
        print(f"{span.name} ({place}, {span.attributes['agent.strategy']}): {len(span.events)} events")
    print("all ended:", all(span.ended for span in collector.spans))


if __name__ == "__main__":
    main()
