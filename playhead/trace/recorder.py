"""The one door to the trace: redacts, writes, and tells subscribers what was written."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Final, Literal

from playhead.trace.events import EventBase, HookFailed
from playhead.trace.line import Record, encode_data
from playhead.trace.parameters import fingerprint
from playhead.trace.redaction import Redactor
from playhead.trace.values import json_hash

if TYPE_CHECKING:
    from playhead.trace.clock import Clock
    from playhead.trace.values import JsonValue
    from playhead.trace.writer import TraceWriter

log = logging.getLogger("playhead")

OnRecord = Callable[[Record], None]
Undo = Callable[[], None]
_PATIENCE_S: Final = 0.02
"""Seconds that a thread in haste waits for an observer."""
_state = threading.local()


@contextmanager
def in_haste() -> Iterator[None]:
    """Let observers of what this thread records hold it up for a moment at most."""
    before = _hasty()
    _state.hasty = True
    try:
        yield
    finally:
        _state.hasty = before


def _hasty() -> bool:
    """Return whether this thread must not be held up."""
    return getattr(_state, "hasty", False)


def _patiently(action: Callable[[], object]) -> None:
    """Do it in a thread of its own, and wait a moment for that."""
    thread = threading.Thread(target=action, name="playhead-observer", daemon=True)
    thread.start()
    thread.join(_PATIENCE_S)


class Subscriptions:
    """Who wants to hear of which events; may be changed while runs go on, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self.entries: tuple[tuple[str | None, OnRecord], ...] = ()
        """The functions in order of registration, each with the kind that it is to be called with, or None for all."""

    def add(self, kind: str | None, function: OnRecord) -> Undo:
        """Call `function` with every record of this kind, or with every record when `kind` is None."""
        entry = (kind, function)
        with self._lock:
            self.entries = (*self.entries, entry)

        def undo() -> None:
            with self._lock:
                self.entries = tuple(other for other in self.entries if other is not entry)

        return undo


class Prepared:
    """An event on its way into the file."""

    record: Record | None = None
    """What was written."""
    state: Literal["late", "unheard", "withheld"] | None = None
    """Why it is not to be written."""

    def __init__(self, event: EventBase, owner: str, listeners: Sequence[OnRecord] = ()) -> None:
        self.event = event
        self.owner = owner
        self.listeners = listeners
        self.data = b""


class Recorder:
    """Records the events of one run, from any thread.

    A subscriber that raises is heard of once, in the log and as a `hook-failed` event, and never hurts the run.
    """

    def __init__(
        self,
        clock: Clock,
        writer: TraceWriter | None = None,
        redactor: Redactor | None = None,
        subscriptions: tuple[Subscriptions, ...] = (),
    ) -> None:
        self.clock = clock
        self.writer = writer
        self.redactor = redactor or Redactor()
        self.sealed = False
        """Whether the record is closed; what comes now comes too late."""
        self.subscriber_failures = 0
        """Calls of subscribers that raised."""
        self._error: Exception | None = None
        self._withheld = 0
        self._subscriptions = subscriptions
        self._blamed: dict[int, OnRecord] = {}
        self._numbers = count()  # of a run without a file

    @property
    def lost(self) -> int:
        """Events that could not be written."""
        return self._withheld + (self.writer.lost if self.writer else 0)

    @property
    def complete(self) -> bool:
        """Whether everything so far is in the file as asked."""
        return self.error is None

    @property
    def error(self) -> Exception | None:
        """The first thing that went wrong, or None."""
        return self._error or (self.writer.error if self.writer else None)

    def emit(self, event: EventBase, owner: str, iteration: int | None = None) -> bool:
        """Record one event; return whether it is safely where it belongs. Never raises.

        After `seal` nothing is recorded.
        """
        prepared = self.prepare(event, owner)
        written = self.write(prepared, iteration)
        if prepared.listeners:
            self.tell(prepared)
        return written

    def prepare(self, event: EventBase, owner: str) -> Prepared:
        """Do what comes before an event is written: the user's rules are applied here, and may take their time."""
        listeners: Sequence[OnRecord] = ()
        for each in self._subscriptions:
            if each.entries:
                kind = event.kind
                heard = [function for wanted, function in each.entries if wanted is None or wanted == kind]
                listeners = [*listeners, *heard]
        prepared = Prepared(event, owner, listeners)
        if self.sealed:
            prepared.state, prepared.listeners = "late", ()
        elif self.writer is None and not listeners:
            prepared.state = "unheard"
        else:
            try:
                if self.redactor.active:
                    self._redact(prepared)
                elif self.writer is not None:
                    prepared.data = encode_data(event)
            except Exception as error:  # noqa: BLE001 - what cannot be redacted is not recorded; the run goes on
                self._withheld += 1
                self._error = self._error or error
                prepared.state = "withheld"
        return prepared

    def write(self, prepared: Prepared, iteration: int | None) -> bool:
        """Write an event: nothing of the user's runs here, so it may be done under a lock."""
        if prepared.state is not None or self.sealed:
            return prepared.state == "unheard"
        event, owner = prepared.event, prepared.owner
        if self.writer is None:
            prepared.record = Record(next(self._numbers), self.clock.now_us(), owner, iteration, event)
            return True
        seq, ts, h, ok = self.writer.append(event.kind, owner, iteration, prepared.data)
        if prepared.listeners and seq >= 0:
            prepared.record = Record(seq, ts, owner, iteration, event, h)
        return ok

    def tell(self, prepared: Prepared) -> None:
        """Tell subscribers of an event that was written."""
        record = prepared.record
        if record is None:
            return
        for function in prepared.listeners:
            if _hasty():
                _patiently(partial(self._tell, function, record))
            else:
                self._tell(function, record)

    def identity_of(self, value: JsonValue) -> tuple[str, str | None]:
        """Return the hash of a JSON value after redaction and, where that changes the value, the fingerprint of what it was."""
        if not self.redactor.active:
            return json_hash(value), None
        redacted = self.redactor.redact(value)
        return json_hash(redacted), None if redacted == value else fingerprint(value)

    def seal(self) -> None:
        """Close the file; whatever comes later comes too late."""
        self.sealed = True
        if self.writer is not None:
            self.writer.close()

    def _redact(self, prepared: Prepared) -> None:
        prepared.data = encode_data(prepared.event)
        if self.redactor.concerns(prepared.data):
            prepared.event = self.redactor.redact_model(prepared.event)
            prepared.data = encode_data(prepared.event)
        prepared.owner = self.redactor.redact_identity(prepared.owner)

    def _tell(self, function: OnRecord, record: Record) -> None:
        try:
            function(record)
        except Exception as error:  # noqa: BLE001 - a subscriber is user code and must not hurt the run
            self.subscriber_failures += 1
            if id(function) not in self._blamed:
                self._blamed[id(function)] = function
                self._blame(function, record, error)

    def _blame(self, function: OnRecord, record: Record, error: Exception) -> None:
        name = getattr(function, "__qualname__", type(function).__qualname__)
        log.warning("subscriber %s failed on %s: %r (said once)", name, record.kind, error)
        failure = HookFailed(hook=f"subscriber:{name}", where=record.kind, error=type(error).__name__)
        self.emit(failure, record.owner, record.iteration)  # which the writer refuses after the end of the run
