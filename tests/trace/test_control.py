"""The control folder: other processes end a run and answer it; whatever is not exactly right is a no, or nothing."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from playhead.trace.blobs import create_file
from playhead.trace.control import FOLDER, Control, GivenAnswer, PendingApproval
from playhead.trace.store import TraceStore
from tests.proving import sample

if TYPE_CHECKING:
    from pathlib import Path

PENDING = PendingApproval(
    call_id="call_0_0", owner="root", tool="pay", arguments={"amount": 5}, args_hash="ab" * 32, risk="high", why="owed"
)

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="the system lets only root give a file to another user")


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Where the trace of a run is."""
    return tmp_path / "run.jsonl"


def folder_of(trace: Path) -> Path:
    """Return the control folder of a run."""
    return trace.parent / FOLDER / trace.stem


def test_a_folder_from_start_to_end(trace: Path):
    """It is the user's own, no run of the folder of traces, says who runs the run, is found by others; nothing is left of it."""
    before = time.time_ns() // 1000
    control, other = Control.create(trace), Control.create(trace.with_name("other.jsonl"))
    with pytest.raises(OSError, match="a run of this id is running"):
        Control.create(trace)
    folder = folder_of(trace)
    modes = [stat.S_IMODE(each.stat().st_mode) for each in (folder, folder.parent, folder / "process.json")]
    assert modes == [0o700, 0o700, 0o600]
    assert TraceStore(trace.parent).paths() == []
    assert [each.run_id for each in Control.all_in(trace.parent)] == ["other", "run"]
    other.close()
    assert [each.run_id for each in Control.all_in(trace.parent)] == ["run"]
    found = Control.of(trace)
    assert found is not None
    assert (found.process.pid, found.process.host) == (os.getpid(), os.uname().nodename)
    assert before <= found.process.created_us <= time.time_ns() // 1000
    assert (found.process, found.run_id, found.trace_path, found.held) == (control.process, "run", trace, True)
    control.close()
    assert not found.held
    assert [Control.of(trace.with_name(name)) for name in ("run.jsonl", "...jsonl", ".control.jsonl", "a b.jsonl")] == [
        None
    ] * 4
    assert (list(trace.parent.iterdir()), list(Control.all_in(trace.parent))) == ([], [])
    control.close()


def test_a_kill_is_asked_for_and_seen(trace: Path):
    """The reason arrives; before that there is nothing."""
    control = Control.create(trace)
    assert control.kill_requested() is None
    found = Control.of(trace)
    assert found is not None
    found.request_kill("wrong table")
    assert control.kill_requested() == "wrong table"
    found.request_kill("once more")
    assert control.kill_requested() == "once more"
    control.close()
    with pytest.raises(FileNotFoundError):
        found.request_kill("too late")
    assert control.kill_requested() is None


def test_whatever_is_called_kill_ends_the_run(trace: Path):
    """To stop is the safe side: a file that says nothing is a request without a reason; a link or a folder is no file."""
    control = Control.create(trace)
    kill = folder_of(trace) / "kill"
    for content in (b"", b"\xff", b"x" * 100_000):
        kill.write_bytes(content)
        assert control.kill_requested() == "no reason was given"
    kill.unlink()
    kill.symlink_to(trace)
    assert control.kill_requested() is None
    kill.unlink()
    kill.mkdir()
    assert control.kill_requested() is None
    control.close()
    assert kill.exists()  # what is not Playhead's stays


def test_what_a_killed_run_left_is_taken_over(trace: Path):
    """A new run of the same id begins with nothing in its folder; a leftover is removed only when its process is gone."""
    program = (
        "import os, sys\nfrom pathlib import Path\nfrom playhead.trace.control import Control\n"
        "Control.create(Path(sys.argv[1])).request_kill('old')\nos._exit(9)"
    )
    killed = subprocess.run([sys.executable, "-c", program, str(trace)], check=False)
    assert killed.returncode == 9
    left = Control.of(trace)
    assert left is not None
    assert not left.held
    control = Control.create(trace)
    assert control.kill_requested() is None
    assert left.held  # for it is the folder of a living process again
    left.remove_leftover()
    assert folder_of(trace).exists()
    os.close(control._locks.pop())  # as the end of the process does
    left.remove_leftover()
    assert list(trace.parent.iterdir()) == []


