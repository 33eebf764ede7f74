"""`playhead diff`: two runs laid side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.cli import exits, options
from playhead.cli.output import PROSE_WIDTH, text_console, write_json
from playhead.cli.reading import note_state, read_run
from playhead.diagnose.diff import diff_recordings
from playhead.diagnose.diff_view import DiffView
from playhead.errors import TraceNotFoundError, UsageError
from playhead.trace.store import TraceStore

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.diagnose.diff_types import RunDiff
    from playhead.trace.recording import Recording


@options.command(
    "diff",
    example="playhead diff latest~1 latest\n  playhead diff latest --replays     # a replay against its original",
    exits={
        0: "identical: the same answer, the same calls, as many turns",
        1: "different",
        4: "it cannot be told: a recording has no end, or is damaged",
        **options.UNREADABLE,
    },
)
@options.run_argument("first", metavar="A")
@options.run_argument("second", metavar="[B]", required=False)
def command(*, first: str, second: str | None, trace_dir: Path | None, as_json: bool) -> int:
    """Compare two runs: what was changed, where they part first, and what became of calls, answer, tokens and time.

    A and B are runs: a run id or the start of one, `latest`, `latest~2` (two before it), or the path of a trace file.
    With A alone, A has to be a replay, and is compared with the run that it replays.
    """
    store = options.open_store(trace_dir)
    recording = read_run(store, first)
    pair = (original_of(recording), recording) if second is None else (recording, read_run(store, second))
    for each in pair:
        note_state(each)
    diff = diff_recordings(*pair)
    if as_json:
        write_json([diff.as_json()])
    else:
        text_console(pipe_width=PROSE_WIDTH).print(DiffView(diff), crop=False)
    return exit_code(diff, *pair)


def original_of(replay: Recording) -> Recording:
    """Return the recording of the run that a replay replays, from the folder of traces that the replay belongs to.

    Raises:
        UsageError: it is no replay.
        TraceNotFoundError: the original is not in that folder.
    """
    run_id = replay.header.replay_of
    if run_id is None:
        raise UsageError(f"{replay.path.name} is no replay, so there are two runs to name: playhead diff A B")
    store = TraceStore.of(replay.path)
    try:
        return read_run(store, run_id)
    except TraceNotFoundError:
        raise TraceNotFoundError(
            f"{replay.path.name} replays {run_id[:128]!r}, which is not in {store.folder}; name both: playhead diff A B"
        ) from None


def exit_code(diff: RunDiff, *recordings: Recording) -> int:
    """Return 0 for identical runs, 1 for different ones, and 4 when one of them is not whole."""
    if any(recording.status != "closed" for recording in recordings):
        return exits.INCONCLUSIVE
    return exits.OK if diff.identical else exits.FAILED
