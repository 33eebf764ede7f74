"""Redacts exceptions and log lines, which leave a run beside its trace."""

from __future__ import annotations

import logging
import traceback
from typing import TYPE_CHECKING, Final, Protocol
from weakref import WeakSet

from playhead.errors import PlayheadError
from playhead.trace.forks import SharedLock

if TYPE_CHECKING:
    from collections.abc import Iterator


class Redacts(Protocol):
    """What a redactor does for what stands beside a trace."""

    def redact_text(self, text: str) -> str:
        """Return a text without secrets."""

    def redact_error(self, text: str) -> str:
        """Return the message of a provider's error without secrets."""

    def finds_in_error(self, text: str) -> bool:
        """Return whether the message of an error shows a secret."""


_redactors: Final[WeakSet[Redacts]] = WeakSet()
_lock: Final = SharedLock()


def redact_error(error: BaseException, redactor: Redacts, *, of_provider: bool = False) -> None:
    """Redact the messages of Playhead's exceptions, and detach any other cause that shows a secret.

    A traceback prints the causes too, and some servers repeat the headers that they refuse: with `of_provider`, every word
    of an unrecorded request parameter counts as a secret.
    """
    redact = redactor.redact_error if of_provider else redactor.redact_text
    left, seen = [error], {id(error)}
    while left:
        each = left.pop()
        if isinstance(each, PlayheadError):
            each.args = tuple(redact(arg) if isinstance(arg, str) else arg for arg in each.args)
            if hasattr(each, "__notes__"):
                each.__notes__ = [redact(str(note)) for note in each.__notes__]
        for name in ("__cause__", "__context__"):
            led_to = getattr(each, name)
            if led_to is not None and not isinstance(led_to, PlayheadError) and shows_secret(led_to, redactor):
                setattr(each, name, None)
            elif led_to is not None and id(led_to) not in seen:
                seen.add(id(led_to))
                left.append(led_to)


def shows_secret(error: BaseException, redactor: Redacts) -> bool:
    """Return whether an exception, or a member of its group, shows a secret."""
    return any(map(redactor.finds_in_error, _texts(error)))


def redact_log(redactor: Redacts) -> None:
    """Redact the log lines of this process for as long as the redactor exists."""
    with _lock:
        _redactors.add(redactor)


def _texts(error: BaseException) -> Iterator[str]:
    for text in (str, repr):
        try:
            yield text(error)
        except Exception:  # noqa: BLE001, S112 - a foreign class: what cannot be printed shows nothing
            continue
    yield from getattr(error, "__notes__", ())
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _texts(each)


def _redact_line(record: logging.LogRecord) -> bool:
    with _lock:
        redactors = list(_redactors)
    said = text = record.getMessage()
    trace = "".join(traceback.format_exception(*record.exc_info)) if record.exc_info else ""
    for redactor in redactors:
        text = redactor.redact_error(text)
        if any(map(redactor.finds_in_error, trace.splitlines())):
            record.exc_info, trace = None, ""
    if text != said:
        record.msg, record.args = text, ()
    return True


for _name in ("playhead", "playhead.mcp"):
    logging.getLogger(_name).addFilter(_redact_line)
