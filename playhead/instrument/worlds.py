"""What stands behind the ports of a recorded program: the world itself, or in a replay a recording."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Protocol

from playhead.kernel.session import World

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.instrument.seam import Served
    from playhead.instrument.wire import WireRequest
    from playhead.kernel.outcome import Outcome
    from playhead.kernel.session import Session, ToolContext
    from playhead.trace.events import ErrorInfo, ToolCallCompleted
    from playhead.trace.types import ToolSpec
    from playhead.trace.values import JsonValue

log = logging.getLogger("playhead")
UNFINISHED: Final = "unfinished"
"""The fact that tasks of a function were at work when it ended: how far they came is a race."""
GIVE_CONTEXT: Final = "if it is the program's own, it is not recorded: start its threads with contextvars.copy_context().run, and wait for them"


@dataclass(frozen=True, slots=True)
class Act:
    """What a program does at a port."""

    owner: str
    """The owner of the scope."""
    strand: int
    """The thread or task in it."""
    kind: Literal["request", "call", "fact"]
    """At which port."""
    name: str
    """The tool, the fact, or the wire format."""
    key: str
    """Equal for equal requests, and for calls with equal arguments."""
    told: Callable[[], JsonValue]
    """Returns what it asks, for an error."""


class CallBody(Protocol):
    """The body of a call."""

    spec: ToolSpec
    function: Any
    arguments: dict[str, JsonValue]
    act: Act

    async def run(self, context: ToolContext) -> Outcome:
        """Run it."""


class ProgramWorld(World):
    """The live world."""

    said: ClassVar[set[str]] = set()
    """What this process has warned of."""

    def begin(self, session: Session) -> None:
        """Take the session of the run."""

    def notice(self, what: str) -> None:
        """Take what is called outside of the run, in a thread or task without its context: say so, once in this process.

        Raises:
            Halted: in a replay, where nothing real may be called.
        """
        if what not in self.said:
            self.said.add(what)
            log.warning(
                "%s is outside of the recorded program that runs in this process, or comes after it; %s",
                what,
                GIVE_CONTEXT,
            )

    def changed(self, owner: str, wire: WireRequest) -> WireRequest:  # noqa: ARG002 - replays use it
        """Return a request as it is sent."""
        return wire

    def answer(self, act: Act) -> Served | None:  # noqa: ARG002
        """Return the recorded answer to a request; None to send it."""
        return None

    def check(self, body: CallBody, context: ToolContext) -> ErrorInfo | Outcome | None:  # noqa: ARG002
        """Return why a call cannot run, or None."""
        return None

    async def outcome(self, body: CallBody, context: ToolContext) -> Outcome:
        """Return the outcome of a call: of its body, or the recorded one."""
        return await body.run(context)

    def returned(self, body: CallBody, completed: ToolCallCompleted) -> Any:  # noqa: ANN401
        """Return or raise what the body of a call whose recorded outcome was served had returned or raised."""
        raise NotImplementedError("only a replay serves recorded outcomes, and it says what they returned")

    def value(self, act: Act, answer: Callable[[], Any]) -> Any:  # noqa: ANN401, ARG002 - any JSON value, or an awaitable of it
        """Return the answer to a question that is neither the model's nor a tool's."""
        return answer()
