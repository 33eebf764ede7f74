"""The catalogue of events, one type per `kind`.

A line's envelope contains its kind, so a reader looks the type up in `EVENT_TYPES` and validates only the data
(`playhead.trace.line`). A kind that is not in the table comes from a newer minor format and becomes an `UnknownEvent`.
"""

from playhead.trace.base import EVENT_TYPES as EVENT_TYPES
from playhead.trace.base import EventBase
from playhead.trace.events.control import *  # noqa: F403 - the catalogue is everything in these seven
from playhead.trace.events.model import *  # noqa: F403
from playhead.trace.events.phase import *  # noqa: F403
from playhead.trace.events.reasoning import *  # noqa: F403
from playhead.trace.events.run import *  # noqa: F403
from playhead.trace.events.thread import *  # noqa: F403
from playhead.trace.events.tools import *  # noqa: F403


class UnknownEvent(EventBase):
    """An event of a kind that this version does not know; its fields are kept as they are."""
