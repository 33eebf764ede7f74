"""Stand-ins for the sessions of a recorded run: what guards ask of a session, answered from the recording."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from playhead.errors import NotATraceError
from playhead.kernel.lifecycle.termination import Ending
from playhead.kernel.place import Place
from playhead.kernel.session import Gate
from playhead.kernel.state import PlannedCall
from playhead.trace.events import AgentStarted, BudgetReserved, LlmResponded, RunStarted
from playhead.trace.types import ToolCall, ToolSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from playhead.kernel.lifecycle.termination import Termination
    from playhead.kernel.models.base import Model
    from playhead.kernel.session import Session
    from playhead.trace.events import KillswitchFired, LlmRequested
    from playhead.trace.recording import OwnerRecording, RecordedCall, Recording
    from playhead.trace.types import AgentHeader, Message, Range, Request
    from playhead.trace.usage import Prices

BY_GUARD: Final = "Refused"
"""Type of the error of a call that a guard of the run refused: it had come as far as the guards."""


class RecordedModel:
    """What is known of a model that was asked then."""

    def __init__(self, session: RecordedSession) -> None:
        self._session = session

    @property
    def name(self) -> str:
        """`provider/model`."""
        return self._session.header.model

    async def prices(self) -> Prices | None:
        """Return what it cost then."""
        return self._session.header.prices

    async def count_tokens(self, request: Request) -> int | None:
        """Return what was counted for this prompt, if it was."""
        counted = self._session.counted.get((request.number, request.attempt))
        self._session.used_counts |= counted is not None
        return counted


class RecordedPort(NamedTuple):
    """What guards see of a model port."""

    adapter: Model


@dataclass(slots=True, eq=False)
class RecordedSession:
    """What guards see of a session."""

    recorded: OwnerRecording
    header: AgentHeader
    parent: RecordedSession | None
    on_fired: Callable[[RecordedSession, KillswitchFired], None]
    """Is told where a guard ends the run."""
    tools: dict[str, ToolSpec]
    """The agent's tools, by name."""
    counted: Mapping[tuple[int, int], int]
    """Tokens of its prompts that were counted then, by request and attempt."""
    used_counts: bool = False
    """Whether a guard has asked for one of them."""
    gate: Gate = field(default_factory=Gate)
    at: Place = field(default_factory=lambda: Place(""))
    """Where the run stood at the event that is looked at."""
    ending: Ending = field(default_factory=Ending)
    state: None = None
    _messages: dict[int, Message] = field(default_factory=dict)
    _offered: dict[tuple[Range, ...], tuple[ToolSpec, ...]] = field(default_factory=dict)

    @property
    def owner(self) -> str:
        """The owner."""
        return self.recorded.owner

    @property
    def iteration(self) -> int | None:
        """Turn of the loop."""
        return self.at.iteration

    @property
    def model(self) -> RecordedPort:
        """What was asked then."""
        return RecordedPort(cast("Model", RecordedModel(self)))

    @property
    def run(self) -> RecordedSession:
        """What hooks ask for the run's id."""
        return self

    @property
    def run_id(self) -> str:
        """The run; no rule depends on it."""
        return ""

    def reach(self, state: None) -> None:
        """Know of no state: a recording has none."""

    def as_session(self) -> Session:
        """Return this as what guards expect; what a recording cannot answer, it does not have."""
        return cast("Session", self)

    def emit(self, event: KillswitchFired) -> None:
        """Note that a guard ends the run here."""
        self.on_fired(self, event)

    def emit_ending(self, event: KillswitchFired, end: Callable[[Callable[[], object]], bool]) -> bool:
        """Hear what ends the agent, if it does."""
        return end(lambda: self.emit(event))

    def interrupt(self, termination: Termination, switch: KillswitchFired) -> bool:
        """Note that a guard ends the run from outside."""
        return self.ending.interrupt(termination, lambda: self.on_fired(self, switch))

    def request(self, requested: LlmRequested) -> Request:
        """Return the exact request that was sent.

        Raises:
            NotATraceError: the recording does not hold all of it.
        """
        # Each request names the whole thread again: what counts its tokens looks at a message that it knows only once.
        bare = self.recorded.request(requested.model_copy(update={"messages": (), "tools": ()}))
        messages = tuple(
            self._message(number) for first, last in requested.messages for number in range(first, last + 1)
        )
        if requested.tools not in self._offered:
            self._offered[requested.tools] = self.recorded.request(requested.model_copy(update={"messages": ()})).tools
        return replace(bare, messages=messages, tools=self._offered[requested.tools])

    def _message(self, number: int) -> Message:
        if number not in self._messages:
            self._messages[number] = self.recorded.message(number)
        return self._messages[number]

    def planned(self, call: RecordedCall) -> PlannedCall:
        """Return a call as it was about to run."""
        started = call.started
        arguments: Any = started.args if isinstance(started.args, dict) else None
        asked = ToolCall(id=started.call_id, name=started.tool, arguments=arguments)
        return PlannedCall(asked, started.position, started.source, started.request, started.rationale)

    def guarded_spec(self, call: RecordedCall) -> ToolSpec | None:
        """Return the tool of a call that came as far as the guards, or None for one that was refused before that."""
        completed, spec = call.completed, self.tools.get(call.started.tool)
        if spec is None and completed is not None and completed.ok:
            return ToolSpec(name=call.started.tool)  # it ran, so there was one
        if spec is None or not isinstance(call.started.args, dict):
            return None
        if completed is not None and completed.ended == "refused":
            return spec if completed.error is not None and completed.error.type == BY_GUARD else None
        return spec


def recorded_sessions(
    recording: Recording, on_fired: Callable[[RecordedSession, KillswitchFired], None]
) -> dict[str, RecordedSession]:
    """Return a stand-in for each owner of a recording.

    Raises:
        NotATraceError: an owner's agent is not in it.
    """
    sessions: dict[str, RecordedSession] = {}
    for owner, recorded in recording.owners.items():
        parent = _parent(owner, sessions)
        own = {spec.name: spec for spec in recorded.own_tools.values()}
        if isinstance(recorded.started, (RunStarted, AgentStarted)):
            header = recorded.started.agent
        elif parent is not None:  # inside the body of a tool: the agent's model and tools
            header, own = parent.header, {**parent.tools, **own}
        else:
            raise NotATraceError(f"nothing says which agent {owner} is")
        sessions[owner] = RecordedSession(recorded, header, parent, on_fired, own, _counted(recorded, header))
    return sessions


def may_be_counted(header: AgentHeader) -> bool:
    """Return whether live the adapter asks a server of one's own how many tokens a prompt has."""
    return header.address is not None and not header.model.startswith("ollama/")


def _counted(recorded: OwnerRecording, header: AgentHeader) -> dict[tuple[int, int], int]:
    """Return the prompts that were counted: by the server of one's own that answered, or for a budget of the run."""
    counted: dict[tuple[int, int], int] = {}
    for record in recorded.records:
        match record.event:
            case LlmResponded() as event if may_be_counted(header) and event.usage.input_tokens > 0:
                counted.setdefault((event.request, event.attempt), event.usage.input_tokens)
            case BudgetReserved(prompt_bound="counted", prompt_tokens=int() as tokens) as event:
                counted[event.request, event.attempt] = tokens
    return counted


def _parent(owner: str, sessions: dict[str, RecordedSession]) -> RecordedSession | None:
    above, _, _ = owner.rpartition("/")
    while above:
        if above in sessions:
            return sessions[above]
        above, _, _ = above.rpartition("/")
    return None
