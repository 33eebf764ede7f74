"""Mode `reproduce`: run a recording again with everything frozen, and compare every event.

A match proves that the code still behaves as recorded. It proves nothing about the model or the tools, which are not
called.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from playhead.agent.running import record_run
from playhead.diagnose.divergence import Comparison
from playhead.errors import PlayheadError
from playhead.kernel.session import RunContext, Tool
from playhead.replay.divergence import Divergence, divergences_of, is_ending
from playhead.replay.frozen import FrozenWorld, as_declared
from playhead.replay.loading import read_reference, require_repeatable
from playhead.replay.prefix import without_end
from playhead.replay.redacted import markers_in
from playhead.replay.steered import Races, RecordedStops
from playhead.trace.clock import SystemClock
from playhead.trace.format import new_run_id
from playhead.trace.owners import is_within, tool_of
from playhead.trace.parameters import comparable
from playhead.trace.recorder import OnRecord, Recorder, Subscriptions
from playhead.trace.redaction import Redactor

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from playhead.agent.agent import Agent
    from playhead.diagnose.recording import Recording, RecordingStatus
    from playhead.trace.header import SourceInfo, SourceKind
    from playhead.trace.line import Record
    from playhead.trace.types import Content


Change = Literal["code", "value", "added", "removed", "unknown"]
_SENTENCES: Final[dict[Change, str]] = {
    "code": "the code of {} differs",
    "value": "a value that {} holds differs",
    "added": "{} was added",
    "removed": "{} was removed",
    "unknown": "whether {} differs is not known: its source is not, or its values were recorded with another user's key",
}


@dataclass(frozen=True, slots=True)
class SourceChange:
    """Code that a reproduction does not run and that changed, or may have changed, since the recording."""

    owner: str
    """The agent: `root`, or a sub-agent's owner."""
    kind: SourceKind
    """What it is for."""
    name: str
    """What it is called."""
    change: Change
    """What changed: its `code`, or a `value` that it holds; `added` or `removed`; or `unknown`."""

    def __str__(self) -> str:
        what = self.kind if self.kind == self.name else f"{self.kind} {self.name}"
        return _SENTENCES[self.change].format(what if self.owner == "root" else f"{what} of {self.owner}")


@dataclass(frozen=True, slots=True)
class Reproduction:
    """The outcome of `reproduce`."""

    run_id: str
    """The recorded run."""
    identical: bool
    """Whether every event of the agents is the same, up to the end of the recording."""
    events: int
    """The number of recorded events that were compared."""
    divergences: tuple[Divergence, ...]
    """Where the code behaves differently. The first divergence is the cause; later ones may follow from it."""
    status: RecordingStatus
    """`closed`, or `open` or `truncated` when the recording ends before the run did."""
    cut_short: bool
    """Whether the recording lacks answers, because it ends before the run did or is of a stopped replay. The agents'
    endings are then not compared."""
    redacted: bool
    """Whether user-defined redaction rules were applied to the recording, or a divergence holds what was redacted by default.
    If redaction changed a text that Playhead itself writes or reads, the replay differs, which proves nothing."""
    not_entered: tuple[str, ...] = ()
    """Owners that were served as a whole and not compared: tool bodies, and agents that a killswitch ended from outside
    or during parallel calls."""
    raced: tuple[str, ...] = ()
    """Agents whose ending in this way also ended the run. They are compared up to that point."""
    changed_sources: tuple[SourceChange, ...] = ()
    """With `agent=`: code that a reproduction does not run and that differs, or may differ, from the recording. With `program=`:
    recorded functions whose code differs, or that of what they name in modules of yours."""
    not_compared: tuple[str, ...] = ()
    """What could not be compared: event kinds and fields that this version does not know, and request parameters
    without a fingerprint or with one made with another key."""
    ambiguous: tuple[str, ...] = ()
    """Of a program: why the reproduction is inconclusive. Equal calls of several threads or tasks were answered differently,
    a call was cancelled, or redaction hides what was called."""
    notes: tuple[str, ...] = ()
    """Of a program: the tools that it does not call through Playhead, so that what it does for them is not frozen; and where tasks
    that were cancelled, or at work when their function ended, came less or more far than in the recording."""

    @property
    def is_whole(self) -> bool:
        """Whether the recording ends where the run did, so that `identical` is about all of the run."""
        return self.status == "closed" and not self.cut_short


