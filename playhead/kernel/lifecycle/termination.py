"""How an agent ends: once, and by whoever is first."""

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
    """Who ended it."""
    failed: bool = False
    error: str | None = None
    answer: dict[str, Any] = field(default_factory=dict)
    """Format, summary and confidence of the final answer, when the model gave them."""
    because: str | None = None
    """Why, in the words of the hook or killswitch that ended it."""
    withheld: bool = False
    """Whether nothing may leave as the output: a hook that has to look at it failed."""


FORKED: Final = Termination(
    "cancelled", failed=True, error="the run goes on in the process that this one was forked from"
)


class Ending:
    """A compare-and-set from whatever thread: the first termination stands.

    Until the agent has closed there are two exceptions: the model's own answer may be overruled by hooks and from
    outside, and anything may be withheld.
    """

    def __init__(self, lock: threading.RLock | None = None) -> None:
        """Begin without one; the `lock` is that of the run, so that nothing starts while it is decided."""
        self._lock = lock or threading.RLock()
        self.termination: Termination | None = None
        """What stands, or None while the agent runs."""
        self._next: Termination | None = None
        """The first that came after the model's answer: should the answer not stand, this one does."""
        self.closed = False
        """Whether what stands is final."""
        self.interrupted = False
        """Whether the agent was ended from outside of its loop."""
        self.left_behind = False
        """Whether its code was left behind: its end is recorded, and what that code does counts no more."""
        self.cancel: Callable[[float], object] | None = None
        """Cancels what the agent waits for, and leaves behind what is not back after so many seconds; None before it runs."""

    def end(
        self, termination: Termination, record: Callable[[], object] = lambda: None, *, overrule: bool = False
    ) -> bool:
        """End the agent in this way; False when it has ended already. With `overrule` this comes before the model's answer.

        `record` is called when this one stands, and before the agent can close: what it records comes before the end.
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
        """End the agent in this way, from outside: also one whose answer hooks still look at."""

        def record_it() -> None:
            self.interrupted = True  # once it has ended: what sees this finds that, too
            record()

        with self._lock:
            won = self.end(termination, record_it, overrule=True)
            self.interrupted = True
            return won

    def overrule(self, termination: Termination | None) -> bool:
        """Let the model's answer not stand: end in this way instead, or with None go on. False when that is not so.

        Any other ending stands, and one that came after the answer comes before what is asked for here.
        """
        with self._lock:
            if self.closed or self.termination is None or self.termination.reason not in ANSWERED:
                return False
            self.termination = self._next or termination
            return self._next is None or self._next is termination

    def withhold(self, reason: str, source: str, error: str) -> None:
        """End the agent as failed and without an output, however it ended before."""
        with self._lock:
            if not self.closed:
                self.termination = Termination(reason, source=source, failed=True, error=error, withheld=True)

    def close(self) -> bool:
        """From here on what stands is final. False for all but the first who closes."""
        with self._lock:
            closed, self.closed = self.closed, True
            return not closed

    def leave_behind(self) -> bool:
        """Close, and let what the agent's code does from here on count no more. False when it has closed by itself."""
        self.left_behind = self.close()
        return self.left_behind

    def orphan(self) -> None:
        """End in the child of a fork: nothing more is recorded or asked. Without the lock: nobody may give it back there."""
        self.termination, self.left_behind = FORKED, True

    def cancel_with(self, cancel: Callable[[float], object]) -> None:
        """Cancel the agent in this way when it is ended from outside."""
        self.cancel = cancel


Kind = Literal["agent", "request", "call", "process"]


class InFlight:
    """What has started in a run and not ended: agents, requests, calls and processes."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        """The run's lock: what starts, what ends and who ends it are decided under it, one after the other.

        No user code runs under it (no redaction, no subscriber), so nobody holds it for long.
        """
        self.open: dict[tuple[str, Kind, str], Callable[[], object]] = {}
        """By owner, kind and name: records the end of what is left behind, or kills a process. Used under the lock."""

    def has_processes(self, owner: str) -> bool:
        """Return whether a process of this owner, or of one below it, runs."""
        with self.lock:
            return any(kind == "process" and is_within(other, owner) for other, kind, _ in self.open)

    def leave(self, owner: str) -> None:
        """Kill and record the end of everything of an owner and of those below it, newest first."""
        with self.lock:
            keys = [key for key in self.open if is_within(key[0], owner)]
            left = [self.open.pop(key) for key in reversed(keys)]
        for record in left:
            record()
