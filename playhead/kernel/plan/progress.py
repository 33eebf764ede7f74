"""A plan on its way: what has become of its steps, and every change of them as an event."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from playhead.kernel.state import Step, transition
from playhead.trace.events import PlanCreated, PlanStepChanged
from playhead.trace.values import as_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.kernel.plan.steps import PlanMode, PlanStep, StepStatus
    from playhead.kernel.session import Session
    from playhead.kernel.state import KernelState
    from playhead.trace.types import ToolSpec
    from playhead.trace.values import JsonValue

NO_TURNS: Final = "the turns of the agent are used up"
MAX_TOLD: Final = 20
"""Calls with side effects that the model is told of."""


@dataclass(slots=True)
class Plan:
    """The steps for a goal, in order, together with the agent's state."""

    id: str
    """Id of the plan; its versions share it."""
    goal: str
    """What it is for."""
    mode: PlanMode
    """Whether steps run one after another, or as soon as what they need is there."""
    session: Session
    state: KernelState
    tools: dict[str, ToolSpec]
    """The tools that steps may call."""
    by_id: dict[str, PlanStep] = field(default_factory=dict)
    """The steps by their ids, in order."""
    version: int = 0
    """0 for the first plan; one more for each time that steps were replaced or added."""
    next_number: int = 1
    """The number of the next step's id."""
    replans: int = 0
    """How often steps were replaced."""
    acted: dict[str, tuple[PlanStep, str | None]] = field(default_factory=dict)
    """Calls with side effects, by tool and arguments: the step that made them, and the result; None of one that failed, and may
    have acted, too."""

    def having(self, *statuses: StepStatus) -> list[PlanStep]:
        """Return the steps that have one of these states."""
        return [each for each in self.by_id.values() if each.status in statuses]

    def ready(self) -> list[PlanStep]:
        """Return the pending steps that may begin now, of which in `linear` mode the first."""
        found = [each for each in self.having("pending") if self.results.keys() >= set(each.depends_on)]
        return found[:1] if self.mode == "linear" else found

    # --- what new steps have to fit into -----------------------------------------------------------------------------

    @property
    def turns_left(self) -> int:
        """Turns that the agent has left."""
        return self.session.header.max_iterations - self.state.iteration

    @property
    def has_room(self) -> bool:
        """Whether there is a turn left for another step, beside the one for the answer."""
        return self.turns_left > 1

    def most(self, gone: Sequence[PlanStep]) -> int:
        """Return how many steps there may be in the place of these; one turn is kept for the answer."""
        return max(1, self.turns_left - 1 - sum(each not in gone for each in self.having("pending")))

    # --- what becomes of the steps ------------------------------------------------------------------------------------

    @property
    def results(self) -> dict[str, JsonValue]:
        """The results of the completed steps, by their ids."""
        return {each.id: each.result for each in self.having("completed")}

    def begin(self, steps: Sequence[PlanStep], reason: str | None = None) -> None:
        """Make these the steps of the plan, and say so."""
        self.by_id = {each.id: each for each in steps}
        self.next_number = max([self.next_number, *(int(each.id[1:]) + 1 for each in steps)])
        content = tuple(each.content() for each in steps)
        self.session.emit(
            PlanCreated(plan_id=self.id, version=self.version, goal=self.goal, steps=content, reason=reason)
        )
        made = Step(type="plan", content=json.dumps(content, ensure_ascii=False), iteration=self.state.iteration)
        self.reach(steps=(*self.state.steps, made))

    def replace_steps(self, gone: Sequence[PlanStep], new: Sequence[PlanStep], reason: str) -> None:
        """Put new steps in the place of others, as another version; what needed one of those needs the last new one."""
        self.version += 1
        old = list(self.by_id.values())
        place = next((number for number, each in enumerate(old) if each in gone), len(old))
        names = dict.fromkeys((each.id for each in gone), new[-1].id)
        for each in gone:
            if each.status == "pending":
                self.change(each.id, "skipped", f"replaced in version {self.version}")
        kept = [each.with_names(names) for each in old if each.id not in names]
        self.begin([*kept[:place], *new, *kept[place:]], reason)

    def change(self, step_id: str, status: StepStatus, reason: str | None = None, **fields: Any) -> None:  # noqa: ANN401 - of a step
        """Change the state of a step, and say so; of one that is not carried out the reason stays."""
        if status in ("failed", "skipped"):
            fields["error"] = reason
        self.by_id[step_id] = self.by_id[step_id].model_copy(update={"status": status, **fields})
        self.session.emit(PlanStepChanged(plan_id=self.id, step_id=step_id, status=status, reason=reason))

    def skip_the_rest(self) -> None:
        """Skip what is pending: it needs a step that is not completed, or there are no turns left for it."""
        for step in self.having("pending"):
            lacking = [each for each in step.depends_on if each not in self.results]
            why = f"it needs {lacking[0]}, which is not completed" if lacking else NO_TURNS
            self.change(step.id, "skipped", why)

    def reach(self, **changes: Any) -> None:  # noqa: ANN401 - the fields of a state
        """Change the agent's state; its `output` is that of a run that is stopped now."""
        self.state = self.session.reach(transition(self.state, **changes))

    # --- calls that may not be made twice ------------------------------------------------------------------------------

    def is_read_only(self, step: PlanStep) -> bool:
        """Return whether a step is one call that changes nothing."""
        return step.type == "tool_call" and self.tools[step.tool_name or ""].read_only

    def earlier(self, step: PlanStep, arguments: JsonValue) -> tuple[PlanStep, str | None] | None:
        """Return the call with side effects that this one would repeat, or None when it may be made.

        A version of a plan may have a call twice: that is meant. One that a later version has again is not.
        """
        made = self.acted.get(_call_key(step.tool_name, as_text(arguments)))
        is_meant = made is not None and made[1] is not None and made[0].version == step.version
        return None if is_meant or self.is_read_only(step) else made

    def note_calls(self, step_id: str, new: Sequence[Step]) -> bool:
        """Note the calls with side effects among the new steps of the state; return whether there were any."""
        returned = {each.call_id: each.content for each in new if each.type == "observation" and each.ok}
        made = [each for each in new if each.type == "action" and self._acts(each)]
        for each in made:
            self.acted[_call_key(each.tool, each.content)] = (self.by_id[step_id], returned.get(each.call_id))
        return bool(made)

    def _acts(self, made: Step) -> bool:
        spec = self.tools.get(made.tool or "")
        return spec is not None and not spec.read_only and made.call_id not in self.session.tools.refused

    @property
    def calls_made(self) -> list[str]:
        """The newest calls with side effects, for the model: they are not made again."""
        newest = list(self.acted.items())[-MAX_TOLD:]
        return [
            f"{key[:200]} (in {step.id}): {'failed, and may have had its effect' if result is None else 'done'}"
            for key, (step, result) in newest
        ]


def _call_key(tool: str | None, arguments: str) -> str:
    """Return what two calls have in common that are the same; `arguments` is their JSON."""
    return f"{tool} {json.dumps(json.loads(arguments), sort_keys=True)}"
