"""Calls that a model left in the text of its final answer: they are made instead of leaving with it (K-030, step 7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from playhead.kernel.calls_in_text.planned import planned_calls
from playhead.kernel.model_port import TEXT_CALL

if TYPE_CHECKING:
    from playhead.kernel.session import Session
    from playhead.kernel.state import PlannedCall

_FIELDS: Final = ("output", "summary")


def embedded_calls(planned: PlannedCall, session: Session) -> tuple[PlannedCall, ...]:
    """Return the calls that stand, as calls, in the answer that a call would end the run with."""
    arguments = planned.call.arguments or {}
    text = next((arguments[field] for field in _FIELDS if isinstance(arguments.get(field), str)), "")
    prefix = f"{TEXT_CALL}{planned.call.id}"
    return planned_calls(str(text), session, planned.request, prefix=prefix, nameless=False)[0]
