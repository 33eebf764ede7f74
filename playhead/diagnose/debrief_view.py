"""A debrief as text: what a stranger needs to follow a run's decisions in a minute, at 80 columns and without colour."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from playhead.diagnose.debrief_account import ANSWERS, output_kind
from playhead.diagnose.debrief_facts import LAST_WORDS
from playhead.diagnose.debrief_rows import DEEPEST, MOST, Row, indent, most, quoted, when
from playhead.diagnose.debrief_strategy_view import (
    curator_rows,
    fallback_rows,
    is_review,
    repaired_rows,
    strategy_lines,
)
from playhead.diagnose.terminal import ELLIPSIS, Line, escape

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.console import Console, ConsoleOptions, RenderResult

    from playhead.diagnose import debrief_model as m

_NARROWEST: Final = 24
_SEVERITY: Final = {"high": "bold red", "warning": "yellow", "info": "dim"}
_OUTCOME: Final = {"success": "bold green", "partial": "bold yellow", "failed": "bold red", "unknown": "bold yellow"}

_NO_FLAG: Final[Row] = (2, "", "none: no rule found anything, which proves nothing by itself", "dim")
_SHORT_ARGUMENTS: Final = 40
_TIED: Final = "\u00a0"
"""A space at which no line is broken."""
_SPACE: Final = re.compile(rf"[^\S{_TIED}]+")


@dataclass(frozen=True, slots=True)
class DebriefView:
    """A debrief for a terminal: wrapped, escaped, nothing cut without saying so."""

    debrief: m.Debrief

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the sections, in the order of a story: what was asked, what was done and why, how it ended."""
        width = max(options.max_width, _NARROWEST)
        debrief = self.debrief
        yield Line(("Debrief: run ", "bold"), (debrief.run_id or "(not known)", "bold"), whole=True)
        yield from _lines([(0, "", _origin(debrief), "dim")], width)
        for title, rows in sections(debrief):
            yield Line((title, "bold cyan"))
            yield from _lines(rows, width)
        yield from _lines(last_lines(debrief), width)


def sections(debrief: m.Debrief) -> Iterator[tuple[str, list[Row]]]:
    """Yield the title and the rows of each section that has any."""
    for title, rows in (
        ("Goal", [(2, "", debrief.goal or "(not known)", "")]),
        ("Path", list(_path(debrief))),
        *((title, most(rows)) for title, rows in strategy_lines(debrief)),
        ("Why this path", most(_why(debrief))),
        ("Assumptions", most(_assumption(each) for each in debrief.assumptions)),
        ("Alternatives considered", most(_alternative(each) for each in debrief.alternatives)),
        ("Curator", list(curator_rows(debrief))),
        ("Approvals", most(_approval(each) for each in debrief.approvals)),
        ("Hooks and limits that steered", most(_steering(each) for each in _others(debrief))),
        ("Other models", most(fallback_rows(debrief))),
        ("Repaired calls", most(repaired_rows(debrief))),
        ("Replay", list(_replay(debrief))),
        ("Errors on the way", most(_error(each) for each in debrief.errors if each.where != "run")),
        ("Learned", most((2, "- ", each.text, "") for each in debrief.lessons)),
        ("Flags: claims the trace does not support", most(_flag(each) for each in debrief.flags) or [_NO_FLAG]),
        (_output_title(debrief), [(2, "", debrief.answer, "")] if debrief.answer is not None else []),
        ("Caveats", [(2, "- ", each, "yellow") for each in debrief.caveats]),
    ):
        if rows:
            yield title, rows


def _origin(debrief: m.Debrief) -> str:
    resumed = f", continues run {debrief.resumed_from}" if debrief.resumed_from else ""
    return f"{debrief.agent} on {debrief.model}{resumed}" if debrief.agent else "an agent that the trace does not name"


def last_lines(debrief: m.Debrief) -> Iterator[Row]:
    """Yield how far the trace supports the answer, how the run ended, and what the agent claims."""
    if debrief.outcome in {"success", "partial"}:
        yield 0, "Support in the trace: ", f"{debrief.confidence} — {'; '.join(debrief.confidence_basis)}", ""
    yield _termination(debrief)
    doubted = debrief.outcome == "success" and debrief.confidence != "high"
    yield 0, "", debrief.claim, "bold yellow" if doubted else _OUTCOME[debrief.outcome]


