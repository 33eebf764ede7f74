"""Building blocks of strategies: passes, questions of a given form, and switches to another strategy.

A pass is a loop inside an agent's loop. It has its own thread, the same session, ports and events, and continues the count of
turns: no two turns of an agent have the same number, so calls and sub-agents have distinct names. An answer ends only the pass;
whatever ends the agent (a killswitch, a hook, its `max_iterations`) ends both.

A form is a pydantic model; the model is shown its docstring and field descriptions. A missing answer is None, never a made-up
default.
"""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from pydantic import BaseModel, ValidationError

from playhead.errors import UsageError, problems
from playhead.kernel.describe import shortened
from playhead.kernel.hooks import SUPPRESS
from playhead.kernel.loop import collect_spending, run_kernel
from playhead.kernel.progress import Conclusion, Pass
from playhead.kernel.react import REACT
from playhead.kernel.repair.lenient_json import json_blocks
from playhead.kernel.schemas import Schema, choices, options
from playhead.kernel.state import KernelState, PlannedCall, Thread, transition
from playhead.kernel.strategies.base import strategy_class
from playhead.trace.events import PhaseCompleted, PhaseEntered, StrategySwitched, StructuredOutputFailed
from playhead.trace.format import incomplete
from playhead.trace.types import ImagePart, TextPart, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from playhead.kernel.loop import Kernel
    from playhead.kernel.phases import GivenUpError
    from playhead.kernel.session import Session
    from playhead.kernel.state import Step
    from playhead.kernel.strategies.base import Strategy
    from playhead.trace.events import LlmResponded
    from playhead.trace.types import Content
    from playhead.trace.values import JsonValue


ANSWER_NOW: Final = "Call no more tools. Answer the task now, with what you know."
MAX_PROBLEMS: Final = 5
"""The number of mistakes of one answer that are sent to the model at once."""
MAX_TOLD: Final = 300
"""Characters of one mistake, which may quote the answer."""
_EXAMPLE_DEPTH: Final = 6
_SCALARS: Final[dict[str, JsonValue]] = {"boolean": True, "integer": 1, "number": 0.5, "null": None}
Form = TypeVar("Form", bound=BaseModel)
LONGEST_CHOICE: Final = 2_000
"""Characters that are read of an answer that has to be a name."""
LONGEST_STEP: Final = 2_000
"""Characters of one step that are handed over, with a note about the rest."""
LONGEST: Final = 24_000
"""Characters of all steps that are handed over, newest first."""
_HANDOFF: Final = (
    "{task}\n\nThis was begun with another strategy ({old}), and you take over. {why}\n\n"
    "What was done so far, and what came back:\n{steps}\n\nGo on from there. Use these results; do not make these calls again."
)


async def run_pass(  # noqa: PLR0913 - the parts of a pass
    state: KernelState,
    session: Session,
    thread: Thread,
    *,
    purpose: str,
    max_iterations: int,
    tools: tuple[str, ...] | None = None,
    kernel: Kernel = REACT,
    step: str | None = None,
    must_answer: bool = False,
) -> tuple[KernelState, Conclusion]:
    """Run the kernel on a thread until the model answers; return the state, with the thread of the pass, and how it ended.

    Args:
        state: the agent's state; steps, usage and turns continue from it.
        session: the agent's session.
        thread: the thread of the first request; see `fresh_thread`.
        purpose: the purpose of its requests, such as `improve`.
        max_iterations: the maximum number of turns of this pass.
        tools: names of the offered tools; None for all, `()` for none.
        kernel: another loop than ReAct.
        step: the plan step that it carries out.
        must_answer: whether one more turn without tools may give the answer after its turns are used up.

    Raises:
        RunEndedError: the agent itself has ended meanwhile.
        ModelError: the model did not answer.
    """
    inner = Pass(purpose, state.iteration + max_iterations, None if tools is None else frozenset(tools), step)
    begun = transition(state, thread=thread, status="thinking", pending=(), completed=())
    with session.at.inside(inner):
        reached = await run_kernel(kernel, begun, session)
    # Only the pass has ended, not the agent, so the strategy's best answer is kept.
    reached = session.reach(transition(reached, status="thinking"))
    session.require_running()
    conclusion = inner.conclusion
    assert conclusion is not None  # noqa: S101 - otherwise the agent has ended
    if not must_answer or conclusion.reason != "max_iterations":
        return reached, conclusion
    told = await session.messages.nudge(reached.thread, "unfinished", ANSWER_NOW)
    reached, last = await run_pass(
        reached, session, told, purpose=purpose, max_iterations=1, tools=(), kernel=kernel, step=step
    )
    return reached, last if last.reason != "max_iterations" else conclusion


