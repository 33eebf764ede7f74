"""Asking the model for steps: for a plan, for others in place of those that failed, for further ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.kernel.passes import offered_thread
from playhead.kernel.plan.prompt import STRICT
from playhead.kernel.plan.reading import find_problems, steps_in
from playhead.kernel.plan.steps import PlanForm
from playhead.kernel.structured import ask_for

if TYPE_CHECKING:
    from playhead.kernel.plan.progress import Progress
    from playhead.kernel.plan.reading import Frame
    from playhead.kernel.plan.steps import PlanStep
    from playhead.kernel.state import Thread


async def ask_for_steps(progress: Progress, frame: Frame, purpose: str, prompt: str) -> tuple[PlanStep, ...]:
    """Return steps that fit the frame, as the model wrote them; none where it gave none, of which each failure is an event.

    What is wrong with them is said once. Where they do not say why they make their calls, they are asked for once more; what stays
    unsaid is recorded when the call is made.
    """
    session = progress.session
    thread = await offered_thread(session, "prompt.plan", prompt)
    form = None if thread is None else await _asked(progress, thread, frame, purpose, retries=1)
    if thread is None or form is None:
        return ()
    if session.header.rationale and any(each.type == "tool_call" and each.reason is None for each in form.steps):
        given = thread.add(await session.messages.add_assistant(form.model_dump_json(exclude_defaults=True)))
        told = await session.messages.nudge(given, "rationale-missing", STRICT)
        if told is not given:  # no hook removed it
            form = await _asked(progress, told, frame, purpose, retries=0) or form
    return steps_in(form, frame)


async def _asked(progress: Progress, thread: Thread, frame: Frame, purpose: str, *, retries: int) -> PlanForm | None:
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
