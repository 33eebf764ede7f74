"""Many recordings replayed with one change: each replay once, measured, and kept under its group.

    corpus = replay_corpus(paths, system_prompt="Be brief.", repeats=3, baseline=True, margin=0.05)

The data flows one way: recordings → jobs → replays → measures → verdict. The measures of each replay go to a journal of the
group, `corpora/GROUP.jsonl` in the folder of traces, so that a killed corpus can be continued. Its lines are chained
like those of a trace, so that one that was edited is refused. The replays themselves are in `replays/` like any other, and so is
what a judge said of them.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Unpack

from pydantic import TypeAdapter

from playhead.diagnose.diff_calls import Alignment, RunCalls, call_script
from playhead.diagnose.spending import spent_by
from playhead.errors import PlayheadError, TraceWriteError, UsageError
from playhead.kernel.checks import checked_folder
from playhead.kernel.lifecycle.threads import workers
from playhead.kernel.sources import source_info
from playhead.replay.overrides import Overrides
from playhead.replay.recording import Again, load_recording, split
from playhead.replay.success import Check, Judge, SuccessLike, passes, success_of
from playhead.replay.verdict import GROUNDED, Arm, CorpusVerdict, Key, Measures, judge, require_margin
from playhead.settings import load_settings
from playhead.trace.blobs import run_id_of
from playhead.trace.control import locked
from playhead.trace.events import LlmResponded
from playhead.trace.format import checked_run_id, new_run_id
from playhead.trace.line import TAIL
from playhead.trace.redaction import without_credentials
from playhead.trace.store import REPLAYS, TraceStore
from playhead.trace.values import json_hash

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.diagnose.recording import Recording
    from playhead.replay.engine import ReplayResult

BROKEN: Final = ("llm_error", "error", "trace_error", "cancelled")
"""Endings of a replay that say nothing of the change: such a replay runs again when the corpus goes on."""


@dataclass(frozen=True, slots=True)
class Job:
    """One replay to run, or a recorded run to measure. It is pickled where the executor's workers are other processes."""

    path: Path
    """The recording."""
    key: Key
    """Which measures it comes to."""
    changes: Mapping[str, Any]
    """Overrides and options of the replay."""
    check: Check
    """What a success is."""


@dataclass(frozen=True, slots=True)
class Corpus:
    """A change, replayed over many recordings."""

    group: str
    """The name under which the replays are kept."""
    changes: dict[str, Any]
    """The overrides, as recorded."""
    success: str
    """What counted as a success."""
    repeats: int
    """Replays of each recording."""
    baseline: bool
    """Whether each recording was also replayed without the change."""
    verdict: CorpusVerdict
    """The verdict."""
    measured: tuple[Measures, ...]
    """The measures of each replay, in the order of the recordings."""


