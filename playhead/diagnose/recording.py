"""A whole trace in memory, by owner: exchanges with the model, tool calls, and the exact requests.

A trace contains each message once and requests name their messages by id; this module rebuilds the requests.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from itertools import takewhile
from typing import TYPE_CHECKING, Literal, TypeVar

from playhead.errors import NotATraceError
from playhead.trace import events as e
from playhead.trace.reader import Problem, scan
from playhead.trace.types import Message, Range, Request, ToolSpec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from playhead.trace.line import Record

K = TypeVar("K")
V = TypeVar("V")
RecordingStatus = Literal["closed", "open", "truncated", "erased", "damaged"]


@dataclass(slots=True)
class RecordedExchange:
    """One attempt at a model call."""

    requested: e.LlmRequested
    iteration: int | None
    outcome: e.LlmResponded | e.LlmFailed | None = None
    """None when the recording ends before the answer."""


@dataclass(slots=True)
class RecordedCall:
    """One tool call."""

    started: e.ToolCallStarted
    iteration: int | None
    seq: int
    completed: e.ToolCallCompleted | None = None
    """None when the recording ends before the result."""


@dataclass(slots=True)
class OwnerRecording:
    """Everything that happened to one owner: the root agent, a sub-agent, or a tool that used the ports."""

    owner: str
    started: e.RunStarted | e.AgentStarted | None = None
    completed: e.RunCompleted | e.AgentCompleted | None = None
    records: list[Record] = field(default_factory=list)
    messages: dict[int, e.MessageAdded] = field(default_factory=dict)
    tools: dict[int, ToolSpec] = field(default_factory=dict)
    own_tools: dict[int, ToolSpec] = field(default_factory=dict)
    """The agent's own tools, without the descriptions that hooks changed for a request."""
    exchanges: list[RecordedExchange] = field(default_factory=list)
    responses: dict[int, e.LlmResponded] = field(default_factory=dict)
    calls: dict[str, RecordedCall] = field(default_factory=dict)
    results: dict[str, e.ToolCallCompleted] = field(default_factory=dict)
    facts: list[e.FactRecorded] = field(default_factory=list)

    def add(self, record: Record) -> None:
        """Add a record of this owner."""
        self.records.append(record)
        match record.event:
            case e.RunStarted() | e.AgentStarted() as event:
                self.started = event
            case e.RunCompleted() | e.AgentCompleted() as event:
                self.completed = event
            case e.MessageAdded() as event:
                self.messages[event.id] = event
            case e.ToolsDefined() as event:
                self.tools.update(enumerate(event.tools, event.first_id))
                self.own_tools.update(() if event.offered else enumerate(event.tools, event.first_id))
            case e.LlmRequested() as event:
                self.exchanges.append(RecordedExchange(event, record.iteration))
            case e.LlmResponded() | e.LlmFailed() as event:
                self._answer(event)
            case e.ToolCallStarted() as event:
                self.calls[event.call_id] = RecordedCall(event, record.iteration, record.seq)
            case e.ToolCallCompleted() as event if event.call_id in self.calls:
                self.calls[event.call_id].completed = self.results[event.call_id] = event
            case e.FactRecorded() as event:
                self.facts.append(event)

    @property
    def iterations(self) -> int:
        """Turns of its loop; the recorded ones if its end is missing."""
        turns = (record.iteration for record in self.records if record.iteration is not None)
        return self.completed.iterations if self.completed else max(turns, default=-1) + 1

    def _answer(self, event: e.LlmResponded | e.LlmFailed) -> None:
        if isinstance(event, e.LlmResponded):
            self.responses[event.request] = event
        for exchange in reversed(self.exchanges):
            asked = exchange.requested
            if (asked.request, asked.attempt) == (event.request, event.attempt):
                exchange.outcome = event
                return

    def message(self, message_id: int) -> Message:
        """Return a message with its content, looked up in the answer or result that `ref` names.

        Raises:
            NotATraceError: the trace does not contain it.
        """
        added = self._held(self.messages, message_id, "message")
        content, tool_calls = added.content, added.tool_calls
        if added.ref is not None and added.ref.request is not None:
            response = self._held(self.responses, added.ref.request, "the answer to request")
            content, tool_calls = response.text, response.tool_calls
        elif added.ref is not None and added.ref.call is not None:
            content = self._held(self.results, added.ref.call, "the result of call").message_text(added.role)
        return Message(
            id=added.id,
            role=added.role,
            content=content or "",
            tool_calls=tool_calls,
            tool_call_id=added.tool_call_id,
            name=added.name,
        )

    def request(self, requested: e.LlmRequested) -> Request:
        """Return the exact request that the adapter was given; raises like `message`."""
        return Request(
            model=requested.model,
            messages=tuple(self.message(number) for number in _ids(requested.messages)),
            tools=tuple(self._held(self.tools, number, "tool") for number in _ids(requested.tools)),
            parameters=requested.parameters,
            record_parameters=self.started.agent.record_parameters if self.started else (),
            number=requested.request,
            attempt=requested.attempt,
        )

    def offered(self) -> dict[str, ToolSpec]:
        """Return the tools that requests name."""
        named = (
            number
            for each in self.exchanges
            for number in takewhile(self.tools.__contains__, _ids(each.requested.tools))
        )
        return {self.tools[number].name: self.tools[number] for number in named}

    def _held(self, among: dict[K, V], key: K, what: str) -> V:
        if key in among:
            return among[key]
        raise NotATraceError(f"the trace names {what} {key!r} of {self.owner}, which it does not hold")


