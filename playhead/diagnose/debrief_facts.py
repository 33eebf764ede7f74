"""What a debrief remembers of each agent and of each call: the ground of its flags, small whatever the results were."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from playhead.diagnose.call_words import CallWords, call_words
from playhead.diagnose.debrief_model import Reason
from playhead.diagnose.reasons import contradiction
from playhead.diagnose.summaries import arguments, preview
from playhead.trace.types import ToolSpec
from playhead.trace.values import as_text, scrub

if TYPE_CHECKING:
    from playhead.diagnose.claims import Against
    from playhead.trace.events import ToolCallCompleted, ToolCallStarted
    from playhead.trace.line import Record
    from playhead.trace.types import Alternative, Content, Rationale

SHORT: Final = 300
"""Characters of a result, an error or an argument list that a debrief shows."""
LONG: Final = 1200
"""Characters of a goal or an answer that a debrief shows."""

LAST_WORDS: Final = frozenset({"final-answer"})
"""The kernel's own tool that ends a run with an answer."""


def short(text: str, limit: int = SHORT) -> str:
    """Return the beginning of a text, which says how much is missing."""
    text = scrub(text[: limit + 1]) + text[limit + 1 :]
    if len(text) <= limit:
        return text
    kept = text[:limit]
    words = kept.rsplit(None, 1)
    kept = words[0] if len(words) > 1 and len(words[0]) > limit // 2 else kept
    return f"{kept} … ({len(text) - len(kept):,} more characters)"


def shown(value: object, limit: int = SHORT) -> str:
    """Return the beginning of a JSON value as a model reads it."""
    if isinstance(value, str):
        return short(value, limit)
    try:
        return short(as_text(value), limit)
    except (TypeError, ValueError, RecursionError):  # a tag in a hostile file, an integer that Python will not print
        return short(preview(repr(type(value).__name__)), limit)


def content_text(content: Content | None) -> str:
    """Return the text of a message."""
    if content is None or isinstance(content, str):
        return content or ""
    return " ".join(part.text if part.type == "text" else "[image]" for part in content)


def reason_of(rationale: Rationale | None) -> Reason | None:
    """Return a stated reason as a debrief has it."""
    if rationale is None:
        return None
    sure = rationale.confidence
    known = sure is not None and 0 <= sure <= 1  # not-a-number is neither
    return Reason(
        why=short(rationale.why, LONG),
        refs=tuple(short(ref, 200) for ref in rationale.refs[:20]),
        confidence=sure if known else None,
    )


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
    alternatives: tuple[Alternative, ...]
    expected: bool
    """Whether the model had been asked for a reason."""
    writes_before: int
    """Side-effecting calls of the run that had ended when this one started."""
    completed_seq: int | None = None
    ok: bool | None = None
    error: str | None = None
    message: str | None = None
    ended: str | None = None
    cached: bool = False
    abandoned: bool = False
    duration_ms: float = 0.0
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

    def complete(self, record: Record, event: ToolCallCompleted, result: str) -> None:
        """Take in what became of it; of the result no more than what tells it apart."""
        self.completed_seq, self.ok, self.ended = record.seq, event.ok, event.ended
        self.cached, self.abandoned, self.duration_ms = event.cached, event.abandoned, finite(event.duration_ms)
        if event.error is not None:
            self.error, self.message = short(event.error.type, 100), short(event.error.message)
        self.digest = hash(result)
        self.words = call_words(self.args, event.result, ok=event.ok)
        self.args = None


@dataclass(slots=True)
class AgentFacts:
    """One agent, or a tool that used the ports."""

    owner: str
    name: str = ""
    asked_for_reasons: bool = False
    tools: dict[str, ToolSpec] = field(default_factory=dict)
    calls: list[CallFacts] = field(default_factory=list)
    by_id: dict[str, CallFacts] = field(default_factory=dict)
    observed: list[str] = field(default_factory=list)
    """Calls whose results are in the thread, in its order, each once."""
    was_observed: set[str] = field(default_factory=set)
    """The same, to look one up."""
    observed_at: dict[int, int] = field(default_factory=dict)
    """How many results the model had when it was asked, by request."""
    missing: list[int] = field(default_factory=list)
    """Events that say that a reason is missing."""
    answer_seq: int | None = None
    """The event with the agent's own answer."""
    answer_confidence: str | None = None
    ungrounded: tuple[str, ...] = ()
    """Numbers of the answer that nothing shown to the run holds, or gives in one step."""
    unsupported: tuple[tuple[str, Against], ...] = ()
    """What the answer says was done, and no call can have done."""
    figures: int = 0
    """Numbers of the answer that the run was shown, or that follow from such."""
    deeds: int = 0
    """Deeds that the answer claims and a call that succeeded stands behind."""

    @property
    def real_calls(self) -> list[CallFacts]:
        """Calls of tools that are not the kernel's own."""
        return [call for call in self.calls if call.kind != "meta"]

    @property
    def has_tools(self) -> bool:
        """Whether it could have called anything."""
        return any(spec.kind != "meta" for spec in self.tools.values())

    def observe(self, call_id: str) -> None:
        """Take in a message with the result of a call; one that was rewritten is still the same observation."""
        if call_id not in self.was_observed:
            self.was_observed.add(call_id)
            self.observed.append(call_id)

    def start(self, record: Record, event: ToolCallStarted, writes_before: int) -> CallFacts:
        """Take in a call that starts."""
        spec = self.tools.get(event.tool)
        kind = spec.kind if spec else "function"
        call = CallFacts(
            seq=record.seq,
            owner=self.owner,
            iteration=record.iteration,
            call_id=event.call_id,
            tool=event.tool,
            kind=kind,
            read_only=spec is not None and spec.read_only,
            arguments=short(_arguments(event.args)),
            args=event.args,
            args_hash=event.args_hash,
            request=event.request,
            source=event.source,
            reason=reason_of(event.rationale),
            alternatives=event.rationale.alternatives[:20] if event.rationale else (),
            expected=self.asked_for_reasons and kind != "meta" and event.source != "tool",
            writes_before=writes_before,
        )
        if call.reason is not None and kind != "meta":
            call.contradiction = contradiction(
                call.reason.why, spec or ToolSpec(name=event.tool), event.args, self.tools
            )
        self.calls.append(call)
        self.by_id[event.call_id] = call
        return call


def finite(number: float) -> float:
    """Return the number, or 0 for one that is none."""
    return number if abs(number) < float("inf") else 0.0


def _arguments(value: object) -> str:
    try:
        return arguments(value)
    except (TypeError, ValueError, RecursionError):
        return "(arguments that cannot be shown)"
