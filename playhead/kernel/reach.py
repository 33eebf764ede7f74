"""How other processes and signals reach a run while it goes on."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from playhead.kernel.guards import interrupt
from playhead.kernel.hooks import Stop
from playhead.kernel.watch import file_watch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.kernel.session import Session

POLL_S: Final = 0.05
"""Seconds between two looks at whether another process wants the run to end."""
LONGEST: Final = 1000
"""Characters of a reason."""
KILL: Final = "kill"
"""How `playhead kill` is called in traces and results."""


@contextmanager
def reachable(session: Session) -> Iterator[None]:
    """Let `playhead kill` end the run, while this lasts."""
    control = session.run.control
    if control is None:
        yield
        return

    def look() -> None:
        why = control.kill_requested()
        if why is not None:
            polling.call_off()
            plain = "".join(each if each.isprintable() else " " for each in why[:LONGEST])
            interrupt(session, KILL, Stop(plain, KILL, KILL))

    polling = file_watch.every(POLL_S, look)
    try:
        yield
    finally:
        polling.call_off()
        control.close()
