"""What is done about steps that failed: the same again, other steps in their place, or going on without them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.kernel.plan.asking import ask_for_steps, prompt_thread
from playhead.kernel.plan.hydrate import hydrate
from playhead.kernel.plan.prompt import augment_prompt, patch_prompt, replan_prompt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.kernel.plan.dispatch import Failure
    from playhead.kernel.plan.hydrate import Frame
    from playhead.kernel.plan.progress import Progress
    from playhead.kernel.plan.types import PlanStep


async def recover(progress: Progress, failures: Sequence[Failure]) -> bool:
    """Let steps that failed run again, or have them replaced; what can neither stays failed, and the plan goes on.

    Returns whether there are steps to carry out that were not among those still open.
    """
    lost = [progress.plan.step(each.step_id) for each in failures if not _runs_again(each, progress)]
    if not lost:
        return True
    if await _patched(lost, progress):
        progress.skip_blocked()
        return True
    progress.log(f"go on without {', '.join(each.id for each in lost)}")
    progress.skip_waiting_for([each.id for each in lost])
    return len(lost) < len(failures)


async def replan(progress: Progress, missing: str) -> bool:
    """Have all that is not completed replaced; returns whether there is a new plan."""
    if progress.replans >= progress.settings.max_replans:
        return False
    kept = progress.plan.having("completed")
    frame = progress.frame(kept)
    steps = await _ask(progress, replan_prompt(progress.plan, missing, frame, progress.calls_made), frame, "replan")
    if not steps:
        return False
    progress.replans += 1
    gone = [each for each in progress.plan.steps if each.status != "completed"]
    progress.replace_steps(gone, steps, f"replan: {missing}")
    return True


async def augment(progress: Progress, missing: str) -> bool:
    """Have steps added to a plan whose steps are all completed; returns whether there are any."""
    frame = progress.frame(progress.plan.steps)
    steps = await _ask(progress, augment_prompt(progress.plan, missing, frame), frame, "augment")
    if steps:
        progress.replace_steps((), steps, f"augment: {missing}")
    return bool(steps)


def _runs_again(failure: Failure, progress: Progress) -> bool:
    step = progress.plan.step(failure.step_id)
    if not failure.again or step.retries >= progress.settings.step_retries:
        return False
    reason = f"retry {step.retries + 1} of {progress.settings.step_retries}"
    progress.change(step.id, "pending", reason, retries=step.retries + 1)
    progress.log(f"{step.id} runs again: {step.error}")
    return True


async def _patched(failed: Sequence[PlanStep], progress: Progress) -> bool:
    """Have failed steps replaced, together with what is still open or alone; returns whether they are."""
    settings, plan = progress.settings, progress.plan
    if progress.replans >= settings.max_replans or not progress.has_room:
        return False
    progress.replans += 1
    all_open = settings.patch_strategy == "replan-remaining"
    ids = {each.id for each in failed}
    gone = [each for each in plan.steps if each.id in ids or (all_open and each.status == "pending")]
    frame = progress.frame(each for each in plan.steps if each not in gone)
    prompt = patch_prompt(plan, failed, frame, progress.calls_made, all_open=all_open)
    steps = await _ask(progress, prompt, frame, "patch")
    if steps:
        progress.replace_steps(gone, steps, f"patch: {', '.join(each.id for each in failed)} failed")
    return bool(steps)


async def _ask(progress: Progress, prompt: str, frame: Frame, what: str) -> tuple[PlanStep, ...]:
    """Return new steps; none when the model gave none that can be used, of which each failure is an event."""
    thread = await prompt_thread(progress.session, "prompt.plan", prompt)
    form = None if thread is None else await ask_for_steps(progress, thread, frame, purpose=what)
    if form is None:
        progress.log(f"{what}: no steps that can be used")
        return ()
    return hydrate(form, frame)
