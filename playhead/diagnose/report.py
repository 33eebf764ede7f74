"""A run as its report shows it: each event, its debrief and its statistics.

A pure fold over a recording, like the debrief and the statistics that it holds. `report_page.py` makes it a page.
"""

from __future__ import annotations

import json
from itertools import zip_longest
from typing import TYPE_CHECKING

from playhead.diagnose import report_model as m
from playhead.diagnose.debrief import build_debrief
from playhead.diagnose.diff import diff_recordings
from playhead.diagnose.diff_calls import longest_increasing
from playhead.diagnose.diff_view import judged
from playhead.diagnose.parts import at, short
from playhead.diagnose.statistics import run_statistics
from playhead.diagnose.summaries import summarise
from playhead.trace.line import encode_data

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.diagnose.diff_types import RunDiff
    from playhead.diagnose.recording import Recording
    from playhead.trace.line import Record


def run_report(recording: Recording) -> m.RunReport:
    """Return what the page shows of a run. An incomplete recording works too: the debrief's caveats say what is missing."""
    records = recording.records
    start_us = records[0].ts
    return m.RunReport(
        started_us=start_us,
        debrief=build_debrief(recording),
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
    sides = [
        (each.root.records, len(each.records)) for each in (original, replay)
    ]  # a hostile turn is beyond its events
    of = [{each.seq: each.iteration for each in own if (each.iteration or 0) < most} for own, most in sides]
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
        what=short(summarise(record.event)),
        data=json.loads(encode_data(record.event)),
    )
