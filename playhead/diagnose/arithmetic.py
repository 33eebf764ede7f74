"""Which figures of an answer follow from the run's numbers by one arithmetic step, a unit conversion or a count.

From many numbers, nearly any other can be computed. So a step must start from a number that the answer or the task states,
unless there are very few numbers; a sum, an average or a count must cover a whole column, or all rows of one kind.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from itertools import combinations, product
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

from playhead.diagnose.numbers import Figure, figures_of
from playhead.diagnose.vocabulary import UNITS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from decimal import Decimal

    from playhead.diagnose.numbers import SeenNumbers

_MOST: Final = 20_000
"""The maximum number of numbers to keep."""
_ROWS: Final = 1000
"""The maximum number of rows of a list, or lines of a text, that are read."""
_WORD: Final = 40
"""The maximum length of a field that may name the kind of a row, in characters."""
_FEW: Final = 6
"""Up to this many numbers, any two make a step, compared after rounding."""
_MANY: Final = 250
"""Up to this many numbers, each makes a step with each stated one."""
_STATED: Final = 40
"""The maximum number of stated numbers that make steps with each other."""
_CLOSE: Final = 0.0001
"""The maximum relative distance between a figure and the result of a step that may be a coincidence."""
_Path = tuple[Any, ...]


@dataclass(slots=True)
class Operands:
    """The numbers that a run was shown, by their place."""

    columns: dict[_Path, list[float]] = field(default_factory=dict)
    """Numbers at one place in the results of one tool, across rows and calls; also those of the rows of one kind."""
    counts: set[float] = field(default_factory=set)
    """The numbers of rows or lines, in total and of one kind."""
    asked: list[float] = field(default_factory=list)
    """Numbers in the task and in the user's prompts."""
    _kept: int = 0

    def ask(self, text: str) -> None:
        """Add a text by the user."""
        if len(self.asked) < _MOST:
            self.asked += _values(text)

    def add(self, source: str, value: object) -> None:
        """Add the arguments or the result of a call; values from the same `source` form columns."""
        self._walk(value, (source,))

    def unexplained(self, figures: Sequence[Figure], seen: SeenNumbers) -> list[Figure]:
        """Return the figures that were neither seen nor follow from seen ones, directly or through another figure."""
        known = {figure: meant for figure in figures if (meant := seen.meant(figure)) is not None}
        doubtful = [each for each in figures if each not in known and not each.is_plain]
        while doubtful:
            steps = _Steps(self, [float(known[each]) for each in figures if each in known])
            found = {each: meant for each in doubtful if (meant := steps.meant(each)) is not None}
            if not found:
                break
            known |= found
            doubtful = [each for each in doubtful if each not in found]
        return doubtful

    def _cell(self, path: _Path, number: Any) -> None:  # noqa: ANN401 - any number
        value = _float(number)
        if self._kept < _MOST and isfinite(value):
            self._kept += 1
            self.columns.setdefault(path, []).append(value)

    def _walk(self, value: object, path: _Path) -> None:
        if len(path) > 20:  # noqa: PLR2004 - no table is that deep
            return
        if isinstance(value, dict):
            for key, each in value.items():
                self._walk(each, (*path, key))
                if _is_number(each):
                    self._cell((*path, "all"), each)
        elif isinstance(value, list):
            self.counts.add(len(value))
            for each in value[:_ROWS]:
                self._walk(each, (*path, "*"))
            self._group([each for each in value[:_ROWS] if isinstance(each, dict)], path)
        elif isinstance(value, str):
            self._read(value.splitlines(), path)
        elif _is_number(value):
            self._cell(path, value)

    def _read(self, lines: list[str], path: _Path) -> None:
        if len(path) == 1 and len(lines) > 1:
            self.counts.add(len(lines))
        for line in lines[:_ROWS]:
            for place, each in enumerate(_values(line)):
                self._cell((*path, place), each)

    def _group(self, rows: list[dict[str, Any]], path: _Path) -> None:
        """Collect the numbers of rows that have the same word or boolean in a field."""
        sizes: dict[_Path, int] = {}
        for row in rows:
            for kind in row.items():
                if isinstance(kind[1], bool | str) and len(str(kind[1])) <= _WORD:
                    sizes[kind] = sizes.get(kind, 0) + 1
                    for key, each in row.items():
                        if _is_number(each):
                            self._cell((*path, kind, key), each)
        self.counts.update(sizes.values())

    def numbers(self) -> set[float]:
        """Return all numbers from which a step may start."""
        return {each for column in self.columns.values() for each in column} | set(self.asked)


