"""Tool calls, each with one `tool-call-started` and one `tool-call-completed`; approvals; and a replay's own events."""

from collections.abc import Mapping
from typing import Annotated, Final, Literal, NamedTuple

from playhead.trace.base import VOLATILE, EventBase, Id, Integer
from playhead.trace.events.model import ErrorInfo
from playhead.trace.types import Rationale, Role
from playhead.trace.values import JsonValue, as_text

Rung = Literal["exact", "reordered", "normalised", "stale", "override", "fault", "simulated", "live", "synthetic-error"]
"""How a replay obtained a result, from the most to the least certain."""


CallEnd = Literal["refused", "denied", "stopped", "timeout", "cancelled"]
"""How the kernel ended a call: the kernel refused it, an approver denied it, a killswitch stopped it, it timed out, or it was
cancelled."""


class CallEvent(EventBase):
    """A fact about one tool call."""

    call_id: Id
    """Id of the call, unique within its owner."""
    tool: Id
    """The tool's name."""


class CallEndMeaning(NamedTuple):
    """The consequences of a call's ending, for all code that counts, serves or judges calls."""

    body_ran: bool
    """Whether its body was started."""
    admitted: bool
    """Whether killswitches allowed it, so that it counts towards their limits."""
    served: bool
    """Whether a replay serves the recorded result; otherwise the kernel decides again."""
    may_go_on: bool
    """Whether the body may have kept running after the call was over."""


CALL_ENDS: Final[Mapping[CallEnd | None, CallEndMeaning]] = {
    None: CallEndMeaning(body_ran=True, admitted=True, served=True, may_go_on=False),
    "timeout": CallEndMeaning(body_ran=True, admitted=True, served=True, may_go_on=True),
    "cancelled": CallEndMeaning(body_ran=True, admitted=True, served=False, may_go_on=True),
    "denied": CallEndMeaning(body_ran=False, admitted=True, served=False, may_go_on=False),
    "refused": CallEndMeaning(body_ran=False, admitted=False, served=False, may_go_on=False),
    "stopped": CallEndMeaning(body_ran=False, admitted=False, served=False, may_go_on=False),
}
"""None: the body returned, or raised."""


class ToolCallStarted(CallEvent, kind="tool-call-started"):
    """A call is about to be checked and run; written before its body may start."""

    position: Integer
    """Place of the call among those of its iteration, from 0."""
    args: JsonValue = None
    """The arguments that the body receives, or the model's text when it is not a JSON object."""
    args_hash: Annotated[Id, VOLATILE]
    """SHA-256 of the canonical JSON of `args`."""
    args_fingerprint: Annotated[Id | None, VOLATILE] = None
    """When redaction changed `args`: a keyed fingerprint of the original arguments, empty when there was no key."""
    rationale: Rationale | None = None
    """The model's own reason for the call."""
    source: Literal["native", "text", "plan", "tool", "program"] = "native"
    """How the call was requested: through the provider's tool calls, in text, by a plan, by another tool's body, or by a
    recorded program itself."""
    request: Integer | None = None
    """The request whose answer contains the call."""
    step: str | None = None
    """The plan step that makes the call."""
    strand: Annotated[Integer | None, VOLATILE] = None
    """In a recorded program: the thread or task of the owner that made the call; see `llm-requested`."""


class ToolCallRepaired(EventBase, kind="tool-call-repaired"):
    """A malformed call was repaired before it ran."""

    call_id: Id
    """The call."""
    stage: str
    """The repaired part: `json` (of a call in text), `name` or `arguments`."""
    before: JsonValue = None
    """The value before: the model's own, or the result of the previous stage."""
    after: JsonValue = None
    """The repaired value."""


class ToolCallCompleted(CallEvent, kind="tool-call-completed"):
    """A call is over: it returned, failed, was refused or was abandoned."""

    position: Integer
    """Place of the call among those of its iteration, from 0."""
    ok: bool
    """Whether the body returned a result."""
    result: JsonValue = None
    """The returned value as JSON; absent after a failure."""
    error: ErrorInfo | None = None
    """The error; absent after a success."""
    duration_ms: Annotated[float, VOLATILE] = 0.0
    """Milliseconds from the start of the call."""
    cached: bool = False
    """Whether the answer came from this run's cache of an equal call."""
    abandoned: bool = False
    """Whether the body was still running when the call was abandoned."""
    ended: CallEnd | None = None
    """How the kernel ended the call; absent when its body returned or raised (an exception may have any name)."""
    rung: Annotated[Rung | None, VOLATILE] = None
    """In a replay, how the result was obtained."""
    understood: str | None = None
    """The repaired form of a malformed call, shown to the model; absent when the call ran as the model wrote it."""
    stack: Annotated[str | None, VOLATILE] = None
    """The stack trace of the exception that the body raised, at most 8,000 characters; the model does not receive it."""

    @property
    def end(self) -> CallEndMeaning:
        """The consequences of its ending."""
        return CALL_ENDS[self.ended]

    @property
    def tool_failed(self) -> bool:
        """Whether the tool itself failed: its body raised or took too long."""
        return not self.ok and self.end.served

    def observation(self) -> str:
        """Return the text that the model receives for this result."""
        if self.ok:
            return as_text(self.result)
        if self.error is None:
            return "error"
        return f"error: {self.error.message}" if self.error.told is None else self.error.told

    def message_text(self, role: Role) -> str:
        """Return the content of the message for this result.

        The provider knows no id for a call made in text, so its result becomes a user message that names the tool.
        """
        text = self.observation()
        if self.understood is not None:
            text = f"(understood as {self.understood})\n{text}"
        return text if role == "tool" else result_in_text(self.tool, text)


def result_in_text(tool: str, result: str) -> str:
    """Return a result as the text of a user message."""
    return f"Result of {tool}:\n{result}"


class ApprovalRequested(CallEvent, kind="approval-requested"):
    """A call needs approval before it runs."""

    args_hash: Annotated[Id, VOLATILE]
    """Hash of the exact arguments to approve."""
    switch: Id | None = None
    """The killswitch that requires the approval; None when the tool itself does."""


class ApprovalDecided(EventBase, kind="approval-decided"):
    """The answer to an approval request; only an explicit approval allows the call."""

    call_id: Id
    """The call."""
    approved: bool
    """Whether the call may run."""
    why: str | None = None
    """The reason given."""
    by: str | None = None
    """Who decided."""
    switch: Id | None = None
    """The killswitch, as in the request."""


class ToolCallLate(CallEvent, kind="tool-call-late", incidental=True):
    """The body of an abandoned call ended; its result was not used."""

    ok: bool
    """Whether it returned or raised."""
    duration_ms: Annotated[float, VOLATILE]
    """Milliseconds from the start of the call."""


class ReplayServed(EventBase, kind="replay-served", incidental=True):
    """The replay served a recorded answer instead of calling the tool or the model again."""

    call_id: Id = ""
    """The call in the replay; empty for a request."""
    request: Integer | None = None
    """In a resumed run, the model request whose recorded answer was served."""
    attempt: Integer | None = None
    """The attempt at that request."""
    rung: Annotated[Rung, VOLATILE]
    """How certain the match with the recording is."""
    source_seq: Integer | None = None
    """`seq` of the recorded answer in the recording."""


class ReplayDiverged(EventBase, kind="replay-diverged", incidental=True):
    """The replay diverged from the recording."""

    what: str
    """The difference."""
    where: str
    """Owner, iteration and event."""
    call_id: Id | None = None
    """The call that diverged; absent when something other than a call did."""
    expected: JsonValue = None
    """The recording's value."""
    actual: JsonValue = None
    """The replay's value."""
