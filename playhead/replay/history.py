"""What a recording holds of tool calls: each with its place, its answer, and the state of the world it was given in.

Only what a body returned is an answer. What the kernel or a switch refused, and what a cache answered, is worked out anew
by whoever replays; a refused or a denied call did nothing, a failed, a timed out and an abandoned one may have.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from playhead.replay.recorded import outermost_scope
from playhead.replay.state import NOTHING, State, Touched, meet, touched, union
from playhead.replay.tool_changes import reads_alike
from playhead.trace.events import ApprovalDecided, ErrorInfo, ToolCallCompleted, ToolCallStarted, ToolsDefined
from playhead.trace.fingerprint_key import UNKNOWN
from playhead.trace.owners import agent_path, owner_inside
from playhead.trace.values import json_hash

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.replay.state import Resources
    from playhead.trace.line import Record
    from playhead.trace.recording import Recording
    from playhead.trace.types import ToolSpec

CallKey: TypeAlias = tuple[str, str]
"""An owner, and the id of one of its calls."""
Specs: TypeAlias = "Mapping[str, Mapping[str, ToolSpec]]"
"""Tools by the path of their agent, and by name."""


@dataclass(slots=True)
class PastCall:
    """One recorded call of an agent."""

    owner: str
    """The agent that made it."""
    started: ToolCallStarted
    iteration: int | None
    seq: int
    """`seq` of its first event."""
    recorded_spec: ToolSpec | None
    """The tool; None when the agent had none of this name."""
    spec: ToolSpec | None
    """The same, as it counts in this replay: the code's, where code was given."""
    args_hash: str
    completed: ToolCallCompleted | None = None
    answer_seq: int | None = None
    """`seq` of its answer."""
    denied: bool = False
    """Whether somebody was asked and did not allow it."""
    ran: bool = False
    """Whether its body may have run, or a replay served it as if it had."""
    inner_writes: Resources = NOTHING
    """What calls with side effects that its body made may have changed."""
    course: str = ""
    """The course of the run up to it."""
    state: str = ""
    """The state that it was answered in, of what its answer depends on; with the time, where that has a say."""
    filled: str = ""
    """The same without the time."""
    log_at: int = 0
    """How many side effects stand in the recording's log before it."""
    timed: bool = False
    """Whether it depended on the time if a cache answered it."""
    adrift: bool = False
    """Whether nobody knows when what it did was done."""
    doubt: str | None = None
    """Why its answer may be wrong in every state."""

    @property
    def child(self) -> str:
        """The owner of what the call entered."""
        return owner_inside(self.owner, self.started.tool, self.iteration, self.started.position)

    @property
    def touches(self) -> Touched:
        """What it has to do with."""
        own = Touched(None, None) if self.spec is None else touched(self.spec)
        return own.writing(self.inner_writes)

    @property
    def answered(self) -> bool:
        """Whether its body answered; or a cache did, at a moment that only the very same course of calls comes to again."""
        completed = self.completed
        if completed is None or not self.ran or not completed.end.served:
            return False
        if completed.cached and not self.timed:
            return False
        return completed.rung != "synthetic-error"

    @property
    def refusal(self) -> ErrorInfo | None:
        """What the kernel said instead of running it."""
        return None if self.completed is None or self.completed.ended != "refused" else self.completed.error

    @property
    def identity(self) -> str | None:
        """What tells its arguments from others; None when redaction has hidden that."""
        return identity(self.args_hash, self.started.args_fingerprint)

    def __str__(self) -> str:
        """Return the call as a message names it."""
        return f"{self.started.tool} by {agent_path(self.owner)}"


@dataclass(slots=True)
class Past:
    """All recorded calls of the agents of a run."""

    calls: list[PastCall] = field(default_factory=list)
    """In the order in which they started."""
    state: State = field(default_factory=lambda: State("recording"))
    """What was done to the world."""
    acting: dict[tuple[str, str], Resources] = field(default_factory=dict)
    """What bodies of a tool wrote through other tools, by the agent's path and the tool's name."""
    inside: frozenset[str] = frozenset()
    """Owners inside the bodies of tools, whose calls are not among them: a frozen tool has no body."""
    specs: dict[str, dict[str, ToolSpec]] = field(default_factory=dict)
    """Recorded tools by owner and name."""


def read_past(recording: Recording, code: Specs | None = None) -> Past:
    """Return the calls of a recording, each with the state that it was answered in.

    `code` are the tools of the agents whose code was given: what they declare counts, whatever they declared then.
    """
    return _Reader(recording, code).past


def call_name(owner: str, tool: str, identity: str) -> str:
    """Return what makes a call the same as one of another run; at which turn agents were entered is no part of it."""
    return f"{agent_path(owner)} {tool} {identity}"


def identity(args_hash: str, fingerprint: str | None) -> str | None:
    """Return what tells arguments from others; None when redaction has hidden that."""
    return None if fingerprint == UNKNOWN else fingerprint or args_hash


