"""Whatever is done to a file is noticed, and said where."""

from __future__ import annotations

import hashlib
import json
import os
from typing import TYPE_CHECKING

import pytest

from playhead.diagnose.integrity import Check, check_trace
from playhead.diagnose.recording import read_recording
from playhead.diagnose.run_summary import summarise
from playhead.errors import NotATraceError, PlayheadError
from playhead.trace.events import Erased, ErasedLine
from playhead.trace.line import encode_data, encode_line
from playhead.trace.reader import MAX_PROBLEMS, Problem
from tests.cli.command_line import playhead
from tests.proving import sample
from tests.trace.traces import ending, header, read, record, rehashed, thoughts

if TYPE_CHECKING:
    from collections.abc import Callable
    from io import FileIO
    from pathlib import Path


COUNT = 20


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the trace of the test is."""
    return tmp_path / "run.jsonl"


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of a sound trace of 20 events."""
    path = tmp_path_factory.mktemp("sound") / "run.jsonl"
    record(path, thoughts(COUNT))
    return path.read_bytes()


@pytest.fixture(scope="module")
def lines(content: bytes) -> list[bytes]:
    """Its lines."""
    return content.splitlines(keepends=True)


@pytest.fixture(scope="module")
def head(lines: list[bytes]) -> str:
    """The hash of its last line."""
    return str(json.loads(lines[-1])["h"])


def changed(path: Path, lines: list[bytes]) -> Check:
    """Return the check of a file of these lines."""
    path.write_bytes(b"".join(lines))
    return check_trace(path)


def said(check: Check) -> list[tuple[str, int]]:
    """Return what is wrong and where."""
    return [(problem.kind, problem.line) for problem in check.problems]


def test_a_sound_file(path: Path, content: bytes, head: str):
    """A closed, unchanged trace is ok and everything about it is told; one without an end is open."""
    path.write_bytes(content)
    assert check_trace(str(path)) == Check(path, "run", "ok", COUNT, head, 0, 0, False, ())
    record(path.with_name("open.jsonl"), thoughts(COUNT)[:-1])
    check = check_trace(path.with_name("open.jsonl"))
    assert (check.verdict, check.ok) == ("open", False)


@pytest.mark.slow
def test_every_flipped_bit_is_noticed(path: Path, content: bytes):
    """No bit of the file, hashes and newlines included, can change without `check` noticing."""
    path.write_bytes(content)
    with path.open("r+b", buffering=0) as file:
        bits = range(0, len(content) * 8, sample(1, 17))
        unnoticed = [bit for bit in bits if not noticed(path, file, content, bit)]
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


def test_every_cut_loads_what_is_before_it(path: Path, content: bytes):
    """Wherever a crash cut the file, everything before the cut loads, and the cut is told from damage."""
    complete, ends = thoughts(COUNT), {place + 1 for place, byte in enumerate(content) if byte == ord("\n")}
    path.write_bytes(content)
    for size in sorted({*range(0, len(content), sample(1, 13)), *ends} - {len(content)}, reverse=True):
        os.truncate(path, size)
        whole = content[:size].count(b"\n")
        if not whole:
            with pytest.raises(NotATraceError):
                read_recording(path)
            continue
        recording = read_recording(path)
        assert [each.event for each in recording.records] == complete[:whole]
        verdict, kinds = ("open", []) if size in ends else ("truncated", ["truncated"])
        assert [problem.kind for problem in recording.problems] == kinds
        assert (check_trace(path).verdict, recording.status) == (verdict, verdict)


def edited(line: bytes) -> bytes:
    """Return a line that says something else, with the hash that it had."""
    for old, new in ((b'"output":"42"', b'"output":"43"'), (b"thought ", b"thoughT "), (b"Find it", b"Find me")):
        line = line.replace(old, new)
    return line


def another_hash(line: bytes) -> bytes:
    """Return a line with another hash of the right form."""
    return line[:-67] + (b"0" if line[-67:-66] != b"0" else b"1") + line[-66:]


