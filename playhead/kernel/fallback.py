"""Another model takes over when the one that was asked does not answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.kernel.describe import describe
from playhead.trace.events import ProviderFallback

if TYPE_CHECKING:
    from playhead.errors import ModelError
    from playhead.kernel.session import Session


def tries(session: Session) -> int:
    """Return how often the present model is asked before another one, or the failure, comes."""
    header = session.header
    every = header.max_retries + 1
    return every if header.fallback_after is None or not session.fallbacks else min(every, header.fallback_after)


def fall_back(session: Session, error: ModelError, failures: int) -> bool:
    """Let the next model take over for the rest of the agent's run, with its own prices; False when there is none."""
    if not session.fallbacks:
        return False
    info, adapter = session.fallbacks.pop(0)
    session.emit(
        ProviderFallback(from_model=session.header.model, to_model=info.model, reason=describe(error), attempt=failures)
    )
    update = {"model": info.model, "address": info.address, "prices": info.prices}
    session.header = session.header.model_copy(update=update)
    session.adapter = adapter
    return True
