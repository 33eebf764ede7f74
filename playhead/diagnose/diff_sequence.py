"""The edit script between two sequences of tool calls: what was added, removed, moved, or called otherwise.

The longest common subsequence is kept in place. It is found by Myers' method, whose cost grows with the number of edits;
beyond a limit the calls are matched by their rank among equal ones instead, so no input takes quadratic time.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict, deque
from typing import TYPE_CHECKING, Final

from playhead.diagnose.diff_types import ToolEdit, ToolUse

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    Pair = tuple[int, int]

MOST_EDITS: Final = 300
"""Edits up to which the shortest script is looked for."""


def apply_edits(edits: Iterable[ToolEdit], original: Sequence[ToolUse]) -> tuple[ToolUse, ...]:
    """Return the replay's sequence of calls, made of the original's.

    Raises:
        ValueError: the edits do not belong to this sequence.
    """
    gone: set[int] = set()
    placed: dict[int, ToolUse] = {}
    for edit in edits:
        if edit.original_place is not None:
            gone.add(edit.original_place)
        if edit.replay_place is not None:
            placed[edit.replay_place] = ToolUse(edit.owner, edit.tool, edit.args_hash)
    kept = deque(use for place, use in enumerate(original) if place not in gone)
    made: list[ToolUse] = []
    for place in range(len(kept) + len(placed)):
        if place in placed:
            made.append(placed[place])
        elif kept:
            made.append(kept.popleft())
        else:
            raise ValueError(f"the edits say nothing of place {place}; they belong to another sequence")
    return tuple(made)


def common_pairs(left: Sequence[Hashable], right: Sequence[Hashable]) -> list[Pair]:
    """Return the places of a common subsequence, in order; the longest one, unless that takes too many edits."""
    start, end = 0, 0
    shortest = min(len(left), len(right))
    while start < shortest and left[start] == right[start]:
        start += 1
    while end < shortest - start and left[-1 - end] == right[-1 - end]:
        end += 1
    a, b = left[start : len(left) - end], right[start : len(right) - end]
    middle = _shortest(a, b)
    if middle is None:
        middle = longest_increasing(equal_pairs(a, b))
    return [
        *((place, place) for place in range(start)),
        *((one + start, other + start) for one, other in middle),
        *((len(left) - place, len(right) - place) for place in range(end, 0, -1)),
    ]


def equal_pairs(left: Sequence[Hashable], right: Sequence[Hashable]) -> list[Pair]:
    """Return each item of the left with the equal item of the right that has the same rank among its equals."""
    places: dict[Hashable, deque[int]] = defaultdict(deque)
    for place, item in enumerate(right):
        places[item].append(place)
    return [(place, places[item].popleft()) for place, item in enumerate(left) if places.get(item)]


def longest_increasing(pairs: Iterable[Pair]) -> list[Pair]:
    """Return the most pairs that stand in the same order on both sides; n log n. No place may come twice."""
    ends: list[int] = []
    tops: list[int] = []
    before: list[int | None] = []
    items = sorted(pairs)
    for number, (_, other) in enumerate(items):
        place = bisect_left(ends, other)
        before.append(tops[place - 1] if place else None)
        if place == len(ends):
            ends.append(other)
            tops.append(number)
        else:
            ends[place], tops[place] = other, number
    kept: list[Pair] = []
    top = tops[-1] if tops else None
    while top is not None:
        kept.append(items[top])
        top = before[top]
    return kept[::-1]


def _shortest(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[Pair] | None:
    """Return a longest common subsequence (E. Myers, An O(ND) Difference Algorithm, 1986), or None beyond the limit."""
    if not a or not b:
        return []
    reached: dict[int, int] = {1: 0}
    history: list[dict[int, int]] = []
    for edits in range(min(len(a) + len(b), MOST_EDITS) + 1):
        history.append(reached)
        reached = _next(a, b, edits, reached)
        if reached.get(len(a) - len(b)) == len(a):
            return _way_back(len(a), len(b), history)
    return None


def _next(a: Sequence[Hashable], b: Sequence[Hashable], edits: int, reached: dict[int, int]) -> dict[int, int]:
    """Return how far each diagonal is reached with this many edits."""
    further: dict[int, int] = {}
    for k in range(-edits, edits + 1, 2):
        x = _start(k, edits, reached)
        y = x - k
        while x < len(a) and 0 <= y < len(b) and a[x] == b[y]:
            x, y = x + 1, y + 1
        further[k] = x
    return further


def _start(k: int, edits: int, reached: dict[int, int]) -> int:
    if k == -edits or (k != edits and reached[k - 1] < reached[k + 1]):
        return reached[k + 1]
    return reached[k - 1] + 1


def _way_back(x: int, y: int, history: list[dict[int, int]]) -> list[Pair]:
    pairs: list[Pair] = []
    for edits in range(len(history) - 1, -1, -1):
        k = x - y
        from_x = _start(k, edits, history[edits])
        while x > from_x:
            x, y = x - 1, y - 1
            pairs.append((x, y))
        down = k == -edits or (k != edits and history[edits][k - 1] < history[edits][k + 1])
        x, y = (x, y - 1) if down else (x - 1, y)
    return pairs[::-1]
