"""What model calls used and cost: tokens, US dollars, prices; what can be no number is not believed, wherever it is read."""

from __future__ import annotations

from types import NoneType
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field, ModelWrapValidatorHandler, ValidationError, model_validator

from playhead.trace.frozen import Value
from playhead.trace.made import made
from playhead.trace.values import scrub

LARGEST_COUNT: Final = 2**53
"""No number of tokens, and of US dollars, is larger: beyond it programs that read JSON do not agree on a number."""
Count = Annotated[int, Field(strict=True, ge=0, le=LARGEST_COUNT)]
"""A number of tokens, or of answers."""


def dollars(given: object) -> float | None:
    """Return an amount of US dollars, or None for what can be none: below 0, too large, NaN, a text, True."""
    if not isinstance(given, (int, float)) or isinstance(given, bool):
        return None
    return float(given) if 0 <= given <= LARGEST_COUNT else None


Dollars = Annotated[Annotated[float, Field(ge=0, le=LARGEST_COUNT)] | None, BeforeValidator(dollars)]
"""US dollars; None when they are not known. What can be no amount is not known, wherever it is read."""


class Usage(Value):
    """Tokens as the provider counts them. A number that can be none is not believed, wherever it comes from."""

    input_tokens: Count = 0
    """Tokens of the prompt, cached ones included."""
    output_tokens: Count = 0
    """Tokens of the answer, reasoning included."""
    cache_read_tokens: Count = 0
    """Tokens of the prompt that came from the provider's cache."""
    cache_write_tokens: Count = 0
    """Tokens of the prompt that were written to the provider's cache."""
    reasoning_tokens: Count = 0
    """Tokens of the answer that are reasoning."""
    unknown: Count | None = None
    """Attempts of which nobody counted the tokens, or not all: the numbers above are at least that; absent: none."""
    not_believed: str | None = None
    """What was said instead of a number, and can be none: `output_tokens -3`. It is one of the `unknown`."""

    @model_validator(mode="wrap")
    @classmethod
    def _believed(cls, given: Any, handler: ModelWrapValidatorHandler[Usage]) -> Usage:  # noqa: ANN401 - whatever is said
        try:
            return handler(given)
        except ValidationError as error:
            if isinstance(given, dict):
                wrong = {name: given[name] for each in error.errors(include_url=False) for name in each["loc"][:1]}
                kept = {name: value for name, value in given.items() if name not in wrong}
            else:
                wrong, kept = {"usage": given}, {}
            said = ", ".join(f"{name} {_shown(value)}" for name, value in wrong.items())
            return handler({**kept, "unknown": kept.get("unknown") or 1, "not_believed": scrub(said)})

    @property
    def total_tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens

    def of_answer(self) -> Usage:
        """Return it as that of one answer: no prompt is of no token, so where none is said nobody counted."""
        return self if self.input_tokens > 0 or self.unknown else self.model_copy(update={"unknown": 1})

    def known(self, count: int) -> int | None:
        """Return one of the numbers, or a sum of them; None when nothing of it is known, which is not 0."""
        return None if self.unknown and not count else count

    def __add__(self, other: Usage) -> Usage:
        """Return the sum, field by field; one that is too large stays at the largest number, and is at least that."""
        one, two, sums = self.__dict__, other.__dict__, {}
        for name in _COUNTS:
            sums[name] = one[name] + two[name]
        unknown = (self.unknown or 0) + (other.unknown or 0)
        if max(sums.values()) > LARGEST_COUNT:
            sums = {name: min(count, LARGEST_COUNT) for name, count in sums.items()}
            unknown = unknown or 1
        return made(Usage, **sums, unknown=min(unknown, LARGEST_COUNT) or None)


def believed(usage: object, cost_usd: object) -> tuple[Usage, float | None]:
    """Return what an adapter says of tokens and US dollars, as far as it can be so: it may be anybody's."""
    given = usage.__dict__ if isinstance(usage, Usage) else {"unknown": 1} if usage is None else usage
    read = usage if type(usage) is Usage and _is_right(usage) else Usage.model_validate(given)
    cost = dollars(cost_usd)
    if cost is None and cost_usd is not None:
        said = f"cost_usd {_shown(cost_usd)}"
        read = read.model_copy(update={"not_believed": f"{read.not_believed}, {said}" if read.not_believed else said})
    return read, cost


def _is_right(usage: Usage) -> bool:
    """Return whether numbers are what validating would leave as they are: nobody can know how they were made."""
    for name in _COUNTS:
        count = usage.__dict__.get(name)
        if type(count) is not int or not 0 <= count <= LARGEST_COUNT:
            return False
    return usage.unknown is None and usage.not_believed is None


def _shown(value: object) -> str:
    try:
        return repr(value)[:40] if isinstance(value, (int, float, str, NoneType)) else type(value).__name__
    except ValueError:  # of an integer with thousands of digits
        return "too many digits"


_COUNTS: Final = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")


class Prices(Value):
    """US dollars per token when the run started, so that a replay costs what it cost then."""

    input_usd: float
    """Per token of the prompt that is not cached."""
    output_usd: float
    """Per token of the answer."""
    cache_read_usd: float | None = None
    """Per token read from the cache; None: as `input_usd`."""
    cache_write_usd: float | None = None
    """Per token written to the cache; None: as `input_usd`."""
