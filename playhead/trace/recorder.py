"""Records the events of a run: redacts each, writes it, and hands it to subscribers."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from itertools import count
from typing import TYPE_CHECKING, Final, Literal

from playhead.trace.events import EventBase, HookFailed
from playhead.trace.line import Record, encode_data
from playhead.trace.parameters import fingerprint
from playhead.trace.redaction import Redactor
from playhead.trace.values import encoded, json_hash

if TYPE_CHECKING:
    from playhead.trace.clock import Clock
    from playhead.trace.values import JsonValue
    from playhead.trace.writer import TraceWriter

log = logging.getLogger("playhead")

OnRecord = Callable[[Record], None]
Undo = Callable[[], None]
OBSERVER_TIMEOUT_S: Final = 0.02
"""Seconds that an event waits for each observer inside `observer_timeout`."""
_bounded: Final = ContextVar("bounded", default=False)


@contextmanager
def observer_timeout() -> Iterator[None]:
    """Bound how long each observer of an event may hold up this code: the run is being ended."""
    token = _bounded.set(True)
    try:
        yield
    finally:
        _bounded.reset(token)


def _call_bounded(action: Callable[[], object]) -> None:
    thread = threading.Thread(target=action, name="playhead-observer", daemon=True)
    thread.start()
    thread.join(OBSERVER_TIMEOUT_S)


class Subscriptions:
    """The subscribers to a run's events; may change while runs are in progress, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self.entries: tuple[tuple[str | None, OnRecord], ...] = ()
        """The functions in order of registration, each with the kind it subscribes to, or None for every kind."""

    def add(self, kind: str | None, function: OnRecord) -> Undo:
        """Call `function` with every record of this kind, or with every record when `kind` is None."""
        entry = (kind, function)
        with self._lock:
            self.entries = (*self.entries, entry)

        def undo() -> None:
            with self._lock:
                self.entries = tuple(other for other in self.entries if other is not entry)

        return undo


@dataclass(slots=True)
class Prepared:
    """An event that is redacted and encoded, ready to be written."""

    event: EventBase
    owner: str
    listeners: Sequence[OnRecord] = ()
    data: bytes = b""
    record: Record | None = None
    """What was written, for the subscribers."""
    state: Literal["late", "unobserved", "withheld"] | None = None
    """Why the event is not written."""


class Recorder:
    """Records the events of one run, from any thread.

    A subscriber that raises is reported once, in the log and as a `hook-failed` event, and never hurts the run.
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
        """Whether the recording is closed; later events are discarded."""
        self._error: Exception | None = None
        self._withheld = 0
        self._subscriptions = subscriptions
        self._reported: dict[int, OnRecord] = {}
        self._numbers = count()  # of a run without a file

    @property
    def lost(self) -> int:
        """Events that could not be written."""
        return self._withheld + (self.writer.tail.lost if self.writer else 0)

    @property
    def complete(self) -> bool:
        """Whether every event so far is in the file."""
        return self.error is None

    @property
    def error(self) -> Exception | None:
        """The first failure to record an event, or None."""
        return self._error or (self.writer.error if self.writer else None)

    def emit(self, event: EventBase, owner: str, iteration: int | None = None) -> bool:
        """Record one event; return whether it is safely in the file. Never raises.

        After `seal` nothing is recorded.
        """
        prepared = self.prepare(event, owner)
        written = self.write(prepared, iteration)
        if prepared.listeners:
            self.notify(prepared)
        return written

    def prepare(self, event: EventBase, owner: str) -> Prepared:
        """Redact and encode an event. The user's redaction functions run here, so no lock may be held."""
        entries = [entry for each in self._subscriptions for entry in each.entries]
        listeners = [function for wanted, function in entries if wanted is None or wanted == event.kind]
        prepared = Prepared(event, owner, listeners)
        if self.sealed:
            prepared.state, prepared.listeners = "late", ()
        elif self.writer is None and not listeners:
            prepared.state = "unobserved"
        else:
            try:
                self._redact(prepared)
            except Exception as error:  # noqa: BLE001 - an event that cannot be redacted is not recorded; the run continues
                self._withheld += 1
                self._error = self._error or error
                prepared.state = "withheld"
        return prepared

    def write(self, prepared: Prepared, iteration: int | None) -> bool:
        """Write an event. No user code runs here, so a lock may be held."""
        if prepared.state is not None or self.sealed:
            return prepared.state == "unobserved"
        event, writer = prepared.event, self.writer
        if writer is None:
            number, now = next(self._numbers), self.clock.now_us()
            prepared.record = Record(number, now, prepared.owner, iteration, event)
            return True
        seq, ts, h, ok = writer.append(event.kind, prepared.owner, iteration, prepared.data)
        if prepared.listeners and seq >= 0:
            prepared.record = Record(seq, ts, prepared.owner, iteration, event, h)
        return ok

    def notify(self, prepared: Prepared) -> None:
        """Call the subscribers with an event that was written."""
        record = prepared.record
        if record is None:
            return
        for function in prepared.listeners:
            if _bounded.get():
                _call_bounded(partial(self._notify, function, record))
            else:
                self._notify(function, record)

    def identity_of(self, value: JsonValue) -> tuple[str, str | None]:
        """Return the hash of a JSON value after redaction, and the original's fingerprint where redaction changed it."""
        data = encoded(value)
        if not self.redactor.concerns(data):
            return sha256(data).hexdigest(), None
        redacted = self.redactor.redact(value)
        return json_hash(redacted), None if redacted == value else fingerprint(value)

    def seal(self) -> None:
        """Close the file; later events are discarded."""
        self.sealed = True
        if self.writer is not None:
            self.writer.close()

    def _redact(self, prepared: Prepared) -> None:
        prepared.data = encode_data(prepared.event)
        if self.redactor.concerns(prepared.data):
            prepared.event = self.redactor.redact_model(prepared.event)
            prepared.data = encode_data(prepared.event)
        if prepared.owner != "root":
            prepared.owner = self.redactor.redact_identity(prepared.owner)

    def _notify(self, function: OnRecord, record: Record) -> None:
        try:
            function(record)
        except Exception as error:  # noqa: BLE001 - a subscriber is user code and must not hurt the run
            if id(function) not in self._reported:
                self._reported[id(function)] = function
                self._report(function, record, error)

    def _report(self, function: OnRecord, record: Record, error: Exception) -> None:
        name = getattr(function, "__qualname__", type(function).__qualname__)
        log.warning("subscriber %s failed on %s: %r (reported once)", name, record.kind, error)
        failure = HookFailed(hook=f"subscriber:{name}", where=record.kind, error=type(error).__name__)
        self.emit(failure, record.owner, record.iteration)  # the writer refuses it after the end of the run
