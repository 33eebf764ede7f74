"""What a debrief remembers of each call: its arguments in short, how it ended, and what it and its result say."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from playhead.diagnose.debrief_entries import at, reason_of
from playhead.diagnose.debrief_model import PathStep
from playhead.diagnose.parts import short
from playhead.diagnose.summaries import arguments
from playhead.diagnose.vocabulary import plain, sign

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.trace.events import ToolCallCompleted, ToolCallStarted
    from playhead.trace.line import Record
    from playhead.trace.types import ToolSpec

LAST_WORDS: Final = frozenset({"final-answer"})
"""The kernel's own tool that ends a run with an answer."""
_LONGEST: Final = 20_000
"""Characters of a call and its result that are kept."""
_DID: Final = re.compile(r"ok|success\w*|sent|\w+ed", re.IGNORECASE)
"""Fields of a result that are true, or not 0, when it did something."""


class CallWords(NamedTuple):
    """The arguments and the result of a call as text, in lower case."""

    text: str = ""
    is_whole: bool = True
    """Whether nothing was cut."""
    failure: str | None = None
    """What the result says went wrong, though the call returned it."""


@dataclass(slots=True)
class CallFacts:
    """One call, without its result."""

    record: Record
    """The event that starts it."""
    event: ToolCallStarted
    spec: ToolSpec
    expected: bool
    """Whether the model had been asked for a reason."""
    writes_before: int
    """Side-effecting calls of the run that had ended when this one started."""
    contradiction: str | None = None
    """What its stated reason contradicts of its arguments."""
    end: ToolCallCompleted | None = None
    """How it ended, without the result."""
    digest: int = 0
    """Differs for different results."""
    words: CallWords = field(default_factory=CallWords)
    """What it and its result say, in short."""

    @property
    def ok(self) -> bool | None:
        """Whether it returned; None when its end is not in the file."""
        return None if self.end is None else self.end.ok

    @property
    def arguments(self) -> str:
        """The arguments as in Python, in short."""
        return short(arguments(self.event.args))

    @property
    def action(self) -> str:
        """What it is in a path."""
        return f"{'agent' if self.spec.kind == 'agent' else 'tool'}:{self.event.tool}"

    @property
    def failure(self) -> str:
        """What went wrong, in the words of its result or its error; empty for nothing."""
        error = self.end.error if self.end else None
        return self.words.failure or (short(error.message or error.type) if error else "")

    def step(self, repaired: list[str]) -> PathStep:
        """Return it as a step of a path; `repaired` is what was put right in it."""
        notes = [f"repaired: {', '.join(dict.fromkeys(repaired))}"] if repaired else []
        if (end := self.end) is not None:
            notes += ["cached"] * end.cached + ["abandoned"] * end.abandoned
            notes += [each for each in (end.ended, end.error and short(end.error.type, 100)) if each]
        return PathStep(
            **at(self.record),
            action=self.action,
            ok=self.ok,
            note=", ".join(dict.fromkeys(notes)) or None,
            call_id=self.event.call_id,
            arguments=self.arguments,
            rationale=reason_of(self.event.rationale),
        )

    def complete(self, event: ToolCallCompleted, result: str) -> None:
        """Take in its end; of the result no more than its digest and its words."""
        self.end = event.model_copy(update={"result": None})
        self.digest = hash(result)
        self.words = call_words(self.event.args, event.result, ok=event.ok)


def call_words(arguments: object, result: object, *, ok: bool) -> CallWords:
    """Return what a call says."""
    text = " ".join((*_scalars(arguments), *(_scalars(result) if ok else ())))
    return CallWords(text[:_LONGEST].lower(), len(text) <= _LONGEST, _failure_in(result) if ok else None)


def _scalars(value: Any, depth: int = 0) -> Iterator[str]:  # noqa: ANN401 - JSON
    """Yield the names and values of a JSON value, without those that are false or null."""
    if value is None or value is False or depth > 10:  # noqa: PLR2004 - no result is read deeper
        return
    if isinstance(value, dict):
        for name, each in value.items():
            yield from [str(name).replace("_", " ")] if each is not None and each is not False else []
            yield from _scalars(each, depth + 1)
    elif isinstance(value, list):
        for each in value:
            yield from _scalars(each, depth + 1)
    else:
        yield str(value)


def _failure_in(result: object) -> str | None:
    """Return what a result says went wrong; None when it says nothing of the kind."""
    if isinstance(result, str):
        return result[:100] if sign("failure").match(plain(result.strip())) else None
    if not isinstance(result, dict):
        return None
    for name, value in result.items():
        undone = _DID.fullmatch(str(name)) and (value is False or (value == 0 and type(value) is int))
        wrong = str(name).lower() in {"error", "errors", "failure"} and value
        state = str(name).lower() in {"status", "state", "result", "outcome"} and isinstance(value, str)
        if undone or wrong or (state and _says_failure(value)):
            return ", ".join(f"{key}: {each}" for key, each in result.items())[:200]
    return None


def _says_failure(state: str) -> bool:
    said = sign("idle").sub(" ", plain(state.strip().replace("_", " ")))
    return bool(sign("failure").search(said) or sign("not").match(said) or sign("wrong").search(said))
