"""What is erased is in no byte any more; what is left still proves what it proved; a crash leaves one file or the other."""

from __future__ import annotations

import base64
import fcntl
import gzip
import json
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.diagnose import erasure
from playhead.diagnose.erasure import Eraser, erase
from playhead.diagnose.integrity import check_trace
from playhead.errors import TraceError
from playhead.trace.events import (
    ApprovalRequested,
    Erased,
    ErasedLine,
    ErrorInfo,
    EventBase,
    LlmFailed,
    LlmResponded,
    MessageAdded,
    Thought,
    ToolCallCompleted,
    ToolCallStarted,
)
from playhead.trace.line import TORN, Record
from playhead.trace.reader import Problem, zstd
from playhead.trace.types import Wire
from playhead.trace.values import json_hash
from tests.trace.strategies import events
from tests.trace.traces import ending, header, read, record, recorder_of, thought, unknown

if TYPE_CHECKING:
    from collections.abc import Callable

VALUE = 'Zoë "Z" O\'Hara-Müller'
FORMS = (
    VALUE, json.dumps(VALUE)[1:-1], json.dumps(VALUE, ensure_ascii=False)[1:-1], json.dumps(json.dumps(VALUE))[1:-1], quote(VALUE),
    *(base64.b64encode(b"x" * before + VALUE.encode()).decode()[4:-4] for before in range(3)),
)  # fmt: skip
"""The value as it may stand in a file."""
MARK = re.compile(r"\[erased:[0-9a-f]{8}\]")


def call(args: Any, number: int = 0) -> ToolCallStarted:
    """Return the start of a call."""
    return ToolCallStarted(call_id=f"c{number}", tool="mail", position=0, args=args, args_hash=json_hash(args))


def personal() -> list[EventBase]:
    """Return the events of a run in which a value stands in all kinds of places."""
    nested = {"to": [{VALUE: f"at {VALUE}", "body": json.dumps({"name": VALUE})}], "n": 4}
    return [
        header(task=f"Write to {VALUE}."),
        call(nested),
        ApprovalRequested(call_id="c0", tool="mail", args_hash=json_hash(nested)),
        ToolCallCompleted(call_id="c0", tool="mail", position=0, ok=True, result=f"https://x.org/?q={quote(VALUE)}"),
        thought(4),
        MessageAdded(id=0, role="user", content=f"a line\n{VALUE}" + "." * 300_000),
        Thought(request=0, text=base64.b64encode(f"user:{VALUE}:pw".encode()).decode()),
        unknown("x-new", deep={"of": [VALUE]}),
        ending(),
    ]


