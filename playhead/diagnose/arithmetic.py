"""What follows from the numbers that a run was shown by one step of arithmetic, a unit or a count.

Of many numbers nearly every other one follows. So a step has to start from a number that the answer or the task itself
states, or from very few; a sum, an average or a count has to be one of a whole column, or of the rows of one kind.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from itertools import combinations, product
from math import isfinite
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from playhead.diagnose.numbers import Figure, counts_of, figures_of, half_of_last_place
from playhead.diagnose.vocabulary import UNITS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from decimal import Decimal

    from playhead.diagnose.numbers import SeenNumbers

_MOST: Final = 20_000
"""Numbers that are kept for this."""
_ROWS: Final = 1000
"""Rows of one list, or lines of one text."""
_WORD: Final = 40
"""Characters of a field that tells kinds of rows apart."""
_FEW: Final = 6
"""Numbers of which any two make a step, rounded as far as it is written."""
_SOME: Final = 14
"""Numbers of which any two make a step that has to come out to a thousandth."""
_MANY: Final = 250
"""Numbers of which each makes a step with one that is stated."""
_STATED: Final = 40
"""Stated numbers that make steps with each other."""
_PERIODS: Final = (2.0, 4.0, 7.0, 12.0, 24.0, 30.0, 52.0, 60.0, 365.0)
"""What a number for one period is multiplied by, or divided, for another."""
_LONG: Final = 10_000
"""Characters of a text in which they are looked for."""
_MOMENT: Final = re.compile(r"\b(?:\d{4}-\d\d-\d\d|(?:[01]?\d|2[0-3]):[0-5]\d)(?!\d)", re.ASCII)
"""A date, or a time of day."""
_ALL: Final = ("all",)
"""The column of all numbers of one object or line."""
_Path = tuple[Any, ...]


@dataclass(slots=True)
class Operands:
    """The numbers that a run was shown, in the places where they stood."""

    columns: dict[_Path, list[float]] = field(default_factory=dict)
    """Numbers of one tool and one place, across rows and calls; also those of the rows of one kind."""
    counts: set[float] = field(default_factory=set)
    """How many rows or lines there were."""
    asked: list[float] = field(default_factory=list)
    """Numbers of the task and the user's prompts."""
    days: set[int] = field(default_factory=set)
    """Dates, in seconds."""
    times: set[int] = field(default_factory=set)
    """Times of day, in seconds."""
    shares: set[float] = field(default_factory=set)
    """Numbers that stood before a percent sign."""
    _keys: set[float] = field(default_factory=set)
    """Numbers that were values by themselves in quotes: keys, mostly."""
    _kept: int = 0

    def ask(self, text: str) -> None:
        """Take in what a user wrote."""
        if len(self.asked) < _MOST:
            self.asked += [*self._values(text), *counts_of(text)]

    def add(self, source: str, value: object) -> None:
        """Take in the arguments or the result of a call; those of one `source` make columns."""
        self._walk(_parsed(value), (source,))

    def unexplained(self, figures: Sequence[Figure], seen: SeenNumbers) -> list[Figure]:
        """Return the figures of an answer that were neither seen nor follow by a step from what was, or from one that does."""
        known: dict[Figure, Decimal] = {}
        doubtful = []
        for figure in figures:
            meant = seen.meant(figure)
            if meant is not None:
                known[figure] = meant
            elif not figure.is_plain:
                doubtful.append(figure)
        steps = _Steps(self) if doubtful else None
        while steps and doubtful:
            steps.start_from([*map(float, known.values())], {float(each.readings[0]) for each in known if each.percent})
            found = {
                each: meant for each in doubtful if (meant := steps.meant(each, _before(figures, each))) is not None
            }
            if not found:
                break
            known = {each: (known | found)[each] for each in figures if each in known or each in found}
            doubtful = [each for each in doubtful if each not in found]
        return doubtful

    def _moment(self, text: str) -> None:
        if "-" in text:
            self.days.add(86400 * date.fromisoformat(text).toordinal())
        else:
            hour, _, minute = text.partition(":")
            self.times.add(3600 * int(hour) + 60 * int(minute))

    def _cell(self, path: _Path, number: float) -> None:
        if self._kept < _MOST and isfinite(number):
            self._kept += 1
            self.columns.setdefault(path, []).append(number)

    def _walk(self, value: object, path: _Path) -> None:
        if len(path) > 20:  # noqa: PLR2004 - nobody reads tables that deep
            return
        if isinstance(value, dict):
            for key, each in value.items():
                self._walk(each, (*path, key))
                if _is_number(each):
                    self._cell((*path, _ALL), _float(each))
        elif isinstance(value, list):
            self.counts.add(len(value))
            for each in value[:_ROWS]:
                self._walk(each, (*path, "*"))
            self._group([each for each in value[:_ROWS] if isinstance(each, dict)], path)
        elif isinstance(value, str):
            self._read(value, path)
        elif _is_number(value):
            self._cell(path, _float(value))

    def _read(self, text: str, path: _Path) -> None:
        if text.isdecimal():
            self._keys.add(_float(text))
            return
        lines = text.splitlines()
        if len(path) == 1 and len(lines) > 1:
            self.counts.update((len(lines), len(text.split())))
        for line in lines[:_ROWS]:
            values = self._values(line)
            for place, each in enumerate(values):
                self._cell((*path, place), each)
                if len(lines) == 1 and len(values) > 1:
                    self._cell((*path, _ALL), each)

    def _group(self, rows: list[dict[str, Any]], path: _Path) -> None:
        """Gather the numbers of the rows that have the same word, or the same yes or no, in a field."""
        sizes: dict[_Path, int] = {}
        for row in rows:
            for kind in [
                each for each in row.items() if isinstance(each[1], bool | str) and len(str(each[1])) <= _WORD
            ]:
                sizes[kind] = sizes.get(kind, 0) + 1
                for key, each in row.items():
                    if _is_number(each):
                        self._cell((*path, kind, key), _float(each))
        self.counts.update(sizes.values())

    def _values(self, text: str) -> list[float]:
        values: list[float] = []
        for match in _MOMENT.finditer(text[:_LONG]):
            with suppress(ValueError):
                self._moment(match[0])
        for figure in figures_of(text):
            values += map(_float, figure.amounts)
            if figure.percent:
                self.shares.update(map(_float, figure.amounts))
        return values

    def numbers(self) -> set[float]:
        """Return every number that a step may start from."""
        return {each for path, column in self.columns.items() if not _is_group(path) for each in column} | self.stated()

    def stated(self) -> set[float]:
        """Return the numbers that a user stated, without those that are keys."""
        return set(self.asked) - self._keys