def replay_corpus(  # noqa: PLR0913 - a verdict states what it rests on
    references: Iterable[str | Path],
    *,
    margin: float,
    repeats: int = 1,
    baseline: bool | Mapping[str, Any] = False,
    success: SuccessLike = "answered",
    executor: Executor | None = None,
    concurrency: int = 4,
    on_progress: Callable[[int, int], object] = lambda *_: None,
    **changes: Unpack[Again],
) -> Corpus:
    """Replay many recordings with one change, and return one verdict: PASS, FAIL or INCONCLUSIVE.

    Blocks until the last replay has ended; each replay runs as `Recording.replay` does, in a thread of its own unless an
    executor is given.

    Args:
        references: the recordings: run ids, paths, `latest`.
        margin: the loss of success that is accepted, as a share: 0.05 is 5 percentage points.
        repeats: replays of each recording. Repeats tell a model's variation from a loss; more recordings tell more.
        baseline: replay each recording without the change as well, and compare with that. Without it the change is compared
            with the recorded runs, and a loss is INCONCLUSIVE: it may be the model's own variation. A mapping has overrides
            of its own, such as the model object that a recording cannot name.
        success: what a success is, besides an answer: `answered` (nothing else), `equal` to the recorded answer, a JSON
            schema, a function of the answer and the recording that returns a bool, or a `playhead.replay.Judge`.
        executor: where replays run, any `concurrent.futures` executor; its workers need the folder of traces and, in other
            processes, changes that can be pickled. By default threads.
        concurrency: replays that run, or wait in the executor, at the same time.
        on_progress: called with the number of replays that are done, and of all.
        changes: overrides and options, as for `Recording.replay`. Options, `agent=` and `program=` among them, hold for the
            baseline too. What is stored under `group=` is not run again, so a corpus that was interrupted goes on under its
            group; by default it is a new id.

    Raises:
        UsageError: an argument is not valid, the group holds replays of another change or another check, or the check
            fails on the first recording.
        TraceError: a reference does not name a recording, or the journal is damaged, cannot be read or written, or is in
            use by another process.
        MissingDependencyError: the extra `stats` is not installed.
    """
    require_margin(margin)
    overrides, options = split(changes)
    others, criterion, check = dict(baseline) if isinstance(baseline, Mapping) else {}, *success_of(success)
    stated = [Overrides.of(each).as_json() for each in (overrides, others)]
    folder = checked_folder(options.get("trace", load_settings().trace_dir))
    group = checked_run_id(options.get("group") or new_run_id())
    options |= {"trace": folder, "group": group}
    least, has_baseline = options.get("min_grounded", GROUNDED), bool(baseline)
    code = None if (agent := options.get("agent")) is None else agent.as_tool().declared(agent.as_tool().hooks())
    asked = f"{criterion}, {least}, {options.get('on_missing')}, {code and code.model_dump_json()}"
    own = source_info("validator", asked, check, *filter(None, [options.get("program")]))
    check = replace(check, trace=folder / REPLAYS) if isinstance(check, Judge) else check
    paths = dict.fromkeys(map(TraceStore(folder).resolve, references))
    if twice := [name for name, number in Counter(map(run_id_of, paths)).items() if number > 1]:
        raise UsageError(f"two files hold a run {twice[0]}, and a corpus knows runs by their ids: name one of them")
    # Both arms of a recording run together: a provider that changes meanwhile changes both.
    arms: dict[Arm, Any] = {"baseline" if baseline else "recorded": options | others, "changed": options | overrides}
    jobs = [
        Job(path, (run_id_of(path), arm, repeat), given, check)
        for path in paths
        for repeat in range(repeats)
        for arm, given in arms.items()
        if repeat == 0 or arm != "recorded"
    ]
    # A hash shows nothing of the change, which may hold what is redacted elsewhere. What is not known is never the same.
    is_known = all(each.fingerprint is not None for each in (own, *(code.sources if code else ())))
    seed = chained(f"{json_hash(stated)} {own.model_dump_json() if is_known else new_run_id()}".encode(), b"")
    journal = folder / "corpora" / f"{group}.jsonl"
    for first in [load_recording(job.path) for job in jobs[:1]]:  # a check that fails does so before any replay
        passes(check, first, first, [arm.get("model") for arm in arms.values()])
    with held(journal) as lock:
        found = read_journal(journal, seed)
        missing = [job for job in jobs if job.key not in found]
        for done, measures in enumerate(run_jobs(missing, executor or Threads(), concurrency), 1):
            # What a broken replay came to is not kept, so it runs again.
            if measures.replay is not None or measures.success is not None:
                keep(journal, seed, measures)
            found[measures.key] = measures
            on_progress(len(jobs) - len(missing) + done, len(jobs))
        fcntl.flock(lock, fcntl.LOCK_UN)  # workers that were forked have the descriptor, too
    measured = tuple(found[job.key] for job in jobs)
    verdict = judge(measured, margin=margin, baseline=has_baseline, min_grounded=least)
    return Corpus(group, stated[0], criterion, repeats, has_baseline, verdict, measured)


def run_jobs(jobs: Iterable[Job], executor: Executor, concurrency: int) -> Iterator[Measures]:
    """Yield the measures of each job once it is done; so many jobs at a time are with the executor."""
    waiting, running, most = iter(jobs), set[Future[Measures]](), max(concurrency, 1)
    try:
        while running := running | {executor.submit(run_job, job) for job in islice(waiting, most - len(running))}:
            done, running = wait(running, return_when=FIRST_COMPLETED)
            yield from (future.result() for future in done)
    finally:
        for future in running:
            future.cancel()


