"""The phases of strategies that have some, as spans: attempts of reflexion, depths of a search, steps of a plan, checks.

Events say when a phase begins and ends. A strategy without phases gets no span between its agent and its calls.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final

from openinference.semconv.trace import OpenInferenceSpanKindValues as Kind
from opentelemetry.trace import Status, StatusCode

from playhead.spans.tree import OK
from playhead.trace import events as e

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.util.types import AttributeValue

    from playhead.spans.masking import Masking
    from playhead.spans.tree import OpenSpan, SpanTree
    from playhead.trace.line import Record

CHECK: Final = "verify"
"""The purpose with which a model is asked to check an answer, and the span of that check."""
_STEP: Final = "step:"
_OVER: Final = frozenset({"completed", "failed", "skipped"})


@dataclass(slots=True)
class Phase:
    """A phase that has not ended."""

    span: OpenSpan
    last: Any = None
    """The newest answer or result in it, which is its output unless something else is said."""


@dataclass(slots=True)
class Phases:
    """The phases of one owner."""

    owner: str
    tree: SpanTree
    masking: Masking
    home: OpenSpan
    answering: frozenset[str]
    """The purposes to which the model answers the task."""
    open: dict[str, Phase] = field(default_factory=dict)
    """By what tells them apart, in the order in which they began."""
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
            self._begin(CHECK, CHECK, now)
        phase = self._phase(event.step)
        if phase is None:
            return self.home
        if not phase.span.attributes:
            phase.span.attributes.update(self.masking.input(said))
        return phase.span

    def of_call(self, step: str | None) -> OpenSpan:
        """Return the span that a call belongs to."""
        phase = self._phase(step)
        return self.home if phase is None else phase.span

    def current(self) -> OpenSpan:
        """Return the span of the phase that began last; steps of a plan, which may run at once, hold only their own."""
        return self.of_call(None)

    def _phase(self, step: str | None) -> Phase | None:
        found = None if step is None else self.open.get(f"{_STEP}{step}")
        return found or next((self.open[key] for key in reversed(self.open) if not key.startswith(_STEP)), None)

    def answered(self, span: OpenSpan, purpose: str, text: str) -> None:
        """Note an answer, which may be the output of its phase; what a critic says of one is none."""
        for key, phase in self.open.items():
            counts = key.startswith(_STEP) or not self.answering or purpose in self.answering
            if phase.span is span.above and text and counts:
                phase.last = text

    def called(self, span: OpenSpan, said: Any) -> None:  # noqa: ANN401 - any JSON value
        """Note a result, which is the output of a plan's step, and of another phase in which nothing was said."""
        for key, phase in self.open.items():
            if phase.span is span.above and (key.startswith(_STEP) or phase.last is None):
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
        key = f"{_STEP}{event.step_id}"
        if event.status == "in_progress" and key not in self.open:
            step = self.steps.get((event.plan_id, event.step_id), event.step_id)
            self._begin(key, key, now, self.masking.passed(step))
        elif event.status in _OVER:
            return self._step_failed(key, event.reason, now) if event.status == "failed" else self._end(key, now)
        return []

    def _step_failed(self, key: str, reason: str | None, now: int) -> list[ReadableSpan]:
        status = Status(StatusCode.ERROR, self.masking.word(reason or "the step failed"))
        return self._end(key, now, status, None if reason is None else self.masking.quoting(reason))

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
            phase.span.metadata.update({name: fact for name, fact in said.items() if fact is not None})
        return []

    def _compared(self, event: e.AlternativesConsidered, _now: int) -> list[ReadableSpan]:
        phase = self._phase(None)
        if event.kept is not None and phase is not None:
            phase.last = event.model_dump(mode="json", exclude={"kind"}, exclude_none=True)
        return []

    def _chosen(self, event: e.StrategySelected, _now: int) -> list[ReadableSpan]:
        self.answering = event.declares.answering
        return []

    def _checked(self, event: e.VerifierVerdict, now: int) -> list[ReadableSpan]:
        if CHECK not in self.open:
            self._begin(CHECK, CHECK, now)
        said = {"verified": event.verified, "summary": event.summary, "checks": list(event.checks)}
        return self._end(CHECK, now, output=self.masking.quoting(said), verified=event.verified)

    def _guarded(self, event: e.GuardrailViolation, now: int) -> list[ReadableSpan]:
        key = f"guardrail:{event.guard}"
        self._begin(key, key, now, kind=Kind.GUARDRAIL)
        found = self.masking.word("; ".join(event.violations))
        status = Status(StatusCode.ERROR, found) if event.blocked else OK
        return self._end(key, now, status, self.masking.quoting(list(event.violations)), blocked=event.blocked)

    def _switched(self, event: e.StrategySwitched, now: int) -> list[ReadableSpan]:
        self.answering = event.declares.answering
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
        return [span for key in reversed(list(self.open)) for span in self._end(key, now, status)]

    # --- beginning and ending -----------------------------------------------------------------------------------------

    def _begin(
        self,
        key: str,
        name: str,
        now: int,
        attributes: dict[str, AttributeValue] | None = None,
        kind: Kind | None = None,
    ) -> None:
        number = self.counts[key] = self.counts.get(key, -1) + 1
        kind = kind or (Kind.EVALUATOR if key == CHECK else Kind.CHAIN)
        metadata: dict[str, Any] = {"owner": self.owner, "seq": self.seq, "number": number}
        span = self.tree.open(
            f"phase:{self.owner}:{key}:{number}",
            name,
            kind,
            self.current(),
            now,
            attributes=attributes or {},
            metadata=metadata,
        )
        if span is not None:
            self.open[key] = Phase(span)

    def _end(
        self,
        key: str,
        now: int,
        status: Status = OK,
        output: dict[str, AttributeValue] | None = None,
        **facts: str | float | None,
    ) -> list[ReadableSpan]:
        """Return a phase as ended; its output is what was last said in it, unless something else is given."""
        phase = self.open.pop(key, None)
        if phase is None or not phase.span.is_open:
            return []
        if output is None and phase.last is not None:
            output = self.masking.output(phase.last)
        for name, fact in facts.items():
            if fact is not None:
                phase.span.metadata[name] = self.masking.word(fact) if isinstance(fact, str) else fact
        return self.tree.close(phase.span, now, status, output)
