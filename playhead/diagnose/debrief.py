"""An account of a run's decisions: what was asked, what was done and why, how it ended, and what does not hold.

It is a fold over the events and made of nothing else: no model is asked, and no reason is made up. What a debrief does
not prove stands in docs/guides/audit-a-decision.md.
"""

from __future__ import annotations

from collections import Counter
from functools import singledispatchmethod
from typing import TYPE_CHECKING, Any

from playhead.diagnose import debrief_model as m
from playhead.diagnose.arithmetic import Operands
from playhead.diagnose.claims import Ledger
from playhead.diagnose.debrief_account import account
from playhead.diagnose.debrief_facts import (
    LAST_WORDS,
    LONG,
    SHORT,
    AgentFacts,
    CallFacts,
    content_text,
    reason_of,
    short,
    shown,
)
from playhead.diagnose.debrief_strategies import StrategiesFold
from playhead.diagnose.deeds import own_words
from playhead.diagnose.numbers import SeenNumbers, figures_of
from playhead.trace import events as e
from playhead.trace.line import Record
from playhead.trace.spending import Spending
from playhead.trace.values import as_text

if TYPE_CHECKING:
    from playhead.trace.recording import Recording


def build_debrief(recording: Recording) -> m.Debrief:
    """Return the debrief of a run, whole or not; what the file lacks is among its `caveats`."""
    fold = DebriefFold()
    for record in recording.records:
        fold.add(record)
    return fold.result(recording.status, tuple(map(str, recording.problems)))


