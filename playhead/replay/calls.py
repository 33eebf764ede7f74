"""The tool calls of a recording: each with its place, its result, and the state of the world in which it was answered.

Only what a body returned is an answer. What the kernel or a switch refused, and what a cache answered, is worked out anew
in a replay. A refused or a denied call did nothing; a failed, timed out or abandoned one may have had its effect.

An answer is valid in the state of the world in which it was given: the earlier calls with side effects, by resource. A
recording and its replay are followed in the same way. Equal keys then mean that equal calls were made, in equal states, to
every resource that a call touches, and equal courses that a run has done exactly what the other one did.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict, deque
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from playhead.kernel.meta_tools import MetaTool, make_meta_tools
from playhead.trace.events import ApprovalDecided, ErrorInfo, ToolCallCompleted, ToolCallStarted
from playhead.trace.owners import agent_path, lineage, owner_inside, parent_of, tool_of
from playhead.trace.parameters import UNKNOWN
from playhead.trace.values import JsonValue, json_hash

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from playhead.diagnose.recording import OwnerRecording, RecordedCall, Recording
    from playhead.kernel.session import Tool
    from playhead.trace.types import ToolSpec

WORDS: Final = frozenset({"title", "description", "examples", "deprecated"})
"""Keys of a schema that say nothing about what a body gets."""
NAMED: Final = frozenset({"properties", "$defs"})
"""Keys of a schema whose keys are names."""


Resources: TypeAlias = "frozenset[str] | None"
"""Names of resources; None: everything."""
NOTHING: Final[frozenset[str]] = frozenset()


class Touched(NamedTuple):
    """The resources that calls of a tool read and write."""

    depends: Resources
    """The resources that the answers depend on."""
    writes: Resources
    """What they may change."""


def touched(spec: ToolSpec | None) -> Touched:
    """Return the resources that a tool declares; without a declaration, everything."""
    reads = None if spec is None or spec.reads is None else frozenset(spec.reads)
    if spec is not None and spec.read_only:
        return Touched(reads, NOTHING)
    writes = None if spec is None or spec.writes is None else frozenset(spec.writes)
    return Touched(None if writes is None else writes | (reads or NOTHING), writes)


def union(one: Resources, other: Resources) -> Resources:
    """Return the resources of both."""
    return None if one is None or other is None else one | other


def meet(one: Resources, other: Resources) -> bool:
    """Return whether both have something in common."""
    if one is None or other is None:
        return NOTHING not in (one, other)
    return not one.isdisjoint(other)


class State:
    """Follows the calls of one run, in their order.

    Each resource has a version: a digest of the last call that changed it, and of the state that this call was made in.
    """

    def __init__(self, side: str) -> None:
        """Start; `side` keeps unknown states of this run distinct from those of another run."""
        self._side = side
        self._rest = ""
        self._versions: dict[str, str] = {}
        self._unknown = count()
        self.course = ""
        """A digest of all that the run has done so far."""

    def begin(self, place: str, identity: str | None) -> str:
        """Take in that a call was made, whether or not it ran; return the course of the run up to it.

        Args:
            place: where it stands: the course of a run is the same only if all its calls stand where they stood.
            identity: what tells its arguments from others; None when that is not known.
        """
        self.course = digest(self.course, place, self._new() if identity is None else identity)
        return self.course

    def refuse(self) -> None:
        """Register a call whose body did not run."""
        self.course = digest(self.course, "refused")

    def key(self, resources: Resources) -> str:
        """Return the state of the resources."""
        if resources is None:
            return digest(("", self._rest), *sorted(self._versions.items()))
        return digest(*((name, self._versions.get(name, self._rest)) for name in sorted(resources)))

    def follow(self, call: str, touches: Touched, *, adrift: bool = False) -> None:
        """Take in a call that ran.

        Args:
            call: agent, tool and arguments.
            touches: the resources that it reads and writes.
            adrift: whether the moment of its effect is unknown: from now on the state of these resources is, too.
        """
        version = self._new() if adrift else digest(call, self.key(touches.depends))
        if touches.writes != NOTHING:
            self.course = digest(self.course, call)
        self._write(touches.writes, version)

    def lose(self, writes: Resources) -> None:
        """Note that the state of these resources is now unknown."""
        self.course = self._new()
        self._write(writes, self._new())

    def _new(self) -> str:
        return digest(self._side, next(self._unknown))

    def _write(self, writes: Resources, version: str) -> None:
        if writes is None:
            self._rest = version
            self._versions.clear()
        else:
            self._versions.update(dict.fromkeys(writes, version))


def digest(*parts: object) -> str:
    """Return a name for these parts."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()