@dataclass(frozen=True)
class Recording:
    """A trace that has been read: the basis of every replay, diff and debrief."""

    path: Path
    """The file."""
    records: tuple[Record, ...] = field(repr=False)
    """Every event, in the order of the file."""
    problems: tuple[Problem, ...]
    """What is wrong with the file. A replay refuses a damaged file, and says where a truncated one ends."""

    @cached_property
    def header(self) -> e.RunStarted:
        """The first event."""
        event = self.records[0].event
        assert isinstance(event, e.RunStarted)  # noqa: S101 - `load_recording` refuses anything else
        return event

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.header.run_id

    @cached_property
    def owners(self) -> dict[str, OwnerRecording]:
        """Everything by owner, in order of first appearance."""
        owners: dict[str, OwnerRecording] = {}
        for record in self.records:
            owners.setdefault(record.owner, OwnerRecording(record.owner)).add(record)
        return owners

    @property
    def root(self) -> OwnerRecording:
        """What happened to the root agent."""
        return self.owners["root"]

    @cached_property
    def ending(self) -> e.RunCompleted | None:
        """The `run-completed` event, or None when the file does not contain it."""
        completed = self.root.completed
        return completed if isinstance(completed, e.RunCompleted) else None

    @property
    def duration_ms(self) -> float:
        """Milliseconds from the start to the end, or to the last event if the end is missing."""
        return self.ending.duration_ms if self.ending else (self.records[-1].ts - self.records[0].ts) / 1000

    @property
    def status(self) -> RecordingStatus:
        """Whether the file is complete: `erased` if nothing is wrong but that content was erased on request."""
        kinds = {problem.kind for problem in self.problems}
        if kinds:
            return "truncated" if kinds == {"truncated"} else "erased" if kinds == {"erased"} else "damaged"
        return "closed" if self.ending is not None else "open"

    def counts(self) -> dict[str, int]:
        """Return how many events there are of each kind."""
        return dict(Counter(record.kind for record in self.records))


def read_recording(path: Path) -> Recording:
    """Read a trace.

    Raises:
        TraceNotFoundError, NotATraceError, TraceFormatError: it cannot be read as a trace at all.
    """
    records: list[Record] = []
    problems: list[Problem] = []
    for item in scan(path):
        if isinstance(item, Problem):
            problems.append(item)
        else:
            records.append(item)
    if not records or not isinstance(records[0].event, e.RunStarted) or records[0].owner != "root":
        reason = f" ({problems[0]})" if problems else ""
        raise NotATraceError(f"{path.name}: its first event cannot be read{reason}")
    return Recording(path, tuple(records), tuple(problems))


def _ids(ranges: Iterable[Range]) -> Iterator[int]:
    # One by one: a range from a hostile file may span billions, but the first id that does not exist ends it.
    return (number for first, last in ranges for number in range(first, last + 1))
