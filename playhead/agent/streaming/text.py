"""When pieces of an answer may be shown, and as what: nobody sees in them what the whole would not show."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from playhead.compose.runtime import ComposedHooks

if TYPE_CHECKING:
    from playhead.kernel.session import Hooks
    from playhead.trace.redaction import Redactor


class Level(IntEnum):
    """When the text of an answer is shown; the higher, the later."""

    LIVE = 0
    """While it is made."""
    RESPONSE = 1
    """When it is there: rules of the user's have to see it whole."""
    MESSAGE = 2
    """When hooks have let it into the thread."""
    ANSWER = 3
    """When hooks have let it out as the output; nothing else is shown."""


def level_of(hooks: Hooks | None, redactor: Redactor) -> Level:
    """Return when the text of an agent with these hooks is shown.

    A function that changes, and one that is required, comes first; one that only looks does not hold anything back.
    """
    if hooks is not None:
        if _holds(hooks, "answer.final") or (isinstance(hooks, ComposedHooks) and hooks.requires("complete")):
            return Level.ANSWER
        if _holds(hooks, "llm.response") or _holds(hooks, "message.assistant"):
            return Level.MESSAGE
    return Level.RESPONSE if redactor.has_rules else Level.LIVE


def _holds(hooks: Hooks, tag: str) -> bool:
    return hooks.may_withhold(tag) if isinstance(hooks, ComposedHooks) else hooks.wants(tag)


class LiveText:
    """The pieces of one answer, as they may be shown: without known secrets, be they cut by the pieces."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._kept = ""
        """What may be the beginning of a secret."""
        self._shown: list[str] = []

    def add(self, piece: str) -> str:
        """Return what may be shown now."""
        text = self._kept + piece
        cut = _cut(text, self._redactor.secrets)
        self._kept = text[cut:]
        return self._show(text[:cut])

    def rest(self) -> str:
        """Return what is left to show when the answer is whole."""
        text, self._kept = self._kept, ""
        return self._show(text)

    @property
    def shown(self) -> str:
        """All that was shown."""
        return "".join(self._shown)

    def _show(self, text: str) -> str:
        text = self._redactor.redact_secrets(text)
        if text:
            self._shown.append(text)
        return text


def _cut(text: str, secrets: tuple[str, ...]) -> int:
    """Return where the part of a text ends that no secret can still begin in, or reach into."""
    cut = len(text)
    for secret in secrets:
        for length in range(min(len(secret) - 1, len(text)), 0, -1):
            if text.endswith(secret[:length]):
                cut = min(cut, len(text) - length)
                break
    moved = True
    while moved:  # a whole secret may lie across the cut
        moved = False
        for secret in secrets:
            start = text.find(secret, max(0, cut - len(secret) + 1))
            if 0 <= start < cut < start + len(secret):
                cut, moved = start, True
    return cut
