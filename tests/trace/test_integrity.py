"""Whatever is done to a file is noticed, and said where."""

from __future__ import annotations

import hashlib
import json
import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead.errors import NotATraceError, PlayheadError, TraceNotFoundError
from playhead.trace.integrity import Check, check_trace
from playhead.trace.reader import MAX_PROBLEMS
from playhead.trace.recording import read_recording
from tests.proving import sample
from tests.trace.strategies import events
from tests.trace.traces import ending, events_of, header, read, record, rehashed, thought, thoughts

if TYPE_CHECKING:
    from io import FileIO
    from pathlib import Path

    from playhead.trace.events import EventBase

COUNT = 20


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of a sound trace of 20 events."""
    path = tmp_path_factory.mktemp("sound") / "run.jsonl"
    record(path, thoughts(COUNT))
    return path.read_bytes()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where the trace of the test is."""
    return tmp_path / "run.jsonl"


def changed(path: Path, lines: list[bytes]) -> Check:
    """Return the check of a file of these lines."""
    path.write_bytes(b"".join(lines))
    return check_trace(path)


def said(check: Check) -> list[tuple[str, int]]:
    """Return what is wrong and where."""
    return [(problem.kind, problem.line) for problem in check.problems]


# ── sound files ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_sound_file(path: Path, content: bytes):
    """A closed, unchanged trace is ok, and everything about it is told."""
    path.write_bytes(content)
    head = json.loads(content.splitlines()[-1])["h"]
    check = check_trace(path)
    assert check == Check(path, "run", "ok", COUNT, head, 0, 0, ())
    assert check.ok


@settings(max_examples=sample(30, 8))
@given(st.lists(events(), max_size=6))
def test_every_trace_is_sound_when_written(tmp_path_factory: pytest.TempPathFactory, middle: list[EventBase]):
    """Whatever events a run has, its file is sound and gives them back."""
    path = tmp_path_factory.mktemp("any") / "run.jsonl"
    middle = [event for event in middle if event.kind not in {"run-started", "run-completed"}]
    written = record(path, [header(), *middle, ending()])
    assert check_trace(path).verdict == "ok"
    assert events_of(path) == written


def test_a_file_without_an_end_is_open(path: Path):
    """A run that goes on, or was killed, is told from one that ended."""
    record(path, thoughts(COUNT)[:-1])
    assert (check_trace(path).verdict, check_trace(path).ok) == ("open", False)


def test_the_chain_can_be_verified_with_nothing_but_a_json_library(content: bytes):
    """The ten lines of docs/trace-format.md."""
    previous = ""
    for line in content.splitlines():
        body, _, tail = line.rpartition(b',"h":"')
        previous = hashlib.sha256(previous.encode() + body).hexdigest()
        assert tail == previous.encode() + b'"}'
    assert json.loads(content.splitlines()[-1])["h"] == previous


# ── bits ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_flipped_bit_is_noticed(path: Path, content: bytes):
    """No bit of the file, hashes and newlines included, can change without `check` noticing."""
    path.write_bytes(content)
    with path.open("r+b", buffering=0) as file:
        unnoticed = [bit for bit in range(0, len(content) * 8, sample(1, 11)) if not noticed(path, file, content, bit)]
    assert unnoticed == []
    assert check_trace(path).ok


def noticed(path: Path, file: FileIO, content: bytes, bit: int) -> bool:
    """Flip one bit, check, and put it right again."""
    place, mask = bit // 8, 1 << bit % 8
    os.pwrite(file.fileno(), bytes([content[place] ^ mask]), place)
    try:
        return not check_trace(path).ok
    except PlayheadError:
        return True
    finally:
        os.pwrite(file.fileno(), content[place : place + 1], place)


# ── cuts ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_cut_loads_what_is_before_it(path: Path, content: bytes):
    """Wherever a crash cut the file, everything before the cut loads, and the cut is told from damage."""
    complete = thoughts(COUNT)
    first_line = content.index(b"\n") + 1
    path.write_bytes(content)
    for size in reversed(range(len(content))):
        os.truncate(path, size)
        whole = content[:size].count(b"\n")
        if size < first_line:
            with pytest.raises(NotATraceError):
                read_recording(path)
            continue
        recording = read_recording(path)
        assert [each.event for each in recording.records] == complete[:whole]
        torn = content[size - 1 : size] != b"\n"
        assert [problem.kind for problem in recording.problems] == ["truncated"] * torn
        assert (check_trace(path).verdict, recording.status) == (("truncated",) * 2 if torn else ("open",) * 2)


