"""The facts of each agent and of the run that flags are based on. Their size does not depend on the size of results."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from playhead.diagnose.arithmetic import Operands
from playhead.diagnose.claims import Ledger, contradiction
from playhead.diagnose.debrief_events import CallFacts
from playhead.diagnose.numbers import SeenNumbers
from playhead.diagnose.parts import LONG
from playhead.diagnose.spending import SpendingFold
from playhead.diagnose.unmade import UnmadeCalls
from playhead.trace.owners import tool_of
from playhead.trace.types import ToolSpec

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from playhead.diagnose.claims import Against
    from playhead.diagnose.debrief_model import Entry, ErrorSeen, PathStep
    from playhead.trace.events import RunCompleted, RunStarted, ToolCallStarted
    from playhead.trace.line import Record
    from playhead.trace.types import Rationale


@dataclass(slots=True)
class AgentFacts:
    """One agent, or a tool that used the ports."""

    owner: str
    name: str = ""
    asked_for_reasons: bool = False
    tools: dict[str, ToolSpec] = field(default_factory=dict)
    calls: list[CallFacts] = field(default_factory=list)
    by_id: dict[str, CallFacts] = field(default_factory=dict)
    repaired: dict[str, list[str]] = field(default_factory=dict)
    """Repairs, by call."""
    answering: frozenset[str] = frozenset()
    """The request purposes whose answers answer the task."""
    answers: bool = False
    """Whether the last request had one of these purposes."""
    newest_answer: str | None = None
    """The last answer that no critic has judged yet."""
    missing: list[int] = field(default_factory=list)
    """Events that record a missing reason."""
    answer_seq: int | None = None
    """The event with the agent's own answer."""
    answer_confidence: str | None = None
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

    def start(self, record: Record, event: ToolCallStarted, writes_before: int) -> CallFacts:
        """Add the start of a call."""
        spec = self.tools.get(event.tool) or ToolSpec(name=event.tool)
        expected = self.asked_for_reasons and spec.kind != "meta" and event.source != "tool"
        call = CallFacts(record, event, spec, expected, writes_before)
        if event.rationale is not None and spec.kind != "meta":
            call.contradiction = contradiction(event.rationale.why, spec, event.args)
        self.calls.append(call)
        self.by_id[event.call_id] = call
        return call


class RunFacts:
    """The facts of the whole run."""

    def __init__(self) -> None:
        self.header: RunStarted | None = None
        self.ending: tuple[int, RunCompleted] | None = None
        self.last_reason: Rationale | None = None
        """The reason for the end that the model or the strategy stated."""
        self.agents: dict[str, AgentFacts] = {}
        self.path: list[PathStep | CallFacts] = []
        self.entries: dict[Hashable, Entry] = {}
        self.endings: dict[str, str | None] = {}
        """The reason code of each sub-agent's end; None before it."""
        self.errors: dict[tuple[str, str, str, str], ErrorSeen] = {}
        self.unknown: set[str] = set()
        self.answer: str | None = None
        self.numbers = SeenNumbers()
        self.operands = Operands()
        self.ledger = Ledger()
        self.spending = SpendingFold()
        self.unmade = UnmadeCalls()
        self.model_calls = self.model_failures = self.writes = 0
        self.first_us: int | None = None
        self.last_us = 0
        self.last_iteration = -1

    def agent(self, owner: str) -> AgentFacts:
        """Return the facts of an owner."""
        if owner not in self.agents:
            self.agents[owner] = AgentFacts(owner, name=tool_of(owner))
        return self.agents[owner]

    def all_calls(self) -> Iterator[CallFacts]:
        """Return every call, those of the kernel's own tools too."""
        return (call for agent in self.agents.values() for call in agent.calls)

    def calls(self) -> list[CallFacts]:
        """Return the calls of tools that are not the kernel's own."""
        return [call for call in self.all_calls() if call.spec.kind != "meta"]

    def pass_time(self, record: Record) -> None:
        """Update the run's start time and progress."""
        self.first_us = record.ts if self.first_us is None else self.first_us
        self.last_us = max(self.last_us, record.ts)
        if record.owner == "root" and record.iteration is not None:
            self.last_iteration = max(self.last_iteration, record.iteration)

    def show(self, text: str, *, by_user: bool) -> None:
        """Add a text that the model was shown. A user's text also counts as a request, and its numbers as stated."""
        self.numbers.add(text)
        if by_user:
            self.operands.ask(text)
            self.ledger.user_text = f"{self.ledger.user_text}\n{text}"[-LONG * 4 :]
