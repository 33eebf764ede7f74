"""A plan on its way: what has become of its steps, and every change of them as an event."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal

from pydantic import Field

from playhead.kernel.meta_tools import is_meta
from playhead.kernel.plan.hydrate import Frame
from playhead.kernel.plan.references import renamed
from playhead.kernel.plan.waves import blocked, needs, turned, waiting_for
from playhead.kernel.state import Step, transition
from playhead.kernel.strategies.base import KernelName, Strategy
from playhead.trace.events import PlanCreated, PlanStepChanged
from playhead.trace.values import as_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from playhead.kernel.plan.types import Plan, PlanStep, StepStatus
    from playhead.kernel.session import Session
    from playhead.kernel.state import KernelState
    from playhead.trace.types import ToolSpec
    from playhead.trace.values import JsonValue


NO_TURNS: Final = "the turns of the agent are used up"
MAX_TOLD: Final = 20
"""Calls with side effects that the model is told of."""


class PlanSettings(Strategy):
    """How to plan, and how much to do when a plan does not work out."""

    plan_mode: Literal["linear", "dag"] = "linear"
    """`linear`: one step after another. `dag`: a step runs as soon as what it needs is there, read-only calls beside each
    other."""
    max_refinements: int = Field(default=2, ge=0, le=20)
    """How often results that are not enough lead to further steps; 0: nobody looks whether they are."""
    reflection_depth: Literal["deep", "shallow"] = "deep"
    """How closely results are looked at, with at most 2500 or 1500 tokens."""
    step_retries: int = Field(default=1, ge=0, le=20)
    """How often a step that failed runs again as it is, where that cannot do something twice."""
    step_kernel_max_iterations: int = Field(default=3, ge=1, le=100)
    """Turns of a composite step at most."""
    patch_strategy: Literal["in-place", "replan-remaining"] = "replan-remaining"
    """What new steps replace: the failed step alone, or all that is still open, too."""
    max_replans: int = Field(default=3, ge=0, le=20)
    """How often steps are replaced because some failed."""
    kernel: KernelName = "react"
    """The registered kernel, the loop that makes the calls of a step, or thinks it out."""


@dataclass(frozen=True, slots=True)
class Acted:
    """A call of a tool with side effects that was made."""

    step_id: str
    version: int
    ok: bool
    """Whether it returned; one that failed may have acted, too."""
    result: JsonValue
    told: str
    """What it was, in words."""


@dataclass(slots=True)
class Progress:
    """Where a plan stands, together with the agent's state."""

    session: Session
    settings: PlanSettings
    state: KernelState
    plan: Plan
    next_number: int = 1
    """The number of the next step's id."""
    results: dict[str, JsonValue] = field(default_factory=dict)
    """The results of the completed steps, by their ids."""
    replans: int = 0
    """How often steps were replaced because some failed."""
    cut_short: bool = False
    """Whether steps were left out because the agent's turns were used up."""
    acted: dict[str, Acted] = field(default_factory=dict)
    """Calls with side effects, by tool and arguments."""
    looked_at: int = 0
    """Steps of the state whose calls are in `acted`."""
    needed_by: dict[str, list[str]] = field(default_factory=dict)
    """The steps that need a step, by its id."""
    tools: dict[str, ToolSpec] = field(init=False)
    """The tools that steps may call."""

    # --- what new steps have to fit into -----------------------------------------------------------------------------

    def __post_init__(self) -> None:
        """Look once which tools there are."""
        session = self.session
        self.tools = {
            name: each.spec
            for name, each in session.toolset.items()
            if session.offers(name) and not is_meta(session, name)
        }

    @property
    def turns_left(self) -> int:
        """Turns that the agent has left."""
        return self.session.header.max_iterations - self.state.iteration

    @property
    def has_room(self) -> bool:
        """Whether there is a turn left for another step, beside the one for the answer."""
        return self.turns_left > 1

    def frame(self, kept: Iterable[PlanStep] = (), *, version: int | None = None) -> Frame:
        """Return what new steps beside these have to fit into; one turn is kept for the answer."""
        kept = tuple(kept)
        still_open = sum(each.status == "pending" for each in kept)
        return Frame(
            tools=self.tools,
            mode=self.plan.mode,
            most=max(1, self.turns_left - 1 - still_open),
            kept=kept,
            next_number=self.next_number,
            version=self.plan.version + 1 if version is None else version,
        )

    # --- what becomes of the steps ------------------------------------------------------------------------------------

    def begin(self, steps: tuple[PlanStep, ...], reason: str | None = None) -> None:
        """Make these the steps of the plan, and say so."""
        self.plan = self.plan.with_steps(steps)
        self.needed_by = turned({each.id: needs(each) for each in steps})
        numbers = [int(each.id[1:]) for each in steps]
        self.next_number = max([self.next_number - 1, *numbers]) + 1
        content = tuple(each.content() for each in steps)
        plan = self.plan
        self.session.emit(
            PlanCreated(plan_id=plan.id, version=plan.version, goal=plan.goal, steps=content, reason=reason)
        )
        self._add_step("plan", json.dumps(content, ensure_ascii=False))

    def replace_steps(self, gone: Sequence[PlanStep], new: tuple[PlanStep, ...], reason: str) -> None:
        """Put new steps in the place of others, as another version; what needed one of those needs the last new one."""
        for each in gone:
            if each.status == "pending":
                self.change(each.id, "skipped", f"replaced in version {self.plan.version + 1}")
        ids = {each.id for each in gone}
        names = dict.fromkeys(ids, new[-1].id)
        steps = list(self.plan.steps)
        place = min((number for number, each in enumerate(steps) if each.id in ids), default=len(steps))
        before = [each for each in steps[:place] if each.id not in ids]
        after = [_renamed(each, names) for each in steps[place:] if each.id not in ids]
        self.plan = replace(self.plan, version=self.plan.version + 1)
        self.begin((*before, *new, *after), reason)
        self.log(f"plan version {self.plan.version}: {reason}")

    def change(self, step_id: str, status: StepStatus, reason: str | None = None, **fields: Any) -> None:  # noqa: ANN401 - of a step
        """Change the state of a step, and say so."""
        self.plan.change(step_id, status=status, **fields)
        self.session.emit(PlanStepChanged(plan_id=self.plan.id, step_id=step_id, status=status, reason=reason))

    def complete(self, step_id: str, result: JsonValue, tokens: int = 0, reason: str | None = None) -> None:
        """Note the result of a step; it is the best there is when the run is stopped now."""
        used = self.plan.step(step_id).tokens_used + tokens
        self.results[step_id] = result
        self.change(step_id, "completed", reason, result=result, error=None, tokens_used=used)
        self.hold(result)

    def hold(self, best: JsonValue) -> None:
        """Let this be the output of a run that is stopped now; None: what the newest call returned."""
        self.state = self.session.state = transition(self.state, output=best)

    def fail(self, step_id: str, error: str, tokens: int = 0) -> None:
        """Note that a step failed."""
        used = self.plan.step(step_id).tokens_used + tokens
        self.change(step_id, "failed", error, error=error, tokens_used=used)

    def skip_blocked(self) -> None:
        """Skip the steps that wait for one that will not be completed."""
        for step_id, needed in blocked(self.plan).items():
            self._skip(step_id, needed)

    def skip_waiting_for(self, failed: Sequence[str]) -> None:
        """Skip what waits for steps that failed; looks at no other steps, for many may fail one by one."""
        for step_id, needed in waiting_for(self.plan, failed, self.needed_by).items():
            self._skip(step_id, needed)

    def _skip(self, step_id: str, needed: str) -> None:
        why = f"it needs {needed}, which is not completed"
        self.change(step_id, "skipped", why, error=why)

    def skip_the_rest(self) -> None:
        """Skip what is pending: there are no turns left for it."""
        for each in self.plan.having("pending"):
            self.cut_short = True
            self.change(each.id, "skipped", NO_TURNS, error=NO_TURNS)

    # --- calls that may not be made twice ------------------------------------------------------------------------------

    def earlier(self, tool: str, arguments: Mapping[str, JsonValue], step: PlanStep) -> Acted | None:
        """Return the call with side effects that this one would repeat, or None when it may be made.

        A version of a plan may have a call twice: that is meant. One that a later version has again is not.
        """
        if self.tools[tool].read_only:
            return None
        made = self.acted.get(_call_key(tool, as_text(dict(arguments))))
        return None if made is None or (made.ok and made.version == step.version) else made

    def note_calls(self, step_ids: Mapping[str, str], default: str) -> bool:
        """Note the calls with side effects since the last time; returns whether there were any.

        Args:
            step_ids: the steps by their calls.
            default: the step of all other calls.
        """
        new, self.looked_at = self.state.steps[self.looked_at :], len(self.state.steps)
        ok = {each.call_id: each for each in new if each.type == "observation" and each.ok}
        found = False
        for each in new:
            spec = self.tools.get(each.tool or "") if each.type == "action" else None
            if spec is not None and not spec.read_only and each.call_id not in self.session.tools.refused:
                found = True
                self._note(each, ok.get(each.call_id), step_ids.get(each.call_id or "", default))
        return found

    def _note(self, made: Step, observed: Step | None, step_id: str) -> None:
        step = self.plan.step(step_id)
        result: JsonValue = None if observed is None else observed.content
        became = "done" if observed else "failed, and may have had its effect"
        told = f"{made.tool} {made.content[:200]} (in {step_id}): {became}"
        key = _call_key(made.tool or "", made.content)
        self.acted[key] = Acted(step_id, step.version, observed is not None, result, told)

    @property
    def calls_made(self) -> list[str]:
        """The newest calls with side effects, for the model: they are not made again."""
        return [each.told for each in list(self.acted.values())[-MAX_TOLD:]]

    # --- what is said of it ------------------------------------------------------------------------------------------------

    def log(self, decision: str) -> None:
        """Note what was decided."""
        self.state = self.session.state = transition(self.state, decision_log=(*self.state.decision_log, decision))

    def _add_step(self, kind: Literal["plan", "reflection"], content: str) -> None:
        step = Step(type=kind, content=content, iteration=self.state.iteration)
        self.state = self.session.state = transition(self.state, steps=(*self.state.steps, step))

    def reflected(self, text: str) -> None:
        """Add what was found about the results to what was done."""
        self._add_step("reflection", text)


def _renamed(step: PlanStep, names: Mapping[str, str]) -> PlanStep:
    if step.status != "pending":
        return step
    return replace(
        step,
        instruction=renamed(step.instruction, names),
        tool_args=renamed(step.tool_args, names),
        depends_on=tuple(dict.fromkeys(names.get(each, each) for each in step.depends_on)),
    )


def _call_key(tool: str, arguments: str) -> str:
    """Return what two calls have in common that are the same; `arguments` is their JSON."""
    with suppress(ValueError, RecursionError):  # what the model wrote was no JSON, so nothing was called
        arguments = json.dumps(json.loads(arguments), sort_keys=True)
    return f"{tool} {arguments}"
