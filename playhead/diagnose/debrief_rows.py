"""Rows of a printed debrief: what all its sections are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from playhead.diagnose.terminal import ELLIPSIS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from playhead.diagnose.debrief_base import Placed

MOST: Final = 40
"""Entries of a section; a longer one says how many are left out."""
DEEPEST: Final = 6
"""Levels of agents that are indented."""

Row = tuple[int, str, str, str]
"""Indent, what the first line begins with, the text, its style."""


def row(each: Placed, text: str) -> Row:
    """Return a row that begins with whose it is and when it was."""
    return indent(each), f"{when(each)} ", text, ""


def when(each: Placed) -> str:
    """Return whose something is, and in which turn or event."""
    who = "" if each.owner == "root" else f"{each.owner.rpartition('/')[2]} "
    return f"{who}iter {each.iteration}" if each.iteration is not None else f"{who}event {each.seq}"


def indent(each: Placed) -> int:
    """Return how far a row of its owner is indented."""
    return 2 + 2 * min(each.owner.count("/"), DEEPEST)


def quoted(why: str | None) -> str:
    """Return a stated reason as it stands behind a text; empty for none."""
    return f' — "{why}"' if why else ""


def most(rows: Iterable[Row]) -> list[Row]:
    """Return the rows, those that say the same again as one, and no more than anybody reads."""
    runs: dict[tuple[int, str, str], tuple[str, int]] = {}
    for depth, lead, text, style in rows:
        first, count = runs.get((depth, text, style), (lead, 0))
        runs[depth, text, style] = (first, count + 1)
    every = [
        (depth, lead, f"{text} (×{count})" if count > 1 else text, style)  # noqa: RUF001 - a multiplication sign
        for (depth, text, style), (lead, count) in runs.items()
    ]
    left = len(every) - MOST
    return every if left <= 0 else [*every[:MOST], (2, "", f"{ELLIPSIS} and {left} more (--json has all)", "dim")]