def _output_title(debrief: m.Debrief) -> str:
    what, why = output_kind(debrief.outcome, _by(debrief))
    return f"{what.capitalize()} ({why})" if why else what.capitalize()


def _by(debrief: m.Debrief) -> str | None:
    return debrief.termination.by if debrief.termination else None


def _others(debrief: m.Debrief) -> Iterator[m.Steering]:
    """Yield what steered and stands in no section of its own."""
    return (each for each in debrief.steering if each.kind != "provider-fallback" and not is_review(each))


def _path(debrief: m.Debrief) -> Iterator[Row]:
    """Yield what each agent did, in one line of arrows: the sub-agents below the one that called them."""
    by_owner: dict[str, list[m.PathStep]] = {"root": []}
    for step in debrief.path:
        by_owner.setdefault(step.owner, []).append(step)
    names = {each.owner: each.name for each in debrief.agents}
    for owner, steps in list(by_owner.items())[:MOST]:
        depth = min(owner.count("/"), DEEPEST)
        who = "" if owner == "root" else f"{owner.rpartition('/')[2]}: "
        if owner == "root" or steps or owner in names:
            yield 2 + 2 * depth, who, _arrows(steps) or _nothing(debrief, owner), ""
    if len(by_owner) > MOST:
        yield 2, "", f"{ELLIPSIS} and {len(by_owner) - MOST} more agents (--json has all)", "dim"
    for each in debrief.agents:
        if each.owner not in by_owner and len(by_owner) <= MOST:
            yield 2 + 2 * min(each.owner.count("/"), DEEPEST), f"{each.owner.rpartition('/')[2]}: ", "did nothing", ""


def _nothing(debrief: m.Debrief, owner: str) -> str:
    """Return what an agent did that made no step: it may have given an answer that did not stand."""
    judged = any(each.owner == owner and each.answer for each in debrief.judged_answers)
    refused = owner == "root" and debrief.answer is not None and _by(debrief) in ANSWERS
    return "no call" if judged or refused else "no call, no answer"


