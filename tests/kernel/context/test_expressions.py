from __future__ import annotations

from contextlib import suppress
from time import process_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.kernel.context import expressions
from playhead.kernel.context.expressions import ExpressionError, as_bounded_text, transformed

ITEMS = [{"name": f"n{number}", "price": number, "tags": ["a", "b"]} for number in range(30)]


def outcome(expression: str, value: Any = ITEMS, size: int = 2000) -> str:
    """Return what an expression makes of a value, as the model reads it."""
    return as_bounded_text(transformed(expression, value, size))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("length(@)", "30"),
        ("[?price > `27`].name", '["n28", "n29"]'),
        ("[1].name", "n1"),
        ("[:2].{n: name, p: price}", '[{"n": "n0", "p": 0}, {"n": "n1", "p": 1}]'),
        ("sum([].price)", "435"),
        ("max_by(@, &price).name", "n29"),
        ("sort_by(@, &price)[0].tags", '["a", "b"]'),
        ("nothing", "null"),
        ("[0].__class__", "null"),
    ],
)
def test_what_it_can_do(expression: str, expected: str):
    """Select, filter, project and count."""
    assert outcome(expression) == expected


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("[?name", "cannot be evaluated: Invalid jmespath expression"),
        ("", "cannot be evaluated"),
        ("to_string(@)", "there is no function 'to_string' here; there are abs, avg"),
        ("join(@, @)", "there is no function 'join' here"),
        ("sum([].name)", "cannot be evaluated: In function sum"),
        ("&name", "the outcome is no JSON"),
        ("(" * 400, "cannot be evaluated"),
        ("a" * 501, "an expression has at most 500 characters; this has 501"),
        ("[@,@]|" * 60 + "@", "it writes the value down too many times"),
        ("__import__('os').system('true')", "there is no function 'system' here"),
        ("`a`", "cannot be evaluated"),
    ],
    ids=lambda value: value[:12],
)
def test_what_it_refuses(expression: str, message: str):
    """What is no expression, or could make much out of little, is refused in words."""
    with pytest.raises(ExpressionError) as raised:
        outcome(expression)
    assert message in str(raised.value)
    assert len(str(raised.value)) < 400


def test_values_that_are_too_large():
    """Neither a value nor an outcome may be of any length."""
    with pytest.raises(ExpressionError, match="the value has 300001 characters"):
        outcome("@", size=300_001)
    with pytest.raises(ExpressionError, match="the outcome has more than 100000 characters"):
        outcome("|".join([f"[{','.join('@' * 16)}]"] * 2))


@pytest.mark.parametrize(
    "expression",
    [
        "[@,@][]|" * 8 + "@",
        "map(&map(&[@,@],@),@)",
        "[*].[*]",
        "[?contains(tags, 'a')]" * 20,
        "[].[@,@][]|" * 7 + "length(@)",
    ],
)
def test_hostile_expressions_end_soon(expression: str, monkeypatch: pytest.MonkeyPatch):
    """Work is counted, not timed: whatever is written, it ends within its bounds."""
    visited = 0
    visit = expressions._Bounded.visit

    def counted(self: Any, node: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal visited
        visited += 1
        return visit(self, node, *args, **kwargs)

    monkeypatch.setattr(expressions._Bounded, "visit", counted)
    many = [{"name": "n" * 20, "tags": ["a", ["b", ["c"]]]} for _ in range(4000)]
    started = process_time()
    with suppress(ExpressionError):
        outcome(expression, many, 250_000)
    assert visited <= expressions.MAX_WORK + 100
    assert process_time() - started < 20


@given(st.text("[]{}()@*|&.,:?<>=!`'\"ab01 -", max_size=60))
def test_any_text(expression: str):
    """There is an outcome or an error in words, and nothing else."""
    with suppress(ExpressionError):
        assert outcome(expression) is not None
