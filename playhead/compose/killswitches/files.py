"""A killswitch that fires when a file exists."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from playhead.compose.killswitches.trigger import OnTrigger, Switch, checked_trigger, guard_block
from playhead.errors import UsageError
from playhead.kernel.guards import interrupt
from playhead.kernel.lifecycle.timer_thread import file_checks
from playhead.trace.values import scrub

if TYPE_CHECKING:
    from playhead.compose.harness import Block
    from playhead.kernel.lifecycle.timer_thread import Task

POLL_S: Final = 0.05
"""Seconds between two checks."""
LONGEST: Final = 200
"""Characters of the file that are used as the reason."""


def kill_file(path: str | Path, *, on_trigger: OnTrigger = "stop") -> Block:
    """End the run as soon as this file exists; while it exists, no run with this switch continues or starts.

    The file's first line, if it has one, is the reason. If the path cannot be checked, the run ends, too.

    Args:
        path: the file's path; its folder need not exist yet.
        on_trigger: `stop` keeps the best output and status `done`; `terminate` makes the run a failed one.

    Raises:
        UsageError: an argument is not valid.
    """
    if not isinstance(path, (str, Path)) or not str(path) or "\0" in str(path) or scrub(str(path)) != str(path):
        raise UsageError(f"kill_file takes the path of a file; it is {path!r}")
    file, trigger = Path(path).expanduser().absolute(), checked_trigger(on_trigger)
    return guard_block(
        "kill_file", lambda session: _KillFile(session, trigger, file), path=str(file), on_trigger=trigger
    )


@dataclass(eq=False)
class _KillFile(Switch):
    name = "kill_file"
    file: Path
    polling: Task | None = None

    def start(self) -> None:
        if not self._fired():
            self.polling = file_checks.after(POLL_S, self._fired, again=True)

    def stop(self) -> None:
        if self.polling is not None:
            self.polling.call_off()

    def _fired(self) -> bool:
        """End the run if the file exists or cannot be checked."""
        try:
            self.file.stat()
            why = f"{self.file} exists{_content(self.file)}"
        except FileNotFoundError:
            return False
        except OSError as error:
            why = f"nobody can tell whether {self.file} exists: {error.strerror or error}"
        self.stop()
        interrupt(self.session, self.name, self.answer(why))
        return True


def _content(file: Path) -> str:
    """Return the file's first line, as the end of a sentence."""
    try:
        # Never wait for the file: it may be a pipe that nobody writes to.
        with os.fdopen(os.open(file, os.O_RDONLY | os.O_NONBLOCK), "rb", 0) as opened:
            lines = (opened.read(4 * LONGEST) or b"").decode(errors="replace").strip().splitlines()
    except OSError:
        return ""
    plain = "".join(each if each.isprintable() else " " for each in scrub(lines[0])[:LONGEST]) if lines else ""
    return f": {plain.strip()}" if plain.strip() else ""
