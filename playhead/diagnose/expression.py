"""Conditions on events as text, such as `tool == "send_mail" and args.amount > 400`. The text is parsed, never evaluated.

The grammar is a part of Python's: fields, literals, comparisons, `in`, `and`, `or`, `not`, `len(…)` and `matches(…, "regex")`.
`a.b` names the key `b` of the JSON object `a`, never an attribute. Regular expressions are RE2's, which take linear time.
"""

from __future__ import annotations

import ast
import operator
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from pydantic_core import to_json

from playhead.errors import UsageError, nearest
from playhead.trace.detection import compiled
from playhead.trace.events import EVENT_TYPES

if TYPE_CHECKING:
    from collections.abc import Iterator

LONGEST: Final = 2000
"""The longest expression, in characters."""
MISSING: Final = object()
"""The value of a field that the event does not have."""
_OF_THE_LINE: Final = ("seq", "ts", "kind", "owner", "iteration", "data")
"""Fields that every event has; `data` holds the fields of its kind."""
_WORDS: Final = {"true": True, "false": False, "null": None}
_EXAMPLE: Final = """Write it like: tool == "send_mail" and args.amount > 400"""

Value = Callable[[dict[str, Any]], Any]
_ORDER: Final[dict[type, Callable[[Any, Any], bool]]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


@dataclass(frozen=True, slots=True)
class Expression:
    """A condition on an event."""

    holds: Value
    """Takes the fields of an event's line, and returns whether the condition holds."""
    literal: bytes
    """What the line of every event has that meets the condition, as JSON; empty when nothing is known."""


def parse_expression(text: str) -> Expression:
    """Return the condition that a text states.

    Raises:
        UsageError: the text is not such a condition; the message says which part.
    """
    if len(text) > LONGEST:
        raise UsageError(f"the expression has {len(text):,} characters; the longest has {LONGEST:,}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of "\d", and of `1 is 1`
            tree = ast.parse(text.strip(), mode="eval").body
            literal = max(_literals(tree), key=len, default=b"")
            return Expression(_condition(tree), literal.removesuffix(b'"') or literal)  # the end is compared first
    except (SyntaxError, ValueError) as error:
        raise UsageError(f"the expression cannot be read: {getattr(error, 'msg', error)}. {_EXAMPLE}") from None
    except (RecursionError, MemoryError):
        raise UsageError("the expression is nested too deep") from None


# --- conditions -------------------------------------------------------------------------------------------------------


def _condition(node: ast.expr) -> Value:  # noqa: PLR0911 - a grammar
    match node:
        case ast.BoolOp(op=ast.And(), values=values):
            every = [_condition(each) for each in values]
            return lambda line: all(each(line) for each in every)
        case ast.BoolOp(values=values):
            some = [_condition(each) for each in values]
            return lambda line: any(each(line) for each in some)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            denied = _condition(operand)
            return lambda line: not denied(line)
        case ast.Compare(left=left, ops=ops, comparators=others):
            sides = [_value(each) for each in (left, *others)]
            pairs = [(_comparison(op), *two) for op, two in zip(ops, pairwise(sides), strict=True)]
            return lambda line: all(holds(a(line), b(line)) for holds, a, b in pairs)
        case ast.Constant(value=str(text)) if text:
            return lambda line: any(text in each for each in _texts(line["data"]))
        case ast.Call(func=ast.Name(id="matches"), args=[field, ast.Constant(value=str(pattern))], keywords=[]):
            return _match(_value(field), pattern)
        case ast.Name() | ast.Attribute() | ast.Subscript():
            value = _value(node)
            return lambda line: (found := value(line)) is not MISSING and bool(found)
    raise _refused(node)


def _match(value: Value, pattern: str) -> Value:
    import re2  # noqa: PLC0415 - takes 6 ms

    try:
        search = compiled(pattern).search
    except re2.error as error:
        raise UsageError(f"the regular expression cannot be used: {error}") from None
    return lambda line: isinstance(text := value(line), str) and bool(search(text.encode("utf-8", "surrogatepass")))


def _comparison(op: ast.cmpop) -> Callable[[Any, Any], bool]:
    """Return a comparison that is false for values of different types, and for a field that is missing."""
    if isinstance(op, (ast.Is, ast.IsNot)):
        raise UsageError("`is` does not compare values: write ==")
    if isinstance(op, (ast.In, ast.NotIn)):
        return lambda a, b: MISSING not in (a, b) and _contains(b, a) == isinstance(op, ast.In)
    if isinstance(op, (ast.Eq, ast.NotEq)):
        return lambda a, b: MISSING not in (a, b) and _equal(a, b) == isinstance(op, ast.Eq)
    order = _ORDER[type(op)]
    return lambda a, b: _type(a) is _type(b) and _type(a) in (float, str) and order(a, b)


def _contains(whole: Any, part: Any) -> bool:  # noqa: ANN401 - JSON
    if isinstance(whole, str):
        return isinstance(part, str) and part in whole
    return isinstance(whole, (list, dict)) and any(_equal(each, part) for each in whole)


def _equal(a: Any, b: Any) -> bool:  # noqa: ANN401 - JSON
    return _type(a) is _type(b) and bool(a == b)


def _type(value: Any) -> type:  # noqa: ANN401 - JSON
    return float if type(value) is int else type(value)  # true is no number


def _texts(value: Any) -> Iterator[str]:  # noqa: ANN401 - JSON
    """Yield every key and every text of a value."""
    stack = [value]
    while stack:
        each = stack.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, list):
            stack += each
        elif isinstance(each, dict):
            stack += each.keys()
            stack += each.values()


# --- values -----------------------------------------------------------------------------------------------------------


def _value(node: ast.expr) -> Value:  # noqa: PLR0911 - a grammar
    match node:
        case ast.Constant(value=bool() | int() | float() | str() | None as literal):
            return lambda _: literal
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return lambda _: -number
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            values = [_value(each) for each in parts]
            return lambda line: [each(line) for each in values]
        case ast.Call(func=ast.Name(id="len"), args=[inner], keywords=[]):
            measured = _value(inner)
            return lambda line: len(found) if isinstance(found := measured(line), (str, list, dict)) else MISSING
        case ast.Name(id=word) if word in _WORDS:
            return lambda _: _WORDS[word]
        case ast.Name(id=name):
            return _field(name)
        case ast.Attribute(attr=key) if key.startswith("__"):
            raise UsageError(f"{key!r} is no key of an event: a dot reads keys of JSON, and no attributes")
        case (
            ast.Attribute(value=of, attr=key) | ast.Subscript(value=of, slice=ast.Constant(value=str() | int() as key))
        ):
            return _part(_value(of), key)
    raise _refused(node)


def _field(name: str) -> Value:
    if name in _OF_THE_LINE:
        return lambda line: line.get(name, MISSING)
    known = {field for kind in EVENT_TYPES.values() for field in kind.model_fields}
    if name not in known:
        raise UsageError(f"no event has a field {name!r}; a text stands in quotes: '\"{name}\"'.{nearest(name, known)}")
    return lambda line: line["data"].get(name, MISSING)


def _part(value: Value, key: str | int) -> Value:
    def part(line: dict[str, Any]) -> Any:  # noqa: ANN401 - JSON
        whole = value(line)
        if isinstance(whole, dict):
            return whole.get(key, MISSING)
        return whole[key] if isinstance(whole, list) and isinstance(key, int) and key < len(whole) else MISSING

    return part


def _refused(node: ast.AST) -> UsageError:
    shown = ast.unparse(node)
    shown = shown if len(shown) <= 60 else f"{shown[:60]}…"  # noqa: PLR2004
    return UsageError(f"an expression has no {type(node).__name__.lower()} such as `{shown}` here. {_EXAMPLE}")


# --- what the bytes of a line have to hold ----------------------------------------------------------------------------


def _literals(node: ast.expr) -> Iterator[bytes]:
    """Yield what the line of an event that meets the condition holds: texts, and names of fields."""
    match node:
        case ast.BoolOp(op=ast.And(), values=values):
            for each in values:
                yield from _literals(each)
        case ast.Constant(value=str(text)):
            yield to_json(text)[1:-1]
        case ast.Call(args=[field, _]):
            yield from _names(field)
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            yield from _names(left)
            yield from _names(right)
            if isinstance(op, ast.Eq) and _is_field(left):
                yield from _text(right)
            elif isinstance(op, (ast.Eq, ast.In)) and _is_field(right):
                yield from (text if isinstance(op, ast.Eq) else text[1:-1] for text in _text(left))


def _names(node: ast.expr) -> Iterator[bytes]:
    """Yield the keys of a field's path, as the file writes them."""
    match node:
        case ast.Attribute(value=of, attr=key) | ast.Subscript(value=of, slice=ast.Constant(value=str(key))):
            yield to_json(key)
            yield from _names(of)
        case ast.Name(id=name) if name not in _WORDS:
            yield to_json(name)
        case ast.Call(args=[inner]):
            yield from _names(inner)


def _is_field(node: ast.expr) -> bool:
    return not isinstance(node, ast.Call) and any(_names(node))


def _text(node: ast.expr) -> Iterator[bytes]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield to_json(node.value)