def test_a_fork_does_not_close_it(trace: Path):
    """The folder is that of the parent, whatever its children do."""
    program = (
        "import os, sys\nfrom pathlib import Path\nfrom playhead.trace.control import Control\n"
        "control = Control.create(Path(sys.argv[1]))\nchild = os.fork()\n"
        "if child == 0:\n    control.close()\n    os._exit(0)\n"
        "os.waitpid(child, 0)\nprint(Control.of(Path(sys.argv[1])).held)\ncontrol.close()"
    )
    done = subprocess.run([sys.executable, "-c", program, str(trace)], check=True, capture_output=True)
    assert (done.stdout, list(trace.parent.iterdir())) == (b"True\n", [])


@pytest.mark.parametrize("planted", ["link", "file", "open", pytest.param("stranger", marks=AS_ROOT)])
def test_a_folder_that_is_not_ours_is_not_used(trace: Path, tmp_path: Path, planted: str):
    """A link, a file, or a folder into which others can write: no run is controlled through it."""
    place = trace.parent / FOLDER
    if planted == "link":
        (tmp_path / "elsewhere").mkdir()
        place.symlink_to(tmp_path / "elsewhere")
    elif planted == "file":
        place.write_text("")
    else:
        place.mkdir()
        place.chmod(0o777 if planted == "open" else 0o700)
        if planted == "stranger":
            os.chown(place, 12345, 12345)
    with pytest.raises(OSError):  # noqa: PT011 - each of them another
        Control.create(trace)
    assert Control.of(trace) is None


@pytest.mark.parametrize(
    "said",
    [
        b"", b"[]", b"{}", b'{"pid": 1}', b'{"pid": true, "created_us": 1, "host": "h", "run_id": "run"}',
        b'{"pid": 1, "created_us": 1, "host": "h", "run_id": "other"}', b'{"pid": 1, "pid": 2}', b"x" * 70_000,
    ],
)  # fmt: skip
def test_a_folder_that_names_no_process_leads_nowhere(trace: Path, said: bytes):
    """Who runs it has to be said exactly."""
    control = Control.create(trace)
    (folder_of(trace) / "process.json").write_bytes(said)
    assert Control.of(trace) is None
    control.close()


# --- approvals --------------------------------------------------------------------------------------------------------


@pytest.fixture
def asked(trace: Path) -> Any:
    """A run with one call that waits, as it sees itself and as another process does."""
    control = Control.create(trace)
    pending = control.ask(PENDING)
    other = Control.of(trace)
    assert other is not None
    yield control, pending, other
    control.close()
    assert Control.of(trace) is None


def test_a_question_and_its_answer(asked: Any):
    """The other process sees exactly what was asked; the run gets exactly what was answered, once, and not what comes too late."""
    control, pending, other = asked
    assert other.pending() == [pending]
    assert (pending.number, control.take_answer(pending)) == (1, None)
    assert other.answer(pending, approved=True, why="fine", by="ann")
    assert not other.answer(pending, approved=False, why="no, wait", by="bob")
    assert other.pending() == []
    answer = GivenAnswer(**{**exact(pending), "why": "fine", "by": "ann"})
    assert control.take_answer(pending) == answer
    control.withdraw(pending)
    assert control.take_answer(pending) == answer
    again = control.ask(PENDING)
    assert (again.number, control.take_answer(again), other.pending()) == (2, None, [again])
    control.withdraw(again)
    assert (other.pending(), other.answer(again, approved=True)) == ([], False)
    assert control.take_answer(again).approved is False


HOSTILE: dict[str, Any] = {
    "another type": {"tool": 5},
    "more": {"more": 1},
    "a number that is a word": {"number": True},
    "what another Playhead writes": {"owner": None},
    "another number than its name says": {"number": 1},
    "before all time": {"asked_us": -1},
    "a time beyond all": {"asked_us": 10**400},
    "a time below all": {"asked_us": -(10**400)},
    "a number that no file name has": {"number": 10**9},
    "a negative number": {"number": -2},
    "no number": {"arguments": {"amount": float("nan")}},
    "infinity": {"arguments": [float("inf")]},
    "an integer that no double holds": {"arguments": {"amount": 10**400}},
    "too deep": {"arguments": json.loads("[" * 400 + "]" * 400)},
    "half a character": {"arguments": "\ud800"},
}


def test_values_that_playhead_does_not_write_are_left_out_and_named(asked: Any):
    """Whatever stands in a file, the others are still shown, and which one is left out is said."""
    control, pending, other = asked
    for value in HOSTILE.values():
        (control.folder / "2.request.json").write_text(json.dumps({**pending.as_json(), "number": 2, **value}))
        assert (other.pending(), other.left_out()) == ([pending], ["2.request.json"])
    (control.folder / "3.request.json").write_text("[" * 100_000)
    (control.folder / "4.request.json").symlink_to("1.request.json")
    (control.folder / "5.request.json").mkdir()
    assert (other.pending(), len(other.left_out())) == ([pending], 4)
    (control.folder / "5.request.json").rmdir()


