"""Tokens in words: what nobody counted is not known, which is not 0, and a sum without it is at least that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from playhead.trace.types import Usage

UNKNOWN: Final = "?"
"""Stands in a cell of a table for a number of which nothing is known; behind a number, for the part that is not."""


class Ended(Protocol):
    """An event that says what was spent up to it."""

    @property
    def usage(self) -> Usage:
        """Tokens up to it."""

    @property
    def cost_usd(self) -> float | None:
        """US dollars up to it; None when a price is not known."""


def spent_at(event: Ended, answers: Usage | None = None) -> Usage:
    """Return the tokens that an end tells, with how many answers nobody counted.

    An older recording does not say how many: then they are those among `answers`, the sum of what each answer in the
    file tells, or one when there are neither tokens nor a cost, which begins with 0.
    """
    usage = event.usage
    silent = not usage.total_tokens and event.cost_usd is None
    unknown = max(usage.unknown or 0, (answers and answers.unknown) or 0, int(silent))
    return usage.model_copy(update={"unknown": unknown or None})


def usage_text(usage: Usage) -> str:
    """Return the tokens that went in and those that came out."""
    said = pair_text(usage.known(usage.input_tokens), usage.known(usage.output_tokens), usage.unknown)
    return "tokens not known" if said is None else f"{said} tokens"


def usage_as_json(usage: Usage) -> dict[str, int | None]:
    """Return it as JSON: null where nothing is known, and `unknown` always a number."""
    nothing = usage.known(usage.total_tokens) is None
    counts = {name: None if nothing else getattr(usage, name) for name in type(usage).model_fields}
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
