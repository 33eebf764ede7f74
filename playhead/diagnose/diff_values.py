"""Where two JSON values differ: exact, bounded, and not impressed by what a hostile file holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel

from playhead.diagnose.diff_types import Difference
from playhead.trace.parameters import is_unrecorded, may_be_same
from playhead.trace.values import repair_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MOST_DIFFERENCES: Final = 100
"""Places of one value that are told one by one."""
_DEEPEST: Final = 60
"""Levels that are gone down; what differs below is told as a whole."""


def plain(value: Any) -> Any:  # noqa: ANN401 - any field of any event
    """Return a field of an event as JSON; what is JSON already is not copied."""
    if isinstance(value, BaseModel):
        return {name: plain(each) for name, each in value.__dict__.items()}
    if isinstance(value, tuple):
        return [plain(each) for each in value]
    return value


def same(left: Any, right: Any) -> bool:  # noqa: ANN401 - JSON
    """Return whether two JSON values are the same; 1 is 1.0, but not true, and not-a-number is itself.

    Of values that are not recorded and have fingerprints of two keys nobody knows; they count as the same.
    """
    if left is right:
        return True
    try:
        return _same(left, right)
    except RecursionError:
        return repr(repair_json(left)) == repr(repair_json(right))


def _same(left: Any, right: Any) -> bool:  # noqa: ANN401 - JSON
    if isinstance(left, dict):
        if is_unrecorded(left) and is_unrecorded(right):
            return may_be_same(left, right)
        return (
            isinstance(right, dict)
            and left.keys() == right.keys()
            and all(_same(each, right[key]) for key, each in left.items())
        )
    if isinstance(left, (list, tuple)):
        return isinstance(right, (list, tuple)) and len(left) == len(right) and all(map(_same, left, right))
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    return bool(left == right) or (left != left and right != right)  # noqa: PLR0124 - not-a-number


def written_alike(left: Any, right: Any) -> bool:  # noqa: ANN401 - any field of any event
    """Return whether two fields stand alike in a file: as `same`, but 1 is not 1.0.

    Of values that are not recorded and have fingerprints of two keys nobody knows; they count as alike.
    """
    try:
        return _written_alike(left, right)
    except RecursionError:
        return repr(left) == repr(right)


def _written_alike(left: Any, right: Any) -> bool:  # noqa: ANN401 - any field of any event
    if left is right:
        return True
    if isinstance(left, str) or type(left) is not type(right):
        return isinstance(left, str) and bool(left == right)
    if isinstance(left, dict):
        return _alike_dicts(left, right)
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(_written_alike, left, right))
    if isinstance(left, BaseModel):
        return _written_alike(left.__dict__, right.__dict__) and left.__pydantic_extra__ == right.__pydantic_extra__
    return repr(left) == repr(right) if isinstance(left, float) else bool(left == right)  # -0.0 is not 0.0


def _alike_dicts(left: dict[str, Any], right: dict[str, Any]) -> bool:
    if is_unrecorded(left) and is_unrecorded(right):
        return may_be_same(left, right)
    return len(left) == len(right) and all(
        key in right and _written_alike(each, right[key]) for key, each in left.items()
    )


def differences(
    original: Any,  # noqa: ANN401 - JSON
    replay: Any,  # noqa: ANN401 - JSON
    most: int = MOST_DIFFERENCES,
    equal: Callable[[Any, Any], bool] = same,
) -> tuple[Difference, ...]:
    """Return where two JSON values differ, path by path; lists are compared place by place."""
    found: list[Difference] = []
    for each in _walk(original, replay, "", 0, equal):
        if len(found) == most:
            break
        found.append(each)
    return tuple(found)


def _walk(
    original: Any,  # noqa: ANN401 - JSON
    replay: Any,  # noqa: ANN401 - JSON
    path: str,
    depth: int,
    equal: Callable[[Any, Any], bool],
) -> Iterator[Difference]:
    if isinstance(original, dict) and isinstance(replay, dict) and depth < _DEEPEST and not is_unrecorded(original):
        for key in [*original, *(key for key in replay if key not in original)]:
            place = key_path(path, key)
            if key not in replay:
                yield changed(place, "removed", original=original[key])
            elif key not in original:
                yield changed(place, "added", replay=replay[key])
            else:
                yield from _walk(original[key], replay[key], place, depth + 1, equal)
    elif isinstance(original, list) and isinstance(replay, list) and depth < _DEEPEST:
        for index in range(max(len(original), len(replay))):
            place = f"{path}[{index}]"
            if index >= len(replay):
                yield changed(place, "removed", original=original[index])
            elif index >= len(original):
                yield changed(place, "added", replay=replay[index])
            else:
                yield from _walk(original[index], replay[index], place, depth + 1, equal)
    elif not equal(original, replay):
        yield changed(path, "changed", original=original, replay=replay)


def changed(path: str, change: Any, *, original: Any = None, replay: Any = None) -> Difference:  # noqa: ANN401 - JSON
    """Return a difference whose values are JSON for sure."""
    return Difference(path=path, change=change, original=repair_json(original), replay=repair_json(replay))


def key_path(path: str, key: object) -> str:
    """Return the path of a key below a path."""
    return f"{path}.{key}" if path else str(key)
