"""Turns a run's records into stream events, and queues them.

Text pieces and phases are not in the trace; they come directly from the run.
"""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from contextlib import suppress
from enum import IntEnum
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

import anyio

from playhead.agent import streaming as out
from playhead.compose.runtime import ComposedHooks
from playhead.kernel.hooks import PHASE_OF
from playhead.kernel.lifecycle.threads import running_loop
from playhead.trace import events as e
from playhead.trace.values import to_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.agent.result import RunResult
    from playhead.agent.streaming import StreamEvent
    from playhead.kernel.session import Hooks, Session
    from playhead.kernel.state import KernelState
    from playhead.trace.line import Record
    from playhead.trace.recorder import Recorder
    from playhead.trace.redaction import Redactor
    from playhead.trace.values import JsonValue


class EventQueue:
    """An unbounded queue: unread events stay in memory until the queue is closed."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a signal may come while it is held
        self._events: deque[StreamEvent] = deque()
        self._wake: Callable[[], object] | None = None
        self.closed = False
        """Whether the last event was added or the reader has left."""

    def put(self, event: StreamEvent, *, last: bool = False) -> None:
        """Add an event, from any thread. Events after the last one are ignored."""
        with self._lock:
            if self.closed:
                return
            self.closed = last
            self._events.append(event)
            wake, self._wake = self._wake, None
        if wake is not None:
            with suppress(RuntimeError):  # the reader's loop has ended
                wake()

    def give_up(self) -> None:
        """Drop all events and accept no more, because the reader has left."""
        with self._lock:
            self.closed = True
            self._events.clear()

    async def get(self) -> StreamEvent | None:
        """Wait for the next event and return it; None after the last one. One reader waits at a time."""
        while True:
            with self._lock:
                if self._events:
                    return self._events.popleft()
                if self.closed:
                    return None
                more = anyio.Event()
                self._wake = partial(running_loop().call_soon_threadsafe, more.set)
            await more.wait()


_TEXTS: Final = ("llm.response", "message.assistant", "answer.final")
"""Tags at which hooks see the model's text."""


class Level(IntEnum):
    """When an answer's text is shown; higher values are later."""

    LIVE = 0
    """While it is made."""
    RESPONSE = 1
    """When the text is complete, because user-defined redaction rules need the whole text."""
    ANSWER = 2
    """When hooks have accepted the text as the output; nothing else is shown."""


def level_of(hooks: Hooks | None, redactor: Redactor) -> Level:
    """Return when to show the text of an agent with these hooks.

    Text waits for hooks that change it and for required hooks, but not for hooks that only observe.
    """
    if hooks is not None:
        holds = hooks.may_withhold if isinstance(hooks, ComposedHooks) else hooks.wants
        if any(map(holds, _TEXTS)) or (isinstance(hooks, ComposedHooks) and hooks.requires("complete")):
            return Level.ANSWER
    return Level.RESPONSE if redactor.has_rules else Level.LIVE


