"""The progress of a run on stderr: lines, and on a terminal a status line below them.

A separate thread writes, so a terminal that is slow, or was stopped with Ctrl-S, delays nobody but that thread. The status
line is moved with carriage returns and blanks alone: it needs no escape sequence, so it is there under NO_COLOR too, and a
killed process leaves no hidden cursor (`rich.live` writes escape sequences under NO_COLOR, and prints in the caller's thread).
"""

from __future__ import annotations

import os
import signal
import threading
import warnings
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final, Self

from playhead.cli import exits
from playhead.cli.outcome import ending_line, result_as_json
from playhead.cli.output import note, safe, text_console, write_json
from playhead.cli.reading import open_store
from playhead.diagnose.parts import cell, cost_text
from playhead.diagnose.spending import Spent
from playhead.diagnose.summaries import summarise
from playhead.diagnose.terminal import Line, fit
from playhead.errors import PlayheadError, TraceError
from playhead.trace import events as e
from playhead.trace.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from rich.console import Console

    from playhead.agent.result import RunResult
    from playhead.trace.line import Record

REFRESH_S: Final = 0.1
LONGEST: Final = 1 << 16
"""The maximum number of characters of a line that a tool prints."""
LOG_WIDTH: Final = 160
"""Cells of a line that goes to no terminal."""
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
    "run-completed": ("end", "bold"),
}
"""Events that are shown. A call is shown when it starts, and again when it fails; otherwise the model's next answer shows it."""


@contextmanager
def following(progress: Progress, trace_dir: Path | None, *, as_json: bool) -> Iterator[None]:
    """Show the progress of a run.

    After a failure, Ctrl-C or SIGTERM it prints the path of the trace and, as JSON, the partial result; then it raises again.
    """
    # A run that is interrupted at its start leaves litellm's request behind, not awaited: that is no mistake.
    warnings.filterwarnings("ignore", r"coroutine '[\w.]*completion' was never awaited", RuntimeWarning)
    try:
        with progress, exits.handling(exits.terminate, signal.SIGTERM):
            yield
    except (PlayheadError, KeyboardInterrupt) as error:
        result: RunResult | None = getattr(error, "result", None)
        if as_json and result is not None:
            write_json([result_as_json(result)])
        if progress.run_id is not None:
            with suppress(TraceError):
                note(f"the trace is {open_store(trace_dir).resolve(progress.run_id)}")
        raise


