"""The whole catalogue of events, told apart by `kind`.

A line's kind stands in its envelope, so a reader looks the type up in `EVENT_TYPES` and validates only the data
(`playhead.trace.line`). A kind that is not in the table comes from a newer minor format and is kept as an `UnknownEvent`.
"""

from __future__ import annotations

from inspect import isclass
from typing import Final

from playhead.trace.events.control import *  # noqa: F403 - the catalogue is everything in these six
from playhead.trace.events.model import *  # noqa: F403
from playhead.trace.events.phase import *  # noqa: F403
from playhead.trace.events.reasoning import *  # noqa: F403
from playhead.trace.events.run import *  # noqa: F403
from playhead.trace.events.tools import *  # noqa: F403
from playhead.trace.types import EventBase

EVENT_TYPES: Final[dict[str, type[EventBase]]] = {
    kind: each
    for each in tuple(globals().values())
    if isclass(each)
    and issubclass(each, EventBase)
    and isinstance(kind := each.model_fields["kind"].default, str)  # not so for what events have in common
}
"""Every kind and its type: all that is imported here."""


class UnknownEvent(EventBase):
    """An event of a kind that this version does not know; its fields are kept as they are."""

    kind: str
