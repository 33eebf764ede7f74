"""What a replay can do with an imported run, and why no more."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from playhead.importing.agents import played
from playhead.importing.headers import is_hidden
from playhead.importing.readings import REDACTED
from playhead.importing.truncation import attribute_limit, is_cut
from playhead.trace.types import text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from playhead.importing.agents import ModelItem, Sorted, Work
    from playhead.importing.findings import Findings
    from playhead.importing.tree import Tree
    from playhead.trace.imported import Replayability
    from playhead.trace.types import Content

_NAMED: Final = 5
"""Tools that a reason names."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a replay can do with a run."""

    replayability: Replayability
    reasons: tuple[str, ...]
    notes: tuple[str, ...]


def report_of(tree: Tree, found: Sorted, findings: Findings) -> Report:
    """Return the report of a converted trace."""
    limit = attribute_limit(tree.spans.values())
    missing = tuple(_missing(found, findings, limit))
    unsure = tuple(_unsure(found, findings, limit))
    level: Replayability = "not" if missing else "tools-only" if unsure else "full"
    return Report(level, missing + unsure, tuple(_notes(tree, found, findings, limit)))


def _missing(found: Sorted, findings: Findings, limit: int | None) -> Iterator[str]:
    """Yield why there can be no replay at all."""
    if not any(work.models for work in played(found.root)):
        yield "no span is a model call, so there is nothing to ask again"
    if findings.unanswered:
        yield f"calls have no tool result: {named(findings.unanswered)}"
    if findings.without_arguments:
        yield f"calls have no arguments: {named(findings.without_arguments)}"
    hidden = [name for name, held in findings.held if held == REDACTED]
    if hidden:
        yield f"arguments or results are hidden ({REDACTED}): {named(hidden)}"
    cut = [name for name, held in findings.held if is_cut(held, limit)]
    if cut:
        yield f"arguments or results are truncated: {named(cut)}"


def _unsure(found: Sorted, findings: Findings, limit: int | None) -> Iterator[str]:
    """Yield why nothing can be concluded from a replay."""
    models = [item for work in played(found.root) for item in work.models]
    if any(item.reading.messages is None for item in models):
        yield "prompts are not in the spans: content was not captured"
    begun = [each for each in findings.begun if each.header.system_prompt is not None or not each.task_known]
    if any(not each.task_known for each in begun):
        yield "the task is not in the spans"
    if any(each.goes_on for each in begun):
        yield "a first prompt goes on after the user's message, which a replay does not"
    first = [text for each in begun for text in (each.header.system_prompt, text_of(each.task)) if text]
    if any(is_hidden(text) for text in first) or any(map(_is_hidden_somewhere, models)):
        yield f"prompts or answers are hidden ({REDACTED})"
    if any(is_cut(text, limit) for text in first):
        yield "the system prompt or the task is truncated"
    if findings.guessed:
        yield f"what the model was told of its tools is not in the spans, only how it called them: {named(findings.guessed)}"
    if findings.last_asked:
        yield f"the last answer asks for calls of which the spans show no run: {named(findings.last_asked)}"


def _is_hidden_somewhere(item: ModelItem) -> bool:
    said = [item.reading.answer] if item.reading.answer else []
    return any(is_hidden(each.content) for each in (*said, *(item.reading.messages or ())))


def _notes(tree: Tree, found: Sorted, findings: Findings, limit: int | None) -> Iterator[str]:
    """Yield what else a reader has to know."""
    counts = findings.counts
    if findings.unoffered:
        yield "the prompts do not say which tools they offer: those that were called are taken"
    if counts["matched by arguments"]:
        yield f"tool spans that do not name their call, and were matched by name and arguments: {counts['matched by arguments']:,}"
    if counts["matched by order"]:
        yield f"tool spans that were matched to calls of their name in order alone: {counts['matched by order']:,}"
    yield from (f"{what}: {count:,}" for what, count in counts.items() if count and not what.startswith("matched by "))
    yield from _of_agents(found.root)
    if limit is not None and any(is_cut(text, limit) for text in _texts(found)):
        yield f"prompts or answers are truncated, as it seems at {limit:,} characters"
    yield from (f"{what}: {count:,}" for what, count in _of_spans(tree, found).items() if count)


def _of_agents(root: Work) -> Iterator[str]:
    for work in played(root):
        names = list(dict.fromkeys(each.reading.name or each.span.name for each in work.agents if each.asks))
        if len(names) > 1:
            yield f"agents that took turns stand as one, with one thread: {named(names)}"


def _texts(found: Sorted) -> Iterator[str]:
    contents: Iterator[Content] = (
        message.content
        for work in played(found.root)
        for item in work.models
        for message in (*(item.reading.messages or ()), *([item.reading.answer] if item.reading.answer else ()))
    )
    yield from map(text_of, contents)


def _of_spans(tree: Tree, found: Sorted) -> dict[str, int]:
    return {
        "spans that tell of no agent, model call or tool call, and are left out": found.left_out,
        "spans of a second instrumentation that tell of the same calls, and were put together": found.doubled,
        "spans that are nested too deep, and are left out": found.too_deep,
        "spans that came twice": tree.repeated,
        "spans whose parent is not there": tree.orphans,
        "spans that are their own ancestors, and were cut loose": tree.cycles,
        "spans that had not ended": sum(span.end_ns is None for span in tree.spans.values()),
        "attributes or events that the program's SDK dropped": sum(span.dropped for span in tree.spans.values()),
    }


def named(names: Sequence[str] | Iterable[str]) -> str:
    """Return names, each with how often it comes, the first few of them."""
    counted = Counter(names)
    shown = [f"{name} ({count} times)" if count > 1 else name for name, count in list(counted.items())[:_NAMED]]
    return ", ".join(shown) + (f", … {len(counted) - _NAMED} more" if len(counted) > _NAMED else "")