class _Reader:
    """Reads the calls twice: a call's body may turn out to have a side effect only after it began."""

    def __init__(self, recording: Recording, code: Specs | None) -> None:
        self._code = code
        self._scopes = {name: outermost_scope(name, recording.owners) for name in recording.owners}
        self._calls: dict[CallKey, PastCall] = {}
        self._decided: dict[CallKey, bool] = {}
        self._open: dict[int, PastCall] = {}
        self._memory: dict[tuple[str, str, str], str] = {}
        inside = frozenset(name for name, scope in self._scopes.items() if scope is not None)
        self.past = Past(inside=inside, specs=defaultdict(dict))
        timeline = [step for record in recording.records if (step := self._read(record)) is not None]
        self._judge()
        for call, ends in timeline:
            if call.owner not in inside:
                (self._end if ends else self._start)(call)

    def _read(self, record: Record) -> tuple[PastCall, bool] | None:
        """Take a record in; return the call that it starts or ends."""
        event, owner = record.event, record.owner
        if isinstance(event, ToolsDefined) and not event.offered:
            self.past.specs[owner].update({spec.name: spec for spec in event.tools})
        elif isinstance(event, ApprovalDecided):
            self._decided[owner, event.call_id] = event.approved
        elif isinstance(event, ToolCallStarted):
            then = self._spec(owner, event.tool)
            now = self._code_spec(owner, event.tool) or then
            call = PastCall(owner, event, record.iteration, record.seq, then, now, json_hash(event.args))
            self._calls[owner, event.call_id] = call
            return call, False
        elif isinstance(event, ToolCallCompleted) and (owner, event.call_id) in self._calls:
            call = self._calls[owner, event.call_id]
            call.completed, call.answer_seq = event, record.seq
            return call, True
        return None

    def _spec(self, owner: str, tool: str) -> ToolSpec | None:
        """Return the tool; a tool's body has those of its agent."""
        while owner and owner not in self.past.specs:
            owner = owner.rpartition("/")[0]
        return self.past.specs[owner].get(tool) if owner else None

    def _code_spec(self, owner: str, tool: str) -> ToolSpec | None:
        path = agent_path(owner)
        while self._code is not None and path:
            if path in self._code:
                return self._code[path].get(tool)
            path = path.rpartition("/")[0]
        return None

    def _judge(self) -> None:
        """Find out which bodies ran, and what they did through other tools."""
        outer = {call.child: call for call in self._calls.values() if call.owner not in self.past.inside}
        for key, call in self._calls.items():
            call.denied = not self._decided.get(key, True)
            call.ran = self._ran(call, allowed=self._decided.get(key))
            scope = self._scopes[call.owner]
            if scope in outer and call.ran:
                body = outer[scope]
                body.inner_writes = union(body.inner_writes, call.touches.writes)
        for call in outer.values():
            call.adrift = call.ran and _is_left(call)
            call.doubt = _doubt(call)
            if call.inner_writes != NOTHING:
                tool = (agent_path(call.owner), call.started.tool)
                self.past.acting[tool] = union(self.past.acting.get(tool, NOTHING), call.inner_writes)

    def _ran(self, call: PastCall, *, allowed: bool | None) -> bool:
        spec, completed = call.recorded_spec, call.completed
        if spec is None or spec.kind != "function" or not isinstance(call.started.args, dict):
            return False
        if completed is not None and not completed.end.body_ran:
            return False
        if completed is not None and completed.rung is not None:
            return completed.rung != "synthetic-error" and allowed is not False
        return not spec.requires_approval if allowed is None else allowed

    def _start(self, call: PastCall) -> None:
        state, touches = self.past.state, call.touches
        self.past.calls.append(call)
        call.course = state.begin(call.child, call.identity)
        call.filled, call.log_at = state.key(touches.depends, call.course), len(state.log)
        call.state = self._state_of(call)
        if not call.ran:
            return
        for other in self._open.values():  # of another agent, for side effects run alone in their own
            if meet(other.touches.writes, touches.depends):
                call.doubt = call.doubt or BESIDE
            if meet(touches.writes, other.touches.depends):
                other.doubt = other.doubt or BESIDE
            if meet(touches.writes, other.touches.writes):
                call.adrift = other.adrift = True
        self._open[call.seq] = call
        name = call_name(call.owner, call.started.tool, call.identity or f"unknown {call.seq}")
        state.follow(name, touches, str(call), course=call.course, adrift=call.adrift)

    def _state_of(self, call: PastCall) -> str:
        spec, remembered = call.spec, self._memory.get(_memory_key(call))
        if spec is None or spec.cache_s is None or remembered in (None, call.filled):
            return call.filled
        call.timed = True
        then = call.recorded_spec
        if then is None or then.cache_s != spec.cache_s:
            call.doubt = call.doubt or "the time for which its cache holds is another one in the code"
        return self.past.state.timed(call.filled, call.course)

    def _end(self, call: PastCall) -> None:
        self._open.pop(call.seq, None)
        if call.completed is not None and call.completed.ok and call.ran and not call.completed.cached:
            self._memory[_memory_key(call)] = call.filled


BESIDE = "a side effect of another agent ran beside it, and nothing says which came first"


def _memory_key(call: PastCall) -> tuple[str, str, str]:
    return call.owner, call.started.tool, call.identity or f"unknown {call.seq}"


def _is_left(call: PastCall) -> bool:
    """Return whether a body may have gone on after its call was over."""
    completed = call.completed
    return completed is None or completed.abandoned or completed.end.may_go_on


def _doubt(call: PastCall) -> str | None:
    """Return why an answer may be wrong whatever the state: as far as the call alone says."""
    completed, then, now = call.completed, call.recorded_spec, call.spec
    if completed is not None and completed.rung == "stale":
        return "it was stale already in the recording, which is a replay"
    if then is None or now is None or then is now:
        return None
    if not reads_alike(call.started.args, then.parameters, now.parameters):
        return f"the code's schema of {now.name} is another one, so the body might get something else"
    if completed is not None and completed.ended == "timeout" and then.timeout_s != now.timeout_s:
        return f"it ran into its time limit, and the code's limit of {now.name} is another one"
    return None
