"""Models made of values that are right already, without validating them: what the kernel itself hands over.

Validating costs as much as writing the event. What comes from outside (a file, an adapter, a hook) is validated.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

M = TypeVar("M", bound=BaseModel)
_new = object.__new__
_set = object.__setattr__
# The slots themselves, where `_set` would look each of them up by its name.
_set_names, _set_extra, _set_private = (
    vars(BaseModel)[f"__pydantic_{slot}__"].__set__ for slot in ("fields_set", "extra", "private")
)


def made(kind: type[M], /, **fields: Any) -> M:  # noqa: ANN401 - the fields of the model
    """Return a model of these values, each of which is of the type of its field.

    Raises:
        TypeError: a field that has no default is missing, or there is no such field.
    """
    template, factories, required, names, keeps_more = _shape(kind)
    values = {**template, **fields}
    if len(values) != len(template) or not required <= fields.keys():
        wrong = (required - fields.keys()) | (fields.keys() - template.keys())
        raise TypeError(f"{kind.__name__}: {', '.join(sorted(wrong))} is missing, or no field of it")
    for name, factory in factories:
        if name not in fields:
            values[name] = factory()
    model = _new(kind)
    _set(model, "__dict__", values)
    _set_names(model, names)
    _set_extra(model, {} if keeps_more else None)
    _set_private(model, None)
    return model


def altered(model: M, changes: Mapping[str, Any]) -> M:
    """Return the model with these fields changed, each to a value of its type."""
    other = _new(type(model))
    _set(other, "__dict__", {**model.__dict__, **changes})
    _set_names(other, model.__pydantic_fields_set__)
    _set_extra(other, model.__pydantic_extra__)
    _set_private(other, None)
    return other


@cache
def _shape(
    kind: type[BaseModel],
) -> tuple[dict[str, Any], list[tuple[str, Callable[[], Any]]], frozenset[str], set[str], bool]:
    """Return a model's fields with their defaults, those whose default is made, those without one, all, and if it keeps others."""
    fields = kind.model_fields
    factories: list[tuple[str, Any]] = [
        (name, each.default_factory) for name, each in fields.items() if each.default_factory is not None
    ]
    required = frozenset(name for name, each in fields.items() if each.is_required())
    defaults = {name: each.default for name, each in fields.items()}
    return defaults, factories, required, set(fields), kind.model_config.get("extra") == "allow"
