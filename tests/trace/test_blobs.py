"""Values too large for a line."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from typing import TYPE_CHECKING, Any

import pytest

from playhead.diagnose.integrity import check_trace
from playhead.errors import MissingBlobError
from playhead.trace.blobs import BLOB_BYTES, BlobFolder, create_file
from playhead.trace.events import ToolCallCompleted
from tests.proving import sample
from tests.trace.traces import ending, events_of, header, read, record, unknown

if TYPE_CHECKING:
    from pathlib import Path

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
    """The blob holds the field's JSON, is named by its hash, and the line names it; nobody but the owner reads it."""
    content = json.dumps(LARGE).encode()
    digest = hashlib.sha256(content).hexdigest()
    assert blob_of(trace).name == digest
    assert blob_of(trace).read_bytes() == content
    line = json.loads(trace.read_text().splitlines()[1])
    assert line["data"]["result"] == {"$type": "blob", "sha256": digest, "bytes": len(content)}
    assert line["data"]["call_id"] == "c"
    assert [stat.S_IMODE(each.stat().st_mode) for each in (blob_of(trace), blob_of(trace).parent)] == [0o600, 0o700]


@pytest.mark.slow
@pytest.mark.parametrize(
    "value", [LARGE, [LARGE, 1], {"a": LARGE, "b": [None, 1.5, 2**53 - 1]}, ["ä\U0001f600"] * BLOB_BYTES]
)
def test_a_blob_is_read_back(tmp_path: Path, value: Any):
    """Whatever is large comes back as it was, of unknown kinds too; one that comes again is neither written nor read again."""
    events = [header(), result(value), *[unknown("new-kind", value=value, small=None)] * 5, ending()]
    assert record(tmp_path / "run.jsonl", events) == events_of(tmp_path / "run.jsonl")
    assert verdict(tmp_path / "run.jsonl") == ("ok", [])
    assert len(list((tmp_path / "run.blobs").iterdir())) == 1
    assert len({id(each.event.__pydantic_extra__["value"]) for each in read(tmp_path / "run.jsonl")[0][2:-1]}) == 1  # type: ignore[index]


def test_a_field_up_to_the_limit_stays_in_its_line(tmp_path: Path):
    """Only what is longer than the limit moves; several smaller fields stay; a result of any size is never clipped."""
    value = "x" * (BLOB_BYTES - 2)  # two quotes
    record(tmp_path / "run.jsonl", [header(task=value), result(value), ending()])
    assert [path.name for path in tmp_path.iterdir()] == ["run.jsonl"]
    events = [header(task=value + "x"), result("0123456789" * sample(10_000_000, 300_000)), ending()]
    assert record(tmp_path / "more.jsonl", events) == events_of(tmp_path / "more.jsonl")
    assert len(list((tmp_path / "more.blobs").iterdir())) == 2


def test_a_missing_blob_is_its_own_verdict(trace: Path):
    """The event whose value is gone, or is another, is named by its line; the rest of the trace is sound."""
    blob = blob_of(trace)
    content = bytearray(blob.read_bytes())
    content[100] ^= 1
    blob.write_bytes(content)
    changed = f"line 2: blob: blob {blob.name} was changed after it was written"
    assert verdict(trace) == ("missing-blob", [changed])
    blob.unlink()
    missing = f"line 2: blob: blob {blob.name} cannot be read: No such file or directory"
    assert verdict(trace) == ("missing-blob", [missing])
    assert [each.kind for each in read(trace)[0]] == ["run-started", "run-completed"]
    blob.parent.rmdir()
    assert verdict(trace)[0] == "missing-blob"


@pytest.mark.parametrize("planted", ["pipe", "folder", "link", "link to the folder"])
def test_what_is_no_file_of_the_run_is_not_read(trace: Path, planted: str):
    """A pipe does not make the reader wait, and a link leads nowhere, even to the right content."""
    blob, outside = blob_of(trace), trace.with_name("outside")
    real = blob.parent if planted == "link to the folder" else blob
    real.rename(outside)
    if planted == "pipe":
        os.mkfifo(real)
    elif planted == "folder":
        real.mkdir()
    else:
        real.symlink_to(outside)
    assert verdict(trace)[0] == "missing-blob"


@pytest.mark.parametrize("digest", ["../../../etc/passwd", "", "0" * 63, "A" * 64, "٣" * 64, None, ["a"]])
def test_a_reference_never_leaves_the_folder(tmp_path: Path, digest: Any):
    """A name from a hostile file that is no SHA-256 is not even looked for."""
    with pytest.raises(MissingBlobError, match="which is not a SHA-256"):
        BlobFolder(tmp_path / "run.jsonl").load({"$type": "blob", "sha256": digest})


@pytest.mark.parametrize("size", [BLOB_BYTES, 30 * 2**30])
def test_a_blob_of_another_size_is_not_read(trace: Path, size: int):
    """A file that is not as long as its reference says is refused unread, however large it is."""
    os.truncate(blob_of(trace), size)
    found = verdict(trace)
    assert found[0] == "missing-blob"
    assert ("is larger than" if size > BLOB_BYTES else "was changed after") in found[1][0]


def test_of_many_writers_one_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A file is there once, whole, also on a file system without links; and nothing else stays behind."""

    def write(name: str, content: bytes) -> None:
        os.close(create_file(tmp_path / name, content))

    def without_links(*_: Any, **__: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    write("a", b"1")
    with pytest.raises(FileExistsError):
        write("a", b"2")
    monkeypatch.setattr(os, "link", without_links)
    with pytest.raises(FileExistsError):
        write("a", b"3")
    write("b", b"4")
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == {"a": b"1", "b": b"4"}
