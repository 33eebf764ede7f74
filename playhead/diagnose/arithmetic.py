"""Which figures of an answer follow from the run's numbers by one arithmetic step, a unit conversion or a count.

From many numbers, nearly any other can be computed. So a step must start from a number that the answer or the task states,
unless there are very few numbers; a sum or an average must cover a whole column, or all rows of one kind.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from itertools import islice
from math import inf, isfinite
from typing import TYPE_CHECKING, Any, Final

from playhead.diagnose.numbers import Figure, figures_of
from playhead.diagnose.vocabulary import UNITS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from decimal import Decimal

    from playhead.diagnose.numbers import SeenNumbers

_MOST: Final = 20_000
"""The maximum number of numbers to keep of results, and of what the user asked."""
_ROWS: Final = 1000
"""The maximum number of rows of a list, or lines of a text, that are read."""
_FEW: Final = 6
"""Up to this many numbers, any two make a step."""
_MANY: Final = 250
"""Up to this many numbers, each makes a step with each stated one."""
_STATED: Final = 40
"""The maximum number of stated numbers that make steps with each other."""
_DEEPEST: Final = 20
"""Levels of a result that are read."""
_WORD: Final = 40
"""The maximum length of a field that may name the kind of a row, in characters."""
_COUNT: Final = ("count",)
"""The column of the numbers of rows and lines."""
_Column = tuple[Any, ...]


@dataclass(slots=True)
class Operands:
    """The numbers that a run was shown."""

    columns: dict[_Column, list[float]] = field(default_factory=dict)
    """Numbers at one place in the results of one tool, across rows and calls; also those of the rows of one kind."""
    asked: list[float] = field(default_factory=list)
    """Numbers in the task and in the user's prompts."""
    _kept: int = 0

    def ask(self, text: str) -> None:
        """Add a text by the user."""
        self.asked += islice(_values(text), max(_MOST - len(self.asked), 0))

    def add(self, source: str, value: object) -> None:
        """Add the arguments or the result of a call; values from the same `source` form columns."""
        for column, number in islice(_cells(value, (source,)), _MOST - self._kept):
            self._kept += 1
            self.columns.setdefault(column, []).append(number)

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


class _Steps:
    """The sorted results of all steps."""

    def __init__(self, operands: Operands, stated: list[float]) -> None:
        """Start from the explained figures of the answer, those of the task, and what the run was shown."""
        columns = [column for place, column in operands.columns.items() if place != _COUNT]
        self._pool = pool = sorted({each for column in columns for each in column} | {*operands.asked})
        focus = [*dict.fromkeys([*stated[:_STATED], *operands.asked])][:_STATED] + pool * (len(pool) <= _FEW)
        others = focus + pool * (len(pool) <= _MANY)
        pairs = ((one, other) for one in focus for other in others if one != other)
        totals = [total for each in columns if len(each) > 1 for total in (sum(each), sum(each) / len(each))]
        self._results = sorted([*_results(pairs), *totals, *operands.columns.get(_COUNT, ())])

    def meant(self, figure: Figure) -> Decimal | None:
        """Return the reading of the figure that follows from known numbers; None if none does."""
        for reading in figure.readings:
            number, within = float(reading), 0.5 * 10.0 ** int(reading.as_tuple().exponent)  # as exact as it is written
            converted = _converted(figure.unit, number)
            if _holds(self._results, number, within) or any(_holds(self._pool, n, within * by) for n, by in converted):
                return reading
        return None


def _cells(value: Any, column: _Column) -> Iterator[tuple[_Column, float]]:  # noqa: ANN401 - JSON
    """Yield each number of a JSON value with its column, and the numbers of rows and lines."""
    if isinstance(value, dict) and len(column) < _DEEPEST:
        words = [each for each in value.items() if isinstance(each[1], bool | str) and len(str(each[1])) <= _WORD]
        for key, each in value.items():
            yield from _cells(each, (*column, key))
            if _is_number(each):  # also among those of this object, and of the rows with the same word in a field
                yield from ((place, _float(each)) for place in [(*column, "all"), *((*column, *w, key) for w in words)])
    elif isinstance(value, list) and len(column) < _DEEPEST:
        yield _COUNT, len(value)
        for each in value[:_ROWS]:
            yield from _cells(each, (*column, "*"))
    elif isinstance(value, str):
        lines = value.splitlines()
        yield from [(_COUNT, len(lines))] if len(lines) > 1 else []
        yield from (((*column, place), each) for line in lines[:_ROWS] for place, each in enumerate(_values(line)))
    elif _is_number(value):
        yield column, _float(value)


def _results(pairs: Iterable[tuple[float, float]]) -> Iterator[float]:
    """Yield the results for pairs: sum, difference, product, ratio, share, and a percentage of, above and below a number."""
    for pair in pairs:
        yield from (pair[0] + pair[1], abs(pair[0] - pair[1]), pair[0] * pair[1])
        for one, other in (pair, pair[::-1]):
            part = other / 100
            yield from (one * part, one * (1 + part), one * (1 - part))
            yield from (one / other, 100 * one / other, 100 * abs(one - other) / abs(other)) if other else ()


def _converted(unit: str, number: float) -> Iterator[tuple[float, float]]:
    """Yield a number in the other units of its kind, each with the factor from its unit."""
    if unit in {"°f", "f", "fahrenheit"}:
        yield from (((sign * number - 32) / 1.8, 1 / 1.8) for sign in (1, -1))
    elif unit in {"°c", "c", "celsius"}:
        yield from ((sign * number * 1.8 + 32, 1.8) for sign in (1, -1))
    elif unit in UNITS:
        kind, factor = UNITS[unit]
        yield from ((number * factor / each, factor / each) for same, each in UNITS.values() if same == kind)


def _holds(ordered: list[float], number: float, within: float) -> bool:
    within += abs(number) * 1e-9
    place = bisect_left(ordered, number - within)
    return place < len(ordered) and ordered[place] <= number + within


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(_float(value))


def _values(text: str) -> Iterator[float]:
    return (_float(each) for figure in figures_of(text) for each in figure.readings)


def _float(number: Any) -> float:  # noqa: ANN401 - any number
    try:
        return float(number)
    except OverflowError:
        return inf