class DebriefFold:
    """Takes events as they come and remembers decisions, not results: it may watch a run while it goes on.

    One pass; memory grows with the calls and not with what they return.
    """

    def __init__(self) -> None:
        self.header: e.RunStarted | None = None
        self.ending: tuple[int, e.RunCompleted] | None = None
        self.snapshot: tuple[int, e.KernelStateSnapshot] | None = None
        self.agents: dict[str, AgentFacts] = {}
        self.path: list[tuple[m.PathStep, CallFacts | None]] = []
        self.decisions: list[m.Decision] = []
        self.assumptions: list[m.Assumption] = []
        self.alternatives: list[m.RejectedOption] = []
        self.curator: list[m.CuratorAction] = []
        self.approvals: list[m.ApprovalAnswer] = []
        self.strategies = StrategiesFold()
        self.steering: list[m.Steering] = []
        self.endings: dict[str, m.AgentEnding] = {}
        self.findings: dict[tuple[str, str], m.Finding] = {}
        self.errors: dict[tuple[str, str, str, str], m.ErrorSeen] = {}
        self.rungs: Counter[str] = Counter()
        self.unknown: Counter[str] = Counter()
        self.answer: str | None = None
        self.numbers = SeenNumbers()
        self.operands = Operands()
        self.ledger = Ledger()
        self.spending = Spending()
        self.model_calls = 0
        self.model_failures = 0
        self.writes = 0
        self.diverged = 0
        self.first_us: int | None = None
        self.last_us = 0
        self.last_seq = -1
        self.last_iteration = -1

    def add(self, record: Record) -> None:
        """Take the next event of the run; events have to come in the order of the file."""
        self.first_us = record.ts if self.first_us is None else self.first_us
        self.last_us, self.last_seq = max(self.last_us, record.ts), record.seq
        if record.owner == "root" and record.iteration is not None:
            self.last_iteration = max(self.last_iteration, record.iteration)
        self.strategies.add(record)
        self.spending.add(record)
        self._take(record.event, record)

    def result(self, recording: m.RecordingState | None = None, problems: tuple[str, ...] = ()) -> m.Debrief:
        """Return the debrief of what has been taken in so far; `recording` and `problems` are those of the file."""
        state = recording or ("closed" if self.ending else "open")
        return account(self, state, problems)

    def agent(self, owner: str) -> AgentFacts:
        """Return what is known of an owner."""
        if owner not in self.agents:
            self.agents[owner] = AgentFacts(owner, name=owner.rpartition("/")[2])
        return self.agents[owner]

    # --- what each kind of event adds -------------------------------------------------------------------------------

    @singledispatchmethod
    def _take(self, event: e.EventBase, _record: Record) -> None:
        """Events without a signal about decisions add nothing."""
        if isinstance(event, e.UnknownEvent):
            self.unknown[event.kind] += 1

    @_take.register
    def _(self, event: e.RunStarted, record: Record) -> None:
        if self.header is not None or record.owner != "root":
            return
        self.header = event
        self.operands.ask(event.agent.system_prompt or "")
        self.ledger.has_past = any(each.role == "assistant" for each in event.agent.examples)
        agent = self.agent(record.owner)
        agent.name, agent.asked_for_reasons = event.agent.name, event.agent.rationale and event.imported is None

    @_take.register
    def _(self, event: e.AgentStarted, record: Record) -> None:
        agent = self.agent(record.owner)
        is_imported = self.header is not None and self.header.imported is not None
        agent.name, agent.asked_for_reasons = event.agent.name, event.agent.rationale and not is_imported
        task = short(content_text(event.task))
        self.endings[record.owner] = m.AgentEnding(
            **_at(record), name=agent.name, task=task, status=None, by=None, output=None
        )

    @_take.register
    def _(self, event: e.AgentCompleted, record: Record) -> None:
        output = None if event.output is None else shown(event.output)
        known = self.endings.get(record.owner)
        name, task = (known.name, known.task) if known else (self.agent(record.owner).name, "")
        self.endings[record.owner] = m.AgentEnding(
            **_at(record), name=name, task=task, status=event.status, by=event.terminated_by, output=output
        )

    @_take.register
    def _(self, event: e.RunCompleted, record: Record) -> None:
        if record.owner == "root":
            self.ending = (record.seq, event)

    @_take.register
    def _(self, event: e.KernelStateSnapshot, record: Record) -> None:
        if record.owner == "root" and event.terminated_by:
            self.snapshot = (record.seq, event)

    @_take.register
    def _(self, event: e.ToolsDefined, record: Record) -> None:
        if not event.offered:
            self.agent(record.owner).tools.update((spec.name, spec) for spec in event.tools)
            self.ledger.define(event.tools)
            for spec in event.tools:
                self.numbers.add(f"{spec.description} {_text(spec.parameters)}")

    @_take.register
    def _(self, event: e.MessageAdded, record: Record) -> None:
        agent = self.agent(record.owner)
        called = event.tool_call_id if event.ref is None else event.ref.call
        if called is not None and not event.transient and (event.ref is not None or called in agent.by_id):
            agent.observe(called)
        if event.content is not None and (event.role != "assistant" or record.iteration is None):
            self.numbers.add(content_text(event.content))
            if event.role == "user":
                self.operands.ask(content_text(event.content))
                self.ledger.asked = f"{self.ledger.asked}\n{content_text(event.content)}"[-LONG * 4 :]

    @_take.register
    def _(self, event: e.LlmRequested, record: Record) -> None:
        self.model_calls += 1
        agent = self.agent(record.owner)
        agent.observed_at.setdefault(event.request, len(agent.observed))

    @_take.register
    def _(self, event: e.LlmFailed, record: Record) -> None:
        self.model_failures += 1
        self._error(record, "model", event.error.type, event.error.message)

    @_take.register
    def _(self, event: e.ToolCallStarted, record: Record) -> None:
        call = self.agent(record.owner).start(record, event, self.writes)
        self.path.append((m.PathStep(**_at(record), action=call.action, ok=None), call))
        if call.kind != "meta":
            self.numbers.add(_text(event.args))
            self.operands.add(f"{call.tool}()", event.args)
        if call.kind == "function":
            self.ledger.start(call)
        for option in call.alternatives:
            self._reject(record, event.tool, option.option, option.rejected_because)
        if call.reason is not None:
            self._decide(record, "call", "tool-selection", "model", call.reason, event.tool)

    @_take.register
    def _(self, event: e.ToolCallCompleted, record: Record) -> None:
        agent = self.agent(record.owner)
        call = agent.by_id.get(event.call_id)
        if event.rung is not None:
            self.rungs[event.rung] += 1
        if call is None:  # its start stands in a damaged line
            return
        result = _text(event.result) if event.ok else ""
        call.complete(record, event, result)
        self.writes += not (call.read_only or call.kind == "meta")
        if not event.ok:
            name, message = (event.error.type, event.error.message) if event.error else ("error", "no reason given")
            self._error(record, call.action, name, message)
            self.numbers.add(message)
        elif call.kind != "meta":
            self._find(record, call.action, short(result))
        if call.kind == "function":
            self.numbers.add(result)
            self.operands.add(call.tool, event.result)

    @_take.register
    def _(self, event: e.FinalAnswer, record: Record) -> None:
        agent = self.agent(record.owner)
        agent.answer_seq, agent.answer_confidence = record.seq, event.confidence
        self._judge(agent, _text(event.output))
        if record.owner == "root":
            self.answer = shown(event.output, LONG)
            self._find(record, "answer", shown(event.output))
        last = agent.calls[-1] if agent.calls else None
        if last is None or last.tool not in LAST_WORDS:
            self.path.append((m.PathStep(**_at(record), action="answer", ok=True), None))

    @_take.register
    def _(self, _event: e.RationaleMissing, record: Record) -> None:
        self.agent(record.owner).missing.append(record.seq)

    @_take.register
    def _(self, event: e.AssumptionRecorded, record: Record) -> None:
        reason = reason_of(event.rationale)
        self.assumptions.append(m.Assumption(**_at(record), assumption=short(event.assumption), rationale=reason))

    @_take.register
    def _(self, event: e.AlternativesConsidered, record: Record) -> None:
        for option in event.alternatives if event.kept is None else ():  # thoughts of a search are told on their own
            self._reject(record, event.decision, option.option, option.rejected_because)

    @_take.register
    def _(self, event: e.StructuredOutputFailed, record: Record) -> None:
        self._error(record, "answer", f"no {event.expected}", event.error)

    @_take.register
    def _(self, event: e.StrategySelected, record: Record) -> None:
        self._decide_if(record, "strategy", f"strategy-selected:{event.strategy}", "strategy", event.reason)

    @_take.register
    def _(self, event: e.StrategySwitchEvaluated, record: Record) -> None:
        what = "switch-strategy" if event.will_switch else f"keep-strategy:{event.from_strategy}"
        self._decide_if(record, "strategy" if event.will_switch else "control", what, "strategy", event.rationale)

    @_take.register
    def _(self, event: e.StrategySwitched, record: Record) -> None:
        step = m.PathStep(**_at(record), action=f"switch:{event.to_strategy}", ok=True)
        self.path.append((step, None))
        self._decide_if(
            record,
            "strategy",
            f"strategy-switch:{event.from_strategy}→{event.to_strategy}",
            "strategy",
            event.rationale,
        )

    @_take.register
    def _(self, event: e.DecisionEvaluated, record: Record) -> None:
        self._decide_if(record, "control", event.decision, "strategy", event.rationale)

    @_take.register
    def _(self, event: e.CuratorDecision, record: Record) -> None:
        why = None if event.rationale is None else short(event.rationale)
        self.curator.append(m.CuratorAction(**_at(record), action=event.action, ref=short(event.ref), why=why))
        self._decide_if(record, "curator", f"curator-{event.action}", "curator", event.rationale)

    @_take.register
    def _(self, event: e.ApprovalDecided, record: Record) -> None:
        call = self.agent(record.owner).by_id.get(event.call_id)
        why = None if event.why is None else short(event.why)
        tool = call.tool if call else None
        self.approvals.append(
            m.ApprovalAnswer(
                **_at(record), call_id=event.call_id, tool=tool, approved=event.approved, why=why, by=event.by
            )
        )
        granted = "approval-granted" if event.approved else "approval-denied"
        self._decide_if(record, "approval", granted, "approver", event.why, tool)

    @_take.register
    def _(self, event: e.HookFired, record: Record) -> None:
        what = f"{event.timing} {event.phase}: {event.action}"
        self._steer(record, event.hook, what, event.reason)
        self._decide_if(record, "hook", f"hook-{event.action}:{event.phase}", "hook", event.reason)

    @_take.register
    def _(self, event: e.HookFailed, record: Record) -> None:
        self._error(record, f"hook:{event.hook}", "HookFailed", f"at {event.where}: {event.error}")

    @_take.register
    def _(self, event: e.EmissionChanged, record: Record) -> None:
        before, after = shown(event.before, 120), shown(event.after, 120)
        self._steer(record, event.hook, f"changed {_tag(event)}: {before} → {after}")

    @_take.register
    def _(self, event: e.EmissionSuppressed, record: Record) -> None:
        self._steer(record, event.hook, f"removed {_tag(event)}: {shown(event.before, 120)}")

    @_take.register
    def _(self, event: e.KillswitchFired, record: Record) -> None:
        what = "stopped the run" if event.on_trigger == "stop" else "terminated the run"
        self._steer(record, event.switch, what, event.reason)
        self._decide_if(record, "killswitch", f"killswitch:{event.switch}", "killswitch", event.reason)

    @_take.register
    def _(self, event: e.NudgeIssued, record: Record) -> None:
        self._steer(record, event.nudge, f"nudged the model: {short(event.text, 160)}")

    @_take.register
    def _(self, event: e.GuardrailViolation, record: Record) -> None:
        what = "stopped the run" if event.blocked else "noticed something"
        self._steer(record, event.guard, what, "; ".join(event.violations[:20]))

    @_take.register
    def _(self, event: e.VerifierVerdict, record: Record) -> None:
        self._steer(
            record, "verifier", "passed the answer" if event.verified else "did not pass the answer", event.summary
        )

    @_take.register
    def _(self, event: e.ProviderFallback, record: Record) -> None:
        self._steer(record, "fallback", f"{event.from_model} → {event.to_model}", event.reason)

    @_take.register
    def _(self, _event: e.ReplayDiverged, _record: Record) -> None:
        self.diverged += 1

    def _judge(self, agent: AgentFacts, answer: str) -> None:
        """Hold the figures and the deeds of an answer against what the run was shown and did so far."""
        if agent.has_tools:
            figures = list(figures_of(own_words(answer)))
            unexplained = self.operands.unexplained(figures, self.numbers)
            explained = [each for each in figures if each not in unexplained]
            for each in explained:  # what follows from what was shown is shown from now on
                self.numbers.add(each.written)
            agent.ungrounded = tuple(dict.fromkeys(each.written for each in unexplained))
            agent.figures = sum(not each.is_plain for each in explained)
        agent.unsupported, agent.deeds = self.ledger.judge(answer)

    # --- entries ----------------------------------------------------------------------------------------------------

    def _decide(  # noqa: PLR0913, PLR0917 - the fields of a decision
        self, record: Record, topic: m.Topic, decision: str, by: m.Author, reason: m.Reason, tool: str | None = None
    ) -> None:
        made = m.Decision(**_at(record), topic=topic, decision=decision, tool_name=tool, by=by, rationale=reason)
        self.decisions.append(made)

    def _decide_if(  # noqa: PLR0913, PLR0917 - the fields of a decision
        self, record: Record, topic: m.Topic, decision: str, by: m.Author, why: str | None, tool: str | None = None
    ) -> None:
        if why:
            self._decide(record, topic, short(decision), by, m.Reason(why=short(why)), tool)

    def _reject(self, record: Record, decision: str, option: str, because: str) -> None:
        self.alternatives.append(
            m.RejectedOption(
                **_at(record), decision=short(decision), option=short(option), rejected_because=short(because)
            )
        )

    def _steer(self, record: Record, who: str, what: str, why: str | None = None) -> None:
        self.steering.append(
            m.Steering(
                **_at(record),
                kind=record.kind,
                who=short(who),
                what=short(what),
                why=None if why is None else short(why),
            )
        )

    def _error(self, record: Record, where: str, name: str, message: str) -> None:
        name, message = short(name, 100), short(message)
        seen = self.errors.get((record.owner, where, name, message))
        self.errors[record.owner, where, name, message] = (
            seen.model_copy(update={"count": seen.count + 1})
            if seen
            else m.ErrorSeen(**_at(record), where=where, type=name, message=message)
        )

    def _find(self, record: Record, source: str, text: str) -> None:
        if text.strip():
            self.findings.pop((source, text), None)
            self.findings[source, text] = m.Finding(**_at(record), source=source, text=text)


def _at(record: Record) -> dict[str, Any]:
    return {"seq": record.seq, "owner": record.owner, "iteration": record.iteration}


def _tag(event: e.EmissionChanged | e.EmissionSuppressed) -> str:
    return f"{event.tag}[{event.key}]" if event.key else event.tag


def _text(value: object) -> str:
    try:
        return as_text(value)
    except (TypeError, ValueError, RecursionError):
        return shown(value, SHORT)
