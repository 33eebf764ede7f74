"""Any value becomes strict JSON, and what can comes back."""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import decimal
import enum
import hashlib
import itertools
import json
import pathlib
import types
import uuid
from typing import Any

import pytest
from hypothesis import example, given
from pydantic import BaseModel

from playhead.trace.values import (
    MAX_DEPTH,
    SAFE_INTEGER,
    as_text,
    canonical_json,
    content_hash,
    from_json,
    json_hash,
    repair_json,
    scrub,
    to_json,
    untagged,
)
from tests.trace.strategies import any_texts, json_values, python_values, same, through_a_file


@given(python_values)
@example({1: "int", "1": "text"})
@example({"$type": "bytes", "utf8": "AAAA"})
def test_round_trip(value: Any):
    """Builtins come back from strict JSON text as they were: types, keys, bytes, sets, any number.

    `repair_json` leaves alone what `to_json` made, tags included.
    """
    assert same(from_json(through_a_file(value)), value)
    assert same(repair_json(to_json(value)), to_json(value))


@pytest.mark.slow
@given(json_values)
def test_json_is_its_own_form(value: Any):
    """What is JSON already stays untouched, and is what a model reads, whatever keys it has."""
    assert [same(function(value), value) for function in (to_json, from_json, untagged)] == [True] * 3
    assert same(untagged(to_json({"$type": "int", "value": value})), {"$type": "int", "value": value})


@given(any_texts)
def test_scrubbed_text_can_be_written(text: str):
    """`scrub` makes any text writable as UTF-8, and leaves writable text alone; a pair of surrogates is its character."""
    assert scrub("a\ud83d\ude00b\udc00") == "a😀b\ufffd"
    scrubbed = scrub(text)
    scrubbed.encode()
    assert scrub(scrubbed) == scrubbed


@pytest.mark.slow
@given(python_values)
def test_the_hash_of_a_recorded_value_is_that_of_the_value(value: Any):
    """Whoever has only the trace computes the same hash as whoever had the value; what slipped through untagged has one, too."""
    assert json_hash([float("nan"), "\ud800"]) == json_hash(repair_json([float("nan"), "\ud800"]))
    assert json_hash(through_a_file(value)) == content_hash(value) == hashlib.sha256(canonical_json(value)).hexdigest()


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


@dataclasses.dataclass
class Point:
    x: Any
    y: Any = b"\xff"


class Model(BaseModel):
    when: dt.date
    tags: set[str]


