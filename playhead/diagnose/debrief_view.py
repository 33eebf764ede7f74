"""A debrief as a document that explains a run's decisions to a new reader, in 80 columns and without colour."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from playhead.diagnose.debrief import output_kind
from playhead.diagnose.debrief_story import LAST_WORDS
from playhead.diagnose.document import MOST, TIED, Document, Row, Section, omitted, section
from playhead.diagnose.terminal import ELLIPSIS
from playhead.trace.owners import depth_of, own_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from playhead.diagnose import debrief_model as m
    from playhead.diagnose.parts import Placed

_DEEPEST: Final = 6
"""Levels of agents that are indented."""
_USUAL: Final = "reactive"
_SHORT_ARGUMENTS: Final = 40
_SEVERITY: Final = {"high": "bold red", "warning": "yellow", "info": "dim"}
_OUTCOME: Final = {"success": "bold green", "partial": "bold yellow", "failed": "bold red", "unknown": "bold yellow"}
_NO_FLAG: Final = Row("none: no rule found anything, which proves nothing by itself", style="dim")
_TITLES: Final[dict[m.SectionName, str]] = {
    "strategy": "Strategy",
    "plan": "Plan",
    "thoughts": "Thoughts",
    "answers": "Answers, and what the critic said of them",
    "reviews": "Reviews of the answer",
    "reasons": "Why this path",
    "assumptions": "Assumptions",
    "alternatives": "Alternatives considered",
    "curator": "Curator",
    "approvals": "Approvals",
    "steering": "Hooks and limits that steered",
    "models": "Other models",
    "repaired": "Repaired calls",
}
"""The sections of entries, in the order of the story."""


def debrief_document(debrief: m.Debrief) -> Document:
    """Return the sections in narrative order: the task, the actions and their reasons, the ending."""
    return Document((_head(debrief), *_story(debrief), _ending(debrief)))


def _head(debrief: m.Debrief) -> Section:
    origin = f"{debrief.agent} on {debrief.model}" if debrief.agent else "an agent that the trace does not name"
    origin += f", continues run {debrief.resumed_from}" if debrief.resumed_from else ""
    origin += (
        f", a replay of run {debrief.replay_of}: `playhead diff` says what it changed" if debrief.replay_of else ""
    )
    return Section(f"Debrief: run {debrief.run_id or '(not known)'}", (Row(origin, depth=0, style="dim"),))


def _story(debrief: m.Debrief) -> Iterator[Section]:
    yield Section("Goal", (Row(debrief.goal or "(not known)"),))
    yield Section("Path", tuple(_path(debrief)))
    entries: dict[str, list[Row]] = defaultdict(list)
    for each in debrief.entries:
        entries[each.section].append(_entry(each))
    entries["strategy"] = list(_strategy(debrief, entries["strategy"]))
    entries["reasons"] += _unstated(debrief)
    for name, title in _TITLES.items():
        yield from section(title, entries[name])
    yield from section("Errors on the way", map(_error, debrief.errors))
    yield from section("Flags: claims the trace does not support", [*map(_flag, debrief.flags)] or [_NO_FLAG])
    if debrief.answer is not None:
        what, why = output_kind(debrief.outcome, debrief.termination.by if debrief.termination else None)
        yield Section(f"{what.capitalize()} ({why})" if why else what.capitalize(), (Row(debrief.answer),))
    yield from section("Caveats", (Row(each, "- ", style="yellow") for each in debrief.caveats))


def _ending(debrief: m.Debrief) -> Section:
    """Return the trace's support for the answer, the ending, and the agent's claim."""
    rows = [_termination(debrief)]
    if debrief.outcome in {"success", "partial"}:
        rows.insert(
            0, Row(f"{debrief.confidence} — {'; '.join(debrief.confidence_basis)}", "Support in the trace: ", 0)
        )
    doubted = debrief.outcome == "success" and debrief.confidence != "high"
    rows.append(Row(debrief.claim, depth=0, style="bold yellow" if doubted else _OUTCOME[debrief.outcome]))
    return Section("Ending", tuple(rows))


# --- the path ---------------------------------------------------------------------------------------------------------


def _path(debrief: m.Debrief) -> Iterator[Row]:
    """Yield each agent's actions as one line of arrows, with sub-agents below their caller."""
    by_owner: dict[str, list[m.PathStep]] = {"root": []}
    for owner in (*(step.owner for step in debrief.path), *debrief.agents):
        by_owner.setdefault(owner, [])
    for step in debrief.path:
        by_owner[step.owner].append(step)
    for owner, steps in list(by_owner.items())[:MOST]:
        who = "" if owner == "root" else f"{own_name(owner)}: "
        yield Row(_arrows(steps) or "no call", who, _depth(owner))
    yield from omitted(len(by_owner) - MOST, " agents")


