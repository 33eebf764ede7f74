"""Plan, execute, reflect: a plan of typed steps first, then its steps, then a look at whether that was enough.

Plan-and-solve (Wang et al. 2023, arXiv:2305.04091), with results of earlier steps as arguments of later ones and independent
calls beside each other (LLMCompiler, Kim et al. 2023, arXiv:2312.04511).

A step that fails runs again, where that cannot do something twice; else it is replaced, alone or with what is still open; else
the plan goes on without it, and without what needs it. Completed steps never run again. A call of a tool with side effects that
failed may have had its effect: the same call is not made again, by no version of the plan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from playhead.kernel.meta_tools import missing_required_tools
from playhead.kernel.output_cap import output_cap
from playhead.kernel.passes import fresh_thread, run_pass
from playhead.kernel.plan.asking import ask_for_steps, prompt_thread
from playhead.kernel.plan.dispatch import run_wave
from playhead.kernel.plan.hydrate import hydrate
from playhead.kernel.plan.progress import PlanSettings, Progress
from playhead.kernel.plan.prompt import STRICT, answer_prompt, plan_prompt, reflection_prompt
from playhead.kernel.plan.recovery import augment, recover, replan
from playhead.kernel.plan.required import outstanding, with_required
from playhead.kernel.plan.types import Plan, PlanForm, ReflectionForm
from playhead.kernel.plan.waves import compute_waves
from playhead.kernel.state import transition
from playhead.kernel.strategies.reactive import Reactive
from playhead.kernel.structured import ask_for
from playhead.trace.events import DecisionEvaluated, Reflection
from playhead.trace.types import Purpose, text_of

if TYPE_CHECKING:
    from playhead.kernel.plan.hydrate import Frame
    from playhead.kernel.session import Session
    from playhead.kernel.state import KernelState, Thread
    from playhead.trace.values import JsonValue

NAME: Final = "plan-execute-reflect"
REFLECTION_TOKENS: Final = {"shallow": 1500, "deep": 2500}
ANSWER_TURNS: Final = 2
"""Turns for the answer: one, and one more when it was empty."""
NO_PLAN: Final = "the model gave no plan that can be carried out: the task is solved by ReAct, without one"
NO_ROOM: Final = "there are no turns for a plan and an answer: the task is solved by ReAct, without one"
NO_QUESTION: Final = "a hook removed the question for a plan: the task is solved by ReAct, without one"


class PlanExecuteReflect(PlanSettings):
    """Plan the task, carry the plan out, look at the results, and answer from them."""

    name = NAME
    aliases = ("plan", "plan-execute")
    known_for = "makes a plan, carries it out step by step, corrects it; for complex tasks of many steps"
    purposes = (
        Purpose(name="plan", asks_for="a plan"),
        Purpose(name="step", asks_for="the result of a step"),
        Purpose(name="patch", asks_for="steps in place of those that failed"),
        Purpose(name="reflect", asks_for="whether the results are enough"),
        Purpose(name="replan", asks_for="a new plan for what is left"),
        Purpose(name="augment", asks_for="further steps"),
        Purpose(name="answer", asks_for="the answer, from the results", is_answer=True),
    )
    max_iterations = 25

    async def run(self, state: KernelState, session: Session) -> KernelState:
        """Go from the plan to the answer. Asked to go on, it does not plan again."""
        if NAME in state.meta:
            return await Reactive().run(state, session)
        begun = transition(state, meta={**state.meta, NAME: f"plan_{state.iteration}"})
        progress = _progress(begun, session, self)
        if not progress.has_room:
            return await _without_plan(progress, state.thread, NO_ROOM)
        if (why := await _make_plan(progress)) is not None:
            return await _without_plan(progress, state.thread, why)
        await _carry_out(progress)
        for _ in range(progress.settings.max_refinements):
            missing = await _what_is_missing(progress) if progress.has_room else None
            if missing is None or not await _refined(progress, missing):
                break
            await _carry_out(progress)
        return await _answer(progress)


def _progress(state: KernelState, session: Session, settings: PlanSettings) -> Progress:
    plan = Plan(id=str(state.meta[NAME]), goal=text_of(session.task), mode=settings.plan_mode)
    return Progress(session, settings, state, plan, looked_at=len(state.steps))


# --- plan -----------------------------------------------------------------------------------------------------------------


async def _make_plan(progress: Progress) -> str | None:
    """Ask for a plan, add the calls that it lacks, and begin with it; returns why there is none, or None."""
    frame = progress.frame(version=0)
    required = outstanding(progress.session, frame)
    prompt = plan_prompt(progress.plan.goal, frame, required)
    thread = await prompt_thread(progress.session, "prompt.plan", prompt)
    if thread is None:
        return NO_QUESTION
    form = await ask_for_steps(progress, thread, frame, purpose="plan")
    if form is None:
        return NO_PLAN
    form = await _with_reasons(progress, thread, frame, form)
    progress.begin(with_required(hydrate(form, frame), required, frame))
    return None


async def _with_reasons(progress: Progress, thread: Thread, frame: Frame, form: PlanForm) -> PlanForm:
    """Return the plan, asked for once more where it does not say why it makes its calls; what stays unsaid is recorded."""
    if not progress.session.header.rationale or not _lacks_reasons(form):
        return form
    messages = progress.session.messages
    given = thread.add(await messages.add_assistant(form.model_dump_json(exclude_defaults=True)))
    told = await messages.nudge(given, "rationale-missing", STRICT)
    if told is given:  # a hook removed it
        return form
    again = await ask_for_steps(progress, told, frame, purpose="plan", retries=0)
    progress.log(
        "plan_rationale_missing" if again is None or _lacks_reasons(again) else "rationale given when asked again"
    )
    return again or form


def _lacks_reasons(form: PlanForm) -> bool:
    return any(each.type == "tool_call" and each.stated is None for each in form.steps)


async def _without_plan(progress: Progress, thread: Thread, why: str) -> KernelState:
    """Solve the task without a plan, and say so."""
    session = progress.session
    session.emit(DecisionEvaluated(decision=f"{NAME}: no plan", rationale=why))
    progress.log(why)
    session.strategy_used = "reactive"
    return await Reactive().run(transition(progress.state, thread=thread), session)


# --- execute --------------------------------------------------------------------------------------------------------------


async def _carry_out(progress: Progress) -> None:
    """Carry out what is pending, wave by wave; waves are computed anew when there are other steps than before.

    The last turn of the agent is for the answer.
    """
    while progress.has_room and (waves := compute_waves(progress.plan.steps, progress.plan.mode)):
        for wave in waves:
            ready = [each for each in wave if progress.plan.step(each.id).status == "pending"]
            failures = await run_wave(progress, ready)
            if (failures and await recover(progress, failures)) or not progress.has_room:
                break
    progress.skip_blocked()
    progress.skip_the_rest()


# --- reflect --------------------------------------------------------------------------------------------------------------


async def _what_is_missing(progress: Progress) -> str | None:
    """Return what the results lack, as the model sees it; None when they are enough, or when it does not say."""
    session, depth = progress.session, progress.settings.reflection_depth
    prompt = reflection_prompt(progress.plan, deep=depth == "deep")
    thread = await prompt_thread(session, "prompt.reflect", prompt)
    if thread is None:
        progress.log("the results are taken as they are: a hook removed the question whether they are enough")
        return None
    capped = output_cap(session.header.parameters) is not None
    parameters: dict[str, JsonValue] = {} if capped else {"max_tokens": REFLECTION_TOKENS[depth]}
    progress.state, found = await ask_for(
        progress.state, session, thread, ReflectionForm, purpose="reflect", retries=1, parameters=parameters
    )
    if found is None:
        progress.log("the results are taken as they are: the model did not say whether they are enough")
        return None
    session.emit(Reflection(text=found.reason, satisfied=found.satisfied))
    progress.reflected(found.reason)
    return None if found.satisfied else found.reason


async def _refined(progress: Progress, missing: str) -> bool:
    """Replace what failed, or add to what is completed; returns whether there is more to do."""
    if progress.plan.having("failed", "skipped"):
        return await replan(progress, missing)
    return await augment(progress, missing)


# --- answer ---------------------------------------------------------------------------------------------------------------


async def _answer(progress: Progress) -> KernelState:
    """Answer from the results; without an answer the best result is kept."""
    session = progress.session
    thread = await fresh_thread(session, answer_prompt(progress.plan))
    state, conclusion = await run_pass(
        progress.state, session, thread, purpose="answer", max_iterations=ANSWER_TURNS, tools=()
    )
    reason = conclusion.reason
    if conclusion.answered and progress.cut_short:
        reason = "max_iterations"
    elif conclusion.answered and missing_required_tools(session, state):
        reason = "required_tools_missing"
    output = conclusion.output if conclusion.answered else progress.state.best
    session.terminate(reason, output, source=f"strategy:{NAME}", answer=conclusion.answer)
    return transition(state, output=output)
