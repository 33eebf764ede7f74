"""What all agents of one run share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from playhead.kernel.in_flight import InFlight

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from playhead.kernel.approval import Approver
    from playhead.kernel.deltas import Listener
    from playhead.kernel.guards import GuardMaker
    from playhead.kernel.hooks import Hooks
    from playhead.kernel.models.base import Model
    from playhead.kernel.review import Judge
    from playhead.kernel.steering import Steering
    from playhead.kernel.world import World
    from playhead.trace.control import Control
    from playhead.trace.line import Record
    from playhead.trace.recorder import Recorder


@dataclass(frozen=True)
class RunContext:
    """What all agents of one run share."""

    run_id: str
    recorder: Recorder
    world: World
    approver: Approver | None = None
    on_trace_error: Literal["continue", "stop"] = "continue"
    hooks: Hooks | None = None
    """The root agent's."""
    guards: tuple[GuardMaker, ...] = ()
    """The root agent's killswitches at the ports."""
    judges: Mapping[str, Judge] = field(default_factory=dict)
    """The code that looks at the root agent's answers."""
    fallbacks: tuple[Model, ...] = ()
    """The models that take over when the root agent's does not answer."""
    kept: list[Record] | None = None
    """Every event, of a run that writes none."""
    control: Control | None = None
    """Where other processes reach the run; None when they cannot."""
    steering: Steering | None = None
    """Who may pause and stop it between two steps; None when nobody can."""
    listener: Listener | None = None
    """Who listens to what models say while they say it; None when nobody does."""
    in_flight: InFlight = field(default_factory=InFlight)
    """What has begun and not ended."""
    isolated: dict[str, Callable[[], None]] = field(default_factory=dict)
    """Ends the process of each isolated call that runs, by owner and call, from any thread."""
