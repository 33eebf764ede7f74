"""What a recording holds of tool calls: each with its place, its answer, and the side effects that came before it.

An answer belongs to the state of the world it was given in, and that state is known by what was done to it: the calls of
tools that are not declared read-only, in the order of the run. A refused or a denied call did nothing; a failed, a timed
out and an abandoned one may have.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from playhead.replay.recorded import outermost_scope
from playhead.trace.events import ApprovalDecided, ToolCallCompleted, ToolCallStarted, ToolsDefined
from playhead.trace.owners import agent_path

if TYPE_CHECKING:
    from playhead.trace.line import Record
    from playhead.trace.recording import Recording
    from playhead.trace.types import ToolSpec

BY_HOOKS: Final = frozenset({"Refused", "Skipped", "Suppressed"})
"""Types of the refusals that are a hook's or a killswitch's doing: the tool was not asked, so they are no answer of its."""
CallKey = tuple[str, str]
"""An owner, and the id of one of its calls."""


class Effect(NamedTuple):
    """A call that may have changed the world."""

    agent: str
    """Names of the agents that led to it; at which turn they were entered is no part of what was done."""
    tool: str
    """The tool."""
    args_hash: str
    """Hash of its arguments."""

    def __str__(self) -> str:
        """Return the call as a message names it."""
        return f"{self.tool} by {self.agent}"


@dataclass(slots=True)
class PastCall:
    """One recorded call of an agent."""

    owner: str
    """The agent that made it."""
    started: ToolCallStarted
    iteration: int | None
    seq: int
    """`seq` of its first event."""
    spec: ToolSpec | None
    """The tool; None when the agent had none of this name."""
    completed: ToolCallCompleted | None = None
    answer_seq: int | None = None
    """`seq` of its answer."""
    effect: bool = False
    """Whether it may have changed the world."""
    effects_before: int = 0
    """How many side effects had begun when its answer was made."""
    overlapped: bool = False
    """Whether a side effect of another agent ran beside it: then nobody knows which state its answer tells of."""

    @property
    def child(self) -> str:
        """The owner of what the call entered."""
        turn = "-" if self.iteration is None else self.iteration
        return f"{self.owner}/{self.started.tool}@{turn}.{self.started.position}"

    @property
    def answered(self) -> bool:
        """Whether there is an answer to serve.

        Not when the recording ends before it, says only that there is none, or a hook kept the call from the tool.
        """
        completed = self.completed
        if completed is None or completed.ended in ("cancelled", "stopped") or completed.rung == "synthetic-error":
            return False
        return not (self.refused and completed.error is not None and completed.error.type in BY_HOOKS)

    @property
    def refused(self) -> bool:
        """Whether the kernel refused it before anything ran, so that no state of the world mattered."""
        return self.completed is not None and self.completed.ended == "refused"

    def as_effect(self) -> Effect:
        """Return what it did."""
        return Effect(agent_path(self.owner), self.started.tool, self.started.args_hash)


@dataclass(slots=True)
class Past:
    """All recorded calls of the agents of a run."""

    calls: list[PastCall] = field(default_factory=list)
    """In the order in which they started."""
    effects: list[Effect] = field(default_factory=list)
    """What may have changed the world, in the order in which it began."""
    inside: frozenset[str] = frozenset()
    """Owners inside the bodies of tools, whose calls are not among them: a frozen tool has no body."""
    specs: dict[str, dict[str, ToolSpec]] = field(default_factory=dict)
    """Tools by owner and name."""


def read_past(recording: Recording) -> Past:
    """Return the calls of a recording, each with the state that it was answered in."""
    return _Reader(recording).past


class _Reader:
    """Reads the calls twice: a call's body may turn out to have a side effect only after it began."""

    def __init__(self, recording: Recording) -> None:
        self._scopes = {name: outermost_scope(name, recording.owners) for name in recording.owners}
        self._calls: dict[CallKey, PastCall] = {}
        self._decided: dict[CallKey, bool] = {}
        self._open: dict[int, PastCall] = {}
        self._open_effects = 0
        self._filled: dict[tuple[str, str, str], int] = {}
        inside = frozenset(name for name, scope in self._scopes.items() if scope is not None)
        self.past = Past(inside=inside, specs=defaultdict(dict))
        timeline = [step for record in recording.records if (step := self._read(record)) is not None]
        self._mark_effects()
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
            spec = self._spec(owner, event.tool)
            call = PastCall(owner, event, record.iteration, record.seq, spec)
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

    def _mark_effects(self) -> None:
        outer = {call.child: call for call in self._calls.values() if call.owner not in self.past.inside}
        for call in self._calls.values():
            if self._ran(call) and call.spec is not None and not call.spec.read_only:
                scope = self._scopes[call.owner]
                culprit = call if scope is None else outer.get(scope)
                if culprit is not None:
                    culprit.effect = True

    def _ran(self, call: PastCall) -> bool:
        """Return whether the body of a function may have run, or a replay served it as if it had."""
        spec, completed = call.spec, call.completed
        if spec is None or spec.kind != "function" or not isinstance(call.started.args, dict) or call.refused:
            return False
        if completed is not None and completed.rung is not None:
            return completed.rung != "synthetic-error" and self._decided.get((call.owner, call.started.call_id), True)
        return self._decided.get((call.owner, call.started.call_id), not spec.requires_approval)

    def _start(self, call: PastCall) -> None:
        self.past.calls.append(call)
        call.effects_before = len(self.past.effects)
        if call.spec is None or call.spec.kind != "function":
            return
        call.overlapped = self._open_effects > 0
        if call.effect:
            self.past.effects.append(call.as_effect())
            self._open_effects += 1
            for other in self._open.values():
                other.overlapped = True
            self._open.clear()
        if not call.overlapped:
            self._open[call.seq] = call

    def _end(self, call: PastCall) -> None:
        self._open.pop(call.seq, None)
        self._open_effects -= call.effect
        if call.spec is not None and call.spec.cache and call.completed is not None and call.completed.ok:
            key = (call.owner, call.started.tool, call.started.args_hash)
            # What came from memory tells of the state in which it was remembered.
            call.effects_before = self._filled.setdefault(key, call.effects_before)


class State:
    """Whether the replay's world is in the state that a recorded answer was given in.

    Both are known by the side effects up to there, one by one. As long as they are the same, how many there were says
    which state it is; from the first difference on no recorded state comes back.
    """

    def __init__(self, recorded: list[Effect]) -> None:
        self._recorded = recorded
        self._done = 0
        self._parted: Effect | None = None
        """The first side effect of the replay that the recording does not have at its place."""
        self._unknown: str | None = None

    def add(self, effect: Effect) -> None:
        """Note that the replay did, or pretended to do, something that changes the world."""
        if self._parted is None and self._done < len(self._recorded) and self._recorded[self._done] == effect:
            self._done += 1
        elif self._parted is None:
            self._parted = effect

    def lose(self, why: str) -> None:
        """Note that nobody knows the state from here on."""
        self._unknown = self._unknown or why

    @property
    def now(self) -> int | None:
        """The number of side effects so far when all of them are the recorded ones, else None."""
        return self._done if self._parted is None and self._unknown is None else None

    def difference(self, effects_before: int) -> str:
        """Return how the state differs from the one after that many recorded side effects."""
        if self._unknown is not None:
            return self._unknown
        if self._done < effects_before:
            missing = f"before it the recording has the side effect {self._recorded[self._done]}"
            return f"{missing}, the replay {self._parted or 'none'}"
        extra = self._parted if self._done == effects_before else self._recorded[effects_before]
        return f"the replay has done {extra} before it, which the recording has not"
