"""Asking the model for steps, and for what it thinks of their results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from playhead.kernel.hooks import SUPPRESS
from playhead.kernel.passes import fresh_thread
from playhead.kernel.plan.hydrate import find_problems
from playhead.kernel.plan.types import PlanForm
from playhead.kernel.structured import ask_for

if TYPE_CHECKING:
    from playhead.kernel.plan.hydrate import Frame
    from playhead.kernel.plan.progress import Progress
    from playhead.kernel.session import Session
    from playhead.kernel.state import Thread


async def prompt_thread(session: Session, tag: Literal["prompt.plan", "prompt.reflect"], text: str) -> Thread | None:
    """Return a thread with this prompt as the hooks let it pass; None when one removed it."""
    offered = await session.offer(tag, text)
    return None if offered is SUPPRESS else await fresh_thread(session, offered)


async def ask_for_steps(
    progress: Progress, thread: Thread, frame: Frame, *, purpose: str, retries: int = 2
) -> PlanForm | None:
    """Return steps that fit the frame, as the model wrote them; None when it gave none, of which each failure is an event."""
    progress.state, form = await ask_for(
        progress.state,
        progress.session,
        thread,
        PlanForm,
        purpose=purpose,
        retries=retries,
        check=lambda answer: find_problems(answer, frame),
    )
    return form
