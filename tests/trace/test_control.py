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
from tests.proving import bound, sample

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


def mode(path: Path) -> int:
    """Return the permissions of a file."""
    return stat.S_IMODE(path.stat().st_mode)


def test_a_folder_from_start_to_end(trace: Path):
    """It is the user's own, says who runs the run, is found by others, and nothing is left of it."""
    before = time.time_ns() // 1000
    control = Control.create(trace)
    folder = folder_of(trace)
    assert (mode(folder), mode(folder.parent), mode(folder / "process.json")) == (0o700, 0o700, 0o600)
    found = Control.of(trace)
    assert found is not None
    assert (found.process.pid, found.process.host) == (os.getpid(), os.uname().nodename)
    assert before <= found.process.created_us <= time.time_ns() // 1000
    assert (found.process, found.run_id, found.trace_path, found.held) == (control.process, "run", trace, True)
    control.close()
    assert not found.held
    assert Control.of(trace) is None
    assert list(trace.parent.iterdir()) == []
    control.close()


def test_other_runs_have_their_own(trace: Path):
    """Each run of a folder is found, and the end of one leaves the others alone."""
    one, other = Control.create(trace), Control.create(trace.with_name("other.jsonl"))
    assert [each.run_id for each in Control.all_in(trace.parent)] == ["other", "run"]
    one.close()
    assert [each.run_id for each in Control.all_in(trace.parent)] == ["other"]
    other.close()
    assert list(Control.all_in(trace.parent)) == []
    assert list(Control.all_in(trace.parent / "nosuch")) == []


def test_the_folder_of_traces_does_not_see_it(trace: Path):
    """It is no run, not the latest, and no start of an id means it."""
    trace.write_text("")
    control = Control.create(trace)
    store = TraceStore(trace.parent)
    assert store.paths() == [trace]
    assert store.resolve("latest") == store.resolve("r") == trace
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


@pytest.mark.parametrize("content", [b"", b"\xff", b"[]", b'{"why": 5}', b'{"why": ""}', b"x" * 100_000, b"[" * 60_000])
def test_whatever_is_called_kill_ends_the_run(trace: Path, content: bytes):
    """To stop is the safe side: a file that says nothing is a request without a reason."""
    control = Control.create(trace)
    (folder_of(trace) / "kill").write_bytes(content)
    assert control.kill_requested() == "no reason was given"
    control.close()
    assert not folder_of(trace).exists()


def test_what_is_no_file_ends_no_run(trace: Path, tmp_path: Path):
    """A link and a folder are not what Playhead writes."""
    control = Control.create(trace)
    kill = folder_of(trace) / "kill"
    kill.symlink_to(trace)
    assert control.kill_requested() is None
    kill.unlink()
    kill.mkdir()
    assert control.kill_requested() is None
    control.close()
    assert folder_of(trace).exists()  # what is not Playhead's stays


def test_what_a_killed_run_left_is_taken_over(trace: Path):
    """A new run of the same id begins with nothing in its folder."""
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
    control.close()


def test_a_leftover_is_removed_only_when_its_process_is_gone(trace: Path):
    """Who has killed a process clears up behind it."""
    control = Control.create(trace)
    found = Control.of(trace)
    assert found is not None
    found.remove_leftover()
    assert found.held
    assert control._lock is not None
    os.close(control._lock)  # as the end of the process does
    found.remove_leftover()
    assert list(trace.parent.iterdir()) == []


def test_a_run_that_goes_on_is_not_taken_over(trace: Path):
    """Two runs of one id cannot share a folder."""
    control = Control.create(trace)
    with pytest.raises(OSError, match="a run of this id goes on"):
        Control.create(trace)
    control.close()


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


