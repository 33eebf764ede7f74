"""A summary of a run's decisions: the task, the calls and their reasons, the ending, and unsupported claims.

It is a pure fold over the events: no model is called, and no reason is invented. docs/guides/audit-a-decision.md
describes what a debrief does not prove.
"""

from __future__ import annotations

from functools import singledispatchmethod
from typing import TYPE_CHECKING

from playhead.diagnose import debrief_model as m
from playhead.diagnose.debrief_account import account
from playhead.diagnose.debrief_events import LAST_WORDS, entry_of
from playhead.diagnose.debrief_facts import RunFacts
from playhead.diagnose.deeds import own_words
from playhead.diagnose.numbers import figures_of
from playhead.diagnose.parts import LONG, at, content_text, short, shown
from playhead.trace import events as e
from playhead.trace.line import Record
from playhead.trace.values import as_text

if TYPE_CHECKING:
    from collections.abc import Hashable

    from playhead.diagnose.debrief_facts import AgentFacts
    from playhead.diagnose.recording import Recording


def build_debrief(recording: Recording) -> m.Debrief:
    """Return the debrief of a run. If the recording is incomplete, its `caveats` say what is missing."""
    fold = DebriefFold()
    for record in recording.records:
        fold.add(record)
    return fold.result(recording.status, tuple(map(str, recording.problems)))


