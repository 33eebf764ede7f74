"""The diff of two runs: what changed, where they part first, and what became of calls, answer, tokens and time.

    diff = diff_recordings(load_recording("a-run"), load_recording("its-replay"))
    diff.identical, diff.first_divergence, diff.tool_sequence

Works for any two recordings: a run and its replay, two runs of one agent, or two that have nothing in common.
"""

from __future__ import annotations

from collections import Counter
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

from playhead.diagnose.diff_calls import Alignment, RunCalls, tool_sequence
from playhead.diagnose.diff_decisions import first_decision
from playhead.diagnose.diff_edits import call_edits, rationale_changes, result_changes
from playhead.diagnose.diff_events import Split, first_split
from playhead.diagnose.diff_inputs import input_changes
from playhead.diagnose.diff_lines import line_diff
from playhead.diagnose.diff_sequence import apply_edits
from playhead.diagnose.diff_types import (
    Difference,
    FirstDivergence,
    InputChange,
    OutputDiff,
    RationaleChange,
    ResultChange,
    RunDiff,
    RunFigures,
    ToolEdit,
    ToolUse,
)
from playhead.diagnose.diff_values import MOST_DIFFERENCES, changed, differences, key_path, same, written_alike
from playhead.diagnose.diff_words import divergence_text, remarks
from playhead.diagnose.summaries import summarise
from playhead.trace.spending import spent_by
from playhead.trace.values import repair_json, scrub

if TYPE_CHECKING:
    from playhead.trace.line import Record
    from playhead.trace.recording import Recording

_MOST_NODES: Final = 300
"""Values inside a value, up to which deepdiff looks at it: its cost grows faster than they do."""
_LONGEST: Final = 20_000
"""Characters of all texts of a value, up to which the same holds."""
_DEEPEST: Final = 30
"""Levels of a value, up to which the same holds."""


def diff_recordings(original: Recording, replay: Recording) -> RunDiff:
    """Return what differs between two runs; works on open, truncated and damaged recordings, and says what it could not.

    `replay` may be any run: a replay of the original, or another run that is compared with it.
    """
    calls = RunCalls(original), RunCalls(replay)
    alignment = Alignment(*calls)
    edits, same_calls = call_edits(alignment)
    split, not_compared = first_split(alignment)
    figures = _figures(calls[0]), _figures(calls[1])
    output = _output(original, replay)
    parts: dict[str, Any] = {
        "inputs": input_changes(alignment),
        "first_divergence": None if split is None else _divergence(split),
        "results": result_changes(alignment),
        "rationale_changes": rationale_changes(alignment),
    }
    return RunDiff(
        original_run_id=original.run_id,
        replay_run_id=replay.run_id,
        is_replay=replay.header.replay_of == original.run_id,
        overrides=repair_json(replay.header.overrides),
        identical=_both_whole(*figures)
        and output.equal
        and not edits
        and figures[0].iterations == figures[1].iterations,
        also_differs=_also(parts, *figures),
        original=figures[0],
        replay=figures[1],
        iterations_delta=figures[1].iterations - figures[0].iterations,
        tokens_delta=_change(*map(_tokens, figures)),
        cost_delta=_delta(*(None if each.cost_unknown else each.cost_usd for each in figures)),
        duration_delta_ms=_delta(figures[0].duration_ms, figures[1].duration_ms),
        first_decision=first_decision(alignment),
        tool_sequence=edits,
        output=output,
        not_entered=tuple(sorted(alignment.not_entered[0])),
        replay_not_entered=tuple(sorted(alignment.not_entered[1])),
        remarks=remarks(original, replay, not_compared, alignment.not_entered),
        same_calls=same_calls,
        served=_served(calls[1]),
        **parts,
    )


def _both_whole(one: RunFigures, other: RunFigures) -> bool:
    """Return whether both files are whole: of one that is not, nobody can say that it is like another."""
    return one.recording == other.recording == "closed"


def _also(parts: dict[str, Any], one: RunFigures, other: RunFigures) -> tuple[str, ...]:
    found = {
        "inputs": bool(parts["inputs"]),
        "events": parts["first_divergence"] is not None,
        "results": bool(parts["results"]),
        "reasons": bool(parts["rationale_changes"]),
        "status": (one.status, one.terminated_by) != (other.status, other.terminated_by),
        "tokens": bool(_change(_tokens(one), _tokens(other))),
    }
    return tuple(name for name, differs in found.items() if differs)


def _output(original: Recording, replay: Recording) -> OutputDiff:
    one = original.ending.output if original.ending else None
    other = replay.ending.output if replay.ending else None
    equal = original.ending is not None and replay.ending is not None and written_alike(one, other)
    lines: tuple[str, ...] = ()
    if not equal and isinstance(one, str) and isinstance(other, str) and "\n" in one + other:
        lines = line_diff(one, other)
    return OutputDiff(original=repair_json(one), replay=repair_json(other), equal=equal, lines=lines)


def _served(run: RunCalls) -> dict[str, int]:
    rungs = (call.end.rung for call in run.all if call.end)
    return dict(Counter(rung for rung in rungs if rung is not None).most_common())


# --- figures ----------------------------------------------------------------------------------------------------------


