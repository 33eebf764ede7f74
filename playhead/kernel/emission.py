"""How an agent ends, and how its events are recorded: everything that starts ends exactly once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from playhead.errors import RunEndedError, TraceWriteError
from playhead.kernel.lifecycle.termination import InFlight, Termination
from playhead.trace.events import LlmFailed, LlmResponded
from playhead.trace.values import repair_json
from playhead.trace.writer import Written

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.diagnose.spending import Spent
    from playhead.kernel.lifecycle.termination import Ending, Kind
    from playhead.kernel.progress import Progress
    from playhead.trace.events import EventBase
    from playhead.trace.recorder import Recorder
    from playhead.trace.values import JsonValue

    InTurn = tuple[EventBase, int | None]
    """An event and its turn."""


BILLED: Final = (LlmResponded, LlmFailed)
"""The events that report usage and cost."""


@dataclass(frozen=True)
class Records:
    """The part of a run that recording needs."""

    run_id: str
    recorder: Recorder
    """Writes the events."""
    on_trace_error: Literal["continue", "stop"] = field(default="continue", kw_only=True)
    """What happens after an event that could not be written."""
    in_flight: InFlight = field(default_factory=InFlight, kw_only=True)
    """Agents, requests, calls and processes in progress."""


class Emission:
    """The part of a session that records events and ends the agent."""

    run: Records
    owner: str
    at: Progress
    parent: Emission | None
    ending: Ending
    """Decides once how the agent ends."""
    agent: Emission
    """The agent that is charged."""
    spent: Spent
    """The spending of this agent and those below it."""

    @property
    def termination(self) -> Termination | None:
        """How this agent ended, or None while it runs."""
        return self.ending.termination

    @property
    def ended(self) -> bool:
        """Whether this agent, or one above it, has ended."""
        return self.ending.termination is not None or (self.parent is not None and self.parent.ended)

    def require_running(self) -> None:
        """Raise `RunEndedError` if the agent has ended."""
        if (self.ending.termination is not None or self.parent is not None) and self.ended:
            raise RunEndedError(f"{self.owner} of run {self.run.run_id} has ended; no request or call can start")

    def terminate(self, reason: str, output: JsonValue = None, *, overrule: bool = False, **how: Any) -> bool:  # noqa: ANN401
        """End this agent. The first caller, from any thread, gets True; the others get False.

        No call starts from here on; the loop notices at its next step. `how` are fields of `Termination`. With `overrule`
        this end replaces the model's answer.
        """
        ending = Termination(reason, repair_json(output), **how)
        return self.ending.end(ending, overrule=overrule)

    def emit(self, event: EventBase) -> None:
        """Record an event of this agent.

        Raises:
            TraceWriteError: it could not be written, and `on_trace_error` is `stop`.
        """
        if self.ending.left_behind or (self.parent is not None and self.parent.left_behind):
            return
        recorder = self.run.recorder
        if not recorder.emit(event, self.owner, self.at.iteration) and not recorder.sealed:
            self._on_lost(event)

    @property
    def left_behind(self) -> bool:
        """Whether its code, or that of an agent above it, was abandoned."""
        return self.ending.left_behind or (self.parent is not None and self.parent.left_behind)

    def emit_start(
        self, start: InTurn, kind: Kind, name: str, leave: Callable[[], object], *, is_clean: bool = False
    ) -> bool:
        """Record the start of something, with its turn; no agent can end between the check that it runs and the write.

        `leave` records its end if its own code is abandoned. Return whether redaction concerns nothing in the event, which
        is not looked for where that `is_clean` already.

        Raises:
            RunEndedError: this agent, or one above it, has ended.
        """
        recorder, in_flight, (event, turn) = self.run.recorder, self.run.in_flight, start
        prepared = recorder.prepare(event, self.owner, turn, is_clean=is_clean)
        with in_flight.lock:
            self.require_running()
            in_flight.open[self.owner, kind, name] = leave
            written = recorder.write(prepared)
        if prepared.listeners:
            recorder.notify(prepared, written)
        if not written.ok and not recorder.sealed:
            self._on_lost(event)
        return prepared.event is event and bool(prepared.data)

    def emit_end(self, kind: Kind, name: str, *events: InTurn) -> bool:
        """Record the end of something, each event with its turn; return False if it was abandoned before.

        The lock keeps the trace open until the events are written.
        """
        recorder, in_flight, ended = self.run.recorder, self.run.in_flight, []
        prepared = [recorder.prepare(event, self.owner, turn) for event, turn in events]
        with in_flight.lock:
            if self.left_behind or in_flight.open.pop((self.owner, kind, name), None) is None:
                return False
            for each, (event, _) in zip(prepared, events, strict=True):
                ended.append((each, recorder.write(each)))
                if isinstance(event, BILLED):
                    self.bill(event)
        for each, written in ended:
            if each.listeners:
                recorder.notify(each, written)
            if not written.ok and not recorder.sealed:
                self._on_lost(each.event)
        return True

    def emit_ending(self, event: EventBase, end: Callable[[Callable[[], object]], bool]) -> bool:
        """Record what ends an agent: `end` tries to end it, and calls its argument if it did."""
        recorder = self.run.recorder
        prepared, written = recorder.prepare(event, self.owner, self.at.iteration), list[Written]()
        ended = end(lambda: None if self.left_behind else written.append(recorder.write(prepared)))
        for each in written:
            recorder.notify(prepared, each)
        return ended

    def emit_left(self, event: EventBase) -> None:
        """Record an event of an agent whose code is abandoned."""
        self.run.recorder.emit(event, self.owner, self.at.iteration)
        self.bill(event)

    def bill(self, event: EventBase) -> None:
        """Charge the usage and cost of an event to the agent and to those above it."""
        agent: Emission | None = self.agent
        while agent is not None:
            agent.spent.take(event)
            agent = None if agent.parent is None else agent.parent.agent

    def _on_lost(self, event: EventBase) -> None:
        if self.run.on_trace_error != "stop" or self.ended:
            return
        why = f"{event.kind} could not be written to the trace: {self.run.recorder.error}"
        ended: Emission | None = self
        while ended is not None:  # agents above end, too: a tool's body may catch the exception
            ended.terminate("trace_error", failed=True, error=why)
            ended = ended.parent
        raise TraceWriteError(why)
