"""A call that waits for a yes, as somebody sees it who is to decide: every line safe for a terminal."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from playhead.diagnose.terminal import escape

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.trace.control import PendingApproval
    from playhead.trace.values import JsonValue

MOST_LINES: Final = 60
"""Lines of arguments that are shown."""
MOST_CHARACTERS: Final = 4_000
"""Characters of arguments that are shown."""
MOST_OF_A_TEXT: Final = 500
"""Characters of any other text that are shown."""


def call_lines(pending: PendingApproval) -> Iterator[str]:
    """Yield the lines that say what is asked: tool, risk and agent, the arguments, their hash, the model's reason."""
    yield f"{short(pending.tool)} wants to run: risk {short(pending.risk)}, asked by {short(pending.owner)}"
    yield from argument_lines(pending.arguments, redacted=pending.redacted)
    yield f"  hash    {short(pending.args_hash or 'none')}"
    yield f"  reason  {short(pending.why) if pending.why else 'the model gave none'}"


def argument_lines(arguments: JsonValue, *, redacted: bool = False) -> Iterator[str]:
    """Yield the arguments as indented JSON; that something is cut off or left out is said."""
    whole = json.dumps(arguments, indent=2, ensure_ascii=False)
    if redacted:
        yield "  (secrets are left out of what is shown)"
    shown = "\n".join(whole.split("\n")[:MOST_LINES])[:MOST_CHARACTERS]
    yield from (f"  {escape(line)}" for line in shown.split("\n"))
    rest = len(whole) - len(shown)
    if rest:
        yield f"  … cut: {rest:,} of {len(whole):,} characters of the arguments are not shown"


def short(text: str) -> str:
    """Return a text as one safe line; that something is cut off is said."""
    rest = len(text) - MOST_OF_A_TEXT
    return escape(text) if rest <= 0 else f"{escape(text[:MOST_OF_A_TEXT])}… ({rest:,} more characters)"