@pytest.mark.parametrize("name", ["...jsonl", "..jsonl", ".control.jsonl", "a b.jsonl", ".jsonl"])
def test_a_trace_of_an_odd_name_has_no_folder(tmp_path: Path, name: str):
    """The name of a file that somebody names leads nowhere else."""
    (tmp_path / "process.json").write_text("{}")
    assert Control.of(tmp_path / name) is None


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
    """The other process sees exactly what was asked; the run gets exactly what was answered; once."""
    control, pending, other = asked
    assert other.pending() == [pending]
    assert (pending.number, control.take_answer(pending)) == (1, None)
    assert other.answer(pending, approved=True, why="fine", by="ann")
    assert not other.answer(pending, approved=False, why="no, wait", by="bob")
    assert other.pending() == []
    assert control.take_answer(pending) == GivenAnswer(approved=True, why="fine", by="ann")
    control.withdraw(pending)
    assert control.take_answer(pending) == GivenAnswer(approved=True, why="fine", by="ann")


def test_a_question_that_is_withdrawn(asked: Any):
    """Who answers too late is told so, and the next question is another one."""
    control, pending, other = asked
    control.withdraw(pending)
    assert other.pending() == []
    assert not other.answer(pending, approved=True)
    assert control.take_answer(pending).approved is False
    again = control.ask(PENDING)
    assert (again.number, control.take_answer(again), other.pending()) == (2, None, [again])


def test_a_question_that_has_changed_is_not_answered(asked: Any):
    """What was looked at is what is answered: a request that says something else by now gets no answer."""
    control, pending, other = asked
    path = control.folder / "1.request.json"
    control_files.write_over(path, {**pending.as_json(), "arguments": {"amount": 5_000_000}})
    assert not other.answer(pending, approved=True)
    assert control.take_answer(pending) is None


def test_questions_that_are_none_are_left_out(asked: Any):
    """Half a request, another number than its name says, a link: not shown."""
    control, pending, other = asked
    whole = pending.as_json()
    for number, value in enumerate(
        [{}, {**whole, "tool": 5}, {**whole, "more": 1}, {**whole, "number": True}, whole], 2
    ):
        control_files.write_new(control.folder / f"{number}.request.json", value)
    (control.folder / "9.request.json").symlink_to("1.request.json")
    (control.folder / "10.request.json").mkdir()
    assert other.pending() == [pending]
    (control.folder / "10.request.json").rmdir()


HOSTILE: dict[str, Any] = {
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


@pytest.mark.parametrize("name", HOSTILE)
def test_values_that_playhead_does_not_write_are_left_out_and_named(asked: Any, name: str):
    """Whatever stands in a file, the others are still shown, and which one is left out is said."""
    control, pending, other = asked
    value = {**pending.as_json(), "number": 2, **HOSTILE[name]}
    (control.folder / "2.request.json").write_text(json.dumps(value))
    (control.folder / "3.request.json").write_text("[" * 100_000)
    assert other.pending() == [pending]
    assert other.left_out() == ["2.request.json", "3.request.json"]
    other.answer(pending, approved=True)
    assert other.left_out() == ["2.request.json", "3.request.json"]


def test_a_question_that_is_too_large_is_not_asked(asked: Any):
    """Better not asked than not seen."""
    control, pending, other = asked
    with pytest.raises(ValueError, match="larger than 16,777,216 bytes"):
        control.ask(PendingApproval(**{**pending.as_json(), "arguments": "x" * 17_000_000}))
    assert other.pending() == [pending]


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


@AS_ROOT
def test_the_answer_of_another_user_is_none(asked: Any):
    """An answer belongs to the user who runs the run."""
    control, pending, _ = asked
    path = control.folder / "1.answer.json"
    path.write_text(json.dumps(EXACT))
    os.chown(path, 12345, 12345)
    assert control.take_answer(pending) == GivenAnswer(approved=False, why="the answer's file belongs to another user")


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


def test_what_it_costs(trace: Path):
    """A run pays next to nothing for it: the folder, and twenty looks a second."""
    costs = []
    looks = []
    for number in range(50):
        began = time.perf_counter()
        control = Control.create(trace.with_name(f"{number}.jsonl"))
        made = time.perf_counter()
        control.kill_requested()
        looks.append(time.perf_counter() - made)
        costs.append(made - began)
        control.close()
    assert min(costs) < bound(0.001)
    assert min(looks) < bound(0.0001)
