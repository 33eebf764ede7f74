"""Numbers in texts: which ones a text states, and whether they were seen before.

The same number is written in many ways (`4180`, `4,180`, `4.180,0`, `4 180`), and answers round. So a number is read in every
possible way, and a stated number counts as seen if any seen number rounds to it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from playhead.diagnose.vocabulary import UNITS

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST: Final = 50_000
"""The maximum number of different numbers to remember. A trace with more is not checked, and the debrief says so."""
SMALL: Final = 12
"""Whole numbers up to this limit are too common to need a source."""
_LONGEST: Final = 40
"""The maximum length of a number, in characters; longer runs of digits are keys or hashes."""
_GROUPS: Final = ",'’_\u00a0\u202f"  # noqa: RUF001 - marks that group digits
_MARKS: Final = re.compile(f"[{_GROUPS} ]")
_SPACED: Final = r"\d{1,3}(?: \d{3})+(?:[.,]\d+)?(?![\d.,])"
_TOKEN: Final = re.compile(rf"(?<![\d.,]){_SPACED}|\d[\d.{_GROUPS}]*\d|\d", re.ASCII)
_DIGITS: Final = re.compile(r"\d+", re.ASCII)
_POINT: Final = re.compile(rf"\d{{1,3}}(?:[{_GROUPS} ]\d{{3}})+(?:\.\d+)?|\d+(?:\.\d+)?", re.ASCII)
"""4180, 4,180, 4,180.5, 4180.5, 4 180.5"""
_COMMA: Final = re.compile(r"\d{1,3}(?:[. ]\d{3})+(?:,\d+)?|\d+,\d+", re.ASCII)
"""4.180, 4.180,5, 4180,5, 4 180,5"""
_NO_FIGURE: Final = re.compile(
    r"```.*?```|https?://\S+|[\w.+-]{1,64}@[\w.-]+"  # code and addresses
    r"|^\s*(?:[-*+]\s+)?\d{1,3}[.)]\s|^\#+[^\n\d]*\d+[.:]"  # the numbers of a list and of headings
    r"|\b\d{4}-\d\d-\d\d(?:T[\d:.]+)?|\b\d{1,2}([./-])\d{1,2}\1(?:\d{4}|\d\d)\b"  # dates
    r"|\b\d{1,2}:\d\d(?::\d\d)?\b|\b\d+(?:st|nd|rd|th)\b"  # times of day, ordinals
    r"|\+\d[\d ()/-]{6,}|\b\d+(?:-\d+){2,}",  # telephone numbers and the like
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)
"""Digits that are not figures."""
ADDRESS: Final = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-][\w.-]{0,200}\w")
"""An e-mail address, in lower case."""
_YEAR: Final = re.compile(r"(?:19|20)\d\d")
_INSIDE_A_NAME: Final = re.compile(r"[^\W\d_]-?$|_$")
_CURRENCY: Final = re.compile(r"(?:[$€£¥]|\b(?:eur|usd|gbp|chf)|\brs\.?)\s?$", re.IGNORECASE)
_SCALES: Final = {
    9: "B|(?i:bn|billions?|milliarden?|milliards?|mrd|mil millones)",
    6: "M|(?i:million(?:s|en)?|millones|millón|mio|mln)",
    3: "(?i:k|thousand|tausend|tsd|mil|mille)",
    -2: "%|(?i:percent|prozent|por ciento|pour ?cent)",
}
_SCALE: Final = re.compile(
    r"[\s\u00a0\u202f]?(?:" + "|".join(f"(?P<e{n + 2}>{words})" for n, words in _SCALES.items()) + r")(?![^\W\d_])"
)
"""A word that scales the preceding number; the group's name is the power of ten plus 2."""
_UNIT: Final = re.compile(r"[\s\u00a0\u202f-]?(°?[^\W\d_]{1,30}(?:/[^\W\d_]{1,30})?[²³]?)")


@dataclass(frozen=True, slots=True)
class Figure:
    """A number that a text states."""

    written: str
    """The number with its scale, as written."""
    readings: tuple[Decimal, ...]
    """All values that it may have."""
    percent: bool
    """Whether it is a percentage."""
    unit: str
    """The next word, in lower case; it may be a unit."""

    @property
    def is_plain(self) -> bool:
        """Whether it is a small whole number or possibly a year. Such numbers are common and need no source."""
        return not self.percent and all(each == each.to_integral_value() and each <= SMALL for each in self.readings)


