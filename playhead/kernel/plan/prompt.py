"""What the model is told when it plans, mends a plan, looks at results and answers from them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from playhead.kernel.plan.references import SUMMARY, shortened
from playhead.kernel.plan.types import ReflectionForm
from playhead.kernel.structured import form_prompt
from playhead.trace.values import as_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from playhead.kernel.plan.hydrate import Frame
    from playhead.kernel.plan.types import Plan, PlanStep
    from playhead.trace.types import ToolSpec

SHOWN: Final = 16_000
"""Characters of results in one prompt at most, all of them together."""
SHOWN_OF_ONE: Final = 2_000
"""Characters of one result."""
SHOWN_AT_LEAST: Final = 80
_FORM: Final = "Reply with one JSON object and nothing else, in this form:\n{}"
_TYPES: Final = """Types of steps:
- tool_call: one call of one tool. tool_name is the tool, tool_args are all of its arguments, with their values.
- analysis: you think or write, without tools. instruction says what. Only for what no tool does.
- composite: some calls that cannot be known now. instruction says what for, tool_hints lists the tools."""
_RULES: Final = (
    (
        "{{{{from_step:{first}}}}} stands for the result of step {first}; {{{{from_step:{first}:summary}}}} for its first "
        f"{SUMMARY} characters. Write it wherever a later step needs a result that you do not know yet."
    ),
    "Make no step for the final answer: it is written from the results of all steps.",
    "At most {most} steps; as few as the task needs.",
)
_TOOL_RULES: Final = (
    "Make one tool_call step for each thing: four cities are four steps.",
    "Everything that the task asks for has its step: looking up, calculating, saving, sending.",
    "A calculation is a tool_call step when a tool can do it, with {{{{from_step:{first}}}}} in its tool_args.",
)
_ORDER: Final = {
    "linear": "Steps run one after another, in the order of the list; a step may use results of steps before it.",
    "dag": "A step begins as soon as the steps in its depends_on and the steps it refers to are completed.",
}
STRICT: Final = (
    "[STRICT RETRY] Every step of type tool_call must have a rationale: "
    '"rationale": {"why": "<your reason for this call>", "confidence": <0 to 1>}. '
    "Reply with the same plan as JSON, with the rationales, and nothing else."
)


def plan_prompt(task: str, frame: Frame, required: Mapping[str, int]) -> str:
    """Return what asks for a plan."""
    asked = f"Task: {task}\n\nDo not solve the task yet. Make a plan of the steps that solve it."
    return "\n\n".join([asked, _tools(frame.tools), _form(frame), *_requirements(required), f"The task again: {task}"])


def patch_prompt(plan: Plan, failed: Sequence[PlanStep], frame: Frame, acted: Sequence[str], *, all_open: bool) -> str:
    """Return what asks for other steps in place of those that failed."""
    what = "the failed step and all steps that are still open" if all_open else "the failed step alone"
    asked = f"Task: {plan.goal}\n\nA step of the plan failed. Write new steps that replace {what}."
    told = [asked, _standing(plan), *_acted(acted), _failures(failed), _tools(frame.tools), _form(frame)]
    return "\n\n".join(
        [*told, "Do not list steps that are completed, and do not repeat what failed: do it in another way."]
    )


def replan_prompt(plan: Plan, missing: str, frame: Frame, acted: Sequence[str]) -> str:
    """Return what asks for a new plan for what is not done."""
    asked = f"Task: {plan.goal}\n\nThe plan did not reach it: {missing}\nWrite a new plan for what is left."
    told = [asked, _standing(plan), *_acted(acted), _tools(frame.tools), _form(frame)]
    return "\n\n".join([*told, "Do not list steps that are completed."])


def augment_prompt(plan: Plan, missing: str, frame: Frame) -> str:
    """Return what asks for further steps when all are completed and the goal is not met."""
    asked = (
        f"Task: {plan.goal}\n\nAll steps are completed, but this is missing: {missing}\nWrite only the further steps."
    )
    return "\n\n".join([asked, _standing(plan), _tools(frame.tools), _form(frame)])


def reflection_prompt(plan: Plan, *, deep: bool) -> str:
    """Return what asks whether the results are enough."""
    asked = "Are these results enough to answer the task?"
    if deep:
        asked += " Is every part of the task covered? Does any result contradict another, or look wrong?"
    return "\n\n".join([f"Task: {plan.goal}", _standing(plan), asked, form_prompt(ReflectionForm)])


def answer_prompt(plan: Plan) -> str:
    """Return what asks for the answer."""
    rest = [each for each in plan.steps if each.status != "completed"]
    warned = ["Some steps were not completed. Say what could not be found out."] if rest else []
    asked = "Answer the task from these results, in plain text. Do not mention steps or the plan."
    return "\n\n".join([f"Task: {plan.goal}", _standing(plan), *warned, asked])


def step_prompt(plan: Plan, step: PlanStep, instruction: str, acted: Sequence[str]) -> str:
    """Return what the model is told in an analysis or a composite step."""
    before = _results(plan.having("completed"))
    told = [f"The task as a whole: {plan.goal}", *([f"Results so far:\n{before}"] if before else [])]
    if step.type == "composite":
        told += _acted(acted)
        tools = f" ({', '.join(step.tool_hints)})" if step.tool_hints else ""
        told.append(f"Use the tools{tools} for it; do not calculate or guess what they can tell you.")
    told.append(f"Do only this part of it now: {instruction}")
    if step.error is not None:
        told.append(f"The last attempt failed: {shortened(step.error, SHOWN_OF_ONE)}\nDo it in another way.")
    return "\n\n".join([*told, "Reply with the result of this part, in plain text."])


def _form(frame: Frame) -> str:
    first = f"s{frame.next_number}"
    given = (*_RULES, *_TOOL_RULES) if frame.tools else _RULES
    rules = [_ORDER[frame.mode], *(each.format(first=first, most=frame.most) for each in given)]
    if frame.kept:
        rules.append(f"Number the new steps from {first} on; they may refer to completed steps.")
    types = [_TYPES] if frame.tools else []
    return "\n".join([_FORM.format(_example(frame)), *types, "Rules:", *(f"- {each}" for each in rules)])


def _example(frame: Frame) -> str:
    """Return two steps in the form of a plan, with the agent's own tools: small models write what they see."""
    first, second = f"s{frame.next_number}", f"s{frame.next_number + 1}"
    reference = f"... {{{{from_step:{first}}}}} ..."
    tools = list(frame.tools.values())
    if tools:
        steps = [_example_call(first, tools[0], "..."), _example_call(second, tools[-1], reference)]
    else:
        steps = [{"id": first, "type": "analysis", "title": "...", "instruction": "..."}]
        steps.append({"id": second, "type": "analysis", "title": "...", "instruction": reference})
    if frame.mode == "dag":
        steps[1]["depends_on"] = [first]
    return '{"steps": [\n ' + ",\n ".join(json.dumps(each, ensure_ascii=False) for each in steps) + "\n]}"


