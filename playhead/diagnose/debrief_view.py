"""A debrief as a document that explains a run's decisions to a new reader, in 80 columns and without colour."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from playhead.diagnose.debrief import output_kind
from playhead.diagnose.debrief_story import LAST_WORDS
from playhead.diagnose.document import MOST, TIED, Document, Row, Section, omitted, section
from playhead.diagnose.parts import SHORT
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
_NOTHING: Final = Row("nothing failed and no rule found anything, which proves nothing by itself", style="dim")
_NAMED: Final = 4
"""The maximum number of events that are named after a finding."""
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
    origin += f", a replay of run {debrief.replay_of}: see `playhead diff`" if debrief.replay_of else ""
    return Section(f"Debrief: run {debrief.run_id or '(not known)'}", (Row(origin, depth=0, style="dim"),))


def _story(debrief: m.Debrief) -> Iterator[Section]:
    yield Section("Goal", (Row(debrief.goal or "(not known)"),))
    yield from section("Where to look first", map(_finding, debrief.findings) if debrief.findings else [_NOTHING])
    yield Section("Path", tuple(_path(debrief)))
    entries: dict[str, list[Row]] = defaultdict(list)
    for each in debrief.entries:
        entries[each.section].append(_entry(each))
    entries["strategy"] = list(_strategy(debrief, entries["strategy"]))
    entries["reasons"] += _unstated(debrief)
    for name, title in _TITLES.items():
        yield from section(title, entries[name])
    if debrief.answer is not None:
        what, why = output_kind(debrief.outcome, debrief.termination.by if debrief.termination else None)
        yield Section(f"{what.capitalize()} ({why})" if why else what.capitalize(), (Row(debrief.answer),))
    yield from section("Caveats", (Row(each, "- ", style="yellow") for each in debrief.caveats))


def _ending(debrief: m.Debrief) -> Section:
    """Return what of the answer was compared with the trace, the ending, and the agent's claim."""
    compared = (Row(debrief.checked, "Compared: ", 0),) if debrief.checked else ()
    return Section("Ending", (*compared, _termination(debrief), Row(debrief.claim, depth=0, style="bold")))


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
    runs: list[tuple[str, m.PathStep, int]] = []
    for step in steps:
        text = _step(step)
        again = bool(runs) and runs[-1][0] == text
        runs[-1 if again else len(runs) :] = [(text, runs[-1][1], runs[-1][2] + 1) if again else (text, step, 1)]
    shown = [f"e{step.seq}{TIED}{text}{f' {count} times' if count > 1 else ''}" for text, step, count in runs]
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
    """Return a call as in Python, whole if it failed; not the last one, whose arguments are the answer."""
    name = step.action.removeprefix("tool:")
    if not step.arguments or name in LAST_WORDS:
        return name
    most = SHORT if step.ok is False else _SHORT_ARGUMENTS
    return f"{name}({step.arguments[:most].rstrip()}{ELLIPSIS if len(step.arguments) > most else ''})"


# --- rows -------------------------------------------------------------------------------------------------------------


def _depth(owner: str) -> int:
    return 2 + 2 * min(depth_of(owner), _DEEPEST)


def _row(each: Placed, text: str) -> Row:
    """Return a row that begins with its place."""
    return Row(text, f"{_place(each)} ", _depth(each.owner))


def _place(each: Placed) -> str:
    """Return the turn and the event, and whose turn it is."""
    who = "" if each.owner == "root" else f"{own_name(each.owner)}{TIED}"
    turn = "" if each.iteration is None else f"turn{TIED}{each.iteration}{TIED}"
    return f"{who}{turn}e{each.seq}"


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
    """Yield how many calls lack a reason that was asked for, or why none has one."""
    metrics = debrief.metrics
    if missing := metrics.reasons_expected - metrics.reasons_stated:
        yield Row(f"({missing} of {metrics.reasons_expected} calls state no reason)", style="dim")
    elif not metrics.tool_calls:
        yield Row("(no tool was called, so there was no reason to state)", style="dim")
    elif not metrics.reasons_expected:
        unknown = "(the run was imported: whether the model was asked to state reasons is not known)"
        yield Row(unknown if debrief.imported else "(the model was not asked to state reasons)", style="dim")


def _strategy(debrief: m.Debrief, chosen: list[Row]) -> Iterator[Row]:
    """Yield the strategy and its changes; nothing for an agent that used only the default strategy."""
    if chosen or debrief.strategy not in {"", _USUAL} or debrief.strategy_used is not None:
        yield Row(debrief.strategy or "(not known)")
        yield from chosen
    if debrief.strategy_used is not None:
        yield Row(f"the output is from {debrief.strategy_used}")


def _finding(each: m.Finding) -> Row:
    named = ", ".join(map(_place, each.places[:_NAMED])) + (f", {ELLIPSIS}" if len(each.places) > _NAMED else "")
    what = f"{each.label}: {each.what}" + (f": {each.text}" if each.text else "")
    times = f" ({each.count} times)" if each.count > 1 else ""
    return Row(f"{what}{times} [{named}]", f"{each.severity}: ", style=_SEVERITY[each.severity])


def _termination(debrief: m.Debrief) -> Row:
    ended = debrief.termination
    if ended is None:
        return Row("none: the trace has no end", "Termination: ", 0)
    source = "" if ended.source == "kernel" else f" by {ended.source}"
    stated = ended.rationale.why if ended.rationale else ended.because
    error = f" — error: {ended.error}" if ended.error and ended.error != stated else ""
    why = f' — "{stated}"' if stated else f" ({ended.meaning})"
    return Row(f"{ended.by}{source}{why}{error} [e{ended.seq}]", "Termination: ", 0)
