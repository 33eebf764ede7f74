"""A debrief as Markdown, for an issue or a report. Text of the trace stays text: no link, no image, no HTML, no code."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from playhead.diagnose.debrief_facts import LAST_WORDS
from playhead.diagnose.debrief_strategy_view import curator_rows, healed_rows, is_review, strategy_lines
from playhead.diagnose.terminal import escape
from playhead.diagnose.tokens import cost_text, pair_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from playhead.diagnose import debrief_model as m

_SPECIAL: Final = re.compile(r"[\\`*_{}\[\]()<>#+!|~^$=:@&\-.]")
"""What Markdown, or one of its dialects, reads as more than a character: also bare addresses, `@names` and formulas."""

_LIST_NUMBER: Final = 12
"""Characters at the start of a line that may be the number of a list, when a space follows."""


def debrief_markdown(debrief: m.Debrief) -> str:
    """Return the debrief as a Markdown document."""
    lines = [f"# Debrief of run {_text(debrief.run_id)}", ""]
    for title, body in _sections(debrief):
        rows = list(body)
        if rows:
            lines += [f"## {title}", "", *rows, ""]
    return "\n".join(lines)


def _sections(debrief: m.Debrief) -> Iterator[tuple[str, Iterable[str]]]:
    yield "Summary", _summary(debrief)
    yield (
        "Key Findings",
        _items(
            f"{_at(each)} {_text(each.source.replace(':', ' '))}: {_text(each.text)}" for each in debrief.key_findings
        ),
    )
    for title, rows in strategy_lines(debrief):
        yield title, _items(_text(f"{lead}{told}") for _, lead, told, _ in rows)
    yield "Path", _items(_step(each) for each in debrief.path)
    yield "Tools Used", _tools(debrief)
    yield "Metrics", _metrics(debrief.metrics)
    yield "Decision Rationale", _decisions(debrief)
    yield "Assumptions", _items(_assumption(each) for each in debrief.assumptions)
    yield (
        "Alternatives",
        _items(
            f"{_at(each)} {_text(each.decision)}, not {_text(each.option)}: {_text(each.rejected_because)}"
            for each in debrief.alternatives
        ),
    )
    yield (
        "Curator",
        _items(_text(f"{lead}{told}") for _, lead, told, _ in curator_rows(debrief)),
    )
    yield (
        "Steering",
        _items(
            f"{_at(each)} {_text(each.who)} {_text(each.what)}{_because(each.why)}"
            for each in debrief.steering
            if not is_review(each)
        ),
    )
    yield (
        "Healed calls",
        _items(_text(f"{lead}{told}") for _, lead, told, _ in healed_rows(debrief)),
    )
    yield (
        "Errors",
        _items(
            f"{_at(each)} {_text(each.where.replace(':', ' '))}: {_text(each.type)}: {_text(each.message)} ({each.count} times)"
            for each in debrief.errors
        ),
    )
    yield "Lessons", _items(_text(each.text) for each in debrief.lessons)
    yield "Flags", _flags(debrief)
    yield "Ending", _ending(debrief)
    yield "Caveats", _items(map(_text, debrief.caveats))


def _summary(debrief: m.Debrief) -> Iterator[str]:
    yield _text(debrief.summary)
    yield ""
    basis = "; ".join(map(_text, debrief.confidence_basis))
    what = "Agent's claim: **success**" if debrief.outcome == "success" else f"Outcome: **{debrief.outcome}**"
    yield f"{what}, support in the trace **{debrief.confidence}**: {basis}"


def _tools(debrief: m.Debrief) -> Iterator[str]:
    if not debrief.tools_used:
        yield "None."
        return
    yield "| tool | calls | succeeded | total ms |"
    yield "|---|--:|--:|--:|"
    for each in debrief.tools_used:
        own = " (the kernel's own)" if each.name in LAST_WORDS else ""
        yield f"| {_text(each.name)}{own} | {each.calls} | {each.succeeded} | {each.total_ms:.1f} |"


def _metrics(metrics: m.Metrics) -> Iterator[str]:
    cost = cost_text(metrics.cost_usd, metrics.cost_unknown) or "not known"
    yield "| metric | value |"
    yield "|---|--:|"
    tokens = pair_text(metrics.tokens_in, metrics.tokens_out, metrics.usage_unknown, "{}, {}")
    yield f"| tokens in, out | {tokens or 'not known'} |"
    yield f"| duration | {metrics.duration_ms:,.0f} ms |"
    yield f"| turns | {metrics.iterations:,} |"
    yield f"| model calls, failed | {metrics.model_calls:,}, {metrics.model_failures:,} |"
    yield f"| calls of functions and agents, failed | {metrics.tool_calls:,}, {metrics.tool_failures:,} |"
    yield f"| reasons stated, expected | {metrics.reasons_stated:,}, {metrics.reasons_expected:,} |"
    yield f"| cost | {cost} |"


def _decisions(debrief: m.Debrief) -> Iterator[str]:
    rows = list(_items(_decision(each) for each in debrief.rationale if each.by != "curator"))
    yield from rows or ["No decision came with a stated reason."]


def _decision(each: m.Decision) -> str:
    tool = f" {_text(each.tool_name)}" if each.tool_name else ""
    refs = f" (refs: {_text(', '.join(each.rationale.refs))})" if each.rationale.refs else ""
    return f"{_at(each)} {_text(each.decision)}{tool}, by the {each.by}: {_text(each.rationale.why)}{refs}{_sure(each.rationale)}"


def _step(each: m.PathStep) -> str:
    outcome = {True: "", False: ": failed", None: ": no result in the file"}[each.ok]
    note = f" ({_text(each.note)})" if each.note else ""
    return f"{_at(each)} {_text(each.action.replace(':', ' '))}{outcome}{note}"


def _assumption(each: m.Assumption) -> str:
    why = f": {_text(each.rationale.why)}{_sure(each.rationale)}" if each.rationale else ""
    return f"{_at(each)} {_text(each.assumption)}{why}"


def _flags(debrief: m.Debrief) -> Iterator[str]:
    for each in debrief.flags:
        events = ", ".join(map(str, each.seqs))
        yield f"- **{each.severity}** {_text(each.rule)}, {_text(each.owner)}: {_text(each.text)} (event {events})"


def _ending(debrief: m.Debrief) -> Iterator[str]:
    ended = debrief.termination
    if ended is None:
        yield "The trace has no end."
    else:
        yield f"{_text(ended.by)}, by {_text(ended.source)}: {_text(ended.meaning)}"
        yield from (f"\n{_text(said)}" for said in (ended.because, ended.error) if said)
        if ended.rationale:
            yield f"\n{_text(ended.rationale.why)}"
    yield ""
    yield _text(debrief.claim)


def _items(texts: Iterable[str]) -> Iterator[str]:
    return (f"- {text}" for text in texts)


def _because(why: str | None) -> str:
    return f": {_text(why)}" if why else ""


def _sure(reason: m.Reason) -> str:
    return "" if reason.confidence is None else f" (confidence {reason.confidence:.2f})"


def _at(each: m.PathStep | m.Decision | m.Finding | m.ErrorSeen | m.Assumption | m.RejectedOption | m.Steering) -> str:
    who = "" if each.owner == "root" else f", {_text(each.owner)}"
    return f"(event {each.seq}{who})"


def _text(text: str) -> str:
    """Return text of the trace as one line that means itself in Markdown and in HTML."""
    return _SPECIAL.sub(_as_itself, escape(" ".join(text.split())))


def _as_itself(match: re.Match[str]) -> str:
    """Return a character as an entity, the one escape that also holds inside HTML."""
    text, place, end = match.string, match.start(), match.end()
    before, after = text[max(place - 1, 0) : place], text[end : end + 1]
    if _is_plain(match[0], before, after) and not (after in {"", " "} and text[: min(place, _LIST_NUMBER)].isdecimal()):
        return match[0]
    if match[0] == "|":  # in a cell and in prose alike, and easier to read; no backslash of the text's own is left
        return "\\|"
    # `@name` and `#1` are looked for in the finished page, so something that nobody sees has to part them.
    joiner = "&#8288;" if match[0] in "@#" and after.isalnum() else ""
    return f"&#{ord(match[0])};{joiner}"


def _is_plain(character: str, before: str, after: str) -> bool:
    """Return whether it is only punctuation where it stands: after a word, inside a name, in a number."""
    if character in "()=":
        return before != ""
    if character in "-_":
        return before.isalnum() and after.isalnum()
    if character in ".:":
        return before.isalnum() and (after in {"", " ", ")", '"'} or (before.isdecimal() and after.isdecimal()))
    return False
