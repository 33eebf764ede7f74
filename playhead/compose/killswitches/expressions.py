"""Killswitches as text: `budget_limit(max_tokens=20000)`. The text is parsed, and never evaluated.

What it may hold is one call of a known switch with literal arguments. The switch itself is then called with them, so that
there is one set of rules for what is valid, here and in code.
"""

from __future__ import annotations

import ast
import inspect
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from playhead.compose.killswitches.approval import require_approval_for
from playhead.compose.killswitches.breaker import circuit_breaker
from playhead.compose.killswitches.budget import budget_limit
from playhead.compose.killswitches.clock import timeout_after, watchdog
from playhead.compose.killswitches.files import kill_file
from playhead.compose.killswitches.loop import max_iterations
from playhead.compose.killswitches.tool_calls import tool_limit
from playhead.errors import UsageError, nearest

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.compose.harness import Block

SWITCHES: Final[dict[str, Callable[..., Block]]] = {
    each.__name__: each
    for each in (
        budget_limit,
        circuit_breaker,
        max_iterations,
        timeout_after,
        tool_limit,
        watchdog,
    )
}
"""The switches that can be written so, by name."""
_ALL: Final[dict[str, Callable[..., Block]]] = {
    **SWITCHES,
    kill_file.__name__: kill_file,
    require_approval_for.__name__: require_approval_for,
}
NOT_AS_TEXT: Final = {
    "kill_file": "it depends on a file of that time, which no recording holds",
    "require_approval_for": "it depends on an approver's answer, which no recording holds",
    "stop_when": "it is code of yours, and an expression holds none",
}
"""The other switches, and why they cannot be looked for in a recording."""
LONGEST: Final = 2000
"""Characters of an expression."""
_SHOWN: Final = 60
_EXAMPLE: Final = "Write it as in code, such as budget_limit(max_tokens=20000)"


@dataclass(frozen=True, slots=True)
class SwitchExpression:
    """A switch that was given as text."""

    text: str
    """The expression, as it was written."""
    name: str
    """The switch."""
    block: Block
    """What an agent would be composed with."""


def parse_switch(text: str, *, live: bool = False) -> SwitchExpression:
    """Return the switch that an expression means, such as `tool_limit("search", 5)`.

    Args:
        text: the expression.
        live: whether it is for a live run, which may have switches that no recording can be backtested with.

    Raises:
        UsageError: it is no call of a known switch with literal arguments, or the switch does not take these.
    """
    call = _parsed(text)
    name = _name_of(call.func, live=live)
    named = [(each.arg or "**", each.value) for each in call.keywords]
    for argument, _ in named:
        _check_argument(name, argument, [each for each, _ in named])
    try:
        positional = [ast.literal_eval(each) for each in call.args]
        arguments = {argument: ast.literal_eval(value) for argument, value in named}
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        raise UsageError(
            f"{name} takes literals in an expression: numbers, texts in quotes, lists, dicts, None, True and False, and [0, 0] "
            "for the prices of a model that costs nothing"
        ) from None
    try:
        return SwitchExpression(text.strip(), name, _ALL[name](*positional, **arguments))
    except (ArithmeticError, TypeError, ValueError) as error:
        why = _short(str(error))
        raise UsageError(f"{name} cannot be called with these arguments: {why}; it is {_usage(name)}") from None


def _parsed(text: str) -> ast.Call:
    if len(text) > LONGEST:
        raise UsageError(f"a switch is at most {LONGEST:,} characters long; this one has {len(text):,}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of Python, about the text as code
            expression = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        why = error.msg if isinstance(error, SyntaxError) else "it cannot be read"
        raise UsageError(f"the switch {_short(text)} is no expression: {why}. {_EXAMPLE}") from None
    if not isinstance(expression, ast.Call):
        raise UsageError(f"{_short(text)} is not the call of a switch. {_EXAMPLE}")
    return expression


def _name_of(function: ast.expr, *, live: bool) -> str:
    if not isinstance(function, ast.Name):
        raise UsageError(f"a switch is called by its bare name. {_EXAMPLE}")
    known = _ALL if live else SWITCHES
    if function.id in known:
        return function.id
    if function.id in NOT_AS_TEXT:
        cannot = "be given as text" if live else "be backtested"
        raise UsageError(f"{function.id} cannot {cannot}: {NOT_AS_TEXT[function.id]}")
    raise UsageError(f"there is no switch {_short(function.id)}.{nearest(function.id, known)}")


def _check_argument(switch: str, argument: str, given: list[str]) -> None:
    parameters = inspect.signature(_ALL[switch]).parameters
    if argument not in parameters:
        raise UsageError(f"{switch} has no argument {_short(argument)}.{nearest(argument, parameters)}")
    if given.count(argument) > 1:
        raise UsageError(f"{switch}: {_short(argument)} is given twice")


def _usage(switch: str) -> str:
    """Return how a switch is called."""
    parameters = inspect.signature(_ALL[switch]).parameters.values()
    shown = (each.name if each.kind is not each.KEYWORD_ONLY else f"{each.name}=" for each in parameters)
    return f"{switch}({', '.join(shown)})"


def _short(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")
