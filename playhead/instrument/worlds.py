"""What stands behind the ports of a recorded program: the world itself, or in a replay a recording."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from playhead.kernel.session import World

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.instrument.seam import Served
    from playhead.instrument.wire import WireRequest
    from playhead.kernel.outcome import Outcome
    from playhead.trace.values import JsonValue


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


class ProgramWorld(World):
    """The live world."""

    def changed(self, owner: str, wire: WireRequest) -> WireRequest:  # noqa: ARG002 - replays use it
        """Return a request as it is sent."""
        return wire

    def answer(self, act: Act) -> Served | None:  # noqa: ARG002
        """Return the recorded answer to a request; None to send it."""
        return None

    def result(self, act: Act, call_id: str, *, is_program: bool, read_only: bool) -> Outcome | None:  # noqa: ARG002
        """Return the recorded outcome of a call; None to run its body. The body of a nested program always runs."""
        return None

    def enter(self, caller: str, call_id: str, owner: str) -> None:
        """Take the owner of a nested program, which this call entered."""

    def value(self, act: Act, answer: Callable[[], Any]) -> Any:  # noqa: ANN401, ARG002 - any JSON value, or an awaitable of it
        """Return the answer to a question that is neither the model's nor a tool's."""
        return answer()