def bytes_below(folder: Path) -> bytes:
    """Return the names and the contents of all files of a folder, unpacked."""
    opened: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.decompress, ".zst": zstd().decompress}
    files = [path for path in folder.rglob("*") if path.is_file()]
    return b"\n".join(path.name.encode() + opened.get(path.suffix, bytes)(path.read_bytes()) for path in files)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the trace of the test is."""
    return tmp_path / "run.jsonl"


def packed(path: Path, suffix: str) -> Path:
    """Compress a trace."""
    pack: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.compress, ".zst": zstd().compress}
    new = path.with_name(path.name + suffix)
    new.write_bytes(pack[suffix](path.read_bytes()))
    if suffix:
        path.unlink()
    return new


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_no_byte_of_the_value_is_left(path: Path, suffix: str):
    """Neither in a line, in any form, nor in a large value or beside it; every other line is what it was, and the chain holds."""
    record(path, personal())
    (path.parent / ".control" / "run").mkdir(parents=True)
    (path.parent / ".control" / "run" / "a.request").write_text(json.dumps({"args": VALUE}))
    (path.parent / f"run.jsonl{suffix}.0a1b.tmp").write_text(VALUE)
    path = packed(path, suffix)
    before = read(path)[0]
    found = erase(path, Eraser([VALUE]), f"{VALUE} wants it")
    assert [line.seq for line in found.lines] == [0, 1, 2, 3, 5, 6, 7]
    assert (len(found.removed), found.left, found.torn) == (3, [], 0)
    content = bytes_below(path.parent)
    assert [form for form in FORMS if form.encode() in content] == []
    records, problems = read(path)
    assert {problem.kind for problem in problems} == {"erased"}
    assert [each.h for each in records[:-1]] == [each.h for each in before]
    assert [records[seq] for seq in (4, 8)] == [before[seq] for seq in (4, 8)]
    checked = check_trace(path)
    assert (checked.verdict, checked.erased, checked.ok) == ("erased", 7, False)
    event = records[-1].event
    assert isinstance(event, Erased)
    assert MARK.sub("-", str(event.reason)) == "- wants it"
    assert len({each[0] for each in MARK.finditer(content.decode())}) == 1


def test_a_hash_of_arguments_follows_what_is_left_of_them(path: Path):
    """The plain hash of the arguments would tell a guess; the request for an approval still names its call."""
    record(path, personal())
    erase(path, Eraser([VALUE]))
    started, asked = (record.event for record in read(path)[0][1:3])
    assert isinstance(started, ToolCallStarted)
    assert isinstance(asked, ApprovalRequested)
    assert started.args_hash == asked.args_hash == json_hash(started.args)
    assert started.args_fingerprint == ""


def test_values_stay_apart_and_equal_ones_equal(path: Path):
    """Each value has a mark of its own in a run, which follows from nothing."""
    record(path, [header(), call({"a": "Ann", "b": "Bob", "c": ["Ann"]}), ending()])
    erase(path, Eraser(["Ann", "Bob"]))
    event = read(path)[0][1].event
    assert isinstance(event, ToolCallStarted)
    assert event.args["a"] == event.args["c"][0] != event.args["b"]
    again = path.with_name("again.jsonl")
    record(again, [header(), call({"a": "Ann"}), ending()])
    erase(again, Eraser(["Ann"]))
    assert event.args["a"].encode() not in again.read_bytes()


def test_a_pattern_erases_what_it_matches(path: Path):
    """In values, keys and numbers; what was the same is the same afterwards."""
    record(path, [header(), call({"to": "ann@x.org, bob@x.org", "ann@x.org": 5551234}), ending()])
    found = erase(path, Eraser([], [re.compile(r"\w+@x\.org"), re.compile(r"\b555\d{4}\b")]))
    assert [line.seq for line in found.lines] == [1]
    event = read(path)[0][1].event
    assert isinstance(event, ToolCallStarted)
    (key,) = event.args.keys() - {"to"}
    assert event.args["to"].startswith(f"{key}, [erased:")
    assert MARK.fullmatch(event.args[key])


def test_names_and_owners_are_erased_alike(path: Path):
    """A tool and a sub-agent that are named after a person: what belongs together still does."""
    recorder = recorder_of(path)
    recorder.emit(header(), "root")
    recorder.emit(call({}), "root/ask-ann-lee@0.0", 2)
    recorder.seal()
    erase(path, Eraser(["ann-lee"]))
    owner = read(path)[0][1].owner
    assert re.fullmatch(r"root/ask-\[erased:[0-9a-f]{8}\]@0\.0", owner)
    assert b"ann-lee" not in path.read_bytes()


def test_a_value_in_the_pieces_of_a_stream_is_found(path: Path):
    """The body of an answer as a wrapped client got it: the pieces say the value together; it stands erased in the first."""
    pieces = [
        f'data: {{"choices":[{{"delta":{{"content":{json.dumps(piece)}}}}}]}}'
        for piece in ("Ask ", "Ann", "-Le", "e now")
    ]
    body = "\n\n".join([*pieces, "data: [DONE]", ""])
    failed = LlmFailed(request=0, error=ErrorInfo(type="Cut", message="cut"), wire=Wire(status=200, body=body))
    record(
        path,
        [
            header(),
            failed,
            LlmResponded(request=0, model="m", text="Ask Bob now", wire=Wire(body=body.replace("Ann", "Bob"))),
        ],
    )
    found = erase(path, Eraser(["Ann-Lee"]))
    assert [line.seq for line in found.lines] == [1]
    event = read(path)[0][1].event
    assert isinstance(event, LlmFailed)
    assert event.wire is not None
    said = [json.loads(line[6:])["choices"][0]["delta"]["content"] for line in event.wire.body.split("\n\n")[:4]]
    assert re.fullmatch(r"Ask \[erased:[0-9a-f]{8}\] now", said[0])
    assert said[1:] == ["", "", ""]
    assert event.wire.body.endswith("\n\ndata: [DONE]\n\n")


def test_what_cannot_be_erased_is_named(path: Path):
    """Words of the format stay; so does the line of a large value that is missing, since its other fields are not known."""
    record(
        path,
        [header(), call({"status": "done"}), MessageAdded(id=0, role="user", content="done" + "." * 300_000), ending()],
    )
    for blob in path.with_name("run.blobs").iterdir():
        blob.unlink()
    found = erase(path, Eraser(["done", "user"]))
    assert ([line.seq for line in found.lines], found.left) == ([1], [2, 3])


def test_a_second_erasure_adds_to_the_first(path: Path):
    """Lines that are erased already can be erased again, the event of the first erasure too."""
    record(path, [header(task="Ann and Bob"), thought(1), ending()])
    erase(path, Eraser(["Ann"]), "as Bob asked")
    erase(path, Eraser(["Bob"]))
    once = path.read_bytes()
    assert (check_trace(path).verdict, check_trace(path).erased) == ("erased", 2)
    assert b"Ann" not in once
    assert b"Bob" not in once
    found = erase(path, Eraser(["Bob"]))
    assert (found.lines, found.torn, found.removed, found.left) == ([], 0, [], [])
    assert path.read_bytes() == once


def test_a_dry_run_changes_nothing(path: Path):
    """It counts what an erasure would do."""
    record(path, personal())
    before = {each: each.read_bytes() for each in path.parent.rglob("*") if each.is_file()}
    found = erase(path, Eraser([VALUE]), dry_run=True)
    assert ([line.seq for line in found.lines], len(found.removed)) == ([0, 1, 2, 3, 5, 6, 7], 1)
    assert {each: each.read_bytes() for each in path.parent.rglob("*") if each.is_file()} == before


def test_what_is_left_is_sealed_again(path: Path):
    """Once erased, a line is no place for lies: what the erasure left of it is in the chain, after a second erasure too."""
    record(path, [header(task="Ann and Bob"), thought(1), ending()])
    for value in ("Ann", "Bob"):
        erase(path, Eraser([value]))
        assert check_trace(path).verdict == "erased"
        forged = path.with_name("forged.jsonl")
        forged.write_bytes(path.read_bytes().replace(b'"task":"', b'"task":"not ', 1))
        assert read(forged)[1][-1] == Problem("chain", len(read(path)[0]), "event 0 is not what its erasure left")


@pytest.mark.parametrize("torn", [b'{"seq":2,"ts":9,"kind":"thought","owner":"root","data":{"text":"An', TORN + b"\n"])
def test_parts_of_events_are_removed(path: Path, torn: bytes):
    """A part may end inside the value, where nobody recognises it; what had no end before has none afterwards."""
    record(path, [header(task="Ann"), thought(1)])
    with path.open("ab") as file:
        file.write(torn)
    found = erase(path, Eraser(["Ann"]))
    assert found.torn == (torn != TORN + b"\n")
    assert b"An" not in path.read_bytes()
    assert {problem.kind for problem in read(path)[1]} == {"erased", "lost-events"}
    assert check_trace(path).verdict == "erased"


def test_damage_is_not_hidden_behind_an_erasure(path: Path):
    """A file that is not what was written is refused, and stays as it is."""
    record(path, [header(task="Ann"), thought(1), ending()])
    path.write_bytes(changed := path.read_bytes().replace(b"thought 1", b"thought 2"))
    with pytest.raises(TraceError, match="is damaged"):
        erase(path, Eraser(["Ann"]))
    assert path.read_bytes() == changed


def test_a_file_in_use_is_refused(path: Path):
    """Two erasures at a time would lose one of the two."""
    record(path, [header(task="Ann"), ending()])
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(TraceError, match="in use"):
            erase(path, Eraser(["Ann"]))


@pytest.mark.parametrize(("alive", "why"), [(True, "is still running"), (None, "may still be running")])
def test_a_run_that_may_go_on_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch, alive: object, why: str):
    """Its writer would go on in the file that was replaced."""
    record(path, [header(task="Ann")])
    monkeypatch.setattr(erasure, "is_alive", lambda _: alive)
    with pytest.raises(TraceError, match=why):
        erase(path, Eraser(["Ann"]))


class Death(BaseException):
    """The process is dead."""


class Dying:
    """Lets a process die before its n-th change of the disk: from then on it changes nothing."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, changes: int) -> None:
        self.left = changes
        for owner, name in (
            (os, "write"),
            (os, "fsync"),
            (os, "link"),
            (Path, "replace"),
            (Path, "unlink"),
            (Path, "mkdir"),
        ):
            monkeypatch.setattr(owner, name, self._mortal(getattr(owner, name)))

    def _mortal(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            self.left -= 1
            if self.left < 0:
                raise Death
            return function(*args, **kwargs)

        return wrapped


def test_a_crash_leaves_one_file_or_the_other(tmp_path: Path):
    """Wherever it dies: the trace is the old one or the new one, whole; the next erasure leaves no byte of the value."""
    original = tmp_path / "original" / "run.jsonl"
    original.parent.mkdir()
    record(original, personal())
    states = []
    for changes in range(100):
        path = tmp_path / str(changes) / "run.jsonl"
        path.parent.mkdir()
        for each in original.parent.rglob("*"):
            if each.is_file():
                target = path.parent / each.relative_to(original.parent)
                target.parent.mkdir(exist_ok=True)
                target.write_bytes(each.read_bytes())
        with pytest.MonkeyPatch.context() as patch:
            dying = Dying(patch, changes)
            with suppress(Death):
                erase(path, Eraser([VALUE]))
        state = check_trace(path)
        assert state.verdict == "erased" or path.read_bytes() == original.read_bytes()
        assert state.verdict in {"ok", "erased"}
        states.append(state.verdict)
        erase(path, Eraser([VALUE]))
        assert [form for form in FORMS if form.encode() in bytes_below(path.parent)] == []
        assert check_trace(path).erased == 7
        if dying.left >= 0:
            break
    assert states[0] == "ok"
    assert states[-2:] == ["erased", "erased"]
    assert len(states) > 8


def leaves(value: Any) -> list[str]:
    """Return every text in a JSON value."""
    if isinstance(value, dict):
        return [text for key, item in value.items() for text in (key, *leaves(item))]
    return (
        [text for item in value for text in leaves(item)]
        if isinstance(value, list)
        else [value] * isinstance(value, str)
    )


@given(st.data(), st.lists(events().filter(lambda event: event.kind != "run-completed"), min_size=1, max_size=3))
def test_any_text_of_any_event(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, emitted: list[EventBase]):
    """Whatever is erased: the file loads with as many events, says erased and no more, and what is left is named."""
    path = tmp_path_factory.mktemp("any") / "run.jsonl"
    record(path, [header(), *emitted, ending()])
    before = read(path)[0]
    texts = sorted(
        {text for each in before[1:-1] for text in leaves(each.as_json()["data"]) if len(text) >= erasure.SHORTEST}
    )
    value = data.draw(st.sampled_from(texts or ["Find"]))
    found = erase(path, Eraser([value]))
    records, problems = read(path)
    assert {problem.kind for problem in problems} <= {"erased"}
    assert len(records) == len(before) + bool(found.lines)
    assert all(one.h == other.h and isinstance(other, Record) for one, other in zip(before, records, strict=False))
    held = {
        seq for seq, each in enumerate(records[: len(before)]) if json.dumps(value)[1:-1] in json.dumps(each.as_json())
    }
    assert held <= {*found.left}
    assert {line.seq for line in found.lines} == {each.line - 1 for each in problems}
    assert all(isinstance(line, ErasedLine) for line in found.lines)