PLAIN = [
    (Colour.RED, "red"),
    (Level.HIGH, 3),
    ((1, (2,)), [1, [2]]),
    (collections.deque([1]), [1]),
    (types.MappingProxyType({"a": 1}), {"a": 1}),
    (Point(1), {"x": 1, "y": {"$type": "bytes", "latin1": "ÿ"}}),
    (Model(when=dt.date(2026, 1, 2), tags={"b", "a"}), {"when": "2026-01-02", "tags": to_json({"a", "b"})}),
    (dt.datetime(2026, 1, 2, 3, 4, tzinfo=dt.UTC), "2026-01-02T03:04:00Z"),
    (decimal.Decimal("1.10"), "1.10"),
    (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    (pathlib.PurePosixPath("/a/b"), "/a/b"),
    (memoryview(b"abcd")[::2], {"$type": "bytes", "utf8": "ac"}),
    (bytearray(b"ab"), {"$type": "bytes", "utf8": "ab"}),
]


@pytest.mark.parametrize(("value", "expected"), PLAIN, ids=[type(value).__name__ for value, _ in PLAIN])
def test_well_known_objects_become_plain_json(value: Any, expected: Any):
    """Data classes, models, enums, dates and the like become what stands for them everywhere."""
    assert to_json(value) == expected


def test_the_tags():
    """The tags are those of docs/trace-format.md; keys that are one as JSON stay two, and their tag a tag."""
    tag = to_json({Colour.RED: 1, "red": 2})
    assert tag == from_json(tag) == {"$type": "dict", "entries": [["red", 1], ["red", 2]]}
    assert from_json(to_json({Colour.RED, "red"})) == {"$type": "set", "items": ["red", "red"]}
    assert to_json([SAFE_INTEGER - 1, 1 - SAFE_INTEGER]) == [SAFE_INTEGER - 1, 1 - SAFE_INTEGER]
    values = [2**53, float("-inf"), b"\x00\xff", b"text", {1}, {1: 2}, {"$type": 1}, "a\ud800"]
    assert to_json(values) == [
        {"$type": "int", "value": "9007199254740992"},
        {"$type": "float", "value": "-Infinity"},
        {"$type": "bytes", "latin1": "\x00\xff"},
        {"$type": "bytes", "utf8": "text"},
        {"$type": "set", "items": [1]},
        {"$type": "dict", "entries": [[1, 2]]},
        {"$type": "dict", "entries": [["$type", 1]]},
        {"$type": "text", "text": "a\ufffd", "lossy": True},
    ]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (2**53, 2**53),
        (-(2**2048) + 1, -(2**2048) + 1),
        (2**2048, hex(2**2048)),
        (float("nan"), "NaN"),
        ([float("-inf")], ["-Infinity"]),
        (b"text", "text"),
        ("a\ud800", "a\ufffd"),
        ({"id": {"inner": [2**60]}}, {"id": {"inner": [2**60]}}),
        ({"$type": "int", "value": "5"}, {"$type": "int", "value": "5"}),
        ({"a\ud800": 2**60}, {"a\ufffd": 2**60}),
        ({1: 2**60}, {"$type": "dict", "entries": [[1, 2**60]]}),
        ({b"a": 1, "a": 2}, {"$type": "dict", "entries": [["a", 1], ["a", 2]]}),
        *[(value, to_json(value)) for value in (b"\xff", {1, 2}, object)],
    ],
    ids=lambda value: repr(value if not isinstance(value, int) else value % 1000)[:40],
)
def test_what_a_tag_says(value: Any, shown: Any):
    """What leaves for a model is the value itself wherever JSON text can say it, strings bare; else it keeps its tag."""
    assert untagged(to_json(value)) == shown
    assert as_text(to_json(value)) == (shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False))


FOREIGN: list[dict[str, Any]] = [
    {"$type": "int"}, {"$type": "bytes", "latin1": "\ufffd"}, {"$type": "bytes", "latin1": 1}, {"$type": "bytes", "utf8": 5},
    {"$type": "set", "items": [{"a": 1}]}, {"$type": "set", "items": 3}, {"$type": "dict", "entries": [[1]]},
    {"$type": "dict", "entries": 5}, {"$type": "no such tag"}, {"$type": ["bytes"]},
]  # fmt: skip


def test_a_tag_that_means_nothing_stays_as_it_is():
    """A tag that somebody else wrote, or that redaction changed, is never an error."""
    assert [from_json(tag) for tag in FOREIGN] == FOREIGN
    assert [untagged(tag) for tag in FOREIGN] == FOREIGN
    for shown in ("[redacted:key]", "9" * 5000, "1_0", "x", ""):
        assert untagged({"$type": "int", "value": shown}) == shown


def test_rfc_8785_example():
    """The example of RFC 8785, section 3.2.3, whose integral float is tagged: keys in UTF-16 order, numbers as in ECMAScript."""
    given_value = {
        "numbers": [333333333.33333329, 1e30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": "\u20ac$\u000f\u000aA'\u0042\u0022\u005c\\\"/",
        "literals": [None, True, False],
    }
    assert canonical_json(given_value) == (
        b'{"literals":[null,true,false],"numbers":[333333333.3333333,{"$type":"float","value":"1e+30"},4.5,0.002,1e-27],'
        b'"string":"\xe2\x82\xac$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )


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
    **{kind.__name__: kind for kind in (NoRepr, BadRepr, Liar)},
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


@pytest.mark.slow
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
