"""The lenient JSON reader."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead.kernel.repair.lenient_json import BrokenJsonError, json_blocks, read_json
from tests.proving import bound, sample

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**50), 2**50) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ("{'a': 'it\\'s', 'b': None, 'c': True,}", {"a": "it's", "b": None, "c": True}),
        ('{a: "x", /* why */ b: [1, 2,], // so\n}', {"a": "x", "b": [1, 2]}),
        ('{"a": "two\nlines \\d+"}', {"a": "two\nlines \\d+"}),
        ("{'a': '\\ud83d\\ude00'}", {"a": "\U0001f600"}),
    ],
)
def test_repairable_json(written: str, value: Any):
    """JSON with one reading is read."""
    assert read_json(written) == value


@pytest.mark.parametrize(
    "written",
    ["", "}", "]{", '{"a": "x" "b": "y"}', '[{"a": 1} {"b": 2}]', '{"a": [1, 2}', '{"a": {"b": "c"', '{"a": true',
     '{"a": "He said "hi", then left", "b": 2}', '{"a": 1}}', '{"a": 1', '{"a": "x', '{"a": "x",', '{"a":', '{"a": [1, 2', '{"a": tru', '{"a": 1, "a": 2}', '["a" "b"]', "[1 2]",
     '{"a": NaN}', '{"a": {"b": 1], "c": 2}', '{"a": "C:\\new\\app"}', '{"a": x}', '{"a": 1} and more', "{" * 101 + "}" * 101],
)  # fmt: skip
def test_refused_json(written: str):
    """JSON that was cut off, repeats a key, or has two readings, is refused."""
    with pytest.raises(BrokenJsonError):
        read_json(written)


@pytest.mark.slow
@settings(max_examples=sample(100, 40))
@given(st.dictionaries(st.text(), JSON), st.integers(0, 200))
def test_truncated_json(value: Any, cut: int):
    """A truncated text has no value."""
    whole = json.dumps(value, separators=(",", ":"))
    if cut < len(whole):
        with pytest.raises(BrokenJsonError):
            read_json(whole[:cut])


@given(st.text(alphabet="{}[]:,\"'\\ \n/a1tn-.", max_size=300))
def test_any_text_can_be_read(written: str):
    """Reading any text ends."""
    assert all(block.problem is not None or block.value is not None for block in json_blocks(written))


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit",
    [
        "{",
        "[",
        '{"a":',
        '{"a":[',
        '"',
        "'{\"",
        '{"a" ',
        "{//x\n",
        "{/*",
        '{"a":"b" c" ',
        "[1,",
        "{} ",
    ],
)
def test_hostile_text_costs_linear_time(unit: str):
    """A megabyte of near-JSON is given up quickly."""
    began = time.process_time()
    assert len(list(json_blocks(unit * (sample(1_000_000, 100_000) // len(unit))))) < 500_000
    assert time.process_time() - began < bound(5)