def _figures(run: RunCalls) -> RunFigures:
    recording, header, ending = run.recording, run.recording.header, run.recording.ending
    records = recording.records
    usage, cost_usd, cost_unknown = spent_by(records)
    duration_ms = ending.duration_ms if ending else (records[-1].ts - records[0].ts) / 1000
    turns = [record.iteration for record in records if record.owner == "root" and record.iteration is not None]
    return RunFigures(
        run_id=recording.run_id,
        agent=header.agent.name,
        model=header.agent.model,
        recording=recording.status,
        status=ending.status if ending else None,
        terminated_by=ending.terminated_by if ending else None,
        error=ending.error if ending else None,
        iterations=ending.iterations if ending else max(turns, default=-1) + 1,
        calls=len(run.all),
        input_tokens=usage.known(usage.input_tokens),
        output_tokens=usage.known(usage.output_tokens),
        usage_unknown=usage.unknown or 0,
        cost_usd=cost_usd,
        cost_unknown=cost_unknown or 0,
        duration_ms=_finite(duration_ms),
    )


def _tokens(figures: RunFigures) -> int | None:
    return None if figures.usage_unknown else (figures.input_tokens or 0) + (figures.output_tokens or 0)


def _finite(value: float | None) -> float | None:
    return value if value is not None and isfinite(value) else None


def _change(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else other - one


def _delta(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else _finite(other - one)


# --- the first divergence ---------------------------------------------------------------------------------------------


def _divergence(split: Split) -> FirstDivergence:
    record = split.original or split.replay
    assert record is not None  # noqa: S101 - there is an event on one side at least
    found: tuple[Difference, ...] = ()
    if split.change == "changed":
        found = structured_difference(split.expected, split.actual)
        found = found if len(found) == 1 else tuple(each for each in found if each.path != "args_hash")
    return FirstDivergence(
        change=split.change,
        kind=record.kind,
        owner=record.owner,
        iteration=record.iteration,
        original_seq=split.original.seq if split.original else None,
        replay_seq=split.replay.seq if split.replay else None,
        after_seq=split.after.seq if split.after else None,
        what=divergence_text(split, found),
        expected=repair_json(split.expected),
        actual=repair_json(split.actual),
        expected_text=_sentence(split.original),
        actual_text=_sentence(split.replay),
        differences=found,
    )


def _sentence(record: Record | None) -> str | None:
    if record is None:
        return None
    try:
        return scrub(f"{record.kind}: {summarise(record.event)}")
    except (TypeError, ValueError, RecursionError):  # a field that holds what its kind never does
        return record.kind


def structured_difference(original: Any, replay: Any) -> tuple[Difference, ...]:  # noqa: ANN401 - JSON
    """Return where two JSON values differ, path by path, at most a hundred places.

    In a list an item that was put in or left out is told as such (deepdiff). Values that are too large or too deep for
    that are compared place by place.
    """
    if _is_small(original) and _is_small(replay):
        try:
            found = _deep_difference(original, replay)
        except Exception:  # noqa: BLE001 - a diff must not fail for a value that deepdiff cannot take
            found = ()
        if found:
            return found
    return differences(original, replay)


def _deep_difference(original: Any, replay: Any) -> tuple[Difference, ...]:  # noqa: ANN401 - JSON
    from deepdiff import DeepDiff  # noqa: PLC0415 - slow to load, and only a divergence needs it

    tree = DeepDiff(original, replay, view="tree", ignore_numeric_type_changes=False, verbose_level=2)
    found: list[Difference] = []
    for report, levels in tree.items():
        change = "added" if report.endswith("_added") else "removed" if report.endswith("_removed") else "changed"
        for level in levels:
            one = None if change == "added" else level.t1
            other = None if change == "removed" else level.t2
            if change != "changed" or not same(one, other):  # 1 and 1.0 are the same JSON
                found.append(changed(_path(level), change, original=one, replay=other))
    return tuple(sorted(found, key=lambda each: each.path)[:MOST_DIFFERENCES])


def _path(level: Any) -> str:  # noqa: ANN401 - deepdiff has no types
    path = ""
    for each in level.path(output_format="list"):
        path = f"{path}[{each}]" if isinstance(each, int) else key_path(path, each)
    return path


def _is_small(value: Any) -> bool:  # noqa: ANN401 - JSON
    nodes, length, level = 0, 0, [value]
    for _ in range(_DEEPEST):
        below: list[Any] = []
        for each in level:
            nodes += 1
            if isinstance(each, dict):
                length += sum(len(str(key)) for key in each)
                below += each.values()
            elif isinstance(each, (list, tuple)):
                below += each
            elif isinstance(each, str):
                length += len(each)
            if nodes > _MOST_NODES or len(below) > _MOST_NODES or length > _LONGEST:
                return False
        if not below:
            return True
        level = below
    return False


__all__ = [
    "Difference",
    "FirstDivergence",
    "InputChange",
    "OutputDiff",
    "RationaleChange",
    "ResultChange",
    "RunDiff",
    "RunFigures",
    "ToolEdit",
    "ToolUse",
    "apply_edits",
    "diff_recordings",
    "structured_difference",
    "tool_sequence",
]
