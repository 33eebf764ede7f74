"""What is known of one owner while its spans are made: what it has open, and the phases of its strategy.

An owner is an agent, or a tool that used the ports. Events say when a phase begins and ends: attempts of reflexion, depths of a
search, steps of a plan, checks. A strategy without phases gets no span between its agent and its calls.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final

from openinference.semconv.trace import OpenInferenceSpanKindValues as Kind
from opentelemetry.trace import Status, StatusCode

from playhead.spans.agent_span import COUNTS
from playhead.spans.tree import OK
from playhead.trace import events as e

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from opentelemetry.sdk.trace import ReadableSpan

    from playhead.spans.masking import Masking
    from playhead.spans.thread import SpanThread
    from playhead.spans.tree import OpenSpan, SpanTree
    from playhead.trace.line import Record
    from playhead.trace.types import AgentHeader, FallbackInfo, Prices, StrategyFacts

CHECK: Final = "verify"
"""The purpose with which a model is asked to check an answer, and the span of that check."""
_OVER: Final = frozenset({"completed", "failed", "skipped"})


@dataclass(slots=True)
class OpenRequest:
    """An attempt at a model call that was not answered yet."""

    span: OpenSpan
    asked: e.LlmRequested


@dataclass(slots=True)
class SpanOwner:
    """What is known of one owner."""

    name: str
    """As events call it."""
    home: OpenSpan
    """What its operations belong to: its agent's span, or that of the tool call whose body asked."""
    header: AgentHeader
    """The agent's, or that of the agent whose tool it is."""
    path: str
    """The names of the agents from the outermost to this one."""
    thread: SpanThread
    phases: Phases
    requests: dict[tuple[int, int], OpenRequest] = field(default_factory=dict)
    """Requests that are open, by number and attempt."""
    answered: dict[int, OpenSpan] = field(default_factory=dict)
    """Spans of those that were answered, by number."""
    calls: dict[str, OpenSpan] = field(default_factory=dict)
    """Tool calls that are open, by id."""
    repaired: dict[str, list[str]] = field(default_factory=dict)
    """What was put right in calls that have not started, by id."""

    @property
    def is_agent(self) -> bool:
        """Whether it is an agent, and not the body of a tool."""
        return self.home.kind is Kind.AGENT

    def count(self, what: str) -> None:
        """Count one more span of its own."""
        counts = self.home.metadata.get(COUNTS)
        if self.is_agent and counts is not None:
            counts[what] += 1

    def address_of(self, model: str) -> str | None:
        """Return where a model was reached, when the header says it."""
        asked = self._asked(model)
        return None if asked is None else asked.address

    def prices_of(self, model: str) -> Prices | None:
        """Return what a token of a model cost at the start, when the header says it."""
        asked = self._asked(model)
        return None if asked is None else asked.prices

    def _asked(self, model: str) -> AgentHeader | FallbackInfo | None:
        if model == self.header.model:
            return self.header
        return next((each for each in self.header.fallbacks if each.model == model), None)


@dataclass(slots=True)
class Phase:
    """A phase that has not ended."""

    span: OpenSpan
    step: str | None
    """The step of a plan that it is."""
    last: Any = None
    """The newest answer or result in it, which is its output unless something else is said."""


