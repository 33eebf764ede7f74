"""Policies about calls: which tools an agent must use, and how often it may call each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Final

from pydantic import BaseModel, Field

from playhead.compose.registration import Policy
from playhead.errors import UsageError, nearest
from playhead.kernel.checks import at_least, listed
from playhead.kernel.hooks import Nudge, Refuse, Stop, Unmet
from playhead.trace.events import DecisionEvaluated
from playhead.trace.types import text_of

if TYPE_CHECKING:
    from playhead.compose.contexts import CallContext, HookContext, PhaseContext, ToolResultContext
    from playhead.compose.harness import Harness
    from playhead.trace.events import ToolCallCompleted
    from playhead.trace.types import ToolCall, ToolSpec

MISSING: Final = "required_tools_missing"
MAX_CALLS: Final = 10
"""The most calls of one tool that the model may require."""
MAX_DESCRIPTION: Final = 300
"""Characters of a tool's description that the model is shown."""
_PROMPT: Final = (
    "Which of these tools must be called to solve the task, and how often at least? Name only tools without which it "
    "cannot be solved; name none if it can.\n\nTask:\n{task}\n\nTools:\n{tools}"
)


class RequiredTool(BaseModel):
    """A tool without which the task cannot be solved."""

    tool: str
    """The tool's name."""
    calls: int = Field(default=1, ge=1, le=MAX_CALLS)
    """Calls that are necessary at least."""


class RequiredTools(BaseModel):
    """The tools that a task requires."""

    reason: str
    """Why these, in a sentence."""
    tools: list[RequiredTool] = Field(max_length=30)
    """The tools; empty when none is required."""


def require_tools(
    tools: str | Sequence[str] | Mapping[str, int] = (),
    *,
    retries: int = 2,
    max_failures: int | None = 3,
    infer: bool = False,
) -> Policy:
    """Accept an answer only after these tools have returned a result.

    Args:
        tools: their names; a dict also gives the number of results of each.
        retries: how often an early answer is sent back; the next one is accepted, and the run ends as `required_tools_missing`.
        max_failures: consecutive failures of one tool with the same error that end the run as `required_tools_missing`;
            None for no limit.
        infer: whether to ask the model first which further tools the task requires.
    """
    if isinstance(tools, Mapping):
        least = _counts("require_tools", tools)
    else:
        least = dict.fromkeys((tools,) if isinstance(tools, str) else listed("require_tools", tools), 1)
    at_least("require_tools(retries=…)", retries, 0)
    if max_failures is not None:
        at_least("max_failures", max_failures, 1)
    required = _Required(least, retries, max_failures, bool(infer))
    return Policy(
        "require_tools",
        asdict(required),
        required.register,
        check=lambda _, known: _known("require_tools", least, known),
    )


@dataclass(slots=True)
class _Progress:
    """An agent's progress with its required tools."""

    required: dict[str, int]
    succeeded: Counter[str] = field(default_factory=Counter)
    sent_back: int = 0


@dataclass
class _Required:
    tools: dict[str, int]
    retries: int
    max_failures: int | None
    infer: bool

    def register(self, harness: Harness) -> None:
        self._of = harness.per_run(lambda: _Progress(dict(self.tools)))
        harness.tap("tool.result", self._count)
        harness.unmet(self._unmet)
        harness.before("complete", self._check_answer)
        if self.infer:
            harness.before("strategy-select", self._infer)
        if self.max_failures is not None:
            harness.before("think", self._end_if_failing)

    def _count(self, completed: ToolCallCompleted, context: ToolResultContext) -> None:
        if completed.ok and not context.in_tool:
            self._of(context).succeeded[completed.tool] += 1

    def _unmet(self, context: HookContext) -> list[Unmet]:
        run, state = self._of(context), context.state
        used = state.tools_used if state is not None else frozenset()
        left = {name: least - run.succeeded[name] for name, least in run.required.items()}
        missing = [name for name, least in run.required.items() if name not in used or (least > 1 and left[name] > 0)]
        return [Unmet(f"call {_label(name, left[name])}", name, left[name]) for name in missing]

    def _check_answer(self, context: PhaseContext) -> Nudge | Stop | None:
        left = self._unmet(context)
        if not left or not context.answered:
            return None
        run, names = self._of(context), ", ".join(_label(str(each.tool), each.calls) for each in left)
        run.sent_back += 1
        ends = Stop(f"the task requires a successful call of {names}, and there was none", terminated_by=MISSING)
        text = f"The task requires a successful call of {names} first. Make it, then answer."
        return ends if run.sent_back > self.retries else Nudge(text, "required-tools", otherwise=ends)

    def _end_if_failing(self, context: PhaseContext) -> Stop | None:
        """End the run when a required tool fails repeatedly with the same error."""
        steps, most = context.state.steps, self.max_failures or 1
        for each in self._unmet(context):
            results = [step for step in steps if step.type == "observation" and step.tool == each.tool]
            errors = [step.content for step in results[-most:] if step.ok is False]
            if len(errors) == most and len(set(errors)) == 1:
                fix = "Fix: mend the tool, leave it out of require_tools, or raise its max_failures="
                why = f"{each.tool}, which is required, failed {most} times in a row with: {errors[0][:500]}. {fix}"
                return Stop(why, terminated_by=MISSING)
        return None

    async def _infer(self, context: PhaseContext) -> None:
        """Ask the model which further tools the task requires."""
        specs = {name: spec for name, spec in context.tools.items() if spec.kind != "meta"}
        if not specs:
            return
        listed = "\n".join(f"- {name}: {spec.description[:MAX_DESCRIPTION]}" for name, spec in specs.items())
        prompt = _PROMPT.format(task=text_of(context.task), tools=listed)
        inferred = await context.model.ask_for(prompt, RequiredTools, purpose="required-tools")
        calls = {} if inferred is None else {each.tool: each.calls for each in inferred.tools if each.tool in specs}
        required = self._of(context).required
        required.update({name: max(count, required.get(name, 0)) for name, count in calls.items()})
        found = ", ".join(f"{name} ({count})" for name, count in calls.items()) or "none"
        why = "the answer could not be read" if inferred is None else inferred.reason
        context.record(DecisionEvaluated(decision=f"required tools: {found}", rationale=why or None))


