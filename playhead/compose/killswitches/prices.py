"""What prices may be: one set of rules for those in code, in expressions, and of adapters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import ValidationError

from playhead.errors import UsageError
from playhead.trace.types import Prices

DEAREST: Final = 1e6
"""US dollars per token; nothing costs more."""
_FORM: Final = (
    'write prices={"openai/my-model": [input_usd, output_usd]} or Prices(input_usd=…, …), in US dollars per token'
)
_SHOWN: Final = 60


def known_prices(prices: Prices | None) -> Prices | None:
    """Return valid prices, or None for impossible ones."""
    if prices is None:
        return None
    per_token = (prices.input_usd, prices.output_usd, prices.cache_read_usd, prices.cache_write_usd)
    return prices if all(each is None or _is_price(each) for each in per_token) else None


def checked_prices(given: object) -> dict[str, Prices]:
    """Return prices by model: each a `Prices`, its fields in a dict, or a pair of those of prompt and answer.

    Raises:
        UsageError: they are none.
    """
    if not isinstance(given, Mapping):
        raise UsageError(f"prices is a dict by model; {_FORM}")
    return {model: _checked(model, prices) for model, prices in given.items()}


def _checked(model: object, given: Any) -> Prices:  # noqa: ANN401 - checked here
    is_pair = isinstance(given, (list, tuple)) and len(given) == 2  # noqa: PLR2004 - a pair
    fields = dict(zip(("input_usd", "output_usd"), given, strict=True)) if is_pair else given
    try:
        prices = known_prices(Prices.model_validate(fields, strict=True, extra="forbid"))
    except ValidationError:
        prices = None
    if prices is None or not isinstance(model, str):
        raise UsageError(f"{_short(given)} are no prices of {_short(model)}: {_FORM}")
    return prices


def _is_price(value: object) -> bool:
    """Return whether something is a price: a finite number that is not below 0."""
    return type(value) in (int, float) and 0 <= value <= DEAREST  # type: ignore[operator]


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
