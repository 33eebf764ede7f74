"""Make text from a trace safe for a terminal, and fit it into its space.

A trace may contain any text of a model or a tool, such as sequences that move the cursor, set the window's title, imitate
another line, or hide text. So every character that is not plainly visible is shown as Python's escape for it. Backslashes are
not escaped, because the text is for people; `--json` is exact.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.segment import Segment

_UNSAFE: Final = re.compile(
    "["
    "\x00-\x1f\x7f-\x9f"  # C0 with ESC and CR, DEL, C1
    "\u2028\u2029"  # line and paragraph separators
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # direction marks, embeddings, overrides, isolates
    "\u00ad\u034f\u180b-\u180f\u200b-\u200d\u2060-\u2065\u206a-\u206f\ufeff\ufff0-\ufffb"  # no width at all
    "\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"  # letters that look like nothing
    "\ud800-\udfff"  # lone surrogates, which no terminal can be sent
    "\ue000-\uf8ff"  # private use: a glyph that each font defines
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"  # format controls of shorthand and music
    "\U000e0000-\U000e0fff"  # tags and selectors: whole hidden messages
    "]"
)
ELLIPSIS: Final = "…"


def escape(text: str, keep: str = "") -> str:
    """Return the text with unsafe characters as visible escapes, except those in `keep`."""
    return _UNSAFE.sub(lambda found: found[0] if found[0] in keep else found[0].encode("unicode_escape").decode(), text)


def is_plain(text: str, width: int) -> bool:
    """Return whether the text is safe and takes at most `width` cells, like most lines."""
    return len(text) <= width and text.isascii() and text.isprintable()


def fit(text: str, width: int) -> str:
    """Return the text as one safe line of at most `width` terminal cells; an ellipsis marks truncation."""
    if is_plain(text, width):
        return text
    from rich.cells import cell_len, set_cell_size  # noqa: PLC0415 - rich is loaded by those who print

    # A wide character takes two cells, a combining one none: so a few more characters than cells, and never megabytes.
    line = escape(text[: 4 * max(width, 0) + 64])
    if cell_len(line) <= width and len(text) <= 4 * width + 64:
        return line
    return set_cell_size(line, width - 1).rstrip() + ELLIPSIS if width > 0 else ""


def pad(text: str, width: int) -> str:
    """Return the text as one safe line of exactly `width` cells."""
    from rich.cells import set_cell_size  # noqa: PLC0415 - as above

    return set_cell_size(fit(text, width), width)


class Line:
    """One line of texts, each with an optional style, made safe and truncated to the width of the console."""

    def __init__(self, *parts: str | tuple[str, str], whole: bool = False) -> None:
        self._parts = [(part, "") if isinstance(part, str) else part for part in parts]
        self._whole = whole
        """Never truncated, for paths and hashes that users copy. The terminal wraps the line."""

    def __str__(self) -> str:
        return "".join(text for text, _ in self._parts)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> list[Segment]:
        """Return the segments of the line."""
        from rich.segment import Segment  # noqa: PLC0415 - rich is loaded by those who print

        width, parts = options.max_width, self._parts
        if not is_plain("".join([text for text, _ in parts]), width):
            parts = self._safe_parts(width)
        segments = [Segment(text, console.get_style(style) if style else None) for text, style in parts]
        return [*segments, Segment.line()]

    def _safe_parts(self, width: int) -> list[tuple[str, str]]:
        if self._whole:
            return [(escape(text), style) for text, style in self._parts]
        from rich.cells import cell_len  # noqa: PLC0415 - as above

        fitted: list[tuple[str, str]] = []
        for text, style in self._parts:
            fitted.append((fit(text, width), style))
            width -= cell_len(fitted[-1][0])
        return fitted