Specs: TypeAlias = "Mapping[str, Mapping[str, ToolSpec]]"
"""Tools by the path of their agent, and by name."""
Facts: TypeAlias = "dict[tuple[str, str, str], deque[JsonValue]]"
"""Answers by owner, question and key, in the order in which they were given."""
BESIDE: Final = "a side effect of another agent, task or thread ran beside it, and nothing says which came first"


@dataclass(slots=True)
class Call:
    """One call of an agent: a recorded one or, as far as matching is concerned, one that a replay makes."""

    owner: str
    """The agent that made it."""
    started: ToolCallStarted
    iteration: int | None
    seq: int
    """`seq` of its first event."""
    recorded_spec: ToolSpec | None = None
    """The tool; None when the agent had none of this name."""
    spec: ToolSpec | None = None
    """The tool as this replay treats it: the code's if code was given."""
    completed: ToolCallCompleted | None = None
    answer_seq: int | None = None
    """`seq` of its answer."""
    allowed: bool | None = None
    """Whether it was approved; None if no approval was requested."""
    ran: bool = False
    """Whether its body may have run, or a replay served it as if it had."""
    inner_writes: Resources = NOTHING
    """The resources that side-effecting calls of its body may have changed."""
    course: str = ""
    """The course of the run up to it."""
    state: str = ""
    """The state of the resources that its answer depends on, when it was answered."""
    adrift: bool = False
    """Whether the moment of its effect is unknown."""
    doubt: str | None = None
    """The reason why its answer may be wrong in every state."""

    @property
    def child(self) -> str:
        """The owner of what the call entered."""
        return owner_inside(self.owner, self.started.tool, self.iteration, self.started.position)

    @property
    def identity(self) -> str | None:
        """The identity of its arguments; None if redaction hides it."""
        fingerprint = self.started.args_fingerprint
        return None if fingerprint == UNKNOWN else fingerprint or self.started.args_hash

    @property
    def name(self) -> str:
        """The call's identity across runs, without the turns at which agents were entered."""
        return f"{agent_path(self.owner)} {self.started.tool} {self.identity or f'unknown {self.seq}'}"

    @property
    def touches(self) -> Touched:
        """The resources that it reads and writes."""
        own = touched(self.spec)
        return own._replace(writes=union(own.writes, self.inner_writes))

    @property
    def served(self) -> bool:
        """Whether it has an answer, or a cached one, that a replay serves if it has done the same so far."""
        done = self.completed
        return done is not None and self.ran and done.end.served and done.rung != "synthetic-error"

    @property
    def answered(self) -> bool:
        """Whether its body answered."""
        return self.served and self.completed is not None and not self.completed.cached

    @property
    def denied(self) -> bool:
        """Whether approval was requested and denied."""
        return self.completed is not None and self.allowed is False

    @property
    def refusal(self) -> ErrorInfo | None:
        """The kernel's error if it refused the call."""
        return None if self.completed is None or self.completed.ended != "refused" else self.completed.error


