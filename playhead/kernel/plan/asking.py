"""Asking the model for steps: for a plan, for others in place of those that failed, for further ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from playhead.kernel.hooks import SUPPRESS
from playhead.kernel.passes import fresh_thread
from playhead.kernel.plan.prompt import STRICT, more_steps_prompt, plan_prompt
from playhead.kernel.plan.reading import find_problems, steps_in
from playhead.kernel.plan.steps import PlanForm
from playhead.kernel.structured import ask_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.kernel.plan.dispatch import Failures
    from playhead.kernel.plan.progress import Progress
    from playhead.kernel.plan.reading import Frame
    from playhead.kernel.plan.steps import PlanStep
    from playhead.kernel.session import Session
    from playhead.kernel.state import Thread

NO_PLAN: Final = "the model gave no plan that can be carried out: the task is solved by ReAct, without one"
NO_QUESTION: Final = "a hook removed the question for a plan: the task is solved by ReAct, without one"
_PATCH: Final = "A step of the plan failed. Write new steps that replace {}."
_REPLAN: Final = "The plan did not reach it: {}\nWrite a new plan for what is left."
_AUGMENT: Final = "All steps are completed, but this is missing: {}\nWrite only the further steps."


async def prompt_thread(session: Session, tag: Literal["prompt.plan", "prompt.reflect"], text: str) -> Thread | None:
    """Return a thread with this prompt as the hooks let it pass; None when one removed it."""
    offered = await session.offer(tag, text)
    return None if offered is SUPPRESS else await fresh_thread(session, offered)


async def make_plan(progress: Progress) -> str | None:
    """Ask for a plan, and begin with it; returns why there is none, or None."""
    frame = progress.frame()
    thread = await prompt_thread(progress.session, "prompt.plan", plan_prompt(frame, progress.required()))
    if thread is None:
        return NO_QUESTION
    form = await _asked(progress, thread, frame, purpose="plan", retries=1)
    if form is None:
        return NO_PLAN
    progress.begin(steps_in(await _with_reasons(progress, thread, frame, form), frame))
    return None


async def recover(progress: Progress, failures: Failures, *, retries: int, replans: int, all_open: bool) -> None:
    """Let steps that failed run again, or have them replaced; what can neither stays failed, and the plan goes on.

    Args:
        progress: where the plan stands.
        failures: the steps.
        retries: how often a step runs again as it is.
        replans: how often steps are replaced in all.
        all_open: whether new steps replace all that is still open, or the failed steps alone.
    """
    plan = progress.plan
    lost = [plan.by_id[each] for each, again in failures.items() if not again or plan.by_id[each].retries >= retries]
    for step in (plan.by_id[each] for each in failures if plan.by_id[each] not in lost):
        progress.change(step.id, "pending", f"retry {step.retries + 1} of {retries}", retries=step.retries + 1)
        progress.log(f"{step.id} runs again: {step.error}")
    if not lost:
        return
    names, is_replaced = ", ".join(each.id for each in lost), False
    if progress.replans < replans and progress.has_room:
        progress.replans += 1
        gone = [*lost, *(plan.having("pending") if all_open else ())]
        what = "the failed step and all steps that are still open" if all_open else "the failed step alone"
        is_replaced = await _replaced(progress, gone, _PATCH.format(what), "patch", f"{names} failed")
    if not is_replaced:
        progress.log(f"go on without {names}")
    progress.skip_blocked()


async def refine(progress: Progress, missing: str, *, replans: int) -> bool:
    """Have replaced what is not completed, or steps added where all are; returns whether there is more to do."""
    gone = [each for each in progress.plan.by_id.values() if each.status != "completed"]
    if not gone:
        return await _replaced(progress, (), _AUGMENT.format(missing), "augment", missing)
    if progress.replans >= replans:
        return False
    done = await _replaced(progress, gone, _REPLAN.format(missing), "replan", missing)
    progress.replans += done
    return done


async def _replaced(progress: Progress, gone: Sequence[PlanStep], why: str, what: str, reason: str) -> bool:
    """Have new steps put in the place of others; returns whether the model gave some that can be used."""
    frame = progress.frame(gone)
    prompt = more_steps_prompt(why, frame, progress.calls_made)
    thread = await prompt_thread(progress.session, "prompt.plan", prompt)
    form = None if thread is None else await _asked(progress, thread, frame, purpose=what, retries=1)
    steps = () if form is None else steps_in(form, frame)
    if steps:
        progress.replace_steps(gone, steps, f"{what}: {reason}")
    else:
        progress.log(f"{what}: no steps that can be used")
    return bool(steps)


async def _asked(progress: Progress, thread: Thread, frame: Frame, *, purpose: str, retries: int) -> PlanForm | None:
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


async def _with_reasons(progress: Progress, thread: Thread, frame: Frame, form: PlanForm) -> PlanForm:
    """Return the plan, asked for once more where it does not say why it makes its calls; what stays unsaid is recorded."""
    if not progress.session.header.rationale or not _lacks_reasons(form):
        return form
    messages = progress.session.messages
    given = thread.add(await messages.add_assistant(form.model_dump_json(exclude_defaults=True)))
    told = await messages.nudge(given, "rationale-missing", STRICT)
    if told is given:  # a hook removed it
        return form
    return await _asked(progress, told, frame, purpose="plan", retries=0) or form


def _lacks_reasons(form: PlanForm) -> bool:
    return any(each.kind == "tool_call" and each.stated is None for each in form.steps)