answer_pass: Final = partial(run_pass, must_answer=True)
"""Run a pass that has to end with an answer: after its turns are used up, one more turn without tools may give it.

Takes, returns and raises the same as `run_pass`. If that turn gives no answer either, the conclusion has none.
"""


@contextmanager
def in_phase(session: Session, phase: str, number: int) -> Iterator[None]:
    """Record the events inside this block as a phase of the strategy; a phase that ends by an error is not completed.

    Args:
        session: the agent's session.
        phase: one of the strategy's declared phases, such as `attempt`.
        number: its number, from 1.
    """
    session.emit(PhaseEntered(phase=phase, number=number))
    yield
    session.emit(PhaseCompleted(phase=phase, number=number))


async def fresh_thread(session: Session, text: str) -> Thread:
    """Return a thread with the agent's system prompt, its examples, and this prompt in place of the task.

    Images of the task are included. The task's text is `text_of(session.task)`.
    """
    images = [part for part in session.task if isinstance(part, ImagePart)]
    content: Content = (TextPart(text=text), *images) if images else text
    return session.at.preamble.add(await session.messages.add_user(content))


async def offered_thread(session: Session, tag: str, text: str) -> Thread | None:
    """Return a fresh thread with this prompt as changed by hooks; None if a hook removed it."""
    offered = await session.offer(tag, text)
    return None if offered is SUPPRESS else await fresh_thread(session, offered)


async def ask_model(
    state: KernelState, session: Session, thread: Thread, *, purpose: str
) -> tuple[KernelState, LlmResponded]:
    """Ask the model without tools, outside the turns; return the state with the request's cost, and the answer.

    The answer joins no thread; the strategy passes on what the model needs later. Raises like `session.model.complete`.
    """
    session.reach(state)
    response = await session.model.complete(thread, purpose=purpose)
    return collect_spending(state, session), response


async def ask_once(state: KernelState, session: Session, thread: Thread, *, purpose: str) -> tuple[KernelState, str]:
    """Ask like `ask_model`, and return only the text of the answer."""
    state, response = await ask_model(state, session, thread, purpose=purpose)
    return state, response.text


async def closed_thread(state: KernelState, session: Session) -> Thread:
    """Return the thread with open calls answered, because providers require an answer to each."""
    thread = state.thread
    answered = {message.tool_call_id for message in thread.messages}
    asked = next((message.tool_calls for message in reversed(thread.messages) if message.tool_calls), ())
    for position, call in enumerate(asked):
        if call.id not in answered:
            planned = PlannedCall(call=call, position=position)
            completed = await session.tools.refuse(planned, "not run: the run was about to end")
            thread = thread.add(await session.messages.add_result(planned, completed))
    return thread


async def ask_for(  # noqa: PLR0913 - question, form and limits
    state: KernelState,
    session: Session,
    thread: Thread,
    form: type[Form],
    *,
    purpose: str,
    retries: int = 2,
    check: Callable[[Form], str | None] | None = None,
) -> tuple[KernelState, Form | None]:
    """Ask the model for an answer of this form, outside the turns; return the state with the requests' cost, and the answer.

    Args:
        state: the agent's state.
        session: the agent's session.
        thread: the thread to send, which has to describe the form; see `form_prompt`.
        form: the form of the answer.
        purpose: the purpose of the request, such as `plan`.
        retries: how often the model is asked again, each time with the problem.
        check: checks an answer that has the form; returns the problem in words for the model, or None.

    Returns:
        The answer, or None if no answer had the form; each failure is an event.

    Raises:
        ModelError: the model did not answer.
        RunEndedError: the run has ended.
    """
    for attempt in range(retries + 1):
        state, response = await ask_model(state, session, thread, purpose=purpose)
        answer = _read_response(response, form, check)
        if not isinstance(answer, str):
            return state, answer
        session.emit(StructuredOutputFailed(expected=form.__name__, error=answer, attempt=attempt))
        if attempt < retries:
            thread = await _told(thread, response, answer, session)
    return state, None


