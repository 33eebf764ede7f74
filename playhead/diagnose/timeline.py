"""A run as lines: one for each event, with every problem of the file at its place.

seq     time it  kind                  what
  0  +0.000s     run-started           demo on scripted/demo: Which is higher, Mount Zed or …
  9  +0.004s  0  tool-call-started     lookup(key="Mount Zed")
                   └ the first of the two heights (0.95)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from playhead.diagnose.summaries import summarise
from playhead.diagnose.terminal import Line, pad
from playhead.trace.events import LlmResponded, RunCompleted, Thought
from playhead.trace.owners import depth_of, own_name
from playhead.trace.reader import Problem
from playhead.trace.types import Rationale

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from rich.console import Console, ConsoleOptions, RenderResult

    from playhead.trace.line import Record

_KIND_WIDTH: Final = 21
"""Cells; the kinds that are longer are rare, and push their own line only."""
_LONGEST_KIND: Final = 32
"""Cells; longer ones, which only another version can have written, are cut."""
_DEEPEST: Final = 8
"""Levels that are indented; the names go on to tell deeper ones."""
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
"""By the first word of a kind."""


@dataclass(frozen=True, slots=True)
class Row:
    """One event as one line, and its stated reason as a second one."""

    seq: int
    elapsed_us: int
    depth: int
    """Agents above the one that the event belongs to."""
    who: str
    """The sub-agent's own name and place; empty for the root."""
    iteration: int | None
    kind: str
    what: str
    why: str | None
    failed: bool

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the line, cut to the width."""
        seconds = f"{self.elapsed_us / 1e6:+.3f}s"
        place = f"{self.seq:>4} {seconds:>8} {_iteration(self.iteration):>2}  {'  ' * self.depth}"
        kind = pad(self.kind, max(_KIND_WIDTH, min(len(self.kind), _LONGEST_KIND))) + " "
        who = f"{self.who} " if self.who else ""
        what = (self.what, "red" if self.failed else "")
        yield Line((place, "dim"), (kind, self._style()), (who, "cyan"), what)
        if self.why:
            yield Line(" " * len(place), (f"  └ {self.why}", "dim italic"))

    def _style(self) -> str:
        return "bold red" if self.failed else _STYLES.get(self.kind.partition("-")[0], "dim")


@dataclass(frozen=True, slots=True)
class ProblemRow:
    """Something wrong with the file, where it is."""

    problem: Problem

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the line, cut to the width."""
        yield Line(("   !! ", "bold red"), (str(self.problem), "red"))


class Heading:
    """The names of the columns."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the line."""
        names = f"{'seq':>4} {'time':>8} {'it':>2}  {'kind':<{_KIND_WIDTH}} what"
        yield Line((names, "dim"))


class Timeline:
    """Turns events into rows, one pass, remembering no more than the newest answer of each owner."""

    def __init__(self) -> None:
        self.problems = 0
        """Problems so far."""
        self.ending: RunCompleted | None = None
        """The run's end, once it was read."""
        self._started_us: int | None = None
        self._answers: dict[str, LlmResponded] = {}

    def rows(
        self, items: Iterable[Record | Problem], wanted: Callable[[Record], bool] | None = None
    ) -> Iterator[Row | ProblemRow]:
        """Yield the row of each wanted event and of every problem."""
        for item in self.seen(items):
            if isinstance(item, Problem):
                yield ProblemRow(item)
            elif wanted is None or wanted(item):
                yield self._row(item)

    def seen(self, items: Iterable[Record | Problem]) -> Iterator[Record | Problem]:
        """Yield the items as they are, and keep what is wrong with them and how they end."""
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

    def _row(self, record: Record) -> Row:
        depth = depth_of(record.owner)
        return Row(
            seq=record.seq,
            elapsed_us=record.ts - (self._started_us or 0),
            depth=min(depth, _DEEPEST),
            who=own_name(record.owner) if record.owner != "root" else "",
            iteration=record.iteration,
            kind=record.kind,
            what=self._what(record),
            why=_why(record),
            failed=record.kind.endswith(_BAD) or getattr(record.event, "ok", True) is False,
        )

    def _what(self, record: Record) -> str:
        event, answer = record.event, self._answers.get(record.owner)
        if isinstance(event, Thought) and event.text is None and answer and answer.request == event.request:
            return answer.text  # it is not written twice
        return summarise(event)


def _why(record: Record) -> str | None:
    """Return the reason that the model stated, with its confidence."""
    rationale = getattr(record.event, "rationale", None) or getattr(record.event, "termination_rationale", None)
    if not isinstance(rationale, Rationale):
        return None
    return rationale.why if rationale.confidence is None else f"{rationale.why} ({rationale.confidence:g})"


def _iteration(iteration: int | None) -> str:
    return "" if iteration is None else str(iteration)
