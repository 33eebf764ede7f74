"""Models made of values that are right already, without validating them: what the kernel itself hands over.

Validating costs as much as writing the event. What comes from outside (a file, an adapter, a hook) is validated.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel

if TYPE_CHECKING:
    from collections.abc import Callable

M = TypeVar("M", bound=BaseModel)
_new = object.__new__
_set = object.__setattr__


def made(kind: type[M], /, **fields: Any) -> M:  # noqa: ANN401 - the fields of the model
    """Return a model of these values, each of which is of the type of its field.

    Raises:
        TypeError: a field that has no default is missing, or there is no such field.
    """
    template, factories, required = _shape(kind)
    values = {**template, **fields}
    if len(values) != len(template) or not required <= fields.keys():
        wrong = (required - fields.keys()) | (fields.keys() - template.keys())
        raise TypeError(f"{kind.__name__}: {', '.join(sorted(wrong))} is missing, or no field of it")
    for name, factory in factories:
        if name not in fields:
            values[name] = factory()
    return _model(kind, values, set(fields))


def altered(model: M, **changes: Any) -> M:  # noqa: ANN401 - the fields of the model
    """Return the model with these fields changed, each to a value of its type."""
    return _model(type(model), {**model.__dict__, **changes}, model.__pydantic_fields_set__ | changes.keys())


def _model(kind: type[M], values: dict[str, Any], given: set[str]) -> M:
    model = _new(kind)
    _set(model, "__dict__", values)
    _set(model, "__pydantic_fields_set__", given)
    _set(model, "__pydantic_extra__", {} if kind.model_config.get("extra") == "allow" else None)
    _set(model, "__pydantic_private__", None)
    return model


@cache
def _shape(kind: type[BaseModel]) -> tuple[dict[str, Any], list[tuple[str, Callable[[], Any]]], frozenset[str]]:
    """Return the fields in their order with their defaults, those whose default is made each time, and those without one."""
    fields = kind.model_fields
    factories: list[tuple[str, Any]] = [
        (name, each.default_factory) for name, each in fields.items() if each.default_factory is not None
    ]
    required = frozenset(name for name, each in fields.items() if each.is_required())
    return {name: each.default for name, each in fields.items()}, factories, required
