"""A run as lines: one per event, with every problem of the file in its place.

seq     time   delta it  kind                  what
  0    0.000  +0.000     run-started           demo on scripted/demo: Which is higher, Mount Zed or …
  9    0.004  +0.004  0  tool-call-started     lookup(key="Mount Zed")
                           └ the first of the two heights (0.95)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from playhead.diagnose.summaries import summarise
from playhead.diagnose.terminal import Line, pad
from playhead.trace.events import LlmResponded, RunCompleted, Thought
from playhead.trace.owners import depth_of, own_name
from playhead.trace.reader import Problem
from playhead.trace.types import Rationale

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from playhead.trace.line import Record

_KIND_WIDTH: Final = 21
"""The usual width in cells. Longer kinds are rare and shift only their own line."""
_LONGEST_KIND: Final = 32
"""The maximum width in cells; only other versions write longer kinds."""
_DEEPEST: Final = 8
"""The number of indented levels; deeper ones are identified by name."""
_BAD: Final = ("-failed", "-violation", "-diverged")
_STYLES: Final = {
    "run": "bold",
    "agent": "bold cyan",
    "llm": "blue",
    "thought": "italic",
    "assumption": "italic",
    "tool": "green",
    "nudge": "yellow",
    "rationale": "yellow",
    "killswitch": "bold red",
    "final": "bold",
}
"""Styles by the first word of a kind."""


HEADING: Final = Line((f"{'seq':>4} {'time':>8} {'delta':>7} {'it':>2}  {'kind':<{_KIND_WIDTH}} what", "dim"))
"""The names of the columns."""


class Timeline:
    """Turns events into lines in one pass, keeping only the last answer of each owner."""

    def __init__(self) -> None:
        self.problems = 0
        """Problems so far."""
        self.ending: RunCompleted | None = None
        """The run's end, once it has been read."""
        self._started_us: int | None = None
        self._shown_us: int | None = None
        self._answers: dict[str, LlmResponded] = {}

    def rows(self, items: Iterable[Record | Problem], wanted: Callable[[Record], bool] | None = None) -> Iterator[Line]:
        """Yield the lines of each wanted event and of every problem."""
        for item in self.seen(items):
            if isinstance(item, Problem):
                yield Line(("   !! ", "bold red"), (str(item), "red"))
            elif wanted is None or wanted(item):
                yield from self._lines(item)

    def seen(self, items: Iterable[Record | Problem]) -> Iterator[Record | Problem]:
        """Yield the items unchanged, and note problems and the run's end."""
        for item in items:
            if isinstance(item, Problem):
                self.problems += 1
            else:
                self._note(item)
            yield item

    def _note(self, record: Record) -> None:
        if self._started_us is None:
            self._started_us = record.ts
        if isinstance(record.event, LlmResponded):
            self._answers[record.owner] = record.event
        elif isinstance(record.event, RunCompleted):
            self.ending = record.event

    def _lines(self, record: Record) -> Iterator[Line]:
        """Yield the line of an event, and below it the stated reason."""
        depth, kind = depth_of(record.owner), record.kind
        failed = kind.endswith(_BAD) or getattr(record.event, "ok", True) is False
        since, self._shown_us = record.ts if self._shown_us is None else self._shown_us, record.ts
        times = f"{(record.ts - (self._started_us or 0)) / 1e6:>8.3f} {(record.ts - since) / 1e6:>+7.3f}"
        turn = "" if record.iteration is None else record.iteration
        place = f"{record.seq:>4} {times} {turn:>2}  {'  ' * min(depth, _DEEPEST)}"
        name = pad(kind, max(_KIND_WIDTH, min(len(kind), _LONGEST_KIND)))
        style = "bold red" if failed else _STYLES.get(kind.partition("-")[0], "dim")
        who = f"{own_name(record.owner)} " if depth else ""
        yield Line((place, "dim"), (f"{name} ", style), (who, "cyan"), (self._what(record), "red" if failed else ""))
        if why := _why(record):
            yield Line(" " * len(place), (f"  └ {why}", "dim italic"))

    def _what(self, record: Record) -> str:
        event, answer = record.event, self._answers.get(record.owner)
        if isinstance(event, Thought) and event.text is None and answer and answer.request == event.request:
            return answer.text  # it is not written twice
        return summarise(event)


def _why(record: Record) -> str | None:
    """Return the model's stated reason with its confidence."""
    rationale = getattr(record.event, "rationale", None) or getattr(record.event, "termination_rationale", None)
    if not isinstance(rationale, Rationale):
        return None
    return rationale.why if rationale.confidence is None else f"{rationale.why} ({rationale.confidence:g})"
