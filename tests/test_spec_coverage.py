"""docs/spec-coverage.md: every row of the catalogue on the kernel and on spans is told, and each test that it names is there and runs."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROW = re.compile(r"^\| ([KT]-\d{3}) \| (.+) \| (.+) \|$", re.MULTILINE)
ROWS = [
    (row, what, tests) for row, what, tests in ROW.findall((ROOT / "docs/spec-coverage.md").read_text(encoding="utf-8"))
]
LEFT_OUT = {"K-037", "K-050", *(f"K-{number}" for number in range(217, 226))}
"""Nothing else is left out as a whole; of K-110, K-133, K-184 and K-193 a part is."""
IN_PART = {"K-110", "K-133", "K-184", "K-193"}


@cache
def marks_of(path: Path) -> dict[str, list[str]]:
    """Return the tests of a file, each with its marks."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = (each for each in ast.walk(tree) if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)))
    return {
        each.name: [ast.unparse(mark) for mark in each.decorator_list]
        for each in found
        if each.name.startswith("test_")
    }


def test_every_row_is_told_once() -> None:
    """No row of the catalogue is missing, and none is there twice."""
    assert [row for row, _, _ in ROWS] == [
        *(f"K-{number:03}" for number in range(1, 229)),
        *(f"T-{number:03}" for number in range(27, 38)),
    ]


def test_what_is_left_out() -> None:
    """What has no test is what was decided to be left out, and says so."""
    assert {row for row, _, tests in ROWS if tests == "-"} == LEFT_OUT
    assert {row for row, what, _ in ROWS if "left out" in what} >= LEFT_OUT | IN_PART


@pytest.mark.parametrize(("row", "tests"), [(row, tests) for row, _, tests in ROWS if tests != "-"])
def test_the_tests_of_a_row_are_there_and_run(row: str, tests: str) -> None:
    """Each is a test of the default suite, which nothing skips."""
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", tests)
    assert named, row
    assert not re.sub(r"`tests/[\w/]+\.py::\w+`,? ?", "", tests), row
    for path, name in named:
        assert not path.startswith(("tests/real/", "tests/backends/")), path
        marks = marks_of(ROOT / path).get(name)
        assert marks is not None, f"{path}::{name} is not there"
        assert not any(re.search(r"\b(skip|skipif|xfail|real)\b", mark) for mark in marks), name
