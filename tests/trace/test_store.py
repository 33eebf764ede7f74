"""The folder of traces."""

from __future__ import annotations

import gzip
import os
import re
import stat
from pathlib import Path
from typing import Any

import pytest

from playhead.diagnose.run_summary import RunSummary, summaries, summarise
from playhead.errors import AmbiguousRunError, RunIdError, TraceNotFoundError
from playhead.trace.events import RunCompleted
from playhead.trace.format import checked_run_id, new_run_id
from playhead.trace.store import TraceStore
from playhead.trace.types import Usage
from tests.trace.traces import ending, header, record, recorder_of, thought

IDS = [
    "01JABCDEF00000000000000000",
    "01JABCDEF10000000000000000",
    "01JABCDFF00000000000000000",
    "01JACCDFF00000000000000000",
]
"""Four runs, the oldest first."""

HOSTILE = [
    "", "..", "../x", "/etc/passwd", "a/b", "a\\b", "a\0b", "x" * 129, "-rf", ".hidden", "a b", "a\x1b[31m", "~", "$HOME", "ä", "a:b", "*",
]  # fmt: skip


@pytest.fixture
def store(tmp_path: Path) -> TraceStore:
    """A folder of four runs beside a file that is none of its business."""
    (tmp_path / "x.jsonl").write_text("outside")
    store = TraceStore(tmp_path / "traces")
    store.create()
    for run_id in IDS:
        record(store.path_for(run_id), [header(run_id), ending()])
    return store


@pytest.mark.parametrize("run_id", HOSTILE)
def test_a_hostile_id_is_refused(store: TraceStore, run_id: str):
    """An id that is no portable file name names no run: neither to write nor to read."""
    for use in (checked_run_id, store.path_for, store.resolve):
        with pytest.raises(RunIdError) as caught:
            use(run_id)
        assert str(caught.value).isprintable()


@pytest.mark.parametrize("run_id", ["latest", "latest~2", "a.jsonl", "a.jsonl.gz", "a.jsonl.zst"])
def test_an_id_that_means_something_else_is_refused(store: TraceStore, run_id: str):
    """A run that no reference could reach is not written in the first place."""
    with pytest.raises(RunIdError, match="means something else"):
        store.path_for(run_id)


def test_the_folder(store: TraceStore, tmp_path: Path):
    """Only its owner looks into a folder that we made, runs in it come newest first, one that is not there has none."""
    new = TraceStore(tmp_path / "a" / "b" / "traces")
    with pytest.raises(TraceNotFoundError, match="holds no runs yet"):
        new.resolve("latest")
    assert (new.paths(), summaries(new), new.create(), new.create()) == ([], [], True, False)
    modes = [stat.S_IMODE(folder.stat().st_mode) for folder in (new.folder, *new.folder.parents[:2])]
    assert modes == [0o700] * 3
    (store.folder / "notes.txt").write_text("no trace")
    (store.folder / "folder.jsonl").mkdir()
    assert [summary.run_id for summary in summaries(store)] == IDS[::-1]
    assert [summary.run_id for summary in summaries(store, 2)] == IDS[:-3:-1]
    with pytest.raises(TraceNotFoundError, match=r"folder\.jsonl': a folder, not a trace; --trace-dir names a folder"):
        store.resolve(store.folder / "folder.jsonl")
    for folder in (tmp_path / "x.jsonl", tmp_path / "a\0b"):
        with pytest.raises(TraceNotFoundError, match="cannot be read"):
            TraceStore(folder).paths()


def test_new_ids():
    """New ids are ULIDs, all different, and valid as file names."""
    ids = {checked_run_id(new_run_id()) for _ in range(1000)}
    assert (len(ids), {len(each) for each in ids}) == (1000, {26})


