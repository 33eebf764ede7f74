"""Where a run stands, folded from its events: what is awaited, the turn, the time, the tokens and the cost."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Final

from playhead.trace.events import (
    AgentCompleted,
    ApprovalDecided,
    ApprovalRequested,
    LlmFailed,
    LlmRequested,
    LlmResponded,
    LlmRetried,
    RunCompleted,
    RunStarted,
    ToolCallCompleted,
    ToolCallStarted,
)
from playhead.trace.owners import owner_inside
from playhead.trace.spending import Spent

if TYPE_CHECKING:
    from playhead.trace.line import Record

_SECONDS_A_MINUTE: Final = 60
Key = tuple[str, str, str]
"""Owner, `model`, `call` or `approval`, and which one."""


@dataclass(frozen=True, slots=True)
class Awaited:
    """Something that was begun and has not ended."""

    verb: str
    """`waiting for`, `running`, …"""
    what: str
    """A model, a tool, a time."""
    inside: str
    """How the owners of whatever happens inside it begin; empty when nothing can."""


class Standing:
    """A fold over the events of a run, cheap enough to be done while the run waits."""

    def __init__(self) -> None:
        self.run_id: str | None = None
        """The run, once it has started."""
        self.started_us: int | None = None
        """Microseconds since the Unix epoch at the first event."""
        self.turn = 0
        """The turn of the root agent, from 1; 0 before the first."""
        self.limit = 0
        """Turns at most; 0 before the start."""
        self.spent = Spent()
        """Tokens and US dollars so far, those of sub-agents included."""
        self.answers = 0
        """Requests that were answered: before the first one nothing is known of the cost."""
        self.ending: RunCompleted | None = None
        """The run's end, once it was told."""
        self._awaited: dict[Key, Awaited] = {}

    def add(self, record: Record) -> None:
        """Take one more event, in the order of the file."""
        owner, event = record.owner, record.event
        if self.started_us is None:
            self.started_us = record.ts
        if owner == "root" and record.iteration is not None:
            self.turn = record.iteration + 1
        match event:
            case RunStarted():
                self.run_id, self.limit = event.run_id, event.agent.max_iterations
            case RunCompleted():
                self.ending = event
                self._awaited.clear()
            case LlmResponded():
                self.answers += 1
        self.spent.take(event)
        self._follow(record)

    def _follow(self, record: Record) -> None:
        """Note what begins to be awaited, and what does not any more."""
        owner, event = record.owner, record.event
        match event:
            case LlmRequested(request=number):
                self._awaited[owner, "model", str(number)] = Awaited("waiting for", event.model, "")
            case LlmRetried(request=number):
                again = Awaited("waiting", f"{event.delay_s:g}s to try again", "")
                self._awaited[owner, "model", str(number)] = again
            case LlmResponded(request=number) | LlmFailed(request=number):
                self._awaited.pop((owner, "model", str(number)), None)
            case ToolCallStarted():
                inside = owner_inside(owner, event.tool, record.iteration, event.position)
                self._awaited[owner, "call", event.call_id] = Awaited("running", event.tool, inside)
            case ToolCallCompleted():
                self._awaited.pop((owner, "call", event.call_id), None)
            case ApprovalRequested():
                self._awaited[owner, "approval", event.call_id] = Awaited("waiting for a yes to", event.tool, "")
            case ApprovalDecided():
                self._awaited.pop((owner, "approval", event.call_id), None)
            case AgentCompleted():
                for key in [key for key in self._awaited if key[0] == owner]:
                    del self._awaited[key]

    def awaited(self) -> str:
        """Return what is awaited now, the innermost of each branch: `running lookup x2, calculator`."""
        inner = [(key, each) for key, each in self._awaited.items() if not self._is_outer(key, each)]
        counts = Counter((key[0], each.verb, each.what) for key, each in inner)
        said: list[str] = []
        before = ("root", "")
        for (owner, verb, what), count in counts.items():
            who = "" if owner == "root" or owner == before[0] else f"{owner.rpartition('/')[2]} "
            times = "" if count == 1 else f" x{count}"
            said.append(f"{who}{what}{times}" if (owner, verb) == before else f"{who}{verb} {what}{times}")
            before = (owner, verb)
        return ", ".join(said) or "working"

    def _is_outer(self, key: Key, each: Awaited) -> bool:
        """Return whether something inside it says better what is awaited."""
        owner, _, which = key
        if (owner, "approval", which) in self._awaited and key[1] == "call":
            return True
        return bool(each.inside) and any(
            other[0] == each.inside or other[0].startswith(f"{each.inside}/") for other in self._awaited
        )


def elapsed_text(seconds: float) -> str:
    """Return a time that goes on: `3.2s`, and from a minute on `2m05s`."""
    if not isfinite(seconds):  # in a file that was not written by us
        return "?"
    seconds = max(seconds, 0.0)  # a clock may have been set back
    minutes, rest = divmod(int(seconds), _SECONDS_A_MINUTE)
    return f"{minutes}m{rest:02d}s" if minutes else f"{seconds:.1f}s"
