"""The spans between an agent and its calls: attempts of reflexion, depths of a search, steps of a plan, checks and guardrails.

Events say when a phase begins and ends. A strategy without phases gets no span between its agent and its calls.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from openinference.semconv.trace import OpenInferenceSpanKindValues as Kind
from opentelemetry.trace import Status, StatusCode

from playhead.spans.tree import OK
from playhead.trace import events as e

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

    from playhead.spans.masking import Masking
    from playhead.spans.tree import OpenSpan, SpanTree
    from playhead.trace.header import StrategyFacts
    from playhead.trace.line import Record

CHECK: Final = "verify"
"""The purpose of a request that checks an answer, and the name of the span around it."""
TAKEN: Final = (
    *(e.PlanCreated, e.PlanStepChanged, e.PhaseEntered, e.PhaseCompleted, e.Critique, e.AlternativesConsidered),
    *(e.VerifierVerdict, e.GuardrailViolation, e.StrategySelected, e.StrategySwitched),
)
"""The events that concern phases, beside requests and calls."""


@dataclass(slots=True)
class Phase:
    """An open phase."""

    span: OpenSpan
    step: str | None
    """The id of the plan's step, for a step."""
    last: Any = None
    """The newest answer or result inside: the output of the phase, unless its end states another."""


@dataclass(slots=True)
class Phases:
    """The phases of one owner: an agent, or the body of a tool."""

    owner: str
    tree: SpanTree
    masking: Masking
    home: OpenSpan
    """The parent span of the phases."""
    declared: StrategyFacts
    """The strategy's own description of itself."""
    open: dict[str, Phase] = field(default_factory=dict)
    """Open phases by name, in the order in which they began."""
    counts: dict[str, int] = field(default_factory=dict)
    steps: dict[tuple[str, str], Any] = field(default_factory=dict)
    """The steps of plans, by plan and id."""
    seq: int = 0
    """The number of the current event."""

    # --- where operations belong --------------------------------------------------------------------------------------

    def of_request(self, event: e.LlmRequested, seq: int, now: int) -> OpenSpan:
        """Return the parent span of a request."""
        self.seq = seq
        if event.purpose == CHECK and CHECK not in self.open:
            self._begin(CHECK, CHECK, now, kind=Kind.EVALUATOR)
        return self.of_call(event.step)

    def asked(self, span: OpenSpan, newest: Any) -> None:  # noqa: ANN401 - a message's content
        """Note the newest message of a request: the first is the input of its phase."""
        if span is not self.home and not span.attributes:
            span.attributes.update(self.masking.input(newest))

    def of_call(self, step: str | None = None) -> OpenSpan:
        """Return the parent span of a call: its step, else the newest phase."""
        phase = self._phase(step)
        return self.home if phase is None else phase.span

    def _phase(self, step: str | None) -> Phase | None:
        """Return the phase of a step, else the newest other phase: steps may run in parallel, and contain only their own calls."""
        newest = None
        for phase in self.open.values():
            if phase.step is not None and phase.step == step:
                return phase
            newest = phase if phase.step is None else newest
        return newest

    def answered(self, span: OpenSpan, purpose: str, text: str) -> None:
        """Note an answer as the output of its phase, if the strategy declares its purpose as an answer."""
        answering = self.declared.answering
        for phase in self.open.values():
            counts = phase.step is not None or not answering or purpose in answering
            if phase.span is span.above and text and counts:
                phase.last = text

    def called(self, span: OpenSpan, result: Any) -> None:  # noqa: ANN401 - any JSON value
        """Note a result as the output of its step, or of a phase without an answer so far."""
        for phase in self.open.values():
            if phase.span is span.above and (phase.step is not None or phase.last is None):
                phase.last = result

    # --- what events begin and end ------------------------------------------------------------------------------------

    def take(self, record: Record, now: int) -> list[ReadableSpan]:  # noqa: C901, PLR0911 - a case for each event
        """Return the spans that an event of `TAKEN` closes."""
        self.seq = record.seq
        match event := record.event:
            case e.PlanCreated():
                known = (step for step in event.steps if isinstance(step, dict) and isinstance(step.get("id"), str))
                self.steps.update({(event.plan_id, step["id"]): step for step in known})
            case e.PlanStepChanged():
                return self._step_changed(event, now)
            case e.PhaseEntered():
                ended = self._end(event.phase, now)
                self._begin(event.phase, f"{event.phase}:{event.number}", now)
                return ended
            case e.PhaseCompleted():
                return self._end(event.phase, now)
            case e.Critique() if event.thought is None and (phase := self._phase(None)) is not None:
                critique = self.masking.word(event.text)
                phase.span.metadata |= {"satisfied": event.satisfied, "score": event.score, "critique": critique}
            case e.AlternativesConsidered() if event.kept is not None and (phase := self._phase(None)) is not None:
                phase.last = event.model_dump(mode="json", exclude={"kind"}, exclude_none=True)
            case e.VerifierVerdict():
                return self._checked(event, now)
            case e.GuardrailViolation():
                return self._guarded(event, now)
            case e.StrategySelected():
                self.declared = event.declares
            case e.StrategySwitched():
                self.declared = event.declares
                return self.end_all(now, OK)
        return []

    def _step_changed(self, event: e.PlanStepChanged, now: int) -> list[ReadableSpan]:
        name = f"step:{event.step_id}"
        if event.status == "in_progress" and name not in self.open:
            step = self.steps.get((event.plan_id, event.step_id), event.step_id)
            self._begin(
                name, name, now, step=event.step_id, attributes=self.masking.input(step, is_shown=self.masking.both)
            )
        elif event.status == "failed":
            status = Status(StatusCode.ERROR, self.masking.word(event.reason or "the step failed"))
            return self._end(
                name,
                now,
                status,
                self.masking.quoting(event.reason) if event.reason else None,
            )
        elif event.status in {"completed", "skipped"}:
            return self._end(name, now)
        return []

    def _checked(self, event: e.VerifierVerdict, now: int) -> list[ReadableSpan]:
        if CHECK not in self.open:
            self._begin(CHECK, CHECK, now, kind=Kind.EVALUATOR)
        if CHECK in self.open:
            self.open[CHECK].span.metadata["verified"] = event.verified
        verdict = {"verified": event.verified, "summary": event.summary, "checks": list(event.checks)}
        return self._end(CHECK, now, output=self.masking.quoting(verdict))

    def _guarded(self, event: e.GuardrailViolation, now: int) -> list[ReadableSpan]:
        name = f"guardrail:{event.guard}"
        self._begin(name, name, now, kind=Kind.GUARDRAIL, blocked=event.blocked)
        status = Status(StatusCode.ERROR, self.masking.word("; ".join(event.violations))) if event.blocked else OK
        return self._end(name, now, status, self.masking.quoting(list(event.violations)))

    def end_all(self, now: int, status: Status) -> list[ReadableSpan]:
        """End all phases, the newest first."""
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
            lambda: (attributes or {}, {"owner": self.owner, "seq": self.seq, "number": number, **facts}),
        )
        if span is not None:
            self.open[name] = Phase(span, step)

    def _end(
        self, name: str, now: int, status: Status = OK, output: dict[str, Any] | None = None
    ) -> list[ReadableSpan]:
        """End a phase; its output is the newest answer or result inside, unless another is given."""
        phase = self.open.pop(name, None)
        if phase is None or not phase.span.is_open:
            return []
        if output is None and phase.last is not None:
            output = self.masking.output(phase.last)
        return self.tree.close(phase.span, now, lambda: (status, output or {}))
