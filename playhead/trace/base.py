"""The base classes of what is recorded, and how a value of them is made without validation."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, Any, ClassVar, Final, TypeVar

from pydantic import BaseModel, ConfigDict, Field

INTEGER_LIMIT: Final = 2**63
"""Every integer of an event is below this limit, so that sums and products stay printable."""
Integer = Annotated[int, Field(ge=-INTEGER_LIMIT, lt=INTEGER_LIMIT)]
"""An integer field of an event; integers inside a `JsonValue` are not limited."""
ID: Final = "id"
Id = Annotated[str, ID]
"""An id that links events, or a word of the kernel: credentials are redacted in it, but the user's rules are not applied."""
_EXTRA: Final[dict[str, Any]] = {"x-volatile": True}
VOLATILE: Final = Field(json_schema_extra=_EXTRA)
"""Marks a field that may differ when a run is repeated: an id, a time, the id of the replayed run, a value derived from another
field, a fingerprint of code, or a new field that older recordings lack. `reproduce` and `diff` do not compare it."""


class Value(BaseModel):
    """A frozen value. Fields that a newer minor format added are kept."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="allow", defer_build=True, allow_inf_nan=False, ser_json_inf_nan="constants"
    )


class EventBase(Value):
    """A fact that happened: frozen, and complete when it is written.

    A thing that takes time is two facts (started, completed), never one that changes. The envelope (`seq`, `ts`,
    `owner`, `iteration`, `h`) belongs to the line, not to the event.
    """

    incidental: ClassVar[bool]
    """Whether the kind describes observers, timing or control of the run, not the agent's behaviour. Such events are not
    compared."""

    kind: str = ""
    """The kind, a keyword argument of the class. A class without a kind is a base class of several kinds."""

    def __init_subclass__(cls, *, kind: str = "", incidental: bool = False, **config: Any) -> None:  # noqa: ANN401
        """Register the class in `EVENT_TYPES`."""
        super().__init_subclass__(**config)
        cls.incidental = incidental
        if kind:
            cls.kind = Field(default=kind, pattern=f"^{kind}$")
            EVENT_TYPES[kind] = cls


EVENT_TYPES: Final[dict[str, type[EventBase]]] = {}
"""Every kind and its type; complete once `playhead.trace.events` is imported."""


@cache
def volatile_fields(kind: type[BaseModel]) -> frozenset[str]:
    """Return the fields of a model that are not compared."""
    fields = kind.model_fields.items()
    return frozenset(name for name, field in fields if field.json_schema_extra == _EXTRA)


M = TypeVar("M", bound=BaseModel)
_new = object.__new__
# The slot setters themselves, because `object.__setattr__` would look up each slot by name.
_set_values, _set_names, _set_extra, _set_private = (
    vars(BaseModel)[slot].__set__
    for slot in ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
)


def made(kind: type[M], /, **fields: Any) -> M:  # noqa: ANN401 - the fields of the model
    """Return a model with these values without validating them: validation costs as much as writing an event.

    Each value must have its field's type, and each `JsonValue` must be strict JSON. Use normal validation for values from
    outside (a file, an adapter, a hook).

    Raises:
        TypeError: a field without a default is missing, or a field does not exist.
    """
    defaults, required, names, keeps_extra, factories = _shape(kind)
    values = {**defaults, **fields}
    if len(values) != len(names) or not fields.keys() >= required:
        wrong = (required - fields.keys()) | (fields.keys() - names)
        raise TypeError(f"{kind.__name__}: {', '.join(sorted(wrong))} is missing, or not a field of it")
    for name, factory in factories:
        if name not in fields:
            values[name] = factory()
    model = _new(kind)
    _set_values(model, values)
    _set_names(model, names)
    _set_extra(model, {} if keeps_extra else None)
    _set_private(model, None)
    return model


def is_made(model: BaseModel) -> bool:
    """Return whether `made` created this model, so that its values are strict JSON already."""
    return model.__pydantic_fields_set__ is _shape(type(model))[2]


def altered(model: M, changes: Mapping[str, Any]) -> M:
    """Return a copy of the model with these fields changed, without validation."""
    other = _new(type(model))
    _set_values(other, {**model.__dict__, **changes})
    _set_names(other, model.__pydantic_fields_set__)
    _set_extra(other, model.__pydantic_extra__)
    _set_private(other, None)
    return other


@cache
def _shape(
    kind: type[BaseModel],
) -> tuple[dict[str, Any], frozenset[str], set[str], bool, list[tuple[str, Callable[[], Any]]]]:
    """Return a model's defaults, required fields, field names, whether it keeps unknown fields, and default factories."""
    fields = kind.model_fields
    factories: list[tuple[str, Any]] = [
        (name, each.default_factory) for name, each in fields.items() if each.default_factory is not None
    ]
    required = frozenset(name for name, each in fields.items() if each.is_required())
    defaults = {name: each.default for name, each in fields.items()}
    return defaults, required, set(fields), kind.model_config.get("extra") == "allow", factories