class DebriefFold:
    """Collects decisions from events in one pass, so it can follow a running agent.

    Memory grows with the number of calls, not with the size of their results.
    """

    def __init__(self) -> None:
        self.facts = RunFacts()

    def add(self, record: Record) -> None:
        """Add the next event of the run, in file order."""
        self.facts.pass_time(record)
        self.facts.spending.add(record)
        self.facts.unmade.add(record)
        self._take(record.event, record)
        fields = record.event.__dict__  # asking a model for a field that it lacks is slow
        call = self.facts.agent(record.owner).by_id.get(fields.get("call_id", ""))
        entry = entry_of(record, call.event.tool if call else fields.get("tool"))
        if entry is not None:
            self._enter(record, entry)

    def result(self, recording: m.RecordingState | None = None, problems: tuple[str, ...] = ()) -> m.Debrief:
        """Return the debrief of the events so far. `recording` and `problems` describe the file."""
        state = recording or ("closed" if self.facts.ending else "open")
        return account(self.facts, state, problems)

    def _enter(self, record: Record, entry: m.Entry) -> None:
        event, key = record.event, (record.owner, entry.section, record.seq)
        where: Hashable = key
        if isinstance(event, e.PlanStepChanged):  # where the step stands now
            where = (record.owner, event.plan_id, event.step_id)
            self.facts.entries.pop(where, None)
        elif isinstance(event, e.Critique) and event.thought is None:
            agent = self.facts.agent(record.owner)
            answer, agent.newest_answer = agent.newest_answer, None
            judged = f' The answer: "{short(answer, 120)}"' if answer else ""
            entry = entry.model_copy(update={"what": f"{entry.what}{judged}"})
        self.facts.entries[where] = entry

    # --- what each kind of event adds -------------------------------------------------------------------------------

    @singledispatchmethod
    def _take(self, event: e.EventBase, record: Record) -> None:
        """Ignore events that say nothing about decisions."""
        if isinstance(event, e.UnknownEvent):
            self.facts.unknown.add(event.kind)
        elif isinstance(event, e.RationaleMissing):
            self.facts.agent(record.owner).missing.append(record.seq)
        elif isinstance(event, e.ToolCallRepaired):
            self.facts.agent(record.owner).repaired.setdefault(event.call_id, []).append(short(event.stage, 100))

    @_take.register
    def _(self, event: e.RunStarted, record: Record) -> None:
        if self.facts.header is None and record.owner == "root":
            self.facts.header = event
            self.facts.operands.ask(event.agent.system_prompt or "")
            self.facts.ledger.has_past = any(each.role == "assistant" for each in event.agent.examples)
            self._start(event, record)

    @_take.register
    def _(self, event: e.AgentStarted, record: Record) -> None:
        self._start(event, record)
        self.facts.endings[record.owner] = None

    def _start(self, event: e.RunStarted | e.AgentStarted, record: Record) -> None:
        agent, header = self.facts.agent(record.owner), self.facts.header
        agent.name, agent.answering = event.agent.name, event.agent.strategy_declares.answering
        agent.asked_for_reasons = event.agent.rationale and (header is None or header.imported is None)

    @_take.register
    def _(self, event: e.AgentCompleted, record: Record) -> None:
        self.facts.endings[record.owner] = event.terminated_by

    @_take.register
    def _(self, event: e.RunCompleted, record: Record) -> None:
        if record.owner == "root":
            self.facts.ending = (record.seq, event)

    @_take.register
    def _(self, event: e.KernelStateSnapshot, record: Record) -> None:
        if record.owner == "root" and event.terminated_by:
            self.facts.last_reason = event.termination_rationale

    @_take.register
    def _(self, event: e.ToolsDefined, record: Record) -> None:
        if not event.offered:
            self.facts.agent(record.owner).tools.update((spec.name, spec) for spec in event.tools)
            self.facts.ledger.define(event.tools)
            for spec in event.tools:
                self.facts.numbers.add(f"{spec.description} {as_text(spec.parameters)}")

    @_take.register
    def _(self, event: e.MessageAdded, record: Record) -> None:
        if event.content is not None and (event.role != "assistant" or record.iteration is None):
            self.facts.show(content_text(event.content), by_user=event.role == "user")

    @_take.register
    def _(self, event: e.LlmRequested, record: Record) -> None:
        self.facts.model_calls += 1
        agent = self.facts.agent(record.owner)
        agent.answers = event.purpose in agent.answering

    @_take.register
    def _(self, event: e.LlmResponded, record: Record) -> None:
        agent = self.facts.agent(record.owner)
        if agent.answers:
            agent.newest_answer = None if event.tool_calls else event.text.strip()

    @_take.register
    def _(self, event: e.LlmFailed, record: Record) -> None:
        self.facts.model_failures += 1
        self._error(record, "model", event.error.type, event.error.message)

    @_take.register
    def _(self, event: e.ToolCallStarted, record: Record) -> None:
        agent = self.facts.agent(record.owner)
        call = agent.start(record, event, self.facts.writes)
        self.facts.path.append(call)
        if call.spec.kind != "meta":
            self.facts.numbers.add(as_text(event.args))
            self.facts.operands.add(f"{event.tool}()", event.args)
        if call.spec.kind == "function":
            self.facts.ledger.start(call)
        if agent.answers and event.tool in LAST_WORDS and isinstance(event.args, dict):
            agent.newest_answer = shown(event.args.get("output", event.args.get("summary")))
        for number, option in enumerate(event.rationale.alternatives if event.rationale else ()):
            self.facts.entries[record.owner, "alternatives", record.seq, number] = m.Entry(
                **at(record),
                section="alternatives",
                kind=event.kind,
                by="model",
                what=short(f"{event.tool}: not {option.option} ({option.rejected_because})"),
                tool=event.tool,
                call_id=event.call_id,
            )

    @_take.register
    def _(self, event: e.ToolCallCompleted, record: Record) -> None:
        call = self.facts.agent(record.owner).by_id.get(event.call_id)
        if call is None:  # its start is in a damaged line
            return
        result = as_text(event.result) if event.ok else ""
        call.complete(event, result)
        self.facts.writes += not (call.spec.read_only or call.spec.kind == "meta")
        if not event.ok:
            name, message = (event.error.type, event.error.message) if event.error else ("error", "no reason given")
            self._error(record, call.action, name, message)
            self.facts.numbers.add(message)
        if call.spec.kind == "function":
            self.facts.numbers.add(result)
            self.facts.operands.add(event.tool, event.result)

    @_take.register
    def _(self, event: e.FinalAnswer, record: Record) -> None:
        agent = self.facts.agent(record.owner)
        agent.answer_seq, agent.answer_confidence = record.seq, event.confidence
        self._judge(agent, as_text(event.output))
        if record.owner == "root":
            self.facts.answer = shown(event.output, LONG)
        if not agent.calls or agent.calls[-1].event.tool not in LAST_WORDS:
            self.facts.path.append(m.PathStep(**at(record), action="answer", ok=True))

    @_take.register
    def _(self, event: e.StructuredOutputFailed, record: Record) -> None:
        self._error(record, "answer", f"no {event.expected}", event.error)

    @_take.register
    def _(self, event: e.HookFailed, record: Record) -> None:
        self._error(record, f"hook:{event.hook}", "HookFailed", f"at {event.where}: {event.error}")

    @_take.register(e.StrategySelected)
    @_take.register(e.StrategySwitched)
    def _(self, event: e.StrategySelected | e.StrategySwitched, record: Record) -> None:
        self.facts.agent(record.owner).answering = event.declares.answering
        if isinstance(event, e.StrategySwitched):
            self.facts.path.append(m.PathStep(**at(record), action=f"switch:{event.to_strategy}", ok=True))

    def _judge(self, agent: AgentFacts, answer: str) -> None:
        """Compare the numbers and actions in an answer with what the run saw and did so far."""
        if agent.has_tools:
            figures = list(figures_of(own_words(answer)))
            unexplained = self.facts.operands.unexplained(figures, self.facts.numbers)
            explained = [each for each in figures if each not in unexplained]
            for each in explained:  # what follows from what was shown is shown from now on
                self.facts.numbers.add(each.written)
            agent.ungrounded = tuple(dict.fromkeys(each.written for each in unexplained))
            agent.figures = sum(not each.is_plain for each in explained)
        agent.unsupported, agent.deeds = self.facts.ledger.judge(answer)

    def _error(self, record: Record, where: str, name: str, message: str) -> None:
        name, message = short(name, 100), short(message)
        seen = self.facts.errors.get((record.owner, where, name, message))
        self.facts.errors[record.owner, where, name, message] = (
            seen.model_copy(update={"count": seen.count + 1})
            if seen
            else m.ErrorSeen(**at(record), where=where, type=name, message=message)
        )