def read_form(text: str, form: type[Form]) -> Form | str:
    """Return the first object or list in a text that has the form, or the mistakes of the first one, one per line."""
    first = ""
    for block in json_blocks(text):
        try:
            if block.problem is None:
                return form.model_validate(block.value)
            first = first or block.problem
        except ValidationError as invalid:
            first = first or _shown([f"- {each}" for each in problems(invalid, "the whole")])
    return first or "it holds no JSON"


def form_prompt(form: type[BaseModel]) -> str:
    """Return the prompt for an answer in this form: an example, the choices, and the optional fields."""
    schema = form.model_json_schema(by_alias=False)
    example = json.dumps(_example(schema, schema, _EXAMPLE_DEPTH), ensure_ascii=False, indent=1)
    rules = "\n".join(_rules(schema))
    asked = f"Reply with one JSON object of this form and nothing else:\n{example}"
    return f"{asked}\n\nRules:\n{rules}" if rules else asked


def _read_response(response: LlmResponded, form: type[Form], check: Callable[[Form], str | None] | None) -> Form | str:
    """Read an answer; of one that the provider cut off, only complete values count."""
    answer = read_form(response.text, form)
    is_cut = incomplete(response.finish_reason) == "output_truncated"
    if is_cut and isinstance(answer, str):
        return "the answer was cut off because it is too long; give a shorter one"
    if isinstance(answer, str) or check is None or (problem := check(answer)) is None:
        return answer
    return _shown(problem.splitlines())


async def _told(thread: Thread, response: LlmResponded, problem: str, session: Session) -> Thread:
    """Return the thread with the answer and its problem."""
    messages = session.messages
    # Providers require an answer to each call, and these calls get none.
    answer = None if response.tool_calls else await messages.add_reply(response)
    told = f"That is not right:\n{problem}\nReply again with the whole JSON, corrected, and nothing else."
    return thread.add(answer, await messages.add_user(told))


def _shown(lines: list[str]) -> str:
    """Return the first mistakes, and how many more there are."""
    more = [f"- and {len(lines) - MAX_PROBLEMS} more"] if len(lines) > MAX_PROBLEMS else []
    return "\n".join([each[:MAX_TOLD] for each in lines[:MAX_PROBLEMS]] + more)


def _example(schema: Schema, root: Schema, depth: int) -> JsonValue:
    """Return a sample value of a schema: its example if it has one, otherwise its description in place of a text."""
    schema = next((each for each in options(schema, root) if each.get("type") != "null"), {})
    given = schema.get("examples") or choices(schema)
    if given:
        return given[0]
    match schema.get("type"):
        case "object":
            fields = schema.get("properties", {}) if depth else {}
            return {name: _example(each, root, depth - 1) for name, each in fields.items()}
        case "array":
            return [_example(schema.get("items", {}), root, depth - 1)] if depth else []
        case kind:
            text = f"<{schema['description']}>" if "description" in schema else "..."
            return _SCALARS.get(str(kind), text)


def _rules(schema: Schema) -> list[str]:
    """Return a line for each field that has choices or is optional."""
    lines = []
    for model in (schema, *schema.get("$defs", {}).values()):
        required = model.get("required", ())
        for name, each in model.get("properties", {}).items():
            said = [f"one of {', '.join(map(str, each['enum']))}"] if each.get("enum") else []
            said += [] if name in required else ["may be left out"]
            if said:
                lines.append(f"- {name}: {'; '.join(said)}")
    return lines


def described_strategies(names: Iterable[str]) -> str:
    """Return the strategies as a list for a model to choose from."""
    kinds = [(name, strategy_class(name)) for name in names]
    known = [(name, kind.known_for or (kind.__doc__ or "").strip().partition("\n")[0]) for name, kind in kinds]
    return "\n".join(f"- {name}: {what}" for name, what in known)