class Threads(Executor):
    """Runs each job in a daemon thread: Ctrl-C does not wait for a model that does not answer."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:  # noqa: ANN401 - the function's own
        """Start a job."""
        future: Future[Any] = Future()

        def work() -> None:
            try:
                future.set_result(function(*args, **kwargs))
            except BaseException as error:  # noqa: BLE001 - raised where the result is asked for
                future.set_exception(error)

        workers.submit(work, lambda _: None)
        return future


def run_job(job: Job) -> Measures:
    """Run one replay and measure it; with the reason where it cannot be judged. This is what an executor's workers do."""
    try:
        recording = load_recording(job.path)
        if job.key[1] == "recorded":
            why = None if recording.status == "closed" else f"the recording is {recording.status}"
            return replace(_measured(job, recording, recording, why), grounded=1.0)
        done = recording.replay_sync(**job.changes)
        own = None if done.run.terminated_by in BROKEN else done.run.run_id
        return replace(_measured(job, recording, done.recording, _doubt(done)), replay=own, grounded=done.grounded)
    except PlayheadError as error:
        return Measures(*job.key, why=f"{type(error).__name__}: {error}")


def _doubt(outcome: ReplayResult) -> str | None:
    """Return why nothing can be concluded from a replay, in words that many replays share."""
    run = outcome.run
    # What breaks is not kept, so its words may be those of the run.
    broken = run.terminated_by in BROKEN and (outcome.stopped or run.error or run.terminated_by)
    if broken or outcome.stopped is not None:
        return f"the replay was stopped: {without_credentials(broken or run.terminated_by)}"
    return None if outcome.conclusive else "too few results are recorded ones, or the recording is not whole"


def _measured(job: Job, recording: Recording, own: Recording, why: str | None) -> Measures:
    """Return what a run came to: a replay, or the recorded run itself."""
    total = spent_by(own.records)
    script = [] if own is recording else call_script(Alignment(RunCalls(recording), RunCalls(own)))
    return Measures(
        *job.key,
        success=None if why is not None else passes(job.check, own, recording),
        why=why,
        edits=sum(each.kind != "same" for each in script),
        tokens=None if total.usage.unknown else total.usage.total_tokens,
        cost_usd=None if total.cost_unknown else total.cost_usd,
        latency_ms=sum(each.event.latency_ms for each in own.records if isinstance(each.event, LlmResponded)),
    )


def held(journal: Path) -> BinaryIO:
    """Return a group's journal, which is created if there is none; until it is closed, no other corpus gets it.

    Raises:
        TraceWriteError: it cannot be created, or another process holds it.
    """
    try:
        TraceStore(journal.parent).create()
        return os.fdopen(locked(journal, fcntl.LOCK_EX, os.O_RDWR | os.O_CREAT), "rb")
    except OSError as error:
        why = "another process replays this group" if isinstance(error, BlockingIOError) else error.strerror or error
        raise TraceWriteError(f"the journal {journal} cannot be used: {why}") from None


def read_journal(path: Path, seed: bytes) -> dict[Key, Measures]:
    """Return the measures that a group's journal holds; a last line that was cut off is taken away.

    Raises:
        UsageError: it is about another change, or a line is not what was written.
    """
    whole, end, _ = path.read_bytes().rpartition(b"\n")
    os.truncate(path, len(whole + end))
    lines = whole.splitlines()
    if any(line != chained(line[:-TAIL], before) for before, line in pairwise([seed, *lines])):
        why = f"is of another change, success, check or code, or a line of {path} is not what was written"
        raise UsageError(f"the group {path.stem} {why}: name another group, which replays anew")
    return {each.key: each for each in map(TypeAdapter(Measures).validate_json, lines)}


def keep(path: Path, seed: bytes, measures: Measures) -> None:
    """Append a line to a journal."""
    with path.open("ab+") as journal:
        journal.seek(-min(journal.tell(), TAIL), os.SEEK_END)
        journal.write(chained(json.dumps(asdict(measures)).encode()[:-1], journal.read()[:-1] or seed) + b"\n")


def chained(body: bytes, before: bytes) -> bytes:
    """Return the line of a journal with this body, and a hash of it and of the line before, as a trace has."""
    return body + b',"h":"%b"}' % sha256(before[-66:-2] + body).hexdigest().encode()
