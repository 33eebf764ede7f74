"""A trace as a backend tells it, and as a picture."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class SeenSpan:
    """A span."""

    trace_id: str
    span_id: str
    parent_id: str | None
    name: str
    kind: str
    start: Any
    error: str | None
    """Its status, when that is an error."""
    events: tuple[tuple[str, str], ...]
    """Names of its events, and what was said."""
    tokens: tuple[int, int]
    """Of the prompt and of the answer."""
    said: tuple[Any, Any]
    """What went in and what came out."""
    prompt: list[dict[str, Any]]
    """The messages of a model call in OpenAI's form."""
    answer: list[dict[str, Any]]
    """The same of what the model answered."""
    attributes: dict[str, Any] = field(repr=False)


@dataclass(frozen=True)
class SeenTrace:
    """All spans of a run."""

    tokens: int
    """As the backend adds them up."""
    cost_usd: float
    """As the backend adds it up."""
    session: str | None
    user: str | None
    failed: bool
    spans: tuple[SeenSpan, ...]

    @property
    def root(self) -> SeenSpan:
        """The one span that has no parent."""
        (root,) = [span for span in self.spans if span.parent_id is None]
        return root

    def of(self, kind: str) -> list[SeenSpan]:
        """Return the spans of this kind, in the order in which they began."""
        return sorted((span for span in self.spans if span.kind == kind), key=lambda span: span.start)

    def tree(self) -> list[str]:
        """Return a line for each span, below its parent and as far to the right as it is deep."""
        below: dict[str | None, list[SeenSpan]] = {}
        for span in sorted(self.spans, key=lambda span: (span.start, span.name)):
            below.setdefault(span.parent_id, []).append(span)
        return list(_lines(below, None, ""))


def _lines(below: dict[str | None, list[SeenSpan]], parent: str | None, indent: str) -> Any:
    for span in below.get(parent, ()):
        yield f"{indent}{span.kind} {span.name}" + (f" ! {span.error}" if span.error else "")
        yield from _lines(below, span.span_id, f"{indent}  ")
