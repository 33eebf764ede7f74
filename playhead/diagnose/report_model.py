"""The data model of a report: what the page shows of one run. Times are milliseconds since the run's first event."""

from __future__ import annotations

from playhead.diagnose.debrief_model import Debrief
from playhead.diagnose.diff_types import RunDiff
from playhead.diagnose.parts import Part, Placed, Text
from playhead.diagnose.statistics_model import Statistics
from playhead.trace.values import JsonValue


class Event(Placed):
    """One event, with all its fields."""

    at_ms: float
    """When it was written."""
    kind: Text
    """Its kind."""
    what: Text
    """The event in a sentence, shortened."""
    data: JsonValue
    """Its fields, as in the trace."""


class RunReport(Part):
    """What the page shows of one run."""

    started_us: int
    """Microseconds since the Unix epoch."""
    debrief: Debrief
    """The decisions, and where to look first."""
    statistics: Statistics
    """Tokens, cost and time by model, tool and agent."""
    events: tuple[Event, ...]
    """Every event, in the order of the file."""


class PairReport(Part):
    """What the page shows of two runs side by side."""

    original: RunReport
    """The first run."""
    replay: RunReport
    """The run that it is compared with."""
    diff: RunDiff
    """How they differ."""
    verdict: tuple[Text, Text]
    """`identical`, `different`, …, and in what."""
    turns: tuple[tuple[int | None, int | None], ...]
    """The turns of the root agents that correspond; null where one of the runs has none."""
