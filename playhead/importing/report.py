"""What a replay can do with an imported run, and why no more."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from playhead.importing.agents import played
from playhead.importing.hiding import is_hidden_content, is_hidden_message
from playhead.importing.readings import REDACTED
from playhead.importing.requests_that_differ import (
    in_words,
    not_offered,
    other_models,
    other_order,
    other_parameters,
    other_tools,
    silent,
    without_object,
)
from playhead.importing.truncation import breaks_off, stops_at_usual_count
from playhead.trace.types import text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from playhead.importing.agents import ModelItem, Sorted, Work
    from playhead.importing.findings import Findings
    from playhead.importing.headers import Beginning
    from playhead.importing.tree import Tree
    from playhead.trace.imported import Replayability
    from playhead.trace.types import Content

_NOT_FROM_SPANS: Final = {"code-action": "its programs run outside of the spans"}
"""Strategies whose runs spans do not hold whole, and why."""
LINES: Final = (
    "from opentelemetry import trace; "
    'agent = {"openinference.span.kind": "AGENT"}; '
    'with trace.get_tracer("agent").start_as_current_span("agent", attributes=agent): …'
)
"""What makes a program's spans those of an agent."""
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
    missing = tuple(_missing(found, findings))
    is_own = bool(findings.begun) and all(each.own is not None for each in findings.begun)
    unsure = (
        *_parts(tree, found, findings),
        *_unsure(found, findings),
        *_prompts(findings),
        *(_of_own_runs(findings) if is_own else _of_other_programs(found, findings)),
        *_doubts(found, findings),
    )
    level: Replayability = "not" if missing else "tools-only" if unsure else "full"
    return Report(level, missing + unsure, tuple(_notes(tree, found, findings, is_full=level == "full")))


def _missing(found: Sorted, findings: Findings) -> Iterator[str]:
    """Yield why there can be no replay at all."""
    if not any(work.models for work in played(found.root)):
        yield "no span is a model call, so there is nothing to ask again"
    if findings.unanswered:
        yield f"calls have no tool result: {named(findings.unanswered)}"
    if findings.without_arguments:
        yield f"calls have no arguments: {named(findings.without_arguments)}"
    hidden = [name for name, _, is_hidden_value in findings.held if is_hidden_value]
    if hidden:
        yield f"arguments or results are hidden ({REDACTED}): {named(hidden)}"
    cut = [name for name, how, _ in findings.held if how == "cut"]
    if cut:
        yield f"arguments or results are truncated: {named(cut)}"


def _of_other_programs(found: Sorted, findings: Findings) -> Iterator[str]:
    """Yield where the loop of another program did not do what a replay's plain loop does."""
    if findings.missing:
        yield f"model calls are missing: prompts hold {findings.missing:,} calls that no span of a model call asked for"
    if findings.without_call:
        yield f"tool spans name calls that no span of a model call asked for: {named(findings.without_call)}"
    if findings.turns:
        yield f"agents take turns with prompts of their own, and a replay has one agent alone: {named(findings.turns)}"
    if findings.continued:
        yield f"the run goes on after an answer that calls no tool, where a replay ends: {findings.continued:,} times"
    yield from _otherwise(findings)
    yield from _differing(found)
    yield from dict.fromkeys(findings.endings)


def _of_own_runs(findings: Findings) -> Iterator[str]:
    """Yield what a run of Playhead's own depended on that its spans do not hold: else the same loop does the same again."""
    for begun in findings.begun:
        own, header = begun.own, begun.header
        if own is not None and (begun.requests, begun.calls) != (own.requests, own.calls):
            yield (
                f"spans are missing: {header.name} made {own.requests:,} model calls and {own.calls:,} tool calls, "
                f"and the spans hold {begun.requests:,} and {begun.calls:,}"
            )
        if own is not None and own.decided:
            yield f"what else steered {header.name} is not in the spans: {named(own.decided)}"
        if header.strategy in _NOT_FROM_SPANS:
            yield f"the strategy {header.strategy} cannot be replayed from spans: {_NOT_FROM_SPANS[header.strategy]}"


def _parts(tree: Tree, found: Sorted, findings: Findings) -> Iterator[str]:
    """Yield what shows that spans of the run are missing, or are not of one agent."""
    if not found.is_whole:
        loose = sum(root.parent_id is not None for root, _ in found.tops)
        yield f"the run may not be whole: {loose:,} of its spans are below parents that are not there"
    if (going := _not_ended(found)) and findings.begun:
        yield f"the run may not be whole: {going:,} of its spans had not ended, or do not say when"
    if tree.conflicting:
        yield f"the run may not be whole: {tree.conflicting:,} spans have the id of another one"
    if timeless := sum(not item.span.start_ns for work in played(found.root) for item in work.items):
        yield f"the order of the run is not known: {timeless:,} of its spans do not say when they began"
    if findings.unordered:
        yield f"the order of model calls that began at the same moment is not known: {findings.unordered:,}"


