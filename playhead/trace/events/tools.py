"""Tool calls: one `tool-call-started` and exactly one `tool-call-completed` each; and what a replay served instead."""

from collections.abc import Mapping
from typing import Annotated, Final, Literal, NamedTuple

from playhead.trace.events.model import ErrorInfo
from playhead.trace.types import VOLATILE, CallEvent, EventBase, Id, Integer, Rationale, Role, SpanIds
from playhead.trace.values import JsonValue, as_text

Rung = Literal["exact", "reordered", "normalised", "stale", "override", "fault", "simulated", "live", "synthetic-error"]
"""How a replayed result came about, from the surest to the least sure."""
GROUNDED: Final = frozenset({"exact", "reordered", "normalised"})
"""Rungs of recorded answers that were given in the same state of the world."""


CallEnd = Literal["refused", "denied", "stopped", "timeout", "cancelled"]
"""How the kernel ended a call: it refused it, an approver denied it, a killswitch stopped it, its time was up, or nobody waits
for it any more."""


class CallEndMeaning(NamedTuple):
    """What an ending of a call means, for everything that counts, serves or judges calls."""

    body_ran: bool
    """Whether its body was started."""
    admitted: bool
    """Whether killswitches let it through, so that it counts towards their limits."""
    served: bool
    """Whether a replay serves what the call got; otherwise the kernel works it out anew."""
    may_go_on: bool
    """Whether the body may have gone on after the call was over."""


CALL_ENDS: Final[Mapping[CallEnd | None, CallEndMeaning]] = {
    None: CallEndMeaning(body_ran=True, admitted=True, served=True, may_go_on=False),
    "timeout": CallEndMeaning(body_ran=True, admitted=True, served=True, may_go_on=True),
    "cancelled": CallEndMeaning(body_ran=True, admitted=True, served=False, may_go_on=True),
    "denied": CallEndMeaning(body_ran=False, admitted=True, served=False, may_go_on=False),
    "refused": CallEndMeaning(body_ran=False, admitted=False, served=False, may_go_on=False),
    "stopped": CallEndMeaning(body_ran=False, admitted=False, served=False, may_go_on=False),
}
"""None: the body returned, or raised."""


def grounded_share(rungs: Mapping[str, int], stops: int) -> float | None:
    """Return the share of a replay's calls whose answer is grounded, 0 to 1; None when it made no call.

    Args:
        rungs: how many calls got their answer in which way.
        stops: how many got none, which ended the replay.
    """
    calls = sum(rungs.values()) + stops
    return sum(rungs.get(rung, 0) for rung in GROUNDED) / calls if calls else None


class ToolCallStarted(CallEvent, kind="tool-call-started"):
    """A call is about to be checked and run; written before its body may start."""

    position: Integer
    """Place of the call among those of its iteration, from 0."""
    args: JsonValue = None
    """The arguments that the body gets, or the model's text when it is no JSON object."""
    args_hash: Annotated[Id, VOLATILE]
    """SHA-256 of the canonical JSON of `args`."""
    args_fingerprint: Annotated[Id | None, VOLATILE] = None
    """Where redaction changed `args`: a keyed fingerprint of what the body gets, empty where there was no key."""
    rationale: Rationale | None = None
    """The model's own reason for the call."""
    source: Literal["native", "text", "plan", "tool"] = "native"
    """Asked for through the provider's tool calls, in text, by a plan, or by another tool's body."""
    request: Integer | None = None
    """The request whose answer asked for it."""
    step: str | None = None
    """The step of a plan that it is made in."""
    span: Annotated[SpanIds | None, VOLATILE] = None
    """The span that the application's own tracer opened for it; absent: none is known."""


class ToolCallRepaired(EventBase, kind="tool-call-repaired"):
    """A malformed call was put right before it ran."""

    call_id: Id
    """The call."""
    stage: str
    """What was put right: `json` (of a call in text), `name` or `arguments`."""
    before: JsonValue = None
    """What stood there: what the model wrote, or what the stage before left."""
    after: JsonValue = None
    """What it was read as."""


