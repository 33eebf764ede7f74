"""Content that was erased on request: the other lines stay proven, and nobody takes the file for whole."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from playhead.trace.events import Erased, ErasedLine
from playhead.trace.integrity import check_trace
from playhead.trace.line import encode_data, encode_line
from playhead.trace.reader import Problem
from playhead.trace.recording import read_recording
from playhead.trace.store import summarise
from tests.cli.command_line import playhead
from tests.trace.traces import read, record, thoughts

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A sound trace of eight events."""
    path = tmp_path / "run.jsonl"
    record(path, thoughts(8))
    return path


def erase(path: Path, *seqs: int, said: bool = True) -> None:
    """Erase what these events say; append the event that names them."""
    lines = path.read_bytes().splitlines(keepends=True)
    hashes = [""] + [json.loads(line)["h"] for line in lines]
    for seq in seqs:
        start, _, rest = lines[seq].partition(b',"data":')
        data, _, h = rest.rpartition(b',"h":')
        left = data.replace(b"thought", b"[erased]")
        lines[seq] = start + b',"erased":true,"data":' + left + b',"h":' + h
    if said:
        event = Erased(lines=tuple(ErasedLine(seq=seq, previous=hashes[seq]) for seq in seqs), reason="asked for")
        lines.append(encode_line(len(lines), 9, event.kind, "root", None, encode_data(event), hashes[-1])[0])
    path.write_bytes(b"".join(lines))


def test_check_says_how_many_lines_were_erased(path: Path):
    """The other lines are what was written, which is never `ok`: neither for `check`, nor for what reads a recording."""
    erase(path, 3, 5)
    checked = check_trace(path)
    assert (checked.verdict, checked.ok, checked.erased, checked.head, checked.events) == ("erased", False, 2, None, 9)
    assert checked.problems == (
        Problem("erased", 4, "content of event 3 was erased"), Problem("erased", 6, "content of event 5 was erased")
    )  # fmt: skip
    result = playhead("check", path)
    assert result.exit_code == 1
    assert result.stdout.startswith("erased: 9 events, 2 lines erased, the others are what was written\n")
    recording = read_recording(path)
    assert (recording.status, recording.records[3].event.text) == ("damaged", "[erased] 3 ")  # type: ignore[attr-defined]
    assert recording.ending is not None


def test_the_run_is_listed_with_its_ending(path: Path):
    """The event about the erasure stands behind the end, which is still the run's."""
    before = summarise(path)
    erase(path, 3)
    assert summarise(path) == before


@pytest.mark.parametrize("changed", [1, 2, 4, 6])
def test_the_other_lines_stay_proven(path: Path, changed: int):
    """A change before an erased line shows even where everything up to that line was hashed anew."""
    erase(path, 3)
    lines = path.read_bytes().splitlines(keepends=True)
    h = json.loads(lines[changed - 1])["h"]
    for seq in range(changed, 3 if changed < 3 else changed + 1):
        parsed = json.loads(lines[seq])
        data = json.dumps(parsed["data"], separators=(",", ":")).replace("thought", "forged!").encode()
        lines[seq], h = encode_line(seq, parsed["ts"], parsed["kind"], "root", parsed["iteration"], data, h)
    path.write_bytes(b"".join(lines))
    assert check_trace(path).verdict == "damaged"


def test_an_erasure_that_no_event_names_is_damage(path: Path):
    """A line does not say of itself that it may be another one; nor is one erased that only an event calls so."""
    erase(path, 3, said=False)
    assert check_trace(path).verdict == "damaged"
    assert read(path)[1][-1] == Problem("chain", 8, "no event says who erased content of event 3")
    record(path.with_name("other.jsonl"), thoughts(8))
    erase(path.with_name("other.jsonl"), 3)
    path.write_bytes(path.with_name("other.jsonl").read_bytes().replace(b',"erased":true', b""))
    assert check_trace(path).verdict == "damaged"
