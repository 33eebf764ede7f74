"""Values too large for a line."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from playhead.errors import MissingBlobError
from playhead.trace.blobs import BLOB_BYTES, LARGEST_BLOB, BlobFolder, run_id_of
from playhead.trace.events import ToolCallCompleted
from playhead.trace.integrity import check_trace
from tests.trace.traces import ending, events_of, header, read, record, unknown

LARGE = "x" * BLOB_BYTES


def result(value: Any) -> ToolCallCompleted:
    """Return a call's result of this value."""
    return ToolCallCompleted(call_id="c", tool="t", position=0, ok=True, result=value)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A trace with one blob."""
    record(tmp_path / "run.jsonl", [header(), result(LARGE), ending()])
    return tmp_path / "run.jsonl"


def blob_of(trace: Path) -> Path:
    """Return the only blob of a trace."""
    (blob,) = trace.with_name("run.blobs").iterdir()
    return blob


def verdict(trace: Path) -> tuple[str, list[str]]:
    """Return what `check` says."""
    check = check_trace(trace)
    return check.verdict, [str(problem) for problem in check.problems]


def test_a_large_field_goes_whole_to_a_blob(trace: Path):
    """The blob holds the field's JSON, is named by its hash, and the line names it."""
    content = json.dumps(LARGE).encode()
    digest = hashlib.sha256(content).hexdigest()
    assert blob_of(trace).name == digest
    assert blob_of(trace).read_bytes() == content
    line = json.loads(trace.read_text().splitlines()[1])
    assert line["data"]["result"] == {"$type": "blob", "sha256": digest, "bytes": len(content)}
    assert line["data"]["call_id"] == "c"


@pytest.mark.parametrize(
    "value", [LARGE, [LARGE, 1], {"a": LARGE, "b": [None, 1.5, 2**53 - 1]}, ["ä\U0001f600"] * BLOB_BYTES]
)
def test_a_blob_is_read_back(tmp_path: Path, value: Any):
    """Whatever is large comes back as it was, and the trace is sound."""
    events = record(tmp_path / "run.jsonl", [header(), result(value), result(value), ending()])
    assert events_of(tmp_path / "run.jsonl") == events
    assert verdict(tmp_path / "run.jsonl") == ("ok", [])


def test_a_field_up_to_the_limit_stays_in_its_line(tmp_path: Path):
    """Only what is longer than the limit moves; several smaller fields stay, however long their line is."""
    value = "x" * (BLOB_BYTES - 2)  # two quotes
    record(tmp_path / "run.jsonl", [header(task=value), result(value), ending()])
    assert [path.name for path in tmp_path.iterdir()] == ["run.jsonl"]
    record(tmp_path / "more.jsonl", [header(task=value + "x"), ending()])
    assert len(list((tmp_path / "more.blobs").iterdir())) == 1


def test_equal_values_share_a_blob(tmp_path: Path):
    """A value that comes again is not written again; nothing temporary is left."""
    record(tmp_path / "run.jsonl", [header(), *[result(LARGE)] * 5, result(LARGE + "y"), ending()])
    assert len(list((tmp_path / "run.blobs").iterdir())) == 2