def tool_budgets(budgets: Mapping[str, int]) -> Policy:
    """Limit the calls of each tool: a further call is refused and the run continues; the killswitch `tool_limit` ends it.

    Calls with invalid arguments, and calls that a rule denied, do not count. Calls of a tool that is still required are not
    refused.
    """
    given = _counts("tool_budgets", budgets)
    return Policy(
        "tool_budgets",
        {"budgets": given},
        _Budgets(given).register,
        check=lambda _, known: _known("tool_budgets", given, known),
    )


@dataclass(slots=True)
class _Used:
    calls: Counter[str] = field(default_factory=Counter)
    admitted: set[str] = field(default_factory=set)
    is_nudged: bool = False


@dataclass
class _Budgets:
    budgets: dict[str, int]

    def register(self, harness: Harness) -> None:
        self._of = harness.per_run(_Used)
        harness.on("tool.call", self._admit)
        harness.tap("tool.result", self._give_back)
        harness.before("think", self._nudge_when_used_up)

    def _admit(self, call: ToolCall, context: CallContext) -> Refuse | None:
        budget = self.budgets.get(call.name)
        if budget is None or context.in_tool:
            return None
        run = self._of(context)
        if run.calls[call.name] >= budget and not any(each.tool == call.name for each in context.unmet):
            used = "one call is" if budget == 1 else f"{budget} calls are"
            return Refuse(
                f"{call.name} was not called: its {used} used up. Use the results you have: {next_step(context)}"
            )
        run.calls[call.name] += 1
        run.admitted.add(call.id)
        return None

    def _give_back(self, completed: ToolCallCompleted, context: ToolResultContext) -> None:
        run = self._of(context)
        if completed.ended == "refused" and completed.call_id in run.admitted:
            run.calls[completed.tool] -= 1

    def _nudge_when_used_up(self, context: PhaseContext) -> Nudge | None:
        run = self._of(context)
        if run.is_nudged or any(run.calls[name] < budget for name, budget in self.budgets.items()):
            return None
        run.is_nudged = True
        calls = ", ".join(f"{name} ({budget})" for name, budget in self.budgets.items())
        text = f"You have made all the calls there are for {calls}. Put the results together: {next_step(context)}."
        return Nudge(text, "budget")


def next_step(context: HookContext) -> str:
    """Return the next step of a model that has enough results."""
    if context.unmet:
        return f"{', '.join(each.what for each in context.unmet)} next"
    if "final-answer" in context.tools:
        return "give the answer with final-answer, or in plain text"
    return "give the answer in plain text"


def _label(name: str, left: int) -> str:
    return f"{name} ({left} more times)" if left > 1 else name


def _counts(name: str, given: Mapping[str, int]) -> dict[str, int]:
    if not isinstance(given, Mapping):
        raise UsageError(f"{name} says how many calls by the tool's name, such as {{'search': 4}}; it is {given!r}")
    return {tool: at_least(f"{name} of {tool}", count, 1) for tool, count in given.items()}


def _known(policy: str, names: Mapping[str, int], tools: Mapping[str, ToolSpec]) -> None:
    known = [name for name, spec in tools.items() if spec.kind != "meta"]
    for name in names:
        if name not in known:
            raise UsageError(f"{policy} names {name!r}, which is not a tool of this agent.{nearest(str(name), known)}")