class _Steps:
    """What comes out of steps, in order, by how close a figure has to come to it."""

    def __init__(self, operands: Operands) -> None:
        self.asked, self.shares = operands.stated(), operands.shares
        self.pool = sorted(operands.numbers())
        self.counts = [*operands.counts]
        self.totals = sorted({*_totals(operands.columns.values())})
        self.spans = sorted(
            float(abs(one - other))
            for moments in (operands.days, operands.times)
            for one, other in combinations(sorted(moments)[:_STATED], 2)
        )
        self.rounded: list[float] = []
        self.close: list[float] = []
        self.exact: list[float] = []
        self.rounded_shares: list[float] = []
        self.close_shares: list[float] = []

    def start_from(self, stated: list[float], shares: set[float]) -> None:
        """Take the figures of the answer that hold, and the task's, as the numbers to start from."""
        focus, pool = list(dict.fromkeys([*stated[:_STATED], *self.asked]))[:_STATED], self.pool
        near = [*combinations(focus, 2), *(combinations(pool, 2) if len(pool) <= _FEW else ())]
        far = [
            *(each for each in product(focus, pool) if len(pool) <= _MANY and each[0] != each[1]),
            *(combinations(pool, 2) if len(pool) <= _SOME else ()),
        ]
        whole = [*far, *product(focus, self.totals[:_MANY])]
        parts = [each / 100 for each in self.shares | shares]
        self.rounded = sorted([*_sums(near), *_products(near), *_parts(focus, parts), *self.totals])
        self.close = sorted([*_products(whole), *_parts(pool, parts)])
        self.exact = sorted([*_sums(far), *self.counts])
        self.rounded_shares = sorted([*_shares(near), *(100 - each for each in focus), *_sums(combinations(focus, 2))])
        self.close_shares = sorted(_shares(whole))

    def meant(self, figure: Figure, before: Figure | None) -> Decimal | None:
        """Return which reading of the figure follows from what is known; `before` is the figure right before it."""
        hours = before.readings[0] if before is not None and before.unit[:1] == "h" and figure.unit[:1] == "m" else None
        for reading in figure.amounts:
            number, within = float(reading), _tolerance(figure, float(reading))
            if hours is not None:
                number += 60 * float(hours)
                if self._follows(figure, number / 60, within / 60) or _holds(self.pool, number, within):
                    return reading
            cents = reading.as_tuple().exponent == -2 and _holds(self.pool, number * 100, 0.0)  # noqa: PLR2004 - 34.50 of 3450
            if cents or self._follows(figure, number, within) or self._converts(figure, number, within):
                return reading
        return None

    def _follows(self, figure: Figure, number: float, within: float) -> bool:
        rounded, close = (self.rounded_shares, self.close_shares) if figure.percent else (self.rounded, self.close)
        return (
            _holds(rounded, number, within)
            or _holds(close, number, min(within, abs(number) * 0.0005))
            or _holds(self.exact, number, 0.0)
        )

    def _converts(self, figure: Figure, number: float, within: float) -> bool:
        if figure.unit in {"°f", "f", "fahrenheit"}:
            return any(_holds(self.pool, (sign * number - 32) / 1.8, within / 1.8) for sign in (1, -1))
        if figure.unit in {"°c", "c", "celsius"}:
            return any(_holds(self.pool, sign * number * 1.8 + 32, within * 1.8) for sign in (1, -1))
        kind, factor = UNITS.get(figure.unit, ("", 1.0))
        if kind == "time" and _holds(self.spans, number * factor, within * factor):
            return True
        per_time = any(UNITS.get(word, ("",))[0] == "time" for word in (figure.unit, *figure.after))
        periods = [each for period in _PERIODS for each in (period, 1 / period)] if per_time else []
        units = [other / factor for same, other in UNITS.values() if same == kind and other != factor]
        return any(_holds(self.pool, number / by, within / by) for by in (*units, *periods)) or any(
            _holds(known, number / by, within / by) for by in units for known in (self.rounded, [1.0])
        )