def _arrows(steps: Sequence[m.PathStep]) -> str:
    runs: list[tuple[str, int]] = []
    for step in steps:
        text = _step(step)
        if runs and runs[-1][0] == text:
            runs[-1] = (text, runs[-1][1] + 1)
        else:
            runs.append((text, 1))
    told = [text if count == 1 else f"{text} ×{count}" for text, count in runs]  # noqa: RUF001 - a multiplication sign
    if len(told) > MOST:
        left = len(told) - MOST
        told = [*told[: MOST // 2], f"{ELLIPSIS} {left} more {ELLIPSIS}", *told[-MOST // 2 :]]
    return " → ".join(told)


def _step(step: m.PathStep) -> str:
    name = _call(step)
    if step.ok is None:
        return f"{name} (no result)"
    if not step.ok:
        return f"{name} ✗ {step.note or 'failed'}"
    return f"{name} ({step.note})" if step.note else name


def _call(step: m.PathStep) -> str:
    """Return a call as in Python; not the last one, whose arguments are the answer."""
    name = step.action.removeprefix("tool:")
    if not step.arguments or name in LAST_WORDS:
        return name
    long = len(step.arguments) > _SHORT_ARGUMENTS
    return f"{name}({step.arguments[:_SHORT_ARGUMENTS].rstrip()}{ELLIPSIS if long else ''})"


def _why(debrief: m.Debrief) -> Iterator[Row]:
    """Yield the reasons for what was done; those of curators, hooks, limits and the end stand in their own sections."""
    for each in debrief.rationale:
        if each.topic in ("call", "control"):
            yield indent(each), f"{when(each)} ", f"{_chosen(each)}: {_reason(each.rationale)}", ""
    expected, stated = debrief.metrics.reasons_expected, debrief.metrics.reasons_stated
    if expected > stated:
        own = next((f", {_call(step)} not counted" for step in debrief.path if _call(step) in LAST_WORDS), "")
        told = "the call gave no reason" if expected == 1 else f"{expected - stated} of {expected} calls gave no reason"
        yield 2, "", f"({told}, though one was asked for{own})", "dim"
    elif not debrief.metrics.tool_calls:
        yield 2, "", "(no tool was called, so there was no reason to state)", "dim"
    elif not expected:
        unknown = "(the run was imported: whether the model was asked to state reasons is not known)"
        yield 2, "", unknown if debrief.imported else "(the model was not asked to state reasons)", "dim"


def _chosen(each: m.Decision) -> str:
    return f"chose tool:{each.tool_name}" if each.topic == "call" else f"decided {each.decision}"


def _reason(reason: m.Reason) -> str:
    refs = f" (refs: {', '.join(reason.refs)})" if reason.refs else ""
    return f'"{reason.why}"{refs}{_confidence(reason)}'


def _confidence(reason: m.Reason | None) -> str:
    return "" if reason is None or reason.confidence is None else f" (conf:{_TIED}{reason.confidence:.2f})"


def _assumption(each: m.Assumption) -> Row:
    why = f" — {each.rationale.why}" if each.rationale else ""
    return indent(each), f"{when(each)} ", f'"{each.assumption}"{_confidence(each.rationale)}{why}', ""


def _alternative(each: m.RejectedOption) -> Row:
    text = f'{each.decision}, not {each.option}: "{each.rejected_because}"'
    return indent(each), f"{when(each)} ", text, ""


def _approval(each: m.ApprovalAnswer) -> Row:
    who = f" by {each.by}" if each.by else ""
    verdict = "approved" if each.approved else "denied"
    return indent(each), f"{when(each)} ", f"{each.tool or each.call_id}: {verdict}{who}{quoted(each.why)}", ""


def _steering(each: m.Steering) -> Row:
    return indent(each), f"{when(each)} ", f"{each.who} {each.what}{quoted(each.why)}", ""


def _replay(debrief: m.Debrief) -> Iterator[Row]:
    replay = debrief.replay
    if replay is None:
        return
    yield 2, "", f"a {replay.mode or 'replay'} of run {replay.replay_of}", ""
    for name, value in replay.overrides.items():
        yield 2, f"with {name}: ", value, ""
    if replay.rungs:
        yield 2, "results: ", ", ".join(f"{count} {rung}" for rung, count in replay.rungs.items()), ""
    if replay.diverged:
        times = "once" if replay.diverged == 1 else f"{replay.diverged} times"
        yield 2, "", f"it did something else than its recording {times} (`playhead diff` says what)", ""


def _error(each: m.ErrorSeen) -> Row:
    where = each.where.removeprefix("tool:")
    times = f" (×{each.count})" if each.count > 1 else ""  # noqa: RUF001 - a multiplication sign
    return indent(each), f"{when(each)} ", f"{where}: {each.type}: {each.message}{times}", ""


def _flag(each: m.Flag) -> Row:
    many = ELLIPSIS if len(each.seqs) > 5 else ""  # noqa: PLR2004
    events = (
        f" [event{'' if len(each.seqs) == 1 else 's'} {', '.join(map(str, each.seqs[:5]))}{many}]" if each.seqs else ""
    )
    who = "" if each.owner == "root" else f"{each.owner.rpartition('/')[2]}: "
    return 2, f"{each.severity}: ", f"{who}{each.text}{events}", _SEVERITY[each.severity]


def _termination(debrief: m.Debrief) -> Row:
    ended = debrief.termination
    if ended is None:
        return 0, "Termination: ", "none: the trace has no end", ""
    source = "" if ended.source == "kernel" else f" by {ended.source}"
    stated = ended.rationale.why if ended.rationale else ended.because
    error = f" — error: {ended.error}" if ended.error and ended.error != stated else ""
    return 0, "Termination: ", f"{ended.by}{source}{quoted(stated) or f' ({ended.meaning})'}{error}", ""


# --- wrapping ---------------------------------------------------------------------------------------------------------


def _lines(rows: Iterable[Row], width: int) -> Iterator[Line]:
    for depth, lead, text, style in rows:
        for number, line in enumerate(wrap(lead + text, width - depth - 2)):
            yield Line((" " * (depth + (2 if number else 0)), ""), (line, style))


def wrap(text: str, width: int) -> list[str]:
    """Return a text as safe lines of at most `width` cells: broken between words, or inside one that is longer."""
    from rich.cells import cell_len, chop_cells  # noqa: PLC0415 - rich is loaded by those who print

    lines = [""]
    for word in (escape(word) for word in _SPACE.split(text.strip())):
        if lines[-1] and cell_len(lines[-1]) + 1 + cell_len(word) <= width:
            lines[-1] += f" {word}"
            continue
        pieces = chop_cells(word, width) if cell_len(word) > width else [word]
        lines[-1:] = [*([lines[-1]] if lines[-1] else []), *pieces]
    return [line.replace(_TIED, " ") for line in lines]
