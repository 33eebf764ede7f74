"""Numbers in texts: does what is said occur in what was seen?

Texts write the same number in many ways (`4180`, `4,180`, `4.180,0`, `4 180`), and an answer rounds. So a number is read
in every way that it can be meant, and one that is said counts as seen when any number that was seen rounds to it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from decimal import Decimal
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST: Final = 50_000
"""Different numbers that are remembered; a trace with more is not checked, and says so."""
SMALL: Final = 12
"""Whole numbers up to here are in every text, and nobody can say where from."""
_LONGEST: Final = 40
"""Characters of a number; a longer run of digits is a key or a hash."""
_GROUPS: Final = ",'’_\u00a0\u202f"  # noqa: RUF001 - marks that group digits
_MARKS: Final = re.compile(f"[{_GROUPS}]")
_TOKEN: Final = re.compile(rf"\d[\d.{_GROUPS}]*\d|\d", re.ASCII)
_DIGITS: Final = re.compile(r"\d+", re.ASCII)
_POINT: Final = re.compile(rf"\d{{1,3}}(?:[{_GROUPS}]\d{{3}})+(?:\.\d+)?|\d+(?:\.\d+)?", re.ASCII)
"""4180, 4,180, 4,180.5, 4180.5"""
_COMMA: Final = re.compile(r"\d{1,3}(?:\.\d{3})+(?:,\d+)?|\d+,\d+", re.ASCII)
"""4.180, 4.180,5, 4180,5"""
_LIST_MARK: Final = re.compile(r"^\s*\d{1,3}[.)]\s", re.MULTILINE | re.ASCII)
_INSIDE_A_NAME: Final = re.compile(r"[^\W\d_]|_")
_SCALE: Final = re.compile(r"\s?(%|percent\b|thousand\b|million\b|billion\b|k\b|bn\b)", re.IGNORECASE)
_SCALES: Final = {"%": -2, "percent": -2, "thousand": 3, "k": 3, "million": 6, "billion": 9, "bn": 9}


class SeenNumbers:
    """The numbers that a run was shown."""

    def __init__(self) -> None:
        self.full = False
        """Whether there were too many to remember: then nothing can be said about any."""
        self._seen: set[Decimal] = set()
        self._sorted: list[Decimal] = []
        """Those of them that were needed in order so far; the others are in `_new`."""
        self._new: list[Decimal] = []

    def add(self, text: str) -> None:
        """Take in every number of a text."""
        if self.full:
            return
        for match in _TOKEN.finditer(text):
            for number in _all_readings(match[0]):
                if number not in self._seen:
                    self._seen.add(number)
                    self._new.append(number)
            if len(self._seen) > MOST:
                self.full = True
                self._seen, self._sorted, self._new = set(), [], []
                return

    def unknown_in(self, text: str, *, rounded: bool = True) -> tuple[str, ...]:
        """Return the numbers of a text, as written, that no number seen so far is, or rounds to; each once.

        With `rounded=False` a number has to be one that was seen, which is quicker to say.
        """
        if self.full:
            return ()
        known = self._has if rounded else self._seen.__contains__
        return tuple(dict.fromkeys(said for said, readings in _said(text) if not any(map(known, readings))))

    def _has(self, number: Decimal) -> bool:
        if number in self._seen:
            return True
        if self._new:
            self._sorted.extend(self._new)
            self._sorted.sort()  # two sorted parts, mostly: as good as linear
            self._new = []
        half = _half_of_last_place(number)
        place = bisect_left(self._sorted, number - half)
        return place < len(self._sorted) and self._sorted[place] <= number + half


def _said(text: str) -> Iterator[tuple[str, list[Decimal]]]:
    """Yield each number that a text states, with all that it may mean."""
    text = _LIST_MARK.sub(lambda mark: " " * len(mark[0]), text)
    for match in _TOKEN.finditer(text):
        if len(match[0]) > _LONGEST or _INSIDE_A_NAME.match(text[max(match.start() - 1, 0) : match.start()]):
            continue
        readings = _readings(match[0])
        scale = _SCALE.match(text, match.end())
        if readings is None:  # a date, a version, a list: its parts
            parts = _DIGITS.findall(match[0])
            yield from ((part, [Decimal(part)]) for part in parts if Decimal(part) > SMALL)
        elif scale is not None:
            yield match[0] + scale[0], [*readings, *(each.scaleb(_SCALES[scale[1].lower()]) for each in readings)]
        elif any(each != each.to_integral_value() or each > SMALL for each in readings):
            yield match[0], readings


def _all_readings(token: str) -> list[Decimal]:
    """Return every number that a token may be or hold."""
    if token.isdecimal():
        return [Decimal(token)] if len(token) <= _LONGEST else []
    found = [each for part in _parts(token) for each in _readings(part) or ()]
    return found + [Decimal(piece) for piece in _DIGITS.findall(token) if len(piece) <= _LONGEST]


def _parts(token: str) -> list[str]:
    """Return a token as it is and, as it may be a row of a table, what its marks part; nothing that is too long."""
    return [part for part in (token, *_MARKS.split(token)) if len(part) <= _LONGEST]


def _readings(token: str) -> list[Decimal] | None:
    """Return what a number may mean, or None when it is no single number."""
    readings = []
    if _POINT.fullmatch(token):
        readings.append(Decimal(_MARKS.sub("", token)))
    if _COMMA.fullmatch(token):
        readings.append(Decimal(token.replace(".", "").replace(",", ".")))
    return readings or None


def _half_of_last_place(number: Decimal) -> Decimal:
    """Return how far a number may be from what it was rounded from: 1274 by 0.5, 1.5 by 0.05, 1200 by 50.

    A round number with one digit only, such as 4000, is taken as exact: nearly everything would round to it.
    """
    _, digits, exponent = number.normalize().as_tuple()
    last = exponent if isinstance(exponent, int) and (exponent <= 0 or len(digits) > 1) else 0
    return Decimal(5).scaleb(last - 1)
