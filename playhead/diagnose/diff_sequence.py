"""The edit script between two sequences of tool calls: what was added, removed, moved, or called otherwise.

Between what both begin and end with, calls are matched by their rank among equal ones, and the most of them that stand in
the same order are kept in place: a short script, though not always the shortest, and no input takes quadratic time.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict, deque
from typing import TYPE_CHECKING

from playhead.diagnose.diff_types import ToolEdit, ToolUse

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    Pair = tuple[int, int]


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
    """Return the places of a long common subsequence, in order."""
    start, end = 0, 0
    shortest = min(len(left), len(right))
    while start < shortest and left[start] == right[start]:
        start += 1
    while end < shortest - start and left[-1 - end] == right[-1 - end]:
        end += 1
    a, b = left[start : len(left) - end], right[start : len(right) - end]
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
