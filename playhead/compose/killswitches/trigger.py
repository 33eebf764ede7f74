"""Shared by all killswitches: how they end a run, and how their arguments are checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from playhead.errors import UsageError
from playhead.kernel.guards import GuardMaker
from playhead.kernel.hooks import Stop, Terminate
from playhead.kernel.session import Guard
from playhead.trace.values import to_json

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from playhead.compose.harness import Block, Harness
    from playhead.kernel.approval import Approver
    from playhead.kernel.models.base import Model
    from playhead.kernel.session import Session

OnTrigger = Literal["stop", "terminate"]
"""`stop` ends the run in order, with status `done` and the best output so far. `terminate` ends it as failed."""


@dataclass(eq=False)
class Switch(Guard):
    """A guard that ends its agent in one of these two ways."""

    session: Session
    """The guarded agent."""
    on_trigger: str
    """The way it ends the agent."""

    def answer(self, reason: str) -> Stop | Terminate:
        """Return the answer that ends the agent."""
        return ending(self.on_trigger)(reason, self.name, self.name)


def ending(on_trigger: str) -> type[Stop | Terminate]:
    """Return the hook's answer that ends the run in this way."""
    return Terminate if on_trigger == "terminate" else Stop


def checked_trigger(on_trigger: object, *others: str) -> str:
    """Return how a switch ends a run.

    Raises:
        UsageError: the switch does not have this ending.
    """
    known = ("stop", "terminate", *others)
    if on_trigger not in known:  # a tuple, because the value may be unhashable
        *most, last = (f"`{each}`" for each in known)
        raise UsageError(f"on_trigger is {', '.join(most)} or {last}; it is {on_trigger!r}")
    return str(on_trigger)


def guard_block(
    name: str,
    make: Callable[[Session], Guard],
    *,
    guarded: tuple[str, ...] = (),
    approver: Approver | None = None,
    check: Callable[[Model], Awaitable[object]] | None = None,
    **settings: object,
) -> Block:
    """Return the block that registers a guard of these tools; the header of a trace records its settings."""
    given = to_json({key: value for key, value in settings.items() if value is not None})
    maker = GuardMaker(name, make, given, check, guarded, approver)

    def block(harness: Harness) -> None:
        harness.guard(maker)

    return block


def names_of(what: str, given: object) -> tuple[str, ...]:
    """Return the tools named by one name or several.

    Raises:
        UsageError: no tool is named, or a name is not text.
    """
    names = (given,) if isinstance(given, str) else given
    if isinstance(names, (set, frozenset)):
        names = sorted(names, key=str)  # the header records them in sorted order
    if not isinstance(names, (list, tuple)) or not names or not all(isinstance(each, str) for each in names):
        raise UsageError(f"{what} takes the name of a tool, or a list of names; it is {given!r}")
    return tuple(names)