def test_threads_that_store_the_same_value(tmp_path: Path):
    """One value stored by many threads at once is one blob, whole."""
    folder = BlobFolder(tmp_path / "run.jsonl")
    data = json.dumps({"a": LARGE, "b": LARGE}).encode()
    results: list[bytes] = []
    threads = [threading.Thread(target=lambda: results.append(folder.store_large(data))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(results)) == 1
    assert len(results) == 8
    assert folder.resolve(json.loads(results[0])) == {"a": LARGE, "b": LARGE}
    assert len(list(folder.path.iterdir())) == 1


def test_blobs_are_private(trace: Path):
    """Nobody but the owner reads blobs."""
    assert stat.S_IMODE(blob_of(trace).stat().st_mode) == 0o600
    assert stat.S_IMODE(blob_of(trace).parent.stat().st_mode) == 0o700


def test_a_blob_of_an_unknown_kind(tmp_path: Path):
    """Large fields of kinds that this version does not know move and come back, too."""
    written = record(tmp_path / "run.jsonl", [header(), unknown("new-kind", value=LARGE, small=None), ending()])
    assert events_of(tmp_path / "run.jsonl") == written
    assert (tmp_path / "run.blobs").is_dir()


# ── what can be wrong with a blob ────────────────────────────────────────────────────────────────────────────────────


def test_a_missing_blob_is_its_own_verdict(trace: Path):
    """The event whose value is gone is named by its line; the rest of the trace is sound."""
    blob = blob_of(trace)
    blob.unlink()
    assert verdict(trace) == (
        "missing-blob",
        [f"line 2: blob: blob {blob.name} cannot be read: No such file or directory"],
    )
    records, _ = read(trace)
    assert [each.kind for each in records] == ["run-started", "run-completed"]


def test_a_changed_blob_is_noticed(trace: Path):
    """Every changed bit of a blob is noticed by its hash."""
    blob = blob_of(trace)
    content = bytearray(blob.read_bytes())
    content[100] ^= 1
    blob.write_bytes(content)
    assert verdict(trace) == (
        "missing-blob",
        [f"line 2: blob: blob {blob.name} holds something else than when it was written"],
    )


def test_a_folder_of_blobs_that_is_gone(trace: Path):
    """A trace that was moved without its blobs says so."""
    blob_of(trace).unlink()
    trace.with_name("run.blobs").rmdir()
    assert verdict(trace)[0] == "missing-blob"


def replace_by_pipe(blob: Path) -> None:
    """Put a pipe in the place of a blob."""
    blob.unlink()
    os.mkfifo(blob)


def replace_by_folder(blob: Path) -> None:
    """Put a folder in the place of a blob."""
    blob.unlink()
    blob.mkdir()


def replace_by_link(blob: Path) -> None:
    """Move a blob elsewhere and link to it."""
    outside = blob.parent.parent / "outside"
    blob.rename(outside)
    blob.symlink_to(outside)


def replace_folder_by_link(blob: Path) -> None:
    """Move the folder elsewhere and link to it."""
    blob.parent.rename(blob.parent.parent / "outside")
    blob.parent.symlink_to(blob.parent.parent / "outside")


@pytest.mark.parametrize("replace", [replace_by_pipe, replace_by_folder, replace_by_link, replace_folder_by_link])
def test_what_is_no_file_of_the_run_is_not_read(trace: Path, replace: Any):
    """A pipe does not make the reader wait, and a link leads nowhere, even to the right content."""
    replace(blob_of(trace))
    assert verdict(trace)[0] == "missing-blob"


@pytest.mark.parametrize("digest", ["../../../etc/passwd", "", "0" * 63, "0" * 65, "A" * 64, "٣" * 64, None, 3, ["a"]])
def test_a_reference_never_leaves_the_folder(tmp_path: Path, digest: Any):
    """A name from a hostile file that is no SHA-256 is not even looked for."""
    with pytest.raises(MissingBlobError, match="which is no SHA-256"):
        BlobFolder(tmp_path / "run.jsonl").load({"$type": "blob", "sha256": digest})


def test_a_blob_that_is_no_json(tmp_path: Path):
    """Content that matches its hash and is no JSON is an error like the others."""
    folder = tmp_path / "run.blobs"
    folder.mkdir()
    digest = hashlib.sha256(b"{").hexdigest()
    (folder / digest).write_bytes(b"{")
    with pytest.raises(MissingBlobError, match="holds no JSON"):
        BlobFolder(tmp_path / "run.jsonl").load({"sha256": digest, "bytes": 1})


@pytest.mark.parametrize("size", [BLOB_BYTES, 30 * 2**30])
def test_a_blob_of_another_size_is_not_read(trace: Path, size: int):
    """A file that is not as long as its reference says is refused unread, however large it is."""
    os.truncate(blob_of(trace), size)
    found = verdict(trace)
    assert found[0] == "missing-blob"
    assert f"is of {size} bytes, which is not what was written" in found[1][0]


@pytest.mark.parametrize("size", [LARGEST_BLOB + 1, 30 * 2**30])
def test_a_blob_that_is_too_large_is_not_read(trace: Path, size: int):
    """A reference that owns up to a size that no memory holds is not believed either."""
    blob = blob_of(trace)
    os.truncate(blob, size)
    with pytest.raises(MissingBlobError, match=f"is of {size} bytes"):
        BlobFolder(trace).load({"sha256": blob.name, "bytes": size})


def test_a_blob_named_many_times_is_read_once(tmp_path: Path):
    """A small trace that names a large blob again and again costs one copy of it."""
    record(tmp_path / "run.jsonl", [header(), *[result(LARGE)] * 50, ending()])
    records, _ = read(tmp_path / "run.jsonl")
    assert len({id(each.event.result) for each in records if isinstance(each.event, ToolCallCompleted)}) == 1


@pytest.mark.parametrize(
    ("name", "run_id"),
    [("a.jsonl", "a"), ("a.jsonl.gz", "a"), ("a.jsonl.zst", "a"), ("a.b.jsonl", "a.b"), ("a", "a")],
)
def test_the_run_id_of_a_file(name: str, run_id: str):
    """A file's name without what says how it is packed."""
    assert run_id_of(Path("/x") / name) == run_id
