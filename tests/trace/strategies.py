"""Random values and random events, for the property tests."""

from __future__ import annotations

import json
import math
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

from hypothesis import strategies as st
from pydantic_core import to_json as dump

from playhead.trace.events import EVENT_TYPES, EventBase, UnknownEvent
from playhead.trace.values import SAFE_INTEGER, to_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import BaseModel
    from pydantic.fields import FieldInfo

_SURROGATES: tuple[Literal["Cs"]] = ("Cs",)

texts = st.text(st.characters(exclude_categories=_SURROGATES), max_size=12)
"""Texts that UTF-8 can hold."""
any_texts = st.text(st.one_of(st.characters(), st.characters(categories=_SURROGATES)), max_size=12)
"""Texts with lone surrogates among them."""
safe_integers = st.integers(1 - SAFE_INTEGER, SAFE_INTEGER - 1)
numbers = st.floats(allow_nan=False, allow_infinity=False)

json_values = st.recursive(
    st.none() | st.booleans() | safe_integers | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts.filter(lambda key: key != "$type"), inner),
    max_leaves=10,
)
"""What JSON can hold without tags."""

_scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(SAFE_INTEGER - 2, SAFE_INTEGER + 2),
    st.just(10**700),
    st.just(-(10**4000)),
    st.floats(),
    texts,
    st.binary(max_size=8),
)
_keys = st.recursive(
    st.sampled_from(["1", "$type", "a"])
    | st.just(1)
    | _scalars.filter(lambda value: not isinstance(value, float) or not math.isnan(value)),
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.frozensets(inner, max_size=3),
    max_leaves=3,
)
python_values = st.recursive(
    _scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(_keys, inner, max_size=4),
        st.sets(_keys, max_size=4),
        st.fixed_dictionaries({"$type": inner | st.sampled_from(["bytes", "dict", "set", "blob", "text", "int"])}),
    ),
    max_leaves=12,
)
"""Everything that comes back from JSON as it was."""


def same(left: Any, right: Any) -> bool:
    """Return whether two values are equal and of equal types, not-a-number being equal to itself and 0.0 not to -0.0."""
    if type(left) is not type(right):
        return False
    if isinstance(left, float):
        return repr(left) == repr(right)
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    return left == right


def no_constants(name: str) -> None:
    """Refuse what Python's parser takes for a number and JSON does not."""
    raise AssertionError(f"{name} is not JSON")


def through_a_file(value: Any) -> Any:
    """Return the value after it was written as JSON text and parsed by a strict parser."""
    return json.loads(dump(to_json(value)).decode(), parse_constant=no_constants)


def of(annotation: Any) -> st.SearchStrategy[Any]:
    """Return the strategy of a field's annotation."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    return _GENERIC[origin](*parts) if origin in _GENERIC else models(annotation)


def tuples(*parts: Any) -> st.SearchStrategy[Any]:
    """Return the strategy of a tuple's annotation, of fixed length or of any."""
    return st.lists(of(parts[0]), max_size=3).map(tuple) if parts[-1] is ... else st.tuples(*map(of, parts))


def annotated(inner: Any, *metadata: Any) -> st.SearchStrategy[Any]:
    """Return the strategy of an annotated type; one with bounds that say more than `Integer` has small numbers above 0."""
    bounds = [bound for each in metadata for bound in getattr(each, "metadata", ())]
    if any(getattr(bound, "ge", -1) >= 0 for bound in bounds):
        return st.integers(0, 1000) if inner is int else st.floats(0, 1000)
    return of(inner)


def bounded(field: FieldInfo) -> st.SearchStrategy[Any]:
    """Return the strategy of a field; one with bounds of its own gets values that all of them let through."""
    low = max(
        (bound for each in field.metadata for name in ("ge", "gt") if (bound := getattr(each, name, None)) is not None),
        default=None,
    )
    if low is None or low < 0:  # none, or those that every integer has
        return of(field.annotation)
    high = min(
        (bound for each in field.metadata for name in ("le", "lt") if (bound := getattr(each, name, None)) is not None),
        default=1000,
    )
    return st.floats(0.25, high) if high <= 2 else st.integers(max(1, int(low)), min(int(high), low + 1000))


def models(model: type[BaseModel]) -> st.SearchStrategy[Any]:
    """Return the strategy of a model with every field filled in, or left at its default."""
    model.model_rebuild()
    required = {name: bounded(field) for name, field in model.model_fields.items() if field.is_required()}
    optional = {name: bounded(field) for name, field in model.model_fields.items() if not field.is_required()}
    fields = st.fixed_dictionaries(required, optional={key: it for key, it in optional.items() if key != "kind"})
    return fields.map(lambda values: model(**values))


_PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    Any: json_values,
    str: texts,
    int: safe_integers,
    float: numbers,
    bool: st.booleans(),
    NoneType: st.none(),
}

_GENERIC: dict[Any, Callable[..., st.SearchStrategy[Any]]] = {
    Literal: lambda *parts: st.sampled_from(parts),
    Union: lambda *parts: st.one_of(*map(of, parts)),
    UnionType: lambda *parts: st.one_of(*map(of, parts)),
    Annotated: annotated,
    tuple: tuples,
    dict: lambda key, value: st.dictionaries(of(key), of(value), max_size=3),
}

unknown_events = st.builds(
    lambda kind, fields: UnknownEvent.model_validate({"kind": f"x-{kind}", **fields}),
    st.sampled_from(["", "new", "thought-2"]),
    st.dictionaries(st.sampled_from(["a", "self", "data", "seq", "h", "model_config", "$"]), json_values, max_size=4),
)
"""Events of a newer minor format."""


def events(kind: str | None = None) -> st.SearchStrategy[EventBase]:
    """Return the strategy of the events of one kind, or of all that a run emits: `erased` only stands behind its end."""
    if kind is not None:
        return models(EVENT_TYPES[kind])
    return st.one_of(st.sampled_from(sorted(EVENT_TYPES.keys() - {"erased"})).flatmap(events), unknown_events)