def _sums(pairs: Iterable[tuple[float, float]]) -> Iterator[float]:
    for one, other in pairs:
        yield from (one + other, abs(one - other))


def _products(pairs: Iterable[tuple[float, float]]) -> Iterator[float]:
    for one, other in pairs:
        yield one * other
        if one and other:
            yield from (abs(one / other), abs(other / one))


def _parts(numbers: Iterable[float], parts: Iterable[float]) -> Iterator[float]:
    """Yield parts of numbers, and the numbers with them added, taken off, and as they were before they were added."""
    for one, part in product(numbers, parts):
        yield from (one * part, one * (1 + part), one * (1 - part))
        yield from (one / (1 + part), one - one / (1 + part)) if part > -1 else ()


def _shares(pairs: Iterable[tuple[float, float]]) -> Iterator[float]:
    for one, other in pairs:
        for first, second in ((one, other), (other, one)):
            if second:
                yield from (abs(100 * first / second), abs(100 * (first - second) / second))


def _totals(columns: Iterable[list[float]]) -> Iterator[float]:
    """Yield sums, averages and ranges of columns."""
    for column in columns:
        if len(column) > 1:
            yield from (sum(column), sum(column) / len(column), max(column) - min(column), median(column))


def _holds(ordered: list[float], number: float, within: float) -> bool:
    within += abs(number) * 1e-9
    place = bisect_left(ordered, number - within)
    return place < len(ordered) and ordered[place] <= number + within


def _tolerance(figure: Figure, number: float) -> float:
    """Return how far what was meant may be from a number as it is written."""
    reading = figure.readings[0]
    exponent = reading.as_tuple().exponent
    scale = abs(number / float(reading)) if reading else 1.0
    written = 0.5 * 10.0 ** (exponent if isinstance(exponent, int) else 0) * scale
    return max(written, min(float(half_of_last_place(reading)) * scale, abs(number) * 0.005))


def _before(figures: Sequence[Figure], figure: Figure) -> Figure | None:
    place = figures.index(figure)
    before = figures[place - 1] if place else None
    return before if before is not None and figure.start - before.end <= 12 else None  # noqa: PLR2004 - "1 hour and 5 min"


def _is_group(path: _Path) -> bool:
    return any(isinstance(each, tuple) for each in path)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _float(number: Any) -> float:  # noqa: ANN401 - any number
    try:
        return float(number)
    except OverflowError:
        return float("inf")


def _parsed(value: object) -> object:
    if isinstance(value, str) and value[:1] in {"{", "["}:
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value