@dataclass(slots=True)
class Past:
    """All recorded calls of the agents of a run."""

    inside: Mapping[str, str]
    """Owners inside the bodies of tools, whose calls are not among them: a frozen tool has no body."""
    specs: dict[str, dict[str, ToolSpec]]
    """Recorded tools by owner and name."""
    calls: list[Call] = field(default_factory=list)
    """In the order in which they started."""
    state: State = field(default_factory=lambda: State("recording"))
    """The side effects of the run."""
    acting: dict[tuple[str, str], Resources] = field(default_factory=dict)
    """What bodies of a tool wrote through other tools, by the agent's path and the tool's name."""


def read_past(recording: Recording, code: Specs | None = None) -> Past:
    """Return the calls of a recording, each with the state that it was answered in.

    `code` are the tools of the agents whose code was given: what they declare counts, whatever they declared then.
    """
    specs = tools_of(recording)
    past = Past(inside_bodies(recording), specs)
    calls = list(_calls(recording, specs, code or {}))
    _judge(past, [call for call, ends in calls if not ends])
    running: dict[int, Call] = {}
    for call, ends in calls:
        if call.owner in past.inside:
            continue
        if not ends:
            _start(past, running, call)
            continue
        running.pop(call.seq, None)
        if call.completed is not None and not call.completed.end.body_ran:
            past.state.refuse()
    return past


def tools_of(recording: Recording) -> dict[str, dict[str, ToolSpec]]:
    """Return the recorded tools by owner and name."""
    own = ((name, owner.own_tools.values()) for name, owner in recording.owners.items())
    return {name: {spec.name: spec for spec in tools} for name, tools in own if tools}


def facts_of(recording: Recording) -> Facts:
    """Return the recorded facts."""
    facts: Facts = defaultdict(deque)
    for owner in recording.owners.values():
        for fact in owner.facts:
            facts[owner.owner, fact.name, fact.key].append(fact.value)
    return facts


def meta_tool(spec: ToolSpec, given: Tool | None) -> Tool:
    """Return the built-in tool to run: the code's, or the one with this name."""
    return given if isinstance(given, MetaTool) else make_meta_tools((spec.name,))[spec.name]


def inside_bodies(recording: Recording) -> dict[str, str]:
    """Return the owners that are inside the bodies of tools, each with the outermost body that it is in."""
    owners = recording.owners
    bodies = {name: [path for path in lineage(name)[1:] if _is_body(path, owners)] for name in owners}
    return {name: paths[0] for name, paths in bodies.items() if paths}


def scope_of(owner: str, call: RecordedCall) -> str:
    """Return the owner of the events of a call's body or of the agent it enters."""
    return owner_inside(owner, call.started.tool, call.iteration, call.started.position)


def entering(recording: Recording, owner: str) -> RecordedCall | None:
    """Return the call that entered an owner; None for the root."""
    above = recording.owners.get(parent_of(owner))
    calls = () if above is None else above.calls.values()
    return next((call for call in calls if scope_of(parent_of(owner), call) == owner), None)


def _is_body(path: str, owners: Mapping[str, OwnerRecording]) -> bool:
    """Return whether an owner is the body of a tool: no agent, or one that a function entered, as imported runs have them."""
    owner, above = owners.get(path), owners.get(parent_of(path))
    if owner is None or owner.started is None:
        return True
    known = () if above is None else above.own_tools.values()
    return any(spec.name == tool_of(path) and spec.kind == "function" for spec in known)


def _calls(recording: Recording, specs: Specs, code: Specs) -> Iterator[tuple[Call, bool]]:
    """Yield each call where it starts, and again where it ends; a call is whole when all are yielded."""
    calls: dict[tuple[str, str], Call] = {}
    for record in recording.records:
        event, owner = record.event, record.owner
        if isinstance(event, ToolCallStarted):
            then = spec_of(specs, lineage(owner), event.tool)
            now = spec_of(code, [agent_path(each) for each in lineage(owner)], event.tool) or then
            call = calls[owner, event.call_id] = Call(owner, event, record.iteration, record.seq, then, now)
            yield call, False
        elif isinstance(event, (ApprovalDecided, ToolCallCompleted)) and (owner, event.call_id) in calls:
            call = calls[owner, event.call_id]
            if isinstance(event, ApprovalDecided):
                call.allowed = event.approved
                continue
            call.completed, call.answer_seq = event, record.seq
            yield call, True