def forged(lines: list[bytes], number: int) -> bytes:
    """Return a changed line whose own hash was made to fit."""
    body = edited(lines[number - 1]).rpartition(b',"h":"')[0]
    previous = b"" if number == 1 else json.loads(lines[number - 2])["h"].encode()
    return b'%b,"h":"%b"}\n' % (body, hashlib.sha256(previous + body).hexdigest().encode())


FOREIGN = [b"\n", b"{}\n", b"\x00\xff\n", b'{"seq":1}\n']
DAMAGE: dict[str, tuple[Callable[[list[bytes], int], list[bytes]], int, list[tuple[str, int]]]] = {
    "taken out": (lambda lines, n: lines[: n - 1] + lines[n:], COUNT - 1, [("chain", 0), ("gap", 0)]),
    "twice": (lambda lines, n: lines[:n] + lines[n - 1 :], COUNT - 1, [("chain", 1), ("duplicate", 1)]),
    "swapped with the next": (
        lambda lines, n: [*lines[: n - 1], lines[n], lines[n - 1], *lines[n + 1 :]], COUNT - 1,
        [("chain", 0), ("gap", 0), ("chain", 1), ("reordered", 1)],
    ),
    "edited": (lambda lines, n: [*lines[: n - 1], edited(lines[n - 1]), *lines[n:]], COUNT, [("chain", 0)]),
    "edited, with a hash that fits": (
        lambda lines, n: [*lines[: n - 1], forged(lines, n), *lines[n:]], COUNT - 1, [("chain", 1)]
    ),
    "another hash": (
        lambda lines, n: [*lines[: n - 1], another_hash(lines[n - 1]), *lines[n:]], COUNT - 1, [("chain", 0), ("chain", 1)]
    ),
    "one of another trace put in before": (
        lambda lines, n: [*lines[: n - 1], rehashed([b'{"other":1', *lines])[n], *lines[n - 1 :]], COUNT, [("chain", 0)]
    ),
    "a foreign one put in before": (
        lambda lines, n: [*lines[: n - 1], FOREIGN[n % len(FOREIGN)], *lines[n - 1 :]], COUNT, [("bad-line", 0)]
    ),
}  # fmt: skip
"""What may be done to a line, up to which one, and what is said of it, by lines from there on."""


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_line_that_is_not_what_was_written(path: Path, lines: list[bytes], damage: str):
    """Whatever is done to whichever line shows at it or at the next one."""
    change, last, problems = DAMAGE[damage]
    for number in range(2 if "put in" in damage else 1, last + 1):
        check = changed(path, change(lines, number))
        expected = [(kind, number + further) for kind, further in problems]
        assert (check.verdict, said(check)[: len(expected)]) == ("damaged", expected)


TAIL = b',"h":"' + b"0" * 64 + b'"}'
LINE = b'{"seq":1,"ts":1,"kind":"thought","owner":"root","data":{"request":1}' + TAIL


@pytest.mark.parametrize(
    "line",
    [
        LINE[:-1], LINE + b" ", LINE.replace(b'"h"', b'"H"'), LINE.replace(b"0" * 64, b"A" * 64), TAIL,
        LINE.replace(b'"seq":1', b'"seq":01'), LINE.replace(b'"seq":1', b'"seq":-1'), LINE.replace(b'"seq":1', b'"seq":1.0'),
        LINE.replace(b'"seq":1', b'"seq":1000000000000000000000'), LINE.replace(b'"seq":1,"ts":1', b'"ts":1,"seq":1'),
        LINE.replace(b',"ts"', b', "ts"'), LINE.replace(b"thought", b"Thought"), LINE.replace(b"thought", b"t" * 65),
        LINE.replace(b'"data"', b'"iteration":null,"data"'),
    ],
)  # fmt: skip
def test_a_line_has_exactly_one_form(path: Path, lines: list[bytes], line: bytes):
    """What another program wrote in another way is not half understood; an owner that is no text is none."""
    check = changed(path, [*lines, line + b"\n"])
    assert [str(problem) for problem in check.problems] == ["line 21: bad-line: it is not in the form of a trace event"]
    for owner in (b"\\x", b"\xff"):
        assert said(changed(path, [lines[0], LINE.replace(b"root", owner) + b"\n"]))[-1] == ("bad-line", 2)


