"""A policy that lets another strategy take over from one that is stuck.

The new strategy continues with the steps, results and turns so far.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from playhead.compose.policies.loops import finder, limits_of, options_of, stuck_nudge
from playhead.compose.registration import Policy
from playhead.errors import ModelError, UsageError
from playhead.kernel import handover
from playhead.kernel.describe import describe
from playhead.kernel.hooks import Nudge, SwitchTo
from playhead.kernel.rationale import strip_rationales
from playhead.kernel.strategies.base import strategy_class, tools_of_all
from playhead.trace.events import DecisionEvaluated, StrategySwitchEvaluated, StructuredOutputFailed
from playhead.trace.types import text_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.compose.contexts import PhaseContext
    from playhead.compose.harness import Harness
    from playhead.compose.policies.loops import Loop, LoopDetection
    from playhead.trace.header import AgentHeader
    from playhead.trace.types import ToolSpec

LAST: Final = 6
"""The number of steps that the model sees when it chooses the next strategy."""
LONGEST_REASON: Final = 500
_ASK: Final = (
    "A strategy is stuck with a task. Choose the one that is to go on; do not solve the task.\n\nTask:\n{task}\n\n"
    "It is {now}, and {stuck}. Its last steps:\n{steps}\n\nStrategies:\n{strategies}\n\n"
    "Reply with the name of one strategy ({now} to keep it) on the first line, and on the second why, in one sentence."
)


class Switching(BaseModel):
    """How an agent's strategy may be switched when it is stuck."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", strict=True)

    max_switches: int = Field(default=1, ge=1, le=10)
    """The maximum number of switches in a run; after them the strategy is kept, and the model gets a nudge."""
    fallback_strategy: str | None = None
    """The strategy to switch to; None: the model chooses."""
    candidates: list[str] = Field(
        default=["reactive", "reflexion", "plan-execute-reflect", "tree-of-thought"], max_length=32
    )
    """The strategies from which the model may choose."""
    settings: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Their settings, by name; strategies without an entry use their defaults."""

    @field_validator("candidates", "fallback_strategy")
    @classmethod
    def _full_names(cls, given: list[str] | str | None) -> list[str] | str | None:
        return handover.full_names([given])[0] if isinstance(given, str) else given and handover.full_names(given)

    @property
    def others(self) -> list[str]:
        """The strategies that may take over."""
        return self.candidates if self.fallback_strategy is None else [self.fallback_strategy]

    @model_validator(mode="after")
    def _complete(self) -> Switching:
        """Fill in the settings of all strategies, so that the header holds them."""
        self.settings.update(handover.with_defaults(self.others, self.settings))
        return self


def switch_strategy(
    switching: Switching | dict[str, Any] | None = None, detection: LoopDetection | dict[str, Any] | None = None
) -> Policy:
    """Let another strategy take over when an agent repeats itself; if the strategy is kept, the model gets a nudge.

    Args:
        switching: which strategies may take over, and how often; None for the defaults of `Switching`.
        detection: when an agent counts as stuck, as in `detect_loops`, which is not needed in addition.
    """
    allowed, limits = options_of("switch_strategy", switching, Switching), limits_of(detection)

    def register(harness: Harness) -> None:
        find, switches = finder(harness, limits), harness.per_run(list[str])

        async def look(context: PhaseContext) -> Nudge | SwitchTo | None:
            loop = find(context)
            if loop is None:
                return None
            nudge = stuck_nudge(loop, context)
            return await _consider(allowed, switches(context), loop, context) or nudge

        harness.before("think", look)

    brought = tools_of_all(allowed.settings)

    def check(header: AgentHeader, tools: Mapping[str, ToolSpec]) -> None:
        if not set(allowed.others) - {header.strategy}:
            raise UsageError(
                f"switch_strategy names no strategy but {header.strategy}, which runs already, so it could never switch; name "
                "another one in fallback_strategy= or candidates="
            )
        for name in brought:
            if name in tools and tools[name].kind != "meta":
                raise UsageError(f"{name!r} is the name of a tool of a strategy that may take over; rename yours")

    settings = {"switching": allowed.model_dump(mode="json"), "detection": limits.model_dump(mode="json")}
    return Policy("switch_strategy", settings, register, check=check, tools=brought)


async def _consider(allowed: Switching, switches: list[str], loop: Loop, context: PhaseContext) -> SwitchTo | None:
    """Return the switch, or None if the strategy is kept; `switches` are the strategies so far."""
    now = context.strategy
    if len(switches) == allowed.max_switches:
        why = f"it is stuck again ({loop.what}), and max_switches={allowed.max_switches} is used up. "
        why += "Fix: raise Switching(max_switches=…), or give the task to another strategy from the start"
        context.record(DecisionEvaluated(decision=f"keep-strategy: {now}", rationale=why))
        return None
    name, why = allowed.fallback_strategy, "fallback"
    if name is None:
        name, why = await _advice(allowed, loop, context)
    evaluated = StrategySwitchEvaluated(
        from_strategy=now, recommended_strategy=name, will_switch=name != now, rationale=why
    )
    context.record(evaluated)
    await context.offer("control.strategy-evaluated", evaluated.model_dump(exclude={"kind"}))
    if not evaluated.will_switch:
        return None
    switches.append(name)
    settings = allowed.settings.get(name, {})
    return SwitchTo(strategy_class(name).from_recorded(settings), f"{why} ({loop.what})")


async def _advice(allowed: Switching, loop: Loop, context: PhaseContext) -> tuple[str, str]:
    """Return the strategy that the model recommends, and why; without an answer, return the current one."""
    now = context.strategy
    names = list(dict.fromkeys([*allowed.candidates, now]))
    steps, strategies = handover.steps_told(context.state.steps[-LAST:]), handover.described_strategies(names)
    prompt = _ASK.format(task=text_of(context.task), now=now, stuck=loop.what, steps=steps, strategies=strategies)
    try:
        reply = strip_rationales(await context.model.ask(prompt, purpose="switch")).strip()
    except ModelError as error:
        return now, f"kept: the model did not answer: {describe(error)}"
    choice = handover.named_strategy(reply, names)
    if choice is None:
        error_text = f"it names not one of {', '.join(names)}"
        context.record(StructuredOutputFailed(expected="strategy", error=error_text, attempt=0))
        return now, "kept: the model's answer named no single strategy"
    return choice, (reply.partition("\n")[2].strip() or reply)[:LONGEST_REASON]
