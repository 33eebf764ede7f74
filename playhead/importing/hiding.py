"""What was masked when it was exported: a marker stands in its place, anywhere in a text, a value or an image."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from playhead.importing.readings import REDACTED
from playhead.trace.types import TextPart

if TYPE_CHECKING:
    from playhead.importing.readings import ForeignMessage
    from playhead.trace.types import Content

IMAGES_LEFT_OUT: Final = "playhead.images_left_out"
"""The attribute in which Playhead's own export counts images that were too large for a span."""


def is_hidden(value: Any) -> bool:  # noqa: ANN401 - any JSON value
    """Tell whether the marker stands in a value, at any depth."""
    waiting: list[Any] = [value]
    while waiting:
        found = waiting.pop()
        if isinstance(found, str) and REDACTED in found:
            return True
        if isinstance(found, dict):
            waiting += (*found, *found.values())
        elif isinstance(found, list):
            waiting += found
    return False


def is_hidden_content(content: Content) -> bool:
    """Tell whether a text, a part of it or an image of a message was masked."""
    if isinstance(content, str):
        return REDACTED in content
    return any(REDACTED in (part.text if isinstance(part, TextPart) else part.url) for part in content)


def is_hidden_message(message: ForeignMessage) -> bool:
    """Tell whether anything of a message was masked: what it says, or the arguments of its calls."""
    return is_hidden_content(message.content) or any(is_hidden([call.arguments, call.raw]) for call in message.calls)
