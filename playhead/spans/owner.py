"""What is known of one owner while its spans are made: an agent, or a tool that used the ports."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from openinference.semconv.trace import OpenInferenceSpanKindValues as Kind

from playhead.spans.agent_span import COUNTS

if TYPE_CHECKING:
    from playhead.spans.phases import Phases
    from playhead.spans.thread import SpanThread
    from playhead.spans.tree import OpenSpan
    from playhead.trace.types import AgentHeader
    from playhead.trace.usage import Prices


@dataclass(slots=True)
class SpanOwner:
    """What is known of one owner."""

    name: str
    """As events call it."""
    home: OpenSpan
    """What its operations belong to: its agent's span, or that of the tool call whose body asked."""
    header: AgentHeader
    """The agent's, or that of the agent whose tool it is."""
    path: str
    """The names of the agents from the outermost to this one."""
    thread: SpanThread
    phases: Phases
    requests: dict[tuple[int, int], OpenSpan] = field(default_factory=dict)
    """Requests that are open, by number and attempt."""
    answered: dict[int, OpenSpan] = field(default_factory=dict)
    """Spans of those that were answered, by number."""
    calls: dict[str, OpenSpan] = field(default_factory=dict)
    """Tool calls that are open, by id."""
    repaired: dict[str, list[str]] = field(default_factory=dict)
    """What was put right in calls that have not started, by id."""

    @property
    def is_agent(self) -> bool:
        """Whether it is an agent, and not the body of a tool."""
        return self.home.kind is Kind.AGENT

    def count(self, what: str) -> None:
        """Count one more span of its own."""
        counts = self.home.metadata.get(COUNTS)
        if self.is_agent and counts is not None:
            counts[what] += 1

    def address_of(self, model: str) -> str | None:
        """Return where a model was reached, when the header says it."""
        if model == self.header.model:
            return self.header.address
        return next((each.address for each in self.header.fallbacks if each.model == model), None)

    def prices_of(self, model: str) -> Prices | None:
        """Return what a token of a model cost at the start, when the header says it."""
        if model == self.header.model:
            return self.header.prices
        return next((each.prices for each in self.header.fallbacks if each.model == model), None)
