"""A run as its report shows it: each event, and where to look first.

A pure fold over a recording, like the debrief and the statistics that it holds. `report_page.py` makes it a page.
"""

from __future__ import annotations

import json
from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from playhead.diagnose import report_model as m
from playhead.diagnose.debrief import build_debrief
from playhead.diagnose.diff import diff_recordings
from playhead.diagnose.diff_calls import longest_increasing
from playhead.diagnose.diff_view import judged
from playhead.diagnose.parts import at, short
from playhead.diagnose.statistics import run_statistics
from playhead.diagnose.summaries import summarise
from playhead.trace.events import AgentCompleted, ToolCallCompleted
from playhead.trace.format import ANSWERED
from playhead.trace.line import encode_data

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from playhead.diagnose.debrief_model import Debrief, Severity
    from playhead.diagnose.diff_types import RunDiff
    from playhead.diagnose.recording import Recording
    from playhead.trace.line import Record

_WHAT: Final = 240
"""The maximum length of an event's sentence, of a call's arguments and of a result, in characters; `data` has all."""
_ORDER: Final[dict[Severity, int]] = {"high": 0, "warning": 1, "info": 2}
_REFUSALS: Final = {"reviews": "review failed", "answers": "critic not satisfied"}
"""What an entry of the debrief whose verdict is no is called among the findings, by its section."""
_STEERED: Final[dict[str, tuple[Severity, str]]] = {
    "killswitch-fired": ("high", "killswitch"),
    "guardrail-violation": ("warning", "guardrail"),
    "provider-fallback": ("warning", "other model"),
    "strategy-switched": ("info", "other strategy"),
    "emission-changed": ("info", "changed by a hook"),
    "nudge-issued": ("info", "nudge"),
    "tool-call-repaired": ("info", "repaired call"),
}
"""Kinds of entries that are findings whatever they say."""


def run_report(recording: Recording) -> m.RunReport:
    """Return what the page shows of a run. An incomplete recording works too: the debrief's caveats say what is missing."""
    records, debrief = recording.records, build_debrief(recording)
    start_us = records[0].ts
    return m.RunReport(
        started_us=start_us,
        debrief=debrief,
        findings=_merged((*_findings(debrief), *_unseen(records))),
        statistics=run_statistics([recording]),
        events=tuple(_event(record, start_us) for record in records),
    )


def pair_report(original: Recording, replay: Recording) -> m.PairReport:
    """Return what the page shows of two runs side by side."""
    diff = diff_recordings(original, replay)
    return m.PairReport(
        original=run_report(original),
        replay=run_report(replay),
        diff=diff,
        verdict=judged(diff),
        turns=tuple(_turns(diff, original, replay)),
    )


def _turns(diff: RunDiff, original: Recording, replay: Recording) -> Iterator[tuple[int | None, int | None]]:
    """Yield the turns with calls that correspond, in order, and between them the others as they come."""
    of = [{record.seq: record.iteration for record in each.root.records} for each in (original, replay)]
    pairs = [(of[0].get(each.original_seq or -1), of[1].get(each.replay_seq or -1)) for each in diff.script]
    known = [(one, other) for one, other in pairs if one is not None and other is not None]
    firsts = {other: one for one, other in dict(reversed(known)).items()}
    ends = [max((turn for turn in turns.values() if turn is not None), default=-1) + 1 for turns in of]
    one, other = 0, 0
    for pair in longest_increasing((one, other) for other, one in firsts.items()):
        yield from zip_longest(range(one, pair[0]), range(other, pair[1]))
        yield pair
        one, other = pair[0] + 1, pair[1] + 1
    yield from zip_longest(range(one, ends[0]), range(other, ends[1]))


def _event(record: Record, start_us: int) -> m.Event:
    return m.Event(
        **at(record),
        at_ms=(record.ts - start_us) / 1000,
        kind=record.kind,
        what=short(summarise(record.event), _WHAT),
        data=json.loads(encode_data(record.event)),
    )


# --- where to look first ----------------------------------------------------------------------------------------------


def _merged(found: Iterable[m.Finding]) -> tuple[m.Finding, ...]:
    """Return the findings, most severe first, those of one label and kind once."""
    merged: dict[tuple[Severity, str, str], m.Finding] = {}
    for each in found:
        first = merged.setdefault((each.severity, each.label, each.what), each)
        if first is not each:
            seqs, count = tuple(dict.fromkeys(first.seqs + each.seqs)), first.count + each.count
            merged[each.severity, each.label, each.what] = first.model_copy(update={"seqs": seqs, "count": count})
    return tuple(sorted(merged.values(), key=lambda each: (_ORDER[each.severity], each.label == "reason missing")))


def _findings(debrief: Debrief) -> Iterator[m.Finding]:
    """Yield the flags, the failures on the way, what was refused or steered, and calls without a result."""
    for flag in debrief.flags:
        label = flag.rule.replace("-", " ")
        yield m.Finding(severity=flag.severity, label=label, what=flag.text, seqs=flag.seqs)
    for error in debrief.errors:
        what, count = f"{error.where.removeprefix('tool:')}: {error.type}", error.count
        yield m.Finding(
            severity="warning", label="failure", what=what, text=error.message, seqs=(error.seq,), count=count
        )
    for each in debrief.entries:
        refused = _REFUSALS.get(each.section, "") if each.ok is False else ""
        severity, label = _STEERED.get(each.kind, ("warning", refused))
        if label:
            yield m.Finding(severity=severity, label=label, what=each.what, seqs=(each.seq,))
    for step in debrief.path:
        if step.ok is None and step.call_id is not None:
            what = step.action.removeprefix("tool:")
            yield m.Finding(severity="warning", label="no result", what=what, seqs=(step.seq,))


def _unseen(records: Sequence[Record]) -> Iterator[m.Finding]:
    """Yield what a debrief counts neither as an error nor as a flag, and what may explain a wrong answer all the same."""
    for record in records:
        label, event = "", record.event
        if isinstance(event, AgentCompleted) and event.terminated_by not in ANSWERED:
            label = "sub-agent without an answer"
        elif record.kind == "replay-diverged":
            label = "left the recording"
        elif isinstance(event, ToolCallCompleted) and event.ok and event.result in ("", [], {}):
            label = "empty result"
        if label:
            severity: Severity = "info" if label == "empty result" else "warning"
            yield m.Finding(severity=severity, label=label, what=short(summarise(event), _WHAT), seqs=(record.seq,))
