"""Another model takes over when the one that was asked does not answer."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from playhead.errors import ModelError
from playhead.kernel.describe import describe
from playhead.trace.events import ProviderFallback

if TYPE_CHECKING:
    from playhead.kernel.session import Session

MAX_RETRY_DELAY_S: Final = 60.0
"""Seconds between two attempts at most, whoever asks for more."""


def tries(session: Session) -> int:
    """Return how often the present model is asked before another one, or the failure, comes."""
    header = session.header
    every = header.max_retries + 1
    return every if header.fallback_after is None or not session.model.fallbacks else min(every, header.fallback_after)


def within_limits(session: Session, error: BaseException) -> BaseException:
    """Return a failure; one whose provider asks for a longer pause than there is time for will not be tried again."""
    pause_s = getattr(error, "retry_after_s", None)
    if not isinstance(error, ModelError) or pause_s is None or not error.retryable:
        return error
    left_s = min((guard.left_s() for guard in session.gate.guards), default=math.inf)
    if pause_s > MAX_RETRY_DELAY_S:
        why = f"the {MAX_RETRY_DELAY_S:g} s that are waited at most"
    elif pause_s >= left_s:
        why = f"the {max(0.0, left_s):.1f} s that the run has left"
    else:
        return error
    error.args = (f"{describe(error)}. It asks for a pause of {pause_s:g} s, longer than {why}: not asked again",)
    vars(error)["retryable"] = False  # this one is not, whatever others of its class are
    return error


def fall_back(session: Session, error: ModelError, failures: int) -> bool:
    """Let the next model take over for the rest of the agent's run, with its own prices; False when there is none."""
    if not session.model.fallbacks:
        return False
    info, adapter = session.model.fallbacks.pop(0)
    session.emit(
        ProviderFallback(from_model=session.header.model, to_model=info.model, reason=describe(error), attempt=failures)
    )
    update = {"model": info.model, "address": info.address, "prices": info.prices}
    session.header = session.header.model_copy(update=update)
    session.model.adapter = adapter
    return True
