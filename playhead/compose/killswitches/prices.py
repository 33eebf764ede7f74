"""What the tokens of a request cost."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from playhead.compose.killswitches.ledger import femtodollars
from playhead.errors import UsageError
from playhead.trace.types import Prices

if TYPE_CHECKING:
    from playhead.trace.types import Usage

FREE: Final = Prices(input_usd=0.0, output_usd=0.0)
"""Prices of a model that costs nothing, such as one of your own: `prices={"openai/my-model": FREE}`."""
_FORM: Final = (
    'write prices={"openai/my-model": [input_usd, output_usd]} or Prices(input_usd=…, …), in US dollars per token'
)


def checked_prices(given: object) -> dict[str, Prices]:
    """Return prices by model: each a `Prices`, its fields in a dict, or a pair of those of prompt and answer.

    Raises:
        UsageError: they are not.
    """
    if not isinstance(given, Mapping):
        raise UsageError(f"prices is a dict by model; {_FORM}")
    return {str(model): _checked(model, prices) for model, prices in given.items()}


def _checked(model: object, given: object) -> Prices:
    fields = given
    if isinstance(given, (list, tuple)) and len(given) == 2:  # noqa: PLR2004 - a pair
        fields = {"input_usd": given[0], "output_usd": given[1]}
    try:
        return Prices.model_validate(fields, strict=True, extra="forbid")
    except ValidationError:
        raise UsageError(f"{reprlib.repr(given)} are no prices of {model!r}: {_FORM}") from None


def worst_cost(prompt: int, cap: int, prices: Prices) -> int:
    """Return the most that a request may cost, in femtodollars: nothing comes from a cache, all may be written to it."""
    dearest = max(prices.input_usd, prices.cache_write_usd or 0.0, prices.cache_read_usd or 0.0)
    return prompt * femtodollars(dearest) + cap * femtodollars(prices.output_usd)


def cost_of(usage: Usage, prices: Prices) -> int:
    """Return what an answer cost, in femtodollars: cached tokens at their own price, reasoning as the output it is.

    No more of a prompt is cached than there is of it.
    """
    prompt = usage.input_tokens
    written = min(usage.cache_write_tokens, prompt)
    cached = min(usage.cache_read_tokens, prompt - written)
    plain = prompt - cached - written
    read_usd = prices.input_usd if prices.cache_read_usd is None else prices.cache_read_usd
    write_usd = prices.input_usd if prices.cache_write_usd is None else prices.cache_write_usd
    return (
        plain * femtodollars(prices.input_usd)
        + cached * femtodollars(read_usd)
        + written * femtodollars(write_usd)
        + usage.output_tokens * femtodollars(prices.output_usd)
    )
