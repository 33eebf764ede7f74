"""Tokens and US dollars in words: what nobody knows is not 0, and a sum without it is at least that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from playhead.trace.types import Usage

_SECOND: Final = 1000
_MINUTE: Final = 60 * _SECOND
_HOUR: Final = 60 * _MINUTE
UNKNOWN: Final = "?"
"""Stands in a cell of a table for a number of which nothing is known; behind a number, for the part that is not."""


def usage_text(usage: Usage) -> str:
    """Return the tokens that went in and those that came out."""
    said = pair_text(usage.known(usage.input_tokens), usage.known(usage.output_tokens), usage.unknown)
    return "tokens not known" if said is None else f"{said} tokens"


def usage_as_json(usage: Usage) -> dict[str, int | None]:
    """Return it as JSON: null where nothing is known, and `unknown` always a number."""
    nothing = usage.known(usage.total_tokens) is None
    names = [name for name in type(usage).model_fields if name != "not_believed"]
    counts = {name: None if nothing else getattr(usage, name) for name in names}
    known = {name: usage.known(getattr(usage, name)) for name in ("input_tokens", "output_tokens")}
    return {**counts, **known, "unknown": usage.unknown or 0}


def total_text(count: int | None, unknown: int | None, form: str = "{:,} tokens") -> str:
    """Return a number of tokens with its unit; `unknown` is how many answers it leaves out."""
    return "tokens not known" if count is None else f"{'at least ' if unknown else ''}{form.format(count)}"


def pair_text(tokens_in: int | None, tokens_out: int | None, unknown: int | None, form: str = "{}+{}") -> str | None:
    """Return the tokens of prompts and of answers, None when nothing is known of them: `at least 1,200+80`."""
    counts = (tokens_in, tokens_out)
    if counts == (None, None):
        return None
    said = form.format(*(UNKNOWN if count is None else f"{count:,}" for count in counts))
    return f"at least {said}" if unknown and None not in counts else said


def cell(shown: str | None, unknown: int | None) -> str:
    """Return a number as a cell of a table: `1200`, `1200+?` when a part of it is not known, `?` when all is."""
    return UNKNOWN if shown is None else f"{shown}+{UNKNOWN}" if unknown else shown


def cost_text(cost_usd: float | None, unknown: int | None, form: str = "${:.4f}") -> str | None:
    """Return US dollars, None when nothing is known; `unknown` is of how many attempts nobody knows what they cost."""
    nothing = cost_usd is None or (unknown and not cost_usd)
    return None if nothing else f"{'at least ' if unknown else ''}{form.format(cost_usd)}"


def number_cell(count: int) -> str:
    """Return a number in at most seven cells."""
    for size, unit, least in ((10**12, "T", 10**12), (10**9, "G", 10**9), (10**6, "M", 10**6), (10**3, "k", 10**5)):
        if count >= least:
            return f"{count / size:.4g}{unit}" if count < 10**15 else "many"
    return str(count)


def time_cell(milliseconds: float | None) -> str:
    """Return a duration in at most seven cells; `-` for none."""
    if milliseconds is None:
        return "-"
    if milliseconds < _SECOND:
        return f"{milliseconds:.1f}ms"
    if milliseconds < _MINUTE:
        return f"{milliseconds / _SECOND:.1f}s"
    minutes, seconds = divmod(round(milliseconds / _SECOND), 60)
    return f"{minutes}m{seconds:02}s" if milliseconds < _HOUR else f"{milliseconds / _HOUR:.1f}h"
