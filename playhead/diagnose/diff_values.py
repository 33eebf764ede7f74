"""Where two JSON values or two texts differ: exact, and bounded in time for hostile files."""

from __future__ import annotations

import difflib
import re
from itertools import islice
from os.path import commonprefix
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel

from playhead.diagnose.diff_types import Difference
from playhead.trace.base import volatile_fields
from playhead.trace.parameters import UNKNOWN, comparable, is_unrecorded

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Set as AbstractSet

    from playhead.trace.values import JsonValue

MOST_DIFFERENCES: Final = 100
"""The maximum number of listed differences of one value."""
MOST_LINES: Final = 400
"""The maximum number of lines of a text's difference."""
_MOST_COMPARED: Final = 1_000
"""The maximum number of lines compared one by one, from the first that differs."""
_LONG_LINE: Final = 100
"""Longer lines, in characters, are split into sentences: prompts are often paragraphs on one line."""
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+")


def plain(value: Any) -> Any:  # noqa: ANN401 - any field of any event
    """Return a field of an event as JSON, without the fields that are not compared. JSON values are not copied."""
    if isinstance(value, BaseModel):
        skipped = volatile_fields(type(value))
        return {name: plain(each) for name, each in value.__dict__.items() if name not in skipped}
    if isinstance(value, tuple):
        return [plain(each) for each in value]
    return sorted(value) if isinstance(value, frozenset) else value


def same(left: Any, right: Any) -> bool:  # noqa: ANN401 - any field of any event
    """Return whether two values are written alike in a file: 1 differs from 1.0 and from true, and NaN equals NaN.

    Unrecorded values with fingerprints of different keys cannot be compared; they count as the same.
    """
    if left is right:
        return True
    if isinstance(left, str) or type(left) is not type(right):
        return isinstance(left, str) and bool(left == right)
    if isinstance(left, dict):
        return _alike_dicts(left, right)
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, BaseModel):
        return same_fields(left, right) and left.__pydantic_extra__ == right.__pydantic_extra__
    return repr(left) == repr(right) if isinstance(left, float) else bool(left == right)  # -0.0 is not 0.0


def same_fields(left: BaseModel, right: BaseModel, left_out: AbstractSet[str] = frozenset()) -> bool:
    """Return whether the known fields of two models of one type are the same, except volatile and left-out ones."""
    others, volatile = right.__dict__, volatile_fields(type(left))
    for name, value in left.__dict__.items():  # `is` first: this is most of the time that a reproduction takes
        other = others.get(name)
        if value is other or name in volatile or name in left_out:
            continue
        if not (value == other if type(value) is str else same(value, other)):
            return False
    return True


def _alike_dicts(left: dict[str, Any], right: dict[str, Any]) -> bool:
    if len(left) == len(right) and all(key in right and same(each, right[key]) for key, each in left.items()):
        return True
    if not (is_unrecorded(left) and is_unrecorded(right)):
        return False
    made, now = (str(each.get("fingerprint", UNKNOWN)) for each in (left, right))
    return made == now or not comparable(made, now)


def differences(original: JsonValue, replay: JsonValue) -> tuple[Difference, ...]:
    """Return the differences of two JSON values, each with its path.

    Lists are compared item by item between their common beginning and end.
    """
    return tuple(islice(_walk(original, replay, ""), MOST_DIFFERENCES))


def _walk(original: JsonValue, replay: JsonValue, path: str) -> Iterator[Difference]:
    if same(original, replay):
        return
    if isinstance(original, dict) and isinstance(replay, dict) and not is_unrecorded(original):
        for key in [*original, *(key for key in replay if key not in original)]:
            place = f"{path}.{key}" if path else str(key)
            if key not in replay:
                yield Difference(path=place, change="removed", original=original[key])
            elif key not in original:
                yield Difference(path=place, change="added", replay=replay[key])
            else:
                yield from _walk(original[key], replay[key], place)
    elif isinstance(original, list) and isinstance(replay, list):
        start, left, right = unlike_part(original, replay)
        for index, (one, other) in enumerate(zip(left, right, strict=False), start):
            yield from _walk(one, other, f"{path}[{index}]")
        both = min(len(left), len(right))
        for index, each in enumerate(left[both:], start + both):
            yield Difference(path=f"{path}[{index}]", change="removed", original=each)
        for index, each in enumerate(right[both:], start + both):
            yield Difference(path=f"{path}[{index}]", change="added", replay=each)
    else:
        yield Difference(path=path, change="changed", original=original, replay=replay)


def unlike_part(left: list[Any], right: list[Any]) -> tuple[int, list[Any], list[Any]]:
    """Return how many items two lists begin with in common, and the lists without their common beginning and end."""
    shortest = min(len(left), len(right))
    start = next((place for place in range(shortest) if not same(left[place], right[place])), shortest)
    rest = range(shortest - start)
    end = next((back for back in rest if not same(left[-1 - back], right[-1 - back])), shortest - start)
    return start, left[start : len(left) - end], right[start : len(right) - end]


# --- texts ------------------------------------------------------------------------------------------------------------


def line_diff(original: str, replay: str) -> tuple[str, ...]:
    """Return the lines that differ, with one line of context, as a unified diff without its header.

    There are at most 400 lines; a last line with `…` then says that more may differ.
    """
    left, right = _lines(original), _lines(replay)
    start, *parts = unlike_part(left, right)
    first = max(start - 1, 0)
    left, right = left[first : start + len(parts[0]) + 1], right[first : start + len(parts[1]) + 1]
    is_cut = max(len(left), len(right)) > _MOST_COMPARED
    found = difflib.unified_diff(left[:_MOST_COMPARED], right[:_MOST_COMPARED], n=1, lineterm="")
    lines = ["@@" if line.startswith("@@") else line for number, line in enumerate(found) if number > 1]
    is_cut = is_cut or len(lines) > MOST_LINES
    return (*lines[:MOST_LINES], *(("… more lines may differ",) if is_cut else ()))


def _lines(text: str) -> list[str]:
    """Return the lines of a text, with long ones split into sentences."""
    lines = text.split("\n")
    return [part for line in lines for part in ([line] if len(line) <= _LONG_LINE else _SENTENCE_END.split(line))]


def common_length(one: str, other: str) -> int:
    """Return the length of the common beginning of two texts."""
    return len(commonprefix((one, other)))  # noqa: RUF071 - characters of a text are meant, not parts of a path
