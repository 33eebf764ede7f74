"""What events are, and the values inside them: frozen, and kept as they were read."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, ClassVar, Final

from pydantic import BaseModel, ConfigDict, Field

INTEGER_LIMIT: Final = 2**63
"""No integer of an event is as large: the sums and products of those that are would be numbers nobody can print."""
Integer = Annotated[int, Field(ge=-INTEGER_LIMIT, lt=INTEGER_LIMIT)]
"""What every integer of an event is, other than those inside `JsonValue`s."""
_EXTRA: Final[dict[str, Any]] = {"x-volatile": True}
VOLATILE: Final = Field(json_schema_extra=_EXTRA)
"""Marks a field that the same run may have otherwise the next time: an id, a time, that it is a replay, or what follows from
another field. `reproduce` and `diff` do not compare it."""
_FROZEN: Final = ConfigDict(frozen=True, extra="allow", defer_build=True, ser_json_inf_nan="constants")


class Value(BaseModel):
    """A frozen value. Fields that a newer minor format added are kept."""

    model_config: ClassVar[ConfigDict] = _FROZEN


class EventBase(BaseModel):
    """A fact that happened: frozen, and complete when it is written.

    A thing that takes time is two facts (started, completed), never one that changes. The envelope (`seq`, `ts`,
    `owner`, `iteration`, `h`) belongs to the line, not to the event. Fields of a newer minor format are kept.
    """

    model_config: ClassVar[ConfigDict] = _FROZEN

    incidental: ClassVar[bool] = False
    """Whether the kind tells of observers, of the clock or of whoever holds the run, not of what the agent did: such events
    are not compared."""

    kind: str


@cache
def volatile_fields(event_type: type[EventBase]) -> frozenset[str]:
    """Return the fields of a kind that are not compared."""
    fields = event_type.model_fields.items()
    return frozenset(name for name, field in fields if field.json_schema_extra == _EXTRA)
