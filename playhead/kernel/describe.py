"""Errors as text, whatever they are: user code may raise anything."""

from __future__ import annotations

from playhead.trace.values import scrub


def describe(error: BaseException) -> str:
    """Return what an error says, or the name of its class when it says nothing or cannot say it."""
    try:
        message = str(error)
    except Exception:  # noqa: BLE001 - a failing __str__ must not end a run
        message = ""
    return scrub(message) or type(error).__name__
