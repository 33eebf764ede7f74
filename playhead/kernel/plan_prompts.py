"""The prompts of a plan: for its steps, for more of them, for a look at the results, for one step, and for the answer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from playhead.kernel.describe import shortened
from playhead.kernel.prompts import tool_lines
from playhead.trace.values import as_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from playhead.kernel.plan import Plan, PlanStep
    from playhead.trace.types import ToolSpec

SHOWN: Final = 16_000
"""The maximum characters of all results in one prompt."""
SHOWN_OF_ONE: Final = 2_000
"""Characters of one result."""
SUMMARY: Final = 500
"""Characters of the note about a step that was not carried out."""
_FORM: Final = "Reply with one JSON object and nothing else, in this form:\n{}"
_TYPES: Final = """Types of steps:
- tool_call: one call of one tool. tool_name is the tool, tool_args are all of its arguments, with their values.
- analysis: you think or write, without tools. instruction says what. Only for what no tool does.
- composite: some calls that cannot be known now. instruction says what for, tool_hints lists the tools."""
_RULES: Final = (
    "{{{{from_step:{first}}}}} stands for the result of step {first}. Write it wherever a later step needs that result.",
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


def plan_prompt(plan: Plan, required: Mapping[str, int]) -> str:
    """Return the prompt for a plan; `required` has the minimum number of calls by tool."""
    lines = [f"- {name}: at least {least} tool_call step{'s' if least > 1 else ''}" for name, least in required.items()]
    return _joined(
        f"Task: {plan.goal}\n\nDo not solve the task yet. Make a plan of the steps that solve it.",
        _tools(plan.tools),
        _form(plan),
        _section("TOOL CALL REQUIREMENTS", lines),
        f"The task again: {plan.goal}",
    )


def more_steps_prompt(plan: Plan, why: str) -> str:
    """Return the prompt for steps that replace those not completed, or for further ones; `why` says what is missing."""
    return _joined(
        f"Task: {plan.goal}\n\nThe plan was not enough: {why}\nWrite the new steps that are needed, in place of all that is not completed.",
        _progress(plan),
        _calls_made(plan),
        _tools(plan.tools),
        _form(plan),
        "Do not list steps that are completed, and do not repeat what failed: do it in another way.",
    )


def reflection_prompt(plan: Plan, form: str) -> str:
    """Return the prompt that asks whether the results are enough."""
    return _joined(
        f"Task: {plan.goal}",
        _progress(plan),
        "Are these results enough to answer the task? Is every part of the task covered? Does any result contradict another, or "
        "look wrong?",
        form,
    )


def answer_prompt(plan: Plan) -> str:
    """Return the prompt for the answer."""
    whole = len(plan.having("completed")) == len(plan.by_id)
    warned = "" if whole else "Some steps were not completed. Say what could not be found out."
    instruction = "Answer the task from these results, in plain text. Do not mention steps or the plan."
    return _joined(f"Task: {plan.goal}", _progress(plan), warned, instruction)


def step_prompt(plan: Plan, step: PlanStep, instruction: str) -> str:
    """Return the prompt of an analysis or a composite step."""
    tools = ""
    if step.type == "composite":
        which = f" ({', '.join(step.tool_hints)})" if step.tool_hints else ""
        tools = f"Use the tools{which} for it; do not calculate or guess what they can tell you."
    return _joined(
        f"The task as a whole: {plan.goal}",
        _section("Results so far", _results(plan)),
        _calls_made(plan) if step.type == "composite" else "",
        tools,
        f"Do only this part of it now: {instruction}",
        "Reply with the result of this part, in plain text.",
    )


def _joined(*parts: str) -> str:
    return "\n\n".join(filter(None, parts))


def _section(title: str, lines: Sequence[str]) -> str:
    return "\n".join([f"{title}:", *lines]) if lines else ""


def _form(plan: Plan) -> str:
    first, most = f"s{plan.next_number}", plan.turns_left - 1  # one turn is kept for the answer
    given = (*_RULES, *_TOOL_RULES) if plan.tools else _RULES
    rules = [_ORDER[plan.mode], *(each.format(first=first, most=most) for each in given)]
    if plan.by_id:
        rules.append(f"Number the new steps from {first} on; they may refer to completed steps.")
    types = [_TYPES] if plan.tools else []
    return "\n".join([_FORM.format(_example(plan)), *types, "Rules:", *(f"- {each}" for each in rules)])


def _example(plan: Plan) -> str:
    """Return two example steps with the agent's own tools, because small models imitate the example."""
    number, tools, steps = plan.next_number, list(plan.tools.values()), list[dict[str, Any]]()
    for step_id, what in ((f"s{number}", "..."), (f"s{number + 1}", f"... {{{{from_step:s{number}}}}} ...")):
        step: dict[str, Any] = {"id": step_id, "type": "analysis", "title": "...", "instruction": what}
        if tools:
            spec = tools[-1 if steps else 0]
            names = list(spec.parameters.get("required") or spec.parameters.get("properties", {}))
            args = dict.fromkeys(names, "...") | dict.fromkeys(names[-1:], what)
            step = {"id": step_id, "type": "tool_call", "title": "...", "tool_name": spec.name, "tool_args": args}
            step["rationale"] = {"why": "...", "confidence": 0.9}
        steps.append(step | ({"depends_on": [f"s{number}"]} if steps and plan.mode == "dag" else {}))
    return '{"steps": [\n ' + ",\n ".join(json.dumps(each, ensure_ascii=False) for each in steps) + "\n]}"


def _tools(tools: Mapping[str, ToolSpec]) -> str:
    lines = list(map(tool_lines, tools.values()))
    return _section("Tools", lines) or "There are no tools: all steps are of type analysis."


def _progress(plan: Plan) -> str:
    """Return the state of the steps so far."""
    open_steps = plan.having("failed", "skipped")
    lost = [f"- {_named(each)}: {each.status}, {shortened(each.error or '', SUMMARY)}" for each in open_steps]
    return _joined(_section("Results so far", _results(plan) or ["(none)"]), _section("Not done", lost))


def _results(plan: Plan) -> list[str]:
    """Return the results; the more there are, the shorter each is."""
    done = plan.having("completed")
    most = min(SHOWN_OF_ONE, SHOWN // max(1, len(done)))
    return [f"- {each.id} ({shortened(each.name, most)}): {shortened(as_text(each.result), most)}" for each in done]


def _named(step: PlanStep) -> str:
    """Return a step's description; for a call the call itself, since its title may promise more than it returned."""
    if step.type == "tool_call":
        return f"{step.id} {step.tool_name} {shortened(as_text(step.tool_args), SUMMARY)}"
    return f"{step.id} ({shortened(step.name, SUMMARY)})"


def _calls_made(plan: Plan) -> str:
    return _section("Calls with side effects so far; do not make them again", [f"- {each}" for each in plan.calls_made])