class _Steps:
    """The sorted results of all steps, separated by how closely a figure must match them."""

    def __init__(self, operands: Operands, stated: list[float]) -> None:
        """Start from the explained figures of the answer, those of the task, and what the run was shown."""
        self.pool = pool = sorted(operands.numbers())
        totals = sorted({*_totals(operands.columns.values())})
        focus = list(dict.fromkeys([*stated[:_STATED], *operands.asked]))[:_STATED]
        near = [*combinations(focus, 2), *(combinations(pool, 2) if len(pool) <= _FEW else ())]
        far = product(focus, pool) if len(pool) <= _MANY else ()
        self.rounded = sorted([*_results(near), *totals])
        self.close = sorted([*_results(far), *operands.counts])

    def meant(self, figure: Figure) -> Decimal | None:
        """Return the reading of the figure that follows from known numbers; None if none does."""
        for reading in figure.amounts:
            number, within = float(reading), _tolerance(figure, float(reading))
            close = min(within, abs(number) * _CLOSE)
            follows = _holds(self.rounded, number, within) or _holds(self.close, number, close)
            if follows or self._converts(figure, number, within):
                return reading
        return None

    def _converts(self, figure: Figure, number: float, within: float) -> bool:
        if figure.unit in {"°f", "f", "fahrenheit"}:
            return any(_holds(self.pool, (sign * number - 32) / 1.8, within / 1.8) for sign in (1, -1))
        if figure.unit in {"°c", "c", "celsius"}:
            return any(_holds(self.pool, sign * number * 1.8 + 32, within * 1.8) for sign in (1, -1))
        kind, factor = UNITS.get(figure.unit, ("", 1.0))
        units = [other / factor for same, other in UNITS.values() if same == kind and other != factor]
        return any(_holds(self.pool, number / by, within / by) for by in units)


def _results(pairs: Iterable[tuple[float, float]]) -> Iterator[float]:
    """Yield the results for pairs: sum, difference, product, ratio, share, and a percentage of, above and below a number."""
    for pair in pairs:
        yield from (pair[0] + pair[1], abs(pair[0] - pair[1]), pair[0] * pair[1])
        for one, other in (pair, pair[::-1]):
            part = other / 100
            yield from (one * part, one * (1 + part), one * (1 - part))
            yield from (one / other, 100 * one / other, 100 * abs(one - other) / abs(other)) if other else ()


def _totals(columns: Iterable[list[float]]) -> Iterator[float]:
    """Yield the sum and the average of each column."""
    for column in columns:
        if len(column) > 1:
            yield from (sum(column), sum(column) / len(column))


def _holds(ordered: list[float], number: float, within: float) -> bool:
    within += abs(number) * 1e-9
    place = bisect_left(ordered, number - within)
    return place < len(ordered) and ordered[place] <= number + within


def _tolerance(figure: Figure, number: float) -> float:
    """Return how far the exact value may be from the number as written."""
    exponent = figure.readings[0].as_tuple().exponent
    scale = abs(number / float(figure.readings[0])) if figure.readings[0] else 1.0
    return 0.5 * 10.0 ** (exponent if isinstance(exponent, int) else 0) * scale


def _values(text: str) -> list[float]:
    return [_float(each) for figure in figures_of(text) for each in figure.amounts]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _float(number: Any) -> float:  # noqa: ANN401 - any number
    try:
        return float(number)
    except OverflowError:
        return float("inf")