def _example_call(step_id: str, spec: ToolSpec, value: str) -> dict[str, Any]:
    names = spec.parameters.get("required") or spec.parameters.get("properties", {})
    args = dict.fromkeys(names, "...")
    args |= dict.fromkeys(list(args)[-1:], value)
    why = {"why": "...", "confidence": 0.9}
    return {
        "id": step_id,
        "type": "tool_call",
        "title": "...",
        "tool_name": spec.name,
        "tool_args": args,
        "rationale": why,
    }


def _requirements(required: Mapping[str, int]) -> list[str]:
    if not required:
        return []
    lines = "\n".join(
        f"- {name}: at least {least} tool_call step{'s' if least > 1 else ''}" for name, least in required.items()
    )
    return [f"TOOL CALL REQUIREMENTS:\n{lines}"]


def _tools(tools: Mapping[str, ToolSpec]) -> str:
    if not tools:
        return "There are no tools: all steps are of type analysis."
    return "Tools:\n" + "\n".join(tool_line(each) for each in tools.values())


def tool_line(spec: ToolSpec) -> str:
    """Return a tool in one line: its name, its parameters and what it is for."""
    required = spec.parameters.get("required", ())
    parameters = [
        f"{name}{'' if name in required else '?'}: {_type(each)}"
        for name, each in spec.parameters.get("properties", {}).items()
    ]
    return f"- {spec.name}({', '.join(parameters)}): {' '.join(spec.description.split())}"


def _type(schema: object) -> str:
    if not isinstance(schema, dict):
        return "any"
    if "enum" in schema:
        return " | ".join(map(repr, schema["enum"]))
    options = [_type(each) for each in schema.get("anyOf", ())]
    return " | ".join(options) or str(schema.get("type", "any"))


def _standing(plan: Plan) -> str:
    """Return what became of the steps so far."""
    done, rest = plan.having("completed"), plan.having("failed", "skipped")
    lost = "\n".join(f"- {_named(each)}: {each.status}, {shortened(each.error or '', SUMMARY)}" for each in rest)
    told = [f"Results so far:\n{_results(done) or '(none)'}"]
    return "\n\n".join([*told, *([f"Not done:\n{lost}"] if lost else [])])


def _results(done: Sequence[PlanStep]) -> str:
    each_at_most = max(SHOWN_AT_LEAST, min(SHOWN_OF_ONE, SHOWN // max(1, len(done))))
    lines = (
        f"- {each.id} ({shortened(each.name, SUMMARY)}): {shortened(as_text(each.result), each_at_most)}"
        for each in done
    )
    text = "\n".join(lines)
    return text if len(text) <= 2 * SHOWN else text[-2 * SHOWN :]  # hundreds of steps: the newest


def _named(step: PlanStep) -> str:
    """Return what a step was: of a call the call itself, since its title may promise more than it returned."""
    if step.type == "tool_call":
        return f"{step.id} {step.tool_name} {shortened(as_text(step.tool_args), SUMMARY)}"
    return f"{step.id} ({shortened(step.name, SUMMARY)})"


def _acted(acted: Iterable[str]) -> list[str]:
    lines = "\n".join(f"- {each}" for each in acted)
    return [f"Calls with side effects so far; do not make them again:\n{lines}"] if lines else []


def _failures(failed: Sequence[PlanStep]) -> str:
    return "Failed:\n" + "\n".join(f"- {_named(each)}: {shortened(each.error or '', SHOWN_OF_ONE)}" for each in failed)
