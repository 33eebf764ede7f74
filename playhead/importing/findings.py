"""How far an imported run can be replayed, and why no further: `full` requires that the spans contain everything.

Anything that is missing, cannot be compared, or differs from a replay's behaviour lowers the level; nothing is guessed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final, Literal

from playhead.importing.agents import works

if TYPE_CHECKING:
    from playhead.importing.agents import Sorted, Tree
    from playhead.trace.header import Replayability

_Weight = Literal["missing", "doubt", "note"]
REDACTED: Final = "__REDACTED__"
"""The text with which OpenInference replaces hidden content."""
_MAX_NAMES: Final = 5
"""Names that a reason shows."""
_SHORTEST_LIMIT: Final = 64
"""Characters; programs do not truncate texts to fewer than this."""


class Findings:
    """Findings of a conversion: sentences, each with names or a count."""

    def __init__(self) -> None:
        self._found: dict[tuple[_Weight, str], Counter[str]] = defaultdict(Counter)

    def missing(self, what: str, name: str = "") -> None:
        """Add a reason that makes a replay impossible."""
        self._found["missing", what][name] += 1

    def doubt(self, what: str, name: str = "", times: int = 1) -> None:
        """Add a reason that makes a replay inconclusive."""
        if times:
            self._found["doubt", what][name] += times

    def note(self, what: str, name: str = "", times: int = 1) -> None:
        """Add other information for the reader."""
        if times:
            self._found["note", what][name] += times

    @property
    def level(self) -> Replayability:
        """How far the run can be replayed."""
        weights = {weight for weight, _ in self._found}
        return "not" if "missing" in weights else "tools-only" if "doubt" in weights else "full"

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it cannot be replayed further."""
        return (*self._sentences("missing"), *self._sentences("doubt"))

    @property
    def notes(self) -> tuple[str, ...]:
        """Other information for the reader."""
        return self._sentences("note")

    def _sentences(self, weight: _Weight) -> tuple[str, ...]:
        return tuple(_sentence(what, names) for (each, what), names in self._found.items() if each == weight)


def look_at_spans(tree: Tree, found: Sorted, findings: Findings) -> None:
    """Find the parts of the trace that are missing or were left out."""
    replayed = works(found.root, replayed=True)
    spans = {each.span.span_id: each.span for work in replayed for each in (*work.items, *work.agents)}.values()
    if not any(work.models for work in replayed):
        findings.missing("no span is a model call, so there is nothing to replay")
    for span in spans:
        if REDACTED in repr(span.attributes):
            findings.missing("content of spans is hidden", span.name)
    whole = "the run may be incomplete: spans"
    doubts = {
        f"{whole} have parents that are missing": 0 if found.is_whole else found.loose,
        f"{whole} have no end time": sum(span.end_ns is None for span in spans),
        f"{whole} share an id with another one": tree.conflicting,
        f"{whole} are their own ancestors, and are left out": tree.in_circles,
        f"{whole} are nested too deep, and are left out": found.too_deep,
        "the order of the run is not known: spans have no start time": sum(not span.start_ns for span in spans),
        "the program's SDK dropped attributes or events of spans": sum(span.dropped for span in spans),
        "texts may be truncated: several have the same greatest length, as under a limit on attributes": _longest_texts(
            tree
        ),
    }
    notes = {
        "spans that are not agents, model calls or tool calls, and are left out": found.left_out,
        "spans of a second instrumentation for the same calls, which are left out": found.doubled,
        "the outermost agent is below a parent that is missing: what else that did is not known": (
            found.loose if found.is_whole else 0
        ),
    }
    for what, times in doubts.items():
        findings.doubt(what, times=times)
    for what, times in notes.items():
        findings.note(what, times=times)
    if findings.level != "full" and all(kind != "agent" for _, kind in found.tops):
        findings.note("no span is an agent's: the guide to importing has the lines that make a program's spans one run")


def _longest_texts(tree: Tree) -> int:
    """Return how many different texts share the greatest length, if there are several."""
    attributes = (span.attributes.values() for span in tree.spans.values())
    texts = {text for values in attributes for text in values if isinstance(text, str) and len(text) >= _SHORTEST_LIMIT}
    lengths = Counter(map(len, texts))
    count = lengths[max(lengths, default=0)]
    return count if count > 1 else 0


def _sentence(what: str, names: Counter[str]) -> str:
    if set(names) == {""}:
        return f"{what}: {names['']:,}"
    shown = [f"{name} ({count} times)" if count > 1 else name for name, count in list(names.items())[:_MAX_NAMES]]
    more = len(names) - len(shown)
    return ", ".join([f"{what}: {shown[0]}", *shown[1:], *([f"… {more} more"] if more else [])])
