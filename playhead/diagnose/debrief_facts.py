"""The facts of a run that its debrief is based on: how each answer compares with what the run saw and did."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from playhead.diagnose.arithmetic import Operands
from playhead.diagnose.claims import Ledger, named_otherwise
from playhead.diagnose.debrief_calls import CallFacts
from playhead.diagnose.deeds import own_words
from playhead.diagnose.numbers import ADDRESS, SeenNumbers, argument_figures, figures_of
from playhead.diagnose.parts import content_text, short
from playhead.trace import events as e
from playhead.trace.types import ToolSpec
from playhead.trace.values import as_text

if TYPE_CHECKING:
    from playhead.diagnose.claims import Against
    from playhead.diagnose.recording import OwnerRecording, Recording
    from playhead.trace.line import Record

_EXAMINED: Final = 200
"""The maximum number of calls of an agent, the first ones, whose arguments are compared with what the run was shown."""


@dataclass(slots=True)
class AgentFacts:
    """One agent, or a tool that used the ports."""

    owner: str
    asked_for_reasons: bool
    tools: dict[str, ToolSpec]
    calls: list[CallFacts] = field(default_factory=list)
    by_id: dict[str, CallFacts] = field(default_factory=dict)
    repaired: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """The stages of repairs, by call."""
    answer: e.FinalAnswer | None = None
    answer_seq: int | None = None
    """The event with the agent's own answer."""
    ungrounded: tuple[str, ...] = ()
    """Numbers in the answer that neither occur in the run's inputs nor follow from them in one step."""
    unsupported: tuple[tuple[str, Against], ...] = ()
    """Actions that the answer claims but no call can have done."""
    figures: int = 0
    """Numbers in the answer that occur in the run's inputs or follow from them."""
    deeds: int = 0
    """Claimed actions that a successful call supports."""

    @property
    def real_calls(self) -> list[CallFacts]:
        """Calls of tools that are not the kernel's own."""
        return [call for call in self.calls if call.spec.kind != "meta"]

    @property
    def has_tools(self) -> bool:
        """Whether it had tools to call."""
        return any(spec.kind != "meta" for spec in self.tools.values())


class RunFacts:
    """The facts of the whole run, taken from its events in the order of the file."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.numbers = SeenNumbers()
        self._operands = Operands()
        self._ledger = Ledger()
        self._writes = 0
        self.agents = {name: self._agent(owner) for name, owner in recording.owners.items()}
        for record in recording.records:
            self._add(record, self.agents[record.owner])

    @property
    def calls(self) -> list[CallFacts]:
        """Every call, those of the kernel's own tools too."""
        return [call for agent in self.agents.values() for call in agent.calls]

    def call_of(self, record: Record) -> CallFacts | None:
        """Return the call that an event is about."""
        return self.agents[record.owner].by_id.get(record.event.__dict__.get("call_id", ""))

    def _agent(self, owner: OwnerRecording) -> AgentFacts:
        is_asked = owner.started is not None and owner.started.agent.rationale and not self.recording.header.imported
        return AgentFacts(owner.owner, bool(is_asked), {spec.name: spec for spec in owner.own_tools.values()})

    def _add(self, record: Record, agent: AgentFacts) -> None:
        match record.event:
            case e.RunStarted() as event:
                self._operands.ask(event.agent.system_prompt or "")
                self._ledger.has_past = any(each.role == "assistant" for each in event.agent.examples)
            case e.MessageAdded() as event if event.role != "assistant" or record.iteration is None:
                self._show(content_text(event.content), by_user=event.role == "user")
            case e.ToolsDefined() as event if not event.offered:
                self._ledger.define(event.tools)
                for spec in event.tools:
                    self.numbers.add(f"{spec.description} {as_text(spec.parameters)}")
            case e.ToolCallStarted() as event:
                self._start(agent, record, event)
            case e.ToolCallCompleted() as event if event.call_id in agent.by_id:  # else its start is in a damaged line
                self._complete(agent.by_id[event.call_id], record, event)
            case e.ToolCallRepaired() as event:  # before its call starts
                agent.repaired[event.call_id].append(short(event.stage, 100))
            case e.FinalAnswer() as event:
                agent.answer, agent.answer_seq = event, record.seq
                self._judge(agent, as_text(event.output))

    def _show(self, text: str, *, by_user: bool) -> None:
        """Add a text that the model was shown. A user's text also counts as a request, and its numbers as stated."""
        self.numbers.add(text)
        if by_user:
            self._operands.ask(text)
            self._ledger.add_request(text)

    def _start(self, agent: AgentFacts, record: Record, event: e.ToolCallStarted) -> None:
        spec = agent.tools.get(event.tool) or ToolSpec(name=event.tool)
        expected = agent.asked_for_reasons and spec.kind != "meta" and event.source != "tool"
        call = CallFacts(record, event, spec, expected, self._writes, agent.repaired[event.call_id])
        may_write = event.tool in agent.tools and spec.kind == "function" and not spec.read_only
        if may_write and len(agent.calls) < _EXAMINED:
            self._examine(call)
        agent.calls.append(call)
        agent.by_id[event.call_id] = call
        if spec.kind != "meta":
            self.numbers.add(as_text(event.args))
            self._operands.add(f"{event.tool}()", event.args)
        if spec.kind == "function":
            self._ledger.start(call)

    def _examine(self, call: CallFacts) -> None:
        """Compare the arguments of a call that may have side effects with what the run was shown before."""
        args = call.event.args
        numbers = self._operands.unexplained(list(argument_figures(args)), self.numbers)
        addresses = [each for each in ADDRESS.findall(as_text(args).lower()) if each not in self.numbers.addresses]
        call.unseen = (*(each.written for each in numbers), *addresses)
        reason = call.event.rationale.why if call.event.rationale else ""
        call.otherwise = (named_otherwise(reason, args), named_otherwise(self._ledger.user_text, args, "@ a9"))

    def _complete(self, call: CallFacts, record: Record, event: e.ToolCallCompleted) -> None:
        call.end, call.end_seq = event, record.seq
        self._writes += not (call.spec.read_only or call.spec.kind == "meta")
        if event.error is not None:
            self.numbers.add(event.error.message)
        if call.spec.kind == "function" and event.ok:
            self.numbers.add(as_text(event.result))
            self._operands.add(event.tool, event.result)

    def _judge(self, agent: AgentFacts, answer: str) -> None:
        """Compare the numbers and actions in an answer with what the run saw and did so far."""
        if agent.has_tools:
            figures = list(figures_of(own_words(answer)))
            unexplained = self._operands.unexplained(figures, self.numbers)
            explained = [each for each in figures if each not in unexplained]
            for each in explained:  # what follows from what was shown is shown from now on
                self.numbers.add(each.written)
            agent.ungrounded = tuple(dict.fromkeys(each.written for each in unexplained))
            agent.figures = sum(not each.is_plain for each in explained)
        agent.unsupported, agent.deeds = self._ledger.judge(answer)
