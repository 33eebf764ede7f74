"""How the model calls of an agent follow one another, and whether a replay would make them follow so."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.importing.agents import ModelItem, Work
    from playhead.importing.findings import Findings
    from playhead.importing.readings import ForeignMessage


def look_through(work: Work, findings: Findings) -> None:
    """Find what a replay would do otherwise: where it ends, whose prompts it goes on with, and which model calls are missing."""
    models = work.models
    findings.continued += sum(map(_is_an_end, models[:-1]))
    names = {each.span.span_id: each.reading.name or each.span.name for each in work.agents}
    for before, item in pairwise(models):
        if before.agent != item.agent and not _goes_on(before, item):
            findings.turns.append(names.get(item.agent or "", "a call outside of agents"))
        findings.unordered += _at_once(before, item) and not _goes_on(before, item)
    findings.missing += _missing(models)


def _is_an_end(item: ModelItem) -> bool:
    """Tell whether a model answered without calls, where an agent of ours ends; an answer that is not known may have had some."""
    answer = item.reading.answer
    return answer is not None and item.error is None and answer.known and not answer.calls


def _at_once(before: ModelItem, item: ModelItem) -> bool:
    """Tell whether two model calls began and ended at the same moment, as far as the clock tells."""
    return (before.span.start_ns, before.span.end_ns) == (item.span.start_ns, item.span.end_ns)


def _goes_on(before: ModelItem, item: ModelItem) -> bool:
    """Tell whether a prompt is the one before and more."""
    then, now = before.reading.messages, item.reading.messages
    if then is None or now is None:
        return False
    return item.reading.cut is not None or now[: len(then)] == then


def _missing(models: list[ModelItem]) -> int:
    """Return how many calls stand in prompts, other than the first, that no model call asked for."""
    if any(item.reading.answer is None and item.error is None for item in models):
        return 0
    known = {call for item in models[:1] for call in _calls(item.reading.messages or ())}
    found = 0
    for item in models:
        there = set(_calls(item.reading.messages or ()))
        found += len(there - known)
        known |= there
        known.update(_calls([item.reading.answer] if item.reading.answer is not None else []))
    return found


def _calls(messages: list[ForeignMessage] | tuple[ForeignMessage, ...]) -> Iterator[str]:
    for message in messages:
        yield from (call.id for call in message.calls if call.id is not None)
