"""The spans of one trace as a tree, whatever they say of their parents."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from playhead.importing.spans import ForeignSpan

INTERRUPTED: Final = "playhead.interrupted"
"""What marks a span of ours whose end is only that of its recording."""


@dataclass
class Tree:
    """The spans of one trace; children stand in the order in which they began."""

    roots: list[ForeignSpan] = field(default_factory=list)
    children: dict[str, list[ForeignSpan]] = field(default_factory=dict)
    spans: dict[str, ForeignSpan] = field(default_factory=dict)
    repeated: int = 0
    """Spans that came again with the same id: the one that had ended, or says more, counts."""
    conflicting: int = 0
    """Those among them that are other spans, of the same id."""
    orphans: int = 0
    """Spans whose parent is not there; they count as roots."""
    cycles: int = 0
    """Spans that are their own ancestors; they count as roots."""

    def below(self, span: ForeignSpan) -> list[ForeignSpan]:
        """Return a span's children."""
        return self.children.get(span.span_id, [])


def make_tree(spans: Iterable[ForeignSpan]) -> Tree:
    """Return the tree of the spans of one trace, in time linear in their number."""
    tree = Tree()
    for span in map(_as_it_ended, spans):
        known = tree.spans.get(span.span_id)
        tree.repeated += known is not None
        tree.conflicting += known is not None and _is_another(span, known)
        if known is None or _says_more(span, known):
            tree.spans[span.span_id] = span
    in_circles = _in_circles(tree.spans)
    for span in sorted(tree.spans.values(), key=lambda span: (span.start_ns, -(span.end_ns or 0), span.span_id)):
        if span.span_id in in_circles:
            tree.cycles += 1
            tree.roots.append(span)
        elif span.parent_id in tree.spans:
            tree.children.setdefault(span.parent_id or "", []).append(span)
        else:
            tree.orphans += span.parent_id is not None
            tree.roots.append(span)
    return tree


def _as_it_ended(span: ForeignSpan) -> ForeignSpan:
    """Return the span; without an end and an error when it was still under way as its recording broke off."""
    if span.attributes.get(INTERRUPTED) not in (True, "true"):
        return span
    return replace(span, end_ns=None, status="unset", message="")


def _is_another(span: ForeignSpan, known: ForeignSpan) -> bool:
    return (span.start_ns, span.name, span.parent_id) != (known.start_ns, known.name, known.parent_id)


def _says_more(span: ForeignSpan, known: ForeignSpan) -> bool:
    return (span.end_ns is not None, len(span.attributes)) > (known.end_ns is not None, len(known.attributes))


def _in_circles(spans: dict[str, ForeignSpan]) -> set[str]:
    """Return one span of each circle of parents: cut there, the others hang below it."""
    cut: set[str] = set()
    seen: dict[str, int] = {}
    for number, start in enumerate(spans):
        at: str | None = start
        while at is not None and at in spans and at not in seen:
            seen[at] = number
            at = spans[at].parent_id
        if at is not None and seen.get(at) == number:
            cut.add(at)
    return cut
