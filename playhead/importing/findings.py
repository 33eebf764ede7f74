"""What comes to light while a trace is converted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from playhead.importing.hiding import is_hidden
from playhead.importing.truncation import Lengths

if TYPE_CHECKING:
    from playhead.importing.headers import Beginning
    from playhead.importing.truncation import Cut
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
    held: list[tuple[str, Cut | None, bool]] = field(default_factory=list)
    """Tools with how what their calls were given, where that is no object, or returned is cut off, and whether it is hidden."""
    last_asked: list[str] = field(default_factory=list)
    """Tools that an agent's last answer asked for, of which the spans show no run."""
    guessed: list[str] = field(default_factory=list)
    """Tools of which nothing is known but how they were called."""
    unoffered: bool = False
    """Whether an agent's prompts do not say which tools they offer."""
    begun: list[Beginning] = field(default_factory=list)
    """What each agent began with."""
    unknown_answers: int = 0
    """Answers of models that are not in the spans."""
    images_left_out: int = 0
    """Images of prompts or tasks that whoever exported the spans left out of them."""
    lost: Counter[str] = field(default_factory=Counter)
    """Parts of prompts that a recording has no place for, by their kinds."""
    rewritten: int = 0
    """Prompts that do not begin as the one before."""
    otherwise: int = 0
    """Prompts that go on with something else than the answer before and the results of its calls."""
    unseen: int = 0
    """Messages that prompts had and do not show."""
    told_otherwise: list[str] = field(default_factory=list)
    """Tools of whose results later prompts say something else than the span."""
    said_otherwise: list[str] = field(default_factory=list)
    """Tools that returned something else than what the agent said that they entered, which is what a replay returns."""
    ran_otherwise: list[str] = field(default_factory=list)
    """Tools whose calls ran with other arguments than the model gave."""
    endings: list[str] = field(default_factory=list)
    """Why a replay does not end as an agent did."""
    renamed: list[str] = field(default_factory=list)
    """Calls that ran under another name than the model gave: both names."""
    unknown_messages: int = 0
    """Messages of prompts of which the spans say only that there is one."""
    doubtful: list[str] = field(default_factory=list)
    """Tools whose spans may be those of other calls."""
    without_call: list[str] = field(default_factory=list)
    """Tools whose spans name a call that no model span asked for."""
    continued: int = 0
    """Answers without calls after which an agent went on: a replay ends at such a one."""
    turns: list[str] = field(default_factory=list)
    """Agents that took over with prompts of their own."""
    unordered: int = 0
    """Model calls of the same moment as the one before them, of whose prompts neither goes on from the other."""
    missing: int = 0
    """Calls in prompts that no span of a model call asked for."""
    not_there: list[str] = field(default_factory=list)
    """Tools that the caller calls read-only, and no agent has."""
    lengths: Lengths = field(default_factory=Lengths)
    """Of the texts in the spans."""

    def hold(self, tool: str, value: JsonValue, told: object = None) -> None:
        """Take what a call was given or returned; `told` is what a later prompt shows of it."""
        self.held.append((tool, self.lengths.cut(value, told), is_hidden(value)))
