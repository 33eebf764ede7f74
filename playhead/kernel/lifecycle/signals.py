"""SIGTERM during runs: they end with closed traces, then the process ends as it would have.

Only where the program has no handler of its own for SIGTERM.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from playhead.errors import UsageError
from playhead.kernel.guards import interrupt
from playhead.kernel.hooks import Stop
from playhead.kernel.lifecycle.termination import Termination
from playhead.kernel.lifecycle.timer_thread import file_checks
from playhead.trace.recorder import observer_timeout

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.kernel.session import Session

CLOSING_S: Final = 0.5
"""Seconds that the runs have to close their traces."""
POLL_S: Final = 0.01
WAKE_S: Final = 0.02
"""Seconds after which the signal is sent to the main thread again."""
TERMINATED: Final = Termination(
    "cancelled", source="signal:SIGTERM", failed=True, error="the process was told to end (SIGTERM)"
)

KILL_POLL_S: Final = 0.05
"""Seconds between two checks for `playhead kill`."""
LONGEST_REASON: Final = 1000
"""Characters of a reason."""
KILL: Final = "kill"
"""The name of `playhead kill` in traces and results."""


class _Ender:
    """A thread that ends the runs, then the process, after SIGTERM.

    The system may hand a signal to any thread, or just before a wait begins; Python handles it in the main thread, when that
    next runs. This thread is woken at once, and makes the main thread handle it.
    """

    _write = -1
    live: ClassVar[set[Session]] = set()
    """The runs of this process, in all threads and loops."""

    def __init__(self) -> None:
        self.begin_anew()

    def begin_anew(self) -> None:
        """Start anew in a forked child: the parent's runs do not continue here, and SIGTERM ends the process."""
        self._put_back()
        self._write = -1
        self.pid = os.getpid()
        self.is_orphan = bool(self.live)
        """Whether the process was forked during a run."""
        for session in self.live:
            session.ending.orphan()
        self.live.clear()
        self.ending = False
        """Whether the runs are being ended, so that no other one begins."""
        self.dying = False
        """Whether the main thread has handled the signal: the next one ends the process."""

    def listen(self) -> None:
        """Install the handler, unless there is another one; in the main thread."""
        if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
            return
        if self._write < 0:
            read, self._write = os.pipe()
            os.set_blocking(self._write, False)  # required by Python
            threading.Thread(target=self._work, args=(read,), name="playhead-signals", daemon=True).start()
        signal.signal(signal.SIGTERM, _on_signal)
        self._wake(self._write)

    def listen_no_more(self) -> None:
        """Remove the handler after the last run; in the main thread."""
        while self.dying and not self.live:  # else the program would continue, and might exit with 0
            time.sleep(POLL_S)
        if not self.live:
            self._put_back()

    def tell(self) -> None:
        """Wake the thread: Python may have written to another program's wakeup descriptor."""
        os.write(self._write, bytes([signal.SIGTERM]))

    def _put_back(self) -> None:
        if signal.getsignal(signal.SIGTERM) is _on_signal:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            self._wake(-1)

    def _wake(self, descriptor: int) -> None:
        before = signal.set_wakeup_fd(descriptor, warn_on_full_buffer=False)
        if before not in {-1, self._write}:
            signal.set_wakeup_fd(before)

    def _work(self, read: int) -> None:
        while signal.SIGTERM not in os.read(read, 64) or signal.getsignal(signal.SIGTERM) is not _on_signal:
            pass
        self.ending = True
        for session in list(self.live):
            with observer_timeout(), suppress(Exception):  # one run's error must not keep the others from ending
                session.interrupt(TERMINATED)
        late_at = time.monotonic() + CLOSING_S
        while self.live and time.monotonic() < late_at:
            time.sleep(POLL_S)
        _deliver_spans()
        while True:  # the first signal may only wake it; the second ends it
            signal.pthread_kill(cast("int", threading.main_thread().ident), signal.SIGTERM)
            time.sleep(WAKE_S)


def _on_signal(number: int, frame: Any) -> None:  # noqa: ANN401, ARG001 - a signal handler
    """End the runs, then the process; the second time, end the process at once."""
    if _ender.dying or os.getpid() != _ender.pid:  # in a child that was just forked
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    _ender.dying = True
    _ender.tell()


def _deliver_spans() -> None:
    """Let live export deliver its queue, for two seconds at most: a killed process runs no `atexit`."""
    live = sys.modules.get("playhead.spans.live")
    if live is not None:
        live.at_exit()


_ender: Final = _Ender()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_ender.begin_anew)


def require_own_process() -> None:
    """Refuse a run in a child forked during a run: a lock that another thread held is never released there.

    Raises:
        UsageError: this process is such a child.
    """
    if _ender.is_orphan:
        why = "this process was forked during a run, so it may hang in a lock that is never released"
        raise UsageError(f"{why}. Fork before the first run, or start a new process (`multiprocessing` with `spawn`)")


@contextmanager
def listening() -> Iterator[None]:
    """Handle SIGTERM inside this block; in the main thread."""
    in_main = threading.current_thread() is threading.main_thread()
    if in_main:
        _ender.listen()
    try:
        yield
    finally:
        if in_main:
            _ender.listen_no_more()


@contextmanager
def ended_by_signals(session: Session) -> Iterator[None]:
    """End this run in order on SIGTERM, inside this block."""
    with listening():
        _ender.live.add(session)
        while _ender.ending:  # too late: the process is about to end, and would leave the trace open
            forget(session)
            time.sleep(POLL_S)
        try:
            yield
        finally:
            forget(session)


def forget(session: Session) -> None:
    """Remove a run whose trace is closed."""
    _ender.live.discard(session)


@contextmanager
def reachable(session: Session) -> Iterator[None]:
    """Let `playhead kill` end the run inside this block."""
    control = session.run.control
    if control is None:
        yield
        return

    def look() -> None:
        why = control.kill_requested()
        if why is not None:
            polling.call_off()
            plain = "".join(each if each.isprintable() else " " for each in why[:LONGEST_REASON])
            interrupt(session, KILL, Stop(plain, KILL, KILL))

    polling = file_checks.after(KILL_POLL_S, look, again=True)
    try:
        yield
    finally:
        polling.call_off()
        control.close()