def spec_of(specs: Specs, owners: list[str], tool: str) -> ToolSpec | None:
    """Return the tool of the innermost of these owners with tools: a tool's body has those of its agent."""
    return next((specs[name].get(tool) for name in reversed(owners) if name in specs), None)


def _judge(past: Past, calls: list[Call]) -> None:
    """Find the bodies that ran, and their effects through other tools, which are known when all calls have ended."""
    outer = {call.child: call for call in calls if call.owner not in past.inside}
    for call in calls:
        call.ran = _ran(call)
        body = outer.get(past.inside.get(call.owner, ""))
        if body is not None and call.ran:
            body.inner_writes = union(body.inner_writes, call.touches.writes)
    for call in outer.values():
        done = call.completed
        call.adrift = call.ran and (done is None or done.abandoned or done.end.may_go_on)
        call.doubt = _doubt(call)
        if call.inner_writes != NOTHING:
            tool = (agent_path(call.owner), call.started.tool)
            past.acting[tool] = union(past.acting.get(tool, NOTHING), call.inner_writes)


def _ran(call: Call) -> bool:
    spec, done = call.recorded_spec, call.completed
    if spec is None or spec.kind != "function" or not isinstance(call.started.args, dict):
        return False
    if done is not None and not done.end.body_ran:
        return False
    if done is not None and done.rung is not None:
        return done.rung != "synthetic-error" and call.allowed is not False
    return not spec.requires_approval if call.allowed is None else call.allowed


def _doubt(call: Call) -> str | None:
    """Return the reason, from the call alone, why an answer may be wrong in every state."""
    done, then, now = call.completed, call.recorded_spec, call.spec
    if done is not None and done.rung == "stale":
        return "it was stale already in the recording, which is a replay"
    if then is None or now is None or then is now:
        return None
    if not reads_alike(then.parameters, now.parameters):
        return f"the code's schema of {now.name} is another one, so the body may get something else"
    if done is not None and done.ended == "timeout" and then.timeout_s != now.timeout_s:
        return f"it ran into its time limit, and the code's limit of {now.name} is another one"
    return None


def _start(past: Past, running: dict[int, Call], call: Call) -> None:
    """Register the start of a call, and its side effects while others run."""
    state, touches = past.state, call.touches
    past.calls.append(call)
    call.course = state.begin(call.child, call.identity)
    call.state = state.key(touches.depends)
    if not call.ran:
        return
    for other in running.values():  # of another agent, for side effects run alone in their own
        if meet(other.touches.writes, touches.depends):
            call.doubt = call.doubt or BESIDE
        if meet(touches.writes, other.touches.depends):
            other.doubt = other.doubt or BESIDE
        if meet(touches.writes, other.touches.writes):
            call.adrift = other.adrift = True
    running[call.seq] = call
    state.follow(call.name, touches, adrift=call.adrift)


def reads_alike(then: dict[str, Any], now: dict[str, Any]) -> bool:
    """Return whether a body receives the same values from the same arguments under both schemas.

    The parameters must be equal except for descriptions; other constraints only decide whether a call is refused.
    """
    one, other = ({}, {}) if then is now else (_bare(then), _bare(now))
    return all(json_hash(one.get(key)) == json_hash(other.get(key)) for key in NAMED)


def _bare(schema: Any, *, is_named: bool = False) -> Any:  # noqa: ANN401 - JSON
    """Return a schema, or with `is_named` schemas by name, without descriptions."""
    if isinstance(schema, list):
        return [_bare(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: value for key, value in schema.items() if is_named or key not in WORDS}
    return {key: _bare(value, is_named=not is_named and key in NAMED) for key, value in kept.items()}
