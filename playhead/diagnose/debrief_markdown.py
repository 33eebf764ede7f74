"""A debrief as Markdown, for an issue or a report. Text of the trace stays text: no link, no image, no HTML, no code."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from playhead.diagnose.debrief_facts import LAST_WORDS
from playhead.diagnose.debrief_view import last_lines, sections
from playhead.diagnose.terminal import escape
from playhead.diagnose.tokens import cost_text, pair_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from playhead.diagnose import debrief_model as m

_SPECIAL: Final = re.compile(r"[\\`*_{}\[\]()<>#+!|~^$=:@&\-.]")
"""What Markdown, or one of its dialects, reads as more than a character: also bare addresses, `@names` and formulas."""

_TITLES: Final = {"Why this path": "Decision Rationale"}
"""Sections that have a name of their own here."""
_LIST_NUMBER: Final = 12
"""Characters at the start of a line that may be the number of a list, when a space follows."""


def debrief_markdown(debrief: m.Debrief) -> str:
    """Return the debrief as a Markdown document: what is printed, with the findings and figures that reviews want."""
    lines = [f"# Debrief of run {_text(debrief.run_id)}", ""]
    for title, rows in _sections(debrief):
        body = list(rows)
        if body:
            lines += [f"## {title}", "", *body, ""]
    return "\n".join(lines)


def _sections(debrief: m.Debrief) -> Iterator[tuple[str, Iterable[str]]]:
    yield "Summary", [_text(debrief.summary), "", _text(debrief.claim)]
    yield (
        "Key Findings",
        (
            f"- (event {each.seq}) {_text(each.source.replace(':', ' '))}: {_text(each.text)}"
            for each in debrief.key_findings
        ),
    )
    yield "Tools Used", _tools(debrief)
    yield "Metrics", _metrics(debrief.metrics)
    for title, rows in sections(debrief):
        yield _TITLES.get(title, title), (f"- {_text(lead + text)}" for _, lead, text, _ in rows)
    yield "Ending", (f"- {_text(lead + text)}" for _, lead, text, _ in last_lines(debrief))


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
