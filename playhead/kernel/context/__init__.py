"""What a model is sent of its past: long results shortened and kept at hand, old turns put together, repetition noticed.

Off unless an agent asks for it. All of it is a function of answers, results and recorded settings, so that a replay comes
to the same, and costs the same for each step, however many there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.kernel.context.settings import RECALL

if TYPE_CHECKING:
    from playhead.kernel.context.curator import Curator
    from playhead.kernel.session import Session


def curator_for(session: Session) -> Curator | None:
    """Return who looks after the thread of an agent; None when that is nobody."""
    header = session.header
    shelves = header.compression is not None or RECALL in header.meta_tools
    marks = any(tool.spec.untrusted for tool in session.toolset.values())
    if session.agent is not session or not (shelves or marks or header.profile is not None):
        return None
    from playhead.kernel.context.curator import Curator  # noqa: PLC0415 - only for agents that ask for it

    return Curator(session)
