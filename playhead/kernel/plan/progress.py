"""A plan on its way: what has become of its steps, and every change of them as an event."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from playhead.kernel.meta_tools import is_meta
from playhead.kernel.plan.reading import Frame, with_names
from playhead.kernel.state import Step, transition
from playhead.trace.events import PlanCreated, PlanStepChanged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.kernel.plan.steps import Plan, PlanStep, StepStatus
    from playhead.kernel.session import Session
    from playhead.kernel.state import KernelState
    from playhead.trace.types import ToolSpec
    from playhead.trace.values import JsonValue

NO_TURNS: Final = "the turns of the agent are used up"
MAX_TOLD: Final = 20
"""Calls with side effects that the model is told of."""


@dataclass(frozen=True, slots=True)
class Acted:
    """A call of a tool with side effects that was made."""

    step_id: str
    version: int
    ok: bool
    """Whether it returned; one that failed may have acted, too."""
    result: JsonValue


@dataclass(slots=True)
class Progress:
    """Where a plan stands, together with the agent's state."""

    session: Session
    state: KernelState
    plan: Plan
    step_turns: int = 3
    """Turns of a composite step at most."""
    replans: int = 0
    """How often steps were replaced because some failed."""
    cut_short: bool = False
    """Whether steps were left out because the agent's turns were used up."""
    acted: dict[str, Acted] = field(default_factory=dict)
    """Calls with side effects, by tool and arguments."""
    looked_at: int = 0
    """Steps of the state whose calls are in `acted`."""
    tools: dict[str, ToolSpec] = field(init=False)
    """The tools that steps may call."""

    def __post_init__(self) -> None:
        """Look once which tools there are."""
        session = self.session
        self.looked_at = len(self.state.steps)
        self.tools = {
            name: each.spec
            for name, each in session.toolset.items()
            if session.offers(name) and not is_meta(session, name)
        }

    # --- what new steps have to fit into -----------------------------------------------------------------------------

    @property
    def turns_left(self) -> int:
        """Turns that the agent has left."""
        return self.session.header.max_iterations - self.state.iteration

    @property
    def has_room(self) -> bool:
        """Whether there is a turn left for another step, beside the one for the answer."""
        return self.turns_left > 1

    def frame(self, gone: Sequence[PlanStep] = ()) -> Frame:
        """Return what new steps in the place of these have to fit into; one turn is kept for the answer."""
        still_open = sum(each not in gone for each in self.plan.having("pending"))
        return Frame(self.plan, self.tools, max(1, self.turns_left - 1 - still_open), tuple(gone))

    def required(self) -> dict[str, int]:
        """Return how often each required tool has still to return a result."""
        left = {each.tool: each.calls for each in self.session.unmet if each.tool is not None}
        return {name: number for name, number in left.items() if number > 0 and name in self.tools}

    # --- what becomes of the steps ------------------------------------------------------------------------------------

    @property
    def results(self) -> dict[str, JsonValue]:
        """The results of the completed steps, by their ids."""
        return {each.id: each.result for each in self.plan.having("completed")}

    def begin(self, steps: Sequence[PlanStep], reason: str | None = None) -> None:
        """Make these the steps of the plan, and say so."""
        plan = self.plan
        plan.by_id = {each.id: each for each in steps}
        plan.next_number = max([plan.next_number, *(int(each.id[1:]) + 1 for each in steps)])
        content = tuple(each.content() for each in steps)
        self.session.emit(
            PlanCreated(plan_id=plan.id, version=plan.version, goal=plan.goal, steps=content, reason=reason)
        )
        made = Step(type="plan", content=json.dumps(content, ensure_ascii=False), iteration=self.state.iteration)
        self.reach(steps=(*self.state.steps, made))

    def replace_steps(self, gone: Sequence[PlanStep], new: Sequence[PlanStep], reason: str) -> None:
        """Put new steps in the place of others, as another version; what needed one of those needs the last new one."""
        self.plan.version += 1
        for each in gone:
            if each.status == "pending":
                self.change(each.id, "skipped", f"replaced in version {self.plan.version}")
        names = dict.fromkeys((each.id for each in gone), new[-1].id)
        steps = list(self.plan.by_id.values())
        place = min((number for number, each in enumerate(steps) if each.id in names), default=len(steps))
        after = [with_names(each, names) if each.status == "pending" else each for each in steps[place:]]
        self.begin([*steps[:place], *new, *(each for each in after if each.id not in names)], reason)
        self.log(f"plan version {self.plan.version}: {reason}")

    def change(self, step_id: str, status: StepStatus, reason: str | None = None, **fields: Any) -> None:  # noqa: ANN401 - of a step
        """Change the state of a step, and say so."""
        self.plan.by_id[step_id] = replace(self.plan.by_id[step_id], status=status, **fields)
        self.session.emit(PlanStepChanged(plan_id=self.plan.id, step_id=step_id, status=status, reason=reason))

    def complete(self, step_id: str, result: JsonValue, reason: str | None = None) -> None:
        """Note the result of a step."""
        self.change(step_id, "completed", reason, result=result, error=None)

    def fail(self, step_id: str, error: str) -> None:
        """Note that a step failed."""
        self.change(step_id, "failed", error, error=error)

    def skip_blocked(self) -> None:
        """Skip the steps that wait for one that will not be completed."""
        lost = [each.id for each in self.plan.having("failed", "skipped")]
        for needed in lost:  # which grows
            why = f"it needs {needed}, which is not completed"
            for each in self.plan.having("pending"):
                if needed in each.depends_on:
                    self.change(each.id, "skipped", why, error=why)
                    lost.append(each.id)

    def skip_the_rest(self) -> None:
        """Skip what is pending: there are no turns left for it."""
        for each in self.plan.having("pending"):
            self.cut_short = True
            self.change(each.id, "skipped", NO_TURNS, error=NO_TURNS)

    def reach(self, **changes: Any) -> None:  # noqa: ANN401 - the fields of a state
        """Change the agent's state; its `output` is that of a run that is stopped now."""
        self.state = self.session.reach(transition(self.state, **changes))

    def log(self, decision: str) -> None:
        """Note what was decided."""
        self.reach(decision_log=(*self.state.decision_log, decision))

    # --- calls that may not be made twice ------------------------------------------------------------------------------

    def earlier(self, tool: str, arguments: JsonValue, version: int) -> Acted | None:
        """Return the call with side effects that this one would repeat, or None when it may be made.

        A version of a plan may have a call twice: that is meant. One that a later version has again is not.
        """
        made = None if self.tools[tool].read_only else self.acted.get(_call_key(tool, json.dumps(arguments)))
        return None if made is None or (made.ok and made.version == version) else made

    def note_calls(self, step_id: str) -> bool:
        """Note the calls with side effects since the last time, made in this step; returns whether there were any."""
        new, self.looked_at = self.state.steps[self.looked_at :], len(self.state.steps)
        ok = {each.call_id: each for each in new if each.type == "observation" and each.ok}
        made = [each for each in new if each.type == "action" and self._acts(each)]
        for each in made:
            observed = ok.get(each.call_id)
            result, version = observed and observed.content, self.plan.by_id[step_id].version
            self.acted[_call_key(each.tool or "", each.content)] = Acted(step_id, version, observed is not None, result)
        return bool(made)

    def _acts(self, made: Step) -> bool:
        spec = self.tools.get(made.tool or "")
        return spec is not None and not spec.read_only and made.call_id not in self.session.tools.refused

    @property
    def calls_made(self) -> list[str]:
        """The newest calls with side effects, for the model: they are not made again."""
        became = {True: "done", False: "failed, and may have had its effect"}
        newest = list(self.acted.items())[-MAX_TOLD:]
        return [f"{key[:200]} (in {each.step_id}): {became[each.ok]}" for key, each in newest]


def _call_key(tool: str, arguments: str) -> str:
    """Return what two calls have in common that are the same; `arguments` is their JSON."""
    with suppress(ValueError, RecursionError):  # what the model wrote was no JSON, so nothing was called
        arguments = json.dumps(json.loads(arguments), sort_keys=True)
    return f"{tool} {arguments}"