class Progress:
    """A subscriber that shows events. It only queues them: another thread writes.

    What other code prints meanwhile, to stdout too, goes through it, so that no line is torn.
    """

    def __init__(self, console: Console | None = None) -> None:
        self._console = console = console or text_console(stderr=True, pipe_width=LOG_WIDTH)
        self.run_id: str | None = None
        """The run, once it has started."""
        self.live = console.is_terminal and not console.is_dumb_terminal and console.file.isatty()
        """Whether there is a status line."""
        self._clock = SystemClock()
        self._began_us = self._clock.now_us()
        self._lock = threading.Lock()  # tools in threads report too
        self._status = Status()
        self._waiting: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._started_us = self._drawn = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._write_all, name="playhead-progress", daemon=True)
        self._restore = ExitStack()
        self._failure: Exception | None = None

    def __enter__(self) -> Self:
        """Start to show."""
        self._console.file = under = self._console.file  # this one, also when sys.stderr changes
        printed = _Printed(under, lambda text: self._show(Line(safe(text), whole=True)))
        self._restore.enter_context(redirect_stdout(printed))
        self._restore.enter_context(redirect_stderr(printed))
        self._restore.callback(printed.end)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Show what is left, and leave the terminal as it was."""
        self._restore.close()
        self._ended.set()
        self._waiting.put(lambda: None)  # wakes the thread
        self._thread.join()
        if self._failure is not None and not isinstance(self._failure, OSError):
            note(f"what the run did could not be shown: {type(self._failure).__name__}: {self._failure}")

    def __call__(self, record: Record) -> None:
        """Queue one event, if it is worth a line."""
        event = record.event
        with self._lock:
            if isinstance(event, e.RunStarted):
                self.run_id, self._started_us = event.run_id, record.ts
            if self.live:
                self._status.add(record)
        if event.kind in LABELS and not (isinstance(event, e.ToolCallCompleted) and event.ok):
            self._show(record)

    def ask(self, question: str) -> Callable[[bool], None]:
        """Show a question that ends in a prompt, and nothing else until what is returned is called.

        It takes whether the question was answered; if not, the prompt's line is still open.
        """
        over, answers = threading.Event(), list[bool]()

        def stand() -> None:
            self._console.file.write(question)
            self._console.file.flush()
            while not over.wait(REFRESH_S) and not self._ended.is_set():
                pass
            if not any(answers):
                self._console.file.write("\n")

        def end(was_answered: bool) -> None:  # noqa: FBT001 - all there is to say
            answers.append(was_answered)
            over.set()

        self._waiting.put(stand)
        return end

    def status(self) -> str:
        """Return the status line: time, turn, tokens, the cost once one is known, and what is awaited."""
        elapsed = (self._clock.now_us() - self._began_us) / 1e6  # of the command: to load an adapter takes seconds
        with self._lock:
            return f"{elapsed:.1f}s  {self._status.text()}"

    def _show(self, what: Record | Line) -> None:
        lines = [what] if isinstance(what, Line) else self._lines(what)
        if self._failure is None:
            self._waiting.put(lambda: self._console.print(*lines, crop=False))

    def _lines(self, record: Record) -> list[Line]:
        """Return the line of an event, and below a call why the model made it."""
        event = record.event
        label, style = LABELS[event.kind]
        who = "" if record.owner == "root" else f"{record.owner.rpartition('/')[2]} "
        when = f"{(record.ts - self._started_us) / 1e6:>7.1f}s  "
        ends = isinstance(event, e.RunCompleted)  # whole, because the cost is last
        what = ending_line(event) if isinstance(event, e.RunCompleted) else summarise(event)
        lines = [Line((when, "dim"), (f"{label:<7}", style), (who, "cyan"), what, whole=ends)]
        if isinstance(event, e.ToolCallStarted) and event.rationale is not None:
            lines.append(Line((f"{'':>17}└ {event.rationale.why}", "dim")))
        return lines

    # --- in the thread that writes ------------------------------------------------------------------------------------

    def _write_all(self) -> None:
        try:
            while not (self._ended.is_set() and self._waiting.empty()):
                self._write_next()
            self._erase()
        except Exception as error:  # noqa: BLE001 - reported at the end; the run continues
            self._failure = error

    def _write_next(self) -> None:
        """Write the next item, or draw the status line anew after a while without one."""
        with suppress(Empty):
            item = self._waiting.get(timeout=REFRESH_S)
            self._erase()
            item()
        if self.live and self._waiting.empty():
            self._erase()
            self._draw()

    def _erase(self) -> None:
        if self._drawn:
            self._console.file.write(f"\r{' ' * self._drawn}\r")
            self._drawn = 0

    def _draw(self) -> None:
        from rich.cells import cell_len  # rich is loaded by those who print

        width = self._console.width
        with suppress(OSError, ValueError):  # as it is now: a line that wraps could not be taken away
            width = min(os.get_terminal_size(self._console.file.fileno()).columns or width, width)
        line = fit(self.status(), width - 1)
        self._console.file.write(line)
        self._console.file.flush()
        self._drawn = cell_len(line)


class Status:
    """The status of a run, folded from its events: turn, tokens, cost, and what is in progress."""

    def __init__(self) -> None:
        self._turn = self._limit = 0
        self._spent = Spent()
        self._awaited: dict[tuple[str, str | int], str] = {}

    def add(self, record: Record) -> None:
        """Take one more event, in the order of the file."""
        owner, event, awaited = record.owner, record.event, self._awaited
        if owner == "root" and record.iteration is not None:
            self._turn = record.iteration + 1
        match event:
            case e.RunStarted():
                self._limit = event.agent.max_iterations
            case e.LlmRequested(request=key):
                awaited[owner, key] = f"waiting for {event.model}"
            case e.LlmRetried(request=key):
                awaited[owner, key] = f"waiting {event.delay_s:g}s to try again"
            case e.LlmResponded(request=key) | e.LlmFailed(request=key) | e.ToolCallCompleted(call_id=key):
                self._spent.take(event)
                awaited.pop((owner, key), None)
            case e.ToolCallStarted(call_id=key):
                awaited[owner, key] = f"running {event.tool}"
            case e.ApprovalRequested(call_id=key):
                awaited[owner, f"approval of {key}"] = f"waiting for approval of {event.tool}"
            case e.ApprovalDecided(call_id=key):
                awaited.pop((owner, f"approval of {key}"), None)
            case e.AgentCompleted() | e.RunCompleted():
                self._awaited = {key: what for key, what in awaited.items() if key[0] != owner}

    def text(self) -> str:
        """Return it as text; what is awaited, the newest first."""
        usage, cost_usd, unknown = self._spent.total()
        tokens = usage.known(usage.total_tokens)
        parts = [f"turn {self._turn}/{self._limit}"] if self._turn else []
        parts += [f"{cell(None if tokens is None else f'{tokens:,}', usage.unknown)} tokens"]
        parts += [cost_text(cost_usd, unknown) or "$?"] if tokens != 0 else []  # before, nothing is known of the cost
        return "  ".join([*parts, ", ".join(dict.fromkeys(reversed(self._awaited.values()))) or "working"])


class _Printed:
    """Replaces stdout and stderr and shows every complete line. Everything but text goes to the original stream."""

    def __init__(self, under: Any, show: Callable[[str], None]) -> None:  # noqa: ANN401 - whatever stderr is
        self._under, self._show = under, show
        self._lock = threading.Lock()
        self._text = ""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - the stream's own
        return getattr(self._under, name)

    def isatty(self) -> bool:
        """Return False, so that other code prints no colours and draws nothing."""
        return False

    def write(self, text: str) -> int:
        """Take a piece of text."""
        with self._lock:
            *lines, self._text = (self._text + text).split("\n")
            self._text = self._text[-LONGEST:]
        for line in lines:  # a progress bar goes back to the start of its line: only what it says last is shown
            self._show(line.rstrip("\r").rpartition("\r")[2])
        return len(text)

    def end(self) -> None:
        """Show what was begun and not ended."""
        if self._text:
            self.write("\n")
