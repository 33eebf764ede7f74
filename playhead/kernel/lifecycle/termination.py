"""How an agent ends: exactly once, and the first cause wins."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from playhead.trace.format import ANSWERED
from playhead.trace.owners import is_within

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.trace.types import Rationale
    from playhead.trace.values import JsonValue


@dataclass(frozen=True, slots=True)
class Termination:
    """How an agent ended."""

    reason: str
    """The reason code, such as `end_turn` or `max_iterations`."""
    output: JsonValue = None
    rationale: Rationale | None = None
    source: str = "kernel"
    """What ended it: `kernel`, `hook:…`, `killswitch:…`, `signal:…`."""
    failed: bool = False
    error: str | None = None
    answer: dict[str, Any] = field(default_factory=dict)
    """Format, summary and confidence of the final answer, if the model gave them."""
    because: str | None = None
    """The reason given by the hook or killswitch that ended it."""
    withheld: bool = False
    """Whether the output is withheld, because a required hook failed."""


FORKED: Final = Termination(
    "cancelled", failed=True, error="the run continues in the process that this one was forked from"
)


class Ending:
    """A compare-and-set, from any thread: the first termination stands.

    There are two exceptions until the agent has closed: hooks, and an end from outside, may replace the model's answer, and any
    output may be withheld.
    """

    def __init__(self, lock: threading.RLock | None = None) -> None:
        """Start without a termination; `lock` is the run's lock, so that nothing starts during the decision."""
        self._lock = lock or threading.RLock()
        self.termination: Termination | None = None
        """The termination; None while the agent runs."""
        self._next: Termination | None = None
        """The first termination after the model's answer; it stands if the answer is rejected."""
        self.closed = False
        """Whether the termination is final."""
        self.interrupted = False
        """Whether the agent was ended from outside its loop."""
        self.left_behind = False
        """Whether its code was abandoned: its end is recorded, and later events from this code are discarded."""
        self.cancel: Callable[[float], object] | None = None
        """Cancels what the agent awaits, and abandons it after so many seconds; None before the agent runs."""

    def end(
        self, termination: Termination, record: Callable[[], object] = lambda: None, *, overrule: bool = False
    ) -> bool:
        """End the agent; return False if it has ended already. With `overrule` this end replaces the model's answer.

        `record` is called if this termination stands, before the agent can close: its events come before the end.
        """
        with self._lock:
            if self.termination is None:
                self.termination = termination
            else:
                if self.termination.reason in ANSWERED and termination.reason not in ANSWERED:
                    self._next = self._next or termination
                if not (overrule and self.overrule(termination)):
                    return False
            record()
            return True

    def interrupt(self, termination: Termination, record: Callable[[], object] = lambda: None) -> bool:
        """End the agent from outside its loop, even if hooks still check its answer."""

        def record_it() -> None:
            self.interrupted = True  # after the termination, so that whoever sees this sees that, too
            record()

        with self._lock:
            won = self.end(termination, record_it, overrule=True)
            self.interrupted = True
            return won

    def overrule(self, termination: Termination | None) -> bool:
        """Replace the model's answer with this termination, or with None continue; return whether that happened.

        Any other termination stands, and one that came after the answer takes precedence.
        """
        with self._lock:
            if self.closed or self.termination is None or self.termination.reason not in ANSWERED:
                return False
            self.termination = self._next or termination
            return self._next is None or self._next is termination

    def withhold(self, reason: str, source: str, error: str) -> None:
        """End the agent as failed and without an output, whatever its termination."""
        with self._lock:
            if not self.closed:
                self.termination = Termination(reason, source=source, failed=True, error=error, withheld=True)

    def close(self) -> bool:
        """Make the termination final; return False if it was already."""
        with self._lock:
            closed, self.closed = self.closed, True
            return not closed

    def leave_behind(self) -> bool:
        """Close, and discard later events from the agent's code; return False if it has closed by itself."""
        self.left_behind = self.close()
        return self.left_behind

    def orphan(self) -> None:
        """End in the child of a fork, without the lock: no other thread is there to release it."""
        self.termination, self.left_behind = FORKED, True

    def cancel_with(self, cancel: Callable[[float], object]) -> None:
        """Set what cancels the agent when it is ended from outside."""
        self.cancel = cancel


Kind = Literal["agent", "request", "call", "process"]


class InFlight:
    """The agents, requests, calls and processes of a run that have started and not ended."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        """The run's lock: starts and ends are decided under it, one after the other.

        No user code runs under it (no redaction, no subscriber), so it is never held for long.
        """
        self.open: dict[tuple[str, Kind, str], Callable[[], object]] = {}
        """By owner, kind and name: records the end of abandoned work, or kills a process. Used under the lock."""

    def has_processes(self, owner: str) -> bool:
        """Return whether a process of this owner, or of one below it, runs."""
        with self.lock:
            return any(kind == "process" and is_within(other, owner) for other, kind, _ in self.open)

    def leave(self, owner: str) -> None:
        """End everything of an owner and of those below it, newest first: kill processes, record the ends."""
        with self.lock:
            keys = [key for key in self.open if is_within(key[0], owner)]
            left = [self.open.pop(key) for key in reversed(keys)]
        for record in left:
            record()
