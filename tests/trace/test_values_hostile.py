"""Nothing raises, whatever the object does when it is looked at."""

from __future__ import annotations

import dataclasses
import itertools
import json
from typing import Any

import pytest

from playhead.trace.values import MAX_DEPTH, content_hash, from_json, to_json
from tests.trace.strategies import through_a_file


@dataclasses.dataclass
class Point:
    x: Any
    y: Any = b"\xff"


class NoRepr:
    def __repr__(self) -> str:
        raise ZeroDivisionError


class BadRepr:
    def __repr__(self) -> str:
        return "\ud800"


class Liar:
    @property  # type: ignore[misc]
    def __class__(self) -> type:
        raise RuntimeError("who asks?")


class NoIter(list):
    def __iter__(self):
        yield 1
        raise KeyError("no more")


class NoHash(dict):
    def items(self):
        return [([], 1), (NoRepr(), 2)]


class NoField:
    __dataclass_fields__ = Point.__dataclass_fields__


class Meta(type):
    def __getattribute__(cls, name: str) -> Any:
        if name in {"__module__", "__qualname__"}:
            raise MemoryError
        return super().__getattribute__(name)


class Nameless(metaclass=Meta):
    pass


def released() -> memoryview:
    """Return memory that is no longer there."""
    view = memoryview(b"a")
    view.release()
    return view


def deep(levels: int, wrap: Any) -> Any:
    """Return a value wrapped so many times."""
    value: Any = "bottom"
    for _ in range(levels):
        value = wrap(value)
    return value


def cycle() -> list[Any]:
    """Return a list that is inside itself, twice."""
    loop: list[Any] = []
    loop.append({"again": loop, "and": (loop,)})
    return loop


def graph() -> Point:
    """Return a data class that is inside itself."""
    point = Point(None)
    point.x = [point, point]
    return point


HOSTILE = {
    **{kind.__name__: kind for kind in (NoRepr, BadRepr, Liar, NoHash, NoField, Nameless)},
    "failing iteration": lambda: NoIter([1, 2]),
    "endless iterator": itertools.count,
    "endless range": lambda: range(10**18),
    "released memory": released,
    "cycle": cycle,
    "cycle of data classes": graph,
    "class": lambda: Point,
    "100,000 lists": lambda: deep(100_000, lambda inner: [inner]),
    "100,000 odd dicts": lambda: deep(100_000, lambda inner: {1: inner}),
    "10,000 data classes": lambda: deep(10_000, Point),
}


@pytest.mark.parametrize("make", HOSTILE.values(), ids=HOSTILE)
def test_nothing_raises(make: Any):
    """Whatever the object does when it is looked at, it becomes strict JSON beside its neighbours, and has a hash.

    So does one that a caller gives at the end of its stack.
    """
    value = make()
    first, second, third = through_a_file([1, value, {"k": value}])
    assert first == 1
    assert second == third["k"] or "too-deep" in json.dumps(second)
    assert len(content_hash(value)) == 64
    from_json(second)
    through_a_file(dive(value))


def dive(value: Any) -> Any:
    """Return what becomes of a value where no stack is left."""
    try:
        return dive(value)
    except RecursionError:
        return to_json(value)


def test_lossy_forms():
    """What cannot come back says so, and says what it was; recording a generator does not consume it."""
    generator = iter([1])
    assert (to_json(generator)["lossy"], list(generator)) == (True, [1])
    assert to_json(cycle()) == [
        {"again": {"$type": "cycle", "lossy": True}, "and": [{"$type": "cycle", "lossy": True}]}
    ]
    for value, name, shown in (
        (NoIter(), f"{__name__}.NoIter", "<KeyError while it was read>"),
        (NoRepr(), f"{__name__}.NoRepr", "<ZeroDivisionError>"),
        (range(3), "builtins.range", "range(0, 3)"),
    ):
        assert to_json(value) == {"$type": "object", "class": name, "repr": shown, "lossy": True}


@pytest.mark.parametrize("wrap", [lambda inner: [inner], lambda inner: {"a": inner}, lambda inner: {1: inner}])
def test_depth_is_counted_in_levels_of_json(wrap: Any):
    """Whatever is nested, its JSON is never deeper than the limit and a tag: every parser reads it; up to there it comes back."""
    value = deep(MAX_DEPTH // 3, wrap)
    assert from_json(to_json(value)) == value
    text = json.dumps(to_json(deep(10_000, wrap)))
    depth = max(itertools.accumulate({"[": 1, "{": 1, "]": -1, "}": -1}.get(character, 0) for character in text))
    assert MAX_DEPTH <= depth <= MAX_DEPTH + 4
