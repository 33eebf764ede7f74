"""What prompts say before a model has answered or a tool has returned: the only messages that surely quote neither."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from playhead.trace import events as e

if TYPE_CHECKING:
    from playhead.trace.types import Content

_FROM_OUTSIDE: Final = (e.LlmResponded, e.LlmFailed, e.ToolCallCompleted, e.FactRecorded)
"""What a later message may quote. (Facts are answers, too: critiques of earlier runs are one.)"""


class Opening:
    """The texts that a run begins with, which its later prompts may say again.

    Plans, critiques, summaries and corrections are messages of the user's or of the system's, and nothing in them says whose
    words they hold. So it is not asked what a message quotes, but what there was to quote when it was written.
    """

    def __init__(self, started: e.RunStarted) -> None:
        self._texts: set[Content] = {started.task}
        self._over = started.chat is not None and started.chat.turn > 0
        """(A later turn of a chat is told in its system prompt what was done before.)"""

    def take(self, event: e.EventBase) -> None:
        """Take any event of the run."""
        self._over = self._over or isinstance(event, _FROM_OUTSIDE)

    def holds(self, added: e.MessageAdded, content: Content) -> bool:
        """Take a message; return whether it cannot quote what models answered and tools returned."""
        if added.ref is not None or added.role not in {"system", "user"}:
            self._over = True  # turns that were there before: examples, and those of a chat
            return False
        if not self._over:
            self._texts.add(content)
        return content in self._texts