# ── lines ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("number", range(1, COUNT))
def test_a_line_taken_out(path: Path, content: bytes, number: int):
    """A missing line shows where the next one stands."""
    lines = content.splitlines(keepends=True)
    check = changed(path, lines[: number - 1] + lines[number:])
    assert (check.verdict, said(check)) == ("damaged", [("chain", number), ("gap", number)])


@pytest.mark.parametrize("number", range(1, COUNT + 1))
def test_a_line_twice(path: Path, content: bytes, number: int):
    """A doubled line shows where it stands the second time."""
    lines = content.splitlines(keepends=True)
    check = changed(path, lines[:number] + lines[number - 1 :])
    expected = [("chain", number + 1), ("duplicate", number + 1)]
    if number == COUNT:
        expected.append(("after-end", number + 1))
    assert check.verdict == "damaged"
    assert said(check)[: len(expected)] == expected


@pytest.mark.parametrize("number", range(1, COUNT))
def test_two_lines_swapped(path: Path, content: bytes, number: int):
    """Swapped neighbours show at both places."""
    lines = content.splitlines(keepends=True)
    lines[number - 1], lines[number] = lines[number], lines[number - 1]
    check = changed(path, lines)
    assert check.verdict == "damaged"
    assert said(check)[:4] == [("chain", number), ("gap", number), ("chain", number + 1), ("reordered", number + 1)]


@pytest.mark.parametrize("line", [b"\n", b"{}\n", b"garbage\n", b"\x00\xff\n", b'{"seq":1}\n'])
@pytest.mark.parametrize("number", range(2, COUNT + 2))
def test_a_foreign_line_put_in(path: Path, content: bytes, number: int, line: bytes):
    """A line that is no event shows where it stands; the events around it are sound."""
    lines = content.splitlines(keepends=True)
    check = changed(path, [*lines[: number - 1], line, *lines[number - 1 :]])
    assert (check.verdict, said(check), check.events) == ("damaged", [("bad-line", number)], COUNT)


@pytest.mark.parametrize("number", range(2, COUNT + 1))
def test_a_line_of_another_trace_put_in(path: Path, content: bytes, tmp_path: Path, number: int):
    """A sound line of another run shows where it stands."""
    record(tmp_path / "other.jsonl", [header("other"), *[thought(0)] * COUNT, ending()])
    other = (tmp_path / "other.jsonl").read_bytes().splitlines(keepends=True)[number - 1]
    lines = content.splitlines(keepends=True)
    check = changed(path, [*lines[: number - 1], other, *lines[number - 1 :]])
    assert check.verdict == "damaged"
    assert said(check)[0] == ("chain", number)


@pytest.mark.parametrize("number", range(1, COUNT + 1))
def test_a_line_edited(path: Path, content: bytes, number: int):
    """A changed event shows at its line, also when its own hash was made to fit: then at the next one."""
    lines = content.splitlines(keepends=True)
    body = lines[number - 1].rpartition(b',"h":"')[0].replace(b"42", b"43").replace(b"thought ", b"thoughT ")
    body = body.replace(b"Find it", b"Find me")
    stale = changed(path, [*lines[: number - 1], body + lines[number - 1][len(body) :], *lines[number:]])
    assert (stale.verdict, said(stale)) == ("damaged", [("chain", number)])
    previous = b"" if number == 1 else json.loads(lines[number - 2])["h"].encode()
    h = hashlib.sha256(previous + body).hexdigest().encode()
    forged = changed(path, [*lines[: number - 1], body + b',"h":"' + h + b'"}\n', *lines[number:]])
    assert said(forged) == ([("chain", number + 1)] if number < COUNT else [])


@pytest.mark.parametrize("number", range(1, COUNT + 1))
def test_a_hash_edited(path: Path, content: bytes, number: int):
    """A changed hash shows at its own line and at the next one, which was chained to the right one."""
    lines = content.splitlines(keepends=True)
    line = lines[number - 1]
    lines[number - 1] = line[:-67] + (b"0" if line[-67:-66] != b"0" else b"1") + line[-66:]
    assert said(changed(path, lines)) == [("chain", number), ("chain", number + 1)][: COUNT + 1 - number]


# ── the head ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kept", range(1, COUNT))
def test_whole_lines_cut_off_show_only_against_the_head(path: Path, content: bytes, kept: int):
    """Cutting off whole lines leaves an open file; only a head kept elsewhere tells it from a killed run."""
    head = json.loads(content.splitlines()[-1])["h"]
    assert changed(path, content.splitlines(keepends=True)[:kept]).verdict == "open"
    check = check_trace(path, head)
    assert (check.verdict, check.ok) == ("other-head", False)