class SeenNumbers:
    """The numbers that a run was shown."""

    def __init__(self) -> None:
        self.full = False
        """Whether there were too many numbers to remember, so that none can be checked."""
        self.addresses: set[str] = set()
        """The e-mail addresses beside them."""
        self._seen: set[Decimal] = set()
        self._sorted: list[Decimal] = []
        """The numbers in sorted order, updated on demand."""

    def add(self, text: str) -> None:
        """Add every number in a text."""
        if "@" in text:
            self.addresses.update(ADDRESS.findall(text.lower()))
        if self.full:
            return
        for match in _TOKEN.finditer(text):
            self._seen.update(_all_readings(match[0]))
            if len(self._seen) > MOST:
                self.full = True
                self._seen, self._sorted = set(), []
                return

    def meant(self, figure: Figure) -> Decimal | None:
        """Return the reading of a figure that was seen, or to which a seen number rounds; None if there is none."""
        if self.full:
            return figure.readings[0]
        return next(filter(self._has, figure.readings), None)

    def _has(self, number: Decimal) -> bool:
        if number in self._seen:
            return True
        if len(self._sorted) < len(self._seen):
            self._sorted = sorted(self._seen)
        half = half_of_last_place(number)
        place = bisect_left(self._sorted, number - half)
        return place < len(self._sorted) and self._sorted[place] <= number + half


def figures_of(text: str) -> Iterator[Figure]:
    """Yield the figures of a text; dates, times, years, ordinals, names and list numbers are not figures."""
    text = _NO_FIGURE.sub(lambda found: " " * len(found[0]), text)
    for match in _TOKEN.finditer(text):
        before = text[max(match.start() - 6, 0) : match.start()]
        readings = _readings(match[0]) if len(match[0]) <= _LONGEST and not _INSIDE_A_NAME.search(before) else ()
        if not readings:  # a version, a list of parts, a part of a name
            continue
        scale = _SCALE.match(text, match.end())
        end = scale.end() if scale else match.end()
        word = _UNIT.match(text, end)
        unit = word[1].lower() if word else ""
        place = next((int(name[1:]) - 2 for name, found in scale.groupdict().items() if found), 0) if scale else 0
        if _CURRENCY.search(before) or text[end : end + 2].strip()[:1] in set("$€£¥"):
            unit = "euro"
        if scale is not None or unit in UNITS or not _YEAR.fullmatch(match[0]):
            scaled = tuple(each.scaleb(place) for each in readings) if scale else ()
            yield Figure(text[match.start() : end], (*readings, *scaled), place < 0, unit)


def argument_figures(value: object) -> Iterator[Figure]:
    """Yield the figures among the arguments of a call: its numbers, and texts that are nothing but a number."""
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from argument_figures(each)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        text = str(value).strip()[: _LONGEST + 1]
        yield from (each for each in figures_of(text) if each.written == text)


def _all_readings(token: str) -> list[Decimal]:
    """Return all numbers that a token may be or contain."""
    parts = (token, *_MARKS.split(token))  # it may be a row of a table
    found = [each for part in parts if len(part) <= _LONGEST for each in _readings(part)]
    return found + [Decimal(piece) for piece in _DIGITS.findall(token) if len(piece) <= _LONGEST]


def _readings(token: str) -> tuple[Decimal, ...]:
    """Return the possible values of a number; none if it is not a single number."""
    readings = []
    if _POINT.fullmatch(token):
        readings.append(Decimal(_MARKS.sub("", token)))
    if _COMMA.fullmatch(token):
        readings.append(Decimal(token.replace(".", "").replace(" ", "").replace(",", ".")))
    return tuple(readings)


def half_of_last_place(number: Decimal) -> Decimal:
    """Return the largest rounding error of a number: 0.5 for 1274, 0.05 for 1.5, 50 for 1200.

    A number with a single non-zero digit, such as 4000, counts as exact to the unit: too many numbers would round to it.
    """
    _, digits, exponent = number.normalize().as_tuple()
    last = exponent if isinstance(exponent, int) and (exponent <= 0 or len(digits) > 1) else 0
    return Decimal(5).scaleb(last - 1)
