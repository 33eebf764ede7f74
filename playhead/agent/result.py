"""What a run reached."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, PrivateAttr

from playhead.kernel.state import Step
from playhead.trace.format import ANSWERED
from playhead.trace.line import Record
from playhead.trace.recording import read_recording
from playhead.trace.types import Usage

if TYPE_CHECKING:
    from playhead.diagnose.debrief_model import Debrief


class RunResult(BaseModel):
    """What a run reached. A limit that was hit is a result like any other: see `terminated_by`."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, arbitrary_types_allowed=True)

    output: Any = None
    """The answer: JSON, or of the agent's `output_type`; else the best there was when the run ended."""
    status: Literal["done", "failed"]
    """`done` when the run stopped in order; that it has an answer is what `success` says."""
    terminated_by: str
    """The reason code: `final_answer_tool`, `final_answer`, `end_turn`, `max_iterations`, …"""
    terminated_source: str
    """Who ended it."""
    error: str | None = None
    """What broke, in a failed run."""
    run_id: str
    """The run's id."""
    trace_path: Path | None
    """Where the trace is; None when the run was not traced."""
    trace_complete: bool
    """Whether every event is in the trace and synced as the durability setting requires."""
    usage: Usage
    """Tokens of the run, sub-agents included."""
    cost_usd: float | None
    """US dollars for `usage`; None when a price is not known."""
    cost_unknown: int | None = None
    """Attempts whose cost is unknown, so that `cost_usd` is a lower bound; None when there are none."""
    iterations: int
    """Turns of the loop."""
    steps: tuple[Step, ...]
    """Thoughts, calls and observations, in order."""
    terminated_because: str | None = None
    """Why, in the words of the hook or killswitch that ended it."""
    strategy_used: str
    """The strategy that gave the output."""
    verified: bool | None = None
    """The model's verdict on its own answer; None when it was not asked for one."""
    duration_ms: float
    """Milliseconds from start to end."""

    _records: tuple[Record, ...] = PrivateAttr(default=())
    """The events of a run without a trace."""

    @cached_property
    def debrief(self) -> Debrief:
        """The account of the run's decisions, made from its trace when it is first asked for.

        Goal, path, stated reasons, what steered it, how it ended, and flags where a stated reason does not hold.

        Raises:
            TraceError: the trace is not there any more, or cannot be read.
        """
        from playhead.diagnose.debrief import DebriefFold, build_debrief  # noqa: PLC0415 - few ask for it

        if self.trace_path is not None:
            return build_debrief(read_recording(self.trace_path))
        fold = DebriefFold()
        for record in self._records:
            fold.add(record)
        return fold.result()

    @property
    def success(self) -> bool:
        """Whether the model itself gave an answer; false when a limit or a failure ended the run."""
        return self.status == "done" and self.terminated_by in ANSWERED and self.output is not None
