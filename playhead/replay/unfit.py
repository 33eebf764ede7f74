"""Arguments that did not fit their tool when they were recorded: without the code, that is all that is known of its checks."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playhead.replay.history import Past
    from playhead.replay.matching import Asked
    from playhead.trace.events import ErrorInfo


class Refusals:
    """Says again what was said of the same arguments of the same agent's tool, however often they come."""

    def __init__(self, past: Past) -> None:
        self._known: dict[tuple[str, str, str], ErrorInfo] = {}
        for call in past.calls:
            error, identity = call.refusal, call.identity
            if error is not None and error.type == "InvalidArguments" and identity is not None:
                self._known[call.owner, call.started.tool, identity] = error

    def of(self, asked: Asked) -> ErrorInfo | None:
        """Return why these arguments do not fit, if that was recorded."""
        if asked.identity is None:
            return None
        keys = ((source, asked.tool, asked.identity) for source in asked.sources)
        return next((self._known[key] for key in keys if key in self._known), None)