def test_what_was_looked_at_is_what_is_answered(asked: Any):
    """A request that says something else by now gets no answer; one that is too large to be shown is not asked."""
    control, pending, other = asked
    path = control.folder / "1.request.json"
    path.write_text(json.dumps({**pending.as_json(), "arguments": {"amount": 5_000_000}}))
    assert not other.answer(pending, approved=True)
    (forged,) = other.pending()
    assert other.answer(forged, approved=True)
    taken = control.take_answer(pending)
    assert (taken.approved, taken.why) == (False, "the answer's file is about another call")
    with pytest.raises(ValueError, match="larger than 16,777,216 bytes"):
        control.ask(PendingApproval(**{**pending.as_json(), "arguments": "x" * 17_000_000}))


def exact(pending: PendingApproval) -> dict[str, Any]:
    """Return the answer that approves a request, as `playhead approve` writes it."""
    request = hashlib.sha256(pending.content()).hexdigest()
    return {"approved": True, "why": None, "by": None, "request": request}


FIELDS = ("approved", "why", "by", "request")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
CHANGES = st.dictionaries(st.sampled_from([*FIELDS, "also"]), JSON | st.just(1) | st.just("true"), max_size=3)


@given(
    st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()) | CHANGES,
    st.sets(st.sampled_from(FIELDS)),
)
@settings(max_examples=sample(300, 50), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_answer_but_an_exact_one_approves(asked: Any, answer: Any, missing: set[str]):
    """Whatever the file holds: an approval needs every field, exactly, and `approved` to be JSON's true."""
    control, pending, _ = asked
    value: Any = None
    right = exact(pending)
    if isinstance(answer, dict):
        value = {name: each for name, each in {**right, **answer}.items() if name not in missing}
        answer = json.dumps(value).encode()
    (control.folder / "1.answer.json").write_bytes(answer)
    taken = control.take_answer(pending)
    is_right = isinstance(value, dict) and (
        value.keys() == right.keys()
        and (value["approved"], value["request"]) == (True, right["request"])
        and isinstance(value["approved"], bool)
        and all(isinstance(value[name], str | None) for name in ("why", "by"))
    )
    assert taken.approved is is_right
    assert taken.approved or isinstance(taken.why, str | None)


def given_away(path: Path, right: dict[str, Any]) -> None:
    """Let another user answer."""
    path.write_text(json.dumps(right))
    os.chown(path, 12345, 12345)


FORGED = "is not what Playhead writes"


@pytest.mark.parametrize(
    ("plant", "why"),
    [
        (lambda path, _: path.mkdir(), "is no plain file"),
        (lambda path, _: path.symlink_to(path.parent / "real"), "is a link"),
        (lambda path, _: os.mkfifo(path), "is no plain file"),
        (lambda path, right: path.write_text(json.dumps(right) + " " * 65_536), "is larger than 65,536 bytes"),
        (lambda path, _: path.write_bytes(b"[" * 60_000), FORGED),
        (lambda path, right: path.write_text(json.dumps(right)[:-1] + ', "approved": true}'), FORGED),
        (lambda path, right: path.write_text(json.dumps(right) + " "), FORGED),
        (lambda path, right: path.write_text(json.dumps({**right, "request": "cd" * 32})), "is about another call"),
        (lambda path, right: path.write_text(json.dumps({**right, "approved": 1})), FORGED),
        pytest.param(given_away, "belongs to another user", marks=AS_ROOT),
    ],
)
def test_answers_that_are_planted(asked: Any, plant: Any, why: str):
    """A folder, a link, a pipe, a flood, a lie: a refusal that says what is wrong, at once."""
    control, pending, _ = asked
    (control.folder / "real").write_text(json.dumps(exact(pending)))
    path = control.folder / "1.answer.json"
    plant(path, exact(pending))
    taken = control.take_answer(pending)
    assert (taken.approved, taken.why) == (False, f"the answer's file {why}")
    (control.folder / "real").unlink()
    if path.is_dir() and not path.is_symlink():
        path.rmdir()


def test_of_many_writers_one_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A file is there once, whole, also on a file system that has no links; and nothing else stays behind."""

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
