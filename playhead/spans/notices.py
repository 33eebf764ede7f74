"""What is to be known of a run whose spans were sent, the same of live export and of `playhead export`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from playhead.spans.cursor import in_words
from playhead.spans.naming import NAMED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.spans.reading import Missing
    from playhead.spans.run_export import RunExport
    from playhead.spans.settled import Settled

PROBLEMS: Final = 3
"""Problems of a file that are told."""
REFUSALS: Final = 10
"""Refusals that are told."""


def notices(run: RunExport, destination: str) -> Iterator[str]:
    """Yield what was wrong with the file, refused, cut, left out or lost."""
    yield from _of_file(run.reading.missing)
    if run.failure is not None:
        yield f"its spans cannot be sent: {run.failure}"
    yield from _of_spans(run.settled, destination)


def _of_file(missing: Missing) -> Iterator[str]:
    problems = missing.problems
    yield from map(str, problems[:PROBLEMS])
    if len(problems) > PROBLEMS:
        yield f"and {len(problems) - PROBLEMS:,} more problems; `playhead check` says where"
    if missing.left_out:
        events = "1 event belongs" if missing.left_out == 1 else f"{missing.left_out:,} events belong"
        yield f"{events} to nothing that began, and {'is' if missing.left_out == 1 else 'are'} in no span"
    if missing.lost:
        yield "it has no trace, and too many of its events waited: its later spans are lost"


def _of_spans(settled: Settled, destination: str) -> Iterator[str]:
    refusals = in_words(settled.refused_now)
    for refused in refusals[:REFUSALS]:
        yield f"{destination} refused {refused}"
    if len(refusals) > REFUSALS:
        yield f"{destination} refused more, for {len(refusals) - REFUSALS:,} more reasons"
    if settled.reached.more_refused:
        yield f"{destination} refused {settled.reached.more_refused:,} more spans"
    if settled.smaller:
        names = f"{', '.join(settled.smaller[:NAMED])}{', …' if len(settled.smaller) > NAMED else ''}"
        spans = "1 span was" if len(settled.smaller) == 1 else f"{len(settled.smaller):,} spans were"
        yield f"{spans} too large for {destination}, and sent without content: {names}"
