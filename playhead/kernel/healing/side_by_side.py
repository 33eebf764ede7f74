"""Words of two names side by side: which of one stand for which of the other, and what is said of a limit or a count."""

from __future__ import annotations

from typing import Final

from playhead.kernel.healing.words import same_word, singular

COUNTED: Final = (("number", "of"), ("num", "of"), ("no", "of"))
"""How a name begins that says how many there are."""


def is_limit_of(own: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Return whether a name says the limit of what a parameter is the most of: `power_limit_kw` of `max_power_kw`."""
    is_limit = "limit" in own[1:] and other[:1] in (("max",), ("maximum",))
    rest = tuple(word for word in own if word not in ("limit", "time"))
    return is_limit and bool(rest) and covers(rest, other[1:]) and len(rest) < len(other)


def counts(own: tuple[str, ...]) -> bool:
    """Return whether a name says how many there are: `number_of_crates` is no `crate_number`."""
    return own[:2] in COUNTED and singular(own[-1]) != own[-1]


def each_another(some: tuple[str, ...], others: tuple[str, ...]) -> bool:
    """Return whether each of some words means another one: of `charge_fee` not both the `fee` of `waive_fee`."""
    left = [*others]
    for one in sorted(some, key=lambda word: word not in others):
        found = next((other for other in left if one == other), None) or next(
            (other for other in left if same_word(one, other)), None
        )
        if found is None:
            return False
        left.remove(found)
    return True


def covers(some: tuple[str, ...], others: tuple[str, ...]) -> bool:
    """Return whether each of some words means one of the others."""
    return all(any(same_word(one, other) for other in others) for one in some)
