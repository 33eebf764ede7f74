"""SIGTERM while runs go on: they end in order, with closed traces, and then the process ends as it would have.

Only where nobody has said what the signal does; a server's own handler is left alone.
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
from playhead.kernel.lifecycle.watch import file_watch
from playhead.trace.recorder import observer_timeout

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.kernel.session import Session

CLOSING_S: Final = 0.5
"""Seconds that the runs have to close their traces, at most."""
POLL_S: Final = 0.01
WAKE_S: Final = 0.02
"""Seconds that the main thread has to notice a signal, before it is sent to it again."""
TERMINATED: Final = Termination(
    "cancelled", source="signal:SIGTERM", failed=True, error="the process was told to end (SIGTERM)"
)

KILL_POLL_S: Final = 0.05
"""Seconds between two looks at whether another process wants the run to end."""
LONGEST_REASON: Final = 1000
"""Characters of a reason."""
KILL: Final = "kill"
"""How `playhead kill` is called in traces and results."""


class _Ender:
    """A thread that ends the runs and then the process when SIGTERM has come.

    The system may hand a signal to any thread, or just before a wait begins; Python handles it in the main thread, when that
    next runs. This one hears of it at once, and makes the main thread handle it.
    """

    _write = -1
    live: ClassVar[set[Session]] = set()
    """The runs of this process, of all threads and loops."""

    def __init__(self) -> None:
        self.begin_anew()

    def begin_anew(self) -> None:
        """Forget the parent of a forked child: its runs do not go on here, and SIGTERM ends this process as any other one."""
        self._put_back()
        self._write = -1
        self.pid = os.getpid()
        self.is_orphan = bool(self.live)
        """Whether the process was forked during a run."""
        for session in self.live:
            session.ending.orphan()
        self.live.clear()
        self.ending = False
        """Whether the runs are being ended: no other one begins."""
        self.dying = False
        """Whether the main thread knows: the next signal ends the process."""

    def listen(self) -> None:
        """Hear of SIGTERM, unless somebody else does; in the main thread."""
        if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
            return
        if self._write < 0:
            read, self._write = os.pipe()
            os.set_blocking(self._write, False)  # as Python wants it
            threading.Thread(target=self._work, args=(read,), name="playhead-signals", daemon=True).start()
        signal.signal(signal.SIGTERM, _on_signal)
        self._wake(self._write)

    def listen_no_more(self) -> None:
        """Let SIGTERM do what it did, unless other runs go on; in the main thread."""
        while self.dying and not self.live:  # else the program would continue for a moment, and might exit in order
            time.sleep(POLL_S)
        if not self.live:
            self._put_back()

    def tell(self) -> None:
        """Say that SIGTERM has come: by itself Python may tell somebody else, who heard of signals before."""
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
            with observer_timeout(), suppress(Exception):  # of one run must not keep the others from their end
                session.interrupt(TERMINATED)
        late_at = time.monotonic() + CLOSING_S
        while self.live and time.monotonic() < late_at:
            time.sleep(POLL_S)
        _deliver_spans()
        while True:  # the first may be what wakes it, and the second is what ends it
            signal.pthread_kill(cast("int", threading.main_thread().ident), signal.SIGTERM)
            time.sleep(WAKE_S)


def _on_signal(number: int, frame: Any) -> None:  # noqa: ANN401, ARG001 - a signal handler
    """Have the runs ended, and then the process; the second time, end the process."""
    if _ender.dying or os.getpid() != _ender.pid:  # of a child that has just been forked
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    _ender.dying = True
    _ender.tell()


def _deliver_spans() -> None:
    """Let live export deliver what is left, for two seconds at most, if there is any: a killed process does not."""
    live = sys.modules.get("playhead.spans.live")
    if live is not None:
        live.at_exit()


_ender: Final = _Ender()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_ender.begin_anew)


def require_own_process() -> None:
    """Refuse to begin a run in the child of a fork made during one: a lock that another thread held stays held for ever.

    Raises:
        UsageError: this process is such a child.
    """
    if _ender.is_orphan:
        why = "this process was forked while a run went on: it may hang in a lock that nobody gives back"
        raise UsageError(f"{why}. Fork before the first run, or start a new process (`multiprocessing` with `spawn`)")


@contextmanager
def listening() -> Iterator[None]:
    """Let SIGTERM end the runs of this process before it ends the process; in the main thread, where signals come."""
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
    """End this run in order when SIGTERM comes, while this lasts."""
    with listening():
        _ender.live.add(session)
        while _ender.ending:  # it came too late: the process is gone in a moment, and would leave its trace open
            forget(session)
            time.sleep(POLL_S)
        try:
            yield
        finally:
            forget(session)


def forget(session: Session) -> None:
    """Wait for this run no more: its trace is closed."""
    _ender.live.discard(session)


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
            plain = "".join(each if each.isprintable() else " " for each in why[:LONGEST_REASON])
            interrupt(session, KILL, Stop(plain, KILL, KILL))

    polling = file_watch.after(KILL_POLL_S, look, again=True)
    try:
        yield
    finally:
        polling.call_off()
        control.close()
