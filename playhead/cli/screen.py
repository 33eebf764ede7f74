"""Lines that appear while a run goes on, and on a terminal a status line below them that is drawn again and again.

A thread of its own draws. So a terminal that is slow, or was stopped with Ctrl-S, holds up nobody but that thread: what
it does not get to show is dropped and counted. The status line is moved with carriage returns and blanks alone: it
needs no escape sequence, and so it is there under NO_COLOR too.
"""

from __future__ import annotations

import io
import os
import threading
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from queue import Empty, Full, Queue
from typing import TYPE_CHECKING, Any, Final, Self

from playhead.cli.output import note
from playhead.diagnose.terminal import Line, fit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

REFRESH_S: Final = 0.1
WAITING: Final = 2000
"""Things that wait to be shown; on a terminal that takes more than that late, nobody could read them."""
AT_ONCE: Final = 200
"""Things that are written at once."""
LONGEST: Final = 1 << 16
"""Characters of a line that a tool prints."""
SPINNER: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
ASCII_SPINNER: Final = "|/-\\"


class Screen:
    """Shows lines on stderr as they come; with `status`, on a terminal, also how things stand, every 100 ms.

    Meanwhile what others print, to stdout too, goes through the screen, so that nothing is torn apart.
    """

    def __init__(self, console: Console, status: Callable[[], tuple[str, str]]) -> None:
        """Take where to write, and what says how things stand: what goes on, and the figures behind it."""
        self.live = console.is_terminal and not console.is_dumb_terminal and console.file.isatty()
        """Whether there is a status line."""
        self.missing = 0
        """Things that were not shown, because the terminal did not take them in time."""
        self._console = console
        self._status = status
        self._waiting: Queue[Callable[[], Sequence[RenderableType]]] = Queue(WAITING)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._draw_all, name="playhead-screen", daemon=True)
        self._restore = ExitStack()
        self._frame = 0
        self._drawn = 0
        self._failure: Exception | None = None
        self._question: _Question | None = None

    def __enter__(self) -> Self:
        """Begin to show."""
        under = self._console.file
        self._console.file = under  # from now on this one, whatever sys.stderr is
        stream = _Printed(under, lambda text: self.show(lambda: [Line(text, whole=True)]))
        self._restore.enter_context(redirect_stdout(stream))
        self._restore.enter_context(redirect_stderr(stream))
        self._restore.callback(stream.rest)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Show what is left, and leave the terminal as it was."""
        self._restore.close()
        self._ended.set()
        self._thread.join()
        if self._failure is not None and not isinstance(self._failure, OSError):
            note(f"what the run did could not be shown: {type(self._failure).__name__}: {self._failure}")

    def show(self, lines: Callable[[], Sequence[RenderableType]]) -> None:
        """Show what the function returns, as soon as the terminal takes it. Never waits, and never raises."""
        try:
            self._waiting.put_nowait(lines)
        except Full:
            self.missing += 1

    def ask(self, question: str) -> Callable[[bool], None]:
        """Show a question that ends in a prompt, and nothing else until what is returned is called; one at a time.

        It takes whether the question was answered: if not, nobody has ended the prompt's line.
        """
        asked = self._question = _Question(question)
        return asked.end

    def _draw_all(self) -> None:
        try:
            while not (self._ended.is_set() and self._waiting.empty()):
                self._stand_still()
                self._draw(self._next())
            self._draw([], last=True)
        except Exception as error:  # noqa: BLE001 - told at the end; the run goes on
            self._failure = error

    def _stand_still(self) -> None:
        """Show the question that stands, below what came before it, and wait until it is over."""
        asked, self._question = self._question, None
        if asked is None or asked.over.is_set():
            return
        self._draw(self._next(), bare=True)
        self._write(asked.text)
        while not asked.over.wait(REFRESH_S) and not self._ended.is_set():
            pass
        if not asked.answered:
            self._write("\n")

    def _write(self, text: str) -> None:
        self._console.file.write(text)
        self._console.file.flush()

    def _next(self) -> list[RenderableType]:
        """Wait for something to show, but not longer than the status line may stand still."""
        found: list[RenderableType] = []
        try:
            found += self._waiting.get(timeout=0.01 if self._ended.is_set() else REFRESH_S)()
            for _ in range(AT_ONCE):
                found += self._waiting.get_nowait()()
        except Empty:
            pass
        return found

    def _draw(self, lines: list[RenderableType], *, last: bool = False, bare: bool = False) -> None:
        if last and self.missing:
            lines = [*lines, Line((f"… {self.missing:,} lines are missing: the terminal was too slow", "yellow"))]
        status = None if last or bare or not self.live else self._status_line()
        if lines or status or self._drawn:
            self._console.print(_Frame(self._drawn, lines, status), crop=False)
        self._drawn = status.cells if status else 0

    def _status_line(self) -> _StatusLine:
        frames = SPINNER if self._console.encoding.startswith("utf") else ASCII_SPINNER
        self._frame = (self._frame + 1) % len(frames)
        return _StatusLine(frames[self._frame], *self._status(), self._width() - 1)

    def _width(self) -> int:
        """Return the cells of the terminal as it is now: a status line that wraps could not be taken away."""
        try:
            now = os.get_terminal_size(self._console.file.fileno()).columns
        except (OSError, ValueError):
            now = 0
        return min(now or self._console.width, self._console.width)


class _Question:
    """A question on the screen."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.over = threading.Event()
        self.answered = False

    def end(self, answered: bool) -> None:  # noqa: FBT001 - all there is to say
        """Let the screen go on."""
        self.answered = answered
        self.over.set()


