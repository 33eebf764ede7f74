"""What all values inside events are: frozen, and kept as they were read."""

from __future__ import annotations

from typing import Annotated, ClassVar, Final

from pydantic import BaseModel, ConfigDict, Field

INTEGER_LIMIT: Final = 2**63
"""No integer of an event is as large: the sums and products of those that are would be numbers nobody can print."""
Integer = Annotated[int, Field(ge=-INTEGER_LIMIT, lt=INTEGER_LIMIT)]
"""What every integer of an event is, other than those inside `JsonValue`s."""


class Value(BaseModel):
    """A frozen value. Fields that a newer minor format added are kept."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="allow", defer_build=True, ser_json_inf_nan="constants"
    )
