"""What every part of a debrief is."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict

from playhead.trace.values import scrub


def _scrubbed(value: object) -> object:
    return scrub(value) if isinstance(value, str) else value


Text = Annotated[str, BeforeValidator(_scrubbed)]
"""Text that every JSON writer takes: a live run may hold half characters that a file never does."""


class Part(BaseModel):
    """A part of a debrief."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Placed(Part):
    """Something that stands in the trace."""

    seq: int
    """The event that says it."""
    owner: Text
    """Whose it is: `root`, or a sub-agent such as `root/researcher@3.0`."""
    iteration: int | None
    """Turn of the owner's loop, from 0; null outside it."""
