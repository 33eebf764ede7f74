"""The ledger: limits, amounts spent, reservations for requests in progress, and token prices.

All amounts are integers, so that no sum is too low by a rounding error.
"""

from __future__ import annotations

import reprlib
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from playhead.errors import UsageError
from playhead.kernel.checks import at_least
from playhead.trace.types import Prices

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.trace.types import Usage

FEMTO: Final = Decimal(10) ** 15
"""Femtodollars in a dollar: the cheapest token costs millions of them."""
FREE: Final = Prices(input_usd=0.0, output_usd=0.0)
"""Prices of a model that costs nothing, such as one of your own: `prices={"openai/my-model": FREE}`."""
_FORM: Final = (
    'write prices={"openai/my-model": [input_usd, output_usd]} or Prices(input_usd=…, …), in US dollars per token'
)


@dataclass(frozen=True, slots=True)
class Amount:
    """Tokens and money."""

    tokens: int = 0
    """Tokens of prompt and answer together."""
    femtodollars: int = 0
    """Money, in units of 1e-15 US dollars."""

    def __add__(self, other: Amount) -> Amount:
        """Return the sum."""
        return Amount(self.tokens + other.tokens, self.femtodollars + other.femtodollars)

    def __sub__(self, other: Amount) -> Amount:
        """Return the difference."""
        return Amount(self.tokens - other.tokens, self.femtodollars - other.femtodollars)


class Budget:
    """The limits of one run's spending, or of several runs that share the budget.

    >>> budget = Budget(max_tokens=100_000, max_cost_usd=2.50)
    >>> agent = Agent(model, compose=[budget_limit(budget)])  # doctest: +SKIP

    Safe to use from several threads and event loops at once.
    """

    def __init__(self, *, max_tokens: int | None = None, max_cost_usd: float | None = None) -> None:
        """Create a budget of which nothing is spent.

        Args:
            max_tokens: tokens at most, prompts and answers together.
            max_cost_usd: US dollars at most.

        Raises:
            UsageError: a limit is not a valid number, or no limit is given.
        """
        if max_tokens is None and max_cost_usd is None:
            raise UsageError("a budget needs max_tokens=, max_cost_usd=, or both")
        self.max_tokens = None if max_tokens is None else at_least("max_tokens", max_tokens, 0)
        self.max_cost_usd = None if max_cost_usd is None else _dollars(max_cost_usd)
        self._limit_femto = None if max_cost_usd is None else int(Decimal(str(max_cost_usd)) * FEMTO)
        self._spent = Amount()
        self._set_aside = Amount()
        self._in_flight = 0
        self._waiting: dict[object, Callable[[], object]] = {}
        self.lock = threading.RLock()
        """Held while the remaining budget is read and a reservation is made."""

    @property
    def spent_tokens(self) -> int:
        """Tokens spent; an attempt without an answer counts with its whole reservation."""
        return self._spent.tokens

    @property
    def spent_cost_usd(self) -> float:
        """US dollars spent, counted like tokens."""
        return float(Decimal(self._spent.femtodollars) / FEMTO)

    @property
    def set_aside_tokens(self) -> int:
        """Tokens reserved for requests in progress."""
        return self._set_aside.tokens

    @property
    def left_tokens(self) -> int | None:
        """Tokens neither spent nor reserved; below 0 if a prompt was longer than estimated."""
        return None if self.max_tokens is None else self.max_tokens - self._spent.tokens - self._set_aside.tokens

    @property
    def left_cost_usd(self) -> float | None:
        """US dollars neither spent nor reserved."""
        left = self.left_femtodollars
        return None if left is None else float(Decimal(left) / FEMTO)

    @property
    def left_femtodollars(self) -> int | None:
        """The remaining money, exactly, in femtodollars."""
        if self._limit_femto is None:
            return None
        return self._limit_femto - self._spent.femtodollars - self._set_aside.femtodollars

    @property
    def in_flight(self) -> int:
        """The number of requests in progress."""
        return self._in_flight

    def set_aside(self, amount: Amount) -> None:
        """Reserve an amount for a request."""
        with self.lock:
            self._set_aside += amount
            self._in_flight += 1

    def spend(self, amount: Amount) -> None:
        """Count an amount that was, or may have been, spent without a reservation."""
        with self.lock:
            self._spent += amount

    def settle(self, amount: Amount, spent: Amount) -> None:
        """Release a request's reservation, and count what it spent."""
        with self.lock:
            self._set_aside -= amount
            self._spent += spent
            self._in_flight -= 1
        self.wake()

    def wait(self, wake: Callable[[], object]) -> Callable[[], object]:
        """Call a function, from any thread, when the next request is settled; the caller holds the lock.

        Returns:
            A function that cancels the wait, from any thread; calling it again does nothing.
        """
        ticket = object()
        self._waiting[ticket] = wake

        def undo() -> None:
            with self.lock:
                self._waiting.pop(ticket, None)

        return undo

    def wake(self) -> None:
        """Call every waiting function once."""
        with self.lock:
            waiting, self._waiting = self._waiting, {}
        for wake in waiting.values():
            wake()


@lru_cache(maxsize=256)
def femtodollars(usd: float) -> int:
    """Return an amount of money in whole femtodollars, rounded up."""
    return int((Decimal(str(usd)) * FEMTO).to_integral_value(ROUND_CEILING))


def _dollars(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < float("inf"):
        raise UsageError(f"max_cost_usd is a number of US dollars, not below 0; it is {value!r}")
    return float(value)


def checked_prices(given: object) -> dict[str, Prices]:
    """Return prices by model; each is given as `Prices`, as its fields in a dict, or as a pair for prompt and answer.

    Raises:
        UsageError: they have none of these forms.
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
        raise UsageError(f"{reprlib.repr(given)} is not a price of {model!r}: {_FORM}") from None


def worst_cost(prompt: int, cap: int, prices: Prices) -> int:
    """Return the maximum cost of a request in femtodollars, with nothing read from a cache and the prompt written to it."""
    dearest = max(prices.input_usd, prices.cache_write_usd or 0.0, prices.cache_read_usd or 0.0)
    return prompt * femtodollars(dearest) + cap * femtodollars(prices.output_usd)


def cost_of(usage: Usage, prices: Prices) -> int:
    """Return the cost of an answer in femtodollars: cached tokens at their own price, reasoning at the price of output.

    The cached tokens are limited to the tokens of the prompt.
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