def named_strategy(text: str, names: Iterable[str]) -> str | None:
    """Return the one strategy that a model names; None if it names none or several.

    The first line with a name counts, so that a reason may follow. `plan_execute_reflect` counts as a name, too.
    """
    known = {name.lower().replace("_", "-"): name for name in names}
    for line in text[:LONGEST_CHOICE].lower().replace("_", "-").splitlines():
        found = known.keys() & re.findall(r"[\w-]+", line)
        if found:
            return known[found.pop()] if len(found) == 1 else None
    return None


async def put_in_charge(strategy: Strategy, state: KernelState, session: Session) -> KernelState:
    """Give a strategy its own tools and its addition to the prompt; return its first state.

    Events and the header keep the name of the agent's original strategy; the result has this one.
    """
    session.at.delegate(strategy.name)
    session.toolset.hide_all_but(strategy.tools_by_name())
    added = strategy.added_prompt()
    if not added:
        return state
    return transition(state, thread=await start_with(session, f"{text_of(session.task)}\n\n{added}"))


async def hand_over(given_up: GivenUpError, session: Session, number: int) -> tuple[Strategy, KernelState]:
    """Return the strategy that takes over, and the state from which it continues; `number` counts the run's switches.

    Raises:
        UsageError: the agent has a tool with the name of one of the strategy's own tools.
    """
    old, state, why = session.at.strategy, given_up.state, given_up.answer.why
    strategy = cast("Strategy", given_up.answer.strategy)
    switched = StrategySwitched(
        from_strategy=old, to_strategy=strategy.name, switch_number=number, rationale=why, declares=strategy.declared()
    )
    session.emit(switched)
    await session.offer("control.strategy-switched", switched.model_dump(exclude={"kind", "declares"}))
    for name, tool in strategy.tools_by_name().items():
        if name not in session.toolset.of_strategies and (name in session.toolset or tool.spec.kind != "meta"):
            raise UsageError(f"{strategy.name} cannot take over: switch_strategy has to bring its tool {name!r} along")
    session.toolset.bring(strategy.tools_by_name())
    text = _HANDOFF.format(task=text_of(session.task), old=old, why=why, steps=steps_told(state.steps))
    thread = await start_with(session, text)
    decisions = (*state.decision_log, f"switched from {old} to {strategy.name}: {why}")
    state = transition(
        state, thread=thread, status="thinking", pending=(), completed=(), meta={}, decision_log=decisions
    )
    return strategy, session.reach(await put_in_charge(strategy, state, session))


def steps_told(steps: tuple[Step, ...]) -> str:
    """Return steps as text for a model, the newest ones, within the limit."""
    text = "\n".join(f"- {_line(step)}" for step in steps) or "(nothing)"
    return text if len(text) <= LONGEST else f"(earlier steps are left out) … {text[-LONGEST:]}"


def _line(step: Step) -> str:
    said = shortened(step.content, LONGEST_STEP)
    if step.type == "action":
        return f"call of {step.tool} with {said}"
    return f"{step.tool} returned: {said}" if step.type == "observation" else f"{step.type}: {said}"


async def start_with(session: Session, text: str) -> Thread:
    """Return a thread with this text and the task's images as the task; from now on strategies see it as the task."""
    thread = await fresh_thread(session, text)
    if len(thread.messages) > len(session.at.preamble.messages):  # no hook removed it
        session.at.take_task(thread.messages[-1].content)
    return thread


def full_names(names: Iterable[str]) -> list[str]:
    """Return the full names of strategies, without duplicates.

    Raises:
        UnknownStrategyError: nothing is registered under one of them.
    """
    return list(dict.fromkeys(strategy_class(name).name for name in names))


def with_defaults(names: list[str], settings: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the settings of these strategies, complete.

    Raises:
        UsageError: settings belong to another strategy, or are not valid.
    """
    for name in settings:
        if name not in names:
            raise UsageError(f"settings: {name!r} is not one of the candidates: {', '.join(names)}")
    return {name: strategy_class(name)(**settings.get(name, {})).recorded() for name in names}
