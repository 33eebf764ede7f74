"""Records the events of a run: redacts each, writes it, and hands it to subscribers."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from hashlib import sha256
from itertools import count
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from playhead.trace.events import EventBase, HookFailed
from playhead.trace.line import Record, encode_data
from playhead.trace.parameters import fingerprint
from playhead.trace.redaction import Redactor
from playhead.trace.values import encoded, json_hash
from playhead.trace.writer import TraceWriter, Written, named_tuple

if TYPE_CHECKING:
    from playhead.trace.clock import Clock
    from playhead.trace.values import JsonValue

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


class Prepared(NamedTuple):
    """An event that is redacted and encoded, ready to be written."""

    event: EventBase
    owner: str
    iteration: int | None
    listeners: Sequence[OnRecord]
    data: bytes
    state: Literal["late", "unobserved", "withheld"] | None
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
        prepared = self.prepare(event, owner, iteration)
        written = self.write(prepared)
        if prepared.listeners:
            self.notify(prepared, written)
        return written.ok

    def prepare(self, event: EventBase, owner: str, iteration: int | None, *, is_clean: bool = False) -> Prepared:
        """Redact, unless it `is_clean`, and encode an event. The user's redaction functions run here, so no lock may be held."""
        listeners: list[OnRecord] = []
        for each in self._subscriptions:
            if each.entries:
                listeners += [function for wanted, function in each.entries if wanted is None or wanted == event.kind]
        data, state = b"", None
        if self.sealed:
            state, listeners = "late", []
        elif self.writer is None and not listeners:
            state = "unobserved"
        else:
            try:
                data = encode_data(event)
                if not is_clean and self.redactor.concerns(data):
                    event = self.redactor.redact_model(event)
                    data = encode_data(event)
                if owner != "root":
                    owner = self.redactor.redact_identity(owner)
            except Exception as error:  # noqa: BLE001 - an event that cannot be redacted is not recorded; the run continues
                self._withheld += 1
                self._error = self._error or error
                state = "withheld"
        return named_tuple(Prepared, (event, owner, iteration, listeners, data, state))

    def write(self, prepared: Prepared) -> Written:
        """Write an event. No user code runs here, so a lock may be held."""
        event, owner, iteration, _, data, state = prepared
        if state is not None or self.sealed:
            return Written(-1, 0, "", ok=state == "unobserved")
        if self.writer is None:
            return Written(next(self._numbers), self.clock.now_us(), "", ok=True)
        return self.writer.append(event.kind, owner, iteration, data)

    def notify(self, prepared: Prepared, written: Written) -> None:
        """Call the subscribers with an event that was written."""
        if written.seq < 0:
            return
        record = Record(written.seq, written.ts, prepared.owner, prepared.iteration, prepared.event, written.h)
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
