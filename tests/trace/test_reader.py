"""Reading a trace back."""

from __future__ import annotations

import gzip
import os
import sys
import tracemalloc
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from playhead.diagnose.integrity import check_trace
from playhead.diagnose.recording import read_recording
from playhead.diagnose.run_summary import RunSummary, summarise
from playhead.errors import (
    MissingDependencyError,
    NotATraceError,
    PlayheadError,
    TraceError,
    TraceFormatError,
    TraceNotFoundError,
)
from playhead.trace import VERSION, reader
from playhead.trace.format import FORMAT
from playhead.trace.reader import Problem, scan, zstd
from playhead.trace.store import TraceStore
from tests.proving import sample
from tests.trace.traces import ending, events_of, header, read, record, rehashed, thought, thoughts, unknown

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of a sound trace of 200 events."""
    path = tmp_path_factory.mktemp("sound") / "run.jsonl"
    record(path, thoughts(200))
    return path.read_bytes()


PACKERS: dict[str, Any] = {"gz": gzip.compress, "zst": zstd().compress}


@pytest.mark.parametrize("suffix", PACKERS)
def test_a_compressed_trace_reads_as_the_plain_one(path: Path, suffix: str):
    """Compression changes nothing that is read: same records, blobs, verdict and head."""
    record(path, [header(task="x" * 300_000), thought(1), ending()])
    packed = path.with_name(f"run.jsonl.{suffix}")
    packed.write_bytes(PACKERS[suffix](path.read_bytes()))
    assert read(packed) == read(path)
    plain, check = check_trace(path), check_trace(packed)
    assert (check.verdict, check.head) == (plain.verdict, plain.head) == ("ok", plain.head)


@pytest.mark.parametrize("suffix", PACKERS)
def test_a_damaged_compressed_trace(tmp_path: Path, content: bytes, suffix: str):
    """Wherever compressed data were cut, what can be unpacked is read, and the cut is told; no changed byte goes unnoticed."""
    packed = bytearray(PACKERS[suffix](content))
    path = tmp_path / f"run.jsonl.{suffix}"
    loaded = [0]
    for size in range(0, len(packed), sample(97, 970)):
        path.write_bytes(packed[:size])
        with suppress(TraceError):
            records, problems = read(path)
            assert [each.event for each in records] == thoughts(200)[: len(records)]
            assert [problem.kind for problem in problems] == ["truncated"]
            assert "the compressed data end here" in problems[0].message
            loaded.append(len(records))
    assert loaded == sorted(loaded)
    assert suffix == "zst" or loaded[-1] > 100
    for place in range(12, len(packed), sample(31, 620)):  # the header of gzip holds what matters to nobody
        packed[place] ^= 0x55
        path.write_bytes(packed)
        packed[place] ^= 0x55
        with suppress(TraceError):
            assert check_trace(path).verdict != "ok"


def test_without_zstd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Where the package for .zst is missing, the error says how to get it."""
    for name in ("compression", "compression.zstd", "backports", "backports.zstd"):
        monkeypatch.setitem(sys.modules, name, None)
    (tmp_path / "run.jsonl.zst").write_bytes(b"")
    with pytest.raises(MissingDependencyError, match=r"pip install 'playhead\[zstd\]'"):
        read(tmp_path / "run.jsonl.zst")


WRITTEN = f'"format":"{FORMAT}"'.encode()
START = b'{"seq":0,"ts":1,"kind":"run-started","owner":"root","data":{"format":"2.0"'


def read_in_every_way(path: Path) -> None:
    """Do everything that reads a trace; only our own errors may come out."""
    for function in (check_trace, read_recording, lambda path: list(scan(path))):
        with suppress(PlayheadError):
            function(path)


@settings(max_examples=sample(150, 20))
@given(
    st.one_of(
        st.binary(max_size=300),
        st.binary(max_size=50).map(lambda tail: START + tail),
        st.lists(st.sampled_from([b"\n", START, b'"', b"}", b"{", b",", b'"h":"', b"0" * 64, b"\x18", b"\xff"])).map(
            b"".join
        ),
    ),
    st.sampled_from([".jsonl", ".jsonl.gz", ".jsonl.zst"]),
)
@example(b"\n", ".jsonl")
@example(b"\x18\n", ".jsonl")
@example(b"\x1f\x8b", ".jsonl.gz")
def test_garbage(tmp_path_factory: pytest.TempPathFactory, garbage: bytes, suffix: str):
    """No file whatever gives anything but a verdict or one of our errors."""
    path = tmp_path_factory.mktemp("garbage") / f"run{suffix}"
    path.write_bytes(garbage)
    read_in_every_way(path)


@pytest.mark.parametrize(
    ("garbage", "message"),
    [
        (b"", "run.jsonl is empty"),
        (b'{"a": 1}\n{"a": 2}\n', "run.jsonl is not a Playhead trace: its first line is not an event"),
        (b'{"seq":0', "run.jsonl is not a trace that can be read: it was cut within its first line"),
        (b"\x00" * 5000, "run.jsonl is not a trace that can be read: it was cut within its first line"),
    ],
)
def test_what_is_no_trace(path: Path, garbage: bytes, message: str):
    """A file that is no trace is refused in one clear line."""
    path.write_bytes(garbage)
    with pytest.raises(NotATraceError) as caught:
        read(path)
    assert str(caught.value) == message


