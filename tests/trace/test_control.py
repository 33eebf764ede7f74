"""The control folder: other processes end a run and answer it; whatever is not exactly right is a no, or nothing."""

from __future__ import annotations

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

from playhead.trace import control_files
from playhead.trace.asked import GivenAnswer, PendingApproval, answer_to
from playhead.trace.control import FOLDER, Control
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
    with pytest.raises(OSError, match="a run of this id goes on"):
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
    for content in (b"", b"\xff", b"[]", b'{"why": 5}', b'{"why": ""}', b"x" * 100_000, b"[" * 60_000):
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
    assert control._lock is not None
    os.close(control._lock)  # as the end of the process does
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
    assert control.take_answer(pending) == GivenAnswer(approved=True, why="fine", by="ann")
    control.withdraw(pending)
    assert control.take_answer(pending) == GivenAnswer(approved=True, why="fine", by="ann")
    again = control.ask(PENDING)
    assert (again.number, control.take_answer(again), other.pending()) == (2, None, [again])
    control.withdraw(again)
    assert (other.pending(), other.answer(again, approved=True)) == ([], False)
    assert control.take_answer(again).approved is False


HOSTILE: dict[str, Any] = {
    "another type": {"tool": 5},
    "more": {"more": 1},
    "a number that is a word": {"number": True},
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
    control_files.write_over(
        control.folder / "1.request.json", {**pending.as_json(), "arguments": {"amount": 5_000_000}}
    )
    assert not other.answer(pending, approved=True)
    assert control.take_answer(pending) is None
    with pytest.raises(ValueError, match="larger than 16,777,216 bytes"):
        control.ask(PendingApproval(**{**pending.as_json(), "arguments": "x" * 17_000_000}))


EXACT = answer_to(PENDING, approved=True, why=None, by=None) | {"number": 1}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
CHANGES = st.dictionaries(st.sampled_from([*EXACT, "also"]), JSON | st.just(1) | st.just("true"), max_size=3)


@given(
    st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()) | CHANGES,
    st.sets(st.sampled_from([*EXACT])),
)
@settings(max_examples=sample(300, 50), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_answer_but_an_exact_one_is_a_yes(asked: Any, answer: Any, missing: set[str]):
    """Whatever the file holds: a yes needs every field, exactly, and `approved` to be JSON's true."""
    control, pending, _ = asked
    value: Any = None
    if isinstance(answer, dict):
        value = {name: each for name, each in {**EXACT, **answer}.items() if name not in missing}
        answer = json.dumps(value).encode()
    path = control.folder / "1.answer.json"
    path.write_bytes(answer)
    taken = control.take_answer(pending)
    assert type(taken.approved) is bool
    free = {"why", "by"}
    exact = isinstance(value, dict) and (
        value.keys() == EXACT.keys()
        and all(type(value[name]) is type(EXACT[name]) and value[name] == EXACT[name] for name in EXACT.keys() - free)
        and all(isinstance(value[name], str | None) for name in free)
    )
    assert taken.approved is exact
    assert taken.approved or isinstance(taken.why, str | None)


def given_away(path: Path) -> None:
    """Let another user answer."""
    path.write_text(json.dumps(EXACT))
    os.chown(path, 12345, 12345)


@pytest.mark.parametrize(
    ("plant", "why"),
    [
        (lambda path: path.mkdir(), "is no plain file"),
        (lambda path: path.symlink_to(path.parent / "real"), "is a link"),
        (lambda path: path.symlink_to("nowhere"), "is a link"),
        (os.mkfifo, "is no plain file"),
        (lambda path: path.write_bytes(json.dumps(EXACT).encode() + b" " * 65_536), "is larger than 65,536 bytes"),
        (lambda path: path.write_bytes(b"[" * 60_000), "holds no JSON"),
        (lambda path: path.write_text(json.dumps(EXACT)[:-1] + ', "approved": true}'), "holds no JSON"),
        (lambda path: path.write_text("true"), "holds no JSON object"),
        (lambda path: path.write_text(json.dumps({**EXACT, "args_hash": "cd" * 32})), "is about another call"),
        (lambda path: path.write_text(json.dumps({**EXACT, "call_id": "call_0_1"})), "is about another call"),
        (lambda path: path.write_text(json.dumps({**EXACT, "approved": 1})), "is not what `playhead approve` writes"),
        pytest.param(
            given_away, "belongs to another user",
            marks=AS_ROOT,
        ),
    ],
)  # fmt: skip
def test_answers_that_are_planted(asked: Any, plant: Any, why: str):
    """A folder, a link, a pipe, a flood, a lie: a no that says what is wrong, at once."""
    control, pending, _ = asked
    (control.folder / "real").write_text(json.dumps(EXACT))
    path = control.folder / "1.answer.json"
    plant(path)
    taken = control.take_answer(pending)
    assert taken.approved is False
    assert taken.why.startswith(f"the answer's file {why}")
    (control.folder / "real").unlink()
    if path.is_dir() and not path.is_symlink():
        path.rmdir()


def test_of_many_writers_one_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A file is there once, whole, also on a file system that has no links; and nothing else stays behind."""
    path = tmp_path / "a.json"
    control_files.write_new(path, {"who": 1})
    with pytest.raises(FileExistsError):
        control_files.write_new(path, {"who": 2})

    def without_links(*_: Any, **__: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", without_links)
    with pytest.raises(FileExistsError):
        control_files.write_new(path, {"who": 3})
    control_files.write_new(tmp_path / "b.json", {"who": 4})
    assert {each.name: json.loads(each.read_text()) for each in tmp_path.iterdir()} == {
        "a.json": {"who": 1}, "b.json": {"who": 4},
    }  # fmt: skip
