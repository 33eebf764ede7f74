"""What can be doubted in an answer without asking anybody: it only repeats the task, or holds a number that came from nowhere.

Both are rules, not judgements: a model is asked once more, and what it then says stands.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

FEWEST_WORDS: Final = 5
"""Words of an answer below which it may well be part of the task, such as one of the things to choose from."""
FEWEST_DIGITS: Final = 3
"""Digits of a number below which it may come from anywhere: a count, a day, a list."""
LONGEST: Final = 20_000
"""Characters of an answer that are looked at."""
LONGEST_SOURCE: Final = 100_000
"""Characters of a result that is looked through; a longer one may hold any number."""
MOST_ROUNDINGS: Final = 4
"""Numbers of decimals that a source's numbers are rounded to, the fewest first."""
_NUMBER: Final = re.compile(r"\d{1,40}(?:[.,]\d{1,40}){0,13}")
_THOUSANDS: Final = re.compile(r",(?=\d{3}(?!\d))")


def repeats_task(answer: str, task: str) -> bool:
    """Return whether an answer is nothing but the task, or its beginning."""
    words, asked = _words(answer[:LONGEST]), _words(task[:LONGEST])
    return len(answer) <= LONGEST and len(words) >= FEWEST_WORDS and words == asked[: len(words)]


def unfounded_numbers(answer: str, sources: Iterable[str]) -> list[str]:
    """Return the longer numbers of an answer that no source holds, also not when rounded, as they are written.

    Args:
        answer: what the model answered.
        sources: the task, and what calls were given and returned.
    """
    written = {number: each for each, number in _numbers(answer[:LONGEST]) if _digits(number) >= FEWEST_DIGITS}
    if not written:
        return []
    for source in sources:
        if len(source) > LONGEST_SOURCE:
            return []
        known = {number for _, number in _numbers(source)}
        rounded = sorted({len(number.partition(".")[2]) for number in written})[:MOST_ROUNDINGS]
        known |= {
            _rounded(each, places) for each in known for places in rounded if len(each.partition(".")[2]) > places
        }
        written = {number: each for number, each in written.items() if number not in known}
    return list(written.values())


def _numbers(text: str) -> Iterator[tuple[str, str]]:
    """Yield each number as it is written, and in one form: `1,274.060` is `1274.06`."""
    for found in _NUMBER.finditer(text):
        plain = _THOUSANDS.sub("", found[0])
        if plain.count(".") <= 1 and "," not in plain:
            yield found[0], _plain(plain)
        else:  # a date, a version, a list
            yield from ((each, _plain(each)) for each in re.split(r"[.,]", plain))


def _plain(number: str) -> str:
    whole, _, part = number.partition(".")
    whole, part = whole.lstrip("0") or "0", part.rstrip("0")
    return f"{whole}.{part}" if part else whole


def _rounded(number: str, places: int) -> str:
    return number if len(number) > 17 else _plain(f"{float(number):.{min(places, 40)}f}")  # noqa: PLR2004 - as a float holds


def _digits(number: str) -> int:
    return len(number.replace(".", "").strip("0"))


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())
