"""What of a run is told while it goes on, and in which words: for a terminal, and for a pipe or a log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from playhead.cli.changes import in_options
from playhead.cli.result import cost_text, tokens_text
from playhead.cli.standing import elapsed_text
from playhead.diagnose.summaries import arguments, ending_text, summarise
from playhead.diagnose.terminal import Line, fit
from playhead.trace.events import LlmFailed, ReplayDiverged, RunCompleted, ToolCallCompleted, ToolCallStarted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console, ConsoleOptions, RenderResult

    from playhead.trace.events import EventBase
    from playhead.trace.line import Record
    from playhead.trace.types import Rationale

LABELS: Final = {
    "llm-responded": ("model", "blue"),
    "llm-failed": ("model", "red"),
    "llm-retried": ("retry", "yellow"),
    "provider-fallback": ("retry", "yellow"),
    "tool-call-started": ("call", "green"),
    "tool-call-completed": ("error", "red"),
    "tool-call-late": ("late", "yellow"),
    "nudge-issued": ("nudge", "yellow"),
    "hook-fired": ("hook", "yellow"),
    "hook-failed": ("hook", "red"),
    "emission-changed": ("hook", "yellow"),
    "emission-suppressed": ("hook", "yellow"),
    "killswitch-fired": ("stop", "bold red"),
    "guardrail-violation": ("guard", "red"),
    "replay-diverged": ("replay", "yellow"),
}
"""In a log a call is told when it starts; that it returned, the model's next answer shows. One that failed is told too."""
ANSWER: Final = "← "
CALL: Final = "→ "
SHORT_MS: Final = 100
"""Milliseconds below which a call's time is told in milliseconds."""


@dataclass(frozen=True, slots=True)
class Told:
    """One event that is worth a line, with what is needed to tell it."""

    record: Record
    elapsed_us: int
    """Since the run's first event."""
    started: ToolCallStarted | None = None
    """Of a call that is over: how it began."""

    def plain(self) -> Iterator[Line]:
        """Yield the line of a log."""
        event, kind = self.record.event, self.record.kind
        when = (f"{self.elapsed_us / 1e6:>7.1f}s  ", "dim")
        if isinstance(event, RunCompleted):
            yield Line(when, (f"{'end':<7}", "bold"), ending_line(event), whole=True)
        elif kind in LABELS and not (isinstance(event, ToolCallCompleted) and event.ok):
            label, style = LABELS[kind]
            yield Line(when, (f"{label:<7}", style), (self._who(), "cyan"), _what(event))

    def live(self) -> Iterator[Line | CallLine]:
        """Yield the lines of a terminal: a call when it is over, and below it why the model made it."""
        event, kind = self.record.event, self.record.kind
        if isinstance(event, RunCompleted):
            good = event.status == "done"
            mark = ("✓ ", "bold green") if good else ("✗ ", "bold red")
            yield Line(mark, ending_line(event), whole=True)  # whole, because the cost is last
            yield Line()  # the answer follows
        elif isinstance(event, ToolCallCompleted):
            yield CallLine(self._who(), self.started, event)
            if self.started is not None and self.started.rationale is not None:
                yield Line((f"  └ {_reason(self.started.rationale)}", "dim"))
        elif kind == "llm-responded":
            yield Line((ANSWER, "bold blue"), (self._who(), "cyan"), _what(event))
        elif kind in LABELS and kind != "tool-call-started":
            label, style = LABELS[kind]
            yield Line((f"! {label}  ", style), (self._who(), "cyan"), _what(event))

    def _who(self) -> str:
        """Return the sub-agent's own name and place; nothing for the root."""
        return "" if self.record.owner == "root" else f"{self.record.owner.rpartition('/')[2]} "


class CallLine:
    """A call that is over: `→ lookup(key="Mount Zed") ✓ 1.2s`, the arguments cut to the room that is left."""

    def __init__(self, who: str, started: ToolCallStarted | None, completed: ToolCallCompleted) -> None:
        self._who, self._started, self._completed = who, started, completed

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the line."""
        from rich.cells import cell_len  # noqa: PLC0415 - rich is loaded by those who print

        completed = self._completed
        milliseconds = completed.duration_ms
        seconds = f" {milliseconds:.0f}ms" if milliseconds < SHORT_MS else f" {elapsed_text(milliseconds / 1000)}"
        error = "" if completed.ok else f" {_error(completed)}"
        head = f"{CALL}{fit(self._who, 32)}"
        room = options.max_width - cell_len(head) - len(seconds) - 2
        call = fit(self._call(), room if completed.ok else max(room - cell_len(fit(error, room)), room // 2))
        error = fit(error, room - cell_len(call))
        mark = (" ✓", "bold green") if completed.ok else (" ✗", "bold red")
        yield Line((CALL, "bold green"), (fit(self._who, 32), "cyan"), call, mark, (error, "red"), (seconds, "dim"))

    def _call(self) -> str:
        given = "…" if self._started is None else arguments(self._started.args)
        note = f" [{self._completed.rung}]" if self._completed.rung not in (None, "exact") else ""
        return f"{self._completed.tool}({given}){note}"


def ending_line(event: RunCompleted) -> str:
    """Return how the run ended, in how many turns, how long it took, its tokens, and always its cost."""
    turns = f"{event.iterations} turn{'' if event.iterations == 1 else 's'}"
    took = elapsed_text(event.duration_ms / 1000)
    return (
        f"{ending_text(event)}, {turns}, {took}, {tokens_text(event)}, {cost_text(event.cost_usd, event.cost_unknown)}"
    )


def _what(event: EventBase) -> str:
    if isinstance(event, LlmFailed):
        return in_options(summarise(event))
    return event.what if isinstance(event, ReplayDiverged) else summarise(event)


def _reason(rationale: Rationale) -> str:
    return rationale.why if rationale.confidence is None else f"{rationale.why} ({rationale.confidence:g})"


def _error(completed: ToolCallCompleted) -> str:
    return f"{completed.error.type}: {completed.error.message}" if completed.error else "no reason given"