def _unsure(found: Sorted, findings: Findings) -> Iterator[str]:
    """Yield which prompts or tools are not wholly known."""
    models = [item for work in played(found.root) for item in work.models]
    if any(item.reading.messages is None for item in models):
        yield "prompts are not in the spans: content was not captured"
    if findings.unknown_messages:
        yield f"messages of prompts are in the spans without their content: {findings.unknown_messages:,}"
    if findings.unknown_answers:
        yield f"answers of the model are not in the spans: {findings.unknown_answers:,}"
    begun = _begun(findings)
    if any(not each.task_known for each in begun):
        yield "the task is not in the spans"
    if any(each.task_known and not each.task for each in findings.begun):
        yield "the task is empty, which a replay refuses"
    if any(each.goes_on for each in begun):
        yield "a first prompt goes on after the user's message, which a replay does not"
    if any(map(_is_hidden_at_first, _begun(findings))) or any(map(_is_hidden_somewhere, models)):
        yield f"prompts or answers are hidden ({REDACTED})"
    if findings.guessed:
        yield f"what the model was told of its tools is not in the spans, only how it called them: {named(findings.guessed)}"
    if findings.last_asked:
        yield f"the last answer asks for calls of which the spans show no run: {named(findings.last_asked)}"


def _prompts(findings: Findings) -> Iterator[str]:
    """Yield what prompts hold that the spans do not, or a recording cannot."""
    if findings.unseen:
        yield f"messages that prompts had and do not show: {findings.unseen:,}"
    if findings.images_left_out:
        yield f"images of prompts were left out of the spans: {findings.images_left_out:,}"
    if findings.lost:
        kinds = ", ".join(f"{kind} ({count:,})" for kind, count in findings.lost.most_common(_NAMED))
        yield f"prompts hold what is neither text nor image, which a replay cannot send: {kinds}"


def _otherwise(findings: Findings) -> Iterator[str]:
    """Yield what was otherwise than a replay makes it."""
    if findings.rewritten:
        yield f"prompts do not go on from the one before, as those of a replay do: {findings.rewritten:,}"
    if findings.otherwise:
        yield (
            "prompts go on with something else than the answer before and the results of its calls, which a replay does "
            f"not send: {findings.otherwise:,}"
        )
    if findings.told_otherwise:
        yield f"later prompts show other results than the tools' spans: {named(findings.told_otherwise)}"
    if findings.said_otherwise:
        yield f"what the agents said that calls entered is not what the calls returned: {named(findings.said_otherwise)}"
    if findings.ran_otherwise:
        yield f"calls ran with other arguments than the model gave: {named(findings.ran_otherwise)}"
    if findings.renamed:
        yield f"calls ran under other names than the model gave: {named(findings.renamed)}"


def _differing(found: Sorted) -> Iterator[str]:
    """Yield what is not the same in all requests of an agent, as it is in a replay."""
    works = list(played(found.root))
    tools = [other_tools(work) for work in works]
    if others := [name for offered, _ in tools for name in offered]:
        yield f"the model was offered other tools in some requests: {named(others)}"
    if described := [name for _, ways in tools for name in ways]:
        yield f"the model was told of tools in other words in some requests: {named(described)}"
    if order := sum(map(other_order, works)):
        yield f"the model was offered its tools in another order in some requests: {order:,}"
    if unknown := [name for work in works for name in not_offered(work)]:
        yield f"calls of tools that no request offered, which a replay answers in its own words: {named(unknown)}"
    if unread := [name for work in works for name in without_object(work)]:
        yield f"calls whose arguments are no JSON object, which a replay answers in its own words: {named(unread)}"
    if parameters := [name for work in works for name in other_parameters(work)]:
        yield f"some requests had other parameters than the first: {named(parameters)}"
    if models := [name for work in works for name in other_models(work)]:
        yield f"the requests of an agent went to several models: {named(models)}"
    if told := sum(map(in_words, works)):
        yield f"prompts tell of calls or their results in words, where a replay has messages of their own: {told:,}"


def _doubts(found: Sorted, findings: Findings) -> Iterator[str]:
    """Yield what may be otherwise than it was taken for."""
    if findings.doubtful:
        yield f"which span answers which call is not certain: {named(findings.doubtful)}"
    cuts = {findings.lengths.cut(text, is_prompt=True) for text in _first_texts(findings)}
    if "cut" in cuts:
        yield "the system prompt or the task is truncated"
    elif "doubt" in cuts:
        yield "the system prompt or the task may be truncated"
    doubtful = [name for name, how, _ in findings.held if how == "doubt"]
    if doubtful:
        yield f"arguments or results may be truncated, as they end: {named(doubtful)}"
    unread = [item.span for work in played(found.root) for item in work.models if _lacks(item)]
    if broken := sum(
        isinstance(text, str) and breaks_off(text) for span in unread for text in span.attributes.values()
    ):
        yield f"attributes of model calls are cut off, and so cannot be read: {broken:,}"
    spans = [item.span for work in played(found.root) for item in work.items]
    if dropped := sum(span.dropped for span in spans):
        yield f"the program's SDK dropped attributes or events of model and tool calls: {dropped:,}"
    elif stops_at_usual_count(spans):
        yield "the program's SDK may have dropped attributes: several spans have as many as it takes by default"


