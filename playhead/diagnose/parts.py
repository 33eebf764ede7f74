"""Parts of debriefs, diffs and statistics: frozen models, shortened texts, and figures as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict

from playhead.trace.values import as_text, scrub

if TYPE_CHECKING:
    from playhead.trace.line import Record
    from playhead.trace.types import Content, Usage
    from playhead.trace.values import JsonValue

HARMS: Final = {"damaged": "damaged", "truncated": "cut off", "erased": "erased in part"}
"""States of a recording that does not hold all that was written, in words."""
SHORT: Final = 300
"""The maximum length of a result, an error or an argument list, in characters."""
LONG: Final = 1200
"""The maximum length of a goal or an answer, in characters."""
_CENT: Final = 0.01
_SECOND: Final = 1000
_MINUTE: Final = 60 * _SECOND
_HOUR: Final = 60 * _MINUTE
UNKNOWN: Final = "?"
"""Replaces an unknown number in a table; after a number it marks a lower bound."""


def _scrubbed(value: object) -> object:
    return scrub(value) if isinstance(value, str) else value


Text = Annotated[str, BeforeValidator(_scrubbed)]
"""Text that can be written as JSON: a live run may hold lone surrogates, which a file never does."""


class Part(BaseModel):
    """A part of a debrief, a diff or statistics."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Spending(Part):
    """Tokens and US dollars that were spent."""

    tokens_in: int | None
    """Tokens of the prompts; null when nothing is known of them, which is not the same as 0."""
    tokens_out: int | None
    """Tokens of the answers; null when nothing is known of them."""
    usage_unknown: int
    """Attempts whose tokens were not counted, or not all: the numbers above are lower bounds."""
    cost_usd: float | None
    """US dollars, as far as prices are known; null when they are not, which is not the same as 0."""
    cost_unknown: int
    """Attempts whose cost is unknown: `cost_usd` is a lower bound."""


def spent(usage: Usage, cost_usd: float | None, cost_unknown: int | None) -> dict[str, Any]:
    """Return the fields of a `Spending`."""
    return {
        "tokens_in": usage.known(usage.input_tokens),
        "tokens_out": usage.known(usage.output_tokens),
        "usage_unknown": usage.unknown or 0,
        "cost_usd": cost_usd,
        "cost_unknown": cost_unknown or 0,
    }


class Placed(Part):
    """Something at a place of the trace."""

    seq: int
    """The event that says it."""
    owner: Text
    """Whose it is: `root`, or a sub-agent such as `root/researcher@3.0`."""
    iteration: int | None
    """Turn of the owner's loop, from 0; null outside it."""


def at(record: Record) -> dict[str, Any]:
    """Return the fields of a `Placed`."""
    return {"seq": record.seq, "owner": record.owner, "iteration": record.iteration}


def short(text: str, limit: int = SHORT) -> str:
    """Return the beginning of a text, with the number of omitted characters."""
    text = scrub(text[: limit + 1]) + text[limit + 1 :]
    if len(text) <= limit:
        return text
    kept = text[:limit]
    words = kept.rsplit(None, 1)
    kept = words[0] if len(words) > 1 and len(words[0]) > limit // 2 else kept
    return f"{kept} … ({len(text) - len(kept):,} more characters)"


def shown(value: JsonValue, limit: int = SHORT) -> str:
    """Return the beginning of a JSON value, in the form that a model is given."""
    return short(as_text(value), limit)


def content_text(content: Content | None) -> str:
    """Return the text of a message."""
    if content is None or isinstance(content, str):
        return content or ""
    return " ".join(part.text if part.type == "text" else f"[image {part.url[:80]}]" for part in content)


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 call`, `2 calls`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def points(share: float) -> str:
    """Return a difference of shares in percentage points, without its sign."""
    return f"{abs(share) * 100:.1f} points"


# --- tokens, costs and times in words: an unknown part is never counted as 0 -------------------------------------------


def usage_text(usage: Usage, form: str = "{}+{} tokens") -> str:
    """Return the prompt and answer tokens."""
    counts = (usage.known(usage.input_tokens), usage.known(usage.output_tokens))
    return pair_text(*counts, usage.unknown, form) or "tokens not known"


def usage_as_json(usage: Usage) -> dict[str, int | None]:
    """Return the usage as JSON: null for unknown counts; `unknown` is always a number."""
    nothing = usage.known(usage.total_tokens) is None
    names = [name for name in type(usage).model_fields if name != "not_believed"]
    counts = {name: None if nothing else getattr(usage, name) for name in names}
    known = {name: usage.known(getattr(usage, name)) for name in ("input_tokens", "output_tokens")}
    return {**counts, **known, "unknown": usage.unknown or 0}


def total_text(count: int | None, unknown: int | None, form: str = "{:,} tokens") -> str:
    """Return a number of tokens with its unit; `unknown` is the number of answers that it does not include."""
    return "tokens not known" if count is None else f"{'at least ' if unknown else ''}{form.format(count)}"


def pair_text(tokens_in: int | None, tokens_out: int | None, unknown: int | None, form: str = "{}+{}") -> str | None:
    """Return the prompt and answer tokens, such as `at least 1,200+80`; None if both are unknown."""
    counts = (tokens_in, tokens_out)
    if counts == (None, None):
        return None
    said = form.format(*(UNKNOWN if count is None else f"{count:,}" for count in counts))
    return f"at least {said}" if unknown and None not in counts else said


def cell(shown: str | None, unknown: int | None) -> str:
    """Return a number as a table cell: `1200`, `1200+?` for a lower bound, `?` if it is unknown."""
    return UNKNOWN if shown is None else f"{shown}+{UNKNOWN}" if unknown else shown


def cost_text(cost_usd: float | None, unknown: int | None) -> str | None:
    """Return US dollars, None if unknown; `unknown` is the number of attempts with unknown cost."""
    return None if cost_usd is None else f"{'at least ' if unknown else ''}{dollars(cost_usd)}"


def dollars(cost_usd: float) -> str:
    """Return US dollars."""
    return f"${cost_usd:.4f}" if cost_usd >= _CENT else f"${cost_usd:.6f}" if cost_usd else "$0"


def number_cell(count: int) -> str:
    """Return a number in at most seven cells."""
    for size, unit, least in ((10**12, "T", 10**12), (10**9, "G", 10**9), (10**6, "M", 10**6), (10**3, "k", 10**5)):
        if count >= least:
            return f"{count / size:.4g}{unit}" if count < 10**15 else "many"
    return str(count)


def time_cell(milliseconds: float | None) -> str:
    """Return a duration in at most seven cells; `-` for none."""
    if milliseconds is None or not abs(milliseconds) < float("inf"):
        return "-"
    if milliseconds < _SECOND:
        return f"{milliseconds:.1f}ms"
    if milliseconds < _MINUTE:
        return f"{milliseconds / _SECOND:.1f}s"
    minutes, seconds = divmod(round(milliseconds / _SECOND), 60)
    return f"{minutes}m{seconds:02}s" if milliseconds < _HOUR else f"{milliseconds / _HOUR:.1f}h"