def test_a_file_hashed_anew_shows_only_against_the_head(path: Path, content: bytes):
    """Whoever rewrites the whole file makes it sound again; only a head kept elsewhere shows it."""
    head = json.loads(content.splitlines()[-1])["h"]
    lines = [line.replace(b'"output":"42"', b'"output":"41"') for line in content.splitlines(keepends=True)]
    assert changed(path, rehashed(lines)).verdict == "ok"
    assert check_trace(path, head).verdict == "other-head"


def test_the_right_head(path: Path, content: bytes):
    """The head of a sound file is its own, exactly: case and length matter."""
    path.write_bytes(content)
    head = check_trace(path).head
    assert head is not None
    assert check_trace(path, head).verdict == "ok"
    for other in ("", head.upper() if head.upper() != head else "F", head[:-1], head + " "):
        assert check_trace(path, other).verdict == "other-head"


# ── the run ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_file_that_holds_another_run(path: Path, content: bytes):
    """A copy under another name is sound, and is not the run that was asked for; damage is told first."""
    path.write_bytes(content)
    assert [check_trace(path, expected_run=each).verdict for each in (None, "run", "other")] == [
        "ok",
        "ok",
        "other-run",
    ]
    path.write_bytes(content[:-10])
    assert check_trace(path, expected_run="other").verdict == "truncated"


# ── problems without end ─────────────────────────────────────────────────────────────────────────────────────────────


def test_more_problems_than_anybody_reads(path: Path, content: bytes):
    """After a thousand a file is not read on, and that is said; lines that were erased or lost a blob are no such problems."""
    first, *rest = content.splitlines(keepends=True)
    check = changed(path, [first, *[b"\n"] * (MAX_PROBLEMS + 5_000), *rest])
    assert str(check.problems[-1]) == "line 1001: bad-line: 1,000 problems stand up to here: the rest is not read"
    assert (len(check.problems), check.verdict, check.events) == (MAX_PROBLEMS + 1, "damaged", 1)
    assert read_recording(path).problems == check.problems


# ── what the writer itself says ──────────────────────────────────────────────────────────────────────────────────────


def test_events_after_the_end(path: Path, content: bytes):
    """A line after `run-completed` does not belong, even when it is chained to it."""
    lines = content.splitlines(keepends=True)
    extra = lines[1].replace(b'{"seq":1,', b'{"seq":%d,' % COUNT)
    assert said(changed(path, rehashed([*lines, extra]))) == [("after-end", COUNT + 1)]


def test_a_gap_in_an_unbroken_chain_is_a_loss(path: Path, content: bytes):
    """Only the writer can leave an event out and chain on: that is a loss that it owned up to, not a deletion."""
    lines = content.splitlines(keepends=True)
    check = changed(path, rehashed(lines[:5] + lines[8:]))
    assert (check.verdict, said(check), check.lost) == ("lost-events", [("lost-events", 6)], 3)


def test_losses_that_left_no_gap(path: Path):
    """What the end of the run says was lost is believed, beyond the gaps that show."""
    record(path, [header(), ending(lost=2)])
    check = check_trace(path)
    assert (check.verdict, said(check), check.lost) == ("lost-events", [("lost-events", 2)], 2)


def test_a_lost_header(path: Path, content: bytes):
    """A trace whose first event was lost is read from the second, but is no recording."""
    check = changed(path, rehashed(content.splitlines(keepends=True)[1:]))
    assert (check.verdict, check.run_id, check.events, check.lost) == ("lost-events", None, COUNT - 1, 1)
    with pytest.raises(NotATraceError, match="its first event cannot be read"):
        read_recording(path)


def test_a_file_that_is_not_there(path: Path):
    """There is no verdict on nothing."""
    with pytest.raises(TraceNotFoundError):
        check_trace(path)


def test_problems_say_what_is_wrong(path: Path, content: bytes):
    """Each problem is a sentence that names the event."""
    lines = content.splitlines(keepends=True)
    messages = [str(problem) for problem in changed(path, [*lines[:3], *lines[5:], lines[4], b"x\n", b"y"]).problems]
    assert messages == [
        "line 4: chain: event 5 or the line before it is not what was written",
        "line 4: gap: 2 events are missing before event 5",
        "line 19: chain: event 4 or the line before it is not what was written",
        "line 19: reordered: event 4 stands after event 19",
        "line 19: after-end: event 4 stands after the end of the run",
        "line 20: bad-line: it is not in the form of a trace event",
        "line 21: truncated: it ends after 1 bytes without a newline",
    ]
    records, _ = read(path)
    assert [each.seq for each in records] == [0, 1, 2, *range(5, 20), 4]


def test_a_path_as_text(path: Path, content: bytes):
    """A path may be text, as everywhere."""
    path.write_bytes(content)
    assert check_trace(str(path)) == check_trace(path)
