"""What a debrief remembers of each call: small whatever the result was."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from playhead.diagnose.call_words import CallWords, call_words
from playhead.diagnose.debrief_model import PathStep
from playhead.diagnose.parts import short

if TYPE_CHECKING:
    from playhead.diagnose.debrief_model import Reason
    from playhead.trace.events import ToolCallCompleted

LAST_WORDS: Final = frozenset({"final-answer"})
"""The kernel's own tool that ends a run with an answer."""


@dataclass(slots=True)
class CallFacts:
    """One call, without its result."""

    seq: int
    owner: str
    iteration: int | None
    call_id: str
    tool: str
    kind: Literal["function", "agent", "meta"]
    read_only: bool
    arguments: str
    args: object
    """The arguments themselves, until the call has ended."""
    args_hash: str
    request: int | None
    source: str
    reason: Reason | None
    expected: bool
    """Whether the model had been asked for a reason."""
    writes_before: int
    """Side-effecting calls of the run that had ended when this one started."""
    ok: bool | None = None
    error: str | None = None
    message: str | None = None
    ended: str | None = None
    cached: bool = False
    abandoned: bool = False
    contradiction: str | None = None
    """What its stated reason contradicts of its arguments."""
    digest: int = 0
    """Tells results apart."""
    words: CallWords = field(default_factory=CallWords)
    """What it and its result say, in short."""

    @property
    def action(self) -> str:
        """What it is in a path."""
        return f"{'agent' if self.kind == 'agent' else 'tool'}:{self.tool}"

    @property
    def denied(self) -> bool:
        """Whether an approver said no."""
        return self.ended == "denied"

    def step(self, repaired: list[str]) -> PathStep:
        """Return it as a step of a path; `repaired` is what was put right in it."""
        notes = [
            f"repaired: {', '.join(dict.fromkeys(repaired))}" if repaired else None,
            "cached" if self.cached else None,
            "abandoned" if self.abandoned else None,
            self.ended,
            self.error,
        ]
        return PathStep(
            seq=self.seq,
            owner=self.owner,
            iteration=self.iteration,
            action=self.action,
            ok=self.ok,
            note=", ".join(dict.fromkeys(filter(None, notes))) or None,
            call_id=self.call_id,
            arguments=self.arguments,
            rationale=self.reason,
        )

    def complete(self, event: ToolCallCompleted, result: str) -> None:
        """Take in what became of it; of the result no more than what tells it apart."""
        self.ok, self.ended, self.cached, self.abandoned = event.ok, event.ended, event.cached, event.abandoned
        if event.error is not None:
            self.error, self.message = short(event.error.type, 100), short(event.error.message)
        self.digest = hash(result)
        self.words = call_words(self.args, event.result, ok=event.ok)
        self.args = None