def _lacks(item: ModelItem) -> bool:
    return item.reading.messages is None or item.reading.answer is None


def _begun(findings: Findings) -> list[Beginning]:
    return [each for each in findings.begun if each.header.system_prompt is not None or not each.task_known]


def _first_texts(findings: Findings) -> list[str]:
    """Return system prompts and tasks."""
    each_of = ((each.header.system_prompt, text_of(each.task)) for each in _begun(findings))
    return [text for texts in each_of for text in texts if text]


def _not_ended(found: Sorted) -> int:
    """Return how many spans of agents, their model calls and their tools had not ended."""
    all_of = (each.span for work in played(found.root) for each in (*work.items, *work.agents))
    return len({span.span_id for span in all_of if span.end_ns is None})


def _is_hidden_somewhere(item: ModelItem) -> bool:
    said = [item.reading.answer] if item.reading.answer else []
    return any(map(is_hidden_message, (*said, *(item.reading.messages or ()))))


def _is_hidden_at_first(begun: Beginning) -> bool:
    return is_hidden_content(begun.task) or is_hidden_content(begun.header.system_prompt or "")


def _notes(tree: Tree, found: Sorted, findings: Findings, *, is_full: bool) -> Iterator[str]:
    """Yield what else a reader has to know."""
    counts = findings.counts
    yield from _advice(found, findings, is_full=is_full)
    if findings.unoffered:
        yield "the prompts do not say which tools they offer: those that were called are taken"
    if counts["matched by arguments"]:
        yield f"tool spans that do not name their call, and were matched by name and arguments: {counts['matched by arguments']:,}"
    if counts["matched by result"]:
        yield f"tool spans that were matched to calls of their name by the result in a later prompt: {counts['matched by result']:,}"
    if counts["matched by order"]:
        yield f"tool spans that were matched to calls of their name in order alone: {counts['matched by order']:,}"
    yield from (f"{what}: {count:,}" for what, count in counts.items() if count and not what.startswith("matched by "))
    if found.is_whole and any(root.parent_id is not None for root, _ in found.tops):
        yield "the outermost agent is below a parent that is not there: what else that did is not known"
    if quiet := sum(map(silent, played(found.root))):
        yield f"requests that do not say which tools or parameters they had, where others do: {quiet:,}"
    yield from _of_agents(found.root)
    limit = findings.lengths.limit
    if limit is not None and any(len(text) == limit for text in _texts(found)):
        yield f"prompts or answers are truncated, as it seems at {limit:,} characters"
    yield from (f"{what}: {count:,}" for what, count in _of_spans(tree, found).items() if count)


def _advice(found: Sorted, findings: Findings, *, is_full: bool) -> Iterator[str]:
    """Yield what the reader can do."""
    if not is_full and all(kind != "agent" for _, kind in found.tops):
        yield f"no span is an agent's. Around the whole program these lines make its spans one run of one agent: {LINES}"
    if unrecorded := {name: 1 for item in found.root.models for name in item.reading.unrecorded}:
        yield f"request parameters that the recording does not hold (a replay takes them by --set): {named(list(unrecorded))}"
    if findings.not_there:
        yield f"tools that were called read-only, and that no agent of the run has: {named(findings.not_there)}"


def _of_agents(root: Work) -> Iterator[str]:
    for work in played(root):
        names = [each.reading.name or each.span.name for each in work.agents if each.asks]
        if len(names) > 1:
            yield f"spans of agents that stand as one, with one thread: {named(names)}"


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
        "texts with half a character (a lone surrogate), which � replaces": tree.halves,
        "spans that are their own ancestors, and were cut loose": tree.cycles,
        "spans that had not ended": sum(span.end_ns is None for span in tree.spans.values()),
        "attributes or events that the program's SDK dropped": sum(span.dropped for span in tree.spans.values()),
    }


def named(names: Sequence[str] | Iterable[str]) -> str:
    """Return names, each with how often it comes, the first few of them."""
    counted = Counter(names)
    shown = [f"{name} ({count} times)" if count > 1 else name for name, count in list(counted.items())[:_NAMED]]
    return ", ".join(shown) + (f", … {len(counted) - _NAMED} more" if len(counted) > _NAMED else "")
