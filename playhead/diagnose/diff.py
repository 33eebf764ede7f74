"""The diff of two runs: what changed, where they first diverge, and how calls, answer, tokens and time differ.

    diff = diff_recordings(load_recording("a-run"), load_recording("its-replay"))
    diff.identical, diff.first_divergence, diff.tool_sequence

Works for any two recordings: a run and its replay, two runs of one agent, or two that have nothing in common.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from playhead.diagnose.diff_calls import Alignment, RunCalls, call_script, rationale_changes, result_changes
from playhead.diagnose.diff_decisions import first_decision
from playhead.diagnose.diff_events import first_divergence
from playhead.diagnose.diff_inputs import input_changes
from playhead.diagnose.diff_types import OutputDiff, RunDiff, RunFigures
from playhead.diagnose.diff_values import same
from playhead.diagnose.parts import HARMS, counted, spent
from playhead.diagnose.spending import spent_by
from playhead.trace.events import StrategySwitched

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.diagnose.recording import Recording

N = TypeVar("N", int, float)


def diff_recordings(original: Recording, replay: Recording) -> RunDiff:
    """Compare two runs, for example a recording and its replay.

    Open, truncated and damaged recordings work too; `remarks` lists what could not be compared.
    """
    calls = RunCalls(original), RunCalls(replay)
    alignment = Alignment(*calls)
    script = call_script(alignment)
    edits = tuple(each for each in script if each.kind != "same")
    divergence, not_compared = first_divergence(alignment)
    one, other = map(_figures, calls)
    output, inputs = _output(original, replay), input_changes(alignment)
    results, reasons = result_changes(alignment), rationale_changes(alignment)
    tokens_delta = _delta(_tokens(one), _tokens(other))
    also = {
        "inputs": inputs,
        "events": divergence,
        "results": results,
        "reasons": reasons,
        "status": (one.status, one.terminated_by) != (other.status, other.terminated_by),
        "tokens": tokens_delta,
    }
    return RunDiff(
        original_run_id=original.run_id,
        replay_run_id=replay.run_id,
        is_replay=replay.header.replay_of == original.run_id,
        overrides=replay.header.overrides,
        identical=one.recording == other.recording == "closed"
        and output.equal
        and not edits
        and (one.iterations, one.switches) == (other.iterations, other.switches),
        also_differs=tuple(name for name, differs in also.items() if differs),
        original=one,
        replay=other,
        iterations_delta=other.iterations - one.iterations,
        tokens_delta=tokens_delta,
        cost_delta=_delta(*(None if each.cost_unknown else each.cost_usd for each in (one, other))),
        duration_delta_ms=other.duration_ms - one.duration_ms,
        inputs=inputs,
        first_divergence=divergence,
        first_decision=first_decision(alignment),
        tool_sequence=edits,
        results=results,
        rationale_changes=reasons,
        output=output,
        remarks=tuple(_remarks(original, replay, not_compared, alignment.not_entered)),
        script=script,
    )


def _output(original: Recording, replay: Recording) -> OutputDiff:
    one = original.ending.output if original.ending else None
    other = replay.ending.output if replay.ending else None
    equal = original.ending is not None and replay.ending is not None and same(one, other)
    return OutputDiff(original=one, replay=other, equal=equal)


# --- figures ----------------------------------------------------------------------------------------------------------


def _figures(run: RunCalls) -> RunFigures:
    recording, header, ending = run.recording, run.recording.header, run.recording.ending
    return RunFigures(
        run_id=recording.run_id,
        agent=header.agent.name,
        model=header.agent.model,
        recording=recording.status,
        status=ending.status if ending else None,
        terminated_by=ending.terminated_by if ending else None,
        error=ending.error if ending else None,
        iterations=recording.root.iterations,
        calls=len(run.all),
        switches=tuple(
            f"{each.owner}: {each.event.from_strategy} → {each.event.to_strategy}"
            for each in recording.records
            if isinstance(each.event, StrategySwitched)
        ),
        **spent(*spent_by(recording.records)),
        duration_ms=recording.duration_ms,
    )


def _tokens(figures: RunFigures) -> int | None:
    return None if figures.usage_unknown else (figures.tokens_in or 0) + (figures.tokens_out or 0)


def _delta(one: N | None, other: N | None) -> N | None:
    return None if one is None or other is None else other - one


# --- what could not be compared ---------------------------------------------------------------------------------------


def _remarks(
    original: Recording, replay: Recording, not_compared: list[str], not_entered: tuple[set[str], set[str]]
) -> Iterator[str]:
    for name, recording in (("original", original), ("replay", replay)):
        if recording.status in ("damaged", "erased"):
            yield f"the {name} is {HARMS[recording.status]} ({recording.problems[0]}); what is missing there may show as a difference"
        if recording.ending is None:
            cut = "truncated" if recording.status == "truncated" else "open"
            yield f"the {name} is {cut}: it ends at event {recording.records[-1].seq}, and what came after is not known"
        if recording.header.redacted:
            yield f"the {name} was redacted: what the rules hid cannot be compared"
    if original.header.replay_of is None and replay.header.replay_of not in (None, original.run_id):
        yield f"the second run is a replay of {replay.header.replay_of}, not of this original"
    if not_compared:
        yield f"what this version does not know, or has no key for, was not compared: {', '.join(not_compared[:5])}"
    for owners, served in zip(not_entered, ("replay", "original"), strict=True):
        if owners:
            what = f"what happened inside {counted(len(owners), 'tool call')} ({', '.join(sorted(owners))})"
            yield f"{what} was not compared: the {served} took the result from a recording"