def test_problems_say_what_is_wrong(path: Path, lines: list[bytes]):
    """Each problem is a sentence that names the event."""
    messages = [str(problem) for problem in changed(path, [*lines[:3], *lines[5:], lines[4], b"x\n", b"y"]).problems]
    assert messages == [
        "line 4: chain: event 5 or the line before it is not what was written",
        "line 4: gap: 2 events are missing before event 5",
        "line 19: chain: event 4 or the line before it is not what was written",
        "line 19: reordered: event 4 comes after event 19",
        "line 19: after-end: event 4 comes after the end of the run",
        "line 20: bad-line: it is not in the form of a trace event",
        "line 21: truncated: it ends after 1 bytes without a newline",
    ]
    assert [each.seq for each in read(path)[0]] == [0, 1, 2, *range(5, 20), 4]


def test_more_problems_than_anybody_reads(path: Path, lines: list[bytes]):
    """After a thousand a file is not read on, and that is said."""
    check = changed(path, [lines[0], *[b"\n"] * (MAX_PROBLEMS + 5_000), *lines[1:]])
    assert str(check.problems[-1]) == "line 1001: bad-line: 1,000 problems up to here: the rest is not read"
    assert (len(check.problems), check.verdict, check.events) == (MAX_PROBLEMS + 1, "damaged", 1)
    assert read_recording(path).problems == check.problems


def test_what_shows_only_against_the_head(path: Path, lines: list[bytes], head: str):
    """Whole lines cut off, and a file hashed anew, are sound; only a head kept elsewhere, exactly that, tells them."""
    for kept in range(1, COUNT):
        assert changed(path, lines[:kept]).verdict == "open"
        assert check_trace(path, head).verdict == "other-head"
    assert changed(path, rehashed([edited(line) for line in lines])).verdict == "ok"
    assert check_trace(path, head).verdict == "other-head"
    assert (changed(path, lines).head, check_trace(path, head).verdict) == (head, "ok")
    for other in ("", "F" + head[1:], head[:-1], head + " "):
        assert check_trace(path, other).verdict == "other-head"


def test_a_file_that_holds_another_run(path: Path, content: bytes):
    """A copy under another name is sound, and is not the run that was asked for; damage is told first."""
    path.write_bytes(content)
    assert [check_trace(path, expected_run=each).verdict for each in ("run", "other")] == ["ok", "other-run"]
    path.write_bytes(content[:-10])
    assert check_trace(path, expected_run="other").verdict == "truncated"


def test_losses_are_told_from_deletions(path: Path, lines: list[bytes]):
    """Only the writer can leave an event out and chain on, and its end says what left no gap: losses that it owned up to."""
    check = changed(path, rehashed(lines[:5] + lines[8:]))
    assert (check.verdict, said(check), check.lost) == ("lost-events", [("lost-events", 6)], 3)
    record(path.with_name("lost.jsonl"), [header(), ending(lost=2)])
    check = check_trace(path.with_name("lost.jsonl"))
    assert (check.verdict, said(check), check.lost) == ("lost-events", [("lost-events", 2)], 2)
    check = changed(path, rehashed(lines[1:]))
    assert (check.verdict, check.run_id, check.events, check.lost) == ("lost-events", None, COUNT - 1, 1)
    with pytest.raises(NotATraceError, match="its first event cannot be read"):
        read_recording(path)


def erase(path: Path, *seqs: int, said: bool = True) -> None:
    """Write a trace of eight events, erase what these say, and append the event that names them."""
    path.unlink(missing_ok=True)
    record(path, thoughts(8))
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
    assert (recording.status, recording.records[3].event.text) == ("erased", "[erased] 3 ")  # type: ignore[attr-defined]
    assert recording.ending is not None


def test_the_run_is_listed_with_its_ending(path: Path):
    """The event about the erasure stands behind the end, which is still the run's."""
    record(path, thoughts(8))
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
    assert read(path)[1][-1] == Problem("chain", 8, "no event records the erasure of content in event 3")
    erase(path, 3)
    path.write_bytes(path.read_bytes().replace(b',"erased":true', b""))
    assert check_trace(path).verdict == "damaged"
