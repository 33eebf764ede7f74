"""Killswitches as text, such as `budget_limit(max_tokens=20000)`. The text is parsed, never evaluated.

It must be one call of a known switch with literal arguments. The switch itself is then called with them, so the same rules
apply here and in code.
"""

from __future__ import annotations

import ast
import inspect
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from playhead.compose import killswitches
from playhead.errors import UsageError, nearest

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.compose.harness import Block

SWITCHES: Final[dict[str, Callable[..., Block]]] = {
    name: getattr(killswitches, name)
    for name in vars(killswitches)["__all__"]
    if name.islower() and name != "stop_when"
}
"""The switches that can be written as text, by name: all but `stop_when`, which takes code."""
NOT_BACKTESTED: Final = {
    "kill_file": "it depends on a file of that time, which no recording holds",
    "require_approval_for": "it depends on an approver's answer, which no recording holds",
    "stop_when": "it is code of yours, and an expression holds none",
}
"""Why these switches cannot be backtested."""
LONGEST: Final = 2000
"""The longest expression, in characters."""
LONGEST_REASON: Final = 200
_SHOWN: Final = 60
_EXAMPLE: Final = "Write it as in code, such as budget_limit(max_tokens=20000)"


@dataclass(frozen=True, slots=True)
class SwitchExpression:
    """A switch given as text."""

    text: str
    """The expression as written."""
    name: str
    """The switch."""
    block: Block
    """The block to compose an agent with."""


def parse_switch(text: str, *, live: bool = False) -> SwitchExpression:
    """Return the switch for an expression such as `tool_limit("search", 5)`.

    Args:
        text: the expression.
        live: whether the switch is for a live run, which also allows switches that cannot be backtested.

    Raises:
        UsageError: the text is not a call of a known switch with literal arguments, or the switch does not accept them.
    """
    call = _parsed(text)
    switch = _switch(call.func, live=live)
    name = switch.__name__
    try:
        positional = [ast.literal_eval(each) for each in call.args]
        named = {each.arg or "**": ast.literal_eval(each.value) for each in call.keywords}
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        raise UsageError(
            f"{name} takes literals in an expression: numbers, texts in quotes, lists, dicts, None, True and False, and [0, 0] "
            "for the prices of a model that costs nothing"
        ) from None
    if len(named) < len(call.keywords):
        raise UsageError(f"{name}: an argument is given twice. Its signature: {_usage(switch)}")
    try:
        return SwitchExpression(text.strip(), name, switch(*positional, **named))
    except (ArithmeticError, TypeError, ValueError) as error:
        why = str(error)[:LONGEST_REASON]
        raise UsageError(
            f"{name} cannot be called with these arguments: {why}. Its signature: {_usage(switch)}"
        ) from None


def _parsed(text: str) -> ast.Call:
    if len(text) > LONGEST:
        raise UsageError(f"a killswitch expression has at most {LONGEST:,} characters; this one has {len(text):,}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python's warnings about the text as code
            expression = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        why = error.msg if isinstance(error, SyntaxError) else "it cannot be read"
        raise UsageError(f"the killswitch {_short(text)} is not an expression: {why}. {_EXAMPLE}") from None
    if not isinstance(expression, ast.Call):
        raise UsageError(f"{_short(text)} is not a call of a killswitch. {_EXAMPLE}")
    return expression


def _switch(function: ast.expr, *, live: bool) -> Callable[..., Block]:
    if not isinstance(function, ast.Name):
        raise UsageError(f"call a killswitch by its bare name. {_EXAMPLE}")
    name = function.id
    if name in NOT_BACKTESTED and not (live and name in SWITCHES):
        raise UsageError(f"{name} cannot be {'given as text' if live else 'backtested'}: {NOT_BACKTESTED[name]}")
    if name not in SWITCHES:
        raise UsageError(f"there is no killswitch {_short(name)}.{nearest(name, SWITCHES)}")
    return SWITCHES[name]


def _usage(switch: Callable[..., Block]) -> str:
    """Return how a switch is called."""
    parameters = inspect.signature(switch).parameters.values()
    shown = (each.name if each.kind is not each.KEYWORD_ONLY else f"{each.name}=" for each in parameters)
    return f"{switch.__name__}({', '.join(shown)})"


def _short(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")