def _arrows(steps: Sequence[m.PathStep]) -> str:
    runs: list[tuple[str, int]] = []
    for text in map(_step, steps):
        again = bool(runs) and runs[-1][0] == text
        runs[-1 if again else len(runs) :] = [(text, runs[-1][1] + 1 if again else 1)]
    shown = [text if count == 1 else f"{text} ×{count}" for text, count in runs]  # noqa: RUF001 - a multiplication sign
    if len(shown) > MOST:
        shown = [*shown[: MOST // 2], f"{ELLIPSIS} {len(shown) - MOST} more {ELLIPSIS}", *shown[-MOST // 2 :]]
    return " → ".join(shown)


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


# --- rows -------------------------------------------------------------------------------------------------------------


def _depth(owner: str) -> int:
    return 2 + 2 * min(depth_of(owner), _DEEPEST)


def _row(each: Placed, text: str) -> Row:
    """Return a row that begins with the owner and the position."""
    who = "" if each.owner == "root" else f"{own_name(each.owner)} "
    when = f"iter {each.iteration}" if each.iteration is not None else f"event {each.seq}"
    return Row(text, f"{who}{when} ", _depth(each.owner))


def _entry(each: m.Entry) -> Row:
    if each.section == "reasons" and each.why is not None and each.by == "model":
        return _row(each, f"{each.what}: {_reason(each.why)}")
    if each.section == "approvals":
        return _row(each, f"{each.tool or each.call_id}: {each.what}")
    return _row(each, f"{each.kind} {each.what}" if each.section in {"steering", "reviews"} else each.what)


def _reason(reason: m.Reason) -> str:
    refs = f" (refs: {', '.join(reason.refs)})" if reason.refs else ""
    sure = "" if reason.confidence is None else f" (conf:{TIED}{reason.confidence:.2f})"
    return f'"{reason.why}"{refs}{sure}'


def _unstated(debrief: m.Debrief) -> Iterator[Row]:
    """Yield why no call has a reason; a flag says how many calls lack one that was asked for."""
    if not debrief.metrics.tool_calls:
        yield Row("(no tool was called, so there was no reason to state)", style="dim")
    elif not debrief.metrics.reasons_expected:
        unknown = "(the run was imported: whether the model was asked to state reasons is not known)"
        yield Row(unknown if debrief.imported else "(the model was not asked to state reasons)", style="dim")


def _strategy(debrief: m.Debrief, chosen: list[Row]) -> Iterator[Row]:
    """Yield the strategy and its changes; nothing for an agent that used only the default strategy."""
    if chosen or debrief.strategy not in {"", _USUAL} or debrief.strategy_used is not None:
        yield Row(debrief.strategy or "(not known)")
        yield from chosen
    if debrief.strategy_used is not None:
        yield Row(f"the output is from {debrief.strategy_used}")


def _error(each: m.ErrorSeen) -> Row:
    times = f" (×{each.count})" if each.count > 1 else ""  # noqa: RUF001 - a multiplication sign
    return _row(each, f"{each.where.removeprefix('tool:')}: {each.type}: {each.message}{times}")


def _flag(each: m.Flag) -> Row:
    many = ELLIPSIS if len(each.seqs) > 5 else ""  # noqa: PLR2004
    noun = "event" if len(each.seqs) == 1 else "events"
    events = f" [{noun} {', '.join(map(str, each.seqs[:5]))}{many}]" if each.seqs else ""
    who = "" if each.owner == "root" else f"{own_name(each.owner)}: "
    return Row(f"{who}{each.text}{events}", f"{each.severity}: ", style=_SEVERITY[each.severity])


def _termination(debrief: m.Debrief) -> Row:
    ended = debrief.termination
    if ended is None:
        return Row("none: the trace has no end", "Termination: ", 0)
    source = "" if ended.source == "kernel" else f" by {ended.source}"
    stated = ended.rationale.why if ended.rationale else ended.because
    error = f" — error: {ended.error}" if ended.error and ended.error != stated else ""
    why = f' — "{stated}"' if stated else f" ({ended.meaning})"
    return Row(f"{ended.by}{source}{why}{error}", "Termination: ", 0)
