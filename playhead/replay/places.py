"""Where the agents of a replay stand in the recording.

An owner is named by the calls that led to it. In a replay an agent may be entered at another turn or place, so its name says
nothing by itself: its recording is found through the call that enters it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from playhead.replay.matching import Asked, Matcher
from playhead.trace.events import AgentStarted

if TYPE_CHECKING:
    from playhead.kernel.session import Session, ToolContext
    from playhead.kernel.state import PlannedCall
    from playhead.replay.history import Past, PastCall
    from playhead.trace.recording import OwnerRecording, Recording
    from playhead.trace.types import AgentHeader, ToolSpec
    from playhead.trace.values import JsonValue


@dataclass(frozen=True, slots=True)
class Place:
    """Where an agent of the replay stands in the recording."""

    sources: tuple[str, ...]
    """The recorded owners whose answers it may get."""
    is_owner: bool
    """Whether that is its own recording; else they are agents of its name, and it has a task that none of them had."""


NOWHERE = Place((), is_owner=False)


class Places:
    """Finds the recording of each agent, and says what its calls are there."""

    def __init__(self, recording: Recording, past: Past, matcher: Matcher) -> None:
        self._recording = recording
        self._matcher = matcher
        self._places = {"root": Place(("root",), is_owner=True)}
        self._claimed: set[str] = set()
        self._requests: dict[str, dict[str, int | None]] = {}
        self._agents: dict[tuple[str, str], list[str]] = defaultdict(list)
        for call in past.calls:
            if self._was_entered(call):
                self._agents[call.owner, call.started.tool].append(call.child)

    def of(self, owner: str) -> Place:
        """Return where an owner of the replay stands."""
        return self._places.get(owner, NOWHERE)

    def tools(self, owner: str) -> list[ToolSpec]:
        """Return the tools that an agent had: those of its own recording, or of the first of its name."""
        found = (self._recording.owners[source].own_tools for source in self.of(owner).sources)
        return list(next((tools for tools in found if tools), {}).values())

    def header(self, owner: str) -> AgentHeader | None:
        """Return the recorded header of an agent, or of the first of its name."""
        sources = self.of(owner).sources
        started = self._recording.owners[sources[0]].started if sources else None
        return None if started is None else started.agent

    def enter(self, child: str, asked: Asked) -> list[PastCall]:
        """Find the recording of an agent that is about to be entered as `child`; return the recorded calls of it.

        That is the call of this place, or else the first of the same parent, agent and task. An agent with another task
        may get what agents of its name got under the same parent, but for those that have been found again themselves.
        """
        calls = self._matcher.enter(asked)
        entered = [call.child for call in calls if self._was_entered(call)]
        if len(entered) == 1:
            self._claimed.add(entered[0])
        alike = entered or [name for source in asked.sources for name in self._agents[source, asked.tool]]
        self._places[child] = Place(tuple(alike), is_owner=len(entered) == 1)
        return calls

    def asked(self, spec: ToolSpec, arguments: dict[str, JsonValue], context: ToolContext) -> Asked:
        """Return what a call is in terms of the recording."""
        session = context.session
        self._reserve(session)
        request = self._requests.get(session.owner, {}).get(context.call_id)
        where = (request, context.iteration, context.position)
        asked = self._asked(session, spec, arguments, context.call_id, where)
        self._matcher.release(asked)
        return asked

    def _asked(
        self,
        session: Session,
        spec: ToolSpec,
        arguments: dict[str, JsonValue],
        call_id: str,
        where: tuple[int | None, int | None, int],
    ) -> Asked:
        place, (request, iteration, position) = self.of(session.owner), where
        args_hash, fingerprint = session.run.recorder.identity_of(arguments)
        unclaimed = (name for name in place.sources if place.is_owner or name not in self._claimed)
        return Asked(
            sources=tuple(unclaimed),
            is_owner=place.is_owner,
            caller=f"{session.owner} {call_id}",
            tool=spec.name,
            request=request,
            iteration=iteration,
            position=position,
            args=None if spec.key is None else session.run.recorder.redactor.redact(arguments),
            args_hash=args_hash,
            fingerprint=fingerprint,
            key=spec.key,
        )

    def _reserve(self, session: Session) -> None:
        """When a turn begins, keep what its calls match exactly, so that none takes what is another one's.

        Of calls that run beside each other it is known by then what hooks made of them; another one gives back what was
        kept for it if a hook makes it into another call.
        """
        pending: tuple[PlannedCall, ...] = () if session.state is None else session.state.pending
        if not pending or pending[0].call.id in self._requests.get(session.owner, {}):
            return
        self._requests[session.owner] = {each.call.id: each.request for each in pending}
        agents = []
        for planned in (session.tools.changed.get(each.call.id, each) for each in pending):
            tool, arguments = session.toolset.get(planned.call.name), planned.call.arguments
            if tool is None or arguments is None or tool.spec.kind == "meta":
                continue
            where = (planned.request, session.iteration, planned.position)
            asked = self._asked(session, tool.spec, arguments, planned.call.id, where)
            self._matcher.reserve(asked)
            if tool.spec.kind == "agent":
                agents.append(asked)
        for asked in agents:  # when all the exact ones are kept
            self._matcher.reserve_any(asked)

    def _was_entered(self, call: PastCall) -> bool:
        owner = self._recording.owners.get(call.child)
        return owner is not None and isinstance(owner.started, AgentStarted) and says_tools(owner)


def says_tools(owner: OwnerRecording) -> bool:
    """Return whether the recording goes on long enough to know which tools an agent had."""
    return bool(owner.own_tools or owner.messages or owner.completed)
