"""Recordings that no replay takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.errors import NotReplayableError, UnknownStrategyError
from playhead.kernel.strategies import get_strategy

if TYPE_CHECKING:
    from playhead.trace.recording import Recording


def require_sound(recording: Recording) -> None:
    """Refuse a file that is not what was written.

    Raises:
        NotReplayableError: it is damaged.
    """
    if recording.status == "damaged":
        first = next(problem for problem in recording.problems if problem.kind != "truncated")
        raise NotReplayableError(
            f"{recording.path.name} is not what was written ({first}); a replay of it would prove nothing. "
            f"See: playhead check {recording.path}"
        )


def require_strategy(name: str) -> None:
    """Refuse a strategy that is not there.

    Raises:
        NotReplayableError: it is not registered.
    """
    try:
        get_strategy(name)
    except UnknownStrategyError as error:
        raise NotReplayableError(f"{error} Register it with playhead.register_strategy before the replay") from None