class ToolCallCompleted(CallEvent, kind="tool-call-completed"):
    """A call is over: it returned, failed, was refused or was given up."""

    position: Integer
    """Place of the call among those of its iteration, from 0."""
    ok: bool
    """Whether the body returned a result."""
    result: JsonValue = None
    """What it returned, as JSON; absent after a failure."""
    error: ErrorInfo | None = None
    """What went wrong; absent after a success."""
    duration_ms: Annotated[float, VOLATILE] = 0.0
    """Milliseconds from the start of the call."""
    cached: bool = False
    """Whether the answer came from this run's memory of an equal call."""
    abandoned: bool = False
    """Whether the body was still running when the call was given up."""
    ended: CallEnd | None = None
    """How the kernel ended the call; absent when its body returned or raised (an exception may have any name)."""
    rung: Annotated[Rung | None, VOLATILE] = None
    """In a replay, how the result came about."""
    understood: str | None = None
    """What a malformed call was read as, for the model to learn from; absent when the call ran as it was written."""

    @property
    def end(self) -> CallEndMeaning:
        """What its ending means."""
        return CALL_ENDS[self.ended]

    @property
    def tool_failed(self) -> bool:
        """Whether the tool itself failed: its body raised or took too long."""
        return not self.ok and self.end.served

    def observation(self) -> str:
        """Return what the model is told about this result."""
        if self.ok:
            return as_text(self.result)
        if self.error is None:
            return "error"
        return f"error: {self.error.message}" if self.error.told is None else self.error.told

    def message_text(self, role: Role) -> str:
        """Return the content of the message that carries this result.

        A call that was asked for in text has no id that a provider would know, so its result is a user message, which
        has to say what it is.
        """
        text = self.observation()
        if self.understood is not None:
            text = f"(understood as {self.understood})\n{text}"
        return text if role == "tool" else result_in_text(self.tool, text)


def result_in_text(tool: str, result: str) -> str:
    """Return a result as a message of the user's tells it."""
    return f"Result of {tool}:\n{result}"


class ApprovalRequested(CallEvent, kind="approval-requested"):
    """Somebody has to allow a call before it runs."""

    args_hash: Annotated[Id, VOLATILE]
    """Hash of exactly the arguments that are to be approved."""
    switch: Id | None = None
    """The killswitch that wants it; None when the tool itself requires approval."""


class ApprovalDecided(EventBase, kind="approval-decided"):
    """The answer to an approval request; anything but an explicit yes is a no."""

    call_id: Id
    """The call."""
    approved: bool
    """Whether the call may run."""
    why: str | None = None
    """The reason given."""
    by: str | None = None
    """Who decided."""
    switch: Id | None = None
    """As in the request."""


class ToolCallLate(CallEvent, kind="tool-call-late", incidental=True):
    """The body of an abandoned call came back; its result was not used."""

    ok: bool
    """Whether it returned or raised."""
    duration_ms: Annotated[float, VOLATILE]
    """Milliseconds from the start of the call."""


class ReplayServed(EventBase, kind="replay-served", incidental=True):
    """A recorded answer was served instead of asking again."""

    call_id: Id = ""
    """The call in the replay; empty for a request."""
    request: Integer | None = None
    """In a resumed run, the request to the model that was not asked again."""
    attempt: Integer | None = None
    """Which attempt at that request."""
    rung: Annotated[Rung, VOLATILE]
    """How sure it is that this is the right answer."""
    source_seq: Integer | None = None
    """`seq` of the recorded answer in the recording."""


class ReplayDiverged(EventBase, kind="replay-diverged", incidental=True):
    """The replay did something else than the recording."""

    what: str
    """What differs."""
    where: str
    """Owner, iteration and event."""
    call_id: Id | None = None
    """The call that left the recording; absent when it was none."""
    expected: JsonValue = None
    """What the recording has."""
    actual: JsonValue = None
    """What the replay did."""
