"""Expressions over a stored result: JMESPath (jmespath.org), evaluated within bounds, for a model writes them.

JMESPath has no loops, no recursion and no access to anything but the value. What could still make much out of little is
refused (functions that build texts) or counted (values that are written down more than once).
"""

from __future__ import annotations

import json
from typing import Any, Final

import jmespath
from jmespath.exceptions import JMESPathError
from jmespath.visitor import TreeInterpreter

MAX_EXPRESSION: Final = 500
"""Characters of an expression."""
MAX_INPUT: Final = 300_000
"""Characters of the text of a value that is looked at."""
MAX_WORK: Final = 300_000
"""Places of the value that one evaluation may touch."""
MAX_COPIES: Final = 256
"""How many times a value may be written down by `[a, b]` and `{a: b}` in each other."""
MAX_OUTPUT: Final = 100_000
"""Characters of the outcome."""
# fmt: off
FUNCTIONS: Final = frozenset({
    "abs", "avg", "ceil", "contains", "ends_with", "floor", "keys", "length", "map", "max", "max_by", "min", "min_by",
    "not_null", "reverse", "sort", "sort_by", "starts_with", "sum", "to_number", "type", "values",
})
# fmt: on
"""Those of JMESPath that make nothing larger than what they are given."""


class ExpressionError(ValueError):
    """The expression cannot be evaluated; the message is for the model that wrote it."""


def transformed(expression: str, value: Any, size: int) -> Any:  # noqa: ANN401 - JSON
    """Return what an expression makes of a value.

    Args:
        expression: in JMESPath, such as `items[?price > `10`].name`.
        value: JSON without tags.
        size: characters of the value as text.

    Raises:
        ExpressionError: it is none, asks for a function that is not to be had, or would take too long.
    """
    if len(expression) > MAX_EXPRESSION:
        raise ExpressionError(f"an expression has at most {MAX_EXPRESSION} characters; this has {len(expression)}")
    if size > MAX_INPUT:
        raise ExpressionError(f"the value has {size} characters, too many for an expression (at most {MAX_INPUT})")
    try:
        tree: Any = jmespath.compile(expression).parsed
        _require_harmless(tree)
        return _Bounded().visit(tree, value)
    except (JMESPathError, RecursionError, TypeError, ValueError, ArithmeticError, AttributeError, Warning) as error:
        if isinstance(error, ExpressionError):
            raise
        said = " ".join(str(error).split())[:200] or type(error).__name__
        raise ExpressionError(f"{expression[:80]!r} cannot be evaluated: {said}") from None


def as_bounded_text(value: Any) -> str:  # noqa: ANN401 - JSON
    """Return an outcome as text, made piece by piece: parts of it may be one and the same thing many times.

    Raises:
        ExpressionError: it is too long.
    """
    if isinstance(value, str):
        return value
    pieces: list[str] = []
    room = MAX_OUTPUT
    try:
        for piece in json.JSONEncoder(ensure_ascii=False).iterencode(value):
            room -= len(piece)
            if room < 0:
                raise ExpressionError(f"the outcome has more than {MAX_OUTPUT} characters; select less")
            pieces.append(piece)
    except (RecursionError, TypeError):
        raise ExpressionError("the outcome is no JSON; end with a value, not with an expression") from None
    return "".join(pieces)


def _require_harmless(tree: dict[str, Any]) -> None:
    copies, nodes = 1, [tree]
    while nodes:
        node = nodes.pop()
        if node["type"] == "function_expression" and node["value"] not in FUNCTIONS:
            known = ", ".join(sorted(FUNCTIONS))
            raise ExpressionError(f"there is no function {node['value']!r} here; there are {known}")
        if node["type"].startswith("multi_select"):
            copies *= max(len(node["children"]), 1)
        if copies > MAX_COPIES:
            raise ExpressionError("it writes the value down too many times; select less at once")
        nodes += [child for child in node["children"] if isinstance(child, dict) and "type" in child]


class _Bounded(TreeInterpreter):
    """Counts what it touches, and stops when that is too much."""

    def __init__(self) -> None:
        super().__init__()
        self._left = MAX_WORK

    def visit(self, node: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - JSON
        outcome = super().visit(node, *args, **kwargs)
        self._left -= 1 + (len(outcome) if isinstance(outcome, (list, dict)) else 0)
        if self._left < 0:
            raise ExpressionError("it touches too many places of the value; select less first, as in `[:100].name`")
        return outcome