class LiveText:
    """Redacts the pieces of one answer, including secrets that are split across pieces."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._kept = ""
        """Text held back because it may be the start of a secret."""
        self.shown = ""
        """All that was shown."""

    def add(self, piece: str) -> str:
        """Return the text that can be shown now."""
        text = self._redactor.redact_secrets(self._kept + piece)
        longest = len(text) + 1
        begun = (secret[:end] for secret in self._redactor.secrets for end in range(1, min(len(secret), longest)))
        self._kept = max(filter(text.endswith, begun), key=len, default="")
        text = text.removesuffix(self._kept)
        self.shown += text
        return text

    def rest(self) -> str:
        """Return the remaining text when the answer is complete."""
        self.shown += self._kept
        return self._kept


ROOT: Final = "root"
_METADATA: Final = ("status", "terminated_by", "terminated_source", "iterations", "duration_ms")


class Stream:
    """Turns a run's records into stream events and queues them, from any thread."""

    def __init__(self, run_id: str, density: out.Density) -> None:
        self.queue = EventQueue()
        self.read = False
        """Whether there is a reader. Models stream only then."""
        self._run_id = run_id
        self._full = density == "full"
        self._lock = threading.RLock()
        self._recorder: Recorder | None = None
        self._levels: dict[str, Level] = {}
        """The level of each agent."""
        self._purposes: dict[tuple[str, int], str] = {}
        self._live: dict[tuple[str, int, int], LiveText] = {}
        """Answers in progress."""
        self._texts: dict[str, tuple[int, str]] = {}
        """Each agent's last redacted text, with its request."""
        self._phases: dict[str, tuple[str, float]] = {}
        """Each agent's current phase and its start time."""
        self._called: dict[str, list[str]] = defaultdict(list)
        """Tools called in the current step, by agent."""
        self._calls: dict[str, list[bool]] = defaultdict(list)
        """The outcomes of each tool's calls."""
        self._started: e.RunStarted | None = None
        self._completed: e.RunCompleted | None = None

    def bind(self, recorder: Recorder) -> None:
        """Set the run's recorder, with its clock and redaction rules."""
        self._recorder = recorder

    # --- what comes straight from the run --------------------------------------------------------------------------

    def listen(self, session: Session, request: e.LlmRequested) -> Callable[[str], object] | None:
        """Return a function that shows the pieces of an answer; None if they are not wanted or must not be shown."""
        assert self._recorder is not None  # noqa: S101 - bound before the run begins
        with self._lock:
            level = self._levels[session.owner] = level_of(session.gate.hooks, self._recorder.redactor)
            shows = level is Level.LIVE and self.read and not self.queue.closed and self._shows(session.owner)
        return partial(self._piece, session, request) if shows else None

    def _piece(self, session: Session, request: e.LlmRequested, text: str) -> None:
        """Show a piece of an answer."""
        if session.ended or self._recorder is None:
            return
        key = (session.owner, request.request, request.attempt)
        with self._lock:
            live = self._live.get(key) or self._live.setdefault(key, LiveText(self._recorder.redactor))
            self._delta(*key, live.add(text), request.purpose)

    def leave_phase(self, owner: str) -> None:
        """Stream the end of an agent's current phase, if any."""
        with self._lock:
            phase, since = self._phases.pop(owner, ("", 0.0))
            if phase:
                took_ms = (perf_counter() - since) * 1000
                self.queue.put(out.PhaseCompleted(owner=owner, phase=phase, duration_ms=took_ms))

    def enter_phase(self, state: KernelState, session: Session) -> None:
        """Stream the start of an agent's phase."""
        owner, phase = session.owner, PHASE_OF[state.status]
        if not self._shows(owner) or self._recorder is None:
            return
        with self._lock:
            if phase == "think":
                progress = out.IterationProgress(
                    owner=owner,
                    iteration=state.iteration,
                    max_iterations=session.header.max_iterations,
                    tokens_used=None if state.usage.unknown else state.usage.total_tokens,
                    tools_called_this_step=tuple(self._called.pop(owner, ())),
                )
                self.queue.put(progress)
            if self._full:
                self._phases[owner] = (phase, perf_counter())
                self.queue.put(out.PhaseStarted(owner=owner, phase=phase, timestamp=self._recorder.clock.now_us()))

    # --- what is recorded --------------------------------------------------------------------------------------------

    def on_record(self, record: Record) -> None:
        """Turn a record into stream events."""
        event, owner = record.event, record.owner
        with self._lock:
            match event:
                case e.RunStarted():
                    self._started = event
                case e.LlmRequested():
                    self._purposes[owner, event.request] = event.purpose
                case e.LlmResponded():
                    self._responded(owner, event)
                case e.LlmFailed():
                    self._failed(owner, event)
                case e.Thought():
                    self._thought(event, record)
                case e.ToolCallStarted() | e.ToolCallCompleted():
                    self._call(owner, event)
                case e.RunPaused():
                    self._put(out.RunPaused(owner=owner, reason=event.reason))
                case e.RunResumed():
                    self._put(out.RunResumed(owner=owner, reason=event.reason))
                case e.RunCompleted() | e.AgentCompleted():
                    self._ended(owner, event)

    def _responded(self, owner: str, event: e.LlmResponded) -> None:
        key = (owner, event.request, event.attempt)
        level, live = self._levels.get(owner, Level.ANSWER), self._live.pop(key, None)
        if level is Level.ANSWER:
            return
        purpose = self._purposes.pop((owner, event.request), "think")
        self._texts[owner] = (event.request, event.text)
        if live is not None:
            self._delta(*key, live.rest(), purpose)
            if live.shown == event.text:
                return
            self._discard(*key, "the pieces were not the answer, which follows")
        self._delta(*key, event.text, purpose)

    def _failed(self, owner: str, event: e.LlmFailed) -> None:
        live = self._live.pop((owner, event.request, event.attempt), None)
        if live is not None and live.shown:
            self._discard(owner, event.request, event.attempt, event.error.message)

    def _ended(self, owner: str, event: e.RunCompleted | e.AgentCompleted) -> None:
        self.leave_phase(owner)
        if self._levels.get(owner) is Level.ANSWER and isinstance(event.output, str):
            self._delta(owner, 0, 0, event.output, "answer")
        if isinstance(event, e.RunCompleted):
            self._completed = event

    def _thought(self, event: e.Thought, record: Record) -> None:
        request, text = self._texts.get(record.owner, (None, ""))
        if event.text is not None:
            text, request = event.text, event.request
        is_shown = self._levels.get(record.owner, Level.ANSWER) is not Level.ANSWER and request == event.request
        if self._full and is_shown and text:
            self.queue.put(out.ThoughtEmitted(owner=record.owner, content=text, iteration=record.iteration))

    def _call(self, owner: str, event: e.ToolCallStarted | e.ToolCallCompleted) -> None:
        named: dict[str, Any] = {"owner": owner, "tool_name": event.tool, "call_id": event.call_id}
        if isinstance(event, e.ToolCallStarted):
            self._called[owner].append(event.tool)
            shown: out.StreamEvent = out.ToolCallStarted(**named)
        else:
            self._calls[event.tool].append(event.ok)
            shown = out.ToolCallCompleted(**named, duration_ms=event.duration_ms, success=event.ok)
        if self._full:
            self.queue.put(shown)

    # --- the end -----------------------------------------------------------------------------------------------------

    def finish(self, result: RunResult | None, error: BaseException | None) -> None:
        """Queue the final event of the run."""
        last = self._last(self._completed or result, error)  # outside the lock, because user-defined rules may run
        with self._lock:
            self.queue.put(last, last=True)

    def _last(self, ended: e.RunCompleted | RunResult | None, error: BaseException | None) -> out.StreamEnd:
        fields = self._end_fields(ended)
        if ended is not None and ended.terminated_by in CANCELLED:
            return out.StreamCancelled(reason=ended.terminated_because or ended.error or ended.terminated_by, **fields)
        if ended is not None and ended.status == "failed":
            return out.StreamError(cause=ended.error or ended.terminated_by, **fields)
        if error is not None:
            if not isinstance(error, Exception):
                return out.StreamCancelled(reason="the run was cancelled", **fields)
            return out.StreamError(cause=f"{type(error).__name__}: {self._redacted(str(error))}", **fields)
        return out.StreamCompleted(**fields)

    def _end_fields(self, ended: e.RunCompleted | RunResult | None) -> dict[str, Any]:
        metadata: dict[str, Any] = {}
        output = None if self._completed is None else self._completed.output
        if ended is not None:
            output = output if self._completed is ended else self._redacted(to_json(ended.output))
            metadata = {name: getattr(ended, name) for name in _METADATA}
            metadata["tokens"] = None if ended.usage.unknown else ended.usage.total_tokens
            metadata["cost_usd"] = None if ended.cost_unknown else ended.cost_usd
            metadata["lost_events"] = 0 if self._recorder is None else self._recorder.lost
        return {
            "task_id": self._run_id,
            "output": output,
            "metadata": metadata,
            "agent_id": None if self._started is None else self._started.agent.name,
            "tool_summary": tuple(
                out.ToolSummary(tool_name=name, calls=len(ends), success_rate=sum(ends) / len(ends))
                for name, ends in sorted(self._calls.items())
            ),
        }

    def _redacted(self, value: JsonValue) -> JsonValue:
        return value if self._recorder is None else self._recorder.redactor.redact(value)

    def _put(self, event: out.StreamEvent) -> None:
        if self._shows(event.owner):
            self.queue.put(event)

    def _shows(self, owner: str) -> bool:
        return self._full or owner == ROOT

    def _delta(self, owner: str, request: int, attempt: int, text: str, purpose: str) -> None:
        if text:
            self._put(out.TextDelta(owner=owner, text=text, request=request, attempt=attempt, purpose=purpose))

    def _discard(self, owner: str, request: int, attempt: int, reason: str) -> None:
        self._put(out.TextDiscarded(owner=owner, request=request, attempt=attempt, reason=reason))


CANCELLED: Final = frozenset({"cancelled", "terminated"})
"""Reason codes of runs that the caller ended."""
