"""Where two JSON values or two texts differ: exact, and bounded for hostile files."""

from __future__ import annotations

import difflib
import re
from itertools import islice
from os.path import commonprefix
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel

from playhead.diagnose.diff_types import Difference
from playhead.trace.parameters import UNKNOWN, comparable, is_unrecorded
from playhead.trace.types import volatile_fields

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Set as AbstractSet

MOST_DIFFERENCES: Final = 100
"""Places of one value that are listed."""
MOST_LINES: Final = 400
"""Lines of a text's difference."""
_MOST_COMPARED: Final = 1_000
"""Lines of a text that are compared one by one, from the first that differs."""
_LONG_LINE: Final = 100
"""Characters of a line from which it is taken sentence by sentence: prompts are paragraphs on one line."""
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+")


def plain(value: Any) -> Any:  # noqa: ANN401 - any field of any event
    """Return a field of an event as JSON, without what is not compared; what is JSON already is not copied."""
    if isinstance(value, BaseModel):
        skipped = volatile_fields(type(value))
        return {name: plain(each) for name, each in value.__dict__.items() if name not in skipped}
    if isinstance(value, tuple):
        return [plain(each) for each in value]
    return sorted(value) if isinstance(value, frozenset) else value


def same(left: Any, right: Any) -> bool:  # noqa: ANN401 - any field of any event
    """Return whether two values stand alike in a file: 1 is neither 1.0 nor true, and not-a-number is itself.

    Unrecorded values whose fingerprints are of two keys cannot be compared; they count as alike.
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
    """Return whether the known fields of two models of one type are the same, but for volatile ones and those to leave out."""
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


def differences(
    original: Any,  # noqa: ANN401 - JSON
    replay: Any,  # noqa: ANN401 - JSON
    most: int = MOST_DIFFERENCES,
) -> tuple[Difference, ...]:
    """Return where two JSON values differ, path by path.

    Lists are compared place by place between what is the same at their beginnings and at their ends.
    """
    return tuple(islice(_walk(original, replay, ""), most))


def _walk(
    original: Any,  # noqa: ANN401 - JSON
    replay: Any,  # noqa: ANN401 - JSON
    path: str,
) -> Iterator[Difference]:
    if same(original, replay):
        return
    if isinstance(original, dict) and isinstance(replay, dict) and not is_unrecorded(original):
        for key in [*original, *(key for key in replay if key not in original)]:
            place = f"{path}.{key}" if path else str(key)
            if key not in replay:
                yield _difference(place, "removed", original=original[key])
            elif key not in original:
                yield _difference(place, "added", replay=replay[key])
            else:
                yield from _walk(original[key], replay[key], place)
    elif isinstance(original, list) and isinstance(replay, list):
        start, left, right = _unlike_part(original, replay)
        for index, (one, other) in enumerate(zip(left, right, strict=False), start):
            yield from _walk(one, other, f"{path}[{index}]")
        both = min(len(left), len(right))
        for index, each in enumerate(left[both:], start + both):
            yield _difference(f"{path}[{index}]", "removed", original=each)
        for index, each in enumerate(right[both:], start + both):
            yield _difference(f"{path}[{index}]", "added", replay=each)
    else:
        yield _difference(path, "changed", original=original, replay=replay)


def _unlike_part(left: list[Any], right: list[Any]) -> tuple[int, list[Any], list[Any]]:
    """Return two lists without what is the same at their beginnings and ends, and the place where that begins."""
    shortest = min(len(left), len(right))
    start = next((place for place in range(shortest) if not same(left[place], right[place])), shortest)
    rest = range(shortest - start)
    end = next((back for back in rest if not same(left[-1 - back], right[-1 - back])), shortest - start)
    return start, left[start : len(left) - end], right[start : len(right) - end]


def _difference(path: str, change: Any, *, original: Any = None, replay: Any = None) -> Difference:  # noqa: ANN401 - JSON
    return Difference(path=path, change=change, original=original, replay=replay)


# --- texts ------------------------------------------------------------------------------------------------------------


def line_diff(original: str, replay: str) -> tuple[str, ...]:
    """Return the lines that differ with one line around them, in the form of a unified diff without its head.

    There are at most 400; a last line after `…` says that more lines may differ.
    """
    left, right = _lines(original), _lines(replay)
    start, *parts = _unlike_part(left, right)
    first = max(start - 1, 0)
    left, right = left[first : start + len(parts[0]) + 1], right[first : start + len(parts[1]) + 1]
    is_cut = max(len(left), len(right)) > _MOST_COMPARED
    found = difflib.unified_diff(left[:_MOST_COMPARED], right[:_MOST_COMPARED], n=1, lineterm="")
    lines = ["@@" if line.startswith("@@") else line for number, line in enumerate(found) if number > 1]
    is_cut = is_cut or len(lines) > MOST_LINES
    return (*lines[:MOST_LINES], *(("… more lines may differ",) if is_cut else ()))


def _lines(text: str) -> list[str]:
    """Return the lines of a text, the long ones sentence by sentence."""
    lines = text.split("\n")
    return [part for line in lines for part in ([line] if len(line) <= _LONG_LINE else _SENTENCE_END.split(line))]


def common_length(one: str, other: str) -> int:
    """Return how many characters two texts begin with in common."""
    return len(commonprefix((one, other)))  # noqa: RUF071 - characters of a text are meant, not parts of a path
