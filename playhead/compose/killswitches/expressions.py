"""Killswitches as text: `budget_limit(max_tokens=20000)`. The text is parsed, and never evaluated.

What it may hold is one call of a known switch with literal arguments. The switch itself is then called with them, so that
there is one set of rules for what is valid, here and in code.
"""

from __future__ import annotations

import ast
import inspect
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from playhead.compose.killswitches.approval import require_approval_for
from playhead.compose.killswitches.breaker import circuit_breaker
from playhead.compose.killswitches.budget import budget_limit
from playhead.compose.killswitches.clock import timeout_after, watchdog
from playhead.compose.killswitches.files import kill_file
from playhead.compose.killswitches.loop import max_iterations
from playhead.compose.killswitches.prices import PRICE_FORM, is_price, no_prices
from playhead.compose.killswitches.tool_calls import tool_limit
from playhead.errors import UsageError, nearest
from playhead.trace.usage import Prices

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.compose.harness import Block

SWITCHES: Final[dict[str, Callable[..., Block]]] = {
    each.__name__: each
    for each in (
        budget_limit,
        circuit_breaker,
        max_iterations,
        require_approval_for,
        timeout_after,
        tool_limit,
        watchdog,
    )
}
"""The switches that can be written so, by name."""
_ALL: Final[dict[str, Callable[..., Block]]] = {**SWITCHES, kill_file.__name__: kill_file}
NOT_AS_TEXT: Final = {
    "kill_file": "it depends on a file that existed, or did not, while the run went on, and no recording says that",
    "stop_when": "it is code of yours, and an expression holds none",
}
"""The other switches, and why they cannot be looked for in a recording."""
LONGEST: Final = 2000
"""Characters of an expression."""
DEEPEST: Final = 8
"""Lists and dicts within each other."""
_SHOWN: Final = 60
_PRICES: Final = {"input_usd", "output_usd", "cache_read_usd", "cache_write_usd"}


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
        live: whether it is for a run that is to come, and so may be `kill_file`, which no recording can tell of.

    Raises:
        UsageError: it is no call of a known switch with literal arguments, or the switch does not take these.
    """
    call = _parsed(text)
    name = _name_of(call.func, live=live)
    switch = _ALL[name]
    positional = [_literal(each, name) for each in call.args]
    named = _once([(_argument_name(each, name), _literal(each.value, name)) for each in call.keywords], name)
    _check_arguments(name, positional, named)
    if name == "budget_limit" and named.get("prices") is not None:
        named["prices"] = _prices(named["prices"])
    try:
        return SwitchExpression(text.strip(), name, switch(*positional, **named))
    except (ArithmeticError, TypeError, ValueError) as error:  # a literal of a kind that nobody thought of
        raise UsageError(f"{name} cannot be called with these arguments: {_short(str(error))}") from None


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
    if isinstance(expression, ast.Name) and expression.id in {*SWITCHES, *NOT_AS_TEXT}:
        known = expression.id
        raise UsageError(f"the switch {known} is given without arguments: write {_usage(known)}")
    if not isinstance(expression, ast.Call):
        raise UsageError(f"{_short(text)} is not the call of a switch. {_EXAMPLE}")
    return expression


_EXAMPLE: Final = "Write it as in code, such as budget_limit(max_tokens=20000)"


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


def _argument_name(argument: ast.keyword, switch: str) -> str:
    if argument.arg is None:
        raise UsageError(f"{switch}: ** has no place in an expression; name each argument")
    return argument.arg


def _check_arguments(switch: str, positional: list[Any], named: dict[str, Any]) -> None:
    """See that the switch has these arguments; their values are its own to check."""
    signature = inspect.signature(_ALL[switch])
    for name in named:
        if name not in signature.parameters:
            raise UsageError(f"{switch} has no argument {_short(name)}.{nearest(name, signature.parameters)}")
    try:
        signature.bind(*positional, **named)
    except TypeError as error:
        raise UsageError(f"{switch}: {error}; it is {_usage(switch)}") from None


def _literal(node: ast.expr, switch: str, depth: int = 0) -> Any:  # noqa: ANN401 - a literal
    """Return the value of a literal; of anything else it is told where it stands."""
    if depth > DEEPEST:
        raise UsageError(f"{switch}: lists and dicts are at most {DEEPEST} deep")
    match node:
        case ast.Constant(value=bool() | int() | float() | str() | None as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            if not isinstance(value, bool):
                return -value
        case ast.List(elts=elements):
            return [_literal(each, switch, depth + 1) for each in elements]
        case ast.Tuple(elts=elements):
            return tuple(_literal(each, switch, depth + 1) for each in elements)
        case ast.Dict(keys=keys, values=values):
            items = zip(keys, values, strict=True)
            return _once([_item(key, value, switch, depth + 1) for key, value in items], switch)
    raise UsageError(_no_literal(node, switch))


def _once(pairs: list[tuple[str, Any]], switch: str) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise UsageError(f"{switch}: {_short(twice)} is given twice")
    return found


def _item(key: ast.expr | None, value: ast.expr, switch: str, depth: int) -> tuple[Any, Any]:
    if not (isinstance(key, ast.Constant) and isinstance(key.value, str)):
        raise UsageError(f"{switch}: the names in a dict are texts in quotes")
    return key.value, _literal(value, switch, depth)


def _no_literal(node: ast.expr, switch: str) -> str:
    start = f"{switch}, at character {node.col_offset + 1}"
    if isinstance(node, ast.Name):
        if node.id == "FREE":
            return f"{start}: write [0, 0] for the prices of a model that costs nothing"
        return f"{start}: {_short(node.id)} is a name, and an expression holds none; a text stands in quotes"
    if isinstance(node, ast.Call):
        return f"{start}: a call has no place in the arguments"
    return f"{start}: that is no literal; there are numbers, texts, lists, dicts, None, True and False"


def _prices(given: object) -> dict[str, Prices]:
    """Return prices by model, each written as `[input_usd, output_usd]` or as a dict of the fields of `Prices`."""
    if not isinstance(given, dict):
        raise UsageError(f"prices is a dict by model; {PRICE_FORM}")
    return {model: _price(model, price) for model, price in given.items()}


def _price(model: str, given: object) -> Prices:
    fields = dict(zip(("input_usd", "output_usd"), given, strict=False)) if isinstance(given, (list, tuple)) else given
    sound = (
        isinstance(fields, dict)
        and {"input_usd", "output_usd"} <= fields.keys() <= _PRICES
        and (isinstance(given, dict) or len(given) == 2)  # type: ignore[arg-type]  # noqa: PLR2004 - a pair
        and all(is_price(each) for each in fields.values())
    )
    if not sound:
        raise no_prices(model, given, PRICE_FORM)
    return Prices.model_validate(fields)


def _usage(switch: str) -> str:
    """Return how a switch is called."""
    if switch not in _ALL:
        return f"{switch}(…)"
    parameters = inspect.signature(_ALL[switch]).parameters.values()
    shown = (each.name if each.kind is not each.KEYWORD_ONLY else f"{each.name}=" for each in parameters)
    return f"{switch}({', '.join(shown)})"


def _short(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")
