"""What prices may be: one set of rules for those in code, in expressions, and of adapters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from playhead.errors import UsageError
from playhead.trace.usage import Prices

DEAREST: Final = 1e6
"""US dollars per token; nothing costs more."""
PRICE_FORM: Final = 'write prices={"openai/my-model": [input_usd, output_usd]}, in US dollars per token'
"""How prices are written in an expression."""
_CODE_FORM: Final = 'write prices={"openai/my-model": Prices(input_usd=…, output_usd=…)}, in US dollars per token'
_SHOWN: Final = 60


def is_price(value: object) -> bool:
    """Return whether something is a price: a finite number that is not below 0."""
    return type(value) in (int, float) and 0 <= value <= DEAREST  # type: ignore[operator]


def known_prices(prices: Prices | None) -> Prices | None:
    """Return prices that can be, or None: others tell nothing."""
    if prices is None:
        return None
    per_token = (prices.input_usd, prices.output_usd, prices.cache_read_usd, prices.cache_write_usd)
    return prices if all(each is None or is_price(each) for each in per_token) else None


def checked_prices(given: object) -> dict[str, Prices]:
    """Return prices by model, as they were given.

    Raises:
        UsageError: they are none.
    """
    if not isinstance(given, Mapping):
        raise UsageError(f"prices is a dict by model; {_CODE_FORM}")
    for model, prices in given.items():
        if not isinstance(model, str) or not isinstance(prices, Prices) or known_prices(prices) is None:
            raise no_prices(model, prices, _CODE_FORM)
    return dict(given)


def no_prices(model: object, given: object, form: str) -> UsageError:
    """Return the error that something given as the prices of a model is none."""
    return UsageError(f"{_short(given)} are no prices of {_short(model)}: {form}")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