async def reproduce(recording: Recording | str | Path, *, agent: Agent | None = None) -> Reproduction:
    """Run a recording again with model, tools and facts frozen, and compare every event.

    Nothing real is called: no model, no tool body, no approver. Without `agent`, the agent is rebuilt from the
    recording.

    Args:
        recording: the recording, or a reference to it.
        agent: the recorded agent, to take its tools and strategy from code.

    Raises:
        NotReplayableError: the recording is damaged or was imported.
        UnknownStrategyError: the recording's strategy is not registered.
        TraceError: the reference does not name a readable trace.
    """
    recording = read_reference(recording) if isinstance(recording, (str, Path)) else recording
    require_repeatable(recording, "there is nothing that could do again, event by event, what it did")
    ending = recording.ending
    stopped = ending is not None and ending.terminated_by in ("replay_stopped", "cancelled")
    known = replace(recording, records=tuple(without_end(recording))) if stopped else recording
    world = FrozenWorld(known, tools_from_code=agent is not None)
    follower = Follower(known, world.races, open_ended=world.is_open, after_end=world.after_end)
    await run_frozen(world, agent, follower, None, None)
    if follower.error is not None:
        raise follower.error
    cut_short = bool(world.after_end) or known is not recording
    divergences = divergences_of(follower.comparison, cut_short=cut_short)
    return Reproduction(
        run_id=recording.run_id,
        identical=not divergences,
        events=follower.comparison.events(),
        divergences=divergences,
        status=recording.status,
        cut_short=cut_short,
        redacted=recording.header.redacted or any(markers_in([each.expected, each.actual]) for each in divergences),
        not_entered=tuple(sorted(set(world.races.inside.values()))),
        raced=tuple(sorted(world.races.until)),
        not_compared=tuple(sorted(follower.comparison.not_compared)),
        changed_sources=tuple(changed_sources(recording, world.sources)),
    )


class Follower:
    """Compares the events of a frozen run with its recording as they occur.

    It stores an error of the comparison itself, because the recorder only logs errors of subscribers.
    """

    def __init__(self, recording: Recording, races: Races, *, open_ended: bool, after_end: Sequence[str] = ()) -> None:
        """Start; what owners write because they end is ignored if they, or agents above them, are in `after_end`."""
        self._races = races
        self._after_end = after_end
        given = map(self.compared, filter(self.is_given, recording.records))
        self.comparison = Comparison(given, open_ended=open_ended, open_owners=races.until)
        self.error: Exception | None = None

    def __call__(self, record: Record) -> None:
        """Compare the next event, and store an error of the comparison."""
        try:
            self.hear(record)
        except Exception as error:  # noqa: BLE001 - raised when the run is over
            self.error = self.error or error

    def is_given(self, record: Record) -> bool:
        """Return whether a recorded event must recur: not if it is served as a whole or follows a race."""
        return record.owner not in self._races.inside and record.seq <= self._races.until.get(record.owner, record.seq)

    def compared(self, record: Record) -> Record:
        """Return the record in the form that is compared."""
        return record

    def hear(self, record: Record) -> None:
        """Compare the next event."""
        if not (is_ending(record) and any(is_within(owner, record.owner) for owner in self._after_end)):
            self.comparison.add(record)


async def run_frozen(
    world: FrozenWorld, agent: Agent | None, hear: OnRecord, task: Content | None, redactor: Redactor | None
) -> None:
    """Run the recording of a world again, with nothing live."""
    recording = world.recording
    subscriptions = Subscriptions()
    subscriptions.add(None, hear)
    redactor = redactor or Redactor(detects=recording.header.redaction is None)
    recorder = Recorder(SystemClock(), redactor=redactor, subscriptions=(subscriptions,))
    run = RunContext(new_run_id(), recorder, world, steering=RecordedStops(recording))
    header, tools = recording.header.agent, dict[str, "Tool"]()
    if agent is not None:
        header, tools, parts = as_declared(agent.header, header), agent.tools, agent.as_tool()
        world.hooks[recording.root.owner] = parts.hooks()
        world.sources[recording.root.owner] = parts.sources()
    with suppress(PlayheadError):  # a recorded failure recurs; anything else shows as a divergence
        await record_run(
            run,
            header,
            world.answers_of("root", header.model),
            tools,
            recording.header.task if task is None else task,
            replay_of=recording.run_id,
            replay_mode="reproduce",
        )


def changed_sources(recording: Recording, now: Mapping[str, tuple[SourceInfo, ...]]) -> Iterator[SourceChange]:
    """Yield the changes, agent by agent.

    A sub-agent that was entered is compared part by part instead of as a whole.
    """
    entered = {("agent", tool_of(name)) for name in now}
    for owner, sources in now.items():
        started = recording.owners[owner].started
        then, given = _by_place(started.agent.sources if started else ()), _by_place(sources)
        for place in {**then, **given}:
            change = _change(then.get(place), given.get(place))
            if change is not None and place[:2] not in entered:
                yield SourceChange(owner, *place[:2], change)


def _change(then: SourceInfo | None, now: SourceInfo | None) -> Change | None:
    if then is None or now is None:
        return "removed" if now is None else "added"
    if None in (then.fingerprint, now.fingerprint):
        return "unknown"
    if then.fingerprint != now.fingerprint:
        return "code"
    if then.values == now.values:
        return None
    known = None in (then.values, now.values) or comparable(then.values or "", now.values or "")
    return "value" if known else "unknown"


def _by_place(sources: Iterable[SourceInfo]) -> dict[tuple[SourceKind, str, int], SourceInfo]:
    """Return sources by kind, name, and number among those of one name."""
    seen: Counter[tuple[SourceKind, str]] = Counter()
    found: dict[tuple[SourceKind, str, int], SourceInfo] = {}
    for each in sources:
        found[each.kind, each.name, seen[each.kind, each.name]] = each
        seen[each.kind, each.name] += 1
    return found