@pytest.mark.parametrize(
    ("reference", "run"),
    [
        ("latest", 3), ("latest~0", 3), ("latest~2", 1), (IDS[0], 0), (IDS[0].lower(), 0), ("01jabcdff", 2), ("01JAC", 3)
    ],
)  # fmt: skip
def test_references(store: TraceStore, reference: str, run: int):
    """A run is meant by its id, a unique beginning of it in any case, or its age."""
    assert store.resolve(reference) == store.path_for(IDS[run])


@pytest.mark.parametrize(
    ("reference", "error", "message"),
    [
        ("01J", AmbiguousRunError, f"4 runs start with '01J': {', '.join(IDS)}"),
        ("latest~4", TraceNotFoundError, "the trace folder {folder} holds 4 runs: no latest~4"),
        ("01JABCDEF20000000000000000", TraceNotFoundError,
         f"no run '01JABCDEF20000000000000000' in {{folder}}. Did you mean '{IDS[1]}'? Known: {', '.join(IDS)}."),
        ("none.jsonl", TraceNotFoundError, "'none.jsonl': no such file"),
        ("a\0b.jsonl", TraceNotFoundError, "'a\\x00b.jsonl': no such file"),
        ("~nobody/x.jsonl", TraceNotFoundError, "'~nobody/x.jsonl': no such file"),
        ("x" * 5000 + ".jsonl", TraceNotFoundError, f"{'x' * 300!r}: no such file"),
    ],
)  # fmt: skip
def test_references_that_fail(store: TraceStore, reference: str, error: Any, message: str):
    """What is meant by nobody, or by too many, says what there is and what is nearest."""
    with pytest.raises(error) as caught:
        store.resolve(reference)
    assert str(caught.value) == message.format(folder=store.folder)


