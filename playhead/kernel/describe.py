"""Words for what is told: for what user code raised, which may be anything, and for what is too long."""

from __future__ import annotations

from playhead.errors import ReplayError, TraceWriteError
from playhead.trace.values import scrub


def describe(error: BaseException) -> str:
    """Return what an error says, or the name of its class when it says nothing or cannot say it."""
    try:
        message = str(error)
    except Exception:  # noqa: BLE001 - a failing __str__ must not end a run
        message = ""
    return scrub(message) or type(error).__name__


def described(error: BaseException) -> str:
    """Return the class of what user code raised, and what it says."""
    return f"{type(error).__name__}: {describe(error)}"


def is_failure(error: BaseException) -> bool:
    """Return whether user code failed, rather than was told to stop or met the end of the whole run.

    In asyncio the cancellation of something that a body awaits looks like the cancellation of the body itself.
    """
    import asyncio  # noqa: PLC0415 - what only a run needs

    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is not None and not task.cancelling()
    return isinstance(error, (Exception, SystemExit)) and not isinstance(error, (ReplayError, TraceWriteError))


def shortened(text: str, longest: int, missing: int = 0) -> str:
    """Return the beginning of a text, and how much of it is left out; so many characters are missing from it already."""
    more = max(0, len(text) - longest) + missing
    return f"{text[:longest]} … ({more} more characters)" if more else text
