"""The result of a run."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr

from playhead.diagnose.recording import Recording, read_recording
from playhead.kernel.state import Step
from playhead.trace.format import ANSWERED
from playhead.trace.line import Record
from playhead.trace.types import Usage

if TYPE_CHECKING:
    from playhead.diagnose.debrief_model import Debrief


class RunResult(BaseModel):
    """The result of a run. Reaching a limit gives a result too: see `terminated_by`."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, arbitrary_types_allowed=True)

    output: Any = None
    """The answer, as JSON or as the agent's `output_type`. Without an answer, the best output when the run ended."""
    status: Literal["done", "failed"]
    """`done` when the run ended regularly. `success` says whether it has an answer."""
    terminated_by: str
    """The reason code: `final_answer_tool`, `final_answer`, `end_turn`, `max_iterations`, …"""
    terminated_source: str
    """Who ended it."""
    error: str | None = None
    """The error of a failed run."""
    run_id: str
    """The run's id."""
    trace_path: Path | None
    """Path of the trace; None when the run was not traced."""
    trace_complete: bool
    """Whether every event was written to the trace and synced as the durability setting requires."""
    usage: Usage
    """Tokens used by the run, including sub-agents."""
    cost_usd: float | None
    """The cost of `usage` in US dollars, as far as prices are known; None when nothing is known of them."""
    cost_unknown: int | None = None
    """The number of attempts whose cost is unknown: `cost_usd` is then a lower bound. None when there are none."""
    iterations: int
    """Turns of the loop."""
    steps: tuple[Step, ...] = Field(repr=False)
    """Thoughts, calls and observations, in order."""
    terminated_because: str | None = None
    """The reason given by the hook or killswitch that ended the run."""
    strategy_used: str
    """The strategy that produced the output."""
    verified: bool | None = None
    """The model's verdict on its own answer; None without verification."""
    duration_ms: float
    """Duration of the run in milliseconds."""

    _records: tuple[Record, ...] = PrivateAttr(default=())
    """The events of a run that was not traced."""

    @cached_property
    def debrief(self) -> Debrief:
        """The debrief: an account of the run's decisions, computed from the trace on first access.

        It holds the goal, the path, the stated reasons, interventions, the ending, and flags for reasons that the trace
        does not support.

        Raises:
            TraceError: the trace is missing or cannot be read.
        """
        from playhead.diagnose.debrief import build_debrief  # noqa: PLC0415 - few results need a debrief

        path = self.trace_path
        return build_debrief(Recording(Path(), self._records, ()) if path is None else read_recording(path))

    @property
    def success(self) -> bool:
        """Whether the model itself gave an answer: False when a limit or an error ended the run."""
        return self.status == "done" and self.terminated_by in ANSWERED and self.output is not None