def test_a_path_is_taken_as_it_is(store: TraceStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A trace outside the folder is named by its path: as a `Path`, or as text with the suffix of a trace."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert store.resolve("x.jsonl") == Path("x.jsonl")
    assert store.resolve(str(tmp_path / "x.jsonl")) == tmp_path / "x.jsonl"
    assert store.resolve("~/x.jsonl") == tmp_path / "x.jsonl"
    (tmp_path / "odd name").write_text("")
    assert store.resolve(tmp_path / "odd name") == tmp_path / "odd name"


def test_the_plain_file_comes_before_the_packed_one(store: TraceStore):
    """A run that is there twice, plain and compressed, is read from the plain file."""
    plain = store.path_for(IDS[0])
    packed = plain.with_name(plain.name + ".gz")
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert store.resolve(IDS[0]) == plain
    plain.unlink()
    assert store.resolve(IDS[0]) == store.resolve("01JABCDEF0") == packed


def test_ids_of_any_kind_sort_by_time(tmp_path: Path):
    """Runs with other ids are placed by their first event, whoever touches the file; packed ones by the time of the file."""
    store = TraceStore(tmp_path)
    for number, run_id in enumerate(["zebra", "ant", "bee", "01KABCDEF00000000000000000"]):
        path = store.path_for(run_id)
        record(path, [header(run_id), ending()])
        path.write_bytes(re.sub(rb'"ts":\d+', b'"ts":%d' % (10**15 + number * 10**6), path.read_bytes(), count=1))
        os.utime(path, (2_000_000_000 - number, 2_000_000_000 - number))
    packed = store.path_for("bee").with_suffix(".jsonl.gz")
    packed.write_bytes(gzip.compress(store.path_for("bee").read_bytes()))
    store.path_for("bee").unlink()
    os.utime(packed, (10**9 + 2, 10**9 + 2))
    names = ["01KABCDEF00000000000000000.jsonl", "bee.jsonl.gz", "ant.jsonl", "zebra.jsonl"]
    assert [path.name for path in store.paths()] == names


def test_links_are_not_runs(store: TraceStore, tmp_path: Path):
    """A link in the folder is neither listed nor followed, whether it leads somewhere or not."""
    before = store.paths()
    for name, target in (
        ("link", tmp_path / "x.jsonl"),
        ("dangling", tmp_path / "no"),
        ("loop", store.folder / "loop.jsonl"),
    ):
        (store.folder / f"{name}.jsonl").symlink_to(target)
        with pytest.raises(TraceNotFoundError):
            store.resolve(name)
    assert store.paths() == before


def test_blobs_are_not_written_through_a_link(store: TraceStore, tmp_path: Path):
    """A link in the place of the blob folder costs the event, and leaves the folder outside alone."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (store.folder / "run.blobs").symlink_to(outside)
    recorder = recorder_of(store.path_for("run"))
    assert [recorder.emit(event, "root") for event in (header(), thought(1, 300_000))] == [True, False]
    recorder.seal()
    assert (list(outside.iterdir()), recorder.lost) == ([], 1)


def test_a_summary(path: Path):
    """A run is summed up from its first and its last line."""
    end = RunCompleted(
        status="failed", terminated_by="llm_error", terminated_source="kernel", output={"a": [1]}, duration_ms=1.5,
        usage=Usage(input_tokens=3, output_tokens=4), cost_usd=0.25,
    )  # fmt: skip
    record(path, [header(), thought(1), end])
    summary = RunSummary(
        run_id="run", path=path, started_us=1_790_000_000_000_001, agent="tester", model="test/model", task="Find it.",
        status="failed", terminated_by="llm_error", output='{"a": [1]}', duration_ms=1.5, total_tokens=7, cost_usd=0.25,
    )  # fmt: skip
    packed = path.with_name("run.jsonl.gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert (summarise(path), summary.as_json()["path"]) == (summary, str(path))
    assert summarise(packed).as_json() == {**summary.as_json(), "path": str(packed)}


@pytest.mark.parametrize(("first", "last"), [(5, 7_000), (9_000, 5), (9_000, 9_000), (5, 600_000), (600_000, 600_000)])
def test_a_summary_of_long_lines(path: Path, first: int, last: int):
    """However long the first and the last line are, they are found; what went to a blob is named by its size."""
    task, output = "x" * first, "y" * last
    record(path, [header(task=task), thought(1, last), ending().model_copy(update={"output": output})])
    summary = summarise(path)
    expected = [text if len(text) < 300_000 else f"[{len(text) + 2} bytes]" for text in (task, output)]
    assert [summary.status, summary.task, summary.output] == ["done", *expected]


def test_an_open_run(path: Path):
    """A run without an end is open: whether it goes on, was killed between two lines, or within one."""
    record(path, [header(), thought(1)])
    whole = path.read_bytes()
    for content in (whole, whole[:-5], whole[: whole.index(b"\n") + 1], whole[: whole.index(b"\n") + 9]):
        path.write_bytes(content)
        summary = summarise(path)
        assert (summary.status, summary.task, summary.total_tokens) == ("open", "Find it.", 0)
    path.write_bytes(whole + b'{"seq":\x18\n')
    assert summarise(path).status == "open"


@pytest.mark.parametrize(
    "content",
    [
        b"", b"\n", b"{}\n", b"[]\n", b"null\n", b'{"data":1}\n', b"\xff\n", b"[" * 5000 + b"\n", b"x" * 20_000,
        b'{"ts":1,"data":{"agent":3,"task":"t"}}\n', b'{"ts":"x","data":{"agent":{},"task":"t"}}\n',
        b'{"ts":1,"data":{"agent":{},"task":"t"}}\n{"kind":"run-completed","data":{"duration_ms":"long"}}\n',
    ],
)  # fmt: skip
def test_an_unreadable_run(tmp_path: Path, content: bytes):
    """A file that is no trace does not keep the others from being listed."""
    for name in ("run.jsonl", "run.jsonl.gz", "run.jsonl.zst"):
        (tmp_path / name).write_bytes(content)
        assert summarise(tmp_path / name) == RunSummary("run", tmp_path / name, None, None, None, None, "unreadable")
