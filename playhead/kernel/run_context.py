"""What all agents of one run share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from playhead.kernel.in_flight import InFlight

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.kernel.approval import Approver
    from playhead.kernel.guards import GuardMaker
    from playhead.kernel.hooks import Hooks
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
    kept: list[Record] | None = None
    """Every event, of a run that writes none."""
    control: Control | None = None
    """Where other processes reach the run; None when they cannot."""
    in_flight: InFlight = field(default_factory=InFlight)
    """What has begun and not ended."""
    isolated: dict[str, Callable[[], None]] = field(default_factory=dict)
    """Ends the process of each isolated call that runs, by owner and call, from any thread."""
