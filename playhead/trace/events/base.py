"""What every event is."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict


class EventBase(BaseModel):
    """A fact that happened: frozen, and complete when it is written.

    A thing that takes time is two facts (started, completed), never one that changes. The envelope (`seq`, `ts`,
    `owner`, `iteration`, `h`) belongs to the line, not to the event. Fields of a newer minor format are kept.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="allow", defer_build=True, ser_json_inf_nan="constants"
    )

    kind: str