class _StatusLine:
    """The spinner, what goes on, and the figures; when there is little room, less of what goes on."""

    def __init__(self, spinner: str, what: str, figures: str, width: int) -> None:
        from rich.cells import cell_len  # noqa: PLC0415 - as everywhere: rich is loaded by those who print

        figures = fit(figures, max(width - 2, 0))
        what = fit(what, width - 5 - cell_len(figures))
        between = "   " if what else ""
        self.cells = cell_len(f"{spinner} {what}{between}{figures}")
        self._parts = ((spinner, "cyan"), (f" {what}", ""), (between + figures, "dim"))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the line, without an end."""
        from rich.segment import Segment  # noqa: PLC0415 - as above

        for text, style in self._parts:
            yield Segment(text, console.get_style(style) if style else None)


class _Frame:
    """The status line taken away, lines in its place, and the new one below: one write."""

    def __init__(self, drawn: int, lines: Sequence[RenderableType], status: _StatusLine | None) -> None:
        self._drawn, self._lines, self._status = drawn, lines, status

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield it."""
        from rich.segment import Segment  # noqa: PLC0415 - as above

        if self._drawn:
            yield Segment(f"\r{' ' * self._drawn}\r")
        yield from self._lines
        if self._status is not None:
            yield self._status


class _Printed(io.TextIOBase):
    """Stands for stdout and stderr while the screen is there; every whole line that is printed is shown."""

    def __init__(self, under: Any, show: Callable[[str], None]) -> None:  # noqa: ANN401 - whatever stderr is
        self._under = under
        self._show = show
        self._lock = threading.Lock()
        self._text = ""

    @property
    def buffer(self) -> Any:  # noqa: ANN401 - bytes go straight to the terminal
        """The stream below, for those who write bytes."""
        return self._under.buffer

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """As of the stream below."""
        return str(self._under.encoding)

    def fileno(self) -> int:
        """Return the file below, for those who hand it to another process."""
        return int(self._under.fileno())

    def writable(self) -> bool:
        """Return that it can be written to."""
        return True

    def write(self, text: str) -> int:
        """Take a piece of text."""
        with self._lock:
            *lines, self._text = (self._text + text).split("\n")
            self._text = self._text[-LONGEST:]
        for line in lines:  # a progress bar goes back to the start of its line: only what it says last is shown
            self._show(line.rstrip("\r").rpartition("\r")[2])
        return len(text)

    def rest(self) -> None:
        """Show what was begun and not ended."""
        if self._text:
            self.write("\n")