@dataclass(slots=True)
class Phases:
    """The phases of one owner."""

    owner: str
    tree: SpanTree
    masking: Masking
    home: OpenSpan
    declared: StrategyFacts
    """What its strategy says of itself."""
    open: dict[str, Phase] = field(default_factory=dict)
    """By name, in the order in which they began."""
    counts: dict[str, int] = field(default_factory=dict)
    steps: dict[tuple[str, str], Any] = field(default_factory=dict)
    """The steps of plans, by plan and id."""
    seq: int = 0
    """The event that is looked at."""

    # --- where operations belong --------------------------------------------------------------------------------------

    def of_request(self, event: e.LlmRequested, said: Any, seq: int, now: int) -> OpenSpan:  # noqa: ANN401 - a message's content
        """Return the span that a request belongs to; what it says is the input of a phase that began with it."""
        self.seq = seq
        if event.purpose == CHECK and CHECK not in self.open:
            self._begin(CHECK, CHECK, now, kind=Kind.EVALUATOR)
        phase = self._phase(event.step)
        if phase is None:
            return self.home
        if not phase.span.attributes:
            phase.span.attributes.update(self.masking.input(said))
        return phase.span

    def of_call(self, step: str | None = None) -> OpenSpan:
        """Return the span that a call belongs to: of its step, else of the phase that began last."""
        phase = self._phase(step)
        return self.home if phase is None else phase.span

    def _phase(self, step: str | None) -> Phase | None:
        """Return the phase of a step, else the newest; steps, which may run at once, hold only their own."""
        newest = None
        for phase in self.open.values():
            if phase.step is not None and phase.step == step:
                return phase
            newest = phase if phase.step is None else newest
        return newest

    def answered(self, span: OpenSpan, purpose: str, text: str) -> None:
        """Note an answer, which may be the output of its phase; what a critic says of one is none."""
        answering = self.declared.answering
        for phase in self.open.values():
            counts = phase.step is not None or not answering or purpose in answering
            if phase.span is span.above and text and counts:
                phase.last = text

    def called(self, span: OpenSpan, said: Any) -> None:  # noqa: ANN401 - any JSON value
        """Note a result, which is the output of a plan's step, and of another phase in which nothing was said."""
        for phase in self.open.values():
            if phase.span is span.above and (phase.step is not None or phase.last is None):
                phase.last = said

    # --- what events make of them -------------------------------------------------------------------------------------

    def take(self, record: Record, now: int) -> list[ReadableSpan]:
        """Return the spans that one of `TAKEN` completes."""
        self.seq = record.seq
        return self._TAKES[type(record.event)](self, record.event, now)

    def _planned(self, event: e.PlanCreated, _now: int) -> list[ReadableSpan]:
        for step in event.steps:
            if isinstance(step, dict) and isinstance(step.get("id"), str):
                self.steps[event.plan_id, step["id"]] = step
        return []

    def _step_changed(self, event: e.PlanStepChanged, now: int) -> list[ReadableSpan]:
        name = f"step:{event.step_id}"
        if event.status == "in_progress" and name not in self.open:
            step = self.steps.get((event.plan_id, event.step_id), event.step_id)
            self._begin(name, name, now, step=event.step_id, attributes=self.masking.passed(step))
        elif event.status == "failed":
            status = Status(StatusCode.ERROR, self.masking.word(event.reason or "the step failed"))
            return self._end(name, now, status, self.masking.quoting(event.reason) if event.reason else None)
        elif event.status in _OVER:
            return self._end(name, now)
        return []

    def _entered(self, event: e.PhaseEntered, now: int) -> list[ReadableSpan]:
        ended = self._end(event.phase, now)
        self._begin(event.phase, f"{event.phase}:{event.number}", now)
        return ended

    def _completed(self, event: e.PhaseCompleted, now: int) -> list[ReadableSpan]:
        return self._end(event.phase, now)

    def _judged(self, event: e.Critique, _now: int) -> list[ReadableSpan]:
        phase = self._phase(None)
        if event.thought is None and phase is not None:
            said = {"satisfied": event.satisfied, "score": event.score, "critique": self.masking.word(event.text)}
            phase.span.metadata |= said
        return []

    def _compared(self, event: e.AlternativesConsidered, _now: int) -> list[ReadableSpan]:
        phase = self._phase(None)
        if event.kept is not None and phase is not None:
            phase.last = event.model_dump(mode="json", exclude={"kind"}, exclude_none=True)
        return []

    def _checked(self, event: e.VerifierVerdict, now: int) -> list[ReadableSpan]:
        if CHECK not in self.open:
            self._begin(CHECK, CHECK, now, kind=Kind.EVALUATOR)
        if CHECK in self.open:
            self.open[CHECK].span.metadata["verified"] = event.verified
        said = {"verified": event.verified, "summary": event.summary, "checks": list(event.checks)}
        return self._end(CHECK, now, output=self.masking.quoting(said))

    def _guarded(self, event: e.GuardrailViolation, now: int) -> list[ReadableSpan]:
        name = f"guardrail:{event.guard}"
        self._begin(name, name, now, kind=Kind.GUARDRAIL, blocked=event.blocked)
        status = Status(StatusCode.ERROR, self.masking.word("; ".join(event.violations))) if event.blocked else OK
        return self._end(name, now, status, self.masking.quoting(list(event.violations)))

    def _chosen(self, event: e.StrategySelected, _now: int) -> list[ReadableSpan]:
        self.declared = event.declares
        return []

    def _switched(self, event: e.StrategySwitched, now: int) -> list[ReadableSpan]:
        self.declared = event.declares
        return self.end_all(now, OK)

    _TAKES: ClassVar[Mapping[type[e.EventBase], Callable[..., list[ReadableSpan]]]] = MappingProxyType(
        {
            e.PlanCreated: _planned,
            e.PlanStepChanged: _step_changed,
            e.PhaseEntered: _entered,
            e.PhaseCompleted: _completed,
            e.Critique: _judged,
            e.AlternativesConsidered: _compared,
            e.StrategySelected: _chosen,
            e.VerifierVerdict: _checked,
            e.GuardrailViolation: _guarded,
            e.StrategySwitched: _switched,
        }
    )
    TAKEN: ClassVar = tuple(_TAKES)
    """The events that begin or end phases, beside requests."""

    def end_all(self, now: int, status: Status) -> list[ReadableSpan]:
        """Return all phases as ended, the newest first."""
        return [span for name in reversed(list(self.open)) for span in self._end(name, now, status)]

    # --- beginning and ending -----------------------------------------------------------------------------------------

    def _begin(  # noqa: PLR0913 - what a phase begins with
        self,
        name: str,
        shown: str,
        now: int,
        *,
        kind: Kind = Kind.CHAIN,
        step: str | None = None,
        attributes: dict[str, Any] | None = None,
        **facts: object,
    ) -> None:
        number = self.counts[name] = self.counts.get(name, -1) + 1
        span = self.tree.open(
            f"phase:{self.owner}:{name}:{number}",
            shown,
            kind,
            self.of_call(),
            now,
            attributes=attributes or {},
            metadata={"owner": self.owner, "seq": self.seq, "number": number, **facts},
        )
        if span is not None:
            self.open[name] = Phase(span, step)

    def _end(
        self, name: str, now: int, status: Status = OK, output: dict[str, Any] | None = None
    ) -> list[ReadableSpan]:
        """Return a phase as ended; its output is what was last said in it, unless something else is given."""
        phase = self.open.pop(name, None)
        if phase is None or not phase.span.is_open:
            return []
        if output is None and phase.last is not None:
            output = self.masking.output(phase.last)
        return self.tree.close(phase.span, now, status, output)
