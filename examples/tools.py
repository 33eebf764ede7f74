"""Two tools to try an agent with.

playhead run "How high is Mount Zed in feet, and how much is that in metres?" \
    --model openai/qwen2.5-coder-1.5b --tools examples.tools:lookup,calculator
"""

from __future__ import annotations

import ast
import math
import operator
import re
from typing import TYPE_CHECKING, Final

from playhead import tool

if TYPE_CHECKING:
    from collections.abc import Callable

FACTS: Final = {
    "Mount Zed": "Mount Zed is 4,180 feet high.",
    "Lake Quill": "Lake Quill is 61 metres deep and 9 square kilometres large.",
    "Port Amber": "Port Amber has 48,200 inhabitants.",
    "foot": "One foot is exactly 0.3048 metres.",
    "mile": "One mile is exactly 1,609.344 metres.",
}
OPERATORS: Final[dict[type[ast.AST], Callable[..., float]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}
THOUSANDS: Final = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
LONGEST: Final = 500
LARGEST: Final = 1e15
"""A power beyond this is refused before it is calculated: 9**9**9 would take for ever."""


@tool(read_only=True)
def lookup(key: str) -> str:
    """Look a fact up by its key, such as "Mount Zed"."""
    wanted = key.casefold().strip()
    found = [
        fact for name, fact in FACTS.items() if wanted and (name.casefold() in wanted or wanted in name.casefold())
    ]
    if not found:
        raise LookupError(f"nothing is known about {key!r}; the keys are: {', '.join(FACTS)}")
    return " ".join(found)


@tool(read_only=True)
def calculator(expression: str) -> float:
    """Calculate an arithmetic expression, such as "4180 * 0.3048"."""
    if len(expression) > LONGEST:
        raise ValueError(f"the expression is longer than {LONGEST} characters")
    plain = THOUSANDS.sub("", expression).replace("^", "**").strip()
    try:
        tree = ast.parse(plain, mode="eval")
    except (SyntaxError, ValueError) as error:
        raise ValueError(f"{expression!r} is no arithmetic expression; write it like 4180 * 0.3048") from error
    return _calculate(tree.body)


def _calculate(node: ast.expr) -> float:
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return value
        case ast.UnaryOp(op=op, operand=operand) if type(op) in OPERATORS:
            return OPERATORS[type(op)](_calculate(operand))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            return _apply(type(op), _calculate(left), _calculate(right))
    raise ValueError(f"{ast.unparse(node)!r} is not allowed: numbers, + - * / // % ** and parentheses only")


def _apply(op: type[ast.operator], left: float, right: float) -> float:
    if right == 0 and op in (ast.Div, ast.FloorDiv, ast.Mod):
        raise ZeroDivisionError(f"{left:g} cannot be divided by zero")
    if op is ast.Pow and left and abs(right) * math.log(abs(left)) > math.log(LARGEST):
        raise OverflowError(f"{left:g} ** {right:g} is too large")
    result = OPERATORS[op](left, right)
    if isinstance(result, complex):
        raise ValueError(f"{left:g} ** {right:g} is no real number")  # noqa: TRY004 - the value is wrong, not its type
    return result
