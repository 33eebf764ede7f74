"""Describes exceptions, also third-party ones, without secrets; and shortens long texts."""

from __future__ import annotations

import traceback
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from playhead.errors import PlayheadError, ReplayError, TraceWriteError
from playhead.trace.values import scrub

if TYPE_CHECKING:
    from playhead.trace.redaction import Redactor

_STACK: Final = 8_000
"""Most characters of a recorded stack trace."""
_FRAMES: Final = 100
"""Most frames of one exception to print."""
_AROUND: Final = (str(Path(__file__).parents[1]), str(Path(traceback.__file__).with_name("asyncio")))
"""Folders of the code that runs tools and adapters: Playhead's, and that of the event loop."""


def describe(error: BaseException) -> str:
    """Return an error's message, or the name of its class if the message is empty or cannot be read."""
    try:
        message = str(error)
    except Exception:  # noqa: BLE001 - a failing __str__ must not end a run
        message = ""
    return scrub(message) or type(error).__name__


def stack_of(error: BaseException) -> str | None:
    """Return the stack trace of an exception, without Playhead's own frames around the failed code; None if nothing is left.

    A long trace loses its start: the innermost frames and the exception itself are at the end.
    """
    with suppress(Exception):  # a third-party class may fail to print itself
        whole = link = traceback.TracebackException.from_exception(error, limit=-_FRAMES)
        frames = 0
        while link is not None:
            while link.stack and link.stack[0].filename.startswith(_AROUND):
                del link.stack[0]
            frames += len(link.stack)
            link = link.__cause__ or link.__context__  # type: ignore[assignment]
        text = scrub("".join(whole.format()).rstrip())
        return (text if len(text) <= _STACK else f"…{text[-_STACK:]}") if frames else None
    return None


def described(error: BaseException) -> str:
    """Return the class and message of an exception that user code raised."""
    return f"{type(error).__name__}: {describe(error)}"


def redact_error(error: BaseException, redactor: Redactor, *, of_provider: bool = False) -> None:
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
            if led_to is not None and not isinstance(led_to, PlayheadError) and _shows_secret(led_to, redactor):
                setattr(each, name, None)
            elif led_to is not None and id(led_to) not in seen:
                seen.add(id(led_to))
                left.append(led_to)


def _shows_secret(error: BaseException, redactor: Redactor) -> bool:
    """Return whether an exception, or a member of its group, shows a secret."""
    texts = traceback.format_exception(error, chain=False)
    with suppress(Exception):  # a third-party class may fail to print itself
        texts.append(repr(error))
    return any(map(redactor.finds_in_error, texts))


def is_failure(error: BaseException) -> bool:
    """Return whether user code failed, rather than being cancelled or meeting the end of the whole run.

    In asyncio the cancellation of something that a body awaits looks like the cancellation of the body itself.
    """
    import asyncio  # noqa: PLC0415 - only for runs

    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is not None and not task.cancelling()
    return isinstance(error, (Exception, SystemExit)) and not isinstance(error, (ReplayError, TraceWriteError))


def shortened(text: str, longest: int, missing: int = 0) -> str:
    """Return a text cut to its limit, with the number of characters left out, including those already missing."""
    more = max(0, len(text) - longest) + missing
    return f"{text[:longest]} … ({more} more characters)" if more else text
