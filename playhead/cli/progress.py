"""What a run does, told on stderr while it does it: on a terminal with a status line, elsewhere as plain lines."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final, Self

from playhead.cli.result import cost_figure
from playhead.cli.screen import Screen
from playhead.cli.standing import Standing, elapsed_text
from playhead.cli.told import LABELS, Told
from playhead.diagnose.tokens import cell
from playhead.trace.clock import SystemClock
from playhead.trace.events import ToolCallCompleted, ToolCallStarted

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from playhead.trace.clock import Clock
    from playhead.trace.line import Record

TOLD: Final = {*LABELS, "run-completed"}


class Progress:
    """A subscriber that tells what happens. It only takes notes: another thread writes them out."""

    def __init__(self, console: Console, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._began_us = self._clock.now_us()
        self._lock = threading.Lock()  # tools in threads report too
        self._standing = Standing()
        self._calls: dict[tuple[str, str], ToolCallStarted] = {}
        self._screen = Screen(console, self.status)

    @property
    def run_id(self) -> str | None:
        """The run, once it has started."""
        return self._standing.run_id

    def __enter__(self) -> Self:
        """Begin to tell."""
        self._screen.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        """Tell what is left, and leave the terminal as it was."""
        self._screen.__exit__()

    def __call__(self, record: Record) -> None:
        """Note one event, and tell it, if it is worth a line."""
        with self._lock:
            self._standing.add(record)
            if record.kind not in TOLD:
                return
            elapsed_us = record.ts - (self._standing.started_us or record.ts)
            told = Told(record, elapsed_us, self._beginning(record))
        lines = told.live if self._screen.live else told.plain
        self._screen.show(lambda: list(lines()))

    def ask(self, question: str) -> Callable[[bool], None]:
        """Show a question in place of the status line, and nothing else until what is returned is called."""
        return self._screen.ask(question)

    def status(self) -> tuple[str, str]:
        """Return what is awaited now, and the figures: turn, time, tokens, and the cost once one is known."""
        with self._lock:
            standing = self._standing
            awaited, turn, limit = standing.awaited(), standing.turn, standing.limit
            (usage, cost_usd, untold), answers = standing.spent.total(), standing.answers
        elapsed = (self._clock.now_us() - self._began_us) / 1e6  # of the command: to load an adapter takes seconds
        turns = f"iter {turn}/{limit}   " if turn else ""
        cost = f"   {cell(cost_figure(cost_usd), untold)}" if answers else ""
        tokens = usage.known(usage.total_tokens)
        shown = cell(None if tokens is None else f"{tokens:,}", usage.unknown)
        return awaited, f"{turns}{elapsed_text(elapsed)}   {shown} tokens{cost}"

    def _beginning(self, record: Record) -> ToolCallStarted | None:
        """Return how the call began that is over now."""
        match record.event:
            case ToolCallStarted() as event:
                self._calls[record.owner, event.call_id] = event
            case ToolCallCompleted(call_id=call_id):
                return self._calls.pop((record.owner, call_id), None)
        return None
