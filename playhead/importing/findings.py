"""What comes to light while a trace is converted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from playhead.trace.types import Usage

if TYPE_CHECKING:
    from playhead.importing.headers import Beginning
    from playhead.trace.values import JsonValue


@dataclass
class Findings:
    """What was not there, or had to be concluded. Bodies of tools, which no replay runs, have findings of their own."""

    counts: Counter[str] = field(default_factory=Counter)
    """Notes, by how often they apply."""
    unanswered: list[str] = field(default_factory=list)
    """Tools whose calls have no result though the run went on after them."""
    without_arguments: list[str] = field(default_factory=list)
    """Tools whose calls have no arguments that can be read."""
    held: list[tuple[str, JsonValue]] = field(default_factory=list)
    """Tools with what their calls were given, where that is no object, and with what they returned."""
    last_asked: list[str] = field(default_factory=list)
    """Tools that an agent's last answer asked for, of which the spans show no run."""
    guessed: list[str] = field(default_factory=list)
    """Tools of which nothing is known but how they were called."""
    unoffered: bool = False
    """Whether an agent's prompts do not say which tools they offer."""
    begun: list[Beginning] = field(default_factory=list)
    """What each agent began with."""


@dataclass
class Spent:
    """What an agent and those below it spent."""

    usage: Usage = field(default_factory=Usage)
    cost_usd: float | None = 0.0

    def add(self, usage: Usage, cost_usd: float | None) -> None:
        """Add to it; a cost that is not known makes the sum unknown."""
        self.usage += usage
        self.cost_usd = None if cost_usd is None or self.cost_usd is None else self.cost_usd + cost_usd