def test_what_cannot_be_opened(tmp_path: Path):
    """No file, a folder, a name that is none: one clear line each; a pipe is no run, so nobody waits for its writer."""
    (tmp_path / "folder.jsonl").mkdir()
    for path in (tmp_path / "none.jsonl", tmp_path / "folder.jsonl", tmp_path / "a\0b.jsonl", tmp_path / ("x" * 300)):
        with pytest.raises(TraceNotFoundError):
            check_trace(path)
    os.mkfifo(tmp_path / "pipe.jsonl")
    assert TraceStore(tmp_path).paths() == []
    with pytest.raises(TraceNotFoundError):
        TraceStore(tmp_path).resolve(tmp_path / "pipe.jsonl")


def rewrite(path: Path, content: bytes, *changes: tuple[bytes, bytes]) -> None:
    """Write a trace with something replaced in every line, chained as if it had been written so."""
    for old, new in changes:
        content = content.replace(old, new)
    path.write_bytes(b"".join(rehashed(content.splitlines())))


@pytest.mark.parametrize(
    ("suffix", "version", "versions", "reads"),
    [
        ("", "1.0", '{"playhead":"0.1.0","python":"3.11.7"}', "Playhead 0.1"),
        (".gz", "1.9", "{}", "Playhead 0.1"),
        (".zst", "3.0", '{"playhead":"7.2.0"}', "Playhead 7.2.0"),
        ("", "10.3", "{}", "a newer Playhead"),
        ("", "3", '{"playhead":"7\\u001b[2J"}', "a newer Playhead"),
    ],
)
def test_another_major_format_is_refused(
    path: Path, content: bytes, suffix: str, version: str, versions: str, reads: str
):
    """What this version could misread it does not read, and one sentence names the version of Playhead that reads it."""
    written_by = (b'"versions":{}', f'"versions":{versions}'.encode())
    rewrite(path, content, written_by, (WRITTEN, f'"format":"{version}"'.encode()))
    pack: Any = {"": bytes, ".gz": gzip.compress, ".zst": zstd().compress}[suffix]
    packed = path.with_name(f"old.jsonl{suffix}")
    packed.write_bytes(pack(path.read_bytes()))
    with pytest.raises(TraceFormatError) as raised:
        read(packed)
    assert str(raised.value) == (
        f"{packed.name} is in trace format {version}, which {reads} reads; Playhead {VERSION} reads {FORMAT}"
    )
    assert summarise(packed) == RunSummary("old", packed, None, None, None, None, "unreadable", format=version)


def test_a_newer_major_format_of_another_shape_is_refused(path: Path):
    """Also a format whose lines look otherwise says in its first line that it is newer; a task that speaks of one does not."""
    path.write_bytes(b'{"kind": "run-started", "format":"3.0", "anything": "else"}\n')
    with pytest.raises(TraceFormatError, match=r"trace format 3\.0, which a newer Playhead reads"):
        read(path)
    talk = path.with_name("talk.jsonl")
    assert record(talk, [header(task='","format":"9.0","x":"'), ending()]) == events_of(talk)


def test_a_newer_minor_format_is_read(path: Path, content: bytes):
    """A newer minor format is read, its new kinds and fields are kept, and it is sound."""
    kind, field = (b'"kind":"thought"', b'"kind":"new-thought"'), (b'"text"', b'"new_text"')
    rewrite(path, content, kind, field, (WRITTEN, b'"format":"2.9"'))
    records, problems = read(path)
    assert (problems, check_trace(path).verdict) == ([], "ok")
    assert records[7].event == unknown("new-thought", request=7, new_text="thought 7 ")
    copy = path.with_name("copy.jsonl")
    assert record(copy, [each.event for each in records]) == events_of(copy)


def peak_of_reading(path: Path) -> int:
    """Return the bytes at the peak while a trace is read event by event."""
    tracemalloc.start()
    for _ in scan(path):
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


@pytest.mark.slow
def test_memory_is_flat_in_the_length(path: Path):
    """A trace of many times the length takes no more memory to read."""
    longer = path.with_name("longer.jsonl")
    record(path, [header(), *[thought(1, 20_000)] * 150, ending()])
    record(longer, [header(), *[thought(1, 20_000)] * sample(1_500, 600), ending()])
    list(scan(path))
    short, long = peak_of_reading(path), peak_of_reading(longer)
    assert long < min(8_000_000, short * 1.5)


def test_an_endless_line_does_not_fill_the_memory(path: Path, content: bytes, monkeypatch: pytest.MonkeyPatch):
    """A hostile line is given up at a limit, and what is before it is read."""
    monkeypatch.setattr(reader, "MAX_LINE", 4_000_000)
    path.write_bytes(content[: content.index(b"\n") + 1])
    with path.open("r+b") as file:
        file.truncate(16_000_000)  # a hole: zeros without a newline
    assert peak_of_reading(path) < 10_000_000
    assert list(scan(path))[1:] == [Problem("bad-line", 2, "it is longer than 4000000 bytes")]
